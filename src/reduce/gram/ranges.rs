//! [`Ranges`]: the ranges of columns, and the [`RidgeWarning`] that they give.

use crate::Real;
use crate::engine::PointsView;
use crate::kernel::Lengthscale;
use crate::reduce::RidgeWarning;
use crate::threads;

/// The ratio of the widest range to the narrowest above which one lengthscale cannot suit both.
const UNEQUAL: f64 = 100.0;
/// The ranges, in lengthscales, below which all points look equal to a kernel, and above which all look different.
const SEEN: std::ops::Range<f64> = 0.01..1000.0;

/// The count of numbers that are one piece of work.
const NUMBERS: usize = 1 << 18;

/// The least number of spacings in a range without a warning.
const SPACINGS: f64 = 64.0;

/// The least and the largest value of each column of points or targets. Joining ranges in any order gives the same bits.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Ranges {
    /// The least value of each column; empty before the first point.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    least: Vec<f64>,
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    largest: Vec<f64>,
}

impl Ranges {
    /// The ranges of the points whose rows `counts` accepts.
    pub fn of<T: Real>(x: PointsView<'_, T>, counts: impl Fn(usize) -> bool + Sync) -> Self {
        let rows = (NUMBERS / x.ncols().max(1)).max(1);
        let runs = threads::map((0..x.nrows()).step_by(rows), |first| {
            let run = first..x.nrows().min(first + rows);
            Self::of_run(x.rows(run), |i| counts(first + i))
        });
        let mut ranges = Ranges::default();
        runs.iter().for_each(|run| ranges.join(run));
        ranges
    }

    fn of_run<T: Real>(x: PointsView<'_, T>, counts: impl Fn(usize) -> bool) -> Self {
        let mut ranges = Ranges::default();
        let rows = || (0..x.nrows()).filter(|i| counts(*i));
        if rows().next().is_none() {
            return ranges;
        }
        (ranges.least, ranges.largest) = (vec![f64::INFINITY; x.ncols()], vec![f64::NEG_INFINITY; x.ncols()]);
        match x {
            PointsView::Dense(x) => {
                for i in rows() {
                    x.row(i).iter().enumerate().for_each(|(k, v)| ranges.include(k, v.widen()));
                }
            }
            PointsView::Sparse(x) => {
                let mut stored = vec![0; x.dim];
                for i in rows() {
                    let (columns, values) = x.row(i);
                    for (k, v) in columns.iter().zip(values) {
                        ranges.include(k, v.widen());
                        stored[k] += 1;
                    }
                }
                let count = rows().count();
                (0..x.dim).filter(|k| stored[*k] < count).for_each(|k| ranges.include(k, 0.0));
            }
            PointsView::Columns(x) => {
                for (k, column) in x.columns().enumerate() {
                    rows().for_each(|i| ranges.include(k, column[i].widen()));
                }
            }
        }
        ranges
    }

    fn include(&mut self, k: usize, value: f64) {
        // Zeros of either sign become +0, so that the order of rows does not matter.
        let value = value + 0.0;
        self.least[k] = self.least[k].min(value);
        self.largest[k] = self.largest[k].max(value);
    }

    pub fn join(&mut self, other: &Ranges) {
        if self.least.is_empty() {
            self.clone_from(other);
        }
        self.least.iter_mut().zip(&other.least).for_each(|(own, their)| *own = own.min(*their));
        self.largest.iter_mut().zip(&other.largest).for_each(|(own, their)| *own = own.max(*their));
    }

    /// Warns of columns that vary although they are among the `constant` ones, from which nothing is learnt. Warns of other columns
    /// whose range has few spacings of the scalar type, whose relative size is `epsilon`; names the one with fewest. Columns of a
    /// single value do not count.
    pub fn spacing_warnings(&self, epsilon: f64, constant: &[usize]) -> Vec<RidgeWarning> {
        let ends =
            || self.least.iter().zip(&self.largest).enumerate().filter(|(_, (least, most))| least < most);
        let is_constant = |column: &usize| constant.contains(column);
        let coordinates: Vec<usize> = ends().map(|(column, _)| column).filter(is_constant).collect();
        let spacings = |(column, (least, most)): (usize, (&f64, &f64))| {
            (column, (most - least) / (epsilon * least.abs().max(most.abs())))
        };
        let few = ends().filter(|(column, _)| !is_constant(column)).map(spacings);
        let fewest = few.filter(|(_, spacings)| *spacings < SPACINGS).min_by(|a, b| a.1.total_cmp(&b.1));
        let few = fewest.map(|(coordinate, spacings)| RidgeWarning::FewSpacings { coordinate, spacings });
        let constant = (!coordinates.is_empty()).then_some(RidgeWarning::ConstantInputs { coordinates });
        constant.into_iter().chain(few).collect()
    }

