//! The stored form of a [`Recipe`] and of a [`Map`]: the tree written flat.
//!
//! A map is stored as a list, each part before the map that contains it, so that readers need no recursion. Equal draws are
//! written once and referred to by index, since maps for many clusters share one. The identity of the map is stored too
//! and checked on reading.

use std::sync::Arc;

use ndarray::Array2;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::compose::Composite;
use super::{AnyKernel, Identity, Map, Mechanism, Omega, PlainRecipe, Recipe, SketchDraw};
use crate::Real;
use crate::frequency::{Counts, Draw, DrawCounts, Frequencies};
use crate::sealed::{AnyScalar, ScalarName, seal, unseal};
use crate::tagged::named;

#[derive(Serialize, Deserialize)]
#[serde(rename = "Recipe")]
struct StoredRecipe {
    identity: Identity,
    draws: Vec<StoredOmega>,
    /// The maps, each part before the map that contains it; the map itself is last.
    maps: Vec<StoredMap>,
}

/// What is random, drawn or to be drawn.
enum StoredOmega {
    Frequencies(Shared<Frequencies>),
    Counts(Shared<Counts>),
    Draw(Draw),
    DrawCounts(DrawCounts),
    Sketch(SketchDraw),
    None(usize),
}

named!(StoredOmega, "frequencies" {
    "frequencies" => Frequencies(omega: Shared<Frequencies>),
    "counts" => Counts(omega: Shared<Counts>),
    "draw" => Draw(draw: Draw),
    "draw of counts" => DrawCounts(draw: DrawCounts),
    "sketch" => Sketch(draw: SketchDraw),
    "none" => None(d: usize),
});

/// Frequencies that maps share, stored once.
struct Shared<D>(Arc<D>);

impl<D: Serialize> Serialize for Shared<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, D: Deserialize<'de>> Deserialize<'de> for Shared<D> {
    fn deserialize<S: Deserializer<'de>>(deserializer: S) -> Result<Self, S::Error> {
        D::deserialize(deserializer).map(|shared| Shared(Arc::new(shared)))
    }
}

/// A map that refers to its draw and its parts by index. Each map is part of at most one other map.
enum StoredMap {
    Plain(StoredPlain),
    Composite(Composite<usize>),
}

named!(StoredMap, "a kind of map" {
    "plain" => Plain(plain: StoredPlain),
    "composite" => Composite(composite: Composite<usize>),
});

#[derive(Serialize, Deserialize)]
#[serde(rename = "Plain")]
struct StoredPlain {
    mechanism: Mechanism,
    draw: usize,
    #[serde(rename = "target")]
    kernel: AnyKernel,
    #[serde(with = "crate::exact")]
    matrix: Option<Array2<f64>>,
}

/// The lists collected for writing.
#[derive(Default)]
struct Writer<'a> {
    draws: Vec<&'a Omega>,
    maps: Vec<StoredMap>,
}

impl Writer<'_> {
    /// Appends the parts of a map, then the map, and returns its index.
    fn push(&mut self, recipe: &Recipe) -> usize {
        let map = match recipe {
            Recipe::Plain(PlainRecipe { mechanism, omega, kernel, matrix }) => {
                let draw = self.draws.iter().position(|known| known.same(omega));
                debug_assert!(draw.is_some(), "the draws of a recipe are those of its leaves");
                StoredMap::Plain(StoredPlain {
                    mechanism: mechanism.clone(),
                    draw: draw.unwrap_or_default(),
                    kernel: kernel.clone(),
                    matrix: matrix.clone(),
                })
            }
            Recipe::Composite(composite) => {
                let Ok(composite) =
                    composite.try_map(|part| Ok::<usize, std::convert::Infallible>(self.push(part)));
                StoredMap::Composite(composite)
            }
        };
        self.maps.push(map);
        self.maps.len() - 1
    }
}

/// Maps that have been read and are not yet part of another one, with their depths.
struct MapReader {
    draws: Vec<Omega>,
    maps: Vec<Option<(Recipe, usize)>>,
}

