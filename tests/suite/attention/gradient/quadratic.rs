//! Gradients of linear attention against the loop over pairs: chunks, segments, maps, masks and groups of heads.

use crate::attention::gradient::{assert_near, backward, by_features, largest, naive, of_head};
use crate::attention::{positive, ways, widened};
use crate::common::{frequencies, tokens};
use ndarray::{Array2, Array4, s};
use random_features::apply::attention::{Attention, Heads};
use random_features::compose::{Bases, Centres, Clustered, Conditioning, Hybrid};
use random_features::data::Clustering;
use random_features::frequency::{Counts, Independent, Orthogonal};
use random_features::kernel::{Activation, Softmax};
use random_features::{
    EluPlusOne, Gerf, Hyperbolic, Map, Nonlinear, Poisson, Positive, Real, Trigonometric, rng,
};

/// Single heads, against the loop in `f64`: tolerances of sums, and of what is divided by a normaliser.
fn agrees<T: Real>(
    name: &str,
    attention: &Attention<T>,
    map: &Map<f64>,
    [n, l]: [usize; 2],
    size: f64,
    tolerances: [f64; 2],
) {
    let d = map.dim();
    let (q, k) = (tokens::<T>([1, 1, n, d], size, 1), tokens::<T>([1, 1, l, d], size, 2));
    let (v, g) = (tokens::<T>([1, 1, l, 5], 1.0, 3), tokens::<T>([1, 1, n, 5], 1.0, 4));
    let wide = [&q, &k, &v, &g].map(|x| widened(x, 0, 0));
    let heads = Heads::new(&q, &k, &v).unwrap();
    for (normalised, tolerance) in [false, true].into_iter().zip(tolerances) {
        let attention = ways::normalised(attention.clone(), normalised);
        for causal in [false, true].into_iter().filter(|causal| !causal || n == l) {
            let got = of_head(&backward(&attention, &heads, &g, causal), 0, 0);
            let expected = naive(map, wide.each_ref().map(|x| x.view()), normalised, |i, j| {
                by_features(!causal || j <= i)
            });
            let name = format!("{name}, {n} and {l} tokens, normalised {normalised}, causal {causal}");
            assert_near(&name, &got, &expected, tolerance);
        }
    }
}

#[test]
fn chunks_and_segments_are_the_quadratic_loop() {
    let (single, double) = (positive::<f32>(6, 24), positive::<f64>(6, 24));
    for lengths in [[1, 1], [63, 63], [64, 64], [65, 65], [1027, 1027], [3, 100], [130, 7], [0, 5], [5, 0]] {
        agrees("f64", &Attention::new(double.clone()).unwrap(), &double, lengths, USUAL, [1e-11; 2]);
        agrees("f32", &Attention::new(single.clone()).unwrap(), &double, lengths, USUAL, [1e-4; 2]);
    }
}

/// Norms of some 1.5, and of some 5, of six coordinates.
const USUAL: f64 = 0.6;

const LARGE: f64 = 2.0;

/// In `f32` sums to 1e-4; outputs too where features are never negative.
const NEVER_NEGATIVE: [f64; 2] = [1e-4; 2];

/// Where normalisers may be near 0, relative errors of outputs are of any size: that they are finite is what counts.
const SIGNED: [f64; 2] = [1e-4, 4.0];

macro_rules! agree {
    ($name:literal, $tolerance:expr, $single:expr, $make:expr) => {{
        let (single, double): (Map<f32>, Map<f64>) = ($make.unwrap(), $make.unwrap());
        let attention = Attention::signed(vec![double.clone()]).unwrap();
        agrees($name, &attention, &double, [80, 80], USUAL, [$tolerance; 2]);
        let attention = Attention::signed(vec![single]).unwrap();
        agrees($name, &attention, &double, [80, 80], USUAL, $single);
        if $single == NEVER_NEGATIVE {
            agrees($name, &attention, &double, [80, 80], LARGE, $single);
        }
    }};
}

#[test]
fn every_map_is_the_quadratic_loop() {
    let (d, m) = (6, 40);
    let omega = || frequencies(d, m, &Orthogonal, 3);
    let counts = || Counts::poisson(d, m, 1.5, rng(4).next_u64()).unwrap();
    agree!("positive", 1e-12, NEVER_NEGATIVE, Positive.softmax(omega()));
    agree!("hyperbolic", 1e-12, NEVER_NEGATIVE, Hyperbolic.softmax(omega()));
    agree!("OPRF", 1e-12, NEVER_NEGATIVE, Gerf::optimal(d, 2.0).unwrap().softmax(omega()));
    agree!("ELU + 1", 1e-12, NEVER_NEGATIVE, EluPlusOne.build(d, 1.0));
    agree!(
        "ReLU",
        1e-12,
        NEVER_NEGATIVE,
        Nonlinear::new(Activation::Relu).with_offset(1e-3).unwrap().build(omega(), 1.0)
    );
    agree!("exp", 1e-12, NEVER_NEGATIVE, Nonlinear::new(Activation::Exp).build(omega(), 1.0));
    agree!("Poisson", 1e-8, SIGNED, Poisson::default().softmax(counts()));
    agree!("trigonometric", 1e-8, SIGNED, Trigonometric.softmax(omega()));
    let shape = |(k, l)| if k == l { 0.8 + 0.1 * k as f64 } else { 0.05 * (k as f64 - l as f64) };
    let shape = Conditioning::new(Array2::from_shape_fn((d, d), shape)).unwrap();
    let shape = shape.shifted(vec![0.1; d], vec![-0.2; d]).unwrap();
    agree!(
        "shaped",
        1e-11,
        NEVER_NEGATIVE,
        Positive.softmax(omega()).and_then(|map: Map<_>| map.conditioned(&shape))
    );
    let centres = Array2::from_shape_fn((2, d), |(c, k)| if (c + k) % 2 == 0 { 0.4 } else { -0.4 });
    let clusters = Clustering::new(centres).unwrap();
    let centres = || Centres::new(&clusters, &clusters);
    agree!("clustered", 1e-8, SIGNED, Clustered::by_centres(centres(), omega(), Softmax::default()));
    agree!(
        "hybrid",
        1e-8,
        SIGNED,
        Hybrid::angular(Bases::shared(omega()), frequencies(d, 8, &Independent, 6))
    );
}

