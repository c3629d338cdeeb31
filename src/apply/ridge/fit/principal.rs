//! [`Principal`]: the principal components of the features that statistics have summed.

use ndarray::{Axis, Slice};

use super::{Ridge, RidgeStatistics};
use crate::Real;
use crate::error::{Error, Result};
use crate::linalg::Backend;

/// Principal components as linear functions of features.
pub(in crate::apply) struct Principal<T: Real> {
    pub projection: Ridge<T>,
    /// Those of the components, falling.
    pub variances: Vec<f64>,
    /// The sum of the variances of all features.
    pub total: f64,
}

impl<T: Real> RidgeStatistics<T> {
    /// The first so many components.
    pub(in crate::apply) fn principal(&self, components: usize) -> Result<Principal<T>> {
        let width = self.map.feature_dim();
        if !(1..=width).contains(&components) {
            let domain = "from 1 to the number of features";
            return Err(Error::Parameter {
                name: "the number of components",
                value: components as f64,
                domain,
            });
        }
        let mut normal = self.uncentred()?;
        normal.centre();
        // Eigenvalues below the rounding error of the matrix say nothing.
        let variance = |s: f64| if s > normal.total_noise { s / normal.weight } else { 0.0 };
        let mut eigen = Backend::default().eigen(&normal.a)?;
        eigen.values.invert_axis(Axis(0));
        eigen.vectors.invert_axis(Axis(1));
        let directions = eigen.vectors.slice_axis(Axis(1), Slice::from(..components)).to_owned();
        let offsets = -normal.mean_features.dot(&directions);
        let projection = Ridge::new(self.map.clone(), self.inputs.clone(), directions, offsets);
        let total = eigen.values.iter().map(|s| variance(*s)).sum();
        let variances = eigen.values.iter().take(components).map(|s| variance(*s)).collect();
        Ok(Principal { projection, variances, total })
    }
}
