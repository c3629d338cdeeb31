//! [`SampledLoss`]: the cross-entropy of a softmax from draws of its classes, with gradients.

use ndarray::{Array2, ArrayRef2, ArrayView1};

use super::Draws;
use super::classes::check_below;
use super::partition::{check_log_probability, dot};
use crate::error::{Error, Result, check_finite, check_size};
use crate::numeric::special::ln_sum_exp;
use crate::once::once;
use crate::{Real, progress};

/// The sampled softmax loss of n points, and its gradients. **Biased** low: the sum within the logarithm has no bias, but its logarithm
/// has.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::rand::RngExt;
/// use random_features::Positive;
/// use random_features::apply::softmax_sampling::{SampledLoss, SoftmaxSampler};
/// use random_features::extend::Coupling;
/// use random_features::frequency::Orthogonal;
/// let mut rng = random_features::rng(1);
/// let shape = (5000, 3);
/// let vectors = Array2::from_shape_simple_fn(shape, || rng.random::<f64>());
/// let h = Array2::from_shape_simple_fn((1, 3), || rng.random::<f64>());
/// let map = Positive.softmax(Orthogonal.draw(3, 64, 1)?)?;
/// let draws = SoftmaxSampler::new(map, &vectors)?.sample(&h, 40, 7)?;
/// let loss = SampledLoss::new(&h, &vectors, &[17], &draws)?;
/// // All classes: ln Σ e^(h·cᵢ) − h·c_t.
/// let logits = vectors.dot(&h.row(0));
/// let full = logits.mapv(f64::exp).sum().ln() - logits[17];
/// assert!((loss.mean() - full).abs() < 0.1);
/// // The target and at most 40 draws have a gradient; SampledSoftmax
/// // takes the step.
/// assert!(loss.classes().len() <= 41);
/// assert_eq!(loss.class_gradients().nrows(), loss.classes().len());
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// For a point h of class t with logits oᵢ = h·cᵢ and k draws s of probability q the loss is
///
/// ℓ = −o_t + ln (e^(o_t) + Σⱼ e^(o'ⱼ)),  o'ⱼ = o_sⱼ − ln(k q(sⱼ)),
///
/// over the draws that are not t. The argument of the logarithm is an estimate of Σᵢ e^(oᵢ) without bias, if q > 0 for all classes but
/// t. If all draws are t, or k = 0, the loss and its gradients are 0.
///
/// With p = softmax(o_t, o') and q held fixed, ∂ℓ/∂h = (p_t − 1) c_t + Σⱼ pⱼ c_sⱼ, ∂ℓ/∂c_t = (p_t − 1) h and ∂ℓ/∂c_sⱼ =
/// pⱼ h. Logits are exact, also if the [proposal](super::Proposal::with_cosine) takes cosines. The cost is O(n k d).
///
/// # Bias
/// The mean of the loss is less than the loss over all classes, by about half the relative variance of the sum. That is up to 1/(2 k̂)
/// nats with [k̂ effective draws](SampledLoss::effective_draws), and more where k̂ is small or a proposal misses classes that matter.
/// After some training with 200,000 classes it was 4.89, 4.94 and 4.97 with k = 100, 1000 and 10,000, while the loss over all classes was
/// 5.21. Compare models by losses over all classes, −ln p_t, or with equal k and proposals.
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, appendix I; S. Jean et al., *On Using Very Large Target Vocabulary for Neural Machine
/// Translation*, 2015; A. S. Rawat et al., *Sampled Softmax with Random Fourier Features*, 2019.
#[doc(alias = "sampled softmax")]
#[derive(Clone, Debug, PartialEq)]
pub struct SampledLoss<T> {
    losses: Vec<f64>,
    effective_draws: Vec<f64>,
    point_gradients: Array2<T>,
    classes: Vec<usize>,
    class_gradients: Array2<T>,
}

/// The gradient of a row's loss with respect to the logit of a class.
struct Slope {
    row: usize,
    class: usize,
    slope: f64,
}

