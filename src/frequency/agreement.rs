//! Whether frequencies of a law without a name are of a kernel's law, as far as their number can tell.

use super::Frequencies;
use crate::kernel::agreement::{LIMIT, Reference, SAMPLE, distinct, sorted};
use crate::kernel::{ShiftInvariant, Spectrum};
use crate::theory::{Dependence, Run};

/// Whether there are enough frequencies to tell their law from any other.
pub(crate) fn can_tell(omega: &Frequencies) -> bool {
    omega.m() as f64 > LIMIT * LIMIT
}

/// Whether frequencies may be of the law of this kernel, of which `reference` is a sample. Distribution functions that differ by more
/// than 3/√m + 0.05 are told apart, and equal ones are with probability 10⁻⁶ at most.
pub(crate) fn agrees(reference: &Reference, kernel: &dyn ShiftInvariant, omega: &Frequencies) -> bool {
    let found = sorted(&match kernel.spectrum() {
        Spectrum::Polar(_) | Spectrum::Mixture(_) => {
            omega.squared_norms().into_iter().map(f64::sqrt).collect::<Vec<f64>>()
        }
        Spectrum::Product(_) => omega.rows().iter().take(SAMPLE).map(|v| v.abs()).collect(),
    });
    let independent = independent(reference, omega, &found);
    let limit = LIMIT * (independent.sqrt().recip() + (SAMPLE as f64).sqrt().recip());
    reference.difference(&found) <= limit
}

/// The number of independent ones among the numbers found in frequencies. Rows of a block of which nothing is known may share a
/// radius, which shows unless laws are discrete.
fn independent(reference: &Reference, omega: &Frequencies, found: &[f32]) -> f64 {
    let rows = |Run { block, count, .. }: &Run| {
        let size = if block.antithetic { block.size.div_ceil(2) } else { block.size };
        let may_share = reference.discrete && block.dependence == Dependence::Unknown && *count > 1;
        *count as f64 * if may_share { 1.0 } else { size as f64 }
    };
    let rows = omega.law().runs().iter().map(rows).sum::<f64>();
    let independent = rows * found.len() as f64 / omega.m() as f64;
    if reference.discrete { independent } else { independent.min(distinct(found) as f64) }
}
