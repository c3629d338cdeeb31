//! From a formula's name and a case's parameters to what the crate computes.

mod attention;
mod case;
mod drawn;
mod estimate;
mod gaussian;
mod generalised;
mod hybrid;
mod limits;
mod metrics;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod nystroem;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod regression;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod ridge;
mod sampling;
mod shift_invariant;

use serde_json::Value;

use case::Case;

use crate::golden::Computed;

/// What became of a formula.
pub enum Outcome {
    Computed(Computed),
    /// It needs a capability that comes later, or a factorisation that no feature provides.
    Later,
}

/// Families of the table of kernels that come later: kernels and sketches.
const LATER: [&str; 6] = ["additive", "arccos", "maclaurin", "sketch", "skewed_chi2", "tree"];

/// Computes a case; `Err` is a sentence about what cannot be.
pub fn compute(json: &Value) -> Result<Outcome, String> {
    let formula = json["formula"].as_str().ok_or("a case has no formula")?;
    let case = Case { formula, json };
    let family = formula.split('.').next().unwrap_or_default();
    if LATER.contains(&family) || ["periodic.coefficient", "periodic.truncated"].contains(&formula) {
        return Ok(Outcome::Later);
    }
    let computed = match family {
        "kernel" | "angle" => gaussian::kernel(&case)?,
        "mse" | "performers" | "gap" => gaussian::gaussian_map(&case)?,
        "quantile" => gaussian::quantile(&case)?,
        "conformity" | "rff" => gaussian::conformity(&case)?,
        "ce" => hybrid::complex_exponential(&case)?,
        "hybrid" | "relerr" | "bound" => hybrid::hybrid_map(&case)?,
        "gerf" | "oprf" | "crt" => generalised::generalised(&case)?,
        "poisson" | "geometric" => generalised::count_map(&case)?,
        "estimate" => estimate::estimate(&case)?,
        "simplex" | "simrf_plus" => drawn::simplex_matrix(&case)?,
        "structured" => drawn::structured(&case)?,
        "qmc" => drawn::quasi_random(&case)?,
        "data" => drawn::data(&case)?,
        #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
        "krr" => ridge::ridge(&case)?,
        #[cfg(not(any(feature = "faer", feature = "ndarray-linalg")))]
        "krr" => return Ok(Outcome::Later),
        #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
        "nystrom" => return nystroem::nystroem(&case),
        #[cfg(not(any(feature = "faer", feature = "ndarray-linalg")))]
        "nystrom" => return Ok(Outcome::Later),
        "limit" => return limits::limits(&case),
        "matern" => shift_invariant::matern(&case)?,
        "periodic" | "locally_periodic" => shift_invariant::periodic(&case)?,
        "spectral_mixture" => shift_invariant::spectral_mixture(&case)?,
        "powered_exponential" => shift_invariant::powered_exponential(&case)?,
        "attention" => attention::attention(&case)?,
        "metrics" => metrics::metrics(&case)?,
        "sampled_softmax" => sampling::sampling(&case)?,
        #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
        _ => return regression::compute(family, json).unwrap_or_else(|| Err(unknown(formula))),
        #[cfg(not(any(feature = "faer", feature = "ndarray-linalg")))]
        _ => None,
    };
    match computed {
        Some(computed) => Ok(Outcome::Computed(computed)),
        None => Err(unknown(formula)),
    }
}

fn unknown(formula: &str) -> String {
    format!("there is no formula {formula}")
}
