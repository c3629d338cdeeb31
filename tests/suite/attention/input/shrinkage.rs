//! Outputs that are drawn towards the mean of the values, and the shares that are best.

use crate::attention::{head, positive, relu, signs, ways};
use crate::common::tokens;
use ndarray::{Array2, Array4, array, s};
use rand_distr::{Distribution, StandardNormal};
use random_features::apply::attention::{Attention, ErrorReport, ExactAttention, Heads, TokenSample};
use random_features::compose::Conditioning;
use random_features::frequency::Independent;
use random_features::kernel::Softmax;
use random_features::recipe::Draw;
use random_features::{Error, Positive, Real, rng};

/// Normal numbers.
fn normal(shape: [usize; 4], size: f64, seed: u64) -> Array4<f64> {
    let mut rng = rng(seed);
    Array4::from_shape_simple_fn(shape, || {
        let v: f64 = StandardNormal.sample(&mut rng);
        size * v
    })
}

fn attend<T: Real>(attention: &Attention<T>, heads: &Heads<'_, T>, causal: bool) -> Array4<T> {
    if causal { attention.causal(heads) } else { attention.bidirectional(heads) }.unwrap().output
}

/// The mean of the values in each row of outputs, by loops: of the keys that are not masked, in the query's own sequence, and causally
/// up to its own place.
fn means(
    v: &Array4<f64>,
    [heads, rows]: [usize; 2],
    mask: impl Fn(usize, usize) -> bool,
    sees: impl Fn(usize, usize) -> bool,
) -> Array4<f64> {
    let (batch, of_keys, l, d_v) = v.dim();
    Array4::from_shape_fn((batch, heads, rows, d_v), |(b, h, i, c)| {
        let seen: Vec<usize> = (0..l).filter(|j| mask(b, *j) && sees(i, *j)).collect();
        let sum: f64 = seen.iter().map(|j| v[[b, h / (heads / of_keys), *j, c]]).sum();
        if seen.is_empty() { 0.0 } else { sum / seen.len() as f64 }
    })
}

/// (1 − α) out + α mean, with the share of each head of keys, whatever else attention does; in `f32` to its rounding.
#[test]
fn shrunk_outputs_are_their_definition() {
    let [q, k, v] = [(1, 4, 6), (2, 2, 6), (3, 2, 3)]
        .map(|(seed, heads, d)| tokens::<f64>([2, heads, 90, d], 0.7, seed) + if d == 3 { 0.5 } else { 0.0 });
    let single = [&q, &k, &v].map(|x| x.mapv(|v| v as f32));
    let mask = Array2::from_shape_fn((2, 90), |(b, j)| (j + 2 * b) % 4 != 1);
    let offsets = [0, 40, 40, 90];
    for (case, shares) in [vec![0.3], vec![0.25, 1.0], vec![0.0, 0.6]].into_iter().enumerate() {
        for (causal, masked, ragged) in (0..8).map(|case| (case & 1 == 1, case & 2 == 2, case & 4 == 4)) {
            let one = || Attention::new(positive::<f64>(6, 20)).unwrap();
            let attention = match case {
                0 => one(),
                1 => Attention::per_head(vec![positive(6, 20), positive(6, 33)]).unwrap(),
                _ => one().with_window(5, 2).unwrap().with_keys_exact(&[0, 7]).unwrap(),
            };
            let shrunk = attention.clone().with_shrinkage(&shares).unwrap();
            let heads = Heads::new(&q, &k, &v).unwrap();
            let heads = if masked { heads.with_mask(&mask).unwrap() } else { heads };
            let heads = if ragged { heads.with_sequences(&offsets, &offsets).unwrap() } else { heads };
            let sequence = |i: usize| if ragged && i >= 40 { 1 } else { 0 };
            let means = means(
                &v,
                [4, 90],
                |b, j| !masked || mask[[b, j]],
                |i, j| sequence(i) == sequence(j) && (!causal || j <= i),
            );
            let (plain, own) = (attend(&attention, &heads, causal), attend(&shrunk, &heads, causal));
            let share = |h: usize| shares[(h / 2) % shares.len()];
            let expected = Array4::from_shape_fn(own.dim(), |(b, h, i, c)| {
                (1.0 - share(h)) * plain[[b, h, i, c]] + share(h) * means[[b, h, i, c]]
            });
            let name = format!("shares {shares:?}, causal {causal}, masked {masked}, ragged {ragged}");
            assert!((&own - &expected).iter().all(|e| e.abs() < 1e-13), "{name}");
            for h in (0..4).filter(|h| share(*h) == 0.0) {
                assert_eq!(head(&own, 0, h), head(&plain, 0, h), "{name}");
            }
            if case == 0 {
                let [q, k, v] = &single;
                let heads = Heads::new(q, k, v).unwrap();
                let heads = if masked { heads.with_mask(&mask).unwrap() } else { heads };
                let heads = if ragged { heads.with_sequences(&offsets, &offsets).unwrap() } else { heads };
                let map = positive::<f32>(6, 20);
                let own = Attention::new(map).unwrap().with_shrinkage(&shares).unwrap();
                let own = attend(&own, &heads, causal);
                assert!((own.mapv(f64::from) - &expected).iter().all(|e| e.abs() < 1e-5), "{name}");
            }
        }
    }
}

