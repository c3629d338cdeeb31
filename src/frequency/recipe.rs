//! Draws as plain data: [`Draw`] and [`DrawCounts`] can be stored, compared and repeated.

use rand::Rng;

use super::{
    Antithetic, Chi, CountLaw, Counts, Coupling, Drawn, Frequencies, Givens, Hadamard, Halton, Independent,
    Orthogonal, Product, Radii, RootDim, Simplex, SimplexPlus, Sobol, draw_geometric, draw_poisson,
    draw_with, rng_of_step,
};
use crate::error::{Error, Result};
use crate::kernel::{Cauchy, RationalQuadratic, Smoothness};

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
    /// [`Product`] of [`Cauchy`] coordinates.
    Cauchy,
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
            AnyCoupling::Cauchy => Box::new(Product(Cauchy)),
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

impl From<Product<Cauchy>> for AnyCoupling {
    fn from(_: Product<Cauchy>) -> Self {
        AnyCoupling::Cauchy
    }
}

impl<C: Into<AnyCoupling>> From<Antithetic<C>> for AnyCoupling {
    fn from(Antithetic(inner): Antithetic<C>) -> Self {
        AnyCoupling::Antithetic(Box::new(inner.into()))
    }
}

/// Any law of the radii that this crate knows, as data.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum AnyRadii {
    /// [`Chi`].
    Chi,
    /// [`RootDim`].
    RootDim,
    /// Those of a Matérn kernel.
    Matern(Smoothness),
    /// Those of the rational quadratic kernel.
    RationalQuadratic(RationalQuadratic),
}

impl AnyRadii {
    fn as_dyn(&self) -> &dyn Radii {
        match self {
            AnyRadii::Chi => &Chi,
            AnyRadii::RootDim => &RootDim,
            AnyRadii::Matern(smoothness) => smoothness,
            AnyRadii::RationalQuadratic(kernel) => kernel,
        }
    }
}

macro_rules! any_radii {
    ($($radii:ident => |$own:pat_param| $variant:expr),* $(,)?) => {$(
        impl From<$radii> for AnyRadii {
            fn from($own: $radii) -> Self {
                $variant
            }
        }
    )*};
}

any_radii! {
    Chi => |_| AnyRadii::Chi,
    RootDim => |_| AnyRadii::RootDim,
    Smoothness => |own| AnyRadii::Matern(own),
    // Radii have no lengthscale: that of the kernel divides the points.
    RationalQuadratic => |own| AnyRadii::RationalQuadratic(own.without_lengthscale()),
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
pub struct Draw {
    /// d.
    pub d: usize,
    /// m.
    pub m: usize,
    /// How the frequencies depend on each other.
    pub coupling: AnyCoupling,
    /// The law of their norms.
    pub radii: AnyRadii,
    /// Which of the independent streams of a seed to draw from.
    pub stream: u64,
}

impl Draw {
    /// m frequencies in ℝᵈ with radii χ, from stream 0. Draws that must be independent need different
    /// [streams](Draw::with_stream).
    pub fn new(d: usize, m: usize, coupling: impl Into<AnyCoupling>) -> Self {
        Draw { d, m, coupling: coupling.into(), radii: AnyRadii::Chi, stream: 0 }
    }

    /// The same draw with other radii.
    pub fn with_radii(self, radii: impl Into<AnyRadii>) -> Self {
        Draw { radii: radii.into(), ..self }
    }

    /// The same draw from another stream.
    pub fn with_stream(self, stream: u64) -> Self {
        Draw { stream, ..self }
    }

    /// The frequencies of this recipe for a seed.
    ///
    /// # Errors
    /// As [`draw_with`].
    pub fn of_seed(&self, seed: u64) -> Result<Frequencies> {
        let mut rng = rng_of_step(seed, self.stream);
        draw_with(self.d, self.m, &self.coupling, self.radii.as_dyn(), &mut rng)
    }
}

/// The recipe of a draw of counts, as plain data.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
