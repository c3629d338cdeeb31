//! What attention did, on request: rows of weights, and effective numbers of features.

mod effective;
mod weights;
