//! [`Pair`]: the scalars of two points that closed forms depend on.

use crate::kernel::angle;

/// The scalars of two points x and y in ℝᵈ, already divided by the lengthscale.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pair {
    /// d, the dimension of the points.
    pub dim: usize,
    /// ‖x‖² + ‖y‖².
    pub norms: f64,
    /// ‖x‖² − ‖y‖².
    pub norm_difference: f64,
    /// ‖x + y‖².
    pub sum: f64,
    /// ‖x − y‖².
    pub difference: f64,
    /// x·y.
    pub dot: f64,
    /// The angle between x and y, from 0 to π; π/2 if one of them is 0.
    pub angle: f64,
}

impl Pair {
    /// The scalars of two points given as pairs of coordinates (xₗ, yₗ).
    ///
    /// ```
    /// use random_features::theory::Pair;
    /// let pair = Pair::new([(1.0, 2.0), (0.0, -1.0)]);
    /// assert_eq!(
    ///     (pair.dim, pair.norms, pair.sum, pair.difference, pair.dot),
    ///     (2, 6.0, 10.0, 2.0, 2.0)
    /// );
    /// ```
    pub fn new<I>(coordinates: I) -> Self
    where
        I: IntoIterator<Item = (f64, f64)>,
        I::IntoIter: Clone,
    {
        let coordinates = coordinates.into_iter();
        // Each has its own sum; computing one from the others would cancel.
        let sum = |term: fn(f64, f64) -> f64| coordinates.clone().map(|(x, y)| term(x, y)).sum();
        Pair {
            dim: coordinates.clone().count(),
            norms: sum(|x, y| x * x + y * y),
            norm_difference: sum(|x, y| (x - y) * (x + y)),
            sum: sum(|x, y| (x + y) * (x + y)),
            difference: sum(|x, y| (x - y) * (x - y)),
            dot: sum(|x, y| x * y),
            angle: angle(coordinates),
        }
    }

    /// The scalars of the points σx and σy.
    pub fn scaled(&self, sigma: f64) -> Self {
        let s2 = sigma * sigma;
        Pair {
            norms: s2 * self.norms,
            norm_difference: s2 * self.norm_difference,
            sum: s2 * self.sum,
            difference: s2 * self.difference,
            dot: s2 * self.dot,
            ..*self
        }
    }
}
