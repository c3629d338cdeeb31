//! [`Frequencies`]: the result of a draw.

use std::hash::Hasher;

use ndarray::{Array2, CowArray, Ix2};

use super::rotation::Rotation;
use super::structured::Structured;
use crate::error::{Error, Result, check_positive, check_size};
use crate::theory::Law;

/// Drawn frequencies ω₁ … ω_m ∈ ℝᵈ, in rows, and their law.
///
/// Immutable. Created by [`draw`](super::draw), from your own matrix ([`from_rows`](Frequencies::from_rows)), or from a
/// stored copy (feature `serde`). Frequencies of a structured coupling are stored as factors, not as a matrix.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Parts", into = "Parts")
)]
pub struct Frequencies {
    form: Form,
    law: Law,
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Form {
    Dense(#[cfg_attr(feature = "serde", serde(with = "crate::exact"))] Array2<f64>),
    Structured(Structured),
}

impl Frequencies {
    /// Your own frequencies, one in each row. Their law is not stated, so maps know neither their kernel nor their
    /// variance.
    ///
    /// # Errors
    /// As [`from_parts`](Frequencies::from_parts).
    pub fn from_rows(rows: Array2<f64>) -> Result<Self> {
        let law = Law::unknown(rows.nrows());
        Self::from_parts(rows, law)
    }

    /// Frequencies with the law that you state for them.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is no row or no column, [`NotFinite`](Error::NotFinite) if a
    /// number is not finite, [`Shape`](Error::Shape) if the law is for another number of rows,
    /// [`Parameter`](Error::Parameter) if the cosine of an angle in it is outside \[−1, 1\].
    pub fn from_parts(rows: Array2<f64>, law: Law) -> Result<Self> {
        check_positive("the number of frequencies m", rows.nrows())?;
        check_positive("the dimension d", rows.ncols())?;
        check_size("the number of rows in the law", rows.nrows(), law.len())?;
        law.check()?;
        match rows.rows().into_iter().position(|row| row.iter().any(|v| !v.is_finite())) {
            None => Ok(Frequencies { form: Form::Dense(rows), law }),
            Some(row) => Err(Error::NotFinite { what: "the frequencies", row }),
        }
    }

    /// Structured frequencies with the law that you state for them.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the law is for another number of rows, [`Parameter`](Error::Parameter) if the cosine
    /// of an angle in it is outside \[−1, 1\].
    pub fn from_structured(structured: Structured, law: Law) -> Result<Self> {
        check_size("the number of rows in the law", structured.count(), law.len())?;
        law.check()?;
        Ok(Frequencies { form: Form::Structured(structured), law })
    }

    /// m, the number of frequencies.
    pub fn count(&self) -> usize {
        match &self.form {
            Form::Dense(rows) => rows.nrows(),
            Form::Structured(structured) => structured.count(),
        }
    }

    /// d, the dimension of each frequency.
    pub fn dim(&self) -> usize {
        match &self.form {
            Form::Dense(rows) => rows.ncols(),
            Form::Structured(structured) => structured.dim(),
        }
    }

    /// The dimension in which radii were drawn: d, or the dimension to which a structured coupling pads points (for
    /// [`Hadamard`](super::Hadamard) the next power of two, and at least 16).
    pub fn padded_dim(&self) -> usize {
        match &self.form {
            Form::Dense(rows) => rows.ncols(),
            Form::Structured(structured) => structured.padded(),
        }
    }

    /// The m × d matrix of frequencies, one in each row. For structured ones it is computed, in O(m d log d).
    pub fn rows(&self) -> CowArray<'_, f64, Ix2> {
        match &self.form {
            Form::Dense(rows) => rows.view().into(),
            Form::Structured(structured) => structured.to_rows().into(),
        }
    }

    /// ‖ω‖² of every row; with a structured coupling that pads, of the rows in the padded dimension.
    pub fn squared_norms(&self) -> Vec<f64> {
        match &self.form {
            Form::Dense(rows) => rows.rows().into_iter().map(|row| row.dot(&row)).collect(),
            Form::Structured(structured) => structured
                .blocks()
                .iter()
                .flat_map(|block| &block.radii)
                .map(|radius| radius * radius)
                .collect(),
        }
    }

    /// The structured form of the rows, if they have one.
    pub fn structured(&self) -> Option<&Structured> {
        match &self.form {
            Form::Dense(_) => None,
            Form::Structured(structured) => Some(structured),
        }
    }

    /// What is known about their joint law.
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// Feeds every number of the stored form to `hasher`.
    pub(crate) fn hash_numbers(&self, hasher: &mut impl Hasher) {
        let mut numbers = |v: f64| hasher.write_u64(v.to_bits());
        match &self.form {
            Form::Dense(rows) => rows.iter().copied().for_each(numbers),
            Form::Structured(structured) => {
                for block in structured.blocks() {
                    [block.vertices, block.copies].iter().for_each(|n| numbers(*n as f64));
                    block.radii.iter().copied().for_each(&mut numbers);
                    match &block.rotation {
                        Rotation::Hadamard(flips) => {
                            flips.iter().for_each(|f| numbers(f64::from(u8::from(*f))))
                        }
                        Rotation::Givens(rotations) => rotations.iter().for_each(|r| {
                            [r.axes[0] as f64, r.axes[1] as f64, r.angle].into_iter().for_each(&mut numbers);
                        }),
                    }
                }
            }
        }
    }
}

/// The stored form, validated again on reading.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Parts {
    form: Form,
    law: Law,
}

#[cfg(feature = "serde")]
impl TryFrom<Parts> for Frequencies {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self> {
        match parts.form {
            Form::Dense(rows) => Frequencies::from_parts(rows, parts.law),
            Form::Structured(structured) => Frequencies::from_structured(structured, parts.law),
        }
    }
}

#[cfg(feature = "serde")]
impl From<Frequencies> for Parts {
    fn from(frequencies: Frequencies) -> Self {
        Parts { form: frequencies.form, law: frequencies.law }
    }
}
