//! A run: what it is asked to do, what it knows so far, and its next step.

use ndarray::Array2;
use random_features::Result;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::mechanism::{Mechanism, Tokens};
use super::methods::{Draw, Fitted, Method};
use super::model::{Model, Score};
use super::optimiser::{Adam, rate};
use super::shape::{Shape, Size};
use super::task::Task;
use super::text::{Text, Window};

/// What a run is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub task: Task,
    /// See [`Method::named`].
    pub method: String,
    pub size: Size,
    pub seed: u64,
    pub steps: usize,
    /// Windows of a step.
    pub batch: usize,
    pub rate: f64,
}

/// What a run knows: all that a checkpoint holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub plan: Plan,
    pub step: usize,
    pub parameters: Vec<f32>,
    pub adam: Adam,
    /// Queries, keys and values of a window in each layer, as the model computed them when its maps were last fitted.
    fitted_to: Option<Vec<Vec<f32>>>,
    /// Steps and the bits of their batches, smoothed over [`SMOOTHED`].
    pub curve: Vec<(usize, f64)>,
    recent: Vec<f64>,
}

/// Steps, layers and width of the small model in which methods are compared, and its rate.
pub const SMALL: ([usize; 3], f64) = ([300, 2, 64], 6e-3);
/// Steps, layers and width of the model of a smoke test.
pub const SMOKE: [usize; 3] = [20, 2, 16];
/// Windows of a step, and in a smoke test.
pub const BATCH: [usize; 2] = [8, 2];
/// Windows by which the small model is judged, and in a smoke test.
pub const JUDGED: [usize; 2] = [128, 8];
/// Characters of a window, and heads.
pub const CONTEXT: usize = 256;
pub const HEADS: usize = 4;

/// Parts of a batch, each with a gradient of its own: their sum has the same bits on any number of threads.
const PARTS: usize = 4;
/// Steps of a point of the curve.
const SMOOTHED: usize = 20;
/// Draws of a run, for methods that redraw.
const DRAWS: usize = 20;

/// A run at work.
pub struct Run<'a> {
    text: &'a Text,
    method: Method,
    pub shape: Shape,
    pub state: State,
    pub attention: Vec<Mechanism<f32>>,
}

impl State {
    /// Whether there are as many numbers as the plan's model has.
    fn fits(&self, shape: &Shape) -> bool {
        let Size { context, width, layers, .. } = shape.size;
        let whole = |all: &Vec<Vec<f32>>| {
            all.len() == layers && all.iter().all(|rows| rows.len() == context * 3 * width)
        };
        self.parameters.len() == shape.count
            && self.adam.fits(shape.count)
            && self.fitted_to.as_ref().is_none_or(whole)
    }
}

fn words(error: random_features::Error) -> String {
    error.to_string()
}

impl<'a> Run<'a> {
    pub fn new(plan: Plan, text: &'a Text) -> Result<Self, String> {
        let shape = Shape::new(plan.size);
        let parameters = shape.draw(plan.seed);
        Run::from_parameters(plan, parameters, text)
    }

    /// Goes on from the parameters of another run.
    pub fn from_parameters(plan: Plan, parameters: Vec<f32>, text: &'a Text) -> Result<Self, String> {
        let adam = Adam::new(parameters.len());
        let (curve, recent) = (Vec::new(), Vec::new());
        Run::resume(State { plan, step: 0, parameters, adam, fitted_to: None, curve, recent }, text)
    }

    pub fn resume(state: State, text: &'a Text) -> Result<Self, String> {
        let (method, shape) = (Method::named(&state.plan.method)?, Shape::new(state.plan.size));
        if !state.fits(&shape) {
            return Err("a checkpoint whose numbers are not those of its model".into());
        }
        let mut run = Run { text, method, shape, state, attention: Vec::new() };
        // As the last step left it.
        run.draw(run.state.step.saturating_sub(1)).map_err(words)?;
        Ok(run)
    }

