//! [`FeatureSource`]: what makes features of points, and [`FeatureBuffers`], in which a thread makes them.

use ndarray::Array2;

use super::{Batch, Form, PointsView, Program, Scratch, Side};
use crate::Real;
use crate::data::standardisation::Standardisation;

/// What makes features of points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeatureSource<'a, T> {
    pub program: &'a Program<T>,
    pub side: Side,
    pub form: Form,
    /// The centring and scaling of points before the map.
    pub inputs: Option<&'a Standardisation>,
}

/// Buffers that a thread reuses from run to run.
#[derive(Debug, Default)]
pub(crate) struct FeatureBuffers<T> {
    pub scratch: Scratch<T>,
    /// Standardised points.
    points: Array2<T>,
    pub batch: Batch<T>,
}

impl<'a, T: Real> FeatureSource<'a, T> {
    /// Features of points as they are.
    pub fn new(program: &'a Program<T>, side: Side, form: Form) -> Self {
        FeatureSource { program, side, form, inputs: None }
    }

    /// Values of features on side X of points that are centred and scaled before.
    pub fn standardised(program: &'a Program<T>, inputs: Option<&'a Standardisation>) -> Self {
        FeatureSource { program, side: Side::X, form: Form::Values, inputs }
    }

    /// Puts the features of points into the batch of the buffers.
    pub fn fill(&self, x: PointsView<'_, T>, buffers: &mut FeatureBuffers<T>) {
        let FeatureBuffers { scratch, points, batch } = buffers;
        let FeatureSource { program, side, form, inputs } = *self;
        match inputs {
            None => batch.fill(program, side, form, x, scratch),
            Some(inputs) => {
                x.densely(scratch, |x, _| inputs.write(x, points));
                batch.fill(program, side, form, points.view().into(), scratch);
            }
        }
    }
}
