//! [`Law`]: what is known about the joint law of drawn frequencies, as data.

use crate::digest::identified;
use crate::error::{Error, Result};
use crate::kernel::Radius;
use crate::tagged::tagged;

/// How the rows of one block depend on each other.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Dependence {
    /// Rows are independent.
    Independent,
    /// Directions are orthogonal and uniformly distributed; radii are independent.
    Orthogonal,
    /// Any two directions are at the same fixed angle and directions are uniformly distributed; radii are independent.
    Angle {
        /// The cosine of the angle.
        cos: f64,
    },
    /// Any two directions are at the same fixed angle and directions are uniformly distributed; radii depend on each other.
    CoupledRadii(CoupledAngle),
    /// Directions are in blocks, in which any two are at the same fixed angle; radii are stratified over all rows of all these
    /// blocks.
    OverallRadii(OverallAngle),
    /// The dependence is not known; directions may not even be uniform.
    Unknown,
    /// The dependence is not known, and directions are only nearly uniform, as with fast rotations: estimates have a small bias.
    Approximate,
}

tagged!(Dependence, "a dependence between rows" {
    "independent" => Independent,
    "orthogonal" => Orthogonal,
    "angle" => Angle { cos: f64 },
    "coupled radii" => CoupledRadii(own: CoupledAngle),
    "overall radii" => OverallRadii(own: OverallAngle),
    "unknown" => Unknown,
    "approximate" => Approximate,
});

/// How the radii of a block depend on each other.
///
/// A radius is r = q(p), with the quantile q of its law and a probability p. Each p is uniform on (0, 1). The coupling draws the
/// probabilities p₁ … p_b of a block of b rows together; h is ⌊b/2⌋.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RadiusCoupling {
    /// Pairs of a probability and its opposite: p_{h+i} = 1 − pᵢ. The last row of an odd block is free.
    Antithetic,
    /// One probability in each of the b strata: (πᵢ + Uᵢ)/b with a random permutation π of 0 … b − 1 and independent uniform Uᵢ.
    Stratified,
    /// Equidistant probabilities: (πᵢ + U)/b with a common U.
    Systematic,
    /// One probability in each of the b strata, in pairs: (a + U_a)/b and 1 − (a + U_a)/b for a < h, and (h + U)/b if b is odd,
    /// for the rows in random order.
    Paired,
    /// One probability in each of m strata, for all m rows of a draw instead of a block: (πᵢ + Uᵢ)/m with a random permutation π of
    /// 0 … m − 1. For points in up to three dimensions, whose blocks are small: all blocks of a draw depend on each other.
    Overall,
}

tagged!(RadiusCoupling, "a coupling of radii" {
    "antithetic" => Antithetic,
    "stratified" => Stratified,
    "systematic" => Systematic,
    "paired" => Paired,
    "overall" => Overall,
});

impl RadiusCoupling {
    /// All couplings of radii.
    pub const ALL: [Self; 5] = [
        RadiusCoupling::Antithetic,
        RadiusCoupling::Stratified,
        RadiusCoupling::Systematic,
        RadiusCoupling::Paired,
        RadiusCoupling::Overall,
    ];
}

/// Directions at a fixed angle, with radii that depend on each other.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CoupledAngle {
    /// The cosine of the angle between two directions.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub cos: f64,
    /// How the radii of a block depend on each other.
    pub radii: RadiusCoupling,
}

/// Directions in blocks, with radii that are [stratified over all rows](RadiusCoupling::Overall).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct OverallAngle {
    /// The cosine of the angle between two directions of a block.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub cos: f64,
    /// The number of directions of a block; the last one may have fewer.
    pub block: usize,
}

impl OverallAngle {
    /// The number of ordered pairs of different rows of the same block among `n` rows.
    fn pairs_within(self, n: usize) -> f64 {
        let pairs = |b: usize| b as f64 * (b as f64 - 1.0);
        let block = self.block.max(1);
        (n / block) as f64 * pairs(block) + pairs(n % block)
    }
}

identified! {
    CoupledAngle { cos, radii }
    OverallAngle { cos, block }
}

/// The law of one block of consecutive rows. Rows may depend on each other, but not on other blocks.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct BlockLaw {
    /// The number of rows.
    pub size: usize,
    /// How the rows depend on each other; with `antithetic`, how rows of different pairs depend on each other.
    pub dependence: Dependence,
    /// The law of the norms ‖ω‖.
    pub radius: Radius,
    /// Whether rows come in pairs (ω, −ω). If the size is odd, the last row is unpaired.
    pub antithetic: bool,
}

