//! What was asked on the command line.

use std::ffi::OsString;

use crate::arguments;

const USAGE: &str = "throughput --case CASE [--n N] [--d D] [--m M] [--dtype f32|f64] [--threads T] \
                     [--repeat R] [--fresh]";

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
    RidgeStatistics,
    RidgePredict,
    Peak,
}

const CASES: [Case; 13] = [
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
    Case::RidgeStatistics,
    Case::RidgePredict,
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
            Case::RidgeStatistics => "ridge-statistics",
            Case::RidgePredict => "ridge-predict",
            Case::Peak => "peak",
        }
    }

    /// Features that are written for each frequency; 0 for cases that are not maps.
    fn width(self) -> usize {
        match self {
            Case::Positive | Case::Oprf | Case::Poisson => 1,
            Case::Trigonometric | Case::Hyperbolic | Case::Gerf => 2,
            Case::AngularHybrid => 4 * (1 + SIGNS),
            Case::ProjectDense | Case::ProjectStructured | Case::DrawOrthogonal => 0,
            Case::RidgeStatistics | Case::RidgePredict | Case::Peak => 0,
        }
    }

    /// Points, if no number is asked for: features of 64 to 160 MB at the other defaults.
    fn points(self) -> usize {
        if self == Case::AngularHybrid { 8192 } else { 65536 }
    }

    /// Whether there are points.
    pub fn has_points(self) -> bool {
        !matches!(self, Case::DrawOrthogonal | Case::Peak)
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
    pub fresh: bool,
}

/// The request, or `None` for a request for help.
pub fn read(arguments: impl Iterator<Item = OsString>) -> Result<Option<Request>, String> {
    let known = ["--case", "--n", "--d", "--m", "--dtype", "--threads", "--repeat"];
    // The one option without a value.
    let (fresh, others): (Vec<_>, Vec<_>) = arguments.partition(|argument| argument == "--fresh");
    let Some(options) = arguments::options(others.into_iter(), &known, USAGE)? else { return Ok(None) };
    let (mut case, mut points) = (None, None);
    let mut request = Request {
        case: Case::Peak,
        n: 0,
        d: 64,
        m: 256,
        dtype: Dtype::F32,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        repeat: 15,
        fresh: !fresh.is_empty(),
    };
    for (option, value) in options {
        let text = value.to_string_lossy();
        let whole = |most| arguments::whole(&option, &text, 1, most).map(|number| number as usize);
        match option.as_str() {
            "--case" => case = Some(case_named(&text)?),
            "--n" => points = Some(whole(MOST_POINTS as u64)?),
            "--d" => request.d = whole(1 << 20)?,
            "--m" => request.m = whole(1 << 24)?,
            "--dtype" => request.dtype = dtype_named(&text)?,
            "--threads" => request.threads = whole(1024)?,
            _ => request.repeat = whole(1_000_000)?,
        }
    }
    request.case = case.ok_or(format!("no --case is named; usage: {USAGE}"))?;
    request.n = points.unwrap_or(request.case.points());
    // Frequencies are drawn in double precision, whatever is made of them.
    if request.case == Case::DrawOrthogonal {
        request.dtype = Dtype::F64;
    }
    check(&request)?;
    Ok(Some(request))
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
    if matches!(case, Case::RidgeStatistics | Case::RidgePredict) && !m.is_multiple_of(2) {
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
    if case != Case::Peak {
        fits("frequencies", m, d, MOST_FREQUENCIES)?;
    }
    if case.has_points() {
        fits("points", n, d, MOST_POINTS)?;
        fits("rows of features", n, case.width() * m, MOST_POINTS)?;
        fits("rows of projections", request.threads * TILE, m, MOST_POINTS)?;
    }
    Ok(())
}
