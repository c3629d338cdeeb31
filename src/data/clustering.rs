//! [`Clustering`]: cluster centres, found by k-means or given.

use ndarray::{Array2, ArrayRef1, ArrayRef2};
use rand::RngExt;

use super::Statistics;
use crate::Real;
use crate::error::{Error, Result, check_positive, check_size};
use crate::generator::{Generator, rng};
use crate::memory::check_memory;
use crate::numeric::{Isa, matrix_of, nearest, slice_of, squared_distance, squared_norm};
use crate::once::once;
use crate::{progress, threads};

/// The maximum number of k-means steps; more than 20 are rarely needed.
const STEPS: usize = 100;
/// The number of points that are visited between two checks for cancellation.
const POINTS: usize = 4096;
/// The number of points that are one piece of work.
const RUN: usize = 1024;

/// Clusters of points in ℝᵈ: the centre and the mean squares of each.
///
/// ```
/// use random_features::ndarray::{arr1, arr2};
/// use random_features::data::Clustering;
/// let points = arr2(&[[0.0f32, 1.0], [4.0, 5.0], [0.0, 3.0], [6.0, 5.0]]);
/// let clusters = Clustering::of(&points, 2, 1)?;
/// let near = clusters.nearest(&arr1(&[1.0, 1.0]))?;
/// assert_eq!(clusters.centres().row(near), arr1(&[0.0, 2.0]));
/// assert_eq!(clusters.mean_squares().row(near), arr1(&[0.0, 5.0]));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// A point belongs to the cluster of the nearest centre, or the first of several equally near ones.
/// [`of`](Clustering::of) finds k centres by k-means. Initial centres are points: each is the best of a few that are
/// drawn with probabilities proportional to the squared distance from the nearest centre so far (greedy k-means++).
/// Then centres move to the means of their points until no point changes its cluster, at most 100 times. A cluster that
/// loses all points gets the point that is farthest from its centre.
///
/// Computations are in `f64` for any type of points. Equal points and seeds give equal clusters on any machine. k-means
/// finds a local optimum; where clusters overlap, other seeds find other optima.
///
/// # Cost
/// O(nkd) per step and O(nkd log k) for the initial centres; memory for two copies of the points. Finding the nearest
/// centre costs O(kd). Initial centres and steps are steps of its [progress](crate::progress).
///
/// # References
/// Arthur and Vassilvitskii, *k-means++: The Advantages of Careful Seeding*; Lloyd, *Least Squares Quantization in PCM*.
#[doc(alias = "k-means")]
#[doc(alias = "KMeans")]
#[derive(Clone, Debug, PartialEq)]
pub struct Clustering {
    /// The centres, k × d, in standard layout.
    centres: Array2<f64>,
    /// The mean of xₗ² over the points of each cluster, k × d.
    mean_squares: Array2<f64>,
}

