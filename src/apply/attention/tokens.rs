//! [`Tokens`]: queries or keys of a run of tokens as points, and their features.

use ndarray::{ArrayView1, ArrayView2};

use super::state::LogRow;
use crate::Real;
use crate::engine::{Batch, Form, Program, Scratch, Side};
use crate::numeric::{self, Isa};

/// A number type that queries, keys and values are given in, for attention in `T`: `T` itself and, with the feature
/// `half`, `half::bf16` and `half::f16` for attention in `f32`. Sealed.
pub trait Element<T>: Copy + Send + Sync + sealed::Sealed {
    /// The number in `T`.
    fn convert(self) -> T;
}

mod sealed {
    pub trait Sealed {}
    impl<T: crate::Real> Sealed for T {}
    #[cfg(feature = "half")]
    impl Sealed for half::bf16 {}
    #[cfg(feature = "half")]
    impl Sealed for half::f16 {}
}

impl<T: Real> Element<T> for T {
    #[inline(always)]
    fn convert(self) -> T {
        self
    }
}

#[cfg(feature = "half")]
impl Element<f32> for half::bf16 {
    #[inline(always)]
    fn convert(self) -> f32 {
        self.to_f32()
    }
}

#[cfg(feature = "half")]
impl Element<f32> for half::f16 {
    #[inline(always)]
    fn convert(self) -> f32 {
        self.to_f32()
    }
}

/// How queries and keys become the points of a map: x ↦ factor · x, or factor · x/‖x‖.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Reading {
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub factor: f64,
    pub unit: bool,
    /// ε of [`Attention::biased_epsilon`](super::Attention::biased_epsilon).
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub epsilon: f64,
}

impl Reading {
    /// The points of some tokens, in row-major order.
    pub fn points<T: Real, E: Element<T>>(&self, x: ArrayView2<'_, E>, points: &mut Vec<T>) {
        points.clear();
        for row in x.rows() {
            let factor = T::narrow(self.factor / if self.unit { norm(row) } else { 1.0 });
            match row.to_slice() {
                Some(row) => points.extend(row.iter().map(|v| v.convert() * factor)),
                None => points.extend(row.iter().map(|v| v.convert() * factor)),
            }
        }
    }
}

/// ‖x‖; 1 for 0, which stays 0.
fn norm<T: Real, E: Element<T>>(x: ArrayView1<'_, E>) -> f64 {
    let norm = x.iter().map(|v| v.convert().widen().powi(2)).sum::<f64>().sqrt();
    if norm == 0.0 { 1.0 } else { norm }
}

/// Queries or keys of a run of tokens.
#[derive(Debug, Default)]
pub(super) struct Tokens<T> {
    points: Vec<T>,
    features: Batch<T>,
    /// Features in their best form, once they are asked for.
    logs: Option<Batch<T>>,
    spare: Batch<T>,
    /// ln of each row's scale: features are e^scale times what the batch holds, in all blocks.
    pub scales: Vec<f64>,
    /// Whether no feature of a row has been lost to rounding, so that the row may be multiplied in `T`.
    pub plain: Vec<bool>,
}

/// The least feature, relative to the largest of a row, that products in `T` can do with: two of them multiplied are a
/// normal number with room to spare.
fn least<T: Real>() -> f64 {
    T::min_positive_value().widen().powf(0.44)
}

impl<T: Real> Tokens<T> {
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// All values, tokens × D.
    pub fn values(&self) -> &[T] {
        self.features.values()
    }

    pub fn row(&self, i: usize) -> &[T] {
        self.features.row(i).values
    }

    /// The features of the tokens `x`.
    pub fn fill<E: Element<T>>(
        &mut self,
        program: &Program<T>,
        (side, reading): (Side, &Reading),
        x: ArrayView2<'_, E>,
        scratch: &mut Scratch<T>,
    ) {
        reading.points(x.view(), &mut self.points);
        if let Some(logs) = self.logs.take() {
            self.spare = logs;
        }
        self.scales.clear();
        self.plain.clear();
        if let Ok(points) = ArrayView2::from_shape(x.dim(), &self.points) {
            self.features.fill(program, (side, Form::Values), points, scratch);
            for i in 0..x.nrows() {
                let (scale, plain) = self.flatten(program, i);
                self.scales.push(scale);
                self.plain.push(plain);
                if reading.epsilon > 0.0 {
                    self.add_epsilon(side, i, reading.epsilon);
                }
            }
        }
    }

