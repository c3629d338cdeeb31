//! The stored forms of models that need a factorisation, checked when they are read.

use super::calibration::Calibration;
use super::{Ridge, RidgeClassifier};
use crate::Real;
use crate::sealed::sealed_fields;

sealed_fields! {
    RidgeClassifier<T>, T,
    #[serde(rename = "RidgeClassifier", bound = "")]
    struct StoredClassifier {
        model: Ridge<T>,
        calibration: Option<Calibration>,
    }
}

impl<T: Real> TryFrom<StoredClassifier<T>> for RidgeClassifier<T> {
    type Error = &'static str;

    fn try_from(stored: StoredClassifier<T>) -> Result<Self, &'static str> {
        let StoredClassifier { model, calibration } = stored;
        let classes = model.intercepts.len();
        if calibration.as_ref().is_some_and(|calibration| !calibration.fits(classes)) {
            return Err("a calibration for another number of classes than the model's");
        }
        Ok(RidgeClassifier { model, calibration })
    }
}
