//! Features for a kernel of your own: k(δ) = sin ‖δ‖/‖δ‖ on ℝ³.
//!
//!     cargo run --release --example task_own_kernel

use random_features::extend::{Generator, Radii, ShiftInvariant, Spectrum};
use random_features::kernel::Lengthscale;
use random_features::prelude::*;
use random_features::{SignedLog, ndarray::arr1};

#[derive(Debug, Default)]
struct Sinc(Lengthscale);

/// The frequencies of the kernel lie on the unit sphere.
impl Radii for Sinc {
    fn draw(&self, _d: usize, count: usize, _rng: &mut Generator) -> Result<Vec<f64>> {
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
        SignedLog::from(if square == 0.0 { 1.0 } else { square.sqrt().sin() / square.sqrt() })
    }
}

fn main() -> Result<()> {
    let map: Map<f64> = Map::for_kernel(AnyKernel::own(Sinc::default()), 3, 1000, 7)?;
    let (x, y) = (arr1(&[0.5, 1.0, 0.0]), arr1(&[-0.5, 0.0, 1.0]));
    println!("exact {:.3}, estimate {:.3}", Sinc::default().value(&x, &y)?, map.estimate(&x, &y)?);
    Ok(())
}

// Output:
// exact 0.570, estimate 0.569
