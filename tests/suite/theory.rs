//! Closed forms at the edges of their domains, their limits into each other, and the theorems that they must
//! obey.

use crate::common::{Sample, hypergeometric};
use num_complex::Complex64;
use random_features::Sign;
use random_features::extend::Radius;
use random_features::frequency::{Antithetic, Independent};
use random_features::theory::complex_exponential::{Symmetry, ln_mse, zeta_diagonal};
use random_features::theory::conformity::{
    conformity_excess, even_conformity_excess, ln_conformity, trigonometric_conformity, trigonometric_excess,
};
use random_features::theory::gerf::{self, GerfSign};
use random_features::theory::hybrid::{self, Sharing};
use random_features::theory::{
    Dependence, Law, Pair, bounds, coefficient, concentration, counts, diagonal, hyperbolic,
    ln_positive_orthogonality_gap, positive, regularised_hyperbolic, regularised_positive,
    regularised_positive_about_softmax, relative_error, trigonometric, trigonometric_orthogonality_gap,
};

const DIMENSIONS: [usize; 8] = [2, 3, 4, 7, 16, 65, 256, 1024];

fn close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * b.abs(), "{what}: {a} instead of {b}");
}

/// Two points in ℝᵈ at ‖x+y‖ = v and ‖x−y‖ = w, sum and difference at right angles.
fn pair(d: usize, v: f64, w: f64) -> Pair {
    Pair::new((0..d).map(|k| match k {
        0 => (0.5 * v, 0.5 * v),
        1 => (0.5 * w, -0.5 * w),
        _ => (0.0, 0.0),
    }))
}

fn simplex(d: usize) -> f64 {
    -1.0 / (d as f64 - 1.0)
}

#[test]
fn tiny_arguments_have_their_leading_terms() {
    for d in DIMENSIONS {
        let n = d as f64;
        // (E χ_d)²/d, the coefficient of cos θ v².
        let mean = 2.0 * (2.0 * (libm::lgamma(0.5 * n + 0.5) - libm::lgamma(0.5 * n))).exp() / n;
        for v2 in [1e-12, 1e-9, 1e-7] {
            let gap = -conformity_excess(d, v2, 0.0).value();
            close(gap, v2 * v2 / (2.0 * (n + 2.0)), 2e-6, "orthogonality gap");
            let kappa = trigonometric_excess(d, v2, 0.0);
            close(kappa, -v2 * v2 / (2.0 * (n + 2.0)), 2e-6, "trigonometric gap");
            for cos in [simplex(d), 0.4, -0.7] {
                close(conformity_excess(d, v2, cos).value(), cos * mean * v2, 1e-5, "coupled excess");
            }
        }
    }
}

/// A thread keeps coefficients of the series for the last few dimensions and angles: values have the bits that a thread finds which
/// has kept none.
#[test]
fn what_was_evaluated_before_changes_no_bit() {
    let asked = DIMENSIONS.into_iter().flat_map(|d| {
        let cosines = [0.0, simplex(d), 0.4, -0.4, f64::NAN];
        cosines.into_iter().flat_map(move |cos| [1e-8, 0.9, 0.02].map(|v2| (d, v2, cos)))
    });
    let all = |(d, v2, cos): (usize, f64, f64)| {
        let (one, even) = (conformity_excess(d, v2, cos), even_conformity_excess(d, v2, cos));
        [one.value(), even.value(), trigonometric_excess(d, v2, cos), ln_conformity(d, v2, cos)]
            .map(f64::to_bits)
    };
    let mut asked: Vec<(usize, f64, f64)> = asked.collect();
    let alone: Vec<_> =
        asked.iter().map(|one| std::thread::scope(|s| s.spawn(|| all(*one)).join().unwrap())).collect();
    let forwards: Vec<_> = asked.iter().map(|one| all(*one)).collect();
    asked.reverse();
    let mut backwards: Vec<_> = asked.iter().map(|one| all(*one)).collect();
    backwards.reverse();
    assert!(forwards == alone && backwards == alone);
}

#[test]
fn series_and_direct_forms_meet() {
    for d in DIMENSIONS {
        for cos in [0.0, simplex(d), 0.4, -0.7, 0.95] {
            let (below, above) = (1.0, 1.0 + 1e-13);
            // Beyond the series the excess is e^{ln ρ − v²} − 1 with ln ρ accurate to some 1e-14; the step
            // itself is 1e-13 times a slope below 3.
            let meets = |step: f64, value: f64| step.abs() <= 5e-14 + 3e-13 * value.abs();
            let at = |v2| conformity_excess(d, v2, cos).value();
            assert!(meets(at(above) - at(below), at(below)), "d {d}, cos {cos}: {}", at(above) - at(below));
            let at = |v2| even_conformity_excess(d, v2, cos).value();
            assert!(
                meets(at(above) - at(below), at(below)),
                "even, d {d}, cos {cos}: {}",
                at(above) - at(below)
            );
            let at = |z2| trigonometric_excess(d, z2, cos);
            // The step of 1e-13 itself, and rounding.
            assert!(
                (at(above) - at(below)).abs() < 1.2e-13,
                "trigonometric, d {d}, cos {cos}: {}",
                at(above) - at(below)
            );
        }
    }
}