impl Clustering {
    /// Finds k clusters of the rows of `points`, n × d.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if k or d is 0 or there are fewer than k distinct points (points at a distance
    /// whose square is 0 in `f64` are not distinct), [`NotFinite`](Error::NotFinite) with the first row that holds NaN
    /// or an infinity or has a norm above 6·10¹⁵³, [`NoData`](Error::NoData) without points, [`Memory`](Error::Memory) if copies
    /// of the points do not fit in memory, [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    pub fn of<T: Real>(points: &ArrayRef2<T>, k: usize, seed: u64) -> Result<Self> {
        Self::by(points, k, &mut rng(seed))
    }

    #[inline(never)]
    pub(crate) fn by<T: Real>(points: &ArrayRef2<T>, k: usize, rng: &mut Generator) -> Result<Self> {
        check_positive("the number of clusters k", k)?;
        let points = ValidatedPoints::new(points)?;
        let centres = lloyd(&points, first_centres(&points, k, rng)?)?;
        Clustering::new(centres)?.with_points(&points)
    }

    /// Clusters with these centres in rows, k × d, and no spread, as if all points were at the centres.
    ///
    /// # Errors
    /// The errors of [`from_parts`](Clustering::from_parts).
    pub fn new(centres: Array2<f64>) -> Result<Self> {
        let mean_squares = centres.pow2();
        Self::from_parts(centres, mean_squares)
    }

    /// Clusters with these centres and means of xₗ² over the points x of each cluster, both k × d.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is no cluster or no dimension, [`Shape`](Error::Shape) if the arrays do
    /// not fit, [`NotFinite`](Error::NotFinite) with the first centre that is not finite or has a norm above 6·10¹⁵³,
    /// [`Entry`](Error::Entry) with the first row of a mean square that is negative or not finite.
    pub fn from_parts(centres: Array2<f64>, mean_squares: Array2<f64>) -> Result<Self> {
        check_positive("the number of clusters k", centres.nrows())?;
        check_positive("the dimension d", centres.ncols())?;
        check_size("the number of rows of the mean squares", centres.nrows(), mean_squares.nrows())?;
        check_size("the number of columns of the mean squares", centres.ncols(), mean_squares.ncols())?;
        let standard = |array: Array2<f64>| array.as_standard_layout().into_owned();
        let centres = standard(centres);
        let rows = slice_of(&centres).chunks_exact(centres.ncols());
        check_rows("the centres", rows)?;
        let wrong = |(_, v): &(_, &f64)| !(v.is_finite() && **v >= 0.0);
        match mean_squares.indexed_iter().find(wrong) {
            None => Ok(Clustering { mean_squares: standard(mean_squares), centres }),
            Some(((row, _), value)) => {
                let (what, domain) = ("the mean squares", "finite and not negative");
                Err(Error::Entry { what, row, value: *value, domain })
            }
        }
    }

    /// Sets the mean squares of each cluster to those of its points among `points`, n × d. Clusters without a point keep theirs.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the points do not have d columns, [`NotFinite`](Error::NotFinite) with the first row that holds
    /// NaN or an infinity or has a norm above 6·10¹⁵³, [`Memory`](Error::Memory) if copies of the points do not fit in memory,
    /// [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    #[inline(never)]
    pub fn with_spread_of<T: Real>(self, points: &ArrayRef2<T>) -> Result<Self> {
        check_size("the number of columns of the points", self.dim(), points.ncols())?;
        self.with_points(&ValidatedPoints::new(points)?)
    }

    fn with_points(mut self, points: &ValidatedPoints) -> Result<Self> {
        let mut members: Vec<Vec<f64>> = vec![Vec::new(); self.len()];
        for (i, point) in points.rows().enumerate() {
            pause(i)?;
            members[self.nearest_to(point)].extend(point);
        }
        for (members, mut row) in members.into_iter().zip(self.mean_squares.rows_mut()) {
            if members.is_empty() {
                continue;
            }
            let members = matrix_of(members.len() / points.dim, points.dim, members);
            let mean_squares = Statistics::of(&members)?.mean_squares()?;
            row.iter_mut().zip(mean_squares).for_each(|(own, square)| *own = square);
        }
        Ok(self)
    }

    /// k, the number of clusters.
    #[allow(clippy::len_without_is_empty)] // There is at least one.
    pub fn len(&self) -> usize {
        self.centres.nrows()
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        self.centres.ncols()
    }

    /// The centres, k × d.
    pub fn centres(&self) -> &Array2<f64> {
        &self.centres
    }

    /// The means of xₗ² over the points x of each cluster, k × d.
    pub fn mean_squares(&self) -> &Array2<f64> {
        &self.mean_squares
    }

    /// The cluster of a point: the index of the nearest centre, the lowest index if several are equally near.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the point does not have d entries, [`NotFinite`](Error::NotFinite) if one is not
    /// finite or if the squared distance to each centre overflows `f64`.
    #[inline(never)]
    pub fn nearest<T: Real>(&self, point: &ArrayRef1<T>) -> Result<usize> {
        check_size("the dimension of the point", self.dim(), point.len())?;
        if let Some(column) = point.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: "the point", row: 0, column: Some(column) });
        }
        let (place, distance) = self.nearest_with_distance(&point.to_vec());
        if !distance.is_finite() {
            return Err(Error::NotFinite {
                what: "the squared distance of the point to a centre",
                row: 0,
                column: None,
            });
        }
        Ok(place)
    }

    /// The nearest centre of a point in ℝᵈ; 0 if it is not finite.
    pub(crate) fn nearest_to<T: Real>(&self, point: &[T]) -> usize {
        self.nearest_with_distance(point).0
    }

    /// The nearest centre of a point in ℝᵈ, and the squared distance to it; 0 and ∞ if no distance is finite.
    fn nearest_with_distance<T: Real>(&self, point: &[T]) -> (usize, f64) {
        nearest(Isa::best(), slice_of(&self.centres), point)
    }
}

/// Rejects points whose squared distances may overflow.
fn check_rows<'a>(what: &'static str, mut rows: impl Iterator<Item = &'a [f64]>) -> Result<()> {
    // ‖x − y‖² ≤ 4 max(‖x‖², ‖y‖²)
    match rows.position(|row| !(4.0 * squared_norm(Isa::best(), row, 1.0, &[])).is_finite()) {
        None => Ok(()),
        Some(row) => Err(Error::NotFinite { what, row, column: None }),
    }
}

/// Validated points in standard layout.
struct ValidatedPoints {
    values: Vec<f64>,
    dim: usize,
}

