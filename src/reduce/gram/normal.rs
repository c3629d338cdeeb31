//! [`NormalSums`]: the sums over rows for normal equations, to which chunks of rows are added.

use super::chunk::{BLOCK, FeatureChunk, block_count, moment_count};
use super::totals::{LARGEST, MOST, TooLarge, Totals, check_size, largest};
use crate::Real;
use crate::error::{Error, Result};
use crate::memory::check_memory;
use crate::numeric::{slice_of, slice_of_mut};

/// The number of words of a sum of products of two features in `f64`.
const WORDS: usize = 3;
/// The numbers of words of Σ w y φ, and of Σ w y and Σ w y²: small differences must be kept where means of targets are large.
const CROSS_WORDS: usize = 4;
const MOMENT_WORDS: usize = 5;
/// The number of words of sums that bound rounding errors.
const BOUND_WORDS: usize = 2;
/// The number of summands that a chunk adds to a sum: its part about a reference, and the shift to 0.
const SUMMANDS: u64 = 2;

/// The sums over rows for normal equations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NormalSums {
    /// Σ w φ φᵀ, a piece for each block of the lower triangle.
    pub gram: Totals,
    /// Σ w y φ for each target and, at last, for the target 1.
    pub cross: Vec<Totals>,
    /// Σ w y for each target, and for the target 1; then Σ w y² for each target; then n = Σ a and L = Σ a ln p. w = a p, with the
    /// weight a of a row, which says how often it counts, and its precision p.
    pub moments: Vec<Totals>,
    /// Σ w over the rows that were removed.
    pub removed: Totals,
    /// Σ w (y − r)² for each target over all rows that were added or removed, with the reference r of each chunk. Rounding errors
    /// of Σ w y² are relative to it if rows are removed in other batches than they were added in.
    pub scatter: Vec<Totals>,
    /// The largest Σ w φ² of a feature, and Σ w φ² summed over all features, each summed over all runs that were added or
    /// removed. Rounding errors of Σ w φ φᵀ are relative to these if rows are removed in other batches than they were added in.
    pub magnitudes: Totals,
    /// The largest of both numbers of `magnitudes` for a single run.
    pub most: Vec<f64>,
    /// The number of additions for which words must still have room, at most [`MOST`]; a carry sets it to half of that.
    pub parts: u64,
}

impl NormalSums {
    /// Zeros for t targets and features of the scalar `T`.
    ///
    /// # Errors
    /// The errors of [`check_room`](NormalSums::check_room).
    pub fn new<T: Real>(targets: usize, width: usize) -> Result<Self> {
        Self::check_room::<T>(targets, width)?;
        Ok(NormalSums {
            gram: Totals::new(block_count(width), BLOCK * BLOCK, Self::depth::<T>()),
            cross: vec![Totals::new(1, width, CROSS_WORDS); targets + 1],
            moments: vec![Totals::new(1, 1, MOMENT_WORDS); moment_count(targets)],
            removed: Totals::new(1, 1, BOUND_WORDS),
            scatter: vec![Totals::new(1, 1, BOUND_WORDS); targets],
            magnitudes: Totals::new(1, 2, BOUND_WORDS),
            most: vec![0.0; 2],
            parts: 0,
        })
    }

    /// The bytes of sums of this size.
    pub fn bytes<T: Real>(targets: usize, width: usize) -> usize {
        let bytes = |words: usize| words * size_of::<f64>();
        // A target, or the target 1, has sums with features, and up to three without.
        let of_target = width.saturating_mul(bytes(CROSS_WORDS)).saturating_add(2 * bytes(MOMENT_WORDS));
        let of_target = of_target.saturating_add(bytes(BOUND_WORDS) + 4 * size_of::<Totals>());
        let of_block = BLOCK * BLOCK * Self::depth::<T>() * size_of::<f64>();
        let products =
            block_count(width).saturating_mul(of_block).saturating_add(3 * bytes(BOUND_WORDS) + bytes(2));
        products.saturating_add(targets.saturating_add(1).saturating_mul(of_target))
    }

