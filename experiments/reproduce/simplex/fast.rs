//! Table 3: fast frequencies against regular ones in classification.

use experiments::dataset::Dataset;
use random_features::frequency::{Hadamard, Independent, Orthogonal, Simplex};
use random_features::recipe::AnyCoupling;
use random_features::workbench::RotationLaw;

use super::classification::{self, SETS, TUNING, mean, means, padded, repeat, repetitions, tuned};
use crate::item::{Item, Outcome, Paper, Stop};
use crate::mean::Mean;
use crate::run::Run;
use crate::source::{Source, draws};
use crate::table::{Cell, Table};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "simplex-table-3",
    paper: Paper::Simplex,
    place: "Table 3",
    claim: "Products of Hadamard and sign matrices in place of a uniform rotation do not substantially change accuracies.",
    setting: "Kernel regression with positive features, m = d, d padded with zeros to a power of two for all columns, three Hadamard factors; \
              protocol and σ as in Table 2. The numbers of the paper's table are not in its text.",
    rule: "On each data set at hand and for orthogonal and simplex frequencies, the accuracy of the fast ones is less than 0.01 below and \
           less than 0.01 above the regular ones', by 3 standard errors of paired differences. Of 16 such statements, if all are true, one is \
           called false in fewer than 1 of 45 runs.",
    minutes: 1.5,
    data: SETS,
    run,
};

/// What counts as substantial.
const MARGIN: f64 = 0.01;
const NAMES: [&str; 5] = ["independent", "orthogonal", "orthogonal, fast", "simplex", "simplex, fast"];
/// Points of all repetitions.
const POINTS: f64 = 2e7;

fn coupling(k: usize) -> AnyCoupling {
    let hadamard = Hadamard::default();
    match k {
        0 => Independent.into(),
        1 => Orthogonal.into(),
        2 => hadamard.into(),
        3 => Simplex::default().into(),
        _ => Simplex::on(RotationLaw::Hadamard(hadamard)).into(),
    }
}

/// σ; then accuracies, and the gains of fast over regular ones.
fn numbers(data: &Dataset, seed: u64, count: u64, tuning: u64) -> Result<Vec<f64>, Stop> {
    let sigma = tuned(data, seed, tuning)?;
    let found = repeat(data, seed, count, |split, k| {
        let split = padded(split);
        let m = split.train.points.ncols();
        let of = |method: usize| {
            let draws = draws(seed, method as u64 + 1, k);
            Ok(Source::Positive(coupling(method)).accuracies(&split, sigma, m, draws)?[1])
        };
        (0..NAMES.len()).map(of).collect::<Result<Vec<f64>, Stop>>()
    })?;
    let mut numbers = vec![sigma];
    numbers.extend((0..NAMES.len()).flat_map(|k| mean(&found, |row| row[k])));
    numbers.extend([1, 3].iter().flat_map(|k| mean(&found, |row| row[k + 1] - row[*k])));
    Ok(numbers)
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let here = run.here(SETS.iter().copied());
    run.expect(here);
    let seed = run.seed();
    let mut claim = Claim::default();
    let heads = ["data set", "padded d", "σ"].into_iter().chain(NAMES);
    let mut table = Table::new(
        "Accuracy on test parts, m = d",
        heads.chain(["fast − regular, orthogonal", "fast − regular, simplex"]),
    );
    let mut largest = 0.0f64;
    for set in SETS {
        let Ok(data) = classification::data(run, set)? else {
            table.row(*set, ["not run"]);
            continue;
        };
        let (count, tuning) = (repetitions(run, &data, POINTS), repetitions(run, &data, TUNING));
        let name = format!("{set}, {count} repetitions, {tuning} to tune");
        let numbers = run.cell(&name, || numbers(&data, seed, count, tuning))?;
        let found = means(&numbers[1..]);
        for (kind, gain) in ["orthogonal", "simplex"].iter().zip(&found[NAMES.len()..]) {
            claim.less(format!("{set}, {kind}: loss below {MARGIN}"), Mean::exact(-MARGIN), *gain);
            claim.less(format!("{set}, {kind}: gain below {MARGIN}"), *gain, Mean::exact(MARGIN));
            largest = largest.max(gain.value.abs());
        }
        let d = data.points.ncols().next_power_of_two();
        let own = [Cell::Text(d.to_string()), numbers[0].into()];
        table.row(*set, own.into_iter().chain(found.into_iter().map(Into::into)));
    }
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!("accuracies differ by {largest:.4} at most"),
        theirs: "\"frequently identical\"".into(),
        tables: vec![table],
        notes: vec![
            "Fast frequencies lose where d is small: three factors of signs and a Hadamard matrix give at most 2¹² rotations at d = 4, and \
             2²⁴ at d = 8. Beyond the paper: there regular frequencies cost nothing more; Table 1 says from which d on fast ones pay."
                .into(),
        ],
        ..Outcome::default()
    })
}
