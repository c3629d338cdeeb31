//! Dense-exponential features: positive ones with a coefficient for each coordinate.

use ndarray::Array2;
use num_complex::Complex64;

use super::definition::{Definition, NormalForm, Setting};
use super::{Covariance, Products, RowProducts};
use crate::digest::identified;
use crate::engine::{ExponentSums, Lift};
use crate::error::{Error, Result, check_positive, check_size};
use crate::numeric::{Isa, exp_m1};
use crate::theory::{Pair, Radius, dense};

/// Dense-exponential features: positive ones with a coefficient for each coordinate.
///
/// ```
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::arr1;
/// use random_features::{DenseExponential, Positive};
/// let omega = std::sync::Arc::new(Orthogonal.draw(2, 256, 1)?);
/// // x + y is large only in the first coordinate.
/// let map =
///     DenseExponential::optimal(&[9.0, 0.01])?.softmax::<f64>(&omega)?;
/// let (x, y) = (arr1(&[1.4, 0.1]), arr1(&[1.6, -0.1]));
/// let ratio = map.estimate(&x, &y)? / x.dot(&y).exp();
/// assert!((ratio - 1.0).abs() < 0.3);
/// // With coefficients 0 the map is that of positive features.
/// let plain =
///     DenseExponential::new(vec![0.0, 0.0])?.softmax::<f64>(&omega)?;
/// let positive = Positive.softmax::<f64>(&omega)?;
/// assert!(
///     (plain.estimate(&x, &y)? / positive.estimate(&x, &y)? - 1.0).abs()
///         < 1e-12
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// φⱼ(x) = m^{−1/2} Πₗ (1 − 4aₗ)^{1/4} exp(Σₗ aₗωⱼₗ² + Σₗ √(1 − 4aₗ) ωⱼₗ xₗ − ½‖x‖²) for the softmax kernel, with ω ~
/// N(0, I) and aₗ < 1/8; for the Gaussian kernel exp(… − ‖x‖²). Equal aₗ give [OPRF](super::Gerf), aₗ = 0 gives
/// [`Positive`](super::Positive). The map is importance sampling in which the coordinates of the frequencies have
/// variances 1 − 4aₗ. For a basis other than the axes use a [`Conditioning`](crate::compose::Conditioning) with a rotation.
///
/// # Variance
/// K²(Πₗ ςₗ e^{ρₗwₗ²} − 1)/m for independent frequencies, with ρₗ = 1/(1 − 8aₗ), w = x + y and ςₗ = (1 + ρₗ)/(2√ρₗ).
/// [`theory::dense`](crate::theory::dense) also has closed forms for antithetic pairs, and for orthogonal and simplex
/// frequencies if all aₗ are equal. [`optimal`](DenseExponential::optimal) minimises the mean of ln E φ²ψ² over data.
/// With the optimal [`Conditioning`](crate::compose::Conditioning), rotated to the eigenvectors of E wwᵀ, the map is the best of
/// all dense-exponential maps for independent pairs of points (by Bhatia and Kittaneh's inequality λⱼ(TC_xTᵀ +
/// T⁻ᵀC_yT⁻¹) ≥ 2√λⱼ(C_xC_y)).
///
/// # Exact where
/// At x = −y if all aₗ are 0; otherwise nowhere.
///
/// # Cost
/// O(md) per point, as positive features with dense frequencies take, also if the frequencies are structured.
///
/// # References
/// Likhosherstov et al., *Dense-Exponential Random Features: Sharp Positive Estimators of the Gaussian Kernel*.
#[doc(alias = "DERF")]
#[doc(alias = "ADERF")]
#[doc(alias = "SDERF")]
#[doc(alias = "FAVOR#")]
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredDenseExponential", into = "StoredDenseExponential")
)]
pub struct DenseExponential {
    a: Vec<f64>,
}

impl DenseExponential {
    /// The map with these coefficients, one for each coordinate.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is none, [`Entry`](Error::Entry) with the first that is not finite or
    /// is 1/8 or more, where the variance is infinite.
    pub fn new(a: Vec<f64>) -> Result<Self> {
        check_positive("the number of coefficients", a.len())?;
        match a.iter().position(|a| !(*a < 0.125 && (4.0 * a).is_finite())) {
            None => Ok(DenseExponential { a }),
            Some(row) => Err(Error::Entry {
                what: "the coefficients",
                row,
                value: a[row],
                domain: "finite and below 1/8",
            }),
        }
    }

    /// The map with the coefficients that minimise the mean logarithm of the second moment over data for which φₗ is
    /// the mean of ((xₗ + yₗ)/ℓₗ)².
    ///
    /// # Errors
    /// The errors of [`new`](DenseExponential::new); [`Entry`](Error::Entry) with the first φₗ that is negative or not finite.
    pub fn optimal(phi: &[f64]) -> Result<Self> {
        if let Some(row) = phi.iter().position(|phi| !(0.0..=f64::MAX / 8.0).contains(phi)) {
            let (what, value, domain) = ("the mean squares", phi[row], "from 0 on and finite");
            return Err(Error::Entry { what, row, value, domain });
        }
        DenseExponential::new(phi.iter().map(|phi| dense::optimal(*phi).a).collect())
    }

