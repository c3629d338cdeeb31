//! Kernels that are given by a function of the distance, or by a spectral density.

use std::sync::Arc;

use super::radial_density::{of_density, of_kernel};
use super::radial_table::RadialTable;
use super::{Lengthscale, Radii, ShiftInvariant, Spectrum};
use crate::SignedLog;
use crate::digest::Digest;
use crate::error::{Result, check_positive, check_size};
use crate::generator::Generator;
use crate::memory::check_memory;

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
/// K(x, y) = k(‖x − y‖/ℓ) with k(0) = 1 and k(t) = ∫ 𝒮(‖ω‖) cos(t ω₁) dω. The law of the radii of frequencies is tabulated once: by
/// integrals of k, or from the density 𝒮. Quantiles are found by Newton's method, so that [coupled
/// radii](crate::frequency::CoupledRadii) work, too. Whether k is positive definite depends on d: points are of this dimension alone.
///
/// # Exact where
/// Values of the kernel are those of k. The law has an error in probability of some 10⁻⁸ for smooth functions, and at most 10⁻⁵;
/// what is not found to this accuracy is refused. Estimates are biased by as much. From values alone k must fall off within a few
/// orders of magnitude, and d must be at most some 10, or less where k is less smooth. Kernels with a kink at 0, such as e^{−t}, have
/// too many large radii: give their density, too.
///
/// # Variance
/// The variance of [`Trigonometric`](crate::Trigonometric) features follows from k(t) and k(2t), and from the quantiles for orthogonal
/// rows.
///
/// # Cost
/// About a second, once. Each frequency takes a microsecond.
///
/// # Storage
/// Functions cannot be stored: maps of such a kernel have none. Maps take two kernels for one if their names, dimensions, lengthscales,
/// and some of their values and quantiles are equal.
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*; Stein and Weiss, *Introduction to Fourier Analysis on
/// Euclidean Spaces*, theorem IV.3.3, for the transform.
#[derive(Clone)]
pub struct RadialKernel {
    name: String,
    dim: usize,
    lengthscale: Lengthscale,
    k: Function,
    /// k′, if it is known.
    slope: Option<Function>,
    law: Arc<RadialTable>,
}

