//! [`Attention`]: linear attention as an immutable value, which methods in the other rooms run.

use super::exact_pairs::KeyChoice;
use super::exact_pairs::Window;
use super::reading::Reading;
use super::reading::TokenScale;
use crate::Real;
use crate::engine::{Program, Side};
use crate::error::{Error, Result, check_positive, check_size, checked_not_negative};
use crate::map::Map;
use crate::once::once;

/// Linear attention (FAVOR+, FAVOR++ and whatever else has features), bidirectional or causal. Approximate: a map's
/// estimates of exp(q·k·scale) stand for the weights, and their ratio is biased by O(1/m) even where they are not.
///
/// # Definition
/// out(q) = Σⱼ K̂(q, kⱼ) vⱼ / Σⱼ K̂(q, kⱼ) with K̂(q, k) = φ(√s q)·ψ(√s k), s = 1/√d unless
/// [stated otherwise](Attention::with_scale), over all keys or, causally, those up to the query's own place. The map is one of
/// the kernel exp(x·y), with lengthscale 1 since points are scaled before, as [`Positive.softmax(ω)`](crate::Positive) is (FAVOR+), [`Gerf`](crate::Gerf) with OPRF
/// parameters (FAVOR++), or any other. A lengthscale ℓ of the map divides points once more: the scale is then s/ℓ².
///
/// # Accuracy
/// Features, and products of features and values, are computed in `T`; sums over tokens in `f64`, each relative to the largest
/// feature so far: normalisers neither overflow nor underflow, whatever the norms, the error does not grow with the length, and
/// no ε is added. Keys whose features differ too much for products in `T` (at norms of some 8 in `f32`), keys with features that
/// are 0 whose scales lie far apart, and values beyond √MAX are added by logarithms in `f64`, and so are the keys after them in
/// their chunk of 64 tokens: four to seven times slower. The same holds for queries whose features differ too much. Sums of values
/// must fit `f64`. Results are bit-identical on any number of threads. A causal output depends on no later token, not even in its
/// last bit.
///
/// # Exact weights
/// Weights of [chosen keys](Attention::with_keys_exact) and of [neighbours](Attention::with_window) may be computed exactly; features are
/// left with the other pairs. Which of exact, windowed and linear attention is the cheapest for an error is
/// [estimated](Attention::choose) from a sample.
///
/// # Normalisers
/// A query whose normaliser Σⱼ K̂(q, kⱼ) is not positive gets the output 0 and is [reported](super::super::Attended::non_positive). With
/// non-negative features that happens only where all weights are 0. A query that sees no key gets 0 and is not reported.
/// A query or a key that is not finite makes the outputs NaN that may see it, and no others (where weights are exact, an
/// infinite coordinate counts through its logits: those of −∞ have the weight 0); a value that is not finite does so, or
/// makes them infinite, in its own coordinate. Whether normalisers rest on many features or on a few is said
/// [on request](Attention::bidirectional_diagnosed), and what error to expect [before](Attention::error_report).
///
/// # Gradients
/// With respect to queries, keys and values: [`bidirectional_backward`](Attention::bidirectional_backward) and
/// [`causal_backward`](Attention::causal_backward), which keep nothing of the forward pass.
///
/// # Cost
/// O(L m (d + d_v)) time for each head, O(m d_v) memory for each thread beyond the output, and for each head, where these are
/// fewer than threads, features and sums of 16 chunks of 64 tokens, which its threads share.
///
/// # Example
/// ```
/// use ndarray::Array4;
/// use random_features::apply::attention::{Attention, Heads};
/// use random_features::frequency::Orthogonal;
/// use random_features::Positive;
/// let token = |(b, h, i, k): (usize, usize, usize, usize)| ((b + 2 * h + 3 * i + 5 * k) % 7) as f32 / 7.0;
/// let (q, k) = (Array4::from_shape_fn((1, 2, 100, 16), token), Array4::from_shape_fn((1, 2, 80, 16), token));
/// let v = Array4::from_shape_fn((1, 2, 80, 8), token);
/// let omega = Orthogonal.draw(16, 64, 5)?;
/// let attention = Attention::new(Positive.softmax::<f32>(omega)?)?;
/// let out = attention.bidirectional(&Heads::new(&q, &k, &v)?)?.output;
/// assert_eq!(out.dim(), (1, 2, 100, 8));
/// let causal = attention.causal(&Heads::new(&k, &k, &v)?)?.output;
/// assert_eq!(causal.dim(), (1, 2, 80, 8));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, Algorithm 1; Likhosherstov et al., *Chefs' Random Tables*.
#[derive(Clone, Debug)]
pub struct Attention<T: Real> {
    /// One, or one for each head of keys.
    pub(in super::super) maps: Vec<Map<T>>,
    pub(in super::super) reading: Reading,
    pub(in super::super) normalised: bool,
    pub(in super::super) exact: KeyChoice,
    pub(in super::super) window: Window,
    /// The maps' programs, without factors of queries that the normaliser cancels.
    pub(in super::super) programs: Vec<Program<T>>,
}

impl<T: Real> Attention<T> {
    /// Attention with one map for all heads, for points √s q and √s k with s = 1/√d.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if features may be negative: see [`signed`](Attention::signed).
    pub fn new(map: Map<T>) -> Result<Self> {
        Self::per_head(vec![map])
    }

