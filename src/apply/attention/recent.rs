//! [`Head`]: what causal attention keeps of a head token by token: the last keys and values, whose weights are exact, and the sums
//! over those before them.

use ndarray::{ArrayViewMut1, Axis};

use super::element::Numbers;
use super::heads::KeyRun;
use super::reading::Reading;
use super::scan::Outlet;
use super::sequence::Sequence;
use super::setup::Setup;
use super::sight::Asked;
use super::window::Neighbours;
use super::worker::Worker;
use crate::Real;
use crate::data::window::Window;
use crate::numeric::matrix_view;

/// The tokens of a head so far.
#[derive(Clone, Debug)]
pub(super) struct Head<T: Real> {
    /// Those that have left the window.
    pub sequence: Sequence<T>,
    recent: Recent<T>,
}

/// Keys and values in rows: those that are still in the window.
#[derive(Clone, Debug)]
struct Recent<T> {
    keys: Vec<T>,
    values: Vec<T>,
    dims: [usize; 2],
    /// Rows at the front that have left, and have not been dropped yet.
    left: usize,
}

impl<T: Real> Recent<T> {
    /// None, of keys and values of these dimensions.
    fn new(dims: [usize; 2]) -> Self {
        Recent { keys: Vec::new(), values: Vec::new(), dims, left: 0 }
    }

    fn len(&self) -> usize {
        self.values.len() / self.dims[1] - self.left
    }

    /// Takes in tokens.
    fn extend(&mut self, tokens: KeyRun<'_, T>) {
        tokens.keys.read(T::one(), &mut self.keys);
        tokens.values.read(T::one(), &mut self.values);
    }

    /// The tokens.
    fn tokens(&self) -> KeyRun<'_, T> {
        let (rows, [d, d_v]) = (self.len(), self.dims);
        let keys = matrix_view(rows, d, &self.keys[self.left * d..]);
        let values = matrix_view(rows, d_v, &self.values[self.left * d_v..]);
        KeyRun::new(Numbers::Own(keys), Numbers::Own(values))
    }

    /// Lets the first ones go.
    fn leave(&mut self, count: usize) {
        self.left += count;
        // Moves the others only where these are no more than those that have gone: once for each token.
        if self.left >= self.len() {
            let [d, d_v] = self.dims;
            self.keys.drain(..self.left * d);
            self.values.drain(..self.left * d_v);
            self.left = 0;
        }
    }
}

impl<T: Real> Head<T> {
    /// Without tokens, of these dimensions.
    pub fn new(features: usize, [d, d_v]: [usize; 2]) -> Self {
        Head { sequence: Sequence::new(features, d_v), recent: Recent::new([d, d_v]) }
    }

    /// The number of tokens so far.
    pub fn length(&self) -> usize {
        self.sequence.length().saturating_add(self.recent.len())
    }

    /// Takes in a token. Where another leaves a window of `before` tokens for it, that is appended to `leaving`.
    pub fn push(&mut self, before: usize, token: KeyRun<'_, T>, [keys, values]: [&mut Vec<T>; 2]) {
        self.recent.extend(token);
        if self.recent.len() > before {
            let first = self.recent.tokens().rows(0..1);
            first.keys.read(T::one(), keys);
            first.values.read(T::one(), values);
            self.recent.leave(1);
        }
    }

    /// Takes in many tokens with `ways` threads.
    pub fn prefill(&mut self, setup: Setup<'_, T>, before: usize, tokens: KeyRun<'_, T>, ways: usize) {
        let leaving = (self.recent.len().saturating_add(tokens.len())).saturating_sub(before);
        let old = leaving.min(self.recent.len());
        self.sequence.prefill(setup, self.recent.tokens().rows(0..old), ways);
        self.recent.leave(old);
        self.sequence.prefill(setup, tokens.rows(0..leaving - old), ways);
        self.recent.extend(tokens.rows(leaving - old..tokens.len()));
    }

    /// Writes the output of a query that sees all tokens so far: row `i` of those that the worker, which has
    /// [forgotten](Worker::forget) all other tokens, has read. `near` are the window and
    /// how exact logits read keys, if there is one. False if its normaliser is not positive although it has seen a key.
    pub fn answer(
        &mut self,
        setup: Setup<'_, T>,
        near: Option<(Window, Reading)>,
        i: usize,
        worker: &mut Worker<T>,
        out: &mut [T],
    ) -> bool {
        let (length, first) = (self.length(), self.sequence.length());
        let Head { sequence, recent } = self;
        let near = near.map(|near| Neighbours::new(near, recent.tokens(), first));
        let out = ArrayViewMut1::from(out).insert_axis(Axis(0));
        let mut positive = true;
        let report = &mut |_| positive = false;
        let asked = Asked {
            queries: i..i + 1,
            sees: sequence.open(),
            place: length.saturating_sub(1),
            out: Outlet::Outputs(out, None),
            report,
        };
        sequence.answer(setup.beside(None, near.as_ref()), asked, worker);
        positive
    }
}

/// The stored form of a head.
#[cfg(feature = "serde")]
pub(super) mod stored {
    use super::super::sequence::stored::StoredSequence;
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "Head", bound = "")]
    pub struct StoredHead<T: Real> {
        sequence: StoredSequence<T>,
        /// The keys and values in the window, one token after the other.
        #[serde(with = "crate::exact")]
        keys: Vec<f64>,
        #[serde(with = "crate::exact")]
        values: Vec<f64>,
    }

    impl<T: Real> From<&Head<T>> for StoredHead<T> {
        fn from(head: &Head<T>) -> Self {
            let tokens = head.recent.tokens();
            let numbers = |x: Numbers<'_, T>| {
                let mut numbers = Vec::new();
                x.read(T::one(), &mut numbers);
                numbers.into_iter().map(T::widen).collect()
            };
            let (keys, values) = (numbers(tokens.keys), numbers(tokens.values));
            StoredHead { sequence: (&head.sequence).into(), keys, values }
        }
    }

    impl<T: Real> StoredHead<T> {
        /// The numbers of tokens before the window and in it.
        pub fn length(&self) -> [usize; 2] {
            [self.sequence.length, self.values.len()]
        }

        /// The head; `None` if sizes are not those of the map, of a window of `before` tokens and of so many targets.
        pub fn restored(self, setup: Setup<'_, T>, before: usize, targets: usize) -> Option<Head<T>> {
            let StoredHead { sequence, keys, values } = self;
            let d = setup.program.facts().input_dim;
            let rows = values.len() / targets;
            // Nothing leaves a window before it is full.
            let full = if sequence.length == 0 { rows <= before } else { rows == before };
            if !full || rows.checked_mul(d) != Some(keys.len()) || rows * targets != values.len() {
                return None;
            }
            let narrow = |numbers: Vec<f64>| -> Vec<T> { numbers.into_iter().map(T::narrow).collect() };
            let recent = Recent { keys: narrow(keys), values: narrow(values), dims: [d, targets], left: 0 };
            Some(Head { sequence: sequence.restored(setup, targets)?, recent })
        }
    }
}
