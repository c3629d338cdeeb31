//! Changes of a [`SoftmaxSampler`]: classes get other vectors, are added or removed.

use std::ops::Range;

use ndarray::ArrayRef2;

use super::SoftmaxSampler;
use super::classes::check_below;
use super::sampler::Engine;
use super::tree::Table;
use crate::Real;
use crate::error::{Error, Result, check_finite, check_size};
use crate::once::once;

impl<T: Real> SoftmaxSampler<T> {
    /// Gives some classes other vectors, in rows; the last row counts for a class that occurs twice.
    ///
    /// The cost is O(L m d + D log C) for each. The tree is then the one that [`build`](super::Proposal::build) would
    /// make, except that each feature is still divided by its size among the first classes
    /// ([accuracy](SoftmaxSampler#accuracy)). Build anew when most classes have moved far.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `vectors` does not have d columns and a row for each class, [`NotFinite`](Error::NotFinite) if a
    /// row or its features are not finite, [`Entry`](Error::Entry) if there is no such class or it was removed. Nothing has changed
    /// then.
    #[inline(never)]
    pub fn replace(&mut self, classes: &[usize], vectors: &ArrayRef2<T>) -> Result<()> {
        self.check_columns_of(vectors)?;
        check_size("the number of rows of the vectors", classes.len(), vectors.nrows())?;
        check_finite("the vectors", vectors)?;
        self.check_present("the classes", classes)?;
        match &mut self.engine {
            Engine::Tree(tree) => {
                let points = self.proposal.points(vectors.view());
                tree.replace(self.proposal.map.program(), classes, points.view())?;
            }
            Engine::Exact(exact) => exact.replace(classes, vectors.view()),
        }
        Ok(())
    }

    /// Adds classes with these vectors, in rows, and returns their numbers, which follow the others.
    ///
    /// ```
    /// use random_features::ndarray::Array2;
    /// use random_features::rand::RngExt;
    /// use random_features::Positive;
    /// use random_features::apply::softmax_sampling::SoftmaxSampler;
    /// use random_features::frequency::Orthogonal;
    /// let mut rng = random_features::rng(1);
    /// let shape = (5000, 4);
    /// let vectors = Array2::from_shape_simple_fn(shape, || rng.random::<f64>());
    /// let map = Positive.softmax(Orthogonal.draw(4, 64, 1)?)?;
    /// let mut sampler = SoftmaxSampler::new(map, &vectors)?;
    /// assert_eq!(sampler.add(&Array2::ones((3, 4)))?, 5000..5003);
    /// sampler.remove(&[17, 5001])?;
    /// assert_eq!((sampler.classes(), sampler.present_classes()), (5003, 5001));
    /// let q = sampler.log_probabilities(&vectors.row(3), &[17])?;
    /// assert_eq!(q, [f64::NEG_INFINITY]);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// The cost is O(m d + D log C) for each, in parallel. Now and then all sums are copied and their memory at least doubles: O(D) for
    /// each class in the mean. If draws were exact and there are now [too many classes](super::Proposal::with_exact_below) for that, the
    /// tree is built, O(C m d).
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `vectors` does not have d columns, [`NotFinite`](Error::NotFinite) if a row or its features are
    /// not finite, [`Memory`](Error::Memory) if the classes do not fit in memory. Nothing has changed then.
    #[inline(never)]
    pub fn add(&mut self, vectors: &ArrayRef2<T>) -> Result<Range<usize>> {
        self.check_columns_of(vectors)?;
        let first = self.classes();
        let classes = first.saturating_add(vectors.nrows());
        // Tables that grow may double, and new sums are made aside.
        self.proposal.check_memory(classes.saturating_mul(2).saturating_add(vectors.nrows()))?;
        check_finite("the vectors", vectors)?;
        match &mut self.engine {
            Engine::Tree(tree) => {
                let points = self.proposal.points(vectors.view());
                tree.add(self.proposal.map.program(), points.view())?;
            }
            Engine::Exact(exact) if self.proposal.is_exact(classes) => exact.add(vectors.view()),
            Engine::Exact(exact) => {
                let (mut numbers, mut all) = (exact.classes.clone(), Table::from(exact.vectors()));
                numbers.add(vectors.nrows());
                all.grow(classes);
                all.tail_mut(first).assign(vectors);
                self.engine = self.proposal.engine(numbers, all.view(), None)?;
            }
        }
        Ok(first..classes)
    }

    /// Removes classes: they are never drawn again, q = 0, and the share ε of the uniform distribution falls to those that stay.
    ///
    /// Numbers of classes do not change, and the number of a removed class is not given to another one; build anew to free its memory. A
    /// class that occurs twice is removed once. The cost is O(L m d + D log C) for each, and O(1) for each that was removed before.
    ///
    /// # Errors
    /// [`Entry`](Error::Entry) if there is no such class or it was removed before, [`Parameter`](Error::Parameter) if no class
    /// would stay. Nothing has changed then.
    #[inline(never)]
    pub fn remove(&mut self, classes: &[usize]) -> Result<()> {
        self.check_present("the classes", classes)?;
        let mut increasing = classes.to_vec();
        increasing.sort_unstable();
        increasing.dedup();
        if increasing.len() == self.present_classes() {
            let (name, domain) = ("the number of classes that stay", "at least 1");
            return Err(Error::Parameter { name, value: 0.0, domain });
        }
        match &mut self.engine {
            Engine::Tree(tree) => tree.remove(self.proposal.map.program(), &increasing)?,
            Engine::Exact(exact) => exact.remove(&increasing),
        }
        Ok(())
    }

    fn check_columns_of(&self, vectors: &ArrayRef2<T>) -> Result<()> {
        check_size("the number of columns of the vectors", self.map().dim(), vectors.ncols())
    }

    /// Refuses numbers of classes that are not present.
    pub(super) fn check_present(&self, what: &'static str, classes: &[usize]) -> Result<()> {
        check_below(what, classes, self.classes())?;
        match classes.iter().position(|class| !self.is_present(*class)) {
            None => Ok(()),
            Some(row) => {
                let (value, domain) = (classes[row] as f64, "a class that was not removed");
                Err(Error::Entry { what, row, value, domain })
            }
        }
    }
}

once!(SoftmaxSampler::<T>::replace, SoftmaxSampler::<T>::add, SoftmaxSampler::<T>::remove);