    /// Whether these can be ranges of points in ℝᵈ, or of no point.
    #[cfg(feature = "serde")]
    pub fn fit(&self, d: usize) -> bool {
        let ordered = |(a, b): (&f64, &f64)| a.is_finite() && b.is_finite() && a <= b;
        let sizes =
            self.least.len() == self.largest.len() && (self.least.is_empty() || self.least.len() == d);
        sizes && self.least.iter().zip(&self.largest).all(ordered)
    }

    /// The least and the largest value of a column; zeros before the first row.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn ends(&self, column: usize) -> (f64, f64) {
        let end = |ends: &[f64]| ends.get(column).copied().unwrap_or(0.0);
        (end(&self.least), end(&self.largest))
    }

    /// The warning for these ranges and a kernel with these lengthscales, if they are known.
    pub fn warning(&self, lengthscale: Option<&Lengthscale>) -> Option<RidgeWarning> {
        let range = |k: usize| (self.largest[k] - self.least[k]) / lengthscale.map_or(1.0, |ell| ell.at(k));
        let ranges = (0..self.least.len()).map(|k| (k, range(k))).filter(|(_, range)| *range > 0.0);
        let (narrow, narrow_range) = ranges.clone().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let (wide, wide_range) = ranges.max_by(|a, b| a.1.total_cmp(&b.1))?;
        if wide_range > UNEQUAL * narrow_range {
            return Some(RidgeWarning::UnequalInputs { wide, wide_range, narrow, narrow_range });
        }
        lengthscale?;
        if wide_range < SEEN.start {
            return Some(RidgeWarning::NarrowInputs { range: wide_range });
        }
        (narrow_range > SEEN.end).then_some(RidgeWarning::WideInputs { range: narrow_range })
    }
}

#[cfg(test)]
mod tests {
    use ndarray::arr2;

    use super::*;

    #[test]
    fn rows_without_weight_do_not_count_and_orders_do_not_matter() {
        let x = arr2(&[[1.0, 5.0], [3.0, 5.0], [-1e9, 7.0], [2.0, 4.0]]);
        let all = Ranges::of(x.view().into(), |i| i != 2);
        assert_eq!((&all.least, &all.largest), (&vec![1.0, 4.0], &vec![3.0, 5.0]));
        let mut joined = Ranges::default();
        for i in [3, 0, 1] {
            joined.join(&Ranges::of(x.slice(ndarray::s![i..i + 1, ..]).into(), |_| true));
        }
        assert_eq!(joined, all);
        joined.join(&Ranges::of(x.view().into(), |_| false));
        assert_eq!(joined, all);
    }

    #[test]
    fn warnings_name_the_coordinates() {
        let ranges = |x: [[f64; 3]; 2]| Ranges::of(arr2(&x).view().into(), |_| true);
        let one = Lengthscale::from(1);
        let warning = |x, ell: &Lengthscale| ranges(x).warning(Some(ell));
        let wild = [[0.0, 7.0, -300.0], [0.5, 7.0, 500.0]];
        let (wide_range, narrow_range) = (800.0, 0.5);
        let expected = RidgeWarning::UnequalInputs { wide: 2, wide_range, narrow: 0, narrow_range };
        assert_eq!(warning(wild, &one), Some(expected.clone()));
        assert_eq!(ranges(wild).warning(None), Some(expected));
        assert_eq!(warning(wild, &vec![0.1, 1.0, 100.0].into()), None);
        let small = [[0.0; 3], [1e-3, 2e-3, 0.0]];
        assert_eq!(warning(small, &one), Some(RidgeWarning::NarrowInputs { range: 2e-3 }));
        assert_eq!((warning(small, &1e-2.into()), ranges(small).warning(None)), (None, None));
        assert_eq!(warning(small, &1e-7.into()), Some(RidgeWarning::WideInputs { range: 1e-3 / 1e-7 }));
        assert_eq!(warning([[0.0; 3]; 2], &one), None);
        assert_eq!(Ranges::default().warning(Some(&one)), None);
    }
}
