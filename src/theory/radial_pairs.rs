//! Covariances of trigonometric features of two rows at a fixed angle, for any law of radii whose quantiles are known.
//!
//! Two rows have radii r and s and directions at an angle with cosine g. With ρ² = r² + s² ± 2grs and δ = x − y the mean over
//! rotations of the product of their features is φ(δρ) = ₀F₁(; d/2; −δ²ρ²/4), averaged over the sign. A [`RadialPairs`] holds the
//! law of ρ as nodes, on panels whose width is a part of ρ, and serves all points. The covariance of independent radii is E φ − k²,
//! from the same nodes for k: where both are nearly 1, what they have in common is left out of each.
//!
//! Source: new.

use std::collections::HashMap;
use std::f64::consts::PI;
use std::sync::{Arc, Mutex, PoisonError};

use super::law::{CoupledPairs, RadiusCoupling};
use super::radial_nodes::{Quantile, RadiusNodes, square};
use super::sphere_mean::SphereMean;
use crate::kept::Kept;

/// What the pairs of a law are counted for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PairsOf {
    /// One ordered pair of independent radii, at an angle with this cosine.
    Independent(f64),
    /// The change of these pairs by coupled radii.
    Coupled(CoupledPairs),
}

/// A covariance, and a bound of its error by quadrature.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covariance {
    pub value: f64,
    pub error: f64,
}

/// The law of ρ, and that of one radius.
#[derive(Debug)]
pub(super) struct RadialPairs {
    mean: SphereMean,
    /// The law of one radius.
    single: Nodes,
    /// The signed law of ρ for the pairs.
    pairs: Nodes,
    /// Whether the covariance is relative to that of independent rows.
    change: bool,
    /// Covariances by the bits of what they follow from.
    found: Mutex<HashMap<[u64; 3], Option<Covariance>>>,
}

/// Places with weights.
type Nodes = Vec<(f64, f64)>;

/// Which pairs are meant: the law, d, and what they are counted for.
type Key = (Probes, usize, PairsOf);

/// The bits of the quantiles of a law at some probabilities, which tell it from others.
pub(super) type Probes = [u64; PROBES.len()];

const PROBES: [f64; 6] = [0.037, 0.214, 0.483, 0.741, 0.926, 0.9973];

/// The probes of a law; `None` if it has no quantiles.
pub(super) fn probes(quantile: &dyn Fn(f64) -> Option<f64>) -> Option<Probes> {
    let mut probes = [0; PROBES.len()];
    for (probe, p) in probes.iter_mut().zip(PROBES) {
        *probe = quantile(p).filter(|radius| radius.is_finite())?.to_bits();
    }
    Some(probes)
}

/// The pairs that were asked for last; `None` where a law has too many nodes.
static KEPT: Kept<Key, Option<Arc<RadialPairs>>> = Kept::new(KEPT_PAIRS);

/// The number of pairs that are kept.
const KEPT_PAIRS: usize = 64;

/// The most covariances that are kept: those of a plan's pairs.
const MOST_FOUND: usize = 1 << 13;

/// The most rows of a block, also with systematic radii, and the largest dimension: beyond, nodes would take seconds.
const MOST: usize = 1 << 12;
const MOST_SYSTEMATIC: usize = 256;
const MOST_DIM: usize = 1 << 16;

/// The most nodes of one radius: beyond, their pairs would take seconds. Matérn kernels of ν below some 0.1 have more.
const MOST_NODES: usize = 2600;

/// The share by which the variance of one feature may differ from that by the nodes.
const AGREEMENT: f64 = 2e-4;

/// The share of a sum of absolute values by which quadrature may be wrong.
const QUADRATURE: f64 = 1e-13;

impl RadialPairs {
    /// The pairs of this kind in ℝᵈ; `None` where they are not known.
    pub fn of(quantile: &dyn Fn(f64) -> Option<f64>, d: usize, of: PairsOf) -> Option<Arc<Self>> {
        let most = |radii| if radii == RadiusCoupling::Systematic { MOST_SYSTEMATIC } else { MOST };
        let too_large = match of {
            PairsOf::Independent(_) => false,
            PairsOf::Coupled(CoupledPairs::Block(own, size)) => size > most(own.radii),
            PairsOf::Coupled(CoupledPairs::Across(_)) => true,
        };
        if too_large || !(2..=MOST_DIM).contains(&d) {
            return None;
        }
        let new = || RadialPairs::new(&|p| quantile(p).unwrap_or(f64::NAN), d, of).map(Arc::new);
        KEPT.get((probes(quantile)?, d, of), new)
    }

    fn new(quantile: &Quantile<'_>, d: usize, of: PairsOf) -> Option<Self> {
        let mut panels = Panels::default();
        let mut add = |cos: f64, r: f64, s: f64, weight: f64| {
            let squares = r * r + s * s;
            if cos == 0.0 {
                return panels.add(squares.sqrt(), weight);
            }
            for g in [cos, -cos] {
                panels.add((squares + 2.0 * g * r * s).max(0.0).sqrt(), 0.5 * weight);
            }
        };
        let size = match of {
            PairsOf::Coupled(CoupledPairs::Block(_, size)) => size,
            _ => 1,
        };
        let nodes = RadiusNodes::new(quantile, size);
        let whole = nodes.between(0.0, 1.0);
        if whole.len() > MOST_NODES || whole.iter().any(|node| node.radius.is_nan()) {
            return None;
        }
        match of {
            PairsOf::Independent(cos) => square(&whole, 1.0, &mut |r, s, weight| add(cos, r, s, weight)),
            PairsOf::Coupled(CoupledPairs::Block(own, size)) => {
                nodes.change(size, own.radii, &mut |r, s, weight| add(own.cos, r, s, weight));
            }
            PairsOf::Coupled(CoupledPairs::Across(_)) => return None,
        }
        Some(RadialPairs {
            mean: SphereMean::new(d),
            single: whole.iter().map(|node| (node.radius, node.weight)).collect(),
            pairs: panels.nodes(),
            change: matches!(of, PairsOf::Coupled(_)),
            found: Mutex::default(),
        })
    }

