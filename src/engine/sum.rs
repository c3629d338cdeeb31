//! [`Sum`]: a weighted sum of products of maps is a map.
//!
//! Products with shares of signs are not tensor products: each sign of τ·x has a block of its own for either value, of
//! which one is absent, so that a share is a sum of ones and nothing cancels.

use std::ops::Range;

use super::batch::{Batch, Features};
use super::plan::{Pass, Plan, ranges};
use super::{Facts, Form, Lift, PointsView, Scratch, Side, Tile};
use crate::Real;
use crate::kernel::Activation;
use crate::numeric::{self, Isa, LINE, Left, Product};

/// Σ wₜ Aₜ Bₜ: products of estimates are tensor products of features, sums are more blocks, and side Y carries
/// the signs of weights.
#[derive(Clone, Debug)]
pub(crate) struct Sum<T> {
    pub facts: Facts,
    parts: Vec<Part<T>>,
    /// The blocks of features, in order; one product may be many blocks.
    products: Vec<Product>,
    /// Columns, with gaps that hold anything, and blocks of all parts.
    room: (usize, usize),
}

/// A map, and the places of its features among those of all parts.
#[derive(Clone, Debug)]
struct Part<T> {
    plan: Plan<T>,
    columns: Range<usize>,
    blocks: Range<usize>,
}

/// A weighted product of a factor and a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub weight: f64,
    pub factor: Factor,
    pub right: usize,
}

/// The left factor of a term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Factor {
    /// Nothing.
    One,
    /// The estimate of a part.
    Estimate(usize),
    /// The share of a part's signs that are equal for x and y.
    Equal(usize),
    /// The share of a part's signs that differ.
    Unequal(usize),
}

/// One of the blocks of a product.
struct Block<'a> {
    product: &'a Product,
    /// Which points have it; none if all have.
    slot: Option<Slot>,
}

/// The points that have a block: those where this feature of the parts is positive, or negative.
struct Slot {
    column: usize,
    positive: bool,
    /// Whether side Y has the opposite sign.
    turned: bool,
}

impl Block<'_> {
    /// The logarithmic scale of the block in a row, from those of the parts; −∞ where it is absent.
    fn scale<T: Real>(&self, side: Side, parts: Features<'_, T>) -> f64 {
        match &self.slot {
            Some(slot) if slot.is_absent(side, parts) => f64::NEG_INFINITY,
            _ => self.product.scale(parts.log_scales),
        }
    }
}

impl Slot {
    fn is_absent<T: Real>(&self, side: Side, parts: Features<'_, T>) -> bool {
        // The values of logarithms are 0.
        let signs = if parts.signs.is_empty() { parts.values } else { parts.signs };
        let wanted = self.positive != (self.turned && side == Side::Y);
        // A block of NaN is never absent.
        if wanted { signs[self.column] < T::zero() } else { signs[self.column] > T::zero() }
    }
}

/// Which points have the block `k` of a product; none if all have.
fn slot(product: &Product, k: usize) -> Option<Slot> {
    let Left::Signs(columns, _, turned) = &product.left else { return None };
    Some(Slot { column: columns.start + k / 2, positive: k.is_multiple_of(2), turned: *turned })
}

/// Whether the features are signs, of which shares can be taken.
pub(crate) fn is_of_signs<T: Real>(plan: &Plan<T>) -> bool {
    let signs = Lift::Function { activation: Activation::Sign, offset: 0.0 };
    matches!(plan, Plan::Leaf(leaf) if leaf.lift == signs)
}

