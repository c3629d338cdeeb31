//! The softmax kernel's lengthscale that a map estimates.

use crate::Real;
use crate::kernel::Lengthscale;
use crate::map::{AnyKernel, Map, Recipe};

/// ℓ of a map of the softmax kernel, if it is the same for all coordinates.
pub(in super::super) fn kernel_lengthscale<T: Real>(map: &Map<T>) -> Option<f64> {
    let exponential = map.kernel()?.exponential().filter(|exponential| exponential.row == 0.0)?;
    exponential.lengthscale.isotropic()
}

/// ℓ of a map that estimates the softmax kernel, truncated or not, if it is the same for all coordinates.
pub(in super::super) fn estimated_lengthscale<T: Real>(map: &Map<T>) -> Option<f64> {
    let intended = || softmax_lengthscale(&map.recipe()?)?.isotropic();
    kernel_lengthscale(map).or_else(intended)
}

/// The lengthscale of the softmax kernel that a map estimates, or would without truncation.
pub(in super::super) fn softmax_lengthscale(recipe: &Recipe) -> Option<Lengthscale> {
    match recipe {
        Recipe::Plain(plain) if plain.matrix.is_none() => match &plain.kernel {
            AnyKernel::Softmax(softmax) => Some(softmax.lengthscale().clone()),
            _ => None,
        },
        // The last part of a composite map is a base.
        composite => softmax_lengthscale(composite.children().last()?),
    }
}
