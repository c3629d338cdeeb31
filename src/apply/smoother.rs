//! [`Smoother`]: kernel regression from features.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayRef2, ArrayViewMut2, Axis, s};

use crate::engine::{Batch, FeatureSource, PointsView, Runs, Side, fold, map_rows};
use crate::error::{Error, Result, check_size};
use crate::labels::best_classes;
use crate::map::Map;
use crate::memory::check_memory;
use crate::numeric::slice_of;
use crate::once::once;
use crate::reduce::{Applied, KernelSums, RunBuffers, WeightedSums, check_targets, check_training};
use crate::targets::single;
use crate::threads::Pool;
use crate::{Points, Real, Targets};

/// What a smoother does not do.
pub(super) const UNWEIGHTED: &str = "weights of the rows of a smoother";

/// The number of points that are summed in the scalar type; it grows with the number of targets.
fn run(targets: usize) -> usize {
    targets.saturating_mul(4).clamp(128, 512)
}

/// Predicts weighted means of targets in linear time: kernel regression (Nadaraya–Watson smoothing) from random features.
/// Approximate: the kernel is the map's estimate.
///
/// ```
/// use random_features::ndarray::arr2;
/// use random_features::Positive;
/// use random_features::apply::Smoother;
/// use random_features::extend::Coupling;
/// use random_features::frequency::Orthogonal;
/// let omega = Orthogonal.draw(2, 256, 5)?;
/// let mut smoother = Smoother::<f64>::new(Positive.gaussian(omega, 1.0)?, 2)?;
/// smoother
///     .update(&arr2(&[[1.0, 1.0], [1.2, 0.9], [-1.0, -1.1]]), &[0, 0, 1])?;
/// assert_eq!(smoother.classify(&arr2(&[[0.9, 1.1], [-1.0, -1.0]]))?, [0, 1]);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// ŷ(x) = Σᵢ K̂(x, xᵢ) yᵢ / Σᵢ K̂(x, xᵢ) with K̂(x, xᵢ) = φ(x)·ψ(xᵢ), so that only the sums Σᵢ ψ(xᵢ), Σᵢ ψ(xᵢ) yᵢ and Σᵢ yᵢ
/// over the training points are kept. Labels are regressed as indicator vectors; the class is the largest score. With
/// `update(keys, values)` and `predict(queries)` it is non-causal linear attention.
///
/// Points may come in any number of batches. Sums are `f64` and, for maps with logarithms, have a scale for each
/// feature, so that weights do not underflow at any norm. Estimates of other maps may be negative. If a point's total weight
/// is then not positive, [`predict`](Smoother::predict) returns the mean of the training targets, as with an infinite
/// lengthscale, and [`predict_and_report`](Smoother::predict_and_report) gives the rows of such points.
///
/// Parts of a data set may be read by several machines: smoothers of equal maps [merge](Smoother::merge), and their
/// [sums](Smoother::sums) are sent without the map ([`KernelSums`]). Rows are numbered, and none is counted twice.
///
/// # Cost
/// O(n m d) to train, O(t m (d + targets)) to predict, O(m · targets) memory; the exact kernel needs O(n t d).
///
/// # References
/// Reid et al., *Simplex Random Features*, section 5.3.
#[doc(alias = "Nadaraya-Watson")]
#[doc(alias = "Nadaraya–Watson")]
#[doc(alias = "kernel regression")]
#[derive(Clone, Debug)]
pub struct Smoother<T: Real> {
    map: Map<T>,
    sums: KernelSums<T>,
    /// The number of the first row of the next update.
    next: u64,
}

impl<T: Real> Smoother<T> {
    /// A smoother without training points, for `targets` numbers at each point (for labels: the number of classes).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if `targets` is 0 or too large to be addressed, [`Memory`](Error::Memory) if the sums do not
    /// fit in memory.
    #[inline(never)]
    pub fn new(map: Map<T>, targets: usize) -> Result<Self> {
        check_targets(targets, map.feature_dim())?;
        let sums = KernelSums::new(&map, targets)?;
        Ok(Smoother { map, sums, next: 0 })
    }

    /// A smoother of sums that were taken with this map, here or elsewhere. The next update begins after their last row.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if the sums were taken with another map.
    pub fn of_sums(map: Map<T>, sums: KernelSums<T>) -> Result<Self> {
        sums.check_map(&map)?;
        let next = sums.rows.end().unwrap_or(0);
        Ok(Smoother { map, sums, next })
    }

    /// Sets the row of the whole data set at which the next update begins.
    ///
    /// # Errors
    /// [`Row`](Error::Row) if that row is counted already.
    #[inline(never)]
    pub fn with_first_row(mut self, row: u64) -> Result<Self> {
        self.sums.rows.check_start(row)?;
        self.next = row;
        Ok(self)
    }

