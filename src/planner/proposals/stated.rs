//! Recipes that the caller states.

use super::family::{Couplings, MapFamily};
use crate::map::Omega;
use crate::planner::question::StatedRecipe;

/// The recipe in all sizes, with its coupling.
pub(crate) fn stated(stated: &StatedRecipe) -> MapFamily {
    let coupling = stated.recipe.draws().into_iter().find_map(|omega| match omega {
        Omega::Draw(draw) => Some(draw.coupling),
        Omega::Frequencies(omega) => Some(omega.drawn_from()?.0.coupling),
        _ => None,
    });
    let own = stated.clone();
    MapFamily::of_couplings(&stated.name, Couplings::Stated(coupling), move |m, _| own.of_size(m))
}
