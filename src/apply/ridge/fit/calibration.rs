//! [`ClassCalibration`]: probabilities of classes from predictions.

use ndarray::{Array1, Array2, ArrayView1, ArrayViewMut1, Axis};

use super::check_finite;
use crate::error::{Error, Result, check_size};
use crate::linalg::Backend;
use crate::numeric::special::ln_sum_exp;
use crate::reduce::LARGEST_SUMMAND;
use crate::{Real, Targets, numeric, progress};

/// The maximum number of steps of Newton's method.
const STEPS: usize = 200;
/// The iteration ends when the decrease of the cross-entropy that a step predicts is below this.
const ENOUGH: f64 = 1e-12;
/// The weight of a penalty that makes the minimum unique. Without it a constant added to all offsets changes nothing, and equal
/// predictions do not determine the slope.
const FIRMNESS: f64 = 1e-9;

/// Probabilities e^(a s_c + b_c) / Σ_k e^(a s_k + b_k) from predictions s, with a common slope a ≥ 0 and an offset b_c for each
/// class, 0 for a class that has no probability.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct ClassCalibration {
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    slope: f64,
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    offsets: Vec<f64>,
}

/// Labels with the weight of each row.
#[derive(Clone, Debug)]
pub(super) struct WeightedLabels {
    pub labels: Vec<usize>,
    pub weights: Vec<f64>,
}

impl WeightedLabels {
    /// The labels of `rows` rows for this number of classes, with their weights.
    pub fn of<T: Real>(targets: &Targets<'_, T>, rows: usize, classes: usize) -> Result<Self> {
        check_size("the number of labels", rows, targets.nrows())?;
        let given = targets.rows(classes)?;
        if given.precisions().is_some() {
            return Err(Error::Unsupported { what: "precisions of labels" });
        }
        let (columns, weights) = (&given.columns, given.weights());
        check_size("the number of classes", classes, columns.ncols())?;
        let label = |(row, values): (usize, ArrayView1<'_, T>)| {
            let is = |value: &T| *value == T::one();
            match values.iter().position(is) {
                Some(label) if values.iter().filter(|value| **value != T::zero()).count() == 1 => Ok(label),
                _ => {
                    let (what, domain) = ("the targets", "1 for one class and 0 for others");
                    // A number that is no indicator, or else the number of classes.
                    let other = values.iter().find(|value| !is(value) && **value != T::zero());
                    let value = other.copied().unwrap_or_else(|| values.sum()).widen();
                    Err(Error::Entry { what, row, value, domain })
                }
            }
        };
        let labels = columns.rows().into_iter().enumerate().map(label).collect::<Result<_>>()?;
        let weights = weights.map_or_else(|| vec![1.0; rows], |weights| weights.to_vec());
        let value = weights.iter().sum::<f64>();
        if value > LARGEST_SUMMAND {
            let (name, domain) = ("the sum of the weights", "at most 1e288");
            return Err(Error::Parameter { name, value, domain });
        }
        Ok(WeightedLabels { labels, weights })
    }
}

/// The target probabilities, n × t, with the weight of each row.
struct Aims {
    aims: Array2<f64>,
    weights: Vec<f64>,
}

impl ClassCalibration {
    /// Minimises the cross-entropy on these labels, with target probabilities as in Platt's method. Only the classes of
    /// `occurring`, ascending, have a probability; points of other classes and of weight 0 are left out.
    pub(super) fn fit(scores: &Array2<f64>, given: &WeightedLabels, occurring: &[usize]) -> Result<Self> {
        let (n, classes) = scores.dim();
        check_size("the number of labels", n, given.labels.len())?;
        check_finite("the predictions", scores)?;
        let place = |label: &usize| occurring.binary_search(label).ok();
        let counts = |i: &usize| given.weights[*i] > 0.0 && place(&given.labels[*i]).is_some();
        let rows: Vec<usize> = (0..n).filter(counts).collect();
        let labels = rows.iter().filter_map(|i| place(&given.labels[*i])).collect();
        let weights = rows.iter().map(|i| given.weights[*i]).collect();
        let scores = scores.select(Axis(0), &rows).select(Axis(1), occurring);
        let among = Self::among(&scores, WeightedLabels { labels, weights })?;
        let mut offsets = vec![0.0; classes];
        occurring.iter().zip(among.offsets).for_each(|(class, offset)| offsets[*class] = offset);
        Ok(ClassCalibration { slope: among.slope, offsets })
    }

    /// Adds to the offset of each class.
    pub(super) fn shift(&mut self, shifts: impl IntoIterator<Item = (usize, f64)>) {
        shifts.into_iter().for_each(|(class, shift)| self.offsets[class] += shift);
    }

