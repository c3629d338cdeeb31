//! [`SoftmaxSampler`]: draws of classes from a tree of feature sums.

use ndarray::parallel::prelude::*;
use ndarray::{ArrayRef1, ArrayRef2, ArrayView2, Axis};
use rand::{Rng, RngExt};

use super::draws::DrawsMut;
use super::loss::dot;
use super::tree::Tree;
use super::walk::{Walk, Walker};
use super::{Draws, Partition, Proposal};
use crate::apply::check_finite;
use crate::error::{Error, Result, check_size};
use crate::map::Map;
use crate::numeric::slice_of;
use crate::{Real, rng_of_step};

/// Walks that are taken together.
const WALKS: usize = 1 << 16;

/// Draws classes i of C with probabilities near those of a softmax, ∝ exp(h·cᵢ), in O(m log C) each. Approximate: a map's
/// estimates stand for exp(h·cᵢ); but the probability that is stated with each draw is the one that it had.
///
/// # Definition
/// A tree holds the sums S_v = Σ ψ(cᵢ) of the features of the classes below each node v. A walk goes from the root down; among
/// the children v of a node it takes one with probability max(φ(h)·S_v, 0) / Σ, and so among the classes of a leaf. Where
/// no child has a positive estimate it takes one in proportion to the number of its classes. w(i) is the product of these
/// probabilities on the way to class i, and q(i) = (1 − ε) w(i) + ε/C with the weight ε of the uniform distribution
/// ([`uniform`](Proposal::uniform)). For any map, q adds up to 1 over the classes, up to rounding.
///
/// Maps without negative features: w(i) = φ(h)·ψ(cᵢ) / Σⱼ φ(h)·ψ(cⱼ), up to rounding, since the sums of the children
/// are those of the node. Maps with negative features (trigonometric, hybrids): w depends on how classes are ordered, and may
/// be 0, so that ε must be positive; [`clipped`](Draws::clipped) says how much mass was negative on the way.
///
/// # Accuracy
/// Each node has a scale in `f64` for each block of features, each feature a reference that is subtracted from its logarithm,
/// and h weights in `f64`: norms of 20, in `f32` too, neither overflow nor vanish. In `f32` a feature of a class is lost where,
/// relative to its reference, it is below e⁻⁸⁷ times the largest of a sum that it enters.
///
/// # Cost
/// L is the [leaf size](Proposal::leaf_size), D the number of features. A draw costs O(D log C + L m d), and draws for one h
/// share the features of h and whatever nodes they have in common; [replacing](SoftmaxSampler::replace) a class costs the
/// same. Memory is C·D·(4/3)/L numbers for the sums and C·d for the points, which L = 1 does without. With 10⁶
/// classes, d = 64 and 128 features in `f32`, L = 1, which is usual there, takes 690 MB and draws fastest, L = 8 takes 340 MB and L = 64 takes 270 MB.
///
/// # Example
/// ```
/// use ndarray::Array2;
/// use random_features::apply::softmax_sampling::SoftmaxSampler;
/// use random_features::frequency::{Coupling, Orthogonal};
/// use random_features::Positive;
/// let classes = Array2::from_shape_fn((1000, 4), |(i, k)| ((i * (k + 3)) as f32).sin());
/// let map = Positive.softmax(Orthogonal.draw(4, 64, 1)?)?;
/// let sampler = SoftmaxSampler::new(map, &classes)?;
/// let h = classes.slice(ndarray::s![..2, ..]).to_owned();
/// let draws = sampler.sample(&h, 5, 42)?;
/// assert_eq!(draws.classes.dim(), (2, 5));
/// // All probabilities add up to 1.
/// let all: Vec<usize> = (0..1000).collect();
/// let q = sampler.log_probabilities(&h.row(0), &all)?;
/// assert!((q.iter().map(|ln| ln.exp()).sum::<f64>() - 1.0).abs() < 1e-9);
/// assert_eq!(draws.log_probabilities[[0, 0]], q[draws.classes[[0, 0]]]);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, appendix I; A. S. Rawat et al., *Sampled Softmax with Random Fourier Features*, 2019; G.
/// Blanc and S. Rendle, *Adaptive Sampled Softmax with Kernel Based Sampling*, 2018.
#[derive(Clone, Debug)]
pub struct SoftmaxSampler<T: Real> {
    pub(super) proposal: Proposal<T>,
    pub(super) tree: Tree<T>,
}

