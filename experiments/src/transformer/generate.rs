//! Text from the model, character by character: with linear attention from states whose size does not grow, with exact
//! attention, and with what is in double precision, from all characters so far.

use ndarray::{Array1, Array2, Array3, s};
use rand::RngExt;
use random_features::apply::attention::CausalState;
use random_features::{Result, rng};

use super::layers::softmax;
use super::mechanism::Mechanism;
use super::model::Model;
use super::text::Window;

/// How sharp choices are: logits are divided by it.
const TEMPERATURE: f32 = 0.7;

/// The states of all layers, if all have linear attention in single precision.
fn states(model: &Model<'_, f32>) -> Result<Option<Vec<CausalState<f32>>>> {
    let size = model.shape.size;
    let state = |mechanism: &Mechanism<f32>| match mechanism {
        Mechanism::Linear(attention) => Some(attention.state(1, size.heads, size.width / size.heads)),
        _ => None,
    };
    model.attention.iter().map(state).collect::<Option<Result<Vec<_>>>>().transpose()
}

/// The logits after the last of some characters, which the states have not seen yet.
fn step(model: &Model<'_, f32>, text: &[u8], states: &mut [CausalState<f32>]) -> Result<Array1<f32>> {
    let size = model.shape.size;
    let mut x = model.embed(std::iter::once(text));
    for (places, state) in model.shape.layers.iter().zip(states) {
        let (read, tokens) = model.read(&x, places);
        let part = |part: usize| -> Array3<f32> {
            let row = tokens.slice(s![.., part * size.width..(part + 1) * size.width]);
            let heads = row.to_owned().into_shape_with_order((1, size.heads, size.width / size.heads));
            heads.expect("a row holds the numbers of all heads")
        };
        let mixed = state.step(&part(0), &part(1), &part(2))?.output;
        let mixed: Array2<f32> = mixed.into_shape_with_order((1, size.width)).expect("heads fill the width");
        model.write(&mut x, places, (read, tokens), mixed);
    }
    Ok(model.logits(&x).1.row(0).to_owned())
}

/// The logits after all of some characters.
fn read(model: &Model<'_, f32>, text: &[u8]) -> Result<Array1<f32>> {
    let tokens = [text, &text[..1]].concat();
    let logits = model.forward(&[Window { tokens, counted: 0..0 }])?.logits;
    Ok(logits.row(text.len() - 1).to_owned())
}

/// So many characters after the beginning that is given. Where places run out, the second half of what is there is a new
/// beginning.
pub fn generate(model: &Model<'_, f32>, beginning: &[u8], count: usize, seed: u64) -> Result<Vec<u8>> {
    let (mut rng, context) = (rng(seed), model.shape.size.context);
    let (mut text, mut written) = (beginning.to_vec(), Vec::with_capacity(count));
    let (mut states, mut seen) = (states(model)?, 0);
    while written.len() < count {
        if text.len() > context {
            text.drain(..text.len() - context / 2);
            (states, seen) = (self::states(model)?, 0);
        }
        let logits = match &mut states {
            Some(states) => {
                let mut last = Array1::zeros(0);
                for end in seen + 1..=text.len() {
                    last = step(model, &text[..end], states)?;
                }
                seen = text.len();
                last
            }
            None => read(model, &text)?,
        };
        let next = choose(logits, rng.random());
        text.push(next);
        written.push(next);
    }
    Ok(written)
}

/// The character at a place, from 0 to 1, among all by their probabilities.
fn choose(mut logits: Array1<f32>, place: f32) -> u8 {
    logits /= TEMPERATURE;
    softmax(logits.view_mut());
    let mut sum = 0.0;
    let passed = |p: &&f32| {
        sum += **p;
        sum <= place
    };
    logits.iter().take_while(passed).count().min(logits.len() - 1) as u8
}

/// Logits after some characters, from all of them at once and from states.
#[cfg(test)]
pub fn both_logits(model: &Model<'_, f32>, text: &[u8]) -> Result<[Array1<f32>; 2]> {
    let mut states = states(model)?.unwrap_or_default();
    let mut last = Array1::zeros(0);
    for end in 1..=text.len() {
        last = step(model, &text[..end], &mut states)?;
    }
    Ok([read(model, text)?, last])
}
