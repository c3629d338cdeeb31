//! What searches must reach on sets that are hard for them, and what prototypes reach.

use ndarray::{Array1, Array2, Axis, s};
use random_features::apply::pca::PcaStatistics;
use random_features::apply::{Criterion, RidgeFit, RidgeGrid, RidgeSearch, RidgeWarning, Standardisation};
use random_features::{Real, kernel::Lengthscale};

use crate::common::{SplitMix, print_reached};

/// An array whose entry in column k is `entry(k)`, in the order of rows.
fn array(
    numbers: &mut SplitMix,
    shape: (usize, usize),
    mut entry: impl FnMut(&mut SplitMix, usize) -> f64,
) -> Array2<f64> {
    Array2::from_shape_fn(shape, |(_, k)| entry(numbers, k))
}

/// 1 − Σ(ŷ − y)²/Σ(y − ȳ)².
fn explained<T: Real>(fit: &RidgeFit<T>, x: &Array2<T>, y: &Array1<f64>, target: usize) -> f64 {
    let predicted = fit.model().predict(x).unwrap().column(target).mapv(|v| v.widen());
    let mean = y.mean().unwrap();
    1.0 - (&predicted - y).mapv(|e| e * e).sum() / y.mapv(|y| (y - mean).powi(2)).sum()
}

/// A wave of 50 periods: R² of .95, and .997 after 12 trials in a prototype.
#[test]
fn a_fast_signal_is_found() {
    let mut numbers = SplitMix(9);
    let x = Array2::from_shape_fn((1000, 1), |(i, _)| i as f64 / 1000.0);
    let y = array(&mut numbers, (1000, 1), |n, _| 0.1 * n.normal()) + x.mapv(|x| (314.16 * x).sin());
    let fit = RidgeSearch::gaussian(1, 256, 1).unwrap().fit(&x, &y).unwrap();
    let new = array(&mut numbers, (500, 1), |n, _| n.uniform());
    let expected = new.column(0).mapv(|x| (314.16 * x).sin());
    let r2 = explained(&fit, &new, &expected, 0);
    print_reached("R², fast signal", ".95", r2, "a grid of lengthscales .000");
    assert!(r2 >= 0.95 && fit.warnings().is_empty(), "{r2}\n{fit}");
    assert!(fit.trials().len() <= 12, "{fit}");
}

/// The progression of diabetes in each fifth patient, by the others: R² of .43, and .449 in a prototype.
#[test]
fn the_progression_of_diabetes_is_predicted() {
    let text = include_str!("../../data/diabetes.csv");
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|field| field.parse().unwrap()).collect())
        .collect();
    let part = |is_new: bool| {
        let own: Vec<&Vec<f64>> =
            (0..).zip(&rows).filter(|(i, _)| (i % 5 == 4) == is_new).map(|(_, row)| row).collect();
        let x = Array2::from_shape_fn((own.len(), 10), |(i, k)| own[i][k]);
        (x, Array1::from_iter(own.iter().map(|row| row[10])))
    };
    let ((x, y), (new, expected)) = (part(false), part(true));
    let fit = RidgeSearch::gaussian(10, 256, 1).unwrap().fit(&x, &y).unwrap();
    let r2 = explained(&fit, &new, &expected, 0);
    print_reached("R², diabetes", ".43", r2, "KernelRidge .462, GaussianProcessRegressor .456, RidgeCV .441");
    assert!(r2 >= 0.43, "{r2}\n{fit}");
}

/// A smooth target beside noise of a thousand times its size: R² of .999, 1.0000 in a prototype, and .041 with one λ.
#[test]
fn targets_of_different_scale_do_not_disturb_each_other() {
    let mut numbers = SplitMix(16);
    let x = array(&mut numbers, (400, 1), |n, _| 6.0 * n.uniform());
    let mut y =
        array(&mut numbers, (400, 2), |n, j| if j == 0 { 0.01 * n.normal() } else { 1000.0 * n.normal() });
    y.column_mut(0).zip_mut_with(&x.column(0), |y, x| *y += (3.0 * x).sin());
    let new = array(&mut numbers, (500, 1), |n, _| 6.0 * n.uniform());
    let expected = new.column(0).mapv(|x| (3.0 * x).sin());
    let search = RidgeSearch::gaussian(1, 128, 1).unwrap();
    let fit = search.fit(&x, &y).unwrap();
    let r2 = explained(&fit, &new, &expected, 0);
    let one = explained(&search.without_lambda_per_target().fit(&x, &y).unwrap(), &new, &expected, 0);
    print_reached("R², target beside a noise", ".999", r2, "one λ .041");
    assert!(r2 >= 0.999, "{r2}\n{fit}");
    assert!(one < 0.9, "{one}");
    // The noise of each target is its own.
    let noise = fit.posterior().unwrap().noise().to_vec();
    assert!((noise[0] / 1e-4 - 1.0).abs() < 0.3 && (noise[1] / 1e6 - 1.0).abs() < 0.3, "{noise:?}");
}

