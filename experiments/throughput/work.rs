//! The cases: what runs, and what it costs at least.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use ndarray::{Array2, ArrayView2, Axis};
use num_complex::Complex64;
use rand::distr::{Distribution, StandardUniform};
use random_features::compose::{Bases, Hybrid};
use random_features::extend::Lift;
use random_features::frequency::{Counts, Frequencies, Hadamard, Independent, Orthogonal, RadiusCoupling};
use random_features::kernel::Gaussian;
use random_features::linalg::Backend;
use random_features::map::Nystroem;
use random_features::theory::gerf::GerfSign;
use random_features::workbench::factors::Factorise;
use random_features::workbench::{Method, Projection, Scratch, project as project_tile};
use random_features::{Gerf, Hyperbolic, Map, Poisson, Positive, Real, Side, Trigonometric, rng};
use rayon::prelude::*;

use crate::request::{Case, Request, SIGNS, TILE};
use crate::{attention, regression, sampling};

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Frequencies that are drawn.
type Drawn = random_features::Result<Frequencies>;

/// A case, ready to run.
pub struct Work {
    /// Runs once; the seconds that it took.
    pub run: Box<dyn FnMut() -> Result<f64>>,
    pub cost: Cost,
    /// What was made before it can run.
    pub made: Option<Made>,
    /// The accuracy of a fit: R² of numbers, or the share of right labels.
    pub accuracy: Option<f64>,
}

/// Something that was made, and what that took.
pub struct Made {
    pub seconds: f64,
    pub bytes: usize,
}

impl Work {
    pub fn new(run: Box<dyn FnMut() -> Result<f64>>, cost: Cost) -> Self {
        Work { run, cost, made: None, accuracy: None }
    }
}

/// What must be done at least.
#[derive(Default)]
pub struct Cost {
    /// Operations of the linear part.
    pub flops: f64,
    /// How many exponents are lifted by what.
    pub lifts: Vec<(Lift, f64)>,
    /// The bytes that are written, and those that are read.
    pub written: f64,
    pub read: f64,
}

pub fn prepare<T: Real>(request: &Request) -> Result<Work>
where
    StandardUniform: Distribution<T>,
{
    let Request { case, d, m, .. } = *request;
    let mut rng = rng(1);
    let mut omega = |count| Independent.draw(d, count, rng.next_u64());
    match case {
        Case::Positive => map::<T>(request, Positive.softmax(omega(m)?)?, &[Lift::Exp]),
        Case::Trigonometric => map::<T>(request, Trigonometric.softmax(omega(m)?)?, &[Lift::Polar]),
        Case::Hyperbolic => map::<T>(request, Hyperbolic.softmax(omega(m)?)?, &[Lift::ExpPair]),
        Case::Oprf => {
            // The mean of ‖x+y‖² over these points.
            let gerf = Gerf::optimal(d, 7.0 / 6.0)?;
            map::<T>(request, gerf.softmax(omega(m)?)?, &[Lift::Exp])
        }
        Case::Gerf => {
            let gerf = Gerf::new(Complex64::new(-0.02, 0.02), GerfSign::Plus)?;
            map::<T>(request, gerf.softmax(omega(m)?)?, &[Lift::ExpPolar { conjugate: false }])
        }
        Case::Poisson => {
            // The root mean square of a coordinate of x times the same one of y.
            let counts = Counts::poisson(d, m, 1.0 / (3 * d) as f64, rng.next_u64())?;
            map::<T>(request, Poisson::default().softmax(counts)?, &[])
        }
        Case::AngularHybrid => {
            let hybrid = Hybrid::<Map<T>>::angular(Bases::shared(omega(m)?), omega(SIGNS)?)?;
            let mut work = map(request, hybrid, &[Lift::ExpPair, Lift::Polar])?;
            work.cost.flops += product(request, SIGNS);
            Ok(work)
        }
        Case::ProjectDense => project::<T>(request, Method::Dense),
        Case::ProjectStructured => project::<T>(request, Method::Structured),
        Case::DrawOrthogonal => Ok(draw_orthogonal(d, m, move |seed| Orthogonal.draw(d, m, seed))),
        Case::DrawPaired => {
            let paired = Orthogonal.with_coupled_radii(RadiusCoupling::Paired);
            Ok(draw_orthogonal(d, m, move |seed| paired.draw(d, m, seed)))
        }
        Case::Nystroem => nystroem::<T>(request),
        Case::Attention
        | Case::AttentionCausal
        | Case::AttentionCausalWindow
        | Case::AttentionBackward
        | Case::AttentionCausalBackward
        | Case::AttentionStep => attention::prepare::<T>(request),
        Case::RidgeStatistics
        | Case::RidgeFit
        | Case::RidgePredict
        | Case::RidgeSearch
        | Case::LogisticFit => regression::prepare::<T>(request, omega(m / 2)?),
        Case::Cholesky => cholesky(m),
        Case::SoftmaxSample => sampling::prepare::<T>(request, omega(m)?),
        Case::Peak => Err("the ceilings are no work".into()),
    }
}

