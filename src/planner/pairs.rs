//! [`Pairs`]: pairs of points on which errors are evaluated, and what errors on them say of all pairs.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, Axis, s};
use rand::Rng;
use rand::seq::SliceRandom;

use super::forecast::{Basis, Expected, RelativeErrors};
use super::points::PlannedPoints;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::map::Map;

/// The number of pairs unless there are fewer.
const PAIRS: usize = 2000;
/// Of one set of points, the number of pairs of a point with itself.
const DIAGONAL: usize = 200;

/// Points of a side all of whose pairs are taken in draws.
pub(super) const SIDE: usize = 80;
/// ln |K| below which estimates are taken from products of features.
const IN_RANGE: f64 = 300.0;
/// Numbers of features that are held for products, and for pairs of a sample.
const HELD: usize = 1 << 24;
const HELD_OF_PAIRS: usize = 1 << 22;

/// Pairs of points with weights, and the exact kernel of each.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    /// The points of each side.
    x: Array2<f64>,
    y: Array2<f64>,
    /// The rows of `x` and of `y` whose points are paired.
    rows: Vec<(usize, usize)>,
    /// Which point of all each is: those of one set have the same numbers on both sides.
    points: Vec<[usize; 2]>,
    /// The share of all pairs that each stands for; they sum to 1.
    weights: Vec<f64>,
    /// ln |K|.
    pub ln_kernel: Vec<f64>,
    /// Whose pairs these are, in their order, if they are all pairs of few points and products of features may be taken.
    blocks: Vec<Block>,
    /// Whether these are all pairs of all points, and not a sample.
    is_all: bool,
}

/// The rows of a group of points on both sides, and the numbers of its pairs.
#[derive(Clone, Debug)]
struct Block {
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
        let block = Block { x: 0..all.x.nrows(), y: 0..all.y.nrows(), pairs: 0..all.len() };
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

