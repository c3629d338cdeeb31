//! The mechanisms: their parameters from data, and ln(Var/K²) of their estimates.

use ndarray::{Array1, Array2};
use num_complex::Complex64;
use random_features::Result;
use random_features::data::{PairStatistics, Statistics};
use random_features::frequency::{Draw, Independent, Orthogonal, Simplex};
use random_features::kernel::Radius;
use random_features::theory::complex_exponential::{Symmetry, ln_mse, zeta_diagonal};
use random_features::theory::counts::{
    ln_geometric_variance, ln_poisson_variance, ln_poisson_variance_per_dimension,
};
use random_features::theory::gerf::{self, GerfSign};
use random_features::theory::{self, Law, Pair};

/// How far below zero shifted points may come, see [`PairStatistics::shift`].
const MARGIN: f64 = 1e-8;
/// The clamp of the diagonal A, see [`PairStatistics::robust_diagonal`]; coordinates that are all 0 do not occur.
const CLAMP: f64 = 1e-3;

/// A coupling of the frequencies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Coupling {
    Independent,
    Orthogonal,
    Simplex,
}

impl Coupling {
    pub fn name(self) -> &'static str {
        match self {
            Coupling::Independent => "independent",
            Coupling::Orthogonal => "orthogonal",
            Coupling::Simplex => "simplex",
        }
    }

    /// The law of `m` frequencies in ℝᵈ.
    fn law(self, d: usize, m: usize) -> Law {
        match self {
            Coupling::Independent => Draw::new(d, m, Independent).law(),
            Coupling::Orthogonal => Draw::new(d, m, Orthogonal).law(),
            Coupling::Simplex => Draw::new(d, m, Simplex::default()).law(),
        }
    }
}

/// The parameters of Poisson and geometric features.
struct Counts {
    lambda: f64,
    lambdas: Vec<f64>,
    p: f64,
}

impl Counts {
    fn fit(pairs: &PairStatistics<'_>) -> Self {
        Counts { lambda: pairs.poisson(), lambdas: pairs.poisson_per_dimension(), p: pairs.geometric() }
    }
}

/// All parameters that are chosen from data.
pub struct Fit {
    oprf: Complex64,
    gerf: (Complex64, GerfSign),
    diagonal: Vec<Complex64>,
    counts: Counts,
    shift: Array1<f64>,
    /// For the shifted points.
    shifted_counts: Counts,
}

impl Fit {
    pub fn new(queries: &Array2<f64>, keys: &Array2<f64>) -> Result<Self> {
        let (x, y) = (Statistics::of(queries)?, Statistics::of(keys)?);
        let pairs = PairStatistics::new(&x, &y)?;
        let shift = Array1::from(pairs.shift(MARGIN)?);
        let (x, y) = (Statistics::of(&(queries - &shift))?, Statistics::of(&(keys - &shift))?);
        let (a, sign) = pairs.gerf_of_features();
        Ok(Fit {
            oprf: pairs.oprf().0.into(),
            gerf: (a.into(), sign),
            diagonal: pairs.robust_diagonal(CLAMP)?.into_iter().map(Complex64::from).collect(),
            counts: Counts::fit(&pairs),
            shifted_counts: Counts::fit(&PairStatistics::new(&x, &y)?),
            shift,
        })
    }

    /// The sign s of the best generalised exponential map.
    pub fn sign(&self) -> GerfSign {
        self.gerf.1
    }
}

/// A query and a key.
pub struct Points<'a> {
    x: &'a [f64],
    y: &'a [f64],
    shifted: [Vec<f64>; 2],
    scalars: Pair,
}

impl<'a> Points<'a> {
    pub fn new(x: &'a [f64], y: &'a [f64], fit: &Fit) -> Self {
        let shifted = [x, y].map(|point| point.iter().zip(&fit.shift).map(|(v, c)| v - c).collect());
        Points { x, y, shifted, scalars: Pair::new(x.iter().copied().zip(y.iter().copied())) }
    }

    /// ln K² of the Gaussian kernel.
    pub fn ln_squared_kernel(&self) -> f64 {
        -self.scalars.difference
    }

    /// ln Var for the softmax kernel into ln(Var/K²).
    fn over_softmax(&self, ln_variance: Option<f64>) -> Option<f64> {
        Some(ln_variance? - 2.0 * self.scalars.dot)
    }

    /// ln Var for the Gaussian kernel into ln(Var/K²).
    fn over_gaussian(&self, ln_variance: Option<f64>) -> Option<f64> {
        Some(ln_variance? + self.scalars.difference)
    }

    /// The points after the shift.
    fn shifted(&self) -> [&[f64]; 2] {
        self.shifted.each_ref().map(Vec::as_slice)
    }
}

/// ln(Var/K²) of one pair under a law of the frequencies, or `None` without a closed form.
type ClosedForm = fn(&Fit, &Points, &Law) -> Option<f64>;

fn trigonometric(_: &Fit, points: &Points, law: &Law) -> Option<f64> {
    points.over_softmax(theory::trigonometric(&points.scalars, law))
}

fn positive(_: &Fit, points: &Points, law: &Law) -> Option<f64> {
    points.over_softmax(theory::positive(&points.scalars, law))
}

fn hyperbolic(_: &Fit, points: &Points, law: &Law) -> Option<f64> {
    points.over_softmax(theory::hyperbolic(&points.scalars, law))
}

