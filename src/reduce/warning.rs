//! [`RidgeWarning`]: why a regression may be worse than its errors suggest.

use crate::error::Error;

/// A reason why a regression may be worse than its errors suggest, or worse than it could be. A search gives warnings by
/// [`RidgeFit::warnings`](crate::apply::RidgeFit::warnings), and statistics give those of their inputs by
/// [`RidgeStatistics::input_warnings`](crate::apply::RidgeStatistics::input_warnings).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RidgeWarning {
    /// The range of one coordinate is more than 100 times the range of another one. A range is max − min over all points, in
    /// lengthscales.
    UnequalInputs {
        /// The coordinate of the widest range, from 0.
        wide: usize,
        /// The widest range, in lengthscales.
        wide_range: f64,
        /// The coordinate of the narrowest range above 0.
        narrow: usize,
        /// The narrowest range above 0, in lengthscales.
        narrow_range: f64,
    },
    /// All ranges are below 0.01 lengthscales, so that kernel values of all pairs of points are nearly equal. A search whose longest
    /// lengthscale has the least error does not warn.
    NarrowInputs {
        /// The widest range, in lengthscales.
        range: f64,
    },
    /// All ranges are above 1000 lengthscales, so that kernel values of nearly all pairs of points vanish. A search whose shortest
    /// lengthscale has the least error does not warn.
    WideInputs {
        /// The narrowest range, in lengthscales.
        range: f64,
    },
    /// Coordinates vary, but the standardisation takes them for constant, so that nothing is learnt from them. Their range is at most
    /// 4 spacings of the scalar type, for example times in seconds since 1970 in `f32`, or they were constant in the data of the
    /// standardisation. Subtract an offset before the data become `f32`. Coordinates of a single value are not named, since they
    /// say nothing; [`constant_columns`](crate::apply::Standardisation::constant_columns) lists them too.
    ConstantInputs {
        /// The coordinates, from 0, in ascending order.
        coordinates: Vec<usize>,
    },
    /// The range of a coordinate is fewer than 64 spacings of its scalar type, for example times in seconds since 1970 in `f32`.
    /// Subtract an offset before the data become `f32`. The coordinate with the fewest spacings is named.
    FewSpacings {
        /// The coordinate, from 0.
        coordinate: usize,
        /// The number of spacings: the range, max − min, divided by ε max(|min|, |max|).
        spacings: f64,
    },
    /// The data do not show that the regression predicts better than the mean of the targets, or without an intercept, better
    /// than 0.
    ///
    /// A better regression passes two tests. First, its criterion is below the criterion of the mean. Second, with some λ that
    /// was tried, the [log evidence](crate::apply::RidgeSpectrum::log_evidence) of a target, on the rows of the regression, is
    /// above the evidence of a constant with noise. It must be above by 4 nats, and by ln t more for t targets. The first test is
    /// not enough, since some lengthscale and λ make the criterion small by chance.
    ///
    /// If targets are noise, the warning for a fixed regression is missing with a probability of at most e⁻⁴. After searches it
    /// was missing in 0 to 7 % of 300 sets of 12, 30, 100 and 300 rows in two dimensions. Where a sine made three quarters of the
    /// variance, the warning was given wrongly for no set of 100 rows. It was given for 1 % (evidence) and 6 % (leave-one-out) of
    /// the sets of 30 rows, and for 60 % of the sets of 12 rows. With 30 % of the rows held out, it was given for 5 % of the sets
    /// of 100 rows. For sets of 30 rows, with few held-out rows, it was given for half of them.
    Mean {
        /// The criterion for the regression. If each target has its own λ, it is the criterion of the target that is nearest to
        /// passing the tests.
        error: f64,
        /// The criterion for the mean of the targets, or of this target.
        mean_error: f64,
        /// The largest number of nats by which a target is more likely under a regression that was tried than under a constant
        /// with noise.
        nats: f64,
        /// The number of nats that the second test needs: 4 + ln t.
        needed: f64,
    },
    /// The targets do not vary on the rows of the search: each has one value for all rows, up to rounding (without an intercept,
    /// 0). Predictions are then equal for every lengthscale and every λ.
    Constant,
    /// Some of the given maps could not be fitted, and the others were compared without them.
    Failed {
        /// The number of such maps.
        maps: usize,
        /// The error of one of them.
        error: Error,
    },
    /// The best lengthscale is the shortest or the longest that was tried, so that a better one may lie beyond.
    Lengthscale {
        /// Whether the best lengthscale is the longest; false for the shortest.
        longest: bool,
        /// The coordinates whose lengthscales are the shortest or the longest, from 0; empty if all coordinates have one
        /// lengthscale.
        coordinates: Vec<usize>,
        /// Whether the default grid ended at its limit; false if it ended by its number of trials, and for a grid that was given.
        at_limit: bool,
    },
    /// The best λ is the least or the largest that was tried, and a better one may lie beyond.
    Lambda {
        /// Whether the best λ is the largest; false for the least.
        largest: bool,
        /// The best λ.
        lambda: f64,
    },
    /// The best λ is the least one for which rounding does not hide the criterion, and a better one may lie below it. Smaller λ
    /// were tried or given, and rounding hides their criterion. Predictions with such a λ may vary strongly between and beyond
    /// the points. Points in `f64` allow smaller λ than points in `f32`, and fewer features allow smaller ones than many. If the
    /// error is small enough, nothing needs to be done.
    ///
    /// There is no warning if the error with the best λ is below 10⁻⁴ of the error of the mean, as for targets without noise. For
    /// the log evidence, the corresponding limit is ½ ln 10⁴ nats for each row and target.
    Rounding {
        /// The best λ.
        lambda: f64,
        /// The rounding error of Σ w φ φᵀ in the spectral norm. Below it, rounding hides the criterion for every λ.
        least: f64,
    },
    /// One λ for all targets raises the error of a target by more than 10 %, by generalised cross-validation of each target
    /// alone. The target with the largest increase is named. A λ of its own gives this target a smaller error:
    /// [`RidgeSearch::with_lambda_per_target`](crate::apply::RidgeSearch::with_lambda_per_target),
    /// [`RidgeGrid::choose_per_target`](crate::apply::RidgeGrid::choose_per_target).
    Targets {
        /// The target, from 0; the class if targets are labels.
        target: usize,
        /// The λ with the least error for this target alone.
        lambda: f64,
        /// The generalised cross-validation of this target with its own λ.
        own_error: f64,
        /// The generalised cross-validation of this target with the λ for all targets.
        error: f64,
    },
    /// The criterion leaves out groups of rows, but the intervals of a [posterior](crate::apply::RidgePosterior) take errors of
    /// rows for independent. If rows of a group have a common error, intervals are too narrow. For 20 sets of 100 groups of 10 such
    /// rows, 90 % intervals of the mean had the coverage 32 %, and 83 % with the following weights. Give each row the
    /// [weight](crate::Targets::with_weights) 1/k for the k rows of its group, so that each group counts as one row. There is no
    /// warning if weights do so, and none for labels. Predictions and errors are not affected.
    Groups {
        /// The number of groups.
        groups: usize,
        /// The number of rows as they count in intervals: the sum of their weights.
        count: f64,
    },
    /// More than 1 % of the rows equal an earlier one in point and targets. If they are copies and not separate observations,
    /// errors at left-out rows are too small: a copy of the left-out row stays in the training data.
    /// [`Criterion::LeaveGroupsOut`](crate::apply::Criterion::LeaveGroupsOut) leaves copies out together, and copies in one group
    /// are not counted here. A search warns unless its criterion is the log evidence. A grid warns only for left-out rows or
    /// groups, since it has no rows otherwise.
    Repeated {
        /// The number of rows that equal an earlier one.
        repeated: usize,
        /// The number of rows.
        rows: usize,
    },
}

