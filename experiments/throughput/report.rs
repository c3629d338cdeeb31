//! The lines of JSON.

use serde::Serialize;

use crate::ceilings::Ceilings;
use crate::request::Request;
use crate::work::Work;

#[derive(Serialize)]
struct Shape {
    n: Option<usize>,
    d: usize,
    m: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    heads: Option<usize>,
}

/// The line of a case.
#[derive(Serialize)]
pub struct Report {
    case: &'static str,
    shape: Shape,
    dtype: &'static str,
    threads: usize,
    fresh: bool,
    min_ms: f64,
    median_ms: f64,
    max_ms: f64,
    gflops: f64,
    roofline_fraction: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    megabytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<f64>,
}

impl Report {
    /// From what was made before, operations of the linear part and seconds; there is at least one time.
    pub fn new(request: &Request, work: &Work, least: f64, mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let median = 0.5 * (times[(times.len() - 1) / 2] + times[times.len() / 2]);
        let Request { case, n, d, m, heads, .. } = *request;
        Report {
            case: case.name(),
            shape: Shape {
                n: case.has_points().then_some(n),
                d,
                m,
                heads: case.has_heads().then_some(heads),
            },
            dtype: request.dtype.name(),
            threads: request.threads,
            fresh: request.fresh,
            min_ms: rounded(1e3 * times[0]),
            median_ms: rounded(1e3 * median),
            max_ms: rounded(1e3 * times[times.len() - 1]),
            gflops: rounded(1e-9 * work.cost.flops / median),
            roofline_fraction: rounded(least / median),
            build_ms: work.made.as_ref().map(|made| rounded(1e3 * made.seconds)),
            megabytes: work.made.as_ref().map(|made| rounded(1e-6 * made.bytes as f64)),
            accuracy: work.accuracy.map(rounded),
        }
    }
}

/// The line of the ceilings.
#[derive(Serialize)]
pub struct Peak {
    case: &'static str,
    dtype: &'static str,
    threads: usize,
    multiply_add_gflops: f64,
    multiply_add_gflops_of_one_thread: f64,
    write_gbs: f64,
    read_gbs: f64,
}

impl Peak {
    pub fn new(request: &Request, ceilings: &Ceilings, flops_of_one: f64) -> Self {
        Peak {
            case: request.case.name(),
            dtype: request.dtype.name(),
            threads: request.threads,
            multiply_add_gflops: rounded(1e-9 * ceilings.flops),
            multiply_add_gflops_of_one_thread: rounded(1e-9 * flops_of_one),
            write_gbs: rounded(1e-9 * ceilings.write),
            read_gbs: rounded(1e-9 * ceilings.read),
        }
    }
}

/// Four decimals: no measurement has more.
fn rounded(x: f64) -> f64 {
    (1e4 * x).round() / 1e4
}
