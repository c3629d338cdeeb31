//! The choice of shapes: that it is the best, what it is invariant under, and its edges.

use crate::attention::oracle;
use crate::common;
use ndarray::{Array1, Array2, Axis, s};
use rand::RngExt;
use random_features::apply::attention::{Attention, AttentionShaping, Heads};
use random_features::data::shaping::{Moments, PairMoments, Shape, Shaping};
use random_features::data::{PairStatistics, Statistics};
use random_features::linalg::Backend;
use random_features::theory::dense;
use random_features::workbench::factors::Factorise;
use random_features::{Error, Positive, rng};

/// Points with a full covariance of their own and a mean.
fn points(n: usize, d: usize, seed: u64) -> Array2<f64> {
    let mut rng = rng(seed);
    let mut numbers =
        |rows, columns| Array2::from_shape_simple_fn((rows, columns), || rng.random_range(-1.0..1.0));
    let (x, mix, mean) = (numbers(n, d), numbers(d, d), numbers(1, d));
    x.dot(&mix) + mean
}

fn moments(x: &Array2<f64>, y: &Array2<f64>) -> PairMoments {
    PairMoments::new(Moments::of(x).unwrap(), Moments::of(y).unwrap()).unwrap()
}

/// Without ridge, which the proofs are for.
fn exact() -> Shaping {
    Shaping::new().with_ridge(0.0).unwrap()
}

fn near(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64) {
    let size = b.iter().fold(0.0, |size: f64, v| size.max(v.abs()));
    a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() <= tolerance * size, "{a} instead of {b}"));
}

/// A random rotation or reflection.
fn rotation(d: usize, seed: u64) -> Array2<f64> {
    let square = points(d, d, seed);
    Backend::default().svd(&square).unwrap().left
}

/// u and v of all points.
fn transformed(shape: &Shape, x: &Array2<f64>, y: &Array2<f64>) -> (Array2<f64>, Array2<f64>) {
    let shift = |c: &[f64]| Array1::from(c.to_vec());
    ((x - &shift(&shape.shift_x)).dot(&shape.left.t()), (y - &shift(&shape.shift_y)).dot(&shape.right.t()))
}

/// The weighted mean of ln M over all pairs, by a loop.
fn mean_ln_moment((u, v): &(Array2<f64>, Array2<f64>), rho: &[f64], weights: &Array2<f64>) -> f64 {
    let terms = weights.indexed_iter().map(|((i, j), weight)| {
        let w: Vec<f64> = (&u.row(i) + &v.row(j)).to_vec();
        weight * dense::ln_second_moment(&w, rho)
    });
    terms.sum::<f64>() / weights.sum()
}

#[test]
fn both_sides_are_balanced_and_each_coordinate_meets_its_bound() {
    for d in [1, 2, 5, 30] {
        let (x, y) = (points(200, d, 1), points(150, d, 2));
        let pairs = moments(&x, &y);
        let (a, b) = (pairs.x().covariance().unwrap(), pairs.y().covariance().unwrap());
        for shape in
            [exact().of_moments(&pairs).unwrap(), exact().with_both_shifts().of_points(&x, &y).unwrap()]
        {
            let sides = [shape.left.dot(&a).dot(&shape.left.t()), shape.right.dot(&b).dot(&shape.right.t())];
            near(&sides[0], &Array2::from_diag(&(Array1::from(shape.phi.clone()) / 2.0)), 1e-7);
            near(&sides[1], &sides[0], 1e-7);
            near(&shape.left.dot(&shape.right.t()), &Array2::eye(d), 1e-8);
            // φ is 2√λ(C_x C_y), from a Cholesky factor instead of a root.
            let factor = Backend::default().cholesky(&a).unwrap().lower().to_owned();
            let values = Backend::default().eigen(&factor.t().dot(&b).dot(&factor)).unwrap().values;
            for (phi, value) in shape.phi.iter().zip(values.iter().rev()) {
                assert!((phi - 2.0 * value.sqrt()).abs() < 1e-8 * shape.phi[0], "{phi} {value}");
            }
            assert!(shape.phi.is_sorted_by(|a, b| a >= b) && !shape.is_truncated());
            let report = &shape;
            let ones = Array2::ones((200, 150));
            let unshaped = mean_ln_moment(&(x.clone(), y.clone()), &vec![1.0; d], &ones);
            let shaped = mean_ln_moment(&transformed(&shape, &x, &y), &shape.rho, &ones);
            assert!((report.before - unshaped).abs() < 1e-11 * unshaped);
            assert!((report.dense - shaped).abs() < 1e-7 * shaped, "{} {shaped}", report.dense);
            assert!(report.balanced <= report.shifted && report.dense <= report.balanced);
            for (a, rho) in shape.a.iter().zip(&shape.rho) {
                assert!((rho * (1.0 - 8.0 * a) - 1.0).abs() < 1e-14);
            }
        }
    }
}

