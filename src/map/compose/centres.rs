//! [`Centres`]: the options of a cluster hybrid by centres.

use super::Diagonal;
use crate::data::Clustering;
use crate::theory::complex_exponential::Symmetry;

/// The options of [`Clustered::by_centres`](super::Clustered::by_centres): the clusters of both sides, the formula of A, and
/// whether maps average over ω and −ω.
///
/// ```
/// use random_features::compose::{Centres, Diagonal};
/// use random_features::data::Clustering;
/// use random_features::ndarray::arr2;
/// let (queries, keys) = (
///     Clustering::new(arr2(&[[1.0, 0.5]]))?,
///     Clustering::new(arr2(&[[0.5, 1.5]]))?,
/// );
/// let centres = Centres::new(&queries, &keys)
///     .with_diagonal(Diagonal::real())
///     .symmetric();
/// assert_eq!(centres.diagonal, Diagonal::real());
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Centres<'a> {
    /// The clusters of the points on side X.
    pub queries: &'a Clustering,
    /// The clusters of the points on side Y.
    pub keys: &'a Clustering,
    /// The formula for A from the centres of a pair of clusters; [`Diagonal::complex`] by default.
    pub diagonal: Diagonal,
    /// Whether maps average over ω and −ω; [`Symmetry::Plain`] by default.
    pub symmetry: Symmetry,
}

impl<'a> Centres<'a> {
    /// Options with these clusters, the complex diagonal of each pair of centres and plain maps.
    pub fn new(queries: &'a Clustering, keys: &'a Clustering) -> Self {
        Centres { queries, keys, diagonal: Diagonal::complex(), symmetry: Symmetry::Plain }
    }

    /// Sets the formula for A.
    #[must_use]
    pub fn with_diagonal(self, diagonal: impl Into<Diagonal>) -> Self {
        Centres { diagonal: diagonal.into(), ..self }
    }

    /// Sets the symmetry of the maps.
    #[must_use]
    pub fn with_symmetry(self, symmetry: Symmetry) -> Self {
        Centres { symmetry, ..self }
    }

    /// Makes maps average over ω and −ω.
    #[must_use]
    pub fn symmetric(self) -> Self {
        self.with_symmetry(Symmetry::Symmetric)
    }
}
