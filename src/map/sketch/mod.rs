//! [`Sketch`]: maps whose random draw is not a matrix of frequencies; their draws, and how they are stored.

mod draw;
mod erased;
#[cfg(feature = "serde")]
mod kinds;
mod sketched;

use std::sync::Arc;

use crate::generator::Generator;

use super::{AnyKernel, FeatureMap};
use crate::digest::identified;
use crate::error::Result;
use crate::kernel::Kernel;

pub use draw::SketchDraw;
#[cfg(feature = "serde")]
pub use kinds::SketchKinds;
pub use sketched::Sketched;

/// A map whose random draw is not a matrix of frequencies, as plain data: hashes, signs, grids, landmarks.
///
/// A count sketch adds up the coordinates in buckets, each with a random sign. It estimates the linear kernel x·y/ℓ² without bias, with
/// the variance (‖u‖²‖v‖² + (u·v)² − 2 Σ uₖ²vₖ²)/D for u = x/ℓ and v = y/ℓ.
///
/// ```
/// use random_features::extend::{
///     Facts, FeatureMap, Form, Generator, Sketch, SketchNumbers, Tile,
/// };
/// use random_features::kernel::{Kernel, Lengthscale};
/// use random_features::map::{AnyKernel, Side, Sketched};
/// use random_features::ndarray::{ArrayView2, arr1};
/// use random_features::rand::RngExt;
/// use random_features::{Error, Map, Real, Result, SignedLog};
/// use std::sync::Arc;
///
/// #[derive(Debug)]
/// struct CountSketch {
///     d: usize,
///     buckets: usize,
/// }
///
/// impl Sketch for CountSketch {
///     const NAME: &'static str = "count sketch";
///     type Drawn = Buckets;
///
///     fn dim(&self) -> usize {
///         self.d
///     }
///
///     fn feature_dim(&self) -> usize {
///         self.buckets
///     }
///
///     fn numbers(&self) -> SketchNumbers {
///         SketchNumbers {
///             integers: vec![self.d as u64, self.buckets as u64],
///             reals: vec![],
///         }
///     }
///
///     fn of_numbers(numbers: &SketchNumbers) -> Result<Self> {
///         match numbers.integers[..] {
///             [d, buckets] => {
///                 Ok(CountSketch { d: d as usize, buckets: buckets as usize })
///             }
///             _ => Err(Error::Unsupported {
///                 what: "a count sketch of other numbers than d and D",
///             }),
///         }
///     }
///
///     fn serves(&self, kernel: &AnyKernel) -> bool {
///         matches!(kernel, AnyKernel::Implied(_))
///     }
///
///     fn draw(
///         &self,
///         kernel: &AnyKernel,
///         rng: &mut Generator,
///     ) -> Result<Buckets> {
///         let place = |_| {
///             (
///                 rng.random_range(0..self.buckets),
///                 if rng.random() { 1.0 } else { -1.0 },
///             )
///         };
///         let places = (0..self.d).map(place).collect();
///         Ok(Buckets {
///             places,
///             buckets: self.buckets,
///             lengthscale: kernel.lengthscale().clone(),
///         })
///     }
///
///     fn kernel(&self, kernel: &AnyKernel) -> Option<Arc<dyn Kernel<f64>>> {
///         Some(Arc::new(Linear(kernel.lengthscale().clone())))
///     }
///
///     fn log_variance(
///         &self,
///         _: &AnyKernel,
///         u: &[f64],
///         v: &[f64],
///     ) -> Option<f64> {
///         let sum = |term: fn(f64, f64) -> f64| {
///             u.iter().zip(v).map(|(u, v)| term(*u, *v)).sum::<f64>()
///         };
///         let norms = sum(|u, _| u * u) * sum(|_, v| v * v);
///         let variance = norms + sum(|u, v| u * v).powi(2)
///             - 2.0 * sum(|u, v| u * u * v * v);
///         Some((variance.max(0.0) / self.buckets as f64).ln())
///     }
/// }
///
/// /// The bucket and the sign of each coordinate.
/// #[derive(Debug)]
/// struct Buckets {
///     places: Vec<(usize, f64)>,
///     buckets: usize,
///     lengthscale: Lengthscale,
/// }
///
/// impl<T: Real> FeatureMap<T> for Buckets {
///     fn facts(&self) -> Facts {
///         Facts::new(self.places.len(), vec![self.buckets]).symmetric()
///     }
///
///     fn fill(
///         &self,
///         _: Side,
///         x: ArrayView2<'_, T>,
///         _: Form,
///         tile: &mut Tile<'_, T>,
///     ) {
///         for (i, x) in x.rows().into_iter().enumerate() {
///             let mut sums = vec![0.0; self.buckets];
///             for ((place, sign), u) in
///                 self.places.iter().zip(self.lengthscale.divide(x))
///             {
///                 sums[*place] += sign * u;
///             }
///             let largest = sums
///                 .iter()
///                 .fold(f64::MIN_POSITIVE, |largest, v| largest.max(v.abs()));
///             let row = tile.row(i);
///             row.values
///                 .iter_mut()
///                 .zip(&sums)
///                 .for_each(|(value, sum)| *value = T::narrow(sum / largest));
///             row.log_scales[0] = largest.ln();
///             if sums.iter().any(|sum| !sum.is_finite()) {
///                 tile.poison(i);
///             }
///         }
///     }
/// }
///
/// /// x·y/ℓ².
/// #[derive(Debug)]
/// struct Linear(Lengthscale);
///
/// impl Kernel<f64> for Linear {
///     fn check_dim(&self, d: usize) -> Result<()> {
///         self.0.check_dim(d)
///     }
///
///     fn log_of_slices(&self, x: &[f64], y: &[f64]) -> SignedLog {
///         SignedLog::from(
///             self.0
///                 .divide(x)
///                 .zip(self.0.divide(y))
///                 .map(|(u, v)| u * v)
///                 .sum::<f64>(),
///         )
///     }
/// }
///
/// let recipe = Sketched
///     .recipe(CountSketch { d: 3, buckets: 256 }, AnyKernel::implied(1.0));
/// let (x, y) = (arr1(&[1.0, -2.0, 0.5]), arr1(&[0.5, -1.0, 2.0]));
/// let map: Map<f64> = recipe.draw(7)?;
/// // Exact unless two coordinates meet in a bucket.
/// assert_eq!(map.estimate(&x, &y)?, 3.5);
/// assert!(recipe.relative_error(&x, &y)?.is_some_and(|error| error < 0.1));
/// assert_ne!(map.identity(), recipe.draw::<f64>(8)?.identity());
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// An implementation states its parameters and how features are drawn from them. [`Sketched`] then makes a
/// [`Recipe`](crate::Recipe) of it, which is drawn from seeds, compared, combined with other maps, evaluated by a
/// [`Planner`](crate::planner::Planner) and, with the feature `serde`, stored.
///
/// # Draws
/// A [`SketchDraw`] is a sketch, a stream and a seed. Features are drawn from the generator of the seed, in a stream whose number is
/// a hash of the name, the numbers and the stream. Equal sketches of one seed therefore have the same features, and two that differ in
/// anything share no random numbers: maps on them are independent. Features are not stored but drawn again, so that
/// [`draw`](Sketch::draw) must depend on nothing but its arguments.
///
/// # References
/// Charikar, Chen and Farach-Colton, *Finding Frequent Items in Data Streams*; Weinberger et al., *Feature Hashing for Large Scale
/// Multitask Learning*, Lemma 2 (the variance).
pub trait Sketch: std::fmt::Debug + Send + Sync + Sized + 'static {
    /// The name under which the sketch is stored, identified and printed, such as "count sketch". No two sketches of a program share it.
    const NAME: &'static str;

    /// The drawn map, for both scalars. Its [`kernel`](FeatureMap::kernel) and its [`log_variance`](FeatureMap::log_variance) are not
    /// read: the sketch states them, before anything is drawn.
    type Drawn: FeatureMap<f32> + FeatureMap<f64> + 'static;

    /// d, the dimension of points.
    fn dim(&self) -> usize;

    /// D, the number of features, all in one block.
    fn feature_dim(&self) -> usize;

    /// All parameters: sketches of equal numbers are equal.
    fn numbers(&self) -> SketchNumbers;

    /// The sketch of these [numbers](Sketch::numbers), which may come from a damaged file.
    ///
    /// # Errors
    /// Any error, for numbers that no sketch of this kind has.
    fn of_numbers(numbers: &SketchNumbers) -> Result<Self>;

    /// Whether the map estimates this kernel; for [`AnyKernel::Implied`] whether it estimates a kernel of its own.
    fn serves(&self, kernel: &AnyKernel) -> bool;

    /// Draws the map for a kernel that the sketch [serves](Sketch::serves). It must take all randomness from `rng`.
    ///
    /// # Errors
    /// Any error, for parameters of which no map can be made.
    fn draw(&self, kernel: &AnyKernel, rng: &mut Generator) -> Result<Self::Drawn>;

    /// The exact kernel that is estimated; `None` if it is not known. By default the kernel itself.
    fn kernel(&self, kernel: &AnyKernel) -> Option<Arc<dyn Kernel<f64>>> {
        kernel.kernel().map(Arc::from)
    }

    /// ln of the variance of an estimate at two points divided by the lengthscale, u = x/ℓ and v = y/ℓ; `None`, as by default, without a
    /// closed form.
    fn log_variance(&self, _kernel: &AnyKernel, _u: &[f64], _v: &[f64]) -> Option<f64> {
        None
    }

    /// m, the number of independent terms of an estimate, by which reports state its size. By default D.
    fn m(&self) -> usize {
        self.feature_dim()
    }

    /// The sketch with m independent terms, for any m from 1 on: a [`Planner`](crate::planner::Planner::with_recipe) asks for up to 2²⁴.
    /// D must grow with m. The result is `None`, as by default, for a sketch of one size. A result of another dimension or with another
    /// m counts as `None`.
    fn with_m(&self, _m: usize) -> Option<Self> {
        None
    }
}

/// The parameters of a [`Sketch`] as plain data, which are stored, compared and identified to the bit.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SketchNumbers {
    /// Sizes and choices, such as d and D.
    pub integers: Vec<u64>,
    /// Parameters and coordinates of landmarks.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub reals: Vec<f64>,
}

identified! { SketchNumbers { integers, reals } }
