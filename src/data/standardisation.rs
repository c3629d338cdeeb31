//! [`Standardisation`]: centring and scaling of inputs, as part of a model.

use ndarray::{Array2, ArrayRef1, ArrayRef2, ArrayView1, ArrayView2, Axis};

use super::Statistics;
use super::statistics::{checked_row_weight, checked_weight, is_constant};
use crate::Real;
use crate::error::{Error, Result, check_finite, check_positive, check_size};
use crate::memory::check_memory;
use crate::numeric::{Twofold, power_of_two_below};
use crate::once::once;

/// The least variance above the rounding of squares that are below the normal numbers.
const LEAST_VARIANCE: f64 = f64::MIN_POSITIVE / f64::EPSILON;

/// Centres and scales points before a map is applied: x ↦ (x − centre) / scale in each coordinate. A constant column becomes 0.
///
/// ```
/// use random_features::ndarray::arr2;
/// use random_features::apply::Standardisation;
/// let x = arr2(&[[1.0f64, 7.0], [3.0, 7.0]]);
/// let inputs = Standardisation::of(&x)?;
/// assert_eq!(
///     (inputs.centre(), inputs.scales()),
///     (&[2.0, 7.0][..], &[1.0, 1.0][..])
/// );
/// assert_eq!(inputs.constant_columns(), [1]);
/// assert_eq!(inputs.apply(&arr2(&[[3.0, 9.0]]))?, arr2(&[[1.0, 0.0]]));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Constant columns
/// A column is constant if its range, max − min, is at most 4 ε times its largest magnitude, for the ε of its scalar type. It is
/// also constant if its deviation is below the least normal number. Batches, weights, streams and merged parts all give the same
/// answer. Nothing can be learnt from such a column: it becomes 0 for every finite input, even for values that did not occur in
/// training. Its scale is given as 1.
///
/// # Far points
/// A point gets NaN features, and so NaN predictions, if a standardised coordinate overflows `T`, or its squared norm `f64`.
#[doc(alias = "StandardScaler")]
#[derive(Clone, Debug, PartialEq)]
pub struct Standardisation {
    centre: Vec<f64>,
    /// The rounding error of each centre, so that differences from the mean keep their digits wherever the mean is.
    rest: Vec<f64>,
    scale: Vec<f64>,
    /// The constant columns, ascending, which become 0.
    constant: Vec<usize>,
}

