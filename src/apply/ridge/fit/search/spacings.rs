//! Inputs with few different values.

use super::super::RidgeWarning;
use crate::{Points, Real};

/// The least number of spacings in a range.
const SPACINGS: f64 = 64.0;

/// The number of spacings up to which a coordinate is constant.
const CONSTANT: f64 = 4.0;

/// A warning if the range of a coordinate has few spacings of the scalar type, by the coordinate that has fewest. Coordinates that are
/// constant up to rounding, and sparse points, have none.
pub(super) fn few_spacings<T: Real>(x: &Points<'_, T>) -> Option<RidgeWarning> {
    if x.is_sparse() {
        return None;
    }
    let dense = x.to_dense().ok()?;
    let spacings = |(coordinate, column): (usize, ndarray::ArrayView1<'_, T>)| {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (min, max) = column.iter().fold(ends, |(min, max), v| (min.min(v.widen()), max.max(v.widen())));
        let spacing = T::epsilon().widen() * min.abs().max(max.abs());
        let spacings = (max - min) / spacing;
        (spacings > CONSTANT && spacings < SPACINGS).then_some((coordinate, spacings))
    };
    let few = dense.columns().into_iter().enumerate().filter_map(spacings);
    let (coordinate, spacings) = few.min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(RidgeWarning::FewSpacings { coordinate, spacings })
}
