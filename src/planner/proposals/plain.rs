//! Plain maps on frequencies, with parameters fitted to data: none where a map does not serve the kernel.

use num_complex::Complex64;

use super::family::MapFamily;
use super::input::FitInput;
use crate::error::Result;
use crate::map::Transform;
use crate::theory::complex_exponential::Symmetry;
use crate::theory::gerf::{self, GerfSign};
use crate::{ComplexExponential, DenseExponential, Gerf, Hyperbolic, Positive, Trigonometric};

/// The least size of an entry of a diagonal that is proposed.
const ENTRIES: f64 = 1e-3;

/// Trigonometric features, for shift-invariant kernels with a known spectrum and for the softmax kernel.
pub(super) fn trigonometric(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    let shift_invariant = input.kernel.shift_invariant().is_some() || input.is_exponential();
    Ok(if shift_invariant { vec![input.plain("trigonometric", Trigonometric)] } else { Vec::new() })
}

/// Positive features, exact and regularised.
pub(super) fn positive(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    Ok(input.exact_and_regularised(Positive))
}

/// Hyperbolic features, exact and regularised.
pub(super) fn hyperbolic(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    Ok(input.exact_and_regularised(Hyperbolic))
}

/// OPRF with the A that is best on average and for larger points, and GERF with s = −1.
pub(super) fn generalised(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    if !input.is_exponential() {
        return Ok(Vec::new());
    }
    let (pairs, d) = (input.pairs()?, input.dim());
    // Most pairs want the A of the mean, the few that rule a mean square one of farther points.
    let [mean, difference] = [GerfSign::Plus, GerfSign::Minus].map(|sign| pairs.mean_squared_sum(sign));
    let mut all = Vec::new();
    for factor in [1.0, 2.0, 4.0] {
        let gerf = Gerf::optimal(d, factor * mean)?;
        all.push(input.plain(format!("OPRF, A = −{:.3}", -gerf.a().re), gerf));
    }
    let minus = Gerf::new(gerf::optimal_minus(d, difference), GerfSign::Minus)?;
    all.push(input.plain(format!("GERF, s = −1, A = {:.3}", minus.a().re), minus));
    Ok(all)
}

/// Real and complex diagonals that are best on average over pairs.
pub(super) fn complex_exponential(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    if !input.is_exponential() {
        return Ok(Vec::new());
    }
    let [x, y] = input.statistics;
    let real = input.pairs()?.robust_diagonal(ENTRIES)?;
    // Imaginary where the means agree in sign, as for one cluster of each side.
    let turned = real.iter().zip(x.mean()?).zip(y.mean()?).map(|((a, x), y)| {
        if x != 0.0 && y != 0.0 && x.signum() == y.signum() {
            Complex64::new(0.0, *a)
        } else {
            Complex64::from(*a)
        }
    });
    let (turned, real): (Vec<_>, Vec<_>) =
        (turned.collect(), real.iter().copied().map(Complex64::from).collect());
    let of = |name: &str, entries: &Vec<Complex64>, symmetry| -> Result<MapFamily> {
        let a = Transform::diagonal(entries.clone())?;
        Ok(input.plain(name, ComplexExponential::new(a, symmetry)))
    };
    Ok(vec![
        of("real exponential", &real, Symmetry::Plain)?,
        of("real exponential, ±ω", &real, Symmetry::Symmetric)?,
        of("complex exponential", &turned, Symmetry::Plain)?,
    ])
}

/// Dense exponential features with the coefficients that are best for the mean squares φ of coordinates, and for 2φ.
pub(super) fn dense_exponential(input: FitInput<'_>) -> Result<Vec<MapFamily>> {
    if !input.is_exponential() {
        return Ok(Vec::new());
    }
    let phi = input.pairs()?.mean_squared_sums(GerfSign::Plus);
    let of = |(factor, name): (f64, &str)| {
        let phi: Vec<f64> = phi.iter().map(|phi| factor * phi).collect();
        Ok(input.plain(name, DenseExponential::optimal(&phi)?))
    };
    [(1.0, "dense exponential"), (2.0, "dense exponential, 2φ")].into_iter().map(of).collect()
}
