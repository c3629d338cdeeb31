//! Conditioned maps: the features of a map at affinely transformed points.

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, ArrayView1, ArrayViewMut1, s};

use super::Conditioning;
use super::conditioning::dot;
use crate::engine::{Conditioned, Plan};
use crate::error::{Error, Result, check_size};
use crate::kernel::{Exponential, Kernel, Lengthscale};
use crate::map::node::Origin;
use crate::map::{ConditionedRecipe, Map, Recipe};
use crate::{Real, SignedLog};

impl<T: Real> Map<T> {
    /// This map at the transformed points, times their factors: an estimate of the same kernel with another variance.
    /// **Biased** if the conditioning is [truncated](Conditioning::truncated); [`kernel`](Map::kernel) is then the
    /// kernel that is estimated.
    ///
    /// See [`Conditioning`]. The identity returns this map.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if the map is not known to estimate a softmax or Gaussian kernel without
    /// bias, or if the conditioning is truncated and the map has a lengthscale for each dimension;
    /// [`Shape`](Error::Shape) if its dimension is not r; [`NotFinite`](Error::NotFinite) if a frequency or an entry of
    /// T or T⁻ᵀ overflows `T`.
    pub fn conditioned(&self, conditioning: &Conditioning) -> Result<Self> {
        check_size("the dimension of the map", conditioning.rank(), self.input_dim())?;
        let exponential = self.kernel().and_then(|kernel| kernel.exponential());
        let what = "conditioning: it is not known to estimate a softmax or Gaussian kernel";
        let exponential = exponential.ok_or(Error::Unsupported { what })?;
        if !conditioning.is_exact() && matches!(exponential.lengthscale, Lengthscale::PerDimension(_)) {
            return Err(Error::Unsupported { what: "truncation with a lengthscale for each dimension" });
        }
        if conditioning.is_identity() {
            return Ok(self.clone());
        }
        let (plan, affine) = (self.program().plan().clone(), conditioning.affine::<T>(&exponential));
        let plan = Plan::Conditioned(Conditioned::new(plan, affine, &exponential.lengthscale)?);
        let kernel = Truncated { conditioning: conditioning.clone(), exponential };
        Map::of_plan(plan, Shaped { base: self.clone(), kernel })
    }
}

/// The origin of a conditioned map.
#[derive(Debug)]
struct Shaped<T: Real> {
    base: Map<T>,
    /// The transformation of the points, and the kernel that remains after truncation.
    kernel: Truncated,
}

