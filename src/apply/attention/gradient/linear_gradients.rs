//! Gradients of linear attention: queries read sums over keys once more, and then keys read sums over queries.

use ndarray::{ArrayRef, Ix4};

use super::super::features::Setup;
use super::super::input::{Attention, Heads, TokenElement, threads_of_each};
use super::super::linear::Shrinking;
use super::super::pairs::{KeySplit, Neighbours};
use super::backward::Backward;
use super::gradients::{Gradients, check_upstream};
use super::kept_job::KeptJob;
use super::residuals::Parameters;
use super::roles::term_of;
use super::shrunk::{before_shrinking, through_mean};
use crate::Real;
use crate::engine::{Side, has_gradients};
use crate::error::{Error, Result};
use crate::map::{Map, ParameterGradients, UNKNOWN};
use crate::memory::check_memory;
use crate::once::once;
use crate::{progress, threads};

impl<T: Real> Attention<T> {
    /// The gradients of a loss with respect to queries, keys and values of [bidirectional](Attention::bidirectional) attention, from its
    /// gradient with respect to the output, \[b, h, n, d_v\].
    ///
    /// ```
    /// use random_features::ndarray::Array4;
    /// use random_features::apply::attention::{Attention, Heads};
    /// let x = Array4::<f64>::ones((1, 1, 2, 4));
    /// let heads = Heads::new(&x, &x, &x)?;
    /// // The loss is the sum of all outputs.
    /// let ones = Array4::ones((1, 1, 2, 4));
    /// let attention = Attention::favor_plus(4, 64, 7)?;
    /// let gradients = attention.bidirectional_backward(&heads, &ones)?;
    /// // Two queries, each of which has the mean of two values.
    /// assert!(gradients.values.iter().all(|v| (v - 1.0).abs() < 1e-12));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Nothing of the forward pass is needed: features and sums are computed again. A
    /// [tape](Attention::bidirectional_recorded) of the forward pass avoids this, and gives the same bits. These are
    /// the gradients of the estimated attention. They differ from the gradients of exact attention, and tend to them as
    /// m grows.
    ///
    /// # Definition
    /// There are weights pᵢⱼ = K̂(qᵢ, kⱼ)/Nᵢ, normalisers Nᵢ = Σⱼ K̂(qᵢ, kⱼ), outputs oᵢ = Σⱼ pᵢⱼ vⱼ and gradients gᵢ
    /// with respect to these. ∂/∂vⱼ is Σᵢ pᵢⱼ gᵢ, ∂/∂φ(qᵢ) is Σⱼ ψ(kⱼ) (gᵢ·vⱼ − gᵢ·oᵢ)/Nᵢ, and ∂/∂ψ(kⱼ) is Σᵢ φ(qᵢ)
    /// (gᵢ·vⱼ − gᵢ·oᵢ)/Nᵢ. [`Map::pull_back`] turns gradients of features into gradients of points, and the scale turns
    /// these into gradients of queries and keys. After [`with_cosine`](Attention::with_cosine), the division by norms
    /// is differentiated too.
    ///
    /// With a [share α of the mean](Attention::with_shrinkage) of the values, these gradients are multiplied by 1 − α,
    /// and α gᵢ/nᵢ is added for each of the nᵢ values that query i sees. For a query whose normaliser is not positive,
    /// α counts as 1.
    ///
    /// [Without normalisers](Attention::without_normalisers) Nᵢ is 1 and gᵢ·oᵢ is 0. Pairs with exact weights, of
    /// [neighbours](Attention::with_window) and of [exact keys](Attention::with_keys_exact), have exp(q·k·scale) for K̂ and its gradient.
    ///
    /// A query that sees no key, or whose normaliser is not positive, contributes nothing to gradients, except through
    /// the mean of the values. A masked key contributes to none. NaN in a token or in a gradient makes all gradients
    /// NaN to which it contributes.
    ///
    /// # Accuracy
    /// Errors are relative to the largest terms of a sum: gᵢ·vⱼ and gᵢ·oᵢ cancel where values have a large mean. Queries and keys for
    /// which products in `T` would lose something are computed from logarithms in `f64`.
    ///
    /// Where features are exponentials of projections, as those of [`Positive`](crate::Positive) and
    /// [`Hyperbolic`](crate::Hyperbolic) are, norms may be as large as in the forward pass. Of other maps, features that underflow `T`
    /// beside the largest of their token are left out. Results are bit-identical on any number of threads.
    ///
    /// # Cost
    /// Three times the multiplications of the forward pass, O(L m (d + d_v)), and O(d + d_v) for each pair with an
    /// exact weight. A [tape](super::super::Tape) saves some half of the multiplications. Beyond inputs and gradients,
    /// memory holds for each head at work features and sums as in the forward pass, and d_v + 10 numbers for each query.
    /// With grouped queries or exact pairs it also holds a second copy of the gradients of the head's tokens and
    /// values.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if dimensions or heads are not those of the maps, or the output gradients are not of the output's shape.
    /// [`Unsupported`](Error::Unsupported) if a map has no gradients (see [`Map::pull_back`]). [`Memory`](Error::Memory) if there is none
    /// for the gradients, [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    ///
    /// # References
    /// The sums from either end: Katharopoulos et al., *Transformers are RNNs*, equations 13 to 15, there without normalisers.
    #[doc(alias = "vjp")]
    pub fn bidirectional_backward<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<Gradients<T>> {
        Ok(self.backward(heads, output_gradients, (false, &[]), false)?.0)
    }

