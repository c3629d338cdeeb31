//! Closed forms: variances of estimates, bounds, and the parameters that minimise them.
//!
//! They are pure functions of a few scalars of a pair of points ([`Pair`]) and of the law of the frequencies ([`Law`]):
//! nothing is drawn. Most return logarithms, because variances overflow `f64` at norms of about 11. Errors of the Gaussian maps
//! ([`positive`], [`hyperbolic`], [`trigonometric`] and their regularised forms) hold for any known law; other maps
//! have modules of their own. Values are for the softmax kernel unless a module says otherwise; for the Gaussian kernel
//! subtract ‖x‖² + ‖y‖² from the logarithm. `None` means that no closed form is known; arguments outside the domain
//! give NaN.
//!
//! Each function names its source (paper, equation), or "new" for results first derived here; where a paper is wrong it
//! cites [`errata`]. The experiment `verify` checks the functions against an independent implementation and, with
//! `--simulate`, against estimates.
//!
//! ```
//! use random_features::theory::{Law, Pair, positive};
//! let pair = Pair::new([(0.5, 0.25), (-1.0, 0.5)]);
//! let (independent, orthogonal) = (Law::independent(64), Law::orthogonal(2, 64));
//! let gain = positive(&pair, &independent).unwrap() - positive(&pair, &orthogonal).unwrap();
//! assert!(gain > 0.0);
//! ```

mod basis;
pub mod bounds;
pub mod coefficient;
pub mod complex_exponential;
pub mod concentration;
pub mod conformity;
pub mod counts;
pub mod covariance;
pub mod dense;
pub mod diagonal;
mod gaussian;
pub mod gerf;
pub mod hybrid;
pub(crate) mod law;
mod nonlinear;
mod pair;
pub mod relative_error;
mod shift_invariant;
pub mod sum_norm;

pub(crate) use crate::kernel::Radius;
pub use basis::Basis;
pub use gaussian::{
    hyperbolic, ln_positive_orthogonality_gap, positive, regularised_hyperbolic, regularised_positive,
    regularised_positive_about_softmax, trigonometric, trigonometric_orthogonality_gap,
};
pub(crate) use law::Run;
pub use law::{BlockLaw, Dependence, Law};
pub use nonlinear::{nonlinear, nonlinear_with_offset};
pub use pair::Pair;
pub use shift_invariant::shift_invariant;

#[doc = include_str!("../doc/errata.md")]
pub mod errata {}
