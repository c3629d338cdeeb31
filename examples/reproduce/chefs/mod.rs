//! *Chefs' Random Tables*.

mod mechanisms;
mod regimes;
mod variances;

use crate::item::Item;

pub const ITEMS: &[&Item] = &[&variances::ITEM];
