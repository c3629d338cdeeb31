//! Sparse points in compressed rows, of the crate [`sprs`] (feature `sparse`).
//!
//! Features of sparse points cost O(m) for each coordinate that is not 0, and are bit-identical to those of the same
//! points in a dense array; so are the results of [`Smoother`] and [`RidgeStatistics`]. Matrices are n × d, points in
//! rows; matrices in compressed columns are converted first. Explicitly stored zeros are allowed.
//!
//! The cost O(m) holds for maps that project the points themselves (trigonometric, positive, hyperbolic, generalised,
//! sign and nonlinear ones, and hybrids of these) on dense [frequencies](crate::projection::Method). All others convert
//! some hundred points at a time to dense rows, which costs at least O(d) per point: structured frequencies, linear
//! images of points (complex exponentials, conditioning), Poisson and geometric maps, `EluPlusOne`, clusters,
//! user-defined maps, and centred inputs of ridge regressions (4096 at a time).
//!
//! # Example
//! ```
//! use ndarray::arr2;
//! use random_features::frequency::{Coupling, Orthogonal};
//! use random_features::sprs::CsMat;
//! use random_features::{Side, Trigonometric};
//!
//! let map = Trigonometric.gaussian::<f32>(Orthogonal.draw(1000, 64, 1)?, 5.0)?;
//! //  Two points with two and one coordinates: starts of rows, columns, values.
//! let x = CsMat::new((2, 1000), vec![0, 2, 3], vec![3, 700, 12], vec![1.0, -2.0, 0.5]);
//! let features = map.features_of_sparse(Side::X, x.view())?;
//! assert_eq!(features.values(), map.features(Side::X, &x.to_dense())?.values());
//! # Ok::<(), random_features::Error>(())
//! ```

use ndarray::{Array2, ArrayRef1, ArrayRef2};
use sprs::CsMatView;

use crate::apply::{Ridge, RidgeClassifier, RidgeStatistics, Smoother};
use crate::engine::{Points, SparsePoints};
use crate::error::Result;
use crate::{Features, Map, Real, Side};

/// Lets `run` read the rows of a matrix.
fn with_points<T: Real, R>(x: CsMatView<'_, T>, run: impl FnOnce(Points<'_, T>) -> R) -> R {
    if x.is_csc() {
        return with_points(x.to_csr().view(), run);
    }
    // Those of a slice of rows begin anywhere.
    let starts = x.proper_indptr();
    let (columns, values) = (x.indices(), x.data());
    run(Points::Sparse(SparsePoints { starts: &starts, columns, values, dim: x.cols() }))
}

impl<T: Real> Map<T> {
    /// [`features`](Map::features) of sparse points, n × d. Cost O(m) for each coordinate that is not 0 and O(D) a point,
    /// for most maps on dense [frequencies](crate::sparse).
    ///
    /// # Errors
    /// As [`features`](Map::features).
    pub fn features_of_sparse(&self, side: Side, x: CsMatView<'_, T>) -> Result<Features<T>> {
        with_points(x, |x| self.features_of_points(side, x))
    }
}

impl<T: Real> Smoother<T> {
    /// [`update`](Smoother::update) with sparse points, n × d.
    ///
    /// # Errors
    /// As [`update`](Smoother::update).
    pub fn update_sparse(&mut self, x: CsMatView<'_, T>, targets: &ArrayRef2<T>) -> Result<()> {
        with_points(x, |x| self.take_in(x, targets))
    }

    /// [`update_labels`](Smoother::update_labels) with sparse points, n × d.
    ///
    /// # Errors
    /// As [`update_labels`](Smoother::update_labels).
    pub fn update_labels_sparse(&mut self, x: CsMatView<'_, T>, labels: &[usize]) -> Result<()> {
        with_points(x, |x| self.take_in_labels(x, labels))
    }

    /// [`classify`](Smoother::classify) at sparse points, t × d.
    ///
    /// # Errors
    /// As [`classify`](Smoother::classify).
    pub fn classify_sparse(&self, x: CsMatView<'_, T>) -> Result<Vec<usize>> {
        with_points(x, |x| self.classes(x))
    }

    /// [`predict`](Smoother::predict) at sparse points, t × d.
    ///
    /// # Errors
    /// As [`predict`](Smoother::predict).
    pub fn predict_sparse(&self, x: CsMatView<'_, T>) -> Result<Array2<T>> {
        with_points(x, |x| self.predictions(x))
    }
}

impl<T: Real> RidgeStatistics<T> {
    /// [`update`](RidgeStatistics::update) with sparse points, n × d.
    ///
    /// # Errors
    /// As [`update`](RidgeStatistics::update).
    pub fn update_sparse(&mut self, x: CsMatView<'_, T>, targets: &ArrayRef2<T>) -> Result<()> {
        with_points(x, |x| self.take_in(x, targets, None))
    }

    /// [`update_weighted`](RidgeStatistics::update_weighted) with sparse points, n × d.
    ///
    /// # Errors
    /// As [`update_weighted`](RidgeStatistics::update_weighted).
    pub fn update_weighted_sparse(
        &mut self,
        x: CsMatView<'_, T>,
        targets: &ArrayRef2<T>,
        weights: &ArrayRef1<f64>,
    ) -> Result<()> {
        with_points(x, |x| self.take_in(x, targets, Some(weights)))
    }

    /// [`update_labels`](RidgeStatistics::update_labels) with sparse points, n × d.
    ///
    /// # Errors
    /// As [`update_labels`](RidgeStatistics::update_labels).
    pub fn update_labels_sparse(&mut self, x: CsMatView<'_, T>, labels: &[usize]) -> Result<()> {
        with_points(x, |x| self.take_in_labels(x, labels))
    }
}

impl<T: Real> Ridge<T> {
    /// [`predict`](Ridge::predict) at sparse points, n × d.
    ///
    /// # Errors
    /// As [`predict`](Ridge::predict).
    pub fn predict_sparse(&self, x: CsMatView<'_, T>) -> Result<Array2<T>> {
        with_points(x, |x| self.predictions(x))
    }

    /// [`classify`](Ridge::classify) at sparse points, n × d.
    ///
    /// # Errors
    /// As [`classify`](Ridge::classify).
    pub fn classify_sparse(&self, x: CsMatView<'_, T>) -> Result<Vec<usize>> {
        with_points(x, |x| self.classes(x))
    }
}

impl<T: Real> RidgeClassifier<T> {
    /// [`calibrated`](RidgeClassifier::calibrated) on sparse points, n × d.
    ///
    /// # Errors
    /// As [`calibrated`](RidgeClassifier::calibrated).
    pub fn calibrated_sparse(self, x: CsMatView<'_, T>, labels: &[usize]) -> Result<Self> {
        with_points(x, |x| self.calibrated_by(x, labels))
    }

    /// [`classify`](RidgeClassifier::classify) at sparse points, n × d.
    ///
    /// # Errors
    /// As [`classify`](RidgeClassifier::classify).
    pub fn classify_sparse(&self, x: CsMatView<'_, T>) -> Result<Vec<usize>> {
        self.model().classify_sparse(x)
    }

    /// [`probabilities`](RidgeClassifier::probabilities) at sparse points, n × d.
    ///
    /// # Errors
    /// As [`probabilities`](RidgeClassifier::probabilities).
    pub fn probabilities_sparse(&self, x: CsMatView<'_, T>) -> Result<Array2<T>> {
        with_points(x, |x| self.probabilities_of(x))
    }
}
