//! The radii of the rational quadratic kernel: r = χ_d √τ with a gamma-distributed τ of shape α and mean 1.
//!
//! Let u = ln τ, w = 2 ln r − ln d − u, and E(v) = eᵛ − 1 − v. The density of ln r is proportional to ∫ exp(−α E(u) − ½d E(w)) du.
//! The exponent is concave in u, and the trapezoidal rule around its top is exact up to rounding. Source: new.

use std::sync::Arc;

use super::gamma_mixture::{NEGLIGIBLE, exp_excess};
use super::radial_table::{RadialTable, TableOf};
use crate::kept::Kept;

/// The least ln r of a table. If the tail goes on below, it is a power of r there up to rounding.
const LEAST: f64 = -100.0;

/// ln of the density, relative to the largest, at the ends of a table.
const AT_ENDS: f64 = -75.0;

/// Which table is meant: the bits of α, and d.
type Key = (u64, usize);

/// The tables that were asked for last.
static KEPT: Kept<Key, Arc<RadialTable>> = Kept::new(KEPT_TABLES);

/// The number of tables that are kept.
const KEPT_TABLES: usize = 16;

/// The distribution of the radii in dimension d ≥ 1.
pub fn table(alpha: f64, d: usize) -> Arc<RadialTable> {
    KEPT.get((alpha.to_bits(), d), || Arc::new(GammaRadii { alpha, half: 0.5 * d as f64 }.table()))
}

struct GammaRadii {
    alpha: f64,
    /// d/2.
    half: f64,
}

impl GammaRadii {
    /// ln of a multiple of the density of ln r at l.
    fn ln_density(&self, l: f64) -> f64 {
        let twice = 2.0 * l - (2.0 * self.half).ln();
        let u = self.top(twice);
        let w = twice - u;
        let (of_weight, of_radius) = (self.alpha * u.exp(), self.half * w.exp());
        let below = |v: f64| -of_weight * exp_excess(v) - of_radius * exp_excess(-v);
        let step = 0.15f64.min(0.55 / (of_weight + of_radius).sqrt());
        let side = |sign: f64| -> f64 {
            let terms = (1..).map(|k: i32| below(sign * f64::from(k) * step));
            terms.take_while(|below| *below > -NEGLIGIBLE).map(f64::exp).sum()
        };
        let sum = step * (1.0 + side(1.0) + side(-1.0));
        -self.alpha * exp_excess(u) - self.half * exp_excess(w) + sum.ln()
    }

    /// u at the top of the exponent: α(eᵘ − 1) = ½d(eʷ − 1) with u + w = `twice`.
    fn top(&self, twice: f64) -> f64 {
        let (alpha, half) = (self.alpha, self.half);
        // With G = eᵘ: αG² − (α − ½d)G − ½d e^{u + w} = 0.
        let (gap, product) = (alpha - half, half * twice.exp());
        let root = gap.hypot(2.0 * (alpha * product).sqrt());
        let g = if gap >= 0.0 { 0.5 * (gap + root) / alpha } else { 2.0 * product / (root - gap) };
        // Near 1 from G − 1, which is small beside G.
        let excess = 2.0 * half * twice.exp_m1() / (alpha + half + root);
        if excess.abs() < 0.5 { excess.ln_1p() } else { g.ln() }
    }

    fn table(&self) -> RadialTable {
        let mode = self.mode();
        let top = self.ln_density(mode);
        let below = |l: f64| self.ln_density(l) - top;
        let end = |sign: f64| {
            let mut step = 0.1;
            while below(mode + sign * step) > AT_ENDS && mode + sign * step > LEAST {
                step *= 2.0;
            }
            let (mut near, mut far) = (0.0, step);
            for _ in 0..30 {
                let middle = 0.5 * (near + far);
                if below(mode + sign * middle) > AT_ENDS { near = middle } else { far = middle }
            }
            mode + sign * far
        };
        let low = end(-1.0).max(LEAST);
        let exponent = (2.0 * self.alpha).min(2.0 * self.half);
        let density = |l: f64| below(l).exp();
        RadialTable::new(&TableOf {
            density: &density,
            ends: [low, end(1.0)],
            exponent,
            tolerance: 1e-12,
            negligible: 0.0,
            halvings: 10,
        })
    }

