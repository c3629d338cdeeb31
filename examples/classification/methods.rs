//! The methods that are compared: kernel regression and ridge regression, from the kernel itself and from features.

use std::ops::RangeInclusive;

use ndarray::Array2;
use random_features::apply::{Criterion, ExactSmoother, KernelRidge, RidgeSearch, Smoother};
use random_features::data::{PairStatistics, Statistics};
use random_features::extend::Coupling;
use random_features::frequency::{Counts, Independent, Orthogonal, Simplex, SimplexPlus};
use random_features::kernel::{Gaussian, Kernel, Lengthscale};
use random_features::theory::gerf::GerfSign;
use random_features::{
    Error, Geometric, Gerf, Hyperbolic, Map, Poisson, Positive, Result, Targets, Trigonometric, rng,
};
use rayon::prelude::*;

use crate::dataset::{Part, Split};

/// What is made of kernel values, or of features.
#[derive(Clone, Copy, PartialEq)]
pub enum Model {
    /// The class with the largest summed kernel.
    Regression,
    /// The class with the largest ridge regression of indicators, one class against all.
    Ridge,
}

/// What the kernel comes from.
#[derive(Clone, Copy)]
pub enum Source {
    Exact,
    Features(MapName, CouplingName),
}

#[derive(Clone, Copy, Debug)]
pub enum CouplingName {
    Independent,
    Orthogonal,
    Simplex,
    SimplexPlus,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MapName {
    Trigonometric,
    Positive,
    Hyperbolic,
    Oprf,
    Poisson,
    Geometric,
}

pub struct Method {
    model: Model,
    source: Source,
}

/// The λ that leave-one-out chooses from: 10⁻⁴ … 10.
const LAMBDAS: [f64; 6] = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];
/// Lengthscales are 2^(k/2) for these k: those of ridge regression, of which each costs an eigendecomposition, and those of kernel
/// regression.
const RIDGE: RangeInclusive<i32> = -6..=6;
const REGRESSION: RangeInclusive<i32> = -6..=8;

impl Method {
    /// The references and the methods that do best, or every mechanism.
    pub fn all(every: bool) -> Vec<Method> {
        use CouplingName::{Independent, Orthogonal, Simplex, SimplexPlus};
        use MapName::{Geometric, Hyperbolic, Oprf, Poisson, Positive, Trigonometric};
        let mut sources: Vec<Source> = vec![Source::Exact];
        let mut add = |map, coupling| sources.push(Source::Features(map, coupling));
        if every {
            for map in [Trigonometric, Positive, Hyperbolic, Oprf] {
                add(map, Independent);
                add(map, Orthogonal);
                add(map, Simplex);
                add(map, SimplexPlus);
            }
            add(Poisson, Independent);
            add(Geometric, Independent);
        } else {
            add(Trigonometric, Independent);
            add(Trigonometric, Orthogonal);
            add(Positive, Orthogonal);
            add(Positive, Simplex);
        }
        let of = |model| sources.iter().map(move |source| Method { model, source: *source });
        of(Model::Ridge).chain(of(Model::Regression)).collect()
    }

    pub fn name(&self) -> String {
        let model = if self.model == Model::Ridge { "ridge" } else { "kernel regression" };
        match &self.source {
            Source::Exact if self.model == Model::Ridge => "exact kernel ridge".into(),
            Source::Exact => "exact kernel regression".into(),
            Source::Features(map, coupling) => format!("{model}, {map:?}, {coupling:?}").to_lowercase(),
        }
    }

    /// Accuracy on the test part, and the lengthscale.
    pub fn tuned_accuracy(&self, split: &Split, m: usize, seed: u64) -> Result<(f64, f64)> {
        let map = |source: &Source, ell| match source {
            Source::Exact => None,
            Source::Features(map, coupling) => Some(map.make(*coupling, &split.train, ell, (m, seed))),
        };
        match (self.model, &self.source) {
            (Model::Regression, source) => regression(split, |ell| map(source, ell)),
            (Model::Ridge, Source::Exact) => exact_ridge(split),
            (Model::Ridge, Source::Features(name, coupling)) => {
                let make = |ell: Lengthscale| match ell {
                    Lengthscale::Isotropic(ell) => name.make(*coupling, &split.train, ell, (m, seed)),
                    Lengthscale::PerDimension(_) => {
                        Err(Error::Unsupported { what: "lengthscales of coordinates" })
                    }
                };
                let search = RidgeSearch::of(make).with_lengthscales(grid(RIDGE)).with_lambdas(LAMBDAS);
                // Attributes are standardised already.
                let search = search.with_rows(usize::MAX).without_standardisation();
                let found = search
                    .fit(&split.train.points, Targets::of_labels(&split.train.labels, split.classes)?)?;
                let Some(Lengthscale::Isotropic(ell)) = found.best().lengthscale else {
                    return Err(Error::Unsupported { what: "lengthscale" });
                };
                Ok((accuracy(&split.test, &found.model().classify(&split.test.points)?), ell))
            }
        }
    }
}

fn grid(halves: RangeInclusive<i32>) -> Vec<f64> {
    halves.map(|k| 2f64.powf(f64::from(k) / 2.0)).collect()
}

