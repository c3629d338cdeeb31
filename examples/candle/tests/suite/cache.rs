//! Decoding is the causal operation over all tokens so far, to the bit.

use candle_core::{DType, Tensor};
use random_features_candle::Precision;

use crate::common::{DIM, Outcome, bits, linear, numbers};

fn compare<T: Precision>(dtype: DType) -> Outcome {
    let linear = linear::<T>(true)?;
    // [batch, length, heads, dim] as projections leave them; four heads of queries share two of keys.
    let part = |heads, dim, seed| numbers(&[2, 150, heads, dim], dtype, seed)?.transpose(1, 2);
    let (q, k, v) = (part(4, DIM, 1)?, part(2, DIM, 2)?, part(2, 5, 4)?);
    let whole = linear.apply(&q, &k, &v)?;
    let mut cache = linear.cache(2, 2, 5)?;
    let (mut outputs, mut first) = (Vec::new(), 0);
    for count in [70, 1, 1, 3, 1, 74] {
        let run = |x: &Tensor| x.narrow(2, first, count);
        outputs.push(cache.attend(&run(&q)?, &run(&k)?, &run(&v)?)?);
        first += count;
        assert_eq!(cache.lengths(), [first; 2]);
    }
    let decoded = Tensor::cat(&outputs, 2)?;
    assert_eq!((decoded.dtype(), decoded.dims()), (dtype, whole.dims()));
    assert_eq!(bits(&decoded)?, bits(&whole)?);
    Ok(())
}

#[test]
fn in_f32() -> Outcome {
    compare::<f32>(DType::F32)
}

#[test]
fn in_f64() -> Outcome {
    compare::<f64>(DType::F64)
}

#[test]
fn in_bf16() -> Outcome {
    compare::<f32>(DType::BF16)
}

#[test]
fn forks_go_on_by_themselves() -> Outcome {
    let linear = linear::<f32>(true)?;
    let x = numbers(&[2, 2, 10, DIM], DType::F32, 1)?;
    let mut cache = linear.cache(2, 2, DIM)?;
    cache.attend(&x, &x, &x)?;
    let mut fork = cache.clone();
    let token = |i| x.narrow(2, i, 1);
    let (a, b) = (token(0)?, token(1)?);
    let own = cache.attend(&a, &a, &a)?;
    fork.attend(&b, &b, &b)?;
    assert_eq!((cache.lengths(), fork.lengths()), (vec![11, 11], vec![11, 11]));
    assert_eq!(
        bits(&own)?,
        bits(
            &linear
                .apply(&Tensor::cat(&[&x, &a], 2)?, &Tensor::cat(&[&x, &a], 2)?, &Tensor::cat(&[&x, &a], 2)?)?
                .narrow(2, 10, 1)?
        )?
    );
    // The first sequence has ended.
    cache.state_mut().select(&[1])?;
    assert_eq!(cache.lengths(), [11]);
    Ok(())
}
