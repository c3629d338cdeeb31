//! [`SoftmaxSampler`]: draws of classes from a tree of feature sums.

use ndarray::{ArrayRef1, ArrayRef2, Axis};

use super::classes::{Classes, check_below};
use super::exact::ExactClasses;
use super::partition::dot;
use super::tree::{Tree, TreeMixture, Walker};
use super::{Draws, Partition, Proposal};
use crate::Real;
use crate::error::{Result, check_finite, check_size};
use crate::generator::rng;
use crate::map::Map;
use crate::numeric::slice_of;
use crate::once::once;

/// Draws classes i of C with probabilities near those of a softmax, ∝ exp(h·cᵢ), each in a time that grows with log C.
///
/// Approximate: a map's estimates stand for exp(h·cᵢ), but the probability that is stated with each draw is exact.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::rand::RngExt;
/// use random_features::Positive;
/// use random_features::apply::softmax_sampling::SoftmaxSampler;
/// use random_features::frequency::Orthogonal;
/// let mut rng = random_features::rng(1);
/// let shape = (5000, 4);
/// let classes = Array2::from_shape_simple_fn(shape, || rng.random::<f32>());
/// let map = Positive.softmax(Orthogonal.draw(4, 64, 1)?)?;
/// let sampler = SoftmaxSampler::new(map, &classes)?;
/// // Five draws for each of two points.
/// let h = Array2::from_shape_simple_fn((2, 4), || rng.random::<f32>());
/// let draws = sampler.sample(&h, 5, 42)?;
/// assert_eq!(draws.classes.dim(), (2, 5));
/// // All probabilities add up to 1.
/// let all: Vec<usize> = (0..5000).collect();
/// let q = sampler.log_probabilities(&h.row(0), &all)?;
/// assert!((q.iter().map(|ln| ln.exp()).sum::<f64>() - 1.0).abs() < 1e-9);
/// assert_eq!(draws.log_probabilities[[0, 0]], q[draws.classes[[0, 0]]]);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// With fewer than [4096 classes](Proposal::with_exact_below) (the default), draws are from the softmax itself, q = p.
///
/// With more, a tree holds the sums S_v = Σ ψ(cᵢ) of the features of the classes below each node v. A walk goes from the root down.
/// Among the children v of a node it takes one with probability max(φ(h)·S_v, 0) / Σ, and so among the classes of a leaf. If no child
/// has a positive estimate, it takes one in proportion to the number of its classes. Let w(i) be the product of these probabilities on
/// the way to class i. With the weight ε of the [uniform distribution](Proposal::with_uniform) q(i) = (1 − ε) w(i) + ε/C. For any map,
/// q adds up to 1 over the classes, up to rounding.
///
/// For maps without negative features w(i) = φ(h)·ψ(cᵢ) / Σⱼ φ(h)·ψ(cⱼ), up to rounding, since the sums of the children
/// add up to that of the node. For maps with negative features (trigonometric, hybrids) w depends on how classes are
/// ordered, and may be 0, so that ε must be positive. [`clipped`](Draws::clipped) states the share of estimates that
/// were negative on the way.
///
/// # Accuracy
/// Each node has a scale in `f64` for each block of features, each feature has a reference that is subtracted from its logarithm, and h
/// has weights in `f64`. Features at norms of 20, in `f32` too, neither overflow nor vanish. In `f32` a feature of a class is lost if,
/// relative to its reference, it is below e⁻⁸⁷ times the largest of a sum that it enters.
///
/// # Cost
/// L is the [leaf size](Proposal::with_leaf_size), D the number of features. A draw costs O(D log C + L m d). Draws for one h share the
/// features of h and the nodes that they have in common. [Replacing](SoftmaxSampler::replace), [adding](SoftmaxSampler::add) or
/// [removing](SoftmaxSampler::remove) a class costs as much as a draw.
///
/// Memory is C·D·(4/3)/L numbers for the sums and, unless L = 1, C·d for the points. With 10⁶ classes, d = 64 and 128 features in
/// `f32`, L = 1, the default there, takes 690 MB and draws fastest, L = 8 takes 340 MB and L = 64 takes 270 MB. Exact draws cost
/// O(C d) for each h, by a product of many h at once, and O(log C) each; memory is C·d numbers.
///
/// # Storage
/// With the feature `serde` a sampler is stored with its classes and options: C·D numbers if L = 1, else C·d. Read on
/// the same machine, it draws the same classes with the same bits of ln q. A [`SampledSoftmax`](super::SampledSoftmax)
/// needs C·d.
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, appendix I; A. S. Rawat et al., *Sampled Softmax with Random Fourier Features*, 2019; G.
/// Blanc and S. Rendle, *Adaptive Sampled Softmax with Kernel Based Sampling*, 2018.
#[doc(alias = "sampled softmax")]
#[derive(Clone, Debug)]
pub struct SoftmaxSampler<T: Real> {
    pub(super) proposal: Proposal<T>,
    pub(super) engine: Engine<T>,
}

