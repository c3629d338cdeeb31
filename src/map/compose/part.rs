//! [`Part`]: a [`Map`](crate::Map) or a [`Recipe`](crate::Recipe), which can be combined; [`Known`]: the kernel and the
//! covariance that follow from its data.

use std::sync::Arc;

use ndarray::ArrayRef1;

use super::Composite;
use crate::Real;
use crate::digest::Identity;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::map::{AnyKernel, Omega, PlainRecipe};

/// A part of other maps: a [`Map`](crate::Map), whose frequencies are drawn, or a [`Recipe`](crate::Recipe), whose frequencies
/// may still have to be drawn. Programs neither implement nor call it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a map nor a recipe",
    note = "the type that is asked for decides which of the two a constructor makes: `let map: Map<f32> = …` or `let recipe: Recipe = …`"
)]
pub trait Part: Clone {
    /// The scalar of points.
    type Scalar: Real;

    fn of_plain(plain: PlainRecipe) -> Result<Self>;

    fn of_composite(composite: Composite<Self>) -> Result<Self>;

    fn plain(&self) -> Option<&PlainRecipe>;

    fn composite(&self) -> Option<&Composite<Self>>;

    /// The sources of randomness: maps with an equal entry are dependent.
    fn entries(&self) -> Vec<Entry<'_>>;

    /// d, the dimension of points.
    fn dim(&self) -> usize;

    /// D, the number of features, of a map that is not made of others.
    fn width(&self) -> usize;

    /// Rejects a recipe that cannot be a map; accepts every [`Map`](crate::Map).
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

    /// Whether all features are signs of one magnitude.
    fn is_of_signs(&self) -> bool {
        self.plain().is_some_and(|plain| plain.mechanism.is_of_signs())
    }
}

/// The numbers of features of a point and of their blocks, which saturate at `usize::MAX`.
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

/// A source of a map's randomness.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// Frequencies, drawn or to be drawn.
    Draw(&'a Omega),
    /// A user-defined map.
    Own(Identity),
}

impl Entry<'_> {
    /// Whether both have equal numbers.
    pub fn same(&self, other: &Entry<'_>) -> bool {
        match (self, other) {
            (Entry::Draw(a), Entry::Draw(b)) => a.same_draw(b),
            (Entry::Own(a), Entry::Own(b)) => a == b,
            _ => false,
        }
    }
}

/// The kernel and the covariance of bases that follow from the data of a map, for all points.
#[derive(Debug)]
pub struct Known<S> {
    /// The kernel that is estimated, if it is known.
    pub kernel: Option<Arc<dyn Kernel<S>>>,
    /// The covariance of the bases of a hybrid.
    pub covariance: BaseCovariance,
}

/// The covariance of the bases of a hybrid, as far as it is known.
#[derive(Clone, Debug)]
pub enum BaseCovariance {
    /// 0: the bases are independent.
    Zero,
    /// Hyperbolic and trigonometric features share frequencies that are worth m independent ones, for this kernel.
    Bipolar(AnyKernel, f64),
    /// Bases share frequencies in another way.
    Unknown,
}

impl<S> Known<S> {
    /// The facts of a map that is no hybrid.
    pub(crate) fn of_kernel(kernel: Option<Arc<dyn Kernel<S>>>) -> Self {
        Known { kernel, covariance: BaseCovariance::Zero }
    }
}

/// The kernel that all maps are known to estimate, with equal parameters.
pub(super) fn common_kernel<'a, M: Part + 'a>(
    maps: impl IntoIterator<Item = &'a M>,
) -> Option<Arc<dyn Kernel<M::Scalar>>> {
    let mut kernels = maps.into_iter().map(|map| map.known().kernel.clone());
    let first = kernels.next()??;
    kernels.all(|kernel| kernel.is_some_and(|kernel| same_kernel(&*first, &*kernel))).then_some(first)
}

/// Whether both kernels are known to be the same.
pub(super) fn same_kernel<S: Real>(a: &dyn Kernel<S>, b: &dyn Kernel<S>) -> bool {
    match (a.exponential(), b.exponential()) {
        (Some(a), Some(b)) => a == b,
        _ => a.identity().is_some() && a.identity() == b.identity(),
    }
}

/// The pairs of maps that share a draw and are therefore dependent.
pub(super) fn shared<M: Part>(parts: &[&M]) -> Vec<(usize, usize)> {
    let entries: Vec<_> = parts.iter().map(|part| part.entries()).collect();
    let meet = |i: usize, j: usize| entries[i].iter().any(|a| entries[j].iter().any(|b| a.same(b)));
    let pairs = (0..parts.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    pairs.filter(|(i, j)| meet(*i, *j)).collect()
}
