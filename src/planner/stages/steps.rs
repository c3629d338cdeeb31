//! Work on many recipes, watched.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Result;
use crate::{progress, threads};

/// The results of `work` on items, each of which is a step of the task for whoever watches.
pub(crate) fn steps<I: Send, R: Send>(
    task: &'static str,
    items: impl IntoIterator<Item = I, IntoIter: ExactSizeIterator>,
    work: impl Fn(I) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let items = items.into_iter();
    let (total, done) = (items.len(), AtomicUsize::new(0));
    let results = threads::map(items, |item| {
        progress::check()?;
        let result = work(item)?;
        progress::step(task, done.fetch_add(1, Ordering::Relaxed) + 1, total)?;
        Ok(result)
    });
    results.into_iter().collect()
}
