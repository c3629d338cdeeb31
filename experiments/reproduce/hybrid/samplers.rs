//! Table 1: the angular hybrid beside couplings and quasi-Monte Carlo points of trigonometric features.

use experiments::dataset::Dataset;
use rand::RngExt;
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Hadamard, Halton, Independent, Orthogonal, Simplex};
use random_features::kernel::Softmax;
use random_features::ndarray::{Array2, ArrayView1, Axis, s};
use random_features::planner::{Measure, Planner};
use random_features::recipe::AnyCoupling;
use random_features::{Map, Positive, Trigonometric, rng_of_step};
use rayon::prelude::*;

use super::methods::SIGMA;
use crate::item::{Item, Outcome, Paper, Stop};
use crate::mean::Mean;
use crate::planned::Best;
use crate::run::Run;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "hybrid-table-1",
    paper: Paper::Hybrid,
    place: "Table 1",
    claim: "At equal operations angular hybrids have a smaller mean square error on data than orthogonal, Hadamard and Halton trigonometric features.",
    setting: "Softmax kernel of 100 random pairs of points, trigonometric features on 256 frequencies (512 real features), hybrids with (m + n)d + 4mn operations like \
              their 256d + 512. The paper gives neither the scaling of its points nor (m, n). Tried: attributes standardised, and then all points of norm r, or of \
              root mean square norm r; or attributes as they are and points of norm r; r = 0.5 and 1, and 0.75 for the first, whose errors are of the paper's size. n = 1, 2, 4, 8: the best of pilot draws. Bases and λ of HRF-ort are orthogonal.",
    rule: "For each data set at hand and each scaling, both hybrids have smaller errors than each of the three, by 3 standard errors over 200 draws. Of \
           42 true statements, one is contradicted in fewer than 1 of 20 runs.",
    minutes: 2.0,
    data: &["wine", "boston"],
    run,
};

const SETS: [&str; 2] = ["wine", "boston"];
const PAIRS: usize = 100;
/// Frequencies of trigonometric features.
const M: usize = 256;
/// Frequencies of λ that are tried.
const SIGNS: [usize; 4] = [1, 2, 4, 8];
const DRAWS: u64 = 200;
const PILOTS: u64 = 20;

/// How points are scaled.
#[derive(Clone, Copy)]
enum Scaling {
    /// Standardised attributes, then the same norm for all points.
    Sphere,
    /// Standardised attributes, then one factor for all points.
    Factor,
    /// Attributes as they are, then the same norm for all points.
    Raw,
}

const SCALINGS: [(&str, Scaling, f64); 7] = [
    ("standardised, norms 0.5", Scaling::Sphere, 0.5),
    ("standardised, norms 0.75", Scaling::Sphere, 0.75),
    ("standardised, norms 1", Scaling::Sphere, 1.0),
    ("standardised, root mean square norm 0.5", Scaling::Factor, 0.5),
    ("standardised, root mean square norm 1", Scaling::Factor, 1.0),
    ("as they are, norms 0.5", Scaling::Raw, 0.5),
    ("as they are, norms 1", Scaling::Raw, 1.0),
];

const METHODS: [&str; 9] = [
    "HRF-ort",
    "HRF-iid",
    "ORF-reg",
    "ORF-Had",
    "Halton-R",
    "independent trigonometric",
    "beyond: Gaussian hybrid, orthogonal",
    "beyond: positive, orthogonal",
    "beyond: positive, simplex",
];
/// The hybrids of the paper, and what they are compared with.
const HYBRIDS: std::ops::Range<usize> = 0..2;
const OTHERS: std::ops::Range<usize> = 2..5;

/// MSE·10³ and its spread in the paper, for each data set the first five methods.
const PUBLISHED: [[(f64, f64); 5]; 2] = [
    [(0.70, 0.08), (0.85, 0.05), (1.00, 0.04), (1.10, 0.06), (4.02, 0.1)],
    [(0.72, 0.06), (0.79, 0.08), (1.05, 0.03), (1.14, 0.02), (2.53, 0.08)],
];

/// Points of a data set, scaled.
fn points(data: &Dataset, scaling: Scaling, r: f64) -> Array2<f64> {
    let mut x = data.points.clone();
    if !matches!(scaling, Scaling::Raw) {
        x -= &x.mean_axis(Axis(0)).unwrap_or_default();
        x /= &x.std_axis(Axis(0), 0.0).mapv(|s| if s > 0.0 { s } else { 1.0 });
    }
    let square = |row: ArrayView1<'_, f64>| row.dot(&row);
    if matches!(scaling, Scaling::Factor) {
        let mean = x.rows().into_iter().map(square).sum::<f64>() / x.nrows() as f64;
        return x * (r / mean.sqrt());
    }
    for mut row in x.rows_mut() {
        let norm = square(row.view()).sqrt();
        row *= r / norm;
    }
    x
}

