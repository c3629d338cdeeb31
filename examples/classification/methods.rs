//! The methods that are compared: kernel regression and ridge regression, from the kernel itself and from features.

use ndarray::{Array2, ArrayView2};
use random_features::apply::{Criterion, ExactSmoother, KernelRidge, RidgeStatistics, Smoother};
use random_features::data::{PairStatistics, Statistics};
use random_features::frequency::{
    Coupling, Independent, Orthogonal, Simplex, SimplexPlus, draw, draw_geometric, draw_poisson,
};
use random_features::kernel::{Gaussian, Kernel};
use random_features::theory::gerf::GerfSign;
use random_features::{Geometric, Gerf, Hyperbolic, Map, Poisson, Positive, Result, Trigonometric, rng};

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

/// The λ that generalised cross-validation chooses from: 10⁻⁴ … 10.
const LAMBDAS: [f64; 6] = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];
/// That of exact kernel ridge regression, which would have to factorise the Gram matrix for each.
const EXACT_LAMBDA: f64 = 0.01;

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

    /// The lengthscales that are tried: a logarithmic grid, coarser where each costs a factorisation of a Gram matrix.
    fn grid(&self) -> Vec<f64> {
        let exact_ridge = self.model == Model::Ridge && matches!(self.source, Source::Exact);
        let powers = if exact_ridge { vec![-1, 1, 3, 5] } else { (-6..=8).collect() };
        powers.into_iter().map(|k| 2f64.powf(f64::from(k) / 2.0)).collect()
    }

    /// The classes of points of two sets after training with a lengthscale, and an estimate of the error of new points, if
    /// the training points alone give one.
    fn classify(
        &self,
        split: &Split,
        lengthscale: f64,
        (m, seed): (usize, u64),
        sets: [ArrayView2<'_, f64>; 2],
    ) -> Result<([Vec<usize>; 2], Option<f64>)> {
        let (d, classes, train) = (split.train.points.ncols(), split.classes, &split.train);
        let kernel = Gaussian::new(lengthscale)?;
        let [a, b] = sets;
        match (&self.source, self.model) {
            (Source::Exact, Model::Regression) => {
                let mut smoother = ExactSmoother::new(kernel, d, classes)?;
                smoother.update_labels(&train.points, &train.labels)?;
                Ok(([smoother.classify(a)?, smoother.classify(b)?], None))
            }
            (Source::Exact, Model::Ridge) => {
                let gram = kernel.gram(&train.points, &train.points)?;
                let model = KernelRidge::fit(&gram, &indicators(train, classes), EXACT_LAMBDA)?;
                let classes =
                    |x: ArrayView2<'_, f64>| model.classify_from_gram(&kernel.gram(&x, &train.points)?);
                Ok(([classes(a)?, classes(b)?], None))
            }
            (Source::Features(map, coupling), Model::Regression) => {
                let map = map.make(*coupling, train, lengthscale, (m, seed))?;
                let mut smoother = Smoother::new(map, classes)?;
                smoother.update_labels(&train.points, &train.labels)?;
                Ok(([smoother.classify(a)?, smoother.classify(b)?], None))
            }
            (Source::Features(map, coupling), Model::Ridge) => {
                let map = map.make(*coupling, train, lengthscale, (m, seed))?;
                let mut statistics = RidgeStatistics::new(map, classes)?;
                statistics.update_labels(&train.points, &train.labels)?;
                let spectrum = statistics.spectrum()?;
                let lambdas: Vec<f64> =
                    LAMBDAS.into_iter().filter(|lambda| *lambda > spectrum.resolution()).collect();
                let criterion = Criterion::GeneralisedCrossValidation;
                let best = spectrum.choose(&criterion, &lambdas)?;
                let model = spectrum.model(best.lambda)?;
                Ok(([model.classify(a)?, model.classify(b)?], Some(best.error)))
            }
        }
    }

    /// Accuracy on the test part, and the lengthscale: the one with the least cross-validated error if training gives that,
    /// else the one that does best on the validation part, the middle one of equals.
    pub fn tuned_accuracy(&self, split: &Split, m: usize, seed: u64) -> Result<(f64, f64)> {
        let sets = || [split.validation.points.view(), split.test.points.view()];
        let try_one = |ell: f64| {
            let ([validation, test], error) = self.classify(split, ell, (m, seed), sets())?;
            let cost = error.unwrap_or(1.0 - accuracy(&split.validation, &validation));
            Ok((ell, cost, accuracy(&split.test, &test)))
        };
        let tried = self.grid().into_iter().map(try_one).collect::<Result<Vec<_>>>()?;
        let least = tried.iter().map(|(_, cost, _)| *cost).fold(f64::INFINITY, f64::min);
        let equals: Vec<_> = tried.iter().filter(|(_, cost, _)| *cost <= least).collect();
        let (lengthscale, _, accuracy) = equals[equals.len() / 2];
        Ok((*accuracy, *lengthscale))
    }
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
            MapName::Trigonometric => Trigonometric.gaussian(draw(d, m, coupling, &mut rng)?, lengthscale),
            MapName::Positive => Positive.gaussian(draw(d, m, coupling, &mut rng)?, lengthscale),
            MapName::Hyperbolic => Hyperbolic.gaussian(draw(d, m, coupling, &mut rng)?, lengthscale),
            MapName::Oprf => {
                let gerf = Gerf::optimal(d, pairs.mean_squared_sum(GerfSign::Plus))?;
                gerf.gaussian(draw(d, m, coupling, &mut rng)?, lengthscale)
            }
            MapName::Poisson => {
                let counts = draw_poisson(d, m, pairs.poisson_per_dimension(), &mut rng)?;
                Poisson::default().gaussian(counts, lengthscale)
            }
            MapName::Geometric => {
                let counts = draw_geometric(d, m, pairs.geometric(), &mut rng)?;
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
