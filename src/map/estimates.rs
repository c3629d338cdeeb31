//! Estimates of the kernel: of two points, and of all pairs.

use std::collections::BTreeSet;

use ndarray::{Array2, ArrayRef1, ArrayRef2, ArrayView2, Axis};

use super::check::check_addressable;
use super::gram::{self, Left, Rows};
use super::mixture::Pairing;
use super::{Form, Map, Side};
use crate::engine::{Batch, Scratch, drive};
use crate::error::Result;
use crate::numeric::zeros;
use crate::{Real, SignedLog};

impl<T: Real> Map<T> {
    /// The estimates of K(xᵢ, yⱼ) for all rows of `x` and `y`, n × l; ±∞ or 0 where `T` overflows or underflows.
    ///
    /// The features of `x` are not stored. Entries that underflow are recomputed from logarithms, if the map has them.
    /// Hybrids combine the estimates of their parts instead of multiplying features. Cost O((n + l) m d + n l D), where
    /// D counts the features of the parts of a hybrid; more if many entries are recomputed.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `x` or `y` does not have d columns.
    pub fn gram(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array2<T>> {
        self.check_points(x.view().into())?;
        self.check_points(y.view().into())?;
        check_addressable(x.nrows(), y.nrows())?;
        if let Some(gram) = self.origin().gram(x, y) {
            return gram;
        }
        let resolve = |pairs: &[(usize, usize)]| self.resolve_pairs((x, y), pairs);
        let Some(mixture) = self.mixture() else {
            let right = self.features(Side::Y, y)?;
            let left = Left::Points(self.program(), x.view());
            return Ok(gram::gram(left, right.rows(), &Pairing::Sum(0..self.blocks().len()), resolve));
        };
        let (program, pairing) = Pairing::of(&mixture)?;
        let (width, blocks) = (program.width(), program.blocks());
        check_addressable(x.nrows().max(y.nrows()), width.max(blocks.len()))?;
        let (mut values, mut log_scales) =
            (zeros(y.nrows(), width), Array2::zeros((y.nrows(), blocks.len())));
        drive::fill_values(&program, Side::Y, y.view().into(), values.view_mut(), log_scales.view_mut());
        let right = Rows::new(&values, &log_scales, blocks);
        Ok(gram::gram(Left::Points(&program, x.view()), right, &pairing, resolve))
    }

    /// The estimate of K(x, y); ±∞ or 0 where `T` overflows or underflows.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a point does not have d entries.
    pub fn estimate(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<T> {
        Ok(T::narrow(self.log_estimate(x, y)?.value()))
    }

    /// The sign and logarithm of the estimate of K(x, y), from logarithms of features where the map has them.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a point does not have d entries.
    pub fn log_estimate(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<SignedLog> {
        self.check_pair(x, y)?;
        if let Some(mixture) = self.mixture() {
            return mixture.log_estimate(x, y);
        }
        if let Some(estimate) = self.origin().estimate(x, y) {
            return estimate;
        }
        let form = self.program().best_form();
        let left = self.batch(Side::X, form, x.view().insert_axis(Axis(0)));
        let right = self.batch(Side::Y, form, y.view().insert_axis(Axis(0)));
        Ok(gram::estimate(self.program().blocks(), left.row(0), right.row(0)))
    }

    fn batch(&self, side: Side, form: Form, x: ArrayView2<'_, T>) -> Batch<T> {
        let mut batch = Batch::default();
        batch.fill(self.program(), (side, form), x.into(), &mut Scratch::default());
        batch
    }

    /// Estimates of pairs of rows from logarithms, each row projected once; `None` if the map has no logarithms.
    fn resolve_pairs(
        &self,
        (x, y): (&ArrayRef2<T>, &ArrayRef2<T>),
        pairs: &[(usize, usize)],
    ) -> Option<Vec<T>> {
        if self.mixture().is_some() {
            let estimate = |(i, j): &(usize, usize)| self.estimate(&x.row(*i), &y.row(*j)).ok();
            return pairs.iter().map(estimate).collect();
        }
        if !self.facts().logarithms {
            return None;
        }
        let affected = |of: fn(&(usize, usize)) -> usize| -> Vec<usize> {
            pairs.iter().map(of).collect::<BTreeSet<_>>().into_iter().collect()
        };
        let (left_rows, right_rows) = (affected(|pair| pair.0), affected(|pair| pair.1));
        let left = self.batch(Side::X, Form::Logarithms, x.select(Axis(0), &left_rows).view());
        let right = self.batch(Side::Y, Form::Logarithms, y.select(Axis(0), &right_rows).view());
        let estimate = |(i, j): &(usize, usize)| {
            let (i, j) = (left_rows.binary_search(i).ok()?, right_rows.binary_search(j).ok()?);
            Some(T::narrow(gram::estimate(self.program().blocks(), left.row(i), right.row(j)).value()))
        };
        pairs.iter().map(estimate).collect()
    }
}
