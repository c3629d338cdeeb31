//! [`Exponential`]: the normal form of the maps.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ndarray::{ArrayRef1, ArrayView2};

use super::feature_map::check_pair;
use super::{FeatureMap, Properties, Scratch, Side, Tile};
use crate::Real;
use crate::error::Result;
use crate::frequency::Frequencies;
use crate::kernel::{Gaussian, Kernel, Lengthscale, Softmax};
use crate::projection::{Lift, Projection};
use crate::theory::{Law, Pair};

/// What tells one exponential map from another: the terms of the normal form, as plain data.
pub trait Mechanism: std::fmt::Debug + Clone + PartialEq + Send + Sync + 'static {
    /// The name of the map, as stored copies carry it.
    const NAME: &'static str;

    /// The pointwise function.
    fn lift(&self) -> Lift;

    /// The coefficient of ‖x‖² in the row term, for the softmax kernel.
    fn row(&self) -> f64;

    /// The constant term of every exponent.
    fn bias(&self) -> f64;

    /// What the features promise.
    fn properties(&self) -> Properties;

    /// ln of the variance for the softmax kernel, or `None` without a closed form.
    fn log_variance(&self, pair: &Pair, law: &Law) -> Option<f64>;
}

/// The kernel that a Gaussian map approximates: softmax or Gaussian, with its lengthscale.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Target {
    /// exp(x·y/ℓ²).
    Softmax(Softmax),
    /// exp(−‖x−y‖²/(2ℓ²)).
    Gaussian(Gaussian),
}

impl From<Softmax> for Target {
    fn from(kernel: Softmax) -> Self {
        Target::Softmax(kernel)
    }
}

impl From<Gaussian> for Target {
    fn from(kernel: Gaussian) -> Self {
        Target::Gaussian(kernel)
    }
}

impl Target {
    fn lengthscale(&self) -> &Lengthscale {
        match self {
            Target::Softmax(kernel) => kernel.lengthscale(),
            Target::Gaussian(kernel) => kernel.lengthscale(),
        }
    }

    /// The coefficient of ‖x‖² by which features differ from those for softmax.
    fn row(&self) -> f64 {
        match self {
            Target::Softmax(_) => 0.0,
            Target::Gaussian(_) => -0.5,
        }
    }
}

/// A map in the normal form φⱼ(x) = m^{−1/2} lift(⟨ωⱼ, x/ℓ⟩) exp(a + c‖x/ℓ‖²).
///
/// Does the work of every named map `M`, which supplies the lift, the constant a and the coefficient c; the
/// projection is packed once and may be shared. Immutable, cheap to clone. Made by the constructors of
/// [`Trigonometric`](super::Trigonometric), [`Positive`](super::Positive) and
/// [`Hyperbolic`](super::Hyperbolic); with the feature `serde` it can be stored and read back to the bit.
///
/// Cost O(m d) a point.
#[derive(Clone, Debug)]
pub struct Exponential<T, M> {
    mechanism: M,
    target: Target,
    projection: Arc<Projection<T>>,
    /// D, the one block.
    width: [usize; 1],
    /// The coefficient of ‖x/ℓ‖² in the log scale.
    row: f64,
    /// a − ½ ln m.
    constant: f64,
    fingerprint: u64,
}

impl<T: Real, M: Mechanism> Exponential<T, M> {
    /// The map of these frequencies for a target kernel.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the kernel's lengthscales are for another dimension,
    /// [`NotFinite`](crate::Error::NotFinite) if a frequency divided by the lengthscale overflows `T`.
    pub fn new(mechanism: M, frequencies: Frequencies, target: impl Into<Target>) -> Result<Self> {
        let target = target.into();
        let projection = Projection::new(frequencies, target.lengthscale().clone())?;
        Ok(Self::from_parts(mechanism, target, projection))
    }

    /// The map of these frequencies for the softmax kernel with ℓ = 1. Frequencies beyond the range of `T`
    /// saturate.
    pub fn softmax(mechanism: M, frequencies: Frequencies) -> Self {
        Self::from_parts(mechanism, Softmax::default().into(), Projection::unscaled(frequencies))
    }

    fn from_parts(mechanism: M, target: Target, projection: Projection<T>) -> Self {
        let m = projection.count();
        Exponential {
            width: [m * mechanism.lift().width()],
            row: mechanism.row() + target.row(),
            constant: mechanism.bias() - 0.5 * (m as f64).ln(),
            fingerprint: fingerprint::<M>(&mechanism, &target, projection.frequencies()),
            mechanism,
            target,
            projection: Arc::new(projection),
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

    /// Projects a tile, then lets `finish(values, bound)` turn each row of exponents into what is wanted and
    /// say its log scale.
    fn fill_with(
        &self,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
        finish: impl Fn(&mut [T], f64) -> f64,
    ) {
        self.projection.project(x, tile, scratch);
        for i in 0..tile.rows() {
            let (values, scales) = tile.row(i);
            let squared_norm = scales[0];
            scales[0] = if squared_norm.is_finite() {
                finish(values, self.projection.bound(squared_norm)) + self.row * squared_norm + self.constant
            } else {
                values.fill(T::nan());
                f64::NAN
            };
        }
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

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        let lift = self.mechanism.lift();
        self.fill_with(x, tile, scratch, |values, bound| lift.apply(values, bound));
    }

    fn fill_exponents(
        &self,
        _: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> bool {
        let lift = self.mechanism.lift();
        if lift == Lift::Polar {
            return false;
        }
        let count = self.projection.count();
        self.fill_with(x, tile, scratch, |values, _| {
            let (plus, minus) = values.split_at_mut(count);
            minus.iter_mut().zip(plus).for_each(|(m, p)| *m = -*p);
            0.0
        });
        true
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        Some(match &self.target {
            Target::Softmax(kernel) => kernel,
            Target::Gaussian(kernel) => kernel,
        })
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        check_pair(self.input_dim(), x, y)?;
        let lengthscale = self.target.lengthscale();
        let scaled = |(k, v): (usize, &T)| v.widen() / lengthscale.at(k);
        let pair = Pair::new(x.iter().enumerate().map(scaled).zip(y.iter().enumerate().map(scaled)));
        let softmax = self.mechanism.log_variance(&pair, self.projection.frequencies().law());
        // φ for another target is φ for softmax times exp(row ‖x‖²), so the variance scales with its square.
        Ok(softmax.map(|log| log + 2.0 * self.target.row() * pair.norms))
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

    use super::{Exponential, Frequencies, Mechanism, Real, Softmax, Target};

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
            if target == Target::from(Softmax::default()) {
                // As it was made, saturated frequencies included.
                return Ok(Exponential::softmax(mechanism, frequencies));
            }
            Exponential::new(mechanism, frequencies, target).map_err(D::Error::custom)
        }
    }
}
