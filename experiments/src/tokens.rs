//! Queries, keys and values in NumPy's files.

use std::path::Path;

use ndarray::{Array2, Array3, Axis};
use ndarray_npy::ReadNpyExt;
use ndarray_npy::npy::header::Header;

/// What comes with the example; see README.md beside it.
const BUNDLED: [&[u8]; 3] = [
    include_bytes!("../data/attention/q.npy"),
    include_bytes!("../data/attention/k.npy"),
    include_bytes!("../data/attention/v.npy"),
];

const NAMES: [&str; 3] = ["q.npy", "k.npy", "v.npy"];

/// Queries, keys and values, heads × length × dim each; before the scale.
pub struct Tokens([Array3<f32>; 3]);

impl Tokens {
    pub fn bundled() -> Result<Self, String> {
        let [q, k, v] = BUNDLED;
        Tokens::new([array("q.npy", q)?, array("k.npy", k)?, array("v.npy", v)?])
    }

    pub fn read(folder: &Path) -> Result<Self, String> {
        let read = |name: &str| {
            let path = folder.join(name);
            let bytes = std::fs::read(&path)
                .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
            array(&path.display().to_string(), &bytes)
        };
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

/// An array of `f32`, or of `f64` that is rounded.
fn array(name: &str, bytes: &[u8]) -> Result<Array3<f32>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{name} cannot be understood: {why}");
    let mut elements = bytes;
    let header = Header::from_reader(&mut elements).map_err(|error| wrong(&error))?;
    let kind = header.type_descriptor.to_string();
    let size = match kind.trim_matches('\'').trim_start_matches(['<', '>']) {
        "f4" => 4,
        "f8" => 8,
        _ => return Err(wrong(&format!("its elements are {kind}, neither f32 nor f64"))),
    };
    let expected = header.shape.iter().try_fold(size, |bytes: usize, n| bytes.checked_mul(*n));
    if header.shape.len() != 3 || expected != Some(elements.len()) {
        let (shape, found) = (&header.shape, elements.len());
        return Err(wrong(&format!("{found} bytes of shape {shape:?} are not heads × length × dim")));
    }
    match size {
        4 => Array3::<f32>::read_npy(bytes).map_err(|error| wrong(&error)),
        _ => Array3::<f64>::read_npy(bytes)
            .map(|array| array.mapv(|v| v as f32))
            .map_err(|error| wrong(&error)),
    }
}
