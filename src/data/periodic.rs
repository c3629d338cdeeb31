//! Columns as points on circles.

use std::f64::consts::TAU;

use ndarray::{Array2, ArrayRef2};

use crate::Real;
use crate::error::{Error, Result};

/// Replaces columns by points on circles, with which any kernel of distances is periodic.
///
/// ```
/// use random_features::data::periodic;
/// use random_features::kernel::{Gaussian, Kernel};
/// use random_features::ndarray::arr2;
/// // Hours of the day, and a temperature.
/// let x = arr2(&[[23.5, 20.0], [0.5, 20.0], [12.0, 20.0]]);
/// let on_circle = periodic(&x, &[(0, 24.0)])?;
/// assert_eq!(on_circle.dim(), (3, 3));
/// let gram = Gaussian::new(1.0)?.gram(&on_circle, &on_circle)?;
/// // An hour apart across midnight, and half a day apart.
/// assert!(gram[[0, 1]] > 0.96 && gram[[0, 2]] < 0.14);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// `periods` names columns, counted from 0, with their periods p > 0. In the place of a column t stand two: cos 2πt/p and
/// sin 2πt/p. Other columns stay. The result has one column more than x for each period.
///
/// The Gaussian kernel of these points is exp(−2 sin²(π(t−t′)/p)/ℓ²), the periodic kernel, times the Gaussian kernel of the
/// other columns. For a locally periodic kernel, append the column t itself too. Search a lengthscale as for other points.
/// Where the data cover a part of the circle only, search
/// [without standardisation](crate::apply::RidgeSearch::without_standardisation), which would make an ellipse of it.
///
/// # Errors
/// [`Parameter`](Error::Parameter) if a period is not a positive number, x has no such column or a column is named twice,
/// [`NotFinite`](Error::NotFinite) if a number in a named column is not finite.
///
/// # References
/// MacKay, *Introduction to Gaussian Processes* (1998), section 5.2.
pub fn periodic<T: Real>(x: &ArrayRef2<T>, periods: &[(usize, f64)]) -> Result<Array2<T>> {
    let d = x.ncols();
    let mut period_of = vec![None; d];
    for (column, period) in periods {
        if !(*period > 0.0 && period.is_finite()) {
            return Err(Error::Parameter { name: "a period", value: *period, domain: "a positive number" });
        }
        let Some(place) = period_of.get_mut(*column) else {
            return Err(Error::Parameter {
                name: "the column of a period",
                value: *column as f64,
                domain: "below the number of columns",
            });
        };
        if place.replace(*period).is_some() {
            return Err(Error::Parameter {
                name: "the column of a period",
                value: *column as f64,
                domain: "named once",
            });
        }
    }
    let has_period = |column: usize| period_of[column].is_some();
    if let Some(((row, k), _)) = x.indexed_iter().find(|((_, k), v)| has_period(*k) && !v.is_finite()) {
        return Err(Error::NotFinite { what: "x", row, column: Some(k) });
    }
    let mut result = Array2::zeros((x.nrows(), d + periods.len()));
    let mut place = 0;
    for (column, period) in x.columns().into_iter().zip(period_of) {
        let Some(period) = period else {
            result.column_mut(place).assign(&column);
            place += 1;
            continue;
        };
        for (row, t) in column.iter().enumerate() {
            // The remainder is exact up to one rounding, however many periods t is from 0.
            let (sin, cos) = (TAU * (t.widen().rem_euclid(period) / period)).sin_cos();
            (result[[row, place]], result[[row, place + 1]]) = (T::narrow(cos), T::narrow(sin));
        }
        place += 2;
    }
    Ok(result)
}
