//! Searches: against trials made by hand, on streams, and what they refuse.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ndarray::{Array1, Array2, Axis, s};
use rand::RngExt;
use rand_distr::StandardNormal;
use random_features::apply::{
    Criterion, KernelRidge, RidgeFit, RidgeGrid, RidgeSearch, RidgeStatistics, RidgeTrial, RidgeWarning,
    Standardisation,
};
use random_features::data::{Statistics, lengthscale};
use random_features::frequency::{Frequencies, Orthogonal};
use random_features::kernel::{Activation, Gaussian, Kernel, Lengthscale, Softmax};
use random_features::map::AnyKernel;
use random_features::progress::{self, Progress};
use random_features::{Error, Map, Nonlinear, Positive, Real, Targets, Trigonometric, rng};

use super::{trigonometric, weights};
use crate::common::weigh;

const LENGTHSCALES: [f64; 3] = [0.3, 1.0, 3.0];

/// Points with noisy targets.
fn data<T: Real>(n: usize) -> (Array2<T>, Array2<T>) {
    let (x, mut y) = super::data::<T>(n);
    let mut generator = rng(n as u64);
    y.mapv_inplace(|y| y + T::narrow(0.1 * generator.sample::<f64, _>(StandardNormal)));
    (x, y)
}

fn maps(m: usize) -> Vec<Map<f64>> {
    LENGTHSCALES.map(|ell| trigonometric(m, ell)).to_vec()
}

/// One λ for both targets, as a grid has.
fn search<'a, T: Real>(m: usize) -> RidgeSearch<'a, T> {
    let omega = Orthogonal.draw(3, m, 7).unwrap();
    RidgeSearch::new(omega, |omega, ell| Trigonometric.gaussian(omega, ell)).without_lambda_per_target()
}

/// Whether a search warns of the scale of inputs.
fn has_scale<T: Real>(found: &RidgeFit<T>) -> bool {
    found.warnings().iter().any(|warning| {
        matches!(
            warning,
            RidgeWarning::UnequalInputs { .. }
                | RidgeWarning::NarrowInputs { .. }
                | RidgeWarning::WideInputs { .. }
        )
    })
}

/// A line is best on the longest lengthscale, in which inputs hardly range: a shorter one was worse, and no warning recommends it. Where
/// no other lengthscale was tried, the warning stands.
#[test]
fn advice_that_errors_refute_is_not_given() {
    let mut rng = rng(5);
    let x = Array2::from_shape_simple_fn((150, 3), || rng.sample::<f64, _>(StandardNormal));
    let y = x.column(0).mapv(|v| v + 0.1 * rng.sample::<f64, _>(StandardNormal));
    let of = |scales: &[f64]| {
        search(60).without_standardisation().with_lengthscales(scales.to_vec()).fit(&x, &y).unwrap()
    };
    let found = of(&[0.3, 1e3]);
    let is_longest =
        |warning: &RidgeWarning| matches!(warning, RidgeWarning::Lengthscale { longest: true, .. });
    assert!(found.warnings().iter().any(is_longest), "{:?}", found.warnings());
    assert!(!has_scale(&found), "{:?}", found.warnings());
    // A grid says no more.
    let maps = [0.3, 1e3].map(|ell| trigonometric(60, ell)).to_vec();
    let mut grid = RidgeGrid::new(maps, 1).unwrap();
    grid.update(&x, &y).unwrap();
    let found = grid.choose(&Criterion::GeneralisedCrossValidation, None).unwrap();
    assert!(found.warnings().iter().any(is_longest) && !has_scale(&found), "{:?}", found.warnings());
    // One lengthscale is compared with no other.
    assert!(has_scale(&of(&[1e3])));
}

/// The numbers of maps that a watcher is told to be tried, of so many.
type Reports = Arc<Mutex<Vec<(usize, usize)>>>;

/// A watcher that lets all work go on, and what it is told.
fn reports() -> (Reports, impl FnMut(&Progress<'_>) -> ControlFlow<()> + Send + 'static) {
    let reports = Reports::default();
    let sink = reports.clone();
    let watcher = move |progress: &Progress<'_>| {
        // A step has words for its result.
        if progress.task == "maps tried" && !progress.detail.to_string().is_empty() {
            sink.lock().unwrap().push((progress.done, progress.total.unwrap()));
        }
        ControlFlow::Continue(())
    };
    (reports, watcher)
}

#[test]
fn a_grid_has_the_errors_and_the_model_of_each_map() {
    let (x, y) = data::<f64>(500);
    let w = weights(500);
    let mut grid = RidgeGrid::new(maps(20), 2).unwrap();
    for rows in [0..100, 100..350, 350..500] {
        let (x, y) = (x.slice(s![rows.clone(), ..]), y.slice(s![rows.clone(), ..]));
        grid.update(x, weigh(y, &w.slice(s![rows]))).unwrap();
    }
    let held = data::<f64>(700);
    let criteria = [
        Criterion::GeneralisedCrossValidation,
        Criterion::LogEvidence,
        Criterion::held_out(held.0.slice(s![500.., ..]), held.1.slice(s![500.., ..])),
    ];
    for criterion in criteria {
        for lambdas in [None, Some(&[1e-3, 1e-1, 1e-20, 10.0][..])] {
            let fit = grid.choose(&criterion, lambdas).unwrap();
            let mut best: Option<(usize, f64, f64)> = None;
            for (k, map) in maps(20).into_iter().enumerate() {
                let mut statistics = RidgeStatistics::new(map, 2).unwrap();
                statistics.update(&x, weigh(&y, &w)).unwrap();
                let spectrum = statistics.spectrum().unwrap();
                let own = match lambdas {
                    None => spectrum.lambdas(),
                    Some(_) => vec![1e-3, 1e-1, 10.0],
                };
                let trial = &fit.trials()[k];
                assert_eq!(trial.lambdas.len(), own.len());
                let errors = spectrum.errors(&criterion, &own).unwrap();
                // Rows are cut otherwise, which small λ magnify.
                for (k, lambda) in own.iter().enumerate().filter(|(_, lambda)| **lambda > 1e-6) {
                    let (a, b) = (trial.errors[k], errors[k]);
                    assert!((a / b - 1.0).abs() < 1e-6, "{a} is not {b} for {lambda}");
                }
                assert_eq!(trial.lengthscale, Some(LENGTHSCALES[k].into()));
                assert_eq!((trial.m, trial.feature_dim), (Some(20), 40));
                let (lambda, error) = (trial.lambda().unwrap(), trial.error());
                if best.is_none_or(|(_, _, least)| error < least) {
                    best = Some((k, lambda, error));
                }
            }
            let (k, lambda, error) = best.unwrap();
            assert_eq!((fit.best(), fit.lambda(), fit.error()), (&fit.trials()[k], lambda, error));
            let model = grid.statistics()[k].spectrum().unwrap().model(lambda).unwrap();
            assert_eq!(fit.model().weights(), model.weights());
            assert!(fit.to_string().lines().nth(k).unwrap().starts_with('*'));
        }
    }
}

