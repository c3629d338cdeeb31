//! [`Attention::choose`]: candidates and the best of them.

use super::super::super::input::{Attention, Window, estimated_lengthscale};
use super::super::super::pairs::ExactAttention;
use super::super::TokenSample;
use super::super::costs::Lengths;
use super::sizes::{SizedMaps, d_v};
use super::{AttentionCandidate, AttentionChoice, Chosen};
use crate::Real;
use crate::error::{Result, check_positive, check_size, checked_positive};
use crate::once::once;
use crate::progress;

/// Numbers of neighbours.
const NEIGHBOURS: [usize; 6] = [8, 16, 32, 64, 128, 256];

impl<T: Real> Attention<T> {
    /// The cheapest of exact, windowed and linear attention that is expected to err by `error` at most, on sequences of `lengths` (queries
    /// and keys): an estimate, from a sample of tokens and a rule for costs.
    ///
    /// ```
    /// use random_features::ndarray::Array2;
    /// use random_features::rand::RngExt;
    /// use random_features::apply::attention::{Attention, TokenSample};
    /// let mut rng = random_features::rng(1);
    /// let shape = (100, 16);
    /// let x = Array2::from_shape_simple_fn(shape, || rng.random::<f64>() - 0.5);
    /// let attention = Attention::favor_plus(16, 64, 5)?;
    /// let values = &x + 1.0;
    /// let sample = TokenSample::causal(&x, &x).with_values(&values);
    /// // Short sequences are exact, long ones have features.
    /// let short = attention.choose(&sample, [50, 50], 0.1)?;
    /// assert!(short.best().unwrap().exact);
    /// let long = attention.choose(&sample, [100_000, 100_000], 0.1)?;
    /// println!("{long}");
    /// assert!(!long.best().unwrap().exact);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Candidates
    /// - [Exact attention](ExactAttention), whose error is 0.
    /// - These maps with 8, 16, … 256 neighbours: all before the query if the sample is causal, else half of them on either side.
    /// - These maps with the attention's own [window](Attention::with_window). If `lengths` states more or fewer
    ///   queries than keys, whose places need not correspond, no other window is tried.
    /// - These maps without neighbours.
    ///
    /// [Exact keys](Attention::with_keys_exact) stay exact in all of them. Maps whose frequencies were drawn by name, from a seed, are
    /// tried with m/4, m/2, m, 2m, … 16m frequencies. The chosen ones are drawn from the same seed again. Other maps are tried as they are.
    /// Maps that do not estimate the softmax kernel with one lengthscale, truncated or not, have neither neighbours nor an exact
    /// counterpart: then there may be no [best](AttentionChoice::best) candidate.
    ///
    /// # Errors that are expected
    /// They are the errors of [`error_report`](Attention::error_report) for the head of the sample, with the same
    /// limitations: **the sample stands for the sequences**. If the sample is shorter than the sequences, the weights
    /// beyond a window are assumed to have the share and the spread that they have in the sample. That is optimistic
    /// where attention looks far. Causally, queries at late [places](TokenSample::with_places) stand for long
    /// sequences.
    ///
    /// Windows of more than half of a shorter sample's keys are left out, since it says too little of the pairs beyond them. Windows of all
    /// keys are left out as well.
    ///
    /// # Costs
    /// Costs are operations from shapes alone, by the rule of [`bidirectional_auto`](Attention::bidirectional_auto),
    /// for values of the sample's dimension, or that of the keys. Their weights are fitted to times of one machine, so
    /// that candidates of nearly equal cost may come in another order on yours.
    ///
    /// The choice itself costs a fifth of an error report for each of up to eight windows, and a draw of the map. A
    /// [watcher](crate::progress::watch) sees each window that is tried.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) unless the error is positive and finite and lengths are at least 1,
    /// [`Shape`](crate::Error::Shape) if lengths differ in causal attention; the errors of
    /// [`error_report`](Attention::error_report), which needs a closed form, and a key at the place of each query for neighbours;
    /// those of the draw.
    #[inline(never)]
    pub fn choose(
        &self,
        sample: &TokenSample<'_, T>,
        lengths: [usize; 2],
        error: f64,
    ) -> Result<AttentionChoice<T>> {
        let (error, lengths) =
            (checked_positive("the error to reach", error)?, self.checked(sample.causal, lengths)?);
        let (sizes, exact) = (self.sizes(sample)?, self.exact_of(estimated_lengthscale));
        let mut candidates = self.linear_candidates(sample, lengths, &sizes)?;
        if exact.is_some() {
            let operations = self.costs(d_v(sample)).exact(lengths);
            candidates.push(AttentionCandidate {
                exact: true,
                window: [0, 0],
                m: 0,
                operations,
                error: Some(0.0),
            });
        }
        candidates.sort_by(|a, b| a.operations.total_cmp(&b.operations));
        let chosen = match candidates.iter().find(|candidate| candidate.reaches(error)) {
            Some(best) => Some((*best, self.chosen(best, exact, &sizes)?)),
            None => None,
        };
        let Lengths { queries, keys, causal } = lengths;
        Ok(AttentionChoice { error, lengths: [queries, keys], causal, candidates, chosen })
    }

