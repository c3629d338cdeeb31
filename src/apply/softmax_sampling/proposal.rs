//! [`Proposal`]: the map and the options from which classes are drawn.

use ndarray::{ArrayRef2, ArrayView2, CowArray, Ix2};

use super::SoftmaxSampler;
use super::classes::Classes;
use super::exact::ExactClasses;
use super::sampler::Engine;
use super::tree::{FeatureReference, Tree, standard};
use crate::Real;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use crate::data::shaping::Shaping;
use crate::error::{Error, Result, check_finite, check_positive, check_size};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use crate::kernel::Softmax;
use crate::map::Map;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use crate::map::Omega;
use crate::memory::check_memory;
use crate::numeric::with_length;
use crate::once::once;

/// By default a leaf has one class for so many features per coordinate of a point.
const FEATURES: usize = 4;
/// The most classes of a leaf.
pub(super) const LARGEST_LEAF: usize = 4096;
/// By default draws are from the exact softmax for fewer classes. Measured in `f32` with d = 64 and m = 64 to 256 on two cores of
/// an AMD EPYC, 256 rows at a time, with 4000 classes: the tree takes 1.0 to 1.6 times as long for 10 draws a row, 2.3 to 8
/// times for 40, 0.1 to 0.2 times (3 µs less) for one. For 40 draws of one row alone both are even at some 5000 classes.
const EXACT_BELOW: usize = 4096;

/// The map and the options from which a [`SoftmaxSampler`] is built: classes are drawn in proportion to the map's estimates.
///
/// ```
/// use random_features::ndarray::arr2;
/// use random_features::Trigonometric;
/// use random_features::apply::softmax_sampling::Proposal;
/// use random_features::frequency::Orthogonal;
/// let classes = arr2(&[[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0]]);
/// let map = Trigonometric.softmax::<f64>(Orthogonal.draw(2, 32, 1)?)?;
/// // In proportion to exp(2 cos(h, cᵢ)), 9 times of 10, from a tree
/// // however few classes there are.
/// let proposal = Proposal::new(map).with_uniform(0.1)?.with_cosine(0.5)?;
/// let sampler = proposal.clone().with_exact_below(0).build(&classes)?;
/// assert!(!sampler.is_exact());
/// // In proportion to exp(h·cᵢ) where there are fewer than 4096 classes.
/// assert!(proposal.build(&classes)?.is_exact());
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Proposal<T: Real> {
    pub(super) map: Map<T>,
    pub(super) uniform: f64,
    pub(super) leaf: Option<usize>,
    pub(super) temperature: Option<f64>,
    pub(super) exact_below: usize,
    pub(super) diagnosed: bool,
}

impl<T: Real> Proposal<T> {
    /// A proposal in proportion to the estimates φ(h)·ψ(cᵢ) of a map, with h on side [`X`](crate::Side::X) and classes on side
    /// [`Y`](crate::Side::Y). For q ∝ exp(h·cᵢ) take a map of the softmax kernel.
    pub fn new(map: Map<T>) -> Self {
        let (leaf, temperature, exact_below) = (None, None, EXACT_BELOW);
        Proposal { map, uniform: 0.0, leaf, temperature, exact_below, diagnosed: false }
    }

