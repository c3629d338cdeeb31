//! [`Attention`]: linear attention as an immutable value, which methods in the other rooms run.

use super::exact_pairs::KeyChoice;
use super::exact_pairs::Window;
use super::reading::Reading;
use super::reading::TokenScale;
use super::shrinkage::Shrinkage;
use crate::Real;
use crate::engine::{Program, Side};
use crate::error::{Error, Result, check_positive, check_size};
use crate::map::Map;
use crate::once::once;

/// Softmax attention in linear time, bidirectional or causal. Approximate: a map's features estimate the weights exp(q·k·scale).
///
/// ```
/// use random_features::ndarray::Array4;
/// use random_features::apply::attention::{Attention, Heads};
/// // Queries, keys and values, [batch, heads, length, dim].
/// let q = Array4::<f32>::ones((1, 2, 100, 16));
/// let k = Array4::ones((1, 2, 80, 16));
/// let v = Array4::<f32>::ones((1, 2, 80, 8));
/// let attention = Attention::<f32>::favor_plus(16, 256, 7)?;
/// let out = attention.bidirectional(&Heads::new(&q, &k, &v)?)?.output;
/// assert_eq!(out.dim(), (1, 2, 100, 8));
/// let causal = attention.causal(&Heads::new(&k, &k, &v)?)?.output;
/// assert_eq!(causal.dim(), (1, 2, 80, 8));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Arrays are \[batch, heads, length, dim\]: queries \[b, h, n, d\], keys \[b, h′, l, d\], values \[b, h′, l, d_v\] and outputs
/// \[b, h, n, d_v\]. Keys and values may have fewer heads than queries, as [`Heads`](super::super::Heads) says.
///
/// # Where to begin
/// | attention | features | choose it |
/// |---|---|---|
/// | [`favor_plus`](Attention::favor_plus) | positive, orthogonal (FAVOR+) | to begin with |
/// | [`simplex`](Attention::simplex) | positive, simplex (SimRF) | for somewhat smaller errors |
/// | [`favor_plus_plus`](Attention::favor_plus_plus) | optimal positive (FAVOR++) | if tokens are at hand |
/// | `shaped` | shaped by the tokens | where ‖q‖²/√d or ‖k‖²/√d is above 2; it is √d for standard normal tokens |
/// | [`new`](Attention::new), [`signed`](Attention::signed) | your map | for everything else |
///
/// Begin with 256 features at d = 64, or 64 while a model trains with them. Outputs do not show when that is too few:
/// [`error_report`](Attention::error_report) states the error to expect for a sample of your tokens, and
/// [`choose`](Attention::choose) says whether exact attention is cheaper. [`state`](Attention::state) decodes token by
/// token. [`causal_backward`](Attention::causal_backward) gives gradients, and
/// [`causal_recorded`](Attention::causal_recorded) gives outputs and a tape that makes them cheaper.
///
/// # Definition
/// out(q) = Σⱼ K̂(q, kⱼ) vⱼ / Σⱼ K̂(q, kⱼ) with K̂(q, k) = φ(√s q)·ψ(√s k). The scale s is 1/√d unless
/// [stated otherwise](Attention::with_scale). Sums are over all keys or, causally, those up to the query's own place.
///
/// The map should estimate the kernel exp(x·y) with lengthscale 1, since queries and keys are multiplied by √s before
/// it is applied. A lengthscale ℓ of the map divides them once more, so that the scale becomes s/ℓ². The output, a
/// ratio of two estimates, has a bias of O(1/m) even where the estimates have none.
///
/// # Accuracy
/// Features, and products of features and values, are computed in `T`. Sums over tokens are in `f64`, each relative to the largest
/// feature so far. Normalisers neither overflow nor underflow while squared norms of tokens fit `f64`; the error does not grow with
/// the length, and no ε is added. Sums of values must fit `f64`. Results are bit-identical on any number of threads. A causal output
/// depends on no later token, not even in its last bit.
///
/// Matrix products in `T` sum up keys whose features they hold without loss. A key with other features is added in
/// `f64`, from the logarithms of its features, and so are the keys after it in its chunk of 64 tokens. This takes four
/// to seven times as long. It happens to keys whose smallest feature is lost in `T` beside their largest, as at norms
/// of some 8 in `f32`. It also happens in chunks with a feature of 0 whose keys differ too much in their largest
/// features, and to values beyond √MAX for the largest number MAX of `T`. Queries whose features differ too much are
/// answered in `f64` too.
///
/// # Exact weights
/// Weights of [chosen keys](Attention::with_keys_exact) and of [neighbours](Attention::with_window) may be computed exactly. Features
/// estimate the other pairs.
///
/// # Normalisers
/// A query whose normaliser Σⱼ K̂(q, kⱼ) is not positive gets the output 0 or, with a [share of the
/// mean](Attention::with_shrinkage), the mean of the values. It is [reported](super::super::Attended::non_positive).
/// With non-negative features this happens only where all weights are 0. A query that sees no key gets 0 and is not
/// reported. [Effective features](Attention::bidirectional_diagnosed) say on how many features a normaliser rests.
///
/// A query that is not finite makes its own output NaN. A key that is not finite makes the outputs of all queries that
/// may see it NaN, and no others. Where weights are exact, an infinite coordinate counts through its logits: a logit of
/// −∞ has the weight 0. A value that is not finite makes only its own coordinate of outputs NaN or infinite.
///
/// # Cost
/// O(L m (d + d_v)) time for each head, and O(m d_v) memory for each thread beyond the output. Where there are fewer
/// heads than threads, several threads share a head, and hold features and sums of 16 chunks of 64 tokens for it.
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, Algorithm 1; Likhosherstov et al., *Chefs' Random Tables*.
#[doc(alias = "linear attention")]
#[doc(alias = "Performer")]
#[doc(alias = "FAVOR+")]
#[doc(alias = "FAVOR++")]
#[derive(Clone, Debug)]
pub struct Attention<T: Real> {
    /// One, or one for each head of keys.
    pub(in super::super) maps: Vec<Map<T>>,
    pub(in super::super) reading: Reading,
    pub(in super::super) normalised: bool,
    pub(in super::super) exact: KeyChoice,
    pub(in super::super) window: Window,
    pub(in super::super) shrinkage: Shrinkage,
    /// The most bytes of a [tape](super::super::Tape).
    pub(in super::super) tape: usize,
    /// The maps' programs, without factors of queries that the normaliser cancels.
    pub(in super::super) programs: Vec<Program<T>>,
}

