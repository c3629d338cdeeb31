//! How lengthscales are tried: the grid that grows, waves along coordinates, scales of coordinates.

use ndarray::{Array1, Array2, ArrayView1, s};
use rand::RngExt;
use rand_distr::StandardNormal;
use random_features::Error;
use random_features::apply::{RidgeFit, RidgeSearch, RidgeTrial};
use random_features::kernel::Lengthscale;
use random_features::linalg::Backend;
use random_features::workbench::factors::Factorise;
use random_features::workbench::search::{End, Growth, own_scales, wave_shares};

/// A wave of numbers below 1 that has no pattern.
fn number(i: usize, seed: usize) -> f64 {
    ((i * 7919 + seed * 104_729) as f64).sin()
}

/// Whatever the errors are, no place is tried twice, limits and budget are kept, and the best is the first of the least errors.
#[test]
fn grids_keep_their_bounds() {
    for seed in 0..200 {
        let limits = [-24 + (seed % 20) as i32, 20 - (seed % 13) as i32];
        let budget = seed % 17;
        let mut growth = Growth::new([-4, 4], limits, budget);
        let error = |k: i32| match seed % 4 {
            0 => number((k + 100) as usize, seed),
            1 => (number((k + 100) as usize, seed) * 2.0).round(),
            2 => f64::from((k - limits[0]).pow(2)),
            _ => f64::INFINITY,
        };
        let mut tried: Vec<i32> = Vec::new();
        loop {
            let next = growth.next();
            if next.is_empty() {
                break;
            }
            for k in next {
                assert!(!tried.contains(&k) && (limits[0]..=limits[1]).contains(&k), "{k} after {tried:?}");
                tried.push(k);
                growth.tell(k, error(k));
            }
        }
        assert_eq!(growth.tried().collect::<Vec<_>>(), tried);
        assert!(tried.len() <= 9 + budget);
        let least = tried.iter().map(|k| error(*k)).fold(f64::INFINITY, f64::min);
        let best = tried.iter().find(|k| error(**k) == least).copied();
        assert_eq!(growth.best(), best);
        let at =
            |end: End| growth.edge() == Some((end, best == Some(limits[usize::from(end == End::Upper)])));
        assert_eq!(at(End::Lower), tried.iter().min().copied() == best);
        assert!(seed % 4 != 2 || budget < 16 || best == Some(limits[0]), "{seed}: {best:?}");
        assert!(growth.next().is_empty());
    }
}

/// Places between two are halves, away from the best, on both sides alike.
#[test]
fn both_ends_are_searched_alike() {
    let tried = |sign: i32| {
        let mut growth = Growth::new([-1, 1], [-11, 11], 16);
        let mut batches = Vec::new();
        loop {
            let mut next = growth.next();
            if next.is_empty() {
                return batches;
            }
            next.iter().for_each(|k| growth.tell(*k, (f64::from(sign * k) - 8.9).abs()));
            next.iter_mut().for_each(|k| *k *= sign);
            next.sort_unstable();
            batches.push(next);
        }
    };
    assert_eq!(tried(1), tried(-1));
    assert_eq!(tried(1)[4..], [vec![11], vec![6, 10], vec![7, 9]]);
}

/// What is better than each place ends the search.
#[test]
fn a_grid_ends_where_something_else_is_better() {
    let mut growth = Growth::default();
    for k in growth.next() {
        growth.tell(k, f64::from(k));
    }
    let mut other = growth.clone();
    other.tell_other(&-4.0);
    assert_eq!(other.next(), growth.next());
    other.tell_other(&-4.1);
    assert!(other.next().is_empty() && other.best().is_none() && other.edge().is_none());
}

/// The share of variance by the normal equations of 1, cos ωx and sin ωx.
fn naive_share(x: &[f64], y: &[f64], w: &[f64], omega: f64) -> f64 {
    let n = x.len();
    let total: f64 = w.iter().sum();
    let mean = |v: &dyn Fn(usize) -> f64| (0..n).map(|i| w[i] * v(i)).sum::<f64>() / total;
    let y_mean = mean(&|i| y[i]);
    let waves = |i: usize| [1.0, (omega * x[i]).cos(), (omega * x[i]).sin()];
    let products = Array2::from_shape_fn((3, 3), |(a, b)| mean(&|i| waves(i)[a] * waves(i)[b]));
    let cross = Array2::from_shape_fn((3, 1), |(a, _)| mean(&|i| waves(i)[a] * (y[i] - y_mean)));
    let solved = Backend::default().cholesky(&products).unwrap().solve(&cross).unwrap();
    (&solved * &cross).sum() / mean(&|i| (y[i] - y_mean).powi(2))
}

#[test]
fn shares_of_waves_are_those_of_least_squares() {
    for (seed, offset, unit) in [(0, 0.0, 1.0), (1, 1e6, 1e-3), (2, -1e3, 1e150)] {
        let x: Vec<f64> = (0..60).map(|i| number(i, seed)).collect();
        let y: Vec<f64> = (0..60).map(|i| number(i, seed + 10) + (9.0 * x[i]).sin()).collect();
        let w: Vec<f64> = (0..60).map(|i| [1.0, 0.0, 2.5][i % 3]).collect();
        let far: Array1<f64> = y.iter().map(|y| unit * (y + offset)).collect();
        let shares = wave_shares(&x, far.view(), &Array1::from(w.clone()), [0.7, 0.3], 200).unwrap();
        for (k, share) in shares.iter().enumerate() {
            let expected = naive_share(&x, &y, &w, 0.7 + 0.3 * k as f64);
            let rounding = 1e-9 + 1e-14 * offset.abs();
            assert!((share - expected).abs() < rounding, "{k}: {share} is not {expected}");
        }
    }
    // Constant targets have no shares, and a coordinate of one value makes none.
    let w = Array1::ones(9);
    assert!(wave_shares(&[0.5; 9], Array1::ones(9).view(), &w, [1.0, 1.0], 3).unwrap().is_empty());
    let y = Array1::from_shape_fn(9, |i| i as f64);
    assert_eq!(wave_shares(&[0.5; 9], y.view(), &w, [1.0, 1.0], 3).unwrap(), [0.0; 3]);
}

