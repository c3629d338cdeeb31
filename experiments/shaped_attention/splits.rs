//! On what features are chosen, and on what they are evaluated.

use rand::seq::SliceRandom;
use random_features::rng_of_step;

use crate::maps::{Exact, Keys};

/// What the choice may see.
#[derive(Clone, Copy, PartialEq)]
pub enum Fit {
    Same,
    Queries,
    Tokens,
}

pub const FITS: [(&str, Fit); 3] = [("same", Fit::Same), ("queries", Fit::Queries), ("tokens", Fit::Tokens)];

/// Rows of queries and keys.
pub struct Rows {
    pub queries: Vec<usize>,
    pub keys: Vec<usize>,
}

/// A choice and its evaluation.
pub struct Split {
    pub chosen: Rows,
    /// The chosen queries whose rows of the attention matrix are seen.
    pub attention: Vec<usize>,
    pub evaluated: Rows,
}

impl Fit {
    /// One split, or four: two random halves, each way round.
    pub fn splits(self, queries: usize, keys: usize, seed: u64) -> Vec<Split> {
        let all = |n: usize| -> Vec<usize> { (0..n).collect() };
        let halves = |n: usize, fold: u64| -> [Vec<usize>; 2] {
            let mut rng = rng_of_step(seed, fold / 2);
            let mut order = all(n);
            order.shuffle(&mut rng);
            let mut second = order.split_off(n.div_ceil(2));
            let mut first = order;
            first.sort_unstable();
            second.sort_unstable();
            if fold.is_multiple_of(2) { [first, second] } else { [second, first] }
        };
        let rows = |queries, keys| Rows { queries, keys };
        if self == Fit::Same || queries < 2 || keys < 2 {
            let whole = || rows(all(queries), all(keys));
            return vec![Split { chosen: whole(), attention: all(queries), evaluated: whole() }];
        }
        let split = |fold| {
            let [first, second] = halves(queries, fold);
            // Queries and keys of the same tokens go the same way.
            match self {
                Fit::Tokens => {
                    let [left, right] = halves(keys, fold);
                    Split {
                        attention: all(first.len()),
                        chosen: rows(first, left),
                        evaluated: rows(second, right),
                    }
                }
                // Moments of queries need no attention.
                _ => Split {
                    chosen: rows(all(queries), all(keys)),
                    attention: first,
                    evaluated: rows(second, all(keys)),
                },
            }
        };
        (0..4).map(split).collect()
    }

    /// Which keys are exact: those of other tokens cannot be chosen before.
    pub fn keys(self) -> Keys {
        if self == Fit::Tokens { Keys::Heaviest } else { Keys::Chosen }
    }

    /// Whether such pairs are there: tokens of which half is missing are no neighbours.
    pub fn has(self, exact: Exact) -> bool {
        !(self == Fit::Tokens && exact == Exact::Near)
    }

    /// The relative ridge: larger where few tokens choose for others.
    pub fn ridge(self) -> f64 {
        if self == Fit::Tokens { 0.3 } else { 0.1 }
    }
}
