//! [`Records`]: what gradients with respect to the parameters of maps are made of, row by row, beside those of tokens.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayViewMut2, Axis, s};

use super::super::input::{Numbers, Reading};
use crate::Real;
use crate::engine::{ExponentSums, Program, Side, exponent_sums, sums_of_logarithms, takes_logarithms};

/// Rows of what is recorded of tokens.
pub(in super::super) struct Record<'a, T> {
    /// Cotangents of features, or of their logarithms where the map takes these; without columns for pairs with exact weights, which have
    /// no features. Zeros of what has no part.
    pub cotangents: ArrayViewMut2<'a, T>,
    /// Points times gradients with respect to points, coordinate by coordinate.
    pub along: ArrayViewMut2<'a, f64>,
}

/// What is recorded of some tokens.
pub(super) struct Records<T> {
    cotangents: Array2<T>,
    along: Array2<f64>,
}

/// What the parameters of a map have from one head: derivatives with respect to exponents, and the negative logarithmic derivatives
/// with respect to lengthscales.
pub(super) struct Parameters<'p, T: Real> {
    program: &'p Program<T>,
    pub sums: ExponentSums,
    pub along: Array1<f64>,
}

impl<'a, T: Real> Record<'a, T> {
    /// Some rows, for as long as `self` is borrowed.
    pub fn rows(&mut self, rows: Range<usize>) -> Record<'_, T> {
        Record {
            cotangents: self.cotangents.slice_axis_mut(Axis(0), rows.clone().into()),
            along: self.along.slice_axis_mut(Axis(0), rows.into()),
        }
    }

    /// The first rows and the others.
    pub fn split(self, count: usize) -> (Box<Self>, Box<Self>) {
        let (first, second) = self.cotangents.split_at(Axis(0), count);
        let (own, rest) = self.along.split_at(Axis(0), count);
        let of = |cotangents, along| Box::new(Record { cotangents, along });
        (of(first, own), of(second, rest))
    }

    /// Takes in the cotangents of row `i`.
    pub fn put(&mut self, i: usize, cotangents: &[T]) {
        self.cotangents.row_mut(i).iter_mut().zip(cotangents).for_each(|(own, c)| *own = *c);
    }

    /// Takes in the gradient with respect to the point of row `i`, a token that `reading` makes a point.
    pub fn put_along(&mut self, reading: &Reading, token: Numbers<'_, T>, i: usize, of_point: &[f64]) {
        let mut point = Vec::with_capacity(of_point.len());
        reading.points(token, &mut point);
        let rows = self.along.row_mut(i).into_iter().zip(point).zip(of_point);
        rows.for_each(|((own, x), gradient)| *own = x.widen() * gradient);
    }
}

impl<T: Real> Records<T> {
    /// Zeros, of so many tokens, dimensions and features.
    pub fn new(tokens: usize, d: usize, features: usize) -> Self {
        Records { cotangents: Array2::zeros((tokens, features)), along: Array2::zeros((tokens, d)) }
    }

    pub fn all(&mut self) -> Box<Record<'_, T>> {
        Box::new(Record { cotangents: self.cotangents.view_mut(), along: self.along.view_mut() })
    }

    /// The rows from the last to the first.
    pub fn reversed(&mut self) -> Box<Record<'_, T>> {
        let backwards = s![..;-1, ..];
        let (cotangents, along) = (self.cotangents.slice_mut(backwards), self.along.slice_mut(backwards));
        Box::new(Record { cotangents, along })
    }
}

impl<'p, T: Real> Parameters<'p, T> {
    /// Of a map without a part in anything; `None` if its parameters have no gradients.
    pub fn new(program: &'p Program<T>, side: Side) -> Option<Self> {
        let d = program.facts().input_dim;
        let none = (Array2::zeros((0, d)), Array2::zeros((0, program.width())));
        let sums = exponent_sums(program, side, none.0.view(), none.1.view())?;
        Some(Parameters { program, sums, along: Array1::zeros(d) })
    }

    /// Adds what was recorded of queries or keys, tokens that `reading` makes points.
    pub fn add(&mut self, side: Side, reading: &Reading, tokens: Numbers<'_, T>, records: &Records<T>) {
        let Records { cotangents, along } = records;
        // From the first row to the last, whatever the layout.
        along.rows().into_iter().for_each(|row| self.along += &row);
        if cotangents.ncols() == 0 {
            return;
        }
        let mut points = Vec::with_capacity(along.len());
        reading.points(tokens, &mut points);
        let mut points = crate::numeric::matrix_of(along.nrows(), along.ncols(), points);
        // What has no part has none either where it is not a number.
        for (mut point, cotangents) in points.rows_mut().into_iter().zip(cotangents.rows()) {
            if cotangents.iter().all(|c| *c == T::zero()) {
                point.fill(T::zero());
            }
        }
        let sums = match takes_logarithms(self.program) {
            true => sums_of_logarithms,
            false => exponent_sums,
        };
        if let Some(sums) = sums(self.program, side, points.view(), cotangents.view()) {
            self.sums.add(&sums);
        }
    }

    /// Adds those of another head with the same map.
    pub fn merge(&mut self, other: &Parameters<'_, T>) {
        self.sums.add(&other.sums);
        self.along += &other.along;
    }
}
