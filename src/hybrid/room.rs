//! [`Room`]: a tile that owns its buffers.

use crate::Real;
use crate::map::{Scratch, Tile};

/// Room for features on the way to a tile.
pub(super) struct Room<T> {
    values: Vec<T>,
    /// As many as values, or none.
    signs: Vec<T>,
    log_scales: Vec<f64>,
    rows: usize,
    width: usize,
    blocks: usize,
}

/// A row of features.
pub(super) struct Row<'a, T> {
    pub values: &'a [T],
    pub signs: &'a [T],
    pub log_scales: &'a [f64],
}

impl<T: Real> Room<T> {
    /// For rows of `width` features in `blocks` blocks; if `signed`, with a sign of 1 for each feature.
    pub fn new(rows: usize, (width, blocks): (usize, usize), signed: bool, scratch: &mut Scratch<T>) -> Self {
        let mut signs = scratch.take(if signed { rows * width } else { 0 });
        signs.fill(T::one());
        let (values, log_scales) = (scratch.take(rows * width), vec![0.0; rows * blocks]);
        Room { values, signs, log_scales, rows, width, blocks }
    }

    pub fn fill(&mut self, fill: impl FnOnce(&mut Tile<'_, T>)) {
        let tile = Tile::new(&mut self.values, &mut self.log_scales, self.rows, self.width, self.blocks);
        if let Some(tile) = tile {
            fill(&mut tile.with_signs(&mut self.signs));
        }
    }

    pub fn row(&self, i: usize) -> Row<'_, T> {
        let columns = i * self.width..(i + 1) * self.width;
        Row {
            values: &self.values[columns.clone()],
            signs: if self.signs.is_empty() { &[] } else { &self.signs[columns] },
            log_scales: &self.log_scales[i * self.blocks..(i + 1) * self.blocks],
        }
    }

    pub fn give_back(self, scratch: &mut Scratch<T>) {
        scratch.give(self.values);
        scratch.give(self.signs);
    }
}