/// Heads in groups, of masked sequences that are shorter and longer than chunks and segments.
fn sequences_agree<T: Real>(attention: &Attention<T>, map: &Map<f64>, tolerance: f64) {
    let (offsets, l) = ([0, 70, 70, 71, 1130, 1280], 1280);
    let [q, g] = [1, 4].map(|seed| tokens::<T>([1, 4, l, 6], 0.6, seed));
    let [k, v] = [2, 3].map(|seed| tokens::<T>([1, 2, l, 6], 0.6, seed));
    let mask = Array2::from_shape_fn((1, l), |(_, j)| j % 3 != 0 && !(100..240).contains(&j));
    let heads =
        Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap().with_sequences(&offsets, &offsets).unwrap();
    for causal in [false, true] {
        let all = backward(attention, &heads, &g, causal);
        for h in [0, 1] {
            for (sequence, ends) in offsets.windows(2).enumerate() {
                let rows =
                    |x: &Array4<T>, h: usize| x.slice(s![0, h, ends[0]..ends[1], ..]).mapv(|v| v.widen());
                let pair = |i: usize, j: usize| by_features(mask[[0, ends[0] + j]] && (!causal || j <= i));
                let (key, value) = (rows(&k, h), rows(&v, h));
                let [mut of_keys, mut of_values] = [&key, &value].map(|x| Array2::<f64>::zeros(x.dim()));
                for query in [2 * h, 2 * h + 1] {
                    let (x, up) = (rows(&q, query), rows(&g, query));
                    let [of_query, keys, values] =
                        naive(map, [x.view(), key.view(), value.view(), up.view()], true, pair);
                    of_keys += &keys;
                    of_values += &values;
                    let error = largest(&(rows(&all.queries, query) - &of_query));
                    assert!(error <= tolerance, "sequence {sequence}, query {query}: {error:e}");
                }
                let error = [rows(&all.keys, h) - of_keys, rows(&all.values, h) - of_values];
                let error = error.iter().map(largest).fold(0.0, f64::max);
                assert!(error <= tolerance, "sequence {sequence}, head {h}: {error:e}, causal {causal}");
            }
        }
    }
}

#[test]
fn masked_sequences_of_groups_are_the_quadratic_loop() {
    let map = positive::<f64>(6, 16);
    sequences_agree(&Attention::new(map.clone()).unwrap(), &map, 1e-11);
    sequences_agree(&Attention::new(positive::<f32>(6, 16)).unwrap(), &map, 1e-4);
}

/// Each head of keys has its own map, and a batch has many of them.
#[test]
fn heads_have_their_own_maps() {
    let maps = [positive::<f64>(4, 12), Hyperbolic.softmax(frequencies(4, 6, &Independent, 2)).unwrap()];
    let [q, g] = [1, 4].map(|seed| tokens::<f64>([2, 4, 20, 4], 0.8, seed));
    let [k, v] = [2, 3].map(|seed| tokens::<f64>([2, 2, 20, 4], 0.8, seed));
    let attention = Attention::per_head(maps.to_vec()).unwrap();
    let all = backward(&attention, &Heads::new(&q, &k, &v).unwrap(), &g, true);
    for (b, h) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut expected: [Array2<f64>; 2] = [Array2::zeros((20, 4)), Array2::zeros((20, 4))];
        for of_group in 0..2 {
            let head = |x: &Array4<f64>, h: usize| x.slice(s![b, h, .., ..]).to_owned();
            let (query, up) = (head(&q, 2 * h + of_group), head(&g, 2 * h + of_group));
            let (key, value) = (head(&k, h), head(&v, h));
            let one = naive(&maps[h], [query.view(), key.view(), value.view(), up.view()], true, |i, j| {
                by_features(j <= i)
            });
            let own = all.queries.slice(s![b, 2 * h + of_group, .., ..]);
            assert!(largest(&(&own - &one[0])) < 1e-12);
            expected[0] += &one[1];
            expected[1] += &one[2];
        }
        assert!(largest(&(&all.keys.slice(s![b, h, .., ..]) - &expected[0])) < 1e-12);
        assert!(largest(&(&all.values.slice(s![b, h, .., ..]) - &expected[1])) < 1e-12);
    }
}
