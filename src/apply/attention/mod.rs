//! Softmax attention in linear time: [`Attention`], beside [`ExactAttention`].
//!
//! Attention gives each query the mean of the values, weighted by exp(q·k·scale). With features, φ(q)·ψ(k) stands for the
//! weights, so the sums Σⱼ ψ(kⱼ) \[vⱼ, 1\] are all that is kept of the keys: time O(L m (d + d_v)) and memory O(m d_v) instead
//! of O(L² (d + d_v)).

mod decode;
mod features;
mod gradient;
mod input;
mod inspect;
mod judge;
mod linear;
mod pairs;

pub use self::decode::{CausalState, Step};
pub use self::gradient::Gradients;
pub(crate) use self::input::TokenScale;
pub use self::input::{Element, Heads};
pub use self::inspect::WeightRows;
pub use self::judge::{AttentionCandidate, AttentionChoice, ErrorReport, Sample, Way};
pub(crate) use self::judge::{AttentionCosts, ExactPairs, Redraws, closed_errors, simulated_errors};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub use self::judge::{AttentionShape, AttentionShaping};
pub use self::pairs::ExactAttention;

use ndarray::{Array3, Array4, ArrayRef, Ix4};

use self::features::Setup;
use self::input::{Job, Reading, Window};
use self::linear::{Places, Sequence, bytes_of_estimate};
use self::pairs::KeyChoice;
use crate::Real;
use crate::engine::{Program, Side};
use crate::error::{Error, Result, check_positive, check_size, checked_not_negative};
use crate::map::Map;
use crate::memory::check_memory;
use crate::once::once;
use crate::{progress, threads};

/// Linear attention (FAVOR+, FAVOR++ and whatever else has features), bidirectional or causal. Approximate: a map's
/// estimates of exp(q·k·scale) stand for the weights, and their ratio is biased by O(1/m) even where they are not.
///
/// # Definition
/// out(q) = Σⱼ K̂(q, kⱼ) vⱼ / Σⱼ K̂(q, kⱼ) with K̂(q, k) = φ(√s q)·ψ(√s k), s = 1/√d unless
/// [stated otherwise](Attention::scale), over all keys or, causally, those up to the query's own place. The map is one of
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
/// Weights of [chosen keys](Attention::with_keys_exact) and of [neighbours](Attention::window) may be computed exactly; features are
/// left with the other pairs. Which of exact, windowed and linear attention is the cheapest for an error is
/// [estimated](Attention::choose) from a sample.
///
/// # Normalisers
/// A query whose normaliser Σⱼ K̂(q, kⱼ) is not positive gets the output 0 and is [reported](Attended::non_positive). With
/// non-negative features that happens only where all weights are 0. A query that sees no key gets 0 and is not reported.
/// A query or a key that is not finite makes the outputs NaN that may see it, and no others (where weights are exact, an
/// infinite coordinate counts through its logits: those of −∞ have the weight 0); a value that is not finite does so, or
/// makes them infinite, in its own coordinate. Whether normalisers rest on many features or on a few is said
/// [on request](Attention::diagnosed), and what error to expect [before](Attention::error_report).
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
/// use random_features::frequency::{Coupling, Orthogonal};
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
    maps: Vec<Map<T>>,
    reading: Reading,
    normalised: bool,
    exact: KeyChoice,
    window: Window,
    /// The maps' programs, without factors of queries that the normaliser cancels.
    programs: Vec<Program<T>>,
}

/// What attention gives.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Attended<T> {
    /// \[batch, heads, queries, d_v\].
    pub output: Array4<T>,
    /// Batch, head and row of queries whose normaliser was not positive, in order; their output is 0.
    pub non_positive: Vec<[usize; 3]>,
    /// \[batch, heads, queries\]: the [effective number of features](Attention::diagnosed) behind each normaliser, if it was
    /// asked for.
    pub effective_features: Option<Array3<T>>,
}

