//! [`Sign`]: sign features for the angular kernel.

use std::sync::Arc;

use ndarray::{ArrayRef1, ArrayView2};

use super::feature_map::check_pair;
use super::nonlinear::{fill_rows, fingerprint};
use super::{FeatureMap, Properties, Scratch, Side, Tile};
use crate::Real;
use crate::error::Result;
use crate::frequency::Frequencies;
use crate::kernel::{Activation, Angular, Kernel};
use crate::numeric::{Isa, pointwise};
use crate::projection::Projection;
use crate::theory;

/// Sign features, for the angular kernel 1 − 2θ/π.
///
/// # Definition
/// φⱼ(x) = m^{−1/2} sgn(ωⱼ·x), with sgn 0 = 1: m features of which only the direction of x matters. Values
/// are ±1, the log scale is −½ ln m. Unbiased if each ω has a uniform direction, whatever its radius and the
/// coupling. The features of the point 0 are all positive; the [kernel](Angular) counts it as orthogonal to
/// all points, so that it is unbiased between 0 and another point, but not between 0 and 0.
///
/// # Variance
/// (1 − K²)/m = 4t(1−t)/m with t = θ/π, for independent ω of any radii, an antithetic pair counting as one:
/// ω and −ω give the same estimate. Closed form: [`theory::nonlinear`]. None is known for orthogonal ω.
///
/// # Exact where
/// x = cy with c ≠ 0, for any draw.
///
/// # Cost
/// O(md) a point; a comparison for each feature.
///
/// # Example
/// ```
/// use ndarray::arr1;
/// use random_features::frequency::{Independent, draw};
/// use random_features::{FeatureMap, Sign};
/// let map = Sign::new(draw(2, 1024, &Independent, &mut random_features::rng(1))?);
/// let (x, y) = (arr1(&[1.0, 0.0]), arr1(&[20.0, 20.0]));
/// let estimate: f64 = map.estimate(&x, &y)?;
/// assert!((estimate - 0.5).abs() < 0.1);
/// assert_eq!(map.estimate(&x, &(-&x))?, -1.0);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, equations 19 and 42.
#[derive(Clone, Debug)]
pub struct Sign<T> {
    projection: Arc<Projection<T>>,
    width: [usize; 1],
    fingerprint: u64,
}

/// The name of the map, as stored copies carry it.
const NAME: &str = "sign";

impl<T: Real> Sign<T> {
    /// The map of these frequencies. Those beyond the range of `T` saturate.
    pub fn new(frequencies: Frequencies) -> Self {
        Sign {
            width: [frequencies.count()],
            fingerprint: fingerprint(&NAME, Some(&frequencies)),
            projection: Arc::new(Projection::unscaled(frequencies)),
        }
    }

    /// The linear part, with the frequencies.
    pub fn projection(&self) -> &Arc<Projection<T>> {
        &self.projection
    }
}

impl<T: Real> FeatureMap<T> for Sign<T> {
    fn input_dim(&self) -> usize {
        self.projection.input_dim()
    }

    fn blocks(&self) -> &[usize] {
        &self.width
    }

    fn properties(&self) -> Properties {
        Properties { symmetric: true, non_negative: false }
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        let isa = Isa::best();
        fill_rows(&self.projection, x, tile, scratch, |values, _| {
            pointwise::sign(isa, values);
            0.0
        });
    }

    fn writes_once(&self) -> bool {
        true
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        // Radii do not matter, but of frequencies without a stated law directions are not known either.
        let stated = self.projection.frequencies().law().is_stated();
        stated.then_some(&Angular as &dyn Kernel<T>)
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        check_pair(self.input_dim(), x, y)?;
        let widened = |v: &ArrayRef1<T>| v.iter().map(|v| v.widen()).collect::<Vec<f64>>();
        let law = self.projection.frequencies().law();
        Ok(theory::nonlinear(Activation::Sign, &widened(x), &widened(y), law))
    }
}

/// The stored form of the map: what it is made from, read back through the constructor.
#[cfg(feature = "serde")]
mod stored {
    use std::borrow::Cow;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Frequencies, NAME, Real, Sign};

    #[derive(Serialize, Deserialize)]
    struct Recipe<'a> {
        map: Cow<'a, str>,
        frequencies: Cow<'a, Frequencies>,
    }

    impl<T: Real> Serialize for Sign<T> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let frequencies = Cow::Borrowed(self.projection.frequencies());
            Recipe { map: Cow::Borrowed(NAME), frequencies }.serialize(serializer)
        }
    }

    impl<'de, T: Real> Deserialize<'de> for Sign<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let recipe = Recipe::deserialize(deserializer)?;
            if recipe.map != NAME {
                return Err(D::Error::custom(format!("a {} map, but must be {NAME}", recipe.map)));
            }
            Ok(Sign::new(recipe.frequencies.into_owned()))
        }
    }
}
