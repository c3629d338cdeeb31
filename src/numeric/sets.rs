//! Sets of coordinates as bit masks, which tell where features are negative or 0.
//!
//! The sets of many features are stored word by word, starting with the first word of every feature, so that features
//! are the lanes of vectors.

use super::zip;
use crate::Real;

/// The number of features that are processed together: few enough for registers.
const LANES: usize = 16;

/// Calls `change(x, shared)` for each element, where `shared` is gathered from the words of its set and of `set`.
#[inline(always)]
fn each<T: Real>(
    x: &mut [T],
    sets: &[u64],
    set: &[u64],
    gather: impl Fn(u64, u64) -> u64,
    change: impl Fn(T, u64) -> T,
) {
    let count = x.len();
    let (whole, rest) = x.as_chunks_mut::<LANES>();
    let first = count - rest.len();
    for (c, x) in whole.iter_mut().enumerate() {
        let mut shared = [0; LANES];
        for (words, word) in zip((sets.chunks_exact(count), set)) {
            let own = &words[c * LANES..][..LANES];
            zip((&mut shared[..], own)).for_each(|(shared, own)| *shared = gather(*shared, own & word));
        }
        zip((&mut x[..], &shared[..])).for_each(|(x, shared)| *x = change(*x, *shared));
    }
    for (j, x) in rest.iter_mut().enumerate() {
        let words = zip((sets.chunks_exact(count), set));
        *x = change(*x, words.fold(0, |shared, (words, word)| gather(shared, words[first + j] & word)));
    }
}

#[inline(always)]
fn negate_odd_body<T: Real, const FMA: bool>(x: &mut [T], sets: &[u64], set: &[u64]) {
    let change = |x: T, shared: u64| {
        let half = (shared ^ shared >> 32) as u32;
        let folded = [16, 8, 4, 2, 1].into_iter().fold(half, |bits, shift| bits ^ bits >> shift);
        if folded & 1 == 1 { -x } else { x }
    };
    each(x, sets, set, |a, b| a ^ b, change);
}

multiversion! {
    /// xⱼ ← −xⱼ where set j of `sets` and `set` have an odd number of coordinates in common.
    pub fn negate_odd<T>(x: &mut [T], sets: &[u64], set: &[u64]) = negate_odd_body;
}

#[inline(always)]
fn replace_meeting_body<T: Real, const FMA: bool>(x: &mut [T], sets: &[u64], set: &[u64], value: T) {
    each(x, sets, set, |a, b| a | b, |x, shared| if shared != 0 { value } else { x });
}

multiversion! {
    /// xⱼ ← value where set j of `sets` and `set` have a coordinate in common.
    pub fn replace_meeting<T>(x: &mut [T], sets: &[u64], set: &[u64], value: T) = replace_meeting_body;
}

/// The set of a word's coordinates that are members.
#[inline(always)]
fn members<T: Copy>(x: &[T], member: impl Fn(T) -> bool) -> u64 {
    x.iter().enumerate().fold(0, |bits, (bit, x)| bits | u64::from(member(*x)) << bit)
}

#[inline(always)]
fn negative_and_zero_body<T: Real, const FMA: bool>(x: &[T], negative: &mut [u64], zero: &mut [u64]) {
    for (x, negative, zero) in zip((x.chunks(u64::BITS as usize), negative, zero)) {
        (*negative, *zero) = (members(x, |x| x < T::zero()), members(x, |x| x == T::zero()));
    }
}

multiversion! {
    /// The sets of coordinates that are negative, and of those that are 0.
    pub fn negative_and_zero<T>(x: &[T], negative: &mut [u64], zero: &mut [u64]) = negative_and_zero_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Isa;

    #[test]
    fn signs_are_sets_of_coordinates() {
        for isa in Isa::available() {
            for len in [1, 63, 64, 65, 200] {
                let x: Vec<f64> = (0..len).map(|k| [-1.5, 0.0, 2.0, -0.0, f64::NAN][k * k % 5]).collect();
                let words = len.div_ceil(64);
                let (mut negative, mut zero) = (vec![u64::MAX; words], vec![u64::MAX; words]);
                negative_and_zero(isa, &x, &mut negative, &mut zero);
                let holds = |set: &[u64], k: usize| set[k / 64] >> (k % 64) & 1 == 1;
                assert!((0..len).all(|k| holds(&negative, k) == (x[k] < 0.0)), "{isa:?} {len}");
                assert!((0..len).all(|k| holds(&zero, k) == (x[k] == 0.0)), "{isa:?} {len}");
                assert!((len..64 * words).all(|k| !holds(&negative, k) && !holds(&zero, k)), "{isa:?} {len}");
            }
        }
    }

    #[test]
    fn agree_with_counts_of_common_bits() {
        for isa in Isa::available() {
            for (count, words) in [(0, 1), (1, 3), (63, 1), (64, 2), (65, 1), (200, 3)] {
                let word =
                    |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32);
                let sparse = |i: usize| word(i) & word(i + 1000) & word(i + 2000);
                let sets: Vec<u64> = (0..count * words).map(sparse).collect();
                let set: Vec<u64> = (0..words).map(|w| sparse(w + 500)).collect();
                let common =
                    |j: usize| (0..words).map(|w| (sets[w * count + j] & set[w]).count_ones()).sum::<u32>();
                let (mut odd, mut meeting) = (vec![2.0f32; count], vec![2.0f64; count]);
                negate_odd(isa, &mut odd, &sets, &set);
                replace_meeting(isa, &mut meeting, &sets, &set, 7.0);
                assert!((0..count).all(|j| odd[j] == if common(j) % 2 == 1 { -2.0 } else { 2.0 }), "{isa:?}");
                assert!((0..count).all(|j| meeting[j] == if common(j) > 0 { 7.0 } else { 2.0 }), "{isa:?}");
            }
        }
    }
}