/// The two ways to draw: from a tree of sums, or from the exact softmax.
#[derive(Clone, Debug)]
pub(super) enum Engine<T: Real> {
    Tree(Tree<T>),
    Exact(ExactClasses<T>),
}

impl<T: Real> Engine<T> {
    pub fn classes(&self) -> &Classes {
        match self {
            Engine::Tree(tree) => &tree.classes,
            Engine::Exact(exact) => &exact.classes,
        }
    }
}

impl<T: Real> SoftmaxSampler<T> {
    /// A sampler over classes with these vectors, C × d, for a map without negative features, with the default options. For q near
    /// the softmax of h·cᵢ take a map of the softmax kernel.
    ///
    /// # Errors
    /// The errors of [`Proposal::build`].
    pub fn new(map: Map<T>, classes: &ArrayRef2<T>) -> Result<Self> {
        Proposal::new(map).build(classes)
    }

    /// C, the number of classes, with [removed](SoftmaxSampler::remove) ones: all numbers of classes are below it.
    pub fn classes(&self) -> usize {
        self.engine.classes().count()
    }

    /// The number of classes that are present.
    pub fn present_classes(&self) -> usize {
        self.engine.classes().present()
    }

    /// Whether there is a class of this number that was not removed.
    pub fn is_present(&self, class: usize) -> bool {
        self.engine.classes().is_present(class)
    }

    /// Whether draws are from the [softmax itself](Proposal::with_exact_below), q = p up to rounding.
    pub fn is_exact(&self) -> bool {
        matches!(self.engine, Engine::Exact(_))
    }

    /// The map.
    pub fn map(&self) -> &Map<T> {
        &self.proposal.map
    }

    /// ε, the weight of the uniform distribution.
    pub fn uniform_weight(&self) -> f64 {
        self.proposal.uniform
    }

    /// The bytes of the tree and of its points.
    pub fn bytes(&self) -> usize {
        match &self.engine {
            Engine::Tree(tree) => tree.bytes(),
            Engine::Exact(exact) => exact.bytes(),
        }
    }

    /// Draws k classes for each row of `h`, n × d. Row i draws with the generator [`rng_of_step`](crate::rng_of_step)`(seed, i)`,
    /// so that draws are the same for any number of threads; rows are drawn in parallel.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `h` does not have d columns, [`NotFinite`](crate::Error::NotFinite) if a row or its features are not
    /// finite, [`Memory`](crate::Error::Memory) if the draws do not fit in memory.
    #[inline(never)]
    pub fn sample(&self, h: &ArrayRef2<T>, k: usize, seed: u64) -> Result<Draws> {
        self.check_columns(h)?;
        let mut draws = self.room(h.nrows(), k)?;
        check_finite("h", h)?;
        match &self.engine {
            Engine::Tree(tree) => self.mixture(tree).sample(h.view(), seed, &mut draws)?,
            Engine::Exact(exact) => exact.sample(h.view(), seed, &mut draws)?,
        }
        Ok(draws)
    }

    /// Draws k classes for one point, 1 × k, with the generator [`rng`](crate::rng)`(seed)`.
    ///
    /// # Errors
    /// The errors of [`sample`](SoftmaxSampler::sample).
    #[inline(never)]
    pub fn sample_of(&self, h: &ArrayRef1<T>, k: usize, seed: u64) -> Result<Draws> {
        let h = h.view().insert_axis(Axis(0));
        self.check_h(&h)?;
        let (mut draws, mut rng) = (self.room(1, k)?, rng(seed));
        let (row, uniform) = (draws.only_row_mut(), &mut || rng.uniform());
        match &self.engine {
            Engine::Tree(tree) => self.mixture(tree).draw(&mut Walker::default(), 0, h, row, uniform)?,
            Engine::Exact(exact) => exact.draw(slice_of(&h.as_standard_layout()), row, uniform)?,
        }
        Ok(draws)
    }

