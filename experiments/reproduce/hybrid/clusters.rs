//! Table 3 and Figure 6: a map for each pair of clusters.

use experiments::plot::{Panel, Series};
use ndarray::{Array2, Zip};
use random_features::compose::{Centres, Clustered};
use random_features::data::Clustering;
use random_features::frequency::{Independent, draw};
use random_features::kernel::{Kernel, Softmax};
use random_features::workbench::Formula;
use random_features::{Hyperbolic, Map, Positive, Side, Trigonometric, rng};

use super::cluster_data::{self, D, Data, Setup};
use super::cluster_paper::{self as paper, FEATURES};
use crate::item::{Item, Outcome, Paper, Stop};
use crate::mean::Mean;
use crate::run::Run;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "hybrid-table-3",
    paper: Paper::Hybrid,
    place: "Table 3 and Figure 6",
    claim: "On clustered points the cluster hybrid with real diagonals A and zero-one λ errs less than FAVOR+ and trigonometric features.",
    setting: "Four synthetic sets in ℝ⁵⁰, two Gaussian clusters of 1000 points a side, 20 repetitions; 20 to 200 features estimate a pair of \
              points; mean squared error over all pairs. FAVOR+ in this experiment is the hyperbolic map, beside which stands the positive one. \
              The paper does not say: the norms of the means (100 before scaling, chosen from 50, 100 and 200 after a look at the results) and of \
              scaled points (root mean square 0.7), which pair of clusters has which s, whether s is taken before or after scaling (here after), and whether 20 \
              trigonometric features are 10 or 20 frequencies (here 10). So sizes are not comparable, and it prints no means.",
    rule: "For each set and number of features the mean error of the cluster hybrid with real A is below those of the hyperbolic and of the \
           trigonometric map, by 3 standard errors of the mean difference of logarithms over 20 repetitions, which share points and draws: 0.004 each for normal means.",
    minutes: 6.0,
    data: &[],
    run,
};

/// The norm of the clusters' means before all is scaled, and the root mean square norm of points after that.
const MEANS: f64 = 100.0;
const NORM: f64 = 0.7;

/// A kind of map, and where the paper's numbers for it stand.
#[derive(Clone, Copy)]
struct Method {
    name: &'static str,
    kind: Kind,
    /// The column of the paper's table.
    published: Option<usize>,
}

#[derive(Clone, Copy)]
enum Kind {
    Clusters(Formula),
    Hyperbolic,
    Positive,
    Trigonometric,
}

const METHODS: [Method; 6] = [
    Method { name: "clusters, real A", kind: Kind::Clusters(Formula::Real), published: Some(0) },
    Method { name: "hyperbolic (FAVOR+ there)", kind: Kind::Hyperbolic, published: Some(1) },
    Method { name: "trigonometric", kind: Kind::Trigonometric, published: Some(2) },
    Method { name: "positive (FAVOR+)", kind: Kind::Positive, published: None },
    Method { name: "clusters, robust real A", kind: Kind::Clusters(Formula::RobustReal), published: None },
    Method { name: "clusters, robust A", kind: Kind::Clusters(Formula::Robust), published: None },
];

/// The errors of a method with some number of features.
struct Errors {
    /// The error of each repetition.
    all: Vec<f64>,
    /// The closed form, averaged over some pairs of points.
    closed: f64,
}

impl Errors {
    fn mean(&self) -> Mean {
        Mean::of(&self.all)
    }

    fn least(&self) -> f64 {
        self.all.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn most(&self) -> f64 {
        self.all.iter().copied().fold(0.0, f64::max)
    }
}

/// A set of the paper as it is made here.
struct Set {
    data: Data,
    exact: Array2<f32>,
    clusters: [Clustering; 2],
}

impl Set {
    fn new(setup: &Setup, published: &paper::Set) -> Result<Self, Stop> {
        let data = cluster_data::make(setup, published)?;
        let exact = Softmax::default().gram(&data.x, &data.y)?;
        let mut generator = rng(setup.seed);
        let clusters =
            [Clustering::of(&data.x, 2, &mut generator)?, Clustering::of(&data.y, 2, &mut generator)?];
        Ok(Set { data, exact, clusters })
    }