impl BlockLaw {
    /// A block of `size` rows with this dependence and norms of this law, without antithetic pairs.
    pub fn new(size: usize, dependence: Dependence, radius: Radius) -> Self {
        BlockLaw { size, dependence, radius, antithetic: false }
    }

    /// This number of rows in [antithetic](BlockLaw::antithetic) pairs.
    #[must_use]
    pub fn in_pairs(self) -> Self {
        BlockLaw { antithetic: true, ..self }
    }

    /// This block with radii that depend on each other, of the rows of this block alone.
    pub(crate) fn with_coupled_radii(self, radii: RadiusCoupling) -> Self {
        let of = |cos| Dependence::CoupledRadii(CoupledAngle { cos, radii });
        let dependence = match self.dependence {
            _ if self.size == 1 || self.radius == Radius::RootDim => self.dependence,
            Dependence::Orthogonal => of(0.0),
            Dependence::Angle { cos } => of(cos),
            Dependence::Approximate => Dependence::Approximate,
            _ => Dependence::Unknown,
        };
        BlockLaw { dependence, ..self }
    }

    /// `size` rows in blocks like this one, the last of which is `rest`, with radii that are stratified over all of them.
    pub(crate) fn with_overall_radii(self, rest: Option<Self>, size: usize) -> Self {
        let cos = |block: &BlockLaw| match block.dependence {
            Dependence::Orthogonal => Some(0.0),
            Dependence::Angle { cos } => Some(cos),
            _ => None,
        };
        // A single row has no angle.
        let same = |rest: &BlockLaw| rest.size == 1 || cos(rest) == cos(&self);
        let dependence = match cos(&self).filter(|_| rest.as_ref().is_none_or(same)) {
            Some(cos) => Dependence::OverallRadii(OverallAngle { cos, block: self.size }),
            None if self.dependence == Dependence::Approximate => Dependence::Approximate,
            None => Dependence::Unknown,
        };
        BlockLaw { size, dependence, ..self }
    }

    /// A block of `size` rows of unknown dependence, with norms of this law.
    pub fn unknown(size: usize, radius: Radius) -> Self {
        BlockLaw::new(size, Dependence::Unknown, radius)
    }
}

/// Consecutive blocks of the same law.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Run {
    /// The law of each block.
    pub block: BlockLaw,
    /// The number of blocks.
    pub count: usize,
}

impl Run {
    /// A run of `count` blocks of this law.
    pub fn new(block: BlockLaw, count: usize) -> Self {
        Run { block, count }
    }

    /// The number of rows; `None` if it overflows.
    fn rows(&self) -> Option<usize> {
        self.block.size.checked_mul(self.count)
    }
}

impl From<BlockLaw> for Run {
    fn from(block: BlockLaw) -> Self {
        Run::new(block, 1)
    }
}

/// The joint law of all rows, as independent blocks. Equal blocks are counted, not listed, so that the law of any number of
/// rows of a coupling has two entries at most.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Vec<Run>", into = "Vec<Run>")
)]
pub struct Law {
    runs: Vec<Run>,
}

identified! {
    Law { runs }
    Run { block, count }
    BlockLaw { size, dependence, radius, antithetic }
}

/// How many pairs of rows depend on each other, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DependentPairs {
    /// The number of pairs ω, −ω.
    pub antithetic: f64,
    /// The cosine of an angle, and the number of ordered pairs of other dependent rows at that angle.
    pub angles: Vec<(f64, f64)>,
    /// What coupled radii change, and how often; `angles` counts all pairs as if radii were independent.
    pub coupled: Vec<(CoupledPairs, f64)>,
}

/// Pairs of rows whose radii depend on each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CoupledPairs {
    /// All ordered pairs of a block of so many rows.
    Block(CoupledAngle, usize),
    /// An ordered pair of rows with independent directions, whose radii are in two of so many strata.
    Across(usize),
}

impl DependentPairs {
    fn add(&mut self, cos: f64, count: f64) {
        match self.angles.iter_mut().find(|(known, _)| *known == cos) {
            Some((_, sum)) => *sum += count,
            None => self.angles.push((cos, count)),
        }
    }

    /// Adds rows in blocks of directions, with radii that are stratified over all of them.
    fn add_overall(&mut self, own: OverallAngle, block: &BlockLaw, count: f64) {
        let (n, within) = (block.size as f64, own.pairs_within(block.size));
        if within > 0.0 {
            self.add(own.cos, within * count);
        }
        if block.radius == Radius::RootDim {
            return;
        }
        // Radii of two rows are in two of n strata, as those of a stratified block of n rows.
        let stratified = CoupledAngle { cos: own.cos, radii: RadiusCoupling::Stratified };
        let of_all = within / (n * (n - 1.0));
        let pairs = [
            (CoupledPairs::Block(stratified, block.size), of_all * count),
            (CoupledPairs::Across(block.size), (n * (n - 1.0) - within) * count),
        ];
        self.coupled.extend(pairs.into_iter().filter(|(_, count)| *count > 0.0));
    }
}