/// The features of all points; every frequency's projection is lifted by each of `lifts`.
fn map<T: Real>(request: &Request, map: Map<T>, lifts: &[Lift]) -> Result<Work>
where
    StandardUniform: Distribution<T>,
{
    let Request { n, d, m, .. } = *request;
    let (features, blocks) = (map.feature_dim(), map.blocks().len());
    let x = points::<T>(n, d)?;
    let absent = if request.case == Case::AngularHybrid { features / 2 } else { 0 };
    let cost = Cost {
        flops: product(request, m),
        lifts: lifts.iter().map(|lift| (*lift, n as f64 * m as f64)).collect(),
        written: n as f64 * ((features - absent) * size_of::<T>() + blocks * size_of::<f64>()) as f64,
        read: size_of_val(x.as_slice().unwrap_or_default()) as f64,
    };
    let run = if request.fresh {
        timed(move || Ok(map.features(Side::X, black_box(&x))?))
    } else {
        zeros::<T>(n, features)?;
        let (mut values, mut log_scales) = map.features(Side::X, &x)?.into_parts();
        timed(move || Ok(map.features_into(Side::X, black_box(&x), &mut values, &mut log_scales)?))
    };
    Ok(Work::new(run, cost))
}

/// m Nyström features of 2m landmarks, which are points; half a lengthscale is the mean distance of points.
fn nystroem<T: Real>(request: &Request) -> Result<Work>
where
    StandardUniform: Distribution<T>,
{
    let Request { d, m, .. } = *request;
    let few = points::<T>(4 * m, d)?;
    let features = Nystroem::fit(Gaussian::new(0.8)?, &few, m, 1)?;
    let mut work = map::<T>(request, features.map()?, &[Lift::Exp, Lift::Exp])?;
    work.cost.flops = 2.0 * (request.n * features.landmarks().nrows()) as f64 * (d + m) as f64;
    Ok(work)
}

/// The solution of a system with the matrix of a kernel of m numbers, made positive definite.
fn cholesky(m: usize) -> Result<Work> {
    let mut a = zeros::<f64>(m, m)?;
    let distance = |i: usize, j: usize| i.abs_diff(j) as f64 / 10.0;
    a.indexed_iter_mut().for_each(|((i, j), a)| *a = (-distance(i, j)).exp());
    let b = a.column(0).to_owned();
    let size = m as f64;
    let cost = Cost { flops: size * size * (size / 3.0 + 2.0), ..Cost::default() };
    let run = timed(move || Ok(Backend::default().cholesky(black_box(&a))?.solve_vector(&b)?));
    Ok(Work::new(run, cost))
}

