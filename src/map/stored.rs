//! The stored form of a [`Recipe`] and of a [`Map`].
//!
//! A map is stored as a flat list, each part before the map that contains it, so readers need no recursion. Equal
//! frequencies are written once and referred to by index, since maps for many clusters share theirs. The format version
//! and the identity of the map are stored as well and checked on reading.

use std::borrow::Cow;
use std::sync::Arc;

use ndarray::Array2;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    ClusteredRecipe, CoefficientRecipe, ConditionedRecipe, Conditioning, HybridRecipe, Identity, Map,
    Mechanism, Omega, PlainRecipe, Recipe, Target,
};
use crate::Real;
use crate::data::Clustering;
use crate::frequency::{Counts, Draw, DrawCounts, Frequencies};

/// The version of the format. Readers reject other versions.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename = "Recipe")]
struct Stored<'a> {
    version: u32,
    identity: Identity,
    frequencies: Vec<Source<'a>>,
    /// Each part before the map that contains it; the map itself is last.
    maps: Vec<Node<'a>>,
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

/// A map that refers to its frequencies and parts by index. Each map is part of at most one other map.
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
        terms: Vec<Term>,
        rest: usize,
    },
    Clustered {
        queries: Cow<'a, Clustering>,
        keys: Cow<'a, Clustering>,
        bases: Vec<usize>,
    },
    Conditioned {
        conditioning: Cow<'a, Conditioning>,
        base: usize,
    },
}

#[derive(Serialize, Deserialize)]
struct Term {
    #[serde(with = "crate::exact")]
    constant: f64,
    #[serde(with = "crate::exact")]
    factor: f64,
    coefficient: Option<usize>,
    base: usize,
}

/// The lists collected for writing.
#[derive(Default)]
struct Writer<'a> {
    omegas: Vec<&'a Omega>,
    maps: Vec<Node<'a>>,
}

impl<'a> Writer<'a> {
    /// Appends the parts of a map, then the map, and returns its index.
    fn push(&mut self, recipe: &'a Recipe) -> usize {
        let node = match recipe {
            Recipe::Plain(plain) => {
                let (mechanism, target) = (Cow::Borrowed(&plain.mechanism), Cow::Borrowed(&plain.target));
                let frequencies = self.number(&plain.omega);
                Node::Plain { mechanism, frequencies, target, matrix: plain.matrix.clone() }
            }
            Recipe::Hybrid(hybrid) => {
                let term = |(coefficient, base): &'a (CoefficientRecipe, Recipe)| Term {
                    constant: coefficient.constant,
                    factor: coefficient.factor,
                    coefficient: coefficient.map.as_ref().map(|map| self.push(map)),
                    base: self.push(base),
                };
                let terms = hybrid.terms.iter().map(term).collect();
                Node::Hybrid { terms, rest: self.push(&hybrid.rest) }
            }
            Recipe::Clustered(clustered) => Node::Clustered {
                queries: Cow::Borrowed(&clustered.queries),
                keys: Cow::Borrowed(&clustered.keys),
                bases: clustered.bases.iter().map(|base| self.push(base)).collect(),
            },
            Recipe::Conditioned(conditioned) => {
                let base = self.push(&conditioned.base);
                Node::Conditioned { conditioning: Cow::Borrowed(&conditioned.conditioning), base }
            }
        };
        self.maps.push(node);
        self.maps.len() - 1
    }

    /// The index of the frequencies; appends them if they are new.
    fn number(&mut self, omega: &'a Omega) -> usize {
        self.omegas.iter().position(|known| known.same(omega)).unwrap_or_else(|| {
            self.omegas.push(omega);
            self.omegas.len() - 1
        })
    }
}

/// Maps that have been read and are not yet part of another one, with their depths.
struct Reader {
    omegas: Vec<Omega>,
    maps: Vec<Option<(Recipe, usize)>>,
}

