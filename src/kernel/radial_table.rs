//! The distribution of a radius, as polynomials on panels of ln r.

use crate::numeric::special::gauss_legendre_rule;
use crate::theory::sphere_mean::SphereMean;

/// The number of coefficients on a panel.
const DEGREES: usize = 20;

/// The most panels.
const MOST_PANELS: usize = 4096;

/// The widest part of a mean of cosines in their phase, and the most parts of a panel.
const WAVE: f64 = 10.0;
const MOST_PARTS: f64 = 256.0;

/// The distribution of ln r between two ends, from its density.
#[derive(Debug)]
pub(crate) struct RadialTable {
    /// The ends of the panels.
    edges: Vec<f64>,
    /// The probabilities below and above each edge.
    below: Vec<f64>,
    above: Vec<f64>,
    /// The density on each panel: coefficients of Legendre polynomials of the place from −1 to 1.
    panels: Vec<Legendre>,
    /// The exponent s of the lower tail: the probability below the first edge is proportional to r^s.
    exponent: f64,
}

/// A density on a panel.
type Legendre = [f64; DEGREES];

/// What a table is made of.
pub(crate) struct TableOf<'a> {
    /// A multiple of the density of ln r.
    pub density: &'a dyn Fn(f64) -> f64,
    /// The ends of the table: almost all of the law lies between them.
    pub ends: [f64; 2],
    /// The exponent of the lower tail, beyond the table.
    pub exponent: f64,
    /// The share of the largest coefficient on a panel below which a last coefficient is nothing.
    pub tolerance: f64,
    /// A mass that is nothing.
    pub negligible: f64,
    /// The most times that a panel is halved.
    pub halvings: usize,
}

impl RadialTable {
    /// The law whose density is proportional to this one.
    pub fn new(of: &TableOf<'_>) -> Self {
        RadialTable::with_mass(of).0
    }

    /// The law whose density is proportional to this one, and the integral of this one.
    pub fn with_mass(of: &TableOf<'_>) -> (Self, f64) {
        let rule = gauss_legendre_rule(DEGREES);
        let (low, high) = (of.ends[0], of.ends[1]);
        let count = (high - low).ceil().max(1.0);
        let mut halved = Halved { of, rule, edges: vec![low], panels: Vec::new() };
        (0..count as usize).for_each(|k| {
            let at = |k: usize| low + (high - low) * k as f64 / count;
            halved.add(at(k), at(k + 1), of.halvings);
        });
        RadialTable::of_panels(halved, (of.density)(low) / of.exponent)
    }

    fn of_panels(halved: Halved<'_>, first: f64) -> (Self, f64) {
        let Halved { of, edges, mut panels, .. } = halved;
        let masses: Vec<f64> =
            panels.iter().zip(edges.windows(2)).map(|(panel, edge)| panel[0] * (edge[1] - edge[0])).collect();
        let sums = |masses: &mut dyn Iterator<Item = &f64>, first: f64| {
            let mut sum = first;
            std::iter::once(first)
                .chain(masses.map(|mass| {
                    sum += mass;
                    sum
                }))
                .collect::<Vec<f64>>()
        };
        let mut below = sums(&mut masses.iter(), first);
        let mut above = sums(&mut masses.iter().rev(), 0.0);
        above.reverse();
        let total = first + above[0];
        below.iter_mut().chain(&mut above).chain(panels.iter_mut().flatten()).for_each(|v| *v /= total);
        (RadialTable { edges, below, above, panels, exponent: of.exponent }, total)
    }

    /// The mean of φ(tr) − 1 over the law, for the mean φ of cosines over directions and a distance t.
    ///
    /// Panels are divided where φ has many waves on them. Where it has hundreds its mean is nothing.
    pub fn mean_excess(&self, mean: &SphereMean, distance: f64) -> f64 {
        let rule = gauss_legendre_rule(DEGREES);
        let of_panel = |(panel, edge): (&Legendre, &[f64])| {
            let (low, width) = (edge[0], edge[1] - edge[0]);
            let parts = (distance * (edge[1].exp() - edge[0].exp()) / WAVE).ceil().max(1.0);
            if parts > MOST_PARTS {
                return -panel[0] * width;
            }
            let half = parts.recip();
            let part = |k: usize| {
                let middle = (2 * k + 1) as f64 * half - 1.0;
                let at = |(x, weight): &(f64, f64)| {
                    let place = middle + half * x;
                    let r = (low + 0.5 * width * (1.0 + place)).exp();
                    weight * density_and_integral(panel, place).0 * mean.at(distance * r).plain
                };
                rule.iter().map(at).sum::<f64>()
            };
            0.5 * width * half * (0..parts as usize).map(part).sum::<f64>()
        };
        self.panels.iter().zip(self.edges.windows(2)).map(of_panel).sum()
    }

    /// Whether the density took as many panels as there may be, so that it may not be resolved.
    pub fn is_full(&self) -> bool {
        self.panels.len() >= MOST_PANELS
    }

    /// ln of the radius with probability `p` below it, strictly between 0 and 1.
    pub fn quantile(&self, p: f64) -> f64 {
        if p < self.below[0] {
            return self.edges[0] + (p / self.below[0]).ln() / self.exponent;
        }
        let lower = p <= 0.5;
        // Probabilities from the nearer end, to which errors are relative.
        let panel = if lower {
            self.below.partition_point(|below| *below <= p)
        } else {
            self.above.partition_point(|above| *above > 1.0 - p)
        };
        let panel = panel.clamp(1, self.panels.len()) - 1;
        let width = self.edges[panel + 1] - self.edges[panel];
        let wanted = if lower { p - self.below[panel] } else { self.above[panel] - (1.0 - p) };
        let place = inverse(&self.panels[panel], 2.0 * wanted / width);
        self.edges[panel] + 0.5 * width * (1.0 + place)
    }
}

