//! A λ and a noise for each target: against regressions of each target alone, and naive sums.

use ndarray::{Array1, Array2, ArrayView1, s};
use random_features::Targets;
use random_features::apply::{Criterion, RidgeGrid, RidgeSearch, RidgeStatistics, RidgeWarning};
use random_features::linalg::Backend;
use random_features::workbench::factors::Factorise;
use random_features::{Error, Map, Real};

use super::{distance, features, trigonometric};
use crate::common::weigh;

const LAMBDAS: [f64; 4] = [10.0, 1e-1, 1e-3, 1e-4];
const OWN: [f64; 4] = [1e-3, 10.0, 0.1, 1.0];

/// A target that does not vary is best predicted by its mean: of all λ it has the largest.
#[test]
fn constant_targets_have_the_largest_lambda() {
    let (x, y, _) = data::<f64>(60);
    let search = RidgeSearch::gaussian(3, 8, 5).unwrap().with_lengthscales([1.0]);
    let fit = search.with_lambdas([1e-3, 10.0, 0.1]).fit(&x, &y).unwrap();
    assert_eq!(fit.lambdas()[2], 10.0);
    assert!(fit.lambdas()[0] < 10.0, "{fit}");
}

/// Targets with an offset, of another unit, constant, and noisy.
fn data<T: Real>(n: usize) -> (Array2<T>, Array2<T>, Array1<f64>) {
    let (x, first) = super::data::<T>(n);
    let y = Array2::from_shape_fn((n, 4), |(i, j)| {
        let y = first[[i, 0]].widen();
        T::narrow(match j {
            0 => y + if T::epsilon().widen() < 1e-10 { 1e6 } else { 0.0 },
            1 => 1e-3 * first[[i, 1]].widen() + 1e-3 * ((i * i) as f64).sin(),
            2 => -7.0,
            _ => y + ((i * i) as f64).cos(),
        })
    });
    let weights = Array1::from_shape_fn(n, |i| [1.0, 0.0, 2.0, 0.5][i % 4]);
    (x, y, weights)
}

fn statistics<T: Real>(
    map: &Map<T>,
    (x, y, w): (&Array2<T>, &Array2<T>, &Array1<f64>),
    intercept: bool,
) -> RidgeStatistics<T> {
    let mut statistics = RidgeStatistics::new(map.clone(), y.ncols()).unwrap();
    if !intercept {
        statistics = statistics.without_intercept();
    }
    statistics.update(x, weigh(y, w)).unwrap();
    statistics
}

/// Leave-one-out, generalised cross-validation, or the evidence.
fn criterion<'a, T: Real>(
    k: usize,
    x: &'a Array2<T>,
    y: &'a Array2<T>,
    w: &'a Array1<f64>,
) -> Criterion<'a, T> {
    match k {
        0 => Criterion::leave_one_out(x, weigh(y, w)),
        1 => Criterion::GeneralisedCrossValidation,
        _ => Criterion::LogEvidence,
    }
}

