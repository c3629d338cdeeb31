//! Random binning features for the Laplace kernel, a map that the crate does not have, as a user writes it.

use ndarray::ArrayView2;
use random_features::extend::{Facts, FeatureMap, Form, Sketch, SketchNumbers, Tile};
use random_features::kernel::Lengthscale;
use random_features::map::{AnyKernel, Side};
use random_features::rand::RngExt;
use random_features::{Error, Real, Result};

/// Random binning features for the Laplace kernel exp(−‖x−y‖₁/ℓ).
///
/// # Definition
/// A grid has in each coordinate a pitch with the density δe^{−δ} and an offset that is uniform in it, so that x/ℓ and y/ℓ are in one cell
/// with probability e^{−‖x−y‖₁/ℓ}. Each of m grids hashes its cells to B buckets: the feature of a point's bucket is ±m^{−½}, with a random
/// sign of the cell, and the others are 0. D = mB features.
///
/// # Variance
/// (1 − K)(K + 1/B)/m: a product of the features of one grid is 1 in one cell, and ±1 with probability 1/B in two. The hash takes pairs
/// of cells to pairs of numbers that are uniform and independent, up to 2⁻⁶⁰.
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*, Algorithm 2; random signs as in a count sketch.
#[derive(Clone, Copy, Debug)]
pub struct RandomBinning {
    /// d.
    pub d: usize,
    /// m.
    pub grids: usize,
    /// B.
    pub buckets: usize,
}

impl Sketch for RandomBinning {
    const NAME: &'static str = "random binning";
    type Drawn = Grids;

    fn dim(&self) -> usize {
        self.d
    }

    fn feature_dim(&self) -> usize {
        self.grids.saturating_mul(self.buckets)
    }

    fn m(&self) -> usize {
        self.grids
    }

    fn with_m(&self, m: usize) -> Option<Self> {
        Some(RandomBinning { grids: m, ..*self })
    }

    fn numbers(&self) -> SketchNumbers {
        let integers = [self.d, self.grids, self.buckets].map(|v| v as u64).to_vec();
        SketchNumbers { integers, reals: Vec::new() }
    }

    fn of_numbers(numbers: &SketchNumbers) -> Result<Self> {
        match (&numbers.integers[..], &numbers.reals[..]) {
            ([d, grids, buckets], []) => {
                let [d, grids, buckets] = [d, grids, buckets].map(|v| *v as usize);
                Ok(RandomBinning { d, grids, buckets })
            }
            _ => Err(Error::Unsupported { what: "random binning of other numbers than d, m and B" }),
        }
    }

    fn serves(&self, target: &AnyKernel) -> bool {
        matches!(target, AnyKernel::Laplace(_))
    }

    fn draw(&self, target: &AnyKernel, rng: &mut random_features::extend::Generator) -> Result<Grids> {
        let grids = (0..self.grids).map(|_| Grid::draw(self.d, rng)).collect();
        Ok(Grids { sketch: *self, grids, lengthscale: target.lengthscale().clone() })
    }

    fn log_variance(&self, _: &AnyKernel, u: &[f64], v: &[f64]) -> Option<f64> {
        let distance: f64 = u.iter().zip(v).map(|(u, v)| (u - v).abs()).sum();
        let (kernel, rest) = ((-distance).exp(), -(-distance).exp_m1());
        Some((rest * (kernel + 1.0 / self.buckets as f64) / self.grids as f64).ln())
    }
}

/// Drawn grids.
#[derive(Debug)]
pub struct Grids {
    sketch: RandomBinning,
    grids: Vec<Grid>,
    lengthscale: Lengthscale,
}

#[derive(Debug)]
struct Grid {
    /// The pitch, the offset relative to it, and the factor of the hash for each coordinate.
    axes: Vec<(f64, f64, u64)>,
    constant: u64,
}

/// The prime 2⁶¹ − 1, below which hashes are.
const PRIME: u64 = (1 << 61) - 1;

impl Grid {
    fn draw(d: usize, rng: &mut random_features::extend::Generator) -> Self {
        let mut axis = || {
            let exponential =
                |rng: &mut random_features::extend::Generator| -(1.0 - rng.random::<f64>()).ln();
            let pitch = exponential(rng) + exponential(rng);
            (pitch, rng.random::<f64>(), rng.random_range(0..PRIME))
        };
        let axes = (0..d).map(|_| axis()).collect();
        Grid { axes, constant: rng.random_range(0..PRIME) }
    }

    /// A hash of the cell of a point divided by ℓ: a linear function of its coordinates, modulo the prime.
    fn hash(&self, u: impl Iterator<Item = f64>) -> u64 {
        let sum =
            self.axes.iter().zip(u).fold(u128::from(self.constant), |sum, ((pitch, offset, factor), u)| {
                let cell = ((u / pitch + offset).floor() as i128).rem_euclid(i128::from(PRIME));
                (sum + cell as u128 * u128::from(*factor)) % u128::from(PRIME)
            });
        sum as u64
    }
}

impl<T: Real> FeatureMap<T> for Grids {
    fn facts(&self) -> Facts {
        Facts::new(self.sketch.d, vec![self.sketch.feature_dim()]).symmetric()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, _: Form, tile: &mut Tile<'_, T>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let row = tile.row(i);
            row.values.fill(T::zero());
            row.log_scales[0] = -0.5 * (self.grids.len() as f64).ln();
            for (grid, values) in self.grids.iter().zip(row.values.chunks_exact_mut(self.sketch.buckets)) {
                let hash = grid.hash(self.lengthscale.divide(x));
                let bucket = (hash >> 1) as usize % self.sketch.buckets;
                values[bucket] = if hash & 1 == 0 { T::one() } else { -T::one() };
            }
            if !x.iter().all(|v| v.is_finite()) {
                tile.poison(i);
            }
        }
    }
}
