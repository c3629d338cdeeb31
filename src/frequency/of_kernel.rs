//! Draws of the kernels: the law of the frequencies comes from the kernel, and the coupling adds how they depend on each other.

use super::draw::{draw_with, generator};
use super::shape::{check_memory, check_shape};
use super::{AnyCoupling, Coupling, Draw, Frequencies, Halton, Independent, PlainCoupling, Product, Sobol};
use crate::error::{Error, Result};
use crate::kernel::{
    Chi, Gaussian, Laplace, Marginal, Matern, PoweredExponential, RadialKernel, Radius, RationalQuadratic,
    RegularisedSoftmax, RootDim, ShiftInvariant, Softmax, SpectralMixture, Spectrum,
};
use crate::theory::Law;

macro_rules! draws {
    ($($Kernel:ty: $example:literal, |$kernel:ident| $spectrum:expr;)*) => {$(
        impl $Kernel {
            /// Draws m frequencies in ℝᵈ of the kernel's own law from a seed.
            ///
            /// ```
            #[doc = $example]
            /// assert_eq!((omega.m(), omega.dim()), (32, 4));
            /// # Ok::<(), random_features::Error>(())
            /// ```
            ///
            /// # Errors
            /// [`Unsupported`](Error::Unsupported) if the coupling cannot have this law, [`Shape`](Error::Shape) if the kernel
            /// has lengthscales for another dimension; the errors of a draw of the coupling.
            pub fn draw(&self, coupling: &dyn Coupling, d: usize, m: usize, seed: u64) -> Result<Frequencies> {
                self.lengthscale().check_dim(d)?;
                let $kernel = self;
                draw($spectrum, coupling, d, m, seed)
            }
        }
    )*};
}

