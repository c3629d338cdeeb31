//! A feature map of your own: a random phase for each frequency instead of a sine for each cosine.

use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::frequency::{Coupling, Independent};
use random_features::kernel::{Gaussian, Kernel};
use random_features::ndarray::{Array1, Array2, ArrayRef1, ArrayView2};
use random_features::rand::RngExt;
use random_features::{Map, Result, Side, rng};

/// √(2/m) cos(ωⱼ·x + bⱼ) with bⱼ uniform on a turn, for the Gaussian kernel.
#[derive(Debug)]
pub struct Phases {
    omega: Array2<f64>,
    phases: Array1<f64>,
    kernel: Gaussian,
}

impl Phases {
    pub fn map(d: usize, m: usize, seed: u64) -> Result<Map<f64>> {
        let mut rng = rng(seed);
        let omega = Independent.draw(d, m, &mut rng)?.rows().into_owned();
        let phases = (0..m).map(|_| rng.random_range(0.0..std::f64::consts::TAU)).collect();
        Map::of_feature_map(Phases { omega, phases, kernel: Gaussian::default() })
    }
}

impl FeatureMap<f64> for Phases {
    fn facts(&self) -> Facts {
        let (m, d) = self.omega.dim();
        Facts::new(d, vec![m]).symmetric()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, f64>, _: Form, tile: &mut Tile<'_, f64>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let row = tile.row(i);
            for ((value, omega), phase) in row.values.iter_mut().zip(self.omega.rows()).zip(&self.phases) {
                *value = (omega.dot(&x) + phase).cos();
            }
            // A feature is e^scale times its value.
            row.log_scales[0] = 0.5 * (2.0 / self.phases.len() as f64).ln();
        }
    }

    fn kernel(&self) -> Option<&dyn Kernel<f64>> {
        Some(&self.kernel)
    }

    fn log_variance(&self, x: &ArrayRef1<f64>, y: &ArrayRef1<f64>) -> Option<f64> {
        // 2 cos(a + b) cos(a' + b) = cos(a − a') + cos(a + a' + 2b), of which the second is noise of variance ½.
        let k = self.kernel.value(x, y).ok()?;
        Some((0.5 * (1.0 - k * k).powi(2) + 0.5).ln() - (self.phases.len() as f64).ln())
    }
}
