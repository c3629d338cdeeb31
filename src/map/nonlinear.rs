//! [`Nonlinear`]: features f(ω·x) + ε of any function f.

use std::f64::consts::LN_2;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ndarray::{ArrayRef1, ArrayView2};

use super::feature_map::check_pair;
use super::{FeatureMap, Properties, Scratch, Side, Tile};
use crate::Real;
use crate::error::Result;
use crate::frequency::Frequencies;
use crate::kernel::{self, Activation, Kernel, Lengthscale, checked_offset};
use crate::numeric::{self, Isa, pointwise};
use crate::projection::{Lift, Projection};
use crate::theory::{self, Radius};

/// Features f(ω·x) + ε of a function f: generalised attention, arc-cosine kernels, random neural layers.
///
/// # Definition
/// φⱼ(x) = m^{−1/2} (f(ωⱼ·x/ℓ) + ε), m features; [`Activation`] lists the functions. They estimate
/// E\[(f(ω·x) + ε)(f(ω·y) + ε)\], whatever the coupling. Where that has a closed form and ω ~ N(0, I),
/// [`kernel`](FeatureMap::kernel) is that [kernel](kernel::ActivationKernel); for GELU, the sigmoid and tanh, and
/// for radii of another law, it is `None`. An ε > 0 keeps sums of features away from 0 where f vanishes; with
/// it features may become [non-negative](Properties::non_negative).
///
/// Rows are divided by a power of two that puts the largest value between ½ and 1, so no norm overflows;
/// numbers smaller than the largest by more than the range of `T` become 0. exp without ε has exponents, and
/// with them [log-estimates](FeatureMap::log_estimate) at any norm.
///
/// # Variance
/// (E\[f²(ω·x) f²(ω·y)\] − K²)/m for independent ω and ε = 0, in closed form for u, u², exp, cos, sin, sgn,
/// step, ReLU and |u|: [`theory::nonlinear`]. None otherwise.
///
/// # Exact where
/// Nowhere in general; for sgn where x = cy with c ≠ 0, for any draw.
///
/// # Cost
/// O(md) a point, and f for each feature. erf, tanh and GELU are not vectorised: 20 to 30 ns each, which is
/// what a projection takes for d of several hundred; the others take about 1 ns.
///
/// # Example
/// ```
/// use ndarray::arr1;
/// use random_features::frequency::{Orthogonal, draw};
/// use random_features::kernel::Activation;
/// use random_features::{FeatureMap, Nonlinear};
/// let omega = draw(2, 1024, &Orthogonal, &mut random_features::rng(1))?;
/// let map = Nonlinear::new(omega, Activation::Relu);
/// let x = arr1(&[1.0, 1.0]);
/// let estimate: f64 = map.estimate(&x, &x)?;
/// assert!((estimate - 1.0).abs() < 0.2);
/// let shifted = map.with_offset(1e-3)?;
/// assert!(shifted.estimate(&x, &(-&x))? > 0.0);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, equations 3 and 5; Cho and Saul, *Kernel
/// Methods for Deep Learning*.
#[derive(Clone, Debug)]
pub struct Nonlinear<T> {
    activation: Activation,
    offset: f64,
    lengthscale: Lengthscale,
    projection: Arc<Projection<T>>,
    /// The exact kernel, if it is known.
    kernel: Option<kernel::ActivationKernel>,
    width: [usize; 1],
    fingerprint: u64,
}

/// The name of the map, as stored copies carry it.
const NAME: &str = "nonlinear";

impl<T: Real> Nonlinear<T> {
    /// The map of these frequencies with ε = 0 and ℓ = 1. Frequencies beyond the range of `T` saturate.
    pub fn new(frequencies: Frequencies, activation: Activation) -> Self {
        let projection = Arc::new(Projection::unscaled(frequencies));
        Self::from_parts(activation, 0.0, Lengthscale::default(), projection)
    }

    /// The map of f + ε.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if ε is not finite.
    pub fn with_offset(self, offset: f64) -> Result<Self> {
        let offset = checked_offset(offset)?;
        Ok(Self::from_parts(self.activation, offset, self.lengthscale, self.projection))
    }

    /// The map with lengthscale ℓ. Packs the frequencies again.
    ///
    /// # Errors
    /// As [`Projection::new`].
    pub fn with_lengthscale(self, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        let lengthscale = lengthscale.into();
        let projection = Projection::new(self.projection.frequencies().clone(), lengthscale.clone())?;
        Ok(Self::from_parts(self.activation, self.offset, lengthscale, Arc::new(projection)))
    }