    /// The partition function Z = Σᵢ exp(h·cᵢ) of a point over class vectors, C × d, from k draws of [`sample_of`](SoftmaxSampler::sample_of),
    /// in O(k d) beside them.
    ///
    /// ```
    /// use random_features::ndarray::Array2;
    /// use random_features::rand::RngExt;
    /// use random_features::Positive;
    /// use random_features::apply::softmax_sampling::SoftmaxSampler;
    /// use random_features::frequency::Orthogonal;
    /// let mut rng = random_features::rng(1);
    /// let shape = (5000, 4);
    /// let classes = Array2::from_shape_simple_fn(shape, || rng.random::<f64>());
    /// let map = Positive.softmax(Orthogonal.draw(4, 64, 1)?)?;
    /// let sampler = SoftmaxSampler::new(map, &classes)?;
    /// let h = random_features::ndarray::arr1(&[0.4, -0.6, 0.2, 0.1]);
    /// let z = sampler.partition(&h, &classes, 200, 7)?;
    /// let exact = classes.dot(&h).mapv(f64::exp).sum();
    /// assert!((z.log_value() - exact.ln()).abs() < 4.0 * z.relative_error());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// The sum is over the classes that are present; vectors of others do not matter.
    ///
    /// # Errors
    /// The errors of [`sample`](SoftmaxSampler::sample), and [`Shape`](crate::Error::Shape) if there are not C vectors or they do not have
    /// d columns; the errors of [`Partition::new`], which is [`Parameter`](crate::Error::Parameter) for k = 0.
    #[inline(never)]
    pub fn partition(
        &self,
        h: &ArrayRef1<T>,
        vectors: &ArrayRef2<T>,
        k: usize,
        seed: u64,
    ) -> Result<Partition> {
        check_size("the number of class vectors", self.classes(), vectors.nrows())?;
        check_size("the number of columns of the class vectors", self.map().dim(), vectors.ncols())?;
        let draws = self.sample_of(h, k, seed)?;
        let logits: Vec<f64> = draws.classes.iter().map(|class| dot(h.view(), vectors.row(*class))).collect();
        let z = Partition::new(&logits, slice_of(&draws.log_probabilities))?;
        let z = z.with_features(draws.effective_features.and_then(|all| all.first().copied()));
        if self.is_exact() {
            return Ok(z);
        }
        let present = self.present_classes();
        let z =
            z.with_classes(slice_of(&draws.classes), present, &logits, slice_of(&draws.log_probabilities));
        z.with_least_probability((self.uniform_weight() / present as f64).ln())
    }

    /// ln of the probability q of some classes for a point, as [`sample`](SoftmaxSampler::sample) states it; −∞ for
    /// classes that were removed. For all classes it costs about as much as computing the features of all of them.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `h` does not have d entries, [`NotFinite`](crate::Error::NotFinite) if `h` or its features are not
    /// finite, [`Entry`](crate::Error::Entry) if there is no such class.
    #[inline(never)]
    pub fn log_probabilities(&self, h: &ArrayRef1<T>, classes: &[usize]) -> Result<Vec<f64>> {
        let h = h.view().insert_axis(Axis(0));
        self.check_h(&h)?;
        check_below("the classes", classes, self.classes())?;
        // No way leads to a class that was removed.
        let present = classes.iter().copied().filter(|class| self.is_present(*class));
        let logs = match &self.engine {
            Engine::Tree(tree) => self.mixture(tree).log_probabilities(h, &present.collect::<Vec<_>>())?,
            Engine::Exact(exact) => exact.log_probabilities(slice_of(&h.as_standard_layout()), present)?,
        };
        let mut logs = logs.into_iter();
        let mut of = |class: &usize| if self.is_present(*class) { logs.next() } else { None };
        Ok(classes.iter().map(|class| of(class).unwrap_or(f64::NEG_INFINITY)).collect())
    }

    pub(super) fn check_h(&self, h: &ArrayRef2<T>) -> Result<()> {
        self.check_columns(h)?;
        check_finite("h", h)
    }

    pub(super) fn check_columns(&self, h: &ArrayRef2<T>) -> Result<()> {
        check_size("the number of columns of h", self.map().dim(), h.ncols())
    }

    fn room(&self, n: usize, k: usize) -> Result<Draws> {
        Draws::with_room(n, k, self.proposal.diagnosed && !self.is_exact())
    }

    fn mixture<'a>(&'a self, tree: &'a Tree<T>) -> TreeMixture<'a, T> {
        TreeMixture { proposal: &self.proposal, tree }
    }
}

once!(
    SoftmaxSampler::<T>::sample,
    SoftmaxSampler::<T>::log_probabilities,
    SoftmaxSampler::<T>::sample_of,
    SoftmaxSampler::<T>::partition,
);