impl Law {
    /// The law of `m` rows with radii of this law in blocks of `capacity` rows; the last block may be partial.
    ///
    /// A capacity of 0 counts as 1.
    pub fn blocks(m: usize, capacity: usize, dependence: Dependence, radius: Radius) -> Self {
        Law::in_blocks(m, capacity, |size| BlockLaw::new(size, dependence, radius))
    }

    /// `m` rows in blocks of `capacity` rows, with the law of a block of each size.
    pub(crate) fn in_blocks(m: usize, capacity: usize, block: impl Fn(usize) -> BlockLaw) -> Self {
        let capacity = capacity.clamp(1, m.max(1));
        let whole = Run::new(block(capacity), m / capacity);
        let rest = Some(m % capacity).filter(|size| *size > 0).map(|size| block(size).into());
        Law::of_blocks([whole].into_iter().chain(rest))
    }

    /// The law of these blocks, or runs of them, which are independent of each other. Blocks without rows are left out.
    pub fn of_blocks<B: Into<Run>>(blocks: impl IntoIterator<Item = B>) -> Self {
        let mut law = Law { runs: Vec::new() };
        blocks.into_iter().for_each(|block| law.push(block.into()));
        law
    }

    fn push(&mut self, run: Run) {
        match self.runs.last_mut() {
            _ if run.count == 0 || run.block.size == 0 => {}
            Some(last) if last.block == run.block => last.count = last.count.saturating_add(run.count),
            _ => self.runs.push(run),
        }
    }