    /// The [gradients](Attention::bidirectional_backward) with respect to queries, keys and values, and those with respect to the
    /// parameters of each map, over all heads and batches.
    ///
    /// ```
    /// use random_features::ndarray::Array4;
    /// use random_features::apply::attention::{Attention, Heads};
    /// let x = Array4::<f64>::from_elem((1, 2, 20, 4), 0.5);
    /// let heads = Heads::new(&x, &x, &x)?;
    /// let attention = Attention::favor_plus(4, 16, 7)?;
    /// let (of_tokens, of_maps) =
    ///     attention.bidirectional_backward_with_parameters(&heads, &x)?;
    /// assert_eq!(of_tokens, attention.bidirectional_backward(&heads, &x)?);
    /// assert_eq!((of_maps.len(), of_maps[0].frequencies.dim()), (1, (16, 4)));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// The gradients of parameters are in the order of the maps. Gradients of lengthscales include the pairs with exact
    /// weights.
    ///
    /// # Cost
    /// In addition to the other gradients, features are computed once more and multiplied with points, O(L m d) in
    /// `f64`. Memory is D + 2d numbers for each token of a head at work.
    ///
    /// # Errors
    /// The errors of [`bidirectional_backward`](Attention::bidirectional_backward); [`Unsupported`](Error::Unsupported) if a map's
    /// parameters have no gradients (see [`Map::pull_back_parameters`]).
    pub fn bidirectional_backward_with_parameters<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<(Gradients<T>, Vec<ParameterGradients>)> {
        self.backward(heads, output_gradients, (false, &[]), true)
    }

    /// The gradients of a loss with respect to queries, keys and values of [causal](Attention::causal) attention, from its gradient with
    /// respect to the output, \[b, h, n, d_v\].
    ///
    /// The gradient of a query depends on no later token. The gradients of a key and its value depend on no earlier
    /// query, and on no gradient of an earlier output. Both hold to the last bit. All else is as in
    /// [`bidirectional_backward`](Attention::bidirectional_backward).
    ///
    /// # Errors
    /// The errors of [`bidirectional_backward`](Attention::bidirectional_backward); [`Shape`](Error::Shape) if a sequence has another
    /// number of keys than of queries.
    #[doc(alias = "vjp")]
    pub fn causal_backward<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<Gradients<T>> {
        Ok(self.backward(heads, output_gradients, (true, &[]), false)?.0)
    }

    /// The [gradients](Attention::causal_backward) with respect to queries, keys and values of causal attention, and those with respect to
    /// the parameters of each map, over all heads and batches.
    ///
    /// # Errors
    /// The errors of [`bidirectional_backward_with_parameters`](Attention::bidirectional_backward_with_parameters) and of
    /// [`causal_backward`](Attention::causal_backward).
    pub fn causal_backward_with_parameters<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<(Gradients<T>, Vec<ParameterGradients>)> {
        self.backward(heads, output_gradients, (true, &[]), true)
    }

