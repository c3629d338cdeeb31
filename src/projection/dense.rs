//! [`Projection`]: ⟨ωⱼ, x/ℓ⟩ with a packed matrix.

use ndarray::ArrayView2;

use super::{Scratch, Tile};
use crate::Real;
use crate::error::{Error, Result};
use crate::frequency::Frequencies;
use crate::kernel::Lengthscale;
use crate::numeric::{self, Isa, Packed};

/// The linear part of a feature map: x ↦ (⟨ωⱼ, x/ℓ⟩)ⱼ.
///
/// Holds the frequencies, rounded to `T`, divided by the lengthscale and packed once for the product kernel.
/// Immutable; maps share it behind an `Arc`. Cost O(md) a point; memory d elements of `T` for each frequency,
/// their number rounded up to a multiple of two cache lines, beside the `f64` frequencies.
#[derive(Debug)]
pub struct Projection<T> {
    frequencies: Frequencies,
    packed: Packed<T>,
    /// 1/ℓ, if it is the same for all coordinates.
    inverse: f64,
    /// 1/ℓₖ for each coordinate, else empty.
    inverses: Vec<f64>,
    /// Not less than any |ωⱼ·u| with ‖u‖ = 1, rounding included.
    reach: f64,
}

impl<T: Real> Projection<T> {
    /// Packs the frequencies for points divided by `lengthscale`.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if a lengthscale is outside its domain, [`Shape`](Error::Shape) if
    /// there is one for each of another number of dimensions, [`NotFinite`](Error::NotFinite) if some ω/ℓ
    /// overflows `T`.
    pub fn new(frequencies: Frequencies, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        let lengthscale = lengthscale.into().checked()?;
        lengthscale.check_dim(frequencies.dim())?;
        let overflow = |row: &ndarray::ArrayView1<'_, f64>| {
            row.indexed_iter().any(|(k, w)| !T::narrow(w / lengthscale.at(k)).is_finite())
        };
        match frequencies.rows().rows().into_iter().position(|row| overflow(&row)) {
            None => Ok(Self::pack(frequencies, &lengthscale)),
            Some(row) => Err(Error::NotFinite { what: "the frequencies divided by the lengthscale", row }),
        }
    }

    /// The projection with ℓ = 1, clamping to the range of `T` what would overflow (|ω| > 3e38 in `f32`).
    pub(crate) fn unscaled(frequencies: Frequencies) -> Self {
        Self::pack(frequencies, &Lengthscale::default())
    }

    fn pack(frequencies: Frequencies, lengthscale: &Lengthscale) -> Self {
        let rows = frequencies.rows();
        let packed = Packed::new(rows.nrows(), rows.ncols(), |j, k| {
            T::narrow(rows[[j, k]] / lengthscale.at(k)).max(T::min_value()).min(T::max_value())
        });
        // By the Cauchy–Schwarz inequality; infinite, and still a bound, for frequencies beyond 1e150.
        let rounding = 1.0 + T::epsilon().widen() * (rows.ncols() + 8) as f64;
        let reach = rows.rows().into_iter().map(|row| row.dot(&row).sqrt()).fold(0.0, f64::max) * rounding;
        let (inverse, inverses) = match lengthscale {
            Lengthscale::Isotropic(scale) => (scale.recip(), Vec::new()),
            Lengthscale::PerDimension(scales) => (1.0, scales.iter().map(|s| s.recip()).collect()),
        };
        Projection { packed, inverse, inverses, reach, frequencies }
    }

    /// m, the number of projections.
    pub fn count(&self) -> usize {
        self.packed.rows()
    }

    /// d, the dimension of the points.
    pub fn input_dim(&self) -> usize {
        self.packed.depth()
    }

    /// The frequencies.
    pub fn frequencies(&self) -> &Frequencies {
        &self.frequencies
    }

    /// ‖x/ℓ‖², in `f64`.
    ///
    /// # Panics
    /// If there is a lengthscale for each coordinate and `x` has more.
    pub fn squared_norm(&self, x: &[T]) -> f64 {
        numeric::squared_norm(Isa::best(), x, self.inverse, &self.inverses)
    }

    /// An upper bound of |⟨ωⱼ, x/ℓ⟩| over all j, from ‖x/ℓ‖².
    pub fn bound(&self, squared_norm: f64) -> f64 {
        self.reach * squared_norm.sqrt()
    }

    /// Writes ⟨ωⱼ, xᵢ/ℓ⟩ to column j of row i, and ‖xᵢ/ℓ‖² to the first scale of row i.
    ///
    /// The tile has as many rows as `x`, at least m columns and a block. Where the product would overflow `T`
    /// (norms above 1e37 in `f32`) it saturates, so that what is written is finite for every x whose squared
    /// norm is.
    ///
    /// # Panics
    /// If the tile does not fit.
    pub fn project(&self, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        assert!(
            x.ncols() == self.input_dim() && x.nrows() == tile.rows() && tile.width() >= self.count(),
            "a tile of {} × {} takes no projections of {} × {} points on {} frequencies",
            tile.rows(),
            tile.width(),
            x.nrows(),
            x.ncols(),
            self.count()
        );
        let x = scratch.contiguous(&x);
        let (out, stride) = tile.strided();
        numeric::product(Isa::best(), x, &self.packed, out, stride);
        let safe = T::max_value().widen() / 4.0;
        for (i, x) in x.chunks_exact(self.input_dim()).enumerate() {
            let squared_norm = self.squared_norm(x);
            let (values, scales) = tile.row(i);
            scales[0] = squared_norm;
            if self.bound(squared_norm) > safe {
                self.project_saturating(x, &mut values[..self.count()]);
            }
        }
    }

    #[cold]
    fn project_saturating(&self, x: &[T], out: &mut [T]) {
        let largest = x.iter().fold(T::zero(), |a, v| a.max(v.abs()));
        // Entries of at most 1/d keep every sum below the largest frequency.
        let scale = largest.widen() * x.len() as f64;
        let small: Vec<T> = x.iter().map(|v| T::narrow(v.widen() / scale)).collect();
        numeric::product(Isa::best(), &small, &self.packed, out, self.count());
        let limit = T::max_value() / T::narrow(4.0);
        for p in out {
            *p = T::narrow(p.widen() * scale).max(-limit).min(limit);
        }
    }
}
