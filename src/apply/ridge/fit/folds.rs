//! [`Folds`]: errors at parts of the data to which the regression was not fitted, from their rows or from their sums alone.
//!
//! # Definition
//! Let F be a fold of weight N_F, with A_F, c_F and q_F centred at its means φ̄_F and ȳ_F. The regression on the other folds has
//! φ̄, ȳ and β. Then the squared errors of a target on F add up to q_F − 2 β·c_F + βᵀA_F β + N_F (ȳ_F − ȳ − (φ̄_F − φ̄)·β)².
//!
//! # Rounding
//! Rounding changes predictions as at single points, and the bounds of the points add up. Differences of sums lose more digits.
//! If δ is the error of A_F in one direction, these are at most δ‖β‖² + 2‖β‖√(ρ δ q_F), and about 4 η (q_F + βᵀA_F β) from
//! products of D terms.

use ndarray::{Array1, Array2, ArrayView1};

use super::error_table::ErrorTable;
use super::levels::averaging;
use super::points::{PointErrors, points_noise};
use super::{Normal, RidgeRows, RidgeSpectrum, RidgeStatistics};
use crate::error::{Error, Result};
use crate::reduce::GramSums;
use crate::{Real, threads};

/// Folds, each with the regression on the other folds.
pub(super) struct Folds<T: Real>(Vec<Fold<T>>);

/// A fold, and the regression on the other folds.
struct Fold<T: Real> {
    trained: RidgeSpectrum<T>,
    test: TestData<T>,
}

/// The rows or the sums on which a regression is tested.
enum TestData<T: Real> {
    Rows(RidgeRows<'static, T>),
    Sums(TestSums),
}

/// The sums over a fold, in the eigenvectors of a regression.
struct TestSums {
    /// N_F.
    weight: f64,
    /// VᵀA_F V.
    gram: Array2<f64>,
    /// Vᵀc_F, a column for each target.
    cross: Array2<f64>,
    /// q_F for each target.
    squares: Vec<f64>,
    /// Vᵀ(φ̄_F − φ̄).
    shift: Array1<f64>,
    /// ȳ_F − ȳ for each target.
    means: Array1<f64>,
    /// δ, the error of A_F in one direction.
    noise: f64,
    /// ρ, the relative error of sums over its rows.
    rounding: f64,
}

impl<T: Real> Folds<T> {
    /// Folds that are tested by their rows, each with the regression on the other folds.
    pub fn of_rows(folds: Vec<(RidgeSpectrum<T>, RidgeRows<'static, T>)>) -> Self {
        Folds(folds.into_iter().map(|(trained, rows)| Fold { trained, test: TestData::Rows(rows) }).collect())
    }

    /// Tests each fold by the regression on all other folds, from sums alone. With a gap it tests each block by the regression on
    /// the blocks before it, except for the last `gap` of these.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there are too few folds, [`Entry`](Error::Entry) with the first fold that has no
    /// weight; the errors of [`RidgeStatistics::merge`] and [`RidgeStatistics::spectrum`].
    pub fn of_sums(parts: &[&RidgeStatistics<T>], gap: Option<usize>) -> Result<Self> {
        check(parts, gap)?;
        let fold = |k: usize| {
            let training = match gap {
                Some(gap) => merged(&parts[..k - gap])?,
                None => merged(&[&parts[..k], &parts[k + 1..]].concat())?,
            };
            let mut trained = training.spectrum()?;
            let test = TestData::Sums(TestSums::new(parts[k], &mut trained)?);
            Ok(Fold { trained, test })
        };
        let folds = threads::map(gap.map_or(0, |gap| gap + 1)..parts.len(), fold);
        Ok(Folds(folds.into_iter().collect::<Result<_>>()?))
    }

    /// The errors of some targets for each λ over all folds that are tested; infinite where rounding outweighs them.
    pub fn errors(&self, targets: &[usize], lambdas: &[f64]) -> Result<ErrorTable> {
        let parts = self.0.iter().map(|fold| fold.errors(targets, lambdas)).collect::<Result<Vec<_>>>()?;
        let count = self.0.first().map_or(0, |fold| fold.trained.rotated.ncols());
        let weight = self.0.iter().map(|fold| fold.test.weight()).sum();
        Ok(PointErrors::table(&parts, (targets, count), weight))
    }
}

impl<T: Real> TestData<T> {
    fn weight(&self) -> f64 {
        match self {
            TestData::Rows(rows) => rows.targets.total(),
            TestData::Sums(sums) => sums.weight,
        }
    }
}

impl<T: Real> Fold<T> {
    /// The squared errors for each λ: first the sum over the targets, then each target.
    fn errors(&self, targets: &[usize], lambdas: &[f64]) -> Result<Vec<PointErrors>> {
        let mut out = vec![PointErrors::UNKNOWN; lambdas.len() * (targets.len() + 1)];
        // A regression on fewer rows may have a larger least λ than the regression on all rows.
        let known = |place: &usize| self.trained.check(lambdas[*place]).is_ok();
        let places: Vec<usize> = (0..lambdas.len()).filter(known).collect();
        let lambdas: Vec<f64> = places.iter().map(|place| lambdas[*place]).collect();
        let mut out_of = out.chunks_exact_mut(targets.len() + 1).collect::<Vec<_>>();
        match &self.test {
            TestData::Rows(rows) => {
                let means = self.trained.errors_at(rows, targets, &lambdas, false)?;
                for (k, place) in places.into_iter().enumerate() {
                    let own = targets.iter().map(|j| means.each[[k, *j]]);
                    for (sum, mean) in out_of[place].iter_mut().zip([means.sums[k]].into_iter().chain(own)) {
                        let errors = mean * self.test.weight();
                        *sum = if mean.is_finite() { PointErrors { errors, lost: 0.0 } } else { *sum };
                    }
                }
            }
            TestData::Sums(sums) => {
                for (lambda, place) in lambdas.iter().zip(places) {
                    sums.write_errors(&self.trained, targets, *lambda, out_of[place]);
                }
            }
        }
        Ok(out)
    }
}

impl TestSums {
    /// The sums of a fold in the eigenvectors of `trained`, which are dropped afterwards.
    fn new<T: Real>(part: &RidgeStatistics<T>, trained: &mut RidgeSpectrum<T>) -> Result<Self> {
        let mut normal = Normal::centred(part.sums())?;
        for f in 0..normal.a.nrows() {
            for g in 0..f {
                normal.a[[g, f]] = normal.a[[f, g]];
            }
        }
        let vectors = std::mem::take(&mut trained.vectors);
        let of = &trained.normal;
        Ok(TestSums {
            weight: normal.weight,
            gram: vectors.t().dot(&normal.a.dot(&vectors)),
            cross: vectors.t().dot(&normal.c),
            shift: vectors.t().dot(&(&normal.mean_features - &of.mean_features)),
            means: (&normal.references - &of.references) + (&normal.offsets - &of.offsets),
            noise: points_noise::<T>(&normal, part.rows() as f64),
            rounding: averaging::<T>(part.rows() as f64) * GramSums::<T>::rounding(),
            squares: normal.squares,
        })
    }

