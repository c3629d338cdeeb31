//! [`ProposalReport`]: whether a proposal is good enough, and what would help.

use ndarray::{ArrayRef2, Axis};

use super::quality::Softmaxes;
use super::{Proposal, Quality, SampledSoftmax, SoftmaxSampler};
use crate::data::spread::spread;
use crate::error::{Result, check_positive};
use crate::map::Map;
use crate::numeric::special::ln_sum_exp;
use crate::once::once;
use crate::{Real, progress};

/// The seed of the frequencies of alternatives.
const SEED: u64 = 1;
/// Classes with ln p below this do not count for the closed form.
const LEAST: f64 = -14.0;

/// The most products of features that a report computes: some 20 s on two cores. It judges fewer points than it is given if
/// they would take more.
const PRODUCTS: usize = 1 << 33;
/// The number of points that a report judges in any case.
const POINTS: usize = 8;

/// Gains of the effective share that are not worth a tree.
const LITTLE: f64 = 1.1;
/// ln of a factor by which no number of features can grow.
const FEATURES: f64 = 14.0;

/// The quality of a sampler's draws for some points, compared with uniform draws and with alternatives.
/// [`SoftmaxSampler::report`] makes it and has an example; `Display` writes sentences.
///
/// Alternatives have more frequencies or features [shaped by the data](crate::data::shaping).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProposalReport {
    /// The rows of h at which draws were judged, in increasing order: all of them, or evenly spaced ones if all would take too
    /// long.
    pub points: Vec<usize>,
    /// The number of points h that were given.
    pub given_points: usize,
    /// The quality of the draws.
    pub proposal: Quality,
    /// The quality of uniform draws.
    pub uniform: Quality,
    /// ln of the mean relative variance Var(K̂)/K² of an estimate, in closed form. The mean is over the classes,
    /// weighted by the softmax, and over the points. `None` if draws are exact or there is no closed form.
    ///
    /// The relative variance falls as 1/m. So does χ² = 1/share − 1 of the draws, once both are small. χ² is smaller
    /// where the errors of the classes are correlated, since a common factor cancels in q.
    pub log_relative_variance: Option<f64>,
    /// The quality of the other proposals that were tried.
    pub alternatives: Vec<Quality>,
}

impl<T: Real> SoftmaxSampler<T> {
    /// Judges draws for points `h`, n × d, such as occur in training. It compares q with the exact softmax over class
    /// vectors, C × d, with uniform draws, and with alternatives.
    ///
    /// ```
    /// use random_features::ndarray::Array2;
    /// use random_features::rand::RngExt;
    /// use random_features::Positive;
    /// use random_features::apply::softmax_sampling::SoftmaxSampler;
    /// use random_features::frequency::Orthogonal;
    /// let mut rng = random_features::rng(1);
    /// let shape = (5000, 4);
    /// let classes = Array2::from_shape_simple_fn(shape, || 2.0 * rng.random::<f64>());
    /// let h = Array2::from_shape_simple_fn((9, 4), || 2.0 * rng.random::<f64>());
    /// let map = Positive.softmax(Orthogonal.draw(4, 32, 1)?)?;
    /// let report = SoftmaxSampler::new(map, &classes)?.report(&h, &classes, &[8])?;
    /// println!("{report}");
    /// let more = report.alternatives.iter().find(|other| !other.shaped).unwrap();
    /// assert_eq!(more.factor, 8);
    /// assert!(more.effective_share() > report.proposal.effective_share());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// For each of the `factors` an alternative has this multiple of the map's number of frequencies, drawn anew.
    /// Features shaped by `h` and the vectors are tried too, for factor 1 and each of the `factors`. Alternatives need
    /// a map whose frequencies were drawn [by name](crate::map::Omega), and shaping needs a crate feature for linear
    /// algebra. Without `factors` there are no alternatives. Shaped features are judged on the points by which they
    /// were shaped: give some hundred.
    ///
    /// # Cost
    /// O(C (d + ΣD)) time and C numbers of memory for each point that is judged, with ΣD over all proposals that are
    /// tried, and a tree for each alternative. Each point takes C ΣD products. As many points are judged as take 2³³
    /// products in all, some 20 s on two cores, but at least 8. If n is larger, evenly spaced points are judged, and
    /// [`points`](ProposalReport::points) says which. With 200,000 classes, 256 features and the factors 2 and 4, 11
    /// points are judged. Shapes follow from all points. Each proposal is a step of its [progress](crate::progress).
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if sizes differ, [`NotFinite`](crate::Error::NotFinite) if points, logits or features are
    /// not finite, [`Parameter`](crate::Error::Parameter) if a factor is 0 or there is no point, [`Memory`](crate::Error::Memory)
    /// if the logits of all points that are judged, or a tree, do not fit in memory. [`Cancelled`](crate::Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    #[inline(never)]
    pub fn report(
        &self,
        h: &ArrayRef2<T>,
        vectors: &ArrayRef2<T>,
        factors: &[usize],
    ) -> Result<ProposalReport> {
        factors.iter().try_for_each(|factor| check_positive("a factor of the frequencies", *factor))?;
        check_positive("the number of points h", h.nrows())?;
        self.check_h(h)?;
        let (all, given_points) = (h, h.nrows());
        let points = spread(given_points, self.points_to_judge(factors));
        let h = &all.select(Axis(0), &points);
        let softmaxes = Softmaxes::of(self, h, &points, vectors)?;
        let (proposal, uniform) = (softmaxes.quality(self, h)?, softmaxes.quality_of_uniform());
        progress::step("proposals judged", 1, None::<usize>)?;
        let mut alternatives = Vec::new();
        let mut log_relative_variance = None;
        if !self.is_exact() {
            log_relative_variance = self.log_relative_variance(&softmaxes, h, vectors)?;
            let maps = self.other_maps(all, vectors, factors)?;
            let total = 1 + maps.len();
            for (shaped, factor, map) in maps {
                let quality = softmaxes.quality(&self.with_map(map, vectors)?, h)?;
                alternatives.push(Quality { shaped, factor, ..quality });
                progress::step("proposals judged", 1 + alternatives.len(), total)?;
            }
        }
        Ok(ProposalReport { points, given_points, proposal, uniform, log_relative_variance, alternatives })
    }