/// Panels that are halved until a polynomial describes the density on each.
struct Halved<'a> {
    of: &'a TableOf<'a>,
    rule: Vec<(f64, f64)>,
    edges: Vec<f64>,
    panels: Vec<Legendre>,
}

impl Halved<'_> {
    fn add(&mut self, low: f64, high: f64, left: usize) {
        let panel = self.coefficients(low, high);
        let largest = panel.iter().fold(0.0, |most: f64, c| most.max(c.abs()));
        let last = panel[DEGREES - 1].abs().max(panel[DEGREES - 2].abs());
        let resolved = last <= self.of.tolerance * largest || last * (high - low) <= self.of.negligible;
        if left == 0 || resolved || self.panels.len() >= MOST_PANELS {
            self.edges.push(high);
            self.panels.push(panel);
        } else {
            let middle = 0.5 * (low + high);
            self.add(low, middle, left - 1);
            self.add(middle, high, left - 1);
        }
    }

    fn coefficients(&self, low: f64, high: f64) -> Legendre {
        let mut panel = [0.0; DEGREES];
        for (x, weight) in &self.rule {
            let value = weight * (self.of.density)(0.5 * (low + high + x * (high - low)));
            let mut polynomials = Polynomials::new(*x);
            for (k, c) in panel.iter_mut().enumerate() {
                *c += (k as f64 + 0.5) * value * polynomials.step();
            }
        }
        panel
    }
}

/// The Legendre polynomials at a place, one after the other.
struct Polynomials {
    x: f64,
    degree: f64,
    this: f64,
    next: f64,
}

impl Polynomials {
    fn new(x: f64) -> Self {
        Polynomials { x, degree: 0.0, this: 1.0, next: x }
    }

    fn step(&mut self) -> f64 {
        let this = self.this;
        self.degree += 1.0;
        let n = self.degree;
        (self.this, self.next) =
            (self.next, ((2.0 * n + 1.0) * self.x * self.next - n * self.this) / (n + 1.0));
        this
    }
}

/// The density at a place and its integral from −1.
fn density_and_integral(panel: &Legendre, x: f64) -> (f64, f64) {
    let mut polynomials = Polynomials::new(x);
    let (mut before, mut this) = (1.0, polynomials.step());
    let (mut density, mut integral) = (0.0, 0.0);
    for (k, c) in panel.iter().enumerate() {
        let next = polynomials.step();
        density += c * this;
        // ∫ P_k = (P_{k+1} − P_{k−1})/(2k + 1); for k = 0 it is x + 1.
        integral += c * if k == 0 { 1.0 + x } else { (next - before) / (2.0 * k as f64 + 1.0) };
        (before, this) = (this, next);
    }
    (density, integral)
}

/// The place below which the integral of a density is `wanted`, by Newton's method between two places that enclose it.
fn inverse(panel: &Legendre, wanted: f64) -> f64 {
    let (mut low, mut high) = (-1.0, 1.0);
    let mut x = (wanted / panel[0] - 1.0).clamp(-1.0, 1.0);
    for _ in 0..60 {
        let (density, integral) = density_and_integral(panel, x);
        if integral < wanted {
            low = x
        } else {
            high = x
        }
        let newton = x + (wanted - integral) / density;
        let next = if (low..=high).contains(&newton) { newton } else { 0.5 * (low + high) };
        let step = (next - x).abs();
        x = next;
        if step < 1e-15 {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::special::{chi_quantile, chi_tails};

    fn chi(d: f64) -> RadialTable {
        let density = |l: f64| (d * (l - 0.5 * d.ln()) - 0.5 * ((2.0 * l).exp() - d)).exp();
        let ends = [chi_quantile(d, 1e-32).ln(), (chi_quantile(d, 1.0 - 1e-16) + 4.0).ln()];
        RadialTable::new(&TableOf {
            density: &density,
            ends,
            exponent: d,
            tolerance: 1e-14,
            negligible: 0.0,
            halvings: 10,
        })
    }

    #[test]
    fn radii_of_normal_vectors_have_their_quantiles() {
        for d in [1.0, 2.0, 3.0, 8.0, 64.0, 1000.0] {
            let table = chi(d);
            for p in
                [2f64.powi(-64), 1e-12, 1e-3, 0.2, 0.5, 0.5000001, 0.9, 1.0 - 1e-9, 1.0 - 0.5 * f64::EPSILON]
            {
                let found = table.quantile(p).exp();
                let expected = chi_quantile(d, p);
                assert!((found / expected - 1.0).abs() < 1e-13, "{d} {p}: {found} {expected}");
                let (below, above) = chi_tails(d, found);
                let ratio = if p < 0.5 { below / p } else { above / (1.0 - p) };
                assert!((ratio - 1.0).abs() < 1e-12 * (1.0 + d / 10.0), "{d} {p}: {ratio}");
            }
        }
    }

    /// Below the table the tail is a power.
    #[test]
    fn tiny_probabilities_follow_the_power() {
        let table = chi(2.0);
        let found = table.quantile(1e-60).exp();
        assert!((found / 2f64.sqrt() / 1e-30 - 1.0).abs() < 1e-9, "{found}");
    }
}
