//! [`Projection`]: ⟨ωⱼ, x/ℓ⟩ for a tile of points.

use std::sync::{Arc, OnceLock};

use ndarray::ArrayView2;

use super::structured::Fast;
use crate::Real;
use crate::engine::points::{PointsView, SparsePoints};
use crate::engine::{Scratch, Tile};
use crate::error::{Error, Result};
use crate::frequency::Frequencies;
use crate::frequency::structured::{Rotation, Structured};
use crate::kernel::Lengthscale;
use crate::memory::check_memory;
use crate::numeric::{self, Buffer, Isa, Packed, Panels, Submatrix};
use crate::once::once;
use crate::threads;

/// The linear part of a feature map: x ↦ (⟨ωⱼ, x/ℓ⟩)ⱼ.
///
/// ```
/// use random_features::frequency::Hadamard;
/// use random_features::workbench::{Method, Projection};
/// let draw_in = |d| Hadamard::default().draw(d, d, 1);
/// assert_eq!(
///     Projection::<f32>::new(draw_in(16)?, 1.0)?.method(),
///     Method::Dense
/// );
/// assert_eq!(
///     Projection::<f32>::new(draw_in(1024)?, 1.0)?.method(),
///     Method::Structured
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// It holds the frequencies, rounded to `T` and divided by the lengthscale: packed once for the product kernel or, if they are
/// [structured](Frequencies::structured) and it pays, as factors. Maps share it behind an `Arc`. A point costs O(md), or
/// O(m log d) with factors. Beside the `f64` frequencies, memory is d elements of `T` for each frequency, their number
/// rounded up to a multiple of two cache lines, or O(1) for each with factors.
#[derive(Debug)]
pub struct Projection<T> {
    frequencies: Arc<Frequencies>,
    lengthscale: Lengthscale,
    matrix: Factors<T>,
    /// 1/ℓ, if all coordinates have one ℓ.
    inverse: f64,
    /// 1/ℓₖ for each coordinate, else empty.
    inverses: Vec<f64>,
    /// An upper bound on every |ωⱼ·u| with ‖u‖ = 1, including rounding.
    reach: f64,
    /// A bound on every intermediate value for ‖u‖ = 1.
    intermediate_bound: f64,
    /// ωᵀ, packed when gradients first need it.
    transposed: OnceLock<Packed<T>>,
}

/// The method of products with frequencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Method {
    /// A packed matrix: O(d) a frequency.
    Dense,
    /// The factors of structured frequencies: O(log d) a frequency.
    Structured,
}

/// The matrix or the factors by which points are multiplied.
#[derive(Debug)]
enum Factors<T> {
    Dense(Packed<T>),
    Structured(Fast<T>),
}

impl<T: Real> Projection<T> {
    /// Rounds and packs the frequencies for points divided by `lengthscale`, for the faster method.
    ///
    /// The faster method is estimated from the shape alone, so that every machine takes the same.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if a lengthscale is outside its domain or so large that 1/ℓ is no normal number of `T`
    /// (some 1e38 in `f32`), [`Shape`](Error::Shape) if the number of lengthscales is not d, [`NotFinite`](Error::NotFinite) if
    /// some ω/ℓ overflows `T`, [`Memory`](Error::Memory) if the packed matrix does not fit in memory.
    pub fn new(
        frequencies: impl Into<Arc<Frequencies>>,
        lengthscale: impl Into<Lengthscale>,
    ) -> Result<Self> {
        let frequencies = frequencies.into();
        let method = faster(&frequencies);
        Self::with_method(frequencies, lengthscale, method)
    }

    /// Rounds and packs the frequencies for points divided by `lengthscale`, for the given method. Frequencies without structure
    /// are always [`Dense`](Method::Dense).
    ///
    /// # Errors
    /// The errors of [`new`](Projection::new).
    pub fn with_method(
        frequencies: impl Into<Arc<Frequencies>>,
        lengthscale: impl Into<Lengthscale>,
        method: Method,
    ) -> Result<Self> {
        Self::prepared(frequencies.into(), lengthscale.into(), method)
    }

