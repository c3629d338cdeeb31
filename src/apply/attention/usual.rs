//! Attention in one call: the usual maps, drawn from a seed.

use ndarray::Array2;

use super::input::{Attention, Heads, Job, TokenElement};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use super::judge::AttentionShaping;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use crate::data::shaping::Shaping;
use crate::data::{PairStatistics, Statistics};
use crate::error::{Error, Result};
use crate::frequency::{Frequencies, Orthogonal, Simplex};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use crate::kernel::Softmax;
use crate::memory::check_memory;
use crate::numeric::matrix_of;
use crate::once::once;
use crate::theory::gerf::GerfSign;
use crate::{Gerf, Positive, Real};

/// Queries whose exact weights say how a shape is chosen.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
const ROWS: usize = 64;

/// The queries and the keys of a head of keys, over all batches.
type HeadPoints<T> = [Array2<T>; 2];

impl<T: Real> Attention<T> {
    /// Attention with positive features of orthogonal frequencies (FAVOR+, the attention of Performers), for queries and keys in ℝᵈ
    /// and logits q·k/√d.
    ///
    /// ```
    /// use random_features::ndarray::Array4;
    /// use random_features::apply::attention::{Attention, Heads};
    /// let attention = Attention::<f32>::favor_plus(16, 256, 7)?;
    /// let x = Array4::<f32>::ones((1, 2, 100, 16));
    /// let v = Array4::ones((1, 2, 100, 8));
    /// let out = attention.causal(&Heads::new(&x, &x, &v)?)?.output;
    /// assert_eq!(out.dim(), (1, 2, 100, 8));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Features have no bias and are never negative. Begin with m = 256 of them, or 64 while a model trains with them.
    /// Where ‖q‖²/√d or ‖k‖²/√d is above 2, [`shaped`](Attention::shaped) features err less: outputs do not show it,
    /// but [`error_report`](Attention::error_report) does. The call is short for
    /// `Attention::new(Positive.softmax(Orthogonal.draw(d, m, seed)?)?)`.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if d or m is 0, and the other errors of a draw.
    #[doc(alias = "FAVOR+")]
    #[doc(alias = "Performer")]
    #[inline(never)]
    pub fn favor_plus(d: usize, m: usize, seed: u64) -> Result<Self> {
        Attention::new(Positive.softmax(Orthogonal.draw(d, m, seed)?)?)
    }

    /// Attention with positive features of simplex frequencies (SimRF), for queries and keys in ℝᵈ and logits q·k/√d.
    ///
    /// ```
    /// use random_features::apply::attention::Attention;
    /// let attention = Attention::<f32>::simplex(16, 256, 7)?;
    /// assert_eq!(attention.maps()[0].feature_dim(), 256);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Features have no bias and are never negative. Their errors are somewhat smaller than those of
    /// [`favor_plus`](Attention::favor_plus), most of all in few dimensions. The call is short for
    /// `Attention::new(Positive.softmax(Simplex::default().draw(d, m, seed)?)?)`.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if d or m is 0, and the other errors of a draw.
    #[doc(alias = "SimRF")]
    #[inline(never)]
    pub fn simplex(d: usize, m: usize, seed: u64) -> Result<Self> {
        Attention::new(Positive.softmax(Simplex::default().draw(d, m, seed)?)?)
    }

    /// Attention with optimal positive features (FAVOR++, OPRF) of orthogonal frequencies, whose parameter A is chosen for these queries
    /// and keys, and logits q·k/√d.
    ///
    /// ```
    /// use random_features::ndarray::Array4;
    /// use random_features::apply::attention::{Attention, Heads};
    /// let x = Array4::<f32>::from_elem((1, 2, 100, 16), 0.5);
    /// let heads = Heads::new(&x, &x, &x)?;
    /// let attention = Attention::favor_plus_plus(&heads, 256, 7)?;
    /// let out = attention.bidirectional(&heads)?.output;
    /// assert_eq!(out.dim(), (1, 2, 100, 16));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Each head of keys has a map of its own, with the A of [`Gerf::optimal`] for the mean of ‖q + k‖²/√d over its pairs; all heads
    /// have the same frequencies. Queries and keys of all batches count, but no masked keys. Features have no bias, since frequencies
    /// do not depend on the tokens.
    ///
    /// Causal outputs depend on later tokens through A. Choose it from other texts if they must not.
    ///
    /// # Errors
    /// [`NoData`](crate::Error::NoData) if a head has no queries or no keys, [`NotFinite`](crate::Error::NotFinite) if a squared norm is
    /// not finite, [`Parameter`](crate::Error::Parameter) if d, m or the number of heads is 0, [`Memory`](crate::Error::Memory) if there
    /// is no memory for a copy of queries and keys, and the other errors of a draw.
    #[doc(alias = "FAVOR++")]
    #[doc(alias = "OPRF")]
    pub fn favor_plus_plus<E: TokenElement<T>>(heads: &Heads<'_, E>, m: usize, seed: u64) -> Result<Self> {
        let omega = Orthogonal.draw(heads.queries.dim().3, m, seed)?;
        Self::of_squared_sums(&heads.tokens()?, &omega)
    }