/// Rows of the matrix of weights times the values are the outputs, and sum to 1.
#[test]
fn weights_are_drawn_towards_equal_ones() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap().with_shrinkage(&[0.2, 0.7]).unwrap();
    let (q, k, v) =
        (tokens::<f64>([1, 4, 50, 6], 0.7, 1), tokens([1, 2, 50, 6], 0.7, 2), tokens([1, 2, 50, 3], 1.0, 3));
    let mask = Array2::from_shape_fn((1, 50), |(_, j)| j > 3 && j % 4 != 1);
    let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    for causal in [false, true] {
        let out = attend(&attention, &heads, causal);
        for own in 0..4 {
            let weights = ways::weights(&attention, &heads, ([0, own], &[0, 3, 4, 49]), causal).unwrap();
            for (row, weights) in [0, 3, 4, 49].into_iter().zip(weights.rows()) {
                let expected = weights.dot(&head(&v, 0, own / 2));
                assert!((&head(&out, 0, own).row(row) - &expected).iter().all(|e| e.abs() < 1e-12));
                let sum = if causal && row < 4 { 0.0 } else { 1.0 };
                assert!((weights.sum() - sum).abs() < 1e-12, "{row}");
            }
        }
    }
}

/// A query whose normaliser is not positive gets the mean: in outputs, weights, gradients and token by token. Without a share it gets 0.
#[test]
fn queries_without_an_output_get_the_mean() {
    // Features are the positive and the negative part: queries of another sign than all keys have no weight.
    let attention = Attention::new(signs::<f64>()).unwrap();
    let q = Array4::from_shape_vec((1, 1, 3, 1), vec![1.0, -1.0, 1.0]).unwrap();
    let k = Array4::from_shape_vec((1, 1, 3, 1), vec![1.0, 2.0, 1.0]).unwrap();
    let v = Array4::from_shape_vec((1, 1, 3, 2), vec![1.0, 0.0, 3.0, 2.0, 5.0, -8.0]).unwrap();
    let heads = Heads::new(&q, &k, &v).unwrap();
    let shrunk = attention.clone().with_shrinkage(&[0.25]).unwrap();
    let row = |attended: &Array4<f64>| attended.slice(s![0, 0, 1, ..]).to_owned();
    for (causal, mean) in [(false, array![3.0, -2.0]), (true, array![2.0, 1.0])] {
        let run = |attention: &Attention<f64>| match causal {
            true => attention.causal(&heads).unwrap(),
            false => attention.bidirectional(&heads).unwrap(),
        };
        let (plain, own) = (run(&attention), run(&shrunk));
        assert_eq!((row(&plain.output), row(&own.output)), (array![0.0, 0.0], mean.clone()));
        assert_eq!((&plain.non_positive, &own.non_positive), (&vec![[0, 0, 1]], &vec![[0, 0, 1]]));
        let weights = ways::weights(&shrunk, &heads, ([0, 0], &[1]), causal).unwrap();
        assert!((weights.dot(&head(&v, 0, 0)).row(0).to_owned() - &mean).iter().all(|e| e.abs() < 1e-14));
        // Its gradient passes to the values alone.
        let mut g = Array4::zeros((1, 1, 3, 2));
        g.slice_mut(s![0, 0, 1, ..]).assign(&array![6.0, 12.0]);
        let gradients = match causal {
            true => shrunk.causal_backward(&heads, &g),
            false => shrunk.bidirectional_backward(&heads, &g),
        }
        .unwrap();
        let of_value = if causal { array![3.0, 6.0] } else { array![2.0, 4.0] };
        for j in 0..3 {
            let seen = if causal && j == 2 { 0.0 } else { 1.0 };
            let own = gradients.values.slice(s![0, 0, j, ..]).to_owned();
            assert!((own - &of_value * seen).iter().all(|e| e.abs() < 1e-14), "{j}");
        }
        assert!(gradients.queries.iter().chain(&gradients.keys).all(|g| *g == 0.0));
    }
    let mut state = shrunk.state(1, 1, 2).unwrap();
    let token = |x: &Array4<f64>, i: usize| x.slice(s![.., .., i, ..]).to_owned();
    state.step(&token(&q, 0), &token(&k, 0), &token(&v, 0)).unwrap();
    let out = state.step(&token(&q, 1), &token(&k, 1), &token(&v, 1)).unwrap();
    assert_eq!(
        (out.output.slice(s![0, 0, ..]).to_owned(), out.non_positive),
        (array![2.0, 1.0], vec![[0, 0, 0]])
    );
}

