//! The table: a block for each regime, a row for each mechanism, a column for each norm.

use random_features::theory::gerf::GerfSign;

use crate::landscape::{Block, Cell, NORMS, Statistic};
use crate::mechanisms::Mechanism;
use crate::regimes::{Regime, Setup};

/// What the numbers are.
pub fn heading(setup: &Setup, features: usize, statistic: Statistic) -> String {
    let Setup { pairs, seed, .. } = setup;
    let statistic = match statistic {
        Statistic::Mean => "mean over pairs".into(),
        Statistic::Quantile(percent) => format!("{percent} % quantile over pairs"),
    };
    format!(
        "ln(Var/K²) of estimates of the Gaussian kernel, {statistic}\n\
         D = {features} real features, {pairs} pairs, seed {seed}; parameters are chosen from the points of each column\n\
         −4.6 = −2 ln 10 is a relative error of a tenth; 0 is one of 1, as of the estimate 0\n\n"
    )
}

/// What rows and marks mean.
pub fn notes() -> String {
    "r             the root mean square norm of all points; K has lengthscale 1\n\
     m             the number of frequencies that give D real features; 64|128 where it depends on the column\n\
     *, +          the best of all, the best of those whose estimates are never negative; no mark from 0 on\n\
     GERF          A and s are chosen at equal numbers of frequencies; with s = 1 it is OPRF, real and positive\n\
     complex exp.  with ω and −ω, and the real diagonal A that suits the scales of both sides\n\
     regularised   positive features with ‖ω‖ = √d: variance and squared bias; below K, hence some 0 at large r\n\
     λ, λₗ         one rate for all coordinates, one for each\n\
     Poisson+ etc. after a shift that makes all coordinates positive\n\
     Relative to exp(x·y) the numbers are the same: the estimates for both kernels, and the kernels themselves,\n\
     differ by one factor e^((‖x‖²+‖y‖²)/2).\n"
        .into()
}

/// The rows of a regime.
pub fn block(regime: &Regime, mechanisms: &[Mechanism], block: &Block) -> String {
    let Regime { name, description, .. } = regime;
    let mut text = format!("{name}, d = {}: {description}\n", regime.dim());
    let norms: String = NORMS.iter().map(|norm| format!("{norm:>9}")).collect();
    text += &format!("  {:<14}{:<12}{:>7}{norms}\n", "r", "", "m");
    let all = best(mechanisms, block, |_| true);
    let positive = best(mechanisms, block, |mechanism| mechanism.positive);
    let mark = |row: usize, column: usize| match row {
        _ if all[column] == Some(row) => "*",
        _ if positive[column] == Some(row) => "+",
        _ => "",
    };
    for (positive, kind) in [(false, "may be negative"), (true, "never negative")] {
        text += &format!("  {kind}\n");
        let rows = mechanisms.iter().zip(&block.cells).enumerate();
        for (row, (mechanism, cells)) in rows.filter(|(_, (mechanism, _))| mechanism.positive == positive) {
            let coupling = mechanism.coupling.name();
            text += &format!("  {:<14}{coupling:<12}{:>7}", mechanism.name, frequencies(cells));
            for (column, cell) in cells.iter().enumerate() {
                text += &format!("{:>9}", format!("{}{}", mark(row, column), number(cell.value)));
            }
            text.push('\n');
        }
    }
    let sign = |s: &GerfSign| format!("{:>9}", if *s == GerfSign::Plus { "1" } else { "−1" });
    text + &format!("  {:<33}{}\n\n", "s of GERF", block.signs.iter().map(sign).collect::<String>())
}

/// Two decimals, with a true minus sign.
fn number(value: f64) -> String {
    format!("{value:.2}").replace('-', "−")
}

/// The mechanism with the least value in each column, among some; the first of equals, and none where an
/// estimate of 0 would be as good.
fn best(mechanisms: &[Mechanism], block: &Block, among: fn(&Mechanism) -> bool) -> Vec<Option<usize>> {
    let rows = || (0..mechanisms.len()).filter(|row| among(&mechanisms[*row]));
    let value = |row: usize, column: usize| block.cells[row][column].value;
    let least = |column| rows().min_by(|a, b| value(*a, column).total_cmp(&value(*b, column)));
    let best = |column| least(column).filter(|row| value(*row, column) < 0.0);
    (0..NORMS.len()).map(best).collect()
}

/// The numbers of frequencies in a row.
fn frequencies(cells: &[Cell]) -> String {
    let mut numbers: Vec<usize> = cells.iter().map(|cell| cell.m).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join("|")
}
