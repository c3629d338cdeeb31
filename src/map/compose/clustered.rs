//! [`Clustered`]: a separate feature map for each pair of clusters.

use ndarray::{Array2, ArrayRef1};

use super::part::common_kernel;
use super::{Centres, Known, Part, Size};
use crate::data::Clustering;
use crate::digest::{Digest, Identify};
use crate::engine::{MapPlan, Routed};
use crate::error::{Result, check_size};
use crate::map::{AnyKernel, Map, Omega, PlainRecipe, Transform};
use crate::{ComplexExponential, Real};

/// The cluster hybrid: a separate feature map for each pair of a query cluster and a key cluster.
///
/// ```
/// use random_features::Map;
/// use random_features::compose::{Centres, Clustered};
/// use random_features::data::Clustering;
/// use random_features::frequency::Independent;
/// use random_features::kernel::Softmax;
/// use random_features::ndarray::arr2;
/// let (queries, keys) =
///     (arr2(&[[1.0, 0.5], [-0.5, 2.0]]), arr2(&[[0.5, 1.5]]));
/// let (clusters, others) =
///     (Clustering::new(queries.clone())?, Clustering::new(keys.clone())?);
/// let omega = Independent.draw(2, 8, 1)?;
/// let map: Map<f64> = Clustered::by_centres(
///     Centres::new(&clusters, &others),
///     omega,
///     Softmax::default(),
/// )?;
/// let gram = map.gram(&queries, &keys)?;
/// assert!((gram[[0, 0]] / 1.25f64.exp() - 1.0).abs() < 1e-12);
/// assert!((gram[[1, 0]] / 2.75f64.exp() - 1.0).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// K̂(x, y) = Σᵢⱼ λᵢⱼ P̂ᵢⱼ(x, y) with λᵢⱼ = 1 if x is in cluster i of the queries and y in cluster j of the keys, else
/// 0. Each pair of clusters has its own blocks of features: x in cluster i has the features of P̂ᵢⱼ for all j, y in
///    cluster j has the features of P̂ᵢⱼ for all i, and all other blocks are absent (log scale −∞). Absent blocks are
///    neither computed nor multiplied, and their values are left unchanged. So exactly one P̂ᵢⱼ estimates each pair of
///    points.
///
/// [`by_centres`](Clustered::by_centres) uses [complex-exponential](ComplexExponential) maps with a diagonal A for each
/// pair of centres, all on one set of frequencies. [`from_bases`](Clustered::from_bases) takes any maps; hybrids among them
/// give the products of their features. A point with a NaN or an infinity belongs to no cluster and gets NaN in every block.
///
/// # Variance
/// The variance of P̂ᵢⱼ for the clusters of x and y. Estimates are unbiased if the clusters do not depend on the frequencies.
///
/// # Exact where
/// At the centres, for any draw, with [`Diagonal::complex`](super::Diagonal::complex) and if no entry of A had to be
/// limited.
///
/// # Cost
/// Finding the nearest centre and computing C_k bases for a query, C_q for a key: O(C_q d + C_k m d). A point has Σ Dᵢⱼ
/// values, of which only one row or column of pairs is written. The points of a tile are sorted by cluster first, so
/// many clusters mean small matrix products.
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, section 2.4 and definition H.2.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Clustered<M> {
    /// C_q clusters of the points on side X.
    pub queries: Clustering,
    /// C_k clusters of the points on side Y.
    pub keys: Clustering,
    /// C_q · C_k maps: the C_k maps of the first cluster of queries come first.
    pub bases: Vec<M>,
}

