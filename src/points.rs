//! [`Points`]: the points that methods take, made from dense arrays, sparse matrices and columns.

#[cfg(feature = "arrow")]
use std::sync::Arc;

use ndarray::{Array2, ArrayBase, ArrayRef2, ArrayView2, Axis, CowArray, Data, Ix2};
#[cfg(feature = "sparse")]
use sprs::{CsMat, CsMatView};

use crate::Real;
#[cfg(feature = "sparse")]
use crate::compressed::{Compressed, Index};
#[cfg(feature = "arrow")]
use crate::engine::ColumnPoints;
use crate::engine::PointsView;
use crate::error::{Error, Result};
use crate::memory::check_memory;
use crate::once::once;

/// Points in rows, n × d, for methods that take `impl Into<Points<T>>`.
///
/// ```
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::{Array2, s};
/// use random_features::{Points, Side, Trigonometric};
///
/// let map = Trigonometric.gaussian::<f32>(Orthogonal.draw(1000, 64, 1)?, 5.0)?;
/// let dense = Array2::ones((5, 1000));
/// let rows = map.features(Side::X, &dense.slice(s![1..3, ..]))?;
/// let all = map.features(Side::X, &dense)?;
/// assert_eq!(rows.mantissas(), all.mantissas().slice(s![1..3, ..]));
///
/// //  A function of your own that takes whatever the map takes.
/// fn count<'a>(x: impl Into<Points<'a, f32>>) -> usize {
///     x.into().nrows()
/// }
/// assert_eq!(count(&dense), 5);
/// # #[cfg(feature = "sparse")] {
///
/// //  Feature `sparse`: two points with two and one coordinates. The arrays are the
/// //  starts of the rows, the columns and the values.
/// use random_features::sprs::CsMat;
/// let (starts, columns) = (vec![0, 2, 3], vec![3, 700, 12]);
/// let x = CsMat::new((2, 1000), starts, columns, vec![1.0, -2.0, 0.5]);
/// let features = map.features(Side::X, &x)?;
/// let of_dense = map.features(Side::X, &x.to_dense())?;
/// assert_eq!(features.mantissas(), of_dense.mantissas());
///
/// //  Compressed columns, converted to rows once.
/// let (columns, second) = (x.to_csc(), map.features(Side::Y, &x)?);
/// let x = Points::from(&columns);
/// assert_eq!(map.features(Side::X, &x)?.mantissas(), features.mantissas());
/// assert_eq!(map.features(Side::Y, &x)?.mantissas(), second.mantissas());
/// # }
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Arrays of two dimensions and any layout (owned, shared, views) convert by reference, and views also by value. With the
/// feature `sparse`, matrices of the crate [`sprs`](https://docs.rs/sprs) convert, by reference or as views, and
/// `Points::of_csr` takes SciPy's compressed rows of 32-bit or 64-bit integers. With the feature `arrow`, `Points::of_columns` and `Points::of_list` take
/// columns of Arrow. Whatever the layout, results have the bits of a dense array of these points.
///
/// Points have the scalar of the map: `x.mapv(|v| v as f32)` converts an array for a `Map<f32>`. Arrays are those of
/// [`random_features::ndarray`](crate::ndarray): an array of another version of ndarray is another type, of which `Vec` and
/// shape make one of this version.
///
/// Features, kernel regression and ridge regression take `Points`. Methods that read every coordinate take only dense arrays:
/// Gram matrices, estimates of pairs, gradients, attention, sampling, standardisations, statistics and shapes.
/// [`to_dense`](Points::to_dense) writes other layouts out for them.
///
/// # Cost
/// Dense points, columns and compressed rows are borrowed. Each conversion of compressed columns converts them to rows: make
/// `Points` of them once, and pass it by reference. Explicitly stored zeros are allowed.
///
/// Features of sparse points cost O(m) for each coordinate that is stored and O(D) a point, for maps that project the
/// points themselves (trigonometric, positive, hyperbolic, generalised, sign and nonlinear ones, and hybrids of these) on
/// dense frequencies. All others convert some hundred points at a time to dense rows, which
/// costs at least O(d) a point: structured frequencies, linear images of points (complex exponentials, conditioning),
/// Poisson and geometric maps, `EluPlusOne`, clusters, user-defined maps, and centred inputs of ridge regressions (4096
/// at a time).
///
/// Columns are gathered to some hundred dense rows at a time, whatever the map, which costs O(d) a point. Exact
/// kernels, and a [`RidgeSearch`](crate::apply::RidgeSearch) that standardises, gather all at once.
#[derive(Clone, Debug)]
pub struct Points<'a, T: Real> {
    layout: Layout<'a, T>,
}

