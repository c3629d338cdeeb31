//! Names in text: how couplings, kernels and maps are read from what their `Display` writes, or from less.
//!
//! A text is the name of a variant and the options behind it, in any order. Case, commas, brackets and the signs = and : do not
//! matter, and words of a name may be joined by hyphens.

use crate::error::{Error, Result};

/// A text that begins with a name.
pub(crate) struct Named<'a> {
    /// The name, as it is listed.
    pub name: &'static str,
    /// The options behind it.
    pub words: Words<'a>,
}

/// The words of a text that nobody has taken yet.
pub(crate) struct Words<'a> {
    what: &'static str,
    text: &'a str,
    /// Whether there are brackets around numbers.
    pub is_list: bool,
    left: Vec<&'a str>,
}

/// A text without upper case and accents, and with ± as a word.
pub(crate) fn plain(text: &str) -> String {
    text.trim().to_lowercase().replace('é', "e").replace('±', "antithetic ")
}

impl<'a> Named<'a> {
    /// The longest of the names with which a [plain](fn@plain) text begins. `aliases` are other texts for some of them.
    ///
    /// # Errors
    /// [`Text`](Error::Text) with the names, if it begins with none.
    pub fn read(
        what: &'static str,
        text: &'a str,
        names: &[&'static str],
        aliases: &[(&str, &'static str)],
    ) -> Result<Self> {
        let joined = text.replace(['-', '_'], " ");
        let all = names.iter().map(|name| (*name, *name)).chain(aliases.iter().copied());
        let begins = |(spelling, _): &(&str, &'static str)| {
            let rest = joined.strip_prefix(spelling);
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        };
        match all.filter(begins).max_by_key(|(spelling, _)| spelling.len()) {
            Some((spelling, name)) => {
                let rest = text[spelling.len()..].trim_start_matches(['-', '_']);
                Ok(Named { name, words: Words::of(what, text, rest) })
            }
            None => Err(refused(what, text, format!("the names are {}", names.join(", ")))),
        }
    }
}

impl<'a> Words<'a> {
    fn of(what: &'static str, text: &'a str, rest: &'a str) -> Self {
        let between = |c: char| c.is_whitespace() || ",=:[]()".contains(c);
        let is_list = rest.contains('[');
        Words { what, text, is_list, left: rest.split(between).filter(|word| !word.is_empty()).collect() }
    }

    /// Takes a word, if it is there.
    pub fn take(&mut self, word: &str) -> bool {
        self.take_if(|other| (other == word).then_some(())).is_some()
    }

    /// Takes the first word of which `read` makes something.
    pub fn take_if<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (place, found) = self.left.iter().enumerate().find_map(|(i, word)| Some((i, read(word)?)))?;
        self.left.remove(place);
        Some(found)
    }

    /// Takes a number and the unit behind it, in the singular or the plural, if the unit is there.
    pub fn counted(&mut self, unit: [&str; 2]) -> Result<Option<usize>> {
        let Some(place) = self.left.iter().position(|word| unit.contains(word)) else { return Ok(None) };
        let word = self.left.remove(place);
        let number = place.checked_sub(1).map(|before| self.left.remove(before));
        match number.and_then(|number| number.parse().ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.refused(format!("“{word}” needs a whole number before it"))),
        }
    }

    /// Takes a word and the value behind it, such as "dimension 64", if the word is there.
    pub fn behind<T: std::str::FromStr>(&mut self, word: &str) -> Result<Option<T>> {
        let Some(place) = self.left.iter().position(|other| *other == word) else { return Ok(None) };
        self.left.remove(place);
        let value = (place < self.left.len()).then(|| self.left.remove(place));
        match value.and_then(|value| value.parse().ok()) {
            Some(value) => Ok(Some(value)),
            None => Err(self.refused(format!("“{word}” needs a number behind it"))),
        }
    }

    /// Takes all numbers.
    pub fn numbers(&mut self) -> Vec<f64> {
        let mut numbers = Vec::new();
        self.left.retain(|word| word.parse().map(|number| numbers.push(number)).is_err());
        numbers
    }

    /// Takes a number, if there is one.
    pub fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.take_if(|word| word.parse().ok())
    }

    /// Takes all words that are left.
    pub fn rest(&mut self) -> String {
        std::mem::take(&mut self.left).join(" ")
    }

    /// Refuses words that nobody has taken.
    pub fn finish(&self) -> Result<()> {
        match self.left.first() {
            None => Ok(()),
            Some(word) => Err(self.refused(format!("“{word}” has no meaning there"))),
        }
    }

    /// The error that the text cannot be read.
    pub fn refused(&self, reason: impl Into<String>) -> Error {
        refused(self.what, self.text, reason.into())
    }
}

/// The error that a text cannot be read.
fn refused(what: &'static str, text: &str, reason: String) -> Error {
    Error::Text { what, text: text.into(), reason }
}

/// Values that are stored as their text: `#[serde(with = "crate::names::text")]`.
#[cfg(feature = "serde")]
pub(crate) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::error::Error;

    pub fn serialize<V, S>(value: &V, serializer: S) -> Result<S::Ok, S::Error>
    where
        V: Display + FromStr<Err = Error> + PartialEq,
        S: Serializer,
    {
        let text = value.to_string();
        match text.parse::<V>() {
            Ok(read) if read == *value => serializer.serialize_str(&text),
            Ok(_) => Err(S::Error::custom(format!("“{text}” does not say all"))),
            Err(error) => Err(S::Error::custom(error)),
        }
    }

    pub fn deserialize<'de, V, D>(deserializer: D) -> Result<V, D::Error>
    where
        V: FromStr<Err = Error>,
        D: Deserializer<'de>,
    {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }

    /// Texts of values that may be missing.
    pub mod option {
        use super::*;

        pub fn serialize<V, S>(value: &Option<V>, serializer: S) -> Result<S::Ok, S::Error>
        where
            V: Display + FromStr<Err = Error> + PartialEq,
            S: Serializer,
        {
            match value {
                Some(value) => super::serialize(value, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub fn deserialize<'de, V, D>(deserializer: D) -> Result<Option<V>, D::Error>
        where
            V: FromStr<Err = Error>,
            D: Deserializer<'de>,
        {
            let text = Option::<std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
            text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
        }
    }
}
