//! [`Shaping`]: the options and the choice of a shape.

use ndarray::{Array2, ArrayRef2, Axis, CowArray, Ix2};

use super::coordinates::{Coordinates, RemainingChoices};
use super::rank::{Transformed, transformed};
use super::{Moments, PairMoments, Shape};
use crate::Real;
use crate::data::spread::spread;
use crate::error::{Error, Result, check_positive, check_size, checked_not_negative};
use crate::memory::check_memory;
use crate::once::once;
use crate::progress;

/// The default λ, relative to the mean variance of a side.
const RIDGE: f64 = 0.1;
/// The share of φ for which ρ is chosen if pairs have weights: large sums matter more than the mean logarithm suggests.
const SHARE: f64 = 0.7;
/// The number of folds of cross-validation.
const FOLDS: usize = 4;
/// The maximum numbers of queries and keys from which a rank is chosen if pairs have no weights.
const PAIRS: (usize, usize) = (64, 1024);

/// Chooses a [`Shape`] (shifts, T, a basis and coefficients) from data.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::data::shaping::Shaping;
/// // The first coordinate is large in x and small in y, and both are far from 0.
/// let wave = |i: usize, speed: f64| (i as f64 * speed).sin();
/// let x = Array2::from_shape_fn((50, 2), |(i, k)| {
///     [8.0, 1.0][k] * wave(i, [0.7, 1.9][k]) + 3.0
/// });
/// let y = Array2::from_shape_fn((50, 2), |(i, k)| {
///     [0.1, 1.0][k] * wave(i, [1.1, 0.3][k]) + 1.0
/// });
/// let shape = Shaping::new().of_points(&x, &y)?;
/// assert!(shape.before > shape.shifted && shape.shifted > shape.balanced);
/// assert!(shape.balanced > shape.dense);
/// // u·v is (x − c_x)·(y − c_y).
/// let identity = shape.left.dot(&shape.right.t()) - Array2::<f64>::eye(2);
/// assert!(identity.iter().all(|v| v.abs() < 1e-12));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// With w = T(x − μ_x) + T⁻ᵀ(y − μ_y), the mean over pairs of the logarithm of the second moment of an estimate, relative to
/// K², is Σ ln ςₗ + ρₗφₗ with φₗ = E wₗ² in the basis of the features ([`theory::dense`](crate::theory::dense)).
///
/// 1. Shifts by the means minimise E‖w‖² for any law of the pairs.
/// 2. T: with ridged covariances A = C_x + λ(tr C_x/d)I and B likewise, TᵀT = G with G A G = B. Both sides then have
///    equal second moments.
/// 3. The basis: eigenvectors of E wwᵀ = T C_x Tᵀ + T⁻ᵀ C_y T⁻¹ + XY + XYᵀ with XY = T C_xy T⁻¹, without ridge.
/// 4. ρₗ is optimal for φₗ ([`dense::optimal`](crate::theory::dense::optimal)), or for 0.7 φₗ if pairs have weights.
///
/// For independent pairs (no weights) and λ = 0 this choice of shifts, T, basis and coefficients minimises the mean
/// logarithm: λⱼ(T C_x Tᵀ + T⁻ᵀ C_y T⁻¹) ≥ 2 √λⱼ(C_x C_y) for each j (Bhatia and Kittaneh), with equality for this T,
/// and the objective increases with every φₗ; for the basis see `dense::optimal`. For pairs with weights each step is
/// optimal given the previous ones, without a proof that they are optimal together. The ridge and the factor 0.7 are
/// empirical.
///
/// A truncated shape ([`with_rank`](Shaping::with_rank), [`with_rank_for`](Shaping::with_rank_for)) keeps the leading coordinates, with ρₗ
/// for φₗ. It is **biased**, and it states the bias.
///
/// # Degenerate data
/// A ridge below 1e-12 counts as 1e-12, so that T is finite for constant coordinates, fewer points than dimensions and
/// data of low rank. A side whose points are all equal is treated as if it had λ times the other side's mean variance
/// in every direction; if both are, T is the identity and all φₗ are 0. Squared norms must be finite (norms up to about
/// 1e150).
///
/// # Cost
/// The cost of [`PairMoments`], plus three eigendecompositions, O(d³), for each ridge and fold.
///
/// # References
/// Coefficients: Likhosherstov et al., *Dense-Exponential Random Features*, 2023; the inequality: Bhatia and Kittaneh, *Notes on
/// Matrix Arithmetic–Geometric Mean Inequalities*, 2000. Shifts, the choice for weighted pairs and truncation: new.
#[derive(Clone, Debug, PartialEq)]
pub struct Shaping {
    ridges: Vec<f64>,
    rank: Rank,
    share: Option<f64>,
    both_shifts: bool,
    /// Whether T is chosen; otherwise it is the identity.
    balanced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rank {
    Whole,
    Given(usize),
    /// The best rank for this number of features.
    For(usize),
}

impl Default for Shaping {
    fn default() -> Self {
        let ridges = vec![RIDGE];
        Shaping { ridges, rank: Rank::Whole, share: None, both_shifts: false, balanced: true }
    }
}

impl Shaping {
    /// The default options: λ = 0.1, all coordinates (no bias), one shift.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets λ, relative to the mean variance of a side. 0.3 is a good value if the shape is chosen from few points and
    /// used for many others.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless λ is finite and not negative.
    pub fn with_ridge(self, ridge: f64) -> Result<Self> {
        self.with_validated_ridge(&[ridge])
    }

