//! Checks on a few points that a user-defined map agrees with its facts.

use ndarray::{Array2, ArrayView2, s};

use crate::Real;
use crate::engine::{Facts, FeatureMap, Form, Side, Tile, TileShape, ranges};
use crate::error::{Error, Result};
use crate::numeric::special::largest;
use crate::once::once;

/// The number of test points.
const POINTS: usize = 3;
/// The largest number of features that is tested; larger maps would need too much memory.
const MOST: usize = 1 << 20;
/// The two contents with which tiles are filled before a map writes them.
const RUBBISH: [f64; 2] = [7.0, -13.0];
/// The largest difference of logarithms of features between forms and sides.
const TOLERANCE: f64 = 1e-2;
/// Features smaller than e^−`DEPTH` times the largest are not compared, because of rounding.
const DEPTH: f64 = 10.0;

/// Features that a map has written.
#[derive(PartialEq)]
struct Written<T> {
    values: Vec<T>,
    signs: Vec<T>,
    log_scales: Vec<f64>,
}

/// Rejects maps that leave part of a tile unwritten, whose features depend on other points of a batch, or that
/// contradict their facts.
///
/// # Errors
/// [`Contract`](Error::Contract) with the fault.
#[inline(never)]
pub(super) fn check<T: Real>(map: &dyn FeatureMap<T>, facts: &Facts) -> Result<()> {
    if facts.feature_dim() > MOST || facts.dim > MOST {
        return Ok(());
    }
    let coordinate = |(i, k)| ((i * 31 + k * 17 + 5) % 13) as f64 / 13.0 - 0.4;
    let scale = (facts.dim as f64).sqrt().recip();
    let x = Array2::from_shape_fn((POINTS, facts.dim), |at| T::narrow(scale * coordinate(at)));
    let sides = [Side::X, Side::Y].map(|side| of_side(map, facts, side, x.view()));
    let [left, right] = sides;
    let (left, right) = (left?, right?);
    if facts.symmetric && !agree(facts, &left, &right) {
        return Err(Error::Contract { what: "its facts say that it is symmetric, but its sides differ" });
    }
    Ok(())
}

/// Tests one side and returns its features.
fn of_side<T: Real>(
    map: &dyn FeatureMap<T>,
    facts: &Facts,
    side: Side,
    x: ArrayView2<'_, T>,
) -> Result<Written<T>> {
    let values = complete(map, facts, side, Form::Values, x)?;
    let negative = |i, columns: std::ops::Range<usize>| {
        values.values[i * facts.feature_dim()..][columns].iter().any(|v| *v < T::zero())
    };
    if facts.non_negative && present(facts, &values).any(|(i, _, columns)| negative(i, columns)) {
        return Err(Error::Contract { what: "its facts say that no feature is negative, but one is" });
    }
    if facts.logarithms && !agree(facts, &values, &complete(map, facts, side, Form::Logarithms, x)?) {
        return Err(Error::Contract {
            what: "its facts offer logarithms, but these are not those of its values (does fill look at the form?)",
        });
    }
    Ok(values)
}

/// The features, if they do not depend on the previous contents of the tile or on other points.
fn complete<T: Real>(
    map: &dyn FeatureMap<T>,
    facts: &Facts,
    side: Side,
    form: Form,
    x: ArrayView2<'_, T>,
) -> Result<Written<T>> {
    let [first, second] = RUBBISH.map(|rubbish| fill(map, facts, side, form, x, rubbish));
    if !same(facts, &first, &second) {
        return Err(Error::Contract { what: "it leaves values or scales of a present block unwritten" });
    }
    for i in 0..x.nrows() {
        let alone = fill(map, facts, side, form, x.slice(s![i..i + 1, ..]), RUBBISH[0]);
        let (width, blocks) = (facts.feature_dim(), facts.blocks.len());
        let row = |v: &[T]| v.get(i * width..(i + 1) * width).unwrap_or_default().to_vec();
        let own = Written {
            values: row(&first.values),
            signs: row(&first.signs),
            log_scales: first.log_scales[i * blocks..(i + 1) * blocks].to_vec(),
        };
        if !same(facts, &alone, &own) {
            return Err(Error::Contract {
                what: "features of a point depend on the other points of its batch",
            });
        }
    }
    Ok(first)
}

