//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Fits of random features over Parquet files, in this process or on a Ballista cluster.
#[derive(Debug, Parser)]
#[command(name = "rf", about, disable_help_subcommand = true)]
pub struct Arguments {
    /// What is asked for.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Says what is in the files, and proposes a recipe, with the errors to expect
    Plan(Plan),
    /// Fits a model
    Fit(Fit),
    /// Applies a model to files
    Predict(Predict),
    /// Says how good the predictions of a model are on files
    Score(Score),
    /// Makes files of a known function
    Generate(Generate),
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    Serve(crate::serve::Serve),
}

/// Which points are read, and where.
#[derive(Args, Clone, Debug)]
pub struct Source {
    /// The columns of the points, separated by commas [the only list of floats, or all numbers and Booleans but the target]
    #[arg(long, value_delimiter = ',')]
    pub columns: Vec<String>,
    /// A Ballista scheduler, as host:port [this process]
    #[arg(long, value_name = "HOST:PORT")]
    pub ballista: Option<String>,
    /// Into how many parts rows are cut, at most one for each 524288 rows [one for each core; 16 on a cluster]
    #[arg(long)]
    pub partitions: Option<usize>,
    /// Prints the engine's plan of the first pass, and does nothing
    #[arg(long)]
    pub explain: bool,
    /// No progress
    #[arg(long)]
    pub quiet: bool,
}

/// How features are chosen.
#[derive(Args, Clone, Debug)]
pub struct Choice {
    /// The number of features [512, or that of the recipe]
    #[arg(long)]
    pub features: Option<usize>,
    /// The seed of the frequencies [0, or that of the recipe]
    #[arg(long)]
    pub seed: Option<u64>,
}

impl Choice {
    /// The number of features of a recipe that is chosen.
    pub fn features(&self) -> usize {
        self.features.unwrap_or(512)
    }

    /// The seed of a recipe that is chosen.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }
}

/// How rows count, and what errors are left out for.
#[derive(Args, Clone, Debug, Default)]
pub struct Rows {
    /// The column that says how often each row counts: a weight of 2 is the row twice [each counts once]
    #[arg(long, value_name = "COLUMN")]
    pub weights: Option<String>,
    /// Chooses λ by the error of so many folds of rows, each predicted from the others, at most 100 [generalised cross-validation]
    #[arg(long, value_name = "COUNT")]
    pub folds: Option<u64>,
    /// Keeps rows of equal values of this column in one fold; up to 10 values are folds of their own, or as many as --folds says
    #[arg(long, value_name = "COLUMN")]
    pub groups: Option<String>,
    /// Chooses λ by the error of so many blocks of rows in their order, each predicted from the blocks before it
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["folds", "groups"])]
    pub forward: Option<u64>,
    /// Leaves out so many blocks just before the predicted one [0]
    #[arg(long, value_name = "COUNT", requires = "forward")]
    pub gap: Option<usize>,
}

/// `rf plan`.
#[derive(Args, Debug)]
pub struct Plan {
    /// Files, folders or patterns
    #[arg(required = true)]
    pub input: Vec<String>,
    /// The column that will be predicted
    #[arg(long)]
    pub target: Option<String>,
    #[command(flatten)]
    pub choice: Choice,
    /// Where the recipe is written
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub source: Source,
}

/// What is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// A ridge regression
    Ridge,
    /// A kernel PCA
    Pca,
}

/// `rf fit`.
#[derive(Args, Debug)]
pub struct Fit {
    /// What is fitted
    pub method: Method,
    /// Files, folders or patterns
    #[arg(long, required = true, num_args = 1..)]
    pub input: Vec<String>,
    /// The column that is predicted
    #[arg(long)]
    pub target: Option<String>,
    /// The target is a label, of these classes, separated by commas
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    pub classes: Vec<String>,
    /// A file with the JSON of a recipe, or auto
    #[arg(long, default_value = "auto")]
    pub recipe: String,
    /// λ of a regression, or auto: by generalised cross-validation, or by folds or blocks of rows [auto]
    #[arg(long, allow_hyphen_values = true)]
    pub lambda: Option<String>,
    /// The number of principal components [10]
    #[arg(long)]
    pub components: Option<usize>,
    /// Where the model is written
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    #[command(flatten)]
    pub rows: Rows,
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub source: Source,
}

/// `rf predict`.
#[derive(Args, Debug)]
pub struct Predict {
    /// The model
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// Files, folders or patterns
    #[arg(long, required = true, num_args = 1..)]
    pub input: Vec<String>,
    /// The Parquet file that is written: file, row in the whole, prediction
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    #[command(flatten)]
    pub source: Source,
}

/// `rf score`.
#[derive(Args, Debug)]
pub struct Score {
    /// The model
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// Files, folders or patterns
    #[arg(long, required = true, num_args = 1..)]
    pub input: Vec<String>,
    /// The column that predictions are compared with [that of the model]
    #[arg(long)]
    pub target: Option<String>,
    /// The column that says how often each row counts [each counts once]
    #[arg(long, value_name = "COLUMN")]
    pub weights: Option<String>,
    #[command(flatten)]
    pub source: Source,
}

/// `rf generate`.
#[derive(Args, Debug)]
pub struct Generate {
    /// The folder
    pub folder: PathBuf,
    /// All rows
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
    /// Coordinates of a point
    #[arg(long, default_value_t = 16)]
    pub columns: usize,
    /// Files
    #[arg(long, default_value_t = 8)]
    pub files: usize,
    /// Rows of a row group
    #[arg(long, default_value_t = 1 << 18)]
    pub group: usize,
    /// One column of lists
    #[arg(long)]
    pub list: bool,
    /// Files of different sizes
    #[arg(long)]
    pub skewed: bool,
    /// The seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
