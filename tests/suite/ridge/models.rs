//! Models against the dense solve on the same features, and against kernel ridge regression.

use ndarray::{Array1, Array2, ArrayRef2, ArrayView1, arr1, arr2, s};
use random_features::apply::{
    KernelRidge, Ridge, RidgeClassifier, RidgeStatistics, Smoother, Standardisation,
};
use random_features::extend::Facts;
use random_features::frequency::Independent;
use random_features::kernel::{Gaussian, Kernel};
use random_features::linalg::Backend;
use random_features::{Error, Map, Positive, Real, Trigonometric};

use super::{data, distance, features, naive, statistics, trigonometric, weights};
use crate::common::own_map::own_map;
use crate::common::{MAPS, couplings, frequencies, gaussian, points, weigh};

fn agrees<T: Real>(map: &Map<T>, lambda: f64, tolerance: f64) {
    let ((x, y), w) = (data::<T>(700), weights(700));
    let (z, wide) = (features(map, &x), y.mapv(|v| v.widen()));
    let mut weighted = RidgeStatistics::new(map.clone(), 2).unwrap();
    weighted.update(&x, weigh(&y, &w)).unwrap();
    for backend in Backend::ALL {
        for (statistics, w, intercept) in [
            (statistics(map, &x, &y), Array1::ones(700), true),
            (weighted.clone(), w.clone(), true),
            (weighted.clone().without_intercept(), w.clone(), false),
        ] {
            let (beta, b) = naive(&z, &wide, &w, (lambda, intercept));
            let expected = z.dot(&beta) + &b;
            for model in [
                statistics.solve_with(*backend, lambda).unwrap(),
                statistics.spectrum_with(*backend).unwrap().model(lambda).unwrap(),
            ] {
                let predicted = z.dot(&model.weights().t()) + model.intercepts();
                let error = distance(&predicted, &expected);
                assert!(error < tolerance, "{backend:?}, {intercept}: {error:e}");
                let error = distance(&model.predict(&x).unwrap().mapv(|v| v.widen()), &expected);
                assert!(error < tolerance, "{backend:?}, {intercept}: {error:e}");
            }
        }
    }
}

#[test]
fn the_dense_solve_on_the_same_features() {
    agrees(&trigonometric::<f64>(60, 1.0), 1e-3, 1e-10);
    agrees(&trigonometric::<f32>(60, 1.0), 1e-2, 2e-5);
    // A part of a block of features, and more than one block.
    agrees(&trigonometric::<f64>(1, 1.0), 0.0, 1e-10);
    agrees(&trigonometric::<f64>(100, 1.0), 1e-3, 1e-9);
    let omega = || frequencies(3, 40, &Independent, 3);
    agrees(&Positive.gaussian::<f64>(omega(), 2.0).unwrap(), 1e-3, 1e-9);
    agrees(&blocks(), 1e-3, 1e-10);
}

/// Blocks of two features and one, with scales that differ by 10³⁰⁰ from the values; the second block is absent from some
/// rows.
pub fn blocks() -> Map<f64> {
    let write = |x: ArrayView1<'_, f64>, values: &mut [f64], scales: &mut [f64]| {
        values.copy_from_slice(&[x[0] * 1e-300, x[1] * 1e-300, x[2]]);
        scales[0] = 300.0 * std::f64::consts::LN_10;
        scales[1] = if x[0] > 0.3 { f64::NEG_INFINITY } else { 0.0 };
    };
    own_map(Facts::new(3, vec![2, 1]).symmetric(), write).unwrap()
}

/// With many targets, weights are packed block by block.
#[test]
fn many_targets_of_a_map_of_blocks() {
    let (map, (x, y)) = (blocks(), data::<f64>(300));
    let y = Array2::from_shape_fn((300, 9), |(i, j)| y[[i, j % 2]] + x[[i, j % 3]] * j as f64);
    let (beta, b) = naive(&features(&map, &x), &y, &Array1::ones(300), (1e-3, true));
    let model = statistics(&map, &x, &y).solve(1e-3).unwrap();
    let error = distance(&model.predict(&x).unwrap(), &(features(&map, &x).dot(&beta) + &b));
    assert!(error < 1e-10, "{error:e}");
}

