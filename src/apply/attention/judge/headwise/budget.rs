//! [`HeadBudget`], and the choice of a way for each head that a budget allows.

use super::trials::Trial;
use crate::Real;
use crate::error::{Error, Result};

/// What the heads of a layer may cost, or how much each may err.
///
/// ```
/// use random_features::apply::attention::HeadBudget;
/// // At most 21 exact pairs a query, on average over heads: a window of eight neighbours on either side and four keys.
/// let budget = HeadBudget::Pairs(21.0);
/// # let _ = budget;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum HeadBudget {
    /// The least errors with at most so many exact pairs a query, on average over heads.
    Pairs(f64),
    /// The least errors with at most so many operations a query, on average over heads, in multiplications of exact attention.
    Operations(f64),
    /// The fewest operations with which each head's output errs by at most this share of its norm.
    Error(f64),
}

/// Halvings of the range of prices.
const STEPS: usize = 100;

impl HeadBudget {
    /// What a way costs, in what the budget counts.
    pub(super) fn cost<T: Real>(self, trial: &Trial<T>) -> f64 {
        match self {
            HeadBudget::Pairs(_) => trial.candidate.pairs,
            _ => trial.candidate.operations,
        }
    }

    /// Refuses a budget that is no number, or negative.
    pub(super) fn check(self) -> Result<()> {
        let (name, value) = match self {
            HeadBudget::Pairs(pairs) => ("the number of exact pairs a query", pairs),
            HeadBudget::Operations(operations) => ("the number of operations a query", operations),
            HeadBudget::Error(error) => ("the error to reach", error),
        };
        match value.is_finite() && value >= 0.0 {
            true => Ok(()),
            false => Err(Error::Parameter { name, value, domain: "finite and not negative" }),
        }
    }

    /// Which of the ways of each head to take; ways are sorted by cost, and the errors fall. Squares are those of the whole layer.
    pub(super) fn select<T: Real>(self, heads: &[Vec<Trial<T>>]) -> Result<Vec<usize>> {
        match self {
            HeadBudget::Error(most) => Ok(heads.iter().map(|ways| first_within(ways, most)).collect()),
            HeadBudget::Pairs(mean) | HeadBudget::Operations(mean) => self.least(heads, mean),
        }
    }

    /// The ways with the least sum of squared errors whose mean cost is at most `mean`: those of least error plus price times cost, at the
    /// lowest price that keeps the budget, and then what else fits, the best first.
    fn least<T: Real>(self, heads: &[Vec<Trial<T>>], mean: f64) -> Result<Vec<usize>> {
        let budget = mean * heads.len() as f64;
        let cost = |chosen: &[usize]| -> f64 {
            heads.iter().zip(chosen).map(|(ways, i)| self.cost(&ways[*i])).sum()
        };
        let mut chosen = vec![0; heads.len()];
        let least = cost(&chosen);
        if least > budget {
            let (name, value) = ("the number of operations a query", mean);
            return Err(Error::Parameter { name, value, domain: "at least that of the cheapest ways" });
        }
        let total: f64 = heads.iter().map(|ways| ways[0].square).sum();
        let (mut low, mut high) = ((total * 1e-30).max(f64::MIN_POSITIVE).ln(), (total * 1e30).ln());
        for _ in 0..STEPS {
            let middle = 0.5 * (low + high);
            let price = middle.exp() / budget.max(1.0);
            let at_price: Vec<usize> = heads.iter().map(|ways| self.cheapest(ways, price)).collect();
            if cost(&at_price) <= budget {
                (high, chosen) = (middle, at_price);
            } else {
                low = middle;
            }
        }
        self.fill(heads, &mut chosen, budget);
        Ok(chosen)
    }

    /// The way with the least squared error plus price times cost.
    fn cheapest<T: Real>(self, ways: &[Trial<T>], price: f64) -> usize {
        let sum = |i: &usize| ways[*i].square + price * self.cost(&ways[*i]);
        (0..ways.len()).min_by(|a, b| sum(a).total_cmp(&sum(b))).unwrap_or(0)
    }

    /// Takes better ways as long as one fits into the budget, first the one that lowers the error most.
    fn fill<T: Real>(self, heads: &[Vec<Trial<T>>], chosen: &mut [usize], budget: f64) {
        loop {
            let used: f64 = heads.iter().zip(&*chosen).map(|(ways, i)| self.cost(&ways[*i])).sum();
            let better = heads.iter().enumerate().flat_map(|(head, ways)| {
                let own = &ways[chosen[head]];
                let fits = move |way: &Trial<T>| used + self.cost(way) - self.cost(own) <= budget;
                let gain = move |(i, way): (usize, &Trial<T>)| (own.square - way.square, head, i);
                ways.iter().enumerate().filter(move |(_, way)| fits(way)).map(gain)
            });
            match better.filter(|(gain, ..)| *gain > 0.0).max_by(|a, b| a.0.total_cmp(&b.0)) {
                Some((_, head, way)) => chosen[head] = way,
                None => return,
            }
        }
    }
}

/// The first way that errs by at most `most`; the last is exact.
fn first_within<T: Real>(ways: &[Trial<T>], most: f64) -> usize {
    ways.iter().position(|way| way.candidate.error <= most).unwrap_or(ways.len() - 1)
}
