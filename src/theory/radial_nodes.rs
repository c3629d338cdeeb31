//! The joint law of two radii of a block, as quadrature nodes, for any law of radii whose quantiles are known.
//!
//! Nodes are probabilities. Each half of the law has panels in the logarithm of the probability of its tail, narrow enough for
//! functions that oscillate in the radius.

use super::law::RadiusCoupling;
use crate::numeric::special::gauss_legendre_rule;

/// A function of two radii and the weight of this pair.
pub(super) type RadiusPairVisitor<'a> = dyn FnMut(f64, f64, f64) + 'a;

/// The quantile of a law of radii.
pub(super) type Quantile<'a> = dyn Fn(f64) -> f64 + 'a;

/// The probability of the part of a tail that is one node.
const CUT: f64 = 1e-14;

/// The widest panel in the logarithm of the probability, and the narrowest one.
const WIDEST: f64 = 2.0;
const NARROWEST: f64 = 0.05;

/// The largest ratio of the radii of a panel, and the one where the tail is below this probability.
const RATIO: f64 = 1.6;
const RATIO_OF_TAIL: f64 = 3.0;
const TAIL: f64 = 1e-5;

/// The numbers of nodes on a panel, for few strata and for many.
const OF_FEW: usize = 12;
const OF_MANY: usize = 8;
const FEW: usize = 16;

/// A radius, the probability of its nearer tail and the weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct RadiusNode {
    pub radius: f64,
    pub weight: f64,
    tail: f64,
}

/// A law of radii as nodes.
pub(super) struct RadiusNodes<'a> {
    quantile: &'a Quantile<'a>,
    rule: Vec<(f64, f64)>,
}

impl<'a> RadiusNodes<'a> {
    /// Nodes for blocks of `size` rows.
    pub fn new(quantile: &'a Quantile<'a>, size: usize) -> Self {
        let count = if size <= FEW { OF_FEW } else { OF_MANY };
        RadiusNodes { quantile, rule: gauss_legendre_rule(count) }
    }

    /// The radius with this probability of the lower tail, or of the upper one.
    fn at(&self, tail: f64, upper: bool) -> f64 {
        (self.quantile)(if upper { (1.0 - tail).min(1.0 - 0.5 * f64::EPSILON) } else { tail })
    }

    /// Nodes of the radii whose probability is in an interval; their weights add up to its length.
    pub fn between(&self, low: f64, high: f64) -> Vec<RadiusNode> {
        let mut nodes = Vec::new();
        if low < 0.5 {
            nodes.extend(self.of_tail(low, high.min(0.5), false));
        }
        if high > 0.5 {
            nodes.extend(self.of_tail(1.0 - high, 1.0 - low.max(0.5), true));
        }
        nodes
    }

    /// Nodes of one half of the law.
    fn of_tail(&self, low: f64, high: f64, upper: bool) -> Vec<RadiusNode> {
        let mut nodes = Vec::new();
        let least = if low < CUT { 0.0 } else { low };
        if least == 0.0 {
            let cut = CUT.min(0.5 * high);
            nodes.push(RadiusNode { radius: self.at(cut, upper), weight: cut, tail: cut });
        }
        let (end, mut right) = (least.max(CUT.min(0.5 * high)).ln(), high.ln());
        while right > end {
            let mut width = WIDEST.min(0.7 * -right).min(right - end);
            let ratio = |width: f64| {
                let ratio = self.at((right - width).exp(), upper) / self.at(right.exp(), upper);
                ratio.max(ratio.recip())
            };
            let most = if upper && right.exp() > TAIL { RATIO } else { RATIO_OF_TAIL };
            while width > NARROWEST && ratio(width) > most {
                width *= 0.5;
            }
            // A sliver at the end would be a panel of its own.
            let left = if right - width < end + 1e-9 { end } else { right - width };
            self.panel(left, right, upper, &mut nodes);
            right = left;
        }
        let total: f64 = nodes.iter().map(|node| node.weight).sum();
        nodes.iter_mut().for_each(|node| node.weight *= (high - least) / total);
        nodes
    }

