//! Searches with fewer rows than features: against the definition, for which rows are deleted and refitted.

use ndarray::{Array1, Array2, Axis, concatenate, s};
use random_features::apply::{Criterion, RidgeFit, RidgeSearch, RidgeStatistics};
use random_features::linalg::Backend;
use random_features::workbench::factors::Factorise;
use random_features::{Error, Map, Real, Targets};

use super::{data, features, trigonometric, weights};

/// A search on one map, with inputs as they are.
fn on<T: Real>(map: &Map<T>, intercept: bool) -> RidgeSearch<'static, T> {
    let map = map.clone();
    let search = RidgeSearch::of(move |_| Ok(map.clone()));
    let search = search.with_lengthscales([1.0]).without_standardisation();
    if intercept { search } else { search.without_intercept() }
}

fn fitted<T: Real>(
    map: &Map<T>,
    (x, y): (&Array2<T>, &Array2<T>),
    w: &Array1<f64>,
    intercept: bool,
) -> RidgeFit<T> {
    on(map, intercept).fit(x, Targets::from(y).with_weights(w).unwrap()).unwrap()
}

/// A regression by the definition, in the space of the rows: α = (K + λ/w)⁻¹(y − b), with the intercept b that makes Σ α 0.
struct Naive {
    z: Array2<f64>,
    alpha: Array2<f64>,
    intercepts: Array1<f64>,
    lambda: f64,
    intercept: bool,
}

impl Naive {
    fn new(z: &Array2<f64>, y: &Array2<f64>, w: &Array1<f64>, lambda: f64, intercept: bool) -> Self {
        let mut b = z.dot(&z.t());
        b.diag_mut().iter_mut().zip(w).for_each(|(v, w)| *v += lambda / w);
        let n = z.nrows();
        let eigen = Backend::default().eigen(&b).unwrap();
        let inverse = (&eigen.vectors / &eigen.values).dot(&eigen.vectors.t());
        let ones = Array1::from_elem(n, 1.0);
        let solved = inverse.dot(&ones);
        let mut intercepts = inverse.dot(y).sum_axis(Axis(0)) / solved.sum();
        if !intercept {
            intercepts.fill(0.0);
        }
        let alpha = inverse.dot(&(y - &intercepts));
        Naive { z: z.clone(), alpha, intercepts, lambda, intercept }
    }

    fn predict(&self, z: &Array2<f64>) -> Array2<f64> {
        z.dot(&self.z.t()).dot(&self.alpha) + &self.intercepts
    }

    /// z(A + λI)⁻¹zᵀ + 1/N for centred z, or without intercept z(A + λI)⁻¹zᵀ for z as they are: sums over rows, which do not cancel.
    fn variance(&self, at: &Array2<f64>, w: &Array1<f64>) -> Array1<f64> {
        let total = w.sum();
        let mean = if self.intercept { w.dot(&self.z) / total } else { Array1::zeros(at.ncols()) };
        let (z, at) = (&self.z - &mean, at - &mean);
        let mut a = (&z.t() * w).dot(&z);
        a.diag_mut().mapv_inplace(|v| v + self.lambda);
        let eigen = Backend::default().eigen(&a).unwrap();
        let u = at.dot(&eigen.vectors);
        let own = (&u * &u / &eigen.values).sum_axis(Axis(1));
        if self.intercept { own + total.recip() } else { own }
    }
}

fn near(a: f64, b: f64, scale: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * scale.max(b.abs()), "{a} {b} {scale}");
}

fn all_near(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64) {
    let scale = b.iter().fold(0.0, |s: f64, v| s.max(v.abs()));
    assert_eq!(a.dim(), b.dim());
    a.iter().zip(b).for_each(|(a, b)| near(*a, *b, scale, tolerance));
}

