//! Kernels that are given by a function of the distance, or by a spectral density.

use std::sync::Arc;

use super::radial_density::{of_density, of_kernel};
use super::radial_table::RadialTable;
use super::{Lengthscale, Radii, ShiftInvariant, Spectrum};
use crate::SignedLog;
use crate::error::{Result, check_positive, check_size};
use crate::generator::Generator;
use crate::memory::check_memory;
use crate::theory::sphere_mean::SphereMean;

/// A function of a distance or of a radius.
type Function = Arc<dyn Fn(f64) -> f64 + Send + Sync>;

/// Any kernel that is a function of ‖x − y‖ in ℝᵈ, from its values or from its spectral density.
///
/// ```
/// use random_features::Map;
/// use random_features::kernel::RadialKernel;
/// use random_features::ndarray::arr1;
/// // Wendland's function is 0 beyond distance 1.
/// let wendland = |t: f64| (1.0 - t).max(0.0).powi(4) * (4.0 * t + 1.0);
/// let kernel = RadialKernel::from_kernel("Wendland", 3, wendland)?
///     .with_lengthscale(2.0)?;
/// let map: Map<f64> = Map::for_kernel(kernel, 3, 1000, 7)?;
/// let (x, y) = (arr1(&[0.6, 0.8, 0.0]), arr1(&[0.0, 0.0, 0.0]));
/// assert!((map.estimate(&x, &y)? - wendland(0.5)).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// K(x, y) = k(‖x − y‖/ℓ) with k(0) = 1, or k(t) = ∫ 𝒮(‖ω‖) cos(t ω₁) dω. The law of the radii of frequencies is tabulated once: by
/// integrals of k, or from 𝒮. Quantiles are found by Newton's method, so that [coupled radii](crate::frequency::CoupledRadii) work,
/// too. Whether k is positive definite depends on d: frequencies are of this dimension alone.
///
/// # Exact where
/// Values of the kernel are those of k. The law has an error in probability of some 10⁻⁸ for smooth functions, and at most 10⁻⁵;
/// what is not found to this accuracy is refused. Estimates are biased by as much. From values k must fall off within a few orders
/// of magnitude, and d must be at most some 10. Kernels with a kink at 0, such as e^{−t}, have too many large radii: give their
/// density.
///
/// # Variance
/// That of [`Trigonometric`](crate::Trigonometric) features, from k(t) and k(2t), and from the quantiles for orthogonal rows.
///
/// # Cost
/// About a second, once. Each frequency takes a microsecond. With a density each value of the kernel is a sum over thousands of
/// radii.
///
/// # Storage
/// Functions cannot be stored: maps of such a kernel have none. Two kernels are equal if their names, dimensions and lengthscales
/// are.
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*; Stein and Weiss, *Introduction to Fourier Analysis on
/// Euclidean Spaces*, theorem IV.3.3, for the transform.
#[derive(Clone)]
pub struct RadialKernel {
    name: String,
    dim: usize,
    lengthscale: Lengthscale,
    value: Value,
    law: Arc<RadialTable>,
}

/// How values are computed.
#[derive(Clone)]
enum Value {
    /// By k, and by its derivative if that is known.
    Function(Function, Option<Function>),
    /// By the law.
    Law(Arc<Means>),
}

/// The means of cosines over a law, and those by which they change.
struct Means {
    /// Radii with weights.
    nodes: Vec<(f64, f64)>,
    mean: SphereMean,
    /// That of d + 2 dimensions: the slope of φ_d is −x/d φ_{d+2}.
    higher: SphereMean,
}

impl std::fmt::Debug for RadialKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RadialKernel {:?} in {} dimensions, {:?}", self.name, self.dim, self.lengthscale)
    }
}

/// Functions of users are not changed by a panic.
impl std::panic::UnwindSafe for RadialKernel {}
impl std::panic::RefUnwindSafe for RadialKernel {}

impl RadialKernel {
    /// The kernel k(‖x − y‖) of points in ℝᵈ, d = `dim`, under a name that tells it from your other ones.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if k(0) is not 1, if k is not positive definite in ℝᵈ or falls off too slowly, or if
    /// its radii cannot be found to a probability of 10⁻⁵.
    pub fn from_kernel(
        name: impl Into<String>,
        dim: usize,
        k: impl Fn(f64) -> f64 + Send + Sync + 'static,
    ) -> Result<Self> {
        check_positive("the dimension d", dim)?;
        let law = Arc::new(of_kernel(dim, &k)?);
        let (name, lengthscale) = (name.into(), Lengthscale::default());
        Ok(RadialKernel { name, dim, lengthscale, value: Value::Function(Arc::new(k), None), law })
    }

