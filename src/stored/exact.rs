//! Numbers that are stored to the bit: `#[serde(with = "crate::exact")]`.
//!
//! A reader of text may take a decimal for a neighbour of the number that was written, as `serde_json` does by default, and
//! text mostly has no word for NaN and the infinities. All readers read decimals of at most 15 digits and of ordinary size
//! exactly: they are a whole number below 2⁵³ times or divided by a power of ten that `f64` holds, and one operation is
//! rounded correctly. In text, such numbers are numbers; others are strings with the shortest decimal that is read back as
//! the number. Both forms are read for every number. Binary formats get the number itself. NaN stays NaN, in text without its
//! payload.

use std::fmt::{self, Write};

use ndarray::Array2;
use num_complex::Complex64;
use serde::de::{DeserializeOwned, Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number, or a type that is made of numbers.
pub trait Exact {
    /// The type with [`Number`]s in place of numbers.
    type Stored: Clone + Serialize + DeserializeOwned;

    fn to_stored(&self) -> Self::Stored;
    fn from_stored(stored: Self::Stored) -> Self;
}

/// Stores numbers exactly.
pub fn serialize<T: Exact, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.to_stored().serialize(serializer)
}

/// Reads numbers that [`serialize`] has stored.
pub fn deserialize<'de, T: Exact, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Stored::deserialize(deserializer).map(T::from_stored)
}

/// A number as it is stored.
#[derive(Clone, Copy)]
pub struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() && !is_exact_in_text(self.0) {
            // The decimal has an exponent if that is shorter.
            serializer.collect_str(&format_args!("{:?}", self.0))
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// The most digits of a decimal that every reader reads exactly, and the range of sizes, without its end, of such numbers.
/// Further digits, as in 1000.0, are zeros, which leave the whole number of all digits exact.
const DIGITS: usize = 15;
const SIZES: [f64; 2] = [1e-7, 1e15];

/// Whether every reader of a decimal reads this number exactly.
fn is_exact_in_text(number: f64) -> bool {
    let size = number.abs();
    size == 0.0 || (SIZES[0]..SIZES[1]).contains(&size) && digits(size) <= DIGITS
}

/// The number of digits of the shortest decimal that is read back as the number.
fn digits(number: f64) -> usize {
    /// Counts digits up to the exponent.
    struct Count {
        digits: usize,
        ended: bool,
    }

    impl fmt::Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for c in text.chars() {
                self.ended |= c == 'e';
                self.digits += usize::from(!self.ended && c.is_ascii_digit());
            }
            Ok(())
        }
    }

    let mut count = Count { digits: 0, ended: false };
    // Writing to a counter does not fail.
    let _ = write!(count, "{number:e}");
    count.digits
}

/// The key under which `serde_json` gives numbers that it keeps as text (its feature `arbitrary_precision`).
const NUMBER_AS_TEXT: &str = "$serde_json::private::Number";

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

impl<'de> Visitor<'de> for Text {
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

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Number, A::Error> {
        match map.next_entry::<String, String>()? {
            Some((key, text)) if key == NUMBER_AS_TEXT => self.visit_str(&text),
            _ => Err(A::Error::invalid_type(Unexpected::Map, &self)),
        }
    }
}

impl Exact for f64 {
    type Stored = Number;

    fn to_stored(&self) -> Number {
        // There is one NaN, as in text, so that every format stores it alike.
        Number(if self.is_nan() { f64::NAN } else { *self })
    }

    fn from_stored(stored: Number) -> Self {
        stored.0
    }
}

/// Complex numbers are stored as real part and imaginary part.
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
        let mut rng = crate::rng(1);
        let special = [0.0, -0.0, 1.0, 5e-324, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY];
        let random = (0..100_000).map(|_| f64::from_bits(rng.next_u64())).filter(|number| !number.is_nan());
        for number in special.into_iter().chain(random) {
            let Stored(read) = from_str(&text(number)).unwrap();
            assert_eq!(read.to_bits(), number.to_bits(), "{number:?}");
        }
        assert!(from_str::<Stored>(&text(f64::NAN)).unwrap().0.is_nan());
    }

    /// Numbers are numbers in text where the default parser of `serde_json`, which is off by an ulp for others, is exact.
    #[test]
    fn decimals_that_are_read_exactly_are_numbers() {
        use rand::RngExt;
        for (number, written) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (-2.0, "-2.0"),
            (1e-7, "1e-7"),
            (999_999_999_999_999.0, "999999999999999.0"),
            (0.123_456_789_012_345, "0.123456789012345"),
            (9.9e-8, "\"9.9e-8\""),
            (1e15, "\"1000000000000000.0\""),
            (0.1 + 0.2, "\"0.30000000000000004\""),
            (1.0 / 3.0, "\"0.3333333333333333\""),
            (1e300, "\"1e300\""),
            (5e-324, "\"5e-324\""),
            (f64::NAN, "\"NaN\""),
            (f64::NEG_INFINITY, "\"-inf\""),
        ] {
            assert_eq!(text(number), written);
        }
        let mut rng = crate::rng(2);
        for _ in 0..100_000 {
            let (whole, power) = (rng.random_range(0..10i64.pow(15)), rng.random_range(0..=15));
            let decimal = format!("{}e-{power}", whole / 10i64.pow(rng.random_range(0..15)));
            let number: f64 = decimal.parse().unwrap();
            let written = text(number);
            assert_eq!(written.starts_with('"'), number != 0.0 && number < SIZES[0], "{written}");
            assert_eq!(from_str::<Stored>(&written).unwrap().0.to_bits(), number.to_bits(), "{written}");
            // As a reader that makes a number of it, whatever its parser is.
            let value = serde_json::to_value(Stored(number)).unwrap();
            assert_eq!(serde_json::from_value::<Stored>(value).unwrap().0.to_bits(), number.to_bits());
        }
    }

    /// As `serde_json` gives them with its feature `arbitrary_precision`.
    #[test]
    fn numbers_that_are_kept_as_text_are_read() {
        use serde::de::value::{Error, MapDeserializer};
        let read = |key: &'static str, text: &'static str| {
            Number::deserialize(MapDeserializer::<_, Error>::new([(key, text)].into_iter()))
                .map(|number| number.0)
        };
        assert_eq!(read(NUMBER_AS_TEXT, "0.30000000000000004"), Ok(0.1 + 0.2));
        assert!(read(NUMBER_AS_TEXT, "1e999").is_err());
        assert!(read("number", "0.5").is_err());
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
        assert_eq!(to_value(complex.to_stored()).unwrap(), json!([[0.1, -2.0]]));
        assert_eq!(Vec::<Complex64>::from_stored(complex.to_stored()), complex);
        // The columns of a matrix in the layout of its transpose.
        let matrix = ndarray::arr2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).reversed_axes();
        let stored = to_value(matrix.to_stored()).unwrap();
        assert_eq!(stored["data"], json!([1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
        assert_eq!(Array2::<f64>::from_stored(matrix.to_stored()), matrix);
    }
}
