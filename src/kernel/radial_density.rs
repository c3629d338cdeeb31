//! The law of the radii of a kernel that is given by a density or by its values.

use std::f64::consts::PI;

use super::radial_table::{RadialTable, TableOf};
use crate::error::{Error, Result};
use crate::numeric::special::{gauss_legendre_rule, ln_gamma};
use crate::theory::sphere_mean::SphereMean;

/// The step of the first look at a density, in ln r.
const STEP: f64 = 0.125;

/// The mass that may be missing at the ends, and the one by which the integral of a density may differ from 1.
const MISSING: f64 = 1e-10;
const TAIL: f64 = 1e-5;

/// The share of the largest coefficient on a panel, and the mass on it, that are nothing.
const TOLERANCE: f64 = 1e-11;
const NEGLIGIBLE: f64 = 1e-11;

/// The widest part in the phase of an integral over the kernel, and the largest phase.
const PHASE: f64 = 16.0;
const LARGEST_PHASE: f64 = 20_000.0;

/// The octaves of distances that an integral over the kernel has panels for.
const OCTAVES: usize = 24;

/// The law of the radii whose spectral density is 𝒮 in ℝᵈ, and whose kernel is k.
///
/// # Errors
/// [`Parameter`](Error::Parameter) if 𝒮 is negative or not a number at a radius, does not integrate to 1, is not smooth, or is not the density of k.
pub fn of_density(d: usize, spectral: &dyn Fn(f64) -> f64, k: &dyn Fn(f64) -> f64) -> Result<RadialTable> {
    let dim = d as f64;
    let ln_area = 2f64.ln() + 0.5 * dim * PI.ln() - ln_gamma(0.5 * dim);
    // The area alone may overflow.
    let density = |l: f64| match spectral(l.exp()) {
        0.0 => 0.0,
        value if value > 0.0 => (ln_area + dim * l + value.ln()).exp(),
        _ => f64::NAN,
    };
    let places = (-480..=480).map(|k| f64::from(k) * STEP);
    let seen: Vec<(f64, f64)> = places.map(|l| (l, density(l))).collect();
    if let Some((l, _)) = seen.iter().find(|(_, value)| !value.is_finite()) {
        return Err(wrong(
            "the spectral density",
            spectral(l.exp()),
            "a number, at least 0, at every radius",
        ));
    }
    let ends = ends(&seen, MISSING);
    let table = TableOf {
        density: &density,
        ends,
        exponent: dim,
        tolerance: TOLERANCE,
        negligible: NEGLIGIBLE,
        halvings: 24,
    };
    let (table, mass) = RadialTable::with_mass(&table);
    if (mass - 1.0).abs() > TAIL {
        return Err(wrong("the integral of the spectral density", mass, "1"));
    }
    check_means(d, k, &table).map(|()| table)
}

/// The law of the radii of the kernel k(‖x − y‖) in ℝᵈ.
///
/// The density of r is 2^{2−d}/Γ(d/2)² r^{d−1} ∫ k(t) t^{d−1} φ(rt) dt, with the mean φ of cosines over directions.
///
/// # Errors
/// [`Parameter`](Error::Parameter) if k(0) is not 1, if k falls off too slowly, if a density is negative, so that k is not positive
/// definite in ℝᵈ, or if the law is too wide for what k is computed with.
pub fn of_kernel(d: usize, k: &dyn Fn(f64) -> f64) -> Result<RadialTable> {
    if (k(0.0) - 1.0).abs() > 1e-12 || k(0.0).is_nan() {
        return Err(wrong("the kernel at distance 0", k(0.0), "1"));
    }
    let transform = Transform::new(d, k)?;
    let mut seen = Vec::new();
    let last = (LARGEST_PHASE / transform.end).ln();
    let mut l = -40.0 / d as f64 - 3.0 - transform.end.ln();
    while l < last && transform.noise(l) < 1e-2 {
        seen.push((l, transform.density(l)));
        l += STEP;
    }
    let rounding = |l: f64| 20.0 * transform.noise(l);
    if let Some((_, value)) = seen.iter().find(|(l, value)| *value < -rounding(*l) - 1e-9) {
        return Err(wrong(
            "the spectral density",
            *value,
            "at least 0: the kernel is not positive definite in this dimension",
        ));
    }
    // Zeros between waves of the density are not its end.
    let end = seen.iter().rposition(|(l, value)| *value > rounding(*l)).map_or(0, |place| place + 1);
    seen.truncate(end + 1);
    let rest = seen.iter().rev().take(2).fold(0.0, |most: f64, (_, value)| most.max(value.abs()));
    if rest > TAIL || seen.len() < 8 {
        let domain = "at most 1e-5: the kernel is too rough, or the dimension too high, to find its radii from its values";
        return Err(wrong("the mass of radii that cannot be resolved", rest, domain));
    }
    let density = |l: f64| transform.density(l).max(0.0);
    let ends = ends(&seen, MISSING);
    let table = TableOf {
        density: &density,
        ends,
        exponent: d as f64,
        tolerance: 1e-8,
        negligible: 1e-9,
        halvings: 12,
    };
    let (table, mass) = RadialTable::with_mass(&table);
    if (mass - 1.0).abs() > 2.0 * TAIL {
        return Err(wrong("the integral of the spectral density", mass, "1"));
    }
    check_means(d, k, &table).map(|()| table)
}

