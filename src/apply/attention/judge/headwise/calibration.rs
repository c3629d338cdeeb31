//! [`HeadCalibration`]: the choice of an attention for each head.

use std::collections::BTreeSet;

use super::super::super::input::{Heads, TokenElement};
use super::super::costs::Lengths;
use super::budget::HeadBudget;
use super::trials::{HeadTokens, Trial};
use super::{ChosenHead, HeadwiseAttention};
use crate::Real;
use crate::error::{Error, Result, check_positive, check_size, checked_positive};
use crate::once::once;
use crate::{progress, threads};

/// The choice of an attention for each head of a layer, from queries, keys and values of some sequences and a budget: a pretrained model's
/// attention made linear, without training.
///
/// ```
/// use random_features::ndarray::Array4;
/// use random_features::rand::RngExt;
/// use random_features::apply::attention::{HeadCalibration, HeadBudget, Heads};
/// let mut rng = random_features::rng(1);
/// // Queries, keys and values of two texts, as a layer of two heads has them.
/// let mut token = || rng.random_range(-2f32..2.0);
/// let mut tokens = || Array4::from_shape_simple_fn((2, 2, 64, 8), &mut token);
/// let [q, k, v] = [tokens(), tokens(), tokens()];
/// let texts = Heads::new(&q, &k, &v)?;
/// let layer = HeadCalibration::bidirectional()
///     .with_m(&[32])
///     .choose(&[texts.clone()], HeadBudget::Pairs(8.0))?;
/// println!("{layer}");
/// assert!(layer.pairs() <= 8.0);
/// let out = layer.attend(&texts)?.output;
/// assert_eq!(out.dim(), (2, 2, 64, 8));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Ways that are compared
/// - Features: positive ones, generalised ones (FAVOR++), and features that are [shaped](crate::manual::shaped) by the
///   head's pairs, without a bias or truncated to the best rank. Shaped features need a backend for linear algebra
///   (feature `faer` or `ndarray-linalg`).
/// - Numbers of frequencies: 16 and 64, or [those that are stated](HeadCalibration::with_m).
/// - Windows: 0, 4, 8, 16, 32 or 64 neighbours on either side of a query and its own key; causally twice as many before it. None is wider
///   than a quarter of the keys.
/// - Keys with exact weights: 0, 4 or 16 heaviest ones; causally, the first ones.
/// - The [share of the mean](crate::apply::attention::Attention::with_shrinkage) of the values that is best.
/// - Exact attention.
///
/// # Errors of heads
/// The output of each way is compared with that of exact attention on the calibration sequences. With several
/// sequences, features and shares are chosen from every other sequence and judged on the rest, and then with both
/// halves exchanged. The features and shares that are returned are chosen from all sequences. **With one sequence the
/// errors are those of the tokens that made the choice**, and too small for other texts. Budgets of pairs and of
/// operations are divided among heads so that the sum of all squared errors is small. Errors are absolute in this sum,
/// so that heads with large outputs count for more. In these errors, a query whose normaliser is not positive counts as
/// the mean of the values.
///
/// Take sequences like those to come, without padding: some 400 tokens of each kind of text are enough. Features of a head depend on the
/// calibration sequences alone, so that causal outputs of other texts depend on no later token.
///
/// # Cost
/// A comparison runs exact attention once on every sequence, and linear attention with up to 18 choices of exact pairs
/// for each of four kinds of features and each number of frequencies. With several sequences, shaped features are
/// chosen and run three times.
///
/// # References
/// The choice for each head by a budget is this crate's own.
#[doc(alias = "linearise")]
#[doc(alias = "pretrained")]
#[derive(Clone, Debug, PartialEq)]
pub struct HeadCalibration {
    pub(super) causal: bool,
    pub(super) scale: Option<f64>,
    pub(super) m: Vec<usize>,
    pub(super) seed: u64,
    length: Option<usize>,
}

