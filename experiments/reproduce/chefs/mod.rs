//! *Chefs' Random Tables*.

mod lists;
mod mechanisms;
mod regimes;
mod ridge;
mod smoothing;
mod tails;
mod tasks;
mod variances;

use crate::item::Item;

pub const ITEMS: &[&Item] = &[&variances::ITEM, &smoothing::ITEM, &ridge::ITEM, &lists::ITEM, &tails::ITEM];
