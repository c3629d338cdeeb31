//! The start of a fit of many rows: the minimum over a sample of them.

use std::ops::Range;

use ndarray::{Array2, Axis, s};

use super::ahead::Ahead;
use super::descent::Descent;
use super::newton::Newton;
use super::quasi_newton::QuasiNewton;
use super::{Glm, Response};
use crate::Real;
use crate::engine::PointsView;
use crate::error::{Error, Result};
use crate::memory::check_memory;

/// The least number of rows of a sample, and its least number of rows for each feature.
const SAMPLE: usize = 8192;
const SAMPLE_EACH: usize = 8;
/// The ratio of the sizes of the sample and of the smaller one with which its own fit begins.
const FIRST: usize = 4;
/// The number of consecutive rows that are taken together.
const BLOCK: usize = 512;
/// The largest ratio of the dimension to the entries of a sparse point: samples are dense.
const SPARSE: usize = 4;

/// Moves to the minimum of a sample of the rows, if there are many and the loss of all is lower there. Returns the second
/// derivatives of the sample, which are near to those of all rows, and the losses of all rows.
pub(super) fn from_sample<T: Real>(
    descent: &mut Descent<'_, '_, T>,
    lambda: f64,
) -> Result<Option<(Option<QuasiNewton>, Ahead)>> {
    let (n, d) = (descent.x.nrows(), descent.x.ncols());
    let size = SAMPLE.max(SAMPLE_EACH * descent.model.map().feature_dim()).next_multiple_of(BLOCK);
    if descent.model.values() > 1 || n < 4 * size || d > SPARSE * descent.x.depth() {
        return Ok(None);
    }
    let sampled = minimum(descent, &[&descent.model], size / FIRST, lambda)
        .and_then(|(first, _)| minimum(descent, &[&first, &descent.model], size, lambda));
    let (model, second) = match sampled {
        Ok(sampled) => sampled,
        Err(Error::Cancelled) => return Err(Error::Cancelled),
        // The fit of all rows has no error, or one that names a row of them.
        Err(_) => return Ok(None),
    };
    let start = total(&descent.model, &descent.eta, descent.response, lambda);
    let mut direction = model.parameters();
    direction.add(-1.0, &descent.model.parameters());
    let (change, ahead) = descent.ahead(&direction)?;
    let loss = ahead.terms.losses.sum() + model.penalty(lambda);
    // Rows without finite features are left to the fit of all rows, which names them.
    if !(loss < start && change.iter().all(|change| change.is_finite())) {
        return Ok(None);
    }
    descent.take(&direction, &change, 1.0);
    Ok(Some((second, ahead)))
}

/// The penalised loss of a model at its decision values.
fn total<T: Real>(model: &Glm<T>, eta: &Array2<f64>, response: &Response, lambda: f64) -> f64 {
    model.loss.total(eta, response) + model.penalty(lambda)
}

/// The minimum over so many rows, begun at the best of some models; the last of them if a class does not occur in the rows.
fn minimum<T: Real>(
    descent: &Descent<'_, '_, T>,
    models: &[&Glm<T>],
    size: usize,
    lambda: f64,
) -> Result<(Glm<T>, Option<QuasiNewton>)> {
    let (n, blocks) = (descent.x.nrows(), size / BLOCK);
    let start = |block: usize| block * (n - BLOCK) / (blocks - 1).max(1);
    let blocks: Vec<Range<usize>> = (0..blocks).map(|block| start(block)..start(block) + BLOCK).collect();
    let response = descent.response.blocks(&blocks);
    let share = response.weights.sum() / descent.response.weights.sum();
    if !response.varies() {
        return Ok((descent.model.clone(), None));
    }
    let x = points_of(descent.x, &blocks)?;
    let mut best: Option<(f64, Descent<'_, '_, T>)> = None;
    for model in models {
        let own = Descent::at((*model).clone(), x.view().into(), &response)?;
        let loss = total(&own.model, &own.eta, &response, lambda * share);
        if best.as_ref().is_none_or(|(least, _)| loss < *least) {
            best = Some((loss, own));
        }
    }
    let Some((_, mut sample)) = best else { return Ok((descent.model.clone(), None)) };
    let second = Newton::coarsely(lambda * share).run(&mut sample)?;
    Ok((sample.model, second.map(|second| second.of_sample(share))))
}

impl Response {
    /// Whether rows of positive weight have different targets.
    fn varies(&self) -> bool {
        let mut counted = self.y.iter().zip(&self.weights).filter(|(_, weight)| **weight > 0.0);
        let first = counted.next();
        first.is_some_and(|(first, _)| counted.any(|(y, _)| y != first))
    }

    /// The rows of some blocks.
    fn blocks(&self, blocks: &[Range<usize>]) -> Response {
        let rows: Vec<usize> = blocks.iter().cloned().flatten().collect();
        Response { y: self.y.select(Axis(0), &rows), weights: self.weights.select(Axis(0), &rows) }
    }
}

/// The points of some blocks of rows.
fn points_of<T: Real>(x: PointsView<'_, T>, blocks: &[Range<usize>]) -> Result<Array2<T>> {
    let rows: usize = blocks.iter().map(Range::len).sum();
    check_memory("rows of a sample", rows, x.ncols().saturating_mul(size_of::<T>()))?;
    let mut points = Array2::zeros((rows, x.ncols()));
    let mut start = 0;
    for block in blocks {
        points.slice_mut(s![start..start + block.len(), ..]).assign(&x.rows(block.clone()).to_dense()?);
        start += block.len();
    }
    Ok(points)
}
