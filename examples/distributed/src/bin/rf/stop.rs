//! How SIGINT and SIGTERM end the program: within a second, with no file half written.

use std::io;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use random_features::progress;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::output;
use crate::say::note;

/// How long work that was asked to stop may take to do so, before it is left where it is.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often those who wait look whether somebody asked.
const PAUSE: Duration = Duration::from_millis(20);
/// The stack of a main thread, which the planning of queries may need.
const STACK: usize = 8 << 20;
/// What is said at the end.
const SENTENCE: &str = "interrupted: no file is left half written";

/// The number of the signal that asked this process to end, or 0.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Whether somebody asked this process to end.
pub fn asked() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// An error if somebody asked this process to end.
pub fn check() -> Result<(), String> {
    if asked() { Err(SENTENCE.into()) } else { Ok(()) }
}

/// Returns when somebody asks this process to end, with what is said then.
pub async fn wait() -> String {
    loop {
        if let Err(sentence) = check() {
            return sentence;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Does work on another thread to its end, or until a signal: the exit code is 128 and the number of the signal then, unless the work is
/// done, as if nobody had asked, within the patience after the signal.
///
/// Signals have a thread of their own, since all others may be busy. Work is asked to stop, by [`asked`] and the library's own
/// watch, and if it does not is left alone.
pub fn until_signal(work: impl FnOnce() -> Result<(), String> + Send + 'static) -> Result<ExitCode, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let (done, mut ended) = oneshot::channel();
    let watched = move || {
        progress::watch(|_| if asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }, work)
    };
    let working = thread::Builder::new().stack_size(STACK).spawn(move || done.send(watched()));
    working.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let signal = tokio::select! {
            outcome = &mut ended => return finished(outcome),
            signal = signalled() => signal.map_err(|error| error.to_string())?,
        };
        SIGNAL.store(signal.as_raw_value(), Ordering::Relaxed);
        if let Ok(Ok(Ok(()))) = tokio::time::timeout(PATIENCE, ended).await {
            return Ok(ExitCode::SUCCESS);
        }
        output::abandon();
        note(&format!("\nrf: {SENTENCE}\n"));
        Ok(ExitCode::from(u8::try_from(128 + signal.as_raw_value()).unwrap_or(u8::MAX)))
    })
}

/// What came of work. A panic has said so itself.
fn finished(outcome: Result<Result<(), String>, oneshot::error::RecvError>) -> Result<ExitCode, String> {
    match outcome {
        Ok(outcome) => outcome.map(|()| ExitCode::SUCCESS),
        Err(_) => Err("ended by a fault of its own".into()),
    }
}

/// The first signal that asks this process to end.
async fn signalled() -> io::Result<SignalKind> {
    let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
    let (mut interrupts, mut terminates) = (signal(interrupt)?, signal(terminate)?);
    Ok(tokio::select! {
        _ = interrupts.recv() => interrupt,
        _ = terminates.recv() => terminate,
    })
}