    /// Chooses λ among these by cross-validation: the smallest mean logarithm of the second moment on held-out data,
    /// with four folds or as many as there are points on a side. With one point the largest λ is used.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is no λ, or one is negative or not finite.
    pub fn with_validated_ridge(self, ridges: &[f64]) -> Result<Self> {
        check_positive("the number of ridges", ridges.len())?;
        let ridges = ridges.iter().map(|ridge| checked_not_negative("the ridge", *ridge));
        Ok(Shaping { ridges: ridges.collect::<Result<_>>()?, ..self })
    }

    /// Truncates to the first r coordinates, which gives **biased** features unless r = d.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if r is 0.
    pub fn with_rank(self, r: usize) -> Result<Self> {
        check_positive("the rank", r)?;
        Ok(Shaping { rank: Rank::Given(r), ..self })
    }

    /// Truncates, which gives **biased** features, to the best r for m features among 2, 3, 4, 6, 8, 12, 16, 24 and 32
    /// (and d if d ≤ 32): the one with the smallest sum of the [bias](super::Shape::bias) and of the mean over pairs
    /// of the logistic function σ(ln M − ln m). The pairs must be known: use [`of_points`](Shaping::of_points),
    /// [`of_pairs`](Shaping::of_pairs) or [`AttentionShaping`](crate::apply::attention::AttentionShaping).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if m is 0.
    pub fn with_rank_for(self, m: usize) -> Result<Self> {
        check_positive("the number of features m", m)?;
        Ok(Shaping { rank: Rank::For(m), ..self })
    }

    /// Sets the share s of φₗ for which ρₗ is chosen: the optimal ρₗ of s φₗ. The default is 1, or 0.7 if pairs have
    /// weights. Truncated shapes ignore it.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the share is positive and finite.
    pub fn with_share(self, share: f64) -> Result<Self> {
        if share > 0.0 && share.is_finite() {
            return Ok(Shaping { share: Some(share), ..self });
        }
        Err(Error::Parameter { name: "the share of φ", value: share, domain: "positive and finite" })
    }

    /// Uses c_x = μ_x and c_y = μ_y instead of c_x = 0 and c_y = μ_y + Gμ_x.
    ///
    /// For features that depend only on w (positive and dense-exponential) both choices give the same estimates, and
    /// the default has no factor at the keys. Other features, such as trigonometric and hyperbolic ones, need both
    /// shifts. Truncated shapes always have both, because their kernel depends on them.
    #[must_use]
    pub fn with_both_shifts(self) -> Self {
        Shaping { both_shifts: true, ..self }
    }

    /// The shape for these moments, with one given ridge and rank.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the rank is above d or is to be chosen by [`with_rank_for`](Shaping::with_rank_for),
    /// which needs points, or if there are several ridges (use [`of_folds`](Shaping::of_folds)),
    /// [`Factorisation`](Error::Factorisation) if an eigendecomposition does not converge.
    pub fn of_moments(&self, moments: &PairMoments) -> Result<Shape> {
        self.of_folds(std::slice::from_ref(moments))
    }

    /// The shape for the moments of all folds together. Several ridges are cross-validated over the folds.
    ///
    /// # Errors
    /// The errors of [`of_moments`](Shaping::of_moments) and [`PairMoments::merge`]; [`NoData`](Error::NoData) without any fold,
    /// [`Parameter`](Error::Parameter) if there are several ridges and one fold.
    pub fn of_folds(&self, folds: &[PairMoments]) -> Result<Shape> {
        if self.ridges.len() > 1 && folds.len() == 1 {
            let domain = "2 or more for a ridge that is cross-validated";
            return Err(Error::Parameter { name: "the number of parts of the data", value: 1.0, domain });
        }
        let (moments, ridge) = (merged(folds.iter())?, self.best_ridge(folds)?);
        self.finish(&moments, ridge, None::<fn(&Coordinates) -> Transformed>)
    }

