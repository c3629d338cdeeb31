//! [`TokenSample`]: the tokens of which a report speaks.

use ndarray::{Array2, ArrayRef2};

use crate::error::{Error, Result, check_size};

/// A sample of a head's tokens, by which an [`ErrorReport`](super::ErrorReport) or a [choice](super::super::super::Attention::choose)
/// judges attention.
///
/// ```
/// use random_features::ndarray::{Array2, Axis};
/// use random_features::rand::RngExt;
/// use random_features::apply::attention::{Attention, TokenSample};
/// let mut rng = random_features::rng(1);
/// let shape = (90, 8);
/// let q = Array2::from_shape_simple_fn(shape, || rng.random::<f32>() - 0.5);
/// let k = Array2::from_shape_simple_fn(shape, || rng.random::<f32>() - 0.5);
/// let attention = Attention::favor_plus(8, 256, 7)?;
/// // Errors of weights, and with values errors of outputs.
/// let report = attention.error_report(&TokenSample::new(&q, &k))?;
/// assert!(report.weight_error().is_some());
/// let sample = TokenSample::causal(&q, &k).with_values(&k);
/// println!("{}", attention.error_report(&sample)?);
/// // Three of the queries.
/// let few = q.select(Axis(0), &[20, 50, 80]);
/// let sample = TokenSample::causal(&few, &k).with_values(&k);
/// let report = attention.error_report(&sample.with_places(&[20, 50, 80]))?;
/// assert!(report.output_error().is_some());
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Some 64 queries and 500 keys are enough. If the mean of the values is not 0, relative errors of outputs fall as the
/// number of keys grows.
#[derive(Clone, Copy, Debug)]
pub struct TokenSample<'a, T> {
    pub(super) queries: &'a ArrayRef2<T>,
    pub(in super::super) keys: &'a ArrayRef2<T>,
    pub(in super::super) values: Option<&'a ArrayRef2<T>>,
    pub(in super::super) head: usize,
    pub(in super::super) causal: bool,
    places: Option<&'a [usize]>,
}

impl<'a, T> TokenSample<'a, T> {
    /// Queries, n × d, and keys, l × d, of one head, in bidirectional attention, as they are given to attention: not
    /// divided by √d. Sizes are checked when a report is made.
    pub fn new(queries: &'a ArrayRef2<T>, keys: &'a ArrayRef2<T>) -> Self {
        TokenSample { queries, keys, values: None, head: 0, causal: false, places: None }
    }

    /// Queries, n × d, and keys, l × d, of one head, in causal attention: each query sees the keys up to its own
    /// [place](TokenSample::with_places).
    pub fn causal(queries: &'a ArrayRef2<T>, keys: &'a ArrayRef2<T>) -> Self {
        TokenSample { causal: true, ..TokenSample::new(queries, keys) }
    }

    /// Sets the values of the keys, l × d_v, for errors of outputs.
    #[must_use]
    pub fn with_values(self, values: &'a ArrayRef2<T>) -> Self {
        TokenSample { values: Some(values), ..self }
    }

    /// Sets the head of keys of the sample, for attention with a map for each head; the default is 0.
    #[must_use]
    pub fn with_head(self, head: usize) -> Self {
        TokenSample { head, ..self }
    }

    /// Sets the rows of the keys at which the queries stand, for causal attention and for neighbours. They are 0, 1, … unless stated.
    #[must_use]
    pub fn with_places(self, places: &'a [usize]) -> Self {
        TokenSample { places: Some(places), ..self }
    }

    /// The place of each query.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there are more or fewer than queries, [`Parameter`](Error::Parameter) if there is no key at one.
    pub(super) fn all_places(&self) -> Result<Vec<usize>> {
        let places = self.places.map_or_else(|| (0..self.queries.nrows()).collect(), <[usize]>::to_vec);
        check_size("the number of places of queries", self.queries.nrows(), places.len())?;
        match places.iter().find(|place| **place >= self.keys.nrows()) {
            None => Ok(places),
            Some(place) => Err(Error::Parameter {
                name: "the place of a query",
                value: *place as f64,
                domain: "less than the number of keys, where there are causal attention or neighbours",
            }),
        }
    }
}

/// What of a sample's outputs is not estimated: pairs with exact weights, and the mean of the values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mask {
    /// Pairs whose weights are computed exactly, if there are any.
    pub exact: Option<Array2<bool>>,
    /// How many of the first keys each query sees, if not all.
    pub seen: Option<Vec<usize>>,
    /// The share α of the mean of the values in outputs.
    pub share: f64,
}

impl Mask {
    /// How many of so many keys a query sees.
    pub fn seen(&self, query: usize, keys: usize) -> usize {
        self.seen.as_ref().map_or(keys, |seen| seen[query].min(keys))
    }
}
