//! [`Mixture`]: pairwise estimates of hybrids, in which coefficients are computed before they weight the bases.
//!
//! Features of a hybrid are products whose sum cancels where λ̂ or 1 − λ̂ is 0: rounding errors of terms of size e^{r²}
//! exceed an estimate of size e^{−r²}. For a pair of points λ̂ is a single number, and a base with weight 0 is skipped.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayRef2, Axis};

use super::Map;
use super::gram::BlockTerms;
use super::row_sums::RowSums;
use crate::engine::{Factor, Plan, Program, Sum, Term};
use crate::error::Result;
use crate::{Real, SignedLog};

/// The parts of a hybrid Σ λ̂ₖ Pₖ + (1 − Σ λ̂ₖ) Q.
pub(crate) struct Mixture<'a, T: Real> {
    /// λ̂ₖ and Pₖ.
    pub terms: Vec<(Weight<'a, T>, &'a Map<T>)>,
    /// Q.
    pub rest: &'a Map<T>,
}

/// λ̂ = a + c·Ĉ.
pub(crate) struct Weight<'a, T: Real> {
    pub constant: f64,
    pub factor: f64,
    pub map: Option<&'a Map<T>>,
}

/// The rounding error that remains, relative to the terms, when a sum with an estimate from this many features cancels:
/// four standard deviations of a sum of as many rounding errors.
pub(crate) fn rounding<T: Real>(features: usize) -> f64 {
    4.0 * (features as f64).sqrt() * T::epsilon().widen()
}

impl<T: Real> Weight<'_, T> {
    /// c·Ĉ of paired rows.
    fn random(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array1<SignedLog>> {
        let factor = SignedLog::from(self.factor);
        let times = |c: SignedLog| SignedLog { sign: c.sign * factor.sign, ..c }.scaled(factor.ln_abs);
        let none = || Array1::from_elem(x.nrows(), SignedLog::from(0.0));
        Ok(self.map.map(|map| map.log_estimate_rows(x, y)).transpose()?.map_or_else(none, |c| c.mapv(times)))
    }

    fn rounding(&self) -> f64 {
        rounding::<T>(self.map.map_or(0, Map::feature_dim))
    }
}

impl<T: Real> Mixture<'_, T> {
    /// The estimates of paired rows.
    pub fn log_estimates(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array1<SignedLog>> {
        let terms = self.terms.len();
        let left = self.terms.iter().fold(1.0, |left, (weight, _)| left - weight.constant);
        let largest = self.terms.iter().fold(0.0, |top: f64, (weight, _)| top.max(weight.rounding()));
        // A row for each pair: −cₖ Ĉₖ and 1 − Σ aₖ, which sum to the weight of Q.
        let mut rests = Array2::from_elem((x.nrows(), terms + 1), SignedLog::from(left));
        let mut products = rests.clone();
        for (k, (weight, base)) in self.terms.iter().enumerate() {
            let constant = SignedLog::from(weight.constant);
            let random = weight.random(x, y)?;
            rests.column_mut(k).assign(&random.mapv(|c| SignedLog { sign: -c.sign, ..c }));
            let weights = random.mapv(|c| cancelled([constant, c].iter(), weight.rounding()));
            products.column_mut(k).assign(&weighted(weights, base, x, y)?);
        }
        let weights = rests.map_axis(Axis(1), |terms| cancelled(terms.iter(), largest));
        products.column_mut(terms).assign(&weighted(weights, self.rest, x, y)?);
        Ok(products.map_axis(Axis(1), |terms| SignedLog::sum(terms.iter().copied())))
    }
}

/// The weights times the estimates of paired rows. Pairs without weight are skipped, even if their estimate is infinite.
fn weighted<T: Real>(
    mut weights: Array1<SignedLog>,
    map: &Map<T>,
    x: &ArrayRef2<T>,
    y: &ArrayRef2<T>,
) -> Result<Array1<SignedLog>> {
    let present: Vec<usize> = (0..weights.len()).filter(|i| weights[*i].sign != 0.0).collect();
    let estimates = if present.len() == weights.len() {
        map.log_estimate_rows(x, y)?
    } else {
        map.log_estimate_rows(&x.select(Axis(0), &present), &y.select(Axis(0), &present))?
    };
    for (i, estimate) in present.into_iter().zip(estimates) {
        let SignedLog { ln_abs, sign } = weights[i];
        weights[i] = SignedLog { sign: estimate.sign * sign, ..estimate }.scaled(ln_abs);
    }
    Ok(weights)
}

/// The sum; 0 if it is only rounding error of the terms.
fn cancelled<'a>(terms: impl Iterator<Item = &'a SignedLog> + Clone, rounding: f64) -> SignedLog {
    let sum = SignedLog::sum(terms.clone().copied());
    let top = terms.map(|term| term.ln_abs).fold(f64::NEG_INFINITY, f64::max);
    if top.is_finite() && sum.ln_abs <= top + rounding.ln() { SignedLog::from(0.0) } else { sum }
}

/// How pairwise estimates are computed from products of blocks of features.
pub(super) enum Pairing {
    /// The sum over a range of blocks.
    Sum(Range<usize>),
    /// A hybrid: shares with their pairings, and that of the rest.
    Mixture(Vec<(Share, Pairing)>, Box<Pairing>),
}

/// λ̂ = a + c·Ĉ.
pub(super) struct Share {
    constant: f64,
    factor: f64,
    estimate: Option<Pairing>,
    rounding: f64,
}