    #[inline(never)]
    fn prepared(frequencies: Arc<Frequencies>, lengthscale: Lengthscale, method: Method) -> Result<Self> {
        let lengthscale = lengthscale.checked()?;
        lengthscale.check_dim(frequencies.dim())?;
        check_inverse::<T>(&lengthscale, frequencies.dim())?;
        if method == Method::Dense {
            frequencies.check_rows()?;
            let each = frequencies.dim().saturating_mul(size_of::<T>());
            check_memory("frequencies divided by the lengthscale", frequencies.m(), each)?;
        }
        match first_overflow::<T>(&frequencies, &lengthscale) {
            None => Ok(Self::pack(frequencies, &lengthscale, method)),
            Some(row) => Err(Error::NotFinite { what: overflowing::<T>(), row, column: None }),
        }
    }

    fn pack(frequencies: Arc<Frequencies>, lengthscale: &Lengthscale, method: Method) -> Self {
        let (inverse, inverses) = lengthscale.inverses();
        // By the Cauchy–Schwarz inequality.
        let rounding = 1.0 + T::epsilon().widen() * (frequencies.padded_dim() + 8) as f64;
        let (matrix, reach, intermediate_bound) = match frequencies.structured() {
            Some(structured) if method == Method::Structured => {
                // Rows are no longer than their radii; points are rotated before they are divided by an isotropic ℓ.
                let reach = longest_radius(structured) * rounding;
                (
                    Factors::Structured(Fast::new(structured, lengthscale)),
                    reach,
                    reach.max(rounding / inverse),
                )
            }
            _ => {
                let rows = frequencies.rows();
                let element = |j, k| T::saturated(rows[[j, k]] / lengthscale.at(k));
                let packed = Packed::new(rows.nrows(), rows.ncols(), element);
                // For frequencies beyond 1e150 it is infinite, which is still a bound.
                let longest = rows.rows().into_iter().map(|row| row.dot(&row).sqrt()).fold(0.0, f64::max);
                (Factors::Dense(packed), longest * rounding, longest * rounding)
            }
        };
        Projection {
            matrix,
            inverse,
            inverses,
            reach,
            intermediate_bound,
            frequencies,
            lengthscale: lengthscale.clone(),
            transposed: OnceLock::new(),
        }
    }

    /// m, the number of projections.
    pub fn m(&self) -> usize {
        match &self.matrix {
            Factors::Dense(packed) => packed.rows(),
            Factors::Structured(fast) => fast.m(),
        }
    }

    /// d, the dimension of the points.
    pub fn dim(&self) -> usize {
        match &self.matrix {
            Factors::Dense(packed) => packed.depth(),
            Factors::Structured(fast) => fast.dim(),
        }
    }

    /// The method of products.
    pub fn method(&self) -> Method {
        match &self.matrix {
            Factors::Dense(_) => Method::Dense,
            Factors::Structured(_) => Method::Structured,
        }
    }