draws! {
    Gaussian: "use random_features::{frequency::Orthogonal, kernel::Gaussian};
let omega = Gaussian::new(2.0)?.draw(&Orthogonal, 4, 32, 7)?;", |kernel| kernel.spectrum();
    Softmax: "use random_features::{frequency::Simplex, kernel::Softmax};
let omega = Softmax::default().draw(&Simplex::default(), 4, 32, 7)?;", |_kernel| Spectrum::Polar(&Chi);
    Matern: "use random_features::frequency::Orthogonal;
use random_features::kernel::{Matern, Smoothness};
let matern = Matern::new(Smoothness::ThreeHalves, 2.0)?;
let omega = matern.draw(&Orthogonal, 4, 32, 7)?;", |kernel| kernel.spectrum();
    RationalQuadratic: "use random_features::{frequency::Orthogonal, kernel::RationalQuadratic};
let omega = RationalQuadratic::new(1.0, 2.0)?.draw(&Orthogonal, 4, 32, 7)?;", |kernel| kernel.spectrum();
    PoweredExponential: "use random_features::{frequency::Orthogonal, kernel::PoweredExponential};
let omega = PoweredExponential::new(1.5, 2.0)?.draw(&Orthogonal, 4, 32, 7)?;", |kernel| kernel.spectrum();
    RadialKernel: "use random_features::{frequency::Orthogonal, kernel::RadialKernel};
let kernel = RadialKernel::from_kernel(\"own\", 4, |t| (-t * t).exp())?;
let omega = kernel.draw(&Orthogonal, 4, 32, 7)?;", |kernel| kernel.spectrum();
    SpectralMixture: "use random_features::{frequency::Independent, kernel::SpectralMixture};
let omega = SpectralMixture::periodic(vec![1.0; 4], 0.7)?.draw(&Independent, 4, 32, 7)?;", |kernel| kernel.spectrum();
    Laplace: "use random_features::{frequency::Sobol, kernel::Laplace};
let omega = Laplace::new(2.0)?.draw(&Sobol, 4, 32, 7)?;", |kernel| kernel.spectrum();
}

impl RegularisedSoftmax {
    /// Draws m frequencies in ℝᵈ of the kernel's own law from a seed.
    ///
    /// ```
    /// use random_features::{frequency::Orthogonal, kernel::RegularisedSoftmax};
    /// let omega = RegularisedSoftmax::default().draw(&Orthogonal, 4, 32, 7)?;
    /// assert_eq!((omega.m(), omega.dim()), (32, 4));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the frequencies are of another dimension than the kernel, such as those of
    /// [`Hadamard`](crate::frequency::Hadamard), which pads d, for a kernel that was not made
    /// [`in_dimension`](RegularisedSoftmax::in_dimension) of the padded one, or if the kernel has lengthscales for another dimension;
    /// [`Unsupported`](Error::Unsupported) if the coupling cannot have this law; the errors of a draw of the coupling.
    pub fn draw(&self, coupling: &dyn Coupling, d: usize, m: usize, seed: u64) -> Result<Frequencies> {
        self.lengthscale().check_dim(d)?;
        let omega = draw(Spectrum::Polar(&RootDim), coupling, d, m, seed)?;
        self.check_padded(d, omega.padded_dim())?;
        Ok(omega)
    }
}

/// Draws frequencies of this spectral law.
///
/// # Errors
/// [`Unsupported`](Error::Unsupported) if the coupling cannot have this law; the errors of [`draw_with`].
pub(crate) fn draw(
    spectrum: Spectrum<'_>,
    coupling: &dyn Coupling,
    d: usize,
    m: usize,
    seed: u64,
) -> Result<Frequencies> {
    match spectrum {
        Spectrum::Polar(radii) => {
            let law = radii.law();
            if coupling.block_law(d, 1, coupling.radius(law)).radius.is_polar() && coupling.radius(law) == law
            {
                draw_with(d, m, coupling, radii, seed)
            } else {
                Err(Error::Unsupported {
                    what: "frequencies of this kernel from a coupling with a law of its own",
                })
            }
        }
        Spectrum::Product(marginal) => draw_product(marginal, coupling, d, m, seed),
        Spectrum::Mixture(mixture) => draw_mixture(mixture, coupling, d, m, seed),
    }
}

/// Draws independent frequencies of a mixture.
fn draw_mixture(
    mixture: &SpectralMixture,
    coupling: &dyn Coupling,
    d: usize,
    m: usize,
    seed: u64,
) -> Result<Frequencies> {
    let Some(AnyCoupling::Plain(PlainCoupling::Independent)) = coupling.recipe() else {
        return Err(Error::Unsupported {
            what: "frequencies of a mixture from another coupling than Independent",
        });
    };
    check_shape(d, m)?;
    check_memory(d, m)?;
    let law = mixture.law();
    let mut rng = generator(seed, "mixture", &Draw { radii: law, ..Draw::new(d, m, Independent) });
    Frequencies::from_parts(mixture.rows(d, m, &mut rng)?, Law::independent(m).with_radius(law))
}

/// Draws frequencies whose coordinates have this law.
fn draw_product(
    marginal: &dyn Marginal,
    coupling: &dyn Coupling,
    d: usize,
    m: usize,
    seed: u64,
) -> Result<Frequencies> {
    let draw = |coupling: &dyn Coupling| draw_with(d, m, coupling, &Chi, seed);
    match coupling.recipe() {
        Some(AnyCoupling::Plain(PlainCoupling::Independent)) => draw(&Product(marginal)),
        Some(AnyCoupling::Plain(PlainCoupling::Sobol)) => draw(&Sobol.with_marginal(marginal)),
        Some(AnyCoupling::Plain(PlainCoupling::Halton)) => draw(&Halton.with_marginal(marginal)),
        Some(AnyCoupling::Antithetic(PlainCoupling::Independent)) => {
            draw(&super::Antithetic(Product(marginal)))
        }
        _ if coupling.block_law(d, 1, Radius::Chi).radius == marginal.law() => draw(coupling),
        _ => {
            let what =
                "independent coordinates from a coupling of directions: take Independent, Sobol or Halton";
            Err(Error::Unsupported { what })
        }
    }
}
