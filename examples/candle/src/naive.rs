//! Linear attention composed of candle's own operations, O(length²): the reference for outputs and gradients.

use candle_core::{DType, Device, Result, Tensor};
use random_features::frequency::Frequencies;

/// Attention with [positive features](random_features::Positive) of these frequencies. Features are not scaled against overflow, as
/// those of [`LinearAttention`](crate::LinearAttention) are: for moderate norms.
#[derive(Clone, Debug)]
pub struct NaiveAttention {
    /// \[d, m\].
    frequencies: Tensor,
    causal: bool,
}

impl NaiveAttention {
    /// On tensors of the type `dtype`.
    ///
    /// # Errors
    /// If candle has none of that type.
    pub fn new(frequencies: &Frequencies, causal: bool, dtype: DType) -> Result<Self> {
        let rows = frequencies.rows();
        let rows = Tensor::from_iter(rows.iter().copied(), &Device::Cpu)?.reshape(rows.dim())?;
        Ok(NaiveAttention { frequencies: rows.t()?.contiguous()?.to_dtype(dtype)?, causal })
    }

    /// exp(ω·x′ − ‖x′‖²/2) with x′ = x d^(−¼), of tokens \[batch, heads, length, d\].
    fn features(&self, x: &Tensor) -> Result<Tensor> {
        let dim = x.dims4()?.3 as f64;
        let x = (x.contiguous()? * dim.powf(-0.25))?;
        let norms = (x.sqr()?.sum_keepdim(3)? * 0.5)?;
        x.broadcast_matmul(&self.frequencies)?.broadcast_sub(&norms)?.exp()
    }

    /// The outputs \[batch, heads, length, d_v\], with a gradient.
    ///
    /// # Errors
    /// If shapes or types do not fit.
    pub fn apply(&self, queries: &Tensor, keys: &Tensor, values: &Tensor) -> Result<Tensor> {
        let keys = self.features(keys)?;
        let mut weights = self.features(queries)?.matmul(&keys.transpose(2, 3)?.contiguous()?)?;
        if self.causal {
            let seen = Tensor::tril2(weights.dim(2)?, weights.dtype(), &Device::Cpu)?;
            weights = weights.broadcast_mul(&seen)?;
        }
        let normalisers = weights.sum_keepdim(3)?;
        weights.matmul(&values.contiguous()?)?.broadcast_div(&normalisers)
    }
}
