//! [`UnbiasedNystroem`]: Nyström features, and features of what they leave of the kernel.

use std::sync::Arc;

use ndarray::{Array2, ArrayRef1, ArrayView2, ArrayViewMut2, s};

use super::part::same_kernel;
use super::{Known, Part, Size};
use crate::Real;
use crate::digest::{Digest, Identify};
use crate::engine::{Facts, FeatureMap, Form, MapPlan, Scratch, Side, Tile, TileShape};
use crate::error::{Error, Result, check_size};
use crate::kernel::Kernel;
use crate::map::nystroem::NystroemSketch;
use crate::map::{Map, Omega};
use crate::numeric::{Isa, Packed, max_abs, product, slice_of, slice_of_mut};

/// Nyström features φ of a kernel K and features f that estimate K without bias, without the part of f that φ explains. All of
/// them together estimate K without bias.
///
/// [`Nystroem::unbiased`](crate::map::Nystroem::unbiased) makes it and has the definition.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UnbiasedNystroem<M> {
    /// φ.
    pub nystroem: M,
    /// f.
    pub features: M,
}

impl<M: Part> UnbiasedNystroem<M> {
    /// The landmarks with their factor, and the kernel.
    fn sketch(&self) -> Result<(&NystroemSketch, Box<dyn Kernel<M::Scalar>>)> {
        let what = "features beside others than those of Nyström";
        let plain = self.nystroem.plain().ok_or(Error::Unsupported { what })?;
        match &plain.omega {
            Omega::Sketch(draw) => draw.sketch().zip(plain.kernel.kernel()),
            _ => None,
        }
        .ok_or(Error::Unsupported { what })
    }

    pub(super) fn dim(&self) -> usize {
        self.nystroem.dim()
    }

