//! What is learnt: the text, or to copy a key.

use rand::RngExt;
use random_features::rng_of_step;
use serde::{Deserialize, Serialize};

use super::lists;
use super::text::{Text, Window};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Task {
    /// The next character of the text.
    Text,
    /// Characters of a key that was seen [`DISTANCE`] characters before.
    Copy,
    /// The value of an expression of nested lists.
    Lists,
}

/// From a key to its copy.
pub const DISTANCE: usize = 200;
/// Characters of a key, and of how many each is one.
const KEY: usize = 2;
pub const LETTERS: usize = 16;
/// The character before a key, which is rare in the text.
const MARK: char = '(';
/// The first of the letters of keys, which are capitals.
const FIRST: char = 'A';
/// Windows of the copy task by which it is judged.
const JUDGED: usize = 256;
/// Expressions by which lists are judged.
const LISTS: usize = 2000;

impl Task {
    /// Windows to learn from; the same seed and step give the same.
    pub fn batch(self, text: &Text, count: usize, length: usize, source: [u64; 2]) -> Vec<Window> {
        let windows = || text.batch(count, length, source);
        match self {
            Task::Text => windows(),
            Task::Copy => with_keys(text, windows(), source),
            Task::Lists => lists::windows(count, length, source),
        }
    }

    /// Windows to be judged by, which no batch has.
    pub fn examination(self, text: &Text, length: usize) -> Vec<Window> {
        let windows = || text.examination(length);
        match self {
            Task::Text => windows(),
            Task::Copy => with_keys(text, windows().into_iter().take(JUDGED).collect(), [u64::MAX, 0]),
            Task::Lists => lists::windows(LISTS, length, [u64::MAX, 0]),
        }
    }
}

/// Puts a key near the start of each window and again [`DISTANCE`] behind, where alone it counts. Marks and the letters of keys are
/// nowhere else.
fn with_keys(text: &Text, windows: Vec<Window>, [seed, step]: [u64; 2]) -> Vec<Window> {
    // Not the generator that chose the windows.
    let mut rng = rng_of_step(!seed, step);
    let number = |character| text.number(character).unwrap_or_default();
    let (mark, first, space) = (number(MARK), number(FIRST), number(' '));
    let reserved = |token: u8| token == mark || (first..first + LETTERS as u8).contains(&token);
    let put = |mut window: Window| {
        for token in &mut window.tokens {
            *token = if reserved(*token) { space } else { *token };
        }
        let start = rng.random_range(0..window.tokens.len().saturating_sub(DISTANCE + KEY).max(1));
        let key: Vec<u8> = (0..KEY).map(|_| first + rng.random_range(0..LETTERS) as u8).collect();
        for start in [start, start + DISTANCE] {
            window.tokens[start] = mark;
            window.tokens[start + 1..=start + KEY].copy_from_slice(&key);
        }
        Window { counted: start + DISTANCE..start + DISTANCE + KEY, ..window }
    };
    windows.into_iter().map(put).collect()
}