#[test]
fn grids_merge_and_failed_updates_change_nothing() {
    let (x, y) = data::<f64>(300);
    let whole = {
        let mut grid = RidgeGrid::new(maps(10), 2).unwrap();
        grid.update(&x, &y).unwrap();
        grid
    };
    let mut left = RidgeGrid::new(maps(10), 2).unwrap();
    left.update(x.slice(s![..100, ..]), y.slice(s![..100, ..])).unwrap();
    let mut right = RidgeGrid::new(maps(10), 2).unwrap().with_first_row(100).unwrap();
    right.update(x.slice(s![100.., ..]), y.slice(s![100.., ..])).unwrap();
    left.merge(&right).unwrap();
    let errors = |grid: &RidgeGrid<f64>| grid.choose(&Criterion::LogEvidence, Some(&[1e-3, 0.1])).unwrap();
    for (a, b) in errors(&left).trials().iter().zip(errors(&whole).trials()) {
        assert!(a.errors.iter().zip(&b.errors).all(|(a, b)| (a - b).abs() < 1e-6 * b.abs()));
    }
    assert!(matches!(left.merge(&right), Err(Error::Row { row: 100, .. })));
    assert!(matches!(
        left.merge(&RidgeGrid::new(maps(10).split_off(1), 2).unwrap()),
        Err(Error::Shape { .. })
    ));

    // The second map has a sum beyond what can be added: e^(½‖x‖²) for the softmax kernel.
    let omega = Orthogonal.draw(3, 10, 1).unwrap();
    let both = [trigonometric(10, 1.0), Trigonometric.softmax(omega).unwrap()];
    let mut grid = RidgeGrid::new(both, 2).unwrap();
    grid.update(&x, &y).unwrap();
    let model = grid.statistics()[0].solve(0.1).unwrap();
    let far = Array2::from_elem((5, 3), 40.0);
    assert!(grid.update(&far, &Array2::ones((5, 2))).is_err());
    assert_eq!(grid.statistics()[0].solve(0.1).unwrap().weights(), model.weights());
    assert_eq!((grid.statistics()[0].rows(), grid.statistics()[1].rows()), (300, 300));
    grid.update(&x, &y).unwrap();
    assert_eq!(grid.statistics()[0].row_ranges(), grid.statistics()[1].row_ranges());
    assert!(matches!(RidgeGrid::<f64>::new([], 1), Err(Error::Parameter { .. })));
    assert!(matches!(grid.choose(&Criterion::LogEvidence, Some(&[])), Err(Error::Parameter { .. })));
    assert!(matches!(grid.choose(&Criterion::LogEvidence, Some(&[-1.0])), Err(Error::Parameter { .. })));
    assert!(matches!(whole.choose(&Criterion::LogEvidence, Some(&[1e-30])), Err(Error::Singular { .. })));
}

#[test]
fn a_search_is_a_grid_over_standardised_inputs() {
    let (x, y) = data::<f64>(600);
    let x = x * 10.0 + 3.0;
    let found = search(20)
        .with_lengthscales(LENGTHSCALES)
        .with_lambdas([1e-3, 1e-1, 10.0])
        .with_criterion(Criterion::GeneralisedCrossValidation)
        .fit(&x, &y)
        .unwrap();
    let inputs = Standardisation::of(&x).unwrap();
    let mut grid = RidgeGrid::new(maps(20), 2).unwrap().with_standardisation(inputs.clone()).unwrap();
    grid.update(&x, &y).unwrap();
    let expected = grid.choose(&Criterion::GeneralisedCrossValidation, Some(&[1e-3, 1e-1, 10.0])).unwrap();
    assert_eq!(found.trials(), expected.trials());
    assert_eq!((found.lambda(), found.error()), (expected.lambda(), expected.error()));
    assert_eq!(found.model().predict(&x).unwrap(), expected.model().predict(&x).unwrap());
    assert_eq!(found.model().standardisation(), Some(&inputs));
    assert!(!has_scale(&found));
    // Leave-one-out takes the rows of the search.
    let found = search(20).with_lengthscales(LENGTHSCALES).without_intercept().fit(&x, &y).unwrap();
    let mut grid = RidgeGrid::new(maps(20), 2)
        .unwrap()
        .with_standardisation(inputs.clone())
        .unwrap()
        .without_intercept();
    grid.update(&x, &y).unwrap();
    let expected = grid.choose(&Criterion::leave_one_out(&x, &y), None).unwrap();
    assert_eq!((found.trials(), found.lambda()), (expected.trials(), expected.lambda()));
}

#[test]
fn default_lengthscales_surround_the_median_distance() {
    let (x, y) = data::<f64>(200);
    let found = search(10).without_standardisation().fit(&x, &y).unwrap();
    let median = lengthscale::median_of_subsample(&x, 1000, 0).unwrap();
    let tried: Vec<_> = found.trials().iter().map(|trial| trial.lengthscale.clone().unwrap()).collect();
    let expected: Vec<Lengthscale> =
        (-4..=4).map(|k| (median * 2f64.powf(0.5 * f64::from(k))).into()).collect();
    // Waves along coordinates come after them.
    assert_eq!(tried[..9], expected);
}

