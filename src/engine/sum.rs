//! [`Sum`]: a weighted sum of products of maps is a map.
//!
//! The share of equal signs of x and y could be taken as (1 + product)/2 with a tensor product of signs, which would cancel.
//! Instead each sign has two blocks, one for + and one for −, of which a point has one: equal signs are counted by the blocks
//! that both points have.

use std::ops::Range;

use super::batch::{Batch, FeatureRow};
use super::pass::Pass;
use super::plan::{MapPlan, ranges};
use super::tile::TileShape;
use super::{Facts, Form, PointsView, Scratch, Side, Tile};
use crate::Real;
use crate::numeric::{self, Isa, LINE, LeftFactor, TensorProduct};

/// Σ wₜ Aₜ Bₜ: products of estimates are tensor products of features, sums are more blocks, and side Y carries
/// the signs of weights.
#[derive(Clone, Debug)]
pub(crate) struct Sum<T> {
    pub facts: Facts,
    parts: Vec<PlacedPlan<T>>,
    /// The blocks of features of each side, in order; one product may be many blocks.
    products: [Vec<TensorProduct>; 2],
    /// The number of columns of all parts, with gaps of arbitrary contents.
    columns: usize,
    /// The number of blocks of all parts.
    blocks: usize,
}

/// A map, and the places of its features among those of all parts.
#[derive(Clone, Debug)]
struct PlacedPlan<T> {
    plan: MapPlan<T>,
    columns: Range<usize>,
    blocks: Range<usize>,
}

/// A weighted product of a factor and a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub weight: f64,
    pub factor: TermFactor,
    pub right: usize,
}

/// The left factor of a term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TermFactor {
    /// The number 1.
    One,
    /// The estimate of a part.
    Estimate(usize),
    /// The share of a part's signs that are equal for x and y.
    Equal(usize),
    /// The share of a part's signs that differ.
    Unequal(usize),
}

/// One of the blocks of a product.
struct ProductBlock<'a> {
    product: &'a TensorProduct,
    /// The points that have the block; `None` for all.
    condition: Option<SignCondition>,
}

/// The points that have a block: those where this feature of the parts is positive, or negative.
struct SignCondition {
    column: usize,
    positive: bool,
}

impl ProductBlock<'_> {
    /// The logarithmic scale of the block in a row, from the scales of the parts; −∞ if it is absent.
    fn scale<T: Real>(&self, parts: FeatureRow<'_, T>) -> f64 {
        match &self.condition {
            Some(condition) if condition.excludes(parts) => f64::NEG_INFINITY,
            _ => self.product.scale(parts.log_scales),
        }
    }
}

impl SignCondition {
    fn excludes<T: Real>(&self, parts: FeatureRow<'_, T>) -> bool {
        // In a batch of logarithms the values of signs are ln 1 = 0.
        let signs = if parts.signs.is_empty() { parts.values } else { parts.signs };
        // A block of NaN is never absent.
        if self.positive { signs[self.column] < T::zero() } else { signs[self.column] > T::zero() }
    }
}

/// The points that have block `k` of a product; `None` for all.
fn condition(product: &TensorProduct, k: usize) -> Option<SignCondition> {
    let LeftFactor::Signs { columns, opposite, .. } = &product.left else { return None };
    Some(SignCondition { column: columns.start + k / 2, positive: k.is_multiple_of(2) != *opposite })
}

impl<T: Real> Sum<T> {
    /// The sum of `terms` over `parts`, which are for points of one dimension. Terms of weight 0 are left out; shares are
    /// of parts that [are of signs](is_of_signs).
    pub fn new(plans: Vec<MapPlan<T>>, terms: &[Term]) -> Self {
        let mut parts: Vec<PlacedPlan<T>> = Vec::with_capacity(plans.len());
        for plan in plans {
            let (column, block) = ends(&parts);
            let facts = plan.facts();
            // The sum saturates; the check of the facts refuses such sizes.
            let columns = column..column.saturating_add(facts.feature_dim());
            let blocks = block..block + facts.blocks.len();
            parts.push(PlacedPlan { plan, columns, blocks });
        }
        let present = terms.iter().filter(|term| term.weight != 0.0);
        let of_side = |side| present.clone().flat_map(|term| products_of(&parts, *term, side)).collect();
        let products: [Vec<TensorProduct>; 2] = [of_side(Side::X), of_side(Side::Y)];
        let [_, of_y] = &products;
        // A part gives positive features if only its signs are compared.
        let share = |k: usize| {
            terms
                .iter()
                .any(|t| matches!(t.factor, TermFactor::Equal(of) | TermFactor::Unequal(of) if of == k))
        };
        let every = |promise: fn(&Facts) -> bool| {
            let mut kept = parts.iter().enumerate().filter(|(k, _)| !share(*k));
            kept.all(|(_, part)| promise(part.plan.facts())) && !of_y.iter().any(|product| product.negative)
        };
        let opposite =
            of_y.iter().any(|product| matches!(product.left, LeftFactor::Signs { opposite: true, .. }));
        let facts = Facts {
            symmetric: every(|facts| facts.symmetric) && !opposite,
            non_negative: every(|facts| facts.non_negative),
            logarithms: true,
            ..Facts::new(
                parts.first().map_or(0, |part| part.plan.facts().dim),
                of_y.iter()
                    .flat_map(|product| std::iter::repeat_n(product.width(), product.blocks()))
                    .collect(),
            )
        };
        let (columns, blocks) = ends(&parts);
        Sum { facts, parts, products, columns, blocks }
    }

