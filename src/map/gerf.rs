//! Generalised exponential random features (GERF), including optimal positive features (OPRF).

use ndarray::Array2;
use num_complex::Complex64;

use super::definition::{Definition, NormalForm, Setting, finite_norms};
use super::{Covariance, Products, RowProducts};
use crate::digest::identified;
use crate::engine::{ExponentSums, Lift};
use crate::error::{Error, Result};
use crate::numeric::{Isa, exp_m1};
use crate::theory::gerf::{self, GerfSign};
use crate::theory::{Pair, Radius, bounds, covariance};

/// Generalised exponential random features (GERF). With s = 1 and the optimal real A they are optimal positive features
/// (OPRF), the map of FAVOR++.
///
/// ```
/// use random_features::Gerf;
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::arr1;
/// let omega = Orthogonal.draw(2, 8192, 1)?;
/// let (x, y) = (arr1(&[0.9, -0.2]), arr1(&[0.7, 0.4]));
/// // The best A for these points: ‖x+y‖² = 2.6.
/// let map = Gerf::optimal(2, 2.6)?.softmax(omega)?;
/// let estimate: f64 = map.estimate(&x, &y)?;
/// assert!((estimate / x.dot(&y).exp() - 1.0).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// φⱼ(x) = m^{−1/2} D exp(A‖ωⱼ‖² + B ωⱼ·x + C‖x‖²) for the Gaussian kernel, and ψ(y) with sB for B. Here s = ±1, A is complex
/// with Re(1 − 8A) > 0, B = √(s(1 − 4A)), C = −(s+1)/2, or −s/2 for softmax, and D = (1 − 4A)^{d/4}. The estimate is the
/// real part of the product: 2m real features, (Re φ, Im φ) against (Re ψ, −Im ψ), or m positive ones for s = 1 and
/// real A. A = 0 is [`Positive`](super::Positive) for s = 1 and [`Trigonometric`](super::Trigonometric) for s = −1. If
/// the coupling pads, ‖ω‖ and d are those of the padded dimension.
///
/// # Variance
/// It is finite for Re(1 − 8A) > 0. [`theory::gerf`](crate::theory::gerf) has closed forms for any known coupling. With the
/// optimal real A ≤ 0 for a pair of points or for data ([`optimal`](Gerf::optimal),
/// [`PairStatistics`](crate::data::PairStatistics)) the variance is below that of positive features everywhere except
/// at x = −y.
///
/// # Exact where
/// Nowhere unless A = 0: the term A‖ω‖² trades exactness at x = −y for lower variance elsewhere.
///
/// # Cost
/// O(md) per point, or O(m log d) with structured frequencies, with one exponential for each frequency, and a sine and
/// a cosine if features are complex.
///
/// # References
/// Likhosherstov et al., *Chefs' Random Tables*, Theorems 3.1 to 3.3.
#[doc(alias = "OPRF")]
#[doc(alias = "FAVOR++")]
#[doc(alias = "GERF")]
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredGerf", into = "StoredGerf")
)]
pub struct Gerf {
    a: Complex64,
    sign: GerfSign,
}

impl Gerf {
    /// The mechanism with parameters A and s.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless A is finite and Re(1 − 8A) > 0: else the variance is infinite.
    pub fn new(a: impl Into<Complex64>, sign: GerfSign) -> Result<Self> {
        let a = a.into();
        if a.re < 0.125 && a.is_finite() && gerf::coefficients(a, sign, 1).b.is_finite() {
            return Ok(Gerf { a, sign });
        }
        let domain = "finite, with a real part below 1/8";
        Err(Error::Parameter { name: "the parameter A of GERF", value: a.re, domain })
    }

    /// The positive features (s = 1) with the real A that minimises the variance where ‖(x+y)/ℓ‖² is `squared_sum`, in
    /// ℝᵈ.
    ///
    /// For data take the mean of ‖(x+y)/ℓ‖² over pairs
    /// ([`PairStatistics::mean_squared_sum`](crate::data::PairStatistics::mean_squared_sum)). With a coupling that
    /// pads, d is the padded dimension.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if d is 0 or `squared_sum` is negative or not finite.
    pub fn optimal(d: usize, squared_sum: f64) -> Result<Self> {
        crate::error::check_positive("the dimension d", d)?;
        if !(0.0..=f64::MAX / 8.0).contains(&squared_sum) {
            let (name, domain) = ("‖x+y‖²", "from 0 on and finite");
            return Err(Error::Parameter { name, value: squared_sum, domain });
        }
        Gerf::new(gerf::optimal(d, squared_sum).a, GerfSign::Plus)
    }

    /// The parameter A.
    pub fn a(&self) -> Complex64 {
        self.a
    }

    /// The sign s.
    pub fn sign(&self) -> GerfSign {
        self.sign
    }

    /// Whether features are m positive numbers.
    fn positive(&self) -> bool {
        self.sign == GerfSign::Plus && self.a.im == 0.0
    }
}

identified! { Gerf { a, sign } }