#[test]
fn conformity_is_ordered_and_finite_up_to_overflow() {
    for d in DIMENSIONS {
        for v2 in [1e-300, 1e-3, 0.5, 3.0, 50.0, 700.0, 3e4] {
            let cosines = [-1.0, -0.9, simplex(d).max(-0.8), 0.0, 0.3, 0.9, 1.0];
            let values = cosines.map(|cos| ln_conformity(d, v2, cos));
            assert!(values.iter().all(|v| v.is_finite()), "d {d}, v² {v2}: {values:?}");
            assert!(values.windows(2).all(|w| w[0] <= w[1] * (1.0 + 1e-12)), "d {d}, v² {v2}: {values:?}");
            // ρ is a mean of e^{|ωᵢ+ωⱼ|v u}: at most that of one vector twice, at least e^0.
            assert!(values[0] >= 0.0 && values[6] <= 2.0 * v2 * (1.0 + 1e-12), "d {d}, v² {v2}: {values:?}");
        }
    }
    assert!(ln_conformity(3, 1e150, 0.0).is_finite());
    assert!(ln_conformity(0, 1.0, 0.0).is_nan() && ln_conformity(3, 1.0, 1.5).is_nan());
}

#[test]
fn trigonometric_conformity_is_a_mean_of_cosines() {
    for d in DIMENSIONS {
        for z2 in [0.0, 1e-6, 0.3, 4.0, 60.0, 2000.0] {
            for cos in [0.0, simplex(d), 0.5] {
                let kappa = trigonometric_conformity(d, z2, cos);
                assert!(kappa.abs() <= 1.0 + 1e-14, "d {d}, z² {z2}: {kappa}");
            }
        }
        assert_eq!(trigonometric_conformity(d, 0.0, 0.0), 1.0);
        // Far away nothing is left, and nothing takes long.
        for z2 in [1e9, 1e18, 1e300] {
            assert!(trigonometric_conformity(d, z2, 0.0).abs() < 1e-9);
            assert!(trigonometric_conformity(d, z2, simplex(d)).abs() < 1e-6 || d == 2);
        }
    }
}

/// Closed forms against simulation of the two coupled vectors themselves, in two dimensions, for an angle
/// that no sampler here has. 4.5 standard errors on six means: false alarms below 5e-5.
#[test]
fn conformity_is_what_it_says() {
    use rand_distr::{ChiSquared, Distribution};
    let mut rng = random_features::rng(3);
    let (cos, v2, n) = (0.3f64, 0.5f64, 400_000);
    let chi = ChiSquared::<f64>::new(2.0).unwrap();
    let uniform = rand_distr::Uniform::new(0.0, std::f64::consts::TAU).unwrap();
    let turn = cos.acos();
    let mut sums = [[0.0; 2]; 2];
    for _ in 0..n {
        let (r, s, phi) =
            (chi.sample(&mut rng).sqrt(), chi.sample(&mut rng).sqrt(), uniform.sample(&mut rng));
        let (a, b) = (v2.sqrt() * r * phi.cos(), v2.sqrt() * s * (phi + turn).cos());
        for (sum, value) in sums.iter_mut().zip([(a + b).exp(), a.cos() * b.cos()]) {
            sum[0] += value;
            sum[1] += value * value;
        }
    }
    let exact = [ln_conformity(2, v2, cos).exp(), trigonometric_conformity(2, v2, cos)];
    for ([sum, squares], exact) in sums.into_iter().zip(exact) {
        let mean = sum / f64::from(n);
        let error = ((squares / f64::from(n) - mean * mean) / f64::from(n)).sqrt();
        assert!((mean - exact).abs() < 4.5 * error, "{mean} ± {error} instead of {exact}");
    }
}