impl ValidatedPoints {
    fn new<T: Real>(points: &ArrayRef2<T>) -> Result<Self> {
        check_positive("the dimension d", points.ncols())?;
        // The points of each cluster are copied once more.
        check_memory("points", points.nrows(), points.ncols().saturating_mul(2 * size_of::<f64>()))?;
        let values = points.iter().map(|v| v.widen()).collect();
        let points = ValidatedPoints { values, dim: points.ncols() };
        check_rows("the points", points.rows())?;
        Ok(points)
    }

    fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> + Clone {
        self.values.chunks_exact(self.dim)
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.dim..(i + 1) * self.dim]
    }
}

/// Checks for cancellation, once for some thousand points.
fn pause(point: usize) -> Result<()> {
    if point.is_multiple_of(POINTS) { progress::check() } else { Ok(()) }
}

/// Initial centres by k-means++.
fn first_centres(points: &ValidatedPoints, k: usize, rng: &mut Generator) -> Result<Array2<f64>> {
    let n = points.rows().len();
    if n == 0 {
        return Err(Error::NoData { what: "k-means" });
    }
    let (name, domain) = ("the number of clusters k", "at most the number of distinct points");
    let too_many = Error::Parameter { name, value: k as f64, domain };
    if k > n {
        return Err(too_many);
    }
    let chosen = distinct(points, k, rng)?;
    if chosen.len() < k {
        return Err(too_many);
    }
    let mut centres = Array2::zeros((k, points.dim));
    for (mut centre, row) in centres.rows_mut().into_iter().zip(chosen) {
        centre.assign(&ndarray::aview1(points.row(row)));
    }
    Ok(centres)
}

/// The rows that k-means++ takes as k initial centres, or as many as there are distinct rows; there must be k rows.
pub(crate) fn distinct_rows(points: &ArrayRef2<f64>, k: usize, rng: &mut Generator) -> Result<Vec<usize>> {
    distinct(&ValidatedPoints::new(points)?, k, rng)
}

/// Chooses k rows, or all that differ: each is far from those before it.
fn distinct(points: &ValidatedPoints, k: usize, rng: &mut Generator) -> Result<Vec<usize>> {
    let n = points.rows().len();
    let mut distances = vec![f64::INFINITY; n];
    let mut chosen = vec![rng.random_range(0..n)];
    for i in 0..k {
        if i > 0 {
            let candidates =
                (0..2 + k.ilog2()).map(|_| drawn(&distances, rng)).collect::<Option<Vec<usize>>>();
            let Some(candidates) = candidates else { break };
            chosen.push(best(points, &distances, &candidates)?);
        }
        let centre = points.row(chosen[i]);
        threads::for_each(distances.chunks_mut(RUN).enumerate(), |(run, distances)| {
            for (distance, row) in distances.iter_mut().zip(run * RUN..) {
                *distance = distance.min(squared_distance(Isa::best(), points.row(row), centre));
            }
        });
        progress::check()?;
        progress::step("initial centres", i + 1, k)?;
    }
    Ok(chosen)
}

/// The candidate with the smallest resulting sum of squared distances; the first if several are equal.
fn best(points: &ValidatedPoints, distances: &[f64], candidates: &[usize]) -> Result<usize> {
    let largest = distances.iter().copied().fold(0.0, f64::max);
    let left = |candidate: usize| {
        let mut sum = 0.0;
        for (i, (distance, point)) in distances.iter().zip(points.rows()).enumerate() {
            pause(i)?;
            // Distances are relative to the largest, because their sum may overflow.
            sum += distance.min(squared_distance(Isa::best(), point, points.row(candidate))) / largest;
        }
        Ok((candidate, sum))
    };
    let sums = threads::map(candidates.iter().copied(), left);
    let sums = sums.into_iter().collect::<Result<Vec<(usize, f64)>>>()?;
    Ok(sums.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(candidate, _)| candidate))
}

/// An index drawn with probability proportional to its weight; `None` if all weights are 0.
pub(crate) fn drawn(weights: &[f64], rng: &mut Generator) -> Option<usize> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let shares =
        || weights.iter().map(|weight| weight / largest).enumerate().filter(|(_, share)| *share > 0.0);
    let target = rng.random::<f64>() * shares().map(|(_, share)| share).sum::<f64>();
    let mut sum = 0.0;
    let reached = |(_, share): &(usize, f64)| {
        sum += share;
        sum > target
    };
    // Rounding may put the target above the last sum.
    shares().find(reached).or(shares().next_back()).map(|(i, _)| i)
}

/// Moves centres to the means of their points until no point changes its cluster.
fn lloyd(points: &ValidatedPoints, mut centres: Array2<f64>) -> Result<Array2<f64>> {
    let mut clusters = Vec::new();
    for step in 0..STEPS {
        let assigned = assign(points, &centres)?;
        if assigned == clusters {
            break;
        }
        clusters = assigned;
        move_to_means(points, &clusters, &mut centres);
        progress::step("steps of k-means", step + 1, None::<usize>)?;
    }
    Ok(centres)
}

