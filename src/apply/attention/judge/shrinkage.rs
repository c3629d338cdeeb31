//! Shares of the mean of the values that are best for given tokens.

use ndarray::{Array4, Axis};

use super::super::input::{Attended, Attention, Heads, TokenElement, estimated_lengthscale};
use super::super::pairs::ExactAttention;
use super::headwise::{Fit, completed, means};
use crate::Real;
use crate::error::{Error, Result};
use crate::once::once;

impl<T: Real> Attention<T> {
    /// The share α of the mean of the values, for each head of keys, with which [shrunk](Attention::with_shrinkage) bidirectional outputs
    /// are nearest to those of exact attention, by least squares over these tokens.
    ///
    /// ```
    /// use random_features::ndarray::Array4;
    /// use random_features::rand::RngExt;
    /// use random_features::apply::attention::{Attention, Heads};
    /// let mut rng = random_features::rng(1);
    /// let mut token = || rng.random_range(-4.0..4.0);
    /// let mut tokens = || Array4::from_shape_simple_fn((1, 1, 90, 8), &mut token);
    /// let [q, k, v] = [tokens(), tokens(), tokens()];
    /// let heads = Heads::new(&q, &k, &v)?;
    /// let attention = Attention::favor_plus(8, 16, 7)?;
    /// // Far too few features for tokens of this size.
    /// assert!(attention.bidirectional_shrinkage(&heads)?[0] > 0.5);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Definition
    /// α = Σ (eᵢ − oᵢ)·(v̄ᵢ − oᵢ) / Σ ‖v̄ᵢ − oᵢ‖² over the queries i of all batches, within 0 and 1, where oᵢ is this
    /// attention's output without a share, eᵢ the exact one and v̄ᵢ the mean of the values that the query sees. For a
    /// query whose normaliser is not positive, oᵢ is v̄ᵢ. On these tokens the squared error is then at most the smaller
    /// of the errors of oᵢ and of v̄ᵢ. On other tokens this holds only as far as they resemble these. Keys with exact
    /// weights count as they are.
    ///
    /// # Cost
    /// The cost of this attention and of exact attention, O(n l (d + d_v)) for each head, and memory of three outputs.
    ///
    /// # Errors
    /// The errors of [`bidirectional`](Attention::bidirectional); [`Unsupported`](Error::Unsupported) unless every map estimates, at least
    /// approximately, the softmax kernel with the same lengthscale in all coordinates; [`NotFinite`](Error::NotFinite) if an output is
    /// not finite, with its number among the queries of a head of keys.
    pub fn bidirectional_shrinkage<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Vec<f64>> {
        let exact = self.exact_for_shrinkage()?.bidirectional(heads)?;
        let own = self.without_shrinkage().bidirectional(heads)?;
        Self::shares(heads, own, exact.output, false)
    }

    /// The share α of the mean of the values, for each head of keys, with which [shrunk](Attention::with_shrinkage) causal outputs are
    /// nearest to those of exact attention, by least squares over these tokens.
    ///
    /// It is defined as that of [`bidirectional_shrinkage`](Attention::bidirectional_shrinkage), with sums over the keys up to each
    /// query's own place.
    ///
    /// # Errors
    /// The errors of [`bidirectional_shrinkage`](Attention::bidirectional_shrinkage) and of [`causal`](Attention::causal).
    pub fn causal_shrinkage<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Vec<f64>> {
        let own = self.without_shrinkage().causal(heads)?;
        let exact = self.exact_for_shrinkage()?.causal(heads)?;
        Self::shares(heads, own, exact.output, true)
    }

    fn exact_for_shrinkage(&self) -> Result<ExactAttention> {
        self.exact_of(estimated_lengthscale).filter(|_| self.normalised).ok_or(Error::Unsupported {
            what: "a share of the mean for attention without normalisers, or whose maps do not estimate the softmax kernel with one lengthscale",
        })
    }

    /// This attention without a share of the mean.
    pub(super) fn without_shrinkage(&self) -> Self {
        Attention { shrinkage: Default::default(), ..self.clone() }
    }

    /// The best share of each head of keys for outputs of this attention and of exact attention.
    fn shares<E: TokenElement<T>>(
        heads: &Heads<'_, E>,
        own: Attended<T>,
        exact: Array4<T>,
        causal: bool,
    ) -> Result<Vec<f64>> {
        let means = means(heads, causal);
        let own = completed(own, &means);
        let mut fits = vec![Fit::default(); heads.keys.dim().1];
        for h in 0..heads.queries.dim().1 {
            fits[heads.key_head(h)].add_rows([&exact, &own, &means].map(|all| all.index_axis(Axis(1), h)));
        }
        fits.iter().map(Fit::share).collect()
    }
}

once!(Attention::<T>::shares::<T>);
