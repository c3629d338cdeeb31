//! [`SoftmaxSampler`]: draws of classes from a tree of feature sums.

use ndarray::parallel::prelude::*;
use ndarray::{Array2, ArrayRef1, ArrayRef2, ArrayView2, Axis};
use rand::{Rng, RngExt};

use super::tree::Tree;
use super::walk::{Walk, Walker};
use super::{Draws, Proposal};
use crate::Real;
use crate::apply::check_finite;
use crate::error::{Error, Result, check_size};
use crate::frequency::rng_of_step;
use crate::map::{Map, check_addressable};

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
/// same. Memory is C·D·(4/3)/L numbers for the sums and C·d for the points that propose, which L = 1 does without. With 10⁶
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

/// Draws for one row.
struct RowOfDraws {
    classes: Vec<usize>,
    log_probabilities: Vec<f64>,
    clipped: f64,
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
    pub fn uniform(&self) -> f64 {
        self.proposal.uniform
    }

    /// The bytes of the tree and of the points that propose.
    pub fn bytes(&self) -> usize {
        self.tree.bytes()
    }

    /// k classes for each row of `h`, n × d. Row i draws with the generator [`rng_of_step`]`(seed, i)`, so that draws are the
    /// same for any number of threads; rows are drawn in parallel.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `h` does not have d columns, or so many draws cannot be addressed;
    /// [`NotFinite`](Error::NotFinite) if a row or its features are not finite.
    pub fn sample(&self, h: &ArrayRef2<T>, k: usize, seed: u64) -> Result<Draws> {
        self.check(h)?;
        check_addressable(h.nrows(), k)?;
        let row = |walker: &mut Walker<T>, i: usize| {
            let mut rng = rng_of_step(seed, i as u64);
            self.draw(walker, h.row(i).insert_axis(Axis(0)), (i, k), &mut || rng.random())
        };
        let rows = (0..h.nrows()).into_par_iter().map_init(Walker::default, row);
        collect(rows.collect::<Vec<_>>(), k)
    }

    /// k classes for one point, drawn with a generator of yours: 1 × k.
    ///
    /// # Errors
    /// As [`sample`](SoftmaxSampler::sample).
    pub fn sample_of<R: Rng + ?Sized>(&self, h: &ArrayRef1<T>, k: usize, rng: &mut R) -> Result<Draws> {
        let h = h.view().insert_axis(Axis(0));
        self.check(&h)?;
        check_addressable(1, k)?;
        let drawn = self.draw(&mut Walker::default(), h, (0, k), &mut || rng.random());
        collect(vec![drawn], k)
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
        let mut walks: Vec<Walk> =
            classes.iter().enumerate().map(|(i, class)| Walk::new(i, Some(*class))).collect();
        self.walk(&mut Walker::default(), (0, h), &mut walks, &mut || 0.0)?;
        Ok(walks.iter().map(|walk| self.mixed(walk.ln)).collect())
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

    /// Takes walks to their classes, for row i of the points.
    fn walk(
        &self,
        walker: &mut Walker<T>,
        (i, h): (usize, ArrayView2<'_, T>),
        walks: &mut [Walk],
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<()> {
        let (program, h) = (self.map().program(), self.proposal.points(h));
        if !walker.query.fill(program, &self.tree.reference, h.view(), &mut walker.scratch) {
            return Err(Error::NotFinite { what: "the features of x", row: i });
        }
        walker.run(program, &self.tree, walks, uniform);
        Ok(())
    }

    fn draw(
        &self,
        walker: &mut Walker<T>,
        h: ArrayView2<'_, T>,
        (i, k): (usize, usize),
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<RowOfDraws> {
        let (classes, weight) = (self.classes(), self.uniform());
        let mut start = |number| {
            let is_uniform = weight > 0.0 && uniform() < weight;
            let target = is_uniform.then(|| ((uniform() * classes as f64) as usize).min(classes - 1));
            Walk::new(number, target)
        };
        let mut walks: Vec<Walk> = (0..k).map(&mut start).collect();
        self.walk(walker, (i, h), &mut walks, uniform)?;
        Ok(RowOfDraws {
            classes: walks.iter().map(|walk| walk.place).collect(),
            log_probabilities: walks.iter().map(|walk| self.mixed(walk.ln)).collect(),
            clipped: walks.iter().map(|walk| 1.0 - walk.kept).sum::<f64>() / k.max(1) as f64,
        })
    }

    /// ln q from ln w.
    fn mixed(&self, ln: f64) -> f64 {
        let weight = self.uniform();
        if weight == 0.0 { ln } else { ((1.0 - weight) * ln.exp() + weight / self.classes() as f64).ln() }
    }
}

/// One array of all rows.
fn collect(rows: Vec<Result<RowOfDraws>>, k: usize) -> Result<Draws> {
    let rows = rows.into_iter().collect::<Result<Vec<_>>>()?;
    let draw = |(i, j): (usize, usize)| rows[i].classes[j];
    Ok(Draws {
        classes: Array2::from_shape_fn((rows.len(), k), draw),
        log_probabilities: Array2::from_shape_fn((rows.len(), k), |(i, j)| rows[i].log_probabilities[j]),
        clipped: rows.iter().map(|row| row.clipped).collect(),
    })
}
