//! [`FeatureMap`], the core trait.

use std::collections::BTreeSet;
use std::sync::Arc;

use ndarray::{Array2, ArrayRef1, ArrayRef2, ArrayView2, Axis};

use super::batch::Batch;
use super::{Features, Scratch, Tile, tiles};
use crate::error::{Result, check_size};
use crate::kernel::Kernel;
use crate::numeric::zeros;
use crate::projection::Projection;
use crate::{Real, SignedLog};

/// The side of the kernel that a point stands on.
///
/// K(x, y) ≈ φ(x)·ψ(y): queries and test points on side [`X`](Side::X), keys and training points on side
/// [`Y`](Side::Y). For [symmetric](Properties::symmetric) maps φ = ψ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Side {
    /// The first argument of the kernel; its features are φ.
    X,
    /// The second argument of the kernel; its features are ψ.
    Y,
}

/// What a map promises of its features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// φ = ψ: a point has the same features on both sides, so Gram matrices are positive semidefinite.
    pub symmetric: bool,
    /// Every feature is ≥ 0, so estimates are too.
    pub non_negative: bool,
}

/// A random feature map: K(x, y) ≈ φ(x)·ψ(y).
///
/// A map states its dimensions and properties and fills tiles of features; the rest is provided. It is
/// object-safe: `Box<dyn FeatureMap<f32>>` and generics both work, and you can write your own. Maps are
/// immutable, and every method gives bit-identical results for any number of threads and for any split of a
/// batch.
///
/// Points are rows of arrays of any layout; standard layout is fastest. A row that holds NaN or an infinity,
/// or whose squared norm overflows `f64`, gets NaN features and no other row is affected.
pub trait FeatureMap<T: Real>: std::fmt::Debug + Send + Sync {
    /// d, the dimension of points.
    fn input_dim(&self) -> usize;

    /// The number of features in each block. Plain maps have one block; each block has a scale for each row.
    fn blocks(&self) -> &[usize];

    /// What the map promises.
    fn properties(&self) -> Properties;

    /// Writes the features of the rows of `x` to a tile of as many rows,
    /// [`feature_dim`](FeatureMap::feature_dim) columns and one scale for each block.
    ///
    /// `x` has [`input_dim`](FeatureMap::input_dim) columns; the tile may hold anything before. Values should
    /// be at most 1 in magnitude. A block whose scale is −∞ is absent from its row: its values are never
    /// read.
    fn fill(&self, side: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>);

    /// As [`fill`](FeatureMap::fill), but stops before exponentials are taken: values become ln |φ| relative to
    /// the scales, −∞ where φ = 0, and [`signs`](Tile::signs) those of φ.
    ///
    /// Signs are 1 when the tile comes: a map whose features are not negative need not look at them.
    /// Products of scaled features lose an estimate that is far below the product of the scales (queries that
    /// oppose keys, at norms above 20 in `f32`); exponents do not. Returns `false`, with the tile untouched,
    /// for maps whose features are not exponentials; the answer must be the same for both sides and all
    /// points.
    fn fill_exponents(
        &self,
        _side: Side,
        _x: ArrayView2<'_, T>,
        _tile: &mut Tile<'_, T>,
        _scratch: &mut Scratch<T>,
    ) -> bool {
        false
    }

    /// The projection that [`fill`](FeatureMap::fill) takes of the points, if it is all that it needs of them: composed
    /// maps take one that several parts share only once. A map that has one has at least as many features.
    fn projection(&self) -> Option<&Arc<Projection<T>>> {
        None
    }

    /// As [`fill`](FeatureMap::fill), for a tile that holds what [`projection`](FeatureMap::projection)
    /// [writes](Projection::project) of the points. Called only for maps that have one.
    fn fill_projected(&self, _side: Side, _tile: &mut Tile<'_, T>) {}

    /// Whether [`fill`](FeatureMap::fill) writes every value, so that no block is ever absent, and changes no row that
    /// it, or a map that it calls, has said to be [complete](Tile::complete). Large results are written past the caches
    /// then.
    fn writes_once(&self) -> bool {
        false
    }

    /// The exact kernel that is estimated, if it has a closed form and the stated law of the frequencies is the one
    /// that it needs: without bias where that law is exact, nearly so with approximate couplings
    /// ([`Hadamard`](crate::frequency::Hadamard), [`Givens`](crate::frequency::Givens)).
    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        None
    }