    /// A proposal in proportion to estimates of exp(h·cᵢ) by features that are [shaped](crate::data::shaping) by a sample of points
    /// `h`, n × d, and by the class vectors, C × d.
    ///
    /// ```
    /// use random_features::ndarray::{Array2, arr1};
    /// use random_features::rand::RngExt;
    /// use random_features::apply::softmax_sampling::Proposal;
    /// use random_features::frequency::Orthogonal;
    /// // The first coordinates are large in the classes and small in h.
    /// let mut rng = random_features::rng(1);
    /// let size = arr1(&[4.0, 2.0, 1.0, 0.5]);
    /// let mut points = |n| {
    ///     Array2::from_shape_simple_fn((n, 4), || rng.random::<f64>())
    /// };
    /// let (classes, h) = (points(5000) * &size, points(200) / &size);
    /// let omega = Orthogonal.draw(4, 128, 1)?;
    /// let sampler = Proposal::shaped(omega, &h, &classes)?.build(&classes)?;
    /// println!("{}", sampler.report(&h, &classes, &[])?);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Estimates have no bias, and less variance the more the coordinates differ in size, are correlated, or have means
    /// away from 0. Frequencies are those of the softmax kernel in ℝᵈ. Some hundred points `h` are enough, and
    /// [`report`](SoftmaxSampler::report) shows the gain. If all coordinates are alike and norms are large, shaped
    /// features may be far worse than plain ones (an effective share of 6e-7 instead of 6e-5 at norm 5 in 32
    /// dimensions). For [cosines](Proposal::with_cosine) shape the scaled points by
    /// [`Shape::build`](crate::data::shaping::Shape::build).
    ///
    /// # Errors
    /// The errors of [`Shaping::of_points`](crate::data::shaping::Shaping::of_points) and
    /// [`Shape::build`](crate::data::shaping::Shape::build).
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn shaped(omega: impl Into<Omega>, h: &ArrayRef2<T>, classes: &ArrayRef2<T>) -> Result<Self> {
        Ok(Proposal::new(shaped_map(omega.into(), h, classes)?))
    }

    /// Sets the weight ε of the uniform distribution: q = (1 − ε) w + ε/C, so that no class has probability 0. The default is 0.
    /// Maps whose features may be negative need ε > 0; 0.1 or so is usual.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless 0 ≤ ε ≤ 1.
    pub fn with_uniform(self, weight: f64) -> Result<Self> {
        if (0.0..=1.0).contains(&weight) {
            return Ok(Proposal { uniform: weight, ..self });
        }
        Err(Error::Parameter {
            name: "the weight of the uniform distribution",
            value: weight,
            domain: "from 0 to 1",
        })
    }

    /// Takes cosines with the temperature t: features are those of h/(‖h‖√t) and cᵢ/(‖cᵢ‖√t), so that draws are in proportion to
    /// exp(cos(h, cᵢ)/t). The features of such points have a bounded variance. The zero vector stays zero.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the temperature is positive and finite.
    pub fn with_cosine(self, temperature: f64) -> Result<Self> {
        if temperature > 0.0 && temperature.is_finite() {
            return Ok(Proposal { temperature: Some(temperature), ..self });
        }
        Err(Error::Parameter { name: "the temperature", value: temperature, domain: "positive and finite" })
    }

    /// Sets the number L of classes of a leaf: [memory against time](SoftmaxSampler#cost). The default is ⌈D/(4d)⌉, so that sums
    /// take at most some five times the memory of the vectors.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless L is from 1 to 4096.
    pub fn with_leaf_size(self, leaf: usize) -> Result<Self> {
        if (1..=LARGEST_LEAF).contains(&leaf) {
            return Ok(Proposal { leaf: Some(leaf), ..self });
        }
        Err(Error::Parameter { name: "the leaf size", value: leaf as f64, domain: "from 1 to 4096" })
    }

    /// Sets the number of classes below which draws are from the softmax of h·cᵢ itself, q = p: all logits then cost less than a tree.
    ///
    /// Map, temperature and weight of the uniform distribution have no effect then. The default is 4096; with 0 draws are never exact,
    /// with `usize::MAX` always.
    #[must_use]
    pub fn with_exact_below(self, classes: usize) -> Self {
        Proposal { exact_below: classes, ..self }
    }

    /// Makes [`Draws`](super::Draws::effective_features) and [`Partition`](super::Partition::effective_features) say how many
    /// features are behind them, at a cost of O(D) for each point.
    #[must_use]
    pub fn with_diagnostics(self) -> Self {
        Proposal { diagnosed: true, ..self }
    }

