//! The stored forms of models that need a factorisation, checked when they are read.

use std::sync::Arc;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::calibration::ClassCalibration;
use super::landmarks::Landmarks;
use super::rotation::FeatureRotation;
use super::{Ridge, RidgeClassifier, RidgeGrid, RidgePosterior, RidgeStatistics};
use crate::Real;
use crate::sealed::{sealed, sealed_fields};

sealed_fields! {
    RidgeClassifier<T>, T,
    #[serde(rename = "RidgeClassifier", bound = "")]
    struct StoredClassifier {
        model: Ridge<T>,
        calibration: Option<ClassCalibration>,
        #[serde(with = "crate::exact", default)]
        threshold: Option<f64>,
    }
}

impl<T: Real> TryFrom<StoredClassifier<T>> for RidgeClassifier<T> {
    type Error = &'static str;

    fn try_from(stored: StoredClassifier<T>) -> Result<Self, &'static str> {
        let StoredClassifier { model, calibration, threshold } = stored;
        let classes = model.intercepts.len();
        if classes < 2 {
            return Err("a classifier of one target");
        }
        if calibration.as_ref().is_some_and(|calibration| !calibration.fits(classes)) {
            return Err("a calibration for another number of classes than the model's");
        }
        if threshold.is_some_and(|threshold| threshold.is_nan() || model.occurring().len() != 2) {
            return Err("a threshold that is NaN, or not between two classes");
        }
        Ok(RidgeClassifier { model, calibration, threshold, corrected: false })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "RidgePosterior", bound = "")]
struct StoredPosterior<T: Real> {
    model: Ridge<T>,
    #[serde(with = "crate::exact")]
    axes: Array2<f64>,
    #[serde(with = "crate::exact")]
    values: Vec<f64>,
    #[serde(with = "crate::exact")]
    mean_features: Vec<f64>,
    #[serde(with = "crate::exact")]
    lambdas: Vec<f64>,
    #[serde(with = "crate::exact")]
    noise: Vec<f64>,
    #[serde(with = "crate::exact")]
    mean: f64,
    #[serde(with = "crate::exact")]
    landmarks: Option<Array2<f64>>,
}

sealed!(RidgePosterior<T>, StoredPosterior<T>, T, [T: Real]);

impl<T: Real> From<&RidgePosterior<T>> for StoredPosterior<T> {
    fn from(posterior: &RidgePosterior<T>) -> Self {
        let RidgePosterior { model, rotation, values, lambdas, noise, mean, landmarks } = posterior;
        StoredPosterior {
            model: model.clone(),
            axes: rotation.matrix(),
            values: values.to_vec(),
            mean_features: rotation.mean().to_vec(),
            lambdas: lambdas.clone(),
            noise: noise.clone(),
            mean: *mean,
            landmarks: landmarks.as_ref().map(|landmarks| landmarks.points().mapv(Real::widen)),
        }
    }
}

impl<T: Real> TryFrom<StoredPosterior<T>> for RidgePosterior<T> {
    type Error = String;

    fn try_from(stored: StoredPosterior<T>) -> Result<Self, String> {
        let StoredPosterior { model, axes, values, mean_features, lambdas, noise, mean, landmarks } = stored;
        let (d, targets) = (model.map().feature_dim(), model.intercepts().len());
        let shape =
            axes.dim() == (values.len(), d) && (1..=d).contains(&values.len()) && mean_features.len() == d;
        if !(shape && noise.len() == targets && lambdas.len() == targets) {
            return Err("a posterior of another shape than that of the map and the targets".into());
        }
        let scalars = noise.iter().chain(&lambdas).chain(&values).chain([&mean]);
        let sound =
            scalars.into_iter().all(|v| v.is_finite() && *v >= 0.0) && lambdas.iter().all(|v| *v > 0.0);
        if !(sound && axes.iter().chain(&mean_features).all(|v| v.is_finite())) {
            return Err("a posterior with numbers that are negative or not finite".into());
        }
        let (map, inputs) = (model.map(), model.standardisation());
        let landmarks = landmarks.map(|points| Landmarks::of_inputs(map, inputs, points.mapv(T::narrow)));
        let landmarks = landmarks.transpose().map_err(|error| error.to_string())?.map(Arc::new);
        let rotation =
            FeatureRotation::new(map, inputs, &mean_features.into(), values.len(), |k, f| axes[[k, f]]);
        let (rotation, values) = (Arc::new(rotation.with_axes()), values.into());
        Ok(RidgePosterior { model, rotation, values, lambdas, noise, mean, landmarks })
    }
}

sealed_fields! {
    RidgeGrid<T>, T,
    #[serde(rename = "RidgeGrid", bound = "")]
    struct StoredGrid {
        candidates: Vec<RidgeStatistics<T>>,
    }
}

impl<T: Real> TryFrom<StoredGrid<T>> for RidgeGrid<T> {
    type Error = &'static str;

    fn try_from(StoredGrid { candidates }: StoredGrid<T>) -> Result<Self, &'static str> {
        let Some(first) = candidates.first() else { return Err("a grid without maps") };
        let alike = |other: &RidgeStatistics<T>| {
            other.targets() == first.targets()
                && other.row_ranges() == first.row_ranges()
                && other.intake.next() == first.intake.next()
        };
        if candidates.iter().all(alike) {
            Ok(RidgeGrid { candidates })
        } else {
            Err("statistics of different rows")
        }
    }
}
