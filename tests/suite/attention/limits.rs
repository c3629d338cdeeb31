//! Where attention ends: sizes that no memory holds, which views give that repeat their entries, and work that is stopped.

use std::ops::ControlFlow;
use std::time::Instant;

use super::ways::{auto, diagnosed};
use ndarray::{Array2, Array3, Array4, ArrayView2, ArrayView3, ArrayView4, Ix3, arr1, s};
use random_features::apply::attention::{Attended, Attention, ExactAttention, Heads, TokenSample};
use random_features::compose::Conditioning;
use random_features::frequency::Independent;
use random_features::kernel::Softmax;
use random_features::linalg::Backend;
use random_features::map::Recipe;
use random_features::progress::{Progress, watch};
use random_features::recipe::Draw;
use random_features::workbench::factors::Factorise;
use random_features::{Error, Map, Positive, Result};

fn map(d: usize, m: usize) -> Map<f64> {
    Positive.softmax(Independent.draw(d, m, 7).unwrap()).unwrap()
}

fn attention() -> Attention<f64> {
    Attention::new(map(1, 8)).unwrap()
}

/// More than any machine has.
const MANY: usize = 1 << 45;

#[track_caller]
fn refused<R: std::fmt::Debug>(result: Result<R>) {
    assert!(matches!(result, Err(Error::Memory { .. })), "{result:?}");
}

#[track_caller]
fn cancelled<R: std::fmt::Debug>(result: Result<R>) {
    assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
}

/// Copies of one number in any shape.
fn four(one: &Array4<f64>, shape: [usize; 4]) -> ArrayView4<'_, f64> {
    one.broadcast(shape).unwrap()
}

/// What attends to heads, bidirectionally or causally.
fn every_way(heads: &Heads<'_, f64>, causal: bool) -> Vec<Result<Attended<f64>>> {
    let (linear, exact) = (attention(), ExactAttention::new());
    let signed = attention().without_normalisers();
    let windowed = attention().with_window(4, if causal { 0 } else { 4 }).unwrap();
    let chosen = attention().with_keys_exact(&[0]).unwrap();
    let mut all = vec![auto(&linear, heads, causal), diagnosed(&linear, heads, causal)];
    for linear in [linear, signed, windowed, chosen] {
        all.push(if causal { linear.causal(heads) } else { linear.bidirectional(heads) });
    }
    all.push(if causal { exact.causal(heads) } else { exact.bidirectional(heads) });
    all
}

/// Inputs of 8 MB have outputs of terabytes, and shapes of views are larger yet.
#[test]
fn outputs_beyond_memory_are_refused() {
    let one = Array4::from_elem((1, 1, 1, 1), 0.5);
    let many = 1_000_000;
    let (q, k, v) = (four(&one, [1, 1, many, 1]), four(&one, [1, 1, 1, 1]), four(&one, [1, 1, 1, many]));
    every_way(&Heads::new(&q, &k, &v).unwrap(), false).into_iter().for_each(refused);
    let v = four(&one, [1, 1, many, many]);
    every_way(&Heads::new(&q, &q, &v).unwrap(), true).into_iter().for_each(refused);
    let tokens = four(&one, [1 << 30, 1 << 30, 1, 1]);
    let heads = Heads::new(&tokens, &tokens, &tokens).unwrap();
    for causal in [false, true] {
        every_way(&heads, causal).into_iter().for_each(refused);
    }
    let (q, k) = (four(&one, [1 << 30, 1 << 30, 4, 1]), four(&one, [1 << 30, 1, 4, 1]));
    every_way(&Heads::new(&q, &k, &k).unwrap(), false).into_iter().for_each(refused);
    // Gradients with respect to an output that nobody computed.
    let (q, k, v) = (four(&one, [1, 1, many, 1]), four(&one, [1, 1, 1, 1]), four(&one, [1, 1, 1, many]));
    let (heads, of_output) = (Heads::new(&q, &k, &v).unwrap(), four(&one, [1, 1, many, many]));
    refused(attention().bidirectional_backward(&heads, &of_output));
    refused(attention().bidirectional_backward_with_parameters(&heads, &of_output));
    refused(ExactAttention::new().bidirectional_backward(&heads, &of_output));
}