/// Coordinates of different units, not standardised: R² of .97, .994 in a prototype, and .41 from a common start.
#[test]
fn coordinates_of_different_units_get_scales_of_their_own() {
    let mut numbers = SplitMix(47);
    let x = array(&mut numbers, (300, 2), |n, k| if k == 0 { 200.0 * n.normal() } else { 2.0 * n.normal() });
    let signal = |x: ndarray::ArrayView1<'_, f64>| (x[0] / 100.0).sin() + (1.5 * x[1]).cos();
    let y = array(&mut numbers, (300, 1), |n, _| 0.1 * n.normal());
    let y = y + x.map_axis(Axis(1), signal).insert_axis(Axis(1));
    let search = RidgeSearch::gaussian(2, 128, 1).unwrap().without_standardisation();
    let fit = search.with_lengthscale_per_dimension(3).fit(&x, &y).unwrap();
    let new =
        array(&mut numbers, (500, 2), |n, k| if k == 0 { 200.0 * n.normal() } else { 2.0 * n.normal() });
    let expected = new.map_axis(Axis(1), signal);
    let r2 = explained(&fit, &new, &expected, 0);
    print_reached("R², units not scaled", ".97", r2, "a common start .41");
    assert!(r2 >= 0.97, "{r2}\n{fit}");
    assert!(matches!(fit.best().lengthscale, Some(Lengthscale::PerDimension(_))));
}

/// Times in seconds since 1970 in `f32`, of which 14 values are different: R² of .95, .981 in a prototype; and of .97 where the times
/// matter, .990 in a prototype.
#[test]
fn few_spacings_are_learnt_from_and_said() {
    let mut numbers = SplitMix(2);
    let mut points = |n: usize| {
        let x = array(
            &mut numbers,
            (n, 2),
            |n, k| if k == 0 { 1.7e9 + 1800.0 * n.uniform() } else { n.normal() },
        );
        let noise = array(&mut numbers, (n, 1), |n, _| 0.1 * n.normal());
        (x.mapv(|v| v as f32), noise.column(0).to_owned())
    };
    let (train, new) = (points(1000), points(500));
    let ends = train
        .0
        .column(0)
        .iter()
        .fold((f64::INFINITY, 0.0f64), |ends, x| (ends.0.min(f64::from(*x)), ends.1.max(f64::from(*x))));
    for (with_time, least) in [(0.0, 0.95), (1.0, 0.97)] {
        let y = |(x, noise): &(Array2<f32>, Array1<f64>)| {
            let signal = x.map_axis(Axis(1), |x| {
                let time = 6.0 * (f64::from(x[0]) - ends.0) / (ends.1 - ends.0);
                (2.0 * f64::from(x[1])).sin() + with_time * time.sin()
            });
            signal + noise
        };
        let targets = y(&train).mapv(|y| y as f32);
        let fit = RidgeSearch::gaussian(2, 80, 1).unwrap().fit(&train.0, &targets).unwrap();
        let r2 = explained(&fit, &new.0, &y(&new), 0);
        let (row, needed) = if with_time == 0.0 {
            ("R², times in f32", ".95")
        } else {
            ("R², wave of times in f32", ".97")
        };
        print_reached(row, needed, r2, "–");
        assert!(r2 >= least, "{r2}\n{fit}");
        let few = fit.warnings().iter().find_map(|warning| match warning {
            RidgeWarning::FewSpacings { coordinate: 0, spacings } => Some(*spacings),
            _ => None,
        });
        assert!(few.is_some_and(|spacings| spacings < 64.0), "{fit}");
        assert!(fit.to_string().contains("subtract an offset"), "{fit}");
    }
}