impl MapReader {
    /// Builds a map from earlier ones.
    fn push<E: Error>(&mut self, map: StoredMap) -> Result<(), E> {
        let mut depth = 0;
        let recipe = match map {
            StoredMap::Plain(StoredPlain { mechanism, draw, kernel, matrix }) => {
                let missing = || E::custom(format!("there are no frequencies number {draw}"));
                let omega = self.draws.get(draw).cloned().ok_or_else(missing)?;
                Recipe::Plain(PlainRecipe { mechanism, omega, kernel, matrix })
            }
            StoredMap::Composite(composite) => {
                let composite = composite.try_map(|part| self.take(*part, &mut depth))?;
                Recipe::Composite(Box::new(composite))
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
    recipe.children().into_iter().map(|child| depth(child) + 1).max().unwrap_or(0)
}

impl StoredOmega {
    fn of(omega: &Omega) -> Self {
        match omega {
            Omega::Frequencies(omega) => StoredOmega::Frequencies(Shared(omega.clone())),
            Omega::Counts(omega) => StoredOmega::Counts(Shared(omega.clone())),
            Omega::Draw(draw) => StoredOmega::Draw(draw.clone()),
            Omega::DrawCounts(draw) => StoredOmega::DrawCounts(draw.clone()),
            Omega::Sketch(draw) => StoredOmega::Sketch(draw.clone()),
            Omega::None(d) => StoredOmega::None(*d),
        }
    }

    fn omega(self) -> Omega {
        match self {
            StoredOmega::Frequencies(Shared(omega)) => Omega::Frequencies(omega),
            StoredOmega::Counts(Shared(omega)) => Omega::Counts(omega),
            StoredOmega::Draw(draw) => Omega::Draw(draw),
            StoredOmega::DrawCounts(draw) => Omega::DrawCounts(draw),
            StoredOmega::Sketch(draw) => Omega::Sketch(draw),
            StoredOmega::None(d) => Omega::None(d),
        }
    }
}

fn write<K: ScalarName, S: Serializer>(recipe: &Recipe, serializer: S) -> Result<S::Ok, S::Error> {
    if depth(recipe) > DEPTH {
        return Err(serde::ser::Error::custom(too_deep()));
    }
    let mut writer = Writer { draws: recipe.draws(), maps: Vec::new() };
    writer.push(recipe);
    let draws = writer.draws.into_iter().map(StoredOmega::of).collect();
    seal::<K, S>(&StoredRecipe { identity: recipe.identity(), draws, maps: writer.maps }, serializer)
}

fn read<'de, K: ScalarName, D: Deserializer<'de>>(what: &str, deserializer: D) -> Result<Recipe, D::Error> {
    let stored: StoredRecipe = unseal::<K, _, _>(what, deserializer)?;
    let draws = stored.draws.into_iter().map(StoredOmega::omega).collect();
    let mut reader = MapReader { draws, maps: Vec::with_capacity(stored.maps.len()) };
    stored.maps.into_iter().try_for_each(|map| reader.push(map))?;
    let last = reader.maps.pop().flatten().filter(|_| reader.maps.iter().all(Option::is_none));
    let (recipe, _) = last.ok_or_else(|| D::Error::custom("not one map with all the others as its parts"))?;
    let (identity, expected) = (recipe.identity(), stored.identity);
    if identity == expected {
        Ok(recipe)
    } else {
        Err(D::Error::custom(format!(
            "this is another map than the one that was stored: its identity is {identity}, and what was stored is {expected}"
        )))
    }
}

impl Serialize for Recipe {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write::<AnyScalar, S>(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Recipe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A recipe in a configuration file is read by another type, which the message names.
        read::<AnyScalar, D>("Recipe (one that is written by hand is a MapConfig)", deserializer)
    }
}

/// A map is stored as its [`Recipe`], for this scalar; an error for a map without one.
impl<T: Real> Serialize for Map<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let own = || serde::ser::Error::custom("a FeatureMap of your own has no recipe and cannot be stored");
        write::<T, S>(&self.recipe().ok_or_else(own)?, serializer)
    }
}

impl<'de, T: Real> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read::<T, D>("Map", deserializer)?.build().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::Clustered;
    use crate::data::Clustering;

    fn read(stored: &StoredRecipe) -> String {
        let sealed = seal::<AnyScalar, _>(stored, serde_json::value::Serializer).unwrap();
        serde_json::from_value::<Recipe>(sealed).unwrap_err().to_string()
    }

    fn elu() -> StoredMap {
        let (mechanism, kernel) = (crate::EluPlusOne.into(), AnyKernel::implied(1.0));
        StoredMap::Plain(StoredPlain { mechanism, draw: 0, kernel, matrix: None })
    }

    fn clustered(part: usize) -> StoredMap {
        let clusters = Clustering::new(ndarray::arr2(&[[0.0]])).unwrap();
        StoredMap::Composite(
            Clustered { queries: clusters.clone(), keys: clusters, bases: vec![part] }.into(),
        )
    }

    fn of(maps: Vec<StoredMap>) -> StoredRecipe {
        StoredRecipe { identity: "00".parse().unwrap(), draws: vec![StoredOmega::None(1)], maps }
    }

    /// Lists that are no tree, and trees that are not what was stored.
    #[test]
    fn lists_that_are_no_tree_are_refused() {
        assert!(read(&of(vec![elu(), elu()])).contains("not one map"));
        assert!(read(&of(vec![clustered(0)])).contains("no map number 0"));
        assert!(read(&of(vec![elu(), clustered(1)])).contains("no map number 1"));
        assert!(
            read(&StoredRecipe { draws: Vec::new(), ..of(vec![elu()]) }).contains("no frequencies number 0")
        );
        assert!(read(&of(vec![elu()])).contains("what was stored is 0000000000000000"));
        assert!(read(&of(Vec::new())).contains("not one map"));
    }

    /// Data that state deeper nesting than may be stored are refused without recursion.
    #[test]
    fn deep_nesting_is_refused_while_reading() {
        let error = read(&of([elu()].into_iter().chain((0..100_000).map(clustered)).collect()));
        assert!(error.contains("more than 64"), "{error}");
    }
}
