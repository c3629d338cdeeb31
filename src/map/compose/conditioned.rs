//! [`Conditioned`]: the features of a map at affinely transformed points.

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, ArrayView1, ArrayViewMut1, s};

use super::conditioning::dot;
use super::{Composite, Conditioning, Known, Part, Size};
use crate::digest::{Digest, Identify, Identity};
use crate::engine::{self, MapPlan};
use crate::error::{Error, Result, check_size};
use crate::kernel::{Exponential, Kernel, Lengthscale};
use crate::map::Map;
use crate::memory::check_memory;
use crate::once::once;
use crate::{Real, SignedLog};

/// A map at affinely transformed points, times a factor for each point: an estimate of the same kernel with another variance.
/// **Biased** if the conditioning is [truncated](Conditioning::truncated).
///
/// [`Map::conditioned`] and [`Recipe::conditioned`](crate::Recipe::conditioned) make it from a [`Conditioning`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Conditioned<M> {
    /// The transformation of the points.
    pub conditioning: Conditioning,
    /// The map that is applied to transformed points.
    pub base: M,
}

impl<T: Real> Map<T> {
    /// This map at the points that `conditioning` transforms, times their factors: an estimate of the same kernel with another
    /// variance. **Biased** if the conditioning is [truncated](Conditioning::truncated); [`kernel`](Map::kernel) is then the
    /// kernel that is estimated. The identity returns this map.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if the map is not known to estimate a softmax or Gaussian kernel without
    /// bias, or if the conditioning is truncated and the map has a lengthscale for each dimension;
    /// [`Shape`](Error::Shape) if its dimension is not r; [`NotFinite`](Error::NotFinite) if a frequency or an entry of
    /// T or T⁻ᵀ overflows `T`.
    #[inline(never)]
    pub fn conditioned(&self, conditioning: &Conditioning) -> Result<Self> {
        conditioned(self, conditioning)
    }
}

/// A map at transformed points; the map itself for the identity.
pub(in crate::map) fn conditioned<M: Part>(base: &M, conditioning: &Conditioning) -> Result<M> {
    let node = Conditioned { conditioning: conditioning.clone(), base: base.clone() };
    if !conditioning.is_identity() {
        return M::of_composite(node.into());
    }
    node.check().map(|()| node.base)
}

impl<M: Part> Conditioned<M> {
    /// The softmax or Gaussian kernel of the map.
    fn exponential(&self) -> Result<Exponential> {
        let known = self.base.known();
        let exponential = known.kernel.as_ref().and_then(|kernel| kernel.exponential());
        let what = "conditioning of a map that is not known to estimate a softmax or Gaussian kernel";
        exponential.ok_or(Error::Unsupported { what })
    }

    pub(super) fn check(&self) -> Result<()> {
        check_size("the dimension of the map", self.conditioning.rank(), self.base.dim())?;
        let exponential = self.exponential()?;
        if !self.conditioning.is_exact() && matches!(exponential.lengthscale, Lengthscale::PerDimension(_)) {
            return Err(Error::Unsupported { what: "truncation with a lengthscale for each dimension" });
        }
        Ok(())
    }

    pub(super) fn size(&self) -> Size {
        self.base.size()
    }

    pub(super) fn known(&self) -> Known<M::Scalar> {
        if self.conditioning.is_exact() {
            return Known::of_kernel(self.base.known().kernel.clone());
        }
        let truncated = |exponential| {
            Arc::new(Truncated { conditioning: self.conditioning.clone(), exponential })
                as Arc<dyn Kernel<M::Scalar>>
        };
        Known::of_kernel(self.exponential().ok().map(truncated))
    }

    pub(super) fn ln_variance(
        &self,
        _: &Known<M::Scalar>,
        x: &ArrayRef1<M::Scalar>,
        y: &ArrayRef1<M::Scalar>,
    ) -> Option<f64> {
        let exponential = self.exponential().ok()?;
        let [(u, left), (v, right)] =
            [(0, x), (1, y)].map(|(side, x)| self.image(&exponential, side, x.view()));
        Some(self.base.ln_variance(&u, &v)? + 2.0 * (left + right))
    }

    /// The image of a point, as a point of the map, and the logarithm of its factor.
    fn image(
        &self,
        exponential: &Exponential,
        side: usize,
        x: ArrayView1<'_, M::Scalar>,
    ) -> (Array1<M::Scalar>, f64) {
        let point: Vec<f64> = exponential.lengthscale.divide(x).collect();
        let image = self.conditioning.image(side, &point);
        let factor = self.conditioning.log_factor(exponential.row, side, &point, &image);
        // The map divides by its lengthscale.
        let scaled = |(k, u): (usize, &f64)| M::Scalar::saturated(u * exponential.lengthscale.at(k));
        (image.iter().enumerate().map(scaled).collect(), factor)
    }
}

impl<M> Conditioned<M> {
    pub(super) fn dim(&self) -> usize {
        self.conditioning.dim()
    }

    pub(super) fn children(&self) -> Vec<&M> {
        vec![&self.base]
    }

    pub(super) fn children_mut(&mut self) -> Vec<&mut M> {
        vec![&mut self.base]
    }

    pub(super) fn try_map<N, E>(
        &self,
        mut each: impl FnMut(&M) -> Result<N, E>,
    ) -> Result<Conditioned<N>, E> {
        Ok(Conditioned { conditioning: self.conditioning.clone(), base: each(&self.base)? })
    }
}

