//! The stored forms of statistics and components, checked when they are read.

use super::{KernelPca, PcaStatistics};
use crate::Real;
use crate::apply::Ridge;
use crate::reduce::StoredGramIntake;
use crate::sealed::{sealed, sealed_fields};

sealed!(PcaStatistics<T>, StoredGramIntake<T>, T, [T: Real]);

impl<T: Real> From<&PcaStatistics<T>> for StoredGramIntake<T> {
    fn from(statistics: &PcaStatistics<T>) -> Self {
        (&statistics.intake).into()
    }
}

impl<T: Real> TryFrom<StoredGramIntake<T>> for PcaStatistics<T> {
    type Error = String;

    fn try_from(stored: StoredGramIntake<T>) -> Result<Self, String> {
        PcaStatistics::of_intake(stored.try_into()?).map_err(|error| error.to_string())
    }
}

sealed_fields! {
    KernelPca<T>, T,
    #[serde(rename = "KernelPca", bound = "")]
    struct StoredKernelPca {
        projection: Ridge<T>,
        #[serde(with = "crate::exact")]
        mean: Vec<f64>,
        #[serde(with = "crate::exact")]
        variances: Vec<f64>,
        #[serde(with = "crate::exact")]
        total: f64,
    }
}

impl<T: Real> TryFrom<StoredKernelPca<T>> for KernelPca<T> {
    type Error = &'static str;

    fn try_from(stored: StoredKernelPca<T>) -> Result<Self, &'static str> {
        let StoredKernelPca { projection, mean, variances, total } = stored;
        let falling = variances.windows(2).all(|pair| pair[0] >= pair[1]);
        let sound = variances.iter().chain([&total]).all(|v| v.is_finite() && *v >= 0.0);
        if !(falling && sound && variances.len() == projection.intercepts().len()) {
            return Err("variances of components that do not fall, or are not as many as the directions");
        }
        if mean.len() != projection.map().feature_dim() || !mean.iter().all(|v| v.is_finite()) {
            return Err("mean features of another number than that of the map, or not finite");
        }
        Ok(KernelPca { projection, mean, variances, total })
    }
}
