//! [`ParameterGradients`]: gradients with respect to the parameters of a map.

use ndarray::{Array1, Array2, ArrayRef2};

use super::definition::Setting;
use super::{Map, PlainRecipe, Recipe};
use crate::Real;
use crate::engine::{ExponentSums, Side, exponent_sums};
use crate::error::{Error, Result, check_size};
use crate::once::once;

/// Gradients of a sum of features with respect to the parameters of a map: [`Map::pull_back_parameters`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParameterGradients {
    /// The gradient with respect to ℓₗ for each of the d dimensions; a common lengthscale has their sum.
    pub lengthscales: Array1<f64>,
    /// The gradient with respect to each frequency ωⱼ, as if it were free: m × d.
    pub frequencies: Array2<f64>,
    /// The gradient with respect to the coefficients of the map: Re A of [`Gerf`](crate::Gerf), then Im A if features are complex;
    /// aₗ of [`DenseExponential`](crate::DenseExponential); none of other maps.
    pub coefficients: Vec<f64>,
}

impl ParameterGradients {
    /// The gradients of frequencies along spheres, m × d: the part that is left if the norms ‖ωⱼ‖ of `frequencies`, m × d, are
    /// fixed.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `frequencies` is not m × d.
    pub fn on_spheres(&self, frequencies: &ArrayRef2<f64>) -> Result<Array2<f64>> {
        check_size("the number of frequencies", self.frequencies.nrows(), frequencies.nrows())?;
        check_size("the dimension of the frequencies", self.frequencies.ncols(), frequencies.ncols())?;
        let mut own = self.frequencies.clone();
        for (mut own, omega) in own.rows_mut().into_iter().zip(frequencies.rows()) {
            let norm = omega.dot(&omega);
            if norm > 0.0 {
                let along = own.dot(&omega) / norm;
                own.scaled_add(-along, &omega);
            }
        }
        Ok(own)
    }
}

impl<T: Real> Map<T> {
    /// The gradients of Σᵢ Σ_f c\[i, f\] φ_f(xᵢ) e^{−sᵢ} with respect to the lengthscales, the frequencies and the coefficients of
    /// the map. c are the `cotangents`, n × D, and s the log scales of the features. The cotangents g of the features themselves
    /// give c = g e^s, so that functions of the scales have their part in g.
    ///
    /// They are sums over all points in `f64`, in runs that depend only on n, and so bit-identical on any number of threads. Points
    /// that are not finite make them NaN. They may train a map whose frequencies are free; the kernel that it estimates is then no
    /// longer that of its name.
    ///
    /// # Example
    /// ```
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::{Array2, arr2};
    /// use random_features::{Gerf, Map, Side};
    /// let (omega, x) = (Orthogonal.draw(2, 16, 1)?, arr2(&[[0.3, -0.5]]));
    /// let map = |squared_sum| {
    ///     Gerf::optimal(2, squared_sum)?.softmax::<f64>(omega.clone())
    /// };
    /// let all =
    ///     map(0.5)?.pull_back_parameters(Side::X, &x, &Array2::ones((1, 16)))?;
    /// assert_eq!(
    ///     (all.lengthscales.len(), all.frequencies.dim(), all.coefficients.len()),
    ///     (2, (16, 2), 1)
    /// );
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Cost
    /// Twice the cost of the features in `f64`, O(n m d).
    ///
    /// # Errors
    /// The errors of [`pull_back`](Map::pull_back); [`Unsupported`](Error::Unsupported) for maps that are made of others, whose
    /// parts have parameters of their own; for [`Poisson`](crate::Poisson), [`Geometric`](crate::Geometric),
    /// [`ComplexExponential`](crate::ComplexExponential) and [`Importance`](crate::Importance), whose points are not projected
    /// themselves or whose frequencies also weigh features; and for [`EluPlusOne`](crate::EluPlusOne), which has no frequencies.
    #[inline(never)]
    pub fn pull_back_parameters(
        &self,
        side: Side,
        x: &ArrayRef2<T>,
        cotangents: &ArrayRef2<T>,
    ) -> Result<ParameterGradients> {
        let of_points = self.pull_back(side, x, cotangents)?;
        let mut along = Array1::zeros(x.ncols());
        for (x, slopes) in x.rows().into_iter().zip(of_points.rows()) {
            let terms = along.iter_mut().zip(x).zip(slopes);
            terms.for_each(|((sum, x), slope)| *sum += x.widen() * slope.widen());
        }
        let sums = exponent_sums(self.program(), side, x.view(), cotangents.view());
        sums.and_then(|sums| self.parameters_from(&sums, &along)).ok_or(UNKNOWN)
    }

    /// The gradients from derivatives with respect to exponents, and from Σᵢ xᵢₗ ∂/∂xᵢₗ for each dimension l; `None` if the
    /// parameters of the map have no gradients.
    pub(crate) fn parameters_from(
        &self,
        sums: &ExponentSums,
        along: &Array1<f64>,
    ) -> Option<ParameterGradients> {
        let Some(Recipe::Plain(PlainRecipe { mechanism, omega, kernel, matrix: None })) = self.recipe()
        else {
            return None;
        };
        let setting = Setting { omega: &omega, kernel: &kernel };
        let (frequencies, coefficients) = mechanism.pull_back(setting, sums)?;
        // Features are functions of x/ℓ alone.
        let lengthscale = |(k, along): (usize, &f64)| -along / kernel.lengthscale().at(k);
        let lengthscales = along.iter().enumerate().map(lengthscale).collect();
        Some(ParameterGradients { lengthscales, frequencies, coefficients })
    }
}

/// The error for maps whose parameters have no gradients.
pub(crate) const UNKNOWN: Error = Error::Unsupported { what: "gradients of the parameters of this map" };

once!(Map::<T>::pull_back_parameters);