/// Scales that vary from row to row by e²⁰ and more.
#[test]
fn scales_of_rows_that_vary() {
    let map = Trigonometric.softmax::<f32>(frequencies(3, 20, &Independent, 3)).unwrap();
    let (x, y) = data::<f32>(300);
    let x = x.mapv(|v| 5.0 * v);
    let z = features(&map, &x);
    let largest = z.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
    assert!(largest > 1e8);
    let lambda = 0.1 * largest * largest;
    let model = statistics(&map, &x, &y).solve(lambda).unwrap();
    let (beta, b) = naive(&z, &y.mapv(f64::from), &Array1::ones(300), (lambda, true));
    let error = distance(&model.predict(&x).unwrap().mapv(f64::from), &(z.dot(&beta) + &b));
    // Rounding of 3·10⁻⁶ at worst, times a condition number of some 10³.
    assert!(error < 1e-4, "{error:e}");
}

#[test]
fn kernel_ridge_regression_on_the_gram_matrix_of_the_features() {
    let (map, (x, y)) = (trigonometric::<f64>(30, 1.0), data::<f64>(150));
    let test = points::<f64>(40, 3, 1.0);
    for lambda in [1e-3, 1.0, 100.0] {
        let primal = statistics(&map, &x, &y).solve(lambda).unwrap().predict(&test).unwrap();
        let dual = KernelRidge::fit(&map.gram(&x, &x).unwrap(), &y, lambda).unwrap();
        let dual = dual.predict_from_gram(&map.gram(&test, &x).unwrap()).unwrap();
        assert!(distance(&primal, &dual) < 1e-9, "λ = {lambda}");
    }
}

/// Two points: β and b by hand.
#[test]
fn a_closed_form() {
    let map = own_map(Facts::new(1, vec![1]).symmetric(), |x, values, _| values[0] = x[0]).unwrap();
    let statistics = statistics(&map, &arr2(&[[1.0], [3.0]]), &arr2(&[[2.0], [8.0]]));
    // Centred: A = 2, c = 6.
    for (lambda, beta) in [(0.0, 3.0), (1.0, 2.0), (4.0, 1.0)] {
        let model = statistics.solve(lambda).unwrap();
        assert!((model.weights()[[0, 0]] - beta).abs() < 1e-14);
        assert!((model.intercepts()[0] - (5.0 - 2.0 * beta)).abs() < 1e-13);
    }
    let spectrum = statistics.spectrum().unwrap();
    assert!((spectrum.eigenvalues()[0] - 2.0).abs() < 1e-14);
    assert!((spectrum.degrees_of_freedom(2.0).unwrap() - 1.5).abs() < 1e-14);
    // Through the origin: A = 10, c = 26.
    let through = statistics.without_intercept().solve(3.0).unwrap();
    assert!((through.weights()[[0, 0]] - 2.0).abs() < 1e-14);
    assert_eq!(through.intercepts(), arr1(&[0.0]));
}

#[test]
fn inputs_are_standardised_as_part_of_the_model() {
    let (map, (x, y)) = (trigonometric::<f64>(40, 1.0), data::<f64>(500));
    let raw = &x * &arr1(&[1e30, 1e-30, 7.0]) + &arr1(&[3e30, -5e-30, 0.0]);
    let inputs = Standardisation::of(&raw).unwrap();
    let plain = statistics(&map, &inputs.apply(&raw).unwrap(), &y).solve(1e-3).unwrap();
    let mut statistics = RidgeStatistics::new(map, 2).unwrap().with_standardisation(inputs.clone()).unwrap();
    statistics.update(&raw, &y).unwrap();
    let model = statistics.solve(1e-3).unwrap();
    assert_eq!(model.weights(), plain.weights());
    assert_eq!(model.predict(&raw).unwrap(), plain.predict(&inputs.apply(&raw).unwrap()).unwrap());
    assert_eq!(model.standardisation(), Some(&inputs));
    // A constant column is centred, whatever its value.
    let mut constant = x.clone();
    constant.column_mut(1).fill(1e30);
    let inputs = Standardisation::of(&constant).unwrap();
    assert_eq!((inputs.scales()[1], inputs.apply(&constant).unwrap()[[7, 1]]), (1.0, 0.0));
}