#[test]
fn numbers_of_frequencies_share_a_draw() {
    let (x, y) = data::<f64>(600);
    let search = search(60).with_criterion(Criterion::GeneralisedCrossValidation);
    let found = search.with_lengthscales([1]).with_frequencies([7, 30, 60, 1000]).fit(&x, &y).unwrap();
    let counts: Vec<_> = found.trials().iter().map(|trial| trial.m.unwrap()).collect();
    // Blocks of three.
    assert_eq!(counts, [9, 30, 60, 60]);
    assert_eq!(found.trials()[2].errors, found.trials()[3].errors);
    // The leading features of one draw: with as many rows of ω given by hand.
    let omega = Orthogonal.draw(3, 60, 7).unwrap();
    let leading =
        random_features::frequency::Frequencies::from_rows(omega.rows().slice(s![..30, ..]).to_owned())
            .unwrap();
    let map: Map<f64> = Trigonometric.build(leading, AnyKernel::implied(1.0)).unwrap();
    let mut grid =
        RidgeGrid::new([map], 2).unwrap().with_standardisation(Standardisation::of(&x).unwrap()).unwrap();
    grid.update(&x, &y).unwrap();
    let by_hand = grid.choose(&Criterion::GeneralisedCrossValidation, None).unwrap();
    assert_eq!(found.trials()[1].errors, by_hand.trials()[0].errors);
}

#[test]
fn a_search_on_some_rows_fits_all() {
    let (x, y) = data::<f64>(3000);
    for criterion in [
        Criterion::LeaveOneOut,
        Criterion::GeneralisedCrossValidation,
        Criterion::LogEvidence,
        Criterion::HeldOutShare(0.25),
    ] {
        let search =
            search(20).with_lengthscales(LENGTHSCALES).with_rows(400).with_criterion(criterion.clone());
        let found = search.fit(&x, &y).unwrap();
        let again = search.fit(&x, &y).unwrap();
        assert_eq!(found.trials(), again.trials());
        let other = search.with_seed(1).fit(&x, &y).unwrap();
        assert_ne!(found.trials(), other.trials());
        // The model is that of all rows for the λ that was chosen.
        let ell = found.best().lengthscale.clone().unwrap();
        let Lengthscale::Isotropic(ell) = ell else { panic!("{ell:?}") };
        let map = trigonometric(20, ell);
        let mut statistics = RidgeStatistics::new(map, 2)
            .unwrap()
            .with_standardisation(Standardisation::of(&x).unwrap())
            .unwrap();
        statistics.update(&x, &y).unwrap();
        let expected = statistics.spectrum().unwrap().model(found.lambda()).unwrap();
        assert_eq!(found.model().weights(), expected.weights());
        let error = (found.model().predict(&x).unwrap() - &y).mapv(|e| e * e).mean().unwrap();
        assert!(error < 0.03, "{error}");
        if matches!(criterion, Criterion::LeaveOneOut) {
            // At some rows, of the regression on all.
            let all = statistics.spectrum().unwrap();
            let lambda = found.lambda();
            let exact = all.errors(&Criterion::leave_one_out(&x, &y), &[lambda]).unwrap()[0];
            assert!((found.error() / exact - 1.0).abs() < 0.25);
        }
    }
}