#[test]
fn no_other_transformation_is_better() {
    let d = 4;
    let pairs = moments(&points(60, d, 3), &points(50, d, 4));
    let best = exact().of_moments(&pairs).unwrap();
    let (a, b) = (pairs.x().covariance().unwrap(), pairs.y().covariance().unwrap());
    for seed in 0..1000u64 {
        // Near the best one, and anywhere.
        let size = [0.01, 0.1, 1.0, 10.0][seed as usize % 4];
        let t = best.left.dot(&(Array2::eye(d) + points(d, d, seed + 100) * size));
        let svd = Backend::default().svd(&t).unwrap();
        let inverse = (&svd.right / &svd.values).dot(&svd.left.t());
        let sum = t.dot(&a).dot(&t.t()) + inverse.t().dot(&b).dot(&inverse);
        let phi = Backend::default().eigen(&sum).unwrap().values.to_vec();
        let rho: Vec<f64> = phi.iter().map(|phi| dense::optimal(*phi).rho).collect();
        let other = dense::mean_ln_second_moment(&phi, &rho);
        assert!(other > best.dense * (1.0 - 1e-12), "{other} {}", best.dense);
    }
}

#[test]
fn descent_gains_nothing_with_product_weights() {
    let d = 3;
    let (x, y) = (points(40, d, 5), points(30, d, 6));
    let shape = exact().with_both_shifts().of_points(&x, &y).unwrap();
    let ones = Array2::ones((40, 30));
    let at = |shape: &Shape| mean_ln_moment(&transformed(shape, &x, &y), &shape.rho, &ones);
    let step = 1e-4;
    // A change of T, right and left of it, of shifts, and of coefficients: none changes the mean to first order.
    let moved = |seed: u64, sign: f64| {
        let mut moved = shape.clone();
        let change = Array2::eye(d) + points(d, d, seed) * (sign * step);
        let svd = Backend::default().svd(&change).unwrap();
        let inverse = (&svd.right / &svd.values).dot(&svd.left.t());
        moved.left = if seed.is_multiple_of(2) { change.dot(&shape.left) } else { shape.left.dot(&change) };
        moved.right = if seed.is_multiple_of(2) {
            inverse.t().dot(&shape.right)
        } else {
            shape.right.dot(&inverse.t())
        };
        for (k, (cx, cy)) in moved.shift_x.iter_mut().zip(&mut moved.shift_y).enumerate() {
            *cx += sign * step * (seed as f64 + k as f64).sin();
            *cy += sign * step * (seed as f64 * 2.0 + k as f64).cos();
        }
        let rho = moved.rho.iter().enumerate();
        moved.rho = rho.map(|(k, rho)| rho * (1.0 + sign * step * (k as f64 - 1.0))).collect();
        at(&moved)
    };
    for seed in 0..20 {
        let (down, up) = (moved(seed, -1.0), moved(seed, 1.0));
        let slope = (up - down) / (2.0 * step);
        assert!(slope.abs() < 1e-5 * at(&shape), "{slope}");
        assert!(0.5 * (up + down) > at(&shape), "not a minimum");
    }
}

