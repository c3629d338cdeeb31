//! [`SumsAccumulator`]: sums as the engine takes rows and states in.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::common::Result;
use datafusion::logical_expr::Accumulator;
use datafusion::scalar::ScalarValue;

use super::kind::{Constants, Kind, RowColumns};
use super::numbering::Numbered;
use super::state::State;
use crate::columns::Columns;
use crate::fault::{at_row, refuse};

/// Sums of the rows of a partition, or of the states of several.
#[derive(Debug)]
pub(super) struct SumsAccumulator {
    kind: Kind,
    double: bool,
    /// [`Constants::mark`](super::Constants::mark).
    mark: u32,
    /// What comes with each row.
    row_columns: RowColumns,
    /// The names of the columns of the weight, the target and the points, those that there are.
    names: Arc<[String]>,
    sums: Numbered,
    /// The number of the next row where they come without.
    next: u64,
    /// Whether all states that were merged know their rows.
    merged_known: bool,
}

impl SumsAccumulator {
    /// Sums of points in ℝᵈ, in columns of these names; those of the weight and the target come first if there are any.
    pub fn new(
        constants: &Constants,
        dim: usize,
        double: bool,
        row_columns: RowColumns,
        names: Vec<String>,
    ) -> Result<Self> {
        let sums = if double { constants.sums::<f64>(dim) } else { constants.sums::<f32>(dim) };
        let (kind, mark, sums) = (constants.kind(), constants.mark()?, Numbered::new(sums?));
        let (names, next) = (names.into(), some_offset());
        Ok(SumsAccumulator { kind, double, mark, row_columns, names, sums, next, merged_known: true })
    }

    /// The columns of arguments, and the numbers of their rows.
    fn columns(&self, values: &[ArrayRef]) -> Result<(Option<UInt64Array>, Columns)> {
        let RowColumns { numbers: with_numbers, weights: with_weights } = self.row_columns;
        let mut rest = values.iter();
        let numbers = if with_numbers { rest.next() } else { None };
        let numbers = numbers.and_then(|numbers| numbers.as_primitive_opt::<UInt64Type>().cloned());
        if with_numbers && numbers.is_none() {
            return refuse("the numbers of rows are not whole numbers from 0 on");
        }
        let weight = if with_weights { rest.next().cloned() } else { None };
        let target = if self.kind.has_target() { rest.next().cloned() } else { None };
        let x = rest.cloned().collect();
        Ok((numbers, Columns { weight, target, x, names: self.names.clone() }))
    }

    fn finished(&mut self) -> Result<ScalarValue> {
        let sums = self.sums.finished()?.stored()?;
        let rows = self.row_columns.numbers && self.merged_known;
        let state = State { kind: self.kind, double: self.double, mark: self.mark, rows, sums };
        Ok(ScalarValue::LargeBinary(Some(state.to_bytes())))
    }
}

/// Where the numbers of rows begin that come without.
pub const FAR: u64 = 1 << 62;

/// An offset at which rows without numbers begin: another one for each partition, far from those of numbered rows, so that states
/// merge. Ranges of rows of two of a thousand partitions of 10⁹ rows meet once in 10⁴ runs; that is an error then.
fn some_offset() -> u64 {
    let random = RandomState::new().hash_one(0u64);
    (FAR | (random & (FAR - 1))) & !((1 << 20) - 1)
}

impl Accumulator for SumsAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (numbers, rows) = self.columns(values)?;
        let numbers = match numbers {
            Some(numbers) if numbers.null_count() > 0 => return refuse("the number of a row is null"),
            Some(numbers) => numbers.values().to_vec(),
            None => (self.next..self.next + rows.rows() as u64).collect(),
        };
        if let Some((row, what)) = rows.null() {
            return Err(at_row(numbers[row], what));
        }
        self.next += rows.rows() as u64;
        self.sums.push(&numbers, &rows)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(states) = states.first().and_then(|states| states.as_binary_opt::<i64>()) else {
            return refuse("states of sums are not of type LargeBinary");
        };
        for state in states.iter().flatten() {
            let state = State::of_bytes(state)?;
            state.check(self.kind, self.double, self.mark)?;
            self.sums.finished()?.join(&state.sums)?;
            self.merged_known &= state.rows;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.finished()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.finished()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.sums.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Float32Array, LargeBinaryArray};
    use random_features::Trigonometric;
    use random_features::frequency::Orthogonal;
    use random_features::kernel::Gaussian;
    use random_features::map::Recipe;
    use random_features::recipe::Draw;
    use random_features::recipe::PlainRecipe;

    use super::*;
    use crate::map::MapSpec;

    fn accumulator() -> SumsAccumulator {
        let recipe =
            PlainRecipe::new(Trigonometric, Draw::new(1, 4, Orthogonal), Gaussian::new(1.0).unwrap());
        let constants = Constants::Ridge(MapSpec::new(Recipe::Plain(recipe), 1));
        let numbered = RowColumns { numbers: true, weights: false };
        SumsAccumulator::new(&constants, 1, false, numbered, Vec::new()).unwrap()
    }

    /// The state of rows from one number to another.
    fn state(rows: std::ops::Range<u64>) -> Vec<u8> {
        let mut sums = accumulator();
        let values: ArrayRef = Arc::new(Float32Array::from_iter_values(rows.clone().map(|row| row as f32)));
        let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows));
        sums.update_batch(&[numbers, values.clone(), values]).unwrap();
        match sums.state().unwrap().as_slice() {
            [ScalarValue::LargeBinary(Some(bytes))] => bytes.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// A partition that arrives twice is an error, in one batch of states or in two, next to each other or not.
    #[test]
    fn a_partition_that_arrives_twice_is_an_error() {
        let (first, second) = (state(0..8192), state(8192..9000));
        let batch = |states: &[&Vec<u8>]| -> ArrayRef {
            Arc::new(LargeBinaryArray::from_iter_values(states.iter().copied()))
        };
        let mut sums = accumulator();
        sums.merge_batch(&[batch(&[&second, &first])]).unwrap();
        let error = sums.merge_batch(&[batch(&[&first])]).unwrap_err().to_string();
        assert!(error.contains("row 0 is counted already"), "{error}");
        let error = accumulator().merge_batch(&[batch(&[&second, &first, &second])]).unwrap_err().to_string();
        assert!(error.contains("row 8192 is counted already"), "{error}");
    }
}
