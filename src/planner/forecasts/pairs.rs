//! [`Pairs`]: pairs of points on which errors are evaluated, and what errors on them say of all pairs.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, Axis, s};
use rand::Rng;
use rand::seq::SliceRandom;

use super::closed_forms::ln_square;
use super::expected::or_infinite;
use super::groups::{Group, groups};
use crate::SignedLog;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::map::Map;
use crate::planner::question::PlannedPoints;

/// The number of pairs unless there are fewer.
const PAIRS: usize = 2000;

/// Points of a side all of whose pairs are taken in draws.
pub(crate) const SIDE: usize = 80;
/// ln |K| below which estimates are taken from products of features.
const IN_RANGE: f64 = 300.0;
/// Numbers of features that are held for products, and for pairs of a sample.
const HELD: usize = 1 << 24;
const HELD_OF_PAIRS: usize = 1 << 22;

/// Pairs of points with weights, and the exact kernel of each.
#[derive(Clone, Debug)]
pub(crate) struct Pairs {
    /// The points of each side.
    x: Array2<f64>,
    y: Array2<f64>,
    /// The rows of `x` and of `y` whose points are paired.
    rows: Vec<(usize, usize)>,
    /// The numbers of both points among all points; of one set they are the same on both sides.
    pub(super) points: Vec<[usize; 2]>,
    /// The share of all pairs that each stands for; they sum to 1.
    pub(super) weights: Vec<f64>,
    /// ln |K|.
    pub ln_kernel: Vec<f64>,
    /// The groups whose pairs these are, in order, if they are all pairs of few points and products of features may be taken.
    blocks: Vec<GroupRows>,
    /// Whether these are all pairs of all points, and not a sample.
    is_all: bool,
}

/// The rows of a group of points on both sides, and the numbers of its pairs.
#[derive(Clone, Debug)]
struct GroupRows {
    x: Range<usize>,
    y: Range<usize>,
    pairs: Range<usize>,
}

impl Pairs {
    /// Pairs of the points that are kept, drawn with a seed.
    pub fn draw(data: &PlannedPoints, kernel: &dyn Kernel<f64>, seed: u64) -> Result<Self> {
        let groups = groups(data);
        let most = PAIRS.div_ceil(groups.len());
        if groups.iter().all(|group| group.is_small(most)) {
            let all = Self::joined(groups.iter().map(Self::all_of).collect()).with_kernel(kernel)?;
            let is_all = data.are_all_kept();
            // Products of features may underflow where logarithms hold small values.
            let is_held = all.ln_kernel.iter().all(|ln| *ln > -IN_RANGE);
            let blocks = if is_held { all.blocks } else { Vec::new() };
            return Ok(Pairs { blocks, is_all, ..all });
        }
        let parts = groups.iter().zip(0..).map(|(group, k)| {
            let pairs = group.pairs(most, &mut crate::rng(seed.wrapping_add(k)));
            Self::of_group(group, &pairs)
        });
        Self::joined(parts.collect()).with_kernel(kernel)
    }

    /// All pairs of few of the points, for draws: with as many features to compute, far more pairs than others.
    pub fn block(data: &PlannedPoints, kernel: &dyn Kernel<f64>, seed: u64) -> Result<Self> {
        let groups = groups(data);
        let size = (SIDE as f64 / (groups.len() as f64).sqrt()).ceil() as usize;
        let few = |(group, k): (&Group, u64)| group.some(size, &mut crate::rng(seed.wrapping_add(k)));
        let parts = groups.iter().zip(0..).map(few).map(|few| Self::all_of(&few));
        Self::joined(parts.collect()).with_kernel(kernel)
    }

    /// All pairs of a group.
    fn all_of(group: &Group) -> Self {
        let all = Self::of_group(group, &group.all_pairs());
        let block = GroupRows { x: 0..all.x.nrows(), y: 0..all.y.nrows(), pairs: 0..all.len() };
        Pairs { blocks: vec![block], ..all }
    }

    fn of_group(group: &Group, pairs: &[(usize, usize)]) -> Self {
        let (rows, weights) = group.with_diagonal(pairs);
        let offset = if group.one_set { 0 } else { group.x.nrows() };
        Pairs {
            x: group.x.clone(),
            y: group.y.clone(),
            points: rows.iter().map(|(i, j)| [*i, offset + j]).collect(),
            rows,
            weights,
            ln_kernel: Vec::new(),
            blocks: Vec::new(),
            is_all: false,
        }
    }

    /// The pairs of several groups, of which each has the same share.
    fn joined(parts: Vec<Pairs>) -> Self {
        let share = (parts.len() as f64).recip();
        let side = |side: fn(&Pairs) -> &Array2<f64>| -> Array2<f64> {
            let points: Vec<_> = parts.iter().map(|part| side(part).view()).collect();
            ndarray::concatenate(Axis(0), &points).unwrap_or_default()
        };
        let (x, y) = (side(|part| &part.x), side(|part| &part.y));
        let (mut first, mut rows, mut points) = (0, Vec::new(), Vec::new());
        let (mut weights, mut blocks, mut before) = (Vec::new(), Vec::new(), (0, 0));
        for part in parts {
            let moved = |range: Range<usize>, by: usize| range.start + by..range.end + by;
            blocks.extend(part.blocks.into_iter().map(|GroupRows { x, y, pairs }| GroupRows {
                x: moved(x, before.0),
                y: moved(y, before.1),
                pairs: moved(pairs, rows.len()),
            }));
            rows.extend(part.rows.iter().map(|(i, j)| (before.0 + i, before.1 + j)));
            points.extend(part.points.iter().map(|ids| ids.map(|id| first + id)));
            weights.extend(part.weights.iter().map(|weight| share * weight));
            before = (before.0 + part.x.nrows(), before.1 + part.y.nrows());
            first = points.iter().flatten().fold(first, |most, id| most.max(id + 1));
        }
        Pairs { x, y, rows, points, weights, ln_kernel: Vec::new(), blocks, is_all: false }
    }

