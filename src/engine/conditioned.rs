//! [`ConditionedPlan`]: a map of affine images of points, times a factor for each point.

use std::sync::Arc;

use ndarray::{Array2, ArrayView1, ArrayView2};

use super::absorbed::Absorbed;
use super::pass::Pass;
use super::plan::MapPlan;
use super::{Facts, Scratch, Side, Tile};
use crate::Real;
use crate::error::{Error, Result};
use crate::kernel::Lengthscale;
use crate::numeric::{self, Isa, Packed};

/// The transformation of the points of a side, in `f64`: features are those of z = M(x − c), times e^{t(x)} with
/// t(x) = α‖z/ℓ‖² + β‖x/ℓ‖² + l·x + γ.
#[derive(Clone, Debug)]
pub(crate) struct Affine {
    /// M, r × d.
    pub matrix: Array2<f64>,
    /// The shift c; empty if it is 0.
    pub shift: Vec<f64>,
    /// α, the coefficient of ‖z/ℓ‖².
    pub image: f64,
    /// β, the coefficient of ‖x/ℓ‖².
    pub point: f64,
    /// The linear coefficients l; empty if they are 0.
    pub linear: Vec<f64>,
    /// The constant γ.
    pub constant: f64,
}

impl Affine {
    /// z = Mx, without a factor.
    pub fn linear(matrix: Array2<f64>) -> Self {
        Affine { matrix, shift: Vec::new(), image: 0.0, point: 0.0, linear: Vec::new(), constant: 0.0 }
    }

    /// z = ℓM(x/ℓ), without a factor: for a matrix that acts on points divided by the lengthscale.
    pub fn scaled(matrix: &Array2<f64>, lengthscale: &Lengthscale) -> Self {
        let entry = |(k, l)| matrix[[k, l]] * lengthscale.at(k) / lengthscale.at(l);
        Self::linear(Array2::from_shape_fn(matrix.dim(), entry))
    }
}

/// Features of a map at z = M(x − c), times a factor for each point.
///
/// For a plain map with a dense projection the matrix is multiplied into the frequencies, and only the norm of z is
/// computed, by a triangular factor. Otherwise z is computed.
#[derive(Clone, Debug)]
pub(crate) struct ConditionedPlan<T> {
    pub facts: Facts,
    base: Box<MapPlan<T>>,
    sides: [Arc<PointChange<T>>; 2],
    /// Whether factors of points are left out, on each side.
    bare: [bool; 2],
}

/// Some points x, and x − c row by row.
#[derive(Clone, Copy)]
struct ShiftedPoints<'a, T> {
    x: ArrayView2<'a, T>,
    shifted: &'a [T],
}

/// The transformation of the points of a side.
#[derive(Debug)]
struct PointChange<T> {
    affine: Affine,
    /// The shift c.
    shift: Vec<T>,
    /// M, if z is computed.
    matrix: Packed<T>,
    absorbed: Option<Absorbed<T>>,
    /// 1/ℓ, if all coordinates have one ℓ.
    scale: f64,
    /// 1/ℓₖ for each coordinate, else empty.
    scales: Vec<f64>,
}

impl<T: Real> ConditionedPlan<T> {
    /// `base` at the images of points. Its lengthscale is ℓ.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) if frequencies or matrices overflow `T`, and the other errors of
    /// [`Projection::new`](super::Projection::new).
    pub fn new(base: MapPlan<T>, affine: [Affine; 2], lengthscale: &Lengthscale) -> Result<Self> {
        let [x, y] = &affine;
        let alike = x.matrix == y.matrix && x.shift == y.shift && x.linear == y.linear;
        let facts = Facts {
            dim: x.matrix.ncols(),
            symmetric: base.facts().symmetric && alike && x.constant == y.constant,
            ..base.facts().clone()
        };
        let [x, y] = affine;
        let of_x = Arc::new(PointChange::new(x, &base, lengthscale)?);
        let of_y = if alike { of_x.clone() } else { Arc::new(PointChange::new(y, &base, lengthscale)?) };
        Ok(ConditionedPlan { facts, base: Box::new(base), sides: [of_x, of_y], bare: [false; 2] })
    }

    pub fn base(&self) -> &MapPlan<T> {
        &self.base
    }

    pub fn base_mut(&mut self) -> &mut MapPlan<T> {
        &mut self.base
    }

