//! [`Forecast`]: the errors to expect of a recipe, and where they come from.

use std::fmt;

/// Where an expected error comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Basis {
    /// Closed forms at pairs of points.
    ClosedForm,
    /// An upper bound that holds with a stated probability.
    Bound,
    /// A closed form that holds approximately: to first order, or for frequencies that are coupled less.
    Approximate,
    /// So many draws.
    Simulation(usize),
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::ClosedForm => f.pad("closed form"),
            Basis::Bound => f.pad("bound"),
            Basis::Approximate => f.pad("approximate"),
            Basis::Simulation(draws) => f.pad(&format!("{draws} draws")),
        }
    }
}

/// An expected error and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Expected {
    /// The error; infinite where it is beyond the range of numbers or of the approximation.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub value: f64,
    /// Its standard error, from the sample of points and, in a simulation, from that of draws; infinite where nothing is known. Of what no
    /// pair in the sample shows it knows nothing: where few pairs rule an error, samples differ by more.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub standard_error: f64,
    /// Where it comes from.
    pub basis: Basis,
}

/// Root mean squared errors of estimates relative to the kernel, over pairs of points.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RelativeErrors {
    /// The mean over pairs.
    pub mean: Expected,
    /// The error that half of the pairs exceed.
    pub median: Expected,
    /// The error that a tenth of the pairs exceed.
    pub ninety: Expected,
    /// The error that a hundredth of the pairs exceed.
    pub ninety_nine: Expected,
    /// The share of pairs whose error is above 1, from 0 to 1.
    pub beyond_one: Expected,
}

/// The errors to expect of a recipe.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Forecast {
    /// What the plan minimises.
    pub loss: Expected,
    /// √(Σ E(K̂ − K)²/Σ K²) over pairs: the error of the Gram matrix.
    pub gram: Expected,
    /// Errors relative to the kernel.
    pub relative: RelativeErrors,
}