    /// A number that tells this map from others, so that features of different maps are not paired by
    /// mistake; 0 if unknown.
    fn fingerprint(&self) -> u64 {
        0
    }

    /// ln of the variance of [`estimate`](FeatureMap::estimate) over draws of the frequencies, or `None`
    /// where no closed form is known for their law.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a point has another dimension than d.
    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        check_pair(self.input_dim(), x, y)?;
        Ok(None)
    }

    /// D, the number of real features.
    fn feature_dim(&self) -> usize {
        self.blocks().iter().sum()
    }

    /// Features of the rows of `x`, into buffers of yours: `values` n × D, `log_scales` n × blocks. Allocates
    /// nothing that grows with n.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if an array does not fit; nothing is written then.
    fn features_into(
        &self,
        side: Side,
        x: &ArrayRef2<T>,
        values: &mut ArrayRef2<T>,
        log_scales: &mut ArrayRef2<f64>,
    ) -> Result<()> {
        check_size("the number of columns of x", self.input_dim(), x.ncols())?;
        check_size("the number of rows of values", x.nrows(), values.nrows())?;
        check_size("the number of columns of values", self.feature_dim(), values.ncols())?;
        check_size("the number of rows of log_scales", x.nrows(), log_scales.nrows())?;
        check_size("the number of columns of log_scales", self.blocks().len(), log_scales.ncols())?;
        let fill = |x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>| {
            self.fill(side, x, tile, scratch);
        };
        tiles::fill(self.writes_once(), x.view(), values.view_mut(), log_scales.view_mut(), fill);
        Ok(())
    }

    /// Features of the rows of `x`. Cost for an exponential map O(n m d).
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `x` does not have d columns.
    fn features(&self, side: Side, x: &ArrayRef2<T>) -> Result<Features<T>> {
        let mut values = zeros(x.nrows(), self.feature_dim());
        let mut log_scales = Array2::zeros((x.nrows(), self.blocks().len()));
        self.features_into(side, x, &mut values, &mut log_scales)?;
        Ok(Features::new(self, side, values, log_scales))
    }

    /// Features of one point, as a batch of one.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `x` does not have d entries.
    fn features_of(&self, side: Side, x: &ArrayRef1<T>) -> Result<Features<T>> {
        self.features(side, &x.view().insert_axis(Axis(0)))
    }

    /// The estimates of K(xᵢ, yⱼ) for all rows of `x` and `y`, n × l; ±∞ or 0 where they leave the range of
    /// `T`.
    ///
    /// Entries that scaled features cannot resolve are computed again from exponents, where the map has them.
    /// Cost O((n + l) m d + n l D), more where many entries are.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `x` or `y` does not have d columns.
    fn gram(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array2<T>> {
        let (left, right) = (self.features(Side::X, x)?, self.features(Side::Y, y)?);
        left.gram_or(&right, |pairs| estimates_from_exponents(self, (x, y), pairs))
    }

    /// The estimate of K(x, y); ±∞ or 0 where it leaves the range of `T`.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a point does not have d entries.
    fn estimate(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<T> {
        Ok(T::narrow(self.log_estimate(x, y)?.value()))
    }

    /// The sign and logarithm of the estimate of K(x, y), from exponents where the map has them.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a point does not have d entries.
    fn log_estimate(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<SignedLog> {
        check_pair(self.input_dim(), x, y)?;
        let (x, y) = (x.view().insert_axis(Axis(0)), y.view().insert_axis(Axis(0)));
        let (left, right) = Batch::of_pair(self, x, y);
        Ok(left.estimate(0, &right, 0, self.blocks()))
    }
}

/// Checks that two points have dimension `d`.
pub(super) fn check_pair<T: Real>(d: usize, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<()> {
    check_size("the dimension of x", d, x.len())?;
    check_size("the dimension of y", d, y.len())
}

/// Estimates of pairs of rows from exponents, each affected row projected once; `None` if the map has no
/// exponents.
fn estimates_from_exponents<T: Real, M: FeatureMap<T> + ?Sized>(
    map: &M,
    (x, y): (&ArrayRef2<T>, &ArrayRef2<T>),
    pairs: &[(usize, usize)],
) -> Option<Vec<T>> {
    let affected = |of: fn(&(usize, usize)) -> usize| {
        let rows: BTreeSet<usize> = pairs.iter().map(of).collect();
        rows.into_iter().collect::<Vec<_>>()
    };
    let (left_rows, right_rows) = (affected(|pair| pair.0), affected(|pair| pair.1));
    let left = Batch::new(map, Side::X, x.select(Axis(0), &left_rows).view());
    if !left.logarithmic {
        return None;
    }
    let right = Batch::new(map, Side::Y, y.select(Axis(0), &right_rows).view());
    let estimate = |(i, j): &(usize, usize)| {
        let (i, j) = (left_rows.binary_search(i).ok()?, right_rows.binary_search(j).ok()?);
        Some(T::narrow(left.estimate(i, &right, j, map.blocks()).value()))
    };
    if right.logarithmic { pairs.iter().map(estimate).collect() } else { None }
}

/// A pointer to a map is a map.
macro_rules! delegate {
    ($($pointer:ty),*) => {$(
        impl<T: Real, M: FeatureMap<T> + ?Sized> FeatureMap<T> for $pointer {
            fn input_dim(&self) -> usize {
                (**self).input_dim()
            }
            fn blocks(&self) -> &[usize] {
                (**self).blocks()
            }
            fn properties(&self) -> Properties {
                (**self).properties()
            }
            fn fill(&self, side: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
                (**self).fill(side, x, tile, scratch);
            }
            fn fill_exponents(
                &self,
                side: Side,
                x: ArrayView2<'_, T>,
                tile: &mut Tile<'_, T>,
                scratch: &mut Scratch<T>,
            ) -> bool {
                (**self).fill_exponents(side, x, tile, scratch)
            }
            fn projection(&self) -> Option<&Arc<Projection<T>>> {
                (**self).projection()
            }
            fn fill_projected(&self, side: Side, tile: &mut Tile<'_, T>) {
                (**self).fill_projected(side, tile);
            }
            fn writes_once(&self) -> bool {
                (**self).writes_once()
            }
            fn kernel(&self) -> Option<&dyn Kernel<T>> {
                (**self).kernel()
            }
            fn fingerprint(&self) -> u64 {
                (**self).fingerprint()
            }
            fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
                (**self).log_variance(x, y)
            }
            fn feature_dim(&self) -> usize {
                (**self).feature_dim()
            }
            fn features_into(
                &self,
                side: Side,
                x: &ArrayRef2<T>,
                values: &mut ArrayRef2<T>,
                log_scales: &mut ArrayRef2<f64>,
            ) -> Result<()> {
                (**self).features_into(side, x, values, log_scales)
            }
            fn features(&self, side: Side, x: &ArrayRef2<T>) -> Result<Features<T>> {
                (**self).features(side, x)
            }
            fn features_of(&self, side: Side, x: &ArrayRef1<T>) -> Result<Features<T>> {
                (**self).features_of(side, x)
            }
            fn gram(&self, x: &ArrayRef2<T>, y: &ArrayRef2<T>) -> Result<Array2<T>> {
                (**self).gram(x, y)
            }
            fn estimate(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<T> {
                (**self).estimate(x, y)
            }
            fn log_estimate(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<SignedLog> {
                (**self).log_estimate(x, y)
            }
        }
    )*};
}

delegate!(&M, Box<M>, Arc<M>);
