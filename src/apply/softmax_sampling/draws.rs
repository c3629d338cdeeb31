//! [`Draws`]: classes that were drawn, with their probabilities.

use ndarray::{Array2, Axis};

use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;
use crate::numeric::{into_slice_of, slice_of_mut};

/// The classes that a [`SoftmaxSampler`](super::SoftmaxSampler) has drawn for some points h, with the probabilities that they had.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Draws {
    /// The classes, k for each row of h, n × k: independent of each other and with replacement.
    pub classes: Array2<usize>,
    /// The logarithm of the probability q of each draw, n × k.
    pub log_probabilities: Array2<f64>,
    /// For each row, the share of negative estimates that were set to 0 on the way to the draws, from 0 to 1.
    ///
    /// It is the mean over the draws of 1 − Π (1 − N/(N + P)) over the nodes with several children on the way. P is the sum of the positive
    /// estimates among which a node decides, N the sum of the magnitudes of negative ones. It is 0 for maps without negative features and
    /// for k = 0. A draw through a node with negative but no positive estimates counts as 1.
    pub clipped: Vec<f64>,
    /// For each row, the effective number of features behind the sum of all estimates. It is `None` unless [asked
    /// for](super::Proposal::with_diagnostics), and if draws are from the exact softmax, which takes no features.
    ///
    /// It is (Σ_f φ_f S_f)² / Σ_f (φ_f S_f)² with the sums S of the features of all classes: D if all terms are equal, 1 if one outweighs the
    /// others, less than 1 where terms of opposite signs cancel. If it is small, the estimates, and so the draws, depend on a few
    /// frequencies.
    pub effective_features: Option<Vec<f64>>,
}

impl Draws {
    /// Draws of another sampler: classes and ln of their probabilities q, n × k each. [`clipped`](Draws::clipped) is 0
    /// for all rows.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the sizes differ, [`Memory`](Error::Memory) if n numbers do not fit in memory.
    pub fn new(classes: Array2<usize>, log_probabilities: Array2<f64>) -> Result<Self> {
        let ((n, k), (rows, columns)) = (classes.dim(), log_probabilities.dim());
        check_size("the number of rows of the probabilities", n, rows)?;
        check_size("the number of columns of the probabilities", k, columns)?;
        check_memory("rows of draws", n, size_of::<f64>())?;
        Ok(Draws { classes, log_probabilities, clipped: vec![0.0; n], effective_features: None })
    }

    /// The share of rows with fewer [effective features](Draws::effective_features) than `threshold`. `None` if they were not computed, NaN
    /// without rows.
    ///
    /// ```
    /// use random_features::ndarray::Array2;
    /// use random_features::rand::RngExt;
    /// use random_features::Positive;
    /// use random_features::apply::softmax_sampling::Proposal;
    /// use random_features::frequency::Orthogonal;
    /// let mut rng = random_features::rng(1);
    /// let classes = Array2::from_shape_simple_fn((300, 8), || rng.random::<f64>());
    /// let proposal = Proposal::new(Positive.softmax(Orthogonal.draw(8, 128, 1)?)?);
    /// let proposal = proposal.with_exact_below(0).with_diagnostics();
    /// let sampler = proposal.build(&classes)?;
    /// // All of the 128 features stand behind small points, a few behind
    /// // large ones.
    /// let small = sampler.sample(&(&classes * 0.1), 1, 7)?;
    /// assert_eq!(small.share_with_features_below(10.0), Some(0.0));
    /// let large = sampler.sample(&(&classes * 9.0), 1, 7)?;
    /// assert!(large.share_with_features_below(10.0).unwrap() > 0.9);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn share_with_features_below(&self, threshold: f64) -> Option<f64> {
        let effective = self.effective_features.as_ref()?;
        let below = effective.iter().filter(|features| **features < threshold).count();
        Some(below as f64 / effective.len() as f64)
    }

    /// Room for k draws for each of n rows.
    ///
    /// # Errors
    /// [`Memory`](Error::Memory) if the draws do not fit in memory.
    pub(super) fn with_room(n: usize, k: usize, diagnosed: bool) -> Result<Self> {
        check_memory("rows of draws", n, 2 * size_of::<f64>())?;
        Ok(Draws {
            classes: filled(n, k, 0)?,
            log_probabilities: filled(n, k, 0.0)?,
            clipped: vec![0.0; n],
            effective_features: diagnosed.then(|| vec![0.0; n]),
        })
    }

    /// The row of draws for a single point.
    pub(super) fn only_row_mut(&mut self) -> DrawsMut<'_> {
        DrawsMut {
            classes: slice_of_mut(&mut self.classes),
            log_probabilities: slice_of_mut(&mut self.log_probabilities),
            clipped: &mut self.clipped[0],
            effective_features: self.effective_features.as_mut().and_then(|all| all.first_mut()),
        }
    }

    /// The rows, to be written.
    pub(super) fn rows_mut(&mut self) -> impl ExactSizeIterator<Item = DrawsMut<'_>> {
        let mut effective = self.effective_features.iter_mut().flatten();
        let classes = self.classes.axis_iter_mut(Axis(0));
        let rows = classes.zip(self.log_probabilities.axis_iter_mut(Axis(0))).zip(&mut self.clipped);
        rows.map(move |((classes, log_probabilities), clipped)| DrawsMut {
            classes: into_slice_of(classes),
            log_probabilities: into_slice_of(log_probabilities),
            clipped,
            effective_features: effective.next(),
        })
    }
}

/// The draws of a row, to be written.
pub(super) struct DrawsMut<'a> {
    pub classes: &'a mut [usize],
    pub log_probabilities: &'a mut [f64],
    pub clipped: &'a mut f64,
    /// The number of effective features, if it is asked for.
    pub effective_features: Option<&'a mut f64>,
}

/// An array with this value in every place.
fn filled<A: Clone>(rows: usize, columns: usize, value: A) -> Result<Array2<A>> {
    // A product that overflows is more than can be reserved.
    let count = rows.saturating_mul(columns);
    let none = Error::Memory { what: "draws", count };
    let mut elements = Vec::new();
    elements.try_reserve_exact(count).map_err(|_| none.clone())?;
    elements.resize(count, value);
    Array2::from_shape_vec((rows, columns), elements).map_err(|_| none)
}
