//! [`Constraints`]: which maps and couplings are wanted.

use crate::frequency::{AnyCoupling, Draw};
use crate::kernel::Radius;
use crate::map::{AnyKernel, Recipe};

/// Which maps and couplings are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constraints {
    pub non_negative: bool,
    pub symmetric: bool,
    pub unbiased: bool,
    pub no_structured: bool,
    /// Whether Nyström features are proposed, too.
    pub nystroem: bool,
    pub couplings: Option<Vec<AnyCoupling>>,
}

impl Constraints {
    /// The couplings for a kernel of points in ℝᵈ.
    pub fn couplings(&self, target: &AnyKernel, d: usize) -> Vec<AnyCoupling> {
        let law = target.radius().unwrap_or(Radius::Chi);
        let all = self.couplings.clone().unwrap_or_else(|| AnyCoupling::all(law, d));
        // Couplings of a product law hold it themselves.
        let radii = if law.is_polar() { law } else { Radius::Chi };
        let drawn = |coupling: &AnyCoupling| Draw { radii, ..Draw::new(d, 2, *coupling) }.draw(0);
        let fits = |coupling: &&AnyCoupling| {
            let drawn = drawn(coupling);
            drawn.is_ok_and(|omega| !(self.unbiased && omega.law().is_approximate()))
                && !(self.no_structured && coupling.fast_rotation().is_some())
        };
        all.iter().filter(fits).copied().collect()
    }

    /// Whether the map of a small recipe of the same kind is wanted.
    pub fn allow(&self, small: &Recipe, target: &AnyKernel) -> crate::Result<bool> {
        if self.unbiased && is_biased(small, target) {
            return Ok(false);
        }
        let map = small.draw::<f64>(0)?;
        let facts = map.facts();
        Ok((facts.non_negative || !self.non_negative) && (facts.symmetric || !self.symmetric))
    }
}

/// Whether estimates of the recipe's map are of another kernel, or of this one only for points within a shift or with frequencies of
/// nearly this law.
pub(crate) fn is_biased(recipe: &Recipe, target: &AnyKernel) -> bool {
    let exact = target.kernel::<f64>().and_then(|kernel| kernel.identity());
    let own = recipe.kernel().and_then(|kernel| kernel.identity());
    let approximate = |omega: &crate::map::Omega| omega.law().is_some_and(|law| law.is_approximate());
    exact.is_none()
        || own != exact
        || recipe
            .leaves()
            .iter()
            .any(|plain| !plain.mechanism.is_for_all_points() || approximate(&plain.omega))
}
