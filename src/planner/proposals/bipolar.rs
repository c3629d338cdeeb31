//! Bipolar hybrids.

use super::family::MapFamily;
use super::input::FitInput;
use crate::compose::{Bases, Coefficient, Hybrid};
use crate::error::Result;
use crate::frequency::{AnyCoupling, Draw, Independent};
use crate::map::Recipe;

/// Numbers of frequencies of a coefficient that are proposed.
const COEFFICIENTS: [usize; 3] = [1, 4, 16];

/// Hybrids with angular and Gaussian coefficients. Each part has a draw of its own.
pub(super) fn bipolar(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    let (d, kernel) = (input.dim(), input.kernel);
    let of = |map: &str, n: usize, coefficient: Coefficient<Recipe>| {
        let kernel = kernel.clone();
        MapFamily::coupled(format!("{map}, n = {n}"), move |m, coupling: AnyCoupling| {
            let draw = |stream| Draw::new(d, m, coupling).with_stream(stream);
            Hybrid::bipolar(Bases::independent(draw(0), draw(1)), coefficient.clone(), kernel.clone())
        })
    };
    let tau = |n| Draw::new(d, n, Independent).with_stream(2);
    let angular = |n| Ok(of("angular hybrid", n, Coefficient::angular(tau(n))?));
    let mut all = COEFFICIENTS.into_iter().map(angular).collect::<Result<Vec<_>>>()?;
    // Coefficients see points that are not divided by the lengthscale.
    let [x, y] = input.statistics.map(|side| side.mean_squared_norm());
    let norm = (0.5 * (x? + y?)).sqrt();
    if let Some(scale) = kernel.lengthscale().isotropic().filter(|_| norm > 0.0) {
        let weight = ((norm * scale).recip(), norm * scale);
        let gaussian = |n| Ok(of("Gaussian hybrid", n, Coefficient::gaussian(tau(n), weight)?));
        all.extend(COEFFICIENTS[1..].iter().map(|n| gaussian(*n)).collect::<Result<Vec<_>>>()?);
    }
    Ok(all)
}
