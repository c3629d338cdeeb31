//! [`Clustered`]: a feature map of its own for each pair of clusters.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array2, ArrayRef1, ArrayRef2, ArrayView1, ArrayView2, Axis};
use rand::Rng;

use super::room::Room;
use super::{Clustering, Diagonal};
use crate::error::{Error, Result, check_size};
use crate::frequency::Frequencies;
use crate::kernel::{Kernel, Softmax};
use crate::map::{Properties, Scratch, Side, Target, Tile, Transform};
use crate::numeric::{Isa, squared_norm};
use crate::projection::Projection;
use crate::theory::complex_exponential::Symmetry;
use crate::{ComplexExponential, FeatureMap, Real};

/// The cluster hybrid: for each pair of a cluster of queries and a cluster of keys a map that is accurate there.
///
/// # Definition
/// K̂(x, y) = Σᵢⱼ λᵢⱼ P̂ᵢⱼ(x, y) with λᵢⱼ = 1 if x is in cluster i of the queries and y in cluster j of the keys, else
/// 0. A pair of clusters has its own blocks of features: x in i has the features of P̂ᵢⱼ for all j, y in j those of
/// P̂ᵢⱼ for all i, and all other blocks are absent (log scale −∞). They are neither computed nor multiplied, and their
/// values stay as they were. So exactly one P̂ᵢⱼ estimates each pair of points.
///
/// [`new`](Clustered::new) takes [complex-exponential](ComplexExponential) maps with the diagonal A of each pair of
/// centres, all on one projection; [`from_bases`](Clustered::from_bases) takes any maps. A point that holds NaN or an
/// infinity belongs to no cluster: it gets NaN in every block.
///
/// # Variance
/// That of P̂ᵢⱼ for the clusters of x and y. Unbiased if clusters are chosen without a look at the frequencies.
///
/// # Exact where
/// x and y are centres, with [`Formula::Complex`](super::Formula::Complex), for any draw, if no entry of A had to be
/// limited.
///
/// # Cost
/// The nearest centre and C_k bases for a query, C_q for a key: O(C_q d + C_k m d). Σ Dᵢⱼ values a point, of which all
/// but those of one row or column of pairs are untouched. A tile's points are sorted by cluster first, so many clusters
/// make small products.
///
/// # Example
/// ```
/// use ndarray::arr2;
/// use random_features::frequency::{Independent, draw};
/// use random_features::hybrid::{Clustered, Clustering, Formula};
/// use random_features::kernel::Softmax;
/// use random_features::theory::complex_exponential::Symmetry;
/// use random_features::FeatureMap;
/// let (queries, keys) = (arr2(&[[1.0, 0.5], [-0.5, 2.0]]), arr2(&[[0.5, 1.5]]));
/// let (clusters, others) = (Clustering::new(queries.clone())?, Clustering::new(keys.clone())?);
/// let omega = draw(2, 8, &Independent, &mut random_features::rng(1))?;
/// let map = Clustered::<f64>::new(
///     omega, &clusters, &others, Formula::Complex, Symmetry::Plain, Softmax::default(),
/// )?;
/// let gram = map.gram(&queries, &keys)?;
/// assert!((gram[[0, 0]] / 1.25f64.exp() - 1.0).abs() < 1e-12);
/// assert!((gram[[1, 0]] / 2.75f64.exp() - 1.0).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, section 2.4 and definition H.2.
#[derive(Clone, Debug)]
pub struct Clustered<T> {
    queries: Clustering,
    keys: Clustering,
    /// C_q × C_k.
    bases: Array2<Arc<dyn FeatureMap<T>>>,
    /// Where the features of each pair stand.
    parts: Array2<Part>,
    blocks: Vec<usize>,
    properties: Properties,
    /// Whether all bases have exponents.
    logarithmic: bool,
    fingerprint: u64,
}

/// The columns and blocks of a pair of clusters.
#[derive(Clone, Debug)]
struct Part {
    columns: Range<usize>,
    blocks: Range<usize>,
}

impl<T: Real> Clustered<T> {
    /// Complex-exponential maps on these frequencies, with A from the centres of each pair of clusters.
    ///
    /// Clusters are those of the points themselves, before the target's lengthscale divides them; A is the same for
    /// both.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the frequencies, the clusters or the target's lengthscales are for different
    /// dimensions, [`Parameter`](Error::Parameter) if ε is outside (0, 1], [`Target`](Error::Target) as
    /// [`ComplexExponential::new`].
    pub fn new(
        omega: Frequencies,
        queries: &Clustering,
        keys: &Clustering,
        diagonal: impl Into<Diagonal>,
        symmetry: Symmetry,
        target: impl Into<Target>,
    ) -> Result<Self> {
        let (diagonal, target) = (diagonal.into(), target.into());
        let projection = Arc::new(Projection::unscaled(omega));
        let mut bases: Vec<Arc<dyn FeatureMap<T>>> = Vec::with_capacity(queries.len() * keys.len());
        for i in 0..queries.len() {
            for j in 0..keys.len() {
                let a = Transform::diagonal(diagonal.entries((queries, i), (keys, j))?)?;
                let (projection, target) = (projection.clone(), target.clone());
                bases.push(Arc::new(ComplexExponential::with_projection(projection, a, symmetry, target)?));
            }
        }
        let shape = (queries.len(), keys.len());
        let wrong = |_| Error::Shape { what: "the number of pairs", expected: shape.0 * shape.1, found: 0 };
        Self::from_bases(queries.clone(), keys.clone(), Array2::from_shape_vec(shape, bases).map_err(wrong)?)
    }

