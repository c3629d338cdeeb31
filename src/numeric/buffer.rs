//! [`Buffer`]: memory aligned to a cache line. [`Stream`]: non-temporal stores, which bypass the caches.

use super::{Isa, Lane, Vector};
use crate::Real;

/// The bytes of a cache line, and of the widest vector.
pub const LINE: usize = 64;

/// Rows that are a multiple of this many bytes apart share too few sets of the first cache.
const ALIASING: usize = 2048;

/// The least distance, in elements, between rows of `len` elements that are read together, with which they do not share a
/// few sets of the first cache.
pub fn spread<T>(len: usize) -> usize {
    let aliased = len > 0 && (len * size_of::<T>()).is_multiple_of(ALIASING);
    if aliased { len + LINE / size_of::<T>() } else { len }
}

/// The elements of the last [`take`](Buffer::take), aligned to a cache line. The memory grows on demand and is kept.
#[derive(Debug, Default)]
pub struct Buffer<T> {
    storage: Vec<T>,
    /// The index of the first cache line in `storage`.
    start: usize,
    /// The number of elements taken last.
    len: usize,
}

impl<T: Real> Buffer<T> {
    /// A buffer of these elements.
    pub fn of(elements: impl ExactSizeIterator<Item = T>) -> Self {
        let mut buffer = Buffer::default();
        buffer.take(elements.len()).iter_mut().zip(elements).for_each(|(to, element)| *to = element);
        buffer
    }

    /// Takes `len` elements with arbitrary contents.
    pub fn take(&mut self, len: usize) -> &mut [T] {
        if self.storage.is_empty() || self.storage.len() < self.start + len {
            self.storage = vec![T::zero(); len + LINE / size_of::<T>()];
            self.start = first_line(&self.storage);
        }
        self.len = len;
        &mut self.storage[self.start..][..len]
    }
}

impl<T: Clone> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        let Some(first) = self.first() else {
            return Buffer { storage: Vec::new(), start: 0, len: 0 };
        };
        // The copy may begin elsewhere within a line than the original.
        let mut storage = vec![first.clone(); self.len + LINE / size_of::<T>()];
        let start = first_line(&storage);
        storage[start..][..self.len].clone_from_slice(self);
        Buffer { storage, start, len: self.len }
    }
}

/// The index of the first element that begins a cache line, in elements that fill more than one line.
pub(super) fn first_line<T>(elements: &[T]) -> usize {
    elements.as_ptr().align_offset(LINE).min(LINE / size_of::<T>())
}

impl<T> std::ops::DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.storage[self.start..][..self.len]
    }
}

impl<T> std::ops::Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.storage[self.start..][..self.len]
    }
}

/// On drop, orders non-temporal stores before all later stores, also if a stream is abandoned.
#[derive(Debug)]
pub struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        // SAFETY: every x86-64 has the instruction.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

/// A slice that is written from its beginning with non-temporal stores, for memory that is not read soon.
#[derive(Debug)]
pub struct Stream<'a, T> {
    to: &'a mut [T],
    written: usize,
}

impl<'a, T: Real> Stream<'a, T> {
    /// A stream that has written nothing. The fence outlives it.
    pub fn new(to: &'a mut [T], _fence: &'a Fence) -> Self {
        Stream { to, written: 0 }
    }

    /// Copies the new part of `from`, which starts at the beginning of the slice: up to the last whole vector, or to
    /// the end of the slice.
    pub fn advance(&mut self, from: &[T]) {
        advance(Isa::best(), self.to, &mut self.written, from);
    }
}

multiversion! {
    /// Copies `from` to `to` starting at `written`, which it advances.
    fn advance<T, vector>(to: &mut [T], written: &mut usize, from: &[T]) = body;
}

/// # Safety
/// The machine must have the instruction set of `V`.
#[inline(always)]
unsafe fn body<T: Lane, V: Vector<T>>(to: &mut [T], written: &mut usize, from: &[T]) {
    let known = to.len().min(from.len());
    let head = to.as_ptr().align_offset(size_of::<V>());
    let mut at = *written;
    if at < head.min(known) {
        to[at..head.min(known)].copy_from_slice(&from[at..head.min(known)]);
        at = head.min(known);
    }
    while at >= head && at + V::WIDTH <= known {
        // SAFETY: at + WIDTH ≤ known, which is at most both lengths; `to` is aligned to a vector, of WIDTH elements, at
        // its head, and hence at the end of each vector that follows.
        unsafe { V::load(from.as_ptr().add(at)).stream(to.as_mut_ptr().add(at)) };
        at += V::WIDTH;
    }
    if known == to.len() {
        to[at..].copy_from_slice(&from[at..known]);
        at = known;
    }
    *written = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wherever the memory of a copy begins.
    #[test]
    fn copies_hold_what_was_held() {
        let mut copies = Vec::new();
        for (first, then) in (1..40).flat_map(|n| [(172, 172 + n % 16), (177, 150 + n), (5 * n, 5 * n + 3)]) {
            let mut buffer = Buffer::<f32>::default();
            buffer.take(first);
            buffer.take(then).fill(first as f32);
            copies.push(buffer.clone());
            copies.push(copies[copies.len() - 1].clone());
            for copy in &copies[copies.len() - 2..] {
                assert_eq!((copy.len(), copy.as_ptr().align_offset(LINE)), (then, 0));
                assert!(copy.iter().all(|v| *v == first as f32));
            }
        }
    }

    #[test]
    fn begins_with_a_line() {
        let mut buffer = Buffer::<f32>::default();
        for len in [0, 1, 1000, 17] {
            let slice = buffer.take(len);
            assert_eq!((slice.len(), slice.as_ptr().align_offset(LINE)), (len, 0));
            assert_eq!(buffer.len(), len);
        }
        assert_eq!(*Buffer::of([3.0f64, 4.0].into_iter()), [3.0, 4.0]);
    }

    #[test]
    fn streams_in_steps_to_any_place() {
        let from: Vec<f32> = (0..200).map(|i| i as f32).collect();
        for isa in Isa::available() {
            for (first, len) in [(0, 200), (1, 150), (7, 100), (16, 3), (1, 0)] {
                for steps in [1, 2, 5, 29, 150] {
                    let (mut to, mut written) = (vec![-1.0; 200], 0);
                    for step in 1..=steps {
                        let known = len * step / steps;
                        advance(isa, &mut to[first..][..len], &mut written, &from[..known]);
                        assert!(written <= known && known < written + 2 * 16, "{isa:?}");
                    }
                    assert_eq!((&to[first..][..len], written), (&from[..len], len), "{isa:?}");
                    assert!(to[..first].iter().chain(&to[first + len..]).all(|v| *v == -1.0), "{isa:?}");
                }
            }
        }
    }
}
