//! Labels of classes: from them to targets, and back from predictions.

use ndarray::{Array2, ArrayView1};

use crate::Real;
use crate::error::{Error, Result, check_finite};
use crate::memory::check_memory;

/// Labels as indicator rows: n × classes.
pub(super) fn one_hot<T: Real>(labels: &[usize], classes: usize) -> Result<Array2<T>> {
    check_memory("rows of indicators", labels.len(), classes.saturating_mul(size_of::<T>()))?;
    let mut targets = Array2::zeros((labels.len(), classes));
    for (i, (mut row, &label)) in targets.rows_mut().into_iter().zip(labels).enumerate() {
        let domain = "below the number of classes";
        let wrong = Error::Entry { what: "the labels", row: i, value: label as f64, domain };
        *row.get_mut(label).ok_or(wrong)? = T::one();
    }
    Ok(targets)
}

/// Rejects fewer than two classes: a single score says nothing about the class.
pub(super) fn check_classes(classes: usize) -> Result<()> {
    if classes >= 2 {
        return Ok(());
    }
    let domain = "at least 2, with a target for each";
    Err(Error::Parameter { name: "the number of classes", value: classes as f64, domain })
}

/// The column of the largest entry of each row; the first of equals.
pub(super) fn largest_columns(scores: &Array2<f64>) -> Result<Vec<usize>> {
    check_classes(scores.ncols())?;
    check_finite("x", scores)?;
    let largest = |row: ArrayView1<'_, f64>| {
        let better = |best: usize, (j, v): (usize, &f64)| if *v > row[best] { j } else { best };
        row.indexed_iter().fold(0, better)
    };
    Ok(scores.rows().into_iter().map(largest).collect())
}
