//! [`FoldFunction`]: a division of rows.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;

use super::text;
use crate::fault::refuse;

/// `fold(k, value)`: a whole number below k, drawn at random for each value, and the same for equal values in all runs and on all
/// machines. `GROUP BY fold(5, subject)` divides rows into five folds, and those of a subject stay together. With a JSON list of
/// texts behind, its values are dealt to the folds in turn: `fold(2, site, '["Rome", "Oslo", "Bern"]')`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct FoldFunction {
    signature: Signature,
}

impl FoldFunction {
    /// The function.
    pub fn new() -> Self {
        FoldFunction { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl Default for FoldFunction {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for FoldFunction {
    fn name(&self) -> &str {
        "fold"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [_, value, ..] if value.is_nested() => {
                plan_err!("fold takes a number, a text, a Boolean or a date, not {value}")
            }
            [_, _] => Ok(vec![DataType::UInt64, DataType::Utf8]),
            [_, _, _] => Ok(vec![DataType::UInt64, DataType::Utf8, DataType::Utf8]),
            _ => plan_err!("fold takes a number of folds, a value and, if asked, a list of values"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(ScalarValue::UInt64(Some(count @ 1..))), values, list @ ..] =
            args.args.as_slice()
        else {
            return refuse("fold takes a constant number of folds, at least 1");
        };
        let listed = listed(list.first())?;
        let values = cast(&values.to_array(args.number_rows)?, &DataType::Utf8)?;
        if values.null_count() > 0 {
            return refuse(format!(
                "{} values of fold are null: fill them in, or leave their rows out",
                values.null_count()
            ));
        }
        let folds = values.as_string::<i32>().iter().flatten();
        let folds = folds.map(|value| listed.get(value).copied().unwrap_or_else(|| hash(value)) % count);
        Ok(ColumnarValue::Array(Arc::new(UInt64Array::from_iter_values(folds))))
    }
}

/// The place of each value of a JSON list of texts.
fn listed(list: Option<&ColumnarValue>) -> Result<HashMap<String, u64>> {
    let json = match list {
        None => return Ok(HashMap::new()),
        Some(ColumnarValue::Scalar(list)) => text(Some(list), "the list of values of fold")?,
        Some(ColumnarValue::Array(_)) => return refuse("the list of values of fold is not a constant"),
    };
    match serde_json::from_str::<Vec<String>>(&json) {
        Ok(values) => Ok(values.into_iter().zip(0..).collect()),
        Err(_) => refuse("the list of values of fold is not a JSON list of texts, such as [\"a\", \"b\"]"),
    }
}

/// FNV-1a of 64 bits, whose high bits are mixed into the low ones.
pub(crate) fn hash(value: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = value.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of five folds has a fifth of 50,000 numbers, within five standard deviations of √8000.
    #[test]
    fn folds_are_of_equal_size() {
        let mut counts = [0usize; 5];
        (0..50_000).for_each(|row: u32| counts[(hash(&row.to_string()) % 5) as usize] += 1);
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 450), "{counts:?}");
        // States of several runs merge only if a value keeps its fold.
        assert_eq!(["subject 7", "", "1"].map(|value| hash(value) % 1000), [640, 458, 232]);
    }
}
