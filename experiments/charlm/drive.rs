//! Runs from their beginning, or their checkpoint, to their end.

use std::path::PathBuf;

use experiments::progress;
use experiments::transformer::checkpoint;
use experiments::transformer::text::Text;
use experiments::transformer::train::{Plan, Run, State};

/// Steps from one checkpoint to the next.
const INTERVAL: usize = 100;

/// What is to be said of steps that were not taken, if there are any.
pub fn untaken(state: &State) -> String {
    match state.adam.skipped {
        0 => String::new(),
        skipped => format!(", {skipped} steps without a finite gradient"),
    }
}

/// Where checkpoints go, if anywhere, and whether those that are there are read.
#[derive(Clone, Default)]
pub struct Keeping {
    pub directory: Option<PathBuf>,
    pub resume: bool,
}

impl Keeping {
    fn kept(&self, plan: &Plan) -> Result<Option<State>, String> {
        let Some(directory) = self.directory.as_ref().filter(|_| self.resume) else { return Ok(None) };
        let path = checkpoint::path(directory, plan);
        match checkpoint::read::<State>(&path)? {
            Some(state) if state.plan != *plan => {
                Err(format!("{} is of another run: {:?}", path.display(), state.plan))
            }
            state => Ok(state),
        }
    }

    /// Runs to the end.
    pub fn finish<'a>(&self, plan: Plan, text: &'a Text) -> Result<Run<'a>, String> {
        let mut run = match self.kept(&plan)? {
            Some(state) => Run::resume(state, text)?,
            None => Run::new(plan, text)?,
        };
        self.go_on(&mut run)?;
        Ok(run)
    }

    /// Takes the steps that are left.
    pub fn go_on(&self, run: &mut Run<'_>) -> Result<(), String> {
        let Plan { method, steps, .. } = run.state.plan.clone();
        while !run.is_done() {
            run.step()?;
            let bits = run.state.curve.last().map_or(String::new(), |(_, bits)| format!(", {bits:.2} bits"));
            progress::show(&format!("{method}{bits}"), run.state.step, steps);
            if let Some(directory) = &self.directory
                && (run.state.step.is_multiple_of(INTERVAL) || run.is_done())
            {
                checkpoint::write(&checkpoint::path(directory, &run.state.plan), &run.state)?;
            }
        }
        Ok(())
    }
}
