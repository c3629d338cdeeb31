//! [`Cost`]: what the features of a point cost; [`Calibration`]: how long that takes on this machine.

use std::fmt;
use std::time::Instant;

use ndarray::Array2;

use crate::compose::{Clustered, Composite, Conditioned};
use crate::error::{Result, checked_positive};
use crate::frequency::{Coupling, Draw, Hadamard, Independent, Orthogonal, RotationLaw};
use crate::kernel::Softmax;
use crate::map::{Omega, PlainRecipe};
use crate::{Map, Positive, Real, Recipe, Side, Trigonometric};

/// What the features of a point cost, on average over both sides.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Cost {
    /// D, the number of features.
    pub features: usize,
    /// Multiplications: of projections and transformations of the point, and one for each value that is lifted or multiplied.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub multiplications: f64,
    /// Bytes of its features with their scales.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub bytes: f64,
    /// Nanoseconds for one of many points on all threads, by the calibration; NaN without one.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub nanoseconds: f64,
}

/// In what a budget is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Measure {
    /// Features of a point, D.
    #[default]
    Features,
    /// Multiplications for the features of a point.
    Multiplications,
    /// Bytes of the features of a point.
    Bytes,
    /// Nanoseconds for the features of one of many points.
    Nanoseconds,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Measure::Features => "features",
            Measure::Multiplications => "multiplications a point",
            Measure::Bytes => "bytes a point",
            Measure::Nanoseconds => "ns a point",
        })
    }
}

/// Of equal numbers; times that are not counted are equal.
impl PartialEq for Cost {
    fn eq(&self, other: &Self) -> bool {
        let own = |cost: &Cost| (cost.features, cost.multiplications, cost.bytes);
        own(self) == own(other) && same(self.nanoseconds, other.nanoseconds)
    }
}

/// Equal or both NaN.
pub(super) fn same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan()
}

impl Cost {
    pub(super) fn of(recipe: &Recipe, scalar: usize, calibration: Option<&Calibration>) -> Self {
        let work = Work::of(recipe);
        let (features, scales) = (recipe.feature_dim(), recipe.block_count());
        Cost {
            features,
            multiplications: work.dense + work.structured + work.lifted + work.products,
            bytes: features as f64 * scalar as f64 + scales as f64 * size_of::<f64>() as f64,
            nanoseconds: calibration.map_or(f64::NAN, |calibration| calibration.of(&work)),
        }
    }

    /// The cost in a measure.
    pub fn in_measure(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Features => self.features as f64,
            Measure::Multiplications => self.multiplications,
            Measure::Bytes => self.bytes,
            Measure::Nanoseconds => self.nanoseconds,
        }
    }
}

/// Operations for the features of a point.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    /// Multiplications in products with matrices.
    dense: f64,
    /// Multiplications in fast transforms.
    structured: f64,
    /// Values that are lifted.
    lifted: f64,
    /// Values that are multiplied to products of features.
    products: f64,
}

impl Work {
    fn of(recipe: &Recipe) -> Self {
        match recipe {
            Recipe::Plain(plain) => Work::of_plain(plain),
            Recipe::Composite(composite) => match &**composite {
                Composite::Hybrid(_) => {
                    let parts = Work::of_parts(&composite.children());
                    Work { products: parts.products + recipe.feature_dim() as f64, ..parts }
                }
                Composite::Conditioned(conditioned) => Work::of_conditioned(conditioned),
                Composite::Clustered(clustered) => Work::of_clustered(clustered),
            },
        }
    }

    /// Parts of which those with the same frequencies are projected once.
    fn of_parts(parts: &[&Recipe]) -> Self {
        let mut sum = Work::default();
        for (i, part) in parts.iter().enumerate() {
            let work = Work::of(part);
            let known = |other: &&Recipe| match (other, part) {
                (Recipe::Plain(a), Recipe::Plain(b)) => a.omega.same(&b.omega) && a.target == b.target,
                _ => false,
            };
            let projected = parts[..i].iter().any(known);
            let work = if projected { Work { dense: 0.0, structured: 0.0, ..work } } else { work };
            sum = sum.plus(work);
        }
        sum
    }

    fn of_plain(plain: &PlainRecipe) -> Self {
        let (d, m) = (plain.omega.dim() as f64, plain.omega.count() as f64);
        let lifted = Recipe::Plain(plain.clone()).feature_dim() as f64;
        let structured = match &plain.omega {
            Omega::Draw(draw) => structured_product(draw),
            _ => None,
        };
        match structured {
            Some(structured) => Work { structured, lifted, ..Work::default() },
            None => Work { dense: m * d * plain.mechanism.projections() as f64, lifted, ..Work::default() },
        }
    }

    fn of_conditioned(conditioned: &Conditioned<Recipe>) -> Self {
        let (base, d) = (Work::of(&conditioned.base), conditioned.conditioning.dim() as f64);
        let r = conditioned.conditioning.rank() as f64;
        // A whole transformation is multiplied into dense frequencies and leaves a norm to compute.
        let own = if r < d || base.structured > 0.0 { r * d } else { 0.5 * d * (d + 1.0) };
        Work { dense: base.dense + own, ..base }
    }

