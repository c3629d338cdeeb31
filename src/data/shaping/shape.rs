//! [`Shape`]: shifts, a basis and coefficients, as plain data.

use ndarray::Array2;

/// The shifts and matrices that transform points before features, and the coefficients of dense-exponential features:
/// the result of [`Shaping`](super::Shaping).
///
/// u = L(x − c_x) and v = R(y − c_y) with L = UᵀT (`left`) and R = UᵀT⁻ᵀ (`right`), for points already divided by the
/// lengthscale. Without truncation L Rᵀ = Lᵀ R = I, and exp(x·y) = exp(u·v + x·c_y + c_x·y − c_x·c_y) for all x and y. A
/// **truncated** shape, r < d, keeps the r leading coordinates; the right-hand side is then another kernel, and features
/// are biased. Coordinates are sorted by decreasing φ.
///
/// The fields from `before` to `bias` predict errors on the data that the shape was chosen for, before and after each step. M is an
/// estimate's second moment relative to K², for one frequency of positive features; ln M is averaged over pairs. About M frequencies
/// give a relative error of 1.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Shape {
    /// c_x, d entries.
    pub shift_x: Vec<f64>,
    /// c_y, d entries.
    pub shift_y: Vec<f64>,
    /// L, r × d.
    pub left: Array2<f64>,
    /// R, r × d.
    pub right: Array2<f64>,
    /// The mean of (uₗ + vₗ)² over pairs of the data, in decreasing order; r entries.
    pub phi: Vec<f64>,
    /// ρₗ = 1/(1 − 8aₗ), in (0, 1\]; r entries.
    pub rho: Vec<f64>,
    /// aₗ ≤ 0; r entries.
    pub a: Vec<f64>,
    /// The ridge, relative to the mean variance of a side, with which T was chosen.
    pub ridge: f64,
    /// The mean ln M for the original points, E‖x + y‖² over the weighted pairs. If it is far above ln m, no shape helps: check
    /// the scale of the logits.
    pub before: f64,
    /// The mean ln M after the shifts.
    pub shifted: f64,
    /// The mean ln M after the shifts and T.
    pub balanced: f64,
    /// The mean ln M with the coefficients aₗ too, in all d coordinates.
    pub dense: f64,
    /// The mean ln M in the r coordinates that are kept; equal to `dense` without truncation.
    pub kept: f64,
    /// min(1, b), where b is the weighted mean over queries of the variance over keys of the truncation error of the
    /// logits; 0 without truncation.
    pub bias: f64,
}

/// Writes the predicted errors in a line; [`Shape::summary`] adds rank and cost.
impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shape { before, shifted, balanced, kept, bias, .. } = self;
        write!(f, "predicted mean ln of the relative second moment: {before:.2}, ")?;
        write!(f, "shifted {shifted:.2}, balanced {balanced:.2}, with coefficients {kept:.2}; ")?;
        if *bias == 0.0 { write!(f, "no bias") } else { write!(f, "bias {bias:.3}") }
    }
}

impl Shape {
    /// The predicted errors in two lines, with the rank and the multiplications of a point for m features before and after.
    ///
    /// ```
    /// # #[cfg(any(feature = "faer", feature = "ndarray-linalg"))] {
    /// use random_features::ndarray::Array2;
    /// use random_features::data::shaping::Shaping;
    /// let x = Array2::from_shape_fn((50, 2), |(i, k)| {
    ///     [4.0, 0.5][k] * (i as f64 * [0.7, 1.9][k]).sin() + 1.0
    /// });
    /// let shape = Shaping::new().of_points(&x, &x)?;
    /// println!("{}", shape.summary(64));
    /// assert!(
    ///     shape
    ///         .summary(64)
    ///         .ends_with("rank 2 of 2; multiplications per point 130 → 133")
    /// );
    /// # }
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn summary(&self, m: usize) -> String {
        let [plain, shaped] = self.multiplications(m);
        let (rank, dim) = (self.rank(), self.dim());
        format!("{}\nrank {rank} of {dim}; multiplications per point {plain} → {shaped}", self)
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        self.left.ncols()
    }

