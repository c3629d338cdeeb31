//! What coupled radii change in the sums over the pairs of a block.
//!
//! Two rows of a block have radii r and s and directions at an angle with cosine g. Let t = (r² + s² + 2grs)/d. The mean over
//! rotations of the product of their features is ₀F₁(; d/2; u d t/4) with u = ‖x + y‖² for positive and hyperbolic features. It is
//! ₀F₁(; d/2; −u d t/4) with u = ‖x − y‖² for trigonometric ones. Features that are even in ω have the mean over ±g.
//!
//! Coupled radii change the law of t alone. [`PairChange`] holds the change, summed over the ordered pairs of a block, as a
//! signed measure. Its some two hundred nodes t with their weights serve all points.
//!
//! Source: new; antithetic radii: Reid, Markou, Choromanski, Turner, Weller, *Variance-Reducing Couplings for Random Features*.

use std::f64::consts::PI;
use std::sync::Arc;

use super::conformity::angle_law;
use super::law::{CoupledAngle, RadiusCoupling};
use crate::SignedLog;
use crate::kept::Kept;
use crate::numeric::special::{chi_quantile, chi_tails, gauss_legendre_rule, ln_0f1};

/// The change of a block's pair sum when its radii are coupled, as a measure of t = (r² + s² ± 2grs)/d.
#[derive(Debug)]
pub(super) struct PairChange {
    /// d, the dimension of the points.
    dim: f64,
    /// Nodes t and their weights. The weights add up to 0.
    nodes: Vec<(f64, f64)>,
    /// The mean of t under the measure, which is that of ±2grs/d.
    tilt: f64,
    /// Nodes of the cosine of the angle between ω and x − y, with weights: few and many.
    angles: [Vec<QuadratureNode>; 2],
}

/// Which change is meant: d, the number of rows, the coupling, and whether features are even in ω.
type Key = (usize, usize, CoupledAngle, bool);

/// The changes that were asked for last.
static KEPT: Kept<Key, Arc<PairChange>> = Kept::new(KEPT_CHANGES);

/// The number of changes that are kept.
const KEPT_CHANGES: usize = 64;

/// The most rows of a block, and the largest dimension: beyond, nodes would take seconds. Systematic radii take some hundred
/// quantiles for each row.
const MOST: usize = 1 << 16;
const MOST_SYSTEMATIC: usize = 1024;

/// The largest argument up to which sums are power series without their first two terms, which cancel.
const NEAR: f64 = 9.0;

/// The largest ‖x + y‖² at which the change counts: beyond it is below the rounding error of the other terms.
const LARGEST_SUM: f64 = 64.0;

/// The numbers of nodes of the angle, and the largest phase that they resolve.
const ANGLES: [(usize, f64); 2] = [(56, 50.0), (128, 150.0)];

impl PairChange {
    /// The change for a block of `size` rows in ℝᵈ; `None` where it is not known. `even` says that features are even in ω.
    pub fn of(d: usize, size: usize, own: CoupledAngle, even: bool) -> Option<Arc<Self>> {
        let most = if own.radii == RadiusCoupling::Systematic { MOST_SYSTEMATIC } else { MOST };
        if !(2..=MOST).contains(&d) || size > most {
            return None;
        }
        let new = || Arc::new(PairChange::new(d, size, own, even));
        Some(KEPT.get((d, size, own, even), new))
    }

    fn new(d: usize, size: usize, own: CoupledAngle, even: bool) -> Self {
        let (n, law) = (d as f64, ChiRadii::new(d));
        let reach = |r: f64, sign: f64| (2.0 * r * r * (1.0 + sign * own.cos.abs()) / n).sqrt();
        let mut panels = PanelMeasure::new(reach(law.least, -1.0), reach(law.most, 1.0));
        let mut tilt = 0.0;
        law.change(size, own.radii, &mut |r, s, weight| {
            let (squares, product) = ((r * r + s * s) / n, 2.0 * own.cos * r * s / n);
            let at = |t: f64| t.max(0.0).sqrt();
            if even && own.cos != 0.0 {
                panels.add(at(squares + product), 0.5 * weight);
                panels.add(at(squares - product), 0.5 * weight);
            } else {
                panels.add(at(squares + product), weight);
                tilt += if even { 0.0 } else { weight * product };
            }
        });
        let largest = panels.nodes().fold(0.0, |most: f64, (_, weight)| most.max(weight.abs()));
        let counts = |(_, weight): &(f64, f64)| weight.abs() > 1e-17 * largest;
        let nodes = panels.nodes().filter(counts).map(|(x, weight)| (x * x, weight)).collect();
        PairChange { dim: n, nodes, tilt, angles: ANGLES.map(|(count, _)| angle_law(d, count)) }
    }

