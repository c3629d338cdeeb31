//! Sums and products of shift-invariant kernels, cosines and periodic kernels.

mod factor;
mod harmonics;
mod powered;
mod term;

use ndarray::{Array2, ArrayRef2};

use super::gradient::ScaledSum;
use super::{Lengthscale, Radius, ShiftInvariant, Spectrum};
use crate::SignedLog;
use crate::digest::{Digest, Identify};
use crate::error::{Error, Result, check_positive, check_size};
use crate::generator::Generator;

use factor::{Factor, Moments, chosen};
use term::{Term, check_weight};

/// The most terms of a product of sums.
const MOST: usize = 100_000;

/// A weighted sum of products of shift-invariant kernels, cosines and periodic kernels.
///
/// ```
/// use random_features::Map;
/// use random_features::kernel::{Gaussian, Kernel, SpectralMixture};
/// use random_features::ndarray::arr1;
/// // Daily waves whose shape changes over ten days, and a slow trend (in days).
/// let daily = SpectralMixture::periodic(vec![1.0], 0.7)?;
/// let changing = SpectralMixture::product(&[&daily, &Gaussian::new(10.0)?])?;
/// let kernel = SpectralMixture::sum(&[
///     (0.3, &changing),
///     (0.7, &Gaussian::new(60.0)?),
/// ])?;
/// let (x, y) = (arr1(&[0.0]), arr1(&[0.5]));
/// let exact = kernel.value(&x, &y)?;
/// let map: Map<f64> = Map::for_kernel(kernel, 1, 2000, 7)?;
/// assert!((map.estimate(&x, &y)? - exact).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// k(δ) = Σ_q w_q Π_j k_qj(δ), where the weights w_q are divided by their sum, so that k(0) = 1. Each k_qj is a named
/// shift-invariant kernel, a [cosine](SpectralMixture::cosine), a [periodic kernel](SpectralMixture::periodic) or a [powered exponential
/// one by coordinates](SpectralMixture::powered_exponential).
/// [`SpectralMixture::new`] is the spectral mixture kernel of Gaussian components.
///
/// # Spectrum
/// A frequency belongs to the sum's term q with probability w_q. It is the sum of independent frequencies of the factors.
/// Rows are independent, so that the variance of [`Trigonometric`](crate::Trigonometric) features is ½(1 + k(2δ) − 2k(δ)²)/m.
/// [`Map::for_mixture`](crate::Map::for_mixture) gives each term frequencies of its own, by its need at given points: a lone cosine
/// needs one.
///
/// # Exact where
/// A single cosine: every frequency is the same up to its sign.
///
/// # References
/// Wilson and Adams, *Gaussian Process Kernels for Pattern Discovery and Extrapolation*, in one dimension. In several they multiply
/// cosines of the coordinates, which is a [`product`](SpectralMixture::product) of cosines here.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredSpectralMixture")
)]
pub struct SpectralMixture {
    terms: Vec<Term>,
    /// ℓ of the whole kernel; one for each dimension if the factors are for one dimension only.
    lengthscale: Lengthscale,
}

