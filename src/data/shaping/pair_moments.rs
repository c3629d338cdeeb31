//! [`PairMoments`]: means, second moments and cross moments of both sides.

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, Axis};

use super::Moments;
use crate::Real;
use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;
use crate::once::once;
use crate::progress;

/// Moments of queries x and keys y, for all pairs equally or for weighted pairs.
///
/// ```
/// use random_features::ndarray::{arr1, arr2};
/// use random_features::data::shaping::{Moments, PairMoments};
/// let (x, y) = (arr2(&[[0.0], [2.0]]), arr2(&[[1.0], [5.0]]));
/// let moments = PairMoments::weighted(
///     Moments::of(&x)?,
///     &x,
///     &y,
///     &arr2(&[[3.0, 1.0], [0.0, 0.0]]),
/// )?;
/// assert_eq!(
///     (moments.x().mean()?, moments.y().mean()?),
///     (arr1(&[1.0]), arr1(&[2.0]))
/// );
/// // One query has all of the weight, so the cross covariance is 0.
/// assert_eq!(moments.cross_covariance(), arr2(&[[0.0]]));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Without weights of pairs, the weight of (xᵢ, yⱼ) is the product of the weights of its points: x and y are independent and
/// described by the moments of each side. With weights pᵢⱼ ≥ 0, such as rows of an attention matrix, the moments of x are
/// those of all queries, the moments of y have the weights Σᵢ pᵢⱼ, and the cross covariance is C_xy = Σ pᵢⱼ(xᵢ − x̄)(yⱼ − ȳ)ᵀ
/// / Σ pᵢⱼ with the weighted means x̄ and ȳ of the pairs. Points must have been divided by the lengthscale.
///
/// Moments from different threads, machines or sets of rows can be [merged](PairMoments::merge).
///
/// # Cost
/// nd²/2 multiplications for each side, and n l d + l d² for weights of n queries and l keys; O(d²) memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PairMoments {
    x: Moments,
    y: Moments,
    cross: Option<Cross>,
}

/// The moments that depend on the weights of pairs.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Cross {
    /// x̄; ȳ is the mean of the moments of y.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    mean: Vec<f64>,
    /// C_xy, d × d.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    covariance: Array2<f64>,
}

impl PairMoments {
    /// The moments of all pairs of points of x and y, without weights of pairs.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the dimensions differ, [`NoData`](Error::NoData) if a side has no weight.
    pub fn new(x: Moments, y: Moments) -> Result<Self> {
        check_size("the dimension of y", x.dim(), y.dim())?;
        x.check_data("the choice of a shape for x")?;
        y.check_data("the choice of a shape for y")?;
        Ok(PairMoments { x, y, cross: None })
    }

    /// The moments of pairs of the rows of `queries`, n × d, and `keys`, l × d, with `weights`, n × l; `x` are the moments of all
    /// queries, of which `queries` may be a sample.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a size does not fit, [`NotFinite`](Error::NotFinite) with the first row of the queries or
    /// keys whose squared norm is not finite, [`Entry`](Error::Entry) with the first row of weights that holds one that is
    /// negative or not finite, [`Parameter`](Error::Parameter) if their sum overflows, [`NoData`](Error::NoData) if it is 0,
    /// [`Memory`](Error::Memory) if copies of queries, keys and weights do not fit in memory.
    #[inline(never)]
    pub fn weighted<T: Real>(
        x: Moments,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        weights: &ArrayRef2<f64>,
    ) -> Result<Self> {
        check_size("the dimension of the queries", x.dim(), queries.ncols())?;
        check_size("the number of rows of the weights", queries.nrows(), weights.nrows())?;
        check_size("the number of columns of the weights", keys.nrows(), weights.ncols())?;
        let (n, l) = weights.dim();
        // Both sides and the weights are copied.
        check_memory(
            "rows of queries and keys",
            n.saturating_add(l),
            keys.ncols().saturating_mul(2 * size_of::<f64>()),
        )?;
        check_memory("weights of pairs", n.saturating_mul(l), 2 * size_of::<f64>())?;
        check_weights(weights)?;
        let (mut rows, mut y) = (Moments::new(x.dim())?, Moments::new(keys.ncols())?);
        rows.update_weighted(queries, &weights.sum_axis(Axis(1)))?;
        y.update_weighted(keys, &weights.sum_axis(Axis(0)))?;
        let moments = PairMoments::new(x, y)?;
        let (mean, total) = (rows.mean()?, moments.y.weight());
        progress::check()?;
        let queries = queries.mapv(Real::widen) - &mean;
        let keys = keys.mapv(Real::widen) - &moments.y.mean()?;
        let shares = weights.mapv(|weight| weight / total);
        let covariance = queries.t().dot(&shares).dot(&keys);
        Ok(PairMoments { cross: Some(Cross { mean: mean.to_vec(), covariance }), ..moments })
    }

