//! Building a [`Map`] from the recipe of a plain map.

use ndarray::ArrayRef1;

use super::definition::Setting;
use super::node::Origin;
use super::{Map, Omega, PlainRecipe, Recipe, Target};
use crate::Real;
use crate::digest::{Digest, Identify};
use crate::error::{Error, Result, check_size};
use crate::kernel::Kernel;
use crate::theory::Pair;
use crate::{SignedLog, engine::Plan};

impl PlainRecipe {
    /// The map of this recipe. Cost O(md), to round and pack the frequencies.
    ///
    /// # Errors
    /// [`Frequencies`](Error::Frequencies), [`NoFrequencies`](Error::NoFrequencies), [`NotDrawn`](Error::NotDrawn) or
    /// [`Law`](Error::Law) if the frequencies are of the wrong kind or not drawn yet, [`Target`](Error::Target) if
    /// their stated law is that of another kernel, or the map does not estimate such kernels; [`Shape`](Error::Shape)
    /// if parameters are for another dimension, [`Parameter`](Error::Parameter) if one is outside its domain,
    /// [`NotFinite`](Error::NotFinite) if a frequency divided by the lengthscale overflows `T`.
    pub fn map<T: Real>(&self) -> Result<Map<T>> {
        self.target.check(self.omega.dim())?;
        self.mechanism.check(self.setting())?;
        let mut form = self.mechanism.form(self.setting())?;
        if let Some(m) = &self.matrix {
            self.check_matrix(m)?;
            form = form.with_matrix(m)?;
        }
        let plan: Plan<T> = form.plan(&self.omega, self.target.lengthscale())?;
        let kernel = self.mechanism.kernel::<T>(self.setting());
        let kernel = kernel.map(|kernel| match &self.matrix {
            None => kernel,
            Some(m) => Box::new(Turned { kernel, matrix: m.clone() }) as Box<dyn Kernel<T>>,
        });
        Map::of_plan(plan, Plain { recipe: self.clone(), kernel })
    }

    fn check_matrix(&self, m: &ndarray::Array2<f64>) -> Result<()> {
        check_size("the number of rows of M", self.omega.dim(), m.nrows())?;
        check_size("the number of columns of M", self.omega.dim(), m.ncols())?;
        match m.rows().into_iter().position(|row| row.iter().any(|v| !v.is_finite())) {
            None => Ok(()),
            Some(row) => Err(Error::NotFinite { what: "the matrix M", row }),
        }
    }

    pub(crate) fn setting(&self) -> Setting<'_> {
        Setting { omega: &self.omega, target: &self.target }
    }

    pub(crate) fn identify(&self, digest: &mut Digest) {
        digest.text(self.mechanism.name());
        self.mechanism.identify(digest);
        digest.text(&format!("{:?}", self.target));
        self.omega.identify(digest);
        if let Some(m) = &self.matrix {
            crate::digest::Identify::identify(&(m.nrows()), digest);
            m.iter().for_each(|v| crate::digest::Identify::identify(&(*v), digest));
        }
    }
}

impl std::fmt::Display for PlainRecipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (d, m, name) = (self.omega.dim(), self.omega.count(), self.mechanism.name());
        match (&self.target, m) {
            (Target::Implied(_), 0) => write!(f, "{name} in dimension {d}"),
            (target, _) => {
                write!(f, "{name}, {m} frequencies in dimension {d}, {target}")?;
                match &self.omega {
                    Omega::Draw(draw) => write!(f, ", to be drawn: {}", draw.coupling),
                    Omega::DrawCounts(draw) => write!(f, ", to be drawn: {}", draw.law.name()),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// The origin of a plain map.
#[derive(Debug)]
struct Plain<T> {
    recipe: PlainRecipe,
    kernel: Option<Box<dyn Kernel<T>>>,
}

impl<T: Real> Origin<T> for Plain<T> {
    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        self.kernel.as_deref()
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Option<f64> {
        let lengthscale = self.recipe.target.lengthscale();
        let wide = |x: &ArrayRef1<T>| x.iter().map(|v| v.widen()).collect::<Vec<f64>>();
        let turned = |y: Vec<f64>| match &self.recipe.matrix {
            None => y,
            Some(m) => m.rows().into_iter().map(|row| row.iter().zip(&y).map(|(m, y)| m * y).sum()).collect(),
        };
        let u: Vec<f64> = lengthscale.divide(x).collect();
        let v: Vec<f64> = lengthscale.divide(&turned(wide(y))).collect();
        let pair = Pair::new(u.iter().copied().zip(v.iter().copied()));
        self.recipe.mechanism.log_variance(self.recipe.setting(), &u, &v, &pair)
    }

    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::Plain(self.recipe.clone()))
    }
}

/// The kernel K(x, My).
#[derive(Debug)]
struct Turned<T> {
    kernel: Box<dyn Kernel<T>>,
    matrix: ndarray::Array2<f64>,
}

impl<T: Real> Kernel<T> for Turned<T> {
    fn check_dim(&self, d: usize) -> Result<()> {
        check_size("the dimension of the points", self.matrix.ncols(), d)
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        let product = |row: ndarray::ArrayView1<'_, f64>| {
            T::narrow(row.iter().zip(y).map(|(m, y)| m * y.widen()).sum())
        };
        let turned: Vec<T> = self.matrix.rows().into_iter().map(product).collect();
        self.kernel.log_of_slices(x, &turned)
    }
}