impl SpectralMixture {
    /// The spectral mixture kernel Σ_q w_q exp(−½ Σₗ σ_qₗ² δₗ²) cos(μ_q·δ): `weights` w of length Q, `means` μ and `deviations` σ
    /// of frequencies, both Q × d.
    ///
    /// ```
    /// use random_features::kernel::{Kernel, SpectralMixture};
    /// use random_features::ndarray::{arr1, arr2};
    /// let kernel = SpectralMixture::new(
    ///     &[0.5, 0.5],
    ///     &arr2(&[[0.0], [3.0]]),
    ///     &arr2(&[[1.0], [0.5]]),
    /// )?;
    /// let value = kernel.value(&arr1(&[1.0]), &arr1(&[0.0]))?;
    /// let expected =
    ///     0.5 * (-0.5f64).exp() + 0.5 * (-0.125f64).exp() * 3f64.cos();
    /// assert!((value - expected).abs() < 1e-14);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if lengths differ, [`Parameter`](Error::Parameter) unless weights and deviations are positive and
    /// finite, and means finite.
    pub fn new(weights: &[f64], means: &ArrayRef2<f64>, deviations: &ArrayRef2<f64>) -> Result<Self> {
        check_size("the number of means", weights.len(), means.nrows())?;
        check_size("the number of deviations", weights.len(), deviations.nrows())?;
        check_size("the dimension of deviations", means.ncols(), deviations.ncols())?;
        if let Some(value) = deviations.iter().copied().find(|v| !(*v > 0.0 && v.recip().is_finite())) {
            return Err(Error::Parameter { name: "a deviation", value, domain: "positive and finite" });
        }
        let rows = means.rows().into_iter().zip(deviations.rows());
        let term = |(weight, (mean, deviations)): (
            &f64,
            (ndarray::ArrayView1<'_, f64>, ndarray::ArrayView1<'_, f64>),
        )| {
            let scales = deviations.iter().map(|v| v.recip()).collect::<Vec<f64>>();
            let gaussian = Factor::of_law(Radius::Chi, scales.into())?;
            Ok(Term { weight: *weight, factors: vec![gaussian, Factor::cosine(mean.to_vec())?] })
        };
        Self::of_terms(weights.iter().zip(rows).map(term).collect::<Result<_>>()?)
    }

    /// The kernel cos(μ·δ) of the d numbers μ, a wave of the period 2π/μₗ along each coordinate.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless there is a number and all are finite.
    pub fn cosine(frequency: Vec<f64>) -> Result<Self> {
        Self::of_terms(vec![Term::of(Factor::cosine(frequency)?)])
    }

    /// The periodic kernel exp(−2 Σₗ sin²(πδₗ/pₗ)/ℓ²) of d periods p.
    ///
    /// # Spectrum
    /// The coordinates of a frequency are independent multiples ±2πj/pₗ of the basic frequency, j with probability 2e⁻ᵃIⱼ(a), and 0
    /// with e⁻ᵃI₀(a), where a = 1/ℓ² and Iⱼ is the modified Bessel function.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless all periods are positive and finite, and ℓ from 0.01 to 10⁶.
    pub fn periodic(periods: Vec<f64>, lengthscale: f64) -> Result<Self> {
        Self::of_terms(vec![Term::of(Factor::periodic(periods, lengthscale)?)])
    }

    /// The powered exponential kernel by coordinates, exp(−Σₗ |δₗ/ℓₗ|^α): rough along each of them. It is the Laplace kernel for α = 1.
    ///
    /// ```
    /// use random_features::Map;
    /// use random_features::kernel::{Kernel, SpectralMixture};
    /// use random_features::ndarray::arr1;
    /// let kernel = SpectralMixture::powered_exponential(1.5, 1.0)?;
    /// let (x, y) = (arr1(&[1.0, 1.0]), arr1(&[0.0, 0.0]));
    /// let exact = (-2.0f64).exp();
    /// assert!((kernel.value(&x, &y)? - exact).abs() < 1e-15);
    /// let map: Map<f64> = Map::for_kernel(kernel, 2, 1000, 7)?;
    /// assert!((map.estimate(&x, &y)? - exact).abs() < 0.1);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Spectrum
    /// The coordinates of a frequency are independent, with a symmetric stable law of index α. The isotropic kernel is
    /// [`PoweredExponential`](super::PoweredExponential).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless α is from 0.2 to 2, and if an ℓ is outside its domain.
    pub fn powered_exponential(alpha: f64, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        Self::of_terms(vec![Term::of(Factor::powered(alpha, lengthscale.into())?)])
    }

    /// The sum of kernels with weights, which are divided by their sum.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless all weights are positive and finite, [`Unsupported`](Error::Unsupported) for a kernel of
    /// your own, [`Shape`](Error::Shape) if kernels are for different dimensions or there is none.
    pub fn sum(kernels: &[(f64, &dyn ShiftInvariant)]) -> Result<Self> {
        let mut all = Vec::new();
        for (weight, kernel) in kernels {
            check_weight(*weight)?;
            all.extend(terms(*kernel)?.into_iter().map(|term| Term { weight: weight * term.weight, ..term }));
        }
        Self::of_terms(all)
    }

