//! [`Tokens`]: queries or keys of a run of tokens as points, and their features.

use std::ops::Range;

use super::super::input::{KeyRun, Numbers};
use super::setup::Setup;
use crate::Real;
use crate::engine::{Batch, Form, MapPlan, Program, Scratch, Side};
use crate::numeric::special::largest;
use crate::numeric::{self, Isa, matrix_view};
use crate::reduce::{LogRow, Precision, least};

/// Whether all features of a map are exponentials that this crate computes, none of them a user's.
fn is_own<T: Real>(program: &Program<T>) -> bool {
    let mut own = program.facts().logarithms;
    program.plan().each_leaf(&mut |leaf| own &= !matches!(leaf, MapPlan::Foreign(..)));
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
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Tokens<T> {
    points: Vec<T>,
    features: Batch<T>,
    /// Features in the map's best form of the rows `logged`, computed when one of them first needs them.
    logs: Batch<T>,
    logged: Range<usize>,
    /// How well `T` holds the features of each row, in all blocks.
    precision: Vec<Precision>,
    /// ln of factors of the features, which are in the scales of `precision`; none if all factors are 1.
    shifts: Vec<f64>,
}

impl<T: Real> Tokens<T> {
    pub fn len(&self) -> usize {
        self.precision.len()
    }

    /// All features, tokens × D.
    pub fn features(&self) -> &[T] {
        &self.features.values()[..self.len() * self.width()]
    }

    /// D.
    pub fn width(&self) -> usize {
        self.features.width()
    }

    /// The features of row `i`.
    pub fn row(&self, i: usize) -> &[T] {
        self.features.row(i).values
    }

    /// How well `T` holds the features of row `i`.
    pub fn precision(&self, i: usize) -> Precision {
        self.precision[i]
    }

    /// ln of the scale of row `i` for gradients. A row of zero features counts with the scale 1, since its derivative is not zero; its
    /// scale is −∞ only if all blocks are absent.
    pub fn gradient_scale(&self, i: usize) -> f64 {
        let (scale, blocks) = (self.precision[i].scale, self.block_scales(i));
        let present = blocks.iter().any(|block| *block > f64::NEG_INFINITY);
        if scale == f64::NEG_INFINITY && present { 0.0 } else { scale }
    }

    /// The point of row `i`.
    pub fn point(&self, i: usize) -> &[T] {
        self.points_of(i..i + 1)
    }

    /// The points of some rows.
    pub fn points_of(&self, rows: Range<usize>) -> &[T] {
        let d = self.points.len() / self.len().max(1);
        &self.points[rows.start * d..rows.end * d]
    }

    /// The points of all rows.
    #[cfg(feature = "serde")]
    pub fn points(&self) -> &[T] {
        &self.points
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.points.clear();
        self.precision.clear();
        self.shifts.clear();
        self.logged = 0..0;
    }

    /// Reads the tokens `x`.
    pub fn fill(&mut self, setup: Setup<'_, T>, side: Side, x: Numbers<'_, T>, scratch: &mut Scratch<T>) {
        setup.reading.points(x, &mut self.points);
        self.lift(setup, side, x.nrows(), scratch);
    }

    /// Reads keys.
    pub fn read_keys(&mut self, setup: Setup<'_, T>, run: KeyRun<'_, T>, scratch: &mut Scratch<T>) {
        self.fill(setup, setup.summed_side(), run.keys, scratch);
        if let Some(shifts) = run.shifts {
            self.shift(shifts.iter().copied());
        }
    }

    /// Reads the points of tokens alone, without features.
    pub fn read_points(&mut self, setup: Setup<'_, T>, x: Numbers<'_, T>) {
        self.clear();
        setup.reading.points(x, &mut self.points);
        self.precision.resize(x.nrows(), Precision::NOTHING);
    }

    /// Reads tokens from their points.
    #[cfg(feature = "serde")]
    pub fn fill_points(&mut self, setup: Setup<'_, T>, side: Side, points: &[T], scratch: &mut Scratch<T>) {
        self.points.clear();
        self.points.extend_from_slice(points);
        self.lift(setup, side, points.len() / setup.program.facts().dim, scratch);
    }

    /// The features of `n` points.
    fn lift(&mut self, Setup { program, .. }: Setup<'_, T>, side: Side, n: usize, scratch: &mut Scratch<T>) {
        self.precision.clear();
        self.shifts.clear();
        self.logged = 0..0;
        let points = matrix_view(n, program.facts().dim, &self.points);
        self.features.fill(program, side, Form::Values, points.into(), scratch);
        let own = is_own(program);
        for i in 0..n {
            let precision = self.flatten(program, own, i);
            self.precision.push(precision);
        }
    }

    /// Appends row `i` of others, of the same map and side, to rows that were appended, of which there are never more than
    /// `most`.
    pub fn push(&mut self, other: &Self, i: usize, most: usize) {
        if self.precision.is_empty() {
            self.features.resize_like(&other.features, most);
        }
        self.features.row_mut(self.precision.len()).values.copy_from_slice(other.row(i));
        self.points.extend_from_slice(other.point(i));
        self.precision.push(other.precision(i));
        self.shifts.extend(other.shifts.get(i));
    }

    /// Multiplies the features of all rows by factors of these logarithms.
    pub fn shift(&mut self, shifts: impl IntoIterator<Item = f64>) {
        self.shifts.extend(shifts);
        for (precision, shift) in self.precision.iter_mut().zip(&self.shifts) {
            precision.scale += shift;
            precision.is_representable &= !shift.is_nan();
        }
    }

    /// ln of the scale of row `i` in each block of its values, as the map gives them.
    pub fn block_scales(&self, i: usize) -> &[f64] {
        self.features.row(i).log_scales
    }

    /// Gives row `i` one scale for all its blocks, and looks for features that are 0 or small. `own` says that features are
    /// [exponentials of this crate](is_own): at most 1, and not all far below it.
    fn flatten(&mut self, program: &Program<T>, own: bool, i: usize) -> Precision {
        let isa = Isa::best();
        let row = self.features.row_mut(i);
        let mut scale = largest(row.log_scales.iter().copied());
        let (mut is_representable, mut has_zeros, mut small) = (true, false, T::infinity());
        for (columns, own_scale) in program.blocks().iter().zip(&*row.log_scales) {
            let values = &mut row.values[columns.clone()];
            if *own_scale == f64::NEG_INFINITY {
                values.fill(T::zero());
                has_zeros |= !values.is_empty();
                continue;
            }
            if *own_scale < scale {
                let weight = (*own_scale - scale).exp();
                is_representable &= weight >= least::<T>(true);
                numeric::affine(isa, values, T::narrow(weight), &[]);
            }
            small = small.min(numeric::min_abs(isa, values));
        }
        if row.log_scales.iter().any(|scale| scale.is_nan()) {
            (scale, is_representable) = (f64::NAN, false);
        } else if own {
            is_representable &= small.widen() >= least::<T>(has_zeros);
        } else if scale > f64::NEG_INFINITY {
            scale += level(row.values);
            has_zeros |= small == T::zero();
            is_representable &=
                row.values.iter().all(|v| *v == T::zero() || v.widen().abs() >= least::<T>(true));
            // All features are 0.
            scale = if row.values.iter().all(|v| *v == T::zero()) { f64::NEG_INFINITY } else { scale };
        }
        Precision { scale, has_zeros, is_representable }
    }

    /// Makes all features of row `i` 0.
    pub fn clear_row(&mut self, i: usize) {
        self.features.row_mut(i).values.fill(T::zero());
        self.precision[i] = Precision::NOTHING;
    }

    /// The features of row `i` by their logarithms.
    pub fn log_row(
        &mut self,
        Setup { program, .. }: Setup<'_, T>,
        side: Side,
        i: usize,
        scratch: &mut Scratch<T>,
        row: &mut LogRow,
    ) {
        let Precision { scale, is_representable, .. } = self.precision[i];
        if is_representable {
            return row.scaled(self.row(i), scale);
        }
        row.clear();
        let (d, form) = (program.facts().dim, program.best_form());
        if !self.logged.contains(&i) {
            self.logged = i..self.len();
            let points = matrix_view(self.logged.len(), d, &self.points[i * d..]);
            self.logs.fill(program, side, form, points.into(), scratch);
        }
        let features = self.logs.row(i - self.logged.start);
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
        if let Some(shift) = self.shifts.get(i) {
            row.logs.iter_mut().for_each(|log| *log += shift);
        }
    }
}
