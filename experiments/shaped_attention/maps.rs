//! The maps that are compared, and attention with them.

use ndarray::{Array2, Array4, ArrayView2, Axis};
use random_features::apply::attention::{Attention, AttentionShaping, Heads};
use random_features::data::shaping::{Shape, Shaping};
use random_features::frequency::{Orthogonal, Sobol, draw};
use random_features::kernel::Softmax;
use random_features::{Positive, Result, rng};

/// Keys that are taken exactly.
const EXACT_KEYS: usize = 4;
/// Rows of the exact attention matrix that weigh pairs.
const ROWS: usize = 64;
/// Keys before a query and behind it whose weights are exact.
const NEAR: usize = 8;

/// How features are chosen.
#[derive(Clone, Copy, PartialEq)]
pub enum Choice {
    Positive,
    Shaped,
    Weighted,
    Truncated,
}

/// Which pairs are computed exactly.
#[derive(Clone, Copy, PartialEq)]
pub enum Exact {
    Nothing,
    /// Pairs with the heaviest keys.
    Keys,
    /// These, and those of neighbours.
    Near,
}

/// Features, and the pairs that are exact beside them.
#[derive(Clone, Copy, PartialEq)]
pub struct Kind {
    pub choice: Choice,
    pub exact: Exact,
}

const fn kind(choice: Choice, exact: Exact) -> Kind {
    Kind { choice, exact }
}

pub const KINDS: [(&str, Kind); 9] = [
    ("positive", kind(Choice::Positive, Exact::Nothing)),
    ("shaped", kind(Choice::Shaped, Exact::Nothing)),
    ("weighted", kind(Choice::Weighted, Exact::Nothing)),
    ("weighted-exact", kind(Choice::Weighted, Exact::Keys)),
    ("truncated", kind(Choice::Truncated, Exact::Nothing)),
    ("truncated-exact", kind(Choice::Truncated, Exact::Keys)),
    ("positive-near", kind(Choice::Positive, Exact::Near)),
    ("weighted-near", kind(Choice::Weighted, Exact::Near)),
    ("truncated-near", kind(Choice::Truncated, Exact::Near)),
];

/// Exact pairs without features of the others: what features have to beat.
pub const ALONE: [(&str, Exact); 2] = [("alone-exact", Exact::Keys), ("alone-near", Exact::Near)];

impl Exact {
    fn window(self) -> [usize; 2] {
        if self == Exact::Near { [NEAR + 1, NEAR] } else { [0, 0] }
    }

    /// Whether key `j` is a neighbour of query `i`.
    pub fn is_near(self, i: usize, j: usize) -> bool {
        let [before, after] = self.window();
        i < j + before && j <= i + after
    }

    fn keys(self, of: usize) -> usize {
        if self == Exact::Nothing { 0 } else { EXACT_KEYS.min(of.saturating_sub(1)) }
    }
}

impl Kind {
    /// Whether estimates of weights are biased.
    pub fn is_biased(self) -> bool {
        self.choice == Choice::Truncated
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
        let [before, after] = self.exact.window();
        let shaping = Shaping::new().with_ridge(ridge)?;
        let exact = self.exact.keys(k.nrows());
        let (shape, keys) = match self {
            Kind { choice: Choice::Positive | Choice::Shaped, exact: Exact::Nothing } => {
                // Without attention, shaping is for points: those of these tokens.
                let scale = (q.ncols() as f32).powf(-0.25);
                (shaping.of_points(&(&q.select(Axis(0), &rows) * scale), &(&k * scale))?, Vec::new())
            }
            _ => {
                let shaping = if self.is_biased() { shaping.with_rank_for(m)? } else { shaping };
                let shaping = AttentionShaping::new(shaping).with_window(before, after);
                shaping.choose_rows(&q, &rows, &k, exact)?
            }
        };
        let moment = match self.choice {
            Choice::Positive => shape.before,
            Choice::Truncated => shape.kept,
            _ => shape.dense,
        };
        Ok(Chosen { kind: self, m, shape, keys, predicted: moment - (m as f64).ln() })
    }
}

/// Features chosen by data.
pub struct Chosen {
    kind: Kind,
    m: usize,
    shape: Shape,
    pub keys: Vec<usize>,
    /// The mean logarithm of the relative second moment, less ln m.
    pub predicted: f64,
}

/// Which keys are exact.
#[derive(Clone, Copy)]
pub enum Keys {
    /// The keys that were chosen with the features.
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
        let map = match self.kind.choice {
            Choice::Positive => Positive.softmax(draw(d, m, &Orthogonal, &mut rng)?)?,
            Choice::Truncated => {
                self.shape.build(draw(self.shape.rank(), m, &Sobol, &mut rng)?, Softmax::default())?
            }
            _ => self.shape.build(draw(d, m, &Orthogonal, &mut rng)?, Softmax::default())?,
        };
        let [before, after] = self.kind.exact.window();
        let attention = Attention::new(map)?.with_window(before, after)?;
        match (self.kind.exact, keys) {
            (Exact::Nothing, _) => Ok(attention),
            (_, Keys::Chosen) => attention.with_keys_exact(&self.keys),
            (_, Keys::Heaviest) => attention.with_heaviest_keys_exact(EXACT_KEYS),
        }
    }
}

/// One head's rows as an array of heads.
pub fn one_head(rows: &Array2<f32>) -> Array4<f32> {
    rows.clone().insert_axis(Axis(0)).insert_axis(Axis(0))
}

/// ‖out − exact‖/‖exact‖ of all queries.
pub fn relative_error(
    attention: &Attention<f32>,
    [q, k, v]: &[Array4<f32>; 3],
    exact: &Array4<f32>,
) -> Result<f64> {
    let out = attention.bidirectional(&Heads::new(q, k, v)?)?.output;
    Ok(distance(out.iter().zip(exact)))
}

/// ‖a − b‖/‖b‖ of pairs of numbers.
pub fn distance<'a>(pairs: impl Iterator<Item = (&'a f32, &'a f32)>) -> f64 {
    let squares = |(error, size): (f64, f64), (a, b): (&f32, &f32)| {
        (error + f64::from(a - b).powi(2), size + f64::from(*b).powi(2))
    };
    let (error, size) = pairs.fold((0.0, 0.0), squares);
    (error / size).sqrt()
}