    /// The product of kernels.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) for a kernel of your own, [`Shape`](Error::Shape) if kernels are for different dimensions or
    /// there is none; [`Parameter`](Error::Parameter) if a product of sums has more than 100,000 terms.
    pub fn product(kernels: &[&dyn ShiftInvariant]) -> Result<Self> {
        check_positive("the number of kernels", kernels.len())?;
        let mut all = vec![Term::one()];
        for kernel in kernels {
            let others = terms(*kernel)?;
            let count = all.len().saturating_mul(others.len());
            if count > MOST {
                let (name, value) = ("the number of terms of a product of sums", count as f64);
                return Err(Error::Parameter { name, value, domain: "at most 100,000" });
            }
            all = all.iter().flat_map(|term| others.iter().map(|other| term.times(other))).collect();
        }
        Self::of_terms(all)
    }

    /// Divides weights by their sum; leaves out terms of no weight beside others.
    fn of_terms(mut terms: Vec<Term>) -> Result<Self> {
        terms.iter().try_for_each(|term| check_weight(term.weight))?;
        let total = |terms: &[Term]| terms.iter().map(|term| term.weight).sum::<f64>();
        // Weights whose sum is 1 up to rounding stay, so that a text or a part is read as what it was.
        if (total(&terms) - 1.0).abs() > 1e-14 {
            let largest = terms.iter().map(|term| term.weight).fold(0.0, f64::max);
            terms.iter_mut().for_each(|term| term.weight /= largest);
            let total = total(&terms);
            terms.iter_mut().for_each(|term| term.weight /= total);
            terms.retain(|term| term.weight > 0.0);
        }
        Self::checked(terms, Lengthscale::default())
    }

    /// Checks weights and dimensions.
    fn checked(terms: Vec<Term>, lengthscale: Lengthscale) -> Result<Self> {
        check_positive("the number of terms", terms.len())?;
        let terms = terms.into_iter().map(Term::checked).collect::<Result<Vec<_>>>()?;
        let total = terms.iter().map(|term| term.weight).sum::<f64>();
        if (total - 1.0).abs() > 1e-12 {
            return Err(Error::Parameter { name: "the sum of the weights", value: total, domain: "1" });
        }
        let mut dims = terms.iter().flat_map(|term| &term.factors).filter_map(Factor::dim);
        let dim = dims.next();
        for other in dims {
            check_size("the dimension of a factor", dim.unwrap_or(other), other)?;
        }
        let lengthscale = match (dim, lengthscale.checked()?) {
            (Some(d), Lengthscale::Isotropic(scale)) => Lengthscale::PerDimension(vec![scale; d]),
            (Some(d), scales) => {
                scales.check_dim(d)?;
                scales
            }
            (None, scales) => scales,
        };
        Ok(SpectralMixture { terms, lengthscale })
    }

    /// Sets the lengthscale ℓ of the whole kernel, by which points are divided before all else.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if an ℓ is outside its domain, [`Shape`](Error::Shape) if it is for another dimension.
    pub fn with_lengthscale(self, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        Self::checked(self.terms, lengthscale.into())
    }

    /// The lengthscale of the whole kernel.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    /// The terms, each with its weight and as a kernel whose weight is 1.
    pub(crate) fn components(&self) -> Result<Vec<(f64, Component)>> {
        let component = |term: &Term| {
            let stretched = term.stretched(&self.lengthscale)?;
            let named = match stretched.factors.as_slice() {
                [factor] => factor.named().map(|(law, ell)| Component::Named(law, ell.clone())),
                _ => None,
            };
            let other = || Self::of_terms(vec![Term { weight: 1.0, ..stretched.clone() }]);
            Ok((term.weight, named.map_or_else(|| other().map(Component::Other), Ok)?))
        };
        self.terms.iter().map(component).collect()
    }

    /// k at the difference whose coordinate l is `delta(l)`, l < d, of points that are divided by ℓ.
    pub(super) fn at(&self, d: usize, delta: &dyn Fn(usize) -> f64) -> SignedLog {
        if let [term] = self.terms.as_slice() {
            return term.at(d, delta).scaled(term.weight.ln());
        }
        let terms: Vec<SignedLog> =
            self.terms.iter().map(|term| term.at(d, delta).scaled(term.weight.ln())).collect();
        SignedLog::sum(terms.iter().copied())
    }

