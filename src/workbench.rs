//! Parts of the engine, the instruction sets and the peak rate of the machine, for this crate's own tests, benches and
//! experiments. The module is not for programs: it may change with any version.

use ndarray::{Array1, Array2, ArrayRef2, ArrayView2};

use crate::Real;
pub use crate::engine::{Method, Projection, Scratch};
use crate::engine::{Tile, TileShape};
use crate::error::{Error, Result, check_size};
pub use crate::frequency::any_coupling::PlainCoupling;
pub use crate::frequency::draw::draw_with;
pub use crate::frequency::simplex::RotationLaw;
pub use crate::generator::zeros;
pub use crate::kernel::gaussian::Chi;
pub use crate::kernel::laplace::Cauchy;
pub use crate::kernel::powered_exponential::ln_stable;
pub use crate::kernel::regularised::RootDim;
pub use crate::map::compose::{Composite, Conditioned, Formula};
use crate::numeric::{self, Isa};
#[cfg(feature = "planner")]
use crate::planner::{Advice, Calibration, Plan};
pub use crate::testing::unbiased::Sample;
pub use crate::theory::law::Run;

pub mod structured {
    //! Structured frequencies.
    pub use crate::frequency::structured::{PlaneRotation, Rotated, Rotation, Structured};
}

#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
pub mod search {
    //! The lengthscales that a search for a regression tries.
    pub use crate::apply::ridge::fit::search::growth::{End, Growth};
    pub use crate::apply::ridge::fit::search::periodogram::wave_shares;
    use crate::{Real, Result};

    /// m, the medians of differences of coordinates, and G, that of scaled distances.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if there are no two different points.
    pub fn own_scales<T: Real>(points: &ndarray::ArrayRef2<T>) -> Result<(Vec<f64>, f64)> {
        crate::data::lengthscale::own_scales(points)
    }
}

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub mod factors {
    //! Factorisations of matrices by a backend.
    use ndarray::{Array1, ArrayRef2};

    use crate::Result;
    use crate::linalg::{Backend, Cholesky, Eigen, Svd};

    /// The factorisations of a backend, which are methods of the crate alone.
    pub trait Factorise {
        /// The Cholesky factor of a symmetric positive definite matrix.
        fn cholesky(self, a: &ArrayRef2<f64>) -> Result<Cholesky>;
        /// The eigenvalues, ascending, and eigenvectors of a symmetric matrix.
        fn eigen(self, a: &ArrayRef2<f64>) -> Result<Eigen>;
        /// The thin singular value decomposition.
        fn svd(self, a: &ArrayRef2<f64>) -> Result<Svd>;
        /// The singular values, descending.
        fn singular_values(self, a: &ArrayRef2<f64>) -> Result<Array1<f64>>;
    }

    impl Factorise for Backend {
        fn cholesky(self, a: &ArrayRef2<f64>) -> Result<Cholesky> {
            Backend::cholesky(self, a)
        }

        fn eigen(self, a: &ArrayRef2<f64>) -> Result<Eigen> {
            Backend::eigen(self, a)
        }

        fn svd(self, a: &ArrayRef2<f64>) -> Result<Svd> {
            Backend::svd(self, a)
        }

        fn singular_values(self, a: &ArrayRef2<f64>) -> Result<Array1<f64>> {
            Backend::singular_values(self, a)
        }
    }
}

/// λ, and the estimates of ridge leverage scores of the rows of x by which `Nystroem::leverage` draws m landmarks.
///
/// # Errors
/// The errors of `Nystroem::leverage` for values of the kernel.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub fn leverage_scores(
    kernel: &crate::map::AnyKernel,
    x: &Array2<f64>,
    m: usize,
    seed: u64,
) -> Result<(f64, Vec<f64>)> {
    use crate::map::nystroem::leverage::Scores;
    let Scores { lambda, values } = Scores::estimate(kernel, x, m, &mut crate::rng(seed))?;
    Ok((lambda, values))
}

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

impl<T: Real> Projection<T> {
    /// Writes ⟨ωⱼ, xᵢ/ℓ⟩ for all rows of `x`, n × m, and ‖xᵢ/ℓ‖² to your own buffers, on the calling thread.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if an array does not fit or is not in standard layout.
    #[inline(never)]
    pub fn project_into(
        &self,
        x: &ArrayRef2<T>,
        products: &mut Array2<T>,
        squared_norms: &mut Array1<f64>,
    ) -> Result<()> {
        check_size("the number of columns of x", self.dim(), x.ncols())?;
        check_size("the number of rows of the products", x.nrows(), products.nrows())?;
        check_size("the number of columns of the products", self.m(), products.ncols())?;
        check_size("the number of squared norms", x.nrows(), squared_norms.len())?;
        let shape = TileShape { rows: x.nrows(), width: self.m(), blocks: 1 };
        let (values, norms) = (products.as_slice_mut(), squared_norms.as_slice_mut());
        let (Some(values), Some(norms)) = (values, norms) else {
            let (what, expected, found) = ("the stride of a row of the products", self.m(), 0);
            return Err(Error::Shape { what, expected, found });
        };
        self.project(
            x.view().into(),
            &mut Tile::new(values, &mut [], norms, shape),
            &mut Scratch::default(),
            None,
        );
        Ok(())
    }
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