/// The least-squares shares are those of a plain loop, and no other share errs less on the tokens that they are for.
#[test]
fn shares_are_a_least_squares_fit() {
    let [q, k] = [1, 2].map(|seed| normal([2, 4, 60, 6], 1.2, seed));
    let v = normal([2, 2, 60, 3], 1.0, 3) + 0.4;
    let k = k.slice(s![.., ..2, .., ..]).to_owned();
    let heads = Heads::new(&q, &k, &v).unwrap();
    let attention = Attention::new(positive::<f64>(6, 12)).unwrap();
    for causal in [false, true] {
        let exact: Array4<f64> = if causal {
            ExactAttention::new().causal(&heads)
        } else {
            ExactAttention::new().bidirectional(&heads)
        }
        .unwrap()
        .output;
        let own = attend(&attention, &heads, causal);
        let means = means(&v, [4, 60], |_, _| true, |i, j| !causal || j <= i);
        // A share that is set already does not matter.
        let shrunk = attention.clone().with_shrinkage(&[0.9]).unwrap();
        let shares =
            if causal { shrunk.causal_shrinkage(&heads) } else { shrunk.bidirectional_shrinkage(&heads) };
        let shares = shares.unwrap();
        for (of_keys, share) in shares.iter().enumerate() {
            let of_head = |x: &Array4<f64>| x.slice(s![.., 2 * of_keys..2 * of_keys + 2, .., ..]).to_owned();
            let [exact, own, means] = [&exact, &own, &means].map(of_head);
            let (goal, way) = (&exact - &own, &means - &own);
            let expected = (&goal * &way).sum() / way.pow2().sum();
            assert!(
                expected > 0.0 && expected < 1.0 && (share - expected).abs() < 1e-12,
                "{share} {expected}"
            );
            let error = |share: f64| (&own * (1.0 - share) + &means * share - &exact).pow2().sum();
            assert!(error(*share) < error(share + 0.01) && error(*share) < error(share - 0.01));
        }
    }
}

