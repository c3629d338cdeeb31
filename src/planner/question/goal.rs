//! [`Goal`] and [`Loss`]: what is sought.

use crate::planner::costs::Measure;

/// What is given and what is sought.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// The least error for at most so much.
    Budget { measure: Measure, most: f64 },
    /// The least cost for which the loss is at most `error`, with this probability if it is one.
    MaxError { error: f64, probability: Option<f64>, measure: Measure },
}

impl Goal {
    /// The measure in which costs are limited or kept low.
    pub fn measure(&self) -> Measure {
        match self {
            Goal::Budget { measure, .. } | Goal::MaxError { measure, .. } => *measure,
        }
    }
}

/// The error that a plan minimises. All are relative, and all count bias² + variance.
///
/// ```
/// # use random_features::ndarray::Array2;
/// use random_features::planner::{Loss, Planner};
/// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
/// // Nine tenths of the estimates shall be good, and the few worst may be bad.
/// let plan = Planner::of_one_set(&x)?.with_loss(Loss::RelativeNinety).plan()?;
/// println!("{}", plan.best()?.loss());
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Loss {
    /// √(Σ E(K̂ − K)²/Σ K²) over pairs: the error of the Gram matrix in the Frobenius norm. It depends mostly on the
    /// pairs with large kernel values.
    #[default]
    Gram,
    /// The mean over pairs of √E(K̂ − K)²/|K|.
    RelativeMean,
    /// The median over pairs of √E(K̂ − K)²/|K|.
    RelativeMedian,
    /// The value of √E(K̂ − K)²/|K| that a tenth of the pairs exceed.
    RelativeNinety,
    /// The value of √E(K̂ − K)²/|K| that a hundredth of the pairs exceed.
    RelativeNinetyNine,
    /// The error of normalised attention's weights, to first order: the
    /// [`weight_error`](crate::apply::attention::ErrorReport::weight_error) of an error report. Where normalisers vary
    /// much, it is the report's rough number and marked as uncertain; without a rough number it is infinite.
    AttentionWeights,
    /// The error of normalised attention's output, to first order, with a rough number where normalisers vary much. It needs
    /// [values](crate::planner::Planner::with_values).
    AttentionOutput,
    /// The excess risk of ridge regression: its mean squared error at held-out points less the error of the exact kernel there, over
    /// the variance of the targets. It needs [targets](crate::planner::Planner::with_ridge_targets).
    ///
    /// It is measured by regressions on at most 750 of the points, a third of which are held out. Their λ minimises the
    /// error of the exact kernel over all of these points: the error at the held-out third, and the leave-one-out error
    /// at the others. If the exact kernel predicts no better than the mean of the targets, the excess is over the error
    /// of the mean, and the plan's [advice](crate::planner::Plan::advice) says so.
    Ridge,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Loss::Gram => "error of the Gram matrix",
            Loss::RelativeMean => "mean relative error",
            Loss::RelativeMedian => "median relative error",
            Loss::RelativeNinety => "90 % quantile of the relative error",
            Loss::RelativeNinetyNine => "99 % quantile of the relative error",
            Loss::AttentionWeights => "error of attention's weights",
            Loss::AttentionOutput => "error of attention's output",
            Loss::Ridge => "excess risk of ridge regression",
        })
    }
}

impl Loss {
    /// Whether it follows from errors at pairs of points alone.
    pub(crate) fn is_of_pairs(self) -> bool {
        !self.is_of_attention() && self != Loss::Ridge
    }

    pub(crate) fn is_of_attention(self) -> bool {
        matches!(self, Loss::AttentionWeights | Loss::AttentionOutput)
    }
}
