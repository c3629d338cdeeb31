//! [`KernelSums`]: the sums over training points for kernel regression.

use std::ops::Range;

use ndarray::ArrayRef2;

use super::{Prepared, WeightedSums};
use crate::Real;
use crate::engine::{Form, Program};
use crate::error::{Error, MAPS_DIFFER, Result, check_alike};
use crate::map::{Identity, Map};
use crate::once::once;
use crate::rows::RowRanges;

/// The sums over training points of a [`Smoother`](crate::apply::Smoother), without its map, to be exchanged between machines.
///
/// In this example two machines read halves of a data set, and a coordinator without the map adds their sums.
/// ```
/// use random_features::ndarray::{Array2, Axis, s};
/// use random_features::apply::Smoother;
/// use random_features::frequency::Orthogonal;
/// use random_features::reduce::KernelSums;
/// use random_features::{Map, Positive, Result};
/// let wave = |i: usize, k: usize| ((i * (k + 2)) as f64).sin();
/// let x = Array2::from_shape_fn((400, 2), |(i, k)| wave(i, k));
/// let y = x.map_axis(Axis(1), |x| x[0] * x[1]);
/// let map: Map<f64> = Positive.gaussian(Orthogonal.draw(2, 256, 5)?, 0.5)?;
///
/// let machine = |rows: std::ops::Range<usize>| -> Result<KernelSums<f64>> {
///     let part = Smoother::new(map.clone(), 1)?;
///     let mut part = part.with_first_row(rows.start as u64)?;
///     part.update(&x.slice(s![rows.clone(), ..]), &y.slice(s![rows]))?;
///     Ok(part.sums().clone())
/// };
/// // On the coordinator.
/// let mut sums = machine(0..150)?;
/// sums.merge(&machine(150..400)?)?;
/// assert_eq!((sums.rows(), sums.row_ranges()), (400, vec![0..400]));
/// // Row 100 would count twice.
/// assert!(sums.merge(&machine(100..200)?).is_err());
///
/// // Where predictions are made.
/// let smoother = Smoother::of_sums(map.clone(), sums)?;
/// let mut alone = Smoother::new(map, 1)?;
/// alone.update(&x, &y)?;
/// let error = smoother.predict(&x)? - alone.predict(&x)?;
/// assert!(error.iter().all(|e| e.abs() < 1e-12));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// The sums are Σᵢ ψ(xᵢ), Σᵢ ψ(xᵢ) yᵢ and Σᵢ yᵢ over rows i of a data set, with the numbers of the rows and the identity of the
/// map ψ. Each feature has a scale of its own, so that sums neither overflow nor underflow at any norm. Equal parts that are
/// merged in the same order give equal bits; in another order sums differ by rounding.
///
/// Sums of `f32` are sums of products in `f32`, for maps of `f32`; stored sums are read only in their scalar type. Identities are
/// equal on every machine, except that a user-defined map has an identity only within its process.
///
/// # Cost
/// Sums take 8 D (targets + 2) bytes in memory, and as many in a binary format (feature `serde`). Merging takes one pass over
/// both.
#[derive(Clone, Debug)]
pub struct KernelSums<T: Real> {
    map: Identity,
    /// Σᵢ ψ(xᵢ) and Σᵢ ψ(xᵢ) yᵢ, in rows.
    sums: WeightedSums<T>,
    /// Σᵢ yᵢ.
    totals: Vec<f64>,
    pub(crate) rows: RowRanges,
}

impl<T: Real> KernelSums<T> {
    /// Empty sums, for `targets` numbers at each point.
    pub(crate) fn new(map: &Map<T>, targets: usize) -> Result<Self> {
        let sums = WeightedSums::in_rows(map.feature_dim(), targets)?;
        let (totals, rows) = (vec![0.0; targets], RowRanges::default());
        Ok(KernelSums { map: map.identity(), sums, totals, rows })
    }

    /// The [identity](Map::identity) of the map.
    pub fn identity(&self) -> Identity {
        self.map
    }

    /// The number of targets of each point.
    pub fn targets(&self) -> usize {
        self.totals.len()
    }

    /// The number of training points.
    pub fn rows(&self) -> u64 {
        self.rows.len()
    }