    /// The number of points that a report judges.
    fn points_to_judge(&self, factors: &[usize]) -> usize {
        // The proposals are the map itself, the map with each factor, and as many shaped ones.
        let is_named = self.map().recipe().is_some_and(|recipe| recipe.with_frequencies(&Some).is_some());
        let sizes = match factors {
            [] => 1,
            _ if !is_named => 1,
            _ => factors.iter().fold(2, |sum: usize, factor| sum.saturating_add(factor.saturating_mul(2))),
        };
        let each = match self.is_exact() {
            true => self.map().dim(),
            false => self.map().feature_dim().saturating_mul(sizes),
        };
        (PRODUCTS / each.saturating_mul(self.present_classes()).max(1)).max(POINTS)
    }

    /// The maps to try, with whether they are shaped and their factors.
    fn other_maps(
        &self,
        h: &ArrayRef2<T>,
        vectors: &ArrayRef2<T>,
        factors: &[usize],
    ) -> Result<Vec<(bool, usize, Map<T>)>> {
        let mut maps = Vec::new();
        let Some(recipe) = self.map().recipe() else { return Ok(maps) };
        for factor in factors {
            if let Some(recipe) = recipe.with_frequencies(&|m| m.checked_mul(*factor)) {
                maps.push((false, *factor, recipe.draw(SEED)?));
            }
        }
        let factors = if factors.is_empty() { Vec::new() } else { [&[1], factors].concat() };
        #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
        for factor in factors {
            let draw = recipe
                .with_frequencies(&|m| m.checked_mul(factor))
                .and_then(|recipe| recipe.draws().first().copied().cloned());
            let (x, y) = (self.proposal.points(h.view()), self.proposal.points(vectors.view()));
            // Frequencies of other radii have no shape.
            if let Some(Ok(map)) = draw.map(|draw| super::proposal::shaped_map(draw.drawn(SEED)?, &x, &y)) {
                maps.push((true, factor, map));
            }
        }
        #[cfg(not(any(feature = "faer", feature = "ndarray-linalg")))]
        let _ = (h, vectors, factors);
        Ok(maps)
    }

    /// The tree of another map, with the same classes and options.
    fn with_map(&self, map: Map<T>, vectors: &ArrayRef2<T>) -> Result<Self> {
        let proposal = Proposal { map, exact_below: 0, leaf: None, ..self.proposal.clone() };
        let engine = proposal.engine(self.engine.classes().clone(), vectors.view(), None)?;
        Ok(SoftmaxSampler { proposal, engine })
    }

    /// ln Σ p Var/K², in the mean over the points.
    fn log_relative_variance(
        &self,
        softmaxes: &Softmaxes,
        h: &ArrayRef2<T>,
        vectors: &ArrayRef2<T>,
    ) -> Result<Option<f64>> {
        let Some(kernel) = self.map().kernel() else { return Ok(None) };
        let mut terms = Vec::new();
        for (h, logs) in self.proposal.points(h.view()).rows().into_iter().zip(&softmaxes.logs) {
            for (class, log) in softmaxes.classes.iter().zip(logs).filter(|(_, log)| **log > LEAST) {
                progress::check()?;
                let point = self.proposal.points(vectors.slice(ndarray::s![*class..*class + 1, ..]));
                let point = point.row(0);
                let Some(variance) = self.map().log_variance(&h, &point)? else { return Ok(None) };
                terms.push(log + variance - 2.0 * kernel.log_value(&h, &point)?.ln_abs);
            }
        }
        Ok(Some(ln_sum_exp(&terms) - (h.nrows() as f64).ln()))
    }
}

