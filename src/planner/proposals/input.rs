//! [`FitInput`]: the kernel and the points that parameters of maps are fitted to.

use ndarray::Array2;

use super::family::MapFamily;
use crate::data::{PairStatistics, Statistics};
use crate::error::Result;
use crate::frequency::{CountLaw, Draw, DrawCounts};
use crate::kernel::RegularisedSoftmax;
use crate::map::{AnyKernel, Mechanism, Omega, PlainRecipe, Recipe};
use crate::theory::Radius;

/// What parameters of maps are fitted to: the kernel, and points of both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FitInput<'a> {
    /// The kernel.
    pub kernel: &'a AnyKernel,
    /// Statistics of the points of each side, divided by the lengthscale.
    pub statistics: [&'a Statistics; 2],
    /// Some points of each side, divided by the lengthscale.
    pub points: [&'a Array2<f64>; 2],
    /// Whether both sides are the same points.
    pub one_set: bool,
    /// Whether pairs matter by their attention weights.
    pub attention: bool,
    /// An estimate of the number of features.
    pub features: usize,
    /// The seed of random choices, such as the first centres of clusters.
    pub seed: u64,
}

impl<'a> FitInput<'a> {
    /// d, the dimension of the points.
    pub fn dim(&self) -> usize {
        self.statistics[0].dim()
    }

    /// Statistics of pairs of the points of both sides.
    pub fn pairs(&self) -> Result<PairStatistics<'a>> {
        PairStatistics::new(self.statistics[0], self.statistics[1])
    }

    /// Whether the kernel is the softmax or the Gaussian kernel.
    pub fn is_exponential(&self) -> bool {
        matches!(self.kernel, AnyKernel::Softmax(_) | AnyKernel::Gaussian(_))
    }

    /// A map for the softmax and the Gaussian kernel, and for the softmax kernel also its biased form on frequencies of norm √d.
    pub fn exact_and_regularised(&self, mechanism: impl Into<Mechanism>) -> Vec<MapFamily> {
        let (mechanism, d) = (mechanism.into(), self.dim());
        let mut all = Vec::new();
        if self.is_exponential() || matches!(self.kernel, AnyKernel::RegularisedSoftmax(_)) {
            all.push(self.plain(mechanism.name(), mechanism.clone()));
        }
        if let AnyKernel::Softmax(softmax) = self.kernel {
            let lengthscale = softmax.lengthscale().clone();
            all.push(MapFamily::coupled(format!("{}, regularised", mechanism.name()), move |m, coupling| {
                let draw = Draw { radii: Radius::RootDim, ..Draw::new(d, m, coupling) };
                let kernel = RegularisedSoftmax::in_dimension(draw.padded_dim());
                Ok(recipe(mechanism.clone(), draw, kernel.with_lengthscale(lengthscale.clone())?.into()))
            }));
        }
        all
    }

    /// A plain map for the kernel, with frequencies of its law.
    pub fn plain(&self, name: impl Into<String>, mechanism: impl Into<Mechanism>) -> MapFamily {
        let (mechanism, kernel, d) = (mechanism.into(), self.kernel.clone(), self.dim());
        // Couplings of a product law hold it themselves.
        let radii = kernel.radius().filter(|radii| radii.is_polar()).unwrap_or(Radius::Chi);
        MapFamily::coupled(name, move |m, coupling| {
            let draw = Draw { radii, ..Draw::new(d, m, coupling) };
            Ok(recipe(mechanism.clone(), draw, kernel.clone()))
        })
    }

    /// A map for the kernel on counts of a law.
    pub fn counts(&self, name: &str, law: CountLaw, mechanism: impl Into<Mechanism>) -> MapFamily {
        let (mechanism, kernel, d) = (mechanism.into(), self.kernel.clone(), self.dim());
        MapFamily::counts(name, move |m| {
            Ok(recipe(mechanism.clone(), DrawCounts::new(d, m, law.clone())?, kernel.clone()))
        })
    }
}

fn recipe(mechanism: Mechanism, draw: impl Into<Omega>, kernel: AnyKernel) -> Recipe {
    Recipe::Plain(PlainRecipe::new(mechanism, draw, kernel))
}
