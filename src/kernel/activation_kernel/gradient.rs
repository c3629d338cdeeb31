//! Gradients of the kernels of functions.
//!
//! A kernel of a function with f(cu) = cᵏ f(u) is ‖x‖ᵏ‖y‖ᵏ g(θ), with the gradient ‖x‖ᵏ⁻¹‖y‖ᵏ (k g x̂ − g′ n̂) in the [`Plane`] of the
//! points. In general it is E f″(ω·x) f(ω·y) x + E f′(ω·x) f′(ω·y) y, by Stein's lemma.

use std::f64::consts::{FRAC_2_PI, LN_2, PI};

use super::super::angular::Plane;
use super::super::gradient::ScaledSum;
use super::{Activation, ActivationKernel, product_mean, relu, relu_squared};
use crate::SignedLog;
use crate::numeric::special::ln_add_exp;

/// x·y from which on cosines and sines are differences of exponentials.
const FAR: f64 = 1.0;

impl ActivationKernel {
    /// Writes a vector g, d numbers, for which the gradient is eˢ g, from pairs of coordinates of x/ℓ and y/ℓ; returns s. It is NaN
    /// where a coordinate is not finite.
    pub(super) fn gradient(&self, pairs: impl Iterator<Item = (f64, f64)> + Clone, out: &mut [f64]) -> f64 {
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.unzip();
        if x.iter().chain(&y).any(|v| !v.is_finite()) {
            out.fill(f64::NAN);
            return f64::NAN;
        }
        let mut points = Points { plane: Plane::of(coordinates(&x, &y)), sum: ScaledSum::new(x.len()), x, y };
        points.add_product(self.activation);
        points.add_mean(self.activation, SignedLog::from(self.offset));
        out.copy_from_slice(&points.sum.numbers);
        points.sum.ln_scale
    }
}

fn coordinates(x: &[f64], y: &[f64]) -> impl Iterator<Item = (f64, f64)> + Clone {
    x.iter().copied().zip(y.iter().copied())
}

/// Two finite points, and the gradient so far.
struct Points {
    x: Vec<f64>,
    y: Vec<f64>,
    /// `None` if a point is 0.
    plane: Option<Plane>,
    sum: ScaledSum,
}

impl Points {
    /// Adds a vector times a factor; nothing for the factor 0, even if the vector has overflowed.
    fn add(&mut self, vector: &[f64], factor: SignedLog) {
        if factor.ln_abs > f64::NEG_INFINITY || factor.ln_abs.is_nan() {
            self.sum.add(vector, factor);
        }
    }

    /// Adds the gradient of E f(ω·x) f(ω·y).
    fn add_product(&mut self, f: Activation) {
        let (x, y) = (self.x.clone(), self.y.clone());
        let dot: f64 = coordinates(&x, &y).map(|(x, y)| x * y).sum();
        match f {
            Activation::Identity => self.add(&y, SignedLog::from(1.0)),
            Activation::Square => self.add_polar(2.0, |plane| {
                let cos = plane.angle.cos;
                [2.0 + 4.0 * cos * cos, 4.0 * plane.angle.sin() * cos]
            }),
            Activation::Exp => self.add(&self.combined(1.0), product_mean(f, coordinates(&x, &y))),
            Activation::Cos | Activation::Sin => self.add_wave(f, dot),
            Activation::Erf => self.add_erf(),
            Activation::Sign => self.add_polar(0.0, |_| [0.0, FRAC_2_PI]),
            Activation::Step => self.add_polar(0.0, |_| [0.0, 0.25 * FRAC_2_PI]),
            Activation::Relu => self.add_polar(1.0, |plane| {
                let angle = plane.angle;
                [relu(angle), angle.supplement() * angle.sin()].map(|v| v / (2.0 * PI))
            }),
            Activation::ReluSquared => self.add_polar(2.0, |plane| {
                let angle = plane.angle;
                [relu_squared(angle) / PI, FRAC_2_PI * angle.sin() * relu(angle)]
            }),
            Activation::Abs => self.add_polar(1.0, |plane| {
                let (angle, rest) = (plane.angle, plane.angle.complement());
                [angle.sin() + rest * angle.cos, rest * angle.sin()].map(|v| FRAC_2_PI * v)
            }),
            // They have no kernel.
            Activation::Gelu | Activation::Sigmoid | Activation::Tanh => {}
        }
    }

    /// x + sign·y.
    fn combined(&self, sign: f64) -> Vec<f64> {
        coordinates(&self.x, &self.y).map(|(x, y)| x + sign * y).collect()
    }