/// Projections of all points, tile by tile, a run of tiles for each thread.
fn project<T: Real>(request: &Request, method: Method) -> Result<Work>
where
    StandardUniform: Distribution<T>,
{
    let Request { n, d, m, threads, .. } = *request;
    let hadamard = Hadamard::default();
    let omega = hadamard.draw(d, m, rng(1).next_u64())?;
    let flops = match method {
        Method::Dense => product(request, m),
        Method::Structured => n as f64 * transforms(hadamard.rounds, omega.padded_dim(), m),
    };
    let projection = Projection::<T>::with_method(omega, 1.0, method)?;
    let x = points::<T>(n, d)?;
    let read = size_of_val(x.as_slice().unwrap_or_default()) as f64;
    let buffers = || (vec![T::zero(); TILE * m], [0.0; TILE], Scratch::default());
    let mut buffers: Vec<_> = (0..threads).map(|_| buffers()).collect();
    let run = timed(move || {
        let runs: Vec<_> = x.axis_chunks_iter(Axis(0), n.div_ceil(threads)).collect();
        runs.into_par_iter().zip(&mut buffers).for_each(|(x, (values, norms, scratch))| {
            project_tiles(&projection, black_box(x), values, norms, scratch);
        });
        Ok(())
    });
    Ok(Work::new(run, Cost { flops, read, ..Cost::default() }))
}

fn project_tiles<T: Real>(
    projection: &Projection<T>,
    x: ArrayView2<'_, T>,
    values: &mut [T],
    norms: &mut [f64],
    scratch: &mut Scratch<T>,
) {
    let m = projection.m();
    for x in x.axis_chunks_iter(Axis(0), TILE) {
        let rows = x.nrows();
        project_tile(projection, x, &mut values[..rows * m], m, &mut norms[..rows], scratch);
        black_box(&*values);
    }
}

/// Orthogonal frequencies.
fn draw_orthogonal(d: usize, m: usize, draw: impl Fn(u64) -> Drawn + 'static) -> Work {
    let run = timed(move || Ok(draw(rng(black_box(1)).next_u64())?));
    let flops = (m / d) as f64 * reflections(d, d) + reflections(d, m % d);
    let written = (d * m * size_of::<f64>()) as f64;
    Work::new(run, Cost { flops, written, ..Cost::default() })
}

/// `work` with a clock, which stops before the result is dropped.
pub fn timed<R>(mut work: impl FnMut() -> Result<R> + 'static) -> Box<dyn FnMut() -> Result<f64>> {
    Box::new(move || {
        let start = Instant::now();
        let _result = black_box(work()?);
        Ok(start.elapsed().as_secs_f64())
    })
}

pub fn points<T: Real>(n: usize, d: usize) -> Result<Array2<T>>
where
    StandardUniform: Distribution<T>,
{
    let mut rng = rng(2);
    let scale = T::narrow((d as f64).sqrt().recip());
    let mut points = zeros(n, d)?;
    points.mapv_inplace(|_: T| StandardUniform.sample(&mut rng) * scale);
    Ok(points)
}

/// An array, or an error where an array would end the program.
pub fn zeros<T: Real>(rows: usize, columns: usize) -> Result<Array2<T>> {
    let bytes = rows * columns * size_of::<T>();
    let reserved = Vec::<u8>::new().try_reserve_exact(bytes);
    reserved.map_err(|_| format!("no {} MB for points or features", bytes.div_ceil(1 << 20)))?;
    Ok(Array2::zeros((rows, columns)))
}

/// Operations of the product of all points with `count` frequencies.
pub fn product(request: &Request, count: usize) -> f64 {
    2.0 * request.n as f64 * request.d as f64 * count as f64
}

/// Additions of the Hadamard transforms of one point.
fn transforms(rounds: usize, padded: usize, m: usize) -> f64 {
    let blocks = m.div_ceil(padded);
    (blocks * rounds * padded * padded.ilog2() as usize) as f64
}

/// Operations of `count` reflections in ℝᵈ, k on the coordinates and rows from k on: Σₖ 4(d − k)(count − k).
fn reflections(d: usize, count: usize) -> f64 {
    let (d, count) = (d as f64, count as f64);
    2.0 * count * count * (d - count / 3.0)
}
