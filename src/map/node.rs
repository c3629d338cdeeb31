//! [`Map`]: any feature map, ready to use.

use std::sync::{Arc, OnceLock};

use ndarray::{Array2, ArrayRef1, ArrayRef2, ArrayView2, ArrayViewMut2, Axis};

use super::check::check;
use super::compose::{Composite, Hybrid, Known, Part};
use crate::numeric::special::relative_deviation;

use super::tree::{MapTree, OwnMap};
use super::{AnyKernel, Features, Omega, Recipe};
use crate::digest::Identity;
use crate::engine::{
    self, Facts, FeatureMap, Form, MapPlan, PointsView, Program, Scratch, Side, Tile, drive,
};
use crate::error::{Error, Result, check_size};
use crate::kernel::Kernel;
use crate::memory::check_memory;
use crate::numeric::zeros;
use crate::once::once;
use crate::{Points, Real};

/// A random feature map, ready to use: K(x, y) ≈ φ(x)·ψ(y).
///
/// ```
/// use random_features::Map;
/// use random_features::kernel::Gaussian;
/// use random_features::ndarray::arr2;
/// let x = arr2(&[[0.1, 0.2], [0.3, -0.4]]);
/// // 256 frequencies in the plane, seed 7.
/// let map: Map<f64> = Map::for_kernel(Gaussian::new(2.0)?, 2, 256, 7)?;
/// let phi = map.transform(&x)?;
/// let estimate = phi.row(0).dot(&phi.row(1));
/// let exact = (-(0.2f64.powi(2) + 0.6f64.powi(2)) / 8.0).exp();
/// assert!((estimate - exact).abs() < 0.05);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Every map is used through this type: constructors of plain maps and hybrids return it, a [`Recipe`] builds it, and
/// [`Map::of_feature_map`] wraps a user-defined [`FeatureMap`]. A map does not change; clones are cheap and share memory.
///
/// Points are rows of arrays of any layout; standard layout is fastest. Every method gives bit-identical results for
/// any number of threads and for any split of a batch. A row that contains NaN or an infinity, or whose squared norm
/// overflows `f64`, gets NaN features; other rows are not affected.
#[doc(alias = "random features")]
#[doc(alias = "kernel approximation")]
#[doc(alias = "FastAttention")]
pub struct Map<T: Real> {
    node: Arc<Node<T>>,
}

struct Node<T: Real> {
    tree: MapTree<T>,
    known: Arc<Known<T>>,
    program: Program<T>,
    /// Whether a user's code computes features.
    own: bool,
    identity: OnceLock<Identity>,
}

/// A map does not change, so a panic leaves it as it was.
impl<T: Real> std::panic::UnwindSafe for Map<T> {}
impl<T: Real> std::panic::RefUnwindSafe for Map<T> {}

impl<T: Real> Clone for Map<T> {
    fn clone(&self) -> Self {
        Map { node: self.node.clone() }
    }
}

impl<T: Real> std::fmt::Debug for Map<T> {
    #[inline(never)]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_struct("Map");
        match self.recipe() {
            Some(recipe) => map.field("recipe", &format_args!("{recipe}")),
            None => map.field("tree", &format_args!("{self}")),
        };
        map.field("facts", self.facts()).field("identity", &format_args!("{}", self.identity())).finish()
    }
}

impl<T: Real> Map<T> {
    /// Wraps a [`FeatureMap`] of your own. Its features can be paired only with features of clones of this `Map`.
    ///
    /// Maps of at most 2²⁰ features are first tested on three points near 0: they must write the whole tile, the
    /// features of a point must not depend on other points, and they must agree with the facts.
    ///
    /// # Errors
    /// [`Contract`](Error::Contract) if a test fails; [`Parameter`](Error::Parameter) if the facts have no dimension,
    /// no block or no feature, or too many.
    pub fn of_feature_map(map: impl FeatureMap<T> + 'static) -> Result<Self> {
        let map: Arc<dyn FeatureMap<T>> = Arc::new(map);
        let facts = map.facts().checked()?;
        check(map.as_ref(), &facts)?;
        let plan = MapPlan::Foreign(map.clone(), facts);
        let own = OwnMap::new(map);
        let known = Known::of_kernel(own.kernel());
        Self::of_tree(MapTree::Own(own), known, plan)
    }

