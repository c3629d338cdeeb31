//! [`PlannedPoints`]: what is known of the points of both sides.

use ndarray::{Array2, ArrayRef2, ArrayRef4, Axis, s};
use rand::seq::SliceRandom;

use crate::Real;
use crate::data::{Reservoir, Statistics};
use crate::error::{Error, Result, check_finite, check_positive, check_size};
use crate::numeric::matrix_of;

/// The fewest points of a side from which a plan is made.
const LEAST: usize = 8;
/// Queries and keys of a head on which errors of attention are evaluated. Beside fewer keys there are more queries.
const TOKENS: (usize, usize) = (48, 320);
/// Heads on which errors of attention are evaluated.
const HEADS: usize = 8;

/// The points of both sides: statistics of all, and some of them.
#[derive(Clone, Debug)]
pub(crate) struct PlannedPoints {
    pub sides: [SidePoints; 2],
    /// Whether both sides are the same points.
    pub one_set: bool,
    /// Some tokens of each head, for attention with several heads.
    pub heads: Vec<HeadTokens>,
    /// Whether the points came in heads.
    pub in_heads: bool,
    /// The bytes of a number of the data.
    pub scalar: usize,
}

/// The points of a side.
#[derive(Clone, Debug)]
pub(crate) struct SidePoints {
    pub statistics: Statistics,
    /// Some of the points, in random order or all of them.
    pub points: Array2<f64>,
    /// Their numbers in the data.
    pub rows: Vec<u64>,
}

/// Some tokens of a head, as points.
#[derive(Clone, Debug)]
pub(crate) struct HeadTokens {
    pub queries: Array2<f64>,
    pub keys: Array2<f64>,
    pub values: Option<Array2<f64>>,
}

impl SidePoints {
    fn of(reservoir: &Reservoir) -> Self {
        SidePoints {
            statistics: reservoir.statistics().clone(),
            points: reservoir.points(),
            rows: reservoir.row_numbers(),
        }
    }

    /// The number of all points.
    pub fn count(&self) -> usize {
        self.statistics.rows() as usize
    }

    fn check(&self, name: &'static str) -> Result<()> {
        // A reservoir may keep fewer than it has read.
        let known = self.count().min(self.rows.len());
        if known >= LEAST {
            return Ok(());
        }
        let domain = "at least 8: fewer say too little about the pairs that a map will meet";
        Err(Error::Parameter { name, value: known as f64, domain })
    }
}

impl PlannedPoints {
    pub fn new(x: &Reservoir, y: Option<&Reservoir>, scalar: usize) -> Result<Self> {
        let sides = [x, y.unwrap_or(x)].map(SidePoints::of);
        check_size("the dimension of the keys", x.dim(), sides[1].statistics.dim())?;
        sides[0].check(if y.is_none() { "the number of points" } else { "the number of queries" })?;
        sides[1].check("the number of keys")?;
        Ok(PlannedPoints { sides, one_set: y.is_none(), heads: Vec::new(), in_heads: false, scalar })
    }

    /// The queries and keys of heads, batch × heads × length × dim, times `factor`.
    pub fn of_heads<T: Real>(
        [queries, keys]: [&ArrayRef4<T>; 2],
        values: Option<&ArrayRef4<T>>,
        factor: f64,
    ) -> Result<Self> {
        let (batch, heads, _, d) = queries.dim();
        let (key_batch, key_heads, length, key_dim) = keys.dim();
        check_size("the batch of the keys", batch, key_batch)?;
        check_size("the dimension of the keys", d, key_dim)?;
        check_positive("the number of heads of the keys", key_heads)?;
        if !heads.is_multiple_of(key_heads) {
            return Err(Error::Multiple {
                what: "the number of heads of the queries",
                of: key_heads,
                found: heads,
            });
        }
        if let Some(values) = values {
            let (value_batch, value_heads, value_length, _) = values.dim();
            check_size("the batch of the values", batch, value_batch)?;
            check_size("the number of heads of the values", key_heads, value_heads)?;
            check_size("the number of values of a head", length, value_length)?;
        }
        let [mut x, mut y] = [Reservoir::new(d.max(1))?, Reservoir::new(d.max(1))?];
        let chosen = sample(batch * heads, HEADS);
        let mut some = Vec::with_capacity(chosen.len());
        for b in 0..batch {
            for h in 0..heads {
                let q = queries.slice(s![b, h, .., ..]).mapv(|v| v.widen() * factor);
                x.update(&q)?;
                let own = h / (heads / key_heads);
                let k = keys.slice(s![b, own, .., ..]).mapv(|v| v.widen() * factor);
                if h % (heads / key_heads) == 0 {
                    y.update(&k)?;
                }
                let values = values.map(|v| v.slice(s![b, own, .., ..]).mapv(Real::widen));
                values.as_ref().map_or(Ok(()), |values| check_finite("the values", values))?;
                if chosen.contains(&(b * heads + h)) {
                    some.push(HeadTokens::of(&q, &k, values.as_ref()));
                }
            }
        }
        Ok(PlannedPoints { heads: some, in_heads: true, ..PlannedPoints::new(&x, Some(&y), size_of::<T>())? })
    }

    /// The head that queries and keys without heads are, with these values if there are any.
    pub fn with_one_head(mut self, values: Option<&Array2<f64>>) -> Self {
        if self.heads.is_empty() || values.is_some() {
            let [x, y] = &self.sides;
            self.heads = vec![HeadTokens::of(&x.points, &y.points, values)];
        }
        self
    }

    /// The rows of values or targets that belong to the points that are kept.
    pub fn rows_of<T: Real>(
        &self,
        side: usize,
        name: &'static str,
        values: &ArrayRef2<T>,
    ) -> Result<Array2<f64>> {
        let side = &self.sides[side];
        check_size(name, side.count(), values.nrows())?;
        let mut kept = Vec::with_capacity(side.rows.len().saturating_mul(values.ncols()));
        for &row in &side.rows {
            let reason = "was read, but is beyond the values or targets: these have the rows from 0 on";
            let beyond = row >= values.nrows() as u64;
            let index = if beyond { Err(Error::Row { row, reason }) } else { Ok(row as usize) };
            kept.extend(values.row(index?).iter().map(|v| v.widen()));
        }
        Ok(matrix_of(side.rows.len(), values.ncols(), kept))
    }

    /// Whether no point is left out where errors are evaluated.
    pub fn are_all_kept(&self) -> bool {
        let kept = |side: &SidePoints| side.rows.len() == side.count();
        !self.in_heads && self.sides.iter().all(kept)
    }

    pub fn dim(&self) -> usize {
        self.sides[0].statistics.dim()
    }
}

impl HeadTokens {
    fn of(queries: &Array2<f64>, keys: &Array2<f64>, values: Option<&Array2<f64>>) -> Self {
        let some = |x: &Array2<f64>, most| x.select(Axis(0), &sample(x.nrows(), most));
        let keys = some(keys, TOKENS.1);
        HeadTokens {
            // As many pairs as there are with the most keys.
            queries: some(queries, TOKENS.0 * TOKENS.1 / keys.nrows().max(1)),
            keys,
            values: values.map(|values| some(values, TOKENS.1)),
        }
    }
}

/// Up to `most` of the numbers below `of`, ascending: drawn at random, since an order of points may have a period, and the same each
/// time.
fn sample(of: usize, most: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..of).collect();
    if of > most {
        all.shuffle(&mut crate::rng(of as u64));
        all.truncate(most);
        all.sort_unstable();
    }
    all
}