    /// Adds ‖x‖ᵏ⁻¹‖y‖ᵏ times numbers of x̂ and n̂.
    fn add_polar(&mut self, k: f64, numbers: impl Fn(&Plane) -> [f64; 2]) {
        let Some(plane) = self.plane.take() else { return };
        let [along, across] = numbers(&plane);
        let ln_size = (k - 1.0) * plane.ln_x + k * plane.ln_y;
        self.add(&plane.along, SignedLog::from(along).scaled(ln_size));
        self.add(&plane.across, SignedLog::from(across).scaled(ln_size));
        self.plane = Some(plane);
    }

    /// Adds the gradient of ½(E₋ ± E₊) with E∓ = e^{−‖x∓y‖²/2}. Where |x·y| < 1 it is −K x + K′ y, with the kernel K of f and the kernel
    /// K′ of the other function: less cancels.
    fn add_wave(&mut self, f: Activation, dot: f64) {
        let is_cos = f == Activation::Cos;
        if dot.abs() < FAR {
            let of = |f| product_mean(f, coordinates(&self.x, &self.y));
            let [own, other] = [of(f), of(if is_cos { Activation::Sin } else { Activation::Cos })];
            let (x, y) = (self.x.clone(), self.y.clone());
            self.add(&x, SignedLog { sign: -own.sign, ..own });
            self.add(&y, other);
            return;
        }
        for (sign, times) in [(-1.0, -0.5), (1.0, if is_cos { -0.5 } else { 0.5 })] {
            let vector = self.combined(sign);
            let square: f64 = vector.iter().map(|v| v * v).sum();
            self.add(&vector, SignedLog::from(times).scaled(-0.5 * square));
        }
    }

    /// (4/π)‖y‖ (cos θ/(1 + 2‖x‖²) x̂ + sin θ n̂)/√(1 + 2‖x‖² + 2‖y‖² + 4‖x‖²‖y‖² sin²θ).
    fn add_erf(&mut self) {
        let Some(plane) = self.plane.take() else {
            // At x = 0 the gradient is (4/π) y/√(1 + 2‖y‖²), and at y = 0 it is 0.
            let Some((unit, ln_y)) = unit(&self.y) else { return };
            let ln_size = ln_y - 0.5 * ln_add_exp(0.0, LN_2 + 2.0 * ln_y);
            return self.add(&unit, SignedLog::from(2.0 * FRAC_2_PI).scaled(ln_size));
        };
        let Plane { angle, ln_x, ln_y, .. } = plane;
        let ln_of_x = ln_add_exp(0.0, LN_2 + 2.0 * ln_x);
        let ln_sum = ln_add_exp(ln_of_x, LN_2 + 2.0 * ln_y);
        let ln_cross = 2.0 * (LN_2 + ln_x + ln_y + angle.sin().ln());
        let ln_size = (2.0 * FRAC_2_PI).ln() + ln_y - 0.5 * ln_add_exp(ln_sum, ln_cross);
        self.add(&plane.along, SignedLog::from(angle.cos).scaled(ln_size - ln_of_x));
        self.add(&plane.across, SignedLog::from(angle.sin()).scaled(ln_size));
        self.plane = Some(plane);
    }

    /// Adds the gradient of ε E f(ω·x).
    fn add_mean(&mut self, f: Activation, offset: SignedLog) {
        let x = self.x.clone();
        let half_square = || 0.5 * x.iter().map(|v| v * v).sum::<f64>();
        // The gradient is this number times x or, for functions that grow as |u|, times x̂.
        let number = match f {
            Activation::Square => SignedLog::from(2.0),
            Activation::ReluSquared => SignedLog::from(1.0),
            Activation::Exp => SignedLog::positive(half_square()),
            Activation::Cos => SignedLog { sign: -1.0, ln_abs: -half_square() },
            Activation::Relu => SignedLog::positive(-0.5 * (2.0 * PI).ln()),
            Activation::Abs => SignedLog::positive(0.5 * FRAC_2_PI.ln()),
            _ => return,
        };
        let factor = number.times(offset);
        match f {
            Activation::Relu | Activation::Abs => {
                let Some((unit, _)) = unit(&x) else { return };
                self.add(&unit, factor);
            }
            _ => self.add(&x, factor),
        }
    }
}

/// x̂ and ln ‖x‖; `None` for 0.
fn unit(x: &[f64]) -> Option<(Vec<f64>, f64)> {
    Plane::of(coordinates(x, x)).map(|plane| (plane.along, plane.ln_x))
}
