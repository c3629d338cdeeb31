//! Threads: the only place that knows whether there are any.
//!
//! With the feature `rayon` work is spread over the caller's pool. With one thread, or without the feature, it is done in order
//! on the calling thread. Results are in the order of the items, whatever thread computes them. So they do not depend on the
//! number of threads as long as no sum is cut by [`count`].

use std::mem;
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "rayon")]
use rayon::prelude::*;

#[cfg(feature = "rayon")]
use crate::progress::Watched;

/// The number of threads that work is spread over.
///
/// A forked process has a copy of the memory of its parent, but not its threads: work that is given to them never ends. Work in
/// a forked process stays on the calling thread, unless that thread belongs to a pool that was made after the fork.
#[cfg(feature = "rayon")]
pub(crate) fn count() -> usize {
    if is_orphan() { 1 } else { rayon::current_num_threads() }
}

/// Whether the threads of the pool that this thread would use are those of another process.
///
/// The first process is the one in which this was first called, and a thread belongs to the process in which it first called.
/// So both are noted at each call, even if the answer is plain: after a fork it would be too late.
#[cfg(all(feature = "rayon", unix))]
fn is_orphan() -> bool {
    use std::process;
    use std::sync::OnceLock;

    /// The first process.
    static FIRST: OnceLock<u32> = OnceLock::new();
    thread_local! {
        /// The process of this thread.
        static OWN: u32 = process::id();
    }
    let process = process::id();
    let is_first = *FIRST.get_or_init(|| process) == process;
    let is_new = OWN.with(|own| *own == process) && rayon::current_thread_index().is_some();
    !is_first && !is_new
}

/// Without forks all threads are of this process.
#[cfg(all(feature = "rayon", not(unix)))]
fn is_orphan() -> bool {
    false
}

/// The number of threads that work is spread over.
#[cfg(not(feature = "rayon"))]
pub(crate) fn count() -> usize {
    1
}

/// The results of both functions, which may run at once.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    #[cfg(feature = "rayon")]
    if count() > 1 {
        let (_waiting, watch) = Watched::by_nobody();
        let (first, second) = (&watch, &watch);
        return rayon::join(
            move || {
                let _watched = Watched::by(first);
                a()
            },
            move || {
                let _watched = Watched::by(second);
                b()
            },
        );
    }
    (a(), b())
}

/// The results of `work` on items, in their order.
pub(crate) fn map<I: Send, R: Send>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> R + Sync,
) -> Vec<R> {
    Pool::<()>::default().map(items, |(), item| work(item))
}

/// Calls `work` with each item.
pub(crate) fn for_each<I: Send>(items: impl IntoIterator<Item = I>, work: impl Fn(I) + Sync) {
    map(items, work);
}

/// Buffers that are used again by any thread that needs one: page faults of new ones may take longer than the work in them.
#[derive(Debug)]
pub(crate) struct Pool<A>(Mutex<Vec<A>>);

impl<A> Default for Pool<A> {
    fn default() -> Self {
        Pool(Mutex::default())
    }
}

impl<A> Pool<A> {
    /// A buffer that was given back, if there is any.
    pub fn take(&self) -> Option<A> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Gives a buffer back.
    pub fn give(&self, one: A) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(one);
    }
}

impl<A: Default + Send> Pool<A> {
    /// The results of `work` on items, in their order. A thread keeps a buffer from item to item, as the last item has left it.
    pub fn map<I: Send, R: Send>(
        &self,
        items: impl IntoIterator<Item = I>,
        work: impl Fn(&mut A, I) -> R + Sync,
    ) -> Vec<R> {
        let mut items = items.into_iter();
        self.map_next(items.size_hint(), &mut || items.next(), &work)
    }

    /// The results of `work` on items between the bounds in number. It is compiled for each type of items and results, and not
    /// for each work.
    fn map_next<I: Send, R: Send>(
        &self,
        bounds: (usize, Option<usize>),
        next: &mut dyn FnMut() -> Option<I>,
        work: &(dyn Fn(&mut A, I) -> R + Sync),
    ) -> Vec<R> {
        // One item needs neither a list nor threads.
        #[cfg(feature = "rayon")]
        if bounds.1 != Some(1) && count() > 1 {
            let mut places = Vec::with_capacity(bounds.0);
            while let Some(item) = next() {
                places.push(Mutex::new(Place::Item(item)));
            }
            spread(places.len(), &|| {
                let (mut loan, places) = (self.lend(), &places);
                Box::new(move |i| {
                    if let Place::Item(item) = Place::exchange(&places[i], Place::Empty) {
                        let result = work(&mut loan.buffer, item);
                        Place::exchange(&places[i], Place::Result(result));
                    }
                })
            });
            return Place::results(places);
        }
        let (mut loan, mut results) = (self.lend(), Vec::with_capacity(bounds.0));
        while let Some(item) = next() {
            results.push(work(&mut loan.buffer, item));
        }
        results
    }

