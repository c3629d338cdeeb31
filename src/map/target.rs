//! [`Target`]: the kernel that a map on isotropic frequencies approximates.

use ndarray::ArrayRef1;

use crate::Real;
use crate::kernel::{Gaussian, Kernel, Lengthscale, Matern, RegularisedSoftmax, Softmax};
use crate::theory::{Pair, Radius};

/// The kernel that a map approximates, with its lengthscale.
///
/// Which kernels there are depends on the radii of the frequencies; among those of the same radii a target is only a
/// factor for each point.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Target {
    /// exp(x·y/ℓ²); radii χ.
    Softmax(Softmax),
    /// exp(−‖x−y‖²/(2ℓ²)); radii χ.
    Gaussian(Gaussian),
    /// The regularised softmax kernel; radii √d.
    RegularisedSoftmax(RegularisedSoftmax),
    /// A Matérn kernel; its spectral radii.
    Matern(Matern),
}

macro_rules! from {
    ($($kernel:ident),*) => {$(
        impl From<$kernel> for Target {
            fn from(kernel: $kernel) -> Self {
                Target::$kernel(kernel)
            }
        }
    )*};
}

from!(Softmax, Gaussian, RegularisedSoftmax, Matern);

impl Target {
    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        match self {
            Target::Softmax(kernel) => kernel.lengthscale(),
            Target::Gaussian(kernel) => kernel.lengthscale(),
            Target::RegularisedSoftmax(kernel) => kernel.lengthscale(),
            Target::Matern(kernel) => kernel.lengthscale(),
        }
    }

    /// The law of the radii that the kernel needs.
    pub fn radius(&self) -> Radius {
        match self {
            Target::Softmax(_) | Target::Gaussian(_) => Radius::Chi,
            Target::RegularisedSoftmax(_) => Radius::RootDim,
            Target::Matern(kernel) => Radius::Matern(kernel.smoothness()),
        }
    }

    /// The coefficient of ‖x/ℓ‖² by which logarithms of features differ from those for the softmax kernel.
    pub fn row(&self) -> f64 {
        match self {
            Target::Softmax(_) | Target::RegularisedSoftmax(_) => 0.0,
            Target::Gaussian(_) | Target::Matern(_) => -0.5,
        }
    }

    /// The scalars of two points divided by the lengthscale.
    pub(super) fn pair<T: Real>(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Pair {
        let scaled = |(k, v): (usize, &T)| v.widen() / self.lengthscale().at(k);
        Pair::new(x.iter().enumerate().map(scaled).zip(y.iter().enumerate().map(scaled)))
    }

    /// The factor of variances of positive features: 2x·y for softmax, −‖x−y‖² for the Gaussian kernel.
    ///
    /// From ‖x−y‖² where that is all that matters: sums of norms would cancel for points far from the origin.
    pub fn ln_squared_scale(&self, pair: &Pair) -> f64 {
        if self.row() == -0.5 { -pair.difference } else { 2.0 * pair.dot }
    }

    /// The factor of variances of trigonometric features: ‖x‖² + ‖y‖² for softmax, exactly 0 for the Gaussian kernel.
    pub fn ln_norm_scale(&self, pair: &Pair) -> f64 {
        if self.row() == -0.5 { 0.0 } else { pair.norms }
    }

    /// The kernel itself.
    pub fn kernel<T: Real>(&self) -> &dyn Kernel<T> {
        match self {
            Target::Softmax(kernel) => kernel,
            Target::Gaussian(kernel) => kernel,
            Target::RegularisedSoftmax(kernel) => kernel,
            Target::Matern(kernel) => kernel,
        }
    }
}