#[test]
fn one_row_at_a_time_gives_the_bits_of_a_batch() {
    for targets in [1, 2, 9] {
        let (map, (x, _)) = (trigonometric::<f32>(33, 1.0), data::<f32>(5000));
        let y = Array2::from_shape_fn((5000, targets), |(i, j)| x[[i, j % 3]] * (j + 1) as f32);
        let inputs = Standardisation::of(&x).unwrap();
        let mut statistics =
            RidgeStatistics::new(map, targets).unwrap().with_standardisation(inputs).unwrap();
        statistics.update(&x, &y).unwrap();
        let model = statistics.solve(1e-2).unwrap();
        let whole = model.predict(&x).unwrap();
        let (mut predictor, mut one) = (model.predictor(), vec![0.0; targets]);
        for i in [0, 17, 4095, 4096, 4999] {
            predictor.predict_into(&x.row(i), &mut one).unwrap();
            assert_eq!(one[..], whole.row(i).to_vec()[..]);
        }
        // Any layout, and threads, do not matter.
        let columns = x.t().as_standard_layout().reversed_axes().to_owned();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(pool.install(|| model.predict(&columns)).unwrap(), whole);
        assert_eq!(model.predict(x.slice(s![..0, ..])).unwrap().dim(), (0, targets));
        let mut nan = x.slice(s![..2, ..]).to_owned();
        nan[[0, 1]] = f32::NAN;
        let predicted = model.predict(&nan).unwrap();
        assert!(predicted.row(0).iter().all(|v| v.is_nan()));
        assert_eq!(predicted.row(1), whole.row(1));
    }
}

/// Labels that are drawn with probability σ(0.8 sin x), whose logarithms of odds are linear in it up to 0.02: among new
/// points that are given p, a share p has the class.
#[test]
fn a_share_of_p_has_the_class() {
    use rand::RngExt;
    let mut rng = random_features::rng(11);
    let mut draw = |n: usize| {
        let x = Array2::from_shape_fn((n, 1), |_| 6.0 * rng.random::<f64>() - 3.0);
        let class = |x: &f64| usize::from(rng.random::<f64>() < 1.0 / (1.0 + (-0.8 * x.sin()).exp()));
        let classes: Vec<usize> = x.iter().map(class).collect();
        (x, classes)
    };
    let (train, held_out, test) = (draw(3000), draw(20_000), draw(40_000));
    let map = Trigonometric.gaussian::<f64>(frequencies(1, 60, &Independent, 2), 1.0).unwrap();
    let mut statistics = RidgeStatistics::new(map, 2).unwrap();
    statistics.update(&train.0, &train.1).unwrap();
    let classifier = RidgeClassifier::new(statistics.solve(1.0).unwrap()).unwrap();
    let p = classifier.with_calibration(&held_out.0, &held_out.1).unwrap().probabilities(&test.0).unwrap();
    let mut bins = 0;
    for bin in 0..20 {
        let rows: Vec<usize> = (0..40_000).filter(|i| (20.0 * p[[*i, 1]]) as usize == bin).collect();
        if rows.len() < 2000 {
            continue;
        }
        bins += 1;
        let n = rows.len() as f64;
        let mean = rows.iter().map(|i| p[[*i, 1]]).sum::<f64>() / n;
        let share = rows.iter().filter(|i| test.1[**i] == 1).count() as f64 / n;
        // Four deviations of a share (a false alarm in 2000 seeds), and what linear odds and the calibration itself leave.
        assert!((mean - share).abs() < 4.0 * (mean * (1.0 - mean) / n).sqrt() + 0.01, "{mean} {share}");
    }
    assert!(bins >= 6, "{bins}");
}

