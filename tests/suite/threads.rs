//! Work on so many threads.

/// Runs on so many threads, whatever the machine has.
pub fn on_threads<R: Send>(threads: usize, run: impl Fn() -> R + Sync + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
}
