//! The King James New Testament as numbers of characters, cut into a text to train on and one that is held out.

use std::io::Read;
use std::ops::Range;

use flate2::read::GzDecoder;
use rand::RngExt;
use random_features::rng_of_step;

/// See README.md beside it.
const BUNDLED: &[u8] = include_bytes!("../../data/charlm/new-testament.txt.gz");

/// The text has so many parts, of which the last is held out.
const PARTS: usize = 10;

pub struct Text {
    /// The characters of the whole text, in order.
    alphabet: Vec<char>,
    pub training: Vec<u8>,
    pub held_out: Vec<u8>,
}

/// A sequence with the places whose next character is to be foretold, and counts.
#[derive(Clone)]
pub struct Window {
    /// One more than are read.
    pub tokens: Vec<u8>,
    pub counted: Range<usize>,
}

impl Window {
    pub fn read(&self) -> &[u8] {
        &self.tokens[..self.tokens.len() - 1]
    }

    /// What is to be foretold at a place.
    pub fn target(&self, place: usize) -> usize {
        usize::from(self.tokens[place + 1])
    }
}

impl Text {
    pub fn bundled() -> Result<Self, String> {
        let mut text = String::new();
        let read = GzDecoder::new(BUNDLED).read_to_string(&mut text);
        read.map_err(|error| format!("the text cannot be read: {error}"))?;
        let mut alphabet: Vec<char> = text.chars().collect();
        alphabet.sort_unstable();
        alphabet.dedup();
        let number = |c| alphabet.binary_search(&c).unwrap_or_default() as u8;
        let mut training: Vec<u8> = text.chars().map(number).collect();
        let held_out = training.split_off(training.len() - training.len() / PARTS);
        Ok(Text { alphabet, training, held_out })
    }

    /// The number of different characters.
    pub fn characters(&self) -> usize {
        self.alphabet.len()
    }

    pub fn number(&self, character: char) -> Option<u8> {
        self.alphabet.binary_search(&character).ok().map(|number| number as u8)
    }

    pub fn string(&self, tokens: &[u8]) -> String {
        tokens.iter().filter_map(|token| self.alphabet.get(usize::from(*token))).collect()
    }

    /// Windows of the training text at random places, which depend on the seed and the step alone.
    pub fn batch(&self, count: usize, length: usize, [seed, step]: [u64; 2]) -> Vec<Window> {
        let mut rng = rng_of_step(seed, step);
        let mut window = || {
            let start = rng.random_range(0..self.training.len() - length);
            Window { tokens: self.training[start..=start + length].to_vec(), counted: 0..length }
        };
        (0..count).map(|_| window()).collect()
    }

    /// Windows that overlap by half, of which the second half counts: every character of the held-out text counts once,
    /// after more than `length`/2 others and at most `length`, but for the first `length`/2 and those behind the last window.
    pub fn examination(&self, length: usize) -> Vec<Window> {
        let windows = self.held_out.windows(length + 1).step_by(length - length / 2);
        windows.map(|tokens| Window { tokens: tokens.to_vec(), counted: length / 2..length }).collect()
    }
}
