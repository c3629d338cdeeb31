//! Targets of one dimension: the bits of those of one column, wherever targets are taken.

use ndarray::{Array1, Array2, Axis, s};
use random_features::apply::{
    Criterion, ExactSmoother, KernelRidge, RidgeGrid, RidgeSearch, RidgeStatistics, Smoother,
};
use random_features::kernel::{Gaussian, Kernel};
use random_features::planner::{Loss, Planner};
use random_features::{Error, Targets, Trigonometric};

use super::{data, trigonometric, weights};
use crate::common::weigh;

/// 60 points with one target, as n numbers and as a column.
fn one_target() -> (Array2<f64>, Array1<f64>, Array2<f64>) {
    let (x, y) = data::<f64>(60);
    let one = y.column(0).to_owned();
    let column = one.clone().insert_axis(Axis(1));
    (x, one, column)
}

#[test]
fn every_layout_is_the_same_column() {
    let (x, one, column) = one_target();
    let mut statistics = RidgeStatistics::new(trigonometric(8, 1.0), 1).unwrap();
    statistics.update(&x, &column).unwrap();
    let model = statistics.solve(0.1).unwrap();
    let wide = data::<f64>(60).1;
    let (vector, slice) = (one.to_vec(), one.as_slice().unwrap());
    let (shared, strided, converted) = (one.clone().into_shared(), wide.column(0), Targets::from(&one));
    let all: [Targets<'_, f64>; 9] = [
        (&one).into(),
        one.view().into(),
        (&shared).into(),
        (&vector).into(),
        slice.into(),
        (&strided).into(),
        (&column).into(),
        wide.slice(s![.., ..1]).into(),
        (&converted).into(),
    ];
    for targets in all {
        assert_eq!((targets.nrows(), targets.ncols(), targets.are_labels()), (60, 1, false));
        let mut statistics = RidgeStatistics::new(trigonometric(8, 1.0), 1).unwrap();
        statistics.update(&x, targets).unwrap();
        assert_eq!(statistics.solve(0.1).unwrap().weights(), model.weights());
    }
}

#[test]
fn regressions_are_those_of_a_column() {
    let (x, one, column) = one_target();
    let (map, w) = (trigonometric::<f64>(8, 1.0), weights(60));
    let of = |weighted: bool, flat: bool| {
        let mut statistics = RidgeStatistics::new(map.clone(), 1).unwrap();
        match (weighted, flat) {
            (false, true) => statistics.update(&x, &one).unwrap(),
            (false, false) => statistics.update(&x, &column).unwrap(),
            (true, true) => statistics.update(&x, weigh(&one, &w)).unwrap(),
            (true, false) => statistics.update(&x, weigh(&column, &w)).unwrap(),
        }
        statistics
    };
    for weighted in [false, true] {
        let [flat, tall] = [true, false].map(|flat| of(weighted, flat).solve(0.1).unwrap());
        assert_eq!(flat.weights(), tall.weights());
        let predicted = flat.predict_single(&x).unwrap();
        assert_eq!(predicted, tall.predict(&x).unwrap().column(0));
    }
    let mut rest = of(false, true);
    rest.downdate(0, x.slice(s![..20, ..]), one.slice(s![..20])).unwrap();
    assert_eq!(rest.sums().row_ranges(), std::slice::from_ref(&(20..60)));

    let spectrum = of(false, true).spectrum().unwrap();
    let errors = |criterion: Criterion<'_, f64>| spectrum.errors(&criterion, &[0.1]).unwrap();
    assert_eq!(errors(Criterion::leave_one_out(&x, &one)), errors(Criterion::leave_one_out(&x, &column)));
    assert_eq!(errors(Criterion::held_out(&x, &one)), errors(Criterion::held_out(&x, &column)));

    let gram = Gaussian::new(1.0).unwrap().gram(&x, &x).unwrap();
    assert_eq!(KernelRidge::fit(&gram, &one, 0.1).unwrap(), KernelRidge::fit(&gram, &column, 0.1).unwrap());
    let models = [KernelRidge::spectrum(&gram, &one), KernelRidge::spectrum(&gram, &column)];
    let [flat, tall] = models.map(|spectrum| spectrum.unwrap().model(0.1).unwrap());
    assert_eq!(flat, tall);
}

