//! Simplex frequencies (SimRF), and the product with the simplex matrix that makes them.

use ndarray::{Array2, ArrayViewMut2, Axis, s};
use rand::Rng;

use super::haar::haar_rows;
use super::radii::{assemble, draw_radii};
use super::structured::{Rotated, Rotation};
use super::{Coupling, Drawn, Givens, Hadamard, Radii, Rows};
use crate::error::Result;
use crate::theory::{BlockLaw, Dependence};

/// Simplex frequencies (SimRF): blocks of up to d rows whose directions are the vertices of a regular simplex.
///
/// # Definition
/// ωᵢ = rᵢ (S Q)ᵢ with independent rᵢ ~ χ_d, Q Haar-distributed and S the matrix of [`vertices`]: unit rows
/// with inner products −1/(d−1). A block of r < d rows is [`Partial::Fitted`] with an r-vertex simplex of its
/// own, or [`Partial::Truncated`] to the first rows of that with d. A single row is a plain one. Q may instead be a
/// fast [`RotationLaw`]: with an HD product no matrix is formed and S costs O(1) a row ("fast SimRF").
///
/// # Variance
/// The least for positive features among all couplings that do not look at the radii; for the hyperbolic and
/// trigonometric maps [`Orthogonal`](super::Orthogonal) is better. Closed forms: [`theory`](crate::theory).
///
/// # Exact where
/// With [`RotationLaw::Haar`] the law is exact: each row ~ N(0, I); with others it is approximate, and no closed form
/// is known. There is no simplex in one dimension: d = 1 is an error.
///
/// # Cost
/// That of frequencies with the same rotation and O(d) more for each row to draw (dense), O(1) more for each
/// row and point (structured).
///
/// # Example
/// ```
/// use random_features::frequency::{Simplex, draw};
/// let omega = draw(5, 5, &Simplex::default(), &mut random_features::rng(1))?;
/// let (a, b) = (omega.rows().row(0).to_owned(), omega.rows().row(1).to_owned());
/// let cos = a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt();
/// assert!((cos + 0.25).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Reid et al., *Simplex Random Features*, equations 8 and 9; fitted blocks: new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Simplex {
    /// What blocks of fewer rows than the largest are.
    pub partial: Partial,
    /// Where the rotation Q comes from.
    pub rotation: RotationLaw,
}

/// What a simplex block of r rows is, if r is less than d.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Partial {
    /// An r-vertex simplex, inner products −1/(r−1): lower variance.
    #[default]
    Fitted,
    /// The first r vertices of the d-vertex simplex, inner products −1/(d−1), as in the paper.
    Truncated,
}

/// The law of the rotation under a simplex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum RotationLaw {
    /// Haar, the uniform law: exact. Frequencies are written out.
    #[default]
    Haar,
    /// An HD product: fast and **approximate**; d is the padded dimension everywhere.
    Hadamard(Hadamard),
    /// A product of plane rotations: **approximate**.
    Givens(Givens),
}

impl Simplex {
    /// The simplex on a rotation of another law: `Simplex::on(RotationLaw::Hadamard(Hadamard::default()))` is fast
    /// SimRF.
    pub fn on(rotation: RotationLaw) -> Self {
        Simplex { rotation, ..Simplex::default() }
    }

    /// The number of vertices of the simplex of a block in ℝᵈ.
    fn vertices(&self, size: usize, d: usize) -> usize {
        match self.partial {
            Partial::Fitted => size,
            Partial::Truncated => d,
        }
    }

    fn draw_structured(
        &self,
        (padded, size): (usize, usize),
        rotation: impl FnOnce(&mut dyn Rng) -> Result<Rotation>,
        radii: &dyn Radii,
        rng: &mut dyn Rng,
    ) -> Result<Drawn> {
        let lengths = draw_radii(radii, padded, (size, padded), rng)?;
        let vertices = self.vertices(size, padded);
        // A single vertex is any direction.
        let vertices = if vertices == 1 { 0 } else { vertices };
        let block = Rotated { rotation: rotation(rng)?, vertices, copies: 1, radii: lengths };
        Ok(Drawn { rows: Rows::Structured { padded, block }, law: BlockLaw::unknown(size, radii.law()) })
    }
}