    /// A map whose estimate of each pair of points takes `features` real features.
    fn map(&self, kind: Kind, features: usize, seed: u64) -> Result<Map<f32>, Stop> {
        let omega = |frequencies: usize| draw(D, frequencies, &Independent, &mut rng(seed));
        Ok(match kind {
            Kind::Positive => Positive.softmax(omega(features)?)?,
            Kind::Hyperbolic => Hyperbolic.softmax(omega(features / 2)?)?,
            Kind::Trigonometric => Trigonometric.softmax(omega(features / 2)?)?,
            Kind::Clusters(formula) => {
                let each = if formula == Formula::Robust { 2 } else { 1 };
                let [queries, keys] = &self.clusters;
                let centres = Centres::new(queries, keys).with_diagonal(formula);
                Clustered::by_centres(centres, omega(features / each)?, Softmax::default())?
            }
        })
    }

    /// The mean squared error over all pairs of points.
    fn error(&self, map: &Map<f32>) -> Result<f64, Stop> {
        let estimates = map.features(Side::X, &self.data.x)?.gram(&map.features(Side::Y, &self.data.y)?)?;
        let rows = Zip::from(estimates.rows()).and(self.exact.rows());
        let square = |a: &f32, b: &f32| f64::from(a - b).powi(2);
        let sum = rows.fold(0.0, |sum, a, b| sum + a.iter().zip(b).map(|(a, b)| square(a, b)).sum::<f64>());
        Ok(sum / self.exact.len() as f64)
    }

    /// The closed form of the mean squared error, averaged over some pairs.
    fn closed(&self, map: &Map<f32>, pairs: usize) -> Result<f64, Stop> {
        let (n, l) = (self.data.x.nrows(), self.data.y.nrows());
        let mut sum = 0.0;
        for pair in 0..pairs {
            // Steps without a common divisor with the numbers of points reach every cluster evenly.
            let (x, y) = (self.data.x.row(pair * 7919 % n), self.data.y.row(pair * 7907 % l));
            sum += map.log_variance(&x, &y)?.map_or(f64::NAN, f64::exp);
        }
        Ok(sum / pairs as f64)
    }