fn check<T: Real>(n: usize, intercept: bool, unit: bool, tolerance: f64) {
    let map = trigonometric::<T>(40, 1.0);
    let (x, y) = data::<T>(n + 10);
    let (x, at) = (x.slice(s![..n, ..]).to_owned(), x.slice(s![n.., ..]).to_owned());
    let y = y.slice(s![..n, ..]).to_owned();
    let w = if unit { Array1::from_elem(n, 1.0) } else { weights(n) };
    let found = fitted(&map, (&x, &y), &w, intercept);
    let spectrum = found.spectrum();
    assert_eq!(spectrum.eigenvalues().len(), n - usize::from(intercept));
    let (z, wide) = (features(&map, &x), y.mapv(|y| y.widen()));
    for lambda in [1e-6, 1e-2, 1.0, 1e4] {
        // The naive inverse loses what the condition of K + λ says.
        let tolerance = tolerance + 3e-11 / lambda;
        let naive = Naive::new(&z, &wide, &w, lambda, intercept);
        let model = spectrum.model(lambda).unwrap();
        let z_at = features(&map, &at);
        let predicted = model.predict(&at).unwrap().mapv(|v| v.widen());
        all_near(&predicted, &naive.predict(&z_at), tolerance);
        // Each row deleted.
        let mut error = 0.0;
        for i in 0..n {
            let rest: Vec<usize> = (0..n).filter(|k| *k != i).collect();
            let (z, y, w) = (z.select(Axis(0), &rest), wide.select(Axis(0), &rest), w.select(Axis(0), &rest));
            let without = Naive::new(&z, &y, &w, lambda, intercept);
            let residual = wide.slice(s![i..=i, ..]).to_owned()
                - without.predict(&features(&map, &x).slice(s![i..=i, ..]).to_owned());
            error += residual.mapv(|e| e * e).sum() * naive_weight(unit, n, i);
        }
        let criterion = Criterion::leave_one_out(&x, Targets::from(&y).with_weights(&w).unwrap());
        let left_out = spectrum.errors(&criterion, &[lambda]).unwrap()[0];
        near(left_out, error / w.sum(), 0.0, tolerance);
        let prediction = spectrum.posterior(lambda).unwrap().predict(&at).unwrap();
        let expected = naive.variance(&z_at, &w);
        let largest = expected.iter().fold(0.0, |s: f64, v| s.max(*v));
        for i in 0..at.nrows() {
            let variance = prediction.variance_of_mean[[i, 0]].widen() / prediction.noise[0];
            near(variance, expected[i], largest, tolerance.max(1e-6));
        }
    }
}

fn naive_weight(unit: bool, n: usize, i: usize) -> f64 {
    if unit { 1.0 } else { weights(n)[i] }
}

#[test]
fn few_rows_by_the_definition() {
    for intercept in [true, false] {
        for n in [2, 25, 79] {
            check::<f64>(n, intercept, true, 1e-7);
            check::<f64>(n, intercept, false, 1e-7);
        }
        check::<f32>(25, intercept, false, 1e-4);
    }
}

/// Groups of rows that are left out together, against refits without them, at λ for which 1 − h cancels too.
#[test]
fn groups_of_few_rows() {
    let map = trigonometric::<f64>(40, 1.0);
    let (x, y) = data::<f64>(30);
    let (w, z) = (weights(30), features(&map, &x));
    let groups: Vec<usize> = (0..30).map(|i| [5, 7, 1, 9][i % 4] + 10 * (i / 20)).collect();
    for intercept in [true, false] {
        let found = fitted(&map, (&x, &y), &w, intercept);
        let targets = || Targets::from(&y).with_weights(&w).unwrap();
        let criterion = Criterion::leave_groups_out(&x, targets(), &groups);
        for lambda in [1e-5, 0.1, 100.0] {
            let tolerance = 1e-7 + 3e-11 / lambda;
            let predictions = found.spectrum().left_out(&criterion, lambda).unwrap();
            let mut error = 0.0;
            for label in [5, 7, 1, 9, 15, 17, 11, 19] {
                let own: Vec<usize> = (0..30).filter(|i| groups[*i] == label).collect();
                let rest: Vec<usize> = (0..30).filter(|i| groups[*i] != label).collect();
                let (z_rest, y_rest) = (z.select(Axis(0), &rest), y.select(Axis(0), &rest));
                let naive = Naive::new(&z_rest, &y_rest, &w.select(Axis(0), &rest), lambda, intercept);
                let expected = naive.predict(&z.select(Axis(0), &own));
                all_near(&predictions.select(Axis(0), &own), &expected, tolerance);
                let residuals = y.select(Axis(0), &own) - expected;
                let squares = residuals.mapv(|e| e * e).sum_axis(Axis(1));
                error += squares.dot(&w.select(Axis(0), &own));
            }
            near(found.spectrum().errors(&criterion, &[lambda]).unwrap()[0], error / w.sum(), 0.0, tolerance);
        }
    }
}

