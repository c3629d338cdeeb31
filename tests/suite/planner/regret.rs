//! Plans are judged on points that they have not seen; `--nocapture` shows the table.

use super::data::{Kind, kinds};
use super::study::{head, mean, rows};
use ndarray::{Array2, s};
use random_features::frequency::{Antithetic, Independent, Orthogonal, Simplex};
use random_features::recipe::AnyCoupling;

/// Draws in each of four batches, and a quarter of those of a judgement: a loss has a standard error of some 2 %, where plans may lose 10 %.
const DRAWS: usize = 48;

/// Clusters, and trained queries and keys: one with each of the kernels. Clusters have all couplings; in the many dimensions of queries
/// and keys closed forms of the simplex take long.
#[test]
fn plans_are_good_on_points_they_have_not_seen() {
    let (all, few): (_, [AnyCoupling; 2]) = (couplings(), [Independent.into(), Orthogonal.into()]);
    let some = |x: &Array2<f64>| x.slice(s![..300, ..]).to_owned();
    regrets_are_small(|kind| match kind.name {
        "clustered" => {
            Some((Kind { queries: some(&kind.queries), keys: some(&kind.keys), ..kind }, &all[..]))
        }
        "attention" => Some((kind, &few[..])),
        _ => None,
    });
}

#[test]
#[ignore = "takes a minute"]
fn plans_are_good_on_all_kinds_of_points() {
    let all = couplings();
    regrets_are_small(|kind| Some((kind, &all[..])));
}

fn couplings() -> [AnyCoupling; 4] {
    [Independent.into(), Orthogonal.into(), Simplex::default().into(), Antithetic(Orthogonal).into()]
}

/// Plans of the wanted kinds of points, each with its couplings, lose little on points that they have not seen.
fn regrets_are_small<'a>(wanted: impl Fn(Kind) -> Option<(Kind, &'a [AnyCoupling])>) {
    let mut all = Vec::new();
    println!("{}", head());
    // Each kind with one of the kernels.
    for (kind, softmax) in kinds().into_iter().zip([true, false].into_iter().cycle()) {
        let Some((kind, couplings)) = wanted(kind) else { continue };
        for row in rows(&kind, softmax, Some(couplings), DRAWS).unwrap() {
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
