//! Work of every kind, each with the bits of all of its results: maps, kernels, applications, the planner.

use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};

use ndarray::{Array2, Array4, ArrayRef, Axis, Dimension, s};
use num_complex::Complex64;
use random_features::apply::attention::{Attention, ExactAttention, Heads, TokenSample};
use random_features::apply::softmax_sampling::{Proposal, SampledSoftmax};
use random_features::apply::{ExactSmoother, Smoother};
use random_features::compose::{Bases, Centres, Clustered, Conditioning, Hybrid};
use random_features::data::{Clustering, Reservoir, Statistics, lengthscale};
use random_features::extend::Coupling;
use random_features::frequency::{Counts, Givens, Hadamard, Independent, Orthogonal, SimplexPlus, Sobol};
use random_features::kernel::{Activation, Gaussian, Kernel, Matern, Smoothness, Softmax};
use random_features::map::Transform;
use random_features::planner::Planner;
use random_features::recipe::Draw;
use random_features::theory::complex_exponential::Symmetry;
use random_features::theory::gerf::GerfSign;
use random_features::{
    ComplexExponential, EluPlusOne, Gerf, Hyperbolic, Map, Nonlinear, Poisson, Positive, Side, Sign,
    Trigonometric,
};

use crate::common::{points, tokens};
use crate::planner::calibration;

/// Work by its name.
pub struct Job {
    pub name: &'static str,
    pub run: fn() -> u64,
}

/// Everything that is spread over threads.
pub fn jobs() -> Vec<Job> {
    let of = |name, run| Job { name, run };
    let mut jobs = vec![
        of("maps", maps),
        of("composed maps", composed_maps),
        of("draws", draws),
        of("exact kernels", kernels),
        of("data", data),
        of("smoothers", smoothers),
        of("attention", attention),
        of("attention with exact pairs", attention_with_pairs),
        of("gradients of attention", gradients),
        of("decoding", decoding),
        of("sampling", sampling),
        of("a plan", plan),
    ];
    #[cfg(feature = "faer")]
    jobs.extend([
        of("ridge regression", solvers::ridge),
        of("a search", solvers::search),
        of("components", solvers::components),
        of("kernel ridge regression", solvers::kernel_ridge),
        of("shapes", solvers::shapes),
        of("errors of attention", solvers::errors_of_attention),
        of("metrics", solvers::metrics),
    ]);
    jobs
}

/// What results are, to the bit.
#[derive(Default)]
struct Bits(DefaultHasher);

impl Bits {
    fn array<D: Dimension>(&mut self, array: &ArrayRef<f64, D>) {
        array.iter().for_each(|number| number.to_bits().hash(&mut self.0));
    }

    /// The shortest decimal that is read as a number is another one for other bits; `#` prints all of an array.
    fn all(&mut self, results: &impl Debug) {
        format!("{results:#?}").hash(&mut self.0);
    }

    fn end(self) -> u64 {
        self.0.finish()
    }
}

fn bits(fill: impl FnOnce(&mut Bits)) -> u64 {
    let mut bits = Bits::default();
    fill(&mut bits);
    bits.end()
}

/// Some tiles of points, and the last one is not full.
const ROWS: usize = 700;

fn omega(m: usize, seed: u64) -> random_features::frequency::Frequencies {
    Orthogonal.draw(4, m, seed).unwrap()
}

fn positive(m: usize) -> Map<f64> {
    Positive.softmax(omega(m, 1)).unwrap()
}

fn trigonometric(m: usize) -> Map<f64> {
    Trigonometric.gaussian(omega(m, 2), 1.0).unwrap()
}

fn bits_of_maps(maps: Vec<Map<f64>>) -> u64 {
    bits(|bits| {
        let (x, y) = (points::<f64>(ROWS, 4, 0.9), points::<f64>(150, 4, 0.7));
        for map in maps {
            for side in [Side::X, Side::Y] {
                let features = map.features(side, &x).unwrap();
                bits.array(&features.mantissas());
                bits.array(&features.log_scales());
            }
            bits.array(&map.gram(&y, &x).unwrap());
            bits.all(&map.log_estimate_rows(&x, &x).unwrap().len());
        }
    })
}