/// Images of rows as points of a map, and the logarithms of their factors.
struct Images<T> {
    points: Array2<T>,
    log_factors: Vec<f64>,
}

impl<T: Real> Conditioned<Map<T>> {
    /// The plan of the map at transformed points; for the identity the plan of the map itself.
    pub(super) fn lower(&self) -> Result<MapPlan<T>> {
        let (plan, exponential) = (self.base.program().plan().clone(), self.exponential()?);
        if self.conditioning.is_identity() {
            return Ok(plan);
        }
        let affine = self.conditioning.affine::<T>(&exponential);
        Ok(MapPlan::Conditioned(engine::ConditionedPlan::new(plan, affine, &exponential.lengthscale)?))
    }

    /// Whether pairwise estimates of the map are not products of its features.
    fn is_of_hybrid(&self) -> bool {
        match self.base.composite() {
            Some(Composite::Hybrid(_)) => true,
            Some(Composite::Conditioned(conditioned)) => conditioned.is_of_hybrid(),
            _ => false,
        }
    }

    /// The estimates of paired rows, from estimates of the map at the images; `None` if products of features give them.
    pub(super) fn estimates(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Option<Result<Array1<SignedLog>>> {
        self.is_of_hybrid().then(|| self.of_rows(x, y))
    }

    fn of_rows(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array1<SignedLog>> {
        let (left, right) = (self.images(0, x)?, self.images(1, y)?);
        let estimates = self.base.log_estimate_rows(&left.points, &right.points)?;
        let factors = left.log_factors.iter().zip(&right.log_factors).map(|(left, right)| left + right);
        Ok(estimates.iter().zip(factors).map(|(estimate, factor)| estimate.scaled(factor)).collect())
    }

    /// The estimates of pairs of rows, from estimates of the map at the images; `None` if products of features give them.
    pub(super) fn estimates_of_pairs(
        &self,
        x: &ArrayRef2<T>,
        y: &ArrayRef2<T>,
        pairs: &[(usize, usize)],
    ) -> Option<Result<Array1<SignedLog>>> {
        let of = || {
            let (left, right) = (self.images(0, x)?, self.images(1, y)?);
            let estimates = self.base.log_estimate_pairs(&left.points, &right.points, pairs)?;
            let factors = pairs.iter().map(|(i, j)| left.log_factors[*i] + right.log_factors[*j]);
            Ok(estimates.iter().zip(factors).map(|(estimate, factor)| estimate.scaled(factor)).collect())
        };
        self.is_of_hybrid().then(of)
    }

    /// The estimates of all pairs, from estimates of the map at the images; `None` if products of features give them.
    pub(super) fn gram(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Option<Result<Array2<T>>> {
        self.is_of_hybrid().then(|| self.of_pairs(x, y))
    }

    fn of_pairs(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array2<T>> {
        let (left, right) = (self.images(0, x)?, self.images(1, y)?);
        let mut gram = self.base.gram(&left.points, &right.points)?;
        for ((i, j), entry) in gram.indexed_iter_mut() {
            let factor = (left.log_factors[i] + right.log_factors[j]).exp();
            let (estimate, product) = (entry.widen(), entry.widen() * factor);
            let safe = factor.is_normal() && estimate.is_normal() && product.is_normal();
            let alone = || self.of_rows(&x.slice(s![i..=i, ..]), &y.slice(s![j..=j, ..]));
            *entry = T::narrow(if safe { product } else { alone()?[0].value() });
        }
        Ok(gram)
    }

    fn images(&self, side: usize, x: &ArrayRef2<T>) -> Result<Images<T>> {
        let exponential = self.exponential()?;
        let (rank, of_factor) = (self.conditioning.rank(), size_of::<f64>());
        check_memory(
            "images of points",
            x.nrows(),
            rank.saturating_mul(size_of::<T>()).saturating_add(of_factor),
        )?;
        let mut points = Array2::zeros((x.nrows(), self.conditioning.rank()));
        let image = |(x, mut out): (ArrayView1<'_, T>, ArrayViewMut1<'_, T>)| {
            let (image, log_factor) = self.image(&exponential, side, x);
            out.assign(&image);
            log_factor
        };
        let log_factors = x.rows().into_iter().zip(points.rows_mut()).map(image).collect();
        Ok(Images { points, log_factors })
    }
}

impl<M: Identify> Identify for Conditioned<M> {
    fn identify(&self, digest: &mut Digest) {
        (&self.conditioning, &self.base).identify(digest);
    }
}

impl<M: std::fmt::Display> std::fmt::Display for Conditioned<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (r, d) = (self.conditioning.rank(), self.conditioning.dim());
        let truncated = if r < d { format!(" truncated to {r} of {d} dimensions") } else { String::new() };
        write!(f, "conditioned{truncated} [{}]", self.base)
    }
}

/// The kernel K_r(x, y) = exp(u·v + x·c_y + c_x·y − c_x·c_y) of r coordinates of u and v, times the row factors of the
/// original kernel.
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

    fn identity(&self) -> Option<Identity> {
        let mut digest = Digest::new();
        digest.text("truncated");
        (&self.conditioning, &self.exponential.lengthscale).identify(&mut digest);
        self.exponential.row.identify(&mut digest);
        Some(digest.into())
    }
}

once!(Map::<T>::conditioned);
