//! Least mean squared errors of features, for a matrix of kernel values.

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use random_features::data::GramSpectrum;
use random_features::theory::limits;

use super::Outcome;
use super::case::{Case, Found, plain};

/// The count m is that of independent features, or D.
pub fn limits(case: &Case) -> Result<Outcome, String> {
    let found = match case.formula {
        "limit.independent.matrix" => independent(case, |_, _| true)?,
        "limit.independent.population" => independent(case, |i, j| i != j)?,
        _ => of_spectrum(case)?,
    };
    match found {
        Some(computed) => Ok(Outcome::Computed(computed)),
        None if cfg!(any(feature = "faer", feature = "ndarray-linalg")) => Err(super::unknown(case.formula)),
        None => Ok(Outcome::Later),
    }
}

/// The limit for one set of points, with the mean of K² over some of the pairs.
fn independent(case: &Case, is_pair: fn(usize, usize) -> bool) -> Found {
    let kernel = case.matrix("K")?;
    let pairs = kernel.indexed_iter().filter(|((i, j), _)| is_pair(*i, *j));
    let (sum, count) = pairs.fold((0.0, 0.0), |(sum, count), (_, k)| (sum + k * k, count + 1.0));
    let trace = kernel.diag().sum() / kernel.nrows() as f64;
    plain(limits::independent(trace, sum / count, case.count("m")?, 1))
}

/// The limits that singular values are needed for.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
fn of_spectrum(case: &Case) -> Found {
    let (name, error): (_, fn(&GramSpectrum, usize) -> f64) = match case.formula {
        "limit.independent.two_sets" => ("C", GramSpectrum::independent_error),
        "limit.unbiased_rank" => ("K", GramSpectrum::unbiased_error),
        "limit.eckart_young" => ("K", GramSpectrum::least_error),
        _ => return Ok(None),
    };
    let kernel = case.matrix(name)?;
    let spectrum = GramSpectrum::of_gram(&kernel).map_err(|e| e.to_string())?;
    let mean_square = kernel.iter().map(|k| k * k).sum::<f64>() / kernel.len() as f64;
    plain(error(&spectrum, case.count("m")?).powi(2) * mean_square)
}

#[cfg(not(any(feature = "faer", feature = "ndarray-linalg")))]
fn of_spectrum(_: &Case) -> Found {
    Ok(None)
}
