//! [`Definition`]: the definition of a plain map, which becomes a plan of the engine.

use std::sync::Arc;

use ndarray::Array2;
use num_complex::Complex64;

use super::Covariance;
use super::any_kernel::AnyKernel;
use super::omega::Omega;
use crate::Real;
use crate::digest::Identify;
use crate::engine::{
    Affine, Bias, ConditionedPlan, ExponentSums, Facts, FeatureMap, Input, Leaf, Lift, MapPlan, Projection,
};
use crate::error::{Error, Result};
use crate::frequency::Frequencies;
use crate::kernel::{Kernel, Lengthscale, RegularisedSoftmax, Softmax};
use crate::theory::{Law, Pair, Radius};

/// The frequencies and the kernel of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub omega: &'a Omega,
    pub kernel: &'a AnyKernel,
}

impl<'a> Setting<'a> {
    /// The law of real frequencies, drawn or to be drawn; `None` for others.
    pub fn law(&self) -> Option<Law> {
        self.omega.law()
    }

    /// The law of the norms of the frequencies, as far as it is known.
    pub fn radius(&self) -> Radius {
        self.law().map_or(Radius::Unstated, |law| law.radius())
    }

    /// The kernel itself, if the frequencies have the radii that it needs.
    pub fn target_kernel<T: Real>(&self) -> Option<Box<dyn Kernel<T>>> {
        if self.fits() { self.kernel.kernel() } else { None }
    }

    /// Whether the radii of the frequencies are those that the kernel needs.
    pub fn fits(&self) -> bool {
        self.kernel.radius() == Some(self.radius())
    }

    /// Accepts real frequencies, drawn or not. If their radii are stated, they must be those of the kernel, and `serves` must
    /// accept them.
    pub fn check_radii(&self, map: &'static str, serves: impl Fn(Radius) -> bool) -> Result<()> {
        self.omega.check_real(map)?;
        let radius = self.radius();
        let stated = radius.is_named();
        let served =
            self.kernel.radius().is_some_and(|needed| serves(needed) && (!stated || radius == needed));
        let padded =
            self.kernel.padded_dim(self.omega.dim()).is_none_or(|dim| dim == self.omega.padded_dim());
        if served && padded { Ok(()) } else { Err(self.refused(map)) }
    }

    /// The covariance of exponentials of sums, for frequencies ~ N(0, I) or of norm √d; if `even`, the covariance of their means
    /// over ω and −ω.
    pub fn covariance_of_sums(&self, even: bool) -> Option<Covariance> {
        match self.radius() {
            _ if !self.fits() => None,
            Radius::RootDim if self.omega.padded_dim() == self.omega.dim() => {
                Some(Covariance::on_a_sphere(even))
            }
            Radius::Chi if even => Some(Covariance::of_sums(Covariance::hyperbolic)),
            Radius::Chi => Some(Covariance::of_sums(Covariance::exponential)),
            _ => None,
        }
    }

    /// Accepts only targets without a named kernel.
    pub fn check_implied(&self, map: &'static str) -> Result<()> {
        match self.kernel {
            AnyKernel::Implied(_) => self.omega.check_real(map),
            _ => Err(self.refused(map)),
        }
    }

    /// The error that the map does not estimate the kernel on these frequencies.
    pub fn refused(&self, map: &'static str) -> Error {
        let kernel = match self.kernel {
            AnyKernel::Implied(_) => "a kernel for a bare lengthscale, which names none".into(),
            kernel => format!("the kernel {kernel}"),
        };
        self.does_not_estimate(map, kernel)
    }

    /// The error that the map does not estimate the kernel of this description on these frequencies.
    pub fn does_not_estimate(&self, map: &'static str, kernel: String) -> Error {
        let frequencies = match (self.omega, self.radius()) {
            (Omega::None(_) | Omega::Sketch(_), _) => "no frequencies".into(),
            (Omega::Counts(_) | Omega::DrawCounts(_), _) => "counts".into(),
            (_, radius) => radius.to_string(),
        };
        Error::Kernel { map, frequencies, kernel }
    }
}

/// The definition of a plain map.
///
/// It implements [`form`](Definition::form), or [`features`](Definition::features) if the map has no normal form. Methods that
/// need only the law of the frequencies (`check`, `kernel`, `log_variance`, `covariance`) are also called before these are
/// drawn.
pub(crate) trait Definition: Identify {
    /// The name of the map in errors and output.
    fn name(&self) -> &'static str;

