//! Heuristics for the lengthscale ℓ of a Gaussian kernel exp(−‖x−y‖²/(2ℓ²)).
//!
//! [`median`] takes ℓ from the distances between points, [`of_statistics`] from their variance. Both return a number that
//! [`Gaussian::new`](crate::kernel::Gaussian::new) accepts, or an error. Use them as the start of a search.

use std::collections::BTreeSet;

use ndarray::{ArrayRef2, ArrayView2, Axis};
use rand::RngExt;

use super::Statistics;
use super::statistics::is_constant;
use crate::Real;
use crate::error::{Error, Result, check_finite};
use crate::generator::{Generator, rng};
use crate::kernel::Lengthscale;
use crate::once::once;
#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
use crate::progress;
use crate::threads;

/// The median heuristic: ℓ is the median of the distances ‖xᵢ − xⱼ‖ over the pairs i < j of the rows of `points`, n × d. Of more
/// than 1000 rows, 1000 are drawn without replacement, the same ones in every call.
///
/// With 1000 normal points the standard deviation of the result is 2.5 % in one dimension and 0.6 % in ten. For an even number of
/// distances the two middle ones are averaged.
///
/// **The factor √2.** The result is ℓ in exp(−‖x−y‖²/(2ℓ²)), so that the kernel at the median distance is e^{−1/2}. In the
/// other common convention, exp(−‖x−y‖²/σ²) with the median as σ, the kernel at the median distance is e^{−1}; divide
/// the result by √2 to follow it. (In terms of scikit-learn's γ the two are γ = 1/(2 median²) and γ = 1/median².)
///
/// If the median is 0 because many points coincide, the median of the non-zero distances is returned. Distances below
/// about 1e-162 count as 0, since their squares underflow.
///
/// It costs O(nd + k²d) time and O(k²) memory for k = min(n, 1000): 4 MB.
///
/// ```
/// use random_features::ndarray::arr2;
/// use random_features::{data::lengthscale, kernel::Gaussian};
/// let points = arr2(&[[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]);
/// // The distances are 1, √18 and 5.
/// let ell = lengthscale::median(&points)?;
/// assert_eq!(ell, 18f64.sqrt());
/// let kernel = Gaussian::new(ell)?;
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// [`Parameter`](Error::Parameter) if there are fewer than 2 points, if the chosen points are all equal, or if ℓ² or 1/ℓ² would
/// overflow; [`NotFinite`](Error::NotFinite) with the first row of all `points` that is not finite.
#[doc(alias = "median heuristic")]
pub fn median<T: Real>(points: &ArrayRef2<T>) -> Result<f64> {
    median_of_subsample(points, SUBSAMPLE, 0)
}

/// The [`median`] of the distances between k = min(n, `subsample`, 8192) rows of `points`, n × d, drawn without replacement by `seed`.
///
/// If k = n, all rows are used and the seed is not. It costs O(nd + k²d) time and O(k²) memory: the distances of the 34 million
/// pairs of 8192 points take 268 MB.
///
/// ```
/// use random_features::data::lengthscale;
/// use random_features::ndarray::Array2;
/// let wave = |(i, k): (usize, usize)| ((i * (k + 2)) as f64).sin();
/// let points = Array2::from_shape_fn((3000, 2), wave);
/// let ell = lengthscale::median_of_subsample(&points, 500, 7)?;
/// assert!((ell / lengthscale::median(&points)? - 1.0).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// The errors of [`median`]; [`Parameter`](Error::Parameter) if `subsample` is below 2.
#[inline(never)]
pub fn median_of_subsample<T: Real>(points: &ArrayRef2<T>, subsample: usize, seed: u64) -> Result<f64> {
    check_pairs("the number of points", points.nrows())?;
    check_pairs("the size of the subsample", subsample)?;
    check_finite("the points", points)?;
    let subsample = subsample.min(MOST);
    let squares = if points.nrows() <= subsample {
        squared_distances(points.view())
    } else {
        squared_distances(points.select(Axis(0), &choose(points.nrows(), subsample, &mut rng(seed))).view())
    };
    checked(median_of_most(squares, root_median).ok_or(EQUAL)?)
}

/// scikit-learn's `gamma="scale"`: γ = 1/(d Var) as a lengthscale, ℓ = 1/√(2γ) = √(d Var/2).
///
/// Var is the variance of all coordinates of all points about their common mean, `X.var()`
/// ([`Statistics::overall_variance`]).
///
/// ```
/// use random_features::ndarray::arr2;
/// use random_features::data::{Statistics, lengthscale};
/// let statistics = Statistics::of(&arr2(&[[1.0, 5.0], [1.0, 5.0]]))?;
/// assert_eq!(lengthscale::of_statistics(&statistics)?, 2.0);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// [`NoData`](Error::NoData) if there are no points, [`Parameter`](Error::Parameter) if the variance is 0 up to rounding
/// (where scikit-learn takes γ = 1), or if ℓ² or 1/ℓ² would overflow.
pub fn of_statistics(statistics: &Statistics) -> Result<f64> {
    let variance = statistics.overall_variance()?;
    let (least, most) = (statistics.min()?, statistics.max()?);
    let ends =
        (least.into_iter().fold(f64::INFINITY, f64::min), most.into_iter().fold(f64::NEG_INFINITY, f64::max));
    if variance == 0.0 || is_constant(ends, statistics.epsilon()) {
        let domain = "positive: at least two coordinates must differ";
        return Err(Error::Parameter { name: "the variance", value: variance, domain });
    }
    checked((0.5 * statistics.dim() as f64 * variance).sqrt())
}