    /// As [`new`](Attention::new), with a map for each head of keys.
    ///
    /// # Errors
    /// As [`new`](Attention::new); [`Shape`](Error::Shape) if there is no map, or maps are of different dimensions.
    pub fn per_head(maps: Vec<Map<T>>) -> Result<Self> {
        if maps.iter().any(|map| !map.facts().non_negative) {
            return Err(Error::Unsupported {
                what: "Attention::new and Attention::per_head with features that may be negative: take Attention::signed",
            });
        }
        Self::signed(maps)
    }

    /// Attention with any maps, one or one for each head of keys. Where features may be negative (trigonometric ones, many
    /// hybrids), so may weights and normalisers: an output need not be a mean of values, and grows without bound as its
    /// normaliser falls to 0. Rows whose normaliser is not positive get 0 and are [reported](super::super::Attended::non_positive).
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there is no map, or maps are of different dimensions.
    #[inline(never)]
    pub fn signed(maps: Vec<Map<T>>) -> Result<Self> {
        check_positive("the number of maps", maps.len())?;
        let d = maps[0].dim();
        maps.iter().try_for_each(|map| {
            check_size("the dimension of a map, which is that of the first,", d, map.dim())
        })?;
        let reading = Reading::new(TokenScale::of_dim(d));
        let attention = Attention {
            maps,
            reading,
            normalised: true,
            exact: KeyChoice::None,
            window: Window::default(),
            programs: Vec::new(),
        };
        Ok(attention.prepared())
    }

    /// With the programs that the options ask for.
    #[inline(never)]
    pub(in super::super) fn prepared(mut self) -> Self {
        let bare = self.normalised && self.exact == KeyChoice::None && self.window.is_none();
        let program = |map: &Map<T>| if bare { map.program().bare(Side::X) } else { map.program().clone() };
        self.programs = self.maps.iter().map(program).collect();
        self
    }

    /// Sets the scale: logits are q·k·`scale`; after [`cosine`](Attention::with_cosine) for `scale` times the cosine.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the scale is positive and finite.
    pub fn with_scale(mut self, scale: f64) -> Result<Self> {
        self.reading.factor = TokenScale::of_scale(scale)?.factor;
        Ok(self)
    }

    /// Takes cosines: logits are q·k/(‖q‖ ‖k‖ `temperature`), instead of any scale. A zero vector stays zero: it attends to all
    /// alike.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the temperature is positive and finite.
    pub fn with_cosine(mut self, temperature: f64) -> Result<Self> {
        self.reading =
            Reading { epsilon: self.reading.epsilon, ..Reading::new(TokenScale::of_cosine(temperature)?) };
        Ok(self)
    }

    /// Leaves outputs undivided: they are Σⱼ K̂(q, kⱼ) vⱼ, which is ±∞ or 0 where it leaves the range of `T`. With hybrids of norms
    /// of 10¹⁰ and more they are NaN, where parts of a sum are ∞ − ∞.
    #[must_use]
    pub fn without_normalisers(mut self) -> Self {
        self.normalised = false;
        self.prepared()
    }

    /// Adds ε, which is **biased**, to every feature ψ of a key, which has its factor m^(−½), and ε maxⱼ φⱼ(q) to every feature of a query.
    /// Nothing here needs it. The reference code of FAVOR+ adds such an ε against division by 0, for keys relative to the
    /// largest feature of all keys, future ones included.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless ε is at least 0 and finite.
    pub fn with_biased_epsilon(mut self, epsilon: f64) -> Result<Self> {
        self.reading.epsilon = checked_not_negative("ε", epsilon)?;
        Ok(self)
    }

    /// The maps: one, or one for each head of keys.
    pub fn maps(&self) -> &[Map<T>] {
        &self.maps
    }

    /// Whether both have the same outputs.
    pub(in super::super) fn is_same(&self, other: &Self) -> bool {
        self.maps.len() == other.maps.len()
            && self.maps.iter().zip(&other.maps).all(|(own, their)| own.same(their))
            && (self.reading, self.normalised, self.window) == (other.reading, other.normalised, other.window)
            && self.exact == other.exact
    }
}

once!(Attention::<T>::signed, Attention::<T>::prepared);

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::{Attention, KeyChoice, Map, Reading, Real, Window};
    use crate::sealed::sealed_fields;

    sealed_fields! {
        Attention<T>, T,
        #[serde(rename = "Attention", bound = "")]
        struct StoredAttention {
            maps: Vec<Map<T>>,
            reading: Reading,
            normalised: bool,
            exact: KeyChoice,
            window: Window,
        }
    }

    impl<T: Real> TryFrom<StoredAttention<T>> for Attention<T> {
        type Error = String;

        fn try_from(stored: StoredAttention<T>) -> Result<Self, String> {
            let StoredAttention { maps, reading, normalised, exact, window: Window { before, after } } =
                stored;
            let whole = Attention::signed(maps).map_err(|error| error.to_string())?;
            let positive = reading.factor > 0.0 && reading.factor.is_finite();
            if !(positive && reading.epsilon >= 0.0 && reading.epsilon.is_finite()) {
                return Err("a scale that is not positive, or an ε that is negative".into());
            }
            let exactly = Attention { reading, normalised, ..whole }.exactly(exact);
            exactly
                .and_then(|attention| attention.with_window(before, after))
                .map_err(|error| error.to_string())
        }
    }
}
