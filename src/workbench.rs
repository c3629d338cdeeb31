//! Parts of the engine, the instruction sets and the peak rate of the machine, for this crate's own tests, benches and
//! experiments. The module is not for programs: it may change with any version.

use ndarray::ArrayView2;

use crate::Real;
pub use crate::engine::{Method, Projection, Scratch};
use crate::engine::{Tile, TileShape};
pub use crate::map::compose::{Composite, Conditioned, Formula};
pub use crate::numeric::special::normal_quantile;
use crate::numeric::{self, Isa};
#[cfg(feature = "planner")]
use crate::planner::{Advice, Calibration, Plan};

/// The instruction sets of this machine that the crate's loops are compiled for, in increasing order: `portable`, the
/// baseline of the target, and on x86-64 `avx2` and `avx512`.
///
/// Loops run on the last one. In builds with debug assertions the environment variable `RANDOM_FEATURES_ISA` can select
/// a lower one, for tests.
pub fn instruction_sets() -> Vec<&'static str> {
    Isa::available().into_iter().map(Isa::name).collect()
}

/// The instruction set that loops run on.
pub fn instruction_set() -> &'static str {
    Isa::best().name()
}

/// Does `rounds` rounds of independent fused multiply-adds in registers, with the vectors that the crate's loops use, and
/// returns the number of floating-point operations: two for each multiply-add.
pub fn multiply_adds<T: Real>(rounds: usize) -> u64 {
    numeric::multiply_adds::<T>(Isa::best(), rounds)
}

/// Writes the projections of a tile of points to the first columns of `values`, whose rows are `width` ≥ m elements
/// apart, and their squared norms.
///
/// # Panics
/// If a size does not fit.
pub fn project<T: Real>(
    projection: &Projection<T>,
    x: ArrayView2<'_, T>,
    values: &mut [T],
    width: usize,
    squared_norms: &mut [f64],
    scratch: &mut Scratch<T>,
) {
    let rows = x.nrows();
    assert!(x.ncols() == projection.dim() && width >= projection.m(), "a projection of these points");
    assert!(values.len() == rows * width && squared_norms.len() == rows, "room for all projections");
    projection.project(
        x.into(),
        &mut Tile::new(values, &mut [], squared_norms, TileShape { rows, width, blocks: 1 }),
        scratch,
        None,
    );
}

/// The numbers of a plan's advice.
#[cfg(feature = "planner")]
pub fn advice(plan: &Plan) -> Option<&Advice> {
    plan.advice.as_ref()
}

/// The calibration with these nanoseconds, in the order of its text.
#[cfg(feature = "planner")]
pub fn calibration(times: [f64; 11]) -> Calibration {
    Calibration::of_times(times)
}

/// The nanoseconds of a calibration, in the order of its text.
#[cfg(feature = "planner")]
pub fn calibration_times(calibration: &Calibration) -> [f64; 11] {
    calibration.times()
}
