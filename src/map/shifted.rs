//! [`Shifted`]: positive features from counts.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::{ArrayRef1, ArrayView2};

use super::{CountMechanism, Counting, FeatureMap, Properties, Scratch, Side, Tile};
use crate::Real;
use crate::error::{Error, Result, check_size};
use crate::kernel::Kernel;

/// Poisson or geometric features of shifted points, all positive; unbiased but for points beyond the shift,
/// whose coordinates are clamped and [counted](Shifted::clamped).
///
/// # Definition
/// The Gaussian kernel is invariant under shifts: K(x, y) = K(x − c, y − c). Features of the
/// [`Poisson`](super::Poisson) or the [`Geometric`](super::Geometric) map at u = x/ℓ − c, where every
/// coordinate is at least ε > 0, are products of positive numbers. For softmax the factor e^{½‖x/ℓ‖²} is that
/// of the unshifted x. A coordinate of u below ε is set to ε: the features are then those of another point,
/// and estimates with it are biased for K(x, y).
///
/// c is in units of the lengthscale, as [`PairStatistics::shift`](crate::plan::PairStatistics::shift) of
/// [divided](crate::plan::Statistics::divided_by) statistics gives it. The rates or p must suit the shifted
/// points: choose them from [shifted](crate::plan::Statistics::shifted) statistics.
///
/// # Variance
/// That of the map at u: larger than without a shift as a rule, since ‖u‖ is. The price of signs that never
/// cancel.
///
/// # Exact where
/// As for the map, with u in place of x.
///
/// # Cost
/// As for the map.
///
/// # Example
/// ```
/// use ndarray::arr2;
/// use random_features::frequency::draw_poisson;
/// use random_features::plan::{PairStatistics, Statistics};
/// use random_features::{FeatureMap, Poisson, Shifted, Side};
/// let (queries, keys) = (arr2(&[[0.3, -0.2], [0.5, 0.1]]), arr2(&[[0.1, 0.4], [0.3, -0.4]]));
/// let (x, y) = (Statistics::of(&queries)?.divided_by(2.0)?, Statistics::of(&keys)?.divided_by(2.0)?);
/// let shift = PairStatistics::new(&x, &y)?.shift(1e-8)?;
/// let (x, y) = (x.shifted(&shift)?, y.shifted(&shift)?);
/// let rates = PairStatistics::new(&x, &y)?.poisson_per_dimension();
/// let omega = draw_poisson(2, 512, rates, &mut random_features::rng(1))?;
/// let map = Shifted::new(Poisson::gaussian::<f64>(omega, 2.0)?, shift, 1e-8)?;
/// assert!(map.gram(&queries, &keys)?.iter().all(|v| *v > 0.0));
/// assert_eq!(map.clamped(), 0);
/// map.features(Side::X, &arr2(&[[-9.0, 0.0]]))?;
/// assert_eq!(map.clamped(), 1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Likhosherstov et al., *Chefs' Random Tables*, appendix 9.10.2.
#[derive(Clone, Debug)]
pub struct Shifted<T, M> {
    map: Counting<T, M>,
    shift: Vec<f64>,
    epsilon: f64,
    clamped: Arc<AtomicU64>,
}

impl<T: Real, M: CountMechanism> Shifted<T, M> {
    /// The features of `map` at points shifted by c = `shift`, with coordinates of at least ε = `epsilon`,
    /// both in units of the lengthscale.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `shift` does not have d entries, [`Entry`](Error::Entry) with the first
    /// that has no finite square, [`Parameter`](Error::Parameter) if `epsilon` is not positive and finite.
    pub fn new(map: Counting<T, M>, shift: Vec<f64>, epsilon: f64) -> Result<Self> {
        check_size("the number of entries of the shift", map.input_dim(), shift.len())?;
        if let Some(row) = shift.iter().position(|c| !(c * c).is_finite()) {
            let (value, domain) = (shift[row], "a number with a finite square");
            return Err(Error::Entry { what: "the shift", row, value, domain });
        }
        if !(epsilon > 0.0 && epsilon.is_finite()) {
            return Err(Error::Parameter { name: "epsilon", value: epsilon, domain: "positive and finite" });
        }
        Ok(Shifted { map, shift, epsilon, clamped: Arc::default() })
    }