    /// Whether there are blocks that are absent from some points.
    pub fn has_conditions(&self) -> bool {
        self.products[0].iter().any(|product| matches!(product.left, LeftFactor::Signs { .. }))
    }

    pub fn parts(&self) -> impl Iterator<Item = &MapPlan<T>> {
        self.parts.iter().map(|part| &part.plan)
    }

    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut MapPlan<T>> {
        self.parts.iter_mut().map(|part| &mut part.plan)
    }

    pub fn fill(&self, pass: Pass, x: PointsView<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        let mut parts = scratch.take_batch();
        self.fill_parts(pass, x, &mut parts, scratch);
        match pass.form {
            Form::Values => self.multiply(pass.side, &parts, tile),
            Form::Logarithms => self.add(pass.side, &parts, tile),
        }
        scratch.give_batch(parts);
    }

    /// The features of all parts side by side.
    pub fn fill_parts(
        &self,
        pass: Pass,
        x: PointsView<'_, T>,
        parts: &mut Batch<T>,
        scratch: &mut Scratch<T>,
    ) {
        let shape = TileShape { rows: x.nrows(), width: self.columns, blocks: self.blocks };
        parts.resize(shape, pass.form);
        let mut tile = parts.tile();
        for part in &self.parts {
            let mut tile = tile.part(part.columns.clone(), part.blocks.clone());
            if pass.form == Form::Values || part.plan.facts().logarithms {
                part.plan.fill(pass, x, &mut tile, scratch);
            } else {
                part.plan.fill(pass.in_form(Form::Values), x, &mut tile, scratch);
                take_logarithms(&mut tile);
            }
        }
    }

    /// Writes the products of all terms to the rows of a tile.
    fn multiply(&self, side: Side, parts: &Batch<T>, tile: &mut Tile<'_, T>) {
        let isa = Isa::best();
        for rows in tile.groups() {
            let end = rows.end;
            let of_parts = parts.rows_in(rows.clone());
            numeric::products(isa, tile.rows_in(rows), of_parts, &self.products[side as usize]);
            tile.complete(end);
        }
    }

    /// Writes the products of all terms to the rows of a tile of logarithms and signs.
    fn add(&self, side: Side, parts: &Batch<T>, tile: &mut Tile<'_, T>) {
        for i in 0..tile.rows() {
            let (parts, row) = (parts.row(i), tile.row(i));
            let blocks = ranges(&self.facts.blocks).zip(row.log_scales).zip(self.blocks(side));
            for ((columns, scale), block) in blocks {
                *scale = block.scale(parts);
                if *scale != f64::NEG_INFINITY {
                    let sign: T = block.product.sign();
                    let (values, signs) = (&mut row.values[columns.clone()], &mut row.signs[columns]);
                    combine(block.product, parts.values, T::zero(), values, |a, b| a + b);
                    combine(block.product, parts.signs, T::one(), signs, |a, b| sign * a * b);
                }
            }
        }
    }