impl<T: Real> Shaped<T> {
    /// The points divided by the lengthscale and their images.
    fn images(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> [[Vec<f64>; 2]; 2] {
        let points = [self.kernel.divided(x), self.kernel.divided(y)];
        let images = [0, 1].map(|side| self.kernel.conditioning.image(side, &points[side]));
        [points, images]
    }

    /// An image as a point of the base map, which divides it by its lengthscale.
    fn narrow(&self, image: &[f64]) -> Array1<T> {
        let lengthscale = &self.kernel.exponential.lengthscale;
        image.iter().enumerate().map(|(k, u)| T::saturated(u * lengthscale.at(k))).collect()
    }

    /// The images of rows as points of the base map, and the logarithms of their factors.
    fn of_side(&self, side: usize, x: &ArrayRef2<T>) -> (Array2<T>, Vec<f64>) {
        let mut images = Array2::zeros((x.nrows(), self.kernel.conditioning.rank()));
        let factor = |(x, mut image): (ArrayView1<'_, T>, ArrayViewMut1<'_, T>)| {
            let point = self.kernel.divided(x);
            let u = self.kernel.conditioning.image(side, &point);
            image.assign(&self.narrow(&u));
            self.log_factor(side, (&point, &u))
        };
        let factors = x.rows().into_iter().zip(images.rows_mut()).map(factor).collect();
        (images, factors)
    }

    /// The estimates of paired rows, from those of the base at the images.
    fn of_rows(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array1<SignedLog>> {
        let ((u, left), (v, right)) = (self.of_side(0, x), self.of_side(1, y));
        let estimates = self.base.log_estimate_rows(&u, &v)?;
        let factors = left.iter().zip(&right).map(|(left, right)| left + right);
        Ok(estimates.iter().zip(factors).map(|(estimate, factor)| estimate.scaled(factor)).collect())
    }

    /// The logarithm of the factor of a point.
    fn log_factor(&self, side: usize, (point, image): (&[f64], &[f64])) -> f64 {
        self.kernel.conditioning.log_factor(self.kernel.exponential.row, side, point, image)
    }

    fn log_factors(&self, [[x, y], [u, v]]: &[[Vec<f64>; 2]; 2]) -> f64 {
        self.log_factor(0, (x, u)) + self.log_factor(1, (y, v))
    }
}

impl<T: Real> Origin<T> for Shaped<T> {
    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        if self.kernel.conditioning.is_exact() { self.base.kernel() } else { Some(&self.kernel) }
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Option<f64> {
        let parts = self.images(x, y);
        let [_, [u, v]] = &parts;
        let base = self.base.log_variance(&self.narrow(u), &self.narrow(v)).ok()??;
        Some(base + 2.0 * self.log_factors(&parts))
    }

    fn recipe(&self) -> Option<Recipe> {
        let (conditioning, base) = (self.kernel.conditioning.clone(), Box::new(self.base.recipe()?));
        Some(Recipe::Conditioned(ConditionedRecipe { conditioning, base }))
    }

    fn estimates(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Option<Result<Array1<SignedLog>>> {
        // Estimates of hybrids are not those of their features.
        self.base.mixture().map(|_| self.of_rows(x, y))
    }

    fn gram(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Option<Result<Array2<T>>> {
        self.base.mixture()?;
        let ((u, left), (v, right)) = (self.of_side(0, x), self.of_side(1, y));
        let factor = |(i, j): (usize, usize), estimate: T| {
            let factor = (left[i] + right[j]).exp();
            let product = estimate.widen() * factor;
            let safe = factor.is_normal() && estimate.widen().is_normal() && product.is_normal();
            let alone = || self.of_rows(&x.slice(s![i..=i, ..]), &y.slice(s![j..=j, ..]));
            let value = if safe { product } else { alone()?[0].value() };
            Ok(T::narrow(value))
        };
        Some(self.base.gram(&u, &v).and_then(|gram| {
            let entries = gram.indexed_iter().map(|(at, estimate)| factor(at, *estimate));
            let entries = entries.collect::<Result<Vec<T>>>()?;
            Ok(Array2::from_shape_vec(gram.dim(), entries).unwrap_or_default())
        }))
    }
}

/// K_r(x, y) = exp(u·v + x·c_y + c_x·y − c_x·c_y) of r coordinates of u and v, with the row factors of the kernel it is for.
#[derive(Debug)]
struct Truncated {
    conditioning: Conditioning,
    exponential: Exponential,
}

impl Truncated {
    /// A point divided by the lengthscale.
    fn divided<'a, T: Real>(&self, x: impl IntoIterator<Item = &'a T, IntoIter: Clone>) -> Vec<f64> {
        self.exponential.lengthscale.divide(x).collect()
    }
}

impl<T: Real> Kernel<T> for Truncated {
    fn check_dim(&self, d: usize) -> Result<()> {
        check_size("the dimension of the points", self.conditioning.dim(), d)
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        let (x, y) = (self.divided(x), self.divided(y));
        let [c_x, c_y] = self.conditioning.shifts();
        let (u, v) = (self.conditioning.image(0, &x), self.conditioning.image(1, &y));
        let rows = self.exponential.row * (dot(&x, &x) + dot(&y, &y));
        SignedLog::positive(dot(&u, &v) + dot(&x, c_y) + dot(c_x, &y) - dot(c_x, c_y) + rows)
    }
}
