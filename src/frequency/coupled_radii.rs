//! [`CoupledRadii`]: radii of a block that depend on each other, over a coupling of directions.

use super::any_coupling::{AnyCoupling, PlainCoupling};
use super::coupling::{Coupling, Rows};
use crate::digest::{Digest, Identify};
use crate::error::{Error, Result};
use crate::generator::Generator;
use crate::kernel::{Radii, Radius};
use crate::theory::{BlockLaw, RadiusCoupling};

/// The probabilities of a block of `count` rows.
fn probabilities(coupling: RadiusCoupling, count: usize, rng: &mut Generator) -> Vec<f64> {
    let mut all = match coupling {
        RadiusCoupling::Antithetic => antithetic(count, rng),
        _ => stratified(coupling, count, rng),
    };
    // Radii are finite.
    all.iter_mut().for_each(|p| *p = p.clamp(2f64.powi(-64), 1.0 - 0.5 * f64::EPSILON));
    all
}

/// Independent probabilities and, from the first half on, their opposites.
fn antithetic(count: usize, rng: &mut Generator) -> Vec<f64> {
    let half = count / 2;
    let mut all: Vec<f64> = (0..count).map(|_| rng.uniform()).collect();
    (0..half).for_each(|i| all[half + i] = 1.0 - all[i]);
    all
}

/// A probability in each stratum, in random order.
fn stratified(coupling: RadiusCoupling, count: usize, rng: &mut Generator) -> Vec<f64> {
    let common = (coupling == RadiusCoupling::Systematic).then(|| rng.uniform());
    let mut within = || common.unwrap_or_else(|| rng.uniform());
    let mut all: Vec<f64> = (0..count).map(|a| (a as f64 + within()) / count as f64).collect();
    if coupling == RadiusCoupling::Paired {
        (0..count / 2).for_each(|a| all[count - 1 - a] = 1.0 - all[a]);
    }
    shuffle(&mut all, rng);
    all
}

/// Puts numbers in a random order.
fn shuffle(all: &mut [f64], rng: &mut Generator) {
    for i in (1..all.len()).rev() {
        let j = (rng.uniform() * (i + 1) as f64) as usize;
        all.swap(i, j.min(i));
    }
}

/// Radii of one law whose probabilities depend on each other within each draw, while other [`Radii`] are independent.
#[derive(Debug)]
struct Coupled<'a> {
    law: &'a dyn Radii,
    radii: RadiusCoupling,
}

impl Radii for Coupled<'_> {
    fn draw(&self, d: usize, count: usize, rng: &mut Generator) -> Result<Vec<f64>> {
        let quantile = |p: f64| {
            let what = "coupled radii of a law whose quantiles are not known, as of powered exponential kernels: leave them independent";
            self.law.quantile(d, p).ok_or(Error::Unsupported { what })
        };
        probabilities(self.radii, count, rng).into_iter().map(quantile).collect()
    }

    fn law(&self) -> Radius {
        self.law.law()
    }
}

