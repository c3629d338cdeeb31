//! The factor by which queries and keys would have to shrink.

use ndarray::{Array2, Axis};

use super::expected::{SamplePairs, Worst};
use crate::error::Result;
use crate::map::{Covariance, DenseExponential, Gerf, Mechanism, PlainRecipe};
use crate::theory::dense;
use crate::theory::gerf::GerfSign;

/// Halvings of the interval in which the factor is sought.
const STEPS: usize = 20;

/// The largest factor below 1 of queries and keys for which the normaliser's variance is below `most`, as it is not for these,
/// with parameters that shrink with them.
pub(super) fn shrink(
    pairs: SamplePairs<'_>,
    plain: &PlainRecipe,
    covariance: &Covariance,
    most: f64,
) -> Result<f64> {
    let squares = mean_squares(pairs.images);
    let worst = |factor: f64, queries: &[usize]| -> Result<Worst> {
        let scale = factor * factor;
        let squares = squares.iter().map(|square| scale * square).collect();
        let fitted = refitted(&plain.mechanism, squares).ok().flatten();
        let fitted = fitted.and_then(|mechanism| PlainRecipe { mechanism, ..plain.clone() }.covariance());
        pairs.worst(fitted.as_ref().unwrap_or(covariance), scale, queries)
    };
    let all: Vec<usize> = (0..pairs.sample.queries()).collect();
    // The few queries that decide are met by and by.
    let mut deciding = vec![worst(1.0, &all)?.query];
    loop {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..STEPS {
            let middle = 0.5 * (low + high);
            if worst(middle, &deciding)?.variance < most { low = middle } else { high = middle }
        }
        let Worst { query, variance } = worst(low, &all)?;
        if variance < most || deciding.contains(&query) {
            return Ok(low);
        }
        deciding.push(query);
    }
}

/// A mechanism of the same kind with the best parameters for these means of squares, where they are to be fitted.
fn refitted(mechanism: &Mechanism, squares: Vec<f64>) -> Result<Option<Mechanism>> {
    match mechanism {
        Mechanism::Gerf(gerf) if gerf.sign() == GerfSign::Plus && gerf.a().im == 0.0 => {
            fitted(&squares).map(Some)
        }
        Mechanism::DenseExponential(_) => {
            let a = squares.into_iter().map(|phi| dense::optimal(phi).a).collect();
            Ok(Some(DenseExponential::new(a)?.into()))
        }
        _ => Ok(None),
    }
}

/// OPRF with the best A for the means of squares of coordinates.
pub(super) fn fitted(squares: &[f64]) -> Result<Mechanism> {
    Ok(Mechanism::Gerf(Gerf::optimal(squares.len(), squares.iter().sum())?))
}

/// The mean of each coordinate of (x + y)² over pairs.
pub(super) fn mean_squares([x, y]: &[Array2<f64>; 2]) -> Vec<f64> {
    let mean = |x: &Array2<f64>| x.sum_axis(Axis(0)) / x.nrows() as f64;
    let square = |x: &Array2<f64>| mean(&x.pow2());
    let squares = square(x) + square(y) + 2.0 * mean(x) * mean(y);
    squares.into_iter().map(|v| v.max(0.0)).collect()
}