impl<M: Part> Clustered<M> {
    /// A complex-exponential map for each pair of clusters, with A from their centres and one set of frequencies for all.
    ///
    /// Clusters are of the original points, before division by the kernel's lengthscale, which does not change A.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the frequencies, the clusters or the kernel's lengthscales are for different
    /// dimensions, [`Parameter`](crate::Error::Parameter) if ε is outside (0, 1], [`Kernel`](crate::Error::Kernel) if the
    /// frequencies or the map do not serve the kernel.
    pub fn by_centres(
        centres: Centres<'_>,
        omega: impl Into<Omega>,
        kernel: impl Into<AnyKernel>,
    ) -> Result<M> {
        let Centres { queries, keys, diagonal, symmetry } = centres;
        let (omega, kernel) = (omega.into(), kernel.into());
        let mut bases = Vec::with_capacity(queries.len() * keys.len());
        for entries in diagonal.of_pairs(queries, keys) {
            let a = Transform::diagonal(entries?)?;
            let map = ComplexExponential::new(a, symmetry);
            bases.push(M::of_plain(PlainRecipe::new(map, omega.clone(), kernel.clone()))?);
        }
        Self::from_bases(queries.clone(), keys.clone(), bases)
    }

    /// A cluster hybrid of C_q · C_k given maps: the C_k maps of the first query cluster come first. All should estimate one
    /// kernel.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the number of maps or the dimensions do not fit.
    pub fn from_bases(queries: Clustering, keys: Clustering, bases: Vec<M>) -> Result<M> {
        M::of_composite(Clustered { queries, keys, bases }.into())
    }

    pub(super) fn check(&self) -> Result<()> {
        check_size("the number of bases", self.queries.len() * self.keys.len(), self.bases.len())?;
        check_size("the dimension of the keys' clusters", self.queries.dim(), self.keys.dim())?;
        self.bases
            .iter()
            .try_for_each(|base| check_size("the dimension of a base", self.queries.dim(), base.dim()))
    }

    pub(super) fn size(&self) -> Size {
        self.bases.iter().map(M::size).sum()
    }

    pub(super) fn known(&self) -> Known<M::Scalar> {
        Known::of_kernel(common_kernel(&self.bases))
    }

    pub(super) fn ln_variance(
        &self,
        _: &Known<M::Scalar>,
        x: &ArrayRef1<M::Scalar>,
        y: &ArrayRef1<M::Scalar>,
    ) -> Option<f64> {
        let pair = (self.queries.nearest_to(&x.to_vec()), self.keys.nearest_to(&y.to_vec()));
        self.bases[pair.0 * self.keys.len() + pair.1].ln_variance(x, y)
    }
}

impl<M> Clustered<M> {
    pub(super) fn dim(&self) -> usize {
        self.queries.dim()
    }

    pub(super) fn children(&self) -> Vec<&M> {
        self.bases.iter().collect()
    }

    pub(super) fn children_mut(&mut self) -> Vec<&mut M> {
        self.bases.iter_mut().collect()
    }

    pub(super) fn try_map<N, E>(&self, each: impl FnMut(&M) -> Result<N, E>) -> Result<Clustered<N>, E> {
        let bases = self.bases.iter().map(each).collect::<Result<_, E>>()?;
        Ok(Clustered { queries: self.queries.clone(), keys: self.keys.clone(), bases })
    }
}

impl<T: Real> Clustered<Map<T>> {
    /// A plan for each pair of clusters.
    pub(super) fn lower(&self) -> Result<MapPlan<T>> {
        let plan = |(i, j): (usize, usize)| self.bases[i * self.keys.len() + j].program().plan().clone();
        let plans = Array2::from_shape_fn((self.queries.len(), self.keys.len()), plan);
        let centres = [&self.queries, &self.keys].map(|clusters| clusters.centres().clone());
        Ok(MapPlan::Routed(Routed::new(centres, plans)))
    }
}

impl<M: Identify> Identify for Clustered<M> {
    fn identify(&self, digest: &mut Digest) {
        // Features do not depend on mean squares.
        [&self.queries, &self.keys].into_iter().for_each(|clusters| clusters.centres().identify(digest));
        self.bases.identify(digest);
    }
}

impl<M: std::fmt::Display> std::fmt::Display for Clustered<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (queries, keys) = (self.queries.len(), self.keys.len());
        write!(f, "a map for each of {queries} × {keys} pairs of clusters")?;
        self.bases.first().map_or(Ok(()), |first| write!(f, ", the first one [{first}]"))
    }
}
