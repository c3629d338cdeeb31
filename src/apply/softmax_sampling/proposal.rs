//! [`Proposal`]: the map and the options from which classes are drawn.

use ndarray::{Array2, ArrayRef2, ArrayView2};

use super::SoftmaxSampler;
use super::tree::{Tree, standard};
use crate::Real;
use crate::apply::check_finite;
use crate::error::{Error, Result, check_positive, check_size};
use crate::map::Map;
use crate::memory::check_memory;
use crate::numeric::with_length;

/// A leaf has one class for so many features per coordinate of a point, unless stated otherwise.
const FEATURES: usize = 4;
/// The most classes of a leaf.
const LARGEST_LEAF: usize = 4096;

/// What classes are drawn in proportion to, and the options of the tree: makes a [`SoftmaxSampler`].
///
/// ```
/// use ndarray::arr2;
/// use random_features::apply::softmax_sampling::Proposal;
/// use random_features::frequency::{Coupling, Orthogonal};
/// use random_features::Trigonometric;
/// let classes = arr2(&[[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0]]);
/// let map = Trigonometric.softmax::<f64>(Orthogonal.draw(2, 32, 1)?)?;
/// // In proportion to exp(2 cos(h, cᵢ)), 9 times of 10.
/// let sampler = Proposal::new(map).uniform(0.1)?.cosine(0.5)?.leaf_size(16)?.build(&classes)?;
/// assert_eq!(sampler.classes(), 3);
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Proposal<T: Real> {
    pub(super) map: Map<T>,
    pub(super) uniform: f64,
    leaf: Option<usize>,
    temperature: Option<f64>,
}

impl<T: Real> Proposal<T> {
    /// In proportion to the estimates φ(h)·ψ(cᵢ) of a map: h stands on side [`X`](crate::Side::X), classes on side
    /// [`Y`](crate::Side::Y). For q ∝ exp(h·cᵢ) a map of the softmax kernel.
    pub fn new(map: Map<T>) -> Self {
        Proposal { map, uniform: 0.0, leaf: None, temperature: None }
    }

    /// The same mixed with the uniform distribution, which has this weight ε: q = (1 − ε) w + ε/C, so that no class has
    /// probability 0. Maps whose features may be negative need it; 0.1 or so is usual. 0 unless stated.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless 0 ≤ ε ≤ 1.
    pub fn uniform(self, weight: f64) -> Result<Self> {
        if (0.0..=1.0).contains(&weight) {
            return Ok(Proposal { uniform: weight, ..self });
        }
        Err(Error::Parameter {
            name: "the weight of the uniform distribution",
            value: weight,
            domain: "from 0 to 1",
        })
    }

    /// The same for the points h/(‖h‖√t) and cᵢ/(‖cᵢ‖√t) with the temperature t, so that exp(h·cᵢ) becomes exp(cos(h,
    /// cᵢ)/t): features of such points have a bounded variance. The zero vector stays zero.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless the temperature is positive and finite.
    pub fn cosine(self, temperature: f64) -> Result<Self> {
        if temperature > 0.0 && temperature.is_finite() {
            return Ok(Proposal { temperature: Some(temperature), ..self });
        }
        Err(Error::Parameter { name: "the temperature", value: temperature, domain: "positive and finite" })
    }

    /// The number L of classes of a leaf: [memory against time](SoftmaxSampler#cost). Unless stated, ⌈D/(4d)⌉, so that sums
    /// take at most some five times the memory of the vectors.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) unless it is from 1 to 4096.
    pub fn leaf_size(self, leaf: usize) -> Result<Self> {
        if (1..=LARGEST_LEAF).contains(&leaf) {
            return Ok(Proposal { leaf: Some(leaf), ..self });
        }
        Err(Error::Parameter { name: "the leaf size", value: leaf as f64, domain: "from 1 to 4096" })
    }

    /// The sampler over classes with these vectors, C × d, in any layout. Cost O(C m d), in parallel; features are computed
    /// in tiles, and only their sums are kept.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if they do not have d columns, [`Memory`](Error::Memory) if there is none for their features,
    /// [`Parameter`](Error::Parameter) if there are none, or the map has negative features and the uniform distribution no
    /// weight; [`NotFinite`](Error::NotFinite) if a vector or its features are not finite.
    pub fn build(self, classes: &ArrayRef2<T>) -> Result<SoftmaxSampler<T>> {
        check_size("the number of columns of the classes", self.map.input_dim(), classes.ncols())?;
        check_positive("the number of classes", classes.nrows())?;
        let numbers = self.map.feature_dim().saturating_add(self.map.blocks().len());
        check_memory("classes", classes.nrows(), numbers.saturating_mul(size_of::<f64>()))?;
        if self.uniform == 0.0 && !self.map.facts().non_negative {
            return Err(Error::Parameter {
                name: "the weight of the uniform distribution",
                value: 0.0,
                domain: "above 0 (by Proposal::uniform) where features may be negative",
            });
        }
        check_finite("the classes", classes)?;
        let leaf = self.leaf.unwrap_or_else(|| self.usual_leaf());
        let tree = Tree::new(self.map.program(), self.points(classes.view()), leaf)?;
        Ok(SoftmaxSampler { proposal: self, tree })
    }

    fn usual_leaf(&self) -> usize {
        let (features, d) = (self.map.feature_dim(), self.map.input_dim());
        features.div_ceil(FEATURES.saturating_mul(d)).min(LARGEST_LEAF)
    }

    /// The points whose features are used for draws, in standard layout.
    pub(super) fn points(&self, x: ArrayView2<'_, T>) -> Array2<T> {
        let mut points = standard(x);
        if let Some(temperature) = self.temperature {
            points.rows_mut().into_iter().for_each(|mut row| {
                let point: Vec<f64> = row.iter().map(|v| v.widen()).collect();
                let scaled = with_length(point.iter().copied(), temperature.sqrt().recip());
                row.iter_mut().zip(scaled).for_each(|(v, scaled)| *v = T::narrow(scaled));
            });
        }
        points
    }
}
