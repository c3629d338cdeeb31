//! How tests call attention: causally or not, with normalisers or not.

use ndarray::Array2;
use random_features::apply::attention::{Attended, Attention, Heads, TokenElement};
use random_features::{Error, Real};

/// Attention with outputs that are divided by their normalisers, or not.
pub fn normalised<T: Real>(attention: Attention<T>, normalised: bool) -> Attention<T> {
    if normalised { attention } else { attention.without_normalisers() }
}

/// The cheaper of linear and exact attention, causal or not.
pub fn auto<T: Real, E: TokenElement<T>>(
    attention: &Attention<T>,
    heads: &Heads<'_, E>,
    causal: bool,
) -> Result<Attended<T>, Error> {
    if causal { attention.causal_auto(heads) } else { attention.bidirectional_auto(heads) }
}

/// Attention with effective numbers of features, causal or not.
pub fn diagnosed<T: Real, E: TokenElement<T>>(
    attention: &Attention<T>,
    heads: &Heads<'_, E>,
    causal: bool,
) -> Result<Attended<T>, Error> {
    if causal { attention.causal_diagnosed(heads) } else { attention.bidirectional_diagnosed(heads) }
}

/// The length from which on linear attention is cheaper, causal or not.
pub fn crossover<T: Real>(attention: &Attention<T>, d_v: usize, causal: bool) -> usize {
    if causal { attention.causal_crossover(d_v) } else { attention.bidirectional_crossover(d_v) }
}

/// Rows of the matrix of weights of a batch and a head of queries, causal or not.
pub fn weights<T: Real, E: TokenElement<T>>(
    attention: &Attention<T>,
    heads: &Heads<'_, E>,
    ([batch, head], rows): ([usize; 2], &[usize]),
    causal: bool,
) -> Result<Array2<f64>, Error> {
    match causal {
        true => attention.causal_weights(heads, batch, head, rows),
        false => attention.bidirectional_weights(heads, batch, head, rows),
    }
}
