//! [`Landmarks`]: the share of K(x, x) that is determined by values at some points.

use ndarray::{Array2, ArrayRef2, ArrayView1};

use super::{Standardisation, check_finite};
use crate::engine::PointsView;
use crate::error::{Error, Result, check_size};
use crate::kernel::Kernel;
use crate::linalg::{Backend, Cholesky};
use crate::map::Map;
use crate::memory::check_memory;
use crate::{Real, progress};

/// Points z with the Cholesky factor of their Gram matrix K_zz.
#[derive(Debug)]
pub(super) struct Landmarks<T: Real> {
    map: Map<T>,
    inputs: Option<Standardisation>,
    /// The points z, l × d, standardised if inputs are.
    points: Array2<T>,
    factor: Cholesky,
}

/// The share of K(x, x) at a point that is determined by values at the landmarks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// k(x)ᵀ K_zz⁻¹ k(x) / K(x, x), from 0 to 1.
    explained: f64,
    /// K(x, x).
    prior: f64,
}

impl Share {
    /// ρ v + (1 − ρ) (K(x, x)/λ + v₀), in units of σ², with the variance v₀ of the intercept.
    pub fn mix(self, own: f64, lambda: f64, intercept: f64) -> f64 {
        self.explained * own + (1.0 - self.explained) * (self.prior / lambda + intercept)
    }
}

impl<T: Real> Landmarks<T> {
    /// Landmarks at these points, l × d, before standardisation.
    pub fn new(map: &Map<T>, inputs: Option<&Standardisation>, points: &ArrayRef2<T>) -> Result<Self> {
        check_size("the number of columns of the landmarks", map.dim(), points.ncols())?;
        Self::of_inputs(map, inputs, standardised(inputs, points)?)
    }

    /// Landmarks at points that are standardised already, l × d.
    pub fn of_inputs(map: &Map<T>, inputs: Option<&Standardisation>, points: Array2<T>) -> Result<Self> {
        let Some(kernel) = map.kernel() else {
            return Err(Error::Unsupported { what: "landmarks for a map whose kernel has no closed form" });
        };
        check_size("the number of columns of the landmarks", map.dim(), points.ncols())?;
        if points.nrows() == 0 {
            return Err(Error::NoData { what: "a correction by landmarks" });
        }
        check_finite("the landmarks", &points)?;
        check_memory(
            "rows of a Gram matrix",
            points.nrows(),
            points.nrows().saturating_mul(3 * size_of::<f64>()),
        )?;
        progress::check()?;
        let mut gram = kernel.gram(&points, &points)?.mapv(Real::widen);
        progress::check()?;
        // The jitter is above the rounding errors of eigenvalues, so that the factor exists.
        let largest = gram.diag().iter().fold(0.0, |a: f64, v| a.max(*v));
        let jitter = 4.0 * T::epsilon().widen() * points.nrows() as f64 * largest;
        gram.diag_mut().mapv_inplace(|v| v + jitter);
        let factor = Backend::default().cholesky(&gram)?;
        Ok(Landmarks { map: map.clone(), inputs: inputs.cloned(), points, factor })
    }

    /// The points, standardised if inputs are.
    #[cfg(feature = "serde")]
    pub fn points(&self) -> &Array2<T> {
        &self.points
    }

    /// The share at each of some points; NaN where the kernel is not finite.
    pub fn shares(&self, x: PointsView<'_, T>) -> Vec<Share> {
        let kernel = self.map.kernel();
        kernel
            .and_then(|kernel| self.shares_by(kernel, &x.to_dense().ok()?).ok())
            .unwrap_or_else(|| vec![Share { explained: f64::NAN, prior: f64::NAN }; x.nrows()])
    }

    fn shares_by(&self, kernel: &dyn Kernel<T>, x: &ArrayRef2<T>) -> Result<Vec<Share>> {
        let x = standardised(self.inputs.as_ref(), x)?;
        let mut values = kernel.gram(&self.points, &x)?.mapv(Real::widen);
        // Values that are not finite become 0; the point's own K(x, x) is NaN.
        values.mapv_inplace(|v| if v.is_finite() { v } else { 0.0 });
        let solved = self.factor.solve(&values)?;
        let columns = values.columns().into_iter().zip(solved.columns()).zip(x.rows());
        let share =
            |((values, solved), x): ((ArrayView1<'_, f64>, ArrayView1<'_, f64>), ArrayView1<'_, T>)| {
                let prior = kernel.value(&x, &x)?.widen();
                // Where K(x, x) is 0, the share counts as 1.
                let explained = if prior == 0.0 { 1.0 } else { values.dot(&solved) / prior };
                Ok(Share { explained: explained.clamp(0.0, 1.0), prior })
            };
        columns.map(share).collect()
    }
}

fn standardised<T: Real>(inputs: Option<&Standardisation>, x: &ArrayRef2<T>) -> Result<Array2<T>> {
    inputs.map_or_else(|| Ok(x.to_owned()), |inputs| inputs.apply(x))
}
