//! How good a proposal is, and what would help.

use ndarray::{Array1, Array2};
use rand::RngExt;
use random_features::apply::metrics::total_variation;
use random_features::apply::softmax_sampling::{Proposal, SampledSoftmax, SoftmaxSampler};
use random_features::frequency::{Coupling, Frequencies, Orthogonal};
use random_features::{Error, Positive, rng};

use super::{all, data, log_sum, non_negative, tree};

/// Points ~ N(0, I), scaled.
fn normal(n: usize, d: usize, scale: f64, seed: u64) -> Array2<f64> {
    let mut rng = rng(seed);
    Array2::from_shape_simple_fn((n, d), || scale * rng.sample::<f64, _>(rand_distr::StandardNormal))
}

#[test]
fn quality_is_that_of_the_definition() {
    let (c, h) = data::<f64>(60, 4);
    let mut sampler = tree(non_negative(4, 6).remove(0)).with_uniform(0.1).unwrap().build(&c).unwrap();
    for removed in [vec![], vec![3, 17]] {
        sampler.remove(&removed).unwrap();
        let present: Vec<usize> = (0..60).filter(|class| !removed.contains(class)).collect();
        let report = sampler.report(&h, &c, &[]).unwrap();
        for (i, h) in h.rows().into_iter().enumerate() {
            let logits = c.select(ndarray::Axis(0), &present).dot(&h);
            let p = logits.mapv(|o| (o - log_sum(logits.as_slice().unwrap())).exp());
            let q: Array1<f64> =
                sampler.log_probabilities(&h, &present).unwrap().iter().map(|log| log.exp()).collect();
            let uniform = Array1::from_elem(p.len(), 1.0 / p.len() as f64);
            for (found, q) in [(&report.proposal, q), (&report.uniform, uniform)] {
                let share = 1.0 / (&p * &p / &q).sum();
                assert!((found.effective_shares[i] - share).abs() < 1e-12);
                assert!((found.total_variations[i] - total_variation(&p, &q).unwrap()).abs() < 1e-12);
            }
        }
        assert!(report.alternatives.is_empty() && report.log_relative_variance.unwrap().is_finite());
    }
    assert!(matches!(sampler.report(&h, &c, &[2, 0]), Err(Error::Parameter { .. })));
    assert!(matches!(sampler.report(&h, &c.slice(ndarray::s![1.., ..]), &[]), Err(Error::Shape { .. })));
    // Draws from the softmax itself.
    let exact = Proposal::new(non_negative(4, 6).remove(0)).build(&c).unwrap().report(&h, &c, &[4]).unwrap();
    assert!(exact.proposal.effective_shares.iter().all(|share| (share - 1.0).abs() < 1e-12));
    assert!(exact.proposal.total_variation() < 1e-12 && !exact.is_worse_than_uniform());
    assert!(exact.log_relative_variance.is_none() && exact.alternatives.is_empty());
}

/// One over the effective share is the mean of k over the effective draws, which draws estimate.
#[test]
fn the_effective_share_is_what_draws_have() {
    let (c, h) = data::<f64>(60, 4);
    let sampler = tree(non_negative(4, 32).remove(0)).build(&c).unwrap();
    let report = sampler.report(&h, &c, &[]).unwrap();
    let z = sampler.partition(&h.row(0), &c, 200_000, 4).unwrap();
    let share = z.effective_draws() / z.draws() as f64;
    assert!((share / report.proposal.effective_shares[0] - 1.0).abs() < 0.03);
    let share = z.uniform_effective_draws(60) / z.draws() as f64;
    assert!((share / report.uniform.effective_shares[0] - 1.0).abs() < 0.03);
}

/// Points of norm 5 in 64 dimensions: no number of features that one can afford helps, and the report says so.
#[test]
fn a_proposal_that_is_worse_than_uniform_says_so() {
    let unit = |x: Array2<f64>| {
        let norms = x.map_axis(ndarray::Axis(1), |row| row.dot(&row).sqrt() / 5.0);
        x / &norms.insert_axis(ndarray::Axis(1))
    };
    let (c, h) = (unit(normal(5000, 64, 1.0, 1)), unit(normal(12, 64, 1.0, 2)));
    let map = Positive.softmax(Orthogonal.draw(64, 128, 3).unwrap()).unwrap();
    let layer = SampledSoftmax::new(Proposal::new(map), &c).unwrap();
    let report = layer.report(&h, &[2]).unwrap();
    assert!(report.is_worse_than_uniform());
    assert!(report.proposal.effective_share() < 0.1 * report.uniform.effective_share());
    assert!(report.proposal.total_variation() > report.uniform.total_variation());
    // ‖h + c‖² is about 50, and more where the softmax is.
    assert!((50.0..110.0).contains(&report.log_relative_variance.unwrap()));
    let text = report.to_string();
    for sentence in
        ["Worse than uniform: at 12 of 12 points", "times as many", "Nothing that was tried is better"]
    {
        assert!(text.contains(sentence), "{text}");
    }
}

