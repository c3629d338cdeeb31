//! [`Error`]: the reasons for which a call fails.

use std::fmt;

use ndarray::{ArrayRef2, ArrayView1, ArrayView2, Axis};

use crate::numeric::without_repeats;
use crate::{Real, progress, threads};

/// The reason why a call failed. Each message names the value that was given and the values that are allowed.
///
/// ```
/// use random_features::Error;
/// use random_features::kernel::Gaussian;
/// let error = Gaussian::new(-1.0).unwrap_err();
/// assert!(matches!(error, Error::Parameter { value: -1.0, .. }));
/// println!("{error}");
/// ```
///
/// A call that fails has written nothing, except that work which was [`Cancelled`](Error::Cancelled) may have written some rows of
/// your arrays. Errors depend on shapes, parameters and, where a method says so, on data that is not finite.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// An array has the wrong size along an axis.
    Shape {
        /// The size, in words, such as "the number of columns of x".
        what: &'static str,
        /// The size that fits.
        expected: usize,
        /// The size that was given.
        found: usize,
    },
    /// An array has a size along an axis that is not a multiple of another size.
    #[non_exhaustive]
    Multiple {
        /// The size, in words, such as "the number of heads of the queries".
        what: &'static str,
        /// The size of which it must be a multiple.
        of: usize,
        /// The size that was given.
        found: usize,
    },
    /// A number is outside its domain.
    Parameter {
        /// The parameter's name.
        name: &'static str,
        /// The value that was given.
        value: f64,
        /// The values that are allowed, in words.
        domain: &'static str,
    },
    /// An entry of an array is outside its domain.
    Entry {
        /// The array.
        what: &'static str,
        /// The first such row, from 0.
        row: usize,
        /// The value that was given.
        value: f64,
        /// The values that are allowed, in words.
        domain: &'static str,
    },
    /// Data holds NaN or an infinity where only finite numbers make sense.
    NotFinite {
        /// The array.
        what: &'static str,
        /// The first such row, from 0.
        row: usize,
        /// The first such column of the row, from 0; `None` where the number follows from several columns or is not sought.
        column: Option<usize>,
    },
    /// Frequencies were drawn for a different kernel.
    #[non_exhaustive]
    Kernel {
        /// The name of the map.
        map: &'static str,
        /// The frequencies in words, such as "frequencies of radii χ".
        frequencies: String,
        /// The kernel, such as "the kernel softmax, lengthscale 2".
        kernel: String,
    },
    /// A map was given frequencies of the wrong kind.
    #[non_exhaustive]
    Frequencies {
        /// The name of the map.
        map: &'static str,
        /// The kind that the map needs.
        expected: &'static str,
        /// The kind that was given.
        found: &'static str,
    },
    /// A draw that is plain data states a law for which this crate has no name.
    #[non_exhaustive]
    Sampler {
        /// What was to be drawn, such as "radii".
        what: &'static str,
        /// The law that was stated, such as "frequencies of radii whose law has no name".
        law: String,
    },
    /// A map without randomness was given frequencies.
    #[non_exhaustive]
    NoFrequencies {
        /// The name of the map.
        map: &'static str,
    },
    /// A map was asked for before its frequencies were drawn.
    NotDrawn,
    /// Features of different maps, or of the wrong sides, were paired.
    #[non_exhaustive]
    Pairing {
        /// The features on the left, in words.
        left: String,
        /// The features on the right, in words.
        right: String,
    },
    /// Counts were given to a map for which they were not drawn.
    #[non_exhaustive]
    Law {
        /// The name of the law that fits.
        expected: &'static str,
        /// The name of the law that the counts have.
        found: &'static str,
    },
    /// This map, or this setting, cannot do what was asked.
    Unsupported {
        /// The thing that was asked for.
        what: &'static str,
    },
    /// A user-defined [`FeatureMap`](crate::extend::FeatureMap) contradicts its facts.
    #[non_exhaustive]
    Contract {
        /// The fault of the map.
        what: &'static str,
    },
    /// A result was requested before there was any data.
    NoData {
        /// The result that was requested, such as "a choice of λ".
        what: &'static str,
    },
    /// A [watcher](crate::progress::watch) has stopped the work.
    Cancelled,
    /// A result, or a copy that it needs, does not fit in memory.
    Memory {
        /// The things that do not fit.
        what: &'static str,
        /// The number of these things.
        count: usize,
    },
    /// A row of a data set was added or listed twice, was removed without having been added, has no target, or has a
    /// number that no row can have. Rows are numbered from 0 on in each part of a data set, so parts that are merged
    /// must be given their own numbers: `with_first_row(r)` sets the number of the next row to r, before rows are
    /// added.
    Row {
        /// The first such row, from 0 in the whole data set.
        row: u64,
        /// The fault of the row.
        reason: &'static str,
    },
    /// Sums, statistics, samples or states do not belong together, or not to the map that they are given with. They may
    /// differ in their rows, but not, for example, in maps, standardisations, kinds of models, λ, numbers of targets or
    /// seeds.
    Merge {
        /// The reason, such as "their maps differ".
        reason: &'static str,
    },
    /// A regression has no solution that is unique up to rounding.
    #[non_exhaustive]
    Singular {
        /// The λ that was tried.
        lambda: f64,
        /// A larger λ, which is large beside rounding errors as far as these are known.
        least: f64,
    },
    /// A matrix could not be factorised.
    #[non_exhaustive]
    Factorisation {
        /// The factorisation.
        what: &'static str,
        /// The first row where it cannot go on, from 0, if that is known.
        row: Option<usize>,
        /// The reason.
        reason: &'static str,
    },
    /// A text does not name the thing that was to be read, or has options that it does not take.
    #[non_exhaustive]
    Text {
        /// What was to be read, such as "a coupling".
        what: &'static str,
        /// The text, in lower case.
        text: String,
        /// The reason: the names that are known, or the fault of an option.
        reason: String,
    },
    /// A file of NumPy's format could not be read or written.
    #[non_exhaustive]
    Npy {
        /// The file.
        file: String,
        /// The reason, with what was found and what was asked for.
        reason: String,
    },
    /// An array of Apache Arrow cannot be read.
    #[non_exhaustive]
    Arrow {
        /// The array, such as "column 3", counted from 0.
        array: String,
        /// The reason, with what was found and what was asked for.
        reason: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape { what, expected, found } => write!(f, "{what} is {found}, but must be {expected}"),
            Error::Multiple { what, of, found } => {
                write!(f, "{what} is {found}, but must be a multiple of {of}")
            }
            Error::Parameter { name, value, domain } => {
                write!(f, "{name} is {}, but must be {domain}", short(*value))
            }
            Error::Entry { what, row, value, domain } => {
                write!(f, "row {row} of {what} is {}, but must be {domain}", short(*value))
            }
            Error::NotFinite { what, row, column: None } => {
                write!(f, "row {row} of {what}, counted from 0, holds a number that is not finite")
            }
            Error::NotFinite { what, row, column: Some(column) } => {
                let counted = "both counted from 0";
                write!(
                    f,
                    "row {row}, column {column} of {what}, {counted}, holds a number that is not finite"
                )
            }
            Error::Kernel { map, frequencies, kernel } => {
                write!(f, "the {map} map with {frequencies} does not estimate {kernel}")
            }
            Error::Frequencies { map, expected, found } => {
                write!(f, "the {map} map needs {expected}, but got {found}")
            }
            Error::Sampler { what, law } => {
                write!(
                    f,
                    "a stored draw can only name a law of {what} that this crate has, but its law is {law}: "
                )?;
                f.write_str(
                    "draw the frequencies with the kernel's or the coupling's own draw, which takes any law",
                )
            }
            Error::NoFrequencies { map } => {
                write!(f, "the {map} map takes no frequencies: give the dimension d")
            }
            Error::NotDrawn => {
                f.write_str("the frequencies are not drawn yet: Recipe::draw(seed) draws them")
            }
            Error::Pairing { left, right } => {
                write!(f, "features of {left} cannot be paired with features of {right}")
            }
            Error::Law { expected, found } => {
                write!(f, "the law of the counts is {found}, but must be {expected}")
            }
            Error::Unsupported { what } => write!(f, "not available: {what}"),
            Error::Contract { what } => write!(f, "this feature map breaks its contract: {what}"),
            Error::NoData { what } => {
                write!(f, "{what} needs at least one data point, of positive weight, first")
            }
            Error::Cancelled => f.write_str("the work was stopped, as its watcher asked"),
            Error::Memory { what, count } => write!(f, "there is no memory for {count} {what}"),
            Error::Row { row, reason } => write!(f, "row {row} {reason}"),
            Error::Merge { reason } => write!(f, "statistics cannot be merged: {reason}"),
            Error::Singular { lambda, least } => {
                write!(f, "the normal equations are singular with λ = {}: ", short(*lambda))?;
                write!(f, "λ should be at least {least:.1e}")
            }
            Error::Factorisation { what, row: None, reason } => write!(f, "{what} failed: {reason}"),
            Error::Factorisation { what, row: Some(row), reason } => {
                write!(f, "{what} failed at row {row}: {reason}")
            }
            Error::Text { what, text, reason } => write!(f, "“{text}” cannot be read as {what}: {reason}"),
            Error::Npy { file, reason } => write!(f, "{file}: {reason}"),
            Error::Arrow { array, reason } => write!(f, "{array} {reason}"),
        }
    }
}