#[test]
fn errors_shrink_as_their_laws_promise() {
    for d in DIMENSIONS {
        for (v, w) in [(0.01, 0.02), (0.7, 0.4), (2.0, 1.0), (10.0, 3.0)] {
            let pair = pair(d, v, w);
            let law = |dependence| Law::blocks(d, d, dependence, Radius::Chi);
            let (iid, orthogonal) = (law(Dependence::Independent), law(Dependence::Orthogonal));
            let simplex = law(Dependence::Angle { cos: simplex(d) });
            let [a, b, c] = [&iid, &orthogonal, &simplex].map(|law| positive(&pair, law).unwrap());
            // At large v the coupling drowns in the variance of a single term.
            assert!(c <= b && b <= a && (v > 2.0 || c < b), "d {d}, v {v}: {a} {b} {c}");
            // An antithetic pair is a hyperbolic projection; for even functions it counts once.
            let (m, halved) = (Law::independent(6), Law::independent(3));
            let pairs = m.clone().antithetic();
            close(positive(&pair, &pairs).unwrap(), hyperbolic(&pair, &halved).unwrap(), 1e-12, "antithetic");
            for even in [hyperbolic, trigonometric] {
                close(even(&pair, &pairs).unwrap(), even(&pair, &halved).unwrap(), 1e-12, "even");
                // Over coupled frequencies too: four rows are two of them and their opposites.
                for dependence in [Dependence::Orthogonal, Dependence::Angle { cos: -1.0 }] {
                    let rows = |count| Law::blocks(count, count, dependence, Radius::Chi);
                    let (four, two) = (even(&pair, &rows(4).antithetic()), even(&pair, &rows(2)));
                    assert!((four.unwrap() - two.unwrap()).abs() < 1e-9, "d {d}, v {v}: {four:?} {two:?}");
                }
            }
            assert!(hyperbolic(&pair, &orthogonal).unwrap() <= hyperbolic(&pair, &iid).unwrap());
            // The other radii have other kernels: no closed form from this law.
            assert_eq!(regularised_positive(&pair, &iid), None);
            let fixed = iid.clone().with_radius(Radius::RootDim);
            assert_eq!(positive(&pair, &fixed), None);
            assert!(
                regularised_hyperbolic(&pair, &fixed).unwrap() < regularised_positive(&pair, &fixed).unwrap()
            );
        }
        // Exact points.
        for law in [Law::independent(3), Law::orthogonal(d, 3)] {
            assert_eq!(positive(&pair(d, 0.0, 1.0), &law), Some(f64::NEG_INFINITY));
            assert_eq!(hyperbolic(&pair(d, 0.0, 1.0), &law), Some(f64::NEG_INFINITY));
            assert_eq!(trigonometric(&pair(d, 1.0, 0.0), &law), Some(f64::NEG_INFINITY));
        }
    }
    assert_eq!(positive(&pair(2, 1.0, 1.0), &Law::independent(0)), None);
}

#[test]
fn maps_are_limits_of_each_other() {
    let (x, y) = ([0.3, -0.7, 1.1], [0.2, 0.4, -0.5]);
    let pair = Pair::new(x.into_iter().zip(y));
    let law = Law::independent(5);
    let complex = |a: Complex64, symmetry| ln_mse(pair.dot, &zeta_diagonal(&[a; 3], &x, &y), symmetry, 5);
    let (one, i) = (Complex64::from(1.0), Complex64::i());
    close(complex(one, Symmetry::Plain), positive(&pair, &law).unwrap(), 1e-13, "A = I");
    close(complex(one, Symmetry::Symmetric), hyperbolic(&pair, &law).unwrap(), 1e-13, "A = I, symmetric");
    close(complex(i, Symmetry::Plain), trigonometric(&pair, &law).unwrap(), 1e-13, "A = iI");
    let gerf = |sign, law: &Law| gerf::ln_variance(&pair, 0.0.into(), sign, law).unwrap() + pair.norms;
    close(gerf(GerfSign::Plus, &law), positive(&pair, &law).unwrap(), 1e-13, "GERF +");
    close(gerf(GerfSign::Minus, &law), trigonometric(&pair, &law).unwrap(), 1e-13, "GERF −");
    let orthogonal = Law::orthogonal(3, 5);
    close(gerf(GerfSign::Plus, &orthogonal), positive(&pair, &orthogonal).unwrap(), 1e-12, "orthogonal GERF");
    close(
        gerf(GerfSign::Minus, &orthogonal),
        trigonometric(&pair, &orthogonal).unwrap(),
        1e-12,
        "orthogonal GERF −",
    );
    let near = gerf::ln_variance(&pair, Complex64::new(-1e-9, 1e-9), GerfSign::Minus, &orthogonal).unwrap();
    close(near + pair.norms, trigonometric(&pair, &orthogonal).unwrap(), 1e-7, "A near 0");
    assert_eq!(gerf::ln_variance(&pair, (-0.1).into(), GerfSign::Minus, &Law::unknown(5)), None);
    assert_eq!(gerf::ln_variance(&pair, 0.2.into(), GerfSign::Plus, &law), Some(f64::INFINITY));
    let none = gerf::coefficients(0.3.into(), GerfSign::Plus, 3);
    assert!(none.b.is_nan() && none.d.is_nan());
}

