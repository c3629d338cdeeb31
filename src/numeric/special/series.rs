//! Logarithms of sums of positive terms.

use std::f64::consts::PI;

/// Terms smaller than this relative to the sum are dropped.
const NEGLIGIBLE: f64 = 1e-18;

/// ln(1 + Σ_{k≥1} tₖ) for terms with t₀ = 1 and tₖ₊₁/tₖ = `ratio(k)`, positive and decreasing in k, with a small relative
/// error even if the result is small. Behind the largest term, terms may alternate and be 0 in the end.
pub(super) fn ln_series(ratio: impl Fn(f64) -> f64) -> f64 {
    const LARGE: f64 = 1e250;
    let (mut rest, mut term, mut k, mut scalings) = (0.0, ratio(0.0), 1.0, 0.0);
    let mut growing = true;
    while growing || term.abs() > NEGLIGIBLE * rest {
        count_term();
        rest += term;
        let next = ratio(k);
        term *= next;
        k += 1.0;
        growing = next > 1.0;
        if rest > LARGE {
            (rest, term, scalings) = (rest / LARGE, term / LARGE, scalings + 1.0);
        }
    }
    // The leading 1 matters only if nothing has been scaled.
    if scalings == 0.0 { rest.ln_1p() } else { rest.ln() + scalings * LARGE.ln() }
}

/// The variance of terms, as a law of k, above which their sum is taken as an integral.
const WIDE: f64 = 1e7;

/// ln of Σ tₖ relative to its largest term, at k = `peak`, summed from there outwards. Around the peak ln tₖ falls with this
/// `curvature`. Very many terms have the sum of a normal law, with an error of the order of the curvature.
pub(super) fn ln_series_around(peak: f64, curvature: f64, ratio: impl Fn(f64) -> f64) -> f64 {
    if curvature < WIDE.recip() {
        return 0.5 * (2.0 * PI / curvature).ln();
    }
    let (mut sum, mut term, mut k) = (0.0, 1.0, peak);
    while term > NEGLIGIBLE * sum {
        count_term();
        sum += term;
        term *= ratio(k);
        k += 1.0;
    }
    (term, k) = (1.0, peak);
    while k > 0.0 && term > NEGLIGIBLE * sum {
        count_term();
        k -= 1.0;
        term /= ratio(k);
        sum += term;
    }
    sum.ln()
}

/// Counts a term, so that tests can tell what a sum costs.
#[inline(always)]
fn count_term() {
    #[cfg(test)]
    cost::TERMS.set(cost::TERMS.get() + 1);
}

/// What sums cost.
#[cfg(test)]
pub(super) mod cost {
    use std::cell::Cell;

    thread_local!(pub(super) static TERMS: Cell<u64> = const { Cell::new(0) });

    /// The number of terms that are summed for a positive result.
    pub fn terms(sum: impl FnOnce() -> f64) -> u64 {
        let before = TERMS.get();
        assert!(sum() > 0.0);
        TERMS.get() - before
    }
}
