//! [`Tokens`]: queries or keys of a run of tokens as points, and their features.

use ndarray::ArrayView2;

use super::chunk::Setup;
use super::span::least;
use crate::Real;
use crate::data::token_scale::TokenScale;
use crate::engine::{Batch, Form, Plan, Program, Scratch, Side};
use crate::numeric::{self, Isa, matrix_view, with_length};
use crate::reduce::LogRow;

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
    /// Without ε.
    pub fn new(scale: TokenScale) -> Self {
        Reading { factor: scale.factor, unit: scale.unit, epsilon: 0.0 }
    }

    /// The points of some tokens, in row-major order.
    pub fn points<T: Real, E: Element<T>>(&self, x: ArrayView2<'_, E>, points: &mut Vec<T>) {
        points.clear();
        for row in x.rows() {
            if self.unit {
                let wide = row.iter().map(|v| v.convert().widen());
                points.extend(with_length(wide, self.factor).map(T::narrow));
            } else {
                let factor = T::narrow(self.factor);
                match row.to_slice() {
                    Some(row) => points.extend(row.iter().map(|v| v.convert() * factor)),
                    None => points.extend(row.iter().map(|v| v.convert() * factor)),
                }
            }
        }
    }
}

/// Whether all features of a map are exponentials that this crate computes, none of them a user's.
fn is_own<T: Real>(program: &Program<T>) -> bool {
    let mut own = program.facts().logarithms;
    program.plan().each_leaf(&mut |leaf| own &= !matches!(leaf, Plan::Foreign(..)));
    own
}

/// Divides values by a power of two so that the largest lies between ½ and 1, unless it is already between ¼ and 1; returns the
/// logarithm of the divisor.
fn level<T: Real>(values: &mut [T]) -> f64 {
    let largest = numeric::max_abs(Isa::best(), values).widen();
    if largest == 0.0 || !largest.is_finite() || (0.25..=1.0).contains(&largest) {
        return 0.0;
    }
    let (_, exponent) = libm::frexp(largest);
    values.iter_mut().for_each(|v| *v = T::narrow(libm::ldexp(v.widen(), -exponent)));
    f64::from(exponent) * std::f64::consts::LN_2
}

/// Queries or keys of a run of tokens.
#[derive(Debug, Default)]
pub(super) struct Tokens<T> {
    points: Vec<T>,
    features: Batch<T>,
    /// Features in the map's best form, computed when a row first needs them.
    logs: Option<Batch<T>>,
    spare: Batch<T>,
    /// ln of each row's scale: features are e^scale times what the batch holds, in all blocks.
    pub scales: Vec<f64>,
    /// Whether no feature of a row has been lost to rounding, so that the row may be multiplied in `T`.
    pub plain: Vec<bool>,
    /// Whether a feature of a row is 0.
    pub gaps: Vec<bool>,
    /// ε of the reading.
    epsilon: f64,
}

impl<T: Real> Tokens<T> {
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether all rows may be multiplied in `T`.
    pub fn all_plain(&self) -> bool {
        self.plain.iter().all(|plain| *plain)
    }

    /// All values, tokens × D.
    pub fn values(&self) -> &[T] {
        self.features.values()
    }

    /// The point of row `i`.
    pub fn point(&self, i: usize) -> &[T] {
        let d = self.points.len() / self.len().max(1);
        &self.points[i * d..(i + 1) * d]
    }

    pub fn row(&self, i: usize) -> &[T] {
        self.features.row(i).values
    }

