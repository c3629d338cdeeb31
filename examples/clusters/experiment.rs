//! The maps, and the errors of their estimates over all pairs of points.

use ndarray::{Array2, Zip};
use random_features::compose::{Centres, Clustered, Formula};
use random_features::data::Clustering;
use random_features::frequency::{Independent, draw};
use random_features::kernel::{Kernel, Softmax};
use random_features::{Map, Positive, Result, Side, Trigonometric, rng};

use crate::data::{self, D, Data, Setup};
use crate::paper;

/// The numbers of features of the paper.
pub const FEATURES: [usize; 7] = [20, 50, 80, 100, 120, 150, 200];

/// A kind of map, and where the paper's numbers for it stand.
#[derive(Clone, Copy)]
pub struct Method {
    pub name: &'static str,
    kind: Kind,
    /// The column of the paper's table.
    pub published: Option<usize>,
}

#[derive(Clone, Copy)]
enum Kind {
    Clusters(Formula),
    Positive,
    Trigonometric,
}

pub const METHODS: [Method; 5] = [
    Method { name: "clusters, real A", kind: Kind::Clusters(Formula::Real), published: Some(0) },
    Method { name: "clusters, robust real A", kind: Kind::Clusters(Formula::RobustReal), published: None },
    Method { name: "clusters, robust A", kind: Kind::Clusters(Formula::Robust), published: None },
    Method { name: "positive (FAVOR+)", kind: Kind::Positive, published: Some(1) },
    Method { name: "trigonometric", kind: Kind::Trigonometric, published: Some(2) },
];

/// The mean squared errors of a method on a data set, one for each number of features.
pub struct Curve {
    pub method: Method,
    /// Mean, least and largest over the repetitions.
    pub errors: Vec<[f64; 3]>,
    /// The closed form, averaged over some pairs of points.
    pub closed: Vec<f64>,
}

/// All methods on one data set.
pub struct Set {
    pub published: &'static paper::Set,
    /// The residuals that the data have.
    pub s: [[f64; 2]; 2],
    /// The mean of the kernel over all pairs.
    pub kernel: f64,
    pub curves: Vec<Curve>,
}

/// A map whose estimate of each pair of points takes `features` real features.
fn make(kind: Kind, features: usize, clusters: &[Clustering; 2], seed: u64) -> Result<Map<f32>> {
    let omega = |frequencies: usize| draw(D, frequencies, &Independent, &mut rng(seed));
    Ok(match kind {
        Kind::Positive => Positive.softmax(omega(features)?)?,
        Kind::Trigonometric => Trigonometric.softmax(omega(features / 2)?)?,
        Kind::Clusters(formula) => {
            let each = if formula == Formula::Robust { 2 } else { 1 };
            let [queries, keys] = clusters;
            let centres = Centres::new(queries, keys).with_diagonal(formula);
            Clustered::by_centres(centres, omega(features / each)?, Softmax::default())?
        }
    })
}

/// The mean squared error over all pairs of points.
fn error(map: &Map<f32>, data: &Data, exact: &Array2<f32>) -> Result<f64> {
    let estimates = map.features(Side::X, &data.x)?.gram(&map.features(Side::Y, &data.y)?)?;
    let rows = Zip::from(estimates.rows()).and(exact.rows());
    let square = |a: &f32, b: &f32| f64::from(a - b).powi(2);
    let sum = rows.fold(0.0, |sum, a, b| sum + a.iter().zip(b).map(|(a, b)| square(a, b)).sum::<f64>());
    Ok(sum / exact.len() as f64)
}

/// Pairs of points over which closed forms are averaged.
const PAIRS: usize = 5000;

/// The closed form of the mean squared error, averaged over some pairs.
fn closed(map: &Map<f32>, data: &Data) -> Result<f64> {
    let (n, l) = (data.x.nrows(), data.y.nrows());
    let mut sum = 0.0;
    for pair in 0..PAIRS {
        // Steps without a common divisor with the numbers of points reach every cluster evenly.
        let (x, y) = (data.x.row(pair * 7919 % n), data.y.row(pair * 7907 % l));
        sum += map.log_variance(&x, &y)?.map_or(f64::NAN, f64::exp);
    }
    Ok(sum / PAIRS as f64)
}

/// Runs every method on one data set.
pub fn run(setup: &Setup, published: &'static paper::Set) -> Result<Set> {
    let data = data::make(setup, published)?;
    let exact = Softmax::default().gram(&data.x, &data.y)?;
    let mut generator = rng(setup.seed);
    let clusters = [Clustering::of(&data.x, 2, &mut generator)?, Clustering::of(&data.y, 2, &mut generator)?];
    let mut curves = Vec::new();
    for method in METHODS {
        let (mut errors, mut forms) = (Vec::new(), Vec::new());
        for features in FEATURES {
            let (mut mean, mut least, mut most) = (0.0, f64::INFINITY, 0.0f64);
            for repetition in 0..setup.repetitions {
                let seed = setup.seed.wrapping_add(1 + repetition);
                let map = make(method.kind, features, &clusters, seed)?;
                let error = error(&map, &data, &exact)?;
                mean += error / setup.repetitions as f64;
                (least, most) = (least.min(error), most.max(error));
            }
            errors.push([mean, least, most]);
            forms.push(closed(&make(method.kind, features, &clusters, setup.seed)?, &data)?);
        }
        curves.push(Curve { method, errors, closed: forms });
    }
    let kernel = exact.iter().map(|v| f64::from(*v)).sum::<f64>() / exact.len() as f64;
    Ok(Set { published, s: data.s, kernel, curves })
}
