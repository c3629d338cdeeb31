//! Pairwise estimates of hybrids, in which coefficients are computed before they weight the bases.
//!
//! Features of a hybrid are products. Their sum cancels where λ̂ or 1 − λ̂ is 0: rounding errors of terms of size e^{r²}
//! exceed an estimate of size e^{−r²}. For a pair of points λ̂ is a single number, and a base with weight 0 is skipped.

use ndarray::{Array1, Array2, ArrayRef2, Axis};

use super::{Coefficient, Hybrid, Part};
use crate::error::Result;
use crate::map::Map;
use crate::memory::check_memory;
use crate::numeric::special::largest;
use crate::{Real, SignedLog};

/// The rounding error that remains, relative to the terms, when a sum with an estimate from this many features cancels:
/// four standard deviations of a sum of as many rounding errors.
pub(in crate::map) fn rounding<T: Real>(features: usize) -> f64 {
    4.0 * (features as f64).sqrt() * T::epsilon().widen()
}

/// The estimates of a map for pairs of points: for all pairs, or for pairs of these numbers.
type PairEstimates<'a, T> = dyn Fn(&Map<T>, Option<&[usize]>) -> Result<Array1<SignedLog>> + 'a;

impl<T: Real> Coefficient<Map<T>> {
    /// c·Ĉ for each of `count` pairs.
    fn random(&self, count: usize, of: &PairEstimates<'_, T>) -> Result<Array1<SignedLog>> {
        let factor = SignedLog::from(self.factor);
        let times = |c: SignedLog| SignedLog { sign: c.sign * factor.sign, ..c }.scaled(factor.ln_abs);
        match &self.map {
            None => Ok(Array1::from_elem(count, SignedLog::from(0.0))),
            Some(map) => Ok(of(map, None)?.mapv(times)),
        }
    }

    /// The rounding error of Ĉ, relative to its terms.
    fn relative_rounding(&self) -> f64 {
        rounding::<T>(self.map.as_ref().map_or(0, Part::terms))
    }
}

impl<T: Real> Hybrid<Map<T>> {
    /// The estimates of paired rows.
    pub(super) fn log_estimates(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array1<SignedLog>> {
        self.combined(x.nrows(), &|map, some| match some {
            None => map.log_estimate_rows(x, y),
            Some(some) => map.log_estimate_rows(&x.select(Axis(0), some), &y.select(Axis(0), some)),
        })
    }

    /// The estimates of pairs of rows.
    pub(super) fn log_estimates_of_pairs(
        &self,
        x: &ArrayRef2<T>,
        y: &ArrayRef2<T>,
        pairs: &[(usize, usize)],
    ) -> Result<Array1<SignedLog>> {
        self.combined(pairs.len(), &|map, some| match some {
            None => map.log_estimate_pairs(x, y, pairs),
            Some(some) => {
                let some: Vec<(usize, usize)> = some.iter().map(|k| pairs[*k]).collect();
                map.log_estimate_pairs(x, y, &some)
            }
        })
    }

    /// The estimates of `count` pairs from the estimates of the parts.
    fn combined(&self, count: usize, of: &PairEstimates<'_, T>) -> Result<Array1<SignedLog>> {
        let terms = self.terms.len();
        let left = self.terms.iter().fold(1.0, |left, (weight, _)| left - weight.constant);
        let largest =
            self.terms.iter().fold(0.0, |top: f64, (weight, _)| top.max(weight.relative_rounding()));
        check_memory("estimates", count, (terms + 1).saturating_mul(2 * size_of::<SignedLog>()))?;
        // Each row is for a pair: −cₖ Ĉₖ and 1 − Σ aₖ, which sum to the weight of Q.
        let mut rests = Array2::from_elem((count, terms + 1), SignedLog::from(left));
        let mut products = rests.clone();
        for (k, (weight, base)) in self.terms.iter().enumerate() {
            let constant = SignedLog::from(weight.constant);
            let random = weight.random(count, of)?;
            rests.column_mut(k).assign(&random.mapv(|c| SignedLog { sign: -c.sign, ..c }));
            let weights = random.mapv(|c| cancelled([constant, c].iter(), weight.relative_rounding()));
            products.column_mut(k).assign(&weighted(weights, base, of)?);
        }
        let weights = rests.map_axis(Axis(1), |terms| cancelled(terms.iter(), largest));
        products.column_mut(terms).assign(&weighted(weights, &self.rest, of)?);
        Ok(products.map_axis(Axis(1), |terms| SignedLog::sum(terms.iter().copied())))
    }
}

/// The weights times the estimates of a map. Pairs without weight are skipped, even if their estimate is infinite.
fn weighted<T: Real>(
    mut weights: Array1<SignedLog>,
    map: &Map<T>,
    of: &PairEstimates<'_, T>,
) -> Result<Array1<SignedLog>> {
    let present: Vec<usize> = (0..weights.len()).filter(|i| weights[*i].sign != 0.0).collect();
    let estimates = of(map, (present.len() < weights.len()).then_some(&present))?;
    for (i, estimate) in present.into_iter().zip(estimates) {
        let SignedLog { ln_abs, sign } = weights[i];
        weights[i] = SignedLog { sign: estimate.sign * sign, ..estimate }.scaled(ln_abs);
    }
    Ok(weights)
}

/// The sum of the terms; 0 if it is only rounding error.
fn cancelled<'a>(terms: impl Iterator<Item = &'a SignedLog> + Clone, rounding: f64) -> SignedLog {
    let sum = SignedLog::sum(terms.clone().copied());
    let top = largest(terms.map(|term| term.ln_abs));
    if top.is_finite() && sum.ln_abs <= top + rounding.ln() { SignedLog::from(0.0) } else { sum }
}
