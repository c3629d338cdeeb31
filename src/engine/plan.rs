//! [`MapPlan`]: the description of a map, and [`Program`]: a plan that is ready to run.

use std::ops::Range;
use std::sync::Arc;

use ndarray::ArrayView2;

use super::conditioned::ConditionedPlan;
use super::leaf::Leaf;
use super::pass::Pass;
use super::routed::Routed;
use super::sum::Sum;
use super::{Facts, FeatureMap, Form, PointsView, Projection, Scratch, Side, Tile};
use crate::Real;
use crate::error::Result;

/// The description of a map.
#[derive(Clone, Debug)]
pub(crate) enum MapPlan<T> {
    /// A map in the normal form.
    Leaf(Leaf<T>),
    /// A sum of products of maps.
    Sum(Sum<T>),
    /// A separate map for each pair of clusters.
    Routed(Routed<T>),
    /// A map of affine images of points.
    Conditioned(ConditionedPlan<T>),
    /// A user-defined map, known only by its facts.
    Foreign(Arc<dyn FeatureMap<T>>, Facts),
}

impl<T: Real> MapPlan<T> {
    pub fn facts(&self) -> &Facts {
        match self {
            MapPlan::Leaf(leaf) => &leaf.facts,
            MapPlan::Sum(sum) => &sum.facts,
            MapPlan::Routed(routed) => &routed.facts,
            MapPlan::Conditioned(conditioned) => &conditioned.facts,
            MapPlan::Foreign(_, facts) => facts,
        }
    }

    /// Writes the features of the rows of `x` to a tile of as many rows. Projections of the points themselves read points of any kind;
    /// everything else reads all coordinates.
    pub fn fill(&self, pass: Pass, x: PointsView<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        match self {
            MapPlan::Sum(sum) => sum.fill(pass, x, tile, scratch),
            MapPlan::Leaf(leaf) if leaf.shareable().is_some() => leaf.fill_points(pass, x, tile, scratch),
            _ => x.densely(scratch, |x, scratch| self.fill_dense(pass, x, tile, scratch)),
        }
    }

    /// As [`fill`](MapPlan::fill), for points with all coordinates.
    pub fn fill_dense(
        &self,
        pass: Pass,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        match self {
            MapPlan::Leaf(leaf) => leaf.fill(pass, x, tile, scratch),
            MapPlan::Sum(sum) => sum.fill(pass, x.into(), tile, scratch),
            MapPlan::Routed(routed) => routed.fill(pass, x, tile, scratch),
            MapPlan::Conditioned(conditioned) => conditioned.fill(pass, x, tile, scratch),
            MapPlan::Foreign(map, _) => map.fill(pass.side, x, pass.form, tile),
        }
    }

    /// Calls `each` for all leaves and foreign maps.
    pub fn each_leaf<'a>(&'a self, each: &mut dyn FnMut(&'a MapPlan<T>)) {
        match self {
            MapPlan::Leaf(_) | MapPlan::Foreign(..) => each(self),
            MapPlan::Sum(sum) => sum.parts().for_each(|part| part.each_leaf(each)),
            MapPlan::Routed(routed) => routed.plans().for_each(|plan| plan.each_leaf(each)),
            MapPlan::Conditioned(conditioned) => conditioned.base().each_leaf(each),
        }
    }

    /// Whether every value of a row is written once and is complete when the row is, so that it may be written past the caches.
    fn writes_once(&self) -> bool {
        match self {
            MapPlan::Leaf(_) => true,
            MapPlan::Sum(sum) => !sum.has_conditions() && sum.parts().all(|part| part.writes_once()),
            MapPlan::Conditioned(conditioned) => conditioned.base().writes_once(),
            // Absent blocks are left unchanged; user-defined maps may write a value more than once.
            MapPlan::Routed(_) | MapPlan::Foreign(..) => false,
        }
    }

    /// Whether most of the work is a product that threads can share among them.
    fn is_wide(&self) -> bool {
        matches!(self, MapPlan::Leaf(leaf) if leaf.projection.is_wide())
    }

