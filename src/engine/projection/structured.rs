//! [`Fast`]: products with structured frequencies that never form a matrix.

use crate::Real;
use crate::frequency::simplex_coefficients;
use crate::frequency::structured::{PlaneRotation, Rotated, Rotation, Structured, signs};
use crate::kernel::Lengthscale;
use crate::numeric::{self, Buffer, Isa, POINTS, Plane, hadamard_rounds, rotate_planes};

/// Structured frequencies, rounded to `T` and divided by the lengthscale.
#[derive(Debug)]
pub(super) struct Fast<T> {
    dim: usize,
    padded: usize,
    m: usize,
    /// 1/ℓₖ for each coordinate, if they differ.
    inverses: Vec<T>,
    blocks: Vec<FactoredBlock<T>>,
}

#[derive(Debug)]
struct FactoredBlock<T> {
    rotation: RotationFactors<T>,
    /// The number of vertices of the simplex and its coefficients.
    simplex: Option<(usize, [T; 3])>,
    /// The signed radius of each row, divided by an isotropic ℓ.
    scales: Vec<T>,
    /// The number of consecutive rows that share a direction.
    copies: usize,
}

#[derive(Debug)]
enum RotationFactors<T> {
    /// ±N^{−1/2}, round by round.
    Signs(Buffer<T>),
    Planes(Vec<Plane<T>>),
}

impl<T: Real> Fast<T> {
    /// Structured frequencies, rounded to `T` and divided by ℓ; numbers beyond the range of `T` saturate.
    pub fn new(structured: &Structured, lengthscale: &Lengthscale) -> Self {
        let (inverse, inverses) = match lengthscale {
            Lengthscale::Isotropic(scale) => (scale.recip(), Vec::new()),
            Lengthscale::PerDimension(scales) => {
                (1.0, scales.iter().map(|s| T::saturated(s.recip())).collect())
            }
        };
        Fast {
            dim: structured.dim(),
            padded: structured.padded(),
            m: structured.m(),
            inverses,
            blocks: structured.blocks().iter().map(|block| FactoredBlock::new(block, inverse)).collect(),
        }
    }

    pub fn m(&self) -> usize {
        self.m
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    /// out[i · stride + j] ← ⟨ωⱼ, xᵢ/ℓ⟩ for all rows i of x, which begin every `x_stride`. `work` is a buffer.
    pub fn product(&self, x: &[T], x_stride: usize, out: &mut [T], stride: usize, work: &mut Buffer<T>) {
        let planes = self.blocks.iter().any(|block| matches!(block.rotation, RotationFactors::Planes(_)));
        let work = work.take(self.padded * if planes { 1 + POINTS } else { 1 });
        let mut first = 0;
        // All points pass one block after the other, whose factors stay in the cache.
        for block in &self.blocks {
            let columns = first..first + block.scales.len();
            match &block.rotation {
                RotationFactors::Signs(signs) => {
                    let v = &mut work[..self.padded];
                    for (i, x) in x.chunks(x_stride).enumerate() {
                        self.load(&x[..self.dim], v);
                        hadamard_rounds(Isa::best(), v, signs);
                        block.finish(v, &mut out[i * stride..][columns.clone()]);
                    }
                }
                RotationFactors::Planes(planes) => {
                    let (v, points) = work.split_at_mut(self.padded);
                    let points = points.as_chunks_mut::<POINTS>().0;
                    for (chunk, x) in x.chunks(x_stride * POINTS).enumerate() {
                        self.load_points(x, x_stride, v, points);
                        rotate_planes(Isa::best(), points, planes);
                        for l in 0..x.len().div_ceil(x_stride) {
                            v.iter_mut().zip(&*points).for_each(|(v, points)| *v = points[l]);
                            block.finish(v, &mut out[(chunk * POINTS + l) * stride..][columns.clone()]);
                        }
                    }
                }
            }
            first = columns.end;
        }
    }

    /// v ← x/ℓ, padded with zeros; an isotropic ℓ is in the scales instead.
    fn load(&self, x: &[T], v: &mut [T]) {
        let (head, tail) = v.split_at_mut(self.dim);
        if self.inverses.is_empty() {
            head.copy_from_slice(x);
        } else {
            numeric::multiply(Isa::best(), head, x, &self.inverses);
        }
        tail.fill(T::zero());
    }

    /// Loads up to [`POINTS`] points side by side; places without a point have arbitrary contents.
    fn load_points(&self, x: &[T], x_stride: usize, v: &mut [T], points: &mut [[T; POINTS]]) {
        for (l, x) in x.chunks(x_stride).enumerate() {
            self.load(&x[..self.dim], v);
            points.iter_mut().zip(&*v).for_each(|(points, v)| points[l] = *v);
        }
    }
}

impl<T: Real> FactoredBlock<T> {
    fn new(block: &Rotated, inverse: f64) -> Self {
        let plane = |PlaneRotation { axes, angle }: &PlaneRotation| {
            let (sin, cos) = angle.sin_cos();
            Plane { axes: *axes, turn: (T::narrow(cos), T::narrow(sin)) }
        };
        let coefficients = || {
            let (stretch, shift, last) = simplex_coefficients(block.vertices);
            (block.vertices, [stretch, shift, last].map(T::narrow))
        };
        FactoredBlock {
            rotation: match &block.rotation {
                Rotation::Hadamard(flips) => {
                    RotationFactors::Signs(Buffer::of(signs(flips).into_iter().map(T::narrow)))
                }
                Rotation::Givens(rotations) => RotationFactors::Planes(rotations.iter().map(plane).collect()),
            },
            simplex: (block.vertices > 0).then(coefficients),
            scales: block.radii.iter().map(|radius| T::saturated(radius * inverse)).collect(),
            copies: block.copies,
        }
    }

    /// Turns R x into the products with rows: simplex, copies, radii.
    fn finish(&self, v: &mut [T], out: &mut [T]) {
        let isa = Isa::best();
        if let Some((vertices, [stretch, shift, last])) = self.simplex {
            numeric::simplex(isa, &mut v[..vertices], stretch, shift, last);
        }
        if self.copies == 1 {
            numeric::multiply(isa, out, &self.scales, v);
        } else {
            for ((j, out), scale) in out.iter_mut().enumerate().zip(&self.scales) {
                *out = *scale * v[j / self.copies];
            }
        }
    }
}