    /// Those of several groups, each with the same share.
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
            blocks.extend(part.blocks.into_iter().map(|Block { x, y, pairs }| Block {
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
                false => {
                    let side = |x: &Array2<f64>, of: fn(&(usize, usize)) -> usize| {
                        x.select(Axis(0), &self.rows.iter().map(of).collect::<Vec<_>>())
                    };
                    map.log_estimate_rows(&side(&self.x, |pair| pair.0), &side(&self.y, |pair| pair.1))?
                }
            };
            let relative = estimates.iter().zip(&self.ln_kernel).map(|(k, ln)| square(k.scaled(-ln).value()));
            return Ok(relative.collect());
        }
        let mut relative = Vec::with_capacity(self.len());
        for Block { x, y, pairs } in &self.blocks {
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

    /// The same pairs of points times a factor.
    pub fn times(&self, factor: f64, kernel: &dyn Kernel<f64>) -> Result<Pairs> {
        let (x, y) = (&self.x * factor, &self.y * factor);
        Pairs { x, y, blocks: Vec::new(), ..self.clone() }.with_kernel(kernel)
    }

    /// The largest ln |K|.
    fn top(&self) -> f64 {
        self.ln_kernel.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Σ w v.
    fn mean(&self, values: &[f64]) -> f64 {
        values.iter().zip(&self.weights).map(|(value, weight)| value * weight).sum()
    }

    /// Σ (K̂ − K)²/Σ K² from (K̂ − K)²/K² of each pair.
    pub fn gram_of_relative_squares(&self, relative: &[f64]) -> f64 {
        let top = self.top();
        let (mut squares, mut total) = (0.0, 0.0);
        for ((relative, ln), weight) in relative.iter().zip(&self.ln_kernel).zip(&self.weights) {
            let kernel = weight * (2.0 * (ln - top)).exp();
            // A pair without weight counts for nothing, be its error infinite.
            squares += if kernel > 0.0 { kernel * relative } else { 0.0 };
            total += kernel;
        }
        squares / total
    }

    /// √(Σ E(K̂ − K)²/Σ K²) from ln E(K̂ − K)² of each pair: the root of the expected squared relative Frobenius error of the Gram matrix.
    pub fn gram(&self, ln_squares: &[f64], basis: Basis) -> Expected {
        let top = self.top();
        let kernel: Vec<f64> = self.ln_kernel.iter().map(|ln| (2.0 * (ln - top)).exp()).collect();
        let squares: Vec<f64> = ln_squares.iter().map(|ln| exp_of_difference(*ln, 2.0 * top)).collect();
        let total = self.mean(&kernel);
        let square = self.mean(&squares) / total;
        let residuals: Vec<f64> =
            squares.iter().zip(&kernel).map(|(square_of, kernel)| square_of - square * kernel).collect();
        let deviation = self.deviation_of_mean(&residuals) / total;
        let value = or_infinite(square.sqrt());
        let standard_error = if value > 0.0 { 0.5 * deviation / value } else { 0.0 };
        Expected { value, standard_error: or_infinite(standard_error), basis }
    }

    /// Errors relative to the kernel over pairs, from the same.
    pub fn relative(&self, ln_squares: &[f64], basis: Basis) -> RelativeErrors {
        let of = |(ln, kernel): (&f64, &f64)| exp_of_difference(0.5 * ln, *kernel);
        let errors: Vec<f64> = ln_squares.iter().zip(&self.ln_kernel).map(of).collect();
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|a, b| errors[*a].total_cmp(&errors[*b]));
        let mut below = 0.0;
        let sorted: Vec<(f64, f64)> = order
            .into_iter()
            .map(|k| {
                below += self.weights[k];
                (below, errors[k])
            })
            .collect();
        let at = |share: f64| {
            let place = sorted.partition_point(|(below, _)| *below < share - 1e-12);
            sorted.get(place).or(sorted.last()).map_or(f64::NAN, |(_, error)| *error)
        };
        let points = self.independent();
        let quantile = |share: f64| {
            let spread = (share * (1.0 - share) / points).sqrt();
            let [low, high] = [share - spread, share + spread].map(|share| at(share.clamp(0.0, 1.0)));
            Expected { value: at(share), standard_error: or_infinite(0.5 * (high - low)), basis }
        };
        let mean = self.mean(&errors);
        let from_mean: Vec<f64> = errors.iter().map(|error| error - mean).collect();
        let beyond: f64 = errors.iter().zip(&self.weights).filter(|(e, _)| **e > 1.0).map(|(_, w)| w).sum();
        let of_share = (beyond * (1.0 - beyond) / points).max(0.0).sqrt();
        RelativeErrors {
            mean: Expected {
                value: mean,
                standard_error: or_infinite(self.deviation_of_mean(&from_mean)),
                basis,
            },
            median: quantile(0.5),
            ninety: quantile(0.9),
            ninety_nine: quantile(0.99),
            beyond_one: Expected { value: beyond.clamp(0.0, 1.0) + 0.0, standard_error: of_share, basis },
        }
    }

    /// How uncertain the ratio of errors of two recipes is for another sample of points, relative to it: of the errors of the Gram matrix, and
    /// of mean relative errors.
    pub fn ratio_uncertainty(&self, own: &[f64], other: &[f64]) -> [f64; 2] {
        let top = self.top();
        let gram = |ln: f64, _: f64| exp_of_difference(ln, 2.0 * top);
        let relative = |ln: f64, kernel: f64| exp_of_difference(0.5 * ln, kernel);
        // A squared error varies relatively twice as much as an error.
        [0.5 * self.of_ratio(own, other, gram), self.of_ratio(own, other, relative)]
    }

    fn of_ratio(&self, own: &[f64], other: &[f64], error: impl Fn(f64, f64) -> f64) -> f64 {
        let errors = |ln: &[f64]| -> Vec<f64> {
            ln.iter().zip(&self.ln_kernel).map(|(ln, kernel)| error(*ln, *kernel)).collect()
        };
        let (own, other) = (errors(own), errors(other));
        let (of_own, of_other) = (self.mean(&own), self.mean(&other));
        let residuals: Vec<f64> = own.iter().zip(&other).map(|(a, b)| a - b * (of_own / of_other)).collect();
        if of_own > 0.0 { or_infinite(self.deviation_of_mean(&residuals) / of_own) } else { 0.0 }
    }

    /// The standard deviation of Σ w r over samples of points: pairs that share a point vary together.
    fn deviation_of_mean(&self, residuals: &[f64]) -> f64 {
        let points = self.points.iter().flatten().fold(0, |most, id| most.max(id + 1));
        let mut sums = vec![0.0; points];
        let mut own = 0.0;
        for ((ids, weight), residual) in self.points.iter().zip(&self.weights).zip(residuals) {
            let part = weight * residual;
            sums[ids[0]] += part;
            if ids[0] != ids[1] {
                sums[ids[1]] += part;
                own += part * part;
            }
        }
        // A pair is in the sums of both its points.
        (sums.iter().map(|sum| sum * sum).sum::<f64>() - own).max(own).sqrt()
    }

    /// About how many independent pairs there are.
    fn independent(&self) -> f64 {
        let squares: f64 = self.weights.iter().map(|weight| weight * weight).sum();
        let mut left: Vec<usize> = self.points.iter().map(|ids| ids[0]).collect();
        left.sort_unstable();
        left.dedup();
        squares.recip().min(left.len() as f64).max(1.0)
    }
}

/// Points of both sides of which every pair may occur.
struct Group {
    x: Array2<f64>,
    y: Array2<f64>,
    one_set: bool,
    /// The number of all points of side X, of which these are a sample.
    count: usize,
}

/// The heads of attention, or all points.
fn groups(data: &PlannedPoints) -> Vec<Group> {
    let [x, y] = &data.sides;
    let of = |x: &Array2<f64>, y: &Array2<f64>| Group {
        x: x.clone(),
        y: y.clone(),
        one_set: data.one_set,
        count: data.sides[0].count(),
    };
    match data.heads.len() {
        0 | 1 => vec![of(&x.points, &y.points)],
        _ => data.heads.iter().map(|head| of(&head.queries, &head.keys)).collect(),
    }
}

impl Group {
    /// Whether all pairs are hardly more than so many.
    fn is_small(&self, most: usize) -> bool {
        self.x.nrows().saturating_mul(self.y.nrows()) <= 2 * most
    }

    fn all_pairs(&self) -> Vec<(usize, usize)> {
        let (n, l) = (self.x.nrows(), self.y.nrows());
        (0..n).flat_map(|i| (0..l).map(move |j| (i, j))).filter(|(i, j)| !self.one_set || i != j).collect()
    }

    /// All pairs if there are few; else each point with as many others as there are shifts of a random order. Of one set, none of
    /// a point with itself.
    fn pairs(&self, most: usize, rng: &mut impl Rng) -> Vec<(usize, usize)> {
        if self.is_small(most) {
            return self.all_pairs();
        }
        let (n, l) = (self.x.nrows(), self.y.nrows());
        let [mut left, mut right] = [(0..n).collect::<Vec<_>>(), (0..l).collect()];
        left.shuffle(rng);
        if self.one_set {
            right.clone_from(&left);
        } else {
            right.shuffle(rng);
        }
        (0..most).map(|k| (left[k % n], right[(k + k / n + usize::from(self.one_set)) % l])).collect()
    }

    /// Some of the points of each side, drawn at random.
    fn some(&self, size: usize, rng: &mut impl Rng) -> Group {
        let mut rows = |x: &Array2<f64>| {
            let mut rows: Vec<usize> = (0..x.nrows()).collect();
            rows.shuffle(rng);
            rows.truncate(size);
            rows
        };
        let left = rows(&self.x);
        let right = if self.one_set { left.clone() } else { rows(&self.y) };
        Group { x: self.x.select(Axis(0), &left), y: self.y.select(Axis(0), &right), ..*self }
    }

    /// The pairs with the share of each: of one set, pairs of some points with themselves are added, with their own.
    fn with_diagonal(&self, pairs: &[(usize, usize)]) -> (Vec<(usize, usize)>, Vec<f64>) {
        let own = if self.one_set { (self.count as f64).recip() } else { 0.0 };
        // The left points of a sample of pairs are in random order.
        let mut points: Vec<usize> = match self.x.nrows() <= DIAGONAL {
            true => (0..self.x.nrows()).collect(),
            false => pairs.iter().map(|pair| pair.0).take(DIAGONAL).collect(),
        };
        points.sort_unstable();
        let diagonal: Vec<_> = points.into_iter().filter(|_| self.one_set).map(|i| (i, i)).collect();
        let mut weights = vec![(1.0 - own) / pairs.len() as f64; pairs.len()];
        weights.resize(pairs.len() + diagonal.len(), own / diagonal.len() as f64);
        (pairs.iter().copied().chain(diagonal).collect(), weights)
    }
}

/// e^{a − b}; infinite where rounding leaves no digit of the difference.
fn exp_of_difference(a: f64, b: f64) -> f64 {
    let lost = (a.abs() + b.abs()) * f64::EPSILON > 0.1 && a > f64::NEG_INFINITY;
    if lost { f64::INFINITY } else { or_infinite((a - b).exp()) }
}

/// An error or its uncertainty: where it is beyond the range, nothing is known.
pub(super) fn or_infinite(value: f64) -> f64 {
    if value.is_nan() { f64::INFINITY } else { value }
}
