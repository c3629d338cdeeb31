//! Closed forms: variances of estimates, bounds, and the parameters that minimise them.
//!
//! ```
//! use random_features::theory::{Law, Pair, positive};
//! // The points (0.5, −1) and (0.25, 0.5), coordinate by coordinate.
//! let pair = Pair::new([(0.5, 0.25), (-1.0, 0.5)]);
//! // 64 frequencies in the plane; logarithms of variances.
//! let independent = positive(&pair, &Law::independent(64)).unwrap();
//! let orthogonal = positive(&pair, &Law::orthogonal(2, 64)).unwrap();
//! assert!(orthogonal < independent);
//! ```
//!
//! A map gives its own variance, by [`Map::log_variance`](crate::Map::log_variance). The functions here give it without a map:
//! from a few scalars of two points ([`Pair`]) and the law of the frequencies ([`Law`]). Nothing is drawn.
//!
//! - Most functions return logarithms, since variances overflow `f64` at norms of about 11.
//! - Values are for the softmax kernel unless a module says otherwise. For the Gaussian kernel subtract ‖x‖² + ‖y‖² from the
//!   logarithm.
//! - `None` means that no closed form is known. Arguments outside the domain give NaN.
//! - [`positive`], [`hyperbolic`], [`trigonometric`] and their regularised forms hold for any known law. Exceptions are
//!   some laws with [coupled radii](crate::frequency::CoupledRadii): those in pairs ±ω, and those in blocks of more
//!   than 65,536 rows (1,024 with systematic radii, 4,096 in strata of a whole draw). Of trigonometric features they
//!   are not known at distances beyond some nine lengthscales either. Other maps have modules of their own.
//!
//! Each function names its source: a paper and an equation, or "new" for a result that was first derived here. Where a paper is
//! wrong, it cites the [`errata`]. The experiment `verify` compares the functions with an independent implementation, and with
//! drawn estimates.

mod basis;
pub mod bounds;
pub mod coefficient;
pub mod complex_exponential;
pub mod concentration;
pub mod conformity;
pub mod counts;
mod coupled_radii;
pub mod covariance;
pub mod dense;
pub mod diagonal;
mod gaussian;
pub mod gerf;
pub mod hybrid;
pub(crate) mod law;
pub mod limits;
mod nonlinear;
mod overall;
mod pair;
mod radial_nodes;
mod radial_pairs;
pub mod relative_error;
mod shift_invariant;
pub(crate) mod sphere_mean;
pub mod sum_norm;

pub(crate) use crate::kernel::Radius;
pub use basis::Basis;
pub use gaussian::{
    hyperbolic, ln_positive_orthogonality_gap, positive, regularised_hyperbolic, regularised_positive,
    regularised_positive_about_softmax, trigonometric, trigonometric_orthogonality_gap,
};
pub(crate) use law::RadiusCoupling;
pub(crate) use law::Run;
pub use law::{BlockLaw, CoupledAngle, Dependence, Law, OverallAngle};
pub use nonlinear::{nonlinear, nonlinear_with_offset};
pub use pair::Pair;
pub use shift_invariant::shift_invariant;

#[doc = include_str!("../doc/errata.md")]
pub mod errata {}
