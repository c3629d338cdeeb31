//! [`PairStatistics`]: parameters chosen from the statistics of queries and keys.

use crate::error::{Result, check_size, checked_positive};
use crate::theory::gerf::{self, GerfSign};
use crate::theory::{Law, Pair, counts, diagonal};

use super::Statistics;
use super::statistics::Coordinate;

/// The largest mean that closed forms receive; they compute with up to four times that.
const LARGEST: f64 = f64::MAX / 8.0;
/// The smallest λ that is chosen, in expected counts.
const LEAST_LAMBDA: f64 = 1e-12;

/// The statistics of queries x and keys y, from which parameters are chosen that are optimal on average.
///
/// ```
/// use random_features::ndarray::arr2;
/// use random_features::data::{PairStatistics, Statistics};
/// use random_features::theory::gerf::GerfSign;
/// let x = Statistics::of(&arr2(&[[1.0, 0.0], [0.0, 2.0]]))?;
/// let y = Statistics::of(&arr2(&[[0.0, -2.0]]))?;
/// let pairs = PairStatistics::new(&x, &y)?;
/// // ‖x+y‖² is 5 and 0, ‖x−y‖² is 5 and 16.
/// assert_eq!(pairs.mean_squared_sum(GerfSign::Plus), 2.5);
/// assert_eq!(pairs.mean_squared_sum(GerfSign::Minus), 10.5);
/// assert_eq!(pairs.poisson_per_dimension(), [1e-12, 8f64.sqrt()]);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Parameters minimise the mean logarithm of the second moment of an estimate over all pairs (xᵢ, yⱼ), each weighted by
/// the product of its points' weights. For OPRF and the Poisson map this mean depends only on the statistics. For other
/// maps the closed form is evaluated at averages, as each method says. Points must have been divided by the
/// lengthscale ([`Statistics::divided_by`]). For a Gram matrix of one set of points use its statistics for both sides.
///
/// # Cost
/// O(d) per parameter, for any number of points.
///
/// # References
/// Likhosherstov et al., *Chefs' Random Tables*, theorems 3.2 to 3.5 and appendix 9.10.2.
#[derive(Clone, Copy, Debug)]
pub struct PairStatistics<'a> {
    x: &'a Statistics,
    y: &'a Statistics,
}

impl<'a> PairStatistics<'a> {
    /// The statistics of both sides.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the dimensions differ, [`NoData`](crate::Error::NoData) if a side has no weight.
    pub fn new(x: &'a Statistics, y: &'a Statistics) -> Result<Self> {
        check_size("the dimension of y", x.dim(), y.dim())?;
        x.check_data("the choice of a parameter for x")?;
        y.check_data("the choice of a parameter for y")?;
        Ok(PairStatistics { x, y })
    }

    /// The mean of ‖x + s y‖² over all pairs, mean ‖x‖² + mean ‖y‖² + 2s mean x · mean y; +∞ on overflow.
    ///
    /// It is summed as Σₗ Var xₗ + Var yₗ + (mean xₗ + s mean yₗ)², which does not cancel.
    pub fn mean_squared_sum(&self, s: GerfSign) -> f64 {
        self.mean_squared_sums(s).into_iter().sum()
    }

    /// The mean of (xₗ + s yₗ)² over all pairs for each coordinate l; +∞ on overflow.
    pub fn mean_squared_sums(&self, s: GerfSign) -> Vec<f64> {
        self.each(|x, y| x.variance + y.variance + x.mean_plus(s.value(), y).powi(2))
    }

    /// The parameters of OPRF: the real A ≤ 0 that minimises the mean logarithm of the second moment.
    ///
    /// It is [`gerf::optimal`] at the mean of ‖x+y‖², which is exact, since the logarithm is affine in ‖x+y‖².
    pub fn oprf(&self) -> (f64, GerfSign) {
        let best = gerf::optimal(self.x.dim(), self.mean_squared_sum(GerfSign::Plus).min(LARGEST));
        (best.a, GerfSign::Plus)
    }

