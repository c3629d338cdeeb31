//! GERF, complex-exponential, regularised-softmax and Matérn maps: unbiased, of the closed-form variance, with the
//! right limits, and clear about what they refuse.
//!
//! Seeds are fixed. A z-score beyond 4.5 has probability 7e-6, and there are some 220 of them here: the rate of false
//! alarms is below 2e-3 over all seeds.

use crate::common::{
    MORE_MAPS, Name, Sample, at_pairs, frequencies, gaussian, point, points, shifted, softmax,
    unbiased_at_pairs,
};
use ndarray::{Array1, Array2, Axis, stack};
use num_complex::Complex64;
use random_features::compose::{Bases, Conditioning, Hybrid};
use random_features::extend::{Coupling, Lift, Radius};
use random_features::frequency::{
    Antithetic, Counts, Frequencies, Hadamard, Independent, Orthogonal, Simplex, Sobol,
};
use random_features::kernel::{Activation, Gaussian, Matern, RegularisedSoftmax, Smoothness, Softmax};
use random_features::map::{AnyKernel, Transform};
use random_features::theory::complex_exponential::Symmetry;
use random_features::theory::gerf::GerfSign;
use random_features::theory::{self, BlockLaw, Dependence, Law, Pair, diagonal, gerf};
use random_features::workbench::RootDim;
use random_features::{
    ComplexExponential, Error, Gerf, Hyperbolic, Map, Nonlinear, Poisson, Positive, Side, Trigonometric, rng,
};

const LIMIT: f64 = 4.5;
const DRAWS: u64 = 30_000;

/// Draws maps and compares their estimates with the exact kernel and, where there is one, the closed-form variance,
/// which must be there if `known`.
fn check(case: &str, make: impl Fn(u64) -> Map<f64>, pair: (&Array1<f64>, &Array1<f64>), known: bool) {
    check_with(DRAWS, case, make, pair, known);
}

/// Draws so many maps and compares them as [`check`] does.
fn check_with(
    draws: u64,
    case: &str,
    make: impl Fn(u64) -> Map<f64>,
    (x, y): (&Array1<f64>, &Array1<f64>),
    known: bool,
) {
    let alone = |x: &Array1<f64>| x.clone().insert_axis(Axis(0));
    check_pairs(draws, case, make, (&alone(x), &alone(y)), known);
}

/// Compares the means over paired rows, whose estimates have one law, as [`check`] does.
fn check_pairs(
    draws: u64,
    case: &str,
    make: impl Fn(u64) -> Map<f64>,
    (x, y): (&Array2<f64>, &Array2<f64>),
    known: bool,
) {
    let map = make(0);
    let exact = map.kernel().unwrap().value(&x.row(0), &y.row(0)).unwrap();
    assert_eq!(map.log_variance(&x.row(0), &y.row(0)).unwrap().is_some(), known, "{case}");
    if known {
        return unbiased_at_pairs(case, make, (x, y), exact, (draws, LIMIT));
    }
    let (mean, _) = at_pairs(draws, make, (x, y), exact);
    assert!(mean.z(exact).abs() < LIMIT, "{case}: mean {} of {exact}", mean.mean);
}

#[test]
fn generalised_maps_are_unbiased_and_of_the_closed_form_variance() {
    let d = 4;
    let (x, y) = (point::<f64>(d, 1, 0.6), point::<f64>(d, 5, 0.5));
    let couplings: [&dyn Coupling; 3] = [&Independent, &Orthogonal, &Simplex::default()];
    for name in MORE_MAPS.into_iter().chain([Name::Full(Complex64::new(0.02, 0.05))]) {
        // Each draw is seen at pairs of one kernel value and one variance: entries of A are in turn, and ω and −ω have one law.
        let pairs = |x: &Array1<f64>| match name {
            Name::Gerf(..) => shifted(x, 1),
            Name::Complex(..) => shifted(x, 2),
            _ => stack![Axis(0), *x, -x],
        };
        let draws = if matches!(name, Name::Gerf(..)) { 10_000 } else { 15_000 };
        for coupling in couplings {
            // Closed forms under couplings: for GERF and real matrices.
            let (gerf, positive) = match name {
                Name::Gerf(a, sign) => (true, a.im == 0.0 && sign == GerfSign::Plus),
                _ => (false, name.matrix(d).iter().all(|a| a.im == 0.0)),
            };
            let known = gerf || positive || format!("{coupling:?}") == "Independent";
            let target = if positive { gaussian() } else { softmax() };
            let make = |seed| name.make(frequencies(d, 7, coupling, seed), target.clone());
            check_pairs(draws, &format!("{name:?}, {coupling:?}"), make, (&pairs(&x), &pairs(&y)), known);
        }
    }
}

