//! Kernels of many kinds, variances of their features, and the stable numbers of radii.

use ndarray::s;
use random_features::Error;
use random_features::extend::ShiftInvariant;
use random_features::kernel::{Gaussian, Kernel, Matern, PoweredExponential, Smoothness, SpectralMixture};
use random_features::theory::{self, Law};
use random_features::workbench::ln_stable;

use super::case::{Case, Found, known, ln, number, plain};

pub fn matern(case: &Case) -> Found {
    let kernel = Smoothness::of(case.number("nu")?).and_then(|smoothness| Matern::new(smoothness, 1.0));
    of_kernel(case, &kernel.map_err(|error| error.to_string())?)
}

pub fn powered_exponential(case: &Case) -> Found {
    let alpha = case.number("alpha")?;
    if case.formula == "powered_exponential.tau" {
        return ln(ln_stable(0.5 * alpha, case.number("u")?, case.number("e")?));
    }
    of_kernel(case, &PoweredExponential::new(alpha, 1.0).map_err(|error| error.to_string())?)
}

pub fn spectral_mixture(case: &Case) -> Found {
    let (weights, means) = (case.list("weights")?, case.matrix("means")?);
    let refused = |error: Error| error.to_string();
    let kernel = SpectralMixture::new(&weights, &means, &case.matrix("scales")?).map_err(refused)?;
    let (x, y) = case.points()?;
    if case.formula == "spectral_mixture.kernel" {
        // The weights of a case do not add up to 1.
        return number(kernel.log_value(&x, &y).map_err(refused)?.scaled(weights.iter().sum::<f64>().ln()));
    }
    // So many frequencies of each component, whose estimates are added with the weights.
    let (scales, counts) = (case.matrix("scales")?, case.list("counts")?);
    let mut variance = 0.0;
    for (q, count) in counts.iter().enumerate() {
        let row = s![q..q + 1, ..];
        let component =
            SpectralMixture::new(&[1.0], &means.slice(row), &scales.slice(row)).map_err(refused)?;
        variance += weights[q].powi(2) * component.ln_variance(&(&x - &y).to_vec()).exp() / count;
    }
    plain(variance)
}

/// Periodic kernels, alone and times a Gaussian kernel.
pub fn periodic(case: &Case) -> Found {
    let refused = |error: Error| error.to_string();
    if !matches!(case.formula.rsplit_once('.'), Some((_, "kernel" | "random" | "trig"))) {
        return Ok(None);
    }
    let periodic = SpectralMixture::periodic(vec![case.number("period")?], case.number("lengthscale")?);
    let mut kernel = periodic.map_err(refused)?;
    if case.formula.starts_with("locally") {
        let gaussian = Gaussian::new(case.number("gaussian_lengthscale")?).map_err(refused)?;
        kernel = SpectralMixture::product(&[&kernel, &gaussian]).map_err(refused)?;
    }
    let (x, y) = case.points()?;
    match case.formula.ends_with("kernel") {
        true => number(kernel.log_value(&x, &y).map_err(refused)?),
        false => ln(kernel.ln_variance(&(x - y).to_vec()) - (case.count("m")? as f64).ln()),
    }
}

/// The kernel, or the variance of trigonometric features on independent frequencies.
fn of_kernel(case: &Case, kernel: &dyn ShiftInvariant) -> Found {
    let (x, y) = case.points()?;
    match case.formula.split_once('.') {
        Some((_, "kernel")) => number(kernel.log_value(&x, &y).map_err(|error| error.to_string())?),
        Some((_, "variance.trig")) => {
            let law = Law::independent(case.count("m")?).with_radius(kernel.spectrum().law());
            known(theory::shift_invariant(kernel, &(x - y).to_vec(), &law))
        }
        _ => Ok(None),
    }
}