fn maps() -> u64 {
    let structured = |coupling: &dyn Coupling| coupling.draw(4, 30, 5).unwrap();
    let counts = Counts::poisson(4, 20, vec![0.5; 4], 3).unwrap();
    let transform = Transform::diagonal(vec![Complex64::new(0.9, 0.2); 4]).unwrap();
    bits_of_maps(vec![
        positive(30),
        trigonometric(30),
        Hyperbolic.softmax(omega(20, 3)).unwrap(),
        Gerf::new(Complex64::new(-0.1, 0.05), GerfSign::Plus).unwrap().softmax(omega(20, 4)).unwrap(),
        ComplexExponential::new(transform, Symmetry::Symmetric).softmax(omega(20, 5)).unwrap(),
        Poisson::default().gaussian(counts, 1.0).unwrap(),
        Sign.build(omega(40, 6), 1.0).unwrap(),
        Nonlinear::new(Activation::Relu).build(omega(40, 7), 1.0).unwrap(),
        EluPlusOne.build(4, 1.0).unwrap(),
        Positive.softmax(structured(&Hadamard::default())).unwrap(),
        Trigonometric.gaussian(structured(&Givens::default()), 1.0).unwrap(),
    ])
}

fn composed_maps() -> u64 {
    let (queries, keys) = (points::<f64>(60, 4, 0.9), points::<f64>(60, 4, 0.6));
    let clusters = |x: &Array2<f64>, k| Clustering::of(x, k, 1).unwrap();
    let (queries, keys) = (clusters(&queries, 2), clusters(&keys, 3));
    let turned = Conditioning::new(Array2::from_shape_fn((4, 4), |(i, j)| {
        if i == j { 1.1 } else { 0.05 * (i as f64 - j as f64) }
    }));
    bits_of_maps(vec![
        Hybrid::angular(Bases::shared(omega(10, 1)), omega(3, 2)).unwrap(),
        Clustered::by_centres(Centres::new(&queries, &keys), omega(6, 8), Softmax::default()).unwrap(),
        positive(20).conditioned(&turned.unwrap()).unwrap(),
    ])
}

fn draws() -> u64 {
    let couplings: [&dyn Coupling; 5] =
        [&Independent, &Orthogonal, &SimplexPlus::default(), &Sobol, &Hadamard::default()];
    bits(|bits| {
        for coupling in couplings {
            bits.array(&coupling.draw(40, 130, 1).unwrap().rows());
        }
    })
}

fn kernels() -> u64 {
    let (x, y) = (points::<f64>(ROWS, 4, 0.9), points::<f64>(150, 4, 0.7));
    bits(|bits| {
        bits.array(&Gaussian::new(vec![1.0, 2.0, 0.5, 1.0]).unwrap().gram(&x, &y).unwrap());
        bits.array(&Gaussian::default().gram(&x, &x).unwrap());
        bits.array(&Softmax::default().gram(&x, &y).unwrap());
        bits.array(&Matern::new(Smoothness::FiveHalves, 1.0).unwrap().gram(&x, &y).unwrap());
    })
}

fn data() -> u64 {
    let x = points::<f64>(3000, 4, 0.9);
    bits(|bits| {
        bits.all(&Statistics::of(&x).unwrap());
        bits.all(&Clustering::of(&x, 5, 1).unwrap());
        bits.all(&lengthscale::median_of_subsample(&x, 300, 2).unwrap());
        bits.array(&Reservoir::new(4).unwrap().with_capacity(50).unwrap().points());
        let mut reservoir = Reservoir::new(4).unwrap().with_capacity(50).unwrap();
        reservoir.update(&x).unwrap();
        bits.array(&reservoir.points());
    })
}

fn smoothers() -> u64 {
    let (x, y) = (points::<f64>(ROWS, 4, 0.9), points::<f64>(ROWS, 3, 1.0));
    bits(|bits| {
        let mut smoother = Smoother::new(positive(20), 3).unwrap();
        let mut exact = ExactSmoother::new(Gaussian::default(), 4, 3).unwrap();
        for _ in 0..2 {
            smoother.update(&x, &y).unwrap();
            exact.update(&x, &y).unwrap();
        }
        bits.array(&smoother.predict(&x).unwrap());
        bits.array(&exact.predict(x.slice(s![..200, ..])).unwrap());
    })
}

/// Queries of four heads, keys and values of two.
fn inputs(length: usize) -> [Array4<f64>; 3] {
    [(1, 4, 4), (2, 2, 4), (3, 2, 5)].map(|(seed, heads, d)| tokens([2, heads, length, d], 0.7, seed))
}

fn near() -> Attention<f64> {
    let attention = Attention::new(positive(20)).unwrap();
    attention.with_window(7, 0).unwrap().with_keys_exact(&[0, 3, 70]).unwrap()
}

