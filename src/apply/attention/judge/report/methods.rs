//! What asks for an [`ErrorReport`].

use ndarray::{Array2, ArrayRef2};

use super::super::super::input::{Attention, Job, KeyRun, Numbers, QueryRun};
use super::ErrorReport;
use super::closed::{expected_errors, own_errors};
use super::simulated::errors_beside;
use super::tokens::{Mask, TokenSample};
use crate::Real;
use crate::error::{Error, Result, check_finite, check_positive, check_size};
use crate::map::{Map, Recipe};
use crate::memory::check_memory;
use crate::numeric::matrix_of;
use crate::once::once;

impl<T: Real> Attention<T> {
    /// The errors that are expected for a [sample](TokenSample) of tokens, by closed forms.
    ///
    /// ```
    /// use random_features::ndarray::Array2;
    /// use random_features::rand::RngExt;
    /// use random_features::apply::attention::{Attention, TokenSample};
    /// let mut rng = random_features::rng(1);
    /// let shape = (90, 8);
    /// let x = Array2::from_shape_simple_fn(shape, || rng.random::<f64>() - 0.5);
    /// let sample = TokenSample::causal(&x, &x).with_values(&x);
    /// println!("{}", Attention::favor_plus(8, 256, 7)?.error_report(&sample)?);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Pairs with exact weights have no error: pairs with [exact keys](Attention::with_keys_exact), whose rows count in
    /// the sample's keys, and pairs of [neighbours](Attention::with_window). A [share of the
    /// mean](Attention::with_shrinkage) counts as a bias.
    ///
    /// Closed forms are known for trigonometric, positive, hyperbolic, generalised and dense exponential features of
    /// the softmax or the Gaussian kernel, for positive and hyperbolic ones of the regularised softmax kernel, and for
    /// any of these conditioned, truncated or not. None is known for antithetic pairs of frequencies whose joint law is
    /// unknown, such as Sobol' points. For other maps take [`simulated_report`](Attention::simulated_report).
    ///
    /// # If the error is too large
    /// - Take more features: the part of an error that is no bias falls as 1/√m.
    ///   [`frequencies_for`](ErrorReport::frequencies_for) returns the m for an error.
    /// - Take features that are [shaped](crate::manual::shaped) by tokens (`Attention::shaped`), where ‖q‖²/√d or
    ///   ‖k‖²/√d is above 2.
    /// - Give the keys near each query exact weights by [`with_window`](Attention::with_window), where attention is
    ///   local.
    /// - Give the heaviest keys, often those of the first tokens, exact weights by
    ///   [`with_keys_exact`](Attention::with_keys_exact). This helps shaped features, and may hurt positive ones at
    ///   large norms.
    /// - Otherwise take exact attention. [`choose`](Attention::choose) compares it with windows and numbers of features
    ///   by error and cost.
    ///
    /// # Cost
    /// O(n l² d_v + l² d) time, with n l² exponentials for each of five mechanisms, and twice that if the report is
    /// [hopeless](ErrorReport::is_hopeless); O(l²) memory. 64 queries and 500 keys with d = d_v = 64 take 0.06 s on two
    /// cores, 0.1 s if it is hopeless.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) for maps without a closed form, and for attention
    /// [without normalisers](Attention::without_normalisers);
    /// [`Shape`](Error::Shape) if sizes do not fit, [`NotFinite`](Error::NotFinite) if a number is not finite,
    /// [`Parameter`](Error::Parameter) for an empty sample, a head without a map or a query without a place,
    /// [`Memory`](Error::Memory) for too many tokens, [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it;
    /// causally, the errors of [`causal`](Attention::causal).
    #[inline(never)]
    pub fn error_report(&self, sample: &TokenSample<'_, T>) -> Result<ErrorReport> {
        let recipe = self.map_of(sample.head)?.recipe();
        expected_errors(recipe.as_ref(), self.scaled_tokens(sample)?, self.mask(sample)?)
    }

