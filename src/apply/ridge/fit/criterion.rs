//! [`Criterion`]: the number by which λ and maps are chosen.

#[cfg(doc)]
use super::{KernelRidgeSpectrum, RidgeGrid, RidgeSearch, RidgeSpectrum};
use super::{RidgeStatistics, check_training};
use crate::error::{Error, Result};
use crate::targets::TargetRows;
use crate::{Points, Real, Targets};

/// The number by which λ, lengthscales and maps are chosen, where the least is best. It estimates the mean squared
/// error of predictions at new points, summed over the targets, in (units of the target)², or it is minus the log
/// evidence, in nats.
///
/// ```
/// use random_features::apply::{Criterion, RidgeSearch};
/// use random_features::ndarray::Array2;
/// let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0);
/// let y = x.column(0).mapv(f64::sin);
/// let search = RidgeSearch::gaussian(1, 32, 7)?;
/// let by_evidence =
///     search.with_criterion(Criterion::LogEvidence).fit(&x, &y)?;
/// let (lambda, evidence) = by_evidence
///     .spectrum()
///     .choose(&Criterion::leave_one_out(&x, &y), &[1e-6, 1e-3, 1.0])?;
/// assert!(lambda < 1.0 && evidence < 1e-3);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// | criterion | [`RidgeSearch`] | [`RidgeSpectrum`], [`RidgeGrid`] | [`KernelRidgeSpectrum`] |
/// |---|---|---|---|
/// | `LeaveOneOut` | yes, the default | no: rows are not kept | yes |
/// | `LeaveOneOutOf` | no: take `LeaveOneOut` | yes | no |
/// | `LeaveGroupsOut` | yes | no: rows are not kept | no |
/// | `LeaveGroupsOutOf` | no: take `LeaveGroupsOut` | yes | no |
/// | `GeneralisedCrossValidation` | yes | yes | yes |
/// | `LogEvidence`, `LogEvidenceWithNoise` | yes | yes | yes |
/// | `HeldOut` | yes | yes | no: kernel values are not known |
/// | `HeldOutShare`, `Folds`, `Forward` | yes | no: rows are not kept | no |
/// | `FoldsOf`, `ForwardOf` | no: take `Folds`, `Forward` | yes | no |
///
/// Where the table says no, a call returns [`Error::Unsupported`], whose message says what to use instead.
///
/// # Which one
/// Rows that are repeated measurements belong to groups: take `LeaveGroupsOut`. Where predictions may use earlier rows only, as
/// in a time series, take `Forward`. If there are statistics of several parts of the data, as from several machines, take
/// `FoldsOf`. Otherwise take leave-one-out, which uses the data best.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Criterion<'a, T: Real = f64> {
    /// The error at each training point of the regression on all others: Σ w (y − ŷ)² / Σ w, where ŷ is predicted without the
    /// row. A search computes it on the rows that it reads.
    #[doc(alias = "LOO")]
    #[default]
    LeaveOneOut,
    /// The leave-one-out error from training data that are read a second time: [`Criterion::leave_one_out`]. The error
    /// of each row is exact, without refitting. It is infinite for a λ so small that rounding would dominate it.
    ///
    /// A row is left out with all of its weight. A row of weight 2 thus differs from two equal rows, one of which stays in the
    /// regression while the other is left out. A row of weight 0 adds no error.
    ///
    /// Rows may come in any order. They are checked against the statistics by the number of rows, by Σ w, and by Σ w y and Σ w y²
    /// of each target, to a relative difference of 10⁻⁹. Points are not checked.
    #[non_exhaustive]
    LeaveOneOutOf {
        /// The training points, n × d.
        x: Points<'a, T>,
        /// Their targets, with the weights of the rows.
        targets: Targets<'a, T>,
    },
    /// The error at each training point of the regression on the rows of all other groups: Σ w (y − ŷ)² / Σ w. The array has the
    /// group's label for each row that is given to the search. If the search reads only some of the rows, it draws whole groups.
    #[doc(alias = "LeaveOneGroupOut")]
    LeaveGroupsOut(&'a [usize]),
    /// The error at left-out groups, from training data that are read a second time: [`Criterion::leave_groups_out`].
    /// The error of each row is exact, without refitting. It is infinite where rounding would dominate it.
    #[non_exhaustive]
    LeaveGroupsOutOf {
        /// The training points, n × d.
        x: Points<'a, T>,
        /// Their targets, with the weights of the rows.
        targets: Targets<'a, T>,
        /// The label of each row's group, n numbers.
        groups: &'a [usize],
    },
    /// Generalised cross-validation: Σ w (y − ŷ)² / N divided by (1 − f/n)², with N = Σ w, n rows and the [degrees of
    /// freedom](RidgeSpectrum::degrees_of_freedom) f. It is leave-one-out with every leverage replaced by the mean of all
    /// leverages. Approximate; it needs no data.
    ///
    /// Where leverages differ much, the error is too small, and lengthscales that are too short are chosen. Leverages differ for
    /// clusters and isolated points, each of which a short lengthscale fits by itself. On the banknote data of the example
    /// `classification`, generalised cross-validation chooses the shortest lengthscale of its grid for the exact kernel, and
    /// leave-one-out does not.
    ///
    /// n is the sum of the row weights (how often rows count), and w is the weight times the row's
    /// [precision](Targets::with_precisions). The error is infinite if f ≥ n.
    #[doc(alias = "GCV")]
    GeneralisedCrossValidation,
    /// Minus the [log evidence](RidgeSpectrum::log_evidence) of a Gaussian process, in nats. It needs no data, and is less prone
    /// to overfitting where many parameters are chosen.
    #[doc(alias = "marginal likelihood")]
    LogEvidence,
    /// Minus the log evidence [with a known noise](RidgeSpectrum::log_evidence_with_noise), whose variance σ² is one number for
    /// all targets. If [precisions](Targets::with_precisions) are 1/variance of each row, σ² is 1.
    LogEvidenceWithNoise(f64),
    /// The error at points that were held out, Σ w (y − ŷ)² / Σ w: [`Criterion::held_out`].
    #[non_exhaustive]
    HeldOut {
        /// Points that the regression has not seen, n × d.
        x: Points<'a, T>,
        /// Their targets, with the weights of the rows.
        targets: Targets<'a, T>,
    },
    /// The error at a share of the rows of a search, which is drawn at random and held out. The share is above 0 and below 1.
    HeldOutShare(f64),
    /// The error at the rows of each fold, of the regression on all other folds, for this number of folds. Rows are drawn into
    /// folds at random.
    #[doc(alias = "KFold")]
    Folds(usize),
    /// The error at folds as in [`Folds`](Criterion::Folds), from the sums over each fold, without their rows:
    /// [`Criterion::folds_of`].
    #[non_exhaustive]
    FoldsOf {
        /// The statistics of each fold, for one map or several.
        folds: Vec<&'a RidgeStatistics<T>>,
    },
    /// The error at consecutive blocks of rows, each of the regression on the blocks before it, for rows in the order of time.
    /// The gap is the number of blocks just before the tested one that are left out too.
    ///
    /// As in every search, inputs are standardised by the means and scales of all rows, later ones included; targets do
    /// not enter these. The regressions on earlier blocks and the final model thus have equal inputs, so that the
    /// chosen lengthscale and λ apply to both.
    #[doc(alias = "TimeSeriesSplit")]
    Forward {
        /// The number of blocks, at least 2 more than the gap.
        blocks: usize,
        /// The number of blocks just before the tested one that are left out.
        gap: usize,
    },
    /// The error at blocks as in [`Forward`](Criterion::Forward), from the sums over each block, without their rows:
    /// [`Criterion::forward_of`].
    #[non_exhaustive]
    ForwardOf {
        /// The statistics of each block, in order, for one map or several.
        blocks: Vec<&'a RidgeStatistics<T>>,
        /// The number of blocks just before the tested one that are left out.
        gap: usize,
    },
}

