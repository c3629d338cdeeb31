//! [`Leaf`]: a map in the normal form.

use std::sync::Arc;

use ndarray::ArrayView2;
use num_complex::Complex64;

use super::bias::Bias;
use super::input::{Input, Linear};
use super::logarithms::Logarithms;
use super::tile::GROUP_ROWS;
use super::{Facts, Form, Lift, Pass, PointsView, Projection, Scratch, Tile};
use crate::Real;
use crate::kernel::Lengthscale;
use crate::numeric::{self, Isa};

/// A map in the normal form φⱼ(x) = m^{−½} lift(β⟨ωⱼ, g(x)⟩ + aⱼ) e^{c(x)}, with real features side by side.
#[derive(Clone, Debug)]
pub(crate) struct Leaf<T> {
    pub facts: Facts,
    /// The functions g and c of a point.
    pub input: Arc<Input>,
    /// The projections on ωⱼ.
    pub projection: Arc<Projection<T>>,
    /// β on each side.
    pub slopes: [Complex64; 2],
    /// The weights aⱼ; `None` if all are 0 and β is 1.
    pub bias: Option<Arc<Bias<T>>>,
    pub lift: Lift,
    /// Whether features of −ω follow those of ω and are not made by the lift.
    pub mirrored: bool,
    /// The coefficient of ‖x/ℓ‖² in c, for points that are projected themselves.
    pub row: f64,
    /// The constant that is added to every exponent, including −½ ln m.
    pub constant: f64,
    pub lengthscale: Lengthscale,
}

/// The terms of a row of exponents besides its projections.
pub(super) struct RowTerm {
    /// c(x), less the constant; not finite for points without features.
    pub log: f64,
    /// The imaginary part of c(x).
    pub phase: f64,
    /// An upper bound on every |⟨ωⱼ, g(x)⟩|.
    pub reach: f64,
}

impl<T: Real> Leaf<T> {
    /// The projection if it is applied to the points themselves: it reads points of any kind, and other maps may share its result.
    pub fn shareable(&self) -> Option<&Arc<Projection<T>>> {
        matches!(*self.input, Input::Points).then_some(&self.projection)
    }

    /// Writes the features of the rows of `x` to a tile of as many rows.
    pub fn fill(&self, pass: Pass, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        match &*self.input {
            Input::Points => self.fill_points(pass, x.into(), tile, scratch),
            Input::Linear(linear) => self.fill_linear(linear, &self.projection, pass, x, tile, scratch),
            Input::Logarithms(logarithms) => {
                self.fill_powers(logarithms, &self.projection, pass, x, tile, scratch);
            }
        }
    }

    /// As [`fill`](Leaf::fill), of a leaf that projects the points themselves.
    pub fn fill_points(
        &self,
        pass: Pass,
        x: PointsView<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let projection = &self.projection;
        pass.project(projection, x, tile, scratch);
        self.finish(pass, tile, |_, squared_norm| {
            let log = if squared_norm.is_finite() { self.row * squared_norm } else { f64::NAN };
            RowTerm { log, phase: 0.0, reach: projection.bound(squared_norm) }
        });
    }

    /// Turns projections into exponents and these into features, group of rows by group of rows.
    #[inline]
    pub(super) fn finish(&self, pass: Pass, tile: &mut Tile<'_, T>, term: impl Fn(usize, f64) -> RowTerm) {
        let (lift, slope) = (self.lift.on(pass.side), self.slopes[pass.side as usize]);
        // Without a bias, projections are the exponents.
        let plain = self.bias.is_none() && !lift.is_complex();
        let mut bounds = [0.0; GROUP_ROWS];
        for rows in tile.groups() {
            let bounds = &mut bounds[..rows.len()];
            for (i, bound) in rows.clone().zip(&mut *bounds) {
                let term = term(i, *tile.scale(i));
                *bound = if plain { term.reach } else { self.exponents(slope, tile.row(i).values, &term) };
            }
            match pass.form {
                Form::Values => lift.apply_to_rows(tile.rows_in(rows.clone()).values, bounds),
                Form::Logarithms => {
                    bounds.fill(0.0);
                    for i in rows.clone() {
                        let row = tile.row(i);
                        lift.logarithms(row.values, row.signs);
                    }
                }
            }
            for (i, shift) in rows.clone().zip(bounds) {
                let scale = tile.scale(i);
                let log = term(i, *scale).log;
                *scale = *shift + log + self.constant;
                if !log.is_finite() {
                    tile.poison(i);
                }
            }
            tile.complete(rows.end);
        }
    }