/// Of a coordinate on which the targets depend as a wave, one on which they depend as a line, and one that does not matter,
/// the first gets the short lengthscale.
#[test]
fn lengthscales_of_coordinates_find_what_matters() {
    let mut generator = rng(5);
    let x = Array2::from_shape_fn((1500, 3), |_| 2.0 * generator.random::<f64>());
    let y = Array2::from_shape_fn((1500, 1), |(i, _)| {
        (3.0 * x[[i, 0]]).sin() + 0.3 * x[[i, 1]] + 0.1 * generator.sample::<f64, _>(StandardNormal)
    });
    let (reports, watcher) = reports();
    let found =
        progress::watch(watcher, || search(120).with_lengthscale_per_dimension(3).fit(&x, &y)).unwrap();
    // The best of the nine default lengthscales is not the longest. Two coordinates have waves.
    let total = 9 + 2 * 3 * 3 + 2 * 3;
    let reports = reports.lock().unwrap();
    assert_eq!((reports.last(), found.trials().len()), (Some(&(total, total)), total));
    assert!(reports.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{reports:?}");
    let Some(Lengthscale::PerDimension(scales)) = &found.best().lengthscale else { panic!("{found}") };
    assert!(4.0 * scales[0] < scales[1].min(scales[2]), "{scales:?}");
    let isotropic = found.trials()[..9].iter().map(|t| t.error()).fold(f64::INFINITY, f64::min);
    // The noise has variance 0.01, which no map explains.
    let own = found.best().error();
    assert!(own - 0.01 < 0.6 * (isotropic - 0.01), "{found}");
}

#[test]
fn labels_weights_and_maps_of_other_kinds() {
    let x = data::<f32>(400).0;
    let labels: Vec<usize> =
        x.column(0).iter().map(|x| usize::from(*x > 0.3) + usize::from(*x > 1.0)).collect();
    let of = RidgeSearch::of(|ell| Positive.gaussian::<f32>(Orthogonal.draw(3, 60, 1)?, ell));
    let found = of.fit(&x, Targets::of_labels(&labels, 3).unwrap()).unwrap();
    let right = found.model().classify(&x).unwrap().iter().zip(&labels).filter(|(a, b)| a == b).count();
    assert!(right > 370, "{right}");
    let far = Targets::<f32>::of_labels(&[2, 3], 3);
    assert!(matches!(far, Err(Error::Entry { row: 1, .. })));
    // Rows without weight are not there.
    let (x, y) = data::<f64>(300);
    let half = Array1::from_shape_fn(300, |i| if i < 200 { 1.0 } else { 0.0 });
    let weighted = search(10).fit(&x, weigh(&y, &half)).unwrap();
    let alone = search(10).fit(x.slice(s![..200, ..]), y.slice(s![..200, ..])).unwrap();
    assert!((weighted.error() / alone.error() - 1.0).abs() < 0.2, "{weighted}\n{alone}");
}

#[test]
fn searches_refuse_what_makes_no_sense() {
    let (x, y) = data::<f64>(50);
    let parameter = |result: Result<_, Error>| {
        let error = result.map(|_: random_features::apply::RidgeFit<f64>| ()).unwrap_err();
        assert!(matches!(error, Error::Parameter { .. }), "{error}");
    };
    parameter(search(10).with_lengthscales(Vec::<f64>::new()).fit(&x, &y));
    parameter(search(10).with_lengthscales([-1.0]).fit(&x, &y));
    parameter(search(10).with_lambdas([]).fit(&x, &y));
    parameter(search(10).with_frequencies([]).fit(&x, &y));
    parameter(search(10).with_frequencies([5, 0]).fit(&x, &y));
    let own = RidgeSearch::of(|ell| Trigonometric.gaussian::<f64>(Orthogonal.draw(3, 10, 1)?, ell));
    assert!(matches!(own.with_frequencies([5]).fit(&x, &y), Err(Error::Unsupported { .. })));
    parameter(search(10).with_rows(0).fit(&x, &y));
    for share in [0.0, 1.0, f64::NAN, 1e-9] {
        parameter(search(10).with_criterion(Criterion::HeldOutShare(share)).fit(&x, &y));
    }
    parameter(search(10).fit(&Array2::ones((50, 3)), &y));
    parameter(search(10).fit(&x, &Array2::zeros((50, 0))));
    assert!(matches!(search(10).fit(&x, y.slice(s![..4, ..])), Err(Error::Shape { .. })));
    assert!(matches!(search(10).fit(x.slice(s![..0, ..]), y.slice(s![..0, ..])), Err(Error::NoData { .. })));
    assert!(matches!(search(10).fit(x.slice(s![.., ..2]), &y), Err(Error::Shape { .. })));
    let mut holed = x.clone();
    holed[[4, 1]] = f64::INFINITY;
    assert!(matches!(search(10).fit(&holed, &y), Err(Error::NotFinite { row: 4, .. })));
    let none = Array1::zeros(50);
    assert!(search::<f64>(10).fit(&x, weigh(&y, &none)).is_err());
}

/// On noise no λ predicts anything: no criterion may say so because differences of large sums vanish.
#[test]
fn noise_is_not_predicted_by_any_lambda() {
    let mut generator = rng(11);
    for n in [10, 30, 100] {
        let mut normal = |d| Array2::from_shape_fn((n, d), |_| generator.sample::<f64, _>(StandardNormal));
        let (x, y) = (normal(10), normal(1));
        let gram = Gaussian::new(3.0).unwrap().gram(&x, &x).unwrap();
        let exact = KernelRidge::spectrum(&gram, &y).unwrap();
        let map: Map<f64> = Trigonometric.gaussian(Orthogonal.draw(10, 100, 3).unwrap(), 3.0).unwrap();
        let mut statistics = RidgeStatistics::new(map, 1).unwrap();
        statistics.update(&x, &y).unwrap();
        let features = statistics.spectrum().unwrap();
        let variance = (&y - y.mean().unwrap()).mapv(|y| y * y).mean().unwrap();
        let of_features = [Criterion::GeneralisedCrossValidation, Criterion::leave_one_out(&x, &y)];
        let of_gram = [Criterion::GeneralisedCrossValidation, Criterion::LeaveOneOut];
        for (criterion, of_gram) in of_features.into_iter().zip(of_gram) {
            let least = exact.choose(&of_gram, &exact.lambdas()).unwrap().1;
            assert!(least > 0.4 * variance, "n = {n}, exact kernel: {least} of {variance}");
            let least = features.choose(&criterion, &features.lambdas()).unwrap().1;
            assert!(least > 0.4 * variance, "n = {n}, features: {least} of {variance}");
        }
        assert!(exact.log_evidence(exact.lambdas()[0]).unwrap().is_finite());
    }
}

#[test]
fn lengthscales_that_see_nothing_and_rows_without_weight_do_no_harm() {
    let (x, y) = data::<f64>(400);
    let found = search(10).with_lengthscales([1.0, 1e8]).fit(&x, &y).unwrap();
    assert_eq!(found.best().lengthscale, Some(1.into()));
    assert!(
        search::<f32>(10)
            .with_lengthscales([1.0, 1e4])
            .fit(&x.mapv(|v| v as f32), &y.mapv(|v| v as f32))
            .is_ok()
    );
    // Equal rows, of which no feature differs.
    let mut constant = RidgeStatistics::new(trigonometric::<f64>(5, 1.0), 2).unwrap();
    constant.update(&Array2::zeros((10, 3)), y.slice(s![..10, ..])).unwrap();
    let spectrum = constant.spectrum().unwrap();
    assert!(spectrum.choose(&Criterion::GeneralisedCrossValidation, &spectrum.lambdas()).is_ok());
    // Far rows that do not count.
    let mut far = Array2::from_elem((2000, 3), 1e6);
    far.slice_mut(s![..400, ..]).assign(&x);
    let mut targets = Array2::zeros((2000, 2));
    targets.slice_mut(s![..400, ..]).assign(&y);
    let counts = Array1::from_shape_fn(2000, |i| f64::from(u8::from(i < 400)));
    let weighted = search(10).fit(&far, weigh(&targets, &counts)).unwrap();
    let alone = search(10).fit(&x, weigh(&y, &Array1::ones(400))).unwrap();
    assert_eq!((weighted.trials(), weighted.lambda()), (alone.trials(), alone.lambda()));
}

#[test]
fn a_report_may_work_in_parallel() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
    let (x, y) = data::<f64>(300);
    let model = super::statistics(&trigonometric::<f64>(20, 1.0), &x, &y).solve(0.1).unwrap();
    let big = data::<f64>(20_000).0;
    pool.install(|| {
        for _ in 0..10 {
            let ((reports, mut report), model, big) = (reports(), model.clone(), big.clone());
            let watcher = move |progress: &Progress<'_>| {
                model.predict(&big).unwrap();
                report(progress)
            };
            progress::watch(watcher, || search::<f64>(20).fit(&x, &y)).unwrap();
            let reports = reports.lock().unwrap();
            assert!(!reports.is_empty() && reports.is_sorted_by(|a, b| a.0 < b.0), "{reports:?}");
        }
    });
}