    /// The kernel whose frequencies have the density 𝒮(‖ω‖) in ℝᵈ, d = `dim`, which must integrate to 1 over ℝᵈ.
    ///
    /// ```
    /// use random_features::kernel::{Kernel, RadialKernel};
    /// use random_features::ndarray::arr1;
    /// use std::f64::consts::PI;
    /// // Uniform frequencies in the unit disc: k(t) = 2 J₁(t)/t.
    /// let disc = |r: f64| if r < 1.0 { 1.0 / PI } else { 0.0 };
    /// let kernel = RadialKernel::from_density("disc", 2, disc)?;
    /// let value = kernel.value(&arr1(&[2.0, 0.0]), &arr1(&[0.0, 0.0]))?;
    /// assert!((value - 0.576_724_8).abs() < 1e-5);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if the density is negative or not a number at a radius, or does not integrate to 1.
    pub fn from_density(
        name: impl Into<String>,
        dim: usize,
        density: impl Fn(f64) -> f64 + Send + Sync + 'static,
    ) -> Result<Self> {
        check_positive("the dimension d", dim)?;
        let law = Arc::new(of_density(dim, &density)?);
        let nodes = law.nodes().into_iter().map(|(l, weight)| (l.exp(), weight)).collect();
        let means = Means { nodes, mean: SphereMean::new(dim), higher: SphereMean::new(dim + 2) };
        let (name, lengthscale) = (name.into(), Lengthscale::default());
        Ok(RadialKernel { name, dim, lengthscale, value: Value::Law(Arc::new(means)), law })
    }

    /// Sets the lengthscale ℓ, by which distances are divided.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if an ℓ is outside its domain, [`Shape`](crate::Error::Shape) if there is not one for
    /// each of the d dimensions.
    pub fn with_lengthscale(self, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        let lengthscale = lengthscale.into().checked()?;
        lengthscale.check_dim(self.dim)?;
        Ok(RadialKernel { lengthscale, ..self })
    }

    /// Sets the derivative k′(t), from which gradients of the kernel follow.
    ///
    /// Without it gradients come from differences of k, to about nine digits where k is smooth. A kernel of a density knows its
    /// own.
    #[must_use]
    pub fn with_slope(self, slope: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Self {
        let value = match self.value {
            Value::Function(k, _) => Value::Function(k, Some(Arc::new(slope))),
            law => law,
        };
        RadialKernel { value, ..self }
    }

    /// d, the dimension of the points.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    /// k at a distance.
    fn at(&self, distance: f64) -> f64 {
        match &self.value {
            _ if distance.is_infinite() => 0.0,
            Value::Function(k, _) => k(distance),
            Value::Law(means) => {
                let term = |(r, weight): &(f64, f64)| weight * means.mean.at(distance * r).plain;
                1.0 + means.nodes.iter().map(term).sum::<f64>()
            }
        }
    }

    /// k′ at a distance above 0.
    fn slope(&self, distance: f64) -> f64 {
        match &self.value {
            Value::Function(_, Some(slope)) => slope(distance),
            Value::Function(k, None) => difference(&**k, distance),
            Value::Law(means) => {
                let of = |(r, weight): &(f64, f64)| {
                    weight
                        * r
                        * (r * distance / self.dim as f64)
                        * (1.0 + means.higher.at(distance * r).plain)
                };
                -means.nodes.iter().map(of).sum::<f64>()
            }
        }
    }

    fn check_dim(&self, d: usize) -> Result<()> {
        check_size("the dimension of frequencies of a radial kernel", self.dim, d)
    }
}

/// The derivative by differences at four places.
fn difference(k: &dyn Fn(f64) -> f64, t: f64) -> f64 {
    let h = 1e-3 * t;
    let central = |h: f64| (k(t + h) - k(t - h)) / (2.0 * h);
    (4.0 * central(h) - central(2.0 * h)) / 3.0
}

impl ShiftInvariant for RadialKernel {
    fn name(&self) -> String {
        format!("{} in {} dimensions", self.name, self.dim)
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Polar(self)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        SignedLog::from(self.at(square.sqrt()))
    }

    fn log_slope(&self, distance: f64) -> Option<f64> {
        let value = self.at(distance);
        Some(if value == 0.0 { 0.0 } else { self.slope(distance) / value })
    }
}

impl Radii for RadialKernel {
    /// The radii of the kernel with ℓ = 1.
    fn draw(&self, d: usize, count: usize, rng: &mut Generator) -> Result<Vec<f64>> {
        self.check_dim(d)?;
        check_memory("radii", count, size_of::<f64>())?;
        // Strictly between 0 and 1.
        let mut probability = || rng.uniform().clamp(2f64.powi(-64), 1.0 - 0.5 * f64::EPSILON);
        Ok((0..count).map(|_| self.law.quantile(probability()).exp()).collect())
    }

