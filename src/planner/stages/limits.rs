//! How far from the errors of a plan the least ones are.

use ndarray::ArrayView1;

use super::problem::Problem;
use crate::error::Result;
use crate::numeric::special::ln_sum_exp;
use crate::planner::plan::Limits;
use crate::planner::question::Loss;
use crate::theory::limits;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use crate::{
    data::{GramSpectrum, lengthscale::choose},
    planner::question::SidePoints,
    progress,
};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use ndarray::Axis;

/// Rows of a side whose singular values are taken: so many for a feature, and at least and at most so many in all.
const FOR_EACH: usize = 3;
const ROWS: [usize; 2] = [512, 1536];
/// The size of a relative error that is rounding.
const ROUNDING: f64 = 1e-12;

/// What limits of every number of features follow from.
#[derive(Default)]
pub(crate) struct Bounds {
    /// ‖T‖/√(E K²); `None` where it is not known.
    nuclear_norm: Option<f64>,
    /// σᵢ/√(E K²), falling; none where they are not known.
    values: Vec<f64>,
    /// The most features for which the values tell.
    most: usize,
}

impl Bounds {
    pub fn at(&self, features: usize) -> Limits {
        let known = |square: f64| Some(square.sqrt()).filter(|limit| *limit > ROUNDING && limit.is_finite());
        let of_values = |limit: fn(&[f64], usize) -> f64| {
            let is_known = !self.values.is_empty() && features <= self.most;
            is_known.then(|| limit(&self.values, features)).and_then(known)
        };
        Limits {
            independent: self
                .nuclear_norm
                .and_then(|norm| known(limits::independent(norm, 1.0, features, 1))),
            unbiased: of_values(limits::unbiased),
            any: of_values(limits::any),
        }
    }
}

impl Problem<'_> {
    /// The bounds for recipes of these numbers of features.
    pub fn bounds(&self, features: &[usize]) -> Result<Bounds> {
        let data = &self.planner.data;
        if self.planner.loss != Loss::Gram || data.in_heads {
            return Ok(Bounds::default());
        }
        let wanted = features.iter().max().map_or(0, |most| FOR_EACH.saturating_mul(*most));
        let wanted = wanted.clamp(ROWS[0], ROWS[1]);
        let kept = || data.sides.iter().map(|side| side.rows.len());
        let is_all = data.are_all_kept() && kept().all(|kept| kept <= wanted);
        let most = if is_all { usize::MAX } else { kept().fold(wanted, usize::min) / FOR_EACH };
        let is_asked = features.iter().any(|features| *features <= most);
        let values = if is_asked { self.singular_values(wanted)? } else { Vec::new() };
        let nuclear_norm = match data.one_set {
            true => Some(self.relative_trace()?),
            false => (is_all && !values.is_empty()).then(|| values.iter().rev().sum()),
        };
        Ok(Bounds { nuclear_norm, values, most })
    }

    /// E K(x, x)/√(E K²).
    fn relative_trace(&self) -> Result<f64> {
        let points = &self.planner.data.sides[0].points;
        let of_point = |x: ArrayView1<'_, f64>| Ok(self.kernel.log_value(&x, &x)?.ln_abs);
        let logs = points.rows().into_iter().map(of_point).collect::<Result<Vec<f64>>>()?;
        Ok((ln_sum_exp(&logs) - (logs.len() as f64).ln() - 0.5 * self.pairs.ln_mean_square()).exp())
    }

    /// σᵢ/√(E K²) of at most so many rows of each side; none where kernel values overflow.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    fn singular_values(&self, most: usize) -> Result<Vec<f64>> {
        let [x, y] = &self.planner.data.sides;
        let some = |side: &SidePoints, stream: u64| {
            let n = side.points.nrows();
            side.points.select(Axis(0), &choose(n, n.min(most), &mut crate::rng(self.seed_of(stream))))
        };
        // One set has the same rows on both sides.
        let streams = if self.planner.data.one_set { [6, 6] } else { [6, 7] };
        let found = GramSpectrum::new(self.kernel.as_ref(), &some(x, streams[0]), &some(y, streams[1]));
        // What was stopped is not what cannot be had.
        progress::check()?;
        Ok(found.map(|spectrum| spectrum.values().to_vec()).unwrap_or_default())
    }

    #[cfg(not(any(feature = "faer", feature = "ndarray-linalg")))]
    fn singular_values(&self, _: usize) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
}