    /// As [`new`](Clustered::new), for the softmax kernel, with C_q clusters of the rows of `queries` and C_k of those
    /// of `keys` by k-means.
    ///
    /// # Errors
    /// As [`Clustering::of`] and [`new`](Clustered::new).
    pub fn of_data<R: Rng + ?Sized>(
        omega: Frequencies,
        queries: &ArrayRef2<T>,
        keys: &ArrayRef2<T>,
        clusters: (usize, usize),
        diagonal: impl Into<Diagonal>,
        rng: &mut R,
    ) -> Result<Self> {
        let queries = Clustering::of(queries, clusters.0, rng)?;
        let keys = Clustering::of(keys, clusters.1, rng)?;
        Self::new(omega, &queries, &keys, diagonal, Symmetry::Plain, Softmax::default())
    }

    /// Any map for each pair of clusters, C_q × C_k; all should estimate the same kernel.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the numbers of clusters or the dimensions do not fit.
    pub fn from_bases(
        queries: Clustering,
        keys: Clustering,
        bases: Array2<Arc<dyn FeatureMap<T>>>,
    ) -> Result<Self> {
        check_size("the number of rows of the bases", queries.len(), bases.nrows())?;
        check_size("the number of columns of the bases", keys.len(), bases.ncols())?;
        check_size("the dimension of the keys' clusters", queries.dim(), keys.dim())?;
        for base in &bases {
            check_size("the dimension of a base", queries.dim(), base.input_dim())?;
        }
        let bases = bases.as_standard_layout().into_owned();
        let blocks: Vec<usize> = bases.iter().flat_map(|base| base.blocks()).copied().collect();
        let non_negative = bases.iter().all(|base| base.properties().non_negative);
        // A pair's blocks are those of one query cluster and of one key cluster, so sides agree only if all points
        // share them.
        let symmetric = bases.len() == 1 && bases.iter().all(|base| base.properties().symmetric);
        Ok(Clustered {
            parts: parts(&bases),
            blocks,
            properties: Properties { symmetric, non_negative },
            logarithmic: bases.iter().all(|base| has_exponents(base.as_ref())),
            fingerprint: fingerprint(&queries, &keys, &bases),
            queries,
            keys,
            bases,
        })
    }

    /// The clusters of a side.
    pub fn clusters(&self, side: Side) -> &Clustering {
        match side {
            Side::X => &self.queries,
            Side::Y => &self.keys,
        }
    }

    /// The map of each pair of clusters, C_q × C_k.
    pub fn bases(&self) -> &Array2<Arc<dyn FeatureMap<T>>> {
        &self.bases
    }

    /// The bases and parts of a cluster of a side.
    fn line(&self, side: Side, cluster: usize) -> impl Iterator<Item = (&dyn FeatureMap<T>, &Part)> {
        let axis = Axis(side as usize);
        let (bases, parts) = (self.bases.index_axis(axis, cluster), self.parts.index_axis(axis, cluster));
        bases.into_iter().map(|base| base.as_ref()).zip(parts)
    }

