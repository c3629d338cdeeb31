//! A language model of words: a log-bilinear one, whose prediction is a linear map of the embeddings of the last words.

use std::collections::HashMap;

use experiments::sampling::data::normal;
use experiments::sampling::methods::{Equal, Method, UNIFORM};
use experiments::sampling::training::{self, D, Model};
use ndarray::{Array2, s};
use rand::RngExt;
use random_features::{Result, rng_of_step};

/// The words that a prediction sees.
const CONTEXT: usize = 3;
/// Words that are rarer are one class.
const RARE: usize = 3;
/// The last of so many parts is held out.
const PARTS: usize = 10;
const BATCH: usize = 64;

/// A text as numbers of words, 0 for all rare ones.
pub struct Words {
    pub classes: usize,
    training: Vec<usize>,
    held_out: Vec<usize>,
}

impl Words {
    /// Words in lower case, without punctuation.
    pub fn of(text: &str) -> Self {
        let text = text.to_lowercase();
        let marked: String = text.chars().map(mark).collect();
        let words: Vec<&str> = marked.split_whitespace().collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        words.iter().for_each(|word| *counts.entry(word).or_default() += 1);
        let mut common: Vec<&str> =
            counts.into_iter().filter(|(_, count)| *count >= RARE).map(|(word, _)| word).collect();
        common.sort_unstable();
        let number = |word: &&str| common.binary_search(word).map_or(0, |number| number + 1);
        let mut training: Vec<usize> = words.iter().map(number).collect();
        let held_out = training.split_off(training.len() - training.len() / PARTS);
        Words { classes: common.len() + 1, training, held_out }
    }

    /// As many words to learn from.
    pub fn len(&self) -> usize {
        self.training.len()
    }
}

/// Letters stay, all else stands between words.
fn mark(c: char) -> char {
    if c.is_alphabetic() { c } else { ' ' }
}

/// The embeddings of words, and what predicts from them.
struct Learner {
    embeddings: Array2<f32>,
    squares: Array2<f32>,
    model: Model,
}

impl Learner {
    /// Embeddings of the words before each place, in a row.
    fn read(&self, text: &[usize], places: &[usize]) -> Array2<f32> {
        let mut x = Array2::zeros((places.len(), CONTEXT * D));
        for (mut row, place) in x.rows_mut().into_iter().zip(places) {
            for k in 0..CONTEXT {
                row.slice_mut(s![k * D..(k + 1) * D]).assign(&self.embeddings.row(text[place - 1 - k]));
            }
        }
        x
    }

    fn step(&mut self, text: &[usize], places: &[usize], seed: u64) -> Result<()> {
        let labels: Vec<usize> = places.iter().map(|place| text[*place]).collect();
        let x = self.read(text, places);
        let of_x = self.model.step(&x, &labels, seed)?;
        for (gradient, place) in of_x.rows().into_iter().zip(places) {
            for k in 0..CONTEXT {
                let word = text[place - 1 - k];
                let gradient = gradient.slice_move(s![k * D..(k + 1) * D]);
                training::adagrad(self.embeddings.row_mut(word), self.squares.row_mut(word), gradient);
            }
        }
        Ok(())
    }
}

/// The test losses in nats of a training with a method, or with the softmax over all classes: after each of `measured` parts of the steps.
pub fn train(words: &Words, method: Option<Method>, size: Size, seed: u64) -> Result<Vec<f64>> {
    let mut rng = rng_of_step(seed, 0);
    let embeddings = (normal(words.classes, D, &mut rng) * 0.1).mapv(|v| v as f32);
    let proposal = training::proposal_of(method, Equal::Operations, seed)?;
    let proposal = match method {
        None | Some(Method::Uniform) => proposal,
        Some(_) => proposal.with_uniform(UNIFORM)?,
    };
    let model = Model::new(proposal, words.classes, CONTEXT * D, &mut rng)?;
    let squares = training::squares(embeddings.view());
    let mut learner = Learner { embeddings, squares, model };
    let examined: Vec<usize> = (CONTEXT..words.held_out.len()).take(size.examined).collect();
    let labels: Vec<usize> = examined.iter().map(|place| words.held_out[*place]).collect();
    let mut losses = Vec::new();
    for step in 1..=size.steps {
        let places: Vec<usize> =
            (0..BATCH).map(|_| rng.random_range(CONTEXT..words.training.len())).collect();
        learner.step(&words.training, &places, seed.wrapping_mul(1 << 32) + step as u64)?;
        if step % (size.steps / size.measured) == 0 {
            let x = learner.read(&words.held_out, &examined);
            losses.push(learner.model.loss(x.view(), &labels));
        }
    }
    Ok(losses)
}

#[derive(Clone, Copy)]
pub struct Size {
    pub steps: usize,
    /// Held-out words that are foretold.
    pub examined: usize,
    /// How often.
    pub measured: usize,
}
