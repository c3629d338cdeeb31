//! [`Vector`]: a register of elements, for loops that the compiler does not vectorise well.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::Lane;

/// A vector register of elements `T`. Methods may be called only if the machine has its instruction set.
///
/// Arrays are used where no register type is known.
pub trait Vector<T>: Copy {
    /// The number of elements, a power of two.
    const WIDTH: usize;
    /// A register of half as many elements, or this register if there is none.
    type Half: Vector<T>;
    /// The number of rows of a tile of the product: with two vectors for each row, as many sums as fit in registers beside the
    /// operands.
    const ROWS: usize;

    /// A register with `x` in every lane.
    unsafe fn splat(x: T) -> Self;
    /// Reads [`WIDTH`](Self::WIDTH) elements from `from`, which must be readable.
    unsafe fn load(from: *const T) -> Self;
    /// Writes the elements to `to`, which must be writable.
    unsafe fn store(self, to: *mut T);
    /// Writes the elements to `to`, with a non-temporal store if there is one; `to` must be aligned to the vector.
    unsafe fn stream(self, to: *mut T);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// `self · b + c`, fused if the instruction set supports it.
    unsafe fn madd(self, b: Self, c: Self) -> Self;
}

impl<T: Lane, const N: usize> Vector<T> for [T; N] {
    const WIDTH: usize = N;
    type Half = Self;
    /// NEON has 32 registers of 128 bits, SSE2 has 16.
    const ROWS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 4 };

    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        [x; N]
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller's promise; arrays need no more alignment than their elements.
        unsafe { from.cast::<[T; N]>().read() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: as above.
        unsafe { to.cast::<[T; N]>().write(self) }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { self.store(to) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] + other[i])
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] - other[i])
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] * other[i])
    }
    #[inline(always)]
    unsafe fn madd(self, b: Self, c: Self) -> Self {
        std::array::from_fn(|i| self[i].madd::<{ super::isa::BASELINE_FMA }>(b[i], c[i]))
    }
}

/// Prefetches a cache line; any address is allowed.
#[inline(always)]
pub fn prefetch<T>(_line: *const T) {
    // SAFETY: every x86-64 has the instruction, and it never faults.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(_line.cast());
    }
}

/// Prefetches a cache line to the second cache; many more such lines can be on their way at a time.
#[inline(always)]
pub fn prefetch_many<T>(_line: *const T) {
    // SAFETY: as above.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        _mm_prefetch::<_MM_HINT_T1>(_line.cast());
    }
}

/// The number of elements of the widest tile, eight vectors of the widest instruction set: room for the ragged edge of a row.
pub const EDGE: usize = 128;

/// `N` vectors of a row that has `columns` more elements; elements beyond a ragged edge are zero.
///
/// # Safety
/// The elements must be readable; a ragged edge must not be wider than [`EDGE`]. The machine must have the instruction
/// set.
#[inline(always)]
pub unsafe fn load_row<T: Lane, V: Vector<T>, const N: usize>(from: *const T, columns: usize) -> [V; N] {
    // SAFETY: the caller's promise.
    unsafe {
        if columns >= N * V::WIDTH {
            return load(from);
        }
        let mut edge = [MaybeUninit::<T>::uninit(); EDGE];
        for element in &mut edge[columns..N * V::WIDTH] {
            element.write(T::zero());
        }
        from.copy_to_nonoverlapping(edge.as_mut_ptr().cast(), columns);
        load(edge.as_ptr().cast())
    }
}

/// Writes `N` vectors, as far as a row of `columns` more elements has room for them.
///
/// # Safety
/// As [`load_row`], with elements that are writable.
#[inline(always)]
pub unsafe fn store_row<T: Lane, V: Vector<T>, const N: usize>(row: [V; N], to: *mut T, columns: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if columns >= N * V::WIDTH {
            return store(row, to);
        }
        let mut edge = [MaybeUninit::<T>::uninit(); EDGE];
        store(row, edge.as_mut_ptr().cast());
        to.copy_from_nonoverlapping(edge.as_ptr().cast(), columns);
    }
}

/// # Safety
/// `N` vectors must be readable; the machine must have the instruction set.
#[inline(always)]
unsafe fn load<T: Lane, V: Vector<T>, const N: usize>(from: *const T) -> [V; N] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut row = [V::splat(T::zero()); N];
        for (j, vector) in row.iter_mut().enumerate() {
            *vector = V::load(from.add(j * V::WIDTH));
        }
        row
    }
}

/// # Safety
/// `N` vectors must be writable; the machine must have the instruction set.
#[inline(always)]
unsafe fn store<T: Lane, V: Vector<T>, const N: usize>(row: [V; N], to: *mut T) {
    for (j, vector) in row.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { vector.store(to.add(j * V::WIDTH)) };
    }
}

/// A register type, from its intrinsics.
#[cfg(target_arch = "x86_64")]
macro_rules! register {
    ($V:ident of $T:ident x $width:literal, half of it $Half:ident, $rows:literal rows: $splat:ident, $load:ident, $store:ident, $stream:ident,
     $add:ident, $sub:ident, $mul:ident, $fma:ident) => {
        impl Vector<$T> for $V {
            const WIDTH: usize = $width;
            type Half = $Half;
            const ROWS: usize = $rows;

            #[inline(always)]
            unsafe fn splat(x: $T) -> Self {
                // SAFETY: the caller's promise, here and below.
                unsafe { $splat(x) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $T) -> Self {
                // SAFETY: as above.
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $T) {
                // SAFETY: as above.
                unsafe { $store(to, self) }
            }
            #[inline(always)]
            unsafe fn stream(self, to: *mut $T) {
                // SAFETY: as above. Miri has one sort of stores.
                unsafe { if cfg!(miri) { $store(to, self) } else { $stream(to, self) } }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { $sub(self, other) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { $mul(self, other) }
            }
            #[inline(always)]
            unsafe fn madd(self, b: Self, c: Self) -> Self {
                // SAFETY: as above.
                unsafe { $fma(self, b, c) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
register!(__m256 of f32 x 8, half of it __m256, 6 rows: _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_stream_ps,
    _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps, _mm256_fmadd_ps);
#[cfg(target_arch = "x86_64")]
register!(__m256d of f64 x 4, half of it __m256d, 6 rows: _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_stream_pd,
    _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd, _mm256_fmadd_pd);
#[cfg(target_arch = "x86_64")]
register!(__m512 of f32 x 16, half of it __m256, 12 rows: _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_stream_ps,
    _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps, _mm512_fmadd_ps);
#[cfg(target_arch = "x86_64")]
register!(__m512d of f64 x 8, half of it __m256d, 12 rows: _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_stream_pd,
    _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd, _mm512_fmadd_pd);
