//! Logarithms of sums of positive terms.

/// Terms smaller than this relative to the sum are dropped.
const NEGLIGIBLE: f64 = 1e-18;

/// ln(1 + Σ_{k≥1} tₖ) for terms with t₀ = 1 and tₖ₊₁/tₖ = `ratio(k)`, positive and decreasing in k; with a small relative
/// error even if the result is small. Behind the largest term they may alternate and be 0 in the end.
pub(super) fn ln_series(ratio: impl Fn(f64) -> f64) -> f64 {
    const LARGE: f64 = 1e250;
    let (mut rest, mut term, mut k, mut scalings) = (0.0, ratio(0.0), 1.0, 0.0);
    let mut growing = true;
    while growing || term.abs() > NEGLIGIBLE * rest {
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

/// The same sum from its largest term outwards, if that is too far from t₀; `ln_term(k)` is ln tₖ and `peak` is near
/// the largest term.
pub(super) fn ln_series_around(peak: f64, ln_term: impl Fn(f64) -> f64, ratio: impl Fn(f64) -> f64) -> f64 {
    let peak = peak.floor();
    let (mut sum, mut term, mut k) = (0.0, 1.0, peak);
    while term > NEGLIGIBLE * sum {
        sum += term;
        term *= ratio(k);
        k += 1.0;
    }
    (term, k) = (1.0, peak);
    while k > 0.0 && term > NEGLIGIBLE * sum {
        k -= 1.0;
        term /= ratio(k);
        sum += term;
    }
    ln_term(peak) + sum.ln()
}
