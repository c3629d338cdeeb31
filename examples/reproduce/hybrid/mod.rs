//! *Hybrid Random Features*.

mod angles;
mod cluster_data;
mod cluster_paper;
mod clusters;
mod conformer;
mod distances;
mod methods;
mod mixtures;
mod samplers;
#[path = "../../softmax_sampling/data.rs"]
mod sampling_data;
#[allow(dead_code, reason = "what the example softmax_sampling also needs")]
#[path = "../../softmax_sampling/methods.rs"]
mod sampling_methods;
mod surfaces;

use crate::item::Item;

pub const ITEMS: &[&Item] = &[
    &surfaces::ITEM,
    &angles::ITEM,
    &samplers::ITEM,
    &conformer::ITEM,
    &clusters::ITEM,
    &mixtures::ITEM,
    &distances::ITEM,
];
