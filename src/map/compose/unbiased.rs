//! [`UnbiasedNystroem`]: Nyström features, and features of what they leave of the kernel.

use std::sync::Arc;

use ndarray::{Array2, ArrayRef1, ArrayView2, ArrayViewMut2, Axis, s};

use super::part::same_kernel;
use super::{Known, Part, Size};
use crate::Real;
use crate::digest::{Digest, Identify};
use crate::engine::{Facts, FeatureMap, Form, MapPlan, Scratch, Side, Tile, TileShape};
use crate::error::{Error, Result, check_size};
use crate::kernel::Kernel;
use crate::map::nystroem::NystroemSketch;
use crate::map::{AnyKernel, Map, Omega};
use crate::numeric::{Isa, Packed, max_abs, product, slice_of, slice_of_mut};

/// Nyström features φ of a kernel K and features f that estimate K without bias, without the part of f that φ explains. All of
/// them together estimate K without bias.
///
/// [`Nystroem::unbiased`](crate::map::Nystroem::unbiased) makes it and has the definition.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UnbiasedNystroem<M> {
    /// The Nyström features φ.
    pub nystroem: M,
    /// The features f, which estimate K without bias, before the part that φ explains is subtracted.
    pub features: M,
}

impl<M: Part> UnbiasedNystroem<M> {
    /// The landmarks with their factor, and the kernel.
    fn sketch(&self) -> Result<(&NystroemSketch, &AnyKernel)> {
        let what = "features beside others than those of Nyström";
        let plain = self.nystroem.plain().ok_or(Error::Unsupported { what })?;
        let sketch = match &plain.omega {
            Omega::Sketch(draw) => draw.sketch(),
            _ => None,
        };
        sketch.map(|sketch| (sketch, &plain.kernel)).ok_or(Error::Unsupported { what })
    }

    pub(super) fn dim(&self) -> usize {
        self.nystroem.dim()
    }

    pub(super) fn check(&self) -> Result<()> {
        let (_, kernel) = self.sketch()?;
        check_size("the dimension of the unbiased features", self.nystroem.dim(), self.features.dim())?;
        let (kernel, estimated) = (kernel.kernel::<M::Scalar>(), self.features.known());
        let both = kernel.zip(estimated.kernel.as_ref());
        if both.is_some_and(|(kernel, estimated)| same_kernel(&**estimated, &*kernel)) {
            return Ok(());
        }
        let what = "Nyström features beside a map that is not known to estimate their kernel";
        Err(Error::Unsupported { what })
    }

    pub(super) fn size(&self) -> Size {
        self.children().into_iter().map(M::size).sum()
    }

    pub(super) fn known(&self) -> Known<M::Scalar> {
        Known::of_kernel(self.features.known().kernel.clone())
    }

    /// No closed form is known.
    pub(super) fn ln_variance(
        &self,
        _: &Known<M::Scalar>,
        _: &ArrayRef1<M::Scalar>,
        _: &ArrayRef1<M::Scalar>,
    ) -> Option<f64> {
        None
    }
}

impl<M> UnbiasedNystroem<M> {
    pub(super) fn children(&self) -> Vec<&M> {
        vec![&self.nystroem, &self.features]
    }

    pub(super) fn children_mut(&mut self) -> Vec<&mut M> {
        vec![&mut self.nystroem, &mut self.features]
    }

    pub(super) fn try_map<N, E>(
        &self,
        mut each: impl FnMut(&M) -> Result<N, E>,
    ) -> Result<UnbiasedNystroem<N>, E> {
        Ok(UnbiasedNystroem { nystroem: each(&self.nystroem)?, features: each(&self.features)? })
    }
}

impl<T: Real> UnbiasedNystroem<Map<T>> {
    /// The plan of the engine.
    pub(super) fn lower(&self) -> Result<MapPlan<T>> {
        let (sketch, kernel) = self.sketch()?;
        let what = "Nyström features of a kernel without values";
        let kernel = kernel.kernel::<f64>().ok_or(Error::Unsupported { what })?;
        check_factor(sketch, &self.nystroem, &*kernel)?;
        let UnbiasedNystroem { nystroem, features } = self.clone();
        let map = Corrected { explained: explained(sketch, &features)?, nystroem, features };
        let facts = map.facts().checked()?;
        Ok(MapPlan::Foreign(Arc::new(map), facts))
    }
}

