//! The maps that are compared, and attention with them.

use ndarray::{Array2, Array4, ArrayView2, Axis};
use random_features::apply::attention::{Attention, Heads};
use random_features::data::shaping::{Shape, Shaping};
use random_features::frequency::{Orthogonal, Sobol, draw};
use random_features::kernel::Softmax;
use random_features::{Positive, Result, rng};

/// Keys that are taken exactly.
const EXACT_KEYS: usize = 4;
/// Rows of the exact attention matrix that weigh pairs.
const ROWS: usize = 64;

/// How features are chosen.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Positive,
    Shaped,
    Weighted { exact: bool },
    Truncated { exact: bool },
}

pub const KINDS: [(&str, Kind); 6] = [
    ("positive", Kind::Positive),
    ("shaped", Kind::Shaped),
    ("weighted", Kind::Weighted { exact: false }),
    ("weighted-exact", Kind::Weighted { exact: true }),
    ("truncated", Kind::Truncated { exact: false }),
    ("truncated-exact", Kind::Truncated { exact: true }),
];

impl Kind {
    /// Whether estimates of weights are biased.
    pub fn is_biased(self) -> bool {
        matches!(self, Kind::Truncated { .. })
    }

    fn takes_exact_keys(self) -> bool {
        matches!(self, Kind::Weighted { exact: true } | Kind::Truncated { exact: true })
    }

    /// What is chosen for m features by some queries and keys of one head, whose logits have the scale 1/√d. Rows of the attention
    /// matrix are seen for `rows` of the queries only. `ridge` is the relative ridge of the moments.
    pub fn choose(
        self,
        (q, rows, k): (ArrayView2<'_, f32>, &[usize], ArrayView2<'_, f32>),
        m: usize,
        ridge: f64,
    ) -> Result<Chosen> {
        let step = rows.len().div_ceil(ROWS).max(1);
        let rows: Vec<usize> = rows.iter().copied().step_by(step).collect();
        let shaping = Shaping::new().with_ridge(ridge)?;
        let exact = if self.takes_exact_keys() { EXACT_KEYS.min(k.nrows().saturating_sub(1)) } else { 0 };
        let (shape, keys) = match self {
            Kind::Positive | Kind::Shaped => {
                // Without attention, shaping is for points: those of these tokens.
                let scale = (q.ncols() as f32).powf(-0.25);
                (shaping.of_points(&(&q.select(Axis(0), &rows) * scale), &(&k * scale))?, Vec::new())
            }
            Kind::Weighted { .. } | Kind::Truncated { .. } => {
                let ranked = matches!(self, Kind::Truncated { .. });
                let shaping = if ranked { shaping.with_rank_for(m)? } else { shaping };
                let chosen = shaping.for_attention_rows(&q, &rows, &k, exact)?;
                (chosen.shape, chosen.exact_keys)
            }
        };
        let moment = match self {
            Kind::Positive => shape.report.before,
            Kind::Truncated { .. } => shape.report.kept,
            _ => shape.report.dense,
        };
        Ok(Chosen { kind: self, m, shape, keys, predicted: moment - (m as f64).ln() })
    }
}

/// Features chosen by data.
pub struct Chosen {
    kind: Kind,
    m: usize,
    shape: Shape,
    keys: Vec<usize>,
    /// The mean logarithm of the relative second moment, less ln m.
    pub predicted: f64,
}

/// Which keys are exact.
#[derive(Clone, Copy)]
pub enum Keys {
    /// Those that were chosen with the features.
    Chosen,
    /// The heaviest of those that are attended to.
    Heaviest,
}

impl Chosen {
    /// The number of coordinates that are kept.
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// Attention with frequencies of a stream of their own.
    pub fn attention(&self, keys: Keys, (seed, stream): (u64, u64)) -> Result<Attention<f32>> {
        let mut rng = rng(seed);
        rng.set_stream(stream);
        let (d, m) = (self.shape.dim(), self.m);
        let map = match self.kind {
            Kind::Positive => Positive.softmax(draw(d, m, &Orthogonal, &mut rng)?)?,
            Kind::Truncated { .. } => {
                self.shape.map(draw(self.shape.rank(), m, &Sobol, &mut rng)?, Softmax::default())?
            }
            _ => self.shape.map(draw(d, m, &Orthogonal, &mut rng)?, Softmax::default())?,
        };
        let attention = Attention::new(map)?;
        match (self.kind.takes_exact_keys(), keys) {
            (false, _) => Ok(attention),
            (true, Keys::Chosen) => attention.with_keys_exact(&self.keys),
            (true, Keys::Heaviest) => attention.with_heaviest_keys_exact(EXACT_KEYS),
        }
    }
}

/// One head's rows as an array of heads.
pub fn one_head(rows: &Array2<f32>) -> Array4<f32> {
    rows.clone().insert_axis(Axis(0)).insert_axis(Axis(0))
}

/// ‖out − exact‖/‖exact‖.
pub fn relative_error(
    attention: &Attention<f32>,
    [q, k, v]: &[Array4<f32>; 3],
    exact: &Array4<f32>,
) -> Result<f64> {
    let out = attention.bidirectional(&Heads::new(q, k, v)?)?.output;
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let error = square(&mut out.iter().zip(exact).map(|(a, b)| f64::from(a - b)));
    Ok((error / square(&mut exact.iter().map(|v| f64::from(*v)))).sqrt())
}