impl<T: Real> Sum<T> {
    /// The sum of `terms` over `parts`, which are for points of the same dimension. Weights of 0 take no part; shares are
    /// of parts that [are of signs](is_of_signs).
    pub fn new(plans: Vec<Plan<T>>, terms: &[Term]) -> Self {
        let mut parts: Vec<Part<T>> = Vec::with_capacity(plans.len());
        for plan in plans {
            let ((column, block), facts) = (ends(&parts), plan.facts());
            // Saturates; the check of the facts refuses such sizes.
            let columns = column..column.saturating_add(facts.feature_dim());
            let blocks = block..block + facts.blocks.len();
            parts.push(Part { plan, columns, blocks });
        }
        let present = terms.iter().filter(|term| term.weight != 0.0);
        let products: Vec<Product> = present.flat_map(|term| products_of(&parts, *term)).collect();
        // A share is positive, and so are its features.
        let share = |k: usize| {
            terms.iter().any(|t| matches!(t.factor, Factor::Equal(of) | Factor::Unequal(of) if of == k))
        };
        let every = |promise: fn(&Facts) -> bool| {
            let mut kept = parts.iter().enumerate().filter(|(k, _)| !share(*k));
            kept.all(|(_, part)| promise(part.plan.facts())) && !products.iter().any(|p| p.negative)
        };
        let turned = products.iter().any(|product| matches!(product.left, Left::Signs(_, _, true)));
        let facts = Facts {
            symmetric: every(|facts| facts.symmetric) && !turned,
            non_negative: every(|facts| facts.non_negative),
            logarithms: true,
            ..Facts::new(
                parts.first().map_or(0, |part| part.plan.facts().input_dim),
                products.iter().flat_map(|p| std::iter::repeat_n(p.width(), p.blocks())).collect(),
            )
        };
        let room = ends(&parts);
        Sum { facts, parts, products, room }
    }

    /// Whether there are blocks that are absent from some points.
    pub fn has_slots(&self) -> bool {
        self.products.iter().any(|product| matches!(product.left, Left::Signs(..)))
    }

    pub fn parts(&self) -> impl Iterator<Item = &Plan<T>> {
        self.parts.iter().map(|part| &part.plan)
    }

    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Plan<T>> {
        self.parts.iter_mut().map(|part| &mut part.plan)
    }

    pub fn fill(&self, pass: Pass, x: PointsView<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        let mut room = scratch.take_batch();
        self.fill_parts(pass, x, &mut room, scratch);
        match pass.form {
            Form::Values => self.multiply(pass.side, &room, tile),
            Form::Logarithms => self.add(pass.side, &room, tile),
        }
        scratch.give_batch(room);
    }

    /// The features of all parts side by side.
    pub fn fill_parts(
        &self,
        pass: Pass,
        x: PointsView<'_, T>,
        room: &mut Batch<T>,
        scratch: &mut Scratch<T>,
    ) {
        room.resize(x.nrows(), self.room, pass.form);
        let mut tile = room.tile();
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
            // Side Y carries the signs of weights.
            let of_parts = parts.rows_in(rows.clone());
            numeric::products(isa, tile.rows_in(rows), of_parts, &self.products, side == Side::Y);
            tile.complete(end);
        }
    }

    /// As [`multiply`](Sum::multiply), where values are logarithms and have signs.
    fn add(&self, side: Side, parts: &Batch<T>, tile: &mut Tile<'_, T>) {
        for i in 0..tile.rows() {
            let (parts, row) = (parts.row(i), tile.row(i));
            let blocks = ranges(&self.facts.blocks).zip(row.log_scales).zip(self.blocks());
            for ((columns, scale), block) in blocks {
                *scale = block.scale(side, parts);
                if *scale != f64::NEG_INFINITY {
                    let sign: T = block.product.sign(side == Side::Y);
                    let (values, signs) = (&mut row.values[columns.clone()], &mut row.signs[columns]);
                    combine(block.product, parts.values, T::zero(), values, |a, b| a + b);
                    combine(block.product, parts.signs, T::one(), signs, |a, b| sign * a * b);
                }
            }
        }
    }

    /// All blocks, in the order of the features.
    fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        self.products
            .iter()
            .flat_map(|product| (0..product.blocks()).map(move |k| Block { product, slot: slot(product, k) }))
    }

    /// From cotangents of the products' values in a row to those of the values of the parts, which are added to `out`.
    pub fn pull_back(&self, side: Side, parts: Features<'_, T>, cotangents: &[T], out: &mut [T]) {
        let one = [T::one()];
        for (columns, block) in ranges(&self.facts.blocks).zip(self.blocks()) {
            if block.scale(side, parts) == f64::NEG_INFINITY {
                continue;
            }
            let product = block.product;
            let sign: T = product.sign(side == Side::Y);
            let (left, right) = factors(product, parts.values, &one);
            let rows = cotangents[columns].chunks_exact(right.len().max(1));
            for (p, (a, own)) in left.iter().zip(rows).enumerate() {
                for (q, cotangent) in own.iter().enumerate() {
                    let cotangent = sign * *cotangent;
                    out[product.right.start + q] += *a * cotangent;
                    if let Left::Block(left, _) = &product.left {
                        out[left.start + p] += right[q] * cotangent;
                    }
                }
            }
        }
    }

    /// Each part with its columns among those of all parts.
    pub fn each_part(&self) -> impl Iterator<Item = (&Plan<T>, Range<usize>)> {
        self.parts.iter().map(|part| (&part.plan, part.columns.clone()))
    }

    /// Columns, with gaps that hold anything, and blocks of all parts.
    pub fn room(&self) -> (usize, usize) {
        self.room
    }
}

