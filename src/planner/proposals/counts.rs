//! Maps on counts, with laws and shifts fitted to data.

use super::family::MapFamily;
use super::input::FitInput;
use crate::data::{PairStatistics, Statistics};
use crate::error::{Error, Result};
use crate::frequency::CountLaw;
use crate::map::Shift;
use crate::{Geometric, Poisson};

/// How far points that have not been seen may lie beyond those that have, relative to a coordinate's mean deviation.
const MARGIN: f64 = 0.05;

/// Poisson features with a rate for each coordinate, with one for all, and for shifted points.
pub(super) fn poisson(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    if !input.is_exponential() {
        return Ok(Vec::new());
    }
    let of = |name, rates, map| input.counts(name, CountLaw::Poisson(rates), map);
    let (pairs, plain) = (input.pairs()?, Poisson::default);
    let mut all = vec![of("Poisson", pairs.poisson_per_dimension().into(), plain())];
    all.push(of("Poisson, one λ", pairs.poisson().into(), plain()));
    if let Some(shifted) = shifted(input)? {
        let rates = shifted.pairs()?.poisson_per_dimension().into();
        all.push(of("Poisson, shifted", rates, plain().shifted(shifted.shift.clone())));
    }
    Ok(all)
}

/// Geometric features, and those of shifted points.
pub(super) fn geometric(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    if !input.is_exponential() {
        return Ok(Vec::new());
    }
    let of = |name, p, map| input.counts(name, CountLaw::Geometric(p), map);
    let mut all = vec![of("geometric", input.pairs()?.geometric(), Geometric::default())];
    if let Some(shifted) = shifted(input)? {
        all.push(of(
            "geometric, shifted",
            shifted.pairs()?.geometric(),
            Geometric::default().shifted(shifted.shift.clone()),
        ));
    }
    Ok(all)
}

/// A shift for which all points of data have positive coordinates, and what they are then.
struct Shifted {
    shift: Shift,
    statistics: [Statistics; 2],
}

impl Shifted {
    fn pairs(&self) -> Result<PairStatistics<'_>> {
        PairStatistics::new(&self.statistics[0], &self.statistics[1])
    }
}

/// The shift for data; `None` where it would be too far from the points for squares to be finite, or all points are equal.
fn shifted(input: FitInput<'_>) -> Result<Option<Shifted>> {
    let spread = |side: &Statistics| -> Result<f64> { Ok(side.variance()?.iter().sum::<f64>().sqrt()) };
    let [x, y] = input.statistics;
    let margin = MARGIN * (spread(x)? + spread(y)?) / (input.dim() as f64).sqrt();
    if margin == 0.0 || !margin.is_finite() {
        return Ok(None);
    }
    let by = input.pairs()?.shift(margin)?;
    let moved = |side: &Statistics| side.shifted(&by);
    let statistics = match (moved(x), moved(y)) {
        (Ok(x), Ok(y)) => [x, y],
        (Err(Error::Entry { .. }), _) | (_, Err(Error::Entry { .. })) => return Ok(None),
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    Ok(Some(Shifted { shift: Shift::new(by, margin)?, statistics }))
}
