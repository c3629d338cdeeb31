//! Linear attention against the quadratic loop over the same features, on every path.

use super::oracle::{by_features, naive};
use super::{positive, ways};
use crate::common::{frequencies, read_tokens, tokens};
use ndarray::{Array2, Array3, Array4, ArrayView2, Axis, arr1, array, concatenate, s};
use random_features::apply::attention::{Attention, CausalState, ExactAttention, Heads};
use random_features::compose::{Bases, Hybrid};
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::frequency::{Counts, Frequencies, Independent, Orthogonal, Simplex};
use random_features::kernel::{Activation, Softmax};
use random_features::map::{Redraw, Shift};
use random_features::recipe::Draw;
use random_features::workbench::RootDim;
use random_features::{
    EluPlusOne, Error, Gerf, Hyperbolic, Map, Nonlinear, Poisson, Positive, Real, Side, Trigonometric, rng,
};

fn head<T>(x: &Array4<T>, b: usize, h: usize) -> ArrayView2<'_, T> {
    x.slice(s![b, h, .., ..])
}

/// The same map in both scalars, by name; whether its features may be negative.
fn maps(d: usize, m: usize) -> Vec<(&'static str, Map<f32>, Map<f64>, bool)> {
    fn both(
        name: &'static str,
        make: &dyn Fn() -> (Map<f32>, Map<f64>),
        signed: bool,
    ) -> (&'static str, Map<f32>, Map<f64>, bool) {
        let (single, double) = make();
        (name, single, double, signed)
    }
    let omega = || frequencies(d, m, &Orthogonal, 3);
    macro_rules! map {
        ($name:literal, $signed:literal, $make:expr) => {{ both($name, &|| ($make.unwrap(), $make.unwrap()), $signed) }};
    }
    let counts = || Counts::poisson(d, m, 1.5, rng(4).next_u64()).unwrap();
    let regularised = || Independent.with_radii(RootDim).draw(d, m, rng(5).next_u64()).unwrap();
    let shift = || Shift::new(vec![3.0; d], 0.1).unwrap();
    vec![
        map!("positive", false, Positive.softmax(omega())),
        map!("hyperbolic", false, Hyperbolic.softmax(omega())),
        map!("OPRF", false, Gerf::optimal(d, 2.0).unwrap().softmax(omega())),
        map!("SimRF", false, Positive.softmax(frequencies(d, m, &Simplex::default(), 3))),
        map!("regularised", false, Positive.softmax(regularised())),
        map!("shifted Poisson", false, Poisson::default().shifted(shift()).softmax(counts())),
        map!("ReLU", false, Nonlinear::new(Activation::Relu).with_offset(1e-3).unwrap().build(omega(), 1.0)),
        map!("ELU + 1", false, EluPlusOne.build(d, 1.0)),
        map!("trigonometric", true, Trigonometric.softmax(omega())),
        map!(
            "angular hybrid",
            true,
            Hybrid::angular(Bases::shared(omega()), frequencies(d, 8, &Independent, 6))
        ),
    ]
}

fn widened<T: Real>(x: ArrayView2<'_, T>) -> Array2<f64> {
    x.mapv(|v| v.widen())
}

fn agrees<T: Real>(name: &str, map: &Map<T>, double: &Map<f64>, signed: bool) {
    let (q, k, v) =
        (tokens::<T>([2, 2, 150, 6], 0.6, 1), tokens([2, 2, 150, 6], 0.6, 2), tokens([2, 2, 150, 5], 1.0, 3));
    let attention = if signed {
        assert!(matches!(Attention::new(map.clone()), Err(Error::Unsupported { .. })));
        Attention::signed(vec![map.clone()]).unwrap()
    } else {
        Attention::new(map.clone()).unwrap()
    };
    let heads = Heads::new(&q, &k, &v).unwrap();
    let (all, causal) = (attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap());
    assert!(signed || (all.non_positive.is_empty() && causal.non_positive.is_empty()), "{name}");
    for (b, h) in [(0, 0), (1, 1)] {
        let inputs = [&q, &k, &v].map(|x| widened(head(x, b, h)));
        for (out, last) in [(&all.output, false), (&causal.output, true)] {
            let expected = naive(double, inputs.each_ref(), by_features(|i, j| !last || j <= i), true);
            let got = widened(head(out, b, h));
            // Signed weights cancel: their normalisers may be small.
            let tolerance = T::epsilon().widen() * if signed { 2e4 } else { 500.0 };
            let error = (&got - &expected).iter().fold(0.0f64, |a, e| a.max(e.abs()));
            let size = expected.iter().fold(1.0f64, |a, e| a.max(e.abs()));
            assert!(error <= tolerance * size, "{name}, causal {last}: {error:e} of {size}");
        }
    }
}

#[test]
fn every_map_is_the_quadratic_loop() {
    for (name, single, double, signed) in maps(6, 40) {
        agrees(name, &single, &double, signed);
        agrees(name, &double, &double, signed);
    }
}

fn relu<T: Real>(d: usize, m: usize) -> Map<T> {
    Nonlinear::new(Activation::Relu).build(frequencies(d, m, &Independent, 1), 1.0).unwrap()
}

/// The positive and the negative part of a number.
fn signs<T: Real>() -> Map<T> {
    let omega = Frequencies::from_rows(array![[1.0], [-1.0]]).unwrap();
    Nonlinear::new(Activation::Relu).build(omega, 1.0).unwrap()
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn same_on_any_threads<T: Real>(name: &str, map: Map<T>, [q, k, v]: [&Array4<T>; 3]) {
    let attention = Attention::new(map).unwrap();
    let mask = Array2::from_shape_fn((1, k.dim().2), |(_, j)| j % 5 != 1 && !(100..300).contains(&j));
    let run = |threads| {
        let heads = Heads::new(q, k, v).unwrap();
        let both = [heads.clone(), heads.with_mask(&mask).unwrap()];
        let of = |heads| (attention.bidirectional(heads).unwrap(), attention.causal(heads).unwrap());
        pool(threads).install(|| both.each_ref().map(of))
    };
    let one = run(1);
    [2, 3, 7].into_iter().for_each(|threads| assert!(run(threads) == one, "{name}, {threads} threads"));
}

fn same_on_any_threads_in<T: Real>() {
    for heads in [1, 3] {
        let [q, k, v] = [1, 2, 3].map(|seed| tokens::<T>([1, heads, 5000, 8], 1.0, seed));
        same_on_any_threads("plain", positive(8, 24), [&q, &k, &v]);
    }
    let [q, k, mut v] = [1, 2, 3].map(|seed| tokens::<T>([1, 1, 2600, 8], 1.0, seed));
    same_on_any_threads("gaps", relu(8, 24), [&q, &k, &v]);
    let mut far = k.clone();
    far.slice_mut(s![.., .., 700..1500, ..]).mapv_inplace(|v| v * T::narrow(40.0));
    same_on_any_threads("far keys", positive(8, 24), [&q, &far, &v]);
    v[[0, 0, 70, 3]] = T::max_value() / T::narrow(4.0);
    same_on_any_threads("a large value", positive(8, 24), [&q, &k, &v]);
}

/// Segments and chunks are cut by shapes, and threads over them. In `f64` sums in another order would show.
#[test]
fn threads_change_no_bit() {
    same_on_any_threads_in::<f32>();
    same_on_any_threads_in::<f64>();
}

#[test]
fn grouped_heads_are_repeated_ones() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let (q, k, v) =
        (tokens::<f64>([2, 6, 90, 6], 0.7, 1), tokens([2, 2, 90, 6], 0.7, 2), tokens([2, 2, 90, 3], 1.0, 3));
    let repeated = |x: &Array4<f64>| {
        let heads: Vec<_> = (0..6).map(|h| x.slice(s![.., h / 3..h / 3 + 1, .., ..])).collect();
        concatenate(Axis(1), &heads).unwrap()
    };
    let (many_k, many_v) = (repeated(&k), repeated(&v));
    let (few, many) = (Heads::new(&q, &k, &v).unwrap(), Heads::new(&q, &many_k, &many_v).unwrap());
    assert_eq!(attention.bidirectional(&few).unwrap(), attention.bidirectional(&many).unwrap());
    assert_eq!(attention.causal(&few).unwrap(), attention.causal(&many).unwrap());

    // A map for each head of keys.
    let maps = [20, 31].map(|m| positive::<f64>(6, m));
    let each = Attention::per_head(maps.to_vec()).unwrap();
    let out = each.bidirectional(&few).unwrap().output;
    for (h, map) in [(0, &maps[0]), (5, &maps[1])] {
        let own = Attention::new(map.clone()).unwrap().bidirectional(&few).unwrap().output;
        assert_eq!(head(&out, 1, h), head(&own, 1, h));
    }
    assert!(matches!(each.bidirectional(&many), Err(Error::Shape { .. })));
}

/// A masked key is no key, whatever it holds.
#[test]
fn masks_leave_keys_out() {
    let map = positive::<f64>(6, 20);
    let attention = Attention::new(map.clone()).unwrap();
    let (q, mut k, mut v) = (
        tokens::<f64>([1, 1, 150, 6], 0.7, 1),
        tokens([1, 1, 150, 6], 0.7, 2),
        tokens([1, 1, 150, 3], 1.0, 3),
    );
    let mask = Array2::from_shape_fn((1, 150), |(_, j)| j % 3 != 0);
    let inputs = [&q, &k, &v].map(|x| widened(head(x, 0, 0)));
    for j in (0..150).step_by(3) {
        k.slice_mut(s![0, 0, j, ..]).fill(if j % 2 == 0 { f64::NAN } else { 1e300 });
        v.slice_mut(s![0, 0, j, ..]).fill(f64::INFINITY);
    }
    let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    for causal in [false, true] {
        let sees = |i: usize, j: usize| !j.is_multiple_of(3) && (!causal || j <= i);
        let out = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) }.unwrap();
        let expected = naive(&map, inputs.each_ref(), by_features(sees), true);
        assert!((&head(&out.output, 0, 0) - &expected).iter().all(|e| e.abs() < 1e-12));
        // The first query sees no key: 0, and no cause to report it.
        assert!(
            out.non_positive.is_empty()
                && (!causal || head(&out.output, 0, 0).row(0).iter().all(|v| *v == 0.0))
        );
    }
    let nothing = Array2::from_elem((1, 150), false);
    let out = attention.bidirectional(&Heads::new(&q, &k, &v).unwrap().with_mask(&nothing).unwrap()).unwrap();
    assert!(out.output.iter().all(|v| *v == 0.0) && out.non_positive.is_empty());
}

