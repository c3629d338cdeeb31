#![doc = include_str!("help.txt")]

mod cells;
mod chefs;
mod data;
mod hybrid;
mod item;
mod language;
mod mean;
mod page;
mod performers;
mod planned;
mod run;
mod simplex;
mod source;
mod surface;
mod table;
mod untested;
mod verdict;

use std::process::ExitCode;
use std::time::Instant;

use cells::Cells;
use experiments::command::{self, Command, Request};
use experiments::{plot, progress};
use item::{Item, Outcome, Stop};
use run::{Run, Settings};

const COMMAND: Command = Command {
    help: include_str!("help.txt"),
    // The last two are for processes that measure one thing.
    options: &["--data", "--out", "--seed", "--one", "--length"],
    flags: &["--quick", "--fresh"],
    files: 100,
    ..Command::new("reproduce [NAME…] [--quick] [--data DIR] [--out DIR] [--seed SEED] [--fresh]")
};

/// All items, paper by paper.
fn items() -> Vec<&'static Item> {
    [hybrid::ITEMS, simplex::ITEMS, chefs::ITEMS, performers::ITEMS].concat()
}

/// The items of these names.
fn named(request: &Request) -> Result<Vec<&'static Item>, String> {
    let names: Vec<String> = request.files.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let is_meant = |item: &Item, name: &str| {
        let whole = items().iter().any(|item| item.name == name);
        name == "all" || item.name == name || (!whole && !name.is_empty() && item.name.starts_with(name))
    };
    if let Some(name) = names.iter().find(|name| !items().iter().any(|item| is_meant(item, name))) {
        return Err(format!(
            "'{name}' is not the beginning of an item's name; without a name all are listed"
        ));
    }
    Ok(items().into_iter().filter(|item| names.iter().any(|name| is_meant(item, name))).collect())
}

/// Runs an item, or goes on with it, and writes what came of it.
fn reproduce(settings: &Settings, item: &'static Item, fresh: bool) -> Result<(), String> {
    let path = settings.cells(item);
    if fresh && path.exists() {
        std::fs::remove_file(&path)
            .map_err(|error| format!("{} cannot be removed: {error}", path.display()))?;
    }
    progress::begin(&format!("reproduces {}", item.name));
    let start = Instant::now();
    let cells = Cells::open(&path, &settings.made(item), &page::circumstances())?;
    match (item.run)(&mut Run::new(settings, item, cells)) {
        Ok(outcome) => {
            command::print(&page::text(item, &outcome, settings))?;
            let written = write(settings, item, &outcome)?;
            command::print(&format!("{written}{:.0} s\n\n", start.elapsed().as_secs_f64()))
        }
        Err(Stop::NoData(file)) => {
            command::print(&format!("{}: not run, since {file} is not here: see --data\n\n", item.name))
        }
        Err(Stop::NotRun) => Err(format!("{}: numbers cannot be kept", item.name)),
        Err(Stop::Failed(sentence)) => Err(format!("{}: {sentence}", item.name)),
    }
}

/// Writes tables and pictures, and says where.
fn write(settings: &Settings, item: &Item, outcome: &Outcome) -> Result<String, String> {
    let path = settings.out.join(format!("{}-statements.csv", item.name));
    outcome.verdict.table().write(&path)?;
    let mut text = format!("statements: {}\n", path.display());
    for (k, table) in outcome.tables.iter().enumerate() {
        let number = if k == 0 { String::new() } else { format!("-{}", k + 1) };
        let path = settings.out.join(format!("{}{number}.csv", item.name));
        table.write(&path)?;
        text += &format!("table: {}\n", path.display());
    }
    if !outcome.panels.is_empty() {
        let path = settings.out.join(format!("{}.svg", item.name));
        plot::write(&outcome.panels, &path)?;
        text += &format!("picture: {}\n", path.display());
    }
    if !outcome.surfaces.is_empty() {
        let path = settings.out.join(format!("{}-surfaces.svg", item.name));
        surface::write(&outcome.surfaces, &path)?;
        text += &format!("picture: {}\n", path.display());
    }
    Ok(text)
}

/// The pages with all items, of what has been kept.
fn write_pages(settings: &Settings) -> Result<(), String> {
    let mut results = Vec::new();
    for item in items() {
        let cells = match Cells::read(&settings.cells(item)) {
            Ok(cells) if cells.is_made(&settings.made(item)) => cells,
            Ok(_) => Cells::default(),
            Err(sentence) => {
                results.push((item, Err(Stop::Failed(sentence)), String::new()));
                continue;
            }
        };
        let mut run = Run::new(settings, item, cells);
        let outcome = (item.run)(&mut run);
        let header = run.header().to_owned();
        results.push((item, outcome, header));
    }
    for (file, text) in page::pages(&results, settings) {
        let path = settings.out.join(file);
        std::fs::write(&path, text)
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    command::print(&format!("all items: {}\n", settings.out.join(page::VERDICTS).display()))
}

fn run(request: &Request) -> Result<bool, String> {
    let settings = Settings {
        quick: request.has("--quick"),
        seed: request.whole("--seed", 0, (0, u64::MAX / 2))?,
        data: request.text("--data").map(Into::into),
        out: request.text("--out").unwrap_or_else(|| "target/reproduce".into()).into(),
    };
    if let Some(folder) = settings.data.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(format!("--data: there is no folder {}", folder.display()));
    }
    if let Some(work) = request.text("--one") {
        let length = request.count("--length", 1024, (1, 1 << 24))?;
        return command::print(&performers::costs::one(&work, length, settings.seed)?).map(|()| true);
    }
    if request.files.is_empty() {
        command::print(&page::list(&items()))?;
        return Ok(true);
    }
    // What one item cannot do keeps no other from its run, nor the pages from being written.
    let failed = named(request)?
        .into_iter()
        .filter_map(|item| reproduce(&settings, item, request.has("--fresh")).err());
    let mut failed: Vec<String> = failed.collect();
    failed.extend(write_pages(&settings).err());
    if failed.is_empty() { Ok(true) } else { Err(failed.join("\n")) }
}

fn main() -> ExitCode {
    COMMAND.run(run)
}
