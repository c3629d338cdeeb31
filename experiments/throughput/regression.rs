//! Cases of regression: m features are the cosines and sines of m/2 frequencies.

use std::hint::black_box;

use ndarray::{Array1, Array2, s};
use rand::distr::{Distribution, StandardUniform};
use random_features::apply::{Glm, RidgeSearch, RidgeStatistics};
use random_features::extend::Lift;
use random_features::frequency::Frequencies;
use random_features::{Real, Trigonometric, rng};

use crate::request::{Case, Request};
use crate::work::{Cost, Result, Work, points, product, timed, zeros};

/// Lengthscales and λ of the search, in steps of √2 around 4 and of 2.07 from 10⁻³ to 10³.
const LENGTHSCALES: i32 = 9;
const LAMBDAS: i32 = 20;

pub fn prepare<T: Real>(request: &Request, omega: Frequencies) -> Result<Work>
where
    StandardUniform: Distribution<T>,
{
    match request.case {
        Case::RidgeStatistics => statistics::<T>(request, omega, |_| Ok(())),
        Case::RidgeFit => {
            statistics::<T>(request, omega, |sums| sums.solve(1.0).map(drop).map_err(Into::into))
        }
        Case::RidgePredict => predict::<T>(request, omega),
        Case::RidgeSearch => search::<T>(request),
        _ => logistic::<T>(request, omega),
    }
}

/// The sums of a ridge regression of one target on m features, which never reach memory, and what becomes of them.
fn statistics<T: Real>(
    request: &Request,
    omega: Frequencies,
    then: impl Fn(&RidgeStatistics<T>) -> Result<()> + 'static,
) -> Result<Work>
where
    StandardUniform: Distribution<T>,
{
    let Request { n, d, m, .. } = *request;
    let (x, map) = (points::<T>(n, d)?, Trigonometric.gaussian(omega, 1.0)?);
    let y = x.slice(s![.., ..1]).to_owned();
    let cost = Cost {
        flops: sums(request),
        lifts: vec![(Lift::Polar, n as f64 * (m / 2) as f64)],
        read: size_of_val(x.as_slice().unwrap_or_default()) as f64,
        ..Cost::default()
    };
    let run = timed(move || {
        let mut statistics = RidgeStatistics::new(map.clone(), 1)?;
        statistics.update(black_box(&x), &y)?;
        then(&statistics)?;
        Ok(statistics)
    });
    Ok(Work::new(run, cost))
}

/// Predictions of one target from m features.
fn predict<T: Real>(request: &Request, omega: Frequencies) -> Result<Work>
where
    StandardUniform: Distribution<T>,
{
    let Request { n, d, m, .. } = *request;
    let (x, map) = (points::<T>(n, d)?, Trigonometric.gaussian(omega, 1.0)?);
    let head = x.slice(s![..n.min(100), ..]).to_owned();
    let mut statistics = RidgeStatistics::new(map, 1)?;
    statistics.update(&head, head.slice(s![.., ..1]))?;
    let (model, mut out) = (statistics.solve(1.0)?, zeros::<T>(n, 1)?);
    let cost = Cost {
        flops: product(request, m / 2) + 2.0 * n as f64 * m as f64,
        lifts: vec![(Lift::Polar, n as f64 * (m / 2) as f64)],
        read: size_of_val(x.as_slice().unwrap_or_default()) as f64,
        ..Cost::default()
    };
    Ok(Work::new(timed(move || Ok(model.predict_into(black_box(&x), &mut out)?)), cost))
}

/// The search over nine lengthscales and twenty λ by leave-one-out, with the fit of the best.
fn search<T: Real>(request: &Request) -> Result<Work>
where
    StandardUniform: Distribution<T>,
{
    let Request { n, d, m, .. } = *request;
    let (x, signal, y) = data::<T>(n, d)?;
    let lengthscales = (0..LENGTHSCALES).map(|k| 4.0 * 2f64.powf(f64::from(k - LENGTHSCALES / 2) / 2.0));
    let lambdas = (0..LAMBDAS).map(|k| 10f64.powf(6.0 * f64::from(k) / f64::from(LAMBDAS - 1) - 3.0));
    let search = RidgeSearch::gaussian(d, m / 2, 1)?;
    let search = search.with_lengthscales(lengthscales).with_lambdas(lambdas).with_rows(n);
    let found = search.fit(&x, &y)?.model().predict_single(&x)?;
    let accuracy = Some(determination(&found, &signal));
    let cost = Cost {
        flops: f64::from(LENGTHSCALES) * sums(request),
        lifts: vec![(Lift::Polar, f64::from(LENGTHSCALES) * n as f64 * (m / 2) as f64)],
        ..Cost::default()
    };
    Ok(Work { accuracy, ..Work::new(timed(move || Ok(search.fit(black_box(&x), &y)?)), cost) })
}

/// Logistic regression of two classes with λ = 1; one pass of products counts as its least cost.
fn logistic<T: Real>(request: &Request, omega: Frequencies) -> Result<Work>
where
    StandardUniform: Distribution<T>,
{
    let Request { n, d, m, .. } = *request;
    let (x, _, y) = data::<T>(n, d)?;
    let labels: Vec<usize> = y.iter().map(|y| usize::from(*y > T::zero())).collect();
    let model = Glm::logistic(Trigonometric.gaussian(omega, 1.0)?, 2)?;
    let found = model.fit(&x, &labels, 1.0)?.model().classify(&x)?;
    let right = found.iter().zip(&labels).filter(|(a, b)| a == b).count();
    let cost = Cost {
        flops: sums(request),
        lifts: vec![(Lift::Polar, n as f64 * (m / 2) as f64)],
        ..Cost::default()
    };
    let run = timed(move || Ok(model.fit(black_box(&x), &labels, 1.0)?));
    Ok(Work { accuracy: Some(right as f64 / n as f64), ..Work::new(run, cost) })
}

/// Operations of features and of the lower triangle of their products with each other.
fn sums(request: &Request) -> f64 {
    let Request { n, m, .. } = *request;
    product(request, m / 2) + n as f64 * m as f64 * (m as f64 + 1.0)
}

/// Points; a wave along their diagonal; and the wave with noise.
fn data<T: Real>(n: usize, d: usize) -> Result<(Array2<T>, Array1<f64>, Array1<T>)>
where
    StandardUniform: Distribution<T>,
{
    let (x, mut rng) = (points::<T>(n, d)?, rng(3));
    // The sum of all coordinates has the mean √d/2 and the variance 1/12.
    let middle = (d as f64).sqrt() / 2.0;
    let along = |row: ndarray::ArrayView1<'_, T>| row.iter().map(|x| x.widen()).sum::<f64>() - middle;
    let signal: Array1<f64> = x.rows().into_iter().map(|row| (12f64.sqrt() * along(row)).sin()).collect();
    let y = signal.mapv(|signal| T::narrow(signal + 0.3 * rng.normal()));
    Ok((x, signal, y))
}

/// R² of predictions.
fn determination<T: Real>(found: &Array1<T>, targets: &Array1<f64>) -> f64 {
    let mean = targets.sum() / targets.len() as f64;
    let errors = found.iter().zip(targets).map(|(a, b)| (a.widen() - b).powi(2)).sum::<f64>();
    1.0 - errors / targets.mapv(|y| (y - mean).powi(2)).sum()
}
