//! [`Sum`]: a weighted sum of products of maps is a map.

use std::ops::Range;

use ndarray::ArrayView2;

use super::batch::{Batch, Features};
use super::plan::{Pass, Plan, ranges};
use super::{Facts, Form, Scratch, Side, Tile};
use crate::Real;
use crate::numeric::{self, Isa};

/// Σ wₜ Aₜ Bₜ: products of estimates are tensor products of features, sums are more blocks, and signs of weights are seen
/// on side Y.
#[derive(Clone, Debug)]
pub(crate) struct Sum<T> {
    pub facts: Facts,
    parts: Vec<Part<T>>,
    products: Vec<Product>,
    /// Features and blocks of all parts.
    room: (usize, usize),
}

/// A map, and where its features stand among those of all parts.
#[derive(Clone, Debug)]
struct Part<T> {
    plan: Plan<T>,
    columns: Range<usize>,
    blocks: Range<usize>,
}

/// A weight and the parts whose product it weighs: perhaps one, and then another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub weight: f64,
    pub left: Option<usize>,
    pub right: usize,
}

/// A block of features: a block of the left part times one of the right part.
#[derive(Clone, Debug)]
struct Product {
    left: Option<Block>,
    right: Block,
    /// Half the logarithm of the weight's magnitude, for each side.
    half_weight: f64,
    negative: bool,
    width: usize,
}

/// Where a block stands in a row of the features of all parts.
#[derive(Clone, Debug)]
struct Block {
    columns: Range<usize>,
    index: usize,
}

impl<T: Real> Sum<T> {
    /// The sum of `terms` over `parts`, which are for points of the same dimension. Weights of 0 take no part.
    pub fn new(plans: Vec<Plan<T>>, terms: &[Term]) -> Self {
        let mut parts: Vec<Part<T>> = Vec::with_capacity(plans.len());
        for plan in plans {
            let (column, block) = parts.last().map_or((0, 0), |last| (last.columns.end, last.blocks.end));
            let facts = plan.facts();
            // What is too large stays so, and is refused with the facts.
            let columns = column..column.saturating_add(facts.feature_dim());
            let blocks = block..block + facts.blocks.len();
            parts.push(Part { plan, columns, blocks });
        }
        let products: Vec<Product> =
            terms.iter().filter(|term| term.weight != 0.0).flat_map(|term| products(&parts, *term)).collect();
        let every = |promise: fn(&Facts) -> bool| {
            parts.iter().all(|part| promise(part.plan.facts())) && !products.iter().any(|p| p.negative)
        };
        let facts = Facts {
            symmetric: every(|facts| facts.symmetric),
            non_negative: every(|facts| facts.non_negative),
            logarithms: true,
            ..Facts::new(
                parts.first().map_or(0, |part| part.plan.facts().input_dim),
                products.iter().map(|product| product.width).collect(),
            )
        };
        let room = parts.last().map_or((0, 0), |last| (last.columns.end, last.blocks.end));
        Sum { facts, parts, products, room }
    }

    pub fn parts(&self) -> impl Iterator<Item = &Plan<T>> {
        self.parts.iter().map(|part| &part.plan)
    }

    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Plan<T>> {
        self.parts.iter_mut().map(|part| &mut part.plan)
    }