#[test]
fn choices_follow_rotations_and_shifts() {
    let d = 6;
    let (x, y, q) = (points(80, d, 7), points(70, d, 8), rotation(d, 9));
    let weights = Array2::from_shape_fn((80, 70), |(i, j)| (0.5 * x.row(i).dot(&y.row(j))).exp());
    let rows: Vec<usize> = (0..80).collect();
    for options in
        [Shaping::new(), Shaping::new().with_rank(2).unwrap(), Shaping::new().with_rank_for(64).unwrap()]
    {
        let of = |x: &Array2<f64>, y: &Array2<f64>| options.of_pairs(x, &rows, y, &weights).unwrap();
        let (shape, turned) = (of(&x, &y), of(&x.dot(&q.t()), &y.dot(&q.t())));
        let moved = of(&(&x + &points(1, d, 10)), &(&y + &points(1, d, 11)));
        assert_eq!((turned.rank(), moved.rank()), (shape.rank(), shape.rank()));
        for (k, phi) in shape.phi.iter().enumerate() {
            for other in [&turned, &moved] {
                assert!((other.phi[k] - phi).abs() < 1e-10 * shape.phi[0]);
                assert!((other.rho[k] - shape.rho[k]).abs() < 1e-10);
            }
        }
        // Rows are eigenvectors, whose signs are free.
        near(
            &turned.left.t().dot(&turned.right),
            &q.dot(&shape.left.t().dot(&shape.right)).dot(&q.t()),
            1e-8,
        );
        near(&moved.left.t().dot(&moved.left), &shape.left.t().dot(&shape.left), 1e-8);
        assert!((turned.before - shape.before).abs() < 1e-10 * shape.before);
        assert!((moved.shifted - shape.shifted).abs() < 1e-10 * shape.shifted);
        assert!((turned.bias - shape.bias).abs() < 1e-9);
    }
}

#[test]
fn one_shift_gives_the_sums_of_both() {
    let (x, y) = (points(30, 4, 12), points(20, 4, 13));
    let (one, two) = (Shaping::new(), Shaping::new().with_both_shifts());
    let (one, two) = (one.of_points(&x, &y).unwrap(), two.of_points(&x, &y).unwrap());
    assert_eq!(one.shift_x, [0.0; 4]);
    assert_eq!(Array1::from(two.shift_x.clone()), Moments::of(&x).unwrap().mean().unwrap());
    let sum = |(u, v): (Array2<f64>, Array2<f64>)| u.slice(s![..20, ..]).to_owned() + v;
    near(&sum(transformed(&one, &x, &y)), &sum(transformed(&two, &x, &y)), 1e-12);
    assert_eq!((&one.left, &one.rho), (&two.left, &two.rho));
}

#[test]
fn isotropic_centred_points_lose_nothing_against_oprf() {
    let d = 5;
    let side =
        |size: f64| {
            Array2::from_shape_fn((2 * d, d), |(i, k)| {
                if i / 2 == k { size * (1.0 - 2.0 * (i % 2) as f64) } else { 0.0 }
            })
        };
    for (of_x, of_y) in [(1.0, 1.0), (3.0, 0.5), (1e-3, 2e-3)] {
        let (x, y) = (side(of_x), side(of_y));
        let shape = Shaping::new().of_points(&x, &y).unwrap();
        // The two sizes are balanced first.
        let both = (of_x * of_y).sqrt();
        let statistics = Statistics::of(&side(both)).unwrap();
        let oprf = PairStatistics::new(&statistics, &statistics).unwrap().oprf().0;
        let expected = 1.0 / (1.0 - 8.0 * oprf);
        for (a, rho) in shape.a.iter().zip(&shape.rho) {
            assert!((a - oprf).abs() < 1e-12 * oprf.abs() && (rho - expected).abs() < 1e-12);
        }
        let mean = dense::mean_ln_second_moment(&[2.0 * both * both / d as f64; 5], &[expected; 5]);
        assert!((shape.dense - mean).abs() < 1e-12 * mean);
    }
}