/// A mask of each batch, over more than one block of keys, of exact attention and of the features'.
#[test]
fn each_batch_has_its_own_mask() {
    let n = 600;
    let [x, v] = [(1, 6), (2, 3)].map(|(seed, d)| tokens::<f64>([2, 1, n, d], 0.7, seed));
    let map = positive::<f64>(6, 20);
    let attention = Attention::new(map.clone()).unwrap();
    let mask = Array2::from_shape_fn((2, n), |(b, j)| (j * j + b) % 7 < 4 && (b == 0 || j >= 300));
    let heads = Heads::new(&x, &x, &v).unwrap().with_mask(&mask).unwrap();
    for causal in [false, true] {
        let (exact, out): (Array4<f64>, _) = if causal {
            (ExactAttention::new().causal(&heads).unwrap().output, attention.causal(&heads).unwrap())
        } else {
            (
                ExactAttention::new().bidirectional(&heads).unwrap().output,
                attention.bidirectional(&heads).unwrap(),
            )
        };
        for b in 0..2 {
            let (x, v) = (widened(head(&x, b, 0)), widened(head(&v, b, 0)));
            let sees = |i: usize, j: usize| mask[[b, j]] && (!causal || j <= i);
            let expected = naive(&map, [&x, &x, &v], by_features(sees), true);
            assert!((&head(&out.output, b, 0) - &expected).iter().all(|e| e.abs() < 1e-12));
            let mut weights = x.dot(&x.t()).mapv(|logit| (logit / 6f64.sqrt()).exp());
            weights.indexed_iter_mut().filter(|((i, j), _)| !sees(*i, *j)).for_each(|(_, w)| *w = 0.0);
            // Of rows that see nothing the output is 0.
            let totals = weights.sum_axis(Axis(1)).mapv(|v| if v == 0.0 { 1.0 } else { v });
            let expected = weights.dot(&v) / totals.insert_axis(Axis(1));
            assert!((&head(&exact, b, 0) - &expected).iter().all(|e| e.abs() < 1e-13));
        }
        let which = [2, 310, 599];
        let found = ways::weights(&attention, &heads, ([1, 0], &which), causal).unwrap().dot(&head(&v, 1, 0));
        let expected = head(&out.output, 1, 0).select(Axis(0), &which);
        assert!((found - expected).iter().all(|e| e.abs() < 1e-12));
    }
}

/// A query that has no feature in common with the keys is reported where it sees a key, and only there, on every path and
/// wherever the first key that is not masked lies.
#[test]
fn unmet_queries_are_reported_where_they_see_a_key() {
    // The features of a number and of its negative.
    let attention = Attention::new(signs::<f32>()).unwrap();
    let n = 2200;
    let (k, v) = (Array4::<f32>::ones((1, 1, n, 1)), Array4::<f32>::ones((1, 1, n, 2)));
    let q = -&k;
    let all = |from: usize| (from..n).map(|i| [0, 0, i]).collect::<Vec<_>>();
    for first in [0, 1, 63, 64, 65, 130, 1023, 1024, 1100, 2048, n - 1, n] {
        for one in [false, true] {
            let mask = Array2::from_shape_fn((1, n), |(_, j)| j == first || (!one && j > first));
            let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
            for threads in [1, 4] {
                let run = || (attention.causal(&heads).unwrap(), attention.bidirectional(&heads).unwrap());
                let (causal, whole) = pool(threads).install(run);
                assert_eq!(causal.non_positive, all(first), "{first} {one} {threads}");
                assert_eq!(whole.non_positive, all(if first < n { 0 } else { n }), "{first} {one} {threads}");
                assert!(causal.output.iter().chain(&whole.output).all(|v| *v == 0.0));
            }
        }
    }
    // In order, with the rows of the whole batch, of heads that share keys and of sequences.
    let q = concatenate(Axis(1), &[q.view(), q.view()]).unwrap();
    let offsets = [0, 30, 1500, n];
    let heads = Heads::new(&q, &k, &v).unwrap().with_sequences(&offsets, &offsets).unwrap();
    let expected: Vec<_> = (0..2).flat_map(|h| (0..n).map(move |i| [0, h, i])).collect();
    for threads in [1, 4] {
        let run = || (attention.causal(&heads).unwrap(), attention.bidirectional(&heads).unwrap());
        let (causal, whole) = pool(threads).install(run);
        assert_eq!((causal.non_positive, whole.non_positive), (expected.clone(), expected.clone()));
    }
    // Step by step, also after whole segments.
    let each = Attention::per_head(vec![signs::<f32>(), signs()]).unwrap();
    let [k, v] = [1, 2].map(|d| Array4::<f32>::ones((2, 2, 1024, d)));
    let (token, value) = (k.slice(s![.., .., 0, ..]), v.slice(s![.., .., 0, ..]));
    let mut state = each.state(2, 2, 2).unwrap();
    let reported = [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]];
    state.push(&token, &value).unwrap();
    assert_eq!(state.query(&-&token).unwrap().non_positive, reported);
    let mut state = each.state(2, 2, 2).unwrap();
    read_tokens(&mut state, &k, &v);
    assert_eq!(state.query(&-&token).unwrap().non_positive, reported);
    // Nor is a masked key seen where features are far apart.
    let attention = Attention::new(positive::<f32>(16, 48)).unwrap();
    let x = tokens::<f32>([1, 1, 70, 16], 25.0, 1);
    let mask = Array2::from_shape_fn((1, 70), |(_, j)| j >= 3);
    let out = attention.causal(&Heads::new(&x, &x, &x).unwrap().with_mask(&mask).unwrap()).unwrap();
    assert!(out.non_positive.is_empty());
    assert!(
        out.output.rows().into_iter().enumerate().all(|(i, row)| (i < 3) == row.iter().all(|v| *v == 0.0))
    );
}

/// Sequences side by side are the same as each on its own.
#[test]
fn sequences_do_not_see_each_other() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let (q, k, v) = (
        tokens::<f32>([2, 4, 180, 6], 0.7, 1),
        tokens([2, 2, 200, 6], 0.7, 2),
        tokens([2, 2, 200, 3], 1.0, 3),
    );
    let (of_q, of_k) = ([0, 70, 70, 180], [0, 0, 150, 200]);
    let heads = Heads::new(&q, &k, &v).unwrap().with_sequences(&of_q, &of_k).unwrap();
    let out = attention.bidirectional(&heads).unwrap().output;
    let exact: Array4<f32> = ExactAttention::new().bidirectional(&heads).unwrap().output;
    for s in 0..3 {
        let (a, b) = (of_q[s]..of_q[s + 1], of_k[s]..of_k[s + 1]);
        let (q, k, v) = (
            q.slice(s![.., .., a.clone(), ..]),
            k.slice(s![.., .., b.clone(), ..]),
            v.slice(s![.., .., b, ..]),
        );
        let own = Heads::new(&q, &k, &v).unwrap();
        assert_eq!(out.slice(s![.., .., a.clone(), ..]), attention.bidirectional(&own).unwrap().output);
        assert_eq!(
            exact.slice(s![.., .., a, ..]),
            ExactAttention::new().bidirectional::<f32, f32>(&own).unwrap().output
        );
    }
    assert!(matches!(attention.causal(&heads), Err(Error::Shape { .. })));
    let (of_q, k) = ([0, 1, 130, 180], k.slice(s![.., .., ..180, ..]).to_owned());
    let v = v.slice(s![.., .., ..180, ..]).to_owned();
    let heads = Heads::new(&q, &k, &v).unwrap().with_sequences(&of_q, &of_q).unwrap();
    let out = attention.causal(&heads).unwrap().output;
    let (q, k, v) =
        (q.slice(s![.., .., 1..130, ..]), k.slice(s![.., .., 1..130, ..]), v.slice(s![.., .., 1..130, ..]));
    assert_eq!(
        out.slice(s![.., .., 1..130, ..]),
        attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output
    );
}

/// Nothing of a later token reaches an earlier output, not in its last bit, whatever the token is.
#[test]
fn the_future_changes_no_bit() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let [q, k, mut v] = [(1, 6), (2, 6), (3, 40)].map(|(seed, d)| tokens::<f32>([1, 1, 1300, d], 0.7, seed));
    // Products with 0 have the sign of the other factor.
    v.slice_mut(s![0, 0, ..1, ..]).fill(-0.0);
    let bits = |out: &Array4<f32>, from: usize| out.slice(s![.., .., ..from, ..]).mapv(f32::to_bits);
    let plain = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let exact: Array4<f32> = ExactAttention::new().causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    for from in [1, 31, 40, 64, 100, 1023, 1024, 1290] {
        for (key, value) in [
            (0.3, 0.1),
            (0.3, -0.1),
            (60.0, 1.0),
            (f32::NAN, 1.0),
            (0.5, f32::NAN),
            (1e30, 1e30),
            (0.0, f32::INFINITY),
        ] {
            let (mut q, mut k, mut v) = (q.clone(), k.clone(), v.clone());
            q.slice_mut(s![0, 0, from.., ..]).fill(key);
            k.slice_mut(s![0, 0, from.., ..]).fill(key);
            v.slice_mut(s![0, 0, from.., ..]).fill(value);
            let heads = Heads::new(&q, &k, &v).unwrap();
            for threads in [1, 4] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let out = pool.install(|| attention.causal(&heads)).unwrap().output;
                assert_eq!(bits(&out, from), bits(&plain, from), "{from} {key} {value}");
            }
            let out: Array4<f32> = ExactAttention::new().causal(&heads).unwrap().output;
            assert_eq!(bits(&out, from), bits(&exact, from), "{from} {key} {value}");
        }
    }
}

/// NaN stays in what may see it.
#[test]
fn what_is_not_finite_stays_where_it_is_seen() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f64>([1, 2, 200, d], 0.7, seed));
    let good = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let (mut bad_q, mut bad_k, mut bad_v) = (q.clone(), k.clone(), v.clone());
    bad_q[[0, 0, 9, 2]] = f64::NAN;
    bad_k[[0, 1, 70, 0]] = f64::INFINITY;
    bad_v[[0, 0, 100, 1]] = f64::NAN;
    let heads = Heads::new(&bad_q, &bad_k, &bad_v).unwrap();
    let out = attention.causal(&heads).unwrap();
    assert!(out.non_positive.is_empty());
    // Infinite keys may have the exact weight 0.
    let nan_k = bad_k.mapv(|v| if v.is_finite() { v } else { f64::NAN });
    let of_nan = Heads::new(&bad_q, &nan_k, &bad_v).unwrap();
    let exact: Array4<f64> = ExactAttention::new().causal(&of_nan).unwrap().output;
    for ((b, h, i, t), got) in out.output.indexed_iter() {
        let seen = (h == 0 && i == 9) || (h == 1 && i >= 70) || (h == 0 && i >= 100 && t == 1);
        assert_eq!(got.is_nan(), seen, "{h} {i} {t}");
        assert!(seen || (got - good[[b, h, i, t]]).abs() < 1e-12);
        assert_eq!(exact[[b, h, i, t]].is_nan(), seen, "{h} {i} {t}");
    }
    // Nothing need have been seen before.
    let mut first = k.clone();
    first[[0, 0, 0, 1]] = f64::NAN;
    let out = attention.causal(&Heads::new(&q, &first, &v).unwrap()).unwrap();
    assert!(out.output.indexed_iter().all(|((_, h, ..), v)| v.is_nan() == (h == 0)));
    let out = attention.bidirectional(&heads).unwrap();
    assert!(out.non_positive.is_empty());
    for ((_, h, i, t), got) in out.output.indexed_iter() {
        assert_eq!(got.is_nan(), h == 1 || i == 9 || t == 1, "{h} {i} {t}");
    }
}

