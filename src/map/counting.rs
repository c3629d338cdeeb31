//! Functions shared by the Poisson and the geometric map.

use ndarray::ArrayView1;

use super::definition::{NormalForm, Setting};
use crate::engine::{Input, Logarithms, Shift};
use crate::error::{Result, check_size};
use crate::theory::{Pair, Radius};

/// Rejects kernels other than softmax and Gaussian, frequencies other than counts, and shifts for another dimension.
pub(super) fn check(map: &'static str, setting: Setting<'_>, shift: Option<&Shift>) -> Result<()> {
    setting.omega.check_counts(map)?;
    if let Some(shift) = shift {
        check_size("the number of entries of the shift", setting.omega.dim(), shift.by().len())?;
    }
    if setting.kernel.radius() == Some(Radius::Chi) { Ok(()) } else { Err(setting.refused(map)) }
}

/// The form of features Πₗ (uₗ/rₗ)^{ωⱼₗ} e^{bⱼ + a} with divisors r, biases b and the constant a.
pub(super) fn form(
    map: &'static str,
    setting: Setting<'_>,
    shift: Option<Shift>,
    divisors: Vec<f64>,
    bias: impl Fn(ArrayView1<'_, u64>) -> f64,
    constant: f64,
) -> Result<NormalForm> {
    let (counts, kernel) = (setting.omega.counts(map)?, setting.kernel);
    let biases = counts.rows().rows().into_iter().map(bias).collect();
    let non_negative = shift.is_some();
    let logarithms = Logarithms::new(counts, kernel.lengthscale(), shift, divisors, biases, excess(setting));
    let form = NormalForm::new(0.0);
    Ok(NormalForm { input: Input::Logarithms(logarithms), constant, non_negative, ..form })
}

/// The coefficient of ‖x/ℓ‖² by which logarithms of features exceed those for the Gaussian kernel.
fn excess(setting: Setting<'_>) -> f64 {
    0.5 + setting.kernel.row()
}

/// ln of the variance, from the variance for the Gaussian kernel at the shifted points.
pub(super) fn log_variance(
    setting: Setting<'_>,
    shift: Option<&Shift>,
    u: &[f64],
    v: &[f64],
    pair: &Pair,
    gaussian: impl Fn(&[f64], &[f64]) -> f64,
) -> f64 {
    let moved = |u: &[f64]| -> Vec<f64> {
        u.iter().enumerate().map(|(l, u)| shift.map_or(*u, |shift| shift.moved(l, *u))).collect()
    };
    // φ for softmax is φ for the Gaussian kernel times exp(½‖x‖²), so the variance scales with its square.
    gaussian(&moved(u), &moved(v)) + 2.0 * excess(setting) * pair.norms
}
