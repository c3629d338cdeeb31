//! [`Real`]: the scalars, `f32` and `f64`.

use crate::numeric::Lane;

/// A scalar that maps compute in: `f32` or `f64`. Sealed.
///
/// What comes in as `f32` goes out as `f32`; scales, squared norms and logarithms are `f64` for both.
pub trait Real: ndarray::NdFloat + Lane {
    /// The same number as `f64`.
    fn widen(self) -> f64;

    /// The nearest number of this type; ±∞ beyond its range.
    fn narrow(x: f64) -> Self;

    /// The nearest finite number of this type; NaN stays.
    fn saturated(x: f64) -> Self {
        Self::narrow(x.clamp(Self::min_value().widen(), Self::max_value().widen()))
    }
}

macro_rules! real {
    ($($T:ty),*) => {$(
        impl Real for $T {
            #[inline(always)]
            fn widen(self) -> f64 {
                f64::from(self)
            }

            #[inline(always)]
            fn narrow(x: f64) -> Self {
                x as $T
            }
        }
    )*};
}

real!(f32, f64);
