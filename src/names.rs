//! Names in text: couplings, kernels and maps are read from the text that their `Display` writes, or from less.
//!
//! A text is the name of a variant with options behind it. Named options, such as "lengthscale 0.5", stand in any order; numbers
//! without a name are read after them. Case, commas, parentheses and the signs = and : do not matter. Words of a name may be
//! joined by hyphens. Square brackets hold a list.

use num_complex::Complex64;

use crate::error::{Error, Result};

/// A text that begins with a name.
pub(crate) struct Named<'a> {
    /// The name, as in the list of names.
    pub name: &'static str,
    /// The options behind the name.
    pub words: UnreadWords<'a>,
}

/// The words of a text that nobody has taken yet.
pub(crate) struct UnreadWords<'a> {
    what: &'static str,
    text: &'a str,
    left: Vec<&'a str>,
    /// Whether a hyphen stands between the name and a number, so that it may be a minus sign.
    is_joined: bool,
}

/// A text without upper case and accents, and with ± and ℓ as words.
pub(crate) fn plain(text: &str) -> String {
    let text = text.trim().to_lowercase().replace('é', "e");
    text.replace('±', "antithetic ").replace('ℓ', "lengthscale ")
}

impl<'a> Named<'a> {
    /// The longest of the names with which a [plain](fn@plain) text begins. `aliases` are other texts for some of them.
    ///
    /// # Errors
    /// [`Text`](Error::Text) with the names, if the text begins with none.
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
                Ok(Named { name, words: UnreadWords::of(what, text, &text[spelling.len()..]) })
            }
            None => Err(refused(what, text, format!("the names are {}", names.join(", ")))),
        }
    }
}

impl<'a> UnreadWords<'a> {
    fn of(what: &'static str, text: &'a str, rest: &'a str) -> Self {
        let between = |c: char| c.is_whitespace() || ",=:()".contains(c);
        let is_number =
            |rest: &str| rest.split(between).next().is_some_and(|w| w.parse::<Complex64>().is_ok());
        let joined = rest.strip_prefix(['-', '_']);
        let is_joined = rest.starts_with('-') && joined.is_some_and(is_number);
        let rest = if is_joined { rest } else { joined.unwrap_or(rest) };
        let bracket = |c: char| "[]".contains(c);
        // Brackets are words of their own.
        let parts = rest.split(between).flat_map(|part| part.split_inclusive(bracket));
        let words = parts.flat_map(|part| match part.strip_suffix(bracket) {
            Some(word) => [word, &part[word.len()..]],
            None => [part, ""],
        });
        UnreadWords { what, text, left: words.filter(|word| !word.is_empty()).collect(), is_joined }
    }

