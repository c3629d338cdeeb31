//! Complex-exponential features.

use num_complex::Complex64;

use super::Transform;
use super::definition::{Definition, NormalForm, Setting};
use crate::digest::identified;
use crate::engine::{Affine, Input, Lift, Linear};
use crate::error::{Result, check_size};
use crate::theory::complex_exponential::{self, Symmetry};
use crate::theory::{self, Pair, Radius};

/// Complex-exponential random features, between positive and trigonometric ones, with a complex matrix A that is chosen for the
/// places of queries and keys.
///
/// ```
/// use random_features::ComplexExponential;
/// use random_features::frequency::Independent;
/// use random_features::map::Transform;
/// use random_features::ndarray::arr1;
/// use random_features::theory::complex_exponential::Symmetry;
/// use random_features::theory::diagonal;
/// let (x, y) = (arr1(&[0.5, -1.0]), arr1(&[1.5, 0.2]));
/// let a =
///     Transform::diagonal(diagonal::complex(&x.to_vec(), &y.to_vec(), 1e-6))?;
/// let map = ComplexExponential::new(a, Symmetry::Plain)
///     .softmax::<f64>(Independent.draw(2, 4, 1)?)?;
/// assert!((map.estimate(&x, &y)? / x.dot(&y).exp() - 1.0).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// φⱼ(x) = m^{−1/2} exp(ωⱼ·Ax − ½(Ax)²) and ψⱼ(y) likewise with A⁻ᵀ for A, for the softmax kernel; for the Gaussian kernel
/// times e^{−‖x‖²/2}. Here u² = Σ uₖ² is without conjugation. The estimate is the real part of the product: 2m real
/// features, (Re φ, Im φ) against (Re ψ, −Im ψ), or m positive ones if A is real. The
/// [symmetric](Symmetry::Symmetric) variant averages over ω and −ω, with twice as many features. A acts on points divided
/// by the lengthscale. A = I is [`Positive`](super::Positive), A = iI [`Trigonometric`](super::Trigonometric).
///
/// # Variance
/// It depends only on the kernel and on ζ = Ax + A⁻ᵀy. [`theory::complex_exponential`](crate::theory::complex_exponential)
/// has closed forms for independent frequencies and antithetic pairs, and for any known law where ζ is real or imaginary.
///
/// # Exact where
/// Where ζ = 0, for any draw. For two given points a diagonal A makes ζ = 0 ([`theory::diagonal`](crate::theory::diagonal)).
///
/// # Cost
/// O(md) per point for real A and twice as much for complex A; O(d²) more for a full matrix.
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, Lemma 2.4 and equations 13–18; symmetric variant: new.
#[doc(alias = "CERF")]
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

    /// The matrices A and A⁻ᵀ.
    pub fn transform(&self) -> &Transform {
        &self.transform
    }

    /// Whether features of −ω follow those of ω.
    pub fn symmetry(&self) -> Symmetry {
        self.symmetry
    }
}

identified! { ComplexExponential { transform, symmetry } }

impl Definition for ComplexExponential {
    fn name(&self) -> &'static str {
        "complex-exponential"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        setting.check_radii(self.name(), |radius| radius == Radius::Chi)?;
        check_size("the dimension of A", setting.omega.dim(), self.transform.dim())
    }

    fn takes_matrix(&self) -> bool {
        false
    }

    fn projections(&self) -> usize {
        if self.transform.real_sides().is_some() { 1 } else { 2 }
    }

    fn lift(&self) -> Option<Lift> {
        // A real A gives positive or hyperbolic features of the transformed points.
        Some(match (self.transform.real_sides(), self.symmetry) {
            (Some(_), Symmetry::Plain) => Lift::Exp,
            (Some(_), Symmetry::Symmetric) => Lift::ExpPair,
            (None, _) => Lift::ExpPolar { conjugate: false },
        })
    }

    fn width(&self) -> usize {
        let of_one = if self.transform.real_sides().is_some() { 1 } else { 2 };
        of_one * if self.symmetry == Symmetry::Symmetric { 2 } else { 1 }
    }

    fn form(&self, setting: Setting<'_>) -> Result<NormalForm> {
        let (lengthscale, row) = (setting.kernel.lengthscale(), setting.kernel.row());
        let symmetric = self.symmetry == Symmetry::Symmetric;
        let form = match self.transform.real_sides() {
            Some(sides) => NormalForm {
                affine: Some(sides.map(|a| Affine { point: row, ..Affine::scaled(&a, lengthscale) })),
                non_negative: true,
                ..NormalForm::new(-0.5)
            },
            None => NormalForm {
                input: Input::Linear(Linear {
                    matrices: self.transform.sides().clone(),
                    lengthscale: lengthscale.clone(),
                    inner: -0.5,
                    outer: row,
                }),
                ..NormalForm::new(0.0)
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
        // Half of ln of the squared kernel, x·y for softmax.
        let dot = 0.5 * setting.kernel.ln_squared_scale(pair);
        let squared_norm = zeta.iter().map(Complex64::norm_sqr).sum();
        if zeta.iter().all(|z| z.im == 0.0) {
            // The variance of positive features, whose ζ is x + y.
            let pair = Pair { sum: squared_norm, dot, ..*pair };
            return match self.symmetry {
                Symmetry::Plain => theory::positive(&pair, &law),
                Symmetry::Symmetric => theory::hyperbolic(&pair, &law),
            };
        }
        if zeta.iter().all(|z| z.re == 0.0) {
            // The variance of trigonometric features, whose ζ is i(x − y) and whose real part is even in ω.
            let pair = Pair { difference: squared_norm, norms: 2.0 * dot + squared_norm, ..*pair };
            return theory::trigonometric(&pair, &law);
        }
        complex_exponential::ln_variance(dot, &zeta, self.symmetry, &law)
    }
}
