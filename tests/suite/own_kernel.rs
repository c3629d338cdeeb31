//! A kernel that the crate does not have, as a user would define it.

use random_features::extend::{Radii, ShiftInvariant, Spectrum};
use random_features::kernel::Lengthscale;
use random_features::rand::RngExt;
use random_features::{Result, SignedLog};

/// k(δ) = ½ sin r/r + ½ sin 2r/2r on ℝ³ with r = ‖δ‖: frequencies are uniform on the spheres of radius 1 and 2.
#[derive(Clone, Debug, Default)]
pub struct TwoShells(Lengthscale);

impl Radii for TwoShells {
    fn draw(
        &self,
        _d: usize,
        count: usize,
        rng: &mut random_features::extend::Generator,
    ) -> Result<Vec<f64>> {
        Ok((0..count).map(|_| if rng.random::<bool>() { 1.0 } else { 2.0 }).collect())
    }
}

impl ShiftInvariant for TwoShells {
    fn name(&self) -> String {
        "two shells".into()
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.0
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Polar(self)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        let mean_cosine = |r: f64| if r == 0.0 { 1.0 } else { r.sin() / r };
        SignedLog::from(0.5 * (mean_cosine(square.sqrt()) + mean_cosine(2.0 * square.sqrt())))
    }
}
