//! [`Frequencies`]: the result of a draw.

use ndarray::{Array2, CowArray, Ix2};

use super::draw::Draw;
use super::provenance::Provenance;
use super::structured::Structured;
use crate::digest::{Digest, Identify};
use crate::error::{Error, Result, check_positive, check_size};
use crate::tagged::tagged;
use crate::theory::Law;

/// Drawn frequencies ω₁ … ω_m ∈ ℝᵈ, in rows, with their law and where they come from.
///
/// They come from the `draw` of a coupling or of a kernel, from your own matrix ([`from_rows`](Frequencies::from_rows)), or from a stored
/// copy (feature `serde`), and do not change. Frequencies of a structured coupling are stored as factors, not as a matrix.
/// Equal frequencies have equal numbers, the same law and the same origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Frequencies {
    provenance: Provenance,
    form: FrequencyForm,
    law: Law,
}

/// The numbers of frequencies: a matrix, m × d, or the factors of one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FrequencyForm {
    Dense(Array2<f64>),
    Structured(Structured),
}

tagged!(FrequencyForm, "a form of frequencies" {
    "dense" => Dense[rows: Array2<f64>],
    "structured" => Structured(structured: Structured),
});

impl FrequencyForm {
    /// m.
    fn m(&self) -> usize {
        match self {
            FrequencyForm::Dense(rows) => rows.nrows(),
            FrequencyForm::Structured(structured) => structured.m(),
        }
    }

    /// d.
    fn dim(&self) -> usize {
        match self {
            FrequencyForm::Dense(rows) => rows.ncols(),
            FrequencyForm::Structured(structured) => structured.dim(),
        }
    }

    fn padded_dim(&self) -> usize {
        match self {
            FrequencyForm::Dense(rows) => rows.ncols(),
            FrequencyForm::Structured(structured) => structured.padded(),
        }
    }

    /// Rejects no rows, numbers that are not finite, and laws for another number of rows.
    fn check(&self, law: &Law) -> Result<()> {
        check_positive("the number of frequencies m", self.m())?;
        check_positive("the dimension d", self.dim())?;
        check_size("the number of rows in the law", self.m(), law.len())?;
        law.check()?;
        let FrequencyForm::Dense(rows) = self else { return Ok(()) };
        match rows.indexed_iter().find(|(_, v)| !v.is_finite()) {
            None => Ok(()),
            Some(((row, k), _)) => Err(Error::NotFinite { what: "the frequencies", row, column: Some(k) }),
        }
    }
}

impl Frequencies {
    /// Your own frequencies, m × d, one in each row. Their law is not stated, so maps know neither their kernel nor their
    /// variance.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is no row or no column, [`NotFinite`](Error::NotFinite) if a number is not
    /// finite.
    pub fn from_rows(rows: Array2<f64>) -> Result<Self> {
        let law = Law::unknown(rows.nrows());
        Self::from_parts(rows, law)
    }

    /// Your own frequencies, m × d, with the law that you state for them.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is no row or no column, [`NotFinite`](Error::NotFinite) if a
    /// number is not finite, [`Shape`](Error::Shape) if the law is for another number of rows,
    /// [`Parameter`](Error::Parameter) if the cosine of an angle in it is outside \[−1, 1\].
    pub fn from_parts(rows: Array2<f64>, law: Law) -> Result<Self> {
        Self::given(FrequencyForm::Dense(rows), law)
    }

    /// Structured frequencies with the law that you state for them.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the law is for another number of rows, [`Parameter`](Error::Parameter) if the cosine
    /// of an angle in it is outside \[−1, 1\].
    pub fn from_structured(structured: Structured, law: Law) -> Result<Self> {
        Self::given(FrequencyForm::Structured(structured), law)
    }

    /// Frequencies that do not come from a draw with a name.
    pub(super) fn given(form: FrequencyForm, law: Law) -> Result<Self> {
        form.check(&law)?;
        Ok(Frequencies { provenance: Provenance::given(&form), form, law })
    }

    /// The frequencies of a draw.
    pub(super) fn drawn(form: FrequencyForm, draw: Draw, seed: u64) -> Result<Self> {
        let law = draw.law();
        form.check(&law)?;
        Ok(Frequencies { provenance: Provenance::Drawn { draw, seed }, form, law })
    }

    /// m, the number of frequencies.
    pub fn m(&self) -> usize {
        self.form.m()
    }

