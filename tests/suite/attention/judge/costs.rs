//! The rule for costs, written again, and the lengths from which on linear attention is cheaper.

use crate::attention::judge::{D, M, attention};
use crate::attention::ways;
use random_features::Positive;
use random_features::apply::attention::Attention;
use random_features::frequency::Orthogonal;

/// The rule for costs, written again: operations of exact attention, and of linear attention with D features, a window and exact keys.
pub struct Rule {
    pub d: usize,
    pub d_v: usize,
    pub causal: bool,
}

impl Rule {
    fn pair(&self) -> f64 {
        (self.d + self.d_v + 40) as f64
    }

    fn seen(&self, keys: usize) -> f64 {
        if self.causal { keys as f64 / 2.0 } else { keys as f64 }
    }

    pub fn exact(&self, [n, l]: [usize; 2]) -> f64 {
        n as f64 * self.seen(l) * self.pair()
    }

    pub fn linear(
        &self,
        [n, l]: [usize; 2],
        features: usize,
        [before, after]: [usize; 2],
        keys: usize,
    ) -> f64 {
        let near = if self.causal { before } else { before + after };
        let slow = match (self.causal, near) {
            (true, _) => 2.5,
            (false, 0) => 2.0,
            (false, _) => 6.0,
        };
        let border = if near == 0 { 0.0 } else { 128.0 };
        let block = if keys == 0 { 0.0 } else { 32.0 };
        let pairs = self.seen(l).min(near as f64) + border + self.seen(l).min(keys as f64) + block;
        slow * ((n + l) * features * (self.d + self.d_v)) as f64 + n as f64 * pairs * self.pair()
    }
}

/// One rule serves crossovers and choices.
#[test]
fn crossovers_are_where_costs_cross() {
    for (m, d_v, window, keys) in
        [(20, 5, [0, 0], 0), (8, 3, [9, 4], 0), (64, 16, [40, 0], 3), (1, 1, [0, 7], 0), (33, 8, [0, 0], 40)]
    {
        let all: Vec<usize> = (0..keys).collect();
        let map = Positive.softmax::<f64>(Orthogonal.draw(D, m, 1).unwrap()).unwrap();
        let attention = Attention::new(map).unwrap().with_keys_exact(&all).unwrap();
        let attention = attention.with_window(window[0], window[1]).unwrap();
        for causal in [false, true] {
            let rule = Rule { d: D, d_v, causal };
            let faster = |n: &usize| rule.exact([*n, *n]) >= rule.linear([*n, *n], m, window, keys);
            let crossover = ways::crossover(&attention, d_v, causal);
            assert_eq!(Some(crossover), (1..100_000).find(faster), "{m}, {window:?}, {keys}, {causal}");
            assert!((crossover..2 * crossover).all(|n| faster(&n)));
        }
    }
    // Windows of all keys are never faster.
    assert_eq!(attention(M, 1).with_window(usize::MAX, 0).unwrap().causal_crossover(4), usize::MAX);
}
