//! [`AttentionShaping`]: shapes for attention, chosen from queries and keys.

use ndarray::{Array2, ArrayRef2, Axis, s};

use super::super::input::{TokenScale, Window};
use super::super::pairs::{finite_softmax, heaviest};
use crate::Real;
use crate::data::shaping::{Shape, Shaping, check_rows};
use crate::data::spread::spread;
use crate::error::{Error, Result, check_positive, check_size};
use crate::memory::check_memory;
use crate::numeric;
use crate::once::once;
use crate::progress;

/// The choice of a [shape](Shape) for softmax attention, from queries and keys as [`Attention`](super::super::Attention) takes them, not
/// scaled. [`Attention::shaped`](super::super::Attention::shaped) does all of it in one call.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::rand::RngExt;
/// use random_features::Map;
/// use random_features::apply::attention::{Attention, AttentionShaping};
/// use random_features::data::shaping::Shaping;
/// use random_features::frequency::Orthogonal;
/// use random_features::kernel::Softmax;
/// let mut rng = random_features::rng(1);
/// let queries = Array2::from_shape_simple_fn((30, 4), || rng.random::<f64>());
/// let mut keys = Array2::from_shape_simple_fn((20, 4), || rng.random::<f64>());
/// keys.row_mut(7).fill(9.0);
/// let shaping = AttentionShaping::new(Shaping::new());
/// let (shape, exact_keys) = shaping.choose(&queries, &keys, 30, 1)?;
/// assert_eq!((shape.dim(), exact_keys.clone()), (4, vec![7]));
/// // Attention takes the same queries and keys.
/// let omega = Orthogonal.draw(4, 64, 1)?;
/// let map: Map<f64> = shape.build(omega, Softmax::default())?;
/// let attention = Attention::new(map)?.with_keys_exact(&exact_keys)?;
/// # let _ = attention;
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Logits are q·k/√d unless [stated otherwise](AttentionShaping::with_scale). The weights of some queries are computed exactly. Keys with the
/// largest sums of these weights may get exact weights themselves. The [`Shape`] is chosen from the pairs that are left, with these
/// weights, or with equal weights if they all underflow. Neither the exact keys nor exact [neighbours](AttentionShaping::with_window) count.
///
/// The choice depends on all queries and keys. It may be used for bidirectional attention of the same tokens, where
/// estimates stay without bias since frequencies do not depend on it. For causal attention of the same tokens it would
/// leak later tokens into earlier outputs.
///
/// # Cost
/// The cost of [`Shaping::of_pairs`], and r l d multiplications and memory for r l numbers, for the weights of r
/// queries.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionShaping {
    shaping: Shaping,
    /// How queries and keys become points; `None` for logits q·k/√d.
    tokens: Option<TokenScale>,
    /// Pairs of tokens whose weights are exact.
    window: Window,
}

impl AttentionShaping {
    /// Shapes with these options, for logits q·k/√d and without neighbours.
    pub fn new(shaping: Shaping) -> Self {
        AttentionShaping { shaping, tokens: None, window: Window::default() }
    }

    /// Sets the scale: logits are q·k·`scale` instead of q·k/√d.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the scale is positive and finite.
    pub fn with_scale(self, scale: f64) -> Result<Self> {
        Ok(AttentionShaping { tokens: Some(TokenScale::of_scale(scale)?), ..self })
    }

    /// Takes cosines: logits are q·k/(‖q‖ ‖k‖ `temperature`), instead of any scale.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the temperature is positive and finite.
    pub fn with_cosine(self, temperature: f64) -> Result<Self> {
        Ok(AttentionShaping { tokens: Some(TokenScale::of_cosine(temperature)?), ..self })
    }

    /// Sets the window of exact neighbours: pairs in it get no weight.
    ///
    /// Row i of queries and keys is at place i of the sequence, as in
    /// [`Attention::with_window`](super::super::Attention::with_window). The heaviest keys are those of all pairs.
    #[must_use]
    pub fn with_window(self, before: usize, after: usize) -> Self {
        AttentionShaping { window: Window { before, after }, ..self }
    }

    /// The shape for these queries, n × d, and keys, l × d, and the rows of up to `exact_keys` keys with the largest weights, ascending, for
    /// [`Attention::with_keys_exact`](super::super::Attention::with_keys_exact).
    ///
    /// The weights of up to `rows` evenly spaced queries are computed; 64 are enough. A key without weight for these queries is not among
    /// the exact ones, which may then be fewer.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the dimensions differ, [`NotFinite`](Error::NotFinite) with the first row whose squared norm is
    /// not finite, [`Parameter`](Error::Parameter) if `rows` is 0 or there are no more than `exact_keys` keys,
    /// [`NoData`](Error::NoData) without queries or keys, and the errors of [`Shaping::of_pairs`].
    /// [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    #[inline(never)]
    pub fn choose<T: Real>(
        &self,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        rows: usize,
        exact_keys: usize,
    ) -> Result<(Shape, Vec<usize>)> {
        check_positive("the number of rows of the attention matrix", rows)?;
        self.choose_rows(queries, &spread(queries.nrows(), rows), keys, exact_keys)
    }

