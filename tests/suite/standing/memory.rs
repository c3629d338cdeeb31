//! Results of more numbers than there is memory for are errors, also those whose arguments are small: views that repeat a row, and numbers
//! that multiply. Each is asked for in a process that may have no more than some gigabytes of addresses.

use std::panic::catch_unwind;
use std::process::Command;
use std::time::Duration;

use ndarray::{Array1, Array2, Array4, ArrayView2, arr1, arr2};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::apply::softmax_sampling::{Proposal, SampledSoftmax};
use random_features::apply::{ExactSmoother, Smoother, Standardisation};
use random_features::compose::Conditioning;
use random_features::data::{Clustering, Reservoir, Statistics};
use random_features::extend::Coupling;
use random_features::frequency::{
    Antithetic, Counts, Givens, Hadamard, Halton, Independent, Orthogonal, Simplex, SimplexPlus, Sobol,
};
use random_features::kernel::{Gaussian, Kernel};
use random_features::recipe::Draw;
use random_features::{Error, Hyperbolic, Map, Points, Positive, Side, Trigonometric};

use super::{role, run_alone, this_program};
use crate::common::{frequencies, points};

/// The addresses that a process may use, in KiB: threads and the program take one of them.
const MOST: usize = 4 << 20;

/// What asks for more, by its name.
type Case = (&'static str, fn() -> Result<(), Error>);

/// Rows or columns of which no two can be multiplied.
const MANY: usize = 1 << 20;

/// Rows whose pairs take some ten times the memory, so that each array has to be asked for.
const SOME: usize = 80_000;

fn rows(n: usize, d: usize) -> Array2<f64> {
    Array2::from_elem((n, d), 0.3)
}

/// One row many times.
fn repeated(row: &Array1<f64>, n: usize) -> ArrayView2<'_, f64> {
    row.broadcast((n, row.len())).unwrap()
}

fn positive() -> Map<f64> {
    Positive.softmax(frequencies(1, 4, &Independent, 1)).unwrap()
}

fn trigonometric() -> Map<f64> {
    Trigonometric.gaussian(frequencies(1, 4, &Independent, 1), 1.0).unwrap()
}

fn draw(coupling: impl Coupling, d: usize, m: usize) -> Result<(), Error> {
    (&coupling as &dyn Coupling).draw(d, m, 1).map(drop)
}

const MAPS: &[Case] = &[
    ("features", || trigonometric().features(Side::X, repeated(&arr1(&[0.3]), 1 << 45)).map(drop)),
    ("features of a huge map", || {
        let map: Map<f64> = Positive.softmax(Hadamard::default().draw(2, MANY, 1)?)?;
        map.features(Side::X, repeated(&arr1(&[0.3, 0.2]), MANY)).map(drop)
    }),
    ("logarithms of features", || {
        positive().log_features(Side::Y, repeated(&arr1(&[0.3]), 1 << 45)).map(drop)
    }),
    ("estimates of rows", || {
        let row = arr1(&[0.3]);
        positive().estimate_rows(&repeated(&row, 1 << 45), &repeated(&row, 1 << 45)).map(drop)
    }),
    ("a Gram matrix", || trigonometric().gram(&rows(MANY, 1), &rows(MANY, 1)).map(drop)),
    ("a Gram matrix of some rows", || trigonometric().gram(&rows(SOME, 1), &rows(SOME, 1)).map(drop)),
    ("a Gram matrix of features", || {
        let features = trigonometric().features(Side::X, &rows(SOME, 1))?;
        features.gram(&features).map(drop)
    }),
    ("gradients of points", || {
        let map: Map<f64> = Positive.softmax(Independent.draw(MANY, 2, 1)?)?;
        let (x, g) = (Array1::from_elem(MANY, 0.001), arr1(&[0.1, 0.2]));
        map.pull_back(Side::X, &repeated(&x, MANY), &repeated(&g, MANY)).map(drop)
    }),
    ("chosen rows", || {
        let row = Array1::from_elem(MANY, 0.3);
        Points::from(repeated(&row, 2)).select(&vec![1; MANY]).map(drop)
    }),
    ("an exact Gram matrix", || Gaussian::default().gram(&rows(MANY, 1), &rows(MANY, 1)).map(drop)),
    ("an exact Gram matrix of logarithms", || {
        Gaussian::default().log_gram(&rows(SOME, 1), &rows(SOME, 1)).map(drop)
    }),
];

