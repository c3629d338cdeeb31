//! [`Target`]: the kernel that a map on isotropic frequencies approximates.

use crate::Real;
use crate::error::Result;
use crate::kernel::{
    Gaussian, Kernel, Laplace, Lengthscale, Matern, OwnKernel, RationalQuadratic, RegularisedSoftmax,
    ShiftInvariant, Softmax,
};
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
    /// The rational quadratic kernel; its spectral radii.
    RationalQuadratic(RationalQuadratic),
    /// exp(−‖x−y‖₁/ℓ); coordinates with the Cauchy distribution.
    Laplace(Laplace),
    /// No kernel with a name: what the frequencies and the map imply, of points divided by this lengthscale.
    Implied(Lengthscale),
    // The last one: formats that number variants do not count what is skipped.
    /// A shift-invariant kernel of your own, whose spectral law the frequencies have. A map for it cannot be stored.
    #[cfg_attr(feature = "serde", serde(skip))]
    Own(OwnKernel),
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

from!(Softmax, Gaussian, RegularisedSoftmax, Matern, RationalQuadratic, Laplace);

impl From<f64> for Target {
    fn from(lengthscale: f64) -> Self {
        Target::Implied(lengthscale.into())
    }
}

impl From<Vec<f64>> for Target {
    fn from(lengthscales: Vec<f64>) -> Self {
        Target::Implied(lengthscales.into())
    }
}

impl From<Lengthscale> for Target {
    fn from(lengthscale: Lengthscale) -> Self {
        Target::Implied(lengthscale)
    }
}

impl Target {
    /// A shift-invariant kernel of your own: a map on frequencies of its spectral law estimates it.
    pub fn own(kernel: impl ShiftInvariant + 'static) -> Self {
        Target::Own(OwnKernel::new(kernel))
    }

    /// The kernel, if it is one of those that state their spectrum.
    pub fn shift_invariant(&self) -> Option<&dyn ShiftInvariant> {
        Some(match self {
            Target::Gaussian(kernel) => kernel,
            Target::Matern(kernel) => kernel,
            Target::RationalQuadratic(kernel) => kernel,
            Target::Laplace(kernel) => kernel,
            Target::Own(kernel) => kernel,
            Target::Softmax(_) | Target::RegularisedSoftmax(_) | Target::Implied(_) => return None,
        })
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        match self {
            Target::Softmax(kernel) => kernel.lengthscale(),
            Target::RegularisedSoftmax(kernel) => kernel.lengthscale(),
            Target::Implied(lengthscale) => lengthscale,
            Target::Gaussian(kernel) => kernel.lengthscale(),
            Target::Matern(kernel) => kernel.lengthscale(),
            Target::RationalQuadratic(kernel) => kernel.lengthscale(),
            Target::Laplace(kernel) => kernel.lengthscale(),
            Target::Own(kernel) => kernel.lengthscale(),
        }
    }

    /// The law that the kernel needs of the frequencies; `None` where any will do.
    pub fn radius(&self) -> Option<Radius> {
        match self {
            Target::Softmax(_) => Some(Radius::Chi),
            Target::RegularisedSoftmax(_) => Some(Radius::RootDim),
            _ => self.shift_invariant().map(|kernel| kernel.spectrum().law()),
        }
    }

    /// Refuses lengthscales outside their domain or for another dimension than `d`.
    pub(crate) fn check(&self, d: usize) -> Result<()> {
        let lengthscale = self.lengthscale().clone().checked()?;
        lengthscale.check_dim(d)
    }

    /// The padded dimension that a regularised kernel is for, with frequencies in ℝᵈ.
    pub(crate) fn padded_dim(&self, d: usize) -> Option<usize> {
        match self {
            Target::RegularisedSoftmax(kernel) => Some(kernel.dim().unwrap_or(d)),
            _ => None,
        }
    }

    /// Whether the kernel is a function of x − y.
    pub fn is_shift_invariant(&self) -> bool {
        !matches!(self, Target::Softmax(_) | Target::RegularisedSoftmax(_))
    }

    /// The coefficient of ‖x/ℓ‖² by which logarithms of features differ from those for the softmax kernel.
    pub fn row(&self) -> f64 {
        if self.is_shift_invariant() { -0.5 } else { 0.0 }
    }

    /// The factor of variances of positive features: 2x·y for softmax, −‖x−y‖² for the Gaussian kernel.
    ///
    /// From ‖x−y‖² where that is all that matters: sums of norms would cancel for points far from the origin.
    pub fn ln_squared_scale(&self, pair: &Pair) -> f64 {
        if self.is_shift_invariant() { -pair.difference } else { 2.0 * pair.dot }
    }

    /// The factor of variances of trigonometric features: ‖x‖² + ‖y‖² for softmax, exactly 0 for the Gaussian kernel.
    pub fn ln_norm_scale(&self, pair: &Pair) -> f64 {
        if self.is_shift_invariant() { 0.0 } else { pair.norms }
    }

    /// The kernel itself; `None` if it has no name.
    pub fn kernel<T: Real>(&self) -> Option<Box<dyn Kernel<T>>> {
        Some(match self {
            Target::Softmax(kernel) => Box::new(kernel.clone()),
            Target::Gaussian(kernel) => Box::new(kernel.clone()),
            Target::RegularisedSoftmax(kernel) => Box::new(kernel.clone()),
            Target::Matern(kernel) => Box::new(kernel.clone()),
            Target::RationalQuadratic(kernel) => Box::new(kernel.clone()),
            Target::Laplace(kernel) => Box::new(kernel.clone()),
            Target::Own(kernel) => Box::new(kernel.clone()),
            Target::Implied(_) => return None,
        })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Softmax(_) => write!(f, "softmax")?,
            Target::RegularisedSoftmax(kernel) => {
                write!(f, "regularised softmax")?;
                if let Some(dim) = kernel.dim() {
                    write!(f, " in dimension {dim}")?;
                }
            }
            Target::Implied(_) => write!(f, "a lengthscale without a kernel")?,
            _ => self.shift_invariant().map_or(Ok(()), |kernel| f.write_str(&kernel.name()))?,
        }
        match (self, self.lengthscale()) {
            (Target::Implied(_), Lengthscale::Isotropic(scale)) => write!(f, ": {scale}"),
            (Target::Implied(_), Lengthscale::PerDimension(scales)) => write!(f, ": {scales:?}"),
            (_, Lengthscale::Isotropic(scale)) => write!(f, ", lengthscale {scale}"),
            (_, Lengthscale::PerDimension(scales)) => write!(f, ", lengthscales {scales:?}"),
        }
    }
}
