//! Signals of this process, handed on to every link that is open: as a frame to the far side, or to ssh itself.

use std::fs::File;
use std::io::Read;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal};

use super::frame::Up;
use super::silence::Patience;

/// One open link, as signals see it.
pub(super) struct Wire {
    /// Where a signal is sent as a frame; `None` where ssh itself gets it.
    up: Option<Sender<Up>>,
    ssh: Option<Pid>,
    answered: Arc<AtomicBool>,
    patience: Arc<Patience>,
    /// How often it was asked to end.
    asked: u32,
}

impl Wire {
    /// One whose far side is ssh's own: the terminal's.
    pub(super) fn to_ssh(child: &Child) -> Self {
        let ssh = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default());
        Self { up: None, ssh, answered: Arc::default(), patience: Patience::new(None), asked: 0 }
    }

    /// One whose far side hears `up` once it has `answered`; before that ssh is ended.
    pub(super) fn to_far_side(up: Sender<Up>, ssh: Option<Pid>, answered: Arc<AtomicBool>, patience: Arc<Patience>) -> Self {
        Self { up: Some(up), ssh, answered, patience, asked: 0 }
    }

    fn signal(&mut self, number: u8) {
        self.asked += 1;
        match &self.up {
            // Who asks for the third time does not want to wait for the far side any longer.
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

/// Hands signals of this process on to every link that is open.
pub struct Signals {
    wires: Arc<Mutex<Vec<Wire>>>,
    came: Arc<AtomicU8>,
}

impl Signals {
    /// Reads signals, a byte each, from `heard`.
    pub fn from(mut heard: File) -> Self {
        let signals = Self { wires: Arc::default(), came: Arc::default() };
        let (wires, came) = (signals.wires.clone(), signals.came.clone());
        std::thread::spawn(move || {
            let mut number = [0];
            while heard.read_exact(&mut number).is_ok() {
                let _first = came.compare_exchange(0, number[0], Ordering::SeqCst, Ordering::SeqCst);
                wires.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|wire| wire.signal(number[0]));
            }
        });
        signals
    }

    /// The number of the first that came, 0 for none.
    pub fn came(&self) -> Arc<AtomicU8> {
        self.came.clone()
    }

    /// Hands signals on to `wire` from here on.
    pub(super) fn list(&self, wire: Wire) -> Listed {
        let ssh = wire.ssh;
        self.wires.lock().unwrap_or_else(PoisonError::into_inner).push(wire);
        Listed { wires: self.wires.clone(), ssh }
    }
}

/// A link gets signals as long as this lives: its ssh's number may be another process's soon after.
pub(super) struct Listed {
    wires: Arc<Mutex<Vec<Wire>>>,
    ssh: Option<Pid>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.wires.lock().unwrap_or_else(PoisonError::into_inner).retain(|wire| wire.ssh != self.ssh);
    }
}