impl<M: Identify> Identify for UnbiasedNystroem<M> {
    fn identify(&self, digest: &mut Digest) {
        (&self.nystroem, &self.features).identify(digest);
    }
}

impl<M: std::fmt::Display> std::fmt::Display for UnbiasedNystroem<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}] made unbiased by [{}]", self.nystroem, self.features)
    }
}

/// The map in `f64`, whatever its scalar, in which features of landmarks are exact enough to be multiplied by A; `None` for a map of one's
/// own.
fn widened<T: Real>(map: &Map<T>) -> Result<Option<Map<f64>>> {
    map.recipe().map(|recipe| recipe.build()).transpose()
}

/// The entries of A K Aᵀ − 1 that are no rounding.
const TOLERANCE: f64 = 1e-4;

/// Refuses a factor A for which A K Aᵀ is not the identity on the features of the landmarks: estimates would be biased.
fn check_factor<T: Real>(sketch: &NystroemSketch, nystroem: &Map<T>, kernel: &dyn Kernel<f64>) -> Result<()> {
    let z = sketch.landmarks();
    let Some(wide) = widened(nystroem)? else { return Ok(()) };
    let (mut phi, scales) = wide.features(Side::X, z)?.into_parts();
    // A and φ at landmarks with K(z, z) = 1.
    let (mut factor, mut rounding) = (sketch.factor().clone(), 1.0f64);
    for (j, z) in z.rows().into_iter().enumerate() {
        let z = slice_of(&z);
        let ln_own = kernel.log_of_slices(z, z).ln_abs;
        let seen = ln_own.is_finite();
        rounding = if seen { rounding.max(ln_own.abs()) } else { rounding };
        let scale = if seen { (scales[[j, 0]] - 0.5 * ln_own).exp() } else { 0.0 };
        phi.row_mut(j).mapv_inplace(|value| value * scale);
        factor.column_mut(j).mapv_inplace(|a| if seen { a * (0.5 * ln_own).exp() } else { 0.0 });
    }
    let mut rest = factor.dot(&phi);
    rest.diag_mut().mapv_inplace(|own| own - 1.0);
    // Rounding errors of K, whose eigenvalues are at most M, between the rows of A.
    let norms = factor.map_axis(Axis(1), |row| row.dot(&row).sqrt());
    let m = z.nrows() as f64;
    let error = 10.0 * f64::EPSILON * rounding * m * m;
    let fits = |((i, j), rest): ((usize, usize), &f64)| rest.abs() <= TOLERANCE + error * norms[i] * norms[j];
    if rest.indexed_iter().all(fits) {
        return Ok(());
    }
    let what = "unbiased features beside Nyström features with a factor A for which A K Aᵀ is not 1";
    Err(Error::Unsupported { what })
}

/// What φ explains of one block of f: B φ(x) for B = (A f(Z))ᵀ with the landmarks Z in rows.
#[derive(Debug)]
struct Block<T> {
    /// B/e^t, one row for each feature of the block.
    matrix: Array2<f64>,
    packed: Packed<T>,
    /// t; −∞ if B is 0.
    ln_scale: f64,
}

/// The blocks of one side.
type Explained<T> = Arc<[Block<T>]>;

/// What φ explains of f on either side.
fn explained<T: Real>(sketch: &NystroemSketch, features: &Map<T>) -> Result<[Explained<T>; 2]> {
    let wide = widened(features)?;
    let of = |side| match &wide {
        Some(wide) => explained_of(sketch, wide, side, sketch.landmarks()),
        None => explained_of(sketch, features, side, &sketch.landmarks().mapv(T::narrow)),
    };
    let x: Explained<T> = of(Side::X)?.into();
    let y = if features.facts().symmetric { x.clone() } else { of(Side::Y)?.into() };
    Ok([x, y])
}