impl Reader {
    /// Builds a map from earlier ones.
    fn push<E: Error>(&mut self, node: Node<'_>) -> Result<(), E> {
        let mut depth = 0;
        let recipe = match node {
            Node::Plain { mechanism, frequencies, target, matrix } => {
                let missing = || E::custom(format!("there are no frequencies number {frequencies}"));
                let omega = self.omegas.get(frequencies).cloned().ok_or_else(missing)?;
                let (mechanism, target) = (mechanism.into_owned(), target.into_owned());
                Recipe::Plain(PlainRecipe { mechanism, omega, target, matrix })
            }
            Node::Hybrid { terms, rest } => {
                let mut term = |term: Term| {
                    let map = term.coefficient.map(|number| self.take(number, &mut depth)).transpose()?;
                    let (constant, factor) = (term.constant, term.factor);
                    let coefficient = CoefficientRecipe { constant, factor, map: map.map(Box::new) };
                    Ok((coefficient, self.take(term.base, &mut depth)?))
                };
                let terms = terms.into_iter().map(&mut term).collect::<Result<_, E>>()?;
                Recipe::Hybrid(HybridRecipe { terms, rest: Box::new(self.take(rest, &mut depth)?) })
            }
            Node::Clustered { queries, keys, bases } => {
                let mut base = |number| self.take(number, &mut depth);
                let bases = bases.into_iter().map(&mut base).collect::<Result<_, E>>()?;
                let (queries, keys) = (queries.into_owned(), keys.into_owned());
                Recipe::Clustered(ClusteredRecipe { queries, keys, bases })
            }
            Node::Conditioned { conditioning, base } => {
                let base = Box::new(self.take(base, &mut depth)?);
                Recipe::Conditioned(ConditionedRecipe { conditioning: conditioning.into_owned(), base })
            }
        };
        if depth > DEPTH {
            return Err(E::custom(too_deep()));
        }
        self.maps.push(Some((recipe, depth)));
        Ok(())
    }

    /// Takes a map as a part of another one, whose `depth` it updates.
    fn take<E: Error>(&mut self, number: usize, depth: &mut usize) -> Result<Recipe, E> {
        let missing =
            || E::custom(format!("there is no map number {number} that is not part of another map yet"));
        let (recipe, own) = self.maps.get_mut(number).and_then(Option::take).ok_or_else(missing)?;
        *depth = (*depth).max(own + 1);
        Ok(recipe)
    }
}

/// The maximum depth of nested maps that can be stored.
const DEPTH: usize = 64;

fn too_deep() -> String {
    format!("maps nested more than {DEPTH} deep cannot be stored")
}

/// The depth of nested maps.
fn depth(recipe: &Recipe) -> usize {
    let deeper = |recipe: &Recipe| depth(recipe) + 1;
    match recipe {
        Recipe::Plain(_) => 0,
        Recipe::Hybrid(hybrid) => {
            let parts = hybrid.terms.iter().flat_map(|(c, base)| c.map.as_deref().into_iter().chain([base]));
            parts.chain([&*hybrid.rest]).map(deeper).max().unwrap_or(0)
        }
        Recipe::Clustered(clustered) => clustered.bases.iter().map(deeper).max().unwrap_or(0),
        Recipe::Conditioned(conditioned) => deeper(&conditioned.base),
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

impl Serialize for Recipe {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if depth(self) > DEPTH {
            return Err(serde::ser::Error::custom(too_deep()));
        }
        let mut writer = Writer::default();
        writer.push(self);
        let frequencies = writer.omegas.into_iter().map(Source::of).collect();
        Stored { version: VERSION, identity: self.identity(), frequencies, maps: writer.maps }
            .serialize(serializer)
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
        let omegas = stored.frequencies.into_iter().map(Source::omega).collect();
        let mut reader = Reader { omegas, maps: Vec::with_capacity(stored.maps.len()) };
        stored.maps.into_iter().try_for_each(|node| reader.push(node))?;
        let last = reader.maps.pop().flatten().filter(|_| reader.maps.iter().all(Option::is_none));
        let (recipe, _) =
            last.ok_or_else(|| D::Error::custom("not one map with all the others as its parts"))?;
        let identity = recipe.identity();
        if identity == stored.identity {
            Ok(recipe)
        } else {
            Err(D::Error::custom(format!(
                "this is map {identity}, but what was stored is {}",
                stored.identity
            )))
        }
    }
}

/// Stored as its [`Recipe`]; an error for a map without one.
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
