//! What asks for an [`ErrorReport`].

use ndarray::{Array2, ArrayRef2};

use super::super::Attention;
use super::super::element::Numbers;
use super::super::exact_keys::ExactKeys;
use super::super::heads::{Job, KeyRun, Member};
use super::ErrorReport;
use super::closed::expected_errors;
use super::simulated::errors_beside;
use crate::Real;
use crate::apply::check_finite;
use crate::error::{Error, Result, check_positive, check_size};
use crate::map::Recipe;
use crate::numeric::matrix_of;
use crate::once::once;

impl<T: Real> Attention<T> {
    /// The errors that are expected with the map of key head `head` for a sample of its queries, n × d, keys, l × d, and
    /// values, l × d_v, by closed forms, in bidirectional attention over these keys: a causal output sees fewer of them. Some 64
    /// queries and 500 keys do if the values have the mean 0; if they have another, errors fall with the number of keys. Pairs
    /// that are computed exactly have no error: those with [exact keys](Attention::with_keys_exact), rows of `keys`, and
    /// with [neighbours](Attention::window), for which the queries must be those of the first n places. Cost O(n l² d_v + l² d) time,
    /// of which n l² exponentials for each of five mechanisms, and twice that if it is hopeless; O(l²) memory. 64 × 500 tokens with
    /// d = d_v = 64 take 0.06 s on two cores, 0.1 s if it is hopeless.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) for maps without a closed form, for which there is
    /// [`simulated_report`](Attention::simulated_report): all but trigonometric, positive, hyperbolic, generalised and dense
    /// exponential ones for the softmax or the Gaussian kernel, positive and hyperbolic ones for the regularised softmax
    /// kernel, and any of these conditioned, truncated or not; and for antithetic pairs over a coupling of unknown law, as Sobol'
    /// points are. [`Shape`](Error::Shape) if sizes do not fit,
    /// [`NotFinite`](Error::NotFinite) if a number is not finite, [`Parameter`](Error::Parameter) for an empty sample or a head
    /// without a map, [`Memory`](Error::Memory) for too many keys.
    #[inline(never)]
    pub fn error_report(
        &self,
        head: usize,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        values: &ArrayRef2<T>,
    ) -> Result<ErrorReport> {
        let map = match &self.maps[..] {
            [one] => one,
            maps => maps.get(head).ok_or(Error::Parameter {
                name: "the head of keys",
                value: head as f64,
                domain: "less than the number of maps, of which each head has one",
            })?,
        };
        let tokens = self.scaled_tokens([queries, keys, values])?;
        expected_errors(map.recipe().as_ref(), tokens, self.exact_pairs(head, [queries, keys, values]))
    }

    /// As [`error_report`](Attention::error_report) with the map of a recipe, drawn or still to be drawn, in place of this one:
    /// what is expected follows from the laws of the frequencies.
    ///
    /// # Errors
    /// As [`error_report`](Attention::error_report).
    #[inline(never)]
    pub fn expected_report(
        &self,
        recipe: &Recipe,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        values: &ArrayRef2<T>,
    ) -> Result<ErrorReport> {
        check_size("the dimension of the recipe", self.maps[0].input_dim(), recipe.dim())?;
        let tokens = [queries, keys, values];
        expected_errors(Some(recipe), self.scaled_tokens(tokens)?, self.exact_pairs(0, tokens))
    }

