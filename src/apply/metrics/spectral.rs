//! ‖A‖₂: by a decomposition of small matrices, else by Golub and Kahan's bidiagonalisation, which multiplies A by vectors.

use std::ops::Range;

use rand::RngExt;

use super::difference::ScaledMatrix;
use crate::Real;
use crate::error::Result;
use crate::numeric::{Isa, add_scaled, dot};
use crate::threads;

/// The residual, relative to the value, at which the iteration stops.
pub(super) const TOLERANCE: f64 = 1e-6;
/// The minimum number of steps: with few distinct singular values the first vectors may be close to singular vectors,
/// although the start vector has a small component along others.
const STEPS: usize = 8;
/// The number of rows, or columns, that a thread takes at a time.
const RUN: usize = 256;

/// The largest number of rows and columns for which a decomposition is used instead of iteration.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
const DECOMPOSED: usize = 1000;

impl<T: Real> ScaledMatrix<'_, T> {
    /// ‖A‖₂.
    pub fn spectral(&self) -> Result<f64> {
        #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
        if self.dim().0.max(self.dim().1) <= DECOMPOSED {
            let mut all = ndarray::Array2::zeros(self.dim());
            for (mut row, entries) in all.rows_mut().into_iter().zip(self.rows()) {
                row.iter_mut().zip(entries).for_each(|(to, entry)| *to = entry);
            }
            return Ok(crate::linalg::Backend::default().singular_values(&all)?[0]);
        }
        Ok(largest_singular_value(self))
    }
}

/// ‖A‖₂, with the relative error `TOLERANCE`. The iteration finds a smaller singular value only if the start vector is orthogonal to
/// the leading singular vector.
///
/// After k steps A Vₖ = Uₖ Bₖ and Aᵀ Uₖ = Vₖ Bₖᵀ + βₖ vₖ₊₁ eₖᵀ with orthonormal columns and Bₖ upper bidiagonal: the
/// entries α₁, β₁, α₂, … of its two diagonals are `entries`. A left singular vector x of Bₖ leaves the residual βₖ |xₖ|.
fn largest_singular_value<T: Real>(a: &ScaledMatrix<'_, T>) -> f64 {
    let (rows, columns) = a.dim();
    let mut random = crate::rng(0);
    let mut v: Vec<f64> = (0..columns).map(|_| random.random::<f64>() - 0.5).collect();
    normalise(&mut v);
    let (mut lefts, mut rights, mut entries) = (Vec::new(), vec![v], Vec::new());
    let mut largest: f64 = 0.0;
    for k in 0..rows.min(columns) {
        let mut u = in_runs(rows, |run, out| a.rows_times(run, &rights[k], out));
        orthogonalise(&mut u, &lefts);
        let alpha = normalise(&mut u);
        entries.push(alpha);
        if alpha <= largest * f64::EPSILON {
            break;
        }
        let mut v = in_runs(columns, |run, out| a.times_columns(run, &u, out));
        orthogonalise(&mut v, &rights);
        let beta = normalise(&mut v);
        largest = top_of_bidiagonal(&entries);
        if k + 1 >= STEPS && beta * last_entry(&entries, largest) <= TOLERANCE * largest {
            break;
        }
        entries.push(beta);
        lefts.push(u);
        rights.push(v);
    }
    top_of_bidiagonal(&entries)
}

/// A vector whose runs are written in parallel.
fn in_runs(len: usize, write: impl Fn(Range<usize>, &mut [f64]) + Sync) -> Vec<f64> {
    let mut out = vec![0.0; len];
    let runs = out.chunks_mut(RUN).enumerate();
    threads::for_each(runs, |(i, out)| write(i * RUN..i * RUN + out.len(), out));
    out
}

/// Removes the components of a vector along orthonormal ones; twice, because the first pass leaves rounding errors.
fn orthogonalise(v: &mut [f64], basis: &[Vec<f64>]) {
    let isa = Isa::best();
    for direction in basis.iter().chain(basis) {
        let along = dot(isa, direction, v);
        add_scaled(isa, v, -along, direction);
    }
}

/// Divides a vector by its norm and returns the norm; a zero vector is unchanged.
fn normalise(v: &mut [f64]) -> f64 {
    let norm = dot(Isa::best(), v, v).sqrt();
    if norm > 0.0 {
        v.iter_mut().for_each(|v| *v /= norm);
    }
    norm
}

/// The largest singular value of a bidiagonal matrix, from the entries α₁, β₁, α₂, … of its diagonals: the largest
/// eigenvalue of the symmetric tridiagonal matrix T with 0 on the diagonal and these beside it.
fn top_of_bidiagonal(entries: &[f64]) -> f64 {
    // λ is above all eigenvalues exactly if the pivots of λI − T, dⱼ₊₁ = λ − bⱼ²/dⱼ, are all positive.
    let above = |lambda: f64| {
        let next = |pivot: f64, b: &f64| Some(lambda - b * b / pivot).filter(|pivot| *pivot > 0.0);
        entries.iter().try_fold(lambda, next).is_some()
    };
    // Bisection begins between an entry and Gershgorin's bound.
    let mut low = entries[0];
    let mut high = entries.windows(2).fold(low, |bound, pair| bound.max(pair[0] + pair[1]));
    while high - low > f64::EPSILON * high {
        let middle = low + 0.5 * (high - low);
        *(if above(middle) { &mut high } else { &mut low }) = middle;
    }
    high
}

/// The size of the last entry of the left singular vector for the largest singular value of a bidiagonal matrix.
///
/// The eigenvector of T holds entries of the right and the left singular vector in turn. From its last entry on, and that
/// way it grows, row j of (T − λI) w = 0 gives the entry before entry j.
fn last_entry(entries: &[f64], largest: f64) -> f64 {
    let (mut entry, mut after, mut b_after, mut squares) = (1.0, 0.0, 0.0, 0.0);
    for (j, b) in entries.iter().rev().enumerate() {
        if j % 2 == 0 {
            squares += entry * entry;
        }
        (entry, after, b_after) = ((largest * entry - b_after * after) / b, entry, *b);
        if squares > f64::EPSILON.powi(-4) {
            break;
        }
    }
    squares.sqrt().recip()
}