    /// d, the dimension of each frequency.
    pub fn dim(&self) -> usize {
        self.form.dim()
    }

    /// The dimension in which radii were drawn: d, or the dimension to which a structured coupling pads points (for
    /// [`Hadamard`](super::Hadamard) the next power of two, and at least 16).
    pub fn padded_dim(&self) -> usize {
        self.form.padded_dim()
    }

    /// The m × d matrix of frequencies, one in each row. For structured ones it is computed, in O(m d log d).
    pub fn rows(&self) -> CowArray<'_, f64, Ix2> {
        match &self.form {
            FrequencyForm::Dense(rows) => rows.view().into(),
            FrequencyForm::Structured(structured) => structured.to_rows().into(),
        }
    }

    /// Rejects frequencies if there is no memory for their [rows](Frequencies::rows), where these must be computed.
    pub(crate) fn check_rows(&self) -> Result<()> {
        self.structured().map_or(Ok(()), Structured::check_rows)
    }

    /// ‖ω‖² of every row; with a structured coupling that pads, of the rows in the padded dimension.
    pub fn squared_norms(&self) -> Vec<f64> {
        match &self.form {
            FrequencyForm::Dense(rows) => rows.rows().into_iter().map(|row| row.dot(&row)).collect(),
            FrequencyForm::Structured(structured) => structured
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
            FrequencyForm::Dense(_) => None,
            FrequencyForm::Structured(structured) => Some(structured),
        }
    }

    /// The joint law of the frequencies, as far as it is known.
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// The draw and the seed that give these frequencies again; `None` if they were given as numbers, or drawn from a coupling or
    /// radii of your own.
    ///
    /// ```
    /// use random_features::frequency::{Frequencies, Orthogonal};
    /// use random_features::recipe::Draw;
    /// let omega = Orthogonal.draw(3, 4, 7)?;
    /// assert_eq!(omega.drawn_from(), Some((&Draw::new(3, 4, Orthogonal), 7)));
    /// assert!(
    ///     Frequencies::from_rows(omega.rows().into_owned())?
    ///         .drawn_from()
    ///         .is_none()
    /// );
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn drawn_from(&self) -> Option<(&Draw, u64)> {
        self.provenance.draw().zip(self.provenance.seed())
    }

    /// Whether both have one provenance, and so equal numbers, whatever is stated of their law.
    pub(crate) fn same_draw(&self, other: &Frequencies) -> bool {
        self.provenance == other.provenance
    }
}

/// Frequencies are identified by their provenance, and given ones by their law too. The numbers of a draw do not enter,
/// since their last bits may differ between machines.
impl Identify for Frequencies {
    fn identify(&self, digest: &mut Digest) {
        self.provenance.identify(digest);
        if self.provenance.draw().is_none() {
            self.law.identify(digest);
        }
    }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use serde::{Deserialize, Serialize};

    use super::{Draw, Frequencies, FrequencyForm, Law, Provenance};
    use crate::frequency::provenance::Origin;
    use crate::sealed::{AnyScalar, sealed};

    #[derive(Serialize, Deserialize)]
    #[serde(rename = "Frequencies")]
    struct StoredFrequencies {
        origin: Option<Origin<Draw>>,
        form: FrequencyForm,
        law: Law,
    }

    sealed!(Frequencies, StoredFrequencies, AnyScalar);

    impl From<&Frequencies> for StoredFrequencies {
        fn from(Frequencies { provenance, form, law }: &Frequencies) -> Self {
            StoredFrequencies { origin: provenance.origin(), form: form.clone(), law: law.clone() }
        }
    }

    impl TryFrom<StoredFrequencies> for Frequencies {
        type Error = String;

        fn try_from(StoredFrequencies { origin, form, law }: StoredFrequencies) -> Result<Self, String> {
            form.check(&law).map_err(|error| error.to_string())?;
            let provenance = Provenance::of_origin(origin, &form);
            let fits = |draw: &Draw| {
                let sizes = (draw.d, draw.m, draw.padded_dim()) == (form.dim(), form.m(), form.padded_dim());
                sizes && draw.law() == law
            };
            if !provenance.draw().is_none_or(fits) {
                return Err("the shape or the law of the frequencies is not that of their draw".into());
            }
            Ok(Frequencies { provenance, form, law })
        }
    }
}