fn steps<T: Real>(
    attention: &Attention<T>,
    [q, k, v]: [&Array4<T>; 3],
    prefix: usize,
    mut store: impl FnMut(CausalState<T>) -> CausalState<T>,
) {
    let whole = attention.causal(&Heads::new(q, k, v).unwrap()).unwrap();
    let (batch, heads) = (k.dim().0, k.dim().1);
    let mut state = attention.state(batch, heads, v.dim().3).unwrap();
    // A query in between changes nothing.
    state.query(&q.slice(s![.., .., 0, ..])).unwrap();
    read_tokens(&mut state, &k.slice(s![.., .., ..prefix, ..]), &v.slice(s![.., .., ..prefix, ..]));
    for i in prefix..k.dim().2 {
        state.push(&k.slice(s![.., .., i, ..]), &v.slice(s![.., .., i, ..])).unwrap();
        let out = state.query(&q.slice(s![.., .., i, ..])).unwrap();
        assert_eq!(out.output, whole.output.slice(s![.., .., i, ..]), "token {i}");
        let positive =
            whole.non_positive.iter().filter(|place| place[2] == i).map(|place| [place[0], place[1], 0]);
        assert!(positive.eq(out.non_positive), "token {i}");
        assert!(state.lengths().iter().all(|length| *length == i + 1));
        if i == prefix + 5 || i == 1024 {
            state = store(state);
        }
    }
}

/// To the bit, whatever the sizes of keys, and whether products in the scalar suffice or not.
#[test]
fn steps_are_the_batch() {
    for (prefix, length, size) in [
        (0, 200, 0.7),
        (37, 150, 0.7),
        (1000, 1100, 0.7),
        (1024, 1100, 0.7),
        (2100, 2200, 1.0),
        (3, 140, 40.0),
    ] {
        let [q, k, v] = [(1, 4, 6), (2, 2, 6), (3, 2, 5)]
            .map(|(seed, heads, d)| tokens::<f32>([2, heads, length, d], size, seed));
        let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
        steps(&attention, [&q, &k, &v], prefix, |state| state.clone());
        let maps = vec![positive::<f64>(6, 20), positive(6, 33)];
        let wide = [&q, &k, &v].map(|x| x.mapv(f64::from));
        steps(&Attention::per_head(maps).unwrap(), [&wide[0], &wide[1], &wide[2]], prefix, |state| state);
    }
    // Keys that need logarithms come and go within a chunk, and later queries need them too.
    let [q, mut k, v] = [(1, 4, 6), (2, 2, 6), (3, 2, 5)]
        .map(|(seed, heads, d)| tokens::<f32>([2, heads, 300, d], 0.7, seed));
    for i in [3, 70, 71, 127, 128, 200] {
        k.slice_mut(s![.., .., i, ..]).mapv_inplace(|v| 30.0 * v);
    }
    for (name, map, _, _) in maps(6, 20) {
        println!("{name}");
        steps(&Attention::signed(vec![map]).unwrap(), [&q, &k, &v], 65, |state| state.clone());
    }
}

/// What a query has left behind is forgotten where a prompt of whole segments follows, and copies hold what was held.
#[test]
fn prompts_and_copies_after_queries() {
    let attention = Attention::new(positive::<f32>(2, 8)).unwrap();
    let [mut q, k, v] = [(1, 2), (2, 2), (3, 1)].map(|(seed, d)| tokens::<f32>([1, 1, 2100, d], 0.7, seed));
    q.fill(60.0);
    let whole = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let mut state = attention.state(1, 1, 1).unwrap();
    let query = q.slice(s![.., .., 0, ..]);
    assert_eq!(state.query(&query).unwrap().output[[0, 0, 0]], 0.0);
    for run in [0..1030, 1030..1024 + 1024, 2048..2100] {
        let last = run.end - 1;
        read_tokens(&mut state, &k.slice(s![.., .., run.clone(), ..]), &v.slice(s![.., .., run, ..]));
        let mut copies = vec![state.clone()];
        copies.push(copies[0].clone());
        for state in copies.iter_mut().chain([&mut state]) {
            assert_eq!(state.query(&query).unwrap().output, whole.slice(s![.., .., last, ..]));
        }
    }
    assert!(attention.state(0, 1, usize::MAX).is_err());
}

#[cfg(feature = "serde")]
#[test]
fn a_stored_state_goes_on_to_the_bit() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap().with_cosine(0.3).unwrap();
    let x = tokens::<f32>([2, 2, 90, 6], 0.7, 1);
    for length in [0, 10, 64, 80] {
        let mut state = attention.state(2, 2, 6).unwrap();
        read_tokens(&mut state, &x.slice(s![.., .., ..length, ..]), &x.slice(s![.., .., ..length, ..]));
        let text = serde_json::to_string(&state).unwrap();
        let mut read: CausalState<f32> = serde_json::from_str(&text).unwrap();
        let mut compact: CausalState<f32> =
            postcard::from_bytes(&postcard::to_stdvec(&state).unwrap()).unwrap();
        let token = x.slice(s![.., .., length, ..]);
        for state in [&mut state, &mut read, &mut compact] {
            state.push(&token, &token).unwrap();
        }
        let out = state.query(&token).unwrap();
        assert_eq!((read.query(&token).unwrap(), compact.query(&token).unwrap()), (out.clone(), out));
        // Another shape than that of the sums.
        assert!(
            crate::stored::resealed::<CausalState<f32>>(
                serde_json::from_str(&text.replacen("\"shape\":[2,2,6]", "\"shape\":[2,2,7]", 1)).unwrap()
            )
            .is_err()
        );
    }
}

/// Each option goes with what is stored.
#[cfg(feature = "serde")]
#[test]
fn stored_attention_has_all_options() {
    let new = || Attention::new(positive::<f64>(6, 20)).unwrap();
    let x = tokens::<f64>([1, 1, 30, 6], 0.7, 1);
    let heads = Heads::new(&x, &x, &x).unwrap();
    let plain = new().causal(&heads).unwrap();
    for attention in [
        new().with_scale(0.3).unwrap(),
        new().with_cosine(0.3).unwrap(),
        new().without_normalisers(),
        new().with_biased_epsilon(0.1).unwrap(),
        new().with_keys_exact(&[0, 1]).unwrap(),
    ] {
        let read: Attention<f64> = serde_json::from_str(&serde_json::to_string(&attention).unwrap()).unwrap();
        let out = attention.causal(&heads).unwrap();
        assert!(out != plain);
        assert_eq!(read.causal(&heads).unwrap(), out);
    }
}

/// Norms of 50 in single precision: one scale a row would be 0/0.
#[test]
fn norms_of_fifty_are_the_double_precision_loop() {
    // Rows by logarithms go 64 features at a time.
    [48, 64, 65, 130].into_iter().for_each(norms_of_fifty);
}

fn norms_of_fifty(m: usize) {
    let (single, double) = (positive::<f32>(16, m), positive::<f64>(16, m));
    // Norm 50 after the scale d^{−¼}.
    let size = 50.0 * 16f64.powf(0.25) / 4.0;
    let [q, mut k, v] = [(1, 16), (2, 16), (3, 4)].map(|(seed, d)| tokens::<f32>([1, 1, 130, d], size, seed));
    // Some keys are small, some are 0: their weights vanish beside the others.
    k.slice_mut(s![0, 0, 100..110, ..]).mapv_inplace(|v| v * 0.01);
    k.slice_mut(s![0, 0, 110..115, ..]).fill(0.0);
    let attention = Attention::new(single).unwrap();
    let heads = Heads::new(&q, &k, &v).unwrap();
    let inputs = [&q, &k, &v].map(|x| widened(head(x, 0, 0)));
    for causal in [false, true] {
        let out = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) }.unwrap();
        let expected = naive(&double, inputs.each_ref(), by_features(|i, j| !causal || j <= i), true);
        let error =
            (&widened(head(&out.output, 0, 0)) - &expected).iter().fold(0.0f64, |a, e| a.max(e.abs()));
        assert!(error < 1e-3 && out.non_positive.is_empty(), "{error}");
    }
}

/// However little its key weighs, be it read before or after others, also beside exact weights.
#[test]
fn values_that_are_not_finite_show_beside_larger_keys() {
    fn check<T: Real>() {
        let omega = || Frequencies::from_rows(array![[1.0]]).unwrap();
        let rows = |x: [f64; 2]| Array4::from_shape_fn((1, 1, 2, 1), |(_, _, i, _)| T::narrow(x[i]));
        // In all outputs that see it and, of normalised attention, in all gradients of queries.
        let shown = |normalised: bool, attention: &Attention<T>, q: f64, k: [f64; 2], v: [f64; 2]| {
            let attention = ways::normalised(attention.clone(), normalised);
            let (x, y, z) = (rows([q; 2]), rows(k), rows(v));
            let heads = Heads::new(&x, &y, &z).unwrap();
            let all = attention.bidirectional(&heads).unwrap().output;
            let causal = attention.causal(&heads).unwrap().output;
            let shown = all.iter().chain(causal.iter().skip(1)).all(|out| !out.is_finite());
            assert!(shown, "{q}, {k:?}, {v:?}: {all}, {causal}");
            if normalised {
                let gradients = attention.bidirectional_backward(&heads, &Array4::ones(z.dim())).unwrap();
                let shown = gradients.queries.iter().all(|v| !v.is_finite());
                assert!(shown, "{q}, {k:?}, {v:?}: {}", gradients.queries);
            }
        };
        let positive = Attention::new(Positive.softmax::<T>(omega()).unwrap()).unwrap();
        let hyperbolic = Attention::new(Hyperbolic.softmax::<T>(omega()).unwrap()).unwrap();
        // The first key is read by features, the second one exactly.
        let near = positive.clone().with_window(1, 0).unwrap();
        let options = [f64::NAN, f64::INFINITY].into_iter().flat_map(|odd| [(odd, true), (odd, false)]);
        for (odd, normalised) in options {
            for q in [1.0, -40.0] {
                shown(normalised, &positive, q, [1.0, -40.0], [1.0, odd]);
                shown(normalised, &positive, q, [-40.0, 1.0], [odd, 1.0]);
            }
            for q in [400.0, -400.0, 1.0] {
                shown(normalised, &hyperbolic, q, [400.0, -400.0], [1.0, odd]);
                shown(normalised, &hyperbolic, q, [400.0, -400.0], [odd, 1.0]);
                shown(normalised, &hyperbolic, q, [400.0, 1.0], [1.0, odd]);
            }
            shown(normalised, &near, 40.0, [-40.0, 40.0], [odd, 1.0]);
            shown(normalised, &near, -40.0, [40.0, -40.0], [odd, 1.0]);
            shown(normalised, &near, 1.0, [1.0, -1000.0], [1.0, odd]);
        }
    }
    check::<f32>();
    check::<f64>();
}

