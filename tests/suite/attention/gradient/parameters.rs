//! Gradients of attention with respect to lengthscales, frequencies and coefficients of its maps, against differences.

use crate::common::tokens;
use crate::threads::on_threads;
use ndarray::{Array2, Array4};
use num_complex::Complex64;
use random_features::apply::attention::{Attention, Gradients, Heads};
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Frequencies, Independent, Orthogonal};
use random_features::kernel::{Activation, Softmax};
use random_features::map::ParameterGradients;
use random_features::theory::gerf::GerfSign;
use random_features::{
    DenseExponential, Error, Gerf, Hyperbolic, Map, Nonlinear, Positive, Real, Trigonometric,
};

/// What a map is made of: frequencies, lengthscales and coefficients.
#[derive(Clone)]
struct Parts {
    omega: Array2<f64>,
    lengthscales: Vec<f64>,
    coefficients: Vec<f64>,
}

type Make = fn(&Parts) -> Map<f64>;

fn omega(parts: &Parts) -> Frequencies {
    Frequencies::from_rows(parts.omega.clone()).unwrap()
}

fn softmax(parts: &Parts) -> Softmax {
    match parts.lengthscales[..] {
        [one] => Softmax::new(one).unwrap(),
        _ => Softmax::new(parts.lengthscales.clone()).unwrap(),
    }
}

fn positive(parts: &Parts) -> Map<f64> {
    Positive.build(omega(parts), softmax(parts)).unwrap()
}

fn hyperbolic(parts: &Parts) -> Map<f64> {
    Hyperbolic.build(omega(parts), softmax(parts)).unwrap()
}

fn oprf(parts: &Parts) -> Map<f64> {
    Gerf::new(parts.coefficients[0], GerfSign::Plus).unwrap().build(omega(parts), softmax(parts)).unwrap()
}

fn gerf(parts: &Parts) -> Map<f64> {
    let a = Complex64::new(parts.coefficients[0], parts.coefficients[1]);
    Gerf::new(a, GerfSign::Minus).unwrap().build(omega(parts), softmax(parts)).unwrap()
}

fn dense(parts: &Parts) -> Map<f64> {
    DenseExponential::new(parts.coefficients.clone()).unwrap().build(omega(parts), softmax(parts)).unwrap()
}

fn gelu(parts: &Parts) -> Map<f64> {
    let map = Nonlinear::new(Activation::Gelu).with_offset(0.5).unwrap();
    map.build(omega(parts), parts.lengthscales.clone()).unwrap()
}

fn trigonometric(parts: &Parts) -> Map<f64> {
    Trigonometric.build(omega(parts), softmax(parts)).unwrap()
}

fn rows(seed: u64) -> Array2<f64> {
    Orthogonal.draw(3, 4, seed).unwrap().rows().into_owned()
}

/// What attention is given, and the gradient of the loss with respect to its output.
struct Given<'a> {
    heads: Heads<'a, f64>,
    g: &'a Array4<f64>,
    causal: bool,
}