    /// Replaces the difference δ of points that are divided by ℓ by a vector g for which the gradient of k is eˢ g, and returns s.
    pub(super) fn gradient(&self, delta: &mut [f64]) -> f64 {
        let mut sum = ScaledSum::new(delta.len());
        self.terms.iter().for_each(|term| term.add_gradient(delta, &mut sum));
        delta.copy_from_slice(&sum.numbers);
        sum.ln_scale
    }

    /// m independent frequencies of the kernel with ℓ = 1, m × d.
    pub(crate) fn rows(&self, d: usize, m: usize, rng: &mut Generator) -> Result<Array2<f64>> {
        let samplers = self.terms.iter().map(|term| term.sampler(d)).collect::<Result<Vec<_>>>()?;
        let mut rows = Array2::zeros((m, d));
        for mut row in rows.rows_mut() {
            let term = chosen(self.terms.iter().map(|term| term.weight), rng).unwrap_or(samplers.len() - 1);
            for factor in &samplers[term] {
                factor(rng, &mut row)?;
            }
        }
        Ok(rows)
    }

    /// The law of the frequencies, by its identity.
    pub(crate) fn law(&self) -> Radius {
        Radius::Mixture(Digest::of(&self.name().as_str()))
    }
}

/// A term of a spectral mixture without its weight.
#[derive(Clone, Debug)]
pub(crate) enum Component {
    /// A named kernel, by its spectral law.
    Named(Radius, Lengthscale),
    /// A product, or another factor.
    Other(SpectralMixture),
}

/// The terms of a kernel: those of a mixture, or a single one.
fn terms(kernel: &dyn ShiftInvariant) -> Result<Vec<Term>> {
    match kernel.spectrum() {
        Spectrum::Mixture(mixture) => {
            mixture.terms.iter().map(|term| term.stretched(kernel.lengthscale())).collect()
        }
        other => Ok(vec![Term::of(Factor::of_law(other.law(), kernel.lengthscale().clone())?)]),
    }
}

impl Identify for SpectralMixture {
    fn identify(&self, digest: &mut Digest) {
        (self.name().as_str(), &self.lengthscale).identify(digest);
    }
}

impl ShiftInvariant for SpectralMixture {
    fn name(&self) -> String {
        let terms: Vec<String> = self.terms.iter().map(ToString::to_string).collect();
        format!("spectral mixture ({})", terms.join(" + "))
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Mixture(self)
    }

    /// k at a difference whose first coordinate has this square, and whose others are 0.
    fn of_square(&self, square: f64) -> SignedLog {
        let d = self.terms.iter().flat_map(|term| &term.factors).find_map(Factor::dim).unwrap_or(1);
        self.at(d, &|l| if l == 0 { square.sqrt() } else { 0.0 })
    }

    /// ln of the mean over terms of their variances and of the squares (k_q − k)²; NaN if δ is of another dimension.
    fn ln_variance(&self, delta: &[f64]) -> f64 {
        if self.lengthscale.check_dim(delta.len()).is_err() {
            return f64::NAN;
        }
        let of = |term: &Term| (term.weight, term.moments(delta.len(), &|l| delta[l]));
        let all: Vec<(f64, Moments)> = self.terms.iter().map(of).collect();
        let deficit: f64 = all.iter().map(|(weight, term)| weight * term.deficit).sum();
        let variance =
            |(weight, term): &(f64, Moments)| weight * (term.variance + (term.deficit - deficit).powi(2));
        all.iter().map(variance).sum::<f64>().ln()
    }
}

/// The stored form, validated on reading.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct StoredSpectralMixture {
    terms: Vec<Term>,
    lengthscale: Lengthscale,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredSpectralMixture> for SpectralMixture {
    type Error = Error;

    fn try_from(stored: StoredSpectralMixture) -> Result<Self> {
        SpectralMixture::checked(stored.terms, stored.lengthscale)
    }
}
