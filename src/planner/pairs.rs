//! [`Pairs`]: pairs of points on which errors are evaluated, and what errors on them say of all pairs.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use rand::seq::SliceRandom;

use super::forecast::{Basis, Expected, RelativeErrors};
use super::points::PlannedPoints;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::map::Target;

/// The number of pairs unless there are fewer.
const PAIRS: usize = 2000;
/// Of one set of points, the number of pairs of a point with itself.
const DIAGONAL: usize = 200;

/// Pairs of points with weights, and the exact kernel of each.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    /// A row for each pair.
    pub x: Array2<f64>,
    pub y: Array2<f64>,
    /// Which point of all each is: those of one set have the same numbers on both sides.
    points: Vec<[usize; 2]>,
    /// The share of all pairs that each stands for; they sum to 1.
    weights: Vec<f64>,
    /// ln |K|.
    pub ln_kernel: Vec<f64>,
}

impl Pairs {
    /// Pairs of the points that are kept, drawn with a seed.
    pub fn draw(data: &PlannedPoints, kernel: &dyn Kernel<f64>, seed: u64) -> Result<Self> {
        let mut pairs = if data.heads.len() > 1 {
            Self::of_heads(data, seed)
        } else {
            let [x, y] = &data.sides;
            Self::of_sides([x.points.view(), y.points.view()], data.one_set, x.count(), PAIRS, seed)
        };
        let ln =
            pairs.x.rows().into_iter().zip(pairs.y.rows()).map(|(x, y)| Ok(kernel.log_value(&x, &y)?.ln_abs));
        pairs.ln_kernel = ln.collect::<Result<_>>()?;
        Ok(pairs)
    }

    fn of_heads(data: &PlannedPoints, seed: u64) -> Self {
        let each = PAIRS.div_ceil(data.heads.len());
        let parts: Vec<Pairs> = (data.heads.iter().zip(0..))
            .map(|(head, k)| {
                let seed = seed.wrapping_add(k);
                Self::of_sides([head.queries.view(), head.keys.view()], false, usize::MAX, each, seed)
            })
            .collect();
        let share = (parts.len() as f64).recip();
        let views = |side: fn(&Pairs) -> &Array2<f64>| -> Array2<f64> {
            let rows: Vec<_> = parts.iter().map(|part| side(part).view()).collect();
            ndarray::concatenate(Axis(0), &rows).unwrap_or_default()
        };
        let (x, y) = (views(|part| &part.x), views(|part| &part.y));
        let mut first = 0;
        let (mut points, mut weights) = (Vec::new(), Vec::new());
        for part in &parts {
            points.extend(part.points.iter().map(|ids| ids.map(|id| first + id)));
            weights.extend(part.weights.iter().map(|weight| share * weight));
            first = points.iter().flatten().fold(first, |most, id| most.max(id + 1));
        }
        Pairs { x, y, points, weights, ln_kernel: Vec::new() }
    }

