//! [`SizedMaps`]: an attention's maps with more frequencies or fewer.

use super::super::super::input::Attention;
use super::super::TokenSample;
use super::super::costs::AttentionCosts;
use crate::Real;
use crate::error::Result;
use crate::map::{Map, Recipe};

/// The largest division and multiplication of m, as powers of 2.
const DIVIDED: u32 = 2;
const MULTIPLIED: u32 = 4;

/// An attention's maps with some number of frequencies.
pub(super) struct SizedMaps {
    /// The number of frequencies of the map that a sample is for.
    pub m: usize,
    pub costs: AttentionCosts,
    /// The maps to draw and their seeds; `None` for the attention's own.
    redraws: Option<Vec<(Recipe, u64)>>,
}

impl<T: Real> Attention<T> {
    /// Its own size, and those that its maps can be drawn in again: if they were drawn by name, all that their couplings draw.
    pub(super) fn sizes(&self, sample: &TokenSample<'_, T>) -> Result<Vec<SizedMaps>> {
        let (d, d_v) = (self.maps[0].dim(), d_v(sample));
        let own = self.map_of(sample.head)?.recipe().map_or(0, |recipe| frequencies(&recipe));
        let mut sizes = vec![SizedMaps { m: own, costs: self.costs(d_v), redraws: None }];
        let less = |k: u32| move |m: usize| m.is_multiple_of(1 << k).then_some(m >> k).filter(|m| *m > 0);
        let more = |k: u32| move |m: usize| m.checked_mul(1 << k);
        let less = (1..=DIVIDED).map(|k| self.redraws(&less(k)));
        for redraws in less.chain((1..=MULTIPLIED).map(|k| self.redraws(&more(k)))).flatten() {
            let of_head = &redraws[sample.head % redraws.len()].0;
            let costs = AttentionCosts::new(d, redraws[0].0.feature_dim(), d_v);
            sizes.push(SizedMaps { m: frequencies(of_head), costs, redraws: Some(redraws) });
        }
        Ok(sizes)
    }

    /// Its maps with `count(m)` frequencies in place of m, to be drawn.
    fn redraws(&self, count: &dyn Fn(usize) -> Option<usize>) -> Option<Vec<(Recipe, u64)>> {
        let redraw = |map: &Map<T>| {
            let recipe = map.recipe()?;
            let seed = recipe.draws().first()?.seed()?;
            let recipe = recipe.with_frequencies(count).filter(|recipe| recipe.check().is_ok())?;
            Some((recipe, seed))
        };
        self.maps.iter().map(redraw).collect()
    }

    /// This attention with maps of another size.
    pub(super) fn of_size(&self, size: &SizedMaps) -> Result<Self> {
        let Some(redraws) = &size.redraws else { return Ok(self.clone()) };
        let maps = redraws.iter().map(|(recipe, seed)| recipe.draw(*seed)).collect::<Result<_>>()?;
        Ok(Attention { maps, ..self.clone() }.prepared())
    }
}

/// The number of frequencies of a map that has closed forms, whose frequencies are of one draw.
fn frequencies(recipe: &Recipe) -> usize {
    recipe.draws().first().map_or(0, |omega| omega.m())
}

/// The dimension of a sample's values, or of its keys if it has none.
pub(super) fn d_v<T>(sample: &TokenSample<'_, T>) -> usize {
    sample.values.map_or(sample.keys.ncols(), |values| values.ncols())
}