const DRAWS: &[Case] = &[
    ("independent frequencies", || draw(Independent, MANY, MANY)),
    ("orthogonal frequencies", || draw(Orthogonal, MANY, MANY)),
    ("orthogonal frequencies of some rows", || draw(Orthogonal, SOME, SOME)),
    ("antithetic frequencies", || draw(Antithetic(Orthogonal), SOME, SOME)),
    ("simplex frequencies", || draw(Simplex::default(), SOME, SOME)),
    ("improved simplex frequencies", || draw(SimplexPlus::default(), SOME, SOME)),
    ("Halton frequencies", || draw(Halton, SOME, SOME)),
    ("Sobol frequencies", || draw(Sobol, 2, 1 << 40)),
    ("Hadamard frequencies", || draw(Hadamard::default(), 1 << 50, 2)),
    ("Hadamard frequencies of many rows", || draw(Hadamard::default(), 2, 1 << 50)),
    ("Givens frequencies", || draw(Givens::default(), 1 << 40, 2)),
    ("a recipe", || Draw::new(SOME, SOME, Independent).draw(1).map(drop)),
    ("Poisson counts", || Counts::poisson(SOME, SOME, 0.5, 1).map(drop)),
    ("geometric counts", || Counts::geometric(SOME, SOME, 0.5, 1).map(drop)),
];

const DATA: &[Case] = &[
    ("statistics", || Statistics::new(1 << 50).map(drop)),
    ("clusters", || Clustering::of(&repeated(&arr1(&[0.3]), 1 << 45), 2, 1).map(drop)),
    ("standardised points", || {
        Standardisation::new(vec![0.0], vec![1.0])?.apply(&repeated(&arr1(&[0.3]), 1 << 45)).map(drop)
    }),
    ("a reservoir", || Reservoir::new(1 << 12)?.with_capacity(1 << 40).map(drop)),
];

const SUMS: &[Case] = &[
    ("a smoother", || Smoother::new(positive(), 1 << 50).map(drop)),
    ("predictions of a smoother", || {
        let mut smoother = Smoother::new(positive(), MANY)?;
        smoother.update(&rows(2, 1), &rows(2, MANY))?;
        smoother.predict(&rows(MANY, 1)).map(drop)
    }),
    ("indicators of labels", || Smoother::new(positive(), MANY)?.update(&rows(SOME, 1), &vec![1; SOME])),
    ("rows of an exact smoother", || {
        let row = arr1(&[0.3]);
        let mut smoother = ExactSmoother::new(Gaussian::default(), 1, 1)?;
        smoother.update(repeated(&row, 1 << 45), repeated(&row, 1 << 45))
    }),
    ("predictions of an exact smoother", || {
        let mut smoother = ExactSmoother::new(Gaussian::default(), 1, MANY)?;
        smoother.update(&rows(2, 1), &rows(2, MANY))?;
        smoother.predict(&rows(MANY, 1)).map(drop)
    }),
];

fn sampler(exact: usize) -> Proposal<f64> {
    Proposal::new(positive()).with_exact_below(exact)
}

const SAMPLING: &[Case] = &[
    ("a sampler", || {
        let map = Hyperbolic.softmax(Hadamard::default().draw(1, 1 << 19, 1)?)?;
        Proposal::new(map).with_exact_below(0).with_leaf_size(1)?.build(&rows(MANY, 1)).map(drop)
    }),
    ("draws", || sampler(0).build(&rows(9, 1))?.sample(&rows(MANY, 1), MANY, 1).map(drop)),
    ("exact draws", || sampler(99).build(&rows(9, 1))?.sample(&rows(MANY, 1), MANY, 1).map(drop)),
    ("draws of one point", || sampler(0).build(&rows(9, 1))?.sample_of(&arr1(&[0.3]), 1 << 50, 1).map(drop)),
    ("a loss", || {
        let layer = SampledSoftmax::new(sampler(0), &rows(9, 1))?;
        layer.loss(&rows(MANY, 1), &vec![1; MANY], MANY, 1).map(drop)
    }),
    ("a partition", || {
        let layer = SampledSoftmax::new(sampler(0), &rows(9, 1))?;
        layer.partition(&arr1(&[0.3]), 1 << 50, 1).map(drop)
    }),
    ("a report of a sampler", || {
        let layer = SampledSoftmax::new(sampler(0), &rows(SOME, 1))?;
        layer.report(&rows(SOME, 1), &[]).map(drop)
    }),
];

