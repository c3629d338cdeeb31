//! What the integration tests share: the maps, the couplings, the naive loops, and the statistics of a sample.
#![allow(dead_code, reason = "each test program uses some of it")]

#[path = "common/own_map.rs"]
pub mod own_map;

use std::cell::OnceCell;

use ndarray::{Array1, Array2, Array4, ArrayRef, ArrayRef1, ArrayView1, ArrayView2, Ix4};
use num_complex::Complex64;
use random_features::apply::attention::{CausalState, Heads, TokenElement};
use random_features::extend::{Coupling, Generator, Radii};
use random_features::frequency::{
    Antithetic, Frequencies, Givens, Hadamard, Halton, Independent, Orthogonal, Simplex, SimplexPlus, Sobol,
};
use random_features::kernel::{Gaussian, Softmax};
use random_features::map::{AnyKernel, Transform};
use random_features::recipe::PlainRecipe;
use random_features::theory::complex_exponential::Symmetry;
use random_features::theory::gerf::GerfSign;
use random_features::workbench::RotationLaw;
#[allow(unused_imports, reason = "not every test takes samples")]
pub use random_features::workbench::Sample;
use random_features::{
    ComplexExponential, Features, Gerf, Hyperbolic, Map, Positive, Real, Side, Targets, Trigonometric,
    testing,
};

/// The distribution function of N(0, 1).
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// ₀F₁(; b; x), term by term: with b = d/2 and x = ‖u‖²/4 the mean of e^(u·s) over the unit sphere.
pub fn hypergeometric(b: f64, x: f64) -> f64 {
    let terms = (0..1000).map(f64::from).scan(1.0, |term, k| {
        let this = *term;
        *term *= x / ((b + k) * (k + 1.0));
        Some(this)
    });
    terms.sum()
}

/// A map by name: how to make it, and its definition as a naive loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Name {
    Trigonometric,
    Positive,
    Hyperbolic,
    /// A and s.
    Gerf(Complex64, GerfSign),
    /// Diagonal entries of A, in turn, and whether the map is symmetric in ω.
    Complex([Complex64; 2], Symmetry),
    /// A full A: the identity plus a multiple of the matrix i + 2j mod 5.
    Full(Complex64),
}

pub const MAPS: [Name; 3] = [Name::Trigonometric, Name::Positive, Name::Hyperbolic];

const fn c(re: f64, im: f64) -> Complex64 {
    Complex64::new(re, im)
}

/// Generalised and complex-exponential maps.
pub const MORE_MAPS: [Name; 8] = [
    Name::Gerf(c(-0.3, 0.0), GerfSign::Plus),
    Name::Gerf(c(-0.05, 0.06), GerfSign::Plus),
    Name::Gerf(c(-0.04, 0.0), GerfSign::Minus),
    Name::Gerf(c(-0.02, -0.03), GerfSign::Minus),
    Name::Complex([c(1.2, 0.0), c(0.8, 0.0)], Symmetry::Plain),
    Name::Complex([c(1.2, 0.0), c(0.8, 0.0)], Symmetry::Symmetric),
    Name::Complex([c(1.0, 0.4), c(0.0, 1.1)], Symmetry::Plain),
    Name::Complex([c(0.9, -0.3), c(1.0, 0.2)], Symmetry::Symmetric),
];

/// Frequencies, written out once: for structured ones that costs more than all features of a point.
pub struct Written {
    rows: Array2<f64>,
    squared_norms: Vec<f64>,
    padded_dim: usize,
    /// A of complex-exponential maps, and A⁻ᵀ.
    matrix: OnceCell<Array2<Complex64>>,
    inverse: OnceCell<Array2<Complex64>>,
}

impl Written {
    pub fn new(omega: &Frequencies) -> Self {
        let (squared_norms, padded_dim) = (omega.squared_norms(), omega.padded_dim());
        let rows = omega.rows().into_owned();
        Written { rows, squared_norms, padded_dim, matrix: OnceCell::new(), inverse: OnceCell::new() }
    }
}

