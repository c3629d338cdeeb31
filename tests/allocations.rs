//! What must not allocate does not: predictions of one point after the other. What is stated of memory holds.
#![allow(unsafe_code, reason = "an allocator that counts")]
#![cfg(any(feature = "faer", feature = "ndarray-linalg"))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{panic, thread};

use ndarray::{Array2, Array4, ArrayView1, s};
use random_features::apply::attention::{Attention, Gradients, Heads};
use random_features::apply::{RidgeStatistics, Standardisation};
use random_features::frequency::{Hadamard, Orthogonal};
use random_features::kernel::Activation;
use random_features::{EluPlusOne, Hyperbolic, Map, Nonlinear, Positive, Real, Sign, Trigonometric};

/// The system's allocator, which counts what each thread asks of it.
struct Counting;

/// Bytes that all threads hold, and the most that they held since this was last set.
static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Runs a test while no other runs, since each counts what all threads hold. A thread of its own has ended, and freed what the
/// engine keeps for it, before the next begins.
fn alone(test: fn()) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(cause) = thread::spawn(test).join() {
        panic::resume_unwind(cause);
    }
}

fn take(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no counter.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        take(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // The old block is held until the new one is filled.
        take(size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often this thread allocates.
fn allocations(run: impl FnOnce()) -> usize {
    let before = COUNT.get();
    run();
    COUNT.get() - before
}

fn check<T: Real>(map: Map<T>, targets: usize, standardised: bool) {
    let x = Array2::from_shape_fn((200, map.dim()), |(i, k)| {
        T::narrow((((i * 7 + k * 13) % 29) as f64 / 29.0 - 0.5) * 0.5)
    });
    let y = Array2::from_shape_fn((200, targets), |(i, j)| T::narrow(((i + j) as f64).sin()));
    let name = format!("{map:?}, {targets} targets, {standardised}");
    let mut statistics = RidgeStatistics::new(map, targets).unwrap();
    if standardised {
        statistics = statistics.with_standardisation(Standardisation::of(&x).unwrap()).unwrap();
    }
    statistics.update(&x, &y).unwrap();
    let model = statistics.solve(1e-3).unwrap();
    let expected = model.predict(&x).unwrap();
    let mut predictor = model.predictor();
    let mut out = vec![T::zero(); targets];
    predictor.predict_into(&x.row(0), &mut out).unwrap();
    let found = allocations(|| {
        for (x, expected) in x.rows().into_iter().zip(expected.rows()) {
            predictor.predict_into(&x, &mut out).unwrap();
            assert_eq!(ArrayView1::from(&out), expected);
        }
    });
    assert_eq!(found, 0, "{name}");
}

fn all<T: Real>() {
    let omega = |seed| Orthogonal.draw(16, 256, seed).unwrap();
    let maps = || -> Vec<Map<T>> {
        vec![
            Trigonometric.gaussian(omega(1), 2.0).unwrap(),
            Positive.gaussian(omega(1), 2.0).unwrap(),
            Hyperbolic.gaussian(omega(1), 2.0).unwrap(),
            Trigonometric.gaussian(Hadamard::default().draw(16, 256, 1).unwrap(), 2.0).unwrap(),
            Sign.build(omega(1), 1.0).unwrap(),
            Nonlinear::new(Activation::Relu).build(omega(1), 1.0).unwrap(),
            EluPlusOne.build(16, 1.0).unwrap(),
        ]
    };
    for targets in [1, 9] {
        for standardised in [false, true] {
            maps().into_iter().for_each(|map| check(map, targets, standardised));
        }
    }
}

/// The counter counts: else nothing here could fail.
#[test]
fn allocations_are_counted() {
    alone(|| {
        assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
        let mut list = vec![1u8];
        assert!(allocations(|| list.resize(std::hint::black_box(1 << 20), 1)) >= 1);
    });
}

#[test]
fn one_row_is_predicted_without_allocation() {
    alone(all::<f32>);
    alone(all::<f64>);
}

/// The result, the bytes that it holds, and the peak beside what was held before.
fn peak<R>(run: impl FnOnce() -> R) -> (R, usize, usize) {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = run();
    let held = HELD.load(Ordering::Relaxed);
    (result, held.saturating_sub(before), PEAK.load(Ordering::Relaxed) - before)
}

fn bytes_of<T: Real>() {
    let map: Map<T> = Trigonometric.gaussian(Orthogonal.draw(16, 512, 1).unwrap(), 2.0).unwrap();
    let x = Array2::from_shape_fn((12000, 16), |(i, k)| T::narrow(((i * (k + 3)) as f64).sin()));
    let y = Array2::from_shape_fn((12000, 2), |(i, j)| T::narrow(((i + j) as f64).sin()));
    let bytes = RidgeStatistics::bytes(&map, 2).unwrap();
    // What threads need, and a page here and there.
    let within = |found: usize, stated: usize, what: &str| {
        let most = stated + stated / 10 + (4 << 20);
        assert!(found <= most && 2 * found >= stated, "{what}: {found} bytes, {stated} stated");
    };
    let (mut statistics, held, _) = peak(|| RidgeStatistics::new(map, 2).unwrap());
    within(held, bytes[0], "statistics");
    let (_, _, update) = peak(|| statistics.update(&x, &y).unwrap());
    within(update, bytes[1], "update");
    let (model, _, solve) = peak(|| statistics.solve(0.1).unwrap());
    within(solve, bytes[2], "solve");
    let (spectrum, _, peak) = peak(|| statistics.spectrum().unwrap());
    within(peak, bytes[3], "spectrum");
    drop((model, spectrum));
}

#[test]
fn peaks_of_regressions_are_as_stated() {
    alone(bytes_of::<f32>);
    alone(bytes_of::<f64>);
}

/// A state that has read prompts and taken many steps holds what is stated, however long the text.
fn bytes_of_states<T: Real>() {
    const SEQUENCES: usize = 6;
    let x = Array4::from_shape_fn((SEQUENCES, 1, 800, 32), |(b, _, i, k)| {
        T::narrow(((b + i * (k + 3)) as f64).sin())
    });
    for (window, exact, d_v) in [(0, &[][..], 32), (100, &[0, 1, 2][..], 32), (300, &[][..], 5)] {
        let map = Positive.softmax::<T>(Orthogonal.draw(32, 128, 1).unwrap()).unwrap();
        let attention = Attention::new(map).unwrap().with_window(window, 0).unwrap();
        let attention = attention.with_keys_exact(exact).unwrap();
        let v = x.slice(s![.., .., .., ..d_v]);
        let stated = SEQUENCES * attention.state_bytes(d_v);
        for prompt in [500, 790] {
            let (_state, held, _) = peak(|| {
                let mut state = attention.state(SEQUENCES, 1, d_v).unwrap();
                let (x_prompt, v_prompt) =
                    (x.slice(s![.., .., ..prompt, ..]), v.slice(s![.., .., ..prompt, ..]));
                state.prefill(&Heads::new(&x_prompt, &x_prompt, &v_prompt).unwrap()).unwrap();
                for i in prompt..800 {
                    let (x, v) = (x.slice(s![.., .., i, ..]), v.slice(s![.., .., i, ..]));
                    state.step(&x, &x, &v).unwrap();
                }
                state
            });
            // What threads need, and room that vectors have to grow.
            let most = stated + 2 * stated / 5;
            assert!(
                held <= most && 4 * held >= 3 * stated,
                "window {window}, {prompt} tokens at once: {held} bytes, {stated} stated"
            );
        }
    }
}

#[test]
fn states_of_attention_hold_what_is_stated() {
    alone(bytes_of_states::<f32>);
    alone(bytes_of_states::<f64>);
}

/// The bytes by which the most that a backward pass holds beside what it reads grows with a token of a head of queries.
fn bytes_of_token<T: Real>(queries: usize, run: impl Fn(&Heads<'_, T>, &Array4<T>) -> Gradients<T>) -> f64 {
    let of = |l: usize| {
        let tokens = |heads: usize| {
            Array4::from_shape_fn((1, heads, l, 16), |(_, _, i, k)| T::narrow(0.1 * ((i + 3 * k) % 7) as f64))
        };
        let (q, x) = (tokens(queries), tokens(1));
        let heads = Heads::new(&q, &x, &x).unwrap();
        peak(|| run(&heads, &q)).2
    };
    let short = of(1 << 14);
    (of(1 << 16) - short) as f64 / (3 << 14) as f64 / queries as f64
}

/// Nothing is kept of a chunk: from length to length memory grows by the gradients, by d_v + 1 numbers in `T` and four in `f64` for each
/// query that keys sum up, and a byte for its mask; where two queries share a key, and beside exact pairs, by gradients once more.
#[test]
fn gradients_of_attention_keep_nothing_of_chunks() {
    fn check<T: Real>() {
        let number = size_of::<T>();
        let map = Positive.softmax::<T>(Orthogonal.draw(16, 32, 1).unwrap()).unwrap();
        let plain = Attention::new(map).unwrap();
        let near = plain.clone().with_window(20, 0).unwrap().with_keys_exact(&[0, 5]).unwrap();
        // Of queries, of keys and values, and what is kept of a query.
        let (of_query, of_key) = (16 * number, 32 * number);
        let kept = 17 * number + 4 * size_of::<f64>() + 1;
        for (name, attention, queries, stated) in [
            ("plain", &plain, 1, of_query + of_key + kept),
            ("grouped", &plain, 2, of_query + of_key + kept),
            ("exact pairs", &near, 1, 2 * (of_query + of_key) + kept),
        ] {
            for causal in [false, true] {
                let found = bytes_of_token::<T>(queries, |heads, g| match causal {
                    true => attention.causal_backward(heads, g).unwrap(),
                    false => attention.bidirectional_backward(heads, g).unwrap(),
                }) / stated as f64;
                let most = if causal { 1.02 } else { 1.1 };
                assert!((0.8..most).contains(&found), "{name}, causal {causal}: {found} of what is stated");
            }
        }
    }
    alone(check::<f32>);
    alone(check::<f64>);
}

/// A tape holds the bytes that it states, and no more than its budget.
#[test]
fn tapes_of_attention_hold_what_is_stated() {
    fn check<T: Real>() {
        let map = Positive.softmax::<T>(Orthogonal.draw(16, 32, 1).unwrap()).unwrap();
        let x = Array4::from_shape_fn((1, 2, 5000, 16), |(_, h, i, k)| {
            T::narrow(0.1 * ((h + i + 3 * k) % 7) as f64)
        });
        let heads = Heads::new(&x, &x, &x).unwrap();
        for budget in [0, 1_000_000, 100_000_000] {
            for causal in [false, true] {
                let attention = Attention::new(map.clone()).unwrap().with_tape(budget);
                let (tape, held, _) = peak(|| {
                    match causal {
                        true => attention.causal_recorded(&heads),
                        false => attention.bidirectional_recorded(&heads),
                    }
                    .unwrap()
                    .1
                });
                let stated = tape.bytes();
                assert!(stated <= budget && (budget == 0 || 10 * stated > 9 * budget.min(4_000_000)));
                // What else is in a tape, with the attention that it was recorded with, does not grow with tokens.
                let rest = held.abs_diff(stated);
                assert!(rest < 20_000 + stated / 50, "causal {causal}: {held} bytes, {stated} stated");
            }
        }
    }
    alone(check::<f32>);
    alone(check::<f64>);
}

/// Tapes of many short sequences hold no more than is stated; with a budget of 0 they hold nothing.
#[test]
fn tapes_of_short_sequences_hold_what_is_stated() {
    fn check<T: Real>() {
        let map = Positive.softmax::<T>(Orthogonal.draw(4, 8, 1).unwrap()).unwrap();
        let x = Array4::from_shape_fn((1, 2, 10_000, 4), |(_, h, i, k)| {
            T::narrow(0.1 * ((h + i + 3 * k) % 7) as f64)
        });
        let ends: Vec<usize> = (0..=5000).map(|sequence| 2 * sequence).collect();
        let heads = Heads::new(&x, &x, &x).unwrap().with_sequences(&ends, &ends).unwrap();
        let plain = Attention::new(map).unwrap();
        // What the engine keeps for a thread is there before anything is counted.
        let _ = plain.bidirectional(&heads).unwrap();
        for budget in [0, 1_000_000, 100_000_000] {
            let attention = plain.clone().with_tape(budget);
            let (tape, held, _) = peak(|| attention.bidirectional_recorded(&heads).unwrap().1);
            let stated = tape.bytes();
            assert!(stated <= budget && 10 * stated >= 9 * budget.min(5_000_000), "{stated} of {budget}");
            assert!(held < stated + 20_000, "{held} bytes, {stated} stated");
        }
    }
    alone(check::<f32>);
    alone(check::<f64>);
}