/// Radii that depend on each other within each block of a coupling of directions.
///
/// ```
/// use random_features::frequency::{Orthogonal, RadiusCoupling};
/// use random_features::ndarray::arr1;
/// use random_features::{Map, Trigonometric};
/// let coupling = Orthogonal.with_coupled_radii(RadiusCoupling::Paired);
/// let of = |omega| -> random_features::Result<Map<f64>> {
///     Trigonometric.gaussian(omega, 1.0)
/// };
/// let coupled = of(coupling.draw(8, 64, 7)?)?;
/// let orthogonal = of(Orthogonal.draw(8, 64, 7)?)?;
/// let (x, y) = (arr1(&[0.5; 8]), arr1(&[0.25; 8]));
/// // Logarithms of variances.
/// let gain = coupled.log_variance(&x, &y)?.unwrap()
///     - orthogonal.log_variance(&x, &y)?.unwrap();
/// assert!(gain < (0.65f64).ln());
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Directions are those of [`Orthogonal`](super::Orthogonal), [`Simplex`](super::Simplex), [`Hadamard`](super::Hadamard) or
/// [`Givens`](super::Givens), and [`RadiusCoupling`] says how the radii of a block depend on each other.
///
/// # Definition
/// The radii of a block of b rows are q(pᵢ), with the quantile q of their law. Probabilities pᵢ are drawn together. Radii do not
/// depend on directions.
///
/// # Variance
/// [`theory`](crate::theory) has closed forms for orthogonal and simplex directions and radii χ_d. They hold for blocks of up to 65,536
/// rows (1,024 with systematic radii), without pairs ±ω. Those of trigonometric features end at ‖x − y‖ of some nine lengthscales.
/// The table shows the variance with
/// [`Paired`](RadiusCoupling::Paired) radii over that with independent radii, for m = d orthogonal frequencies, by ‖x − y‖
/// (trigonometric) or ‖x + y‖ (hyperbolic and positive), in lengthscales:
///
/// | d | trigonometric 0.25 | 0.5 | 1 | 2 | 3 | hyperbolic 0.5 | 1 | 2 | positive 1 |
/// |---|---|---|---|---|---|---|---|---|---|
/// | 4 | 0.70 | 0.66 | 0.54 | 0.78 | 1.03 | 0.75 | 0.86 | 0.99 | 0.97 |
/// | 8 | 0.67 | 0.63 | 0.56 | 0.92 | 1.00 | 0.73 | 0.84 | 0.99 | 0.97 |
/// | 16 | 0.66 | 0.63 | 0.64 | 0.97 | 1.00 | 0.72 | 0.86 | 0.99 | 0.98 |
/// | 64 | 0.66 | 0.65 | 0.85 | 0.99 | 1.00 | 0.74 | 0.91 | 0.99 | 0.99 |
///
/// At its worst the trigonometric ratio is 1.38, 1.08 and 1.03 in 2, 3 and 4 dimensions. Leave radii independent for d = 2, and for
/// positive features with simplex directions in up to 8 dimensions, whose variance coupled radii may raise by a quarter.
///
/// # Exact where
/// Each row has the law of the coupling of directions, so that estimates stay unbiased. Draws need the quantiles of the radii, which are
/// known for the Gaussian and the softmax kernel. Radii √d of the regularised softmax kernel are constant: nothing changes.
///
/// # Cost
/// A quantile for each row, O(√d).
///
/// # References
/// Antithetic radii: Reid, Markou, Choromanski, Turner, Weller, *Variance-Reducing Couplings for Random Features*, ICLR 2025.
/// The other couplings are new.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CoupledRadii<C> {
    /// The coupling of the directions.
    pub(crate) coupling: C,
    /// How the radii of a block depend on each other.
    pub(crate) radii: RadiusCoupling,
}

impl Identify for CoupledRadii<PlainCoupling> {
    fn identify(&self, digest: &mut Digest) {
        self.coupling.identify(digest);
        self.radii.identify(digest);
    }
}

impl<C: Coupling> CoupledRadii<C> {
    /// Rejects couplings that draw no radii for a block of directions.
    fn check(&self) -> Result<()> {
        use PlainCoupling::{Givens, Hadamard, Orthogonal, Simplex};
        match self.coupling.recipe() {
            None | Some(AnyCoupling::Plain(Orthogonal | Simplex(_) | Hadamard(_) | Givens(_))) => Ok(()),
            Some(_) => {
                let what =
                    "coupled radii over a coupling without blocks of directions: take Orthogonal or Simplex";
                Err(Error::Unsupported { what })
            }
        }
    }
}

impl<C: Coupling> Coupling for CoupledRadii<C> {
    fn capacity(&self, d: usize) -> usize {
        self.coupling.capacity(d)
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        self.check()?;
        self.coupling.draw_block(d, size, &Coupled { law: radii, radii: self.radii }, rng)
    }

    fn block_law(&self, d: usize, size: usize, radius: Radius) -> BlockLaw {
        self.coupling.block_law(d, size, radius).with_coupled_radii(self.radii)
    }

    fn padded_dim(&self, d: usize) -> usize {
        self.coupling.padded_dim(d)
    }

    fn recipe(&self) -> Option<AnyCoupling> {
        match self.coupling.recipe()? {
            AnyCoupling::Plain(coupling) => {
                Some(AnyCoupling::CoupledRadii(CoupledRadii { coupling, radii: self.radii }))
            }
            _ => None,
        }
    }

    fn radius(&self, asked: Radius) -> Radius {
        self.coupling.radius(asked)
    }
}
