//! [`Exponential`]: the normal form of the maps.

use std::f64::consts::TAU;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ndarray::{ArrayRef1, ArrayView2};
use num_complex::Complex64;

use super::feature_map::check_pair;
use super::{FeatureMap, Properties, Scratch, Side, Target, Tile};
use crate::Real;
use crate::error::{Error, Result};
use crate::frequency::Frequencies;
use crate::kernel::{Kernel, RegularisedSoftmax, Softmax};
use crate::numeric::{self, Isa};
use crate::projection::{Lift, Projection};
use crate::theory::{Law, Pair, Radius};

/// What tells one exponential map from another: the terms of the normal form, as plain data.
///
/// For the softmax kernel, φⱼ(x) = m^{−1/2} lift(β ωⱼ·x + a(‖ωⱼ‖²) + b + c‖x‖²).
pub trait Mechanism: std::fmt::Debug + Clone + PartialEq + Send + Sync + 'static {
    /// The name of the map, as stored copies carry it.
    const NAME: &'static str;

    /// The pointwise function of a side.
    fn lift(&self, side: Side) -> Lift;

    /// β on a side. Its imaginary part, like those of a and b, is for the lift
    /// [`ExpPolar`](Lift::ExpPolar) alone; with [`Polar`](Lift::Polar) β, a and b must be the defaults.
    fn slope(&self, _side: Side) -> Complex64 {
        Complex64::ONE
    }

    /// The coefficient c of ‖x‖² in the row term.
    fn row(&self) -> f64;

    /// b, for frequencies in ℝᵈ.
    fn constant(&self, _d: usize) -> Complex64 {
        Complex64::ZERO
    }

    /// a as a multiple of ‖ω‖²; `None` if there is no such term.
    fn bias(&self) -> Option<Complex64> {
        None
    }

    /// Whether the map estimates the kernels whose radii have this law.
    fn serves(&self, radius: Radius) -> bool {
        radius == Radius::Chi
    }

    /// What the features promise.
    fn properties(&self) -> Properties;

    /// ln of the variance for a target and frequencies of this law, or `None` without a closed form.
    ///
    /// `pair` is of points divided by the lengthscale.
    fn log_variance(&self, target: &Target, pair: &Pair, law: &Law) -> Option<f64>;
}

/// A map in the normal form φⱼ(x) = m^{−1/2} lift(β⟨ωⱼ, x/ℓ⟩ + aⱼ + c‖x/ℓ‖²).
///
/// Does the work of every named map `M`, which supplies the lift, the slope β, the biases a and the coefficient c; the
/// projection is packed once and may be shared ([`with_projection`](Exponential::with_projection)). Immutable, cheap to
/// clone. Made by the constructors of [`Trigonometric`](super::Trigonometric), [`Positive`](super::Positive),
/// [`Hyperbolic`](super::Hyperbolic) and [`Gerf`](super::Gerf); with the feature `serde` it can be stored and read back
/// to the bit.
///
/// Cost O(m d) a point, or O(m log d) with structured frequencies.
#[derive(Clone, Debug)]
pub struct Exponential<T, M> {
    mechanism: M,
    target: Target,
    projection: Arc<Projection<T>>,
    /// D, the one block.
    width: [usize; 1],
    /// The coefficient of ‖x/ℓ‖² in the log scale.
    row: f64,
    /// The real parts of b and of the largest a, and −½ ln m.
    constant: f64,
    biases: Option<Biases<T>>,
    fingerprint: u64,
}

/// The terms of each frequency's exponent that do not depend on the point.
#[derive(Clone, Debug)]
struct Biases<T> {
    /// Re a, less the largest of them.
    sizes: Arc<[T]>,
    /// Im (a + b), modulo 2π.
    phases: Arc<[T]>,
    /// The largest magnitude of `sizes`.
    spread: f64,
}

impl<T: Real> Biases<T> {
    /// The biases a‖ω‖² + b, and the largest real part of the first term.
    fn new(a: Complex64, b: Complex64, squared_norms: &[f64]) -> (Self, f64) {
        let sizes: Vec<f64> = squared_norms.iter().map(|norm| a.re * norm).collect();
        let top = sizes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let phase = |norm: &f64| T::narrow((a.im * norm + b.im).rem_euclid(TAU));
        let biases = Biases {
            sizes: sizes.iter().map(|size| T::saturated(size - top)).collect(),
            phases: squared_norms.iter().map(phase).collect(),
            spread: sizes.iter().fold(0.0, |spread, size| (top - size).max(spread)),
        };
        (biases, top)
    }
}

