//! [`Recipe`]: a map as plain data.

use std::sync::Arc;

use ndarray::ArrayRef1;

use super::compose::{Composite, Conditioning, Entry, Known, Part};
use super::{Map, Omega, PlainRecipe};
use crate::Real;
use crate::digest::{Digest, Identify, Identity};
use crate::error::{Result, check_size};
use crate::kernel::Kernel;
#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
use crate::kernel::Lengthscale;
use crate::numeric::special::relative_deviation;
use crate::once::once;

/// A map as plain data: the form in which maps are stored, compared and printed.
///
/// ```
/// use random_features::compose::{Bases, Hybrid};
/// use random_features::frequency::{Independent, Orthogonal, Simplex};
/// use random_features::kernel::Softmax;
/// use random_features::ndarray::arr1;
/// use random_features::recipe::Draw;
/// use random_features::{Map, Positive, Recipe};
/// let recipe = Positive
///     .recipe(Draw::new(16, 64, Simplex::default()), Softmax::default());
/// let map: Map<f32> = recipe.draw(7)?;
/// assert_eq!(map.recipe(), Some(recipe.drawn(7)?));
/// // Hybrids of recipes are recipes; their error is known before a draw.
/// let bases = Bases::independent(
///     Draw::new(2, 64, Orthogonal),
///     Draw::new(2, 64, Orthogonal).with_stream(1),
/// );
/// let hybrid: Recipe = Hybrid::angular(bases, Draw::new(2, 8, Independent))?;
/// let (x, y) = (arr1(&[0.5, 0.3]), arr1(&[-0.2, 0.4]));
/// let drawn: Map<f64> = hybrid.draw(7)?;
/// assert_eq!(hybrid.log_variance(&x, &y)?, drawn.log_variance(&x, &y)?);
/// assert!(hybrid.log_variance(&x, &y)?.is_some());
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// A recipe whose frequencies are drawn gives a bit-identical map wherever it is read; a recipe whose frequencies are still
/// to be drawn gives a map for each seed. Kernel and variance follow from laws, so a recipe has them
/// [before anything is drawn](Recipe::log_variance). With the feature `serde` it is stored together with a format version
/// and its [identity](Recipe::identity), which reveals damage on reading. Equal frequencies are stored once.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "most recipes are plain, and their fields are matched directly"
)]
pub enum Recipe {
    /// A map that is not made of others.
    Plain(PlainRecipe),
    /// A map that is made of others.
    Composite(Box<Composite<Recipe>>),
}

