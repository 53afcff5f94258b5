//! Sends frames to the far side in order, and standard input as far as there is credit for it.

use std::io::{self, Read};
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::frame::Up;
use super::streams::Input;

/// Sends frames to the far side in the order in which they are given, by a thread that may wait for ssh to take them.
pub(super) struct Upwards {
    pub(super) tell: Sender<Up>,
}

impl Upwards {
    /// Sends to ssh by a thread of its own. It reports to `credit` how much of standard input it sends.
    pub(super) fn to(stdin: Option<ChildStdin>, credit: Arc<Credit>) -> Self {
        let (tell, told): (Sender<Up>, Receiver<Up>) = channel();
        std::thread::spawn(move || {
            let Some(mut stdin) = stdin else { return };
            // The reading half of a connection that is gone reports it.
            for frame in told {
                if let Up::Input(bytes) = &frame {
                    credit.goes(bytes.len());
                }
                if frame.write(&mut stdin).is_err() {
                    return;
                }
            }
        });
        Self { tell }
    }

    pub(super) fn send(&self, frame: Up) {
        let _gone = self.tell.send(frame);
    }
}

/// Reads standard input as far as there is credit for it. Errors: it cannot be read.
pub(super) fn feed(mut input: Input, tell: &Sender<Up>, credit: &Credit) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if !credit.take(n) || tell.send(Up::Input(buffer[..n].to_vec())).is_err() {
            return Ok(());
        }
    }
    let _gone = tell.send(Up::InputEnds);
    Ok(())
}

/// The bytes that may be sent before the far side has taken some. It can take no more than was sent: else a far side that reads nothing
/// could make all of standard input pile up here.
pub(super) struct Credit {
    left: Mutex<Allowance>,
    more: Condvar,
}

struct Allowance {
    /// Bytes that may be sent; `None` once the link has ended.
    bytes: Option<usize>,
    /// Bytes that were sent and not yet taken.
    gone: usize,
}

impl Credit {
    /// Begins with the most bytes that may be on the way.
    pub(super) fn new(bytes: usize) -> Self {
        Self { left: Mutex::new(Allowance { bytes: Some(bytes), gone: 0 }), more: Condvar::new() }
    }

    fn left(&self) -> MutexGuard<'_, Allowance> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `bytes` may be sent. False if the link has ended.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let too_few = |left: &mut Allowance| left.bytes.is_some_and(|left| left < bytes);
        let mut left = self.more.wait_while(self.left(), too_few).unwrap_or_else(PoisonError::into_inner);
        left.bytes = left.bytes.map(|left| left - bytes);
        left.bytes.is_some()
    }

    /// Counts bytes that are about to be written to ssh.
    fn goes(&self, bytes: usize) {
        self.left().gone += bytes;
    }

    /// Counts bytes that the far side has taken.
    pub(super) fn give(&self, bytes: usize) {
        let mut left = self.left();
        let taken = bytes.min(left.gone);
        left.gone -= taken;
        left.bytes = left.bytes.map(|left| left + taken);
        self.more.notify_all();
    }

    /// Ends all waiting: the link has ended.
    pub(super) fn close(&self) {
        self.left().bytes = None;
        self.more.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use crate::remote::send_frames::*;

    #[test]
    fn no_more_counts_as_taken_than_has_gone() {
        let credit = Credit::new(10);
        assert!(credit.take(10));
        credit.give(1000);
        assert_eq!(credit.left().bytes, Some(0), "nothing had gone");
        credit.goes(6);
        credit.give(4);
        credit.give(1000);
        assert_eq!(credit.left().bytes, Some(6));
    }
}