/// A small wave on an offset: the noise to 10⁻³, and equal λ and ℓ.
#[test]
fn offsets_of_targets_change_nothing() {
    let mut numbers = SplitMix(6);
    let x = Array2::from_shape_fn((500, 1), |(i, _)| i as f64 / 100.0);
    let noise = array(&mut numbers, (500, 1), |n, _| 1e-4 * n.normal());
    let fits = [0.0, 101_325.0, 2_459_000.5].map(|h| {
        let y = Array2::from_shape_fn((500, 1), |(i, _)| 1e-3 * (0.02 * i as f64).sin() + noise[[i, 0]] + h);
        RidgeSearch::<f64>::gaussian(1, 128, 1).unwrap().fit(&x, &y).unwrap()
    });
    let noises = fits.each_ref().map(|fit| fit.posterior().unwrap().noise()[0]);
    for (fit, noise) in fits.iter().zip(noises) {
        assert!((noise / noises[0] - 1.0).abs() < 1e-3, "{noises:?}");
        assert!((fit.lambda() / fits[0].lambda() - 1.0).abs() < 1e-9, "{fit}");
        assert_eq!(fit.best().lengthscale, fits[0].best().lengthscale);
    }
    let off = noises.iter().map(|n| (n / noises[0] - 1.0).abs()).fold(0.0, f64::max);
    print_reached("noise at offsets, off by", "at most .001", off, "without a reference 160 and more");
}

/// Rows of a search whose inputs have many values are not warned of.
#[test]
fn usual_inputs_have_spacings_enough() {
    let (x, y) = super::data::<f32>(300);
    let few = |x: &Array2<f32>| {
        let fit = RidgeSearch::gaussian(3, 16, 1).unwrap().fit(x, &y).unwrap();
        fit.warnings().iter().filter(|warning| matches!(warning, RidgeWarning::FewSpacings { .. })).count()
    };
    assert_eq!(few(&x), 0);
    // A constant coordinate is nothing to learn from.
    let mut constant = x.clone();
    constant.slice_mut(s![.., 1]).fill(1e9);
    assert_eq!(few(&constant), 0);
    let far = &x + &ndarray::arr1(&[0.0, 1e6, 3e6]);
    assert_eq!(few(&far), 1);
}

/// x, n × 5, and y = x₁ + ½z.
fn rows(stream: &mut SplitMix, n: usize) -> (Array2<f64>, Array1<f64>) {
    let x = Array2::from_shape_simple_fn((n, 5), || stream.normal());
    let y = x.column(0).mapv(|x| x + 0.5 * stream.normal());
    (x, y)
}

/// A search on 200 groups of five equal rows: what it is told is at least half of the error at new rows, which is at most 0.4.
#[test]
fn groups_of_equal_rows_tell_the_truth() {
    let mut stream = SplitMix(18);
    let ((x, y), (new_x, new_y)) = (rows(&mut stream, 200), rows(&mut stream, 2000));
    let groups: Vec<usize> = (0..1000).map(|i| i / 5).collect();
    let (x, y) = (x.select(Axis(0), &groups), y.select(Axis(0), &groups));
    let search =
        RidgeSearch::gaussian(5, 128, 18).unwrap().with_criterion(Criterion::LeaveGroupsOut(&groups));
    let fit = search.fit(&x, &y).unwrap();
    let error = fit.model().predict_single(&new_x).unwrap() - &new_y;
    let error = error.dot(&error) / 2000.0;
    print_reached("groups: error told", "half of the true one", fit.error(), "by rows 5e-27");
    print_reached("groups: true error", "at most .4", error, "by rows 2.4");
    assert!(fit.error() >= 0.5 * error && error <= 0.4, "told {}, true {error}", fit.error());
}

