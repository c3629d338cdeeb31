//! Errors of the library as those of the engine.

use datafusion::common::DataFusionError;

use crate::sums::FAR;

/// An error of the library as a sentence, which is what arrives from another process.
pub fn external(error: impl std::error::Error) -> DataFusionError {
    DataFusionError::Execution(error.to_string())
}

/// A request that cannot be fulfilled, in a sentence.
pub fn refuse<V>(sentence: impl Into<String>) -> datafusion::common::Result<V> {
    Err(DataFusionError::Execution(sentence.into()))
}

/// A fault of a row of a table.
pub fn at_row(row: u64, what: impl std::fmt::Display) -> DataFusionError {
    // Rows that came without numbers have some of their own, which tell nothing.
    let place = if row < FAR { format!("row {row}: ") } else { String::new() };
    DataFusionError::Execution(format!("{place}{what}"))
}

/// The row that a sentence begins with, and what is said of it.
pub fn row_of(sentence: &str) -> Option<(u64, &str)> {
    let (row, what) = sentence.strip_prefix("row ")?.split_once(": ")?;
    Some((row.parse().ok()?, what))
}

/// An error of the engine as a sentence: the context that was given, and the cause, without the engine's own prefixes.
pub fn sentence(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Context(context, cause) => format!("{context}: {}", sentence(cause)),
        DataFusionError::Execution(text) | DataFusionError::Plan(text) => {
            spoken(text).unwrap_or_else(|| text.clone())
        }
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

/// How the texts of an error begin where it is printed for debugging, as a scheduler passes those of executors on.
const TEXTS: [&str; 3] = ["Context(\"", "Execution(\"", "Plan(\""];

/// The texts in an error that another process printed for debugging, if it has any.
fn spoken(debug: &str) -> Option<String> {
    let (mut texts, mut rest) = (Vec::new(), debug);
    let next = |rest: &str| {
        let places = TEXTS.iter().filter_map(|text| Some(rest.find(text)? + text.len()));
        places.min()
    };
    while let Some(place) = next(rest) {
        let (text, after) = unquoted(&rest[place..])?;
        texts.push(text);
        rest = after;
    }
    // An error that passed through several hands is printed by each.
    texts.dedup();
    (!texts.is_empty()).then(|| texts.join(": "))
}

/// A text up to the quote that ends it, without its escapes, and what follows.
fn unquoted(escaped: &str) -> Option<(String, &str)> {
    let (mut text, mut rest) = (String::new(), escaped.chars());
    loop {
        match rest.next()? {
            '"' => return Some((text, rest.as_str())),
            '\\' => text.push(match rest.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '0' => '\0',
                'u' => {
                    let (code, after) = rest.as_str().strip_prefix('{')?.split_once('}')?;
                    rest = after.chars();
                    char::from_u32(u32::from_str_radix(code, 16).ok()?)?
                }
                other => other,
            }),
            plain => text.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an executor says comes through the scheduler's printing of it.
    #[test]
    fn errors_of_other_processes_are_sentences() {
        let inner = DataFusionError::Execution("column \"a\\b\" has\n2 nulls, ü\u{1}".into());
        let inner = inner.context("part-1 cannot be read");
        let failed =
            DataFusionError::Execution(format!("Job failed: Task failed: DataFusionError({inner:?})"));
        assert_eq!(sentence(&failed), "part-1 cannot be read: column \"a\\b\" has\n2 nulls, ü\u{1}");
        assert_eq!(sentence(&inner), sentence(&failed));
        for plain in ["nothing in quotes", "Execution(\"without an end"] {
            assert_eq!(sentence(&DataFusionError::Execution(plain.into())), plain);
        }
    }
}