#[test]
fn parameters_are_optimal() {
    let (x, y) = ([0.9, -0.4, 1.3], [0.8, 0.5, 0.6]);
    let pair = Pair::new(x.into_iter().zip(y));
    let law = Law::independent(1);
    let products: Vec<f64> = x.iter().zip(y).map(|(x, y)| x * y).collect();
    // The second moment is minimised; the variance is it minus a constant.
    let minimal = |best: f64, ln_variance: &dyn Fn(f64) -> f64| {
        for factor in [0.98, 0.999, 1.001, 1.02] {
            assert!(ln_variance(best) <= ln_variance(best * factor), "{best} and {}", best * factor);
        }
    };
    let gerf::Optimum { rho, a } = gerf::optimal(3, pair.sum);
    close(1.0 / (1.0 - 8.0 * a), rho, 1e-14, "ρ");
    minimal(a, &|a| gerf::ln_variance(&pair, a.into(), GerfSign::Plus, &law).unwrap());
    minimal(counts::optimal_lambda(&products), &|l| counts::ln_poisson_variance(&x, &y, l, 1));
    minimal(counts::optimal_p(&products), &|p| counts::ln_geometric_variance(&x, &y, p, 1));
    // Degenerate and extreme data.
    assert_eq!(gerf::optimal(5, 0.0), gerf::Optimum { rho: 1.0, a: -0.0 });
    for v2 in [1e-300, 1e-12, 1e12, 1e300] {
        let gerf::Optimum { rho, a } = gerf::optimal(5, v2);
        assert!(rho > 0.0 && rho <= 1.0 && a <= 0.0 && a.is_finite(), "{v2}: {rho}, {a}");
        if v2 > 1.0 {
            close(a, -(1.0 / rho - 1.0) / 8.0, 1e-12, "A");
        }
    }
    close(gerf::optimal(5, 1e-12).a, -8e-12 / (8.0 * 10.0), 1e-11, "A near 0");
    assert_eq!(counts::optimal_lambda(&[0.0, 0.0]), 0.0);
    assert_eq!(counts::optimal_p(&[0.0, 0.0]), 1.0 - 1e-12);
    assert!((1e-12..1e-6).contains(&counts::optimal_p(&[1e9])));
    // Diagonals: exact at the centres where signs allow, clamped where a centre is 0.
    let (r, q) = ([1.0, -2.0, 0.0, 3.0, 0.0], [4.0, 1.0, 2.0, 0.0, 0.0]);
    let a = diagonal::complex(&r, &q, 1e-3);
    assert_eq!(a[4], 1.0.into());
    assert_eq!((a[2].re, a[3].re), (1e3, 1e-3));
    assert!(diagonal::loss(&a[..2], &r[..2], &q[..2]) < 1e-28);
    assert_eq!(diagonal::robust(&[4.0], &[64.0], 1e-3), [2.0]);
    close(diagonal::real(&r, &q, 1e-3)[1], 0.5f64.sqrt(), 1e-15, "real");
}

#[test]
fn hybrids_vanish_where_a_base_is_exact() {
    for (n, bases) in [(1, Sharing::Independent), (8, Sharing::Independent), (8, Sharing::Shared)] {
        for (v, w) in [(0.0, 1.6), (1.6, 0.0)] {
            let pair = pair(3, v, w);
            let moments = coefficient::angular(pair.angle, n);
            assert_eq!(hybrid::ln_bipolar_mse(&pair, &moments, 4, bases), Some(f64::NEG_INFINITY), "{v} {w}");
            let gaussian = coefficient::gaussian_normalised(&pair, 0.7, 0.8, n);
            let log = hybrid::ln_bipolar_mse(&pair, &gaussian, 4, bases).unwrap();
            // λ̂ = 0 at x = y for any draw; at x = −y only its mean is 1.
            assert!(if w == 0.0 { log == f64::NEG_INFINITY } else { log.is_finite() }, "{v} {w}: {log}");
        }
    }
    let moments = coefficient::angular(1.0, 4);
    close(moments.square + moments.product, moments.mean, 1e-15, "moments");
    close(moments.complement_square + moments.product, 1.0 - moments.mean, 1e-15, "moments");
}

