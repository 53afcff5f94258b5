//! Bytes between two connections.

use std::io;
use std::net::{Shutdown, TcpStream};

use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use super::thread::start;

/// Bytes that go on at once.
const AT_ONCE: usize = 1 << 20;

/// Copies until the end, which `to` then gets.
pub fn copy(from: &TcpStream, to: &TcpStream) {
    if splice_all(from, to).and_then(|()| to.shutdown(Shutdown::Write)).is_err() {
        cut(from, to);
    }
}

/// Copies by a pipe, in the kernel: splice(2).
fn splice_all(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    let (reading, writing) = pipe_with(PipeFlags::CLOEXEC)?;
    // A user may have so much room in pipes and no more: the usual 64 KiB do.
    let _smaller = fcntl_setpipe_size(&writing, AT_ONCE);
    loop {
        let mut left = retry_on_intr(|| splice(from, None, &writing, None, AT_ONCE, SpliceFlags::MOVE))?;
        if left == 0 {
            return Ok(());
        }
        while left > 0 {
            left -= retry_on_intr(|| splice(&reading, None, to, None, left, SpliceFlags::MOVE))?;
        }
    }
}

/// Ends both connections at once.
pub fn cut(one: &TcpStream, other: &TcpStream) {
    for stream in [one, other] {
        let _ended = stream.shutdown(Shutdown::Both);
    }
}

/// Copies both ways until both have ended.
pub fn both_ways(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    answers(client, server, || copy(client, server))
}

/// Copies the server's answer to the client while this thread does its own work.
pub fn answers(client: &TcpStream, server: &TcpStream, own: impl FnOnce()) -> io::Result<()> {
    let (to, from) = (client.try_clone()?, server.try_clone()?);
    let answers = start(move || copy(&from, &to))?;
    own();
    // It has ended, or panicked: the connection is over either way.
    let _over = answers.join();
    Ok(())
}