    /// The errors of [`error_report`](Attention::error_report) without what else it says, at a fifth of its cost.
    pub(in super::super) fn own_errors(&self, sample: &TokenSample<'_, T>) -> Result<ErrorReport> {
        let recipe = self.map_of(sample.head)?.recipe();
        own_errors(recipe.as_ref(), self.scaled_tokens(sample)?, self.mask(sample)?)
    }

    /// The map of a head of keys.
    pub(in super::super) fn map_of(&self, head: usize) -> Result<&Map<T>> {
        match &self.maps[..] {
            [one] => Ok(one),
            maps => maps.get(head).ok_or(Error::Parameter {
                name: "the head of keys",
                value: head as f64,
                domain: "less than the number of maps, of which each head has one",
            }),
        }
    }

    /// The share of the mean of a head of keys.
    fn share_of(&self, head: usize) -> Result<f64> {
        match self.shrinkage.heads() {
            Some(heads) if head >= heads => Err(Error::Parameter {
                name: "the head of keys",
                value: head as f64,
                domain: "less than the number of shares of the mean, of which each head has one",
            }),
            _ => Ok(self.shrinkage.of(head)),
        }
    }

    /// The errors that are expected with the map of a recipe, drawn or still to be drawn, in place of this attention's.
    /// They follow from the distribution of the frequencies, by the closed forms of
    /// [`error_report`](Attention::error_report).
    ///
    /// # Errors
    /// The errors of [`error_report`](Attention::error_report).
    #[inline(never)]
    pub fn expected_report(&self, recipe: &Recipe, sample: &TokenSample<'_, T>) -> Result<ErrorReport> {
        check_size("the dimension of the recipe", self.maps[0].dim(), recipe.dim())?;
        expected_errors(Some(recipe), self.scaled_tokens(sample)?, self.mask(sample)?)
    }

    /// The errors that are expected for any map, from redraws: the frequencies of `recipe`, the recipe of a map, are drawn from each of the
    /// seeds 0 … `draws` − 1.
    ///
    /// ```
    /// use random_features::ndarray::Array2;
    /// use random_features::rand::RngExt;
    /// use random_features::Positive;
    /// use random_features::apply::attention::{Attention, TokenSample};
    /// use random_features::frequency::Simplex;
    /// use random_features::recipe::Draw;
    /// use random_features::kernel::Softmax;
    /// use random_features::theory::Basis;
    /// let mut rng = random_features::rng(1);
    /// let shape = (20, 8);
    /// let x = Array2::from_shape_simple_fn(shape, || rng.random::<f64>() - 0.5);
    /// let sample = TokenSample::new(&x, &x).with_values(&x);
    /// // Simplex frequencies have no closed form for covariances.
    /// let draw = Draw::new(8, 256, Simplex::default());
    /// let recipe = Positive.recipe(draw, Softmax::default());
    /// let attention = Attention::new(recipe.draw(7)?)?;
    /// let report = attention.simulated_report(&recipe, 100, &sample)?;
    /// assert_eq!(report.basis, Basis::Simulation(100));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// These errors are of first order too. Where a normaliser's relative variance is large, rare draws make most of
    /// it, and few redraws may miss them. From 100 redraws, a variance below 0.1 is known to some 15 %. The exact
    /// weights are those of the recipe's kernel, if it is the softmax or the Gaussian one with one lengthscale, else
    /// those of the softmax kernel.
    ///
    /// # Cost
    /// O(n l D) a draw, and d_v numbers for each query and draw. A [watcher](crate::progress::watch) sees each draw.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) for fewer than 2 draws, [`Unsupported`](Error::Unsupported) if frequencies of the recipe
    /// are drawn already; the errors of the draws and of the map, and the other errors of
    /// [`error_report`](Attention::error_report).
    #[inline(never)]
    pub fn simulated_report(
        &self,
        recipe: &Recipe,
        draws: usize,
        sample: &TokenSample<'_, T>,
    ) -> Result<ErrorReport> {
        if draws < 2 {
            let (name, domain) = ("the number of redraws", "at least 2");
            return Err(Error::Parameter { name, value: draws as f64, domain });
        }
        check_size("the dimension of the recipe", self.maps[0].dim(), recipe.dim())?;
        let (tokens, mask) = ([self.scaled_tokens(sample)?], self.mask(sample)?);
        let mut reports = errors_beside(recipe, 0..draws as u64, &tokens, &mask)?;
        reports.pop().ok_or(Error::NoData { what: "a report" })
    }

