//! [`Powered`]: a powered exponential kernel of each coordinate.

use std::f64::consts::LN_2;
use std::fmt::{Display, Formatter};

use ndarray::ArrayViewMut1;

use crate::error::Result;
use crate::generator::Generator;
use crate::kernel::{Lengthscale, PoweredExponential};

/// The largest sum of powers that is told from others.
const FAR: f64 = 1e300;

/// The kernel exp(−Σₗ |δₗ/ℓₗ|^α). The coordinates of its frequencies are independent, with a symmetric stable law of index α.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Powered {
    /// α.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub alpha: f64,
    /// ℓ.
    pub lengthscale: Lengthscale,
}

crate::digest::identified! { Powered { alpha, lengthscale } }

impl Powered {
    /// Rejects parameters outside their domain, which is that of the isotropic kernel.
    pub fn checked(self) -> Result<Self> {
        let kernel = PoweredExponential::new(self.alpha, self.lengthscale)?;
        Ok(Powered { alpha: kernel.alpha(), lengthscale: kernel.lengthscale().clone() })
    }

    /// ln k(δ) = −Σ |δₗ/ℓₗ|^α and ln k(2δ) − 4 ln k(δ) = (4 − 2^α) Σ |δₗ/ℓₗ|^α.
    pub fn exponents(&self, d: usize, delta: &dyn Fn(usize) -> f64) -> [f64; 2] {
        let powers = (0..d).map(|l| (delta(l) / self.lengthscale.at(l)).abs().powf(self.alpha));
        // Beyond the bound both k(δ) and k(2δ) are 0.
        let power = match powers.sum::<f64>() {
            FAR.. => FAR,
            power => power,
        };
        [-power, -4.0 * ((self.alpha - 2.0) * LN_2).exp_m1() * power]
    }

    /// The gradient of ln k, 0 along a coordinate in which δ is 0 or so large that k is 0.
    pub fn slopes(&self, delta: &[f64]) -> Vec<f64> {
        let slope = |(l, v): (usize, &f64)| {
            let scale = self.lengthscale.at(l);
            let size = (v / scale).abs();
            let steep = self.alpha * size.powf(self.alpha - 1.0) / scale;
            if size == 0.0 || size.powf(self.alpha) >= FAR { 0.0 } else { -steep * v.signum() }
        };
        delta.iter().enumerate().map(slope).collect()
    }

    /// Adds a frequency to a row: normal numbers of a stable variance.
    pub fn add_frequency(&self, rng: &mut Generator, row: &mut ArrayViewMut1<'_, f64>) {
        for (l, v) in row.iter_mut().enumerate() {
            *v += rng.normal() * PoweredExponential::draw_scale(self.alpha, rng) / self.lengthscale.at(l);
        }
    }
}

impl Display for Powered {
    /// Writes a text from which the kernel is read again.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "powered exponential by coordinates, α = {}", self.alpha)?;
        match &self.lengthscale {
            Lengthscale::Isotropic(scale) => write!(f, ", lengthscale {scale}"),
            Lengthscale::PerDimension(scales) => write!(f, ", lengthscales {scales:?}"),
        }
    }
}
