//! [`Proposal`]: what a page of a map proposes for data, with parameters fitted to them.

use ndarray::Array2;

use super::{Mechanism, Omega, PlainRecipe, Recipe, Target};
use crate::data::{PairStatistics, Statistics};
use crate::error::Result;
use crate::frequency::{AnyCoupling, CountLaw, Draw, DrawCounts};
use crate::kernel::RegularisedSoftmax;
use crate::theory::Radius;

/// What a page may know of the data.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(any(feature = "faer", feature = "ndarray-linalg")),
    allow(dead_code, reason = "some of it is for shapes, which need eigendecompositions")
)]
pub(crate) struct Prospect<'a> {
    /// The kernel.
    pub target: &'a Target,
    /// Statistics of the points of each side, divided by the lengthscale.
    pub statistics: [&'a Statistics; 2],
    /// Some points of each side, divided by the lengthscale.
    pub points: [&'a Array2<f64>; 2],
    /// Whether both sides are the same points.
    pub one_set: bool,
    /// Whether pairs matter by their attention weights.
    pub attention: bool,
    /// About how many features there will be.
    pub features: usize,
    /// For choices that are random, as first centres of clusters are.
    pub seed: u64,
}

impl<'a> Prospect<'a> {
    pub fn dim(&self) -> usize {
        self.statistics[0].dim()
    }

    pub fn pairs(&self) -> Result<PairStatistics<'a>> {
        PairStatistics::new(self.statistics[0], self.statistics[1])
    }

    /// Whether the kernel is the softmax or the Gaussian kernel.
    pub fn is_exponential(&self) -> bool {
        matches!(self.target, Target::Softmax(_) | Target::Gaussian(_))
    }

    /// A map for the softmax and the Gaussian kernel, and for the softmax kernel the same on frequencies of norm √d, biased.
    pub fn exact_and_regularised(&self, mechanism: impl Into<Mechanism>) -> Vec<Proposal> {
        let (mechanism, d) = (mechanism.into(), self.dim());
        let mut all = Vec::new();
        if self.is_exponential() || matches!(self.target, Target::RegularisedSoftmax(_)) {
            all.push(self.plain(mechanism.name(), mechanism.clone()));
        }
        if let Target::Softmax(softmax) = self.target {
            let lengthscale = softmax.lengthscale().clone();
            all.push(Proposal::coupled(format!("{}, regularised", mechanism.name()), move |m, coupling| {
                let draw = Draw { radii: Radius::RootDim, ..Draw::new(d, m, coupling) };
                let kernel = RegularisedSoftmax::in_dimension(draw.padded_dim());
                Ok(mechanism.clone().recipe(draw, kernel.with_lengthscale(lengthscale.clone())?.into()))
            }));
        }
        all
    }

    /// A plain map for the kernel, with frequencies of its law.
    pub fn plain(&self, name: impl Into<String>, mechanism: impl Into<Mechanism>) -> Proposal {
        let (mechanism, target, d) = (mechanism.into(), self.target.clone(), self.dim());
        // Couplings of a product law hold it themselves.
        let radii = target.radius().filter(|radii| radii.is_polar()).unwrap_or(Radius::Chi);
        Proposal::coupled(name, move |m, coupling| {
            let draw = Draw { radii, ..Draw::new(d, m, coupling) };
            Ok(mechanism.clone().recipe(draw, target.clone()))
        })
    }

    /// A map for the kernel on counts of a law.
    pub fn counts(&self, name: &str, law: CountLaw, mechanism: impl Into<Mechanism>) -> Proposal {
        let (mechanism, target, d) = (mechanism.into(), self.target.clone(), self.dim());
        Proposal::counts(name, move |m| {
            Ok(mechanism.clone().recipe(DrawCounts::new(d, m, law.clone())?, target.clone()))
        })
    }
}

impl Mechanism {
    fn recipe(self, draw: impl Into<Omega>, target: Target) -> Recipe {
        Recipe::Plain(PlainRecipe::new(self, draw, target))
    }
}

/// A way to make recipes of any size.
pub(crate) struct Proposal {
    /// The name of the map and its parameters in words.
    pub name: String,
    /// Whether frequencies can be coupled; else they are counts.
    pub coupled: bool,
    make: Box<Make>,
}

type Make = dyn Fn(usize, AnyCoupling) -> Result<Recipe> + Send + Sync;

impl Proposal {
    /// Recipes from a number of frequencies and their coupling.
    pub fn coupled(
        name: impl Into<String>,
        make: impl Fn(usize, AnyCoupling) -> Result<Recipe> + Send + Sync + 'static,
    ) -> Self {
        Proposal { name: name.into(), coupled: true, make: Box::new(make) }
    }

    /// Recipes from a number of counts.
    pub fn counts(
        name: impl Into<String>,
        make: impl Fn(usize) -> Result<Recipe> + Send + Sync + 'static,
    ) -> Self {
        Proposal { coupled: false, ..Proposal::coupled(name, move |m, _| make(m)) }
    }

    /// The recipe with m frequencies, in each of its bases if it has several.
    ///
    /// # Errors
    /// Those of the recipe, before anything is drawn.
    pub fn recipe(&self, m: usize, coupling: AnyCoupling) -> Result<Recipe> {
        let recipe = (self.make)(m, coupling)?;
        recipe.check()?;
        Ok(recipe)
    }
}

/// All that the pages of this crate propose; what cannot be fitted to these data is left out, with the reason.
pub(crate) fn proposals(prospect: Prospect<'_>) -> Proposals {
    let mut all = Proposals::default();
    super::propose_plain(prospect, &mut all);
    super::compose::propose(prospect, &mut all);
    all
}

/// Proposals, and what could not be proposed.
#[derive(Default)]
pub(crate) struct Proposals {
    pub usable: Vec<Proposal>,
    /// The name of a map, and why there is no proposal.
    pub refused: Vec<(&'static str, crate::Error)>,
}

impl Proposals {
    /// Adds what a page proposes.
    pub fn add(&mut self, map: &'static str, proposed: Result<Vec<Proposal>>) {
        match proposed {
            Ok(proposed) => self.usable.extend(proposed),
            Err(error) => self.refused.push((map, error)),
        }
    }
}
