//! [`Law`]: what is known of the joint law of drawn frequencies, as data.

/// How the rows of one block depend on each other.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Dependence {
    /// Not at all.
    Independent,
    /// Directions are orthogonal, otherwise uniform.
    Orthogonal,
    /// Nothing is known.
    Unknown,
}

/// The law of the norm ‖ω‖.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Radius {
    /// χ with d degrees of freedom, independent of everything else: with a uniform direction, ω ~ N(0, I).
    Chi,
    /// Nothing is known.
    Unknown,
}

/// The law of a run of rows that may depend on each other, but not on other blocks.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Block {
    /// Number of rows.
    pub size: usize,
    /// How they depend on each other; with `antithetic`, how rows of different pairs do.
    pub dependence: Dependence,
    /// The law of the norms.
    pub radius: Radius,
    /// Rows come in pairs (ω, −ω); with an odd size the last row is alone.
    pub antithetic: bool,
}

/// The joint law of all rows: independent blocks.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Law {
    /// The blocks, in the order of the rows.
    pub blocks: Vec<Block>,
}

impl Law {
    /// `m` independent rows ~ N(0, I).
    pub fn independent(m: usize) -> Self {
        Law::of_one(m, Dependence::Independent, Radius::Chi)
    }

    /// `m` rows of which nothing is known.
    pub fn unknown(m: usize) -> Self {
        Law::of_one(m, Dependence::Unknown, Radius::Unknown)
    }

    fn of_one(size: usize, dependence: Dependence, radius: Radius) -> Self {
        Law { blocks: vec![Block { size, dependence, radius, antithetic: false }] }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.size).sum()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of antithetic pairs, if rows ~ N(0, I) are independent but for these; else `None`.
    pub fn antithetic_pairs(&self) -> Option<usize> {
        let mut pairs = 0;
        for block in &self.blocks {
            let of_block = if block.antithetic { block.size / 2 } else { 0 };
            let vectors = block.size - of_block;
            // A single vector is independent of itself, whatever the coupling.
            let independent = block.dependence == Dependence::Independent || vectors <= 1;
            if !independent || block.radius != Radius::Chi {
                return None;
            }
            pairs += of_block;
        }
        Some(pairs)
    }
}
