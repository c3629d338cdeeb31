//! [`CoupledRadii`]: radii of a block that depend on each other, over a coupling of directions.

use ndarray::{Array2, Axis};

use super::any_coupling::{AnyCoupling, PlainCoupling};
use super::coupling::{Coupling, Rows};
use super::radii::draw_radii;
use super::shape::check_memory;
use super::{RotationLaw, Simplex};
use crate::digest::{Digest, Identify};
use crate::error::{Error, Result, check_size};
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
        // A law that does not exist in this dimension says so.
        self.law.draw(d, 0, rng)?;
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

/// Radii that were drawn before.
#[derive(Debug)]
struct Given<'a>(&'a [f64], Radius);

impl Radii for Given<'_> {
    fn draw(&self, _: usize, count: usize, _: &mut Generator) -> Result<Vec<f64>> {
        check_size("the number of radii", self.0.len(), count)?;
        Ok(self.0.to_vec())
    }

    fn law(&self) -> Radius {
        self.1
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
/// [`theory`](crate::theory) has closed forms for orthogonal and simplex directions and radii χ_d. They hold for blocks of up to
/// 65,536 rows (1,024 with systematic radii), without pairs ±ω. Those of trigonometric features end at ‖x − y‖ of some nine
/// lengthscales. For Matérn and rational quadratic kernels the variance of trigonometric features is integrated over the quantiles
/// of their radii, for blocks of up to 4,096 rows (256 with systematic radii).
///
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
/// For Matérn kernels and m = d = 8 the trigonometric ratio at ‖x − y‖ = 0.25, 0.5, 1 and 2 is 0.47, 0.53, 0.68 and 0.90 with ν =
/// ½, and 0.71, 0.54, 0.59 and 0.92 with ν = 3/2.
///
/// At its worst the trigonometric ratio is 1.38, 1.08 and 1.03 in 2, 3 and 4 dimensions. Leave radii independent for d = 2, and for
/// positive features with simplex directions in up to 8 dimensions, whose variance coupled radii may raise by a quarter.
///
/// # Radii of a whole draw
/// With [`RadiusCoupling::Overall`] the radii of all m rows are in m strata, while directions stay in their blocks. It
/// is for points in up to three dimensions, whose blocks of d rows leave few radii to couple. For Gaussian kernels and
/// ‖x − y‖ of one lengthscale it multiplies the variance of orthogonal trigonometric features by 0.06, 0.37 and 0.51 at
/// (d, m) = (1, 8), (2, 6) and (3, 7). All m rows are one block and depend on each other, so that the first rows of a
/// draw do not have the law of a smaller draw. Directions are those of `Orthogonal` or `Simplex`. The variance is known
/// for up to 4,096 rows.
///
/// # Exact where
/// Each row has the law of the coupling of directions, so that estimates stay unbiased. Draws need the quantiles of the radii,
/// which are known for Gaussian, softmax, Matérn and rational quadratic kernels. Powered exponential kernels have none, unless α is
/// 1 or 2. Radii √d of the regularised softmax kernel are constant: nothing changes.
///
/// # Cost
/// A quantile for each row, O(√d). Rational quadratic kernels need a table once for each α and d, some hundredths of a second.
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
    /// Whether radii are stratified over the whole draw.
    fn is_overall(&self) -> bool {
        self.radii == RadiusCoupling::Overall
    }

    /// Rejects structured directions, of which a block is a product of factors.
    fn check_overall(&self) -> Result<()> {
        match self.coupling.recipe() {
            None | Some(AnyCoupling::Plain(PlainCoupling::Orthogonal)) => Ok(()),
            Some(AnyCoupling::Plain(PlainCoupling::Simplex(Simplex {
                rotation: RotationLaw::Haar, ..
            }))) => Ok(()),
            Some(_) => {
                let what =
                    "radii stratified over the whole draw with fast rotations: take Orthogonal or Simplex";
                Err(Error::Unsupported { what })
            }
        }
    }

    /// All rows of a draw: radii in as many strata, then blocks of directions.
    fn draw_overall(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        self.check_overall()?;
        check_memory(d, size)?;
        let lengths = draw_radii(radii, d, size, usize::MAX, rng)?;
        let mut rows = Array2::zeros((size, d));
        let capacity = self.coupling.capacity(d).max(1);
        for (lengths, mut rows) in lengths.chunks(capacity).zip(rows.axis_chunks_iter_mut(Axis(0), capacity))
        {
            let given = Given(lengths, radii.law());
            match self.coupling.draw_block(d, lengths.len(), &given, rng)? {
                Rows::Dense(block) if block.dim() == rows.dim() => rows.assign(&block),
                _ => {
                    let what = "radii stratified over the whole draw with structured rows: take Orthogonal";
                    return Err(Error::Unsupported { what });
                }
            }
        }
        Ok(Rows::Dense(rows))
    }

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
    /// A whole draw is one block if radii are stratified over it.
    fn capacity(&self, d: usize) -> usize {
        match self.coupling.capacity(d) {
            capacity if capacity > 0 && self.is_overall() => usize::MAX,
            capacity => capacity,
        }
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        self.check()?;
        let coupled = Coupled { law: radii, radii: self.radii };
        if self.is_overall() {
            return self.draw_overall(d, size, &coupled, rng);
        }
        self.coupling.draw_block(d, size, &coupled, rng)
    }

    fn block_law(&self, d: usize, size: usize, radius: Radius) -> BlockLaw {
        let block = |size| self.coupling.block_law(d, size, radius);
        if !self.is_overall() || size <= 1 {
            return block(size).with_coupled_radii(self.radii);
        }
        let first = self.coupling.capacity(d).clamp(1, size);
        let rest = Some(size % first).filter(|rest| *rest > 0).map(block);
        block(first).with_overall_radii(rest, size)
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

#[cfg(test)]
mod tests {
    use super::super::{Hadamard, Orthogonal, Simplex};
    use super::*;
    use crate::kernel::Smoothness;
    use crate::recipe::Draw;

    /// The first entries of draws with seed 42. A change of stream must be announced in the changelog.
    #[test]
    fn draws_are_pinned() {
        let with = |coupling: AnyCoupling, radii: Radius| Draw::new(3, 5, coupling).with_radii(radii);
        let chi = |radii| with(Orthogonal.with_coupled_radii(radii).into(), Radius::Chi);
        let paired = RadiusCoupling::Paired;
        let draws = [
            chi(RadiusCoupling::Antithetic),
            chi(RadiusCoupling::Stratified),
            chi(RadiusCoupling::Systematic),
            chi(paired),
            chi(RadiusCoupling::Overall),
            with(Simplex::default().with_coupled_radii(paired).into(), Radius::Chi),
            with(Hadamard::default().with_coupled_radii(paired).into(), Radius::Chi),
            with(Orthogonal.with_coupled_radii(paired).into(), Radius::Matern(Smoothness::Half)),
            with(Orthogonal.with_coupled_radii(paired).into(), Radius::RationalQuadratic { alpha: 1.5 }),
        ];
        let found: [[f64; 3]; 9] = draws.each_ref().map(|draw| {
            let rows = draw.draw(42).unwrap();
            let first: Vec<f64> = rows.rows().iter().take(3).copied().collect();
            [first[0], first[1], first[2]]
        });
        for (draw, (found, pinned)) in draws.iter().zip(found.iter().zip(PINNED)) {
            for (found, pinned) in found.iter().zip(pinned) {
                assert!((found - pinned).abs() < 1e-13, "{draw:?}: {found} {pinned}");
            }
        }
    }

    const PINNED: [[f64; 3]; 9] = [
        [-0.368699581949981, 1.7154836076035538, 1.41892467097456],
        [-1.498967633773031, 0.2600332868055572, -0.5464527684962783],
        [-1.3622706136305152, 0.37444237758616483, -0.05214849053317362],
        [1.4373604495046697, 1.5747303021388854, 0.3915927250370314],
        [0.692793660120124, -1.2413900189710663, -0.7932579274156456],
        [-0.3613273930771969, 1.9984826339388888, 1.3814729065836064],
        [0.4668720944221112, 1.4006162832663336, 0.4668720944221112],
        [0.200333230717793, -0.45522429951920584, -0.4866361451671458],
        [0.45873770546643894, -0.5262395062182076, -0.542174377711019],
    ];
}