    /// Lets every leaf use the equal projection of `pool`, to which new ones are added. The pool counts for each the leaves that
    /// project the same points on it.
    fn merge(&mut self, pool: &mut Vec<(Arc<Projection<T>>, usize)>, count: bool) {
        match self {
            MapPlan::Leaf(leaf) => {
                let shareable = count && leaf.shareable().is_some();
                let own = &mut leaf.projection;
                match pool.iter_mut().find(|(known, _)| known.same(own)) {
                    Some((known, uses)) => {
                        *own = known.clone();
                        *uses += usize::from(shareable);
                    }
                    None => pool.push((own.clone(), usize::from(shareable))),
                }
            }
            MapPlan::Sum(sum) => sum.parts_mut().for_each(|part| part.merge(pool, count)),
            MapPlan::Routed(routed) => routed.plans_mut().for_each(|plan| plan.merge(pool, false)),
            MapPlan::Conditioned(conditioned) => conditioned.base_mut().merge(pool, false),
            MapPlan::Foreign(..) => {}
        }
    }
}

/// A plan with its optimisations.
#[derive(Clone, Debug)]
pub(crate) struct Program<T> {
    plan: MapPlan<T>,
    /// The projections that several maps of the plan take of the same points, which are computed once.
    shared: Vec<Arc<Projection<T>>>,
    columns: Vec<Range<usize>>,
    width: usize,
    writes_once: bool,
}

/// A program does not change, so a panic leaves it as it was.
impl<T> std::panic::UnwindSafe for Program<T> {}
impl<T> std::panic::RefUnwindSafe for Program<T> {}

impl<T: Real> Program<T> {
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if the plan has no dimension or no features, or too many.
    pub fn new(mut plan: MapPlan<T>) -> Result<Self> {
        let facts = plan.facts().clone().checked()?;
        let mut pool = Vec::new();
        plan.merge(&mut pool, true);
        Ok(Program {
            shared: pool
                .into_iter()
                .filter(|(_, uses)| *uses > 1)
                .map(|(projection, _)| projection)
                .collect(),
            columns: ranges(&facts.blocks).collect(),
            width: facts.feature_dim(),
            writes_once: plan.writes_once(),
            plan,
        })
    }

    pub fn plan(&self) -> &MapPlan<T> {
        &self.plan
    }

    pub fn facts(&self) -> &Facts {
        self.plan.facts()
    }

    /// D, the number of features.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The columns of each block.
    pub fn blocks(&self) -> &[Range<usize>] {
        &self.columns
    }

    pub fn writes_once(&self) -> bool {
        self.writes_once
    }

    /// Whether most of the work is a product that threads can share among them.
    pub fn is_wide(&self) -> bool {
        self.plan.is_wide()
    }

    /// Whether the program leaves out a factor when it is [bare](Program::bare).
    pub fn has_factors(&self) -> bool {
        matches!(self.plan, MapPlan::Conditioned(_))
    }

    /// The program without the common factor of features on `side`, if leaving it out saves work: a normaliser cancels it.
    pub fn bare(&self, side: Side) -> Self {
        match &self.plan {
            MapPlan::Conditioned(conditioned) => {
                Program { plan: MapPlan::Conditioned(conditioned.bare(side)), ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// The best form that the map has.
    pub fn best_form(&self) -> Form {
        if self.facts().logarithms { Form::Logarithms } else { Form::Values }
    }

    /// Writes the features of the rows of `x` to a tile of as many rows.
    pub fn fill(
        &self,
        side: Side,
        form: Form,
        x: PointsView<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        // Points in columns are gathered once for all parts.
        if let PointsView::Columns(_) = x {
            return x.densely(scratch, |x, scratch| self.fill(side, form, x.into(), tile, scratch));
        }
        let pass = Pass::new(side, form);
        match self.plan {
            MapPlan::Sum(_) => self.plan.fill(pass.sharing(&self.shared, scratch), x, tile, scratch),
            _ => self.plan.fill(pass, x, tile, scratch),
        }
    }
}

/// The column ranges of blocks of these widths.
pub(crate) fn ranges(blocks: &[usize]) -> impl Iterator<Item = Range<usize>> + Clone + '_ {
    blocks.iter().scan(0, |start, width| {
        let range = *start..*start + width;
        *start = range.end;
        Some(range)
    })
}