fn fill<T: Real>(
    map: &dyn FeatureMap<T>,
    facts: &Facts,
    side: Side,
    form: Form,
    x: ArrayView2<'_, T>,
    rubbish: f64,
) -> Written<T> {
    let (n, width, blocks) = (x.nrows(), facts.feature_dim(), facts.blocks.len());
    let mut written = Written {
        values: vec![T::narrow(rubbish); n * width],
        signs: vec![T::one(); if form == Form::Logarithms { n * width } else { 0 }],
        log_scales: vec![rubbish; n * blocks],
    };
    let Written { values, signs, log_scales } = &mut written;
    map.fill(side, x, form, &mut Tile::new(values, signs, log_scales, TileShape { rows: n, width, blocks }));
    written
}

/// The rows, columns and block numbers of all entries in blocks that are present.
fn present<T>(
    facts: &Facts,
    written: &Written<T>,
) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let rows = written.log_scales.chunks_exact(facts.blocks.len()).enumerate();
    let blocks = ranges(&facts.blocks).enumerate();
    let all = rows.flat_map(move |(i, scales)| blocks.clone().zip(scales).map(move |at| (i, at)));
    let there = all.filter(|(_, (_, scale))| **scale != f64::NEG_INFINITY);
    there.map(|(i, ((b, columns), _))| (i, b, columns))
}

/// Whether both are bit-identical, ignoring absent blocks.
fn same<T: Real>(facts: &Facts, a: &Written<T>, b: &Written<T>) -> bool {
    let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let wide = |v: &[T]| v.iter().map(|v| v.widen().to_bits()).collect::<Vec<_>>();
    let of = |v: &[T], i: usize, columns: &std::ops::Range<usize>| {
        wide(v.get(i * facts.feature_dim()..).and_then(|row| row.get(columns.clone())).unwrap_or_default())
    };
    bits(&a.log_scales) == bits(&b.log_scales)
        && present(facts, a).all(|(i, _, columns)| {
            of(&a.values, i, &columns) == of(&b.values, i, &columns)
                && of(&a.signs, i, &columns) == of(&b.signs, i, &columns)
        })
}

/// Whether both are equal features up to rounding.
fn agree<T: Real>(facts: &Facts, a: &Written<T>, b: &Written<T>) -> bool {
    // The sign and logarithm of a feature.
    let feature = |written: &Written<T>, i: usize, b: usize, f: usize| {
        let place = i * facts.feature_dim() + f;
        let (value, scale) = (written.values[place].widen(), written.log_scales[i * facts.blocks.len() + b]);
        match written.signs.get(place) {
            Some(sign) => (sign.widen(), value + scale),
            None => (value.signum(), value.abs().ln() + scale),
        }
    };
    let absent = |written: &Written<T>| {
        written.log_scales.iter().map(|scale| *scale == f64::NEG_INFINITY).collect::<Vec<_>>()
    };
    absent(a) == absent(b)
        && present(facts, a).all(|(i, block, columns)| {
            let pairs = columns.map(|f| (feature(a, i, block, f), feature(b, i, block, f)));
            let top = largest(pairs.clone().map(|(a, b)| a.1.max(b.1)));
            pairs.into_iter().all(|(a, b)| {
                // A NaN is intended, or detected elsewhere.
                let counts = a.1.max(b.1) >= top - DEPTH && a.1.is_finite() | b.1.is_finite();
                !counts || a.0 == b.0 && (a.1 - b.1).abs() <= TOLERANCE * (1.0 + a.1.abs())
            })
        })
}

once!(check::<T>);
