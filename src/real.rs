//! [`Real`]: the scalars, `f32` and `f64`.

use crate::numeric::Lane;

/// A scalar that maps compute in: `f32` or `f64`. Sealed.
///
/// What comes in as `f32` goes out as `f32`; scales, squared norms and logarithms are `f64` for both.
pub trait Real: ndarray::NdFloat + Lane {}

impl Real for f32 {}
impl Real for f64 {}
