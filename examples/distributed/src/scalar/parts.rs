//! [`StateParts`]: a state in parts that fit into messages.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, LargeBinaryBuilder, ListBuilder};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::fault::refuse;

/// Bytes of a part. Messages of Ballista hold 16 MiB.
const PART: usize = 4 << 20;

/// `state_parts(state)`: the bytes of a state in a list of parts of at most 4 MiB, which follow each other. Null for null.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct StateParts {
    signature: Signature,
}

impl StateParts {
    /// The function.
    pub fn new() -> Self {
        StateParts { signature: Signature::exact(vec![DataType::LargeBinary], Volatility::Immutable) }
    }
}

impl Default for StateParts {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for StateParts {
    fn name(&self) -> &str {
        "state_parts"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::LargeBinary, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [state] = args.args.as_slice() else { return refuse("state_parts takes a state") };
        let states = state.to_array(args.number_rows)?;
        let Some(states) = states.as_binary_opt::<i64>() else {
            return refuse("states of sums are not of type LargeBinary");
        };
        let bytes = states.values().len();
        let mut lists =
            ListBuilder::new(LargeBinaryBuilder::with_capacity(bytes / PART + states.len(), bytes));
        for state in states {
            let parts = state.into_iter().flat_map(|state| state.chunks(PART));
            parts.for_each(|part| lists.values().append_value(part));
            lists.append(state.is_some());
        }
        Ok(ColumnarValue::Array(Arc::new(lists.finish())))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, LargeBinaryArray};
    use datafusion::arrow::datatypes::FieldRef;
    use datafusion::config::ConfigOptions;

    use super::*;

    #[test]
    fn parts_fit_into_messages_and_follow_each_other() {
        let long: Vec<u8> = (0..2 * PART + 5).map(|i| (i % 251) as u8).collect();
        let states: ArrayRef =
            Arc::new(LargeBinaryArray::from_iter([Some(&b"short"[..]), None, Some(&long)]));
        let function = StateParts::new();
        let field: FieldRef = Arc::new(Field::new("state", DataType::LargeBinary, true));
        let list = function.return_type(&[DataType::LargeBinary]).unwrap();
        let args = ScalarFunctionArgs {
            args: vec![ColumnarValue::Array(states)],
            arg_fields: vec![field],
            number_rows: 3,
            return_field: Arc::new(Field::new("parts", list.clone(), true)),
            config_options: Arc::new(ConfigOptions::default()),
        };
        let parts = function.invoke_with_args(args).unwrap().into_array(3).unwrap();
        assert_eq!((parts.data_type(), parts.is_null(1)), (&list, true));
        let parts = |row: usize| parts.as_list::<i32>().value(row).as_binary::<i64>().clone();
        assert_eq!(parts(0).iter().flatten().collect::<Vec<_>>(), [b"short"]);
        let long_parts = parts(2);
        assert!(long_parts.len() == 3 && long_parts.iter().flatten().all(|part| part.len() <= PART));
        assert!(long_parts.iter().flatten().collect::<Vec<_>>().concat() == long);
    }
}
