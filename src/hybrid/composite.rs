//! [`Hybrid`]: the algebra of hybrid estimators.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use ndarray::{ArrayRef1, ArrayView2};

use super::Coefficient;
use super::tensor::{Filled, Product, Shared, fill_one};
use crate::error::{Error, Result, check_positive, check_size};
use crate::kernel::Kernel;
use crate::map::{Properties, Scratch, Side, Tile};
use crate::theory::{self, Pair};
use crate::{FeatureMap, Real, SignedLog};

/// A hybrid map Σ λ̂ₖ Pₖ + (1 − Σ λ̂ₖ) Q of any maps and coefficients.
///
/// # Definition
/// With λ̂ₖ = aₖ + cₖ Ĉₖ the estimate is the sum of aₖ Pₖ, cₖ Ĉₖ Pₖ, (1 − Σ aₖ) Q and −cₖ Ĉₖ Q: features are blocks, the
/// products are tensor products of features, signs of weights go to side Y. Pₖ, Q and Ĉₖ may be any maps, hybrids too.
///
/// # Variance
/// Unbiased for the bases' kernel if coefficients are independent of the bases. Closed form where the parts have one:
/// Σ E λ̂ₖ² Var Pₖ + E (1 − Σ λ̂ₖ)² Var Q for independent parts ([`theory::hybrid`](crate::theory::hybrid)), and for the
/// bipolar hybrids with shared frequencies ([`angular`](Hybrid::angular), [`gaussian`](Hybrid::gaussian)).
///
/// # Exact where
/// Each base is exact that has all the weight there.
///
/// # Cost
/// That of all parts and of writing the features, Dᵢ(1 + n) for a base of Dᵢ and a coefficient of n features: O(nd + md
/// + mn) a point. Bases that share a [`Projection`](crate::projection::Projection) project once.
///
/// # Example
/// ```
/// use ndarray::arr1;
/// use random_features::frequency::{Independent, Orthogonal, draw};
/// use random_features::hybrid::{Coefficient, Hybrid};
/// use random_features::{FeatureMap, Positive, Trigonometric, rng};
/// let mut rng = rng(1);
/// let mut omega = || draw(2, 32, &Orthogonal, &mut rng);
/// let (positive, trigonometric) = (Positive::softmax(omega()?), Trigonometric::softmax(omega()?));
/// let lambda = Coefficient::angular(draw(2, 8, &Independent, &mut rng)?);
/// let map = Hybrid::<f64>::new(vec![(lambda, Box::new(positive))], Box::new(trigonometric))?;
/// // (1 + 8) (32 + 64) features.
/// assert_eq!(map.feature_dim(), 864);
/// let x = arr1(&[0.3, 1.2]);
/// assert!((map.estimate(&x, &x)? / x.dot(&x).exp() - 1.0).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, equations 8–11; signs instead of imaginary factors: new.
#[derive(Clone, Debug)]
pub struct Hybrid<T> {
    coefficients: Vec<Coefficient<T>>,
    /// P₁, …, Q.
    bases: Vec<Arc<dyn FeatureMap<T>>>,
    pieces: Vec<Piece>,
    blocks: Vec<usize>,
    properties: Properties,
    fingerprint: u64,
    covariance: Covariance,
}

/// What is known of the covariance of different bases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Covariance {
    /// None: they are independent.
    Zero,
    /// Hyperbolic and trigonometric features share m independent frequencies, for a target with this
    /// [`row`](crate::map::Target::row).
    Bipolar(f64),
    /// They share frequencies otherwise.
    Unknown,
}

/// A term of the sum: weight · Ĉ · base, or weight · base.
#[derive(Clone, Copy, Debug)]
struct Piece {
    weight: f64,
    /// Half the logarithm of its magnitude.
    half_weight: f64,
    coefficient: Option<usize>,
    base: usize,
}

impl<T: Real> Hybrid<T> {
    /// The hybrid of terms (λ̂ₖ, Pₖ) and Q, which has the rest of the weight.
    ///
    /// All bases should estimate the same kernel. Coefficients and bases should have frequencies of their own; bases
    /// that share a projection are seen, and the variance has no closed form then.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) without terms or if Σ aₖ overflows; [`Shape`](Error::Shape) if the maps are for
    /// points of different dimensions.
    pub fn new(
        terms: Vec<(Coefficient<T>, Box<dyn FeatureMap<T>>)>,
        rest: Box<dyn FeatureMap<T>>,
    ) -> Result<Self> {
        check_positive("the number of terms of a hybrid", terms.len())?;
        let (coefficients, bases): (Vec<_>, Vec<_>) = terms.into_iter().unzip();
        let bases: Vec<Arc<dyn FeatureMap<T>>> = bases.into_iter().chain([rest]).map(Arc::from).collect();
        let d = bases[0].input_dim();
        for map in maps_of(&coefficients, &bases) {
            check_size("the dimension of a part of the hybrid", d, map.input_dim())?;
        }
        let pieces = pieces(&coefficients)?;
        let blocks = pieces.iter().flat_map(|piece| blocks_of(piece, &coefficients, &bases)).collect();
        let every = |promise: fn(Properties) -> bool| {
            maps_of(&coefficients, &bases).all(|map| promise(map.properties()))
                && pieces.iter().all(|piece| piece.weight > 0.0)
        };
        let properties =
            Properties { symmetric: every(|p| p.symmetric), non_negative: every(|p| p.non_negative) };
        let shares = |(i, map): (usize, &Arc<dyn FeatureMap<T>>)| {
            bases[..i].iter().any(|other| same_projection(map.as_ref(), other.as_ref()))
        };
        let covariance =
            if bases.iter().enumerate().any(shares) { Covariance::Unknown } else { Covariance::Zero };
        let fingerprint = fingerprint(&coefficients, &bases);
        Ok(Hybrid { coefficients, bases, pieces, blocks, properties, fingerprint, covariance })
    }