    /// The frequencies.
    pub fn frequencies(&self) -> &Arc<Frequencies> {
        &self.frequencies
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    /// The frequencies as columns, before the lengthscale divides them. Structured ones are written out.
    pub(crate) fn transposed(&self) -> &Packed<T> {
        self.transposed.get_or_init(|| {
            let rows = self.frequencies.rows();
            Packed::new(rows.ncols(), rows.nrows(), |k, j| T::saturated(rows[[j, k]]))
        })
    }

    /// Whether both projections give the same numbers.
    pub(crate) fn same(&self, other: &Self) -> bool {
        let same = |a: &Arc<Frequencies>, b: &Arc<Frequencies>| Arc::ptr_eq(a, b) || a.same_draw(b);
        self.method() == other.method()
            && self.lengthscale == other.lengthscale
            && same(&self.frequencies, &other.frequencies)
    }

    /// An upper bound of |⟨ωⱼ, x/ℓ⟩| over all j, from ‖x/ℓ‖².
    pub(crate) fn bound(&self, squared_norm: f64) -> f64 {
        self.reach * squared_norm.sqrt()
    }

    /// Writes ⟨ωⱼ, xᵢ/ℓ⟩ to column j of row i, and ‖xᵢ/ℓ‖² to the first scale of row i.
    ///
    /// The tile has as many rows as `x`, at least m columns and a block. Where the product would overflow `T` (norms above 1e37
    /// in `f32`) it saturates, so that it is finite for every x whose squared norm is. `norms` are ‖xᵢ/ℓ‖², if they are known.
    pub(crate) fn project(
        &self,
        x: PointsView<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
        norms: Option<&[f64]>,
    ) {
        match (x, &self.matrix) {
            (PointsView::Sparse(x), Factors::Dense(packed)) => self.project_sparse(x, packed, tile, scratch),
            (x, _) => x.densely(scratch, |x, scratch| self.project_dense(x, tile, scratch, norms)),
        }
    }

    fn project_dense(
        &self,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
        norms: Option<&[f64]>,
    ) {
        let wide = scratch.wide;
        let (x, x_stride, work) = scratch.rows_and_work(&x);
        let (out, stride) = tile.strided();
        match &self.matrix {
            Factors::Dense(packed) if wide && self.is_wide() => {
                multiply_wide(x, x_stride, packed, out, stride);
            }
            _ => self.multiply(x, x_stride, out, stride, work),
        }
        let (rows, d, safe) = (tile.rows(), self.dim(), self.safe());
        match norms {
            Some(norms) => norms.iter().enumerate().for_each(|(i, norm)| *tile.scale(i) = *norm),
            None => {
                let x = Submatrix { values: x, rows, stride: x_stride, width: d };
                let scales = tile.rows_in(0..rows).log_scales;
                numeric::squared_norms(Isa::best(), scales, x, self.inverse, &self.inverses);
            }
        }
        for i in 0..rows {
            if *tile.scale(i) > safe {
                let x = &x[i * x_stride..][..d];
                self.project_saturating(x, &mut tile.row(i).values[..self.m()], work);
            }
        }
    }

    /// Whether threads may take ranges of the frequencies.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(&self.matrix, Factors::Dense(packed) if packed.rows() > COLUMNS)
    }

    /// Writes the bits of [`project`](Projection::project) for sparse points, at O(m) for each coordinate that is not 0.
    fn project_sparse(
        &self,
        x: SparsePoints<'_, T>,
        packed: &Packed<T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let isa = Isa::best();
        for i in 0..tile.rows() {
            let ((columns, values), row) = (x.row(i), tile.row(i));
            numeric::sparse_product(isa, columns, values, packed.all(), &mut row.values[..self.m()]);
            let squared_norm =
                numeric::sparse_squared_norm(isa, columns, values, self.inverse, &self.inverses);
            row.log_scales[0] = squared_norm;
            if squared_norm > self.safe() {
                let mut all = scratch.take(x.dim);
                x.write_row(i, &mut all);
                self.project_saturating(&all, &mut row.values[..self.m()], &mut Buffer::default());
                scratch.give(all);
            }
        }
    }

    /// The largest squared norm for which no number can overflow.
    fn safe(&self) -> f64 {
        (T::max_value().widen() / 4.0 / self.intermediate_bound).powi(2)
    }

    /// Multiplies rows of points; `x_stride` and `stride` are the distances between rows of points and of products.
    fn multiply(&self, x: &[T], x_stride: usize, out: &mut [T], stride: usize, work: &mut Buffer<T>) {
        match &self.matrix {
            Factors::Dense(packed) => numeric::product(Isa::best(), x, x_stride, packed.all(), out, stride),
            Factors::Structured(fast) => fast.product(x, x_stride, out, stride, work),
        }
    }

    #[cold]
    fn project_saturating(&self, x: &[T], out: &mut [T], work: &mut Buffer<T>) {
        let largest = x.iter().fold(T::zero(), |a, v| a.max(v.abs()));
        // Entries of at most 1/d keep every sum below the largest frequency.
        let scale = largest.widen() * x.len() as f64;
        let small: Vec<T> = x.iter().map(|v| T::narrow(v.widen() / scale)).collect();
        self.multiply(&small, x.len(), out, self.m(), work);
        let limit = T::max_value() / T::narrow(4.0);
        for p in out {
            *p = T::narrow(p.widen() * scale).max(-limit).min(limit);
        }
    }
}