/// Compares all gradients of each map with differences. `options` makes attention of maps.
#[track_caller]
fn agree(
    name: &str,
    parts: &[Parts],
    make: Make,
    options: impl Fn(Attention<f64>) -> Attention<f64>,
    given: &Given<'_>,
) {
    let of = |parts: &[Parts]| options(Attention::signed(parts.iter().map(make).collect()).unwrap());
    let loss = |parts: &[Parts]| (output(&of(parts), &given.heads, given.causal) * given.g).sum();
    let (_, all) = backward(&of(parts), &given.heads, given.g, given.causal);
    assert_eq!(all.len(), parts.len());
    for (map, own) in all.iter().enumerate() {
        let check = |what: String, own: f64, size: f64, part: &dyn Fn(&mut Parts) -> &mut f64| {
            let moved = |by: f64| {
                let mut parts = parts.to_vec();
                *part(&mut parts[map]) += by;
                loss(&parts)
            };
            let h = 2e-4;
            let slope = (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h))) / (12.0 * h);
            let tolerance = 1e-7 * size.max(1e-2);
            assert!((own - slope).abs() <= tolerance, "{name}, map {map}, {what}: {own} is {slope}");
        };
        let largest = |x: &mut dyn Iterator<Item = &f64>| x.fold(0.0, |a: f64, v| a.max(v.abs()));
        let size = largest(&mut own.lengthscales.iter());
        match parts[map].lengthscales.len() {
            1 => check("lengthscale".into(), own.lengthscales.sum(), size, &|p| &mut p.lengthscales[0]),
            _ => (own.lengthscales.iter().enumerate()).for_each(|(k, value)| {
                check(format!("lengthscale {k}"), *value, size, &|p| &mut p.lengthscales[k]);
            }),
        }
        let size = largest(&mut own.frequencies.iter());
        for (at, value) in own.frequencies.indexed_iter() {
            check(format!("frequency {at:?}"), *value, size, &|p| &mut p.omega[at]);
        }
        assert_eq!(own.coefficients.len(), parts[map].coefficients.len());
        for (k, value) in own.coefficients.iter().enumerate() {
            check(format!("coefficient {k}"), *value, value.abs(), &|p| &mut p.coefficients[k]);
        }
    }
}

/// Tokens of usual size, one of them 0.
fn inputs(heads_of_keys: usize) -> [Array4<f64>; 4] {
    let mut all = [
        tokens::<f64>([1, 2, 7, 3], 0.9, 1),
        tokens::<f64>([1, heads_of_keys, 7, 3], 0.9, 2),
        tokens::<f64>([1, heads_of_keys, 7, 2], 1.0, 3),
        tokens::<f64>([1, 2, 7, 2], 1.0, 4),
    ];
    all[0].slice_mut(ndarray::s![0, 1, 2, ..]).fill(0.0);
    all
}

fn backward<T: Real>(
    attention: &Attention<T>,
    heads: &Heads<'_, T>,
    g: &Array4<T>,
    causal: bool,
) -> (Gradients<T>, Vec<ParameterGradients>) {
    match causal {
        true => attention.causal_backward_with_parameters(heads, g),
        false => attention.bidirectional_backward_with_parameters(heads, g),
    }
    .unwrap()
}

fn output(attention: &Attention<f64>, heads: &Heads<'_, f64>, causal: bool) -> Array4<f64> {
    let out = if causal { attention.causal(heads) } else { attention.bidirectional(heads) };
    out.unwrap().output
}

