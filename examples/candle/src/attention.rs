//! [`LinearAttention`]: the operation.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{
    CpuStorage, CudaStorage, CustomOp3, Error, Layout, MetalStorage, Result, Shape, Tensor, bail,
};
use random_features::apply::attention::{Attended, Attention, Gradients, Heads, Tape, TokenElement};
use random_features::ndarray::ArrayView4;

use crate::cache::Cache;
use crate::precision::{Entry, Precision};
use crate::views::{self, Reader, elsewhere, entries, tensor};

/// Linear attention as an operation on tensors: queries \[batch, heads, length, dim\], keys \[batch, heads of keys, length of keys,
/// dim\] and values \[batch, heads of keys, length of keys, d_v\] to outputs \[batch, heads, length, d_v\]. Approximate, as
/// [`Attention`] is, whose numbers these are.
///
/// # Types
/// Tensors of `f32`, `bf16` or `f16` for attention in `f32`, of `f64` for attention in `f64`, on the CPU. The output has their type, and so
/// have gradients: those of half precision are computed in `f32` and rounded once.
///
/// # Gradients
/// Gradients are those of the estimate, with respect to all three. They have no gradients themselves.
///
/// Where one of the tensors has a gradient, the forward pass keeps a [`Tape`] for the first backward pass. The budget of the attention
/// ([`with_tape`](Attention::with_tape)) says how many bytes it may take in each layer; they are free after that pass, or with the output.
/// Variables keep tapes in evaluation too: detach their tensors there, or set a budget of 0.
///
/// # Errors
/// Sizes, types, devices and what has no gradients are candle's errors with a sentence each.
#[derive(Clone, Debug)]
pub struct LinearAttention<T: Precision> {
    attention: Arc<Attention<T>>,
    causal: bool,
    /// Where the forward pass leaves its tape; nothing if no tensor has a gradient.
    tape: Option<Place<T>>,
}

/// The place of a tape, until a backward pass takes it.
type Place<T> = Arc<Mutex<Option<Tape<T>>>>;

impl<T: Precision> LinearAttention<T> {
    /// Every query attends to all keys.
    pub fn bidirectional(attention: Attention<T>) -> Self {
        LinearAttention { attention: Arc::new(attention), causal: false, tape: None }
    }

    /// Every query attends to the keys up to its own place.
    pub fn causal(attention: Attention<T>) -> Self {
        LinearAttention { attention: Arc::new(attention), causal: true, tape: None }
    }

    /// What computes.
    pub fn attention(&self) -> &Attention<T> {
        &self.attention
    }

    /// Whether a query sees the keys up to its own place only.
    pub fn is_causal(&self) -> bool {
        self.causal
    }

    /// The dimension of queries and keys.
    pub fn dim(&self) -> usize {
        self.attention.maps()[0].dim()
    }

    /// The outputs, with a gradient.
    ///
    /// # Errors
    /// If shapes, types or devices do not fit.
    pub fn apply(&self, queries: &Tensor, keys: &Tensor, values: &Tensor) -> Result<Tensor> {
        let has_gradient = [queries, keys, values].iter().any(|tensor| tensor.track_op());
        let tape = has_gradient.then(Place::default);
        queries.apply_op3(keys, values, LinearAttention { tape, ..self.clone() })
    }

    /// This operation with other features, say those of [`Redraw`](random_features::map::Redraw) at this step of training. Caches go on with
    /// the features that they were made with, and the operation with its own budget of tapes.
    ///
    /// # Errors
    /// If these are of another dimension.
    pub fn redrawn(&self, attention: Attention<T>) -> Result<Self> {
        let attention = Arc::new(attention.with_tape(self.attention.tape_budget()));
        let other = LinearAttention { attention, causal: self.causal, tape: None };
        if other.dim() != self.dim() {
            bail!(
                "features of dimension {} cannot stand in for those of dimension {}",
                other.dim(),
                self.dim()
            );
        }
        Ok(other)
    }

    /// The cache for decoding so many sequences, with so many heads of keys and values of dimension `d_v`.
    ///
    /// # Errors
    /// If attention is not causal, or the sizes do not fit it.
    pub fn cache(&self, batch: usize, heads: usize, d_v: usize) -> Result<Cache<T>> {
        if !self.causal {
            bail!("only causal attention has a cache: bidirectional queries see tokens that are yet to come");
        }
        self.attention.state(batch, heads, d_v).map(Cache::new).map_err(Error::wrap)
    }