    /// The change for positive and hyperbolic features at ‖x + y‖² = `v2`, relative to e^{v2}.
    pub fn exponential(&self, v2: f64) -> SignedLog {
        if v2 > LARGEST_SUM {
            return SignedLog::from(0.0);
        }
        if v2 <= NEAR {
            return SignedLog::from(self.series(v2)).scaled(-v2);
        }
        let term = |t: f64| (ln_0f1(0.5 * self.dim, 0.25 * v2 * self.dim * t) - v2).exp();
        SignedLog::from(self.nodes.iter().map(|(t, weight)| weight * term(*t)).sum::<f64>())
    }

    /// The change for trigonometric features at ‖x − y‖² = `z2`; `None` far beyond where features resolve distances.
    pub fn trigonometric(&self, z2: f64) -> Option<f64> {
        if z2 <= NEAR {
            return Some(self.series(-z2));
        }
        let phase = |t: f64| (z2 * self.dim * t).sqrt();
        let largest = self.nodes.iter().map(|(t, _)| phase(*t)).fold(0.0, f64::max);
        let reach = |angles: &[QuadratureNode]| angles.iter().map(|(cos, _)| *cos).fold(0.0, f64::max);
        let (angles, _) =
            self.angles.iter().zip(ANGLES).find(|(angles, (_, most))| largest * reach(angles) <= *most)?;
        let mean = |t: f64| angles.iter().map(|(cos, weight)| weight * (phase(t) * cos).cos()).sum::<f64>();
        Some(self.nodes.iter().map(|(t, weight)| weight * mean(*t)).sum())
    }

    /// ∫ ₀F₁(; d/2; u d t/4) by its power series: the term of 1 vanishes, and that of t is known.
    fn series(&self, u: f64) -> f64 {
        let half = 0.5 * self.dim;
        let term = |t: f64| {
            let z = 0.25 * u * self.dim * t;
            let (mut term, mut sum, mut k) = (z / half, 0.0, 1.0);
            loop {
                term *= z / ((half + k) * (k + 1.0));
                sum += term;
                k += 1.0;
                if term.abs() <= 1e-18 * f64::abs(sum) {
                    return sum;
                }
            }
        };
        let curved: f64 = self.nodes.iter().map(|(t, weight)| weight * term(*t)).sum();
        curved + 0.5 * u * self.tilt
    }
}

/// The χ distribution as quadrature nodes.
struct ChiRadii {
    dim: f64,
    /// The radii between which all but 1e-16 of the law lies.
    least: f64,
    most: f64,
}

/// A node x of a quadrature, with its weight w: (x, w).
type QuadratureNode = (f64, f64);

/// A function of two radii and the weight of this pair.
type RadiusPairVisitor<'a> = dyn FnMut(f64, f64, f64) + 'a;

/// The probabilities that are left out below the least radius and above the largest one.
const LOWER: f64 = 1e-17;
const UPPER: f64 = 0.5 * f64::EPSILON;

/// The numbers of nodes: in a stratum at an end of the law, in another one of few or of many, and along a line.
const AT_ENDS: usize = 64;
const OF_FEW: usize = 24;
const OF_MANY: usize = 10;
const ALONG: usize = 96;

impl ChiRadii {
    fn new(d: usize) -> Self {
        let dim = d as f64;
        ChiRadii { dim, least: chi_quantile(dim, LOWER), most: chi_quantile(dim, 1.0 - UPPER) }
    }

    /// q(p) within the range.
    fn quantile(&self, p: f64) -> f64 {
        if p <= LOWER {
            self.least
        } else if p >= 1.0 - UPPER {
            self.most
        } else {
            chi_quantile(self.dim, p)
        }
    }

    /// Nodes between two radii, with weights that add up to the probability `mass` of the interval.
    fn between(&self, low: f64, high: f64, mass: f64, count: usize) -> Vec<QuadratureNode> {
        let ln_density = |r: f64| (self.dim - 1.0) * r.ln() - 0.5 * r * r;
        // The density is largest at its mode, or at the end next to it.
        let top = ln_density((self.dim - 1.0).sqrt().clamp(low, high));
        let node = |(x, w): (f64, f64)| {
            let r = 0.5 * (low + high + x * (high - low));
            (r, w * (ln_density(r) - top).exp())
        };
        let mut nodes: Vec<QuadratureNode> = gauss_legendre_rule(count).into_iter().map(node).collect();
        let total: f64 = nodes.iter().map(|(_, w)| w).sum();
        nodes.iter_mut().for_each(|(_, w)| *w *= mass / total);
        nodes
    }

