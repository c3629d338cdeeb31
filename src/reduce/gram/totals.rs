//! [`Totals`]: sums of `f64` whose bits do not depend on the order of the summands.

use crate::numeric::{self, Isa, Twofold};

/// The number of bits between the grids of consecutive words of a sum.
const STEP: i32 = 30;
/// The maximum number of summands between carries. A sum of so many multiples of a grid, each below 2^(`STEP` − 1), fits into 53
/// bits.
pub(super) const MOST: u64 = 1 << (54 - STEP);
/// The levels whose grids, and the numbers that round to them, are normal.
const LEVELS: std::ops::RangeInclusive<i32> = -30..=31;
/// The largest summand.
pub(crate) const LARGEST: f64 = 1e288;
/// A bound of the summands of an array. Below it the second word ends at more than 2⁻³⁰ of the largest one, and digits are lost.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) const LEAST: f64 = 1e-271;

/// An array of sums. Each sum is a few words; word k holds a multiple of the grid 2^(`STEP` (level − k)).
///
/// A summand is split into such multiples from the top, and the part finer than the last grid is dropped. Additions of multiples
/// are exact, so that a sum depends on its summands alone, not on their order. If a larger summand needs a higher level, the
/// words move down and the lowest is dropped, as if the level had been this high from the beginning. The part of a summand that
/// is dropped is below 2^(−`STEP` (words − 1)) times the largest entry of the array that was ever added.
///
/// J. Demmel, H. D. Nguyen, *Parallel Reproducible Summation*, IEEE Transactions on Computers 64, 2015.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Totals {
    /// `None` while all summands are 0.
    level: Option<i32>,
    /// The number of words of a sum.
    depth: usize,
    /// The number of sums of a piece. The highest words of all sums of a piece lie together, then the next words, and so on.
    piece: usize,
    words: Vec<f64>,
}

impl Totals {
    /// `pieces` × `piece` sums of 0.
    pub(super) fn new(pieces: usize, piece: usize, depth: usize) -> Self {
        Totals { level: None, depth, piece, words: vec![0.0; pieces * piece * depth] }
    }

    /// Makes the level high enough for summands up to `bound`, and returns how to add them; `None` if they are 0 or too large.
    pub(super) fn open(&mut self, bound: f64) -> Option<Adder> {
        self.raise(level(bound).filter(|_| bound != 0.0)?);
        self.level.map(|level| Adder { level })
    }

    /// The length of a piece's words, and the words of all pieces.
    pub(super) fn pieces_mut(&mut self) -> (usize, &mut [f64]) {
        (self.piece * self.depth, &mut self.words)
    }

    /// Adds an array of one piece, whose values are not above a bound that [`check_size`] has accepted. Overwrites the values.
    pub(super) fn add(&mut self, values: &mut [f64]) {
        if let Some(adder) = self.open(largest(values)) {
            adder.add(&mut self.words, values);
        }
    }

    /// Makes all sums 0.
    pub(super) fn clear(&mut self) {
        self.level = None;
        self.words.fill(0.0);
    }

    /// Adds other sums of the same shape.
    pub(super) fn merge(&mut self, mut other: Totals) {
        let Some(level) = other.level.max(self.level) else { return };
        self.raise(level);
        other.raise(level);
        self.words.iter_mut().zip(&other.words).for_each(|(own, their)| *own += their);
    }

    /// Carries: adds to each word the part of the next lower word that is a multiple of its grid, which changes no sum. Then
    /// there is room for half of [`MOST`] summands. If the highest word has no room, the level is raised, which drops parts below
    /// 2⁻⁵⁰ of the largest sum. At the highest level that word is rounded instead, as any number is.
    pub(super) fn carry(&mut self) {
        let Some(level) = self.level else { return };
        let (piece, depth) = (self.piece, self.depth);
        let highest = self.words.chunks_exact(piece * depth).map(|words| largest(&words[..piece]));
        if highest.fold(0.0, f64::max) > libm::ldexp(1.0, 51 + STEP * level) && level < *LEVELS.end() {
            self.raise(level + 1);
        }
        let level = self.level.unwrap_or(level);
        for words in self.words.chunks_exact_mut(piece * depth) {
            for (k, level) in (1..depth).zip((i32::MIN..=level).rev()) {
                let (higher, lower) = words.split_at_mut(k * piece);
                let (higher, lower) = (&mut higher[(k - 1) * piece..], &mut lower[..piece]);
                numeric::move_multiples(Isa::best(), higher, lower, grid(level));
            }
        }
    }

    /// The sum at an index of a piece.
    #[cfg(any(test, feature = "faer", feature = "ndarray-linalg"))]
    pub(super) fn at(&self, piece: usize, place: usize) -> f64 {
        self.words_at(piece, place).fold(0.0, |sum, word| sum + word)
    }