    /// The pairs that are not estimated, of a sample that is checked.
    fn mask(&self, sample: &TokenSample<'_, T>) -> Result<Mask> {
        let TokenSample { queries, keys, head, causal, .. } = *sample;
        let (near, inverse) = (self.near(self.of_pairs(head), causal), self.exact_inverse(head));
        if causal {
            self.check_causal()?;
        }
        let places = if causal || near.is_some() { sample.all_places()? } else { Vec::new() };
        let seen = causal.then(|| places.iter().map(|place| place + 1).collect());
        let share = self.share_of(head)?;
        if near.is_none() && inverse.is_none() {
            return Ok(Mask { exact: None, seen, share });
        }
        let mut pairs = Array2::from_elem((queries.nrows(), keys.nrows()), false);
        if let Some((window, _)) = near {
            pairs
                .indexed_iter_mut()
                .for_each(|((i, j), exact)| *exact = window.places(places[i]).contains(&j));
        }
        if let Some(inverse) = inverse {
            let [queries, keys] = [queries, keys].map(|x| Numbers::Own(x.view()));
            // Choosing keys takes no values.
            let values = Array2::zeros((keys.nrows(), 0));
            let queries = vec![QueryRun::new(queries, [0; 3])];
            let keys = KeyRun::new(keys, Numbers::Own(values.view()));
            let chosen = self.exact.rows((&self.reading, inverse), &Job { head, keys, queries });
            chosen.iter().for_each(|j| pairs.column_mut(*j).fill(true));
        }
        Ok(Mask { exact: Some(pairs), seen, share })
    }

    /// Tokens as points and values, checked; no columns of values if there are none.
    fn scaled_tokens(&self, sample: &TokenSample<'_, T>) -> Result<[Array2<f64>; 3]> {
        if !self.normalised {
            return Err(Error::Unsupported { what: "error reports of attention that is not normalised" });
        }
        let TokenSample { queries, keys, values, .. } = *sample;
        let d = self.maps[0].dim();
        check_positive("the number of queries", queries.nrows())?;
        check_positive("the number of keys", keys.nrows())?;
        check_size("the dimension of the queries", d, queries.ncols())?;
        check_size("the dimension of the keys", d, keys.ncols())?;
        check_size(
            "the number of values",
            keys.nrows(),
            values.map_or(keys.nrows(), |values| values.nrows()),
        )?;
        let columns = d.saturating_add(values.map_or(0, |values| values.ncols()));
        let (rows, float) = (queries.nrows().saturating_add(keys.nrows()), size_of::<f64>());
        // Points and images of tokens, and values less outputs.
        check_memory("tokens of a sample", rows, columns.saturating_mul(4 * float))?;
        check_memory("pairs of queries and keys", queries.nrows().saturating_mul(keys.nrows()), float)?;
        let scaled = |what, x: &ArrayRef2<T>| -> Result<Array2<f64>> {
            check_finite(what, x)?;
            let mut points = Vec::new();
            self.reading.points(Numbers::Own(x.view()), &mut points);
            let points = points.into_iter().map(|v| v.widen()).collect();
            Ok(matrix_of(x.nrows(), x.ncols(), points))
        };
        let (x, y) = (scaled("the queries", queries)?, scaled("the keys", keys)?);
        let Some(values) = values else { return Ok([x, y, Array2::zeros((keys.nrows(), 0))]) };
        check_finite("the values", values)?;
        let wide = values.iter().map(|v| v.widen()).collect();
        Ok([x, y, matrix_of(values.nrows(), values.ncols(), wide)])
    }
}

once!(Attention::<T>::error_report, Attention::<T>::expected_report, Attention::<T>::simulated_report);
