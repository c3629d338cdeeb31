//! Landmarks by ridge leverage scores τᵢ = [K(K + λI)⁻¹]ᵢᵢ, which a recursion estimates.

use ndarray::{Array1, Array2, Axis};

use super::landmarks::uniform;
use super::values::valued;
use super::{Nystroem, diagonal};
use crate::data::clustering::drawn;
use crate::error::Result;
use crate::generator::Generator;
use crate::linalg::{Backend, Eigen};
use crate::map::AnyKernel;
use crate::progress;

/// The least λ over the largest eigenvalue: below it, scores would be rounding errors.
const LEAST: f64 = 1e-10;
/// The least size of samples.
const FEWEST: usize = 8;
/// The number of points whose scores are computed at a time.
const PART: usize = 4096;

/// At most m rows without replacement, drawn with probabilities proportional to their scores.
pub(super) fn leverage(
    kernel: &AnyKernel,
    x: &Array2<f64>,
    m: usize,
    rng: &mut Generator,
) -> Result<Vec<usize>> {
    let mut scores = Scores::estimate(kernel, x, m, rng)?.values;
    let mut chosen = Vec::with_capacity(m);
    while let Some(row) = drawn(&scores, rng).filter(|_| chosen.len() < m) {
        progress::step("landmarks", chosen.len(), m)?;
        scores[row] = 0.0;
        chosen.push(row);
    }
    Ok(chosen)
}

/// Estimates of ridge leverage scores.
#[derive(Clone, Debug)]
pub(crate) struct Scores {
    /// λ.
    pub lambda: f64,
    /// τ̂ of each point, in [0, 1].
    pub values: Vec<f64>,
}

impl Scores {
    /// Estimates for the rows of x by samples of m points, where they are more than 2m.
    ///
    /// Musco and Musco 2017, algorithm 3, with k = max(1, m/4), and samples of max(m, 8) points in place of independent draws. Where all
    /// scores are 0 by rounding, they are K(x, x) over the largest.
    pub fn estimate(kernel: &AnyKernel, x: &Array2<f64>, m: usize, rng: &mut Generator) -> Result<Self> {
        let own = diagonal(kernel, x)?;
        let unit = own.iter().copied().fold(0.0, f64::max);
        if unit == 0.0 {
            return Ok(Scores { lambda: 0.0, values: own });
        }
        let order = uniform(x.nrows(), x.nrows(), rng);
        let recursion = Recursion { kernel, x, own, unit, m: m.max(FEWEST), k: (m / 4).max(1) };
        let found = recursion.scores(&order, rng)?;
        let mut values = vec![0.0; order.len()];
        order.into_iter().zip(found.values).for_each(|(row, value)| values[row] = value);
        if values.iter().all(|value| *value == 0.0) {
            values = recursion.own.iter().map(|own| own / unit).collect();
        }
        Ok(Scores { lambda: found.lambda * unit, values })
    }
}

/// What all levels of the recursion share. Levels take λ and kernel values over u.
struct Recursion<'a> {
    kernel: &'a AnyKernel,
    /// n × d.
    x: &'a Array2<f64>,
    /// K(x, x) of each row.
    own: Vec<f64>,
    /// u, the largest K(x, x).
    unit: f64,
    /// The size of samples.
    m: usize,
    /// The number of eigenvalues that λ leaves out.
    k: usize,
}