/// Three classes of known probabilities: the cross-entropy is near its least.
#[test]
fn probabilities_of_three_classes() {
    use rand::RngExt;
    let mut rng = random_features::rng(11);
    let mut draw = |n: usize| {
        let x = Array2::from_shape_fn((n, 1), |_| 6.0 * rng.random::<f64>() - 3.0);
        let classes = x.iter().map(|x| {
            let odds = [1.0, (1.5 * x).exp(), (x * x - 2.0).exp()];
            let (total, mut u) = (odds.iter().sum::<f64>(), rng.random::<f64>());
            u *= total;
            odds.iter()
                .position(|odd| {
                    u -= odd;
                    u < 0.0
                })
                .unwrap_or(2)
        });
        let classes: Vec<usize> = classes.collect();
        (x, classes)
    };
    let (train, held_out, test) = (draw(3000), draw(3000), draw(40_000));
    let map = Trigonometric.gaussian::<f64>(frequencies(1, 60, &Independent, 2), 1.0).unwrap();
    let mut statistics = RidgeStatistics::new(map, 3).unwrap();
    statistics.update(&train.0, &train.1).unwrap();
    let plain = RidgeClassifier::new(statistics.solve(1.0).unwrap()).unwrap();
    assert!(plain.probabilities(&test.0).is_err());
    let classifier = plain.clone().with_calibration(&held_out.0, &held_out.1).unwrap();
    assert_eq!(classifier.classify(&test.0).unwrap(), plain.classify(&test.0).unwrap());
    let p = classifier.probabilities(&test.0).unwrap();
    assert!(p.rows().into_iter().all(|row| (row.sum() - 1.0).abs() < 1e-12));
    let log_loss =
        |p: &Array2<f64>| -test.1.iter().enumerate().map(|(i, c)| p[[i, *c]].ln()).sum::<f64>() / 4e4;
    let truth = Array2::from_shape_fn((40_000, 3), |(i, c)| {
        let x = test.0[[i, 0]];
        let odds = [1.0, (1.5 * x).exp(), (x * x - 2.0).exp()];
        odds[c] / odds.iter().sum::<f64>()
    });
    // One slope for odds that are not linear in the predictions leaves some hundredths; the classes' shares alone 0.3.
    let shares = [0, 1, 2].map(|c| test.1.iter().filter(|class| **class == c).count() as f64 / 4e4);
    let shares = Array2::from_shape_fn((40_000, 3), |(_, c)| shares[c]);
    let (loss, least) = (log_loss(&p), log_loss(&truth));
    assert!(loss < least + 0.05 && loss < log_loss(&shares) - 0.2, "{loss} {least} {}", log_loss(&shares));
}

/// Points that are told apart without a mistake still get probabilities within (0, 1), by Platt's rule.
#[test]
fn sure_classes_are_not_quite_sure() {
    let map = Trigonometric.gaussian::<f64>(frequencies(1, 30, &Independent, 2), 1.0).unwrap();
    let mut statistics = RidgeStatistics::new(map, 2).unwrap();
    let x = Array2::from_shape_fn((40, 1), |(i, _)| if i < 20 { -1.0 } else { 1.0 } + 0.001 * i as f64);
    let labels: Vec<usize> = (0..40).map(|i| i / 20).collect();
    statistics.update(&x, &labels).unwrap();
    let classifier =
        RidgeClassifier::new(statistics.solve(1e-3).unwrap()).unwrap().with_calibration(&x, &labels).unwrap();
    let p = classifier.probabilities(&x).unwrap();
    // (20 + 1)/(20 + 2) where all predictions of a class are alike.
    assert!((p[[3, 0]] - 21.0 / 22.0).abs() < 5e-3 && (p[[33, 1]] - 21.0 / 22.0).abs() < 5e-3, "{p}");
}

