//! The stored form of a [`Recipe`] and of a [`Map`].
//!
//! Equal frequencies are written once, and maps name them by number: the maps of many clusters share theirs. With them go
//! a format version and the identity of what was stored, which must be that of what is read.

use std::borrow::Cow;
use std::sync::Arc;

use ndarray::Array2;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    ClusteredRecipe, CoefficientRecipe, HybridRecipe, Identity, Map, Mechanism, Omega, PlainRecipe, Recipe,
    Target,
};
use crate::Real;
use crate::frequency::{Counts, Draw, DrawCounts, Frequencies};
use crate::plan::Clustering;

/// The version of the format. Readers refuse others.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename = "Recipe")]
struct Stored<'a> {
    version: u32,
    identity: Identity,
    frequencies: Vec<Source<'a>>,
    map: Node<'a>,
}

/// Frequencies, drawn or to be drawn.
#[derive(Serialize, Deserialize)]
enum Source<'a> {
    Frequencies(Cow<'a, Frequencies>),
    Counts(Cow<'a, Counts>),
    Draw(Cow<'a, Draw>),
    DrawCounts(Cow<'a, DrawCounts>),
    None(usize),
}

/// A map that names its frequencies by their number.
#[derive(Serialize, Deserialize)]
enum Node<'a> {
    Plain {
        mechanism: Cow<'a, Mechanism>,
        frequencies: usize,
        target: Cow<'a, Target>,
        #[serde(with = "crate::exact")]
        matrix: Option<Array2<f64>>,
    },
    Hybrid {
        terms: Vec<Term<'a>>,
        rest: Box<Node<'a>>,
    },
    Clustered {
        queries: Cow<'a, Clustering>,
        keys: Cow<'a, Clustering>,
        bases: Vec<Node<'a>>,
    },
}

#[derive(Serialize, Deserialize)]
struct Term<'a> {
    #[serde(with = "crate::exact")]
    constant: f64,
    #[serde(with = "crate::exact")]
    factor: f64,
    coefficient: Option<Node<'a>>,
    base: Node<'a>,
}

impl<'a> Stored<'a> {
    fn of(recipe: &'a Recipe) -> Self {
        let mut known: Vec<&Omega> = Vec::new();
        let map = Node::of(recipe, &mut known);
        let frequencies = known.into_iter().map(Source::of).collect();
        Stored { version: VERSION, identity: recipe.identity(), frequencies, map }
    }

    fn recipe<E: Error>(self) -> Result<Recipe, E> {
        let sources: Vec<Omega> = self.frequencies.into_iter().map(Source::omega).collect();
        let recipe = self.map.recipe(&sources)?;
        let identity = recipe.identity();
        if identity == self.identity {
            Ok(recipe)
        } else {
            Err(E::custom(format!("this is map {identity}, but what was stored is {}", self.identity)))
        }
    }
}

impl<'a> Source<'a> {
    fn of(omega: &'a Omega) -> Self {
        match omega {
            Omega::Frequencies(omega) => Source::Frequencies(Cow::Borrowed(omega)),
            Omega::Counts(omega) => Source::Counts(Cow::Borrowed(omega)),
            Omega::Draw(draw) => Source::Draw(Cow::Borrowed(draw)),
            Omega::DrawCounts(draw) => Source::DrawCounts(Cow::Borrowed(draw)),
            Omega::None(d) => Source::None(*d),
        }
    }

    fn omega(self) -> Omega {
        match self {
            Source::Frequencies(omega) => Omega::Frequencies(Arc::new(omega.into_owned())),
            Source::Counts(omega) => Omega::Counts(Arc::new(omega.into_owned())),
            Source::Draw(draw) => Omega::Draw(draw.into_owned()),
            Source::DrawCounts(draw) => Omega::DrawCounts(draw.into_owned()),
            Source::None(d) => Omega::None(d),
        }
    }
}

impl<'a> Node<'a> {
    fn of(recipe: &'a Recipe, known: &mut Vec<&'a Omega>) -> Self {
        match recipe {
            Recipe::Plain(plain) => {
                let same = |omega: &&Omega| omega.same(&plain.omega);
                let frequencies = known.iter().position(same).unwrap_or(known.len());
                if frequencies == known.len() {
                    known.push(&plain.omega);
                }
                let (mechanism, target) = (Cow::Borrowed(&plain.mechanism), Cow::Borrowed(&plain.target));
                Node::Plain { mechanism, frequencies, target, matrix: plain.matrix.clone() }
            }
            Recipe::Hybrid(hybrid) => {
                let mut term = |(coefficient, base): &'a (CoefficientRecipe, Recipe)| Term {
                    constant: coefficient.constant,
                    factor: coefficient.factor,
                    coefficient: coefficient.map.as_ref().map(|map| Node::of(map, known)),
                    base: Node::of(base, known),
                };
                let terms = hybrid.terms.iter().map(&mut term).collect();
                Node::Hybrid { terms, rest: Box::new(Node::of(&hybrid.rest, known)) }
            }
            Recipe::Clustered(clustered) => Node::Clustered {
                queries: Cow::Borrowed(&clustered.queries),
                keys: Cow::Borrowed(&clustered.keys),
                bases: clustered.bases.iter().map(|base| Node::of(base, known)).collect(),
            },
        }
    }

    fn recipe<E: Error>(self, sources: &[Omega]) -> Result<Recipe, E> {
        Ok(match self {
            Node::Plain { mechanism, frequencies, target, matrix } => {
                let missing = || E::custom(format!("there are no frequencies number {frequencies}"));
                let omega = sources.get(frequencies).cloned().ok_or_else(missing)?;
                let (mechanism, target) = (mechanism.into_owned(), target.into_owned());
                Recipe::Plain(PlainRecipe { mechanism, omega, target, matrix })
            }
            Node::Hybrid { terms, rest } => {
                let term = |term: Term<'a>| {
                    let map = term.coefficient.map(|node| node.recipe(sources)).transpose()?.map(Box::new);
                    let coefficient = CoefficientRecipe { constant: term.constant, factor: term.factor, map };
                    Ok((coefficient, term.base.recipe(sources)?))
                };
                let terms = terms.into_iter().map(term).collect::<Result<_, E>>()?;
                Recipe::Hybrid(HybridRecipe { terms, rest: Box::new(rest.recipe(sources)?) })
            }
            Node::Clustered { queries, keys, bases } => {
                let bases = bases.into_iter().map(|base| base.recipe(sources)).collect::<Result<_, E>>()?;
                let (queries, keys) = (queries.into_owned(), keys.into_owned());
                Recipe::Clustered(ClusteredRecipe { queries, keys, bases })
            }
        })
    }
}

impl Serialize for Recipe {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Stored::of(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Recipe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        if stored.version != VERSION {
            return Err(D::Error::custom(format!(
                "format version {}, but must be {VERSION}",
                stored.version
            )));
        }
        stored.recipe()
    }
}

/// As its [`Recipe`]; an error for a map that has none.
impl<T: Real> Serialize for Map<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let foreign =
            || serde::ser::Error::custom("a FeatureMap of your own has no recipe and cannot be stored");
        self.recipe().ok_or_else(foreign)?.serialize(serializer)
    }
}

impl<'de, T: Real> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Recipe::deserialize(deserializer)?.map().map_err(D::Error::custom)
    }
}
