//! The stored forms of models and sums, checked when they are read.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::sums::pairs;
use super::{Glm, GlmStream, GlmSums, Loss, Ridge};
use crate::Real;
use crate::reduce::StoredGramIntake;
use crate::sealed::{sealed, sealed_fields};

sealed_fields! {
    Glm<T>, T,
    #[serde(rename = "Glm", bound = "")]
    struct StoredGlm {
        linear: Ridge<T>,
        loss: Loss,
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
            Loss::Logistic => classes >= 2,
            Loss::Poisson => classes == 0,
            Loss::SquaredHinge => classes == 2,
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

sealed_fields! {
    GlmStream<T>, T,
    #[serde(rename = "GlmStream", bound = "")]
    struct StoredGlmStream {
        model: Glm<T>,
        #[serde(with = "crate::exact")]
        lambda: f64,
        #[serde(with = "crate::exact")]
        matrix: Array2<f64>,
        #[serde(with = "crate::exact")]
        right: Vec<f64>,
        #[serde(with = "crate::exact")]
        weight: f64,
    }
}

impl<T: Real> TryFrom<StoredGlmStream<T>> for GlmStream<T> {
    type Error = String;

    fn try_from(stored: StoredGlmStream<T>) -> Result<Self, String> {
        let StoredGlmStream { model, lambda, matrix, right, weight } = stored;
        let empty = GlmStream::new(&model, lambda).map_err(|error| error.to_string())?;
        if matrix.dim() != empty.matrix.dim() || right.len() != empty.right.len() {
            return Err("sums of another shape than that of the model".into());
        }
        let finite = matrix.iter().chain(&right).chain([&weight]).all(|v| v.is_finite());
        if !finite || weight < 0.0 {
            return Err("sums that are not finite".into());
        }
        Ok(GlmStream { matrix, right, weight, ..empty })
    }
}
