//! [`NystroemSketch`]: landmarks and a factor as the parameters of a sketch, in which form they are stored.

use std::sync::Arc;

use ndarray::Array2;

use super::features::{Projected, ScaledFeatures};
use crate::SignedLog;
use crate::digest::{Digest, Identity};
use crate::error::{Error, Result, check_positive, check_size};
use crate::generator::Generator;
use crate::kernel::Kernel;
use crate::map::AnyKernel;
use crate::map::sketch::{Sketch, SketchNumbers};
use crate::numeric::{matrix_of, slice_of};

/// Landmarks z and the factor A of the features A k(x) of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::map) struct NystroemSketch {
    /// z, M × d, in standard layout.
    pub(super) landmarks: Array2<f64>,
    /// A, D × M, in standard layout.
    pub(super) factor: Array2<f64>,
    /// A hash of the kernel, which is the only one that A is for.
    kernel: u64,
}

impl NystroemSketch {
    /// The parameters of features of the kernel with this hash.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if M, d or D is 0 or D is above M, [`Shape`](Error::Shape) if the arrays do not fit,
    /// [`NotFinite`](Error::NotFinite) with the first row that holds NaN or an infinity.
    pub fn new(kernel: u64, landmarks: Array2<f64>, factor: Array2<f64>) -> Result<Self> {
        check_positive("the number of landmarks", landmarks.nrows())?;
        check_positive("the dimension d", landmarks.ncols())?;
        check_size("the number of columns of the factor", landmarks.nrows(), factor.ncols())?;
        let domain = "at least 1, and at most the number of landmarks";
        check_features(factor.nrows(), landmarks.nrows(), domain)?;
        let [landmarks, factor] = [landmarks, factor].map(|array| array.as_standard_layout().into_owned());
        for (what, array) in [("the landmarks", &landmarks), ("the factor", &factor)] {
            crate::error::check_finite(what, array)?;
        }
        Ok(NystroemSketch { landmarks, factor, kernel })
    }

    /// z, M × d.
    pub fn landmarks(&self) -> &Array2<f64> {
        &self.landmarks
    }

    /// A, D × M.
    pub fn factor(&self) -> &Array2<f64> {
        &self.factor
    }

    /// M, the number of landmarks.
    pub fn landmark_count(&self) -> usize {
        self.landmarks.nrows()
    }
}

/// Rejects numbers of features that are not between 1 and `most`, which the domain says.
pub(super) fn check_features(features: usize, most: usize, domain: &'static str) -> Result<()> {
    let (name, value) = ("the number of features D", features as f64);
    if (1..=most).contains(&features) { Ok(()) } else { Err(Error::Parameter { name, value, domain }) }
}

impl Sketch for NystroemSketch {
    const NAME: &'static str = "Nyström";
    type Drawn = Projected;

    fn dim(&self) -> usize {
        self.landmarks.ncols()
    }

    fn feature_dim(&self) -> usize {
        self.factor.nrows()
    }

    fn numbers(&self) -> SketchNumbers {
        let sizes = [self.landmarks.nrows(), self.dim(), self.feature_dim()].map(|size| size as u64);
        SketchNumbers {
            integers: [&sizes[..], &[self.kernel]].concat(),
            reals: [slice_of(&self.landmarks), slice_of(&self.factor)].concat(),
        }
    }

    fn of_numbers(numbers: &SketchNumbers) -> Result<Self> {
        let what = "Nyström features of other numbers than landmarks, a factor and their sizes";
        let unfit = Error::Unsupported { what };
        let [m, d, features, kernel] = numbers.integers[..] else { return Err(unfit) };
        let [m, d, features] = [m, d, features].map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        let sizes = [m.checked_mul(d), m.checked_mul(features)];
        let reals = &numbers.reals;
        match sizes {
            [Some(first), Some(second)] if first.checked_add(second) == Some(reals.len()) => {
                let (landmarks, factor) = reals.split_at(first);
                let landmarks = matrix_of(m, d, landmarks.to_vec());
                NystroemSketch::new(kernel, landmarks, matrix_of(features, m, factor.to_vec()))
            }
            _ => Err(unfit),
        }
    }

    fn serves(&self, kernel: &AnyKernel) -> bool {
        Digest::of(kernel) == self.kernel
    }

    /// Nothing is random.
    fn draw(&self, kernel: &AnyKernel, _: &mut Generator) -> Result<Projected> {
        Projected::new(kernel, self.landmarks.clone(), self.factor.clone())
    }

    /// K̂, and not K.
    fn kernel(&self, kernel: &AnyKernel) -> Option<Arc<dyn Kernel<f64>>> {
        let features = Projected::new(kernel, self.landmarks.clone(), self.factor.clone()).ok()?;
        let identity = Identity::of(&(Self::NAME, self.numbers()));
        Some(Arc::new(NystroemKernel { features, identity }))
    }

    fn log_variance(&self, _: &AnyKernel, _: &[f64], _: &[f64]) -> Option<f64> {
        Some(f64::NEG_INFINITY)
    }
}

/// The kernel K̂(x, y) = φ(x)·φ(y) of Nyström features.
#[derive(Debug)]
struct NystroemKernel {
    features: Projected,
    identity: Identity,
}

impl Kernel<f64> for NystroemKernel {
    fn check_dim(&self, d: usize) -> Result<()> {
        check_size("the dimension of the points", self.features.dim(), d)
    }

    fn log_of_slices(&self, x: &[f64], y: &[f64]) -> SignedLog {
        self.features.log_product(x, y)
    }

    fn gradient_of_slices(&self, x: &[f64], y: &[f64], out: &mut [f64]) -> Option<f64> {
        if !self.features.has_gradients() {
            return None;
        }
        let ScaledFeatures { values, log_scales, .. } = self.features.features(y);
        Some(self.features.pull_back_row(x, &values, out) + log_scales[0])
    }

    fn identity(&self) -> Option<Identity> {
        Some(self.identity)
    }
}