/// What sums give, where these do not lose digits.
#[test]
fn few_rows_agree_with_their_sums() {
    let map = trigonometric::<f64>(40, 1.0);
    let (x, y) = data::<f64>(60);
    let w = weights(60);
    for intercept in [true, false] {
        let found = fitted(&map, (&x, &y), &w, intercept);
        let statistics = RidgeStatistics::new(map.clone(), 2).unwrap();
        let mut statistics = if intercept { statistics } else { statistics.without_intercept() };
        statistics.update(&x, Targets::from(&y).with_weights(&w).unwrap()).unwrap();
        let (few, sums) = (found.spectrum(), statistics.spectrum().unwrap());
        for lambda in [1e-3, 0.1, 10.0] {
            let (a, b) = (few.posterior(lambda).unwrap(), sums.posterior(lambda).unwrap());
            all_near(&a.model().weights().to_owned(), &b.model().weights().to_owned(), 1e-8);
            a.noise().iter().zip(b.noise()).for_each(|(a, b)| near(*a, *b, 0.0, 1e-7));
            near(few.log_evidence(lambda).unwrap(), sums.log_evidence(lambda).unwrap(), 1.0, 1e-8);
            let freedom =
                |s: &random_features::apply::RidgeSpectrum<f64>| s.degrees_of_freedom(lambda).unwrap();
            near(freedom(few), freedom(&sums), 1.0, 1e-9);
            for criterion in [
                Criterion::GeneralisedCrossValidation,
                Criterion::held_out(x.slice(s![..20, ..]), y.slice(s![..20, ..])),
            ] {
                let errors = [few, &sums].map(|s| s.errors(&criterion, &[lambda]).unwrap()[0]);
                near(errors[0], errors[1], 0.0, 1e-6);
            }
            // Also where landmarks are far, so that the variance of the intercept stands alone.
            let at = concatenate![Axis(0), x, &x + 20.0];
            let [mended, other] =
                [&a, &b].map(|p| p.clone().with_landmarks(&x).unwrap().predict(&at).unwrap());
            all_near(&mended.variance_of_mean, &other.variance_of_mean, 1e-6);
            let (a, b) = (a.predict(&x).unwrap(), b.predict(&x).unwrap());
            all_near(&a.variance_of_mean, &b.variance_of_mean, 1e-6);
        }
        // Least squares of minimal norm.
        let (a, b) = (few.model(0.0).unwrap(), sums.model(0.0).unwrap());
        all_near(&a.predict(&x).unwrap(), &y, 1e-5);
        assert!(b.predict(&x).is_ok());
    }
}