/// The ways in which each head of a layer may attend, compared on calibration sequences by
/// [`HeadCalibration::compare`]. One comparison serves any number of budgets.
///
/// ```
/// use random_features::ndarray::Array4;
/// use random_features::rand::RngExt;
/// use random_features::apply::attention::{HeadCalibration, HeadBudget, Heads};
/// let mut rng = random_features::rng(1);
/// let token = || rng.random_range(-2f32..2.0);
/// let x = Array4::from_shape_simple_fn((1, 2, 64, 8), token);
/// let ways = HeadCalibration::bidirectional()
///     .with_m(&[16])
///     .compare::<f32, _>(&[Heads::new(&x, &x, &x)?])?;
/// for pairs in [0.0, 8.0, 64.0] {
///     println!("{}", ways.choose(HeadBudget::Pairs(pairs))?);
/// }
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct HeadComparison<T: Real> {
    heads: Vec<Vec<Trial<T>>>,
    causal: bool,
    scale: Option<f64>,
    /// d, the dimension of queries and keys.
    dim: usize,
}

/// The numbers of frequencies unless they are stated.
const FREQUENCIES: [usize; 2] = [16, 64];

impl HeadCalibration {
    /// The choice for heads in which queries attend to all keys, with 16 or 64 frequencies and logits q·k/√d.
    pub fn bidirectional() -> Self {
        HeadCalibration { causal: false, scale: None, m: FREQUENCIES.to_vec(), seed: 0, length: None }
    }

    /// The choice for heads in which queries attend to the keys up to their own place, with 16 or 64 frequencies and logits q·k/√d.
    pub fn causal() -> Self {
        HeadCalibration { causal: true, ..Self::bidirectional() }
    }

    /// Sets the numbers m of frequencies that are compared: 16 and 64 unless stated. Budgets of operations and of an
    /// error take the cost of frequencies into account; a budget of pairs does not.
    /// [`compare`](HeadCalibration::compare) refuses an empty list and 0.
    #[must_use]
    pub fn with_m(self, m: &[usize]) -> Self {
        let distinct = BTreeSet::from_iter(m.iter().copied());
        HeadCalibration { m: distinct.into_iter().collect(), ..self }
    }

    /// Sets the scale: logits are q·k·`scale` instead of q·k/√d.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the scale is positive and finite.
    pub fn with_scale(self, scale: f64) -> Result<Self> {
        Ok(HeadCalibration { scale: Some(checked_positive("the scale of the logits", scale)?), ..self })
    }

