//! [`Diagonal`]: the diagonal matrix A of a pair of clusters.

use ndarray::Array2;
use num_complex::Complex64;

use crate::data::Clustering;
use crate::error::{Error, Result, check_size};
use crate::theory::diagonal;

/// The formula for the entries of a [`Diagonal`] from two clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Formula {
    /// aₖ = √(−r′ₖ/rₖ) from the centres r and r′, for which the estimate at the centres is exact.
    Complex,
    /// The best real diagonal for the centres: aₖ = √|r′ₖ/rₖ|. Features are half as many and all positive, and exact at the
    /// centres if their coordinates have opposite signs.
    Real,
    /// The best diagonal on average over the points of the clusters: |aₖ| = (E yₖ²/E xₖ²)^{1/4}, imaginary where the
    /// signs of the centres agree. It equals [`Complex`](Formula::Complex) if the clusters have no spread.
    Robust,
    /// The best real diagonal on average over the points of the clusters: aₖ = (E yₖ²/E xₖ²)^{1/4}.
    RobustReal,
}

/// The diagonal matrix A of a complex-exponential map for a pair of clusters: a formula and the limits of its entries.
///
/// ```
/// use random_features::compose::Diagonal;
/// assert_eq!(Diagonal::complex().epsilon, Diagonal::EPSILON);
/// let limited = Diagonal::robust().with_limit(0.25);
/// assert_eq!(limited.epsilon, 0.25);
/// ```
///
/// Entries are clamped to ε ≤ |aₖ| ≤ 1/ε. If a coordinate of one centre is 0 or nearly 0, the formulas by centres give
/// aₖ near 0 or infinity, and the variance away from the centres becomes very large: with ζₖ = aₖxₖ + yₖ/aₖ it grows
/// with the spread times the larger of |aₖ| and 1/|aₖ|. Source: Hybrid Random Features, equations 83–88; limits and the
/// robust formulas: new.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Diagonal {
    /// The formula.
    formula: Formula,
    /// ε, in (0, 1].
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub epsilon: f64,
}

impl From<Formula> for Diagonal {
    fn from(formula: Formula) -> Self {
        Diagonal { formula, epsilon: Self::EPSILON }
    }
}

impl Diagonal {
    /// The default ε: entries are clamped only if coordinates of the centres differ by more than a factor of a million.
    pub const EPSILON: f64 = 1e-3;

    /// The entries aₖ = √(−r′ₖ/rₖ) from the centres r and r′, for which the estimate at the centres is exact.
    pub fn complex() -> Self {
        Formula::Complex.into()
    }

    /// The best real entries for the centres, aₖ = √|r′ₖ/rₖ|. Features are half as many and all positive, and exact at the centres
    /// if their coordinates have opposite signs.
    pub fn real() -> Self {
        Formula::Real.into()
    }

    /// The best entries on average over the points of the clusters: |aₖ| = (E yₖ²/E xₖ²)^{1/4}, imaginary where the signs of the
    /// centres agree. They equal those of [`complex`](Diagonal::complex) if the clusters have no spread.
    pub fn robust() -> Self {
        Formula::Robust.into()
    }

    /// The best real entries on average over the points of the clusters: aₖ = (E yₖ²/E xₖ²)^{1/4}.
    pub fn robust_real() -> Self {
        Formula::RobustReal.into()
    }

    /// Sets ε, which is checked when [entries](Diagonal::entries) are computed.
    #[must_use]
    pub fn with_limit(self, epsilon: f64) -> Self {
        Diagonal { epsilon, ..self }
    }

    /// The entries of A for each pair of clusters, those of the first query cluster first.
    pub(crate) fn of_pairs(
        self,
        queries: &Clustering,
        keys: &Clustering,
    ) -> impl Iterator<Item = Result<Vec<Complex64>>> {
        let pairs = (0..queries.len()).flat_map(|i| (0..keys.len()).map(move |j| (i, j)));
        pairs.map(move |(i, j)| self.entries(queries, i, keys, j))
    }

    /// The entries of A for cluster `i` of the queries and cluster `j` of the keys.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if ε is outside (0, 1], [`Shape`](Error::Shape) if the dimensions differ or
    /// there are no such clusters.
    pub fn entries(
        &self,
        queries: &Clustering,
        i: usize,
        keys: &Clustering,
        j: usize,
    ) -> Result<Vec<Complex64>> {
        let epsilon = self.epsilon;
        if !(epsilon > 0.0 && epsilon <= 1.0) {
            return Err(Error::Parameter { name: "ε", value: epsilon, domain: "above 0 and at most 1" });
        }
        check_size("the dimension of the keys' clusters", queries.dim(), keys.dim())?;
        check_size(
            "the number of clusters of the queries",
            queries.len().max(i.saturating_add(1)),
            queries.len(),
        )?;
        check_size("the number of clusters of the keys", keys.len().max(j.saturating_add(1)), keys.len())?;
        let row = |array: &Array2<f64>, i: usize| array.row(i).to_vec();
        let (r, q) = (row(queries.centres(), i), row(keys.centres(), j));
        let robust =
            || diagonal::robust(&row(queries.mean_squares(), i), &row(keys.mean_squares(), j), epsilon);
        let sizes = match self.formula {
            Formula::Complex | Formula::Real => diagonal::real(&r, &q, epsilon),
            Formula::Robust | Formula::RobustReal => robust(),
        };
        let complex = matches!(self.formula, Formula::Complex | Formula::Robust);
        let entry = |(size, (r, q)): (f64, (&f64, &f64))| {
            let size = size.clamp(epsilon, epsilon.recip());
            // Signs are compared, because the product may underflow.
            let agree = *r != 0.0 && *q != 0.0 && r.signum() == q.signum();
            if complex && agree { Complex64::new(0.0, size) } else { Complex64::from(size) }
        };
        Ok(sizes.into_iter().zip(r.iter().zip(&q)).map(entry).collect())
    }
}
