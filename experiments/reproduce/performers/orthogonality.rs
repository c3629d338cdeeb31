//! Figure 4: the error of attention on random tokens, over the number of frequencies.

use std::cell::OnceCell;

use experiments::attention::{KINDS, Kind, Stream, attention, square_distance, squared_sum, tokens};
use experiments::plot::{Panel, Series};
use ndarray::{Array2, Array4, Axis};
use random_features::apply::attention::{Attention, ExactAttention, Heads, TokenSample};
use random_features::extend::Coupling;
use random_features::frequency::{Independent, Orthogonal, Simplex};
use random_features::planner::Planner;
use random_features::{Error, Map, Result};
use rayon::prelude::*;

use crate::item::{Item, Outcome, Paper, Stop};
use crate::mean::Mean;
use crate::planned::Best;
use crate::run::Run;
use crate::table::{Cell, Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "performers-figure-4",
    paper: Paper::Performers,
    place: "Figure 4",
    claim: "In attention orthogonal features err less than independent ones, and positive features less than trigonometric ones.",
    setting: "L = 4096 random tokens, d = d_v = 16, 15 repetitions of tokens and features; mean squared error of the output against exact attention. \
              Trigonometric and hyperbolic maps make 2m features of m frequencies. The paper says \"appropriately normalized\" of the tokens and no more: \
              queries and keys are N(0, s²) with s = ½ and s = 1, values N(0, 1).",
    rule: "At every m and both sizes: orthogonal features err less than independent ones, positive and trigonometric; and positive orthogonal \
           features less than trigonometric orthogonal ones. Each by 3 standard errors of the mean difference of logarithms over 15 repetitions, which share their tokens: 0.005 \
           each for normal means.",
    minutes: 4.0,
    data: &[],
    run,
};

/// The dimension of tokens, as in the paper.
const D: usize = 16;
/// Standard deviations of the entries of queries and keys.
const SIZES: [f64; 2] = [0.5, 1.0];
/// Queries and keys of an error report, and the number of reports that predictions are the mean of.
const SAMPLE: [usize; 2] = [32, 256];
const SAMPLES: usize = 8;

fn couplings() -> [(&'static str, Box<dyn Coupling>); 3] {
    [
        ("independent", Box::new(Independent)),
        ("orthogonal", Box::new(Orthogonal)),
        ("simplex", Box::new(Simplex::default())),
    ]
}

/// The size of a run.
struct Setup {
    length: usize,
    /// The numbers of frequencies, increasing.
    frequencies: Vec<usize>,
    repetitions: usize,
    seed: u64,
}

/// Queries, keys, values and the exact output.
struct Data {
    tokens: [Array4<f32>; 3],
    exact: Array4<f32>,
    squared_sum: f64,
}

/// The rows of one head.
fn rows(head: &Array4<f32>) -> Array2<f32> {
    head.index_axis(Axis(0), 0).index_axis_move(Axis(0), 0).to_owned()
}

impl Data {
    fn draw(setup: &Setup, [queries, keys]: [usize; 2], size: f64, repetition: usize) -> Result<Self> {
        let stream = |which| Stream::new(setup.seed, [0, repetition, which]);
        let q = tokens((queries, D), size, stream(0));
        let k = tokens((keys, D), size, stream(1));
        let v = tokens((keys, D), 1.0, stream(2));
        let exact = ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v)?)?.output;
        let squared_sum = squared_sum(rows(&q).view(), rows(&k).view())?;
        Ok(Data { tokens: [q, k, v], exact, squared_sum })
    }

    /// The mean squared error of the output.
    fn error(&self, kind: Kind, coupling: &dyn Coupling, m: usize, stream: Stream) -> Result<f64> {
        self.error_of(&attention(kind, coupling, (D, m), self.squared_sum, stream)?)
    }

    fn error_of(&self, attention: &Attention<f32>) -> Result<f64> {
        let [q, k, v] = &self.tokens;
        let attended = attention.bidirectional(&Heads::new(q, k, v)?)?;
        Ok(square_distance(&attended.output, &self.exact) / self.exact.len() as f64)
    }

    fn error_of_mean(&self) -> f64 {
        let mean = self.tokens[2].mean_axis(Axis(2)).unwrap_or_default().insert_axis(Axis(2));
        let mean = mean.broadcast(self.exact.dim()).map(|mean| mean.to_owned()).unwrap_or_default();
        square_distance(&mean, &self.exact) / self.exact.len() as f64
    }
}

