//! A coupling of your own: how a block of frequencies is drawn, and what is known about its law.

use random_features::Result;
use random_features::extend::{Coupling, Radii, Radius, Rows};
use random_features::frequency::Independent;
use random_features::theory::{BlockLaw, Dependence};

/// Pairs of frequencies at right angles: ω₁ has a uniform direction, and ω₂ is another one without its component along ω₁.
#[derive(Debug)]
pub struct RightAngles;

impl Coupling for RightAngles {
    fn capacity(&self, d: usize) -> usize {
        d.min(2)
    }

    fn draw_block(
        &self,
        d: usize,
        size: usize,
        radii: &dyn Radii,
        rng: &mut random_features::extend::Generator,
    ) -> Result<Rows> {
        // Radii first, then directions, as in every coupling of the crate.
        let radii_drawn = radii.draw(d, size, rng)?;
        let mut rows = Independent.draw(d, size, rng.next_u64())?.rows().into_owned();
        for j in 0..size {
            for i in 0..j {
                let (first, second) = (rows.row(i).to_owned(), rows.row(j).to_owned());
                let along = first.dot(&second) / first.dot(&first);
                rows.row_mut(j).scaled_add(-along, &first);
            }
        }
        for (mut row, radius) in rows.rows_mut().into_iter().zip(radii_drawn) {
            let norm = row.dot(&row).sqrt();
            row *= radius / norm;
        }
        Ok(Rows::Dense(rows))
    }

    /// Maps compute their variance from the law that is stated here.
    fn block_law(&self, _d: usize, size: usize, radius: Radius) -> BlockLaw {
        BlockLaw::new(size, Dependence::Orthogonal, radius)
    }
}