impl Standardisation {
    /// The standardisation with a given centre and a given scale for each coordinate; no column is constant.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there are not as many scales as centres, [`Parameter`](Error::Parameter) if there are no
    /// centres, [`Entry`](Error::Entry) if a centre is not finite or a scale not positive and finite.
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
        let rest = vec![0.0; centre.len()];
        Ok(Standardisation { centre, rest, scale, constant: Vec::new() })
    }

    /// Sets the rounding error of each centre.
    fn with_rests(self, rest: Vec<f64>) -> Result<Self> {
        check_size("the number of rests of centres", self.centre.len(), rest.len())?;
        let wrong = |(rest, centre): (&f64, &f64)| centre + rest != *centre;
        if let Some(row) = rest.iter().zip(&self.centre).position(wrong) {
            let (what, domain) = ("the rests of the centres", "below half a place of the centre");
            return Err(Error::Entry { what, row, value: rest[row], domain });
        }
        Ok(Standardisation { rest, ..self })
    }

    /// Sets the constant columns, counted from 0 and ascending, which become 0 whatever their centres and scales are.
    ///
    /// # Errors
    /// [`Entry`](Error::Entry) if a column does not exist or does not come after the one before it.
    pub fn with_constant_columns(self, columns: Vec<usize>) -> Result<Self> {
        let ascending = |place: usize| place == 0 || columns[place - 1] < columns[place];
        let sound = |place: usize| ascending(place) && columns[place] < self.centre.len();
        if let Some(row) = (0..columns.len()).find(|place| !sound(*place)) {
            let domain = "above the one before it and below the number of coordinates";
            return Err(Error::Entry {
                what: "the constant columns",
                row,
                value: columns[row] as f64,
                domain,
            });
        }
        Ok(Standardisation { constant: columns, ..self })
    }

    /// The standardisation by the means and standard deviations (over n, not n − 1) of the columns of `x`, n × d.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) if there is no row, [`NotFinite`](Error::NotFinite) if a number is not finite,
    /// [`Entry`](Error::Entry) if a column's deviation overflows.
    pub fn of<T: Real>(x: &ArrayRef2<T>) -> Result<Self> {
        Self::of_weighted(x, None)
    }

    /// The standardisation by the means and standard deviations of the columns of `x`, n × d, with a weight for each row, which
    /// says how often it counts. Weights of 1 give the same bits as no weights.
    #[inline(never)]
    pub(crate) fn of_weighted<T: Real>(x: &ArrayRef2<T>, weights: Option<&ArrayRef1<f64>>) -> Result<Self> {
        let unit = weights.map_or(Ok(1.0), |weights| checked_unit(weights, x.nrows()))?;
        if x.nrows() == 0 || unit == 0.0 {
            return Err(Error::NoData { what: "a standardisation" });
        }
        check_finite("x", x)?;
        let weight = |i: usize| weights.map_or(1.0, |weights| weights[i] / unit);
        Self::of_columns(x.axis_iter(Axis(1)).map(|column| Ok(moments(column, weight))))
    }

    /// The standardisation by the means and standard deviations of points that were read in batches, with weights or without.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) if there was no point, [`Entry`](Error::Entry) with the first column that is not constant and
    /// has a variance below 1e-292, where statistics lose its digits: scale such a column, or take [`of`](Standardisation::of).
    pub fn of_statistics(statistics: &Statistics) -> Result<Self> {
        statistics.mean()?;
        Self::of_columns(statistics.coordinates().iter().enumerate().map(|(row, c)| {
            let mean = c.mean_words();
            if statistics.is_constant(row) || c.max - c.min < f64::MIN_POSITIVE {
                return Ok((mean, None));
            }
            let (what, domain) =
                ("the variances of the coordinates", "at least 1e-292: scale the coordinate");
            let error = Error::Entry { what, row, value: c.variance, domain };
            if c.variance < LEAST_VARIANCE { Err(error) } else { Ok((mean, Some(c.variance.sqrt()))) }
        }))
    }

    /// The standardisation by the mean and the deviation of each column; a constant column has no deviation.
    fn of_columns(columns: impl Iterator<Item = Result<(Twofold, Option<f64>)>>) -> Result<Self> {
        let (means, deviations): (Vec<Twofold>, Vec<Option<f64>>) =
            columns.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let (centre, rest): (Vec<f64>, Vec<f64>) = means.iter().map(|mean| (mean.high, mean.low)).unzip();
        let constant = (0..centre.len()).filter(|k| deviations[*k].is_none()).collect();
        let scale = deviations.into_iter().map(|deviation| deviation.unwrap_or(1.0)).collect();
        Standardisation::new(centre, scale)?.with_rests(rest)?.with_constant_columns(constant)
    }

    /// The standardisation of some of the coordinates, in the order named.
    ///
    /// ```
    /// use random_features::ndarray::arr2;
    /// use random_features::apply::Standardisation;
    /// let inputs = Standardisation::of(&arr2(&[[1.0f64, 7.0], [3.0, 7.0]]))?;
    /// assert_eq!(inputs.select(&[0])?, Standardisation::of(&arr2(&[[1.0], [3.0]]))?);
    /// assert_eq!(inputs.select(&[1, 0])?.constant_columns(), [0]);
    /// assert!(inputs.select(&[2]).is_err());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if no coordinate is named, [`Entry`](Error::Entry) with the first that does not exist.
    pub fn select(&self, coordinates: &[usize]) -> Result<Self> {
        if let Some(row) = coordinates.iter().position(|k| *k >= self.centre.len()) {
            let (what, domain) = ("the coordinates", "below the number of coordinates");
            return Err(Error::Entry { what, row, value: coordinates[row] as f64, domain });
        }
        let of = |all: &[f64]| coordinates.iter().map(|k| all[*k]).collect::<Vec<f64>>();
        let is_constant = |place: &usize| self.constant.contains(&coordinates[*place]);
        let constant = (0..coordinates.len()).filter(is_constant).collect();
        let chosen = Standardisation::new(of(&self.centre), of(&self.scale))?;
        chosen.with_rests(of(&self.rest))?.with_constant_columns(constant)
    }

    /// The centres, which are subtracted first. The rounding errors of means are subtracted afterwards.
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// The scales, by which centred coordinates are divided; 1 for constant columns.
    pub fn scales(&self) -> &[f64] {
        &self.scale
    }

    /// The constant columns, counted from 0 and ascending, which become 0 for every finite input.
    pub fn constant_columns(&self) -> &[usize] {
        &self.constant
    }

    /// Standardises points, n × d: n × d numbers. A constant column becomes NaN where `x` is not finite.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `x` does not have d columns, [`Memory`](Error::Memory) if the result does not fit in memory.
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
            let moments = self.centre.iter().zip(&self.rest).zip(&self.scale);
            for ((out, x), ((centre, rest), scale)) in out.iter_mut().zip(x).zip(moments) {
                *out = T::narrow(((x.widen() - centre) - rest) / scale);
            }
            // The result is NaN where x is not finite, as in other columns.
            self.constant.iter().for_each(|k| out[*k] = T::zero() * x[*k] + T::zero());
        }
    }
}

