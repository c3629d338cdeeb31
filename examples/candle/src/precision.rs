//! [`Precision`]: what attention computes in, `f32` or `f64`, and the number types of tensors that it reads.

use candle_core::{CpuStorage, DType, Result, WithDType, bail};
use half::{bf16, f16};
use random_features::Real;
use random_features::apply::attention::TokenElement;

use crate::views::{Part, Reader, read_as};

/// What attention computes in: `f32`, for tensors of `f32`, `bf16` and `f16`, or `f64`, for tensors of `f64`. Results have the type of
/// the tensors, those of half precision rounded once, at the end. Sealed.
pub trait Precision: Real + WithDType + sealed::Sealed {}

impl Precision for f32 {}
impl Precision for f64 {}

/// A number type of tensors that attention in `T` reads.
pub trait Entry<T>: TokenElement<T> + WithDType {
    /// Results as numbers of this type.
    fn rounded(results: Vec<T>) -> Vec<Self>;
}

impl Entry<f32> for f32 {
    fn rounded(results: Vec<f32>) -> Vec<f32> {
        results
    }
}

impl Entry<f64> for f64 {
    fn rounded(results: Vec<f64>) -> Vec<f64> {
        results
    }
}

impl Entry<f32> for bf16 {
    fn rounded(results: Vec<f32>) -> Vec<bf16> {
        results.into_iter().map(bf16::from_f32).collect()
    }
}

impl Entry<f32> for f16 {
    fn rounded(results: Vec<f32>) -> Vec<f16> {
        results.into_iter().map(f16::from_f32).collect()
    }
}

pub(crate) mod sealed {
    use super::{Part, Reader, Result};

    /// The way from the number type that tensors say they have to one that is known.
    pub trait Sealed: Sized {
        /// Gives queries, keys and values to a reader.
        fn read<R: Reader<Self>>(parts: [Part<'_>; 3], reader: R) -> Result<R::Output>;
    }
}

impl sealed::Sealed for f32 {
    fn read<R: Reader<f32>>(parts: [Part<'_>; 3], reader: R) -> Result<R::Output> {
        match common(parts)? {
            DType::F32 => read_as::<f32, f32, R>(parts, reader),
            DType::BF16 => read_as::<f32, bf16, R>(parts, reader),
            DType::F16 => read_as::<f32, f16, R>(parts, reader),
            other => {
                bail!("linear attention in f32 takes tensors of f32, bf16 or f16, not of {}", other.as_str())
            }
        }
    }
}

impl sealed::Sealed for f64 {
    fn read<R: Reader<f64>>(parts: [Part<'_>; 3], reader: R) -> Result<R::Output> {
        match common(parts)? {
            DType::F64 => read_as::<f64, f64, R>(parts, reader),
            other => bail!("linear attention in f64 takes tensors of f64, not of {}", other.as_str()),
        }
    }
}

/// The number type of all parts.
fn common(parts: [Part<'_>; 3]) -> Result<DType> {
    let [q, k, v] = parts.map(|(storage, _)| dtype(storage));
    if q != k || q != v {
        let [q, k, v] = [q, k, v].map(|dtype| dtype.as_str());
        bail!("linear attention takes queries, keys and values of one type, not of {q}, {k} and {v}");
    }
    Ok(q)
}

fn dtype(storage: &CpuStorage) -> DType {
    candle_core::backend::BackendStorage::dtype(storage)
}
