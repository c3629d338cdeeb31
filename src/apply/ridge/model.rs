//! [`Ridge`]: a fitted regression.

use std::ops::Range;

use ndarray::{ArcArray2, Array1, Array2, ArrayRef2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, aview1};

use super::Standardisation;
use super::predictor::{PredictionBuffers, Predictor, PreparedWeights};
use crate::engine::{Batch, FeatureSource, PointsView, map_rows};
use crate::error::{Result, check_finite, check_positive, check_size};
use crate::labels;
use crate::map::Map;
use crate::memory::check_memory;
use crate::once::once;
use crate::targets::single;
use crate::{Points, Real, progress};

/// The number of points between two checks for cancellation.
const ROWS: usize = 1 << 16;

/// A fitted ridge regression, which predicts ŷ(x) = β·φ(x) + b: kernel ridge regression with the kernel that the map estimates.
/// Approximate.
///
/// ```
/// use random_features::ndarray::{Array2, arr1, arr2};
/// use random_features::Trigonometric;
/// use random_features::apply::RidgeStatistics;
/// use random_features::frequency::Orthogonal;
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 64, 1)?, 1.0)?;
/// let mut statistics = RidgeStatistics::<f64>::new(map, 1)?;
/// let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0 - 2.0);
/// statistics.update(&x, &x.mapv(|x| x * x))?;
/// let model = statistics.solve(1e-4)?;
/// assert!((model.predict(&arr2(&[[0.5]]))?[[0, 0]] - 0.25).abs() < 1e-2);
/// let (mut predictor, mut one) = (model.predictor(), [0.0]);
/// predictor.predict_into(&arr1(&[0.5]), &mut one)?;
/// assert!((one[0] - 0.25).abs() < 1e-2);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// [`RidgeSearch::fit`](super::RidgeSearch::fit) chooses a model, and [`RidgeStatistics::solve`](super::RidgeStatistics::solve)
/// gives the model for one λ.
///
/// # Cost
/// A prediction costs O(m d + D t).
#[derive(Clone, Debug)]
pub struct Ridge<T: Real> {
    pub(in crate::apply) map: Map<T>,
    pub(in crate::apply) inputs: Option<Standardisation>,
    /// The weights β, t × D, shared by clones.
    pub(in crate::apply) weights: ArcArray2<f64>,
    /// The intercept b for each target.
    pub(in crate::apply) intercepts: Array1<f64>,
}

