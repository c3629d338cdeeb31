//! Waves along a coordinate that are too fast for lengthscales near the median distance: a spectral start for a search.

use std::f64::consts::{PI, TAU};

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

use crate::error::Result;
use crate::{progress, threads};

/// The maximum number of rows that are read, and of evaluations of a wave; there are at most twice as many frequencies as rows.
const ROWS: usize = 4096;
const EVALUATIONS: usize = 1 << 26;
/// The probability with which noise makes a peak, for all coordinates together.
const CHANCE: f64 = 0.01;
/// The number of frequencies between two checks for cancellation.
const FREQUENCIES: usize = 64;
/// The determinant, as a share of its largest value, below which cosine and sine count as one wave.
const SINGULAR: f64 = 1e-12;
/// The difference of values, as a share of T/n, below which they count as one. Larger differences than T/n set the fastest wave.
const SAME: f64 = 1e-2;
/// The relative difference below which two shares of variance count as equal.
const EQUAL: f64 = 1e-9;
/// The variance of cosine and sine together, of at most 1, below which it is rounding.
const CONSTANT: f64 = 1e-13;

/// A wave that explains a share of a target's variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Peak {
    /// The coordinate that the wave runs along.
    pub coordinate: usize,
    /// The angular frequency ω.
    pub omega: f64,
    /// The share of the variance that 1, cos ωx and sin ωx explain.
    pub power: f64,
}

/// Sorts peaks from the strongest to the weakest.
pub(super) fn sort_by_power(peaks: &mut [Peak]) {
    peaks.sort_by(|a, b| b.power.total_cmp(&a.power));
}

/// The number of rows that are read, for points in d dimensions.
pub(super) fn rows(d: usize) -> usize {
    ((EVALUATIONS / 2 / d.max(1)) as f64).sqrt().min(ROWS as f64) as usize
}

/// The strongest wave along each coordinate for each target in `x`, n × d, and `y`, n × t, with weights of rows. Waves that noise
/// could make are left out. Waves along one coordinate stand together, the strongest first.
pub(super) fn peaks(
    x: ArrayView2<'_, f64>,
    y: ArrayView2<'_, f64>,
    weights: ArrayView1<'_, f64>,
) -> Result<Vec<Peak>> {
    let (n, d) = x.dim();
    let shares = &weights / weights.sum();
    let targets = centred(y, &shares);
    let of_coordinate = |coordinate: usize| {
        let mut x = x.column(coordinate).to_vec();
        let Some((step, count)) = frequencies(&mut x.clone()) else { return Ok(Vec::new()) };
        let least = x.iter().copied().fold(f64::INFINITY, f64::min);
        x.iter_mut().for_each(|x| *x -= least);
        let powers = powers(&x, &targets, &shares, [step, step], count)?;
        let peak = |powers: ArrayView1<'_, f64>| {
            let largest = powers.iter().copied().fold(0.0, f64::max);
            // Of waves that explain equally much, the slowest one is meant.
            let is_largest = |power: &f64| *power >= (1.0 - EQUAL) * largest;
            let (k, power) = powers.iter().copied().enumerate().find(|(_, power)| is_largest(power))?;
            let omega = step * (k + 1) as f64;
            is_significant(power, n, d).then_some(Peak { coordinate, omega, power })
        };
        let mut found: Vec<Peak> = powers.rows().into_iter().filter_map(peak).collect();
        sort_by_power(&mut found);
        Ok(found)
    };
    let found = threads::map(0..d, of_coordinate).into_iter().collect::<Result<Vec<_>>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// Targets that vary, less their weighted means: one in each row.
fn centred(y: ArrayView2<'_, f64>, shares: &Array1<f64>) -> Vec<Array1<f64>> {
    let of = |y: ArrayView1<'_, f64>| {
        let y = &y - y.first().copied().unwrap_or(0.0);
        let y = &y - shares.dot(&y);
        // A unit in which no square overflows.
        let largest = y.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
        (largest > 0.0 && largest.is_finite()).then(|| y / largest)
    };
    y.axis_iter(Axis(1)).filter_map(of).collect()
}

