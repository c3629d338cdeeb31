//! The table of weights of exact attention that are moved to linear attention.

use std::path::Path;

use experiments::command;
use experiments::transformer::moved::Moved;
use experiments::transformer::text::Text;
use experiments::transformer::train::{Plan, Run};
use serde::{Deserialize, Serialize};

use crate::drive::Keeping;
use crate::outcomes::Outcomes;
use crate::request::{LINEAR, Request};
use crate::study::{kept, mean};

/// What weights are moved to.
const METHODS: [&str; 4] = ["trigonometric", "favor-independent", LINEAR, "favor-simplex"];

/// What is found for a seed.
#[derive(Clone, Serialize, Deserialize)]
struct Found {
    exact: f64,
    moved: f64,
    tuned: f64,
    errors: Vec<f64>,
}

fn found(
    plan: &Plan,
    method: &str,
    keeping: &Keeping,
    request: &Request,
    text: &Text,
) -> Result<Found, String> {
    let exact = keeping.finish(plan.clone(), text)?;
    let Moved { mut run, errors } = Moved::new(&exact, method, text)?;
    let bits = |run: &Run<'_>| Ok::<_, String>(run.judge(request.judged())?.bits());
    let moved = bits(&run)?;
    Keeping::default().go_on(&mut run)?;
    Ok(Found { exact: bits(&exact)?, moved, tuned: bits(&run)?, errors })
}

pub fn run(request: &Request, text: &Text, directory: &Path) -> Result<(), String> {
    let mut outcomes = Outcomes::read(directory.join("moved.results"))?;
    let heading = ["exact", "moved", "tuned"].map(|name| format!("{name:>15}")).join("");
    command::print(&format!("\nexact weights moved to{:<6}{heading}  errors after each layer\n", ""))?;
    for method in METHODS {
        let of_seed = |seed| {
            let plan = Plan { seed, ..request.plan("exact", text)? };
            let asked = (plan.clone(), method.to_string());
            outcomes.of(&asked, || found(&plan, method, &kept(true, directory), request, text))
        };
        let all = (0..request.seeds).map(of_seed).collect::<Result<Vec<Found>, String>>()?;
        let column = |of: &dyn Fn(&Found) -> f64| mean(&all.iter().map(of).collect::<Vec<f64>>());
        let cells = [column(&|f| f.exact), column(&|f| f.moved), column(&|f| f.tuned)];
        let cells = cells.map(|(mean, error)| format!("{mean:>7.3} ± {error:.3}")).join("  ");
        let layers = all[0].errors.len();
        let errors = (0..layers).map(|layer| column(&|f| f.errors[layer]));
        let errors =
            errors.map(|(mean, error)| format!("{mean:.3} ± {error:.3}")).collect::<Vec<_>>().join(", ");
        command::print(&format!("  {method:<26} {cells}  {errors}\n"))?;
    }
    Ok(())
}