/// Over norms 0.25 to 8 of queries and keys in ℝ⁶⁴, shrunk outputs err at most 1.02 times as much as the better of features and of the mean,
/// on other tokens than those that the share is for, and less than both in between. Errors over 4 draws, whose ratios are known to 1 %.
#[test]
fn shrunk_outputs_are_never_worse_than_the_mean() {
    let norms = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0];
    for norm in norms {
        let [mut of_features, mut of_means, mut of_shrunk, mut of_report] = [0.0; 4];
        for seed in 0..4 {
            let of = |seed| {
                let [q, k] = [0, 1].map(|side| normal([1, 1, 300, 64], norm / 8.0, 10 * seed + side));
                let centre = normal([1, 1, 1, 8], 0.3, 7);
                [q, k, normal([1, 1, 300, 8], 1.0, 10 * seed + 2) + centre]
            };
            let [own, other] = [of(seed), of(seed + 100)];
            let attention = Attention::favor_plus(64, 256, seed).unwrap();
            let calibration = Heads::new(&own[0], &own[1], &own[2]).unwrap();
            let shares = attention.bidirectional_shrinkage(&calibration).unwrap();
            let [q, k, v] = [0, 1, 2].map(|which| own[which].slice(s![0, 0, .., ..]).to_owned());
            // The report's share is of some queries, of which each takes all pairs of keys.
            let some = q.slice(s![..100, ..]);
            let report = attention.error_report(&TokenSample::new(&some, &k).with_values(&v)).unwrap();
            let heads = Heads::new(&other[0], &other[1], &other[2]).unwrap();
            let exact: Array4<f64> = ExactAttention::new().bidirectional(&heads).unwrap().output;
            let error = |shares: &[f64]| {
                let attention = attention.clone().with_shrinkage(shares).unwrap();
                (attend(&attention, &heads, false) - &exact).pow2().sum()
            };
            of_features += error(&[0.0]);
            of_means += error(&[1.0]);
            of_shrunk += error(&shares);
            of_report += error(&[report.shrinkage()]);
        }
        let best = f64::min(of_features, of_means);
        let name = format!("norm {norm}: {of_features:e} {of_means:e} {of_shrunk:e} {of_report:e}");
        assert!(of_shrunk <= 1.02 * 1.02 * best, "{name}");
        assert!(of_report <= 1.02 * 1.02 * best, "{name}");
        if (1.0..=3.0).contains(&norm) {
            assert!(of_shrunk < 0.95 * best && of_report < 0.95 * best, "{name}");
        }
    }
}

/// The report of shrunk attention is (1 − α)² of the features' squared error and α² of the mean's where features are unbiased, and the
/// report's own share is where that is least. With redraws it is the same to their error.
#[test]
fn reports_know_the_share() {
    let [q, k, v] = [1, 2, 3].map(|seed| normal([1, 1, 40, 6], 0.4, seed).slice(s![0, 0, .., ..]).to_owned());
    let attention = Attention::new(positive::<f64>(6, 64)).unwrap();
    for (sample, shares) in [
        (TokenSample::new(&q, &k).with_values(&v), [0.2, 0.6, 1.0]),
        (TokenSample::causal(&q, &k).with_values(&v), [0.1, 0.5, 1.0]),
        (TokenSample::new(&q, &k), [0.3, 0.5, 1.0]),
    ] {
        let plain = attention.error_report(&sample).unwrap();
        let of = |report: &ErrorReport| report.output_error().or(report.weight_error()).unwrap();
        let expected = |share: f64| ((1.0 - share) * of(&plain)).hypot(share * plain.mean_error);
        let reported = |share: f64| {
            let shrunk = attention.clone().with_shrinkage(&[share]).unwrap();
            of(&shrunk.error_report(&sample).unwrap())
        };
        for share in shares {
            assert!((reported(share) - expected(share)).abs() < 1e-9, "{share}");
        }
        let best = plain.shrinkage();
        assert!(best > 0.0 && best < 1.0);
        assert!(reported(best) < reported(best + 0.02) && reported(best) < reported(best - 0.02));
        let least = of(&plain) * plain.mean_error / of(&plain).hypot(plain.mean_error);
        assert!((reported(best) - least).abs() < 1e-9);
    }
}

