//! Where classes and queries come from: a law, or a small model of characters.

use std::cell::OnceCell;

use experiments::sampling::data::{self, Law};
use experiments::transformer::train::CONTEXT;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use rand::RngExt;
use random_features::rng_of_step;

use crate::item::Stop;
use crate::language::Language;

/// Windows of held-out text in which hidden states are taken.
const WINDOWS: usize = 40;

/// Embeddings of classes and of queries.
pub enum Embeddings<'a> {
    /// Drawn: so many classes.
    Drawn(Law, usize),
    /// Embeddings of a trained model, which is trained when it is first asked for.
    Trained(&'a Trained<'a>),
}

/// Class vectors and hidden states of a small model of characters.
pub struct Trained<'a> {
    language: &'a Language,
    seed: u64,
    found: OnceCell<[Array2<f32>; 2]>,
}

impl<'a> Trained<'a> {
    pub fn new(language: &'a Language, seed: u64) -> Self {
        Trained { language, seed, found: OnceCell::new() }
    }

    fn find(&self) -> Result<[Array2<f32>; 2], Stop> {
        let run = self.language.trained(self.language.plan("exact", self.seed))?;
        let model = run.model();
        let mut windows = self.language.text().examination(CONTEXT);
        windows.truncate(WINDOWS);
        let hidden = model.forward(&windows)?.norm.output;
        let classes = model.shape.logits.of(model.parameters).reversed_axes();
        // Products are what counts.
        let factor = (norm(hidden.view()) / norm(classes)).sqrt() as f32;
        Ok([&classes * factor, hidden / factor])
    }

    fn embeddings(&self) -> Result<&[Array2<f32>; 2], Stop> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let found = self.find()?;
        Ok(self.found.get_or_init(|| found))
    }
}

/// The root mean square norm of rows.
fn norm(rows: ArrayView2<'_, f32>) -> f64 {
    (rows.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / rows.nrows() as f64).sqrt()
}

/// Classes, queries and their softmax.
pub struct Data {
    pub classes: Array2<f32>,
    pub queries: Array2<f32>,
    /// The norm about which points lie.
    pub r: f64,
    pub exact: Vec<Array1<f64>>,
}

impl Embeddings<'_> {
    pub fn name(&self) -> &'static str {
        match self {
            Embeddings::Drawn(law, _) => law.name,
            Embeddings::Trained(_) => "a model of characters",
        }
    }

    /// The embeddings of a repetition.
    pub fn draw(&self, queries: usize, seed: u64, repetition: u64) -> Result<Data, Stop> {
        let mut rng = rng_of_step(seed, repetition);
        let (classes, queries, r) = match self {
            Embeddings::Drawn(law, classes) => {
                let topics = data::topics(&mut rng);
                let classes = data::embeddings(*classes, &topics, *law, &mut rng);
                (classes, data::embeddings(queries, &topics, *law, &mut rng), law.middle)
            }
            Embeddings::Trained(trained) => {
                let [classes, hidden] = trained.embeddings()?;
                let places: Vec<usize> = (0..queries).map(|_| rng.random_range(0..hidden.nrows())).collect();
                (classes.clone(), hidden.select(Axis(0), &places), norm(classes.view()))
            }
        };
        let softmax = |h: ArrayView1<'_, f32>| {
            let logits = classes.dot(&h).mapv(f64::from);
            let top = logits.fold(f64::NEG_INFINITY, |top, logit| top.max(*logit));
            let weights = logits.mapv(|logit| (logit - top).exp());
            let total = weights.sum();
            weights / total
        };
        let exact = queries.rows().into_iter().map(softmax).collect();
        Ok(Data { classes, queries, r, exact })
    }
}
