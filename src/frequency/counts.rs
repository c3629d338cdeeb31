//! [`Counts`]: integer frequencies for the Poisson and the geometric map.

use ndarray::{Array2, ArrayView2};

use super::draw_counts::DrawCounts;
use super::provenance::Provenance;
use crate::digest::{Digest, Identify};
use crate::error::{Error, Result, check_positive, check_size};
use crate::tagged::tagged;

/// 2⁵³: counts up to this value are exact in `f64`.
pub(super) const LARGEST: u64 = 1 << f64::MANTISSA_DIGITS;
/// The largest λ: draws stay millions of standard deviations below [`LARGEST`].
const LARGEST_RATE: f64 = 1e15;

/// The rates λ of Poisson counts: one for all coordinates or one for each.
///
/// They convert from `f64` and `Vec<f64>`. Functions that take rates check that every λ is positive and at most 1e15.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rates {
    /// One rate λ for all coordinates.
    Same(f64),
    /// One rate λₗ for each of the d coordinates.
    PerDimension(Vec<f64>),
}

tagged!(Rates, "a kind of rates" {
    "same" => Same[rate: f64],
    "per dimension" => PerDimension[rates: Vec<f64>],
});

impl From<f64> for Rates {
    fn from(rate: f64) -> Self {
        Rates::Same(rate)
    }
}

impl From<Vec<f64>> for Rates {
    fn from(rates: Vec<f64>) -> Self {
        Rates::PerDimension(rates)
    }
}

impl Rates {
    /// λ of each of `d` coordinates.
    pub(crate) fn each(&self, d: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        (0..d).map(move |l| match self {
            Rates::Same(rate) => *rate,
            Rates::PerDimension(rates) => rates[l],
        })
    }

    /// Rejects rates outside the domain or for another dimension than `d`.
    pub(crate) fn check(&self, d: usize) -> Result<()> {
        if let Rates::PerDimension(rates) = self {
            check_size("the number of rates", d, rates.len())?;
        }
        self.check_values()
    }

    /// Rejects rates outside the domain.
    pub(crate) fn check_values(&self) -> Result<()> {
        let rates = match self {
            Rates::Same(rate) => std::slice::from_ref(rate),
            Rates::PerDimension(rates) => rates.as_slice(),
        };
        match rates.iter().find(|rate| !(**rate > 0.0 && **rate <= LARGEST_RATE)) {
            None => Ok(()),
            Some(&value) => {
                Err(Error::Parameter { name: "the rate lambda", value, domain: "positive and at most 1e15" })
            }
        }
    }
}

/// The distribution of counts, all of which are independent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CountLaw {
    /// Poisson with these rates: P(ω = k) = e^{−λ} λᵏ/k!.
    Poisson(Rates),
    /// Geometric with this p in (0, 1): P(ω = k) = p(1−p)ᵏ, from k = 0.
    Geometric(f64),
    /// The law is not known.
    Unknown,
}

tagged!(CountLaw, "a law of counts" {
    "poisson" => Poisson(rates: Rates),
    "geometric" => Geometric[p: f64],
    "unknown" => Unknown,
});

impl CountLaw {
    pub(crate) fn check(&self, d: usize) -> Result<()> {
        match self {
            CountLaw::Poisson(rates) => rates.check(d),
            CountLaw::Geometric(p) => check_probability(*p),
            CountLaw::Unknown => Ok(()),
        }
    }

    /// The name used in errors.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            CountLaw::Poisson(_) => "Poisson",
            CountLaw::Geometric(_) => "geometric",
            CountLaw::Unknown => "unknown",
        }
    }
}

/// Rejects p outside (0, 1).
pub(crate) fn check_probability(p: f64) -> Result<()> {
    let error = Error::Parameter { name: "the probability p", value: p, domain: "above 0 and below 1" };
    if p > 0.0 && p < 1.0 { Ok(()) } else { Err(error) }
}

/// Counts ω₁ … ω_m ∈ ℕᵈ, in rows, with their law and where they come from.
///
/// They come from [`poisson`](Counts::poisson) or [`geometric`](Counts::geometric), from your own matrix
/// ([`from_rows`](Counts::from_rows)), or from a stored copy (feature `serde`), and do not change. Counts are `u64`, because
/// geometric counts for points of norm 1e5 exceed `u32`. They are at most 2⁵³, so that `f64` represents them exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    provenance: Provenance<DrawCounts>,
    rows: Array2<u64>,
    law: CountLaw,
}

