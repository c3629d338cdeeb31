//! [`Pass`]: one way of points through a plan, on which several maps share a projection.

use std::sync::Arc;

use super::{Form, PointsView, Projection, Scratch, Side, Tile};
use crate::Real;
use crate::kernel::Lengthscale;
use crate::numeric::{self, Buffer, Isa, Submatrix};

/// Settings that hold for all maps of a plan while a tile is filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    pub side: Side,
    pub form: Form,
    /// Whether the points are the points of the whole plan, so that projections of them may be shared.
    whole: bool,
}

/// A projection of a tile's points that several maps use: the first of them writes it.
#[derive(Debug)]
pub(super) struct SharedProjection<T> {
    projection: Arc<Projection<T>>,
    /// ⟨ωⱼ, xᵢ/ℓ⟩, n × m.
    values: Buffer<T>,
    /// ‖xᵢ/ℓ‖².
    squared_norms: Vec<f64>,
    known: bool,
}

/// ‖x/ℓ‖² of a tile's points, for the lengthscale that was used first.
#[derive(Debug, Default)]
pub(super) struct Norms {
    scale: Option<Lengthscale>,
    squares: Vec<f64>,
}

impl Pass {
    /// A pass with nothing to share.
    pub fn new(side: Side, form: Form) -> Self {
        Pass { side, form, whole: false }
    }

    /// This pass, with projections that the maps of the whole plan share in `scratch`.
    pub fn sharing<T: Real>(self, projections: &[Arc<Projection<T>>], scratch: &mut Scratch<T>) -> Self {
        scratch.norms.scale = None;
        let stays = |(shared, own): (&SharedProjection<T>, _)| Arc::ptr_eq(&shared.projection, own);
        if scratch.shared.len() != projections.len() || !scratch.shared.iter().zip(projections).all(stays) {
            scratch.shared = projections.iter().map(SharedProjection::new).collect();
        }
        scratch.shared.iter_mut().for_each(|shared| shared.known = false);
        Pass { whole: true, ..self }
    }

    /// This pass for other points.
    pub fn of_other_points(self) -> Self {
        Pass { whole: false, ..self }
    }

    /// This pass in another form.
    pub fn in_form(self, form: Form) -> Self {
        Pass { form, ..self }
    }

    /// As [`Projection::project`], once for all maps that need the same.
    #[inline]
    pub fn project<T: Real>(
        self,
        projection: &Arc<Projection<T>>,
        x: PointsView<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        if !self.whole {
            return projection.project(x, tile, scratch, None);
        }
        let same = |shared: &SharedProjection<T>| Arc::ptr_eq(&shared.projection, projection);
        let place = scratch.shared.iter().position(same);
        if let Some(known) = place.map(|place| &scratch.shared[place]).filter(|shared| shared.known) {
            return known.read(tile);
        }
        let mut norms = std::mem::take(&mut scratch.norms);
        let known = norms.scale.as_ref() == Some(projection.lengthscale());
        projection.project(x, tile, scratch, known.then_some(&norms.squares[..]));
        if !known {
            norms.squares.clear();
            norms.squares.extend((0..tile.rows()).map(|i| *tile.scale(i)));
            norms.scale = Some(projection.lengthscale().clone());
        }
        scratch.norms = norms;
        if let Some(place) = place {
            scratch.shared[place].write(tile);
        }
    }
}

impl<T: Real> SharedProjection<T> {
    fn new(projection: &Arc<Projection<T>>) -> Self {
        let (values, squared_norms) = (Buffer::default(), Vec::new());
        SharedProjection { projection: projection.clone(), values, squared_norms, known: false }
    }

    fn write(&mut self, tile: &mut Tile<'_, T>) {
        let (m, rows) = (self.projection.m(), tile.rows());
        let own = Submatrix { values: self.values.take(rows * m), rows, stride: m, width: m };
        numeric::copy_rows(Isa::best(), own, tile.rows_in(0..rows).values.shared());
        self.squared_norms.clear();
        self.squared_norms.extend((0..rows).map(|i| *tile.scale(i)));
        self.known = true;
    }

    fn read(&self, tile: &mut Tile<'_, T>) {
        let (m, rows) = (self.projection.m(), tile.rows());
        let own = Submatrix { values: &*self.values, rows, stride: m, width: m };
        numeric::copy_rows(Isa::best(), tile.rows_in(0..rows).values, own);
        self.squared_norms.iter().enumerate().for_each(|(i, norm)| *tile.scale(i) = *norm);
    }
}