/// Times in seconds since 1970 in `f32` that range over 400 s have four values and count as constant, which is said everywhere. A
/// column of a single value says nothing, and is not named.
#[test]
fn inputs_that_vary_but_count_as_constant_are_named() {
    let (mut x, y) = super::data::<f32>(300);
    let times = |range: f64| move |i: usize| (1.7e9 + range * i as f64 / 300.0) as f32;
    x.column_mut(0).assign(&Array1::from_shape_fn(300, times(400.0)));
    x.column_mut(2).fill(7.0);
    let named = |warnings: &[RidgeWarning]| {
        let constant = |warning: &RidgeWarning| match warning {
            RidgeWarning::ConstantInputs { coordinates } => Some(coordinates.clone()),
            _ => None,
        };
        warnings.iter().find_map(constant)
    };
    let few = |warnings: &[RidgeWarning]| {
        warnings.iter().any(|warning| {
            matches!(warning, RidgeWarning::FewSpacings { coordinate: 0, spacings } if *spacings < 64.0)
        })
    };
    let fit = RidgeSearch::gaussian(3, 16, 1).unwrap().fit(&x, &y).unwrap();
    assert_eq!(named(fit.warnings()), Some(vec![0]), "{fit}");
    assert!(fit.to_string().contains("subtract an offset"), "{fit}");
    assert_eq!(fit.model().standardisation().unwrap().constant_columns(), [0, 2]);

    let map = super::trigonometric::<f32>(16, 1.0);
    let grid = |x: &Array2<f32>, inputs: Option<Standardisation>| {
        let mut grid = RidgeGrid::new([map.clone()], 2).unwrap().with_standardisation(inputs).unwrap();
        grid.update(x.slice(s![..150, ..]), y.slice(s![..150, ..])).unwrap();
        let mut other = grid.clone().with_first_row(300).unwrap();
        other = RidgeGrid::new([map.clone()], 2)
            .unwrap()
            .with_standardisation(other.statistics()[0].standardisation().cloned())
            .unwrap()
            .with_first_row(150)
            .unwrap();
        other.update(x.slice(s![150.., ..]), y.slice(s![150.., ..])).unwrap();
        grid.merge(&other).unwrap();
        grid
    };
    let inputs = Standardisation::of(&x).unwrap();
    let standardised = grid(&x, Some(inputs.clone()));
    let chosen = standardised.choose(&Criterion::GeneralisedCrossValidation, None).unwrap();
    let of_rows = standardised.statistics()[0].input_warnings();
    assert_eq!((named(chosen.warnings()), named(&of_rows)), (Some(vec![0]), Some(vec![0])), "{chosen}");
    let mut pca = PcaStatistics::new(map.clone()).unwrap().with_standardisation(inputs).unwrap();
    pca.update(&x).unwrap();
    assert_eq!(named(&pca.input_warnings()), Some(vec![0]));
    // What is not standardised is not dropped, but has few spacings.
    assert!(few(&grid(&x, None).statistics()[0].input_warnings()));

    // Ten spacings are learnt from.
    x.column_mut(0).assign(&Array1::from_shape_fn(300, times(2000.0)));
    let wider = grid(&x, Some(Standardisation::of(&x).unwrap()));
    let chosen = wider.choose(&Criterion::GeneralisedCrossValidation, None).unwrap();
    assert!(named(chosen.warnings()).is_none() && few(chosen.warnings()), "{chosen}");
    // Usual inputs give no warning.
    let (x, _) = super::data::<f32>(300);
    let usual = grid(&x, Some(Standardisation::of(&x).unwrap()));
    assert!(usual.statistics()[0].input_warnings().is_empty());
}

/// Waves faster than π/g along a coordinate whose values differ by multiples of g equal slower ones at all values: no lengthscale is
/// tried for them. A fast wave along another coordinate is found beside them.
#[test]
fn no_lengthscale_is_tried_for_an_alias() {
    let mut numbers = SplitMix(5);
    // Whole numbers to 0.005, 0 or 1, and a number without gaps.
    let x = array(&mut numbers, (600, 3), |n, k| match k {
        0 => (0.3 * n.normal() / 0.005).round() * 0.005,
        1 => f64::from(u8::from(n.uniform() < 0.3)),
        _ => n.uniform(),
    });
    let noise = array(&mut numbers, (600, 1), |n, _| 0.3 * n.normal()).column(0).to_owned();
    let slow = x.map_axis(Axis(1), |x| 2.0 * x[0] + x[1] + 0.5 * x[2]) + &noise;
    let inputs = Standardisation::of(&x).unwrap();
    // The least lengthscale of a start is ½/ω with ω = π/g, in units of the deviation.
    let least = 0.005 / inputs.scales()[0] * 0.5 / std::f64::consts::PI;
    let fit = RidgeSearch::gaussian(3, 64, 1).unwrap().fit(&x, &slow).unwrap();
    let tried = |fit: &RidgeFit<f64>| {
        let scale = |ell: &Option<Lengthscale>| match ell {
            Some(Lengthscale::Isotropic(scale)) => *scale,
            _ => f64::NAN,
        };
        fit.trials().iter().map(|trial| scale(&trial.lengthscale)).collect::<Vec<f64>>()
    };
    assert!(tried(&fit).iter().all(|ell| *ell >= least), "{fit}");
    // A column of two values beside one without gaps adds no start.
    let pair = x.slice(s![.., 1..]).to_owned();
    let y = x.map_axis(Axis(1), |x| x[1] + 0.5 * x[2]) + &noise;
    let fit = RidgeSearch::gaussian(2, 64, 1).unwrap().fit(&pair, &y).unwrap();
    assert!(tried(&fit).iter().all(|ell| *ell >= 0.2), "{fit}");

    let fast = x.map_axis(Axis(1), |x| (150.0 * x[2]).sin() + x[1]) + 0.1 * &noise;
    let search = RidgeSearch::gaussian(3, 256, 1).unwrap().with_lengthscale_per_dimension(1);
    let fit = search.fit(&x, &fast).unwrap();
    let Some(Lengthscale::PerDimension(scales)) = &fit.best().lengthscale else { panic!("{fit}") };
    let phase = scales[2] * inputs.scales()[2] * 150.0;
    assert!((0.3..3.0).contains(&phase), "{phase}\n{fit}");
}
