//! The map of a kernel in one call, and frequencies of a kernel's own law.

use super::any_kernel::AnyKernel;
use super::{Map, Mechanism, Nonlinear, PlainRecipe, Positive, Recipe, Sign, Trigonometric};
use crate::Real;
use crate::error::{Error, Result};
use crate::frequency::{
    AnyCoupling, Coupling, Draw, Frequencies, Independent, Orthogonal, PlainCoupling, RadiusCoupling,
    Simplex, of_kernel,
};
use crate::kernel::{Chi, Radii, RootDim, Spectrum};
use crate::once::once;
use crate::theory::Radius;

impl<T: Real> Map<T> {
    /// The map of a kernel on m frequencies in ℝᵈ, drawn from a seed, with the definition and the coupling that are best for it.
    ///
    /// Estimates are unbiased. The long way to the same map is to [draw](AnyKernel::draw) the frequencies and to build the map on
    /// them, which allows other maps and couplings.
    ///
    /// ```
    /// use random_features::Map;
    /// use random_features::kernel::{Gaussian, Matern, Smoothness};
    /// use random_features::ndarray::arr1;
    /// let map: Map<f64> = Map::for_kernel(Gaussian::new(2.0)?, 2, 256, 7)?;
    /// assert_eq!((map.dim(), map.feature_dim()), (2, 512));
    /// let estimate = map.estimate(&arr1(&[0.3, 1.0]), &arr1(&[0.5, -0.5]))?;
    /// assert!((estimate - (-2.29f64 / 8.0).exp()).abs() < 0.1);
    /// let matern: Map<f64> =
    ///     Map::for_kernel(Matern::new(Smoothness::FiveHalves, 2.0)?, 2, 256, 7)?;
    /// assert!(matern.kernel().is_some());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// | kernel | map | coupling | because |
    /// |---|---|---|---|
    /// | [`Softmax`](crate::kernel::Softmax) | [`Positive`], m features | [`Simplex`] | no coupling that leaves the law of each frequency as it is has a lower known variance, and estimates are positive |
    /// | [`RegularisedSoftmax`](crate::kernel::RegularisedSoftmax) | [`Positive`], m features | [`Simplex`] | as for softmax |
    /// | [`Gaussian`](crate::kernel::Gaussian), [`Matern`](crate::kernel::Matern), [`RationalQuadratic`](crate::kernel::RationalQuadratic), [`PoweredExponential`](crate::kernel::PoweredExponential) | [`Trigonometric`], 2m features | [`Orthogonal`], from three dimensions on with [paired radii](RadiusCoupling::Paired) where their quantiles are known | errors are bounded, and orthogonal frequencies, most of all with paired radii, have the lower variance for points at distances of some lengthscales |
    /// | [`Laplace`](crate::kernel::Laplace) | [`Trigonometric`], 2m features | [`Product`](crate::frequency::Product) | coordinates of a frequency must be independent |
    /// | [`SpectralMixture`](crate::kernel::SpectralMixture) | [`Trigonometric`], 2m features | [`Independent`] | rows are sums of frequencies of several laws; [`Map::for_mixture`] divides them among the terms by need |
    /// | [`Angular`](crate::kernel::Angular) | [`Sign`], m features | [`Orthogonal`] | signs on orthogonal frequencies repeat each other less |
    /// | [`ActivationKernel`](crate::kernel::ActivationKernel) | [`Nonlinear`], m features | [`Orthogonal`] | as for angles |
    /// | [`RadialKernel`](crate::kernel::RadialKernel), [`AnyKernel::own`] | [`Trigonometric`], 2m features | as for the Gaussian kernel, or independent coordinates if its spectrum is a product | as for the Gaussian kernel |
    ///
    /// In one dimension, where there is no simplex, frequencies are orthogonal instead, which are then independent. A
    /// [`Planner`](crate::planner::Planner) compares all maps on your data instead.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if d or m is 0, [`Shape`](Error::Shape) if the kernel has lengthscales for another dimension, or
    /// is a regularised softmax kernel of another dimension, [`Unsupported`](Error::Unsupported) for
    /// [`AnyKernel::implied`], which names no kernel, [`Memory`](Error::Memory) if the frequencies do not fit in memory,
    /// [`NotFinite`](Error::NotFinite) if a frequency of a law with heavy tails, divided by ℓ, overflows `f32`: take `f64`.
    pub fn for_kernel(kernel: impl Into<AnyKernel>, d: usize, m: usize, seed: u64) -> Result<Self> {
        Self::of_kernel(&kernel.into(), d, m, seed)
    }

    #[inline(never)]
    fn of_kernel(kernel: &AnyKernel, d: usize, m: usize, seed: u64) -> Result<Self> {
        let best = Best::of(kernel, d)?;
        let omega = kernel.draw(&best.coupling, d, m, seed)?;
        PlainRecipe::new(best.mechanism, omega, best.kernel).build()
    }
}