    /// Turns projections into exponents, in place; returns a bound of their real parts.
    fn exponents(&self, slope: Complex64, values: &mut [T], term: &RowTerm) -> f64 {
        let Some(bias) = &self.bias else {
            self.mirror(values, T::narrow(term.phase.rem_euclid(std::f64::consts::TAU)));
            return term.reach;
        };
        bias.apply(slope, values, slope.norm() * term.reach + bias.spread);
        slope.re.abs() * term.reach + bias.spread
    }

    /// Makes the exponents of −ω from those of ω, and adds a phase to the imaginary parts.
    fn mirror(&self, values: &mut [T], phase: T) {
        let (u, v) = values.split_at_mut(values.len() / 2);
        if self.mirrored {
            for part in [&mut *u, &mut *v] {
                let (plus, minus) = part.split_at_mut(part.len() / 2);
                minus.iter_mut().zip(plus).for_each(|(minus, plus)| *minus = -*plus);
            }
        }
        v.iter_mut().for_each(|v| *v += phase);
    }

    fn fill_linear(
        &self,
        linear: &Linear,
        projection: &Projection<T>,
        pass: Pass,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let (rows, d) = x.dim();
        let mut points = scratch.take(2 * x.len());
        let mut wide = scratch.take_wide(2 * rows + rows + d);
        let (terms, rest) = wide.split_at_mut(2 * rows);
        let (reaches, u) = rest.split_at_mut(rows);
        let terms = terms.as_chunks_mut::<2>().0;
        let (re, im) = points.split_at_mut(x.len());
        linear.transform(pass.side, x, &mut *re, &mut *im, terms, u);
        let mut project = |part: &[T], first: usize, tile: &mut Tile<'_, T>| {
            let tile = &mut tile.part(first..first + projection.m(), 0..1);
            projection.project(numeric::matrix_view(rows, d, part).into(), tile, scratch, None);
        };
        project(re, 0, tile);
        reaches
            .iter_mut()
            .enumerate()
            .for_each(|(i, reach)| *reach = projection.bound(tile.row(i).log_scales[0]));
        project(im, tile.width() / 2, tile);
        self.finish(pass, tile, |i, _| {
            let [log, phase] = terms[i];
            RowTerm { log: if phase.is_finite() { log } else { f64::NAN }, phase, reach: reaches[i] }
        });
        scratch.give(points);
        scratch.give_wide(wide);
    }

    fn fill_powers(
        &self,
        logarithms: &Logarithms,
        projection: &Projection<T>,
        pass: Pass,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let (rows, d) = x.dim();
        let (mut points, mut wide) = (scratch.take(x.len()), scratch.take_wide(x.len() + d + rows));
        let (u, terms) = wide.split_at_mut(x.len() + d);
        logarithms.transform(x, u, &mut points, terms);
        projection.project(numeric::matrix_view(rows, d, &points).into(), tile, scratch, None);
        for (i, (u, term)) in u.chunks_exact(d).zip(terms).enumerate() {
            if term.is_finite() {
                let (point, row) = (logarithms.point(&mut scratch.masks, u), tile.row(i));
                row.log_scales[0] = logarithms.subtract_largest(row.values, &point) + *term + self.constant;
                match pass.form {
                    Form::Values => {
                        numeric::exp_minus(Isa::best(), row.values, T::zero());
                        logarithms.sign(row.values, &point);
                    }
                    Form::Logarithms => logarithms.sign(row.signs, &point),
                }
            } else {
                tile.poison(i);
            }
            tile.complete(i + 1);
        }
        scratch.give(points);
        scratch.give_wide(wide);
    }
}
