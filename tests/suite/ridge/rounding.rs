//! Criteria for every λ down to the end that rounding sets, against exact regressions of random cases.

use ndarray::{Array1, Array2, Axis, ShapeBuilder, array, s};
use rand::RngExt;
use rand_distr::StandardNormal;
use random_features::apply::{
    Criterion, KernelRidge, RidgeSearch, RidgeSpectrum, RidgeStatistics, RidgeWarning,
};
use random_features::frequency::Orthogonal;
use random_features::{Error, Map, Real, Trigonometric, rng};

use super::features;
use crate::common::weigh;

/// A training set with features in `f64`, and points that are held out.
struct Case<T: Real> {
    map: Map<T>,
    x: Array2<T>,
    y: Array2<T>,
    w: Array1<f64>,
    intercept: bool,
    new_x: Array2<T>,
    new_y: Array2<T>,
}

/// What is drawn for a case: short and long lengthscales, with and without noise, weights, repeated rows and large means.
struct Drawn {
    d: usize,
    m: usize,
    lengthscale: f64,
    intercept: bool,
    train: (Array2<f64>, Array2<f64>),
    new: (Array2<f64>, Array2<f64>),
    w: Array1<f64>,
}

fn drawn(seed: u64) -> Drawn {
    let mut generator = rng(seed);
    let mut below = |n: usize| (generator.random::<f64>() * n as f64) as usize;
    let (n, m, d) = (2 + below(59), 2 + below(63), 1 + below(3));
    let (intercept, weighted, repeated) = (below(3) > 0, below(3) == 0, below(4) == 0);
    let noise = [0.0, 0.01, 0.3, 1.0][below(4)];
    let lengthscale = 0.03 * 10f64.powf(0.1 * below(26) as f64);
    let mean = if below(4) == 0 { 100.0 } else { 0.0 };
    let mut points = |rows: usize| {
        let mut normal = || generator.sample::<f64, _>(StandardNormal);
        let mut x = Array2::from_shape_simple_fn((rows, d), &mut normal);
        let copies = if repeated { rows / 3 } else { 0 };
        for i in 0..copies {
            let row = x.row(rows - 1 - i).to_owned();
            x.row_mut(i).assign(&row);
        }
        let y = Array2::from_shape_fn((rows, 1), |(i, _)| mean + (2.0 * x[[i, 0]]).sin() + noise * normal());
        (x, y)
    };
    let (train, new) = (points(n), points(20));
    let mut weight = || if weighted { 10f64.powf(generator.random::<f64>() * 2.0 - 1.0) } else { 1.0 };
    let w = Array1::from_shape_simple_fn(n, &mut weight);
    Drawn { d, m, lengthscale, intercept, train, new, w }
}

/// α and (K + λ)⁻¹ for centred rows: the exact regression, in the coordinates of √w times the rows.
struct Dual {
    inverse: Array2<f64>,
    alpha: Array1<f64>,
    /// Σ ln of the eigenvalues of (K + λ)/λ.
    volume: f64,
}

/// Householder's reflections, which make the leading columns a triangle, of an array of columns.
fn reflect(m: &mut Array2<f64>, columns: usize) {
    for k in 0..columns {
        let mut v = m.slice(s![k.., k]).to_owned();
        v[0] += v.dot(&v).sqrt().copysign(v[0]);
        let square = v.dot(&v);
        for j in k..m.ncols() {
            let factor = 2.0 * v.dot(&m.slice(s![k.., j])) / square;
            m.slice_mut(s![k.., j]).scaled_add(-factor, &v);
        }
    }
}

/// R of M = QR with MᵀM = K + λI for M = [Zᵀ; √λ I], so that no digits of small eigenvalues are lost in K.
fn triangle(z: &Array2<f64>, lambda: f64) -> Array2<f64> {
    let (n, d) = z.dim();
    let mut m = Array2::zeros((d + n, n).f());
    m.slice_mut(s![..d, ..]).assign(&z.t());
    m.slice_mut(s![d.., ..]).diag_mut().fill(lambda.sqrt());
    reflect(&mut m, n);
    m.slice_move(s![..n, ..])
}

/// β of rows √w z and targets √w y, by least squares for [Z; √λ I].
fn primal(z: &Array2<f64>, y: &Array1<f64>, lambda: f64) -> Array1<f64> {
    let (n, d) = z.dim();
    let mut m = Array2::zeros((n + d, d + 1).f());
    m.slice_mut(s![..n, ..d]).assign(z);
    m.slice_mut(s![n.., ..d]).diag_mut().fill(lambda.sqrt());
    m.slice_mut(s![..n, d]).assign(y);
    reflect(&mut m, d);
    let mut beta = Array1::zeros(d);
    for i in (0..d).rev() {
        let sum: f64 = (i + 1..d).map(|k| m[[i, k]] * beta[k]).sum();
        beta[i] = (m[[i, d]] - sum) / m[[i, i]];
    }
    beta
}

