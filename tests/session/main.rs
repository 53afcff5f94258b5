//! Sessions in the store: staged, listed, logged, exported and imported, and those that wait for a word.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests set up real files, and say what they skip"
)]

#[path = "../common/mod.rs"]
mod common;

mod confirm;
mod confirm_timers;
mod log;
mod moving;
mod sessions;
mod staging;
mod store_format;

/// Waits until something is so.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 30, "waited in vain: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
