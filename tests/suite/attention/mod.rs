//! Attention: what it gives against the definition, and what is said of it.

mod choice;
mod decoding;
mod effective_features;
mod exact_keys;
mod gradients;
mod limits;
mod linear;
mod oracle;
mod pair_gradients;
mod parameters;
mod report;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod shaped;
mod usual;
mod window;
