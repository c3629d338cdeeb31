//! Figure 5: densities of ‖ωᵢ+ωⱼ‖.

use experiments::plot::{Panel, Series};
use random_features::extend::Coupling;
use random_features::frequency::{Independent, Orthogonal, Simplex};
use random_features::rng_of_step;
use random_features::theory::sum_norm::{ln_density, ln_density_of_independent};

use crate::item::{Item, Outcome, Paper, Stop};
use crate::run::Run;
use crate::table::{Table, number};
use crate::verdict::Claim;

pub const ITEM: Item = Item {
    name: "simplex-figure-5",
    paper: Paper::Simplex,
    place: "Figure 5, Equations 18 and 20",
    claim: "Couplings take mass from where ‖ωᵢ+ωⱼ‖ is large: simplex frequencies more than orthogonal ones, these more than none.",
    setting: "The densities of Equations 18 and 20 for d = 6 (the text does not say which d), in closed form and as an integral, and the norms \
              of drawn frequencies: the first two of a block of six, in bins of width 0.25.",
    rule: "Beyond the norms that a sum of independent frequencies exceeds with probability 10 %, 1 % and 0.1 %, tails are in this order. \
           Distributions of drawn norms are nearer to the densities' than 2.2/√n (Kolmogorov and Smirnov): a false alarm in 1 of 2,600 runs.",
    minutes: 0.1,
    data: &[],
    run,
};

const D: usize = 6;
const NAMES: [&str; 3] = ["independent", "orthogonal", "simplex"];
/// The step of the integrals over w, and their end, beyond which there is nothing.
const STEP: f64 = 0.001;
const END: f64 = 20.0;
/// The width of a bin of drawn norms, and their number.
const BIN: f64 = 0.25;
const BINS: usize = 48;
/// Where distributions of draws are compared, and how near they must be, times √n.
const LIMIT: f64 = 2.2;
const TAILS: [f64; 3] = [0.1, 0.01, 0.001];

fn density(k: usize, w: f64) -> f64 {
    let ln = match k {
        0 => ln_density_of_independent(D, w),
        1 => ln_density(D, w, 0.0),
        _ => ln_density(D, w, -1.0 / (D as f64 - 1.0)),
    };
    ln.exp()
}

/// The probabilities of norms above 0, STEP, 2 STEP, …
fn tails(k: usize) -> Vec<f64> {
    let cells = (END / STEP) as usize;
    let mut tails: Vec<f64> = vec![0.0; cells + 1];
    for cell in (0..cells).rev() {
        tails[cell] = tails[cell + 1] + STEP * density(k, (cell as f64 + 0.5) * STEP);
    }
    tails
}

/// The drawn norms of a coupling: how far their distribution is from that of these tails, times √n, and the density in each bin.
fn drawn(k: usize, seed: u64, draws: u64) -> Result<Vec<f64>, Stop> {
    let coupling: &dyn Coupling = match k {
        0 => &Independent,
        1 => &Orthogonal,
        _ => &Simplex::default(),
    };
    let mut norms = Vec::new();
    for number in 0..draws {
        let omega = coupling.draw(D, D, rng_of_step(seed, (k as u64) << 32 | number).next_u64())?;
        let sum = &omega.rows().row(0) + &omega.rows().row(1);
        norms.push(sum.dot(&sum).sqrt());
    }
    norms.sort_by(f64::total_cmp);
    let (n, tails) = (draws as f64, tails(k));
    let below = |w: f64| 1.0 - tails.get((w / STEP).round() as usize).copied().unwrap_or(0.0);
    let distance = |(i, w): (usize, &f64)| {
        let exact = below(*w);
        (exact - i as f64 / n).abs().max((exact - (i + 1) as f64 / n).abs())
    };
    let largest = norms.iter().enumerate().map(distance).fold(0.0, f64::max);
    let mut bins = vec![0.0; BINS];
    for w in &norms {
        if let Some(bin) = bins.get_mut((w / BIN) as usize) {
            *bin += 1.0 / (n * BIN);
        }
    }
    Ok([n.sqrt() * largest].into_iter().chain(bins).collect())
}

fn run(run: &mut Run<'_>) -> Result<Outcome, Stop> {
    let (seed, draws) = (run.seed(), run.full_or_quick(200_000, 5_000));
    run.expect(NAMES.len() + 1);
    let mut claim = Claim::default();
    // Thousands of integrals: kept.
    let found = run.cell("tails", || {
        let tails = [0, 1, 2].map(tails);
        let beyond = |p: &f64| {
            let cell = tails[0].iter().position(|tail| tail < p).unwrap_or(0);
            [cell as f64 * STEP, tails[0][cell], tails[1][cell], tails[2][cell]]
        };
        Ok(TAILS.iter().flat_map(beyond).collect())
    })?;
    let beyond: Vec<&[f64]> = found.chunks_exact(4).collect();
    for row in &beyond {
        claim.is(format!("tails beyond {:.2} in order", row[0]), row[3] < row[2] && row[2] < row[1]);
    }
    let heads = beyond.iter().map(|row| format!("beyond {:.3}", row[0]));
    let mut table = Table::new(
        format!("Probability of large ‖ωᵢ+ωⱼ‖, d = {D}"),
        ["coupling".to_owned()].into_iter().chain(heads).chain(["distance of draws, √n".to_owned()]),
    );
    let mut series = Vec::new();
    for (k, name) in NAMES.iter().enumerate() {
        let numbers = run.cell(&format!("{name}, {draws} draws"), || drawn(k, seed, draws))?;
        claim.is(format!("draws of {name} frequencies have the density"), numbers[0] < LIMIT);
        table.row(*name, beyond.iter().map(|row| row[k + 1]).chain([numbers[0]]));
        let middle = |bin: usize| (bin as f64 + 0.5) * BIN;
        // Not what a few draws make.
        let clear = |density: &f64| density * BIN * draws as f64 >= 20.0;
        let points = numbers[1..].iter().enumerate().filter(|(_, density)| clear(density));
        let grid = (1..=240).map(|i| f64::from(i) * 0.05);
        series.push(Series {
            name: (*name).into(),
            line: grid.map(|w| (w, density(k, w))).filter(|(_, density)| *density > 1e-6).collect(),
            points: points.map(|(bin, density)| (middle(bin), *density)).collect(),
        });
    }
    let panel = Panel {
        title: format!("d = {D}"),
        x_label: "w = ‖ωᵢ+ωⱼ‖".into(),
        y_label: "density (points: drawn; lines: Equations 18, 20)".into(),
        series,
    };
    let rare = beyond[1];
    Ok(Outcome {
        verdict: claim.verdict(),
        ours: format!(
            "beyond {:.2}: {} % (independent), {} %, {} % (simplex)",
            rare[0],
            number(100.0 * rare[1]),
            number(100.0 * rare[2]),
            number(100.0 * rare[3])
        ),
        theirs: "a picture".into(),
        tables: vec![table],
        panels: vec![panel],
        ..Outcome::default()
    })
}
