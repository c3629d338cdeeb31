//! [`Limits`]: the least errors that as many features can have.

use super::number;

/// The least errors that D features can have on the points of a plan, for the D of a recipe. They are errors of the Gram matrix,
/// relative to the kernel as [`gram`](crate::planner::Forecast::gram) is, and `None` where they are not known.
///
/// ```
/// # use random_features::ndarray::Array2;
/// use random_features::planner::Planner;
/// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
/// let plan = Planner::of_one_set(&x)?.with_max_features(64).plan()?;
/// let best = plan.best()?;
/// if let Some(limit) = best.limits.any {
///     println!("{} times the least error of any features", best.loss() / limit);
///     assert!(limit < best.loss());
/// }
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Where they are known
/// A plan has limits for the loss [`Gram`](crate::planner::Loss::Gram) of points without heads. They come from the singular values of the
/// kernel values of s rows of each side, in O(s³): s is eight times the most features of a recipe, but at least 512 and at most 1536.
/// Where these are all points, limits are exact for them.
///
/// A larger set is sampled: s rows are drawn at random. Then limits are known for one set of points with K(x, x) = 1, and `unbiased` and `any` for at
/// most s/8 features. These are estimates: `unbiased` was up to a tenth too low, and `any` up to a tenth too low or too high. For other
/// kernels, of which few pairs may be most, nothing is known then.
///
/// Singular values need the Cargo feature `faer` or `ndarray-linalg`. A limit that is 0 up to rounding is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Limits {
    /// √((N² − E K²)/(D E K²)), the least error of D features of one independent draw each, without bias. N is the sum
    /// of the singular values of the kernel values, n × l, over √(nl); for one set of points it is the mean of K(x, x).
    /// Pairs of cosines and sines, and frequencies of a coupling, may have less.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub independent: Option<f64>,
    /// The root of the least error of D unbiased features ([`unbiased`](crate::theory::limits::unbiased)) divided by E
    /// K²: the least error of D features without bias, however they depend on each other.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub unbiased: Option<f64>,
    /// √(Σ_{i>D} σᵢ²/E K²) with the singular values σᵢ: the least error of any D features.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub any: Option<f64>,
}

impl Limits {
    /// A number of each limit that is known, with what it supposes; `None` if none is known.
    pub(super) fn listed(&self, of: impl Fn(f64) -> f64) -> Option<String> {
        let all = [
            (self.independent, "if independent"),
            (self.unbiased, "without bias"),
            (self.any, "with a bias"),
        ];
        let named = |(limit, name): (Option<f64>, &str)| Some(format!("{} {name}", number(of(limit?))));
        let known: Vec<String> = all.into_iter().filter_map(named).collect();
        (!known.is_empty()).then(|| known.join(", "))
    }
}
