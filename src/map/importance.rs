//! Positive features on frequencies of any stated density (importance sampling).

use num_complex::Complex64;

use super::definition::{Definition, NormalForm, Setting, finite_norms};
use super::{AnyKernel, Omega};
use crate::Real;
use crate::digest::identified;
use crate::engine::Lift;
use crate::error::{Error, Result, check_positive, check_size};
use crate::kernel::Kernel;
use crate::theory::Pair;

/// Positive features on frequencies of any stated density: importance sampling.
///
/// ```
/// use random_features::ndarray::{Array2, ArrayView1, arr1};
/// use random_features::frequency::{Frequencies, Independent};
/// use random_features::Importance;
/// // q is a mixture of two normal densities of unit variance, around 0 and around
/// // x + y.
/// let w = [2.0, 1.0];
/// let mut rows = Independent.draw(2, 512, 1)?.rows().into_owned();
/// rows.rows_mut().into_iter().step_by(2).for_each(|mut row| row += &arr1(&w));
/// let gauss = |row: ArrayView1<f64>, mean: &[f64; 2]| {
///     let square: f64 = row.iter().zip(mean).map(|(a, b)| (a - b).powi(2)).sum();
///     (-0.5 * square).exp() / std::f64::consts::TAU
/// };
/// let density = |row| 0.5 * gauss(row, &[0.0; 2]) + 0.5 * gauss(row, &w);
/// let logs = rows.rows().into_iter().map(|row| density(row).ln()).collect();
/// let omega = Frequencies::from_rows(rows)?;
/// let map = Importance::new(logs)?.softmax::<f64>(omega)?;
/// let (x, y) = (arr1(&[1.2, 0.3]), arr1(&[0.8, 0.7]));
/// assert!((map.estimate(&x, &y)? / x.dot(&y).exp() - 1.0).abs() < 0.15);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// φⱼ(x) = m^{−1/2} exp(ωⱼ·x − ½‖x‖² + ½ ln N(ωⱼ; 0, I) − ½ ln q(ωⱼ)) for the softmax kernel, with −‖x‖² for the Gaussian
/// kernel, where each ω has the density q on ℝᵈ. Estimates are unbiased if q is positive everywhere and the frequencies
/// were drawn from it, which the map cannot check. q = N(0, I) gives [`Positive`](super::Positive); another Gaussian density
/// gives [`DenseExponential`](super::DenseExponential) after a [`Conditioning`](crate::compose::Conditioning).
/// [`ImportanceMixture`](super::ImportanceMixture) draws the frequencies too, from the density that is best for given points.
///
/// # Variance
/// K²(∫ N(ω; 0, I)² e^{2ω·w − 2‖w‖²}/q(ω) dω e^{‖w‖²} − 1)/m with w = x + y for independent frequencies; there is no
/// closed form for general q, so [`log_variance`](crate::Map::log_variance) is `None`. It is infinite if the tails of q
/// are so much lighter than those of N(0, I) that the integral diverges.
///
/// # Exact where
/// Nowhere, in general.
///
/// # Cost
/// O(md) per point, with one exponential for each feature.
///
/// # References
/// Importance weights after Rubin; their use for features: new.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredImportance", into = "StoredImportance")
)]
pub struct Importance {
    log_densities: Vec<f64>,
}

impl Importance {
    /// The map with ln q(ωⱼ) of each frequency.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is none, [`Entry`](Error::Entry) with the first that is not finite.
    pub fn new(log_densities: Vec<f64>) -> Result<Self> {
        check_positive("the number of densities", log_densities.len())?;
        match log_densities.iter().position(|v| !v.is_finite()) {
            None => Ok(Importance { log_densities }),
            Some(row) => {
                let (what, value) = ("the logarithms of the densities", log_densities[row]);
                Err(Error::Entry { what, row, value, domain: "finite" })
            }
        }
    }

    /// ln q(ωⱼ) of each of the m frequencies.
    pub fn log_densities(&self) -> &[f64] {
        &self.log_densities
    }
}

identified! { Importance { log_densities } }

impl Definition for Importance {
    fn name(&self) -> &'static str {
        "importance-weighted positive"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        let omega = setting.omega.frequencies(self.name())?;
        check_size("the number of densities", omega.m(), self.log_densities.len())?;
        finite_norms(omega)?;
        match setting.kernel {
            AnyKernel::Softmax(_) | AnyKernel::Gaussian(_) => Ok(()),
            _ => Err(setting.refused(self.name())),
        }
    }

    fn lift(&self) -> Option<Lift> {
        Some(Lift::Exp)
    }

    fn form(&self, setting: Setting<'_>) -> Result<NormalForm> {
        let omega: &Omega = setting.omega;
        let omega = omega.frequencies(self.name())?;
        let normal = 0.5 * omega.dim() as f64 * std::f64::consts::TAU.ln();
        let weight = |(row, density): (ndarray::ArrayView1<'_, f64>, &f64)| {
            Complex64::from(0.5 * (-0.5 * row.dot(&row) - normal - density))
        };
        omega.check_rows()?;
        let rows = omega.rows();
        let weights = rows.rows().into_iter().zip(&self.log_densities).map(weight).collect();
        let form = NormalForm::new(-0.5 + setting.kernel.row());
        Ok(NormalForm { weights: Some(weights), non_negative: true, ..form })
    }

    fn kernel<T: Real>(&self, setting: Setting<'_>) -> Option<Box<dyn Kernel<T>>> {
        setting.kernel.kernel()
    }

    fn log_variance(&self, _: Setting<'_>, _: &[f64], _: &[f64], _: &Pair) -> Option<f64> {
        None
    }
}

/// The stored form, validated again on reading.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredImportance {
    #[serde(with = "crate::exact")]
    log_densities: Vec<f64>,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredImportance> for Importance {
    type Error = Error;

    fn try_from(parts: StoredImportance) -> Result<Self> {
        Importance::new(parts.log_densities)
    }
}

#[cfg(feature = "serde")]
impl From<Importance> for StoredImportance {
    fn from(map: Importance) -> Self {
        StoredImportance { log_densities: map.log_densities }
    }
}
