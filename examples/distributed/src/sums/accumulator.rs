//! [`SumsAccumulator`]: sums as the engine takes rows and states in.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::common::Result;
use datafusion::logical_expr::Accumulator;
use datafusion::scalar::ScalarValue;

use super::kind::{Constants, Kind};
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
    /// Whether rows come with their numbers.
    with_rows: bool,
    /// The names of the columns of the target, if there is one, and of the points.
    names: Arc<[String]>,
    sums: Numbered,
    /// The number of the next row where they come without.
    next: u64,
    /// Whether all states that were merged know their rows.
    merged_known: bool,
}

impl SumsAccumulator {
    /// Sums of points in ℝᵈ, in columns of these names; the target's name comes first if there is one.
    pub fn new(
        constants: &Constants,
        dim: usize,
        double: bool,
        with_rows: bool,
        names: Vec<String>,
    ) -> Result<Self> {
        let sums = if double { constants.sums::<f64>(dim) } else { constants.sums::<f32>(dim) };
        let (kind, mark, sums) = (constants.kind(), constants.mark()?, Numbered::new(sums?));
        let (names, next) = (names.into(), some_offset());
        Ok(SumsAccumulator { kind, double, mark, with_rows, names, sums, next, merged_known: true })
    }

    /// The columns of arguments, and the numbers of their rows.
    fn columns(&self, values: &[ArrayRef]) -> Result<(Option<UInt64Array>, Columns)> {
        let (numbers, rest) = match (self.with_rows, values) {
            (true, [numbers, rest @ ..]) => (numbers.as_primitive_opt::<UInt64Type>().cloned(), rest),
            _ => (None, values),
        };
        if self.with_rows && numbers.is_none() {
            return refuse("the numbers of rows are not whole numbers from 0 on");
        }
        let (target, x) = match (self.kind.has_target(), rest) {
            (true, [target, x @ ..]) => (Some(target.clone()), x),
            (true, []) => return refuse("there is no target"),
            (false, x) => (None, x),
        };
        Ok((numbers, Columns { target, x: x.to_vec(), names: self.names.clone() }))
    }

    /// Adds rows by runs of consecutive numbers.
    fn push_runs(&mut self, numbers: &UInt64Array, rows: &Columns) -> Result<()> {
        if numbers.null_count() > 0 {
            return refuse("the number of a row is null");
        }
        let numbers = numbers.values();
        let mut start = 0;
        while start < numbers.len() {
            let end = run_end(numbers, start);
            self.sums.push(numbers[start], &rows.slice(start, end - start))?;
            start = end;
        }
        Ok(())
    }

    fn finished(&mut self) -> Result<ScalarValue> {
        let sums = self.sums.finished()?.stored()?;
        let rows = self.with_rows && self.merged_known;
        let state = State { kind: self.kind, double: self.double, mark: self.mark, rows, sums };
        Ok(ScalarValue::LargeBinary(Some(state.to_bytes())))
    }
}

/// Where the numbers that follow each other from `start` on end.
fn run_end(numbers: &[u64], start: usize) -> usize {
    let follow = |pair: &[u64]| pair[1].checked_sub(pair[0]) == Some(1);
    let gap = numbers[start..].windows(2).position(|pair| !follow(pair));
    gap.map_or(numbers.len(), |gap| start + gap + 1)
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
        if let Some((row, what)) = rows.null() {
            return Err(at_row(numbers.map_or(self.next, |numbers| numbers.value(row)), what));
        }
        if let Some(numbers) = numbers {
            return self.push_runs(&numbers, &rows);
        }
        self.sums.push(self.next, &rows)?;
        self.next += rows.rows() as u64;
        Ok(())
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
        SumsAccumulator::new(&constants, 1, false, true, Vec::new()).unwrap()
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
