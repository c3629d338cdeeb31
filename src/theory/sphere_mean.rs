//! The mean of cos(x u₁) over uniform directions u in ℝᵈ, φ(x) = ₀F₁(; d/2; −x²/4), tabulated for many places x.

use std::f64::consts::PI;

use super::conformity::angle_law;
use crate::numeric::special::ln_gamma;

/// The number of nodes of the angle, and the largest phase that they resolve. Beyond, φ is that of its asymptotic series.
const ANGLES: usize = 128;
const LARGEST: f64 = 150.0;

/// The width of a panel in the phase, and the number of coefficients on it.
const WIDTH: f64 = 4.0;
const DEGREES: usize = 18;

/// φ as polynomials on panels, and by its power series near 0.
#[derive(Debug)]
pub(crate) struct SphereMean {
    dim: f64,
    /// The largest |u₁| that counts: x times it is the phase.
    reach: f64,
    /// Coefficients of Chebyshev polynomials of φ − 1.
    panels: Vec<[f64; DEGREES]>,
}

/// φ(x) − 1 and φ(x) − 1 + x²/(2d).
#[derive(Clone, Copy)]
pub(crate) struct Excess {
    pub plain: f64,
    pub curved: f64,
}

impl SphereMean {
    /// φ in ℝᵈ, d ≥ 1. In one dimension it is the cosine.
    pub fn new(d: usize) -> Self {
        if d == 1 {
            return SphereMean { dim: 1.0, reach: 1.0, panels: Vec::new() };
        }
        let angles = angle_law(d, ANGLES);
        let reach = angles.iter().map(|(cos, _)| *cos).fold(0.0, f64::max);
        let excess = |phase: f64| -> f64 {
            let half = 0.5 * phase / reach;
            -2.0 * angles.iter().map(|(cos, weight)| weight * (half * cos).sin().powi(2)).sum::<f64>()
        };
        let panel = |k: usize| coefficients(&|place| excess(WIDTH * (k as f64 + 0.5 * (1.0 + place))));
        SphereMean { dim: d as f64, reach, panels: (0..(LARGEST / WIDTH) as usize).map(panel).collect() }
    }

    /// The excess at x ≥ 0.
    pub fn at(&self, x: f64) -> Excess {
        let linear = 0.5 * x * x / self.dim;
        if linear < 0.25 {
            let curved = self.series(x);
            return Excess { plain: curved - linear, curved };
        }
        if self.panels.is_empty() {
            let plain = -2.0 * (0.5 * x).sin().powi(2);
            return Excess { plain, curved: plain + linear };
        }
        let place = x * self.reach / WIDTH;
        let plain = self.panels.get(place as usize).map_or_else(
            || self.far(x) - 1.0,
            |panel| {
                let x = 2.0 * place.fract() - 1.0;
                let (mut first, mut second) = (0.0, 0.0);
                for c in panel.iter().skip(1).rev() {
                    (first, second) = (2.0 * x * first - second + c, first);
                }
                x * first - second + panel[0]
            },
        );
        Excess { plain, curved: plain + linear }
    }

    /// φ(x) for large x by Hankel's expansion of the Bessel function of order d/2 − 1. In more than 16 dimensions it is below
    /// 1e-11.
    ///
    /// NIST DLMF 10.17.3.
    fn far(&self, x: f64) -> f64 {
        if self.dim > 16.0 || x > 1e15 {
            return 0.0;
        }
        let order = 0.5 * self.dim - 1.0;
        let ln_scale = ln_gamma(0.5 * self.dim) + order * (2.0 / x).ln() + 0.5 * (2.0 / (PI * x)).ln();
        let (mut term, mut parts) = (1.0, [1.0, 0.0]);
        for k in 1..12 {
            let odd = f64::from(2 * k - 1);
            term *= (4.0 * order * order - odd * odd) / (8.0 * f64::from(k) * x);
            // The signs are + − − + + …, by the power of the imaginary unit.
            parts[k as usize % 2] += if k % 4 < 2 { term } else { -term };
        }
        let phase = x - (0.5 * order + 0.25) * PI;
        ln_scale.exp() * (parts[0] * phase.cos() - parts[1] * phase.sin())
    }

    /// φ(x) − 1 + x²/(2d) for small x, without its first terms, which cancel.
    fn series(&self, x: f64) -> f64 {
        let (half, z) = (0.5 * self.dim, -0.25 * x * x);
        let (mut term, mut sum) = (z / half, 0.0);
        for k in 1..12 {
            let k = f64::from(k);
            term *= z / ((half + k) * (k + 1.0));
            sum += term;
        }
        sum
    }
}

/// The coefficients of Chebyshev polynomials of a function on \[−1, 1\].
fn coefficients(f: &dyn Fn(f64) -> f64) -> [f64; DEGREES] {
    let mut panel = [0.0; DEGREES];
    for i in 0..DEGREES {
        let angle = PI * (i as f64 + 0.5) / DEGREES as f64;
        let value = f(angle.cos());
        for (k, c) in panel.iter_mut().enumerate() {
            let share = if k == 0 { 1.0 } else { 2.0 };
            *c += share / DEGREES as f64 * value * (k as f64 * angle).cos();
        }
    }
    panel
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In three dimensions φ is sin x/x; in many it is nearly that of a Gaussian.
    #[test]
    fn known_means() {
        let three = SphereMean::new(3);
        for x in [1e-3, 0.4, 1.2, 1.3, 4.0, 17.3, 77.0, 140.0] {
            let found = three.at(x);
            assert!((found.plain - (x.sin() / x - 1.0)).abs() < 3e-14, "{x}: {}", found.plain);
            assert!((found.curved - found.plain - x * x / 6.0).abs() <= 1e-13 * x * x, "{x}");
        }
        assert!((three.at(1e-3).curved / (1e-12 / 120.0) - 1.0).abs() < 1e-6);
        for x in [149.0, 151.0, 1e4f64, 1e9] {
            assert!((three.at(x).plain + 1.0 - x.sin() / x).abs() < 3e-14, "{x}");
        }
        // The series and the table meet.
        for d in [2, 5, 8, 13, 16] {
            let mean = SphereMean::new(d);
            for x in [130.0, 146.0] {
                let (near, far) = (mean.at(x / mean.reach).plain + 1.0, mean.far(x / mean.reach));
                assert!((near - far).abs() < 1e-13, "{d} {x}: {near} {far}");
            }
        }
        for x in [0.1, 0.6, 0.8, 3.0, 1e3f64] {
            assert!((SphereMean::new(1).at(x).plain - (x.cos() - 1.0)).abs() < 1e-15, "{x}");
        }
        let many = SphereMean::new(10_000);
        for size in [0.1, 0.7, 0.71, 2.0, 6.0f64] {
            let found = many.at(100.0 * size).plain;
            assert!((found - (-0.5 * size * size).exp_m1()).abs() < 1e-4, "{size}: {found}");
        }
    }
}
