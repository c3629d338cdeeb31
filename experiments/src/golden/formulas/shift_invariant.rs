//! Matérn and powered exponential kernels, variances of their features, and the stable numbers of radii.

use random_features::extend::ShiftInvariant;
use random_features::kernel::{Kernel, Matern, PoweredExponential, Smoothness};
use random_features::theory::{self, Law};
use random_features::workbench::ln_stable;

use super::case::{Case, Found, known, ln, number};

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
