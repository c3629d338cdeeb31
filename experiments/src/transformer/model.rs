//! The transformer: embeddings, layers of attention and a hidden layer each around a residual stream, and logits of the next
//! character; forward, and backward by hand.

use ndarray::{Array2, Axis, linalg::general_mat_mul, s};
use random_features::{Real, Result};

use super::layers::{Foretold, Normed, cross_entropy, gate, gelu_backward, softmax};
use super::mechanism::{Mechanism, Tokens};
use super::shape::{LayerPlaces, NormPlace, Place, RECENT, Shape};
use super::text::Window;

/// A transformer with these parameters and this attention in each layer.
pub struct Model<'a, T: Real> {
    pub shape: &'a Shape,
    pub parameters: &'a [T],
    pub attention: &'a [Mechanism<T>],
}

/// What a layer keeps for the way back.
pub struct LayerTrace<T> {
    read: Normed<T>,
    /// Queries, keys and values of each token.
    pub tokens: Array2<T>,
    /// What attention gives.
    pub mixed: Array2<T>,
    hidden: Normed<T>,
    up: Array2<T>,
    gate: Array2<T>,
    active: Array2<T>,
}

/// What is kept of all layers.
pub struct Trace<T> {
    pub layers: Vec<LayerTrace<T>>,
    /// The normalised residual stream behind the last layer.
    pub norm: Normed<T>,
    pub logits: Array2<T>,
}

/// Sums over the places that count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    pub places: usize,
    /// The sum of −ln P.
    pub loss: f64,
    pub right: usize,
}

impl Score {
    pub fn add(&mut self, other: Score) {
        self.places += other.places;
        self.loss += other.loss;
        self.right += other.right;
    }

    /// The mean of −log₂ P.
    pub fn bits(&self) -> f64 {
        self.loss / self.places as f64 / std::f64::consts::LN_2
    }

    pub fn accuracy(&self) -> f64 {
        self.right as f64 / self.places as f64
    }
}

impl<T: Real> Model<'_, T> {
    fn product(&self, x: &Array2<T>, place: Place) -> Array2<T> {
        x.dot(&place.of(self.parameters))
    }

    pub fn norm(&self, x: &Array2<T>, place: NormPlace) -> Normed<T> {
        Normed::new(x, [place.gain, place.shift].map(|place| place.of(self.parameters)))
    }

    /// The rows of the embedding that add up to that of the last of some tokens: its own, and those of the few before it.
    fn characters(&self, tokens: &[u8]) -> impl Iterator<Item = usize> {
        let characters = self.shape.size.characters;
        tokens.iter().rev().take(RECENT).enumerate().map(move |(r, c)| r * characters + usize::from(*c))
    }

    /// The residual stream before the first layer, of the last token of each of some texts.
    pub fn embed<'t>(&self, texts: impl Iterator<Item = &'t [u8]>) -> Array2<T> {
        let [of_characters, positions] =
            [self.shape.characters, self.shape.positions].map(|place| place.of(self.parameters));
        let texts: Vec<&[u8]> = texts.collect();
        let mut x = Array2::zeros((texts.len(), self.shape.size.width));
        for (mut row, text) in x.rows_mut().into_iter().zip(texts) {
            row.assign(&positions.row(text.len() - 1));
            self.characters(text).for_each(|c| row += &of_characters.row(c));
        }
        x
    }

    /// Queries, keys and values for a layer.
    pub fn read(&self, x: &Array2<T>, layer: &LayerPlaces) -> (Normed<T>, Array2<T>) {
        let read = self.norm(x, layer.attention_norm);
        let tokens = self.product(&read.output, layer.read);
        (read, tokens)
    }

    /// Adds to the residual stream what a layer makes of what attention gives.
    pub fn write(
        &self,
        x: &mut Array2<T>,
        layer: &LayerPlaces,
        (read, tokens): (Normed<T>, Array2<T>),
        mixed: Array2<T>,
    ) -> LayerTrace<T> {
        *x += &self.product(&mixed, layer.write);
        let hidden = self.norm(x, layer.hidden_norm);
        let up = self.product(&hidden.output, layer.up);
        let gate = gate(&up);
        let active = &up * &gate;
        *x += &self.product(&active, layer.down);
        LayerTrace { read, tokens, mixed, hidden, up, gate, active }
    }

    /// The norm of the residual stream behind the last layer, and logits.
    pub fn logits(&self, x: &Array2<T>) -> (Normed<T>, Array2<T>) {
        let norm = self.norm(x, self.shape.norm);
        let logits = self.product(&norm.output, self.shape.logits);
        (norm, logits)
    }

    /// Windows of one length.
    pub fn forward(&self, windows: &[Window]) -> Result<Trace<T>> {
        let length = windows.first().map_or(1, |window| window.read().len());
        let mut x = self.embed(texts(windows));
        let mut layers = Vec::with_capacity(self.attention.len());
        for (places, attention) in self.shape.layers.iter().zip(self.attention) {
            let (read, tokens) = self.read(&x, places);
            let mixed = attention.forward(&Tokens::new(&tokens, length, self.shape.size.heads))?;
            layers.push(self.write(&mut x, places, (read, tokens), mixed));
        }
        let (norm, logits) = self.logits(&x);
        Ok(Trace { layers, norm, logits })
    }

    /// The residual stream behind each layer.
    pub fn streams(&self, windows: &[Window]) -> Result<Vec<Array2<T>>> {
        let Trace { layers, .. } = self.forward(windows)?;
        let mut x = self.embed(texts(windows));
        let add = |(places, trace): (&LayerPlaces, &LayerTrace<T>)| {
            x += &self.product(&trace.mixed, places.write);
            x += &self.product(&trace.active, places.down);
            x.clone()
        };
        Ok(self.shape.layers.iter().zip(&layers).map(add).collect())
    }

    pub fn score(&self, windows: &[Window]) -> Result<Score> {
        let mut logits = self.forward(windows)?.logits;
        Ok(foretell(&mut logits, windows))
    }

    /// The loss over all places that count, and its gradient divided by `places`.
    pub fn gradient(&self, windows: &[Window], places: usize) -> Result<(Score, Vec<T>)> {
        let Trace { layers, norm, mut logits } = self.forward(windows)?;
        let score = foretell(&mut logits, windows);
        logits /= T::narrow(places as f64);
        let mut all = vec![T::zero(); self.shape.count];
        let mut back = Back { model: self, all: &mut all };
        let length = logits.nrows() / windows.len().max(1);
        let up = back.product(&norm.output, &logits, self.shape.logits);
        let mut x = back.norm(&norm, &up, self.shape.norm);
        for ((places, trace), attention) in self.shape.layers.iter().zip(layers).zip(self.attention).rev() {
            back.layer(&mut x, places, trace, (attention, length))?;
        }
        let Shape { characters, positions, .. } = self.shape;
        for (row, text) in x.rows().into_iter().zip(texts(windows)) {
            positions.of_mut(&mut all).row_mut(text.len() - 1).scaled_add(T::one(), &row);
            let mut of_characters = characters.of_mut(&mut all);
            self.characters(text).for_each(|c| of_characters.row_mut(c).scaled_add(T::one(), &row));
        }
        Ok((score, all))
    }
}