/// Each target is treated as if it were alone, to the bit where no sum of targets is taken.
fn targets_are_as_alone<T: Real>(intercept: bool) {
    let (x, mut y, w) = data::<T>(120);
    if !intercept {
        // Without an intercept only 0 is constant.
        y.column_mut(2).fill(T::zero());
    }
    let map = trigonometric::<T>(15, 1.0);
    let all = statistics(&map, (&x, &y, &w), intercept).spectrum().unwrap();
    let model = all.model_per_target(&OWN).unwrap();
    let posterior = all.posterior_per_target(&OWN).unwrap();
    assert_eq!(posterior.lambdas(), OWN);
    let prediction = posterior.predict(&x).unwrap();
    let (low, high) = prediction.interval(0.9).unwrap();
    for (j, lambda) in OWN.into_iter().enumerate() {
        let (all_targets, y) = (&y, y.slice(s![.., j..=j]).to_owned());
        let alone = statistics(&map, (&x, &y, &w), intercept).spectrum().unwrap();
        for k in 0..3 {
            let of = |y| criterion(k, &x, y, &w);
            let table = all.errors_per_target(&of(all_targets), &LAMBDAS).unwrap();
            let errors = alone.errors(&of(&y), &LAMBDAS).unwrap();
            assert!(
                table.column(j).iter().zip(&errors).all(|(a, b)| near(*a, *b)),
                "{k}, {j}: {table} {errors:?}"
            );
            let chosen = all.choose_per_target(&of(all_targets), &LAMBDAS).unwrap()[j];
            let expected = alone.choose(&of(&y), &LAMBDAS).unwrap();
            assert!(chosen.0 == expected.0 && near(chosen.1, expected.1));
        }
        let own = alone.posterior(lambda).unwrap();
        let alike = |a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>| {
            let size = b.iter().fold(0.0, |size: f64, v| size.max(v.abs()));
            a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-9 * size)
        };
        assert!(alike(model.weights().row(j), own.model().weights().row(0)));
        assert!(near(model.intercepts()[j], own.model().intercepts()[0]));
        assert!(near(posterior.noise()[j], own.noise()[0]));
        let expected = own.predict(&x).unwrap();
        let ends = expected.interval(0.9).unwrap();
        let pairs = [
            (&prediction.mean, &expected.mean),
            (&prediction.variance_of_mean, &expected.variance_of_mean),
            (&low, &ends.0),
            (&high, &ends.1),
        ];
        for (all, alone) in pairs {
            let [all, alone] = [all.column(j), alone.column(0)].map(|column| column.mapv(|v| v.widen()));
            let size = alone.iter().fold(0.0, |size: f64, v| size.max(v.abs()));
            let rounding = 4.0 * T::epsilon().widen() + 1e-9;
            assert!(all.iter().zip(&alone).all(|(a, b)| (a - b).abs() <= rounding * size), "{j}");
        }
    }
}

/// Whether two numbers are equal up to rounding.
fn near(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-8 * b.abs()
}

#[test]
fn each_target_is_as_if_it_were_alone() {
    for intercept in [true, false] {
        targets_are_as_alone::<f64>(intercept);
        targets_are_as_alone::<f32>(intercept);
    }
}

/// The sums of all targets are those of each, and each leave-one-out error is that of a regression without the row.
#[test]
fn errors_of_targets_are_those_of_their_definition() {
    for (intercept, m) in [(true, 4), (false, 4), (true, 15)] {
        let (x, y, w) = data::<f64>(24);
        let map = trigonometric::<f64>(m, 1.0);
        let z = features(&map, &x);
        let spectrum = statistics(&map, (&x, &y, &w), intercept).spectrum().unwrap();
        let left_out = criterion(0, &x, &y, &w);
        let table = spectrum.errors_per_target(&left_out, &OWN).unwrap();
        for (row, lambda) in table.rows().into_iter().zip(OWN) {
            let mut expected = Array1::<f64>::zeros(4);
            for i in (0..24).filter(|i| w[*i] > 0.0) {
                let mut others = w.clone();
                others[i] = 0.0;
                // Offsets are taken away, since the naive sums lose digits to them.
                let near = &y - &Array1::from(vec![1e6, 0.0, 0.0, 0.0]) * f64::from(u8::from(intercept));
                let (beta, b) = super::naive(&z, &near, &others, (lambda, intercept));
                let off = z.row(i).dot(&beta) + b - near.row(i);
                expected = expected + off.mapv(|e| w[i] * e * e) / w.sum();
            }
            for (j, (own, expected)) in row.iter().zip(&expected).enumerate() {
                let constant = j == 2 && intercept;
                let near = (own / expected - 1.0).abs() < 1e-6;
                assert!(if constant { *own == 0.0 } else { near }, "{j}: {own} is not {expected}");
            }
        }
        let sums = spectrum.errors(&left_out, &OWN).unwrap();
        let added = table.sum_axis(ndarray::Axis(1));
        assert!(sums.iter().zip(&added).all(|(a, b)| (a / b - 1.0).abs() < 1e-12), "{sums:?} {added}");
    }
}

