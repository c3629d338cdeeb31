//! Points of all kinds, in halves: plans are made on one and judged on the other.

use ndarray::{Array2, s};

pub use experiments::planning::kinds::{Kind, half, normal, standardised};

/// The attributes of a table, without the class at the end of each line.
fn table(text: &str, separator: char) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = (text.lines().filter(|line| !line.is_empty()))
        .map(|line| line.split(separator).map(|v| v.trim().parse().unwrap()).collect())
        .collect();
    Array2::from_shape_fn((rows.len(), rows[0].len() - 1), |(i, k)| rows[i][k])
}

pub fn banknote() -> Array2<f64> {
    table(include_str!("../../../examples/data/banknote.txt"), ',')
}

pub fn wifi() -> Array2<f64> {
    table(include_str!("../../../examples/data/wifi.txt"), '\t')
}

/// Two heads of a trained transformer, head × token × dim, in the layout of NumPy's files: 128 bytes, then numbers.
pub fn tokens(bytes: &[u8]) -> ndarray::Array3<f64> {
    let numbers = bytes[128..].chunks_exact(4).map(|v| f64::from(f32::from_le_bytes(v.try_into().unwrap())));
    ndarray::Array3::from_shape_vec((2, 122, 64), numbers.collect()).unwrap()
}

pub fn queries() -> ndarray::Array3<f64> {
    tokens(include_bytes!("../../../experiments/data/attention/q.npy"))
}

pub fn keys() -> ndarray::Array3<f64> {
    tokens(include_bytes!("../../../experiments/data/attention/k.npy"))
}

/// Six kinds of synthetic data and three sets that are bundled.
pub fn kinds() -> Vec<Kind> {
    let mut kinds = experiments::planning::kinds::synthetic();
    kinds.push(Kind::of_table("banknote", &banknote()));
    kinds.push(Kind::of_table("wifi", &wifi()));
    // As attention scales them: logits q·k/√d.
    let scaled = |x: ndarray::Array3<f64>| x.slice(s![0, .., ..]).mapv(|v| v * 64f64.powf(-0.25));
    kinds.push(Kind { name: "attention", queries: scaled(queries()), keys: scaled(keys()) });
    kinds
}