    /// From parameters that have been checked.
    fn from_parts(
        activation: Activation,
        offset: f64,
        lengthscale: Lengthscale,
        projection: Arc<Projection<T>>,
    ) -> Self {
        let frequencies = projection.frequencies();
        let gaussian = frequencies.law().blocks.iter().all(|block| block.radius == Radius::Chi);
        let exact = activation.kernel().filter(|_| gaussian);
        let with_parameters = |kernel: kernel::ActivationKernel| {
            kernel.with_offset(offset).and_then(|kernel| kernel.with_lengthscale(lengthscale.clone())).ok()
        };
        Nonlinear {
            kernel: exact.and_then(with_parameters),
            width: [frequencies.count()],
            fingerprint: fingerprint(&(NAME, activation, offset, &lengthscale), Some(frequencies)),
            activation,
            offset,
            lengthscale,
            projection,
        }
    }

    /// f.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// ε.
    pub fn offset(&self) -> f64 {
        self.offset
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    /// The linear part, with the frequencies.
    pub fn projection(&self) -> &Arc<Projection<T>> {
        &self.projection
    }

    fn is_non_negative(&self) -> bool {
        self.activation.lower_bound() + self.offset >= 0.0
    }

    /// Replaces projections by values of f + ε, of which none is greater than `bound`; returns the log scale.
    fn lift(&self, values: &mut [T], bound: f64) -> f64 {
        let scale = activate(self.activation, values, bound);
        let scale = if self.offset == 0.0 { scale } else { self.add_offset(values, scale) };
        scale + halve_until_one(values)
    }

    /// Adds ε to values of the log scale `scale`; returns the log scale of the sums, which are at most 2.
    fn add_offset(&self, values: &mut [T], scale: f64) -> f64 {
        // Where all is smaller, e⁷⁰⁰ still has a finite inverse.
        let top = scale.max(self.offset.abs().ln()).max(-700.0);
        let constant = T::narrow(self.offset * (-top).exp());
        // A bound that holds for f + ε holds for rounded values too.
        let least = if self.is_non_negative() { T::zero() } else { T::neg_infinity() };
        pointwise::affine(Isa::best(), values, T::narrow((scale - top).exp()), constant, least);
        top
    }
}

/// f of each projection, of magnitude at most `bound`; returns the log scale of the values, at most 1 each.
fn activate<T: Real>(f: Activation, values: &mut [T], bound: f64) -> f64 {
    let isa = Isa::best();
    match f {
        Activation::Exp => return Lift::Exp.apply(values, bound),
        // f(cu) = cf(u) or c²f(u) for c > 0, so that the scale may go first and nothing overflows.
        Activation::Identity => return halve_until_one(values),
        Activation::Relu | Activation::Abs => {
            let scale = halve_until_one(values);
            if f == Activation::Abs {
                pointwise::abs(isa, values)
            } else {
                pointwise::relu(isa, values)
            }
            return scale;
        }
        Activation::Square | Activation::ReluSquared => {
            let scale = halve_until_one(values);
            if f == Activation::ReluSquared {
                pointwise::relu(isa, values);
            }
            pointwise::square(isa, values);
            return 2.0 * scale;
        }
        Activation::Gelu => {
            pointwise::gelu(values);
            return halve_until_one(values);
        }
        Activation::Cos => pointwise::cos(isa, values),
        Activation::Sin => pointwise::sin(isa, values),
        Activation::Sign => pointwise::sign(isa, values),
        Activation::Step => pointwise::step(isa, values),
        Activation::Sigmoid => pointwise::sigmoid(isa, values),
        Activation::Erf => pointwise::erf(values),
        Activation::Tanh => pointwise::tanh(values),
    }
    0.0
}

/// Multiplies a row by the power of two that puts its largest magnitude between ½ and 1, as far as that is in
/// the range of `T`; returns the log scale. A row of zeros stays.
fn halve_until_one<T: Real>(values: &mut [T]) -> f64 {
    let isa = Isa::best();
    let largest = numeric::max_abs(isa, values).widen();
    if largest <= 0.0 || !largest.is_finite() {
        return 0.0;
    }
    let (fraction, exponent) = libm::frexp(largest);
    // 1 stays as it is.
    let exponent = if fraction == 0.5 { exponent - 1 } else { exponent };
    let (_, limit) = libm::frexp(T::max_value().widen());
    let exponent = exponent.max(2 - limit);
    if exponent != 0 {
        pointwise::scale(isa, values, T::narrow(libm::ldexp(1.0, -exponent)));
    }
    f64::from(exponent) * LN_2
}

/// Projects a tile, then lets `lift(values, bound)` turn each row of m projections of magnitude at most
/// `bound` into values and return their log scale, to which −½ ln m is added. Rows without a finite norm
/// become NaN.
pub(super) fn fill_rows<T: Real>(
    projection: &Projection<T>,
    x: ArrayView2<'_, T>,
    tile: &mut Tile<'_, T>,
    scratch: &mut Scratch<T>,
    lift: impl Fn(&mut [T], f64) -> f64,
) {
    projection.project(x, tile, scratch);
    let mean = -0.5 * (projection.count() as f64).ln();
    for i in 0..tile.rows() {
        let (values, scales) = tile.row(i);
        let squared_norm = scales[0];
        scales[0] = if squared_norm.is_finite() {
            lift(values, projection.bound(squared_norm)) + mean
        } else {
            values.fill(T::nan());
            f64::NAN
        };
    }
}

/// A hash of all that a map is made of; never 0.
pub(super) fn fingerprint(parts: &impl Debug, frequencies: Option<&Frequencies>) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{parts:?}").hash(&mut hasher);
    if let Some(frequencies) = frequencies {
        frequencies.hash_numbers(&mut hasher);
    }
    hasher.finish().max(1)
}