/// HRF Theorem 3.5 is exceeded as published (erratum H6) and holds as corrected.
#[test]
fn the_angular_bound_holds_as_corrected() {
    use std::f64::consts::PI;
    let as_published = |r: f64, n: usize| {
        let n = n as f64;
        let factor = (1.0 - 1.0 / n) / (PI * r * r) + 1.0 / (n * PI.sqrt() * r * r);
        relative_error::ln_max_trigonometric(r, 10) + 0.5 * factor.ln()
    };
    for n in [1, 2, 4, 8] {
        let mut exceeded = false;
        for r in [1.0, 2.0, 5.0, 8.0, 12.0, 20.0, 40.0] {
            let angles = (1..4000).map(|k| PI * f64::from(k) / 4000.0);
            let worst = angles.map(|t| relative_error::ln_angular(t, r, 10, n)).fold(f64::MIN, f64::max);
            assert!(worst <= relative_error::ln_max_angular_bound(r, 10, n), "n {n}, r {r}");
            exceeded |= worst > as_published(r, n);
        }
        assert!(exceeded, "n {n}: the published bound holds here");
    }
}

#[test]
fn relative_errors_are_errors_over_the_kernel() {
    let (r, m) = (1.3f64, 6);
    for k in 0..=8 {
        let angle = std::f64::consts::PI * f64::from(k) / 8.0;
        let pair = Pair::new([(r, r * angle.cos()), (0.0, r * angle.sin())]);
        let law = Law::independent(m);
        let cases = [
            (relative_error::ln_trigonometric(angle, r, m), trigonometric(&pair, &law)),
            (relative_error::ln_hyperbolic(angle, r, m), hyperbolic(&pair, &law)),
            (relative_error::ln_positive(angle, r, m), positive(&pair, &law)),
        ];
        for (relative, mse) in cases {
            let expected = (0.5 * mse.unwrap() - pair.dot).exp();
            assert!((relative.exp() - expected).abs() < 1e-12, "{k}: {} {expected}", relative.exp());
        }
        assert!(
            relative_error::ln_trigonometric(angle, r, m)
                <= relative_error::ln_max_trigonometric(r, m) + 1e-15
        );
        assert!(relative_error::ln_positive(angle, r, m) <= relative_error::ln_max_positive(r, m));
    }
}

/// Performers' Theorem 2 and Chefs' Random Tables' Theorem 4.1 hold, and are sharp as x + y → 0.
#[test]
fn orthogonality_gaps_hold() {
    for d in DIMENSIONS {
        for v in [0.05, 0.5, 1.5, 4.0] {
            let (pair, m) = (pair(d, v, 0.8), d);
            let (iid, orthogonal) = (Law::independent(m), Law::orthogonal(d, m));
            let gap = positive(&pair, &iid).unwrap().exp() - positive(&pair, &orthogonal).unwrap().exp();
            let bound = bounds::ln_orthogonality_gap(&pair, m).exp();
            assert!(gap >= bound * (1.0 - 1e-9 * d as f64), "d {d}, v {v}: {gap} {bound}");
            let exact = -conformity_excess(d, pair.sum, 0.0).value() * (m as f64 - 1.0) / m as f64;
            let relative = exact * (2.0 * pair.dot).exp() / bound;
            assert!(relative >= 1.0 - 1e-12 && (v > 0.1 || relative < 1.01), "d {d}, v {v}: {relative}");
            let gerf = |law| gerf::ln_variance(&pair, (-0.1).into(), GerfSign::Plus, law).unwrap().exp();
            let bound = bounds::ln_gerf_orthogonality_gap(&pair, m).exp();
            let gap = gerf(&iid) - gerf(&orthogonal);
            // Where the variance is large the difference is rounding.
            assert!(gap >= bound - 1e-12 * gerf(&iid), "d {d}, v {v}: {gap} {bound}");
            assert!(v > 0.1 || gap < 1.01 * bound + 1e-12 * gerf(&iid), "d {d}, v {v}: {gap} {bound}");
            let regularised = |law: &Law| {
                regularised_positive(&pair, &law.clone().with_radius(Radius::RootDim)).unwrap().exp()
            };
            let bound = bounds::ln_regularised_orthogonality_gap(&pair, m).exp();
            let gap = regularised(&iid) - regularised(&orthogonal);
            let rounding = 1e-13 * regularised(&iid);
            assert!(gap >= bound - rounding, "d {d}, v {v}: {gap} {bound}");
            assert!(v > 0.1 || gap < 1.01 * bound + rounding, "d {d}, v {v}: {gap} {bound}");
        }
    }
}

/// The largest value of f(ω, x) f(ω, y) over a fine grid of ω in one dimension is the supremum, below the
/// separable one.
#[test]
fn suprema_are_attained() {
    let (x, y, a) = (0.7f64, 0.4f64, -0.3f64);
    let pair = Pair::new([(x, y)]);
    let term = |w: f64| {
        0.5 * (1.0 - 4.0 * a).ln() + 2.0 * a * w * w + (1.0 - 4.0 * a).sqrt() * w * (x + y) - x * x - y * y
    };
    let largest = (-40_000..40_000).map(|k| term(f64::from(k) * 1e-4)).fold(f64::MIN, f64::max);
    let supremum = bounds::ln_supremum(&pair, a);
    assert!(largest <= supremum && supremum - largest < 1e-7, "{largest} {supremum}");
    assert!(supremum <= bounds::ln_separable_supremum(&pair, a));
}