    pub(super) fn with_covariance(self, covariance: Covariance) -> Self {
        Hybrid { covariance, ..self }
    }

    /// The coefficients λ̂ₖ, in order.
    pub fn coefficients(&self) -> &[Coefficient<T>] {
        &self.coefficients
    }

    /// The features of all bases and then of all coefficients' maps on a tile, projections that are shared taken once.
    fn fill_parts(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        scratch: &mut Scratch<T>,
        logarithmic: bool,
    ) -> Vec<Filled<T>> {
        let maps: Vec<&dyn FeatureMap<T>> = maps_of(&self.coefficients, &self.bases).collect();
        let mut shared: Vec<Shared<'_, T>> = Vec::new();
        let mut parts = Vec::with_capacity(maps.len());
        for map in &maps {
            let sharers = maps.iter().filter(|other| same_projection(*map, **other)).count();
            let part = match map.projection().filter(|_| sharers > 1 && !logarithmic) {
                None => fill_one(*map, side, x, scratch, logarithmic),
                Some(projection) => {
                    let known = shared.iter().position(|known| Arc::ptr_eq(known.projection, projection));
                    let known = known.unwrap_or_else(|| {
                        shared.push(Shared::project(projection, x, scratch));
                        shared.len() - 1
                    });
                    shared[known].fill(*map, side, x.nrows(), scratch)
                }
            };
            parts.push(part);
        }
        shared.into_iter().for_each(|shared| scratch.give(shared.values));
        parts
    }

    /// Multiplies the parts into the tile: values, or logarithms and signs.
    fn fill_with(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
        logarithmic: bool,
    ) {
        let parts = self.fill_parts(side, x, scratch, logarithmic);
        // Coefficients without a map have no part.
        let part_of: Vec<Option<usize>> = self
            .coefficients
            .iter()
            .scan(self.bases.len(), |next, coefficient| {
                let part = coefficient.map.is_some().then_some(*next);
                *next += usize::from(part.is_some());
                Some(part)
            })
            .collect();
        for i in 0..x.nrows() {
            let mut at = (0, 0);
            for piece in &self.pieces {
                let (left_widths, right_widths) = self.widths(piece);
                let product = Product {
                    left: piece.coefficient.and_then(|k| part_of[k]).map(|part| &parts[part]),
                    left_widths,
                    right: &parts[piece.base],
                    right_widths,
                    sign: if side == Side::Y && piece.weight < 0.0 { -T::one() } else { T::one() },
                    half_weight: piece.half_weight,
                    logarithmic,
                };
                product.write(i, tile, &mut at);
            }
        }
        parts.into_iter().for_each(|part| scratch.give(part.values));
    }

    /// The widths of the coefficient's blocks and of the base's.
    fn widths(&self, piece: &Piece) -> (&[usize], &[usize]) {
        let map = piece.coefficient.and_then(|k| self.coefficients[k].map.as_ref());
        (map.map_or(&[1], |map| map.blocks()), self.bases[piece.base].blocks())
    }
}

/// Bases, then the maps of coefficients.
fn maps_of<'a, T: Real>(
    coefficients: &'a [Coefficient<T>],
    bases: &'a [Arc<dyn FeatureMap<T>>],
) -> impl Iterator<Item = &'a dyn FeatureMap<T>> {
    let maps = coefficients.iter().filter_map(|coefficient| coefficient.map.as_deref());
    bases.iter().map(|base| base.as_ref()).chain(maps)
}

impl Piece {
    fn new(weight: f64, coefficient: Option<usize>, base: usize) -> Self {
        Piece { weight, half_weight: 0.5 * weight.abs().ln(), coefficient, base }
    }
}

