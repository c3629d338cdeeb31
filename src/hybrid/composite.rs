//! [`Hybrid`]: the algebra of hybrid estimators.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;

use ndarray::{ArrayRef1, ArrayView2};

use super::Coefficient;
use super::room::Room;
use super::tensor::{self, Block, Product};
use crate::error::{Error, Result, check_positive, check_size};
use crate::kernel::Kernel;
use crate::map::batch::ranges;
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
    /// P₁, …, Q, and then the maps of the coefficients.
    parts: Vec<Part<T>>,
    products: Vec<Product>,
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

/// A map that the hybrid is made of, and where its features stand among those of all parts.
#[derive(Clone, Debug)]
struct Part<T> {
    map: Arc<dyn FeatureMap<T>>,
    columns: Range<usize>,
    blocks: Range<usize>,
    /// The first part on the same projection: itself, if no earlier one shares it.
    leader: usize,
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
        let maps = coefficients.iter().filter_map(|coefficient: &Coefficient<T>| coefficient.map.clone());
        let parts = parts(bases.into_iter().chain([rest]).map(Arc::from).chain(maps));
        let d = parts[0].map.input_dim();
        for part in &parts {
            check_size("the dimension of a part of the hybrid", d, part.map.input_dim())?;
        }
        let products = products(&coefficients, &parts)?;
        let every = |promise: fn(Properties) -> bool| {
            parts.iter().all(|part| promise(part.map.properties())) && !products.iter().any(|p| p.negative)
        };
        let shares = parts[..=coefficients.len()].iter().enumerate().any(|(i, part)| part.leader != i);
        Ok(Hybrid {
            blocks: products.iter().map(Product::width).collect(),
            properties: Properties {
                symmetric: every(|p| p.symmetric),
                non_negative: every(|p| p.non_negative),
            },
            fingerprint: fingerprint(&coefficients, &parts),
            covariance: if shares { Covariance::Unknown } else { Covariance::Zero },
            coefficients,
            parts,
            products,
        })
    }

    pub(super) fn with_covariance(self, covariance: Covariance) -> Self {
        Hybrid { covariance, ..self }
    }

    /// The coefficients λ̂ₖ, in order.
    pub fn coefficients(&self) -> &[Coefficient<T>] {
        &self.coefficients
    }

    /// P₁, …, Q.
    fn bases(&self) -> impl Iterator<Item = &dyn FeatureMap<T>> {
        self.parts[..=self.coefficients.len()].iter().map(|part| part.map.as_ref())
    }

    /// Fills all parts and multiplies them into the tile: values, or logarithms and signs.
    fn fill_with(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
        logarithmic: bool,
    ) {
        let shape = self.parts.last().map_or((1, 1), |last| (last.columns.end, last.blocks.end));
        let mut room = Room::new(x.nrows(), shape, logarithmic, scratch);
        room.fill(|tile| {
            let one = if logarithmic { T::zero() } else { T::one() };
            (0..tile.rows()).for_each(|i| tile.row(i).0[0] = one);
            let fill = if logarithmic { Self::fill_exponents_of } else { Self::fill_part };
            (0..self.parts.len()).for_each(|p| fill(self, p, side, x, tile, scratch));
        });
        let write = if logarithmic { tensor::add } else { tensor::multiply };
        write(&self.products, side, &room, tile);
        room.give_back(scratch);
    }

    /// Fills part `p`. The first of several on a projection takes it for all.
    fn fill_part(
        &self,
        p: usize,
        side: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let part = &self.parts[p];
        let sharers = self.parts.iter().filter(|other| other.leader == part.leader).count();
        let Some(projection) = part.map.projection().filter(|_| sharers > 1) else {
            return part.map.fill(side, x, &mut part.of(tile), scratch);
        };
        if part.leader == p {
            projection.project(x, &mut part.of(tile), scratch);
            for sharer in self.parts[p + 1..].iter().filter(|other| other.leader == p) {
                for i in 0..tile.rows() {
                    let (values, scales) = tile.row(i);
                    let projections = part.columns.start..part.columns.start + projection.count();
                    values.copy_within(projections, sharer.columns.start);
                    scales[sharer.blocks.start] = scales[part.blocks.start];
                }
            }
        }
        part.map.fill_projected(side, &mut part.of(tile));
    }

    /// Fills part `p` with logarithms and signs, which are taken of the features if it has none itself.
    fn fill_exponents_of(
        &self,
        p: usize,
        side: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let part = &self.parts[p];
        let mut tile = part.of(tile);
        if !part.map.fill_exponents(side, x, &mut tile, scratch) {
            part.map.fill(side, x, &mut tile, scratch);
            for i in 0..tile.rows() {
                let (values, signs) = tile.row_with_signs(i);
                for (value, sign) in values.iter_mut().zip(signs) {
                    (*sign, *value) = (value.signum(), value.abs().ln());
                }
            }
        }
    }
}