/// Large values, one token, no token.
#[test]
fn values_and_lengths_at_their_ends() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 1, 100, d], 0.7, seed));
    let plain = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    for size in [1e-30f32, 1e30, 1e38] {
        let large = v.mapv(|v| v * size / 2.0);
        let heads = Heads::new(&q, &k, &large).unwrap();
        let out = attention.causal(&heads).unwrap().output;
        assert!(out.iter().zip(&plain).all(|(a, b)| (a / size * 2.0 - b).abs() < 1e-4), "{size}");
        assert!(attention.bidirectional(&heads).unwrap().output.iter().all(|v| v.is_finite()));
    }
    // Values whose sums are beyond the range, in whole segments and after them.
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 1, 2200, d], 0.7, seed));
    let v = v.mapv(|v| 1.0 + 0.5 * v);
    let large = v.mapv(|v| v * 1e38);
    let run = |v: &Array4<f32>, threads: usize| {
        let heads = Heads::new(&q, &k, v).unwrap();
        let run = || [attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap()];
        let mut state = attention.state(1, 1, 3).unwrap();
        read_tokens(&mut state, &k, v);
        (pool(threads).install(run), state.query(&q.slice(s![.., .., 0, ..])).unwrap())
    };
    let (plain, step) = run(&v, 1);
    for threads in [1, 4] {
        let (found, large_step) = run(&large, threads);
        for (found, plain) in found.iter().zip(&plain) {
            assert!((found.output.mapv(|v| v / 1e38) - &plain.output).iter().all(|e| e.abs() < 1e-5));
        }
        assert!((large_step.output.mapv(|v| v / 1e38) - &step.output).iter().all(|e| e.abs() < 1e-5));
    }
    // In the first segment alone.
    let mut mixed = v.clone();
    mixed.slice_mut(s![.., .., ..1000, ..]).assign(&large.slice(s![.., .., ..1000, ..]));
    let (one, _) = run(&mixed, 1);
    assert!(one.iter().all(|found| found.output.iter().all(|v| v.is_finite())) && run(&mixed, 4).0 == one);
    let part = |x: &Array4<f32>, n: usize| x.slice(s![.., .., ..n, ..]).to_owned();
    let (q1, k1, v1) = (part(&q, 1), part(&k, 1), part(&v, 1));
    let out = attention.causal(&Heads::new(&q1, &k1, &v1).unwrap()).unwrap().output;
    assert!((&out - &v1).iter().all(|e| e.abs() < 1e-6));
    let (q0, k0, v0) = (part(&q, 0), part(&k, 0), part(&v, 0));
    assert_eq!(attention.causal(&Heads::new(&q0, &k0, &v0).unwrap()).unwrap().output.dim(), (1, 1, 0, 3));
    let no_key = attention.bidirectional(&Heads::new(&q, &k0, &v0).unwrap()).unwrap();
    assert!(no_key.output.iter().all(|v| *v == 0.0) && no_key.non_positive.is_empty());
    let empty = Array4::<f32>::zeros((0, 1, 4, 6));
    assert_eq!(
        attention.causal(&Heads::new(&empty, &empty, &empty).unwrap()).unwrap().output.dim(),
        (0, 1, 4, 6)
    );
}

/// Sums over tokens are in `f64`: the error at 10⁶ tokens is that at 10³.
#[test]
fn a_million_tokens_are_as_accurate_as_a_thousand() {
    let (single, double) = (positive::<f32>(4, 8), positive::<f64>(4, 8));
    let [q, k, v] = [(1, 4), (2, 4), (3, 2)].map(|(seed, d)| tokens::<f32>([1, 1, 1_000_000, d], 0.7, seed));
    let v = v + 1.0;
    let out = Attention::new(single).unwrap().causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let [wide_q, wide_k, wide_v] = [&q, &k, &v].map(|x| x.mapv(f64::from));
    let exact = Attention::new(double)
        .unwrap()
        .causal(&Heads::new(&wide_q, &wide_k, &wide_v).unwrap())
        .unwrap()
        .output;
    let error = |rows: std::ops::Range<usize>| {
        let (out, exact) = (out.slice(s![.., .., rows.clone(), ..]), exact.slice(s![.., .., rows, ..]));
        out.iter().zip(exact).fold(0.0f64, |a, (x, y)| a.max((f64::from(*x) - y).abs()))
    };
    assert!(
        error(0..1000) < 2e-6 && error(999_000..1_000_000) < 2e-6,
        "{} {}",
        error(0..1000),
        error(999_000..1_000_000)
    );
}

/// Signed weights: where the normaliser is not positive, the row is 0 and reported, on every path.
#[test]
fn normalisers_that_are_not_positive_are_reported() {
    let map = Trigonometric.softmax::<f64>(frequencies(8, 12, &Independent, 9)).unwrap();
    let [q, k, v] = [1, 2, 3].map(|seed| tokens::<f64>([1, 2, 80, 8], 2.0, seed));
    let attention = Attention::signed(vec![map.clone()]).unwrap();
    let heads = Heads::new(&q, &k, &v).unwrap();
    let scale = 8f64.powf(-0.25);
    for causal in [false, true] {
        let out = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) }.unwrap();
        assert!(!out.non_positive.is_empty() && out.non_positive.is_sorted());
        for h in 0..2 {
            let gram = map.gram(&(&head(&q, 0, h) * scale), &(&head(&k, 0, h) * scale)).unwrap();
            for (i, row) in gram.rows().into_iter().enumerate() {
                let total: f64 = row.iter().take(if causal { i + 1 } else { 80 }).sum();
                let reported = out.non_positive.contains(&[0, h, i]);
                assert_eq!(reported, total <= 0.0, "{h} {i} {total}");
                assert!(!reported || head(&out.output, 0, h).row(i).iter().all(|v| *v == 0.0));
            }
        }
    }
    let mut state = attention.state(1, 2, 8).unwrap();
    let causal = attention.causal(&heads).unwrap();
    for i in 0..80 {
        state.push(&k.slice(s![.., .., i, ..]), &v.slice(s![.., .., i, ..])).unwrap();
        let step = state.query(&q.slice(s![.., .., i, ..])).unwrap();
        let expected: Vec<[usize; 3]> =
            causal.non_positive.iter().filter(|at| at[2] == i).map(|at| [at[0], at[1], 0]).collect();
        assert_eq!(step.non_positive, expected);
    }
}

/// Logits, normalisation, ε: each against its definition.
#[test]
fn options_are_their_definitions() {
    let map = positive::<f64>(6, 20);
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f64>([1, 1, 70, d], 0.7, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let inputs = [&q, &k, &v].map(|x| widened(head(x, 0, 0)));
    let base = 6f64.powf(0.25);
    let expected = |q: &Array2<f64>, k: &Array2<f64>, factor: f64| {
        naive(
            &map,
            [&(q * (base * factor)), &(k * (base * factor)), &inputs[2]],
            by_features(|_, _| true),
            true,
        )
    };
    let close = |a: ArrayView2<'_, f64>, b: &Array2<f64>| (&a - b).iter().all(|e| e.abs() < 1e-12);
    let scaled =
        Attention::new(map.clone()).unwrap().with_scale(0.25).unwrap().bidirectional(&heads).unwrap();
    assert!(close(head(&scaled.output, 0, 0), &expected(&inputs[0], &inputs[1], 0.5)));
    let unit = |x: &Array2<f64>| {
        let norms = x.mapv(|v| v * v).sum_axis(Axis(1)).mapv(f64::sqrt).insert_axis(Axis(1));
        x / &norms
    };
    let cosine =
        Attention::new(map.clone()).unwrap().with_cosine(0.25).unwrap().bidirectional(&heads).unwrap();
    assert!(close(head(&cosine.output, 0, 0), &expected(&unit(&inputs[0]), &unit(&inputs[1]), 2.0)));

    // Not normalised: the plain sum of estimates.
    let plain = Attention::new(map.clone()).unwrap().with_scale(1.0).unwrap().without_normalisers();
    let gram = map.gram(&inputs[0], &inputs[1]).unwrap();
    let sum = gram.dot(&inputs[2]);
    assert!(
        (&head(&plain.bidirectional(&heads).unwrap().output, 0, 0) - &sum).iter().all(|e| e.abs() < 1e-10)
    );
    let last =
        Array2::from_shape_fn(gram.dim(), |(i, j)| if j <= i { gram[[i, j]] } else { 0.0 }).dot(&inputs[2]);
    assert!((&head(&plain.causal(&heads).unwrap().output, 0, 0) - &last).iter().all(|e| e.abs() < 1e-10));

    // ε beside keys' features and queries' features relative to their largest.
    let epsilon =
        Attention::new(map.clone()).unwrap().with_scale(1.0).unwrap().with_biased_epsilon(0.01).unwrap();
    let (mut left, right) = (
        map.features(Side::X, &inputs[0]).unwrap().to_array(),
        map.features(Side::Y, &inputs[1]).unwrap().to_array() + 0.01,
    );
    for mut row in left.rows_mut() {
        let top = row.iter().copied().fold(0.0, f64::max);
        row.mapv_inplace(|v| v / top + 0.01);
    }
    let weights = left.dot(&right.t());
    let expected = weights.dot(&inputs[2]) / weights.sum_axis(Axis(1)).insert_axis(Axis(1));
    assert!(close(head(&epsilon.bidirectional(&heads).unwrap().output, 0, 0), &expected));

    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let attention = || Attention::new(map.clone()).unwrap();
        assert!(attention().with_scale(wrong).is_err() && attention().with_cosine(wrong).is_err());
        assert!(
            ExactAttention::new().with_scale(wrong).is_err()
                && (wrong == 0.0 || attention().with_biased_epsilon(wrong).is_err())
        );
    }
}

/// Any strides; outputs of the caller.
#[test]
fn any_layout_gives_the_same_bits() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let [q, k, v] = [1, 2, 3].map(|seed| tokens::<f32>([2, 3, 70, 6], 0.7, seed));
    let swapped = |x: &Array4<f32>| {
        // [batch, length, heads, dim] in memory.
        let mut stored = x.view().permuted_axes([0, 2, 1, 3]).as_standard_layout().into_owned();
        stored.swap_axes(1, 2);
        stored
    };
    let (sq, sk, sv) = (swapped(&q), swapped(&k), swapped(&v));
    assert!(!sq.is_standard_layout() && sq == q);
    let (plain, other) = (Heads::new(&q, &k, &v).unwrap(), Heads::new(&sq, &sk, &sv).unwrap());
    let expected = attention.causal(&plain).unwrap();
    assert_eq!(attention.causal(&other).unwrap(), expected);
    let mut out = swapped(&Array4::from_elem((2, 3, 70, 6), f32::NAN));
    attention.causal_into(&other, &mut out).unwrap();
    assert_eq!(out, expected.output);
    let exact: Array4<f32> = ExactAttention::new().causal(&plain).unwrap().output;
    ExactAttention::new().causal_into(&other, &mut out).unwrap();
    assert_eq!(out, exact);
    assert!(attention.causal_into(&plain, &mut Array4::zeros((2, 3, 70, 5))).is_err());
}