    fn quantile(&self, d: usize, p: f64) -> Option<f64> {
        (d == self.dim && p > 0.0 && p < 1.0).then(|| self.law.quantile(p).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::frequency::{Hadamard, Orthogonal, RadiusCoupling};
    use crate::kernel::{Kernel, Matern, Smoothness};
    use crate::map::AnyKernel;
    use crate::recipe::AnyCoupling;
    use crate::{Map, Trigonometric};
    use ndarray::arr1;

    fn matern(t: f64) -> f64 {
        let t = 5f64.sqrt() * t;
        (1.0 + t + t * t / 3.0) * (-t).exp()
    }

    /// The Matérn kernel of ν = 5/2 by its values, and by its density, is the kernel of the crate: values, gradients, variances.
    #[test]
    fn a_known_kernel_comes_back() {
        let own = Matern::new(Smoothness::FiveHalves, 1.5).unwrap();
        // Γ(4) 5^{5/2}/(Γ(5/2) (5π)^{3/2}) (1 + r²/5)^{−4}/… in three dimensions, for 2ν = 5.
        let density = |r: f64| {
            let ln = libm::lgamma(4.0) - libm::lgamma(2.5) - 1.5 * (5.0 * std::f64::consts::PI).ln();
            (ln - 4.0 * (r * r / 5.0).ln_1p()).exp()
        };
        let (x, y) = (arr1(&[0.3, -0.4, 0.9]), arr1(&[0.7, 0.2, 0.1]));
        for (kernel, room) in [
            (RadialKernel::from_kernel("own", 3, matern).unwrap(), 1e-8),
            (RadialKernel::from_density("own", 3, density).unwrap(), 1e-7),
        ] {
            let kernel = kernel.with_lengthscale(1.5).unwrap();
            let value: f64 = kernel.value(&x, &y).unwrap();
            assert!((value - own.value(&x, &y).unwrap()).abs() < room, "{value}");
            let gradient = kernel.gradient(&x, &y).unwrap() - own.gradient(&x, &y).unwrap();
            assert!(gradient.iter().all(|v: &f64| v.abs() < room), "{gradient}");
            let delta = [0.4, -0.6, 0.8];
            let law = crate::theory::Law::orthogonal(3, 7);
            let variance = |kernel: &dyn ShiftInvariant| {
                let law = law.clone().with_radius(kernel.spectrum().law());
                crate::theory::shift_invariant(kernel, &delta, &law).unwrap()
            };
            assert!((variance(&kernel) - variance(&own)).abs() < 1e-4);
        }
    }

    #[test]
    fn maps_take_it_with_any_coupling_of_its_dimension() {
        let kernel = RadialKernel::from_kernel("own", 3, matern).unwrap();
        let (x, y) = (arr1(&[0.3, -0.4, 0.9]), arr1(&[0.7, 0.2, 0.1]));
        let exact: f64 = kernel.value(&x, &y).unwrap();
        let paired = AnyCoupling::from(Orthogonal.with_coupled_radii(RadiusCoupling::Paired));
        for coupling in [Orthogonal.into(), paired] {
            let any = AnyKernel::from(kernel.clone());
            let omega = any.draw(&coupling, 3, 600, 5).unwrap();
            let map: Map<f64> = Trigonometric.build(omega, any).unwrap();
            let deviation = map.log_variance(&x, &y).unwrap().unwrap().exp().sqrt();
            assert!((map.estimate(&x, &y).unwrap() - exact).abs() < 4.5 * deviation, "{coupling}");
        }
        let map: Map<f64> = Map::for_kernel(kernel.clone(), 3, 64, 1).unwrap();
        assert!(map.kernel().is_some());
        assert_eq!(AnyKernel::from(kernel.clone()).to_string(), "own in 3 dimensions, lengthscale 1");
        assert!(matches!(kernel.draw(&Hadamard::default(), 3, 64, 1), Err(Error::Shape { .. })));
        assert!(matches!(kernel.draw(&Orthogonal, 2, 64, 1), Err(Error::Shape { .. })));
        assert!(RadialKernel::from_kernel("none", 0, matern).is_err());
        assert!(kernel.clone().with_lengthscale(vec![1.0, 2.0]).is_err());
        let flat = kernel.with_slope(|_| 0.0);
        assert!(flat.gradient(&x, &y).unwrap().iter().all(|v: &f64| *v == 0.0));
        assert_eq!(flat.of_square(f64::INFINITY).sign, 0.0);
    }
}