impl Name {
    pub fn make<T: Real>(self, omega: Frequencies, target: AnyKernel) -> Map<T> {
        let d = omega.dim();
        match self {
            Name::Trigonometric => Trigonometric.build(omega, target).unwrap(),
            Name::Positive => Positive.build(omega, target).unwrap(),
            Name::Hyperbolic => Hyperbolic.build(omega, target).unwrap(),
            Name::Gerf(a, sign) => Gerf::new(a, sign).unwrap().build(omega, target).unwrap(),
            Name::Complex(_, symmetry) => {
                let entries = (0..d).map(|k| self.matrix(d)[[k, k]]).collect();
                let a = Transform::diagonal(entries).unwrap();
                ComplexExponential::new(a, symmetry).build(omega, target).unwrap()
            }
            Name::Full(_) => {
                let a = Transform::full(self.matrix(d)).unwrap();
                ComplexExponential::new(a, Symmetry::Plain).build(omega, target).unwrap()
            }
        }
    }

    /// A of the complex-exponential maps.
    pub fn matrix(self, d: usize) -> Array2<Complex64> {
        match self {
            Name::Complex(entries, _) => {
                Array2::from_shape_fn((d, d), |(i, j)| if i == j { entries[i % 2] } else { c(0.0, 0.0) })
            }
            Name::Full(step) => Array2::from_shape_fn((d, d), |(i, j)| {
                c(f64::from(u8::from(i == j)), 0.0) + step * ((i + 2 * j) % 5) as f64
            }),
            _ => unreachable!("no matrix"),
        }
    }

    /// The features of one point for the softmax kernel, straight from the definition, in `f64`.
    pub fn naive(self, omega: &Frequencies, x: &[f64]) -> Vec<f64> {
        self.naive_of(&Written::new(omega), x)
    }

    /// The same from frequencies that have been written out.
    pub fn naive_of(self, omega: &Written, x: &[f64]) -> Vec<f64> {
        let m = omega.rows.nrows() as f64;
        let half_norm = 0.5 * x.iter().map(|v| v * v).sum::<f64>();
        let projections = omega.rows.dot(&ArrayView1::from(x));
        let each = |f: &dyn Fn(f64) -> f64| projections.iter().map(|p| f(*p)).collect::<Vec<_>>();
        match self {
            Name::Trigonometric => {
                let scale = half_norm.exp() / m.sqrt();
                [each(&|p| scale * p.cos()), each(&|p| scale * p.sin())].concat()
            }
            Name::Positive => each(&|p| (p - half_norm).exp() / m.sqrt()),
            Name::Hyperbolic => {
                let scale = (2.0 * m).sqrt();
                [each(&|p| (p - half_norm).exp() / scale), each(&|p| (-p - half_norm).exp() / scale)].concat()
            }
            Name::Gerf(a, sign) => {
                let s = sign.value();
                let b = (s * (1.0 - 4.0 * a) + c(0.0, 0.0)).sqrt();
                let factor = (1.0 - 4.0 * a).powf(0.25 * omega.padded_dim as f64) / m.sqrt();
                let feature = |(p, norm): (&f64, &f64)| factor * (a * norm + b * p - s * half_norm).exp();
                let features: Vec<Complex64> =
                    projections.iter().zip(&omega.squared_norms).map(feature).collect();
                let real = a.im == 0.0 && sign == GerfSign::Plus;
                let sines = features.iter().map(|f| f.im).filter(|_| !real);
                features.iter().map(|f| f.re).chain(sines).collect()
            }
            Name::Complex(_, symmetry) => self.naive_complex(omega, x, symmetry),
            Name::Full(_) => self.naive_complex(omega, x, Symmetry::Plain),
        }
    }