#[test]
fn weighted_pairs_are_what_the_report_is_about() {
    let (x, y) = (points(25, 4, 14), points(20, 4, 15));
    let rows: Vec<usize> = (0..25).collect();
    // Every query has the same weight, so that its moments are those of all queries.
    let weights = oracle::softmax(&x.dot(&y.t()));
    let shape = Shaping::new().of_pairs(&x, &rows, &y, &weights).unwrap();
    let naive = mean_ln_moment(&transformed(&shape, &x, &y), &shape.rho, &weights);
    assert!((shape.dense - naive).abs() < 1e-10 * naive, "{} {naive}", shape.dense);
    for (phi, rho) in shape.phi.iter().zip(&shape.rho) {
        assert!((rho - dense::optimal(0.7 * phi).rho).abs() < 1e-15);
    }
    let whole = Shaping::new().with_share(1.0).unwrap().of_pairs(&x, &rows, &y, &weights).unwrap();
    assert!(whole.dense < shape.dense);
    // Bias, by a loop.
    let cut = Shaping::new().with_rank(2).unwrap().of_pairs(&x, &rows, &y, &weights).unwrap();
    let mean_kept = cut.kept;
    let (u, v) = transformed(&cut, &x, &y);
    let centre = |x: &Array2<f64>, c: &[f64]| x - &Array1::from(c.to_vec());
    let left = centre(&x, &cut.shift_x).dot(&centre(&y, &cut.shift_y).t()) - u.dot(&v.t());
    let variance = |i: usize| {
        let mean = weights.row(i).dot(&left.row(i));
        weights.row(i).iter().zip(left.row(i)).map(|(p, e)| p * (e - mean).powi(2)).sum::<f64>()
    };
    let bias = (0..25).map(variance).sum::<f64>() / 25.0;
    assert!((cut.bias - bias.min(1.0)).abs() < 1e-12, "{} {bias}", cut.bias);
    for (phi, rho) in cut.phi.iter().zip(&cut.rho) {
        assert!((rho - dense::optimal(*phi).rho).abs() < 1e-15);
    }
    assert!(cut.is_truncated() && cut.rank() == 2 && cut.dim() == 4);
    let counts = |shape: &Shape| shape.multiplications(256);
    assert_eq!(counts(&cut), [256 * 4 + 4, 2 * 4 + 256 * 2 + 2 + 4]);
    assert_eq!(counts(&shape), [256 * 4 + 4, 256 * 4 + 10 + 4]);
    // The report in print: the figures of its fields.
    let (printed, cut) = (shape.to_string(), cut.summary(256));
    assert!(printed.contains(&format!(": {:.2}, ", shape.before)) && printed.ends_with("no bias"));
    assert!(cut.contains(&format!("coefficients {:.2}; bias {bias:.3}\nrank 2 of 4; ", mean_kept)), "{cut}");
    assert!(cut.ends_with("per point 1028 → 526"), "{cut}");
}

#[test]
fn ranks_are_those_of_the_data() {
    // Three strong coordinates among forty.
    let strong = |n, seed| {
        let mut x = points(n, 3, seed).dot(&points(3, 40, 16)) * 0.4;
        x += &(common::points::<f64>(n, 40, 0.02) + points(n, 40, seed + 1) * 0.002);
        x
    };
    let (x, y) = (strong(120, 17), strong(90, 19));
    let of = |m: usize| Shaping::new().with_rank_for(m).unwrap().of_points(&x, &y).unwrap();
    assert_eq!(of(1024).rank(), 3);
    assert!(of(1024).bias < 0.1);
    // All weight on few features: fewer coordinates.
    assert!(of(4).rank() <= of(1 << 20).rank());
    let given = |r: usize| Shaping::new().with_rank(r).unwrap().of_points(&x, &y);
    assert!(given(2).unwrap().bias > given(3).unwrap().bias);
    assert!(!given(40).unwrap().is_truncated() && given(40).unwrap().bias == 0.0);
    assert!(given(41).is_err());
    // From moments the bias is that of independent pairs.
    let known = Shaping::new().with_rank(2).unwrap().of_moments(&moments(&x, &y)).unwrap();
    assert!((known.bias / given(2).unwrap().bias - 1.0).abs() < 0.5);
    let error = Shaping::new().with_rank_for(9).unwrap().of_moments(&moments(&x, &y)).unwrap_err();
    assert!(error.to_string().contains("rank_for is 9, but must be absent where only moments"), "{error}");
    let large =
        Shaping::new().with_rank(2).unwrap().of_moments(&moments(&(&x * 30.0), &(&y * 30.0))).unwrap();
    assert_eq!(large.bias, 1.0);
    // All coordinates, where that is best and d is none of the ranks.
    let all = Shaping::new()
        .with_rank_for(1 << 40)
        .unwrap()
        .of_points(&points(40, 5, 42), &points(40, 5, 43))
        .unwrap();
    assert!(!all.is_truncated() && all.bias == 0.0);
}

