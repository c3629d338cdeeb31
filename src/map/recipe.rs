//! [`Recipe`]: a map as plain data.

use ndarray::Array2;

use super::{Conditioning, Identity, Mechanism, Omega, Target};
use crate::data::Clustering;
use crate::error::Result;

/// A map as plain data: the form in which maps are stored, compared and printed.
///
/// A recipe whose frequencies are drawn gives a bit-identical map wherever it is read; one whose frequencies are still
/// to be drawn gives a map for each seed. With the feature `serde` it is stored together with a format version and its
/// [identity](Recipe::identity), which reveals damage on reading. Equal frequencies are stored once.
///
/// ```
/// use random_features::frequency::{Draw, Simplex};
/// use random_features::kernel::Softmax;
/// use random_features::{Map, Positive};
/// let recipe = Positive.recipe(Draw::new(16, 64, Simplex::default()), Softmax::default());
/// let map: Map<f32> = recipe.draw(7)?;
/// assert_eq!(map.recipe(), Some(recipe.drawn(7)?));
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Recipe {
    /// A map in the normal form.
    Plain(PlainRecipe),
    /// A sum of products of maps.
    Hybrid(HybridRecipe),
    /// A map for each pair of clusters.
    Clustered(ClusteredRecipe),
    /// A map at affinely transformed points.
    Conditioned(ConditionedRecipe),
}

/// A map in the normal form.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainRecipe {
    /// The definition with its parameters.
    pub mechanism: Mechanism,
    /// The frequencies.
    pub omega: Omega,
    /// The kernel and its lengthscale.
    pub target: Target,
    /// M, d × d, if the map is for K(x, My).
    pub matrix: Option<Array2<f64>>,
}

/// A hybrid Σ λ̂ₖ Pₖ + (1 − Σ λ̂ₖ) Q.
#[derive(Clone, Debug, PartialEq)]
pub struct HybridRecipe {
    /// λ̂ₖ and Pₖ.
    pub terms: Vec<(CoefficientRecipe, Recipe)>,
    /// Q.
    pub rest: Box<Recipe>,
}

/// A coefficient λ̂ = a + c·Ĉ.
#[derive(Clone, Debug, PartialEq)]
pub struct CoefficientRecipe {
    /// a.
    pub constant: f64,
    /// c.
    pub factor: f64,
    /// The map that estimates C; `None` for a constant.
    pub map: Option<Box<Recipe>>,
}

/// A map for each pair of clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusteredRecipe {
    /// C_q clusters of the points on side X.
    pub queries: Clustering,
    /// C_k clusters of the points on side Y.
    pub keys: Clustering,
    /// C_q · C_k maps, those of the first cluster of queries first.
    pub bases: Vec<Recipe>,
}

/// A map at affinely transformed points, times a factor for each point.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionedRecipe {
    /// The transformation of the points.
    pub conditioning: Conditioning,
    /// The map.
    pub base: Box<Recipe>,
}