#[test]
fn counts_keep_their_promises() {
    let (epsilon, delta, ln_supremum) = (0.1, 1e-3, 0.4);
    let m = concentration::hoeffding_count(epsilon, delta, ln_supremum);
    assert!(concentration::ln_hoeffding(m, epsilon, ln_supremum) <= delta.ln());
    assert!(concentration::ln_hoeffding(m - 1.0, epsilon, ln_supremum) > delta.ln());
    let m = concentration::chebyshev_count(2f64.ln(), epsilon, delta);
    close(m, 2.0 / (epsilon * epsilon * delta), 1e-5, "Chebyshev");
    assert_eq!(concentration::hoeffding_count(epsilon, delta, 1e3), f64::INFINITY);
    // Chernoff's bound is a probability bound: e⁰ at the mean's moment generating function.
    assert_eq!(concentration::ln_chernoff(0.5, 10.0, 1.0, 0.5), 0.0);
    let uniform = |epsilon| concentration::uniform_count(8, 1.0, -0.1, epsilon, delta);
    assert!(uniform(0.1) > uniform(0.2) && uniform(0.2) > 1e3 && uniform(1e12) == 1.0);
    // From the formulas in 40 digits.
    assert_eq!(concentration::uniform_count(8, 1.0, -0.1, 0.1, 1e-3), 52_080_636.0);
    assert_eq!(concentration::uniform_count(4, 0.5, -0.2, 0.05, 0.01), 2_221_377.0);
    let order = concentration::uniform_order_trigonometric;
    close(order(8, 1.0, 0.1), 7402.284200551801, 1e-13, "order");
    close(order(5, 2.5, 0.3), 99733.62672285703, 1e-13, "order");
    let gap = concentration::regularised_chernoff_gap(&pair(2, 1.0, 0.5), 2.0, 2);
    close(gap, (-2.0 * 0.625f64).exp() * 16.0 * 2.0 / 16.0, 1e-12, "Chernoff gap");
}

/// Performers' Theorem 3 as printed is false for m = 2 (erratum P2); as corrected it holds. E exp(θΣX) by
/// quadrature over the circle, d = m = 2.
#[test]
fn the_chernoff_gap_holds_as_corrected() {
    let (norm_x, norm_y, theta) = (1.5f64, 1.4f64, 2.0f64);
    let (v2, norms) = ((norm_x - norm_y).powi(2), norm_x * norm_x + norm_y * norm_y);
    let lambda = (-0.5 * norms).exp();
    let n = 2000;
    let x = |phi: f64| lambda * ((2.0 * v2).sqrt() * phi.cos()).exp();
    let mean = |f: &dyn Fn(f64) -> f64| {
        (0..n).map(|k| f(std::f64::consts::TAU * f64::from(k) / f64::from(n))).sum::<f64>() / f64::from(n)
    };
    let independent = mean(&|phi| (theta * x(phi)).exp()).powi(2);
    // Orthogonal directions, either way round.
    let quarter = std::f64::consts::FRAC_PI_2;
    let orthogonal = mean(&|phi| (theta * (x(phi) + x(phi + quarter))).exp());
    let points = Pair::new([(norm_x, -norm_y), (0.0, 0.0)]);
    let gap = independent - orthogonal;
    let corrected = concentration::regularised_chernoff_gap(&points, theta, 2);
    // As printed: e^{−(m/2)S} instead of e^{−2S}.
    let printed = corrected * norms.exp();
    assert!(gap >= corrected && gap < printed, "{corrected} {gap} {printed}");
}

/// Places where terms cancel to first order, or leave the range on the way.
/// The variance and the squared difference of the kernels, where both count.
#[test]
fn errors_about_softmax_have_two_parts() {
    for d in [2, 8, 64] {
        for v in [0.7, 1.0, 1.6] {
            let (pair, n) = (pair(d, v, 0.5), d as f64);
            let law = Law::orthogonal(d, 4 * d).with_radius(Radius::RootDim);
            let kernel = hypergeometric(0.5 * n, 0.25 * n * pair.sum) * (-0.5 * pair.norms).exp();
            let bias = (kernel - pair.dot.exp()).powi(2);
            let variance = regularised_positive(&pair, &law).unwrap().exp();
            assert!(d == 64 || bias > 1e-3 * variance, "d {d}, v {v}: {bias} beside {variance}");
            let found = regularised_positive_about_softmax(&pair, &law).unwrap().exp();
            close(found, variance + bias, 1e-10, "about softmax");
        }
    }
}

