//! [`Covariance`]: the covariance of two estimates that share a point, as a map's definition states it.

use std::fmt;
use std::sync::Arc;

use crate::numeric::{Isa, cosh_m1, exp_m1};

/// The relative covariance Cov(K̂(x, y), K̂(x, y′))/(K(x, y) K(x, y′)) of estimates from one frequency, as a function of
/// products of w = x ± y and w′ = x ± y′.
///
/// The estimate from −ω at w′ is the estimate from ω at −w′. So the covariance for a frequency with its opposite is the sum of
/// the values at w′ and at −w′. For features that are even in ω both are equal, and a pair counts once.
#[derive(Clone)]
pub(crate) struct Covariance {
    /// The sign of y in w.
    pub sign: f64,
    /// Factors of the coordinates of w and w′ for a second set of products; `None` if it is not needed.
    pub stretch: Option<Vec<f64>>,
    /// Whether the mean of exponentials over a sphere is needed.
    pub spherical: bool,
    /// The share of frequencies that come with their opposite.
    paired: f64,
    /// The function that writes the values for a row of products.
    values: Values,
}

/// Writes the values for a row of products.
type Values = Arc<dyn Fn(&Products<'_>, &mut [f64]) + Send + Sync>;

/// Products of one w with a row of others w′.
pub(crate) struct Products<'a> {
    /// d, the dimension of points.
    pub dim: usize,
    /// The products of w and w′ themselves.
    pub plain: RowProducts<'a>,
    /// The products of stretched coordinates, if the covariance needs them.
    pub stretched: Option<RowProducts<'a>>,
    /// Means over a sphere, if the covariance needs them.
    pub sphere: Option<SphereMeans<'a>>,
}

/// ln of the mean of e^{ω·w} over ‖ω‖ = √d.
#[derive(Clone, Copy)]
pub(crate) struct SphereMeans<'a> {
    /// ln of the mean as a function of ‖w‖².
    pub ln_mean: &'a dyn Fn(f64) -> f64,
    /// ln of the mean for w.
    pub own: f64,
    /// ln of the mean for each w′.
    pub others: &'a [f64],
}

/// Products of one vector w with a row of others w′.
#[derive(Clone, Copy)]
pub(crate) struct RowProducts<'a> {
    /// w·w′ for each w′.
    pub dots: &'a [f64],
    /// ‖w‖².
    pub square: f64,
    /// ‖w′‖² for each w′.
    pub squares: &'a [f64],
}

impl<'a> RowProducts<'a> {
    /// The products with −w′ in place of w′; `dots` is filled with −w·w′.
    fn opposite(self, dots: &'a mut Vec<f64>) -> RowProducts<'a> {
        dots.clear();
        dots.extend(self.dots.iter().map(|dot| -dot));
        RowProducts { dots, ..self }
    }
}

impl Covariance {
    /// The covariance as a function of the products of w = x + y.
    pub fn of_sums(values: impl Fn(&Products<'_>, &mut [f64]) + Send + Sync + 'static) -> Self {
        Covariance { sign: 1.0, stretch: None, spherical: false, paired: 0.0, values: Arc::new(values) }
    }

    /// The covariance as a function of the products of w = x − y.
    pub fn of_differences(values: impl Fn(&Products<'_>, &mut [f64]) + Send + Sync + 'static) -> Self {
        Covariance { sign: -1.0, ..Self::of_sums(values) }
    }

    /// Adds products of coordinates times these factors to the arguments.
    pub fn stretched(self, stretch: Vec<f64>) -> Self {
        Covariance { stretch: Some(stretch), ..self }
    }

    /// Sets the share of frequencies that come with their opposite.
    pub fn paired(self, share: f64) -> Self {
        Covariance { paired: share, ..self }
    }

    /// Writes e^{w·w′} − 1.
    pub fn exponential(p: &Products<'_>, out: &mut [f64]) {
        out.copy_from_slice(p.plain.dots);
        exp_m1(Isa::best(), out);
    }

    /// Writes cosh(w·w′) − 1.
    pub fn hyperbolic(p: &Products<'_>, out: &mut [f64]) {
        out.copy_from_slice(p.plain.dots);
        cosh_m1(Isa::best(), out);
    }

    /// The covariance e^c − 1 for frequencies of norm √d, with c = ln E e^{ω·(w + w′)} − ln E e^{ω·w} − ln E e^{ω·w′}; if `even`,
    /// the mean of its values at w′ and at −w′.
    pub fn on_a_sphere(even: bool) -> Self {
        let values = move |p: &Products<'_>, out: &mut [f64]| {
            let RowProducts { dots, square, squares } = p.plain;
            let Some(SphereMeans { ln_mean, own, others }) = p.sphere else { return out.fill(f64::NAN) };
            let at = |sign: f64, k: usize| {
                (ln_mean(square + squares[k] + 2.0 * sign * dots[k]) - own - others[k]).exp_m1()
            };
            for (k, out) in out.iter_mut().enumerate() {
                *out = if even { 0.5 * (at(1.0, k) + at(-1.0, k)) } else { at(1.0, k) };
            }
        };
        Covariance { spherical: true, ..Self::of_sums(values) }
    }

    /// Writes the values for a row of products; `spare` is room for the values of opposite frequencies.
    pub fn write(&self, products: &Products<'_>, out: &mut [f64], spare: &mut Opposites) {
        (self.values)(products, out);
        if self.paired > 0.0 {
            let other = spare.values(products, &self.values);
            out.iter_mut().zip(other).for_each(|(out, other)| *out += self.paired * other);
        }
    }
}

/// Room for the values of opposite frequencies.
#[derive(Default)]
pub(crate) struct Opposites {
    dots: Vec<f64>,
    stretched: Vec<f64>,
    values: Vec<f64>,
}

impl Opposites {
    /// The values at −w′.
    fn values(&mut self, products: &Products<'_>, values: &Values) -> &[f64] {
        let Opposites { dots, stretched, values: out } = self;
        out.resize(products.plain.dots.len(), 0.0);
        let plain = products.plain.opposite(dots);
        let stretched = products.stretched.map(|own| own.opposite(stretched));
        values(&Products { plain, stretched, ..*products }, out);
        out
    }
}

impl fmt::Debug for Covariance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Covariance").field("sign", &self.sign).finish_non_exhaustive()
    }
}
