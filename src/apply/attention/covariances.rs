//! [`Covariances`]: closed forms of what two estimates that share a query have in common.

use ndarray::Array2;
use num_complex::Complex64;

use crate::map::Mechanism;
use crate::numeric::special::ln_0f1;
use crate::theory::gerf::GerfSign;
use crate::theory::{covariance, dense};

/// The relative covariances of estimates by one frequency, of a mechanism.
#[derive(Clone)]
pub(super) struct Covariances {
    kind: Kind,
    regularised: bool,
}

#[derive(Clone)]
enum Kind {
    Positive,
    Hyperbolic,
    Trigonometric,
    Gerf(Complex64, GerfSign),
    /// ρₗ of each coordinate.
    Dense(Vec<f64>),
}

/// Those of all pairs of keys for each query.
pub(super) struct OfPoints<'a> {
    kind: &'a Kind,
    dim: usize,
    dots: Dots,
    /// Σ ln ςₗ and the same in coordinates times √ρₗ, of dense features.
    stretched: Option<(f64, Dots)>,
    /// ln of the mean of exponentials on a sphere, of regularised features.
    sphere: Option<Sphere>,
}

/// Products of sums w = x ± y, from those of points.
struct Dots {
    sign: f64,
    queries: Vec<f64>,
    mixed: Array2<f64>,
    keys: Array2<f64>,
}

impl Covariances {
    /// `None` where there is no closed form. Regularised features have frequencies of norm √d.
    pub fn new(mechanism: &Mechanism, regularised: bool) -> Option<Self> {
        let kind = match mechanism {
            Mechanism::Positive(_) => Kind::Positive,
            Mechanism::Hyperbolic(_) => Kind::Hyperbolic,
            Mechanism::Trigonometric(_) if !regularised => Kind::Trigonometric,
            Mechanism::Gerf(gerf) if !regularised => Kind::Gerf(gerf.a(), gerf.sign()),
            Mechanism::DenseExponential(dense) if !regularised => Kind::Dense(dense.rho()),
            _ => return None,
        };
        Some(Covariances { kind, regularised })
    }

    pub fn is_regularised(&self) -> bool {
        self.regularised
    }

    /// For queries and keys.
    pub fn of(&self, [x, y]: &[Array2<f64>; 2]) -> OfPoints<'_> {
        let sign = match self.kind {
            Kind::Trigonometric | Kind::Gerf(_, GerfSign::Minus) => -1.0,
            _ => 1.0,
        };
        let (dots, dim) = (Dots::new(sign, x, y), x.ncols());
        let stretched = match &self.kind {
            Kind::Dense(rho) => {
                let roots: ndarray::Array1<f64> = rho.iter().map(|rho| rho.sqrt()).collect();
                let ln_stretch = dense::ln_second_moment(&vec![0.0; rho.len()], rho);
                Some((ln_stretch, Dots::new(sign, &(x * &roots), &(y * &roots))))
            }
            _ => None,
        };
        let sphere = self.regularised.then(|| Sphere::new(dim, 4.0 * dots.largest()));
        OfPoints { kind: &self.kind, dim, dots, stretched, sphere }
    }
}

impl OfPoints<'_> {
    /// Of the estimates for query `i` and the keys `j` and `k`.
    pub fn get(&self, i: usize, j: usize, k: usize) -> f64 {
        let (dot, squares) = (self.dots.get(i, j, k), (self.dots.get(i, j, j), self.dots.get(i, k, k)));
        if let Some(sphere) = &self.sphere {
            let single = sphere.ln_mean(squares.0) + sphere.ln_mean(squares.1);
            let relative = |dot: f64| (sphere.ln_mean(squares.0 + squares.1 + 2.0 * dot) - single).exp_m1();
            return match self.kind {
                Kind::Hyperbolic => 0.5 * (relative(dot) + relative(-dot)),
                _ => relative(dot),
            };
        }
        match self.kind {
            Kind::Positive => covariance::positive(dot),
            Kind::Hyperbolic => covariance::hyperbolic(dot),
            Kind::Trigonometric => covariance::trigonometric(dot),
            Kind::Gerf(a, GerfSign::Plus) if a.im == 0.0 => covariance::gerf(a.re, self.dim, dot, squares),
            Kind::Gerf(a, sign) => covariance::complex_gerf(*a, *sign, self.dim, dot, squares),
            // As covariance::dense, whose squares are expanded.
            Kind::Dense(_) => self.stretched.as_ref().map_or(f64::NAN, |(ln_stretch, dots)| {
                let stretched = 0.25 * (dots.get(i, j, j) + dots.get(i, k, k)) + 0.5 * dots.get(i, j, k);
                (ln_stretch + stretched - 0.25 * (squares.0 + squares.1) + 0.5 * dot).exp_m1()
            }),
        }
    }
}

impl Dots {
    fn new(sign: f64, x: &Array2<f64>, y: &Array2<f64>) -> Self {
        let queries = x.rows().into_iter().map(|x| x.dot(&x)).collect();
        Dots { sign, queries, mixed: x.dot(&y.t()), keys: y.dot(&y.t()) }
    }

    /// (x ± y)·(x ± y′).
    fn get(&self, i: usize, j: usize, k: usize) -> f64 {
        self.queries[i] + self.sign * (self.mixed[[i, j]] + self.mixed[[i, k]]) + self.keys[[j, k]]
    }

    /// The largest ‖x ± y‖².
    fn largest(&self) -> f64 {
        let pairs = self.mixed.indexed_iter().map(|((i, j), _)| self.get(i, j, j));
        pairs.fold(0.0, f64::max)
    }
}

/// ln of the mean of e^{ω·w} over ‖ω‖ = √d as a function of ‖w‖²: a table, between whose entries cubics run.
struct Sphere {
    step: f64,
    table: Vec<f64>,
}

/// Entries of the table.
const ENTRIES: usize = 4096;

impl Sphere {
    /// For ‖w‖² up to `largest`.
    fn new(dim: usize, largest: f64) -> Self {
        let step = (largest.sqrt() / (ENTRIES - 3) as f64).max(f64::MIN_POSITIVE);
        let (half, d) = (0.5 * dim as f64, dim as f64);
        let table =
            (0..ENTRIES).map(|k| ln_0f1(half, 0.25 * d * (step * (k as f64 - 1.0)).powi(2))).collect();
        Sphere { step, table }
    }

    fn ln_mean(&self, square: f64) -> f64 {
        let place = square.max(0.0).sqrt() / self.step;
        let whole = (place as usize).min(ENTRIES - 4);
        let (t, p) = (place - whole as f64, &self.table[whole..whole + 4]);
        // Lagrange's polynomial through the entries at −1, 0, 1 and 2.
        p[0] * (-t * (t - 1.0) * (t - 2.0) / 6.0)
            + p[1] * ((t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0)
            + p[2] * (-(t + 1.0) * t * (t - 2.0) / 2.0)
            + p[3] * ((t + 1.0) * t * (t - 1.0) / 6.0)
    }
}
