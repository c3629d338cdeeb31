//! [`Landmarks`]: the values of a kernel at points and landmarks.

use ndarray::Array2;

use crate::SignedLog;
use crate::error::{Error, Result, check_positive};
use crate::kernel::gradient::ScaledSum;
use crate::kernel::{Kernel, Lengthscale};
use crate::map::AnyKernel;
use crate::numeric::{self, Isa, Packed, product, slice_of, squared_norm};

/// The largest ‖u‖² + max‖v‖² at which ‖u−v‖² follows from the product u·v: its rounding error is then below 10⁻¹³.
const NEAR: f64 = 256.0;

/// Landmarks z with the kernel K that points are compared with them by.
#[derive(Debug)]
pub(super) struct Landmarks {
    kernel: Box<dyn Kernel<f64>>,
    lengthscale: Lengthscale,
    /// z, M × d.
    points: Array2<f64>,
    /// Landmarks of a Gaussian kernel.
    centred: Option<Centred>,
}

/// The kernel itself, which has values at points in ℝᵈ.
pub(super) fn valued(kernel: &AnyKernel, d: usize) -> Result<Box<dyn Kernel<f64>>> {
    kernel.check(d)?;
    let what = "Nyström features of a lengthscale without a kernel, which has no values";
    let kernel = kernel.kernel::<f64>().ok_or(Error::Unsupported { what })?;
    kernel.check_dim(d)?;
    Ok(kernel)
}

/// Rejects points without coordinates, and those whose squared distance from another one may overflow after a division by ℓ.
pub(super) fn check_points(what: &'static str, x: &Array2<f64>, lengthscale: &Lengthscale) -> Result<()> {
    check_positive("the dimension d", x.ncols())?;
    match slice_of(x)
        .chunks_exact(x.ncols())
        .position(|x| !(4.0 * scaled_squared_norm(x, lengthscale)).is_finite())
    {
        None => Ok(()),
        Some(row) => Err(Error::NotFinite { what, row, column: None }),
    }
}

/// ‖x/ℓ‖².
fn scaled_squared_norm(x: &[f64], lengthscale: &Lengthscale) -> f64 {
    let (scale, scales) = lengthscale.inverses();
    squared_norm(Isa::best(), x, scale, &scales)
}

impl Landmarks {
    /// Landmarks in rows, in standard layout.
    pub fn new(kernel: &AnyKernel, points: Array2<f64>) -> Result<Self> {
        let (lengthscale, target) = (kernel.lengthscale().clone(), valued(kernel, points.ncols())?);
        check_points("the landmarks", &points, &lengthscale)?;
        let gaussian = matches!(kernel, AnyKernel::Gaussian(_));
        let centred = gaussian.then(|| Centred::new(&points, &lengthscale));
        Ok(Landmarks { kernel: target, lengthscale, points, centred })
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        self.points.ncols()
    }

    /// M, the number of landmarks.
    pub fn len(&self) -> usize {
        self.points.nrows()
    }

    /// Writes e^(−t) K(x, zⱼ) for points x, one after the other, and t: the logarithm of the largest of the values of a point, 0 if
    /// all of them are 0, and NaN for a point that is not finite.
    pub fn values(&self, x: &[f64], values: &mut [f64], tops: &mut [f64]) {
        let near = match &self.centred {
            Some(centred) => centred.logs(x, values),
            None => vec![false; tops.len()],
        };
        let rows = x.chunks_exact(self.dim()).zip(values.chunks_exact_mut(self.len()));
        for (((x, values), top), near) in rows.zip(tops).zip(near) {
            *top = match scaled_squared_norm(x, &self.lengthscale).is_finite() {
                true if near => exp_relative(values),
                true => self.directly(x, values),
                false => f64::NAN,
            };
            if top.is_nan() {
                values.fill(0.0);
            }
        }
    }

    /// The values of one point and their t by the definition of the kernel.
    fn directly(&self, x: &[f64], values: &mut [f64]) -> f64 {
        let rows = slice_of(&self.points).chunks_exact(self.dim());
        let logs: Vec<_> = rows.map(|z| self.kernel.log_of_slices(x, z)).collect();
        if logs.iter().any(|log| log.ln_abs.is_nan() || log.ln_abs == f64::INFINITY) {
            return f64::NAN;
        }
        values.iter_mut().zip(&logs).for_each(|(value, log)| *value = log.ln_abs);
        let top = exp_relative(values);
        values.iter_mut().zip(&logs).for_each(|(value, log)| *value *= log.sign);
        top
    }

