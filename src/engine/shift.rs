//! [`Shift`]: positive features from counts.

use ndarray::ArrayRef2;

use crate::Real;
use crate::digest::identified;
use crate::error::{Error, Result, check_size, checked_positive};
use crate::kernel::Lengthscale;
use crate::once::once;

/// A shift of points that makes features of counts positive. Estimates stay unbiased, except for points beyond the shift,
/// whose coordinates are clamped ([`clamped`](Shift::clamped) counts them).
///
/// ```
/// use random_features::Poisson;
/// use random_features::data::{PairStatistics, Statistics};
/// use random_features::frequency::Counts;
/// use random_features::map::Shift;
/// use random_features::ndarray::arr2;
/// let (queries, keys) =
///     (arr2(&[[0.3, -0.2], [0.5, 0.1]]), arr2(&[[0.1, 0.4], [0.3, -0.4]]));
/// let (x, y) = (
///     Statistics::of(&queries)?.divided_by(2.0)?,
///     Statistics::of(&keys)?.divided_by(2.0)?,
/// );
/// let shift = PairStatistics::new(&x, &y)?.shift(1e-8)?;
/// let (x, y) = (x.shifted(&shift)?, y.shifted(&shift)?);
/// let rates = PairStatistics::new(&x, &y)?.poisson_per_dimension();
/// let omega = Counts::poisson(2, 512, rates, 1)?;
/// let shift = Shift::new(shift, 1e-8)?;
/// let map = Poisson::default().shifted(shift.clone()).gaussian(omega, 2.0)?;
/// assert!(map.gram(&queries, &keys)?.iter().all(|v: &f64| *v > 0.0));
/// assert_eq!(shift.clamped(&queries, &2.0.into())?, 0);
/// assert_eq!(shift.clamped(&arr2(&[[-9.0, 0.0]]), &2.0.into())?, 1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// The Gaussian kernel is invariant under shifts: K(x, y) = K(x − c, y − c). Features of the
/// [`Poisson`](crate::Poisson) or the [`Geometric`](crate::Geometric) map at u = x/ℓ − c, where every
/// coordinate is at least ε > 0, are products of positive numbers. For softmax the factor e^{½‖x/ℓ‖²} is that
/// of the unshifted x. A coordinate of u below ε is set to ε: the features are then those of another point,
/// and estimates with it are biased for K(x, y).
///
/// c is in units of the lengthscale, as [`PairStatistics::shift`](crate::data::PairStatistics::shift) of
/// [divided](crate::data::Statistics::divided_by) statistics gives it. The rates or p must suit the shifted
/// points: choose them from [shifted](crate::data::Statistics::shifted) statistics.
///
/// # Variance
/// The variance of the map at u, usually larger than without a shift because ‖u‖ is larger.
///
/// # Exact where
/// The map is exact, with u in place of x.
///
/// # Cost
/// The cost of the map.
///
/// # References
/// Likhosherstov et al., *Chefs' Random Tables*, appendix 9.10.2.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredShift", into = "StoredShift")
)]
pub struct Shift {
    by: Vec<f64>,
    least: f64,
}

identified! { Shift { by, least } }

impl Shift {
    /// The shift by c = `by` that keeps coordinates at ε = `least` or above, both in units of the lengthscale.
    ///
    /// # Errors
    /// [`Entry`](Error::Entry) with the first entry of c that has no finite square, [`Parameter`](Error::Parameter) if ε
    /// is not positive and finite or c is empty.
    pub fn new(by: Vec<f64>, least: f64) -> Result<Self> {
        crate::error::check_positive("the dimension of the shift", by.len())?;
        if let Some(row) = by.iter().position(|c| !(c * c).is_finite()) {
            let (value, domain) = (by[row], "a number with a finite square");
            return Err(Error::Entry { what: "the shift", row, value, domain });
        }
        Ok(Shift { by, least: checked_positive("epsilon", least)? })
    }

    /// The shift c, d entries in units of the lengthscale.
    pub fn by(&self) -> &[f64] {
        &self.by
    }

    /// The least coordinate ε.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// The number of coordinates of the rows of `x`, n × d, that are clamped: estimates with them are biased. Rows that hold NaN
    /// or an infinity do not count. Cost O(nd).
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d columns or the lengthscale is for another dimension,
    /// [`Parameter`](Error::Parameter) if the lengthscale is outside its domain.
    #[inline(never)]
    pub fn clamped<T: Real>(&self, x: &ArrayRef2<T>, lengthscale: &Lengthscale) -> Result<usize> {
        check_size("the number of columns of x", self.by.len(), x.ncols())?;
        let lengthscale = lengthscale.clone().checked()?;
        lengthscale.check_dim(x.ncols())?;
        let finite = x.rows().into_iter().filter(|x| x.iter().all(|v| v.is_finite()));
        let outside = |(l, v): (usize, &T)| self.inside(l, v.widen() / lengthscale.at(l)).is_none();
        Ok(finite.map(|x| x.iter().enumerate().filter(|v| outside(*v)).count()).sum())
    }

    /// Coordinate `l` of the shifted point, if it need not be clamped.
    pub(super) fn inside(&self, l: usize, scaled: f64) -> Option<f64> {
        let (c, u) = (self.by[l], scaled - self.by[l]);
        // For the point with the smallest coordinate, from which c was chosen, u is ε up to rounding.
        let floor = self.least - (c.abs() + self.least) * f64::EPSILON;
        let outside = u < floor.max(f64::MIN_POSITIVE);
        (!outside).then_some(u)
    }

    /// Coordinate `l` of the shifted point.
    pub(crate) fn moved(&self, l: usize, scaled: f64) -> f64 {
        self.inside(l, scaled).unwrap_or(self.least)
    }
}

/// The stored form, checked again when it is read.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredShift {
    #[serde(with = "crate::exact")]
    by: Vec<f64>,
    #[serde(with = "crate::exact")]
    least: f64,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredShift> for Shift {
    type Error = Error;

    fn try_from(stored: StoredShift) -> Result<Self> {
        Shift::new(stored.by, stored.least)
    }
}

#[cfg(feature = "serde")]
impl From<Shift> for StoredShift {
    fn from(shift: Shift) -> Self {
        StoredShift { by: shift.by, least: shift.least }
    }
}

once!(Shift::clamped::<T>);
