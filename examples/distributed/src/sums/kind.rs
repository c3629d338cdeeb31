//! [`Kind`]: what an aggregate sums.

use datafusion::common::Result;
use datafusion::scalar::ScalarValue;
use serde::{Deserialize, Serialize};

use super::Sums;
use super::moments::MomentsSums;
use super::pca::PcaSums;
use super::ridge::RidgeSums;
use super::sample::SampleSums;
use crate::columns::Scalar;
use crate::fault::{external, refuse};
use crate::map::MapSpec;

/// What an aggregate sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Sums of a ridge regression on a number.
    Ridge,
    /// Sums of a ridge regression on labels.
    Classes,
    /// Sums of a kernel PCA.
    Pca,
    /// Statistics and a random sample.
    Sample,
    /// Means and second moments.
    Moments,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 5] = [Kind::Ridge, Kind::Classes, Kind::Pca, Kind::Sample, Kind::Moments];

    /// The name of the function.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ridge => "ridge",
            Kind::Classes => "ridge_classes",
            Kind::Pca => "pca",
            Kind::Sample => "sample",
            Kind::Moments => "moments",
        }
    }

    /// The number of constant arguments.
    pub(super) fn constants(self) -> usize {
        match self {
            Kind::Classes => 3,
            Kind::Ridge | Kind::Pca | Kind::Sample => 2,
            Kind::Moments => 0,
        }
    }

    /// Whether rows may have weights.
    pub(super) fn takes_weights(self) -> bool {
        !matches!(self, Kind::Moments)
    }

    /// Whether there is a target or a label.
    pub(super) fn has_target(self) -> bool {
        matches!(self, Kind::Ridge | Kind::Classes)
    }

    /// What stands for it in a state.
    pub(super) fn tag(self) -> u8 {
        match self {
            Kind::Ridge => 1,
            Kind::Classes => 2,
            Kind::Pca => 3,
            Kind::Sample => 4,
            Kind::Moments => 5,
        }
    }

    /// What a tag stands for.
    pub(super) fn of_tag(tag: u8) -> Option<Self> {
        Kind::ALL.into_iter().find(|kind| kind.tag() == tag)
    }

    /// Reads the constant arguments.
    pub(super) fn constants_of(self, arguments: &[ScalarValue]) -> Result<Constants> {
        let name = self.name();
        let text = |k: usize| match arguments.get(k) {
            Some(ScalarValue::Utf8(Some(text))) => Ok(text.clone()),
            _ => refuse(format!("argument {} of {name} is not a text", k + 1)),
        };
        let whole = |k: usize| match arguments.get(k) {
            Some(ScalarValue::UInt64(Some(value))) => Ok(*value),
            _ => refuse(format!("argument {} of {name} is not a whole number from 0 on", k + 1)),
        };
        Ok(match self {
            Kind::Ridge => Constants::Ridge(MapSpec::parse(&text(0)?, whole(1)?)?),
            Kind::Classes => Constants::Classes(MapSpec::parse(&text(0)?, whole(1)?)?, classes(&text(2)?)?),
            Kind::Pca => Constants::Pca(MapSpec::parse(&text(0)?, whole(1)?)?),
            Kind::Sample => Constants::Sample { capacity: whole(0)?, seed: whole(1)? },
            Kind::Moments => Constants::Moments,
        })
    }
}

/// What comes with each row before its target and its point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowColumns {
    /// Whether a column has the numbers of the rows.
    pub numbers: bool,
    /// Whether a column says how often each row counts.
    pub weights: bool,
}

impl RowColumns {
    /// The number of columns.
    pub(super) fn count(self) -> usize {
        usize::from(self.numbers) + usize::from(self.weights)
    }

    /// The name of a function with these columns.
    pub(super) fn name(self, kind: Kind) -> String {
        let weighted = if self.weights { "_weighted" } else { "" };
        let rows = if self.numbers { "_rows" } else { "" };
        format!("{}{weighted}{rows}", kind.name())
    }
}

/// The names of classes, of which there are two or more, each once.
fn classes(json: &str) -> Result<Vec<String>> {
    let Ok(classes) = serde_json::from_str::<Vec<String>>(json) else {
        return refuse("the classes are not a JSON list of their names, such as [\"yes\", \"no\"]");
    };
    let different: std::collections::BTreeSet<&String> = classes.iter().collect();
    match different.len() == classes.len() && classes.len() > 1 {
        true => Ok(classes),
        false => refuse("classes are two or more, and each is named once"),
    }
}

/// The constant arguments of a function.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Constants {
    /// The map.
    Ridge(MapSpec),
    /// The map and the names of the classes.
    Classes(MapSpec, Vec<String>),
    /// The map.
    Pca(MapSpec),
    /// The size and the seed of the sample.
    Sample {
        /// The number of rows that are kept.
        capacity: u64,
        /// The seed.
        seed: u64,
    },
    /// None.
    Moments,
}

impl Constants {
    /// What is summed.
    pub fn kind(&self) -> Kind {
        match self {
            Constants::Ridge(_) => Kind::Ridge,
            Constants::Classes(..) => Kind::Classes,
            Constants::Pca(_) => Kind::Pca,
            Constants::Sample { .. } => Kind::Sample,
            Constants::Moments => Kind::Moments,
        }
    }

    /// A mark that is another one for other constants, but for one chance in 2³².
    pub(super) fn mark(&self) -> Result<u32> {
        let json = serde_json::to_vec(self).map_err(external)?;
        Ok(crc32fast::hash(&json))
    }

    /// Nothing yet, of points in ℝᵈ.
    pub(super) fn sums<T: Scalar>(&self, dim: usize) -> Result<Box<dyn Sums>> {
        if let Constants::Ridge(map) | Constants::Classes(map, _) | Constants::Pca(map) = self
            && map.recipe.dim() != dim
        {
            let own = map.recipe.dim();
            return refuse(format!("the recipe is for points of {own} coordinates, and there are {dim}"));
        }
        Ok(match self {
            Constants::Ridge(map) => Box::new(RidgeSums::<T>::new(map, None)?),
            Constants::Classes(map, classes) => Box::new(RidgeSums::<T>::new(map, Some(classes.clone()))?),
            Constants::Pca(map) => Box::new(PcaSums::<T>::new(map)?),
            Constants::Sample { capacity, seed } => {
                let capacity = usize::try_from(*capacity).unwrap_or(usize::MAX);
                Box::new(SampleSums::<T>::new(dim, capacity, *seed)?)
            }
            Constants::Moments => Box::new(MomentsSums::<T>::new(dim)?),
        })
    }
}
