//! The properties that every map must have.

use std::fmt;

use ndarray::{Array2, ArrayRef2, ArrayView2, Axis, ShapeBuilder, s};

use crate::error::{Error, Result};
use crate::once::once;
use crate::{Features, Map, Real, Side, threads};

/// A property of [`conform`] that a map violates.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Violation {
    /// A description of the violation.
    Broken(String),
    /// The map rejected points of its own dimension.
    Refused(Error),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Broken(sentence) => f.write_str(sentence),
            Violation::Refused(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Violation {}

impl From<Error> for Violation {
    fn from(error: Error) -> Self {
        Violation::Refused(error)
    }
}

type Kept = Result<(), Violation>;

/// `Ok` if a property is `kept`, else a violation with this description.
fn check(kept: bool, sentence: impl FnOnce() -> String) -> Kept {
    if kept { Ok(()) } else { Err(Violation::Broken(sentence())) }
}

/// Runs all checks of this module on points x, n × d. Use a few dozen points of moderate norms, or some hundreds (more
/// than a tile) to test parallel execution.
///
/// # Errors
/// The first [`Violation`].
#[inline(never)]
pub fn conform<T: Real>(map: &Map<T>, x: &ArrayRef2<T>) -> Kept {
    features_are_numbers(map, x)?;
    batches_are_rows(map, x)?;
    threads_change_nothing(map, x)?;
    layouts_change_nothing(map, x)?;
    promises_hold(map, x)?;
    gram_is_estimates(map, x)?;
    shapes_are_checked(map, x)
}

/// Features of finite points are numbers.
///
/// # Errors
/// [`Violation`].
#[inline(never)]
pub fn features_are_numbers<T: Real>(map: &Map<T>, x: &ArrayRef2<T>) -> Kept {
    for side in [Side::X, Side::Y] {
        let (values, scales) = present(map, &map.features(side, x)?);
        let rows = x.rows().into_iter().enumerate().filter(|(_, x)| x.iter().all(|x| x.is_finite()));
        for (i, _) in rows {
            let feature = values.row(i).iter().position(|v| v.is_nan());
            let scale = scales.row(i).iter().position(|s| s.is_nan());
            for (what, place) in [("feature", feature), ("scale", scale)] {
                let number = place.unwrap_or(0);
                check(place.is_none(), || format!("{what} {number} of row {i} is NaN at a finite point"))?;
            }
        }
    }
    Ok(())
}

/// Features with their scales; values of absent blocks, which may be anything, are 0.
fn present<T: Real>(map: &Map<T>, features: &Features<T>) -> (Array2<T>, Array2<f64>) {
    let (mut values, scales) = (features.mantissas().to_owned(), features.log_scales().to_owned());
    mask(map, &mut values, &scales);
    (values, scales)
}

fn mask<T: Real>(map: &Map<T>, values: &mut Array2<T>, scales: &Array2<f64>) {
    for (mut row, scales) in values.rows_mut().into_iter().zip(scales.rows()) {
        let mut start = 0;
        for (width, scale) in map.blocks().iter().zip(scales) {
            if *scale == f64::NEG_INFINITY {
                row.slice_mut(s![start..start + width]).fill(T::zero());
            }
            start += width;
        }
    }
}

/// The features of a batch are bit-identical to those of its parts and of its single rows.
///
/// # Errors
/// [`Violation`].
#[inline(never)]
pub fn batches_are_rows<T: Real>(map: &Map<T>, x: &ArrayRef2<T>) -> Kept {
    for side in [Side::X, Side::Y] {
        let (values, scales) = present(map, &map.features(side, x)?);
        for run in [1, 5, 100] {
            for start in (0..x.nrows()).step_by(run * 7) {
                let rows = s![start..x.nrows().min(start + run), ..];
                let part = present(map, &map.features(side, x.slice(rows))?);
                let same = part.0 == values.slice(rows) && part.1 == scales.slice(rows);
                check(same, || format!("rows {start} and {run} more have other features than in the batch"))?;
            }
        }
        if x.nrows() > 0 {
            let one = present(map, &map.features_of(side, &x.row(0))?);
            let same = one.0.row(0) == values.row(0) && one.1.row(0) == scales.row(0);
            check(same, || "a point alone has other features than in a batch".into())?;
        }
    }
    Ok(())
}

/// Pools of 1, 2 and 7 threads give bit-identical features and Gram matrices. Without the feature `rayon` all is computed
/// three times on one thread.
///
/// # Errors
/// [`Violation`].
#[inline(never)]
pub fn threads_change_nothing<T: Real>(map: &Map<T>, x: &ArrayRef2<T>) -> Kept {
    type Results<T> = ([(Array2<T>, Array2<f64>); 2], Array2<T>);
    let run = |threads: usize| -> Result<Results<T>, Violation> {
        let (x, map) = (x.view(), map);
        let results = threads::with(threads, move || {
            let [left, right] = [map.features(Side::X, x)?, map.features(Side::Y, x)?];
            Ok(([present(map, &left), present(map, &right)], map.gram(&x, &x)?))
        });
        results.map_err(Violation::Broken)?
    };
    let one = run(1)?;
    for threads in [2, 7] {
        let same = run(threads)? == one;
        check(same, || format!("{threads} threads give other features or Gram matrices than one"))?;
    }
    Ok(())
}

/// Every layout of points and of outputs gives bit-identical features, and nothing else is written.
///
/// # Errors
/// [`Violation`].
#[inline(never)]
pub fn layouts_change_nothing<T: Real>(map: &Map<T>, x: &ArrayRef2<T>) -> Kept {
    layouts_of_side(map, x, Side::X)?;
    layouts_of_side(map, x, Side::Y)
}

fn layouts_of_side<T: Real>(map: &Map<T>, x: &ArrayRef2<T>, side: Side) -> Kept {
    let (n, d) = x.dim();
    let plain = present(map, &map.features(side, x)?);
    let mut columns = Array2::zeros((n, d).f());
    columns.assign(x);
    let mut wide = Array2::from_elem((n, 2 * d + 3), T::nan());
    wide.slice_mut(s![.., 1..2 * d;2]).assign(x);
    let mut backwards = x.slice(s![..;-1, ..;-1]).to_owned();
    backwards.invert_axis(Axis(0));
    backwards.invert_axis(Axis(1));
    let inputs = [
        ("columns", columns.view()),
        ("every other column of a wider array", wide.slice(s![.., 1..2 * d;2])),
        ("negative strides", backwards.view()),
    ];
    for (layout, view) in inputs {
        let same = present(map, &map.features(side, view)?) == plain;
        check(same, || format!("points in {layout} have other features than in rows"))?;
    }
    let (values, scales) = plain;
    outputs_change_nothing(map, x, side, values, scales)
}

/// Outputs with arbitrary contents: row-major, column-major and inside a wider array.
fn outputs_change_nothing<T: Real>(
    map: &Map<T>,
    x: &ArrayRef2<T>,
    side: Side,
    values: Array2<T>,
    scales: Array2<f64>,
) -> Kept {
    let (n, width, blocks) = (x.nrows(), map.feature_dim(), map.blocks().len());
    let same = |found: ArrayView2<'_, T>, found_scales: ArrayView2<'_, f64>| {
        let (mut found, found_scales) = (found.to_owned(), found_scales.to_owned());
        mask(map, &mut found, &found_scales);
        check((&found, &found_scales) == (&values, &scales), || {
            "features differ with the layout of their array".into()
        })
    };
    let mut rows = Array2::from_elem((n, width), T::nan());
    let mut row_scales = Array2::from_elem((n, blocks), f64::NAN);
    map.features_into(side, x, &mut rows, &mut row_scales)?;
    same(rows.view(), row_scales.view())?;
    let mut columns = Array2::from_elem((n, width).f(), T::nan());
    let mut wide_scales = Array2::from_elem((n, blocks + 1).f(), f64::NAN);
    map.features_into(side, x, &mut columns, &mut wide_scales.slice_mut(s![.., ..blocks]))?;
    same(columns.view(), wide_scales.slice(s![.., ..blocks]))?;
    let mut wide = Array2::from_elem((n, width + 2), T::nan());
    row_scales.fill(f64::NAN);
    map.features_into(side, x, &mut wide.slice_mut(s![.., 1..=width]), &mut row_scales)?;
    same(wide.slice(s![.., 1..=width]), row_scales.view())?;
    let outside = wide.column(0).iter().chain(wide.column(width + 1)).all(|v| v.is_nan());
    check(outside, || "something is written outside of the array of features".into())
}

/// The map agrees with its facts, values are at most 1 in magnitude, and empty batches work.
///
/// # Errors
/// [`Violation`].
#[inline(never)]
pub fn promises_hold<T: Real>(map: &Map<T>, x: &ArrayRef2<T>) -> Kept {
    check(map.blocks().iter().sum::<usize>() == map.feature_dim(), || "blocks do not add up".into())?;
    check(map.dim() == x.ncols(), || "another dimension than that of the points".into())?;
    let (left, right) = (map.features(Side::X, x)?, map.features(Side::Y, x)?);
    let (values, scales) = present(map, &left);
    check(values.iter().all(|v| v.abs() <= T::one()), || "a value is larger than 1".into())?;
    if map.facts().symmetric {
        let same = (values.view(), scales.view()) == (present(map, &right).0.view(), right.log_scales());
        check(same, || "symmetric by its facts, but its sides differ".into())?;
        check(left.gram(&left).is_ok(), || "symmetric, but one side has no Gram matrix with itself".into())?;
    } else {
        check(left.gram(&left).is_err(), || "two X sides of an asymmetric map were paired".into())?;
    }
    let negative = values.iter().any(|v| *v < T::zero());
    check(!(map.facts().non_negative && negative), || {
        "non-negative by its facts, but a feature is not".into()
    })?;
    let none = map.features(Side::X, x.slice(s![..0, ..]))?;
    let empty = none.is_empty() && none.mantissas().dim() == (0, map.feature_dim());
    check(empty, || "no rows have features".into())?;
    let sides = (none.gram(&right)?.dim(), map.gram(x, &x.slice(s![..0, ..]))?.dim());
    check(sides == ((0, x.nrows()), (x.nrows(), 0)), || "Gram matrices of no rows have a wrong shape".into())
}

/// Entries of a Gram matrix, estimates and log-estimates of the same pair agree up to rounding; estimates of paired rows
/// are those of each pair, to the bit.
///
/// # Errors
/// [`Violation`].
#[inline(never)]
pub fn gram_is_estimates<T: Real>(map: &Map<T>, x: &ArrayRef2<T>) -> Kept {
    let few = x.slice(s![..x.nrows().min(9), ..]);
    let gram = map.gram(&few, x)?;
    let sizes = |side, x: &ArrayRef2<T>| -> Result<Vec<f64>> {
        let top = |scales: ndarray::ArrayView1<'_, f64>| scales.fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        Ok(map.features(side, x)?.log_scales().rows().into_iter().map(top).collect())
    };
    let (left, right) = (sizes(Side::X, &few)?, sizes(Side::Y, x)?);
    let last = x.slice(s![x.nrows() - few.nrows().., ..]);
    let among_rows = map.log_estimate_rows(&few, &last)?;
    // Each row of one side is in two pairs.
    let pairs: Vec<(usize, usize)> = (0..2 * few.nrows()).map(|k| (k / 2, k % few.nrows())).collect();
    let among_pairs = map.log_estimate_pairs(&few, &last, &pairs)?;
    let paired = (0..few.nrows()).map(|i| (i, i)).zip(among_rows).chain(pairs.into_iter().zip(among_pairs));
    for ((i, j), paired) in paired {
        let alone = map.log_estimate(&few.row(i), &last.row(j))?;
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        let kept = same(paired.ln_abs, alone.ln_abs) && same(paired.sign, alone.sign);
        check(kept, || format!("{i}, {j}: {paired:?} among others, {alone:?} alone"))?;
    }
    for ((i, j), value) in gram.indexed_iter() {
        let log = map.log_estimate(&x.row(i), &x.row(j))?;
        if i == 0 || x.nrows() < 100 {
            let estimate = map.estimate(&x.row(i), &x.row(j))?;
            check(estimate == T::narrow(log.value()), || {
                format!("{i}, {j}: {estimate} and {}", log.value())
            })?;
        }
        // Signed features cancel, so errors are relative to the sum of their sizes, at most D e^(both scales).
        let size = log.value().abs().max((left[i] + right[j]).exp() * map.feature_dim() as f64);
        let rounding = T::epsilon().widen() * (30.0 + x.ncols() as f64) * size;
        let tolerance = rounding + T::min_positive_value().widen();
        let near = (value.widen() - log.value()).abs() <= tolerance;
        check(near, || format!("{i}, {j}: {value} in the Gram matrix, {} alone", log.value()))?;
    }
    Ok(())
}

/// Arrays of wrong shapes are rejected before anything is written.
///
/// # Errors
/// [`Violation`].
#[inline(never)]
pub fn shapes_are_checked<T: Real>(map: &Map<T>, x: &ArrayRef2<T>) -> Kept {
    let (n, d) = x.dim();
    let wrong = Array2::<T>::zeros((n.max(1), d + 1));
    let refused = |what: &str, found: Result<()>| {
        let kept = matches!(found, Err(Error::Shape { .. }));
        check(kept, || format!("{what} of a wrong shape: {found:?}"))
    };
    refused("points", map.features(Side::X, &wrong).map(drop))?;
    refused("points on the right", map.gram(x, &wrong).map(drop))?;
    refused("points on the left", map.gram(&wrong, x).map(drop))?;
    if n > 0 {
        refused("a point", map.estimate(&x.row(0), &wrong.row(0)).map(drop))?;
        refused("a point", map.log_variance(&wrong.row(0), &x.row(0)).map(drop))?;
    }
    let (width, blocks) = (map.feature_dim(), map.blocks().len());
    for (rows, columns, blocks) in [(n + 1, width, blocks), (n, width + 1, blocks), (n, width, blocks + 1)] {
        let mut values = Array2::from_elem((rows, columns), T::nan());
        let mut scales = Array2::from_elem((rows, blocks), f64::NAN);
        refused("an output", map.features_into(Side::X, x, &mut values, &mut scales))?;
        let untouched = values.iter().all(|v| v.is_nan()) && scales.iter().all(|v| v.is_nan());
        check(untouched, || "something is written before the shape is refused".into())?;
    }
    Ok(())
}

once!(
    conform::<T>,
    features_are_numbers::<T>,
    batches_are_rows::<T>,
    threads_change_nothing::<T>,
    layouts_change_nothing::<T>,
    promises_hold::<T>,
    gram_is_estimates::<T>,
    shapes_are_checked::<T>,
);
