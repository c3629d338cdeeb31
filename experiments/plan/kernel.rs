//! The kernels that can be asked for, and their lengthscales.

use ndarray::{Array2, Axis, concatenate};
use random_features::Result;
use random_features::data::lengthscale;
use random_features::kernel::{
    Gaussian, Laplace, Matern, PoweredExponential, RationalQuadratic, RegularisedSoftmax, Smoothness, Softmax,
};
use random_features::map::AnyKernel;

use crate::data::{Data, Points};

/// Points of which the median distance is taken.
const SUBSAMPLE: usize = 2000;

pub fn default_for(data: &Data) -> &'static str {
    if data.points.keys.is_some() { "softmax" } else { "gaussian" }
}

/// Whether the kernel of this name is one of differences x − y.
pub fn is_shift_invariant(name: &str) -> Result<bool, String> {
    of(name, 1.0)
        .map(|_| !name.contains("softmax"))
        .ok_or_else(|| format!("--kernel {name} is not known: --help lists the names"))
}

/// The kernel of this name with a lengthscale, and where that comes from.
pub fn named(
    name: &str,
    ell: Option<f64>,
    points: &Points,
    seed: u64,
) -> Result<(AnyKernel, String), String> {
    let (ell, origin) = match ell {
        Some(ell) => (ell, "as asked for"),
        None if is_shift_invariant(name)? => (median(points, seed)?, "the median distance"),
        None => (1.0, "unless another is asked for"),
    };
    let target = of(name, ell).unwrap_or_else(|| Ok(Softmax::default().into()));
    Ok((target.map_err(|error| error.to_string())?, format!("lengthscale {ell:.4}, {origin}")))
}

/// `None` for an unknown name.
fn of(name: &str, ell: f64) -> Option<Result<AnyKernel>> {
    let matern = |smoothness| Matern::new(smoothness, ell).map(AnyKernel::from);
    Some(match name {
        "softmax" => Softmax::new(ell).map(AnyKernel::from),
        "gaussian" => Gaussian::new(ell).map(AnyKernel::from),
        "regularised-softmax" => RegularisedSoftmax::new(ell).map(AnyKernel::from),
        "matern-1/2" => matern(Smoothness::Half),
        "matern-3/2" => matern(Smoothness::ThreeHalves),
        "matern-5/2" => matern(Smoothness::FiveHalves),
        "laplace" => Laplace::new(ell).map(AnyKernel::from),
        "powered-exponential" => PoweredExponential::new(1.5, ell).map(AnyKernel::from),
        "rational-quadratic" => RationalQuadratic::new(1.0, ell).map(AnyKernel::from),
        _ => return None,
    })
}

fn median(points: &Points, seed: u64) -> Result<f64, String> {
    let all = |keys: &Array2<f64>| concatenate(Axis(0), &[points.x.view(), keys.view()]);
    let all = points.keys.as_ref().map_or_else(|| Ok(points.x.clone()), all).map_err(|e| e.to_string())?;
    lengthscale::median(&all, SUBSAMPLE, seed).map_err(|error| error.to_string())
}