/// A class that is predicted where the other one is: the slope stays at 0, and the offsets are those of the shares.
#[test]
fn calibration_does_not_turn_classes_round() {
    let map = Trigonometric.gaussian::<f64>(frequencies(1, 30, &Independent, 2), 1.0).unwrap();
    let mut statistics = RidgeStatistics::new(map, 2).unwrap();
    let x = Array2::from_shape_fn((40, 1), |(i, _)| i as f64 / 20.0 - 1.0);
    let labels: Vec<usize> = (0..40).map(|i| usize::from(i >= 30)).collect();
    statistics.update(&x, &labels).unwrap();
    let wrong: Vec<usize> = labels.iter().map(|label| 1 - label).collect();
    let classifier =
        RidgeClassifier::new(statistics.solve(1e-3).unwrap()).unwrap().with_calibration(&x, &wrong).unwrap();
    // 30 of class 1 and 10 of class 0, each softened by Platt's rule.
    let share = (30.0 * 31.0 / 32.0 + 10.0 * 1.0 / 12.0) / 40.0;
    let p = classifier.probabilities(&x).unwrap();
    assert!(p.column(1).iter().all(|p| (p - share).abs() < 1e-5), "{share} {p}");
    assert_eq!(classifier.classify(&x).unwrap(), classifier.model().classify(&x).unwrap());
}

/// Predictions in any unit are calibrated to the same probabilities.
#[test]
fn the_unit_of_predictions_does_not_matter() {
    let map = Trigonometric.gaussian::<f64>(frequencies(1, 30, &Independent, 2), 1.0).unwrap();
    let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0 - 2.0);
    let labels: Vec<usize> = (0..200).map(|i| usize::from(i % 7 < 2 || i > 120)).collect();
    let probabilities = |unit: f64| {
        let y = Array2::from_shape_fn((200, 2), |(i, c)| if labels[i] == c { unit } else { 0.0 });
        let model = statistics(&map, &x, &y).solve(1.0).unwrap();
        RidgeClassifier::new(model).unwrap().with_calibration(&x, &labels).unwrap().probabilities(&x).unwrap()
    };
    let plain = probabilities(1.0);
    for unit in [1e-30, 1e30] {
        assert!(distance(&probabilities(unit), &plain) < 1e-6, "{unit}");
    }
}

/// Gram matrices of asymmetric maps: the symmetric part counts, in the matrix of any order.
#[test]
fn an_asymmetric_gram_matrix_is_its_symmetric_part() {
    let (x, y) = data::<f64>(30);
    let gram = trigonometric::<f64>(40, 1.0).gram(&x, &x).unwrap();
    let skew =
        Array2::from_shape_fn((30, 30), |(i, j)| 0.01 * ((i as f64 + 1.0).ln() - (j as f64 + 1.0).ln()));
    let plain = KernelRidge::fit(&gram, &y, 1.0).unwrap();
    let other = KernelRidge::fit(&(&gram + &skew), &y, 1.0).unwrap();
    assert!(distance(&other.coefficients().to_owned(), &plain.coefficients().to_owned()) < 1e-12);
    assert!((&other.intercepts() - &plain.intercepts()).iter().all(|v| v.abs() < 1e-12));
}

/// The equations of a matrix in single precision are solved in double precision: the solution is as accurate as its numbers, though
/// the condition number is 10⁶.
#[test]
fn a_gram_matrix_in_single_precision_is_solved_in_double_precision() {
    let (x, y) = (points::<f32>(200, 1, 1.0), points::<f32>(200, 2, 1.0));
    let gram = Gaussian::new(1.0).unwrap().gram(&x, &x).unwrap();
    let (lambda, wide) = (1e-4, |a: &ArrayRef2<f32>| a.mapv(f64::from));
    let model = KernelRidge::fit(&gram, &y, lambda).unwrap();
    let exact = KernelRidge::fit(&wide(&gram), &wide(&y), lambda).unwrap();
    let error = distance(&wide(&model.coefficients()), &exact.coefficients().to_owned());
    assert!(error <= f64::from(f32::EPSILON), "{error:e}");
}