    #[inline(never)]
    fn of_squared_sums(heads: &[HeadPoints<T>], omega: &Frequencies) -> Result<Self> {
        let map = |[queries, keys]: &HeadPoints<T>| {
            let (x, y) = (statistics("the queries", queries)?, statistics("the keys", keys)?);
            let (sum, d) = (PairStatistics::new(&x, &y)?.mean_squared_sum(GerfSign::Plus), omega.dim());
            Gerf::optimal(d, sum / (d as f64).sqrt())?.softmax(omega.clone())
        };
        Attention::per_head(heads.iter().map(map).collect::<Result<_>>()?)
    }

    /// Attention with features that are shaped by these queries and keys, with orthogonal frequencies and logits q·k/√d: for large
    /// queries and keys, as trained models have them.
    ///
    /// ```
    /// use random_features::ndarray::Array4;
    /// use random_features::apply::attention::{Attention, Heads};
    /// let x = Array4::<f32>::from_elem((1, 2, 100, 16), 0.5);
    /// let heads = Heads::new(&x, &x, &x)?;
    /// let attention = Attention::shaped(&heads, 256, 7)?;
    /// let out = attention.bidirectional(&heads)?.output;
    /// assert_eq!(out.dim(), (1, 2, 100, 16));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Each head of keys has the shape that [`AttentionShaping`] chooses with its default options from 64 of its
    /// queries; all heads have the same frequencies. The shape is chosen from the queries and the keys of all batches,
    /// without masked keys. Features have no bias, since frequencies do not depend on the tokens. The guide on [shaped
    /// features](crate::manual::shaped) says when they are worth it.
    ///
    /// Causal outputs depend on later tokens through the shape. Choose it from other texts if they must not.
    ///
    /// # Errors
    /// [`NoData`](crate::Error::NoData) if a head has no queries or no keys, [`NotFinite`](crate::Error::NotFinite) if a squared norm is
    /// not finite, [`Parameter`](crate::Error::Parameter) if d, m or the number of heads is 0, [`Memory`](crate::Error::Memory) if there
    /// is no memory for copies of queries and keys, and the other errors of [`AttentionShaping::choose`] and of a draw.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn shaped<E: TokenElement<T>>(heads: &Heads<'_, E>, m: usize, seed: u64) -> Result<Self> {
        let omega = Orthogonal.draw(heads.queries.dim().3, m, seed)?;
        Self::of_shapes(&heads.tokens()?, &omega)
    }

    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    #[inline(never)]
    fn of_shapes(heads: &[HeadPoints<T>], omega: &Frequencies) -> Result<Self> {
        let shaping = AttentionShaping::new(Shaping::new());
        let map = |[queries, keys]: &HeadPoints<T>| {
            let (shape, _) = shaping.choose(queries, keys, ROWS, 0)?;
            shape.build(omega.clone(), Softmax::default())
        };
        Attention::per_head(heads.iter().map(map).collect::<Result<_>>()?)
    }
}

/// Statistics of the tokens of a head on one side, which is named in errors.
fn statistics<T: Real>(side: &'static str, tokens: &Array2<T>) -> Result<Statistics> {
    if tokens.is_empty() {
        return Err(Error::NoData { what: "the choice of A for the tokens of a head" });
    }
    Statistics::of(tokens).map_err(|error| error.of_array(side))
}

impl<E> Heads<'_, E> {
    /// The queries of each head of keys, and the keys that are not masked, over all batches.
    fn tokens<T: Real>(&self) -> Result<Vec<HeadPoints<T>>>
    where
        E: TokenElement<T>,
    {
        let ((b, h, n, d), (_, of_keys, l, _)) = (self.queries.dim(), self.keys.dim());
        let rows = h.saturating_mul(n).saturating_add(of_keys.saturating_mul(l));
        check_memory("queries and keys", b.saturating_mul(rows), d.saturating_mul(size_of::<T>()))?;
        self.check_count::<T>()?;
        let mut tokens = vec![[Vec::new(), Vec::new()]; of_keys];
        for Job { head, keys, queries } in self.jobs() {
            let [of_queries, of_keys] = &mut tokens[head];
            queries.iter().for_each(|queries| queries.rows.read(T::one(), of_queries));
            let seen: Vec<usize> = (0..keys.len()).filter(|j| keys.sees(*j)).collect();
            of_keys.extend(keys.keys.select(&seen));
        }
        let matrix = |numbers: Vec<T>| matrix_of(numbers.len() / d.max(1), d, numbers);
        Ok(tokens.into_iter().map(|sides| sides.map(matrix)).collect())
    }
}

once!(Attention::<T>::favor_plus, Attention::<T>::simplex, Attention::<T>::of_squared_sums);

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
once!(Attention::<T>::of_shapes);
