//! Intervals of partition functions that are called reliable, where features are clipped or far too small.

use ndarray::{Array1, Array2};
use rand::RngExt;
use random_features::apply::softmax_sampling::{Partition, SoftmaxSampler};
use random_features::frequency::Independent;
use random_features::{Error, Map, Positive, Trigonometric, rng};

use super::{log_sum, tree};

/// Classes ~ N(0, I) and h of this norm.
#[derive(Clone, Copy)]
struct Setting {
    classes: usize,
    d: usize,
    norm: f64,
    map: fn(usize, usize, u64) -> Map<f64>,
    m: usize,
    uniform: f64,
    k: usize,
}

fn trigonometric(d: usize, m: usize, seed: u64) -> Map<f64> {
    Trigonometric.softmax(Independent.draw(d, m, seed).unwrap()).unwrap()
}

fn positive(d: usize, m: usize, seed: u64) -> Map<f64> {
    Positive.softmax(Independent.draw(d, m, seed).unwrap()).unwrap()
}

/// The setting of the review.
const CLIPPED: Setting =
    Setting { classes: 300, d: 2, norm: 1.0, map: trigonometric, m: 128, uniform: 0.05, k: 1000 };

impl Setting {
    /// The sampler, h, the vectors and ln Z.
    fn drawn(&self, seed: u64) -> (SoftmaxSampler<f64>, Array1<f64>, Array2<f64>, f64) {
        let mut rng = rng(seed);
        let mut normal = |n| {
            Array2::from_shape_simple_fn((n, self.d), || rng.sample::<f64, _>(rand_distr::StandardNormal))
        };
        let (vectors, h) = (normal(self.classes), normal(1).row(0).to_owned());
        let h = &h * (self.norm / h.dot(&h).sqrt());
        let map = (self.map)(self.d, self.m, seed + 100);
        let sampler = tree(map).with_uniform(self.uniform).unwrap().build(&vectors).unwrap();
        let exact = log_sum(vectors.dot(&h).as_slice().unwrap());
        (sampler, h, vectors, exact)
    }

    /// Of so many intervals at 90 % those that are called reliable, and of these those that hold ln Z.
    fn intervals(&self, seed: u64, runs: usize) -> (usize, usize) {
        let (sampler, h, vectors, exact) = self.drawn(seed);
        let (mut reliable, mut held) = (0, 0);
        for run in 0..runs as u64 {
            let z = sampler.partition(&h, &vectors, self.k, 1000 * seed + run).unwrap();
            let (low, high) = z.log_interval(0.9).unwrap();
            reliable += usize::from(z.is_reliable());
            held += usize::from(z.is_reliable() && low <= exact && exact <= high);
        }
        (reliable, held)
    }
}

/// Of the reliable intervals of a setting, if they are 20 or more, at least 80 % hold ln Z, less 4.5 deviations of a binomial with
/// that share: a share of 80 % fails once in 300,000 settings, and that of 90 %, which is what intervals have, hardly ever.
#[test]
fn what_is_called_reliable_covers() {
    let runs = 100;
    let mut settings = vec![];
    settings.extend((0..6).map(|seed| (seed, CLIPPED)));
    for (d, norm) in [(2, 0.5), (2, 2.0), (8, 0.5), (8, 1.0)] {
        for (m, uniform) in [(32, 0.01), (128, 0.05), (256, 0.2)] {
            settings.push((7, Setting { d, norm, m, uniform, ..CLIPPED }));
            settings.push((8, Setting { d, norm, m, uniform, k: 100, ..CLIPPED }));
            settings.push((9, Setting { d, norm, m, uniform, map: positive, ..CLIPPED }));
        }
    }
    settings.push((3, Setting { classes: 1000, ..CLIPPED }));
    settings.push((3, Setting { classes: 1000, norm: 0.5, uniform: 0.2, ..CLIPPED }));
    let (mut all, mut all_held) = (0, 0);
    for (seed, setting) in settings {
        let (reliable, held) = setting.intervals(seed, runs);
        let least = 0.8 * reliable as f64 - 4.5 * (0.16 * reliable as f64).sqrt();
        let Setting { classes, d, norm, m, uniform, k, .. } = setting;
        assert!(
            reliable < 20 || held as f64 >= least,
            "C = {classes}, d = {d}, |h| = {norm}, m = {m}, ε = {uniform}, k = {k}: {held} of {reliable}"
        );
        (all, all_held) = (all + reliable, all_held + held);
    }
    assert!(all_held as f64 >= 0.8 * all as f64, "{all_held} of {all}");
}

/// Where each class has some draws of the uniform part, nothing is missed, and intervals are intervals: of 100 at 90 % at least 76
/// hold, which is 4.7 deviations below 90.
#[test]
fn enough_uniform_draws_are_reliable() {
    for (norm, seed) in [(0.5, 1), (1.0, 2)] {
        let (reliable, held) = Setting { norm, uniform: 0.2, k: 10_000, ..CLIPPED }.intervals(seed, 100);
        assert!(reliable >= 90 && held + 24 >= reliable, "norm {norm}: {held} of {reliable}");
    }
}

