//! [`sum_leaves`]: sums of the features of the classes of each leaf.

use std::ops::Range;

use super::features::FeatureReference;
use super::nodes::{NodeRows, Nodes, sum};
use crate::apply::softmax_sampling::classes::Classes;
use crate::engine::{FeatureBuffers, FeatureSource, Program, Side};
use crate::error::{Error, Result};
use crate::numeric::matrix_view;
use crate::{Real, progress};

/// The number of classes whose features are computed at a time.
pub const CLASSES: usize = 240;

/// Buffers that a thread keeps while it sums leaves.
#[derive(Default)]
pub struct LeafBuffers<T> {
    classes: Vec<usize>,
    points: Vec<T>,
    features: FeatureBuffers<T>,
    sums: Vec<f64>,
}

impl<T: Real> LeafBuffers<T> {
    /// Computes the features of the buffer's classes relative to the reference, from points that `write` writes. The error is the
    /// first class whose features are not finite.
    fn fill(
        &mut self,
        program: &Program<T>,
        reference: &FeatureReference<T>,
        write: &impl Fn(usize, &mut [T]),
    ) -> Result<(), usize> {
        let d = program.facts().dim;
        self.points.resize(self.classes.len() * d, T::zero());
        self.classes.iter().zip(self.points.chunks_exact_mut(d)).for_each(|(class, row)| write(*class, row));
        let x = matrix_view(self.classes.len(), d, &self.points);
        FeatureSource::new(program, Side::Y, reference.form).fill(x.into(), &mut self.features);
        for (i, class) in self.classes.iter().enumerate() {
            if !reference.apply(program.blocks(), self.features.batch.row_mut(i)) {
                return Err(*class);
            }
        }
        Ok(())
    }

    /// Clears the features of classes that were removed.
    fn clear_removed(&mut self, classes: &Classes) {
        for (i, class) in self.classes.iter().enumerate() {
            if !classes.is_present(*class) {
                self.features.batch.row_mut(i).log_scales.fill(f64::NEG_INFINITY);
            }
        }
    }

    fn rows(&self, run: Range<usize>) -> NodeRows<'_, T> {
        let (width, blocks) =
            (self.features.batch.row(0).values.len(), self.features.batch.row(0).log_scales.len());
        NodeRows {
            values: &self.features.batch.values()[run.start * width..run.end * width],
            log_scales: &self.features.batch.log_scales()[run.start * blocks..run.end * blocks],
        }
    }
}

/// The classes of the leaf at this place; leaves have up to `leaf` classes.
fn classes_of(place: usize, leaf: usize, classes: &Classes) -> Range<usize> {
    place * leaf..classes.count().min((place + 1) * leaf)
}

/// The sums of some leaves of up to `leaf` classes, in their order, computed in parallel; `write` writes the point of a class,
/// and `faulty` is the error for a class whose features are not finite.
///
/// # Errors
/// `faulty` for the first such class; [`Cancelled`](Error::Cancelled).
pub fn sum_leaves<T: Real>(
    program: &Program<T>,
    reference: &FeatureReference<T>,
    (classes, leaf): (&Classes, usize),
    leaves: &[usize],
    write: impl Fn(usize, &mut [T]) + Sync,
    faulty: impl Fn(usize) -> Error + Sync,
) -> Result<Nodes<T>> {
    let mut sums = Nodes::new(program.width(), program.blocks().len());
    sums.grow(leaves.len());
    let summed = sums.fill(0, (CLASSES / leaf).max(1), |buffers: &mut LeafBuffers<T>, run, mut nodes| {
        progress::check()?;
        buffers.classes.clear();
        buffers
            .classes
            .extend(leaves[run.clone()].iter().flat_map(|place| classes_of(*place, leaf, classes)));
        buffers.fill(program, reference, &write).map_err(&faulty)?;
        buffers.clear_removed(classes);
        let (mut own, mut first) = (std::mem::take(&mut buffers.sums), 0);
        for (i, place) in leaves[run].iter().enumerate() {
            let next = first + classes_of(*place, leaf, classes).len();
            sum(program.blocks(), buffers.rows(first..next), &mut own, nodes.row(i));
            first = next;
        }
        buffers.sums = own;
        Ok(())
    });
    summed.into_iter().collect::<Result<()>>()?;
    Ok(sums)
}
