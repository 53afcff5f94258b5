//! The hook that every change of a file passes. A release build has none; with the feature `crash-points` a test can log, stop, fail or act
//! before any one step, through the environment variable `RECANT_STEPS`:
//!
//! - `log:FILE` appends a line for each step to FILE;
//! - `kill:N` kills recant with SIGKILL right before step N (the first is 1);
//! - `fail:N:ERRNO` lets step N fail with that error number, and does not do it;
//! - `run:N:COMMAND` runs a shell command right before step N and continues;
//! - `record:DIR` writes to DIR/steps.jsonl the state of what each step touches, before and after, and keeps a second name of each file
//!   that loses one in DIR/kept: enough for a model of power cuts (`tests/recovery/replay`);
//! - several, separated by `;`.
//!
//! "Before step n", for every n up to the end, is every kill point there is: after a step is before the next.

#[cfg(feature = "crash-points")]
use std::io;
pub use step::On;
#[cfg(feature = "crash-points")]
pub use step::Step;

/// Sees each step right before it is made; an error is returned to the caller in place of the step.
#[cfg(feature = "crash-points")]
pub trait Watch: Send + Sync {
    fn before(&self, step: &Step<'_>) -> io::Result<()>;
}

#[cfg(feature = "crash-points")]
mod record;
mod step;

#[cfg(feature = "crash-points")]
pub use scripted::Scripted;

#[cfg(feature = "crash-points")]
mod scripted {
    use std::io::Write;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    enum Order {
        Log(std::path::PathBuf),
        Kill(u64),
        Fail(u64, i32),
        Run(u64, String),
        Record(super::record::Recorder),
    }

    /// The orders of `RECANT_STEPS`.
    pub struct Scripted {
        orders: Vec<Order>,
        count: AtomicU64,
    }

    impl Scripted {
        /// Reads the environment; `None` if the variable is not set. An unknown word ends the process: a test must not run unwatched.
        pub fn from_env() -> Option<Self> {
            let text = std::env::var("RECANT_STEPS").ok()?;
            let orders = text.split(';').map(|word| parse(word).unwrap_or_else(|| panic!("RECANT_STEPS: {word}"))).collect();
            Some(Self { orders, count: AtomicU64::new(0) })
        }
    }

    fn parse(word: &str) -> Option<Order> {
        let (verb, rest) = word.split_once(':')?;
        Some(match verb {
            "log" => Order::Log(rest.into()),
            "kill" => Order::Kill(rest.parse().ok()?),
            "fail" => {
                let (n, errno) = rest.split_once(':')?;
                Order::Fail(n.parse().ok()?, errno.parse().ok()?)
            }
            "run" => {
                let (n, command) = rest.split_once(':')?;
                Order::Run(n.parse().ok()?, command.into())
            }
            "record" => Order::Record(super::record::Recorder::new(rest.into())),
            _ => return None,
        })
    }

    impl Watch for Scripted {
        #[expect(clippy::disallowed_methods, reason = "the log of a test, not a file of the user's")]
        fn before(&self, step: &Step<'_>) -> io::Result<()> {
            let n = self.count.fetch_add(1, Ordering::SeqCst) + 1;
            for order in &self.orders {
                match order {
                    Order::Log(file) => {
                        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
                        writeln!(log, "{n} {step}")?;
                    }
                    Order::Record(recorder) => recorder.before(n, step)?,
                    Order::Kill(at) if *at == n => {
                        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
                    }
                    Order::Fail(at, errno) if *at == n => return Err(io::Error::from_raw_os_error(*errno)),
                    Order::Run(at, command) if *at == n => {
                        let status =
                            std::process::Command::new("sh").arg("-c").arg(command).env_remove("RECANT_STEPS").status()?;
                        assert!(status.success(), "RECANT_STEPS: {command}: {status}");
                    }
                    _ => {}
                }
            }
            Ok(())
        }
    }
}