impl<T: Real> SampledSoftmax<T> {
    /// Judges draws for points `h`, n × d, by [`SoftmaxSampler::report`] with the layer's own vectors.
    ///
    /// # Errors
    /// The errors of [`SoftmaxSampler::report`].
    #[inline(never)]
    pub fn report(&self, h: &ArrayRef2<T>, factors: &[usize]) -> Result<ProposalReport> {
        self.sampler().report(h, &self.vectors(), factors)
    }
}

impl ProposalReport {
    /// Whether uniform draws would be [better](Quality::is_worse_than), and faster.
    pub fn is_worse_than_uniform(&self) -> bool {
        self.proposal.is_worse_than(&self.uniform)
    }
}

impl std::fmt::Display for ProposalReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ProposalReport { points, given_points, proposal, uniform, log_relative_variance, alternatives } =
            self;
        let n = points.len();
        let says = |quality: &Quality| {
            let (share, distance) = (quality.effective_share(), quality.total_variation());
            format!("effective share {}, total variation to the softmax {distance:.3}", short(share))
        };
        if n < *given_points {
            writeln!(f, "Judged at {n} of {given_points} points, evenly spaced.")?;
        }
        writeln!(f, "Draws: {}. Uniform draws: {}.", says(proposal), says(uniform))?;
        let worse = proposal.worse_points(uniform);
        let verdict = match proposal.effective_share() / uniform.effective_share() {
            _ if self.is_worse_than_uniform() => "Worse than uniform",
            gain if gain < LITTLE => "Hardly better than uniform, which is faster",
            _ => "Better than uniform",
        };
        writeln!(f, "{verdict}: at {worse} of {n} points the effective share is less.")?;
        if let Some(log) = log_relative_variance {
            write!(
                f,
                "The variance of an estimate relative to its square, in the mean over the softmax, is e^{log:.1}"
            )?;
            let needed = match *log {
                log if log > FEATURES => ": no number of features that fits a machine helps".into(),
                log if log > 0.0 => format!(": it is 1 with {:.0} times as many features", log.exp().ceil()),
                _ => String::new(),
            };
            writeln!(f, " and falls as 1/m{needed}.")?;
        }
        for quality in alternatives {
            let shape = if quality.shaped { "shaped by the data" } else { "as they are" };
            let verdict = if quality.is_worse_than(uniform) { "; worse than uniform" } else { "" };
            writeln!(f, "Features {shape}, {} times as many: {}{verdict}.", quality.factor, says(quality))?;
        }
        let none_helps = alternatives.iter().all(|other| other.is_worse_than(uniform));
        if self.is_worse_than_uniform() && !alternatives.is_empty() && none_helps {
            let advice = "smaller norms, Proposal::with_cosine, or uniform draws";
            writeln!(f, "Nothing that was tried is better than uniform: consider {advice}.")?;
        }
        Ok(())
    }
}

/// A share with two digits.
fn short(share: f64) -> String {
    if share >= 0.01 { format!("{share:.2}") } else { format!("{share:.1e}") }
}

once!(SoftmaxSampler::<T>::report, SampledSoftmax::<T>::report);

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::Positive;
    use crate::frequency::Orthogonal;

    fn sampler() -> SoftmaxSampler<f64> {
        let map = Positive.softmax(Orthogonal.draw(4, 256, 1).unwrap()).unwrap();
        let classes = Array2::from_shape_fn((200, 4), |(i, k)| ((i * (k + 3)) as f64).sin());
        Proposal::new(map).with_exact_below(0).build(&classes).unwrap()
    }

    #[test]
    fn products_are_bounded() {
        let sampler = sampler();
        assert_eq!(sampler.points_to_judge(&[]), (1 << 33) / (200 * 256));
        // Sizes 1, 2 and 4, each shaped and not: 14, as the documentation has it for a thousand times as many classes.
        assert_eq!(sampler.points_to_judge(&[2, 4]) / 1000, 11);
        assert_eq!(sampler.points_to_judge(&[1 << 40]), POINTS);
        assert_eq!(sampler.points_to_judge(&[usize::MAX, usize::MAX]), POINTS);
    }

    #[test]
    fn what_was_left_out_is_said() {
        let sampler = sampler();
        let h = Array2::from_elem((3, 4), 0.1);
        let classes = Array2::from_elem((200, 4), 0.2);
        let report = sampler.report(&h, &classes, &[]).unwrap();
        let report = ProposalReport { given_points: 256, ..report };
        assert!(
            report.to_string().starts_with("Judged at 3 of 256 points, evenly spaced.\nDraws: "),
            "{report}"
        );
    }
}