/// Sums of very different sizes, of which a later map takes none.
#[test]
fn a_refused_batch_leaves_the_bits_of_all_maps() {
    let exponential: Map<f32> =
        Nonlinear::new(Activation::Exp).build(Orthogonal.draw(3, 10, 1).unwrap(), 1.0).unwrap();
    let mut grid = RidgeGrid::new([trigonometric::<f32>(10, 1.0), exponential], 2).unwrap();
    let (x, y) = data::<f32>(50);
    grid.update(&x, &y).unwrap();
    let before = grid.statistics()[0].products().unwrap();
    let far = Array2::from_elem((1, 3), 1e4f32);
    assert!(grid.update(&far, weigh(&Array2::ones((1, 2)), &Array1::from_elem(1, 1e25))).is_err());
    assert_eq!(grid.statistics()[0].products().unwrap(), before);
    // The warning is that of the map that was chosen.
    let mut grid =
        RidgeGrid::new([trigonometric::<f32>(10, 1e-5), trigonometric::<f32>(10, 1.0)], 2).unwrap();
    grid.update(&x, &y).unwrap();
    assert_eq!(grid.statistics()[0].input_warnings().len(), 1);
    assert!(!has_scale(&grid.choose(&Criterion::LogEvidence, None).unwrap()));
}

/// Fifty periods on a line, which no default lengthscale sees: the grid is extended until one does.
#[test]
fn default_lengthscales_reach_what_is_far_from_the_median() {
    let (x, y) = waves(1000);
    let omega = Orthogonal.draw(1, 256, 1).unwrap();
    let search = RidgeSearch::new(omega, |omega, ell| Trigonometric.gaussian::<f64>(omega, ell));
    let found = search.fit(&x, &y).unwrap();
    let variance = y.mapv(|y| y * y).mean().unwrap();
    let between = x.mapv(|x| x + 0.0004);
    let expected = between.mapv(wave);
    let error = (found.model().predict(&between).unwrap() - expected).mapv(|e| e * e).mean().unwrap();
    assert!(1.0 - error / variance >= 0.98, "{error}\n{found}");
    assert!(found.warnings().is_empty(), "{found}");
    assert!(found.trials().len() > 9 && found.trials()[8].to_string().contains("no better than the mean"));

    // What was given is not extended, and the fit says why it is bad.
    let search = search.with_lengthscales([0.5, 1.0, 2.0]);
    let bad = search.fit(&x, &y).unwrap();
    assert_eq!(bad.trials().len(), 3);
    assert!(matches!(bad.warnings()[0], RidgeWarning::Mean { .. }), "{bad}");
    assert!(bad.to_string().contains("warning: the regression is no better than the mean"), "{bad}");
    // Where it gets better towards an end, that end is named.
    let Some(Lengthscale::Isotropic(best)) = found.best().lengthscale else { panic!("{found}") };
    let short = search.with_lengthscales([best, 2.0 * best, 50.0 * best]).fit(&x, &y).unwrap();
    let end = |longest| RidgeWarning::Lengthscale { longest, coordinates: Vec::new(), at_limit: false };
    assert!(short.warnings().contains(&end(false)), "{short}");
    assert!(short.to_string().contains("the shortest that was tried"), "{short}");
}

/// sin 2π·50t.
fn wave(t: f64) -> f64 {
    (std::f64::consts::TAU * 50.0 * t).sin()
}

fn waves(n: usize) -> (Array2<f64>, Array2<f64>) {
    let x = Array2::from_shape_fn((n, 1), |(i, _)| i as f64 / n as f64);
    (x.clone(), x.mapv(wave))
}

/// On noise a search ends after a bounded number of maps, and says that it found nothing, by each criterion.
#[test]
fn what_is_no_better_than_the_mean_is_said() {
    let mut generator = rng(3);
    let mut normal = |d| Array2::from_shape_fn((300, d), |_| generator.sample::<f64, _>(StandardNormal));
    let (x, y) = (normal(3), normal(1));
    for criterion in [
        Criterion::LeaveOneOut,
        Criterion::GeneralisedCrossValidation,
        Criterion::LogEvidence,
        Criterion::HeldOutShare(0.3),
    ] {
        let found = search(20).with_criterion(criterion.clone()).fit(&x, &y).unwrap();
        assert!(found.trials().len() <= 9 + 16);
        assert!(matches!(found.warnings(), [RidgeWarning::Mean { .. }, ..]), "{criterion:?}: {found}");
        let (x, y) = data::<f64>(300);
        let found = search(20).with_criterion(criterion.clone()).fit(&x, &y).unwrap();
        assert!(!matches!(found.warnings(), [RidgeWarning::Mean { .. }, ..]), "{criterion:?}: {found}");
        let explained = 1.0 - found.best().error() / found.best().mean_error;
        assert!(matches!(criterion, Criterion::LogEvidence) || explained > 0.9, "{criterion:?}: {explained}");
    }
}

/// With 30 rows noise is hardly ever taken for a signal, and a signal of three quarters of the variance hardly ever for noise. Rates of 5 %
/// pass with a probability of 0.9998, and rates of 25 % with one of 0.005.
#[test]
fn warnings_of_the_mean_have_small_rates() {
    let warned = |seed: u64, criterion: Criterion<'_, f64>, signal: f64| {
        let mut generator = rng(seed);
        let mut normal = |d| Array2::from_shape_fn((30, d), |_| generator.sample::<f64, _>(StandardNormal));
        let (x, noise) = (normal(2), normal(1));
        let y = x.column(0).mapv(|v| signal * (1.5 * v).sin()).insert_axis(Axis(1)) + noise;
        let search = RidgeSearch::<f64>::new(Orthogonal.draw(2, 12, seed).unwrap(), |omega, ell| {
            Trigonometric.gaussian(omega, ell)
        });
        let found = search.with_criterion(criterion).fit(&x, &y).unwrap();
        found.warnings().iter().any(|warning| matches!(warning, RidgeWarning::Mean { .. }))
    };
    for criterion in [Criterion::LeaveOneOut, Criterion::LogEvidence] {
        let count = |signal: f64| (0..100).filter(|seed| warned(*seed, criterion.clone(), signal)).count();
        let (noise, signal) = (count(0.0), count(2.5));
        assert!(noise >= 86 && signal <= 14, "{criterion:?}: {noise} sets of noise, {signal} of a signal");
    }
}