/// Without uniform draws, most classes may have hardly any probability, and those that are drawn look alike: what is called reliable all
/// the same holds ln Z, as above. Intervals of maps that are near the softmax stay reliable.
#[test]
fn classes_that_are_never_drawn_are_not_forgotten() {
    let without = Setting { map: positive, uniform: 0.0, ..CLIPPED };
    let (mut reliable, mut held) = (0, 0);
    for seed in 0..40 {
        let (all, own) = Setting { d: 16, norm: 4.0, k: 300, ..without }.intervals(seed, 40);
        (reliable, held) = (reliable + all, held + own);
    }
    let least = 0.8 * reliable as f64 - 4.5 * (0.16 * reliable as f64).sqrt();
    assert!(held as f64 >= least, "{held} of {reliable}");
    let (reliable, held) = Setting { norm: 0.5, m: 256, ..without }.intervals(1, 100);
    assert!(reliable >= 80 && 100 * held >= 76 * reliable, "{held} of {reliable}");
}

/// Without a bound each class that was not drawn is taken to have the mean share of those that were, and to be drawn as rarely as what is
/// left says: a draw of it may change the estimate by a fifth of its error.
#[test]
fn unseen_classes_are_weighed_by_hand() {
    let mut decided = [0; 2];
    for seed in 0..12 {
        for (norm, k) in [0.5, 1.0, 2.0].into_iter().flat_map(|norm| [100, 300, 1000].map(|k| (norm, k))) {
            let setting = Setting { map: positive, uniform: 0.0, norm, k, d: 4, m: 256, ..CLIPPED };
            let (sampler, h, vectors, _) = setting.drawn(seed);
            let (draws, z) =
                (sampler.sample_of(&h, k, 1).unwrap(), sampler.partition(&h, &vectors, k, 1).unwrap());
            let logit = |class: usize| vectors.row(class).dot(&h) - z.log_value();
            let mut seen: Vec<(usize, f64)> =
                draws.classes.iter().copied().zip(draws.log_probabilities.iter().copied()).collect();
            let off = seen.iter().map(|(class, ln_q)| (logit(*class) - ln_q).exp() - 1.0);
            let (squares, cubes) =
                off.fold((0.0, 0.0), |(squares, cubes), d| (squares + d * d, cubes + d.abs().powi(3)));
            seen.sort_by_key(|(class, _)| *class);
            seen.dedup_by_key(|(class, _)| *class);
            let probability: f64 = seen.iter().map(|(_, ln_q)| ln_q.exp()).sum();
            let mean = seen.iter().map(|(class, _)| logit(*class).exp()).sum::<f64>() / seen.len() as f64;
            let left = (setting.classes - seen.len()) as f64;
            let k = k as f64;
            let error = (squares / (k - 1.0) / k).sqrt();
            let is_even = cubes / squares.powf(1.5) <= (2.85 / k.sqrt()).min(0.1);
            let reliable =
                |single: f64| k / (1.0 + squares / k) >= 30.0 && is_even && (single - 1.0) / k <= 0.2 * error;
            let single = if left > 0.0 { left * mean / (1.0 - probability) } else { 0.0 };
            assert_eq!(z.is_reliable(), reliable(single), "{seed}, {norm}, {k}: {single}");
            decided[0] += usize::from(z.is_reliable());
            decided[1] += usize::from(reliable(left * mean) && !z.is_reliable());
        }
    }
    assert!(decided.iter().all(|n| *n > 0), "{decided:?}");
}

#[test]
fn the_least_probability_is_stated_and_checked() {
    let (sampler, h, vectors, _) = CLIPPED.drawn(1);
    let z = sampler.partition(&h, &vectors, 1000, 1).unwrap();
    let draws = sampler.sample_of(&h, 1000, 1).unwrap();
    let logits: Vec<f64> = draws.classes.iter().map(|class| vectors.row(*class).dot(&h)).collect();
    let own = Partition::new(&logits, draws.log_probabilities.as_slice().unwrap()).unwrap();
    let own = own.with_least_probability((0.05f64 / 300.0).ln()).unwrap();
    assert!((own.log_value() - z.log_value()).abs() < 1e-12 && own.is_reliable() == z.is_reliable());
    // Of the classes that are present each has its share of the uniform part.
    let mut fewer = sampler.clone();
    fewer.remove(&Vec::from_iter(0..150)).unwrap();
    let z = fewer.partition(&h, &vectors, 100, 1).unwrap();
    assert_eq!(z.with_least_probability((0.05f64 / 150.0).ln()).unwrap(), z);
    for wrong in [f64::NAN, 0.1, f64::INFINITY] {
        assert!(matches!(own.with_least_probability(wrong), Err(Error::Parameter { .. })), "{wrong}");
    }
    // Few draws of a class of probability 0.01 ask for small terms, many do not.
    let equal = |k: usize, ln_q: f64| {
        let terms = [vec![0.0; k / 2], vec![0.1; k / 2]].concat();
        let z = Partition::new(&terms, &vec![0.01f64.ln(); k]).unwrap();
        z.with_least_probability(ln_q).unwrap().is_reliable()
    };
    assert!(!equal(400, 1e-4f64.ln()) && equal(400, 0.013f64.ln()) && equal(400, f64::NEG_INFINITY));
}