    /// Gives row `i` one scale for all its blocks.
    fn flatten(&mut self, program: &Program<T>, i: usize) -> (f64, bool) {
        let (isa, least) = (Isa::best(), least::<T>());
        let row = self.features.row_mut(i);
        if row.log_scales.iter().any(|scale| scale.is_nan()) {
            return (f64::NAN, false);
        }
        let top = row.log_scales.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut plain = true;
        for (columns, scale) in program.blocks().iter().zip(&*row.log_scales) {
            let values = &mut row.values[columns.clone()];
            if *scale == f64::NEG_INFINITY {
                values.fill(T::zero());
                continue;
            }
            if *scale < top {
                let weight = (*scale - top).exp();
                plain &= weight >= least;
                numeric::affine(isa, values, T::narrow(weight), &[]);
            }
            plain &= !program.facts().logarithms || numeric::min_abs(isa, values).widen() >= least;
        }
        (top, plain)
    }

    /// φ ← φ + ε: for keys as they are, for queries relative to the largest feature.
    fn add_epsilon(&mut self, side: Side, i: usize, epsilon: f64) {
        let row = self.features.row_mut(i);
        let scale = &mut self.scales[i];
        let own = match side {
            Side::X => -numeric::max_abs(Isa::best(), row.values).widen().ln(),
            Side::Y => *scale,
        };
        // Relative to e^top all are at most 1 + ε.
        let top = own.max(0.0);
        let (keep, add) = (T::narrow((own - top).exp()), T::narrow(epsilon * (-top).exp()));
        row.values.iter_mut().for_each(|v| *v = *v * keep + add);
        *scale = if side == Side::X { 0.0 } else { top };
        self.plain[i] = scale.is_finite() && row.values.iter().all(|v| v.is_finite());
    }

    /// Makes row `i` a token without features.
    pub fn clear_row(&mut self, i: usize) {
        self.features.row_mut(i).values.fill(T::zero());
        (self.scales[i], self.plain[i]) = (f64::NEG_INFINITY, true);
    }

    /// The features of row `i` by their logarithms.
    pub fn log_row(
        &mut self,
        program: &Program<T>,
        side: Side,
        i: usize,
        scratch: &mut Scratch<T>,
        row: &mut LogRow,
    ) {
        if self.plain[i] {
            return row.scaled(self.row(i), self.scales[i]);
        }
        row.logs.clear();
        row.factors.clear();
        let (d, form) = (program.facts().input_dim, program.best_form());
        if self.logs.is_none() {
            let mut logs = std::mem::take(&mut self.spare);
            if let Ok(points) = ArrayView2::from_shape((self.len(), d), &self.points) {
                logs.fill(program, (side, form), points, scratch);
            }
            self.logs = Some(logs);
        }
        let Some(logs) = &self.logs else { return };
        let features = logs.row(i);
        for (columns, scale) in program.blocks().iter().zip(features.log_scales) {
            let values = &features.values[columns.clone()];
            let there = *scale != f64::NEG_INFINITY;
            match form {
                _ if !there => {
                    row.logs.extend(values.iter().map(|_| f64::NEG_INFINITY));
                    row.factors.extend(values.iter().map(|_| 0.0));
                }
                Form::Logarithms => {
                    row.logs.extend(values.iter().map(|v| v.widen() + scale));
                    row.factors.extend(features.signs[columns.clone()].iter().map(|sign| sign.widen()));
                }
                Form::Values => {
                    row.logs.extend(values.iter().map(|_| *scale));
                    row.factors.extend(values.iter().map(|v| v.widen()));
                }
            }
        }
    }
}
