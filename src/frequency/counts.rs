//! [`Counts`]: integer frequencies for the Poisson and the geometric map.

use ndarray::{Array2, ArrayView2};
use rand::Rng;
use rand_distr::Distribution;

use super::shape::{check_memory, check_shape};
use crate::error::{Error, Result, check_positive, check_size};

/// 2⁵³: counts up to this value are exact in `f64`.
const LARGEST: u64 = 1 << f64::MANTISSA_DIGITS;
/// The largest λ: draws stay millions of standard deviations below [`LARGEST`].
const LARGEST_RATE: f64 = 1e15;

/// The rates λ of Poisson counts: one for all coordinates or one for each.
///
/// Converts from `f64` and `Vec<f64>`. Functions that take rates check them: every λ must be positive and at most 1e15.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Rates {
    /// The same for all coordinates.
    Same(#[cfg_attr(feature = "serde", serde(with = "crate::exact"))] f64),
    /// One for each coordinate.
    PerDimension(#[cfg_attr(feature = "serde", serde(with = "crate::exact"))] Vec<f64>),
}

impl crate::digest::Identify for Rates {
    fn identify(&self, digest: &mut crate::digest::Digest) {
        match self {
            Rates::Same(rate) => crate::digest::Identify::identify(rate, digest),
            Rates::PerDimension(rates) => crate::digest::Identify::identify(rates, digest),
        }
    }
}

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
        (0..d).map(|l| match self {
            Rates::Same(rate) => *rate,
            Rates::PerDimension(rates) => rates[l],
        })
    }

    /// Rejects rates outside the domain or for another dimension than `d`.
    pub(crate) fn check(&self, d: usize) -> Result<()> {
        if let Rates::PerDimension(rates) = self {
            check_size("the number of rates", d, rates.len())?;
        }
        match self.each(d).find(|rate| !(*rate > 0.0 && *rate <= LARGEST_RATE)) {
            None => Ok(()),
            Some(value) => {
                Err(Error::Parameter { name: "the rate lambda", value, domain: "positive and at most 1e15" })
            }
        }
    }
}

/// The distribution of counts, all of which are independent.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CountLaw {
    /// Poisson with these rates: P(ω = k) = e^{−λ} λᵏ/k!.
    Poisson(Rates),
    /// Geometric with this p: P(ω = k) = p(1−p)ᵏ, from k = 0.
    Geometric(#[cfg_attr(feature = "serde", serde(with = "crate::exact"))] f64),
    /// Nothing is known.
    Unknown,
}

impl CountLaw {
    fn check(&self, d: usize) -> Result<()> {
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
    let error =
        Error::Parameter { name: "the probability p", value: p, domain: "between 0 and 1, exclusive" };
    if p > 0.0 && p < 1.0 { Ok(()) } else { Err(error) }
}

/// Counts ω₁ … ω_m ∈ ℕᵈ, in rows, and their law.
///
/// Immutable. Created by [`draw_poisson`] or [`draw_geometric`], from your own matrix
/// ([`from_rows`](Counts::from_rows)), or from a stored copy (feature `serde`). Counts are `u64`, because geometric
/// counts for points of norm 1e5 exceed `u32`. They are at most 2⁵³, so that `f64` represents them exactly and
/// projections lose nothing.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Parts", into = "Parts")
)]
pub struct Counts {
    rows: Array2<u64>,
    law: CountLaw,
}

impl Counts {
    /// Your own counts, one frequency in each row. Their law is unknown, so variances have no closed form.
    ///
    /// # Errors
    /// As [`from_parts`](Counts::from_parts).
    pub fn from_rows(rows: Array2<u64>) -> Result<Self> {
        Self::from_parts(rows, CountLaw::Unknown)
    }

    /// Counts with the law that you state for them.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is no row or no column or a parameter of the law is outside
    /// its domain, [`Shape`](Error::Shape) if the law has rates for another dimension,
    /// [`Entry`](Error::Entry) with the first row that holds a count beyond 2⁵³.
    pub fn from_parts(rows: Array2<u64>, law: CountLaw) -> Result<Self> {
        check_positive("the number of frequencies m", rows.nrows())?;
        check_positive("the dimension d", rows.ncols())?;
        law.check(rows.ncols())?;
        match rows.indexed_iter().find(|(_, count)| **count > LARGEST) {
            None => Ok(Counts { rows, law }),
            Some(((row, _), count)) => {
                Err(Error::Entry { what: "the counts", row, value: *count as f64, domain: "at most 2^53" })
            }
        }
    }

