//! [`Response`] from targets: labels, probabilities or counts.

use ndarray::{Array1, Array2, Axis};

use super::{Glm, GlmLoss, Response};
use crate::error::{Error, Result, check_finite, check_size};
use crate::{Real, Targets};

/// The largest difference from 1 of the sum of a row of probabilities.
const ROUNDING: f64 = 1e-6;

/// The targets of rows, before the classes that occur are known.
#[derive(Debug)]
pub(super) struct Given {
    /// The targets, n × 1, or n × K for K classes.
    y: Array2<f64>,
    weights: Array1<f64>,
}

impl Given {
    /// The targets of `rows` rows in the form that the model needs.
    pub fn new<T: Real>(model: &Glm<T>, targets: &Targets<'_, T>, rows: usize) -> Result<Self> {
        check_size("the number of rows of targets", rows, targets.nrows())?;
        if model.classes == 0
            && let Some(counts) = targets.counts()?
        {
            return Given::new(model, &counts, rows);
        }
        let single = model.classes == 0 || (targets.ncols() == 1 && !targets.are_labels());
        if single && model.classes > 2 {
            check_size("the number of columns of targets", model.classes, targets.ncols())?;
        }
        let rows_of = targets.rows(if single { 1 } else { model.classes })?;
        if rows_of.precisions().is_some() {
            return Err(Error::Unsupported { what: "precisions of a loss that is not a square" });
        }
        let (columns, weights) = (&rows_of.columns, rows_of.weights());
        let expected = if single { 1 } else { model.classes };
        check_size("the number of columns of targets", expected, columns.ncols())?;
        check_finite("the targets", columns)?;
        let weights = weights.map_or_else(|| Array1::ones(rows), |weights| weights.to_owned());
        let given = Given { y: columns.mapv(Real::widen), weights };
        given.check(model.loss)?;
        Ok(given)
    }

    /// Rejects targets outside the domain of the loss.
    fn check(&self, loss: GlmLoss) -> Result<()> {
        let wrong =
            |row: usize, value: f64, domain| Err(Error::Entry { what: "the targets", row, value, domain });
        let several = self.y.ncols() > 1;
        for (i, row) in self.y.rows().into_iter().enumerate() {
            for y in row {
                match loss {
                    GlmLoss::Poisson if *y < 0.0 => return wrong(i, *y, "not negative"),
                    GlmLoss::Logistic if !(0.0..=1.0).contains(y) => return wrong(i, *y, "from 0 to 1"),
                    GlmLoss::SquaredHinge if *y != 0.0 && *y != 1.0 => return wrong(i, *y, "0 or 1"),
                    _ => {}
                }
            }
            if several && (row.sum() - 1.0).abs() > ROUNDING {
                return wrong(i, row.sum(), "probabilities that add up to 1");
            }
        }
        Ok(())
    }

    /// The classes that occur, ascending; empty for counts.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) if no row has a weight.
    pub fn present<T: Real>(&self, model: &Glm<T>) -> Result<Vec<usize>> {
        if self.weights.sum() <= 0.0 {
            return Err(Error::NoData { what: "a generalised linear model" });
        }
        let total = |class: usize| -> f64 {
            let share = |i: usize| match self.y.ncols() {
                1 if class == 0 => 1.0 - self.y[[i, 0]],
                1 => self.y[[i, 0]],
                _ => self.y[[i, class]],
            };
            (0..self.weights.len()).map(|i| self.weights[i] * share(i)).sum()
        };
        Ok((0..model.classes).filter(|class| total(*class) > 0.0).collect())
    }

    /// The response with a column for each class that is in the model.
    ///
    /// # Errors
    /// [`Entry`](Error::Entry) with the first row whose class is not in the model.
    pub fn response<T: Real>(self, model: &Glm<T>) -> Result<Response> {
        let Given { y, weights } = self;
        if y.ncols() > 1 && model.present.len() < model.classes {
            let inside = |i: usize| model.present.iter().map(|class| y[[i, *class]]).sum::<f64>();
            let outside = |i: &usize| weights[*i] > 0.0 && inside(*i) < 1.0 - ROUNDING;
            if let Some(row) = (0..y.nrows()).find(outside) {
                let domain = "of classes that are in the model";
                return Err(Error::Entry { what: "the labels", row, value: inside(row), domain });
            }
        }
        let y = match (y.ncols(), &model.present[..]) {
            (1, _) => y,
            (_, [_, larger]) => y.select(Axis(1), &[*larger]),
            (_, present) => y.select(Axis(1), present),
        };
        let sign = |y: f64| 2.0 * y - 1.0;
        let y = if model.loss == GlmLoss::SquaredHinge { y.mapv(sign) } else { y };
        Ok(Response { y: y.as_standard_layout().into_owned(), weights })
    }
}