    /// ψ of a point on side Y, for the maps whose sides differ: the conjugate of φ of another point or with another sign.
    pub fn naive_of_side_y(self, omega: &Written, y: &[f64]) -> Vec<f64> {
        let (own, conjugate) = match self {
            Name::Gerf(a, GerfSign::Minus) => {
                // ψ has −Bω·y for Bω·x.
                let turned: Vec<f64> = y.iter().map(|v| -v).collect();
                (Name::Gerf(a, GerfSign::Minus).naive_of(omega, &turned), true)
            }
            Name::Gerf(a, GerfSign::Plus) => (self.naive_of(omega, y), a.im != 0.0),
            Name::Complex(..) | Name::Full(_) => {
                let inverse = omega.inverse.get_or_init(|| inverse(&self.matrix(y.len())).reversed_axes());
                let symmetry = if let Name::Complex(_, symmetry) = self { symmetry } else { Symmetry::Plain };
                let real = inverse.iter().all(|a| a.im == 0.0);
                (naive_complex(inverse, omega, y, symmetry), !real)
            }
            _ => (self.naive_of(omega, y), false),
        };
        let half = own.len() / 2;
        let turn = |(f, v): (usize, f64)| if conjugate && f >= half { -v } else { v };
        own.into_iter().enumerate().map(turn).collect()
    }

    fn naive_complex(self, omega: &Written, x: &[f64], symmetry: Symmetry) -> Vec<f64> {
        naive_complex(omega.matrix.get_or_init(|| self.matrix(x.len())), omega, x, symmetry)
    }
}

fn naive_complex(a: &Array2<Complex64>, omega: &Written, x: &[f64], symmetry: Symmetry) -> Vec<f64> {
    let z = a.dot(&Array1::from(x.to_vec()).mapv(Complex64::from));
    let half = 0.5 * z.iter().map(|z| z * z).sum::<Complex64>();
    let signs: &[f64] = if symmetry == Symmetry::Symmetric { &[1.0, -1.0] } else { &[1.0] };
    let scale = (omega.rows.nrows() as f64 * signs.len() as f64).sqrt();
    let (re, im) = (omega.rows.dot(&z.mapv(|z| z.re)), omega.rows.dot(&z.mapv(|z| z.im)));
    let mut features = Vec::new();
    for sign in signs {
        let projections = re.iter().zip(&im).map(|(re, im)| c(*re, *im));
        features.extend(projections.map(|p| (*sign * p - half).exp() / scale));
    }
    let real = a.iter().all(|a| a.im == 0.0);
    let sines = features.iter().map(|f| f.im).filter(|_| !real);
    features.iter().map(|f| f.re).chain(sines).collect()
}

/// By elimination without pivots: for matrices near the identity.
fn inverse(a: &Array2<Complex64>) -> Array2<Complex64> {
    let n = a.nrows();
    let (mut a, mut out) = (a.clone(), Array2::eye(n));
    for k in 0..n {
        let pivot = a[[k, k]];
        for matrix in [&mut a, &mut out] {
            matrix.row_mut(k).mapv_inplace(|v: Complex64| v / pivot);
        }
        for i in (0..n).filter(|i| *i != k) {
            let factor = a[[i, k]];
            for matrix in [&mut a, &mut out] {
                let row = matrix.row(k).mapv(|v| v * factor);
                let mut own = matrix.row_mut(i);
                own -= &row;
            }
        }
    }
    out
}

pub fn couplings() -> Vec<Box<dyn Coupling>> {
    vec![
        Box::new(Independent),
        Box::new(Orthogonal),
        Box::new(Antithetic(Independent)),
        Box::new(Antithetic(Orthogonal)),
    ]
}

/// Those that exist in two dimensions and more, besides.
pub fn couplings_from_two_dimensions() -> Vec<Box<dyn Coupling>> {
    let truncated = Simplex::default().with_truncated_blocks();
    let mut all = couplings();
    all.extend([
        Box::new(Simplex::default()) as Box<dyn Coupling>,
        Box::new(truncated),
        Box::new(SimplexPlus::default()),
        Box::new(Antithetic(Simplex::default())),
    ]);
    all
}

/// Those without a closed form that are exact in law.
pub fn quasi_couplings() -> Vec<Box<dyn Coupling>> {
    vec![Box::new(Halton), Box::new(Sobol), Box::new(Antithetic(Sobol))]
}

