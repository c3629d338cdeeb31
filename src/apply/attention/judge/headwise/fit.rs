//! [`Fit`]: how far outputs, drawn towards the mean of the values by a share, are from exact ones.

use ndarray::{Array4, ArrayView1, ArrayView3, Zip};

use super::super::super::input::{Attended, Heads, SeenValues, TokenElement};
use super::super::super::linear::{Outputs, Shrinking};
use crate::Real;
use crate::error::{Error, Result};

/// Sums over queries of products of e − o and v̄ − o, for the exact output e, an estimate o and the mean v̄ of the values that a query sees;
/// relative to the square of the largest number so far.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Fit {
    largest: f64,
    /// Σ ‖e − o‖².
    errors: f64,
    /// Σ (e − o)·(v̄ − o).
    products: f64,
    /// Σ ‖v̄ − o‖².
    squares: f64,
    /// Σ ‖e‖².
    outputs: f64,
    queries: usize,
    not_finite: Option<usize>,
}

impl Fit {
    /// Adds the queries of some heads of queries, as rows of outputs.
    pub fn add_rows<T: Real>(&mut self, [exact, own, means]: [ArrayView3<'_, T>; 3]) {
        Zip::from(exact.rows()).and(own.rows()).and(means.rows()).for_each(|exact, own, mean| {
            self.add(exact, own, mean);
        });
    }

    fn add<T: Real>(&mut self, exact: ArrayView1<'_, T>, own: ArrayView1<'_, T>, mean: ArrayView1<'_, T>) {
        let rows = || exact.iter().zip(own).zip(mean).map(|((e, o), m)| [e, o, m].map(|v| v.widen()));
        let largest = rows().flatten().fold(self.largest, |top, v| top.max(v.abs()));
        self.queries += 1;
        if !rows().flatten().all(f64::is_finite) {
            self.not_finite = self.not_finite.or(Some(self.queries - 1));
        } else if largest > 0.0 {
            self.rescale(largest);
            for [e, o, m] in rows().map(|row| row.map(|v| v / largest)) {
                self.errors += (e - o) * (e - o);
                self.products += (e - o) * (m - o);
                self.squares += (m - o) * (m - o);
                self.outputs += e * e;
            }
        }
    }

    fn rescale(&mut self, largest: f64) {
        let keep = if self.largest == 0.0 { 0.0 } else { (self.largest / largest).powi(2) };
        for sum in [&mut self.errors, &mut self.products, &mut self.squares, &mut self.outputs] {
            *sum *= keep;
        }
        self.largest = largest;
    }

    /// The sums of both.
    pub fn plus(mut self, mut other: Fit) -> Self {
        let largest = self.largest.max(other.largest);
        if largest > 0.0 {
            self.rescale(largest);
            other.rescale(largest);
        }
        self.errors += other.errors;
        self.products += other.products;
        self.squares += other.squares;
        self.outputs += other.outputs;
        self.not_finite = self.not_finite.or(other.not_finite.map(|row| row + self.queries));
        self.queries += other.queries;
        self
    }

    /// The sums of outputs that are drawn already, with this share.
    pub fn at(self, share: f64) -> Self {
        Fit { errors: self.square(share), products: 0.0, squares: 0.0, ..self }
    }

    /// The share that errs least.
    pub fn share(&self) -> Result<f64> {
        match self.not_finite {
            Some(row) => Err(Error::NotFinite { what: "the outputs of attention", row, column: None }),
            None if self.squares > 0.0 => Ok((self.products / self.squares).clamp(0.0, 1.0)),
            None => Ok(0.0),
        }
    }

    /// The squared error with a share, relative to the square of the largest number.
    fn square(&self, share: f64) -> f64 {
        (self.errors + share * (share * self.squares - 2.0 * self.products)).max(0.0)
    }

    /// Σ ‖o − e‖² with a share, over the square of `unit`, which is not far below the largest number.
    pub fn square_over(&self, share: f64, unit: f64) -> f64 {
        if self.largest == 0.0 { 0.0 } else { (self.largest / unit).powi(2) * self.square(share) }
    }

    /// The largest number.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// The error with a share, relative to the norm of the exact outputs; 0 if nothing errs, and infinite if an output is not finite.
    pub fn error(&self, share: f64) -> f64 {
        if self.not_finite.is_some() {
            return f64::INFINITY;
        }
        let square = self.square(share);
        if square == 0.0 { 0.0 } else { (square / self.outputs).sqrt() }
    }
}

/// The mean of the values that each query sees, in the shape of outputs.
pub(in super::super) fn means<T: Real, E: TokenElement<T>>(heads: &Heads<'_, E>, causal: bool) -> Array4<T> {
    let mut means = Array4::zeros(heads.output_dim());
    let parts = heads.parts_of_queries(means.view_mut());
    for (job, parts) in heads.jobs().into_iter().zip(parts) {
        let outputs = parts.into_iter().map(|rows| Outputs { rows, normalised: true }).collect();
        if let Some(shrinking) = Shrinking::of_job(1.0, &job, causal) {
            shrinking.apply(&mut SeenValues::default(), outputs, &[]);
        }
    }
    means
}

/// Outputs in which queries without an output of their own have the mean, as they do if outputs are drawn towards it.
pub(in super::super) fn completed<T: Real>(attended: Attended<T>, means: &Array4<T>) -> Array4<T> {
    let Attended { mut output, non_positive, .. } = attended;
    for [b, h, i] in non_positive {
        let mean = means.slice(ndarray::s![b, h, i, ..]);
        output.slice_mut(ndarray::s![b, h, i, ..]).assign(&mean);
    }
    output
}