#[test]
fn ridges_are_cross_validated() {
    let ridges = [0.0, 0.03, 0.3, 1.0];
    let options = Shaping::new().with_validated_ridge(&ridges).unwrap();
    let of = |n: usize, d: usize| options.of_points(&points(n, d, 20), &points(n, d, 21)).unwrap();
    // Few points ask for more than many.
    let (few, many) = (of(16, 12), of(4000, 12));
    assert!(ridges.contains(&few.ridge) && ridges.contains(&many.ridge));
    assert!(few.ridge > many.ridge, "{} {}", few.ridge, many.ridge);
    assert!(few.dense.is_finite() && few.left.iter().all(|v| v.is_finite()));
    assert_eq!(of(1, 3).ridge, 1.0);
    let (x, y) = (points(64, 5, 22), points(40, 5, 23));
    let shape =
        AttentionShaping::new(options.clone()).with_scale(1.0).unwrap().choose(&x, &y, 32, 4).unwrap().0;
    assert!(ridges.contains(&shape.ridge));
    let fold = |i: usize| moments(&x.slice(s![i..;2, ..]).to_owned(), &y.slice(s![i..;2, ..]).to_owned());
    let folds = options.of_folds(&[fold(0), fold(1)]).unwrap();
    assert!(ridges.contains(&folds.ridge));
    assert!(options.of_folds(&[fold(0)]).is_err() && options.of_folds(&[]).is_err());
    for wrong in [&[][..], &[-0.1], &[f64::NAN], &[0.1, f64::INFINITY]] {
        assert!(matches!(Shaping::new().with_validated_ridge(wrong), Err(Error::Parameter { .. })));
    }
    for (r, m, share) in [(0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.0)] {
        let options =
            Shaping::new().with_rank(r).and_then(|o| o.with_rank_for(m)).and_then(|o| o.with_share(share));
        assert!(matches!(options, Err(Error::Parameter { .. })));
    }
}

/// The ridge with the least loss on parts that were left out, by a loop over their pairs.
#[test]
fn ridges_for_weighted_pairs_are_cross_validated() {
    let ridges = [0.02, 0.1, 0.3, 1.0, 3.0];
    for seed in 0..12 {
        let (x, y) = (points(20, 3, 100 + seed) + 0.3, points(15, 3, 200 + seed));
        let weights = oracle::softmax(&x.dot(&y.t()));
        let part = |fold: usize| {
            let own: Vec<usize> = (fold..20).step_by(4).collect();
            (x.select(Axis(0), &own), weights.select(Axis(0), &own))
        };
        let folds: Vec<PairMoments> = (0..4)
            .map(|fold| {
                let (x, weights) = part(fold);
                PairMoments::weighted(Moments::of(&x).unwrap(), &x, &y, &weights).unwrap()
            })
            .collect();
        let loss = |ridge: f64| -> f64 {
            let of_fold = |fold: usize| {
                let mut others = folds.iter().enumerate().filter(|(i, _)| *i != fold).map(|(_, part)| part);
                let mut moments = others.next().unwrap().clone();
                others.for_each(|part| moments.merge(part).unwrap());
                let shape = Shaping::new().with_ridge(ridge).unwrap().of_moments(&moments).unwrap();
                let (x, weights) = part(fold);
                mean_ln_moment(&transformed(&shape, &x, &y), &shape.rho, &weights)
            };
            (0..4).map(of_fold).sum()
        };
        let rows: Vec<usize> = (0..20).collect();
        let shaping = Shaping::new().with_validated_ridge(&ridges).unwrap();
        let found = loss(shaping.of_pairs(&x, &rows, &y, &weights).unwrap().ridge);
        assert!(ridges.iter().all(|ridge| found <= loss(*ridge) + 1e-9), "{seed}");
    }
}