fn complex_exponential(fit: &Fit, points: &Points, law: &Law) -> Option<f64> {
    let zeta = zeta_diagonal(&fit.diagonal, points.x, points.y);
    points.over_softmax(Some(ln_mse(points.scalars.dot, &zeta, Symmetry::Symmetric, law.len())))
}

fn regularised(_: &Fit, points: &Points, law: &Law) -> Option<f64> {
    let law = law.clone().with_radius(Radius::RootDim);
    points.over_softmax(theory::regularised_positive_about_softmax(&points.scalars, &law))
}

fn oprf(fit: &Fit, points: &Points, law: &Law) -> Option<f64> {
    points.over_gaussian(gerf::ln_variance(&points.scalars, fit.oprf, GerfSign::Plus, law))
}

fn best_gerf(fit: &Fit, points: &Points, law: &Law) -> Option<f64> {
    let (a, s) = fit.gerf;
    points.over_gaussian(gerf::ln_variance(&points.scalars, a, s, law))
}

fn poisson(fit: &Fit, points: &Points, law: &Law) -> Option<f64> {
    points.over_gaussian(Some(ln_poisson_variance(points.x, points.y, fit.counts.lambda, law.len())))
}

fn shifted_poisson(fit: &Fit, points: &Points, law: &Law) -> Option<f64> {
    let [x, y] = points.shifted();
    points.over_gaussian(Some(ln_poisson_variance(x, y, fit.shifted_counts.lambda, law.len())))
}

fn poisson_each(fit: &Fit, points: &Points, law: &Law) -> Option<f64> {
    let lambdas = &fit.counts.lambdas;
    points.over_gaussian(Some(ln_poisson_variance_per_dimension(points.x, points.y, lambdas, law.len())))
}

fn shifted_poisson_each(fit: &Fit, points: &Points, law: &Law) -> Option<f64> {
    let [x, y] = points.shifted();
    let lambdas = &fit.shifted_counts.lambdas;
    points.over_gaussian(Some(ln_poisson_variance_per_dimension(x, y, lambdas, law.len())))
}

fn geometric(fit: &Fit, points: &Points, law: &Law) -> Option<f64> {
    points.over_gaussian(Some(ln_geometric_variance(points.x, points.y, fit.counts.p, law.len())))
}

fn shifted_geometric(fit: &Fit, points: &Points, law: &Law) -> Option<f64> {
    let [x, y] = points.shifted();
    points.over_gaussian(Some(ln_geometric_variance(x, y, fit.shifted_counts.p, law.len())))
}

/// Real features for each frequency.
#[derive(Clone, Copy)]
enum Width {
    One,
    Two,
    /// One where the best generalised exponential map is real, with s = 1, else two.
    OfGerf,
}

/// A way to estimate K.
pub struct Mechanism {
    pub name: &'static str,
    pub coupling: Coupling,
    /// Whether estimates are never negative.
    pub positive: bool,
    width: Width,
    closed_form: ClosedForm,
}

impl Mechanism {
    /// All mechanisms: first those whose estimates may be negative, then the positive ones.
    pub fn all() -> Vec<Self> {
        use Coupling::{Independent, Orthogonal, Simplex};
        use Width::{OfGerf, One, Two};
        const ONE: &[Coupling] = &[Independent];
        const TWO: &[Coupling] = &[Independent, Orthogonal];
        const THREE: &[Coupling] = &[Independent, Orthogonal, Simplex];
        type Family = (&'static str, &'static [Coupling], bool, Width, ClosedForm);
        let families: [Family; 13] = [
            ("trigonometric", TWO, false, Two, trigonometric),
            ("GERF", ONE, false, OfGerf, best_gerf),
            ("Poisson λ", ONE, false, One, poisson),
            ("Poisson λₗ", ONE, false, One, poisson_each),
            ("geometric", ONE, false, One, geometric),
            ("positive", THREE, true, One, positive),
            ("hyperbolic", TWO, true, Two, hyperbolic),
            ("complex exp.", ONE, true, Two, complex_exponential),
            ("regularised", THREE, true, One, regularised),
            ("OPRF", THREE, true, One, oprf),
            ("Poisson+ λ", ONE, true, One, shifted_poisson),
            ("Poisson+ λₗ", ONE, true, One, shifted_poisson_each),
            ("geometric+", ONE, true, One, shifted_geometric),
        ];
        let mechanisms = |(name, couplings, positive, width, closed_form): Family| {
            let mechanism =
                move |coupling: &_| Mechanism { name, coupling: *coupling, positive, width, closed_form };
            couplings.iter().map(mechanism)
        };
        families.into_iter().flat_map(mechanisms).collect()
    }

    /// The number of frequencies that give `features` real features.
    pub fn frequencies(&self, fit: &Fit, features: usize) -> usize {
        match (self.width, fit.sign()) {
            (Width::One, _) | (Width::OfGerf, GerfSign::Plus) => features,
            (Width::Two, _) | (Width::OfGerf, GerfSign::Minus) => features / 2,
        }
    }

    /// The law of the frequencies.
    pub fn law(&self, fit: &Fit, d: usize, features: usize) -> Law {
        self.coupling.law(d, self.frequencies(fit, features))
    }

    /// ln(Var/K²) for one pair; not a number without a closed form.
    pub fn ln_relative_variance(&self, fit: &Fit, points: &Points, law: &Law) -> f64 {
        (self.closed_form)(fit, points, law).unwrap_or(f64::NAN)
    }
}