/// Those whose law is approximate.
pub fn approximate_couplings() -> Vec<Box<dyn Coupling>> {
    let hadamard = RotationLaw::Hadamard(Hadamard::default());
    vec![
        Box::new(Hadamard::default()),
        Box::new(Hadamard::default().with_rounds(1)),
        Box::new(Antithetic(Hadamard::default())),
        Box::new(Antithetic(Antithetic(Hadamard::default()))),
        Box::new(Simplex::on(hadamard)),
        Box::new(Simplex::on(hadamard).with_truncated_blocks()),
        Box::new(Givens::default()),
        Box::new(Antithetic(Givens::default().with_rounds(5))),
        Box::new(Simplex::on(RotationLaw::Givens(Givens::default()))),
    ]
}

pub fn frequencies(d: usize, m: usize, coupling: &dyn Coupling, seed: u64) -> Frequencies {
    coupling.draw(d, m, seed).unwrap()
}

pub fn softmax() -> AnyKernel {
    Softmax::default().into()
}

pub fn gaussian() -> AnyKernel {
    Gaussian::default().into()
}

/// Prints a row of the table of what regressions must reach: `cargo test --test suite -- --nocapture reach` shows it.
pub fn print_reached(row: &str, least: &str, reached: f64, scikit_learn: &str) {
    println!("| {row} | {least} | {reached:.4} | {scikit_learn} |");
}

/// Numbers by SplitMix64: uniform ones of 53 bits, and standard normal ones by Box and Muller.
pub struct SplitMix(pub u64);

