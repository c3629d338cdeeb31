//! How the heads of a model attend.

use random_features::apply::attention::{Attention, ExactAttention};
use random_features::ndarray::{Array4, s};
use rayon::prelude::*;

use crate::outcome::Outcome;
use crate::pairs::Pairs;
use crate::tokens::{HeadTokens, Tokens};

/// How one head attends.
pub enum Head {
    /// To all keys with exact weights.
    Exact,
    /// To all keys: with exact weights for these pairs, and with weights that features estimate for the others.
    Linear(Box<Attention<f32>>, Pairs),
    /// To these pairs, and to no others.
    Alone(Pairs),
}

impl Head {
    /// Attention by features, with exact weights for some pairs.
    pub fn linear(attention: Attention<f32>, pairs: Pairs) -> Outcome<Self> {
        Ok(Head::Linear(Box::new(pairs.beside(attention)?), pairs))
    }

    /// The outputs, \[1, 1, length, dim\].
    fn attend(&self, tokens: &HeadTokens<'_>) -> Outcome<Array4<f32>> {
        Ok(match self {
            Head::Exact => ExactAttention::new().bidirectional(&tokens.input()?)?.output,
            Head::Linear(attention, _) => attention.bidirectional(&tokens.input()?)?.output,
            Head::Alone(pairs) => pairs.alone(tokens)?,
        })
    }

    /// The number of features of a token.
    pub fn features(&self) -> usize {
        match self {
            Head::Linear(attention, _) => attention.maps()[0].feature_dim(),
            Head::Exact | Head::Alone(_) => 0,
        }
    }

    /// The mean number of keys to which a query has an exact weight.
    pub fn pairs(&self, tokens: &HeadTokens<'_>) -> Outcome<f64> {
        match self {
            Head::Exact => Ok(tokens.queries.dim().2 as f64),
            Head::Linear(_, pairs) | Head::Alone(pairs) => pairs.count(tokens),
        }
    }
}

/// The outputs of all heads of a layer, \[batch, heads, length, dim\], each on a thread that is free. They are 0 where a text has ended.
///
/// Texts are attended to one by one, so that what fills one up cannot choose its heaviest keys.
pub fn attend(heads: &[Head], tokens: &Tokens) -> Outcome<Array4<f32>> {
    let all: Vec<(usize, usize)> =
        (0..tokens.texts()).flat_map(|text| (0..heads.len()).map(move |head| (head, text))).collect();
    let of_head = |&(head, text): &(usize, usize)| heads[head].attend(&tokens.head(head, text));
    let parts = all.par_iter().map(of_head).collect::<Outcome<Vec<_>>>()?;
    let mut outputs = Array4::zeros(tokens.values.dim());
    for ((head, text), part) in all.into_iter().zip(parts) {
        outputs.slice_mut(s![text..=text, head..=head, ..part.dim().2, ..]).assign(&part);
    }
    Ok(outputs)
}