    /// r, the number of coordinates that are kept.
    pub fn rank(&self) -> usize {
        self.left.nrows()
    }

    /// Whether coordinates are dropped, r < d: features are then biased.
    pub fn is_truncated(&self) -> bool {
        self.rank() < self.dim()
    }

    /// The numbers of multiplications for m features of a point: with plain positive features, m d + d, and with this shape.
    ///
    /// Without truncation the shape takes m d + d(d + 1)/2 + d: L is multiplied into the frequencies, and ‖u‖² costs d(d + 1)/2
    /// through a triangular factor (except for queries in normalised attention, where it cancels). With truncation it takes r d +
    /// m r + r + d. A number that is too large for `usize` counts as `usize::MAX`.
    pub fn multiplications(&self, m: usize) -> [usize; 2] {
        let (d, r) = (self.dim(), self.rank());
        // m n + rest, where `rest` follows from arrays that are in memory.
        let with_rows = |n: usize, rest: usize| m.saturating_mul(n).saturating_add(rest);
        let shaped = if self.is_truncated() {
            with_rows(r, r.saturating_mul(d).saturating_add(r).saturating_add(d))
        } else {
            with_rows(d, (d.saturating_mul(d.saturating_add(1)) / 2).saturating_add(d))
        };
        [with_rows(d, d), shaped]
    }
}

/// The stored form, in which the predicted errors stand together.
#[cfg(feature = "serde")]
mod stored {
    use ndarray::Array2;
    use serde::{Deserialize, Serialize};

    use super::Shape;
    use crate::sealed::{AnyScalar, sealed};

    #[derive(Serialize, Deserialize)]
    #[serde(rename = "Shape")]
    struct StoredShape {
        #[serde(with = "crate::exact")]
        shift_x: Vec<f64>,
        #[serde(with = "crate::exact")]
        shift_y: Vec<f64>,
        #[serde(with = "crate::exact")]
        left: Array2<f64>,
        #[serde(with = "crate::exact")]
        right: Array2<f64>,
        #[serde(with = "crate::exact")]
        phi: Vec<f64>,
        #[serde(with = "crate::exact")]
        rho: Vec<f64>,
        #[serde(with = "crate::exact")]
        a: Vec<f64>,
        #[serde(with = "crate::exact")]
        ridge: f64,
        report: StoredErrors,
    }

    #[derive(Serialize, Deserialize)]
    #[serde(rename = "Report")]
    struct StoredErrors {
        #[serde(with = "crate::exact")]
        before: f64,
        #[serde(with = "crate::exact")]
        shifted: f64,
        #[serde(with = "crate::exact")]
        balanced: f64,
        #[serde(with = "crate::exact")]
        dense: f64,
        #[serde(with = "crate::exact")]
        kept: f64,
        #[serde(with = "crate::exact")]
        bias: f64,
    }

    sealed!(Shape, StoredShape, AnyScalar);

    impl From<&Shape> for StoredShape {
        fn from(shape: &Shape) -> Self {
            let Shape { shift_x, shift_y, left, right, phi, rho, a, ridge, .. } = shape.clone();
            let Shape { before, shifted, balanced, dense, kept, bias, .. } = *shape;
            let report = StoredErrors { before, shifted, balanced, dense, kept, bias };
            StoredShape { shift_x, shift_y, left, right, phi, rho, a, ridge, report }
        }
    }

    impl From<StoredShape> for Shape {
        fn from(stored: StoredShape) -> Self {
            let StoredShape { shift_x, shift_y, left, right, phi, rho, a, ridge, report } = stored;
            let StoredErrors { before, shifted, balanced, dense, kept, bias } = report;
            Shape {
                shift_x,
                shift_y,
                left,
                right,
                phi,
                rho,
                a,
                ridge,
                before,
                shifted,
                balanced,
                dense,
                kept,
                bias,
            }
        }
    }
}
