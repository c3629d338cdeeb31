//! [`Standardisation`]: centring and scaling of inputs, as part of a model.

use ndarray::{Array2, ArrayRef2, ArrayView2, Axis};

use super::Statistics;
use super::statistics::{Coordinate, is_constant};
use crate::Real;
use crate::error::{Error, Result, check_finite, check_positive, check_size};
use crate::memory::check_memory;
use crate::once::once;

/// x ↦ (x − centre) / scale in each coordinate, applied to points before a map sees them.
///
/// # Example
/// ```
/// use ndarray::arr2;
/// use random_features::apply::Standardisation;
/// let x = arr2(&[[1.0f64, 7.0], [3.0, 7.0]]);
/// let inputs = Standardisation::of(&x)?;
/// assert_eq!((inputs.centre(), inputs.scale()), (&[2.0, 7.0][..], &[1.0, 1.0][..]));
/// assert_eq!(inputs.apply(&x)?, arr2(&[[-1.0, 0.0], [1.0, 0.0]]));
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Standardisation {
    centre: Vec<f64>,
    scale: Vec<f64>,
}

impl Standardisation {
    /// With a centre and a scale for each coordinate.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if they have different lengths, [`Parameter`](Error::Parameter) if they are empty,
    /// [`Entry`](Error::Entry) if a centre is not finite or a scale not positive and finite.
    pub fn new(centre: Vec<f64>, scale: Vec<f64>) -> Result<Self> {
        check_positive("the number of centres", centre.len())?;
        check_size("the number of scales", centre.len(), scale.len())?;
        let entry =
            |what, (row, value): (usize, &f64), domain| Error::Entry { what, row, value: *value, domain };
        if let Some(wrong) = centre.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            return Err(entry("the centre", wrong, "finite"));
        }
        if let Some(wrong) = scale.iter().enumerate().find(|(_, v)| !(v.is_normal() && **v > 0.0)) {
            return Err(entry("the scale", wrong, "positive and a normal number"));
        }
        Ok(Standardisation { centre, scale })
    }

    /// The means and standard deviations (over n, not n − 1) of the columns of `x`, n × d. A column that is constant up to
    /// rounding gets scale 1, so it is only centred: its range, max − min, is at most 4 ε of its largest magnitude.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) if there is no row, [`NotFinite`](Error::NotFinite) if a number is not finite,
    /// [`Entry`](Error::Entry) if a column's deviation overflows.
    #[inline(never)]
    pub fn of<T: Real>(x: &ArrayRef2<T>) -> Result<Self> {
        if x.nrows() == 0 {
            return Err(Error::NoData { what: "a standardisation" });
        }
        check_finite("x", x)?;
        let moments = |column: ndarray::ArrayView1<'_, T>| {
            let first = column[0].widen();
            let values = || column.iter().map(|v| v.widen());
            let (least, most) = values().fold((first, first), |(least, most), v| (v.min(least), v.max(most)));
            // Relative to the first entry, beside which small differences are exact, and in units of the largest difference, so that
            // no square overflows or underflows.
            let unit = if most > least { (most - first).max(first - least) } else { 1.0 };
            let mean = |term: &dyn Fn(f64) -> f64| {
                values().map(|v| term((v - first) / unit)).sum::<f64>() / x.nrows() as f64
            };
            let centre = mean(&|v| v);
            let deviation = mean(&|v| (v - centre).powi(2)).sqrt() * unit;
            (first + centre * unit, scale_of((least, most), T::epsilon().widen(), deviation))
        };
        let (centre, scale) = x.axis_iter(Axis(1)).map(moments).unzip();
        Standardisation::new(centre, scale)
    }

    /// The means and standard deviations of points that were read in batches, with weights or without. A coordinate that is constant
    /// up to rounding gets scale 1: its range is at most 4 ε of its largest magnitude, whatever the batches, their
    /// order and the weights. ε is that of the least precise numbers among the points.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) if there was no point.
    pub fn of_statistics(statistics: &Statistics) -> Result<Self> {
        let centre = statistics.mean()?;
        let scale = |c: &Coordinate| scale_of((c.min, c.max), statistics.epsilon(), c.variance.sqrt());
        Standardisation::new(centre, statistics.coordinates().iter().map(scale).collect())
    }

    /// The centres, which are subtracted first.
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// The scales, by which centred coordinates are divided.
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// The standardised points, n × d.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` has another number of columns, [`Memory`](Error::Memory) if there is no memory for the
    /// result.
    #[inline(never)]
    pub fn apply<T: Real>(&self, x: &ArrayRef2<T>) -> Result<Array2<T>> {
        check_size("the number of columns of x", self.centre.len(), x.ncols())?;
        check_memory("rows of standardised points", x.nrows(), x.ncols().saturating_mul(size_of::<T>()))?;
        let mut out = Array2::zeros((0, 0));
        self.write(x.view(), &mut out);
        Ok(out)
    }

    /// Writes the standardised points to `out`.
    pub(crate) fn write<T: Real>(&self, x: ArrayView2<'_, T>, out: &mut Array2<T>) {
        if out.dim() != x.dim() {
            *out = Array2::zeros(x.dim());
        }
        for (mut out, x) in out.rows_mut().into_iter().zip(x.rows()) {
            let moments = self.centre.iter().zip(&self.scale);
            for ((out, x), (centre, scale)) in out.iter_mut().zip(x).zip(moments) {
                *out = T::narrow((x.widen() - centre) / scale);
            }
        }
    }
}

/// The scale of values between these ends, with this deviation: 1 if they are constant. A deviation that underflows is none.
fn scale_of(ends: (f64, f64), epsilon: f64, deviation: f64) -> f64 {
    if is_constant(ends, epsilon) || deviation < f64::MIN_POSITIVE { 1.0 } else { deviation }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::Standardisation;
    use crate::error::{Error, Result};
    use crate::sealed::{AnyScalar, sealed_fields};

    sealed_fields! {
        Standardisation, AnyScalar,
        #[serde(rename = "Standardisation")]
        struct StoredStandardisation {
            #[serde(with = "crate::exact")]
            centre: Vec<f64>,
            #[serde(with = "crate::exact")]
            scale: Vec<f64>,
        }
    }

    impl TryFrom<StoredStandardisation> for Standardisation {
        type Error = Error;

        fn try_from(StoredStandardisation { centre, scale }: StoredStandardisation) -> Result<Self> {
            Standardisation::new(centre, scale)
        }
    }
}

once!(Standardisation::of::<T>, Standardisation::apply::<T>);