/// The number of base frequencies of a hybrid whose features cost what each frequency of λ and of the bases does, `each` for each product
/// of the two and `alone` for each base frequency.
fn bases(d: usize, n: usize, each: usize, alone: usize) -> usize {
    let budget = M * d + 2 * M;
    (budget.saturating_sub(n * d) / (d + alone + each * n)).max(1)
}

fn map(method: usize, d: usize, n: usize, r: f64, stream: (u64, u64)) -> Result<Map<f64>, Stop> {
    let mut rng = rng_of_step(stream.0, stream.1);
    let mut drawn = |m: usize, coupling: AnyCoupling| coupling.draw(d, m, rng.next_u64());
    let orthogonal = || AnyCoupling::from(Orthogonal);
    let simplex = || AnyCoupling::from(Simplex::default());
    // Positive features: m of them cost md + m.
    let positive = (M * d + 2 * M) / (d + 1);
    Ok(match method {
        0 | 1 => {
            let coupling = || if method == 0 { orthogonal() } else { Independent.into() };
            let omega = drawn(bases(d, n, 4, 0), coupling())?;
            Hybrid::angular(Bases::shared(omega), drawn(n, coupling())?)?
        }
        2 => Trigonometric.softmax(drawn(M, orthogonal())?)?,
        3 => Trigonometric.softmax(drawn(M, Hadamard::default().into())?)?,
        4 => Trigonometric.softmax(drawn(M, Halton.into())?)?,
        5 => Trigonometric.softmax(drawn(M, Independent.into())?)?,
        6 => {
            let omega = drawn(bases(d, n, 8, 4), orthogonal())?;
            Hybrid::gaussian(Bases::shared(omega), drawn(n, orthogonal())?, (SIGMA, r))?
        }
        7 => Positive.softmax(drawn(positive, orthogonal())?)?,
        _ => Positive.softmax(drawn(positive, simplex())?)?,
    })
}

/// For each draw, the mean square error over the pairs.
fn errors(
    pairs: &[Array2<f64>; 2],
    exact: &[f64],
    draws: std::ops::Range<u64>,
    map: impl Fn(u64) -> Result<Map<f64>, Stop> + Sync,
) -> Result<Vec<f64>, Stop> {
    let [x, y] = pairs;
    let one = |draw: u64| {
        let map = map(draw)?;
        let mut sum = 0.0;
        for ((x, y), exact) in x.rows().into_iter().zip(y.rows()).zip(exact) {
            sum += (map.estimate(&x, &y)? - exact).powi(2);
        }
        Ok(sum / exact.len() as f64)
    };
    draws.into_par_iter().map(one).collect()
}

/// Pairs of scaled points, and their kernel.
struct Pairs {
    points: Array2<f64>,
    pairs: [Array2<f64>; 2],
    exact: Vec<f64>,
}

impl Pairs {
    fn new(data: &Dataset, scaling: Scaling, r: f64, seed: u64) -> Self {
        let points = points(data, scaling, r);
        let mut rng = rng_of_step(seed, u64::MAX);
        let rows =
            [0; 2].map(|_| (0..PAIRS).map(|_| rng.random_range(0..points.nrows())).collect::<Vec<_>>());
        let pairs = rows.map(|rows| points.select(Axis(0), &rows));
        let dot = |k: usize| pairs[0].slice(s![k, ..]).dot(&pairs[1].slice(s![k, ..]));
        let exact = (0..PAIRS).map(|k| dot(k).exp()).collect();
        Pairs { points, pairs, exact }
    }
}

/// For each method the mean of MSE·10³ with its error, and n.
fn numbers(data: &Pairs, r: f64, seed: u64, draws: u64) -> Result<Vec<f64>, Stop> {
    let Pairs { points, pairs, exact } = data;
    let d = points.ncols();
    let mut numbers = Vec::new();
    for method in 0..METHODS.len() {
        let of = |n: usize, draws| {
            errors(pairs, exact, draws, |draw| map(method, d, n, r, (seed, (method as u64) << 32 | draw)))
        };
        let mut best = (f64::INFINITY, SIGNS[0]);
        for n in SIGNS {
            // Pilots are draws that the mean does not see.
            let pilots = of(n, draws..draws + PILOTS)?;
            let error = pilots.iter().sum::<f64>();
            if error < best.0 {
                best = (error, n);
            }
        }
        let Mean { value, error } = Mean::of(&of(best.1, 0..draws)?).times(1e3);
        numbers.extend([value, error, best.1 as f64]);
    }
    Ok(numbers)
}