impl<T> Attended<T> {
    /// Without effective numbers of features.
    fn new(output: Array4<T>, non_positive: Vec<[usize; 3]>) -> Self {
        Attended { output, non_positive, effective_features: None }
    }
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
    /// normaliser falls to 0. Rows whose normaliser is not positive get 0 and are [reported](Attended::non_positive).
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there is no map, or maps are of different dimensions.
    #[inline(never)]
    pub fn signed(maps: Vec<Map<T>>) -> Result<Self> {
        check_positive("the number of maps", maps.len())?;
        let d = maps[0].input_dim();
        maps.iter().try_for_each(|map| {
            check_size("the dimension of a map, which is that of the first,", d, map.input_dim())
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
    fn prepared(mut self) -> Self {
        let bare = self.normalised && self.exact == KeyChoice::None && self.window.is_none();
        let program = |map: &Map<T>| if bare { map.program().bare(Side::X) } else { map.program().clone() };
        self.programs = self.maps.iter().map(program).collect();
        self
    }

    /// The same for logits q·k·`scale`; after [`cosine`](Attention::cosine) for `scale` times the cosine.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the scale is positive and finite.
    pub fn scale(mut self, scale: f64) -> Result<Self> {
        self.reading.factor = TokenScale::of_scale(scale)?.factor;
        Ok(self)
    }

    /// The same for logits q·k/(‖q‖ ‖k‖ `temperature`), instead of any scale. A zero vector stays zero: it attends to all
    /// alike.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the temperature is positive and finite.
    pub fn cosine(mut self, temperature: f64) -> Result<Self> {
        self.reading =
            Reading { epsilon: self.reading.epsilon, ..Reading::new(TokenScale::of_cosine(temperature)?) };
        Ok(self)
    }

    /// Whether outputs are divided by their normaliser, as they are by default. Without, they are Σⱼ K̂(q, kⱼ) vⱼ, which is
    /// ±∞ or 0 where it leaves the range of `T`; with hybrids of norms of 10¹⁰ and more NaN, where parts of a sum are ∞ − ∞.
    pub fn normalised(mut self, normalised: bool) -> Self {
        self.normalised = normalised;
        self.prepared()
    }

    /// Biased: adds ε to every feature ψ of a key, which has its factor m^(−½), and ε maxⱼ φⱼ(q) to every feature of a query.
    /// Nothing here needs it. The reference code of FAVOR+ adds such an ε against division by 0, for keys relative to the
    /// largest feature of all keys, future ones included.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless ε is at least 0 and finite.
    pub fn biased_epsilon(mut self, epsilon: f64) -> Result<Self> {
        self.reading.epsilon = checked_not_negative("ε", epsilon)?;
        Ok(self)
    }

    /// The maps: one, or one for each head of keys.
    pub fn maps(&self) -> &[Map<T>] {
        &self.maps
    }

    /// Every query attends to all keys.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if dimensions or heads are not those of the maps, [`Memory`](Error::Memory) if there is no memory for the
    /// output or for sums over keys, [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    pub fn bidirectional<E: Element<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        heads.check_output::<T>(0)?;
        let mut output = Array4::zeros(heads.output_dim());
        let non_positive = self.bidirectional_into(heads, &mut output)?;
        Ok(Attended::new(output, non_positive))
    }

    /// As [`bidirectional`](Attention::bidirectional), into an array of yours; the places of normalisers that are not
    /// positive.
    ///
    /// # Errors
    /// As [`bidirectional`](Attention::bidirectional), or if `out` does not fit. Nothing is written then, but if it is
    /// [`Cancelled`](Error::Cancelled): `out` holds some of the outputs then.
    pub fn bidirectional_into<E: Element<T>>(
        &self,
        heads: &Heads<'_, E>,
        out: &mut ArrayRef<T, Ix4>,
    ) -> Result<Vec<[usize; 3]>> {
        self.check(heads, out)?;
        self.attend(heads.jobs(out.view_mut()), false)
    }

    /// Every query attends to the keys up to its own place.
    ///
    /// # Errors
    /// As [`bidirectional`](Attention::bidirectional); [`Shape`](Error::Shape) if a sequence has another number of keys than of queries.
    pub fn causal<E: Element<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        heads.check_output::<T>(0)?;
        let mut output = Array4::zeros(heads.output_dim());
        let non_positive = self.causal_into(heads, &mut output)?;
        Ok(Attended::new(output, non_positive))
    }

    /// As [`causal`](Attention::causal), into an array of yours; the places of normalisers that are not positive.
    ///
    /// # Errors
    /// As [`causal`](Attention::causal), or if `out` does not fit. Nothing is written then, but if it is
    /// [`Cancelled`](Error::Cancelled): `out` holds some of the outputs then.
    pub fn causal_into<E: Element<T>>(
        &self,
        heads: &Heads<'_, E>,
        out: &mut ArrayRef<T, Ix4>,
    ) -> Result<Vec<[usize; 3]>> {
        self.check(heads, out)?;
        heads.check_causal()?;
        self.check_causal()?;
        self.attend(heads.jobs(out.view_mut()), true)
    }

    /// Writes the outputs of jobs.
    #[inline(never)]
    fn attend(&self, jobs: Vec<Job<'_, T>>, causal: bool) -> Result<Places> {
        let ways = ways(jobs.len());
        let of_job = |job: Job<'_, T>| {
            if progress::is_stopped() {
                return Places::new();
            }
            let setup = Setup { causal, ..self.setup(job.head) };
            self.with_exact(setup, job, |setup, job| linear::attend(setup, job, ways))
        };
        let places = in_order(threads::map(jobs, of_job));
        // What was stopped has left out the rest.
        progress::check().map(|()| places)
    }

