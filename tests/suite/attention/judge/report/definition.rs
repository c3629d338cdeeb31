//! Every number of a report against the sum over pairs that it stands for.

use crate::attention::judge::report::{
    COMPLEX, Defined, conditioning, defined, maps, off_centre, report, shaped,
};
use ndarray::Array1;
use random_features::apply::attention::{Attention, TokenSample};
use random_features::frequency::Independent;
use random_features::kernel::{Kernel, RegularisedSoftmax};
use random_features::map::Mechanism;
use random_features::theory::covariance;
use random_features::{DenseExponential, Gerf, Positive, rng};

/// Every number of a report is the sum over pairs that it stands for.
#[test]
fn reports_are_their_definitions() {
    let (d, m) = (6, 256);
    let [q, k, v] = off_centre(d, 0.3);
    let (x, y) = (&q * (d as f64).powf(-0.25), &k * (d as f64).powf(-0.25));
    let logit = |i: usize, j: usize| x.row(i).dot(&y.row(j));
    let dots = |sign: f64, i: usize, j: usize, k: usize| {
        let (w, other) = (&x.row(i) + &(&y.row(j) * sign), &x.row(i) + &(&y.row(k) * sign));
        (w.dot(&other), (w.dot(&w), other.dot(&other)))
    };
    let a = Gerf::optimal(d, 1.5).unwrap().a().re;
    let dense = DenseExponential::new((0..d).map(|k| -0.03 * k as f64).collect()).unwrap();
    let rho = dense.rho();
    // ln of the mean of e^{ω·w} over the sphere of frequencies.
    let sphere = |w: &Array1<f64>| {
        let log = RegularisedSoftmax::default().log_of_slices(&w.to_vec(), &vec![0.0; d]);
        log.ln_abs + 0.5 * w.dot(w)
    };
    let regularised = |sign: f64, i: usize, j: usize, k: usize| {
        let (w, other) = (&x.row(i) + &y.row(j), &x.row(i) + &y.row(k));
        (sphere(&(&w + &(&other * sign))) - sphere(&w) - sphere(&other)).exp_m1()
    };
    let none = |_: usize, _: usize| 0.0;
    let ratio = |i: usize, j: usize| {
        let own = RegularisedSoftmax::default().log_of_slices(&x.row(i).to_vec(), &y.row(j).to_vec());
        own.ln_abs - logit(i, j)
    };
    let of = |covariance: &dyn Fn(usize, usize, usize) -> f64| defined((12, &v), &logit, &none, covariance);
    let biased =
        |covariance: &dyn Fn(usize, usize, usize) -> f64| defined((12, &v), &logit, &ratio, covariance);
    let complex = |n: usize, sign: f64| {
        of(&|i, j, k| {
            let (dot, squares) = dots(sign, i, j, k);
            covariance::complex_gerf(COMPLEX[n].0, COMPLEX[n].1, d, dot, squares)
        })
    };
    let expected = [
        of(&|i, j, k| covariance::positive(dots(1.0, i, j, k).0)),
        of(&|i, j, k| covariance::hyperbolic(dots(1.0, i, j, k).0)),
        of(&|i, j, k| covariance::trigonometric(dots(-1.0, i, j, k).0)),
        of(&|i, j, k| {
            let (dot, squares) = dots(1.0, i, j, k);
            covariance::gerf(a, d, dot, squares)
        }),
        complex(0, 1.0),
        complex(1, -1.0),
        of(&|i, j, k| {
            covariance::dense(&(&x.row(i) + &y.row(j)).to_vec(), &(&x.row(i) + &y.row(k)).to_vec(), &rho)
        }),
        biased(&|i, j, k| regularised(1.0, i, j, k)),
        biased(&|i, j, k| 0.5 * (regularised(1.0, i, j, k) + regularised(-1.0, i, j, k))),
    ];
    let maps = maps(d, m, 5).into_iter().chain(shaped(d, m, 5).into_iter().take(5).map(|(_, map)| map));
    let mut normalisers = Vec::new();
    for (map, Defined { normaliser, weights, output, mean }) in maps.zip(&expected) {
        let report = report(&map, [&q, &k, &v]);
        // Of the closed forms' rounding, and that of the table of the sphere.
        let close = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 1e-9, "{map:?}: {found}, {expected}");
        };
        let error = |[variance, bias]: &[f64; 2], m: f64| (variance / m + bias).sqrt();
        close(report.normaliser_variance * m as f64, *normaliser);
        close(report.mean_error, mean.sqrt());
        close(report.weight_error().unwrap(), error(weights, m as f64));
        close(report.output_error().unwrap(), error(output, m as f64));
        close(report.output_error_with(1 << 40).unwrap(), error(output, (1u64 << 40) as f64));
        let target = error(output, 0.7 * m as f64);
        assert!((report.frequencies_for(target) - 0.7 * m as f64).abs() <= 1.0, "{report}");
        // With fewer than normalisers need there is no error, and they are what the largest target takes.
        let least = report.frequencies_for(f64::INFINITY);
        assert_eq!(least, (10.0 * normaliser).ceil());
        let few = (10.0 * normaliser) as usize;
        assert!(report.output_error_with(few).is_none() && report.output_error_with(few + 1).is_some());
        normalisers.push(normaliser / m as f64);
    }
    // Whatever the map, others are compared with it on the points themselves and for the kernel itself.
    let mean = Array1::from_iter((0..12).flat_map(|i| (0..15).map(move |j| (i, j))))
        .mapv(|(i, j)| dots(1.0, i, j, j).0)
        .mean()
        .unwrap();
    let fitted = Gerf::optimal(d, mean).unwrap().a().re;
    let fitted = of(&|i, j, k| {
        let (dot, squares) = dots(1.0, i, j, k);
        covariance::gerf(fitted, d, dot, squares)
    });
    for (name, map) in shaped(d, m, 5).into_iter().filter(|(name, _)| *name != "Gaussian") {
        let report = report(&map, [&q, &k, &v]);
        assert_eq!(report.alternatives.len(), 4);
        for (mechanism, variance) in report.alternatives {
            let expected = match mechanism {
                Mechanism::Positive(_) => normalisers[0],
                Mechanism::Hyperbolic(_) => normalisers[1],
                Mechanism::Trigonometric(_) => normalisers[2],
                _ => fitted.normaliser / m as f64,
            };
            assert!(
                (variance / expected - 1.0).abs() < 1e-9,
                "{name}, {mechanism:?}: {variance}, {expected}"
            );
        }
    }
    // Each head has its own map.
    let [one, two] = [0, 2].map(|i| self::maps(d, m, 5)[i].clone());
    let both = Attention::signed(vec![one, two.clone()]).unwrap();
    assert_eq!(
        both.error_report(&TokenSample::new(&q, &k).with_values(&v).with_head(1)).unwrap(),
        report(&two, [&q, &k, &v])
    );
}

