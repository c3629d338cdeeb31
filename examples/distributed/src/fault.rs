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

/// An error of the engine as a sentence: the context that was given, and the cause, without the engine's own prefixes.
pub fn sentence(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Context(context, cause) => format!("{context}: {}", sentence(cause)),
        DataFusionError::Execution(text) | DataFusionError::Plan(text) => text.clone(),
        DataFusionError::External(cause) => match cause.downcast_ref::<DataFusionError>() {
            Some(inner) => sentence(inner),
            None => cause.to_string(),
        },
        DataFusionError::Shared(cause) => sentence(cause),
        DataFusionError::Diagnostic(_, cause) => sentence(cause),
        DataFusionError::ArrowError(cause, _) => match cause.as_ref() {
            datafusion::arrow::error::ArrowError::ExternalError(inner) => {
                match inner.downcast_ref::<DataFusionError>() {
                    Some(inner) => sentence(inner),
                    None => inner.to_string(),
                }
            }
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}
