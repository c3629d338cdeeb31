//! *Rethinking Attention with Performers*.

mod beautiful;
pub mod costs;
mod errors_over_angles;
pub mod functions;
mod gaps;
mod matrices;
mod orthogonality;
mod redraws;
mod regularised;
mod tails;
mod transfer;

use crate::item::Item;

pub const ITEMS: &[&Item] = &[
    &errors_over_angles::ITEM,
    &regularised::ITEM,
    &gaps::ITEM,
    &tails::ITEM,
    &beautiful::ITEM,
    &costs::ITEM,
    &orthogonality::ITEM,
    &transfer::ITEM,
    &redraws::ITEM,
    &functions::ITEM,
    &matrices::ITEM,
];
