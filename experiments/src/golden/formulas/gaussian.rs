//! Exact kernels, and variances of maps on Gaussian frequencies.

use random_features::SignedLog;
use random_features::extend::{Radii, Radius};
use random_features::kernel::{Activation, Gaussian, Kernel, RegularisedSoftmax, Softmax, angle};
use random_features::theory::{self, Law, Pair, bounds, conformity};

use super::case::{Case, Found, known, ln, number, plain};

pub fn kernel(case: &Case) -> Found {
    let (x, y) = case.points()?;
    let kernel: Box<dyn Kernel<f64>> = match case.formula {
        "angle" => return plain(angle(x.iter().copied().zip(y.iter().copied()))),
        "kernel.softmax" => Box::new(Softmax::default()),
        "kernel.gaussian" => Box::new(Gaussian::new(case.number("lengthscale")?).map_err(|e| e.to_string())?),
        "kernel.smreg" => Box::new(RegularisedSoftmax::default()),
        other => match activation(other).and_then(Activation::kernel) {
            Some(kernel) => Box::new(kernel),
            None => return Ok(None),
        },
    };
    number(kernel.log_value(&x, &y).map_err(|e| e.to_string())?)
}

/// The function of a kernel of generalised attention.
fn activation(formula: &str) -> Option<Activation> {
    Some(match formula.strip_prefix("kernel.generalized.")? {
        "sgn" => Activation::Sign,
        "step" => Activation::Step,
        "identity" => Activation::Identity,
        "square" => Activation::Square,
        "exp" => Activation::Exp,
        "cos" => Activation::Cos,
        "sin" => Activation::Sin,
        "erf" => Activation::Erf,
        "relu" => Activation::Relu,
        "relu2" => Activation::ReluSquared,
        "abs" => Activation::Abs,
        _ => return None,
    })
}

/// Quantiles of radii χ.
pub fn quantile(case: &Case) -> Found {
    Radius::Chi.quantile(case.count("d")?, case.number("u")?).map_or(Ok(None), plain)
}

pub fn gaussian_map(case: &Case) -> Found {
    let pair = case.pair()?;
    let m = case.count("m")?;
    let pairs = SignedLog::from(-(m as f64 - 1.0) / m as f64);
    let times = |v: SignedLog| SignedLog { ln_abs: v.ln_abs + pairs.ln_abs, sign: v.sign * pairs.sign };
    let log_mse: fn(&Pair, &Law) -> Option<f64> = match case.formula {
        "performers.thm2_gap" => return ln(bounds::ln_orthogonality_gap(&pair, m)),
        "gap.prf" => {
            return number(
                times(conformity::conformity_excess(pair.dim, pair.sum, 0.0)).scaled(-pair.difference),
            );
        }
        "gap.rff" => {
            return number(times(conformity::trigonometric_excess(pair.dim, pair.difference, 0.0).into()));
        }
        "mse.smreg_positive.iid" | "mse.smreg_positive.ort" | "mse.smreg_positive.sim" => {
            return known(theory::regularised_positive(&pair, &case.law(&pair, Radius::RootDim)?));
        }
        name => match name.split('.').collect::<Vec<_>>()[..] {
            ["mse", map, "iid" | "ort" | "sim", "softmax" | "gaussian"]
            | ["mse", map, "ort" | "sim", "radii", "gaussian"]
            | ["mse", map, "ort", "radii", "whole", "gaussian"] => match map {
                "trig" => theory::trigonometric,
                "positive" => theory::positive,
                "hyperbolic" => theory::hyperbolic,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        },
    };
    let target = if case.formula.ends_with(".gaussian") { -pair.norms } else { 0.0 };
    known(log_mse(&pair, &case.law(&pair, Radius::Chi)?).map(|ln| ln + target))
}

pub fn conformity(case: &Case) -> Found {
    let d = case.count("d")?;
    let v2 = case.number("v_squared");
    match case.formula {
        "conformity.iid" => ln(v2?),
        "conformity.ort" => ln(conformity::ln_conformity(d, v2?, 0.0)),
        "conformity.sim" => ln(conformity::ln_conformity(d, v2?, -1.0 / (d as f64 - 1.0))),
        "conformity.angle" => ln(conformity::ln_conformity(d, v2?, case.number("cos")?)),
        "conformity.rff_ort" => {
            plain(conformity::trigonometric_conformity(d, case.number("z_squared")?, 0.0))
        }
        "rff.asymptotic_ratio" => {
            plain(bounds::asymptotic_trigonometric_ratio(d, case.number("z")?, case.count("m")?))
        }
        _ => Ok(None),
    }
}
