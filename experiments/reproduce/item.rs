//! An item: a figure, a table or a theorem of a paper, and what came of it.

use crate::run::Run;
use crate::surface::Surface;
use crate::table::Table;
use crate::verdict::Verdict;
use experiments::plot::Panel;

/// The paper that an item is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    Hybrid,
    Simplex,
    Chefs,
    Performers,
}

impl Paper {
    pub const ALL: [Paper; 4] = [Paper::Hybrid, Paper::Simplex, Paper::Chefs, Paper::Performers];

    /// The file of the page with all that comes out here for the paper.
    pub fn page(self) -> &'static str {
        match self {
            Paper::Hybrid => "hybrid.md",
            Paper::Simplex => "simplex.md",
            Paper::Chefs => "chefs.md",
            Paper::Performers => "performers.md",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Paper::Hybrid => "Hybrid Random Features",
            Paper::Simplex => "Simplex Random Features",
            Paper::Chefs => "Chefs' Random Tables",
            Paper::Performers => "Rethinking Attention with Performers",
        }
    }
}

/// An item: what the paper says, how it is done here, and by what rule the two are compared. All of it stands in the item's
/// file before it runs.
pub struct Item {
    /// What it is called on the command line.
    pub name: &'static str,
    pub paper: Paper,
    /// The figure or table.
    pub place: &'static str,
    /// What the paper claims, in a sentence.
    pub claim: &'static str,
    /// What is computed here, and what the paper leaves open.
    pub setting: &'static str,
    /// When the claim holds, and with which rate of false alarms.
    pub rule: &'static str,
    /// The time of a full run on two cores.
    pub minutes: f64,
    /// The data sets that it takes.
    pub data: &'static [&'static str],
    pub run: fn(&mut Run<'_>) -> Result<Outcome, Stop>,
}

/// What an item found.
#[derive(Default)]
pub struct Outcome {
    pub verdict: Verdict,
    /// Our numbers in a few words, and the paper's.
    pub ours: String,
    pub theirs: String,
    pub tables: Vec<Table>,
    pub panels: Vec<Panel>,
    pub surfaces: Vec<Surface>,
    pub notes: Vec<String>,
    /// What explains the numbers of the page that comes with the crate: said where numbers are made in the same way, and nowhere else.
    pub reasons: Vec<String>,
}

/// Why an item has no outcome.
#[derive(Debug)]
pub enum Stop {
    /// It was not run, or not to its end.
    NotRun,
    /// A data set is not here.
    NoData(String),
    Failed(String),
}

impl From<String> for Stop {
    fn from(sentence: String) -> Self {
        Stop::Failed(sentence)
    }
}

impl From<random_features::Error> for Stop {
    fn from(error: random_features::Error) -> Self {
        Stop::Failed(error.to_string())
    }
}
