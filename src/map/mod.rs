//! Feature maps φ, ψ whose product φ(x)·ψ(y) estimates a kernel.
//!
//! Every map is used through the type [`Map`]: batches of [`Features`], Gram matrices, estimates, variances. Plain maps
//! are defined by [`Trigonometric`], [`Positive`], [`Hyperbolic`], … Their method `build(frequencies, kernel)` makes a map, and
//! `softmax(frequencies)` and `gaussian(frequencies, lengthscale)` are short forms for these kernels. [`Sign`], [`Nonlinear`] and
//! [`EluPlusOne`] imply their kernel, so that their `build` takes a lengthscale. A [`Recipe`] is a map as plain data. Implement
//! [`FeatureMap`] for a map of your own, or [`Sketch`] for one that is drawn from seeds and stored. [`Nystroem`] has landmarks
//! instead of frequencies, and its estimates are biased. [`ImportanceMixture`] draws the frequencies of positive features for given
//! points.
//!
//! ```
//! use random_features::ndarray::array;
//! use random_features::prelude::*;
//! // 256 orthogonal frequencies in the plane, seed 7.
//! let omega = Orthogonal.draw(2, 256, 7)?;
//! let map: Map<f64> = Trigonometric.gaussian(omega, 1.0)?;
//! let x = array![[0.0, 0.1], [0.5, -0.2], [1.0, 0.3]];
//! let gram = map.gram(&x, &x)?;
//! assert_eq!(map.transform(&x)?.dim(), (3, 512));
//! assert!((gram[[0, 1]] - (-0.5f64 * (0.25 + 0.09)).exp()).abs() < 0.1);
//! # Ok::<(), random_features::Error>(())
//! ```
//!
//! # Scales
//! A feature is exp(log scale) · value, with one `f64` scale for each row and block and values of at most 1 in
//! magnitude. Features are therefore finite for points of any norm, and the kernel (softmax or Gaussian) only changes
//! the scale.

mod any_kernel;
mod arrays;
mod check;
pub(crate) mod compose;
mod config;
mod counting;
mod covariance;
mod definition;
mod estimates;
mod features;
pub(crate) mod fold;
mod for_kernel;
mod for_mixture;
mod gram;
mod names;
mod node;
pub(crate) mod omega;
mod pairing;
mod parameters;
pub(crate) mod parts;
pub(crate) mod plain;
mod recipe;
mod redraw;
mod row_sums;
pub(crate) mod sketch;
#[cfg(feature = "serde")]
mod stored;
mod transform;
mod tree;

mod complex_exponential;
mod dense_exponential;
mod elu_plus_one;
mod geometric;
mod gerf;
mod hyperbolic;
mod importance;
mod importance_mixture;
mod nonlinear;
pub(crate) mod nystroem;
mod poisson;
mod positive;
mod sign;
mod trigonometric;

pub use crate::digest::Identity;
pub(crate) use crate::engine::{Facts, FeatureMap, Form, Lift, Tile};
pub use crate::engine::{Shift, Side};
pub use any_kernel::AnyKernel;
pub use config::MapConfig;
pub use features::Features;
pub use importance_mixture::ImportanceMixture;
pub use node::Map;
pub use nystroem::Nystroem;
pub(crate) use omega::Omega;
pub use parameters::ParameterGradients;
pub(crate) use parameters::UNKNOWN;
pub(crate) use plain::PlainRecipe;
pub use recipe::Recipe;
pub use redraw::Redraw;
pub(crate) use sketch::{Sketch, SketchDraw};
pub use transform::Transform;

use std::sync::Arc;

use ndarray::Array2;

use crate::Real;
use crate::engine::ExponentSums;
use crate::error::Result;
use crate::kernel::{Gaussian, Kernel, Lengthscale};
use crate::tagged::tagged;
use crate::theory::Pair;
pub(crate) use covariance::{Covariance, Opposites, Products, RowProducts, SphereMeans};
use definition::{Definition, NormalForm, Setting};