/// Attention of so many queries to as many keys, with values of so many columns that are one number.
fn attend(
    (length, columns): (usize, usize),
    work: impl FnOnce(&Attention<f64>, &Heads<'_, f64>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (x, number) = (Array4::from_elem((1, 1, length, 1), 0.3), arr1(&[0.1]));
    let v = number.broadcast((1, 1, length, columns)).unwrap();
    work(&Attention::new(positive())?, &Heads::new(&x, &x, &v)?)
}

/// Many queries of a key that has one value of many columns.
fn attend_one(
    (queries, columns): (usize, usize),
    work: impl FnOnce(&Attention<f64>, &Heads<'_, f64>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (q, k) = (Array4::from_elem((1, 1, queries, 1), 0.3), Array4::from_elem((1, 1, 1, 1), 0.2));
    let v = Array4::from_elem((1, 1, 1, columns), 0.1);
    work(&Attention::new(positive())?, &Heads::new(&q, &k, &v)?)
}

const ATTENTION: &[Case] = &[
    ("a state", || Attention::new(positive())?.state(MANY, MANY, 2).map(drop)),
    ("a state of wide values", || Attention::new(positive())?.state(2, 2, 1 << 50).map(drop)),
    ("outputs of a prompt", || {
        attend((MANY, MANY), |attention, heads| attention.state(1, 1, MANY)?.prefill(heads).map(drop))
    }),
    ("gradients of attention", || {
        let row = arr1(&[0.3]);
        let x = row.broadcast((1, 1, 1 << 45, 1)).unwrap();
        Attention::new(positive())?.bidirectional_backward(&Heads::new(&x, &x, &x)?, &x).map(drop)
    }),
];

/// Cases of which the error is still the end of the process.
const OUTPUTS: &[Case] = &[
    ("bidirectional attention", || {
        attend_one((MANY, MANY), |attention, heads| attention.bidirectional(heads).map(drop))
    }),
    ("bidirectional attention of some rows", || {
        attend_one((SOME, SOME), |attention, heads| attention.bidirectional(heads).map(drop))
    }),
    ("causal attention", || attend((MANY, MANY), |attention, heads| attention.causal(heads).map(drop))),
    ("whichever attention is cheaper", || {
        attend_one((MANY, MANY), |attention, heads| attention.bidirectional_auto(heads).map(drop))
    }),
    ("diagnosed attention", || {
        attend_one((MANY, MANY), |attention, heads| attention.bidirectional_diagnosed(heads).map(drop))
    }),
    ("exact attention", || {
        attend_one((MANY, MANY), |_, heads| ExactAttention::new().bidirectional::<f64, _>(heads).map(drop))
    }),
    ("exact causal attention", || {
        attend((MANY, MANY), |_, heads| ExactAttention::new().causal::<f64, _>(heads).map(drop))
    }),
    ("repeated queries of attention", || {
        let x = Array1::<f64>::from_elem(1, 0.3);
        let q = x.broadcast((1 << 30, 1 << 30, 4, 1)).unwrap();
        let k = x.broadcast((1 << 30, 1, 4, 1)).unwrap();
        Attention::new(positive())?.bidirectional(&Heads::new(&q, &k, &k)?).map(drop)
    }),
    ("weights of attention", || {
        let x = Array4::from_elem((1, 1, MANY, 1), 0.3);
        let rows = vec![1; MANY];
        Attention::new(positive())?.bidirectional_weights(&Heads::new(&x, &x, &x)?, 0, 0, &rows).map(drop)
    }),
    ("chosen sequences of a state", || {
        attend((1, MANY), |attention, heads| {
            let mut state = attention.state(1, 1, MANY)?;
            state.prefill(heads)?;
            state.select(&vec![0; 1 << 12])
        })
    }),
    ("a conditioning", || Conditioning::identity(MANY).map(drop)),
    ("a conditioning of some dimensions", || Conditioning::identity(SOME).map(drop)),
];

#[cfg(feature = "faer")]
mod solvers {
    use random_features::apply::attention::AttentionShaping;
    use random_features::apply::pca::PcaStatistics;
    use random_features::apply::{Glm, KernelRidge, Ridge, RidgeGrid, RidgeStatistics};
    use random_features::data::shaping::{Moments, Shaping};
    use random_features::linalg::Backend;
    use random_features::workbench::factors::Factorise;

    use super::*;

    fn model() -> Result<Ridge<f64>, Error> {
        let mut statistics = RidgeStatistics::new(trigonometric(), 3)?;
        statistics.update(&points::<f64>(20, 1, 1.0), &points::<f64>(20, 3, 1.0))?;
        statistics.solve(0.1)
    }

    fn wide() -> Result<Map<f64>, Error> {
        Trigonometric.gaussian(Hadamard::default().draw(1, SOME, 1)?, 1.0)
    }

    pub const CASES: &[Case] = &[
        ("sums of a wide map", || RidgeStatistics::new(wide()?, 1).map(drop)),
        ("sums of many targets", || RidgeStatistics::new(trigonometric(), 1 << 45).map(drop)),
        ("a grid", || RidgeGrid::new([trigonometric(), wide()?], 1).map(drop)),
        ("sums of components", || PcaStatistics::new(wide()?).map(drop)),
        ("predictions", || model()?.predict(repeated(&arr1(&[0.3]), 1 << 45)).map(drop)),
        ("predicted classes", || model()?.classify(repeated(&arr1(&[0.3]), 1 << 45)).map(drop)),
        ("indicators of many classes", || {
            RidgeStatistics::new(trigonometric(), SOME)?.update(&rows(SOME, 1), &vec![1; SOME])
        }),
        ("weights of many classes", || Glm::logistic(trigonometric(), 1 << 45).map(drop)),
        ("probabilities of many classes", || {
            let model = Glm::logistic(trigonometric(), 1 << 20)?;
            let labels: Vec<usize> = (0..20).map(|i| i % 2).collect();
            let x = points::<f64>(20, 1, 1.0);
            let fit = model.fit(&x, &labels, 0.1)?.with_posterior(&x, &labels)?;
            assert!(matches!(fit.mean_probabilities(&points(1000, 1, 1.0)), Err(Error::Memory { .. })));
            fit.model().probabilities(&points(1000, 1, 1.0)).map(drop)
        }),
        ("components of points", || {
            let mut sums = PcaStatistics::new(trigonometric())?;
            sums.update(&points::<f64>(20, 1, 1.0))?;
            sums.components(2)?.transform(repeated(&arr1(&[0.3]), 1 << 45)).map(drop)
        }),
        ("predicted variances", || {
            let mut statistics = RidgeStatistics::new(trigonometric(), 3)?;
            statistics.update(&points::<f64>(20, 1, 1.0), &points::<f64>(20, 3, 1.0))?;
            let posterior = statistics.spectrum()?.posterior(0.1)?;
            posterior.predict(repeated(&arr1(&[0.3]), 1 << 45)).map(drop)
        }),
        ("equations of kernel ridge regression", || {
            let row = Array1::from_elem(SOME, 0.3);
            KernelRidge::fit(&repeated(&row, SOME), &rows(SOME, 1), 0.1).map(drop)
        }),
        ("predictions of kernel ridge regression", || {
            let model = KernelRidge::fit(&arr2(&[[1.0]]), &rows(1, MANY), 0.1)?;
            model.predict_from_gram(&rows(MANY, 1)).map(drop)
        }),
        ("moments", || Moments::new(SOME).map(drop)),
        ("a shape", || {
            let row = Array1::from_elem(SOME, 0.3);
            Shaping::new().of_points(&repeated(&row, 9), &repeated(&row, 9)).map(drop)
        }),
        ("weights of a shape", || {
            let row = arr1(&[0.3]);
            AttentionShaping::new(Shaping::new())
                .choose(&repeated(&row, MANY), &repeated(&row, MANY), MANY, 1)
                .map(drop)
        }),
    ];

    /// Cases of which the error is still the end of the process.
    pub const VIEWS: &[Case] = &[
        ("a Cholesky factor", || Backend::default().cholesky(&repeated(&rows_of(), SOME)).map(drop)),
        ("eigenvectors", || Backend::default().eigen(&repeated(&rows_of(), SOME)).map(drop)),
        ("singular vectors", || Backend::default().svd(&repeated(&rows_of(), SOME)).map(drop)),
        ("singular values", || Backend::default().singular_values(&repeated(&rows_of(), SOME)).map(drop)),
        ("solutions", || {
            let factor = Backend::default().cholesky(&arr2(&[[1.0, 0.0], [0.0, 1.0]]))?;
            let row = arr1(&[0.3]);
            factor.solve(&row.broadcast((2, 1 << 45)).unwrap()).map(drop)
        }),
    ];

    fn rows_of() -> Array1<f64> {
        Array1::from_elem(SOME, 0.3)
    }
}

/// Cases that fail: the guard must notice them.
const BROKEN: &[Case] = &[
    ("a list", || {
        std::hint::black_box(vec![1u8; MANY * MANY]);
        Ok(())
    }),
    ("a panic", || panic!("as planned")),
    ("another error", || Err(Error::Cancelled)),
    ("a result", || Ok(())),
    ("a refusal", || Err(Error::Memory { what: "numbers", count: 7 })),
    ("no answer", || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }),
];

/// All cases by the name of their set.
fn set(name: &str) -> Vec<Case> {
    match name {
        "refused" => [MAPS, DRAWS, DATA, SUMS, SAMPLING, ATTENTION].concat(),
        "outputs" => OUTPUTS.to_vec(),
        #[cfg(feature = "faer")]
        "solvers" => solvers::CASES.to_vec(),
        #[cfg(feature = "faer")]
        "views" => solvers::VIEWS.to_vec(),
        _ => BROKEN.to_vec(),
    }
}

/// Does the cases of a set from one on, and prints how each ends; the last may end the process.
fn run(name: &str, first: usize) {
    for (number, (_, case)) in set(name).into_iter().enumerate().skip(first) {
        println!("case {number} begins");
        let end = match catch_unwind(case) {
            Ok(Err(Error::Memory { .. })) => "refused".into(),
            Ok(Err(other)) => format!("another error: {other}"),
            Ok(Ok(())) => "a result".into(),
            Err(_) => "a panic".into(),
        };
        println!("case {number} ends: {end}");
    }
}

/// The cases of a set that are not refused, each with what happens instead.
fn not_refused(test: &str, name: &str, within: Duration) -> Vec<String> {
    let (cases, mut found, mut first) = (set(name), Vec::new(), 0);
    while first < cases.len() {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MOST}; exec \"$0\" \"$@\"")]).arg(this_program());
        // What threads reserve for their memory is not counted twice.
        command.env("RAYON_NUM_THREADS", "2").env("MALLOC_ARENA_MAX", "2");
        let ended = run_alone(command, test, &format!("{name} {first}"), within);
        let end_of = |number: usize| {
            let start = format!("case {number} ends: ");
            ended
                .text
                .lines()
                .find_map(|line| line.split_once(start.as_str()).map(|(_, end)| end.to_string()))
        };
        while let Some(end) = (first < cases.len()).then(|| end_of(first)).flatten() {
            if end != "refused" {
                found.push(format!("{}: {end}", cases[first].0));
            }
            first += 1;
        }
        if first < cases.len() {
            assert!(ended.text.contains(&format!("case {first} begins")), "{}", ended.text);
            let end = if ended.status.is_some() { "the end of the process" } else { "no answer" };
            found.push(format!("{}: {end}", cases[first].0));
            first += 1;
        }
    }
    found
}