/// The layout of the coordinates.
#[derive(Clone, Debug)]
enum Layout<'a, T: Real> {
    Dense(ArrayView2<'a, T>),
    Owned(Array2<T>),
    #[cfg(feature = "sparse")]
    Compressed(Compressed<'a, T>),
    /// Columns of equal length.
    #[cfg(feature = "arrow")]
    Columns(Arc<[&'a [T]]>),
}

impl<T: Real> Points<'_, T> {
    /// n, the number of points.
    pub fn nrows(&self) -> usize {
        self.view().nrows()
    }

    /// d, the dimension of points.
    pub fn ncols(&self) -> usize {
        self.view().ncols()
    }

    /// All coordinates, n × d: borrowed from a dense array, or written out in O(n d) from sparse rows and columns.
    ///
    /// # Errors
    /// [`Memory`](Error::Memory) if the coordinates that are written out do not fit in memory.
    #[inline(never)]
    pub fn to_dense(&self) -> Result<CowArray<'_, T, Ix2>> {
        self.view().to_dense()
    }

    /// Whether coordinates are stored without zeros.
    pub fn is_sparse(&self) -> bool {
        matches!(self.view(), PointsView::Sparse(_))
    }

    /// Copies of some rows, in this order: sparse ones of sparse points, else dense ones.
    ///
    /// # Errors
    /// [`Entry`](Error::Entry) if there is no such row, [`Memory`](Error::Memory) if dense copies do not fit in memory.
    #[inline(never)]
    pub fn select(&self, rows: &[usize]) -> Result<Points<'static, T>> {
        if let Some(row) = rows.iter().position(|row| *row >= self.nrows()) {
            let domain = "below the number of rows";
            return Err(Error::Entry { what: "the selected rows", row, value: rows[row] as f64, domain });
        }
        let layout = match self.view() {
            PointsView::Dense(x) => {
                check_memory("selected rows", rows.len(), x.ncols().saturating_mul(size_of::<T>()))?;
                Layout::Owned(x.select(Axis(0), rows))
            }
            #[cfg(feature = "sparse")]
            PointsView::Sparse(x) => Layout::Compressed(Compressed::of_rows(x, rows)),
            #[cfg(not(feature = "sparse"))]
            PointsView::Sparse(_) => Layout::Owned(self.to_dense()?.select(Axis(0), rows)),
            PointsView::Columns(x) => {
                check_memory("selected rows", rows.len(), x.ncols().saturating_mul(size_of::<T>()))?;
                Layout::Owned(x.select(rows))
            }
        };
        Ok(Points { layout })
    }

    /// The view that the engine reads.
    pub(crate) fn view(&self) -> PointsView<'_, T> {
        match &self.layout {
            Layout::Dense(x) => PointsView::Dense(x.view()),
            Layout::Owned(x) => PointsView::Dense(x.view()),
            #[cfg(feature = "sparse")]
            Layout::Compressed(x) => PointsView::Sparse(x.view()),
            #[cfg(feature = "arrow")]
            Layout::Columns(columns) => PointsView::Columns(ColumnPoints::new(columns)),
        }
    }
}

