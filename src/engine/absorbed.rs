//! [`Absorbed`]: a matrix on points that is multiplied into the frequencies.

use ndarray::{Array2, ArrayView2};

use super::leaf::{Leaf, RowTerm};
use super::{Input, Method, Pass, Projection, Scratch, Tile};
use crate::Real;
use crate::error::Result;
use crate::frequency::Frequencies;
use crate::kernel::Lengthscale;
use crate::numeric::{self, Isa, Packed, panel_width};

/// A matrix M multiplied into the frequencies.
#[derive(Debug)]
pub(super) struct Absorbed<T> {
    /// The projection on the rows Mᵀω, which divides by ℓ.
    pub projection: Projection<T>,
    norm: NormForm<T>,
}

/// How ‖z/ℓ‖² is computed from x − c, where z = M(x − c).
#[derive(Debug)]
enum NormForm<T> {
    /// The squares are multiplied by one factor, or by a factor for each coordinate.
    Scales(f64, Vec<f64>),
    /// ‖R(x − c)‖² with a lower triangle R.
    Triangle(Packed<T>),
}

impl<T: Real> Absorbed<T> {
    /// The absorbed matrix of a plain map that projects points themselves by a dense product, if M is square; else `None`.
    pub fn new(leaf: &Leaf<T>, matrix: &Array2<f64>, lengthscale: &Lengthscale) -> Result<Option<Self>> {
        let (Input::Points, own) = (&*leaf.input, &leaf.projection) else { return Ok(None) };
        if own.method() == Method::Structured || matrix.nrows() != matrix.ncols() {
            return Ok(None);
        }
        let d = matrix.nrows();
        // ω·(Mx/ℓ) = (ℓ Mᵀ(ω/ℓ))·(x/ℓ).
        let scaled =
            Array2::from_shape_fn((d, d), |(k, l)| matrix[[k, l]] * lengthscale.at(l) / lengthscale.at(k));
        let rows = own.frequencies().rows().dot(&scaled);
        let projection =
            Projection::with_method(Frequencies::from_rows(rows)?, lengthscale.clone(), Method::Dense)?;
        let diagonal = matrix.indexed_iter().all(|((k, l), v)| k == l || *v == 0.0);
        let norm = if diagonal && matrix.diag().iter().all(|v| v.abs() == 1.0) {
            // M changes signs only: ‖z/ℓ‖ = ‖(x − c)/ℓ‖.
            let (scale, scales) = lengthscale.inverses();
            NormForm::Scales(scale, scales)
        } else if diagonal {
            NormForm::Scales(1.0, (0..d).map(|k| matrix[[k, k]] / lengthscale.at(k)).collect())
        } else {
            let whole = Array2::from_shape_fn((d, d), |(k, l)| matrix[[k, l]] / lengthscale.at(k));
            let triangle = lower_triangle(whole);
            NormForm::Triangle(Packed::new(d, d, |k, l| T::saturated(triangle[[k, l]])))
        };
        Ok(Some(Absorbed { projection, norm }))
    }

    /// Adds ‖z/ℓ‖² times a coefficient to each term; nothing if that is 0, where the norm may be infinite.
    pub fn add_norms(&self, shifted: &[T], coefficient: f64, terms: &mut [f64], scratch: &mut Scratch<T>) {
        if coefficient == 0.0 {
            return;
        }
        let (isa, d) = (Isa::best(), self.projection.dim());
        let mut add = |rows: &[T], scale: f64, scales: &[f64]| {
            for (row, term) in rows.chunks_exact(d).zip(&mut *terms) {
                *term += coefficient * numeric::squared_norm(isa, row, scale, scales);
            }
        };
        match &self.norm {
            NormForm::Scales(scale, scales) => add(shifted, *scale, scales),
            NormForm::Triangle(triangle) => {
                let mut rows = scratch.take(shifted.len());
                let width = panel_width::<T>();
                // A panel of the triangle needs no more columns than its last row.
                for (p, panel) in triangle.runs(width).enumerate() {
                    let (first, depth) = (p * width, (p + 1) * width);
                    numeric::product(isa, shifted, d, panel.shallow(depth), &mut rows[first..], d);
                }
                add(&rows, 1.0, &[]);
                scratch.give(rows);
            }
        }
    }
}

impl<T: Real> Absorbed<T> {
    /// The features of the leaf at x − c, with these logarithms of factors for the rows.
    pub fn fill(
        &self,
        leaf: &Leaf<T>,
        pass: Pass,
        shifted: ArrayView2<'_, T>,
        terms: &[f64],
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        self.projection.project(shifted.into(), tile, scratch, None);
        leaf.finish(pass, tile, |i, squared_norm| {
            let log = if squared_norm.is_finite() { terms[i] } else { f64::NAN };
            RowTerm { log, phase: 0.0, reach: self.projection.bound(squared_norm) }
        });
    }
}

/// A lower triangle R with ‖Rx‖ = ‖Mx‖, by Householder reflections from the last column on.
fn lower_triangle(mut m: Array2<f64>) -> Array2<f64> {
    let d = m.nrows();
    for k in (0..d).rev() {
        // Reflects the first k + 1 entries of column k to its entry k.
        let column: Vec<f64> = m.column(k).iter().take(k + 1).copied().collect();
        let largest = column.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
        if largest == 0.0 {
            continue;
        }
        let mut v: Vec<f64> = column.iter().map(|c| c / largest).collect();
        let norm = v.iter().map(|v| v * v).sum::<f64>().sqrt();
        v[k] += norm.copysign(v[k]);
        let square: f64 = v.iter().map(|v| v * v).sum();
        for mut column in m.columns_mut().into_iter().take(k + 1) {
            let along: f64 = v.iter().zip(&column).map(|(v, c)| v * c).sum();
            let factor = 2.0 * along / square;
            v.iter().zip(column.iter_mut()).for_each(|(v, c)| *c -= factor * v);
        }
    }
    // Entries above the diagonal are rounding errors.
    Array2::from_shape_fn((d, d), |(k, l)| if l <= k { m[[k, l]] } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triangle_has_the_norms_of_its_matrix() {
        for d in [1, 2, 5, 33] {
            let m = Array2::from_shape_fn((d, d), |(k, l)| ((k * 7 + l * l * 3 + 1) % 11) as f64 - 5.0);
            let r = lower_triangle(m.clone());
            assert!(r.indexed_iter().all(|((k, l), v)| l <= k || *v == 0.0));
            let (g, h) = (m.t().dot(&m), r.t().dot(&r));
            let size = g.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
            assert!(g.iter().zip(&h).all(|(g, h)| (g - h).abs() <= 1e-13 * size));
        }
        assert_eq!(lower_triangle(Array2::zeros((3, 3))), Array2::<f64>::zeros((3, 3)));
    }
}
