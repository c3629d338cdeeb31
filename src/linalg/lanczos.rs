//! The largest eigenvalues of a symmetric matrix, by the method of Lanczos where they are few.

use ndarray::{Array1, Array2, ArrayView1, Axis, s};

use super::{Backend, Eigen};
use crate::error::Result;
use crate::numeric::descending;
use crate::{progress, threads};

/// The least number of rows, and the least number of them for each pair, for which the method of Lanczos is faster.
const LEAST: usize = 200;
const FOR_EACH: usize = 5;
/// The residual of a pair that is found, relative to the largest eigenvalue.
const RESIDUAL: f64 = 1e-8;
/// The length of the next vector, relative to the largest eigenvalue, that is rounding: the space is invariant.
const INVARIANT: f64 = 1e-13;
/// The number of steps between two looks at the residuals, and of rows that a thread multiplies at a time.
const STEPS: usize = 4;
const ROWS: usize = 64;

/// The `count` largest eigenvalues of a symmetric matrix, falling, with their eigenvectors in columns. Only the lower triangle is
/// read.
///
/// The residual of a pair is at most 10⁻⁸ of the largest eigenvalue. From one start vector the method finds one direction for each
/// value. So it begins again in the complement of what it found, until no value there is above the least that is wanted: repeated
/// values are found with all their directions.
pub(crate) fn largest_eigenpairs(a: Array2<f64>, count: usize) -> Result<Eigen> {
    let n = a.nrows();
    if n >= LEAST && count <= n / FOR_EACH {
        let whole = mirrored(a);
        return match Found::default().all(&whole, count)? {
            Some(found) => Ok(found),
            None => from_all(&whole, count),
        };
    }
    from_all(&a, count)
}

/// The largest pairs of the whole decomposition.
fn from_all(a: &Array2<f64>, count: usize) -> Result<Eigen> {
    progress::check()?;
    let mut eigen = Backend::default().eigen(a)?;
    progress::check()?;
    eigen.values.invert_axis(Axis(0));
    eigen.vectors.invert_axis(Axis(1));
    let vectors = eigen.vectors.slice(s![.., ..count]).to_owned();
    Ok(Eigen { values: eigen.values.slice(s![..count]).to_owned(), vectors })
}

/// The matrix whose lower triangle is given.
fn mirrored(mut a: Array2<f64>) -> Array2<f64> {
    for i in 0..a.nrows() {
        for j in 0..i {
            a[[j, i]] = a[[i, j]];
        }
    }
    a
}

/// Pairs that were found: values, and orthonormal vectors.
#[derive(Default)]
struct Found {
    values: Vec<f64>,
    vectors: Vec<Array1<f64>>,
}

impl Found {
    /// The largest pairs; `None` if they take so many steps that the whole decomposition is cheaper.
    fn all(mut self, a: &Array2<f64>, count: usize) -> Result<Option<Eigen>> {
        loop {
            let wanted = count.saturating_sub(self.values.len()).max(1);
            let Some(more) = self.beside(a, wanted)? else { return Ok(None) };
            let floor = self.least(count);
            let largest = more.values.iter().chain(&self.values).fold(0.0, |a: f64, v| a.max(v.abs()));
            let above = more.values.iter().any(|value| *value > floor + RESIDUAL * largest);
            if above {
                self.values.extend(more.values);
                self.vectors.extend(more.vectors);
            } else {
                return Ok(Some(self.sorted(count)));
            }
        }
    }

    /// The least of the `count` largest values; −∞ if there are fewer.
    fn least(&self, count: usize) -> f64 {
        let mut values = self.values.clone();
        values.sort_unstable_by(f64::total_cmp);
        values.iter().nth_back(count - 1).copied().unwrap_or(f64::NEG_INFINITY)
    }

    fn sorted(self, count: usize) -> Eigen {
        let mut order = descending(&self.values);
        order.truncate(count);
        let n = self.vectors.first().map_or(0, Array1::len);
        let mut vectors = Array2::zeros((n, order.len()));
        vectors.columns_mut().into_iter().zip(&order).for_each(|(mut v, i)| v.assign(&self.vectors[*i]));
        Eigen { values: order.iter().map(|i| self.values[*i]).collect(), vectors }
    }

    /// The largest pairs in the complement of these, up to `wanted`; `None` after too many steps.
    fn beside(&self, a: &Array2<f64>, wanted: usize) -> Result<Option<Found>> {
        let n = a.nrows();
        let (mut basis, mut diagonal, mut beside) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = self.start(n);
        for step in 1..=n / 2 {
            progress::check()?;
            basis.push(next);
            let own: &Array1<f64> = &basis[step - 1];
            let mut product = times(a, own);
            diagonal.push(own.dot(&product));
            self.vectors.iter().chain(&basis).for_each(|v| take_away(&mut product, v));
            self.vectors.iter().chain(&basis).for_each(|v| take_away(&mut product, v));
            let length = product.dot(&product).sqrt();
            let size =
                diagonal.iter().chain(&beside).chain(&self.values).fold(0.0, |a: f64, v| a.max(v.abs()));
            let ended = length <= INVARIANT * size || step + self.values.len() == n;
            if ended || (step >= wanted && step % STEPS == 0) {
                let ritz = tridiagonal(&diagonal, &beside)?;
                let largest = ritz.values.iter().chain(&self.values).fold(0.0, |a: f64, v| a.max(v.abs()));
                let residual =
                    |k: usize| if ended { 0.0 } else { length * ritz.vectors[[step - 1, k]].abs() };
                let best = (0..step).rev().take(wanted);
                if best.clone().all(|k| residual(k) <= RESIDUAL * largest) {
                    return Ok(Some(Found::of_ritz(&ritz, &basis, best)));
                }
            }
            beside.push(length);
            next = product / length;
        }
        Ok(None)
    }

