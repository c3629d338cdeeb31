//! Maps for shapes of the data.

use super::family::MapFamily;
use super::input::FitInput;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use crate::apply::attention::AttentionShaping;
use crate::data::shaping::Shape;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use crate::data::shaping::Shaping;
use crate::error::Result;
use crate::frequency::Draw;

/// The queries whose attention weighs pairs.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
const ROWS: usize = 64;

/// Shapes of the data: whole, and truncated to the rank that suits the number of features and to twice that. None without a
/// backend for eigendecompositions.
pub(super) fn shaped(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    {
        let whole = shape(input, &Shaping::new())?;
        let isotropic = input.kernel.lengthscale().isotropic().is_some();
        let mut all = vec![of_shape(input, "shaped".into(), whole)];
        let most = input.dim();
        if isotropic && most > 1 {
            let ranked = shape(input, &Shaping::new().with_rank_for(input.features.max(1))?)?;
            let rank = ranked.rank().min(most - 1);
            for rank in [rank, 2 * rank].into_iter().filter(|rank| *rank < most) {
                let shape = shape(input, &Shaping::new().with_rank(rank)?)?;
                all.push(of_shape(input, format!("truncated, rank {rank} of {most}"), shape));
            }
        }
        Ok(all)
    }
    #[cfg(not(any(feature = "faer", feature = "ndarray-linalg")))]
    {
        let _ = (input, of_shape);
        Ok(Vec::new())
    }
}

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
fn shape(input: FitInput<'_>, shaping: &Shaping) -> Result<Shape> {
    let [x, y] = input.points;
    if input.attention {
        // Points are scaled already.
        return Ok(AttentionShaping::new(shaping.clone()).with_scale(1.0)?.choose(x, y, ROWS, 0)?.0);
    }
    if input.one_set { shaping.of_one_set(x) } else { shaping.of_points(x, y) }
}

fn of_shape(input: FitInput<'_>, name: String, shape: Shape) -> MapFamily {
    let kernel = input.kernel.clone();
    MapFamily::coupled(name, move |m, coupling| {
        shape.build(Draw::new(shape.rank(), m, coupling), kernel.clone())
    })
}
