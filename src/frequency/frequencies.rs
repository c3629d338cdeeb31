//! [`Frequencies`]: what a draw leaves behind.

use ndarray::{Array2, ArrayView2};

use super::Law;
use crate::error::{Error, Result, check_positive, check_size};

/// Drawn frequencies ω₁ … ω_m ∈ ℝᵈ, in rows, and their law.
///
/// Immutable. Comes from [`draw`](super::draw), from a matrix of your own
/// ([`from_rows`](Frequencies::from_rows)), or from a stored copy (feature `serde`).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Parts", into = "Parts")
)]
pub struct Frequencies {
    rows: Array2<f64>,
    law: Law,
}

impl Frequencies {
    /// Frequencies of your own, one in each row, whose law is unknown: variances will have no closed form.
    ///
    /// # Errors
    /// As [`from_parts`](Frequencies::from_parts).
    pub fn from_rows(rows: Array2<f64>) -> Result<Self> {
        let law = Law::unknown(rows.nrows());
        Self::from_parts(rows, law)
    }

    /// Frequencies and the law that you state for them.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is no row or no column, [`NotFinite`](Error::NotFinite) if a
    /// number is not finite, [`Shape`](Error::Shape) if the law is for another number of rows.
    pub fn from_parts(rows: Array2<f64>, law: Law) -> Result<Self> {
        check_positive("the number of frequencies m", rows.nrows())?;
        check_positive("the dimension d", rows.ncols())?;
        check_size("the number of rows in the law", rows.nrows(), law.len())?;
        match rows.rows().into_iter().position(|row| row.iter().any(|v| !v.is_finite())) {
            None => Ok(Frequencies { rows, law }),
            Some(row) => Err(Error::NotFinite { what: "the frequencies", row }),
        }
    }

    /// m, the number of frequencies.
    pub fn count(&self) -> usize {
        self.rows.nrows()
    }

    /// d, the dimension of each.
    pub fn dim(&self) -> usize {
        self.rows.ncols()
    }

    /// The frequencies, one in each row: m × d.
    pub fn rows(&self) -> ArrayView2<'_, f64> {
        self.rows.view()
    }

    /// What is known of their joint law.
    pub fn law(&self) -> &Law {
        &self.law
    }
}

/// The stored form, checked again when it is read.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Parts {
    rows: Array2<f64>,
    law: Law,
}

#[cfg(feature = "serde")]
impl TryFrom<Parts> for Frequencies {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self> {
        Frequencies::from_parts(parts.rows, parts.law)
    }
}

#[cfg(feature = "serde")]
impl From<Frequencies> for Parts {
    fn from(frequencies: Frequencies) -> Self {
        Parts { rows: frequencies.rows, law: frequencies.law }
    }
}
