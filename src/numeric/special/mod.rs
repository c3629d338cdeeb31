//! Special functions, as logarithms where their values overflow or underflow `f64`.
//!
//! ln Γ and the error functions are those of the crate `libm` (relative error about 1e-16 away from zeros). The others
//! are sums of positive terms, from the largest term outwards, or asymptotic series where these are accurate to 1e-16.
//! Outside its domain a function gives NaN.

mod bessel;
mod beta;
mod chi;
mod confluent;
mod elementary;
mod log_space;
mod normal;
mod quadrature;
mod series;
mod signed_log;

pub use bessel::{bessel_i_ratio, ln_0f1, ln_bessel_i};
pub use beta::BetaOdds;
pub use chi::{chi_quantile, chi_tails};
pub(crate) use confluent::signed_alternating_1f1;
pub use confluent::{alternating_1f1, ln_1f1};
pub use elementary::{largest, ln_cosh, ln_gamma, stirling_rest};
pub use log_space::{
    expm1, ln_1m_exp, ln_add_exp, ln_expm1, ln_sinh, ln_sum_exp, real_part_excess, relative_deviation,
    scaled_sum,
};
pub use normal::{normal_cdf, normal_quantile};
pub use quadrature::{gauss_legendre, gauss_legendre_rule};
pub use signed_log::SignedLog;

#[cfg(test)]
mod test_support {
    /// |a − b| relative to b, or absolute below 1e-300.
    pub fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance * b.abs() + 1e-300, "{a} instead of {b}");
    }
}