    /// The coefficients aₗ, one for each coordinate.
    pub fn a(&self) -> &[f64] {
        &self.a
    }

    /// ρₗ = 1/(1 − 8aₗ).
    pub fn rho(&self) -> Vec<f64> {
        self.a.iter().map(|a| (1.0 - 8.0 * a).recip()).collect()
    }
}

identified! { DenseExponential { a } }

impl Definition for DenseExponential {
    fn name(&self) -> &'static str {
        "dense-exponential"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        setting.check_radii(self.name(), |radius| radius == Radius::Chi)?;
        check_size("the number of entries of A", setting.omega.dim(), self.a.len())
    }

    fn lift(&self) -> Option<Lift> {
        Some(Lift::Exp)
    }

    fn form(&self, setting: Setting<'_>) -> Result<NormalForm> {
        let (omega, kernel) = (setting.omega.frequencies(self.name())?, setting.kernel);
        let weight = |row: ndarray::ArrayView1<'_, f64>| -> f64 {
            row.iter().zip(&self.a).map(|(w, a)| a * w * w).sum()
        };
        omega.check_rows()?;
        let weights: Vec<Complex64> = omega.rows().rows().into_iter().map(|row| weight(row).into()).collect();
        if let Some(row) = weights.iter().position(|weight| !weight.is_finite()) {
            return Err(Error::NotFinite { what: "the squares of the frequencies", row, column: None });
        }
        Ok(NormalForm {
            weights: Some(weights),
            stretch: Some(self.a.iter().map(|a| (1.0 - 4.0 * a).sqrt()).collect()),
            constant: self.a.iter().map(|a| 0.25 * (-4.0 * a).ln_1p()).sum(),
            non_negative: true,
            ..NormalForm::new(-0.5 + kernel.row())
        })
    }

    /// Coefficients are the aₗ. ∂/∂aₗ of the exponent is ωₗ² − 2/(1 − 4aₗ) √(1 − 4aₗ) ωₗuₗ − 1/(1 − 4aₗ).
    fn pull_back(&self, setting: Setting<'_>, sums: &ExponentSums) -> Option<(Array2<f64>, Vec<f64>)> {
        let rows = setting.omega.frequencies(self.name()).ok()?.rows();
        let inverse: Vec<f64> = self.a.iter().map(|a| (1.0 - 4.0 * a).recip()).collect();
        // The derivative with respect to ωₗ through the projection alone.
        let slope = |j: usize, l: usize| sums.slopes[[j, l]].re / inverse[l].sqrt();
        let of_omega = Array2::from_shape_fn(rows.dim(), |(j, l)| {
            slope(j, l) + 2.0 * self.a[l] * sums.weights[j].re * rows[[j, l]]
        });
        let of_a = |l: usize| -> f64 {
            let terms = sums.weights.iter().enumerate().map(|(j, weight)| {
                let omega = rows[[j, l]];
                weight.re * (omega * omega - inverse[l]) - 2.0 * inverse[l] * omega * slope(j, l)
            });
            terms.sum()
        };
        Some((of_omega, (0..self.a.len()).map(of_a).collect()))
    }

    fn log_variance(&self, setting: Setting<'_>, u: &[f64], v: &[f64], pair: &Pair) -> Option<f64> {
        let w: Vec<f64> = u.iter().zip(v).map(|(u, v)| u + v).collect();
        let relative = dense::ln_variance(&w, &self.rho(), &setting.law()?)?;
        Some(relative + setting.kernel.ln_squared_scale(pair))
    }

    fn covariance(&self, setting: Setting<'_>) -> Option<Covariance> {
        let rho = self.rho();
        let ln_stretch = dense::ln_second_moment(&vec![0.0; rho.len()], &rho);
        // This is `covariance::dense` with expanded squares.
        let values = move |p: &Products<'_>, out: &mut [f64]| {
            let Some(stretched) = p.stretched else { return out.fill(f64::NAN) };
            for (k, out) in out.iter_mut().enumerate() {
                let of = |p: RowProducts<'_>| (p.square + p.squares[k], p.dots[k]);
                let ((squares, dot), (stretched_squares, stretched_dot)) = (of(p.plain), of(stretched));
                *out = ln_stretch + 0.25 * (stretched_squares - squares) + 0.5 * (stretched_dot + dot);
            }
            exp_m1(Isa::best(), out);
        };
        let stretch = rho.iter().map(|rho| rho.sqrt()).collect();
        setting.fits().then(|| Covariance::of_sums(values).stretched(stretch))
    }
}

/// The stored form, validated again on reading.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredDenseExponential {
    #[serde(with = "crate::exact")]
    a: Vec<f64>,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredDenseExponential> for DenseExponential {
    type Error = Error;

    fn try_from(parts: StoredDenseExponential) -> Result<Self> {
        DenseExponential::new(parts.a)
    }
}

#[cfg(feature = "serde")]
impl From<DenseExponential> for StoredDenseExponential {
    fn from(map: DenseExponential) -> Self {
        StoredDenseExponential { a: map.a }
    }
}
