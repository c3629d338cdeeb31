//! Linear attention of whole sequences: [`bidirectional`](Attention::bidirectional) and [`causal`](Attention::causal).

use ndarray::{ArrayRef, Ix4};

use super::super::features::Setup;
use super::super::input::{
    Attended, Attention, Heads, Job, NonPositive, SeenValues, TokenElement, check_output, in_order,
    threads_of_each,
};
use super::super::pairs::{KeySplit, Neighbours};
use super::drive::attend;
use super::sequence::Sequence;
use super::shrink::Shrinking;
use super::sink::{Outputs, bytes_of_estimate};
use crate::Real;
use crate::error::Result;
use crate::map::Map;
use crate::memory::check_memory;
use crate::numeric;
use crate::once::once;
use crate::{progress, threads};

/// A job, and the outputs of each of its heads of queries.
pub(in super::super) type JobWithOutputs<'a, T> = (Job<'a, T>, Vec<Outputs<'a, T>>);

impl<T: Real> Attention<T> {
    /// The outputs of queries that attend to all keys.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if dimensions or heads are not those of the maps, [`Memory`](crate::Error::Memory) if there is no memory for the
    /// output or for sums over keys, [`Cancelled`](crate::Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    pub fn bidirectional<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        heads.check_output::<T>(0)?;
        let mut output = numeric::zeros(heads.output_dim());
        let non_positive = self.bidirectional_into(heads, &mut output)?;
        Ok(Attended::new(output, non_positive))
    }

    /// Writes the outputs of [`bidirectional`](Attention::bidirectional) attention to `out`, \[b, h, n, d_v\], and
    /// returns batch, head and row of the queries whose normaliser is not positive.
    ///
    /// # Errors
    /// The errors of [`bidirectional`](Attention::bidirectional), and [`Shape`](crate::Error::Shape) if `out` does not fit. Nothing is written then,
    /// unless it is [`Cancelled`](crate::Error::Cancelled): `out` holds some of the outputs then.
    pub fn bidirectional_into<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        out: &mut ArrayRef<T, Ix4>,
    ) -> Result<Vec<[usize; 3]>> {
        self.check(heads, out)?;
        self.attend(self.with_outputs(heads, out), false)
    }

    /// The outputs of queries that attend to the keys up to their own place.
    ///
    /// # Errors
    /// The errors of [`bidirectional`](Attention::bidirectional); [`Shape`](crate::Error::Shape) if a sequence has another number of keys than of queries.
    pub fn causal<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        heads.check_output::<T>(0)?;
        let mut output = numeric::zeros(heads.output_dim());
        let non_positive = self.causal_into(heads, &mut output)?;
        Ok(Attended::new(output, non_positive))
    }

    /// Writes the outputs of [`causal`](Attention::causal) attention to `out`, \[b, h, n, d_v\], and returns batch,
    /// head and row of the queries whose normaliser is not positive.
    ///
    /// # Errors
    /// The errors of [`causal`](Attention::causal), and [`Shape`](crate::Error::Shape) if `out` does not fit. Nothing is written then,
    /// unless it is [`Cancelled`](crate::Error::Cancelled): `out` holds some of the outputs then.
    pub fn causal_into<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        out: &mut ArrayRef<T, Ix4>,
    ) -> Result<Vec<[usize; 3]>> {
        self.check(heads, out)?;
        heads.check_causal()?;
        self.check_causal()?;
        self.attend(self.with_outputs(heads, out), true)
    }

    /// The jobs of heads, each with the outputs of its heads of queries.
    pub(in super::super) fn with_outputs<'b, E: TokenElement<T>>(
        &self,
        heads: &'b Heads<'_, E>,
        out: &'b mut ArrayRef<T, Ix4>,
    ) -> Vec<JobWithOutputs<'b, T>> {
        let output = |rows| Outputs { rows, normalised: self.normalised };
        let outputs = heads.parts_of_queries(out.view_mut()).into_iter();
        let outputs = outputs.map(|parts| parts.into_iter().map(output).collect());
        heads.jobs().into_iter().zip(outputs).collect()
    }

    /// Writes the outputs of jobs.
    #[inline(never)]
    pub(in super::super) fn attend(
        &self,
        jobs: Vec<JobWithOutputs<'_, T>>,
        causal: bool,
    ) -> Result<NonPositive> {
        let threads = threads_of_each(jobs.len());
        let of_job = |(job, mut outputs): JobWithOutputs<'_, T>| {
            if progress::is_stopped() {
                return NonPositive::new();
            }
            let shrinking = Shrinking::of_job(self.shrinkage.of(job.head), &job, causal);
            let keys = KeySplit::new(self, &job);
            let job = keys.rest(job);
            let near = Neighbours::of_job(self, &job, causal);
            let setup = Setup { causal, ..self.setup(job.head) };
            let setup = setup.beside(keys.exact.as_ref(), near.as_ref());
            let views = outputs.iter_mut().map(Outputs::view).collect();
            let non_positive = attend(setup, job, views, threads);
            if let Some(shrinking) = shrinking {
                shrinking.apply(&mut SeenValues::default(), outputs, &non_positive);
            }
            non_positive
        };
        let non_positive = in_order(threads::map(jobs, of_job));
        // What was stopped has left out the rest.
        progress::check().map(|()| non_positive)
    }

    /// Refuses heads and an array of outputs that do not fit.
    pub(in super::super) fn check<E>(&self, heads: &Heads<'_, E>, out: &ArrayRef<T, Ix4>) -> Result<()> {
        self.check_inputs(heads)?;
        check_output(heads, out)?;
        self.check_work(heads)
    }

    /// Refuses heads for which there is no memory to work in: for sums over keys on each thread, and for what is kept of keys and queries
    /// where some weights are exact.
    #[inline(never)]
    pub(in super::super) fn check_work<E>(&self, heads: &Heads<'_, E>) -> Result<()> {
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
}

once!(Attention::<T>::attend);
