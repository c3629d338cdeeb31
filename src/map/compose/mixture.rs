//! Cluster hybrids with Gaussian coefficients: a pair of clusters is weighted by its distance from the points.

use ndarray::{Array1, Array2};
use num_complex::Complex64;

use super::coefficient::turned;
use super::{Coefficient, Diagonal, Hybrid, Part};
use crate::data::Clustering;
use crate::error::{Error, Result, checked_positive};
use crate::kernel::{Gaussian, Softmax};
use crate::map::{Mechanism, Omega, PlainRecipe, Transform};
use crate::theory::complex_exponential::Symmetry;
use crate::{ComplexExponential, Positive, Trigonometric};

impl<M: Part> Coefficient<M> {
    /// The Gaussian coefficient λ = exp(−‖Ax + A⁻¹y‖²/(2c²)) with the Hermitian norm and a diagonal A of real or
    /// imaginary entries, from trigonometric features.
    ///
    /// λ has its maximum 1 where the complex-exponential map with this A is exact, around the centres that A was chosen
    /// for. It is a Gaussian kernel of |A|x and −S|A|⁻¹y with Sₖ = 1 for real and −1 for imaginary entries. Source:
    /// Hybrid Random Features, equation 93 (erratum H4).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if c is not positive and finite, or an entry is 0, not finite, or neither real
    /// nor imaginary; the errors of [`PlainRecipe::build`](crate::map::PlainRecipe::build).
    pub fn around(tau: impl Into<Omega>, entries: &[Complex64], c: f64) -> Result<Self> {
        Self::around_by(Trigonometric, tau, entries, c)
    }

    /// The Gaussian coefficient of [`around`](Coefficient::around) from positive features, so that λ̂ > 0. It is exact only where
    /// |A|x = S|A|⁻¹y, not where λ = 1. Source: Hybrid Random Features, equations 95 and 96.
    ///
    /// # Errors
    /// The errors of [`around`](Coefficient::around).
    pub fn around_positive(tau: impl Into<Omega>, entries: &[Complex64], c: f64) -> Result<Self> {
        Self::around_by(Positive, tau, entries, c)
    }

    fn around_by(
        mechanism: impl Into<Mechanism>,
        tau: impl Into<Omega>,
        entries: &[Complex64],
        c: f64,
    ) -> Result<Self> {
        let c = checked_positive("c", c)?;
        let wrong = |a: &&Complex64| !a.norm_sqr().is_normal() || a.re != 0.0 && a.im != 0.0;
        if let Some(a) = entries.iter().find(wrong) {
            let (name, domain) =
                ("the magnitude of an entry of A", "positive and finite, of a real or imaginary number");
            return Err(Error::Parameter { name, value: a.norm(), domain });
        }
        // ‖|A|(x + S|A|⁻²y)‖/c: a lengthscale for each coordinate, and a diagonal M on the other side.
        let scales: Vec<f64> = entries.iter().map(|a| c / a.norm()).collect();
        let turn = |a: &Complex64| if a.im == 0.0 { -1.0 } else { 1.0 };
        let diagonal: Array1<f64> = entries.iter().map(|a| turn(a) / a.norm_sqr()).collect();
        let m = Array2::from_diag(&diagonal);
        Self::affine(0.0, 1.0, turned(mechanism, tau, Gaussian::new(scales)?, m)?)
    }
}

/// The options of a [cluster hybrid with Gaussian coefficients](Hybrid::clustered).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Mixture<'a> {
    /// The clusters of the points on side X.
    pub queries: &'a Clustering,
    /// The clusters of the points on side Y.
    pub keys: &'a Clustering,
    /// The formula for A from the centres of a pair of clusters; [`Diagonal::complex`] by default.
    pub diagonal: Diagonal,
    /// c, positive and finite: the width of the Gaussian weight around the centres.
    pub width: f64,
    /// Whether positive features ([`Coefficient::around_positive`]) estimate weights instead of trigonometric ones.
    pub positive: bool,
}