/// The mean of a column, and its deviation unless it is constant, over rows of positive weight.
fn moments<T: Real>(column: ArrayView1<'_, T>, weight: impl Fn(usize) -> f64) -> (Twofold, Option<f64>) {
    let rows = || (0..column.len()).map(|i| (column[i].widen(), weight(i))).filter(|(_, w)| *w > 0.0);
    let heaviest = rows().reduce(|best, row| if row.1 > best.1 { row } else { best });
    let first = heaviest.map_or(0.0, |(v, _)| v);
    let ends = rows().fold((first, first), |(least, most), (v, _)| (v.min(least), v.max(most)));
    // Differences are from the first entry of the largest weight, which is never far from the mean, so that small ones are exact.
    // They are in units of the largest difference, so that no square overflows or underflows.
    let (least, most) = ends;
    let unit = if most > least { (most - first).max(first - least) } else { 1.0 };
    let total: f64 = rows().map(|(_, w)| w).sum();
    let mean =
        |term: &dyn Fn(f64) -> f64| rows().map(|(v, w)| w * term((v - first) / unit)).sum::<f64>() / total;
    let offset = mean(&|v| v);
    let deviation = mean(&|v| (v - offset).powi(2)).sqrt() * unit;
    let constant = is_constant(ends, T::epsilon().widen()) || deviation < f64::MIN_POSITIVE;
    (Twofold::default().add(first).add(offset * unit), (!constant).then_some(deviation))
}

/// A power of two near the largest of the weights, one for each row, by which they are divided; 0 if all weights are 0.
fn checked_unit(weights: &ArrayRef1<f64>, rows: usize) -> Result<f64> {
    check_size("the number of weights", rows, weights.len())?;
    let (mut total, mut largest) = (0.0, 0.0f64);
    for (row, weight) in weights.iter().enumerate() {
        let weight = checked_row_weight(*weight, row)?;
        total = checked_weight(total + weight)?;
        largest = largest.max(weight);
    }
    Ok(if largest > 0.0 { power_of_two_below(largest) } else { 0.0 })
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
            #[serde(with = "crate::exact")]
            rest: Vec<f64>,
            constant: Vec<usize>,
        }
    }

    impl TryFrom<StoredStandardisation> for Standardisation {
        type Error = Error;

        fn try_from(stored: StoredStandardisation) -> Result<Self> {
            let StoredStandardisation { centre, scale, rest, constant } = stored;
            Standardisation::new(centre, scale)?.with_rests(rest)?.with_constant_columns(constant)
        }
    }
}

once!(Standardisation::of_weighted::<T>, Standardisation::apply::<T>);