    /// The A and s of the best generalised exponential map: they minimise the second moment of an average pair.
    ///
    /// The closed form is taken at the means of ‖x+y‖² and ‖x−y‖². For s = 1 the best A is that of
    /// [`oprf`](PairStatistics::oprf); for s = −1 it lies between 0, which is the trigonometric map, and ⅛. The two are
    /// compared at an equal number m of frequencies, which give 2m features for s = −1 and m for s = 1; ties go to s =
    /// 1. If many pairs are far from the average one, A = 0 (exact at x = y or x = −y) may be better.
    ///
    /// A is real although complex ones are allowed. At the best real A the second derivative along Im A is positive for
    /// s = 1, and on fine grids of the half plane Re A < ⅛, for d up to 1024 and means up to 1e5, no complex A was
    /// better for either s. Source: Chefs' Random Tables, Theorem 3.2; location of the minimum: new.
    pub fn gerf(&self) -> (f64, GerfSign) {
        self.better_gerf(1)
    }

    /// The A and s of the best generalised exponential map, chosen as by [`gerf`](PairStatistics::gerf), except that the two s are
    /// compared at an equal number of real features: s = 1 has twice as many frequencies.
    pub fn gerf_of_features(&self) -> (f64, GerfSign) {
        self.better_gerf(2)
    }

    /// The best map if s = 1 has `more` frequencies for each frequency of s = −1.
    fn better_gerf(&self, more: usize) -> (f64, GerfSign) {
        let pair = self.mean_pair();
        let ln_variance = |a: f64, s, m: usize| {
            gerf::ln_variance(&pair, a.into(), s, &Law::independent(m)).unwrap_or(f64::INFINITY)
        };
        let plus = gerf::optimal(pair.dim, pair.sum).a;
        let minus = gerf::optimal_minus(pair.dim, pair.difference);
        if ln_variance(minus, GerfSign::Minus, 1) < ln_variance(plus, GerfSign::Plus, more) {
            (minus, GerfSign::Minus)
        } else {
            (plus, GerfSign::Plus)
        }
    }

    /// λ of the Poisson map: √(Σ tₗ²/d) with tₗ² = mean xₗ² · mean yₗ², but at least 1e-12.
    ///
    /// It minimises the mean over pairs of ln E f² = dλ + Σ xₗ²yₗ²/λ − ‖x‖² − ‖y‖², since the mean of xₗ²yₗ² over pairs is
    /// tₗ². The lower bound keeps λ positive, for example if all data are 0; the relative variance of the estimate is
    /// then about d · 1e-12. Source: Chefs' Random Tables, Theorem 3.4.
    pub fn poisson(&self) -> f64 {
        let products = self.root_mean_square_products();
        let largest = products.iter().copied().fold(0.0, f64::max);
        if largest <= LEAST_LAMBDA {
            return LEAST_LAMBDA;
        }
        // Products are relative to the largest, so that squares do not overflow.
        let relative: Vec<f64> = products.iter().map(|t| t / largest).collect();
        (largest * counts::optimal_lambda(&relative)).max(LEAST_LAMBDA)
    }

    /// λₗ of the Poisson map with a rate for each coordinate: tₗ = √(mean xₗ² · mean yₗ²), each at least
    /// 1e-12.
    ///
    /// With rates λₗ the logarithm of the second moment is Σₗ (λₗ + xₗ²yₗ²/λₗ) − ‖x‖² − ‖y‖². Its mean over
    /// pairs is Σₗ (λₗ + tₗ²/λₗ) plus a constant: each coordinate has its minimum 2tₗ at λₗ = tₗ. One rate
    /// for all leaves 2√(d Σ tₗ²), which is never less than 2 Σ tₗ (Cauchy–Schwarz). Source: new.
    pub fn poisson_per_dimension(&self) -> Vec<f64> {
        self.root_mean_square_products().into_iter().map(|t| t.max(LEAST_LAMBDA)).collect()
    }

