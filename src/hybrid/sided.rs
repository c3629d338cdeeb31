//! [`Sided`]: a map whose second argument is transformed first.

use std::hash::{DefaultHasher, Hash, Hasher};

use ndarray::{Array2, ArrayRef1, ArrayView2};

use crate::error::{Error, Result, check_size};
use crate::kernel::Kernel;
use crate::map::{Properties, Scratch, Side, Tile};
use crate::{FeatureMap, Real, SignedLog};

/// The map for the kernel K(x, My), from one for K.
#[derive(Debug)]
pub(super) struct Sided<F> {
    map: F,
    m: Array2<f64>,
}

impl<F> Sided<F> {
    /// `map`, with M applied to points on side Y.
    pub fn new<T: Real>(map: F, m: Array2<f64>) -> Result<Self>
    where
        F: FeatureMap<T>,
    {
        check_size("the number of rows of M", map.input_dim(), m.nrows())?;
        check_size("the number of columns of M", map.input_dim(), m.ncols())?;
        match m.rows().into_iter().position(|row| row.iter().any(|v| !v.is_finite())) {
            None => Ok(Sided { map, m }),
            Some(row) => Err(Error::NotFinite { what: "the matrix M", row }),
        }
    }

    /// out ← My.
    fn transform<T: Real>(&self, out: &mut [T], y: impl Iterator<Item = T> + Clone) {
        for (out, row) in out.iter_mut().zip(self.m.rows()) {
            *out = T::narrow(row.iter().zip(y.clone()).map(|(m, y)| m * y.widen()).sum());
        }
    }

    /// Calls `fill` with the points as the side sees them.
    fn with_points<T: Real, R>(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        scratch: &mut Scratch<T>,
        fill: impl FnOnce(ArrayView2<'_, T>, &mut Scratch<T>) -> R,
    ) -> R {
        if side == Side::X {
            return fill(x, scratch);
        }
        let mut points = scratch.take(x.len());
        for (out, x) in points.chunks_exact_mut(x.ncols()).zip(x.rows()) {
            self.transform(out, x.iter().copied());
        }
        let result = fill(ArrayView2::from_shape(x.dim(), &points).unwrap_or(x), scratch);
        scratch.give(points);
        result
    }
}

impl<T: Real, F: FeatureMap<T>> FeatureMap<T> for Sided<F> {
    fn input_dim(&self) -> usize {
        self.map.input_dim()
    }

    fn blocks(&self) -> &[usize] {
        self.map.blocks()
    }

    fn properties(&self) -> Properties {
        Properties { symmetric: false, ..self.map.properties() }
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        self.with_points(side, x, scratch, |x, scratch| self.map.fill(side, x, tile, scratch));
    }

    fn fill_exponents(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> bool {
        self.with_points(side, x, scratch, |x, scratch| self.map.fill_exponents(side, x, tile, scratch))
    }

    fn writes_once(&self) -> bool {
        self.map.writes_once()
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        self.map.kernel().is_some().then_some(self)
    }

    fn fingerprint(&self) -> u64 {
        let inner = self.map.fingerprint();
        if inner == 0 {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(inner);
        self.m.iter().for_each(|v| v.to_bits().hash(&mut hasher));
        hasher.finish().max(1)
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        check_size("the dimension of y", self.m.ncols(), y.len())?;
        let mut transformed = y.to_owned();
        if let Some(out) = transformed.as_slice_mut() {
            self.transform(out, y.iter().copied());
        }
        self.map.log_variance(x, &transformed)
    }
}

impl<T: Real, F: FeatureMap<T>> Kernel<T> for Sided<F> {
    fn check_dim(&self, d: usize) -> Result<()> {
        check_size("the dimension of the points", self.m.ncols(), d)
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        let mut transformed = y.to_vec();
        self.transform(&mut transformed, y.iter().copied());
        let nothing = SignedLog::from(f64::NAN);
        self.map.kernel().map_or(nothing, |kernel| kernel.log_of_slices(x, &transformed))
    }
}
