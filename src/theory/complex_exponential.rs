//! Complex-exponential features: exp(ω·Mu) with M = A for x and A⁻ᵀ for y.
//!
//! Functions here are for the softmax kernel and frequencies that are independent or in antithetic pairs. Errors depend
//! only on ζ = Ax + A⁻ᵀy, through the bilinear square ζ² = Σ ζₖ² and the norm ‖ζ‖² = Σ |ζₖ|², and vanish if and only if
//! ζ = 0. A need not be diagonal. The symmetric variant averages over ω and −ω.
//!
//! Where ζ is real the estimate is that of [positive](super::positive) features with x + y = ζ, or of
//! [hyperbolic](super::hyperbolic) features for the symmetric variant. Where ζ is imaginary it is that of
//! [trigonometric](super::trigonometric) features. Their closed forms hold under any known law.

use std::f64::consts::LN_2;

use ndarray::{ArrayRef1, ArrayRef2};
use num_complex::Complex64;

use super::gaussian::{VarianceTerms, not_known};
use super::{Law, Radius};
use crate::SignedLog;
use crate::error::{Result, check_size};
use crate::linalg;
use crate::numeric::special::{expm1, ln_cosh, ln_expm1, ln_sinh, real_part_excess};
use crate::tagged::tagged;

/// Whether a map averages over ω and −ω.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// One exponential for each frequency.
    Plain,
    /// Two exponentials for each frequency, with ω and −ω.
    Symmetric,
}

tagged!(Symmetry, "a symmetry" {
    "plain" => Plain,
    "symmetric" => Symmetric,
});

/// ζ = Ax + A⁻¹y for diagonal A.
pub fn zeta_diagonal(a: &[Complex64], x: &[f64], y: &[f64]) -> Vec<Complex64> {
    a.iter().zip(x.iter().zip(y)).map(|(a, (x, y))| a * x + y / a).collect()
}

/// ζ = Ax + A⁻ᵀy.
///
/// # Errors
/// [`Shape`](crate::Error::Shape) if sizes do not fit, [`Parameter`](crate::Error::Parameter) if A is
/// singular or not finite.
pub fn zeta(a: &ArrayRef2<Complex64>, x: &ArrayRef1<f64>, y: &ArrayRef1<f64>) -> Result<Vec<Complex64>> {
    check_size("the dimension of x", a.ncols(), x.len())?;
    let transformed = linalg::solve(a.t().to_owned(), y.mapv(Complex64::from))?;
    Ok((a.dot(&x.mapv(Complex64::from)) + transformed).to_vec())
}

/// The parts of ζ that errors depend on.
struct Squares {
    /// Σ (Re ζₖ)².
    real: f64,
    /// Σ (Im ζₖ)².
    imaginary: f64,
    /// 2 Σ Re ζₖ Im ζₖ.
    cross: f64,
}

impl Squares {
    fn of(zeta: &[Complex64]) -> Self {
        let sum = |term: fn(&Complex64) -> f64| zeta.iter().map(term).sum();
        Squares {
            real: sum(|z| z.re * z.re),
            imaginary: sum(|z| z.im * z.im),
            cross: sum(|z| 2.0 * z.re * z.im),
        }
    }
}

/// ln MSE of the real part of the estimate of exp(x·y), with m frequencies.
///
/// (e^{2x·y}/m) (½ Re e^{ζ²} + ½ e^{‖ζ‖²} − 1); with cosh for the symmetric variant. The trigonometric (A = iI) and
/// positive (A = I) maps are special cases. Source: new (Hybrid Random Features, equation 37, is a part of it).
pub fn ln_mse(dot: f64, zeta: &[Complex64], symmetry: Symmetry, m: usize) -> f64 {
    let excess = excess(zeta, symmetry);
    let excess = if excess.sign < 0.0 { f64::NEG_INFINITY } else { excess.ln_abs };
    2.0 * dot + excess - (m as f64).ln()
}

