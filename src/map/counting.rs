//! [`Counting`]: the normal form of the maps whose frequencies are counts.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ndarray::{ArrayRef1, ArrayView1, ArrayView2};

use super::feature_map::check_pair;
use super::{FeatureMap, Properties, Scratch, Side, Target, Tile};
use crate::Real;
use crate::error::{Error, Result};
use crate::frequency::{CountLaw, Counts, Frequencies};
use crate::kernel::Kernel;
use crate::numeric::{self, Isa};
use crate::projection::Projection;
use crate::theory::Radius;

/// What tells one map of counts from another: the terms of the normal form, as plain data.
pub trait CountMechanism: std::fmt::Debug + Clone + PartialEq + Send + Sync + 'static {
    /// The name of the map, as stored copies carry it.
    const NAME: &'static str;

    /// Refuses parameters outside their domain, or for another dimension than `d`.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) and [`Shape`](crate::Error::Shape).
    fn check(&self, d: usize) -> Result<()>;

    /// What each of `d` coordinates is divided by, after the lengthscale, before its logarithm is taken.
    fn divisors(&self, d: usize) -> Vec<f64>;

    /// The term of the exponent that depends on the frequency alone.
    fn bias(&self, omega: ArrayView1<'_, u64>) -> f64;

    /// The constant term of every exponent, in dimension `d`.
    fn constant(&self, d: usize) -> f64;

    /// Whether estimates are unbiased for counts of this law in dimension `d`, with the variance of
    /// [`log_variance`](CountMechanism::log_variance).
    fn fits(&self, law: &CountLaw, d: usize) -> bool;

    /// ln of the variance for the Gaussian kernel with ℓ = 1 and m independent frequencies.
    fn log_variance(&self, x: &[f64], y: &[f64], m: usize) -> f64;
}

/// A map φⱼ(x) = m^{−1/2} Πₗ (uₗ/rₗ)^{ωⱼₗ} exp(bⱼ + a + c(x)) with u = x/ℓ and counts ωⱼ.
///
/// Does the work of every named map `M`, which supplies the divisors r, the biases b and the constant a; c is
/// −½‖u‖² for the Gaussian kernel and 0 for softmax, and 0⁰ = 1. Logarithms of magnitudes go through a
/// [`Projection`], signs are parities of bit masks. Features of any magnitude, zeros and counts of 1e9
/// included, neither overflow nor turn NaN. Immutable, cheap to clone. Made by the constructors of
/// [`Poisson`](super::Poisson) and [`Geometric`](super::Geometric); with the feature `serde` it can be stored
/// and read back to the bit.
///
/// Logarithms of features are accurate to ε (d + 4) Σₗ ωⱼₗ |ln |uₗ/rₗ|| with the ε of `T`, and to the ε of
/// `f64` relative to ‖u‖² and bⱼ: counts that are large for the point at hand, as for rates that do not suit
/// it, cost digits.
///
/// Cost O(m d) a point, with d logarithms and m exponentials. Memory for each of m d counts: 16 bytes and one
/// element of `T`.
#[derive(Clone, Debug)]
pub struct Counting<T, M> {
    mechanism: M,
    target: Target,
    prepared: Arc<Prepared<T>>,
    /// m, the one block.
    width: [usize; 1],
    /// a − ½ ln m.
    constant: f64,
    /// By what part of ‖x/ℓ‖² the log scale exceeds that of the Gaussian kernel.
    excess: f64,
    fingerprint: u64,
}

/// What is made of the counts once.
#[derive(Debug)]
struct Prepared<T> {
    counts: Counts,
    projection: Projection<T>,
    biases: Vec<f64>,
    /// What coordinates are divided by after the lengthscale.
    divisors: Vec<f64>,
    /// Where the counts of each frequency are odd, as [sets of coordinates](numeric::negate_odd).
    odd: Vec<u64>,
    /// Where they are not 0.
    positive: Vec<u64>,
}