impl Recipe {
    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        match self {
            Recipe::Plain(plain) => plain.omega.dim(),
            Recipe::Composite(composite) => composite.dim(),
        }
    }

    /// D, the number of real features of a point; `usize::MAX` if there are more.
    pub fn feature_dim(&self) -> usize {
        self.size().features
    }

    /// The number of blocks of features, each of which has a scale for each point; `usize::MAX` if there are more.
    pub fn block_count(&self) -> usize {
        self.size().blocks
    }

    /// The maps that this one is made of, in the order of the fields of the combination; none if it is plain. For a
    /// hybrid the map of each coefficient comes before its base.
    pub fn children(&self) -> Vec<&Recipe> {
        match self {
            Recipe::Plain(_) => Vec::new(),
            Recipe::Composite(composite) => composite.children(),
        }
    }

    /// All plain maps of the tree, depth first.
    pub fn leaves(&self) -> Vec<&PlainRecipe> {
        match self {
            Recipe::Plain(plain) => vec![plain],
            _ => self.children().into_iter().flat_map(Recipe::leaves).collect(),
        }
    }

    /// The draws of the tree: the frequencies and sketches of its plain maps, each different one once. Maps that name the same draw share
    /// its numbers.
    pub fn draws(&self) -> Vec<&Omega> {
        let mut draws: Vec<&Omega> = Vec::new();
        for plain in self.leaves() {
            if !draws.iter().any(|known| known.same(&plain.omega)) {
                draws.push(&plain.omega);
            }
        }
        draws
    }

    /// Whether all frequencies and sketches are drawn.
    pub fn is_drawn(&self) -> bool {
        self.leaves().iter().all(|plain| plain.omega.is_drawn())
    }

    /// This recipe with all missing frequencies and sketches drawn from one seed. Equal draws give the same numbers; draws that
    /// differ in anything, if only in their stream, are independent.
    ///
    /// # Errors
    /// The errors of the draws.
    pub fn drawn(&self, seed: u64) -> Result<Recipe> {
        let draws = self.draws().into_iter().cloned();
        let table = draws.map(|draw| Ok((draw.drawn(seed)?, draw))).collect::<Result<Vec<_>>>()?;
        let mut recipe = self.clone();
        recipe.each_leaf_mut(&mut |plain| {
            if let Some((drawn, _)) = table.iter().find(|(_, draw)| draw.same(&plain.omega)) {
                plain.omega = drawn.clone();
            }
        });
        Ok(recipe)
    }

    /// This recipe with `count(m)` frequencies in place of m in each draw, to be drawn; `None` if some were not drawn by name, or
    /// if there is no such number.
    pub(crate) fn with_frequencies(&self, count: &dyn Fn(usize) -> Option<usize>) -> Option<Recipe> {
        let (mut recipe, mut named) = (self.clone(), true);
        recipe.each_leaf_mut(&mut |plain| match plain.omega.with_count(count) {
            Some(omega) => plain.omega = omega,
            None => named = false,
        });
        named.then_some(recipe)
    }

    /// This recipe with another lengthscale of all kernels, which must have one and the same.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error::Unsupported) if the lengthscales of parts differ, the errors of
    /// [`AnyKernel::with_lengthscale`](super::AnyKernel::with_lengthscale).
    #[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
    pub(crate) fn with_lengthscale(&self, lengthscale: &Lengthscale) -> Result<Recipe> {
        let leaves = self.leaves();
        let of = |plain: &PlainRecipe| plain.kernel.lengthscale().clone();
        if leaves.iter().any(|plain| of(plain) != of(leaves[0])) {
            return Err(crate::Error::Unsupported {
                what: "another lengthscale of parts whose lengthscales differ",
            });
        }
        let is_fitted = |plain: &PlainRecipe| matches!(&plain.omega, Omega::Sketch(draw) if draw.landmark_count().is_some());
        if leaves.into_iter().any(is_fitted) {
            return Err(crate::Error::Unsupported {
                what: "another lengthscale of Nyström features, which are fitted to one kernel",
            });
        }
        let (mut recipe, mut changed) = (self.clone(), Ok(()));
        recipe.each_leaf_mut(&mut |plain| match plain.kernel.clone().with_lengthscale(lengthscale.clone()) {
            Ok(kernel) => plain.kernel = kernel,
            Err(error) => changed = Err(error),
        });
        changed.map(|()| recipe)
    }

    fn each_leaf_mut(&mut self, each: &mut dyn FnMut(&mut PlainRecipe)) {
        match self {
            Recipe::Plain(plain) => each(plain),
            Recipe::Composite(composite) => {
                composite.children_mut().into_iter().for_each(|child| child.each_leaf_mut(each));
            }
        }
    }

    /// The map of this recipe, all of whose frequencies must be drawn.
    ///
    /// # Errors
    /// The errors of [`PlainRecipe::build`], [`Hybrid::sum`](super::compose::Hybrid::sum),
    /// [`Clustered::from_bases`](super::compose::Clustered::from_bases) and [`conditioned`](Recipe::conditioned).
    #[inline(never)]
    pub fn build<T: Real>(&self) -> Result<Map<T>> {
        match self {
            Recipe::Plain(plain) => plain.build(),
            Recipe::Composite(composite) => Map::of_composite(composite.try_map(Recipe::build)?),
        }
    }

    /// The map of this recipe, after drawing all missing frequencies from one seed.
    ///
    /// # Errors
    /// The errors of [`drawn`](Recipe::drawn) and [`build`](Recipe::build).
    #[inline(never)]
    pub fn draw<T: Real>(&self, seed: u64) -> Result<Map<T>> {
        self.drawn(seed)?.build()
    }

    /// The recipe of this map at the points that `conditioning` transforms, times their factors. **Biased** if the conditioning is
    /// truncated.
    ///
    /// # Errors
    /// The errors of [`Map::conditioned`].
    pub fn conditioned(&self, conditioning: &Conditioning) -> Result<Recipe> {
        super::compose::conditioned(self, conditioning)
    }

    /// The identity of the map that this recipe makes.
    pub fn identity(&self) -> Identity {
        Identity::of(self)
    }

    /// The exact kernel that is estimated ([`Map::kernel`]), before or after drawing; `None` also if no map can be made of the
    /// recipe.
    pub fn kernel(&self) -> Option<Arc<dyn Kernel<f64>>> {
        self.check().ok()?;
        self.known().kernel.clone()
    }

    /// ln of the variance of an estimate over draws of the frequencies ([`Map::log_variance`]), before or after drawing;
    /// `None` if no closed form is known. Cost O(d) for most maps; composites also compare their parts.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a point does not have d entries; the errors of [`build`](Recipe::build) that do not
    /// depend on the draw.
    pub fn log_variance(&self, x: &ArrayRef1<f64>, y: &ArrayRef1<f64>) -> Result<Option<f64>> {
        check_size("the dimension of x", self.dim(), x.len())?;
        check_size("the dimension of y", self.dim(), y.len())?;
        Ok(self.laws()?.ln_variance(x, y))
    }

    /// The kernel and the variance that follow from the laws of the frequencies, for many pairs of points.
    pub(crate) fn laws(&self) -> Result<Laws<'_>> {
        self.check()?;
        Ok(Laws { recipe: self, known: self.known() })
    }

    /// √Var / |K| ([`Map::relative_error`]), before or after drawing; `None` if variance or kernel is not known.
    ///
    /// # Errors
    /// The errors of [`log_variance`](Recipe::log_variance).
    pub fn relative_error(&self, x: &ArrayRef1<f64>, y: &ArrayRef1<f64>) -> Result<Option<f64>> {
        let (Some(variance), Some(kernel)) = (self.log_variance(x, y)?, self.kernel()) else {
            return Ok(None);
        };
        Ok(Some(relative_deviation(variance, kernel.log_value(x, y)?.ln_abs)))
    }

    /// Rejects a recipe that is known to be unsuitable before frequencies are drawn.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Recipe::Plain(plain) => plain.check(),
            Recipe::Composite(composite) => {
                composite.children().into_iter().try_for_each(Recipe::check)?;
                composite.check()
            }
        }
    }
}