/// Rows at which errors are taken: points, n × d, with their targets, n × t, and weights.
#[derive(Clone, Debug)]
pub(super) struct RidgeRows<'a, T: Real> {
    pub x: Points<'a, T>,
    pub targets: TargetRows<'a, T>,
}

impl<'a, T: Real> RidgeRows<'a, T> {
    /// Rejects points that are not in ℝᵈ, and rows without `count` targets.
    pub fn check(&self, d: usize, count: usize) -> Result<()> {
        check_training(self.x.view(), d, &self.targets.columns, count)?;
        self.targets.check_weights(self.x.nrows())
    }

    /// A sample that borrows these rows.
    pub(super) fn borrowed(&self) -> RidgeRows<'_, T> {
        RidgeRows { x: (&self.x).into(), targets: self.targets.borrowed() }
    }

    /// The weight of a row.
    pub fn weight(&self, row: usize) -> f64 {
        self.targets.weight(row)
    }

    /// The sum of the weights.
    pub fn total(&self) -> f64 {
        self.targets.total()
    }

    /// Leave-one-out at these rows.
    pub fn left_out(self) -> Criterion<'a, T> {
        Criterion::leave_one_out(self.x, self.targets)
    }

    /// Errors at these rows.
    pub fn held_out(self) -> Criterion<'a, T> {
        Criterion::held_out(self.x, self.targets)
    }
}

