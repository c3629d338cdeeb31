//! The planner: what it chooses for data, what it forecasts, what it keeps and what it refuses.

mod attention;
mod constraints;
mod data;
mod edges;
mod forecasts;
mod plans;
mod regret;
mod reservoir;
mod ridge;
mod targets;

use random_features::frequency::{Antithetic, AnyCoupling, Independent, Orthogonal};
use random_features::planner::{Choice, Loss, Plan, Planner};

/// Couplings that keep plans quick: closed forms of others take long.
fn couplings() -> [AnyCoupling; 3] {
    [Independent.into(), Orthogonal.into(), Antithetic(Orthogonal).into()]
}

/// A plan with these couplings.
fn quick(planner: &Planner, features: usize) -> Plan {
    planner.clone().couplings(couplings()).features(features).plan().unwrap()
}

/// What a choice and its recipe are called.
fn label(choice: &Choice) -> String {
    format!("{} / {} / m = {}", choice.map, choice.coupling, choice.frequencies)
}

const LOSSES_OF_PAIRS: [Loss; 5] =
    [Loss::Gram, Loss::RelativeMean, Loss::RelativeMedian, Loss::RelativeNinety, Loss::RelativeNinetyNine];
