//! The map of a sum of kernels, with so many frequencies for each term as points need.

use ndarray::ArrayRef2;
use rand::RngExt;

use super::compose::WeightedSum;
use super::{AnyKernel, Map};
use crate::Real;
use crate::error::{Error, Result, check_finite, check_positive};
use crate::generator::Generator;
use crate::kernel::{
    Component, Gaussian, Laplace, Lengthscale, Matern, PoweredExponential, Radius, RationalQuadratic,
    SpectralMixture,
};
use crate::numeric::descending;
use crate::once::once;

/// Pairs of points at which variances are compared.
const PAIRS: usize = 1000;

impl<T: Real> Map<T> {
    /// The map of a sum of kernels whose m frequencies are divided among the terms by their need at points x, n × d.
    ///
    /// With independent frequencies the mean variance over pairs of points is then about the least one.
    ///
    /// ```
    /// use random_features::Map;
    /// use random_features::kernel::{Gaussian, SpectralMixture};
    /// use random_features::ndarray::Array2;
    /// // A wave of one period, which one frequency knows, and a slow trend.
    /// let wave = SpectralMixture::cosine(vec![6.0])?;
    /// let kernel =
    ///     SpectralMixture::sum(&[(0.8, &wave), (0.2, &Gaussian::new(3.0)?)])?;
    /// let x = Array2::from_shape_fn((100, 1), |(i, _)| 0.1 * i as f64);
    /// let divided: Map<f64> = Map::for_mixture(&kernel, &x, 32, 7)?;
    /// let random: Map<f64> = Map::for_kernel(kernel, 1, 32, 7)?;
    /// let at = |map: &Map<f64>| map.log_variance(&x.row(0), &x.row(3));
    /// assert!(at(&divided)?.unwrap() < at(&random)?.unwrap() - 2.0);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// [`Map::for_kernel`] draws the term of each frequency at random. Here term q has a fixed number m_q of frequencies. The map is a
    /// [`WeightedSum`] of one map for each term, made by `for_kernel`: frequencies of named kernels are coupled where it couples them. The
    /// [kernel](Map::kernel) has the values of the mixture, and an identity of its own.
    ///
    /// # Definition
    /// m_q is proportional to w_q √(E V_q), rounded, and at least 1, where V_q is the variance of one frequency of term q at a pair of
    /// points. The mean is over 1,000 random pairs, less those of a point with itself.
    ///
    /// # Variance
    /// Σ w_q² V_q/m_q with independent frequencies, and the closed forms of coupled ones where they are known.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if m is below the number of terms, [`NoData`](Error::NoData) without points,
    /// [`NotFinite`](Error::NotFinite) with the first row that holds NaN or an infinity, [`Shape`](Error::Shape) if the kernel is for
    /// another dimension; the errors of [`Map::for_kernel`].
    pub fn for_mixture(kernel: &SpectralMixture, x: &ArrayRef2<T>, m: usize, seed: u64) -> Result<Self> {
        Self::of_mixture(kernel, x, m, seed)
    }

    #[inline(never)]
    fn of_mixture(kernel: &SpectralMixture, x: &ArrayRef2<T>, m: usize, seed: u64) -> Result<Self> {
        check_positive("the dimension d", x.ncols())?;
        kernel.lengthscale().check_dim(x.ncols())?;
        if x.nrows() == 0 {
            return Err(Error::NoData { what: "numbers of frequencies for points" });
        }
        check_finite("the points", x)?;
        let parts = kernel.components()?;
        if m < parts.len() {
            let (name, domain) = ("the number of frequencies", "at least the number of terms of the kernel");
            return Err(Error::Parameter { name, value: m as f64, domain });
        }
        let parts = parts.into_iter().map(|(weight, part)| Ok((weight, kernel_of(part)?)));
        let parts = parts.collect::<Result<Vec<(f64, AnyKernel)>>>()?;
        let mut rng = crate::rng(seed);
        let pairs = pairs(x, &mut rng);
        let deviations = parts.iter().map(|(weight, kernel)| weight * deviation(kernel, &pairs));
        let counts = shares(&deviations.collect::<Vec<_>>(), m);
        let map = |((weight, kernel), m): ((f64, AnyKernel), usize)| {
            Ok((weight, Map::for_kernel(kernel, x.ncols(), m, rng.next_u64())?))
        };
        WeightedSum::of(parts.into_iter().zip(counts).map(map).collect::<Result<_>>()?)
    }
}

