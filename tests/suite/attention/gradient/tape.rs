//! Tapes: whatever they keep, no bit of an output or of a gradient depends on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::attention::gradient::{backward, bits, uneven};
use crate::attention::positive;
use crate::common::{frequencies, tokens};
use crate::threads::on_threads;
use ndarray::{Array2, Array4, ArrayView2, ArrayViewMut2};
use num_complex::Complex64;
use random_features::apply::attention::{Attended, Attention, Gradients, Heads, Tape, TokenElement};
use random_features::compose::{Bases, Conditioning, Hybrid};
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::frequency::{Counts, Frequencies, Independent, Orthogonal};
use random_features::map::{Shift, Transform};
use random_features::theory::complex_exponential::Symmetry;
use random_features::{
    ComplexExponential, EluPlusOne, Error, Hyperbolic, Map, Poisson, Positive, Real, Result, Side,
    Trigonometric, rng,
};

fn recorded<T: Real, E: TokenElement<T>>(
    attention: &Attention<T>,
    heads: &Heads<'_, E>,
    causal: bool,
) -> Result<(Attended<T>, Tape<T>)> {
    if causal { attention.causal_recorded(heads) } else { attention.bidirectional_recorded(heads) }
}

fn bits_of<T: Real>(output: &Array4<T>, gradients: &Gradients<T>) -> [Vec<u64>; 4] {
    let Gradients { queries, keys, values, .. } = gradients;
    [output, queries, keys, values].map(|x| bits(x, 0..x.dim().2))
}

/// Budgets in bytes, with numbers of threads: for nothing, for some keys, for all keys of narrow maps and some queries, and for all.
const ALL: &[(usize, usize)] =
    &[(0, 1), (0, 3), (40_000, 1), (40_000, 3), (150_000, 1), (150_000, 3), (usize::MAX, 1), (usize::MAX, 3)];

/// Budgets and threads in which kinds of attention differ: a tape keeps a part, or all.
const SOME_AND_ALL: &[(usize, usize)] = &[(150_000, 3), (usize::MAX, 1), (usize::MAX, 3)];

