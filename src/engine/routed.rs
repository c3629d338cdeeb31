//! [`Routed`]: a separate map for each pair of clusters.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use super::batch::Batch;
use super::pass::Pass;
use super::plan::MapPlan;
use super::{Facts, Scratch, Side, Tile, TileShape};
use crate::Real;
use crate::numeric::{Isa, matrix_view, nearest, slice_of, squared_norm};

/// Points go to the nearest centre of their side; a pair of clusters has its own blocks, and all others are absent.
#[derive(Clone, Debug)]
pub(crate) struct Routed<T> {
    pub facts: Facts,
    /// Centres of each side in rows, in standard layout.
    centres: [Array2<f64>; 2],
    /// The plan of each pair of clusters, C_q × C_k.
    plans: Array2<MapPlan<T>>,
    /// The columns and blocks of each pair.
    parts: Array2<PairColumns>,
}

/// The columns and blocks of a pair of clusters.
#[derive(Clone, Debug)]
struct PairColumns {
    columns: Range<usize>,
    blocks: Range<usize>,
}

impl<T: Real> Routed<T> {
    /// One plan for each pair of centres, all for points of the centres' dimension.
    pub fn new(centres: [Array2<f64>; 2], plans: Array2<MapPlan<T>>) -> Self {
        let plans = plans.as_standard_layout().into_owned();
        let every = |promise: fn(&Facts) -> bool| plans.iter().all(|plan| promise(plan.facts()));
        let facts = Facts {
            // A point has the blocks of its cluster's row on one side and of its cluster's column on the other. They are the
            // same only if there is one pair.
            symmetric: plans.len() == 1 && every(|facts| facts.symmetric),
            non_negative: every(|facts| facts.non_negative),
            logarithms: every(|facts| facts.logarithms),
            ..Facts::new(
                centres[0].ncols(),
                plans.iter().flat_map(|plan| &plan.facts().blocks).copied().collect(),
            )
        };
        Routed { facts, parts: parts(&plans), centres, plans }
    }

    pub fn plans(&self) -> impl Iterator<Item = &MapPlan<T>> {
        self.plans.iter()
    }

    /// The number of clusters of a side.
    pub fn clusters(&self, side: Side) -> usize {
        self.centres[side as usize].nrows()
    }

    pub fn plans_mut(&mut self) -> impl Iterator<Item = &mut MapPlan<T>> {
        self.plans.iter_mut()
    }

    /// The cluster of a point, or the number of clusters if its squared norm is not finite.
    pub fn cluster(&self, side: Side, x: ArrayView1<'_, T>) -> usize {
        let centres = &self.centres[side as usize];
        let (isa, x) = (Isa::best(), slice_of(&x));
        let finite = squared_norm(isa, x, 1.0, &[]).is_finite();
        if finite { nearest(isa, slice_of(centres), x).0 } else { centres.nrows() }
    }

    /// The plans, columns and blocks of a cluster of a side.
    pub fn line(
        &self,
        side: Side,
        cluster: usize,
    ) -> impl Iterator<Item = (&MapPlan<T>, Range<usize>, Range<usize>)> {
        let axis = Axis(side as usize);
        let (plans, parts) = (self.plans.index_axis(axis, cluster), self.parts.index_axis(axis, cluster));
        plans.into_iter().zip(parts).map(|(plan, part)| (plan, part.columns.clone(), part.blocks.clone()))
    }

    pub fn fill(&self, pass: Pass, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        let x = x.as_standard_layout();
        let outside = self.clusters(pass.side);
        (0..x.nrows()).for_each(|i| tile.row(i).log_scales.fill(f64::NEG_INFINITY));
        let mut sorted = std::mem::take(&mut scratch.sorted);
        sorted.clear();
        sorted.extend(x.rows().into_iter().map(|row| self.cluster(pass.side, row)).zip(0..));
        sorted.sort_unstable();
        for group in sorted.chunk_by(|a, b| a.0 == b.0) {
            if group[0].0 == outside {
                group.iter().for_each(|(_, i)| tile.poison(*i));
            } else if group.len() == x.nrows() {
                for (plan, columns, blocks) in self.line(pass.side, group[0].0) {
                    plan.fill_dense(pass, x.view(), &mut tile.part(columns, blocks), scratch);
                }
            } else {
                self.fill_group(pass.of_other_points(), group, x.view(), tile, scratch);
            }
        }
        scratch.sorted = sorted;
    }

    /// Gathers the points of a cluster, computes their blocks in a buffer and copies these to the rows of the points.
    fn fill_group(
        &self,
        pass: Pass,
        group: &[(usize, usize)],
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let mut points = scratch.take(group.len() * x.ncols());
        for (place, (_, i)) in points.chunks_exact_mut(x.ncols()).zip(group) {
            place.iter_mut().zip(x.row(*i)).for_each(|(out, v)| *out = *v);
        }
        let mut gathered = scratch.take_batch();
        for (plan, columns, blocks) in self.line(pass.side, group[0].0) {
            let shape = TileShape { rows: group.len(), width: columns.len(), blocks: blocks.len() };
            gathered.resize(shape, pass.form);
            let points = matrix_view(group.len(), x.ncols(), &points);
            plan.fill_dense(pass, points, &mut gathered.tile(), scratch);
            scatter(&gathered, group, &mut tile.part(columns, blocks));
        }
        scratch.give_batch(gathered);
        scratch.give(points);
    }
}

/// Copies rows of features to the rows of a group.
fn scatter<T: Real>(gathered: &Batch<T>, group: &[(usize, usize)], tile: &mut Tile<'_, T>) {
    for (own, (_, i)) in group.iter().enumerate() {
        let (own, row) = (gathered.row(own), tile.row(*i));
        row.values.copy_from_slice(own.values);
        row.log_scales.copy_from_slice(own.log_scales);
        row.signs.iter_mut().zip(own.signs).for_each(|(out, sign)| *out = *sign);
    }
}

/// The columns and blocks of each pair, one after another.
fn parts<T: Real>(plans: &Array2<MapPlan<T>>) -> Array2<PairColumns> {
    let (mut column, mut block) = (0usize, 0);
    plans.map(|plan| {
        let facts = plan.facts();
        // The sum saturates; the check of the facts refuses such sizes.
        let columns = column..column.saturating_add(facts.feature_dim());
        let part = PairColumns { columns, blocks: block..block + facts.blocks.len() };
        (column, block) = (part.columns.end, part.blocks.end);
        part
    })
}
