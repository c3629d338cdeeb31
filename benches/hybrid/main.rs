//! Hybrid against plain features of equal dimension, and both against the count of their operations.
//!
//! `cargo bench --bench hybrid` times `features_into`, on one thread and into arrays that exist and fit in the second
//! cache, of the angular hybrid with m base frequencies and n sign features, D = 4mn features a point, and of
//! `Trigonometric` with D features. The model of their times is
//!
//!     plain:  a [D/2] d + b D,
//!     hybrid: a (k [m] + [n]) d + 2m b + 2m b' + c D,    k = 1 with shared, 2 with independent bases:
//!
//! multiply-adds of projections, whose numbers are rounded up to whole cache lines [·], as vectors take them; values
//! that are lifted in place to waves (b) and to exponentials (b'); features written elsewhere. The constants are measured
//! in the same process: a on a projection on 256 frequencies; b and b' on maps with these frequencies, less the
//! projection; c on rows that are copied from the first cache to the second. The table has nanoseconds per point, by
//! measurement and model, the ratio plain/hybrid by both, and by what factor the measured hybrid exceeds its model and the
//! measured ratio falls short of that of the model. Times are minima over alternations.

use std::hint::black_box;
use std::time::Instant;

use ndarray::Array2;
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Frequencies, Independent};
use random_features::workbench::{Projection, Scratch, project};
use random_features::{Hyperbolic, Map, Real, Result, Side, Trigonometric, rng};

/// The dimension of the points.
const DIM: usize = 64;
/// Bytes of features, and the points that they may belong to.
const BYTES: usize = 256 << 10;
const POINTS: std::ops::RangeInclusive<usize> = 24..=1008;
/// Alternations.
const ROUNDS: usize = 41;
/// m and n.
const SIZES: [(usize, usize); 7] = [(16, 1), (16, 8), (64, 1), (64, 4), (64, 16), (256, 1), (256, 4)];
/// The frequencies of the maps that the model is measured on.
const COUNT: usize = 256;
/// Bytes.
const CACHE_LINE: usize = 64;

/// Nanoseconds for each multiply-add, value lifted to a wave or to an exponential, and written feature.
struct Model {
    multiply_add: f64,
    wave: f64,
    exponential: f64,
    write: f64,
}

impl Model {
    fn measure<T: Real>() -> Result<Self> {
        let omega = frequencies(COUNT, 1)?;
        let projection = Projection::<T>::new(omega.clone(), 1.0)?;
        let (hyperbolic, trigonometric) =
            (Hyperbolic.softmax::<T>(omega.clone())?, Trigonometric.softmax::<T>(omega)?);
        let mut arena = Arena::new(2 * COUNT, 1);
        let row = vec![T::one(); 2 * COUNT];
        let (mut best, mut scratch) = ([f64::INFINITY; 4], Scratch::default());
        let n = arena.x.nrows();
        for _ in 0..ROUNDS {
            let times = [
                nanoseconds(|| {
                    let (values, scales) = (arena.values.as_slice_mut(), arena.scales.as_slice_mut());
                    let (values, scales) = (values.unwrap_or_default(), scales.unwrap_or_default());
                    let x = black_box(arena.x.view());
                    project(&projection, x, values, 2 * COUNT, scales, &mut scratch);
                }),
                arena.time(&hyperbolic)?,
                arena.time(&trigonometric)?,
                nanoseconds(|| {
                    let values = arena.values.as_slice_mut().unwrap_or_default();
                    for out in black_box(values).chunks_exact_mut(row.len()) {
                        out.copy_from_slice(black_box(&row));
                    }
                }),
            ];
            best.iter_mut().zip(times).for_each(|(best, time)| *best = best.min(time));
        }
        let [project, hyperbolic, trigonometric, write] = best.map(|time| time / n as f64);
        let features = (2 * COUNT) as f64;
        Ok(Model {
            multiply_add: project / (COUNT * DIM) as f64,
            wave: (trigonometric - project) / features,
            exponential: (hyperbolic - project) / features,
            write: write / features,
        })
    }

    /// Nanoseconds for a point of a plain map of D features.
    fn plain<T>(&self, features: usize) -> f64 {
        self.project::<T>(features / 2) + self.wave * features as f64
    }