    #[inline(never)]
    pub(super) fn of_tree(tree: MapTree<T>, known: Known<T>, plan: MapPlan<T>) -> Result<Self> {
        let program = Program::new(plan)?;
        let (known, identity) = (Arc::new(known), OnceLock::new());
        let own = match &tree {
            MapTree::Plain(plain) => match &plain.omega {
                Omega::Sketch(draw) => draw.is_own() || matches!(plain.kernel, AnyKernel::Own(_)),
                _ => false,
            },
            MapTree::Own(_) => true,
            MapTree::Composite(composite) => composite.children().into_iter().any(Map::is_own),
        };
        Ok(Map { node: Arc::new(Node { tree, known, program, own, identity }) })
    }

    /// Whether a user's code, which may panic, computes features.
    pub(crate) fn is_own(&self) -> bool {
        self.node.own
    }

    pub(crate) fn program(&self) -> &Program<T> {
        &self.node.program
    }

    pub(super) fn tree(&self) -> &MapTree<T> {
        &self.node.tree
    }

    pub(super) fn shared_known(&self) -> Arc<Known<T>> {
        self.node.known.clone()
    }

    /// The hybrid that the map is, if it is one.
    pub(super) fn hybrid(&self) -> Option<&Hybrid<Map<T>>> {
        match self.composite() {
            Some(Composite::Hybrid(hybrid)) => Some(hybrid),
            _ => None,
        }
    }

    /// The facts that the map states about itself.
    pub fn facts(&self) -> &Facts {
        self.program().facts()
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        self.facts().dim
    }

    /// D, the number of real features.
    pub fn feature_dim(&self) -> usize {
        self.program().width()
    }

    /// The number of features in each block; each block has a scale for each row.
    pub fn blocks(&self) -> &[usize] {
        &self.facts().blocks
    }

    /// The exact kernel that is estimated, if it has a closed form and the law of the frequencies is stated and
    /// suitable. Estimates are unbiased if that law is exact, and nearly unbiased if it
    /// [is approximate](crate::theory::Law::is_approximate).
    pub fn kernel(&self) -> Option<&dyn Kernel<T>> {
        self.node.known.kernel.as_deref()
    }

