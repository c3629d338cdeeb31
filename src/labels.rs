//! Labels of classes: targets from labels, and labels from predictions.

use ndarray::{Array2, ArrayView1};

use crate::Real;
use crate::error::{Error, Result, check_results};
use crate::memory::{check_addressable, check_memory};

/// Labels as indicators, rows × classes.
pub(crate) fn one_hot<T: Real>(labels: ArrayView1<'_, usize>, classes: usize) -> Result<Array2<T>> {
    check_labels(labels, classes)?;
    let mut targets = zeros("rows of indicators", labels.len(), classes)?;
    for (mut row, label) in targets.rows_mut().into_iter().zip(labels) {
        row[*label] = T::one();
    }
    Ok(targets)
}

/// A zero for each row and class, rows × classes: the number of classes may be any that was asked for or stored.
pub(crate) fn zeros<T: Real>(what: &'static str, rows: usize, classes: usize) -> Result<Array2<T>> {
    check_addressable(what, classes)?;
    check_memory(what, rows, classes.saturating_mul(size_of::<T>()))?;
    Ok(Array2::zeros((rows, classes)))
}

/// Rejects labels that are too large.
pub(crate) fn check_labels(labels: ArrayView1<'_, usize>, classes: usize) -> Result<()> {
    let wrong = |(row, label): (usize, &usize)| {
        let (value, domain) = (*label as f64, "below the number of classes");
        Err(Error::Entry { what: "the labels", row, value, domain })
    };
    labels.iter().enumerate().find(|(_, label)| **label >= classes).map_or(Ok(()), wrong)
}

/// Rejects fewer than two classes: a single score says nothing about the class.
pub(crate) fn check_classes(classes: usize) -> Result<()> {
    if classes >= 2 {
        return Ok(());
    }
    let domain = "at least 2, with a target for each";
    Err(Error::Parameter { name: "the number of classes", value: classes as f64, domain })
}

/// The class with the largest score in each row of `scores`, n × classes; the first of equals. A class that does not occur in
/// training is left out: its score of 0 says nothing, and may be above all other scores.
pub(crate) fn best_classes(scores: &Array2<f64>, occurs: impl Fn(usize) -> bool) -> Result<Vec<usize>> {
    check_classes(scores.ncols())?;
    check_results("x", scores)?;
    let candidates = occurring(scores.ncols(), occurs);
    let largest = |row: ArrayView1<'_, f64>| {
        let better = |best: usize, j: &usize| if row[*j] > row[best] { *j } else { best };
        candidates.iter().fold(candidates[0], better)
    };
    Ok(scores.rows().into_iter().map(largest).collect())
}

/// The classes that occur in training, ascending; all classes if none does.
pub(crate) fn occurring(classes: usize, occurs: impl Fn(usize) -> bool) -> Vec<usize> {
    let some: Vec<usize> = (0..classes).filter(|class| occurs(*class)).collect();
    if some.is_empty() { (0..classes).collect() } else { some }
}