    /// The blocks in the order of the rows, with consecutive equal ones counted.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    fn each(&self) -> impl Iterator<Item = &BlockLaw> {
        self.runs.iter().map(|run| &run.block)
    }

    fn map(self, change: impl Fn(BlockLaw) -> BlockLaw) -> Self {
        Law::of_blocks(self.runs.into_iter().map(|run| Run::new(change(run.block), run.count)))
    }

    /// The law of `m` independent rows ~ N(0, I).
    pub fn independent(m: usize) -> Self {
        Law::blocks(m, m, Dependence::Independent, Radius::Chi)
    }

    /// The law of `m` rows ~ N(0, I) in independent blocks of up to `d` orthogonal ones.
    pub fn orthogonal(d: usize, m: usize) -> Self {
        Law::blocks(m, d, Dependence::Orthogonal, Radius::Chi)
    }

    /// The unknown law of `m` rows.
    pub fn unknown(m: usize) -> Self {
        Law::blocks(m, m, Dependence::Unknown, Radius::Unstated)
    }

    /// Sets the law of the radii of all rows.
    #[must_use]
    pub fn with_radius(self, radius: Radius) -> Self {
        self.map(|block| BlockLaw { radius, ..block })
    }

    /// Puts the rows into antithetic pairs within each block.
    #[must_use]
    pub fn antithetic(self) -> Self {
        self.map(BlockLaw::in_pairs)
    }

    /// The law of the radii if all blocks have the same; otherwise [`Other`](Radius::Other) if all blocks have uniform
    /// directions, else [`Unstated`](Radius::Unstated). `Unstated` if there are no blocks.
    pub fn radius(&self) -> Radius {
        let first = self.each().next().map_or(Radius::Unstated, |block| block.radius);
        match self.each().find(|block| block.radius != first) {
            None => first,
            Some(_) if self.each().all(|block| block.radius.is_polar()) => Radius::Other,
            Some(_) => Radius::Unstated,
        }
    }

    /// The law with radii χ, if all directions are uniform: for results that depend only on directions.
    pub(crate) fn directions(&self) -> Option<Law> {
        let polar = self.each().all(|block| block.radius.is_polar());
        polar.then(|| {
            Law::of_blocks(self.clone().with_radius(Radius::Chi).runs.into_iter().flat_map(directions))
        })
    }

    /// Whether a block is stated to follow its law only [approximately](Dependence::Approximate), so that estimates have a
    /// small bias. In this crate these are the couplings with Hadamard products, and with plane rotations unless d = 2.
    ///
    /// ```
    /// use random_features::frequency::{Hadamard, Orthogonal};
    /// assert!(Hadamard::default().draw(16, 32, 1)?.law().is_approximate());
    /// assert!(!Orthogonal.draw(16, 32, 1)?.law().is_approximate());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn is_approximate(&self) -> bool {
        self.each().any(|block| block.dependence == Dependence::Approximate)
    }

    /// Whether all directions are independent, whatever the radii.
    pub(crate) fn directions_are_independent(&self) -> bool {
        self.directions().is_some_and(|law| law.is_independent())
    }

    /// Rejects angles whose cosine is not in \[−1, 1\].
    pub(crate) fn check(&self) -> Result<()> {
        let cos = |block: &BlockLaw| match block.dependence {
            Dependence::Angle { cos }
            | Dependence::CoupledRadii(CoupledAngle { cos, .. })
            | Dependence::OverallRadii(OverallAngle { cos, .. }) => Some(cos),
            _ => None,
        };
        match self.each().filter_map(cos).find(|cos| !(-1.0..=1.0).contains(cos)) {
            None => Ok(()),
            Some(value) => {
                Err(Error::Parameter { name: "the cosine of an angle", value, domain: "from −1 to 1" })
            }
        }
    }

    /// Whether all rows are independent and ~ N(0, I).
    pub fn is_independent(&self) -> bool {
        self.pairs(Radius::Chi).is_some_and(|pairs| pairs == DependentPairs::default())
    }

    /// The number of independent rows for which the mean of any function that is even in ω has the same variance: n²/(n + 2p)
    /// for n rows with p antithetic pairs. `None` for any other dependence between rows, or unless all rows are ~ N(0, I).
    pub(crate) fn effective_count(&self) -> Option<f64> {
        let pairs = self.pairs(Radius::Chi)?;
        let n = self.len() as f64;
        pairs.angles.is_empty().then(|| n * n / (n + 2.0 * pairs.antithetic))
    }

    /// The share of rows that come with their opposite; `None` where the dependence between pairs is unknown.
    pub(crate) fn paired_share(&self) -> Option<f64> {
        let of_run = |Run { block, count }: &Run| match (block.antithetic, block.dependence) {
            (false, _) => Some(0.0),
            (true, Dependence::Unknown) => None,
            (true, _) => Some((block.size - block.size % 2) as f64 * *count as f64),
        };
        let paired: f64 = self.runs.iter().map(of_run).sum::<Option<f64>>()?;
        Some(if paired == 0.0 { 0.0 } else { paired / self.len() as f64 })
    }

    /// The number of rows, saturating at `usize::MAX`.
    pub fn len(&self) -> usize {
        total(&self.runs).unwrap_or(usize::MAX)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dependent pairs of rows, if all radii follow `radius`, radii are independent and the rows' dependence is known.
    pub(super) fn pairs(&self, radius: Radius) -> Option<DependentPairs> {
        self.coupled_pairs(radius).filter(|pairs| pairs.coupled.is_empty())
    }

    /// The dependent pairs of rows, if all radii follow `radius` and the rows' dependence is known.
    pub(super) fn coupled_pairs(&self, radius: Radius) -> Option<DependentPairs> {
        let mut pairs = DependentPairs::default();
        if self.is_empty() {
            return None;
        }
        for Run { block, count } in &self.runs {
            if block.radius != radius {
                return None;
            }
            let opposite = if block.antithetic { block.size / 2 } else { 0 };
            let (n, blocks) = (block.size as f64, *count as f64);
            pairs.antithetic += opposite as f64 * blocks;
            let cos = match block.dependence {
                Dependence::Unknown | Dependence::Approximate => return None,
                Dependence::CoupledRadii(_) | Dependence::OverallRadii(_) if block.antithetic => return None,
                _ if block.size - opposite <= 1 => continue,
                Dependence::Independent => continue,
                Dependence::Orthogonal => 0.0,
                Dependence::Angle { cos } => cos,
                Dependence::CoupledRadii(own) => {
                    pairs.coupled.push((CoupledPairs::Block(own, block.size), blocks));
                    own.cos
                }
                Dependence::OverallRadii(own) => {
                    pairs.add_overall(own, block, blocks);
                    continue;
                }
            };
            let opposite = opposite as f64;
            if block.antithetic {
                // Half of the ordered rows of different pairs are at the angle, half at its supplement.
                let half = 0.5 * (n * n - 4.0 * opposite - (n - 2.0 * opposite));
                pairs.add(cos, half * blocks);
                pairs.add(-cos, half * blocks);
            } else {
                pairs.add(cos, n * (n - 1.0) * blocks);
            }
        }
        Some(pairs)
    }
}

