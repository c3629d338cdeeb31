//! [`Pairing`]: the computation of pairwise estimates from products of blocks of features.

use std::convert::Infallible;
use std::ops::Range;

use super::Map;
use super::compose::{Hybrid, rounding};
use super::gram::BlockTerms;
use super::row_sums::RowSums;
use crate::Real;
use crate::engine::{MapPlan, Program, Sum, Term, TermFactor};
use crate::error::Result;

/// The computation of pairwise estimates from products of blocks of features.
pub(super) enum Pairing {
    /// The sum over a range of blocks with this many features.
    Sum { blocks: Range<usize>, terms: usize },
    /// A hybrid of parts.
    Hybrid(Box<Hybrid<Pairing>>),
}

impl Pairing {
    /// The sum over all blocks, of these widths.
    pub fn of_blocks(widths: &[usize]) -> Self {
        Pairing::Sum { blocks: 0..widths.len(), terms: widths.iter().sum() }
    }

    /// The program of the concatenated features of a hybrid's parts, and the pairing of its estimates.
    pub fn of<T: Real>(hybrid: &Hybrid<Map<T>>) -> Result<(Program<T>, Pairing)> {
        let (mut plans, mut blocks) = (Vec::new(), 0);
        let pairing = Pairing::of_hybrid(hybrid, &mut plans, &mut blocks);
        let terms: Vec<Term> =
            (0..plans.len()).map(|right| Term { weight: 1.0, factor: TermFactor::One, right }).collect();
        Ok((Program::new(MapPlan::Sum(Sum::new(plans, &terms)))?, pairing))
    }

    /// The number of features that an estimate sums.
    fn terms(&self) -> usize {
        match self {
            Pairing::Sum { terms, .. } => *terms,
            Pairing::Hybrid(hybrid) => hybrid.children().into_iter().map(Pairing::terms).sum(),
        }
    }

    /// Collects the plans of the parts that are no hybrids, in the order in which they are written.
    fn of_hybrid<T: Real>(hybrid: &Hybrid<Map<T>>, plans: &mut Vec<MapPlan<T>>, blocks: &mut usize) -> Self {
        let part = |map: &Map<T>| -> std::result::Result<Pairing, Infallible> {
            if let Some(hybrid) = map.hybrid() {
                return Ok(Pairing::of_hybrid(hybrid, plans, blocks));
            }
            plans.push(map.program().plan().clone());
            let start = *blocks;
            *blocks += map.blocks().len();
            Ok(Pairing::Sum { blocks: start..*blocks, terms: map.feature_dim() })
        };
        let Ok(pairings) = hybrid.try_map(part);
        Pairing::Hybrid(Box::new(pairings))
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
            Pairing::Sum { blocks, .. } => {
                out.start(len, blocks.clone().filter_map(block));
                blocks.clone().filter_map(block).for_each(|terms| out.add(&terms));
            }
            Pairing::Hybrid(hybrid) => {
                out.start::<T>(len, std::iter::empty());
                let mut left = buffers.weights(1.0, len);
                for (coefficient, base) in &hybrid.terms {
                    let mut own = buffers.weights(coefficient.constant, len);
                    left.add_constant(-coefficient.constant);
                    if let Some(estimate) = &coefficient.map {
                        let rounding = rounding::<T>(estimate.terms());
                        let mut estimate = estimate.row(len, block, buffers);
                        estimate.resolve_scales();
                        own.add(coefficient.factor, &estimate, rounding);
                        left.add(-coefficient.factor, &estimate, rounding);
                        buffers.sums.push(estimate);
                    }
                    let estimate = base.row(len, block, buffers);
                    out.add_weighted(own.cancelled(), &estimate);
                    buffers.sums.push(estimate);
                    buffers.weights.push(own);
                }
                let estimate = hybrid.rest.row(len, block, buffers);
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