#[test]
fn heavy_keys_are_found() {
    let (x, mut y) = (points(50, 3, 24), points(40, 3, 25));
    for (key, query) in [(3, 1), (30, 2)] {
        y.row_mut(key).assign(&(&x.row(query) * 20.0));
    }
    let totals = |x: &Array2<f64>| oracle::softmax(&x.dot(&y.t())).sum_axis(Axis(0));
    let expected = totals(&x);
    // Points are their own queries and keys.
    let shaping = AttentionShaping::new(Shaping::new()).with_scale(1.0).unwrap();
    let keys = shaping.heaviest_keys(&x, &y, 1000, 5).unwrap();
    let least = keys.iter().map(|j| expected[*j]).fold(f64::INFINITY, f64::min);
    assert!((0..40).all(|j| keys.contains(&j) || expected[j] <= least) && keys.is_sorted());
    let chosen = shaping.choose(&x, &y, 50, 5).unwrap();
    let exact = &chosen.1;
    assert_eq!(*exact, keys);
    let rows: Vec<usize> = (0..50).collect();
    assert_eq!(shaping.choose_rows(&x, &rows, &y, 5).unwrap(), chosen);
    for (rows, keys) in [(0, 4), (10, 40)] {
        assert!(matches!(shaping.choose(&x, &y, rows, keys), Err(Error::Parameter { .. })));
    }
    let mut wrong = y.clone();
    wrong[[7, 1]] = f64::NAN;
    let error = shaping.heaviest_keys(&x, &wrong, 9, 1).unwrap_err();
    assert!(matches!(error, Error::NotFinite { row: 7, what: "the keys", column: Some(1) }), "{error}");
    wrong[[7, 1]] = 1e200;
    let error = shaping.choose(&wrong, &y, 9, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "row 7 of the squared norms of the queries, counted from 0, holds a number that is not finite"
    );
    assert!(shaping.heaviest_keys(&x, &y.slice(s![.., ..2]).to_owned(), 9, 1).is_err());
    let none = Array2::<f64>::zeros((0, 3));
    assert!(matches!(shaping.heaviest_keys(&none, &y, 9, 1), Err(Error::NoData { .. })));
    // One key takes all that f64 can hold: the others count alike.
    y.row_mut(0).fill(1e5);
    let ones = Array2::<f64>::ones((4, 3));
    let (shape, exact) = shaping.choose(&ones, &y, 4, 1).unwrap();
    assert!(exact == [0] && shape.dense.is_finite());
    // Without the exact one.
    assert!(shape.before < 1e5, "{shape}");
}

