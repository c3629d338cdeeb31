//! Fourier coefficients of a periodic kernel.

use crate::numeric::special::ln_bessel_i;

/// Shares below this are nothing beside a sum of 1.
const NEGLIGIBLE: f64 = 1e-18;

/// The probabilities of harmonics j = 0, 1, …: e⁻ᵃI₀(a) and 2e⁻ᵃIⱼ(a), down to what is nothing.
pub(super) fn harmonics(a: f64) -> Vec<f64> {
    let share = |j: u32| {
        let share = (ln_bessel_i(f64::from(j), a) - a).exp();
        if j == 0 { share } else { 2.0 * share }
    };
    (0..).map(share).take_while(|share| *share > NEGLIGIBLE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Their sum is 1, and their cosine series is the kernel.
    #[test]
    fn sums_are_the_kernel() {
        for lengthscale in [0.01f64, 0.1, 0.3, 1.0, 3.0, 1e3, 1e6] {
            let a = lengthscale.powi(-2);
            let shares = harmonics(a);
            for t in [0.0, 0.013, 0.2, 0.5] {
                let angle = std::f64::consts::TAU * t;
                let series: f64 =
                    shares.iter().enumerate().map(|(j, share)| share * (j as f64 * angle).cos()).sum();
                let exact = (-2.0 * a * (0.5 * angle).sin().powi(2)).exp();
                assert!((series - exact).abs() < 1e-12, "{lengthscale} {t}: {series} {exact}");
            }
        }
    }
}