    /// The plan without the factors of points on `side`, which a normaliser cancels.
    pub fn bare(&self, side: Side) -> Self {
        let mut bare = self.clone();
        bare.bare[side as usize] = true;
        bare
    }

    pub fn fill(&self, pass: Pass, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        let change = &*self.sides[pass.side as usize];
        let bare = self.bare[pass.side as usize];
        let (mut buffer, mut terms) = (scratch.take(0), scratch.take_wide(x.nrows()));
        let points = change.shifted(x, &mut buffer);
        change.terms(x, &mut terms, bare);
        match (&change.absorbed, &*self.base) {
            (Some(absorbed), MapPlan::Leaf(leaf)) => {
                let coefficient = if bare { 0.0 } else { leaf.row + change.affine.image };
                absorbed.add_norms(points, coefficient, &mut terms, scratch);
                let points = numeric::matrix_view(x.nrows(), x.ncols(), points);
                absorbed.fill(leaf, pass, points, &terms, tile, scratch);
            }
            _ => {
                let points = ShiftedPoints { x, shifted: points };
                self.fill_images(change, pass, points, &mut terms, tile, scratch);
            }
        }
        scratch.give(buffer);
        scratch.give_wide(terms);
    }

    /// Writes the features of the base at the images of the points.
    fn fill_images(
        &self,
        change: &PointChange<T>,
        pass: Pass,
        points: ShiftedPoints<'_, T>,
        terms: &mut [f64],
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let (n, r) = (points.x.nrows(), change.affine.matrix.nrows());
        let mut images = scratch.take(n * r);
        change.images(points, &mut images);
        let image = if self.bare[pass.side as usize] { 0.0 } else { change.affine.image };
        for (z, term) in images.chunks_exact_mut(r).zip(&mut *terms) {
            *term += change.of_image(image, z);
            // The base then makes the row NaN itself: afterwards it could not be changed, since rows that are complete may have
            // been copied to the result.
            if !term.is_finite() {
                z.fill(T::nan());
            }
        }
        let z = numeric::matrix_view(n, r, &images);
        self.base.fill_dense(pass.of_other_points(), z, tile, scratch);
        for (i, term) in terms.iter().enumerate() {
            tile.row(i).log_scales.iter_mut().for_each(|scale| *scale += term);
        }
        scratch.give(images);
    }

    /// z = M(x − c), n × r.
    pub fn images(&self, side: Side, x: ArrayView2<'_, T>) -> Array2<T> {
        let change = &*self.sides[side as usize];
        let (mut buffer, mut out) = (Vec::new(), Array2::zeros((x.nrows(), change.affine.matrix.nrows())));
        let shifted = change.shifted(x, &mut buffer);
        change.images(ShiftedPoints { x, shifted }, numeric::slice_of_mut(&mut out));
        out
    }

    /// t(x) of each row, from its image.
    pub fn log_factors(&self, side: Side, x: ArrayView2<'_, T>, images: ArrayView2<'_, T>) -> Vec<f64> {
        let change = &*self.sides[side as usize];
        let mut terms = vec![0.0; x.nrows()];
        change.terms(x, &mut terms, false);
        for (term, z) in terms.iter_mut().zip(images.rows()) {
            *term += change.of_image(change.affine.image, numeric::slice_of(&z));
        }
        terms
    }

    /// Adds to `out` the gradients with respect to x, from the gradients with respect to z, n × r; `sums` are Σ c φ of each row.
    pub fn pull_back(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        images: ArrayView2<'_, T>,
        gradients: ArrayView2<'_, f64>,
        sums: &[f64],
        mut out: ndarray::ArrayViewMut2<'_, f64>,
    ) {
        let change = &*self.sides[side as usize];
        let Affine { matrix, image, point, linear, .. } = &change.affine;
        let scale = |k: usize| change.scales.get(k).copied().unwrap_or(change.scale);
        for (i, sum) in sums.iter().enumerate() {
            let of_image =
                |k: usize, z: T| gradients[[i, k]] + 2.0 * image * sum * z.widen() * scale(k) * scale(k);
            let z: Vec<f64> = images.row(i).iter().enumerate().map(|(k, z)| of_image(k, *z)).collect();
            for (l, out) in out.row_mut(i).into_iter().enumerate() {
                let through: f64 = matrix.column(l).iter().zip(&z).map(|(m, z)| m * z).sum();
                let own = 2.0 * point * x[[i, l]].widen() * scale(l) * scale(l);
                let own = own + linear.get(l).copied().unwrap_or(0.0);
                *out += through + sum * own;
            }
        }
    }
}