impl Counts {
    /// Your own counts, m × d, one frequency in each row. Their law is unknown, so variances have no closed form.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is no row or no column, [`Entry`](Error::Entry) for a count beyond 2⁵³.
    pub fn from_rows(rows: Array2<u64>) -> Result<Self> {
        Self::from_parts(rows, CountLaw::Unknown)
    }

    /// Your own counts, m × d, with the law that you state for them.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is no row or no column or a parameter of the law is outside
    /// its domain, [`Shape`](Error::Shape) if the law has rates for another dimension,
    /// [`Entry`](Error::Entry) with the first row that holds a count beyond 2⁵³.
    pub fn from_parts(rows: Array2<u64>, law: CountLaw) -> Result<Self> {
        check(&rows, &law)?;
        Ok(Counts { provenance: Provenance::given(&rows), rows, law })
    }

    /// The counts of a draw.
    pub(super) fn drawn(rows: Array2<u64>, draw: DrawCounts, seed: u64) -> Result<Self> {
        let law = draw.law.clone();
        check(&rows, &law)?;
        Ok(Counts { provenance: Provenance::Drawn { draw, seed }, rows, law })
    }

    /// m, the number of frequencies.
    pub fn m(&self) -> usize {
        self.rows.nrows()
    }

    /// d, the dimension of each frequency.
    pub fn dim(&self) -> usize {
        self.rows.ncols()
    }

    /// The frequencies, one in each row: m × d.
    pub fn rows(&self) -> ArrayView2<'_, u64> {
        self.rows.view()
    }

    /// The law of the counts.
    pub fn law(&self) -> &CountLaw {
        &self.law
    }

    /// The draw and the seed that give these counts again; `None` if they were given as numbers.
    pub fn drawn_from(&self) -> Option<(&DrawCounts, u64)> {
        self.provenance.draw().zip(self.provenance.seed())
    }

    /// Whether both have one provenance, and so equal counts, whatever is stated of their law.
    pub(crate) fn same_draw(&self, other: &Counts) -> bool {
        self.provenance == other.provenance
    }
}

/// Rejects no rows, laws for another dimension, and counts beyond 2⁵³.
fn check(rows: &Array2<u64>, law: &CountLaw) -> Result<()> {
    check_positive("the number of frequencies m", rows.nrows())?;
    check_positive("the dimension d", rows.ncols())?;
    law.check(rows.ncols())?;
    match rows.indexed_iter().find(|(_, count)| **count > LARGEST) {
        None => Ok(()),
        Some(((row, _), count)) => {
            Err(Error::Entry { what: "the counts", row, value: *count as f64, domain: "at most 2^53" })
        }
    }
}

/// Counts are identified by their provenance, and given counts by their law too.
impl Identify for Counts {
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
    use ndarray::Array2;
    use serde::{Deserialize, Serialize};

    use super::{CountLaw, Counts, DrawCounts, Provenance, check};
    use crate::frequency::provenance::Origin;
    use crate::sealed::{AnyScalar, sealed};

    #[derive(Serialize, Deserialize)]
    #[serde(rename = "Counts")]
    struct StoredCounts {
        origin: Option<Origin<DrawCounts>>,
        rows: Array2<u64>,
        law: CountLaw,
    }

    sealed!(Counts, StoredCounts, AnyScalar);

    impl From<&Counts> for StoredCounts {
        fn from(Counts { provenance, rows, law }: &Counts) -> Self {
            StoredCounts { origin: provenance.origin(), rows: rows.clone(), law: law.clone() }
        }
    }

    impl TryFrom<StoredCounts> for Counts {
        type Error = String;

        fn try_from(StoredCounts { origin, rows, law }: StoredCounts) -> Result<Self, String> {
            check(&rows, &law).map_err(|error| error.to_string())?;
            let provenance = Provenance::of_origin(origin, &rows);
            let fits = |draw: &DrawCounts| (draw.m, draw.d) == rows.dim() && draw.law == law;
            if !provenance.draw().is_none_or(fits) {
                return Err("the shape or the law of the counts is not that of their draw".into());
            }
            Ok(Counts { provenance, rows, law })
        }
    }
}
