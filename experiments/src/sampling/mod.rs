//! Classes of a huge softmax: embeddings, mechanisms that propose classes, and a classifier that is trained by draws.

pub mod data;
pub mod methods;
pub mod training;
