//! Attention: exact, and linear with given frequencies.

use ndarray::{Array2, Array4, ArrayView1, Axis};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::frequency::Frequencies;
use random_features::kernel::Activation;
use random_features::{Map, Nonlinear, Positive};

use super::case::{Case, Found, parts};

pub fn attention(case: &Case) -> Found {
    let (name, causal) = match case.formula.strip_suffix(".causal") {
        Some(name) => (name, true),
        None => (case.formula, false),
    };
    let omega = || Frequencies::from_rows(case.matrix("W")?).map_err(|e| e.to_string());
    let out = match name {
        "attention.exact" => exact(case, causal)?,
        "attention.favor_plus.no_eps" => {
            linear(case, causal, Positive.softmax(omega()?).map_err(|e| e.to_string())?)?
        }
        "attention.generalized_relu" => {
            let (omega, relu) = (omega()?, Nonlinear::new(Activation::Relu));
            let map = relu.with_offset(case.number("kernel_eps")?).and_then(|relu| relu.build(omega, 1.0));
            linear(case, causal, map.map_err(|e| e.to_string())?)?
        }
        "attention.favor_plus.reference_eps" => reference(case, causal)?,
        _ => return Ok(None),
    };
    parts(vec![("out", out.into_iter().collect())])
}

/// Queries, keys and values as one head.
fn tokens(case: &Case) -> Result<[Array4<f64>; 3], String> {
    let one_head = |rows: Array2<f64>| rows.insert_axis(Axis(0)).insert_axis(Axis(0));
    Ok([case.matrix("Q")?, case.matrix("K")?, case.matrix("V")?].map(one_head))
}

fn exact(case: &Case, causal: bool) -> Result<Array4<f64>, String> {
    let [q, k, v] = tokens(case)?;
    let heads = Heads::new(&q, &k, &v).map_err(|e| e.to_string())?;
    let exact = ExactAttention::new();
    let attended = if causal { exact.causal(&heads) } else { exact.bidirectional(&heads) };
    attended.map(|attended| attended.output).map_err(|e| e.to_string())
}

fn linear(case: &Case, causal: bool, map: Map<f64>) -> Result<Array4<f64>, String> {
    let [q, k, v] = tokens(case)?;
    let heads = Heads::new(&q, &k, &v).map_err(|e| e.to_string())?;
    let attention = Attention::new(map).map_err(|e| e.to_string())?;
    let attended = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) };
    attended.map(|attended| attended.output).map_err(|e| e.to_string())
}

/// Attention as the reference code of FAVOR+ has it, all pairs by hand: to its features, which are relative to the largest
/// ω·q of a query and to the largest ω·k of all keys, future ones included, it adds ε. The crate does not do that.
fn reference(case: &Case, causal: bool) -> Result<Array4<f64>, String> {
    let [q, k, v] = ["Q", "K", "V"].map(|name| case.matrix(name));
    let ([q, k, v], w, epsilon) = ([q?, k?, v?], case.matrix("W")?, case.number("eps")?);
    let fits = q.ncols() == w.ncols() && k.ncols() == w.ncols() && v.nrows() == k.nrows();
    if !fits || (causal && q.nrows() != k.nrows()) {
        return Err("Q, K, V and W do not fit".into());
    }
    let scale = (w.ncols() as f64).powf(-0.25);
    let (q, k) = (q * scale, k * scale);
    let (of_queries, of_keys) = (q.dot(&w.t()), k.dot(&w.t()));
    let largest = |logs: ArrayView1<'_, f64>| logs.fold(f64::NEG_INFINITY, |top, log| top.max(*log));
    let half_square = |x: &Array2<f64>, i: usize| 0.5 * x.row(i).dot(&x.row(i));
    let top = of_keys.rows().into_iter().map(largest).fold(f64::NEG_INFINITY, f64::max);
    let keys = Array2::from_shape_fn(of_keys.dim(), |(j, f)| {
        (of_keys[[j, f]] - half_square(&k, j) - top).exp() + epsilon
    });
    let queries = Array2::from_shape_fn(of_queries.dim(), |(i, f)| {
        let top = largest(of_queries.row(i));
        (of_queries[[i, f]] - half_square(&q, i) - top).exp() + epsilon
    });
    let mut weights = queries.dot(&keys.t());
    weights.indexed_iter_mut().filter(|((i, j), _)| causal && j > i).for_each(|(_, weight)| *weight = 0.0);
    let out = weights.dot(&v) / weights.sum_axis(Axis(1)).insert_axis(Axis(1));
    Ok(out.insert_axis(Axis(0)).insert_axis(Axis(0)))
}
