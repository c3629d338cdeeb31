//! [`ImportanceMixture`]: positive features on frequencies from the best density for given points.

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayRef2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::sketch::{Sketch, SketchNumbers};
use super::{AnyKernel, Facts, FeatureMap, Form, Recipe, Side, Sketched, Tile};
use crate::Real;
use crate::error::{Error, Result, check_finite, check_positive};
use crate::generator::Generator;
use crate::kernel::Lengthscale;
use crate::memory::check_memory;
use crate::numeric::special::{largest, ln_sum_exp};
use crate::numeric::{self, Isa, Packed, matrix_of, product, slice_of};
use crate::once::once;
use crate::progress;

/// Positive features with frequencies from the density that is best for given points. Their mean squared error over all
/// pairs of the points is the least that m unbiased features with independent draws can have.
///
/// ```
/// use random_features::data::GramSpectrum;
/// use random_features::kernel::{Gaussian, Kernel};
/// use random_features::map::ImportanceMixture;
/// use random_features::ndarray::Array2;
/// let x =
///     Array2::from_shape_fn((100, 2), |(i, k)| ((i * (k + 2)) as f64).sin());
/// let kernel = Gaussian::new(1.0)?;
/// let map = ImportanceMixture::new(&x, 64)?.recipe(kernel.clone()).draw(7)?;
/// let exact = kernel.gram(&x, &x)?;
/// let error = (map.gram(&x, &x)? - &exact).mapv(|v| v * v).sum();
/// let error = (error / exact.mapv(|v| v * v).sum()).sqrt();
/// let limit = GramSpectrum::new(&kernel, &x, &x)?.independent_error(64);
/// assert!((0.5..2.0).contains(&(error / limit)));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// With f(ω, x) = exp(ω·x − ½‖x‖²) for the softmax kernel, and exp(ω·x − ‖x‖²) for the Gaussian kernel, K(x, y) = E f(ω, x) f(ω, y) over
/// ω ~ N(0, I). The density of ω is q ∝ N(ω; 0, I) Σᵢ f(ω, xᵢ)², and φⱼ(x) = f(ωⱼ, x) √(N(ωⱼ; 0, I)/(m q(ωⱼ))). Then q is a mixture of
/// N(2xᵢ, I), with equal weights for the Gaussian kernel and weights ∝ e^{‖xᵢ‖²} for the softmax kernel. Estimates are unbiased at all
/// points and never negative.
///
/// Points are divided by the lengthscale first. Features of the Gaussian kernel do not change if all points move. Features are
/// computed in `f64` for points of any scalar.
///
/// # Variance
/// The mean variance over all pairs of the n points, with themselves too, is ((E K(x, x))² − E K(x, y)²)/m, the least one
/// by [`limits::independent`](crate::theory::limits::independent). No closed form is known for a pair. At points far from all xᵢ the
/// variance may be much larger than K²: many xᵢ serve new points. Cosines and sines have a smaller one for the Gaussian
/// kernel, (1 + E K(2x, 2y) − 2 E K²)/(2m) with 2m features, since a draw has two of them.
///
/// Pairs of two sets of points, xᵢ and yⱼ, have the best density ∝ N(ω; 0, I) √(Σᵢ f(ω, xᵢ)² Σⱼ f(ω, yⱼ)²), which has no closed form.
/// Give the points of both sets together then.
///
/// # Exact where
/// x = y = xᵢ, if that is the only point, for any draw.
///
/// # Accuracy
/// Exponents of the size of ‖v‖² cancel, for distances v from the mean of the points over ℓ: at 10⁵ some four digits of a feature are left.
///
/// # Cost
/// O(md) for a point, and O(mnd) to draw, also where a stored map is read. The n points are stored.
///
/// # References
/// Sernau, Bonacina and Saurous, *All Random Features Representations are Equivalent*; the closed form of q is new.
#[doc(alias = "importance sampling")]
#[doc(alias = "leverage")]
#[derive(Clone, Debug, PartialEq)]
pub struct ImportanceMixture {
    /// xᵢ, n × d, in standard layout.
    points: Arc<Array2<f64>>,
    m: usize,
}