    /// ln of the variance of [`estimate`](Map::estimate) over draws of the frequencies, or `None` if no closed form is
    /// known for their law; NaN if a point or its squared norm is not finite.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a point does not have d entries.
    #[inline(never)]
    pub fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        self.check_pair(x, y)?;
        Ok(self.ln_variance(x, y))
    }

    /// √Var / |K|, the standard deviation of [`estimate`](Map::estimate) over draws of the frequencies relative to the
    /// kernel; `None` unless both the [variance](Map::log_variance) and the [kernel](Map::kernel) are known.
    ///
    /// It is 0 wherever the variance is 0, and ∞ where only the kernel is 0 or the quotient overflows. It is computed from
    /// logarithms, so that the size of the kernel does not matter, with a relative error of about
    /// 10⁻¹⁵ (1 + |ln Var| + |ln |K||). It is NaN where that leaves no digit, and for points with NaN or an infinity. Cost O(d)
    /// for most maps.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a point does not have d entries.
    ///
    /// # Example
    /// ```
    /// use random_features::frequency::Independent;
    /// use random_features::ndarray::arr1;
    /// use random_features::{Map, Positive};
    /// let map: Map<f64> = Positive.softmax(Independent.draw(2, 100, 1)?)?;
    /// let error = map
    ///     .relative_error(&arr1(&[0.6, 0.0]), &arr1(&[0.0, 0.8]))?
    ///     .ok_or("no closed form")?;
    /// // √((e^‖x+y‖² − 1)/m)
    /// assert!((error - (1f64.exp_m1() / 100.0).sqrt()).abs() < 1e-14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(never)]
    pub fn relative_error(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        let (Some(variance), Some(kernel)) = (self.log_variance(x, y)?, self.kernel()) else {
            return Ok(None);
        };
        Ok(Some(relative_deviation(variance, kernel.log_value(x, y)?.ln_abs)))
    }

    /// The map as plain data; `None` if it contains a user-defined [`FeatureMap`].
    #[inline(never)]
    pub fn recipe(&self) -> Option<Recipe> {
        match self.tree() {
            MapTree::Plain(plain) => Some(Recipe::Plain(plain.clone())),
            MapTree::Own(_) => None,
            MapTree::Composite(composite) => {
                let recipes = composite.try_map(|map| map.recipe().ok_or(()));
                recipes.ok().map(|composite| Recipe::Composite(Box::new(composite)))
            }
        }
    }

    /// A hash of definitions and parameters, draws and seeds, and of the numbers of your own frequencies. Features of maps with
    /// different identities cannot be paired. It is equal on every machine and after storing. The identity of a user-defined
    /// [`FeatureMap`] is shared only by clones of its `Map`, in this process.
    #[inline(never)]
    pub fn identity(&self) -> Identity {
        *self.node.identity.get_or_init(|| Identity::of(self))
    }

    /// Whether both have equal features, as clones do and maps made from equal data.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.node, &other.node) || self.identity() == other.identity()
    }

    /// Writes the features of the rows of `x` to buffers: `values` n × D, `log_scales` n × blocks. Values of absent
    /// blocks are left unchanged. Memory does not grow with n.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if an array does not fit; nothing is written then. [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it; some rows are written then.
    pub fn features_into<'a>(
        &self,
        side: Side,
        x: impl Into<Points<'a, T>>,
        values: &mut ArrayRef2<T>,
        log_scales: &mut ArrayRef2<f64>,
    ) -> Result<()> {
        self.write_features(side, x.into().view(), values.view_mut(), log_scales.view_mut())
    }

    #[inline(never)]
    fn write_features(
        &self,
        side: Side,
        x: PointsView<'_, T>,
        values: ArrayViewMut2<'_, T>,
        log_scales: ArrayViewMut2<'_, f64>,
    ) -> Result<()> {
        check_size("the number of columns of x", self.dim(), x.ncols())?;
        check_size("the number of rows of values", x.nrows(), values.nrows())?;
        check_size("the number of columns of values", self.feature_dim(), values.ncols())?;
        check_size("the number of rows of log_scales", x.nrows(), log_scales.nrows())?;
        check_size("the number of columns of log_scales", self.blocks().len(), log_scales.ncols())?;
        drive::fill_values(self.program(), side, x, values, log_scales)
    }

    /// The features of the rows of `x`, n × d. Cost O(n m d) for an exponential map.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d columns,
    /// [`Memory`](Error::Memory) if the features do not fit in memory, [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    pub fn features<'a>(&self, side: Side, x: impl Into<Points<'a, T>>) -> Result<Features<T>> {
        self.features_of_points(side, x.into().view())
    }

    #[inline(never)]
    fn features_of_points(&self, side: Side, x: PointsView<'_, T>) -> Result<Features<T>> {
        self.check_points(x)?;
        self.check_room(x.nrows(), size_of::<T>())?;
        let mut values = zeros((x.nrows(), self.feature_dim()));
        let mut log_scales = Array2::zeros((x.nrows(), self.blocks().len()));
        drive::fill_values(self.program(), side, x, values.view_mut(), log_scales.view_mut())?;
        Ok(Features::new(self.clone(), side, values, log_scales))
    }

    /// The features of one point, as a batch of one.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d entries.
    pub fn features_of(&self, side: Side, x: &ArrayRef1<T>) -> Result<Features<T>> {
        self.features(side, x.view().insert_axis(Axis(0)))
    }

    /// The logarithms of the features of the rows of `x` relative to their scales, n × D, their signs ±1, n × D, and the
    /// logarithmic scales, n × blocks: finite at any norm, since they are the exponents before exp is applied. They are for code
    /// that builds on maps.
    ///
    /// Feature f of point i, in block b, is signs\[i, f\] · exp(scales\[i, b\] + logarithms\[i, f\]). A logarithm is −∞ where a
    /// feature is 0; a scale of −∞ marks an absent block.
    ///
    /// # Errors
    /// The errors of [`features`](Map::features); [`Unsupported`](Error::Unsupported) if the features are not exponentials.
    pub fn log_features<'a>(
        &self,
        side: Side,
        x: impl Into<Points<'a, T>>,
    ) -> Result<(Array2<T>, Array2<T>, Array2<f64>)> {
        self.log_features_of_points(side, x.into().view())
    }

    #[inline(never)]
    fn log_features_of_points(
        &self,
        side: Side,
        x: PointsView<'_, T>,
    ) -> Result<(Array2<T>, Array2<T>, Array2<f64>)> {
        self.check_points(x)?;
        if !self.facts().logarithms {
            return Err(Error::Unsupported { what: "logarithms of features" });
        }
        self.check_room(x.nrows(), 2 * size_of::<T>())?;
        let shape = (x.nrows(), self.feature_dim());
        let (mut logarithms, mut signs) = (Array2::zeros(shape), Array2::ones(shape));
        let mut log_scales = Array2::zeros((x.nrows(), self.blocks().len()));
        let arrays = drive::Arrays {
            values: logarithms.view_mut(),
            signs: signs.view_mut(),
            log_scales: log_scales.view_mut(),
        };
        drive::fill(self.program(), side, Form::Logarithms, x, arrays)?;
        Ok((logarithms, signs, log_scales))
    }

    /// Writes the features of the rows of `x` to a tile, for a [`FeatureMap`] of your own that wraps this map.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the points or the tile do not fit, [`Unsupported`](Error::Unsupported) if the map does
    /// not have this form.
    #[inline(never)]
    pub fn fill(&self, side: Side, x: ArrayView2<'_, T>, form: Form, tile: &mut Tile<'_, T>) -> Result<()> {
        check_size("the number of columns of x", self.dim(), x.ncols())?;
        check_size("the number of rows of the tile", x.nrows(), tile.rows())?;
        check_size("the number of values in a row of the tile", self.feature_dim(), tile.width())?;
        check_size("the number of scales in a row of the tile", self.blocks().len(), tile.blocks())?;
        if form == Form::Logarithms && !self.facts().logarithms {
            return Err(Error::Unsupported { what: "logarithms of features" });
        }
        if form == Form::Logarithms {
            check_size("the number of signs in a row of the tile", tile.width(), tile.sign_count())?;
        }
        self.program().fill(side, form, x.into(), tile, &mut Scratch::default());
        Ok(())
    }

    /// The gradient of Σ_f c\[i, f\] φ_f(xᵢ) e^{−sᵢ} with respect to xᵢ for each row xᵢ of `x`, n × d: a vector–Jacobian
    /// product. c are the `cotangents`, n × D, and s the log scales of the features, held fixed. The cotangents g of the
    /// features themselves give c = g e^s.
    ///
    /// Entries that overflow `T` are ±∞, as gradients of scaled features near 0 may be.
    ///
    /// It costs twice as much as the features, plus a product of n × m by m × d. With counts it costs as much again for
    /// each coordinate of a point that is 0, and with nested hybrids once for each level.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if an array does not fit, [`Unsupported`](Error::Unsupported) if the map or a part of it is
    /// a [`FeatureMap`] without gradients, such as Nyström features of a kernel without them, [`Memory`](Error::Memory) if the
    /// result does not fit in memory, [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    #[doc(alias = "vjp")]
    #[doc(alias = "gradient")]
    #[inline(never)]
    pub fn pull_back(&self, side: Side, x: &ArrayRef2<T>, cotangents: &ArrayRef2<T>) -> Result<Array2<T>> {
        self.check_points(x.view().into())?;
        check_size("the number of rows of the cotangents", x.nrows(), cotangents.nrows())?;
        check_size("the number of columns of the cotangents", self.feature_dim(), cotangents.ncols())?;
        check_memory("rows of gradients", x.nrows(), x.ncols().saturating_mul(size_of::<T>()))?;
        let mut out = Array2::zeros(x.dim());
        if engine::pull_back(self.program(), side, x.view(), cotangents.view(), out.view_mut())? {
            Ok(out)
        } else {
            Err(Error::Unsupported { what: "gradients" })
        }
    }

    pub(super) fn check_points(&self, x: PointsView<'_, T>) -> Result<()> {
        check_size("the number of columns of x", self.dim(), x.ncols())
    }

    /// Rejects `rows` rows of features of `each` bytes, with their scales, if they do not fit in memory.
    pub(super) fn check_room(&self, rows: usize, each: usize) -> Result<()> {
        let scales = self.blocks().len().saturating_mul(size_of::<f64>());
        check_memory("rows of features", rows, self.feature_dim().saturating_mul(each).saturating_add(scales))
    }

    pub(super) fn check_pair(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<()> {
        check_size("the dimension of x", self.dim(), x.len())?;
        check_size("the dimension of y", self.dim(), y.len())
    }
}

once!(
    <Map<T> as std::fmt::Debug>::fmt,
    Map::<T>::of_tree,
    Map::<T>::log_variance,
    Map::<T>::relative_error,
    Map::<T>::recipe,
    Map::<T>::identity,
    Map::<T>::write_features,
    Map::<T>::features_of_points,
    Map::<T>::log_features_of_points,
    Map::<T>::fill,
    Map::<T>::pull_back,
);