/// What the error report of a sample expects for each number of frequencies; not a number where it is not valid.
fn report(setup: &Setup, sample: &Data, kind: Kind) -> Result<Vec<f64>> {
    let most = setup.frequencies[setup.frequencies.len() - 1];
    let stream = Stream::new(setup.seed, [1, 0, most]);
    let attention = attention(kind, &Independent, (D, most), sample.squared_sum, stream)?;
    let [q, k, v] = sample.tokens.each_ref().map(rows);
    let report = match attention.error_report(&TokenSample::new(&q, &k).with_values(&v)) {
        Ok(report) => report,
        Err(Error::Unsupported { .. }) => return Ok(vec![f64::NAN; setup.frequencies.len()]),
        Err(error) => return Err(error),
    };
    let size = sample.exact.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / sample.exact.len() as f64;
    // It speaks of the sample's keys. With values that do not depend on keys, squared errors fall with the number of keys,
    // as those of any mean.
    let keys = k.nrows() as f64 / setup.length as f64;
    let of = |m: &usize| report.output_error_with(*m).map_or(f64::NAN, |error| error.powi(2) * size * keys);
    Ok(setup.frequencies.iter().map(of).collect())
}

/// The mean over reports of some samples, for each number of frequencies.
fn predicted(setup: &Setup, kind: Kind, size: f64) -> Result<Vec<f64>> {
    let sample = |number: usize| {
        let counts = SAMPLE.map(|n| n.min(setup.length));
        let sample = Data::draw(setup, counts, size, 1 + setup.repetitions + number)?;
        report(setup, &sample, kind)
    };
    let first = sample(0)?;
    // Reports that say what else would do take far longer than those with an error.
    let others = if first.iter().any(|value| value.is_finite()) { 1..SAMPLES } else { 0..0 };
    let mut reports = others.into_par_iter().map(sample).collect::<Result<Vec<_>>>()?;
    reports.push(first);
    let mean = |m: usize| reports.iter().map(|report| report[m]).sum::<f64>() / reports.len() as f64;
    Ok((0..setup.frequencies.len()).map(mean).collect())
}

/// The mean squared errors of all repetitions for each coupling and each number of frequencies, then predictions.
fn errors(setup: &Setup, data: &[Data], kind: Kind, size: f64) -> Result<Vec<f64>> {
    let mut numbers = Vec::new();
    for (_, coupling) in couplings() {
        for m in &setup.frequencies {
            let stream = |repetition| Stream::new(setup.seed, [1, 1 + repetition, *m]);
            let error =
                |(repetition, data): (usize, &Data)| data.error(kind, &*coupling, *m, stream(repetition));
            numbers.extend(data.iter().enumerate().map(error).collect::<Result<Vec<_>>>()?);
        }
    }
    numbers.extend(predicted(setup, kind, size)?);
    Ok(numbers)
}