#[test]
fn searches_grids_and_smoothers_are_those_of_a_column() {
    let (x, one, column) = one_target();
    let w = weights(60);
    let search = RidgeSearch::gaussian(3, 16, 5).unwrap().with_lengthscales([1.0, 2.0]);
    let found = search.fit(&x, &one).unwrap();
    assert_eq!(found.model().weights(), search.fit(&x, &column).unwrap().model().weights());
    let [flat, tall] = [search.fit(&x, weigh(&one, &w)), search.fit(&x, weigh(&column, &w))];
    assert_eq!(flat.unwrap().model().weights(), tall.unwrap().model().weights());

    let grid = || RidgeGrid::new([trigonometric::<f64>(8, 1.0)], 1).unwrap();
    let [mut flat, mut tall] = [grid(), grid()];
    flat.update(&x, &one).unwrap();
    flat.update(&x, weigh(&one, &w)).unwrap();
    tall.update(&x, &column).unwrap();
    tall.update(&x, weigh(&column, &w)).unwrap();
    let [flat, tall] = [flat, tall].map(|grid| grid.statistics()[0].solve(0.1).unwrap());
    assert_eq!(flat.weights(), tall.weights());

    let smoother = || Smoother::new(trigonometric::<f64>(8, 1.0), 1).unwrap();
    let [mut flat, mut tall] = [smoother(), smoother()];
    flat.update(&x, &one).unwrap();
    tall.update(&x, &column).unwrap();
    assert_eq!(flat.predict_single(&x).unwrap(), tall.predict(&x).unwrap().column(0));

    let exact = || ExactSmoother::new(Gaussian::new(1.0).unwrap(), 3, 1).unwrap();
    let [mut flat, mut tall] = [exact(), exact()];
    flat.update(&x, &one).unwrap();
    tall.update(&x, &column).unwrap();
    assert_eq!(flat.predict_single(&x).unwrap(), tall.predict(&x).unwrap().column(0));
}

#[test]
fn a_search_over_gaussian_kernels_is_one_with_an_orthogonal_draw() {
    let (x, one, _) = one_target();
    let omega = random_features::frequency::Orthogonal.draw(3, 16, 5);
    let long = RidgeSearch::new(omega.unwrap(), |omega, ell| Trigonometric.gaussian(omega, ell));
    let short = RidgeSearch::gaussian(3, 16, 5).unwrap();
    let [long, short] = [long, short].map(|search| search.fit(&x, &one).unwrap());
    assert_eq!(long.model().weights(), short.model().weights());
    assert!(matches!(RidgeSearch::<f64>::gaussian(0, 16, 5), Err(Error::Parameter { .. })));
    let other = RidgeSearch::gaussian(2, 16, 5).unwrap().fit(&x, &one);
    assert!(matches!(other, Err(Error::Shape { .. })));
}

#[test]
fn plans_take_one_target() {
    let (x, one, column) = one_target();
    let planner = || Planner::of_one_set(&x).unwrap();
    let [flat, tall] = [planner().with_ridge_targets(&one), planner().with_ridge_targets(&column)];
    let [flat, tall] = [flat, tall].map(|planner| format!("{:?}", planner.unwrap()));
    assert!(flat.contains(&format!("{:?}", Loss::Ridge)) && flat == tall);
    let short = planner().with_ridge_targets(one.slice(s![..59]));
    assert!(matches!(short, Err(Error::Shape { .. })));
}

#[test]
fn single_predictions_need_a_single_target_and_sizes_fit() {
    let (x, y) = data::<f64>(60);
    let mut statistics = RidgeStatistics::new(trigonometric::<f64>(8, 1.0), 2).unwrap();
    let one = y.column(0);
    let wrong = statistics.update(&x, one).unwrap_err();
    assert!(matches!(wrong, Error::Shape { expected: 2, found: 1, .. }), "{wrong}");
    statistics.update(&x, &y).unwrap();
    let wrong = statistics.solve(0.1).unwrap().predict_single(&x).unwrap_err();
    assert!(matches!(wrong, Error::Shape { expected: 1, found: 2, .. }), "{wrong}");
    let mut single = RidgeStatistics::new(trigonometric::<f64>(8, 1.0), 1).unwrap();
    let wrong = single.update(&x, one.slice(s![..59])).unwrap_err();
    assert!(matches!(wrong, Error::Shape { expected: 60, found: 59, .. }), "{wrong}");
}

