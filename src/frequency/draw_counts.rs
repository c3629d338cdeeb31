//! [`DrawCounts`]: a draw of counts as plain data, and the draws of [`Counts`].

use crate::generator::Generator;
use ndarray::Array2;
use rand_distr::{Distribution, Geometric, Poisson};

use super::counts::{CountLaw, Counts, LARGEST, Rates, check_probability};
use super::draw::generator;
use super::shape::{check_memory, check_shape};
use crate::digest::identified;
use crate::error::{Error, Result};
use crate::memory;

/// A draw of counts as plain data, which can be stored, compared and repeated.
///
/// ```
/// use random_features::frequency::Counts;
/// use random_features::recipe::{CountLaw, DrawCounts};
/// let draw = DrawCounts::new(3, 100, CountLaw::Geometric(0.4))?;
/// assert_eq!(draw.draw(7)?, Counts::geometric(3, 100, 0.4, 7)?);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Equal draws of one seed give equal counts. Unequal draws share no numbers, since each has a stream of its own.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredDrawCounts")
)]
#[non_exhaustive]
pub struct DrawCounts {
    /// d, the dimension of each frequency.
    pub d: usize,
    /// m, the number of frequencies.
    pub m: usize,
    /// The law of the counts.
    pub law: CountLaw,
    /// The number of the stream: streams of one seed are independent.
    pub stream: u64,
}

identified! { DrawCounts { d, m, law, stream } }

impl DrawCounts {
    /// A draw of m frequencies in ℕᵈ of this law, from stream 0. Equal draws that must be independent need different
    /// [streams](DrawCounts::with_stream).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if a rate is not positive or exceeds 1e15, or p is not between 0 and 1, exclusive;
    /// [`Shape`](Error::Shape) if the number of rates is not `d`. Whether `d` and `m` are positive is checked by a draw.
    pub fn new(d: usize, m: usize, law: CountLaw) -> Result<Self> {
        law.check(d)?;
        Ok(DrawCounts { d, m, law, stream: 0 })
    }

    /// Sets the number of the random stream: draws of one seed from different streams are independent. It is 0 unless set.
    #[must_use]
    pub fn with_stream(self, stream: u64) -> Self {
        DrawCounts { stream, ..self }
    }

    /// The counts of this draw for a seed. Rows are drawn in order, each from left to right.
    ///
    /// # Errors
    /// The errors of [`Counts::poisson`] and [`Counts::geometric`]; [`Law`](Error::Law) if the law is not known.
    pub fn draw(&self, seed: u64) -> Result<Counts> {
        check_shape(self.d, self.m)?;
        let mut rng = generator(seed, "draw of counts", self);
        let rows = match &self.law {
            CountLaw::Poisson(rates) => self.poisson(rates, &mut rng)?,
            CountLaw::Geometric(p) => self.geometric(*p, &mut rng)?,
            law => return Err(Error::Law { expected: "Poisson or geometric", found: law.name() }),
        };
        Counts::drawn(rows, self.clone(), seed)
    }

    fn poisson(&self, rates: &Rates, rng: &mut Generator) -> Result<Array2<u64>> {
        rates.check(self.d)?;
        let of_rate = |value| {
            let (name, domain) = ("the rate lambda", "positive and at most 1e15");
            Poisson::new(value).map_err(|_| Error::Parameter { name, value, domain })
        };
        check_memory(self.d, self.m)?;
        memory::check_memory("laws of coordinates", self.d, size_of::<Poisson<f64>>())?;
        let coordinates = rates.each(self.d).map(of_rate).collect::<Result<Vec<_>>>()?;
        // Samples are integers from 0 to 2⁵³ in f64, so the conversion is exact.
        Ok(Array2::from_shape_fn((self.m, self.d), |(_, l)| coordinates[l].sample(rng) as u64))
    }

