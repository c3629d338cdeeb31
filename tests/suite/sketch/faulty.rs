//! Sketches that do not keep what a sketch must.

use ndarray::ArrayView2;
use random_features::extend::{Facts, FeatureMap, Form, Sketch, SketchNumbers, Tile};
use random_features::map::{AnyKernel, Side};
use random_features::rand::Rng;
use random_features::{Real, Result};

/// What is wrong with a sketch of one feature, 1, of points in ℝ¹.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Its numbers do not give it again.
    Numbers,
    /// Its map states two features.
    Facts,
    /// Its map writes nothing.
    Unwritten,
}

#[derive(Clone, Copy, Debug)]
pub struct Faulty(pub Fault);

impl Sketch for Faulty {
    const NAME: &'static str = "faulty";
    type Drawn = Faulty;

    fn dim(&self) -> usize {
        1
    }

    fn feature_dim(&self) -> usize {
        1
    }

    fn numbers(&self) -> SketchNumbers {
        SketchNumbers { integers: vec![self.0 as u64], reals: Vec::new() }
    }

    fn of_numbers(_: &SketchNumbers) -> Result<Self> {
        Ok(Faulty(Fault::Facts))
    }

    fn serves(&self, target: &AnyKernel) -> bool {
        matches!(target, AnyKernel::Implied(_))
    }

    fn draw(&self, _: &AnyKernel, _: &mut dyn Rng) -> Result<Faulty> {
        Ok(*self)
    }
}

impl<T: Real> FeatureMap<T> for Faulty {
    fn facts(&self) -> Facts {
        Facts::new(1, vec![if self.0 == Fault::Facts { 2 } else { 1 }])
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, _: Form, tile: &mut Tile<'_, T>) {
        for i in (0..x.nrows()).filter(|_| self.0 != Fault::Unwritten) {
            let row = tile.row(i);
            row.values.fill(T::one());
            row.log_scales.fill(0.0);
        }
    }
}
