//! The Nyström method, the usual alternative to random features, as a feature map of your own.

use ndarray::{Array2, ArrayView2, Axis};
use random_features::data::Clustering;
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::kernel::{Gaussian, Kernel};
use random_features::linalg::Backend;
use random_features::map::Side;
use random_features::{Map, Result};

/// φ(x) = K^(−½) (K(x, zⱼ))ⱼ for landmarks z with the Gram matrix K: φ(x)·φ(y) = K(x, y) where x or y is a landmark.
///
/// C. K. I. Williams, M. Seeger, *Using the Nyström Method to Speed Up Kernel Machines*, NIPS 2000; landmarks are the centres
/// of k-means: K. Zhang, I. W. Tsang, J. T. Kwok, *Improved Nyström Low-Rank Approximation and Error Analysis*, ICML 2008.
#[derive(Debug)]
struct Nystrom {
    kernel: Gaussian,
    landmarks: Array2<f64>,
    /// K^(−½), of which directions without weight are left out.
    root: Array2<f64>,
}

/// Eigenvalues below this share of the largest are rounding.
const RANK: f64 = 1e-12;

/// The map with `count` landmarks among clusters of `points`.
pub fn nystrom(points: &Array2<f64>, count: usize, kernel: Gaussian, seed: u64) -> Result<Map<f64>> {
    let landmarks = Clustering::of(points, count, seed)?.centres().to_owned();
    let eigen = Backend::default().eigen(&kernel.gram(&landmarks, &landmarks)?)?;
    let largest = eigen.values.last().copied().unwrap_or(0.0);
    let weights = eigen.values.mapv(|v| if v > RANK * largest { v.sqrt().recip() } else { 0.0 });
    let root = (&eigen.vectors * &weights).dot(&eigen.vectors.t());
    Map::of_feature_map(Nystrom { kernel, landmarks, root })
}

impl FeatureMap<f64> for Nystrom {
    fn facts(&self) -> Facts {
        Facts::new(self.landmarks.ncols(), vec![self.landmarks.nrows()]).symmetric()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, f64>, _: Form, tile: &mut Tile<'_, f64>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let row = tile.row(i);
            // Points have as many columns as landmarks: the library has checked that.
            let Ok(kernel) = self.kernel.gram(&x.insert_axis(Axis(0)), &self.landmarks) else { continue };
            let features = kernel.dot(&self.root);
            row.values.iter_mut().zip(&features).for_each(|(value, feature)| *value = *feature);
            row.log_scales[0] = 0.0;
        }
    }
}
