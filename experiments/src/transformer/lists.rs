//! Nested lists in the manner of ListOps: [MAX 3 [MIN 7 2] 5] is 5.

use rand::{Rng, RngExt};
use random_features::rng_of_step;

use super::text::Window;

/// Digits, the four operators with their bracket, the closing bracket, and what fills a window.
pub const CHARACTERS: usize = 16;
const FIRST_OPERATOR: u8 = 10;
const CLOSE: u8 = 14;
const FILL: u8 = CHARACTERS as u8 - 1;
/// Lists are nested at most so deep, with so many entries, of which so many are lists.
const DEPTH: usize = 3;
const ENTRIES: std::ops::RangeInclusive<usize> = 2..=5;
const NESTED: f64 = 0.35;
/// The shortest expression.
const SHORTEST: usize = 8;

/// Writes a list, and finds its value.
fn list(tokens: &mut Vec<u8>, depth: usize, rng: &mut impl Rng) -> u8 {
    let operator = rng.random_range(0..4u8);
    tokens.push(FIRST_OPERATOR + operator);
    let mut values: Vec<u8> = Vec::new();
    for _ in 0..rng.random_range(ENTRIES) {
        if depth < DEPTH && rng.random::<f64>() < NESTED {
            values.push(list(tokens, depth + 1, rng));
        } else {
            values.push(rng.random_range(0..10));
            tokens.extend(values.last());
        }
    }
    tokens.push(CLOSE);
    values.sort_unstable();
    match operator {
        0 => values[values.len() - 1],
        1 => values[0],
        2 => values[values.len() / 2],
        _ => (values.iter().map(|value| u32::from(*value)).sum::<u32>() % 10) as u8,
    }
}

/// Windows that end in an expression, of which its value alone counts.
pub fn windows(count: usize, length: usize, [seed, step]: [u64; 2]) -> Vec<Window> {
    let mut rng = rng_of_step(!seed, step);
    let mut window = || {
        loop {
            let mut tokens = Vec::new();
            let value = list(&mut tokens, 1, &mut rng);
            if (SHORTEST..=length).contains(&tokens.len()) {
                let mut all = vec![FILL; length - tokens.len()];
                all.extend(tokens);
                all.push(value);
                return Window { tokens: all, counted: length - 1..length };
            }
        }
    };
    (0..count).map(|_| window()).collect()
}
