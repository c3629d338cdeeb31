//! The model: two blocks of attention and a perceptron, with either attention.

use candle_core::{DType, Device, Error, Result, Tensor, Var};
use candle_nn::{
    AdamW, Embedding, Linear, Module, Optimizer, ParamsAdamW, RmsNorm, VarBuilder, VarMap, embedding,
    linear_no_bias, loss, rms_norm,
};
use random_features::apply::attention::Attention;
use random_features::frequency::{Frequencies, Orthogonal};
use random_features::rand::RngExt;
use random_features::{Positive, rng};
use random_features_candle::naive::NaiveAttention;
use random_features_candle::{LinearAttention, LinearSelfAttention, Projections};

use crate::task::{Batch, TOKENS};

/// The dimension of tokens, heads, and their dimension.
const MODEL: usize = 32;
pub const HEADS: usize = 2;
pub const DIM: usize = 16;
const BLOCKS: usize = 2;

const SEED: u64 = 1;

/// What can be chosen.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub features: usize,
}

impl Sizes {
    /// Draw number `number`.
    pub fn frequencies(self, number: u64) -> Result<Frequencies> {
        Orthogonal.draw(DIM, self.features, SEED + number).map_err(Error::wrap)
    }
}

/// Attention on features of frequencies that can be drawn again.
pub trait Redrawn: Module + Sized {
    fn new(frequencies: &Frequencies, vb: VarBuilder<'_>) -> Result<Self>;

    fn redraw(&mut self, frequencies: &Frequencies) -> Result<()>;
}

pub fn attention(frequencies: &Frequencies) -> Result<Attention<f32>> {
    Positive.softmax(frequencies.clone()).and_then(Attention::new).map_err(Error::wrap)
}

impl Redrawn for LinearSelfAttention<f32> {
    fn new(frequencies: &Frequencies, vb: VarBuilder<'_>) -> Result<Self> {
        LinearSelfAttention::new(LinearAttention::causal(attention(frequencies)?), MODEL, HEADS, vb)
    }

    fn redraw(&mut self, frequencies: &Frequencies) -> Result<()> {
        LinearSelfAttention::redraw(self, attention(frequencies)?)
    }
}

/// The layer with attention composed of candle's operations.
pub struct Composed {
    projections: Projections,
    attention: NaiveAttention,
}

impl Redrawn for Composed {
    fn new(frequencies: &Frequencies, vb: VarBuilder<'_>) -> Result<Self> {
        let attention = NaiveAttention::new(frequencies, true, DType::F32)?;
        Ok(Composed { projections: Projections::new(MODEL, HEADS, DIM, vb)?, attention })
    }

    fn redraw(&mut self, frequencies: &Frequencies) -> Result<()> {
        self.attention = NaiveAttention::new(frequencies, true, DType::F32)?;
        Ok(())
    }
}

impl Module for Composed {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [q, k, v] = self.projections.split(x)?;
        self.projections.merge(&self.attention.apply(&q, &k, &v)?)
    }
}

struct Block<A> {
    norms: [RmsNorm; 2],
    attention: A,
    perceptron: [Linear; 2],
}

impl<A: Redrawn> Block<A> {
    fn new(frequencies: &Frequencies, vb: VarBuilder<'_>) -> Result<Self> {
        let norm = |name| rms_norm(MODEL, 1e-5, vb.pp(name));
        Ok(Block {
            norms: [norm("norm_1")?, norm("norm_2")?],
            attention: A::new(frequencies, vb.pp("attention"))?,
            perceptron: [
                linear_no_bias(MODEL, 2 * MODEL, vb.pp("up"))?,
                linear_no_bias(2 * MODEL, MODEL, vb.pp("down"))?,
            ],
        })
    }
}

impl<A: Module> Module for Block<A> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = (x + self.attention.forward(&self.norms[0].forward_diff(x)?)?)?;
        let hidden = self.perceptron[0].forward(&self.norms[1].forward_diff(&x)?)?.gelu()?;
        &x + self.perceptron[1].forward(&hidden)?
    }
}

/// A model and what trains it.
pub struct Model<A> {
    embedding: Embedding,
    blocks: Vec<Block<A>>,
    norm: RmsNorm,
    head: Linear,
    optimiser: AdamW,
}

impl<A: Redrawn> Model<A> {
    /// Always with the same weights.
    pub fn new(sizes: Sizes) -> Result<Self> {
        let (variables, frequencies) = (VarMap::new(), sizes.frequencies(0)?);
        let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
        let block = |i| Block::new(&frequencies, vb.pp(format!("block_{i}")));
        let embedding = embedding(TOKENS, MODEL, vb.pp("embedding"))?;
        let blocks = (0..BLOCKS).map(block).collect::<Result<_>>()?;
        let norm = rms_norm(MODEL, 1e-5, vb.pp("norm"))?;
        let head = linear_no_bias(MODEL, TOKENS, vb.pp("head"))?;
        initialise(&variables)?;
        let parameters = ParamsAdamW { lr: 3e-3, ..ParamsAdamW::default() };
        let optimiser = AdamW::new(variables.all_vars(), parameters)?;
        Ok(Model { embedding, blocks, norm, head, optimiser })
    }

    pub fn redraw(&mut self, frequencies: &Frequencies) -> Result<()> {
        self.blocks.iter_mut().try_for_each(|block| block.attention.redraw(frequencies))
    }

    /// A step of training; the loss before it.
    pub fn step(&mut self, batch: &Batch) -> Result<f64> {
        let mut x = self.embedding.forward(&batch.tokens)?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        let logits = self.head.forward(&self.norm.forward_diff(&x)?)?;
        let loss = loss::cross_entropy(&logits.flatten_to(1)?, &batch.next.flatten_all()?)?;
        self.optimiser.backward_step(&loss)?;
        Ok(f64::from(loss.to_scalar::<f32>()?))
    }
}

/// Uniform weights of variance 1 over the number of inputs, since candle's own on the CPU are others on every run; factors of norms
/// stay 1.
fn initialise(variables: &VarMap) -> Result<()> {
    let data = variables.data().lock().map_err(|_| Error::msg("a thread has failed with the weights"))?;
    let mut matrices: Vec<(&String, &Var)> =
        data.iter().filter(|(_, variable)| variable.rank() == 2).collect();
    matrices.sort_by_key(|(name, _)| *name);
    let mut rng = rng(SEED);
    for (_, variable) in matrices {
        let (rows, columns) = variable.dims2()?;
        let bound = (3.0 / columns as f32).sqrt();
        let weights: Vec<f32> =
            std::iter::repeat_with(|| rng.random_range(-bound..bound)).take(rows * columns).collect();
        variable.set(&Tensor::from_vec(weights, (rows, columns), &Device::Cpu)?)?;
    }
    Ok(())
}
