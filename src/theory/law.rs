//! [`Law`]: what is known about the joint law of drawn frequencies, as data.

pub use crate::kernel::Radius;

/// How the rows of one block depend on each other.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Dependence {
    /// Rows are independent.
    Independent,
    /// Directions are orthogonal and uniformly distributed; radii are independent.
    Orthogonal,
    /// Any two directions are at the same fixed angle and directions are uniformly distributed; radii are independent.
    Angle {
        /// The cosine of the angle.
        #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
        cos: f64,
    },
    /// Nothing is known; directions may not even be uniform.
    Unknown,
    // The last one, because formats that number variants must read what older versions stored.
    /// Nothing is known, and directions are only nearly uniform, as those of fast rotations: estimates have a small bias.
    Approximate,
}

/// The law of one block of consecutive rows. Rows may depend on each other, but not on other blocks.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct BlockLaw {
    /// Number of rows.
    pub size: usize,
    /// How the rows depend on each other; with `antithetic`, how rows of different pairs do.
    pub dependence: Dependence,
    /// The law of the norms.
    pub radius: Radius,
    /// Rows come in pairs (ω, −ω); if the size is odd, the last row is unpaired.
    pub antithetic: bool,
}

impl BlockLaw {
    /// Rows with this dependence and norms of this law, without antithetic pairs.
    pub fn new(size: usize, dependence: Dependence, radius: Radius) -> Self {
        BlockLaw { size, dependence, radius, antithetic: false }
    }

    /// The same number of rows in [antithetic](BlockLaw::antithetic) pairs.
    pub fn in_pairs(self) -> Self {
        BlockLaw { antithetic: true, ..self }
    }

    /// Rows of unknown dependence, with norms of this law.
    pub fn unknown(size: usize, radius: Radius) -> Self {
        BlockLaw::new(size, Dependence::Unknown, radius)
    }
}

/// The joint law of all rows: independent blocks.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Law {
    /// The blocks, in the order of the rows.
    pub blocks: Vec<BlockLaw>,
}

/// How many pairs of rows depend on each other, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pairs {
    /// Pairs ω, −ω.
    pub antithetic: f64,
    /// Ordered pairs of other dependent rows, with the cosine of their angle.
    pub angles: Vec<(f64, f64)>,
}

impl Pairs {
    fn add(&mut self, cos: f64, count: f64) {
        match self.angles.iter_mut().find(|(known, _)| *known == cos) {
            Some((_, sum)) => *sum += count,
            None => self.angles.push((cos, count)),
        }
    }
}

impl Law {
    /// `m` rows with radii of this law in blocks of `capacity` rows; the last block may be partial.
    ///
    /// A capacity of 0 counts as 1. Uses memory proportional to the number of blocks.
    pub fn blocks(m: usize, capacity: usize, dependence: Dependence, radius: Radius) -> Self {
        let capacity = capacity.max(1);
        let size = |start: usize| capacity.min(m - start);
        let block = |start| BlockLaw { size: size(start), dependence, radius, antithetic: false };
        Law { blocks: (0..m).step_by(capacity).map(block).collect() }
    }

    /// These blocks, which are independent of each other.
    pub fn of_blocks(blocks: Vec<BlockLaw>) -> Self {
        Law { blocks }
    }

    /// `m` independent rows ~ N(0, I).
    pub fn independent(m: usize) -> Self {
        Law::blocks(m, m, Dependence::Independent, Radius::Chi)
    }

    /// `m` rows ~ N(0, I) in independent blocks of up to `d` orthogonal ones.
    pub fn orthogonal(d: usize, m: usize) -> Self {
        Law::blocks(m, d, Dependence::Orthogonal, Radius::Chi)
    }

    /// `m` rows of unknown law.
    pub fn unknown(m: usize) -> Self {
        Law::blocks(m, m, Dependence::Unknown, Radius::Unstated)
    }

    /// The same rows with radii of another law.
    pub fn with_radius(mut self, radius: Radius) -> Self {
        self.blocks.iter_mut().for_each(|block| block.radius = radius);
        self
    }

    /// The same number of rows, in antithetic pairs within each block.
    pub fn antithetic(mut self) -> Self {
        self.blocks.iter_mut().for_each(|block| block.antithetic = true);
        self
    }

    /// The law of the radii if it is the same for all blocks; otherwise [`Other`](Radius::Other) if all blocks have
    /// uniform directions, else [`Unstated`](Radius::Unstated). `Unstated` if there are no blocks.
    pub fn radius(&self) -> Radius {
        let first = self.blocks.first().map_or(Radius::Unstated, |block| block.radius);
        match self.blocks.iter().find(|block| block.radius != first) {
            None => first,
            Some(_) if self.blocks.iter().all(|block| block.radius.is_polar()) => Radius::Other,
            Some(_) => Radius::Unstated,
        }
    }