/// The exact regression of rows √w z and targets √w y. The intercept is the constant feature √w without a penalty.
fn dual(z: &Array2<f64>, y: &Array1<f64>, w: &Array1<f64>, lambda: f64, intercept: bool) -> Dual {
    let n = z.nrows();
    let root = w.mapv(f64::sqrt);
    let mean = z.t().dot(w) / w.sum();
    let centred = if intercept { z - &mean } else { z.clone() };
    let r = triangle(&(&centred * &root.view().insert_axis(Axis(1))), lambda);
    let mut back = Array2::<f64>::zeros((n, n));
    for j in 0..n {
        for i in (0..=j).rev() {
            let sum: f64 = (i + 1..=j).map(|k| r[[i, k]] * back[[k, j]]).sum();
            back[[i, j]] = (f64::from(u8::from(i == j)) - sum) / r[[i, i]];
        }
    }
    let mut inverse = back.dot(&back.t());
    let volume = r.diag().iter().map(|v| (v * v / lambda).ln()).sum();
    // Centred rows have 1/λ in the direction √w, which the intercept takes away.
    if intercept {
        let one = &root / w.sum().sqrt();
        let column = inverse.dot(&one);
        let gain = one.dot(&column);
        for i in 0..n {
            for j in 0..n {
                inverse[[i, j]] -= column[i] * column[j] / gain;
            }
        }
    }
    let y_mean = if intercept { y.dot(w) / w.sum() } else { 0.0 };
    let alpha = inverse.dot(&((y - y_mean) * &root));
    Dual { inverse, alpha, volume }
}

impl<T: Real> Case<T> {
    /// A case of 2 to 60 rows and 4 to 128 features.
    fn random(seed: u64) -> Self {
        let Drawn { d, m, lengthscale, intercept, train, new, w } = drawn(seed);
        let narrow = |a: Array2<f64>| a.mapv(T::narrow);
        Case {
            map: Trigonometric.gaussian(Orthogonal.draw(d, m, seed).unwrap(), lengthscale).unwrap(),
            x: narrow(train.0),
            y: narrow(train.1),
            w,
            intercept,
            new_x: narrow(new.0),
            new_y: narrow(new.1),
        }
    }

    fn spectrum(&self) -> RidgeSpectrum<T> {
        let statistics = RidgeStatistics::new(self.map.clone(), 1).unwrap();
        let mut statistics = if self.intercept { statistics } else { statistics.without_intercept() };
        statistics.update(&self.x, weigh(&self.y, &self.w)).unwrap();
        statistics.spectrum().unwrap()
    }

    /// Leave-one-out, held-out and generalised cross-validation errors, and minus the log evidence.
    fn stated(&self, spectrum: &RidgeSpectrum<T>, lambda: f64) -> [f64; 4] {
        [
            Criterion::leave_one_out(&self.x, weigh(&self.y, &self.w)),
            Criterion::held_out(&self.new_x, &self.new_y),
            Criterion::GeneralisedCrossValidation,
            Criterion::LogEvidence,
        ]
        .map(|criterion| spectrum.errors(&criterion, &[lambda]).map_or(f64::INFINITY, |errors| errors[0]))
    }

    /// The four criteria of the exact regression.
    fn exact(&self, lambda: f64) -> [f64; 4] {
        let wide = |a: &Array2<T>| a.mapv(|v| v.widen()).column(0).to_owned();
        let (z, y, n) = (features(&self.map, &self.x), wide(&self.y), self.x.nrows());
        let Dual { inverse, alpha, volume } = dual(&z, &y, &self.w, lambda, self.intercept);
        let root = self.w.mapv(f64::sqrt);
        let weight = self.w.sum();
        // √w (y − ŷ) = λ α, and 1 − h = λ (K + λ)⁻¹.
        let left_out = (0..n).map(|i| (alpha[i] / inverse[[i, i]]).powi(2)).sum::<f64>() / weight;
        let mean = if self.intercept { z.t().dot(&self.w) / weight } else { Array1::zeros(z.ncols()) };
        let y_mean = if self.intercept { y.dot(&self.w) / weight } else { 0.0 };
        let beta =
            primal(&((&z - &mean) * root.view().insert_axis(Axis(1))), &((&y - y_mean) * &root), lambda);
        let new = (features(&self.map, &self.new_x) - &mean).dot(&beta) + y_mean - wide(&self.new_y);
        let held_out = new.mapv(|e| e * e).mean().unwrap();
        let residuals = lambda * lambda * alpha.dot(&alpha);
        // Weights count rows: those beyond n add no eigenvalues.
        let left = weight - n as f64 + lambda * inverse.diag().sum();
        let generalised = residuals / weight / (left / weight).powi(2);
        let own = f64::from(u8::from(self.intercept));
        let noise = lambda * alpha.dot(&((&y - y_mean) * &root)) / (weight - own);
        let evidence = -0.5 * ((weight - own) * ((std::f64::consts::TAU * noise).ln() + 1.0) + volume);
        [left_out, held_out, generalised, -evidence]
    }
}

