//! What attention reads: heads, options, layouts and elements of tokens.

mod heads;
mod layouts;
mod options;
#[cfg(feature = "half")]
mod precision;
mod refusals;
mod shrinkage;
#[cfg(feature = "serde")]
mod stored;