impl Recursion<'_> {
    /// Scores of these rows by a sample of half of them, or by all of them if they are few.
    fn scores(&self, rows: &[usize], rng: &mut Generator) -> Result<Scores> {
        let half = if self.are_few(rows) { rows } else { &rows[..rows.len().div_ceil(2)] };
        let sample = match self.are_few(half) {
            true => Sample { rows: half.to_vec(), probabilities: vec![1.0; half.len()] },
            false => Sample::drawn(half, &self.scores(half, rng)?.values, self.m, rng),
        };
        self.scores_by(rows, &sample)
    }

    /// Whether each of these rows is kept.
    fn are_few(&self, rows: &[usize]) -> bool {
        rows.len() <= self.m.saturating_mul(2)
    }

    /// τ̂ᵢ = (K(xᵢ, xᵢ) − k(xᵢ)ᵀ(K_S + λW⁻²)⁻¹k(xᵢ))/λ of these rows by a sample.
    fn scores_by(&self, rows: &[usize], sample: &Sample) -> Result<Scores> {
        let own: Vec<f64> = rows.iter().map(|row| self.own[*row]).collect();
        let Some((lambda, features)) = self.ridge_features(sample)? else {
            // A kernel that is 0 at the sample says nothing of other points.
            let values = own.iter().map(|own| if *own > 0.0 { 1.0 } else { 0.0 }).collect();
            return Ok(Scores { lambda: 0.0, values });
        };
        let mut left = Vec::with_capacity(rows.len());
        for (rows, own) in rows.chunks(PART).zip(own.chunks(PART)) {
            features.residuals(&self.x.select(Axis(0), rows), own, self.unit, &mut left)?;
        }
        Ok(Scores { lambda, values: left.into_iter().map(|left| (left / lambda).clamp(0.0, 1.0)).collect() })
    }

    /// λ, and features with φ(x)·φ(y) = k(x)ᵀ(K_S + λW⁻²)⁻¹k(y); `None` if the kernel is 0 at the sample.
    fn ridge_features(&self, sample: &Sample) -> Result<Option<(f64, Nystroem)>> {
        let z = self.x.select(Axis(0), &sample.rows);
        let weights: Array1<f64> = sample.probabilities.iter().map(|p| p.sqrt().recip()).collect();
        let mut weighted = valued(self.kernel, z.ncols())?.gram(&z, &z)? / self.unit;
        weighted *= &weights;
        weighted *= &weights.view().insert_axis(Axis(1));
        if weighted.is_empty() {
            return Ok(None);
        }
        let Eigen { values, vectors, .. } = Backend::default().eigen(&weighted)?;
        let lambda = self.ridge(&values.to_vec());
        if lambda == 0.0 {
            return Ok(None);
        }
        // The rows of (Λ + λI)^(−½)Vᵀ; an eigenvalue below 0 is rounding.
        let roots = values.mapv(|value| (value.max(0.0) + lambda).sqrt().recip());
        let factor = vectors.t().to_owned() * &roots.insert_axis(Axis(1)) * (weights / self.unit.sqrt());
        Ok(Some((lambda, Nystroem::of_parts(self.kernel.clone(), z, factor)?)))
    }

    /// λ = (tr A − the sum of the k largest eigenvalues)/k of a weighted Gram matrix A with these eigenvalues, ascending. It is not below
    /// the size of eigenvalues that rounding makes negative.
    fn ridge(&self, values: &[f64]) -> f64 {
        let (least, most) = (values[0], values[values.len() - 1]);
        let left = values.iter().rev().skip(self.k).map(|value| value.max(0.0)).sum::<f64>() / self.k as f64;
        left.max(LEAST * most).max(-least)
    }
}

/// Points that stand for others.
struct Sample {
    rows: Vec<usize>,
    /// The probability p with which each of the rows was drawn; W = diag(p^(−½)).
    probabilities: Vec<f64>,
}

impl Sample {
    /// About m of these rows, by systematic sampling with probabilities min(1, cτ).
    fn drawn(rows: &[usize], scores: &[f64], m: usize, rng: &mut Generator) -> Self {
        let c = factor(scores, m);
        let (mut sum, mut next) = (0.0, rng.uniform());
        let mut sample = Sample { rows: Vec::new(), probabilities: Vec::new() };
        for (row, score) in rows.iter().zip(scores) {
            let p = (c * score).min(1.0);
            sum += p;
            if sum > next {
                next += 1.0;
                sample.rows.push(*row);
                sample.probabilities.push(p);
            }
        }
        sample
    }
}

/// The number c at which probabilities min(1, cτ) have the sum m, or are 1 for all scores above 0.
fn factor(scores: &[f64], m: usize) -> f64 {
    let total: f64 = scores.iter().sum();
    let mut c = if total > 0.0 { m as f64 / total } else { 0.0 };
    loop {
        let (certain, others): (Vec<f64>, Vec<f64>) = scores.iter().partition(|score| c * **score >= 1.0);
        let next = m.saturating_sub(certain.len()) as f64 / others.iter().sum::<f64>();
        // Each round has more scores that are certain, or is the last.
        if !next.is_finite() || next <= c {
            return c;
        }
        c = next;
    }
}
