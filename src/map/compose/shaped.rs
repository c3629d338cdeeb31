//! The maps of a [`Shape`].

use super::{Conditioning, Operand, conditioned};
use crate::data::shaping::Shape;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use crate::data::shaping::Shaping;
use crate::error::Result;
use crate::frequency::Draw;
use crate::map::{DenseExponential, Omega, PlainRecipe, Proposal, Prospect, Target};

/// The queries whose attention weighs pairs.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
const ROWS: usize = 64;

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
    /// use ndarray::Array2;
    /// use random_features::frequency::{Coupling, Orthogonal};
    /// use random_features::kernel::Softmax;
    /// use random_features::data::shaping::Shaping;
    /// let x = Array2::from_shape_fn((50, 4), |(i, k)| (i as f64 * [0.7, 1.9, 0.3, 1.1][k]).sin() * [3.0, 1.0, 0.3, 0.1][k]);
    /// let y = Array2::from_shape_fn((50, 4), |(i, k)| (i as f64 * [1.1, 0.3, 2.3, 0.9][k]).cos() * [0.1, 1.0, 0.3, 3.0][k]);
    /// let shape = Shaping::new().of_points(&x, &y)?;
    /// let map: random_features::Map<f64> = shape.map(Orthogonal.draw(4, 256, 1)?, Softmax::default())?;
    /// let (x, y) = (x.row(3), y.row(7));
    /// assert!((map.estimate(&x, &y)? / x.dot(&y).exp() - 1.0).abs() < 0.2);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`DenseExponential::map`] and [`Map::conditioned`](crate::Map::conditioned).
    pub fn map<M: Operand>(&self, omega: impl Into<Omega>, target: impl Into<Target>) -> Result<M> {
        let features = M::of_plain(PlainRecipe::new(self.dense_exponential()?, omega, target))?;
        conditioned(&features, &self.conditioning()?)
    }
}

/// Shapes of the data: whole, and truncated to the rank that suits the number of features and to twice that. None without a
/// backend for eigendecompositions.
pub(super) fn proposals(prospect: Prospect<'_>) -> Result<Vec<Proposal>> {
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    {
        let whole = shape(prospect, &Shaping::new())?;
        let isotropic = prospect.target.lengthscale().isotropic().is_some();
        let mut all = vec![of_shape(prospect, "shaped".into(), whole)];
        let most = prospect.dim();
        if isotropic && most > 1 {
            let ranked = shape(prospect, &Shaping::new().with_rank_for(prospect.features.max(1))?)?;
            let rank = ranked.rank().min(most - 1);
            for rank in [rank, 2 * rank].into_iter().filter(|rank| *rank < most) {
                let shape = shape(prospect, &Shaping::new().with_rank(rank)?)?;
                all.push(of_shape(prospect, format!("truncated, rank {rank} of {most}"), shape));
            }
        }
        Ok(all)
    }
    #[cfg(not(any(feature = "faer", feature = "ndarray-linalg")))]
    {
        let _ = (prospect, of_shape);
        Ok(Vec::new())
    }
}

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
fn shape(prospect: Prospect<'_>, shaping: &Shaping) -> Result<Shape> {
    let [x, y] = prospect.points;
    if prospect.attention {
        // Points are scaled already.
        return Ok(shaping.clone().with_scale(1.0)?.for_attention(x, y, ROWS, 0)?.shape);
    }
    if prospect.one_set { shaping.of_one_set(x) } else { shaping.of_points(x, y) }
}

fn of_shape(prospect: Prospect<'_>, name: String, shape: Shape) -> Proposal {
    let target = prospect.target.clone();
    Proposal::coupled(name, move |m, coupling| {
        shape.map(Draw::new(shape.rank(), m, coupling), target.clone())
    })
}