    /// The sum at a place of a single piece, less `factor` times the sum of `other` at the same place.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub(super) fn less(&self, place: usize, factor: f64, other: &Totals) -> Twofold {
        let sum = self.words_at(0, place).fold(Twofold::default(), Twofold::add);
        other.words_at(0, place).fold(sum, |sum, word| sum.add_product(-factor, word))
    }

    /// The words of a sum from the finest to the highest, the order of least rounding.
    #[cfg(any(test, feature = "faer", feature = "ndarray-linalg"))]
    fn words_at(&self, piece: usize, place: usize) -> impl Iterator<Item = f64> {
        let words = &self.words[piece * self.piece * self.depth..];
        (0..self.depth).rev().map(move |k| words[k * self.piece + place])
    }

    fn raise(&mut self, level: i32) {
        let Some(own) = self.level.replace(self.level.map_or(level, |own| own.max(level))) else { return };
        let by = usize::try_from(level - own).unwrap_or(0).min(self.depth) * self.piece;
        if by > 0 {
            for piece in self.words.chunks_exact_mut(self.piece * self.depth) {
                let kept = piece.len() - by;
                piece.copy_within(..kept, by);
                piece[..by].fill(0.0);
            }
        }
    }
}

/// The stored form: words are multiples of their grids, as whole numbers, most of which have few digits.
#[cfg(feature = "serde")]
pub(super) mod stored {
    use super::{LEVELS, STEP, Totals};

    /// The sums at some places, whose words follow each other, from the highest on.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "Totals")]
    pub struct StoredTotals {
        level: Option<i32>,
        depth: usize,
        words: Vec<i64>,
    }

    impl StoredTotals {
        /// The number of words.
        pub fn len(&self) -> usize {
            self.words.len()
        }
    }

    impl Totals {
        /// The places of all sums of `pieces` pieces, as (piece, place).
        pub fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
            let (pieces, piece) = (self.words.len() / (self.piece * self.depth), self.piece);
            (0..pieces).flat_map(move |k| (0..piece).map(move |place| (k, place)))
        }

        /// The stored form of the sums at these places of pieces; other sums are left out.
        pub fn stored(&self, places: impl Iterator<Item = (usize, usize)>) -> StoredTotals {
            let level = self.level.unwrap_or(0);
            let words = places.flat_map(|at| (0..self.depth).map(move |k| (at, k)));
            let count =
                |(at, k): ((usize, usize), usize)| (self.words[self.word(at, k)] / unit(level, k)) as i64;
            StoredTotals { level: self.level, depth: self.depth, words: words.map(count).collect() }
        }

        /// Sums of 0 with the stored ones at these places; `None` if the stored ones have another number or size.
        pub fn restored(
            mut self,
            stored: &StoredTotals,
            places: impl Iterator<Item = (usize, usize)>,
        ) -> Option<Totals> {
            let level = stored.level.unwrap_or(0);
            if stored.depth != self.depth || !LEVELS.contains(&level) {
                return None;
            }
            let mut words = stored.words.iter();
            for at in places {
                for k in 0..self.depth {
                    let place = self.word(at, k);
                    self.words[place] = *words.next()? as f64 * unit(level, k);
                }
            }
            let sound =
                words.next().is_none() && (stored.level.is_some() || stored.words.iter().all(|v| *v == 0));
            self.level = stored.level;
            sound.then_some(self)
        }

        /// The index of word k of a sum in `words`.
        fn word(&self, (piece, place): (usize, usize), k: usize) -> usize {
            (piece * self.depth + k) * self.piece + place
        }
    }

    /// The grid of word k.
    fn unit(level: i32, k: usize) -> f64 {
        libm::ldexp(1.0, STEP * (level - k as i32))
    }
}

/// The largest magnitude; NaN if a value is NaN.
pub(super) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |top: f64, v| if v.abs() <= top || top.is_nan() { top } else { v.abs() })
}

/// The error for summands that are not finite, or whose sums might overflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge;

/// Refuses a bound of summands that is too large for totals.
pub(super) fn check_size(bound: f64) -> Result<(), TooLarge> {
    if bound == 0.0 || level(bound).is_some() { Ok(()) } else { Err(TooLarge) }
}

/// Adds to the words of a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Adder {
    level: i32,
}

impl Adder {
    /// Adds values that are not above the bound that the totals were opened for. Overwrites them.
    pub(super) fn add(self, words: &mut [f64], values: &mut [f64]) {
        for (words, level) in words.chunks_exact_mut(values.len()).zip((i32::MIN..=self.level).rev()) {
            numeric::move_multiples(Isa::best(), words, values, grid(level));
        }
    }
}

/// The number whose last place is one step of a level's grid, with room for numbers of either sign.
fn grid(level: i32) -> f64 {
    libm::ldexp(1.5, 52 + STEP * level)
}