    /// The calibration where every class has a probability.
    fn among(scores: &Array2<f64>, given: WeightedLabels) -> Result<Self> {
        let (n, classes) = scores.dim();
        if n == 0 {
            return Err(Error::NoData { what: "a calibration" });
        }
        let aims = Aims::new(given, classes);
        let total = aims.weights.iter().sum::<f64>();
        // Predictions are in units of their spread, so that one step size fits the slope and the offsets.
        let largest = scores.iter().fold(0.0, |a: f64, s| a.max(s.abs()));
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let (scores, mut at) = (scores / unit, ClassCalibration { slope: 1.0, offsets: vec![0.0; classes] });
        let mut loss = at.loss(&scores, &aims);
        for _ in 0..STEPS {
            progress::check()?;
            let (step, promise) = at.step(&scores, &aims)?;
            if promise <= ENOUGH * total {
                break;
            }
            let mut fraction = 1.0;
            loop {
                let next = at.moved(&step, fraction);
                let new = next.loss(&scores, &aims);
                if new < loss {
                    (at, loss) = (next, new);
                    break;
                }
                fraction *= 0.5;
                if fraction < 1e-10 {
                    return Ok(ClassCalibration { slope: at.slope / unit, ..at });
                }
            }
        }
        Ok(ClassCalibration { slope: at.slope / unit, ..at })
    }

    /// Whether the calibration is for this number of classes.
    #[cfg(feature = "serde")]
    pub(super) fn fits(&self, classes: usize) -> bool {
        let finite = self.offsets.iter().chain([&self.slope]).all(|v| v.is_finite());
        finite && self.slope >= 0.0 && self.offsets.len() == classes
    }

    /// Replaces predictions by logarithms of unnormalised probabilities.
    pub(super) fn apply(&self, mut scores: ArrayViewMut1<'_, f64>) {
        scores.iter_mut().zip(&self.offsets).for_each(|(s, b)| *s = self.slope * *s + b);
    }

    /// The cross-entropy and the penalty.
    fn loss(&self, scores: &Array2<f64>, Aims { aims, weights }: &Aims) -> f64 {
        let mut room = Array1::zeros(self.offsets.len());
        let mut sum = 0.0;
        for ((scores, aims), weight) in scores.rows().into_iter().zip(aims.rows()).zip(weights) {
            room.assign(&scores);
            self.apply(room.view_mut());
            let log_total = ln_sum_exp(numeric::slice_of(&room));
            sum += weight * aims.iter().zip(&room).map(|(aim, v)| aim * (log_total - v)).sum::<f64>();
        }
        let size = self.slope.powi(2) + self.offsets.iter().map(|b| b * b).sum::<f64>();
        sum + 0.5 * FIRMNESS * weights.iter().sum::<f64>() * size
    }

    /// Newton's step for (a, b), and twice the decrease that it predicts.
    fn step(&self, scores: &Array2<f64>, Aims { aims, weights }: &Aims) -> Result<(Array1<f64>, f64)> {
        let size = self.offsets.len() + 1;
        let firmness = FIRMNESS * weights.iter().sum::<f64>();
        let mut hessian = Array2::<f64>::eye(size) * firmness;
        let mut gradient = Array1::from_iter([self.slope].iter().chain(&self.offsets).map(|v| v * firmness));
        let mut p = Array1::zeros(size - 1);
        for ((scores, aims), weight) in scores.rows().into_iter().zip(aims.rows()).zip(weights) {
            p.assign(&scores);
            self.apply(p.view_mut());
            numeric::softmax(p.view_mut());
            let mean: f64 = p.iter().zip(scores).map(|(p, s)| p * s).sum();
            for (c, ((p_c, s), aim)) in p.iter().zip(scores).zip(aims).enumerate() {
                let own = weight * p_c;
                gradient[0] += weight * (p_c - aim) * s;
                gradient[c + 1] += weight * (p_c - aim);
                hessian[[0, 0]] += own * (s - mean).powi(2);
                hessian[[c + 1, 0]] += own * (s - mean);
                hessian[[c + 1, c + 1]] += own;
                p.iter().take(c + 1).enumerate().for_each(|(k, p_k)| hessian[[c + 1, k + 1]] -= own * p_k);
            }
        }
        // At the bound only the offsets move.
        if self.slope == 0.0 && gradient[0] >= 0.0 {
            gradient[0] = 0.0;
            hessian.column_mut(0).fill(0.0);
            hessian[[0, 0]] = 1.0;
        }
        let step = Backend::default().cholesky(&hessian)?.solve_vector(&gradient)?;
        let promise = step.dot(&gradient);
        Ok((step, promise))
    }

    fn moved(&self, step: &Array1<f64>, fraction: f64) -> Self {
        let offsets = self.offsets.iter().zip(step.iter().skip(1)).map(|(b, step)| b - fraction * step);
        ClassCalibration { slope: (self.slope - fraction * step[0]).max(0.0), offsets: offsets.collect() }
    }
}

impl Aims {
    /// The target probabilities of a row of class c, with N_c = Σ w over the rows of that class: (N_c + 1)/(N_c + t) for c, and
    /// 1/(N_c + t) for other classes.
    fn new(WeightedLabels { labels, weights }: WeightedLabels, classes: usize) -> Self {
        let mut totals = vec![0.0; classes];
        labels.iter().zip(&weights).for_each(|(label, weight)| totals[*label] += weight);
        let aim = |(i, class): (usize, usize)| {
            let own = totals[labels[i]];
            let count = if labels[i] == class { own + 1.0 } else { 1.0 };
            count / (own + classes as f64)
        };
        Aims { aims: Array2::from_shape_fn((labels.len(), classes), aim), weights }
    }
}