/// The mean of MSE·10³ of what the planner chooses for all pairs of points and as many operations, and what that is.
fn planned(run: &mut Run<'_>, key: &str, data: &Pairs, draws: u64) -> Result<(Mean, String), Stop> {
    let seed = run.seed();
    let budget = M * data.points.ncols() + 2 * M;
    let best = Best::of(run, || {
        let planner = Planner::of_one_set(&data.points)?.with_kernel(Softmax::default());
        Ok(planner.with_budget(Measure::Multiplications, budget as f64))
    });
    let name = best.name(run, key)?;
    let found = run.cell(&format!("{key}, planner"), || {
        let recipe = &best.choice()?.recipe;
        // Not the draws of a method.
        let stream = |draw: u64| seed ^ (METHODS.len() as u64) << 32 ^ draw;
        let errors = errors(&data.pairs, &data.exact, 0..draws, |draw| Ok(recipe.draw(stream(draw))?))?;
        let Mean { value, error } = Mean::of(&errors).times(1e3);
        Ok(vec![value, error])
    })?;
    Ok((Mean { value: found[0], error: found[1] }, name))
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let (seed, draws) = (run.seed(), run.full_or_quick(DRAWS, 3));
    let (mut claim, mut tables, mut missing, mut ours, mut planner) =
        (Claim::default(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let here = run.here(SETS);
    run.expect(here * 3 * SCALINGS.len());
    for (set, published) in SETS.iter().zip(PUBLISHED) {
        let data = match run.data(set) {
            Ok(data) => data,
            Err(Stop::NoData(_)) => {
                missing.push(*set);
                continue;
            }
            Err(other) => return Err(other),
        };
        let (mut all, mut choices) = (Vec::new(), Vec::new());
        for (name, scaling, r) in SCALINGS {
            let (key, data) = (format!("{set}, {name}"), Pairs::new(&data, scaling, r, seed));
            let found = run.cell(&key, || numbers(&data, r, seed, draws))?;
            choices.push(planned(run, &key, &data, draws)?);
            let means: Vec<Mean> = found.chunks_exact(3).map(|k| Mean { value: k[0], error: k[1] }).collect();
            for hybrid in HYBRIDS {
                for other in OTHERS {
                    let statement = format!("{set}, {name}: {} below {}", METHODS[hybrid], METHODS[other]);
                    claim.less(statement, means[hybrid], means[other]);
                }
            }
            ours.push(format!("{} against {}", number(means[0].value), number(means[2].value)));
            all.push((means, found));
        }
        let heads = SCALINGS.iter().map(|(name, ..)| *name);
        let mut table = Table::new(
            format!("{set}: MSE·10³, with n of hybrids, and the paper's"),
            ["method"].into_iter().chain(heads).chain(["paper"]),
        );
        for (k, name) in METHODS.iter().enumerate() {
            let hybrid = HYBRIDS.contains(&k) || name.contains("hybrid");
            let cell = |(means, found): &(Vec<Mean>, Vec<f64>)| {
                let n = if hybrid { format!(", n = {}", found[3 * k + 2]) } else { String::new() };
                Cell::Noted(means[k], n)
            };
            let theirs = published.get(k).map(|(mse, spread)| format!("{mse} ± {spread}"));
            table.row(*name, all.iter().map(cell).chain([Cell::from(theirs)]));
        }
        let of_planner = choices.iter().map(|(mean, _)| Cell::from(*mean));
        table.row("beyond: planner", of_planner.chain([Cell::Empty]));
        tables.push(table);
        let names =
            SCALINGS.iter().zip(&choices).map(|((scaling, ..), (_, name))| format!("{scaling}: {name}"));
        planner.push(format!(
            "What the planner chooses for {set} at as many multiplications, for the least error of the Gram matrix: {}.",
            names.collect::<Vec<_>>().join("; ")
        ));
    }
    let mut notes =
        vec!["± are standard errors of means over draws here, standard deviations in the paper.".to_owned()];
    notes.append(&mut planner);
    if !missing.is_empty() {
        notes.push(format!("Not run, since their files are not here (--data): {}.", missing.join(", ")));
    }
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!("wine, MSE·10³ of HRF-ort against ORF-reg over scalings: {}", ours.join("; ")),
        theirs: "wine 0.70 ± 0.08 against 1.00 ± 0.04".into(),
        tables,
        notes,
        reasons: vec![
            "Why hybrids do not win here: a mean of squared errors is made by the pairs with the largest kernel, at small angles. There trigonometric features are nearly exact, and at equal work \
             more accurate than the angular hybrid up to some 80° (hybrid-figure-2), whose λ̂ has an error of its own. The hybrid's even relative errors do not show in this measure. The paper's sizes \
             of errors, 0.7 to 1.1, are those of norms 0.75; no scaling tried has its order.".into(),
        ],
        ..Outcome::default()
    })
}