/// Rejects a law that is not resolved, or whose cosines do not have the kernel as their mean, at three distances.
fn check_means(d: usize, k: &dyn Fn(f64) -> f64, table: &RadialTable) -> Result<()> {
    if table.is_full() {
        let domain = "that of a smooth density";
        return Err(wrong("the number of panels of the spectral density", f64::INFINITY, domain));
    }
    let (mean, median) = (SphereMean::new(d), table.quantile(0.5).exp());
    for distance in [0.5, 1.0, 2.0].map(|share: f64| share * (d as f64).sqrt() / median) {
        let off = table.mean_excess(&mean, distance) + 1.0 - k(distance);
        if off.is_nan() || off.abs() > 5.0 * TAIL {
            return Err(wrong("the kernel minus the mean of cosines", -off, "0 up to 5e-5"));
        }
    }
    Ok(())
}

fn wrong(name: &'static str, value: f64, domain: &'static str) -> Error {
    Error::Parameter { name, value, domain }
}

/// The ends beyond which a share of the mass is missing.
fn ends(seen: &[(f64, f64)], share: f64) -> [f64; 2] {
    let total: f64 = seen.iter().map(|(_, value)| value.max(0.0)).sum();
    let (low, high) =
        (first_beyond(seen.iter(), share * total), first_beyond(seen.iter().rev(), share * total));
    [low - STEP, high + STEP]
}

/// The first place at which the sum of the values is above this one; 0 if there is none.
fn first_beyond<'a>(seen: impl Iterator<Item = &'a (f64, f64)>, wanted: f64) -> f64 {
    let mut sum = 0.0;
    let mut above = seen.skip_while(|(_, value)| {
        sum += value.max(0.0);
        sum <= wanted
    });
    above.next().map_or(0.0, |(l, _)| *l)
}

/// The transform of a kernel into the density of ln r.
struct Transform<'a> {
    k: &'a dyn Fn(f64) -> f64,
    dim: f64,
    mean: SphereMean,
    rule: Vec<(f64, f64)>,
    /// The distance beyond which the kernel is nothing.
    end: f64,
    /// ln of the factor of the density, without r^d.
    ln_factor: f64,
    /// ∫ |k| (t/T)^{d−1} dt to the end T.
    size: f64,
}

impl<'a> Transform<'a> {
    fn new(d: usize, k: &'a dyn Fn(f64) -> f64) -> Result<Self> {
        let dim = d as f64;
        let end = end_of(k, dim)?;
        let ln_factor = (2.0 - dim) * 2f64.ln() - 2.0 * ln_gamma(0.5 * dim) + (dim - 1.0) * end.ln();
        let rule = gauss_legendre_rule(16);
        let mut transform = Transform { k, dim, mean: SphereMean::new(d), rule, end, ln_factor, size: 0.0 };
        transform.size = transform.integral(0.0, &|value, _| value.abs());
        Ok(transform)
    }

    /// The density of ln r at l.
    fn density(&self, l: f64) -> f64 {
        let r = l.exp();
        let integral = self.integral(r, &|value, t| value * (1.0 + self.mean.at(r * t).plain));
        (self.ln_factor + self.dim * l).exp() * integral
    }

    /// The rounding error of the density.
    fn noise(&self, l: f64) -> f64 {
        (self.ln_factor + self.dim * l).exp() * self.size * 2.0 * f64::EPSILON
    }

    /// The integral of a function of k(t) (t/T)^{d−1} and t, on panels that are narrow near 0 and for the phase rt.
    fn integral(&self, r: f64, f: &dyn Fn(f64, f64) -> f64) -> f64 {
        let mut sum = 0.0;
        let mut high = self.end;
        for panel in 0..=OCTAVES {
            let low = if panel == OCTAVES { 0.0 } else { 0.5 * high };
            let count = ((high - low) * r / PHASE).ceil().max(1.0);
            let half = 0.5 * (high - low) / count;
            for part in 0..count as usize {
                let middle = low + half * (2 * part + 1) as f64;
                for (x, weight) in &self.rule {
                    let t = middle + half * x;
                    sum += half * weight * f((self.k)(t) * (t / self.end).powf(self.dim - 1.0), t);
                }
            }
            high = low;
        }
        sum
    }
}