    /// What attention gives, with a tape in its place if it has one.
    fn forward<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> random_features::Result<Attended<T>> {
        let LinearAttention { attention, causal, tape } = self;
        if let Some(place) = tape {
            let recorded = match causal {
                true => attention.causal_recorded(heads),
                false => attention.bidirectional_recorded(heads),
            };
            match recorded {
                Ok((attended, tape)) => {
                    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(tape);
                    return Ok(attended);
                }
                // Without gradients there are outputs yet.
                Err(random_features::Error::Unsupported { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if *causal { attention.causal(heads) } else { attention.bidirectional(heads) }
    }

    /// The gradients, from the tape if it is in its place.
    fn backward<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        upstream: &ArrayView4<'_, T>,
    ) -> random_features::Result<Gradients<T>> {
        let LinearAttention { attention, causal, tape } = self;
        let tape =
            tape.as_ref().and_then(|place| place.lock().unwrap_or_else(PoisonError::into_inner).take());
        match tape {
            Some(tape) => tape.backward(heads, upstream),
            None if *causal => attention.causal_backward(heads, upstream),
            None => attention.bidirectional_backward(heads, upstream),
        }
    }
}

impl<T: Precision> CustomOp3 for LinearAttention<T> {
    fn name(&self) -> &'static str {
        "linear-attention"
    }

    fn cpu_fwd(
        &self,
        queries: &CpuStorage,
        of_queries: &Layout,
        keys: &CpuStorage,
        of_keys: &Layout,
        values: &CpuStorage,
        of_values: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        T::read([(queries, of_queries), (keys, of_keys), (values, of_values)], Forward(self))
    }

    fn cuda_fwd(
        &self,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        bail!("{}", elsewhere("CUDA"))
    }

    fn metal_fwd(
        &self,
        _: &MetalStorage,
        _: &Layout,
        _: &MetalStorage,
        _: &Layout,
        _: &MetalStorage,
        _: &Layout,
    ) -> Result<(MetalStorage, Shape)> {
        bail!("{}", elsewhere("Metal"))
    }

    fn bwd(
        &self,
        queries: &Tensor,
        keys: &Tensor,
        values: &Tensor,
        _: &Tensor,
        output_gradients: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let output_gradients = &output_gradients.to_dtype(T::DTYPE)?;
        let [q, k, v] = views::read([queries, keys, values], Backward { operation: self, output_gradients })?;
        Ok((Some(q), Some(k), Some(v)))
    }
}

/// The outputs.
struct Forward<'a, T: Precision>(&'a LinearAttention<T>);

impl<T: Precision> Reader<T> for Forward<'_, T> {
    type Output = (CpuStorage, Shape);

    fn read<E: Entry<T>>(self, [q, k, v]: [ArrayView4<'_, E>; 3]) -> Result<Self::Output> {
        let heads = Heads::new(&q, &k, &v).map_err(Error::wrap)?;
        let output = self.0.forward(&heads).map_err(Error::wrap)?.output;
        let shape = Shape::from(output.dim());
        Ok((E::to_cpu_storage_owned(entries(output)), shape))
    }
}

/// The gradients with respect to queries, keys and values.
struct Backward<'a, T: Precision> {
    operation: &'a LinearAttention<T>,
    /// The gradients of the output, whose numbers have the type `T`.
    output_gradients: &'a Tensor,
}

impl<T: Precision> Reader<T> for Backward<'_, T> {
    type Output = [Tensor; 3];

    fn read<E: Entry<T>>(self, [q, k, v]: [ArrayView4<'_, E>; 3]) -> Result<[Tensor; 3]> {
        let heads = Heads::new(&q, &k, &v).map_err(Error::wrap)?;
        let upstream = self.output_gradients.storage_and_layout();
        let upstream = views::view::<T>("gradients of outputs", views::part(&upstream)?)?;
        let gradients = self.operation.backward(&heads, &upstream).map_err(Error::wrap)?;
        let [q, k, v] = [gradients.queries, gradients.keys, gradients.values].map(tensor::<T, E>);
        Ok([q?, k?, v?])
    }
}