    /// p of the geometric map: [`counts::optimal_p`] of the products mean|xₗ| · mean|yₗ|; 1 − 1e-12 if all of
    /// them are 0.
    ///
    /// The logarithm of the second moment is evaluated at mean|xₗyₗ| over pairs; it is convex, so this is a lower bound
    /// on its mean. Source: Chefs' Random Tables, Theorem 3.5.
    pub fn geometric(&self) -> f64 {
        counts::optimal_p(&self.magnitude_products())
    }

    /// tₗ = √(mean xₗ² · mean yₗ²): the root mean square of xₗyₗ over all pairs.
    pub fn root_mean_square_products(&self) -> Vec<f64> {
        // Roots are taken first, because the product of squares may overflow or underflow.
        self.each(|x, y| x.mean_square().sqrt() * y.mean_square().sqrt())
    }

    /// tₗ = mean|xₗ| · mean|yₗ|: the mean of |xₗyₗ| over all pairs.
    pub fn magnitude_products(&self) -> Vec<f64> {
        self.each(|x, y| x.magnitude * y.magnitude)
    }

    /// The shift c for which all coordinates of x − c and y − c are positive: the minimum of each coordinate over both
    /// sides, minus `epsilon`.
    ///
    /// K(x, y) = K(x − c, y − c) for the Gaussian kernel, and Poisson and geometric features of points with positive
    /// coordinates are positive. If `epsilon` is below the resolution of `f64`, the next number below the minimum is
    /// used. Parameters must be chosen again for the shifted points. Source: Chefs' Random Tables, appendix 9.10.2.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if `epsilon` is not positive and finite.
    pub fn shift(&self, epsilon: f64) -> Result<Vec<f64>> {
        checked_positive("epsilon", epsilon)?;
        Ok(self.each(|x, y| {
            let least = x.min.min(y.min);
            (least - epsilon).min(least.next_down())
        }))
    }

    /// The real diagonal of the complex-exponential map for two clusters: aₖ = (mean yₖ²/mean xₖ²)^{1/4},
    /// which minimises the mean of ‖Ax + A⁻¹y‖² over them.
    ///
    /// aₖ is `epsilon` where only the yₖ are all 0, 1/`epsilon` where only the xₖ are, and 1 where both are
    /// ([`diagonal::robust`]).
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if `epsilon` is not positive and finite.
    pub fn robust_diagonal(&self, epsilon: f64) -> Result<Vec<f64>> {
        checked_positive("epsilon", epsilon)?;
        let of =
            |side: &Statistics| side.coordinates().iter().map(Coordinate::mean_square).collect::<Vec<_>>();
        Ok(diagonal::robust(&of(self.x), &of(self.y), epsilon))
    }

    /// The scalars of an average pair, limited to the range of closed forms. The angle is not set.
    fn mean_pair(&self) -> Pair {
        let dot = self.sum(|x, y| x.mean * y.mean);
        Pair {
            dim: self.x.dim(),
            norms: self.sum(|x, y| x.mean_square() + y.mean_square()).min(LARGEST),
            norm_difference: self.sum(|x, y| x.mean_square() - y.mean_square()),
            sum: self.mean_squared_sum(GerfSign::Plus).min(LARGEST),
            difference: self.mean_squared_sum(GerfSign::Minus).min(LARGEST),
            dot,
            angle: f64::NAN,
        }
    }

    fn coordinates(&self) -> impl Iterator<Item = (&'a Coordinate, &'a Coordinate)> {
        self.x.coordinates().iter().zip(self.y.coordinates())
    }

    fn sum(&self, term: impl Fn(&Coordinate, &Coordinate) -> f64) -> f64 {
        self.coordinates().map(|(x, y)| term(x, y)).sum()
    }

    fn each(&self, value: impl Fn(&Coordinate, &Coordinate) -> f64) -> Vec<f64> {
        self.coordinates().map(|(x, y)| value(x, y)).collect()
    }
}