impl<T: Real> SoftmaxSampler<T> {
    /// A sampler over classes with these vectors, C × d, for a map without negative features, with the default options. For q near
    /// the softmax of h·cᵢ a map of the softmax kernel.
    ///
    /// # Errors
    /// As [`Proposal::build`].
    pub fn new(map: Map<T>, classes: &ArrayRef2<T>) -> Result<Self> {
        Proposal::new(map).build(classes)
    }

    /// C, the number of classes.
    pub fn classes(&self) -> usize {
        self.tree.classes()
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
        self.tree.bytes()
    }

    /// k classes for each row of `h`, n × d. Row i draws with the generator [`rng_of_step`]`(seed, i)`, so that draws are the
    /// same for any number of threads; rows are drawn in parallel.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `h` does not have d columns, [`NotFinite`](Error::NotFinite) if a row or its features are not
    /// finite, [`Memory`](Error::Memory) if there is no memory for so many draws.
    pub fn sample(&self, h: &ArrayRef2<T>, k: usize, seed: u64) -> Result<Draws> {
        self.check(h)?;
        let mut draws = Draws::with_room(h.nrows(), k)?;
        let drawn = draws.rows_mut().enumerate().map_init(Walker::default, |walker, (i, row)| {
            let mut rng = rng_of_step(seed, i as u64);
            self.draw(walker, i, h.row(i).insert_axis(Axis(0)), row, &mut || rng.random())
        });
        drawn.collect::<Vec<_>>().into_iter().collect::<Result<()>>()?;
        Ok(draws)
    }

    /// k classes for one point, drawn with a generator of yours: 1 × k.
    ///
    /// # Errors
    /// As [`sample`](SoftmaxSampler::sample).
    pub fn sample_of<R: Rng + ?Sized>(&self, h: &ArrayRef1<T>, k: usize, rng: &mut R) -> Result<Draws> {
        let h = h.view().insert_axis(Axis(0));
        self.check(&h)?;
        let mut draws = Draws::with_room(1, k)?;
        self.draw(&mut Walker::default(), 0, h, draws.only_row_mut(), &mut || rng.random())?;
        Ok(draws)
    }

    /// The partition function Z = Σᵢ exp(h·cᵢ) of a point over class vectors, C × d, from k draws: in O(k d) beside the draws.
    ///
    /// ```
    /// use ndarray::Array2;
    /// use random_features::apply::softmax_sampling::SoftmaxSampler;
    /// use random_features::frequency::{Coupling, Orthogonal};
    /// use random_features::Positive;
    /// let classes = Array2::from_shape_fn((1000, 4), |(i, k)| ((i * (k + 3)) as f64).sin());
    /// let sampler = SoftmaxSampler::new(Positive.softmax(Orthogonal.draw(4, 64, 1)?)?, &classes)?;
    /// let h = ndarray::arr1(&[0.4, -0.6, 0.2, 0.1]);
    /// let z = sampler.partition(&h, &classes, 200, &mut random_features::rng(2))?;
    /// let exact = classes.dot(&h).mapv(f64::exp).sum();
    /// assert!((z.log_value() - exact.ln()).abs() < 4.0 * z.relative_error());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`sample`](SoftmaxSampler::sample), [`Shape`](Error::Shape) if the vectors are not as many as the classes or do not have
    /// d columns, and as [`Partition::new`]: [`NoData`](Error::NoData) for k = 0.
    pub fn partition<R: Rng + ?Sized>(
        &self,
        h: &ArrayRef1<T>,
        vectors: &ArrayRef2<T>,
        k: usize,
        rng: &mut R,
    ) -> Result<Partition> {
        check_size("the number of class vectors", self.classes(), vectors.nrows())?;
        check_size("the number of columns of the class vectors", self.map().input_dim(), vectors.ncols())?;
        let draws = self.sample_of(h, k, rng)?;
        let logits: Vec<f64> = draws.classes.iter().map(|class| dot(h.view(), vectors.row(*class))).collect();
        Partition::new(&logits, slice_of(&draws.log_probabilities))
    }

