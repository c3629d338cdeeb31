//! The ways of attending that are compared: each is chosen from queries, keys and values of a layer.

use random_features::apply::attention::{
    Attention, AttentionShaping, HeadBudget, HeadCalibration, HeadCandidate, Heads,
};
use random_features::compose::{Bases, Hybrid};
use random_features::data::shaping::{Shape, Shaping};
use random_features::frequency::{Independent, Orthogonal, Sobol};
use random_features::kernel::Softmax;
use random_features::rng_of_step;
use rayon::prelude::*;

use crate::head::Head;
use crate::outcome::Outcome;
use crate::pairs::{Pairs, ROWS};
use crate::tokens::{HeadTokens, Tokens};

/// A way of attending.
pub struct Way {
    pub name: &'static str,
    /// How the heads of a layer attend, chosen from the tokens of that layer for some texts; most ways take the first text alone.
    pub choose: fn(&Tokens, Settings) -> Outcome<Vec<Head>>,
}

/// What is the same for all heads of a layer.
#[derive(Clone, Copy)]
pub struct Settings {
    /// The number of frequencies.
    pub features: usize,
    /// Exact pairs of a query where their number is chosen, on average over heads.
    pub pairs: usize,
    pub seed: u64,
}

/// Pairs that are exact beside shaped features.
const EXACT: Pairs = Pairs { near: Some(8), keys: 4 };
const NONE: Pairs = Pairs { near: None, keys: 0 };

/// Sign frequencies of a hybrid's coefficient.
const SIGNS: usize = 2;

/// The ridge of shapes that are chosen on one text and used for others.
const RIDGE: f64 = 0.3;

/// All ways; the first is the one that others approximate.
pub const WAYS: [Way; 9] = [
    Way { name: "exact", choose: |tokens, _| Ok((0..tokens.heads()).map(|_| Head::Exact).collect()) },
    Way { name: "FAVOR+", choose: |tokens, settings| each(tokens, settings, favor_plus) },
    Way { name: "FAVOR++", choose: |tokens, settings| each(tokens, settings, favor_plus_plus) },
    Way { name: "simplex", choose: |tokens, settings| each(tokens, settings, simplex) },
    Way { name: "angular hybrid", choose: |tokens, settings| each(tokens, settings, hybrid) },
    Way {
        name: "pairs alone",
        choose: |tokens, _| Ok((0..tokens.heads()).map(|_| Head::Alone(EXACT)).collect()),
    },
    Way { name: "shaped, pairs", choose: |tokens, settings| each(tokens, settings, shaped) },
    Way { name: "truncated, pairs", choose: |tokens, settings| each(tokens, settings, truncated) },
    Way { name: "calibrated", choose: calibrated },
];

/// Chooses for each head by itself, with a seed of its own.
fn each(
    tokens: &Tokens,
    settings: Settings,
    choose: fn(&HeadTokens<'_>, Settings) -> Outcome<Head>,
) -> Outcome<Vec<Head>> {
    let of_head = |number: usize| {
        let seed = rng_of_step(settings.seed, number as u64).next_u64();
        choose(&tokens.head(number, 0), Settings { seed, ..settings })
    };
    (0..tokens.heads()).into_par_iter().map(of_head).collect()
}

fn favor_plus(tokens: &HeadTokens<'_>, Settings { features, seed, .. }: Settings) -> Outcome<Head> {
    Head::linear(Attention::favor_plus(tokens.dim(), features, seed)?, NONE)
}

fn favor_plus_plus(tokens: &HeadTokens<'_>, Settings { features, seed, .. }: Settings) -> Outcome<Head> {
    Head::linear(Attention::favor_plus_plus(&tokens.input()?, features, seed)?, NONE)
}

fn simplex(tokens: &HeadTokens<'_>, Settings { features, seed, .. }: Settings) -> Outcome<Head> {
    Head::linear(Attention::simplex(tokens.dim(), features, seed)?, NONE)
}

/// Hyperbolic features for opposite tokens and trigonometric ones for similar tokens, which share frequencies. Their products with signs
/// are twice as many features as were asked for, of which half are 0 at each token.
fn hybrid(tokens: &HeadTokens<'_>, Settings { features, seed, .. }: Settings) -> Outcome<Head> {
    let (dim, mut rng) = (tokens.dim(), rng_of_step(seed, 0));
    // Both bases have two features of a frequency, and each is there once for either value of each sign.
    let omega = Orthogonal.draw(dim, (features / (4 * SIGNS)).max(1), rng.next_u64())?;
    let tau = Independent.draw(dim, SIGNS, rng.next_u64())?;
    let map = Hybrid::angular(Bases::shared(omega), tau)?;
    Head::linear(Attention::signed(vec![map])?, NONE)
}

/// What is best for each head with so many exact pairs a query, on average over the heads of the layer.
fn calibrated(tokens: &Tokens, Settings { features, pairs, seed }: Settings) -> Outcome<Vec<Head>> {
    let calibration = HeadCalibration::bidirectional().with_m(&[features]).with_seed(seed);
    let heads = Heads::new(&tokens.queries, &tokens.keys, &tokens.values)?;
    let layer = calibration.choose::<f32, _>(&[heads], HeadBudget::Pairs(pairs as f64))?;
    let of_head = |(head, chosen): (usize, &HeadCandidate)| match layer.attention(head) {
        None => Head::Exact,
        Some(attention) => {
            let near = chosen.window[0].checked_sub(1);
            Head::Linear(Box::new(attention.clone()), Pairs { near, keys: chosen.exact_keys })
        }
    };
    Ok(layer.chosen().enumerate().map(of_head).collect())
}

/// Features without bias, shaped by the pairs that are not exact.
fn shaped(tokens: &HeadTokens<'_>, Settings { features, seed, .. }: Settings) -> Outcome<Head> {
    let shape = shaping(Shaping::new(), tokens)?;
    let map = shape.build(Orthogonal.draw(tokens.dim(), features, seed)?, Softmax::default())?;
    Head::linear(Attention::new(map)?, EXACT)
}

/// Features of the leading coordinates alone, whose number is chosen too: they are biased.
fn truncated(tokens: &HeadTokens<'_>, Settings { features, seed, .. }: Settings) -> Outcome<Head> {
    let shape = shaping(Shaping::new().with_rank_for(features)?, tokens)?;
    let map = shape.build(Sobol.draw(shape.rank(), features, seed)?, Softmax::default())?;
    Head::linear(Attention::new(map)?, EXACT)
}

fn shaping(options: Shaping, tokens: &HeadTokens<'_>) -> Outcome<Shape> {
    let [queries, keys, _] = tokens.rows();
    let [before, after] = EXACT.window();
    let shaping = AttentionShaping::new(options.with_ridge(RIDGE)?).with_window(before, after);
    Ok(shaping.choose(&queries, &keys, ROWS, EXACT.keys.min(keys.nrows() - 1))?.0)
}
