//! [`Shape`]: shifts, a basis and coefficients, as plain data.

use ndarray::Array2;

/// How points are shifted and turned before features, and the coefficients of dense-exponential features for them: what
/// [`Shaping`](super::Shaping) chooses.
///
/// u = L(x − c_x) and v = R(y − c_y) with L = UᵀT (`left`) and R = UᵀT⁻ᵀ (`right`), for points that have been divided by the
/// lengthscale. Without truncation L Rᵀ = Lᵀ R = I, and exp(x·y) = exp(u·v + x·c_y + c_x·y − c_x·c_y) for all x and y. A
/// **truncated** shape, r < d, keeps the r leading coordinates: the same with these u and v is another kernel, and features
/// for it are biased.
///
/// Coordinates are sorted by falling φ.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Shape {
    /// c_x, d entries.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub shift_x: Vec<f64>,
    /// c_y, d entries.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub shift_y: Vec<f64>,
    /// L, r × d.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub left: Array2<f64>,
    /// R, r × d.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub right: Array2<f64>,
    /// The mean of (uₗ + vₗ)² over pairs of the data, falling; r entries.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub phi: Vec<f64>,
    /// ρₗ = 1/(1 − 8aₗ), in (0, 1\]; r entries.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub rho: Vec<f64>,
    /// aₗ ≤ 0; r entries.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub a: Vec<f64>,
    /// The ridge, relative to the mean variance of a side, with which T was chosen.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub ridge: f64,
    /// What the choice is worth on the data that it was made for.
    pub report: Report,
}

/// The mean over pairs of the logarithm of an estimate's second moment relative to K², for one frequency of positive
/// features, after each step. Predicted, from moments; about M frequencies make the relative error 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Report {
    /// Of the points as they are: E‖x + y‖², over the pairs that count. Far beyond ln m nothing helps: has the scale of the logits
    /// been forgotten?
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub before: f64,
    /// After shifts alone.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub shifted: f64,
    /// After shifts and T.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub balanced: f64,
    /// With the coefficients aₗ, in all d coordinates.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub dense: f64,
    /// The same in the coordinates that are kept: `dense` without truncation.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub kept: f64,
    /// min(1, b), with b the mean over queries of the variance over keys of the logits' error by truncation, with the
    /// pairs' weights; 0 without truncation.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub bias: f64,
}

impl Shape {
    /// d.
    pub fn dim(&self) -> usize {
        self.left.ncols()
    }

    /// r.
    pub fn rank(&self) -> usize {
        self.left.nrows()
    }

    /// Whether coordinates are left out, r < d: features are then biased.
    pub fn is_truncated(&self) -> bool {
        self.rank() < self.dim()
    }

    /// Multiplications for m features of a point: of positive features, m d + d, and with this shape.
    ///
    /// Without truncation L goes into the frequencies, and ‖u‖² costs d(d + 1)/2 through a triangular factor (not for queries
    /// in normalised attention, where it cancels): m d + d(d + 1)/2 + d. Truncated: r d + m r + r + d.
    pub fn multiplications(&self, m: usize) -> (usize, usize) {
        let (d, r) = (self.dim(), self.rank());
        let whole = m * d + d * (d + 1) / 2 + d;
        (m * d + d, if self.is_truncated() { r * d + m * r + r + d } else { whole })
    }
}