    /// The covariance at ‖x − y‖² = `z2`, where k − 1 is this deviation and a feature has this variance; `None` where the nodes do
    /// not meet these.
    pub fn covariance(&self, z2: f64, deviation: f64, variance: f64) -> Option<Covariance> {
        let key = [z2, deviation, variance].map(f64::to_bits);
        let found = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(covariance) = found().get(&key).copied() {
            return covariance;
        }
        let covariance = self.computed(z2, deviation, variance);
        let mut found = found();
        if found.len() >= MOST_FOUND {
            found.clear();
        }
        found.insert(key, covariance);
        covariance
    }

    fn computed(&self, z2: f64, deviation: f64, variance: f64) -> Option<Covariance> {
        let distance = z2.sqrt();
        let (single, twice) = (self.sums(&self.single, distance), self.sums(&self.single, 2.0 * distance));
        let pairs = self.sums(&self.pairs, distance);
        // ½(1 + k(2δ) − 2k²): the parts that are linear in δ² cancel.
        let of_single =
            |once: Sum, twice: Sum| 0.5 * (twice.value - 4.0 * once.value) - deviation * deviation;
        let rest = |once: Sum| if self.change { 0.0 } else { 2.0 * once.value + deviation * deviation };
        let noise = |once: Sum, twice: Sum| QUADRATURE * (4.0 * once.size + twice.size);
        let plain = noise(single.plain, twice.plain) <= noise(single.curved, twice.curved);
        let part = |sums: Sums| if plain { sums.plain } else { sums.curved };
        let (single, twice, pairs) = (part(single), part(twice), part(pairs));
        let error = QUADRATURE * (pairs.size + 4.0 * single.size + twice.size);
        // This refuses NaN too.
        let met = (of_single(single, twice) - variance).abs() <= AGREEMENT * variance;
        met.then_some(Covariance { value: pairs.value - rest(single), error })
    }

    /// The sums of φ − 1, and of φ − 1 + δ²ρ²/(2d), over nodes.
    fn sums(&self, nodes: &Nodes, distance: f64) -> Sums {
        let mut sums = Sums::default();
        for (place, weight) in nodes {
            let excess = self.mean.at(distance * place);
            sums.plain.add(weight * excess.plain);
            sums.curved.add(weight * excess.curved);
        }
        sums
    }
}

/// A sum, and that of the sizes of its terms.
#[derive(Clone, Copy, Default)]
struct Sum {
    value: f64,
    size: f64,
}

impl Sum {
    fn add(&mut self, term: f64) {
        self.value += term;
        self.size += term.abs();
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    plain: Sum,
    curved: Sum,
}

/// A measure of ρ > 0, held by weights at Chebyshev's points of panels of a sixth of an octave: integrals of polynomials of degree
/// below [`POINTS`] over a panel are exact.
struct Panels {
    points: [(f64, f64); POINTS],
    weights: Vec<[f64; POINTS]>,
}

const POINTS: usize = 16;
const PER_OCTAVE: f64 = 6.0;

/// The octaves that panels cover, on both sides of 1.
const OCTAVES: f64 = 128.0;

impl Default for Panels {
    fn default() -> Self {
        let point = |i: usize| {
            let angle = PI * (i as f64 + 0.5) / POINTS as f64;
            (angle.cos(), if i.is_multiple_of(2) { angle.sin() } else { -angle.sin() })
        };
        let count = (2.0 * OCTAVES * PER_OCTAVE) as usize;
        Panels { points: std::array::from_fn(point), weights: vec![[0.0; POINTS]; count] }
    }
}

impl Panels {
    /// The ends of a panel.
    fn ends(panel: usize) -> (f64, f64) {
        let end = |k: usize| (k as f64 / PER_OCTAVE - OCTAVES).exp2();
        (end(panel), end(panel + 1))
    }

    /// Adds a mass at ρ; far outside the panels it is added at their end.
    fn add(&mut self, place: f64, mass: f64) {
        let place = place.clamp((-OCTAVES).exp2(), OCTAVES.exp2());
        let panel = ((place.log2() + OCTAVES) * PER_OCTAVE).max(0.0) as usize;
        let panel = panel.min(self.weights.len() - 1);
        let (low, high) = Panels::ends(panel);
        let x = (2.0 * place - low - high) / (high - low);
        let mut parts = self.points.map(|(node, weight)| weight / (x - node));
        if let Some(i) = parts.iter().position(|part| part.is_infinite()) {
            parts = std::array::from_fn(|k| f64::from(u8::from(k == i)));
        }
        let total: f64 = parts.iter().sum();
        self.weights[panel].iter_mut().zip(parts).for_each(|(own, part)| *own += mass * part / total);
    }

    /// All points that have a weight.
    fn nodes(&self) -> Nodes {
        let mut nodes = Nodes::new();
        for (panel, weights) in self.weights.iter().enumerate() {
            let (low, high) = Panels::ends(panel);
            let of = |((x, _), weight): (&(f64, f64), &f64)| (0.5 * (low + high + x * (high - low)), *weight);
            nodes.extend(self.points.iter().zip(weights).map(of).filter(|(_, weight)| *weight != 0.0));
        }
        nodes
    }
}
