//! Tensors of any strides give the same bits as contiguous ones.

use candle_core::{DType, Tensor};
use random_features_candle::Precision;

use crate::common::{DIM, Outcome, bits, linear, numbers, with_gradients};

/// Outputs and gradients of tensors as they lie, and of contiguous copies.
fn compare<T: Precision>(what: &str, parts: [&Tensor; 3]) -> Outcome {
    assert!(parts.iter().any(|part| !part.is_contiguous()), "{what}");
    for causal in [false, true] {
        let linear = linear::<T>(causal)?;
        let [q, k, v] = parts.map(Tensor::contiguous);
        let copies = [&q?, &k?, &v?];
        assert_eq!(
            bits(&linear.apply(parts[0], parts[1], parts[2])?)?,
            bits(&linear.apply(copies[0], copies[1], copies[2])?)?,
            "{what}"
        );
        let expected = with_gradients(copies, |q, k, v| linear.apply(q, k, v))?;
        // As variables are contiguous, layouts are made between them and the operation.
        let lying = |x: &Tensor, like: &Tensor| -> candle_core::Result<Tensor> {
            let dims = like.dims();
            match like.stride().iter().zip(dims).any(|(stride, dim)| *stride == 0 && *dim > 1) {
                true => Ok(x.clone()),
                false => Tensor::cat(&[x, x], 3)?
                    .transpose(1, 2)?
                    .contiguous()?
                    .transpose(1, 2)?
                    .narrow(3, 0, dims[3]),
            }
        };
        let found = with_gradients(copies, |q, k, v| {
            linear.apply(&lying(q, parts[0])?, &lying(k, parts[1])?, &lying(v, parts[2])?)
        })?;
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(bits(found)?, bits(expected)?, "{what}");
        }
    }
    Ok(())
}

fn every_layout<T: Precision>(dtype: DType) -> Outcome {
    let (b, h, n) = (2, 3, 70);
    // As projections leave them: [batch, length, heads, dim].
    let [q, k, v] = [1, 2, 4].map(|seed| numbers(&[b, n, h, DIM], dtype, seed)?.transpose(1, 2));
    compare::<T>("transposed", [&q?, &k?, &v?])?;
    // One projection for all three.
    let all = numbers(&[b, n, h, 3 * DIM], dtype, 5)?.transpose(1, 2)?;
    let [q, k, v] = [0, 1, 2].map(|part| all.narrow(3, part * DIM, DIM));
    compare::<T>("narrowed", [&q?, &k?, &v?])?;
    // Part of the tokens, and of the heads.
    let long = numbers(&[b, h + 2, n + 9, DIM], dtype, 6)?;
    let part = long.narrow(2, 5, n)?.narrow(1, 1, h)?;
    compare::<T>("cut", [&part, &part, &part])?;
    // All of a batch have equal keys and values.
    let [k, v] = [7, 8].map(|seed| numbers(&[1, h, n, DIM], dtype, seed)?.broadcast_as((b, h, n, DIM)));
    compare::<T>("repeated", [&part, &k?, &v?])?;
    // Tokens that are all the same, and dimensions before lengths.
    let same = numbers(&[b, h, 1, DIM], dtype, 9)?.broadcast_as((b, h, n, DIM))?;
    let turned = numbers(&[b, h, DIM, n], dtype, 10)?.transpose(2, 3)?;
    compare::<T>("turned", [&same, &turned, &turned])
}

#[test]
fn of_f64() -> Outcome {
    every_layout::<f64>(DType::F64)
}

#[test]
fn of_f32() -> Outcome {
    every_layout::<f32>(DType::F32)
}

#[test]
fn of_bf16() -> Outcome {
    every_layout::<f32>(DType::BF16)
}