    /// ln q of some classes for a point, as [`sample`](SoftmaxSampler::sample) states it. For all of them the cost is that of
    /// the features of all classes.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `h` does not have d entries, [`NotFinite`](Error::NotFinite) if it or its features are not
    /// finite, [`Parameter`](Error::Parameter) if there is no such class.
    pub fn log_probabilities(&self, h: &ArrayRef1<T>, classes: &[usize]) -> Result<Vec<f64>> {
        let h = h.view().insert_axis(Axis(0));
        self.check(&h)?;
        self.check_classes(classes)?;
        let (mut walker, mut logs) = (Walker::default(), Vec::with_capacity(classes.len()));
        self.set_query(&mut walker, 0, h)?;
        for classes in classes.chunks(WALKS) {
            walker.walks.extend(classes.iter().enumerate().map(|(i, class)| Walk::new(i, Some(*class))));
            self.walk(&mut walker, &mut || 0.0, |walk| logs.push(self.mixed(walk.log_probability())));
        }
        Ok(logs)
    }

    /// Gives some classes other vectors, in rows; of a class that stands twice the last one counts. Costs O(L m d + D log
    /// C) for each. The tree is then the one that [`build`](Proposal::build) would make, but for the references of features: those
    /// are of the classes that were there first. Build anew when most classes have moved far.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d columns and a row for each class, [`NotFinite`](Error::NotFinite) if a row
    /// or its features are not finite, [`Parameter`](Error::Parameter) if there is no such class. Nothing has changed then.
    pub fn replace(&mut self, classes: &[usize], x: &ArrayRef2<T>) -> Result<()> {
        self.check(x)?;
        check_size("the number of rows of x", classes.len(), x.nrows())?;
        self.check_classes(classes)?;
        let points = self.proposal.points(x.view());
        self.tree.replace(self.proposal.map.program(), classes, points.view())
    }

    fn check(&self, x: &ArrayRef2<T>) -> Result<()> {
        check_size("the number of columns of x", self.map().input_dim(), x.ncols())?;
        check_finite("x", x)
    }

    fn check_classes(&self, classes: &[usize]) -> Result<()> {
        match classes.iter().find(|class| **class >= self.classes()) {
            None => Ok(()),
            Some(class) => Err(Error::Parameter {
                name: "a class",
                value: *class as f64,
                domain: "below the number of classes",
            }),
        }
    }

    /// Gives a walker the features of `h`, which is row i of the points.
    fn set_query(&self, walker: &mut Walker<T>, i: usize, h: ArrayView2<'_, T>) -> Result<()> {
        let (program, h) = (self.map().program(), self.proposal.points(h));
        if walker.query.fill(program, &self.tree.reference, h.view(), &mut walker.scratch) {
            return Ok(());
        }
        Err(Error::NotFinite { what: "the features of x", row: i })
    }

    /// Takes the walker's walks to their classes, and calls `each` with them, in order.
    fn walk(&self, walker: &mut Walker<T>, uniform: &mut dyn FnMut() -> f64, each: impl FnMut(&Walk)) {
        walker.run(self.map().program(), &self.tree, uniform);
        walker.walks.iter().for_each(each);
        walker.walks.clear();
    }

    fn draw(
        &self,
        walker: &mut Walker<T>,
        i: usize,
        h: ArrayView2<'_, T>,
        DrawsMut { classes, log_probabilities, clipped }: DrawsMut<'_>,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<()> {
        self.set_query(walker, i, h)?;
        for (classes, logs) in classes.chunks_mut(WALKS).zip(log_probabilities.chunks_mut(WALKS)) {
            walker.walks.extend((0..classes.len()).map(|i| Walk::new(i, self.uniform_class(uniform))));
            let mut out = classes.iter_mut().zip(logs);
            self.walk(walker, uniform, |walk| {
                let Some((class, log)) = out.next() else { return };
                (*class, *log) = (walk.place, self.mixed(walk.log_probability()));
                *clipped += 1.0 - walk.kept;
            });
        }
        *clipped /= classes.len().max(1) as f64;
        Ok(())
    }

    /// The class of a draw from the uniform distribution, if the draw is one of these.
    fn uniform_class(&self, uniform: &mut dyn FnMut() -> f64) -> Option<usize> {
        let (classes, weight) = (self.classes(), self.uniform_weight());
        let has_turn = weight > 0.0 && uniform() < weight;
        has_turn.then(|| ((uniform() * classes as f64) as usize).min(classes - 1))
    }

    /// ln q from ln w.
    fn mixed(&self, ln: f64) -> f64 {
        let weight = self.uniform_weight();
        if weight == 0.0 {
            return ln;
        }
        // Rounding may give more than 1.
        ((1.0 - weight) * ln.exp() + weight / self.classes() as f64).min(1.0).ln()
    }
}
