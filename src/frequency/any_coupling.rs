//! [`AnyCoupling`]: the couplings of this crate as plain data.

use crate::generator::Generator;

use super::coupling::{Coupling, Rows};
use super::quasi::WithMarginal;
use super::{
    Antithetic, CoupledRadii, Givens, Hadamard, Halton, Independent, Orthogonal, Product, RotationLaw,
    Simplex, SimplexPlus, Sobol,
};
use crate::error::Result;
use crate::kernel::{Marginal, Radii, Radius};
use crate::tagged::tagged;
use crate::theory::{BlockLaw, RadiusCoupling};

/// Any coupling of this crate, as plain data.
///
/// ```
/// use random_features::frequency::{Antithetic, Orthogonal};
/// use random_features::recipe::AnyCoupling;
/// let coupling: AnyCoupling = "antithetic orthogonal".parse()?;
/// assert_eq!(coupling, Antithetic(Orthogonal).into());
/// let message = "ortho".parse::<AnyCoupling>().unwrap_err().to_string();
/// assert!(message.starts_with("“ortho” cannot be read as a coupling"));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// It is read from the text that `Display` writes. The names are `independent`, `orthogonal`, `simplex`, `simplex plus`,
/// `hadamard`, `givens`, `halton` and `sobol`, also with `antithetic` before them. Options follow: `hadamard, 2 rounds`,
/// `simplex, truncated`, `simplex plus, 2 passes`, or a fast rotation, `simplex, hadamard, 2 rounds`. The names `product`,
/// `halton product` and `sobol product` are followed by the law of coordinates: `sobol product, cauchy`. Coupled radii stand at the
/// end: `orthogonal, paired radii`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum AnyCoupling {
    /// A coupling by itself.
    Plain(PlainCoupling),
    /// [`Antithetic`] pairs over a coupling.
    Antithetic(PlainCoupling),
    /// [`CoupledRadii`] over a coupling.
    CoupledRadii(CoupledRadii<PlainCoupling>),
}

tagged!(AnyCoupling, "a coupling" {
    "plain" => Plain(coupling: PlainCoupling),
    "antithetic" => Antithetic(coupling: PlainCoupling),
    "coupled radii" => CoupledRadii(coupling: CoupledRadii<PlainCoupling>),
});

/// Any coupling of this crate that is not made of another one, as plain data.
///
/// Drawing is an error ([`Sampler`](crate::Error::Sampler)) if coordinates have your own [`Marginal`], which has no name.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlainCoupling {
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
    /// [`Product`] of this law.
    Product(Radius),
    /// [`Halton::with_marginal`] of this law.
    HaltonProduct(Radius),
    /// [`Sobol::with_marginal`] of this law.
    SobolProduct(Radius),
}

tagged!(PlainCoupling, "a coupling" {
    "independent" => Independent,
    "orthogonal" => Orthogonal,
    "simplex" => Simplex(own: Simplex),
    "simplex plus" => SimplexPlus(own: SimplexPlus),
    "hadamard" => Hadamard(own: Hadamard),
    "givens" => Givens(own: Givens),
    "halton" => Halton,
    "sobol" => Sobol,
    "product" => Product(law: Radius),
    "halton product" => HaltonProduct(law: Radius),
    "sobol product" => SobolProduct(law: Radius),
});

/// Forwards a method to the coupling that is named.
macro_rules! of_each {
    ($own:expr, $coupling:ident => $answer:expr) => {
        match $own {
            PlainCoupling::Independent => of_each!(Independent, $coupling, $answer),
            PlainCoupling::Orthogonal => of_each!(Orthogonal, $coupling, $answer),
            PlainCoupling::Simplex(own) => of_each!(*own, $coupling, $answer),
            PlainCoupling::SimplexPlus(own) => of_each!(*own, $coupling, $answer),
            PlainCoupling::Hadamard(own) => of_each!(*own, $coupling, $answer),
            PlainCoupling::Givens(own) => of_each!(*own, $coupling, $answer),
            PlainCoupling::Halton => of_each!(Halton, $coupling, $answer),
            PlainCoupling::Sobol => of_each!(Sobol, $coupling, $answer),
            PlainCoupling::Product(law) => of_each!(Product(*law), $coupling, $answer),
            PlainCoupling::HaltonProduct(law) => {
                of_each!(Halton.with_marginal(*law), $coupling, $answer)
            }
            PlainCoupling::SobolProduct(law) => {
                of_each!(Sobol.with_marginal(*law), $coupling, $answer)
            }
        }
    };
    ($value:expr, $coupling:ident, $answer:expr) => {{
        let $coupling = $value;
        $answer
    }};
}

impl AnyCoupling {
    /// All couplings that a plan compares, with their default options, for radii or coordinates of this law in ℝᵈ.
    pub(crate) fn all(law: Radius, d: usize) -> Vec<Self> {
        if law.is_polar() {
            let plain = [
                Orthogonal.into(),
                Simplex::default().into(),
                Independent.into(),
                Antithetic(Orthogonal).into(),
                SimplexPlus::default().into(),
                Sobol.into(),
                Halton.into(),
                Hadamard::default().into(),
                Givens::default().into(),
            ];
            // In two dimensions coupled radii may raise the variance by 38 %; constant radii leave nothing to couple.
            let quantiles = law != Radius::RootDim && law.quantile(d, 0.5).is_some();
            let coupled =
                (d > 2 && quantiles).then(|| Orthogonal.with_coupled_radii(RadiusCoupling::Paired).into());
            plain.into_iter().chain(coupled).collect()
        } else {
            vec![
                AnyCoupling::Plain(PlainCoupling::Product(law)),
                AnyCoupling::Antithetic(PlainCoupling::Product(law)),
                AnyCoupling::Plain(PlainCoupling::SobolProduct(law)),
                AnyCoupling::Plain(PlainCoupling::HaltonProduct(law)),
            ]
        }
    }

