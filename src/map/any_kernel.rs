//! [`AnyKernel`]: a kernel of the crate as data.

use crate::Real;
use crate::error::{Error, Result, check_size};
use crate::kernel::{
    ActivationKernel, Angular, Gaussian, Kernel, Laplace, Lengthscale, Matern, OwnKernel, PoweredExponential,
    RadialKernel, RationalQuadratic, RegularisedSoftmax, ShiftInvariant, Softmax, SpectralMixture,
};
use crate::once::once;
use crate::tagged::tagged;
use crate::theory::{Pair, Radius};

/// Defines [`AnyKernel`] from one line for each kernel: its variant, its conversion, and whether it is a function of x − y
/// (`shift_invariant`) or not (`exponential_of_products`, `of_projections`). Each line says so itself: there is no default.
macro_rules! kernels {
    ($($(#[$doc:meta])* $tag:literal => $kernel:ident: $kind:ident),* $(,)?) => {
        /// The kernel that a map approximates, with its lengthscale.
        ///
        /// The law of the frequencies determines which kernels are possible. Kernels of the same law, such as softmax and
        /// Gaussian, differ only by a factor for each point.
        ///
        /// It is read from text: `softmax`, `gaussian`, `laplace`, `matern 3/2`, `matern, ν = 0.8`, `rational quadratic, α = 1`,
        /// `powered exponential, α = 1.5`, `powered exponential by coordinates, α = 1.5`, `spectral mixture (0.3 × gaussian 2 ×
        /// cosine [1.5] + 0.7 × laplace)`, `regularised softmax`, `regularised softmax in dimension 64`, `angular` or `activation
        /// relu, offset 0.1`. The lengthscale, 1 by default, follows: `gaussian 0.5` or `gaussian, lengthscale 0.5`, and one for
        /// each dimension `gaussian, lengthscales [0.5, 2]`. `Display` writes texts that can be read.
        ///
        /// ```
        /// use random_features::kernel::{Gaussian, Matern, Smoothness};
        /// use random_features::map::AnyKernel;
        /// assert_eq!("gaussian 0.5".parse::<AnyKernel>()?, Gaussian::new(0.5)?.into());
        /// let matern = AnyKernel::from(Matern::new(Smoothness::ThreeHalves, 2.0)?);
        /// assert_eq!(matern.to_string(), "Matérn 3/2, lengthscale 2");
        /// assert_eq!(matern.to_string().parse::<AnyKernel>()?, matern);
        /// # Ok::<(), random_features::Error>(())
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum AnyKernel {
            $($(#[$doc])* $kernel($kernel),)*
            /// A kernel without a name, which the map and its frequencies imply, of points divided by this lengthscale.
            Implied(Lengthscale),
            /// Your own shift-invariant kernel, for frequencies of its spectral law. A map for it cannot be stored.
            Own(OwnKernel),
        }

        tagged!(AnyKernel, "a kernel" {
            $($tag => $kernel(kernel: $kernel),)*
            "implied" => Implied(lengthscale: Lengthscale),
        } never {
            "own" => Own(kernel): "a kernel of your own cannot be stored",
        });

        $(impl From<$kernel> for AnyKernel {
            fn from(kernel: $kernel) -> Self {
                AnyKernel::$kernel(kernel)
            }
        })*

        impl AnyKernel {
            /// The kernel, if it is a shift-invariant one with a known spectrum.
            pub fn shift_invariant(&self) -> Option<&dyn ShiftInvariant> {
                match self {
                    $(AnyKernel::$kernel(_kernel) => kernels!(@$kind _kernel),)*
                    AnyKernel::Own(kernel) => Some(kernel),
                    AnyKernel::Implied(_) => None,
                }
            }

            /// Whether the kernel is a function of x − y.
            pub fn is_shift_invariant(&self) -> bool {
                match self {
                    $(AnyKernel::$kernel(_) => kernels!(@is $kind),)*
                    // Both are kernels of the law of the frequencies, which is a function of x − y.
                    AnyKernel::Own(_) | AnyKernel::Implied(_) => true,
                }
            }

            /// The lengthscale.
            pub fn lengthscale(&self) -> &Lengthscale {
                match self {
                    $(AnyKernel::$kernel(kernel) => kernel.lengthscale(),)*
                    AnyKernel::Own(kernel) => kernel.lengthscale(),
                    AnyKernel::Implied(lengthscale) => lengthscale,
                }
            }

            /// The kernel itself; `None` if it has no name.
            #[inline(never)]
            pub fn kernel<T: Real>(&self) -> Option<Box<dyn Kernel<T>>> {
                match self {
                    $(AnyKernel::$kernel(kernel) => Some(Box::new(kernel.clone())),)*
                    AnyKernel::Own(kernel) => Some(Box::new(kernel.clone())),
                    AnyKernel::Implied(_) => None,
                }
            }
        }
    };
    (@shift_invariant $kernel:ident) => { Some($kernel) };
    (@exponential_of_products $kernel:ident) => { None };
    (@of_projections $kernel:ident) => { None };
    (@is shift_invariant) => { true };
    (@is exponential_of_products) => { false };
    (@is of_projections) => { false };
}

kernels! {
    /// exp(x·y/ℓ²), for frequencies with radii χ_d.
    "softmax" => Softmax: exponential_of_products,
    /// exp(−‖x−y‖²/(2ℓ²)), for frequencies with radii χ_d.
    "gaussian" => Gaussian: shift_invariant,
    /// The regularised softmax kernel, for frequencies with radii √d.
    "regularised softmax" => RegularisedSoftmax: exponential_of_products,
    /// A Matérn kernel, for frequencies of a multivariate t distribution.
    "matern" => Matern: shift_invariant,
    /// (1 + ‖x−y‖²/(2αℓ²))^{−α}, for frequencies with radii χ_d √τ, where τ has a gamma distribution.
    "rational quadratic" => RationalQuadratic: shift_invariant,
    /// exp(−(‖x−y‖/ℓ)^α), for frequencies with radii χ_d √(2τ), where τ has a positive stable law.
    "powered exponential" => PoweredExponential: shift_invariant,
    /// A sum of products of kernels, cosines and periodic kernels, for independent frequencies that it draws itself.
    "spectral mixture" => SpectralMixture: shift_invariant,
    /// exp(−‖x−y‖₁/ℓ), for frequencies whose coordinates have the Cauchy distribution.
    "laplace" => Laplace: shift_invariant,
    /// 1 − 2θ/π with the angle θ between x and y, for frequencies of uniform directions.
    "angular" => Angular: of_projections,
    /// E\[(f(ω·x) + ε)(f(ω·y) + ε)\] of a function f, for frequencies ω ~ N(0, I).
    "activation" => ActivationKernel: of_projections,
}

impl From<RadialKernel> for AnyKernel {
    fn from(kernel: RadialKernel) -> Self {
        AnyKernel::own(kernel)
    }
}

impl AnyKernel {
    /// The kernel that frequencies and map imply, of points divided by this lengthscale.
    ///
    /// ```
    /// use random_features::frequency::Frequencies;
    /// use random_features::map::AnyKernel;
    /// use random_features::ndarray::arr2;
    /// use random_features::{Map, Trigonometric};
    /// let omega = Frequencies::from_rows(arr2(&[[0.5, -1.0], [2.0, 0.25]]))?;
    /// let map: Map<f64> = Trigonometric.build(omega, AnyKernel::implied(2.0))?;
    /// assert!(map.kernel().is_none());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn implied(lengthscale: impl Into<Lengthscale>) -> Self {
        AnyKernel::Implied(lengthscale.into())
    }

    /// Makes a kernel of a shift-invariant type of your own. Maps on frequencies of its spectral law estimate it, at
    /// points divided by the lengthscale that its [`lengthscale`](ShiftInvariant::lengthscale) returns.
    ///
    /// Kernel, law and frequencies are compared by samples when a map of nine frequencies or more is made, and the map is refused
    /// if they differ. The kernel must be the mean of cos ω·δ over its own law, and frequencies of a law without a name must be of
    /// that law. m frequencies show another law if its distribution function differs by more than about 3/√m + 0.05.
    pub fn own(kernel: impl ShiftInvariant + 'static) -> Self {
        AnyKernel::Own(OwnKernel::new(kernel))
    }

    /// Sets the lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if an ℓ is outside its domain, [`Unsupported`](crate::Error::Unsupported)
    /// for the angular kernel and any ℓ but 1, and for a kernel of your own, whose type you make anew with another ℓ.
    pub fn with_lengthscale(self, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        let lengthscale = lengthscale.into().checked()?;
        Ok(match self {
            AnyKernel::Softmax(_) => Softmax::new(lengthscale)?.into(),
            AnyKernel::Gaussian(_) => Gaussian::new(lengthscale)?.into(),
            AnyKernel::RegularisedSoftmax(kernel) => kernel.with_lengthscale(lengthscale)?.into(),
            AnyKernel::Matern(kernel) => Matern::new(kernel.smoothness(), lengthscale)?.into(),
            AnyKernel::RationalQuadratic(kernel) => {
                RationalQuadratic::new(kernel.alpha(), lengthscale)?.into()
            }
            AnyKernel::PoweredExponential(kernel) => {
                PoweredExponential::new(kernel.alpha(), lengthscale)?.into()
            }
            AnyKernel::SpectralMixture(kernel) => kernel.with_lengthscale(lengthscale)?.into(),
            AnyKernel::Laplace(_) => Laplace::new(lengthscale)?.into(),
            AnyKernel::ActivationKernel(kernel) => kernel.with_lengthscale(lengthscale)?.into(),
            AnyKernel::Implied(_) => AnyKernel::Implied(lengthscale),
            AnyKernel::Angular(_) if lengthscale == Lengthscale::default() => self,
            AnyKernel::Angular(_) => {
                return Err(Error::Unsupported {
                    what: "a lengthscale of the angular kernel, which has none",
                });
            }
            AnyKernel::Own(_) => {
                return Err(Error::Unsupported { what: "another lengthscale of a kernel of your own" });
            }
        })
    }

    /// The law of the frequencies whose exponentials or waves estimate the kernel; `None` for a kernel of functions of projections,
    /// and for an implied one.
    pub fn radius(&self) -> Option<Radius> {
        match self {
            AnyKernel::Softmax(_) => Some(Radius::Chi),
            AnyKernel::RegularisedSoftmax(_) => Some(Radius::RootDim),
            _ => self.shift_invariant().map(|kernel| kernel.spectrum().law()),
        }
    }

    /// Rejects lengthscales outside their domain or for another dimension than `d`.
    pub(crate) fn check(&self, d: usize) -> Result<()> {
        let lengthscale = self.lengthscale().clone().checked()?;
        if let AnyKernel::Own(kernel) = self
            && let Some(dim) = kernel.dim()
        {
            check_size("the dimension of the points", dim, d)?;
        }
        lengthscale.check_dim(d)
    }

    /// The padded dimension that a regularised kernel is for, with frequencies in ℝᵈ.
    pub(crate) fn padded_dim(&self, d: usize) -> Option<usize> {
        match self {
            AnyKernel::RegularisedSoftmax(kernel) => Some(kernel.padded_dim(d)),
            _ => None,
        }
    }

    /// The coefficient of ‖x/ℓ‖² by which logarithms of features differ from those for the softmax kernel.
    pub fn row(&self) -> f64 {
        if self.is_shift_invariant() { -0.5 } else { 0.0 }
    }

    /// ln of the factor of variances of positive features: 2x·y for softmax, −‖x−y‖² for the Gaussian kernel.
    ///
    /// For the Gaussian kernel it is computed from ‖x−y‖², because sums of norms would cancel for points far from the origin.
    pub fn ln_squared_scale(&self, pair: &Pair) -> f64 {
        if self.is_shift_invariant() { -pair.difference } else { 2.0 * pair.dot }
    }

    /// ln of the factor of variances of trigonometric features: ‖x‖² + ‖y‖² for softmax, exactly 0 for the Gaussian kernel.
    pub fn ln_norm_scale(&self, pair: &Pair) -> f64 {
        if self.is_shift_invariant() { 0.0 } else { pair.norms }
    }
}

impl std::fmt::Display for AnyKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AnyKernel::Softmax(_) => write!(f, "softmax")?,
            AnyKernel::RegularisedSoftmax(kernel) => {
                write!(f, "regularised softmax")?;
                if let Some(dim) = kernel.dim() {
                    write!(f, " in dimension {dim}")?;
                }
            }
            AnyKernel::Angular(_) => return write!(f, "angular"),
            AnyKernel::ActivationKernel(kernel) => {
                write!(f, "activation {}", kernel.activation())?;
                if kernel.offset() != 0.0 {
                    write!(f, ", offset {}", kernel.offset())?;
                }
            }
            AnyKernel::Implied(_) => write!(f, "a lengthscale without a kernel")?,
            _ => self.shift_invariant().map_or(Ok(()), |kernel| f.write_str(&kernel.name()))?,
        }
        match (self, self.lengthscale()) {
            (AnyKernel::Implied(_), Lengthscale::Isotropic(scale)) => write!(f, ": {scale}"),
            (AnyKernel::Implied(_), Lengthscale::PerDimension(scales)) => write!(f, ": {scales:?}"),
            (_, Lengthscale::Isotropic(scale)) => write!(f, ", lengthscale {scale}"),
            (_, Lengthscale::PerDimension(scales)) => write!(f, ", lengthscales {scales:?}"),
        }
    }
}

once!(AnyKernel::kernel::<T>);
