//! The tree: what it draws, and with which probability.

use ndarray::{Array2, ArrayView1, s};
use random_features::frequency::{Coupling, Independent};
use random_features::{Error, Map, Real, Side, Trigonometric};
use rayon::ThreadPoolBuilder;

use super::{all, data, log_sum, non_negative, signed, tree};
use crate::common::{point, points};

const SIZES: [usize; 8] = [1, 2, 4, 5, 9, 64, 65, 700];
const LEAVES: [usize; 4] = [1, 3, 8, 4096];
/// Children of a node.
const FAN_OUT: usize = 4;

/// ln of the estimates of all classes, normalised: one estimate for each pair.
pub fn linear_scan<T: Real>(map: &Map<T>, h: ArrayView1<'_, T>, classes: &Array2<T>) -> Vec<f64> {
    let log = |c: ArrayView1<'_, T>| map.log_estimate(&h, &c).unwrap().ln_abs;
    let logs: Vec<f64> = classes.rows().into_iter().map(log).collect();
    let total = log_sum(&logs);
    logs.iter().map(|log| log - total).collect()
}

fn scans<T: Real>(tolerance: f64) {
    for classes in SIZES {
        let (c, h) = data::<T>(classes, 5);
        for map in non_negative::<T>(5, 12) {
            for leaf in LEAVES {
                let sampler = tree(map.clone()).with_leaf_size(leaf).unwrap().build(&c).unwrap();
                for h in h.rows() {
                    let found = sampler.log_probabilities(&h, &all(classes)).unwrap();
                    for (found, exact) in found.iter().zip(linear_scan(&map, h, &c)) {
                        assert!(
                            (found - exact).abs() < tolerance,
                            "C = {classes}, L = {leaf}: {found} {exact}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_tree_is_a_linear_scan_for_non_negative_maps() {
    scans::<f64>(1e-11);
    scans::<f32>(1e-4);
}

/// w(i) for all classes from the definition: sums of features in `f64`, one node after the other.
fn naive_walk(map: &Map<f64>, h: ArrayView1<'_, f64>, classes: &Array2<f64>, leaf: usize) -> Vec<f64> {
    let phi = map.features_of(Side::X, &h).unwrap().into_array();
    let psi = map.features(Side::Y, classes).unwrap().into_array();
    let estimates = psi.dot(&phi.row(0));
    let sum = |run: &std::ops::Range<usize>| estimates.slice(s![run.clone()]).sum();
    let mut w = vec![0.0; classes.nrows()];
    let mut runs = vec![(0..classes.nrows(), 1.0)];
    let mut span = leaf;
    while span < classes.nrows() {
        span *= FAN_OUT;
    }
    while span > 1 {
        span = if span > leaf { span / FAN_OUT } else { 1 };
        let mut next = Vec::new();
        for (run, probability) in runs {
            let children: Vec<_> =
                run.clone().step_by(span).map(|first| first..run.end.min(first + span)).collect();
            let positive: Vec<f64> = children.iter().map(|child| f64::max(sum(child), 0.0)).collect();
            let total: f64 = positive.iter().sum();
            for (child, positive) in children.into_iter().zip(positive) {
                let share =
                    if total > 0.0 { positive / total } else { child.len() as f64 / run.len() as f64 };
                next.push((child, probability * share));
            }
        }
        runs = next;
    }
    runs.into_iter().for_each(|(run, probability)| w[run.start] = probability);
    w
}

#[test]
fn signed_maps_follow_the_definition() {
    let mut clipped = 0;
    for classes in SIZES {
        let (c, h) = data::<f64>(classes, 3);
        for map in signed::<f64>(3, 6) {
            for leaf in LEAVES {
                let proposal = tree(map.clone()).with_leaf_size(leaf).unwrap();
                let sampler = proposal.with_uniform(0.05).unwrap().build(&c).unwrap();
                for h in h.rows() {
                    let found = sampler.log_probabilities(&h, &all(classes)).unwrap();
                    let w = naive_walk(&map, h, &c, leaf);
                    clipped += w.iter().filter(|w| **w == 0.0).count();
                    for (found, w) in found.iter().zip(w) {
                        let q = 0.95 * w + 0.05 / classes as f64;
                        assert!((found.exp() - q).abs() < 1e-10, "C = {classes}, L = {leaf}: {found} {q}");
                    }
                    assert!((log_sum(&found)).abs() < 1e-12);
                }
            }
        }
    }
    assert!(clipped > 100, "the test has negative estimates: {clipped}");
}

/// Pearson's statistic of counts, as a normal deviate (Wilson and Hilferty), with classes of few expected draws together.
pub fn deviate(counts: &[usize], probabilities: &[f64]) -> f64 {
    let draws = counts.iter().sum::<usize>() as f64;
    let (mut statistic, mut cells, mut rest) = (0.0, 0, (0.0, 0.0));
    let mut add = |count: f64, expected: f64| {
        statistic += (count - expected).powi(2) / expected;
        cells += 1;
    };
    for (count, q) in counts.iter().zip(probabilities) {
        if q * draws >= 10.0 {
            add(*count as f64, q * draws);
        } else {
            rest = (rest.0 + *count as f64, rest.1 + q * draws);
        }
    }
    if rest.1 >= 10.0 {
        add(rest.0, rest.1);
    }
    let degrees = f64::from(cells - 1);
    let variance = 2.0 / (9.0 * degrees);
    ((statistic / degrees).cbrt() - (1.0 - variance)) / variance.sqrt()
}

/// Each case raises a false alarm with a probability below 1e-6: a deviate above 4.8.
#[test]
fn draws_have_the_stated_probabilities() {
    const DRAWS: usize = 200_000;
    let cases = non_negative::<f64>(3, 10).into_iter().map(|map| (map, 0.0));
    let cases = cases.chain(signed::<f64>(3, 10).into_iter().map(|map| (map, 0.1)));
    for (classes, leaf) in [(2, 8), (37, 1), (150, 4), (150, 64)] {
        let (c, h) = data::<f64>(classes, 3);
        for (map, uniform) in cases.clone() {
            let proposal = tree(map).with_leaf_size(leaf).unwrap().with_uniform(uniform).unwrap();
            let sampler = proposal.build(&c).unwrap();
            let draws = sampler.sample_of(&h.row(0), DRAWS, 7).unwrap();
            let mut counts = vec![0; classes];
            draws.classes.iter().for_each(|class| counts[*class] += 1);
            let logs = sampler.log_probabilities(&h.row(0), &all(classes)).unwrap();
            for (class, log) in draws.classes.iter().zip(&draws.log_probabilities) {
                assert_eq!(*log, logs[*class], "what is stated with a draw");
            }
            let q: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
            let z = deviate(&counts, &q);
            assert!(z < 4.8, "C = {classes}, L = {leaf}: {z}");
            // The test has teeth: a fifth of uniform draws more would be seen.
            let other: Vec<f64> = q.iter().map(|q| 0.8 * q + 0.2 / classes as f64).collect();
            assert!(classes < 3 || deviate(&counts, &other) > 4.8, "C = {classes}: {q:?}");
        }
    }
}

/// Draws for one h are independent: pairs of successive draws have the products of probabilities. A deviate of 4.8 is
/// exceeded with a probability below 1e-6.
#[test]
fn draws_are_independent() {
    let (c, h) = data::<f64>(5, 3);
    let sampler = tree(non_negative(3, 8).swap_remove(0)).build(&c).unwrap();
    let h = h.slice(s![..1, ..]).broadcast((40_000, 3)).unwrap().to_owned();
    let draws = sampler.sample(&h, 2, 3).unwrap();
    let q = sampler.log_probabilities(&h.row(0), &all(5)).unwrap();
    let mut counts = vec![0; 25];
    draws.classes.rows().into_iter().for_each(|pair| counts[5 * pair[0] + pair[1]] += 1);
    let pairs: Vec<f64> = (0..25).map(|pair| (q[pair / 5] + q[pair % 5]).exp()).collect();
    assert!(deviate(&counts, &pairs) < 4.8);
    let mut columns = [vec![0; 5], vec![0; 5]];
    for ((_, column), class) in draws.classes.indexed_iter() {
        columns[column][*class] += 1;
    }
    let q: Vec<f64> = q.iter().map(|log| log.exp()).collect();
    assert!(columns.iter().all(|counts| deviate(counts, &q) < 4.8));
}

pub fn in_a_pool<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn threads_and_layouts_change_nothing() {
    let (c, _) = data::<f32>(3000, 6);
    let h = points::<f32>(40, 6, 1.0);
    for (map, uniform) in [(non_negative(6, 16).remove(0), 0.0), (signed(6, 16).remove(1), 0.2)] {
        let proposal = tree(map).with_uniform(uniform).unwrap();
        let draws = |c: &Array2<f32>, h: &Array2<f32>| {
            let sampler = proposal.clone().build(c).unwrap();
            let all = sampler.log_probabilities(&h.row(0), &all(3000)).unwrap();
            (sampler.sample(h, 9, 11).unwrap(), all)
        };
        let one = in_a_pool(1, || draws(&c, &h));
        assert_eq!(one, in_a_pool(3, || draws(&c, &h)));
        let reversed = |x: &Array2<f32>| x.t().as_standard_layout().into_owned().reversed_axes();
        assert_eq!(one, draws(&reversed(&c), &reversed(&h)));
        // Rows are drawn alone.
        let sampler = proposal.clone().build(&c).unwrap();
        let part = sampler.sample(&h.slice(s![..7, ..]), 9, 11).unwrap();
        assert_eq!(part.classes, one.0.classes.slice(s![..7, ..]));
    }
}

fn replaced<T: Real>(tolerance: f64) {
    for (map, uniform) in [(non_negative::<T>(4, 12).remove(0), 0.0), (signed(4, 12).remove(1), 0.1)] {
        for (classes, leaf) in [(1, 8), (60, 1), (300, 1), (300, 8), (300, 64), (9, 8)] {
            let (mut c, h) = data::<T>(classes, 4);
            let proposal = tree(map.clone()).with_leaf_size(leaf).unwrap().with_uniform(uniform).unwrap();
            let mut sampler = proposal.clone().build(&c).unwrap();
            // The last one counts.
            let which: Vec<usize> = [0, classes / 2, classes - 1, classes / 3, 0].to_vec();
            let x = points::<T>(5, 4, 0.8);
            which.iter().zip(x.rows()).for_each(|(class, row)| c.row_mut(*class).assign(&row));
            sampler.replace(&which, &x).unwrap();
            let built = proposal.build(&c).unwrap();
            for h in h.rows() {
                let [found, expected] =
                    [&sampler, &built].map(|sampler| sampler.log_probabilities(&h, &all(classes)).unwrap());
                for (found, expected) in found.iter().zip(expected) {
                    assert!((found.exp() - expected.exp()).abs() < tolerance, "C = {classes}, L = {leaf}");
                }
            }
            let before = sampler.log_probabilities(&h.row(0), &all(classes)).unwrap();
            let mut wrong = x.clone();
            wrong[[3, 1]] = T::nan();
            assert!(matches!(sampler.replace(&which, &wrong), Err(Error::NotFinite { row: 3, .. })));
            assert_eq!(before, sampler.log_probabilities(&h.row(0), &all(classes)).unwrap());
        }
    }
}

#[test]
fn replacing_classes_is_building_again() {
    replaced::<f64>(1e-12);
    replaced::<f32>(1e-5);
}

#[test]
fn points_that_propose_may_be_normalised() {
    let (c, h) = data::<f64>(50, 4);
    let map = non_negative::<f64>(4, 16).remove(0);
    let unit = |x: &Array2<f64>, t: f64| {
        let norms = x.map_axis(ndarray::Axis(1), |row| row.dot(&row).sqrt() * t.sqrt());
        x / &norms.insert_axis(ndarray::Axis(1))
    };
    let sampler = tree(map.clone()).with_cosine(0.3).unwrap().build(&c).unwrap();
    let other = tree(map.clone()).build(&unit(&c, 0.3)).unwrap();
    for (h, unit) in h.rows().into_iter().zip(unit(&h, 0.3).rows()) {
        let found = sampler.log_probabilities(&h, &all(50)).unwrap();
        let expected = other.log_probabilities(&unit, &all(50)).unwrap();
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12));
    }
    // Directions alone count, at any norm; a zero vector is no direction.
    let mut far = &c * 1e200;
    far.row_mut(3).fill(0.0);
    let other = tree(map).with_cosine(0.3).unwrap();
    let sampler = other.clone().build(&far).unwrap();
    let q = sampler.log_probabilities(&(&h.row(0) * 1e-200), &all(50)).unwrap();
    assert!(log_sum(&q).abs() < 1e-12);
    let mut near = c.clone();
    near.row_mut(3).fill(0.0);
    let expected = other.build(&near).unwrap().log_probabilities(&h.row(0), &all(50)).unwrap();
    assert!(q.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn equal_classes_are_equally_likely() {
    for classes in [1, 3, 64, 77] {
        let c = Array2::from_elem((classes, 3), 0.7f32);
        for (map, uniform) in [(non_negative(3, 8).remove(1), 0.0), (signed(3, 8).remove(0), 0.3)] {
            let sampler = tree(map).with_uniform(uniform).unwrap().build(&c).unwrap();
            let q = sampler.log_probabilities(&point(3, 1, 1.0), &all(classes)).unwrap();
            assert!(q.iter().all(|q| (q + (classes as f64).ln()).abs() < 1e-5), "{q:?}");
        }
    }
}

#[test]
fn clipped_mass_is_reported() {
    let (c, h) = data::<f64>(200, 4);
    let positive = tree(non_negative(4, 6).remove(0)).build(&c).unwrap();
    assert_eq!(positive.sample(&h, 20, 1).unwrap().clipped, vec![0.0; 4]);
    let clipped = |m| {
        let map = Trigonometric.softmax(Independent.draw(4, m, 2).unwrap()).unwrap();
        let sampler = tree(map).with_uniform(0.1).unwrap().build(&(&c * 2.0)).unwrap();
        sampler.sample(&(&h * 2.0), 200, 1).unwrap().clipped.iter().sum::<f64>() / 4.0
    };
    let (few, many) = (clipped(4), clipped(4096));
    assert!(few > 0.1 && few <= 1.0 && many < 0.5 * few, "{few} {many}");
}

/// 1 − Π (1 − N/(N + P)) on the way to each draw.
#[test]
fn clipped_mass_is_that_of_the_ways() {
    const CLASSES: usize = 64;
    let (c, h) = data::<f64>(CLASSES, 3);
    let map = signed::<f64>(3, 4).remove(0);
    for (leaf, spans) in [(1, vec![16, 4, 1]), (4, vec![16, 4, 1]), (64, vec![1])] {
        let proposal = tree(map.clone()).with_leaf_size(leaf).unwrap().with_uniform(0.3).unwrap();
        let draws = proposal.build(&(&c * 2.0)).unwrap().sample(&(&h * 2.0), 50, 2).unwrap();
        for (i, h) in h.rows().into_iter().enumerate() {
            let estimate = |class: usize| map.estimate(&(&h * 2.0), &(&c.row(class) * 2.0)).unwrap();
            let estimates: Vec<f64> = (0..CLASSES).map(estimate).collect();
            let clipped = |class: usize| {
                let (mut kept, mut above) = (1.0, CLASSES);
                for span in &spans {
                    let first = class / above * above;
                    let sums: Vec<f64> =
                        estimates[first..first + above].chunks(*span).map(|run| run.iter().sum()).collect();
                    let of = |sign: f64| sums.iter().map(|sum| f64::max(sign * sum, 0.0)).sum::<f64>();
                    kept *= of(1.0) / (of(1.0) + of(-1.0));
                    above = *span;
                }
                1.0 - kept
            };
            let mean = draws.classes.row(i).iter().map(|class| clipped(*class)).sum::<f64>() / 50.0;
            assert!((draws.clipped[i] - mean).abs() < 1e-12, "L = {leaf}: {} {mean}", draws.clipped[i]);
            assert!(mean > 1e-3, "the test has negative estimates");
        }
    }
}

/// (Σ_f φ_f S_f)² / Σ_f (φ_f S_f)², from features in `f64`; nothing else changes.
#[test]
fn effective_features_are_those_of_the_definition() {
    let (c, h) = data::<f64>(90, 3);
    let removed = [4, 17, 18];
    let maps = non_negative::<f64>(3, 10).into_iter().chain(signed(3, 10));
    for map in maps {
        let psi = map.features(Side::Y, &c).unwrap().into_array();
        let all = psi.sum_axis(ndarray::Axis(0));
        let gone = psi.select(ndarray::Axis(0), &removed).sum_axis(ndarray::Axis(0));
        for leaf in [1, 8, 4096] {
            let proposal = tree(map.clone()).with_uniform(0.1).unwrap().with_leaf_size(leaf).unwrap();
            let mut plain = proposal.clone().build(&c).unwrap();
            let mut asked = proposal.with_diagnostics().build(&c).unwrap();
            for sums in [all.clone(), &all - &gone] {
                let (draws, other) = (asked.sample(&h, 5, 1).unwrap(), plain.sample(&h, 5, 1).unwrap());
                assert_eq!(
                    (&draws.classes, &draws.log_probabilities),
                    (&other.classes, &other.log_probabilities)
                );
                assert!(other.effective_features.is_none());
                let found = draws.effective_features.clone().unwrap();
                for (h, found) in h.rows().into_iter().zip(&found) {
                    let terms = map.features_of(Side::X, &h).unwrap().into_array().row(0).to_owned() * &sums;
                    let expected = terms.sum().powi(2) / terms.dot(&terms);
                    assert!((found / expected - 1.0).abs() < 1e-9, "L = {leaf}: {found} {expected}");
                }
                assert_eq!(draws.share_with_features_below(f64::INFINITY), Some(1.0));
                assert_eq!(draws.share_with_features_below(0.0), Some(0.0));
                let z = asked.partition(&h.row(0), &c, 9, 1).unwrap();
                assert_eq!(z.effective_features(), Some(found[0]));
                plain.remove(if plain.present_classes() == 90 { &removed } else { &[] }).unwrap();
                asked.remove(if asked.present_classes() == 90 { &removed } else { &[] }).unwrap();
            }
        }
        // No feature is behind exact draws.
        let exact =
            tree(map).with_uniform(0.1).unwrap().with_diagnostics().with_exact_below(100).build(&c).unwrap();
        assert!(exact.sample(&h, 5, 1).unwrap().effective_features.is_none());
    }
}