    fn of_clustered(clustered: &Clustered<Recipe>) -> Self {
        let (queries, keys) = (clustered.queries.len() as f64, clustered.keys.len() as f64);
        let all = clustered.bases.iter().map(Work::of).fold(Work::default(), Work::plus);
        // A point of one side needs a row or a column of the bases, and the nearest of its side's centres.
        let mean = 0.5 * (queries + keys);
        let share = mean / (queries * keys);
        let Work { dense, structured, lifted, products } = all;
        Work {
            dense: share * dense + mean * clustered.queries.dim() as f64,
            structured: share * structured,
            lifted: share * lifted,
            products: share * products,
        }
    }

    fn plus(self, other: Work) -> Work {
        Work {
            dense: self.dense + other.dense,
            structured: self.structured + other.structured,
            lifted: self.lifted + other.lifted,
            products: self.products + other.products,
        }
    }
}

/// The multiplications of a product with the frequencies of a draw; `None` for a matrix.
fn structured_product(draw: &Draw) -> Option<f64> {
    let n = draw.padded_dim();
    let of_block = match draw.coupling.fast_rotation()? {
        RotationLaw::Haar => return None,
        RotationLaw::Hadamard(own) => own.rounds * n * (n.ilog2() as usize + 1),
        // Four multiplications for each pair of coordinates.
        RotationLaw::Givens(own) => own.rounds_in(n) * 2 * n,
    };
    let blocks = draw.m.div_ceil(draw.coupling.capacity(draw.d).max(1)) as f64;
    Some(blocks * of_block as f64 + draw.m as f64)
}

/// Nanoseconds of each operation for one of many points on all threads of a machine: what a budget of time is counted with.
///
/// A plan depends on it, so that it can be kept and passed in again ([`Planner::calibrated`](super::Planner::calibrated)).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Calibration {
    /// A multiplication in a product with a matrix.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub dense: f64,
    /// A multiplication in a fast transform.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub structured: f64,
    /// A value that is lifted, by an exponential, a sine or a cosine.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub lifted: f64,
    /// A value of a product of features.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub products: f64,
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Calibration { dense, structured, lifted, products } = self;
        write!(f, "ns: {dense:.5} a multiplication, {structured:.5} in fast transforms, ")?;
        write!(f, "{lifted:.5} a lifted value, {products:.5} a product")
    }
}

/// Points of a measurement, and how often it is repeated.
const POINTS: usize = 2048;
const REPEATS: usize = 5;

impl Calibration {
    /// Measures features of `T` on this machine, in some tenths of a second. Not deterministic.
    ///
    /// ```
    /// use random_features::planner::Calibration;
    /// let calibration = Calibration::measure::<f32>()?;
    /// assert!(calibration.dense > 0.0 && calibration.dense < calibration.lifted);
    /// println!("{calibration}");
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Memory`](crate::Error::Memory) if there is none for some thousand points.
    #[inline(never)]
    pub fn measure<T: Real>() -> Result<Self> {
        let of = |recipe: Recipe| -> Result<(f64, Work)> {
            let map: Map<T> = recipe.draw(0)?;
            let wave = |(i, k): (usize, usize)| T::narrow(0.1 * ((7 * i + 3 * k) as f64).sin());
            let x = Array2::from_shape_fn((POINTS, map.input_dim()), wave);
            let mut values = Array2::zeros((POINTS, map.feature_dim()));
            let mut scales = Array2::zeros((POINTS, map.blocks().len()));
            let mut least = f64::INFINITY;
            for _ in 0..REPEATS {
                let start = Instant::now();
                map.features_into(Side::X, &x, &mut values, &mut scales)?;
                least = least.min(start.elapsed().as_secs_f64());
            }
            Ok((1e9 * least / POINTS as f64, Work::of(&recipe)))
        };
        let softmax = || Softmax::default();
        let (small, of_small) = of(Positive.recipe(Draw::new(16, 512, Independent), softmax()))?;
        let (large, of_large) = of(Positive.recipe(Draw::new(256, 512, Independent), softmax()))?;
        let (waves, of_waves) = of(Trigonometric.recipe(Draw::new(16, 256, Independent), softmax()))?;
        let (fast, of_fast) = of(Positive.recipe(Draw::new(256, 512, Hadamard::default()), softmax()))?;
        let bases = crate::compose::Bases::shared(Draw::new(16, 32, Orthogonal));
        let tau = Draw::new(16, 8, Independent).with_stream(1);
        let (hybrid, of_hybrid) = of(crate::compose::Hybrid::angular(bases, tau)?)?;
        // What remains where noise is larger than a difference is not free.
        let left = |time: f64, count: f64| (time / count).max(1e-6);
        let dense = left(large - small, of_large.dense - of_small.dense);
        let exponential = left(small - dense * of_small.dense, of_small.lifted);
        let wave = left(waves - dense * of_waves.dense, of_waves.lifted);
        let lifted = 0.5 * (exponential + wave);
        Ok(Calibration {
            dense,
            lifted,
            structured: left(fast - exponential * of_fast.lifted, of_fast.structured),
            products: left(hybrid - dense * of_hybrid.dense - lifted * of_hybrid.lifted, of_hybrid.products),
        })
    }

    fn of(&self, work: &Work) -> f64 {
        self.dense * work.dense
            + self.structured * work.structured
            + self.lifted * work.lifted
            + self.products * work.products
    }

    /// Rejects numbers that no measurement gives.
    pub(super) fn check(&self) -> Result<()> {
        let all = [self.dense, self.structured, self.lifted, self.products];
        all.into_iter().try_for_each(|ns| checked_positive("a time of the calibration", ns).map(drop))
    }
}

crate::once::once!(Calibration::measure::<T>);
