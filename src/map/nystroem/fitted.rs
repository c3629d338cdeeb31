//! Nyström features of chosen landmarks, and their best features on data.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayRef2, Axis, s};

use super::landmarks::{greedy, pivoted, spread, uniform};
use super::leverage::leverage;
use super::sketch::check_features;
use super::values::valued;
use super::{Nystroem, RUN, diagonal, points};
use crate::error::{Error, Result, check_finite, check_positive, check_size, checked_positive};
use crate::generator::rng;
use crate::linalg::{Backend, Eigen};
use crate::map::{AnyKernel, Recipe};
use crate::memory::check_memory;
use crate::once::once;
use crate::{Real, Side, threads};

/// The number of rows of a Gram matrix that are one piece of work.
const ROWS: usize = 64;
/// The most points on which numbers of features are chosen.
const CHOSEN_ON: usize = 2048;

/// These constructors need the feature `faer` or `ndarray-linalg`.
impl Nystroem {
    /// The features of landmarks in rows, M × d. D is the rank of their Gram matrix up to rounding: copies add nothing.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) for [`AnyKernel::implied`], which has no values, and if the kernel is 0 at all landmarks;
    /// [`Parameter`](Error::Parameter) without a landmark or a dimension, [`Shape`](Error::Shape) if the kernel has lengthscales for
    /// another dimension, [`NotFinite`](Error::NotFinite) with the first row that holds NaN or an infinity, has a squared norm that
    /// overflows, or a kernel value that does; [`Memory`](Error::Memory) if their Gram matrix does not fit in memory,
    /// [`Factorisation`](Error::Factorisation) if its eigenvalues do not converge, [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    pub fn new<T: Real>(kernel: impl Into<AnyKernel>, landmarks: &ArrayRef2<T>) -> Result<Self> {
        Nystroem::of_points(kernel.into(), landmarks)
    }

    /// The best D features of the points x, n × d, among those of min(2D, n) landmarks: the usual choice.
    ///
    /// Landmarks are points that are spread out by k-means++, chosen among at most 32 D of all points. For a kernel that is no function
    /// of x − y they are those of [`pivoted`](Nystroem::pivoted). The features are [truncated](Nystroem::truncated) to D by all
    /// points. There are fewer than D if the landmarks have a lower rank.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without points, [`Parameter`](Error::Parameter) if D is 0 or above n; the errors of
    /// [`new`](Nystroem::new), for points.
    pub fn fit<T: Real>(
        kernel: impl Into<AnyKernel>,
        x: &ArrayRef2<T>,
        features: usize,
        seed: u64,
    ) -> Result<Self> {
        Nystroem::fit_to(kernel.into(), x, features, seed)
    }

    /// D features without bias of the points x, n × d: the best Nyström features, and [random features](Recipe::for_kernel) of what they
    /// leave of K. At most D, and more than D − 2, if no kind is scarce.
    ///
    /// How many there are of either kind is chosen from at most 2048 points. Nyström features are fitted to one half of
    /// them, and the other half has the rests r(x) = K(x, x) − K̂(x, x). The number k of Nyström features is the one
    /// for which (Σ r(x))²/(D − k) is least, from 0 to 1024. Then k features are [fitted](Nystroem::fit) to all points.
    /// Where the eigenvalues of K hardly decay, k is 0, and the recipe has random features alone.
    ///
    /// ```
    /// use random_features::Map;
    /// use random_features::kernel::{Gaussian, Kernel};
    /// use random_features::map::Nystroem;
    /// use random_features::ndarray::Array2;
    /// let x =
    ///     Array2::from_shape_fn((300, 3), |(i, k)| ((i * (k + 2)) as f64).sin());
    /// let kernel = Gaussian::new(1.5)?;
    /// let map: Map<f64> =
    ///     Nystroem::fit_unbiased(kernel.clone(), &x, 64, 7)?.draw(1)?;
    /// let exact = kernel.gram(&x, &x)?;
    /// let rest = (map.gram(&x, &x)? - &exact).mapv(|v| v * v).sum().sqrt();
    /// assert!(rest / exact.mapv(|v| v * v).sum().sqrt() < 0.03);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if D is below the number of features of a frequency, one or two; the errors of
    /// [`Recipe::for_kernel`] and [`fit`](Nystroem::fit).
    pub fn fit_unbiased<T: Real>(
        kernel: impl Into<AnyKernel>,
        x: &ArrayRef2<T>,
        features: usize,
        seed: u64,
    ) -> Result<Recipe> {
        Nystroem::unbiased_of(kernel.into(), x, features, seed)
    }

    /// The features of m of the points x, n × d, all of which are equally likely to be landmarks.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without points, [`Parameter`](Error::Parameter) if m is 0 or above n; the errors of
    /// [`new`](Nystroem::new), for points.
    pub fn uniform<T: Real>(
        kernel: impl Into<AnyKernel>,
        x: &ArrayRef2<T>,
        m: usize,
        seed: u64,
    ) -> Result<Self> {
        let choice = |_: &AnyKernel, x: &Array2<f64>, m| Ok(uniform(x.nrows(), m, &mut rng(seed)));
        Nystroem::of_choice(kernel.into(), x, m, &choice)
    }

    /// The features of at most m of the points x, n × d, by randomly pivoted Cholesky: each landmark is drawn with probabilities
    /// proportional to K(x, x) − K̂(x, x) so far.
    ///
    /// It ends early where less than 10⁻¹⁴ of each K(x, x) is left. Memory for n × m numbers is needed.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without points, [`Parameter`](Error::Parameter) if m is 0 or above n; the errors of
    /// [`new`](Nystroem::new), for points.
    #[doc(alias = "RPCholesky")]
    pub fn pivoted<T: Real>(
        kernel: impl Into<AnyKernel>,
        x: &ArrayRef2<T>,
        m: usize,
        seed: u64,
    ) -> Result<Self> {
        let choice = |kernel: &AnyKernel, x: &Array2<f64>, m| pivoted(kernel, x, m, &mut rng(seed));
        Nystroem::of_choice(kernel.into(), x, m, &choice)
    }

    /// The features of at most m of the points x, n × d, by greedily pivoted Cholesky: each landmark is the first point with the
    /// largest K(x, x) − K̂(x, x) so far. [`pivoted`](Nystroem::pivoted) is better where there are outliers.
    ///
    /// # Errors
    /// The errors of [`pivoted`](Nystroem::pivoted).
    pub fn greedy<T: Real>(kernel: impl Into<AnyKernel>, x: &ArrayRef2<T>, m: usize) -> Result<Self> {
        Nystroem::of_choice(kernel.into(), x, m, &greedy)
    }

    /// The features of at most m of the points x, n × d, drawn by ridge leverage scores: how little of K at a point others determine.
    ///
    /// The scores are τᵢ = [K(K + λI)⁻¹]ᵢᵢ, where kλ is the sum of all but the k = max(1, m/4) largest eigenvalues of K, or of
    /// those of about half of the points where n > 2m. A recursion over halves of the points estimates τ and λ by samples of about
    /// max(m, 8) points (Musco and Musco 2017, algorithm 3). Landmarks are drawn without replacement, with probabilities proportional
    /// to these estimates. Cost O(nm(d + m)) and O(m³).
    ///
    /// Rare points are found beside many that resemble each other. On handwritten digits, wines and tumours, errors were no smaller
    /// than with [`uniform`](Nystroem::uniform). λ is at least 10⁻¹⁰ of the largest eigenvalue. There are fewer than m landmarks
    /// where fewer points have a score above 0.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without points, [`Parameter`](Error::Parameter) if m is 0 or above n; the errors of
    /// [`new`](Nystroem::new), for points.
    pub fn leverage<T: Real>(
        kernel: impl Into<AnyKernel>,
        x: &ArrayRef2<T>,
        m: usize,
        seed: u64,
    ) -> Result<Self> {
        let choice = |kernel: &AnyKernel, x: &Array2<f64>, m| leverage(kernel, x, m, &mut rng(seed));
        Nystroem::of_choice(kernel.into(), x, m, &choice)
    }

    /// The ridge leverage scores τᵢ = [K(K + λI)⁻¹]ᵢᵢ of the points x, n × d: how little of K at a point others determine. Their sum is
    /// the number of dimensions that a ridge regression with this λ uses.
    ///
    /// ```
    /// use random_features::kernel::Gaussian;
    /// use random_features::map::Nystroem;
    /// use random_features::ndarray::arr2;
    /// // Two copies of a point share a score; a far point has its own.
    /// let x = arr2(&[[0.0], [0.0], [9.0]]);
    /// let scores = Nystroem::leverage_scores(Gaussian::new(1.0)?, &x, 0.1)?;
    /// assert!((scores[0] - 1.0 / 2.1).abs() < 1e-12);
    /// assert!((scores[2] - 1.0 / 1.1).abs() < 1e-12);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Scores are exact up to n ε of the largest eigenvalue of K over λ, with ε = 2⁻⁵². Cost O(n²d) and O(n³), and memory for n² numbers.
    /// For more than some thousand points, [`leverage`](Nystroem::leverage) draws landmarks by estimates of such scores, with a λ of
    /// its own.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without points, [`Parameter`](Error::Parameter) unless λ is positive and finite; the errors of
    /// [`new`](Nystroem::new), for points.
    pub fn leverage_scores<T: Real>(
        kernel: impl Into<AnyKernel>,
        x: &ArrayRef2<T>,
        lambda: f64,
    ) -> Result<Array1<f64>> {
        Nystroem::exact_scores(&kernel.into(), x, lambda)
    }

    /// The best D features for the points x, n × d: no estimates of rank D are nearer to the present ones on these points.
    ///
    /// They are the projections on the eigenvectors of Σ φφᵀ with the D largest eigenvalues. Cost O(nM(d + M)) and O(M³).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if D is 0 or above the present number of features, [`Shape`](Error::Shape) if x does not have
    /// d columns, [`NoData`](Error::NoData) without points; the errors of [`new`](Nystroem::new), for points.
    #[inline(never)]
    pub fn truncated<T: Real>(self, x: &ArrayRef2<T>, features: usize) -> Result<Self> {
        check_size("the number of columns of x", self.dim(), x.ncols())?;
        let x = points(&self.kernel, x)?;
        self.best(&x, features)
    }

    #[inline(never)]
    fn exact_scores<T: Real>(kernel: &AnyKernel, x: &ArrayRef2<T>, lambda: f64) -> Result<Array1<f64>> {
        let (x, lambda) = (points(kernel, x)?, checked_positive("λ", lambda)?);
        if x.nrows() == 0 {
            return Err(Error::NoData { what: "leverage scores" });
        }
        check_memory("kernel values", x.nrows(), x.nrows().saturating_mul(size_of::<f64>()))?;
        let gram = valued(kernel, x.ncols())?.gram(&x, &x)?;
        check_finite("the kernel values of the points", &gram)?;
        let Eigen { values, vectors, .. } = Backend::default().eigen(&gram)?;
        // An eigenvalue below 0 is rounding.
        let shares = values.mapv(|value| value.max(0.0) / (value.max(0.0) + lambda));
        Ok(vectors.pow2().dot(&shares))
    }

    #[inline(never)]
    fn of_points<T: Real>(kernel: AnyKernel, landmarks: &ArrayRef2<T>) -> Result<Self> {
        let landmarks = points(&kernel, landmarks)?;
        Nystroem::of_landmarks(kernel, landmarks)
    }

    #[inline(never)]
    fn fit_to<T: Real>(kernel: AnyKernel, x: &ArrayRef2<T>, features: usize, seed: u64) -> Result<Self> {
        let x = points(&kernel, x)?;
        check_count("the number of features D", features, x.nrows())?;
        let m = features.saturating_mul(2).min(x.nrows());
        let rows = match kernel.is_shift_invariant() {
            true => spread(&x, kernel.lengthscale(), m, &mut rng(seed))?,
            false => pivoted(&kernel, &x, m, &mut rng(seed))?,
        };
        let all = Nystroem::of_rows(kernel, &x, &rows)?;
        let features = features.min(all.feature_dim());
        all.best(&x, features)
    }

    #[inline(never)]
    fn unbiased_of<T: Real>(
        kernel: AnyKernel,
        x: &ArrayRef2<T>,
        features: usize,
        seed: u64,
    ) -> Result<Recipe> {
        let x = points(&kernel, x)?;
        if x.nrows() == 0 {
            return Err(Error::NoData { what: "a choice of landmarks" });
        }
        let random = |m| Recipe::for_kernel(kernel.clone(), x.ncols(), m);
        // Random features come by ones or twos.
        let each = random(1)?.feature_dim();
        if features < each {
            let (name, value) = ("the number of features D", features as f64);
            return Err(Error::Parameter { name, value, domain: "at least the features of one frequency" });
        }
        match Nystroem::best_share(&kernel, &x, (features, each), seed)? {
            0 => random(features / each),
            own => {
                let own = Nystroem::fit_to(kernel.clone(), &x, own, seed)?;
                let rest = random((features - own.feature_dim()) / each)?;
                own.unbiased(rest)
            }
        }
    }

    /// How many of D features to take from Nyström, beside random ones that come by `each`.
    fn best_share(
        kernel: &AnyKernel,
        x: &Array2<f64>,
        (features, each): (usize, usize),
        seed: u64,
    ) -> Result<usize> {
        let own = diagonal(kernel, x)?;
        // Points at which the kernel is 0 say nothing.
        let mut rows = uniform(x.nrows(), x.nrows().min(CHOSEN_ON), &mut rng(seed));
        rows.retain(|row| own[*row] > 0.0);
        let (judged, fitted) = rows.split_at(rows.len().div_ceil(2));
        let most = features.saturating_sub(each).min(fitted.len());
        if most == 0 {
            return Ok(0);
        }
        let own = Vec::from_iter(judged.iter().map(|row| own[*row]));
        let fit = Nystroem::fit_to(kernel.clone(), &x.select(Axis(0), fitted), most, seed)?;
        let rests = fit.rests(&x.select(Axis(0), judged), &own)?;
        // As many random features as there is room for.
        let random = |k: usize| (features - k) / each * each;
        let price = |k: &usize| rests[*k] * rests[*k] / random(*k) as f64;
        Ok((0..rests.len()).min_by(|a, b| price(a).total_cmp(&price(b))).unwrap_or(0))
    }

    /// Σ (K(x, x) − K̂(x, x)) over points, relative to the largest K(x, x), for the first k features, k = 0, 1, …
    fn rests(&self, x: &Array2<f64>, own: &[f64]) -> Result<Vec<f64>> {
        let unit = own.iter().copied().fold(0.0, f64::max);
        if unit == 0.0 {
            return Ok(vec![0.0]);
        }
        let (values, scales) = self.map::<f64>()?.features(Side::X, x)?.into_parts();
        let mut sums = vec![0.0; self.feature_dim() + 1];
        for ((values, scale), own) in values.rows().into_iter().zip(&scales).zip(own) {
            let mut rest = own / unit;
            sums[0] += rest;
            for (sum, value) in sums[1..].iter_mut().zip(values) {
                // The scale of features that are all 0 may be of any size.
                rest -= if *value == 0.0 { 0.0 } else { value * value * (2.0 * scale - unit.ln()).exp() };
                *sum += f64::max(rest, 0.0);
            }
        }
        Ok(sums)
    }

    #[inline(never)]
    fn of_choice<T: Real>(
        kernel: AnyKernel,
        x: &ArrayRef2<T>,
        m: usize,
        choice: &Choice<'_>,
    ) -> Result<Self> {
        let x = points(&kernel, x)?;
        check_count("the number of landmarks", m, x.nrows())?;
        let rows = choice(&kernel, &x, m)?;
        Nystroem::of_rows(kernel, &x, &rows)
    }

    /// The features of these rows of x as landmarks; a kernel that is 0 everywhere leaves none.
    fn of_rows(kernel: AnyKernel, x: &Array2<f64>, rows: &[usize]) -> Result<Self> {
        if rows.is_empty() {
            return Err(Error::Unsupported { what: ZERO });
        }
        Nystroem::of_landmarks(kernel, x.select(Axis(0), rows))
    }

    fn of_landmarks(kernel: AnyKernel, landmarks: Array2<f64>) -> Result<Self> {
        check_positive("the number of landmarks", landmarks.nrows())?;
        let target = super::valued(&kernel, landmarks.ncols())?;
        super::check_points("the landmarks", &landmarks, kernel.lengthscale())?;
        let gram = target.gram(&landmarks, &landmarks)?;
        check_finite("the kernel values of the landmarks", &gram)?;
        // Values are exponentials of logarithms, whose size is that of their rounding errors in units of ε.
        let logs = gram.diag().into_iter().filter(|own| **own > 0.0).map(|own| own.ln().abs());
        let rounding = f64::EPSILON * logs.fold(1.0, f64::max);
        // A kernel of one's own may be rounded to few digits.
        let factor = factor_of(gram, rounding, f64::INFINITY)?;
        Nystroem::of_parts(kernel, landmarks, factor)
    }

    /// The best features of points for which the kernel has values.
    fn best(self, x: &Array2<f64>, features: usize) -> Result<Self> {
        let domain = "at least 1, and at most the present number of features";
        check_features(features, self.feature_dim(), domain)?;
        if x.nrows() == 0 {
            return Err(Error::NoData { what: "a choice of features" });
        }
        let largest = diagonal(&self.kernel, x)?.into_iter().fold(0.0, f64::max);
        let unit = if largest > 0.0 { largest.sqrt() } else { 1.0 };
        let Eigen { vectors, .. } = Backend::default().eigen(&self.second_moment(x, unit)?)?;
        let best = vectors.slice(s![.., vectors.ncols() - features..; -1]);
        let factor = best.t().dot(self.factor());
        Nystroem::of_parts(self.kernel, self.sketch.landmarks, factor)
    }

    /// The lower triangle of Σ φφᵀ/u² over points for a number u, D × D.
    fn second_moment(&self, x: &Array2<f64>, unit: f64) -> Result<Array2<f64>> {
        let (map, features) = (self.map::<f64>()?, self.feature_dim());
        check_memory("rows of a matrix", features, features * size_of::<f64>())?;
        let mut sum = Array2::zeros((features, features));
        for (run, x) in x.axis_chunks_iter(Axis(0), RUN).enumerate() {
            let phi = map.transform(x)? / unit;
            if let Some(row) = phi.rows().into_iter().position(|row| !row.iter().all(|v| v.is_finite())) {
                return Err(Error::NotFinite {
                    what: "the features of the points",
                    row: run * RUN + row,
                    column: None,
                });
            }
            let blocks = sum.axis_chunks_iter_mut(Axis(0), ROWS).zip((0..).step_by(ROWS));
            threads::for_each(blocks, |(mut block, first)| {
                let end = first + block.nrows();
                let left = phi.slice(s![.., first..end]);
                let mut below = block.slice_mut(s![.., ..end]);
                general_mat_mul(1.0, &left.t(), &phi.slice(s![.., ..end]), 1.0, &mut below);
            });
        }
        Ok(sum)
    }
}