    /// Visits pairs of radii with weights: the joint law of the ordered pairs of a block with coupled radii, minus that with
    /// independent ones.
    fn change(&self, size: usize, radii: RadiusCoupling, visit: &mut RadiusPairVisitor<'_>) {
        let (b, half) = (size as f64, size / 2);
        let whole = self.between(self.least, self.most, 1.0, 2 * ALONG);
        match radii {
            RadiusCoupling::Antithetic => {
                products(&whole, &whole, -2.0 * half as f64, visit);
                self.opposite(0.5, 4.0 * half as f64, visit);
            }
            RadiusCoupling::Systematic => {
                products(&whole, &whole, -b * (b - 1.0), visit);
                (1..size).for_each(|j| self.shifted(j as f64 / b, 2.0 * b, visit));
            }
            // A block by itself is a whole draw.
            RadiusCoupling::Stratified | RadiusCoupling::Paired | RadiusCoupling::Overall => {
                products(&whole, &whole, b, visit);
                let strata = self.strata(size);
                strata.iter().for_each(|own| products(own, own, -b * b, visit));
                if radii == RadiusCoupling::Paired {
                    let pairs = strata.iter().zip(strata.iter().rev()).take(half);
                    pairs.for_each(|(low, high)| products(low, high, -2.0 * b * b, visit));
                    self.opposite(half as f64 / b, 2.0 * b, visit);
                }
            }
        }
    }

    /// The nodes of each of `size` strata.
    fn strata(&self, size: usize) -> Vec<Vec<QuadratureNode>> {
        let inner = if size <= 16 { OF_FEW } else { OF_MANY };
        let edge = |a: usize| self.quantile(a as f64 / size as f64);
        let count = |a: usize| if a == 0 || a + 1 == size { AT_ENDS } else { inner };
        (0..size).map(|a| self.between(edge(a), edge(a + 1), (size as f64).recip(), count(a))).collect()
    }

    /// Visits q(p) and q(1 − p) for p from 0 to `end`, with this weight times dp. The nodes are upper radii: the lower radius is a
    /// smooth function of them, but they are singular where the lower radius is 0.
    fn opposite(&self, end: f64, weight: f64, visit: &mut RadiusPairVisitor<'_>) {
        for (s, w) in self.between(self.quantile(1.0 - end), self.most, end, ALONG) {
            visit(self.quantile(chi_tails(self.dim, s).1), s, weight * w);
        }
    }

    /// Visits q(p) and q(p + shift) for all p, with this weight times dp. The nodes are lower radii in the lower half and upper
    /// radii in the other, since each has its tail there.
    fn shifted(&self, shift: f64, weight: f64, visit: &mut RadiusPairVisitor<'_>) {
        let middle = 0.5 * (1.0 - shift);
        for (r, w) in self.between(self.least, self.quantile(middle), middle, ALONG) {
            visit(r, self.quantile(chi_tails(self.dim, r).0 + shift), weight * w);
        }
        for (s, w) in self.between(self.quantile(middle + shift), self.most, middle, ALONG) {
            visit(self.quantile(chi_tails(self.dim, s).0 - shift), s, weight * w);
        }
    }
}

/// Visits all pairs of nodes of two independent radii.
fn products(
    first: &[QuadratureNode],
    second: &[QuadratureNode],
    weight: f64,
    visit: &mut RadiusPairVisitor<'_>,
) {
    for (r, v) in first {
        second.iter().for_each(|(s, w)| visit(*r, *s, weight * v * w));
    }
}

/// A measure on an interval, held by weights at Chebyshev's points of panels: integrals of polynomials of degree below
/// [`POINTS`] over a panel are exact.
struct PanelMeasure {
    low: f64,
    width: f64,
    /// Chebyshev's points on \[−1, 1\] and their weights in barycentric interpolation.
    points: [(f64, f64); POINTS],
    weights: Vec<[f64; POINTS]>,
}

const PANELS: usize = 16;
const POINTS: usize = 16;

/// Chebyshev's point i on \[−1, 1\] and its weight in barycentric interpolation.
fn point(i: usize) -> (f64, f64) {
    let angle = PI * (i as f64 + 0.5) / POINTS as f64;
    (angle.cos(), if i.is_multiple_of(2) { angle.sin() } else { -angle.sin() })
}

