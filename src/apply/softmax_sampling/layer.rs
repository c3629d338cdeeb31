//! [`SampledSoftmax`]: class vectors with the sampler that draws from them.

use std::ops::Range;

use ndarray::{ArrayRef1, ArrayRef2, ArrayView1, ArrayView2, ArrayViewMut1, Axis};

use super::tree::{Table, standard};
use super::{Draws, Partition, Proposal, SampledLoss, SoftmaxSampler};
use crate::Real;
use crate::error::{Result, check_size, checked_not_negative};
use crate::memory::check_memory;
use crate::once::once;

/// The output layer of a classifier of many classes: class vectors and the sampler over them. Both change together, so that draws are
/// never from outdated vectors.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::rand::RngExt;
/// use random_features::Positive;
/// use random_features::apply::softmax_sampling::{Proposal, SampledSoftmax};
/// use random_features::frequency::Orthogonal;
/// let mut rng = random_features::rng(1);
/// let shape = (5000, 3);
/// let vectors = Array2::from_shape_simple_fn(shape, || rng.random::<f64>());
/// let h = Array2::from_shape_simple_fn((2, 3), || rng.random::<f64>());
/// let map = Positive.softmax(Orthogonal.draw(3, 64, 1)?)?;
/// let mut layer = SampledSoftmax::new(Proposal::new(map), &vectors)?;
/// let first = layer.loss(&h, &[0, 1], 40, 0)?;
/// for seed in 1..50 {
///     let loss = layer.loss(&h, &[0, 1], 40, seed)?;
///     // The gradient for h goes on to what computes it:
///     // loss.point_gradients().
///     layer.step(&loss, 0.5)?;
/// }
/// assert!(layer.loss(&h, &[0, 1], 40, 50)?.mean() < first.mean() - 1.0);
/// // Momentum, with a velocity for each class.
/// let mut velocities = Array2::<f64>::zeros((5000, 3));
/// let loss = layer.loss(&h, &[0, 1], 40, 51)?;
/// layer.update(&loss, |class, gradient, mut vector| {
///     let mut velocity = velocities.row_mut(class);
///     velocity *= 0.9;
///     velocity -= &gradient;
///     vector.scaled_add(0.1, &velocity);
/// })?;
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Logits of a point h are h·cᵢ for the [`vectors`](SampledSoftmax::vectors) cᵢ. A step of training is a
/// [`loss`](SampledSoftmax::loss) from draws and an update of the classes that it names: plain gradient descent by
/// [`step`](SampledSoftmax::step), any other optimiser by [`update`](SampledSoftmax::update) or
/// [`replace`](SampledSoftmax::replace). An update that fails changes neither vectors nor sampler.
///
/// # Cost
/// The cost of the [sampler](SoftmaxSampler#cost), and memory for the C·d numbers of the vectors. A step for n points with k draws each
/// costs O(n k (D log C + d)), and as much again for the classes that change.
///
/// # References
/// The references of [`SampledLoss`].
#[doc(alias = "sampled softmax")]
#[derive(Clone, Debug)]
pub struct SampledSoftmax<T: Real> {
    pub(super) sampler: SoftmaxSampler<T>,
    /// The class vectors, C × d; zeros for removed classes.
    pub(super) vectors: Table<T>,
}

impl<T: Real> SampledSoftmax<T> {
    /// A layer of classes with these vectors, C × d.
    ///
    /// # Errors
    /// The errors of [`Proposal::build`].
    #[inline(never)]
    pub fn new(proposal: Proposal<T>, vectors: &ArrayRef2<T>) -> Result<Self> {
        Self::check_memory(vectors.nrows(), vectors.ncols())?;
        Ok(SampledSoftmax { sampler: proposal.build(vectors)?, vectors: standard(vectors.view()).into() })
    }

    /// Rejects so many class vectors if there is no memory for them.
    fn check_memory(classes: usize, d: usize) -> Result<()> {
        check_memory("class vectors", classes, d.saturating_mul(size_of::<T>()))
    }

