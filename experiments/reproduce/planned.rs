//! What the planner chooses: the last row of comparisons.

use std::cell::OnceCell;

use random_features::frequency::{Independent, Orthogonal};
use random_features::planner::{Planner, RankedRecipe};

use crate::item::Stop;
use crate::run::Run;

/// A plan's best recipe, which is found when it is first asked for.
pub struct Best<'a> {
    planner: Box<dyn Fn() -> Result<Planner, Stop> + 'a>,
    choice: OnceCell<RankedRecipe>,
}

impl<'a> Best<'a> {
    pub fn of(run: &Run<'_>, planner: impl Fn() -> Result<Planner, Stop> + 'a) -> Self {
        let quick = run.full_or_quick(false, true);
        let planner = move || {
            let planner = planner()?;
            // Closed forms of other couplings take seconds.
            Ok(if quick { planner.with_couplings([Independent.into(), Orthogonal.into()]) } else { planner })
        };
        Best { planner: Box::new(planner), choice: OnceCell::new() }
    }

    pub fn choice(&self) -> Result<&RankedRecipe, Stop> {
        if let Some(choice) = self.choice.get() {
            return Ok(choice);
        }
        let choice = (self.planner)()?.plan()?.best()?.clone();
        Ok(self.choice.get_or_init(|| choice))
    }

    /// What it is called: kept, as numbers are.
    pub fn name(&self, run: &mut Run<'_>, key: &str) -> Result<String, Stop> {
        run.text(&format!("{key}, the planner's choice"), || {
            let choice = self.choice()?;
            Ok(format!("{}, {}, m = {}", choice.map, choice.coupling, choice.m))
        })
    }
}
