//! What attention did, on request: rows of its matrix of weights, and effective numbers of features.

mod effective;
mod weights;