impl std::error::Error for Error {}

/// The error for a λ that is too small beside rounding errors, of which `least` is an estimate. The λ that it names is larger than the
/// λ that was tried.
pub(crate) fn singular(lambda: f64, least: f64) -> Error {
    let least = least.max(2.0 * lambda);
    Error::Singular { lambda, least: if least > 0.0 { least } else { 1.0 } }
}

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A number, with an exponent where it would have many zeros.
fn short(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-5..1e16).contains(&size) { value.to_string() } else { format!("{value:e}") }
}

/// Checks a size.
pub(crate) fn check_size(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Shape { what, expected, found }) }
}

/// Why sums of two maps do not merge.
pub(crate) const MAPS_DIFFER: &str = "their maps differ: draw both from one recipe by one seed";

/// Why sums of points that were standardised in two ways do not merge.
pub(crate) const STANDARDISATIONS_DIFFER: &str =
    "their standardisations differ: take one for all, of the merged statistics of their points";

/// Rejects a merge of what differs, with the first reason that is true.
pub(crate) fn check_alike<const N: usize>(reasons: [(bool, &'static str); N]) -> Result<()> {
    let found = reasons.into_iter().find(|(differ, _)| *differ);
    found.map_or(Ok(()), |(_, reason)| Err(Error::Merge { reason }))
}

/// Checks that a count is at least one.
pub(crate) fn check_positive(name: &'static str, value: usize) -> Result<()> {
    if value > 0 { Ok(()) } else { Err(Error::Parameter { name, value: 0.0, domain: "at least 1" }) }
}

/// Returns a number that is finite and not negative; rejects others.
pub(crate) fn checked_not_negative(name: &'static str, value: f64) -> Result<f64> {
    let domain = "finite and not negative";
    if value >= 0.0 && value.is_finite() { Ok(value) } else { Err(Error::Parameter { name, value, domain }) }
}

/// Returns a number that is positive and finite; rejects others.
pub(crate) fn checked_positive(name: &'static str, value: f64) -> Result<f64> {
    let domain = "positive and finite";
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(Error::Parameter { name, value, domain }) }
}

#[cfg(feature = "attention")]
impl Error {
    /// Names the array that holds a number that is not finite; other errors, also those of what follows from a row, stay.
    pub(crate) fn of_array(self, what: &'static str) -> Self {
        match self {
            Error::NotFinite { row, column: column @ Some(_), .. } => Error::NotFinite { what, row, column },
            other => other,
        }
    }
}

/// The count of numbers that are one piece of work, after which a check is made for cancellation.
const NUMBERS: usize = 1 << 18;

/// Rejects data that is not finite. Elements that a broadcast view repeats are read once.
pub(crate) fn check_finite<T: Real>(what: &'static str, x: &ArrayRef2<T>) -> Result<()> {
    // The fold reads all of a row, so that the compiler vectorises it.
    let is_finite = |row: ArrayView1<'_, T>| row.fold(true, |finite, v| finite & v.is_finite());
    let x = without_repeats(x.view());
    let rows = (NUMBERS / x.ncols().max(1)).max(1);
    let check = |(run, first): (ArrayView2<'_, T>, usize)| {
        progress::check()?;
        let row = run.rows().into_iter().position(|row| !is_finite(row));
        row.map_or(Ok(()), |row| {
            let column = run.row(row).iter().position(|v| !v.is_finite());
            Err(Error::NotFinite { what, row: first + row, column })
        })
    };
    // A single run allocates nothing.
    if x.nrows() <= rows {
        return check((x, 0));
    }
    let runs = x.axis_chunks_iter(Axis(0), rows).zip((0..).step_by(rows));
    threads::map(runs, check).into_iter().collect()
}

/// Rejects rows of `what` with results, computed from the whole row, that are not finite.
pub(crate) fn check_results<T: Real>(what: &'static str, results: &ArrayRef2<T>) -> Result<()> {
    check_finite(what, results).map_err(|error| match error {
        Error::NotFinite { what, row, .. } => Error::NotFinite { what, row, column: None },
        other => other,
    })
}