    /// Calls `work` with each item. A thread keeps a buffer from item to item, as the last item has left it.
    pub fn for_each<I: Send>(&self, items: impl IntoIterator<Item = I>, work: impl Fn(&mut A, I) + Sync) {
        self.map(items, work);
    }

    /// A buffer as the one before has left it, which goes back to the pool when it is dropped.
    pub fn lend(&self) -> Loan<'_, A> {
        Loan { buffer: self.take().unwrap_or_default(), pool: self }
    }
}

/// The state of an item.
#[cfg(feature = "rayon")]
enum Place<I, R> {
    Item(I),
    /// A thread is at work on the item.
    Empty,
    Result(R),
}

#[cfg(feature = "rayon")]
impl<I, R> Place<I, R> {
    /// The state before, which the new one replaces.
    fn exchange(place: &Mutex<Self>, new: Self) -> Self {
        mem::replace(&mut *place.lock().unwrap_or_else(PoisonError::into_inner), new)
    }

    fn results(places: Vec<Mutex<Self>>) -> Vec<R> {
        let mut results = Vec::with_capacity(places.len());
        for place in places {
            if let Ok(Place::Result(result)) = place.into_inner() {
                results.push(result);
            }
        }
        results
    }
}

/// Lets workers do all of the numbers below n; each thread makes some workers.
///
/// It is not generic and so compiled once: rayon's part is larger than most of the work that it spreads.
#[cfg(feature = "rayon")]
fn spread<'a>(n: usize, worker: &(dyn Fn() -> Box<dyn FnMut(usize) + 'a> + Sync)) {
    let (_waiting, watch) = Watched::by_nobody();
    (0..n).into_par_iter().for_each_init(worker, |worker, i| {
        let _watched = Watched::by(&watch);
        worker(i);
    });
}

/// A buffer that goes back to its pool.
pub(crate) struct Loan<'a, A: Default> {
    pub buffer: A,
    pool: &'a Pool<A>,
}

impl<A: Default> Drop for Loan<'_, A> {
    fn drop(&mut self) {
        self.pool.give(mem::take(&mut self.buffer));
    }
}

/// The result of `work` on so many threads.
///
/// # Errors
/// The message of the system if it cannot make so many.
#[cfg(all(feature = "rayon", any(test, feature = "testing")))]
pub(crate) fn with<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> Result<R, String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok(pool.map_err(|error| format!("no pool of {threads} threads: {error}"))?.install(work))
}

/// The result of `work` on one thread, whatever number is asked for.
#[cfg(all(not(feature = "rayon"), any(test, feature = "testing")))]
pub(crate) fn with<R: Send>(_: usize, work: impl FnOnce() -> R + Send) -> Result<R, String> {
    Ok(work())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for threads in [1, 2, 7] {
            let mut squares = [0; 100];
            let found = with(threads, || {
                for_each(squares.chunks_mut(3).enumerate(), |(run, squares)| {
                    squares.iter_mut().enumerate().for_each(|(i, square)| *square = (3 * run + i).pow(2));
                });
                map(0..100, |i| i * i)
            });
            assert_eq!(found, Ok(squares.to_vec()), "{threads} threads");
        }
    }

    #[test]
    fn as_many_buffers_as_threads() {
        for threads in [1, 2, 7] {
            let pool: Pool<Vec<usize>> = Pool::default();
            let met = with(threads, || pool.map(0..1000, |met, i| met.push(i))).map(|all| all.len());
            assert_eq!(met, Ok(1000));
            let buffers: Vec<Vec<usize>> = std::iter::from_fn(|| pool.take()).collect();
            assert!((1..=threads).contains(&buffers.len()), "{} for {threads} threads", buffers.len());
            assert_eq!(buffers.concat().len(), 1000);
        }
    }

    #[test]
    fn a_pool_is_as_large_as_asked_for() {
        let expected = if cfg!(feature = "rayon") { 3 } else { 1 };
        assert_eq!(with(3, count), Ok(expected));
    }
}