impl PanelMeasure {
    fn new(low: f64, high: f64) -> Self {
        let (width, points) = ((high - low) / PANELS as f64, std::array::from_fn(point));
        PanelMeasure { low, width, points, weights: vec![[0.0; POINTS]; PANELS] }
    }

    /// The place of a panel's point.
    fn place(&self, panel: usize, x: f64) -> f64 {
        self.low + self.width * (panel as f64 + 0.5 * (1.0 + x))
    }

    /// Adds a mass at x.
    fn add(&mut self, x: f64, mass: f64) {
        let place = (x - self.low) / self.width;
        let panel = (place.max(0.0) as usize).min(PANELS - 1);
        let x = 2.0 * (place - panel as f64) - 1.0;
        let mut parts = self.points.map(|(node, weight)| weight / (x - node));
        if let Some(i) = parts.iter().position(|part| part.is_infinite()) {
            parts = std::array::from_fn(|k| f64::from(u8::from(k == i)));
        }
        let total: f64 = parts.iter().sum();
        self.weights[panel].iter_mut().zip(parts).for_each(|(own, part)| *own += mass * part / total);
    }

    /// All points with their weights.
    fn nodes(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let of = move |(panel, weights): (usize, &'_ [f64; POINTS])| {
            let weights = *weights;
            (0..POINTS).map(move |i| (self.place(panel, self.points[i].0), weights[i]))
        };
        self.weights.iter().enumerate().flat_map(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The change moves no mass and no mean square of a radius, and the tilt is the mean of t under the measure.
    #[test]
    fn rows_keep_their_law() {
        for radii in RadiusCoupling::ALL {
            for (d, size) in [(2, 2), (3, 3), (8, 5), (8, 8), (64, 40), (700, 300)] {
                for (cos, even) in
                    [(0.0, true), (-1.0 / (d as f64 - 1.0), true), (-1.0 / (d as f64 - 1.0), false)]
                {
                    let change = PairChange::of(d, size, CoupledAngle { cos, radii }, even).unwrap();
                    let sum =
                        |f: &dyn Fn(f64) -> f64| change.nodes.iter().map(|(t, w)| w * f(*t)).sum::<f64>();
                    let size = sum(&|_| 1.0).abs() + change.nodes.iter().map(|(_, w)| w.abs()).sum::<f64>();
                    assert!(sum(&|_| 1.0).abs() < 1e-12 * size, "{radii:?}, d = {d}");
                    assert!((sum(&|t| t) - change.tilt).abs() < 1e-11 * size, "{radii:?}, d = {d}");
                    assert_eq!(even, change.tilt == 0.0);
                }
            }
        }
    }

    /// Squares of the radii of a block are negatively correlated: their covariance shows in the mean of t², since
    /// t² = (r⁴ + s⁴ + 2r²s²)/d² for orthogonal directions.
    #[test]
    fn squared_radii_are_negatively_correlated() {
        for radii in RadiusCoupling::ALL {
            let change = PairChange::of(8, 8, CoupledAngle { cos: 0.0, radii }, true).unwrap();
            let covariance: f64 = change.nodes.iter().map(|(t, w)| 32.0 * w * t * t).sum();
            // The sum over pairs is at least minus the sum of the variances, 8 · 2d.
            assert!((-128.0..-90.0).contains(&covariance), "{radii:?}: {covariance}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        let own = |radii| CoupledAngle { cos: 0.0, radii };
        assert!(PairChange::of(1, 4, own(RadiusCoupling::Paired), true).is_none());
        assert!(PairChange::of(5000, 5000, own(RadiusCoupling::Systematic), true).is_none());
        for radii in RadiusCoupling::ALL {
            assert!(PairChange::of(8, usize::MAX, own(radii), true).is_none());
            assert!(PairChange::of(usize::MAX, 8, own(radii), true).is_none());
        }
        let change = PairChange::of(5000, 5000, own(RadiusCoupling::Paired), true).unwrap();
        assert!(change.trigonometric(1.0).unwrap() < 0.0 && change.trigonometric(25.0).is_some());
        assert_eq!(change.trigonometric(1e12), None);
        assert_eq!(change.exponential(1e12).sign, 0.0);
        for _ in 0..KEPT_CHANGES {
            PairChange::of(3, 3, own(RadiusCoupling::Paired), false).unwrap();
        }
        (2..100).for_each(|size| _ = PairChange::of(2, size, own(RadiusCoupling::Antithetic), true));
        assert!(KEPT.len() <= KEPT_CHANGES);
    }
}