impl<T: Real> SampledLoss<T> {
    /// The loss of points `h`, n × d, with the classes `targets`, under class vectors, C × d, from
    /// [draws](super::SoftmaxSampler::sample) for these points.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if sizes differ, [`NotFinite`](Error::NotFinite) if a point is not finite, or a class vector, a
    /// logit or a logarithm of a probability that the loss contains, [`Entry`](Error::Entry) if such a logarithm is above 0, or if
    /// there is no class of this number.
    #[inline(never)]
    pub fn new(h: &ArrayRef2<T>, vectors: &ArrayRef2<T>, targets: &[usize], draws: &Draws) -> Result<Self> {
        check_size("the number of columns of the class vectors", h.ncols(), vectors.ncols())?;
        check_size("the number of targets", h.nrows(), targets.len())?;
        check_size("the number of rows of the draws", h.nrows(), draws.classes.nrows())?;
        check_size("the number of rows of the probabilities", h.nrows(), draws.log_probabilities.nrows())?;
        let (k, of) = (draws.classes.ncols(), draws.log_probabilities.ncols());
        check_size("the number of columns of the probabilities", k, of)?;
        check_finite("h", h)?;
        check_below("the targets", targets, vectors.nrows())?;
        check_drawn(draws, vectors.nrows())?;
        let (mut losses, mut effective_draws, mut slopes) = (Vec::new(), Vec::new(), Vec::new());
        for (row, h) in h.rows().into_iter().enumerate() {
            progress::check()?;
            let logit = |class: usize| dot(h, vectors.row(class));
            let (loss, effective) = of_row(row, targets[row], draws, logit, &mut slopes)?;
            losses.push(loss);
            effective_draws.push(effective);
        }
        let mut classes: Vec<usize> = slopes.iter().map(|slope| slope.class).collect();
        classes.sort_unstable();
        classes.dedup();
        let mut gradients = [Array2::<f64>::zeros(h.dim()), Array2::zeros((classes.len(), h.ncols()))];
        let share = 1.0 / h.nrows().max(1) as f64;
        for Slope { row, class, slope } in slopes {
            let place = classes.partition_point(|other| *other < class);
            add(&mut gradients[0], row, share * slope, vectors.row(class));
            add(&mut gradients[1], place, share * slope, h.row(row));
        }
        let [point_gradients, class_gradients] = gradients.map(|gradient| gradient.mapv(T::narrow));
        Ok(SampledLoss { losses, effective_draws, point_gradients, classes, class_gradients })
    }

    /// The loss of each point, in nats.
    pub fn losses(&self) -> &[f64] {
        &self.losses
    }

    /// For each point the effective number of draws, (Σⱼ zⱼ)²/Σⱼ zⱼ² with zⱼ = e^(o'ⱼ) over the draws that are not its
    /// class. It is the number of these if all zⱼ are equal, 1 if one outweighs all others, 0 if there are none. If it
    /// is small, the loss is [biased low](SampledLoss#bias). Classes that were not drawn do not show in it.
    pub fn effective_draws(&self) -> &[f64] {
        &self.effective_draws
    }

    /// The mean loss over the points, whose gradients are given; NaN without points.
    pub fn mean(&self) -> f64 {
        self.losses.iter().sum::<f64>() / self.losses.len() as f64
    }

    /// The gradient of the mean loss with respect to `h`, n × d.
    pub fn point_gradients(&self) -> &Array2<T> {
        &self.point_gradients
    }

    /// The classes whose vectors have a gradient, increasing: targets and draws.
    pub fn classes(&self) -> &[usize] {
        &self.classes
    }

    /// The gradient of the mean loss with respect to the vectors of these [`classes`](SampledLoss::classes), in rows.
    pub fn class_gradients(&self) -> &Array2<T> {
        &self.class_gradients
    }
}

/// Refuses draws of classes whose numbers are not below `count`.
fn check_drawn(draws: &Draws, count: usize) -> Result<()> {
    let classes = draws.classes.indexed_iter();
    match classes.map(|((row, _), class)| (row, *class)).find(|(_, class)| *class >= count) {
        None => Ok(()),
        Some((row, class)) => {
            let (what, domain) = ("the classes that were drawn", "below the number of classes");
            Err(Error::Entry { what, row, value: class as f64, domain })
        }
    }
}

/// The loss of a row, and its number of effective draws; adds the slopes of its logits.
fn of_row(
    row: usize,
    target: usize,
    draws: &Draws,
    logit: impl Fn(usize) -> f64,
    slopes: &mut Vec<Slope>,
) -> Result<(f64, f64)> {
    let k = draws.classes.ncols() as f64;
    let mut classes = vec![target];
    let mut logits = vec![logit(target)];
    let drawn = draws.classes.row(row).into_iter().zip(draws.log_probabilities.row(row));
    for (class, ln_q) in drawn.filter(|(class, _)| **class != target) {
        check_log_probability(row, *ln_q)?;
        classes.push(*class);
        logits.push(logit(*class) - (k.ln() + ln_q));
    }
    let effective = effective(&logits[1..]);
    let log_sum = ln_sum_exp(&logits);
    if !log_sum.is_finite() || logits.iter().any(|o| !o.is_finite()) {
        return Err(Error::NotFinite { what: "the corrected logits", row, column: None });
    }
    slopes.extend(classes.into_iter().zip(&logits).enumerate().map(|(j, (class, o))| {
        let slope = (o - log_sum).exp() - f64::from(u8::from(j == 0));
        Slope { row, class, slope }
    }));
    Ok((log_sum - logits[0], effective))
}

/// (Σ z)²/Σ z² for terms z with these logarithms.
fn effective(logs: &[f64]) -> f64 {
    let twice: Vec<f64> = logs.iter().map(|log| 2.0 * log).collect();
    if logs.is_empty() { 0.0 } else { (2.0 * ln_sum_exp(logs) - ln_sum_exp(&twice)).exp() }
}

fn add<T: Real>(to: &mut Array2<f64>, row: usize, factor: f64, x: ArrayView1<'_, T>) {
    to.row_mut(row).iter_mut().zip(x).for_each(|(to, v)| *to += factor * v.widen());
}

once!(SampledLoss::<T>::new);
