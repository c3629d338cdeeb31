//! The linear part of feature maps: products of points with frequencies.
//!
//! Maps contain their projection; this module is for users who need only ⟨ωⱼ, x⟩.
#![doc = include_str!("doc/growth.md")]

pub use crate::engine::{Method, Projection};