/// Columns of any size, and columns that are constant up to rounding.
#[test]
fn standardisation_of_extreme_columns() {
    let (x, _) = data::<f64>(100);
    let plain = Standardisation::of(&x).unwrap();
    for size in [1e200, 1e-200] {
        let inputs = Standardisation::of(&(&x * size)).unwrap();
        for (a, b) in inputs.scales().iter().zip(plain.scales()) {
            assert!((a / size / b - 1.0).abs() < 1e-12, "{size}: {a} {b}");
        }
    }
    let rounded = Array2::from_shape_fn((100, 1), |(i, _)| 1e6 * (1.0 + (i % 2) as f64 * f64::EPSILON));
    assert_eq!(Standardisation::of(&rounded).unwrap().scales(), [1.0]);
    let narrow = Array2::from_shape_fn((100, 1), |(i, _)| 1e6 * (1.0 + (i % 2) as f32 * f32::EPSILON));
    assert_eq!(Standardisation::of(&narrow).unwrap().scales(), [1.0]);
}

#[test]
fn every_map_is_served_or_refused() {
    let x = points::<f64>(200, 3, 0.7);
    let y = x.slice(s![.., ..1]).mapv(|v| v * v);
    for name in MAPS {
        let map = name.make::<f64>(frequencies(3, 20, couplings()[0].as_ref(), 2), gaussian());
        let statistics = RidgeStatistics::new(map.clone(), 1);
        assert_eq!(statistics.is_ok(), map.facts().symmetric, "{name:?}");
        let gram = map.gram(&x, &x).unwrap();
        let model = KernelRidge::fit(&gram, &y, 5.0).unwrap();
        assert!(model.predict_from_gram(&gram).unwrap().iter().all(|v| v.is_finite()), "{name:?}");
    }
}

/// Calibration keeps the order of points for each pair of classes. The most probable class may be another than the largest
/// prediction, which is the class.
#[test]
fn calibration_keeps_the_order_of_points() {
    let (x, _) = data::<f64>(300);
    let labels: Vec<usize> =
        (0..300).map(|i| usize::from(x[[i, 0]] > 0.4) + usize::from(i % 5 == 0)).collect();
    let mut statistics = RidgeStatistics::new(trigonometric::<f64>(20, 1.0), 3).unwrap();
    statistics.update(&x, &labels).unwrap();
    let model = statistics.solve(1e-1).unwrap();
    // Of another share of classes than in training, which moves the offsets.
    let rare: Vec<usize> = (0..300).filter(|i| labels[*i] > 0 || i % 6 == 0).collect();
    let held_out = x.select(ndarray::Axis(0), &rare);
    let labels: Vec<usize> = rare.iter().map(|i| labels[*i]).collect();
    let classifier =
        RidgeClassifier::new(model.clone()).unwrap().with_calibration(&held_out, &labels).unwrap();
    let (scores, p) = (model.predict(&x).unwrap(), classifier.probabilities(&x).unwrap());
    for (c, k) in [(0, 1), (0, 2), (1, 2)] {
        let margin = |i: &usize| scores[[*i, c]] - scores[[*i, k]];
        let mut order: Vec<usize> = (0..300).collect();
        order.sort_by(|i, j| margin(i).total_cmp(&margin(j)));
        let odds: Vec<f64> = order.iter().map(|i| (p[[*i, c]] / p[[*i, k]]).ln()).collect();
        assert!(odds.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9), "classes {c} and {k}");
    }
    let classes = classifier.classify(&x).unwrap();
    assert_eq!(classes, model.classify(&x).unwrap());
    let probable = |i: usize| (0..3).fold(0, |best, c| if p[[i, c]] > p[[i, best]] { c } else { best });
    assert!((0..300).any(|i| probable(i) != classes[i]), "the test has no teeth");
}