/// The blocks of directions of a run, without their radii.
fn directions(run: Run) -> Vec<Run> {
    let block = run.block;
    match block.dependence {
        Dependence::CoupledRadii(CoupledAngle { cos, .. }) => {
            vec![Run::new(BlockLaw { dependence: Dependence::Angle { cos }, ..block }, run.count)]
        }
        // Blocks of several draws would have to be listed, and of pairs ±ω they are cut.
        Dependence::OverallRadii(_) if run.count > 1 || block.antithetic => {
            vec![Run::new(BlockLaw { dependence: Dependence::Unknown, ..block }, run.count)]
        }
        Dependence::OverallRadii(OverallAngle { cos, block: b }) => {
            let with = |size| BlockLaw { size, dependence: Dependence::Angle { cos }, ..block.clone() };
            vec![Run::new(with(b), block.size / b.max(1)), Run::new(with(block.size % b.max(1)), 1)]
        }
        _ => vec![Run::new(block, run.count)],
    }
}

/// The number of rows; `None` if it overflows.
fn total(runs: &[Run]) -> Option<usize> {
    runs.iter().try_fold(0, |sum: usize, run| sum.checked_add(run.rows()?))
}

/// The stored form, validated again on reading.
#[cfg(feature = "serde")]
impl TryFrom<Vec<Run>> for Law {
    type Error = Error;

    fn try_from(runs: Vec<Run>) -> Result<Self> {
        if let Some(run) = runs.iter().find(|run| run.count == 0 || run.block.size == 0) {
            let value = run.count.min(run.block.size) as f64;
            return Err(Error::Parameter { name: "a count in a law", value, domain: "at least 1" });
        }
        if total(&runs).is_none() {
            let (name, domain) = ("the number of rows of a law", "below 2⁶⁴");
            return Err(Error::Parameter { name, value: f64::INFINITY, domain });
        }
        let law = Law::of_blocks(runs);
        law.check().map(|()| law)
    }
}

#[cfg(feature = "serde")]
impl From<Law> for Vec<Run> {
    fn from(law: Law) -> Self {
        law.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted() {
        let law = Law::orthogonal(4, 10);
        assert_eq!(
            law.runs.iter().map(|run| (run.block.size, run.count)).collect::<Vec<_>>(),
            [(4, 2), (2, 1)]
        );
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

    #[test]
    fn directions_do_not_know_of_radii() {
        let plain = Law::orthogonal(4, 10);
        let coupled = plain.clone().map(|block| block.with_coupled_radii(RadiusCoupling::Paired));
        assert_ne!(coupled, plain);
        assert_eq!(coupled.pairs(Radius::Chi), None);
        let size = |of: &CoupledPairs| match of {
            CoupledPairs::Block(_, size) | CoupledPairs::Across(size) => *size,
        };
        let counted = coupled.coupled_pairs(Radius::Chi).unwrap();
        assert_eq!(counted.angles, plain.pairs(Radius::Chi).unwrap().angles);
        assert_eq!(
            counted.coupled.iter().map(|(of, count)| (size(of), *count)).collect::<Vec<_>>(),
            [(4, 2.0), (2, 1.0)]
        );
        let directions = coupled.directions().unwrap();
        assert_eq!(directions.pairs(Radius::Chi), plain.pairs(Radius::Chi));
    }

    #[test]
    fn equal_blocks_are_counted() {
        let runs = |law: &Law| law.runs.iter().map(|run| (run.block.size, run.count)).collect::<Vec<_>>();
        assert_eq!(runs(&Law::orthogonal(8, usize::MAX)), [(8, usize::MAX / 8), (7, 1)]);
        assert_eq!(runs(&Law::orthogonal(0, 3)), [(1, 3)]);
        assert_eq!(runs(&Law::orthogonal(5, 3)), [(3, 1)]);
        let block = |size| BlockLaw::new(size, Dependence::Orthogonal, Radius::Chi);
        let law = Law::of_blocks([block(4), block(0), block(4), block(2), block(4)]);
        assert_eq!((runs(&law), law.len()), (vec![(4, 2), (2, 1), (4, 1)], 14));
        assert_eq!(law.clone().antithetic().pairs(Radius::Chi).unwrap().antithetic, 7.0);
        // Listed or counted, whatever the order.
        assert_eq!(Law::of_blocks([block(4), block(4), block(2)]), Law::orthogonal(4, 10));
        let counted = Law::of_blocks([Run::new(block(4), 3), Run::new(block(2), 1)]);
        assert_eq!(counted.pairs(Radius::Chi), law.pairs(Radius::Chi));
        assert_eq!(Law::of_blocks([Run::new(block(2), usize::MAX)]).len(), usize::MAX);
    }
}