    /// The class vectors, C × d; zeros for classes that were removed.
    pub fn vectors(&self) -> ArrayView2<'_, T> {
        self.vectors.view()
    }

    /// The sampler over the class vectors.
    pub fn sampler(&self) -> &SoftmaxSampler<T> {
        &self.sampler
    }

    /// Draws k classes for each row of `h`, n × d, by [`SoftmaxSampler::sample`]. [`Draws`] holds the classes, n × k,
    /// and ln q of each.
    ///
    /// # Errors
    /// The errors of [`SoftmaxSampler::sample`].
    #[inline(never)]
    pub fn sample(&self, h: &ArrayRef2<T>, k: usize, seed: u64) -> Result<Draws> {
        self.sampler.sample(h, k, seed)
    }

    /// The sampled softmax loss of points `h`, n × d, with the classes `targets`, from k draws for each. It is
    /// [`SampledLoss::new`] of the draws by [`sample`](SampledSoftmax::sample) with this seed.
    ///
    /// # Errors
    /// The errors of [`SoftmaxSampler::sample`] and [`SampledLoss::new`]; [`Entry`](crate::Error::Entry) if a target was removed.
    #[inline(never)]
    pub fn loss(&self, h: &ArrayRef2<T>, targets: &[usize], k: usize, seed: u64) -> Result<SampledLoss<T>> {
        check_size("the number of targets", h.nrows(), targets.len())?;
        self.sampler.check_present("the targets", targets)?;
        SampledLoss::new(h, &self.vectors(), targets, &self.sampler.sample(h, k, seed)?)
    }

    /// Takes a step of gradient descent for the classes that have a gradient: cᵢ ← cᵢ − rate · gᵢ.
    ///
    /// # Errors
    /// The errors of [`replace`](SampledSoftmax::replace); [`Parameter`](crate::Error::Parameter) if the rate is negative or not
    /// finite.
    #[inline(never)]
    pub fn step(&mut self, loss: &SampledLoss<T>, rate: f64) -> Result<()> {
        let rate = T::narrow(checked_not_negative("the rate of a step", rate)?);
        self.update(loss, |_, gradient, mut vector| vector.scaled_add(-rate, &gradient))
    }

    /// Lets an optimiser move the vectors of the classes that have a gradient: `step(class, gradient, vector)` is called for each,
    /// in increasing order, and writes the new vector.
    ///
    /// # Errors
    /// The errors of [`replace`](SampledSoftmax::replace).
    pub fn update(
        &mut self,
        loss: &SampledLoss<T>,
        mut step: impl FnMut(usize, ArrayView1<'_, T>, ArrayViewMut1<'_, T>),
    ) -> Result<()> {
        self.sampler.check_present("the classes of the loss", loss.classes())?;
        let mut moved = self.vectors().select(Axis(0), loss.classes());
        check_size("the number of columns of the gradients", moved.ncols(), loss.class_gradients().ncols())?;
        let rows = loss.classes().iter().zip(loss.class_gradients().rows()).zip(moved.rows_mut());
        rows.for_each(|((class, gradient), vector)| step(*class, gradient, vector));
        self.replace(loss.classes(), &moved)
    }

    /// Gives some classes other vectors, in rows; the last row counts for a class that occurs twice.
    ///
    /// # Errors
    /// The errors of [`SoftmaxSampler::replace`]. Nothing has changed then.
    #[inline(never)]
    pub fn replace(&mut self, classes: &[usize], vectors: &ArrayRef2<T>) -> Result<()> {
        self.sampler.replace(classes, vectors)?;
        let rows = classes.iter().zip(vectors.rows());
        rows.for_each(|(class, vector)| self.vectors.write_row(*class, vector));
        Ok(())
    }

    /// Adds classes with these vectors, in rows, and returns their numbers, which follow the others.
    ///
    /// # Errors
    /// The errors of [`SoftmaxSampler::add`]. Nothing has changed then.
    #[inline(never)]
    pub fn add(&mut self, vectors: &ArrayRef2<T>) -> Result<Range<usize>> {
        // A table that grows may double.
        let classes = self.vectors.len().saturating_add(vectors.nrows());
        Self::check_memory(classes.saturating_mul(2), vectors.ncols())?;
        let added = self.sampler.add(vectors)?;
        self.vectors.grow(added.end);
        self.vectors.tail_mut(added.start).assign(vectors);
        Ok(added)
    }

    /// Removes classes: they are never drawn again, and their numbers are not given to others.
    ///
    /// # Errors
    /// The errors of [`SoftmaxSampler::remove`]. Nothing has changed then.
    #[inline(never)]
    pub fn remove(&mut self, classes: &[usize]) -> Result<()> {
        self.sampler.remove(classes)?;
        classes.iter().for_each(|class| self.vectors.row_mut(*class).fill(T::zero()));
        Ok(())
    }

    /// Builds the sampler anew from the vectors; classes keep their numbers. This is useful after most vectors have
    /// moved far from those at which the [references](SoftmaxSampler#accuracy) of features were taken. Cost O(C m d).
    ///
    /// # Errors
    /// The errors of [`Proposal::build`]. Nothing has changed then.
    #[inline(never)]
    pub fn rebuild(&mut self) -> Result<()> {
        let classes = self.sampler.engine.classes().clone();
        self.sampler.engine = self.sampler.proposal.engine(classes, self.vectors.view(), None)?;
        Ok(())
    }

    /// The partition function Z = Σᵢ exp(h·cᵢ) of a point, over the classes that are present, from k draws.
    ///
    /// # Errors
    /// The errors of [`SoftmaxSampler::partition`].
    #[inline(never)]
    pub fn partition(&self, h: &ArrayRef1<T>, k: usize, seed: u64) -> Result<Partition> {
        self.sampler.partition(h, &self.vectors(), k, seed)
    }
}

once!(
    SampledSoftmax::<T>::new,
    SampledSoftmax::<T>::sample,
    SampledSoftmax::<T>::loss,
    SampledSoftmax::<T>::step,
    SampledSoftmax::<T>::replace,
    SampledSoftmax::<T>::add,
    SampledSoftmax::<T>::remove,
    SampledSoftmax::<T>::rebuild,
    SampledSoftmax::<T>::partition,
);