#[cfg(feature = "sparse")]
impl<'a, T: Real> Points<'a, T> {
    /// Points in the arrays of compressed rows that SciPy's `csr_array` has: `data`, `indices` and `indptr` (feature `sparse`).
    ///
    /// Row i has the coordinates `values[offsets[i]..offsets[i + 1]]` in these `columns`, and zeros elsewhere; d is `dim`. Columns
    /// ascend in each row, as SciPy's `sum_duplicates()` leaves them. Offsets may begin above 0: some of the offsets, with all
    /// values and columns, give a slice of the rows. Values that are not finite are refused where dense ones are.
    ///
    /// Values are borrowed, and so are columns in `i32`, `u32` and `usize`; offsets are copied. Cost O(n) and one pass over the
    /// columns.
    ///
    /// ```
    /// use random_features::Points;
    /// let values = [1.0, -2.0, 0.5];
    /// let (columns, offsets) = ([3i32, 700, 12], [0i32, 2, 3]);
    /// let x = Points::of_csr(&values, &columns, &offsets, 1000)?;
    /// assert_eq!((x.nrows(), x.ncols()), (2, 1000));
    /// assert_eq!(x.to_dense()?[[0, 700]], -2.0);
    /// let error = Points::of_csr(&values, &columns, &offsets, 100).unwrap_err();
    /// assert!(error.to_string().starts_with("row 0 of the columns is 700,"));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there are not as many columns as values, [`Entry`](Error::Entry) with the row if offsets descend
    /// or are beyond the values, or if a column is not below d or not above the one before it; [`Parameter`](Error::Parameter)
    /// without any offset; [`Memory`](Error::Memory) if the offsets do not fit in memory.
    pub fn of_csr(
        values: &'a [T],
        columns: &'a [impl Index],
        offsets: &[impl Index],
        dim: usize,
    ) -> Result<Self> {
        let layout = Layout::Compressed(Compressed::of_csr(values, columns, offsets, dim)?);
        Ok(Points { layout })
    }
}

#[cfg(feature = "arrow")]
impl<'a, T: Real> Points<'a, T> {
    /// Points of these columns, which have equal lengths.
    pub(crate) fn of_slices(columns: Vec<&'a [T]>) -> Self {
        Points { layout: Layout::Columns(columns.into()) }
    }
}

impl<'a, T: Real> From<ArrayView2<'a, T>> for Points<'a, T> {
    fn from(x: ArrayView2<'a, T>) -> Self {
        Points { layout: Layout::Dense(x) }
    }
}

impl<'a, T: Real> From<&'a ArrayRef2<T>> for Points<'a, T> {
    fn from(x: &'a ArrayRef2<T>) -> Self {
        x.view().into()
    }
}

impl<'a, T: Real, S: Data<Elem = T>> From<&'a ArrayBase<S, Ix2>> for Points<'a, T> {
    fn from(x: &'a ArrayBase<S, Ix2>) -> Self {
        x.view().into()
    }
}

/// Borrows points that were converted before.
impl<'a, T: Real> From<&'a Points<'_, T>> for Points<'a, T> {
    fn from(x: &'a Points<'_, T>) -> Self {
        let layout = match &x.layout {
            Layout::Dense(x) => Layout::Dense(x.view()),
            Layout::Owned(x) => Layout::Dense(x.view()),
            #[cfg(feature = "sparse")]
            Layout::Compressed(x) => Layout::Compressed(x.borrowed()),
            #[cfg(feature = "arrow")]
            Layout::Columns(columns) => Layout::Columns(columns.clone()),
        };
        Points { layout }
    }
}

#[cfg(feature = "sparse")]
impl<'a, T: Real> From<&'a CsMat<T>> for Points<'a, T> {
    fn from(x: &'a CsMat<T>) -> Self {
        x.view().into()
    }
}

#[cfg(feature = "sparse")]
impl<'a, T: Real> From<CsMatView<'a, T>> for Points<'a, T> {
    fn from(x: CsMatView<'a, T>) -> Self {
        Points { layout: Layout::Compressed(Compressed::of_matrix(x)) }
    }
}

once!(Points::<T>::to_dense, Points::<T>::select);