/// No budget, and no number of threads, changes a bit, in a first or a second backward pass.
#[track_caller]
fn tapes_change_no_bit<T: Real>(
    name: &str,
    attention: &Attention<T>,
    (heads, g): (&Heads<'_, T>, &Array4<T>),
    cases: &[(usize, usize)],
) {
    for causal in [false, true] {
        let forward = if causal { attention.causal(heads) } else { attention.bidirectional(heads) }.unwrap();
        let expected = bits_of(&forward.output, &backward(attention, heads, g, causal));
        for &(budget, threads) in cases {
            let attention = attention.clone().with_tape(budget);
            on_threads(threads, || {
                let what = format!("{name}, causal {causal}, {budget} bytes, {threads} threads");
                let (found, tape) = recorded(&attention, heads, causal).unwrap();
                assert_eq!(found.non_positive, forward.non_positive, "{what}");
                for pass in 0..2 {
                    let gradients = tape.backward(heads, g).unwrap();
                    let same = bits_of(&found.output, &gradients) == expected;
                    assert!(same && tape.bytes() <= budget, "{what}, pass {pass}");
                }
            });
        }
    }
}

/// A map of transformed points, whose factors outputs may do without.
fn shaped<T: Real>(omega: Frequencies) -> Map<T> {
    let shape = |(k, l)| if k == l { 0.8 + 0.1 * k as f64 } else { 0.05 * (k as f64 - l as f64) };
    let shape = Conditioning::new(Array2::from_shape_fn((6, 6), shape)).unwrap();
    let shape = shape.shifted(vec![0.1; 6], vec![-0.2; 6]).unwrap();
    Positive.softmax(omega).and_then(|map: Map<T>| map.conditioned(&shape)).unwrap()
}

fn complex<T: Real>(omega: Frequencies) -> Map<T> {
    let a = Transform::diagonal(vec![Complex64::new(0.8, 0.3); 6]).unwrap();
    ComplexExponential::new(a, Symmetry::Plain).softmax(omega).unwrap()
}

fn change_no_bit<T: Real>() {
    let l = 1300;
    let [q, g] = [1, 4].map(|seed| uneven::<T>(l, 2, seed));
    let [k, v] = [2, 3].map(|seed| uneven::<T>(l, 1, seed));
    let mask = Array2::from_shape_fn((1, l), |(_, j)| j % 5 != 1 && !(100..300).contains(&j));
    let plain = Heads::new(&q, &k, &v).unwrap();
    let masked = plain.clone().with_mask(&mask).unwrap();
    let ends = [0, 0, 70, 198, l];
    let sequences = plain.clone().with_sequences(&ends, &ends).unwrap();
    let omega = || frequencies(6, 16, &Orthogonal, 3);
    let of = |map: Map<T>| Attention::signed(vec![map]).unwrap();
    let own = of(positive(6, 16));
    let near = own.clone().with_window(70, 9).unwrap().with_keys_exact(&[0, 5, 400]).unwrap();
    // Sequences share a budget, so that of several some are kept, one in part and some not.
    for (name, heads, cases) in
        [("plain", &plain, SOME_AND_ALL), ("masked", &masked, SOME_AND_ALL), ("sequences", &sequences, ALL)]
    {
        tapes_change_no_bit(name, &own, (heads, &g), cases);
        tapes_change_no_bit(&format!("{name}, exact pairs"), &near, (heads, &g), cases);
    }
    let counts = Counts::poisson(6, 16, 1.5, rng(4).next_u64()).unwrap();
    let shifted = Poisson::default().shifted(Shift::new(vec![3.0; 6], 0.1).unwrap()).softmax(counts).unwrap();
    for (name, attention) in [
        ("a window of whole chunks", own.clone().with_window(128, 0).unwrap()),
        ("cosine", own.clone().with_cosine(0.7).unwrap()),
        ("undivided", own.clone().without_normalisers()),
        ("shrunk", own.clone().with_shrinkage(&[0.3]).unwrap()),
        ("shifted", of(shifted)),
        ("hyperbolic", of(Hyperbolic.softmax(omega()).unwrap())),
        ("trigonometric", of(Trigonometric.softmax(omega()).unwrap())),
        ("complex", of(complex(omega()))),
        ("complex, undivided", of(complex(omega())).without_normalisers()),
        ("complex, a window", of(complex(omega())).with_window(70, 9).unwrap()),
        ("shaped", of(shaped(omega()))),
        ("shaped, undivided", of(shaped(omega())).without_normalisers()),
        ("shaped, a window", of(shaped(omega())).with_window(70, 9).unwrap()),
        ("ELU + 1", of(EluPlusOne.build(6, 1.0).unwrap())),
        ("hybrid", of(Hybrid::angular(Bases::shared(omega()), frequencies(6, 4, &Independent, 6)).unwrap())),
    ] {
        tapes_change_no_bit(name, &attention, (&masked, &g), SOME_AND_ALL);
    }
}

#[test]
fn tapes_change_no_bit_in_f32() {
    change_no_bit::<f32>();
}

#[test]
fn tapes_change_no_bit_in_f64() {
    change_no_bit::<f64>();
}

/// Queries and keys of other lengths, of several batches and heads with maps of their own, in another layout.
#[test]
fn tapes_serve_any_shape() {
    let swapped = |x: Array4<f32>| {
        let mut stored = x.view().permuted_axes([0, 2, 1, 3]).as_standard_layout().into_owned();
        stored.swap_axes(1, 2);
        stored
    };
    let q = swapped(tokens([2, 4, 90, 6], 0.7, 1));
    let [k, v] = [2, 3].map(|seed| swapped(tokens::<f32>([2, 2, 201, 6], 0.7, seed)));
    let g = swapped(tokens([2, 4, 90, 6], 0.7, 4));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let maps = [1, 2].map(|seed| Positive.softmax(frequencies(6, 16, &Orthogonal, seed)));
    let attention = Attention::per_head(maps.map(|map| map.unwrap()).to_vec()).unwrap();
    for attention in [attention.clone(), attention.with_window(20, 30).unwrap()] {
        let (found, tape) = attention.bidirectional_recorded(&heads).unwrap();
        assert_eq!(found, attention.bidirectional(&heads).unwrap());
        assert_eq!(tape.backward(&heads, &g).unwrap(), backward(&attention, &heads, &g, false));
        let (of_tokens, of_maps) = tape.backward_with_parameters(&heads, &g).unwrap();
        let expected = attention.bidirectional_backward_with_parameters(&heads, &g).unwrap();
        assert_eq!(of_tokens, expected.0);
        let rows = of_maps.iter().zip(&expected.1);
        assert!(of_maps.len() == 2 && rows.into_iter().all(|(a, b)| a.frequencies == b.frequencies));
    }
}

/// The features (1, x) of 1 + x·y, which count how often those of a point are asked for.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl FeatureMap<f64> for Counted {
    fn facts(&self) -> Facts {
        Facts::new(2, vec![3]).symmetric()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, f64>, _: Form, tile: &mut Tile<'_, f64>) {
        self.0.fetch_add(x.nrows(), Ordering::Relaxed);
        for (i, x) in x.rows().into_iter().enumerate() {
            let row = tile.row(i);
            let largest = x.iter().fold(1.0, |most: f64, v| most.max(v.abs()));
            row.values[0] = 1.0 / largest;
            row.values[1..].iter_mut().zip(x).for_each(|(value, x)| *value = *x / largest);
            row.log_scales[0] = largest.ln();
        }
    }

    fn pull_back(
        &self,
        _: Side,
        x: ArrayView2<'_, f64>,
        cotangents: ArrayView2<'_, f64>,
        mut out: ArrayViewMut2<'_, f64>,
    ) -> bool {
        for ((x, c), mut out) in x.rows().into_iter().zip(cotangents.rows()).zip(out.rows_mut()) {
            let largest = x.iter().fold(1.0, |most: f64, v| most.max(v.abs()));
            out.iter_mut().zip(c.iter().skip(1)).for_each(|(out, c)| *out = c / largest);
        }
        true
    }
}