    /// Nanoseconds for a point of a hybrid with `bases` projections on m frequencies.
    fn hybrid<T>(&self, m: usize, n: usize, bases: usize) -> f64 {
        let lifted = (2 * m) as f64 * (self.wave + self.exponential);
        let projected = bases as f64 * self.project::<T>(m) + self.project::<T>(n);
        projected + lifted + self.write * (4 * m * n) as f64
    }

    fn project<T>(&self, count: usize) -> f64 {
        self.multiply_add * (count.next_multiple_of(CACHE_LINE / size_of::<T>()) * DIM) as f64
    }
}

/// Points and room for their features.
struct Arena<T> {
    x: Array2<T>,
    values: Array2<T>,
    scales: Array2<f64>,
}

impl<T: Real> Arena<T> {
    fn new(features: usize, blocks: usize) -> Self {
        let n = (BYTES / (features * size_of::<T>())).clamp(*POINTS.start(), *POINTS.end());
        let coordinate = |(i, k)| T::narrow((((i * 31 + k * 7) % 17) as f64 / 17.0 - 0.5) / 4.0);
        Arena {
            x: Array2::from_shape_fn((n, DIM), coordinate),
            values: Array2::from_elem((n, features), T::one()),
            scales: Array2::zeros((n, blocks)),
        }
    }

    /// Nanoseconds for the features of all points, with the caches as a first run has left them.
    fn time(&mut self, map: &Map<T>) -> Result<f64> {
        let mut fill = || map.features_into(Side::X, black_box(&self.x), &mut self.values, &mut self.scales);
        fill()?;
        let mut result = Ok(());
        let time = nanoseconds(|| result = fill());
        result.map(|()| time)
    }
}

fn nanoseconds(mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    work();
    1e9 * start.elapsed().as_secs_f64()
}

fn frequencies(count: usize, seed: u64) -> Result<Frequencies> {
    Independent.draw(DIM, count, rng(seed).next_u64())
}

fn compare<T: Real>(model: &Model, m: usize, n: usize, shared: bool) -> Result<()> {
    let omega = frequencies(m, 1)?;
    let bases = if shared { Bases::shared(omega) } else { Bases::independent(omega, frequencies(m, 2)?) };
    let hybrid = Hybrid::<Map<T>>::angular(bases, frequencies(n, 3)?)?;
    // Half of them are absent from a point.
    let features = hybrid.feature_dim() / 2;
    let plain = Trigonometric.softmax::<T>(frequencies(features / 2, 4)?)?;
    let mut own = Arena::new(hybrid.feature_dim(), hybrid.blocks().len());
    let mut plains = Arena::new(features, 1);
    let mut best = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        let times = [own.time(&hybrid)?, plains.time(&plain)?];
        best.iter_mut().zip(times).for_each(|(best, time)| *best = best.min(time));
    }
    let [hybrid, plain] = [best[0] / own.x.nrows() as f64, best[1] / plains.x.nrows() as f64];
    let modelled = [model.hybrid::<T>(m, n, if shared { 1 } else { 2 }), model.plain::<T>(features)];
    let ratios = [plain / hybrid, modelled[1] / modelled[0]];
    println!(
        "| {} | {} | {m} | {n} | {features} | {hybrid:.0} | {:.0} | {plain:.0} | {:.0} | {:.1} | {:.1} | {:.2} | {:.2} |",
        std::any::type_name::<T>(),
        if shared { "shared" } else { "independent" },
        modelled[0],
        modelled[1],
        ratios[0],
        ratios[1],
        hybrid / modelled[0],
        ratios[1] / ratios[0],
    );
    Ok(())
}

fn run<T: Real>() -> Result<()> {
    let model = Model::measure::<T>()?;
    let Model { multiply_add, wave, exponential, write } = model;
    eprintln!(
        "{}: a = {multiply_add:.4}, b = {wave:.3}, b' = {exponential:.3}, c = {write:.3} ns",
        std::any::type_name::<T>()
    );
    for shared in [true, false] {
        SIZES.iter().try_for_each(|&(m, n)| compare::<T>(&model, m, n, shared))?;
    }
    Ok(())
}

fn main() -> Result<()> {
    println!(
        "| | bases | m | n | D | hybrid | model | plain | model | ratio | model | hybrid/model | model/ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let all = || run::<f32>().and_then(|()| run::<f64>());
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(all),
        Err(error) => {
            eprintln!("no pool of one thread ({error}): all threads are used");
            all()
        }
    }
}
