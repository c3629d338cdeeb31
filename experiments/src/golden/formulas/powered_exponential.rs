//! The powered exponential kernel, the variance of its features, and the stable numbers of its radii.

use random_features::kernel::{Kernel, PoweredExponential};
use random_features::theory::{self, Law};
use random_features::workbench::ln_stable;

use super::case::{Case, Found, known, ln, number};

pub fn powered_exponential(case: &Case) -> Found {
    let alpha = case.number("alpha")?;
    if case.formula == "powered_exponential.tau" {
        return ln(ln_stable(0.5 * alpha, case.number("u")?, case.number("e")?));
    }
    let kernel = PoweredExponential::new(alpha, 1.0).map_err(|error| error.to_string())?;
    let (x, y) = case.points()?;
    match case.formula {
        "powered_exponential.kernel" => number(kernel.log_value(&x, &y).map_err(|error| error.to_string())?),
        "powered_exponential.variance.trig" => {
            let law = Law::independent(case.count("m")?).with_radius(kernel.spectrum().law());
            known(theory::shift_invariant(&kernel, &(x - y).to_vec(), &law))
        }
        _ => Ok(None),
    }
}
