//! [`Without`]: residuals of a group of rows in the regression on all other rows, in closed form.
//!
//! # Definition
//! A row has its centred features in the eigenvectors, u, followed by the number 1 if there is an intercept. B is diag(s + λ),
//! followed by N if there is an intercept. For the rows U of a group, with weights w and residuals e, let H = U B⁻¹ Uᵀ and S = I
//! − √w H √w. Without the group the residuals are r = e + H √w S⁻¹ √w e. If the group has more rows than features, the equations
//! β = (B − Uᵀ w U)⁻¹ (c − Uᵀ w y) are solved instead.
//!
//! # Rounding
//! The change H′ of √w H √w by rounding is at most the sum of the changes for single rows. ‖S⁻¹‖ is at most 1 + Σ h/(1 − h) over
//! the eigenvalues h of √w H √w. For n rows that is 1 + tr S⁻¹ − n, or 1 + tr (B − Uᵀ w U)⁻¹ Uᵀ w U; for one row it is 1/(1 − h).
//! With the changes e′ of residuals, the root of Σ w r² changes by at most ‖S⁻¹‖ (‖√w e′‖ + ‖H′‖ ‖√w r‖) to first order.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, Axis};

use super::levels::{LevelBuffers, Levels};
use super::points::{PointErrors, SHARE};
use super::rotation::{FeatureRotation, ROWS, RotationBuffers};
use super::{RidgeRows, RidgeSpectrum};
use crate::error::{Result, singular};
use crate::linalg::Backend;
use crate::numeric::matrix_of;
use crate::{Real, progress};

/// Receives the residual of a row: the place of λ, the row, the target and the residual.
type ResidualVisitor<'v> = dyn FnMut(usize, usize, usize, f64) + 'v;

/// The regressions for several λ on all rows but a group, for one group at a time.
pub(super) struct Without<'g, T: Real> {
    spectrum: &'g RidgeSpectrum<T>,
    sample: RidgeRows<'g, T>,
    rotation: FeatureRotation<T>,
    levels: Levels,
    /// Vᵀc, followed by 0 for the intercept, since targets are centred.
    cross: Array2<f64>,
}

/// The numbers from which the rounding errors of a group's residuals are computed.
pub(super) struct Left {
    rows: usize,
    /// Σ w u² for each eigenvector.
    squares: Vec<f64>,
    /// A bound of ‖S⁻¹‖ for each λ, infinite where S is not positive definite.
    norms: Vec<f64>,
}

impl<'g, T: Real> Without<'g, T> {
    pub fn new(spectrum: &'g RidgeSpectrum<T>, sample: &'g RidgeRows<'_, T>, lambdas: &[f64]) -> Self {
        let rotation = spectrum.rotation(|k, f| spectrum.vectors[[f, k]]);
        let levels = Levels::new(spectrum, lambdas, &spectrum.shrinkage.varying());
        let (rotated, own) = (&spectrum.rotated, usize::from(spectrum.shrinkage.intercept));
        let entry = |place: (usize, usize)| rotated.get(place).copied().unwrap_or(0.0);
        let cross = Array2::from_shape_fn((rotated.nrows() + own, rotated.ncols()), entry);
        Without { spectrum, sample: sample.borrowed(), rotation, levels, cross }
    }

    /// Adds the squared errors of a group to `sums`, for each λ: to the sum over the targets that vary, and to each of these.
    pub fn add_errors(
        &self,
        group: &[usize],
        sums: &mut [PointErrors],
        buffers: &mut RotationBuffers<T>,
    ) -> Result<()> {
        let targets = &self.levels.targets;
        let sums = sums.chunks_exact_mut(targets.len() + 1).enumerate();
        if let [row] = group {
            let u = self.features(group, buffers)?;
            let u: Vec<f64> = u.iter().take(self.spectrum.shrinkage.values.len()).copied().collect();
            let (mut own, at) = (LevelBuffers::default(), (*row, targets.as_slice()));
            let of_row = self.levels.of(1, &u, &mut own);
            sums.zip(&self.levels.each).for_each(|((k, out), level)| {
                self.spectrum.add_error(&self.sample, at, (level, of_row(0, k)), true, out);
            });
            return Ok(());
        }
        let mut squares = Array2::<f64>::zeros((self.levels.each.len(), self.spectrum.rotated.ncols()));
        let mut add =
            |k: usize, row: usize, j: usize, r: f64| squares[[k, j]] += self.sample.weight(row) * r * r;
        let left = self.residuals(group, buffers, &mut add)?;
        for (k, out) in sums {
            let Some([inverse, changed]) = self.changes(&left, k) else {
                out.iter_mut().for_each(|sum| *sum = PointErrors::UNKNOWN);
                continue;
            };
            for (place, j) in targets.iter().enumerate() {
                let errors = squares[[k, *j]];
                let lost = inverse * (self.moved(&left, k, *j) + changed * errors.sqrt());
                let own = PointErrors { errors, lost: lost * lost };
                out[0].add(own);
                out[1 + place].add(own);
            }
        }
        Ok(())
    }

