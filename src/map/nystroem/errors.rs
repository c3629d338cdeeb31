//! What Nyström features leave of the kernel at given points.

use ndarray::{Array2, ArrayRef2, Axis, s};

use super::values::valued;
use super::{Nystroem, RUN, diagonal, points};
use crate::data::lengthscale::choose;
use crate::error::{Error, Result, check_size};
use crate::generator::rng;
use crate::kernel::Kernel;
use crate::numeric::{self, Isa, row_products, slice_of};
use crate::once::once;
use crate::{Real, Side, progress, threads};

/// The largest number of points whose pairs are all compared.
const MOST: usize = 2048;
/// The number of rows of a Gram matrix that are one piece of work.
const ROWS: usize = 64;
/// The largest ‖φ‖² over the largest K(x, x) at which sums of squared estimates do not overflow.
const LARGEST: f64 = 1e140;

impl Nystroem {
    /// The mean of K(x, x) − K̂(x, x) over the rows of x, divided by the mean of K(x, x). Cost O(nM(d + D)).
    ///
    /// It is NaN if K(x, x) is 0 at all points, and 0 where a factor of your own makes K̂ larger than K.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if x does not have d columns, [`NoData`](Error::NoData) without points,
    /// [`NotFinite`](Error::NotFinite) with the first row that is not finite, has a squared norm that overflows, or a kernel value
    /// or features that do; [`Memory`](Error::Memory) if a copy of x does not fit in memory, [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    #[inline(never)]
    pub fn trace_error<T: Real>(&self, x: &ArrayRef2<T>) -> Result<f64> {
        check_size("the number of columns of x", self.dim(), x.ncols())?;
        self.trace_error_of(&points(&self.kernel, x)?)
    }

    /// The relative Frobenius error ‖K̂ − K‖_F / ‖K‖_F of the Gram matrices of x, n × d: exact for at most 2048 points.
    ///
    /// If there are more points, the seed draws 2048 of them. Their pairs estimate both squared norms without bias, but see nothing of a few
    /// large K(x, x) among those left out. Hold points out: where features were fitted, the error is smaller. It is NaN if K is 0 at all
    /// pairs that are compared.
    ///
    /// ```
    /// use random_features::kernel::Gaussian;
    /// use random_features::map::Nystroem;
    /// use random_features::ndarray::{Array2, Axis};
    /// let x =
    ///     Array2::from_shape_fn((600, 2), |(i, k)| ((i * (k + 2)) as f64).sin());
    /// let (fitted, held_out) = x.view().split_at(Axis(0), 400);
    /// let features = Nystroem::fit(Gaussian::new(1.0)?, &fitted, 30, 7)?;
    /// assert!(features.frobenius_error(&held_out, 1)? < 1e-3);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Cost
    /// With s = min(n, 2048), the features take O(sM(d + D)), the pairs O(s²(d + D)), and a copy of all points O(nd).
    ///
    /// # Errors
    /// The errors of [`trace_error`](Nystroem::trace_error); [`NotFinite`](Error::NotFinite) too for a row at which a factor of your
    /// own makes K̂(x, x) more than 10¹⁴⁰ times the largest K(x, x) of those compared.
    #[inline(never)]
    pub fn frobenius_error<T: Real>(&self, x: &ArrayRef2<T>, seed: u64) -> Result<f64> {
        check_size("the number of columns of x", self.dim(), x.ncols())?;
        self.frobenius_error_of(&points(&self.kernel, x)?, seed)
    }

    fn trace_error_of(&self, x: &Array2<f64>) -> Result<f64> {
        if x.nrows() == 0 {
            return Err(Error::NoData { what: "a trace error" });
        }
        let own = diagonal(&self.kernel, x)?;
        // Values are divided by the largest K(x, x), since their sum may overflow.
        let unit = own.iter().copied().fold(0.0, f64::max);
        let mut residuals = Vec::with_capacity(own.len());
        self.residuals(x, &own, unit, &mut residuals)?;
        let not_finite = || residuals.iter().position(|rest| !rest.is_finite());
        if let Some(row) = not_finite().filter(|_| unit > 0.0) {
            return Err(Error::NotFinite { what: "the features of the points", row, column: None });
        }
        let rest: f64 = residuals.iter().sum();
        // Rounding, or a factor of one's own, may leave less than nothing.
        let rest = if rest < 0.0 { 0.0 } else { rest };
        Ok(rest / own.iter().map(|own| own / unit).sum::<f64>())
    }

