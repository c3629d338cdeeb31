//! The text: segments that are read whole, and passages that are sought.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use flate2::read::GzDecoder;

use crate::outcome::Outcome;

/// The New Testament in the King James Version, a verse on each line; a page beside it names its source.
const BUNDLED: &[u8] = include_bytes!("../../../../experiments/data/charlm/new-testament.txt.gz");

/// Verses of a passage.
const OF_A_PASSAGE: usize = 3;

/// Bytes of a verse from which on it is divided at words, so that long paragraphs are many verses.
const OF_A_VERSE: usize = 400;

/// The verses of a line.
fn verses_of(line: &str) -> Vec<String> {
    let mut verses: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        match verses.last_mut() {
            Some(verse) if verse.len() < OF_A_VERSE => {
                verse.push(' ');
                verse.push_str(word);
            }
            _ => verses.push(word.to_owned()),
        }
    }
    verses
}

/// The verses of a text, which are its lines or parts of these.
pub struct Text {
    verses: Vec<String>,
}

/// Verses that follow each other, one after the other in a line.
pub struct Excerpt {
    pub text: String,
    /// The numbers of its verses.
    pub verses: Range<usize>,
}

impl Text {
    pub fn bundled() -> Outcome<Self> {
        let mut text = String::new();
        GzDecoder::new(BUNDLED).read_to_string(&mut text)?;
        Text::of(&text)
    }

    /// The text in a file.
    pub fn read(file: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(file);
        Text::of(&text.map_err(|error| format!("the text {} cannot be read: {error}", file.display()))?)
    }

    fn of(text: &str) -> Outcome<Self> {
        match text.lines().flat_map(verses_of).collect::<Vec<_>>() {
            verses if verses.is_empty() => Err("the text has no words".into()),
            verses => Ok(Text { verses }),
        }
    }

    /// All words as they are printed, in order.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.verses.iter().flat_map(|verse| verse.split(|c: char| !c.is_alphabetic()))
    }

    /// Excerpts that begin at even distances, `count` of them, each of at least so many bytes unless the text ends. They share no
    /// verse.
    pub fn segments(&self, count: usize, bytes: usize) -> Outcome<Vec<Excerpt>> {
        let first = |number: usize| (2 * number + 1) * self.verses.len() / (2 * count);
        let segments: Vec<_> = (0..count).map(|number| self.excerpt(first(number), bytes)).collect();
        match segments.is_sorted_by(|one, next| one.verses.end <= next.verses.start) {
            true => Ok(segments),
            false => Err(format!("the text is too short for {count} segments of {bytes} bytes").into()),
        }
    }

    /// The first verses, of at least so many bytes together, if the text has them.
    pub fn beginning(&self, bytes: usize) -> Excerpt {
        self.excerpt(0, bytes)
    }

    fn excerpt(&self, first: usize, bytes: usize) -> Excerpt {
        let (mut end, mut sum) = (first, 0);
        while sum < bytes && end < self.verses.len() {
            sum += self.verses[end].len();
            end += 1;
        }
        self.verses(first..end)
    }

    fn verses(&self, verses: Range<usize>) -> Excerpt {
        Excerpt { text: self.verses[verses.clone()].join(" "), verses }
    }

    /// Up to so many passages that begin at even distances and share no verse, nor one with `others`.
    pub fn passages(&self, count: usize, others: &[Range<usize>]) -> Vec<Excerpt> {
        let count = count.min(self.verses.len() / OF_A_PASSAGE).max(1);
        let passage = |number: usize| {
            let first = number * self.verses.len() / count;
            first..(first + OF_A_PASSAGE).min(self.verses.len())
        };
        let apart = |verses: &Range<usize>| {
            others.iter().all(|other| verses.end <= other.start || other.end <= verses.start)
        };
        (0..count).map(passage).filter(apart).map(|verses| self.verses(verses)).collect()
    }
}