/// What φ explains of f on one side, from features of the landmarks.
fn explained_of<T: Real, U: Real>(
    sketch: &NystroemSketch,
    features: &Map<U>,
    side: Side,
    landmarks: &Array2<U>,
) -> Result<Vec<Block<T>>> {
    let (values, scales) = features.features(side, landmarks)?.into_parts();
    let (mut first, mut blocks) = (0, Vec::new());
    for (b, width) in features.blocks().iter().enumerate() {
        let top = scales.column(b).iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut own = values.slice(s![.., first..first + width]).mapv(U::widen);
        for (mut row, scale) in own.rows_mut().into_iter().zip(scales.column(b)) {
            let (absent, factor) = (*scale == f64::NEG_INFINITY, (scale - top).exp());
            row.mapv_inplace(|value| if absent { 0.0 } else { value * factor });
        }
        blocks.push(Block::new(own.t().dot(&sketch.factor().t()), top)?);
        first += width;
    }
    Ok(blocks)
}

impl<T: Real> Block<T> {
    /// The block of e^top · `matrix`.
    fn new(mut matrix: Array2<f64>, top: f64) -> Result<Self> {
        let largest = matrix.iter().fold(0.0, |largest: f64, v| largest.max(v.abs()));
        if !matrix.iter().all(|v| v.is_finite()) {
            let what = "features of landmarks";
            return Err(Error::NotFinite { what, row: 0, column: None });
        }
        if largest > 0.0 {
            matrix /= largest;
        }
        let ln_scale = if largest > 0.0 { top + largest.ln() } else { f64::NEG_INFINITY };
        let matrix = matrix.as_standard_layout().into_owned();
        let (width, depth) = matrix.dim();
        let narrow: Vec<T> = matrix.iter().map(|v| T::narrow(*v)).collect();
        let packed = Packed::of_rows(width, depth, |f| &narrow[f * depth..][..depth]);
        Ok(Block { matrix, packed, ln_scale })
    }
}

/// The features φ(x) and f(x) − B φ(x).
#[derive(Debug)]
struct Corrected<T: Real> {
    nystroem: Map<T>,
    features: Map<T>,
    /// B of either side.
    explained: [Explained<T>; 2],
}

impl<T: Real> Corrected<T> {
    fn explained(&self, side: Side) -> &[Block<T>] {
        &self.explained[usize::from(side == Side::Y)]
    }
}

/// e^(a − top), 0 where a is −∞.
fn relative(ln: f64, top: f64) -> f64 {
    if ln == f64::NEG_INFINITY { 0.0 } else { (ln - top).exp() }
}

impl<T: Real> FeatureMap<T> for Corrected<T> {
    fn facts(&self) -> Facts {
        let own = self.features.facts();
        let blocks = [&[self.nystroem.feature_dim()], &own.blocks[..]].concat();
        Facts { symmetric: own.symmetric, ..Facts::new(own.dim, blocks) }
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, T>, form: Form, tile: &mut Tile<'_, T>) {
        self.fill_parts(side, x, form, tile);
        self.take_explained(side, tile);
    }

    fn pull_back(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        cotangents: ArrayView2<'_, T>,
        mut out: ArrayViewMut2<'_, T>,
    ) -> bool {
        match self.gradients(side, x, cotangents) {
            Ok(gradients) => {
                out.assign(&gradients);
                true
            }
            Err(_) => false,
        }
    }
}

impl<T: Real> Corrected<T> {
    /// Writes φ(x) and f(x).
    fn fill_parts(&self, side: Side, x: ArrayView2<'_, T>, form: Form, tile: &mut Tile<'_, T>) {
        let (width, blocks) = (self.nystroem.feature_dim(), self.features.blocks().len());
        let all = width + self.features.feature_dim();
        let mut scratch = Scratch::default();
        let parts = [(&self.nystroem, 0..width, 0..1), (&self.features, width..all, 1..1 + blocks)];
        for (map, columns, blocks) in parts {
            map.program().fill(side, form, x.into(), &mut tile.part(columns, blocks), &mut scratch);
        }
    }