    /// Writes the squared errors of some targets for one λ, with bounds of their rounding errors; the sum over the targets comes
    /// first.
    fn write_errors<T: Real>(
        &self,
        trained: &RidgeSpectrum<T>,
        targets: &[usize],
        lambda: f64,
        out: &mut [PointErrors],
    ) {
        let (level, values) = (trained.level(lambda), &trained.shrinkage.values);
        let (mut spread, mut square) = (0.0, 0.0);
        for ((s, own), shift) in values.iter().zip(self.gram.diag()).zip(&self.shift) {
            let part = own + self.weight * shift * shift;
            square += part;
            spread += part / (s + lambda) * (level.noise / (s + lambda));
        }
        out.fill(PointErrors::default());
        for (place, j) in targets.iter().copied().enumerate() {
            let beta: Array1<f64> =
                trained.rotated.column(j).iter().zip(values).map(|(c, s)| c / (s + lambda)).collect();
            let (errors, added) = self.squared(beta.view(), j, trained.products_rounding());
            let moved = spread.sqrt() * level.sums[j] + square.sqrt() * level.products[j];
            let lost = moved + (errors + added).sqrt() - errors.sqrt();
            let own = PointErrors { errors, lost: lost * lost };
            out[0].add(own);
            out[1 + place].add(own);
        }
    }

    /// The squared errors of β for a target, and a bound of what rounding of the sums of this fold adds.
    fn squared(&self, beta: ArrayView1<'_, f64>, j: usize, eta: f64) -> (f64, f64) {
        let (fitted, norm, total) =
            (beta.dot(&self.gram.dot(&beta)), beta.dot(&beta).sqrt(), self.squares[j]);
        let within = total - 2.0 * beta.dot(&self.cross.column(j)) + fitted;
        let between = self.weight * (self.means[j] - self.shift.dot(&beta)).powi(2);
        let of_products = norm * (self.noise * norm + 2.0 * (self.rounding * self.noise * total).sqrt());
        (within.max(0.0) + between, of_products + 4.0 * eta * (total + fitted.abs()))
    }
}

/// Rejects too few folds or blocks, and those without rows of positive weight.
fn check<T: Real>(parts: &[&RidgeStatistics<T>], gap: Option<usize>) -> Result<()> {
    let (name, domain, least) = match gap {
        None => ("the number of folds", "at least 2", 2),
        Some(gap) => ("the number of blocks", "at least 2 more than the gap", gap.saturating_add(2)),
    };
    if parts.len() < least {
        return Err(Error::Parameter { name, value: parts.len() as f64, domain });
    }
    let (what, domain) =
        ("the weights of folds and blocks", "positive: each must have rows of positive weight");
    let empty = parts.iter().position(|part| part.sums().present() == 0);
    empty.map_or(Ok(()), |row| Err(Error::Entry { what, row, value: 0.0, domain }))
}

/// The statistics of all rows of some parts, at least one.
fn merged<T: Real>(parts: &[&RidgeStatistics<T>]) -> Result<RidgeStatistics<T>> {
    let [first, others @ ..] = parts else { return Err(Error::NoData { what: "a fold" }) };
    let mut all = (*first).clone();
    others.iter().try_for_each(|part| all.merge(part))?;
    Ok(all)
}