    /// The features of the tokens `x`.
    pub fn fill<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        side: Side,
        x: ArrayView2<'_, E>,
        scratch: &mut Scratch<T>,
    ) {
        let Setup { program, reading, .. } = setup;
        reading.points(x.view(), &mut self.points);
        if let Some(logs) = self.logs.take() {
            self.spare = logs;
        }
        self.scales.clear();
        self.plain.clear();
        self.gaps.clear();
        self.epsilon = reading.epsilon;
        let points = matrix_view(x.nrows(), x.ncols(), &self.points);
        self.features.fill(program, side, Form::Values, points.into(), scratch);
        let own = is_own(program);
        for i in 0..x.nrows() {
            self.flatten(program, own, i);
            if reading.epsilon > 0.0 {
                self.add_epsilon(side, i);
            }
        }
    }

    /// Gives row `i` one scale for all its blocks, and looks for features that are 0 or small. `own` says that features are
    /// [exponentials of this crate](is_own): at most 1, and not all far below it.
    fn flatten(&mut self, program: &Program<T>, own: bool, i: usize) {
        let isa = Isa::best();
        let row = self.features.row_mut(i);
        let mut scale = row.log_scales.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut plain, mut gaps, mut small) = (true, false, T::infinity());
        for (columns, own_scale) in program.blocks().iter().zip(&*row.log_scales) {
            let values = &mut row.values[columns.clone()];
            if *own_scale == f64::NEG_INFINITY {
                values.fill(T::zero());
                gaps |= !values.is_empty();
                continue;
            }
            if *own_scale < scale {
                let weight = (*own_scale - scale).exp();
                plain &= weight >= least::<T>(true);
                numeric::affine(isa, values, T::narrow(weight), &[]);
            }
            small = small.min(numeric::min_abs(isa, values));
        }
        if row.log_scales.iter().any(|scale| scale.is_nan()) {
            (scale, plain) = (f64::NAN, false);
        } else if own {
            plain &= small.widen() >= least::<T>(gaps);
        } else if scale > f64::NEG_INFINITY {
            scale += level(row.values);
            gaps |= small == T::zero();
            plain &= row.values.iter().all(|v| *v == T::zero() || v.widen().abs() >= least::<T>(true));
            // All features are 0.
            scale = if row.values.iter().all(|v| *v == T::zero()) { f64::NEG_INFINITY } else { scale };
        }
        self.scales.push(scale);
        self.plain.push(plain);
        self.gaps.push(gaps);
    }

    /// φ ← φ + ε for keys, φ + ε max φ for queries.
    fn add_epsilon(&mut self, side: Side, i: usize) {
        let ln = self.ln_epsilon(side, i);
        let (row, scale) = (self.features.row_mut(i), &mut self.scales[i]);
        let top = scale.max(ln);
        if top.is_finite() {
            let (keep, add) = (T::narrow((*scale - top).exp()), T::narrow((ln - top).exp()));
            row.values.iter_mut().for_each(|v| *v = *v * keep + add);
            self.plain[i] &= numeric::min_abs(Isa::best(), row.values).widen() >= least::<T>(false);
            // A row that is not plain is computed again from logarithms, without this scale.
            (*scale, self.gaps[i]) = (top, false);
        }
    }

    /// ln of what is added to the features of row `i`.
    fn ln_epsilon(&self, side: Side, i: usize) -> f64 {
        match side {
            Side::X => {
                self.epsilon.ln() + self.scales[i] + numeric::max_abs(Isa::best(), self.row(i)).widen().ln()
            }
            Side::Y => self.epsilon.ln(),
        }
    }

    /// Makes all features of row `i` 0.
    pub fn clear_row(&mut self, i: usize) {
        self.features.row_mut(i).values.fill(T::zero());
        (self.scales[i], self.plain[i], self.gaps[i]) = (f64::NEG_INFINITY, true, true);
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
        row.clear();
        let (d, form) = (program.facts().input_dim, program.best_form());
        if self.logs.is_none() {
            let mut logs = std::mem::take(&mut self.spare);
            let points = matrix_view(self.len(), d, &self.points);
            logs.fill(program, side, form, points.into(), scratch);
            self.logs = Some(logs);
        }
        let Some(logs) = &self.logs else { return };
        let features = logs.row(i);
        for (columns, scale) in program.blocks().iter().zip(features.log_scales) {
            let values = &features.values[columns.clone()];
            match form {
                _ if *scale == f64::NEG_INFINITY => values.iter().for_each(|_| row.push(*scale, 0.0)),
                Form::Values => values.iter().for_each(|v| row.push(*scale, v.widen())),
                Form::Logarithms => {
                    let signs = &features.signs[columns.clone()];
                    values.iter().zip(signs).for_each(|(v, sign)| row.push(v.widen() + scale, sign.widen()));
                }
            }
        }
        if self.epsilon > 0.0 {
            row.add(self.epsilon.ln() + if side == Side::X { row.top() } else { 0.0 });
        }
    }
}