impl std::fmt::Display for RidgeWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RidgeWarning::UnequalInputs { wide, wide_range, narrow, narrow_range } => write!(
                f,
                "coordinate {wide} ranges over {wide_range:.2e} lengthscales, coordinate {narrow} over {narrow_range:.2e}: \
                 standardise the inputs, or give each coordinate a lengthscale"
            ),
            RidgeWarning::NarrowInputs { range } => write!(
                f,
                "no coordinate ranges over more than {range:.2e} lengthscales, so that the kernel hardly tells points apart: \
                 take a shorter lengthscale, or standardise the inputs"
            ),
            RidgeWarning::WideInputs { range } => write!(
                f,
                "every coordinate ranges over at least {range:.2e} lengthscales, so that no points are near each other: take \
                 a longer lengthscale, or standardise the inputs"
            ),
            RidgeWarning::ConstantInputs { coordinates } => {
                match coordinates.as_slice() {
                    [one] => write!(f, "coordinate {one} varies, but the standardisation takes it")?,
                    several => write!(f, "coordinates {several:?} vary, but the standardisation takes them")?,
                }
                write!(
                    f,
                    " for constant, and nothing is learnt there: subtract an offset before numbers are rounded to their \
                     scalar type"
                )
            }
            RidgeWarning::FewSpacings { coordinate, spacings } => write!(
                f,
                "the range of coordinate {coordinate} has about {spacings:.0} spacings of its scalar type: subtract an offset before \
                 numbers are rounded to it"
            ),
            RidgeWarning::Mean { error, mean_error, nats, needed } => {
                write!(f, "the regression is no better than the mean of the targets: ")?;
                if error < mean_error {
                    write!(
                        f,
                        "its evidence is {nats:.1} nats above that of the mean, and noise may give up to {needed:.1}"
                    )
                } else {
                    write!(f, "its criterion, {error:.6e}, is not below that of the mean, {mean_error:.6e}")
                }
            }
            RidgeWarning::Constant => {
                write!(
                    f,
                    "the targets do not vary on the rows of the search: no map and no λ is better than another"
                )
            }
            RidgeWarning::Failed { maps: 1, error } => write!(f, "one map could not be fitted: {error}"),
            RidgeWarning::Failed { maps, error } => {
                write!(f, "{maps} maps could not be fitted, one of them for this reason: {error}")
            }
            RidgeWarning::Lengthscale { longest, coordinates, at_limit } => {
                match coordinates.as_slice() {
                    [] => write!(f, "the best lengthscale is the ")?,
                    [one] => write!(f, "the best lengthscale of coordinate {one} is the ")?,
                    several => write!(f, "the best lengthscales of coordinates {several:?} are the ")?,
                }
                match longest {
                    false => write!(f, "shortest that was tried: try shorter ones"),
                    true => write!(f, "longest that was tried: try longer ones"),
                }?;
                if *at_limit { write!(f, ", beyond the limit of the default grid") } else { Ok(()) }
            }
            RidgeWarning::Lambda { largest: false, lambda } => {
                write!(f, "the best λ, {lambda:.1e}, is the least that was tried: try smaller ones")
            }
            RidgeWarning::Lambda { largest: true, lambda } => {
                write!(f, "the best λ, {lambda:.1e}, is the largest that was tried: try larger ones")
            }
            RidgeWarning::Rounding { lambda, least } => write!(
                f,
                "the best λ, {lambda:.1e}, is the least whose errors are more than rounding, and all below {least:.1e} are: give points \
                 as f64 if they are f32, or fewer features; if the error is small enough, nothing needs to be done"
            ),
            RidgeWarning::Targets { target, lambda, own_error, error } => write!(
                f,
                "the λ for all targets does not suit target {target} (of labels, class {target}): its error is about {error:.3e}, and \
                 would be {own_error:.3e} with λ = {lambda:.1e}. A λ for each is chosen by RidgeSearch::with_lambda_per_target or \
                 RidgeGrid::choose_per_target"
            ),
            RidgeWarning::Groups { groups, count } => write!(
                f,
                "intervals of a posterior take errors of {count:.0} rows for independent, but there are {groups} groups: if rows of a \
                 group have a common error, give each the weight 1 / (rows of its group)"
            ),
            RidgeWarning::Repeated { repeated, rows } => write!(
                f,
                "{repeated} of {rows} rows repeat earlier ones: if they are copies, errors of rows that are left out are too small, \
                 and groups of copies should be left out together: Criterion::LeaveGroupsOut"
            ),
        }
    }
}
