//! Distances of estimates from what they estimate.

use std::error::Error;

use ndarray::Array1;
use random_features::apply::metrics::{
    frobenius_error, kolmogorov_smirnov, negative_fraction, spectral_error, wasserstein,
};

use super::case::{Case, Found, parts};
use crate::golden::Computed;

pub fn metrics(case: &Case<'_>) -> Found {
    match case.formula {
        "metrics.matrix" => of_matrices(case).map_err(|error| error.to_string()),
        "metrics.distribution" => of_distributions(case).map_err(|error| error.to_string()),
        _ => Ok(None),
    }
}

fn of_matrices(case: &Case<'_>) -> Result<Option<Computed>, Box<dyn Error>> {
    let (exact, estimate) = (case.matrix("K")?, case.matrix("K_hat")?);
    let frobenius = vec![frobenius_error(&estimate, &exact)?];
    Ok(parts(vec![("rel_frobenius", frobenius), ("rel_spectral", vec![spectral_error(&estimate, &exact)?])])?)
}

fn of_distributions(case: &Case<'_>) -> Result<Option<Computed>, Box<dyn Error>> {
    let [p, q] = ["unnormalised_true", "unnormalised_approx"].map(|name| case.diagonal(name));
    let [p, q] = [p?, q?].map(|weights| weights.iter().map(|weight| weight.re).collect::<Array1<f64>>());
    Ok(parts(vec![
        ("wasserstein1", vec![wasserstein(&p, &q)?]),
        ("ks", vec![kolmogorov_smirnov(&p, &q)?]),
        ("negative_fraction", vec![negative_fraction(&q)?]),
    ])?)
}