    fn geometric(&self, p: f64, rng: &mut Generator) -> Result<Array2<u64>> {
        check_probability(p)?;
        let (name, domain) = ("the probability p", "above 0 and below 1");
        let law = Geometric::new(p).map_err(|_| Error::Parameter { name, value: p, domain })?;
        check_memory(self.d, self.m)?;
        Ok(Array2::from_shape_fn((self.m, self.d), |_| law.sample(rng).min(LARGEST)))
    }
}

impl Counts {
    /// Draws m frequencies in ℕᵈ whose coordinates are independent Poisson counts of rate λ, or λₗ for coordinate l.
    ///
    /// [`PairStatistics::poisson`](crate::data::PairStatistics::poisson) and
    /// [`PairStatistics::poisson_per_dimension`](crate::data::PairStatistics::poisson_per_dimension) choose rates from data.
    ///
    /// ```
    /// use random_features::frequency::Counts;
    /// let omega = Counts::poisson(3, 100, vec![0.1, 1.0, 10.0], 7)?;
    /// assert_eq!((omega.m(), omega.dim()), (100, 3));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if `d` or `m` is 0, or a rate is not positive or exceeds 1e15;
    /// [`Shape`](Error::Shape) if the number of rates is not `d`; [`Memory`](Error::Memory) if m × d counts do not fit in
    /// memory.
    pub fn poisson(d: usize, m: usize, rates: impl Into<Rates>, seed: u64) -> Result<Counts> {
        DrawCounts::new(d, m, CountLaw::Poisson(rates.into()))?.draw(seed)
    }

    /// Draws m frequencies in ℕᵈ whose coordinates are independent geometric counts: P(ω = k) = p(1−p)ᵏ, from k = 0.
    ///
    /// [`PairStatistics::geometric`](crate::data::PairStatistics::geometric) chooses p from data. Counts saturate at 2⁵³; for
    /// p ≥ 1e-14 larger ones have probability below 1e-39.
    ///
    /// ```
    /// use random_features::frequency::Counts;
    /// let omega = Counts::geometric(3, 100, 0.4, 7)?;
    /// assert_eq!((omega.m(), omega.dim()), (100, 3));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if `d` or `m` is 0, or p is not between 0 and 1, exclusive;
    /// [`Memory`](Error::Memory) if m × d counts do not fit in memory.
    pub fn geometric(d: usize, m: usize, p: f64, seed: u64) -> Result<Counts> {
        DrawCounts::new(d, m, CountLaw::Geometric(p))?.draw(seed)
    }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
#[serde(rename = "DrawCounts")]
struct StoredDrawCounts {
    d: usize,
    m: usize,
    law: CountLaw,
    stream: u64,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredDrawCounts> for DrawCounts {
    type Error = Error;

    fn try_from(StoredDrawCounts { d, m, law, stream }: StoredDrawCounts) -> Result<Self> {
        Ok(DrawCounts::new(d, m, law)?.with_stream(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    /// Streams and stored identities follow from these: a change here is a change of both.
    #[test]
    fn identities_are_pinned() {
        let of = |law| DrawCounts::new(3, 4, law).unwrap();
        let pinned = [
            (of(CountLaw::Poisson(1.5.into())), "8917ebb784aade9e"),
            (of(CountLaw::Poisson(vec![0.1, 20.0, 1e6].into())), "46976a32c1353176"),
            (of(CountLaw::Geometric(0.2)), "8074aa6e31cb41e8"),
            (of(CountLaw::Unknown), "394db3fa8a94e94c"),
            (of(CountLaw::Geometric(0.2)).with_stream(1), "e0ea9008ab482601"),
        ];
        for (draw, identity) in &pinned {
            assert_eq!(format!("{:016x}", Digest::of(draw)), *identity, "{draw:?}");
        }
        let counts = of(CountLaw::Geometric(0.2)).draw(7).unwrap();
        assert_eq!(format!("{:016x}", Digest::of(&counts)), "5072be6132391462");
        let given = Counts::from_parts(counts.rows().to_owned(), counts.law().clone()).unwrap();
        assert!(!given.same_draw(&counts) && given.rows() == counts.rows());
        assert_ne!(Digest::of(&given), Digest::of(&counts));
    }
}
