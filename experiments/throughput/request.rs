//! What was asked on the command line.

use experiments::command::{self, Command};

const USAGE: &str = "throughput --case CASE [--n N] [--d D] [--m M] [--dtype f32|f64] [--threads T] \
                     [--repeat R] [--heads H] [--fresh]";

pub const COMMAND: Command = Command {
    help: include_str!("help.txt"),
    options: &["--case", "--n", "--d", "--m", "--dtype", "--threads", "--repeat", "--heads"],
    flags: &["--fresh"],
    ..Command::new(USAGE)
};

/// Frequencies of the hybrid's coefficient.
pub const SIGNS: usize = 4;

/// Points of a tile that is projected: a multiple of the rows of every register block.
pub const TILE: usize = 48;

/// Most numbers in an array of points or features, and in one of frequencies.
const MOST_POINTS: usize = 1 << 30;
const MOST_FREQUENCIES: usize = 1 << 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Positive,
    Trigonometric,
    Hyperbolic,
    Oprf,
    Gerf,
    Poisson,
    AngularHybrid,
    ProjectDense,
    ProjectStructured,
    DrawOrthogonal,
    DrawPaired,
    Nystroem,
    Attention,
    AttentionCausal,
    AttentionCausalWindow,
    AttentionBackward,
    AttentionCausalBackward,
    AttentionStep,
    RidgeStatistics,
    RidgeFit,
    RidgePredict,
    RidgeSearch,
    LogisticFit,
    Cholesky,
    SoftmaxSample,
    Peak,
}

const CASES: [Case; 26] = [
    Case::Positive,
    Case::Trigonometric,
    Case::Hyperbolic,
    Case::Oprf,
    Case::Gerf,
    Case::Poisson,
    Case::AngularHybrid,
    Case::ProjectDense,
    Case::ProjectStructured,
    Case::DrawOrthogonal,
    Case::DrawPaired,
    Case::Nystroem,
    Case::Attention,
    Case::AttentionCausal,
    Case::AttentionCausalWindow,
    Case::AttentionBackward,
    Case::AttentionCausalBackward,
    Case::AttentionStep,
    Case::RidgeStatistics,
    Case::RidgeFit,
    Case::RidgePredict,
    Case::RidgeSearch,
    Case::LogisticFit,
    Case::Cholesky,
    Case::SoftmaxSample,
    Case::Peak,
];

impl Case {
    pub fn name(self) -> &'static str {
        match self {
            Case::Positive => "positive",
            Case::Trigonometric => "trigonometric",
            Case::Hyperbolic => "hyperbolic",
            Case::Oprf => "oprf",
            Case::Gerf => "gerf",
            Case::Poisson => "poisson",
            Case::AngularHybrid => "angular-hybrid",
            Case::ProjectDense => "project-dense",
            Case::ProjectStructured => "project-structured",
            Case::DrawOrthogonal => "draw-orthogonal",
            Case::DrawPaired => "draw-paired",
            Case::Nystroem => "nystroem",
            Case::Attention => "attention",
            Case::AttentionCausal => "attention-causal",
            Case::AttentionCausalWindow => "attention-causal-window",
            Case::AttentionBackward => "attention-backward",
            Case::AttentionCausalBackward => "attention-causal-backward",
            Case::AttentionStep => "attention-step",
            Case::RidgeStatistics => "ridge-statistics",
            Case::RidgeFit => "ridge-fit",
            Case::RidgePredict => "ridge-predict",
            Case::RidgeSearch => "ridge-search",
            Case::LogisticFit => "logistic-fit",
            Case::Cholesky => "cholesky",
            Case::SoftmaxSample => "softmax-sample",
            Case::Peak => "peak",
        }
    }

    /// Features that there is room for, for each frequency; 0 for cases that are not maps.
    fn width(self) -> usize {
        match self {
            Case::Positive | Case::Oprf | Case::Poisson | Case::Nystroem => 1,
            Case::Trigonometric | Case::Hyperbolic | Case::Gerf => 2,
            // For either value of a sign, of which one is absent from a point.
            Case::AngularHybrid => 8 * SIGNS,
            Case::ProjectDense | Case::ProjectStructured => 0,
            Case::DrawOrthogonal | Case::DrawPaired => 0,
            Case::Attention | Case::AttentionCausal | Case::AttentionCausalWindow | Case::AttentionStep => 0,
            Case::AttentionBackward | Case::AttentionCausalBackward => 0,
            Case::RidgeStatistics | Case::RidgeFit | Case::RidgePredict | Case::RidgeSearch => 0,
            Case::LogisticFit | Case::Cholesky | Case::SoftmaxSample | Case::Peak => 0,
        }
    }

    /// Points, if no number is asked for: features of 64 to 160 MB at the other defaults.
    fn points(self) -> usize {
        match self {
            Case::AngularHybrid => 8192,
            Case::AttentionStep => 1024,
            _ => 65536,
        }
    }

    /// Whether points are tokens of heads.
    pub fn has_heads(self) -> bool {
        use Case::{Attention, AttentionCausal, AttentionCausalWindow, AttentionStep};
        matches!(self, Attention | AttentionCausal | AttentionCausalWindow | AttentionStep)
            || self.is_backward()
    }

    /// Whether gradients of attention are computed too.
    pub fn is_backward(self) -> bool {
        matches!(self, Case::AttentionBackward | Case::AttentionCausalBackward)
    }

    /// Whether it is a draw of frequencies.
    fn is_draw(self) -> bool {
        matches!(self, Case::DrawOrthogonal | Case::DrawPaired)
    }

    /// Whether it is in double precision whatever is asked for: frequencies are drawn and matrices are factorised in it.
    fn is_double(self) -> bool {
        self.is_draw() || matches!(self, Case::Cholesky)
    }

    /// Whether there are points.
    pub fn has_points(self) -> bool {
        !self.is_draw() && !matches!(self, Case::Cholesky | Case::Peak)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    F32,
    F64,
}