impl<T: Real> Ridge<T> {
    /// The model with the weights β, D × t.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub(in crate::apply) fn new(
        map: Map<T>,
        inputs: Option<Standardisation>,
        weights: Array2<f64>,
        intercepts: Array1<f64>,
    ) -> Self {
        let weights = weights.reversed_axes().as_standard_layout().into_owned().into_shared();
        Ridge { map, inputs, weights, intercepts }
    }

    /// A model from arrays: weights β, t × D as [`weights`](Ridge::weights) gives them, and an intercept for each of the t targets.
    ///
    /// ```
    /// use random_features::apply::Ridge;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::{Array2, arr2};
    /// use random_features::{Map, Trigonometric};
    /// let map: Map<f64> = Trigonometric.gaussian(Orthogonal.draw(1, 8, 1)?, 1.0)?;
    /// let model = Ridge::of_weights(map, &Array2::zeros((1, 16)), &[0.5])?;
    /// assert_eq!(model.predict(&arr2(&[[3.0]]))?, arr2(&[[0.5]]));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) without targets, [`Shape`](crate::Error::Shape) if a size does not fit,
    /// [`NotFinite`](crate::Error::NotFinite) if a number is not finite.
    #[inline(never)]
    pub fn of_weights(map: Map<T>, weights: &ArrayRef2<f64>, intercepts: &[f64]) -> Result<Self> {
        check_positive("the number of targets", intercepts.len())?;
        check_size("the number of rows of the weights", intercepts.len(), weights.nrows())?;
        check_size("the number of columns of the weights", map.feature_dim(), weights.ncols())?;
        check_finite("the weights", weights)?;
        check_finite("the intercepts", &aview1(intercepts).insert_axis(Axis(1)))?;
        let weights = weights.as_standard_layout().into_owned().into_shared();
        Ok(Ridge { map, inputs: None, weights, intercepts: intercepts.to_vec().into() })
    }

    /// Sets how inputs are centred and scaled before the map is applied; `None` leaves them as they are.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `inputs` is for points of another dimension.
    pub fn with_standardisation(self, inputs: impl Into<Option<Standardisation>>) -> Result<Self> {
        self.standardised(inputs.into())
    }

    #[inline(never)]
    fn standardised(self, inputs: Option<Standardisation>) -> Result<Self> {
        let dim = inputs.as_ref().map_or(self.map.dim(), |inputs| inputs.centre().len());
        check_size("the dimension of the standardisation", self.map.dim(), dim)?;
        Ok(Ridge { inputs, ..self })
    }

    /// The map.
    pub fn map(&self) -> &Map<T> {
        &self.map
    }

    /// The centring and scaling of inputs, if any.
    pub fn standardisation(&self) -> Option<&Standardisation> {
        self.inputs.as_ref()
    }

    /// The weights β, t × D, of features as plain values, e^(log scale) · mantissa.
    pub fn weights(&self) -> ArrayView2<'_, f64> {
        self.weights.view()
    }

    /// The intercept b for each target.
    pub fn intercepts(&self) -> ArrayView1<'_, f64> {
        self.intercepts.view()
    }

    /// Predicts ŷ at the rows of `x`, n × d: n × t numbers. Points are in the original units: the model applies its
    /// standardisation, if it has one. A row that is not finite gives NaN. Predictions are computed in `f64`; one beyond
    /// the range of the scalar type becomes the largest number of that type, never infinity.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `x` does not have d columns, [`Memory`](crate::Error::Memory) if the result does not fit
    /// in memory, [`Cancelled`](crate::Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    pub fn predict<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        self.predictions(x.into().view())
    }

    /// Predicts the only target: ŷ at the rows of `x`, n × d, as n numbers.
    ///
    /// # Errors
    /// The errors of [`predict`](Ridge::predict); [`Shape`](crate::Error::Shape) if there are several targets.
    pub fn predict_single<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array1<T>> {
        single(self.predict(x)?)
    }

    #[inline(never)]
    fn predictions(&self, x: PointsView<'_, T>) -> Result<Array2<T>> {
        let mut out = self.empty(x.nrows())?;
        self.write_predictions(x, out.view_mut())?;
        Ok(out)
    }

    /// Writes ŷ at the rows of `x`, n × d, to `out`, n × t. Memory does not grow with n.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if an array does not fit; nothing is written then. If the work is
    /// [`Cancelled`](crate::Error::Cancelled), some rows are written.
    pub fn predict_into<'a>(&self, x: impl Into<Points<'a, T>>, out: &mut ArrayRef2<T>) -> Result<()> {
        self.write_predictions(x.into().view(), out.view_mut())
    }

    #[inline(never)]
    fn write_predictions(&self, x: PointsView<'_, T>, out: ArrayViewMut2<'_, T>) -> Result<()> {
        self.write(x, out, T::saturated)
    }

    /// The predictions in `f64`, n × t.
    #[inline(never)]
    pub(in crate::apply) fn scores(&self, x: PointsView<'_, T>) -> Result<Array2<f64>> {
        let mut out = self.empty(x.nrows())?;
        self.write(x, out.view_mut(), |v| v)?;
        Ok(out)
    }

    /// Predicts the class of each row of `x`, n × d, for a regression of labels: the target with the largest prediction, the first of
    /// equal ones. A class without rows in training is never predicted. [`RidgeClassifier`](super::RidgeClassifier) adds
    /// probabilities.
    ///
    /// # Errors
    /// The errors of [`predict`](Ridge::predict); [`NotFinite`](crate::Error::NotFinite) if a row of `x` is not finite,
    /// [`Parameter`](crate::Error::Parameter) if the regression has one target.
    pub fn classify<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Vec<usize>> {
        labels::best_classes(&self.scores(x.into().view())?, |class| self.occurs(class))
    }

    /// Whether a class occurs in training, that is, whether its target is not 0 in some row.
    fn occurs(&self, target: usize) -> bool {
        self.intercepts[target] != 0.0 || self.weights.row(target).iter().any(|weight| *weight != 0.0)
    }

    /// The classes that occur in training, ascending; all classes if none does.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub(super) fn occurring(&self) -> Vec<usize> {
        labels::occurring(self.intercepts.len(), |class| self.occurs(class))
    }

    /// Makes a predictor for single points, which owns its model and is `Send`, `Sync` and `'static`. Clones of a predictor, one
    /// for each thread of a server, share the weights.
    pub fn predictor(&self) -> Predictor<T> {
        Predictor::new(self.clone())
    }

    fn empty<U: Clone + Default>(&self, rows: usize) -> Result<Array2<U>> {
        check_memory("rows of predictions", rows, size_of::<U>().saturating_mul(self.weights.nrows()))?;
        Ok(Array2::default((rows, self.weights.nrows())))
    }

    fn write<U: Send>(
        &self,
        x: PointsView<'_, T>,
        mut out: ArrayViewMut2<'_, U>,
        narrow: impl Fn(f64) -> U + Sync,
    ) -> Result<()> {
        check_size("the number of columns of x", self.map.dim(), x.ncols())?;
        check_size("the number of rows of the predictions", x.nrows(), out.nrows())?;
        check_size("the number of columns of the predictions", self.weights.nrows(), out.ncols())?;
        let (program, weights) = (self.map.program(), PreparedWeights::new(&self.map, &self.weights));
        let write = |_: Range<usize>,
                     batch: &mut Batch<T>,
                     mut out: ArrayViewMut2<'_, U>,
                     buffers: &mut PredictionBuffers| {
            for (i, mut out) in out.rows_mut().into_iter().enumerate() {
                weights.apply(program, batch.row(i), buffers);
                let predictions = buffers.sums.iter().zip(&self.intercepts);
                out.iter_mut().zip(predictions).for_each(|(out, (sum, b))| *out = narrow(sum + b));
            }
        };
        let work = program.width().saturating_mul(self.weights.nrows());
        let source = FeatureSource::standardised(program, self.inputs.as_ref());
        for (i, out) in out.axis_chunks_iter_mut(Axis(0), ROWS).enumerate() {
            progress::check()?;
            map_rows(&source, x.run(i, ROWS), out, work, write)?;
        }
        Ok(())
    }
}

once!(
    Ridge::<T>::of_weights,
    Ridge::<T>::standardised,
    Ridge::<T>::predictions,
    Ridge::<T>::scores,
    Ridge::<T>::write_predictions,
);