    /// ln r at which the density of ln r is largest. Its logarithm is concave.
    fn mode(&self) -> f64 {
        let (mut low, mut high) = (LEAST, 0.5 * (2.0 * self.half).ln() + 5.0);
        while high - low > 1e-3 {
            let third = (high - low) / 3.0;
            let (first, second) = (low + third, high - third);
            if self.ln_density(first) < self.ln_density(second) { low = first } else { high = second }
        }
        0.5 * (low + high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::special::chi_quantile;

    /// α, d, r, and the probabilities below and above r to 17 digits: means over τ of incomplete gamma functions, from
    /// arbitrary-precision arithmetic.
    #[allow(clippy::excessive_precision)]
    const REFERENCE: [(f64, usize, f64, f64, f64); 13] = [
        (0.5, 3, 0.01, 0.0063656083749037248, 0.99363439162509628),
        (0.5, 3, 1.0, 0.52297385496135912, 0.47702614503864088),
        (0.5, 3, 12.0, 0.99998183720409771, 1.8162795902286833e-5),
        (2.0, 8, 0.1, 8.2788648714714572e-6, 0.99999172113512853),
        (2.0, 8, 2.5, 0.53139991082580848, 0.46860008917419152),
        (2.0, 8, 20.0, 0.99999999999894505, 1.0549473479970423e-12),
        (30.0, 64, 8.0, 0.54215105118786195, 0.45784894881213805),
        (30.0, 64, 13.0, 0.99998959474583765, 1.0405254162352628e-5),
        (1000.0, 3, 0.01, 2.6645298558854547e-7, 0.99999973354701441),
        (1000.0, 3, 5.0, 0.99998361632011417, 1.6383679885830064e-5),
        (0.3, 1, 0.001, 0.025039186515410281, 0.97496081348458972),
        (1.5, 1000, 3.0, 0.0011747962371856215, 0.99882520376281438),
        (1.5, 1000, 60.0, 0.98695717701011587, 0.013042822989884135),
    ];

    #[test]
    fn reference_values() {
        for (alpha, d, r, lower, upper) in REFERENCE {
            let table = table(alpha, d);
            // Where a probability is near 1, its rounding moves the radius.
            let p = if lower < 0.9 { lower } else { 1.0 - upper };
            let found = table.quantile(p).exp();
            let room = if lower < 0.9 { 3e-13 } else { 1e-13 + f64::EPSILON / upper };
            assert!((found / r - 1.0).abs() < room, "{alpha} {d} {r}: {found}");
        }
    }

    /// For d = 2 it is a known product: ½r² is exponential times τ, so that P(r² > s) is a mean of e^{−s/(2τ)}, the Matérn kernel
    /// of smoothness α. For α = ½ that is e^{−√s}.
    #[test]
    fn quantiles_in_the_plane_are_those_of_a_kernel() {
        for p in [2f64.powi(-64), 1e-15, 1e-6, 0.1, 0.5, 0.7, 0.999, 1.0 - 1e-12, 1.0 - 0.5 * f64::EPSILON] {
            let found = table(0.5, 2).quantile(p).exp();
            let ln_upper = if p > 0.5 { (1.0 - p).ln() } else { (-p).ln_1p() };
            assert!((found / -ln_upper - 1.0).abs() < 1e-12, "{p}: {found} {}", -ln_upper);
        }
    }

    /// Many degrees are nearly normal vectors, and few reach far below what numbers can hold.
    #[test]
    fn ends_of_the_domain() {
        for d in [1, 2, 8, 1000] {
            for p in [1e-15, 0.3, 0.9] {
                let (found, normal) = (table(1e12, d).quantile(p), chi_quantile(d as f64, p).ln());
                assert!((found - normal).abs() < 1e-10, "{d} {p}: {found} {normal}");
            }
            let tiny = table(1e-3, d);
            let all: Vec<f64> = (1..1000).map(|k| tiny.quantile(f64::from(k) / 1000.0)).collect();
            assert!(all.is_sorted_by(|a, b| a < b) && all.iter().all(|l| l.is_finite()), "{d}");
            // The lower tail is a power of the exponent 2α.
            let slope = (tiny.quantile(1e-9) - tiny.quantile(1e-12)) * 2e-3 / 1e3f64.ln();
            assert!((slope - 1.0).abs() < 1e-9, "{d}: {slope}");
        }
    }
}