/// Masked, grouped and ragged heads.
fn with_cases(test: impl Fn(&str, &Given<'_>)) {
    for case in 0..16 {
        let [causal, masked, grouped, ragged] = std::array::from_fn(|bit| case >> bit & 1 == 1);
        let [q, k, v, g] = inputs(if grouped { 1 } else { 2 });
        let mask = Array2::from_shape_fn((1, 7), |(_, j)| j != 0 && j != 3);
        let offsets = if causal { [[0, 2, 2, 7], [0, 2, 2, 7]] } else { [[0, 2, 2, 7], [0, 0, 2, 7]] };
        let heads = Heads::new(&q, &k, &v).unwrap();
        let heads = if masked { heads.with_mask(&mask).unwrap() } else { heads };
        let heads = if ragged { heads.with_sequences(&offsets[0], &offsets[1]).unwrap() } else { heads };
        let name = format!("causal {causal}, masked {masked}, grouped {grouped}, ragged {ragged}");
        test(&name, &Given { heads, g: &g, causal });
    }
}

#[test]
fn gradients_of_parameters_are_slopes() {
    let parts = |seed: u64, coefficients: &[f64]| Parts {
        omega: rows(seed),
        lengthscales: vec![0.9, 1.3, 1.1],
        coefficients: coefficients.to_vec(),
    };
    let sums = |a: Attention<f64>| a.without_normalisers();
    with_cases(|name, given| {
        agree(&format!("positive, {name}"), &[parts(1, &[])], positive, |a| a, given);
        agree(&format!("OPRF, {name}"), &[parts(1, &[-0.2])], oprf, |a| a.with_cosine(0.7).unwrap(), given);
        agree(&format!("dense, {name}"), &[parts(1, &[-0.4, 0.05, -0.1])], dense, |a| a, given);
        agree(&format!("GERF, {name}"), &[parts(2, &[-0.2, 0.15])], gerf, sums, given);
        agree(&format!("GELU, {name}"), &[parts(2, &[])], gelu, sums, given);
    });
    let [q, k, v, g] = inputs(2);
    let given = Given { heads: Heads::new(&q, &k, &v).unwrap(), g: &g, causal: true };
    // A map for each head.
    agree("hyperbolic", &[parts(3, &[]), parts(4, &[])], hyperbolic, |a| a, &given);
    agree("trigonometric", &[parts(3, &[]), parts(4, &[])], trigonometric, sums, &given);
}

/// Pairs with exact weights have a part in lengthscales, and none in what makes features.
#[test]
fn exact_pairs_have_their_part() {
    let parts = |seed| Parts { omega: rows(seed), lengthscales: vec![1.2], coefficients: Vec::new() };
    with_cases(|name, given| {
        for (before, after) in [(0, 0), (2, 0), (2, 1), (usize::MAX, usize::MAX)] {
            for cosine in [false, true] {
                let options = |attention: Attention<f64>| {
                    let attention = attention.with_window(before, after).unwrap();
                    let attention = attention.with_keys_exact(&[4, 1]).unwrap();
                    if cosine { attention.with_cosine(0.6).unwrap() } else { attention }
                };
                let name = format!("window {before} {after}, cosine {cosine}, {name}");
                agree(&name, &[parts(1)], positive, options, given);
            }
        }
        if !given.causal {
            agree(name, &[parts(5)], hyperbolic, |a| a.with_heaviest_keys_exact(2).unwrap(), given);
        }
    });
}

/// Long sequences, in several chunks and segments, at norms for which rows are computed from logarithms.
#[test]
fn threads_chunks_and_precision_change_nothing() {
    let shape = [1, 2, 1300, 3];
    for size in [0.7, 8.0] {
        let [q, k, v, g] =
            [0, 1, 2, 3].map(|seed| tokens::<f64>(shape, if seed < 2 { size } else { 1.0 }, seed));
        let map = |lengthscale: f64| {
            let omega = Independent.draw(3, 6, 3).unwrap();
            Positive.build::<f64>(omega, Softmax::new(lengthscale).unwrap()).unwrap()
        };
        for causal in [false, true] {
            let of = |lengthscale: f64| Attention::new(map(lengthscale)).unwrap().with_window(3, 0).unwrap();
            let heads = Heads::new(&q, &k, &v).unwrap();
            let all = |threads| on_threads(threads, || backward(&of(1.1), &heads, &g, causal));
            let (one, three) = (all(1), all(3));
            assert_eq!(one, three);
            let plain = if causal {
                of(1.1).causal_backward(&heads, &g)
            } else {
                of(1.1).bidirectional_backward(&heads, &g)
            };
            assert_eq!(one.0, plain.unwrap());
            let loss = |lengthscale: f64| (output(&of(lengthscale), &heads, causal) * &g).sum();
            let h = 1e-4;
            let slope = (8.0 * (loss(1.1 + h) - loss(1.1 - h)) - (loss(1.1 + 2.0 * h) - loss(1.1 - 2.0 * h)))
                / (12.0 * h);
            let own = one.1[0].lengthscales.sum();
            assert!((own - slope).abs() <= 1e-7 * slope.abs().max(1.0), "{size}, {causal}: {own} is {slope}");
        }
    }
}

/// Also where features differ so much that keys and queries are read by logarithms.
#[test]
fn tokens_far_away_have_their_part() {
    let [mut q, mut k, v, g] = inputs(2);
    q.slice_mut(ndarray::s![.., .., 3, 1]).fill(-90.0);
    k.slice_mut(ndarray::s![.., .., 1, 0]).fill(300.0);
    let parts = |coefficients: &[f64]| Parts {
        omega: 1.5 * rows(1),
        lengthscales: vec![0.9, 1.3, 1.1],
        coefficients: coefficients.to_vec(),
    };
    for causal in [false, true] {
        let given = Given { heads: Heads::new(&q, &k, &v).unwrap(), g: &g, causal };
        let name = |what: &str| format!("{what}, causal {causal}");
        agree(&name("positive"), &[parts(&[])], positive, |a| a, &given);
        agree(&name("hyperbolic"), &[parts(&[])], hyperbolic, |a| a, &given);
        agree(&name("dense"), &[parts(&[-0.4, 0.05, -0.1])], dense, |a| a, &given);
    }
}

/// In `f32` within its precision.
#[test]
fn single_precision_is_near_double() {
    let [q, k, v, g] = [0, 1, 2, 3].map(|seed| tokens::<f64>([1, 2, 150, 3], 1.2, seed));
    fn attention<T: Real>() -> Attention<T> {
        let softmax = Softmax::new(vec![0.9, 1.3, 1.1]).unwrap();
        let map = Gerf::new(-0.1, GerfSign::Plus).unwrap().build(Orthogonal.draw(3, 8, 3).unwrap(), softmax);
        Attention::new(map.unwrap()).unwrap()
    }
    let of = |x: &Array4<f64>| x.mapv(|v| v as f32);
    let [x, y, z, up] = [&q, &k, &v, &g].map(of);
    for causal in [false, true] {
        let (_, wide) = backward(&attention(), &Heads::new(&q, &k, &v).unwrap(), &g, causal);
        let (_, narrow) = backward(&attention(), &Heads::new(&x, &y, &z).unwrap(), &up, causal);
        let all = |own: &ParameterGradients| -> Vec<f64> {
            own.lengthscales.iter().chain(&own.frequencies).chain(&own.coefficients).copied().collect()
        };
        let (wide, narrow) = (all(&wide[0]), all(&narrow[0]));
        let size = wide.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
        assert!(wide.iter().zip(&narrow).all(|(a, b)| (a - b).abs() <= 1e-4 * size), "{wide:?} {narrow:?}");
    }
}

/// What has no part is nowhere, be it no number.
#[test]
fn masked_keys_have_no_part() {
    let [q, mut k, v, g] = inputs(2);
    let mask = Array2::from_shape_fn((1, 7), |(_, j)| j != 3);
    let attention = Attention::new(positive(&Parts {
        omega: rows(1),
        lengthscales: vec![1.0],
        coefficients: Vec::new(),
    }))
    .unwrap();
    let of = |k: &Array4<f64>| {
        let heads = Heads::new(&q, k, &v).unwrap().with_mask(&mask).unwrap();
        backward(&attention, &heads, &g, false).1
    };
    let before = of(&k);
    k.slice_mut(ndarray::s![.., .., 3, ..]).fill(f64::NAN);
    assert_eq!(of(&k), before);
    k.slice_mut(ndarray::s![.., .., 2, ..]).fill(f64::NAN);
    assert!(of(&k)[0].frequencies.iter().all(|v| v.is_nan()));
    let none = Array2::from_elem((1, 7), false);
    let heads = Heads::new(&q, &q, &v).unwrap().with_mask(&none).unwrap();
    let zero = &backward(&attention, &heads, &g, false).1[0];
    assert!(zero.frequencies.iter().chain(&zero.lengthscales).all(|v| *v == 0.0));
}

#[test]
fn maps_without_gradients_of_parameters_are_refused() {
    let bases = Bases::shared(Orthogonal.draw(3, 4, 1).unwrap());
    let hybrid: Map<f64> = Hybrid::angular(bases, Orthogonal.draw(3, 2, 2).unwrap()).unwrap();
    let [q, k, v, g] = inputs(2);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let attention = Attention::signed(vec![hybrid]).unwrap();
    assert!(attention.bidirectional_backward(&heads, &g).is_ok());
    let refused = attention.bidirectional_backward_with_parameters(&heads, &g);
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
}
