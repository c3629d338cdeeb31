//! [`PlainRecipe`]: a map that is not made of others, as plain data.

use std::sync::Arc;

use ndarray::{Array2, ArrayRef1};

use super::compose::Part;
use super::definition::Setting;
use super::{AnyKernel, Covariance, Map, Mechanism, Omega};
use crate::digest::{Digest, Identify, Identity, identified};
use crate::engine::MapPlan;
use crate::error::{Error, Result, check_size};
use crate::frequency::{agreement, check_shape};
use crate::kernel::{Kernel, OwnKernel, Radius};
use crate::numeric::matrix_times;
use crate::once::once;
use crate::theory::Pair;
use crate::{Real, SignedLog};

/// A map that is not made of others: its definition, its frequencies, and its kernel.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlainRecipe {
    /// The definition with its parameters.
    pub mechanism: Mechanism,
    /// The frequencies, or what else is random.
    pub omega: Omega,
    /// The kernel and its lengthscale.
    pub kernel: AnyKernel,
    /// M, d × d, if the map is for K(x, My).
    pub matrix: Option<Array2<f64>>,
}

identified! { PlainRecipe { mechanism, kernel, omega, matrix } }

impl PlainRecipe {
    /// The recipe of a map on these frequencies, drawn or to be drawn, for a kernel.
    pub fn new(
        mechanism: impl Into<Mechanism>,
        omega: impl Into<Omega>,
        kernel: impl Into<AnyKernel>,
    ) -> Self {
        PlainRecipe { mechanism: mechanism.into(), omega: omega.into(), kernel: kernel.into(), matrix: None }
    }

    /// The map of this recipe. Cost O(md), to round and pack the frequencies.
    ///
    /// # Errors
    /// [`Frequencies`](Error::Frequencies), [`NoFrequencies`](Error::NoFrequencies), [`NotDrawn`](Error::NotDrawn) or
    /// [`Law`](Error::Law) if the frequencies are of the wrong kind or not drawn yet, [`Kernel`](Error::Kernel) if
    /// their stated law is that of another kernel, or the map does not estimate such kernels; [`Shape`](Error::Shape)
    /// if parameters are for another dimension, [`Parameter`](Error::Parameter) if a parameter is outside its domain,
    /// [`NotFinite`](Error::NotFinite) if a frequency divided by the lengthscale overflows `T`.
    #[inline(never)]
    pub fn build<T: Real>(&self) -> Result<Map<T>> {
        Map::of_plain(self.clone())
    }

    /// Rejects a recipe that is known to be unsuitable before frequencies are drawn.
    pub(super) fn check(&self) -> Result<()> {
        self.kernel.check(self.omega.dim())?;
        match &self.omega {
            Omega::Draw(draw) => check_shape(draw.d, draw.m)?,
            Omega::DrawCounts(draw) => {
                check_shape(draw.d, draw.m)?;
                draw.law.check(draw.d)?;
            }
            _ => {}
        }
        self.mechanism.check(self.setting())?;
        if let AnyKernel::Own(kernel) = &self.kernel {
            self.check_own(kernel)?;
        }
        self.matrix.as_ref().map_or(Ok(()), |m| self.check_matrix(m))
    }

    /// Rejects a user-defined kernel that is not that of its spectral law, and frequencies of a law without a name that is not the
    /// kernel's.
    fn check_own(&self, kernel: &OwnKernel) -> Result<()> {
        let Omega::Frequencies(omega) = &self.omega else { return Ok(()) };
        if !agreement::can_tell(omega) {
            return Ok(());
        }
        let reference = kernel.reference(omega.padded_dim())?;
        let radius = omega.law().radius();
        if radius.is_named() || radius == Radius::Unstated || agreement::agrees(&reference, kernel, omega) {
            return Ok(());
        }
        Err(Error::Kernel {
            map: self.mechanism.name(),
            frequencies: "frequencies of another law than those that the kernel draws".into(),
            kernel: format!("the kernel {}", self.kernel),
        })
    }

    fn check_matrix(&self, m: &Array2<f64>) -> Result<()> {
        if !self.mechanism.takes_matrix() {
            return Err(Error::Unsupported { what: "matrix on points that are not projected themselves" });
        }
        check_size("the number of rows of M", self.omega.dim(), m.nrows())?;
        check_size("the number of columns of M", self.omega.dim(), m.ncols())?;
        match m.indexed_iter().find(|(_, v)| !v.is_finite()) {
            None => Ok(()),
            Some(((row, k), _)) => Err(Error::NotFinite { what: "the matrix M", row, column: Some(k) }),
        }
    }