impl Coupling for Simplex {
    fn capacity(&self, d: usize) -> usize {
        match self.rotation {
            _ if d < 2 => 0,
            RotationLaw::Hadamard(_) => Hadamard::padded(d),
            RotationLaw::Haar | RotationLaw::Givens(_) => d,
        }
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut dyn Rng) -> Result<Drawn> {
        match self.rotation {
            RotationLaw::Haar => {}
            RotationLaw::Hadamard(hadamard) => {
                let rotation = |rng: &mut dyn Rng| hadamard.draw_rotation(d, rng);
                return self.draw_structured((Hadamard::padded(d), size), rotation, radii, rng);
            }
            RotationLaw::Givens(givens) => {
                let rotation = |rng: &mut dyn Rng| givens.draw_rotation(d, rng);
                return self.draw_structured((d, size), rotation, radii, rng);
            }
        }
        let lengths = draw_radii(radii, d, (size, self.capacity(d)), rng)?;
        let vertices = self.vertices(size, d);
        let rows = Rows::Dense(assemble(&lengths, directions(vertices, d, rng)));
        let dependence = if size == 1 {
            Dependence::Independent
        } else {
            Dependence::Angle { cos: -1.0 / (vertices as f64 - 1.0) }
        };
        Ok(Drawn { rows, law: BlockLaw { size, dependence, radius: radii.law(), antithetic: false } })
    }
}

/// The vertices of a randomly rotated regular simplex in ℝᵈ, `vertices` ≤ d of them.
fn directions(vertices: usize, d: usize, rng: &mut dyn Rng) -> Array2<f64> {
    if vertices == 1 {
        return haar_rows(1, d, rng);
    }
    // The last column of S is 0: one rotated axis fewer than vertices.
    let mut directions = Array2::zeros((vertices, d));
    directions.slice_mut(s![..vertices - 1, ..]).assign(&haar_rows(vertices - 1, d, rng));
    multiply(directions.view_mut());
    directions
}

/// The matrix S of `d` ≥ 2 unit rows with inner products −1/(d−1), whose last column is 0.
///
/// sᵢ = √(d/(d−1)) eᵢ − (√d+1)/(d−1)^{3/2} (1, …, 1, 0) for i < d, and s_d = (d−1)^{−1/2} (1, …, 1, 0).
pub fn vertices(d: usize) -> Array2<f64> {
    let mut matrix = Array2::eye(d);
    multiply(matrix.view_mut());
    matrix
}

/// Replaces the d rows v of a matrix by those of S v, in O(1) operations for each entry. Fewer than two rows
/// stay.
pub fn multiply(mut v: ArrayViewMut2<'_, f64>) {
    let d = v.nrows();
    if d < 2 {
        return;
    }
    let (stretch, shift, last) = coefficients(d);
    let (mut upper, mut bottom) = v.view_mut().split_at(Axis(0), d - 1);
    let sum = upper.sum_axis(Axis(0));
    for mut row in upper.rows_mut() {
        row.zip_mut_with(&sum, |v, sum| *v = stretch * *v - shift * sum);
    }
    bottom.row_mut(0).zip_mut_with(&sum, |v, sum| *v = last * sum);
}

/// Replaces the d rows u of a matrix by those of Sᵀ u, in O(1) operations for each entry. Fewer than two rows
/// stay.
pub fn multiply_transposed(mut u: ArrayViewMut2<'_, f64>) {
    let d = u.nrows();
    if d < 2 {
        return;
    }
    let (stretch, shift, last) = coefficients(d);
    let (mut upper, mut bottom) = u.view_mut().split_at(Axis(0), d - 1);
    let common = bottom.row(0).mapv(|u| last * u) - upper.sum_axis(Axis(0)).mapv(|sum| shift * sum);
    for mut row in upper.rows_mut() {
        row.zip_mut_with(&common, |u, common| *u = stretch * *u + common);
    }
    bottom.fill(0.0);
}

/// √(d/(d−1)), (√d+1)/(d−1)^{3/2} and (d−1)^{−1/2}.
pub(crate) fn coefficients(d: usize) -> (f64, f64, f64) {
    let d = d as f64;
    ((d / (d - 1.0)).sqrt(), (d.sqrt() + 1.0) / (d - 1.0).powf(1.5), (d - 1.0).sqrt().recip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_are_a_simplex_and_products_are_products() {
        for d in 2..40 {
            let s = vertices(d);
            for ((i, j), inner) in s.dot(&s.t()).indexed_iter() {
                let expected = if i == j { 1.0 } else { -1.0 / (d as f64 - 1.0) };
                assert!((inner - expected).abs() < 1e-14, "d {d}: {i},{j}: {inner}");
            }
            assert!(s.column(d - 1).iter().all(|v| *v == 0.0));
            let v = Array2::from_shape_fn((d, 3), |(i, k)| ((i * 7 + k * 3) % 11) as f64 - 5.0);
            let (mut product, mut transposed) = (v.clone(), v.clone());
            multiply(product.view_mut());
            multiply_transposed(transposed.view_mut());
            let close = |a: &Array2<f64>, b: Array2<f64>| (a - &b).iter().all(|e| e.abs() < 1e-12);
            assert!(close(&product, s.dot(&v)) && close(&transposed, s.t().dot(&v)), "d {d}");
        }
    }
}
