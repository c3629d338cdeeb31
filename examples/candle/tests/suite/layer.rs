//! The layer: gradients of all projections, decoding, and other features.

use candle_core::{DType, Device, Tensor, Var};
use candle_nn::{Module, VarBuilder, VarMap};
use random_features::Positive;
use random_features::apply::attention::Attention;
use random_features_candle::{LinearSelfAttention, Precision, Projections};

use crate::common::{DIM, Outcome, bits, distance, frequencies, linear, naive, numbers};

const MODEL: usize = 12;
const HEADS: usize = 3;
const NAMES: [&str; 4] = ["q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight"];

/// Variables of a layer, with numbers of their own.
fn variables(dtype: DType) -> candle_core::Result<VarMap> {
    let variables = VarMap::new();
    Projections::new(MODEL, HEADS, DIM, VarBuilder::from_varmap(&variables, dtype, &Device::Cpu))?;
    for (name, seed) in NAMES.into_iter().zip(20..) {
        let variable = variable(&variables, name);
        variable.set(&(numbers(variable.dims(), dtype, seed)? * 0.6)?)?;
    }
    Ok(variables)
}

fn variable(variables: &VarMap, name: &str) -> Var {
    variables.data().lock().expect("no thread has failed")[name].clone()
}

fn layer<T: Precision>(
    variables: &VarMap,
    causal: bool,
) -> Result<LinearSelfAttention<T>, Box<dyn std::error::Error>> {
    let vb = VarBuilder::from_varmap(variables, T::DTYPE, &Device::Cpu);
    Ok(LinearSelfAttention::new(linear::<T>(causal)?, MODEL, HEADS, vb)?)
}

#[test]
fn every_projection_has_the_gradient_of_autograd() -> Outcome {
    for causal in [false, true] {
        let variables = variables(DType::F64)?;
        let vb = VarBuilder::from_varmap(&variables, DType::F64, &Device::Cpu);
        let projections = Projections::new(MODEL, HEADS, DIM, vb)?;
        let naive = naive::<f64>(causal)?;
        let x = numbers(&[2, 70, MODEL], DType::F64, 1)?;
        let own = layer::<f64>(&variables, causal)?.forward(&x)?;
        let [q, k, v] = projections.split(&x)?;
        let theirs = projections.merge(&naive.apply(&q, &k, &v)?)?;
        assert!(distance(&own, &theirs)? < 1e-12);
        let (own, theirs) = (own.sqr()?.sum_all()?.backward()?, theirs.sqr()?.sum_all()?.backward()?);
        for name in NAMES {
            let variable = variable(&variables, name);
            let (Some(own), Some(theirs)) = (own.get(&variable), theirs.get(&variable)) else {
                panic!("{name} has no gradient");
            };
            assert!(distance(own, theirs)? < 1e-11, "{name}");
        }
    }
    Ok(())
}

#[test]
fn gradients_are_slopes() -> Outcome {
    let variables = variables(DType::F64)?;
    let layer = layer::<f64>(&variables, true)?;
    let x = numbers(&[1, 30, MODEL], DType::F64, 1)?;
    let loss = || layer.forward(&x)?.sqr()?.sum_all();
    let gradients = loss()?.backward()?;
    for name in NAMES {
        let variable = variable(&variables, name);
        let gradient = gradients.get(&variable).ok_or(name)?.flatten_all()?.to_vec1::<f64>()?;
        let at = variable.as_tensor().copy()?;
        let direction = numbers(variable.dims(), DType::F64, 9)?;
        let moved = |step: f64| -> candle_core::Result<f64> {
            variable.set(&(&at + (&direction * step)?)?)?;
            loss()?.to_scalar::<f64>()
        };
        let slope = (moved(1e-5)? - moved(-1e-5)?) / 2e-5;
        variable.set(&at)?;
        let direction = direction.flatten_all()?.to_vec1::<f64>()?;
        let product: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
        assert!((slope - product).abs() < 1e-7 * product.abs().max(1.0), "{name}: {slope} {product}");
    }
    Ok(())
}

/// Projections of other numbers of tokens are rounded in another order; attention is the same to the bit.
fn decode<T: Precision>(tolerance: f64) -> Outcome {
    let variables = variables(T::DTYPE)?;
    let layer = layer::<T>(&variables, true)?;
    let x = numbers(&[2, 100, MODEL], T::DTYPE, 1)?;
    let whole = layer.forward(&x)?;
    let mut cache = layer.cache(2)?;
    let mut outputs = vec![layer.decode(&x.narrow(1, 0, 66)?, &mut cache)?];
    for i in 66..100 {
        outputs.push(layer.decode(&x.narrow(1, i, 1)?, &mut cache)?);
    }
    assert!(distance(&Tensor::cat(&outputs, 1)?, &whole)? < tolerance);
    Ok(())
}

#[test]
fn decoding_is_forward() -> Outcome {
    decode::<f32>(1e-6)?;
    decode::<f64>(1e-14)
}

#[test]
fn redrawn_features_are_those_of_a_new_layer() -> Outcome {
    let variables = variables(DType::F32)?;
    let mut layer = layer::<f32>(&variables, true)?;
    let x = numbers(&[2, 20, MODEL], DType::F32, 1)?;
    let (before, mut cache) = (layer.forward(&x)?, layer.cache(2)?);
    let other = || Attention::new(Positive.softmax::<f32>(frequencies(4)?)?);
    layer.redraw(other()?)?;
    let after = layer.forward(&x)?;
    // Other estimates of the same attention.
    assert!((1e-3..0.5).contains(&distance(&after, &before)?));
    // A cache goes on with its own.
    assert!(distance(&layer.decode(&x, &mut cache)?, &before)? < 1e-6);
    layer.redraw(Attention::new(Positive.softmax::<f32>(frequencies(3)?)?)?)?;
    assert_eq!(bits(&layer.forward(&x)?)?, bits(&before)?);
    Ok(())
}

#[test]
fn bf16_goes_through() -> Outcome {
    let variables = variables(DType::BF16)?;
    let vb = VarBuilder::from_varmap(&variables, DType::BF16, &Device::Cpu);
    let layer = LinearSelfAttention::new(linear::<f32>(true)?, MODEL, HEADS, vb)?;
    let x = numbers(&[1, 20, MODEL], DType::BF16, 1)?;
    let output = layer.forward(&x)?;
    assert_eq!(output.dtype(), DType::BF16);
    let gradients = output.sqr()?.sum_all()?.backward()?;
    assert!(NAMES.iter().all(|name| gradients.get(&variable(&variables, name)).is_some()));
    Ok(())
}

#[test]
fn mistakes_are_errors() -> Outcome {
    let variables = variables(DType::F32)?;
    let layer = layer::<f32>(&variables, false)?;
    assert!(layer.forward(&numbers(&[20, MODEL], DType::F32, 1)?).is_err());
    assert!(layer.forward(&numbers(&[1, 20, MODEL + 1], DType::F32, 1)?).is_err());
    assert!(layer.forward(&numbers(&[1, 20, MODEL], DType::F64, 1)?).is_err());
    assert!(layer.cache(1).is_err());
    let vb = || VarBuilder::zeros(DType::F32, &Device::Cpu);
    assert!(LinearSelfAttention::new(linear::<f32>(true)?, MODEL, 0, vb()).is_err());
    assert!(LinearSelfAttention::new(linear::<f32>(true)?, 0, HEADS, vb()).is_err());
    Ok(())
}