/// The exact weights against the definition, and where the two kinds meet.
#[test]
fn exact_attention_is_the_definition() {
    let [q, k, v] =
        [(1, 70, 6), (2, 600, 6), (3, 600, 5)].map(|(seed, n, d)| tokens::<f64>([1, 2, n, d], 1.5, seed));
    let definition = |q: &Array2<f64>, k: &Array2<f64>, v: &Array2<f64>, causal: bool| {
        let mut weights = q.dot(&k.t()) / 6f64.sqrt();
        weights
            .indexed_iter_mut()
            .filter(|((i, j), _)| causal && j > i)
            .for_each(|(_, w)| *w = f64::NEG_INFINITY);
        for mut row in weights.rows_mut() {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.mapv_inplace(|logit| (logit - top).exp());
        }
        weights.dot(v) / weights.sum_axis(Axis(1)).insert_axis(Axis(1))
    };
    let out: Array4<f64> =
        ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let causal: Array4<f64> = ExactAttention::new().causal(&Heads::new(&k, &k, &v).unwrap()).unwrap().output;
    for h in 0..2 {
        let [q, k, v] = [&q, &k, &v].map(|x| head(x, 0, h).to_owned());
        assert!((&head(&out, 0, h) - &definition(&q, &k, &v, false)).iter().all(|e| e.abs() < 1e-13));
        assert!((&head(&causal, 0, h) - &definition(&k, &k, &v, true)).iter().all(|e| e.abs() < 1e-13));
    }
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let heads = Heads::new(&k, &k, &v).unwrap();
        pool.install(|| ExactAttention::new().causal::<f64, f64>(&heads).unwrap().output)
    };
    assert!(run(1) == run(3));
    // Beside a key of a later block nothing is left of those before.
    let mut long = k.mapv(|v| 4.0 * v);
    long.slice_mut(s![.., .., 300.., ..]).mapv_inplace(|v| 10.0 * v);
    let heads = Heads::new(&long, &long, &v).unwrap();
    let [all, causal]: [Array4<f64>; 2] = [
        ExactAttention::new().bidirectional(&heads).unwrap().output,
        ExactAttention::new().causal(&heads).unwrap().output,
    ];
    let [x, values] = [&long, &v].map(|x| head(x, 0, 1).to_owned());
    for (out, causal) in [(all, false), (causal, true)] {
        // Logits of some 10⁴ are rounded.
        let expected = definition(&x, &x, &values, causal);
        assert!((&head(&out, 0, 1) - &expected).iter().all(|e| e.abs() < 1e-10));
    }
    // Norms of 1e3: one key takes all, or keys share.
    let large = k.mapv(|v| (v * 1e3) as f32);
    let heads = Heads::new(&large, &large, &large).unwrap();
    let out: Array4<f32> = ExactAttention::new().causal(&heads).unwrap().output;
    assert!(out.iter().all(|v| v.is_finite()));

    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let exact = attention.exact_counterpart().unwrap();
    let crossover = attention.bidirectional_crossover(5);
    assert!(crossover > 2 && attention.causal_crossover(5) > crossover);
    // Exact pairs move it up, by a rule that the suite `attention_choice` has again.
    let near = attention.clone().with_window(9, 4).unwrap();
    let heavy = attention.clone().with_keys_exact(&[3, 5]).unwrap();
    for (attention, causal) in
        [(&attention, false), (&attention, true), (&near, false), (&near, true), (&heavy, false)]
    {
        let crossover = ways::crossover(attention, 5, causal);
        for n in [crossover - 1, crossover] {
            let part = |x: &Array4<f64>| x.slice(s![.., .., ..n, ..]).to_owned();
            let (k, v) = (part(&k), part(&v));
            let heads = Heads::new(&k, &k, &v).unwrap();
            let expected = match (n < crossover, causal) {
                (true, false) => exact.bidirectional(&heads),
                (true, true) => exact.causal(&heads),
                (false, false) => attention.bidirectional(&heads),
                (false, true) => attention.causal(&heads),
            };
            assert_eq!(
                ways::auto(attention, &heads, causal).unwrap().output,
                expected.unwrap().output,
                "{n}, {causal}"
            );
        }
    }
    // One query, or one key, is exact beside any number of others; causally other lengths, and other shapes are errors.
    let part = |x: &Array4<f64>, n: usize| x.slice(s![.., .., ..n, ..]).to_owned();
    let (one, k_part, v_part) = (part(&k, 1), part(&k, crossover), part(&v, crossover));
    for heads in
        [Heads::new(&one, &k_part, &v_part), Heads::new(&k_part, &one, &part(&v, 1))].map(Result::unwrap)
    {
        let expected: Array4<f64> = exact.bidirectional(&heads).unwrap().output;
        assert_eq!(attention.bidirectional_auto(&heads).unwrap().output, expected);
    }
    let heads = Heads::new(&k_part, &k_part, &v_part).unwrap();
    let expected: Array4<f64> = exact.causal(&heads).unwrap().output;
    assert_eq!(attention.causal_auto(&heads).unwrap().output, expected);
    let few = part(&k, 3);
    let wrong = Heads::new(&few, &few, &few).unwrap();
    let other = Attention::new(positive::<f64>(5, 20)).unwrap();
    assert!(matches!(other.bidirectional_auto(&wrong), Err(Error::Shape { .. })));
    // What is not divided, or not softmax attention, has no other way.
    let sums = attention.clone().without_normalisers();
    assert_eq!(sums.bidirectional_auto(&wrong).unwrap(), sums.bidirectional(&wrong).unwrap());
    assert_eq!(attention.clone().with_biased_epsilon(0.1).unwrap().exact_counterpart(), None);
    let cosine: Array4<f64> = attention
        .clone()
        .with_cosine(0.3)
        .unwrap()
        .exact_counterpart()
        .unwrap()
        .bidirectional(&wrong)
        .unwrap()
        .output;
    let own: Array4<f64> =
        ExactAttention::new().with_cosine(0.3).unwrap().bidirectional(&wrong).unwrap().output;
    assert!((cosine - own).iter().all(|e| e.abs() < 1e-13));
    // Another kernel has no exact softmax attention.
    let gaussian = Positive.gaussian::<f64>(frequencies(6, 8, &Orthogonal, 1), 1.0).unwrap();
    assert_eq!(Attention::new(gaussian).unwrap().exact_counterpart(), None);
    let longer = Positive
        .build::<f64>(frequencies(6, 8, &Orthogonal, 1), random_features::kernel::Softmax::new(2.0).unwrap())
        .unwrap();
    let mixed = Attention::per_head(vec![positive(6, 20), longer.clone()]).unwrap();
    assert_eq!(mixed.exact_counterpart(), None);
    let heads = Heads::new(&k, &k, &v).unwrap();
    let own: Array4<f64> =
        Attention::new(longer).unwrap().exact_counterpart().unwrap().bidirectional(&heads).unwrap().output;
    let quarter: Array4<f64> =
        ExactAttention::new().with_scale(0.25 / 6f64.sqrt()).unwrap().bidirectional(&heads).unwrap().output;
    assert!((own - quarter).iter().all(|e| e.abs() < 1e-13));
}

/// Rows of the attention matrix times the values are the outputs.
#[test]
fn weights_are_those_of_the_outputs() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let (q, k, v) =
        (tokens::<f64>([2, 4, 90, 6], 0.7, 1), tokens([2, 2, 90, 6], 0.7, 2), tokens([2, 2, 90, 3], 1.0, 3));
    let (mask, offsets) = (Array2::from_shape_fn((2, 90), |(b, j)| (j + 2 * b) % 4 != 1), [0, 40, 90]);
    let heads =
        Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap().with_sequences(&offsets, &offsets).unwrap();
    for causal in [false, true] {
        let out =
            if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) }.unwrap().output;
        let which = [0, 39, 40, 89];
        for own in 0..4 {
            let weights = ways::weights(&attention, &heads, ([1, own], &which), causal).unwrap();
            assert!(weights.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-12));
            let expected = weights.dot(&head(&v, 1, own / 2));
            for (row, expected) in which.iter().zip(expected.rows()) {
                assert!((&head(&out, 1, own).row(*row) - &expected).iter().all(|e| e.abs() < 1e-12));
            }
        }
        for (place, rows) in [([2, 3], &which[..]), ([1, 4], &which), ([1, 3], &[90])] {
            let refused = ways::weights(&attention, &heads, (place, rows), causal);
            assert!(matches!(refused, Err(Error::Parameter { .. })));
        }
    }
    // Sequences with fewer or more keys than queries: places count from where each begins. Without a key all weights are 0.
    let (few_k, few_v) = (k.slice(s![.., .., ..70, ..]), v.slice(s![.., .., ..70, ..]));
    let nothing = Array2::from_elem((2, 70), false);
    let heads = Heads::new(&q, &few_k, &few_v).unwrap().with_sequences(&offsets, &[0, 10, 70]).unwrap();
    let which = [4, 30, 45, 89];
    let weights = attention.causal_weights(&heads, 0, 0, &which).unwrap();
    for (row, seen) in weights.rows().into_iter().zip([0..5, 0..10, 10..16, 10..60]) {
        assert!(row.indexed_iter().all(|(j, w)| (*w > 0.0) == seen.contains(&j)), "{seen:?} {row}");
    }
    let weights = attention.causal_weights(&heads.with_mask(&nothing).unwrap(), 0, 0, &which).unwrap();
    assert!(weights.iter().all(|w| *w == 0.0));
}