/// What the features' kernel has beside the exact one stays, also for truncated features of the Gaussian kernel.
#[test]
fn biases_are_those_of_the_kernels() {
    let d = 6;
    let [q, k, v] = off_centre(d, 0.5);
    let base =
        Positive.gaussian::<f64>(Independent.draw(d - 2, 64, rng(5).next_u64()).unwrap(), 1.3).unwrap();
    let map = base.conditioned(&conditioning(d, d - 2)).unwrap();
    let (x, y) = (&q * (d as f64).powf(-0.25), &k * (d as f64).powf(-0.25));
    let exact = |i: usize, j: usize| -0.5 * (&x.row(i) - &y.row(j)).mapv(|v| v * v).sum() / (1.3 * 1.3);
    let kernel = map.kernel().unwrap();
    let ratio = |i: usize, j: usize| {
        let own: &dyn Kernel<f64> = kernel;
        own.log_of_slices(&x.row(i).to_vec(), &y.row(j).to_vec()).ln_abs - exact(i, j)
    };
    let defined = defined((12, &v), &exact, &ratio, &|_, _, _| 0.0);
    let report = report(&map, [&q, &k, &v]);
    let (found, expected) = (report.output_error_with(1 << 60).unwrap(), defined.output[1].sqrt());
    assert!(expected > 1e-3 && (found / expected - 1.0).abs() < 1e-6, "{found}, {expected}");
}
