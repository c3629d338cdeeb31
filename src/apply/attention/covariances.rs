//! [`Covariances`]: the covariances of a map's estimates for all pairs of keys of each query.

use ndarray::{Array1, Array2};

use crate::map::{Covariance, Products};
use crate::numeric::special::ln_0f1;

/// The relative covariances of estimates by one frequency, for points.
pub(super) struct Covariances<'a> {
    of: &'a Covariance,
    dim: usize,
    dots: Dots,
    /// Of stretched coordinates, where the covariance needs them.
    stretched: Option<Dots>,
    sphere: Option<Sphere>,
}

impl<'a> Covariances<'a> {
    /// For queries and keys.
    pub fn new(of: &'a Covariance, [x, y]: &[Array2<f64>; 2]) -> Self {
        let (dots, dim) = (Dots::new(of.sign, x, y), x.ncols());
        let stretched = of.stretch.as_ref().map(|stretch| {
            let stretch = Array1::from(stretch.clone());
            Dots::new(of.sign, &(x * &stretch), &(y * &stretch))
        });
        let sphere = of.spherical.then(|| Sphere::new(dim, 4.0 * dots.largest()));
        Covariances { of, dim, dots, stretched, sphere }
    }

    /// Of the estimates for query `i` and the keys `j` and `k`.
    pub fn get(&self, i: usize, j: usize, k: usize) -> f64 {
        let of = |dots: &Dots| (dots.get(i, j, k), [dots.get(i, j, j), dots.get(i, k, k)]);
        let (dot, squares) = of(&self.dots);
        let ln_mean = |square: f64| self.sphere.as_ref().map_or(f64::NAN, |sphere| sphere.ln_mean(square));
        let stretched = self.stretched.as_ref().map_or((f64::NAN, [f64::NAN; 2]), of);
        self.of.at(&Products { dim: self.dim, dot, squares, stretched, ln_mean: &ln_mean })
    }
}

/// Products of sums w = x ± y, from those of points.
struct Dots {
    sign: f64,
    queries: Vec<f64>,
    mixed: Array2<f64>,
    keys: Array2<f64>,
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
