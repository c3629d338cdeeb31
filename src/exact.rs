//! Numbers that are stored to the bit: `#[serde(with = "crate::exact")]`.
//!
//! A text format may write a number so that a reader takes it for a neighbour, and mostly has no word for NaN and the
//! infinities. In text, numbers are therefore strings, with the shortest decimal that is read back as the same number;
//! plain numbers are read as well. Binary formats get the number itself. NaN stays NaN, in text without its payload.

use std::fmt;

use ndarray::Array2;
use num_complex::Complex64;
use serde::de::{DeserializeOwned, Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Numbers, or what is made of them.
pub trait Exact {
    /// The same, of [`Number`]s.
    type Stored: Clone + Serialize + DeserializeOwned;

    fn to_stored(&self) -> Self::Stored;
    fn from_stored(stored: Self::Stored) -> Self;
}

/// Stores numbers exactly.
pub fn serialize<T: Exact, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.to_stored().serialize(serializer)
}

/// Reads what [`serialize`] has stored.
pub fn deserialize<'de, T: Exact, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Stored::deserialize(deserializer).map(T::from_stored)
}

/// A number as it is stored.
#[derive(Clone, Copy)]
pub struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            // With an exponent where that is shorter.
            serializer.collect_str(&format_args!("{:?}", self.0))
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(Text)
        } else {
            f64::deserialize(deserializer).map(Number)
        }
    }
}

/// Reads a number from text.
struct Text;

impl Visitor<'_> for Text {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a string that holds one")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
        match text.parse::<f64>() {
            // A decimal beyond the range is not an infinity.
            Ok(number) if number.is_finite() || !text.contains(|c: char| c.is_ascii_digit()) => {
                Ok(Number(number))
            }
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
        Ok(Number(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
        Ok(Number(number as f64))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        Ok(Number(number as f64))
    }
}

impl Exact for f64 {
    type Stored = Number;

    fn to_stored(&self) -> Number {
        // One NaN, as text holds it, so that every format stores the same.
        Number(if self.is_nan() { f64::NAN } else { *self })
    }

    fn from_stored(stored: Number) -> Self {
        stored.0
    }
}

/// Real part, imaginary part.
impl Exact for Complex64 {
    type Stored = [Number; 2];

    fn to_stored(&self) -> [Number; 2] {
        [self.re, self.im].map(Number)
    }

    fn from_stored([re, im]: [Number; 2]) -> Self {
        Complex64::new(re.0, im.0)
    }
}

impl<T: Exact> Exact for Vec<T> {
    type Stored = Vec<T::Stored>;

    fn to_stored(&self) -> Self::Stored {
        self.iter().map(T::to_stored).collect()
    }

    fn from_stored(stored: Self::Stored) -> Self {
        stored.into_iter().map(T::from_stored).collect()
    }
}

impl<T: Exact> Exact for Option<T> {
    type Stored = Option<T::Stored>;

    fn to_stored(&self) -> Self::Stored {
        self.as_ref().map(T::to_stored)
    }

    fn from_stored(stored: Self::Stored) -> Self {
        stored.map(T::from_stored)
    }
}

impl<T: Exact> Exact for Array2<T> {
    type Stored = Array2<T::Stored>;

    fn to_stored(&self) -> Self::Stored {
        self.map(T::to_stored)
    }

    fn from_stored(stored: Self::Stored) -> Self {
        stored.mapv(T::from_stored)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_str, json, to_value};

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Stored(#[serde(with = "crate::exact")] f64);

    fn text(number: f64) -> String {
        serde_json::to_string(&Stored(number)).unwrap()
    }

    #[test]
    fn text_holds_every_bit() {
        use rand::Rng;
        let mut rng = crate::rng(1);
        let special = [0.0, -0.0, 1.0, 5e-324, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY];
        let random = (0..100_000).map(|_| f64::from_bits(rng.next_u64())).filter(|number| !number.is_nan());
        for number in special.into_iter().chain(random) {
            let Stored(read) = from_str(&text(number)).unwrap();
            assert_eq!(read.to_bits(), number.to_bits(), "{number:?}");
        }
        assert!(from_str::<Stored>(&text(f64::NAN)).unwrap().0.is_nan());
        assert_eq!([text(0.1), text(1e300), text(-2.0)], ["\"0.1\"", "\"1e300\"", "\"-2.0\""]);
    }

    #[test]
    fn plain_numbers_are_read_and_nothing_else() {
        for (plain, number) in [("0.5", 0.5), ("-3", -3.0), ("7", 7.0), ("\"7\"", 7.0)] {
            assert_eq!(from_str::<Stored>(plain).unwrap().0, number);
        }
        for wrong in ["\"one\"", "\"1e999\"", "\"\"", "null", "true", "[1.0]"] {
            let error = from_str::<Stored>(wrong).map(drop).unwrap_err().to_string();
            assert!(error.contains("a string that holds one"), "{error}");
        }
    }

    #[test]
    fn what_is_made_of_numbers_keeps_its_shape() {
        let complex = vec![Complex64::new(0.1, -2.0)];
        assert_eq!(to_value(complex.to_stored()).unwrap(), json!([["0.1", "-2.0"]]));
        assert_eq!(Vec::<Complex64>::from_stored(complex.to_stored()), complex);
        // The columns of a matrix in the layout of its transpose.
        let matrix = ndarray::arr2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).reversed_axes();
        let stored = to_value(matrix.to_stored()).unwrap();
        assert_eq!(stored["data"], json!(["1.0", "4.0", "2.0", "5.0", "3.0", "6.0"]));
        assert_eq!(Array2::<f64>::from_stored(matrix.to_stored()), matrix);
    }
}