/// Shaping takes the queries and keys that attention takes, with the same scales: its shape is that of their points, and its heavy
/// keys are those that attention chooses.
#[test]
fn shaping_reads_tokens_as_attention_does() {
    let (n, d) = (50, 6);
    let (q, k) = (points(n, d, 50), points(n, d, 51) * 1.5);
    let unit = |x: &Array2<f64>| {
        let norms = x.map_axis(Axis(1), |x| x.dot(&x).sqrt());
        x / &norms.insert_axis(Axis(1))
    };
    let plain = |x: &Array2<f64>, y: &Array2<f64>| {
        AttentionShaping::new(Shaping::new()).with_scale(1.0).unwrap().choose(x, y, 20, 3).unwrap()
    };
    let (root, scale, temperature) = ((d as f64).powf(-0.25), 0.3, 0.2);
    let options: [(AttentionShaping, [Array2<f64>; 2]); 3] = [
        (AttentionShaping::new(Shaping::new()), [&q, &k].map(|x| x * root)),
        (
            AttentionShaping::new(Shaping::new()).with_scale(scale).unwrap(),
            [&q, &k].map(|x| x * scale.sqrt()),
        ),
        (
            AttentionShaping::new(Shaping::new()).with_cosine(temperature).unwrap(),
            [&q, &k].map(|x| unit(x) / temperature.sqrt()),
        ),
    ];
    for (shaping, [x, y]) in options {
        let (found, expected) = (shaping.choose(&q, &k, 20, 3).unwrap(), plain(&x, &y));
        assert_eq!(found.1, expected.1);
        assert!((found.0.dense / expected.0.dense - 1.0).abs() < 1e-9);
        let off = &found.0.left - &expected.0.left;
        assert!(off.iter().all(|v| v.abs() < 1e-8), "{off}");
    }
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            AttentionShaping::new(Shaping::new()).with_scale(wrong),
            Err(Error::Parameter { .. })
        ));
        assert!(matches!(
            AttentionShaping::new(Shaping::new()).with_cosine(wrong),
            Err(Error::Parameter { .. })
        ));
    }
    // As many queries as both rules ask, or more.
    for n in [40, 150] {
        let (q, k, v) = (points(n, d, 52) * 2.0, points(30, d, 53) * 2.0, points(30, 2, 54));
        let four = |x: &Array2<f64>| x.clone().insert_axis(Axis(0)).insert_axis(Axis(0));
        let (q4, k4, v4) = (four(&q), four(&k), four(&v));
        let heads = Heads::new(&q4, &k4, &v4).unwrap();
        let omega = random_features::frequency::Orthogonal.draw(d, 32, 1).unwrap();
        let attention = Attention::new(Positive.softmax::<f64>(omega).unwrap()).unwrap();
        let out = |attention: Attention<f64>| attention.bidirectional(&heads).unwrap().output;
        for count in [1, 4, 9] {
            let keys = AttentionShaping::new(Shaping::new()).heaviest_keys(&q, &k, 64, count).unwrap();
            let chosen = out(attention.clone().with_heaviest_keys_exact(count).unwrap());
            assert_eq!(chosen, out(attention.clone().with_keys_exact(&keys).unwrap()), "{n} {count}");
        }
    }
}

#[test]
fn degenerate_points_have_finite_shapes() {
    let low = |n| points(n, 2, 26).dot(&points(2, 7, 27));
    let mut constant = points(30, 4, 28);
    constant.column_mut(1).fill(3.0);
    let zeros = Array2::zeros((3, 4));
    let cases = [
        (points(20, 1, 29), points(20, 1, 30)),
        (points(1, 4, 31), points(1, 4, 32)),
        (points(1, 4, 31), points(20, 4, 32)),
        (points(20, 4, 31), points(1, 4, 32)),
        (zeros.clone(), zeros.clone()),
        (zeros, points(20, 4, 32)),
        (constant.clone(), constant),
        (low(30), low(30)),
        (low(3), points(3, 7, 33)),
        (points(20, 3, 34) * 1e150, points(20, 3, 35) * 1e150),
        (points(20, 3, 34) * 1e150, points(20, 3, 35) * 1e-150),
        (points(20, 3, 34) * 1e-150, points(1, 3, 35) * 1e150),
        (points(20, 3, 34) * 1e-300, points(20, 3, 35)),
        (points(20, 3, 34) * 1e-160, Array2::zeros((20, 3))),
        (points(10, 32, 36), points(10, 32, 37)),
        (points(17, 32, 38), points(11, 32, 39)),
        (points(20, 64, 40), points(20, 64, 41)),
    ];
    let options = [
        Shaping::new(),
        exact(),
        Shaping::new().with_validated_ridge(&[0.0, 0.1]).unwrap(),
        Shaping::new().with_rank(1).unwrap(),
        Shaping::new().with_rank_for(256).unwrap(),
    ];
    for (case, (x, y)) in cases.iter().enumerate() {
        for (which, options) in options.iter().enumerate() {
            let shape = options.of_points(x, y).unwrap();
            let arrays = shape.left.iter().chain(&shape.right).chain(&shape.shift_x).chain(&shape.shift_y);
            let numbers = arrays.chain(&shape.phi).chain(&shape.rho).chain(&shape.a);
            let report = &shape;
            let predicted = [report.before, report.shifted, report.balanced, report.dense, report.kept];
            assert!(
                numbers.chain(&predicted).all(|v| v.is_finite()),
                "case {case}, options {which}: {shape:?}"
            );
            assert!((0.0..=1.0).contains(&report.bias), "case {case}, options {which}: {report:?}");
            assert!(shape.rho.iter().all(|rho| *rho > 0.0 && *rho <= 1.0));
            let identity = shape.left.dot(&shape.right.t());
            near(&identity, &Array2::eye(shape.rank()), 1e-9);
            assert_eq!(shape.conditioning().unwrap().rank(), shape.rank(), "case {case}, options {which}");
        }
    }
}

