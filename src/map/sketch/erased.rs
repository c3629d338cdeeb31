//! [`AnySketch`]: a sketch of any type.

use std::any::Any;
use std::sync::Arc;

use crate::generator::Generator;

use super::{AnyKernel, FeatureMap, Sketch, SketchNumbers};
use crate::digest::Identity;
use crate::error::Result;
use crate::kernel::{Exponential, Kernel};
use crate::{Real, SignedLog};

/// A [`Sketch`] whose type is not known.
pub(super) trait AnySketch: std::fmt::Debug + Send + Sync + Any {
    fn name(&self) -> &'static str;
    fn dim(&self) -> usize;
    fn feature_dim(&self) -> usize;
    fn numbers(&self) -> SketchNumbers;
    #[cfg(feature = "serde")]
    fn of_numbers(&self, numbers: &SketchNumbers) -> Result<Arc<dyn AnySketch>>;
    fn serves(&self, kernel: &AnyKernel) -> bool;
    fn draw(&self, kernel: &AnyKernel, rng: &mut Generator) -> Result<Arc<dyn DrawnMap>>;
    fn kernel(&self, kernel: &AnyKernel) -> Option<Arc<dyn Kernel<f64>>>;
    fn log_variance(&self, kernel: &AnyKernel, u: &[f64], v: &[f64]) -> Option<f64>;
    fn m(&self) -> usize;
    fn with_m(&self, m: usize) -> Option<Arc<dyn AnySketch>>;
}

impl<S: Sketch> AnySketch for S {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn dim(&self) -> usize {
        self.dim()
    }

    fn feature_dim(&self) -> usize {
        self.feature_dim()
    }

    fn numbers(&self) -> SketchNumbers {
        self.numbers()
    }

    #[cfg(feature = "serde")]
    fn of_numbers(&self, numbers: &SketchNumbers) -> Result<Arc<dyn AnySketch>> {
        Ok(Arc::new(S::of_numbers(numbers)?))
    }

    fn serves(&self, kernel: &AnyKernel) -> bool {
        self.serves(kernel)
    }

    fn draw(&self, kernel: &AnyKernel, rng: &mut Generator) -> Result<Arc<dyn DrawnMap>> {
        Ok(Arc::new(self.draw(kernel, rng)?))
    }

    fn kernel(&self, kernel: &AnyKernel) -> Option<Arc<dyn Kernel<f64>>> {
        self.kernel(kernel)
    }

    fn log_variance(&self, kernel: &AnyKernel, u: &[f64], v: &[f64]) -> Option<f64> {
        self.log_variance(kernel, u, v)
    }

    fn m(&self) -> usize {
        self.m()
    }

    fn with_m(&self, m: usize) -> Option<Arc<dyn AnySketch>> {
        self.with_m(m).map(|sketch| Arc::new(sketch) as _)
    }
}

/// A drawn map for both scalars.
pub(super) trait DrawnMap: FeatureMap<f32> + FeatureMap<f64> {}

impl<M: FeatureMap<f32> + FeatureMap<f64>> DrawnMap for M {}

/// The map for the scalar `T`, which is one of the two.
pub(super) fn of_scalar<T: Real>(map: Arc<dyn DrawnMap>) -> Option<Arc<dyn FeatureMap<T>>> {
    let (narrow, wide): (Arc<dyn FeatureMap<f32>>, Arc<dyn FeatureMap<f64>>) = (map.clone(), map);
    let both: [&dyn Any; 2] = [&narrow, &wide];
    both.into_iter().find_map(|map| map.downcast_ref::<Arc<dyn FeatureMap<T>>>().cloned())
}

/// A kernel that is computed in `f64`, for points of any scalar.
#[derive(Debug)]
pub(super) struct Widened(pub Arc<dyn Kernel<f64>>);

impl<T: Real> Kernel<T> for Widened {
    fn check_dim(&self, d: usize) -> Result<()> {
        self.0.check_dim(d)
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        let [x, y] = [x, y].map(|x| x.iter().map(|v| v.widen()).collect::<Vec<_>>());
        self.0.log_of_slices(&x, &y)
    }

    fn gradient_of_slices(&self, x: &[T], y: &[T], out: &mut [f64]) -> Option<f64> {
        let [x, y] = [x, y].map(|x| x.iter().map(|v| v.widen()).collect::<Vec<_>>());
        self.0.gradient_of_slices(&x, &y, out)
    }

    fn exponential(&self) -> Option<Exponential> {
        self.0.exponential()
    }

    fn identity(&self) -> Option<Identity> {
        self.0.identity()
    }
}
