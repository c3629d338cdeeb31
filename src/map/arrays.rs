//! Features as arrays, with their scales multiplied in.

use std::ops::Range;

use ndarray::{Array2, ArrayViewMut2, s};

use super::gram::scaled;
use super::{Map, Side};
use crate::engine::{Batch, FeatureSource, Form, PointsView, map_rows};
use crate::error::{Error, Result};
use crate::numeric::zeros;
use crate::once::once;
use crate::{Points, Real};

impl<T: Real> Map<T> {
    /// The features of the rows of `x` as an array, n × D: input of a linear model, or of any other.
    ///
    /// It has the bits of [`features`](Map::features) and [`into_array`](crate::Features::into_array), and is written by all
    /// threads at once. If `T` overflows or underflows, features are ±∞ or 0 (norms of about 13 in `f32`, for exponential maps);
    /// [`lost_rows`](crate::Features::lost_rows) counts such rows. For kernels of x − y, centre the points first.
    ///
    /// ```
    /// use random_features::Map;
    /// use random_features::kernel::Gaussian;
    /// use random_features::ndarray::arr2;
    /// let map: Map<f32> = Map::for_kernel(Gaussian::new(2.0)?, 2, 256, 7)?;
    /// let x = arr2(&[[0.1, 0.2], [0.3, -0.4], [1.0, 0.5]]);
    /// let phi = map.transform(&x)?;
    /// assert_eq!(phi.dim(), (3, 512));
    /// let gram = phi.dot(&phi.t());
    /// assert!((gram[[0, 1]] - (-0.4f32 / 8.0).exp()).abs() < 0.1);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if the map has two sides: [`transform_queries`](Map::transform_queries) and
    /// [`transform_keys`](Map::transform_keys) name one. [`Shape`](Error::Shape) if `x` does not have d columns,
    /// [`Memory`](Error::Memory) if the features do not fit in memory, [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    pub fn transform<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        if !self.facts().symmetric {
            let what =
                "one array of features from a map with two sides: take transform_queries or transform_keys";
            return Err(Error::Unsupported { what });
        }
        self.array(Side::X, x.into().view())
    }

    /// The features φ of queries, the points x of K(x, y), as an array, n × D, with their scales multiplied in.
    ///
    /// ```
    /// use random_features::extend::Coupling;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::kernel::Softmax;
    /// use random_features::map::Transform;
    /// use random_features::ndarray::arr2;
    /// use random_features::num_complex::Complex64;
    /// use random_features::theory::complex_exponential::Symmetry;
    /// use random_features::{ComplexExponential, Map};
    /// let a = Transform::diagonal(vec![Complex64::new(1.2, 0.0); 2])?;
    /// let omega = Orthogonal.draw(2, 512, 7)?;
    /// let map: Map<f64> = ComplexExponential::new(a, Symmetry::Plain)
    ///     .build(omega, Softmax::default())?;
    /// let (q, k) = (arr2(&[[0.1, 0.2], [0.3, -0.4]]), arr2(&[[-0.5, 0.2]]));
    /// let (phi, psi) = (map.transform_queries(&q)?, map.transform_keys(&k)?);
    /// assert!((phi.dot(&psi.t())[[0, 0]] - (-0.01f64).exp()).abs() < 0.2);
    /// assert!(map.transform(&q).is_err());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`features`](Map::features).
    pub fn transform_queries<'a>(&self, x: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        self.array(Side::X, x.into().view())
    }

    /// The features ψ of keys, the points y of K(x, y), as an array, n × D, with their scales multiplied in.
    ///
    /// [`transform_queries`](Map::transform_queries) has an example.
    ///
    /// # Errors
    /// The errors of [`features`](Map::features).
    pub fn transform_keys<'a>(&self, y: impl Into<Points<'a, T>>) -> Result<Array2<T>> {
        self.array(Side::Y, y.into().view())
    }

    #[inline(never)]
    fn array(&self, side: Side, x: PointsView<'_, T>) -> Result<Array2<T>> {
        self.check_points(x)?;
        self.check_room(x.nrows(), size_of::<T>())?;
        let mut out = zeros((x.nrows(), self.feature_dim()));
        let blocks = self.program().blocks();
        let write = |_: Range<usize>, batch: &mut Batch<T>, mut out: ArrayViewMut2<'_, T>, (): &mut ()| {
            for (i, mut row) in out.rows_mut().into_iter().enumerate() {
                let features = batch.row(i);
                for (columns, scale) in blocks.iter().zip(features.log_scales) {
                    let times = times(*scale);
                    let (mut out, values) =
                        (row.slice_mut(s![columns.clone()]), &features.values[columns.clone()]);
                    out.iter_mut().zip(values).for_each(|(out, v)| *out = T::narrow(times(v.widen())));
                }
            }
        };
        map_rows(&FeatureSource::new(self.program(), side, Form::Values), x, out.view_mut(), 0, write)?;
        Ok(out)
    }
}

/// The function v ↦ v e^`scale`, without overflow or underflow on the way; 0 for an absent block, whose scale is −∞.
pub(super) fn times(scale: f64) -> impl Fn(f64) -> f64 + Copy {
    let factor = scale.exp();
    let (is_absent, is_normal) = (scale == f64::NEG_INFINITY, factor.is_normal());
    move |v| match (is_absent, is_normal) {
        (true, _) => 0.0,
        (_, true) => v * factor,
        _ => scaled(v, scale),
    }
}

once!(Map::<T>::array);