/// A bias of features and that of the mean add up as vectors: what a report expects of truncated features is what many redraws show.
#[test]
fn reports_add_biases_as_vectors() {
    let [q, k, v] = [1, 2, 3].map(|seed| normal([1, 1, 30, 4], 0.3, seed).slice(s![0, 0, .., ..]).to_owned());
    let sample = TokenSample::new(&q, &k).with_values(&v);
    let plain = Positive.recipe(Draw::new(3, 64, Independent), Softmax::default());
    let turned = Conditioning::new(Array2::eye(4)).unwrap().truncated(3).unwrap();
    let recipe = plain.conditioned(&turned).unwrap();
    let attention = Attention::new(recipe.draw::<f64>(3).unwrap()).unwrap();
    for share in [0.0, 0.3, 0.8] {
        let shrunk = attention.clone().with_shrinkage(&[share]).unwrap();
        let closed = shrunk.error_report(&sample).unwrap().output_error().unwrap();
        let redrawn = shrunk.simulated_report(&recipe, 1000, &sample).unwrap().output_error().unwrap();
        assert!((closed / redrawn - 1.0).abs() < 0.05, "{share}: {closed} {redrawn}");
    }
}

/// Shares that mean nothing, and attention that has none.
#[test]
fn shares_that_do_not_fit_are_refused() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    for wrong in [&[][..], &[-0.1], &[1.1], &[f64::NAN], &[0.5, f64::INFINITY]] {
        assert!(matches!(attention.clone().with_shrinkage(wrong), Err(Error::Parameter { .. })), "{wrong:?}");
    }
    let x = tokens::<f64>([1, 2, 10, 6], 0.7, 1);
    let heads = Heads::new(&x, &x, &x).unwrap();
    let three = attention.clone().with_shrinkage(&[0.1, 0.2, 0.3]).unwrap();
    assert!(matches!(three.causal(&heads), Err(Error::Shape { expected: 3, found: 2, .. })));
    assert!(matches!(three.bidirectional_backward(&heads, &x), Err(Error::Shape { .. })));
    assert!(matches!(three.state(1, 2, 6), Err(Error::Shape { .. })));
    assert!(matches!(three.causal_weights(&heads, 0, 0, &[0]), Err(Error::Shape { .. })));
    let y = head(&x, 0, 0).to_owned();
    let sample = TokenSample::new(&y, &y).with_head(3);
    assert!(matches!(three.error_report(&sample), Err(Error::Parameter { .. })));
    let plain = attention.clone().with_shrinkage(&[0.5]).unwrap().without_normalisers();
    assert!(matches!(plain.causal(&heads), Err(Error::Unsupported { .. })));
    assert!(matches!(plain.state(1, 2, 6), Err(Error::Unsupported { .. })));
    assert!(matches!(plain.causal_shrinkage(&heads), Err(Error::Unsupported { .. })));
    assert!(attention.clone().with_shrinkage(&[0.0]).unwrap().without_normalisers().causal(&heads).is_ok());
    // Another kernel has no exact attention.
    let other = Attention::new(relu::<f64>(6, 20)).unwrap();
    assert!(matches!(other.bidirectional_shrinkage(&heads), Err(Error::Unsupported { .. })));
    let nan = x.mapv(|v| if v == x[[0, 1, 4, 2]] { f64::NAN } else { v });
    let heads = Heads::new(&x, &x, &nan).unwrap();
    assert!(matches!(attention.bidirectional_shrinkage(&heads), Err(Error::NotFinite { .. })));
}

/// Values and tokens at the ends of the range have shares, and no tokens the share 0.
#[test]
fn shares_do_not_leave_the_range() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let x = normal([1, 1, 30, 6], 1.0, 1);
    let shares = |size: f64| {
        let v = &x * size;
        attention.bidirectional_shrinkage(&Heads::new(&x, &x, &v).unwrap()).unwrap()[0]
    };
    for size in [1e-200, 1e-30, 1e30, 1e200] {
        assert!((shares(size) - shares(1.0)).abs() < 1e-9, "{size}");
    }
    let none = Array4::<f64>::zeros((0, 2, 30, 6));
    assert_eq!(attention.causal_shrinkage(&Heads::new(&none, &none, &none).unwrap()).unwrap(), [0.0, 0.0]);
    let equal = Array4::<f64>::ones((1, 1, 5, 6));
    // All shares are as good.
    let shares = attention.causal_shrinkage(&Heads::new(&equal, &equal, &equal).unwrap()).unwrap();
    assert!((0.0..=1.0).contains(&shares[0]));
}
