//! [`Calibration`]: how long operations take on this machine.

use std::fmt;
use std::time::Instant;

use ndarray::Array2;
use num_complex::Complex64;

use super::work::{OPERATIONS, Operation, Work};
use crate::compose::{Bases, Clustered, Hybrid};
use crate::data::Clustering;
use crate::error::{Result, checked_positive};
use crate::frequency::{AnyCoupling, CountLaw, Draw, DrawCounts, Givens, Hadamard, Independent};
use crate::kernel::Softmax;

use crate::map::Transform;
use crate::theory::complex_exponential::Symmetry;
use crate::theory::gerf::GerfSign;
use crate::{ComplexExponential, Gerf, Map, Poisson, Positive, Real, Recipe, Side, Trigonometric};

/// The nanoseconds that operations take on a machine, by which a planner counts costs in time.
///
/// ```
/// # use random_features::ndarray::Array2;
/// use random_features::planner::{Calibration, Measure, Planner};
/// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
/// let calibration = Calibration::measure::<f32>()?;
/// println!("{calibration}");
///
/// let planner = Planner::of_one_set(&x)?.with_calibration(calibration);
/// let plan = planner.with_budget(Measure::Nanoseconds, 500.0).plan()?;
/// println!("{plan}");
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Each number is the time of an operation for one point of a large batch on all threads. The times of maps that are
/// computed from them are within a factor of about two of measured times. A plan in nanoseconds depends on its
/// calibration: to make the same plan again, store it (feature `serde`) and [pass it
/// in](crate::planner::Planner::with_calibration).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Calibration {
    /// A multiplication in a product with a matrix.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    dense: f64,
    /// A multiplication in a Hadamard transform.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    hadamard: f64,
    /// A multiplication in a rotation of a plane.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    givens: f64,
    /// A feature that is an exponential.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    exponential: f64,
    /// A feature that is a cosine or a sine.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    sinusoid: f64,
    /// A feature that is an exponential times a cosine or a sine.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    complex_exponential: f64,
    /// A feature that is a product of powers.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    power: f64,
    /// A product of features.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    product: f64,
    /// A coordinate that is transformed by a complex matrix.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    complex: f64,
    /// A plain map, whatever its features.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    part: f64,
    /// A plain map whose points were gathered from a cluster.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    gathered: f64,
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Calibration {
            dense, hadamard, givens, exponential, sinusoid, complex_exponential, power, ..
        } = self;
        let Calibration { product, complex, part, gathered, .. } = self;
        write!(f, "ns: {dense:.5} a multiplication, {hadamard:.5} in Hadamard transforms, ")?;
        write!(
            f,
            "{givens:.5} in Givens rotations, {exponential:.4} an exponential, {sinusoid:.4} a cosine or sine, "
        )?;
        write!(
            f,
            "{complex_exponential:.4} a complex exponential, {power:.4} a power, {product:.4} a product, {complex:.3} a complex coordinate, "
        )?;
        write!(f, "{part:.1} a map, {gathered:.1} a map of a cluster")
    }
}

/// Points of a measurement, the most of their coordinates and features, and how often it is repeated.
const POINTS: usize = 2048;
const NUMBERS: usize = 1 << 20;
const REPEATS: usize = 5;

impl Calibration {
    /// Measures features of `T` on this machine, in some tenths of a second. The numbers differ from measurement to
    /// measurement.
    ///
    /// # Errors
    /// [`Memory`](crate::Error::Memory) if there is none for some thousand points.
    #[inline(never)]
    pub fn measure<T: Real>() -> Result<Self> {
        let softmax = Softmax::default;
        let positive = |d, m, coupling: AnyCoupling| Positive.recipe(Draw::new(d, m, coupling), softmax());
        let independent = |d, m| Draw::new(d, m, Independent);
        // Each map has most of its time from one operation; the others are known, but for little of the first ones.
        let mut own = Calibration::NONE;
        own.dense = own.rest::<T>(&positive(256, 512, Independent.into()), Operation::Dense)?;
        own.exponential = own.rest::<T>(&positive(16, 512, Independent.into()), Operation::Exponential)?;
        own.part = own.rest::<T>(&positive(16, 16, Independent.into()), Operation::Part)?;
        own.sinusoid =
            own.rest::<T>(&Trigonometric.recipe(independent(16, 256), softmax()), Operation::Sinusoid)?;
        let complex_exponential = Gerf::new(0.01, GerfSign::Minus)?.recipe(independent(16, 256), softmax());
        own.complex_exponential = own.rest::<T>(&complex_exponential, Operation::ComplexExponential)?;
        let counts = DrawCounts::new(16, 256, CountLaw::Poisson(0.5.into()))?;
        own.power = own.rest::<T>(&Poisson::default().recipe(counts, softmax()), Operation::Power)?;
        own.hadamard = own.rest::<T>(&positive(256, 512, Hadamard::default().into()), Operation::Hadamard)?;
        // In fewer dimensions the engine multiplies by a matrix.
        own.givens = own.rest::<T>(&positive(1024, 1024, Givens::default().into()), Operation::Givens)?;
        let a = Transform::diagonal(vec![Complex64::I; 256])?;
        let complex = ComplexExponential::new(a, Symmetry::Plain).recipe(independent(256, 16), softmax());
        own.complex = own.rest::<T>(&complex, Operation::Complex)?;
        let tau = independent(16, 8).with_stream(1);
        let hybrid: Recipe = Hybrid::angular(Bases::shared(independent(16, 32)), tau)?;
        own.product = own.rest::<T>(&hybrid, Operation::Product)?;
        let clusters = Clustering::new(points::<f64>(4, 16))?;
        let bases = (0..16).map(|k| Positive.recipe(independent(16, 16).with_stream(k), softmax())).collect();
        let clustered: Recipe = Clustered::from_bases(clusters.clone(), clusters, bases)?;
        own.gathered = own.rest::<T>(&clustered, Operation::Gathered)?;
        Ok(own)
    }