/// The terms of the sum that are not 0.
fn pieces<T>(coefficients: &[Coefficient<T>]) -> Result<Vec<Piece>> {
    let rest = coefficients.len();
    let mut pieces = Vec::new();
    for (k, coefficient) in coefficients.iter().enumerate() {
        pieces.push(Piece::new(coefficient.constant, None, k));
        pieces.push(Piece::new(coefficient.factor, Some(k), k));
    }
    let left = 1.0 - coefficients.iter().map(|coefficient| coefficient.constant).sum::<f64>();
    pieces.push(Piece::new(left, None, rest));
    for (k, coefficient) in coefficients.iter().enumerate() {
        pieces.push(Piece::new(-coefficient.factor, Some(k), rest));
    }
    if let Some(piece) = pieces.iter().find(|piece| !piece.weight.is_finite()) {
        let (name, value) = ("the sum of the coefficients' constants", piece.weight);
        return Err(Error::Parameter { name, value, domain: "finite" });
    }
    pieces.retain(|piece| piece.weight != 0.0);
    Ok(pieces)
}

/// The widths of the blocks of a piece.
fn blocks_of<T: Real>(
    piece: &Piece,
    coefficients: &[Coefficient<T>],
    bases: &[Arc<dyn FeatureMap<T>>],
) -> Vec<usize> {
    let map = piece.coefficient.and_then(|k| coefficients[k].map.as_deref());
    let left = map.map_or(&[1][..], |map| map.blocks());
    left.iter().flat_map(|p| bases[piece.base].blocks().iter().map(move |q| p * q)).collect()
}

fn same_projection<T: Real>(a: &dyn FeatureMap<T>, b: &dyn FeatureMap<T>) -> bool {
    matches!((a.projection(), b.projection()), (Some(a), Some(b)) if Arc::ptr_eq(a, b))
}

fn fingerprint<T: Real>(coefficients: &[Coefficient<T>], bases: &[Arc<dyn FeatureMap<T>>]) -> u64 {
    let parts: Vec<u64> = maps_of(coefficients, bases).map(|map| map.fingerprint()).collect();
    if parts.contains(&0) {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    parts.into_iter().for_each(|part| hasher.write_u64(part));
    let weights = coefficients.iter().flat_map(|c| [c.constant, c.factor]);
    weights.for_each(|weight| hasher.write_u64(weight.to_bits()));
    hasher.finish().max(1)
}

impl<T: Real> FeatureMap<T> for Hybrid<T> {
    fn input_dim(&self) -> usize {
        self.bases[0].input_dim()
    }

    fn blocks(&self) -> &[usize] {
        &self.blocks
    }

    fn properties(&self) -> Properties {
        self.properties
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        self.fill_with(side, x, tile, scratch, false);
    }

    fn fill_exponents(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> bool {
        self.fill_with(side, x, tile, scratch, true);
        true
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        self.bases.last().and_then(|rest| rest.kernel())
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        let mut terms = Vec::new();
        let (mut mean, mut variance, mut complement_square, mut product) = (0.0, 0.0, 1.0, 0.0);
        for (coefficient, base) in self.coefficients.iter().zip(&self.bases) {
            let (Some(moments), Some(base)) = (coefficient.moments(x, y)?, base.log_variance(x, y)?) else {
                return Ok(None);
            };
            terms.push(moments.square.ln() + base);
            mean += moments.mean;
            variance += moments.square - moments.mean * moments.mean;
            (complement_square, product) = (moments.complement_square, moments.product);
        }
        let last = self.bases.last().map(|rest| rest.log_variance(x, y)).transpose()?.flatten();
        let (Some(rest), true) = (last, self.covariance != Covariance::Unknown) else { return Ok(None) };
        if self.coefficients.len() > 1 {
            complement_square = (1.0 - mean) * (1.0 - mean) + variance;
        }
        let independent = terms.into_iter().fold(complement_square.ln() + rest, theory::ln_add_exp);
        Ok(Some(match self.covariance {
            Covariance::Bipolar(row) => self.shared_variance(independent, product, row, x, y),
            _ => independent,
        }))
    }
}

impl<T: Real> Hybrid<T> {
    /// The variance with the covariance of hyperbolic and trigonometric features on the same frequencies.
    fn shared_variance(
        &self,
        independent: f64,
        product: f64,
        row: f64,
        x: &ArrayRef1<T>,
        y: &ArrayRef1<T>,
    ) -> f64 {
        let m = self.bases[0].projection().map_or(f64::NAN, |projection| projection.count() as f64);
        let pair = Pair::new(x.iter().map(|v| v.widen()).zip(y.iter().map(|v| v.widen())));
        let turn = (0.5 * pair.norm_difference).sin().powi(2);
        let squared_kernel = if row == -0.5 { -pair.difference } else { 2.0 * pair.dot };
        let scale = squared_kernel - m.ln();
        let shared = SignedLog::from(-4.0 * turn * product).scaled(scale);
        let total = SignedLog::sum([SignedLog::positive(independent), shared].into_iter());
        if total.sign < 0.0 { f64::NEG_INFINITY } else { total.ln_abs }
    }
}