/// The mean squared error and its standard error of what the planner chooses from the first tokens for at most m features, for each m,
/// and the names of its choices.
fn planned(run: &mut Run<'_>, setup: &Setup, size: f64) -> Result<(Vec<Mean>, Vec<String>), Stop> {
    let draw = |repetition| Data::draw(setup, [setup.length; 2], size, 1 + repetition);
    let (mut means, mut names) = (Vec::new(), Vec::new());
    for &m in &setup.frequencies {
        let best = Best::of(run, || {
            let [q, k, v] = &draw(0)?.tokens;
            Ok(Planner::of_heads(q, k, Some(v))?.with_max_features(m))
        });
        let key = format!("size {size}, m = {m}");
        names.push(best.name(run, &key)?);
        let numbers = run.cell(&format!("{key}, planner"), || {
            let error = |repetition: usize| -> Result<f64, Stop> {
                let map: Map<f32> = best.choice()?.recipe.draw(setup.seed + 1 + repetition as u64)?;
                let attention = if map.facts().non_negative {
                    Attention::new(map)?
                } else {
                    Attention::signed(vec![map])?
                };
                Ok(draw(repetition)?.error_of(&attention)?)
            };
            let errors = (0..setup.repetitions).map(error).collect::<Result<Vec<f64>, Stop>>()?;
            let Mean { value, error } = Mean::of(&errors);
            Ok(vec![value, error])
        })?;
        means.push(Mean { value: numbers[0], error: numbers[1] });
    }
    Ok((means, names))
}

/// A row of the figure.
struct Curve {
    map: &'static str,
    coupling: &'static str,
    /// For each number of frequencies, the errors of all repetitions.
    measured: Vec<Vec<f64>>,
    /// For independent frequencies.
    predicted: Option<Vec<f64>>,
}

impl Curve {
    fn mean(&self, k: usize) -> Mean {
        Mean::of(&self.measured[k])
    }

    fn means(&self) -> impl Iterator<Item = Mean> {
        (0..self.measured.len()).map(|k| self.mean(k))
    }
}

/// All maps on tokens of one size, and the error of the mean of the values.
fn panel(run: &mut Run<'_>, setup: &Setup, size: f64) -> Result<(Vec<Curve>, f64), Stop> {
    let cell = OnceCell::new();
    let data = || {
        let draw = |repetition| Data::draw(setup, [setup.length; 2], size, 1 + repetition);
        cell.get_or_init(|| (0..setup.repetitions).map(draw).collect::<Result<Vec<_>>>())
            .as_ref()
            .map_err(|error| Stop::Failed(error.to_string()))
    };
    let count = setup.frequencies.len();
    let mut curves = Vec::new();
    for (map, kind) in KINDS {
        let numbers = run.cell(&format!("size {size}, {map}"), || Ok(errors(setup, data()?, kind, size)?))?;
        for (which, (coupling, _)) in couplings().into_iter().enumerate() {
            let own = numbers.chunks(setup.repetitions).skip(count * which).take(count);
            let measured = own.map(<[f64]>::to_vec).collect();
            let predicted = (which == 0).then(|| numbers[numbers.len() - count..].to_vec());
            curves.push(Curve { map, coupling, measured, predicted });
        }
    }
    let mean = run.cell(&format!("size {size}, mean of the values"), || {
        let errors: Vec<f64> = data()?.iter().map(Data::error_of_mean).collect();
        Ok(vec![Mean::of(&errors).value])
    })?;
    Ok((curves, mean[0]))
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let setup = Setup {
        length: run.full_or_quick(4096, 256),
        frequencies: run.full_or_quick(vec![16, 32, 64, 128, 256, 512], vec![16, 32]),
        repetitions: run.full_or_quick(15, 3),
        seed: run.seed(),
    };
    run.expect(SIZES.len() * (KINDS.len() + 1 + 2 * setup.frequencies.len()));
    let (mut claim, mut tables, mut panels, mut ours, mut choices) =
        (Claim::default(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for size in SIZES {
        let (curves, mean) = panel(run, &setup, size)?;
        let of = |map: &str, coupling: &str| {
            let own = curves.iter().find(|c| c.map == map && c.coupling == coupling);
            own.ok_or_else(|| Stop::Failed(format!("no {coupling} {map} features")))
        };
        let positive = of("positive", "orthogonal")?;
        let trigonometric = of("trigonometric", "orthogonal")?;
        for (k, m) in setup.frequencies.iter().enumerate() {
            let mut less = |statement: String, a: &Curve, b: &Curve| {
                claim.less(statement, Mean::of_log_ratios(&a.measured[k], &b.measured[k]), Mean::exact(0.0));
            };
            for map in ["trigonometric", "positive"] {
                let statement = format!("orthogonal {map} features err less at m = {m}, s = {size}");
                less(statement, of(map, "orthogonal")?, of(map, "independent")?);
            }
            less(format!("positive features err less at m = {m}, s = {size}"), positive, trigonometric);
        }
        let most = setup.frequencies.len() - 1;
        let ratio = number(positive.mean(most).value / trigonometric.mean(most).value);
        ours.push(format!("s = {size}: positive over trigonometric {ratio} at the most frequencies"));
        let (planned, names) = planned(run, &setup, size)?;
        let mut table = table(&setup, size, &curves, mean);
        table.row("beyond: planner", planned);
        tables.push(table);
        let named =
            setup.frequencies.iter().zip(names).map(|(m, name)| format!("{name} (at most {m} features)"));
        choices.push(format!("The planner's choices, s = {size}: {}.", named.collect::<Vec<_>>().join("; ")));
        panels.push(picture(&setup, size, &curves, mean));
    }
    let mut notes = vec![
        "Predicted: what the error report expects for independent frequencies, where it is valid. Beyond the paper: OPRF, which takes its A from the \
         data, simplex frequencies, and what the planner chooses for the least error of the output, from the first tokens and for at most m features: half as many as trigonometric and hyperbolic \
         maps of m frequencies have."
            .to_owned(),
    ];
    notes.push(format!(
        "Positive orthogonal features err more than trigonometric orthogonal ones at small norms, against Section 4.2: where attention is nearly uniform the variance of a \
         cosine is below that of an exponential ({}). Orthogonality gains less, the larger norms are: of positive features those few decide whose frequencies lie along x + y, and no coupling \
         makes these more even.",
        ours.join("; ")
    ));
    notes.append(&mut choices);
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: ours.join("; "),
        theirs: "a picture".into(),
        tables,
        panels,
        notes,
        ..Outcome::default()
    })
}