/// So near π that 1 − θ/π has lost its digits where π − θ has not.
#[test]
fn angular_moments_near_the_end() {
    let (rest, n) = (1e-9f64, 5);
    let moments = coefficient::angular(std::f64::consts::PI - rest, n);
    let (t, u) = (1.0 - rest / std::f64::consts::PI, rest / std::f64::consts::PI);
    // π − θ is known to an ulp of π.
    close(moments.complement_square, u * (u + t / 5.0), 1e-6, "complement");
    close(moments.product, t * u * 0.8, 1e-6, "product");
    close(moments.square, t * (t + u / 5.0), 1e-15, "square");
    assert_eq!(coefficient::angular(std::f64::consts::PI, n).complement_square, 0.0);
}

#[test]
fn nothing_cancels_or_overflows_on_the_way() {
    for d in [2, 3, 64] {
        let n = d as f64;
        let law = Law::independent(1).with_radius(Radius::RootDim);
        let v2 = 1e-12f64;
        let pair = pair(d, v2.sqrt(), 0.5);
        // Var cosh(ω·z) = v⁴(d−1)/(2(d+2)) + …
        let leading = (v2 * v2 * (n - 1.0) / (2.0 * (n + 2.0))).ln() - pair.norms;
        assert!((regularised_hyperbolic(&pair, &law).unwrap() - leading).abs() < 1e-9, "d {d}");
        let about = regularised_positive_about_softmax(&pair, &law).unwrap();
        assert!((about - regularised_positive(&pair, &law).unwrap()).abs() < 1e-9);
        // Even excess: v⁴/2 (Π₂(1 + cos² E sin²φ) − 1) + …, E sin²φ = d/(d+1), Π₂ = (d+1)/(d+2).
        let even = even_conformity_excess(d, v2, 0.3).value();
        let growth = (n + 1.0) / (n + 2.0) * (1.0 + 0.09 * n / (n + 1.0)) - 1.0;
        close(even, 0.5 * v2 * v2 * growth, 1e-9, "even excess");
        // GERF at x = −y: K² ((1 + 16A²)^{d/2} − 1) to leading order.
        let opposite = self::pair(d, 0.0, 0.5);
        let tiny =
            gerf::ln_variance(&opposite, (-1e-9).into(), GerfSign::Plus, &Law::independent(1)).unwrap();
        assert!((tiny - (8.0 * n * 1e-18f64).ln() + opposite.difference).abs() < 1e-7, "d {d}: {tiny}");
    }
    let moments = coefficient::gaussian_normalised(&pair(2, 50.0, 0.1), 1.0, 25.0, 3);
    assert!(moments.complement_square > 0.9 && moments.product.is_finite());
    let beyond = conformity_excess(1024, 1e5, 0.999).ln_abs;
    assert!(beyond > 709.0 && beyond.is_finite(), "{beyond}");
    let positive_angle = Law::blocks(2, 2, Dependence::Angle { cos: 0.999 }, Radius::Chi);
    assert!(positive(&pair(1024, 300.0, 1.0), &positive_angle).unwrap().is_finite());
    // Gaps are the differences of errors, where those can be told apart.
    let (points, m) = (pair(4, 1.2, 0.8), 10);
    let difference = |error: fn(&Pair, &Law) -> Option<f64>| {
        error(&points, &Law::independent(m)).unwrap().exp()
            - error(&points, &Law::orthogonal(4, m)).unwrap().exp()
    };
    close(
        ln_positive_orthogonality_gap(&points, m).unwrap().exp(),
        difference(positive),
        1e-10,
        "positive gap",
    );
    let gap = trigonometric_orthogonality_gap(&points, m).unwrap().value();
    close(gap, difference(trigonometric), 1e-10, "trigonometric gap");
    let regularised =
        |law: Law| regularised_positive(&points, &law.with_radius(Radius::RootDim)).unwrap().exp();
    let gap = regularised(Law::independent(4)) - regularised(Law::orthogonal(4, 4));
    assert!(gap >= bounds::ln_regularised_orthogonality_gap(&points, 4).exp());
}