#[test]
fn radii_of_root_d_estimate_the_regularised_kernel() {
    let d = 4;
    let pair = (&point::<f64>(d, 1, 0.6), &point::<f64>(d, 5, 0.5));
    let couplings: [&dyn Coupling; 4] =
        [&Independent, &Orthogonal, &Simplex::default(), &Antithetic(Orthogonal)];
    for coupling in couplings {
        let omega = |seed| coupling.with_radii(RootDim).draw(d, 7, rng(seed).next_u64()).unwrap();
        let case = format!("{coupling:?}");
        check(&case, |seed| Positive.softmax(omega(seed)).unwrap(), pair, true);
        check(
            &case,
            |seed| Hyperbolic.build(omega(seed), RegularisedSoftmax::default()).unwrap(),
            pair,
            true,
        );
    }
    let sobol = |seed| Sobol.with_radii(RootDim).draw(d, 7, rng(seed).next_u64()).unwrap();
    check("Sobol", |seed| Positive.softmax(sobol(seed)).unwrap(), pair, false);
}

#[test]
fn spectral_radii_estimate_matern_kernels() {
    let d = 3;
    let pair = (&point::<f64>(d, 1, 0.6), &point::<f64>(d, 5, 0.9));
    let couplings: [(&dyn Coupling, bool); 4] =
        [(&Independent, true), (&Antithetic(Independent), true), (&Orthogonal, true), (&Sobol, false)];
    for smoothness in [Smoothness::Half, Smoothness::ThreeHalves, Smoothness::FiveHalves] {
        for (coupling, known) in couplings {
            let omega = |seed| coupling.with_radii(smoothness).draw(d, 6, rng(seed).next_u64()).unwrap();
            let make = |seed| -> Map<f64> { Trigonometric.matern(omega(seed), vec![1.0, 0.8, 1.5]).unwrap() };
            // Waves are bounded: fewer draws show a tenth of their variance.
            check_with(8_000, &format!("{smoothness:?}, {coupling:?}"), make, pair, known);
        }
    }
}

/// Features of two maps agree to rounding.
fn same(a: &Map<f64>, b: &Map<f64>) {
    let x = points::<f64>(9, a.dim(), 1.3);
    for side in [Side::X, Side::Y] {
        let (a, b) = (a.features(side, &x).unwrap().to_array(), b.features(side, &x).unwrap().to_array());
        assert_eq!(a.dim(), b.dim());
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-13 * b.abs().max(1.0)));
    }
}

#[test]
fn limits_between_maps() {
    for d in [1, 2, 5] {
        let omega = || frequencies(d, 6, &Independent, 3);
        let complex = |entry: Complex64, symmetry, target: AnyKernel| {
            let a = Transform::diagonal(vec![entry; d]).unwrap();
            ComplexExponential::new(a, symmetry).build(omega(), target).unwrap()
        };
        let zero = |sign| Gerf::new(0.0, sign).unwrap();
        for target in
            [softmax(), gaussian(), Gaussian::new(0.7).unwrap().into(), Softmax::new(2.0).unwrap().into()]
        {
            let positive = Positive.build(omega(), target.clone()).unwrap();
            let trigonometric = Trigonometric.build(omega(), target.clone()).unwrap();
            same(&complex(Complex64::ONE, Symmetry::Plain, target.clone()), &positive);
            same(&complex(Complex64::I, Symmetry::Plain, target.clone()), &trigonometric);
            let hyperbolic = Hyperbolic.build(omega(), target.clone()).unwrap();
            same(&complex(Complex64::ONE, Symmetry::Symmetric, target.clone()), &hyperbolic);
            same(&zero(GerfSign::Plus).build(omega(), target.clone()).unwrap(), &positive);
            same(&zero(GerfSign::Minus).build(omega(), target.clone()).unwrap(), &trigonometric);
            // A full matrix that is diagonal.
            let entry = Complex64::new(0.8, 0.3);
            let full = Array2::from_diag(&Array1::from_elem(d, entry));
            let full = ComplexExponential::new(Transform::full(full).unwrap(), Symmetry::Plain)
                .build(omega(), target.clone());
            same(&full.unwrap(), &complex(entry, Symmetry::Plain, target));
        }
    }
}

#[test]
fn a_complex_diagonal_is_exact_at_its_centres() {
    for (d, norm) in [(1, 0.3), (4, 1.0), (16, 20.0), (16, 300.0)] {
        // No coordinate is 0, where no A is exact.
        let (x, y) = (point::<f64>(d, 1, norm) + 0.01, point::<f64>(d, 6, 0.7 * norm) + 0.01);
        let a = Transform::diagonal(diagonal::complex(&x.to_vec(), &y.to_vec(), 1e-9)).unwrap();
        let omega = frequencies(d, 3, &Independent, 1);
        let map = ComplexExponential::new(a, Symmetry::Plain).softmax::<f64>(omega).unwrap();
        let log = map.log_estimate(&x, &y).unwrap();
        // To eps · (|ω·Mx| + …): some hundred at norm 20, where phases are compared.
        assert!(
            log.sign == 1.0 && (log.ln_abs - x.dot(&y)).abs() < 1e-14 * (1.0 + norm * norm),
            "{d}, {norm}: {} instead of {}",
            log.ln_abs,
            x.dot(&y)
        );
        let variance = map.log_variance(&x, &y).unwrap().unwrap();
        assert!(variance - 2.0 * x.dot(&y) < -20.0, "{variance}");
    }
}

