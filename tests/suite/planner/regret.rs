//! Plans are judged on points that they have not seen; `--nocapture` shows the table.

use super::data::kinds;
use super::study::{head, mean, rows};
use random_features::frequency::{Antithetic, Independent, Orthogonal, Simplex};

/// Draws in each of four batches, and a quarter of those of a judgement: a loss has a standard error of some 2 %, where plans may lose 10 %.
const DRAWS: usize = 48;

/// Clusters, and trained queries and keys: one with each of the kernels.
#[test]
fn plans_are_good_on_points_they_have_not_seen() {
    regrets_are_small(&["clustered", "attention"]);
}

#[test]
#[ignore = "takes a minute"]
fn plans_are_good_on_all_kinds_of_points() {
    regrets_are_small(&kinds().iter().map(|kind| kind.name).collect::<Vec<_>>());
}

fn regrets_are_small(names: &[&str]) {
    let couplings =
        [Independent.into(), Orthogonal.into(), Simplex::default().into(), Antithetic(Orthogonal).into()];
    let mut all = Vec::new();
    println!("{}", head());
    // Each kind with one of the kernels.
    for (kind, softmax) in kinds().into_iter().zip([true, false].into_iter().cycle()) {
        if !names.contains(&kind.name) {
            continue;
        }
        for row in rows(&kind, softmax, Some(&couplings), DRAWS).unwrap() {
            println!("{row}");
            all.push(row);
        }
    }
    let (planner, naive, random) =
        (mean(&all, |row| row.planner), mean(&all, |row| row.naive), mean(&all, |row| row.random));
    println!("Geometric means: planner {planner:.4}, naive {naive:.4}, random {random:.4}");
    for row in &all {
        assert!(row.planner <= row.allowed, "{}: regret {} of {}", row.name, row.planner, row.allowed);
        let lost = (1.0 + row.planner) / (1.0 + row.naive) - 1.0;
        assert!(lost <= row.allowed, "{}: loses {lost} to positive orthogonal features", row.name);
    }
    assert!(planner < naive && planner < random, "{planner}, {naive}, {random}");
}
