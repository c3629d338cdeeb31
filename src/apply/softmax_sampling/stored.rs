//! The stored forms of a [`SoftmaxSampler`] and of a [`SampledSoftmax`], checked when they are read.
//!
//! A tree is stored by its leaves, or by the points from which these are computed, with the references to which numbers are
//! relative. The sums above follow from them to the bit. So does the whole tree of a layer from its class vectors.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::classes::Classes;
use super::exact::ExactClasses;
use super::proposal::LARGEST_LEAF;
use super::sampler::Engine;
use super::tree::{FeatureReference, Nodes, Tree};
use super::{Proposal, SampledSoftmax, SoftmaxSampler};
use crate::Real;
use crate::error::check_size;
use crate::map::Map;
use crate::numeric::special::largest;
use crate::numeric::zeros;
use crate::sealed::sealed;

#[derive(Serialize, Deserialize)]
#[serde(rename = "Proposal", bound = "")]
struct StoredProposal<T: Real> {
    map: Map<T>,
    #[serde(with = "crate::exact")]
    uniform: f64,
    leaf: Option<usize>,
    #[serde(with = "crate::exact")]
    temperature: Option<f64>,
    exact_below: usize,
    diagnosed: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Classes")]
struct StoredClasses {
    count: usize,
    removed: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "SoftmaxSampler", bound = "")]
struct StoredSampler<T: Real> {
    proposal: StoredProposal<T>,
    classes: StoredClasses,
    /// None if draws are exact.
    #[serde(with = "crate::exact")]
    reference: Vec<f64>,
    /// A row for each class: its vector if draws are exact, its point if leaves have several classes, else the values of its leaf.
    #[serde(with = "crate::exact")]
    rows: Array2<f64>,
    /// The scales of each leaf, if a leaf is a class.
    #[serde(with = "crate::exact")]
    log_scales: Array2<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "SampledSoftmax", bound = "")]
struct StoredLayer<T: Real> {
    proposal: StoredProposal<T>,
    removed: Vec<usize>,
    /// None if draws are exact.
    #[serde(with = "crate::exact")]
    reference: Vec<f64>,
    #[serde(with = "crate::exact")]
    vectors: Array2<f64>,
}

sealed!(SoftmaxSampler<T>, StoredSampler<T>, T, [T: Real]);
sealed!(SampledSoftmax<T>, StoredLayer<T>, T, [T: Real]);

impl<T: Real> From<&Proposal<T>> for StoredProposal<T> {
    fn from(proposal: &Proposal<T>) -> Self {
        let Proposal { map, uniform, leaf, temperature, exact_below, diagnosed } = proposal.clone();
        StoredProposal { map, uniform, leaf, temperature, exact_below, diagnosed }
    }
}

impl<T: Real> TryFrom<StoredProposal<T>> for Proposal<T> {
    type Error = String;

    fn try_from(stored: StoredProposal<T>) -> Result<Self, String> {
        let StoredProposal { map, uniform, leaf, temperature, exact_below, diagnosed } = stored;
        let sound = (0.0..=1.0).contains(&uniform)
            && leaf.is_none_or(|leaf| (1..=LARGEST_LEAF).contains(&leaf))
            && temperature.is_none_or(|temperature| temperature > 0.0 && temperature.is_finite());
        let proposal = Proposal { map, uniform, leaf, temperature, exact_below, diagnosed };
        proposal.check().map_err(|error| error.to_string())?;
        if sound { Ok(proposal) } else { Err("an option of the proposal is outside its domain".into()) }
    }
}

impl<T: Real> From<&SoftmaxSampler<T>> for StoredSampler<T> {
    fn from(sampler: &SoftmaxSampler<T>) -> Self {
        let classes = sampler.engine.classes();
        let (rows, log_scales) = match &sampler.engine {
            Engine::Exact(exact) => (exact.vectors().mapv(T::widen), Array2::zeros((0, 0))),
            Engine::Tree(tree) if tree.leaf_size() > 1 => {
                (tree.all_points().mapv(T::widen), Array2::zeros((0, 0)))
            }
            Engine::Tree(tree) => {
                let (values, log_scales) = tree.leaves().parts();
                (values.mapv(T::widen), log_scales.to_owned())
            }
        };
        StoredSampler {
            proposal: (&sampler.proposal).into(),
            classes: StoredClasses { count: classes.count(), removed: classes.removed().to_vec() },
            reference: logarithms(&sampler.engine),
            rows,
            log_scales,
        }
    }
}

impl<T: Real> TryFrom<StoredSampler<T>> for SoftmaxSampler<T> {
    type Error = String;