/// The optimal A is where the closed form is least, and its variance is that of the draws (tested above).
#[test]
fn optimal_positive_features_are_optimal() {
    let (x, y) = (point::<f64>(6, 1, 1.1), point::<f64>(6, 5, 0.9));
    let sum = (&x + &y).mapv(|v| v * v).sum();
    let variance = |gerf: Gerf| {
        gerf.softmax::<f64>(frequencies(6, 10, &Independent, 1))
            .unwrap()
            .log_variance(&x, &y)
            .unwrap()
            .unwrap()
    };
    let best = Gerf::optimal(6, sum).unwrap();
    assert!(best.a().re < 0.0 && best.sign() == GerfSign::Plus);
    for step in [-0.05, -0.01, 0.01, 0.05] {
        let other = Gerf::new(best.a() * (1.0 + step), GerfSign::Plus).unwrap();
        assert!(variance(other) > variance(best), "{step}");
    }
    let positive = Positive.softmax::<f64>(frequencies(6, 10, &Independent, 1)).unwrap();
    assert!(variance(best) < positive.log_variance(&x, &y).unwrap().unwrap());
    assert_eq!(Gerf::optimal(3, 0.0).unwrap().a().re, 0.0);
    assert!(Gerf::optimal(3, 1e300).unwrap().a().re.is_finite());
}

#[test]
fn padding_uses_the_padded_dimension_throughout() {
    // d = 5 in N = 16. The bias of GERF with D and ‖ω‖ of different dimensions would be (1 − 4A)^{±11/4}: −80 or 400 %.
    let (x, y) = (point::<f64>(5, 1, 0.6), point::<f64>(5, 5, 0.5));
    let gerf = Gerf::new(-0.2, GerfSign::Plus).unwrap();
    let sample: Vec<f64> = (0..DRAWS)
        .map(|seed| {
            gerf.softmax(frequencies(5, 32, &Hadamard::default(), seed)).unwrap().estimate(&x, &y).unwrap()
        })
        .collect();
    let mean = Sample::of(&sample);
    let exact = x.dot(&y).exp();
    assert!(mean.error < 0.005 * exact && (mean.mean / exact - 1.0).abs() < 0.02, "{} of {exact}", mean.mean);

    let omega = |seed| Hadamard::default().with_radii(RootDim).draw(5, 8, rng(seed).next_u64()).unwrap();
    let map = Positive.softmax::<f64>(omega(0)).unwrap();
    let Some(random_features::Recipe::Plain(recipe)) = map.recipe() else { panic!("{map:?}") };
    assert_eq!(recipe.kernel, RegularisedSoftmax::in_dimension(16).into());
    let kernel = map.kernel().unwrap().value(&x, &y).unwrap();
    let sample: Vec<f64> =
        (0..DRAWS).map(|s| Positive.softmax(omega(s)).unwrap().estimate(&x, &y).unwrap()).collect();
    let mean = Sample::of(&sample);
    assert!(
        mean.error < 0.005 * kernel && (mean.mean / kernel - 1.0).abs() < 0.02,
        "{} of {kernel}",
        mean.mean
    );
    // The kernel of dimension 5 is another one and is refused.
    assert!(matches!(
        Positive.build::<f64>(omega(0), RegularisedSoftmax::default()),
        Err(Error::Kernel { .. })
    ));
}

/// What the crate's page says of rounding: the error of an exponent is a fixed multiple of eps (‖ω‖‖x‖ + ½‖x‖²) in any
/// dimension, and therefore √d times a multiple of eps (|ω·x| + ½‖x‖²) with one sum over the coordinates.
#[test]
fn rounding_of_exponents_is_as_stated() {
    let (n, m) = (32, 64);
    let (dense, structured): (&dyn Coupling, &dyn Coupling) = (&Independent, &Hadamard::default());
    for (d, coupling, stated) in [64, 1024, 4096]
        .into_iter()
        .flat_map(|d| [(d, dense, 0.125 * (d as f64).sqrt()), (d, structured, 1.0)])
    {
        let omega = frequencies(d, m, coupling, 5);
        let x =
            (frequencies(d, n, &Independent, 6).rows().into_owned() / (d as f64).sqrt()).mapv(|v| v as f32);
        let (found, _, scales) =
            Positive.softmax::<f32>(omega.clone()).unwrap().log_features(Side::X, &x).unwrap();
        let (mut of_norms, mut of_values, rows) = (Vec::new(), Vec::new(), omega.rows());
        for (i, x) in x.rows().into_iter().enumerate() {
            let x = x.mapv(f64::from);
            let half = 0.5 * x.dot(&x);
            for (j, row) in rows.rows().into_iter().enumerate() {
                let product = row.dot(&x);
                let exponent = product - half - 0.5 * (m as f64).ln();
                let log = f64::from(found[[i, j]]) + scales[[i, 0]];
                let error = (log - exponent).abs() / f64::from(f32::EPSILON);
                of_norms.push(error / ((row.dot(&row) * x.dot(&x)).sqrt() + half));
                of_values.push(error / (product.abs() + half));
            }
        }
        let rms = |v: &[f64]| (v.iter().map(|v| v * v).sum::<f64>() / v.len() as f64).sqrt();
        let worst = of_norms.iter().fold(0.0, |top: f64, v| top.max(*v));
        println!("d {d}, {coupling:?}: {:.3}, at most {worst:.3}; {:.3}", rms(&of_norms), rms(&of_values));
        assert!(rms(&of_norms) < 0.25 && worst < 2.0, "d {d}, {coupling:?}: {}, {worst}", rms(&of_norms));
        assert!(rms(&of_values) < 1.5 * stated, "d {d}, {coupling:?}: {}", rms(&of_values));
    }
}

