//! [`Divided`]: by what rows λ is chosen.

use random_features::Real;
use random_features::apply::{Criterion, RidgeStatistics};
use random_features_distributed::division::Division;
use random_features_distributed::fault::sentence;

use crate::arguments::Rows;
use crate::asked::Asked;

/// Folds of groups unless stated.
const FOLDS: u64 = 10;

/// The parts of the rows by which λ is chosen.
#[derive(Clone, Debug)]
pub struct Divided {
    pub division: Division,
    /// The number of blocks before each that are left out, where parts are blocks.
    pub gap: usize,
}

impl Divided {
    /// The division that is asked for, if any is.
    pub async fn of(asked: &Asked, rows: &Rows) -> Result<Option<Self>, String> {
        let division = match (rows, &rows.groups) {
            (Rows { forward: Some(blocks), .. }, _) => Division::Blocks(*blocks),
            (_, Some(name)) => {
                let folds = rows.folds.unwrap_or(FOLDS);
                let division = Division::by(&asked.context, &asked.table, name, folds).await;
                division.map_err(|error| sentence(&error))?
            }
            (Rows { folds: Some(folds), .. }, None) => Division::Folds(*folds),
            _ => return Ok(None),
        };
        Ok(Some(Divided { division, gap: rows.gap.unwrap_or(0) }))
    }

    /// What is said of the error.
    pub fn name(&self, parts: usize) -> String {
        match &self.division {
            Division::Folds(_) => format!("{parts} folds of rows"),
            Division::Values(name) => format!("{parts} groups, by {name}"),
            Division::Groups(name, ..) => format!("{parts} folds of groups, by {name}"),
            Division::Blocks(_) if self.gap > 0 => {
                format!("{parts} blocks in order, with a gap of {}", self.gap)
            }
            Division::Blocks(_) => format!("{parts} blocks in order"),
        }
    }

    /// With what R² compares.
    pub fn baseline(&self) -> &'static str {
        match self.division {
            Division::Blocks(_) => "the mean of the rows before",
            _ => "the mean of the other parts",
        }
    }

    /// The criterion of the statistics of all parts.
    pub fn criterion<'a, T: Real>(&self, parts: &'a [RidgeStatistics<T>]) -> Criterion<'a, T> {
        match self.division {
            Division::Blocks(_) => Criterion::forward_of(parts, self.gap),
            _ => Criterion::folds_of(parts),
        }
    }
}
