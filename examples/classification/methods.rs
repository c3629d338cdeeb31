//! The methods that are compared: three maps with two couplings each, and the exact kernel.

use ndarray::ArrayView2;
use random_features::apply::{ExactSmoother, Smoother};
use random_features::frequency::{Coupling, Independent, Orthogonal, draw};
use random_features::kernel::Gaussian;
use random_features::{Hyperbolic, Map, Positive, Result, Trigonometric, rng};

use crate::dataset::{Part, Split};

pub enum Method {
    Exact,
    Features { map: MapName, coupling: Box<dyn Coupling> },
}

#[derive(Clone, Copy, Debug)]
pub enum MapName {
    Trigonometric,
    Positive,
    Hyperbolic,
}

impl Method {
    pub fn all() -> Vec<Method> {
        let features = |map| {
            let couplings: [Box<dyn Coupling>; 2] = [Box::new(Independent), Box::new(Orthogonal)];
            couplings.map(|coupling| Method::Features { map, coupling })
        };
        let maps = [MapName::Trigonometric, MapName::Positive, MapName::Hyperbolic];
        maps.into_iter().flat_map(features).chain([Method::Exact]).collect()
    }

    pub fn name(&self) -> String {
        match self {
            Method::Exact => "exact Gaussian kernel".into(),
            Method::Features { map, coupling } => format!("{map:?}, {coupling:?}").to_lowercase(),
        }
    }

    /// The classes of `x` after training.
    fn classify(
        &self,
        split: &Split,
        lengthscale: f64,
        m: usize,
        seed: u64,
        x: ArrayView2<f64>,
    ) -> Result<Vec<usize>> {
        let (d, classes, train) = (split.train.points.ncols(), split.classes, &split.train);
        match self {
            Method::Exact => {
                let mut smoother = ExactSmoother::new(Gaussian::new(lengthscale)?, d, classes)?;
                smoother.update_labels(&train.points, &train.labels)?;
                smoother.classify(&x)
            }
            Method::Features { map, coupling } => {
                let omega = draw(d, m, coupling.as_ref(), &mut rng(seed))?;
                let map: Map<f64> = match map {
                    MapName::Trigonometric => Trigonometric.gaussian(omega, lengthscale)?,
                    MapName::Positive => Positive.gaussian(omega, lengthscale)?,
                    MapName::Hyperbolic => Hyperbolic.gaussian(omega, lengthscale)?,
                };
                let mut smoother = Smoother::new(map, classes)?;
                smoother.update_labels(&train.points, &train.labels)?;
                smoother.classify(&x)
            }
        }
    }
}

/// The lengthscales that are tried: a logarithmic grid.
fn grid() -> impl Iterator<Item = f64> {
    (-6..=8).map(|k| 2f64.powf(f64::from(k) / 2.0))
}

fn accuracy(part: &Part, classes: &[usize]) -> f64 {
    let right = part.labels.iter().zip(classes).filter(|(a, b)| a == b).count();
    right as f64 / part.labels.len() as f64
}

/// Accuracy on the test part with the lengthscale that does best on the validation part; the middle one of
/// equals.
pub fn tuned_accuracy(method: &Method, split: &Split, m: usize, seed: u64) -> Result<(f64, f64)> {
    let classify = |lengthscale, part: &Part| {
        let classes = method.classify(split, lengthscale, m, seed, part.points.view())?;
        Ok(accuracy(part, &classes))
    };
    let scores =
        grid().map(|ell| Ok((ell, classify(ell, &split.validation)?))).collect::<Result<Vec<_>>>()?;
    let best = scores.iter().map(|(_, score)| *score).fold(0.0, f64::max);
    let equals: Vec<f64> = scores.iter().filter(|(_, score)| *score == best).map(|(ell, _)| *ell).collect();
    let lengthscale = equals[equals.len() / 2];
    Ok((classify(lengthscale, &split.test)?, lengthscale))
}