    /// The shape for the rows of `x`, n × d, and `y`, l × d, with equal weights for all pairs.
    ///
    /// # Errors
    /// The errors of [`Moments::of`], [`PairMoments::new`] and [`of_moments`](Shaping::of_moments). [`Cancelled`](Error::Cancelled)
    /// if a [watcher](crate::progress::watch) stops the choice of a rank.
    #[inline(never)]
    pub fn of_points<T: Real>(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Shape> {
        check_size("the number of columns of y", x.ncols(), y.ncols())?;
        let count = self.folds(x.nrows().min(y.nrows()));
        let part = |fold| {
            let of = |points: &ArrayRef2<T>| Moments::of(&fold_of(points, count, fold)?);
            PairMoments::new(of(x)?, of(y)?)
        };
        let folds = (0..count).map(part).collect::<Result<Vec<_>>>()?;
        let (moments, ridge) = (merged(folds.iter())?, self.best_ridge(&folds)?);
        let sample = |points: &ArrayRef2<T>, most: usize| {
            points.select(Axis(0), &spread(points.nrows(), most)).mapv(Real::widen)
        };
        let pairs = |coordinates: &Coordinates| {
            let (x, y) = (sample(x, PAIRS.0), sample(y, PAIRS.1));
            let weights = Array2::ones((x.nrows(), y.nrows()));
            pairs_of(coordinates, &x, &y, weights)
        };
        self.finish(&moments, ridge, Some(pairs))
    }

    /// The shape for kernel matrices of one set of points, n × d, for example in ridge regression. Both sides have one
    /// shift and rotation, so a symmetric map stays symmetric.
    ///
    /// T is the identity, since the covariances are equal; the shift to the mean, the basis and the coefficients are
    /// chosen.
    ///
    /// ```
    /// use random_features::ndarray::Array2;
    /// use random_features::data::shaping::Shaping;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::kernel::Gaussian;
    /// let x = Array2::from_shape_fn((60, 3), |(i, k)| {
    ///     (i as f64 * [0.7, 1.9, 0.3][k]).sin() * [2.0, 0.5, 0.1][k] + 4.0
    /// });
    /// let shape = Shaping::new().of_one_set(&x)?;
    /// let map: random_features::Map<f64> =
    ///     shape.build(Orthogonal.draw(3, 128, 1)?, Gaussian::default())?;
    /// assert!(map.facts().symmetric);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`of_points`](Shaping::of_points).
    #[inline(never)]
    pub fn of_one_set<T: Real>(&self, x: &ArrayRef2<T>) -> Result<Shape> {
        Shaping { both_shifts: true, balanced: false, ..self.clone() }.of_points(x, x)
    }

    /// The shape for the rows of `x`, n × d, and `y`, l × d, with a weight ≥ 0 for each pair of one of the `rows` of x
    /// and a row of y, such as rows of an attention matrix. `weights` has one row for each of `rows` and l columns. The
    /// moments of x are those of all rows.
    ///
    /// # Errors
    /// The errors of [`PairMoments::weighted`] and [`of_moments`](Shaping::of_moments); [`Parameter`](Error::Parameter) if a row
    /// is not below n.
    #[inline(never)]
    pub fn of_pairs<T: Real>(
        &self,
        x: &ArrayRef2<T>,
        rows: &[usize],
        y: &ArrayRef2<T>,
        weights: &ArrayRef2<f64>,
    ) -> Result<Shape> {
        check_size("the number of rows of the weights", rows.len(), weights.nrows())?;
        check_rows(rows, x.nrows())?;
        let queries = x.select(Axis(0), rows);
        let moments = PairMoments::weighted(Moments::of(x)?, &queries, y, weights)?;
        let count = self.folds(rows.len());
        let part = |fold| {
            let own = every(count, fold, rows.len());
            let of_x = Moments::of(&fold_of(x, count, fold)?)?;
            let (queries, weights) = (queries.select(Axis(0), &own), weights.select(Axis(0), &own));
            PairMoments::weighted(of_x, &queries, y, &weights)
        };
        // With one ridge the whole is the only fold. Folds without weight are skipped.
        let folds: Vec<PairMoments> = match count {
            1 => vec![moments.clone()],
            _ => (0..count).filter_map(|fold| part(fold).ok()).collect(),
        };
        // A cancelled fold must not pass for one without weight.
        progress::check()?;
        let ridge = self.best_ridge(&folds)?;
        let pairs = |coordinates: &Coordinates| {
            pairs_of(coordinates, &queries.mapv(Real::widen), &y.mapv(Real::widen), weights.to_owned())
        };
        self.finish(&moments, ridge, Some(pairs))
    }

    /// The number of folds for this number of points.
    fn folds(&self, points: usize) -> usize {
        if self.ridges.len() > 1 { FOLDS.min(points).max(1) } else { 1 }
    }

    /// The ridge with the smallest loss on held-out folds; the largest ridge if there are fewer than two folds.
    fn best_ridge(&self, folds: &[PairMoments]) -> Result<f64> {
        let largest = self.ridges.iter().copied().fold(0.0, f64::max);
        if self.ridges.len() == 1 || folds.len() < 2 {
            return Ok(largest);
        }
        let mut best = (f64::INFINITY, largest);
        for (tried, &ridge) in self.ridges.iter().enumerate() {
            progress::step("ridges of a shape", tried, self.ridges.len())?;
            let mut loss = 0.0;
            for (out, held_out) in folds.iter().enumerate() {
                progress::check()?;
                let others = folds.iter().enumerate().filter(|(i, _)| *i != out);
                let coordinates =
                    Coordinates::new(&merged(others.map(|(_, fold)| fold))?, ridge, self.balanced)?;
                loss += coordinates.loss(&coordinates.rho(self.share_of(held_out)), held_out)?;
            }
            if loss < best.0 {
                best = (loss, ridge);
            }
        }
        Ok(best.1)
    }

    fn share_of(&self, moments: &PairMoments) -> f64 {
        self.share.unwrap_or(if moments.is_weighted() { SHARE } else { 1.0 })
    }

    /// The shape with this ridge. Rank and bias are computed from the pairs if they are known.
    fn finish(
        &self,
        moments: &PairMoments,
        ridge: f64,
        pairs: Option<impl Fn(&Coordinates) -> Transformed>,
    ) -> Result<Shape> {
        let d = moments.dim();
        let coordinates = Coordinates::new(moments, ridge, self.balanced)?;
        let pairs = pairs.filter(|_| self.rank != Rank::Whole).map(|pairs| pairs(&coordinates));
        let rank = match (self.rank, &pairs) {
            (Rank::Whole, _) => d,
            (Rank::Given(r), _) if r <= d => r,
            (Rank::For(m), Some(pairs)) => pairs.best_rank(&coordinates.phi, m)?,
            (Rank::Given(r), _) => {
                let domain = "no more than the dimension d";
                return Err(Error::Parameter { name: "the rank", value: r as f64, domain });
            }
            (Rank::For(m), None) => {
                let domain =
                    "absent where only moments are given: choose with of_points or of_pairs, or state a rank";
                return Err(Error::Parameter { name: "the m of rank_for", value: m as f64, domain });
            }
        };
        let bias = match pairs {
            _ if rank == d => 0.0,
            Some(pairs) => pairs.bias(rank),
            None => coordinates.bias(rank, moments)?,
        };
        let (share, both_shifts) = match rank < d {
            true => (1.0, true),
            false => (self.share_of(moments), self.both_shifts),
        };
        Ok(coordinates.shape(RemainingChoices { rank, share, both_shifts, bias }))
    }
}

/// The pairs in all d coordinates.
fn pairs_of(
    coordinates: &Coordinates,
    x: &Array2<f64>,
    y: &Array2<f64>,
    weights: Array2<f64>,
) -> Transformed {
    Transformed {
        u: transformed(x, &coordinates.mean_x, &coordinates.left),
        v: transformed(y, &coordinates.mean_y, &coordinates.right),
        weights,
    }
}

fn merged<'a>(mut parts: impl Iterator<Item = &'a PairMoments>) -> Result<PairMoments> {
    let first = parts.next().ok_or(Error::NoData { what: "the choice of a shape" })?;
    parts.try_fold(first.clone(), |mut sum, part| {
        sum.merge(part)?;
        Ok(sum)
    })
}

/// Every `count`-th row from row `first` on: the points themselves, or a copy.
fn fold_of<T: Real>(points: &ArrayRef2<T>, count: usize, first: usize) -> Result<CowArray<'_, T, Ix2>> {
    if count == 1 {
        return Ok(points.view().into());
    }
    let each = points.ncols().saturating_mul(size_of::<T>()).saturating_add(size_of::<usize>());
    check_memory("rows of a fold", points.nrows().div_ceil(count), each)?;
    Ok(points.select(Axis(0), &every(count, first, points.nrows())).into())
}

/// Every `count`-th index below `of`, starting at `first`.
fn every(count: usize, first: usize, of: usize) -> Vec<usize> {
    (first..of).step_by(count).collect()
}

/// Rejects rows that do not exist.
pub(crate) fn check_rows(rows: &[usize], of: usize) -> Result<()> {
    match rows.iter().find(|row| **row >= of) {
        None => Ok(()),
        Some(row) => {
            let domain = "below the number of rows of x";
            Err(Error::Parameter { name: "a row of x", value: *row as f64, domain })
        }
    }
}

once!(Shaping::of_points::<T>, Shaping::of_one_set::<T>, Shaping::of_pairs::<T>);