    /// A calibration by which nothing takes time.
    const NONE: Self = Calibration {
        dense: 0.0,
        hadamard: 0.0,
        givens: 0.0,
        exponential: 0.0,
        sinusoid: 0.0,
        complex_exponential: 0.0,
        power: 0.0,
        product: 0.0,
        complex: 0.0,
        part: 0.0,
        gathered: 0.0,
    };

    /// The calibration with these nanoseconds, in the order of [`Operation`].
    #[cfg(feature = "testing")]
    pub(crate) fn of_times(times: [f64; OPERATIONS]) -> Self {
        let [dense, hadamard, givens, exponential, sinusoid, complex_exponential, ..] = times;
        let [.., power, product, complex, part, gathered] = times;
        Calibration {
            dense,
            hadamard,
            givens,
            exponential,
            sinusoid,
            complex_exponential,
            power,
            product,
            complex,
            part,
            gathered,
        }
    }

    /// The time of an operation of a map, if all others are as they are known: at least a tenth of the map's, since where
    /// noise is larger than a difference nothing is free.
    fn rest<T: Real>(&self, recipe: &Recipe, operation: Operation) -> Result<f64> {
        let (work, time) = (Work::of(recipe), time::<T>(recipe)?);
        Ok((time - self.nanoseconds(&work)).max(0.1 * time) / work.count(operation))
    }

    /// Nanoseconds of each operation, in the order of [`Operation`].
    pub(crate) fn times(&self) -> [f64; OPERATIONS] {
        [
            self.dense,
            self.hadamard,
            self.givens,
            self.exponential,
            self.sinusoid,
            self.complex_exponential,
            self.power,
            self.product,
            self.complex,
            self.part,
            self.gathered,
        ]
    }

    pub(crate) fn nanoseconds(&self, work: &Work) -> f64 {
        work.weighed(self.times())
    }

    /// Rejects numbers that no measurement gives.
    pub(crate) fn check(&self) -> Result<()> {
        self.times()
            .into_iter()
            .try_for_each(|ns| checked_positive("a time of the calibration", ns).map(drop))
    }
}

crate::once::once!(Calibration::measure::<T>);

fn points<T: Real>(n: usize, d: usize) -> Array2<T> {
    Array2::from_shape_fn((n, d), |(i, k)| T::narrow(0.1 * ((7 * i + 3 * k) as f64).sin()))
}

/// The nanoseconds that the features of a point take, the mean of both sides.
fn time<T: Real>(recipe: &Recipe) -> Result<f64> {
    let map: Map<T> = recipe.draw(0)?;
    let n = POINTS.min(NUMBERS / map.dim().max(map.feature_dim()));
    let x = points(n, map.dim());
    let mut values = Array2::zeros((n, map.feature_dim()));
    let mut scales = Array2::zeros((n, map.blocks().len()));
    let mut least = |side| -> Result<f64> {
        let mut least = f64::INFINITY;
        for _ in 0..REPEATS {
            let start = Instant::now();
            map.features_into(side, &x, &mut values, &mut scales)?;
            least = least.min(start.elapsed().as_secs_f64());
        }
        Ok(1e9 * least / n as f64)
    };
    Ok(0.5 * (least(Side::X)? + least(Side::Y)?))
}
