//! Quasi-Monte-Carlo frequencies: Gaussian images of points that fill the unit cube evenly.
//!
//! [`Halton`] and [`Sobol`] place m points in (0, 1)ᵈ more evenly than independent ones lie, make each of them
//! uniform by randomisation, and take Φ⁻¹ of every coordinate. Estimates are unbiased, as with any coupling;
//! other than with those made of directions and radii, a rotation of the data changes their variance.
//!
//! A coordinate is a cell of the 2⁶⁴ equal ones of (0, 1), an integer, until Φ⁻¹ is taken at its centre:
//! shifts and scrambles are exact, and no coordinate is 0 or 1.
//!
//! The direction numbers of [`Sobol`] are those of S. Joe and F. Y. Kuo, copyright 2008, under the terms in
//! `JOE_KUO_LICENSE.txt` beside this file, which a program that contains them must reproduce.

mod cells;
mod halton;
mod sobol;

pub(super) use cells::from_cell;
pub use halton::{Halton, radical_inverse};
pub use sobol::Sobol;
