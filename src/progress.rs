//! Showing the progress of long work, and stopping it.
//!
//! A search, a plan, a clustering, an error report or a pass over many rows can take minutes. [`watch`] runs such work and calls
//! a function of yours while it runs, which can show the progress of the work and stop it.
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::time::{Duration, Instant};
//! use random_features::apply::RidgeSearch;
//! use random_features::progress::{Progress, watch};
//! use random_features::Error;
//! # let x = random_features::ndarray::Array2::from_shape_fn((100, 1), |(i, _)| i as f64 / 10.0);
//! # let y = x.mapv(f64::sin);
//! let start = Instant::now();
//! let watcher = move |progress: &Progress<'_>| {
//!     eprintln!("{progress}");
//!     if start.elapsed() > Duration::from_secs(60) {
//!         return ControlFlow::Break(());
//!     }
//!     ControlFlow::Continue(())
//! };
//! let search = RidgeSearch::gaussian(1, 16, 1)?;
//! match watch(watcher, || search.fit(&x, &y)) {
//!     Ok(fit) => println!("{}", fit.best()),
//!     Err(Error::Cancelled) => println!("stopped after a minute"),
//!     Err(error) => return Err(error),
//! }
//! # Ok::<(), Error>(())
//! ```
//!
//! Work that was stopped ends with [`Error::Cancelled`]. It has changed nothing except your output arrays. Watching never
//! changes a result.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use crate::error::{Error, Result};

/// The progress of a task, which a [watcher](watch) sees: `{progress}` is a line such as "maps tried: 3 of 12".
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The name of the task, such as "maps tried"; empty before the first step of any task.
    pub task: &'static str,
    /// The number of steps that are done.
    pub done: usize,
    /// The number of all steps, if it is known.
    pub total: Option<usize>,
    /// The result of the step that was just done, such as a [`RidgeTrial`](crate::apply::RidgeTrial), in words; mostly empty.
    pub detail: &'a dyn fmt::Display,
}

impl fmt::Display for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.task.is_empty() {
            return f.write_str("no step is done yet");
        }
        write!(f, "{}: {}", self.task, self.done)?;
        if let Some(total) = self.total {
            write!(f, " of {total}")?;
        }
        let detail = self.detail.to_string();
        if detail.is_empty() { Ok(()) } else { write!(f, ", {detail}") }
    }
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Progress({self})")
    }
}

