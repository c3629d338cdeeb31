//! Maps that are made of maps. A [`Composite`] is one level of a tree: a combination of maps of a type `M`. If `M` is a
//! [`Recipe`](crate::Recipe), it is plain data; if `M` is a [`Map`], it has features; indices in place of maps make its stored form.

mod bipolar;
mod centres;
mod clustered;
mod coefficient;
mod conditioned;
mod conditioning;
mod diagonal;
mod estimates;
mod hybrid;
mod mixture;
mod part;
mod shaped;
mod unbiased;
mod weighted_sum;

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2};

pub use bipolar::Bases;
pub use centres::Centres;
pub use clustered::Clustered;
pub use coefficient::Coefficient;
pub use conditioned::Conditioned;
pub(super) use conditioned::conditioned;
pub use conditioning::Conditioning;
pub use diagonal::{Diagonal, Formula};
pub(super) use estimates::rounding;
pub use hybrid::Hybrid;
pub use mixture::Mixture;
pub use part::Part;
pub(super) use part::{Entry, Known, Size};
pub use unbiased::UnbiasedNystroem;
pub use weighted_sum::WeightedSum;

use crate::engine::MapPlan;
use crate::error::Result;
use crate::map::Map;
use crate::tagged::tagged;
use crate::{Real, SignedLog};

/// A combination of maps of type `M`: one level of the tree of a [`Map`] or a [`Recipe`](crate::Recipe).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Composite<M> {
    /// A sum of products of maps.
    Hybrid(Hybrid<M>),
    /// A map for each pair of clusters.
    Clustered(Clustered<M>),
    /// A map at affinely transformed points.
    Conditioned(Conditioned<M>),
    /// Nyström features, and features of what they leave of the kernel.
    UnbiasedNystroem(UnbiasedNystroem<M>),
    /// A weighted sum of maps.
    WeightedSum(WeightedSum<M>),
}

tagged!(Composite<M>, "a combination of maps" {
    "hybrid" => Hybrid(node: Hybrid<M>),
    "clustered" => Clustered(node: Clustered<M>),
    "conditioned" => Conditioned(node: Conditioned<M>),
    "unbiased Nyström" => UnbiasedNystroem(node: UnbiasedNystroem<M>),
    "weighted sum" => WeightedSum(node: WeightedSum<M>),
});

/// Forwards to the combination.
macro_rules! of_each {
    ($composite:expr, $node:ident => $answer:expr) => {
        match $composite {
            Composite::Hybrid($node) => $answer,
            Composite::Clustered($node) => $answer,
            Composite::Conditioned($node) => $answer,
            Composite::UnbiasedNystroem($node) => $answer,
            Composite::WeightedSum($node) => $answer,
        }
    };
}

macro_rules! into_composite {
    ($($Name:ident),*) => {$(
        impl<M> From<$Name<M>> for Composite<M> {
            fn from(node: $Name<M>) -> Self {
                Composite::$Name(node)
            }
        }
    )*};
}

into_composite!(Hybrid, Clustered, Conditioned, UnbiasedNystroem, WeightedSum);

impl<M> Composite<M> {
    /// The maps that are combined, in the order of the fields of the combination. For a hybrid the map of each
    /// coefficient comes before its base.
    pub fn children(&self) -> Vec<&M> {
        of_each!(self, node => node.children())
    }

    /// The maps that are combined, in the order of [`children`](Composite::children), to be changed.
    pub fn children_mut(&mut self) -> Vec<&mut M> {
        of_each!(self, node => node.children_mut())
    }

    /// Replaces each map by the one that `each` makes of it, in the order of [`children`](Composite::children). Returns
    /// the first error of `each`, if there is one.
    pub fn try_map<N, E>(&self, each: impl FnMut(&M) -> Result<N, E>) -> Result<Composite<N>, E> {
        Ok(of_each!(self, node => node.try_map(each)?.into()))
    }
}

impl<M: Part> Composite<M> {
    /// d, the dimension of points.
    pub(super) fn dim(&self) -> usize {
        of_each!(self, node => node.dim())
    }

    /// Rejects maps that do not fit together.
    pub(super) fn check(&self) -> Result<()> {
        of_each!(self, node => node.check())
    }

    /// The numbers of features and of their blocks.
    pub(super) fn size(&self) -> Size {
        of_each!(self, node => node.size())
    }

    /// The kernel and the covariance of bases, for all points.
    pub(super) fn known(&self) -> Known<M::Scalar> {
        of_each!(self, node => node.known())
    }

    /// ln of the variance of an estimate, where there is a closed form.
    pub(super) fn ln_variance(
        &self,
        known: &Known<M::Scalar>,
        x: &ArrayRef1<M::Scalar>,
        y: &ArrayRef1<M::Scalar>,
    ) -> Option<f64> {
        of_each!(self, node => node.ln_variance(known, x, y))
    }
}

impl<T: Real> Composite<Map<T>> {
    /// The plan of the engine.
    pub(super) fn lower(&self) -> Result<MapPlan<T>> {
        of_each!(self, node => node.lower())
    }

    /// The estimates of paired rows, if they are not products of the features.
    pub(super) fn estimates(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Option<Result<Array1<SignedLog>>> {
        match self {
            Composite::Hybrid(hybrid) => Some(hybrid.log_estimates(x, y)),
            Composite::Conditioned(conditioned) => conditioned.estimates(x, y),
            Composite::Clustered(_) | Composite::UnbiasedNystroem(_) | Composite::WeightedSum(_) => None,
        }
    }

    /// The estimates of pairs of rows, if they are not products of the features.
    pub(super) fn estimates_of_pairs(
        &self,
        x: &ArrayRef2<T>,
        y: &ArrayRef2<T>,
        pairs: &[(usize, usize)],
    ) -> Option<Result<Array1<SignedLog>>> {
        match self {
            Composite::Hybrid(hybrid) => Some(hybrid.log_estimates_of_pairs(x, y, pairs)),
            Composite::Conditioned(conditioned) => conditioned.estimates_of_pairs(x, y, pairs),
            Composite::Clustered(_) | Composite::UnbiasedNystroem(_) | Composite::WeightedSum(_) => None,
        }
    }

    /// The estimates of all pairs of points, if they are neither products of the features nor estimates of a hybrid.
    pub(super) fn gram(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Option<Result<Array2<T>>> {
        match self {
            Composite::Conditioned(conditioned) => conditioned.gram(x, y),
            _ => None,
        }
    }
}

impl<M: std::fmt::Display> std::fmt::Display for Composite<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        of_each!(self, node => node.fmt(f))
    }
}