    fn check_backward<E>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
        causal: bool,
    ) -> Result<()> {
        self.check_inputs(heads)?;
        check_upstream(heads, output_gradients)?;
        self.check_differentiable()?;
        if causal {
            heads.check_causal()?;
            self.check_causal()?;
        }
        Ok(())
    }

    /// Refuses what has no backward pass.
    #[inline(never)]
    pub(super) fn check_differentiable(&self) -> Result<()> {
        let sides = [Side::X, Side::Y];
        let known = |map: &Map<T>| sides.iter().all(|side| has_gradients(map.program().plan(), *side));
        let what = "gradients of attention with a map that does not implement FeatureMap::pull_back";
        if self.maps.iter().all(known) { Ok(()) } else { Err(Error::Unsupported { what }) }
    }

    /// The gradients of tokens and, if they are asked for, of parameters, with what a forward pass has kept of each job.
    pub(super) fn backward<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
        (causal, kept): (bool, &[KeptJob<T>]),
        with_parameters: bool,
    ) -> Result<(Gradients<T>, Vec<ParameterGradients>)> {
        self.check_backward(heads, output_gradients, causal)?;
        self.check_work(heads)?;
        let mut gradients = Gradients::zeros(heads)?;
        if with_parameters {
            self.check_residuals(heads)?;
        }
        let jobs = Backward::jobs(heads, output_gradients.view(), kept, &mut gradients);
        let parameters = if with_parameters {
            self.run_backward_with_parameters(jobs, causal)?
        } else {
            self.run_backward(jobs.into_iter().map(|job| (job, None)).collect(), causal);
            Vec::new()
        };
        // What was stopped has left out the rest.
        progress::check().map(|()| (gradients, parameters))
    }

    /// Refuses heads for which there is no memory for the residuals of tokens: features, and what derivatives with respect to them are made of.
    fn check_residuals<E>(&self, heads: &Heads<'_, E>) -> Result<()> {
        let ((_, h, n, d), (_, of_keys, l, _)) = (heads.queries.dim(), heads.keys.dim());
        let tokens = (h / of_keys.max(1)).saturating_mul(n).saturating_add(l);
        let width = self.maps.iter().map(Map::feature_dim).fold(1, usize::max);
        let each = width.saturating_add(d).saturating_mul(4 * size_of::<f64>());
        check_memory("tokens with their features", tokens, each)
    }

    /// Writes the gradients of jobs, and adds up those of the parameters of each map.
    #[inline(never)]
    fn run_backward_with_parameters(
        &self,
        jobs: Vec<Backward<'_, '_, T>>,
        causal: bool,
    ) -> Result<Vec<ParameterGradients>> {
        let empty = |map: usize| Parameters::new(self.maps[map].program(), Side::X).ok_or(UNKNOWN);
        let which: Vec<usize> = jobs.iter().map(|job| job.job.head % self.maps.len()).collect();
        let mut all = (0..self.maps.len()).map(empty).collect::<Result<Vec<_>>>()?;
        let of_map = |map: &Map<T>, sum: &Parameters<'_, T>| {
            map.parameters_from(&sum.sums, &sum.slopes).ok_or(UNKNOWN)
        };
        // Before the work: whether there are any.
        self.maps.iter().zip(&all).try_for_each(|(map, sum)| of_map(map, sum).map(drop))?;
        let mut own = which.iter().copied().map(empty).collect::<Result<Vec<_>>>()?;
        self.run_backward(jobs.into_iter().zip(own.iter_mut().map(Some)).collect(), causal);
        which.iter().zip(&own).for_each(|(map, own)| all[*map].merge(own));
        self.maps.iter().zip(&all).map(|(map, sum)| of_map(map, sum)).collect()
    }

    /// Writes the gradients of jobs, and what they add to those of parameters.
    #[inline(never)]
    fn run_backward(&self, jobs: Vec<JobOfBackward<'_, '_, '_, '_, T>>, causal: bool) {
        let threads = threads_of_each(jobs.len());
        threads::for_each(
            jobs,
            |(Backward { job, upstream, of_queries, of_keys, mut of_values }, parameters)| {
                if progress::is_stopped() {
                    return;
                }
                let head = job.head;
                let shrinking = Shrinking::of_job(self.shrinkage.of(head), &job, causal);
                let before = shrinking.as_ref().map(|shrinking| before_shrinking(shrinking.share, &upstream));
                let own = match &before {
                    None => upstream.iter().map(|gradients| gradients.view()).collect(),
                    Some(before) => before.iter().map(|gradients| gradients.view()).collect(),
                };
                // The factors that outputs may do without have gradients like others.
                let program = self.maps[head % self.maps.len()].program();
                let keys = KeySplit::new(self, &job);
                let job = keys.rest(job);
                let near = Neighbours::of_job(self, &job, causal);
                let setup = Setup { program, causal, ..self.setup(head) };
                let setup = setup.beside(keys.exact.as_ref(), near.as_ref());
                let of_own = of_values.view_mut();
                let backward = Backward { job, upstream: own, of_queries, of_keys, of_values: of_own };
                let summaries = backward.run(setup, threads, parameters);
                if let Some(shrinking) = shrinking {
                    let has_output = |head: usize, i| term_of(summaries[head].row(i)).is_some();
                    through_mean(&shrinking, &upstream, has_output, of_values);
                }
            },
        );
    }
}

/// A job, and what it adds to the gradients of parameters, if they are asked for.
type JobOfBackward<'j, 'a, 'p, 'q, T> = (Backward<'j, 'a, T>, Option<&'q mut Parameters<'p, T>>);

once!(
    Attention::<T>::run_backward,
    Attention::<T>::run_backward_with_parameters,
    Attention::<T>::check_differentiable,
);
