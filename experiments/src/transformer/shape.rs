//! The sizes of a transformer, and where each of its matrices is in the one vector of all parameters.

use ndarray::{ArrayView2, ArrayViewMut2};
use rand_distr::{Distribution, StandardNormal};
use random_features::{Real, rng};
use serde::{Deserialize, Serialize};

/// The sizes of a transformer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Size {
    pub characters: usize,
    pub context: usize,
    pub width: usize,
    pub heads: usize,
    pub layers: usize,
}

/// A matrix among the parameters.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    start: usize,
    rows: usize,
    columns: usize,
}

/// A layer norm's gain and shift, a row each.
#[derive(Clone, Copy, Debug)]
pub struct NormPlace {
    pub gain: Place,
    pub shift: Place,
}

#[derive(Clone, Copy, Debug)]
pub struct LayerPlaces {
    pub attention_norm: NormPlace,
    /// From the width to queries, keys and values.
    pub read: Place,
    pub write: Place,
    pub hidden_norm: NormPlace,
    pub up: Place,
    pub down: Place,
}

/// The places of all matrices.
#[derive(Clone, Debug)]
pub struct Shape {
    pub size: Size,
    pub characters: Place,
    pub positions: Place,
    pub layers: Vec<LayerPlaces>,
    pub norm: NormPlace,
    pub logits: Place,
    /// The number of parameters.
    pub count: usize,
}

impl Place {
    fn range(self) -> std::ops::Range<usize> {
        self.start..self.start + self.rows * self.columns
    }

    pub fn of<T>(self, all: &[T]) -> ArrayView2<'_, T> {
        let part = ArrayView2::from_shape((self.rows, self.columns), &all[self.range()]);
        part.expect("a place has as many numbers as its shape says")
    }

    pub fn of_mut<T>(self, all: &mut [T]) -> ArrayViewMut2<'_, T> {
        let part = ArrayViewMut2::from_shape((self.rows, self.columns), &mut all[self.range()]);
        part.expect("a place has as many numbers as its shape says")
    }
}

impl Shape {
    pub fn new(size: Size) -> Self {
        let mut count = 0;
        let mut place = |rows: usize, columns: usize| {
            let start = count;
            count += rows * columns;
            Place { start, rows, columns }
        };
        let Size { characters, context, width, layers, .. } = size;
        let norm = |place: &mut dyn FnMut(usize, usize) -> Place| NormPlace {
            gain: place(1, width),
            shift: place(1, width),
        };
        let (of_characters, positions) = (place(RECENT * characters, width), place(context, width));
        let mut layer = |_| LayerPlaces {
            attention_norm: norm(&mut place),
            read: place(width, 3 * width),
            write: place(width, width),
            hidden_norm: norm(&mut place),
            up: place(width, 4 * width),
            down: place(4 * width, width),
        };
        let layers = (0..layers).map(&mut layer).collect();
        let (norm, logits) = (norm(&mut place), place(width, characters));
        Shape { size, characters: of_characters, positions, layers, norm, logits, count }
    }

    /// Parameters to begin with: matrices keep the variance of what they multiply, those that write to the residual stream
    /// a part of it; positions are waves.
    pub fn draw<T: Real>(&self, seed: u64) -> Vec<T> {
        let (mut all, mut rng) = (vec![T::zero(); self.count], rng(seed));
        let mut fill = |place: Place, deviation: f64| {
            let number = |_| T::narrow(deviation * Distribution::<f64>::sample(&StandardNormal, &mut rng));
            place.of_mut(&mut all).mapv_inplace(number);
        };
        let inverse_root = |n: usize| (n as f64).sqrt().recip();
        let Size { width, layers, .. } = self.size;
        fill(self.characters, EMBEDDING);
        for layer in &self.layers {
            fill(layer.read, inverse_root(width));
            fill(layer.write, inverse_root(2 * layers * width));
            fill(layer.up, inverse_root(width));
            fill(layer.down, inverse_root(2 * layers * 4 * width));
        }
        fill(self.logits, 0.1 * inverse_root(width));
        for norm in self.layers.iter().flat_map(|l| [l.attention_norm, l.hidden_norm]).chain([self.norm]) {
            norm.gain.of_mut(&mut all).fill(T::one());
        }
        let wave = |((i, k), number): ((usize, usize), &mut T)| {
            let angle = i as f64 * 60f64.powf(-((k / 2 * 2) as f64) / width as f64);
            *number = T::narrow(EMBEDDING * if k % 2 == 0 { angle.sin() } else { angle.cos() });
        };
        self.positions.of_mut(&mut all).indexed_iter_mut().for_each(wave);
        all
    }
}

/// Characters whose embeddings, one table for each, add up to that of a place: what is near need not be attended to.
pub const RECENT: usize = 4;

/// The size of an embedding's entries at the start.
const EMBEDDING: f64 = 0.3;
