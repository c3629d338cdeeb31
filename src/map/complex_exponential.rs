//! Complex-exponential features.

use num_complex::Complex64;

use super::Transform;
use super::definition::{Definition, NormalForm, Setting};
use super::identity::Digest;
use crate::engine::{Affine, Input, Lift, Linear};
use crate::error::{Result, check_size};
use crate::theory::complex_exponential::{self, Symmetry};
use crate::theory::{self, Pair, Radius};

/// An invertible complex matrix A and its inverse transpose: what a complex-exponential map does to points.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ComplexExponential {
    transform: Transform,
    symmetry: Symmetry,
}

impl ComplexExponential {
    /// The mechanism with the matrix A, which acts on points divided by the lengthscale.
    pub fn new(a: Transform, symmetry: Symmetry) -> Self {
        ComplexExponential { transform: a, symmetry }
    }

    /// A and A⁻ᵀ.
    pub fn transform(&self) -> &Transform {
        &self.transform
    }

    /// Whether features of −ω follow those of ω.
    pub fn symmetry(&self) -> Symmetry {
        self.symmetry
    }
}

impl Definition for ComplexExponential {
    fn name(&self) -> &'static str {
        "complex-exponential"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        let omega = setting.check_radii(self.name(), |radius| radius == Radius::Chi)?;
        check_size("the dimension of A", omega.dim(), self.transform.dim())
    }

    fn form(&self, setting: Setting<'_>) -> Result<NormalForm> {
        let (lengthscale, row) = (setting.target.lengthscale(), setting.target.row());
        let symmetric = self.symmetry == Symmetry::Symmetric;
        let form = match self.transform.real_sides() {
            // Real A: positive or hyperbolic features of the transformed points.
            Some(sides) => NormalForm {
                affine: Some(sides.map(|a| Affine { point: row, ..Affine::scaled(&a, lengthscale) })),
                non_negative: true,
                ..NormalForm::new(if symmetric { Lift::ExpPair } else { Lift::Exp }, -0.5)
            },
            None => NormalForm {
                input: Input::Linear(Linear {
                    matrices: self.transform.sides().clone(),
                    lengthscale: lengthscale.clone(),
                    inner: -0.5,
                    outer: row,
                }),
                mirrored: symmetric,
                ..NormalForm::new(Lift::ExpPolar { conjugate: false }, 0.0)
            },
        };
        Ok(NormalForm {
            constant: if symmetric { -0.5 * std::f64::consts::LN_2 } else { 0.0 },
            symmetric: self.transform.is_symmetric(),
            ..form
        })
    }

    fn log_variance(&self, setting: Setting<'_>, u: &[f64], v: &[f64], pair: &Pair) -> Option<f64> {
        let (law, zeta) = (setting.law()?, self.transform.zeta(u, v));
        // Relative to the squared kernel, 2x·y for softmax.
        let dot = 0.5 * setting.target.ln_squared_scale(pair);
        let squared_norm = zeta.iter().map(Complex64::norm_sqr).sum();
        if zeta.iter().all(|z| z.im == 0.0) {
            // That of positive features, whose ζ is x + y.
            let pair = Pair { sum: squared_norm, dot, ..*pair };
            return match self.symmetry {
                Symmetry::Plain => theory::positive(&pair, law),
                Symmetry::Symmetric => theory::hyperbolic(&pair, law),
            };
        }
        if zeta.iter().all(|z| z.re == 0.0) {
            // That of trigonometric features, whose ζ is i(x − y) and whose real part is even in ω.
            let pair = Pair { difference: squared_norm, norms: 2.0 * dot + squared_norm, ..*pair };
            return theory::trigonometric(&pair, law);
        }
        law.is_independent().then(|| complex_exponential::ln_mse(dot, &zeta, self.symmetry, law.len()))
    }

    fn identify(&self, digest: &mut Digest) {
        digest.text(&format!("{:?} {}", self.symmetry, self.transform.dim()));
        self.transform.entries().iter().for_each(|a| [a.re, a.im].iter().for_each(|v| digest.float(*v)));
    }
}