/// The λ with the least error, and that error; among equal errors, the largest λ.
pub(crate) fn least(lambdas: &[f64], errors: &[f64]) -> Result<(f64, f64)> {
    let choices = lambdas.iter().copied().zip(errors.iter().copied());
    let better = |a: &(f64, f64), b: &(f64, f64)| a.1.total_cmp(&b.1).then(b.0.total_cmp(&a.0));
    let none = Error::Parameter { name: "the number of λ", value: 0.0, domain: "at least 1" };
    choices.min_by(better).ok_or(none)
}

impl<'a, T: Real> Criterion<'a, T> {
    /// Leave-one-out for the training points, n × d, and their [targets](Targets), with their weights.
    pub fn leave_one_out(x: impl Into<Points<'a, T>>, targets: impl Into<Targets<'a, T>>) -> Self {
        Criterion::LeaveOneOutOf { x: x.into(), targets: targets.into() }
    }

    /// Errors at other points, n × d, and their [targets](Targets), with their weights.
    pub fn held_out(x: impl Into<Points<'a, T>>, targets: impl Into<Targets<'a, T>>) -> Self {
        Criterion::HeldOut { x: x.into(), targets: targets.into() }
    }

    /// Left-out groups for the training points, n × d, their [targets](Targets) with weights, and the label of each row's group.
    ///
    /// ```
    /// use random_features::apply::{Criterion, RidgeSearch};
    /// use random_features::ndarray::Array2;
    /// // Each of fifty points five times, with noise of its own.
    /// let groups: Vec<usize> = (0..250).map(|i| i / 5).collect();
    /// let x = Array2::from_shape_fn((250, 1), |(i, _)| groups[i] as f64 / 10.0);
    /// let noise = |g: usize| 0.3 * (1e3 * g as f64).sin();
    /// let y = Array2::from_shape_fn((250, 1), |(i, _)| {
    ///     x[[i, 0]].sin() + noise(groups[i])
    /// });
    /// let search = RidgeSearch::gaussian(1, 32, 7)?
    ///     .with_criterion(Criterion::LeaveGroupsOut(&groups));
    /// let fit = search.fit(&x, &y)?;
    /// // The noise has variance ½ · 0.09.
    /// assert!(fit.error() > 0.045 && fit.error() < 0.09);
    /// let again = Criterion::leave_groups_out(&x, &y, &groups);
    /// let (_, error) = fit.spectrum().choose(&again, &[fit.lambda()])?;
    /// assert!((error / fit.error() - 1.0).abs() < 1e-9);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn leave_groups_out(
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'a, T>>,
        groups: &'a [usize],
    ) -> Self {
        Criterion::LeaveGroupsOutOf { x: x.into(), targets: targets.into(), groups }
    }

    /// Folds from the statistics of each fold. The training data are the rows of all folds together, merged in any order; no rows
    /// are read. With several maps, give the statistics of all folds for all maps, in any order. Each regression takes the folds
    /// of its own map, standardisation and intercept.
    ///
    /// ```
    /// use random_features::Trigonometric;
    /// use random_features::apply::{Criterion, RidgeStatistics};
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::Array2;
    /// let map = Trigonometric.gaussian(Orthogonal.draw(1, 50, 1)?, 1.0)?;
    /// let mut folds = Vec::new();
    /// for k in 0..5 {
    ///     let mut fold =
    ///         RidgeStatistics::new(map.clone(), 1)?.with_first_row(100 * k)?;
    ///     let at = |i: usize| (5 * i + k as usize) as f64 / 125.0;
    ///     let x = Array2::from_shape_fn((100, 1), |(i, _)| at(i));
    ///     fold.update(&x, &x.mapv(|x| x.sin() + 0.1 * (1e4 * x).sin()))?;
    ///     folds.push(fold);
    /// }
    /// let mut all = folds[0].clone();
    /// folds[1..].iter().try_for_each(|fold| all.merge(fold))?;
    /// let spectrum = all.spectrum()?;
    /// let (lambda, error) =
    ///     spectrum.choose(&Criterion::folds_of(&folds), &spectrum.lambdas())?;
    /// // The noise has variance ½ · 0.01.
    /// assert!((error / 0.005 - 1.0).abs() < 0.2 && lambda < 1.0);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn folds_of(folds: impl IntoIterator<Item = &'a RidgeStatistics<T>>) -> Self {
        Criterion::FoldsOf { folds: folds.into_iter().collect() }
    }

    /// Forward chaining from the statistics of each block, in order. The training data are the rows of all blocks together. Each
    /// block is predicted from the blocks before it, except for the last `gap` of these. With several maps, each regression takes
    /// the blocks of its own map.
    pub fn forward_of(blocks: impl IntoIterator<Item = &'a RidgeStatistics<T>>, gap: usize) -> Self {
        Criterion::ForwardOf { blocks: blocks.into_iter().collect(), gap }
    }

    /// Whether the criterion carries its training data, which a search has already.
    pub(super) fn names_training(&self) -> bool {
        use Criterion::{FoldsOf, ForwardOf, LeaveGroupsOutOf, LeaveOneOutOf};
        matches!(self, LeaveOneOutOf { .. } | LeaveGroupsOutOf { .. } | FoldsOf { .. } | ForwardOf { .. })
    }

    /// The name of the criterion in results.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Criterion::LeaveOneOut | Criterion::LeaveOneOutOf { .. } => "leave-one-out MSE",
            Criterion::LeaveGroupsOut(_) | Criterion::LeaveGroupsOutOf { .. } => "MSE of left-out groups",
            Criterion::GeneralisedCrossValidation => "generalised cross-validation",
            Criterion::LogEvidence | Criterion::LogEvidenceWithNoise(_) => "minus the log evidence",
            Criterion::HeldOut { .. } | Criterion::HeldOutShare(_) => "held-out MSE",
            Criterion::Folds(_) | Criterion::FoldsOf { .. } => "MSE of folds",
            Criterion::Forward { .. } | Criterion::ForwardOf { .. } => "MSE of later blocks",
        }
    }

    /// Whether the criterion is for labels of classes that it carries.
    pub(super) fn has_classes(&self) -> bool {
        match self {
            Criterion::LeaveOneOutOf { targets, .. }
            | Criterion::LeaveGroupsOutOf { targets, .. }
            | Criterion::HeldOut { targets, .. } => targets.are_labels(),
            _ => false,
        }
    }

    /// Whether the criterion is a log evidence.
    pub(super) fn is_evidence(&self) -> bool {
        matches!(self, Criterion::LogEvidence | Criterion::LogEvidenceWithNoise(_))
    }

    /// The labels of the rows' groups, if groups of training data are left out.
    pub(super) fn labels(&self) -> Option<&[usize]> {
        match self {
            Criterion::LeaveGroupsOut(groups) | Criterion::LeaveGroupsOutOf { groups, .. } => Some(groups),
            _ => None,
        }
    }

    /// The rows that the criterion carries, with `count` targets.
    pub(super) fn rows(&self, count: usize) -> Result<Option<RidgeRows<'_, T>>> {
        match self {
            Criterion::LeaveOneOutOf { x, targets }
            | Criterion::LeaveGroupsOutOf { x, targets, .. }
            | Criterion::HeldOut { x, targets } => {
                Ok(Some(RidgeRows { x: x.into(), targets: targets.rows(count)? }))
            }
            _ => Ok(None),
        }
    }
}
