//! Where kernel values come from in classification, and how well they classify.

use experiments::dataset::{Part, Split};
use random_features::apply::{ExactSmoother, RidgeStatistics, Smoother};
use random_features::data::{PairStatistics, Statistics};
use random_features::frequency::Counts;
use random_features::kernel::Gaussian;
use random_features::map::Shift;
use random_features::ndarray::{Array1, Array2};
use random_features::recipe::{AnyCoupling, Rates};
use random_features::theory::gerf::GerfSign;
use random_features::{Geometric, Gerf, Map, Poisson, Positive, Trigonometric, rng_of_step};

use crate::item::Stop;

/// The draws of a repetition with a purpose: no two have the same ones.
pub fn draws(seed: u64, purpose: u64, repetition: u64) -> (u64, u64) {
    (seed, purpose << 32 | repetition)
}

/// How far from 0 the coordinates of shifted points stay, as in Chefs' Random Tables.
const MARGIN: f64 = 1e-8;

/// A way to get the values of the Gaussian kernel, with as many real features for all of them. Parameters are chosen from the training points.
#[derive(Clone, Copy)]
pub enum Source {
    Exact,
    Positive(AnyCoupling),
    /// Optimal positive features (OPRF).
    Optimal(AnyCoupling),
    /// Half as many frequencies as features.
    Trigonometric(AnyCoupling),
    /// The best generalised exponential map of as many features; half as many frequencies if its s is −1.
    Gerf(AnyCoupling),
    Poisson {
        /// One λ for each coordinate.
        each: bool,
        /// At shifted points, where features are positive.
        shifted: bool,
    },
    Geometric {
        shifted: bool,
    },
}

/// The shift of Poisson and geometric features, and the parameters at shifted points.
fn counting<P>(
    x: &Array2<f64>,
    shifted: bool,
    fit: impl Fn(&PairStatistics<'_>) -> P,
) -> Result<(Option<Shift>, P), Stop> {
    let statistics = Statistics::of(x)?;
    let pairs = PairStatistics::new(&statistics, &statistics)?;
    if !shifted {
        return Ok((None, fit(&pairs)));
    }
    let by = pairs.shift(MARGIN)?;
    let moved = Statistics::of(&(x - &Array1::from(by.clone())))?;
    Ok((Some(Shift::new(by, MARGIN)?), fit(&PairStatistics::new(&moved, &moved)?)))
}

impl Source {
    /// The map for σ·x, fitted to the training points; `None` for the exact kernel.
    fn map(self, train: &Part, sigma: f64, m: usize, draws: (u64, u64)) -> Result<Option<Map<f64>>, Stop> {
        let (d, mut rng) = (train.points.ncols(), rng_of_step(draws.0, draws.1));
        let lengthscale = 1.0 / sigma;
        let scaled = || sigma * &train.points;
        let half = (m / 2).max(1);
        Ok(Some(match self {
            Source::Exact => return Ok(None),
            Source::Positive(coupling) => {
                Positive.gaussian(coupling.draw(d, m, rng.next_u64())?, lengthscale)?
            }
            Source::Trigonometric(coupling) => {
                Trigonometric.gaussian(coupling.draw(d, half, rng.next_u64())?, lengthscale)?
            }
            Source::Optimal(coupling) => {
                let statistics = Statistics::of(&scaled())?;
                let pairs = PairStatistics::new(&statistics, &statistics)?;
                let gerf = Gerf::optimal(d, pairs.mean_squared_sum(GerfSign::Plus))?;
                gerf.gaussian(coupling.draw(d, m, rng.next_u64())?, lengthscale)?
            }
            Source::Gerf(coupling) => {
                let statistics = Statistics::of(&scaled())?;
                let (a, sign) = PairStatistics::new(&statistics, &statistics)?.gerf_of_features();
                let m = if sign == GerfSign::Plus { m } else { half };
                Gerf::new(a, sign)?.gaussian(coupling.draw(d, m, rng.next_u64())?, lengthscale)?
            }
            Source::Poisson { each, shifted } => {
                let (shift, rates) = counting(&scaled(), shifted, |pairs| match each {
                    true => Rates::from(pairs.poisson_per_dimension()),
                    false => Rates::from(pairs.poisson()),
                })?;
                let plain = Poisson::default();
                let map = shift.map_or(plain.clone(), |shift| plain.shifted(shift));
                map.gaussian(Counts::poisson(d, m, rates, rng.next_u64())?, lengthscale)?
            }
            Source::Geometric { shifted } => {
                let (shift, p) = counting(&scaled(), shifted, |pairs| pairs.geometric())?;
                let plain = Geometric::default();
                let map = shift.map_or(plain.clone(), |shift| plain.shifted(shift));
                map.gaussian(Counts::geometric(d, m, p, rng.next_u64())?, lengthscale)?
            }
        }))
    }

    /// The accuracies on the validation and the test part of kernel regression with this σ and m features.
    pub fn accuracies(
        self,
        split: &Split,
        sigma: f64,
        m: usize,
        draws: (u64, u64),
    ) -> Result<[f64; 2], Stop> {
        let Split { train, classes, .. } = split;
        match self.map(train, sigma, m, draws)? {
            Some(map) => {
                let mut smoother = Smoother::new(map, *classes)?;
                smoother.update(&train.points, &train.labels)?;
                shares(split, |points| smoother.classify(points))
            }
            None => {
                let kernel = Gaussian::new(1.0 / sigma)?;
                let mut smoother = ExactSmoother::new(kernel, train.points.ncols(), *classes)?;
                smoother.update(&train.points, &train.labels)?;
                shares(split, |points| smoother.classify(points))
            }
        }
    }

    /// The accuracies of ridge regression on indicators of the classes, without intercept, for each weight φ of the penalty.
    ///
    /// The exact kernel has no features to regress on: it is an error.
    pub fn ridge_accuracies(
        self,
        split: &Split,
        sigma: f64,
        penalties: &[f64],
        m: usize,
        draws: (u64, u64),
    ) -> Result<Vec<[f64; 2]>, Stop> {
        let Split { train, classes, .. } = split;
        let map = self.map(train, sigma, m, draws)?;
        let map = map.ok_or_else(|| Stop::Failed("the exact kernel has no features".into()))?;
        let mut statistics = RidgeStatistics::new(map, *classes)?.without_intercept();
        statistics.update(&train.points, &train.labels)?;
        let one = |penalty: &f64| {
            let ridge = statistics.solve(*penalty)?;
            shares(split, |points| ridge.classify(points))
        };
        penalties.iter().map(one).collect()
    }
}

/// The shares of the validation and of the test part that are classified correctly.
fn shares(
    split: &Split,
    classify: impl Fn(&Array2<f64>) -> random_features::Result<Vec<usize>>,
) -> Result<[f64; 2], Stop> {
    let share = |part: &Part| {
        let found = classify(&part.points)?;
        let right = part.labels.iter().zip(found).filter(|(label, class)| **label == *class).count();
        Ok::<_, Stop>(right as f64 / part.labels.len() as f64)
    };
    Ok([share(&split.validation)?, share(&split.test)?])
}