    fn setup(&self, head: usize) -> Setup<'_, T> {
        let program = &self.programs[head % self.maps.len()];
        let (reading, normalised) = (&self.reading, self.normalised);
        Setup { program, reading, normalised, exact: None, near: None, causal: true, swapped: false }
    }

    /// Whether both have the same outputs.
    fn is_same(&self, other: &Self) -> bool {
        self.maps.len() == other.maps.len()
            && self.maps.iter().zip(&other.maps).all(|(own, their)| own.same(their))
            && (self.reading, self.normalised, self.window) == (other.reading, other.normalised, other.window)
            && self.exact == other.exact
    }

    fn check<E>(&self, heads: &Heads<'_, E>, out: &ArrayRef<T, Ix4>) -> Result<()> {
        self.check_inputs(heads)?;
        check_output(heads, out)?;
        self.check_work(heads)
    }

    /// Refuses heads for which there is no memory to work in: for sums over keys on each thread, and for what is kept of keys and queries
    /// where some weights are exact.
    #[inline(never)]
    fn check_work<E>(&self, heads: &Heads<'_, E>) -> Result<()> {
        heads.check_count::<T>()?;
        let ((_, h, n, d), (_, of_keys, l, d_v)) = (heads.queries.dim(), heads.values.dim());
        let width = self.maps.iter().map(Map::feature_dim).fold(1, usize::max);
        let sums = Sequence::<T>::bytes(width, [d, d_v]).saturating_mul(threads::count());
        check_memory("bytes of sums over keys", sums, 1)?;
        check_memory("keys of which some have exact weights", l, self.exact.bytes_of_key::<T>(d))?;
        if self.window.is_none() {
            return Ok(());
        }
        let queries = (h / of_keys.max(1)).saturating_mul(n);
        check_memory("estimates of the keys behind windows", queries, bytes_of_estimate(d_v))
    }

    fn check_inputs<E>(&self, heads: &Heads<'_, E>) -> Result<()> {
        check_size("the dimension of the queries", self.maps[0].input_dim(), heads.queries.dim().3)?;
        if self.maps.len() > 1 {
            check_size(HEADS_WITH_MAPS, self.maps.len(), heads.keys.dim().1)?;
        }
        Ok(())
    }
}

/// What must be as many as maps.
const HEADS_WITH_MAPS: &str = "the number of heads of the keys, of which each has its own map,";

/// Checks the sizes of the output.
fn check_output<E, T>(heads: &Heads<'_, E>, out: &ArrayRef<T, Ix4>) -> Result<()> {
    let what = [
        "the batch size of the output",
        "the number of heads of the output",
        "the length of the output",
        "the dimension of the output",
    ];
    check_shape(what, out.shape(), heads.output_dim())
}

/// Checks the sizes of an array, which are called `what`.
fn check_shape<const N: usize>(what: [&'static str; N], found: &[usize], expected: [usize; N]) -> Result<()> {
    let sizes = expected.into_iter().zip(found);
    what.into_iter().zip(sizes).try_for_each(|(what, (expected, found))| check_size(what, expected, *found))
}

/// Threads for each of some jobs.
fn ways(jobs: usize) -> usize {
    threads::count().div_ceil(jobs.max(1))
}

fn in_order(places: Vec<Places>) -> Places {
    let mut places = places.concat();
    places.sort_unstable();
    places
}

once!(Attention::<T>::attend, Attention::<T>::signed, Attention::<T>::prepared);

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
            exactly.and_then(|attention| attention.window(before, after)).map_err(|error| error.to_string())
        }
    }
}