    pub(super) fn check(&self) -> Result<()> {
        let (_, kernel) = self.sketch()?;
        check_size("the dimension of the unbiased features", self.nystroem.dim(), self.features.dim())?;
        let estimated = self.features.known();
        if estimated.kernel.as_ref().is_some_and(|estimated| same_kernel(&**estimated, &*kernel)) {
            return Ok(());
        }
        let what = "Nyström features beside a map that is not known to estimate their kernel without bias";
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
        let UnbiasedNystroem { nystroem, features } = self.clone();
        check_factor(sketch, &nystroem, &*kernel)?;
        let [x, y] = [Side::X, Side::Y].map(|side| Explained::new(sketch, &features, side));
        let map = Corrected { nystroem, features, explained: [x?, y?] };
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

/// The landmarks in scalar T.
fn landmarks<T: Real>(sketch: &NystroemSketch) -> Array2<T> {
    sketch.landmarks().mapv(T::narrow)
}

/// The largest share of K(z, z) by which estimates at a landmark z may be biased.
const TOLERANCE: f64 = 1e-4;

/// Refuses a factor A for which A K Aᵀ is not the identity on the features of the landmarks: estimates would be biased.
fn check_factor<T: Real>(sketch: &NystroemSketch, nystroem: &Map<T>, kernel: &dyn Kernel<T>) -> Result<()> {
    let z = landmarks::<T>(sketch);
    let (values, scales) = nystroem.features(Side::X, &z)?.into_parts();
    let mut phi = values.mapv(T::widen);
    // A and φ at landmarks with K(z, z) = 1.
    let mut factor = sketch.factor().clone();
    for (j, z) in z.rows().into_iter().enumerate() {
        let z = slice_of(&z);
        let ln_root = 0.5 * kernel.log_of_slices(z, z).ln_abs;
        let seen = ln_root.is_finite();
        let scale = if seen { (scales[[j, 0]] - ln_root).exp() } else { 0.0 };
        phi.row_mut(j).mapv_inplace(|value| value * scale);
        factor.column_mut(j).mapv_inplace(|a| if seen { a * ln_root.exp() } else { 0.0 });
    }
    let mut rest = factor.dot(&phi);
    rest.diag_mut().mapv_inplace(|own| own - 1.0);
    let biases = (&phi.dot(&rest) * &phi).sum_axis(ndarray::Axis(1));
    if biases.iter().all(|bias| bias.abs() <= TOLERANCE) {
        return Ok(());
    }
    Err(Error::Unsupported {
        what: "unbiased features beside Nyström features with a factor A for which A K Aᵀ is not 1",
    })
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
#[derive(Debug)]
struct Explained<T>(Vec<Block<T>>);

impl<T: Real> Explained<T> {
    fn new(sketch: &NystroemSketch, features: &Map<T>, side: Side) -> Result<Self> {
        let (values, scales) = features.features(side, &landmarks::<T>(sketch))?.into_parts();
        let (mut first, mut blocks) = (0, Vec::new());
        for (b, width) in features.blocks().iter().enumerate() {
            let top = scales.column(b).iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut own = values.slice(s![.., first..first + width]).mapv(T::widen);
            for (mut row, scale) in own.rows_mut().into_iter().zip(scales.column(b)) {
                let absent = *scale == f64::NEG_INFINITY;
                let factor = (scale - top).exp();
                row.mapv_inplace(|value| if absent { 0.0 } else { value * factor });
            }
            blocks.push(Block::new(own.t().dot(&sketch.factor().t()), top)?);
            first += width;
        }
        Ok(Explained(blocks))
    }
}

impl<T: Real> Block<T> {
    /// Of B/e^t, which is not yet of size 1.
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
        let [x, y] = &self.explained;
        if side == Side::X { &x.0 } else { &y.0 }
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
        let (width, blocks) = (self.nystroem.feature_dim(), self.features.blocks().len());
        let mut scratch = Scratch::default();
        let all = width + self.features.feature_dim();
        let parts = [(&self.nystroem, 0..width, 0..1), (&self.features, width..all, 1..1 + blocks)];
        for (map, columns, blocks) in parts {
            map.program().fill(side, form, x.into(), &mut tile.part(columns, blocks), &mut scratch);
        }
        let phi: Vec<T> = (0..tile.rows()).flat_map(|i| tile.row(i).values[..width].to_vec()).collect();
        let (mut first, mut explained, mut rest) = (width, Vec::new(), Vec::new());
        for (b, block) in (1..).zip(self.explained(side)) {
            let count = block.matrix.nrows();
            explained.clear();
            explained.resize(tile.rows() * count, T::zero());
            product(Isa::best(), &phi, width, block.packed.all(), &mut explained, count);
            for (i, explained) in explained.chunks_exact(count).enumerate() {
                let row = tile.row(i);
                let values = &mut row.values[first..first + count];
                let (own, known) = (row.log_scales[b], row.log_scales[0] + block.ln_scale);
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
    /// Gradients of Σ c φ e^(−s) for cotangents c and the scales s of these features, held fixed.
    fn gradients(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        cotangents: ArrayView2<'_, T>,
    ) -> Result<Array2<T>> {
        let scales = self.scales(side, x);
        let (_, of_nystroem) = self.nystroem.features(side, x)?.into_parts();
        let (_, of_features) = self.features.features(side, x)?.into_parts();
        let width = self.nystroem.feature_dim();
        let mut phi = cotangents.slice(s![.., ..width]).mapv(T::widen);
        let mut own = cotangents.slice(s![.., width..]).mapv(T::widen);
        let mut first = 0;
        for (b, block) in self.explained(side).iter().enumerate() {
            let columns = s![.., first..first + block.matrix.nrows()];
            first += block.matrix.nrows();
            let mut taken = own.slice(columns).dot(&block.matrix);
            for i in 0..x.nrows() {
                let (scale, known) = (scales[[i, b + 1]], of_nystroem[[i, 0]] + block.ln_scale);
                taken.row_mut(i).mapv_inplace(|v| v * relative(known, scale));
                let keep = relative(of_features[[i, b]], scale);
                own.slice_mut(columns).row_mut(i).mapv_inplace(|v| v * keep);
            }
            phi -= &taken;
        }
        let [phi, own] = [phi, own].map(|all| all.mapv(T::narrow));
        Ok(self.nystroem.pull_back(side, &x, &phi)? + self.features.pull_back(side, &x, &own)?)
    }

    /// The scales of the features of points, one for each block.
    fn scales(&self, side: Side, x: ArrayView2<'_, T>) -> Array2<f64> {
        let facts = self.facts();
        let shape = TileShape { rows: x.nrows(), width: facts.feature_dim(), blocks: facts.blocks.len() };
        let (mut values, mut scales) =
            (vec![T::zero(); shape.rows * shape.width], Array2::zeros((shape.rows, shape.blocks)));
        let mut tile = Tile::new(&mut values, &mut [], slice_of_mut(&mut scales), shape);
        self.fill(side, x, Form::Values, &mut tile);
        scales
    }
}