    /// The points of each pair.
    pub fn iter(&self) -> impl Iterator<Item = (ArrayView1<'_, f64>, ArrayView1<'_, f64>)> {
        self.rows.iter().map(|(i, j)| (self.x.row(*i), self.y.row(*j)))
    }

    /// The dimension of the points.
    pub fn dim(&self) -> usize {
        self.x.ncols()
    }

    /// Whether these are all pairs of all points, and not a sample of them.
    pub fn is_all(&self) -> bool {
        self.is_all
    }

    fn with_kernel(self, kernel: &dyn Kernel<f64>) -> Result<Self> {
        let ln_kernel =
            self.iter().map(|(x, y)| Ok(kernel.log_value(&x, &y)?.ln_abs)).collect::<Result<_>>()?;
        Ok(Pairs { ln_kernel, ..self })
    }

    /// Whether estimates stay within the range of numbers. Tiny ones may leave it: their relative errors are beyond 1 then.
    pub fn is_in_range(&self) -> bool {
        self.ln_kernel.iter().all(|ln| *ln < IN_RANGE)
    }

    /// ((K̂ − K)/K)² of a map at each pair.
    pub fn relative_squares(&self, map: &Map<f64>) -> Result<Vec<f64>> {
        let square = |ratio: f64| (ratio - 1.0).powi(2);
        let numbers = |rows: usize| map.feature_dim().saturating_mul(rows);
        let products = self.blocks.iter().all(|block| numbers(block.x.len() + block.y.len()) <= HELD);
        if self.blocks.is_empty() || !self.is_in_range() || !products {
            let rows = self.x.nrows().min(self.len()) + self.y.nrows().min(self.len());
            let estimates = match numbers(rows) <= HELD_OF_PAIRS {
                true => map.log_estimate_pairs(&self.x, &self.y, &self.rows)?,
                false => self.log_estimates(map, &self.rows)?,
            };
            let relative = estimates.iter().zip(&self.ln_kernel).map(|(k, ln)| square(k.scaled(-ln).value()));
            return Ok(relative.collect());
        }
        let mut relative = Vec::with_capacity(self.len());
        for GroupRows { x, y, pairs } in &self.blocks {
            let (left, right) = (self.x.slice(s![x.clone(), ..]), self.y.slice(s![y.clone(), ..]));
            let gram = map.gram(&left, &right)?;
            relative.extend(self.rows[pairs.clone()].iter().map(|(i, j)| gram[[i - x.start, j - y.start]]));
        }
        relative
            .iter_mut()
            .zip(&self.ln_kernel)
            .for_each(|(k, ln)| *k = or_infinite(square(*k * (-ln).exp())));
        Ok(relative)
    }

    /// ln (K̂ − K)² of a map at the pairs whose points, by their numbers, are wanted; each with the number of the pair.
    pub fn ln_squares(
        &self,
        map: &Map<f64>,
        wanted: impl Fn(&[usize; 2]) -> bool,
    ) -> Result<Vec<(usize, f64)>> {
        let pairs: Vec<usize> = (0..self.len()).filter(|pair| wanted(&self.points[*pair])).collect();
        let rows: Vec<(usize, usize)> = pairs.iter().map(|pair| self.rows[*pair]).collect();
        let estimates = self.log_estimates(map, &rows)?;
        let squares = pairs.iter().zip(estimates);
        Ok(squares.map(|(pair, estimate)| (*pair, ln_square(estimate, self.ln_kernel[*pair]))).collect())
    }

    /// The estimates of a map at pairs of these rows, point by point.
    fn log_estimates(&self, map: &Map<f64>, rows: &[(usize, usize)]) -> Result<Array1<SignedLog>> {
        let [x, y]: [Vec<usize>; 2] =
            [rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()];
        map.log_estimate_rows(&self.x.select(Axis(0), &x), &self.y.select(Axis(0), &y))
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// A sample of at most `most` pairs, each with its share. It is random, since an order of the points may have a period.
    pub fn some(&self, most: usize, rng: &mut impl Rng) -> Pairs {
        let mut chosen: Vec<usize> = (0..self.len()).collect();
        chosen.shuffle(rng);
        chosen.truncate(most);
        chosen.sort_unstable();
        let total: f64 = chosen.iter().map(|k| self.weights[*k]).sum();
        Pairs {
            x: self.x.clone(),
            y: self.y.clone(),
            rows: chosen.iter().map(|k| self.rows[*k]).collect(),
            points: chosen.iter().map(|k| self.points[*k]).collect(),
            weights: chosen.iter().map(|k| self.weights[*k] / total).collect(),
            ln_kernel: chosen.iter().map(|k| self.ln_kernel[*k]).collect(),
            blocks: Vec::new(),
            is_all: self.is_all && chosen.len() == self.len(),
        }
    }

    /// These pairs, with points that are multiplied by a factor.
    pub fn times(&self, factor: f64, kernel: &dyn Kernel<f64>) -> Result<Pairs> {
        let (x, y) = (&self.x * factor, &self.y * factor);
        Pairs { x, y, blocks: Vec::new(), ..self.clone() }.with_kernel(kernel)
    }
}
