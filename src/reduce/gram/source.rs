//! [`FeatureSource`]: a map with the standardisation of its inputs.

use ndarray::Array2;

use super::Standardisation;
use crate::Real;
use crate::engine::{Batch, Form, PointsView, Program, Scratch, Side};

/// The map and the standardisation that make features of points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeatureSource<'a, T> {
    pub program: &'a Program<T>,
    pub inputs: Option<&'a Standardisation>,
}

/// Buffers that a thread reuses from run to run.
#[derive(Debug)]
pub(crate) struct FeatureBuffers<T> {
    scratch: Scratch<T>,
    points: Array2<T>,
    pub batch: Batch<T>,
}

impl<T: Real> Default for FeatureBuffers<T> {
    fn default() -> Self {
        FeatureBuffers { scratch: Scratch::default(), points: Array2::zeros((0, 0)), batch: Batch::default() }
    }
}

impl<T: Real> FeatureSource<'_, T> {
    /// Puts the features of points into the batch of the buffers.
    pub fn fill(&self, x: PointsView<'_, T>, buffers: &mut FeatureBuffers<T>) {
        let FeatureBuffers { scratch, points, batch } = buffers;
        let (side, form) = (Side::X, Form::Values);
        match self.inputs {
            None => batch.fill(self.program, side, form, x, scratch),
            Some(inputs) => {
                x.densely(scratch, |x, _| inputs.write(x, points));
                batch.fill(self.program, side, form, points.view().into(), scratch);
            }
        }
    }
}
