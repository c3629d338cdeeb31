//! [`Identity`]: a hash that identifies a map.

use std::hash::Hasher;

/// A hash that identifies a map: equal for maps made from the same data, on any machine and in any process. It detects
/// mistakes, not forgery.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity(u64);

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({self})")
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::str::FromStr for Identity {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Identity)
    }
}

/// Hashes the data of a map, with the same result on every machine and in every version of Rust.
#[derive(Clone, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    pub fn new() -> Self {
        Digest(0x9e37_79b9_7f4a_7c15)
    }

    pub fn number(&mut self, v: usize) {
        self.write_u64(v as u64);
    }

    pub fn float(&mut self, v: f64) {
        self.write_u64(v.to_bits());
    }

    /// A text with its length, so that consecutive texts cannot be confused.
    pub fn text(&mut self, text: &str) {
        self.number(text.len());
        self.write(text.as_bytes());
    }

    pub fn identity(&self) -> Identity {
        Identity(self.finish())
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // Multiply and fold the high half into the low half, so that every bit of the word affects every bit of the state.
        let mixed = u128::from(self.0 ^ word) * 0xa076_1d64_78bd_642f_u128;
        self.0 = ((mixed as u64) ^ ((mixed >> 64) as u64)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Identity {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_string())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Identity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_and_its_place_count() {
        let of = |words: &[u64]| {
            let mut digest = Digest::new();
            words.iter().for_each(|word| digest.write_u64(*word));
            digest.identity()
        };
        let mut seen = std::collections::HashSet::new();
        for a in 0..50u64 {
            for b in 0..50u64 {
                assert!(seen.insert(of(&[a, b])), "{a} {b}");
                assert!(seen.insert(of(&[1 << a, 1 << b, 0])), "{a} {b}");
            }
        }
        assert_eq!(of(&[1]).to_string().parse::<Identity>(), Ok(of(&[1])));
        // Stored identities are compared with later ones: a change here is a change of the format.
        assert_eq!(of(&[1, 2, 3]).to_string(), "a3600b361aa894f9");
    }
}
