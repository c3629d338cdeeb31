//! [`Covariance`]: what two estimates that share a point have in common, as a page of a map states it.

use std::fmt;
use std::sync::Arc;

/// The relative covariance Cov(K̂(x, y), K̂(x, y′))/(K(x, y) K(x, y′)) of estimates from one frequency, as a function of
/// products of w = x ± y and w′ = x ± y′.
#[derive(Clone)]
pub(crate) struct Covariance {
    /// The sign of y in w.
    pub sign: f64,
    /// Factors of the coordinates of w and w′ for a second set of products; none if it is not needed.
    pub stretch: Option<Vec<f64>>,
    /// Whether the mean of exponentials over a sphere is needed.
    pub spherical: bool,
    value: Arc<dyn Fn(&Products<'_>) -> f64 + Send + Sync>,
}

/// Products of w and w′.
pub(crate) struct Products<'a> {
    /// d.
    pub dim: usize,
    /// w·w′.
    pub dot: f64,
    /// ‖w‖² and ‖w′‖².
    pub squares: [f64; 2],
    /// The same of stretched coordinates: product, squares.
    pub stretched: (f64, [f64; 2]),
    /// ln of the mean of e^{ω·w} over ‖ω‖ = √d, as a function of ‖w‖².
    pub ln_mean: &'a dyn Fn(f64) -> f64,
}

impl Covariance {
    /// A function of the products of w = x + y.
    pub fn of_sums(value: impl Fn(&Products<'_>) -> f64 + Send + Sync + 'static) -> Self {
        Covariance { sign: 1.0, stretch: None, spherical: false, value: Arc::new(value) }
    }

    /// A function of the products of w = x − y.
    pub fn of_differences(value: impl Fn(&Products<'_>) -> f64 + Send + Sync + 'static) -> Self {
        Covariance { sign: -1.0, ..Self::of_sums(value) }
    }

    /// The same function, with products of coordinates times these factors as well.
    pub fn stretched(self, stretch: Vec<f64>) -> Self {
        Covariance { stretch: Some(stretch), ..self }
    }

    /// For frequencies of norm √d, where `relative` combines e^{c} − 1 at w·w′ and at −w·w′.
    pub fn on_a_sphere(relative: fn(f64, f64) -> f64) -> Self {
        let value = move |p: &Products<'_>| {
            let [own, other] = p.squares;
            let single = (p.ln_mean)(own) + (p.ln_mean)(other);
            let at = |dot: f64| ((p.ln_mean)(own + other + 2.0 * dot) - single).exp_m1();
            relative(at(p.dot), at(-p.dot))
        };
        Covariance { spherical: true, ..Self::of_sums(value) }
    }

    /// The value for these products.
    pub fn at(&self, products: &Products<'_>) -> f64 {
        (self.value)(products)
    }
}

impl fmt::Debug for Covariance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Covariance").field("sign", &self.sign).finish_non_exhaustive()
    }
}
