//! What is printed of items: the list, an item, and the page with all of them.

use crate::data;
use crate::item::{Item, Outcome, Paper, Stop};
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
    format!("{model}, {threads} threads, {}, version {}", today(), version())
}

/// The version of the library.
fn version() -> &'static str {
    let mut lines = include_str!("../../Cargo.toml").lines();
    let version = lines.find_map(|line| line.strip_prefix("version = "));
    version.unwrap_or_default().trim_matches('"')
}

/// The day in universal time, as year-month-day.
fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let days = since.map_or(0, |time| time.as_secs() / 86_400) as i64;
    // Eras of 400 years begin in March, so that the leap day is the last of a year.
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

/// An item, what came of it, and how its numbers were made.
pub type Found = (&'static Item, Result<Outcome, Stop>, String);

/// The file of the page with the verdicts.
pub const VERDICTS: &str = "results.md";

/// The pages with all items: the verdicts, then a page for each paper. Each has the name of its file and its text.
pub fn pages(found: &[Found], settings: &Settings) -> Vec<(&'static str, String)> {
    let papers = Paper::ALL.map(|paper| (paper.page(), of_paper(paper, found, settings)));
    let pages = std::iter::once((VERDICTS, verdicts(found, settings))).chain(papers);
    pages.map(|(file, text)| (file, with_links(text, file, found))).collect()
}

/// The overview: a row for each item.
fn verdicts(found: &[Found], settings: &Settings) -> String {
    let mut text = String::from(include_str!("page.md"));
    text += quick(settings);
    text += "\n| Paper | Item | Claim | Verdict | Here | In the paper |\n|---|---|---|---|---|---|\n";
    for (item, result, _) in found {
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
    text + untested::TEXT
}

/// The page of a paper: its items with their tables.
fn of_paper(paper: Paper, found: &[Found], settings: &Settings) -> String {
    let title = paper.title();
    let mut text = format!(
        "What *{title}* reports, and what comes out here: written by the experiment `reproduce`. How to read it stands \
         beside the [verdicts]({VERDICTS}).\n"
    );
    text += quick(settings);
    for (item, result, header) in found.iter().filter(|(item, ..)| item.paper == paper) {
        text += &section(item, result, header, settings);
    }
    text
}

fn quick(settings: &Settings) -> &'static str {
    match settings.quick {
        true => "\n**A quick run: too few repetitions to be evidence of anything.**\n",
        false => "",
    }
}

/// The text with links to items, which name no page, led to their pages.
fn with_links(text: String, file: &str, found: &[Found]) -> String {
    let elsewhere = found.iter().map(|(item, ..)| item).filter(|item| item.paper.page() != file);
    elsewhere.fold(text, |text, Item { name, paper, .. }| {
        text.replace(&format!("](#{name})"), &format!("]({}#{name})", paper.page()))
    })
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