    /// Appends (K(x, x) − K̂(x, x))/u for a number u and the rows of x, whose K(x, x) are given.
    pub(super) fn residuals(
        &self,
        x: &Array2<f64>,
        own: &[f64],
        unit: f64,
        all: &mut Vec<f64>,
    ) -> Result<()> {
        let map = self.map::<f64>()?;
        for (x, own) in x.axis_chunks_iter(Axis(0), RUN).zip(own.chunks(RUN)) {
            let (values, scales) = map.features(Side::X, x)?.into_parts();
            let rows = slice_of(&values).chunks_exact(self.feature_dim()).zip(&scales);
            all.extend(rows.zip(own).map(|((values, scale), own)| {
                let square = numeric::squared_norm(Isa::best(), values, 1.0, &[]);
                // The scale of features that are all 0 may be of any size.
                let kept = if square == 0.0 { 0.0 } else { (2.0 * scale - unit.ln()).exp() * square };
                own / unit - kept
            }));
        }
        Ok(())
    }

    fn frobenius_error_of(&self, x: &Array2<f64>, seed: u64) -> Result<f64> {
        let n = x.nrows();
        if n == 0 {
            return Err(Error::NoData { what: "a Frobenius error" });
        }
        // Of all points, so that errors name any row.
        let own = diagonal(&self.kernel, x)?;
        let rows = choose(n, n.min(MOST), &mut rng(seed));
        let unit = rows.iter().map(|row| own[*row]).fold(0.0, f64::max);
        if unit == 0.0 {
            return Ok(f64::NAN);
        }
        let x = x.select(Axis(0), &rows);
        let pairs = Pairs {
            kernel: valued(&self.kernel, x.ncols())?,
            features: self.features_in(&x, unit, &rows)?,
            x,
            unit,
        };
        let [own, below] = pairs.sums()?;
        // Each point of a sample stands for n/s points, and each of its pairs for n(n − 1)/(s(s − 1)) pairs.
        let (n, s) = (n as f64, rows.len() as f64);
        let share = if s > 1.0 { n * (n - 1.0) / (s * (s - 1.0)) } else { 0.0 };
        let sum = |own: f64, below: f64| n / s * own + 2.0 * share * below;
        Ok((sum(own.error, below.error) / sum(own.kernel, below.kernel)).sqrt())
    }

    /// φ/√u of points, which are these rows of others.
    fn features_in(&self, x: &Array2<f64>, unit: f64, rows: &[usize]) -> Result<Array2<f64>> {
        let (mut values, scales) = self.map::<f64>()?.features(Side::X, x)?.into_parts();
        for ((mut values, scale), row) in values.rows_mut().into_iter().zip(&scales).zip(rows) {
            if values.iter().any(|value| *value != 0.0) {
                values *= (scale - 0.5 * unit.ln()).exp();
            }
            let square: f64 = values.iter().map(|value| value * value).sum();
            if square.is_nan() || square > LARGEST {
                let what = "the features of the points";
                return Err(Error::NotFinite { what, row: *row, column: None });
            }
        }
        Ok(values)
    }
}

/// Points whose pairs are compared.
struct Pairs {
    kernel: Box<dyn Kernel<f64>>,
    /// n × d.
    x: Array2<f64>,
    /// φ/√u, n × D.
    features: Array2<f64>,
    /// u.
    unit: f64,
}

/// Sums of squares over pairs.
#[derive(Clone, Copy, Default)]
struct Squares {
    /// Σ (K̂ − K)²/u².
    error: f64,
    /// Σ K²/u².
    kernel: f64,
}

impl Squares {
    fn add(&mut self, other: Squares) {
        self.error += other.error;
        self.kernel += other.kernel;
    }
}

impl Pairs {
    /// The sums over i = j, and those over j < i.
    fn sums(&self) -> Result<[Squares; 2]> {
        let mut all = [Squares::default(); 2];
        let runs = (0..self.x.nrows()).step_by(ROWS);
        for sums in threads::map(runs, |first| self.sums_of(first)) {
            all.iter_mut().zip(sums?).for_each(|(all, sum)| all.add(sum));
        }
        Ok(all)
    }

    /// The sums over i = j, and those over j < i, for the run of rows i that begins with this one.
    fn sums_of(&self, first: usize) -> Result<[Squares; 2]> {
        progress::check()?;
        let end = self.x.nrows().min(first + ROWS);
        let [run, all] = [first, 0].map(|start| self.features.slice(s![start..end, ..]));
        let mut sums = [Squares::default(); 2];
        for (i, estimates) in (first..).zip(row_products(&run, &all).rows()) {
            for (j, estimate) in estimates.iter().enumerate().take(i + 1) {
                let exact = self.kernel.log_of_slices(self.row(i), self.row(j)).value() / self.unit;
                let error = (estimate - exact).powi(2);
                sums[usize::from(j < i)].add(Squares { error, kernel: exact * exact });
            }
        }
        Ok(sums)
    }

    fn row(&self, i: usize) -> &[f64] {
        &slice_of(&self.x)[i * self.x.ncols()..][..self.x.ncols()]
    }
}

once!(Nystroem::trace_error::<T>, Nystroem::frobenius_error::<T>);