/// Features of a token on the tape are computed once, those of others once in the forward pass and twice in the backward pass.
#[test]
fn what_is_kept_is_not_computed_again() {
    let (l, count) = (640, Arc::new(AtomicUsize::new(0)));
    let attention =
        Attention::signed(vec![Map::of_feature_map(Counted(Arc::clone(&count))).unwrap()]).unwrap();
    let [q, k, v, g] = [1, 2, 3, 4].map(|seed| tokens::<f64>([1, 1, l, 2], 0.3, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    // D = 3 numbers and a scale, with precision; two sums, and the scale and the normaliser.
    let of_key = 4 * 8 + 16;
    let of_query = of_key + 2 * 8 + 16;
    for causal in [false, true] {
        let counted = |budget: usize| {
            count.store(0, Ordering::Relaxed);
            let (_, tape) = recorded(&attention.clone().with_tape(budget), &heads, causal).unwrap();
            let forward = count.load(Ordering::Relaxed);
            tape.backward(&heads, &g).unwrap();
            (forward, count.load(Ordering::Relaxed), tape.bytes())
        };
        let (forward, all, bytes) = counted(usize::MAX);
        assert_eq!((forward, all), (2 * l, 2 * l), "causal {causal}");
        assert!(bytes >= l * (of_key + of_query), "{bytes} bytes");
        let (forward, none, nothing) = counted(0);
        assert_eq!((forward, none, nothing), (2 * l, 6 * l, 0), "causal {causal}");
        // Half of the bytes hold most keys in whole chunks, or all of them and some queries.
        let (_, some, half) = counted(bytes / 2);
        assert!(
            some > 2 * l && some < 5 * l && half <= bytes / 2 && 3 * half > bytes,
            "{some}, {half} bytes"
        );
        assert!((6 * l - some).is_multiple_of(128), "whole chunks, twice each: {some}");
        // The same bytes are enough for all, and one less is not.
        assert_eq!(counted(bytes).1, 2 * l);
        assert!(counted(bytes - 1).1 > 2 * l);
    }
}

#[test]
fn what_is_not_on_the_tape_is_refused() {
    let x = tokens::<f64>([2, 2, 40, 6], 0.5, 1);
    let attention = Attention::new(positive::<f64>(6, 8)).unwrap();
    let heads = Heads::new(&x, &x, &x).unwrap();
    let (_, tape) = attention.causal_recorded(&heads).unwrap();
    assert!(tape.backward(&heads, &x).is_ok());
    for shape in [[1, 2, 40, 6], [2, 1, 40, 6], [2, 2, 41, 6], [2, 2, 40, 5]] {
        let other = tokens::<f64>(shape, 0.5, 1);
        let found = tape.backward(&Heads::new(&other, &other, &other).unwrap(), &other);
        assert!(matches!(found, Err(Error::Shape { .. })), "{shape:?}");
        assert!(matches!(tape.backward(&heads, &other), Err(Error::Shape { .. })), "{shape:?}");
    }
    for ends in [vec![0, 10, 40], vec![0, 20, 30, 40]] {
        let cut = Heads::new(&x, &x, &x).unwrap().with_sequences(&ends, &ends).unwrap();
        assert!(matches!(tape.backward(&cut, &x), Err(Error::Unsupported { .. })));
        let (_, of_cut) = attention.causal_recorded(&cut).unwrap();
        assert!(of_cut.backward(&cut, &x).is_ok() && of_cut.backward(&heads, &x).is_err());
        let other: Vec<usize> = ends.iter().map(|end| if *end == ends[1] { end + 1 } else { *end }).collect();
        let moved = Heads::new(&x, &x, &x).unwrap().with_sequences(&other, &other).unwrap();
        assert!(matches!(of_cut.backward(&moved, &x), Err(Error::Unsupported { .. })));
    }
    let uneven = tokens::<f64>([2, 2, 41, 6], 0.5, 1);
    let uneven = Heads::new(&x, &uneven, &uneven).unwrap();
    assert!(matches!(attention.causal_recorded(&uneven), Err(Error::Shape { .. })));
    assert!(attention.bidirectional_recorded(&uneven).is_ok());
}

/// Queries, or keys, of other sequences are refused, whatever those of the others are.
#[test]
fn other_sequences_are_refused() {
    let x = tokens::<f64>([1, 2, 40, 6], 0.5, 1);
    let attention = Attention::new(positive::<f64>(6, 8)).unwrap();
    let ends = [[0, 10, 40], [0, 30, 40]];
    let cut = |queries: usize, keys: usize| {
        Heads::new(&x, &x, &x).unwrap().with_sequences(&ends[queries], &ends[keys]).unwrap()
    };
    for (own, others) in [((0, 0), [(1, 0), (0, 1), (1, 1)]), ((0, 1), [(0, 0), (1, 1), (1, 0)])] {
        let (_, tape) = attention.bidirectional_recorded(&cut(own.0, own.1)).unwrap();
        assert!(tape.backward(&cut(own.0, own.1), &x).is_ok());
        for other in others {
            let found = tape.backward(&cut(other.0, other.1), &x);
            assert!(matches!(found, Err(Error::Unsupported { .. })), "{own:?}, {other:?}");
        }
    }
}

/// A mask belongs to what is on the tape: of the keys too whose features are kept, and of sums over them.
#[test]
fn another_mask_is_refused() {
    let x = tokens::<f64>([2, 2, 40, 6], 0.5, 1);
    let attention = Attention::new(positive::<f64>(6, 8)).unwrap();
    let masks = [3, 4].map(|last| Array2::from_shape_fn((2, 40), |(b, j)| b == 0 || j % 5 != last));
    let plain = Heads::new(&x, &x, &x).unwrap();
    let [first, second] = masks.each_ref().map(|mask| plain.clone().with_mask(mask).unwrap());
    let all = [&plain, &first, &second];
    for causal in [false, true] {
        for (i, own) in all.iter().enumerate() {
            let (_, tape) = recorded(&attention, own, causal).unwrap();
            for (j, other) in all.iter().enumerate() {
                match tape.backward(other, &x) {
                    Ok(_) => assert_eq!(i, j),
                    Err(error) => assert!(i != j && matches!(error, Error::Unsupported { .. })),
                }
            }
        }
    }
    // A mask of the same entries is the same, whatever its layout.
    let (_, tape) = attention.causal_recorded(&first).unwrap();
    let mut other = masks[0].t().as_standard_layout().into_owned();
    other.swap_axes(0, 1);
    assert!(tape.backward(&plain.clone().with_mask(&other).unwrap(), &x).is_ok());
}

/// Backward passes at the same time, of which each may be the first to keep the features of a query.
#[test]
fn threads_share_a_tape() {
    let [q, k, v, g] = [1, 2, 3, 4].map(|seed| uneven::<f32>(1300, 1, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let attention = Attention::new(shaped(frequencies(6, 16, &Orthogonal, 3))).unwrap();
    for attention in [attention.clone(), attention.with_window(70, 9).unwrap()] {
        for causal in [false, true] {
            let expected = backward(&attention, &heads, &g, causal);
            for _ in 0..10 {
                let (_, tape) = recorded(&attention, &heads, causal).unwrap();
                let found: Vec<Gradients<f32>> = thread::scope(|scope| {
                    let run = || tape.backward(&heads, &g).unwrap();
                    [0, 1].map(|_| scope.spawn(run)).map(|own| own.join().unwrap()).into()
                });
                assert!(found.iter().all(|found| *found == expected), "causal {causal}");
            }
        }
    }
}

/// The gradients of queries rest on what was read of the values of the forward pass, which are not read again.
#[test]
fn what_queries_have_read_is_on_the_tape() {
    let attention = Attention::new(positive::<f64>(6, 16)).unwrap();
    // Sums are kept of many keys, but not of a few.
    for (causal, l, has_sums) in [(true, 300, false), (false, 10, false), (false, 1300, true)] {
        let [q, k, v, other, g] = [1, 2, 3, 4, 5].map(|seed| tokens::<f64>([1, 1, l, 6], 0.5, seed));
        let heads = [&v, &other].map(|values| Heads::new(&q, &k, values).unwrap());
        let [own, of_other] = heads.each_ref().map(|heads| backward(&attention, heads, &g, causal).queries);
        let (_, tape) = recorded(&attention, &heads[0], causal).unwrap();
        let found = tape.backward(&heads[1], &g).unwrap().queries;
        assert_ne!(found, of_other, "causal {causal}, {l} tokens");
        assert_eq!(found == own, has_sums, "causal {causal}, {l} tokens");
        // Without a tape they are read again.
        let (_, tape) = recorded(&attention.clone().with_tape(0), &heads[0], causal).unwrap();
        assert_eq!(tape.backward(&heads[1], &g).unwrap().queries, of_other);
    }
}

/// A tape of many short sequences stays in its budget; without memory for it, and without room for a list, it keeps nothing.
#[test]
fn short_sequences_share_the_budget() {
    let x = tokens::<f32>([1, 2, 2000, 6], 0.5, 1);
    let ends: Vec<usize> = (0..=500).map(|sequence| 4 * sequence).collect();
    let heads = Heads::new(&x, &x, &x).unwrap().with_sequences(&ends, &ends).unwrap();
    let attention = Attention::new(positive::<f32>(6, 16)).unwrap();
    for causal in [false, true] {
        let expected = backward(&attention, &heads, &x, causal);
        for budget in [0, 1, 1000, 100_000, usize::MAX] {
            let (_, tape) = recorded(&attention.clone().with_tape(budget), &heads, causal).unwrap();
            assert_eq!(tape.backward(&heads, &x).unwrap(), expected);
            assert!(tape.bytes() <= budget && (tape.bytes() == 0) == (budget < 1000), "{budget} bytes");
        }
    }
}