    /// All pairs if there are few; else each point with as many others as there are shifts of a random order.
    fn of_sides(
        [x, y]: [ArrayView2<'_, f64>; 2],
        one_set: bool,
        count: usize,
        most: usize,
        seed: u64,
    ) -> Self {
        let (n, l) = (x.nrows(), y.nrows());
        let mut rng = crate::rng(seed);
        let mut pairs: Vec<(usize, usize)> = if n.saturating_mul(l) <= 2 * most {
            (0..n).flat_map(|i| (0..l).map(move |j| (i, j))).collect()
        } else {
            let [mut left, mut right] = [(0..n).collect::<Vec<_>>(), (0..l).collect()];
            left.shuffle(&mut rng);
            if one_set {
                right.clone_from(&left);
            } else {
                right.shuffle(&mut rng);
            }
            // Of one set the shift is never 0.
            (0..most).map(|k| (left[k % n], right[(k + k / n + usize::from(one_set)) % l])).collect()
        };
        let mut weights = Vec::new();
        if one_set {
            pairs.retain(|(i, j)| i != j);
            let own = (count as f64).recip();
            let step = n.div_ceil(DIAGONAL).max(1);
            let diagonal: Vec<_> = (0..n).step_by(step).map(|i| (i, i)).collect();
            weights.extend(std::iter::repeat_n((1.0 - own) / pairs.len() as f64, pairs.len()));
            weights.extend(std::iter::repeat_n(own / diagonal.len() as f64, diagonal.len()));
            pairs.extend(diagonal);
        } else {
            weights.extend(std::iter::repeat_n((pairs.len() as f64).recip(), pairs.len()));
        }
        let rows = |of: fn(&(usize, usize)) -> usize| pairs.iter().map(of).collect::<Vec<_>>();
        let offset = if one_set { 0 } else { n };
        Pairs {
            x: x.select(Axis(0), &rows(|pair| pair.0)),
            y: y.select(Axis(0), &rows(|pair| pair.1)),
            points: pairs.iter().map(|(i, j)| [*i, offset + j]).collect(),
            weights,
            ln_kernel: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// So many of the pairs, evenly spaced, each with its share.
    pub fn some(&self, most: usize) -> Pairs {
        let step = self.len().div_ceil(most).max(1);
        // The last ones may be pairs of points with themselves, whose weights differ.
        let chosen: Vec<usize> = (0..self.len()).step_by(step).collect();
        let total: f64 = chosen.iter().map(|k| self.weights[*k]).sum();
        Pairs {
            x: self.x.select(Axis(0), &chosen),
            y: self.y.select(Axis(0), &chosen),
            points: chosen.iter().map(|k| self.points[*k]).collect(),
            weights: chosen.iter().map(|k| self.weights[*k] / total).collect(),
            ln_kernel: chosen.iter().map(|k| self.ln_kernel[*k]).collect(),
        }
    }

    /// The same pairs of points times a factor.
    pub fn times(&self, factor: f64, target: &Target) -> Result<Pairs> {
        let (x, y) = (&self.x * factor, &self.y * factor);
        let kernel = target.kernel::<f64>();
        let ln = |(x, y): (ArrayView1<'_, f64>, ArrayView1<'_, f64>)| {
            kernel.as_ref().map_or(Ok(f64::NAN), |kernel| Ok(kernel.log_value(&x, &y)?.ln_abs))
        };
        let ln_kernel = x.rows().into_iter().zip(y.rows()).map(ln).collect::<Result<_>>()?;
        Ok(Pairs { x, y, ln_kernel, ..self.clone() })
    }

    /// Σ (K̂ − K)²/Σ K² from (K̂ − K)²/K² of each pair.
    pub fn gram_of_relative_squares(&self, relative: &[f64]) -> f64 {
        let top = self.ln_kernel.iter().copied().fold(f64::NEG_INFINITY, f64::max);
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
        let top = self.ln_kernel.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let kernel: Vec<f64> = self.ln_kernel.iter().map(|ln| (2.0 * (ln - top)).exp()).collect();
        let squares: Vec<f64> = ln_squares.iter().map(|ln| (ln - 2.0 * top).exp()).collect();
        let sum = |values: &[f64]| -> f64 { values.iter().zip(&self.weights).map(|(v, w)| v * w).sum() };
        let total = sum(&kernel);
        let square = sum(&squares) / total;
        let residuals: Vec<f64> =
            squares.iter().zip(&kernel).map(|(square_of, kernel)| square_of - square * kernel).collect();
        let deviation = self.deviation_of_mean(&residuals) / total;
        let value = or_infinite(square.sqrt());
        let standard_error = if value > 0.0 { 0.5 * deviation / value } else { 0.0 };
        Expected { value, standard_error: or_infinite(standard_error), basis }
    }

    /// Errors relative to the kernel over pairs, from the same.
    pub fn relative(&self, ln_squares: &[f64], basis: Basis) -> RelativeErrors {
        let of = |(ln, kernel): (&f64, &f64)| or_infinite((0.5 * ln - kernel).exp());
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
        let mean: f64 = errors.iter().zip(&self.weights).map(|(error, weight)| error * weight).sum();
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

/// An error or its uncertainty: where it is beyond the range, nothing is known.
fn or_infinite(value: f64) -> f64 {
    if value.is_nan() { f64::INFINITY } else { value }
}