/// [`ln_mse`] under a law of the frequencies: rows are independent, or in antithetic pairs, each of which is one term of
/// the symmetric variant. `None` for any other dependence between rows. Source: new.
pub fn ln_variance(dot: f64, zeta: &[Complex64], symmetry: Symmetry, law: &Law) -> Option<f64> {
    if !law.pairs(Radius::Chi)?.angles.is_empty() {
        return None;
    }
    let terms = VarianceTerms {
        single: excess(zeta, symmetry),
        antithetic: excess(zeta, Symmetry::Symmetric).scaled(LN_2),
        angle: &|_| SignedLog::from(f64::NAN),
        coupled: &not_known,
    };
    Some(2.0 * dot + terms.ln_variance(law, Radius::Chi)?)
}

/// The variance of the real part of a term, relative to the squared kernel.
fn excess(zeta: &[Complex64], symmetry: Symmetry) -> SignedLog {
    let Squares { real, imaginary, cross } = Squares::of(zeta);
    match symmetry {
        Symmetry::Plain => real_part_excess(real, imaginary, cross),
        Symmetry::Symmetric => {
            // cosh P cosh Q − 1 − cosh(P − Q) sin²(b/2)
            let square = |t: f64| SignedLog::positive(LN_2 + 2.0 * ln_sinh(0.5 * t));
            let turned = SignedLog::from(-(0.5 * cross).sin().powi(2)).scaled(ln_cosh(real - imaginary));
            SignedLog::sum([square(real).scaled(ln_cosh(imaginary)), square(imaginary), turned].into_iter())
        }
    }
}

/// ln E|K̂ − K|² of the complex-valued estimate of exp(x·y), with m frequencies: (e^{2x·y}/m)(e^{‖ζ‖²} − 1),
/// with cosh for the symmetric variant.
///
/// It grows with ‖ζ‖², which is therefore the loss to minimise over A. Source: new (Hybrid Random Features, equation 21,
/// is the loss).
pub fn ln_complex_mse(dot: f64, zeta: &[Complex64], symmetry: Symmetry, m: usize) -> f64 {
    let norm: f64 = zeta.iter().map(Complex64::norm_sqr).sum();
    let excess = match symmetry {
        Symmetry::Plain => ln_expm1(norm),
        Symmetry::Symmetric => LN_2 + 2.0 * ln_sinh(0.5 * norm),
    };
    2.0 * dot + excess - (m as f64).ln()
}

/// The covariance of the real parts of two estimates of exp(x·y) that share their m frequencies.
///
/// (e^{2x·y}/m)(½ Re e^{ζ_a·ζ_b} + ½ Re e^{ζ_a·ζ̄_b} − 1), with cosh if either is symmetric. Source: new.
pub fn shared_covariance(
    dot: f64,
    zeta_a: &[Complex64],
    symmetry_a: Symmetry,
    zeta_b: &[Complex64],
    symmetry_b: Symmetry,
    m: usize,
) -> SignedLog {
    let product: Complex64 = zeta_a.iter().zip(zeta_b).map(|(a, b)| a * b).sum();
    let hermitian: Complex64 = zeta_a.iter().zip(zeta_b).map(|(a, b)| a * b.conj()).sum();
    let both_plain = (symmetry_a, symmetry_b) == (Symmetry::Plain, Symmetry::Plain);
    let excess = |z: Complex64| {
        // Re eᶻ − 1 = expm1(Re z) cos(Im z) − 2 sin²(Im z/2), and likewise for cosh.
        let grown =
            if both_plain { expm1(z.re) } else { SignedLog::positive(LN_2 + 2.0 * ln_sinh(0.5 * z.re)) };
        let turn = SignedLog::from(z.im.cos());
        [
            SignedLog { ln_abs: grown.ln_abs + turn.ln_abs, sign: grown.sign * turn.sign },
            SignedLog::from(-2.0 * (0.5 * z.im).sin().powi(2)),
        ]
    };
    let terms = excess(product).into_iter().chain(excess(hermitian));
    SignedLog::sum(terms).scaled(2.0 * dot - LN_2 - (m as f64).ln())
}
