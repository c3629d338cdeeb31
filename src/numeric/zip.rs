//! [`zip`]: several slices, element by element.

use std::mem::take;
use std::slice::{Chunks, ChunksExact, ChunksExactMut, ChunksMut};

/// The elements of two to five sequences side by side, as far as the shortest goes: `zip((out, a, b))` gives `(out, a, b)`. A sequence
/// is a slice, its chunks, or the rows of a [`Submatrix`](super::Submatrix).
///
/// The compiler sees that all slices end together, and vectorises the loop. What `Iterator::zip` calls is not marked for inlining: without
/// optimisation across codegen units each loop over it begins with calls, after which slices may overlap for all the compiler knows.
#[inline(always)]
pub(super) fn zip<S: Sequences>(sequences: S) -> Zip<S> {
    Zip(sequences.cut())
}

/// The iterator of [`zip`].
pub(super) struct Zip<S>(S);

impl<S: Sequences> Iterator for Zip<S> {
    type Item = S::Elements;

    #[inline(always)]
    fn next(&mut self) -> Option<S::Elements> {
        self.0.take_first()
    }
}

/// A tuple of sequences.
pub(super) trait Sequences {
    /// An element of each sequence.
    type Elements;

    /// The sequences, as long as the shortest whose length is known.
    fn cut(self) -> Self;
    /// Takes the first element of each sequence.
    fn take_first(&mut self) -> Option<Self::Elements>;
}

/// What [`zip`] goes over.
pub(super) trait Sequence: Sized {
    type Element;

    /// The number of elements; `usize::MAX` if it is not known without a division.
    fn count(&self) -> usize;
    /// The first `count` elements, which is at most the number of elements.
    fn first(self, count: usize) -> Self;
    /// Takes the first element.
    fn take_first(&mut self) -> Option<Self::Element>;
}

/// A slice, shared or mutable.
pub(super) trait Slice: Sequence {
    /// Takes the first `count` elements, or all if there are fewer.
    fn take_run(&mut self, count: usize) -> Self;
}

impl<T> Slice for &[T] {
    #[inline(always)]
    fn take_run(&mut self, count: usize) -> Self {
        let (run, rest) = self.split_at(count.min(self.len()));
        *self = rest;
        run
    }
}

impl<T> Slice for &mut [T] {
    #[inline(always)]
    fn take_run(&mut self, count: usize) -> Self {
        let all = take(self);
        let (run, rest) = all.split_at_mut(count.min(all.len()));
        *self = rest;
        run
    }
}

impl<'a, T> Sequence for &'a [T] {
    type Element = &'a T;

    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn first(self, count: usize) -> Self {
        &self[..count]
    }

    #[inline(always)]
    fn take_first(&mut self) -> Option<&'a T> {
        let (first, rest) = self.split_first()?;
        *self = rest;
        Some(first)
    }
}

impl<'a, T> Sequence for &'a mut [T] {
    type Element = &'a mut T;

    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn first(self, count: usize) -> Self {
        &mut self[..count]
    }

    #[inline(always)]
    fn take_first(&mut self) -> Option<&'a mut T> {
        let (first, rest) = take(self).split_first_mut()?;
        *self = rest;
        Some(first)
    }
}

macro_rules! chunks {
    ($($Chunks:ident of $Element:ty),*) => {$(
        impl<'a, T> Sequence for $Chunks<'a, T> {
            type Element = $Element;

            #[inline(always)]
            fn count(&self) -> usize {
                usize::MAX
            }

            #[inline(always)]
            fn first(self, _: usize) -> Self {
                self
            }

            #[inline(always)]
            fn take_first(&mut self) -> Option<$Element> {
                self.next()
            }
        }
    )*};
}

chunks!(Chunks of &'a [T], ChunksExact of &'a [T], ChunksMut of &'a mut [T], ChunksExactMut of &'a mut [T]);

macro_rules! sequences {
    ($($S:ident $sequence:ident),*) => {
        impl<$($S: Sequence),*> Sequences for ($($S,)*) {
            type Elements = ($($S::Element,)*);

            #[inline(always)]
            fn cut(self) -> Self {
                let ($($sequence,)*) = self;
                let count = usize::MAX $(.min($sequence.count()))*;
                ($($sequence.first(count),)*)
            }

            #[inline(always)]
            fn take_first(&mut self) -> Option<Self::Elements> {
                let ($($sequence,)*) = self;
                Some(($($sequence.take_first()?,)*))
            }
        }
    };
}

sequences!(A a, B b);
sequences!(A a, B b, C c);
sequences!(A a, B b, C c, D d);
sequences!(A a, B b, C c, D d, E e);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_as_far_as_the_shortest_slice() {
        for (n, m, l) in [(0, 3, 3), (5, 5, 5), (5, 2, 3), (2, 5, 2), (4, 3, 0)] {
            let (mut out, a, b) = (vec![0; n], Vec::from_iter(1..=m), Vec::from_iter(10..10 + l));
            zip((&mut out[..], &a[..], &b[..])).for_each(|(out, a, b)| *out = a + b);
            let expected = (0..n).map(|i| if i < m.min(l) { a[i] + b[i] } else { 0 });
            assert!(out.iter().copied().eq(expected), "{n} {m} {l}");
        }
        let (mut x, mut y) = ([1, 2, 3], [4, 5]);
        let pairs: Vec<(&mut i32, &mut i32)> = zip((&mut x[..], &mut y[..])).collect();
        pairs.into_iter().for_each(|(x, y)| std::mem::swap(x, y));
        assert_eq!((x, y), ([4, 5, 3], [1, 2]));
        assert!(
            zip((&x[..], &x[..], &y[..], &x[1..], &y[..])).eq([(&4, &4, &1, &5, &1), (&5, &5, &2, &3, &2)])
        );
    }
}
