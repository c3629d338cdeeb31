//! What can fail, and with what.

use std::error::Error;

/// A result whose error is a sentence of this program or of a crate that it calls.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
