//! [`Coordinates`]: the basis chosen from moments, with all d coordinates.

use ndarray::{Array1, Array2, s};

use super::balance::{Balance, mean_variance};
use super::{PairMoments, Shape};
use crate::error::Result;
use crate::linalg::Backend;
use crate::progress;
use crate::theory::dense;

/// L and R with all d rows, and the moments in their coordinates.
#[derive(Clone, Debug)]
pub(super) struct Coordinates {
    pub left: Array2<f64>,
    pub right: Array2<f64>,
    pub phi: Vec<f64>,
    pub mean_x: Array1<f64>,
    pub mean_y: Array1<f64>,
    ridge: f64,
    before: f64,
    shifted: f64,
}

/// The choices that remain once the coordinates are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemainingChoices {
    pub rank: usize,
    /// The share of φₗ for which ρₗ is chosen.
    pub share: f64,
    /// Whether c_x is kept instead of being moved to the keys.
    pub both_shifts: bool,
    pub bias: f64,
}

impl Coordinates {
    /// The coordinates of T with this ridge, or of T = I if not `balanced`, and of the eigenvectors of E wwᵀ, without a ridge.
    pub fn new(moments: &PairMoments, ridge: f64, balanced: bool) -> Result<Self> {
        let (x, y) = (moments.x().covariance()?, moments.y().covariance()?);
        let cross = moments.is_weighted().then(|| moments.cross_covariance());
        let identity = || Balance { left: Array2::eye(x.nrows()), right: Array2::eye(x.nrows()) };
        let balance = if balanced { Balance::new(&x, &y, ridge)? } else { identity() };
        progress::check()?;
        let sums = Backend::default().eigen(&balance.sum_moment(&x, &y, cross.as_ref()))?;
        let falling = sums.vectors.slice(s![.., ..;-1]);
        let (mean_x, mean_y) = (moments.x().mean()?, moments.y().mean()?);
        let d = x.nrows() as f64;
        let shared = cross.map_or(0.0, |cross| 2.0 * d * mean_variance(&cross));
        let shifted = d * mean_variance(&x) + d * mean_variance(&y) + shared;
        let centre = (&mean_x + &mean_y).pow2().sum();
        Ok(Coordinates {
            left: falling.t().dot(&balance.left),
            right: falling.t().dot(&balance.right),
            // Weighted moments and rounding may give negative values.
            phi: sums.values.iter().rev().map(|value| value.max(0.0)).collect(),
            mean_x,
            mean_y,
            ridge,
            before: shifted + centre,
            shifted,
        })
    }

    /// The mean ln M of features with these coefficients on other moments.
    pub fn loss(&self, rho: &[f64], moments: &PairMoments) -> Result<f64> {
        let diagonal =
            |a: &Array2<f64>, c: &Array2<f64>, b: &Array2<f64>| (a.dot(c) * b).sum_axis(ndarray::Axis(1));
        let (x, y) = (moments.x().covariance()?, moments.y().covariance()?);
        let mut phi = diagonal(&self.left, &x, &self.left) + diagonal(&self.right, &y, &self.right);
        if moments.is_weighted() {
            phi += &(diagonal(&self.left, &moments.cross_covariance(), &self.right) * 2.0);
        }
        let centre = self.left.dot(&(moments.x().mean()? - &self.mean_x))
            + self.right.dot(&(moments.y().mean()? - &self.mean_y));
        phi += &centre.pow2();
        Ok(dense::mean_ln_second_moment(&phi.mapv(|phi| phi.max(0.0)).to_vec(), rho))
    }

    /// ρₗ for this share of φₗ.
    pub fn rho(&self, share: f64) -> Vec<f64> {
        self.phi.iter().map(|phi| dense::optimal(share * phi).rho).collect()
    }

    /// b_r from moments: the variance over independent pairs of the dropped products.
    pub fn bias(&self, rank: usize, moments: &PairMoments) -> Result<f64> {
        let (left, right) = (self.left.slice(s![rank.., ..]), self.right.slice(s![rank.., ..]));
        let u = left.dot(&moments.x().covariance()?).dot(&left.t());
        let v = right.dot(&moments.y().covariance()?).dot(&right.t());
        Ok(f64::min(1.0, (u * v).sum()))
    }

    /// The shape for the remaining choices.
    pub fn shape(&self, choices: RemainingChoices) -> Shape {
        let RemainingChoices { rank, share, both_shifts, bias } = choices;
        let optima = |share: f64| self.phi.iter().map(move |phi| dense::optimal(share * phi));
        let (rho, a): (Vec<f64>, Vec<f64>) = optima(share).map(|best| (best.rho, best.a)).unzip();
        let dense = |r: usize| dense::mean_ln_second_moment(&self.phi[..r], &rho[..r]);
        // Unless coordinates are dropped, only Tc_x + T⁻ᵀc_y matters.
        let (shift_x, shift_y) = match both_shifts {
            true => (self.mean_x.to_vec(), self.mean_y.to_vec()),
            false => {
                let moved = self.left.t().dot(&self.left.dot(&self.mean_x));
                (vec![0.0; self.phi.len()], (&self.mean_y + &moved).to_vec())
            }
        };
        Shape {
            shift_x,
            shift_y,
            left: self.left.slice(s![..rank, ..]).to_owned(),
            right: self.right.slice(s![..rank, ..]).to_owned(),
            phi: self.phi[..rank].to_vec(),
            rho: rho[..rank].to_vec(),
            a: a[..rank].to_vec(),
            ridge: self.ridge,
            before: self.before,
            shifted: self.shifted,
            balanced: self.phi.iter().sum(),
            dense: dense(self.phi.len()),
            kept: dense(rank),
            bias,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::shaping::Moments;

    /// Against a loop over pairs. All queries have equal weight, so the moments of all queries are those of the pairs.
    #[test]
    fn the_loss_is_that_of_all_pairs() -> Result<()> {
        let wave =
            |f: f64| move |(i, k): (usize, usize)| (f * (i * (2 * k + 3)) as f64 + k as f64).sin() + 0.3;
        let (x, y) = (Array2::from_shape_fn((7, 3), wave(0.9)), Array2::from_shape_fn((5, 3), wave(1.7)));
        let mut weights = Array2::from_shape_fn((7, 5), |(i, j)| (x.row(i).dot(&y.row(j))).exp());
        weights.rows_mut().into_iter().for_each(|mut row| row /= row.sum() * 7.0);
        let moments = PairMoments::weighted(Moments::of(&x)?, &x, &y, &weights)?;
        let other = PairMoments::new(Moments::of(&y)?, Moments::of(&x)?)?;
        let (coordinates, rho) = (Coordinates::new(&other, 0.1, true)?, [0.9, 0.5, 0.2]);
        let mut phi = vec![0.0; 3];
        for ((i, j), weight) in weights.indexed_iter() {
            let u = coordinates.left.dot(&(&x.row(i) - &coordinates.mean_x));
            let v = coordinates.right.dot(&(&y.row(j) - &coordinates.mean_y));
            phi.iter_mut().zip(u + v).for_each(|(phi, w)| *phi += weight * w * w);
        }
        let expected = dense::mean_ln_second_moment(&phi, &rho);
        assert!((coordinates.loss(&rho, &moments)? - expected).abs() < 1e-12 * expected);
        Ok(())
    }
}