    /// Subtracts B φ(x) from f(x).
    fn take_explained(&self, side: Side, tile: &mut Tile<'_, T>) {
        let width = self.nystroem.feature_dim();
        let mut phi = Vec::with_capacity(tile.rows() * width);
        (0..tile.rows()).for_each(|i| phi.extend_from_slice(&tile.row(i).values[..width]));
        let (mut first, mut explained, mut rest) = (width, Vec::new(), Vec::new());
        for (b, block) in (1..).zip(self.explained(side)) {
            let count = block.matrix.nrows();
            explained.clear();
            explained.resize(tile.rows() * count, T::zero());
            product(Isa::best(), &phi, width, block.packed.all(), &mut explained, count);
            for (i, explained) in explained.chunks_exact(count.max(1)).enumerate() {
                let row = tile.row(i);
                let known = known_scale(&phi[i * width..][..width], row.log_scales[0], block);
                let (own, values) = (row.log_scales[b], &mut row.values[first..first + count]);
                let top = own.max(known);
                let [keep, take] = [own, known].map(|ln| relative(ln, top));
                rest.clear();
                // Values of absent blocks may be anything.
                let kept = |value: &T| if keep == 0.0 { 0.0 } else { keep * value.widen() };
                rest.extend(values.iter().zip(explained).map(|(value, e)| kept(value) - take * e.widen()));
                let largest = max_abs(Isa::best(), &rest);
                let size = if largest > 0.0 { largest } else { 1.0 };
                values.iter_mut().zip(&rest).for_each(|(value, rest)| *value = T::narrow(rest / size));
                row.log_scales[b] = if own.is_nan() || known.is_nan() { f64::NAN } else { top + size.ln() };
            }
            first += count;
        }
        for i in 0..tile.rows() {
            if tile.row(i).log_scales.iter().any(|scale| scale.is_nan()) {
                tile.poison(i);
            }
        }
    }

    /// Gradients of Σ c φ e^(−s) for cotangents c and the scales s of these features, held fixed.
    fn gradients(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        cotangents: ArrayView2<'_, T>,
    ) -> Result<Array2<T>> {
        let [parts, scales] = self.scales(side, x);
        let width = self.nystroem.feature_dim();
        let mut phi = cotangents.slice(s![.., ..width]).mapv(T::widen);
        let mut own = cotangents.slice(s![.., width..]).mapv(T::widen);
        let mut first = 0;
        for (b, block) in (1..).zip(self.explained(side)) {
            let columns = s![.., first..first + block.matrix.nrows()];
            first += block.matrix.nrows();
            let mut taken = own.slice(columns).dot(&block.matrix);
            for i in 0..x.nrows() {
                let take = relative(parts[[i, 0]] + block.ln_scale, scales[[i, b]]);
                taken.row_mut(i).mapv_inplace(|v| v * take);
                let keep = relative(parts[[i, b]], scales[[i, b]]);
                own.slice_mut(columns).row_mut(i).mapv_inplace(|v| v * keep);
            }
            phi -= &taken;
        }
        let [phi, own] = [phi, own].map(|all| all.mapv(T::narrow));
        let explained = self.nystroem.pull_back(side, &x, &phi)?;
        let mut sum = self.features.pull_back(side, &x, &own)?;
        sum += &explained;
        Ok(sum)
    }

    /// The scales of φ(x) and f(x), and those of these features, one for each block.
    fn scales(&self, side: Side, x: ArrayView2<'_, T>) -> [Array2<f64>; 2] {
        let facts = self.facts();
        let shape = TileShape { rows: x.nrows(), width: facts.feature_dim(), blocks: facts.blocks.len() };
        let mut values = vec![T::zero(); shape.rows * shape.width];
        let mut scales = Array2::zeros((shape.rows, shape.blocks));
        let mut tile = Tile::new(&mut values, &mut [], slice_of_mut(&mut scales), shape);
        self.fill_parts(side, x, Form::Values, &mut tile);
        let parts = scales.clone();
        let mut tile = Tile::new(&mut values, &mut [], slice_of_mut(&mut scales), shape);
        self.take_explained(side, &mut tile);
        [parts, scales]
    }
}

/// ln of the size of B φ; −∞ if φ is 0, whose scale means nothing.
fn known_scale<T: Real>(phi: &[T], scale: f64, block: &Block<T>) -> f64 {
    let none = phi.iter().all(|value| *value == T::zero());
    if none && !scale.is_nan() { f64::NEG_INFINITY } else { scale + block.ln_scale }
}