    /// Writes Σⱼ wⱼ vⱼ ∂ln K(x, zⱼ)/∂x for weights w and values v of a Gaussian kernel; for others 0.
    pub fn pull_back_gaussian(&self, x: &[f64], weights: &[f64], values: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let Some(centred) = &self.centred else { return };
        let rows = slice_of(&self.points).chunks_exact(self.dim());
        for (z, (weight, value)) in rows.zip(weights.iter().zip(values)) {
            let weight = weight * value;
            out.iter_mut().zip(z).zip(x).for_each(|((out, z), x)| *out += weight * (z - x));
        }
        out.iter_mut().zip(&centred.scales).for_each(|(out, scale)| *out /= scale * scale);
    }

    /// Writes Σⱼ wⱼ ∂K(x, zⱼ)/∂x over e^t for a sum t of logarithms, which are subtracted one after the other. Gradients may be of another
    /// size than values.
    pub fn pull_back(&self, x: &[f64], weights: &[f64], logarithms: [f64; 2], out: &mut [f64]) {
        let mut sum = ScaledSum::new(self.dim());
        for (z, weight) in slice_of(&self.points).chunks_exact(self.dim()).zip(weights) {
            let ln_scale = self.kernel.gradient_of_slices(x, z, out).unwrap_or(f64::NAN);
            let [top, divisor] = logarithms;
            sum.add(out, SignedLog::from(*weight).scaled(ln_scale - top - divisor));
        }
        for (out, number) in out.iter_mut().zip(&sum.numbers) {
            *out = SignedLog::from(*number).scaled(sum.ln_scale).value();
        }
    }

    /// Whether the kernel is the Gaussian one.
    pub fn is_gaussian(&self) -> bool {
        self.centred.is_some()
    }

    /// Whether the kernel has gradients: all of them or none.
    pub fn has_gradients(&self) -> bool {
        let z = &slice_of(&self.points)[..self.dim()];
        self.centred.is_some() || self.kernel.gradient_of_slices(z, z, &mut vec![0.0; self.dim()]).is_some()
    }
}

/// Replaces logarithms by their exponentials relative to the largest one, which is returned; 0 if all are −∞.
fn exp_relative(logs: &mut [f64]) -> f64 {
    let top = numeric::max(Isa::best(), logs);
    if top == f64::NEG_INFINITY {
        logs.fill(0.0);
        return 0.0;
    }
    numeric::exp_minus(Isa::best(), logs, top);
    top
}

/// Landmarks of a Gaussian kernel as v = (z − c)/ℓ with their mean c: the kernel is a function of x − z.
#[derive(Debug)]
struct Centred {
    /// c, d numbers.
    centre: Vec<f64>,
    /// ℓ of each coordinate, d numbers.
    scales: Vec<f64>,
    /// v, M × d.
    packed: Packed<f64>,
    /// ½‖v‖², M numbers.
    halves: Vec<f64>,
    /// max ‖v‖².
    largest: f64,
}

impl Centred {
    fn new(points: &Array2<f64>, lengthscale: &Lengthscale) -> Self {
        let (m, d) = points.dim();
        let centre: Vec<f64> =
            points.columns().into_iter().map(|z| z.iter().map(|z| z / m as f64).sum()).collect();
        let scales: Vec<f64> = (0..d).map(|k| lengthscale.at(k)).collect();
        let v = centred(slice_of(points), &centre, &scales);
        let norms = v.chunks_exact(d).map(|v| squared_norm(Isa::best(), v, 1.0, &[]));
        let halves: Vec<f64> = norms.map(|norm| 0.5 * norm).collect();
        let largest = 2.0 * halves.iter().copied().fold(0.0, f64::max);
        Centred { packed: Packed::of_rows(m, d, |j| &v[j * d..][..d]), centre, scales, halves, largest }
    }

    /// Writes ln K(x, zⱼ) for points x, and says for which of them it is exact to rounding; it must be computed again for others.
    fn logs(&self, x: &[f64], logs: &mut [f64]) -> Vec<bool> {
        let (m, d, isa) = (self.halves.len(), self.scales.len(), Isa::best());
        let u = centred(x, &self.centre, &self.scales);
        product(isa, &u, d, self.packed.all(), logs, m);
        let rows = u.chunks_exact(d).zip(logs.chunks_exact_mut(m));
        let each = rows.map(|(u, logs)| {
            let norm = squared_norm(isa, u, 1.0, &[]);
            for (log, half) in logs.iter_mut().zip(&self.halves) {
                *log = (*log - 0.5 * norm - half).min(0.0);
            }
            norm + self.largest <= NEAR
        });
        each.collect()
    }
}

/// (x − c)/ℓ for points x, one after the other. The difference comes first, so that large common offsets leave no rounding errors.
fn centred(x: &[f64], centre: &[f64], scales: &[f64]) -> Vec<f64> {
    let rows = x.chunks_exact(centre.len());
    rows.flat_map(|x| x.iter().zip(centre).zip(scales).map(|((x, c), scale)| (x - c) / scale)).collect()
}
