//! A kernel of your own: its exact value, and the law of the frequencies that estimate it.

use random_features::extend::{Radii, ShiftInvariant, Spectrum};
use random_features::kernel::Lengthscale;
use random_features::{Result, SignedLog};

/// k(δ) = sin ‖δ‖/‖δ‖ on ℝ³: the mean of cos ω·δ over the unit sphere, so that every radius is 1.
#[derive(Clone, Debug, Default)]
pub struct Sinc(Lengthscale);

impl Radii for Sinc {
    fn draw(
        &self,
        _d: usize,
        count: usize,
        _rng: &mut random_features::extend::Generator,
    ) -> Result<Vec<f64>> {
        Ok(vec![1.0; count])
    }
}

impl ShiftInvariant for Sinc {
    fn name(&self) -> String {
        "sinc".into()
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.0
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Polar(self)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        let r = square.sqrt();
        SignedLog::from(if r == 0.0 { 1.0 } else { r.sin() / r })
    }
}