impl<T: Real> Attention<T> {
    /// The most bytes of a tape, unless stated otherwise.
    const TAPE: usize = 256_000_000;

    /// Attention with a given map for all heads, and logits q·k/√d.
    ///
    /// ```
    /// use random_features::Positive;
    /// use random_features::apply::attention::Attention;
    /// use random_features::extend::Coupling;
    /// use random_features::frequency::Orthogonal;
    /// let omega = Orthogonal.draw(16, 256, 7)?;
    /// let attention = Attention::new(Positive.softmax::<f32>(omega)?)?;
    /// # let _ = attention;
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if features may be negative: see [`signed`](Attention::signed).
    pub fn new(map: Map<T>) -> Result<Self> {
        Self::per_head(vec![map])
    }

    /// Attention with a map for each head of keys, and logits q·k/√d.
    ///
    /// # Errors
    /// The errors of [`new`](Attention::new); [`Shape`](Error::Shape) if there is no map, or maps are of different dimensions.
    pub fn per_head(maps: Vec<Map<T>>) -> Result<Self> {
        if maps.iter().any(|map| !map.facts().non_negative) {
            return Err(Error::Unsupported {
                what: "Attention::new and Attention::per_head with features that may be negative: take Attention::signed",
            });
        }
        Self::signed(maps)
    }

    /// Attention with any maps, one for all heads or one for each head of keys, whose features may be negative.
    ///
    /// With negative features (trigonometric ones, many hybrids) weights and normalisers may be negative too. An output need not be a
    /// mean of values then, and grows without bound as its normaliser falls to 0. Rows whose normaliser is not positive get 0 and are
    /// [reported](super::super::Attended::non_positive).
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
            shrinkage: Shrinkage::default(),
            tape: Self::TAPE,
            programs: Vec::new(),
        };
        Ok(attention.prepared())
    }

    /// With the programs that the options ask for.
    #[inline(never)]
    pub(in super::super) fn prepared(mut self) -> Self {
        let program = |map: &Map<T>| {
            if self.may_leave_factors() { map.program().bare(Side::X) } else { map.program().clone() }
        };
        self.programs = self.maps.iter().map(program).collect();
        self
    }

    /// Whether outputs do without factors of queries, since normalisers cancel them.
    pub(in super::super) fn may_leave_factors(&self) -> bool {
        self.normalised && self.exact == KeyChoice::None && self.window.is_none()
    }

    /// Sets the scale: logits are q·k·`scale` instead of q·k/√d; after [`with_cosine`](Attention::with_cosine) they are `scale` times
    /// the cosine.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the scale is positive and finite.
    pub fn with_scale(mut self, scale: f64) -> Result<Self> {
        self.reading.factor = TokenScale::of_scale(scale)?.factor;
        Ok(self)
    }

    /// Takes cosines: logits are q·k/(‖q‖ ‖k‖ `temperature`), instead of any scale. A zero vector stays zero, so that
    /// all its logits are 0.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the temperature is positive and finite.
    pub fn with_cosine(mut self, temperature: f64) -> Result<Self> {
        self.reading = Reading::new(TokenScale::of_cosine(temperature)?);
        Ok(self)
    }

    /// Leaves outputs undivided: they are Σⱼ K̂(q, kⱼ) vⱼ, which is ±∞ or 0 where it leaves the range of `T`. With
    /// hybrid features they may be NaN for queries and keys of norms of 10¹⁰ and more, where parts of a sum are ∞ − ∞.
    #[must_use]
    pub fn without_normalisers(mut self) -> Self {
        self.normalised = false;
        self.prepared()
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
            && (&self.exact, &self.shrinkage) == (&other.exact, &other.shrinkage)
    }
}

once!(Attention::<T>::signed, Attention::<T>::prepared);

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::{Attention, KeyChoice, Map, Reading, Real, Shrinkage, Window};
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
            shrinkage: Shrinkage,
        }
    }

    impl<T: Real> TryFrom<StoredAttention<T>> for Attention<T> {
        type Error = String;

        fn try_from(stored: StoredAttention<T>) -> Result<Self, String> {
            let StoredAttention { maps, reading, normalised, exact, window, shrinkage } = stored;
            let Window { before, after } = window;
            let whole = Attention::signed(maps).map_err(|error| error.to_string())?;
            let is_scale = reading.factor > 0.0 && reading.factor <= Reading::MAX_FACTOR;
            if !is_scale {
                return Err("a scale that is not positive or overflows".into());
            }
            let exactly = Attention { reading, normalised, ..whole }.exactly(exact);
            exactly
                .and_then(|attention| attention.with_window(before, after))
                .and_then(|attention| attention.shrunk(shrinkage))
                .map_err(|error| error.to_string())
        }
    }
}
