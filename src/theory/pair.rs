//! [`Pair`]: the scalars of two points that closed forms need.

/// What the closed forms need to know of two points x and y, already divided by the lengthscale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// ‖x‖² + ‖y‖².
    pub norms: f64,
    /// ‖x + y‖².
    pub sum: f64,
    /// ‖x − y‖².
    pub difference: f64,
    /// x·y.
    pub dot: f64,
}

impl Pair {
    /// The scalars of the points whose coordinates are given side by side.
    ///
    /// ```
    /// use random_features::theory::Pair;
    /// let pair = Pair::new([(1.0, 2.0), (0.0, -1.0)]);
    /// assert_eq!((pair.norms, pair.sum, pair.difference, pair.dot), (6.0, 10.0, 2.0, 2.0));
    /// ```
    pub fn new(coordinates: impl IntoIterator<Item = (f64, f64)>) -> Self {
        // Each from its own sum: x·y from norms and distances would cancel.
        coordinates.into_iter().fold(
            Pair { norms: 0.0, sum: 0.0, difference: 0.0, dot: 0.0 },
            |pair, (x, y)| Pair {
                norms: pair.norms + (x * x + y * y),
                sum: pair.sum + (x + y).powi(2),
                difference: pair.difference + (x - y).powi(2),
                dot: pair.dot + x * y,
            },
        )
    }
}