impl<T: Real, M: Mechanism> Exponential<T, M> {
    /// The map of these frequencies for a target kernel.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the kernel's lengthscales are for another dimension,
    /// [`NotFinite`](Error::NotFinite) if a frequency divided by the lengthscale overflows `T`,
    /// [`Target`](Error::Target) if the law of the frequencies' radii is known and that of another kernel, or the map
    /// does not estimate such kernels.
    pub fn new(mechanism: M, frequencies: Frequencies, target: impl Into<Target>) -> Result<Self> {
        let target = target.into();
        let projection = Projection::new(frequencies, target.lengthscale().clone())?;
        Self::with_projection(mechanism, Arc::new(projection), target)
    }

    /// The map of a projection that may be shared with other maps; its lengthscale must be the target's.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) and [`Target`](Error::Target) as [`new`](Exponential::new);
    /// [`Parameter`](Error::Parameter) if the lengthscale of the target is not that of the projection.
    pub fn with_projection(
        mechanism: M,
        projection: Arc<Projection<T>>,
        target: impl Into<Target>,
    ) -> Result<Self> {
        let target = target.into();
        let frequencies = projection.frequencies();
        target.lengthscale().check_dim(frequencies.dim())?;
        let radius = frequencies.law().radius();
        if !radius.may_be(target.radius())
            || !mechanism.serves(target.radius())
            || !fits(&target, frequencies)
        {
            let (law, target) = (format!("{radius:?}"), format!("{target:?}"));
            return Err(Error::Target { map: M::NAME, law, target });
        }
        if let Some(k) =
            (0..frequencies.dim()).find(|k| projection.lengthscale_at(*k) != target.lengthscale().at(*k))
        {
            let (name, value) = ("the lengthscale of the target", target.lengthscale().at(k));
            return Err(Error::Parameter { name, value, domain: "that of the projection" });
        }
        Ok(Self::from_parts(mechanism, target, projection))
    }

    /// The map of these frequencies for the softmax kernel with ℓ = 1, or for its regularised form if their radii are
    /// √d. Frequencies beyond the range of `T` saturate. On frequencies with radii of another law nothing useful is
    /// estimated, and [`kernel`](FeatureMap::kernel) is `None`.
    pub fn softmax(mechanism: M, frequencies: Frequencies) -> Self {
        let target = Self::softmax_target(&mechanism, &frequencies);
        Self::from_parts(mechanism, target, Arc::new(Projection::unscaled(frequencies)))
    }

    /// The softmax kernel, or its regularised form if the radii are √d and the map estimates it.
    fn softmax_target(mechanism: &M, frequencies: &Frequencies) -> Target {
        if mechanism.serves(Radius::RootDim) && frequencies.law().radius() == Radius::RootDim {
            RegularisedSoftmax::in_dimension(frequencies.padded_dim()).into()
        } else {
            Softmax::default().into()
        }
    }

    fn from_parts(mechanism: M, target: Target, projection: Arc<Projection<T>>) -> Self {
        let (m, frequencies) = (projection.count(), projection.frequencies());
        let b = mechanism.constant(frequencies.padded_dim());
        let sloped = [Side::X, Side::Y].iter().any(|side| mechanism.slope(*side) != Complex64::ONE);
        let a = mechanism.bias().or((sloped || b.im != 0.0).then_some(Complex64::ZERO));
        let biases = a.map(|a| Biases::new(a, b, &frequencies.squared_norms()));
        let (biases, top) = biases.map_or((None, 0.0), |(biases, top)| (Some(biases), top));
        Exponential {
            width: [m * mechanism.lift(Side::X).width()],
            row: mechanism.row() + target.row(),
            constant: b.re + top - 0.5 * (m as f64).ln(),
            biases,
            fingerprint: fingerprint::<M>(&mechanism, &target, frequencies),
            mechanism,
            target,
            projection,
        }
    }

    /// The definition of this map.
    pub fn mechanism(&self) -> &M {
        &self.mechanism
    }

    /// The kernel that the map approximates.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The linear part, with the frequencies.
    pub fn projection(&self) -> &Arc<Projection<T>> {
        &self.projection
    }

