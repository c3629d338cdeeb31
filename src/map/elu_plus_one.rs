//! [`EluPlusOne`]: the map of the linear transformer.

use ndarray::{ArrayRef1, ArrayView2};

use super::feature_map::check_pair;
use super::nonlinear::fingerprint;
use super::{FeatureMap, Properties, Scratch, Side, Tile};
use crate::Real;
use crate::error::{Result, check_positive};
use crate::kernel::Lengthscale;
use crate::numeric::{self, Isa};

/// The map elu(u) + 1 of the linear transformer: positive features without projection or randomness.
///
/// # Definition
/// φₖ(x) = elu(xₖ/ℓₖ) + 1 = e^{min(u, 0)} + max(u, 0) with u = xₖ/ℓₖ: d features, 1 + u above 0 and eᵘ below.
/// It approximates no kernel but its own φ(x)·φ(y), so [`kernel`](FeatureMap::kernel) is `None`.
///
/// Rows are divided by their largest feature; one that is smaller by more than the range of `T` becomes 0.
/// Exponents ln φ are there at any norm.
///
/// # Variance
/// 0, whose logarithm is −∞: nothing is random.
///
/// # Exact where
/// Everywhere, by definition.
///
/// # Cost
/// O(d) a point; an exponential for each coordinate.
///
/// # Example
/// ```
/// use ndarray::arr1;
/// use random_features::{EluPlusOne, FeatureMap};
/// let map = EluPlusOne::new(2, 1.0)?;
/// let estimate = map.estimate(&arr1(&[1.0, -3.0]), &arr1(&[0.5, 0.0]))?;
/// assert!((estimate - (3.0f64 + (-3.0f64).exp())).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Katharopoulos et al., *Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention*,
/// equation 7.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "stored::Recipe", into = "stored::Recipe")
)]
pub struct EluPlusOne {
    dim: [usize; 1],
    lengthscale: Lengthscale,
    /// 1/ℓ, if it is the same for all coordinates.
    inverse: f64,
    /// 1/ℓₖ for each coordinate, else empty.
    inverses: Vec<f64>,
}

/// The name of the map, as stored copies carry it.
const NAME: &str = "elu+1";

impl EluPlusOne {
    /// The map for points in ℝᵈ with lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if d is 0 or an ℓ is outside its domain,
    /// [`Shape`](crate::Error::Shape) if there is one for each of another number of dimensions.
    pub fn new(dim: usize, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        check_positive("the dimension d", dim)?;
        let lengthscale = lengthscale.into().checked()?;
        lengthscale.check_dim(dim)?;
        let (inverse, inverses) = match &lengthscale {
            Lengthscale::Isotropic(scale) => (scale.recip(), Vec::new()),
            Lengthscale::PerDimension(scales) => (1.0, scales.iter().map(|s| s.recip()).collect()),
        };
        Ok(EluPlusOne { dim: [dim], lengthscale, inverse, inverses })
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    /// x/ℓ.
    fn scaled<'a, T: Real>(&'a self, x: &'a [T]) -> impl Iterator<Item = f64> + 'a {
        let inverse = |k: usize| self.inverses.get(k).copied().unwrap_or(self.inverse);
        x.iter().enumerate().map(move |(k, v)| inverse(k) * v.widen())
    }

    /// Lets `write(x, values)` fill each row from its point and return the log scale. Rows without a finite
    /// norm become NaN.
    fn fill_with<T: Real>(
        &self,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
        write: impl Fn(&[T], &mut [T]) -> f64,
    ) {
        let x = scratch.contiguous(&x);
        for (i, x) in x.chunks_exact(self.dim[0]).enumerate() {
            let (values, scales) = tile.row(i);
            let norm = numeric::squared_norm(Isa::best(), x, self.inverse, &self.inverses);
            scales[0] = if norm.is_finite() {
                write(x, values)
            } else {
                values.fill(T::nan());
                f64::NAN
            };
        }
    }
}

impl<T: Real> FeatureMap<T> for EluPlusOne {
    fn input_dim(&self) -> usize {
        self.dim[0]
    }

    fn blocks(&self) -> &[usize] {
        &self.dim
    }

    fn properties(&self) -> Properties {
        Properties { symmetric: true, non_negative: true }
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        self.fill_with(x, tile, scratch, |x, values| {
            let largest = self.scaled(x).fold(f64::NEG_INFINITY, f64::max);
            // Where all are negative, the exponentials' common factor; else a divisor.
            let shift = T::saturated(largest.min(0.0));
            let divisor = 1.0 + largest.max(0.0);
            values.iter_mut().zip(self.scaled(x)).for_each(|(v, u)| *v = T::saturated(u.min(0.0)));
            numeric::exp_minus(Isa::best(), values, shift);
            for (v, u) in values.iter_mut().zip(self.scaled(x)) {
                *v = T::narrow((v.widen() + u.max(0.0)) / divisor);
            }
            shift.widen() + divisor.ln()
        });
    }

    fn fill_exponents(
        &self,
        _: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> bool {
        let exponent = |u: f64| if u > 0.0 { u.ln_1p() } else { u };
        self.fill_with(x, tile, scratch, |x, values| {
            values.iter_mut().zip(self.scaled(x)).for_each(|(v, u)| *v = T::saturated(exponent(u)));
            0.0
        });
        true
    }

    fn writes_once(&self) -> bool {
        true
    }

    fn fingerprint(&self) -> u64 {
        fingerprint(&(NAME, self.dim, &self.lengthscale), None)
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        check_pair(self.dim[0], x, y)?;
        Ok(Some(f64::NEG_INFINITY))
    }
}

/// The stored form of the map: what it is made from, read back through the constructor.
#[cfg(feature = "serde")]
mod stored {
    use serde::{Deserialize, Serialize};

    use super::{EluPlusOne, Lengthscale, NAME};

    #[derive(Serialize, Deserialize)]
    pub(super) struct Recipe {
        map: String,
        dim: usize,
        lengthscale: Lengthscale,
    }

    impl From<EluPlusOne> for Recipe {
        fn from(map: EluPlusOne) -> Self {
            Recipe { map: NAME.into(), dim: map.dim[0], lengthscale: map.lengthscale }
        }
    }

    impl TryFrom<Recipe> for EluPlusOne {
        type Error = String;

        fn try_from(recipe: Recipe) -> Result<Self, String> {
            if recipe.map != NAME {
                return Err(format!("a {} map, but must be {NAME}", recipe.map));
            }
            EluPlusOne::new(recipe.dim, recipe.lengthscale).map_err(|e| e.to_string())
        }
    }
}
