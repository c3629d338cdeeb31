//! The linear part of feature maps on its own: products of points with frequencies.
//!
//! A map projects by itself; this is for users who want ⟨ωⱼ, x⟩ and no features.
#![doc = include_str!("doc/growth.md")]

pub use crate::engine::{Method, Projection};
