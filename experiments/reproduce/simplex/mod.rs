//! *Simplex Random Features*.

mod accuracies;
mod arrangement;
mod classification;
mod complexities;
mod conformity;
mod couplings;
mod densities;
mod fast;
mod gram;
mod performer;
mod plus;
mod ratios;
mod scales;

use crate::item::Item;

pub const ITEMS: &[&Item] = &[
    &conformity::ITEM,
    &densities::ITEM,
    &ratios::ITEM,
    &gram::ITEM,
    &accuracies::ITEM,
    &performer::ITEM,
    &scales::ITEM,
    &complexities::ITEM,
    &plus::ITEM,
    &fast::ITEM,
];