/// The least level whose first word takes summands up to `bound`.
fn level(bound: f64) -> Option<i32> {
    let (_, exponent) = libm::frexp(bound);
    let level = (exponent + 1 + STEP - 1).div_euclid(STEP) - 1;
    (bound <= LARGEST).then_some(level.clamp(*LEVELS.start(), *LEVELS.end()))
}

#[cfg(test)]
mod tests {
    use rand::seq::SliceRandom;

    use super::*;

    /// Numbers of very different sizes.
    fn values(n: usize, spread: i32) -> Vec<f64> {
        let mut rng = crate::rng(7);
        let mut value = || {
            let unit = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
            libm::ldexp(unit, (rng.next_u64() % (2 * spread as u64 + 1)) as i32 - spread)
        };
        (0..n).map(|_| value()).collect()
    }

    fn total(values: &[f64], depth: usize) -> Totals {
        let mut totals = Totals::new(1, 1, depth);
        values.iter().for_each(|v| totals.add(&mut [*v]));
        totals
    }

    #[test]
    fn the_order_and_the_cuts_do_not_matter() {
        for (spread, depth) in [(0, 2), (40, 2), (90, 3), (400, 3)] {
            let mut values = values(1000, spread);
            let whole = total(&values, depth);
            let naive: f64 = values.iter().sum();
            let largest = values.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
            let lost = 1000.0 * largest * f64::powi(2.0, -STEP * (depth as i32 - 1));
            assert!((whole.at(0, 0) - naive).abs() <= lost + 1e-12 * largest, "{spread} {depth}");
            for seed in 0..20 {
                values.shuffle(&mut crate::rng(seed));
                let (left, right) = values.split_at(37 * seed as usize);
                let mut merged = total(right, depth);
                merged.merge(total(left, depth));
                assert_eq!(merged, whole);
                assert_eq!(total(&values, depth), whole);
            }
        }
    }

    #[test]
    fn what_is_taken_out_was_never_there() {
        let values = values(100, 20);
        let whole = total(&values, 3);
        let mut all = whole.clone();
        values.iter().for_each(|v| all.add(&mut [*v * 1e-3]));
        values.iter().for_each(|v| all.add(&mut [-*v * 1e-3]));
        assert_eq!(all, whole);
    }

    /// Carries after so many summands, as those of the sums of a table do.
    fn carried(values: impl Iterator<Item = f64>, room: u64) -> Totals {
        let (mut totals, mut parts) = (Totals::new(1, 1, 3), 0);
        for value in values {
            if parts == room {
                totals.carry();
                parts = room / 2;
            }
            totals.add(&mut [value]);
            parts += 1;
        }
        totals
    }

    #[test]
    fn carries_change_no_sum() {
        let values = values(5000, 60);
        let whole = total(&values, 3).at(0, 0);
        for room in [2, 3, 64, 1000] {
            let sum = carried(values.iter().copied(), room).at(0, 0);
            assert!((sum - whole).abs() <= f64::EPSILON * whole.abs(), "{room}: {sum} {whole}");
        }
    }

    /// More summands of one sign than a word holds, just below the bound of their level: without a carry, sums would lose bits.
    #[test]
    fn there_is_no_limit_to_summands() {
        let value = f64::powi(2.0, STEP - 1) - 1.0;
        let mut totals = total(&[value], 3);
        totals.words[0] = value * MOST as f64;
        totals.carry();
        (0..1001).for_each(|_| totals.add(&mut [value]));
        assert_eq!(totals.at(0, 0), value * (MOST + 1001) as f64);
        let mut full = Totals::new(1, 1, 2);
        full.raise(*LEVELS.end());
        full.words[0] = libm::ldexp(1.0, 52 + STEP * *LEVELS.end());
        full.carry();
        assert_eq!(full.at(0, 0), libm::ldexp(1.0, 52 + STEP * *LEVELS.end()));
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(level(1.0), Some(0));
        assert_eq!(level(f64::powi(2.0, STEP - 2)), Some(0));
        assert_eq!(level(f64::powi(2.0, STEP - 1)), Some(1));
        assert_eq!(level(f64::INFINITY), None);
        assert_eq!(level(f64::NAN), None);
        assert_eq!(level(1e300), None);
        assert_eq!(level(LARGEST), Some(*LEVELS.end()));
        assert!(check_size(largest(&[f64::NAN, 1.0])).is_err() && check_size(1e300).is_err());
        assert!(check_size(0.0).is_ok() && check_size(LARGEST).is_ok());
        for big in [1e280, 1.0, 1e-200, 1e-270] {
            let sum = total(&[big, big / 3.0], 3).at(0, 0);
            assert!((sum / (big + big / 3.0) - 1.0).abs() < 1e-15, "{big}: {sum}");
        }
        assert_eq!(total(&[0.0, 0.0], 2).at(0, 0), 0.0);
    }
}
