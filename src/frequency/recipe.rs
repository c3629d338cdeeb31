//! Draws as plain data: [`Draw`] and [`DrawCounts`] can be stored, compared and repeated.

use rand::Rng;

use super::quasi::WithMarginal;
use super::{
    Antithetic, CountLaw, Counts, Coupling, Drawn, Frequencies, Givens, Hadamard, Halton, Independent,
    Orthogonal, Product, Radii, Simplex, SimplexPlus, Sobol, draw_geometric, draw_poisson, draw_with,
    rng_of_step,
};
use crate::error::{Error, Result};
use crate::kernel::{Marginal, Radius};

/// Any coupling of this crate, as plain data.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum AnyCoupling {
    /// [`Independent`].
    Independent,
    /// [`Orthogonal`].
    Orthogonal,
    /// [`Simplex`].
    Simplex(Simplex),
    /// [`SimplexPlus`].
    SimplexPlus(SimplexPlus),
    /// [`Hadamard`].
    Hadamard(Hadamard),
    /// [`Givens`].
    Givens(Givens),
    /// [`Halton`].
    Halton,
    /// [`Sobol`].
    Sobol,
    /// Independent coordinates of a named law.
    Product(AnyProduct),
    /// [`Antithetic`] pairs over another one.
    Antithetic(Box<AnyCoupling>),
}

impl AnyCoupling {
    fn as_dyn(&self) -> Box<dyn Coupling + '_> {
        match self {
            AnyCoupling::Independent => Box::new(Independent),
            AnyCoupling::Orthogonal => Box::new(Orthogonal),
            AnyCoupling::Simplex(coupling) => Box::new(*coupling),
            AnyCoupling::SimplexPlus(coupling) => Box::new(*coupling),
            AnyCoupling::Hadamard(coupling) => Box::new(*coupling),
            AnyCoupling::Givens(coupling) => Box::new(*coupling),
            AnyCoupling::Halton => Box::new(Halton),
            AnyCoupling::Sobol => Box::new(Sobol),
            AnyCoupling::Product(product) => Box::new(*product),
            AnyCoupling::Antithetic(inner) => Box::new(Antithetic(inner.as_dyn())),
        }
    }
}

impl Coupling for AnyCoupling {
    fn capacity(&self, d: usize) -> usize {
        self.as_dyn().capacity(d)
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut dyn Rng) -> Result<Drawn> {
        self.as_dyn().draw_block(d, size, radii, rng)
    }
}

macro_rules! any_coupling {
    ($($coupling:ident => |$own:pat_param| $variant:expr),* $(,)?) => {$(
        impl From<$coupling> for AnyCoupling {
            fn from($own: $coupling) -> Self {
                $variant
            }
        }
    )*};
}

any_coupling! {
    Independent => |_| AnyCoupling::Independent,
    Orthogonal => |_| AnyCoupling::Orthogonal,
    Simplex => |own| AnyCoupling::Simplex(own),
    SimplexPlus => |own| AnyCoupling::SimplexPlus(own),
    Hadamard => |own| AnyCoupling::Hadamard(own),
    Givens => |own| AnyCoupling::Givens(own),
    Halton => |_| AnyCoupling::Halton,
    Sobol => |_| AnyCoupling::Sobol,
}

macro_rules! any_product {
    ($($coupling:ty => |$own:ident| ($points:ident, $marginal:expr)),* $(,)?) => {$(
        impl<M: Marginal> From<$coupling> for AnyCoupling {
            fn from($own: $coupling) -> Self {
                AnyCoupling::Product(AnyProduct { points: Points::$points, law: $marginal.law() })
            }
        }
    )*};
}

any_product! {
    Product<M> => |own| (Independent, own.0),
    WithMarginal<Halton, M> => |own| (Halton, own.marginal),
    WithMarginal<Sobol, M> => |own| (Sobol, own.marginal),
}

impl<C: Into<AnyCoupling>> From<Antithetic<C>> for AnyCoupling {
    fn from(Antithetic(inner): Antithetic<C>) -> Self {
        AnyCoupling::Antithetic(Box::new(inner.into()))
    }
}

/// Frequencies with independent coordinates of a named law, as plain data.
///
/// Made from a [`Product`], [`Sobol::with_marginal`] or [`Halton::with_marginal`]. Drawing is an error
/// ([`Sampler`](Error::Sampler)) for a [`Marginal`] of your own, which has no name to store.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct AnyProduct {
    /// The points of the unit cube.
    pub points: Points,
    /// The law of a coordinate.
    pub law: Radius,
}