/// Defines the constructors of the plain maps and the enum of all plain maps.
macro_rules! mechanisms {
    (
        kernels { $($tag:literal => $module:ident::$Name:ident,)* }
        lengthscales { $($other_tag:literal => $other:ident::$Other:ident,)* }
        sketches { $($sketch_tag:literal => $sketch:ident::$Sketch:ident,)* }
    ) => {
        $(pub use $module::$Name;)*
        $(pub use $other::$Other;)*
        $(pub use $sketch::$Sketch;)*

        /// The definition of a plain map with its parameters, as data.
        ///
        /// Unless its parameters are arrays, it is read from text, such as `positive`, `nonlinear relu` or `gerf, A = -0.2`.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Mechanism {
            $(#[doc = concat!("[`", stringify!($Name), "`].")] $Name($Name),)*
            $(#[doc = concat!("[`", stringify!($Other), "`].")] $Other($Other),)*
            $(#[doc = concat!("[`", stringify!($Sketch), "`].")] $Sketch($Sketch),)*
        }

        tagged!(Mechanism, "a map" {
            $($tag => $Name(definition: $Name),)*
            $($other_tag => $Other(definition: $Other),)*
            $($sketch_tag => $Sketch(definition: $Sketch),)*
        });

        $(
            constructors!($Name);

            impl $Name {
                /// The map for the softmax kernel exp(x·y).
                ///
                /// Frequencies whose radii have no stated law are accepted: the map then estimates the kernel of their law,
                /// and its [`kernel`](Map::kernel) is `None`.
                ///
                /// # Errors
                /// The errors of [`PlainRecipe::build`].
                pub fn softmax<T: Real>(self, omega: impl Into<Omega>) -> Result<Map<T>> {
                    let omega = omega.into();
                    let kernel = self.softmax_kernel(&omega);
                    self.build(omega, kernel)
                }

                /// The map for the Gaussian kernel with lengthscale ℓ.
                ///
                /// Frequencies whose radii have no stated law are accepted: the map then estimates the kernel of their law,
                /// and its [`kernel`](Map::kernel) is `None`.
                ///
                /// # Errors
                /// The errors of [`Gaussian::new`] and [`PlainRecipe::build`].
                pub fn gaussian<T: Real>(
                    self,
                    omega: impl Into<Omega>,
                    lengthscale: impl Into<Lengthscale>,
                ) -> Result<Map<T>> {
                    self.build(omega, Gaussian::new(lengthscale)?)
                }
            }
        )*
        $(constructors_of_lengthscale!($Other);)*
        $(constructors!($Sketch);)*

        impl Mechanism {
            /// Whether the map estimates named kernels, and not one that its frequencies imply.
            pub(crate) fn is_for_kernels(&self) -> bool {
                matches!(self, $(Mechanism::$Name(_))|*)
            }
        }

        /// Forwards a method to the definition of each plain map.
        macro_rules! of_each {
            ($own:expr, $definition:ident => $answer:expr) => {
                match $own {
                    $(Mechanism::$Name($definition) => $answer,)*
                    $(Mechanism::$Other($definition) => $answer,)*
                    $(Mechanism::$Sketch($definition) => $answer,)*
                }
            };
        }
    };
}

/// The constructors of maps for a kernel.
macro_rules! constructors {
    ($Name:ident) => {
        from_definition!($Name);

        impl $Name {
            /// The map of these frequencies for a kernel.
            ///
            /// # Errors
            /// The errors of [`PlainRecipe::build`].
            pub fn build<T: Real>(
                self,
                omega: impl Into<Omega>,
                kernel: impl Into<AnyKernel>,
            ) -> Result<Map<T>> {
                PlainRecipe::new(self, omega, kernel).build()
            }

            /// The map as plain data, with frequencies that are drawn or to be drawn.
            pub fn recipe(self, omega: impl Into<Omega>, kernel: impl Into<AnyKernel>) -> Recipe {
                Recipe::Plain(PlainRecipe::new(self, omega, kernel))
            }
        }
    };
}

/// The constructors of maps whose kernel follows from their definition: they take a lengthscale alone.
macro_rules! constructors_of_lengthscale {
    ($Name:ident) => {
        from_definition!($Name);

        impl $Name {
            /// The map of these frequencies, of points divided by the lengthscale ℓ.
            ///
            /// # Errors
            /// The errors of [`PlainRecipe::build`].
            pub fn build<T: Real>(
                self,
                omega: impl Into<Omega>,
                lengthscale: impl Into<Lengthscale>,
            ) -> Result<Map<T>> {
                PlainRecipe::new(self, omega, AnyKernel::implied(lengthscale)).build()
            }

            /// The map as plain data, with frequencies that are drawn or to be drawn, of points divided by the lengthscale ℓ.
            pub fn recipe(self, omega: impl Into<Omega>, lengthscale: impl Into<Lengthscale>) -> Recipe {
                Recipe::Plain(PlainRecipe::new(self, omega, AnyKernel::implied(lengthscale)))
            }
        }
    };
}

macro_rules! from_definition {
    ($Name:ident) => {
        impl From<$Name> for Mechanism {
            fn from(definition: $Name) -> Self {
                Mechanism::$Name(definition)
            }
        }
    };
}

// A new map needs its own file, a line among the modules above, and one here.
mechanisms! {
    kernels {
        "trigonometric" => trigonometric::Trigonometric,
        "positive" => positive::Positive,
        "hyperbolic" => hyperbolic::Hyperbolic,
        "gerf" => gerf::Gerf,
        "complex exponential" => complex_exponential::ComplexExponential,
        "dense exponential" => dense_exponential::DenseExponential,
        "importance" => importance::Importance,
        "poisson" => poisson::Poisson,
        "geometric" => geometric::Geometric,
    }
    lengthscales {
        "sign" => sign::Sign,
        "nonlinear" => nonlinear::Nonlinear,
        "elu plus one" => elu_plus_one::EluPlusOne,
    }
    sketches {
        "sketched" => sketch::Sketched,
    }
}

impl Mechanism {
    /// The name of the map.
    pub fn name(&self) -> &'static str {
        of_each!(self, definition => definition.name())
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        of_each!(self, definition => definition.check(setting))
    }

    fn form(&self, setting: Setting<'_>) -> Result<NormalForm> {
        of_each!(self, definition => definition.form(setting))
    }

    fn kernel<T: Real>(&self, setting: Setting<'_>) -> Option<Box<dyn Kernel<T>>> {
        of_each!(self, definition => definition.kernel(setting))
    }

    fn log_variance(&self, setting: Setting<'_>, u: &[f64], v: &[f64], pair: &Pair) -> Option<f64> {
        of_each!(self, definition => definition.log_variance(setting, u, v, pair))
    }

    fn ln_range(&self, setting: Setting<'_>, pair: &Pair) -> Option<f64> {
        of_each!(self, definition => definition.ln_range(setting, pair))
    }

    fn pull_back(&self, setting: Setting<'_>, sums: &ExponentSums) -> Option<(Array2<f64>, Vec<f64>)> {
        of_each!(self, definition => definition.pull_back(setting, sums))
    }

    /// Whether all features are signs of one magnitude.
    pub(crate) fn is_of_signs(&self) -> bool {
        of_each!(self, definition => definition.is_of_signs())
    }

    /// Whether the kernel is estimated at all points; `false` with a shift beyond which points are clamped.
    pub(crate) fn is_for_all_points(&self) -> bool {
        of_each!(self, definition => definition.is_for_all_points())
    }

    /// The number of real projections of a point on each frequency.
    pub(crate) fn projections(&self) -> usize {
        of_each!(self, definition => definition.projections())
    }

    fn takes_matrix(&self) -> bool {
        of_each!(self, definition => definition.takes_matrix())
    }

    /// The function that makes features of projections; `None` without a normal form.
    pub(crate) fn lift(&self) -> Option<Lift> {
        of_each!(self, definition => definition.lift())
    }

    /// The number of features for each frequency, or for each coordinate if there are no frequencies.
    pub(crate) fn width(&self) -> usize {
        of_each!(self, definition => definition.width())
    }

    /// D, the number of features of a point.
    fn feature_dim(&self, setting: Setting<'_>) -> usize {
        of_each!(self, definition => definition.feature_dim(setting))
    }

    /// The relative covariance of two estimates that share a point, for one frequency; `None` where no closed form is known.
    pub(crate) fn covariance(&self, setting: Setting<'_>) -> Option<Covariance> {
        of_each!(self, definition => definition.covariance(setting))
    }

    fn features<T: Real>(&self, setting: Setting<'_>) -> Result<Arc<dyn FeatureMap<T>>> {
        of_each!(self, definition => definition.features(setting))
    }
}
