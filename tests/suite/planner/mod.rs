//! The planner: what it chooses for data, what it forecasts, what it keeps and what it refuses.

mod attention;
mod by_hand;
mod constraints;
mod data;
mod edges;
mod forecasts;
mod honesty;
mod nystroem;
mod plans;
mod problems;
mod proposals;
mod regret;
mod reservoir;
mod review;
mod ridge;
mod stated;
mod targets;
mod truth;

use random_features::frequency::{Antithetic, Independent, Orthogonal};
use random_features::planner::{Calibration, Loss, Plan, Planner};
use random_features::recipe::AnyCoupling;
use random_features::workbench;

use experiments::planning::regret::{self as study, label};

/// Couplings that keep plans quick: closed forms of others take long.
fn couplings() -> [AnyCoupling; 3] {
    [Independent.into(), Orthogonal.into(), Antithetic(Orthogonal).into()]
}

/// Times of some machine: measured ones would differ.
pub fn calibration() -> Calibration {
    workbench::calibration([0.02, 0.05, 0.06, 1.5, 1.1, 2.5, 3.0, 0.3, 0.7, 5.0, 9.0])
}

fn near(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < 1e-8, "{what}: {found}, by hand {expected}");
}

/// A plan with these couplings.
fn quick(planner: &Planner, features: usize) -> Plan {
    planner.clone().with_couplings(couplings()).with_max_features(features).plan().unwrap()
}

const LOSSES_OF_PAIRS: [Loss; 5] =
    [Loss::Gram, Loss::RelativeMean, Loss::RelativeMedian, Loss::RelativeNinety, Loss::RelativeNinetyNine];