impl SplitMix {
    /// A number of [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * (-u).ln_1p()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

/// A copy of a recipe in which something is another.
pub fn changed(recipe: &PlainRecipe, change: impl FnOnce(&mut PlainRecipe)) -> PlainRecipe {
    let mut other = recipe.clone();
    change(&mut other);
    other
}

/// Targets with a weight for each row.
pub fn weigh<'a, T: Real>(targets: impl Into<Targets<'a, T>>, weights: &'a ArrayRef1<f64>) -> Targets<'a, T> {
    targets.into().with_weights(weights).unwrap()
}

/// Fixed pseudo-random points in [−1, 1], scaled.
pub fn points<T: Real>(n: usize, d: usize, scale: f64) -> Array2<T> {
    Array2::from_shape_fn((n, d), |(i, k)| {
        let u = ((i * 7919 + k * 104_729 + 13) % 10_007) as f64 / 10_007.0;
        T::narrow(scale * (2.0 * u - 1.0))
    })
}

pub fn point<T: Real>(d: usize, seed: usize, norm: f64) -> Array1<T> {
    let raw: Vec<f64> = (0..d).map(|k| (((k + 1) * (seed + 3) * 7919) % 101) as f64 / 50.0 - 1.0).collect();
    let size = raw.iter().map(|v| v * v).sum::<f64>().sqrt();
    raw.iter().map(|v| T::narrow(v / size * norm)).collect()
}

/// Features on the x side.
pub fn features<T: Real>(map: &Map<T>, x: ArrayView2<'_, T>) -> Features<T> {
    map.features(Side::X, x).unwrap()
}

/// A batch has the features of its rows, in parts and one by one, to the bit.
pub fn batch_is_rows<T: Real>(map: &Map<T>, x: &Array2<T>) {
    testing::batches_are_rows(map, x).unwrap();
}

/// Any number of threads gives the same features and Gram matrices, to the bit.
pub fn threads_change_nothing<T: Real>(map: &Map<T>, x: &Array2<T>) {
    testing::threads_change_nothing(map, x).unwrap();
}

/// Any layout of points and of outputs gives the same features, to the bit, and writes nothing else.
pub fn any_layout<T: Real>(map: &Map<T>, x: &Array2<T>) {
    testing::layouts_change_nothing(map, x).unwrap();
}

/// The map is what its facts say.
pub fn promises<T: Real>(map: &Map<T>, x: &Array2<T>) {
    testing::promises_hold(map, x).unwrap();
}

/// Gram matrices hold estimates.
pub fn gram_is_estimates<T: Real>(map: &Map<T>, x: &Array2<T>) {
    testing::gram_is_estimates(map, x).unwrap();
}

/// Mean and variance of estimates over many draws are the kernel and the closed form, within `limit` standard errors.
pub fn unbiased(
    what: &str,
    make: impl Fn(u64) -> Map<f64>,
    (x, y): (&Array1<f64>, &Array1<f64>),
    exact: f64,
    (runs, limit): (u64, f64),
) {
    let found = testing::check_unbiased(|seed| Ok(make(seed)), x, y, exact, runs).unwrap();
    assert!(found.z.abs() < limit, "{what}: {found}");
    assert!(found.variance_z.is_some_and(|z| z.abs() < limit), "{what}: {found}");
    // The test has teeth: 10 % off would be seen.
    assert!(found.variance_error < 0.1 * found.variance / 3.0, "{what}: too few draws, {found}");
}

/// The points that shifts of all coordinates by 0, `step`, 2 `step` … make of a point, which are rows. Pairs of points that are shifted
/// alike have estimates of one law, where the law of frequencies is that of shifted ones.
pub fn shifted(x: &Array1<f64>, step: usize) -> Array2<f64> {
    let d = x.len();
    Array2::from_shape_fn((d / step, d), |(i, k)| x[(k + i * step) % d])
}

/// Estimates of one kernel value and their squared errors over draws: of each draw the means over paired rows.
pub fn at_pairs(
    draws: u64,
    make: impl Fn(u64) -> Map<f64>,
    (x, y): (&Array2<f64>, &Array2<f64>),
    exact: f64,
) -> (Sample, Sample) {
    let of_draw = |seed| {
        let estimates = make(seed).estimate_rows(x, y).unwrap();
        (estimates.mean().unwrap(), estimates.mapv(|v| (v - exact).powi(2)).mean().unwrap())
    };
    let (means, errors): (Vec<f64>, Vec<f64>) = (0..draws).map(of_draw).unzip();
    (Sample::of(&means), Sample::of(&errors))
}

/// As [`unbiased`], with paired rows whose estimates have one law.
pub fn unbiased_at_pairs(
    what: &str,
    make: impl Fn(u64) -> Map<f64>,
    (x, y): (&Array2<f64>, &Array2<f64>),
    exact: f64,
    (draws, limit): (u64, f64),
) {
    let variance = make(0).log_variance(&x.row(0), &y.row(0)).unwrap().unwrap().exp();
    let (mean, mse) = at_pairs(draws, make, (x, y), exact);
    assert!(mean.z(exact).abs() < limit, "{what}: mean {} of {exact}", mean.mean);
    assert!(mse.z(variance).abs() < limit, "{what}: MSE {} of {variance}", mse.mean);
    // The test has teeth: 10 % off would be seen.
    assert!(mse.error < 0.1 * mse.mean / 3.0, "{what}: too few draws");
}

/// Wrong shapes are refused and nothing is written.
pub fn refusals<T: Real>(map: &Map<T>, x: &Array2<T>) {
    testing::shapes_are_checked(map, x).unwrap();
}

/// Takes tokens without queries into a state of causal attention.
pub fn read_tokens<T: Real, E: TokenElement<T>>(
    state: &mut CausalState<T>,
    keys: &ArrayRef<E, Ix4>,
    values: &ArrayRef<E, Ix4>,
) {
    let read = state.prefill(&Heads::without_queries(keys, values).unwrap()).unwrap();
    assert!(read.output.is_empty() && read.non_positive.is_empty());
}

/// Tokens that look random, of mean squared norm d · size², [batch, heads, length, d].
pub fn tokens<T: Real>(shape: [usize; 4], size: f64, seed: usize) -> Array4<T> {
    Array4::from_shape_fn(shape, |(b, h, i, k)| {
        let n = (b * 7919 + h * 104_729 + i * 1_299_709 + k * 15_485_863 + seed * 32_452_843) as u64;
        let u = (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
        T::narrow(size * 12f64.sqrt() * (u - 0.5))
    })
}

/// A law of radii that no kernel with a name has: all are 1.
#[derive(Debug)]
pub struct Ones;

impl Radii for Ones {
    fn draw(&self, _: usize, count: usize, _: &mut Generator) -> random_features::Result<Vec<f64>> {
        Ok(vec![1.0; count])
    }
}