/// Awkward rows: weights of 0, offsets, constant targets, equal rows, tiny and huge λ.
#[test]
fn awkward_rows() {
    let map = trigonometric::<f64>(40, 1.0);
    let (x, y) = data::<f64>(30);
    let lambdas = [1e-9, 1e-3, 1e12];
    let errors = |found: &RidgeFit<f64>, x: &Array2<f64>, y: &Array2<f64>, w: &Array1<f64>| {
        let criterion = Criterion::leave_one_out(x, Targets::from(y).with_weights(w).unwrap());
        found.spectrum().errors(&criterion, &lambdas).unwrap()
    };
    let one = Array1::ones(30);
    let plain = errors(&fitted(&map, (&x, &y), &one, true), &x, &y, &one);
    // Far offsets change nothing but what their own rounding does.
    let far = y.mapv(|y| y + 1e9);
    let found = errors(&fitted(&map, (&x, &far), &one, true), &x, &far, &one);
    let rounded = far.mapv(|y| y - 1e9);
    let expected = errors(&fitted(&map, (&x, &rounded), &one, true), &x, &rounded, &one);
    found.iter().zip(&expected).for_each(|(a, b)| near(*a, *b, 0.0, 1e-6));
    // Rows of weight 0 are absent.
    let w = Array1::from_shape_fn(30, |i| f64::from(u8::from(i % 3 != 0)));
    let kept: Vec<usize> = (0..30).filter(|i| i % 3 != 0).collect();
    let (own_x, own_y) = (x.select(Axis(0), &kept), y.select(Axis(0), &kept));
    let (a, b) = (fitted(&map, (&x, &y), &w, true), fitted(&map, (&own_x, &own_y), &Array1::ones(20), true));
    all_near(&a.model().weights().to_owned(), &b.model().weights().to_owned(), 1e-12);
    // A constant target adds nothing.
    let mut half = y.clone();
    half.column_mut(1).fill(7e5);
    let single = y.slice(s![.., ..1]).to_owned();
    let (a, b) = (fitted(&map, (&x, &half), &one, true), fitted(&map, (&x, &single), &one, true));
    errors(&a, &x, &half, &one)
        .iter()
        .zip(errors(&b, &x, &single, &one))
        .for_each(|(a, b)| near(*a, b, 0.0, 1e-12));
    assert!(a.model().predict(&x).unwrap().column(1).iter().all(|v| *v == 7e5));
    // Each row twice: the row that is left out has a copy among the others.
    let twice = |a: &Array2<f64>| ndarray::concatenate![Axis(0), *a, *a];
    let (x2, y2) = (twice(&x), twice(&y));
    let found = fitted(&map, (&x2, &y2), &Array1::ones(60), true);
    let told = errors(&found, &x2, &y2, &Array1::ones(60));
    assert!(told[0] < 1e-6 && told.iter().all(|e| e.is_finite()), "{told:?}");
    // The order of rows does not matter; other rows are refused.
    let back: Vec<usize> = (0..30).rev().collect();
    let (found, (bx, by)) =
        (fitted(&map, (&x, &y), &one, true), (x.select(Axis(0), &back), y.select(Axis(0), &back)));
    errors(&found, &bx, &by, &one).iter().zip(&plain).for_each(|(a, b)| near(*a, *b, 0.0, 1e-12));
    let mut other = x.clone();
    other[[4, 1]] += 1e-9;
    let criterion = Criterion::leave_one_out(&other, &y);
    assert!(matches!(found.spectrum().errors(&criterion, &lambdas), Err(Error::Entry { row: 4, .. })));
}

/// y → ky + h changes no choice.
#[test]
fn units_of_targets_change_no_choice() {
    let (x, y) = data::<f64>(40);
    // Multiples of 2⁻²⁰, whose multiples and sums below are exact.
    let y = y.mapv(|y| (y * 2f64.powi(20)).round() / 2f64.powi(20));
    let search = || RidgeSearch::of(|ell| random_features::Trigonometric.gaussian(omega(), ell));
    let found = search().fit(&x, &y).unwrap();
    for (k, h) in [(2f64.powi(-20), 3.0), (2f64.powi(17), 1e8), (-1.0, 0.0), (2f64.powi(-110), 0.0)] {
        let moved = search().fit(&x, &y.mapv(|y| k * y + h)).unwrap();
        assert_eq!(moved.lambda(), found.lambda(), "{k} {h}");
        assert_eq!(moved.best().lengthscale, found.best().lengthscale);
        near(moved.error(), k * k * found.error(), 0.0, 1e-6);
        near(moved.best().mean_error, k * k * found.best().mean_error, 0.0, 1e-6);
    }
}

fn omega() -> random_features::frequency::Frequencies {
    crate::common::frequencies(3, 100, &random_features::frequency::Orthogonal, 3)
}

/// Nine trials at D = 4096 must take no D × D matrix: their memory and time are those of n × D. A watcher would have to wait for
/// minutes otherwise; it sees that the products are of rows by the shape of what is left.
#[test]
fn many_features_cost_what_rows_cost() {
    let x = crate::common::points::<f64>(60, 8, 1.0);
    let y = x.rows().into_iter().map(|row| (0.5 * row.sum()).sin()).collect::<Array1<f64>>();
    let search = RidgeSearch::<f64>::gaussian(8, 2048, 1).unwrap();
    let found = search.fit(&x, &y).unwrap();
    assert!(found.trials().len() >= 9);
    assert_eq!(found.spectrum().eigenvectors().dim(), (4096, 59));
    let prediction = found.posterior().unwrap().predict(&x).unwrap();
    assert!(prediction.variance_of_mean.iter().all(|v| v.is_finite() && *v > 0.0));
    let error = found.model().predict_single(&x).unwrap() - &y;
    assert!(error.mapv(|e| e * e).mean().unwrap() < 0.1 * y.mapv(|y| y * y).mean().unwrap(), "{found}");
}
