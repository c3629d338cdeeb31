//! [`Residuals`]: what the backward pass leaves of tokens for the gradients with respect to the parameters of maps.

use ndarray::{Array1, Array2, ArrayViewMut2, s};

use super::super::features::Setup;
use super::super::input::{Numbers, Reading, SplitRows};
use crate::Real;
use crate::engine::{ExponentSums, Program, Side, exponent_sums, sums_of_logarithms, takes_logarithms};

/// Rows of [`Residuals`], to be written.
pub(super) struct ResidualRows<'a, T> {
    /// Cotangents of features, or of their logarithms where the map takes these, tokens × D; without columns for pairs with exact
    /// weights, which have no features. Tokens without a part in any output have zeros.
    pub cotangents: ArrayViewMut2<'a, T>,
    /// x ∂/∂x for each coordinate x of a point, tokens × d.
    pub slopes: ArrayViewMut2<'a, f64>,
}

/// Residuals of some tokens: cotangents and slopes as in [`ResidualRows`].
pub(super) struct Residuals<T> {
    cotangents: Array2<T>,
    slopes: Array2<f64>,
}

/// The gradients with respect to the parameters of a map, summed over the tokens of one head.
pub(super) struct Parameters<'p, T: Real> {
    program: &'p Program<T>,
    /// Derivatives with respect to exponents.
    pub sums: ExponentSums,
    /// −ℓ ∂/∂ℓ for the lengthscale ℓ of each coordinate.
    pub slopes: Array1<f64>,
}

impl<T: Real> SplitRows for ResidualRows<'_, T> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        let ((first, second), (own, rest)) = (self.cotangents.split_rows(at), self.slopes.split_rows(at));
        (ResidualRows { cotangents: first, slopes: own }, ResidualRows { cotangents: second, slopes: rest })
    }
}

impl<T: Real> ResidualRows<'_, T> {
    /// Takes in the cotangents of row `i`.
    pub fn put(&mut self, i: usize, cotangents: &[T]) {
        self.cotangents.row_mut(i).iter_mut().zip(cotangents).for_each(|(own, c)| *own = *c);
    }

    /// Takes in the gradient with respect to the point of row `i`, a token that `reading` makes a point.
    pub fn put_slopes(&mut self, reading: &Reading, token: Numbers<'_, T>, i: usize, of_point: &[f64]) {
        let mut point = Vec::with_capacity(of_point.len());
        reading.points(token, &mut point);
        let rows = self.slopes.row_mut(i).into_iter().zip(point).zip(of_point);
        rows.for_each(|((own, x), gradient)| *own = x.widen() * gradient);
    }
}

impl<T: Real> Residuals<T> {
    /// Zeros, of so many tokens, dimensions and features.
    pub fn new(tokens: usize, d: usize, features: usize) -> Self {
        Residuals { cotangents: Array2::zeros((tokens, features)), slopes: Array2::zeros((tokens, d)) }
    }

    /// All rows.
    pub fn all(&mut self) -> ResidualRows<'_, T> {
        ResidualRows { cotangents: self.cotangents.view_mut(), slopes: self.slopes.view_mut() }
    }

    /// The rows from the last to the first.
    pub fn reversed(&mut self) -> ResidualRows<'_, T> {
        let backwards = s![..;-1, ..];
        let (cotangents, slopes) = (self.cotangents.slice_mut(backwards), self.slopes.slice_mut(backwards));
        ResidualRows { cotangents, slopes }
    }
}

impl<'p, T: Real> Parameters<'p, T> {
    /// Zeros for a map; `None` if its parameters have no gradients.
    pub fn new(program: &'p Program<T>, side: Side) -> Option<Self> {
        let d = program.facts().dim;
        let none = (Array2::zeros((0, d)), Array2::zeros((0, program.width())));
        let sums = exponent_sums(program, side, none.0.view(), none.1.view())?;
        Some(Parameters { program, sums, slopes: Array1::zeros(d) })
    }

    /// Adds the residuals of queries or keys, tokens that `reading` makes points.
    pub fn add(&mut self, side: Side, reading: &Reading, tokens: Numbers<'_, T>, residuals: &Residuals<T>) {
        let Residuals { cotangents, slopes } = residuals;
        // From the first row to the last, whatever the layout.
        slopes.rows().into_iter().for_each(|row| self.slopes += &row);
        if cotangents.ncols() == 0 {
            return;
        }
        let mut points = Vec::with_capacity(slopes.len());
        reading.points(tokens, &mut points);
        let mut points = crate::numeric::matrix_of(slopes.nrows(), slopes.ncols(), points);
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
        self.slopes += &other.slopes;
    }
}

/// Where residuals of tokens go, if the gradients of parameters are asked for.
pub(super) fn residuals<T: Real>(
    tokens: &Numbers<'_, T>,
    features: usize,
    parameters: &Option<&mut Parameters<'_, T>>,
) -> Option<Residuals<T>> {
    parameters.is_some().then(|| Residuals::new(tokens.nrows(), tokens.ncols(), features))
}

/// Adds residuals of tokens to the gradients of parameters, if these are asked for.
pub(super) fn add_residuals<T: Real>(
    setup: Setup<'_, T>,
    tokens: Numbers<'_, T>,
    residuals: &Option<Residuals<T>>,
    parameters: &mut Option<&mut Parameters<'_, T>>,
) {
    if let (Some(residuals), Some(parameters)) = (residuals, parameters) {
        parameters.add(setup.reading_side(), setup.reading, tokens, residuals);
    }
}
