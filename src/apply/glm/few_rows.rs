//! [`FewRows`]: the fit of fewer rows than features in the coordinates of the rows.
//!
//! The minimum is a combination of the rows' features, since the penalty makes β orthogonal to all directions that no row has. With
//! the singular value decomposition Φ = U S Vᵀ of n rows, the rows of U S are n coordinates with the inner products of features. A
//! model β of these coordinates is the model V β of features: it has the same decision values and the same penalty.

use ndarray::{Array2, ArrayView2};

use super::{Glm, Response, Step};
use crate::apply::ridge::CentredRows;
use crate::engine::PointsView;
use crate::error::Result;
use crate::linalg::{Backend, Svd};
use crate::map::{Facts, FeatureMap, Form, Map, Side, Tile};
use crate::numeric::row_products;
use crate::{Real, progress};

/// The least ratios of features to rows for a fit and for a search. Below, the decomposition takes longer than it saves.
pub(super) const FEW_FOR_FIT: usize = 8;
pub(super) const FEW_FOR_SEARCH: usize = 2;

/// Rows in their own coordinates.
pub(super) struct FewRows {
    /// The model of coordinates.
    pub model: Glm<f64>,
    /// U S, the coordinates of the rows, n × n.
    pub coordinates: Array2<f64>,
    /// Vᵀ, n × D.
    axes: Array2<f64>,
}

impl FewRows {
    /// The rows in their own coordinates, with a model at which a fit begins; `None` unless there are `ratio` features for each
    /// row and all rows have positive weight.
    pub fn of<T: Real>(
        model: &Glm<T>,
        x: PointsView<'_, T>,
        response: &Response,
        ratio: usize,
    ) -> Result<Option<Self>> {
        let is_few = x.nrows().saturating_mul(ratio) <= model.map().feature_dim();
        if !is_few || response.weights.iter().any(|weight| *weight == 0.0) {
            return Ok(None);
        }
        let rows = CentredRows::new(model.map(), model.standardisation(), x, None, false)?;
        progress::check()?;
        let Svd { left, mut values, right, .. } = Backend::default().svd(&rows.features)?;
        progress::check()?;
        // Directions at the level of rounding are no directions of rows.
        let least = values.iter().fold(0.0, |a: f64, v| a.max(*v)) * f64::EPSILON * values.len() as f64;
        values.mapv_inplace(|value| if value > least { value } else { 0.0 });
        let map = Map::of_feature_map(Coordinates(values.len()))?;
        let axes = right.reversed_axes();
        let start = model.parameters();
        let start = Step { weights: row_products(&start.weights, &axes), ..start };
        Ok(Some(FewRows { model: model.on(map, start), coordinates: left * &values, axes }))
    }

    /// The model of features that has the predictions of a model of coordinates.
    pub fn lifted<T: Real>(&self, model: &Glm<T>, found: &Glm<f64>) -> Glm<T> {
        let Step { weights, intercepts } = found.parameters();
        model.clone().with_parameters(Step { weights: row_products(&weights, &self.axes.t()), intercepts })
    }
}

/// Points that are their own features.
#[derive(Debug)]
struct Coordinates(usize);

impl FeatureMap<f64> for Coordinates {
    fn facts(&self) -> Facts {
        Facts::new(self.0, vec![self.0]).symmetric()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, f64>, _: Form, tile: &mut Tile<'_, f64>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let row = tile.row(i);
            row.values.iter_mut().zip(x).for_each(|(value, x)| *value = *x);
            row.log_scales[0] = 0.0;
        }
    }
}
