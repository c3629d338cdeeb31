//! Angles, and the angular kernel.

use std::f64::consts::{FRAC_2_PI, LN_2};

use super::{Kernel, Lengthscale};
use crate::digest::{Identity, identified};
use crate::error::Result;
use crate::{Real, SignedLog};

/// The angle between two points given as pairs of coordinates, from 0 to π; π/2 if one of the points is 0.
///
/// Accurate to rounding everywhere, unlike the arccosine, which loses half of the digits near 0 and π.
///
/// ```
/// use random_features::kernel::angle;
/// let tiny = angle([(1.0, 1.0), (0.0, 1e-12)]);
/// assert!((tiny / 1e-12 - 1.0).abs() < 1e-15);
/// ```
pub fn angle<I>(coordinates: I) -> f64
where
    I: IntoIterator<Item = (f64, f64)>,
    I::IntoIter: Clone,
{
    Angle::between(coordinates.into_iter()).theta()
}

/// An angle represented by the sum and difference of unit vectors, from which small values are computed without
/// cancellation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Angle {
    /// ‖x̂ + ŷ‖
    sum: f64,
    /// ‖x̂ − ŷ‖
    difference: f64,
    /// x̂·ŷ
    pub cos: f64,
    /// ln ‖x‖‖y‖
    pub ln_norms: f64,
}

impl Angle {
    pub fn between(coordinates: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let (x, y) = (norm(coordinates.clone().map(|(x, _)| x)), norm(coordinates.clone().map(|(_, y)| y)));
        if is_nothing(x, y) {
            let right = std::f64::consts::SQRT_2;
            return Angle { sum: right, difference: right, cos: 0.0, ln_norms: f64::NEG_INFINITY };
        }
        let units = coordinates.map(|(a, b)| (x.unit(a), y.unit(b)));
        let sum = |term: fn(f64, f64) -> f64| units.clone().map(|(a, b)| term(a, b)).sum::<f64>();
        Angle {
            sum: sum(|a, b| (a + b) * (a + b)).sqrt(),
            difference: sum(|a, b| (a - b) * (a - b)).sqrt(),
            cos: sum(|a, b| a * b),
            ln_norms: x.ln() + y.ln(),
        }
    }

    /// θ.
    pub fn theta(self) -> f64 {
        2.0 * self.difference.atan2(self.sum)
    }

    /// π − θ.
    pub fn supplement(self) -> f64 {
        2.0 * self.sum.atan2(self.difference)
    }

    /// π/2 − θ.
    pub fn complement(self) -> f64 {
        self.cos.atan2(self.sin())
    }

    /// sin θ.
    pub fn sin(self) -> f64 {
        0.5 * self.sum * self.difference
    }
}

/// The plane of two points x and y with orthogonal unit vectors x̂ and n̂: ŷ = cos θ x̂ + sin θ n̂.
pub(super) struct Plane {
    pub angle: Angle,
    /// ln ‖x‖.
    pub ln_x: f64,
    /// ln ‖y‖.
    pub ln_y: f64,
    /// x̂, d numbers.
    pub along: Vec<f64>,
    /// n̂, d numbers: the direction in which the angle falls; 0 where it is 0 or π up to rounding.
    pub across: Vec<f64>,
}

impl Plane {
    /// The plane of points as pairs of coordinates; `None` if one of them is 0.
    pub fn of(coordinates: impl Iterator<Item = (f64, f64)> + Clone) -> Option<Self> {
        let (x, y) = (norm(coordinates.clone().map(|(x, _)| x)), norm(coordinates.clone().map(|(_, y)| y)));
        if is_nothing(x, y) {
            return None;
        }
        let angle = Angle::between(coordinates.clone());
        // ŷ − cos θ x̂ without the parts that cancel at θ = 0 and at π.
        let near = if angle.cos < 0.0 { -1.0 } else { 1.0 };
        let rest = 0.5 * near * angle.difference.min(angle.sum).powi(2);
        let is_line = angle.sin() < 4.0 * f64::EPSILON;
        let across = |(a, b): (f64, f64)| (y.unit(b) - near * x.unit(a) + rest * x.unit(a)) / angle.sin();
        Some(Plane {
            angle,
            ln_x: x.ln(),
            ln_y: y.ln(),
            along: coordinates.clone().map(|(a, _)| x.unit(a)).collect(),
            across: coordinates.map(|pair| if is_line { 0.0 } else { across(pair) }).collect(),
        })
    }
}

/// A norm as its largest entry times the norm of the scaled rest, so that it does not overflow.
#[derive(Clone, Copy)]
struct Norm {
    largest: f64,
    rest: f64,
}

