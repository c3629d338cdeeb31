//! Lengthscales where the user has none.

use ndarray::Axis;

use super::points::PlannedPoints;
use crate::data::lengthscale;
use crate::error::Result;
use crate::kernel::Lengthscale;

/// The median distance of the points of both sides, each coordinate divided by its number.
pub(crate) fn median(data: &PlannedPoints, divisors: &[f64], seed: u64) -> Result<f64> {
    let [x, y] = &data.sides;
    let points = match data.one_set {
        true => x.points.clone(),
        false => ndarray::concatenate![Axis(0), x.points.view(), y.points.view()],
    };
    let points = Lengthscale::from(divisors.to_vec()).divide_rows(points);
    lengthscale::median_of_subsample(&points, lengthscale::SUBSAMPLE, seed)
}

/// The standard deviation of each coordinate over the points of both sides; of constant ones the mean of the others', or 1.
pub(crate) fn deviations(data: &PlannedPoints) -> Result<Vec<f64>> {
    let [x, y] = &data.sides;
    let mut all = x.statistics.clone();
    if !data.one_set {
        all.merge(&y.statistics)?;
    }
    let deviation = |(k, variance): (usize, f64)| if all.is_constant(k) { 0.0 } else { variance.sqrt() };
    let mut deviations: Vec<f64> = all.variance()?.into_iter().enumerate().map(deviation).collect();
    let varying: Vec<f64> = deviations.iter().copied().filter(|s| *s > 0.0).collect();
    let mean = varying.iter().sum::<f64>() / varying.len().max(1) as f64;
    let instead = if mean > 0.0 { mean } else { 1.0 };
    deviations.iter_mut().filter(|s| **s == 0.0).for_each(|s| *s = instead);
    Ok(deviations)
}

/// The lengthscales that a search finds for the targets of the points that are kept.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) fn for_targets(
    data: &PlannedPoints,
    targets: &ndarray::Array2<f64>,
    criterion: crate::apply::Criterion<'_>,
    sweeps: usize,
    seed: u64,
) -> Result<Lengthscale> {
    use crate::apply::RidgeSearch;
    use crate::frequency::Orthogonal;

    /// Frequencies of the search.
    const FREQUENCIES: usize = 128;

    let deviations = deviations(data)?;
    let points = data.sides[0].points.clone();
    let points = if sweeps > 0 { Lengthscale::from(deviations.clone()).divide_rows(points) } else { points };
    let omega = Orthogonal.draw(data.dim(), FREQUENCIES, seed)?;
    let make = |omega, ell: Lengthscale| crate::Trigonometric.gaussian::<f64>(omega, ell);
    let search = RidgeSearch::new(omega, make).with_criterion(criterion).with_seed(seed);
    let fit =
        search.without_standardisation().with_lengthscale_per_dimension(sweeps).fit(&points, targets)?;
    let found = fit.best().lengthscale.clone().unwrap_or_default();
    Ok(match sweeps {
        0 => found,
        _ => deviations.iter().enumerate().map(|(k, s)| s * found.at(k)).collect::<Vec<_>>().into(),
    })
}