impl<T: Real> Part<T> {
    /// Its part of a tile of all parts.
    fn of<'a>(&self, tile: &'a mut Tile<'_, T>) -> Tile<'a, T> {
        tile.part(self.columns.clone(), self.blocks.clone())
    }

    fn each_block(&self) -> impl Iterator<Item = Block> + Clone {
        let of = |(columns, index): (Range<usize>, usize)| Block {
            columns: self.columns.start + columns.start..self.columns.start + columns.end,
            index,
        };
        ranges(self.map.blocks()).zip(self.blocks.clone()).map(of)
    }
}

/// The maps side by side, behind the one feature 1.
fn parts<T: Real>(maps: impl Iterator<Item = Arc<dyn FeatureMap<T>>>) -> Vec<Part<T>> {
    let mut parts: Vec<Part<T>> = Vec::new();
    for map in maps {
        let (column, block) = parts.last().map_or((1, 1), |last| (last.columns.end, last.blocks.end));
        let leader = parts.iter().position(|part| same_projection(part.map.as_ref(), map.as_ref()));
        parts.push(Part {
            columns: column..column + map.feature_dim(),
            blocks: block..block + map.blocks().len(),
            leader: leader.unwrap_or(parts.len()),
            map,
        });
    }
    parts
}

/// The blocks of the terms of the sum that are not 0.
fn products<T: Real>(coefficients: &[Coefficient<T>], parts: &[Part<T>]) -> Result<Vec<Product>> {
    let rest = coefficients.len();
    // The part of a coefficient; without a map it has none, and no factor.
    let part_of = coefficients.iter().scan(rest + 1, |next, coefficient| {
        let part = *next;
        *next += usize::from(coefficient.map.is_some());
        Some((coefficient, part))
    });
    let left = 1.0 - coefficients.iter().map(|coefficient| coefficient.constant).sum::<f64>();
    let terms = part_of.clone().enumerate();
    let terms = terms.flat_map(|(k, (c, part))| [(c.constant, None, k), (c.factor, Some(part), k)]);
    let of_rest = part_of.map(|(c, part)| (-c.factor, Some(part), rest));
    let mut products = Vec::new();
    for (weight, left, base) in terms.chain([(left, None, rest)]).chain(of_rest) {
        if !weight.is_finite() {
            let (name, value) = ("the sum of the coefficients' constants", weight);
            return Err(Error::Parameter { name, value, domain: "finite" });
        }
        if weight != 0.0 {
            let one = Block { columns: 0..1, index: 0 };
            let left = left.map_or(vec![one], |part: usize| parts[part].each_block().collect());
            let pair = |left: Block| parts[base].each_block().map(move |right| (left.clone(), right));
            let half_weight = 0.5 * weight.abs().ln();
            let product = |(left, right)| Product { left, right, half_weight, negative: weight < 0.0 };
            products.extend(left.into_iter().flat_map(pair).map(product));
        }
    }
    Ok(products)
}

fn same_projection<T: Real>(a: &dyn FeatureMap<T>, b: &dyn FeatureMap<T>) -> bool {
    matches!((a.projection(), b.projection()), (Some(a), Some(b)) if Arc::ptr_eq(a, b))
}

fn fingerprint<T: Real>(coefficients: &[Coefficient<T>], parts: &[Part<T>]) -> u64 {
    let parts: Vec<u64> = parts.iter().map(|part| part.map.fingerprint()).collect();
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
        self.parts[0].map.input_dim()
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

    fn writes_once(&self) -> bool {
        self.parts.iter().all(|part| part.map.writes_once())
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        self.bases().last().and_then(|rest| rest.kernel())
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        let mut terms = Vec::new();
        let (mut mean, mut variance, mut complement_square, mut product) = (0.0, 0.0, 1.0, 0.0);
        for (coefficient, base) in self.coefficients.iter().zip(self.bases()) {
            let (Some(moments), Some(base)) = (coefficient.moments(x, y)?, base.log_variance(x, y)?) else {
                return Ok(None);
            };
            terms.push(moments.square.ln() + base);
            mean += moments.mean;
            variance += moments.square - moments.mean * moments.mean;
            (complement_square, product) = (moments.complement_square, moments.product);
        }
        let last = self.bases().last().map(|rest| rest.log_variance(x, y)).transpose()?.flatten();
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
        let m = self.parts[0].map.projection().map_or(f64::NAN, |projection| projection.count() as f64);
        let pair = Pair::new(x.iter().map(|v| v.widen()).zip(y.iter().map(|v| v.widen())));
        let turn = (0.5 * pair.norm_difference).sin().powi(2);
        let squared_kernel = if row == -0.5 { -pair.difference } else { 2.0 * pair.dot };
        let scale = squared_kernel - m.ln();
        let shared = SignedLog::from(-4.0 * turn * product).scaled(scale);
        let total = SignedLog::sum([SignedLog::positive(independent), shared].into_iter());
        if total.sign < 0.0 { f64::NEG_INFINITY } else { total.ln_abs }
    }
}