#[test]
fn wrong_shapes_are_errors() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let zeros = |b, h, n, d| Array4::<f64>::zeros((b, h, n, d));
    let (q, k, v) = (zeros(1, 4, 5, 6), zeros(1, 2, 7, 6), zeros(1, 2, 7, 3));
    assert!(Heads::new(&q, &k, &v).is_ok());
    for (q, k, v) in [
        (&zeros(2, 4, 5, 6), &k, &v),
        (&q, &zeros(1, 2, 7, 5), &v),
        (&q, &k, &zeros(1, 2, 6, 3)),
        (&q, &k, &zeros(1, 1, 7, 3)),
    ] {
        assert!(matches!(Heads::new(q, k, v), Err(Error::Shape { .. })));
    }
    assert!(matches!(Heads::new(&zeros(1, 3, 5, 6), &k, &v), Err(Error::Multiple { .. })));
    let none = Heads::new(&q, &zeros(1, 0, 7, 6), &zeros(1, 0, 7, 3)).err();
    assert!(matches!(none, Some(Error::Parameter { .. })), "{none:?}");
    assert!(matches!(Heads::new(&q, &k, &zeros(1, 2, 7, 0)), Err(Error::Parameter { .. })));
    let short = Array2::from_elem((1, 5), true);
    assert!(Heads::new(&q, &k, &v).unwrap().with_mask(&short).is_err());
    for (queries, keys) in
        [(vec![0, 5], vec![0, 6]), (vec![0, 5], vec![0, 3, 7]), (vec![1, 5], vec![0, 7]), (vec![5], vec![7])]
    {
        assert!(Heads::new(&q, &k, &v).unwrap().with_sequences(&queries, &keys).is_err());
    }
    let heads = || Heads::new(&q, &k, &v).unwrap();
    let decreasing = heads().with_sequences(&[0, 4, 2, 5], &[0, 1, 2, 7]);
    assert!(matches!(decreasing, Err(Error::Entry { row: 2, .. })));
    assert!(matches!(attention.causal(&heads()), Err(Error::Shape { .. })));
    let narrow = Attention::new(positive::<f64>(5, 20)).unwrap();
    assert!(matches!(narrow.bidirectional(&heads()), Err(Error::Shape { .. })));
    assert!(Attention::<f64>::signed(vec![]).is_err());
    assert!(Attention::per_head(vec![positive::<f64>(5, 20), positive(6, 20)]).is_err());
    let mut state = attention.state(1, 2, 3).unwrap();
    let token = |h, d| Array3::<f64>::zeros((1, h, d));
    assert!(
        state.push(&token(2, 6), &token(2, 4)).is_err() && state.push(&token(1, 6), &token(1, 3)).is_err()
    );
    assert!(state.query(&token(3, 6)).is_err() && state.query(&token(2, 5)).is_err());
    assert!(Heads::without_queries(&zeros(1, 2, 4, 6), &zeros(1, 2, 5, 3)).is_err());
    assert_eq!(state.lengths(), [0]);
    // A query before the first key sees nothing.
    let step = state.query(&token(4, 6)).unwrap();
    assert!(step.output.iter().all(|v| *v == 0.0) && step.non_positive.is_empty());
    assert!(attention.state(1, 2, 0).is_err());
}

#[cfg(feature = "half")]
#[test]
fn half_precision_is_converted() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let x = tokens::<f32>([1, 2, 70, 6], 0.7, 1);
    let short = x.mapv(half::bf16::from_f32);
    let wide = short.mapv(half::bf16::to_f32);
    let out = attention.causal(&Heads::new(&short, &short, &short).unwrap()).unwrap();
    assert_eq!(out, attention.causal(&Heads::new(&wide, &wide, &wide).unwrap()).unwrap());
    let short = x.mapv(half::f16::from_f32);
    let wide = short.mapv(half::f16::to_f32);
    let out = attention.causal(&Heads::new(&short, &short, &short).unwrap()).unwrap();
    assert_eq!(out, attention.causal(&Heads::new(&wide, &wide, &wide).unwrap()).unwrap());
}

/// The frequencies of a step depend on the seed and the step alone.
#[test]
fn redraws_follow_their_schedule() {
    let recipe = Positive.recipe(Draw::new(6, 20, Orthogonal), Softmax::default());
    let redraw = Redraw::new(recipe.clone(), 7, 100).unwrap();
    let identity = |redraw: &Redraw, step| redraw.build::<f32>(step).unwrap().identity();
    assert_eq!(identity(&redraw, 99), recipe.draw::<f32>(7).unwrap().identity());
    let mut known: Vec<_> = (0..50).map(|number| identity(&redraw, 100 * number + 3)).collect();
    known.push(identity(&Redraw::new(recipe.clone(), 8, 100).unwrap(), 250));
    known.push(identity(&redraw, u64::MAX));
    for (i, own) in known.iter().enumerate() {
        assert!(known[..i].iter().all(|other| other != own), "redraw {i}");
    }
    assert_eq!(identity(&redraw, 4950), known[49]);
    assert!(matches!(Redraw::new(recipe, 7, 0), Err(Error::Parameter { .. })));
}

/// A key that shares no feature with a query hides no other, however far below it that one is.
#[test]
fn keys_without_a_common_feature_hide_none() {
    let attention = Attention::new(relu::<f32>(2, 16)).unwrap();
    for size in [1.0f32, 1e8, 1e19, 1e25] {
        // With 63 and 1023 the small one is the first of a chunk and of a segment.
        for gap in [0, 63, 70, 1023, 1100] {
            // Many keys along a, then one far smaller along −a; a query along −a sees that one alone.
            let n = gap + 2;
            let k = Array4::from_shape_fn((1, 1, n, 2), |(_, _, j, c)| {
                if j + 1 < n { [size, 0.0][c] } else { [-1.0 / size, 0.0][c] }
            });
            let q = Array4::from_shape_fn((1, 1, n, 2), |(_, _, _, c)| [-1.0f32, 0.0][c]);
            let v = Array4::from_shape_fn((1, 1, n, 1), |(_, _, j, _)| if j + 1 < n { 7.0 } else { 3.0 });
            let heads = Heads::new(&q, &k, &v).unwrap();
            let (all, causal) = (attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap());
            assert!(all.output.iter().all(|v| (v - 3.0).abs() < 1e-5), "{size} {gap}: {}", all.output);
            assert!((causal.output[[0, 0, n - 1, 0]] - 3.0).abs() < 1e-5, "{size} {gap}");
            assert_eq!(causal.non_positive.len(), n - 1);
            let mut state = attention.state(1, 1, 1).unwrap();
            read_tokens(&mut state, &k, &v);
            let step = state.query(&q.slice(s![.., .., 0, ..])).unwrap();
            assert!((step.output[[0, 0, 0]] - 3.0).abs() < 1e-5);
            // Token by token too, and when whole chunks of such keys are summed up.
            let mut state = attention.state(1, 1, 1).unwrap();
            for j in (0..n).chain([n - 1; 64]) {
                state.push(&k.slice(s![.., .., j, ..]), &v.slice(s![.., .., j, ..])).unwrap();
            }
            let step = state.query(&q.slice(s![.., .., 0, ..])).unwrap();
            assert!((step.output[[0, 0, 0]] - 3.0).abs() < 1e-5, "{size} {gap}");
            let weights = attention.bidirectional_weights(&heads, 0, 0, &[0]).unwrap();
            assert!((weights[[0, n - 1]] - 1.0).abs() < 1e-12);
        }
    }
}

