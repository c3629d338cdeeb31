//! [`StandardisedMap`]: a map, with the centring and scaling of the points that it takes.

use super::Ridge;
use crate::Real;
use crate::apply::RidgeFit;
use crate::data::standardisation::Standardisation;
use crate::map::Map;

/// A map, with the centring and scaling of points before it, if any. A [`Glm`](super::Glm) is made from
/// `impl Into<StandardisedMap<T>>`: from a map by value or reference, or from a regression, whose map and standardisation it takes.
///
/// ```
/// use random_features::apply::{Glm, RidgeSearch};
/// use random_features::ndarray::Array2;
/// let x = Array2::from_shape_fn((300, 1), |(i, _)| 1.7e9 + i as f64);
/// let counts = x.column(0).mapv(|x| 5.0 + (4.0 * (0.05 * x).sin()).round());
/// let ridge = RidgeSearch::gaussian(1, 32, 7)?.fit(&x, &counts)?;
/// let fit = Glm::poisson(&ridge)?.search(&x, &counts)?;
/// assert_eq!(fit.model().standardisation(), ridge.model().standardisation());
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StandardisedMap<T: Real> {
    pub(super) map: Map<T>,
    pub(super) inputs: Option<Standardisation>,
}

impl<T: Real> StandardisedMap<T> {
    /// The map.
    pub fn map(&self) -> &Map<T> {
        &self.map
    }

    /// The centring and scaling of points, if any.
    pub fn standardisation(&self) -> Option<&Standardisation> {
        self.inputs.as_ref()
    }
}

impl<T: Real> From<Map<T>> for StandardisedMap<T> {
    fn from(map: Map<T>) -> Self {
        StandardisedMap { map, inputs: None }
    }
}

impl<T: Real> From<&Map<T>> for StandardisedMap<T> {
    fn from(map: &Map<T>) -> Self {
        map.clone().into()
    }
}

impl<T: Real> From<&Ridge<T>> for StandardisedMap<T> {
    fn from(ridge: &Ridge<T>) -> Self {
        StandardisedMap { map: ridge.map().clone(), inputs: ridge.standardisation().cloned() }
    }
}

impl<T: Real> From<&RidgeFit<T>> for StandardisedMap<T> {
    fn from(fit: &RidgeFit<T>) -> Self {
        fit.model().into()
    }
}