/// The closed form of the variance is that of χ² where it is small, and falls like 1/m; what is measured does, too.
#[test]
fn more_features_help_as_much_as_it_says() {
    let (c, h) = (normal(3000, 4, 0.4, 1), normal(40, 4, 0.4, 2));
    let report = |m: usize, factors: &[usize]| {
        let map = Positive.softmax(Orthogonal.draw(4, m, 3).unwrap()).unwrap();
        tree(map).build(&c).unwrap().report(&h, &c, factors).unwrap()
    };
    let (few, many) = (report(64, &[8]), report(512, &[]));
    let chi =
        |shares: &[f64]| shares.iter().map(|share| 1.0 / share - 1.0).sum::<f64>() / shares.len() as f64;
    let (before, after) = (few.log_relative_variance.unwrap(), many.log_relative_variance.unwrap());
    assert!((before - after - 8f64.ln()).abs() < 0.05, "{before} {after}");
    // One draw of the frequencies, which all classes share: χ² is less than the variance, as far as errors have all the same sign.
    let ratio = chi(&few.proposal.effective_shares) / before.exp();
    assert!((0.2..1.5).contains(&ratio), "{ratio}");
    let more = few.alternatives.iter().find(|other| !other.shaped).unwrap();
    let gain = chi(&few.proposal.effective_shares) / chi(&more.effective_shares);
    assert!((4.0..16.0).contains(&gain), "{gain}");
    assert!(!few.is_worse_than_uniform() && few.to_string().contains("etter than uniform"));
}

/// Frequencies that were given as numbers cannot be drawn again.
#[test]
fn given_frequencies_have_no_alternatives() {
    let (c, h) = data::<f64>(60, 4);
    let rows = Orthogonal.draw(4, 16, 1).unwrap().rows().into_owned();
    let map = Positive.softmax(Frequencies::from_rows(rows).unwrap()).unwrap();
    let report = tree(map).build(&c).unwrap().report(&h, &c, &[2]).unwrap();
    assert!(report.alternatives.is_empty() && report.log_relative_variance.is_none());
    // What was not tried is not said to be of no use.
    assert!(!report.to_string().contains("Nothing that was tried"));
}

/// Classes whose coordinates differ in size, and h in the opposite way: features shaped by them have several times the share.
#[cfg(feature = "faer")]
#[test]
fn shaped_features_propose_better() {
    let sizes = |k: usize, side: f64| (side * (0.5 - k as f64 / 15.0)).exp2();
    let of = |n: usize, side: f64, seed| {
        let mut x = normal(n, 16, 0.5, seed);
        x.columns_mut().into_iter().enumerate().for_each(|(k, mut column)| column *= sizes(k, side));
        x
    };
    let (c, h) = (of(5000, 6.0, 1), of(60, -6.0, 2));
    let omega = Orthogonal.draw(16, 128, 3).unwrap();
    let plain = Proposal::new(Positive.softmax(omega.clone()).unwrap()).build(&c).unwrap();
    // Shaped by other points than those that it is judged on.
    let shaped = Proposal::shaped(omega, &of(300, -6.0, 4), &c).unwrap().build(&c).unwrap();
    let report = plain.report(&h, &c, &[4]).unwrap();
    let share = shaped.report(&h, &c, &[]).unwrap().proposal.effective_share();
    assert!(share > 3.0 * report.proposal.effective_share(), "{share} {report}");
    let found = report.alternatives.iter().find(|other| other.shaped && other.factor == 1).unwrap();
    assert!((found.effective_share() / share - 1.0).abs() < 0.3, "{share} {report}");
    // q is still a distribution, and the estimate of Z has no bias.
    assert!(log_sum(&shaped.log_probabilities(&h.row(0), &all(5000)).unwrap()).abs() < 1e-9);
    let z = shaped.partition(&h.row(0), &c, 20_000, 1).unwrap();
    let exact = log_sum(c.dot(&h.row(0)).as_slice().unwrap());
    assert!((z.log_value() - exact).abs() < 4.5 * z.relative_error());
}

#[test]
fn all_of_few_points_are_judged() {
    let (c, h) = data::<f64>(60, 4);
    let sampler = tree(non_negative(4, 6).remove(0)).build(&c).unwrap();
    let report = sampler.report(&h, &c, &[2]).unwrap();
    assert_eq!((report.points.clone(), report.given_points), (all(4), 4));
    assert!(!report.to_string().contains("Judged"), "{report}");
}

/// A class whose probability is 0 in `f64` has no part in the effective share, however much rarer still its draws are.
#[test]
fn classes_of_probability_0_have_no_part() {
    let (mut c, h) = data::<f64>(60, 4);
    let h = h.slice(ndarray::s![..1, ..]).to_owned();
    let norm = h.row(0).dot(&h.row(0));
    c.row_mut(3).assign(&(&h.row(0) * (-5000.0 / norm)));
    let mut sampler = tree(non_negative(4, 32).remove(0)).build(&c).unwrap();
    let q = sampler.log_probabilities(&h.row(0), &[3]).unwrap()[0];
    assert!(q < -20_000.0, "{q}");
    let share =
        |sampler: &SoftmaxSampler<f64>| sampler.report(&h, &c, &[]).unwrap().proposal.effective_shares[0];
    let with = share(&sampler);
    sampler.remove(&[3]).unwrap();
    let without = share(&sampler);
    assert!(without > 0.1 && (with / without - 1.0).abs() < 1e-9, "{with}, {without}");
}