/// The points of the unit cube from which coordinates are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Points {
    /// Independent, uniform.
    Independent,
    /// Of the [`Halton`] sequence.
    Halton,
    /// Of the [`Sobol`] sequence.
    Sobol,
}

impl Coupling for AnyProduct {
    fn capacity(&self, d: usize) -> usize {
        match self.points {
            Points::Independent => Independent.capacity(d),
            Points::Halton => Halton.capacity(d),
            Points::Sobol => Sobol.capacity(d),
        }
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut dyn Rng) -> Result<Drawn> {
        let marginal = self.law.marginal()?;
        match self.points {
            Points::Independent => Product(marginal).draw_block(d, size, radii, rng),
            Points::Halton => Halton.with_marginal(marginal).draw_block(d, size, radii, rng),
            Points::Sobol => Sobol.with_marginal(marginal).draw_block(d, size, radii, rng),
        }
    }
}

/// The arguments of [`draw_with`] as plain data.
///
/// With one seed, draws are independent if their streams differ; equal recipes with equal streams give the same draw.
///
/// ```
/// use random_features::frequency::{Draw, Orthogonal, draw};
/// let plan = Draw::new(16, 40, Orthogonal).with_stream(3);
/// let omega = draw(16, 40, &Orthogonal, &mut random_features::rng_of_step(7, 3))?;
/// assert_eq!(plan.of_seed(7)?, omega);
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Draw {
    /// d.
    pub d: usize,
    /// m.
    pub m: usize,
    /// How the frequencies depend on each other.
    pub coupling: AnyCoupling,
    /// The law of their norms; that of a coupling with coordinates of their own law does not use it.
    pub radii: Radius,
    /// Which of the independent streams of a seed to draw from.
    pub stream: u64,
}

impl Draw {
    /// m frequencies in ℝᵈ with radii χ, from stream 0. Draws that must be independent need different
    /// [streams](Draw::with_stream).
    pub fn new(d: usize, m: usize, coupling: impl Into<AnyCoupling>) -> Self {
        Draw { d, m, coupling: coupling.into(), radii: Radius::Chi, stream: 0 }
    }

    /// The same draw with radii of another law, which must have a name: those of this crate have.
    pub fn with_radii(self, radii: impl Radii) -> Self {
        Draw { radii: radii.law(), ..self }
    }

    /// The same draw from another stream.
    pub fn with_stream(self, stream: u64) -> Self {
        Draw { stream, ..self }
    }

    /// The frequencies of this recipe for a seed.
    ///
    /// # Errors
    /// As [`draw_with`]; [`Sampler`](Error::Sampler) if a law has no name.
    pub fn of_seed(&self, seed: u64) -> Result<Frequencies> {
        let mut rng = rng_of_step(seed, self.stream);
        draw_with(self.d, self.m, &self.coupling, self.radii.radii()?.as_ref(), &mut rng)
    }
}

/// The recipe of a draw of counts, as plain data.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DrawCounts {
    /// d.
    pub d: usize,
    /// m.
    pub m: usize,
    /// Their law.
    pub law: CountLaw,
    /// Which of the independent streams of a seed to draw from.
    pub stream: u64,
}

impl DrawCounts {
    /// m counts in ℕᵈ of this law, from stream 0. Draws that must be independent need different
    /// [streams](DrawCounts::with_stream).
    pub fn new(d: usize, m: usize, law: CountLaw) -> Self {
        DrawCounts { d, m, law, stream: 0 }
    }

    /// The same draw from another stream.
    pub fn with_stream(self, stream: u64) -> Self {
        DrawCounts { stream, ..self }
    }

    /// The counts.
    ///
    /// # Errors
    /// As [`draw_poisson`] and [`draw_geometric`]; [`Law`](Error::Law) if the law is not known.
    pub fn of_seed(&self, seed: u64) -> Result<Counts> {
        let mut rng = rng_of_step(seed, self.stream);
        match &self.law {
            CountLaw::Poisson(rates) => draw_poisson(self.d, self.m, rates.clone(), &mut rng),
            CountLaw::Geometric(p) => draw_geometric(self.d, self.m, *p, &mut rng),
            law => Err(Error::Law { expected: "Poisson or geometric", found: law.name() }),
        }
    }
}
