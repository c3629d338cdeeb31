//! [`RidgeWarning`]: why a regression may be worse than it looks.

use crate::error::Error;

/// Why a regression that a search chose may be worse than it looks, or than it could be: [`RidgeFit::warnings`](crate::apply::RidgeFit::warnings),
/// and [`RidgeStatistics::scale_warning`](crate::apply::RidgeStatistics::scale_warning) without a search.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RidgeWarning {
    /// The range of one coordinate is more than 100 times that of another one. A range is max − min over all points, in lengthscales.
    UnequalInputs {
        /// The coordinate of the widest range, from 0.
        wide: usize,
        /// The widest range.
        wide_range: f64,
        /// The coordinate of the narrowest range above 0.
        narrow: usize,
        /// The narrowest range.
        narrow_range: f64,
    },
    /// All ranges are below 0.01 lengthscales: the kernel hardly tells points apart.
    NarrowInputs {
        /// The widest range.
        range: f64,
    },
    /// All ranges are above 1000 lengthscales: the kernel finds no points near each other.
    WideInputs {
        /// The narrowest range.
        range: f64,
    },
    /// A coordinate has fewer than 64 spacings of its scalar type in its range, such as times in seconds since 1970 in `f32`. Subtract
    /// an offset before the data become `f32`. The coordinate named has fewest.
    FewSpacings {
        /// The coordinate, from 0.
        coordinate: usize,
        /// The range, max − min, divided by ε max(|min|, |max|).
        spacings: f64,
    },
    /// The regression predicts no better than the mean of the targets, as far as so many rows can tell (0 without an intercept).
    ///
    /// A better regression passes two tests. Its criterion is below that of the mean. And with some λ that was tried the
    /// [log evidence](crate::apply::RidgeSpectrum::log_evidence) of a target, on the rows of the regression, is above that of its mean and noise
    /// by 4 nats, and by ln t more for t targets. The criterion alone does not tell: it is least by chance for some lengthscale and λ.
    ///
    /// On noise a fixed regression is not warned of with a probability of at most e⁻⁴, and what searches chose was not in 0 to 7 % of 300
    /// sets of 12, 30, 100 and 300 rows in two dimensions. Where a sine made three quarters of the variance, 100 rows were never warned
    /// of, 30 rows in 1 % by the evidence and 6 % by leave-one-out, 12 rows in 60 %. With 30 % held out it was 5 % of 100 rows and half
    /// of 30: so few held-out rows tell little.
    Mean {
        /// The criterion for the regression; where each target has its own λ, that of the target nearest to passing the tests.
        error: f64,
        /// The criterion for the mean of the targets, or of this target.
        mean_error: f64,
        /// The most nats by which a target is likelier under a regression that was tried than under its mean and noise.
        nats: f64,
        /// The nats that the second test asks for: 4 + ln t.
        needed: f64,
    },
    /// The targets do not vary on the rows of the search: each is one number, up to rounding, for all rows (without an intercept,
    /// 0). Every lengthscale and every λ then predicts them alike.
    Constant,
    /// Some maps that were asked for could not be fitted, and the others were compared without them.
    Failed {
        /// The number of such maps.
        maps: usize,
        /// The error of one of them.
        error: Error,
    },
    /// The best lengthscale is the shortest or the longest that was tried, so that a better one may lie beyond.
    Lengthscale {
        /// Whether it is the longest, else the shortest.
        longest: bool,
        /// The coordinates whose lengthscales lie there, from 0; none if all coordinates have one lengthscale.
        coordinates: Vec<usize>,
        /// Whether the default grid ended there at its limit, else by the number of its trials; false for a grid that was given.
        at_limit: bool,
    },
    /// The best λ is the least or the largest that was tried, and a better one may lie beyond.
    Lambda {
        /// Whether it is the largest, else the least.
        largest: bool,
        /// The best λ.
        lambda: f64,
    },
    /// The best λ is the least for which the criterion is more than rounding, and a better one may lie below it. Smaller λ were
    /// tried or given, and are lost to rounding. Predictions with such a λ may be wild between and beyond the points.
    ///
    /// There is no warning where that λ leaves less than 10⁻⁴ of the error of the mean, as for targets without noise. For the log
    /// evidence that is half of ln 10⁴ nats for each row and target.
    Rounding {
        /// The best λ.
        lambda: f64,
        /// The rounding error of Σ w φ φᵀ in the spectral norm, below which no λ has a meaning.
        least: f64,
    },
    /// One λ for all targets costs a target more than 10 % of its error, by generalised cross-validation of each target alone.
    /// The target named is the one that it costs most. A λ for each target serves it better.
    Targets {
        /// The target, from 0.
        target: usize,
        /// The λ of least error for this target alone.
        lambda: f64,
        /// The generalised cross-validation of this target with its own λ.
        own_error: f64,
        /// The generalised cross-validation of this target with the λ for all targets.
        error: f64,
    },
    /// More than 1 % of the rows equal an earlier one in point and targets. If they are copies and not observations of their own,
    /// errors at rows that are left out are too small: a copy of such a row is among the others.
    /// [`Criterion::LeaveGroupsOut`](crate::apply::Criterion::LeaveGroupsOut) leaves copies out together; those of one group are not
    /// counted here. A search warns unless its criterion is the log evidence; a grid warns only with left-out rows or groups, since it
    /// does not know the rows otherwise.
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
                "no coordinate ranges over more than {range:.2e} lengthscales, so that all points look alike: take a shorter \
                 lengthscale, or standardise the inputs"
            ),
            RidgeWarning::WideInputs { range } => write!(
                f,
                "every coordinate ranges over at least {range:.2e} lengthscales, so that no points are near each other: take \
                 a longer lengthscale, or standardise the inputs"
            ),
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
                        "its evidence is {nats:.1} nats above that of the mean, and chance makes up to {needed:.1}"
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
                "the best λ, {lambda:.1e}, is the least that rounding leaves: with smaller ones, and below {least:.1e} always, \
                 errors are rounding"
            ),
            RidgeWarning::Targets { target, lambda, own_error, error } => write!(
                f,
                "the λ for all targets does not suit target {target}, whose error is about {error:.3e}: it would be {own_error:.3e} \
                 with λ = {lambda:.1e}, if each target had its own"
            ),
            RidgeWarning::Repeated { repeated, rows } => write!(
                f,
                "{repeated} of {rows} rows repeat earlier ones: if they are copies, errors of rows that are left out are too small, \
                 and groups of copies should be left out together: Criterion::LeaveGroupsOut"
            ),
        }
    }
}