    /// As [`error_report`](Attention::error_report) for any map, from redraws: the frequencies of `recipe`, that of a map, are
    /// drawn from each of the seeds 0 … `draws` − 1. To first order too. Where a normaliser's relative variance is large,
    /// rare draws make most of it, which few redraws may not meet; 100 show what is below 0.1 to some 15 %. Exact are the
    /// weights of the recipe's kernel, if it is the softmax or the Gaussian one with one lengthscale, else those of the
    /// softmax kernel. Cost O(n l D) a draw.
    ///
    /// ```
    /// # use ndarray::Array2;
    /// use random_features::apply::attention::{Attention, Basis};
    /// use random_features::frequency::{Draw, Simplex};
    /// use random_features::kernel::Softmax;
    /// use random_features::Positive;
    /// # let token = |(i, k): (usize, usize)| ((3 * i + 5 * k) % 7) as f64 / 7.0;
    /// # let (q, k) = (Array2::from_shape_fn((10, 8), token), Array2::from_shape_fn((20, 8), token));
    /// // Simplex frequencies have no closed form for covariances.
    /// let recipe = Positive.recipe(Draw::new(8, 256, Simplex::default()), Softmax::default());
    /// let attention = Attention::new(recipe.draw::<f64>(7)?)?;
    /// let report = attention.simulated_report(&recipe, 100, &q, &k, &k)?;
    /// assert_eq!(report.basis, Basis::Redraws(100));
    /// // Independent ones have one.
    /// let independent = attention.error_report(0, &q, &k, &k)?;
    /// assert!((report.mean_error / independent.mean_error - 1.0).abs() < 1e-12);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) for fewer than 2 draws, [`Unsupported`](Error::Unsupported) if frequencies of the recipe
    /// are drawn already; those of the draws and of the map; else as [`error_report`](Attention::error_report).
    #[inline(never)]
    pub fn simulated_report(
        &self,
        recipe: &Recipe,
        draws: usize,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        values: &ArrayRef2<T>,
    ) -> Result<ErrorReport> {
        if draws < 2 {
            let (name, domain) = ("the number of redraws", "at least 2");
            return Err(Error::Parameter { name, value: draws as f64, domain });
        }
        check_size("the dimension of the recipe", self.maps[0].input_dim(), recipe.dim())?;
        let tokens = [self.scaled_tokens([queries, keys, values])?];
        let exact = self.exact_pairs(0, [queries, keys, values]);
        let mut reports = errors_beside(recipe, 0..draws as u64, &tokens, exact.as_ref())?;
        reports.pop().ok_or(Error::NoData { what: "a report" })
    }

    /// The pairs of a sample whose weights are exact; `None` if there are none.
    fn exact_pairs(&self, head: usize, [queries, keys, values]: [&ArrayRef2<T>; 3]) -> Option<Array2<bool>> {
        let (near, inverse) = (self.near(head, false), self.exact_inverse(head));
        if near.is_none() && inverse.is_none() {
            return None;
        }
        let mut pairs = Array2::from_elem((queries.nrows(), keys.nrows()), false);
        if let Some((window, _)) = near {
            pairs.indexed_iter_mut().for_each(|((i, j), exact)| *exact = window.places(i).contains(&j));
        }
        if let Some(inverse) = inverse {
            let [queries, keys, values] = [queries, keys, values].map(|x| Numbers::Own(x.view()));
            // Choosing keys takes no outputs.
            let mut none = Array2::zeros((0, 0));
            let members = vec![Member { queries, out: none.view_mut(), place: [0; 3] }];
            let job = Job { head, keys: KeyRun { keys, values, mask: None }, members };
            let chosen = ExactKeys::new(&self.exact, &self.reading, inverse, &job);
            chosen.rows().iter().for_each(|j| pairs.column_mut(*j).fill(true));
        }
        Some(pairs)
    }

    /// Tokens as points and values, checked.
    fn scaled_tokens(&self, [queries, keys, values]: [&ArrayRef2<T>; 3]) -> Result<[Array2<f64>; 3]> {
        let d = self.maps[0].input_dim();
        check_positive("the number of queries", queries.nrows())?;
        check_positive("the number of keys", keys.nrows())?;
        check_size("the dimension of the queries", d, queries.ncols())?;
        check_size("the dimension of the keys", d, keys.ncols())?;
        check_size("the number of values", keys.nrows(), values.nrows())?;
        let scaled = |what, x: &ArrayRef2<T>| -> Result<Array2<f64>> {
            check_finite(what, x)?;
            let mut points = Vec::new();
            self.reading.points(Numbers::Own(x.view()), &mut points);
            let points = points.into_iter().map(|v| v.widen()).collect();
            Ok(matrix_of(x.nrows(), x.ncols(), points))
        };
        let (x, y) = (scaled("the queries", queries)?, scaled("the keys", keys)?);
        check_finite("the values", values)?;
        Ok([x, y, values.mapv(|v| v.widen())])
    }
}

once!(Attention::<T>::error_report, Attention::<T>::expected_report, Attention::<T>::simulated_report);
