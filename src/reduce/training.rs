//! Checks of points, targets and weights.

use ndarray::{ArrayRef1, ArrayRef2};

use crate::Real;
use crate::engine::PointsView;
use crate::error::{Error, Result, check_finite, check_size};
use crate::numeric::without_repeats;

/// Checks training points in ℝᵈ and their targets, `count` for each point.
pub(crate) fn check_training<T: Real>(
    x: PointsView<'_, T>,
    d: usize,
    targets: &ArrayRef2<T>,
    count: usize,
) -> Result<()> {
    check_size("the number of columns of x", d, x.ncols())?;
    check_size("the number of rows of targets", x.nrows(), targets.nrows())?;
    check_size("the number of columns of targets", count, targets.ncols())?;
    check_points(x)?;
    check_finite("the targets", targets)
}

/// Rejects points that are not finite.
pub(crate) fn check_points<T: Real>(x: PointsView<'_, T>) -> Result<()> {
    let faulty = |(row, column)| Err(Error::NotFinite { what: "x", row, column: Some(column) });
    x.first_not_finite().map_or(Ok(()), faulty)
}

/// Checks that a matrix of targets × `width` can exist.
pub(crate) fn check_targets(targets: usize, width: usize) -> Result<()> {
    let most = isize::MAX as usize / size_of::<f64>();
    let fits = |size: usize| size <= most;
    if targets > 0 && targets.checked_add(1).and_then(|rows| rows.checked_mul(width.max(1))).is_some_and(fits)
    {
        return Ok(());
    }
    let domain = "at least 1 and small enough for their sums to be addressed";
    Err(Error::Parameter { name: "the number of targets", value: targets as f64, domain })
}

/// Rejects weights that are negative or not finite.
pub(crate) fn check_weights(weights: Option<&ArrayRef1<f64>>, rows: usize) -> Result<()> {
    let Some(weights) = weights else { return Ok(()) };
    check_size("the number of weights", rows, weights.len())?;
    check_weights_of("the weights", weights)
}

/// Rejects weights, named `what`, that are negative or not finite.
pub(crate) fn check_weights_of(what: &'static str, weights: &ArrayRef1<f64>) -> Result<()> {
    let sound = |weight: f64| weight.is_finite() && weight >= 0.0;
    check_entries(what, weights, sound, "finite and not negative")
}

/// Rejects precisions that are not positive and finite.
pub(crate) fn check_precisions(precisions: &ArrayRef1<f64>, rows: usize) -> Result<()> {
    check_size("the number of precisions", rows, precisions.len())?;
    let sound = |precision: f64| precision.is_finite() && precision > 0.0;
    check_entries("the precisions", precisions, sound, "positive and finite")
}

/// Rejects the first number that is not sound.
fn check_entries(
    what: &'static str,
    all: &ArrayRef1<f64>,
    sound: impl Fn(f64) -> bool,
    domain: &'static str,
) -> Result<()> {
    let wrong = without_repeats(all.view()).iter().position(|value| !sound(*value));
    wrong.map_or(Ok(()), |row| Err(Error::Entry { what, row, value: all[row], domain }))
}
