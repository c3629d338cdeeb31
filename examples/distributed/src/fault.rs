//! Errors of the library as those of the engine.

use datafusion::common::DataFusionError;

/// An error of the library, as it is.
pub fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// A request that cannot be fulfilled, in a sentence.
pub fn refuse<V>(sentence: impl Into<String>) -> datafusion::common::Result<V> {
    Err(DataFusionError::Execution(sentence.into()))
}
