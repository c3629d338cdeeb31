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
use crate::error::Result;

/// The least number of rows of a sample, and its least number of rows for each feature.
const SAMPLE: usize = 8192;
const SAMPLE_EACH: usize = 8;
/// The number of rows of the sample for each of the sample with which its own fit begins.
const FIRST: usize = 4;
/// The number of consecutive rows that are taken together.
const BLOCK: usize = 512;

/// Moves to the minimum of a sample of the rows, if there are many and the loss of all is lower there. Returns the second
/// derivatives of the sample, which are near to those of all rows, and the losses of all rows.
pub(super) fn from_sample<T: Real>(
    descent: &mut Descent<'_, '_, T>,
    lambda: f64,
) -> Result<Option<(Option<QuasiNewton>, Ahead)>> {
    let n = descent.x.nrows();
    let size = SAMPLE.max(SAMPLE_EACH * descent.model.map().feature_dim()).next_multiple_of(BLOCK);
    if descent.model.values() > 1 || n < 4 * size {
        return Ok(None);
    }
    let start = descent.model.loss.total(&descent.eta, descent.response) + descent.model.penalty(lambda);
    let (first, _) = minimum(descent, &descent.model, size / FIRST, lambda)?;
    let (model, second) = minimum(descent, &first, size, lambda)?;
    let mut direction = model.parameters();
    direction.add(-1.0, &descent.model.parameters());
    let (change, ahead) = descent.ahead(&direction)?;
    if !(ahead.terms.losses.sum() + model.penalty(lambda) < start) {
        return Ok(None);
    }
    descent.take(&direction, &change, 1.0);
    Ok(Some((second, ahead)))
}

/// The minimum over so many rows, begun at a model; the model itself if a class does not occur in them.
fn minimum<T: Real>(
    descent: &Descent<'_, '_, T>,
    model: &Glm<T>,
    size: usize,
    lambda: f64,
) -> Result<(Glm<T>, Option<QuasiNewton>)> {
    let (n, blocks) = (descent.x.nrows(), size / BLOCK);
    let start = |block: usize| block * (n - BLOCK) / (blocks - 1).max(1);
    let blocks: Vec<Range<usize>> = (0..blocks).map(|block| start(block)..start(block) + BLOCK).collect();
    let response = descent.response.blocks(&blocks);
    let share = response.weights.sum() / descent.response.weights.sum();
    let varies = |y: f64| response.y.iter().zip(&response.weights).any(|(v, w)| *w > 0.0 && *v != y);
    if !(share > 0.0 && varies(response.y[[0, 0]])) {
        return Ok((model.clone(), None));
    }
    let x = points_of(descent.x, &blocks)?;
    let mut sample = Descent::at(model.clone(), x.view().into(), &response)?;
    let second = Newton::coarsely(lambda * share).run(&mut sample)?;
    Ok((sample.model, second.map(|second| second.of_sample(share))))
}

impl Response {
    /// The rows of some blocks.
    fn blocks(&self, blocks: &[Range<usize>]) -> Response {
        let rows: Vec<usize> = blocks.iter().cloned().flatten().collect();
        Response { y: self.y.select(Axis(0), &rows), weights: self.weights.select(Axis(0), &rows) }
    }
}

/// The points of some blocks of rows.
fn points_of<T: Real>(x: PointsView<'_, T>, blocks: &[Range<usize>]) -> Result<Array2<T>> {
    let mut points = Array2::zeros((blocks.iter().map(Range::len).sum(), x.ncols()));
    let mut start = 0;
    for block in blocks {
        let rows = x.rows(block.clone()).to_dense()?;
        points.slice_mut(s![start..start + block.len(), ..]).assign(&rows);
        start += block.len();
    }
    Ok(points)
}