    /// Refuses residuals of a group if rounding hides them for any λ.
    pub fn check(&self, left: &Left) -> Result<()> {
        let hidden = (0..self.levels.each.len()).find(|k| self.changes(left, *k).is_none());
        hidden.map_or(Ok(()), |k| {
            let lambda = self.levels.each[k].lambda;
            Err(singular(lambda, self.spectrum.normal.least()))
        })
    }

    /// Visits the residuals of a group for each λ, except where rounding hides them all.
    pub fn residuals(
        &self,
        group: &[usize],
        buffers: &mut RotationBuffers<T>,
        visit: &mut ResidualVisitor<'_>,
    ) -> Result<Left> {
        if group.len() <= self.divisors(0.0).len() {
            self.by_rows(group, buffers, visit)
        } else {
            self.by_features(group, buffers, visit)
        }
    }

    /// Computes the residuals from a matrix with as many rows as the group.
    fn by_rows(
        &self,
        group: &[usize],
        buffers: &mut RotationBuffers<T>,
        visit: &mut ResidualVisitor<'_>,
    ) -> Result<Left> {
        let (u, y) = (self.features(group, buffers)?, self.targets(group));
        let roots = self.roots(group);
        let mut norms = Vec::new();
        for (k, level) in self.levels.each.iter().enumerate() {
            let divisors = self.divisors(level.lambda);
            let shrunk = &u / &divisors.sqrt();
            let weighted = &shrunk * &roots;
            let mut left = -weighted.dot(&weighted.t());
            left.diag_mut().mapv_inplace(|v| 1.0 + v);
            let Some(factor) = Backend::default().definite_cholesky(&left)? else {
                norms.push(f64::INFINITY);
                continue;
            };
            let trace: f64 = factor.solve(&Array2::eye(group.len()))?.diag().sum();
            norms.push(1.0 + (trace - group.len() as f64).max(0.0));
            let own = &y - &u.dot(&(&self.cross / &divisors.insert_axis(Axis(1))));
            let moved = shrunk.dot(&weighted.t().dot(&factor.solve(&(&own * &roots))?));
            for ((i, j), residual) in (own + moved).indexed_iter() {
                visit(k, group[i], j, *residual);
            }
        }
        Ok(Left { rows: group.len(), squares: self.squares(&(u * roots)), norms })
    }

    /// Computes the residuals from a matrix with as many rows as features, in two passes over the group.
    fn by_features(
        &self,
        group: &[usize],
        buffers: &mut RotationBuffers<T>,
        visit: &mut ResidualVisitor<'_>,
    ) -> Result<Left> {
        let width = self.divisors(0.0).len();
        let (mut gram, mut cross) =
            (Array2::zeros((width, width)), Array2::zeros((width, self.spectrum.rotated.ncols())));
        for run in group.chunks(ROWS) {
            let roots = self.roots(run);
            let (u, y) = (self.features(run, buffers)? * &roots, self.targets(run) * &roots);
            general_mat_mul(1.0, &u.t(), &u, 1.0, &mut gram);
            general_mat_mul(1.0, &u.t(), &y, 1.0, &mut cross);
        }
        let (mut norms, mut solved) = (Vec::new(), Vec::new());
        for level in &self.levels.each {
            progress::check()?;
            let divisors = self.divisors(level.lambda);
            let mut left = -&gram;
            left.diag_mut().iter_mut().zip(&divisors).for_each(|(v, divisor)| *v += divisor);
            let Some(factor) = Backend::default().definite_cholesky(&left)? else {
                norms.push(f64::INFINITY);
                solved.push(None);
                continue;
            };
            let trace: f64 = factor.solve(&gram)?.diag().sum();
            norms.push(1.0 + trace.max(0.0));
            solved.push(Some(factor.solve(&(&self.cross - &cross))?));
        }
        for run in group.chunks(ROWS) {
            let (u, y) = (self.features(run, buffers)?, self.targets(run));
            for (k, solved) in solved.iter().enumerate() {
                let Some(solved) = solved else { continue };
                for ((i, j), residual) in (&y - &u.dot(solved)).indexed_iter() {
                    visit(k, run[i], j, *residual);
                }
            }
        }
        let squares = gram.diag().iter().take(self.spectrum.shrinkage.values.len()).copied().collect();
        Ok(Left { rows: group.len(), squares, norms })
    }