#[test]
fn any_norm_is_finite() {
    for name in MORE_MAPS {
        for (d, m) in [(1, 1), (3, 5), (64, 20)] {
            for norm in [0.0, 1e-8, 1.0, 1e3, 1e15] {
                for target in [softmax(), gaussian()] {
                    let map = name.make::<f32>(frequencies(d, m, &Independent, 4), target);
                    let (x, y) = (point::<f32>(d, 2, norm), point::<f32>(d, 7, 0.5 * norm));
                    let features = map.features_of(Side::X, &x).unwrap();
                    assert!(features.mantissas().iter().all(|v| v.abs() <= 1.0), "{name:?}, {norm}");
                    assert!(features.log_scales()[[0, 0]].is_finite());
                    let log = map.log_estimate(&x, &y).unwrap();
                    assert!(!log.ln_abs.is_nan() && log.ln_abs < f64::INFINITY, "{name:?}, {norm}: {log:?}");
                    if norm <= 1e-8 {
                        // Features of 0 are constants; the estimate of the kernel there is near 1 but for GERF's
                        // ω-term.
                        assert!(log.value().is_finite());
                    }
                }
            }
        }
        let map = name.make::<f32>(frequencies(2, 3, &Independent, 4), softmax());
        let x = ndarray::arr2(&[[0.5, 1.0], [f32::NAN, 1.0], [f32::INFINITY, 0.0], [0.1, 0.2]]);
        let features = map.features(Side::Y, &x).unwrap();
        for (i, row) in features.mantissas().rows().into_iter().enumerate() {
            assert_eq!(row.iter().all(|v| v.is_nan()), i == 1 || i == 2, "{name:?}, row {i}");
            assert_eq!(row.iter().any(|v| v.is_nan()), i == 1 || i == 2, "{name:?}, row {i}");
        }
    }
}

/// Slopes above 4 take saturated projections beyond the range, where exponents saturate again.
#[test]
fn steep_maps_are_finite_to_the_end_of_the_range() {
    let huge = [1e20, 1e30, 1e38].map(|norm| (norm, Gerf::optimal(2, 2.0 * norm * norm).unwrap()));
    let steep = [-4.1, -125.0, -1e6].map(|a| Gerf::new(a, GerfSign::Plus).unwrap());
    let turned = Gerf::new(Complex64::new(-125.0, 3.0), GerfSign::Minus).unwrap();
    let cases = huge.into_iter().chain(steep.into_iter().chain([turned]).map(|gerf| (1e38, gerf)));
    for (norm, gerf) in cases {
        let map = gerf.softmax::<f32>(frequencies(2, 5, &Independent, 1)).unwrap();
        let x = ndarray::arr1(&[norm as f32, 2.0 * norm as f32]);
        for side in [Side::X, Side::Y] {
            let features = map.features_of(side, &x).unwrap();
            assert!(features.mantissas().iter().all(|v| v.abs() <= 1.0), "{gerf:?}, {norm}");
            assert!(features.log_scales()[[0, 0]].is_finite(), "{gerf:?}, {norm}");
        }
        let log = map.log_estimate(&x, &x).unwrap();
        assert!(!log.ln_abs.is_nan() && log.ln_abs < f64::INFINITY, "{gerf:?}, {norm}: {log:?}");
        let variance = map.log_variance(&x, &x).unwrap().unwrap();
        assert!(!variance.is_nan(), "{gerf:?}, {norm}");
    }
}

/// Variances for kernels of x − y do not depend on where the points lie: no sums of norms that cancel.
#[test]
fn variances_of_shift_invariant_kernels_are_shift_invariant() {
    let matern =
        |seed| Independent.with_radii(Smoothness::ThreeHalves).draw(2, 8, rng(seed).next_u64()).unwrap();
    let omega = || frequencies(2, 8, &Independent, 1);
    let maps: [Map<f64>; 3] = [
        Trigonometric.matern(matern(1), 1.0).unwrap(),
        Trigonometric.gaussian(omega(), 1.0).unwrap(),
        Gerf::new(-0.02, GerfSign::Minus).unwrap().gaussian(omega(), 1.0).unwrap(),
    ];
    for map in maps {
        let at = |s: f64| {
            let (x, y) = (ndarray::arr1(&[s, 0.0]), ndarray::arr1(&[s + 1.0, 0.0]));
            map.log_variance(&x, &y).unwrap().unwrap()
        };
        for s in [1e3, 1e7, 1.7e9] {
            assert!((at(s) - at(0.0)).abs() < 1e-12, "{} and {} at {s}", at(s), at(0.0));
        }
    }
    // For a positive map it does, through ‖x+y‖² alone; the factor K² does not.
    let map = Positive.gaussian::<f64>(omega(), 1.0).unwrap();
    let (x, y) = (ndarray::arr1(&[0.3, 0.1]), ndarray::arr1(&[-0.2, 0.5]));
    let pair = random_features::theory::Pair::new(x.iter().copied().zip(y.iter().copied()));
    let expected = -pair.difference + pair.sum.exp_m1().ln() - 8f64.ln();
    assert!((map.log_variance(&x, &y).unwrap().unwrap() - expected).abs() < 1e-13);
}