/// The distance between frequencies and their number. The distance is 2π/(4T), with T = (95 % quantile − 5 % quantile)/0.9. The
/// number is 2n, or less if values differ by multiples of a distance g, as whole numbers do: beyond π/g, each wave equals a slower
/// one at all values. `None` where T is 0, or where there are only two values, which every wave fits equally well.
fn frequencies(x: &mut [f64]) -> Option<(f64, usize)> {
    x.sort_unstable_by(f64::total_cmp);
    let last = x.len().checked_sub(1)?;
    let quantile = |p: f64| {
        let place = p * last as f64;
        let (below, part) = (place.floor() as usize, place.fract());
        x[below] + part * (x[(below + 1).min(last)] - x[below])
    };
    let length = (quantile(0.95) - quantile(0.05)) / 0.9;
    let step = TAU / (4.0 * length);
    if !(length > 0.0 && step.is_finite() && step > 0.0) {
        return None;
    }
    let least = SAME * length / x.len() as f64;
    let gaps = || x.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > least);
    let gap = gaps().fold(f64::INFINITY, f64::min);
    // A frequency of exactly π/g counts, whatever rounding does.
    let count = (2 * x.len()).min((PI / gap / step * (1.0 + EQUAL)) as usize);
    (count > 0 && gaps().nth(1).is_some()).then_some((step, count))
}

/// Whether noise makes a peak of this power in d coordinates of n rows with a probability below [`CHANCE`].
fn is_significant(power: f64, n: usize, d: usize) -> bool {
    let n = n as f64;
    (0.5 * n * d as f64).ln() + 0.5 * (n - 3.0) * (-power.min(1.0)).ln_1p() < CHANCE.ln()
}

/// The share of each target's variance that 1, cos ωx and sin ωx explain by weighted least squares, t × `count`, for
/// ω = first, first + step, …. Targets are centred, and weights add up to 1.
fn powers(
    x: &[f64],
    targets: &[Array1<f64>],
    shares: &Array1<f64>,
    [first, step]: [f64; 2],
    count: usize,
) -> Result<Array2<f64>> {
    let wave = |f: fn(f64) -> f64, omega: f64| -> Array1<f64> { x.iter().map(|x| f(omega * x)).collect() };
    let [mut cosines, mut sines] = [wave(f64::cos, first), wave(f64::sin, first)];
    let [turn_c, turn_s] = [wave(f64::cos, step), wave(f64::sin, step)];
    let [mut weighted_c, mut weighted_s] = [cosines.clone(), sines.clone()];
    let variances: Vec<f64> = targets.iter().map(|y| (y * y).dot(shares)).collect();
    let mut powers = Array2::zeros((targets.len(), count));
    for k in 0..count {
        if k % FREQUENCIES == 0 {
            progress::check()?;
        }
        weighted_c.assign(&cosines);
        weighted_c *= shares;
        weighted_s.assign(&sines);
        weighted_s *= shares;
        let [c, s] = [weighted_c.sum(), weighted_s.sum()];
        let products = [
            weighted_c.dot(&cosines) - c * c,
            weighted_s.dot(&sines) - s * s,
            weighted_c.dot(&sines) - c * s,
        ];
        for (j, (y, variance)) in targets.iter().zip(&variances).enumerate() {
            powers[[j, k]] = explained(products, [weighted_c.dot(y), weighted_s.dot(y)], *variance);
        }
        for (((c, s), turn_c), turn_s) in cosines.iter_mut().zip(&mut sines).zip(&turn_c).zip(&turn_s) {
            (*c, *s) = (*c * turn_c - *s * turn_s, *s * turn_c + *c * turn_s);
        }
    }
    Ok(powers)
}

/// The shares of the variance of `y` that waves of angular frequency ω explain, for ω = first, first + step, …
///
/// # Errors
/// [`Cancelled`](crate::Error::Cancelled) if a watcher stops it.
#[cfg(feature = "testing")]
pub fn wave_shares(
    x: &[f64],
    y: ArrayView1<'_, f64>,
    weights: &Array1<f64>,
    ends: [f64; 2],
    count: usize,
) -> Result<Vec<f64>> {
    let shares = weights / weights.sum();
    let targets = centred(y.insert_axis(Axis(1)), &shares);
    Ok(powers(x, &targets, &shares, ends, count)?.into_iter().collect())
}

/// The share of the variance YY that two waves explain, from their products CC, SS, CS among themselves and YC, YS with the target.
fn explained([cc, ss, cs]: [f64; 3], [yc, ys]: [f64; 2], yy: f64) -> f64 {
    if cc + ss < CONSTANT {
        return 0.0;
    }
    let determinant = cc * ss - cs * cs;
    let power = if determinant < SINGULAR * (cc + ss).powi(2) {
        (yc * yc + ys * ys) / (yy * (cc + ss))
    } else {
        (yc * yc * ss + ys * ys * cc - 2.0 * yc * ys * cs) / (yy * determinant)
    };
    if power.is_finite() { power } else { 0.0 }
}
