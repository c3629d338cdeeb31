//! Covariances of two estimates that share a point, for the errors of sums and of attention.
//!
//! Each function gives the relative covariance Cov(K̂(x, y), K̂(x, y′)) / (K(x, y) K(x, y′)) of estimates of the
//! softmax or the Gaussian kernel from one frequency ω ~ N(0, I); divide by m for m independent frequencies. Arguments
//! are scalars of w = x + y and w′ = x + y′ or, where a function says so, of the differences δ = x − y and δ′ = x − y′.
//! At y = y′ the covariance is the relative variance.
//!
//! Derivation: the product of two terms is again the exponential of a Gaussian. For positive features E e^{ω·(w +
//! w′)} = e^{½‖w+w′‖²}; dividing by e^{½‖w‖²} e^{½‖w′‖²} leaves e^{w·w′}. The other maps follow by summing over signs.

use num_complex::Complex64;

use super::gerf::GerfSign;

/// Positive features: e^{w·w′} − 1.
///
/// ```
/// use random_features::theory::{Law, Pair, covariance, positive};
/// let pair = Pair::new([(0.5, 0.25), (-1.0, 0.5)]);
/// let relative =
///     positive(&pair, &Law::independent(1)).unwrap() - 2.0 * pair.dot;
/// assert!((covariance::positive(pair.sum).ln() - relative).abs() < 1e-12);
/// ```
pub fn positive(dot: f64) -> f64 {
    dot.exp_m1()
}

/// Hyperbolic features, for one frequency of two features: cosh(w·w′) − 1.
pub fn hyperbolic(dot: f64) -> f64 {
    // cosh z − 1 = 2 sinh²(z/2), which does not cancel.
    2.0 * (0.5 * dot).sinh().powi(2)
}

/// Trigonometric features, for one frequency of two features: cosh(δ·δ′) − 1, with differences in place of sums.
pub fn trigonometric(dot: f64) -> f64 {
    hyperbolic(dot)
}

/// Generalised exponential features with s = 1 and real A < ⅛, which include OPRF, in ℝᵈ with d = `dim`: ς^d
/// e^{ρ‖(w+w′)/2‖² − ‖(w−w′)/2‖²} − 1 with ρ = 1/(1 − 8A) and ς = (1 + ρ)/(2√ρ). `squares` are ‖w‖² and ‖w′‖². NaN for
/// other A.
///
/// At w = w′ this is Chefs' Random Tables, Theorem 3.2; the covariance is new.
pub fn gerf(a: f64, dim: usize, dot: f64, squares: (f64, f64)) -> f64 {
    let rho = 1.0 / (1.0 - 8.0 * a);
    if rho.is_nan() || rho <= 0.0 {
        return f64::NAN;
    }
    let (norms, stretch) = (squares.0 + squares.1, (0.5 * (1.0 + rho) / rho.sqrt()).ln());
    (dim as f64 * stretch + 0.25 * (rho * (norms + 2.0 * dot) - (norms - 2.0 * dot))).exp_m1()
}

/// Generalised exponential features with any A and s: ½ Re(R + R′) − 1 with z = x + sy, z′ = x + sy′, R = ((1 − 4A)²/(1 −
/// 8A))^{d/2} e^{s(1 − 4A)‖z+z′‖²/(2(1 − 8A)) − n} and R′ = (|1 − 4A|²/Re(1 − 8A))^{d/2} e^{(Bz + B̄z′)²/(2 Re(1 − 8A)) − n}, n =
/// s(‖z‖² + ‖z′‖²)/2 and B² = s(1 − 4A). `dot` is z·z′, `squares` are ‖z‖² and ‖z′‖². NaN unless Re(1 − 8A) > 0.
///
/// R is the mean of the product of two terms, R′ that of a term and the conjugate of the other, both relative to the
/// product of the means. Source: new; at z = z′ Chefs' Random Tables, Theorem 3.2.
///
/// ```
/// use random_features::num_complex::Complex64;
/// use random_features::theory::{covariance, gerf::GerfSign};
/// let real = covariance::complex_gerf(
///     (-0.1).into(),
///     GerfSign::Plus,
///     3,
///     0.5,
///     (1.0, 2.0),
/// );
/// assert!((real - covariance::gerf(-0.1, 3, 0.5, (1.0, 2.0))).abs() < 1e-14);
/// let trigonometric = covariance::complex_gerf(
///     0.0.into(),
///     GerfSign::Minus,
///     3,
///     0.5,
///     (1.0, 2.0),
/// );
/// assert!((trigonometric - covariance::trigonometric(0.5)).abs() < 1e-14);
/// ```
pub fn complex_gerf(a: Complex64, sign: GerfSign, dim: usize, dot: f64, squares: (f64, f64)) -> f64 {
    let (base, contraction) = (1.0 - 4.0 * a, 1.0 - 8.0 * a);
    if !(contraction.re > 0.0 && a.is_finite()) {
        return f64::NAN;
    }
    let (s, half, norms) = (sign.value(), 0.5 * dim as f64, 0.5 * (squares.0 + squares.1));
    // (1 − 4A)² = 1 − 8A + 16A².
    let own =
        half * (1.0 + 16.0 * a * a / contraction).ln() + s * (base / contraction * (norms + dot) - norms);
    let turn = 0.5 * s * base.im * (squares.0 - squares.1) / contraction.re;
    let size = half * (base.norm_sqr() / contraction.re).ln()
        + (s * base.re * norms + base.norm() * dot) / contraction.re
        - s * norms;
    let excess = |log: Complex64| log.re.exp_m1() * log.im.cos() - 2.0 * (0.5 * log.im).sin().powi(2);
    0.5 * (excess(own) + excess(Complex64::new(size, turn)))
}

/// Dense-exponential features with ρₗ = 1/(1 − 8aₗ) for each coordinate, for pairs with sums w and w′: Π ςₗ
/// exp(ρₗ((wₗ + w′ₗ)/2)² − ((wₗ − w′ₗ)/2)²) − 1 with ςₗ = (1 + ρₗ)/(2√ρₗ); +∞ on overflow, where
/// [`ln_covariance`](super::dense::ln_covariance) still gives the logarithm.
///
/// ```
/// use random_features::theory::covariance;
/// let (w, other) = ([0.5f64, -1.0], [0.25, 0.5]);
/// let positive = covariance::positive(w[0] * other[0] + w[1] * other[1]);
/// assert!(
///     (covariance::dense(&w, &other, &[1.0, 1.0]) - positive).abs() < 1e-15
/// );
/// ```
pub fn dense(w: &[f64], w_prime: &[f64], rho: &[f64]) -> f64 {
    super::dense::ln_cross_moment(w, w_prime, rho).exp_m1()
}