    fn panel(&self, left: f64, right: f64, upper: bool, nodes: &mut Vec<RadiusNode>) {
        let half = 0.5 * (right - left);
        nodes.extend(self.rule.iter().map(|(x, weight)| {
            let tail = (left + half * (1.0 + x)).exp();
            RadiusNode { radius: self.at(tail, upper), weight: weight * half * tail, tail }
        }));
    }

    /// Visits pairs of radii with weights: the joint law of the ordered pairs of a block with coupled radii, minus that with
    /// independent ones.
    pub fn change(&self, size: usize, radii: RadiusCoupling, visit: &mut RadiusPairVisitor<'_>) {
        let (b, half) = (size as f64, size / 2);
        let whole = self.between(0.0, 1.0);
        match radii {
            RadiusCoupling::Antithetic => {
                square(&whole, -2.0 * half as f64, visit);
                self.opposite(0.5, 4.0 * half as f64, visit);
            }
            RadiusCoupling::Systematic => {
                square(&whole, -b * (b - 1.0), visit);
                (1..size).for_each(|j| self.shifted(j as f64 / b, 2.0 * b, visit));
            }
            // A block by itself is a whole draw.
            RadiusCoupling::Stratified | RadiusCoupling::Paired | RadiusCoupling::Overall => {
                square(&whole, b, visit);
                let strata: Vec<_> =
                    (0..size).map(|a| self.between(a as f64 / b, (a + 1) as f64 / b)).collect();
                strata.iter().for_each(|own| square(own, -b * b, visit));
                if radii == RadiusCoupling::Paired {
                    let pairs = strata.iter().zip(strata.iter().rev()).take(half);
                    pairs.for_each(|(low, high)| products(low, high, -2.0 * b * b, visit));
                    self.opposite(half as f64 / b, 2.0 * b, visit);
                }
            }
        }
    }

    /// Visits q(p) and q(1 − p) for p from 0 to `end`, with this weight times dp. Panels are those of the upper radius.
    fn opposite(&self, end: f64, weight: f64, visit: &mut RadiusPairVisitor<'_>) {
        for node in self.of_tail(0.0, end, true) {
            visit(self.at(node.tail, false), node.radius, weight * node.weight);
        }
    }

    /// Visits q(p) and q(p + shift) for all p, with this weight times dp. Panels are those of the lower radius in the lower half
    /// and of the upper radius in the other.
    fn shifted(&self, shift: f64, weight: f64, visit: &mut RadiusPairVisitor<'_>) {
        let middle = 0.5 * (1.0 - shift);
        for node in self.of_tail(0.0, middle, false) {
            visit(node.radius, (self.quantile)(node.tail + shift), weight * node.weight);
        }
        for node in self.of_tail(0.0, middle, true) {
            visit((self.quantile)(1.0 - shift - node.tail), node.radius, weight * node.weight);
        }
    }
}

/// The product of weights below which a pair is nothing.
const NOTHING: f64 = 1e-22;

/// Visits all pairs of nodes of two independent radii.
pub(super) fn products(
    first: &[RadiusNode],
    second: &[RadiusNode],
    weight: f64,
    visit: &mut RadiusPairVisitor<'_>,
) {
    for r in first {
        let counts = |s: &&RadiusNode| r.weight * s.weight > NOTHING;
        second.iter().filter(counts).for_each(|s| visit(r.radius, s.radius, weight * r.weight * s.weight));
    }
}

/// Visits all pairs of nodes of two independent radii of the same law: each unordered pair once.
pub(super) fn square(nodes: &[RadiusNode], weight: f64, visit: &mut RadiusPairVisitor<'_>) {
    for (i, node) in nodes.iter().enumerate() {
        let own = std::slice::from_ref(node);
        products(own, own, weight, visit);
        products(own, &nodes[i + 1..], 2.0 * weight, visit);
    }
}