/// Does its part in a process of its own, or sees to it that all cases of a set are refused there.
#[track_caller]
fn are_refused(test: &str, name: &str) {
    if let Some((name, first)) = part() {
        return run(&name, first);
    }
    let found = not_refused(&format!("standing::memory::{test}"), name, Duration::from_secs(60));
    assert!(found.is_empty(), "{found:#?}");
}

/// The set and the first case that this process is to do.
fn part() -> Option<(String, usize)> {
    let role = role()?;
    let (name, first) = role.split_once(' ')?;
    Some((name.into(), first.parse().ok()?))
}

#[test]
fn results_beyond_memory_are_refused() {
    are_refused("results_beyond_memory_are_refused", "refused");
}

#[test]
fn outputs_beyond_memory_are_refused() {
    are_refused("outputs_beyond_memory_are_refused", "outputs");
}

#[cfg(feature = "faer")]
#[test]
fn sums_beyond_memory_are_refused() {
    are_refused("sums_beyond_memory_are_refused", "solvers");
}

#[cfg(feature = "faer")]
#[test]
fn views_beyond_memory_are_refused() {
    are_refused("views_beyond_memory_are_refused", "views");
}

#[test]
fn ends_of_processes_are_noticed() {
    if let Some((name, first)) = part() {
        return run(&name, first);
    }
    let test = "standing::memory::ends_of_processes_are_noticed";
    assert_eq!(
        not_refused(test, "broken", Duration::from_secs(2)),
        [
            "a list: the end of the process",
            "a panic: a panic",
            "another error: another error: the work was stopped, as its watcher asked",
            "a result: a result",
            "no answer: no answer",
        ]
    );
}
