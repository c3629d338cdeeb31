//! Half precision: read as it is, computed in `f32`, rounded once.

use candle_core::DType;

use crate::common::{DIM, Outcome, bits, linear, numbers, with_gradients};

/// Outputs and gradients are to the bit those of the same numbers in `f32`, rounded.
#[test]
fn is_f32_rounded_once() -> Outcome {
    for (dtype, causal) in
        [(DType::BF16, false), (DType::BF16, true), (DType::F16, false), (DType::F16, true)]
    {
        let [q, k, v] = [1, 2, 4].map(|seed| numbers(&[2, 2, 70, DIM], dtype, seed));
        let (q, k, v) = (q?, k?, v?);
        let linear = linear::<f32>(causal)?;
        let own = with_gradients([&q, &k, &v], |q, k, v| linear.apply(q, k, v))?;
        // The gradient of the output has been rounded too, by the loss.
        let wide = with_gradients([&q, &k, &v], |q, k, v| {
            let [q, k, v] = [q, k, v].map(|x| x.to_dtype(DType::F32));
            linear.apply(&q?, &k?, &v?)?.to_dtype(dtype)
        })?;
        for (own, wide) in own.iter().zip(&wide) {
            assert_eq!(own.dtype(), dtype);
            assert_eq!(bits(own)?, bits(wide)?);
        }
    }
    Ok(())
}

/// bf16 has 8 bits: outputs of rounded inputs are near those of exact ones.
#[test]
fn bf16_is_near_f32() -> Outcome {
    let [q, k, v] = [1, 2, 4].map(|seed| numbers(&[2, 2, 70, DIM], DType::F32, seed));
    let exact = [q?, k?, v?];
    let linear = linear::<f32>(true)?;
    let of = |x: &[candle_core::Tensor; 3]| with_gradients(x.each_ref(), |q, k, v| linear.apply(q, k, v));
    let rounded = exact.each_ref().map(|x| x.to_dtype(DType::BF16));
    let [q, k, v] = rounded;
    for (rough, exact) in of(&[q?, k?, v?])?.iter().zip(&of(&exact)?) {
        assert!(crate::common::distance(rough, exact)? < 0.02);
    }
    Ok(())
}
