//! Shares of the mean of the values that are best for given tokens.

use ndarray::{Array1, Array4, Axis, Zip, s};

use super::super::input::{Attended, Attention, Heads, SeenValues, TokenElement, estimated_lengthscale};
use super::super::linear::Shrinking;
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
    /// let mut tokens =
    ///     || Array4::from_shape_simple_fn((1, 1, 90, 8), || 8.0 * rng.random::<f64>() - 4.0);
    /// let [q, k, v] = [tokens(), tokens(), tokens()];
    /// let heads = Heads::new(&q, &k, &v)?;
    /// let attention = Attention::favor_plus(8, 16, 7)?;
    /// // Far too few features for tokens of this size.
    /// assert!(attention.bidirectional_shrinkage(&heads)?[0] > 0.5);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Definition
    /// α = Σ (eᵢ − oᵢ)·(v̄ᵢ − oᵢ) / Σ ‖v̄ᵢ − oᵢ‖² over the queries i of all batches, within 0 and 1, where oᵢ is this attention's output
    /// without a share, eᵢ the exact one and v̄ᵢ the mean of the values that the query sees. On these tokens the squared error is then at
    /// most the smaller of the errors of oᵢ and of v̄ᵢ. On others it is as far as they are alike. Keys with exact weights count as they are.
    ///
    /// # Cost
    /// The cost of this attention and of exact attention, O(n l (d + d_v)) for each head, and memory of three outputs.
    ///
    /// # Errors
    /// The errors of [`bidirectional`](Attention::bidirectional); [`Unsupported`](Error::Unsupported) unless every map estimates, at least
    /// approximately, the softmax kernel with the same lengthscale in all coordinates; [`NotFinite`](Error::NotFinite) with the first
    /// query whose output is not finite.
    pub fn bidirectional_shrinkage<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Vec<f64>> {
        let exact = self.exact_for_shrinkage()?.bidirectional(heads)?;
        let own = self.without_shrinkage().bidirectional(heads)?;
        self.shares(heads, own, exact.output, false)
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
        self.shares(heads, own, exact.output, true)
    }

    fn exact_for_shrinkage(&self) -> Result<super::super::ExactAttention> {
        self.exact_of(estimated_lengthscale).filter(|_| self.normalised).ok_or(Error::Unsupported {
            what: "a share of the mean for attention without normalisers, or whose maps do not estimate the softmax kernel with one lengthscale",
        })
    }

    fn without_shrinkage(&self) -> Self {
        Attention { shrinkage: Default::default(), ..self.clone() }
    }

    /// The best share of each head of keys for outputs of this attention and of exact attention.
    fn shares<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        Attended { output: mut own, non_positive, .. }: Attended<T>,
        exact: Array4<T>,
        causal: bool,
    ) -> Result<Vec<f64>> {
        let mut means = Array4::zeros(heads.output_dim());
        for (job, outputs) in self.with_outputs(heads, &mut means) {
            if let Some(shrinking) = Shrinking::of_job(1.0, &job, causal) {
                shrinking.apply(&mut SeenValues::default(), outputs, &[]);
            }
        }
        // Without an output of its own a query has the mean in any case.
        for [b, h, i] in non_positive {
            own.slice_mut(s![b, h, i, ..]).assign(&means.slice(s![b, h, i, ..]));
        }
        let mut fits = vec![Fit::default(); heads.keys.dim().1];
        for h in 0..heads.queries.dim().1 {
            let [own, exact, means] = [&own, &exact, &means].map(|outputs| outputs.index_axis(Axis(1), h));
            let fit = &mut fits[heads.key_head(h)];
            Zip::from(own.rows()).and(exact.rows()).and(means.rows()).for_each(|own, exact, mean| {
                let less_own = |x: ndarray::ArrayView1<'_, T>| -> Array1<f64> {
                    x.iter().zip(own).map(|(x, own)| x.widen() - own.widen()).collect()
                };
                fit.add(&less_own(exact), &less_own(mean));
            });
        }
        fits.iter().map(Fit::share).collect()
    }
}

/// A least-squares fit of one number: sums of products relative to the square of the largest difference so far.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    largest: f64,
    products: f64,
    squares: f64,
    queries: usize,
    not_finite: Option<usize>,
}

impl Fit {
    /// Adds a query with the differences of the exact output and of the mean from the estimate.
    fn add(&mut self, exact: &Array1<f64>, mean: &Array1<f64>) {
        let largest = exact.iter().chain(mean).fold(self.largest, |top, v| top.max(v.abs()));
        self.queries += 1;
        if !exact.iter().chain(mean).all(|v| v.is_finite()) {
            self.not_finite = self.not_finite.or(Some(self.queries - 1));
        } else if largest > 0.0 {
            let keep = (self.largest / largest).powi(2);
            let [exact, mean] = [exact, mean].map(|differences| differences / largest);
            self.products = self.products * keep + exact.dot(&mean);
            self.squares = self.squares * keep + mean.dot(&mean);
            self.largest = largest;
        }
    }

    fn share(&self) -> Result<f64> {
        match self.not_finite {
            Some(row) => Err(Error::NotFinite { what: "the outputs of attention", row, column: None }),
            None if self.squares > 0.0 => Ok((self.products / self.squares).clamp(0.0, 1.0)),
            None => Ok(0.0),
        }
    }
}

once!(Attention::<T>::shares::<T>);
