//! Random problems of all losses.

use super::data::normal;
use ndarray::{Array2, Axis};
use random_features::frequency::{Antithetic, Halton, Independent, Orthogonal, Sobol};
use random_features::kernel::{Gaussian, Kernel, Softmax};
use random_features::planner::{Loss, Planner};
use random_features::rand::RngExt;
use random_features::recipe::AnyCoupling;

/// In the order in which problems have them.
const LOSSES: [Loss; 8] = [
    Loss::Gram,
    Loss::RelativeMean,
    Loss::RelativeMedian,
    Loss::RelativeNinety,
    Loss::RelativeNinetyNine,
    Loss::AttentionOutput,
    Loss::AttentionWeights,
    Loss::Ridge,
];

/// Points of both sides, a kernel, a loss and a budget.
pub struct Problem {
    pub name: String,
    pub x: Array2<f64>,
    /// None if both sides are the same points.
    pub y: Option<Array2<f64>>,
    /// The values of the keys, for attention.
    pub values: Array2<f64>,
    pub kernel: Box<dyn Kernel<f64>>,
    pub planner: Planner,
    pub loss: Loss,
    pub features: usize,
}

impl Problem {
    pub fn new(seed: u64) -> Self {
        let loss = LOSSES[seed as usize % LOSSES.len()];
        let attention = matches!(loss, Loss::AttentionOutput | Loss::AttentionWeights);
        let ridge = loss == Loss::Ridge;
        let mut rng = random_features::rng(1_000_000 + seed);
        let mut pick = |most: usize| rng.random_range(0..most);
        let (d, one_set) = ([2, 3, 4, 6][pick(4)], pick(2) == 0 || ridge);
        // All pairs are evaluated of the first ones, two thousand of the last.
        let (n, l) = [(12, 10), (20, 16), (30, 40), (50, 50), (70, 65), (100, 80)][pick(6)];
        // Of regressions a third of the points test; of attention the last ones have more queries than are evaluated.
        let (n, l) = if ridge { (3 * n, l) } else { (n, l) };
        let deviation = [0.2, 0.4, 0.7][pick(3)];
        let norms = ["normal", "bounded", "every tenth small", "log-normal", "clustered"][pick(5)];
        let of = |n: usize, seed: u64| points(norms, n, d, deviation, seed);
        let (x, y) = (of(n, 2 * seed), (!one_set).then(|| of(l, 2 * seed + 1)));
        let planner = match &y {
            Some(y) => Planner::new(&x, y).unwrap(),
            None => Planner::of_one_set(&x).unwrap(),
        };
        let softmax = pick(2) == 0 || attention;
        let (kernel, planner): (Box<dyn Kernel<f64>>, _) = match softmax {
            true => (Box::new(Softmax::default()), planner.with_kernel(Softmax::default())),
            false => {
                let own = Gaussian::new(0.8).unwrap();
                (Box::new(own.clone()), planner.with_kernel(own))
            }
        };
        let couplings: [&[AnyCoupling]; 2] = [
            &[Independent.into(), Orthogonal.into(), Antithetic(Orthogonal).into()],
            &[Independent.into(), Orthogonal.into(), Sobol.into(), Halton.into()],
        ];
        let planner = planner.with_couplings(couplings[pick(2)].iter().copied()).with_seed(seed);
        let planner = if pick(4) == 0 { planner.only_symmetric() } else { planner };
        let (features, sides) = ([8, 16, 32][pick(3)], if one_set { "one set" } else { "two sets" });
        // Normalisers take more to be reliable.
        let features = if attention { 8 * features } else { features };
        let values = normal(y.as_ref().unwrap_or(&x).nrows(), 3, 1.0, 13_000 + seed);
        let planner = match loss {
            Loss::AttentionOutput => planner.with_values(&values).unwrap(),
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            Loss::Ridge => planner.with_ridge_targets(&targets(&x, deviation, 15_000 + seed)).unwrap(),
            _ => planner.with_loss(loss),
        };
        let kind = if softmax { "softmax" } else { "Gaussian" };
        let name = format!(
            "{seed}: {n} × {l}, {sides}, d = {d}, {norms} {deviation}, {kind}, {features} features, {loss}"
        );
        Problem { name, x, y, values, kernel, planner, loss, features }
    }

    /// The points of the second side.
    pub fn y(&self) -> &Array2<f64> {
        self.y.as_ref().unwrap_or(&self.x)
    }
}

/// Points of one kind of norms.
fn points(norms: &str, n: usize, d: usize, deviation: f64, seed: u64) -> Array2<f64> {
    let mut x = normal(n, d, deviation, 7000 + seed);
    let sizes = normal(n, 1, 0.6, 9000 + seed);
    let centres = normal(4, d, deviation, 11_000 + seed);
    match norms {
        "bounded" => x.mapv_inplace(|v| 1.5 * deviation * (v / deviation).sin()),
        "every tenth small" => x.rows_mut().into_iter().step_by(10).for_each(|mut row| row *= 0.05),
        "log-normal" => x.axis_iter_mut(Axis(0)).zip(sizes.column(0)).for_each(|(mut row, v)| row *= v.exp()),
        "clustered" => {
            x *= 0.3;
            x.rows_mut().into_iter().enumerate().for_each(|(i, mut row)| row += &centres.row((i * i) % 4));
        }
        _ => {}
    }
    x
}

/// A smooth function of a coordinate, with noise.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
fn targets(x: &Array2<f64>, deviation: f64, seed: u64) -> Array2<f64> {
    x.column(0).mapv(|v| (2.0 * v / deviation).sin()).insert_axis(Axis(1)) + normal(x.nrows(), 1, 0.2, seed)
}