    /// The numbers of the rows that are held, as ascending ranges with gaps between them.
    pub fn row_ranges(&self) -> Vec<Range<u64>> {
        self.rows.ranges()
    }

    /// Adds the sums over other rows to these. The map and the number of targets must be equal. The rows must have
    /// different numbers, which [`with_first_row`](crate::apply::Smoother::with_first_row) gives them before they are
    /// added.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if maps or numbers of targets differ, [`Row`](Error::Row) if a row is in both. The sums are
    /// unchanged then.
    #[inline(never)]
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        check_alike([
            (self.map != other.map, MAPS_DIFFER),
            (self.targets() != other.targets(), "their numbers of targets differ"),
            (self.sums.features() != other.sums.features(), "their numbers of features differ"),
        ])?;
        self.rows.check_apart(&other.rows)?;
        self.totals = self.totals_with(other.totals.iter().copied())?;
        self.sums.merge(&other.sums);
        self.rows.join(&other.rows);
        Ok(())
    }

    /// Rejects sums that were taken with another map.
    pub(crate) fn check_map(&self, map: &Map<T>) -> Result<()> {
        let features = self.sums.features() != map.feature_dim();
        check_alike([
            (self.map != map.identity(), "the sums were taken with another map"),
            (features, "the sums are of another number of features than the map's"),
        ])
    }

    /// Adds the sums over points with these targets, which are the rows `rows` of the data set.
    pub(crate) fn add(
        &mut self,
        sums: &WeightedSums<T>,
        targets: &ArrayRef2<T>,
        rows: Range<u64>,
    ) -> Result<()> {
        let columns = targets.columns().into_iter();
        self.totals = self.totals_with(columns.map(|column| column.iter().map(|y| y.widen()).sum()))?;
        self.sums.merge(sums);
        self.rows.insert(rows);
        Ok(())
    }

    /// The sums of targets, with `more` targets added.
    fn totals_with(&self, more: impl Iterator<Item = f64>) -> Result<Vec<f64>> {
        let with = |(own, more): (&f64, f64)| {
            let value = own + more;
            let (name, domain) = ("the sum of a target over all points", "finite: scale the targets");
            if value.is_finite() { Ok(value) } else { Err(Error::Parameter { name, value, domain }) }
        };
        self.totals.iter().zip(more).map(with).collect()
    }

    /// The mean of target `j` over all points.
    pub(crate) fn mean(&self, j: usize) -> f64 {
        self.totals[j] / self.rows() as f64
    }

    /// Whether target `j` was not 0 for some point.
    pub(crate) fn occurs(&self, j: usize) -> bool {
        self.totals[j] != 0.0 || self.sums.row(j).iter().any(|sum| *sum != 0.0)
    }

    /// These sums, prepared to be applied to points.
    pub(crate) fn prepared(&self, program: &Program<T>, form: Form) -> Prepared<'_, T> {
        self.sums.prepared(program, form)
    }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::{Identity, KernelSums, Real, WeightedSums};
    use crate::rows::RowRanges;
    use crate::sealed::sealed_fields;

    sealed_fields! {
        KernelSums<T>, T,
        #[serde(rename = "KernelSums", bound = "")]
        struct StoredKernelSums {
            map: Identity,
            sums: WeightedSums<T>,
            #[serde(with = "crate::exact")]
            totals: Vec<f64>,
            rows: RowRanges,
        }
    }

    impl<T: Real> TryFrom<StoredKernelSums<T>> for KernelSums<T> {
        type Error = &'static str;

        fn try_from(stored: StoredKernelSums<T>) -> Result<Self, &'static str> {
            let StoredKernelSums { map, sums, totals, rows } = stored;
            let finite = totals.iter().all(|total| total.is_finite());
            if !finite || totals.is_empty() || !sums.fits_rows(sums.features(), totals.len()) {
                return Err("sums of another shape than that of the targets");
            }
            if rows.len() == 0 && sums.has_seen() {
                return Err("sums of no rows that are not 0");
            }
            Ok(KernelSums { map, sums, totals, rows })
        }
    }
}

once!(KernelSums::<T>::merge);
