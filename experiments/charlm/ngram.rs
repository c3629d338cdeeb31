//! Witten–Bell models of the last n characters, with which transformers are compared.

use std::collections::HashMap;

use experiments::transformer::text::Window;

/// What followed a context.
#[derive(Default)]
struct Seen {
    counts: HashMap<u8, u32>,
    total: u32,
}

/// P(c | h) = (n(hc) + T(h) P(c | h′))/(n(h) + T(h)), with T(h) the number of different characters seen after h, and h′ the
/// same without its first character; at the end all characters are alike. Source: Witten and Bell, *The Zero-Frequency
/// Problem*, method C, interpolated.
pub struct WittenBell {
    /// Characters of which there is a count: contexts are one shorter.
    order: usize,
    characters: usize,
    seen: HashMap<Vec<u8>, Seen>,
}

impl WittenBell {
    /// A model of the `order` characters before the next.
    pub fn new(text: &[u8], order: usize, characters: usize) -> Self {
        let mut seen: HashMap<Vec<u8>, Seen> = HashMap::new();
        for length in 0..=order {
            for gram in text.windows(length + 1) {
                let after = seen.entry(gram[..length].to_vec()).or_default();
                *after.counts.entry(gram[length]).or_default() += 1;
                after.total += 1;
            }
        }
        WittenBell { order, characters, seen }
    }

    fn probability(&self, context: &[u8], next: u8) -> f64 {
        let shorter = |from: usize| &context[context.len().saturating_sub(from)..];
        let uniform = (self.characters as f64).recip();
        (0..=self.order.min(context.len())).fold(uniform, |lower, length| {
            let Some(seen) = self.seen.get(shorter(length)) else { return lower };
            let kinds = seen.counts.len() as f64;
            let count = seen.counts.get(&next).map_or(0.0, |count| f64::from(*count));
            (count + kinds * lower) / (f64::from(seen.total) + kinds)
        })
    }

    /// The mean of −log₂ P over what counts in the windows, each from the characters before it.
    pub fn bits(&self, windows: &[Window]) -> f64 {
        let of_window = |window: &'_ Window| {
            let bits = |place: usize| {
                let read = &window.tokens[..=place];
                -self
                    .probability(&read[read.len().saturating_sub(self.order)..], window.tokens[place + 1])
                    .log2()
            };
            window.counted.clone().map(bits).sum::<f64>()
        };
        let counted: usize = windows.iter().map(|window| window.counted.len()).sum();
        windows.iter().map(of_window).sum::<f64>() / counted as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After any context, also one that was never seen, and as the definition says: after "ab", seen twice, c and d followed.
    #[test]
    fn probabilities_are_those_of_the_definition() {
        let text = [0, 1, 2, 0, 1, 3, 3, 0];
        let model = WittenBell::new(&text, 2, 5);
        for context in [&[][..], &[4], &[0, 1], &[4, 4], &[4, 1], &[2, 0, 1]] {
            let sum: f64 = (0..5).map(|next| model.probability(context, next)).sum();
            assert!((sum - 1.0).abs() < 1e-14, "{context:?}: {sum}");
        }
        let none = (2.0 + 4.0 / 5.0) / (8.0 + 4.0);
        let one = (1.0 + 2.0 * ((1.0 + 4.0 / 5.0) / 12.0)) / (2.0 + 2.0);
        let two = (1.0 + 2.0 * one) / (2.0 + 2.0);
        assert!((model.probability(&[], 1) - none).abs() < 1e-15);
        assert!((model.probability(&[0, 1], 2) - two).abs() < 1e-15);
    }
}