impl<T: Real> FeatureMap<T> for Nonlinear<T> {
    fn input_dim(&self) -> usize {
        self.projection.input_dim()
    }

    fn blocks(&self) -> &[usize] {
        &self.width
    }

    fn properties(&self) -> Properties {
        Properties { symmetric: true, non_negative: self.is_non_negative() }
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        fill_rows(&self.projection, x, tile, scratch, |values, bound| self.lift(values, bound));
    }

    fn fill_exponents(
        &self,
        _: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> bool {
        let exponential = self.activation == Activation::Exp && self.offset == 0.0;
        if exponential {
            fill_rows(&self.projection, x, tile, scratch, |_, _| 0.0);
        }
        exponential
    }

    fn writes_once(&self) -> bool {
        true
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        self.kernel.as_ref().map(|kernel| kernel as &dyn Kernel<T>)
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        check_pair(self.input_dim(), x, y)?;
        if self.offset != 0.0 {
            return Ok(None);
        }
        let scaled = |(k, v): (usize, &T)| v.widen() / self.lengthscale.at(k);
        let point = |v: &ArrayRef1<T>| v.iter().enumerate().map(scaled).collect::<Vec<f64>>();
        Ok(theory::nonlinear(self.activation, &point(x), &point(y), self.projection.frequencies().law()))
    }
}

/// The stored form of the map: what it is made from, read back through the constructor.
#[cfg(feature = "serde")]
mod stored {
    use std::borrow::Cow;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Activation, Frequencies, Lengthscale, NAME, Nonlinear, Real};

    #[derive(Serialize, Deserialize)]
    struct Recipe<'a> {
        map: Cow<'a, str>,
        activation: Activation,
        #[serde(with = "crate::exact")]
        offset: f64,
        lengthscale: Cow<'a, Lengthscale>,
        frequencies: Cow<'a, Frequencies>,
    }

    impl<T: Real> Serialize for Nonlinear<T> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            Recipe {
                map: Cow::Borrowed(NAME),
                activation: self.activation,
                offset: self.offset,
                lengthscale: Cow::Borrowed(&self.lengthscale),
                frequencies: Cow::Borrowed(self.projection.frequencies()),
            }
            .serialize(serializer)
        }
    }

    impl<'de, T: Real> Deserialize<'de> for Nonlinear<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let recipe = Recipe::deserialize(deserializer)?;
            if recipe.map != NAME {
                return Err(D::Error::custom(format!("a {} map, but must be {NAME}", recipe.map)));
            }
            let map = Nonlinear::new(recipe.frequencies.into_owned(), recipe.activation);
            let map = map.with_offset(recipe.offset).map_err(D::Error::custom)?;
            if *recipe.lengthscale == Lengthscale::default() {
                // As it was made, saturated frequencies included.
                return Ok(map);
            }
            map.with_lengthscale(recipe.lengthscale.into_owned()).map_err(D::Error::custom)
        }
    }
}
