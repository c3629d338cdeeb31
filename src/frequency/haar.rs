//! Haar-distributed orthonormal rows.

use crate::generator::Generator;
use ndarray::Array2;

use super::radii::fill_normal;
use crate::linalg::orthonormal_rows;

/// The first `count` ≤ d columns of a Haar-distributed orthogonal d × d matrix, as rows.
///
/// It is the Q of a Householder QR decomposition of a Gaussian matrix. Column k is drawn after the earlier reflections
/// have been applied: they leave the trailing part Gaussian and independent of them (Stewart, *The efficient generation
/// of random orthogonal matrices*), so R need not be computed. **The signs of R's diagonal are absorbed in Q.** Without
/// them Q is not Haar-distributed: E[Q_kk] ≈ −0.8/√d, and exponential features are biased by 15–30 %.
///
/// Cost O(count · d²) at most.
pub(super) fn haar_rows(count: usize, d: usize, rng: &mut Generator) -> Array2<f64> {
    orthonormal_rows(count, d, |column| fill_normal(column, rng))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_orthonormal() {
        let mut rng = crate::rng(3);
        for (count, d) in [(1, 1), (1, 5), (5, 5), (7, 16), (64, 64), (65, 130), (512, 512)] {
            let q = haar_rows(count, d, &mut rng);
            let gram = q.dot(&q.t());
            for ((i, j), g) in gram.indexed_iter() {
                assert!(
                    (g - f64::from(u8::from(i == j))).abs() < 1e-14 * d as f64,
                    "{count} of {d}: {i},{j}: {g}"
                );
            }
        }
    }

    /// E[Q] = 0 and E[Q²] = 1/d for every entry. A QR without sign correction has E[Q_kk] ≈ −0.8/√d: z ≈ −60 here.
    /// Bounds of 4.9 standard errors on 2·36 and 2 means: false-alarm rate below 1e-4.
    #[test]
    fn every_entry_has_mean_zero() {
        const D: usize = 6;
        const N: usize = 20_000;
        let mut rng = crate::rng(11);
        let (mut mean, mut square) = (Array2::<f64>::zeros((D, D)), Array2::<f64>::zeros((D, D)));
        for _ in 0..N {
            let q = haar_rows(D, D, &mut rng);
            mean += &q;
            square += &(&q * &q);
        }
        let d = D as f64;
        let n = N as f64;
        let deviation = (2.0 * (d - 1.0) / (d * d * (d + 2.0))).sqrt();
        for (m, s) in mean.iter().zip(&square) {
            assert!((m / n).abs() < 4.9 / (n * d).sqrt(), "mean {}", m / n);
            assert!((s / n - 1.0 / d).abs() < 4.9 * deviation / n.sqrt(), "mean square {}", s / n);
        }
        let trace = mean.diag().sum() / n;
        assert!(trace.abs() < 4.9 / n.sqrt(), "mean trace {trace}");
    }
}