/// Antithetic pairs with any A and s, and the trigonometric limit under any coupling. 24 z-scores.
#[test]
fn closed_forms_of_generalised_maps_under_couplings() {
    let d = 3;
    let pair = (&point::<f64>(d, 1, 0.6), &point::<f64>(d, 5, 0.5));
    let complex = Complex64::new;
    let cases = [
        (complex(-0.2, 0.0), GerfSign::Plus),
        (complex(-0.03, 0.0), GerfSign::Plus),
        (complex(-0.05, 0.06), GerfSign::Plus),
        (complex(-0.04, 0.0), GerfSign::Minus),
        (complex(-0.02, -0.05), GerfSign::Minus),
        (complex(0.01, 0.03), GerfSign::Minus),
    ];
    for (a, sign) in cases {
        let gerf = Gerf::new(a, sign).unwrap();
        for coupling in [&Antithetic(Independent) as &dyn Coupling, &Antithetic(Orthogonal)] {
            let make = |seed| -> Map<f64> { gerf.softmax(frequencies(d, 7, coupling, seed)).unwrap() };
            check(&format!("A = {a}, {sign:?}, {coupling:?}"), make, pair, true);
        }
    }
    let variance = |map: &Map<f64>| map.log_variance(pair.0, pair.1).unwrap().unwrap();
    for coupling in [&Antithetic(Orthogonal) as &dyn Coupling, &Orthogonal, &Simplex::default()] {
        let omega = || frequencies(d, 7, coupling, 1);
        let zero = |sign| Gerf::new(0.0, sign).unwrap().softmax::<f64>(omega()).unwrap();
        assert!(
            (variance(&zero(GerfSign::Plus)) - variance(&Positive.softmax(omega()).unwrap())).abs() < 1e-12
        );
        assert!(
            (variance(&zero(GerfSign::Minus)) - variance(&Trigonometric.softmax(omega()).unwrap())).abs()
                < 1e-12
        );
    }
}

/// The closed form of coupled GERF is seen by the test: the couplings change the error by many standard errors, and by the
/// same amount for every A, that of A = 0.
#[test]
fn the_gain_of_couplings_does_not_depend_on_a() {
    let d = 4;
    let (x, y) = (point::<f64>(d, 1, 0.6), point::<f64>(d, 5, 0.5));
    let pair = Pair::new(x.iter().copied().zip(y.iter().copied()));
    for sign in [GerfSign::Plus, GerfSign::Minus] {
        for law in [Law::orthogonal(d, 7), frequencies(d, 7, &Simplex::default(), 1).law().clone()] {
            let gain = |a: Complex64| {
                let variance = |law: &Law| gerf::ln_variance(&pair, a, sign, law).unwrap().exp();
                variance(&Law::independent(7)) - variance(&law)
            };
            let plain = gain(Complex64::ZERO);
            for a in [Complex64::new(-0.1, 0.0), Complex64::new(-0.05, 0.06), Complex64::new(0.02, -0.03)] {
                assert!(
                    (gain(a) - plain).abs() < 1e-13 * plain.abs() + 1e-15,
                    "{a}: {} and {plain}",
                    gain(a)
                );
            }
        }
    }
    // No two directions in one dimension have an angle between.
    let line = Pair::new([(0.3, 0.4)]);
    let angle = Law::blocks(2, 2, theory::Dependence::Orthogonal, Radius::Chi);
    assert_eq!(gerf::ln_variance(&line, Complex64::new(-0.1, 0.1), GerfSign::Plus, &angle), None);
}

/// Where ζ = Ax + A⁻ᵀy is imaginary the estimate is a cosine, where it is real an exponential, whatever A is. Twelve
/// z-scores of means and as many of variances.
#[test]
fn complex_exponentials_in_antithetic_pairs() {
    let d = 4;
    let pair = (&point::<f64>(d, 1, 0.6), &point::<f64>(d, 5, 0.5));
    let entries = [Complex64::new(1.0, 0.4), Complex64::new(0.0, 1.1)];
    let independent = |name: Name, m| {
        let map = name.make::<f64>(frequencies(d, m, &Independent, 1), softmax());
        map.log_variance(pair.0, pair.1).unwrap().unwrap()
    };
    for symmetry in [Symmetry::Plain, Symmetry::Symmetric] {
        let name = Name::Complex(entries, symmetry);
        // Three pairs and a row that is left alone; pairs of orthogonal rows have no closed form.
        for (coupling, known) in
            [(&Antithetic(Independent) as &dyn Coupling, true), (&Antithetic(Orthogonal), false)]
        {
            let make = |seed| name.make(frequencies(d, 7, coupling, seed), softmax());
            check(&format!("{symmetry:?}, {coupling:?}"), make, pair, known);
        }
        // A pair is one term of the symmetric variant.
        let pairs = name.make::<f64>(frequencies(d, 8, &Antithetic(Independent), 1), softmax());
        let found = pairs.log_variance(pair.0, pair.1).unwrap().unwrap();
        assert!((found - independent(Name::Complex(entries, Symmetry::Symmetric), 4)).abs() < 1e-13);
        let alone = theory::complex_exponential::ln_variance(
            0.3,
            &[Complex64::new(0.2, 0.5)],
            symmetry,
            &Law::independent(3),
        );
        let mse = theory::complex_exponential::ln_mse(0.3, &[Complex64::new(0.2, 0.5)], symmetry, 3);
        assert!((alone.unwrap() - mse).abs() < 1e-14);
    }
}

