//! [`Cache`]: what decoding keeps of the tokens so far.

use candle_core::{Error, Result, Tensor};
use random_features::apply::attention::{CausalState, Heads};
use random_features::ndarray::{ArrayView4, Axis};

use crate::precision::{Entry, Precision};
use crate::views::{self, Reader, tensor};

/// What decoding keeps of the tokens so far: sums of a fixed size, however many tokens there are. A clone is a fork.
#[derive(Clone, Debug)]
pub struct Cache<T: Precision> {
    state: CausalState<T>,
}

impl<T: Precision> Cache<T> {
    pub(crate) fn new(state: CausalState<T>) -> Self {
        Cache { state }
    }

    /// Takes in the tokens that follow, be it a prompt or one, and gives their outputs: to the bit what
    /// [`LinearAttention::apply`](crate::LinearAttention::apply) gives for all tokens so far, however these are cut. Without
    /// gradients.
    ///
    /// # Errors
    /// As [`apply`](crate::LinearAttention::apply); nothing has been taken in then.
    pub fn attend(&mut self, queries: &Tensor, keys: &Tensor, values: &Tensor) -> Result<Tensor> {
        views::read([queries, keys, values], Attend(&mut self.state))
    }

    /// The number of tokens of each sequence so far.
    pub fn lengths(&self) -> Vec<usize> {
        self.state.lengths()
    }

    /// The state itself: sequences come and go there ([`select`](CausalState::select), [`append`](CausalState::append)).
    pub fn state_mut(&mut self) -> &mut CausalState<T> {
        &mut self.state
    }
}

/// The outputs of the tokens that follow.
struct Attend<'a, T: Precision>(&'a mut CausalState<T>);

impl<T: Precision> Reader<T> for Attend<'_, T> {
    type Output = Tensor;

    fn read<E: Entry<T>>(self, [q, k, v]: [ArrayView4<'_, E>; 3]) -> Result<Tensor> {
        let output = if [&q, &k, &v].iter().all(|x| x.len_of(Axis(2)) == 1) {
            // A step shares the projections of all sequences and heads.
            let [q, k, v] = [q, k, v].map(|x| x.index_axis_move(Axis(2), 0));
            self.0.step(&q, &k, &v).map_err(Error::wrap)?.output.insert_axis(Axis(2))
        } else {
            let heads = Heads::new(&q, &k, &v).map_err(Error::wrap)?;
            self.0.prefill(&heads).map_err(Error::wrap)?.output
        };
        tensor::<T, E>(output)
    }
}
