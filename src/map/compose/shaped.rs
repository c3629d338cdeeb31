//! The maps of a [`Shape`].

use super::{Conditioning, Part, conditioned};
use crate::data::shaping::Shape;
use crate::error::Result;
use crate::map::{AnyKernel, DenseExponential, Omega, PlainRecipe};

impl Shape {
    /// The transformation of the points: shifts, T and r coordinates of the basis. **Biased** if the shape is
    /// truncated.
    ///
    /// # Errors
    /// The errors of [`Conditioning::of_matrices`]; none for a shape from [`Shaping`](crate::data::shaping::Shaping).
    pub fn conditioning(&self) -> Result<Conditioning> {
        let conditioning = Conditioning::of_matrices(self.left.clone(), self.right.clone())?;
        conditioning.shifted(self.shift_x.clone(), self.shift_y.clone())
    }

    /// The features at the transformed points, with the coefficients aₗ.
    ///
    /// # Errors
    /// The errors of [`DenseExponential::new`].
    pub fn dense_exponential(&self) -> Result<DenseExponential> {
        DenseExponential::new(self.a.clone())
    }

    /// The map of this shape, or its recipe, for a softmax or Gaussian kernel, with frequencies in ℝʳ. **Biased** if the shape is
    /// truncated; [`Sobol`](crate::frequency::Sobol) frequencies are then the best choice.
    ///
    /// ```
    /// use random_features::data::shaping::Shaping;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::kernel::Softmax;
    /// use random_features::ndarray::Array2;
    /// let x = Array2::from_shape_fn((50, 4), |(i, k)| {
    ///     (i as f64 * [0.7, 1.9, 0.3, 1.1][k]).sin() * [3.0, 1.0, 0.3, 0.1][k]
    /// });
    /// let y = Array2::from_shape_fn((50, 4), |(i, k)| {
    ///     (i as f64 * [1.1, 0.3, 2.3, 0.9][k]).cos() * [0.1, 1.0, 0.3, 3.0][k]
    /// });
    /// let shape = Shaping::new().of_points(&x, &y)?;
    /// let map: random_features::Map<f64> =
    ///     shape.build(Orthogonal.draw(4, 256, 1)?, Softmax::default())?;
    /// let (x, y) = (x.row(3), y.row(7));
    /// assert!((map.estimate(&x, &y)? / x.dot(&y).exp() - 1.0).abs() < 0.2);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`DenseExponential::build`] and [`Map::conditioned`](crate::Map::conditioned).
    pub fn build<M: Part>(&self, omega: impl Into<Omega>, kernel: impl Into<AnyKernel>) -> Result<M> {
        let features = M::of_plain(PlainRecipe::new(self.dense_exponential()?, omega, kernel))?;
        conditioned(&features, &self.conditioning()?)
    }
}
