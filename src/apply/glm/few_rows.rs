//! [`FewRows`]: the fit of fewer rows than features in the coordinates of the rows.
//!
//! The minimum is a combination of the rows' features, since the penalty makes β orthogonal to all directions that no row has. With
//! the singular value decomposition Φ = U S Vᵀ of n rows, the rows of U S are n coordinates with the inner products of features. A
//! model β of these coordinates is the model V β of features: it has the same decision values and the same penalty.

use ndarray::{Array2, ArrayView2};

use super::{Glm, Step};
use crate::Real;
use crate::apply::ridge::CentredRows;
use crate::engine::PointsView;
use crate::error::Result;
use crate::linalg::{Backend, Svd};
use crate::map::{Facts, FeatureMap, Form, Map, Side, Tile};

/// The least ratio of features to rows: below, the decomposition takes longer than it saves.
const RATIO: usize = 2;

/// Rows in their own coordinates.
pub(super) struct FewRows {
    /// The model of coordinates.
    pub model: Glm<f64>,
    /// U S, the coordinates of the rows, n × n.
    pub coordinates: Array2<f64>,
    /// V, D × n.
    axes: Array2<f64>,
}

impl FewRows {
    /// The rows in their own coordinates, and a model at which a fit begins; `None` if there are not much fewer rows than features.
    pub fn of<T: Real>(model: &Glm<T>, x: PointsView<'_, T>) -> Result<Option<Self>> {
        let (n, width) = (x.nrows(), model.map().feature_dim());
        if n.saturating_mul(RATIO) > width {
            return Ok(None);
        }
        let rows = CentredRows::new(model.map(), model.standardisation(), x, None, false)?;
        let Svd { left, values, right, .. } = Backend::default().svd(&rows.features)?;
        let map = Map::of_feature_map(Coordinates(values.len()))?;
        let start = model.parameters();
        let start = Step { weights: start.weights.dot(&right), ..start };
        Ok(Some(FewRows { model: model.on(map, start), coordinates: left * &values, axes: right }))
    }

    /// The model of features that has the predictions of a model of coordinates.
    pub fn lifted<T: Real>(&self, model: &Glm<T>, found: &Glm<f64>) -> Glm<T> {
        let Step { weights, intercepts } = found.parameters();
        model.clone().with_parameters(Step { weights: weights.dot(&self.axes.t()), intercepts })
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
