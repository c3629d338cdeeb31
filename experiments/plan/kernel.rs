//! The kernel that is asked for, and its lengthscale.

use ndarray::{Array2, Axis, concatenate};
use random_features::data::lengthscale;
use random_features::kernel::{Gaussian, Lengthscale, Softmax};
use random_features::map::AnyKernel;

use crate::data::{Data, Points};

/// Points of which the median distance is taken.
const SUBSAMPLE: usize = 2000;

pub fn default_for(data: &Data) -> AnyKernel {
    if data.points.keys.is_some() { Softmax::default().into() } else { Gaussian::default().into() }
}

/// The kernel with a lengthscale, and where that comes from.
pub fn scaled(
    kernel: AnyKernel,
    ell: Option<f64>,
    points: &Points,
    seed: u64,
) -> Result<(AnyKernel, String), String> {
    let stated = *kernel.lengthscale() != Lengthscale::default();
    let (ell, origin) = match ell {
        Some(_) if stated => return Err("the kernel states a lengthscale, and --lengthscale another".into()),
        None if stated => return Ok((kernel, "lengthscale as asked for".into())),
        Some(ell) => (ell, "as asked for"),
        None if kernel.is_shift_invariant() => (median(points, seed)?, "the median distance"),
        None => (1.0, "unless another is asked for"),
    };
    let kernel = kernel.with_lengthscale(ell).map_err(|error| error.to_string())?;
    Ok((kernel, format!("lengthscale {ell:.4}, {origin}")))
}

fn median(points: &Points, seed: u64) -> Result<f64, String> {
    let all = |keys: &Array2<f64>| concatenate(Axis(0), &[points.x.view(), keys.view()]);
    let all = points.keys.as_ref().map_or_else(|| Ok(points.x.clone()), all).map_err(|e| e.to_string())?;
    lengthscale::median_of_subsample(&all, SUBSAMPLE, seed).map_err(|error| error.to_string())
}