/// Ridge regression with the exact kernel, chosen as that with features.
fn exact_ridge(split: &Split) -> Result<(f64, f64)> {
    let (train, targets) = (&split.train.points, indicators(&split.train, split.classes));
    let of = |ell: f64| -> Result<(f64, f64, KernelRidge<f64>)> {
        let spectrum = KernelRidge::spectrum(&Gaussian::new(ell)?.gram(train, train)?, &targets)?;
        let lambdas = LAMBDAS.into_iter().filter(|lambda| *lambda > spectrum.resolution());
        let lambdas: Vec<f64> = lambdas.collect();
        let (lambda, error) = spectrum.choose(&Criterion::LeaveOneOut, &lambdas)?;
        let model = spectrum.model(lambda)?;
        Ok((error, ell, model))
    };
    // Each lengthscale costs an eigendecomposition. Of equal errors the first counts.
    let tried = grid(RIDGE).into_par_iter().map(of).collect::<Result<Vec<_>>>()?;
    let best = tried.into_iter().reduce(|best, other| if other.0 < best.0 { other } else { best });
    let (_, ell, model) = best.ok_or(Error::NoData { what: "a choice" })?;
    let classes = model.classify_from_gram(&Gaussian::new(ell)?.gram(&split.test.points, train)?)?;
    Ok((accuracy(&split.test, &classes), ell))
}

/// The classes of the points of a part.
type Classify = Box<dyn Fn(&Part) -> Result<Vec<usize>>>;

/// Kernel regression with the lengthscale that does best on the validation part, the middle one of equals: from the map for a
/// lengthscale, or from the kernel where there is none.
fn regression(split: &Split, map: impl Fn(f64) -> Option<Result<Map<f64>>>) -> Result<(f64, f64)> {
    let (train, labels) = (&split.train.points, &split.train.labels);
    let of = |ell: f64| {
        let classify: Classify = match map(ell).transpose()? {
            Some(map) => {
                let mut smoother = Smoother::new(map, split.classes)?;
                smoother.update(train, labels)?;
                Box::new(move |part| smoother.classify(&part.points))
            }
            None => {
                let mut smoother = ExactSmoother::new(Gaussian::new(ell)?, train.ncols(), split.classes)?;
                smoother.update(train, labels)?;
                Box::new(move |part| smoother.classify(&part.points))
            }
        };
        let of_part = |part: &Part| classify(part).map(|classes| accuracy(part, &classes));
        Ok((ell, of_part(&split.validation)?, of_part(&split.test)?))
    };
    let tried = grid(REGRESSION).into_iter().map(of).collect::<Result<Vec<_>>>()?;
    let best = tried.iter().map(|(_, validation, _)| *validation).fold(0.0, f64::max);
    let equals: Vec<_> = tried.iter().filter(|(_, validation, _)| *validation >= best).collect();
    let (lengthscale, _, accuracy) = equals[equals.len() / 2];
    Ok((*accuracy, *lengthscale))
}

impl MapName {
    /// The map for a lengthscale, with parameters from the training points.
    fn make(
        self,
        coupling: CouplingName,
        train: &Part,
        lengthscale: f64,
        (m, seed): (usize, u64),
    ) -> Result<Map<f64>> {
        let (d, mut rng) = (train.points.ncols(), rng(seed));
        let statistics = Statistics::of(&(&train.points / lengthscale))?;
        let pairs = PairStatistics::new(&statistics, &statistics)?;
        let coupling: &dyn Coupling = match coupling {
            CouplingName::Independent => &Independent,
            CouplingName::Orthogonal => &Orthogonal,
            CouplingName::Simplex => &Simplex::default(),
            CouplingName::SimplexPlus => &SimplexPlus::default(),
        };
        match self {
            MapName::Trigonometric => {
                Trigonometric.gaussian(coupling.draw(d, m, rng.next_u64())?, lengthscale)
            }
            MapName::Positive => Positive.gaussian(coupling.draw(d, m, rng.next_u64())?, lengthscale),
            MapName::Hyperbolic => Hyperbolic.gaussian(coupling.draw(d, m, rng.next_u64())?, lengthscale),
            MapName::Oprf => {
                let gerf = Gerf::optimal(d, pairs.mean_squared_sum(GerfSign::Plus))?;
                gerf.gaussian(coupling.draw(d, m, rng.next_u64())?, lengthscale)
            }
            MapName::Poisson => {
                let counts = Counts::poisson(d, m, pairs.poisson_per_dimension(), rng.next_u64())?;
                Poisson::default().gaussian(counts, lengthscale)
            }
            MapName::Geometric => {
                let counts = Counts::geometric(d, m, pairs.geometric(), rng.next_u64())?;
                Geometric::default().gaussian(counts, lengthscale)
            }
        }
    }
}

fn indicators(part: &Part, classes: usize) -> Array2<f64> {
    let one = |(i, class): (usize, usize)| f64::from(u8::from(part.labels[i] == class));
    Array2::from_shape_fn((part.labels.len(), classes), one)
}

fn accuracy(part: &Part, classes: &[usize]) -> f64 {
    let right = part.labels.iter().zip(classes).filter(|(a, b)| a == b).count();
    right as f64 / part.labels.len() as f64
}