/// The factor A = Λ^(−½)UᵀS of kernel values of landmarks with these relative rounding errors. An eigenvalue may be negative by this
/// share of the largest one.
pub(super) fn factor_of(mut gram: Array2<f64>, rounding: f64, negative: f64) -> Result<Array2<f64>> {
    // K(zⱼ, zⱼ)^(−½), without which landmarks of small values would be lost beside those of large ones.
    let scales = gram.diag().mapv(|own: f64| if own > 0.0 { own.sqrt().recip() } else { 0.0 });
    gram *= &scales;
    gram *= &scales.view().insert_axis(Axis(1));
    let Eigen { values, vectors, .. } = Backend::default().eigen(&gram)?;
    let m = values.len();
    let largest = values.last().copied().unwrap_or(0.0);
    if let Some(least) = values.first().copied().filter(|least| *least < -negative * largest) {
        let (name, domain) = ("the smallest eigenvalue of the kernel values", "not negative, up to rounding");
        return Err(Error::Parameter { name, value: least, domain });
    }
    let kept = values.iter().filter(|value| **value > f64::max(m as f64 * rounding * largest, 0.0)).count();
    if kept == 0 {
        return Err(Error::Unsupported { what: ZERO });
    }
    // Eigenvalues ascend; features begin with the largest.
    let mut factor = vectors.slice(s![.., m - kept..; -1]).t().to_owned();
    for (mut row, value) in factor.rows_mut().into_iter().zip(values.iter().rev()) {
        row /= value.sqrt();
        row *= &scales;
    }
    Ok(factor)
}

/// What is refused where a kernel is 0.
const ZERO: &str = "landmarks at all of which the kernel is 0";

/// How some rows are chosen as landmarks for a kernel.
type Choice<'a> = dyn Fn(&AnyKernel, &Array2<f64>, usize) -> Result<Vec<usize>> + 'a;

/// Rejects counts that so many points do not have.
pub(super) fn check_count(name: &'static str, count: usize, most: usize) -> Result<()> {
    if most == 0 {
        return Err(Error::NoData { what: "a choice of landmarks" });
    }
    let domain = "at least 1, and at most the number of points";
    let fits = (1..=most).contains(&count);
    if fits { Ok(()) } else { Err(Error::Parameter { name, value: count as f64, domain }) }
}

once!(
    Nystroem::of_points::<T>,
    Nystroem::fit_to::<T>,
    Nystroem::unbiased_of::<T>,
    Nystroem::of_choice::<T>,
    Nystroem::exact_scores::<T>,
    Nystroem::truncated::<T>,
);
