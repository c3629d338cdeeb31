//! [`Levels`]: some λ, with what leverages and predictions of rows are products with.
//!
//! The leverage of a row and its prediction are Σₖ uₖ²/(sₖ + λ) and Σₖ uₖ cₖ/(sₖ + λ). For a run of rows and all λ these are two products
//! of matrices.

use ndarray::Axis;

use super::RidgeSpectrum;
use crate::Real;
use crate::numeric::{self, Isa, Packed};
use crate::reduce::GramSums;

/// One λ, with bounds of its rounding errors.
pub(super) struct RidgeLevel {
    pub lambda: f64,
    /// δ.
    pub noise: f64,
    /// b + √(ρ Y) for each target.
    pub sums: Vec<f64>,
    /// η ‖β‖ for each target.
    pub products: Vec<f64>,
}

/// Some λ, with the matrices that rows are multiplied by.
pub(super) struct Levels {
    pub each: Vec<RidgeLevel>,
    /// The targets that are predicted.
    pub targets: Vec<usize>,
    /// 1/(s + λ) for each λ, then δ/(s + λ)² for each λ, then 1.
    of_squares: Packed<f64>,
    /// c/(s + λ) for each λ and each target.
    of_features: Packed<f64>,
}

/// Buffers of the products, which a thread reuses.
#[derive(Default)]
pub(super) struct LevelBuffers {
    squares: Vec<f64>,
    sums: Vec<f64>,
    predicted: Vec<f64>,
}

/// The sums over the features u of a row, for one λ.
pub(super) struct LevelSums<'b> {
    /// Σ u²/(s + λ).
    pub leverage: f64,
    /// a² = δ Σ (u/(s + λ))².
    pub spread: f64,
    /// Σ u².
    pub square: f64,
    /// Σ u c/(s + λ) for each target.
    pub predicted: &'b [f64],
}

impl Levels {
    /// For some λ, and the predictions of some targets.
    pub fn new<T: Real>(spectrum: &RidgeSpectrum<T>, lambdas: &[f64], targets: &[usize]) -> Self {
        let values = &spectrum.shrinkage.values;
        let each: Vec<RidgeLevel> = lambdas.iter().map(|lambda| spectrum.level(*lambda)).collect();
        let (count, width) = (each.len(), targets.len());
        let of_squares =
            Packed::new(2 * count + 1, values.len(), |j, k| match (each.get(j), j.checked_sub(count)) {
                (Some(level), _) => (values[k] + level.lambda).recip(),
                (_, Some(j)) if j < count => {
                    let (noise, divisor) = (each[j].noise, values[k] + each[j].lambda);
                    // A finite number times a feature of 0 is 0.
                    (noise / divisor / divisor).min(f64::MAX)
                }
                _ => 1.0,
            });
        let of_features = Packed::new(count * width, values.len(), |j, k| {
            let (level, target) = (&each[j / width], targets[j % width]);
            spectrum.rotated[[k, target]] / (values[k] + level.lambda)
        });
        Levels { each, targets: targets.to_vec(), of_squares, of_features }
    }

    /// Multiplies the features of `rows` rows, one after another, and gives the sums by row and λ.
    pub fn of<'b>(
        &self,
        rows: usize,
        u: &[f64],
        buffers: &'b mut LevelBuffers,
    ) -> impl Fn(usize, usize) -> LevelSums<'b> {
        let (depth, count, width) = (self.of_squares.depth(), self.each.len(), self.targets.len());
        let LevelBuffers { squares, sums, predicted } = buffers;
        squares.clear();
        squares.extend(u.iter().map(|u| u * u));
        sums.resize(rows * (2 * count + 1), 0.0);
        predicted.resize(rows * count * width, 0.0);
        if depth == 0 {
            // A regression on a single row has no directions: it predicts the mean.
            sums.fill(0.0);
            predicted.fill(0.0);
        } else {
            let isa = Isa::best();
            numeric::product(isa, squares, depth, self.of_squares.all(), sums, 2 * count + 1);
            numeric::product(isa, u, depth, self.of_features.all(), predicted, count * width);
        }
        let (sums, predicted): (&'b [f64], &'b [f64]) = (sums, predicted);
        move |row, level| {
            let sums = &sums[row * (2 * count + 1)..][..2 * count + 1];
            LevelSums {
                leverage: sums[level],
                spread: sums[count + level],
                square: sums[2 * count],
                predicted: &predicted[(row * count + level) * width..][..width],
            }
        }
    }
}

impl<T: Real> RidgeSpectrum<T> {
    /// Bounds of the rounding errors for one λ.
    pub(super) fn level(&self, lambda: f64) -> RidgeLevel {
        let (values, noise) = (&self.shrinkage.values, self.points_noise());
        // Each factor is in the range of `f64` where c or λ is very small or very large.
        let norm = |j: usize, unit: f64| {
            let terms = self.rotated.index_axis(Axis(1), j).into_iter().zip(values);
            terms.map(|(c, s)| (c / (s + lambda).sqrt()).powi(2) * (unit / (s + lambda))).sum::<f64>().sqrt()
        };
        let rounding = averaging::<T>(self.training.rows()) * self.normal.rounding;
        let of_sums = |(j, square): (usize, &f64)| norm(j, noise) + (rounding * square).sqrt();
        let sums = self.normal.squares.iter().enumerate().map(of_sums).collect();
        let products = (0..self.rotated.ncols()).map(|j| self.products_rounding() * norm(j, 1.0)).collect();
        RidgeLevel { lambda, noise, sums, products }
    }
}

/// The relative error of a sum over many runs of rows, divided by the relative error of one run: 1 over the root of their number.
pub(super) fn averaging<T: Real>(rows: f64) -> f64 {
    let rows_of_run = (GramSums::<T>::rounding() / T::epsilon().widen()).powi(2);
    (rows_of_run / rows).sqrt().min(1.0)
}
