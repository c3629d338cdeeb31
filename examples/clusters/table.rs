//! The table: our errors and the paper's.

use crate::data::{D, Setup};
use crate::experiment::{Curve, FEATURES, Set};

pub fn head(setup: &Setup) -> String {
    let Setup { points, repetitions, means, norm, seed } = setup;
    format!(
        "softmax kernel, d = {D}, two clusters of {points} points a side, {repetitions} repetitions, seed {seed}\n\
         means of norm {means} before scaling; points of root mean square norm {norm} after it\n\n"
    )
}

/// The rows for one data set.
pub fn block(set: &Set) -> String {
    let list = |s: &mut dyn Iterator<Item = f64>| s.map(|s| format!("{s:.3}")).collect::<Vec<_>>().join(", ");
    let (own, published) =
        (list(&mut set.s.iter().flatten().copied()), list(&mut set.published.s.iter().copied()));
    let mut text = format!(
        "{}: s = [{own}], published [{published}]; mean kernel {:.3}\n",
        set.published.name, set.kernel
    );
    text += &format!("  {:<26}{:>8}", "features", "");
    text += &FEATURES.map(|features| format!("{features:>9}")).concat();
    text += "\n";
    set.curves.iter().for_each(|curve| text += &rows(set, curve));
    text + "\n"
}

fn rows(set: &Set, curve: &Curve) -> String {
    let row = |name: &str, what: &str, values: &mut dyn Iterator<Item = f64>| {
        format!("  {name:<26}{what:>8}{}\n", values.map(number).collect::<String>())
    };
    let errors = |k: usize| curve.errors.iter().map(move |errors| errors[k]);
    let mut text = row(curve.method.name, "mean", &mut errors(0));
    text += &row("", "min", &mut errors(1));
    text += &row("", "max", &mut errors(2));
    text += &row("", "closed", &mut curve.closed.iter().copied());
    if let Some(column) = curve.method.published {
        let published = || set.published.ranges.iter().map(|ranges| ranges[column]);
        text += &row("  published", "min", &mut published().map(|range| range.0));
        text += &row("", "max", &mut published().map(|range| range.1));
    }
    text
}

fn number(v: f64) -> String {
    if v < 100.0 { format!("{v:>9.4}") } else { format!("{v:>9.1e}") }
}

/// What the rows mean, and what the paper leaves open.
pub fn notes() -> String {
    String::from(
        "mean, min, max  over the repetitions, of the mean squared error over all pairs of points\n\
         closed          the closed form, averaged over 5000 pairs\n\
         features        real features that estimate a pair of points: m of positive ones and of real A, 2m of others\n\
         published       Table 3 of the paper: least and largest error of 20 repetitions. It prints no means.\n\
         The paper does not say: the norms of the means and of the scaled points; which pair of clusters has which s, and\n\
         whether s is taken before or after scaling (here after); whether 20 trigonometric features are 10 or 20\n\
         frequencies (here 10). So neither sizes nor gains are comparable. The default norm of the means, 100, was chosen\n\
         from 50, 100 and 200 after a look at the results: the gain of real A depends on it. At 50 and σ = √10 real A is\n\
         worse than FAVOR+, on s₃ by orders of magnitude, since entries from nearly vanishing coordinates of centres explode\n\
         off the centres; the robust choices are not. See --means. In the paper trigonometric features are better than FAVOR+\n\
         as a rule, here never: with real A the means have x·y ≤ s/4. Its data must differ in something that it does not say.\n",
    )
}