    /// The sampler over classes with these vectors, C × d, in any layout. Cost O(C m d), in parallel; features are computed
    /// in tiles, and only their sums are kept. If draws are [exact](Proposal::with_exact_below), the cost is O(C d).
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `classes` does not have d columns, [`Memory`](Error::Memory) if sums and vectors do not fit in
    /// memory, [`Parameter`](Error::Parameter) if there are no classes, or the map has negative features and ε is 0;
    /// [`NotFinite`](Error::NotFinite) if a vector or its features are not finite.
    #[inline(never)]
    pub fn build(self, classes: &ArrayRef2<T>) -> Result<SoftmaxSampler<T>> {
        check_size("the number of columns of the classes", self.map.dim(), classes.ncols())?;
        check_positive("the number of classes", classes.nrows())?;
        self.check()?;
        // This comes before all classes are read: a broadcast view may have more of them than any memory.
        self.check_memory(classes.nrows())?;
        check_finite("the classes", classes)?;
        let engine = self.engine(Classes::new(classes.nrows()), classes.view(), None)?;
        Ok(SoftmaxSampler { proposal: self, engine })
    }

    /// Refuses maps with negative features without a uniform part, which the tree needs.
    pub(super) fn check(&self) -> Result<()> {
        if self.uniform > 0.0 || self.map.facts().non_negative {
            return Ok(());
        }
        let (name, domain) = (
            "the weight of the uniform distribution",
            "above 0 (by Proposal::with_uniform) where features may be negative",
        );
        Err(Error::Parameter { name, value: 0.0, domain })
    }

    /// The engine that draws from classes with these vectors, one for each number of a class. `reference` is that of the last tree,
    /// if it is made again.
    pub(super) fn engine(
        &self,
        classes: Classes,
        vectors: ArrayView2<'_, T>,
        reference: Option<FeatureReference<T>>,
    ) -> Result<Engine<T>> {
        self.check_memory(classes.count())?;
        if self.is_exact(classes.count()) {
            return Ok(Engine::Exact(ExactClasses::new(classes, vectors)));
        }
        let (program, points) = (self.map.program(), self.points(vectors));
        let reference = reference.unwrap_or_else(|| FeatureReference::of(program, points.view()));
        Ok(Engine::Tree(Tree::new(program, reference, classes, points, self.classes_of_a_leaf())?))
    }

    pub(super) fn is_exact(&self, classes: usize) -> bool {
        classes < self.exact_below
    }

    /// Rejects so many classes if there is no memory for them.
    pub(super) fn check_memory(&self, classes: usize) -> Result<()> {
        let d = self.map.dim().saturating_mul(size_of::<T>());
        let values = self.map.feature_dim().saturating_mul(size_of::<T>());
        let row = values.saturating_add(self.map.blocks().len().saturating_mul(size_of::<f64>()));
        // There is a third of a node above each leaf.
        let sums = row.div_ceil(self.classes_of_a_leaf()).saturating_mul(4) / 3;
        check_memory("classes", classes, if self.is_exact(classes) { d } else { sums.saturating_add(d) })
    }

    /// L, the number of classes of a leaf.
    pub(super) fn classes_of_a_leaf(&self) -> usize {
        let (features, d) = (self.map.feature_dim(), self.map.dim());
        self.leaf.unwrap_or_else(|| features.div_ceil(FEATURES.saturating_mul(d)).min(LARGEST_LEAF))
    }

    /// The points whose features are used for draws: `x`, or scaled points in the layout of a tree.
    pub(super) fn points<'a>(&self, x: ArrayView2<'a, T>) -> CowArray<'a, T, Ix2> {
        let Some(temperature) = self.temperature else { return x.into() };
        let mut points = standard(x);
        points.rows_mut().into_iter().for_each(|mut row| {
            let point: Vec<f64> = row.iter().map(|v| v.widen()).collect();
            let scaled = with_length(point.iter().copied(), temperature.sqrt().recip());
            row.iter_mut().zip(scaled).for_each(|(v, scaled)| *v = T::narrow(scaled));
        });
        points.into()
    }
}

/// Features of the softmax kernel that are shaped by the points of both sides.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
#[inline(never)]
pub(super) fn shaped_map<T: Real>(omega: Omega, h: &ArrayRef2<T>, classes: &ArrayRef2<T>) -> Result<Map<T>> {
    Shaping::new().of_points(h, classes)?.build(omega, Softmax::default())
}

once!(Proposal::<T>::build);

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
once!(shaped_map::<T>);