/// The angular coefficient from antithetic pairs: ω and −ω give the same product of signs, so that its moments are those
/// of half as many. Four z-scores beyond 4.5: false alarms below 3e-5.
#[test]
fn angular_coefficients_from_pairs() {
    let angle = 1.1f64;
    let (x, y) = (ndarray::arr1(&[1.0, 0.0]), ndarray::arr1(&[angle.cos(), angle.sin()]));
    assert_eq!(
        coefficient::angular_of_law(angle, &Law::independent(6)),
        Some(coefficient::angular(angle, 6))
    );
    let pairs = Law::independent(6).antithetic().with_radius(Radius::Other);
    assert_eq!(coefficient::angular_of_law(angle, &pairs), Some(coefficient::angular(angle, 3)));
    assert_eq!(coefficient::angular_of_law(angle, &Law::orthogonal(2, 6)), None);
    assert_eq!(coefficient::angular_of_law(angle, &Law::unknown(6)), None);
    // Seven rows: three pairs, and one that is alone.
    let coefficients = |seed| {
        let omega = crate::common::frequencies(2, 7, &Antithetic(Independent), seed);
        0.5 - 0.5 * Sign.build::<f64>(omega, 1.0).unwrap().estimate(&x, &y).unwrap()
    };
    let sample: Vec<f64> = (0..20_000).map(coefficients).collect();
    let moments = coefficient::angular_of_law(angle, &Law::independent(7).antithetic()).unwrap();
    let mean = |f: fn(f64) -> f64| Sample::of(&sample.iter().map(|v| f(*v)).collect::<Vec<_>>());
    let z = [
        mean(|v| v).z(moments.mean),
        mean(|v| v * v).z(moments.square),
        mean(|v| (1.0 - v).powi(2)).z(moments.complement_square),
        mean(|v| v * (1.0 - v)).z(moments.product),
    ];
    assert!(z.iter().all(|z| z.abs() < 4.5), "{z:?}");
    // As independent signs the second moment would be far off.
    assert!(mean(|v| v * v).z(coefficient::angular(angle, 7).square).abs() > 9.0);
}

/// Where points are far apart the conformity e⁻ᵗ P(t), t = ‖x−y‖²/2, is below the range of `f64` for even d, and the gap
/// is not 0: for d = 2, P(t) = 1 − t; for d = 4, 1 − t + t²/6.
#[test]
fn trigonometric_gaps_of_far_points_are_not_zero() {
    for w2 in [1000.0f64, 1600.0, 1e5] {
        let t = 0.5 * w2;
        for (d, polynomial) in [(2, 1.0 - t), (4, 1.0 - t + t * t / 6.0)] {
            let points = pair(d, 0.5, w2.sqrt());
            let gap = trigonometric_orthogonality_gap(&points, d).unwrap();
            let pairs = (d as f64 - 1.0) / d as f64;
            assert_eq!(gap.sign, -polynomial.signum());
            let expected = polynomial.abs().ln() - t + pairs.ln() + points.norms;
            assert!(
                (gap.ln_abs - expected).abs() < 1e-15 * w2,
                "d {d}: {} instead of {expected}",
                gap.ln_abs
            );
        }
    }
}

#[test]
fn arguments_outside_a_domain_give_nan() {
    let points = pair(3, 1.0, 0.5);
    let nan = [
        counts::ln_geometric_variance(&[1.0], &[0.5], 1.5, 1),
        counts::optimal_p(&[f64::NAN]),
        counts::optimal_p(&[]),
        concentration::chebyshev_count(f64::NAN, 0.1, 0.1),
        concentration::hoeffding_count(-0.1, 0.1, 0.0),
        concentration::uniform_count(8, 1.0, 0.1, 0.1, 0.1),
        bounds::ln_supremum(&points, 0.1),
        bounds::ln_separable_supremum(&points, 0.0),
        gerf::ln_variance(&points, 0.3.into(), GerfSign::Plus, &Law::independent(1)).unwrap(),
    ];
    assert!(nan.iter().all(|v| v.is_nan()), "{nan:?}");
    assert_eq!(gerf::ln_variance(&points, 0.3.into(), GerfSign::Plus, &Law::unknown(1)), None);
    assert!(concentration::uniform_count(4, 1e-6, -0.1, 0.01, 0.01) > 100.0);
    assert_eq!(concentration::chernoff_count(1.0, 2.0, 1.0, 1.0 / 10f64.exp()), 10.0);
    assert_eq!(concentration::chernoff_count(1.0, 1.0, 2.0, 0.1), f64::INFINITY);
}

/// A counter in `f64` stalls at 2⁵³, and 2⁶² steps have no end: conformities of any dimension have.
#[test]
fn conformities_of_any_dimension_have_an_end() {
    for d in [1 << 24, (1 << 24) + 1, 1 << 60, usize::MAX - 1, usize::MAX] {
        for cos in [-1.0, -0.5, 0.0, 1.0] {
            for z2 in [700.0, 1e12, 1e300] {
                let found = trigonometric_conformity(d, z2, cos);
                assert!((-1.0..=1.0).contains(&found), "d {d}, z² {z2}, cos {cos}: {found}");
            }
            // Independent frequencies are the limit: e^{−z²} for directions that are orthogonal.
            let near = trigonometric_conformity(d, 0.5, 0.0);
            assert!((near - (-0.5f64).exp()).abs() < 1e-6, "d {d}: {near}");
        }
    }
}