#[test]
fn a_best_lambda_at_an_end_is_named() {
    let (x, y) = data::<f64>(500);
    let search = || search::<f64>(20).with_lengthscales([1.0]);
    let best = search().fit(&x, &y).unwrap().lambda();
    let warned = |lambdas: [f64; 3]| {
        let found = search().with_lambdas(lambdas.map(|factor| factor * best)).fit(&x, &y).unwrap();
        let of_lambda = |warning: &RidgeWarning| match warning {
            RidgeWarning::Lambda { largest, .. } => Some(*largest),
            _ => None,
        };
        found.warnings().iter().find_map(of_lambda)
    };
    assert_eq!(warned([0.01, 1.0, 100.0]), None);
    assert_eq!(warned([100.0, 1e3, 1e4]), Some(false));
    assert_eq!(warned([1e-4, 1e-6, 1e-5]), Some(true));
    // With one λ there is nothing to choose.
    let found = search().with_lambdas([100.0 * best]).fit(&x, &y).unwrap();
    assert!(!found.warnings().iter().any(|warning| matches!(warning, RidgeWarning::Lambda { .. })));
    // Larger ones than any eigenvalue are tried where they are better: noise on a map of one frequency.
    let mut generator = rng(8);
    let y = Array2::from_shape_fn((500, 1), |_| generator.sample::<f64, _>(StandardNormal));
    let mut statistics = RidgeStatistics::new(trigonometric::<f64>(3, 1.0), 1).unwrap();
    statistics.update(&x, &y).unwrap();
    let largest = statistics.spectrum().unwrap().lambdas()[0];
    let mut grid = RidgeGrid::new([trigonometric(3, 1.0)], 1).unwrap();
    grid.update(&x, &y).unwrap();
    let found = grid.choose(&Criterion::leave_one_out(&x, &y), None).unwrap();
    assert!(found.lambda() > largest, "{found}");
    assert!(matches!(found.warnings(), [RidgeWarning::Mean { .. }]), "{found}");
}

/// One smooth target beside noise that is a thousand times as large: the λ for both is that of the noise.
#[test]
fn a_target_that_the_common_lambda_does_not_suit_is_named() {
    let mut generator = rng(6);
    let x = Array2::from_shape_fn((400, 1), |(i, _)| i as f64 / 100.0);
    let y = Array2::from_shape_fn((400, 2), |(i, j)| {
        let noise = generator.sample::<f64, _>(StandardNormal);
        if j == 0 { (3.0 * x[[i, 0]]).sin() + 0.01 * noise } else { 1000.0 * noise }
    });
    let omega = || Orthogonal.draw(1, 50, 1).unwrap();
    let search = || {
        RidgeSearch::new(omega(), |omega, ell| Trigonometric.gaussian::<f64>(omega, ell))
            .without_lambda_per_target()
    };
    let found = search().with_lengthscales([0.5]).fit(&x, &y).unwrap();
    let targets = |found: &RidgeFit<f64>| {
        found.warnings().iter().find(|warning| matches!(warning, RidgeWarning::Targets { .. })).cloned()
    };
    let Some(RidgeWarning::Targets { target: 0, lambda, own_error, error }) = targets(&found) else {
        panic!("{found}")
    };
    assert!(error > 10.0 * own_error && lambda < 0.1 * found.lambda(), "{found}");
    // What it says of the target alone is what a search for it finds.
    let first = y.slice(s![.., ..1]).to_owned();
    let alone = search().with_lengthscales([0.5]);
    let alone = alone.with_criterion(Criterion::GeneralisedCrossValidation).fit(&x, &first).unwrap();
    assert!((alone.error() / own_error - 1.0).abs() < 0.2, "{own_error}: {alone}");
    assert_eq!(targets(&alone), None);
    // Targets of the same kind are content.
    let both = ndarray::concatenate![ndarray::Axis(1), first, first.mapv(|y| 1e3 * y)];
    assert_eq!(targets(&search().with_lengthscales([0.5]).fit(&x, &both).unwrap()), None);
}

/// Groups of five equal rows, of which leave-one-out sees four while it predicts the fifth.
#[test]
fn repeated_rows_are_noticed() {
    let (x, y) = data::<f64>(60);
    let five = |a: &Array2<f64>| {
        ndarray::concatenate![ndarray::Axis(0), a.view(), a.view(), a.view(), a.view(), a.view()]
    };
    let (all, targets) = (five(&x), five(&y));
    let repeated = |found: &RidgeFit<f64>| {
        found.warnings().iter().find(|warning| matches!(warning, RidgeWarning::Repeated { .. })).cloned()
    };
    let expected = Some(RidgeWarning::Repeated { repeated: 240, rows: 300 });
    let search = || search::<f64>(20).with_lengthscales([0.5, 1.0]);
    assert_eq!(repeated(&search().fit(&x, &y).unwrap()), None);
    let found = search().fit(&all, &targets).unwrap();
    assert_eq!(repeated(&found), expected);
    assert!(found.to_string().contains("240 of 300 rows repeat earlier ones"), "{found}");
    assert_eq!(repeated(&search().with_rows(100).fit(&all, &targets).unwrap()), expected);
    // The evidence takes each row for an observation, as it says.
    let evidence = search().with_criterion(Criterion::LogEvidence);
    assert_eq!(repeated(&evidence.fit(&all, &targets).unwrap()), None);
    let mut grid = RidgeGrid::new(maps(10), 2).unwrap();
    grid.update(&all, &targets).unwrap();
    assert_eq!(repeated(&grid.choose(&Criterion::leave_one_out(&all, &targets), None).unwrap()), expected);
    // Zeros of either sign are equal.
    let mut zeros = all.clone();
    zeros.slice_mut(s![..60, 0]).fill(0.0);
    zeros.slice_mut(s![60.., 0]).fill(-0.0);
    assert_eq!(repeated(&search().fit(&zeros, &targets).unwrap()), expected);
    // Equal points with other targets are observations of their own.
    let mut noisy = targets.clone();
    let mut generator = rng(4);
    noisy.mapv_inplace(|y| y + 0.1 * generator.sample::<f64, _>(StandardNormal));
    assert_eq!(repeated(&search().fit(&all, &noisy).unwrap()), None);
}

