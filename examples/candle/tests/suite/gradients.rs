//! Outputs and gradients beside candle's autograd of the naive composition.

use candle_core::{DType, Tensor, Var};
use random_features_candle::{LinearAttention, Precision};

use crate::common::{DIM, Outcome, distance, linear, naive, numbers, with_gradients};

/// Compares for one shape: batch, heads, heads of keys, queries, keys and d_v.
fn compare<T: Precision>([b, h, g, n, l, dv]: [usize; 6], causal: bool, tolerance: f64) -> Outcome {
    let q = numbers(&[b, h, n, DIM], T::DTYPE, 1)?;
    let k = numbers(&[b, g, l, DIM], T::DTYPE, 2)?;
    let v = numbers(&[b, g, l, dv], T::DTYPE, 4)?;
    let (linear, naive) = (linear::<T>(causal)?, naive::<T>(causal)?);
    let found = with_gradients([&q, &k, &v], |q, k, v| linear.apply(q, k, v))?;
    // Heads of keys once for each head of queries that shares them.
    let shared = |x: &Tensor| {
        let (b, g, l, d) = x.dims4()?;
        x.unsqueeze(2)?.broadcast_as((b, g, h / g, l, d))?.reshape((b, h, l, d))
    };
    let expected = with_gradients([&q, &k, &v], |q, k, v| naive.apply(q, &shared(k)?, &shared(v)?))?;
    for (what, (found, expected)) in
        ["output", "queries", "keys", "values"].into_iter().zip(found.iter().zip(&expected))
    {
        assert_eq!(found.dtype(), T::DTYPE);
        let error = distance(found, expected)?;
        assert!(error <= tolerance, "{what}, causal {causal}: {error:e}");
    }
    Ok(())
}

#[test]
fn of_f64_are_those_of_autograd() -> Outcome {
    for causal in [false, true] {
        compare::<f64>([2, 3, 3, 70, 70, 5], causal, 1e-12)?;
        compare::<f64>([1, 4, 2, 130, 130, 8], causal, 1e-12)?;
        compare::<f64>([1, 1, 1, 2, 2, 1], causal, 1e-12)?;
    }
    compare::<f64>([2, 2, 1, 20, 75, 3], false, 1e-12)
}

#[test]
fn of_f32_are_those_of_autograd() -> Outcome {
    for causal in [false, true] {
        compare::<f32>([2, 3, 3, 70, 70, 5], causal, 5e-6)?;
        compare::<f32>([1, 4, 2, 130, 130, 8], causal, 5e-6)?;
    }
    compare::<f32>([2, 2, 1, 20, 75, 3], false, 5e-6)
}

#[test]
fn add_up_where_a_tensor_is_used_three_times() -> Outcome {
    for causal in [false, true] {
        let x = Var::from_tensor(&numbers(&[1, 2, 40, DIM], DType::F64, 5)?)?;
        let weights = numbers(x.dims(), DType::F64, 6)?;
        let of = |output: Tensor| -> candle_core::Result<Tensor> {
            let gradients = (output * &weights)?.sum_all()?.backward()?;
            gradients.get(&x).cloned().ok_or(candle_core::Error::UnwrapNone)
        };
        let found = of(linear::<f64>(causal)?.apply(&x, &x, &x)?)?;
        let expected = of(naive::<f64>(causal)?.apply(&x, &x, &x)?)?;
        assert!(distance(&found, &expected)? < 1e-12);
    }
    Ok(())
}

/// A plain sum has the gradient 1 for every output, which candle may give as one number repeated.
#[test]
fn of_a_plain_sum() -> Outcome {
    let [q, k, v] = [1, 2, 4].map(|seed| numbers(&[1, 2, 30, DIM], DType::F64, seed));
    let (q, k, v) = (q?, k?, Var::from_tensor(&v?)?);
    let of = |output: Tensor| -> candle_core::Result<Tensor> {
        output.sum_all()?.backward()?.get(&v).cloned().ok_or(candle_core::Error::UnwrapNone)
    };
    let found = of(linear::<f64>(true)?.apply(&q, &k, &v)?)?;
    assert!(distance(&found, &of(naive::<f64>(true)?.apply(&q, &k, &v)?)?)? < 1e-12);
    // Weights of a query sum to 1.
    let total = found.sum_all()?.to_scalar::<f64>()?;
    assert!((total / (2 * 30 * DIM) as f64 - 1.0).abs() < 1e-12);
    Ok(())
}

/// A second backward pass finds no tape, and a budget of 0 leaves none: gradients have the same bits.
#[test]
fn have_the_same_bits_with_and_without_a_tape() -> Outcome {
    for causal in [false, true] {
        let [q, k, v] = [1, 2, 4].map(|seed| numbers(&[1, 2, 130, DIM], DType::F32, seed));
        let (q, k, v) = (Var::from_tensor(&q?)?, k?, v?);
        let taped = linear::<f32>(causal)?;
        let attention = taped.attention().clone().with_tape(0);
        let plain = match causal {
            true => LinearAttention::causal(attention),
            false => LinearAttention::bidirectional(attention),
        };
        // Other features leave the budget as it is.
        let plain = plain.redrawn(taped.attention().clone())?;
        assert!(plain.attention().tape_budget() == 0 && taped.attention().tape_budget() > 0);
        let mut found = Vec::new();
        for operation in [taped, plain] {
            let loss = operation.apply(&q, &k, &v)?.sqr()?.sum_all()?;
            for _ in 0..2 {
                let gradient = loss.backward()?.get(&q).cloned().ok_or(candle_core::Error::UnwrapNone)?;
                found.push(gradient.flatten_all()?.to_vec1::<f32>()?);
            }
        }
        assert!(found.iter().all(|gradient| *gradient == found[0] && gradient.iter().any(|v| *v != 0.0)));
    }
    Ok(())
}