impl std::fmt::Debug for RadialKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Streams of draws follow from it: they do not depend on the lengthscale.
        write!(f, "RadialKernel {:?}", self.name)
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
        let law = of_kernel(dim, &k)?;
        Ok(RadialKernel::of_law(name.into(), dim, Arc::new(k), law))
    }

    /// The kernel k(‖x − y‖) of points in ℝᵈ, d = `dim`, whose frequencies have the density 𝒮(‖ω‖), which integrates to 1 over ℝᵈ.
    ///
    /// Both are given, since neither is found from the other where it has a kink. They are compared at three distances.
    ///
    /// ```
    /// use random_features::kernel::{Kernel, RadialKernel};
    /// use random_features::ndarray::arr1;
    /// use std::f64::consts::PI;
    /// // e^{−t} in the plane.
    /// let density = |r: f64| (1.0 + r * r).powf(-1.5) / (2.0 * PI);
    /// let k = |t: f64| (-t).exp();
    /// let kernel = RadialKernel::from_density("exponential", 2, density, k)?;
    /// let (x, y) = (arr1(&[2.0, 0.0]), arr1(&[0.0, 0.0]));
    /// assert_eq!(kernel.value(&x, &y)?, (-2f64).exp());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if the density is negative or not a number at a radius, does not integrate to 1, is not
    /// smooth, or is not that of k.
    pub fn from_density(
        name: impl Into<String>,
        dim: usize,
        density: impl Fn(f64) -> f64,
        k: impl Fn(f64) -> f64 + Send + Sync + 'static,
    ) -> Result<Self> {
        check_positive("the dimension d", dim)?;
        let law = of_density(dim, &density, &k)?;
        Ok(RadialKernel::of_law(name.into(), dim, Arc::new(k), law))
    }

    fn of_law(name: String, dim: usize, k: Function, law: RadialTable) -> Self {
        // A hash of some values of k and of the law tells closures of one name from each other.
        let places = [0.1, 0.3, 0.5, 0.7, 0.9, 0.99].map(|p| law.quantile(p));
        let mark = Digest::of(&(places, places.map(|l| k(l.exp().recip())))) as u32;
        let (name, lengthscale) =
            (format!("{name} ({mark:08x}) in {dim} dimensions"), Lengthscale::default());
        RadialKernel { name, dim, lengthscale, k, slope: None, law: Arc::new(law) }
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
    /// Without it gradients come from differences of k, to about nine digits where k is smooth.
    #[must_use]
    pub fn with_slope(self, slope: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Self {
        RadialKernel { slope: Some(Arc::new(slope)), ..self }
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
        if distance.is_infinite() { 0.0 } else { (self.k)(distance) }
    }

    /// k′ at a distance above 0.
    fn slope(&self, distance: f64) -> f64 {
        match &self.slope {
            Some(slope) => slope(distance),
            // The scale on which k changes keeps steps from vanishing near 0.
            None => difference(&*self.k, distance, 1e-3 * (distance + self.law.quantile(0.5).exp().recip())),
        }
    }

    fn check_dim(&self, d: usize) -> Result<()> {
        check_size("the dimension of frequencies of a radial kernel", self.dim, d)
    }
}

/// The derivative of an even function by differences at four places.
fn difference(k: &dyn Fn(f64) -> f64, t: f64, h: f64) -> f64 {
    let central = |h: f64| (k(t + h) - k((t - h).abs())) / (2.0 * h);
    (4.0 * central(h) - central(2.0 * h)) / 3.0
}

impl ShiftInvariant for RadialKernel {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn dim(&self) -> Option<usize> {
        Some(self.dim)
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
            (RadialKernel::from_density("own", 3, density, matern).unwrap(), 1e-8),
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
        let text = AnyKernel::from(kernel.clone()).to_string();
        assert!(text.starts_with("own (") && text.ends_with(") in 3 dimensions, lengthscale 1"), "{text}");
        // Closures of one name are not one kernel; a lengthscale leaves the stream as it is.
        let other = RadialKernel::from_kernel("own", 3, |t| matern(1.01 * t)).unwrap();
        assert_ne!(AnyKernel::from(other), AnyKernel::from(kernel.clone()));
        let wide = kernel.clone().with_lengthscale(2.0).unwrap();
        let [one, two] = [&kernel, &wide].map(|kernel| kernel.draw(&Orthogonal, 3, 9, 1).unwrap());
        assert_eq!(one.rows(), two.rows());
        // Points of another dimension have no values.
        let long = arr1(&[0.1; 5]);
        assert!(matches!(kernel.value(&long, &long), Err(Error::Shape { .. })));
        let paired = Orthogonal.with_coupled_radii(RadiusCoupling::Paired);
        assert!(matches!(kernel.draw(&paired, 4, 8, 1), Err(Error::Shape { .. })));
        assert!(matches!(kernel.draw(&Hadamard::default(), 3, 64, 1), Err(Error::Shape { .. })));
        assert!(matches!(kernel.draw(&Orthogonal, 2, 64, 1), Err(Error::Shape { .. })));
        assert!(RadialKernel::from_kernel("none", 0, matern).is_err());
        assert!(kernel.clone().with_lengthscale(vec![1.0, 2.0]).is_err());
        // Slopes near 0 are proportional to the distance, but for rounding.
        for t in [1e-14, 1e-10, 1e-6, 1e-3] {
            let off = kernel.slope(t) + 5.0 / 3.0 * t;
            assert!(off.abs() < 1e-10 + 0.05 * t, "{t}: {off}");
        }
        let flat = kernel.with_slope(|_| 0.0);
        assert!(flat.gradient(&x, &y).unwrap().iter().all(|v: &f64| *v == 0.0));
        assert_eq!(flat.of_square(f64::INFINITY).sign, 0.0);
    }
}
