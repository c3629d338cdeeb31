//! [`Logarithms`]: points whose coordinates are raised to powers that are counts.

use ndarray::{ArrayView1, ArrayView2};

use super::shift::Shift;
use crate::Real;
use crate::frequency::Counts;
use crate::kernel::Lengthscale;
use crate::numeric::{self, Isa, pointwise, squared_norm};

/// Features Πₗ (uₗ/rₗ)^{ωⱼₗ} e^{bⱼ} with u = x/ℓ − c and counts ω: logarithms of magnitudes are projected, signs are
/// parities of bit masks, and 0⁰ = 1.
#[derive(Debug)]
pub(crate) struct Logarithms {
    /// ℓₗ for each coordinate.
    pub scales: Vec<f64>,
    pub shift: Option<Shift>,
    /// The divisor rₗ of each coordinate.
    pub divisors: Vec<f64>,
    /// 1/rₗ.
    inverses: Vec<f64>,
    /// The bias bⱼ of each frequency.
    pub biases: Vec<f64>,
    /// Whether some b is not 0.
    biased: bool,
    /// The row term is `norm_coefficient` ‖x/ℓ‖² − ½ ‖u‖².
    pub norm_coefficient: f64,
    /// The coordinates where the counts of each frequency are odd, as [sets](numeric::negate_odd).
    odd: Vec<u64>,
    /// The coordinates where the counts of each frequency are not 0, as sets.
    positive: Vec<u64>,
}

/// The coordinates of a point that decide which of its features are negative or 0.
pub(super) struct CoordinateSigns<'a> {
    /// The coordinates where u is negative, if there are any.
    negative: Option<&'a [u64]>,
    /// The coordinates where u is 0, if there are any.
    zero: Option<&'a [u64]>,
}

impl Logarithms {
    pub fn new(
        counts: &Counts,
        lengthscale: &Lengthscale,
        shift: Option<Shift>,
        divisors: Vec<f64>,
        biases: Vec<f64>,
        norm_coefficient: f64,
    ) -> Self {
        let (odd, positive) = (sets(counts.rows(), |n| n % 2 == 1), sets(counts.rows(), |n| n > 0));
        let scales = (0..counts.dim()).map(|l| lengthscale.at(l)).collect();
        let inverses = divisors.iter().map(|r| r.recip()).collect();
        let biased = biases.iter().any(|b| *b != 0.0);
        Logarithms { scales, shift, divisors, inverses, biases, biased, norm_coefficient, odd, positive }
    }

    /// uₗ, from x/ℓ.
    pub fn moved(&self, l: usize, scaled: f64) -> f64 {
        self.shift.as_ref().map_or(scaled, |shift| shift.moved(l, scaled))
    }

    /// Whether uₗ is clamped to the least value.
    pub fn clamps(&self, l: usize, scaled: f64) -> bool {
        self.shift.as_ref().is_some_and(|shift| shift.inside(l, scaled).is_none())
    }

    /// xₗ/ℓₗ.
    pub fn scaled<T: Real>(&self, l: usize, v: T) -> f64 {
        v.widen() / self.scales[l]
    }

    /// Writes u of all rows of `x`, ln |u/r| and the row terms, which are not finite for points without features. `u` has room
    /// for one more row, which is used as a buffer.
    pub fn transform<T: Real>(
        &self,
        x: ArrayView2<'_, T>,
        u: &mut [f64],
        logarithms: &mut [T],
        terms: &mut [f64],
    ) {
        let d = x.ncols();
        let (u, ratios) = u.split_at_mut(x.len());
        let rows = u.chunks_exact_mut(d).zip(logarithms.chunks_exact_mut(d)).zip(terms);
        for (x, ((u, logarithms), term)) in x.rows().into_iter().zip(rows) {
            *term = self.term(x, u);
            let usual = numeric::magnitudes(Isa::best(), ratios, u, &self.inverses);
            numeric::ln(Isa::best(), logarithms, ratios);
            if !usual {
                let rest = logarithms.iter_mut().zip(&*u).zip(&self.divisors);
                rest.for_each(|((out, u), divisor)| *out = logarithm(u.abs(), *divisor));
            }
        }
    }

    /// Writes u; returns the row term.
    fn term<T: Real>(&self, x: ArrayView1<'_, T>, u: &mut [f64]) -> f64 {
        match x.to_slice() {
            Some(x) => numeric::divide(Isa::best(), u, x, &self.scales),
            None => u.iter_mut().zip(x).zip(&self.scales).for_each(|((u, v), scale)| *u = v.widen() / scale),
        }
        let whole = squared_norm(Isa::best(), u, 1.0, &[]);
        let own = match &self.shift {
            None => whole,
            Some(shift) => {
                u.iter_mut().enumerate().for_each(|(l, u)| *u = shift.moved(l, *u));
                squared_norm(Isa::best(), u, 1.0, &[])
            }
        };
        let finite = whole.is_finite() && own.is_finite();
        if finite { self.norm_coefficient * whole - 0.5 * own } else { f64::NAN }
    }

    /// The sets of the coordinates u of a point that are negative or 0.
    pub(super) fn point<'a>(&self, masks: &'a mut Vec<u64>, u: &[f64]) -> CoordinateSigns<'a> {
        let words = words(u.len());
        masks.clear();
        masks.resize(2 * words, 0);
        let (negative, zero) = masks.split_at_mut(words);
        numeric::negative_and_zero(Isa::best(), u, negative, zero);
        let some = |set: &'a mut [u64]| set.iter().any(|word| *word != 0).then_some(&*set);
        CoordinateSigns { negative: some(negative), zero: some(zero) }
    }

    /// Adds biases to exponents, sets those of features that are 0 to −∞, and subtracts the largest, which is returned.
    pub(super) fn subtract_largest<T: Real>(&self, values: &mut [T], point: &CoordinateSigns<'_>) -> f64 {
        if let Some(zero) = point.zero {
            numeric::replace_meeting(Isa::best(), values, &self.positive, zero, T::neg_infinity());
        }
        let isa = Isa::best();
        let finite = |largest: f64| if largest == f64::NEG_INFINITY { 0.0 } else { largest };
        if self.biased {
            let shift = finite(numeric::max_sum(isa, values, &self.biases));
            numeric::add_minus(isa, values, &self.biases, shift);
            return shift;
        }
        // Without biases the exponents are shifted in `T`.
        let shift = finite(numeric::max(isa, values).widen());
        pointwise::affine(isa, values, T::one(), -T::narrow(shift), T::neg_infinity());
        shift
    }

    /// Changes the signs of the entries of negative features.
    pub(super) fn sign<T: Real>(&self, entries: &mut [T], point: &CoordinateSigns<'_>) {
        if let Some(negative) = point.negative {
            numeric::negate_odd(Isa::best(), entries, &self.odd, negative);
        }
    }
}

/// ln |uₗ/rₗ|, or 0 for uₗ = 0, where features with a positive count are set to 0 later.
fn logarithm<T: Real>(magnitude: f64, divisor: f64) -> T {
    let ratio = magnitude / divisor;
    T::narrow(if magnitude == 0.0 {
        0.0
    } else if ratio.is_normal() {
        ratio.ln()
    } else {
        magnitude.ln() - divisor.ln()
    })
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