impl ImportanceMixture {
    /// m features for points x, n × d.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if n, d or m is 0, [`NotFinite`](Error::NotFinite) with the first row that holds NaN or an infinity,
    /// [`Memory`](Error::Memory) if a copy of x does not fit in memory.
    #[inline(never)]
    pub fn new<T: Real>(x: &ArrayRef2<T>, m: usize) -> Result<Self> {
        check_positive("the number of points", x.nrows())?;
        check_positive("the dimension d", x.ncols())?;
        check_positive("the number of features", m)?;
        check_finite("the points", x)?;
        check_memory("points", x.nrows(), x.ncols().saturating_mul(size_of::<f64>()))?;
        let points = matrix_of(x.nrows(), x.ncols(), x.iter().map(|v| v.widen()).collect());
        Ok(ImportanceMixture { points: Arc::new(points), m })
    }

    /// The points xᵢ, n × d.
    pub fn points(&self) -> &Array2<f64> {
        &self.points
    }

    /// The map for a softmax or Gaussian kernel as plain data, to be drawn.
    pub fn recipe(&self, kernel: impl Into<AnyKernel>) -> Recipe {
        Sketched.recipe(self.clone(), kernel)
    }
}

impl Sketch for ImportanceMixture {
    const NAME: &'static str = "importance mixture";
    type Drawn = Weighted;

    fn dim(&self) -> usize {
        self.points.ncols()
    }

    fn feature_dim(&self) -> usize {
        self.m
    }

    fn numbers(&self) -> SketchNumbers {
        let (n, d) = self.points.dim();
        SketchNumbers {
            integers: [n, d, self.m].map(|size| size as u64).to_vec(),
            reals: slice_of(&self.points).to_vec(),
        }
    }

    fn of_numbers(numbers: &SketchNumbers) -> Result<Self> {
        let what = "an importance mixture of other numbers than points and sizes";
        let unfit = Error::Unsupported { what };
        let [n, d, m] = numbers.integers[..] else { return Err(unfit) };
        let [n, d, m] = [n, d, m].map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        match n.checked_mul(d) {
            Some(count) if count == numbers.reals.len() => {
                ImportanceMixture::new(&matrix_of(n, d, numbers.reals.clone()), m)
            }
            _ => Err(unfit),
        }
    }

    fn serves(&self, kernel: &AnyKernel) -> bool {
        matches!(kernel, AnyKernel::Softmax(_) | AnyKernel::Gaussian(_))
    }

    fn draw(&self, kernel: &AnyKernel, rng: &mut Generator) -> Result<Weighted> {
        Weighted::draw(self, kernel, rng)
    }

    fn with_m(&self, m: usize) -> Option<Self> {
        (m > 0).then(|| ImportanceMixture { m, ..self.clone() })
    }
}

/// The features exp(ωⱼ·v + r‖v‖² + aⱼ) of v = x/ℓ − c. It is public in a private module, since it is the drawn map of a sketch.
#[derive(Debug)]
pub struct Weighted {
    lengthscale: Lengthscale,
    /// c: the mean of the points xᵢ/ℓ for the Gaussian kernel, which keeps exponents small; else 0.
    centre: Array1<f64>,
    /// r.
    row: f64,
    /// ω, m × d, in standard layout.
    omega: Array2<f64>,
    packed: Packed<f64>,
    /// aⱼ = ½ ln(N(ωⱼ; 0, I)/(m q(ωⱼ))).
    weights: Vec<f64>,
}