/// All maps have the memory of one draw, for each number of frequencies, and on one thread they exist one at a time.
#[test]
fn maps_share_one_copy_of_the_frequencies() {
    let omega = Arc::new(Orthogonal.draw(3, 30, 7).unwrap());
    let seen: Mutex<Vec<(Arc<Frequencies>, usize)>> = Mutex::default();
    let make = |omega: Arc<Frequencies>, ell: Lengthscale| {
        let shares = Arc::strong_count(&omega);
        let mut seen = seen.lock().unwrap();
        let before = seen.iter().filter(|(other, _)| Arc::ptr_eq(other, &omega)).count();
        // Beside what this test itself holds.
        seen.push((omega.clone(), shares - before));
        Trigonometric.gaussian::<f64>(omega, ell)
    };
    let (x, y) = data::<f64>(200);
    let search = RidgeSearch::new(omega.clone(), make).with_frequencies([9, 30, 1000]);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| search.fit(&x, &y)).unwrap();
    drop(search);
    let seen = seen.into_inner().unwrap();
    let mut places: Vec<*const Frequencies> = seen.iter().map(|(omega, _)| Arc::as_ptr(omega)).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 2, "9 of them, and all 30 twice");
    assert!(places.contains(&Arc::as_ptr(&omega)));
    let most = seen.iter().map(|(_, shares)| *shares).max().unwrap();
    assert!(seen.len() > 50 && most <= 6, "{most} of {}", seen.len());
}

/// A search stops between maps and within them.
#[test]
fn a_search_stops_when_it_is_told() {
    let (x, y) = data::<f64>(4000);
    let search = || search::<f64>(60);
    let stopped = progress::watch(
        |progress: &Progress<'_>| match progress.task {
            "maps tried" if progress.done >= 2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        },
        || search().fit(&x, &y).map(drop),
    );
    assert_eq!(stopped, Err(Error::Cancelled));
    // Within a map that takes long, on the sums of 400 000 rows: asked again every tenth of a second.
    let (x, y) = data::<f64>(20_000);
    let x = Array2::from_shape_fn((400_000, 3), |(i, k)| x[[i % 20_000, k]]);
    let y = Array2::from_shape_fn((400_000, 2), |(i, j)| y[[i % 20_000, j]]);
    let told = Arc::new(Mutex::new(None));
    let sink = told.clone();
    let watcher = move |_: &Progress<'_>| {
        sink.lock().unwrap().get_or_insert_with(Instant::now);
        ControlFlow::Break(())
    };
    let all = || search().with_lengthscales([1.0]).with_rows(usize::MAX).fit(&x, &y).map(drop);
    assert_eq!(progress::watch(watcher, all), Err(Error::Cancelled));
    let late = told.lock().unwrap().unwrap().elapsed();
    assert!(late < Duration::from_secs(2), "{late:?}");
}

/// With short lengthscales sums of e^(½‖x/ℓ‖²) overflow: such maps are left out, and named where they were asked for.
#[test]
fn a_map_that_cannot_be_fitted_ends_no_search() {
    let mut generator = rng(3);
    let mut normal = |d| Array2::from_shape_fn((300, d), |_| generator.sample::<f64, _>(StandardNormal));
    let (x, y) = (normal(3), normal(1));
    let search =
        || RidgeSearch::<f64>::of(|ell| Trigonometric.build(Orthogonal.draw(3, 20, 1)?, Softmax::new(ell)?));
    let given = search().with_lengthscales([1e-3, 1.0]).fit(&x, &y).unwrap();
    assert_eq!(given.trials().len(), 1, "{given}");
    let failed = given.warnings().iter().find_map(|warning| match warning {
        RidgeWarning::Failed { maps, error } => Some((*maps, error.clone())),
        _ => None,
    });
    let alone = search().with_lengthscales([1e-3, 1e-4]).fit(&x, &y).map(drop).unwrap_err();
    assert_eq!(failed, Some((1, alone)));
    assert!(given.to_string().contains("one map could not be fitted"), "{given}");
    // On noise, shorter lengthscales than the default ones are tried, until sums overflow.
    let found = search().fit(&x, &y).unwrap();
    assert!(matches!(found.warnings(), [RidgeWarning::Mean { .. }, ..]), "{found}");
    // In one coordinate after the other.
    assert!(search().with_lengthscales([0.3]).with_lengthscale_per_dimension(2).fit(&x, &y).is_ok());
}

/// On noise no lengthscale is promising, least of all one whose map fails: none beyond it is tried for its sake.
#[test]
fn a_map_that_fails_is_no_best() {
    let mut generator = rng(3);
    let mut normal = |d| Array2::from_shape_fn((100, d), |_| generator.sample::<f64, _>(StandardNormal));
    let (x, y) = (normal(3), normal(1));
    let search = |broken: f64| {
        let search = RidgeSearch::<f64>::of(move |ell| match ell {
            Lengthscale::Isotropic(own) if own == broken => Err(Error::NoData { what: "this lengthscale" }),
            _ => Trigonometric.gaussian(Orthogonal.draw(3, 4, 1)?, ell),
        });
        search.fit(&x, &y).unwrap()
    };
    let longest = |fit: &RidgeFit<f64>| {
        let of = |trial: &RidgeTrial| match trial.lengthscale {
            Some(Lengthscale::Isotropic(ell)) => ell,
            _ => panic!("{trial}"),
        };
        fit.trials().iter().map(of).fold(0.0, f64::max)
    };
    let whole = search(f64::MAX);
    assert!(matches!(whole.warnings(), [RidgeWarning::Mean { .. }, ..]), "{whole}");
    let failed = search(longest(&whole));
    assert!(longest(&failed) < longest(&whole), "{failed}");
}

/// Noise of several targets has as many chances: what their mean is to be beaten by grows with the logarithm of their number.
#[test]
fn more_targets_need_more_nats() {
    let mut generator = rng(4);
    let mut normal = |d| Array2::from_shape_fn((100, d), |_| generator.sample::<f64, _>(StandardNormal));
    let (x, y) = (normal(3), normal(5));
    let needed = |targets: usize| {
        let fit = search::<f64>(4).with_lengthscales([1.0]).fit(&x, y.slice(s![.., ..targets])).unwrap();
        let of = |warning: &RidgeWarning| match warning {
            RidgeWarning::Mean { needed, .. } => Some(*needed),
            _ => None,
        };
        fit.warnings().iter().find_map(of).unwrap()
    };
    assert!((needed(5) - needed(1) - 5f64.ln()).abs() < 1e-12);
}

