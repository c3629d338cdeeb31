//! What the example softmax_sampling also needs: embeddings, mechanisms that propose classes, and a model that is trained by draws.

#![allow(dead_code, reason = "what softmax_sampling alone needs")]

#[path = "../../../softmax_sampling/data.rs"]
pub mod data;
#[path = "../../../softmax_sampling/methods.rs"]
pub mod methods;
#[path = "../../../softmax_sampling/training.rs"]
pub mod training;
pub mod words;

use crate::progress;
