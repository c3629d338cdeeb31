//! The estimators, their closed forms, and their sizes at equal cost.

use std::f64::consts::PI;

use rand::Rng;
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Draw, Independent, Simplex, draw};
use random_features::num_complex::Complex64;
use random_features::theory::gerf::{self, GerfSign};
use random_features::theory::{Pair, coefficient, hybrid, relative_error};
use random_features::{Hyperbolic, Map, Positive, Result, Trigonometric};

/// σ of the Gaussian coefficient λ = (1 − e^{−σ²‖x−y‖²/2})/ρ. For the norms that are compared, its largest errors are
/// within a tenth of the least that any σ gives.
pub const SIGMA: f64 = 1.0;

/// The norm for which hybrids choose n: the middle one of those that are compared.
pub const SIZED_FOR: f64 = 1.25;

/// An estimator of exp(x·y) for points of equal norm. Both bases of a hybrid, hyperbolic and trigonometric, share
/// their frequencies, which costs less and for equal norms changes no variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Trigonometric,
    Positive,
    Hyperbolic,
    Angular,
    Gaussian,
}

pub const METHODS: [Method; 5] =
    [Method::Trigonometric, Method::Positive, Method::Hyperbolic, Method::Angular, Method::Gaussian];

/// The numbers of frequencies: m of the bases, n of the coefficient, which is 0 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub m: usize,
    pub n: usize,
}

impl Size {
    /// The number of projections of a point.
    pub fn projections(self) -> usize {
        self.m + self.n
    }
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Trigonometric => "trigonometric",
            Method::Positive => "positive",
            Method::Hyperbolic => "hyperbolic",
            Method::Angular => "angular hybrid",
            Method::Gaussian => "Gaussian hybrid",
        }
    }

    fn is_hybrid(self) -> bool {
        matches!(self, Method::Angular | Method::Gaussian)
    }

    /// D, the number of real features of a point: a sign has some for each of its values, of which one half is absent.
    pub fn features(self, Size { m, n }: Size) -> usize {
        match self {
            Method::Positive => m,
            Method::Trigonometric | Method::Hyperbolic => 2 * m,
            Method::Angular => 4 * m * n,
            Method::Gaussian => 4 * m * (1 + 2 * n),
        }
    }

    /// The logarithm of √MSE/K for points of norm `r` at `angle`.
    pub fn ln_relative_error(self, angle: f64, r: f64, Size { m, n }: Size) -> f64 {
        match self {
            Method::Trigonometric => relative_error::ln_trigonometric(angle, r, m),
            Method::Positive => relative_error::ln_positive(angle, r, m),
            Method::Hyperbolic => relative_error::ln_hyperbolic(angle, r, m),
            Method::Angular => relative_error::ln_angular(angle, r, m, n),
            Method::Gaussian => {
                let pair = plane_pair(angle, r);
                let moments = coefficient::gaussian_normalised(&pair, SIGMA, r, n);
                let mse = hybrid::ln_bipolar_mse(&pair, &moments, m, hybrid::Sharing::Shared);
                mse.map_or(f64::NAN, |mse| 0.5 * mse - pair.dot)
            }
        }
    }

    /// The maps in ℝᵈ for points of each norm, all on the same frequencies.
    pub fn draw(self, d: usize, norms: &[f64], size: Size, rng: &mut impl Rng) -> Result<Vec<Map<f64>>> {
        let omega = draw(d, size.m, &Independent, &mut *rng)?;
        let tau = self.is_hybrid().then(|| draw(d, size.n, &Independent, rng)).transpose()?;
        let bases = || Bases::shared(omega.clone());
        let map = |r: &f64| -> Result<Map<f64>> {
            Ok(match (self, tau.clone()) {
                (Method::Angular, Some(tau)) => Hybrid::angular(bases(), tau)?,
                (Method::Gaussian, Some(tau)) => Hybrid::gaussian(bases(), tau, (SIGMA, *r))?,
                (Method::Positive, _) => Positive.softmax(omega.clone())?,
                (Method::Hyperbolic, _) => Hyperbolic.softmax(omega.clone())?,
                _ => Trigonometric.softmax(omega.clone())?,
            })
        };
        norms.iter().map(map).collect()
    }
}

/// Beyond the paper: the logarithm of √MSE/K of m optimal positive features on simplices in ℝᵈ, with A for the mean of ‖x+y‖² over all angles.
pub fn ln_optimal_error(angle: f64, r: f64, m: usize, d: usize) -> f64 {
    let mut pair = plane_pair(angle, r);
    pair.dim = d;
    let a = Complex64::new(gerf::optimal(d, 2.0 * r * r).a, 0.0);
    let law = Draw::new(d, m, Simplex::default()).law();
    // The variance is that of the Gaussian kernel, relative to it.
    gerf::ln_variance(&pair, a, GerfSign::Plus, &law).map_or(f64::NAN, |ln| 0.5 * (ln + pair.difference))
}

/// The scalars of two points of norm `r` at `angle`.
fn plane_pair(angle: f64, r: f64) -> Pair {
    let (sin, cos) = angle.sin_cos();
    // Sums and differences from the half angle: those of coordinates would cancel at both ends.
    let (sum, difference) = ((0.5 * angle).cos(), (0.5 * angle).sin());
    let square = r * r;
    let mut pair = Pair::new([(r, r * cos), (0.0, r * sin)]);
    pair.norm_difference = 0.0;
    pair.sum = 4.0 * square * sum * sum;
    pair.difference = 4.0 * square * difference * difference;
    pair
}

/// What is equal for all methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The number of real features, which is what everything costs that is done with them.
    Features,
    /// The work of making them: a multiplication for each coordinate and frequency, and one for each feature.
    Work,
}

impl Cost {
    pub fn name(self) -> &'static str {
        match self {
            Cost::Features => "equal features",
            Cost::Work => "equal work",
        }
    }

    /// The cost of a method in ℝᵈ.
    pub fn of(self, method: Method, size: Size, d: usize) -> usize {
        match self {
            Cost::Features => method.features(size),
            Cost::Work => size.projections() * d + method.features(size),
        }
    }

    /// The largest size with this many frequencies of the coefficient that costs no more than positive features on
    /// `positive` frequencies; `None` if one base frequency costs more.
    fn largest(self, method: Method, n: usize, d: usize, positive: usize) -> Option<Size> {
        let cost = |m: usize| self.of(method, Size { m, n }, d);
        let budget = self.of(Method::Positive, Size { m: positive, n: 0 }, d);
        // The cost is affine in m.
        let m = budget.checked_sub(cost(0))? / (cost(1) - cost(0));
        (m > 0).then_some(Size { m, n })
    }

    /// The size at which a method costs no more than positive features on `positive` frequencies. Hybrids have the n
    /// that makes their largest error over all angles smallest, for points of norm `r`.
    pub fn size(self, method: Method, d: usize, positive: usize, r: f64) -> Option<Size> {
        if !method.is_hybrid() {
            return self.largest(method, 0, d, positive);
        }
        let sizes = (1..=positive).map_while(|n| self.largest(method, n, d, positive));
        let worst = |size: Size| {
            let angles = (1..180).map(|k| f64::from(k) / 180.0 * PI);
            angles.map(|angle| method.ln_relative_error(angle, r, size)).fold(f64::NEG_INFINITY, f64::max)
        };
        sizes.min_by(|a, b| worst(*a).total_cmp(&worst(*b)))
    }
}
