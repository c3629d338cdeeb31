//! The least errors that features of a plan can have.

use ndarray::ArrayView1;

use super::problem::Problem;
use crate::error::Result;
use crate::planner::plan::Limits;
use crate::planner::question::Loss;
use crate::theory::limits;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use crate::{
    data::{GramSpectrum, lengthscale::choose},
    progress,
};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use ndarray::{Array2, Axis};

/// Rows of a side whose singular values are taken: so many for a feature, and at least and at most so many in all.
const FOR_EACH: usize = 8;
const ROWS: [usize; 2] = [512, 1536];
/// The size of a squared error that is rounding, over the squares of which it is a difference.
const ROUNDING: f64 = 1e-13;
/// The size of a sum of squares of singular values that are rounding.
const SMALLEST: f64 = 1e-24;
/// The size of ln K(x, x) at which K(x, x) is 1 up to rounding.
const ONE: f64 = 1e-9;

/// The nuclear norm and the singular values from which the limits of every number of features follow.
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
        let known = |square: f64, rounding: f64| {
            Some(square.sqrt()).filter(|limit| square > rounding && limit.is_finite())
        };
        // ‖T‖²/(D E K²), of which limits are small differences where few values are most of it.
        let of_norm = |norm: f64| norm * norm / features as f64;
        let independent = self
            .nuclear_norm
            .and_then(|norm| known(limits::independent(norm, 1.0, features, 1), ROUNDING * of_norm(norm)));
        if self.values.is_empty() || features > self.most {
            return Limits { independent, ..Limits::default() };
        }
        // The bound without singular vectors needs no more than the norm: a sample may be too small to see it.
        let size = of_norm(self.nuclear_norm.unwrap_or_else(|| self.values.iter().rev().sum()));
        let (unbiased, plain) = (limits::unbiased(&self.values, features), size - 1.0);
        let unbiased = match unbiased > plain + ROUNDING * size {
            true => known(unbiased, SMALLEST),
            false => known(plain, ROUNDING * size),
        };
        Limits { independent, unbiased, any: known(limits::any(&self.values, features), SMALLEST) }
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
        if data.are_all_kept() && kept().all(|kept| kept <= wanted) {
            let values = self.singular_values(wanted)?;
            let nuclear_norm = (!values.is_empty()).then(|| values.iter().rev().sum());
            return Ok(Bounds { nuclear_norm, values, most: usize::MAX });
        }
        // A sample says little of kernels of which few pairs may be most, or of two sets.
        let Some(nuclear_norm) = self.relative_trace()? else { return Ok(Bounds::default()) };
        let most = kept().fold(wanted, usize::min) / FOR_EACH;
        let is_asked = features.iter().any(|features| *features <= most);
        let values = if is_asked { self.singular_values(wanted)? } else { Vec::new() };
        Ok(Bounds { nuclear_norm: Some(nuclear_norm), values, most })
    }

    /// 1/√(E K²), if there is one set of points at which K(x, x) is 1.
    fn relative_trace(&self) -> Result<Option<f64>> {
        let points = &self.planner.data.sides[0].points;
        let is_one = |x: ArrayView1<'_, f64>| Ok(self.kernel.log_value(&x, &x)?.ln_abs.abs() < ONE);
        let ones = points.rows().into_iter().map(is_one).collect::<Result<Vec<bool>>>()?;
        let bounded = self.planner.data.one_set && ones.into_iter().all(|one| one);
        Ok(bounded.then(|| (-0.5 * self.pairs.ln_mean_square()).exp()))
    }

    /// σᵢ/√(E K²) of at most so many rows of each side; none where kernel values overflow.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    fn singular_values(&self, most: usize) -> Result<Vec<f64>> {
        let [x, y] = &self.planner.data.sides;
        let some = |points: &Array2<f64>, stream: u64| {
            let n = points.nrows();
            points.select(Axis(0), &choose(n, n.min(most), &mut crate::rng(self.seed_of(stream))))
        };
        // One set has the same rows on both sides.
        let streams = if self.planner.data.one_set { [6, 6] } else { [6, 7] };
        let found = GramSpectrum::new(
            self.kernel.as_ref(),
            &some(&x.points, streams[0]),
            &some(&y.points, streams[1]),
        );
        // What was stopped is not what cannot be had.
        progress::check()?;
        Ok(found.map(|spectrum| spectrum.values().to_vec()).unwrap_or_default())
    }

    #[cfg(not(any(feature = "faer", feature = "ndarray-linalg")))]
    fn singular_values(&self, _: usize) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
}