    /// m, the number of frequencies.
    pub fn count(&self) -> usize {
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

    /// Their law.
    pub fn law(&self) -> &CountLaw {
        &self.law
    }
}

/// Draws `m` frequencies in ℕᵈ whose coordinates are independent Poisson counts of rate λ, or λₗ for
/// coordinate l.
///
/// [`PairStatistics::poisson`](crate::data::PairStatistics::poisson) and
/// [`PairStatistics::poisson_per_dimension`](crate::data::PairStatistics::poisson_per_dimension) choose rates from
/// data. Rows are drawn in order, each from left to right.
///
/// ```
/// use random_features::frequency::draw_poisson;
/// let omega = draw_poisson(3, 100, vec![0.1, 1.0, 10.0], &mut random_features::rng(7))?;
/// assert_eq!((omega.count(), omega.dim()), (100, 3));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// [`Parameter`](Error::Parameter) if `d` or `m` is 0, their product does not fit in memory, or a rate is not positive
/// or exceeds 1e15; [`Shape`](Error::Shape) if the number of rates is not `d`.
pub fn draw_poisson<R: Rng + ?Sized>(
    d: usize,
    m: usize,
    rates: impl Into<Rates>,
    rng: &mut R,
) -> Result<Counts> {
    let rates = rates.into();
    check_shape(d, m)?;
    rates.check(d)?;
    let of_rate = |rate| {
        rand_distr::Poisson::new(rate).map_err(|_| Error::Parameter {
            name: "the rate lambda",
            value: rate,
            domain: "positive and at most 1e15",
        })
    };
    let coordinates = rates.each(d).map(of_rate).collect::<Result<Vec<_>>>()?;
    check_memory(d, m)?;
    // Integers from 0 to 2⁵³ in f64, so the conversion is exact.
    let rows = Array2::from_shape_fn((m, d), |(_, l)| coordinates[l].sample(rng) as u64);
    Counts::from_parts(rows, CountLaw::Poisson(rates))
}

/// Draws `m` frequencies in ℕᵈ whose coordinates are independent geometric counts: P(ω = k) = p(1−p)ᵏ, from k
/// = 0.
///
/// [`PairStatistics::geometric`](crate::data::PairStatistics::geometric) chooses p from data. Rows are drawn in order,
/// each from left to right. Counts saturate at 2⁵³; for p ≥ 1e-14 larger ones have probability below 1e-39.
///
/// ```
/// use random_features::frequency::draw_geometric;
/// let omega = draw_geometric(3, 100, 0.4, &mut random_features::rng(7))?;
/// assert_eq!((omega.count(), omega.dim()), (100, 3));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// [`Parameter`](Error::Parameter) if `d` or `m` is 0, their product does not fit in memory, or p is not
/// between 0 and 1, exclusive.
pub fn draw_geometric<R: Rng + ?Sized>(d: usize, m: usize, p: f64, rng: &mut R) -> Result<Counts> {
    check_shape(d, m)?;
    check_probability(p)?;
    let law = rand_distr::Geometric::new(p).map_err(|_| Error::Parameter {
        name: "the probability p",
        value: p,
        domain: "between 0 and 1, exclusive",
    })?;
    check_memory(d, m)?;
    let rows = Array2::from_shape_fn((m, d), |_| law.sample(rng).min(LARGEST));
    Counts::from_parts(rows, CountLaw::Geometric(p))
}

/// The stored form, validated again on reading.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Parts {
    rows: Array2<u64>,
    law: CountLaw,
}

#[cfg(feature = "serde")]
impl TryFrom<Parts> for Counts {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self> {
        Counts::from_parts(parts.rows, parts.law)
    }
}

#[cfg(feature = "serde")]
impl From<Counts> for Parts {
    fn from(counts: Counts) -> Self {
        Parts { rows: counts.rows, law: counts.law }
    }
}