impl<'a> Mixture<'a> {
    /// Options with these clusters and the width c, the complex diagonal of each pair of centres, and weights from trigonometric
    /// features.
    pub fn new(queries: &'a Clustering, keys: &'a Clustering, width: f64) -> Self {
        Mixture { queries, keys, diagonal: Diagonal::complex(), width, positive: false }
    }

    /// Sets the formula for A.
    #[must_use]
    pub fn with_diagonal(self, diagonal: impl Into<Diagonal>) -> Self {
        Mixture { diagonal: diagonal.into(), ..self }
    }

    /// Makes positive features estimate the weights.
    #[must_use]
    pub fn with_positive_weights(self) -> Self {
        Mixture { positive: true, ..self }
    }
}

impl<M: Part> Hybrid<M> {
    /// The cluster hybrid with Gaussian coefficients for the softmax kernel. Each pair of a query and a key cluster has a
    /// complex-exponential base that is accurate around their centres, weighted by [`Coefficient::around`] of width
    /// c, or [`Coefficient::around_positive`]; `rest` has the remaining weight.
    ///
    /// At the centres λ = 1, and pairwise estimates are exact. Products of features are exact up to rounding of the
    /// estimate of `rest`, which may be e^{½‖x−y‖²} times larger.
    ///
    /// If each point belongs to one cluster, [`Clustered`](super::Clustered) is cheaper. Each call of `omega` must draw
    /// new frequencies for a base, each call of `tau` new ones for a coefficient: the parts must be independent.
    ///
    /// ```
    /// use random_features::compose::{Hybrid, Mixture};
    /// use random_features::data::Clustering;
    /// use random_features::frequency::Independent;
    /// use random_features::ndarray::arr2;
    /// use random_features::{Map, Trigonometric};
    /// let queries = Clustering::of(&arr2(&[[1.0, 0.2], [1.1, 0.1]]), 1, 1)?;
    /// let keys = Clustering::of(&arr2(&[[-0.9, 0.3], [-1.0, 0.2]]), 1, 1)?;
    /// let rest = Trigonometric.softmax(Independent.draw(2, 16, 2)?)?;
    /// let mut seeds = 3..;
    /// let omega = || Independent.draw(2, 16, seeds.next().unwrap());
    /// let mut others = 1000..;
    /// let tau = || Independent.draw(2, 8, others.next().unwrap());
    /// let map: Map<f64> = Hybrid::clustered(
    ///     Mixture::new(&queries, &keys, 1.0),
    ///     omega,
    ///     tau,
    ///     rest,
    /// )?;
    /// let (x, y) =
    ///     (queries.centres().row(0).to_owned(), keys.centres().row(0).to_owned());
    /// // At the centres λ = 1, and the base is exact.
    /// assert!((map.estimate(&x, &y)? / x.dot(&y).exp() - 1.0).abs() < 1e-9);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Coefficient::around`], [`PlainRecipe::build`](crate::map::PlainRecipe::build), [`sum`](Hybrid::sum) and
    /// the draws.
    pub fn clustered<W: Into<Omega>>(
        mixture: Mixture<'_>,
        mut omega: impl FnMut() -> Result<W>,
        mut tau: impl FnMut() -> Result<W>,
        rest: M,
    ) -> Result<M> {
        let Mixture { queries, keys, diagonal, width, positive } = mixture;
        let coefficient = if positive { Coefficient::around_positive } else { Coefficient::around };
        let mut terms = Vec::with_capacity(queries.len() * keys.len());
        for entries in diagonal.of_pairs(queries, keys) {
            let entries = entries?;
            let coefficient = coefficient(tau()?, &entries, width)?;
            let base = ComplexExponential::new(Transform::diagonal(entries)?, Symmetry::Plain);
            terms.push((coefficient, M::of_plain(PlainRecipe::new(base, omega()?, Softmax::default()))?));
        }
        Self::sum(terms, rest)
    }
}