    /// Row numbers by cluster, those of rows in no cluster last.
    fn sorted(&self, side: Side, x: ArrayView2<'_, T>) -> Vec<(usize, usize)> {
        let clusters = self.clusters(side);
        let cluster = |row: ArrayView1<'_, T>| {
            let finite = |row: &&[T]| squared_norm(Isa::best(), row, 1.0, &[]).is_finite();
            row.to_slice().filter(finite).map_or(clusters.len(), |row| clusters.nearest_to(row))
        };
        let mut rows: Vec<_> = x.rows().into_iter().map(cluster).zip(0..).collect();
        rows.sort_unstable();
        rows
    }

    /// Lets `fill` write the blocks of each cluster's rows.
    fn fill_with(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
        signed: bool,
        fill: impl Fn(&dyn FeatureMap<T>, ArrayView2<'_, T>, &mut Tile<'_, T>, &mut Scratch<T>),
    ) {
        let x = x.as_standard_layout();
        (0..x.nrows()).for_each(|i| tile.row(i).1.fill(f64::NEG_INFINITY));
        let sorted = self.sorted(side, x.view());
        for group in sorted.chunk_by(|a, b| a.0 == b.0) {
            let (cluster, rows) = (group[0].0, || group.iter().map(|(_, i)| *i));
            if cluster == self.clusters(side).len() {
                rows().for_each(|i| no_numbers(tile, i));
            } else if group.len() == x.nrows() {
                for (base, part) in self.line(side, cluster) {
                    fill(base, x.view(), &mut tile.part(part.columns.clone(), part.blocks.clone()), scratch);
                }
            } else {
                let mut points = scratch.take(group.len() * x.ncols());
                let places = points.chunks_exact_mut(x.ncols());
                places.zip(rows()).for_each(|(place, i)| {
                    place.iter_mut().zip(x.row(i)).for_each(|(out, v)| *out = *v);
                });
                let Ok(gathered) = ArrayView2::from_shape((group.len(), x.ncols()), &points) else {
                    continue;
                };
                for (base, part) in self.line(side, cluster) {
                    let shape = (part.columns.len(), part.blocks.len());
                    let mut room = Room::new(group.len(), shape, signed, scratch);
                    room.fill(|tile| fill(base, gathered, tile, scratch));
                    scatter(&room, rows(), part, tile);
                    room.give_back(scratch);
                }
                scratch.give(points);
            }
        }
    }
}

/// Where the features of each pair stand: one after another.
fn parts<T: Real>(bases: &Array2<Arc<dyn FeatureMap<T>>>) -> Array2<Part> {
    let (mut column, mut block) = (0, 0);
    bases.map(|base| {
        let part =
            Part { columns: column..column + base.feature_dim(), blocks: block..block + base.blocks().len() };
        (column, block) = (part.columns.end, part.blocks.end);
        part
    })
}

/// Whether a map can stop before exponentials; it says the same for all points, so that one will do.
fn has_exponents<T: Real>(map: &dyn FeatureMap<T>) -> bool {
    let (width, blocks) = (map.feature_dim(), map.blocks().len());
    let (mut values, mut signs) = (vec![T::zero(); width], vec![T::one(); width]);
    let mut scales = vec![0.0; blocks];
    let origin = Array2::zeros((1, map.input_dim()));
    let tile = Tile::new(&mut values, &mut scales, 1, width, blocks).map(|tile| tile.with_signs(&mut signs));
    tile.is_some_and(|mut tile| {
        map.fill_exponents(Side::X, origin.view(), &mut tile, &mut Scratch::default())
    })
}

fn fingerprint<T: Real>(
    queries: &Clustering,
    keys: &Clustering,
    bases: &Array2<Arc<dyn FeatureMap<T>>>,
) -> u64 {
    if bases.iter().any(|base| base.fingerprint() == 0) {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(b"clustered");
    for clusters in [queries, keys] {
        hasher.write_usize(clusters.len());
        clusters.centres().iter().for_each(|v| hasher.write_u64(v.to_bits()));
    }
    bases.iter().for_each(|base| hasher.write_u64(base.fingerprint()));
    hasher.finish().max(1)
}

/// A row that is not a number, in every block.
fn no_numbers<T: Real>(tile: &mut Tile<'_, T>, i: usize) {
    let (values, scales) = tile.row(i);
    values.fill(T::nan());
    scales.fill(f64::NAN);
}

/// Copies rows of features to these rows of a part of a tile.
fn scatter<T: Real>(room: &Room<T>, rows: impl Iterator<Item = usize>, part: &Part, tile: &mut Tile<'_, T>) {
    let mut tile = tile.part(part.columns.clone(), part.blocks.clone());
    for (own, i) in rows.enumerate() {
        let own = room.row(own);
        let (values, scales) = tile.row(i);
        values.copy_from_slice(own.values);
        scales.copy_from_slice(own.log_scales);
        tile.signs(i).iter_mut().zip(own.signs).for_each(|(out, sign)| *out = *sign);
    }
}

impl<T: Real> FeatureMap<T> for Clustered<T> {
    fn input_dim(&self) -> usize {
        self.queries.dim()
    }

    fn blocks(&self) -> &[usize] {
        &self.blocks
    }

    fn properties(&self) -> Properties {
        self.properties
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        self.fill_with(side, x, tile, scratch, false, |base, x, tile, scratch| {
            base.fill(side, x, tile, scratch)
        });
    }

    fn fill_exponents(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> bool {
        if self.logarithmic {
            self.fill_with(side, x, tile, scratch, true, |base, x, tile, scratch| {
                base.fill_exponents(side, x, tile, scratch);
            });
        }
        self.logarithmic
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        self.bases.first().and_then(|base| base.kernel())
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        check_size("the dimension of x", self.input_dim(), x.len())?;
        check_size("the dimension of y", self.input_dim(), y.len())?;
        let pair = [self.queries.nearest_to(&x.to_vec()), self.keys.nearest_to(&y.to_vec())];
        self.bases[pair].log_variance(x, y)
    }
}