    pub fn is_done(&self) -> bool {
        self.state.step >= self.state.plan.steps
    }

    pub fn model(&self) -> Model<'_, f32> {
        Model { shape: &self.shape, parameters: &self.state.parameters, attention: &self.attention }
    }

    /// The redraws before a step.
    fn redraws(&self, step: usize) -> usize {
        if self.method.redrawn { step / (self.state.plan.steps / DRAWS).max(1) } else { 0 }
    }

    /// Makes the attention of a step.
    fn draw(&mut self, step: usize) -> Result<()> {
        let Plan { size, seed, .. } = self.state.plan;
        let draw = Draw { seed, number: self.redraws(step) as u64 };
        let layer = |layer: usize| {
            let rows = self.state.fitted_to.as_ref().map(|all| {
                Array2::from_shape_vec((size.context, 3 * size.width), all[layer].clone())
                    .expect("a checkpoint is looked at when it is read")
            });
            let tokens = rows.as_ref().map(|rows| Tokens::new(rows, rows.nrows(), size.heads));
            self.method.attention(layer, (size.heads, size.width / size.heads), draw, tokens.as_ref())
        };
        self.attention = (0..size.layers).map(layer).collect::<Result<_>>()?;
        Ok(())
    }

    /// Draws and fits what is due before a step.
    fn prepare(&mut self, windows: &[Window]) -> Result<()> {
        let (step, tenth) = (self.state.step, (self.state.plan.steps / 10).max(1));
        let fits = match self.method.fitted() {
            Fitted::Never => false,
            Fitted::Once => step == tenth,
            Fitted::Often => step > 0 && step % tenth == 0,
        };
        if fits {
            let trace = self.model().forward(&windows[..1])?;
            let rows = trace.layers.into_iter().map(|layer| layer.tokens.into_raw_vec_and_offset().0);
            self.state.fitted_to = Some(rows.collect());
        }
        if fits || self.redraws(step) != self.redraws(step.saturating_sub(1)) {
            self.draw(step)?;
        }
        Ok(())
    }

    /// One step.
    pub fn step(&mut self) -> Result<(), String> {
        let Plan { task, size, seed, steps, batch, rate: most, .. } = self.state.plan;
        let step = self.state.step;
        let windows = task.batch(self.text, batch, size.context, [seed, step as u64]);
        self.prepare(&windows).map_err(words)?;
        let places = windows.iter().map(|window| window.counted.len()).sum();
        let model = self.model();
        let parts: Vec<&[Window]> = windows.chunks(batch.div_ceil(PARTS)).collect();
        let gradients: Result<Vec<_>> = parts.par_iter().map(|part| model.gradient(part, places)).collect();
        let mut parts = gradients.map_err(words)?.into_iter();
        let (mut score, mut gradient) = parts.next().unwrap_or_default();
        for (other, of_part) in parts {
            score.add(other);
            gradient.iter_mut().zip(of_part).for_each(|(sum, own)| *sum += own);
        }
        self.state.adam.step(&mut self.state.parameters, &gradient, rate(most, step, steps));
        self.state.step += 1;
        self.state.recent.push(score.bits());
        if self.state.step.is_multiple_of(SMOOTHED) || self.is_done() {
            let mean = self.state.recent.iter().sum::<f64>() / self.state.recent.len() as f64;
            self.state.curve.push((self.state.step, mean));
            self.state.recent.clear();
        }
        Ok(())
    }

    /// The score over windows by which the task is judged, or the first `most` of them.
    pub fn judge(&self, most: usize) -> Result<Score, String> {
        let mut windows = self.state.plan.task.examination(self.text, self.state.plan.size.context);
        windows.truncate(most);
        let model = self.model();
        let scores: Result<Vec<Score>> = windows.par_chunks(4).map(|part| model.score(part)).collect();
        let mut sum = Score::default();
        scores.map_err(words)?.into_iter().for_each(|score| sum.add(score));
        Ok(sum)
    }
}