#[test]
fn complex_exponentials_with_real_or_imaginary_sums() {
    let d = 4;
    let (x, y) = (point::<f64>(d, 1, 0.6), point::<f64>(d, 5, 0.5));
    let entries: Vec<Complex64> = [1.2, 0.8, -1.1, 0.9].iter().map(|v| Complex64::new(0.0, *v)).collect();
    for symmetry in [Symmetry::Plain, Symmetry::Symmetric] {
        for coupling in [&Orthogonal as &dyn Coupling, &Simplex::default(), &Antithetic(Orthogonal)] {
            let make = |seed| -> Map<f64> {
                let a = Transform::diagonal(entries.clone()).unwrap();
                let omega = frequencies(d, 7, coupling, seed);
                ComplexExponential::new(a, symmetry).softmax(omega).unwrap()
            };
            // Waves are bounded: fewer draws show a tenth of their variance.
            check_with(8_000, &format!("imaginary, {symmetry:?}, {coupling:?}"), make, (&x, &y), true);
            // Points that are 0 where A is imaginary.
            let mixed = vec![Complex64::new(1.0, 0.0), Complex64::new(0.0, 1.0)];
            let (u, v) = (ndarray::arr1(&[0.5, 0.0]), ndarray::arr1(&[0.3, 0.0]));
            let make = |seed| -> Map<f64> {
                let a = Transform::diagonal(mixed.clone()).unwrap();
                let omega = frequencies(2, 7, coupling, seed);
                ComplexExponential::new(a, symmetry).softmax(omega).unwrap()
            };
            check_with(24_000, &format!("real, {symmetry:?}, {coupling:?}"), make, (&u, &v), true);
        }
    }
    let identity = Transform::diagonal(vec![Complex64::I; d]).unwrap();
    let complex = ComplexExponential::new(identity, Symmetry::Plain)
        .softmax::<f64>(frequencies(d, 7, &Orthogonal, 1))
        .unwrap();
    let trigonometric = Trigonometric.softmax::<f64>(frequencies(d, 7, &Orthogonal, 1)).unwrap();
    let variance = |map: &Map<f64>| map.log_variance(&x, &y).unwrap().unwrap();
    assert!((variance(&complex) - variance(&trigonometric)).abs() < 1e-13);
}

#[test]
fn parameters_outside_their_domain_are_refused() {
    for a in [0.125, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = Gerf::new(a, GerfSign::Plus).unwrap_err();
        assert!(error.to_string().contains("A of GERF"), "{error}");
    }
    assert!(Gerf::new(Complex64::new(0.0, f64::NAN), GerfSign::Minus).is_err());
    assert!(
        Gerf::optimal(0, 1.0).is_err()
            && Gerf::optimal(2, -1.0).is_err()
            && Gerf::optimal(2, f64::NAN).is_err()
    );
    assert!(gerf::optimal(2, 1.0).a < 0.0);
    for bad in [0.0, f64::NAN, f64::INFINITY, 1e-320] {
        assert!(
            matches!(Transform::diagonal(vec![Complex64::from(bad)]), Err(Error::Parameter { .. })),
            "{bad}"
        );
    }
    assert!(Transform::diagonal(vec![]).is_err());
    let singular = Array2::from_elem((2, 2), Complex64::ONE);
    assert!(matches!(Transform::full(singular), Err(Error::Parameter { .. })));
    assert!(matches!(Transform::full(Array2::from_elem((2, 3), Complex64::ONE)), Err(Error::Shape { .. })));
    assert!(Transform::full(Array2::zeros((0, 0))).is_err());
    let three = Transform::diagonal(vec![Complex64::ONE; 3]).unwrap();
    let omega = || frequencies(2, 3, &Independent, 1);
    let refused = ComplexExponential::new(three, Symmetry::Plain).softmax::<f32>(omega());
    assert!(matches!(refused, Err(Error::Shape { .. })));
}