impl Recipe {
    /// The recipe of [`Map::for_kernel`], whose m frequencies in ℝᵈ are still to be drawn: `draw(seed)` gives that map.
    ///
    /// ```
    /// use random_features::kernel::Softmax;
    /// use random_features::{Map, Recipe};
    /// let recipe = Recipe::for_kernel(Softmax::default(), 16, 64)?;
    /// let map: Map<f32> = recipe.draw(7)?;
    /// assert_eq!(
    ///     map.identity(),
    ///     Map::<f32>::for_kernel(Softmax::default(), 16, 64, 7)?.identity()
    /// );
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Map::for_kernel`] that are known before a draw; [`Sampler`](Error::Sampler) for a kernel of your own whose law
    /// has no name, and for a spectral mixture, whose recipes hold frequencies that are drawn.
    pub fn for_kernel(kernel: impl Into<AnyKernel>, d: usize, m: usize) -> Result<Self> {
        let kernel = kernel.into();
        let best = Best::of(&kernel, d)?;
        let law = kernel.spectrum()?.law();
        let draw = draw_of_law(d, m, Some(best.coupling).filter(|_| law.is_polar()), law)?;
        if let AnyKernel::RegularisedSoftmax(kernel) = &kernel {
            kernel.check_padded(d, draw.padded_dim())?;
        }
        let plain = PlainRecipe::new(best.mechanism, draw, best.kernel);
        plain.check()?;
        Ok(Recipe::Plain(plain))
    }
}

impl AnyKernel {
    /// Draws m frequencies in ℝᵈ of the law that this kernel needs, in blocks of the coupling.
    ///
    /// The law follows from the kernel, so that it is stated once:
    ///
    /// ```
    /// use random_features::frequency::Orthogonal;
    /// use random_features::kernel::{Matern, Smoothness};
    /// use random_features::{Map, Trigonometric};
    /// let matern = Matern::new(Smoothness::ThreeHalves, 0.5)?;
    /// let omega = matern.draw(&Orthogonal, 3, 256, 7)?;
    /// let map: Map<f32> = Trigonometric.build(omega, matern)?;
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Directions come from the coupling and radii from the kernel. For a kernel whose frequencies have independent coordinates, such
    /// as [`Laplace`](crate::kernel::Laplace), [`Independent`] frequencies have independent coordinates of its law, and
    /// [`Sobol`](crate::frequency::Sobol) and [`Halton`](crate::frequency::Halton) frequencies evenly spread ones.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if d or m is 0, or the coupling does not exist in dimension d; [`Shape`](Error::Shape) if the
    /// kernel has lengthscales for another dimension; [`Unsupported`](Error::Unsupported) for [`AnyKernel::implied`], for a coupling
    /// with radii of another law, and for a coupling of directions if coordinates must be independent;
    /// [`Memory`](Error::Memory) if the frequencies do not fit in memory.
    pub fn draw(&self, coupling: &dyn Coupling, d: usize, m: usize, seed: u64) -> Result<Frequencies> {
        self.check(d)?;
        match self {
            AnyKernel::RegularisedSoftmax(kernel) => kernel.draw(coupling, d, m, seed),
            _ => of_kernel::draw(self.spectrum()?, coupling, d, m, seed),
        }
    }

    /// The law of the frequencies that the kernel needs, with its sampler.
    fn spectrum(&self) -> Result<Spectrum<'_>> {
        match self {
            AnyKernel::Implied(_) => {
                Err(Error::Unsupported { what: "frequencies for a lengthscale alone, which names no kernel" })
            }
            AnyKernel::RegularisedSoftmax(_) => Ok(Spectrum::Polar(&RootDim)),
            kernel => Ok(kernel.shift_invariant().map_or(Spectrum::Polar(&Chi), |kernel| kernel.spectrum())),
        }
    }
}

/// The draw of this law, whose coupling is orthogonal, or one of independent coordinates, unless stated.
///
/// # Errors
/// [`Sampler`](Error::Sampler) for a law that a name alone does not draw.
pub(super) fn draw_of_law(d: usize, m: usize, coupling: Option<AnyCoupling>, law: Radius) -> Result<Draw> {
    if !law.is_named() || matches!(law, Radius::Mixture(_)) {
        return Err(Error::Sampler { what: "frequencies", law: law.to_string() });
    }
    let default: AnyCoupling =
        if law.is_polar() { Orthogonal.into() } else { PlainCoupling::Product(law).into() };
    let draw = Draw::new(d, m, coupling.unwrap_or(default));
    // A coupling of independent coordinates holds their law itself.
    Ok(if law.is_polar() { Draw { radii: law, ..draw } } else { draw })
}

/// The map and the coupling that are best for a kernel.
struct Best {
    mechanism: Mechanism,
    coupling: AnyCoupling,
    /// The kernel that the map takes: a lengthscale alone if the map itself determines its kernel.
    kernel: AnyKernel,
}

impl Best {
    fn of(kernel: &AnyKernel, d: usize) -> Result<Self> {
        let itself = |mechanism: Mechanism, coupling| Best { mechanism, coupling, kernel: kernel.clone() };
        let implied = |mechanism: Mechanism| Best {
            mechanism,
            coupling: Orthogonal.into(),
            kernel: AnyKernel::implied(kernel.lengthscale().clone()),
        };
        Ok(match (kernel, kernel.spectrum()?) {
            (AnyKernel::Angular(_), _) => implied(Sign.into()),
            (AnyKernel::ActivationKernel(kernel), _) => {
                implied(Nonlinear::new(kernel.activation()).with_offset(kernel.offset())?.into())
            }
            (AnyKernel::Softmax(_) | AnyKernel::RegularisedSoftmax(_), _) if d > 1 => {
                itself(Positive.into(), Simplex::default().into())
            }
            (AnyKernel::Softmax(_) | AnyKernel::RegularisedSoftmax(_), _) => {
                itself(Positive.into(), Orthogonal.into())
            }
            (_, Spectrum::Polar(radii)) => itself(Trigonometric.into(), coupling(d, radii)),
            (_, Spectrum::Product(_) | Spectrum::Mixture(_)) => {
                itself(Trigonometric.into(), Independent.into())
            }
        })
    }
}

/// Orthogonal rows, whose radii are paired where that lowers the variance and their quantiles are known.
fn coupling(d: usize, radii: &dyn Radii) -> AnyCoupling {
    match d > 2 && radii.quantile(d, 0.5).is_some() {
        true => Orthogonal.with_coupled_radii(RadiusCoupling::Paired).into(),
        false => Orthogonal.into(),
    }
}

once!(Map::<T>::of_kernel);