/// Positive keys are seen by positive queries alone, negative ones by negative ones, with their sizes as weights: 2^`low` to
/// 2^`high`, the same for runs of tokens of many lengths, of whole chunks for odd seeds.
fn signs_do_not_meet<T: Real>(low: i32, high: i32) {
    for seed in 0..14 {
        let lengths: &[usize] = if seed % 2 == 0 {
            &[1, 63, 3, 61, 64, 128, 40, 500, 7, 164, 1, 90, 1024]
        } else {
            &[64, 128, 64, 512, 256, 192, 64, 128, 512, 64]
        };
        let run_of: Vec<usize> = lengths.iter().enumerate().flat_map(|(run, n)| vec![run; *n]).collect();
        let n = run_of.len();
        let hash = |run: usize| ((run + 17 * seed + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let sign = |j: usize| if hash(run_of[j]) % 5 < 2 { -1.0 } else { 1.0 };
        let any = |j: usize| (hash(run_of[j] + 1000) % (high - low + 1) as u64) as i32 + low;
        // In the last rounds all keys of one sign are as small as can be beside the others.
        let exponent = |j: usize| match seed {
            0..6 => any(j),
            6..10 => {
                if sign(j) > 0.0 {
                    high
                } else {
                    low
                }
            }
            _ => {
                if sign(j) > 0.0 {
                    low
                } else {
                    high
                }
            }
        };
        let k = Array4::from_shape_fn((1, 1, n, 1), |at| T::narrow(sign(at.2) * 2f64.powi(exponent(at.2))));
        let v = tokens::<T>([1, 1, n, 2], 0.2, seed).mapv(|v| v + T::one());
        let positive = Array4::from_elem((1, 1, n, 1), T::one());
        let negative = positive.mapv(|v| -v);
        let q = concatenate(Axis(1), &[positive.view(), negative.view()]).unwrap();
        // Of each head and row, of keys up to it: 0 where there is none.
        let expected: Vec<Vec<[f64; 2]>> = [1.0, -1.0]
            .map(|own| {
                let (mut top, mut total, mut sums) = (low, 0.0, [0.0; 2]);
                let mut of_row = |j: usize| {
                    if sign(j) == own {
                        let keep = 2f64.powi((top - exponent(j)).min(0));
                        top = top.max(exponent(j));
                        let weight = 2f64.powi(exponent(j) - top);
                        total = keep * total + weight;
                        sums = [0, 1].map(|t| keep * sums[t] + weight * v[[0, 0, j, t]].widen());
                    }
                    sums.map(|sum| if total > 0.0 { sum / total } else { 0.0 })
                };
                (0..n).map(&mut of_row).collect()
            })
            .into();
        // Means of numbers of size 1, in `T`; each is summed up in some steps.
        let close = |found: T, expected: f64| (found.widen() - expected).abs() < 40.0 * T::epsilon().widen();
        let attention = Attention::new(signs::<T>()).unwrap();
        let heads = Heads::new(&q, &k, &v).unwrap();
        for threads in [1, 3] {
            let run = || (attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap());
            let (all, causal) = pool(threads).install(run);
            for ((_, h, i, t), found) in causal.output.indexed_iter() {
                let own = expected[h][i][t];
                assert!(close(*found, own), "{seed} {h} {i}: {found}, {own}");
                assert_eq!(causal.non_positive.binary_search(&[0, h, i]).is_ok(), own == 0.0);
                let (found, own) = (all.output[[0, h, i, t]], expected[h][n - 1][t]);
                assert!(close(found, own), "{seed} {h} {i}: {found}, {own}");
            }
        }
        for prefix in [0, 128, 700, 1024, 1110] {
            let mut state = attention.state(1, 1, 2).unwrap();
            read_tokens(&mut state, &k.slice(s![.., .., ..prefix, ..]), &v.slice(s![.., .., ..prefix, ..]));
            while state.lengths()[0] < prefix + 140 {
                let i = state.lengths()[0];
                state.push(&k.slice(s![.., .., i, ..]), &v.slice(s![.., .., i, ..])).unwrap();
                let step = state.query(&q.slice(s![.., .., 0, ..])).unwrap();
                for ((_, h, t), found) in step.output.indexed_iter() {
                    let own = expected[h][i][t];
                    assert!(close(*found, own), "{seed} {prefix} {h} {i}: {found}, {own}");
                }
            }
        }
    }
}

#[test]
fn keys_of_any_size_are_seen_by_their_own_sign_alone() {
    signs_do_not_meet::<f32>(-100, 100);
    signs_do_not_meet::<f64>(-100, 100);
    // Squares are within the range.
    signs_do_not_meet::<f64>(-1000, 500);
    // A value beyond all bounds too.
    let x = array![[[[1.0], [-1.0]]]];
    let v = array![[[[f64::INFINITY], [3.0]]]];
    let heads = Heads::new(&x, &x, &v).unwrap();
    let out = Attention::new(signs::<f64>()).unwrap().bidirectional(&heads).unwrap().output;
    assert!(!out[[0, 0, 0, 0]].is_finite() && (out[[0, 0, 1, 0]] - 3.0).abs() < 1e-15);
    // What is shared may be the least of the features on both sides.
    let omega = Frequencies::from_rows(Array2::eye(3)).unwrap();
    let attention = Attention::new(Nonlinear::new(Activation::Relu).build(omega, 1.0).unwrap()).unwrap();
    for share in [1e-5f32, 1e-10, 1e-20, 1e-30] {
        let q = array![[[[1.0, -1.0, share], [1.0, -1.0, share]]]];
        let k = array![[[[-1.0, 1.0, share], [-1.0, 1.0, 3.0 * share]]]];
        let v = array![[[[1.0f32], [3.0]]]];
        let heads = Heads::new(&q, &k, &v).unwrap();
        for out in [attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap()] {
            assert!((out.output[[0, 0, 1, 0]] - 2.5).abs() < 1e-5, "{share} {}", out.output);
        }
        let mut state = attention.state(1, 1, 1).unwrap();
        read_tokens(&mut state, &k, &v);
        let step = state.query(&q.slice(s![.., .., 0, ..])).unwrap();
        assert!((step.output[[0, 0, 0]] - 2.5).abs() < 1e-5, "{share}");
    }
}

/// A map of your own whose values are of any size, some of them 0.
#[derive(Debug)]
struct Sized(f64);

impl<T: Real> FeatureMap<T> for Sized {
    fn facts(&self) -> Facts {
        Facts::new(1, vec![2, 1]).symmetric().non_negative()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, _: Form, tile: &mut Tile<'_, T>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let (x, row) = (x[0].widen(), tile.row(i));
            let values = [self.0 * x.max(0.0), self.0 * (-x).max(0.0), self.0];
            row.values.iter_mut().zip(values).for_each(|(to, v)| *to = T::narrow(v));
            row.log_scales.fill(0.0);
        }
    }
}

#[test]
fn values_of_a_map_may_be_of_any_size() {
    let [q, k] = [1, 2].map(|seed| tokens::<f32>([1, 1, 150, 1], 1.0, seed));
    let v = tokens::<f32>([1, 1, 150, 2], 1.0, 3);
    let run = |size: f64| {
        let attention = Attention::new(Map::<f32>::of_feature_map(Sized(size)).unwrap()).unwrap();
        let heads = Heads::new(&q, &k, &v).unwrap();
        (attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap())
    };
    let plain = run(1.0);
    for size in [1e-30, 1e-12, 1e12, 1e30] {
        let other = run(size);
        for (a, b) in [(&other.0, &plain.0), (&other.1, &plain.1)] {
            assert!(a.non_positive.is_empty());
            assert!((&a.output - &b.output).iter().all(|e| e.abs() < 1e-5), "{size}");
        }
    }
}

/// Norms of any size have the same direction.
#[test]
fn cosines_do_not_depend_on_norms() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap().with_cosine(0.5).unwrap();
    let exact = ExactAttention::new().with_cosine(0.5).unwrap();
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 1, 40, d], 1.0, seed));
    let run = |a: f32, b: f32| {
        let (q, k) = (q.mapv(|v| v * a), k.mapv(|v| v * b));
        let heads = Heads::new(&q, &k, &v).unwrap();
        let out: Array4<f32> = exact.bidirectional(&heads).unwrap().output;
        (attention.bidirectional(&heads).unwrap().output, out)
    };
    let plain = run(1.0, 1.0);
    for (a, b) in [(1e-30, 1e30), (1e36, 1e-36), (1e-37, 1e-37)] {
        let other = run(a, b);
        assert!((&other.0 - &plain.0).iter().all(|e| e.abs() < 1e-5), "{a} {b}");
        assert!((&other.1 - &plain.1).iter().all(|e| e.abs() < 1e-5), "{a} {b}");
    }
}

/// ε is continuous: a tiny one changes little, also where outputs are not divided, and where features are far apart.
#[test]
fn a_tiny_epsilon_changes_little() {
    for (size, normalised) in [(0.7, true), (0.7, false), (20.0, true)] {
        let map = positive::<f32>(6, 20);
        let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 1, 70, d], size, seed));
        let heads = Heads::new(&q, &k, &v).unwrap();
        let run = |epsilon| {
            let attention = ways::normalised(Attention::new(map.clone()).unwrap(), normalised);
            attention.with_biased_epsilon(epsilon).unwrap().causal(&heads).unwrap()
        };
        let (none, tiny) = (run(0.0), run(1e-300));
        assert!(tiny.non_positive.is_empty(), "{size}");
        let scale = none.output.iter().fold(0.0f32, |a, v| a.max(v.abs()));
        assert!((&none.output - &tiny.output).iter().all(|e| e.abs() <= 1e-4 * scale), "{size} {normalised}");
    }
}

/// ε is what it is where features are below it, and where they are too far apart for products in `f32`.
#[test]
fn epsilon_is_its_definition_for_features_of_any_size() {
    // Features e^{ωx − ½x²} of 10⁻⁹ and of 10⁸, in one row and on both sides of ε; then all features of some keys below it.
    let apart = || Frequencies::from_rows(array![[20.0], [-20.0], [1.0]]).unwrap();
    for (single, double, size) in [
        (Positive.softmax::<f32>(apart()).unwrap(), Positive.softmax::<f64>(apart()).unwrap(), 1.3),
        (positive(1, 3), positive(1, 3), 5.0),
    ] {
        let [q, k] = [1, 2].map(|seed| tokens::<f32>([1, 1, 70, 1], size, seed));
        let v = tokens::<f32>([1, 1, 70, 2], 1.0, 3);
        let attention = Attention::new(single).unwrap().with_biased_epsilon(0.01).unwrap();
        let out = attention.bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap();
        let features =
            |side, x: &Array4<f32>| double.features(side, &widened(head(x, 0, 0))).unwrap().to_array();
        let (mut left, right) = (features(Side::X, &q), features(Side::Y, &k) + 0.01);
        for mut row in left.rows_mut() {
            let top = row.iter().copied().fold(0.0, f64::max);
            row.mapv_inplace(|v| v / top + 0.01);
        }
        let weights = left.dot(&right.t());
        let expected = weights.dot(&widened(head(&v, 0, 0))) / weights.sum_axis(Axis(1)).insert_axis(Axis(1));
        // Exponents of up to 50 are rounded to f32.
        assert!((widened(head(&out.output, 0, 0)) - expected).iter().all(|e| e.abs() < 50.0 * 1e-6));
    }
}

/// What is not divided may be in range where its scale is not.
#[test]
fn outputs_that_are_not_divided_reach_the_ends_of_the_range() {
    // One frequency: φ = exp(ω x − ½x²), so the scale is far beyond the range where ω x is.
    let map = positive::<f64>(1, 1);
    let attention = Attention::new(map.clone()).unwrap().with_scale(1.0).unwrap().without_normalisers();
    for x in [-40.0, -30.0, 30.0, 40.0] {
        let log = map.log_estimate(&arr1(&[x]), &arr1(&[x])).unwrap().ln_abs;
        // The output e^±600.
        let value = ((600.0 * log.signum() - log).clamp(-690.0, 690.0)).exp();
        let (x, v) = (Array4::from_elem((1, 1, 1, 1), x), Array4::from_elem((1, 1, 1, 1), value));
        let out = attention.bidirectional(&Heads::new(&x, &x, &v).unwrap()).unwrap().output[[0, 0, 0, 0]];
        let expected = log + value.ln();
        assert!(expected.abs() > 700.0 || (out.ln() - expected).abs() < 1e-9, "{out}: e^{expected}");
        assert!(log.abs() > 710.0);
    }
}

/// A stored state that cannot have come to be is an error, whatever it asks for.
#[cfg(feature = "serde")]
#[test]
fn hostile_states_are_refused() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let mut state = attention.state(1, 1, 6).unwrap();
    let x = tokens::<f32>([1, 1, 70, 6], 0.7, 1);
    read_tokens(&mut state, &x, &x);
    let text = serde_json::to_string(&state).unwrap();
    let read = |text: &str| crate::stored::resealed::<CausalState<f32>>(serde_json::from_str(text).unwrap());
    assert!(read(&text).is_ok());
    for (from, to) in [
        ("\"shape\":[1,1,6]", "\"shape\":[1,1,17592186044416]"),
        ("\"shape\":[1,1,6]", "\"shape\":[1,1,18446744073709551615]"),
        ("\"shape\":[1,1,6]", "\"shape\":[0,1,6]"),
        ("\"targets\":6", "\"targets\":7"),
        ("\"length\":70", "\"length\":18446744073709551615"),
        ("\"length\":70", "\"length\":64"),
        ("\"reference\":[\"", "\"reference\":[\"1"),
        ("\"reference\":[\"", "\"reference\":[\"inf\",\""),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(read(&text.replacen(from, to, 1)).is_err(), "{to}");
    }
    // Heads have seen as many tokens.
    let mut state = attention.state(2, 1, 6).unwrap();
    let x = tokens::<f32>([2, 1, 70, 6], 0.7, 1);
    read_tokens(&mut state, &x, &x);
    let text = serde_json::to_string(&state).unwrap();
    assert!(read(&text).is_ok() && read(&text.replacen("\"length\":70", "\"length\":71", 1)).is_err());
}

/// Auto looks at the sequences, not at their sum; weights say NaN where outputs do.
#[test]
fn sequences_and_nan_reach_the_side_doors() {
    let attention = Attention::new(positive::<f64>(6, 100)).unwrap();
    let x = tokens::<f64>([1, 1, 2000, 6], 0.7, 1);
    let offsets: Vec<usize> = (0..=100).map(|s| 20 * s).collect();
    let heads = Heads::new(&x, &x, &x).unwrap().with_sequences(&offsets, &offsets).unwrap();
    assert!(attention.bidirectional_crossover(6) > 20);
    let expected: Array4<f64> = attention.exact_counterpart().unwrap().bidirectional(&heads).unwrap().output;
    assert_eq!(attention.bidirectional_auto(&heads).unwrap().output, expected);
    let mut k = x.clone();
    k[[0, 0, 25, 0]] = f64::NAN;
    let heads = Heads::new(&x, &k, &x).unwrap().with_sequences(&offsets, &offsets).unwrap();
    let weights = attention.bidirectional_weights(&heads, 0, 0, &[3, 30]).unwrap();
    assert!(weights.row(0).iter().all(|w| w.is_finite()) && weights.row(1).iter().any(|w| w.is_nan()));
    assert!(attention.state(usize::MAX, 2, 1).is_err() && attention.state(1, 1, usize::MAX / 2).is_err());
}