    /// Some vectors of a Krylov space.
    fn of_ritz(ritz: &Eigen, basis: &[Array1<f64>], chosen: impl Iterator<Item = usize>) -> Self {
        let mut found = Found::default();
        for k in chosen {
            let mut vector = Array1::zeros(basis[0].len());
            basis.iter().zip(ritz.vectors.column(k)).for_each(|(v, share)| vector.scaled_add(*share, v));
            let length = vector.dot(&vector).sqrt();
            found.values.push(ritz.values[k]);
            found.vectors.push(vector / length);
        }
        found
    }

    /// The start vector: fixed numbers, orthogonal to what was found.
    fn start(&self, n: usize) -> Array1<f64> {
        let mut rng = crate::rng(self.values.len() as u64);
        let mut vector =
            Array1::from_shape_simple_fn(n, || (rng.next_u64() >> 11) as f64 / 2f64.powi(52) - 1.0);
        for _ in 0..2 {
            self.vectors.iter().for_each(|v| take_away(&mut vector, v));
        }
        let length = vector.dot(&vector).sqrt();
        vector / length
    }
}

/// Makes a vector orthogonal to a unit vector.
fn take_away(vector: &mut Array1<f64>, unit: &Array1<f64>) {
    let share = vector.dot(unit);
    vector.scaled_add(-share, unit);
}

/// The eigenvectors of a tridiagonal matrix.
fn tridiagonal(diagonal: &[f64], beside: &[f64]) -> Result<Eigen> {
    let mut matrix = Array2::from_diag(&ArrayView1::from(diagonal));
    beside.iter().enumerate().for_each(|(k, v)| matrix[[k + 1, k]] = *v);
    Backend::default().eigen(&matrix)
}

/// A v, by runs of rows.
fn times(a: &Array2<f64>, v: &Array1<f64>) -> Array1<f64> {
    let runs = threads::map(a.axis_chunks_iter(Axis(0), ROWS), |rows| rows.dot(v).to_vec());
    runs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Q diag(values) Qᵀ for a fixed orthogonal Q.
    fn matrix(values: &[f64]) -> Array2<f64> {
        let n = values.len();
        let mut rng = crate::rng(5);
        let mut normal = |v: &mut [f64]| {
            v.fill_with(|| (rng.next_u64() >> 11) as f64 / 2f64.powi(52) - 1.0);
            v.iter().map(|v| v * v).sum::<f64>().sqrt()
        };
        let q = super::super::orthonormal_rows(n, n, &mut normal);
        (&q.t() * &ArrayView1::from(values)).dot(&q)
    }

    /// Against the values that the matrix was made of: falling slowly, repeated up to nine times, none, and of less rank than wanted.
    #[test]
    fn values_are_found_with_their_directions() {
        let n = 240;
        let slow: Vec<f64> = (0..n).map(|i| 1.0 / (1.0 + i as f64)).collect();
        let fast: Vec<f64> = (0..n).map(|i| 0.5f64.powi(i as i32)).collect();
        let repeated: Vec<f64> = (0..n).map(|i| if i < 9 { 3.0 } else { 1.0 / (i as f64) }).collect();
        let later: Vec<f64> =
            (0..n).map(|i| if i < 2 { 5.0 } else { 2.0 - f64::from(u8::from(i > 8)) }).collect();
        let few: Vec<f64> = (0..n).map(|i| if i < 3 { 1e-8 } else { 0.0 }).collect();
        for (name, values) in [
            ("slow", slow),
            ("fast", fast),
            ("repeated", repeated),
            ("later", later),
            ("few", few),
            ("none", vec![0.0; n]),
            ("equal", vec![7.0; n]),
        ] {
            for count in [1, 5, 12] {
                let a = matrix(&values);
                let found = largest_eigenpairs(a.clone(), count).unwrap();
                let largest = values[0];
                for (k, exact) in values.iter().take(count).enumerate() {
                    let (value, vector) = (found.values[k], found.vectors.column(k));
                    assert!((value - exact).abs() <= 1e-9 * largest, "{name} {k}: {value} {exact}");
                    let residual = a.dot(&vector) - &vector * value;
                    assert!(residual.dot(&residual).sqrt() <= 3e-8 * largest, "{name} {k}");
                }
                let gram = found.vectors.t().dot(&found.vectors) - Array2::<f64>::eye(count);
                assert!(gram.iter().all(|v| v.abs() < 1e-10), "{name} {count}");
            }
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let values: Vec<f64> = (0..300).map(|i| 0.9f64.powi(i)).collect();
        let on = |threads| crate::threads::with(threads, || largest_eigenpairs(matrix(&values), 4)).unwrap();
        assert_eq!(on(1).unwrap(), on(3).unwrap());
    }
}
