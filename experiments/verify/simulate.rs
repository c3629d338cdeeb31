//! Estimators are drawn, and their sample errors compared with the closed forms.

use ndarray::{Array1, arr1};
use random_features::extend::Coupling;
use random_features::frequency::{Antithetic, Frequencies, Independent, Orthogonal, Simplex, SimplexPlus};
use random_features::{Hyperbolic, Map, Positive, Result, Trigonometric, rng};

/// z-scores beyond this are failures: with some 100 of them, one false alarm in 10 000 runs.
const LIMIT: f64 = 5.0;

/// Standard errors of sample errors, relative to them, beyond which a z-score says little.
const TOO_FEW: f64 = 0.1;

/// How to make a map of drawn frequencies.
type Make = fn(Frequencies) -> Result<Map<f64>>;

const MAPS: [(&str, Make); 3] = [
    ("trigonometric", |omega| Trigonometric.softmax(omega)),
    ("positive", |omega| Positive.softmax(omega)),
    ("hyperbolic", |omega| Hyperbolic.softmax(omega)),
];

/// Mean and standard error of a sample.
fn mean(sample: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = sample.clone().count() as f64;
    let mean = sample.clone().sum::<f64>() / n;
    let variance = sample.map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Compares every map, coupling and number of frequencies: the table, and whether all z-scores are in bounds.
pub fn run(draws: u64) -> Result<(String, bool)> {
    // ‖x+y‖² = 1.0: beyond, fourth moments are too large for a sample's variance to mean much.
    let x: Array1<f64> = arr1(&[0.3, -0.5, 0.2, 0.4]);
    let y = arr1(&[0.35, -0.1, -0.5, 0.0]);
    let couplings: [Box<dyn Coupling>; 7] = [
        Box::new(Independent),
        Box::new(Orthogonal),
        Box::new(Simplex::default()),
        Box::new(Simplex::default().with_truncated_blocks()),
        Box::new(SimplexPlus::default()),
        Box::new(Antithetic(Independent)),
        Box::new(Antithetic(Orthogonal)),
    ];
    let mut table = format!(
        "{draws} draws at ‖x+y‖² = {:.2}, ‖x−y‖² = {:.2}, d = 4\n",
        squared(&(&x + &y)),
        squared(&(&x - &y))
    );
    table += &format!(
        "{:<15}{:<30}{:>4}{:>12}{:>8}{:>14}{:>14}{:>8}\n",
        "map", "coupling", "m", "bias", "z", "sample MSE", "closed form", "z"
    );
    let (mut well, mut few) = (true, 0);
    for (name, map) in MAPS {
        for coupling in &couplings {
            for m in [2, 4, 7, 16] {
                let estimates = (0..draws)
                    .map(|seed| map(coupling.as_ref().draw(4, m, rng(seed).next_u64())?)?.estimate(&x, &y))
                    .collect::<Result<Vec<f64>>>()?;
                let exact = x.dot(&y).exp();
                let (bias, error) = mean(estimates.iter().map(|v| v - exact));
                let (mse, mse_error) = mean(estimates.iter().map(|v| (v - exact).powi(2)));
                let law = map(coupling.as_ref().draw(4, m, rng(0).next_u64())?);
                let (closed, z) = match law?.log_variance(&x, &y)? {
                    Some(ln) => (format!("{:.6}", ln.exp()), (mse - ln.exp()) / mse_error),
                    None => ("none".into(), 0.0),
                };
                let bias_z = bias / error;
                few += usize::from(closed != "none" && mse_error > TOO_FEW * mse);
                well &= bias_z.abs() <= LIMIT && z.abs() <= LIMIT;
                let coupling = format!("{coupling:?}");
                table += &format!(
                    "{name:<15}{coupling:<30}{m:>4}{bias:>12.5}{bias_z:>8.2}{mse:>14.6}{closed:>14}{z:>8.2}\n"
                );
            }
        }
    }
    if few > 0 {
        let percent = 100.0 * TOO_FEW;
        table +=
            &format!("too few draws for a verdict on {few} errors: known to no better than {percent} %\n");
    }
    table += if well { "all z-scores are in bounds\n" } else { "SOME Z-SCORES ARE OUT OF BOUNDS\n" };
    Ok((table, well))
}

fn squared(v: &Array1<f64>) -> f64 {
    v.dot(v)
}
