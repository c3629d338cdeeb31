//! [`Spectrum`]: the law of the frequencies that estimate a shift-invariant kernel.

use rand::Rng;
use rand_distr::{ChiSquared, Distribution};

use super::Smoothness;
use crate::error::{Error, Result};

/// The law of ω for which E cos(ω·δ) = k(δ): by Bochner's theorem every continuous shift-invariant kernel with k(0) = 1
/// has one.
#[derive(Clone, Copy, Debug)]
pub enum Spectrum<'a> {
    /// ω = r·u with a uniform direction u and a radius r that is independent of it: k is a function of ‖δ‖.
    Polar(&'a dyn Radii),
    /// The coordinates of ω are independent and have one law: k is a product over the coordinates of δ.
    Product(&'a dyn Marginal),
}

impl Spectrum<'_> {
    /// The law as data.
    pub fn law(&self) -> Radius {
        match self {
            Spectrum::Polar(radii) => radii.law(),
            Spectrum::Product(marginal) => marginal.law(),
        }
    }
}

/// The law of the radii ‖ω‖.
///
/// With directions that are uniform, the law of the radii is the spectral density of an isotropic kernel: a
/// [`Coupling`](crate::frequency::Coupling) chooses directions, `Radii` choose the kernel.
/// [`Chi`](crate::frequency::Chi) belongs to the Gaussian and the softmax kernel,
/// [`RootDim`](crate::frequency::RootDim) to the regularised softmax kernel, a [`Smoothness`] to a Matérn kernel, and
/// [`RationalQuadratic`](super::RationalQuadratic) to itself. For another isotropic kernel implement this trait.
///
/// # Example
/// ```
/// use rand::{Rng, RngExt};
/// use random_features::frequency::{Coupling, Orthogonal, Radii};
///
/// /// The kernel E cos(r u·(x−y)) with r uniform on [0, 1].
/// #[derive(Debug)]
/// struct Uniform;
///
/// impl Radii for Uniform {
///     fn draw(&self, _d: usize, count: usize, mut rng: &mut dyn Rng) -> random_features::Result<Vec<f64>> {
///         Ok((0..count).map(|_| rng.random::<f64>()).collect())
///     }
/// }
/// let omega = Orthogonal.with_radii(Uniform).draw(3, 6, 1)?;
/// assert!(omega.rows().rows().into_iter().all(|row| row.dot(&row) < 1.0));
/// # Ok::<(), random_features::Error>(())
/// ```
pub trait Radii: std::fmt::Debug + Send + Sync {
    /// Draws `count` radii in dimension `d` ≥ 1: finite, independent of each other.
    ///
    /// With padded couplings d is the padded dimension.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the law does not exist in this dimension.
    fn draw(&self, d: usize, count: usize, rng: &mut dyn Rng) -> Result<Vec<f64>>;

    /// What closed forms may know of the law; unless it is one of those that have a name, [`Other`](Radius::Other).
    fn law(&self) -> Radius {
        Radius::Other
    }
}

/// The law of one coordinate of ω, where coordinates are independent: symmetric about 0.
///
/// [`Cauchy`](super::Cauchy) belongs to the [`Laplace`](super::Laplace) kernel.
/// [`Product`](crate::frequency::Product) draws frequencies of such a law.
pub trait Marginal: std::fmt::Debug + Send + Sync {
    /// The quantile at `u` in (0, ½]: not positive, finite for u ≥ 2⁻⁶⁵.
    fn lower_quantile(&self, u: f64) -> f64;

    /// What closed forms may know of the law; unless it is one of those that have a name,
    /// [`OtherProduct`](Radius::OtherProduct).
    fn law(&self) -> Radius {
        Radius::OtherProduct
    }
}

/// Which spectral law frequencies have, as data: the law of the norm ‖ω‖ of uniform directions, or of coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Radius {
    /// χ with d degrees of freedom, independent of everything else: with a uniform direction, ω ~ N(0, I).
    Chi,
    /// √d, without randomness: estimates are of the regularised softmax kernel.
    RootDim,
    /// That of the multivariate t distribution: estimates are of the Matérn kernel of this smoothness.
    Matern(Smoothness),
    /// That of a Gaussian vector with a gamma-distributed variance: estimates are of the rational quadratic kernel.
    RationalQuadratic {
        /// α.
        #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
        alpha: f64,
    },
    /// Not of the norm but of the coordinates, which are independent and have the Cauchy distribution: estimates are
    /// of the Laplace kernel.
    Cauchy,
    /// Directions are uniform, and the law of the norm is another one than those named here.
    Other,
    /// Coordinates are independent, and their law is another one than those named here.
    OtherProduct,
    /// The law is not stated: frequencies of unknown origin.
    Unstated,
}

impl Radius {
    /// Whether radii of this law may be those of `other`: they are, or this law has no name here.
    pub fn may_be(self, other: Radius) -> bool {
        self == other || !self.is_named()
    }

    /// Whether this is a law that has a name.
    pub(crate) fn is_named(self) -> bool {
        !matches!(self, Radius::Other | Radius::OtherProduct | Radius::Unstated)
    }

    /// Whether directions are uniform, as far as is stated.
    pub(crate) fn is_polar(self) -> bool {
        !matches!(self, Radius::Cauchy | Radius::OtherProduct | Radius::Unstated)
    }
}

impl std::fmt::Display for Radius {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Radius::Chi => write!(f, "frequencies of radii χ"),
            Radius::RootDim => write!(f, "frequencies of radii √d"),
            Radius::Matern(smoothness) => write!(f, "frequencies for the kernel Matérn {smoothness}"),
            Radius::RationalQuadratic { alpha } => {
                write!(f, "frequencies for the kernel rational quadratic, α = {alpha}")
            }
            Radius::Cauchy => write!(f, "frequencies for the kernel Laplace"),
            Radius::Other => write!(f, "frequencies of radii whose law has no name"),
            Radius::OtherProduct => write!(f, "frequencies of coordinates whose law has no name"),
            Radius::Unstated => write!(f, "frequencies of radii whose law is not stated"),
        }
    }
}

/// Draws from χ with any number of degrees of freedom.
pub(super) fn chi(degrees: f64, count: usize, rng: &mut dyn Rng) -> Result<Vec<f64>> {
    let squared = ChiSquared::new(degrees).map_err(|_| Error::Parameter {
        name: "the dimension d",
        value: degrees,
        domain: "at least 1",
    })?;
    Ok((0..count).map(|_| squared.sample(rng).sqrt()).collect())
}