/// Columns and blocks of all parts. Whole cache lines of columns: loops over short rows are up to twice as fast where no
/// vector lies across two lines.
fn ends<T: Real>(parts: &[Part<T>]) -> (usize, usize) {
    let (columns, blocks) = parts.last().map_or((0, 0), |last| (last.columns.end, last.blocks.end));
    (columns.checked_next_multiple_of(LINE / size_of::<T>()).unwrap_or(columns), blocks)
}

/// The factors of a block in a row of the parts' features; the left one is `one` if there is none.
fn factors<'a, T>(product: &Product, row: &'a [T], one: &'a [T]) -> (&'a [T], &'a [T]) {
    let left = if let Left::Block(left, _) = &product.left { &row[left.clone()] } else { one };
    (left, &row[product.right.clone()])
}

/// out ← combine(aₚ, b_q), for one p after the other; a is `one` if there is no left factor.
fn combine<T: Real>(product: &Product, row: &[T], one: T, out: &mut [T], combine: impl Fn(T, T) -> T) {
    let one = [one];
    let (left, right) = factors(product, row, &one);
    for (out, a) in out.chunks_exact_mut(right.len().max(1)).zip(left) {
        out.iter_mut().zip(right).for_each(|(out, b)| *out = combine(*a, *b));
    }
}

/// The products of a term: each block of the factor with each of the right part.
fn products_of<T: Real>(parts: &[Part<T>], term: Term) -> Vec<Product> {
    let (half_weight, negative) = (0.5 * term.weight.abs().ln(), term.weight < 0.0);
    let lefts: Vec<Left> = match term.factor {
        Factor::One => vec![Left::One],
        Factor::Estimate(part) => {
            blocks_of(&parts[part]).map(|(columns, scale)| Left::Block(columns, scale)).collect()
        }
        Factor::Equal(part) | Factor::Unequal(part) => {
            let turned = matches!(term.factor, Factor::Unequal(_));
            vec![Left::Signs(parts[part].columns.clone(), parts[part].blocks.start, turned)]
        }
    };
    let with = |left: &Left| {
        let of_right = |(right, right_scale)| {
            let left = left.clone();
            Product { left, right, right_scale, half_weight, negative }
        };
        blocks_of(&parts[term.right]).map(of_right).collect::<Vec<_>>()
    };
    lefts.iter().flat_map(with).collect()
}

/// The columns and scales of a part's blocks.
fn blocks_of<T: Real>(part: &Part<T>) -> impl Iterator<Item = (Range<usize>, usize)> {
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