impl Definition for Gerf {
    fn name(&self) -> &'static str {
        "generalised exponential"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        setting.check_radii(self.name(), |radius| radius == Radius::Chi)
    }

    fn lift(&self) -> Option<Lift> {
        Some(if self.positive() { Lift::Exp } else { Lift::ExpPolar { conjugate: false } })
    }

    fn form(&self, setting: Setting<'_>) -> Result<NormalForm> {
        let (omega, kernel) = (setting.omega.frequencies(self.name())?, setting.kernel);
        let norms = finite_norms(omega)?;
        let b = gerf::coefficients(self.a, self.sign, 1).b;
        let constant = (1.0 - 4.0 * self.a).ln() * (0.25 * omega.padded_dim() as f64);
        let weight = |norm: &f64| self.a * *norm + Complex64::new(0.0, constant.im);
        let form = NormalForm::new(-0.5 * self.sign.value() + kernel.row());
        Ok(NormalForm {
            slopes: [b, b * self.sign.value()],
            weights: Some(norms.iter().map(weight).collect()),
            constant: constant.re,
            // With s = −1 the sign of the slope and the conjugation cancel.
            symmetric: self.a.im == 0.0,
            non_negative: self.positive(),
            ..form
        })
    }

    /// Coefficients are Re A and, for complex features, Im A. ∂/∂A of the exponent is ‖ω‖² − 2/(1 − 4A) Bω·u − d/(1 − 4A).
    fn pull_back(&self, setting: Setting<'_>, sums: &ExponentSums) -> Option<(Array2<f64>, Vec<f64>)> {
        let omega = setting.omega.frequencies(self.name()).ok()?;
        let (rows, inverse) = (omega.rows(), (1.0 - 4.0 * self.a).inv());
        let mut of_a = Complex64::ZERO;
        let terms = rows.rows().into_iter().zip(sums.slopes.rows()).zip(&sums.weights);
        for (((row, slopes), weight), norm) in terms.zip(omega.squared_norms()) {
            let along: Complex64 = row.iter().zip(slopes).map(|(omega, slope)| slope * omega).sum();
            of_a += weight * (norm - inverse * omega.padded_dim() as f64) - 2.0 * inverse * along;
        }
        let of_omega = Array2::from_shape_fn(rows.dim(), |(j, k)| {
            (sums.slopes[[j, k]] + 2.0 * self.a * sums.weights[j] * rows[[j, k]]).re
        });
        let own = if self.positive() { vec![of_a.re] } else { vec![of_a.re, -of_a.im] };
        Some((of_omega, own))
    }

    fn log_variance(&self, setting: Setting<'_>, _: &[f64], _: &[f64], pair: &Pair) -> Option<f64> {
        Some(
            gerf::ln_variance(pair, self.a, self.sign, &setting.law()?)? + setting.kernel.ln_norm_scale(pair),
        )
    }

    fn ln_range(&self, setting: Setting<'_>, pair: &Pair) -> Option<f64> {
        let bounded = self.positive() && self.a.re < 0.0;
        bounded.then(|| bounds::ln_supremum(pair, self.a.re) + 0.5 * setting.kernel.ln_norm_scale(pair))
    }

    fn covariance(&self, setting: Setting<'_>) -> Option<Covariance> {
        let (a, sign) = (self.a, self.sign);
        let complex = move |p: &Products<'_>, out: &mut [f64]| {
            let RowProducts { dots, square, squares } = p.plain;
            for ((out, dot), other) in out.iter_mut().zip(dots).zip(squares) {
                *out = covariance::complex_gerf(a, sign, p.dim, *dot, (square, *other));
            }
        };
        let closed = || match sign {
            GerfSign::Plus if a.im == 0.0 => Covariance::of_sums(move |p, out| real_covariance(a.re, p, out)),
            GerfSign::Plus => Covariance::of_sums(complex),
            GerfSign::Minus => Covariance::of_differences(complex),
        };
        // With padding the frequencies have more coordinates than the points.
        let whole = setting.omega.padded_dim() == setting.omega.dim();
        (whole && setting.fits()).then(closed)
    }
}

/// Writes [`covariance::gerf`], whose logarithm is affine in the products.
fn real_covariance(a: f64, p: &Products<'_>, out: &mut [f64]) {
    let RowProducts { dots, square, squares } = p.plain;
    let rho = 1.0 / (1.0 - 8.0 * a);
    let constant = p.dim as f64 * (0.5 * (1.0 + rho) / rho.sqrt()).ln() + 0.25 * (rho - 1.0) * square;
    for ((out, dot), other) in out.iter_mut().zip(dots).zip(squares) {
        *out = constant + 0.25 * (rho - 1.0) * other + 0.5 * (rho + 1.0) * dot;
    }
    exp_m1(Isa::best(), out);
}

/// The stored form, validated again on reading.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredGerf {
    #[serde(with = "crate::exact")]
    a: Complex64,
    sign: GerfSign,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredGerf> for Gerf {
    type Error = Error;

    fn try_from(parts: StoredGerf) -> Result<Self> {
        Gerf::new(parts.a, parts.sign)
    }
}

#[cfg(feature = "serde")]
impl From<Gerf> for StoredGerf {
    fn from(gerf: Gerf) -> Self {
        StoredGerf { a: gerf.a, sign: gerf.sign }
    }
}
