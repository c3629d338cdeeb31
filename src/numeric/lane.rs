//! [`Lane`]: the element type of loop bodies, implemented for `f32` and `f64`.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256, __m256d, __m512, __m512d};

use crate::Real;

/// An element of a vectorised loop. Loops that need further operations define a trait for them.
pub trait Lane: Real {
    /// The vectors of AVX-512.
    #[cfg(target_arch = "x86_64")]
    type Avx512;
    /// The vectors of AVX2.
    #[cfg(target_arch = "x86_64")]
    type Avx2;
    /// The vectors of the baseline of the target: 128 bits.
    type Portable;

    /// `self · b + c`, fused if `FMA`.
    fn madd<const FMA: bool>(self, b: Self, c: Self) -> Self;
}

macro_rules! lane {
    ($T:ident, vectors: $avx512:ident, $avx2:ident, $portable:literal) => {
        impl Lane for $T {
            #[cfg(target_arch = "x86_64")]
            type Avx512 = $avx512;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = $avx2;
            type Portable = [$T; $portable];

            #[inline(always)]
            fn madd<const FMA: bool>(self, b: Self, c: Self) -> Self {
                if FMA { self.mul_add(b, c) } else { self * b + c }
            }
        }
    };
}

lane!(f32, vectors: __m512, __m256, 4);
lane!(f64, vectors: __m512d, __m256d, 2);