/// Writes the product of few rows with many frequencies, of which each thread takes ranges: the bits of one thread.
fn multiply_wide<T: Real>(x: &[T], x_stride: usize, packed: &Packed<T>, out: &mut [T], stride: usize) {
    let rows = x.len().div_ceil(x_stride);
    let run = |panels: Panels<'_, T>| {
        let mut products = vec![T::zero(); rows * panels.rows()];
        numeric::product(Isa::best(), x, x_stride, panels, &mut products, panels.rows());
        products
    };
    let products: Vec<Vec<T>> = threads::map(packed.runs(COLUMNS), run);
    threads::for_each(out.chunks_mut(stride).take(rows).enumerate(), |(i, out)| {
        let mut first = 0;
        for products in &products {
            let width = products.len() / rows;
            out[first..first + width].copy_from_slice(&products[i * width..][..width]);
            first += width;
        }
    });
}

/// The number of frequencies that a thread takes at a time, if there are more of them than points.
const COLUMNS: usize = 1024;

fn longest_radius(structured: &Structured) -> f64 {
    let radii = structured.blocks().iter().flat_map(|block| &block.radii);
    radii.fold(0.0, |longest, radius| radius.abs().max(longest))
}

/// Refuses lengthscales whose inverse is below the normal numbers of `T`, where ω/ℓ would lose its digits.
fn check_inverse<T: Real>(lengthscale: &Lengthscale, dim: usize) -> Result<()> {
    let lost = |value: &f64| T::narrow(value.recip()) < T::min_positive_value();
    let domain = "small enough for 1/ℓ to be a normal number of the scalar type";
    match (0..dim).map(|k| lengthscale.at(k)).find(lost) {
        None => Ok(()),
        Some(value) => Err(Error::Parameter { name: "the lengthscale", value, domain }),
    }
}

/// The name of frequencies that overflow, with what helps.
fn overflowing<T>() -> &'static str {
    match size_of::<T>() {
        4 => "the frequencies divided by the lengthscale in f32, where f64 may hold them",
        _ => "the frequencies divided by the lengthscale",
    }
}

/// The first row that overflows `T` when it is divided by the lengthscale.
fn first_overflow<T: Real>(frequencies: &Frequencies, lengthscale: &Lengthscale) -> Option<usize> {
    let overflows = |v: f64| !T::narrow(v).is_finite();
    if let Some(structured) = frequencies.structured() {
        // One coordinate of a row may be as large as its radius.
        let least = (0..structured.dim()).map(|k| lengthscale.at(k)).fold(f64::INFINITY, f64::min);
        let mut radii = structured.blocks().iter().flat_map(|block| &block.radii);
        return radii.position(|radius| overflows(radius / least) || overflows(least.recip()));
    }
    let overflows = |(k, w): (usize, &f64)| overflows(w / lengthscale.at(k));
    frequencies.rows().rows().into_iter().position(|row| row.iter().enumerate().any(overflows))
}

/// The method that is estimated to be faster, from operations alone and times measured once.
fn faster(frequencies: &Frequencies) -> Method {
    let Some(structured) = frequencies.structured() else { return Method::Dense };
    let padded = structured.padded();
    let factors = |product: &Rotation| match product {
        Rotation::Hadamard(flips) => hadamard_cost(flips.nrows(), padded),
        Rotation::Givens(rotations) => givens_cost(rotations.len(), padded),
    };
    let cost: f64 = structured.blocks().iter().map(|block| factors(&block.rotation)).sum();
    let dense = structured.m() as f64 * structured.dim() as f64;
    // A matrix is written out by products with all unit vectors.
    let written = cost * structured.dim() as f64;
    if cost < dense || written > WRITTEN { Method::Structured } else { Method::Dense }
}

/// The time of rounds of signs and transforms for a point, in multiplications of the dense product.
pub(crate) fn hadamard_cost(rounds: usize, padded: usize) -> f64 {
    ROUND * rounds as f64 * padded as f64
}

/// The time of rotations of so many planes for a point, in multiplications of the dense product.
pub(crate) fn givens_cost(planes: usize, padded: usize) -> f64 {
    PLANE * planes as f64 + padded as f64
}

/// The most time for writing out a matrix, in multiplications of the dense product: some ten seconds.
const WRITTEN: f64 = 1e11;
/// The time of a round of signs and transform for each coordinate, in multiplications of the dense product. It was measured
/// with AVX2, where three rounds win from d = m = 64 on (`cargo bench --bench structured`).
const ROUND: f64 = 14.0;
/// The time of a plane rotation for each point, in multiplications of the dense product.
const PLANE: f64 = 18.0;

once!(Projection::<T>::prepared);
