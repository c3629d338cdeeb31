//! Linear attention of `random_features` as a layer of candle.
//!
//! [`LinearAttention`] is a custom operation on tensors \[batch, heads, length, dim\], with gradients;
//! [`LinearSelfAttention`] is the layer around it: [`Projections`] before and after, [`Cache`] for decoding token by token.
//! Tensors of any strides are read where they lie, without a copy, and nothing of the size length² is ever made.
//! [`naive`] is the same attention out of candle's own operations, which what is here is tested against.
//!
//! # Example
//! ```
//! use candle_core::{DType, Device, Tensor};
//! use candle_nn::{Module, VarBuilder, VarMap};
//! use random_features::Positive;
//! use random_features::apply::attention::Attention;
//! use random_features::frequency::Orthogonal;
//! use random_features_candle::{LinearAttention, LinearSelfAttention};
//!
//! let features = Attention::new(Positive.softmax::<f32>(Orthogonal.draw(16, 64, 7)?)?)?;
//! let variables = VarMap::new();
//! let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
//! // Four heads of dimension 16 between tokens of dimension 32.
//! let layer = LinearSelfAttention::new(LinearAttention::causal(features), 32, 4, vb)?;
//! let x = Tensor::randn(0f32, 1.0, (2, 100, 32), &Device::Cpu)?;
//! let gradients = layer.forward(&x)?.sqr()?.mean_all()?.backward()?;
//! assert!(variables.all_vars().iter().all(|variable| gradients.get(variable).is_some()));
//! // A prompt of 99 tokens, then one more.
//! let mut cache = layer.cache(2)?;
//! let prompt = layer.decode(&x.narrow(1, 0, 99)?, &mut cache)?;
//! let next = layer.decode(&x.narrow(1, 99, 1)?, &mut cache)?;
//! assert_eq!((prompt.dims(), next.dims()), (&[2, 99, 32][..], &[2, 1, 32][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attention;
mod cache;
mod layer;
pub mod naive;
mod precision;
mod views;

pub use attention::LinearAttention;
pub use cache::Cache;
pub use layer::{LinearSelfAttention, Projections};
pub use precision::Precision;