    /// Lets `finish(row, values, bound)` turn each row of a projected tile into what is wanted and say its log scale.
    fn finish(
        &self,
        side: Side,
        tile: &mut Tile<'_, T>,
        finish: impl Fn(&mut Tile<'_, T>, usize, f64) -> f64,
    ) {
        let slope = self.mechanism.slope(side);
        let (real, size) = (slope.re.abs(), slope.norm());
        let spread = self.biases.as_ref().map_or(0.0, |biases| biases.spread);
        for i in 0..tile.rows() {
            let (values, scales) = tile.row(i);
            let squared_norm = scales[0];
            let scale = if squared_norm.is_finite() {
                let reach = self.projection.bound(squared_norm);
                let bound = real * reach + spread;
                self.add_biases(slope, values, size * reach + spread);
                finish(tile, i, bound) + self.row * squared_norm + self.constant
            } else {
                values.fill(T::nan());
                f64::NAN
            };
            tile.row(i).1[0] = scale;
            tile.complete(i + 1);
        }
    }

    /// Turns a projected tile into features.
    fn lift(&self, side: Side, tile: &mut Tile<'_, T>) {
        let lift = self.mechanism.lift(side);
        self.finish(side, tile, |tile, i, bound| lift.apply(tile.row(i).0, bound));
    }

    /// From projections t to exponents: βt + a, as all real parts and, if the lift wants them, all imaginary parts.
    /// Where they might overflow `T` they saturate; `bound` is not less than any magnitude.
    fn add_biases(&self, slope: Complex64, values: &mut [T], bound: f64) {
        let Some(biases) = &self.biases else { return };
        let isa = Isa::best();
        let (first, second) = values.split_at_mut(self.projection.count());
        if self.mechanism.lift(Side::X).is_complex() {
            second.copy_from_slice(first);
            numeric::affine(isa, second, T::saturated(slope.im), &biases.phases);
        }
        numeric::affine(isa, first, T::saturated(slope.re), &biases.sizes);
        let limit = T::max_value() / T::narrow(4.0);
        if bound > limit.widen() {
            values.iter_mut().for_each(|v| *v = v.max(-limit).min(limit));
        }
    }
}

/// Whether the dimension of a regularised kernel is that of the frequencies.
fn fits(target: &Target, frequencies: &Frequencies) -> bool {
    match target {
        Target::RegularisedSoftmax(kernel) => {
            kernel.dim().unwrap_or(frequencies.dim()) == frequencies.padded_dim()
        }
        _ => true,
    }
}

impl<T: Real, M: Mechanism> FeatureMap<T> for Exponential<T, M> {
    fn input_dim(&self) -> usize {
        self.projection.input_dim()
    }

    fn blocks(&self) -> &[usize] {
        &self.width
    }

    fn properties(&self) -> Properties {
        self.mechanism.properties()
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        self.projection.project(x, tile, scratch);
        self.lift(side, tile);
    }

    fn projection(&self) -> Option<&Arc<Projection<T>>> {
        Some(&self.projection)
    }

    fn fill_projected(&self, side: Side, tile: &mut Tile<'_, T>) {
        self.lift(side, tile);
    }

    fn fill_exponents(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> bool {
        let lift = self.mechanism.lift(side);
        if lift == Lift::Polar {
            return false;
        }
        self.projection.project(x, tile, scratch);
        self.finish(side, tile, |tile, i, _| {
            let (values, signs) = tile.row_with_signs(i);
            lift.logarithms(values, signs);
            0.0
        });
        true
    }

    fn writes_once(&self) -> bool {
        true
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        let radius = self.projection.frequencies().law().radius();
        (radius == self.target.radius()).then(|| self.target.kernel())
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        check_pair(self.input_dim(), x, y)?;
        let pair = self.target.pair(x, y);
        Ok(self.mechanism.log_variance(&self.target, &pair, self.projection.frequencies().law()))
    }
}

/// A hash of all that a map is made of; never 0.
fn fingerprint<M: Mechanism>(mechanism: &M, target: &Target, frequencies: &Frequencies) -> u64 {
    let mut hasher = DefaultHasher::new();
    (M::NAME, format!("{mechanism:?} {target:?}")).hash(&mut hasher);
    frequencies.hash_numbers(&mut hasher);
    hasher.finish().max(1)
}

/// The stored form of a map: what it is made from, read back through the constructor.
#[cfg(feature = "serde")]
mod stored {
    use std::borrow::Cow;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Exponential, Frequencies, Mechanism, Real, Target};

    #[derive(Serialize, Deserialize)]
    struct Recipe<'a, M: Clone> {
        map: Cow<'a, str>,
        mechanism: Cow<'a, M>,
        target: Cow<'a, Target>,
        frequencies: Cow<'a, Frequencies>,
    }

    impl<T: Real, M: Mechanism + Serialize> Serialize for Exponential<T, M> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            Recipe {
                map: Cow::Borrowed(M::NAME),
                mechanism: Cow::Borrowed(&self.mechanism),
                target: Cow::Borrowed(&self.target),
                frequencies: Cow::Borrowed(self.projection.frequencies()),
            }
            .serialize(serializer)
        }
    }

    impl<'de, T: Real, M: Mechanism + Deserialize<'de>> Deserialize<'de> for Exponential<T, M> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let recipe = Recipe::<M>::deserialize(deserializer)?;
            if recipe.map != M::NAME {
                return Err(D::Error::custom(format!("a {} map, but must be {}", recipe.map, M::NAME)));
            }
            let (frequencies, target) = (recipe.frequencies.into_owned(), recipe.target.into_owned());
            let mechanism = recipe.mechanism.into_owned();
            if target == Self::softmax_target(&mechanism, &frequencies) {
                // As it was made, saturated frequencies included.
                return Ok(Exponential::softmax(mechanism, frequencies));
            }
            Exponential::new(mechanism, frequencies, target).map_err(D::Error::custom)
        }
    }
}