    pub fn fill(&self, pass: Pass, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
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
        x: ArrayView2<'_, T>,
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

    /// Writes products one after the other to the rows of a tile.
    fn multiply(&self, side: Side, parts: &Batch<T>, tile: &mut Tile<'_, T>) {
        let (isa, one) = (Isa::best(), [T::one()]);
        for i in 0..tile.rows() {
            let (parts, row) = (parts.row(i), tile.row(i));
            let mut values = row.values;
            for (product, scale) in self.products.iter().zip(row.log_scales) {
                let (own, rest) = values.split_at_mut(product.width);
                *scale = product.scale(parts.log_scales);
                // An absent block is neither computed nor read.
                if *scale != f64::NEG_INFINITY {
                    let left = product.left.as_ref().map_or(&one[..], |left| left.of(parts.values));
                    numeric::outer(isa, own, product.sign(side), left, product.right.of(parts.values));
                }
                values = rest;
            }
            tile.complete(i + 1);
        }
    }

    /// As [`multiply`](Sum::multiply), where values are logarithms and have signs.
    fn add(&self, side: Side, parts: &Batch<T>, tile: &mut Tile<'_, T>) {
        for i in 0..tile.rows() {
            let (parts, row) = (parts.row(i), tile.row(i));
            let (mut values, mut signs) = (row.values, row.signs);
            for (product, scale) in self.products.iter().zip(row.log_scales) {
                let (own, rest) = values.split_at_mut(product.width);
                let (own_signs, rest_of_signs) = signs.split_at_mut(own.len().min(signs.len()));
                *scale = product.scale(parts.log_scales);
                if *scale != f64::NEG_INFINITY {
                    product.combine(parts, side, own, own_signs);
                }
                (values, signs) = (rest, rest_of_signs);
            }
        }
    }

    /// From cotangents of the products' values in row `i` to those of the values of the parts, which are added to
    /// `out`.
    pub fn pull_back(&self, side: Side, parts: Features<'_, T>, cotangents: &[T], out: &mut [T]) {
        let (mut rest, one) = (cotangents, [T::one()]);
        for product in &self.products {
            let (own, later) = rest.split_at(product.width);
            rest = later;
            if product.scale(parts.log_scales) == f64::NEG_INFINITY {
                continue;
            }
            let (sign, right) = (product.sign::<T>(side), product.right.of(parts.values));
            let left = product.left.as_ref().map_or(&one[..], |left| left.of(parts.values));
            for (p, (a, own)) in left.iter().zip(own.chunks_exact(right.len().max(1))).enumerate() {
                for (q, cotangent) in own.iter().enumerate() {
                    let cotangent = sign * *cotangent;
                    out[product.right.columns.start + q] += *a * cotangent;
                    if let Some(left) = &product.left {
                        out[left.columns.start + p] += right[q] * cotangent;
                    }
                }
            }
        }
    }

    /// Each part with its columns and blocks among those of all parts.
    pub fn each_part(&self) -> impl Iterator<Item = (&Plan<T>, Range<usize>, Range<usize>)> {
        self.parts.iter().map(|part| (&part.plan, part.columns.clone(), part.blocks.clone()))
    }

    /// Features and blocks of all parts.
    pub fn room(&self) -> (usize, usize) {
        self.room
    }
}

impl Product {
    #[inline]
    fn sign<T: Real>(&self, side: Side) -> T {
        if self.negative && side == Side::Y { -T::one() } else { T::one() }
    }

    /// The logarithmic scale, from those of the parts.
    #[inline]
    fn scale(&self, parts: &[f64]) -> f64 {
        self.left.as_ref().map_or(0.0, |left| parts[left.index]) + parts[self.right.index] + self.half_weight
    }

    /// The sums of logarithms and the products of signs.
    fn combine<T: Real>(&self, parts: Features<'_, T>, side: Side, values: &mut [T], signs: &mut [T]) {
        let sign = self.sign::<T>(side);
        let of = |row: &'_ [T], one: T| -> Vec<T> {
            self.left.as_ref().map_or(vec![one], |left| left.of(row).to_vec())
        };
        let width = self.right.columns.len().max(1);
        let (left, left_signs) = (of(parts.values, T::zero()), of(parts.signs, T::one()));
        let (right, right_signs) = (self.right.of(parts.values), self.right.of(parts.signs));
        let rows = values.chunks_exact_mut(width).zip(signs.chunks_exact_mut(width));
        for ((values, signs), (a, a_sign)) in rows.zip(left.iter().zip(&left_signs)) {
            values.iter_mut().zip(right).for_each(|(out, b)| *out = *a + *b);
            signs.iter_mut().zip(right_signs).for_each(|(out, b)| *out = sign * *a_sign * *b);
        }
    }
}

impl Block {
    #[inline]
    fn of<'a, T>(&self, row: &'a [T]) -> &'a [T] {
        &row[self.columns.clone()]
    }
}

/// The blocks of a term: each block of the left part with each of the right part.
fn products<T: Real>(parts: &[Part<T>], term: Term) -> Vec<Product> {
    let blocks = |part: usize| -> Vec<Block> {
        let part = &parts[part];
        let shifted = |(columns, index): (Range<usize>, usize)| Block {
            columns: part.columns.start.saturating_add(columns.start)
                ..part.columns.start.saturating_add(columns.end),
            index,
        };
        ranges(&part.plan.facts().blocks).zip(part.blocks.clone()).map(shifted).collect()
    };
    let left = term.left.map_or(vec![None], |part| blocks(part).into_iter().map(Some).collect());
    let right = blocks(term.right);
    let product = |left: &Option<Block>, right: &Block| Product {
        width: left.as_ref().map_or(1, |left| left.columns.len()).saturating_mul(right.columns.len()),
        left: left.clone(),
        right: right.clone(),
        half_weight: 0.5 * term.weight.abs().ln(),
        negative: term.weight < 0.0,
    };
    left.iter().flat_map(|left| right.iter().map(move |right| product(left, right))).collect()
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
