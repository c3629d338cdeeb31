//! Complex-exponential features.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayRef1, ArrayView2};
use num_complex::Complex64;

use super::feature_map::check_pair;
use super::{FeatureMap, Properties, Scratch, Side, Target, Tile};
use crate::error::{Error, Result, check_positive, check_size};
use crate::frequency::Frequencies;
use crate::kernel::{Gaussian, Kernel, Lengthscale, Softmax};
use crate::projection::{Lift, Projection};
use crate::theory::complex_exponential::{self, Symmetry};
use crate::theory::{self, Law, Pair, Radius};
use crate::{Real, linalg};

/// An invertible complex matrix A and its inverse transpose: what a complex-exponential map does to points.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Matrix", into = "Matrix")
)]
pub struct Transform {
    /// A, then A⁻ᵀ.
    sides: [Matrix; 2],
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Matrix {
    Diagonal(#[cfg_attr(feature = "serde", serde(with = "crate::exact"))] Vec<Complex64>),
    Full(#[cfg_attr(feature = "serde", serde(with = "crate::exact"))] Array2<Complex64>),
}

impl Transform {
    /// A diagonal A with these entries, one for each coordinate.
    ///
    /// ```
    /// use num_complex::Complex64;
    /// use random_features::map::Transform;
    /// assert!(Transform::diagonal(vec![Complex64::I, Complex64::ONE]).is_ok());
    /// assert!(Transform::diagonal(vec![Complex64::ZERO]).is_err());
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there is no entry, or one is 0 or not finite, or its square or inverse square
    /// leaves the range of `f64`.
    pub fn diagonal(entries: Vec<Complex64>) -> Result<Self> {
        check_positive("the dimension of A", entries.len())?;
        let inverses: Vec<Complex64> = entries.iter().map(|a| a.finv()).collect();
        let usable = |(a, inverse): (&Complex64, &Complex64)| {
            a.norm_sqr().is_normal() && inverse.norm_sqr().is_normal()
        };
        match entries.iter().zip(&inverses).position(|pair| !usable(pair)) {
            None => Ok(Transform { sides: [Matrix::Diagonal(entries), Matrix::Diagonal(inverses)] }),
            Some(k) => {
                let (name, value) = ("the magnitude of an entry of A", entries[k].norm());
                Err(Error::Parameter {
                    name,
                    value,
                    domain: "not 0 and finite, with a square and an inverse square in range",
                })
            }
        }
    }

    /// A full matrix A, d × d. Cost O(d⁴) at most.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if A is not square, [`Parameter`](Error::Parameter) if it is empty, singular or not
    /// finite.
    pub fn full(a: Array2<Complex64>) -> Result<Self> {
        check_positive("the dimension of A", a.nrows())?;
        check_size("the number of columns of A", a.nrows(), a.ncols())?;
        // Column k of A⁻ᵀ solves Aᵀ u = eₖ.
        let mut inverse = Array2::zeros(a.dim());
        for (k, mut column) in inverse.columns_mut().into_iter().enumerate() {
            let mut unit = Array1::zeros(a.nrows());
            unit[k] = Complex64::ONE;
            column.assign(&linalg::solve(a.t().to_owned(), unit)?);
        }
        Ok(Transform { sides: [Matrix::Full(a), Matrix::Full(inverse)] })
    }

    /// d.
    pub fn dim(&self) -> usize {
        match &self.sides[0] {
            Matrix::Diagonal(entries) => entries.len(),
            Matrix::Full(a) => a.nrows(),
        }
    }

    /// Calls `put(k, (Mu)ₖ)` for all k with the matrix M of a side: A for x, A⁻ᵀ for y.
    fn times(&self, side: Side, u: &[f64], mut put: impl FnMut(usize, Complex64)) {
        match &self.sides[side as usize] {
            Matrix::Diagonal(entries) => {
                entries.iter().zip(u).enumerate().for_each(|(k, (a, u))| put(k, a * u));
            }
            Matrix::Full(a) => {
                for (k, row) in a.rows().into_iter().enumerate() {
                    put(k, row.iter().zip(u).map(|(a, u)| a * u).sum());
                }
            }
        }
    }

    /// ζ = Ax + A⁻ᵀy.
    fn zeta(&self, x: &[f64], y: &[f64]) -> Vec<Complex64> {
        let mut zeta = vec![Complex64::ZERO; x.len()];
        self.times(Side::X, x, |k, z| zeta[k] += z);
        self.times(Side::Y, y, |k, z| zeta[k] += z);
        zeta
    }

    fn entries(&self, side: Side) -> Box<dyn Iterator<Item = &Complex64> + '_> {
        match &self.sides[side as usize] {
            Matrix::Diagonal(entries) => Box::new(entries.iter()),
            Matrix::Full(a) => Box::new(a.iter()),
        }
    }

    /// Whether A is real.
    fn is_real(&self) -> bool {
        self.entries(Side::X).all(|a| a.im == 0.0)
    }

    /// Whether both sides have the same features: A is the conjugate of A⁻ᵀ.
    fn is_symmetric(&self) -> bool {
        self.entries(Side::X).zip(self.entries(Side::Y)).all(|(a, b)| *a == b.conj())
    }
}

#[cfg(feature = "serde")]
impl TryFrom<Matrix> for Transform {
    type Error = Error;

    fn try_from(matrix: Matrix) -> Result<Self> {
        match matrix {
            Matrix::Diagonal(entries) => Transform::diagonal(entries),
            Matrix::Full(a) => Transform::full(a),
        }
    }
}

#[cfg(feature = "serde")]
impl From<Transform> for Matrix {
    fn from(transform: Transform) -> Self {
        let [a, _] = transform.sides;
        a
    }
}

/// Complex-exponential random features: positive and trigonometric ones are special cases, and a matrix A between them
/// adapts to where queries and keys lie.
///
/// # Definition
/// φⱼ(x) = m^{−1/2} exp(ωⱼ·Ax − ½(Ax)²) and ψⱼ(y) likewise with A⁻ᵀ, for the softmax kernel; u² is the bilinear square
/// Σ uₖ², without conjugation. The estimate is the real part of the product: 2m real features, (Re φ, Im φ) against (Re
/// ψ, −Im ψ); m if A is real. A = I is [`Positive`](super::Positive), A = iI [`Trigonometric`](super::Trigonometric).
/// The symmetric variant averages over ω and −ω, with twice as many features.
///
/// # Variance
/// Everything depends on ζ = Ax + A⁻ᵀy: [`theory::complex_exponential`](crate::theory::complex_exponential), for
/// independent frequencies; under any known coupling for real A.
///
/// # Exact where
/// ζ = 0, for any draw. A point whose image Ax has a squared norm beyond `f64` counts as infinite. For two given points
/// a complex diagonal A makes it so ([`theory::diagonal`](crate::theory::diagonal)).
///
/// # Cost
/// O(md) a point for real A, twice that for complex A; O(d²) more for a full A.
///
/// # Example
/// ```
/// use ndarray::arr1;
/// use random_features::frequency::{Independent, draw};
/// use random_features::map::Transform;
/// use random_features::theory::complex_exponential::Symmetry;
/// use random_features::theory::diagonal;
/// use random_features::{ComplexExponential, FeatureMap};
/// let (x, y) = (arr1(&[0.5, -1.0]), arr1(&[1.5, 0.2]));
/// let a = diagonal::complex(&x.to_vec(), &y.to_vec(), 1e-6);
/// let omega = draw(2, 4, &Independent, &mut random_features::rng(1))?;
/// let map = ComplexExponential::<f64>::softmax(omega, Transform::diagonal(a)?, Symmetry::Plain)?;
/// assert!((map.estimate(&x, &y)? / x.dot(&y).exp() - 1.0).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, Lemma 2.4 and equations 13–18; symmetric variant: new.
#[derive(Clone, Debug)]
pub struct ComplexExponential<T> {
    transform: Transform,
    symmetry: Symmetry,
    target: Target,
    projection: Arc<Projection<T>>,
    /// D, the one block.
    width: [usize; 1],
    fingerprint: u64,
}

impl<T: Real> ComplexExponential<T> {
    /// The map for the softmax kernel exp(x·y).
    ///
    /// # Errors
    /// As [`new`](ComplexExponential::new).
    pub fn softmax(omega: Frequencies, a: Transform, symmetry: Symmetry) -> Result<Self> {
        Self::new(omega, a, symmetry, Softmax::default())
    }

    /// The map for the Gaussian kernel with lengthscale ℓ.
    ///
    /// # Errors
    /// As [`Gaussian::new`] and [`new`](ComplexExponential::new).
    pub fn gaussian(
        omega: Frequencies,
        a: Transform,
        symmetry: Symmetry,
        lengthscale: impl Into<Lengthscale>,
    ) -> Result<Self> {
        Self::new(omega, a, symmetry, Gaussian::new(lengthscale)?)
    }

    /// The map for a target kernel: [`Softmax`] or [`Gaussian`] with any lengthscale. A acts on the points divided by
    /// it.
    ///
    /// # Errors
    /// As [`with_projection`](ComplexExponential::with_projection).
    pub fn new(
        omega: Frequencies,
        a: Transform,
        symmetry: Symmetry,
        target: impl Into<Target>,
    ) -> Result<Self> {
        Self::with_projection(Arc::new(Projection::unscaled(omega)), a, symmetry, target)
    }

    /// The map of a projection that may be shared with other maps; its own lengthscale must be 1, whatever the
    /// target's is.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if A or the target's lengthscales are for another dimension than the frequencies,
    /// [`Target`](Error::Target) if the law of their radii is known and not χ or the target is another one than those
    /// of [`new`](ComplexExponential::new), [`Parameter`](Error::Parameter) if the projection's lengthscale is not 1.
    pub fn with_projection(
        projection: Arc<Projection<T>>,
        a: Transform,
        symmetry: Symmetry,
        target: impl Into<Target>,
    ) -> Result<Self> {
        let (target, frequencies) = (target.into(), projection.frequencies());
        let d = frequencies.dim();
        check_size("the dimension of A", d, a.dim())?;
        target.lengthscale().check_dim(d)?;
        let radius = frequencies.law().radius();
        if !radius.may_be(Radius::Chi) || target.radius() != Radius::Chi {
            let (law, target) = (format!("{radius:?}"), format!("{target:?}"));
            return Err(Error::Target { map: NAME, law, target });
        }
        if let Some(k) = (0..d).find(|k| projection.lengthscale_at(*k) != 1.0) {
            let (name, value) = ("the lengthscale of the projection", projection.lengthscale_at(k));
            return Err(Error::Parameter { name, value, domain: "1" });
        }
        let mut hasher = DefaultHasher::new();
        (NAME, format!("{a:?} {symmetry:?} {target:?}")).hash(&mut hasher);
        frequencies.hash_numbers(&mut hasher);
        let parts = if a.is_real() { 1 } else { 2 };
        Ok(ComplexExponential {
            width: [projection.count() * parts * copies(symmetry)],
            fingerprint: hasher.finish().max(1),
            transform: a,
            symmetry,
            target,
            projection,
        })
    }

    /// A and A⁻ᵀ.
    pub fn transform(&self) -> &Transform {
        &self.transform
    }

    /// The kernel that the map approximates.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The linear part, with the frequencies.
    pub fn projection(&self) -> &Arc<Projection<T>> {
        &self.projection
    }

    fn lift(&self, side: Side) -> Lift {
        match (self.transform.is_real(), self.symmetry) {
            (true, Symmetry::Plain) => Lift::Exp,
            (true, Symmetry::Symmetric) => Lift::ExpPair,
            (false, _) => Lift::ExpPolar { conjugate: side == Side::Y },
        }
    }

    /// Writes exponents, then lets `finish(tile, row, bound)` turn each row into what is wanted and say its log scale.
    fn fill_with(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
        finish: impl Fn(&mut Tile<'_, T>, usize, f64) -> f64,
    ) {
        let (rows, m, real) = (x.nrows(), self.projection.count(), self.transform.is_real());
        let mut points = scratch.take(2 * x.len());
        let terms = self.transform_points(side, x, &mut points);
        let (re, im) = points.split_at(points.len() / 2);
        let project = |part: &[T], first: usize, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>| {
            if let Ok(part) = ArrayView2::from_shape(x.dim(), part) {
                self.projection.project(part, &mut tile.part(first..first + m, 0..1), scratch);
            }
        };
        project(re, 0, tile, scratch);
        let bounds: Vec<f64> = (0..rows).map(|i| self.projection.bound(tile.row(i).1[0])).collect();
        if !real {
            project(im, m * copies(self.symmetry), tile, scratch);
        }
        let constant = -0.5 * (self.projection.count() as f64 * copies(self.symmetry) as f64).ln();
        for (i, (term, bound)) in terms.into_iter().zip(bounds).enumerate() {
            let (values, _) = tile.row(i);
            let scale = if term.is_finite() {
                if !real {
                    self.turn(values, T::narrow(term.im.rem_euclid(std::f64::consts::TAU)));
                }
                finish(tile, i, bound) + term.re + constant
            } else {
                values.fill(T::nan());
                f64::NAN
            };
            tile.row(i).1[0] = scale;
        }
        scratch.give(points);
    }

    /// Re Mu of all points u = x/ℓ and then Im Mu, and for each the logarithm of its factor, −½(Mu)² and the target's.
    fn transform_points(&self, side: Side, x: ArrayView2<'_, T>, points: &mut [T]) -> Vec<Complex64> {
        let (lengthscale, d) = (self.target.lengthscale(), x.ncols());
        let (re, im) = points.split_at_mut(x.len());
        let mut u = vec![0.0; d];
        let mut term = |x: ndarray::ArrayView1<'_, T>, re: &mut [T], im: &mut [T]| {
            u.iter_mut().zip(x).enumerate().for_each(|(k, (u, v))| *u = v.widen() / lengthscale.at(k));
            let mut square = Complex64::ZERO;
            self.transform.times(side, &u, |k, z| {
                (re[k], im[k]) = (T::saturated(z.re), T::saturated(z.im));
                square += z * z;
            });
            self.target.row() * u.iter().map(|u| u * u).sum::<f64>() - 0.5 * square
        };
        let parts = re.chunks_exact_mut(d).zip(im.chunks_exact_mut(d));
        x.rows().into_iter().zip(parts).map(|(x, (re, im))| term(x, re, im)).collect()
    }

    /// Adds the phase of a row to the imaginary parts, and makes the exponents of −ω from those of ω.
    fn turn(&self, values: &mut [T], phase: T) {
        let m = self.projection.count();
        let (u, v) = values.split_at_mut(values.len() / 2);
        if self.symmetry == Symmetry::Symmetric {
            let negate = |values: &mut [T]| {
                let (plus, minus) = values.split_at_mut(m);
                minus.iter_mut().zip(plus).for_each(|(minus, plus)| *minus = -*plus);
            };
            negate(u);
            negate(v);
        }
        v.iter_mut().for_each(|v| *v += phase);
    }
}

const NAME: &str = "complex-exponential";

/// Exponentials for each frequency.
fn copies(symmetry: Symmetry) -> usize {
    match symmetry {
        Symmetry::Plain => 1,
        Symmetry::Symmetric => 2,
    }
}

impl<T: Real> FeatureMap<T> for ComplexExponential<T> {
    fn input_dim(&self) -> usize {
        self.projection.input_dim()
    }

    fn blocks(&self) -> &[usize] {
        &self.width
    }

    fn properties(&self) -> Properties {
        Properties { symmetric: self.transform.is_symmetric(), non_negative: self.transform.is_real() }
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, T>, tile: &mut Tile<'_, T>, scratch: &mut Scratch<T>) {
        let lift = self.lift(side);
        self.fill_with(side, x, tile, scratch, |tile, i, bound| lift.apply(tile.row(i).0, bound));
    }

    fn fill_exponents(
        &self,
        side: Side,
        x: ArrayView2<'_, T>,
        tile: &mut Tile<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> bool {
        let lift = self.lift(side);
        self.fill_with(side, x, tile, scratch, |tile, i, _| {
            let (values, signs) = tile.row_with_signs(i);
            lift.logarithms(values, signs);
            0.0
        });
        true
    }

    fn writes_once(&self) -> bool {
        true
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        let radius = self.projection.frequencies().law().radius();
        (radius == self.target.radius()).then(|| self.target.kernel())
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn log_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Result<Option<f64>> {
        check_pair(self.input_dim(), x, y)?;
        let scaled = |x: &ArrayRef1<T>| -> Vec<f64> {
            x.iter().enumerate().map(|(k, v)| v.widen() / self.target.lengthscale().at(k)).collect()
        };
        let zeta = self.transform.zeta(&scaled(x), &scaled(y));
        let pair = self.target.pair(x, y);
        // Everything is relative to the squared kernel, 2x·y for softmax.
        let pair = Pair { dot: 0.5 * self.target.ln_squared_scale(&pair), ..pair };
        Ok(self.variance(&pair, &zeta, self.projection.frequencies().law()))
    }
}

impl<T: Real> ComplexExponential<T> {
    /// ln of the variance, for a pair whose `dot` is ln K.
    fn variance(&self, pair: &Pair, zeta: &[Complex64], law: &Law) -> Option<f64> {
        if self.transform.is_real() {
            // That of positive features, whose ζ is x + y.
            let pair = Pair { sum: zeta.iter().map(Complex64::norm_sqr).sum(), ..*pair };
            return match self.symmetry {
                Symmetry::Plain => theory::positive(&pair, law),
                Symmetry::Symmetric => theory::hyperbolic(&pair, law),
            };
        }
        law.is_independent().then(|| complex_exponential::ln_mse(pair.dot, zeta, self.symmetry, law.len()))
    }
}

/// The stored form of a map: what it is made from, read back through the constructor.
#[cfg(feature = "serde")]
mod stored {
    use std::borrow::Cow;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{ComplexExponential, Frequencies, NAME, Real, Symmetry, Target, Transform};

    #[derive(Serialize, Deserialize)]
    struct Recipe<'a> {
        map: Cow<'a, str>,
        transform: Cow<'a, Transform>,
        symmetry: Symmetry,
        target: Cow<'a, Target>,
        frequencies: Cow<'a, Frequencies>,
    }

    impl<T: Real> Serialize for ComplexExponential<T> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            Recipe {
                map: Cow::Borrowed(NAME),
                transform: Cow::Borrowed(&self.transform),
                symmetry: self.symmetry,
                target: Cow::Borrowed(&self.target),
                frequencies: Cow::Borrowed(self.projection.frequencies()),
            }
            .serialize(serializer)
        }
    }

    impl<'de, T: Real> Deserialize<'de> for ComplexExponential<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let recipe = Recipe::deserialize(deserializer)?;
            if recipe.map != NAME {
                return Err(D::Error::custom(format!("a {} map, but must be {NAME}", recipe.map)));
            }
            let (frequencies, transform) = (recipe.frequencies.into_owned(), recipe.transform.into_owned());
            ComplexExponential::new(frequencies, transform, recipe.symmetry, recipe.target.into_owned())
                .map_err(D::Error::custom)
        }
    }
}
