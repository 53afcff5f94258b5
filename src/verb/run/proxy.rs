//! The proxy of a run whose network is listed: a process of its own, outside, which ends with recant. The face of the command line starts it.

use std::net::{Shutdown, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::error::{At, IoError};
use crate::fs::program;
use crate::proxy::Refused;
use crate::settings::Entry;
use crate::verb::error;

/// The time that it has to tell what it refused.
const PATIENCE: Duration = Duration::from_secs(5);

/// The proxy of a run, once there is one.
#[derive(Debug)]
pub struct Proxy<'a> {
    list: &'a [Entry],
    serving: Option<(Child, UnixStream)>,
}

impl<'a> Proxy<'a> {
    pub fn of(list: &'a [Entry]) -> Self {
        Self { list, serving: None }
    }

    /// Has somebody serve what connects to the socket.
    ///
    /// # Errors
    /// It cannot be started: the command reaches nothing.
    pub fn start(&mut self, listener: TcpListener) -> Result<(), IoError> {
        let (ours, theirs) = UnixStream::pair().at("make", error::CONNECTION)?;
        ours.set_read_timeout(Some(PATIENCE)).at("make", error::CONNECTION)?;
        let mut command = crate::fs::command(program::own().at("find", error::OWN_PROGRAM)?);
        command.arg("proxy").args(self.list.iter().map(Entry::to_string));
        // What a terminal sends to recant's group is not for it.
        command.process_group(0);
        command.stdin(OwnedFd::from(listener)).stdout(OwnedFd::from(theirs)).stderr(Stdio::null());
        self.serving = Some((command.spawn().at("start", error::PROXY)?, ours));
        Ok(())
    }

    /// Ends it, once the command has ended, and gives what it refused; nothing if it was killed.
    pub fn end(mut self) -> Vec<Refused> {
        let Some((_, serving)) = &self.serving else { return Vec::new() };
        let _gone = serving.shutdown(Shutdown::Write);
        let refused = serde_json::from_reader(serving).unwrap_or_default();
        self.serving.iter_mut().for_each(end_of);
        refused
    }
}

fn end_of((child, _): &mut (Child, UnixStream)) {
    // It has ended by itself, but for one that is stopped.
    let _gone = child.kill();
    let _gone = child.wait();
}

impl Drop for Proxy<'_> {
    fn drop(&mut self) {
        self.serving.iter_mut().for_each(end_of);
    }
}