/// Arrays without elements may have sizes that cannot be counted.
#[test]
fn shapes_without_elements_are_refused_if_they_are_beyond_memory() {
    let (tokens, mut out) = (Array4::<f64>::zeros((1 << 60, 0, 0, 1)), Array4::zeros((1 << 60, 0, 0, 1)));
    let heads = Heads::new(&tokens, &tokens, &tokens).unwrap();
    refused(attention().bidirectional(&heads));
    refused(attention().bidirectional_into(&heads, &mut out));
    refused(attention().causal_into(&heads, &mut out));
    refused(ExactAttention::new().bidirectional_into(&heads, &mut out));
    let (q, k) = (Array4::<f64>::zeros((1 << 40, 0, 1 << 20, 1)), Array4::zeros((1 << 40, 0, 1, 1)));
    let v = Array4::zeros((1 << 40, 0, 1, 1 << 10));
    refused(attention().bidirectional(&Heads::new(&q, &k, &v).unwrap()));
}

/// Keys of which all are copied, and rows of the attention matrix.
#[test]
fn work_beyond_memory_is_refused() {
    let one = Array4::from_elem((1, 1, 1, 1), 0.5);
    let (q, k) = (four(&one, [1, 1, 1, 1]), four(&one, [1, 1, MANY, 1]));
    let heads = Heads::new(&q, &k, &k).unwrap();
    refused(ExactAttention::new().bidirectional(&heads));
    refused(attention().with_heaviest_keys_exact(3).unwrap().bidirectional(&heads));
    refused(attention().with_keys_exact(&[0, 5]).unwrap().bidirectional(&heads));
    refused(attention().bidirectional_weights(&heads, 0, 0, &[0]));
    let (many, k) = (vec![0; 1 << 16], four(&one, [1, 1, 1 << 32, 1]));
    refused(attention().bidirectional_weights(&Heads::new(&q, &k, &k).unwrap(), 0, 0, &many));
    // Features that are recorded, of gradients that there is memory for.
    let wide = Attention::new(map(1, 1 << 20)).unwrap();
    let k = four(&one, [1, 1, 1 << 20, 1]);
    let (heads, of_output) = (Heads::new(&q, &k, &k).unwrap(), four(&one, [1, 1, 1, 1]));
    refused(wide.bidirectional_backward_with_parameters(&heads, &of_output));
}

/// Forks, queries of a step, and prompts.
#[test]
fn states_beyond_memory_are_not_made() {
    let mut state = Attention::new(map(1, 4)).unwrap().state(1, 1, 100_000).unwrap();
    refused(state.select(&vec![0; 10_000_000]));
    state.select(&[0, 0]).unwrap();
    assert_eq!(state.lengths(), [0, 0]);
    let one = Array3::from_elem((1, 1, 1), 0.5);
    let many: ArrayView3<'_, f64> = one.broadcast((1, MANY, 1)).unwrap();
    let mut state = attention().state(1, 1, 1).unwrap();
    refused::<Attended<f64, Ix3>>(state.query(&many));
    refused::<Attended<f64, Ix3>>(state.step(&many, &one, &one));
    assert_eq!(state.lengths(), [0]);
    let one = Array4::from_elem((1, 1, 1, 1), 0.5);
    let (q, k) = (four(&one, [1, 1 << 40, 1, 1]), four(&one, [1, 1, 1, 1]));
    refused(state.prefill(&Heads::new(&q, &k, &k).unwrap()));
    assert_eq!(state.lengths(), [0]);
    let long = four(&one, [1, 1, MANY, 1]);
    for attention in [attention().with_window(3, 0).unwrap(), attention().with_keys_exact(&[1]).unwrap()] {
        let mut state = attention.state(1, 1, 1).unwrap();
        state.prefill(&Heads::without_queries(&k, &k).unwrap()).unwrap();
        refused(state.prefill(&Heads::without_queries(&long, &long).unwrap()));
        assert_eq!(state.lengths(), [1]);
    }
}

