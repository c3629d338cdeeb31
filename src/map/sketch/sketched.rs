//! [`Sketched`]: the map of a sketch.

use std::sync::Arc;

use super::SketchDraw;
use crate::Real;
use crate::digest::identified;
use crate::engine::Lift;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::map::FeatureMap;
use crate::map::definition::{Definition, Setting};
use crate::theory::Pair;

/// The map of a [`Sketch`](super::Sketch), which is given where other maps take their frequencies.
///
/// # Definition
/// Features, kernel, variance and cost are those that the sketch states. Estimates are unbiased if the sketch says so. The map takes no
/// matrix, and its parameters have no gradients.
///
/// # Example
/// `Sketched.recipe(sketch, kernel)` is a recipe, which [`draw`](crate::Recipe::draw) makes a map of; see
/// [`Sketch`](super::Sketch#example).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sketched;

identified! { Sketched {} }

impl Sketched {
    fn draw<'a>(&self, setting: Setting<'a>) -> Result<&'a SketchDraw> {
        setting.omega.sketch(self.name())
    }
}

impl Definition for Sketched {
    fn name(&self) -> &'static str {
        "sketched"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        let draw = self.draw(setting)?;
        draw.check()?;
        if draw.serves(setting.kernel) { Ok(()) } else { Err(setting.refused(draw.name())) }
    }

    fn lift(&self) -> Option<Lift> {
        None
    }

    fn takes_matrix(&self) -> bool {
        false
    }

    fn feature_dim(&self, setting: Setting<'_>) -> usize {
        self.draw(setting).map_or(0, SketchDraw::feature_dim)
    }

    fn features<T: Real>(&self, setting: Setting<'_>) -> Result<Arc<dyn FeatureMap<T>>> {
        self.draw(setting)?.features(setting.kernel)
    }

    fn kernel<T: Real>(&self, setting: Setting<'_>) -> Option<Box<dyn Kernel<T>>> {
        self.draw(setting).ok()?.kernel(setting.kernel)
    }

    fn log_variance(&self, setting: Setting<'_>, u: &[f64], v: &[f64], _: &Pair) -> Option<f64> {
        self.draw(setting).ok()?.log_variance(setting.kernel, u, v)
    }
}
