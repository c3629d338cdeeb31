//! A forked process has a copy of the memory of its parent, but only the thread that forked: it gives the results of its parent, on that
//! thread and in pools of its own.
#![allow(unsafe_code, reason = "the standard library does not fork")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::{Duration, Instant};

use super::jobs::jobs;
use super::{role, run_alone, this_program};
use crate::threads::on_threads;

const NAME: &str = "standing::forks::a_forked_process_gives_the_results_of_its_parent";

/// How long the jobs may take in a forked process before they hang.
const MOST: Duration = Duration::from_secs(60);

/// What became of a forked process.
#[derive(Debug, PartialEq)]
enum Forked {
    /// It did what it should.
    Right,
    Wrong,
    Hung,
}

/// Lets a copy of this process do some work, which says whether it went well.
fn forked(within: Duration, work: impl FnOnce() -> bool) -> Forked {
    // SAFETY: no other thread of this process is at work, so that the copy holds no lock of another thread.
    let copy = unsafe { libc::fork() };
    assert!(copy >= 0, "no process can be had");
    if copy == 0 {
        let right = catch_unwind(AssertUnwindSafe(work)).unwrap_or(false);
        // SAFETY: ends the process at once: the harness, of which it has a copy, does not go on.
        unsafe { libc::_exit(if right { 0 } else { 1 }) };
    }
    let start = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: `copy` is a child of this process that nobody else waits for.
        let ended = unsafe { libc::waitpid(copy, &raw mut status, libc::WNOHANG) };
        assert!(ended >= 0, "the process is lost");
        if ended == copy {
            let right = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
            return if right { Forked::Right } else { Forked::Wrong };
        }
        if start.elapsed() > within {
            // SAFETY: as above; its number cannot be another process's before it is waited for.
            unsafe {
                libc::kill(copy, libc::SIGKILL);
                libc::waitpid(copy, &raw mut status, 0);
            }
            return Forked::Hung;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn results() -> Vec<u64> {
    jobs().iter().map(|job| (job.run)()).collect()
}

/// Runs a test of this module alone, on three threads of rayon.
fn alone(test: &str) {
    let mut command = Command::new(this_program());
    command.env("RAYON_NUM_THREADS", "3");
    let ended = run_alone(command, test, "fork", 5 * MOST);
    assert!(ended.succeeded(), "{}", ended.text);
}

#[test]
fn a_forked_process_gives_the_results_of_its_parent() {
    if role().is_none() {
        return alone(NAME);
    }
    // The threads of the global pool are at work before.
    let expected = results();
    let same = || results() == expected;
    let some_same = || expected.iter().zip(jobs()).step_by(4).all(|(expected, job)| (job.run)() == *expected);
    assert_eq!(forked(MOST, same), Forked::Right, "on the thread that forked");
    assert_eq!(forked(MOST, || on_threads(3, same)), Forked::Right, "in a pool of its own");
    assert_eq!(
        forked(MOST, || forked(MOST, some_same) == Forked::Right),
        Forked::Right,
        "in a process of its own"
    );
    // A thread of a pool that forks, too, has lost the others.
    let within = on_threads(3, || {
        assert!(some_same());
        forked(MOST, same)
    });
    assert_eq!(within, Forked::Right, "on a thread of a pool");
    assert!(some_same(), "in the parent");
}

#[test]
fn processes_that_err_or_hang_are_noticed() {
    if role().is_none() {
        return alone("standing::forks::processes_that_err_or_hang_are_noticed");
    }
    assert_eq!(forked(MOST, || true), Forked::Right);
    assert_eq!(forked(MOST, || false), Forked::Wrong);
    assert_eq!(forked(MOST, || std::env::var("no such variable").unwrap().is_empty()), Forked::Wrong);
    // What rayon does by itself, and what this crate did.
    assert_eq!(rayon::join(|| 1, || 2), (1, 2));
    let spread = || rayon::broadcast(|_| ()).len() == 3;
    assert!(spread());
    assert_eq!(forked(Duration::from_millis(200), spread), Forked::Hung);
}