#[test]
fn matrices_beyond_memory_are_refused() {
    for d in [1 << 25, 1 << 40, usize::MAX] {
        refused(Conditioning::identity(d));
    }
    let one = Array2::from_elem((1, 1), 0.5);
    let backend = Backend::default();
    for n in [1 << 25, 1 << 31] {
        let square: ArrayView2<'_, f64> = one.broadcast((n, n)).unwrap();
        refused(backend.cholesky(&square));
        refused(backend.eigen(&square));
        refused(backend.svd(&square));
        refused(backend.singular_values(&square.slice(s![1.., ..])));
    }
    let factor = backend.cholesky(&ndarray::arr2(&[[2.0, 1.0], [1.0, 2.0]])).unwrap();
    refused(factor.solve(&one.broadcast((2, MANY)).unwrap()));
    let long = arr1(&[1.0]);
    assert!(matches!(factor.solve_vector(&long.broadcast(MANY).unwrap()), Err(Error::Shape { .. })));
}

#[test]
fn reports_beyond_memory_are_refused() {
    let attention = attention();
    let recipe: Recipe = Positive.recipe(Draw::new(1, 8, Independent), Softmax::default());
    let one = Array2::from_elem((1, 1), 0.5);
    let rows = |n: usize, d: usize| one.broadcast((n, d)).unwrap();
    for [n, l, targets] in
        [[1, 1 << 40, 1], [1, 1 << 22, 1], [MANY, 1, 1], [1 << 22, 1 << 22, 1], [2, 3, MANY]]
    {
        let (q, k, v) = (rows(n, 1), rows(l, 1), rows(l, targets));
        let sample = TokenSample::new(&q, &k).with_values(&v);
        refused(attention.error_report(&sample));
        refused(attention.expected_report(&recipe, &sample));
        refused(attention.choose(&sample, [n, l], 0.1).map(|choice| choice.to_string()));
        // Redraws need no covariances of all pairs of keys.
        if [n, l] != [1, 1 << 22] {
            refused(attention.simulated_report(&recipe, 2, &sample));
        }
    }
    let (q, k) = (rows(2, 1), rows(3, 1));
    for draws in [MANY, usize::MAX] {
        refused(attention.simulated_report(&recipe, draws, &TokenSample::new(&q, &k)));
    }
}

/// A watcher that stops what it watches.
fn stop(_: &Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Break(())
}