#[test]
fn labels_are_indicators() {
    let (x, _, _) = one_target();
    let labels: Vec<usize> = (0..60).map(|i| (i * i + i / 7) % 3).collect();
    let indicators = Array2::from_shape_fn((60, 4), |(i, c)| f64::from(u8::from(labels[i] == c)));
    let w = weights(60);
    let of = |targets: Targets<'_, f64>| {
        let mut statistics = RidgeStatistics::new(trigonometric(8, 1.0), 4).unwrap();
        statistics.update(&x, targets)?;
        Ok::<_, Error>(statistics.solve(0.1)?.weights().to_owned())
    };
    let expected = of((&indicators).into()).unwrap();
    let array = Array1::from(labels.clone());
    let all: [Targets<'_, f64>; 5] = [
        (&labels).into(),
        labels.as_slice().into(),
        (&array).into(),
        array.view().into(),
        Targets::of_labels(&labels, 4).unwrap(),
    ];
    for targets in all {
        assert!(targets.are_labels());
        assert_eq!(of(targets).unwrap(), expected);
    }
    assert_eq!(Targets::<f64>::from(&labels).ncols(), 3);
    assert_eq!(of(weigh(&labels, &w)).unwrap(), of(weigh(&indicators, &w)).unwrap());
    assert!(matches!(of(Targets::of_labels(&labels, 5).unwrap()), Err(Error::Shape { .. })));
    let mut far = labels.clone();
    far[7] = 4;
    assert!(matches!(of((&far).into()), Err(Error::Entry { row: 7, .. })));
    assert!(matches!(Targets::<f64>::of_labels(&far, 4), Err(Error::Entry { row: 7, .. })));
    assert_eq!(Targets::<f64>::from(&vec![usize::MAX]).ncols(), usize::MAX);
    let search = RidgeSearch::gaussian(3, 8, 1).unwrap();
    assert!(search.fit(&x, &vec![0; 60]).is_err());
    assert!(search.fit(&x, &vec![usize::MAX; 60]).is_err());
}

#[test]
fn balanced_classes_have_equal_weights() {
    let (x, one, _) = one_target();
    let labels: Vec<usize> = (0..60).map(|i| if i % 10 == 0 { 3 } else { i % 2 }).collect();
    let w = Array1::from_shape_fn(60, |i| if i == 4 { 0.0 } else { 0.5 + i as f64 });
    for given in [Array1::ones(60), w] {
        let total: f64 = given.sum();
        let of_class = |c: usize| (0..60).filter(|i| labels[*i] == c).map(|i| given[i]).sum::<f64>();
        let expected = Array1::from_shape_fn(60, |i| given[i] * total / (3.0 * of_class(labels[i])));
        let solve = |targets: Targets<'_, f64>| {
            let mut statistics = RidgeStatistics::new(trigonometric(8, 1.0), 4).unwrap();
            statistics.update(&x, targets).unwrap();
            statistics.solve(0.1).unwrap().weights().to_owned()
        };
        let balanced = solve(weigh(&labels, &given).balanced().unwrap());
        let naive = solve(weigh(&labels, &expected));
        assert!((balanced - naive).iter().all(|e| e.abs() < 1e-12));
    }
    assert!(matches!(Targets::from(&one).balanced(), Err(Error::Unsupported { .. })));
    let none = Array1::zeros(60);
    assert!(matches!(weigh::<f64>(&labels, &none).balanced(), Err(Error::NoData { .. })));
    let kernels = KernelRidge::fit(&Array2::<f64>::eye(60), weigh(&one, &Array1::ones(60)), 0.1);
    assert!(matches!(kernels, Err(Error::Unsupported { .. })));
}