#[test]
fn scales_of_coordinates_are_medians_of_pairs() {
    let median = |mut v: Vec<f64>| {
        v.sort_by(f64::total_cmp);
        0.5 * v[v.len() / 2] + 0.5 * v[(v.len() - 1) / 2]
    };
    for n in [2, 5, 40] {
        let x = Array2::from_shape_fn((n, 4), |(i, k)| match k {
            0 => 1e5 * number(i, 1),
            1 => 1e-6 * number(i, 2) + 3.0,
            // Most differences are 0.
            2 => f64::from(u8::from(i == 0)),
            _ => 7.0,
        });
        let pairs: Vec<(usize, usize)> = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
        let some = |v: Vec<f64>| {
            let found = median(v.clone());
            if found > 0.0 { found } else { median(v.into_iter().filter(|v| *v > 0.0).collect()) }
        };
        let (medians, common) = own_scales(&x).unwrap();
        for k in 0..3 {
            let expected = some(pairs.iter().map(|(i, j)| (x[[*i, k]] - x[[*j, k]]).abs()).collect());
            assert_eq!(medians[k], expected, "n = {n}, coordinate {k}");
        }
        assert_eq!(medians[3], 1.0);
        let scaled = &x / &Array1::from(medians);
        let norm = |v: ArrayView1<'_, f64>, u: ArrayView1<'_, f64>| (&v - &u).mapv(|v| v * v).sum().sqrt();
        let expected = some(pairs.iter().map(|(i, j)| norm(scaled.row(*i), scaled.row(*j))).collect());
        assert!((common / expected - 1.0).abs() < 1e-12, "{common} is not {expected}");
    }
    assert!(matches!(own_scales(&Array2::<f64>::ones((5, 2))), Err(Error::Parameter { .. })));
    assert!(matches!(own_scales(&Array2::<f64>::ones((1, 2))), Err(Error::Parameter { .. })));
}

/// The lengthscales of a search, of which the fifth is the median distance.
fn lengthscales(fit: &RidgeFit<f64>) -> Vec<f64> {
    let of = |trial: &RidgeTrial| match trial.lengthscale {
        Some(Lengthscale::Isotropic(ell)) => ell,
        _ => panic!("{trial}"),
    };
    fit.trials().iter().map(of).collect()
}

/// A wave that is weak beside the noise is one beyond chance in one coordinate, but not in one of 200.
#[test]
fn more_coordinates_have_more_chances() {
    let wide = Array2::from_shape_fn((100, 200), |(i, k)| if k == 0 { number(i, 1) } else { 3.0 });
    let x = wide.slice(s![.., ..1]).to_owned();
    let y = Array2::from_shape_fn((100, 1), |(i, _)| ((i * i) as f64).sin() + 0.6 * (40.0 * x[[i, 0]]).sin());
    let tries_waves = |x: &Array2<f64>| {
        let all = lengthscales(&RidgeSearch::gaussian(x.ncols(), 4, 1).unwrap().fit(x, &y).unwrap());
        let places = all.iter().map(|ell| 2.0 * (ell / all[4]).log2());
        places.into_iter().any(|k: f64| (k - k.round()).abs() > 1e-9)
    };
    assert!(tries_waves(&x) && !tries_waves(&wide));
}

/// A search tries the three that explain most of four waves in as many targets.
#[test]
fn the_strongest_waves_are_tried() {
    let x = Array2::from_shape_fn((200, 1), |(i, _)| number(i, 1));
    let y = Array2::from_shape_fn((200, 4), |(i, j)| {
        ((40 + 20 * j) as f64 * x[[i, 0]]).sin() + 0.3 * j as f64 * number(i, 5 + j)
    });
    let fit = RidgeSearch::<f64>::gaussian(1, 4, 1).unwrap().without_standardisation().fit(&x, &y).unwrap();
    let tries = |omega: f64| lengthscales(&fit).iter().any(|ell| (ell * omega - 1.0).abs() < 0.02);
    assert_eq!([40.0, 60.0, 80.0, 100.0].map(tries), [true, true, true, false], "{fit}");
}

/// Noise makes no start: in 40 sets of three coordinates none is expected more often than with a probability of 0.01 each.
#[test]
fn noise_is_no_wave() {
    let mut generator = random_features::rng(5);
    let mut found = 0;
    for seed in 0..40 {
        let mut normal = |d| Array2::from_shape_fn((100, d), |_| generator.sample::<f64, _>(StandardNormal));
        let (x, y) = (normal(3), normal(1));
        let fit = RidgeSearch::<f64>::gaussian(3, 4, seed).unwrap().with_rows(100).fit(&x, &y).unwrap();
        let median = fit.trials()[4].lengthscale.clone().unwrap();
        let random_features::kernel::Lengthscale::Isotropic(median) = median else { panic!("{fit}") };
        let is_place = |ell: f64| {
            let k = 2.0 * (ell / median).log2();
            (k - k.round()).abs() < 1e-9
        };
        let places = fit.trials().iter().all(|trial| match trial.lengthscale {
            Some(random_features::kernel::Lengthscale::Isotropic(ell)) => is_place(ell),
            _ => false,
        });
        found += usize::from(!places);
    }
    assert!(found <= 3, "{found}");
}