/// β, R and the variance by a dense solve, for the λ of each target.
#[test]
fn posteriors_of_targets_are_those_of_their_definition() {
    let (x, y, w) = data::<f64>(40);
    let y = y - &Array1::from(vec![1e6, 0.0, 0.0, 0.0]);
    let map = trigonometric::<f64>(6, 1.0);
    let z = features(&map, &x);
    for intercept in [true, false] {
        let spectrum = statistics(&map, (&x, &y, &w), intercept).spectrum().unwrap();
        let posterior = spectrum.posterior_per_target(&OWN).unwrap();
        let prediction = posterior.predict(&x).unwrap();
        let mean = z.t().dot(&w) / w.sum() * f64::from(u8::from(intercept));
        let centred = &z - &mean;
        let weighted = &centred * &w.view().insert_axis(ndarray::Axis(1));
        for (j, lambda) in OWN.into_iter().enumerate().filter(|(j, _)| *j != 2) {
            let (beta, b) = super::naive(&z, &y, &w, (lambda, intercept));
            let (beta, b) = (beta.column(j).to_owned(), b[j]);
            let off = &y.column(j) - &(z.dot(&beta) + b);
            let loss = (&off * &off).dot(&w) + lambda * beta.dot(&beta);
            let noise = loss / (w.sum() - f64::from(u8::from(intercept)));
            assert!((posterior.noise()[j] / noise - 1.0).abs() < 1e-8, "{j}");
            let a = centred.t().dot(&weighted) + Array2::<f64>::eye(z.ncols()) * lambda;
            let solved = Backend::default().cholesky(&a).unwrap();
            let solved = solved.solve(&centred.t().to_owned()).unwrap();
            for i in 0..x.nrows() {
                let own = if intercept { 1.0 / w.sum() } else { 0.0 };
                let variance = noise * (centred.row(i).dot(&solved.column(i)) + own);
                assert!((prediction.variance_of_mean[[i, j]] / variance - 1.0).abs() < 1e-8, "{j}, row {i}");
            }
        }
    }
}

#[test]
fn lambdas_of_targets_are_checked() {
    let (x, y, w) = data::<f64>(40);
    let spectrum = statistics(&trigonometric::<f64>(6, 1.0), (&x, &y, &w), true).spectrum().unwrap();
    assert!(matches!(spectrum.model_per_target(&[1.0; 3]), Err(Error::Shape { .. })));
    assert!(matches!(spectrum.posterior_per_target(&[1.0; 5]), Err(Error::Shape { .. })));
    assert!(matches!(spectrum.model_per_target(&[1.0, -1.0, 1.0, 1.0]), Err(Error::Parameter { .. })));
    assert!(matches!(spectrum.model_per_target(&[1.0, f64::NAN, 1.0, 1.0]), Err(Error::Parameter { .. })));
    assert!(matches!(spectrum.posterior_per_target(&[1.0, 0.0, 1.0, 1.0]), Err(Error::Parameter { .. })));
    assert!(spectrum.errors_per_target(&Criterion::LogEvidence, &[]).unwrap().is_empty());
    assert!(spectrum.choose_per_target(&Criterion::LogEvidence, &[]).is_err());
}

/// The unit and the mean of one target change no choice, which a sum of errors does not keep.
#[test]
fn units_of_targets_change_no_choice() {
    let (x, y) = super::data::<f64>(300);
    let y = Array2::from_shape_fn((300, 2), |(i, j)| y[[i, j]] + 0.3 * ((i * i + j) as f64).sin());
    let omega = || crate::common::frequencies(3, 30, &random_features::frequency::Orthogonal, 7);
    for criterion in [Criterion::LeaveOneOut, Criterion::GeneralisedCrossValidation, Criterion::LogEvidence] {
        let search = RidgeSearch::new(omega(), |omega, ell| {
            random_features::Trigonometric.gaussian::<f64>(omega, ell)
        });
        let search = search.with_criterion(criterion);
        let plain = search.fit(&x, &y).unwrap();
        let changed =
            Array2::from_shape_fn((300, 2), |(i, j)| if j == 0 { y[[i, 0]] } else { 1e4 * y[[i, 1]] + 1e7 });
        let changed = search.fit(&x, &changed).unwrap();
        assert_eq!(changed.best().lengthscale, plain.best().lengthscale);
        let near = |(a, b): (&f64, &f64)| (a / b - 1.0).abs() < 1e-9;
        assert!(changed.lambdas().iter().zip(plain.lambdas()).all(near), "{plain}\n{changed}");
        // One of them is that of the first target, whatever stands beside it.
        assert!(plain.warnings().iter().all(|warning| !matches!(warning, RidgeWarning::Targets { .. })));
        assert_eq!(plain.lambda(), plain.lambdas()[0]);
    }
}

