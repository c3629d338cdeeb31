//! [`HeadBudget`], and the choice of a way for each head that a budget allows.

use super::trials::Trial;
use crate::Real;
use crate::error::{Error, Result};

/// What the heads of a layer may cost, or how much each may err.
///
/// ```
/// use random_features::apply::attention::HeadBudget;
/// // At most 21 exact pairs per query, on average over heads:
/// // a window of eight neighbours on either side and four keys.
/// let budget = HeadBudget::Pairs(21.0);
/// # let _ = budget;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum HeadBudget {
    /// At most this number of exact pairs per query, on average over heads; errors are made small within this budget.
    Pairs(f64),
    /// At most this number of operations per query, on average over heads, in multiplications of exact attention;
    /// errors are made small within this budget.
    Operations(f64),
    /// At most this error of each head's output, relative to the norm of the exact output, with as few operations as
    /// possible.
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

    fn named(self) -> (&'static str, f64) {
        match self {
            HeadBudget::Pairs(pairs) => ("the number of exact pairs per query", pairs),
            HeadBudget::Operations(operations) => ("the number of operations per query", operations),
            HeadBudget::Error(error) => ("the error to reach", error),
        }
    }

    /// Refuses a budget that is no number, or negative.
    pub(super) fn check(self) -> Result<()> {
        let (name, value) = self.named();
        match value.is_finite() && value >= 0.0 {
            true => Ok(()),
            false => Err(Error::Parameter { name, value, domain: "finite and not negative" }),
        }
    }

    /// The ways of a head that nothing cheaper betters, the cheapest first: the last errs least, and is exact unless another errs by 0.
    pub(super) fn front<T: Real>(self, trials: &[Trial<T>]) -> Vec<&Trial<T>> {
        let key = |trial: &&Trial<T>| (self.cost(trial), trial.candidate.error);
        let mut ways: Vec<&Trial<T>> = trials.iter().collect();
        ways.sort_by(|a, b| key(a).0.total_cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)));
        let mut least = f64::INFINITY;
        ways.retain(|trial| {
            let better = trial.candidate.error < least;
            least = least.min(trial.candidate.error);
            better
        });
        ways
    }

    /// Which of the ways of each head to take; ways are sorted by cost, and the errors fall. Squares are those of the whole layer.
    pub(super) fn select<T: Real>(self, heads: &[Vec<&Trial<T>>]) -> Result<Vec<usize>> {
        match self {
            HeadBudget::Error(most) => Ok(heads.iter().map(|ways| first_within(ways, most)).collect()),
            HeadBudget::Pairs(mean) | HeadBudget::Operations(mean) => self.least(heads, mean),
        }
    }

    /// Ways with a small sum of squared errors whose mean cost is at most `mean`: the least error plus price times cost for each head, at the
    /// lowest price that keeps the budget, and then what else fits, the best first.
    fn least<T: Real>(self, heads: &[Vec<&Trial<T>>], mean: f64) -> Result<Vec<usize>> {
        let budget = mean * heads.len() as f64;
        let cost =
            |chosen: &[usize]| -> f64 { heads.iter().zip(chosen).map(|(ways, i)| self.cost(ways[*i])).sum() };
        let mut chosen = vec![0; heads.len()];
        let least = cost(&chosen);
        if least > budget {
            let (name, value) = ("the number of operations per query", mean);
            return Err(Error::Parameter { name, value, domain: "at least that of the cheapest ways" });
        }
        let total: f64 = heads.iter().map(|ways| ways[0].square).sum();
        let (mut low, mut high) = ((total * 1e-30).max(f64::MIN_POSITIVE).ln(), (total * 1e30).ln());
        for _ in 0..STEPS {
            let middle = 0.5 * (low + high);
            let price = middle.exp();
            let at_price: Vec<usize> = heads.iter().map(|ways| self.cheapest(ways, price)).collect();
            if self.mean_cost(heads, &at_price) <= mean {
                (high, chosen) = (middle, at_price);
            } else {
                low = middle;
            }
        }
        self.fill(heads, &mut chosen, mean);
        Ok(chosen)
    }

    /// The mean cost of the chosen way of each head.
    fn mean_cost<T: Real>(self, heads: &[Vec<&Trial<T>>], chosen: &[usize]) -> f64 {
        let costs = heads.iter().zip(chosen).map(|(ways, i)| self.cost(ways[*i]));
        costs.sum::<f64>() / heads.len() as f64
    }

    /// The way with the least squared error plus price times cost.
    fn cheapest<T: Real>(self, ways: &[&Trial<T>], price: f64) -> usize {
        let sum = |i: &usize| ways[*i].square + price * self.cost(ways[*i]);
        (0..ways.len()).min_by(|a, b| sum(a).total_cmp(&sum(b))).unwrap_or(0)
    }

    /// Takes better ways as long as one fits into the budget, first the one that lowers the error most.
    fn fill<T: Real>(self, heads: &[Vec<&Trial<T>>], chosen: &mut [usize], mean: f64) {
        loop {
            let mut best = (0.0, None);
            for (head, ways) in heads.iter().enumerate() {
                let own = chosen[head];
                for (way, trial) in ways.iter().enumerate() {
                    let gain = ways[own].square - trial.square;
                    chosen[head] = way;
                    if gain > best.0 && self.mean_cost(heads, chosen) <= mean {
                        best = (gain, Some((head, way)));
                    }
                }
                chosen[head] = own;
            }
            match best.1 {
                Some((head, way)) => chosen[head] = way,
                None => return,
            }
        }
    }
}

/// The first way that errs by at most `most`; the last if there is none.
fn first_within<T: Real>(ways: &[&Trial<T>], most: f64) -> usize {
    ways.iter().position(|way| way.candidate.error <= most).unwrap_or(ways.len() - 1)
}
