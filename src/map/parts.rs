//! [`Parts`]: the normal form of a map as plain arrays.

use ndarray::{Array1, Array2};
use num_complex::Complex64;

use super::{Map, Side};
use crate::Real;
use crate::engine::{Input, Leaf, Lift, MapPlan};
use crate::once::once;

/// The arrays and constants of a map in the normal form, to run it elsewhere: on a GPU, in another language.
///
/// ```
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::arr2;
/// use random_features::{Positive, Side, rng};
/// let map = Positive.gaussian(Orthogonal.draw(2, 8, 1)?, 2.0)?;
/// let x = arr2(&[[0.3, -0.2]]);
/// let parts = map.parts(Side::X).ok_or("not in the normal form")?;
/// let squared_norm = x.iter().map(|x| (x / 2.0_f64).powi(2)).sum::<f64>();
/// let by_hand = (x.dot(&parts.weights.t()))
///     .mapv(|p| (p + parts.row * squared_norm + parts.constant).exp());
/// assert!(
///     (by_hand - map.features(Side::X, &x)?.to_array())
///         .iter()
///         .all(|error| error.abs() < 1e-12)
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Definition
/// Features of a point x are lift(pⱼ) · exp(c‖x/ℓ‖² + s), j = 1 … m, with exponents pⱼ = β wⱼ·x + aⱼ:
/// [`weights`](Parts::weights) w, [`slope`](Parts::slope) β, [`bias`](Parts::bias) a, [`lift`](Parts::lift),
/// [`row`](Parts::row) c, [`constant`](Parts::constant) s. [`Lift`] defines the features of an exponent p = u + iv, and their
/// order. A p without imaginary part is v for [`Lift::Polar`], else u. Numbers are `f64`, before they are rounded to the
/// scalar of the map, except biases, which are rounded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parts {
    /// W = ω/ℓ, m × d.
    pub weights: Array2<f64>,
    /// The biases aⱼ, one for each row of W.
    pub bias: Array1<Complex64>,
    /// The slope β, a factor of wⱼ·x.
    pub slope: Complex64,
    /// The function that turns exponents into features.
    pub lift: Lift,
    /// c, the coefficient of ‖x/ℓ‖² in the logarithm of a row's factor.
    pub row: f64,
    /// s, the rest of that logarithm, including −½ ln m.
    pub constant: f64,
    /// ℓ of each coordinate.
    pub lengthscales: Array1<f64>,
}

impl<T: Real> Map<T> {
    /// The normal form of the features of a side; `None` for hybrids, clustered, conditioned and user-defined maps, weighted sums, maps of counts
    /// and maps whose frequencies are complex or absent. Cost O(md); structured frequencies are written out.
    #[inline(never)]
    pub fn parts(&self, side: Side) -> Option<Parts> {
        match self.program().plan() {
            MapPlan::Leaf(leaf) => leaf_parts(leaf, side),
            _ => None,
        }
    }
}

fn leaf_parts<T: Real>(leaf: &Leaf<T>, side: Side) -> Option<Parts> {
    let (Input::Points, projection, false) = (&*leaf.input, &leaf.projection, leaf.mirrored) else {
        return None;
    };
    let mut weights = projection.frequencies().rows().into_owned();
    for (k, mut column) in weights.columns_mut().into_iter().enumerate() {
        column /= projection.lengthscale().at(k);
    }
    let (bias, top) = match &leaf.bias {
        Some(bias) => (bias.weights().collect(), bias.top),
        None => (Array1::zeros(weights.nrows()), 0.0),
    };
    Some(Parts {
        weights,
        bias,
        slope: leaf.slopes[side as usize],
        lift: leaf.lift.on(side),
        row: leaf.row,
        constant: leaf.constant - top,
        lengthscales: (0..projection.dim()).map(|k| leaf.lengthscale.at(k)).collect(),
    })
}

once!(Map::<T>::parts);
