//! [`ClassSample`]: a random sample of the rows of a stream, by which it sees how far its model has moved.

use ndarray::{Array2, ArrayView1};

use super::{Glm, GlmLoss, Response};
use crate::Real;
use crate::digest::avalanche;
use crate::engine::PointsView;
use crate::error::Result;
use crate::numeric::{matrix_of, matrix_view};

/// The number of rows of a sample.
const SIZE: usize = 512;

/// Rows in memory: points, n × d, with responses, n × k, and positive weights.
#[derive(Clone, Debug)]
pub(super) struct WeightedRows<T> {
    pub points: Vec<T>,
    pub y: Vec<f64>,
    pub weights: Vec<f64>,
}

/// A uniform sample of the rows of a class, with the decision values at which their losses are linearised.
#[derive(Clone, Debug)]
pub(super) struct ClassSample<T> {
    pub rows: WeightedRows<T>,
    /// The number of each row in the stream. The rows whose numbers have the least hashes are kept.
    pub numbers: Vec<u64>,
    /// The decision values, n × k.
    pub eta: Vec<f64>,
    /// The number of rows from which the sample is taken.
    pub count: u64,
}

/// A row that may enter a sample.
pub(super) struct SampledRow<'a, T> {
    pub number: u64,
    pub point: &'a [T],
    pub y: &'a [f64],
    pub weight: f64,
    pub eta: &'a [f64],
}

impl<T: Real> WeightedRows<T> {
    pub fn none() -> Self {
        WeightedRows { points: Vec::new(), y: Vec::new(), weights: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }

    pub fn points(&self, d: usize) -> PointsView<'_, T> {
        matrix_view(self.len(), d, &self.points).into()
    }

    /// The responses, with weights that are multiplied by a factor.
    pub fn response(&self, values: usize, factor: f64) -> Response {
        let weights = self.weights.iter().map(|weight| factor * weight).collect();
        Response { y: matrix_of(self.len(), values, self.y.clone()), weights }
    }

    /// Appends the rows that have a weight.
    pub fn append(&mut self, x: PointsView<'_, T>, response: &Response) -> Result<()> {
        let x = x.to_dense()?;
        for (i, weight) in response.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            self.points.extend(x.row(i));
            self.y.extend(response.y.row(i));
            self.weights.push(*weight);
        }
        Ok(())
    }
}

impl<T: Real> ClassSample<T> {
    pub fn empty() -> Self {
        ClassSample { rows: WeightedRows::none(), numbers: Vec::new(), eta: Vec::new(), count: 0 }
    }

    /// The number of rows of the stream for which a row of the sample stands.
    pub fn factor(&self) -> f64 {
        self.count as f64 / self.numbers.len().max(1) as f64
    }

    /// The decision values at which losses are linearised, n × k.
    pub fn eta(&self, values: usize) -> Array2<f64> {
        matrix_of(self.rows.len(), values, self.eta.clone())
    }

    /// The place where the row of a number is kept, which is that of the row with the largest hash or behind all; `None` if the row
    /// is not kept.
    pub fn place(&self, number: u64) -> Option<usize> {
        if self.numbers.len() < SIZE {
            return Some(self.numbers.len());
        }
        let last = (0..SIZE).max_by_key(|place| hash(self.numbers[*place]))?;
        (hash(number) < hash(self.numbers[last])).then_some(last)
    }

    /// Puts a row into its place. The row must be counted separately.
    pub fn put(&mut self, place: usize, row: &SampledRow<'_, T>) {
        put(&mut self.rows.points, place, row.point);
        put(&mut self.rows.y, place, row.y);
        put(&mut self.rows.weights, place, &[row.weight]);
        put(&mut self.numbers, place, &[row.number]);
        put(&mut self.eta, place, row.eta);
    }

    /// The sample of the rows of both.
    pub fn merge(&mut self, other: &Self) {
        let len = other.numbers.len().max(1);
        let (d, k) = (other.rows.points.len() / len, other.eta.len() / len);
        for (i, number) in other.numbers.iter().copied().enumerate() {
            let Some(place) = self.place(number) else { continue };
            let (point, entries) = (i * d..(i + 1) * d, i * k..(i + 1) * k);
            let row = SampledRow {
                number,
                point: &other.rows.points[point],
                y: &other.rows.y[entries.clone()],
                weight: other.rows.weights[i],
                eta: &other.eta[entries],
            };
            self.put(place, &row);
        }
        self.count += other.count;
    }

    /// The sums of |∂/∂η| over the rows for which the sample stands: of its difference from the linearised derivative, and of the
    /// derivative itself.
    pub fn drift(&self, model: &Glm<T>) -> Result<[f64; 2]> {
        let values = model.values();
        let response = self.rows.response(values, self.factor());
        let now = model.linear.scores(self.rows.points(model.map().dim()))?;
        let then = self.eta(values);
        let [new, old] = [&now, &then].map(|eta| model.loss.terms(eta, &response));
        let [mut beyond, mut whole] = [0.0; 2];
        for (i, change) in (&now - &then).rows().into_iter().enumerate() {
            let second = old.second.row(i);
            let mean = second.dot(&change);
            for k in 0..values {
                let bend = match values {
                    1 => mean,
                    _ => response.weights[i] * second[k] * (change[k] - mean),
                };
                beyond += (new.pull[[i, k]] - old.pull[[i, k]] + bend).abs();
                whole += new.pull[[i, k]].abs();
            }
        }
        Ok([beyond, whole])
    }
}

impl<T: Real> Glm<T> {
    /// The number of samples of a stream: one for each class, one for counts.
    pub(super) fn strata(&self) -> usize {
        self.present.len().max(1)
    }

    /// The sample to which a row belongs.
    pub(super) fn stratum(&self, y: ArrayView1<'_, f64>) -> usize {
        match self.loss {
            GlmLoss::Poisson => 0,
            GlmLoss::SquaredHinge => usize::from(y[0] > 0.0),
            GlmLoss::Logistic if y.len() == 1 => usize::from(y[0] >= 0.5),
            GlmLoss::Logistic => (0..y.len()).fold(0, |best, k| if y[k] > y[best] { k } else { best }),
        }
    }

    /// Minus the derivatives by which responses are smoothed, n × k: rows of all other responses, each of which counts as much as
    /// a row of the data. For counts half a count, or half the weight of a row if that is less: exposures have any unit.
    pub(super) fn smoothing(&self, response: &Response) -> Array2<f64> {
        let share = 1.0 / self.values().max(2) as f64;
        let mut all = response.y.mapv(|y| match self.loss {
            GlmLoss::Logistic => share - y,
            GlmLoss::SquaredHinge => -y,
            GlmLoss::Poisson => 0.5,
        });
        let most = self.loss.most_of_exposure();
        let rows = all.rows_mut().into_iter().zip(&response.weights);
        rows.for_each(|(mut row, weight)| row *= weight.min(most));
        all
    }
}

/// Writes the entries of a row into its place, which may be behind all rows.
fn put<A: Copy>(all: &mut Vec<A>, place: usize, row: &[A]) {
    let places = place * row.len()..((place + 1) * row.len()).min(all.len());
    all.splice(places, row.iter().copied());
}

/// A hash of the number of a row.
fn hash(number: u64) -> u64 {
    avalanche(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
