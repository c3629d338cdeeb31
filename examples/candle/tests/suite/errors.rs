//! Mistakes are candle's errors, with a sentence that says what is wrong.

use candle_core::{CudaStorage, CustomOp3, DType, Layout, MetalStorage, Result, Tensor, Var};
use random_features::apply::attention::Attention;
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::frequency::Orthogonal;
use random_features::ndarray::ArrayView2;
use random_features::{Map, Positive, Side};
use random_features_candle::LinearAttention;

use crate::common::{DIM, Outcome, linear, numbers};

fn zeros(shape: &[usize], dtype: DType) -> Result<Tensor> {
    numbers(shape, dtype, 0)
}

/// Checks the message of an error.
fn says<A>(result: Result<A>, words: &str) {
    let message = result.err().map(|error| error.to_string());
    assert!(message.as_ref().is_some_and(|message| message.contains(words)), "{message:?}, not {words}");
}

/// A map whose only feature is 1, and which says nothing of gradients.
#[derive(Debug)]
struct One;

impl FeatureMap<f32> for One {
    fn facts(&self) -> Facts {
        Facts::new(DIM, vec![1]).non_negative()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, f32>, _: Form, tile: &mut Tile<'_, f32>) {
        for i in 0..x.nrows() {
            let row = tile.row(i);
            row.log_scales.fill(0.0);
            row.values.fill(1.0);
        }
    }
}

#[test]
fn of_shapes() -> Outcome {
    let linear = linear::<f32>(true)?;
    let x = zeros(&[2, 2, 6, DIM], DType::F32)?;
    let flat = zeros(&[2, 6, DIM], DType::F32)?;
    says(
        linear.apply(&flat, &x, &x),
        "queries of linear attention are [batch, heads, length, dim], but have",
    );
    says(linear.apply(&x, &flat, &x), "keys of linear attention");
    says(linear.apply(&x, &x, &flat), "values of linear attention");
    let narrow = zeros(&[2, 2, 6, DIM - 1], DType::F32)?;
    says(linear.apply(&narrow, &narrow, &x), "the dimension of the queries is 7, but must be 8");
    says(linear.apply(&x, &narrow, &x), "the dimension of the keys is 7, but must be 8");
    let short = zeros(&[2, 2, 5, DIM], DType::F32)?;
    says(linear.apply(&x, &x, &short), "the length of the values is 5, but must be 6");
    says(linear.apply(&x, &short, &short), "the number of keys of a sequence in causal attention");
    says(linear.apply(&zeros(&[1, 2, 6, DIM], DType::F32)?, &x, &x), "the batch size of the keys");
    says(linear.apply(&zeros(&[2, 3, 6, DIM], DType::F32)?, &x, &x), "must be a multiple of 2");
    says(linear.apply(&x, &x, &zeros(&[2, 2, 6, 0], DType::F32)?), "the dimension of the values is 0");
    Ok(())
}

#[test]
fn of_types() -> Outcome {
    let of = |dtype| zeros(&[1, 1, 4, DIM], dtype);
    let (f32, f64, bf16, u8) = (of(DType::F32)?, of(DType::F64)?, of(DType::BF16)?, of(DType::U8)?);
    let (single, double) = (linear::<f32>(false)?, linear::<f64>(false)?);
    says(
        single.apply(&f64, &f64, &f64),
        "linear attention in f32 takes tensors of f32, bf16 or f16, not of f64",
    );
    says(double.apply(&f32, &f32, &f32), "linear attention in f64 takes tensors of f64, not of f32");
    says(double.apply(&bf16, &bf16, &bf16), "not of bf16");
    says(single.apply(&u8, &u8, &u8), "not of u8");
    says(single.apply(&f32, &bf16, &f32), "of one type, not of f32, bf16 and f32");
    says(single.apply(&f32, &f32, &f64), "of one type, not of f32, f32 and f64");
    Ok(())
}

/// Other devices cannot be made here: the operation is asked as candle would ask it.
#[test]
fn of_devices() -> Outcome {
    let (linear, layout) = (linear::<f32>(false)?, Layout::contiguous((1, 1, 4, DIM)));
    let words = "is computed on the CPU: tensors on";
    let (cuda, metal) = (&CudaStorage, &MetalStorage);
    says(linear.cuda_fwd(cuda, &layout, cuda, &layout, cuda, &layout), words);
    says(linear.metal_fwd(metal, &layout, metal, &layout, metal, &layout), words);
    Ok(())
}

#[test]
fn of_what_has_no_gradients() -> Outcome {
    let one = LinearAttention::causal(Attention::new(Map::of_feature_map(One)?)?);
    let x = Var::from_tensor(&zeros(&[1, 1, 6, DIM], DType::F32)?)?;
    let output = one.apply(&x, &x, &x)?;
    says(output.sum_all()?.backward(), "gradients");
    Ok(())
}

#[test]
fn of_redraws_and_caches() -> Outcome {
    let linear = linear::<f32>(true)?;
    let other = Attention::new(Positive.softmax::<f32>(Orthogonal.draw(DIM + 1, 16, 1)?)?)?;
    says(linear.redrawn(other), "features of dimension 9 cannot stand in for those of dimension 8");
    says(crate::common::linear::<f32>(false)?.cache(1, 1, DIM), "only causal attention has a cache");
    says(linear.cache(1, 1, 0), "the dimension of the values is 0");
    let mut cache = linear.cache(1, 2, DIM)?;
    let x = zeros(&[2, 2, 1, DIM], DType::F32)?;
    says(cache.attend(&x, &x, &x), "the batch size of the keys is 2, but must be 1");
    let x = zeros(&[1, 2, 6, DIM], DType::F64)?;
    says(cache.attend(&x, &x, &x), "not of f64");
    assert_eq!(cache.lengths(), [0]);
    Ok(())
}

/// No tokens are no mistake.
#[test]
fn none_of_empty_tensors() -> Outcome {
    let (none, some) = (zeros(&[2, 2, 0, DIM], DType::F32)?, zeros(&[2, 2, 5, DIM], DType::F32)?);
    for causal in [false, true] {
        let none = Var::from_tensor(&none)?;
        let output = linear::<f32>(causal)?.apply(&none, &none, &none)?;
        assert_eq!(output.dims(), [2, 2, 0, DIM]);
        assert!(output.sum_all()?.backward()?.get(&none).is_some());
    }
    let linear = linear::<f32>(false)?;
    assert_eq!(linear.apply(&none, &some, &some)?.dims(), [2, 2, 0, DIM]);
    // Queries that see no key get 0.
    assert_eq!(linear.apply(&some, &none, &none)?.abs()?.sum_all()?.to_scalar::<f32>()?, 0.0);
    let no_batch = zeros(&[0, 2, 5, DIM], DType::F32)?;
    assert_eq!(linear.apply(&no_batch, &no_batch, &no_batch)?.dims(), [0, 2, 5, DIM]);
    Ok(())
}
