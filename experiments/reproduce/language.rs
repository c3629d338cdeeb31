//! A small model of characters, that of `charlm`, which stands in for the papers' language models.

use crate::item::Stop;
use crate::mean::Mean;
use crate::run::Run;
use experiments::transformer::shape::Size;
use experiments::transformer::task::Task;
use experiments::transformer::text::Text;
use experiments::transformer::train::{self, BATCH, CONTEXT, HEADS, JUDGED, Plan, SMALL, SMOKE};

/// The seeds of a full run.
pub const SEEDS: u64 = 3;

/// The steps, layers and width of a quick run: many methods are trained, and each takes all its parts in a few steps.
const QUICK: [usize; 3] = [6, SMOKE[1], SMOKE[2]];

/// Differences of more bits are failures to learn, which vary in their own way.
const SIMILAR: f64 = 0.3;

/// The text and the size of the model.
pub struct Language {
    text: Text,
    quick: bool,
}

/// The bits of a method, and how many more than those of the first method.
pub struct Row {
    pub method: &'static str,
    pub bits: Mean,
    pub more: Mean,
    /// The bits of each seed.
    runs: Vec<f64>,
    /// The standard error of a difference of two methods, pooled over all that learn alike.
    pooled: f64,
}

impl Row {
    /// How many more bits than another method, seed by seed. With few seeds a standard error is itself uncertain: it is at least the pooled
    /// one.
    pub fn than(&self, other: &Row) -> Mean {
        let difference = Mean::of_differences(&self.runs, &other.runs);
        Mean { error: difference.error.max(self.pooled), ..difference }
    }
}

impl Language {
    pub fn new(run: &Run<'_>) -> Result<Self, Stop> {
        Ok(Language { text: Text::bundled()?, quick: run.full_or_quick(false, true) })
    }

    pub fn seeds(&self) -> u64 {
        if self.quick { 2 } else { SEEDS }
    }

    pub fn text(&self) -> &Text {
        &self.text
    }

    pub fn plan(&self, method: &str, seed: u64) -> Plan {
        let [steps, layers, width] = if self.quick { QUICK } else { SMALL.0 };
        let size = Size { characters: self.text.characters(), context: CONTEXT, width, heads: HEADS, layers };
        let (batch, rate) = (BATCH[usize::from(self.quick)], SMALL.1);
        Plan { task: Task::Text, method: method.into(), size, seed, steps, batch, rate }
    }

    /// The bits of the held-out text.
    pub fn bits(&self, run: &train::Run<'_>) -> Result<f64, Stop> {
        Ok(run.judge(JUDGED[usize::from(self.quick)])?.bits())
    }

    /// A run to its end.
    pub fn trained(&self, plan: Plan) -> Result<train::Run<'_>, Stop> {
        let mut run = train::Run::new(plan, &self.text)?;
        self.finish(&mut run)?;
        Ok(run)
    }

    pub fn finish(&self, run: &mut train::Run<'_>) -> Result<(), Stop> {
        while !run.is_done() {
            run.step()?;
        }
        Ok(())
    }

    /// The bits of a method from its first step to its last.
    pub fn cell(&self, run: &mut Run<'_>, method: &str, seed: u64) -> Result<f64, Stop> {
        let work = || Ok(vec![self.bits(&self.trained(self.plan(method, seed))?)?]);
        Ok(run.cell(&format!("{method}, seed {seed}"), work)?[0])
    }

    /// All methods with the same seeds, which choose weights to begin with and the order of the text; the first is what others are
    /// compared with.
    pub fn compare(&self, run: &mut Run<'_>, methods: &[&'static str]) -> Result<Vec<Row>, Stop> {
        let mut bits = vec![Vec::new(); methods.len()];
        for seed in 0..self.seeds() {
            for (bits, method) in bits.iter_mut().zip(methods) {
                let seed = run.seed() + seed;
                bits.push(self.cell(run, method, seed)?);
            }
        }
        Ok(rows(methods, &bits))
    }

    /// Rows beyond the paper, for the end of a table: compared with exact attention, and pooled among themselves.
    pub fn beyond(&self, run: &mut Run<'_>, methods: &[&'static str]) -> Result<Vec<Row>, Stop> {
        let mut rows = self.compare(run, &[&["exact"], methods].concat())?;
        rows.remove(0);
        Ok(rows)
    }
}

/// Means over seeds.
fn rows(methods: &[&'static str], bits: &[Vec<f64>]) -> Vec<Row> {
    let more: Vec<Mean> = bits.iter().map(|own| Mean::of_differences(own, &bits[0])).collect();
    let alike: Vec<&[f64]> = bits
        .iter()
        .zip(&more)
        .filter(|(_, more)| more.value.abs() < SIMILAR)
        .map(|(own, _)| &own[..])
        .collect();
    let pooled = pooled(&alike);
    let row = |((method, own), more): ((&&'static str, &Vec<f64>), Mean)| Row {
        method,
        bits: Mean::of(own),
        more,
        runs: own.clone(),
        pooled,
    };
    methods.iter().zip(bits).zip(more).map(row).collect()
}

/// The standard error of the difference of two methods' means: from what is left of all runs when the means of methods and of seeds are
/// taken off.
fn pooled(bits: &[&[f64]]) -> f64 {
    let (methods, seeds) = (bits.len(), bits[0].len());
    let mean = |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / count as f64;
    let of_method: Vec<f64> = bits.iter().map(|own| mean(&mut own.iter().copied(), seeds)).collect();
    let of_seed: Vec<f64> =
        (0..seeds).map(|seed| mean(&mut bits.iter().map(|own| own[seed]), methods)).collect();
    let all = mean(&mut of_method.iter().copied(), methods);
    let rest = |(own, mean): (&&[f64], &f64)| -> f64 {
        own.iter().zip(&of_seed).map(|(bits, seed)| (bits - mean - seed + all).powi(2)).sum()
    };
    let squares: f64 = bits.iter().zip(&of_method).map(rest).sum();
    let freedom = (methods.saturating_sub(1) * seeds.saturating_sub(1)).max(1);
    (2.0 * squares / (freedom * seeds) as f64).sqrt()
}