impl Recipe {
    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        match self {
            Recipe::Plain(plain) => plain.omega.dim(),
            Recipe::Hybrid(hybrid) => hybrid.rest.dim(),
            Recipe::Clustered(clustered) => clustered.queries.dim(),
            Recipe::Conditioned(conditioned) => conditioned.conditioning.dim(),
        }
    }

    /// Whether all frequencies are drawn.
    pub fn is_drawn(&self) -> bool {
        let mut drawn = true;
        self.each_plain(&mut |plain| drawn &= plain.omega.is_drawn());
        drawn
    }

    /// This recipe with all missing frequencies drawn from one seed. Equal draws give the same frequencies; draws with
    /// different streams are independent.
    ///
    /// # Errors
    /// Those of the draws.
    pub fn drawn(&self, seed: u64) -> Result<Recipe> {
        let mut recipe = self.clone();
        let mut known: Vec<(Omega, Omega)> = Vec::new();
        recipe.try_each_plain_mut(&mut |plain| {
            let found =
                known.iter().find(|(draw, _)| draw.same(&plain.omega)).map(|(_, drawn)| drawn.clone());
            let drawn = match found {
                Some(drawn) => drawn,
                None => plain.omega.drawn(seed)?,
            };
            known.push((std::mem::replace(&mut plain.omega, drawn.clone()), drawn));
            Ok(())
        })?;
        Ok(recipe)
    }

    /// The identity of the map that this recipe makes.
    pub fn identity(&self) -> Identity {
        let mut digest = crate::digest::Digest::new();
        self.identify(&mut digest);
        digest.into()
    }

    pub(crate) fn identify(&self, digest: &mut crate::digest::Digest) {
        match self {
            Recipe::Plain(plain) => plain.identify(digest),
            Recipe::Hybrid(hybrid) => {
                digest.text("hybrid");
                crate::digest::Identify::identify(&(hybrid.terms.len()), digest);
                for (coefficient, base) in &hybrid.terms {
                    crate::digest::Identify::identify(&(coefficient.constant), digest);
                    crate::digest::Identify::identify(&(coefficient.factor), digest);
                    crate::digest::Identify::identify(&(usize::from(coefficient.map.is_some())), digest);
                    coefficient.map.iter().for_each(|map| digest.text(&map.identity().to_string()));
                    digest.text(&base.identity().to_string());
                }
                digest.text(&hybrid.rest.identity().to_string());
            }
            Recipe::Clustered(clustered) => {
                digest.text("clustered");
                for clusters in [&clustered.queries, &clustered.keys] {
                    crate::digest::Identify::identify(&(clusters.len()), digest);
                    crate::digest::Identify::identify(&(clusters.dim()), digest);
                    clusters.centres().iter().for_each(|v| crate::digest::Identify::identify(&(*v), digest));
                }
                clustered.bases.iter().for_each(|base| digest.text(&base.identity().to_string()));
            }
            Recipe::Conditioned(conditioned) => {
                digest.text("conditioned");
                conditioned.conditioning.identify(digest);
                digest.text(&conditioned.base.identity().to_string());
            }
        }
    }

    /// Calls `each` for all plain maps, in the order in which they are written.
    pub(crate) fn each_plain<'a>(&'a self, each: &mut dyn FnMut(&'a PlainRecipe)) {
        match self {
            Recipe::Plain(plain) => each(plain),
            Recipe::Hybrid(hybrid) => {
                for (coefficient, base) in &hybrid.terms {
                    coefficient.map.iter().for_each(|map| map.each_plain(each));
                    base.each_plain(each);
                }
                hybrid.rest.each_plain(each);
            }
            Recipe::Clustered(clustered) => clustered.bases.iter().for_each(|base| base.each_plain(each)),
            Recipe::Conditioned(conditioned) => conditioned.base.each_plain(each),
        }
    }

    /// As [`each_plain`](Recipe::each_plain), with mutable access.
    pub(crate) fn try_each_plain_mut(
        &mut self,
        each: &mut dyn FnMut(&mut PlainRecipe) -> Result<()>,
    ) -> Result<()> {
        match self {
            Recipe::Plain(plain) => each(plain),
            Recipe::Hybrid(hybrid) => {
                for (coefficient, base) in &mut hybrid.terms {
                    coefficient.map.iter_mut().try_for_each(|map| map.try_each_plain_mut(each))?;
                    base.try_each_plain_mut(each)?;
                }
                hybrid.rest.try_each_plain_mut(each)
            }
            Recipe::Clustered(clustered) => {
                clustered.bases.iter_mut().try_for_each(|base| base.try_each_plain_mut(each))
            }
            Recipe::Conditioned(conditioned) => conditioned.base.try_each_plain_mut(each),
        }
    }
}

impl std::fmt::Display for Recipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Recipe::Plain(plain) => plain.fmt(f),
            Recipe::Hybrid(hybrid) => {
                for (coefficient, base) in &hybrid.terms {
                    write!(f, "({}", coefficient.constant)?;
                    if let Some(map) = &coefficient.map {
                        write!(f, " + {} × [{map}]", coefficient.factor)?;
                    }
                    write!(f, ") × [{base}] + ")?;
                }
                write!(f, "the rest × [{}]", hybrid.rest)
            }
            Recipe::Clustered(clustered) => {
                let (queries, keys) = (clustered.queries.len(), clustered.keys.len());
                write!(f, "a map for each of {queries} × {keys} pairs of clusters")?;
                clustered.bases.first().map_or(Ok(()), |first| write!(f, ", the first one [{first}]"))
            }
            Recipe::Conditioned(ConditionedRecipe { conditioning, base }) => {
                let (r, d) = (conditioning.rank(), conditioning.dim());
                let truncated =
                    if r < d { format!(" truncated to {r} of {d} dimensions") } else { String::new() };
                write!(f, "conditioned{truncated} [{base}]")
            }
        }
    }
}