/// The kernel and the variance that follow from a checked recipe, for all points.
#[derive(Clone)]
pub(crate) struct Laws<'a> {
    recipe: &'a Recipe,
    known: Arc<Known<f64>>,
}

impl Laws<'_> {
    /// The kernel that is estimated, if it is known.
    pub fn kernel(&self) -> Option<&dyn Kernel<f64>> {
        self.known.kernel.as_deref()
    }

    /// ln of the variance of an estimate at points of the recipe's dimension, if there is a closed form.
    pub fn ln_variance(&self, x: &ArrayRef1<f64>, y: &ArrayRef1<f64>) -> Option<f64> {
        match self.recipe {
            Recipe::Plain(plain) => plain.ln_variance(x, y),
            Recipe::Composite(composite) => composite.ln_variance(&self.known, x, y),
        }
    }
}

impl Part for Recipe {
    type Scalar = f64;

    fn of_plain(plain: PlainRecipe) -> Result<Self> {
        plain.check()?;
        Ok(Recipe::Plain(plain))
    }

    fn of_composite(composite: Composite<Self>) -> Result<Self> {
        composite.check()?;
        Ok(Recipe::Composite(Box::new(composite)))
    }

    fn plain(&self) -> Option<&PlainRecipe> {
        match self {
            Recipe::Plain(plain) => Some(plain),
            Recipe::Composite(_) => None,
        }
    }

    fn composite(&self) -> Option<&Composite<Self>> {
        match self {
            Recipe::Plain(_) => None,
            Recipe::Composite(composite) => Some(composite),
        }
    }

    fn entries(&self) -> Vec<Entry<'_>> {
        self.leaves().into_iter().map(|plain| Entry::Draw(&plain.omega)).collect()
    }

    fn dim(&self) -> usize {
        Recipe::dim(self)
    }

    fn width(&self) -> usize {
        self.plain().map_or(0, PlainRecipe::feature_dim)
    }

    fn check(&self) -> Result<()> {
        Recipe::check(self)
    }

    fn known(&self) -> Arc<Known<f64>> {
        Arc::new(match self {
            Recipe::Plain(plain) => Known::of_kernel(plain.kernel()),
            Recipe::Composite(composite) => composite.known(),
        })
    }

    fn ln_variance(&self, x: &ArrayRef1<f64>, y: &ArrayRef1<f64>) -> Option<f64> {
        Laws { recipe: self, known: self.known() }.ln_variance(x, y)
    }
}

impl Identify for Recipe {
    fn identify(&self, digest: &mut Digest) {
        match self {
            Recipe::Plain(plain) => ("plain", plain).identify(digest),
            Recipe::Composite(composite) => ("composite", composite).identify(digest),
        }
    }
}

impl std::fmt::Display for Recipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Recipe::Plain(plain) => plain.fmt(f),
            Recipe::Composite(composite) => composite.fmt(f),
        }
    }
}

once!(Recipe::build::<T>, Recipe::draw::<T>);