/// The cluster of each point. Empty clusters get a point if enough points differ from their centres.
fn assign(points: &ValidatedPoints, centres: &Array2<f64>) -> Result<Vec<usize>> {
    let n = points.rows().len();
    let of_run = |first: usize| {
        let rows = first..n.min(first + RUN);
        rows.map(|row| nearest(Isa::best(), slice_of(centres), points.row(row))).collect::<Vec<_>>()
    };
    let assigned = threads::map((0..n).step_by(RUN), of_run);
    progress::check()?;
    let (mut clusters, mut distances): (Vec<usize>, Vec<f64>) = assigned.into_iter().flatten().unzip();
    let mut counts = vec![0usize; centres.nrows()];
    clusters.iter().for_each(|cluster| counts[*cluster] += 1);
    for empty in 0..counts.len() {
        if counts[empty] > 0 {
            continue;
        }
        let candidates = (0..clusters.len()).filter(|i| counts[clusters[*i]] > 1);
        let farther = |best: Option<usize>, i: usize| match best {
            Some(best) if distances[i] <= distances[best] => Some(best),
            _ => Some(i),
        };
        if let Some(i) = candidates.fold(None, farther).filter(|i| distances[*i] > 0.0) {
            counts[clusters[i]] -= 1;
            (clusters[i], distances[i], counts[empty]) = (empty, 0.0, 1);
        }
    }
    Ok(clusters)
}

fn move_to_means(points: &ValidatedPoints, clusters: &[usize], centres: &mut Array2<f64>) {
    let mut offsets = Array2::<f64>::zeros(centres.dim());
    let mut counts = vec![0.0; centres.nrows()];
    for (point, cluster) in points.rows().zip(clusters) {
        counts[*cluster] += 1.0;
        // Offsets are taken from the old centre, so that the mean of points equal to it is exact.
        let sums = offsets.row_mut(*cluster).into_iter().zip(centres.row(*cluster));
        sums.zip(point).for_each(|((sum, centre), v)| *sum += v - centre);
    }
    for ((mut centre, offset), count) in centres.rows_mut().into_iter().zip(offsets.rows()).zip(counts) {
        if count > 0.0 {
            centre.iter_mut().zip(offset).for_each(|(centre, offset)| *centre += offset / count);
        }
    }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::Clustering;
    use crate::error::{Error, Result};
    use crate::sealed::{AnyScalar, sealed_fields};
    use ndarray::Array2;

    sealed_fields! {
        Clustering, AnyScalar,
        #[serde(rename = "Clustering")]
        struct StoredClustering {
            #[serde(with = "crate::exact")]
            centres: Array2<f64>,
            #[serde(with = "crate::exact")]
            mean_squares: Array2<f64>,
        }
    }

    impl TryFrom<StoredClustering> for Clustering {
        type Error = Error;

        fn try_from(StoredClustering { centres, mean_squares }: StoredClustering) -> Result<Self> {
            Clustering::from_parts(centres, mean_squares)
        }
    }
}

once!(Clustering::with_spread_of::<T>, Clustering::nearest::<T>, Clustering::by::<T>);

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::arr2;

    #[test]
    fn empty_clusters_get_the_farthest_points() {
        let points = ValidatedPoints::new(&arr2(&[[0.0], [1.0], [10.0], [12.0], [30.0]])).unwrap();
        // No point is near the second and the third centre.
        let centres = arr2(&[[0.0], [1000.0], [2000.0]]);
        assert_eq!(assign(&points, &centres).unwrap(), [0, 0, 0, 2, 1]);
        assert_eq!(lloyd(&points, centres).unwrap(), arr2(&[[0.5], [30.0], [11.0]]));
        // No point moves if all points equal their centres.
        let equal = ValidatedPoints::new(&arr2(&[[2.0], [2.0]])).unwrap();
        assert_eq!(assign(&equal, &arr2(&[[2.0], [5.0]])).unwrap(), [0, 0]);
        assert_eq!(lloyd(&equal, arr2(&[[2.0], [5.0]])).unwrap(), arr2(&[[2.0], [5.0]]));
    }

    #[test]
    fn draws_follow_the_weights() {
        let mut rng = crate::rng(3);
        assert_eq!(drawn(&[0.0, 0.0], &mut rng), None);
        let weights = [0.0, 1e300, 0.0, 3e300, 0.0];
        let third = (0..4000).filter(|_| drawn(&weights, &mut rng) == Some(3)).count();
        // 4000 draws with probability ¾: 5 standard deviations are 137, a false alarm in 1.7 million.
        assert!(third.abs_diff(3000) < 137, "{third}");
        assert!((0..1000).all(|_| [Some(1), Some(3)].contains(&drawn(&weights, &mut rng))));
    }
}