    /// Rejects a number of features whose products cannot be addressed.
    pub fn check_width(width: usize) -> Result<()> {
        let blocks = width.div_ceil(BLOCK);
        let words = blocks.checked_mul(blocks + 1).and_then(|n| n.checked_mul(WORDS * BLOCK * BLOCK / 2));
        if words.is_some_and(|words| words <= isize::MAX as usize / size_of::<f64>()) {
            return Ok(());
        }
        let domain = "small enough for the products of all pairs to be addressed";
        Err(Error::Parameter { name: "the number of features", value: width as f64, domain })
    }

    /// Rejects sums of this size, or another copy of them, if they do not fit in memory.
    pub fn check_room<T: Real>(targets: usize, width: usize) -> Result<()> {
        check_memory("bytes of sums over rows", Self::bytes::<T>(targets, width), 1)
    }

    /// Whether there is room for an addition without a carry.
    fn has_room(&self) -> bool {
        self.parts.saturating_add(SUMMANDS) <= MOST
    }

    /// Makes room for half of [`MOST`] additions.
    fn carry(&mut self) {
        self.all_mut().for_each(Totals::carry);
        self.parts = MOST / 2;
    }

    /// Makes all sums 0, as over no row.
    pub fn clear(&mut self) {
        self.all_mut().for_each(Totals::clear);
        self.most.fill(0.0);
        self.parts = 0;
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Totals> {
        let with_targets = self.cross.iter_mut().chain(&mut self.moments).chain(&mut self.scatter);
        with_targets.chain([&mut self.gram, &mut self.removed, &mut self.magnitudes])
    }

    /// The number of words of a sum of products: as many as the rounding errors of the products justify.
    fn depth<T: Real>() -> usize {
        if size_of::<T>() == 4 { 2 } else { WORDS }
    }

    /// The largest number that a chunk adds to a sum, up to rounding; NaN if there is one.
    pub fn size<T: Real>(chunk: &FeatureChunk<T>) -> f64 {
        let [sums, _] = &chunk.sums;
        largest(&[chunk.bound(), largest(slice_of(&sums.cross)), largest(&sums.moments)])
    }

    /// Refuses a chunk with numbers too large for sums.
    pub fn check<T: Real>(chunk: &FeatureChunk<T>) -> Result<(), TooLarge> {
        check_size(Self::size(chunk))
    }

    /// Adds a chunk that was [checked](NormalSums::check).
    pub fn add<T: Real>(&mut self, chunk: &mut FeatureChunk<T>, sign: f64) {
        if !self.has_room() {
            self.carry();
        }
        if let Some(adder) = self.gram.open(chunk.bound()) {
            chunk.add_products(adder, &mut self.gram, sign);
        }
        self.scatter.iter_mut().zip(&chunk.scatter).for_each(|(sums, square)| sums.add(&mut [*square]));
        let mut magnitudes = [0.0; 2];
        for run in chunk.magnitudes() {
            for (k, magnitude) in run.into_iter().enumerate() {
                self.most[k] = self.most[k].max(magnitude.min(LARGEST));
                magnitudes[k] = LARGEST.min(magnitudes[k] + magnitude);
            }
        }
        self.magnitudes.add(&mut magnitudes);
        if sign < 0.0 {
            self.removed.add(&mut [chunk.weight()]);
        }
        for part in &mut chunk.sums {
            part.cross *= sign;
            for (sums, mut values) in self.cross.iter_mut().zip(part.cross.rows_mut()) {
                sums.add(slice_of_mut(&mut values));
            }
            let moments = self.moments.iter_mut().zip(&part.moments);
            moments.for_each(|(sums, moment)| sums.add(&mut [sign * moment]));
        }
        self.parts += SUMMANDS;
    }

    pub fn merge(&mut self, mut other: NormalSums) {
        if self.parts.saturating_add(other.parts) > MOST {
            other.carry();
            self.carry();
        }
        self.gram.merge(other.gram);
        self.removed.merge(other.removed);
        self.magnitudes.merge(other.magnitudes);
        self.most.iter_mut().zip(other.most).for_each(|(own, their)| *own = own.max(their));
        self.scatter.iter_mut().zip(other.scatter).for_each(|(own, their)| own.merge(their));
        self.cross.iter_mut().zip(other.cross).for_each(|(own, their)| own.merge(their));
        self.moments.iter_mut().zip(other.moments).for_each(|(own, their)| own.merge(their));
        self.parts += other.parts;
    }
}

/// The stored form, which has only the lower triangle of the products.
#[cfg(feature = "serde")]
pub(super) mod stored {
    use super::super::chunk::blocks;
    use super::super::totals::stored::StoredTotals;
    use super::{BLOCK, LARGEST, NormalSums, Real, Totals};

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "NormalSums")]
    pub struct StoredNormalSums {
        gram: StoredTotals,
        pub cross: Vec<StoredTotals>,
        moments: Vec<StoredTotals>,
        removed: StoredTotals,
        scatter: Vec<StoredTotals>,
        magnitudes: StoredTotals,
        #[serde(with = "crate::exact")]
        most: Vec<f64>,
        parts: u64,
    }

    impl From<&NormalSums> for StoredNormalSums {
        fn from(sums: &NormalSums) -> Self {
            let all = |totals: &Totals| totals.stored(totals.places());
            let each = |totals: &[Totals]| totals.iter().map(all).collect();
            let width = sums.cross.first().map_or(0, |totals| totals.places().count());
            StoredNormalSums {
                gram: sums.gram.stored(triangle(width)),
                cross: each(&sums.cross),
                moments: each(&sums.moments),
                removed: all(&sums.removed),
                scatter: each(&sums.scatter),
                magnitudes: all(&sums.magnitudes),
                most: sums.most.clone(),
                parts: sums.parts,
            }
        }
    }

    impl StoredNormalSums {
        /// The sums for `targets` targets and `width` features; `None` if the stored sums have another shape.
        pub fn restored<T: Real>(self, targets: usize, width: usize) -> Option<NormalSums> {
            // The stored sums must have the expected size before memory is allocated for them.
            let entries = width.checked_mul(width.checked_add(1)?)? / 2;
            if self.gram.len() != entries.checked_mul(NormalSums::depth::<T>())? {
                return None;
            }
            let zeros = NormalSums::new::<T>(targets, width).ok()?;
            let one = |zeros: Totals, stored: StoredTotals| {
                let places = zeros.places();
                zeros.restored(&stored, places)
            };
            let each = |zeros: Vec<Totals>, stored: Vec<StoredTotals>| {
                let same = zeros.len() == stored.len();
                let pairs = zeros.into_iter().zip(stored);
                pairs.map(|(zeros, stored)| one(zeros, stored)).collect::<Option<Vec<_>>>().filter(|_| same)
            };
            let sound = self.most.len() == 2 && self.most.iter().all(|most| (0.0..=LARGEST).contains(most));
            sound.then_some(())?;
            Some(NormalSums {
                gram: zeros.gram.restored(&self.gram, triangle(width))?,
                cross: each(zeros.cross, self.cross)?,
                moments: each(zeros.moments, self.moments)?,
                removed: one(zeros.removed, self.removed)?,
                scatter: each(zeros.scatter, self.scatter)?,
                magnitudes: one(zeros.magnitudes, self.magnitudes)?,
                most: self.most,
                parts: self.parts,
            })
        }
    }

    /// Where the products of pairs of features are, each pair once.
    fn triangle(width: usize) -> impl Iterator<Item = (usize, usize)> {
        blocks(width).into_iter().enumerate().flat_map(move |(piece, (i, j))| {
            (i * BLOCK..width.min((i + 1) * BLOCK)).flat_map(move |f| {
                let row = (f - i * BLOCK) * BLOCK;
                (j * BLOCK..(f + 1).min((j + 1) * BLOCK)).map(move |g| (piece, row + g - j * BLOCK))
            })
        })
    }
}

/// The error for numbers that are too large for sums.
pub(crate) fn too_large() -> Error {
    let domain = "below 1e288: scale the targets or weights, or take a map for the Gaussian kernel";
    Error::Parameter {
        name: "a sum of products of features, targets and weights",
        value: f64::INFINITY,
        domain,
    }
}

impl From<TooLarge> for Error {
    fn from(_: TooLarge) -> Self {
        too_large()
    }
}
