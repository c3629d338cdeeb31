//! [`Operand`]: what can be combined, a [`Map`](crate::Map) or the [`Recipe`](crate::Recipe) of one; [`Known`]: what follows from its data.

use std::sync::Arc;

use ndarray::ArrayRef1;

use super::Composite;
use crate::Real;
use crate::digest::Identity;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::map::{Omega, PlainRecipe, Target};

/// What can be combined to other maps: a [`Map`](crate::Map), whose frequencies are drawn, or a [`Recipe`](crate::Recipe),
/// which may still have them drawn. The type that is asked for decides which of the two a constructor makes.
pub trait Operand: Part {}

impl<M: Part> Operand for M {}

/// What the combinations of maps ask of their parts. Not for implementing, nor for calling.
#[doc(hidden)]
pub trait Part: Clone {
    /// The scalar of points.
    type Scalar: Real;

    fn of_plain(plain: PlainRecipe) -> Result<Self>;

    fn of_composite(composite: Composite<Self>) -> Result<Self>;

    fn plain(&self) -> Option<&PlainRecipe>;

    fn composite(&self) -> Option<&Composite<Self>>;

    /// Whatever it shares with others if these have an equal one.
    fn entries(&self) -> Vec<Entry<'_>>;

    /// d.
    fn dim(&self) -> usize;

    /// D of a map that is not made of others.
    fn width(&self) -> usize;

    /// Rejects what cannot be a map; a [`Map`](crate::Map) is one.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn known(&self) -> Arc<Known<Self::Scalar>>;

    /// ln of the variance of an estimate, where there is a closed form; points are of dimension d.
    fn ln_variance(&self, x: &ArrayRef1<Self::Scalar>, y: &ArrayRef1<Self::Scalar>) -> Option<f64>;

    /// The numbers of features and of their blocks.
    fn size(&self) -> Size {
        let plain = Size { features: self.width(), blocks: 1 };
        self.composite().map_or(plain, Composite::size)
    }

    /// The number of features that a pairwise estimate sums.
    fn terms(&self) -> usize {
        self.composite().map_or_else(
            || self.width(),
            |composite| composite.children().iter().fold(0, |sum, child| sum.saturating_add(child.terms())),
        )
    }

    /// Whether all features are signs of the same magnitude.
    fn is_of_signs(&self) -> bool {
        self.plain().is_some_and(|plain| plain.mechanism.is_of_signs())
    }
}

/// The numbers of features of a point and of their blocks, which saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub features: usize,
    pub blocks: usize,
}

impl Size {
    pub fn times(self, other: Size) -> Size {
        let Size { features, blocks } = other;
        Size { features: self.features.saturating_mul(features), blocks: self.blocks.saturating_mul(blocks) }
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Size>>(sizes: I) -> Size {
        sizes.fold(Size::default(), |sum, one| Size {
            features: sum.features.saturating_add(one.features),
            blocks: sum.blocks.saturating_add(one.blocks),
        })
    }
}

/// Where a map has its randomness from.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// Frequencies, drawn or to be drawn.
    Draw(&'a Omega),
    /// A map of the user's own.
    Own(Identity),
}

impl Entry<'_> {
    /// Whether both have the same numbers.
    pub fn same(&self, other: &Entry<'_>) -> bool {
        match (self, other) {
            (Entry::Draw(a), Entry::Draw(b)) => a.same_draw(b),
            (Entry::Own(a), Entry::Own(b)) => a == b,
            _ => false,
        }
    }
}

/// What follows from the data of a map for all points.
#[derive(Debug)]
pub struct Known<S> {
    /// The kernel that is estimated, if it is known.
    pub kernel: Option<Arc<dyn Kernel<S>>>,
    /// What the bases of a hybrid share.
    pub covariance: BaseCovariance,
}

/// What is known about the covariance of the bases of a hybrid.
#[derive(Clone, Debug)]
pub enum BaseCovariance {
    /// 0: the bases are independent.
    Zero,
    /// Hyperbolic and trigonometric features share frequencies that are worth m independent ones, for this target.
    Bipolar(Target, f64),
    /// Bases share frequencies in another way.
    Unknown,
}

impl<S> Known<S> {
    /// Of a map that is no hybrid.
    pub(crate) fn of_kernel(kernel: Option<Arc<dyn Kernel<S>>>) -> Self {
        Known { kernel, covariance: BaseCovariance::Zero }
    }
}

/// The kernel that all maps are known to estimate, with the same parameters.
pub(super) fn common_kernel<'a, M: Operand + 'a>(
    maps: impl IntoIterator<Item = &'a M>,
) -> Option<Arc<dyn Kernel<M::Scalar>>> {
    let mut kernels = maps.into_iter().map(|map| map.known().kernel.clone());
    let first = kernels.next()??;
    kernels.all(|kernel| kernel.is_some_and(|kernel| same_kernel(&*first, &*kernel))).then_some(first)
}

/// Whether both kernels are known to be the same.
fn same_kernel<S: Real>(a: &dyn Kernel<S>, b: &dyn Kernel<S>) -> bool {
    match (a.exponential(), b.exponential()) {
        (Some(a), Some(b)) => a == b,
        _ => a.identity().is_some() && a.identity() == b.identity(),
    }
}
