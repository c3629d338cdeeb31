//! *Hybrid Random Features*.

mod angles;
mod cluster_data;
mod cluster_paper;
mod clusters;
mod conformer;
mod distances;
mod distances_paper;
mod embeddings;
mod gains;
mod language_model;
mod methods;
mod mixtures;
mod samplers;
mod surfaces;
mod words;

use crate::item::Item;

pub const ITEMS: &[&Item] = &[
    &surfaces::ITEM,
    &angles::ITEM,
    &gains::ITEM,
    &samplers::ITEM,
    &conformer::ITEM,
    &clusters::ITEM,
    &mixtures::ITEM,
    &distances::ITEM,
    &language_model::ITEM,
];