/// Sums that are 0 stay 0, and a query that sees no key gets 0, whatever it is.
#[test]
fn zeros_stay_zeros() {
    let positive = Attention::new(positive::<f64>(1, 1)).unwrap();
    let raw = positive.clone().with_scale(1.0).unwrap().without_normalisers();
    // A weight of e^1600 and values 0 and 1.
    let (x, v) = (array![[[[40.0]]]], array![[[[0.0, 1.0]]]]);
    let heads = Heads::new(&x, &x, &v).unwrap();
    assert_eq!(raw.bidirectional(&heads).unwrap().output[[0, 0, 0, 0]], 0.0);
    assert_eq!(raw.causal(&heads).unwrap().output[[0, 0, 0, 0]], 0.0);
    // The first query sees no key.
    let (mut q, k) = (tokens::<f64>([1, 1, 70, 1], 0.5, 1), tokens::<f64>([1, 1, 70, 1], 0.5, 2));
    q[[0, 0, 0, 0]] = f64::NAN;
    let mask = Array2::from_shape_fn((1, 70), |(_, j)| j > 0);
    let heads = Heads::new(&q, &k, &k).unwrap().with_mask(&mask).unwrap();
    for attended in [positive.causal(&heads).unwrap(), raw.causal(&heads).unwrap()] {
        assert_eq!(attended.output[[0, 0, 0, 0]], 0.0);
        assert!(attended.non_positive.is_empty());
    }
    let exact: Array4<f64> = ExactAttention::new().causal(&heads).unwrap().output;
    assert_eq!(exact[[0, 0, 0, 0]], 0.0);
    let none = Array2::from_elem((1, 70), false);
    let heads = Heads::new(&q, &k, &k).unwrap().with_mask(&none).unwrap();
    assert!(positive.bidirectional(&heads).unwrap().output.iter().all(|out| *out == 0.0));
    let mut state = positive.state(1, 1, 2).unwrap();
    assert!(state.query(&array![[[f64::NAN]]]).unwrap().output.iter().all(|out| *out == 0.0));
}

/// A weight that has vanished beside a later, larger one takes its infinite value with it.
#[test]
fn infinite_values_vanish_with_their_weights() {
    let (mut k, mut v) = (Array4::<f64>::zeros((1, 1, 600, 1)), Array4::ones((1, 1, 600, 1)));
    (k[[0, 0, 599, 0]], v[[0, 0, 3, 0]]) = (2000.0, f64::INFINITY);
    let q = Array4::ones((1, 1, 1, 1));
    let out: Array4<f64> =
        ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    assert_eq!(out[[0, 0, 0, 0]], 1.0);
    k[[0, 0, 599, 0]] = 10.0;
    let out: Array4<f64> =
        ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    assert_eq!(out[[0, 0, 0, 0]], f64::INFINITY);
}

/// What no memory holds is an error.
#[test]
fn states_beyond_memory_are_refused() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    for (batch, heads, d_v) in [(1, 1 << 40, 4), (1 << 40, 1, 4), (1 << 20, 1 << 20, 4), (1, 1, 1 << 42)] {
        let refused = attention.state(batch, heads, d_v);
        assert!(matches!(refused, Err(Error::Memory { .. })), "{batch} {heads} {d_v}");
    }
}

/// An error names what was given and what it must be.
#[test]
fn shapes_that_do_not_fit_are_named() {
    let x = tokens::<f64>([1, 3, 5, 4], 1.0, 1);
    let q = tokens::<f64>([1, 8, 5, 4], 1.0, 1);
    let error = Heads::new(&q, &x, &x).unwrap_err().to_string();
    assert!(error.contains("8") && error.contains("multiple") && error.contains("3"), "{error}");
    let mut state = Attention::new(positive::<f64>(4, 8)).unwrap().state(1, 3, 4).unwrap();
    let error = state.query(&q.slice(s![.., .., 0, ..])).unwrap_err().to_string();
    assert!(error.contains("8") && error.contains("multiple") && error.contains("3"), "{error}");
}

/// Each sentence names the argument, what it was and what it must be.
#[test]
fn sentences_name_arguments() {
    let x = tokens::<f64>([1, 2, 5, 4], 1.0, 1);
    let of = |shape| tokens::<f64>(shape, 1.0, 1);
    let says = |error: Error, sentence: &str| assert_eq!(error.to_string(), sentence);
    let heads =
        |q: [usize; 4], k: [usize; 4], v: [usize; 4]| Heads::new(&of(q), &of(k), &of(v)).err().unwrap();
    says(heads([3, 2, 5, 4], [1, 2, 5, 4], [1, 2, 5, 4]), "the batch size of the keys is 1, but must be 3");
    says(
        heads([1, 2, 5, 4], [1, 0, 5, 4], [1, 0, 5, 4]),
        "the number of heads of the keys is 0, but must be at least 1",
    );
    says(
        heads([1, 8, 5, 4], [1, 3, 5, 4], [1, 3, 5, 4]),
        "the number of heads of the queries is 8, but must be a multiple of 3",
    );
    let map = positive::<f64>(4, 8);
    let attention = Attention::new(map.clone()).unwrap();
    let mut state = attention.state(1, 3, 4).unwrap();
    let token = of([1, 2, 1, 4]);
    let error = state.push(&token.slice(s![.., .., 0, ..]), &token.slice(s![.., .., 0, ..])).unwrap_err();
    says(error, "the number of heads of the keys is 2, but must be 3");
    let mut none = attention.state(1, 0, 4).unwrap();
    let error = none.query(&token.slice(s![.., .., 0, ..])).unwrap_err();
    says(error, "the number of heads of the keys is 0, but must be at least 1");
    let error = Attention::per_head(vec![map.clone(); 3]).unwrap().state(1, 2, 4).unwrap_err();
    says(error, "the number of heads of the keys, of which each has its own map, is 2, but must be 3");
    let offsets =
        |q: &[usize], k: &[usize]| Heads::new(&x, &x, &x).unwrap().with_sequences(q, k).err().unwrap();
    says(offsets(&[0, 5], &[0, 2, 5]), "the number of key offsets is 3, but must be 2");
    says(
        offsets(&[5], &[5]),
        "the number of query offsets is 1, but must be at least 2: the start of a sequence and its end",
    );
    says(offsets(&[0, 5], &[1, 5]), "the first key offset is 1, but must be 0");
    says(offsets(&[0, 4], &[0, 5]), "the last query offset is 4, but must be 5");
    says(
        offsets(&[0, 3, 2, 5], &[0, 1, 2, 5]),
        "row 2 of the query offsets is 2, but must be at least the one before",
    );
    let all = Heads::new(&x, &x, &x).unwrap();
    let row =
        |batch, head, row: usize| attention.bidirectional_weights(&all, batch, head, &[row]).unwrap_err();
    says(row(1, 0, 0), "the batch is 1, but must be less than the batch size");
    says(row(0, 2, 0), "the head is 2, but must be less than the number of heads of the queries");
    says(row(0, 0, 5), "a row of queries is 5, but must be less than the number of queries");
    says(
        attention.clone().with_scale(0.0).unwrap_err(),
        "the scale of the logits is 0, but must be positive and finite",
    );
    says(
        ExactAttention::new().with_cosine(-1.0).unwrap_err(),
        "the temperature of the cosines is -1, but must be positive and finite",
    );
    let error = attention.state(1 << 40, 1 << 10, 64).unwrap_err();
    assert!(error.to_string().ends_with("bytes of the state of causal attention"), "{error}");
}

#[test]
fn a_logit_of_minus_infinity_is_reported() {
    let q = Array4::from_elem((1, 1, 1, 1), 1e200f64);
    let (k, v) = (-&q, Array4::from_elem((1, 1, 1, 1), 1.0f64));
    let out = ExactAttention::new().bidirectional::<f64, _>(&Heads::new(&q, &k, &v).unwrap()).unwrap();
    assert_eq!((out.output[[0, 0, 0, 0]], out.non_positive), (0.0, vec![[0, 0, 0]]));
}

#[test]
fn outputs_of_zero_are_positive() {
    let attention = Attention::new(positive::<f64>(2, 6)).unwrap();
    // A value so small that its share of the sum vanishes.
    let x = Array4::zeros((1, 1, 5, 2));
    let v = Array4::from_shape_fn((1, 1, 5, 1), |(_, _, j, _)| if j == 0 { -5e-324 } else { 0.0 });
    let heads = Heads::new(&x, &x, &v).unwrap();
    for out in [attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap()] {
        assert!(out.output.iter().all(|v| *v != 0.0 || v.to_bits() == 0), "{}", out.output);
    }
}

#[cfg(feature = "serde")]
#[test]
fn states_of_a_map_for_each_head_are_read() {
    let attention = Attention::per_head(vec![positive::<f64>(6, 20), positive(6, 33)]).unwrap();
    let x = tokens::<f64>([1, 2, 9, 6], 0.7, 1);
    let mut state = attention.state(1, 2, 6).unwrap();
    read_tokens(&mut state, &x, &x);
    let mut read: CausalState<f64> = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
    let query: Array3<f64> = x.index_axis(Axis(2), 0).to_owned();
    assert_eq!(read.query(&query).unwrap(), state.query(&query).unwrap());
}

/// Queries of norm 50 that point away from all keys, whose features differ too much for products in `f32`.
#[test]
fn queries_against_all_keys() {
    let (d, n) = (16, 40);
    let u = tokens::<f64>([1, 1, 1, d], 1.0, 9);
    let near = |seed, size: f64| {
        let noise = tokens::<f64>([1, 1, n, d], 0.3, seed);
        let entry = |(_, _, i, k)| (25.0 * size * u[[0, 0, 0, k]] + noise[[0, 0, i, k]]) as f32;
        Array4::from_shape_fn((1, 1, n, d), entry)
    };
    let (q, k, v) = (near(1, -1.0), near(2, 1.0), tokens::<f32>([1, 1, n, 3], 1.0, 3));
    let [wq, wk, wv] = [&q, &k, &v].map(|x| x.mapv(f64::from));
    let single = Attention::new(positive::<f32>(d, 48)).unwrap();
    let double = Attention::new(positive::<f64>(d, 48)).unwrap();
    let found = single.bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap();
    let expected = double.bidirectional(&Heads::new(&wq, &wk, &wv).unwrap()).unwrap();
    assert!(found.non_positive.is_empty() && expected.non_positive.is_empty());
    assert!(found.output.iter().zip(&expected.output).all(|(f, e)| (f64::from(*f) - e).abs() < 2e-3));
}