/// Classes share λ unless asked otherwise, and then predictions add up to 1.
#[test]
fn classes_share_a_lambda() {
    let (x, y) = super::data::<f64>(300);
    let labels: Vec<usize> = (0..300)
        .map(|i| usize::from(y[[i, 0]] > 0.0) + usize::from(y[[i, 0]] + 0.5 * ((i * i) as f64).sin() > 0.7))
        .collect();
    let search = || RidgeSearch::<f64>::gaussian(3, 20, 7).unwrap().with_lengthscales([1.0]);
    let common = search().fit(&x, &labels).unwrap();
    assert!(common.lambdas().iter().all(|lambda| *lambda == common.lambda()));
    let sums = common.model().predict(&x).unwrap().sum_axis(ndarray::Axis(1));
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-9));
    let own = search().with_lambda_per_target().fit(&x, Targets::of_labels(&labels, 4).unwrap()).unwrap();
    assert!(own.lambdas()[0] != own.lambdas()[2], "{own}");
    // The class without rows is constant, and is never predicted.
    assert!(own.model().classify(&x).unwrap().iter().all(|class| *class < 3));
    let mut grid = RidgeGrid::new([trigonometric::<f64>(20, 1.0)], 3).unwrap();
    grid.update(&x, &labels).unwrap();
    let each = grid.choose_per_target(&Criterion::GeneralisedCrossValidation, None).unwrap();
    let one = grid.choose(&Criterion::GeneralisedCrossValidation, None).unwrap();
    assert!(each.error() <= one.error() && each.lambdas() != one.lambdas(), "{each}\n{one}");
}

/// A posterior with λ of its own for each target is stored and read.
#[cfg(feature = "serde")]
#[test]
fn posteriors_of_targets_are_stored() {
    let (x, y, w) = data::<f64>(40);
    let spectrum = statistics(&trigonometric::<f64>(6, 1.0), (&x, &y, &w), true).spectrum().unwrap();
    let posterior = spectrum.posterior_per_target(&OWN).unwrap();
    let bytes = postcard::to_stdvec(&posterior).unwrap();
    let read: random_features::apply::RidgePosterior<f64> = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(read.lambdas(), OWN);
    assert_eq!(read.predict(&x).unwrap(), posterior.predict(&x).unwrap());
}

/// Rows that are added to the sums of a search give the sums of all rows.
#[test]
fn rows_are_added_to_the_chosen_model() {
    let (x, y) = super::data::<f64>(4500);
    let first = 4096;
    let search = RidgeSearch::<f64>::gaussian(3, 20, 7).unwrap().with_lengthscales([0.5, 1.0]);
    let fit = search.fit(x.slice(s![..first, ..]), y.slice(s![..first, ..])).unwrap();
    let (map, inputs) = (fit.model().map().clone(), fit.model().standardisation().unwrap().clone());
    let lambdas = fit.lambdas().to_vec();
    let own = fit.model().weights().to_owned();
    let mut grown = fit.into_statistics().unwrap();
    let of_first = grown.spectrum().unwrap().model_per_target(&lambdas).unwrap();
    assert_eq!(of_first.weights(), own);
    grown.update(x.slice(s![first.., ..]), y.slice(s![first.., ..])).unwrap();
    let mut whole = RidgeStatistics::new(map, 2).unwrap().with_standardisation(inputs).unwrap();
    whole.update(&x, &y).unwrap();
    assert_eq!(grown.rows(), 4500);
    // The cut is at a multiple of a chunk.
    assert_eq!(first as u64 % RidgeStatistics::<f64>::CHUNK, 0);
    let of = |statistics: &RidgeStatistics<f64>| {
        statistics.spectrum().unwrap().model_per_target(&lambdas).unwrap()
    };
    assert_eq!(of(&grown).weights(), of(&whole).weights());
    assert!(distance(&of(&grown).predict(&x).unwrap(), &y) < 0.1);
}