    /// The map of the shifted points.
    pub fn map(&self) -> &Counting<T, M> {
        &self.map
    }

    /// c.
    pub fn shift(&self) -> &[f64] {
        &self.shift
    }

    /// ε.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// How many coordinates were below ε after the shift, and so were clamped, since the map was made.
    ///
    /// Counted whenever features or exponents are computed: a point that is used twice counts twice. Rows
    /// that hold NaN or an infinity do not count. Clones share the count; threads may compute and read at the
    /// same time. It is not stored.
    pub fn clamped(&self) -> u64 {
        self.clamped.load(Ordering::Relaxed)
    }

    /// Coordinate `l` of the shifted point before it is clamped, if it must not be.
    fn inside(&self, l: usize, scaled: f64) -> Option<f64> {
        let (c, u) = (self.shift[l], scaled - self.shift[l]);
        // What c was made from comes back as ε to the rounding of both.
        let floor = self.epsilon - (c.abs() + self.epsilon) * f64::EPSILON;
        let outside = u < floor.max(f64::MIN_POSITIVE);
        (!outside).then_some(u)
    }

    fn at(&self, l: usize, scaled: f64) -> f64 {
        self.inside(l, scaled).unwrap_or(self.epsilon)
    }

    fn count_clamped(&self, x: ArrayView2<'_, T>) {
        let outside = |(l, v): (usize, &T)| self.inside(l, self.map.scaled(l, v)).is_none();
        let finite = x.rows().into_iter().filter(|x| x.iter().all(|v| v.is_finite()));
        let clamped: usize = finite.map(|x| x.iter().enumerate().filter(|v| outside(*v)).count()).sum();
        if clamped > 0 {
            self.clamped.fetch_add(clamped as u64, Ordering::Relaxed);
        }
    }
}

impl<T: Real, M: CountMechanism> FeatureMap<T> for Shifted<T, M> {
    fn input_dim(&self) -> usize {
        self.map.input_dim()
    }

    fn blocks(&self) -> &[usize] {
        self.map.blocks()
    }

    fn properties(&self) -> Properties {
        Properties { symmetric: true, non_negative: true }
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        self.count_clamped(x);
        self.map.features_at(x, tile, scratch, |l, v| self.at(l, v));
    }

    fn fill_exponents(
        &self,
        _: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> bool {
        self.count_clamped(x);
        self.map.exponents_at(x, tile, scratch, |l, v| self.at(l, v));
        true
    }

    fn writes_once(&self) -> bool {
        true
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        self.map.kernel()
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        ("shifted", self.map.fingerprint(), self.epsilon.to_bits()).hash(&mut hasher);
        self.shift.iter().for_each(|c| hasher.write_u64(c.to_bits()));
        hasher.finish().max(1)
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        self.map.log_variance_at(x, y, |l, v| self.at(l, v))
    }
}

/// The stored form of a map: what it is made from, read back through the constructor.
#[cfg(feature = "serde")]
mod stored {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{CountMechanism, Counting, Real, Shifted};

    #[derive(Serialize)]
    #[serde(bound = "Counting<T, M>: Serialize")]
    struct Parts<'a, T, M> {
        map: &'a Counting<T, M>,
        #[serde(with = "crate::exact")]
        shift: Vec<f64>,
        #[serde(with = "crate::exact")]
        epsilon: f64,
    }

    #[derive(Deserialize)]
    #[serde(bound = "Counting<T, M>: Deserialize<'de>")]
    struct Owned<T, M> {
        map: Counting<T, M>,
        #[serde(with = "crate::exact")]
        shift: Vec<f64>,
        #[serde(with = "crate::exact")]
        epsilon: f64,
    }

    impl<T: Real, M: CountMechanism + Serialize> Serialize for Shifted<T, M> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            Parts { map: &self.map, shift: self.shift.to_vec(), epsilon: self.epsilon }.serialize(serializer)
        }
    }

    impl<'de, T: Real, M: CountMechanism + Deserialize<'de>> Deserialize<'de> for Shifted<T, M> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let Owned { map, shift, epsilon } = Owned::deserialize(deserializer)?;
            Shifted::new(map, shift, epsilon).map_err(D::Error::custom)
        }
    }
}