    /// The shape and the exact keys that [`choose`](AttentionShaping::choose) gives, with the weights of these rows of the queries. The
    /// moments of x are those of all queries.
    ///
    /// # Errors
    /// The errors of [`choose`](AttentionShaping::choose); [`Parameter`](Error::Parameter) if a row is not below n.
    #[inline(never)]
    pub fn choose_rows<T: Real>(
        &self,
        queries: &ArrayRef2<T>,
        rows: &[usize],
        keys: &ArrayRef2<T>,
        exact_keys: usize,
    ) -> Result<(Shape, Vec<usize>)> {
        let (x, y) = self.points(queries, keys)?;
        let mut weights = attention_rows(&x, rows, &y)?;
        let exact_keys = heaviest_of(&weights, exact_keys)?;
        hide_exact(self.window, &mut weights, rows, &exact_keys);
        if weights.sum() == 0.0 {
            weights.fill(1.0);
            hide_exact(self.window, &mut weights, rows, &exact_keys);
        }
        // Where all pairs are exact, features have nothing to do.
        if weights.sum() == 0.0 {
            weights.fill(1.0);
        }
        Ok((self.shaping.of_pairs(&x, rows, &y, &weights)?, exact_keys))
    }

    /// The rows of the `count` keys, l × d, with the largest sums of softmax weights over up to `rows` evenly spaced queries, n × d,
    /// ascending.
    ///
    /// Ties go to the first key, and a key without weight is never among them. With 64 rows they are those that
    /// [`Attention::with_heaviest_keys_exact`](super::super::Attention::with_heaviest_keys_exact) chooses for one head of queries.
    ///
    /// # Errors
    /// The errors of [`choose`](AttentionShaping::choose).
    #[inline(never)]
    pub fn heaviest_keys<T: Real>(
        &self,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        rows: usize,
        count: usize,
    ) -> Result<Vec<usize>> {
        check_positive("the number of rows of the attention matrix", rows)?;
        let (x, y) = self.points(queries, keys)?;
        heaviest_of(&attention_rows(&x, &spread(x.nrows(), rows), &y)?, count)
    }

    /// The points of queries and keys, checked.
    fn points<T: Real>(
        &self,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
    ) -> Result<(Array2<f64>, Array2<f64>)> {
        check_size("the dimension of the keys", queries.ncols(), keys.ncols())?;
        let scale = self.tokens.unwrap_or_else(|| TokenScale::of_dim(queries.ncols()));
        let of_queries =
            ["a shape for attention, from queries,", "the queries", "the squared norms of the queries"];
        let of_keys = ["a shape for attention, from keys,", "the keys", "the squared norms of the keys"];
        Ok((points_of(queries, scale, of_queries)?, points_of(keys, scale, of_keys)?))
    }
}

/// Tokens as points; refuses empty sets and points whose squared norm is not finite, with the names of what needs them, of
/// themselves and of their squared norms.
fn points_of<T: Real>(
    tokens: &ArrayRef2<T>,
    scale: TokenScale,
    [need, name, squares]: [&'static str; 3],
) -> Result<Array2<f64>> {
    if tokens.is_empty() {
        return Err(Error::NoData { what: need });
    }
    check_memory("coordinates of queries or keys", tokens.len(), size_of::<f64>())?;
    let mut points = Vec::with_capacity(tokens.len());
    for token in tokens.rows() {
        progress::check()?;
        let token = token.iter().map(|v| v.widen());
        match scale.unit {
            true => points.extend(numeric::with_length(token, scale.factor)),
            false => points.extend(token.map(|v| v * scale.factor)),
        }
    }
    let points = numeric::matrix_of(tokens.nrows(), tokens.ncols(), points);
    match points.rows().into_iter().position(|row| !row.dot(&row).is_finite()) {
        None => Ok(points),
        Some(row) => {
            let column = tokens.row(row).iter().position(|v| !v.is_finite());
            Err(Error::NotFinite { what: if column.is_some() { name } else { squares }, row, column })
        }
    }
}

/// Makes the weights of exact pairs 0: those with these keys, and those with neighbours of the queries at these places.
pub(super) fn hide_exact(window: Window, weights: &mut Array2<f64>, places: &[usize], keys: &[usize]) {
    keys.iter().for_each(|j| weights.column_mut(*j).fill(0.0));
    for (mut row, place) in weights.rows_mut().into_iter().zip(places) {
        let (near, most) = (window.places(*place), row.len());
        row.slice_mut(s![near.start.min(most)..near.end.min(most)]).fill(0.0);
    }
}

/// Rows of the attention matrix.
fn attention_rows(x: &Array2<f64>, rows: &[usize], y: &Array2<f64>) -> Result<Array2<f64>> {
    check_rows(rows, x.nrows())?;
    check_memory("weights of rows of the attention matrix", rows.len().saturating_mul(y.nrows()), 8)?;
    let mut weights = x.select(Axis(0), rows).dot(&y.t());
    weights.rows_mut().into_iter().for_each(finite_softmax);
    Ok(weights)
}

/// The heaviest keys, which must leave others.
fn heaviest_of(weights: &Array2<f64>, count: usize) -> Result<Vec<usize>> {
    if count >= weights.ncols() {
        let domain = "less than the number of keys";
        return Err(Error::Parameter { name: "the number of exact keys", value: count as f64, domain });
    }
    Ok(heaviest(&weights.sum_axis(Axis(0)).to_vec(), count))
}

once!(
    AttentionShaping::choose::<T>,
    AttentionShaping::choose_rows::<T>,
    AttentionShaping::heaviest_keys::<T>
);