fn attention() -> u64 {
    let [q, k, v] = inputs(300);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let plain = Attention::new(positive(20)).unwrap();
    bits(|bits| {
        bits.array(&plain.bidirectional(&heads).unwrap().output);
        bits.array(&plain.causal(&heads).unwrap().output);
        bits.array(&plain.causal_auto(&heads).unwrap().output);
        bits.all(&plain.bidirectional_diagnosed(&heads).unwrap());
        bits.array(&plain.causal_weights(&heads, 1, 2, &[0, 7, 200]).unwrap());
    })
}

fn attention_with_pairs() -> u64 {
    let [q, k, v] = inputs(200);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let heaviest = Attention::new(positive(20)).unwrap().with_heaviest_keys_exact(9).unwrap();
    bits(|bits| {
        bits.array(&near().bidirectional(&heads).unwrap().output);
        bits.array(&near().causal(&heads).unwrap().output);
        bits.array(&heaviest.bidirectional(&heads).unwrap().output);
        let exact = ExactAttention::new();
        let [a, b]: [Array4<f64>; 2] =
            [exact.bidirectional(&heads).unwrap().output, exact.causal(&heads).unwrap().output];
        bits.array(&a);
        bits.array(&b);
    })
}

fn gradients() -> u64 {
    let [q, k, v] = inputs(200);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let upstream = tokens::<f64>([2, 4, 200, 5], 1.0, 9);
    bits(|bits| {
        for attention in [Attention::new(positive(20)).unwrap(), near()] {
            bits.all(&attention.bidirectional_backward(&heads, &upstream).unwrap());
            bits.all(&attention.causal_backward(&heads, &upstream).unwrap());
        }
        bits.all(&near().causal_backward_with_parameters(&heads, &upstream).unwrap());
    })
}

fn decoding() -> u64 {
    let [q, k, v] = inputs(90);
    bits(|bits| {
        let mut state = near().state(2, 2, 5).unwrap();
        let prompt = |x: &Array4<f64>| x.slice(s![.., .., ..80, ..]).to_owned();
        let prompts = [&q, &k, &v].map(prompt);
        let heads = Heads::new(&prompts[0], &prompts[1], &prompts[2]).unwrap();
        bits.array(&state.prefill(&heads).unwrap().output);
        for i in 80..90 {
            let [q, k, v] = [&q, &k, &v].map(|x| x.index_axis(Axis(2), i));
            bits.array(&state.step(&q, &k, &v).unwrap().output);
        }
    })
}

fn sampling() -> u64 {
    let (classes, h) = (points::<f64>(500, 4, 1.3), points::<f64>(40, 4, 0.9));
    let targets: Vec<usize> = (0..40).map(|i| 3 * i).collect();
    bits(|bits| {
        for (leaf, exact) in [(1, 0), (8, 0), (1, usize::MAX)] {
            let proposal =
                Proposal::new(positive(16)).with_uniform(0.1).unwrap().with_leaf_size(leaf).unwrap();
            let mut layer = SampledSoftmax::new(proposal.with_exact_below(exact), &classes).unwrap();
            bits.all(&layer.sample(&h, 30, 7).unwrap());
            let loss = layer.loss(&h, &targets, 20, 3).unwrap();
            bits.array(loss.class_gradients());
            layer.step(&loss, 0.3).unwrap();
            layer.add(&classes.slice(s![..70, ..])).unwrap();
            bits.all(&layer.sample(&h, 30, 8).unwrap());
            bits.all(&layer.report(&h.slice(s![..4, ..]), &[]).unwrap());
        }
    })
}

fn plan() -> u64 {
    let x = points::<f64>(24, 2, 0.6);
    let planner =
        Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_calibration(calibration());
    let planner = planner.with_couplings([Independent.into()]).with_max_features(12);
    bits(|bits| {
        bits.all(&planner.plan().unwrap().to_string());
        let recipe = Trigonometric.recipe(Draw::new(2, 8, Orthogonal), Gaussian::default());
        bits.all(&planner.measure(&recipe, 3, 1).unwrap());
    })
}

/// What needs linear algebra: with a LAPACK the bits are its own.
#[cfg(feature = "faer")]
mod solvers {
    use random_features::apply::attention::AttentionShaping;
    use random_features::apply::metrics::spectral_error;
    use random_features::apply::pca::PcaStatistics;
    use random_features::apply::{
        Criterion, KernelRidge, RidgeClassifier, RidgeGrid, RidgeSearch, RidgeStatistics, Standardisation,
    };
    use random_features::data::shaping::Shaping;
    use random_features::linalg::Backend;
    use random_features::workbench::factors::Factorise;

