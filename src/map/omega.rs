//! [`Omega`]: the frequencies of a map, drawn or to be drawn.

use std::sync::Arc;

use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::frequency::{CountLaw, Counts, Draw, DrawCounts, Frequencies};

/// The frequencies of a map, drawn or to be drawn.
///
/// Converts from [`Frequencies`], [`Counts`], a [`Draw`] or [`DrawCounts`], and from d for maps without frequencies.
/// Maps made from the same `Arc` share its memory. Equal frequencies are projected only once, whether or not they share
/// memory.
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
    usize => None(|d| d),
}

impl From<&Arc<Frequencies>> for Omega {
    fn from(omega: &Arc<Frequencies>) -> Self {
        Omega::Frequencies(omega.clone())
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
            Omega::None(d) => *d,
        }
    }

    /// m, the number of frequencies; 0 if there are none.
    pub fn count(&self) -> usize {
        match self {
            Omega::Frequencies(omega) => omega.count(),
            Omega::Counts(omega) => omega.count(),
            Omega::Draw(draw) => draw.m,
            Omega::DrawCounts(draw) => draw.m,
            Omega::None(_) => 0,
        }
    }

    /// Whether all frequencies are drawn.
    pub fn is_drawn(&self) -> bool {
        !matches!(self, Omega::Draw(_) | Omega::DrawCounts(_))
    }

    /// The frequencies, drawn from `seed` if they are not drawn yet. The result does not depend on other draws of the seed.
    ///
    /// # Errors
    /// Those of the draw.
    pub fn drawn(&self, seed: u64) -> Result<Omega> {
        Ok(match self {
            Omega::Draw(draw) => draw.of_seed(seed)?.into(),
            Omega::DrawCounts(draw) => draw.of_seed(seed)?.into(),
            drawn => drawn.clone(),
        })
    }

    /// Whether both are equal; pointers are compared first.
    pub(crate) fn same(&self, other: &Omega) -> bool {
        match (self, other) {
            (Omega::Frequencies(a), Omega::Frequencies(b)) if Arc::ptr_eq(a, b) => true,
            (Omega::Counts(a), Omega::Counts(b)) if Arc::ptr_eq(a, b) => true,
            (a, b) => a == b,
        }
    }

    /// The law of real frequencies, drawn or to be drawn; `None` for others.
    pub(crate) fn law(&self) -> Option<crate::theory::Law> {
        match self {
            Omega::Frequencies(omega) => Some(omega.law().clone()),
            _ => None,
        }
    }

    pub(crate) fn padded_dim(&self) -> usize {
        match self {
            Omega::Frequencies(omega) => omega.padded_dim(),
            other => other.dim(),
        }
    }

    /// Accepts real frequencies, drawn or to be drawn, for a map of this name.
    pub(crate) fn check_real(&self, map: &'static str) -> Result<()> {
        match self {
            Omega::Frequencies(_) | Omega::Draw(_) => Ok(()),
            other => Err(other.not("real frequencies", map)),
        }
    }

    /// Accepts counts, drawn or to be drawn, for a map of this name.
    pub(crate) fn check_counts(&self, map: &'static str) -> Result<()> {
        match self {
            Omega::Counts(_) | Omega::DrawCounts(_) => Ok(()),
            other => Err(other.not("counts", map)),
        }
    }

    /// Real frequencies, for a map of this name.
    pub(crate) fn frequencies(&self, map: &'static str) -> Result<&Arc<Frequencies>> {
        match self {
            Omega::Frequencies(omega) => Ok(omega),
            other => Err(other.not("real frequencies", map)),
        }
    }

    /// Counts, for a map of this name.
    pub(crate) fn counts(&self, map: &'static str) -> Result<&Arc<Counts>> {
        match self {
            Omega::Counts(omega) => Ok(omega),
            other => Err(other.not("counts", map)),
        }
    }

    /// The error that these are not the frequencies that a map needs.
    fn not(&self, expected: &'static str, map: &'static str) -> Error {
        let found = match self {
            Omega::Draw(_) | Omega::DrawCounts(_) => return Error::NotDrawn,
            Omega::None(_) => "only a dimension",
            Omega::Frequencies(_) | Omega::Counts(_) => self.name(),
        };
        Error::Frequencies { map, expected, found }
    }

    fn name(&self) -> &'static str {
        match self {
            Omega::Frequencies(_) => "real frequencies",
            Omega::Counts(_) => "counts",
            Omega::Draw(_) | Omega::DrawCounts(_) => "frequencies that are not drawn yet",
            Omega::None(_) => "no frequencies",
        }
    }
}

impl crate::digest::Identify for Omega {
    fn identify(&self, digest: &mut Digest) {
        digest.text(self.name());
        crate::digest::Identify::identify(&(self.dim()), digest);
        crate::digest::Identify::identify(&(self.count()), digest);
        match self {
            Omega::Frequencies(omega) => {
                omega.hash_numbers(digest);
                digest.text(&format!("{:?}", omega.law()));
            }
            Omega::Counts(omega) => {
                omega.rows().iter().for_each(|count| std::hash::Hasher::write_u64(digest, *count));
                digest.text(&format!("{:?}", omega.law()));
            }
            Omega::Draw(draw) => digest.text(&format!("{draw:?}")),
            Omega::DrawCounts(draw) => digest.text(&format!("{draw:?}")),
            Omega::None(_) => {}
        }
    }
}

/// The law of counts; unknown for other frequencies.
pub(crate) fn count_law(omega: &Omega) -> &CountLaw {
    match omega {
        Omega::Counts(omega) => omega.law(),
        Omega::DrawCounts(draw) => &draw.law,
        _ => &CountLaw::Unknown,
    }
}
