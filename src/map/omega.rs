//! [`Omega`]: what is random in a map, drawn or to be drawn.

use std::sync::Arc;

use super::{Sketch, SketchDraw};
use crate::digest::{Digest, Identify};
use crate::error::{Error, Result};
use crate::frequency::{CountLaw, Counts, Draw, DrawCounts, Frequencies};
use crate::theory::Law;

/// What is random in a map, drawn or to be drawn: frequencies, counts, or a sketch.
///
/// Converts from [`Frequencies`], [`Counts`], a [`Draw`] or [`DrawCounts`], from a [`Sketch`] or [`SketchDraw`], and from d for maps
/// without randomness.
/// Maps made from the same `Arc` share its memory. Frequencies of the same draw and seed are projected only once, whether or
/// not they share memory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Omega {
    /// Real frequencies.
    Frequencies(Arc<Frequencies>),
    /// Integer frequencies.
    Counts(Arc<Counts>),
    /// Real frequencies that are to be drawn.
    Draw(Draw),
    /// Counts that are to be drawn.
    DrawCounts(DrawCounts),
    /// Random numbers of another kind, drawn or to be drawn.
    Sketch(SketchDraw),
    /// No frequencies: the map is a function of the coordinates of points in ℝᵈ.
    None(usize),
}

macro_rules! from {
    ($($source:ty => $variant:ident($convert:expr)),* $(,)?) => {$(
        impl From<$source> for Omega {
            fn from(source: $source) -> Self {
                let convert: fn($source) -> _ = $convert;
                Omega::$variant(convert(source))
            }
        }
    )*};
}

from! {
    Frequencies => Frequencies(Arc::new),
    Arc<Frequencies> => Frequencies(|omega| omega),
    Counts => Counts(Arc::new),
    Arc<Counts> => Counts(|omega| omega),
    Draw => Draw(|draw| draw),
    DrawCounts => DrawCounts(|draw| draw),
    SketchDraw => Sketch(|draw| draw),
    usize => None(|d| d),
}

impl From<&Arc<Frequencies>> for Omega {
    fn from(omega: &Arc<Frequencies>) -> Self {
        Omega::Frequencies(omega.clone())
    }
}

impl<S: Sketch> From<S> for Omega {
    fn from(sketch: S) -> Self {
        Omega::Sketch(sketch.into())
    }
}

