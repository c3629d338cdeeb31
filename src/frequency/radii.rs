//! Radii ‖ω‖: which kernel the frequencies are for.

use ndarray::{Array2, s};
use rand::Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use crate::error::{Error, Result, check_size};
use crate::kernel::Smoothness;
use crate::theory::Radius;

/// The law of the radii ‖ω‖.
///
/// With directions that are uniform, the law of the radii is the spectral density of an isotropic kernel: a
/// [`Coupling`](super::Coupling) chooses directions, `Radii` choose the kernel. [`Chi`] belongs to the Gaussian and
/// the softmax kernel, [`RootDim`] to the regularised softmax kernel, a [`Smoothness`] to a Matérn kernel. For another
/// isotropic kernel implement this trait.
///
/// # Example
/// ```
/// use rand::{Rng, RngExt};
/// use random_features::frequency::{Orthogonal, Radii, draw_with};
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
/// let omega = draw_with(3, 6, &Orthogonal, &Uniform, &mut random_features::rng(1))?;
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

/// χ with d degrees of freedom: ω ~ N(0, I), for the Gaussian and the softmax kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Chi;

impl Radii for Chi {
    fn draw(&self, d: usize, count: usize, rng: &mut dyn Rng) -> Result<Vec<f64>> {
        chi(d as f64, count, rng)
    }

    fn law(&self) -> Radius {
        Radius::Chi
    }
}

/// √d without randomness, for the regularised softmax kernel.
///
/// With a padded coupling, √N for the padded dimension N, and the kernel is the regularised one of that dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RootDim;

impl Radii for RootDim {
    fn draw(&self, d: usize, count: usize, _: &mut dyn Rng) -> Result<Vec<f64>> {
        Ok(vec![(d as f64).sqrt(); count])
    }

    fn law(&self) -> Radius {
        Radius::RootDim
    }
}

/// The radii of a Matérn kernel of smoothness ν: χ_d (2ν/s)^½ with s ~ χ² of 2ν degrees of freedom, so that ω has a
/// multivariate t distribution. Rasmussen and Williams, *Gaussian Processes for Machine Learning*, section 4.2.
impl Radii for Smoothness {
    fn draw(&self, d: usize, count: usize, rng: &mut dyn Rng) -> Result<Vec<f64>> {
        let degrees = 2.0 * self.nu();
        let normal = chi(d as f64, count, rng)?;
        let scales = chi(degrees, count, rng)?;
        // A scale below 1e-100 has probability 1e-100; it stays finite.
        Ok(normal.iter().zip(scales).map(|(r, s)| r * degrees.sqrt() / s.max(1e-100)).collect())
    }

    fn law(&self) -> Radius {
        Radius::Matern(*self)
    }
}

/// Draws the radii of a block of a coupling whose blocks hold up to `capacity` rows.
pub(super) fn draw_radii(
    radii: &dyn Radii,
    d: usize,
    (size, capacity): (usize, usize),
    rng: &mut dyn Rng,
) -> Result<Vec<f64>> {
    if size == 0 || size > capacity {
        let (name, domain) = ("the number of rows of a block", "from 1 to the capacity of the coupling");
        return Err(Error::Parameter { name, value: size as f64, domain });
    }
    let lengths = radii.draw(d, size, rng)?;
    check_size("the number of radii that were drawn", size, lengths.len())?;
    Ok(lengths)
}

/// Draws from χ with any number of degrees of freedom.
fn chi(degrees: f64, count: usize, rng: &mut dyn Rng) -> Result<Vec<f64>> {
    let squared = ChiSquared::new(degrees).map_err(|_| Error::Parameter {
        name: "the dimension d",
        value: degrees,
        domain: "at least 1",
    })?;
    Ok((0..count).map(|_| squared.sample(rng).sqrt()).collect())
}

/// ωᵢ = rᵢ uᵢ: multiplies the first directions, one in each row, by their radii.
pub(super) fn assemble(radii: &[f64], directions: Array2<f64>) -> Array2<f64> {
    let mut directions = directions.slice_move(s![..radii.len(), ..]);
    for (mut row, radius) in directions.rows_mut().into_iter().zip(radii) {
        row *= *radius;
    }
    directions
}

/// Fills `v` with independent standard normal numbers and gives their norm, which is not 0.
pub(super) fn fill_normal(v: &mut [f64], rng: &mut dyn Rng) -> f64 {
    loop {
        v.fill_with(|| StandardNormal.sample(rng));
        let norm = v.iter().map(|v| v * v).sum::<f64>().sqrt();
        if norm > 0.0 {
            return norm;
        }
    }
}