    /// Lengths of sequences of which a choice can speak.
    fn checked(&self, causal: bool, [queries, keys]: [usize; 2]) -> Result<Lengths> {
        check_positive("the number of queries of a sequence", queries)?;
        check_positive("the number of keys of a sequence", keys)?;
        if causal {
            check_size("the number of keys of a sequence in causal attention", queries, keys)?;
        }
        Ok(Lengths { queries, keys, causal })
    }

    /// Every window in every size.
    fn linear_candidates(
        &self,
        sample: &TokenSample<'_, T>,
        lengths: Lengths,
        sizes: &[SizedMaps],
    ) -> Result<Vec<AttentionCandidate>> {
        let (mut candidates, windows) = (Vec::new(), self.windows(sample, lengths));
        let count = windows.len();
        for (done, window) in windows.into_iter().enumerate() {
            progress::step("windows tried", done, count)?;
            let attention = self.clone().with_window(window.before, window.after)?;
            let report = attention.own_errors(sample)?;
            candidates.extend(sizes.iter().map(|size| AttentionCandidate {
                exact: false,
                window: [window.before, window.after],
                m: size.m,
                operations: size.costs.linear(lengths, attention.exact_pairs()),
                error: report.main_error_with(size.m),
            }));
        }
        Ok(candidates)
    }

    /// The windows to try, each once: none first.
    fn windows(&self, sample: &TokenSample<'_, T>, lengths: Lengths) -> Vec<Window> {
        let ladder = NEIGHBOURS.map(|count| match lengths.causal {
            true => Window { before: count, after: 0 },
            false => Window { before: count / 2, after: count / 2 },
        });
        let side_by_side = lengths.queries == lengths.keys && self.check_softmax("neighbours").is_ok();
        let known = sample.keys.nrows();
        let is_known = |window: &Window| {
            let count = window.count();
            count < lengths.keys && (lengths.keys <= known || count <= known / 2)
        };
        let mut windows = vec![Window::default()];
        let others = ladder.into_iter().filter(|_| side_by_side).chain([self.window.of(lengths.causal)]);
        for window in others.filter(is_known) {
            if !windows.contains(&window) {
                windows.push(window);
            }
        }
        windows
    }

    /// What the best candidate runs.
    fn chosen(
        &self,
        best: &AttentionCandidate,
        exact: Option<ExactAttention>,
        sizes: &[SizedMaps],
    ) -> Result<Chosen<T>> {
        if let Some(exact) = exact.filter(|_| best.exact) {
            return Ok(Chosen::Exact(exact));
        }
        let [before, after] = best.window;
        let size = sizes.iter().find(|size| size.m == best.m);
        let attention = size.map_or_else(|| Ok(self.clone()), |size| self.of_size(size))?;
        Ok(Chosen::Linear(Box::new(attention.with_window(before, after)?)))
    }
}

once!(Attention::<T>::choose);
