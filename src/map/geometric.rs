//! Geometric random features.

use ndarray::ArrayView1;

use super::{CountMechanism, Counting, Target};
use crate::Real;
use crate::error::{Error, Result};
use crate::frequency::{CountLaw, Counts, check_probability};
use crate::kernel::{Gaussian, Lengthscale, Softmax};
use crate::theory::counts::ln_geometric_variance;
use crate::theory::special::ln_gamma;

/// Geometric random features.
///
/// # Definition
/// φⱼ(x) = m^{−1/2} p^{−d/2} Πₗ (xₗ/√(1−p))^{ωⱼₗ}/√(ωⱼₗ!), m features, for the softmax kernel, with 0⁰ = 1;
/// for the Gaussian kernel times e^{−½‖x‖²}. Unbiased if the ωⱼₗ are independent geometric counts, P(ω = k) =
/// p(1−p)ᵏ from k = 0 on. Features and estimates may be negative; with [`Shifted`](super::Shifted) they are
/// not.
///
/// # Variance
/// (p^{−d} Πₗ I₀(2|xₗyₗ|(1−p)^{−½}) − e^{2x·y})/m: least for the p of
/// [`PairStatistics::geometric`](crate::plan::PairStatistics::geometric). It does not depend on the signs of
/// coordinates, but for the kernel. Closed form: [`theory::counts`](crate::theory::counts).
///
/// # Exact where
/// Nowhere; nearly so with p near 1 where x or y is 0.
///
/// # Cost
/// O(md) a point; one logarithm for each coordinate and one exponential for each feature.
///
/// # Example
/// ```
/// use ndarray::{arr1, arr2};
/// use random_features::frequency::draw_geometric;
/// use random_features::plan::{PairStatistics, Statistics};
/// use random_features::{FeatureMap, Geometric};
/// let (queries, keys) = (arr2(&[[0.3, -0.2], [0.5, 0.1]]), arr2(&[[0.1, 0.4], [0.3, -0.4]]));
/// let (x, y) = (Statistics::of(&queries)?, Statistics::of(&keys)?);
/// let p = PairStatistics::new(&x, &y)?.geometric();
/// let omega = draw_geometric(2, 512, p, &mut random_features::rng(1))?;
/// let map = Geometric::softmax(omega)?;
/// let (x, y) = (arr1(&[0.3, -0.2]), arr1(&[0.1, 0.4]));
/// let estimate: f64 = map.estimate(&x, &y)?;
/// assert!((estimate - x.dot(&y).exp()).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Likhosherstov et al., *Chefs' Random Tables*, Theorem 3.5.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Geometric {
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    p: f64,
}

impl Geometric {
    /// The map for a target kernel: [`Softmax`] or [`Gaussian`] with any lengthscale. p is that of the
    /// counts' law.
    ///
    /// # Errors
    /// [`Law`](Error::Law) if the counts' law is not geometric, and as [`Counting::new`].
    pub fn new<T: Real>(omega: Counts, target: impl Into<Target>) -> Result<Counting<T, Self>> {
        match omega.law() {
            CountLaw::Geometric(p) => Counting::new(Geometric { p: *p }, omega, target),
            law => Err(Error::Law { expected: Self::NAME, found: law.name() }),
        }
    }

    /// The map for the softmax kernel exp(x·y).
    ///
    /// # Errors
    /// As [`new`](Geometric::new).
    pub fn softmax<T: Real>(omega: Counts) -> Result<Counting<T, Self>> {
        Self::new(omega, Softmax::default())
    }

    /// The map for the Gaussian kernel with lengthscale ℓ.
    ///
    /// # Errors
    /// As [`new`](Geometric::new) and [`Gaussian::new`].
    pub fn gaussian<T: Real>(
        omega: Counts,
        lengthscale: impl Into<Lengthscale>,
    ) -> Result<Counting<T, Self>> {
        Self::new(omega, Gaussian::new(lengthscale)?)
    }

    /// The map with this p, whatever the law of the counts. If it is not geometric with the same p, neither
    /// the kernel nor the variance is known.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if p is not between 0 and 1, exclusive; [`Shape`](Error::Shape) if
    /// there are lengthscales for another dimension.
    pub fn with_p<T: Real>(omega: Counts, p: f64, target: impl Into<Target>) -> Result<Counting<T, Self>> {
        Counting::new(Geometric { p }, omega, target)
    }

    /// p.
    pub fn p(&self) -> f64 {
        self.p
    }
}

impl CountMechanism for Geometric {
    const NAME: &'static str = "geometric";

    fn check(&self, _: usize) -> Result<()> {
        check_probability(self.p)
    }

    fn divisors(&self, d: usize) -> Vec<f64> {
        vec![(1.0 - self.p).sqrt(); d]
    }

    fn bias(&self, omega: ArrayView1<'_, u64>) -> f64 {
        // Exact but for rounding: Γ(ω+1) = ω!.
        -0.5 * omega.iter().map(|count| ln_gamma(*count as f64 + 1.0)).sum::<f64>()
    }

    fn constant(&self, d: usize) -> f64 {
        -0.5 * d as f64 * self.p.ln()
    }

    fn fits(&self, law: &CountLaw, _: usize) -> bool {
        matches!(law, CountLaw::Geometric(p) if *p == self.p)
    }

    fn log_variance(&self, x: &[f64], y: &[f64], m: usize) -> f64 {
        ln_geometric_variance(x, y, self.p, m)
    }
}