    fn try_from(stored: StoredSampler<T>) -> Result<Self, String> {
        let StoredSampler { proposal, classes, reference, rows, log_scales } = stored;
        let (proposal, words) = (Proposal::try_from(proposal)?, |error: crate::Error| error.to_string());
        let (map, leaf) = (&proposal.map, proposal.classes_of_a_leaf());
        let (count, d) = (classes.count, map.dim());
        let is_exact = proposal.is_exact(count);
        let (width, blocks) =
            if is_exact || leaf > 1 { (d, 0) } else { (map.feature_dim(), map.blocks().len()) };
        check_size("the number of stored rows", count, rows.nrows()).map_err(words)?;
        check_size("the number of stored columns", width, rows.ncols()).map_err(words)?;
        let scaled = if blocks == 0 { (0, 0) } else { (count, blocks) };
        if log_scales.dim() != scaled {
            return Err("scales for another number of classes or blocks".into());
        }
        let classes = Classes::from_parts(classes.count, classes.removed).ok_or(NUMBERS)?;
        proposal.check_memory(count).map_err(words)?;
        let rows = narrowed(&rows)?;
        if is_exact {
            let engine = Engine::Exact(ExactClasses::new(classes, rows.view()));
            return Ok(SoftmaxSampler { proposal, engine });
        }
        let program = map.program();
        let reference = reference.into_iter().map(T::narrow).collect();
        let reference = FeatureReference::from_logarithms(program, reference).ok_or(REFERENCE)?;
        let tree = if leaf > 1 {
            Tree::new(program, reference, classes, rows.into(), leaf).map_err(words)?
        } else {
            let scale = |class: usize| largest(log_scales.row(class).into_iter().copied());
            if !log_scales.iter().all(|scale| *scale < f64::INFINITY)
                || classes.removed().iter().any(|class| scale(*class) > f64::NEG_INFINITY)
            {
                return Err("scales that no class or only a class that was not removed can have".into());
            }
            Tree::of_leaves(program, reference, classes, Nodes::of(rows, log_scales), zeros((0, d)), leaf)
        };
        Ok(SoftmaxSampler { engine: Engine::Tree(tree), proposal })
    }
}

impl<T: Real> From<&SampledSoftmax<T>> for StoredLayer<T> {
    fn from(layer: &SampledSoftmax<T>) -> Self {
        let SampledSoftmax { sampler, vectors } = layer;
        StoredLayer {
            proposal: (&sampler.proposal).into(),
            removed: sampler.engine.classes().removed().to_vec(),
            reference: logarithms(&sampler.engine),
            vectors: vectors.view().mapv(T::widen),
        }
    }
}

impl<T: Real> TryFrom<StoredLayer<T>> for SampledSoftmax<T> {
    type Error = String;

    fn try_from(stored: StoredLayer<T>) -> Result<Self, String> {
        let StoredLayer { proposal, removed, reference, vectors } = stored;
        let (proposal, words) = (Proposal::try_from(proposal)?, |error: crate::Error| error.to_string());
        let classes = Classes::from_parts(vectors.nrows(), removed).ok_or(NUMBERS)?;
        check_size("the number of stored columns", proposal.map.dim(), vectors.ncols()).map_err(words)?;
        let (vectors, reference) = (narrowed(&vectors)?, reference.into_iter().map(T::narrow).collect());
        let reference = match proposal.is_exact(vectors.nrows()) {
            true => None,
            false => {
                Some(FeatureReference::from_logarithms(proposal.map.program(), reference).ok_or(REFERENCE)?)
            }
        };
        let engine = proposal.engine(classes, vectors.view(), reference).map_err(words)?;
        Ok(SampledSoftmax { sampler: SoftmaxSampler { proposal, engine }, vectors: vectors.into() })
    }
}

const NUMBERS: &str = "numbers of removed classes that are out of order, too large, or those of all";
const REFERENCE: &str = "references of another number than that of the features, or not finite";

/// The references of a tree.
fn logarithms<T: Real>(engine: &Engine<T>) -> Vec<f64> {
    match engine {
        Engine::Tree(tree) => tree.reference.logarithms().iter().map(|v| v.widen()).collect(),
        Engine::Exact(_) => Vec::new(),
    }
}

/// Rows in the scalar that they were stored from.
fn narrowed<T: Real>(rows: &Array2<f64>) -> Result<Array2<T>, String> {
    let mut narrow = zeros(rows.dim());
    narrow.zip_mut_with(rows, |to, v| *to = T::narrow(*v));
    let finite = narrow.iter().all(|v: &T| v.is_finite());
    finite.then_some(narrow).ok_or_else(|| "numbers that are not finite".into())
}