impl Pairing {
    /// The concatenated features of a hybrid's parts, and how its estimates are computed from them.
    pub fn of<T: Real>(mixture: &Mixture<'_, T>) -> Result<(Program<T>, Pairing)> {
        let (mut plans, mut blocks) = (Vec::new(), 0);
        let pairing = Pairing::of_parts(mixture, &mut plans, &mut blocks);
        let terms: Vec<Term> =
            (0..plans.len()).map(|right| Term { weight: 1.0, factor: Factor::One, right }).collect();
        Ok((Program::new(Plan::Sum(Sum::new(plans, &terms)))?, pairing))
    }

    fn of_parts<T: Real>(mixture: &Mixture<'_, T>, plans: &mut Vec<Plan<T>>, blocks: &mut usize) -> Self {
        let mut pairing = |map: &Map<T>| match map.mixture() {
            Some(mixture) => Pairing::of_parts(&mixture, plans, blocks),
            None => {
                plans.push(map.program().plan().clone());
                let start = *blocks;
                *blocks += map.blocks().len();
                Pairing::Sum(start..*blocks)
            }
        };
        let mut term = |(weight, base): &(Weight<'_, T>, &Map<T>)| {
            let Weight { constant, factor, map } = *weight;
            let estimate = map.map(&mut pairing);
            (Share { constant, factor, estimate, rounding: weight.rounding() }, pairing(base))
        };
        let terms = mixture.terms.iter().map(&mut term).collect();
        Pairing::Mixture(terms, Box::new(pairing(mixture.rest)))
    }

    /// The estimates of a row of `len` entries, from the products of the blocks that are present in it.
    pub fn row<'a, T: Real>(
        &self,
        len: usize,
        block: &impl Fn(usize) -> Option<BlockTerms<'a, T>>,
        buffers: &mut RowBuffers,
    ) -> RowSums {
        let mut out = buffers.sums.pop().unwrap_or_default();
        match self {
            Pairing::Sum(blocks) => {
                out.start(len, blocks.clone().filter_map(block));
                blocks.clone().filter_map(block).for_each(|terms| out.add(&terms));
            }
            Pairing::Mixture(terms, rest) => {
                out.start::<T>(len, std::iter::empty());
                let mut left = buffers.weights(1.0, len);
                for (share, base) in terms {
                    let mut own = buffers.weights(share.constant, len);
                    left.add_constant(-share.constant);
                    if let Some(estimate) = &share.estimate {
                        let mut estimate = estimate.row(len, block, buffers);
                        estimate.resolve_scales();
                        own.add(share.factor, &estimate, share.rounding);
                        left.add(-share.factor, &estimate, share.rounding);
                        buffers.sums.push(estimate);
                    }
                    let estimate = base.row(len, block, buffers);
                    out.add_weighted(own.cancelled(), &estimate);
                    buffers.sums.push(estimate);
                    buffers.weights.push(own);
                }
                let estimate = rest.row(len, block, buffers);
                out.add_weighted(left.cancelled(), &estimate);
                buffers.sums.push(estimate);
                buffers.weights.push(left);
            }
        }
        out
    }
}

/// Buffers of rows, for reuse.
#[derive(Default)]
pub(super) struct RowBuffers {
    sums: Vec<RowSums>,
    weights: Vec<WeightRow>,
}

impl RowBuffers {
    pub fn give(&mut self, sums: RowSums) {
        self.sums.push(sums);
    }

    fn weights(&mut self, constant: f64, len: usize) -> WeightRow {
        let mut weights = self.weights.pop().unwrap_or_default();
        for (v, start) in
            [(&mut weights.value, constant), (&mut weights.size, 0.0), (&mut weights.floor, 0.0)]
        {
            v.clear();
            v.resize(len, start);
        }
        (weights.constant, weights.rounding) = (constant, 0.0);
        weights
    }
}

/// The weights a + Σ cₖ Ĉₖ of a row of pairs.
#[derive(Default)]
pub(super) struct WeightRow {
    pub value: Vec<f64>,
    /// A bound on the error of the value from underflow in Ĉ.
    pub floor: Vec<f64>,
    /// The largest |cₖ Ĉₖ|.
    size: Vec<f64>,
    constant: f64,
    rounding: f64,
}

impl WeightRow {
    fn add_constant(&mut self, a: f64) {
        self.constant += a;
        self.value.iter_mut().for_each(|value| *value += a);
    }

    /// Adds c·Ĉ for estimates whose scales are [resolved](RowSums::resolve_scales).
    fn add(&mut self, c: f64, estimates: &RowSums, rounding: f64) {
        self.rounding = self.rounding.max(rounding);
        for (j, (estimate, floor)) in estimates.resolved().enumerate() {
            self.value[j] += c * estimate;
            self.size[j] = self.size[j].max((c * estimate).abs());
            self.floor[j] += c.abs() * floor;
        }
    }

    /// Sets weights to 0 that are only rounding error.
    fn cancelled(&mut self) -> &Self {
        let constant = self.constant.abs();
        for ((value, floor), size) in self.value.iter_mut().zip(&mut self.floor).zip(&self.size) {
            let size = size.max(constant);
            if size == f64::INFINITY {
                // The entry counts as lost to underflow, and is recomputed from logarithms.
                (*value, *floor) = (0.0, f64::MAX);
            } else if size.is_finite() && size > *floor && value.abs() <= self.rounding * size {
                (*value, *floor) = (0.0, 0.0);
            }
        }
        self
    }
}
