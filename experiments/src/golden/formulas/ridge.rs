//! Ridge regression on given features.

use ndarray::ArrayView2;
use random_features::apply::RidgeStatistics;
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::map::Side;
use random_features::{Map, Real};

use super::case::{Case, Found, parts};

/// Points that are their own features.
#[derive(Debug)]
struct Given(usize);

impl<T: Real> FeatureMap<T> for Given {
    fn facts(&self) -> Facts {
        Facts::new(self.0, vec![self.0]).symmetric()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, _: Form, tile: &mut Tile<'_, T>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let row = tile.row(i);
            row.values.iter_mut().zip(x).for_each(|(value, x)| *value = *x);
            row.log_scales[0] = 0.0;
        }
    }
}

pub fn ridge(case: &Case<'_>) -> Found {
    if case.formula != "krr.primal" {
        return Ok(None);
    }
    let (z, y, at) = (case.matrix("Z")?, case.matrix("Y")?, case.matrix("Zstar")?);
    let text = |error: random_features::Error| error.to_string();
    let map = Map::<f64>::of_feature_map(Given(z.ncols())).map_err(text)?;
    let mut statistics = RidgeStatistics::new(map, y.ncols()).map_err(text)?.without_intercept();
    statistics.update(&z, &y).map_err(text)?;
    let model = statistics.solve(case.number("phi")?).map_err(text)?;
    let predicted = model.predict(&at).map_err(text)?;
    let beta = model.weights().t().iter().copied().collect();
    parts(vec![("beta", beta), ("pred", predicted.iter().copied().collect())])
}