impl<T: Real, M: CountMechanism> Counting<T, M> {
    /// The map of these counts for a target kernel, whatever their law.
    ///
    /// # Errors
    /// Those of [`CountMechanism::check`], [`Target`](Error::Target) if the kernel is neither softmax nor
    /// Gaussian, and [`Shape`](Error::Shape) if the kernel has lengthscales for another dimension.
    pub fn new(mechanism: M, counts: Counts, target: impl Into<Target>) -> Result<Self> {
        let (target, d) = (target.into(), counts.dim());
        mechanism.check(d)?;
        if target.radius() != Radius::Chi {
            let (law, target) = (counts.law().name().into(), format!("{target:?}"));
            return Err(Error::Target { map: M::NAME, law, target });
        }
        target.lengthscale().check_dim(d)?;
        let frequencies = Frequencies::from_rows(counts.rows().mapv(|count| count as f64))?;
        Ok(Counting {
            width: [counts.count()],
            constant: mechanism.constant(d) - 0.5 * (counts.count() as f64).ln(),
            excess: 0.5 + target.row(),
            fingerprint: fingerprint(&mechanism, &target, &counts),
            prepared: Arc::new(Prepared {
                projection: Projection::unscaled(frequencies),
                biases: counts.rows().rows().into_iter().map(|omega| mechanism.bias(omega)).collect(),
                divisors: mechanism.divisors(d),
                odd: sets(counts.rows(), |count| count % 2 == 1),
                positive: sets(counts.rows(), |count| count > 0),
                counts,
            }),
            mechanism,
            target,
        })
    }

    /// The definition of this map.
    pub fn mechanism(&self) -> &M {
        &self.mechanism
    }

    /// The kernel that the map approximates.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The frequencies.
    pub fn counts(&self) -> &Counts {
        &self.prepared.counts
    }

    /// Writes ln |φ| relative to the scales for the points whose coordinates are `at(l, xₗ/ℓₗ)`, and lets
    /// `finish` have each row with its signs.
    pub(super) fn fill_at(
        &self,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
        at: impl Fn(usize, f64) -> f64,
        finish: impl Fn(&mut Tile<'_, T>, usize, Signs<'_>),
    ) {
        let mut logarithms = scratch.take(x.len());
        for (x, logarithms) in x.rows().into_iter().zip(logarithms.chunks_exact_mut(x.ncols())) {
            for (l, (v, logarithm)) in x.iter().zip(logarithms).enumerate() {
                *logarithm = self.logarithm(l, at(l, self.scaled(l, v)));
            }
        }
        if let Ok(logarithms) = ArrayView2::from_shape(x.dim(), &logarithms) {
            self.prepared.projection.project(logarithms, tile, scratch);
        }
        scratch.give(logarithms);
        for (i, x) in x.rows().into_iter().enumerate() {
            let point = Point::new(
                &mut scratch.masks,
                x.iter().enumerate().map(|(l, v)| {
                    let scaled = self.scaled(l, v);
                    (scaled, at(l, scaled))
                }),
            );
            let (values, scales) = tile.row(i);
            if !point.squared_norms.iter().all(|norm| norm.is_finite()) {
                values.fill(T::nan());
                scales[0] = f64::NAN;
                continue;
            }
            let [scaled, squared_norm] = point.squared_norms;
            let row = self.excess * scaled - 0.5 * squared_norm;
            scales[0] = self.settle(values, &point) + row + self.constant;
            finish(tile, i, Signs { odd: &self.prepared.odd, negative: point.negative });
        }
    }

    /// xₗ/ℓₗ.
    pub(super) fn scaled(&self, l: usize, v: &T) -> f64 {
        v.widen() / self.target.lengthscale().at(l)
    }

    /// ln |uₗ/rₗ|, or 0 where that is −∞ and features with a count there are 0.
    fn logarithm(&self, l: usize, u: f64) -> T {
        let (magnitude, divisor) = (u.abs(), self.prepared.divisors[l]);
        let ratio = magnitude / divisor;
        T::narrow(if magnitude == 0.0 {
            0.0
        } else if ratio.is_normal() {
            ratio.ln()
        } else {
            magnitude.ln() - divisor.ln()
        })
    }

