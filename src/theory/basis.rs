//! [`Basis`]: where an expected error comes from.

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
    /// A closed form to first order, as for the errors of attention with independent frequencies.
    Approximate,
    /// Errors at held-out points, to which features were not fitted.
    HeldOut,
    /// Simulation: the number of times that all frequencies were drawn anew.
    Simulation(usize),
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::ClosedForm => f.pad("closed form"),
            Basis::Bound => f.pad("bound"),
            Basis::Approximate => f.pad("approximate"),
            Basis::HeldOut => f.pad("held-out points"),
            Basis::Simulation(draws) => f.pad(&format!("{draws} draws")),
        }
    }
}