    /// The plan of the engine, after [`check`](PlainRecipe::check).
    pub(super) fn lower<T: Real>(&self) -> Result<MapPlan<T>> {
        let Some(lift) = self.mechanism.lift() else {
            let map = self.mechanism.features(self.setting())?;
            let facts = map.facts().checked()?;
            return Ok(MapPlan::Foreign(map, facts));
        };
        let form = self.mechanism.form(self.setting())?;
        let form = match &self.matrix {
            None => form,
            Some(m) => form.with_matrix(m),
        };
        form.plan((lift, self.mechanism.width()), &self.omega, self.kernel.lengthscale())
    }

    /// The kernel that is estimated, if it is known.
    pub(super) fn kernel<T: Real>(&self) -> Option<Arc<dyn Kernel<T>>> {
        let kernel = self.mechanism.kernel::<T>(self.setting())?;
        Some(match &self.matrix {
            None => kernel.into(),
            Some(m) => Arc::new(Turned { kernel, matrix: m.clone() }),
        })
    }

    /// ln of the variance of an estimate, where there is a closed form.
    pub(super) fn ln_variance<T: Real>(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Option<f64> {
        let (u, v, pair) = self.divided(x, y);
        self.mechanism.log_variance(self.setting(), &u, &v, &pair)
    }

    /// ln of the largest difference between terms of an estimate, if they are known to be bounded.
    pub(crate) fn ln_range<T: Real>(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Option<f64> {
        self.mechanism.ln_range(self.setting(), &self.divided(x, y).2)
    }

    /// Two points divided by the lengthscale, as the mechanism takes them, and their scalars.
    fn divided<T: Real>(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> (Vec<f64>, Vec<f64>, Pair) {
        let lengthscale = self.kernel.lengthscale();
        let wide = |x: &ArrayRef1<T>| x.iter().map(|v| v.widen()).collect::<Vec<f64>>();
        let turned = |y: Vec<f64>| match &self.matrix {
            None => y,
            Some(m) => matrix_times(m, &y),
        };
        let u: Vec<f64> = lengthscale.divide(x).collect();
        let v: Vec<f64> = lengthscale.divide(&turned(wide(y))).collect();
        let pair = Pair::new(u.iter().copied().zip(v.iter().copied()));
        (u, v, pair)
    }

    /// D, the number of features of a point.
    pub(super) fn feature_dim(&self) -> usize {
        self.mechanism.feature_dim(self.setting())
    }

    /// The relative covariance of two estimates that share a point, for one frequency, with the dependence of antithetic pairs;
    /// `None` if no closed form is known.
    pub(crate) fn covariance(&self) -> Option<Covariance> {
        let paired = self.omega.law()?.paired_share()?;
        if self.matrix.is_some() {
            return None;
        }
        Some(self.mechanism.covariance(self.setting())?.paired(paired))
    }

    fn setting(&self) -> Setting<'_> {
        Setting { omega: &self.omega, kernel: &self.kernel }
    }
}

impl std::fmt::Display for PlainRecipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Omega::Sketch(draw) = &self.omega {
            let (d, features, name) = (draw.dim(), draw.feature_dim(), draw.name());
            write!(f, "{name}, {features} features in dimension {d}, {}", self.kernel)?;
            return f.write_str(if self.omega.is_drawn() { "" } else { ", to be drawn" });
        }
        let (d, m, name) = (self.omega.dim(), self.omega.m(), self.mechanism.name());
        match (&self.kernel, m) {
            (AnyKernel::Implied(_), 0) => write!(f, "{name} in dimension {d}"),
            (kernel, _) => {
                write!(f, "{name}, {m} frequencies in dimension {d}, {kernel}")?;
                match &self.omega {
                    Omega::Draw(draw) => write!(f, ", to be drawn: {}", draw.coupling),
                    Omega::DrawCounts(draw) => write!(f, ", to be drawn: {}", draw.law.name()),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// The kernel K(x, My).
#[derive(Debug)]
struct Turned<T> {
    kernel: Box<dyn Kernel<T>>,
    matrix: Array2<f64>,
}

impl<T: Real> Turned<T> {
    /// The point M y.
    fn turned(&self, y: &[T]) -> Vec<T> {
        let wide: Vec<f64> = y.iter().map(|v| v.widen()).collect();
        matrix_times(&self.matrix, &wide).into_iter().map(T::narrow).collect()
    }
}

impl<T: Real> Kernel<T> for Turned<T> {
    fn check_dim(&self, d: usize) -> Result<()> {
        check_size("the dimension of the points", self.matrix.ncols(), d)
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        self.kernel.log_of_slices(x, &self.turned(y))
    }

    fn gradient_of_slices(&self, x: &[T], y: &[T], out: &mut [f64]) -> Option<f64> {
        self.kernel.gradient_of_slices(x, &self.turned(y), out)
    }

    fn identity(&self) -> Option<Identity> {
        let mut digest = Digest::new();
        digest.text("turned");
        (self.kernel.identity()?, &self.matrix).identify(&mut digest);
        Some(digest.into())
    }
}

once!(PlainRecipe::build::<T>);
