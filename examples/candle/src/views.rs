//! Tensors as arrays, where they lie.

use candle_core::{CpuStorage, Device, Layout, Result, Storage, Tensor, WithDType, bail};
use random_features::ndarray::{Array4, ArrayView4, ShapeBuilder};

use crate::precision::{Entry, Precision};

/// The numbers of a tensor and how they lie.
pub type Part<'a> = (&'a CpuStorage, &'a Layout);

/// What is done with queries, keys and values, of whatever type their numbers are.
pub trait Reader<T> {
    type Output;

    fn read<E: Entry<T>>(self, parts: [ArrayView4<'_, E>; 3]) -> Result<Self::Output>;
}

/// Gives the parts to a reader, as numbers of the type `E`.
pub fn read_as<T, E: Entry<T>, R: Reader<T>>([q, k, v]: [Part<'_>; 3], reader: R) -> Result<R::Output> {
    reader.read([view::<E>("queries", q)?, view("keys", k)?, view("values", v)?])
}

/// Gives three tensors to a reader.
pub fn read<T: Precision, R: Reader<T>>(tensors: [&Tensor; 3], reader: R) -> Result<R::Output> {
    let [q, k, v] = tensors.map(Tensor::storage_and_layout);
    let parts = [part(&q)?, part(&k)?, part(&v)?];
    T::read(parts, reader)
}

/// A tensor's numbers, if these are in memory.
pub fn part<'a, S: std::ops::Deref<Target = Storage>>(
    (storage, layout): &'a (S, &'a Layout),
) -> Result<Part<'a>> {
    match &**storage {
        Storage::Cpu(storage) => Ok((storage, layout)),
        other => bail!("{}", elsewhere(&format!("{:?}", other.device().location()))),
    }
}

/// That tensors are on another device.
pub fn elsewhere(device: &str) -> String {
    format!(
        "linear attention is computed on the CPU: tensors on {device} must be moved there by to_device(&Device::Cpu)"
    )
}

/// A tensor \[batch, heads, length, dim\] of any strides, repeated numbers among them.
pub fn view<'a, E: WithDType>(what: &str, (storage, layout): Part<'a>) -> Result<ArrayView4<'a, E>> {
    let (&[b, h, n, d], &[sb, sh, sn, sd]) = (layout.dims(), layout.stride()) else {
        bail!(
            "{what} of linear attention are [batch, heads, length, dim], but have the shape {:?}",
            layout.dims()
        );
    };
    let numbers = storage.as_slice::<E>()?.get(layout.start_offset()..).unwrap_or_default();
    // Strides of a tensor without numbers may lead out of its memory.
    let strides = if layout.shape().elem_count() == 0 { (0, 0, 0, 0) } else { (sb, sh, sn, sd) };
    ArrayView4::from_shape((b, h, n, d).strides(strides), numbers).map_err(candle_core::Error::wrap)
}

/// The entries of a result in the order of a contiguous tensor, as numbers of the type of the inputs.
pub fn entries<T: Precision, E: Entry<T>>(result: Array4<T>) -> Vec<E> {
    let rows = if result.is_standard_layout() { result } else { result.as_standard_layout().into_owned() };
    // A whole array begins where its memory does.
    E::rounded(rows.into_raw_vec_and_offset().0)
}

/// A result as a tensor of the type of the inputs.
pub fn tensor<T: Precision, E: Entry<T>>(result: Array4<T>) -> Result<Tensor> {
    let shape = result.dim();
    Tensor::from_vec(entries::<T, E>(result), shape, &Device::Cpu)
}