fn table(setup: &Setup, size: f64, curves: &[Curve], mean: f64) -> Table {
    let title = format!(
        "s = {size}: mean squared error of the output ± standard error; that of the mean of the values is {}",
        number(mean)
    );
    let heads = setup.frequencies.iter().map(|m| format!("m = {m}"));
    let mut table = Table::new(title, std::iter::once("map".to_owned()).chain(heads));
    for curve in curves {
        table.row(format!("{}, {}", curve.map, curve.coupling), curve.means());
        if let Some(predicted) = curve.predicted.as_ref().filter(|all| all.iter().any(|v| v.is_finite())) {
            let cell = |v: &f64| if v.is_finite() { Cell::Number(*v) } else { Cell::Empty };
            table.row("   predicted", predicted.iter().map(cell));
        }
    }
    table
}

fn picture(setup: &Setup, size: f64, curves: &[Curve], mean: f64) -> Panel {
    let x = || setup.frequencies.iter().map(|m| (*m as f64).log2());
    let series = |curve: &Curve| Series {
        name: format!("{}, {}", curve.map, curve.coupling),
        line: x().zip(curve.predicted.iter().flatten().copied()).collect(),
        points: x().zip(curve.means().map(|mean| mean.value)).collect(),
    };
    let of_mean = Series {
        name: "mean of the values".into(),
        line: x().map(|x| (x, mean)).collect(),
        points: Vec::new(),
    };
    Panel {
        title: format!("q, k ~ N(0, {size}²), L = {}, d = {D}", setup.length),
        x_label: "log₂ m".into(),
        y_label: "MSE of the output (points: measured; lines: predicted)".into(),
        series: std::iter::once(of_mean).chain(curves.iter().map(series)).collect(),
    }
}
