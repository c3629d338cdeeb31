//! [`TreeMixture`]: draws from a tree, mixed with the uniform distribution.

use ndarray::{ArrayView2, Axis};
use rand::RngExt;

use super::features::effective_features;
use super::{Tree, Walk, Walker};
use crate::apply::softmax_sampling::draws::DrawsMut;
use crate::apply::softmax_sampling::{Draws, Proposal};
use crate::error::{Error, Result};
use crate::threads::Pool;
use crate::{Real, progress, rng_of_step};

/// The number of walks that are taken together.
const WALKS: usize = 1 << 16;

/// The distribution q = (1 − ε) w + ε/C with w from the tree.
#[derive(Clone, Copy, Debug)]
pub struct TreeMixture<'a, T: Real> {
    pub proposal: &'a Proposal<T>,
    pub tree: &'a Tree<T>,
}

impl<T: Real> TreeMixture<'_, T> {
    /// Draws for all rows of `h`, row i with the generator of step i.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) if features are not finite.
    pub fn sample(&self, h: ArrayView2<'_, T>, seed: u64, draws: &mut Draws) -> Result<()> {
        let drawn = Pool::default().map(draws.rows_mut().enumerate(), |walker, (i, row)| {
            let mut rng = rng_of_step(seed, i as u64);
            self.draw(walker, i, h.row(i).insert_axis(Axis(0)), row, &mut || rng.random())
        });
        drawn.into_iter().collect()
    }

    /// Draws for a point, which is row i of the points.
    ///
    /// # Errors
    /// The errors of [`sample`](TreeMixture::sample).
    pub fn draw(
        &self,
        walker: &mut Walker<T>,
        i: usize,
        h: ArrayView2<'_, T>,
        out: DrawsMut<'_>,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<()> {
        self.set_query(walker, i, h)?;
        let DrawsMut { classes, log_probabilities, clipped, effective_features } = out;
        for (classes, logs) in classes.chunks_mut(WALKS).zip(log_probabilities.chunks_mut(WALKS)) {
            progress::check()?;
            walker.walks.extend((0..classes.len()).map(|i| Walk::new(i, self.uniform_class(uniform))));
            let mut out = classes.iter_mut().zip(logs);
            self.walk(walker, uniform, |walk| {
                let Some((class, log)) = out.next() else { return };
                (*class, *log) = (walk.place, self.mixed(walk.log_probability()));
                *clipped += 1.0 - walk.kept;
            });
        }
        *clipped /= classes.len().max(1) as f64;
        if let Some(effective) = effective_features {
            *effective = self.effective_features(walker);
        }
        Ok(())
    }

    /// ln q of classes that are present, for a point.
    ///
    /// # Errors
    /// The errors of [`sample`](TreeMixture::sample).
    pub fn log_probabilities(&self, h: ArrayView2<'_, T>, classes: &[usize]) -> Result<Vec<f64>> {
        let (mut walker, mut logs) = (Walker::default(), Vec::with_capacity(classes.len()));
        self.set_query(&mut walker, 0, h)?;
        for classes in classes.chunks(WALKS) {
            progress::check()?;
            walker.walks.extend(classes.iter().enumerate().map(|(i, class)| Walk::new(i, Some(*class))));
            self.walk(&mut walker, &mut || 0.0, |walk| logs.push(self.mixed(walk.log_probability())));
        }
        Ok(logs)
    }

    /// Gives a walker the features of `h`, which is row i of the points.
    fn set_query(&self, walker: &mut Walker<T>, i: usize, h: ArrayView2<'_, T>) -> Result<()> {
        let (program, h) = (self.proposal.map.program(), self.proposal.points(h));
        if walker.query.fill(program, &self.tree.reference, h.view(), &mut walker.scratch) {
            return Ok(());
        }
        Err(Error::NotFinite { what: "the features of h", row: i, column: None })
    }

    /// Takes the walker's walks to their classes, and calls `each` with them, in order.
    fn walk(&self, walker: &mut Walker<T>, uniform: &mut dyn FnMut() -> f64, each: impl FnMut(&Walk)) {
        walker.run(self.proposal.map.program(), self.tree, uniform);
        walker.walks.iter().for_each(each);
        walker.walks.clear();
    }

    /// (Σ_f φ_f S_f)² / Σ_f (φ_f S_f)² for the walker's h, with the sums S of all classes.
    fn effective_features(&self, walker: &Walker<T>) -> f64 {
        let top = self.tree.top();
        effective_features(&walker.query, self.proposal.map.program().blocks(), top.rows(0..top.len()))
    }

    /// The class of a draw from the uniform distribution, if the draw is one of these.
    fn uniform_class(&self, uniform: &mut dyn FnMut() -> f64) -> Option<usize> {
        let (present, weight) = (self.tree.classes.present(), self.proposal.uniform);
        let has_turn = weight > 0.0 && uniform() < weight;
        has_turn.then(|| {
            let rank = ((uniform() * present as f64) as usize).min(present - 1);
            self.tree.classes.nth_present(rank)
        })
    }

    /// ln q from ln w.
    fn mixed(&self, ln: f64) -> f64 {
        let weight = self.proposal.uniform;
        if weight == 0.0 {
            return ln;
        }
        // Rounding may give more than 1.
        ((1.0 - weight) * ln.exp() + weight / self.tree.classes.present() as f64).min(1.0).ln()
    }
}