/// Sums are made from the rows where a search has made none, since rows are fewer than features.
#[test]
fn rows_fewer_than_features_give_sums_too() {
    let (x, y) = super::data::<f64>(50);
    for search in [
        RidgeSearch::<f64>::gaussian(3, 40, 7).unwrap(),
        RidgeSearch::gaussian(3, 40, 7).unwrap().without_intercept(),
    ] {
        let fit = search.with_lengthscales([2.0]).fit(&x, &y).unwrap();
        let (model, lambdas) = (fit.model().clone(), fit.lambdas().to_vec());
        let statistics = fit.into_statistics().unwrap();
        assert_eq!((statistics.rows(), statistics.standardisation()), (50, model.standardisation()));
        let again = statistics
            .spectrum()
            .unwrap()
            .model_per_target(&lambdas.iter().map(|l| l.max(1e-9)).collect::<Vec<_>>())
            .unwrap();
        let [a, b] = [&again, &model].map(|model| model.predict(&x).unwrap());
        assert!(distance(&a, &b) < 1e-3);
    }
}

/// A fit gives the criterion of each target, and its text the share that is explained of each.
#[test]
fn fits_give_the_errors_of_each_target() {
    let (x, y, _) = data::<f64>(200);
    let criteria = [Criterion::LeaveOneOut, Criterion::GeneralisedCrossValidation, Criterion::LogEvidence];
    for criterion in criteria {
        for own in [true, false] {
            let search = RidgeSearch::gaussian(3, 32, 1).unwrap().with_criterion(criterion.clone());
            let search = if own { search } else { search.without_lambda_per_target() };
            let fit = search.fit(&x, &y).unwrap();
            let errors = fit.errors_per_target();
            assert!((errors.iter().sum::<f64>() / fit.error() - 1.0).abs() < 1e-12, "{fit}");
            assert_eq!((errors[2], fit.mean_errors_per_target()[2]), (0.0, 0.0));
            let again = match criterion {
                Criterion::LeaveOneOut => &Criterion::leave_one_out(&x, &y),
                _ => &criterion,
            };
            for (target, lambda) in fit.lambdas().iter().enumerate() {
                let table = fit.spectrum().errors_per_target(again, &[*lambda, 1e300]).unwrap();
                assert!((errors[target] - table[[0, target]]).abs() <= 1e-9 * table[[0, target]].abs());
                let mean = fit.mean_errors_per_target()[target];
                assert!((mean - table[[1, target]]).abs() <= 1e-9 * table[[1, target]].abs());
            }
            let text = fit.to_string();
            assert!(text.contains("target 2: does not vary"), "{text}");
            let word = match criterion {
                Criterion::LogEvidence => "nats better than the mean",
                _ => "% explained",
            };
            assert!(text.matches(word).count() >= 4, "{text}");
        }
    }
}

/// The text of a trial names the criterion and the share that is explained.
#[test]
fn trials_name_their_criterion() {
    let (x, y, _) = data::<f64>(120);
    let y = y.column(0).to_owned();
    let groups: Vec<usize> = (0..120).map(|i| i / 3).collect();
    let named = [
        (Criterion::LeaveOneOut, "leave-one-out MSE"),
        (Criterion::LeaveGroupsOut(&groups), "MSE of left-out groups"),
        (Criterion::GeneralisedCrossValidation, "generalised cross-validation"),
        (Criterion::LogEvidence, "minus the log evidence"),
        (Criterion::HeldOutShare(0.3), "held-out MSE"),
        (Criterion::Folds(4), "MSE of folds"),
        (Criterion::Forward { blocks: 4, gap: 0 }, "MSE of later blocks"),
    ];
    for (criterion, name) in named {
        let search = RidgeSearch::gaussian(3, 16, 1).unwrap().with_lengthscales([1.0, 2.0]);
        let fit = search.with_criterion(criterion).fit(&x, &y).unwrap();
        let text = fit.best().to_string();
        assert!(text.contains(name), "{text}");
        assert!(text.contains(" % explained") || text.contains(" nats better than the mean"), "{text}");
        assert!(fit.to_string().lines().any(|line| line.starts_with("chosen:") && line.contains(name)));
    }
}