    /// All blocks of a side, in the order of the features.
    fn blocks(&self, side: Side) -> impl Iterator<Item = ProductBlock<'_>> {
        let block = |product, k| ProductBlock { product, condition: condition(product, k) };
        let products = self.products[side as usize].iter();
        products.flat_map(move |product| (0..product.blocks()).map(move |k| block(product, k)))
    }

    /// Adds to `out` the cotangents of the values of the parts in a row, from those of the products' values.
    pub fn pull_back(&self, side: Side, parts: FeatureRow<'_, T>, cotangents: &[T], out: &mut [T]) {
        let one = [T::one()];
        for (columns, block) in ranges(&self.facts.blocks).zip(self.blocks(side)) {
            if block.scale(parts) == f64::NEG_INFINITY {
                continue;
            }
            let product = block.product;
            let sign: T = product.sign();
            let (left, right) = factors(product, parts.values, &one);
            let rows = cotangents[columns].chunks_exact(right.len().max(1));
            for (p, (a, own)) in left.iter().zip(rows).enumerate() {
                for (q, cotangent) in own.iter().enumerate() {
                    let cotangent = sign * *cotangent;
                    out[product.right.start + q] += *a * cotangent;
                    if let LeftFactor::Columns { columns: left, .. } = &product.left {
                        out[left.start + p] += right[q] * cotangent;
                    }
                }
            }
        }
    }

    /// Each part with its columns among those of all parts.
    pub fn each_part(&self) -> impl Iterator<Item = (&MapPlan<T>, Range<usize>)> {
        self.parts.iter().map(|part| (&part.plan, part.columns.clone()))
    }

    /// The number of columns of all parts, with gaps of arbitrary contents.
    pub fn part_columns(&self) -> usize {
        self.columns
    }
}

/// The numbers of columns and of blocks of all parts. Columns fill whole cache lines: loops over short rows are up to twice as
/// fast if no vector lies across two lines.
fn ends<T: Real>(parts: &[PlacedPlan<T>]) -> (usize, usize) {
    let (columns, blocks) = parts.last().map_or((0, 0), |last| (last.columns.end, last.blocks.end));
    (columns.checked_next_multiple_of(LINE / size_of::<T>()).unwrap_or(columns), blocks)
}

/// The factors of a block in a row of the parts' features; the left one is `one` if there is none.
fn factors<'a, T>(product: &TensorProduct, row: &'a [T], one: &'a [T]) -> (&'a [T], &'a [T]) {
    let left = match &product.left {
        LeftFactor::Columns { columns, .. } => &row[columns.clone()],
        LeftFactor::One | LeftFactor::Signs { .. } => one,
    };
    (left, &row[product.right.clone()])
}

/// out ← combine(aₚ, b_q), one p after the other; a is `one` if there is no left factor.
fn combine<T: Real>(product: &TensorProduct, row: &[T], one: T, out: &mut [T], combine: impl Fn(T, T) -> T) {
    let one = [one];
    let (left, right) = factors(product, row, &one);
    for (out, a) in out.chunks_exact_mut(right.len().max(1)).zip(left) {
        out.iter_mut().zip(right).for_each(|(out, b)| *out = combine(*a, *b));
    }
}

/// The products of a term on a side: each block of the factor with each block of the right part. Features of side Y carry the
/// sign of the weight, and opposite signs if signs must differ.
fn products_of<T: Real>(parts: &[PlacedPlan<T>], term: Term, side: Side) -> Vec<TensorProduct> {
    let (log_factor, negative) = (0.5 * term.weight.abs().ln(), term.weight < 0.0 && side == Side::Y);
    let lefts: Vec<LeftFactor> = match term.factor {
        TermFactor::One => vec![LeftFactor::One],
        TermFactor::Estimate(part) => {
            blocks_of(&parts[part]).map(|(columns, scale)| LeftFactor::Columns { columns, scale }).collect()
        }
        TermFactor::Equal(part) | TermFactor::Unequal(part) => {
            let opposite = matches!(term.factor, TermFactor::Unequal(_)) && side == Side::Y;
            let PlacedPlan { columns, blocks, .. } = &parts[part];
            vec![LeftFactor::Signs { columns: columns.clone(), scale: blocks.start, opposite }]
        }
    };
    let with = |left: &LeftFactor| {
        let of_right = |(right, right_scale)| {
            let left = left.clone();
            TensorProduct { left, right, right_scale, log_factor, negative }
        };
        blocks_of(&parts[term.right]).map(of_right).collect::<Vec<_>>()
    };
    lefts.iter().flat_map(with).collect()
}

/// The columns and scales of a part's blocks.
fn blocks_of<T: Real>(part: &PlacedPlan<T>) -> impl Iterator<Item = (Range<usize>, usize)> {
    let shift = |k: usize| part.columns.start.saturating_add(k);
    let columns = ranges(&part.plan.facts().blocks).map(move |own| shift(own.start)..shift(own.end));
    columns.zip(part.blocks.clone())
}

/// Replaces values by the logarithms of their magnitudes and their signs.
fn take_logarithms<T: Real>(tile: &mut Tile<'_, T>) {
    for i in 0..tile.rows() {
        let row = tile.row(i);
        for (value, sign) in row.values.iter_mut().zip(row.signs) {
            (*sign, *value) = (value.signum(), value.abs().ln());
        }
    }
}