#[test]
fn points_are_divided_by_the_scale() {
    let inputs = Standardisation::new(vec![1.0, -2.0], vec![4.0, 0.5]).unwrap();
    let x = arr2(&[[3.0f64, -2.5], [1.0, 0.0]]);
    assert_eq!(inputs.apply(&x).unwrap(), arr2(&[[0.5, -1.0], [0.0, 4.0]]));
    let none = Standardisation::new(vec![], vec![]);
    assert!(matches!(none, Err(random_features::Error::Parameter { value: 0.0, .. })));
}

/// Weights and λ times the same factor give the same model, however large or small it is.
#[test]
fn weights_of_any_size() {
    let x = Array2::from_shape_fn((60, 3), |(i, k)| ((i * 7 + k * 13) % 17) as f32 / 8.0 - 1.0);
    let y = x.map_axis(ndarray::Axis(1), |x| x[0] * x[1] + x[2]).insert_axis(ndarray::Axis(1));
    let map: Map<f32> = Trigonometric.gaussian(frequencies(3, 6, &Independent, 7), 1.0).unwrap();
    let solve = |weight: f64| {
        let mut all = RidgeStatistics::new(map.clone(), 1).unwrap();
        all.update(&x, weigh(&y, &Array1::from_elem(60, weight))).unwrap();
        all.solve(1e-3 * weight).unwrap().weights().to_owned()
    };
    let one = solve(1.0);
    for exponent in [-400, -200, 200, 400] {
        assert!((&solve(2f64.powi(exponent)) - &one).iter().all(|e| e.abs() < 1e-6), "{exponent}");
    }
}

