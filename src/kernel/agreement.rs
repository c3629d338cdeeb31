//! [`Reference`]: a sample of the spectral law of a user-defined kernel, with which frequencies are compared, and whether the kernel and
//! its law belong together.

use rand_distr::{Distribution, StandardNormal};

use super::spectrum::chi;
use super::{ShiftInvariant, Spectrum};
use crate::error::{Error, Result, check_size};

/// Numbers that are drawn of a kernel's law, and coordinates of frequencies that are compared with it, at most.
pub(crate) const SAMPLE: usize = 4096;
/// √(½ ln(2/α)) for α = 10⁻⁷: a distribution function of n numbers is further than this over √n from the true one with probability α at
/// most (Dvoretzky, Kiefer, Wolfowitz; Massart).
pub(crate) const LIMIT: f64 = 2.9;
/// Distances at which a kernel is compared with its spectral law, over the median frequency.
const DISTANCES: [f64; 4] = [0.0, 0.5, 1.0, 2.0];

/// A sample of the law of a kernel: radii, or magnitudes of coordinates.
pub(crate) struct Reference {
    /// The sample, ascending, in single precision so that rounding errors of radii do not count.
    numbers: Vec<f32>,
    /// Whether most of the numbers occur more than once.
    pub discrete: bool,
}

impl std::fmt::Debug for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reference")
    }
}

impl Reference {
    /// The reference of a kernel in this dimension.
    ///
    /// # Errors
    /// The errors of drawing radii; [`Parameter`](Error::Parameter) if the kernel is not the mean of cos ω·δ over its law.
    pub fn of(kernel: &dyn ShiftInvariant, dim: usize) -> Result<Self> {
        let numbers = sorted(&numbers(kernel.spectrum(), dim)?);
        check_kernel(kernel, &numbers, dim)?;
        Ok(Reference { discrete: distinct(&numbers) < numbers.len() / 2, numbers })
    }

    /// The largest difference of the distribution functions of this sample and of the ascending numbers `found` (Kolmogorov and Smirnov),
    /// which is next to one of these.
    pub fn difference(&self, found: &[f32]) -> f64 {
        let share = |count: usize, of: &[f32]| count as f64 / of.len() as f64;
        let mut below = 0;
        let mut largest = 0.0;
        for equal in found.chunk_by(|a, b| a == b) {
            let value = equal[0];
            let before =
                share(below, found) - share(self.numbers.partition_point(|v| *v < value), &self.numbers);
            below += equal.len();
            let after =
                share(below, found) - share(self.numbers.partition_point(|v| *v <= value), &self.numbers);
            largest = before.abs().max(after.abs()).max(largest);
        }
        largest
    }
}

/// Rejects a kernel that is not the mean of cos ω·δ over a sample of its law.
fn check_kernel(kernel: &dyn ShiftInvariant, numbers: &[f32], dim: usize) -> Result<()> {
    if let Spectrum::Mixture(_) = kernel.spectrum() {
        // A mixture draws what its own factors say.
        return Ok(());
    }
    let median = f64::from(numbers[numbers.len() / 2]);
    if !(median > 0.0 && median.is_finite()) {
        return Ok(());
    }
    let mut projections: Vec<f64> = numbers.iter().map(|v| f64::from(*v)).collect();
    if let (Spectrum::Polar(_), 2..) = (kernel.spectrum(), dim) {
        // Each radius is multiplied by a coordinate of a uniform direction.
        let mut rng = crate::rng(1);
        let others = chi((dim - 1) as f64, projections.len(), &mut rng)?;
        for (radius, rest) in projections.iter_mut().zip(others) {
            let first: f64 = StandardNormal.sample(&mut rng);
            *radius *= first / first.hypot(rest);
        }
    }
    for distance in DISTANCES.map(|distance| distance / median) {
        let mean = projections.iter().map(|v| (v * distance).cos()).sum::<f64>() / projections.len() as f64;
        let value = kernel.of_square(distance * distance).value();
        // Cosines have a range of length 2, a distribution function one of length 1.
        let limit = 2.0 * LIMIT / (projections.len() as f64).sqrt();
        if value.is_nan() || (value - mean).abs() > limit {
            let (name, domain) = ("a value of the kernel", "the mean of cos ω·δ over its own spectral law");
            return Err(Error::Parameter { name, value, domain });
        }
    }
    Ok(())
}

/// A sample of a law in this dimension: radii, or magnitudes of coordinates.
fn numbers(spectrum: Spectrum<'_>, dim: usize) -> Result<Vec<f64>> {
    match spectrum {
        Spectrum::Polar(radii) => {
            let lengths = radii.draw(dim, SAMPLE, &mut crate::rng(0))?;
            check_size("the number of radii that were drawn", SAMPLE, lengths.len())?;
            Ok(lengths)
        }
        Spectrum::Product(marginal) => {
            let step = 0.5 / SAMPLE as f64;
            Ok((0..SAMPLE).map(|k| marginal.lower_quantile((k as f64 + 0.5) * step).abs()).collect())
        }
        Spectrum::Mixture(mixture) => {
            let rows = mixture.rows(dim, SAMPLE, &mut crate::rng(0))?;
            Ok(rows.rows().into_iter().map(|row| row.dot(&row).sqrt()).collect())
        }
    }
}

/// Numbers in single precision, ascending.
pub(crate) fn sorted(values: &[f64]) -> Vec<f32> {
    let mut sorted: Vec<f32> = values.iter().map(|v| *v as f32).collect();
    sorted.sort_unstable_by(f32::total_cmp);
    sorted
}

/// The number of different numbers of an ascending list.
pub(crate) fn distinct(sorted: &[f32]) -> usize {
    sorted.chunk_by(|a, b| a == b).count()
}
