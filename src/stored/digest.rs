//! [`Identity`]: a hash of data that is equal on every machine and in every version of Rust; [`Digest`], which computes
//! it; [`Identify`], which feeds data to it.

use std::hash::Hasher;

use ndarray::Array2;
use num_complex::Complex64;

/// Hashes words, numbers and texts, with equal results on every machine and in every version of Rust.
#[derive(Clone, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    pub fn new() -> Self {
        Digest(0x9e37_79b9_7f4a_7c15)
    }

    /// The digest of one value.
    pub fn of(value: &(impl Identify + ?Sized)) -> u64 {
        let mut digest = Digest::new();
        value.identify(&mut digest);
        digest.finish()
    }

    /// Adds a text with its length, so that consecutive texts cannot be confused.
    pub fn text(&mut self, text: &str) {
        self.write_u64(text.len() as u64);
        self.write(text.as_bytes());
    }
}

/// Mixes a word so that each of its bits affects every bit of the result, as SplitMix64 does.
pub(crate) fn avalanche(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
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
        // The high half of a product is folded into the low half, so that every bit of the word affects every bit of the state.
        let mixed = u128::from(self.0 ^ word) * 0xa076_1d64_78bd_642f_u128;
        self.0 = ((mixed as u64) ^ ((mixed >> 64) as u64)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Data with an identity: values that are equal to the bit feed equal words to a digest, on every machine and in every later
/// version.
///
/// Enums feed the tags of their variants ([`tagged!`](crate::tagged)), structs their fields
/// ([`identified!`](crate::identified)).
pub(crate) trait Identify {
    fn identify(&self, digest: &mut Digest);
}

/// Implements [`Identify`] for structs by their fields, in this order.
macro_rules! identified {
    ($($Name:ident { $($field:ident),* $(,)? })*) => {$(
        impl $crate::digest::Identify for $Name {
            fn identify(&self, _digest: &mut $crate::digest::Digest) {
                $($crate::digest::Identify::identify(&self.$field, _digest);)*
            }
        }
    )*};
}

pub(crate) use identified;

/// Implements [`Identify`] for types whose values are one word.
macro_rules! words {
    ($($Type:ty => |$v:ident| $word:expr),* $(,)?) => {$(
        impl Identify for $Type {
            fn identify(&self, digest: &mut Digest) {
                let $v = *self;
                digest.write_u64($word);
            }
        }
    )*};
}

words! {
    u64 => |v| v,
    usize => |v| v as u64,
    bool => |v| u64::from(v),
    f64 => |v| v.to_bits(),
}

impl Identify for str {
    fn identify(&self, digest: &mut Digest) {
        digest.text(self);
    }
}

impl<T: Identify + ?Sized> Identify for &T {
    fn identify(&self, digest: &mut Digest) {
        (**self).identify(digest);
    }
}

impl<A: Identify, B: Identify> Identify for (A, B) {
    fn identify(&self, digest: &mut Digest) {
        self.0.identify(digest);
        self.1.identify(digest);
    }
}

impl Identify for () {
    fn identify(&self, _: &mut Digest) {}
}

impl Identify for Complex64 {
    fn identify(&self, digest: &mut Digest) {
        [self.re, self.im].identify(digest);
    }
}

impl<T: Identify> Identify for [T] {
    fn identify(&self, digest: &mut Digest) {
        self.len().identify(digest);
        self.iter().for_each(|v| v.identify(digest));
    }
}

impl<T: Identify, const N: usize> Identify for [T; N] {
    fn identify(&self, digest: &mut Digest) {
        self.iter().for_each(|v| v.identify(digest));
    }
}

impl<T: Identify> Identify for Vec<T> {
    fn identify(&self, digest: &mut Digest) {
        self.as_slice().identify(digest);
    }
}

impl<T: Identify + ?Sized> Identify for Box<T> {
    fn identify(&self, digest: &mut Digest) {
        (**self).identify(digest);
    }
}

impl<T: Identify> Identify for Option<T> {
    fn identify(&self, digest: &mut Digest) {
        self.is_some().identify(digest);
        self.iter().for_each(|v| v.identify(digest));
    }
}

impl<T: Identify> Identify for Array2<T> {
    fn identify(&self, digest: &mut Digest) {
        [self.nrows(), self.ncols()].identify(digest);
        self.iter().for_each(|v| v.identify(digest));
    }
}

/// A hash that identifies a map or a kernel: equal for maps or kernels of equal data, on any machine and in any process. It
/// detects mistakes, not forgery.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity(u64);

impl From<Digest> for Identity {
    fn from(digest: Digest) -> Self {
        Identity(digest.finish())
    }
}

impl Identity {
    pub(crate) fn of(value: &(impl Identify + ?Sized)) -> Self {
        Identity(Digest::of(value))
    }
}

impl Identify for Identity {
    fn identify(&self, digest: &mut Digest) {
        self.0.identify(digest);
    }
}

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
        let identity: Identity = text.parse().map_err(serde::de::Error::custom)?;
        // Only the text that is written is accepted, so that no damage goes unnoticed.
        let exact = identity.to_string() == text;
        if exact {
            Ok(identity)
        } else {
            Err(serde::de::Error::custom("an identity has 16 hexadecimal digits"))
        }
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
            digest.finish()
        };
        let mut seen = std::collections::HashSet::new();
        for a in 0..50u64 {
            for b in 0..50u64 {
                assert!(seen.insert(of(&[a, b])), "{a} {b}");
                assert!(seen.insert(of(&[1 << a, 1 << b, 0])), "{a} {b}");
            }
        }
        // Stored identities are compared with later ones: a change here is a change of the format.
        assert_eq!(format!("{:016x}", of(&[1, 2, 3])), "a3600b361aa894f9");
    }

    #[test]
    fn shapes_count() {
        let of = |v: &dyn Identify| Digest::of(v);
        let row = Array2::from_elem((1, 4), 2.0);
        let square = Array2::from_elem((2, 2), 2.0);
        assert_ne!(of(&row), of(&square));
        assert_ne!(of(&vec![1.0, 2.0]), of(&vec![vec![1.0], vec![2.0]]));
        assert_ne!(of(&Some(0.0)), of(&None::<f64>));
        assert_ne!(of(&0.0), of(&-0.0));
    }
}