impl Dtype {
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::F64 => "f64",
        }
    }
}

pub struct Request {
    pub case: Case,
    pub n: usize,
    pub d: usize,
    pub m: usize,
    pub dtype: Dtype,
    pub threads: usize,
    pub repeat: usize,
    pub heads: usize,
    pub fresh: bool,
}

/// The request of a command line.
pub fn read(asked: &command::Request) -> Result<Request, String> {
    let case = asked.text("--case").ok_or(format!("no --case is named; usage: {USAGE}"))?;
    let case = case_named(&case)?;
    let dtype = asked.text("--dtype").map_or(Ok(Dtype::F32), |name| dtype_named(&name))?;
    let request = Request {
        case,
        n: asked.count("--n", case.points(), (1, MOST_POINTS))?,
        d: asked.count("--d", 64, (1, 1 << 20))?,
        m: asked.count("--m", 256, (1, 1 << 24))?,
        dtype: if case.is_double() { Dtype::F64 } else { dtype },
        threads: asked.count(
            "--threads",
            std::thread::available_parallelism().map_or(1, usize::from),
            (1, 1024),
        )?,
        repeat: asked.count("--repeat", 15, (1, 1_000_000))?,
        heads: asked.count("--heads", 1, (1, 4096))?,
        fresh: asked.has("--fresh"),
    };
    check(&request)?;
    Ok(request)
}

fn case_named(name: &str) -> Result<Case, String> {
    let case = CASES.into_iter().find(|case| case.name() == name);
    case.ok_or_else(|| format!("'{name}' is not a case; cases: {}", CASES.map(Case::name).join(", ")))
}

fn dtype_named(name: &str) -> Result<Dtype, String> {
    let dtype = [Dtype::F32, Dtype::F64].into_iter().find(|dtype| dtype.name() == name);
    dtype.ok_or_else(|| format!("--dtype takes f32 or f64, not '{name}'"))
}

/// Refuses arrays that are too large, before any is allocated, and what has no meaning.
fn check(request: &Request) -> Result<(), String> {
    let Request { case, n, d, m, .. } = *request;
    if request.heads > 1 && !case.has_heads() {
        return Err(format!("--heads is for attention, not {}", case.name()));
    }
    let pairs =
        [Case::RidgeStatistics, Case::RidgeFit, Case::RidgePredict, Case::RidgeSearch, Case::LogisticFit];
    if pairs.contains(&case) && !m.is_multiple_of(2) {
        return Err(format!("--m is the number of cosines and sines in {}: even, not {m}", case.name()));
    }
    if request.fresh && case.width() == 0 {
        return Err(format!("--fresh is for cases that are maps, not {}", case.name()));
    }
    let fits = |what: &str, rows: usize, columns: usize, most: usize| {
        if rows.saturating_mul(columns) <= most {
            return Ok(());
        }
        Err(format!("{rows} {what} of {columns} numbers are too many: at most {most} numbers in all"))
    };
    match case {
        Case::Peak => {}
        Case::Cholesky => fits("rows", m, m, MOST_FREQUENCIES)?,
        _ => fits("frequencies", m, d, MOST_FREQUENCIES)?,
    }
    if case.has_points() {
        fits("points", n.saturating_mul(request.heads), d, MOST_POINTS)?;
        fits("rows of features", n, case.width() * m, MOST_POINTS)?;
        if case == Case::SoftmaxSample {
            fits("sums of features", n, m, MOST_POINTS)?;
        }
        fits("rows of projections", request.threads * TILE, m, MOST_POINTS)?;
    }
    Ok(())
}