/// A class without rows is predicted by no path, with and without an intercept, and has probability 0; the others have the probabilities of
/// a classifier that does not know it.
#[test]
fn a_class_without_rows_is_never_predicted() {
    let x = points::<f64>(200, 3, 1.0);
    let two: Vec<usize> = x.column(0).iter().map(|x| usize::from(*x > 0.3)).collect();
    let with_gap = |labels: &[usize]| labels.iter().map(|label| 2 * label).collect::<Vec<usize>>();
    let three = with_gap(&two);
    // Far from training all predictions are near 0, of either sign.
    let far = points::<f64>(500, 3, 30.0);
    for intercept in [true, false] {
        let statistics = |classes| {
            let statistics = RidgeStatistics::new(trigonometric::<f64>(40, 0.5), classes).unwrap();
            if intercept { statistics } else { statistics.without_intercept() }
        };
        let (mut whole, mut known) = (statistics(3), statistics(2));
        whole.update(&x, &three).unwrap();
        known.update(&x, &two).unwrap();
        let mut merged = statistics(3);
        merged.update(x.slice(s![..120, ..]), &three[..120]).unwrap();
        let mut rest = statistics(3).with_first_row(120).unwrap();
        rest.update(x.slice(s![120.., ..]), &three[120..]).unwrap();
        merged.merge(&rest).unwrap();
        // A class whose rows were all removed.
        let mut removed = whole.clone();
        let (other, label) = (x.slice(s![..1, ..]), arr2(&[[0.0, 1.0, 0.0]]));
        removed.update(other, &label).unwrap();
        removed.downdate(200, other, &label).unwrap();
        let known = RidgeClassifier::new(known.solve(1e-3).unwrap()).unwrap();
        let known = known.with_calibration(&x, &two).unwrap();
        let expected = with_gap(&known.classify(&far).unwrap());
        let probabilities = known.probabilities(&far).unwrap();
        for statistics in [whole, merged, removed] {
            let model = statistics.solve(1e-3).unwrap();
            if !intercept {
                let all_below = |row: ndarray::ArrayView1<'_, f64>| row[0].max(row[2]) < row[1];
                assert!(model.predict(&far).unwrap().rows().into_iter().any(all_below), "nothing is tested");
            }
            assert_eq!(model.classify(&far).unwrap(), expected);
            // Held-out points of the class say nothing.
            let (more, mut labels) = (ndarray::concatenate![ndarray::Axis(0), x, x], three.clone());
            labels.extend(vec![1; 200]);
            let classifier = RidgeClassifier::new(model).unwrap().with_calibration(&more, &labels).unwrap();
            #[cfg(feature = "serde")]
            let classifier: RidgeClassifier<f64> =
                serde_json::from_str(&serde_json::to_string(&classifier).unwrap()).unwrap();
            assert_eq!(classifier.classify(&far).unwrap(), expected);
            let found = classifier.probabilities(&far).unwrap();
            assert!(found.column(1).iter().all(|p| *p == 0.0));
            for (to, from) in [(0, 0), (2, 1)] {
                let off = &found.column(to) - &probabilities.column(from);
                assert!(off.iter().all(|off| off.abs() < 1e-9), "{off}");
            }
            let error =
                RidgeClassifier::new(classifier.model().clone()).unwrap().with_calibration(&x, &vec![1; 200]);
            assert!(matches!(error, Err(random_features::Error::NoData { .. })));
        }
    }
    // Signed estimates of the kernel.
    let map = trigonometric::<f64>(40, 0.5);
    let mut smoother = Smoother::new(map.clone(), 3).unwrap();
    smoother.update(&x, &three).unwrap();
    assert!(smoother.classify(&far).unwrap().iter().all(|class| *class != 1));
    let indicators = Array2::from_shape_fn((200, 3), |(i, j)| f64::from(u8::from(three[i] == j)));
    let model = KernelRidge::fit(&map.gram(&x, &x).unwrap(), &indicators, 1.0).unwrap();
    let classes = model.classify_from_gram(&map.gram(&far, &x).unwrap()).unwrap();
    assert!(classes.iter().all(|class| *class != 1));
}

/// A model of arrays predicts as the one that they were taken from, standardised or not.
#[test]
fn models_are_made_of_arrays() {
    let (x, y) = data::<f64>(60);
    let inputs = Standardisation::of(&x).unwrap();
    let map = trigonometric::<f64>(8, 1.0);
    let mut statistics =
        RidgeStatistics::new(map.clone(), 2).unwrap().with_standardisation(inputs.clone()).unwrap();
    statistics.update(&x, &y).unwrap();
    let model = statistics.solve(0.1).unwrap();
    let intercepts = model.intercepts().to_vec();
    let again = Ridge::of_weights(map.clone(), &model.weights(), &intercepts).unwrap();
    let again = again.with_standardisation(inputs).unwrap();
    assert_eq!(again.predict(&x).unwrap(), model.predict(&x).unwrap());
    let of = |weights: Array2<f64>, intercepts: &[f64]| Ridge::of_weights(map.clone(), &weights, intercepts);
    assert!(matches!(of(Array2::zeros((16, 2)), &[0.0; 2]), Err(Error::Shape { .. })));
    assert!(matches!(of(Array2::zeros((2, 16)), &[0.0]), Err(Error::Shape { .. })));
    assert!(matches!(of(Array2::zeros((0, 16)), &[]), Err(Error::Parameter { .. })));
    assert!(matches!(of(Array2::from_elem((1, 16), f64::NAN), &[0.0]), Err(Error::NotFinite { .. })));
    assert!(matches!(of(Array2::zeros((1, 16)), &[f64::INFINITY]), Err(Error::NotFinite { .. })));
    let one = Standardisation::of(&Array2::<f64>::from_shape_fn((4, 1), |(i, _)| i as f64)).unwrap();
    assert!(matches!(again.with_standardisation(one), Err(Error::Shape { .. })));
}
