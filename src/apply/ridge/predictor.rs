//! [`Predictor`]: predictions for single points; [`PreparedWeights`]: products of weights with features.

use std::ops::Range;
use std::sync::Arc;

use ndarray::{ArcArray2, ArrayRef1, Axis, s};

use super::Ridge;
use crate::Real;
use crate::SignedLog;
use crate::engine::{FeatureBuffers, FeatureRow, FeatureSource, Program};
use crate::error::{Result, check_size};
use crate::map::Map;
use crate::numeric::{self, Isa, Packed, dot};
use crate::once::once;

/// The number of targets up to which products with weights are computed one by one.
const FEW: usize = 6;
/// The range of scales whose exponentials are normal numbers and remain so in products.
const SAFE: f64 = 300.0;

/// Weights, laid out for products with features. Clones share them.
#[derive(Clone)]
pub(super) struct PreparedWeights {
    rows: ArcArray2<f64>,
    /// The weights of each block of features, packed, if there are many targets; else none.
    packed: Arc<[Packed<f64>]>,
}

/// Buffers that a thread reuses from run to run.
#[derive(Default)]
pub(super) struct PredictionBuffers {
    pub sums: Vec<f64>,
    products: Vec<f64>,
    wide: Vec<f64>,
}

impl PreparedWeights {
    /// The weights, t × D, of a map's features.
    pub fn new<T: Real>(map: &Map<T>, weights: &ArcArray2<f64>) -> Self {
        let pack = |columns: &Range<usize>| {
            let weights = weights.slice(s![.., columns.clone()]);
            Packed::new(weights.nrows(), weights.ncols(), |j, f| weights[[j, f]])
        };
        let many = weights.nrows() > FEW;
        let packed = if many { map.program().blocks().iter().map(pack).collect() } else { Arc::default() };
        PreparedWeights { rows: weights.clone(), packed }
    }

    /// Writes β·φ for each target to the buffers' `sums`.
    pub fn apply<T: Real>(
        &self,
        program: &Program<T>,
        row: FeatureRow<'_, T>,
        buffers: &mut PredictionBuffers,
    ) {
        let PredictionBuffers { sums, products, wide } = buffers;
        sums.clear();
        sums.resize(self.rows.nrows(), 0.0);
        products.resize(self.rows.nrows(), 0.0);
        for (b, (columns, scale)) in program.blocks().iter().zip(row.log_scales).enumerate() {
            if *scale == f64::NEG_INFINITY {
                continue;
            }
            let values = &row.values[columns.clone()];
            match self.packed.get(b) {
                Some(packed) => {
                    wide.clear();
                    wide.extend(values.iter().map(|v| v.widen()));
                    let len = products.len();
                    numeric::product(Isa::best(), wide, wide.len(), packed.all(), products, len);
                }
                None => {
                    for (product, weights) in products.iter_mut().zip(self.rows.rows()) {
                        let weights = &numeric::slice_of(&weights)[columns.clone()];
                        *product = dot(Isa::best(), values, weights);
                    }
                }
            }
            let factor = scale.exp();
            for (sum, product) in sums.iter_mut().zip(&*products) {
                // The product of a large scale and small weights may be in range.
                *sum += if scale.abs() <= SAFE {
                    product * factor
                } else {
                    SignedLog::from(*product).scaled(*scale).value()
                };
            }
        }
    }
}

/// Predicts single points, for example in a server; [`Ridge::predictor`] makes one. A predictor owns its model, and each thread
/// takes a clone. Clones share the weights.
///
/// ```
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::{Array2, arr1};
/// use random_features::{Trigonometric, apply::RidgeStatistics};
/// let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0 - 2.0);
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 64, 1)?, 1.0)?;
/// let mut statistics = RidgeStatistics::new(map, 1)?;
/// statistics.update(&x, &x.mapv(|x| x * x))?;
/// let predictor = statistics.solve(1e-4)?.predictor();
/// let threads = [0.5, -1.5].map(|at| {
///     let mut own = predictor.clone();
///     std::thread::spawn(move || {
///         let mut y = [0.0];
///         own.predict_into(&arr1(&[at]), &mut y)
///             .map(|()| (y[0] - at * at).abs())
///     })
/// });
/// for thread in threads {
///     assert!(thread.join().unwrap()? < 1e-2);
/// }
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Cost
/// A point costs as much as a row of a batch: 0.8 µs for d = 30 and D = 1024 features of `f32` on a core of an AMD EPYC.
/// Nothing is allocated after the first point.
pub struct Predictor<T: Real> {
    model: Ridge<T>,
    weights: PreparedWeights,
    features: FeatureBuffers<T>,
    buffers: PredictionBuffers,
}

/// A clone has buffers of its own.
impl<T: Real> Clone for Predictor<T> {
    #[inline(never)]
    fn clone(&self) -> Self {
        let (features, buffers) = (FeatureBuffers::default(), PredictionBuffers::default());
        Predictor { model: self.model.clone(), weights: self.weights.clone(), features, buffers }
    }
}

impl<T: Real> std::fmt::Debug for Predictor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Predictor").field("model", &self.model).finish_non_exhaustive()
    }
}

impl<T: Real> Predictor<T> {
    #[inline(never)]
    pub(super) fn new(model: Ridge<T>) -> Self {
        let weights = PreparedWeights::new(&model.map, &model.weights);
        let (features, buffers) = (FeatureBuffers::default(), PredictionBuffers::default());
        Predictor { model, weights, features, buffers }
    }

    /// The model.
    pub fn model(&self) -> &Ridge<T> {
        &self.model
    }

    /// Writes ŷ(x) to `out`, one number for each target, with the same bits as [`predict`](Ridge::predict). Nothing is allocated
    /// after the first point.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `x` does not have d entries or `out` does not have t.
    #[inline(never)]
    pub fn predict_into(&mut self, x: &ArrayRef1<T>, out: &mut [T]) -> Result<()> {
        let Predictor { model, weights, features, buffers } = self;
        check_size("the dimension of x", model.map.dim(), x.len())?;
        check_size("the number of predictions", model.weights.nrows(), out.len())?;
        let program = model.map.program();
        FeatureSource::standardised(program, model.inputs.as_ref())
            .fill(x.view().insert_axis(Axis(0)).into(), features);
        weights.apply(program, features.batch.row(0), buffers);
        let predictions = buffers.sums.iter().zip(&model.intercepts);
        out.iter_mut().zip(predictions).for_each(|(out, (sum, b))| *out = T::saturated(sum + b));
        Ok(())
    }
}

once!(Predictor::<T>::predict_into, <Predictor<T> as Clone>::clone, Predictor::<T>::new);
