//! The run of an item: what it may ask for, and what it has computed before.

use std::path::PathBuf;

use crate::cells::{Cells, checksum};
use crate::data;
use crate::item::{Item, Stop};
use experiments::dataset::Dataset;
use experiments::progress;

/// What all items of a command have in common.
pub struct Settings {
    /// Fewer repetitions: same code, no evidence.
    pub quick: bool,
    pub seed: u64,
    /// Where data sets lie that are not bundled.
    pub data: Option<PathBuf>,
    /// Where results go.
    pub out: PathBuf,
}

impl Settings {
    /// Whether numbers are made as those of the page that comes with the crate.
    pub fn is_of_page(&self) -> bool {
        !self.quick && self.seed == 0 && self.data.is_none()
    }

    /// What numbers that are kept depend on: those of another setting are not gone on with.
    pub fn made(&self, item: &Item) -> String {
        let size = if self.quick { "quick" } else { "full" };
        format!("{size}, seed {}, setting {}; ", self.seed, checksum(item.setting))
    }

    /// Where the numbers of an item are kept.
    pub fn cells(&self, item: &Item) -> PathBuf {
        self.out.join("cells").join(format!("{}.tsv", item.name))
    }
}

pub struct Run<'a> {
    settings: &'a Settings,
    item: &'a Item,
    cells: Cells,
    done: usize,
    of: usize,
}

impl<'a> Run<'a> {
    pub fn new(settings: &'a Settings, item: &'a Item, cells: Cells) -> Self {
        Run { settings, item, cells, done: 0, of: 0 }
    }

    /// The first in a full run, the second in a quick one.
    pub fn full_or_quick<T>(&self, full: T, quick: T) -> T {
        if self.settings.quick { quick } else { full }
    }

    pub fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// How the numbers were made.
    pub fn header(&self) -> &str {
        self.cells.header()
    }

    /// How many calls of [`cell`](Run::cell) there will be, for the progress bar.
    pub fn expect(&mut self, cells: usize) {
        self.of = cells;
    }

    /// The numbers of that name: those that were kept, or else those that `work` finds, which are kept. A name says all that the numbers
    /// depend on besides quick or full, the seed and the setting of the item.
    pub fn cell(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<Vec<f64>, Stop>,
    ) -> Result<Vec<f64>, Stop> {
        if let Some(numbers) = self.cells.get(name) {
            self.done += 1;
            return Ok(numbers.clone());
        }
        if !self.cells.is_open() {
            return Err(Stop::NotRun);
        }
        progress::show(&format!("{}: {name}", self.item.name), self.done, self.of.max(self.done + 1));
        let numbers = work()?;
        self.cells.keep(name, &numbers)?;
        self.done += 1;
        progress::show(self.item.name, self.done, self.of.max(self.done));
        Ok(numbers)
    }

    /// A text of that name, which is kept as the numbers of its bytes.
    pub fn text(&mut self, name: &str, work: impl FnOnce() -> Result<String, Stop>) -> Result<String, Stop> {
        let bytes = self.cell(name, || Ok(work()?.bytes().map(f64::from).collect()))?;
        Ok(String::from_utf8_lossy(&bytes.iter().map(|byte| *byte as u8).collect::<Vec<u8>>()).into_owned())
    }

    /// How many of these data sets are here.
    pub fn here<'b>(&mut self, sets: impl IntoIterator<Item = &'b str>) -> usize {
        sets.into_iter().filter(|set| self.data(set).is_ok()).count()
    }

    /// A data set by its name. Of one that is not bundled a checksum is kept: numbers are of one file. Where none was kept and nothing more can
    /// be, no numbers are of it.
    pub fn data(&mut self, name: &str) -> Result<Dataset, Stop> {
        let data = data::load(name, self.settings.data.as_deref())?;
        if data::is_bundled(name) {
            return Ok(data);
        }
        let (key, own) = (format!("data {name}"), [data::mark(&data)]);
        match self.cells.get(&key) {
            Some(kept) if *kept == own => {}
            Some(_) => {
                return Err(Stop::Failed(format!(
                    "the file of {name} is not the one that numbers were kept of: with another --out they stay, with --fresh they are forgotten"
                )));
            }
            None if self.cells.is_open() => self.cells.keep(&key, &own)?,
            None => return Err(Stop::NoData(name.into())),
        }
        Ok(data)
    }
}