    /// Reads a hyphen between the name and a number as a joint: for options that are never negative.
    pub fn joined(mut self) -> Self {
        if let (true, Some(first)) = (self.is_joined, self.left.first_mut()) {
            *first = first.strip_prefix('-').unwrap_or(first);
        }
        self
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

    /// Takes the first of some spellings of a word and the value behind it, if one of them is there.
    pub fn behind_any<T: std::str::FromStr>(&mut self, spellings: &[&str]) -> Result<Option<T>> {
        for word in spellings {
            if let Some(value) = self.behind(word)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Takes a word and the list of numbers behind it, in brackets or not, if the word is there.
    pub fn list_behind(&mut self, word: &str) -> Result<Option<Vec<f64>>> {
        let Some(place) = self.left.iter().position(|other| *other == word) else { return Ok(None) };
        self.left.remove(place);
        if self.left.get(place) == Some(&"[") {
            return self.list();
        }
        let numbers: Vec<f64> = self.left[place..].iter().map_while(|word| word.parse().ok()).collect();
        self.left.drain(place..place + numbers.len());
        Ok(Some(numbers))
    }

    /// Takes the first list of numbers in brackets, if there is one.
    pub fn list(&mut self) -> Result<Option<Vec<f64>>> {
        let Some(open) = self.left.iter().position(|word| *word == "[") else { return Ok(None) };
        let Some(len) = self.left[open..].iter().position(|word| *word == "]") else {
            return Err(self.refused("“[” needs a “]” behind it"));
        };
        let words: Vec<&str> = self.left.drain(open..=open + len).collect();
        let number = |word: &&str| {
            word.parse().map_err(|_| self.refused(format!("“{word}” is no number of the list")))
        };
        words[1..len].iter().map(number).collect::<Result<Vec<f64>>>().map(Some)
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

    /// Optional values that are stored as their text.
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

/// Texts that are changed at random never become other numbers in silence.
#[cfg(test)]
pub(crate) mod mutations {
    use std::fmt::{Debug, Display};
    use std::str::FromStr;

    use rand::RngExt;

    use crate::error::Error;

    /// Words behind which their number stands.
    const KEYS: [&str; 8] = ["lengthscale", "α", "a", "s", "p", "rate", "offset", "dimension"];

    fn words(text: &str) -> Vec<String> {
        let between = |c: char| c.is_whitespace() || ",=:()[]".contains(c);
        text.to_lowercase().split(between).filter(|word| !word.is_empty()).map(String::from).collect()
    }

    fn is_number(word: &str) -> bool {
        word.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit() || c == '.')
    }

    /// The numbers of a text as values. A lengthscale of 1 is one that the text need not state.
    fn numbers(text: &str) -> Vec<String> {
        let mut numbers: Vec<String> = words(text).into_iter().filter(|word| is_number(word)).collect();
        numbers
            .iter_mut()
            .for_each(|word| *word = word.parse().map_or(word.clone(), |v: f64| format!("{v:?}")));
        numbers.retain(|word| word != "1.0");
        numbers
    }

    /// The numbers behind a key.
    fn keyed(text: &str) -> Vec<(String, String)> {
        let words = words(text);
        let pairs = words.windows(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        pairs.filter(|(key, number)| KEYS.contains(&key.as_str()) && is_number(number)).collect()
    }

    /// Checks that the text of a value is read as this value, in any order of its options. Texts of its words in another order, or without
    /// one of them, are refused, or are read as values whose numbers the text states, each with its key.
    pub fn check<V>(value: &V)
    where
        V: FromStr<Err = Error> + Display + Debug + PartialEq + Clone,
    {
        let text = value.to_string();
        assert_eq!(text.parse::<V>().as_ref(), Ok(value), "{text}");
        let mut rng = crate::rng(text.len() as u64);
        let mut shuffle = |items: &mut [String]| {
            for i in (1..items.len()).rev() {
                items.swap(i, rng.random_range(0..=i));
            }
        };
        // Options are separated by commas, but not those within brackets.
        let mut options: Vec<String> = vec![String::new()];
        let mut depth = 0;
        for c in text.chars() {
            depth += i32::from(c == '[') - i32::from(c == ']');
            if c == ',' && depth == 0 {
                options.push(String::new());
            } else if let Some(last) = options.last_mut() {
                last.push(c);
            }
        }
        for _ in 0..6 {
            shuffle(&mut options[1..]);
            let text = options.join(",");
            assert_eq!(text.parse::<V>().as_ref(), Ok(value), "{text}");
        }
        let all: Vec<String> = text.split(' ').map(String::from).collect();
        let mut mutated = vec![all.clone(); 40];
        mutated.iter_mut().for_each(|words| shuffle(&mut words[1..]));
        mutated.extend((1..all.len()).map(|i| [&all[..i], &all[i + 1..]].concat()));
        for text in mutated.into_iter().map(|words| words.join(" ")) {
            let Ok(found) = text.parse::<V>() else { continue };
            let said = found.to_string();
            let mut stated = numbers(&text);
            for number in numbers(&said) {
                let place = stated.iter().position(|other| *other == number);
                stated.remove(place.unwrap_or_else(|| panic!("“{text}” was read as “{said}”")));
            }
            let pairs = keyed(&said);
            assert!(keyed(&text).iter().all(|pair| pairs.contains(pair)), "“{text}” was read as “{said}”");
        }
    }
}