impl Omega {
    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        match self {
            Omega::Frequencies(omega) => omega.dim(),
            Omega::Counts(omega) => omega.dim(),
            Omega::Draw(draw) => draw.d,
            Omega::DrawCounts(draw) => draw.d,
            Omega::Sketch(draw) => draw.dim(),
            Omega::None(d) => *d,
        }
    }

    /// m, the number of frequencies, or of independent terms of a sketch; 0 if there are none.
    pub fn m(&self) -> usize {
        match self {
            Omega::Frequencies(omega) => omega.m(),
            Omega::Counts(omega) => omega.m(),
            Omega::Draw(draw) => draw.m,
            Omega::DrawCounts(draw) => draw.m,
            Omega::Sketch(draw) => draw.m(),
            Omega::None(_) => 0,
        }
    }

    /// Whether nothing is left to be drawn.
    pub fn is_drawn(&self) -> bool {
        match self {
            Omega::Draw(_) | Omega::DrawCounts(_) => false,
            Omega::Sketch(draw) => draw.seed().is_some(),
            Omega::Frequencies(_) | Omega::Counts(_) | Omega::None(_) => true,
        }
    }

    /// The frequencies or the sketch, drawn from `seed` if that is not done yet. The result does not depend on other draws of the seed.
    ///
    /// # Errors
    /// The errors of the draw.
    pub fn drawn(&self, seed: u64) -> Result<Omega> {
        Ok(match self {
            Omega::Draw(draw) => draw.draw(seed)?.into(),
            Omega::DrawCounts(draw) => draw.draw(seed)?.into(),
            Omega::Sketch(draw) if draw.seed().is_none() => draw.clone().with_seed(seed).into(),
            drawn => drawn.clone(),
        })
    }

    /// A draw of `count(m)` frequencies or terms of a sketch instead of m. The result is `None` if these were not drawn by name, if the
    /// sketch has one size, or if there is no such number.
    pub(crate) fn with_count(&self, count: &dyn Fn(usize) -> Option<usize>) -> Option<Omega> {
        let real = |draw: &Draw| Some(Draw { m: count(draw.m)?, ..draw.clone() }.into());
        let counts = |draw: &DrawCounts| Some(DrawCounts { m: count(draw.m)?, ..draw.clone() }.into());
        match self {
            Omega::Frequencies(omega) => real(omega.drawn_from()?.0),
            Omega::Counts(omega) => counts(omega.drawn_from()?.0),
            Omega::Draw(draw) => real(draw),
            Omega::DrawCounts(draw) => counts(draw),
            Omega::Sketch(draw) => Some(draw.with_m(count(draw.m())?)?.into()),
            Omega::None(_) => None,
        }
    }

    /// The seed of the frequencies, if they were drawn by name.
    pub(crate) fn seed(&self) -> Option<u64> {
        match self {
            Omega::Frequencies(omega) => Some(omega.drawn_from()?.1),
            Omega::Counts(omega) => Some(omega.drawn_from()?.1),
            Omega::Sketch(draw) => draw.seed(),
            _ => None,
        }
    }

    /// The law of real frequencies, drawn or to be drawn; `None` for others.
    pub(crate) fn law(&self) -> Option<Law> {
        match self {
            Omega::Frequencies(omega) => Some(omega.law().clone()),
            Omega::Draw(draw) => Some(draw.law()),
            _ => None,
        }
    }

    /// The dimension to which points are padded, for frequencies drawn or to be drawn.
    pub(crate) fn padded_dim(&self) -> usize {
        match self {
            Omega::Frequencies(omega) => omega.padded_dim(),
            Omega::Draw(draw) => draw.padded_dim(),
            Omega::Counts(_) | Omega::DrawCounts(_) | Omega::Sketch(_) | Omega::None(_) => self.dim(),
        }
    }

    /// Whether both are the same entry of a recipe's table of draws: equal draws, or numbers of equal provenance with the
    /// same law. Numbers are never compared.
    pub(crate) fn same(&self, other: &Omega) -> bool {
        match (self, other) {
            (Omega::None(a), Omega::None(b)) => a == b,
            // The law of a draw is part of it.
            (Omega::Draw(_), Omega::Draw(_)) | (Omega::DrawCounts(_), Omega::DrawCounts(_)) => {
                self.same_draw(other)
            }
            _ => {
                let laws = self.law() == other.law() && count_law(self) == count_law(other);
                laws && self.same_draw(other)
            }
        }
    }

    /// Whether maps on both depend on each other: equal draws, or numbers of equal provenance, whatever is stated of their
    /// law.
    pub(crate) fn same_draw(&self, other: &Omega) -> bool {
        match (self, other) {
            (Omega::Frequencies(a), Omega::Frequencies(b)) => a.same_draw(b),
            (Omega::Counts(a), Omega::Counts(b)) => a.same_draw(b),
            // Draws are compared by their bits too, as they are stored: a field may be NaN, which is not equal to itself.
            (Omega::Draw(a), Omega::Draw(b)) => a == b || Digest::of(a) == Digest::of(b),
            (Omega::DrawCounts(a), Omega::DrawCounts(b)) => a == b || Digest::of(a) == Digest::of(b),
            (Omega::Sketch(a), Omega::Sketch(b)) => a == b,
            _ => false,
        }
    }

    /// Accepts real frequencies, drawn or to be drawn, for a map of this name.
    pub(crate) fn check_real(&self, map: &'static str) -> Result<()> {
        let real = matches!(self, Omega::Frequencies(_) | Omega::Draw(_));
        if real { Ok(()) } else { Err(self.not("real frequencies", map)) }
    }

    /// Accepts counts, drawn or to be drawn, for a map of this name.
    pub(crate) fn check_counts(&self, map: &'static str) -> Result<()> {
        let counts = matches!(self, Omega::Counts(_) | Omega::DrawCounts(_));
        if counts { Ok(()) } else { Err(self.not("counts", map)) }
    }

    /// Real frequencies, for a map of this name.
    pub(crate) fn frequencies(&self, map: &'static str) -> Result<&Arc<Frequencies>> {
        match self {
            Omega::Frequencies(omega) => Ok(omega),
            Omega::Draw(_) => Err(Error::NotDrawn),
            other => Err(other.not("real frequencies", map)),
        }
    }

    /// Counts, for a map of this name.
    pub(crate) fn counts(&self, map: &'static str) -> Result<&Arc<Counts>> {
        match self {
            Omega::Counts(omega) => Ok(omega),
            Omega::DrawCounts(_) => Err(Error::NotDrawn),
            other => Err(other.not("counts", map)),
        }
    }

    /// A sketch, drawn or to be drawn, for a map of this name.
    pub(crate) fn sketch(&self, map: &'static str) -> Result<&SketchDraw> {
        match self {
            Omega::Sketch(draw) => Ok(draw),
            other => Err(other.not("a sketch", map)),
        }
    }

    /// The error that these are not the frequencies that a map needs.
    fn not(&self, expected: &'static str, map: &'static str) -> Error {
        let found = match self {
            Omega::Frequencies(_) | Omega::Draw(_) => "real frequencies",
            Omega::Counts(_) | Omega::DrawCounts(_) => "counts",
            Omega::Sketch(_) => "a sketch",
            Omega::None(_) => "only a dimension",
        };
        Error::Frequencies { map, expected, found }
    }

    /// The name under which frequencies are identified.
    fn tag(&self) -> &'static str {
        match self {
            Omega::Frequencies(_) => "frequencies",
            Omega::Counts(_) => "counts",
            Omega::Draw(_) => "draw",
            Omega::DrawCounts(_) => "draw of counts",
            Omega::Sketch(_) => "sketch",
            Omega::None(_) => "none",
        }
    }
}

impl Identify for Omega {
    fn identify(&self, digest: &mut Digest) {
        digest.text(self.tag());
        match self {
            Omega::Frequencies(omega) => omega.identify(digest),
            Omega::Counts(omega) => omega.identify(digest),
            Omega::Draw(draw) => draw.identify(digest),
            Omega::DrawCounts(draw) => draw.identify(digest),
            Omega::Sketch(draw) => draw.identify(digest),
            Omega::None(d) => d.identify(digest),
        }
    }
}

/// The law of counts, drawn or to be drawn; unknown for other frequencies.
pub(crate) fn count_law(omega: &Omega) -> &CountLaw {
    match omega {
        Omega::Counts(omega) => omega.law(),
        Omega::DrawCounts(draw) => &draw.law,
        _ => &CountLaw::Unknown,
    }
}