    /// Adds the pairs of `other`, with their queries and keys.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the dimensions differ, [`Merge`](Error::Merge) if only one has weights of pairs,
    /// [`Parameter`](Error::Parameter) if a sum of weights overflows; nothing is added on error.
    pub fn merge(&mut self, other: &PairMoments) -> Result<()> {
        let (mut x, mut y) = (self.x.clone(), self.y.clone());
        x.merge(&other.x)?;
        y.merge(&other.y)?;
        match (&mut self.cross, &other.cross) {
            (None, None) => {}
            (Some(own), Some(their)) => {
                let (old, new) = (self.y.weight() / y.weight(), other.y.weight() / y.weight());
                let (left, right) = (self.y.mean()?, other.y.mean()?);
                own.merge(old, new, their, &(right - left));
            }
            _ => return Err(Error::Merge { reason: "one has weights of pairs" }),
        }
        (self.x, self.y) = (x, y);
        Ok(())
    }

    /// The moments of the queries.
    pub fn x(&self) -> &Moments {
        &self.x
    }

    /// The moments of the keys.
    pub fn y(&self) -> &Moments {
        &self.y
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        self.x.dim()
    }

    /// Whether pairs have weights.
    pub fn is_weighted(&self) -> bool {
        self.cross.is_some()
    }

    /// C_xy, d × d; zeros for pairs without weights.
    pub fn cross_covariance(&self) -> Array2<f64> {
        let zeros = || Array2::zeros((self.dim(), self.dim()));
        self.cross.as_ref().map_or_else(zeros, |cross| cross.covariance.clone())
    }
}

impl Cross {
    /// Adds other moments: `old` and `new` are the shares of both in the total weight.
    fn merge(&mut self, old: f64, new: f64, other: &Cross, delta_y: &Array1<f64>) {
        let delta: Array1<f64> = other.mean.iter().zip(&self.mean).map(|(new, old)| new - old).collect();
        self.mean.iter_mut().zip(&delta).for_each(|(mean, delta)| *mean += new * delta);
        let rows = self.covariance.rows_mut().into_iter().zip(other.covariance.rows()).zip(&delta);
        for ((mut own, their), delta) in rows {
            let step = new * delta;
            let entries = own.iter_mut().zip(their).zip(delta_y);
            entries.for_each(|((own, their), delta)| *own = old * *own + new * their + step * (old * delta));
        }
    }
}

/// Rejects negative weights and weights that are not finite.
pub(super) fn check_weights(weights: &ArrayRef2<f64>) -> Result<()> {
    let wrong = |row: &ArrayRef1<f64>| row.iter().copied().find(|w| !(w.is_finite() && *w >= 0.0));
    let rows = weights.rows().into_iter().enumerate();
    match rows.filter_map(|(i, row)| wrong(&row).map(|value| (i, value))).next() {
        None => Ok(()),
        Some((row, value)) => {
            Err(Error::Entry { what: "the weights", row, value, domain: "finite and not negative" })
        }
    }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::{Cross, Moments, PairMoments};
    use crate::error::{Error, Result, check_size};
    use crate::sealed::{AnyScalar, sealed_fields};

    sealed_fields! {
        PairMoments, AnyScalar,
        #[serde(rename = "PairMoments")]
        struct StoredPairMoments {
            x: Moments,
            y: Moments,
            cross: Option<Cross>,
        }
    }

    impl TryFrom<StoredPairMoments> for PairMoments {
        type Error = Error;

        fn try_from(StoredPairMoments { x, y, cross }: StoredPairMoments) -> Result<Self> {
            let moments = PairMoments::new(x, y)?;
            cross.iter().try_for_each(|cross| cross.check(moments.dim()))?;
            Ok(PairMoments { cross, ..moments })
        }
    }

    impl Cross {
        /// Rejects moments of another dimension, and NaN.
        fn check(&self, d: usize) -> Result<()> {
            check_size("the dimension of the mean of weighted pairs", d, self.mean.len())?;
            check_size("the number of rows of the cross covariance", d, self.covariance.nrows())?;
            check_size("the number of columns of the cross covariance", d, self.covariance.ncols())?;
            let finite = |row: &usize| {
                self.mean[*row].is_finite() && self.covariance.row(*row).iter().all(|v| v.is_finite())
            };
            match (0..d).find(|row| !finite(row)) {
                None => Ok(()),
                Some(row) => Err(Error::NotFinite { what: "the cross covariance", row, column: None }),
            }
        }
    }
}

once!(PairMoments::weighted::<T>);