fn kernel_of(part: Component) -> Result<AnyKernel> {
    let (law, ell): (Radius, Lengthscale) = match part {
        Component::Other(mixture) => return Ok(mixture.into()),
        Component::Named(law, ell) => (law, ell),
    };
    Ok(match law {
        Radius::Chi => Gaussian::new(ell)?.into(),
        Radius::Matern(smoothness) => Matern::new(smoothness, ell)?.into(),
        Radius::RationalQuadratic { alpha } => RationalQuadratic::new(alpha, ell)?.into(),
        Radius::PoweredExponential { alpha } => PoweredExponential::new(alpha, ell)?.into(),
        Radius::Cauchy => Laplace::new(ell)?.into(),
        _ => return Err(Error::Unsupported { what: "a sum or product with a kernel of your own" }),
    })
}

/// Differences of random pairs of points, d numbers each.
fn pairs<T: Real>(x: &ArrayRef2<T>, rng: &mut Generator) -> Vec<Vec<f64>> {
    let mut row = || rng.random_range(0..x.nrows());
    let pairs: Vec<[usize; 2]> = (0..PAIRS).map(|_| [row(), row()]).collect();
    let difference =
        |[i, j]: &[usize; 2]| x.row(*i).iter().zip(x.row(*j)).map(|(a, b)| a.widen() - b.widen()).collect();
    pairs.iter().filter(|[i, j]| i != j).map(difference).collect()
}

/// √(E V) of one frequency over these differences.
fn deviation(kernel: &AnyKernel, pairs: &[Vec<f64>]) -> f64 {
    let Some(shift_invariant) = kernel.shift_invariant() else { return 0.0 };
    let variance = |delta: &Vec<f64>| {
        let scaled: Vec<f64> = kernel.lengthscale().divide(delta).collect();
        shift_invariant.ln_variance(&scaled).exp()
    };
    let known = pairs.iter().map(variance).filter(|variance| variance.is_finite());
    (known.sum::<f64>() / pairs.len().max(1) as f64).sqrt()
}

/// m as a sum of whole numbers m_q of at least 1 for which Σ p_q²/m_q is about least, for these p; equal numbers if all p are 0.
fn shares(proportions: &[f64], m: usize) -> Vec<usize> {
    let largest = proportions.iter().copied().fold(0.0, f64::max);
    let of = |v: &f64| if largest > 0.0 { v / largest } else { 1.0 };
    let proportions: Vec<f64> = proportions.iter().map(of).collect();
    let share = |scale: f64, v: f64| (scale * v).max(1.0);
    let sum = |scale: f64| proportions.iter().map(|v| share(scale, *v)).sum::<f64>();
    let (mut low, mut high) = (0.0, m as f64);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if sum(middle) < m as f64 { low = middle } else { high = middle }
    }
    let mut counts: Vec<usize> = proportions.iter().map(|v| share(low, *v) as usize).collect();
    // What rounding down leaves goes to those that gain most.
    let gain = |(v, count): (&f64, &usize)| v.powi(2) / (*count as f64 * (count + 1) as f64);
    let order = descending(&proportions.iter().zip(&counts).map(gain).collect::<Vec<f64>>());
    let left = m.saturating_sub(counts.iter().sum());
    order.iter().cycle().take(left).for_each(|q| counts[*q] += 1);
    counts
}

once!(Map::<T>::of_mixture);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_are_in_proportion() {
        assert_eq!(shares(&[1.0, 3.0], 8), [2, 6]);
        assert_eq!(shares(&[0.0, 0.0, 0.0], 9), [3, 3, 3]);
        assert_eq!(shares(&[0.0, 2.0, 0.0], 9), [1, 7, 1]);
        assert_eq!(shares(&[1e-300, 5e300], 2), [1, 1]);
        assert_eq!(shares(&[0.901, 0.745, 0.826], 4), [2, 1, 1]);
        assert_eq!(shares(&[0.707, 0.0, 0.301], 6), [3, 1, 2]);
        for m in 7..200 {
            let proportions = [0.3, 1.0, 0.01, 4.0, 2.5, 0.0, 1.7];
            let found = shares(&proportions, m);
            assert_eq!(found.iter().sum::<usize>(), m);
            assert!(found.iter().all(|count| *count >= 1));
            let ratio = found[3] as f64 / found[4] as f64;
            assert!(m < 50 || (ratio / 1.6 - 1.0).abs() < 0.25, "{m}: {found:?}");
        }
    }
}
