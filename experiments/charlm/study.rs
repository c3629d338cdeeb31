//! All methods on the text, with some seeds each: a small study, whose results are kept as they come.

use std::path::Path;

use crate::drive::Keeping;
use crate::moved;
use crate::outcomes::Outcomes;
use crate::request::Request;
use experiments::command;
use experiments::progress;
use experiments::transformer::text::Text;
use experiments::transformer::train::Plan;

/// Linear methods; [`EXACT`] is what they are compared with.
const METHODS: [&str; 29] = [
    "blocks",
    "trigonometric",
    "favor-independent",
    "favor-orthogonal",
    "favor-simplex",
    "oprf",
    "regularised",
    "hyperbolic",
    "sigmoid",
    "exp",
    "relu",
    "abs",
    "gelu",
    "cos",
    "tanh",
    "identity",
    "elu",
    "angular",
    "clusters",
    "shaped",
    "favor-orthogonal/near",
    "shaped/near",
    "trigonometric/redrawn",
    "favor-orthogonal/redrawn",
    "favor-simplex/redrawn",
    "relu/redrawn",
    "favor-orthogonal/sum",
    "relu/sum",
    "elu/sum",
];
const EXACT: &str = "exact";

pub fn run(request: &Request, text: &Text) -> Result<(), String> {
    let directory = request.keeping.directory.clone().unwrap_or_else(|| "target/charlm-study".into());
    // Bits of the held-out text.
    let mut outcomes = Outcomes::read(directory.join("study.results"))?;
    let names: Vec<&str> = [EXACT].into_iter().chain(METHODS).collect();
    let mut rows = vec![Vec::new(); names.len()];
    // A seed of all methods first: what is stopped early is still a comparison.
    let seeds = request.seeds;
    for seed in 0..seeds {
        for (index, (row, method)) in rows.iter_mut().zip(&names).enumerate() {
            progress::show(method, seed as usize * names.len() + index, names.len() * seeds as usize);
            let plan = Plan { seed, ..request.plan(method, text)? };
            let keeping = kept(*method == EXACT, &directory);
            let bits = || Ok(keeping.finish(plan.clone(), text)?.judge(request.judged())?.bits());
            row.push(outcomes.of(&plan, bits));
        }
    }
    command::print(&table(&names, &rows))?;
    moved::run(request, text, &directory)
}

/// Weights of exact attention are needed again.
pub fn kept(keeps: bool, directory: &Path) -> Keeping {
    Keeping { directory: keeps.then(|| directory.into()), resume: keeps }
}

/// Mean and standard error.
pub fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

fn table(names: &[&str], rows: &[Vec<Result<f64, String>>]) -> String {
    let mut table = format!("  {:<26} {:>15}  more than exact\n", "method", "bits ± s.e.");
    let exact = rows[0].iter().map(|bits| bits.as_ref().copied().unwrap_or(f64::NAN));
    let mut variances = Vec::new();
    for (name, row) in names.iter().zip(rows) {
        let bits: Result<Vec<f64>, &String> = row.iter().map(|bits| bits.as_ref().copied()).collect();
        let line = match bits {
            Ok(bits) => {
                let more: Vec<f64> = bits.iter().zip(exact.clone()).map(|(own, exact)| own - exact).collect();
                let ((bits, error), (more, of_more)) = (mean(&bits), mean(&more));
                if of_more > 0.0 && more.abs() < SIMILAR {
                    variances.push(of_more.powi(2));
                }
                format!("{bits:>7.3} ± {error:.3}  {more:>+7.3} ± {of_more:.3}")
            }
            Err(sentence) => format!("not run: {sentence}"),
        };
        table += &format!("  {name:<26} {line}\n");
    }
    let pooled = (variances.iter().sum::<f64>() / variances.len() as f64).sqrt();
    table
        + &format!(
            "  {} seeds, the same for all; pooled over the methods within {SIMILAR} bits of exact attention the standard error of a \
         difference\n  from it is {pooled:.3}: of so many differences those count that are larger than three times this, {:.3} \
         bits\n",
            rows[0].len(),
            3.0 * pooled
        )
}

/// Methods that learn what exact attention does, to so many bits, vary alike.
const SIMILAR: f64 = 0.3;