    /// Adds biases to exponents, marks features that are 0 and makes the largest exponent 0; by how much it
    /// was reduced.
    fn settle(&self, values: &mut [T], point: &Point<'_>) -> f64 {
        let Prepared { biases, positive, .. } = self.prepared.as_ref();
        if let Some(zero) = point.zero {
            numeric::replace_meeting(Isa::best(), values, positive, zero, T::neg_infinity());
        }
        let largest = numeric::max_sum(Isa::best(), values, biases);
        let shift = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
        numeric::add_minus(Isa::best(), values, biases, shift);
        shift
    }

    /// As [`FeatureMap::fill`], for the points whose coordinates are `at(l, xₗ/ℓₗ)`.
    pub(super) fn features_at(
        &self,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
        at: impl Fn(usize, f64) -> f64,
    ) {
        self.fill_at(x, tile, scratch, at, |tile, i, signs| {
            let (values, _) = tile.row(i);
            numeric::exp_minus(Isa::best(), values, T::zero());
            signs.apply(values);
        });
    }

    /// As [`FeatureMap::fill_exponents`], for the points whose coordinates are `at(l, xₗ/ℓₗ)`.
    pub(super) fn exponents_at(
        &self,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
        at: impl Fn(usize, f64) -> f64,
    ) {
        self.fill_at(x, tile, scratch, at, |tile, i, signs| {
            signs.apply(tile.signs(i));
        });
    }

    /// As [`FeatureMap::log_variance`], for the points whose coordinates are `at(l, xₗ/ℓₗ)`.
    pub(super) fn log_variance_at(
        &self,
        x: &ArrayRef1<T>,
        y: &ArrayRef1<T>,
        at: impl Fn(usize, f64) -> f64,
    ) -> Result<Option<f64>> {
        check_pair(self.input_dim(), x, y)?;
        if !self.mechanism.fits(self.counts().law(), self.input_dim()) {
            return Ok(None);
        }
        let scaled =
            |x: &ArrayRef1<T>| x.iter().enumerate().map(|(l, v)| self.scaled(l, v)).collect::<Vec<_>>();
        let (x, y) = (scaled(x), scaled(y));
        // φ for softmax is φ for the Gaussian kernel times exp(½‖x‖²), so the variance scales with its
        // square.
        let norms: f64 = x.iter().chain(&y).map(|v| v * v).sum();
        let moved = |x: Vec<f64>| x.into_iter().enumerate().map(|(l, v)| at(l, v)).collect::<Vec<_>>();
        let gaussian = self.mechanism.log_variance(&moved(x), &moved(y), self.counts().count());
        Ok(Some(gaussian + 2.0 * self.excess * norms))
    }
}

impl<T: Real, M: CountMechanism> FeatureMap<T> for Counting<T, M> {
    fn input_dim(&self) -> usize {
        self.prepared.projection.input_dim()
    }

    fn blocks(&self) -> &[usize] {
        &self.width
    }

    fn properties(&self) -> Properties {
        Properties { symmetric: true, non_negative: false }
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        self.features_at(x, tile, scratch, |_, v| v);
    }

    fn fill_exponents(
        &self,
        _: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> bool {
        self.exponents_at(x, tile, scratch, |_, v| v);
        true
    }

    fn writes_once(&self) -> bool {
        true
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        let fits = self.mechanism.fits(self.counts().law(), self.input_dim());
        fits.then(|| self.target.kernel())
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        self.log_variance_at(x, y, |_, v| v)
    }
}

/// A hash of all that a map is made of; never 0.
fn fingerprint<M: CountMechanism>(mechanism: &M, target: &Target, counts: &Counts) -> u64 {
    let mut hasher = DefaultHasher::new();
    (M::NAME, format!("{mechanism:?} {target:?}")).hash(&mut hasher);
    counts.rows().iter().for_each(|count| hasher.write_u64(*count));
    hasher.finish().max(1)
}

/// The coordinates of each frequency whose counts are members, word by word.
fn sets(counts: ArrayView2<'_, u64>, member: impl Fn(u64) -> bool) -> Vec<u64> {
    let m = counts.nrows();
    let mut sets = vec![0; words(counts.ncols()) * m];
    for ((j, l), _) in counts.indexed_iter().filter(|(_, count)| member(**count)) {
        let (word, bit) = place(l);
        sets[word * m + j] |= bit;
    }
    sets
}

/// The words of a set of `d` coordinates.
fn words(d: usize) -> usize {
    d.div_ceil(u64::BITS as usize)
}

/// The word of a coordinate and its bit there.
fn place(l: usize) -> (usize, u64) {
    (l / u64::BITS as usize, 1 << (l % u64::BITS as usize))
}

/// What the features of a point need beside its logarithms.
struct Point<'a> {
    /// ‖x/ℓ‖² and ‖u‖².
    squared_norms: [f64; 2],
    /// Where u is negative, if anywhere.
    negative: Option<&'a [u64]>,
    /// Where u is 0, if anywhere.
    zero: Option<&'a [u64]>,
}

