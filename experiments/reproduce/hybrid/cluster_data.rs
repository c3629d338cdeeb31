//! The synthetic data sets: two Gaussian clusters on each side.

use ndarray::{Array2, ArrayView1, Axis, concatenate};
use random_features::frequency::{Independent, Orthogonal};
use random_features::workbench::RootDim;
use random_features::{Result, rng};

use super::cluster_paper as paper;

/// The dimension of the points, as in the paper.
pub const D: usize = 50;

/// The size of a run, and what the paper does not say.
pub struct Setup {
    /// Points of a cluster.
    pub points: usize,
    pub repetitions: u64,
    /// The norm of the clusters' means before all is scaled.
    pub means: f64,
    /// The root mean square norm of the points in the end.
    pub norm: f64,
    pub seed: u64,
}

/// Queries and keys in rows.
pub struct Data {
    pub x: Array2<f32>,
    pub y: Array2<f32>,
    /// ‖Ar + A⁻¹r′‖² at the means for the best real diagonal A, for each pair.
    pub s: [[f64; 2]; 2],
}

/// Σ |rₖqₖ| over the coordinates where the signs agree, four times: the least ‖Ar + A⁻¹q‖² over real diagonals.
fn residual(r: ArrayView1<'_, f64>, q: ArrayView1<'_, f64>) -> f64 {
    4.0 * r.iter().zip(q).map(|(r, q)| (r * q).max(0.0)).sum::<f64>()
}

/// The means of x in the first two rows, those of y in the others.
fn residuals(means: &Array2<f64>) -> [[f64; 2]; 2] {
    [0, 1].map(|i| [2, 3].map(|j| residual(means.row(i), means.row(j))))
}

/// Means X₁, X₂, Y₁, Y₂ in rows with these residuals, nearly: rotated copies of one vector for x and of one for y. All
/// signs disagree at first; then signs are turned one at a time while that brings the residuals nearer.
fn means(setup: &Setup, s: &[f64; 4], scale: f64) -> Result<Array2<f64>> {
    // A rotated vector has a uniform direction, and the norm that it had.
    let mut means = Array2::zeros((0, D));
    for seed in 0..4 {
        let direction =
            Orthogonal.with_radii(RootDim).draw(D, 1, rng(setup.seed ^ (seed + 1) << 32).next_u64())?;
        let row = direction.rows().to_owned() * (setup.means * scale / (D as f64).sqrt());
        means = concatenate![Axis(0), means, row];
    }
    let signs = means.row(0).mapv(f64::signum);
    for (i, mut row) in means.rows_mut().into_iter().enumerate() {
        let side = if i < 2 { 1.0 } else { -1.0 };
        row.zip_mut_with(&signs, |v, sign| *v = side * sign * v.abs());
    }
    let miss = |means: &Array2<f64>| -> f64 {
        residuals(means).iter().flatten().zip(s).map(|(own, wanted)| (own - wanted).powi(2)).sum()
    };
    loop {
        let turns = (0..4).flat_map(|i| (0..D).map(move |k| (i, k)));
        let turned = |turn: (usize, usize)| {
            let mut means = means.clone();
            means[turn] *= -1.0;
            (miss(&means), means)
        };
        match turns.map(turned).min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((least, better)) if least < miss(&means) => means = better,
            _ => return Ok(means),
        }
    }
}

/// The data set with the residuals and the spread of the paper's.
pub fn make(setup: &Setup, published: &paper::Set) -> Result<Data> {
    let squared_norm = setup.means.powi(2) + D as f64 * published.variance;
    let scale = setup.norm / squared_norm.sqrt();
    let means = means(setup, &published.s, scale)?;
    let noise = Independent.draw(D, 4 * setup.points, rng(setup.seed).next_u64())?;
    let deviation = published.variance.sqrt() * scale;
    let rows = noise.rows();
    let point = |(i, k): (usize, usize)| (means[[i / setup.points, k]] + deviation * rows[[i, k]]) as f32;
    let all = Array2::from_shape_fn((4 * setup.points, D), point);
    let (x, y) = all.view().split_at(Axis(0), 2 * setup.points);
    Ok(Data { x: x.to_owned(), y: y.to_owned(), s: residuals(&means) })
}
