//! Complex-exponential maps and hybrids.

use std::f64::consts::PI;

use num_complex::Complex64;
use random_features::theory::complex_exponential::{self, Symmetry};
use random_features::theory::{Pair, coefficient, diagonal, hybrid, relative_error};

use super::case::{Case, Found, complex, known, ln, number, parts, plain, rows};
use crate::golden::decimal;

pub fn complex_exponential(case: &Case) -> Found {
    let (x, y) = case.points()?;
    let zeta = |name| {
        let a = case.diagonal(name)?;
        if a.len() != x.len() {
            return Err(format!("{name} does not have d entries"));
        }
        Ok::<_, String>(complex_exponential::zeta_diagonal(&a, &x.to_vec(), &y.to_vec()))
    };
    let dot = x.dot(&y);
    let (plain, both) = (Symmetry::Plain, Symmetry::Symmetric);
    match case.formula {
        "ce.mse.real.plain" => {
            ln(complex_exponential::ln_mse(dot, &zeta("A_diag")?, plain, case.count("m")?))
        }
        "ce.mse.real.pm" => ln(complex_exponential::ln_mse(dot, &zeta("A_diag")?, both, case.count("m")?)),
        "ce.mse.complex.plain" => {
            ln(complex_exponential::ln_complex_mse(dot, &zeta("A_diag")?, plain, case.count("m")?))
        }
        "ce.mse.complex.pm" => {
            ln(complex_exponential::ln_complex_mse(dot, &zeta("A_diag")?, both, case.count("m")?))
        }
        "ce.mse.real.full" => {
            let a = rows(&case.json["params"]["A"], complex)?;
            let zeta = complex_exponential::zeta(&a, &x, &y).map_err(|e| e.to_string())?;
            ln(complex_exponential::ln_mse(dot, &zeta, plain, case.count("m")?))
        }
        "ce.cov_shared" => number(complex_exponential::shared_covariance(
            dot,
            &zeta("A_diag")?,
            plain,
            &zeta("B_diag")?,
            plain,
            case.count("m")?,
        )),
        "ce.optimal_diag.real" | "ce.optimal_diag.complex" => {
            let (r, q, clamp) = (x.to_vec(), y.to_vec(), case.number("clamp_eps")?);
            let a = if case.formula.ends_with("complex") {
                diagonal::complex(&r, &q, clamp)
            } else {
                diagonal::real(&r, &q, clamp).into_iter().map(Complex64::from).collect()
            };
            let loss = diagonal::loss(&a, &r, &q);
            parts(vec![("A", a.iter().flat_map(|a| [a.re, a.im]).collect()), ("loss", vec![loss])])
        }
        _ => Ok(None),
    }
}

fn moments(moments: coefficient::CoefficientMoments) -> Found {
    parts(vec![("mean", vec![moments.mean]), ("second_moment", vec![moments.square])])
}

pub fn hybrid_map(case: &Case) -> Found {
    let normalised = || Ok::<_, String>((case.number("sigma")?, case.number("r")?));
    let gaussian = |pair: &Pair| {
        let (sigma, r) = normalised()?;
        Ok::<_, String>(coefficient::gaussian_normalised(pair, sigma, r, case.count("n")?))
    };
    let bipolar = |moments: &coefficient::CoefficientMoments, bases| {
        known(hybrid::ln_bipolar_mse(&case.pair()?, moments, case.count("m")?, bases))
    };
    let angular = || Ok::<_, String>(coefficient::angular(case.pair()?.angle, case.count("n")?));
    match case.formula {
        "hybrid.angular.lambda" => moments(angular()?),
        "hybrid.angular.mse.independent" => bipolar(&angular()?, hybrid::Sharing::Independent),
        "hybrid.angular.mse.shared" => bipolar(&angular()?, hybrid::Sharing::Shared),
        "hybrid.gaussian.lambda" => moments(gaussian(&case.pair()?)?),
        "hybrid.gaussian.mse.independent" => bipolar(&gaussian(&case.pair()?)?, hybrid::Sharing::Independent),
        "hybrid.gaussian.mse.shared" => bipolar(&gaussian(&case.pair()?)?, hybrid::Sharing::Shared),
        "hybrid.gaussian_general.lambda.trig" => {
            moments(coefficient::gaussian_trigonometric(&case.pair()?, case.count("n")?))
        }
        "hybrid.gaussian_general.lambda.positive" => {
            moments(coefficient::gaussian_positive(&case.pair()?, case.count("n")?))
        }
        "hybrid.nested.mse" => {
            let ((sigma, r), m) = (normalised()?, case.count("m")?);
            known(hybrid::ln_nested_mse(&case.pair()?, sigma, r, m, case.count("m2")?, case.count("n2")?))
        }
        "relerr.trig" => {
            let (theta, r) = (case.number("theta")?, case.number("r")?);
            ln(relative_error::ln_trigonometric(theta, r, case.count("m")?))
        }
        "relerr.angular_hybrid" => {
            let (theta, r) = (case.number("theta")?, case.number("r")?);
            let computed = relative_error::ln_angular(theta, r, case.count("m")?, case.count("n")?);
            // At θ = 0 the error vanishes. The table has what 90-digit arithmetic leaves of π − θ there, some
            // 1e-90 squared: exactly 0 meets a value that is no more than that.
            // No more than 1e-80 of the largest error over all angles.
            let largest = relative_error::ln_max_trigonometric(r, case.count("m")?);
            let residue = decimal(&case.json["expected"]["ln_abs"]).is_ok_and(|ln| ln < largest - 184.0);
            if theta == 0.0 && computed == f64::NEG_INFINITY && residue {
                return plain(decimal(&case.json["expected"]["value"])?);
            }
            ln(computed)
        }
        "bound.hrf_thm35.corrected" => {
            ln(relative_error::ln_max_angular_bound(case.number("r")?, case.count("m")?, case.count("n")?))
        }
        "bound.hrf_thm35.as_published_false" => {
            ln(published_bound(case.number("r")?, case.count("m")?, case.count("n")?))
        }
        _ => Ok(None),
    }
}

/// The bound of Hybrid Random Features, Theorem 3.5, with the error of print (erratum H6).
fn published_bound(r: f64, m: usize, n: usize) -> f64 {
    let n = n as f64;
    let factor = (1.0 - 1.0 / n) / (PI * r * r) + 1.0 / (n * PI.sqrt() * r * r);
    relative_error::ln_max_trigonometric(r, m) + 0.5 * factor.ln()
}
