//! Covariances of relative errors against a simulation.

use crate::attention::judge::normal;
use crate::attention::judge::report::{COMPLEX, maps};
use random_features::frequency::Independent;
use random_features::theory::covariance;
use random_features::{Gerf, rng};

/// The mean over draws of products of relative errors. With 20,000 draws its standard error is known from the sample; four
/// of them, for 6 values, leave a false-alarm rate of 4e-4.
#[test]
fn covariances_are_those_of_a_simulation() {
    let (d, draws) = (3, 20_000);
    let (x, y) = (normal(1, d, 0.5, 1), normal(2, d, 0.5, 2));
    let dots = |sign: f64| {
        let (w, v) = (&x.row(0) + &(&y.row(0) * sign), &x.row(0) + &(&y.row(1) * sign));
        (w.dot(&v), (w.dot(&w), v.dot(&v)))
    };
    let a = Gerf::optimal(d, 1.5).unwrap().a().re;
    let (sum, squares) = dots(1.0);
    let expected = [
        covariance::positive(sum),
        covariance::hyperbolic(sum),
        covariance::trigonometric(dots(-1.0).0),
        covariance::gerf(a, d, sum, squares),
        covariance::complex_gerf(COMPLEX[0].0, COMPLEX[0].1, d, sum, squares),
        covariance::complex_gerf(COMPLEX[1].0, COMPLEX[1].1, d, dots(-1.0).0, dots(-1.0).1),
    ];
    let kernel = [0, 1].map(|j| x.row(0).dot(&y.row(j)).exp());
    let mut samples = [const { Vec::new() }; 6];
    for seed in 0..draws as u64 {
        let complex = COMPLEX.map(|(a, s)| {
            Gerf::new(a, s).unwrap().softmax(Independent.draw(d, 1, rng(seed).next_u64()).unwrap()).unwrap()
        });
        for (map, sample) in maps(d, 1, seed).iter().chain(&complex).zip(&mut samples) {
            let gram = map.gram(&x, &y).unwrap();
            sample.push((gram[[0, 0]] / kernel[0] - 1.0) * (gram[[0, 1]] / kernel[1] - 1.0));
        }
    }
    for (sample, expected) in samples.iter().zip(expected) {
        let mean = sample.iter().sum::<f64>() / draws as f64;
        let variance = sample.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / draws as f64;
        let error = (variance / draws as f64).sqrt();
        assert!(
            (mean - expected).abs() < 4.0 * error && error < 0.3 * expected.abs() + 0.02,
            "{mean} ± {error}, {expected}"
        );
    }
    assert!(covariance::gerf(0.125, d, sum, squares).is_nan());
    assert!((covariance::gerf(0.0, d, 0.7, (2.0, 3.0)) - covariance::positive(0.7)).abs() < 1e-14);
}
