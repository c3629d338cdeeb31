//! Queries, keys and values in NumPy's files.

use std::path::Path;

use ndarray::{Array2, Array3, Axis, Ix3};
use random_features::npy;

/// The folder with two heads of a trained transformer; README.md beside them says whose.
const BUNDLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/attention");

const NAMES: [&str; 3] = ["q.npy", "k.npy", "v.npy"];

/// Queries, keys and values, heads × length × dim each; before the scale.
pub struct Tokens([Array3<f32>; 3]);

impl Tokens {
    pub fn bundled() -> Result<Self, String> {
        Tokens::read(Path::new(BUNDLED))
    }

    /// Reads arrays of `f32`, or of `f64` that are rounded.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let read = |name| npy::read_as::<f32, Ix3>(folder.join(name)).map_err(|error| error.to_string());
        let [q, k, v] = NAMES;
        Tokens::new([read(q)?, read(k)?, read(v)?])
    }

    fn new(tokens: [Array3<f32>; 3]) -> Result<Self, String> {
        let [q, k, v] = tokens.each_ref().map(Array3::dim);
        if k.0 == 0 || q.0 == 0 || q.0 % k.0 != 0 || (k.0, k.1) != (v.0, v.1) || q.2 != k.2 {
            return Err(format!("queries {q:?}, keys {k:?} and values {v:?} do not fit"));
        }
        if q.1 == 0 || k.1 == 0 || q.2 < 2 || v.2 == 0 {
            return Err(format!("queries {q:?}, keys {k:?} and values {v:?} are too few"));
        }
        for (tokens, name) in tokens.iter().zip(NAMES) {
            if tokens.iter().any(|v| !v.is_finite()) {
                return Err(format!("{name} holds a number that is not finite"));
            }
        }
        Ok(Tokens(tokens))
    }

    /// The number of heads of queries.
    pub fn heads(&self) -> usize {
        self.0[0].dim().0
    }

    /// Queries, keys and values of a head; several heads of queries may share one of keys.
    pub fn head(&self, head: usize) -> [Array2<f32>; 3] {
        let group = self.heads() / self.0[1].dim().0;
        let [q, k, v] = &self.0;
        [(q, head), (k, head / group), (v, head / group)].map(|(x, h)| x.index_axis(Axis(0), h).to_owned())
    }
}