/// The largest magnitude, NaN if there is one; 0 for no numbers.
pub(super) fn max_abs(x: impl Iterator<Item = f64>) -> f64 {
    x.fold(0.0, |a: f64, v| if v.abs() > a || v.is_nan() { v.abs() } else { a })
}

fn norm(x: impl Iterator<Item = f64> + Clone) -> Norm {
    let largest = max_abs(x.clone());
    Norm { largest, rest: x.map(|v| (v / largest) * (v / largest)).sum::<f64>().sqrt() }
}

/// Σ term(xₗ, yₗ) over pairs of coordinates for a quadratic form `term`, as a number s and an exponent k of s·2ᵏ: neither squares nor
/// their sum leave the range.
pub(super) fn quadratic(
    pairs: impl Iterator<Item = (f64, f64)> + Clone,
    term: impl Fn(f64, f64) -> f64,
) -> (f64, i32) {
    let (_, exponent) = libm::frexp(max_abs(pairs.clone().flat_map(|(x, y)| [x, y])));
    let small = |v: f64| libm::ldexp(v, -exponent);
    (pairs.map(|(x, y)| term(small(x), small(y))).sum(), 2 * exponent)
}

/// ln ‖x‖², also where ‖x‖² is out of range.
pub(super) fn ln_square(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let (square, exponent) = quadratic(x.map(|v| (v, 0.0)), |v, _| v * v);
    square.ln() + f64::from(exponent) * LN_2
}

/// Whether a point is 0, and no number of the other is NaN.
fn is_nothing(x: Norm, y: Norm) -> bool {
    (x.is_zero() && !y.largest.is_nan()) || (y.is_zero() && !x.largest.is_nan())
}

/// ln ‖x‖; −∞ for 0.
pub(crate) fn ln_norm(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let norm = norm(x);
    if norm.is_zero() { f64::NEG_INFINITY } else { norm.ln() }
}

impl Norm {
    fn is_zero(self) -> bool {
        self.largest == 0.0
    }

    fn unit(self, v: f64) -> f64 {
        v / self.largest / self.rest
    }

    fn ln(self) -> f64 {
        self.largest.ln() + self.rest.ln()
    }
}

/// The angular kernel 1 − 2θ/π.
///
/// ```
/// use random_features::kernel::{Angular, Kernel};
/// use random_features::ndarray::arr1;
/// let value: f64 = Angular.value(&arr1(&[1.0, 0.0]), &arr1(&[2.0, 2.0]))?;
/// assert!((value - 0.5).abs() < 1e-15);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// K(x, y) = 1 − 2θ/π = E\[sgn(ω·x) sgn(ω·y)\] with θ the angle between x and y; from −1 to 1, 0 if a point
/// is 0.
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, equation 19.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Angular;

/// Angles do not change when points are divided by one lengthscale.
static LENGTHSCALE: Lengthscale = Lengthscale::Isotropic(1.0);

impl Angular {
    pub(crate) fn lengthscale(&self) -> &Lengthscale {
        &LENGTHSCALE
    }
}

identified! { Angular {  } }

impl<T: Real> Kernel<T> for Angular {
    fn check_dim(&self, _: usize) -> Result<()> {
        Ok(())
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        let angle = Angle::between(x.iter().zip(y).map(|(x, y)| (x.widen(), y.widen())));
        SignedLog::from(FRAC_2_PI * angle.complement())
    }

    /// Writes 2/(π‖x‖) in the direction in which the angle falls; 0 where it is 0 or π up to rounding, and if a point is 0.
    fn gradient_of_slices(&self, x: &[T], y: &[T], out: &mut [f64]) -> Option<f64> {
        let Some(plane) = Plane::of(x.iter().zip(y).map(|(x, y)| (x.widen(), y.widen()))) else {
            out.fill(0.0);
            return Some(f64::NEG_INFINITY);
        };
        out.copy_from_slice(&plane.across);
        Some(FRAC_2_PI.ln() - plane.ln_x)
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of(&("angular", self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{FRAC_PI_2, PI};

    #[test]
    fn angles_at_any_size() {
        for scale in [1e-300, 1.0, 1e300] {
            assert!((angle([(scale, scale), (0.0, scale)]) - PI / 4.0).abs() < 1e-15);
            assert_eq!(angle([(scale, -1.0), (0.0, 0.0)]), PI);
            assert_eq!(angle([(scale, 2.0), (0.0, 0.0)]), 0.0);
        }
        assert!((angle([(1.0, -1.0), (0.0, 1e-9)]) - (PI - 1e-9)).abs() < 1e-15);
        assert_eq!(angle([(0.0, 1.0), (0.0, 1.0)]), FRAC_PI_2);
        assert!(angle([(f64::NAN, 1.0)]).is_nan());
    }
}
