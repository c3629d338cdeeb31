//! The methods of the crate's couplings that users call, so that no trait has to be imported to draw.

use super::draw::draw_with;
use super::quasi::{Net, WithMarginal};
use super::{
    Antithetic, AnyCoupling, CoupledRadii, Coupling, Frequencies, Givens, Hadamard, Halton, Independent,
    Orthogonal, Product, Simplex, SimplexPlus, Sobol, WithRadii,
};
use crate::error::Result;
use crate::kernel::{Chi, Marginal, Radii};
use crate::theory::RadiusCoupling;

macro_rules! direct {
    ($([$($bounds:tt)*] $Coupling:ty),* $(,)?) => {$(
        impl<$($bounds)*> $Coupling {
            /// Draws m frequencies in ℝᵈ from a seed, in independent blocks; the last block may be partial.
            ///
            /// # Errors
            /// [`Parameter`](crate::Error::Parameter) if `d` or `m` is 0, the coupling does not exist in dimension `d`, or
            /// one of its options is out of range; [`Memory`](crate::Error::Memory), before anything large is drawn, if
            /// all m frequencies do not fit in memory.
            pub fn draw(&self, d: usize, m: usize, seed: u64) -> Result<Frequencies> {
                draw_with(d, m, self, &Chi, seed)
            }

            /// Sets the law of the radii ‖ω‖, and with it the kernel: `Orthogonal.with_radii(Radius::RootDim)` is of the
            /// regularised softmax kernel ([`Radius`](crate::extend::Radius)).
            #[must_use]
            pub fn with_radii<Law: Radii>(self, radii: Law) -> WithRadii<Self, Law> {
                WithRadii::new(self, radii)
            }
        }
    )*};
}

macro_rules! coupled {
    ($($Coupling:ty),* $(,)?) => {$(
        impl $Coupling {
            /// Sets how the radii ‖ω‖ of a block depend on each other: `Orthogonal.with_coupled_radii(RadiusCoupling::Paired)`.
            ///
            /// Each row keeps its law. Trigonometric and hyperbolic features gain most.
            #[must_use]
            pub fn with_coupled_radii(self, radii: RadiusCoupling) -> CoupledRadii<Self> {
                CoupledRadii { coupling: self, radii }
            }
        }
    )*};
}

coupled! { Orthogonal, Simplex, Hadamard, Givens }

impl dyn Coupling + '_ {
    /// Draws m frequencies in ℝᵈ from a seed, in independent blocks; the last block may be partial.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if `d` or `m` is 0, the coupling does not exist in dimension `d`, or
    /// one of its options is out of range; [`Memory`](crate::Error::Memory), before anything large is drawn, if
    /// all m frequencies do not fit in memory.
    pub fn draw(&self, d: usize, m: usize, seed: u64) -> Result<Frequencies> {
        draw_with(d, m, self, &Chi, seed)
    }

    /// Sets the law of the radii ‖ω‖, and with it the kernel.
    #[must_use]
    pub fn with_radii<Law: Radii>(&self, radii: Law) -> WithRadii<&Self, Law> {
        WithRadii::new(self, radii)
    }
}

direct! {
    [] Independent,
    [] Orthogonal,
    [] Simplex,
    [] SimplexPlus,
    [] Hadamard,
    [] Givens,
    [] Halton,
    [] Sobol,
    [] AnyCoupling,
    [C: Coupling] Antithetic<C>,
    [C: Coupling] CoupledRadii<C>,
    [M: Marginal] Product<M>,
    [C: Coupling, R: Radii] WithRadii<C, R>,
    [N: Net, M: Marginal] WithMarginal<N, M>,
}
