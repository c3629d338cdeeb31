//! [`SketchDraw`]: a sketch that is drawn or to be drawn, as plain data.

use std::any::Any;
use std::sync::Arc;

use super::erased::{AnySketch, Widened, of_scalar};
use super::{AnyKernel, FeatureMap, Sketch};
use crate::digest::{Digest, identified};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::map::Facts;
use crate::map::ImportanceMixture;
use crate::map::check::check;
use crate::map::nystroem::NystroemSketch;
use crate::{Real, rng_of_step};

/// A [`Sketch`], which of its streams to draw from, and, once it is drawn, the seed.
///
/// Two draws are equal if the names and the numbers of their sketches are, to the bit, and their streams and seeds. Maps on draws that
/// are not equal are independent.
#[derive(Clone, Debug)]
pub struct SketchDraw {
    sketch: Arc<dyn AnySketch>,
    /// A hash of the sketch's name and its numbers.
    digest: u64,
    stream: u64,
    seed: Option<u64>,
}

identified! { SketchDraw { digest, stream, seed } }

/// A sketch does not change, so a panic leaves it as it was.
impl std::panic::UnwindSafe for SketchDraw {}
impl std::panic::RefUnwindSafe for SketchDraw {}

impl PartialEq for SketchDraw {
    fn eq(&self, other: &Self) -> bool {
        Digest::of(self) == Digest::of(other)
    }
}

impl<S: Sketch> From<S> for SketchDraw {
    fn from(sketch: S) -> Self {
        SketchDraw::new(sketch)
    }
}

impl SketchDraw {
    /// A draw of this sketch from stream 0, whose seed is given later. Equal draws that must be independent need different
    /// [streams](SketchDraw::with_stream).
    pub fn new(sketch: impl Sketch) -> Self {
        SketchDraw::of_any(Arc::new(sketch))
    }

    fn of_any(sketch: Arc<dyn AnySketch>) -> Self {
        let digest = Digest::of(&(sketch.name(), sketch.numbers()));
        SketchDraw { sketch, digest, stream: 0, seed: None }
    }

    /// Sets which of the independent streams of a seed to draw from.
    #[must_use]
    pub fn with_stream(self, stream: u64) -> Self {
        SketchDraw { stream, ..self }
    }

    /// Sets the seed, so that features are drawn when a map is made of it.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        SketchDraw { seed: Some(seed), ..self }
    }

    /// The seed; `None` if the sketch is still to be drawn.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The sketch, if it is of this type.
    pub fn sketch<S: Sketch>(&self) -> Option<&S> {
        let sketch: &dyn Any = self.sketch.as_ref();
        sketch.downcast_ref()
    }

    /// The name of the sketch.
    pub fn name(&self) -> &'static str {
        self.sketch.name()
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        self.sketch.dim()
    }

    /// D, the number of features.
    pub fn feature_dim(&self) -> usize {
        self.sketch.feature_dim()
    }

    /// m, the number of independent terms of an estimate.
    pub(in crate::map) fn m(&self) -> usize {
        self.sketch.m()
    }

    /// A draw of the sketch with m independent terms, from the stream of this one; `None` for a sketch of one size.
    pub(in crate::map) fn with_m(&self, m: usize) -> Option<Self> {
        let resized = SketchDraw::of_any(self.sketch.with_m(m)?).with_stream(self.stream);
        (resized.dim() == self.dim() && resized.m() == m).then_some(resized)
    }

    /// The number of landmarks, if these are Nyström features.
    pub(crate) fn landmark_count(&self) -> Option<usize> {
        self.sketch::<NystroemSketch>().map(NystroemSketch::landmark_count)
    }

    /// Whether the sketch is not one of this crate.
    pub(in crate::map) fn is_own(&self) -> bool {
        self.sketch::<NystroemSketch>().is_none() && self.sketch::<ImportanceMixture>().is_none()
    }

    /// Rejects impossible sizes.
    pub(super) fn check(&self) -> Result<()> {
        Facts::new(self.dim(), vec![self.feature_dim()]).checked().map(drop)
    }

    pub(super) fn serves(&self, kernel: &AnyKernel) -> bool {
        self.sketch.serves(kernel)
    }

    /// The features, drawn anew from the seed.
    pub(super) fn features<T: Real>(&self, kernel: &AnyKernel) -> Result<Arc<dyn FeatureMap<T>>> {
        let seed = self.seed.ok_or(Error::NotDrawn)?;
        let mut rng = rng_of_step(seed, Digest::of(&("sketch", [self.digest, self.stream])));
        let map = of_scalar::<T>(self.sketch.draw(kernel, &mut rng)?)
            .ok_or(Error::Unsupported { what: "a sketch of this scalar" })?;
        let facts = map.facts().checked()?;
        if facts.dim != self.dim() || facts.blocks != [self.feature_dim()] {
            let what = "its facts state another dimension or other features than its sketch";
            return Err(Error::Contract { what });
        }
        check(map.as_ref(), &facts)?;
        Ok(map)
    }

    /// The kernel that is estimated, if it is known.
    pub(super) fn kernel<T: Real>(&self, kernel: &AnyKernel) -> Option<Box<dyn Kernel<T>>> {
        self.sketch.kernel(kernel).map(|kernel| Box::new(Widened(kernel)) as _)
    }

    pub(super) fn log_variance(&self, kernel: &AnyKernel, u: &[f64], v: &[f64]) -> Option<f64> {
        self.sketch.log_variance(kernel, u, v)
    }
}

/// The stored form: the sketch by its name and its numbers.
#[cfg(feature = "serde")]
mod stored {
    use std::borrow::Cow;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    use super::super::SketchNumbers;
    use super::SketchDraw;
    use crate::map::sketch::kinds;

    #[derive(Serialize, Deserialize)]
    #[serde(rename = "SketchDraw")]
    struct StoredDraw<'a> {
        name: Cow<'a, str>,
        numbers: SketchNumbers,
        stream: u64,
        seed: Option<u64>,
    }

    /// Refuses a sketch that its numbers do not give again.
    impl Serialize for SketchDraw {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let numbers = self.sketch.numbers();
            let again = self.sketch.of_numbers(&numbers).map_err(ser::Error::custom)?;
            if SketchDraw::of_any(again).digest != self.digest {
                let message = format!("the numbers of a {} do not give it again", self.name());
                return Err(ser::Error::custom(message));
            }
            let SketchDraw { stream, seed, .. } = *self;
            StoredDraw { name: self.name().into(), numbers, stream, seed }.serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for SketchDraw {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let StoredDraw { name, numbers, stream, seed } = StoredDraw::deserialize(deserializer)?;
            let unknown = || {
                let advice = "read it within SketchKinds::reading";
                de::Error::custom(format!("“{name}” is a sketch that is not known here: {advice}"))
            };
            let read = kinds::reader(&name).ok_or_else(unknown)?;
            let draw = SketchDraw::of_any(read(&numbers).map_err(de::Error::custom)?);
            Ok(SketchDraw { seed, ..draw.with_stream(stream) })
        }
    }
}