#[test]
fn targets_go_with_radii() {
    let root = || Orthogonal.with_radii(RootDim).draw(2, 3, rng(1).next_u64()).unwrap();
    let matern = || Orthogonal.with_radii(Smoothness::Half).draw(2, 3, rng(1).next_u64()).unwrap();
    let chi = || frequencies(2, 3, &Orthogonal, 1);
    let other = Matern::new(Smoothness::FiveHalves, 1.0).unwrap();
    let half = || Matern::new(Smoothness::Half, 1.0).unwrap();
    let gerf = Gerf::new(-0.1, GerfSign::Plus).unwrap();
    let refused = [
        Positive.build::<f32>(root(), Softmax::default()).map(drop),
        Positive.build::<f32>(chi(), RegularisedSoftmax::default()).map(drop),
        Positive.build::<f32>(matern(), half()).map(drop),
        Trigonometric.build::<f32>(matern(), other).map(drop),
        Trigonometric.build::<f32>(root(), RegularisedSoftmax::default()).map(drop),
        Trigonometric.matern::<f32>(chi(), 1.0).map(drop),
        Trigonometric.gaussian::<f32>(matern(), 1.0).map(drop),
        gerf.gaussian::<f32>(root(), 1.0).map(drop),
        gerf.build::<f32>(matern(), half()).map(drop),
        gerf.softmax::<f32>(root()).map(drop),
    ];
    for (i, refused) in refused.into_iter().enumerate() {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Kernel { .. }), "case {i}: {error}");
        assert!(error.to_string().contains("does not estimate"), "{error}");
    }
}

/// Frequencies without a stated law, or of a law without a name, take any target; but only where the law is stated
/// and the target's is the kernel known.
#[test]
fn kernels_are_known_where_laws_are_stated() {
    let omega = || frequencies(3, 6, &Independent, 1);
    let rows = || omega().rows().into_owned();
    let law = Law::independent(6);
    let stated = Frequencies::from_parts(rows(), law.clone()).unwrap();
    let of_radius = |radius| BlockLaw::new(3, Dependence::Independent, radius);
    let mixed = Law::of_blocks([Radius::Chi, Radius::RootDim].map(of_radius));
    assert_eq!(mixed.radius(), Radius::Other);
    assert_eq!(Law::unknown(6).radius(), Radius::Unstated);
    let others = [Law::unknown(6), law.clone().with_radius(Radius::Other), mixed];
    let unknown = others.map(|law| Frequencies::from_parts(rows(), law).unwrap());
    let identity = || Transform::diagonal(vec![Complex64::ONE; 3]).unwrap();
    let smoothness = Smoothness::Half;
    let matern = Frequencies::from_parts(rows(), law.with_radius(Radius::Matern(smoothness))).unwrap();
    let known = |omega: &Frequencies| {
        let gerf = Gerf::new(-0.1, GerfSign::Plus).unwrap();
        let conditioned = ComplexExponential::new(identity(), Symmetry::Plain).softmax::<f64>(omega.clone());
        [
            Positive.softmax::<f64>(omega.clone()).unwrap().kernel().is_some(),
            Positive.build::<f64>(omega.clone(), Softmax::default()).unwrap().kernel().is_some(),
            Trigonometric.gaussian::<f64>(omega.clone(), 1.0).unwrap().kernel().is_some(),
            gerf.softmax::<f64>(omega.clone()).unwrap().kernel().is_some(),
            conditioned.unwrap().kernel().is_some(),
        ]
    };
    let target = || Matern::new(smoothness, 1.0).unwrap();
    assert_eq!(known(&stated), [true; 5]);
    assert!(Trigonometric.build::<f64>(matern, target()).unwrap().kernel().is_some());
    for omega in unknown {
        assert_eq!(known(&omega), [false; 5], "{:?}", omega.law());
        assert!(Trigonometric.build::<f64>(omega, target()).unwrap().kernel().is_none());
    }
}

/// Maps that are made from one `Arc` keep no copy of its frequencies, and are those made from equal ones.
#[test]
fn frequencies_are_shared() {
    use random_features::frequency::Frequencies;
    use random_features::map::Recipe;
    use random_features::recipe::Omega;
    use std::sync::Arc;
    let omega = Arc::new(frequencies(3, 8, &Orthogonal, 1));
    let target = || Gaussian::new(0.5).unwrap();
    let (shared, other) = (
        Positive.build::<f64>(&omega, target()).unwrap(),
        Trigonometric.build::<f64>(omega.clone(), target()).unwrap(),
    );
    same(&shared, &Positive.gaussian(frequencies(3, 8, &Orthogonal, 1), 0.5).unwrap());
    for map in [&shared, &other] {
        let Some(Recipe::Plain(recipe)) = map.recipe() else { panic!("{map:?}") };
        let Omega::Frequencies(own) = recipe.omega else { panic!("{map:?}") };
        assert!(Arc::ptr_eq(&own, &omega));
    }
    for wrong in [vec![0.5; 2], vec![0.5; 4]] {
        let refused = Positive.build::<f64>(&omega, Gaussian::new(wrong).unwrap());
        assert!(matches!(refused, Err(Error::Shape { .. })));
    }
    // Frequencies of counts are another kind, and a transform is for one dimension.
    let a = |d| Transform::diagonal(vec![Complex64::I; d]).unwrap();
    let narrow = ComplexExponential::new(a(2), Symmetry::Plain).build::<f64>(&omega, target());
    assert!(matches!(narrow, Err(Error::Shape { .. })));
    let counts =
        random_features::frequency::Counts::poisson(3, 8, 1.0, random_features::rng(1).next_u64()).unwrap();
    assert!(matches!(Positive.build::<f64>(counts, target()), Err(Error::Frequencies { .. })));
    // What overflows T once the lengthscale has divided it is refused, not made smaller.
    let large = || Frequencies::from_rows(ndarray::arr2(&[[1e38, 1.0]])).unwrap();
    assert!(Positive.gaussian::<f64>(large(), 0.1).is_ok() && Positive.softmax::<f32>(large()).is_ok());
    assert!(matches!(Positive.gaussian::<f32>(large(), 0.1), Err(Error::NotFinite { .. })));
    let beyond = Frequencies::from_rows(ndarray::arr2(&[[1e39, 1.0]])).unwrap();
    assert!(matches!(Positive.softmax::<f32>(beyond), Err(Error::NotFinite { .. })));
}

