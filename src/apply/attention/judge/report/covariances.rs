//! [`Covariances`]: the covariances of a map's estimates for all pairs of keys of each query.

use ndarray::{Array1, Array2};

use crate::map::{Covariance, Opposites, Products, RowProducts, SphereMeans};
use crate::numeric::special::ln_0f1;
use crate::numeric::{row_products, slice_of};

/// Products of points of both sides, from which follow those of sums and differences.
#[derive(Clone, Debug)]
pub(super) struct PointProducts {
    dim: usize,
    /// ‖x‖².
    queries: Vec<f64>,
    /// x·y.
    mixed: Array2<f64>,
    /// y·y′.
    keys: Array2<f64>,
}

impl PointProducts {
    pub fn new([x, y]: &[Array2<f64>; 2]) -> Self {
        let queries = x.rows().into_iter().map(|x| x.dot(&x)).collect();
        PointProducts { dim: x.ncols(), queries, mixed: row_products(x, y), keys: row_products(y, y) }
    }

    /// Products of points whose coordinates are multiplied by these factors.
    fn stretched([x, y]: &[Array2<f64>; 2], factors: &[f64]) -> Self {
        let factors = Array1::from(factors.to_vec());
        PointProducts::new(&[x * &factors, y * &factors])
    }

    /// The largest ‖x ± y‖².
    fn largest(&self, sign: f64) -> f64 {
        let square = |(i, j)| self.queries[i] + 2.0 * sign * self.mixed[[i, j]] + self.keys[[j, j]];
        ndarray::indices(self.mixed.dim()).into_iter().map(square).fold(0.0, f64::max)
    }
}

/// The relative covariances of estimates by one frequency, for points times the root of a scale.
pub(super) struct Covariances<'a> {
    of: &'a Covariance,
    scale: f64,
    products: &'a PointProducts,
    /// Products of stretched coordinates, where the covariance needs them.
    stretched: Option<PointProducts>,
    sphere: Option<Sphere>,
}

impl<'a> Covariances<'a> {
    /// For points that have these products.
    pub fn new(
        of: &'a Covariance,
        scale: f64,
        images: &[Array2<f64>; 2],
        products: &'a PointProducts,
    ) -> Self {
        let stretched = of.stretch.as_ref().map(|factors| PointProducts::stretched(images, factors));
        let largest = || 4.0 * scale * products.largest(of.sign);
        let sphere = of.spherical.then(|| Sphere::new(products.dim, largest()));
        Covariances { of, scale, products, stretched, sphere }
    }

    /// Covariances of the estimates for query `i`.
    pub fn of_query(&'a self, i: usize) -> QueryCovariances<'a> {
        let sums = |products: &'a PointProducts| SumProducts::new(products, i, self.of.sign, self.scale);
        let (plain, stretched) = (sums(self.products), self.stretched.as_ref().map(sums));
        let ln_means = |sphere: &Sphere| plain.squares.iter().map(|square| sphere.ln_mean(*square)).collect();
        QueryCovariances {
            all: self,
            ln_means: self.sphere.as_ref().map(ln_means).unwrap_or_default(),
            plain,
            stretched,
            opposites: Opposites::default(),
        }
    }
}

/// The covariances of the estimates for one query and all pairs of keys.
pub(super) struct QueryCovariances<'a> {
    all: &'a Covariances<'a>,
    plain: SumProducts<'a>,
    stretched: Option<SumProducts<'a>>,
    /// ln of the mean of e^{ω·w} over a sphere for each key, where the covariance needs them.
    ln_means: Vec<f64>,
    opposites: Opposites,
}

impl QueryCovariances<'_> {
    /// Writes the covariances of key `j` with the keys 0 … `j`.
    pub fn write_row(&mut self, j: usize, out: &mut [f64]) {
        let Covariances { of, sphere, products, .. } = self.all;
        let ln_mean = sphere.as_ref().map(|sphere| |square: f64| sphere.ln_mean(square));
        let ln_means = &self.ln_means;
        let sphere =
            ln_mean.as_ref().map(|ln_mean| SphereMeans { ln_mean, own: ln_means[j], others: ln_means });
        let stretched = self.stretched.as_mut().map(|sums| sums.row(j));
        let row = Products { dim: products.dim, plain: self.plain.row(j), stretched, sphere };
        of.write(&row, out, &mut self.opposites);
    }
}

/// Products of the sums (or differences) w of one query with all keys.
struct SumProducts<'a> {
    scale: f64,
    /// ‖x‖² ± x·y for each key.
    own: Vec<f64>,
    /// ± x·y for each key.
    mixed: Vec<f64>,
    keys: &'a Array2<f64>,
    /// ‖w‖² for each key.
    squares: Vec<f64>,
    dots: Vec<f64>,
}

impl<'a> SumProducts<'a> {
    fn new(products: &'a PointProducts, i: usize, sign: f64, scale: f64) -> Self {
        let PointProducts { queries, mixed, keys, .. } = products;
        let mixed: Vec<f64> = mixed.row(i).iter().map(|dot| sign * dot).collect();
        let own: Vec<f64> = mixed.iter().map(|dot| queries[i] + dot).collect();
        let square = |((own, mixed), key): ((&f64, &f64), &f64)| scale * (own + mixed + key);
        let squares = own.iter().zip(&mixed).zip(keys.diag()).map(square).collect();
        SumProducts { scale, dots: vec![0.0; own.len()], own, mixed, keys, squares }
    }

    /// Products of key `j` with the keys 0 … `j`.
    fn row(&mut self, j: usize) -> RowProducts<'_> {
        let (scale, own, keys) = (self.scale, self.own[j], self.keys.row(j));
        let (dots, squares) = (&mut self.dots[..=j], &self.squares[..=j]);
        for ((dot, mixed), key) in dots.iter_mut().zip(&self.mixed).zip(slice_of(&keys)) {
            *dot = scale * (own + mixed + key);
        }
        RowProducts { dots, square: self.squares[j], squares }
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
