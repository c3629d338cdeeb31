//! What is printed of items: the list, an item, and the page with all of them.

use crate::data;
use crate::item::{Item, Outcome, Stop};
use crate::run::Settings;
use crate::untested;

/// All items with paper, place, time and data.
pub fn list(items: &[&Item]) -> String {
    let mut text = String::new();
    let mut paper = None;
    for item in items {
        if paper != Some(item.paper) {
            text += &format!("{}{}\n", if paper.is_some() { "\n" } else { "" }, item.paper.title());
            paper = Some(item.paper);
        }
        let data = |name: &&str| match data::is_bundled(name) {
            true => (*name).to_owned(),
            false => format!("{name} (--data)"),
        };
        let data: Vec<String> = item.data.iter().map(data).collect();
        let minutes = if item.minutes < 1.0 { "< 1 min".into() } else { format!("{:.0} min", item.minutes) };
        text +=
            format!("  {:<22} {:<24} {minutes:>8}  {}", item.name, item.place, data.join(", ")).trim_end();
        text.push('\n');
    }
    text
}

/// The machine and the day, as a header of numbers says them.
pub fn circumstances() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).to_owned();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {threads} threads, {}, version {}", today(), env!("CARGO_PKG_VERSION"))
}

/// The day in universal time, as year-month-day.
fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let days = since.map_or(0, |time| time.as_secs() / 86_400) as i64;
    // Of eras of 400 years that begin in March, so that the leap day is the last of a year.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{of_month:02}", year + 400 * era + next)
}

/// What is said of an outcome, with reasons where they are of these numbers.
fn notes<'a>(outcome: &'a Outcome, settings: &Settings) -> impl Iterator<Item = &'a String> {
    let reasons: &[String] = if settings.is_of_page() { &outcome.reasons } else { &[] };
    reasons.iter().chain(&outcome.notes)
}

/// An item on the terminal.
pub fn text(item: &Item, outcome: &Outcome, settings: &Settings) -> String {
    let Item { name, paper, place, claim, setting, rule, .. } = item;
    let mut text = format!("{name}: {}, {place}\n", paper.title());
    for (what, words) in [("claim", claim), ("setting", setting), ("rule", rule)] {
        text += &format!("  {what}: {words}\n");
    }
    text.push('\n');
    outcome.tables.iter().for_each(|table| text += &format!("{}\n", table.text()));
    notes(outcome, settings).for_each(|note| text += &format!("{note}\n"));
    let smoke = if settings.quick { " (smoke, no evidence)" } else { "" };
    text + &format!("verdict: {}{smoke}\n", outcome.verdict)
}

/// The page with all items: an overview, then each.
pub fn page(results: &[(&Item, Result<Outcome, Stop>, String)], settings: &Settings) -> String {
    let mut text = String::from(include_str!("page.md"));
    if settings.quick {
        text += "\n**A quick run: too few repetitions to be evidence of anything.**\n";
    }
    text += "\n| Paper | Item | Claim | Verdict | Here | In the paper |\n|---|---|---|---|---|---|\n";
    for (item, result, _) in results {
        let (verdict, ours, theirs) = match result {
            Ok(outcome) => (outcome.verdict.brief(), outcome.ours.as_str(), outcome.theirs.as_str()),
            Err(Stop::NoData(_)) => ("not run: no data".into(), "", ""),
            Err(_) => ("not run".into(), "", ""),
        };
        let Item { paper, place, claim, name, .. } = item;
        let title = paper.title();
        text +=
            &format!("| {title}, {place} | [{name}](#{name}) | {claim} | {verdict} | {ours} | {theirs} |\n");
    }
    text += untested::TEXT;
    for (item, result, header) in results {
        text += &section(item, result, header, settings);
    }
    text
}

/// An item on the page.
fn section(item: &Item, result: &Result<Outcome, Stop>, header: &str, settings: &Settings) -> String {
    let Item { name, paper, place, claim, setting, rule, minutes, .. } = item;
    let mut text = format!("\n# {name}\n\n*{}*, {place}. {claim}\n\n", paper.title());
    text += &format!("Setting: {setting}\n\nRule: {rule}\n\n");
    text += &format!(
        "`cargo run --release --example reproduce -- {name}` takes {minutes} minutes on two cores.\n"
    );
    match result {
        Ok(outcome) => {
            text += &format!("\n**Verdict: {}.**\n\n", outcome.verdict);
            outcome.tables.iter().for_each(|table| text += &format!("```text\n{}```\n\n", table.text()));
            notes(outcome, settings).for_each(|note| text += &format!("{note}\n\n"));
            text += &format!("Numbers: {header}.\n");
        }
        Err(Stop::NoData(file)) => text += &format!("\nNot run: {file} is not bundled; see `--data`.\n"),
        Err(Stop::NotRun) => text += "\nNot run yet.\n",
        Err(Stop::Failed(sentence)) => text += &format!("\nNot run: {sentence}.\n"),
    }
    text
}
