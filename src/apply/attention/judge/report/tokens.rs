//! [`TokenSample`]: the tokens of which a report speaks.

use ndarray::{Array2, ArrayRef2};

use crate::error::{Error, Result, check_size};

/// Some queries and keys of a head, and what is known of them: of what an [`ErrorReport`](super::ErrorReport) speaks.
///
/// With [values](TokenSample::with_values) it speaks of outputs and of weights, without of weights alone. Some 64 queries and 500 keys do; if
/// values have a mean that is not 0, errors of outputs fall with the number of keys.
///
/// ```
/// use ndarray::Array2;
/// use random_features::Positive;
/// use random_features::apply::attention::{Attention, TokenSample};
/// use random_features::frequency::{Coupling, Orthogonal};
/// let token = |(i, k): (usize, usize)| ((3 * i + 5 * k) % 7) as f32 / 7.0;
/// let (q, k) = (Array2::from_shape_fn((90, 8), token), Array2::from_shape_fn((90, 8), token));
/// let attention = Attention::new(Positive.softmax::<f32>(Orthogonal.draw(8, 256, 5)?)?)?;
/// // Of weights, over all keys and over those up to each query's place; then of outputs, for three of the queries.
/// let (all, causal) = (TokenSample::new(&q, &k), TokenSample::causal(&q, &k));
/// assert!(attention.error_report(&all)?.weight_error().is_some());
/// println!("{}", attention.error_report(&causal.with_values(&k))?);
/// let few = q.select(ndarray::Axis(0), &[20, 50, 80]);
/// let few = TokenSample::causal(&few, &k).with_places(&[20, 50, 80]).with_values(&k);
/// assert!(attention.error_report(&few)?.output_error().is_some());
/// # Ok::<(), random_features::Error>(())
/// ```
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
    /// Queries, n × d, and keys, l × d, of the first head, in bidirectional attention. The report refuses what does not fit.
    pub fn new(queries: &'a ArrayRef2<T>, keys: &'a ArrayRef2<T>) -> Self {
        TokenSample { queries, keys, values: None, head: 0, causal: false, places: None }
    }

    /// Queries, n × d, and keys, l × d, of the first head, in causal attention: each query sees the keys up to its own
    /// [place](TokenSample::with_places).
    pub fn causal(queries: &'a ArrayRef2<T>, keys: &'a ArrayRef2<T>) -> Self {
        TokenSample { causal: true, ..TokenSample::new(queries, keys) }
    }

    /// Sets the values of the keys, l × d_v, for errors of outputs.
    #[must_use]
    pub fn with_values(self, values: &'a ArrayRef2<T>) -> Self {
        TokenSample { values: Some(values), ..self }
    }

    /// Sets the head of keys, whose map the report is about, if each head has its own.
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

/// The pairs of a sample that are not estimated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mask {
    /// Pairs whose weights are computed exactly, if there are any.
    pub exact: Option<Array2<bool>>,
    /// How many of the first keys each query sees, if not all.
    pub seen: Option<Vec<usize>>,
}

impl Mask {
    /// How many of so many keys a query sees.
    pub fn seen(&self, query: usize, keys: usize) -> usize {
        self.seen.as_ref().map_or(keys, |seen| seen[query].min(keys))
    }
}