    /// The map.
    pub fn map(&self) -> &Map<T> {
        &self.map
    }

    /// The sums over the training points, which are all that is kept of them.
    pub fn sums(&self) -> &KernelSums<T> {
        &self.sums
    }

    /// The number of training points so far.
    pub fn rows(&self) -> u64 {
        self.sums.rows()
    }

    /// The rows of the whole data set that are held: ascending ranges with gaps between them.
    pub fn row_ranges(&self) -> Vec<Range<u64>> {
        self.sums.row_ranges()
    }

    /// Adds the training points of another smoother with an equal map. The next update begins after the last row of both.
    ///
    /// # Errors
    /// The errors of [`KernelSums::merge`].
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.merge_sums(&other.sums)
    }

    /// Adds the sums of other training points, which may come from another machine. The next update begins after the last row of both.
    ///
    /// # Errors
    /// The errors of [`KernelSums::merge`].
    pub fn merge_sums(&mut self, sums: &KernelSums<T>) -> Result<()> {
        self.sums.merge(sums)?;
        self.next = self.next.max(self.sums.rows.end().unwrap_or(0));
        Ok(())
    }

    /// Adds the next rows: training points `x`, n × d, with their [targets](Targets), numbers or labels.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a size does not fit, [`NotFinite`](Error::NotFinite) if a number or a point's squared norm is
    /// not finite, [`Row`](Error::Row) if a row is counted already or its number would be 2⁶⁴ − 1 or more; nothing is added on
    /// error. [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    pub fn update<'a, 't>(
        &mut self,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<()> {
        let targets = targets.into();
        self.take_in(x.into().view(), &targets.unweighted(self.sums.targets(), UNWEIGHTED)?)
    }

    #[inline(never)]
    fn take_in(&mut self, x: PointsView<'_, T>, targets: &ArrayRef2<T>) -> Result<()> {
        let (program, form) = (self.map.program(), self.map.program().best_form());
        let (targets_count, width) = (self.sums.targets(), program.width());
        check_training(x, self.map.dim(), targets, targets_count)?;
        let rows = self.sums.rows.next(self.next, x.nrows())?;
        let next = rows.end;
        // Sums of runs are used again: page faults of new ones would take a sixth of the time.
        let spare = Pool::default();
        let of_run = |run: Range<usize>, batch: &mut Batch<T>, buffers: &mut RunBuffers<T>| {
            // Finite points whose squared norm overflows have no features.
            let overflow = (0..batch.rows()).find(|i| batch.row(*i).log_scales.iter().any(|s| s.is_nan()));
            match overflow {
                None => {
                    let mut sums =
                        spare.take().map_or_else(|| WeightedSums::in_rows(width, targets_count), Ok)?;
                    let targets = targets.slice_axis(Axis(0), run.into());
                    sums.replace(batch, form, program.blocks(), targets, buffers);
                    Ok(sums)
                }
                Some(row) => {
                    Err(Error::NotFinite { what: "the features of x", row: run.start + row, column: None })
                }
            }
        };
        let mut sums: Result<WeightedSums<T>> = Ok(WeightedSums::in_rows(width, targets_count)?);
        let shape = Runs { rows: run(targets_count), bytes: WeightedSums::<T>::size(width, targets_count) };
        let source = FeatureSource::new(program, Side::Y, form);
        fold(source, x, shape, &Pool::default(), of_run, |run| match (&mut sums, run) {
            (Ok(sums), Ok(run)) => {
                sums.merge(&run);
                spare.give(run);
            }
            (Ok(_), Err(error)) => sums = Err(error),
            (Err(_), _) => {}
        })?;
        self.sums.add(&sums?, targets, rows)?;
        self.next = next;
        Ok(())
    }

    /// The regression ŷ at the rows of `x`, n × d: n × t for t targets. For labels these are estimates of the classes' probabilities.
    ///
    /// A row that is not finite gives NaN. A prediction beyond the range of the scalar type becomes its largest number: weights of
    /// both signs may leave the range of the targets.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d columns, [`NoData`](Error::NoData) before the first training point,
    /// [`Memory`](Error::Memory) if the result does not fit in memory. [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    pub fn predict<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        self.predictions(x.into().view())
    }

    /// Predicts the only target: ŷ at the rows of `x`, as many numbers.
    ///
    /// # Errors
    /// The errors of [`predict`](Smoother::predict); [`Shape`](Error::Shape) if there are several targets.
    pub fn predict_single<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array1<T>> {
        single(self.predict(x)?)
    }

    #[inline(never)]
    fn predictions(&self, x: PointsView<'_, T>) -> Result<Array2<T>> {
        self.apply(x, self.sums.targets(), |sums, j| T::saturated(self.regression(sums, j)))
    }

    /// The regression ŷ at the rows of `x`, with the rows, ascending, whose total weight is not positive. There the
    /// prediction is the mean of the training targets, because signed estimates do not define a weighted mean. Many
    /// such rows indicate too few features for these points, or too small a lengthscale.
    ///
    /// # Errors
    /// The errors of [`predict`](Smoother::predict).
    pub fn predict_and_report<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<(Array2<T>, Vec<usize>)> {
        self.predictions_and_report(x.into().view())
    }

    #[inline(never)]
    fn predictions_and_report(&self, x: PointsView<'_, T>) -> Result<(Array2<T>, Vec<usize>)> {
        let targets = self.sums.targets();
        let entry = |sums: &[f64], j| {
            if j < targets {
                T::saturated(self.regression(sums, j))
            } else {
                T::narrow(f64::from(u8::from(sums[targets] <= 0.0)))
            }
        };
        let all = self.apply(x, targets + 1, entry)?;
        let marked = |(row, mark): (usize, &T)| (*mark > T::zero()).then_some(row);
        let rows = all.column(targets).iter().enumerate().filter_map(marked).collect();
        Ok((all.slice_move(s![.., ..targets]), rows))
    }

    /// ŷ for a target from a row's sums; the mean of the targets if weights do not add up to a positive number.
    fn regression(&self, sums: &[f64], j: usize) -> f64 {
        let weight = sums[self.sums.targets()];
        if weight <= 0.0 { self.sums.mean(j) } else { sums[j] / weight }
    }

    /// The class with the largest score Σᵢ K̂(x, xᵢ) [label i = class] for each row of `x`; the first of equals. A class without
    /// training points is never predicted.
    ///
    /// # Errors
    /// The errors of [`predict`](Smoother::predict); [`NotFinite`](Error::NotFinite) if a row of `x` is not finite,
    /// [`Parameter`](Error::Parameter) if there is one target.
    pub fn classify<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Vec<usize>> {
        self.classes(x.into().view())
    }

    #[inline(never)]
    fn classes(&self, x: PointsView<'_, T>) -> Result<Vec<usize>> {
        let scores = self.apply(x, self.sums.targets(), |sums, j| sums[j])?;
        best_classes(&scores, |class| self.sums.occurs(class))
    }

    /// Lets `entry(sums of a row, column)` compute each entry of a result of `columns` columns.
    fn apply<U>(
        &self,
        x: PointsView<'_, T>,
        columns: usize,
        entry: impl Fn(&[f64], usize) -> U + Sync,
    ) -> Result<Array2<U>>
    where
        U: Clone + Default + Send,
    {
        check_size("the number of columns of x", self.map.dim(), x.ncols())?;
        if self.rows() == 0 {
            return Err(Error::NoData { what: "a prediction" });
        }
        check_memory("rows of predictions", x.nrows(), columns.saturating_mul(size_of::<U>()))?;
        let mut out = Array2::default((x.nrows(), columns));
        let (program, form) = (self.map.program(), self.map.program().best_form());
        let (sums, work) = (self.sums.prepared(program, form), program.width() * self.sums.targets());
        let write = |_: Range<usize>,
                     batch: &mut Batch<T>,
                     mut out: ArrayViewMut2<'_, U>,
                     applied: &mut Applied<T>| {
            sums.apply(batch, program.blocks(), applied);
            for (mut out, sums) in out.rows_mut().into_iter().zip(applied.sums.rows()) {
                let sums = slice_of(&sums);
                out.iter_mut().enumerate().for_each(|(j, out)| *out = entry(sums, j));
            }
        };
        map_rows(&FeatureSource::new(program, Side::X, form), x, out.view_mut(), work, write)?;
        Ok(out)
    }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::{KernelSums, Map, Real, Smoother};
    use crate::error::Error;
    use crate::sealed::sealed_fields;

    sealed_fields! {
        Smoother<T>, T,
        #[serde(rename = "Smoother", bound = "")]
        struct StoredSmoother {
            map: Map<T>,
            sums: KernelSums<T>,
            next: u64,
        }
    }

    impl<T: Real> TryFrom<StoredSmoother<T>> for Smoother<T> {
        type Error = Error;

        fn try_from(StoredSmoother { map, sums, next }: StoredSmoother<T>) -> Result<Self, Error> {
            sums.check_map(&map)?;
            Ok(Smoother { map, sums, next })
        }
    }
}

once!(
    Smoother::<T>::new,
    Smoother::<T>::take_in,
    Smoother::<T>::predictions,
    Smoother::<T>::predictions_and_report,
    Smoother::<T>::classes,
    Smoother::<T>::with_first_row,
);
