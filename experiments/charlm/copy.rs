//! The copy task: the share of a key's characters that each method foretells.

use crate::request::Request;
use crate::{drive, picture};
use experiments::command;
use experiments::plot;
use experiments::transformer::task::{DISTANCE, LETTERS};
use experiments::transformer::text::Text;

/// The methods that are compared.
pub const METHODS: [&str; 22] = [
    "exact",
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
    "angular/wide",
    "clusters",
    "shaped",
    "favor-orthogonal/near",
];

pub fn run(request: &Request, text: &Text) -> Result<(), String> {
    command::print(&format!(
        "a key of {LETTERS} letters seen {DISTANCE} characters before; chance is {:.1} %\n  method                     foretold right      bits\n",
        100.0 / LETTERS as f64
    ))?;
    let mut runs = Vec::new();
    for method in &request.methods {
        let done = request
            .plan(method, text)
            .and_then(|plan| request.keeping.finish(plan, text))
            .and_then(|run| Ok((run.judge(request.judged())?, run.state)));
        match done {
            Ok((score, state)) => {
                let (share, bits) = (100.0 * score.accuracy(), score.bits());
                let untaken = drive::untaken(&state);
                command::print(&format!("  {method:<26} {share:>12.1} % {bits:>9.3}{untaken}\n"))?;
                runs.push((state, bits));
            }
            Err(sentence) if request.methods.len() > 1 => {
                command::print(&format!("  {method:<26} not run: {sentence}\n"))?;
            }
            Err(sentence) => return Err(sentence),
        }
    }
    plot::write(&[picture::curves("A key to copy", &runs, &[])], &request.out)
}
