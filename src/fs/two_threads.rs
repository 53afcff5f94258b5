//! Work in two halves: at once, if a second thread can be had (RLIMIT_NPROC), else one after the other.

use std::thread::{Builder, scope};

/// Does both, `other` in a second thread if that `pays`. A panic of it goes on here.
pub fn both<A, B: Send>(pays: bool, own: impl FnOnce() -> A, other: impl Fn() -> B + Sync) -> (A, B) {
    if !pays {
        return (own(), other());
    }
    scope(|scope| {
        let thread = Builder::new().spawn_scoped(scope, &other);
        let first = own();
        let second = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => other(),
        };
        (first, second)
    })
}
