//! *Chefs' Random Tables*.

mod mechanisms;
mod regimes;
mod ridge;
mod smoothing;
mod tasks;
mod variances;

use crate::item::Item;

pub const ITEMS: &[&Item] = &[&variances::ITEM, &smoothing::ITEM, &ridge::ITEM];