impl<T: Real> PointChange<T> {
    fn new(affine: Affine, base: &MapPlan<T>, lengthscale: &Lengthscale) -> Result<Self> {
        let absorbed = match base {
            MapPlan::Leaf(leaf) => Absorbed::new(leaf, &affine.matrix, lengthscale)?,
            _ => None,
        };
        let (r, d) = if absorbed.is_some() { (0, 0) } else { affine.matrix.dim() };
        let fits = |row: ArrayView1<'_, f64>| row.iter().all(|v| T::narrow(*v).is_finite());
        if let Some(row) = affine.matrix.rows().into_iter().take(r).position(|row| !fits(row)) {
            return Err(Error::NotFinite { what: "the matrix of a conditioning", row, column: None });
        }
        let matrix = Packed::new(r, d, |k, l| T::saturated(affine.matrix[[k, l]]));
        let shift = affine.shift.iter().map(|c| T::saturated(*c)).collect();
        let (scale, scales) = lengthscale.inverses();
        Ok(PointChange { affine, shift, matrix, absorbed, scale, scales })
    }

    /// The points x − c, row by row: x itself if c = 0, else in a buffer.
    fn shifted<'a>(&self, x: ArrayView2<'a, T>, buffer: &'a mut Vec<T>) -> &'a [T] {
        if let (Some(points), true) = (x.to_slice(), self.shift.is_empty()) {
            return points;
        }
        buffer.clear();
        for row in x.rows() {
            if self.shift.is_empty() {
                buffer.extend(row);
            } else {
                buffer.extend(row.into_iter().zip(&self.shift).map(|(x, c)| *x - *c));
            }
        }
        buffer
    }

    /// The logarithms of the factors of points, without the part of ‖z‖².
    fn terms(&self, x: ArrayView2<'_, T>, terms: &mut [f64], bare: bool) {
        let Affine { point, linear, constant, .. } = &self.affine;
        if bare || (*point == 0.0 && linear.is_empty()) {
            return terms.fill(if bare { 0.0 } else { *constant });
        }
        let mut copy = Vec::new();
        for (x, term) in x.rows().into_iter().zip(terms) {
            let x = x.to_slice().unwrap_or_else(|| {
                copy.clear();
                copy.extend(x.iter());
                &copy
            });
            let isa = Isa::best();
            let own = if *point == 0.0 {
                0.0
            } else {
                point * numeric::squared_norm(isa, x, self.scale, &self.scales)
            };
            let product = if linear.is_empty() { 0.0 } else { numeric::dot(isa, x, linear) };
            *term = own + product + constant;
        }
    }

    /// A coefficient times ‖z/ℓ‖².
    fn of_image(&self, coefficient: f64, z: &[T]) -> f64 {
        // A coefficient of 0 is left out: the square may be infinite.
        if coefficient == 0.0 {
            0.0
        } else {
            coefficient * numeric::squared_norm(Isa::best(), z, self.scale, &self.scales)
        }
    }

    /// Writes M(x − c), computed in `f64` where intermediate numbers overflow `T`.
    fn images(&self, points: ShiftedPoints<'_, T>, images: &mut [T]) {
        let ShiftedPoints { x, shifted } = points;
        let (r, d) = self.affine.matrix.dim();
        if self.absorbed.is_some() {
            let rows = shifted.chunks_exact(d).zip(images.chunks_exact_mut(r));
            return rows.for_each(|(x, z)| self.wide_image(x.iter().map(|x| x.widen()), z));
        }
        numeric::product(Isa::best(), shifted, d, self.matrix.all(), images, r);
        for (i, z) in images.chunks_exact_mut(r).enumerate() {
            if !z.iter().all(|z| z.is_finite()) && x.row(i).iter().all(|x| x.is_finite()) {
                let shift = |k: usize| self.affine.shift.get(k).copied().unwrap_or(0.0);
                self.wide_image(x.row(i).iter().enumerate().map(|(k, x)| x.widen() - shift(k)), z);
            }
        }
    }

    #[cold]
    fn wide_image(&self, shifted: impl Iterator<Item = f64> + Clone, z: &mut [T]) {
        for (z, row) in z.iter_mut().zip(self.affine.matrix.rows()) {
            *z = T::saturated(row.iter().zip(shifted.clone()).map(|(m, x)| m * x).sum());
        }
    }
}
