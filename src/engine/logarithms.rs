//! [`Logarithms`]: points whose coordinates are raised to powers that are counts.

use ndarray::{ArrayView1, ArrayView2};

use super::shift::Shift;
use crate::Real;
use crate::frequency::Counts;
use crate::kernel::Lengthscale;
use crate::numeric::{self, Isa};

/// Features Πₗ (uₗ/rₗ)^{ωⱼₗ} e^{bⱼ} with u = x/ℓ − c and counts ω: logarithms of magnitudes are projected, signs are
/// parities of bit masks, and 0⁰ = 1.
#[derive(Debug)]
pub(crate) struct Logarithms {
    pub lengthscale: Lengthscale,
    pub shift: Option<Shift>,
    /// r.
    pub divisors: Vec<f64>,
    /// b.
    pub biases: Vec<f64>,
    /// The row term is `unshifted` ‖x/ℓ‖² − ½ ‖u‖².
    pub unshifted: f64,
    /// Where the counts of each frequency are odd, as [sets of coordinates](numeric::negate_odd).
    odd: Vec<u64>,
    /// Where they are not 0.
    positive: Vec<u64>,
}

/// A row of a tile of logarithms, between its projection and its lift.
pub(super) struct Point<'a> {
    /// The row term; not finite for points without features.
    pub term: f64,
    /// Where u is negative, if anywhere.
    negative: Option<&'a [u64]>,
    /// Where u is 0, if anywhere.
    zero: Option<&'a [u64]>,
}

impl Logarithms {
    pub fn new(
        counts: &Counts,
        lengthscale: Lengthscale,
        shift: Option<Shift>,
        (divisors, biases): (Vec<f64>, Vec<f64>),
        unshifted: f64,
    ) -> Self {
        let (odd, positive) = (sets(counts.rows(), |n| n % 2 == 1), sets(counts.rows(), |n| n > 0));
        Logarithms { lengthscale, shift, divisors, biases, unshifted, odd, positive }
    }

    /// uₗ, from x/ℓ.
    pub fn moved(&self, l: usize, scaled: f64) -> f64 {
        self.shift.as_ref().map_or(scaled, |shift| shift.moved(l, scaled))
    }

    /// xₗ/ℓₗ.
    pub fn scaled<T: Real>(&self, l: usize, v: T) -> f64 {
        v.widen() / self.lengthscale.at(l)
    }

    /// Writes ln |u/r| of all rows of `x`.
    pub fn transform<T: Real>(&self, x: ArrayView2<'_, T>, out: &mut [T]) {
        for (x, out) in x.rows().into_iter().zip(out.chunks_exact_mut(x.ncols())) {
            for (l, (v, out)) in x.iter().zip(out).enumerate() {
                *out = self.logarithm(l, self.moved(l, self.scaled(l, *v)));
            }
        }
    }

    /// ln |uₗ/rₗ|, or 0 where that is −∞ and features with a count there are 0.
    fn logarithm<T: Real>(&self, l: usize, u: f64) -> T {
        let (magnitude, divisor) = (u.abs(), self.divisors[l]);
        let ratio = magnitude / divisor;
        T::narrow(if magnitude == 0.0 {
            0.0
        } else if ratio.is_normal() {
            ratio.ln()
        } else {
            magnitude.ln() - divisor.ln()
        })
    }

    /// The row term of a point, and where its coordinates are negative or 0.
    pub(super) fn point<'a, T: Real>(&self, masks: &'a mut Vec<u64>, x: ArrayView1<'_, T>) -> Point<'a> {
        let words = words(x.len());
        masks.clear();
        masks.resize(2 * words, 0);
        let (negative, zero) = masks.split_at_mut(words);
        let mut squares = [0.0; 2];
        for (l, v) in x.iter().enumerate() {
            let scaled = self.scaled(l, *v);
            let u = self.moved(l, scaled);
            squares[0] += scaled * scaled;
            squares[1] += u * u;
            let (word, bit) = place(l);
            if u < 0.0 {
                negative[word] |= bit;
            } else if u == 0.0 {
                zero[word] |= bit;
            }
        }
        let finite = squares.iter().all(|square| square.is_finite());
        let term = if finite { self.unshifted * squares[0] - 0.5 * squares[1] } else { f64::NAN };
        let some = |set: &'a mut [u64]| set.iter().any(|word| *word != 0).then_some(&*set);
        Point { term, negative: some(negative), zero: some(zero) }
    }

    /// Adds biases to exponents, marks features that are 0 and makes the largest exponent 0; by how much it was reduced.
    pub(super) fn settle<T: Real>(&self, values: &mut [T], point: &Point<'_>) -> f64 {
        if let Some(zero) = point.zero {
            numeric::replace_meeting(Isa::best(), values, &self.positive, zero, T::neg_infinity());
        }
        let largest = numeric::max_sum(Isa::best(), values, &self.biases);
        let shift = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
        numeric::add_minus(Isa::best(), values, &self.biases, shift);
        shift
    }

    /// Changes the signs of those entries that belong to negative features.
    pub(super) fn sign<T: Real>(&self, entries: &mut [T], point: &Point<'_>) {
        if let Some(negative) = point.negative {
            numeric::negate_odd(Isa::best(), entries, &self.odd, negative);
        }
    }
}

/// The coordinates of each frequency whose counts are members, word by word.
fn sets(counts: ArrayView2<'_, u64>, member: impl Fn(u64) -> bool) -> Vec<u64> {
    let m = counts.nrows();
    let mut sets = vec![0; words(counts.ncols()) * m];
    for ((j, l), _) in counts.indexed_iter().filter(|(_, count)| member(**count)) {
        let (word, bit) = place(l);
        sets[word * m + j] |= bit;
    }
    sets
}

/// The words of a set of `d` coordinates.
fn words(d: usize) -> usize {
    d.div_ceil(u64::BITS as usize)
}

/// The word of a coordinate and its bit there.
fn place(l: usize) -> (usize, u64) {
    (l / u64::BITS as usize, 1 << (l % u64::BITS as usize))
}