/// Features from the normal form alone.
fn by_parts(map: &Map<f64>, side: Side, x: &Array1<f64>) -> Vec<f64> {
    let parts = map.parts(side).unwrap();
    let dots = parts.weights.dot(x);
    let exponents: Vec<Complex64> =
        dots.iter().zip(&parts.bias).map(|(dot, bias)| parts.slope * dot + bias).collect();
    let squared_norm: f64 = (0..x.len()).map(|k| (x[k] / parts.lengthscales[k]).powi(2)).sum();
    let factor = (parts.row * squared_norm + parts.constant).exp();
    let lifted: Vec<f64> = match parts.lift {
        Lift::Exp => exponents.iter().map(|p| p.re.exp()).collect(),
        Lift::ExpPair => {
            exponents.iter().map(|p| p.re.exp()).chain(exponents.iter().map(|p| (-p.re).exp())).collect()
        }
        Lift::Polar => {
            exponents.iter().map(|p| p.re.cos()).chain(exponents.iter().map(|p| p.re.sin())).collect()
        }
        Lift::ExpPolar { conjugate } => {
            let turn = |p: &Complex64| if conjugate { p.exp().conj() } else { p.exp() };
            exponents.iter().map(|p| turn(p).re).chain(exponents.iter().map(|p| turn(p).im)).collect()
        }
        Lift::Function { activation, offset } => {
            assert_eq!((activation, offset), (Activation::Relu, 0.0));
            exponents.iter().map(|p| p.re.max(0.0)).collect()
        }
        other => panic!("{other:?}"),
    };
    lifted.into_iter().map(|v| v * factor).collect()
}

#[test]
fn features_follow_from_the_parts() {
    let (d, m) = (4, 6);
    let omega = || frequencies(d, m, &Orthogonal, 3);
    let each = Gaussian::new(vec![0.5, 1.0, 2.0, 1.5]).unwrap();
    let complex = Gerf::new(Complex64::new(0.02, 0.05), GerfSign::Minus).unwrap();
    let maps: Vec<Map<f64>> = vec![
        Positive.build(omega(), each.clone()).unwrap(),
        Trigonometric.build(omega(), each.clone()).unwrap(),
        Hyperbolic.softmax(omega()).unwrap(),
        Gerf::new(Complex64::new(-0.1, 0.0), GerfSign::Plus).unwrap().softmax(omega()).unwrap(),
        complex.gaussian(omega(), 1.5).unwrap(),
        Nonlinear::new(Activation::Relu).build(omega(), 2.0).unwrap(),
        Positive
            .softmax(Hadamard::default().with_radii(RootDim).draw(d, m, rng(4).next_u64()).unwrap())
            .unwrap(),
    ];
    for map in &maps {
        for (side, x) in [(Side::X, point::<f64>(d, 1, 0.6)), (Side::Y, point::<f64>(d, 5, 0.5))] {
            let features = map.features_of(side, &x).unwrap().to_array();
            let by_hand = by_parts(map, side, &x);
            assert_eq!(features.len(), by_hand.len(), "{map:?}");
            let largest = by_hand.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
            let error = features.iter().zip(&by_hand).fold(0.0, |a: f64, (f, v)| a.max((f - v).abs()));
            assert!(error < 1e-13 * largest, "{map:?} {side:?}: {error}");
        }
    }
}

#[test]
fn what_is_not_in_the_normal_form_has_no_parts() {
    let d = 4;
    let draw = |seed| frequencies(d, 5, &Independent, seed);
    let hybrid = Hybrid::<Map<f64>>::angular(Bases::shared(draw(1)), draw(2)).unwrap();
    let counts = Counts::poisson(d, 5, 0.3, rng(1).next_u64()).unwrap();
    let conditioned = Positive.gaussian::<f64>(draw(3), 1.0).unwrap();
    let conditioned = conditioned
        .conditioned(&Conditioning::identity(d).unwrap().shifted(vec![0.1; d], vec![0.2; d]).unwrap())
        .unwrap();
    for map in [hybrid, Poisson::default().softmax(counts).unwrap(), conditioned] {
        assert_eq!(map.parts(Side::X), None, "{map:?}");
    }
}