    /// The errors of all repetitions, then the closed form, for each number of features.
    fn errors(&self, setup: &Setup, kind: Kind, pairs: usize) -> Result<Vec<f64>, Stop> {
        let mut numbers = Vec::new();
        for features in FEATURES {
            let error =
                |repetition: u64| self.error(&self.map(kind, features, setup.seed + 1 + repetition)?);
            numbers.extend((0..setup.repetitions).map(error).collect::<Result<Vec<f64>, Stop>>()?);
            numbers.push(self.closed(&self.map(kind, features, setup.seed)?, pairs)?);
        }
        Ok(numbers)
    }
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let setup = Setup {
        points: run.full_or_quick(1000, 40),
        repetitions: run.full_or_quick(20, 2),
        means: MEANS,
        norm: NORM,
        seed: run.seed(),
    };
    let pairs = run.full_or_quick(5000, 50);
    run.expect(paper::SETS.len() * (METHODS.len() + 1));
    let (mut claim, mut tables, mut panels, mut gains) =
        (Claim::default(), Vec::new(), Vec::new(), Vec::new());
    for published in &paper::SETS {
        let mut set = None;
        let mut rows = Vec::new();
        for Method { name, kind, .. } in METHODS {
            let numbers = run.cell(&format!("{}, {name}", published.name), || {
                if set.is_none() {
                    set = Some(Set::new(&setup, published)?);
                }
                set.as_ref().map_or(Ok(Vec::new()), |set| set.errors(&setup, kind, pairs))
            })?;
            let repetitions = setup.repetitions as usize;
            let of = |n: &[f64]| Errors { all: n[..repetitions].to_vec(), closed: n[repetitions] };
            rows.push(numbers.chunks(repetitions + 1).map(of).collect::<Vec<_>>());
        }
        let facts = run.cell(&format!("{}, residuals and mean kernel", published.name), || {
            let set = Set::new(&setup, published)?;
            let kernel = set.exact.iter().map(|v| f64::from(*v)).sum::<f64>() / set.exact.len() as f64;
            Ok(set.data.s.into_iter().flatten().chain([kernel]).collect())
        })?;
        for (k, features) in FEATURES.iter().enumerate() {
            for other in [1, 2] {
                let statement =
                    format!("{}, {features} features: better than {}", published.name, METHODS[other].name);
                let difference = Mean::of_log_ratios(&rows[0][k].all, &rows[other][k].all);
                claim.less(statement, difference, Mean::exact(0.0));
            }
        }
        let last = FEATURES.len() - 1;
        gains.push(format!(
            "{} {}",
            published.name,
            number(rows[1][last].mean().value / rows[0][last].mean().value)
        ));
        tables.push(table(published, &facts, &rows));
        panels.push(panel(published, &rows));
    }
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!("errors of FAVOR+ over those of the hybrid, 200 features: {}", gains.join("; ")),
        theirs: "by the least and the largest errors: 6.5 and 20.5; 6.0 and 13.1; 3.4 and 4.8; 3.8 and 5.4".into(),
        tables,
        panels,
        notes: vec![
            "A default base for minor pairs of clusters (Section 2.4) and weights λ by features (Equations 93–96) are tested in hybrid-appendix-h."
                .into(),
        ],
        reasons: vec![
            "Why the hybrid loses on s₃ and s₄, where clusters are widest: real A has large entries where coordinates of centres nearly vanish, and off the centres, at σ = √10, they make errors that closed forms have too. The \
             robust real A, which bounds them, is better than FAVOR+ on all four sets. At means of norm 50, which were tried first, this goes further."
                .into(),
            "In the paper trigonometric features are better than FAVOR+ as a rule; here they are not, sampled or by closed forms.".into(),
        ],
        ..Outcome::default()
    })
}

fn table(published: &paper::Set, facts: &[f64], rows: &[Vec<Errors>]) -> Table {
    let list = |s: &[f64]| s.iter().map(|s| format!("{s:.3}")).collect::<Vec<_>>().join(", ");
    let title = format!(
        "{}: mean squared errors; s = [{}], in the paper [{}]; mean kernel {:.3}",
        published.name,
        list(&facts[..4]),
        list(&published.s),
        facts[4]
    );
    let heads = std::iter::once("features".to_owned()).chain(FEATURES.map(|features| features.to_string()));
    let mut table = Table::new(title, heads);
    for (method, row) in METHODS.iter().zip(rows) {
        let beyond = if method.name.contains("robust") { "beyond: " } else { "" };
        table.row(format!("{beyond}{}", method.name), row.iter().map(Errors::mean));
        table.row("   least", row.iter().map(Errors::least));
        table.row("   most", row.iter().map(Errors::most));
        table.row("   closed form", row.iter().map(|errors| errors.closed));
        if let Some(column) = method.published {
            let ranges = published.ranges.iter();
            table.row(
                "   in the paper",
                ranges.map(|r| Cell::Text(format!("{}–{}", r[column].0, r[column].1))),
            );
        }
    }
    table
}

fn panel(published: &paper::Set, rows: &[Vec<Errors>]) -> Panel {
    let x = || FEATURES.iter().map(|features| *features as f64);
    let series = |(method, row): (&Method, &Vec<Errors>)| Series {
        name: method.name.into(),
        line: x().zip(row.iter().map(|errors| errors.closed)).collect(),
        points: x().zip(row.iter().map(|errors| errors.mean().value)).collect(),
    };
    Panel {
        title: published.name.into(),
        x_label: "real features for a pair of points".into(),
        y_label: "MSE, softmax kernel (points: sampled; lines: closed form)".into(),
        series: METHODS.iter().zip(rows).map(series).collect(),
    }
}
