//! The landscape: every mechanism in every regime at every norm.

use rayon::prelude::*;

use random_features::Result;
use random_features::theory::gerf::GerfSign;

use crate::mechanisms::{Fit, Mechanism, Points};
use crate::regimes::Regime;

/// The root mean square norms r of the points.
pub const NORMS: [f64; 9] = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0];

/// What is reported of the values of all pairs.
#[derive(Clone, Copy)]
pub enum Statistic {
    Mean,
    /// That percentage of the pairs has no larger value.
    Quantile(u64),
}

impl Statistic {
    fn of(self, values: &mut [f64]) -> f64 {
        match self {
            Statistic::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Statistic::Quantile(percent) => {
                values.sort_by(f64::total_cmp);
                let rank = (percent as f64 / 100.0 * values.len() as f64).ceil() as usize;
                values[rank.clamp(1, values.len()) - 1]
            }
        }
    }
}

/// A mechanism at a norm.
#[derive(Clone, Copy)]
pub struct Cell {
    /// The number of frequencies.
    pub m: usize,
    /// The statistic of ln(Var/K²).
    pub value: f64,
}

/// A regime's cells.
pub struct Block {
    /// For each norm.
    pub signs: Vec<GerfSign>,
    /// For each mechanism, for each norm.
    pub cells: Vec<Vec<Cell>>,
}

/// Computes a regime's cells at an equal number of real features.
pub fn block(
    regime: &Regime,
    mechanisms: &[Mechanism],
    features: usize,
    statistic: Statistic,
) -> Result<Block> {
    let mut block = Block { signs: Vec::new(), cells: vec![Vec::new(); mechanisms.len()] };
    for norm in NORMS {
        let (queries, keys) = (&regime.queries * norm, &regime.keys * norm);
        let fit = Fit::new(&queries, &keys)?;
        block.signs.push(fit.sign());
        let rows = || queries.rows().into_iter().zip(keys.rows());
        // Arrays in standard layout have contiguous rows.
        let slices = rows().filter_map(|(x, y)| Some((x.to_slice()?, y.to_slice()?)));
        let pairs: Vec<Points> = slices.map(|(x, y)| Points::new(x, y, &fit)).collect();
        for (mechanism, cells) in mechanisms.iter().zip(&mut block.cells) {
            let law = mechanism.law(&fit, regime.dim(), features);
            let value = |points: &Points| mechanism.ln_relative_variance(&fit, points, &law);
            let mut values: Vec<f64> = pairs.par_iter().map(value).collect();
            let m = mechanism.frequencies(&fit, features);
            cells.push(Cell { m, value: statistic.of(&mut values) });
        }
    }
    Ok(block)
}