    /// Sets the seed of all frequencies, which is 0 unless stated.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        HeadCalibration { seed, ..self }
    }

    /// Sets the length of sequences for which operations and pairs are counted: the mean length of the calibration sequences unless stated.
    /// Errors, and the windows that are tried, are those of the calibration sequences. [`compare`](HeadCalibration::compare) refuses 0.
    #[must_use]
    pub fn with_length(self, length: usize) -> Self {
        HeadCalibration { length: Some(length), ..self }
    }

    /// The attention of each head of keys for these calibration sequences and this budget. Each batch is a sequence:
    /// [`compare`](HeadCalibration::compare) and [`HeadComparison::choose`] in one call.
    ///
    /// # Errors
    /// The errors of both.
    pub fn choose<T: Real, E: TokenElement<T>>(
        &self,
        sequences: &[Heads<'_, E>],
        budget: HeadBudget,
    ) -> Result<HeadwiseAttention<T>> {
        budget.check()?;
        self.compare(sequences)?.choose(budget)
    }

    /// Compares the ways of each head of keys on these calibration sequences, for any budget.
    ///
    /// Each batch counts as one sequence when sequences are divided into two halves, even if
    /// [several](Heads::with_sequences) are packed in it.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without sequences or with one that is empty, [`Shape`](Error::Shape) if heads or dimensions of sequences differ,
    /// or, causally, a sequence has another number of keys than of queries; [`Parameter`](Error::Parameter) if an m or the
    /// [length](HeadCalibration::with_length) is 0, or there is no m;
    /// [`NotFinite`](Error::NotFinite) if a token or an output is not finite; the errors of
    /// [`Attention::bidirectional`](crate::apply::attention::Attention::bidirectional), of [`Shaping::of_pairs`](crate::data::shaping::Shaping::of_pairs)
    /// and of a draw. [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    #[inline(never)]
    pub fn compare<T: Real, E: TokenElement<T>>(
        &self,
        sequences: &[Heads<'_, E>],
    ) -> Result<HeadComparison<T>> {
        check_positive("how many numbers of frequencies are compared", self.m.len())?;
        for m in &self.m {
            check_positive("the number of frequencies", *m)?;
        }
        let lengths = self.lengths(sequences)?;
        let of_head = |head| {
            progress::check()?;
            HeadTokens::new(sequences, head, self)?.trials(self, lengths)
        };
        let (_, count, _, dim) = sequences[0].keys.dim();
        let heads: Vec<Vec<Trial<T>>> = threads::map(0..count, of_head).into_iter().collect::<Result<_>>()?;
        let largest = heads.iter().flatten().map(Trial::largest).fold(0.0, f64::max);
        let in_unit =
            |trials: Vec<Trial<T>>| trials.into_iter().map(|trial| trial.in_unit(largest)).collect();
        let heads = heads.into_iter().map(in_unit).collect();
        Ok(HeadComparison { heads, causal: self.causal, scale: self.scale, dim })
    }

    /// The lengths for which costs are counted; refuses sequences that do not fit together.
    fn lengths<E>(&self, sequences: &[Heads<'_, E>]) -> Result<Lengths> {
        let none = Error::NoData { what: "the choice of an attention for each head" };
        let Some(first) = sequences.first() else { return Err(none) };
        let ((_, h, _, d), (_, of_keys, _, d_v)) = (first.queries.dim(), first.values.dim());
        let (mut count, mut queries, mut keys) = (0, 0, 0);
        for heads in sequences {
            check_size("the number of heads of the queries of a sequence", h, heads.queries.dim().1)?;
            check_size("the number of heads of the keys of a sequence", of_keys, heads.keys.dim().1)?;
            check_size("the dimension of the queries of a sequence", d, heads.queries.dim().3)?;
            check_size("the dimension of the values of a sequence", d_v, heads.values.dim().3)?;
            if self.causal {
                heads.check_causal()?;
            }
            let (batch, ranges) = (heads.queries.dim().0, heads.ranges());
            if batch == 0 || ranges.iter().any(|(queries, keys)| queries.is_empty() || keys.is_empty()) {
                return Err(none);
            }
            count += batch * ranges.len();
            queries += batch * heads.queries.dim().2;
            keys += batch * heads.keys.dim().2;
        }
        check_positive("the number of heads of the keys", of_keys)?;
        check_positive("the number of heads of the queries", h)?;
        check_positive("the dimension of the queries", d)?;
        self.length
            .map_or(Ok(()), |length| check_positive("the length for which costs are counted", length))?;
        let mean = |total: usize| self.length.unwrap_or(total.div_ceil(count).max(1));
        Ok(Lengths { queries: mean(queries), keys: mean(keys), causal: self.causal })
    }

    /// The factor from queries and keys to points.
    pub(super) fn factor(&self, d: usize) -> f64 {
        self.scale.unwrap_or((d as f64).sqrt().recip()).sqrt()
    }
}

impl<T: Real> HeadComparison<T> {
    /// The attention of each head of keys for this budget.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the budget is negative, not finite or below the operations of the cheapest ways.
    #[inline(never)]
    pub fn choose(&self, budget: HeadBudget) -> Result<HeadwiseAttention<T>> {
        budget.check()?;
        let fronts: Vec<Vec<&Trial<T>>> = self.heads.iter().map(|trials| budget.front(trials)).collect();
        let chosen = budget.select(&fronts)?;
        let heads = fronts.into_iter().zip(chosen).map(|(ways, i)| ChosenHead {
            attention: ways[i].attention.clone(),
            chosen: ways[i].candidate.clone(),
            alternatives: ways.into_iter().map(|way| way.candidate.clone()).collect(),
        });
        let HeadComparison { causal, scale, dim, .. } = *self;
        Ok(HeadwiseAttention { heads: heads.collect(), causal, scale, dim })
    }
}

once!(HeadCalibration::compare::<T, T>, HeadComparison::<T>::choose);
