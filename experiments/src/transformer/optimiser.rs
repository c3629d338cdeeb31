//! Adam with a learning rate that rises for a while and then falls as a cosine, and clipped gradients.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

const DECAY: [f32; 2] = [0.9, 0.99];
const EPSILON: f32 = 1e-8;
/// The largest norm of a gradient.
const CLIP: f64 = 1.0;
/// The part of all steps in which the rate rises, and what it falls to.
const WARM: f64 = 0.05;
const LEAST: f64 = 0.05;

/// Means of gradients and of their squares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    mean: Vec<f32>,
    square: Vec<f32>,
    /// Steps so far.
    taken: i32,
    /// Steps that were not taken, since their gradient was not finite.
    pub skipped: usize,
}

impl Adam {
    pub fn new(parameters: usize) -> Self {
        Adam { mean: vec![0.0; parameters], square: vec![0.0; parameters], taken: 0, skipped: 0 }
    }

    /// Whether it is for so many parameters.
    pub fn fits(&self, parameters: usize) -> bool {
        [&self.mean, &self.square].iter().all(|all| all.len() == parameters)
    }

    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], rate: f64) {
        let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        // A step that is not finite would be the end of all.
        if !norm.is_finite() {
            self.skipped += 1;
            return;
        }
        self.taken += 1;
        let clip = (CLIP / norm).min(1.0) as f32;
        let [first, second] = DECAY.map(|decay| 1.0 - decay.powi(self.taken));
        let (rate, root) = (rate as f32 / first, second.sqrt().recip());
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((p, g), (mean, square)) in parameters.iter_mut().zip(gradient).zip(moments) {
            let g = clip * g;
            *mean += (1.0 - DECAY[0]) * (g - *mean);
            *square += (1.0 - DECAY[1]) * (g * g - *square);
            *p -= rate * *mean / (square.sqrt() * root + EPSILON);
        }
    }
}

/// The rate of a step, for the largest one.
pub fn rate(most: f64, step: usize, steps: usize) -> f64 {
    let (step, warm) = (step as f64 + 1.0, (WARM * steps as f64).max(1.0));
    if step < warm {
        return most * step / warm;
    }
    let through = (step - warm) / (steps as f64 - warm).max(1.0);
    most * (LEAST + (1.0 - LEAST) * 0.5 * (1.0 + (PI * through.min(1.0)).cos()))
}
