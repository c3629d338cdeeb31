//! The stored forms of models and sums, checked when they are read.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::sample::{ClassSample, WeightedRows};
use super::stream::StreamSums;
use super::sums::pairs;
use super::{Glm, GlmLoss, GlmStream, GlmSums, Ridge};
use crate::Real;
use crate::reduce::StoredGramIntake;
use crate::sealed::{sealed, sealed_fields};

sealed_fields! {
    Glm<T>, T,
    #[serde(rename = "Glm", bound = "")]
    struct StoredGlm {
        linear: Ridge<T>,
        loss: GlmLoss,
        intercept: bool,
        classes: usize,
        present: Vec<usize>,
    }
}

impl<T: Real> TryFrom<StoredGlm<T>> for Glm<T> {
    type Error = &'static str;

    fn try_from(stored: StoredGlm<T>) -> Result<Self, &'static str> {
        let StoredGlm { linear, loss, intercept, classes, present } = stored;
        let suits = match loss {
            GlmLoss::Logistic => classes >= 2,
            GlmLoss::Poisson => classes == 0,
            GlmLoss::SquaredHinge => classes == 2,
        };
        let ascending = present.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = present.iter().all(|class| *class < classes) && present.is_empty() == (classes == 0);
        if !(suits && ascending && inside) {
            return Err("classes that do not suit the loss");
        }
        let values = if present.len() > 2 { present.len() } else { 1 };
        if linear.intercepts.len() != values {
            return Err("another number of decision values than that of the classes");
        }
        if !linear.map.facts().symmetric {
            return Err("a map that is not symmetric");
        }
        Ok(Glm { linear, loss, intercept, classes, present })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "GlmSums", bound = "")]
struct StoredGlmSums<T: Real> {
    model: Glm<T>,
    intakes: Vec<StoredGramIntake<T>>,
}

sealed!(GlmSums<T>, StoredGlmSums<T>, T, [T: Real]);

impl<T: Real> From<&GlmSums<T>> for StoredGlmSums<T> {
    fn from(GlmSums { model, intakes }: &GlmSums<T>) -> Self {
        StoredGlmSums { model: model.clone(), intakes: intakes.iter().map(Into::into).collect() }
    }
}

impl<T: Real> TryFrom<StoredGlmSums<T>> for GlmSums<T> {
    type Error = String;

    fn try_from(stored: StoredGlmSums<T>) -> Result<Self, String> {
        let model = stored.model;
        let empty = GlmSums::at(&model).map_err(|error| error.to_string())?;
        if stored.intakes.len() != pairs(model.values()).len() {
            return Err("another number of sums than that of the pairs of classes".into());
        }
        let mut intakes = Vec::new();
        for (stored, empty) in stored.intakes.into_iter().zip(&empty.intakes) {
            let intake: crate::reduce::GramIntake<T> = stored.try_into()?;
            let mut joined = empty.clone();
            joined.merge_sums(intake.sums()).map_err(|error| error.to_string())?;
            intakes.push(intake);
        }
        let alike = |intake: &crate::reduce::GramIntake<T>| {
            intake.sums().row_ranges() == intakes[0].sums().row_ranges() && intake.next() == intakes[0].next()
        };
        if !intakes.iter().all(alike) {
            return Err("sums of different rows".into());
        }
        Ok(GlmSums { model, intakes })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "GlmStream", bound = "")]