/// The way back, which adds to the gradient of all parameters.
struct Back<'a, 'm, T: Real> {
    model: &'a Model<'m, T>,
    all: &'a mut [T],
}

impl<T: Real> Back<'_, '_, T> {
    fn product(&mut self, x: &Array2<T>, upstream: &Array2<T>, place: Place) -> Array2<T> {
        general_mat_mul(T::one(), &x.t(), upstream, T::one(), &mut place.of_mut(self.all));
        upstream.dot(&place.of(self.model.parameters).t())
    }

    fn norm(&mut self, norm: &Normed<T>, upstream: &Array2<T>, place: NormPlace) -> Array2<T> {
        let mut gain = Array2::zeros((1, upstream.ncols()));
        let mut shift = gain.clone();
        let of_gain = place.gain.of(self.model.parameters);
        let x = norm.backward(upstream, of_gain, [gain.view_mut(), shift.view_mut()]);
        place.gain.of_mut(self.all).scaled_add(T::one(), &gain);
        place.shift.of_mut(self.all).scaled_add(T::one(), &shift);
        x
    }

    /// From the gradient of the residual stream behind a layer to that before it.
    fn layer(
        &mut self,
        x: &mut Array2<T>,
        places: &LayerPlaces,
        trace: LayerTrace<T>,
        (attention, length): (&Mechanism<T>, usize),
    ) -> Result<()> {
        let mut up = self.product(&trace.active, x, places.down);
        gelu_backward(&mut up, &trace.up, &trace.gate);
        let hidden = self.product(&trace.hidden.output, &up, places.up);
        *x += &self.norm(&trace.hidden, &hidden, places.hidden_norm);
        let mixed = self.product(&trace.mixed, x, places.write);
        let tokens = Tokens::new(&trace.tokens, length, self.model.shape.size.heads);
        let tokens = attention.backward(&tokens, &mixed)?;
        let read = self.product(&trace.read.output, &tokens, places.read);
        *x += &self.norm(&trace.read, &read, places.attention_norm);
        Ok(())
    }
}

/// Each window up to each of its places.
fn texts(windows: &[Window]) -> impl Iterator<Item = &[u8]> {
    windows.iter().flat_map(|window| (1..=window.read().len()).map(|end| &window.tokens[..end]))
}

/// The score of logits, which become their gradient.
fn foretell<T: Real>(logits: &mut Array2<T>, windows: &[Window]) -> Score {
    let mut score = Score::default();
    let length = logits.nrows() / windows.len().max(1);
    for (window, mut logits) in windows.iter().zip(logits.axis_chunks_iter_mut(Axis(0), length.max(1))) {
        let counted = window.counted.clone();
        logits.slice_mut(s![..counted.start, ..]).fill(T::zero());
        logits.slice_mut(s![counted.end.., ..]).fill(T::zero());
        for place in counted {
            softmax(logits.row_mut(place));
            let Foretold { loss, right } = cross_entropy(logits.row_mut(place), window.target(place));
            score.add(Score { places: 1, loss, right: usize::from(right) });
        }
    }
    score
}
