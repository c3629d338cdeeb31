//! [`Lane`]: what a loop body needs of an element, implemented for `f32` and `f64`.

use num_traits::Float;

use super::product::Block;
use super::{exp, sincos};

/// An element of a vectorised loop. Public in a private module: it seals [`Real`](crate::Real).
pub trait Lane: Float + Default + Send + Sync + 'static {
    /// Columns of a packed panel: two cache lines of elements.
    const PANEL: usize;
    /// The largest |x| for which [`Lane::fast_cos_sin`] is accurate.
    const COS_SIN_LIMIT: Self;

    /// `self · b + c`, fused where `FMA`.
    fn madd<const FMA: bool>(self, b: Self, c: Self) -> Self;
    /// eˣ, without a branch.
    fn fast_exp<const FMA: bool>(self) -> Self;
    /// (cos x, sin x) for |x| ≤ [`Lane::COS_SIN_LIMIT`], without a branch.
    fn fast_cos_sin<const FMA: bool>(self) -> (Self, Self);
    /// Runs a block product with this type's register blocking for the instruction set.
    fn run_block(isa: super::Isa, block: Block<'_, Self>);
    /// One round of [`hadamard_rounds`](super::hadamard_rounds) in this type's vectors for the instruction set.
    fn run_hadamard(isa: super::Isa, v: &mut [Self], signs: &[Self]);
}

macro_rules! lane {
    ($T:ident, panel: $panel:literal, avx512: $m512:literal x $n512:literal,
     avx2: $m2:literal x $n2:literal, portable: $mp:literal x $np:literal,
     vectors: $v512:ident, $v2:ident, $vp:literal) => {
        impl Lane for $T {
            const PANEL: usize = $panel;
            const COS_SIN_LIMIT: Self = 1e5;

            #[inline(always)]
            fn madd<const FMA: bool>(self, b: Self, c: Self) -> Self {
                if FMA { self.mul_add(b, c) } else { self * b + c }
            }
            #[inline(always)]
            fn fast_exp<const FMA: bool>(self) -> Self {
                exp::$T::<FMA>(self)
            }
            #[inline(always)]
            fn fast_cos_sin<const FMA: bool>(self) -> (Self, Self) {
                sincos::$T::<FMA>(self)
            }

            fn run_block(isa: super::Isa, block: Block<'_, Self>) {
                use super::isa::{BASELINE_FMA, Level};
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma")]
                fn avx2(block: Block<'_, $T>) {
                    block.run::<true, $m2, $n2, $panel>();
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn avx512(block: Block<'_, $T>) {
                    block.run::<true, $m512, $n512, $panel>();
                }
                match isa.level() {
                    // SAFETY: an `Isa` of this level exists only where the machine was found to have it.
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx512 => unsafe { avx512(block) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 => unsafe { avx2(block) },
                    Level::Portable => block.run::<BASELINE_FMA, $mp, $np, $np>(),
                }
            }

            fn run_hadamard(isa: super::Isa, v: &mut [Self], signs: &[Self]) {
                use super::hadamard::round;
                use super::isa::Level;
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma")]
                fn avx2(v: &mut [$T], signs: &[$T]) {
                    // SAFETY: this function's own instruction set.
                    unsafe { round::<$T, std::arch::x86_64::$v2>(v, signs) }
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn avx512(v: &mut [$T], signs: &[$T]) {
                    // SAFETY: as above.
                    unsafe { round::<$T, std::arch::x86_64::$v512>(v, signs) }
                }
                match isa.level() {
                    // SAFETY: an `Isa` of this level exists only where the machine was found to have it.
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx512 => unsafe { avx512(v, signs) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 => unsafe { avx2(v, signs) },
                    // SAFETY: arrays need no instruction set.
                    Level::Portable => unsafe { round::<$T, [$T; $vp]>(v, signs) },
                }
            }
        }
    };
}

// Rows × columns of accumulators: as many vector registers as leave room for the operands, and few enough that the
// compiler unrolls them all. (With 12 × 32 in f32 it does not, and the sums fall out of the registers.)
lane!(f32, panel: 32, avx512: 12 x 16, avx2: 6 x 16, portable: 4 x 8, vectors: __m512, __m256, 4);
lane!(f64, panel: 16, avx512: 12 x 8, avx2: 6 x 8, portable: 4 x 4, vectors: __m512d, __m256d, 2);