    /// The law with radii χ, if all directions are uniform. For results that depend only on directions.
    pub(crate) fn directions(&self) -> Option<Law> {
        let polar = self.blocks.iter().all(|block| block.radius.is_polar());
        polar.then(|| self.clone().with_radius(Radius::Chi))
    }

    /// Whether no block has radii of [`Unstated`](Radius::Unstated) law.
    pub fn is_stated(&self) -> bool {
        self.blocks.iter().all(|block| block.radius != Radius::Unstated)
    }

    /// Whether a block is stated to follow its law only [approximately](Dependence::Approximate), so that estimates of the
    /// kernel of that law have a small bias. Couplings of this crate state it wherever it is the case: with Hadamard products,
    /// and with plane rotations unless d = 2.
    ///
    /// ```
    /// use random_features::frequency::{Coupling, Hadamard, Orthogonal};
    /// assert!(Hadamard::default().draw(16, 32, 1)?.law().is_approximate());
    /// assert!(!Orthogonal.draw(16, 32, 1)?.law().is_approximate());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn is_approximate(&self) -> bool {
        self.blocks.iter().any(|block| block.dependence == Dependence::Approximate)
    }

    /// Rejects angles whose cosine is not in \[−1, 1\].
    pub(crate) fn check(&self) -> crate::Result<()> {
        let cos = |block: &BlockLaw| match block.dependence {
            Dependence::Angle { cos } => Some(cos),
            _ => None,
        };
        match self.blocks.iter().filter_map(cos).find(|cos| !(-1.0..=1.0).contains(cos)) {
            None => Ok(()),
            Some(value) => {
                Err(crate::Error::Parameter {
                    name: "the cosine of an angle", value, domain: "from −1 to 1"
                })
            }
        }
    }

    /// Whether all rows are independent and ~ N(0, I).
    pub fn is_independent(&self) -> bool {
        self.pairs(Radius::Chi).is_some_and(|pairs| pairs == Pairs::default())
    }

    /// The number of independent rows that have the same variance of the mean of any function that is even in ω: n²/(n + 2p)
    /// for n rows with p antithetic pairs. `None` for any other dependence between rows, or unless all rows are ~ N(0, I).
    pub(crate) fn effective_count(&self) -> Option<f64> {
        let pairs = self.pairs(Radius::Chi)?;
        let n = self.len() as f64;
        pairs.angles.is_empty().then(|| n * n / (n + 2.0 * pairs.antithetic))
    }

    /// The number of rows, saturating at `usize::MAX`.
    pub fn len(&self) -> usize {
        self.blocks.iter().fold(0, |sum, block| sum.saturating_add(block.size))
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dependent pairs of rows, if all radii follow `radius` and the rows' dependence is known.
    pub(super) fn pairs(&self, radius: Radius) -> Option<Pairs> {
        let mut pairs = Pairs::default();
        if self.is_empty() {
            return None;
        }
        for block in &self.blocks {
            if block.radius != radius {
                return None;
            }
            let opposite = if block.antithetic { block.size / 2 } else { 0 };
            pairs.antithetic += opposite as f64;
            let cos = match block.dependence {
                Dependence::Unknown | Dependence::Approximate => return None,
                _ if block.size - opposite <= 1 => continue,
                Dependence::Independent => continue,
                Dependence::Orthogonal => 0.0,
                Dependence::Angle { cos } => cos,
            };
            let (n, opposite) = (block.size as f64, opposite as f64);
            if block.antithetic {
                // Ordered rows of different pairs: half of them at the angle, half at its supplement.
                let half = 0.5 * (n * n - 4.0 * opposite - (n - 2.0 * opposite));
                pairs.add(cos, half);
                pairs.add(-cos, half);
            } else {
                pairs.add(cos, n * (n - 1.0));
            }
        }
        Some(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted() {
        let law = Law::orthogonal(4, 10);
        assert_eq!(law.blocks.iter().map(|b| b.size).collect::<Vec<_>>(), [4, 4, 2]);
        let pairs = law.pairs(Radius::Chi).unwrap();
        assert_eq!((pairs.antithetic, pairs.angles), (0.0, vec![(0.0, 12.0 + 12.0 + 2.0)]));
        assert_eq!(law.pairs(Radius::RootDim), None);
        assert_eq!(Law::unknown(3).pairs(Radius::Unstated), None);
        let angle = Law::blocks(7, 8, Dependence::Angle { cos: 0.5 }, Radius::Chi).antithetic();
        let pairs = angle.pairs(Radius::Chi).unwrap();
        // Rows a, −a, b, −b, c, −c, d: 42 ordered pairs, 6 of them antithetic.
        assert_eq!((pairs.antithetic, pairs.angles), (3.0, vec![(0.5, 18.0), (-0.5, 18.0)]));
        let alone = Law::blocks(3, 1, Dependence::Unknown, Radius::Chi);
        assert_eq!(alone.pairs(Radius::Chi), None);
        assert!(Law::independent(0).is_empty());
    }
}