/// Rounding of a criterion, relative to itself; absolute, in nats per row, for the evidence.
fn difference(k: usize, stated: f64, exact: f64, rows: usize) -> f64 {
    if k == 3 { (stated - exact).abs() / rows as f64 } else { (stated / exact - 1.0).abs() }
}

/// The rounding error of Σ w φ φᵀ, of which the evidence names twice the spectral norm.
fn rounding<T: Real>(spectrum: &RidgeSpectrum<T>) -> f64 {
    match spectrum.log_evidence(1.0001 * spectrum.resolution()) {
        Err(Error::Singular { least, .. }) => least,
        _ => spectrum.resolution(),
    }
}

/// Leave-one-out, held-out and evidence to 5 %, and leave-one-out to 1e-3 and 1e-6 for λ of 10³ and 10⁶ bounds, and known from 100 bounds.
fn random_cases<T: Real>(seeds: std::ops::Range<u64>, generalised: f64) {
    for seed in seeds {
        let case = Case::<T>::random(seed);
        let spectrum = case.spectrum();
        let bound = rounding(&spectrum);
        for factor in [0.1, 1.0, 3.0, 10.0, 100.0, 1e3, 1e6] {
            let lambda = factor * bound;
            if lambda <= spectrum.resolution() {
                continue;
            }
            let (stated, exact) = (case.stated(&spectrum, lambda), case.exact(lambda));
            let left_out = if factor >= 1e6 {
                1e-6
            } else if factor >= 1e3 {
                1e-3
            } else {
                0.05
            };
            let most = [left_out, 0.05, generalised, 0.05];
            for (k, (stated, exact)) in stated.into_iter().zip(exact).enumerate() {
                let off = difference(k, stated, exact, case.x.nrows());
                assert!(
                    stated == f64::INFINITY || off < most[k],
                    "{seed}, {k}, {factor}: {stated} for {exact}"
                );
            }
            assert!(factor < 100.0 || stated[0].is_finite(), "{seed}, {factor}: {}", exact[0]);
        }
    }
}

#[test]
fn errors_are_exact_or_infinite_f64() {
    random_cases::<f64>(0..300, 0.05);
}

#[test]
fn errors_are_exact_or_infinite_f32() {
    // Sums in single precision are worse for so few rows.
    random_cases::<f32>(0..300, 0.25);
}

/// Without another row the other one is predicted by its own target, whatever λ is.
#[test]
fn two_points_have_one_error_for_every_lambda() {
    let (x, y) = (array![[0.0], [1.0]], array![[0.0], [1.0]]);
    let map: Map<f64> = Trigonometric.gaussian(Orthogonal.draw(1, 32, 7).unwrap(), 0.03).unwrap();
    let spectrum = super::statistics(&map, &x, &y).spectrum().unwrap();
    let errors = |lambdas: &[f64]| spectrum.errors(&Criterion::leave_one_out(&x, &y), lambdas).unwrap();
    assert_eq!(errors(&[1e-15]), [f64::INFINITY]);
    assert!(errors(&[1e-13, 1e-12, 1e-6, 1.0]).iter().all(|error| (error - 1.0).abs() < 0.01));
    for error in errors(&[3e-15, 1e-14, 3e-14]) {
        assert!(error == f64::INFINITY || (error - 1.0).abs() < 0.05, "{error}");
    }
}

#[test]
fn weights_without_rows_and_gram_matrices_without_entries() {
    let mut generator = rng(9);
    let x = Array2::from_shape_simple_fn((60, 2), || generator.sample::<f64, _>(StandardNormal));
    let y = x.column(0).mapv(f64::sin).insert_axis(Axis(1));
    let search = RidgeSearch::<f64>::new(Orthogonal.draw(2, 32, 7).unwrap(), |omega, ell| {
        Trigonometric.gaussian(omega, ell)
    });
    // λ that rounding takes away are no reason to try smaller ones.
    let search = search.with_lambdas([1e-300, 1e-20, 1e-3, 1.0]);
    let found = search.fit(&x, &y).unwrap();
    assert!(matches!(found.warnings(), [RidgeWarning::Rounding { lambda: 1e-3, .. }, ..]), "{found}");
    let weights = Array1::from_elem(60, 1e-8);
    let refused = [Criterion::GeneralisedCrossValidation, Criterion::LogEvidence];
    let search = std::cell::RefCell::new(Some(search));
    for criterion in refused {
        let own = search.take().unwrap().with_criterion(criterion);
        let error = own.fit(&x, weigh(&y, &weights)).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "the sum of the weights", .. }), "{error}");
        search.replace(Some(own));
    }
    let zero = KernelRidge::spectrum(&Array2::<f64>::zeros((60, 60)), &y).unwrap();
    let choice = zero.choose(&Criterion::LeaveOneOut, &zero.lambdas()).unwrap();
    assert!(choice.0 == 1.0 && choice.1.is_finite(), "{choice:?}");
}
