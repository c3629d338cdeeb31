//! [`MergeSums`]: an aggregate of states.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;

use super::state::State;
use crate::fault::refuse;

/// `merge_sums(state)`: the sums of all rows of states, such as those that were stored of the data of each day. Null without a
/// state; null states are left out.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct MergeSums {
    signature: Signature,
}

impl MergeSums {
    /// The function.
    pub fn new() -> Self {
        MergeSums { signature: Signature::exact(vec![DataType::LargeBinary], Volatility::Immutable) }
    }
}

impl Default for MergeSums {
    fn default() -> Self {
        Self::new()
    }
}

impl AggregateUDFImpl for MergeSums {
    fn name(&self) -> &str {
        "merge_sums"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::LargeBinary)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "state"), DataType::LargeBinary, true))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Merged { state: None }))
    }
}

/// The states so far, as one.
#[derive(Debug)]
struct Merged {
    state: Option<State>,
}

impl Accumulator for Merged {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(states) = values.first().and_then(|states| states.as_binary_opt::<i64>()) else {
            return refuse("states of sums are not of type LargeBinary");
        };
        for bytes in states.iter().flatten() {
            let state = State::of_bytes(bytes)?;
            self.state = Some(match self.state.take() {
                None => state,
                Some(held) => held.merge(&state)?,
            });
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::LargeBinary(self.state.as_ref().map(State::to_bytes)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.state.as_ref().map_or(0, |state| state.sums.len())
    }
}
