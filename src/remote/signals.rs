//! Passes signals of this process on to the open link: as a frame to the far side, or to ssh itself.

use std::fs::File;
use std::io::Read;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal};

use super::frame::Up;
use super::longest_silence::Patience;

/// An open link, for signals.
pub(super) struct Wire {
    /// The channel for signals as frames; `None` if ssh itself gets them.
    up: Option<Sender<Up>>,
    ssh: Option<Pid>,
    answered: Arc<AtomicBool>,
    patience: Arc<Patience>,
    /// The number of signals so far that asked it to end.
    asked: u32,
}

impl Wire {
    /// A link whose far side is ssh's own: that of a terminal.
    pub(super) fn of_terminal(child: &Child) -> Self {
        let ssh = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default());
        Self::to_ssh(ssh, Patience::new(None))
    }

    /// A link whose far side gets no signals: the first gives it up, and ends ssh.
    pub(super) fn to_ssh(ssh: Option<Pid>, patience: Arc<Patience>) -> Self {
        Self { up: None, ssh, answered: Arc::default(), patience, asked: 0 }
    }

    /// A link whose far side gets signals by `up` once it has `answered`; before that a signal ends ssh.
    pub(super) fn to_far_side(up: Sender<Up>, ssh: Option<Pid>, answered: Arc<AtomicBool>, patience: Arc<Patience>) -> Self {
        Self { up: Some(up), ssh, answered, patience, asked: 0 }
    }

    fn signal(&mut self, number: u8) {
        self.asked += 1;
        match &self.up {
            // A third signal means that the user does not want to wait for the far side.
            Some(up) if self.answered.load(Ordering::SeqCst) && self.asked < 3 => {
                let _gone = up.send(Up::Signal(number));
            }
            _ => {
                self.patience.give_up();
                let _ended = self.ssh.map(|ssh| rustix::process::kill_process(ssh, Signal::TERM));
            }
        }
    }
}

/// Passes signals of this process on to the open link. One connection follows another: there is one at a time.
pub struct Signals {
    wire: Arc<Mutex<Option<Wire>>>,
    came: Arc<AtomicU8>,
}

impl Signals {
    /// Reads signals from `heard`, a byte each.
    pub fn from(mut heard: File) -> Self {
        let signals = Self { wire: Arc::default(), came: Arc::default() };
        let (wire, came) = (signals.wire.clone(), signals.came.clone());
        std::thread::spawn(move || {
            let mut number = [0];
            while heard.read_exact(&mut number).is_ok() {
                let _first = came.compare_exchange(0, number[0], Ordering::SeqCst, Ordering::SeqCst);
                wire.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|wire| wire.signal(number[0]));
            }
        });
        signals
    }

    /// The number of the first signal, 0 for none. A caller that lists its wire first, and looks then, misses none.
    pub fn came(&self) -> Arc<AtomicU8> {
        self.came.clone()
    }

    /// Passes signals on to `wire` from here on.
    pub(super) fn list(&self, wire: Wire) -> Listed {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner).replace(wire);
        Listed(self.wire.clone())
    }
}

/// Keeps the link listed for signals while it lives: the process id of its ssh may be another process's soon after.
pub(super) struct Listed(Arc<Mutex<Option<Wire>>>);

impl Drop for Listed {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