/// Typical scales of coordinates from pairs of points: m, d numbers, and G.
///
/// m_k is the median of |x_ik − x_jk| over pairs. If it is 0, it is the median of the non-zero values, or 1 for a coordinate that
/// does not vary. G is the median of ‖(x_i − x_j)/m‖, or of the non-zero values if it is 0.
///
/// # Errors
/// [`Parameter`](Error::Parameter) if there are fewer than two points, or all are equal.
#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
pub(crate) fn own_scales<T: Real>(points: &ArrayRef2<T>) -> Result<(Vec<f64>, f64)> {
    check_pairs("the number of points", points.nrows())?;
    let mut scaled = points.mapv(Real::widen);
    let columns: Vec<_> = scaled.columns_mut().into_iter().collect();
    let medians = threads::map(columns, |mut column| {
        progress::check()?;
        let mut differences = Vec::with_capacity(column.len() * (column.len() - 1) / 2);
        for (i, x) in column.iter().enumerate() {
            differences.extend(column.iter().skip(i + 1).map(|y| (x - y).abs()));
        }
        let median = median_of_most(differences, median_of).unwrap_or(1.0);
        column.mapv_inplace(|x| x / median);
        Ok(median)
    });
    let medians = medians.into_iter().collect::<Result<Vec<_>>>()?;
    progress::check()?;
    let common = median_of_most(squared_distances(scaled.view()), root_median);
    Ok((medians, checked(common.ok_or(EQUAL)?)?))
}

/// The error if no two points differ.
const EQUAL: Error = Error::Parameter {
    name: "the median distance",
    value: 0.0,
    domain: "positive: at least two points must differ",
};

/// The median, or if it is 0, the median of the numbers above 0; `None` if there are no such numbers.
fn median_of_most(mut numbers: Vec<f64>, median: impl Fn(&mut [f64]) -> Option<f64>) -> Option<f64> {
    let found = median(&mut numbers);
    if found != Some(0.0) {
        return found;
    }
    numbers.retain(|number| *number > 0.0);
    median(&mut numbers)
}

/// The number of points whose pairs are taken unless the caller says otherwise.
pub(crate) const SUBSAMPLE: usize = 1000;

/// The largest number of points whose pairs are all taken.
const MOST: usize = 8192;

/// Rejects fewer than two points.
fn check_pairs(name: &'static str, count: usize) -> Result<()> {
    if count >= 2 {
        return Ok(());
    }
    Err(Error::Parameter { name, value: count as f64, domain: "at least 2" })
}

/// Rejects lengthscales that no kernel accepts.
fn checked(scale: f64) -> Result<f64> {
    Lengthscale::from(scale).checked().map(|_| scale)
}

/// A uniform random subset of `k` of the numbers below `n`, in ascending order (Floyd's algorithm).
pub(crate) fn choose(n: usize, k: usize, rng: &mut Generator) -> Vec<usize> {
    let mut chosen = BTreeSet::new();
    for last in n - k..n {
        let any = rng.random_range(0..=last);
        if !chosen.insert(any) {
            chosen.insert(last);
        }
    }
    chosen.into_iter().collect()
}

/// ‖xᵢ − xⱼ‖² for all i < j.
fn squared_distances<T: Real>(points: ArrayView2<'_, T>) -> Vec<f64> {
    let points = points.mapv(Real::widen);
    let of_row = |i: usize| {
        let x = points.row(i);
        let square =
            |y: ndarray::ArrayView1<'_, f64>| x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f64>();
        points.rows().into_iter().skip(i + 1).map(square).collect::<Vec<f64>>()
    };
    threads::map(0..points.nrows(), of_row).concat()
}

/// The median of the square roots; `None` without numbers.
fn root_median(squares: &mut [f64]) -> Option<f64> {
    middle(squares).map(|ends| mean(ends.map(f64::sqrt)))
}

/// The median; `None` without numbers.
#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
fn median_of(numbers: &mut [f64]) -> Option<f64> {
    middle(numbers).map(mean)
}

/// The two numbers in the middle, of which there is one if the count is odd; `None` without numbers.
fn middle(numbers: &mut [f64]) -> Option<[f64; 2]> {
    if numbers.is_empty() {
        return None;
    }
    let (half, even) = (numbers.len() / 2, numbers.len().is_multiple_of(2));
    let (below, middle, _) = numbers.select_nth_unstable_by(half, f64::total_cmp);
    let middle = *middle;
    Some([if even { below.iter().copied().fold(0.0, f64::max) } else { middle }, middle])
}

fn mean([a, b]: [f64; 2]) -> f64 {
    if a == b { a } else { 0.5 * a + 0.5 * b }
}

once!(median_of_subsample::<T>);
