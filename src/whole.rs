//! [`all_or_none`]: changes of a state that are made as a whole or not at all.

use std::convert::Infallible;

/// Lets `change` change a state. If it is `at_risk` because a user's code may panic within, it changes a copy, which takes the
/// state's place in the end.
pub(crate) fn all_or_none<S: Clone, R>(state: &mut S, at_risk: bool, change: impl FnOnce(&mut S) -> R) -> R {
    let Ok(result) = try_all_or_none(state, at_risk, |state| Ok::<R, Infallible>(change(state)));
    result
}

/// Lets `change` change a state. If it is `at_risk` of failing or panicking halfway, it changes a copy, which takes the state's
/// place if it succeeds.
pub(crate) fn try_all_or_none<S: Clone, R, E>(
    state: &mut S,
    at_risk: bool,
    change: impl FnOnce(&mut S) -> Result<R, E>,
) -> Result<R, E> {
    if !at_risk {
        return change(state);
    }
    let mut next = state.clone();
    let result = change(&mut next)?;
    *state = next;
    Ok(result)
}