struct StoredGlmStream<T: Real> {
    model: Glm<T>,
    #[serde(with = "crate::exact")]
    lambda: f64,
    #[serde(with = "crate::exact")]
    matrix: Array2<f64>,
    #[serde(with = "crate::exact")]
    right: Vec<f64>,
    #[serde(with = "crate::exact")]
    smoothing: Vec<f64>,
    rows: u64,
    pending: StoredWeightedRows,
    samples: Vec<StoredSample>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Rows")]
struct StoredWeightedRows {
    #[serde(with = "crate::exact")]
    points: Vec<f64>,
    #[serde(with = "crate::exact")]
    y: Vec<f64>,
    #[serde(with = "crate::exact")]
    weights: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Sample")]
struct StoredSample {
    rows: StoredWeightedRows,
    numbers: Vec<u64>,
    #[serde(with = "crate::exact")]
    eta: Vec<f64>,
    count: u64,
}

sealed!(GlmStream<T>, StoredGlmStream<T>, T, [T: Real]);

impl<T: Real> From<&GlmStream<T>> for StoredGlmStream<T> {
    fn from(stream: &GlmStream<T>) -> Self {
        let GlmStream { model, lambda, sums, pending, samples, .. } = stream;
        StoredGlmStream {
            model: model.clone(),
            lambda: *lambda,
            matrix: sums.matrix.clone(),
            right: sums.right.to_vec(),
            smoothing: sums.smoothing.to_vec(),
            rows: sums.rows,
            pending: pending.into(),
            samples: samples.iter().map(Into::into).collect(),
        }
    }
}

impl<T: Real> From<&WeightedRows<T>> for StoredWeightedRows {
    fn from(WeightedRows { points, y, weights }: &WeightedRows<T>) -> Self {
        let points = points.iter().map(|v| v.widen()).collect();
        StoredWeightedRows { points, y: y.clone(), weights: weights.clone() }
    }
}

impl<T: Real> From<&ClassSample<T>> for StoredSample {
    fn from(ClassSample { rows, numbers, eta, count }: &ClassSample<T>) -> Self {
        StoredSample { rows: rows.into(), numbers: numbers.clone(), eta: eta.clone(), count: *count }
    }
}

impl<T: Real> TryFrom<StoredGlmStream<T>> for GlmStream<T> {
    type Error = String;

    fn try_from(stored: StoredGlmStream<T>) -> Result<Self, String> {
        let StoredGlmStream { model, lambda, matrix, right, smoothing, rows, pending, samples } = stored;
        let empty = GlmStream::new(&model, lambda).map_err(|error| error.to_string())?;
        let size = empty.sums.right.len();
        let fits = matrix.dim() == (size, size) && [&right, &smoothing].iter().all(|sums| sums.len() == size);
        if !fits || samples.len() != empty.samples.len() {
            return Err("sums of another shape than that of the model".into());
        }
        if !matrix.iter().chain(&right).chain(&smoothing).all(|v| v.is_finite()) {
            return Err("sums that are not finite".into());
        }
        let shape = [model.map().dim(), model.values()];
        let samples: Vec<ClassSample<T>> =
            samples.into_iter().map(|sample| sample.checked(shape)).collect::<Result<_, _>>()?;
        let total = samples.iter().try_fold(0u64, |total, sample| total.checked_add(sample.count));
        if total != Some(rows) {
            return Err("samples of another number of rows".into());
        }
        let sums = StreamSums { matrix, right: right.into(), smoothing: smoothing.into(), rows };
        Ok(GlmStream { sums, pending: pending.checked(shape)?, samples, ..empty })
    }
}

impl StoredWeightedRows {
    /// The rows, of `d` coordinates and `values` responses.
    fn checked<T: Real>(self, [d, values]: [usize; 2]) -> Result<WeightedRows<T>, String> {
        let StoredWeightedRows { points, y, weights } = self;
        let n = weights.len();
        if Some(points.len()) != n.checked_mul(d) || Some(y.len()) != n.checked_mul(values) {
            return Err("rows of another shape than that of the model".into());
        }
        let points: Vec<T> = points.into_iter().map(T::narrow).collect();
        let finite = points.iter().all(|v| v.is_finite()) && y.iter().all(|v| v.is_finite());
        if !finite || !weights.iter().all(|weight| weight.is_finite() && *weight > 0.0) {
            return Err("rows that are not finite or have no weight".into());
        }
        Ok(WeightedRows { points, y, weights })
    }
}

impl StoredSample {
    fn checked<T: Real>(self, shape: [usize; 2]) -> Result<ClassSample<T>, String> {
        let StoredSample { rows, numbers, eta, count } = self;
        let (rows, n) = (rows.checked(shape)?, numbers.len());
        let fits = rows.len() == n && Some(eta.len()) == n.checked_mul(shape[1]);
        if !fits || (n as u64) > count || (n == 0) != (count == 0) || !eta.iter().all(|v| v.is_finite()) {
            return Err("a sample whose parts do not fit".into());
        }
        Ok(ClassSample { rows, numbers, eta, count })
    }
}