impl Weighted {
    fn draw(mixture: &ImportanceMixture, kernel: &AnyKernel, rng: &mut Generator) -> Result<Self> {
        let (m, d) = (mixture.m, mixture.points.ncols());
        check_memory("frequencies", m, d.saturating_mul(2 * size_of::<f64>()))?;
        let (lengthscale, row) = (kernel.lengthscale().clone(), kernel.row() - 0.5);
        let mut points = lengthscale.divide_rows(mixture.points.as_ref().clone());
        let centre = match kernel.row() {
            0.0 => Array1::zeros(d),
            _ => points.mean_axis(Axis(0)).unwrap_or_default(),
        };
        points -= &centre;
        let norms: Vec<f64> = points.rows().into_iter().map(|x| x.dot(&x)).collect();
        if let Some(row) = norms.iter().position(|norm| !(4.0 * norm).is_finite()) {
            return Err(Error::NotFinite { what: "the squared norms of the points", row, column: None });
        }
        // ln ∫ N(ω; 0, I) f(ω, xᵢ)² dω.
        let masses: Vec<f64> = norms.iter().map(|norm| 2.0 * (1.0 + row) * norm).collect();
        let top = largest(masses.iter().copied());
        let below: Vec<f64> = (masses.iter())
            .scan(0.0, |sum, mass| {
                *sum += (mass - top).exp();
                Some(*sum)
            })
            .collect();
        let total = below[below.len() - 1];
        let (mut omega, mut weights) = (Array2::zeros((m, d)), Vec::with_capacity(m));
        for mut omega in omega.rows_mut() {
            progress::check()?;
            let place = total * rng.random::<f64>();
            let i = below.partition_point(|sum| *sum <= place).min(below.len() - 1);
            for (omega, x) in omega.iter_mut().zip(points.row(i)) {
                let normal: f64 = StandardNormal.sample(rng);
                *omega = 2.0 * x + normal;
            }
            let products = points.dot(&omega);
            let squares = products.iter().zip(&norms).map(|(product, norm)| 2.0 * (product + row * norm));
            let ln_sum = ln_sum_exp(&squares.collect::<Vec<f64>>());
            weights.push(0.5 * (top + total.ln() - ln_sum - (m as f64).ln()));
        }
        let packed = Packed::of_rows(m, d, |j| &slice_of(&omega)[j * d..][..d]);
        Ok(Weighted { lengthscale, centre, row, omega, packed, weights })
    }

    /// v of a point.
    fn input<T: Real>(&self, x: ArrayView1<'_, T>) -> Vec<f64> {
        self.lengthscale.divide(x).zip(&self.centre).map(|(u, centre)| u - centre).collect()
    }

    /// Writes ln φ less the largest of a point, which it returns; NaN for a point that is not finite.
    fn logarithms(&self, v: &[f64], out: &mut [f64]) -> f64 {
        product(Isa::best(), v, v.len(), self.packed.all(), out, out.len());
        out.iter_mut().zip(&self.weights).for_each(|(out, weight)| *out += weight);
        let top = largest(out.iter().copied());
        out.iter_mut().for_each(|out| *out -= top);
        let scale = top + self.row * v.iter().map(|v| v * v).sum::<f64>();
        if scale.is_finite() { scale } else { f64::NAN }
    }
}

impl<T: Real> FeatureMap<T> for Weighted {
    fn facts(&self) -> Facts {
        Facts::new(self.centre.len(), vec![self.weights.len()]).symmetric().non_negative().logarithms()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, form: Form, tile: &mut Tile<'_, T>) {
        let mut values = vec![0.0; self.weights.len()];
        for (i, x) in x.rows().into_iter().enumerate() {
            let scale = self.logarithms(&self.input(x), &mut values);
            if form == Form::Values {
                numeric::exp_minus(Isa::best(), &mut values, 0.0);
            }
            let row = tile.row(i);
            row.values.iter_mut().zip(&values).for_each(|(out, value)| *out = T::saturated(*value));
            row.log_scales[0] = scale;
            if scale.is_nan() {
                tile.poison(i);
            }
        }
    }

    fn pull_back(
        &self,
        _: Side,
        x: ArrayView2<'_, T>,
        cotangents: ArrayView2<'_, T>,
        mut out: ArrayViewMut2<'_, T>,
    ) -> bool {
        let mut values = vec![0.0; self.weights.len()];
        for ((x, cotangents), mut out) in x.rows().into_iter().zip(cotangents.rows()).zip(out.rows_mut()) {
            let v = self.input(x);
            let scale = self.logarithms(&v, &mut values);
            let slopes: Array1<f64> =
                values.iter().zip(cotangents).map(|(ln, c)| c.widen() * ln.exp()).collect();
            let (along, total) = (slopes.dot(&self.omega), slopes.sum());
            for (k, out) in out.iter_mut().enumerate() {
                let slope = (along[k] + 2.0 * self.row * total * v[k]) / self.lengthscale.at(k);
                *out = T::narrow(if scale.is_nan() { scale } else { slope });
            }
        }
        true
    }
}

once!(ImportanceMixture::new::<T>);
