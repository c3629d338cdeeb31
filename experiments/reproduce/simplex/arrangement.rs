//! Frequencies of given norms: the conformity of an arrangement of their directions, and the least of all.

use random_features::ndarray::{Array2, Axis};

/// d frequencies in ℝᵈ of these norms, at ‖x+y‖ = v.
pub struct Arrangement<'a> {
    norms: &'a [f64],
    /// v²/4, and d/2.
    scale: f64,
    half: f64,
}

impl<'a> Arrangement<'a> {
    pub fn new(norms: &'a [f64], v: f64) -> Self {
        Arrangement { norms, scale: 0.25 * v * v, half: 0.5 * norms.len() as f64 }
    }

    /// The mean over rotations of exp((ωᵢ+ωⱼ)·(x+y)), for ‖ωᵢ+ωⱼ‖² = `square`.
    fn term(&self, square: f64) -> f64 {
        hypergeometric(self.half, self.scale * square)
    }

    /// Its derivative.
    fn slope(&self, square: f64) -> f64 {
        self.scale / self.half * hypergeometric(self.half + 1.0, self.scale * square)
    }

    /// The mean of `f` over pairs of norms.
    fn mean(&self, f: impl Fn(usize, usize) -> f64) -> f64 {
        let n = self.norms.len();
        let sum: f64 = (0..n).flat_map(|j| (0..j).map(move |i| (i, j))).map(|(i, j)| f(i, j)).sum();
        sum / (n * (n - 1) / 2) as f64
    }

    /// ‖ωᵢ+ωⱼ‖² at an angle with this cosine.
    fn square(&self, i: usize, j: usize, cos: f64) -> f64 {
        let (a, b) = (self.norms[i], self.norms[j]);
        a * a + b * b + 2.0 * a * b * cos
    }

    /// With independent directions.
    pub fn independent(&self) -> f64 {
        let own = |i: usize| self.term(self.norms[i] * self.norms[i]);
        self.mean(|i, j| own(i) * own(j))
    }

    /// With directions that are all at an angle with this cosine.
    pub fn at_cosine(&self, cos: f64) -> f64 {
        self.mean(|i, j| self.term(self.square(i, j, cos)))
    }

    /// With these directions, rows of length 1.
    pub fn conformity(&self, directions: &Array2<f64>) -> f64 {
        let cosines = directions.dot(&directions.t());
        self.mean(|i, j| self.term(self.square(i, j, cosines[[i, j]])))
    }

    /// The gradient of the conformity along the spheres, up to a factor.
    fn gradient(&self, directions: &Array2<f64>) -> Array2<f64> {
        let cosines = directions.dot(&directions.t());
        let weights = Array2::from_shape_fn(cosines.dim(), |(i, j)| {
            let slope = || self.norms[i] * self.norms[j] * self.slope(self.square(i, j, cosines[[i, j]]));
            if i == j { 0.0 } else { slope() }
        });
        let mut gradient = weights.dot(directions);
        for (mut row, direction) in gradient.rows_mut().into_iter().zip(directions.rows()) {
            let along = row.dot(&direction);
            row.scaled_add(-along, &direction);
        }
        gradient
    }

    /// The least conformity that gradient descent reaches from these directions, with steps of Barzilai and Borwein that are halved
    /// until they descend.
    pub fn least(&self, mut directions: Array2<f64>) -> f64 {
        let (mut value, mut gradient) = (self.conformity(&directions), self.gradient(&directions));
        let mut step = 1.0 / norm(&gradient).max(1e-300);
        for _ in 0..STEPS {
            let slope = norm(&gradient).powi(2);
            let (next, next_value) = loop {
                let next = on_spheres(&directions - &(step * &gradient));
                let next_value = self.conformity(&next);
                if next_value < value {
                    break (next, next_value);
                }
                step *= 0.5;
                if step * slope < 1e-14 * value {
                    return value;
                }
            };
            let next_gradient = self.gradient(&next);
            let (moved, turned) = (&next - &directions, &next_gradient - &gradient);
            let curvature = (&moved * &turned).sum();
            step = if curvature > 0.0 { norm(&moved).powi(2) / curvature } else { 2.0 * step };
            let done = value - next_value < 1e-13 * value && norm(&next_gradient) < 1e-7 * value;
            (directions, value, gradient) = (next, next_value, next_gradient);
            if done {
                break;
            }
        }
        value
    }
}

/// The most steps of a descent.
const STEPS: usize = 2000;

fn norm(a: &Array2<f64>) -> f64 {
    a.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn on_spheres(rows: Array2<f64>) -> Array2<f64> {
    let norms = rows.map_axis(Axis(1), |row| row.dot(&row).sqrt());
    rows / &norms.insert_axis(Axis(1))
}

/// ₀F₁(; b; x) for x ≥ 0: with b = d/2 and x = ‖u‖²/4 the mean of e^(u·s) over the unit sphere of ℝᵈ.
fn hypergeometric(b: f64, x: f64) -> f64 {
    let (mut sum, mut term, mut k) = (1.0, 1.0, 0.0);
    while term > 1e-17 * sum {
        term *= x / ((b + k) * (k + 1.0));
        sum += term;
        k += 1.0;
    }
    sum
}