/// Every map predicts the same of constant targets: no advice can be better than another.
#[test]
fn targets_that_do_not_vary_are_said() {
    let x = data::<f64>(200).0;
    let y = Array2::from_shape_fn((200, 2), |(_, j)| 3.0 + j as f64);
    for criterion in [
        Criterion::LeaveOneOut,
        Criterion::GeneralisedCrossValidation,
        Criterion::LogEvidence,
        Criterion::HeldOutShare(0.3),
    ] {
        for search in [search(20), search(20).with_lengthscales([0.5, 1.0]).with_lambdas([1.0, 1e-3])] {
            let found = search.with_criterion(criterion.clone()).fit(&x, &y).unwrap();
            assert_eq!(found.warnings(), [RidgeWarning::Constant], "{criterion:?}: {found}");
            assert!(found.to_string().contains("the targets do not vary"), "{found}");
            let off = found.model().predict(&x).unwrap() - &y;
            assert!(off.iter().all(|off| off.abs() < 1e-9));
        }
    }
    let found = search(20).fit(&x, Targets::of_labels(&vec![1; 200], 3).unwrap()).unwrap();
    assert_eq!(found.warnings(), [RidgeWarning::Constant], "{found}");
    assert_eq!(found.model().classify(&x).unwrap(), vec![1; 200]);
}

/// The λ that would suit a target is one of all rows, not of the few on which maps were tried.
#[test]
fn the_lambda_of_a_target_is_that_of_all_rows() {
    let mut generator = rng(6);
    let x = Array2::from_shape_fn((3000, 1), |(i, _)| i as f64 / 750.0);
    let y = Array2::from_shape_fn((3000, 2), |(i, j)| {
        let noise = generator.sample::<f64, _>(StandardNormal);
        if j == 0 { (3.0 * x[[i, 0]]).sin() + 0.01 * noise } else { 1000.0 * noise }
    });
    let omega = Orthogonal.draw(1, 50, 1).unwrap();
    let search = RidgeSearch::new(omega, |omega, ell| Trigonometric.gaussian::<f64>(omega, ell));
    let search = search.without_lambda_per_target();
    let found = search.with_lengthscales([0.5]).with_rows(400).fit(&x, &y).unwrap();
    let of_target = |warning: &RidgeWarning| match warning {
        RidgeWarning::Targets { target: 0, lambda, .. } => Some(*lambda),
        _ => None,
    };
    let lambda = found.warnings().iter().find_map(of_target).unwrap_or_else(|| panic!("{found}"));
    assert!(found.spectrum().lambdas().contains(&lambda), "{lambda}: {found}");
    assert!(!found.best().lambdas.contains(&lambda), "{lambda}: {found}");
}

/// Inputs are standardised by the moments of the weighted rows.
#[test]
fn weights_standardise() {
    let (x, y) = data::<f64>(200);
    let w = Array1::from_shape_fn(200, |i| if x[[i, 0]] > 0.0 { 3.0 } else { 0.5 });
    let found = search(10).with_lengthscales(LENGTHSCALES).fit(&x, weigh(&y, &w)).unwrap();
    let mut statistics = Statistics::new(3).unwrap();
    statistics.update_weighted(&x, &w).unwrap();
    let inputs = Standardisation::of_statistics(&statistics).unwrap();
    let used = found.model().standardisation().unwrap();
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(
        near(used.centre(), inputs.centre()) && near(used.scales(), inputs.scales()),
        "{used:?} {inputs:?}"
    );
    assert!(!near(used.scales(), Standardisation::of(&x).unwrap().scales()));
}

/// The ends of the lengthscales are those that were tried with as many frequencies as the best map has.
#[test]
fn lengthscales_of_other_numbers_of_frequencies_are_no_ends() {
    let (x, y) = data::<f64>(300);
    let maps = [(20, 1.0), (20, 3.0), (1, 0.1), (1, 30.0)].map(|(m, ell)| trigonometric(m, ell));
    let mut grid = RidgeGrid::new(maps, 2).unwrap();
    grid.update(&x, &y).unwrap();
    let found = grid.choose(&Criterion::GeneralisedCrossValidation, None).unwrap();
    assert_eq!(found.best().m, Some(20), "{found}");
    let is_end = |warning: &RidgeWarning| matches!(warning, RidgeWarning::Lengthscale { .. });
    assert_eq!(found.warnings().iter().filter(|warning| is_end(warning)).count(), 1, "{found}");
}

/// Errors that are rounding beside the variance of a target are no reason for a regression of its own, however many times larger than
/// others they are.
#[test]
fn errors_of_rounding_suit_every_target() {
    let map = trigonometric::<f64>(10, 1.0);
    let (x, mut y) = data::<f64>(200);
    let mut generator = rng(9);
    // The direction in which features differ most, beside noise, which likes the larger λ.
    let (z, spectrum) = (super::features(&map, &x), super::statistics(&map, &x, &y).spectrum().unwrap());
    y.column_mut(0).assign(&z.dot(&spectrum.eigenvectors().column(19)));
    y.column_mut(1).mapv_inplace(|_| 1000.0 * generator.sample::<f64, _>(StandardNormal));
    let mut grid = RidgeGrid::new([map], 2).unwrap();
    grid.update(&x, &y).unwrap();
    let found = grid.choose(&Criterion::GeneralisedCrossValidation, Some(&[1e-3, 1e-4])).unwrap();
    assert_eq!(found.lambda(), 1e-3);
    let first = y.slice(s![.., ..1]).to_owned();
    let alone = super::statistics(&trigonometric::<f64>(10, 1.0), &x, &first).spectrum().unwrap();
    let errors = alone.errors(&Criterion::GeneralisedCrossValidation, &[1e-3, 1e-4]).unwrap();
    assert!(errors[0] > 10.0 * errors[1] && errors[0].is_finite(), "{errors:?}");
    assert!(
        !found.warnings().iter().any(|warning| matches!(warning, RidgeWarning::Targets { .. })),
        "{found}"
    );
}
