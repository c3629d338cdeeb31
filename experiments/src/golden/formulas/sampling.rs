//! Softmax sampling: what is estimated from draws.

use ndarray::Array1;
use random_features::apply::softmax_sampling::Partition;

use super::case::{Case, Found, parts};

pub fn sampling(case: &Case<'_>) -> Found {
    let real = |name: &str| -> Result<Array1<f64>, String> {
        Ok(case.diagonal(name)?.iter().map(|number| number.re).collect())
    };
    let (logits, weights) = (real("logits")?.to_vec(), real("unnormalised_q")?);
    let ln_q = (&weights / weights.sum()).mapv(f64::ln).to_vec();
    let sample = real("sample")?.mapv(|class| class as usize);
    let of = |all: &[f64]| -> Result<Vec<f64>, String> {
        let number = |class: &usize| all.get(*class).copied().ok_or(format!("there is no class {class}"));
        sample.iter().map(number).collect()
    };
    let (drawn, drawn_ln_q) = (of(&logits)?, of(&ln_q)?);
    let text = |error: random_features::Error| error.to_string();
    let estimate = Partition::new(&drawn, &drawn_ln_q).map_err(text)?.log_value().exp();
    let ln_variance = Partition::log_variance(&logits, &ln_q, case.count("k")?).map_err(text)?;
    parts(vec![
        ("corrected_logits", Partition::corrected_logits(&drawn, &drawn_ln_q).map_err(text)?),
        ("partition_estimate", vec![estimate]),
        ("estimator_variance", vec![ln_variance.exp()]),
    ])
}
