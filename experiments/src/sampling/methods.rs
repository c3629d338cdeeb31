//! The mechanisms that propose classes, at an equal number of features or of operations.

use random_features::apply::softmax_sampling::Proposal;
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Coupling, Orthogonal, Simplex};
use random_features::{Gerf, Hyperbolic, Map, Positive, Result, Trigonometric};

/// Frequencies of the hybrids' coefficients, at an equal number of features.
const ANGULAR: usize = 4;
const GAUSSIAN: usize = 2;
/// Frequencies of both coefficients at an equal number of operations: bases have one frequency for so many features of other maps.
const COEFFICIENT: usize = 8;
/// σ of the Gaussian coefficient.
const SIGMA: f64 = 1.0;
/// The weight of the uniform distribution where features may be negative.
pub const UNIFORM: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Uniform,
    Trigonometric,
    Positive,
    Hyperbolic,
    Angular,
    Gaussian,
    /// Optimal positive features on a simplex, which the paper does not have.
    Optimal,
}

/// What hybrids have in common with other maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equal {
    /// At most as many real features.
    Features,
    /// As in the paper: an eighth as many frequencies in their bases as others have features, and 8 of λ. They have more features, which
    /// take no more operations to make.
    Operations,
}

/// The methods of the paper, with uniform draws.
pub const METHODS: [Method; 6] = [
    Method::Uniform,
    Method::Trigonometric,
    Method::Positive,
    Method::Hyperbolic,
    Method::Angular,
    Method::Gaussian,
];

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Uniform => "uniform",
            Method::Trigonometric => "trigonometric",
            Method::Positive => "positive",
            Method::Hyperbolic => "hyperbolic",
            Method::Angular => "angular hybrid",
            Method::Gaussian => "Gaussian hybrid",
            Method::Optimal => "OPRF, simplex",
        }
    }

    /// Real features for each frequency of the bases.
    fn width(self) -> usize {
        match self {
            Method::Uniform | Method::Positive | Method::Optimal => 1,
            Method::Trigonometric | Method::Hyperbolic => 2,
            Method::Angular => 4 * ANGULAR,
            Method::Gaussian => 4 * (1 + 2 * GAUSSIAN),
        }
    }

    /// A map in ℝᵈ for points of norm about `r` that is comparable with so many real features, at least 64; none for the uniform
    /// distribution.
    pub fn map(self, d: usize, features: usize, equal: Equal, r: f64, seed: u64) -> Result<Option<Map<f32>>> {
        let sizes = match (self, equal) {
            (Method::Angular | Method::Gaussian, Equal::Operations) => [features / COEFFICIENT, COEFFICIENT],
            (Method::Angular, Equal::Features) => [features / self.width(), ANGULAR],
            _ => [features / self.width(), GAUSSIAN],
        };
        self.draw(d, sizes, r, seed)
    }

    /// With m frequencies of the bases and n of a hybrid's coefficient.
    fn draw(self, d: usize, [m, n]: [usize; 2], r: f64, seed: u64) -> Result<Option<Map<f32>>> {
        let m = m.max(1);
        if self == Method::Optimal {
            // The mean of ‖x+y‖² at all angles.
            let map = Gerf::optimal(d, 2.0 * r * r)?;
            return Ok(Some(map.softmax(Simplex::default().draw(d, m, seed)?)?));
        }
        let omega = Orthogonal.draw(d, m, seed)?;
        let tau = || Orthogonal.draw(d, n, seed ^ (1 << 63));
        Ok(Some(match self {
            Method::Uniform | Method::Optimal => return Ok(None),
            Method::Trigonometric => Trigonometric.softmax(omega)?,
            Method::Positive => Positive.softmax(omega)?,
            Method::Hyperbolic => Hyperbolic.softmax(omega)?,
            Method::Angular => Hybrid::angular(Bases::shared(omega), tau()?)?,
            Method::Gaussian => Hybrid::gaussian(Bases::shared(omega), tau()?, (SIGMA, r))?,
        }))
    }
}

/// What draws from a map's estimates.
pub fn proposal(map: Map<f32>) -> Result<Proposal<f32>> {
    let weight = if map.facts().non_negative { 0.0 } else { UNIFORM };
    Proposal::new(map).with_uniform(weight)
}