    /// Rejects unsuitable frequencies and targets, and parameters for another dimension. Lengthscales have been checked
    /// before.
    fn check(&self, setting: Setting<'_>) -> Result<()>;

    /// The function that makes features of projections; `None` without a normal form.
    fn lift(&self) -> Option<Lift>;

    /// The number of features for each frequency, or for each coordinate if there are no frequencies: those of the lift, or twice
    /// as many if features of −ω follow those of ω.
    fn width(&self) -> usize {
        self.lift().map_or(1, Lift::width)
    }

    /// D, the number of features of a point; by default [`width`](Definition::width) for each frequency, or for each coordinate where
    /// there are no frequencies.
    fn feature_dim(&self, setting: Setting<'_>) -> usize {
        let places = if let Omega::None(d) = setting.omega { *d } else { setting.omega.m() };
        places.saturating_mul(self.width())
    }

    /// Whether the points themselves are projected, so that a matrix may be applied to those of side Y.
    fn takes_matrix(&self) -> bool {
        true
    }

    /// Whether the kernel is estimated at all points; `false` with a shift beyond which points are clamped.
    fn is_for_all_points(&self) -> bool {
        true
    }

    /// The number of real projections of a point on each frequency.
    fn projections(&self) -> usize {
        1
    }

    /// Whether all features are signs of one magnitude, of which a hybrid takes shares.
    fn is_of_signs(&self) -> bool {
        false
    }

    /// The terms of the normal form, after [`check`](Definition::check).
    ///
    /// # Errors
    /// [`NotDrawn`](Error::NotDrawn) before the frequencies are drawn.
    fn form(&self, _setting: Setting<'_>) -> Result<NormalForm> {
        Err(Error::Unsupported { what: "normal form" })
    }

    /// The features of a map without a normal form, after [`check`](Definition::check).
    ///
    /// # Errors
    /// The errors of [`form`](Definition::form).
    fn features<T: Real>(&self, _setting: Setting<'_>) -> Result<Arc<dyn FeatureMap<T>>> {
        Err(Error::Unsupported { what: "features without a normal form" })
    }

    /// The kernel that is estimated; `None` if it is not known.
    fn kernel<T: Real>(&self, setting: Setting<'_>) -> Option<Box<dyn Kernel<T>>> {
        setting.target_kernel()
    }

    /// ln of the variance of an estimate at two points divided by the lengthscale, whose scalars are `pair`; `None`
    /// without a closed form.
    fn log_variance(&self, setting: Setting<'_>, u: &[f64], v: &[f64], pair: &Pair) -> Option<f64>;

    /// ln of the largest difference between terms of an estimate, which is their mean over frequencies, for the scalars of two
    /// points divided by the lengthscale; `None` if no bound is known.
    fn ln_range(&self, _setting: Setting<'_>, _pair: &Pair) -> Option<f64> {
        None
    }

    /// The softmax kernel with ℓ = 1, or its variant that frequencies of this law estimate.
    fn softmax_kernel(&self, _omega: &Omega) -> AnyKernel {
        Softmax::default().into()
    }

    /// Gradients with respect to the frequencies and to the coefficients of the map, from the sums of derivatives with respect to
    /// the exponents of features; `None` if features depend on the frequencies in another way.
    fn pull_back(&self, setting: Setting<'_>, sums: &ExponentSums) -> Option<(Array2<f64>, Vec<f64>)> {
        let form = self.form(setting).ok()?;
        let plain = form.weights.is_none() && form.stretch.is_none();
        plain.then(|| (sums.slopes.mapv(|slope| slope.re), Vec::new()))
    }

    /// The relative covariance of two estimates that share a point, for one frequency without its opposite; `None` without a
    /// closed form, or if the radii of the frequencies are not those of the kernel.
    fn covariance(&self, _setting: Setting<'_>) -> Option<Covariance> {
        None
    }
}

/// The softmax kernel, or its regularised form if the radii are √d.
pub(crate) fn softmax_or_regularised(omega: &Omega) -> AnyKernel {
    match omega.law() {
        Some(law) if law.radius() == Radius::RootDim => {
            RegularisedSoftmax::in_dimension(omega.padded_dim()).into()
        }
        _ => Softmax::default().into(),
    }
}

/// φⱼ(x) = m^{−½} lift(β⟨ωⱼ, g(x)⟩ + aⱼ) e^{c(x)}, as plain data but for the [lift](Definition::lift).
pub(crate) struct NormalForm {
    /// The function g, and c if g is not the identity.
    pub input: Input,
    /// The transformation of the points of each side before g, if there is one.
    pub affine: Option<[Affine; 2]>,
    /// β on each side.
    pub slopes: [Complex64; 2],
    /// aⱼ for each frequency; `None` if all are 0.
    pub weights: Option<Vec<Complex64>>,
    /// A factor of each coordinate of the frequencies; `None` if all are 1.
    pub stretch: Option<Vec<f64>>,
    /// The coefficient of ‖x/ℓ‖² in c.
    pub row: f64,
    /// A constant added to every exponent, without −½ ln m.
    pub constant: f64,
    pub symmetric: bool,
    pub non_negative: bool,
}

impl NormalForm {
    /// The form with g(x) = x, β = 1, a = 0 and no constant: a symmetric map.
    pub fn new(row: f64) -> Self {
        NormalForm {
            input: Input::Points,
            affine: None,
            slopes: [Complex64::ONE; 2],
            weights: None,
            stretch: None,
            row,
            constant: 0.0,
            symmetric: true,
            non_negative: false,
        }
    }

    /// Multiplies points on side Y by M first, for K(x, My).
    pub fn with_matrix(self, m: &Array2<f64>) -> Self {
        let affine = [Array2::eye(m.nrows()), m.clone()].map(Affine::linear);
        NormalForm { affine: Some(affine), symmetric: false, ..self }
    }

    /// The plan of the engine, with a lift and the number of features for each frequency.
    pub fn plan<T: Real>(
        mut self,
        (lift, width): (Lift, usize),
        omega: &Omega,
        lengthscale: &Lengthscale,
    ) -> Result<MapPlan<T>> {
        if let Some(affine) = self.affine.take() {
            let base = self.plan((lift, width), omega, lengthscale)?;
            return Ok(MapPlan::Conditioned(ConditionedPlan::new(base, affine, lengthscale)?));
        }
        let projection = match (&self.input, omega) {
            (Input::Points, Omega::Frequencies(omega)) => match &self.stretch {
                None => Projection::new(omega.clone(), lengthscale.clone())?,
                Some(factors) => Projection::new(stretched(omega, factors)?, lengthscale.clone())?,
            },
            (_, Omega::Frequencies(omega)) => Projection::new(omega.clone(), 1.0)?,
            (_, Omega::Counts(counts)) => {
                let rows = counts.rows().mapv(|count| count as f64);
                Projection::new(Frequencies::from_rows(rows)?, 1.0)?
            }
            (_, Omega::Draw(_) | Omega::DrawCounts(_)) => return Err(Error::NotDrawn),
            (_, Omega::None(_) | Omega::Sketch(_)) => {
                let (name, value) = ("the number of frequencies", 0.0);
                return Err(Error::Parameter { name, value, domain: "at least 1" });
            }
        };
        let m = projection.m();
        let facts = Facts {
            symmetric: self.symmetric,
            non_negative: self.non_negative,
            logarithms: lift.is_exponential(),
            ..Facts::new(omega.dim(), vec![m * width])
        };
        // A slope other than 1 is applied with the weights, so it needs some, even if all are 0.
        let sloped = self.slopes.iter().any(|slope| *slope != Complex64::ONE);
        let weights = self.weights.or_else(|| sloped.then(|| vec![Complex64::ZERO; m]));
        let bias = weights.map(|weights| Bias::new(&weights));
        let mean = -0.5 * (m as f64).ln();
        Ok(MapPlan::Leaf(Leaf {
            facts,
            input: Arc::new(self.input),
            projection: Arc::new(projection),
            slopes: self.slopes,
            constant: self.constant + bias.as_ref().map_or(0.0, |bias| bias.top) + mean,
            bias: bias.map(Arc::new),
            lift,
            mirrored: width > lift.width(),
            row: self.row,
            lengthscale: lengthscale.clone(),
        }))
    }
}

/// ‖ω‖² of every frequency, all of which must be finite.
pub(super) fn finite_norms(omega: &Frequencies) -> Result<Vec<f64>> {
    let norms = omega.squared_norms();
    match norms.iter().position(|norm| !norm.is_finite()) {
        None => Ok(norms),
        Some(row) => {
            Err(Error::NotFinite { what: "the squared norms of the frequencies", row, column: None })
        }
    }
}

/// Frequencies with a factor for each coordinate.
fn stretched(omega: &Frequencies, factors: &[f64]) -> Result<Frequencies> {
    omega.check_rows()?;
    let mut rows = omega.rows().into_owned();
    for (mut column, factor) in rows.columns_mut().into_iter().zip(factors) {
        column.mapv_inplace(|v| v * factor);
    }
    Frequencies::from_rows(rows)
}