impl<'a> Point<'a> {
    /// Of the coordinates of x/ℓ and u side by side.
    fn new(masks: &'a mut Vec<u64>, coordinates: impl ExactSizeIterator<Item = (f64, f64)>) -> Self {
        let words = words(coordinates.len());
        masks.clear();
        masks.resize(2 * words, 0);
        let (negative, zero) = masks.split_at_mut(words);
        let mut squared_norms = [0.0; 2];
        for (l, (scaled, u)) in coordinates.enumerate() {
            squared_norms[0] += scaled * scaled;
            squared_norms[1] += u * u;
            let (word, bit) = place(l);
            if u < 0.0 {
                negative[word] |= bit;
            } else if u == 0.0 {
                zero[word] |= bit;
            }
        }
        let some = |set: &'a mut [u64]| set.iter().any(|word| *word != 0).then_some(&*set);
        Point { squared_norms, negative: some(negative), zero: some(zero) }
    }
}

/// The signs of a point's features.
pub(super) struct Signs<'a> {
    odd: &'a [u64],
    negative: Option<&'a [u64]>,
}

impl Signs<'_> {
    /// Changes the signs of those entries that belong to negative features.
    fn apply<T: Real>(&self, entries: &mut [T]) {
        if let Some(negative) = self.negative {
            numeric::negate_odd(Isa::best(), entries, self.odd, negative);
        }
    }
}

/// The stored form of a map: what it is made from, read back through the constructor.
#[cfg(feature = "serde")]
mod stored {
    use std::borrow::Cow;
    use std::marker::PhantomData;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{CountMechanism, Counting, Counts, Real, Target};

    /// The map's name, refused where it is another map's before anything else is read.
    struct Name<M>(PhantomData<M>);

    impl<M: CountMechanism> Serialize for Name<M> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            M::NAME.serialize(serializer)
        }
    }

    impl<'de, M: CountMechanism> Deserialize<'de> for Name<M> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let name = String::deserialize(deserializer)?;
            let error = || D::Error::custom(format!("a {name} map, but must be {}", M::NAME));
            if name == M::NAME { Ok(Name(PhantomData)) } else { Err(error()) }
        }
    }

    #[derive(Serialize, Deserialize)]
    #[serde(bound(serialize = "M: Serialize", deserialize = "M: Deserialize<'de>"))]
    struct Recipe<'a, M: CountMechanism> {
        map: Name<M>,
        mechanism: Cow<'a, M>,
        target: Cow<'a, Target>,
        counts: Cow<'a, Counts>,
    }

    impl<T: Real, M: CountMechanism + Serialize> Serialize for Counting<T, M> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            Recipe {
                map: Name(PhantomData),
                mechanism: Cow::Borrowed(&self.mechanism),
                target: Cow::Borrowed(&self.target),
                counts: Cow::Borrowed(self.counts()),
            }
            .serialize(serializer)
        }
    }

    impl<'de, T: Real, M: CountMechanism + Deserialize<'de>> Deserialize<'de> for Counting<T, M> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let recipe = Recipe::<M>::deserialize(deserializer)?;
            let (counts, target) = (recipe.counts.into_owned(), recipe.target.into_owned());
            Counting::new(recipe.mechanism.into_owned(), counts, target).map_err(D::Error::custom)
        }
    }
}
