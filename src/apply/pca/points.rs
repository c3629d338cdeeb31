//! Principal components of points in memory.

use ndarray::{Array2, s};

use super::KernelPca;
use super::model::check_components;
use crate::apply::ridge::{CentredRows, RowAxes};
use crate::engine::PointsView;
use crate::error::Result;
use crate::map::Map;
use crate::once::once;
use crate::reduce::{GramIntake, check_training};
use crate::targets::TargetRows;
use crate::{Points, Real};

impl<T: Real> KernelPca<T> {
    /// The first components of points in memory, n × d, which are not standardised. With fewer points than features, they are
    /// computed from the singular value decomposition of the points' features, at a cost of O(n² D). Otherwise they are the components of
    /// [`PcaStatistics`](super::PcaStatistics).
    ///
    /// ```
    /// use random_features::apply::pca::KernelPca;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::Array2;
    /// use random_features::{Map, Trigonometric};
    /// let x = Array2::from_shape_fn((60, 3), |(i, k)| ((i * (k + 2)) as f64).sin());
    /// let map: Map<f64> =
    ///     Trigonometric.gaussian(Orthogonal.draw(3, 512, 1)?, 1.0)?;
    /// let pca = KernelPca::fit(map, &x, 4)?;
    /// let white = pca.transform_whitened(&x)?;
    /// assert!((white.column(3).mapv(|z| z * z).sum() / 60.0 - 1.0).abs() < 1e-9);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`PcaStatistics::update`](super::PcaStatistics::update) and
    /// [`components`](super::PcaStatistics::components).
    pub fn fit<'a>(map: Map<T>, x: impl Into<Points<'a, T>>, components: usize) -> Result<Self> {
        Self::fit_points(map, x.into().view(), components)
    }

    #[inline(never)]
    fn fit_points(map: Map<T>, x: PointsView<'_, T>, components: usize) -> Result<Self> {
        check_components(components, map.feature_dim())?;
        check_training(x, map.dim(), &Array2::zeros((x.nrows(), 0)), 0)?;
        if x.nrows() < map.feature_dim()
            && let Some(pca) = Self::of_few_points(&map, x, components)?
        {
            return Ok(pca);
        }
        let mut intake = GramIntake::new(map, 0)?;
        intake.take_in(x, &TargetRows::none(x.nrows(), None))?;
        Self::of(&intake, components)
    }

    /// The components from a decomposition of the points' features; `None` if the points determine fewer directions.
    fn of_few_points(map: &Map<T>, x: PointsView<'_, T>, components: usize) -> Result<Option<Self>> {
        let rows = CentredRows::new(map, None, x, None, true)?;
        let RowAxes { space, axes, rounding, mean, weight } =
            rows.decomposed(&Array2::zeros((x.nrows(), 0)), true)?;
        let variances: Vec<f64> = space.values.iter().rev().map(|s| s / weight).collect();
        if variances.get(components - 1).is_none_or(|least| *least <= rounding / weight) {
            return Ok(None);
        }
        let directions = axes.slice(s![.., ..;-1]).slice(s![.., ..components]).to_owned();
        let total = variances.iter().sum();
        let variances = variances[..components].to_vec();
        Ok(Some(Self::new((map.clone(), None), mean, directions, variances, total)))
    }
}

once!(KernelPca::<T>::fit_points);
