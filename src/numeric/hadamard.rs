//! Rounds of sign flips and Walsh–Hadamard transforms, in place.
//!
//! Stages inside a vector are a shuffle and a fused multiply-add, which compilers do not find in the plain loop. Stages
//! between vectors are sums and differences, three stages at a time with eight vectors in registers. Up to eight
//! vectors stay in registers for all rounds; otherwise the first pass of a round applies the signs, the stages inside
//! vectors and three more. Every element is the result of the same sums on every instruction set, so results are
//! bit-identical everywhere.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::{Isa, Lane, Vector, zip};
use crate::Real;

/// For each round, that is for each v.len() consecutive `signs`: v ← H (signs ∘ v), with the Sylvester–Hadamard matrix
/// H of entries ±1. A factor d^{−1/2} in the signs makes every round a rotation.
///
/// The number of elements must be a power of two, and that of signs a multiple of it; otherwise nothing is done.
pub fn hadamard_rounds<T: Real>(isa: Isa, v: &mut [T], signs: &[T]) {
    if v.len().is_power_of_two() {
        rounds(isa, v, signs);
    }
}

multiversion! {
    fn rounds<T, vector>(v: &mut [T], signs: &[T]) = body;
}

/// A vector that is transformed in place.
trait Butterfly<T>: Vector<T> {
    /// The transform of the elements.
    unsafe fn transform(self) -> Self;
}

/// Vectors that a pass holds in registers.
const RADIX: usize = 8;

/// The length of `v` must be a power of two.
///
/// # Safety
/// The machine must have the instruction set of `V`.
#[inline(always)]
unsafe fn body<T: Lane, V: Butterfly<T>>(v: &mut [T], signs: &[T]) {
    let vectors = v.len() / V::WIDTH;
    // SAFETY: the caller's promise; the lengths are multiples of what the passes take.
    unsafe {
        match vectors {
            0 => signs.chunks_exact(v.len()).for_each(|signs| few(v, signs)),
            1 => first::<T, V, 1>(v, signs),
            2 => first::<T, V, 2>(v, signs),
            4 => first::<T, V, 4>(v, signs),
            RADIX => first::<T, V, RADIX>(v, signs),
            _ => {
                for signs in signs.chunks_exact(v.len()) {
                    let run = RADIX * V::WIDTH;
                    for (v, signs) in zip((v.chunks_exact_mut(run), signs.chunks_exact(run))) {
                        first::<T, V, RADIX>(v, signs);
                    }
                    between::<T, V>(v);
                }
            }
        }
    }
}

/// The stages between runs of [`RADIX`] vectors.
///
/// # Safety
/// The number of vectors must be a power of two; the machine must have the instruction set.
#[inline(always)]
unsafe fn between<T: Lane, V: Vector<T>>(v: &mut [T]) {
    let vectors = v.len() / V::WIDTH;
    let mut stride = RADIX;
    while stride < vectors {
        // SAFETY: the caller's promise.
        unsafe {
            match vectors / stride {
                2 => pass::<T, V, 2>(v, stride),
                4 => pass::<T, V, 4>(v, stride),
                _ => pass::<T, V, RADIX>(v, stride),
            }
        }
        stride *= RADIX;
    }
}

/// A round on fewer elements than a vector has.
#[inline(always)]
fn few<T: Lane>(v: &mut [T], signs: &[T]) {
    zip((&mut *v, signs)).for_each(|(v, s)| *v *= *s);
    let mut half = 1;
    while half < v.len() {
        for i in (0..v.len()).filter(|i| i & half == 0) {
            let (a, b) = (v[i], v[i + half]);
            (v[i], v[i + half]) = (a + b, a - b);
        }
        half *= 2;
    }
}

/// For each run of signs, in order: signs and all stages inside `R` vectors, which stay in registers.
///
/// # Safety
/// `v` must be of `R` vectors; the machine must have the instruction set.
#[inline(always)]
unsafe fn first<T, V: Butterfly<T>, const R: usize>(v: &mut [T], signs: &[T]) {
    // SAFETY: the caller's promise: R vectors lie inside `v` and each run of signs.
    unsafe {
        let to = v.as_mut_ptr();
        // Plain loops: a closure would not be compiled for the instruction set.
        let mut x = [V::load(to); R];
        for (i, x) in x.iter_mut().enumerate() {
            *x = V::load(to.add(i * V::WIDTH));
        }
        for signs in signs.chunks_exact(R * V::WIDTH) {
            for (i, x) in x.iter_mut().enumerate() {
                *x = x.mul(V::load(signs.as_ptr().add(i * V::WIDTH))).transform();
            }
            butterflies(&mut x);
        }
        for (i, x) in x.into_iter().enumerate() {
            x.store(to.add(i * V::WIDTH));
        }
    }
}

/// The stages between `R` vectors that are `stride` vectors apart.
///
/// # Safety
/// The length of `v` must be a multiple of `R * stride` vectors; the machine must have the instruction set.
#[inline(always)]
unsafe fn pass<T, V: Vector<T>, const R: usize>(v: &mut [T], stride: usize) {
    let stride = stride * V::WIDTH;
    for block in (0..v.len()).step_by(R * stride) {
        for start in (block..block + stride).step_by(V::WIDTH) {
            // SAFETY: the caller's promise: the last vector ends at start + (R − 1) stride + WIDTH, inside the block.
            unsafe {
                let v = v.as_mut_ptr().add(start);
                let mut x = [V::load(v); R];
                for (i, x) in x.iter_mut().enumerate() {
                    *x = V::load(v.add(i * stride));
                }
                butterflies(&mut x);
                for (i, x) in x.into_iter().enumerate() {
                    x.store(v.add(i * stride));
                }
            }
        }
    }
}