/// The distance beyond which k(t) t^d is nothing.
fn end_of(k: &dyn Fn(f64) -> f64, dim: f64) -> Result<f64> {
    let places: Vec<f64> = (-320..=320).map(|j| (f64::from(j) / 8.0).exp2()).collect();
    let sizes: Vec<f64> = places.iter().map(|t| k(*t).abs().ln() + dim * t.ln()).collect();
    if let Some(place) = places.iter().position(|t| !k(*t).is_finite()) {
        return Err(wrong("the kernel at a distance", k(places[place]), "a finite number"));
    }
    let top = sizes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let last = sizes.iter().rposition(|size| *size > top - 40.0).unwrap_or(0);
    if last + 1 >= places.len() {
        return Err(wrong(
            "the kernel at distance 2⁴⁰",
            k(places[last]),
            "almost 0: it falls off too slowly",
        ));
    }
    // A kernel that is 0 from some distance on is integrated up to there.
    let (mut low, mut high) = (places[last], places[last + 1]);
    if k(high) != 0.0 {
        return Ok(high);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if k(middle) == 0.0 { high = middle } else { low = middle }
    }
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::special::{BetaOdds, chi_quantile};

    fn close(table: &RadialTable, expected: &dyn Fn(f64) -> f64, room: f64) {
        for p in [1e-4, 0.01, 0.2, 0.5, 0.8, 0.99] {
            let (found, expected) = (table.quantile(p).exp(), expected(p));
            assert!((found / expected - 1.0).abs() < room, "{p}: {found} {expected}");
        }
    }

    /// The Gaussian kernel has radii χ_d, from its density and from its values.
    #[test]
    fn gaussian_kernels_have_radii_chi() {
        let k = |t: f64| (-0.5 * t * t).exp();
        for d in [1, 2, 3, 8, 12, 64, 512] {
            let expected = |p: f64| chi_quantile(d as f64, p);
            let density = |r: f64| (-0.5 * r * r - 0.5 * d as f64 * (2.0 * PI).ln()).exp();
            // Beyond some 1500 dimensions the density itself is below the range of numbers.
            if d < 400 {
                close(&of_density(d, &density, &k).unwrap(), &expected, 1e-7);
            }
            if d < 10 {
                close(&of_kernel(d, &k).unwrap(), &expected, 1e-5);
            }
        }
    }

    /// A kernel of two scales, and one with a kink, whose density falls off slowly.
    #[test]
    fn kernels_of_several_scales_have_their_radii() {
        let two = |t: f64| 0.5 * (-0.5 * t * t).exp() + 0.5 * (-5000.0 * t * t).exp();
        assert!(of_kernel(1, &two).is_ok());
        // The Matérn kernel of ν = ½ in two dimensions: 𝒮 = (1 + r²)^{−3/2}/(2π).
        let density = |r: f64| (-1.5 * (r * r).ln_1p()).exp() / (2.0 * PI);
        let table = of_density(2, &density, &|t: f64| (-t).exp()).unwrap();
        let expected = |p: f64| ((1.0 - p).powi(-2) - 1.0).sqrt();
        close(&table, &expected, 1e-5);
        let mean = SphereMean::new(2);
        for t in [1e-3, 0.1, 1.0, 3.0, 10.0, 50.0] {
            let found = table.mean_excess(&mean, t) + 1.0;
            assert!((found - (-t).exp()).abs() < 2e-5, "{t}: {found}");
        }
    }

    /// The Matérn kernel of ν = 5/2 has radii of Fisher's law.
    #[test]
    fn matern_kernels_have_their_radii() {
        let k = |t: f64| {
            let t = 5f64.sqrt() * t;
            (1.0 + t + t * t / 3.0) * (-t).exp()
        };
        let expected = |p: f64| 5f64.sqrt() * (0.5 * BetaOdds::new(1.5, 2.5).quantile(p)).exp();
        close(&of_kernel(3, &k).unwrap(), &expected, 1e-4);
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        let refused = |d: usize, k: &dyn Fn(f64) -> f64| match of_kernel(d, k) {
            Err(Error::Parameter { name, domain, .. }) => format!("{name}, {domain}"),
            other => panic!("{other:?}"),
        };
        let ball = |t: f64| if t < 1.0 { 1.0 } else { 0.0 };
        assert!(refused(2, &ball).contains("not positive definite in this dimension"));
        // Askey's function needs an exponent of two in two dimensions and more.
        let askey = |t: f64| (1.0 - t).max(0.0);
        assert!(refused(3, &askey).contains("not positive definite in this dimension"));
        assert!(refused(2, &|_| 0.9).starts_with("the kernel at distance 0"));
        assert!(refused(2, &|_| 1.0).contains("too slowly"));
        assert!(refused(1, &|t: f64| (-t).exp()).contains("too rough"));
        let gaussian = |t: f64| (-0.5 * t * t).exp();
        assert!(of_density(2, &|r: f64| (-r).exp(), &gaussian).is_err());
        assert!(of_density(2, &|r: f64| 1.0 - r, &gaussian).is_err());
        assert!(of_density(2, &|_| f64::NAN, &gaussian).is_err());
        // A density of another kernel.
        let density = |r: f64| (-0.5 * r * r).exp() / (2.0 * PI);
        assert!(of_density(2, &density, &|t: f64| (-t * t).exp()).is_err());
        // One with noise has no end of panels.
        let noisy = |r: f64| density(r) * (1.0 + 0.01 * (1e9 * r).sin());
        assert!(of_density(2, &noisy, &gaussian).is_err());
    }
}