    /// The coupling of the directions, without what is made of it.
    pub(crate) fn plain(&self) -> &PlainCoupling {
        match self {
            AnyCoupling::Plain(coupling) | AnyCoupling::Antithetic(coupling) => coupling,
            AnyCoupling::CoupledRadii(own) => &own.coupling,
        }
    }

    /// The rotation that makes products with the frequencies fast transforms; `None` for dense frequencies.
    pub(crate) fn fast_rotation(&self) -> Option<RotationLaw> {
        match self.plain() {
            PlainCoupling::Hadamard(own) => Some(RotationLaw::Hadamard(*own)),
            PlainCoupling::Givens(own) => Some(RotationLaw::Givens(*own)),
            PlainCoupling::Simplex(own) => Some(own.rotation).filter(|law| *law != RotationLaw::Haar),
            _ => None,
        }
    }
}

impl PlainCoupling {
    /// Rejects a law of coordinates without a name.
    fn check(&self) -> Result<()> {
        match self {
            PlainCoupling::Product(law)
            | PlainCoupling::HaltonProduct(law)
            | PlainCoupling::SobolProduct(law) => law.marginal().map(drop),
            _ => Ok(()),
        }
    }
}

impl Coupling for PlainCoupling {
    fn capacity(&self, d: usize) -> usize {
        of_each!(self, coupling => coupling.capacity(d))
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        self.check()?;
        of_each!(self, coupling => coupling.draw_block(d, size, radii, rng))
    }

    fn block_law(&self, d: usize, size: usize, radius: Radius) -> BlockLaw {
        of_each!(self, coupling => coupling.block_law(d, size, radius))
    }

    fn padded_dim(&self, d: usize) -> usize {
        of_each!(self, coupling => coupling.padded_dim(d))
    }

    fn recipe(&self) -> Option<AnyCoupling> {
        Some(AnyCoupling::Plain(*self))
    }
}

impl Coupling for AnyCoupling {
    fn capacity(&self, d: usize) -> usize {
        match self {
            AnyCoupling::Plain(coupling) => coupling.capacity(d),
            AnyCoupling::Antithetic(coupling) => Antithetic(coupling).capacity(d),
            AnyCoupling::CoupledRadii(coupling) => coupling.capacity(d),
        }
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        match self {
            AnyCoupling::Plain(coupling) => coupling.draw_block(d, size, radii, rng),
            AnyCoupling::Antithetic(coupling) => Antithetic(coupling).draw_block(d, size, radii, rng),
            AnyCoupling::CoupledRadii(coupling) => coupling.draw_block(d, size, radii, rng),
        }
    }

    fn block_law(&self, d: usize, size: usize, radius: Radius) -> BlockLaw {
        match self {
            AnyCoupling::Plain(coupling) => coupling.block_law(d, size, radius),
            AnyCoupling::Antithetic(coupling) => Antithetic(coupling).block_law(d, size, radius),
            AnyCoupling::CoupledRadii(coupling) => coupling.block_law(d, size, radius),
        }
    }

    fn padded_dim(&self, d: usize) -> usize {
        self.plain().padded_dim(d)
    }

    fn recipe(&self) -> Option<AnyCoupling> {
        Some(*self)
    }
}

/// Conversions of each coupling into plain data.
macro_rules! named {
    ($([$($M:ident)?] $Coupling:ty => |$own:pat_param| $plain:expr),* $(,)?) => {$(
        impl$(<$M: Marginal>)? From<$Coupling> for PlainCoupling {
            fn from($own: $Coupling) -> Self {
                $plain
            }
        }

        impl$(<$M: Marginal>)? From<$Coupling> for AnyCoupling {
            fn from(own: $Coupling) -> Self {
                AnyCoupling::Plain(own.into())
            }
        }
    )*};
}

named! {
    [] Independent => |_| PlainCoupling::Independent,
    [] Orthogonal => |_| PlainCoupling::Orthogonal,
    [] Simplex => |own| PlainCoupling::Simplex(own),
    [] SimplexPlus => |own| PlainCoupling::SimplexPlus(own),
    [] Hadamard => |own| PlainCoupling::Hadamard(own),
    [] Givens => |own| PlainCoupling::Givens(own),
    [] Halton => |_| PlainCoupling::Halton,
    [] Sobol => |_| PlainCoupling::Sobol,
    [M] Product<M> => |own| PlainCoupling::Product(own.0.law()),
    [M] WithMarginal<Halton, M> => |own| PlainCoupling::HaltonProduct(own.marginal.law()),
    [M] WithMarginal<Sobol, M> => |own| PlainCoupling::SobolProduct(own.marginal.law()),
}

impl<C: Into<PlainCoupling>> From<Antithetic<C>> for AnyCoupling {
    fn from(Antithetic(inner): Antithetic<C>) -> Self {
        AnyCoupling::Antithetic(inner.into())
    }
}

impl<C: Into<PlainCoupling>> From<CoupledRadii<C>> for AnyCoupling {
    fn from(CoupledRadii { coupling, radii }: CoupledRadii<C>) -> Self {
        AnyCoupling::CoupledRadii(CoupledRadii { coupling: coupling.into(), radii })
    }
}

impl From<PlainCoupling> for AnyCoupling {
    fn from(coupling: PlainCoupling) -> Self {
        AnyCoupling::Plain(coupling)
    }
}
