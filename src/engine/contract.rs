//! [`FeatureMap`]: the trait of user-defined feature maps.

use ndarray::{ArrayRef1, ArrayView2};

use super::Tile;
use crate::Real;
use crate::error::{Error, Result, check_positive};
use crate::kernel::Kernel;

/// The argument of the kernel that a point belongs to.
///
/// K(x, y) ≈ φ(x)·ψ(y): queries and test points on side [`X`](Side::X), keys and training points on side
/// [`Y`](Side::Y). For [symmetric](Facts::symmetric) maps φ = ψ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Side {
    /// The first argument of the kernel; its features are φ.
    X,
    /// The second argument of the kernel; its features are ψ.
    Y,
}

/// The meaning of the values of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Values are φ relative to the scales: φ = exp(scale) · value.
    Values,
    /// Values are ln |φ| relative to the scales, −∞ where φ = 0, with the signs of φ beside them.
    Logarithms,
}

/// The sizes and properties of a map, stated once.
///
/// ```
/// use random_features::extend::Facts;
/// let facts = Facts::new(3, vec![8]).symmetric();
/// assert_eq!(
///     (facts.dim, facts.feature_dim(), facts.non_negative),
///     (3, 8, false)
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// d, the dimension of points.
    pub dim: usize,
    /// The number of features in each block. Each block has a scale for each row; plain maps have one block.
    pub blocks: Vec<usize>,
    /// Whether φ = ψ: a point has equal features on both sides, so Gram matrices are positive semidefinite.
    pub symmetric: bool,
    /// Whether every feature is ≥ 0, and so every estimate.
    pub non_negative: bool,
    /// Whether the map can be asked for [`Logarithms`](Form::Logarithms).
    pub logarithms: bool,
}

impl Facts {
    /// The facts of a map from ℝᵈ with d = `dim` to these blocks of features, without further properties.
    pub fn new(dim: usize, blocks: Vec<usize>) -> Self {
        Facts { dim, blocks, symmetric: false, non_negative: false, logarithms: false }
    }

    /// States that the map is [symmetric](Facts::symmetric).
    #[must_use]
    pub fn symmetric(self) -> Self {
        Facts { symmetric: true, ..self }
    }

    /// States that features are never [negative](Facts::non_negative).
    #[must_use]
    pub fn non_negative(self) -> Self {
        Facts { non_negative: true, ..self }
    }

    /// States that the map offers [logarithms](Facts::logarithms).
    #[must_use]
    pub fn logarithms(self) -> Self {
        Facts { logarithms: true, ..self }
    }

    /// D, the number of real features; `usize::MAX` if there are more.
    pub fn feature_dim(&self) -> usize {
        self.blocks.iter().fold(0, |sum: usize, width| sum.saturating_add(*width))
    }

    /// Rejects impossible sizes.
    pub(crate) fn checked(self) -> Result<Self> {
        check_positive("the dimension d of a map", self.dim)?;
        check_positive("the number of blocks of a map", self.blocks.len())?;
        let most = isize::MAX as usize / size_of::<f64>() / 2;
        let total = self.blocks.iter().try_fold(0usize, |sum, width| sum.checked_add(*width));
        match total.filter(|total| (1..=most).contains(total)) {
            Some(_) => Ok(self),
            None => Err(Error::Parameter {
                name: "the number of features of a map",
                value: self.blocks.iter().map(|width| *width as f64).sum(),
                domain: "at least 1 and small enough to be addressed",
            }),
        }
    }
}

/// A random feature map of your own: K(x, y) ≈ φ(x)·ψ(y).
///
/// ```
/// use random_features::ndarray::{ArrayView2, arr1};
/// use random_features::extend::{Facts, FeatureMap, Form, Tile};
/// use random_features::map::Side;
/// use random_features::Map;
///
/// /// The features (1, x₁, …, x_d) of the kernel 1 + x·y.
/// #[derive(Debug)]
/// struct Affine(usize);
///
/// impl FeatureMap<f64> for Affine {
///     fn facts(&self) -> Facts {
///         Facts::new(self.0, vec![1 + self.0]).symmetric()
///     }
///
///     // The facts offer no logarithms, so that the form is always `Form::Values`.
///     fn fill(
///         &self,
///         _: Side,
///         x: ArrayView2<'_, f64>,
///         _: Form,
///         tile: &mut Tile<'_, f64>,
///     ) {
///         for (i, x) in x.rows().into_iter().enumerate() {
///             let row = tile.row(i);
///             let largest = x.iter().fold(1.0, |most: f64, v| most.max(v.abs()));
///             row.values[0] = 1.0 / largest;
///             for (value, x) in row.values[1..].iter_mut().zip(x) {
///                 *value = *x / largest;
///             }
///             row.log_scales[0] = largest.ln();
///         }
///     }
/// }
///
/// let map = Map::of_feature_map(Affine(2))?;
/// let estimate = map.estimate(&arr1(&[1.0, 2.0]), &arr1(&[3.0, -1.0]))?;
/// assert!((estimate - 2.0).abs() < 1e-14);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Implement [`facts`](FeatureMap::facts) and [`fill`](FeatureMap::fill); [`Map::of_feature_map`](crate::Map::of_feature_map) then provides
/// batches, Gram matrices, estimates, hybrids and everything in [`apply`](crate::apply). The maps of this crate do not
/// implement this trait; their constructors return a [`Map`](crate::Map) directly.
///
/// A map is immutable: a point always has the same features, alone or in a batch. [`Map::of_feature_map`](crate::Map::of_feature_map) tests
/// this and the facts on a few points and rejects maps that fail. The engine reads the facts once, passes tiles of the
/// right shape to `fill`, and reads a tile after `fill` has returned.
pub trait FeatureMap<T: Real>: std::fmt::Debug + Send + Sync {
    /// The sizes and properties of the map, read once, when a [`Map`](crate::Map) is created.
    fn facts(&self) -> Facts;

    /// Writes the features of the rows of `x` to a tile of as many rows.
    ///
    /// `x` has d columns; rows of the tile have D values and a logarithmic scale for each block, with arbitrary initial
    /// contents. Values must be at most 1 in magnitude: divide a row by its largest value, whose logarithm goes into the scale.
    /// A block whose scale is −∞ is absent from its row: its values are never read. `form` is
    /// [`Logarithms`](Form::Logarithms) only if the [facts](Facts::logarithms) offer it; signs are then initially 1. A
    /// map whose facts offer logarithms must check the form.
    fn fill(&self, side: Side, x: ArrayView2<'_, T>, form: Form, tile: &mut Tile<'_, T>);

    /// The exact kernel that is estimated, if it has a closed form.
    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        None
    }

    /// ln of the variance of an estimate over draws of the map, or `None` where no closed form is known. The points have
    /// d entries each.
    fn log_variance(&self, _x: &ArrayRef1<T>, _y: &ArrayRef1<T>) -> Option<f64> {
        None
    }

    /// Writes to each row of `out`, n × d, the gradient of Σ_f c\[i, f\] φ_f(xᵢ) e^{−sᵢ} with respect to xᵢ, with the scales s of
    /// [`fill`](FeatureMap::fill) held fixed. Returns `false`, with `out` untouched, if the map has no gradients; the answer must
    /// not depend on the points.
    fn pull_back(
        &self,
        _side: Side,
        _x: ArrayView2<'_, T>,
        _cotangents: ArrayView2<'_, T>,
        _out: ndarray::ArrayViewMut2<'_, T>,
    ) -> bool {
        false
    }
}