    use super::*;

    fn regression() -> (Array2<f64>, Array2<f64>) {
        let x = points::<f64>(ROWS, 4, 1.5);
        let y = Array2::from_shape_fn((ROWS, 2), |(i, j)| (x[[i, j]] * 1.3).sin() + x[[i, 3]]);
        (x, y)
    }

    pub fn ridge() -> u64 {
        let (x, y) = regression();
        let labels: Vec<usize> = (0..ROWS).map(|i| i % 2).collect();
        bits(|bits| {
            let statistics = RidgeStatistics::new(trigonometric(15), 2).unwrap();
            let mut statistics = statistics.with_standardisation(Standardisation::of(&x).unwrap()).unwrap();
            statistics.update(&x, &y).unwrap();
            let model = statistics.solve(0.1).unwrap();
            bits.array(&model.weights());
            bits.array(&model.predict(&x).unwrap());
            let spectrum = statistics.spectrum().unwrap();
            bits.all(&spectrum.choose(&Criterion::leave_one_out(&x, &y), &[0.1, 1.0]).unwrap());
            bits.all(&spectrum.posterior(0.1).unwrap().predict(&x).unwrap().interval(0.9).unwrap());
            let classifier = RidgeClassifier::new(model).unwrap().with_calibration(&x, &labels).unwrap();
            bits.array(&classifier.probabilities(&x).unwrap());
        })
    }

    pub fn search() -> u64 {
        let (x, y) = regression();
        bits(|bits| {
            let search = RidgeSearch::new(omega(8, 7), |omega, ell| Trigonometric.gaussian(omega, ell));
            let fit = search.with_lengthscales([0.5, 1.0]).fit(&x, &y).unwrap();
            bits.all(&fit.to_string());
            bits.array(&fit.model().weights());
            let mut grid = RidgeGrid::new([trigonometric(6), trigonometric(9)], 2).unwrap();
            grid.update(&x, &y).unwrap();
            let chosen = grid.choose(&Criterion::GeneralisedCrossValidation, None).unwrap();
            bits.array(&chosen.model().weights());
        })
    }

    pub fn components() -> u64 {
        let (x, _) = regression();
        bits(|bits| {
            let mut statistics = PcaStatistics::new(trigonometric(15)).unwrap();
            statistics.update(&x).unwrap();
            bits.array(&statistics.components(4).unwrap().transform(&x).unwrap());
        })
    }

    pub fn kernel_ridge() -> u64 {
        let (x, y) = regression();
        bits(|bits| {
            // Larger than what one thread factors.
            let gram = Gaussian::default().gram(&x.slice(s![..300, ..]), &x.slice(s![..300, ..])).unwrap();
            let model = KernelRidge::fit(&gram, y.slice(s![..300, ..]), 0.1).unwrap();
            bits.array(&model.coefficients());
            let regular = &gram + &Array2::<f64>::eye(300);
            bits.array(&Backend::default().cholesky(&regular).unwrap().lower());
        })
    }

    pub fn shapes() -> u64 {
        let (x, y) = (points::<f64>(ROWS, 4, 0.9), points::<f64>(300, 4, 0.6));
        bits(|bits| {
            bits.all(&Shaping::new().of_points(&x, &y).unwrap());
            bits.all(&AttentionShaping::new(Shaping::new()).choose(&y, &y, 20, 2).unwrap());
        })
    }

    pub fn errors_of_attention() -> u64 {
        let (x, v) = (points::<f64>(60, 4, 0.8), points::<f64>(60, 3, 1.0));
        let attention = Attention::new(positive(32)).unwrap();
        bits(|bits| {
            let sample = TokenSample::new(&x, &x).with_values(&v);
            bits.all(&attention.error_report(&sample).unwrap());
            let sample = TokenSample::causal(&x, &x).with_values(&v);
            bits.all(&attention.choose(&sample, [4096, 4096], 0.2).unwrap().to_string());
        })
    }

    pub fn metrics() -> u64 {
        let (x, y) = (points::<f64>(300, 4, 0.9), points::<f64>(200, 4, 0.7));
        let exact = Gaussian::default().gram(&x, &y).unwrap();
        bits(|bits| bits.all(&spectral_error(&trigonometric(30).gram(&x, &y).unwrap(), &exact).unwrap()))
    }
}
