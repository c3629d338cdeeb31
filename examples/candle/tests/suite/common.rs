//! What tests share: tensors, operations, and how far tensors are apart.

use std::error::Error;

use candle_core::{DType, Device, Tensor, Var};
use random_features::apply::attention::Attention;
use random_features::frequency::{Frequencies, Orthogonal};
use random_features::rand::RngExt;
use random_features::{Positive, rng};
use random_features_candle::naive::NaiveAttention;
use random_features_candle::{LinearAttention, Precision};

pub type Outcome = Result<(), Box<dyn Error>>;

/// The dimension of queries and keys.
pub const DIM: usize = 8;

/// Numbers between −1 and 1.
pub fn numbers(shape: &[usize], dtype: DType, seed: u64) -> candle_core::Result<Tensor> {
    let mut rng = rng(seed);
    let count = shape.iter().product();
    let all: Vec<f64> = std::iter::repeat_with(|| rng.random_range(-1.0..1.0)).take(count).collect();
    Tensor::from_vec(all, shape, &Device::Cpu)?.to_dtype(dtype)
}

/// The operation on features with 32 orthogonal frequencies.
pub fn linear<T: Precision>(causal: bool) -> Result<LinearAttention<T>, random_features::Error> {
    let attention = Attention::new(Positive.softmax::<T>(frequencies(3)?)?)?;
    Ok(if causal { LinearAttention::causal(attention) } else { LinearAttention::bidirectional(attention) })
}

pub fn frequencies(seed: u64) -> Result<Frequencies, random_features::Error> {
    Orthogonal.draw(DIM, 32, seed)
}

/// Linear attention composed of candle's operations.
pub fn naive<T: Precision>(causal: bool) -> Result<NaiveAttention, Box<dyn Error>> {
    Ok(NaiveAttention::new(&frequencies(3)?, causal, T::DTYPE)?)
}

/// The largest difference relative to the largest number of `expected`.
pub fn distance(found: &Tensor, expected: &Tensor) -> candle_core::Result<f64> {
    assert_eq!(found.dims(), expected.dims());
    let [found, expected] = [found, expected].map(|x| x.to_dtype(DType::F64)?.flatten_all());
    let (found, expected) = (found?, expected?);
    let largest = expected.abs()?.max_all()?.to_scalar::<f64>()?;
    Ok((found - expected)?.abs()?.max_all()?.to_scalar::<f64>()? / largest)
}

/// The bits of all numbers, in order.
pub fn bits(x: &Tensor) -> candle_core::Result<Vec<u64>> {
    let all = x.to_dtype(DType::F64)?.flatten_all()?.to_vec1::<f64>()?;
    Ok(all.into_iter().map(f64::to_bits).collect())
}

/// The output, and the gradients of a loss with respect to the three inputs.
pub fn with_gradients(
    [q, k, v]: [&Tensor; 3],
    attend: impl Fn(&Tensor, &Tensor, &Tensor) -> candle_core::Result<Tensor>,
) -> candle_core::Result<[Tensor; 4]> {
    let [q, k, v] = [Var::from_tensor(q)?, Var::from_tensor(k)?, Var::from_tensor(v)?];
    let output = attend(&q, &k, &v)?;
    // A loss whose gradients differ from output to output.
    let weights = numbers(output.dims(), output.dtype(), 99)?;
    let gradients = (&output * weights)?.sum_all()?.backward()?;
    let of = |variable: &Var| gradients.get(variable).cloned().ok_or(candle_core::Error::UnwrapNone);
    Ok([output.detach(), of(&q)?, of(&k)?, of(&v)?])
}
