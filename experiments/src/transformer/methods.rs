//! Names of attention, and what they stand for.

use ndarray::Array2;
use random_features::apply::attention::{Attention, AttentionShaping};
use random_features::compose::{Bases, Centres, Clustered, Hybrid};
use random_features::data::shaping::Shaping;
use random_features::data::{Clustering, PairStatistics, Statistics};
use random_features::extend::{Coupling, Radius};
use random_features::frequency::{Independent, Orthogonal, Simplex};
use random_features::kernel::{Activation, Softmax};
use random_features::rand::Rng;
use random_features::theory::gerf::GerfSign;
use random_features::workbench::Formula;
use random_features::{
    EluPlusOne, Gerf, Hyperbolic, Map, Nonlinear, Positive, Real, Result, Trigonometric, rng_of_step,
};

use super::mechanism::{Mechanism, Tokens};

/// Real features of a token and a head, where a method can have any number and its name says none.
const FEATURES: usize = 64;
/// Frequencies of the angular hybrid's coefficient.
const ANGULAR: usize = 8;
/// Tokens that are attended to exactly by those with exact neighbours, their own among them.
pub const NEAR: usize = 32;
/// How the option that numbers draws of frequencies begins.
const DRAW: &str = "draw-";
const MOST_DRAWS: u64 = 1_000_000;
/// The ε of functions, as in the reference code of Performers.
const OFFSET: f64 = 1e-3;
/// Rows of the attention matrix that shape features.
const ROWS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Exact,
    Blocks,
    Values,
    Trigonometric,
    Positive(Points),
    Regularised,
    Hyperbolic,
    Function(Activation),
    EluPlusOne,
    /// With so many frequencies of the bases.
    Angular(usize),
    Oprf,
    /// With so many clusters of queries, and of keys.
    Clusters([usize; 2]),
    Shaped,
}

/// How frequencies are coupled.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Points {
    Independent,
    Orthogonal,
    Simplex,
}

const KINDS: [(&str, Kind); 26] = [
    ("exact", Kind::Exact),
    ("blocks", Kind::Blocks),
    ("values", Kind::Values),
    ("trigonometric", Kind::Trigonometric),
    ("favor-independent", Kind::Positive(Points::Independent)),
    ("favor-orthogonal", Kind::Positive(Points::Orthogonal)),
    ("favor-simplex", Kind::Positive(Points::Simplex)),
    ("oprf", Kind::Oprf),
    ("regularised", Kind::Regularised),
    ("hyperbolic", Kind::Hyperbolic),
    ("sigmoid", Kind::Function(Activation::Sigmoid)),
    ("exp", Kind::Function(Activation::Exp)),
    ("relu", Kind::Function(Activation::Relu)),
    ("abs", Kind::Function(Activation::Abs)),
    ("gelu", Kind::Function(Activation::Gelu)),
    ("cos", Kind::Function(Activation::Cos)),
    ("tanh", Kind::Function(Activation::Tanh)),
    ("identity", Kind::Function(Activation::Identity)),
    ("elu", Kind::EluPlusOne),
    ("angular", Kind::Angular(16)),
    ("angular-8", Kind::Angular(8)),
    ("clusters", Kind::Clusters([2, 2])),
    ("clusters-2-3", Kind::Clusters([2, 3])),
    ("clusters-3-2", Kind::Clusters([3, 2])),
    ("clusters-3-3", Kind::Clusters([3, 3])),
    ("shaped", Kind::Shaped),
];

/// A kind of attention with its options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Method {
    kind: Kind,
    /// Neighbours are attended to exactly.
    near: bool,
    /// Frequencies are drawn again from time to time.
    pub redrawn: bool,
    /// Outputs are sums, which no normaliser divides.
    sum: bool,
    /// Attention computes in double precision, which holds features of one token that are further apart in size.
    wide: bool,
    features: usize,
    /// The number of one of many draws of frequencies, all else being equal.
    luck: u64,
}

/// When a method looks at queries and keys.
#[derive(Clone, Copy, PartialEq)]
pub enum Fitted {
    Never,
    /// After a tenth of the steps.
    Once,
    /// After every tenth of the steps.
    Often,
}

/// A draw of frequencies.
#[derive(Clone, Copy)]
pub struct Draw {
    pub seed: u64,
    /// The number of redraws before this draw.
    pub number: u64,
}

impl Method {
    /// A kind with options: "favor-orthogonal/near/redrawn/sum/wide/draw-2/128".
    pub fn named(name: &str) -> Result<Self, String> {
        let mut words = name.split('/');
        let kind = words.next().and_then(|word| KINDS.iter().find(|(known, _)| *known == word));
        let known = || KINDS.map(|(name, _)| name).join(", ");
        let kind = kind.ok_or_else(|| format!("'{name}' is no method: these are {}", known()))?.1;
        let mut method = Method {
            kind,
            near: false,
            redrawn: false,
            sum: false,
            wide: false,
            features: FEATURES,
            luck: 0,
        };
        for word in words {
            match word {
                "near" => method.near = true,
                "redrawn" => method.redrawn = true,
                "sum" => method.sum = true,
                "wide" => method.wide = true,
                _ if word.starts_with(DRAW) => {
                    let number = word[DRAW.len()..].parse().ok().filter(|number| *number <= MOST_DRAWS);
                    method.luck =
                        number.ok_or_else(|| format!("'{word}' is not {DRAW}0 to {DRAW}{MOST_DRAWS}"))?;
                }
                _ => {
                    let features = word.parse().ok().filter(|features| (2..=4096).contains(features));
                    method.features = features.ok_or_else(|| {
                        format!("'{word}' is no option of a method: these are near, redrawn, sum, wide, {DRAW}N, and 2 to 4096 features")
                    })?;
                }
            }
        }
        let plain = matches!(kind, Kind::Exact | Kind::Blocks | Kind::Values);
        if plain && name.contains('/') {
            return Err(format!("attention without features has no options, as '{name}' asks for"));
        }
        Ok(method)
    }