/// The transform across vectors.
///
/// # Safety
/// The machine must have the instruction set.
#[inline(always)]
unsafe fn butterflies<T, V: Vector<T>, const R: usize>(x: &mut [V; R]) {
    let mut half = 1;
    while half < R {
        for i in 0..R {
            if i & half == 0 {
                let (a, b) = (x[i], x[i + half]);
                // SAFETY: the caller's promise.
                unsafe { (x[i], x[i + half]) = (a.add(b), a.sub(b)) };
            }
        }
        half *= 2;
    }
}

impl<T: Lane, const N: usize> Butterfly<T> for [T; N] {
    #[inline(always)]
    unsafe fn transform(mut self) -> Self {
        let mut half = 1;
        while half < N {
            let x = self;
            self =
                std::array::from_fn(|i| if i & half == 0 { x[i] + x[i + half] } else { x[i - half] - x[i] });
            half *= 2;
        }
        self
    }
}

/// A register type, from its stages: for each the shuffle that swaps partners.
#[cfg(target_arch = "x86_64")]
macro_rules! register {
    ($V:ident of $T:ident: $(stage $half:literal: |$x:ident| $swap:expr),*) => {
        impl Butterfly<$T> for $V {
            #[inline(always)]
            unsafe fn transform(self) -> Self {
                let mut x = self;
                $({
                    /// The upper partner of two is subtracted: partner ± self.
                    const SIGNS: [$T; <$V as Vector<$T>>::WIDTH] = {
                        let mut signs = [1.0; <$V as Vector<$T>>::WIDTH];
                        let mut i = 0;
                        while i < signs.len() {
                            if i & $half != 0 {
                                signs[i] = -1.0;
                            }
                            i += 1;
                        }
                        signs
                    };
                    // SAFETY: the caller's promise; the array holds a vector.
                    unsafe {
                        let $x = x;
                        x = x.madd(Self::load(SIGNS.as_ptr()), $swap);
                    }
                })*
                x
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
register!(__m256 of f32:
    stage 1: |x| _mm256_permute_ps::<0b10_11_00_01>(x),
    stage 2: |x| _mm256_permute_ps::<0b01_00_11_10>(x),
    stage 4: |x| _mm256_permute2f128_ps::<1>(x, x));

#[cfg(target_arch = "x86_64")]
register!(__m256d of f64:
    stage 1: |x| _mm256_permute_pd::<0b01_01>(x),
    stage 2: |x| _mm256_permute2f128_pd::<1>(x, x));

#[cfg(target_arch = "x86_64")]
register!(__m512 of f32:
    stage 1: |x| _mm512_permute_ps::<0b10_11_00_01>(x),
    stage 2: |x| _mm512_permute_ps::<0b01_00_11_10>(x),
    stage 4: |x| _mm512_shuffle_f32x4::<0b10_11_00_01>(x, x),
    stage 8: |x| _mm512_shuffle_f32x4::<0b01_00_11_10>(x, x));

#[cfg(target_arch = "x86_64")]
register!(__m512d of f64:
    stage 1: |x| _mm512_permute_pd::<0b01_01_01_01>(x),
    stage 2: |x| _mm512_shuffle_f64x2::<0b10_11_00_01>(x, x),
    stage 4: |x| _mm512_shuffle_f64x2::<0b01_00_11_10>(x, x));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Real;

    /// Entry (i, j) of the Sylvester–Hadamard matrix: (−1) to the number of common bits.
    fn entry(i: usize, j: usize) -> f64 {
        if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 }
    }

    fn against_the_matrix<T: Real>() {
        for d in (0..if cfg!(miri) { 7 } else { 12 }).map(|q| 1usize << q) {
            let signs: Vec<T> =
                (0..3 * d).map(|i| if i * i % 7 < 3 { T::one() } else { -T::one() }).collect();
            // Small integers: every sum is exact, also in single precision.
            let x: Vec<T> = (0..d).map(|i| T::narrow(((i * 5 + 3) % 3) as f64 - 1.0)).collect();
            let mut expected: Vec<f64> = x.iter().map(|v| v.widen()).collect();
            let rounds = if d > 256 { 1 } else { 2 };
            for signs in signs.chunks_exact(d).take(rounds) {
                let flipped: Vec<f64> = expected.iter().zip(signs).map(|(v, s)| v * s.widen()).collect();
                expected = (0..d).map(|i| (0..d).map(|j| entry(i, j) * flipped[j]).sum()).collect();
            }
            for isa in Isa::available() {
                let mut v = x.clone();
                hadamard_rounds(isa, &mut v, &signs[..rounds * d]);
                assert!(v.iter().zip(&expected).all(|(v, e)| v.widen() == *e), "{isa:?}, d {d}");
            }
        }
    }

    #[test]
    fn is_the_matrix_on_every_instruction_set() {
        against_the_matrix::<f32>();
        against_the_matrix::<f64>();
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let d = if cfg!(miri) { 64 } else { 1024 };
        let x: Vec<f32> = (0..d).map(|i| (i as f32 * 0.37).sin()).collect();
        let signs: Vec<f32> = (0..3 * d).map(|i| if i % 3 == 0 { 0.03125 } else { -0.03125 }).collect();
        let run = |isa| {
            let mut v = x.clone();
            hadamard_rounds(isa, &mut v, &signs);
            v
        };
        let portable = run(Isa::available()[0]);
        assert!(Isa::available().into_iter().all(|isa| run(isa) == portable));
    }

    #[test]
    fn other_lengths_stay() {
        let mut v = [1.0f64, 2.0, 3.0];
        hadamard_rounds(Isa::best(), &mut v, &[1.0; 3]);
        assert_eq!(v, [1.0, 2.0, 3.0]);
        hadamard_rounds::<f64>(Isa::best(), &mut [], &[]);
    }
}
