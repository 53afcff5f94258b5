//! The gate of an operation that is done on several machines or on none: it reports ready, and waits for the word to go on.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde::Serialize;

use super::Call;
use crate::engine::Gate;
use crate::fs::interrupt;
use crate::session::header::{Header, Status};
use crate::session::id::Id;

/// `{"schema":2,"gate":"ready","session":…,"changes":n,"status":…}`.
#[derive(Serialize)]
struct Ready<'a> {
    gate: &'static str,
    session: &'a Id,
    changes: usize,
    /// The status of the session before the operation: an undo must not take back what is on the tree already.
    status: &'static str,
}

/// The longest time without a word. `wait` is a word, and asks for as long again.
const SILENCE: Duration = Duration::from_secs(60);

/// Reports ready on standard output, and reads a line of standard input: `go`, `wait`, or anything else to stop.
pub struct AtGate<'c> {
    call: &'c Call,
    id: Id,
    status: Status,
    passed: Cell<bool>,
}

impl<'c> AtGate<'c> {
    /// Makes the gate of an operation on one session.
    pub fn new(call: &'c Call, header: &Header) -> Self {
        Self { call, id: header.id.clone(), status: header.status(), passed: Cell::new(false) }
    }
}

impl Gate for AtGate<'_> {
    fn pass(&self, changes: usize) -> Result<(), String> {
        // The word was for the whole operation, not for one of its roads.
        if self.passed.get() {
            return Ok(());
        }
        self.call.out.document(&Ready { gate: "ready", session: &self.id, changes, status: self.status.word() });
        self.call.out.flush();
        let silence = silence();
        loop {
            match &*word(silence)? {
                b"wait" => {}
                b"go" => {
                    self.passed.set(true);
                    return Ok(());
                }
                _ => return Err("it was ready, and was told to stop".into()),
            }
        }
    }
}

#[cfg(not(feature = "crash-points"))]
fn silence() -> Duration {
    SILENCE
}

/// A test need not wait a minute.
#[cfg(feature = "crash-points")]
fn silence() -> Duration {
    let ms = std::env::var("RECANT_GATE_SILENCE_MS").ok().and_then(|ms| ms.parse().ok());
    ms.map_or(SILENCE, Duration::from_millis)
}

/// Reads the next line byte by byte, so that nothing after it is taken. No word is longer than 16 bytes.
fn word(silence: Duration) -> Result<Vec<u8>, String> {
    let until = Instant::now() + silence;
    let mut line = Vec::new();
    while line.len() < 16 {
        wait_for_input(until, silence)?;
        let mut byte = [0];
        match rustix::io::read(rustix::stdio::stdin(), &mut byte) {
            Ok(0) => return Err("it was ready, but standard input ended before a 'go'".into()),
            Ok(_) if byte == *b"\n" => break,
            Ok(_) => line.push(byte[0]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => {
                let why = std::io::Error::from(error);
                return Err(format!("it was ready, and standard input cannot be read: {}", crate::error::reason(&why)));
            }
        }
    }
    Ok(line)
}

fn wait_for_input(until: Instant, silence: Duration) -> Result<(), String> {
    loop {
        if let Some(signal) = interrupt::came() {
            return Err(format!("stopped by {signal}"));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("it was ready, but no 'go' came for {} s", silence.as_secs_f32()));
        }
        // If it cannot be read, the read says why.
        if interrupt::has_input(rustix::stdio::stdin()).unwrap_or(true) {
            return Ok(());
        }
    }
}
