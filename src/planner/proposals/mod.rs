//! What is possible: maps that serve the kernel, with parameters fitted to the points.
//!
//! Here belongs what proposes a map of this crate, one file for each kind of map. Sizes and couplings come later.

mod bipolar;
mod clusters;
mod counts;
mod family;
mod input;
mod plain;
mod shaped;
mod stated;

pub(crate) use self::family::{Couplings, MapFamily, Proposals};
pub(crate) use self::input::FitInput;
pub(crate) use self::stated::stated;

/// All maps of this crate that serve the kernel. Maps that cannot be fitted to these data are left out, with the reason.
pub(crate) fn proposals(input: FitInput<'_>) -> Proposals {
    let mut all = Proposals::default();
    all.add("trigonometric", plain::trigonometric(input));
    all.add("positive", plain::positive(input));
    all.add("hyperbolic", plain::hyperbolic(input));
    all.add("gerf", plain::generalised(input));
    all.add("complex exponential", plain::complex_exponential(input));
    all.add("dense exponential", plain::dense_exponential(input));
    all.add("poisson", counts::poisson(input));
    all.add("geometric", counts::geometric(input));
    if input.is_exponential() {
        all.add("bipolar hybrid", bipolar::bipolar(input));
        all.add("clustered", clusters::clustered(input));
        all.add("Gaussian clusters", clusters::mixtures(input));
        all.add("shaped", shaped::shaped(input));
    }
    all
}