/// Runs `work` and calls `watcher` while it runs.
///
/// `watcher` is called once for each step of a long task, and some ten times a second within long passes over rows. Any working
/// thread may call it, but never two at once: steps that are done while it runs are reported when it returns. With
/// [`ControlFlow::Break`] it stops the work: a long call returns [`Error::Cancelled`] within a fraction of a second, and so does
/// each later long call within `work`.
///
/// Only calls of this crate within `work`, on the thread that calls `watch`, are watched. To use a pool of rayon, call
/// `pool.install(|| watch(…))`. A watched call within a watched call is watched by both watchers.
#[doc(alias = "cancel", alias = "callback", alias = "progress bar")]
pub fn watch<R>(
    watcher: impl FnMut(&Progress<'_>) -> ControlFlow<()> + Send + 'static,
    work: impl FnOnce() -> R,
) -> R {
    let outer = CURRENT.with_borrow(Clone::clone);
    let watch = Watch::new(Box::new(watcher), outer);
    let _watched = Watched::by(&Some(Arc::new(watch)));
    work()
}

/// Tells the watcher, if there is one, that so many steps of a task are done.
///
/// # Errors
/// [`Error::Cancelled`] if the watcher stops the work.
pub(crate) fn step(task: &'static str, done: usize, total: impl Into<Option<usize>>) -> Result<()> {
    step_with(task, done, total, &"")
}

/// Tells the watcher, if there is one, that so many steps of a task are done, with the result of the last one in words.
///
/// # Errors
/// [`Error::Cancelled`] if the watcher stops the work.
pub(crate) fn step_with(
    task: &'static str,
    done: usize,
    total: impl Into<Option<usize>>,
    detail: &dyn fmt::Display,
) -> Result<()> {
    let Some(watch) = CURRENT.with_borrow(Clone::clone) else { return Ok(()) };
    watch.ask(Some(Progress { task, done, total: total.into(), detail }))
}

/// Asks the watcher, if there is one, whether to go on. It costs a nanosecond without a watcher, and is to be called every few
/// milliseconds of work.
///
/// # Errors
/// [`Error::Cancelled`] if the watcher stops the work, or has stopped it before.
pub(crate) fn check() -> Result<()> {
    let Some(watch) = CURRENT.with_borrow(Clone::clone) else { return Ok(()) };
    watch.ask(None)
}

/// Whether somebody watches the work on this thread, so that it may be stopped.
pub(crate) fn is_watched() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Whether the watcher, if there is one, has stopped the work: for inner loops, after which callers [`check`] once more.
pub(crate) fn is_stopped() -> bool {
    check().is_err()
}

/// The time between two calls of a watcher within a step, in milliseconds.
const PAUSE: u64 = 100;

/// A watcher of running work, with the steps to report.
pub(crate) struct Watch {
    state: Mutex<State>,
    /// Steps that have not been reported to the watcher.
    steps: Mutex<VecDeque<TaskStep>>,
    start: Instant,
    /// The time of the watcher's last answer, in milliseconds after the start.
    answered: AtomicU64,
    stopped: AtomicBool,
    /// The watch within which this one is.
    outer: Option<Arc<Watch>>,
}

/// A function of the user's that watches work.
type Watcher = Box<dyn FnMut(&Progress<'_>) -> ControlFlow<()> + Send>;

/// A watcher, with the last step that it was told.
struct State {
    watcher: Watcher,
    last: TaskStep,
}

/// A step of a task, with its detail in words.
#[derive(Default)]
struct TaskStep {
    task: &'static str,
    done: usize,
    total: Option<usize>,
    detail: String,
}

impl Watch {
    fn new(watcher: Watcher, outer: Option<Arc<Watch>>) -> Self {
        Watch {
            state: Mutex::new(State { watcher, last: TaskStep::default() }),
            steps: Mutex::default(),
            start: Instant::now(),
            answered: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            outer,
        }
    }

    /// Tells the watcher a step, or without one asks it again if it was not asked for a while.
    fn ask(&self, step: Option<Progress<'_>>) -> Result<()> {
        if let Some(outer) = &self.outer {
            outer.ask(step)?;
        }
        let is_due = step.is_some() || self.is_due();
        if let Some(step) = step {
            let step = TaskStep::of(step);
            self.steps().push_back(step);
        }
        if is_due {
            self.tell();
        }
        if self.is_stopped() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Reports all steps that have not been reported, and asks the watcher again if it was not asked for a while.
    ///
    /// A thread that finds the watcher busy leaves its step to the thread that runs the watcher, which looks for more steps before
    /// it goes. It must not wait: a watcher that works in parallel may take up other work on its own thread.
    fn tell(&self) {
        while let Some(mut state) = self.idle() {
            while let (false, Some(step)) = (self.is_stopped(), self.next_step()) {
                state.last = step;
                self.hear(&mut state);
            }
            if !self.is_stopped() && self.is_due() {
                state.last.detail.clear();
                self.hear(&mut state);
            }
            drop(state);
            if self.is_stopped() || self.steps().is_empty() {
                return;
            }
        }
    }

    /// Lets the watcher say whether to go on.
    fn hear(&self, State { watcher, last: TaskStep { task, done, total, detail } }: &mut State) {
        if watcher(&Progress { task, done: *done, total: *total, detail }).is_break() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.answered.store(self.now(), Ordering::Relaxed);
    }

    /// The watcher, unless a thread runs it.
    fn idle(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn steps(&self) -> MutexGuard<'_, VecDeque<TaskStep>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_step(&self) -> Option<TaskStep> {
        self.steps().pop_front()
    }

    /// Whether the watcher was not asked for a while.
    fn is_due(&self) -> bool {
        self.now().saturating_sub(self.answered.load(Ordering::Relaxed)) >= PAUSE
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The milliseconds since the start.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl TaskStep {
    fn of(Progress { task, done, total, detail }: Progress<'_>) -> Self {
        TaskStep { task, done, total, detail: detail.to_string() }
    }
}

thread_local! {
    /// The watch of the work on this thread.
    static CURRENT: RefCell<Option<Arc<Watch>>> = const { RefCell::new(None) };
}

/// Work on this thread that is watched until this is dropped.
pub(crate) struct Watched(Option<Arc<Watch>>);

impl Watched {
    /// Lets `watch` watch the work that follows on this thread.
    pub fn by(watch: &Option<Arc<Watch>>) -> Self {
        Watched(CURRENT.replace(watch.clone()))
    }

    /// Lets nothing watch the work that follows on this thread, and returns the watch as it was. It is for a thread that waits for
    /// others, since it may take up unrelated work meanwhile.
    #[cfg(feature = "rayon")]
    pub fn by_nobody() -> (Self, Option<Arc<Watch>>) {
        let watch = CURRENT.take();
        (Watched(watch.clone()), watch)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        CURRENT.replace(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::threads;

    /// Ten steps, each of a hundred items on all threads of the pool.
    fn work() -> Result<Vec<usize>> {
        (0..10)
            .map(|i| step("steps", i, 10).map(|()| threads::map(0..100, |k| (check().is_ok(), k)).len()))
            .collect()
    }

    #[test]
    fn a_watcher_sees_each_step() {
        for threads in [1, 2, 7] {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let sink = seen.clone();
            let watcher = move |progress: &Progress<'_>| {
                sink.lock().map(|mut seen| seen.push(progress.to_string())).ok();
                ControlFlow::Continue(())
            };
            let found = threads::with(threads, || watch(watcher, work));
            assert_eq!(found, Ok(Ok(vec![100; 10])));
            let steps: Vec<String> = (0..10).map(|i| format!("steps: {i} of 10")).collect();
            assert_eq!(seen.lock().map(|seen| seen.clone()).ok(), Some(steps));
        }
    }

    /// All threads tell steps and ask at the same time.
    #[test]
    fn no_step_is_lost() {
        for threads in [1, 2, 7] {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let sink = seen.clone();
            let watcher = move |progress: &Progress<'_>| {
                sink.lock().map(|mut seen| seen.push(progress.done)).ok();
                ControlFlow::Continue(())
            };
            let steps =
                |k: usize| (0..100).all(|i| step("steps", 100 * k + i, None).is_ok() && check().is_ok());
            let found = threads::with(threads, || watch(watcher, || threads::map(0..20, steps)));
            assert_eq!(found, Ok(vec![true; 20]));
            let mut seen = seen.lock().map(|seen| seen.clone()).unwrap_or_default();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, (0..2000).collect::<Vec<_>>(), "{threads} threads");
        }
    }

    /// The watcher is at work for a thread that merely asked when another one has done a step.
    #[test]
    fn a_step_is_told_although_another_thread_asks() {
        let ((ask, asked), (go, gone)) = (mpsc::channel(), mpsc::channel());
        let mut seen = Vec::new();
        let watcher = move |progress: &Progress<'_>| {
            seen.push(progress.done);
            if seen.len() == 1 {
                ask.send(Vec::new()).ok();
                gone.recv().ok();
            } else {
                ask.send(seen.clone()).ok();
            }
            ControlFlow::Continue(())
        };
        watch(watcher, || {
            let own = CURRENT.with_borrow(Clone::clone);
            std::thread::scope(|scope| {
                let asking = scope.spawn(|| {
                    let _watched = Watched::by(&own);
                    std::thread::sleep(Duration::from_millis(PAUSE));
                    check()
                });
                assert_eq!(asked.recv(), Ok(Vec::new()));
                assert_eq!(step("steps", 7, 10), Ok(()));
                go.send(()).ok();
                assert_eq!(asking.join().ok(), Some(Ok(())));
            });
        });
        assert_eq!(asked.try_recv(), Ok(vec![0, 7]));
    }

    #[test]
    fn what_is_stopped_stays_stopped_to_its_end_alone() {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = calls.clone();
        let watcher = move |progress: &Progress<'_>| {
            count.fetch_add(1, Ordering::Relaxed);
            if progress.done == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let found = watch(watcher, || {
            let first = work();
            // Items of other threads see it too.
            let on_threads = threads::with(3, || check().is_ok());
            let items = threads::map(0..50, |_| check().is_ok());
            (first, on_threads, items, check(), work())
        });
        let cancelled = Err(Error::Cancelled);
        // A pool that is installed within is not watched, which the documentation says. Without rayon there is no pool, and all is on the
        // watched thread.
        assert_eq!((found.0, found.1), (cancelled.clone(), Ok(cfg!(feature = "rayon"))));
        assert_eq!((found.2, found.3, found.4), (vec![false; 50], Err(Error::Cancelled), cancelled));
        assert_eq!(calls.load(Ordering::Relaxed), 4, "a watcher is not asked again");
        assert!(work().is_ok());
    }

    #[test]
    fn a_watch_within_a_watch_is_stopped_by_both() {
        let go_on = |_: &Progress<'_>| ControlFlow::Continue(());
        let stop = |_: &Progress<'_>| ControlFlow::Break(());
        assert_eq!(watch(stop, || watch(go_on, work)), Err(Error::Cancelled));
        assert_eq!(watch(go_on, || watch(stop, work)), Err(Error::Cancelled));
        assert!(watch(go_on, || watch(stop, || true) && work().is_ok()));
    }

    #[test]
    fn a_panic_ends_the_watch() {
        let stop = |_: &Progress<'_>| ControlFlow::Break(());
        let caught = std::panic::catch_unwind(|| watch(stop, || panic!("as planned")));
        assert!(caught.is_err() && work().is_ok());
    }
}