    pub fn fitted(self) -> Fitted {
        match self.kind {
            Kind::Oprf | Kind::Clusters(_) => Fitted::Once,
            Kind::Shaped => Fitted::Often,
            _ => Fitted::Never,
        }
    }

    /// Attention of the layer with this number, for heads of dimension d. `tokens` is a sequence that the model has read: before there
    /// is one, methods that need it are FAVOR+.
    pub fn attention(
        self,
        layer: usize,
        (heads, d): (usize, usize),
        draw: Draw,
        tokens: Option<&Tokens<'_, f32>>,
    ) -> Result<Mechanism<f32>> {
        match self.kind {
            Kind::Exact => return Ok(Mechanism::Exact),
            Kind::Blocks => return Ok(Mechanism::Blocks(NEAR)),
            Kind::Values => return Ok(Mechanism::Values),
            _ => {}
        }
        Ok(if self.wide {
            Mechanism::Wide(self.linear(layer, (heads, d), draw, tokens)?)
        } else {
            Mechanism::Linear(self.linear(layer, (heads, d), draw, tokens)?)
        })
    }

    /// Attention with a map for each head.
    fn linear<T: Real>(
        self,
        layer: usize,
        (heads, d): (usize, usize),
        draw: Draw,
        tokens: Option<&Tokens<'_, f32>>,
    ) -> Result<Box<Attention<T>>> {
        let map = |head: usize| {
            let stream = (draw.number << 32) | ((layer as u64) << 16) | (head as u64 + 1);
            let mut rng = rng_of_step(draw.seed ^ (self.luck << 32), stream);
            let tokens =
                tokens.map(|tokens| tokens.head(0, head).map(|rows| rows.mapv(|v| T::narrow(v.into()))));
            self.map(d, tokens, &mut rng)
        };
        let attention = Attention::signed((0..heads).map(map).collect::<Result<_>>()?)?;
        let attention = if self.sum { attention.without_normalisers() } else { attention };
        Ok(Box::new(if self.near { attention.with_window(NEAR, 0)? } else { attention }))
    }

    /// For queries and keys that a model has read, if there are any.
    fn map<T: Real>(self, d: usize, tokens: Option<[Array2<T>; 2]>, rng: &mut impl Rng) -> Result<Map<T>> {
        let m = self.features;
        match (self.kind, tokens) {
            (Kind::Trigonometric, _) => Trigonometric.softmax(Orthogonal.draw(d, m / 2, rng.next_u64())?),
            (Kind::Hyperbolic, _) => Hyperbolic.softmax(Orthogonal.draw(d, m / 2, rng.next_u64())?),
            (Kind::Regularised, _) => {
                Positive.softmax(Orthogonal.with_radii(Radius::RootDim).draw(d, m, rng.next_u64())?)
            }
            (Kind::Positive(points), _) => {
                let coupling: &dyn Coupling = match points {
                    Points::Independent => &Independent,
                    Points::Orthogonal => &Orthogonal,
                    Points::Simplex => &Simplex::default(),
                };
                Positive.softmax(coupling.draw(d, m, rng.next_u64())?)
            }
            (Kind::Function(activation), _) => Nonlinear::new(activation)
                .with_offset(OFFSET)?
                .build(Orthogonal.draw(d, m, rng.next_u64())?, 1.0),
            (Kind::EluPlusOne, _) => EluPlusOne.build(d, 1.0),
            (Kind::Angular(bases), _) => {
                let bases = Bases::shared(Orthogonal.draw(d, bases, rng.next_u64())?);
                Hybrid::angular(bases, Orthogonal.draw(d, ANGULAR, rng.next_u64())?)
            }
            (Kind::Oprf, Some(tokens)) => {
                let [x, y] = tokens.map(|tokens| Statistics::of(&points(tokens)));
                let sum = PairStatistics::new(&x?, &y?)?.mean_squared_sum(GerfSign::Plus);
                Gerf::optimal(d, sum)?.softmax(Orthogonal.draw(d, m, rng.next_u64())?)
            }
            (Kind::Clusters(counts), Some([queries, keys])) => {
                let omega = Orthogonal.draw(d, (m / 2).max(1), rng.next_u64())?;
                let queries = Clustering::of(&points(queries), counts[0], rng.next_u64())?;
                let keys = Clustering::of(&points(keys), counts[1], rng.next_u64())?;
                let centres = Centres::new(&queries, &keys).with_diagonal(Formula::RobustReal);
                Clustered::by_centres(centres, omega, Softmax::default())
            }
            (Kind::Shaped, Some([queries, keys])) => {
                let shaping = AttentionShaping::new(Shaping::new());
                let shaping = if self.near { shaping.with_window(NEAR, 0) } else { shaping };
                let (shape, _) = shaping.choose(&queries, &keys, ROWS, 0)?;
                shape.build(Orthogonal.draw(d, m, rng.next_u64())?, Softmax::default())
            }
            _ => Positive.softmax(Orthogonal.draw(d, m, rng.next_u64())?),
        }
    }
}

/// Queries or keys as points whose products are logits.
fn points<T: Real>(tokens: Array2<T>) -> Array2<T> {
    let factor = T::narrow((tokens.ncols() as f64).powf(-0.25));
    tokens * factor
}