    /// U, with the number 1 after the features of each row if there is an intercept.
    fn features(&self, rows: &[usize], buffers: &mut RotationBuffers<T>) -> Result<Array2<f64>> {
        let (mut all, intercept) = (Vec::new(), self.spectrum.shrinkage.intercept);
        for run in rows.chunks(ROWS) {
            progress::check()?;
            let x = self.sample.x.select(run)?;
            for u in self.rotation.of(x.view(), buffers) {
                all.extend_from_slice(u);
                all.extend(intercept.then_some(1.0));
            }
        }
        Ok(matrix_of(rows.len(), all.len() / rows.len(), all))
    }

    /// The centred targets of some rows.
    fn targets(&self, rows: &[usize]) -> Array2<f64> {
        let (targets, normal) = (&self.sample.targets.columns, &self.spectrum.normal);
        let centred =
            |(i, j): (usize, usize)| targets[[rows[i], j]].widen() - normal.references[j] - normal.offsets[j];
        Array2::from_shape_fn((rows.len(), targets.ncols()), centred)
    }

    /// √w for each row, as a column.
    fn roots(&self, rows: &[usize]) -> Array2<f64> {
        Array2::from_shape_fn((rows.len(), 1), |(i, _)| self.sample.weight(rows[i]).sqrt())
    }

    /// The diagonal of B.
    fn divisors(&self, lambda: f64) -> Array1<f64> {
        let own = self.spectrum.shrinkage.intercept.then_some(self.spectrum.normal.weight);
        self.spectrum.shrinkage.values.iter().map(|s| s + lambda).chain(own).collect()
    }

    /// Σ w u² for each eigenvector, from √w U.
    fn squares(&self, weighted: &Array2<f64>) -> Vec<f64> {
        let columns = weighted.columns().into_iter().take(self.spectrum.shrinkage.values.len());
        columns.map(|column| column.iter().map(|u| u * u).sum()).collect()
    }

    /// Σ w a² for a λ.
    fn spread(&self, left: &Left, k: usize) -> f64 {
        let level = &self.levels.each[k];
        let terms = left.squares.iter().zip(&self.spectrum.shrinkage.values);
        terms.map(|(square, s)| square / (s + level.lambda) * (level.noise / (s + level.lambda))).sum()
    }

    /// ‖S⁻¹‖ and ‖H′‖ for a λ; `None` where rounding hides the residuals.
    fn changes(&self, left: &Left, k: usize) -> Option<[f64; 2]> {
        let (noise, eta) = (self.levels.each[k].noise, self.spectrum.products_rounding());
        let (spread, square) = (self.spread(left, k), left.squares.iter().sum::<f64>());
        let rotated = if noise > 0.0 { 2.0 * eta * (square / noise).sqrt() * spread.sqrt() } else { 0.0 };
        let changed = spread + rotated + eta * left.rows as f64;
        (changed * left.norms[k] < SHARE).then_some([left.norms[k], changed])
    }

    /// ‖√w e′‖ of a target for a λ.
    fn moved(&self, left: &Left, k: usize, target: usize) -> f64 {
        let (level, square) = (&self.levels.each[k], left.squares.iter().sum::<f64>());
        self.spread(left, k).sqrt() * level.sums[target] + square.sqrt() * level.products[target]
    }
}