/// Passes that would take from many seconds to years end soon after a watcher says so. Each of these would not end if it were not
/// asked within the pass.
#[test]
fn long_passes_can_be_stopped() {
    let one = Array4::from_elem((1, 1, 1, 1), 0.5);
    let few = four(&one, [1, 1, 100, 1]);
    let endless = four(&one, [1, 1, 1 << 45, 1]);
    let heads = Heads::new(&few, &endless, &endless).unwrap();
    cancelled(watch(stop, || attention().bidirectional(&heads)));
    cancelled(watch(stop, || attention().with_window(8, 8).unwrap().bidirectional(&heads)));
    cancelled(watch(stop, || attention().bidirectional_diagnosed(&heads)));
    let long = four(&one, [1, 1, 1 << 23, 1]);
    let heads = Heads::new(&long, &long, &long).unwrap();
    let start = Instant::now();
    let wide = || Attention::new(map(1, 64)).unwrap();
    cancelled(watch(stop, || wide().causal(&heads)));
    cancelled(watch(stop, || wide().causal_backward(&heads, &long)));
    cancelled(watch(stop, || wide().bidirectional_backward(&heads, &long)));
    cancelled(watch(stop, || ExactAttention::new().causal(&heads)));
    cancelled(watch(stop, || ExactAttention::new().bidirectional(&heads)));
    cancelled(watch(stop, || ExactAttention::new().causal_backward(&heads, &long)));
    // Generous, since a machine may have more to do.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

/// A prompt that is stopped has left no trace.
#[test]
fn a_stopped_state_is_what_it_was() {
    let tokens = Array4::from_shape_fn((1, 2, 90, 1), |(_, h, i, _)| ((3 * h + 5 * i) % 7) as f64 / 7.0);
    let heads = Heads::new(&tokens, &tokens, &tokens).unwrap();
    let one = Array4::from_elem((1, 1, 1, 1), 0.5);
    let long = four(&one, [1, 2, 1 << 23, 1]);
    let long = Heads::without_queries(&long, &long).unwrap();
    for attention in
        [attention(), attention().with_window(70, 0).unwrap(), attention().with_keys_exact(&[3]).unwrap()]
    {
        let (mut state, mut other) = (attention.state(1, 2, 1).unwrap(), attention.state(1, 2, 1).unwrap());
        for state in [&mut state, &mut other] {
            state.prefill(&heads).unwrap();
        }
        cancelled(watch(stop, || state.prefill(&long)));
        assert_eq!(state.lengths(), other.lengths());
        assert_eq!(state.prefill(&heads), other.prefill(&heads));
        // What is watched and not stopped is the same as ever.
        let go_on = |_: &Progress<'_>| ControlFlow::Continue(());
        assert_eq!(watch(go_on, || state.prefill(&heads)), other.prefill(&heads));
    }
}

/// Reports and choices are asked query by query, draw by draw and window by window.
#[test]
fn reports_can_be_stopped() {
    let x = Array2::from_shape_fn((1000, 4), |(i, k)| 0.3 * ((3 * i + 5 * k) as f64).sin());
    let attention = Attention::new(map(4, 16)).unwrap();
    let recipe: Recipe = Positive.recipe(Draw::new(4, 16, Independent), Softmax::default());
    let sample = TokenSample::new(&x, &x).with_values(&x);
    cancelled(watch(stop, || attention.error_report(&sample)));
    cancelled(watch(stop, || attention.expected_report(&recipe, &sample)));
    cancelled(watch(stop, || attention.simulated_report(&recipe, 1000, &sample)));
    cancelled(watch(stop, || attention.choose(&sample, [1000, 1000], 0.1).map(|choice| choice.to_string())));
    let x = x.slice(s![..20, ..]);
    let sample = TokenSample::new(&x, &x).with_values(&x);
    let steps = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = steps.clone();
    let watcher = move |progress: &Progress<'_>| {
        sink.lock().unwrap().push(progress.to_string());
        ControlFlow::Continue(())
    };
    let watched = watch(watcher, || attention.simulated_report(&recipe, 3, &sample)).unwrap();
    // The report has a NaN, which is not equal to itself.
    let alone = attention.simulated_report(&recipe, 3, &sample).unwrap();
    assert_eq!(format!("{watched:?}"), format!("{alone:?}"));
    for i in 0..3 {
        assert!(steps.lock().unwrap().contains(&format!("redraws: {i} of 3")));
    }
}

/// Rows of weights are asked too, once work was stopped.
#[test]
fn weights_can_be_stopped() {
    let x = Array4::from_shape_fn((1, 1, 30, 1), |(_, _, i, _)| i as f64 / 30.0);
    let heads = Heads::new(&x, &x, &x).unwrap();
    let sample = x.slice(s![0, 0, .., ..]);
    watch(stop, || {
        // The first step stops it.
        cancelled(
            attention()
                .choose(&TokenSample::new(&sample, &sample), [9, 9], 0.1)
                .map(|choice| choice.to_string()),
        );
        cancelled(attention().bidirectional_weights(&heads, 0, 0, &[0, 3]));
        cancelled(attention().bidirectional_auto(&heads));
    });
    assert_eq!(attention().bidirectional_weights(&heads, 0, 0, &[0, 3]).unwrap().dim(), (2, 30));
}