#[cfg(feature = "serde")]
#[test]
fn shapes_are_stored_to_the_bit() {
    let shape =
        Shaping::new().with_rank(2).unwrap().of_points(&points(30, 4, 36), &points(20, 4, 37)).unwrap();
    let text = serde_json::to_string(&shape).unwrap();
    assert_eq!(serde_json::from_str::<Shape>(&text).unwrap(), shape);
    let bytes = postcard::to_stdvec(&shape).unwrap();
    assert_eq!(postcard::from_bytes::<Shape>(&bytes).unwrap(), shape);
}

/// The mean of ‖x + y‖² over weighted pairs, about its mean, is the mean by definition.
#[test]
fn shifted_sums_of_weighted_pairs_are_their_mean() {
    let (x, y) = (points(30, 3, 1), points(20, 3, 2));
    // As much for each query.
    let weights = oracle::softmax(&x.dot(&y.t()));
    let rows: Vec<usize> = (0..30).collect();
    let report = Shaping::new().of_pairs(&x, &rows, &y, &weights).unwrap();
    let total = weights.sum();
    let mean = |of: &dyn Fn(usize, usize) -> f64| {
        weights.indexed_iter().map(|((i, j), w)| w * of(i, j)).sum::<f64>() / total
    };
    let sum = |i: usize, j: usize, k: usize| x[[i, k]] + y[[j, k]];
    let centre: Vec<f64> = (0..3).map(|k| mean(&|i, j| sum(i, j, k))).collect();
    let square =
        |of: &dyn Fn(usize, usize, usize) -> f64| mean(&|i, j| (0..3).map(|k| of(i, j, k).powi(2)).sum());
    let (before, shifted) = (square(&sum), square(&|i, j, k| sum(i, j, k) - centre[k]));
    assert!((report.before / before - 1.0).abs() < 1e-10, "{} {before}", report.before);
    assert!((report.shifted / shifted - 1.0).abs() < 1e-10, "{} {shifted}", report.shifted);
}

/// Neighbours and the heaviest keys get no weight; where nothing is left, all pairs count alike.
#[test]
fn exact_pairs_have_no_weight() {
    let wave = |(i, k): (usize, usize)| (1.7 * i as f64 + 2.3 * (k * k) as f64).sin();
    let x = Array2::from_shape_fn((30, 3), wave);
    let y = Array2::from_shape_fn((20, 3), |(j, k)| wave((3 * j + 1, k + 1)));
    let shaping = AttentionShaping::new(Shaping::new()).with_scale(1.0).unwrap();
    let rows: Vec<usize> = (0..30).step_by(3).collect();
    let found = shaping.clone().with_window(3, 2).choose_rows(&x, &rows, &y, 2).unwrap();
    let plain = shaping.choose_rows(&x, &rows, &y, 2).unwrap();
    assert_eq!(found.1, plain.1);
    let mut weights = oracle::softmax(&x.select(Axis(0), &rows).dot(&y.t()));
    for ((i, j), weight) in weights.indexed_iter_mut() {
        if found.1.contains(&j) || (j + 3 > rows[i] && j <= rows[i] + 2) {
            *weight = 0.0;
        }
    }
    let expected = Shaping::new().of_pairs(&x, &rows, &y, &weights).unwrap();
    for (a, b) in [(&found.0.left, &expected.left), (&found.0.right, &expected.right)] {
        assert!((a - b).iter().all(|e| e.abs() < 1e-9), "{a} {b}");
    }
    assert!((found.0.dense / expected.dense - 1.0).abs() < 1e-9);
    assert_ne!(found.0, plain.0);
    let all = shaping.clone().with_window(100, 100).choose_rows(&x, &rows, &y, 2).unwrap();
    let equal = Shaping::new().of_pairs(&x, &rows, &y, &Array2::ones((10, 20))).unwrap();
    assert_eq!(all.0, equal);
}
