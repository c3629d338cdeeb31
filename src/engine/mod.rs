//! The engine: computes the features of many points from the plan of a map.
//!
//! A [`MapPlan`] describes a map: a leaf in the normal form (input, projection, bias, lift, row term), a sum of products
//! of plans, a plan for each pair of clusters, a plan at transformed points, or a user-defined map. All optimisations
//! are decided once, when a plan becomes a [`Program`]: equal projections are merged, and large results use
//! non-temporal stores where nothing changes them afterwards. [`drive`] writes features to arrays; [`fold`] passes them
//! to consumers run by run.
//!
//! Two loops take almost all of the time: a projection (packed product or fast transform) and a lift of each row in
//! place. They are compiled for AVX-512, for AVX2 with fused multiply-add and for the baseline of the target, and
//! chosen once at run time.

mod absorbed;
mod batch;
mod bias;
mod columns;
mod conditioned;
mod contract;
pub(crate) mod drive;
mod fold;
mod function;
mod gradient;
mod input;
mod leaf;
mod lift;
mod logarithms;
mod pass;
mod plan;
mod points;
mod projection;
mod routed;
mod scratch;
mod shift;
mod source;
mod sum;
mod tile;

pub use contract::{Facts, FeatureMap, Form, Side};
pub use lift::Lift;
pub use projection::{Method, Projection};
pub(crate) use projection::{givens_cost, hadamard_cost};
pub use scratch::Scratch;
pub use shift::Shift;
pub(crate) use tile::TileShape;
pub use tile::{Row, Tile};

pub(crate) use batch::{Batch, FeatureRow};
pub(crate) use bias::Bias;
#[cfg(feature = "arrow")]
pub(crate) use columns::ColumnPoints;
pub(crate) use conditioned::{Affine, ConditionedPlan};
pub(crate) use fold::{FoldBuffers, Runs, fold, for_runs, map_pairs, map_rows};
pub(crate) use gradient::{
    ExponentSums, PulledRows, exponent_sums, has_gradients, pull_back, pull_back_logarithms, pull_back_rows,
    sums_of_logarithms, takes_logarithms,
};
pub(crate) use input::{ComplexMatrix, Input, Linear};
pub(crate) use leaf::Leaf;
pub(crate) use logarithms::Logarithms;
pub(crate) use pass::Pass;
pub(crate) use plan::{MapPlan, Program, ranges};
pub(crate) use points::PointsView;
#[cfg(feature = "sparse")]
pub(crate) use points::SparsePoints;
pub(crate) use routed::Routed;
pub(crate) use source::{FeatureBuffers, FeatureSource};
pub(crate) use sum::{Sum, Term, TermFactor};
