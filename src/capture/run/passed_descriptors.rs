//! Descriptors that one process passes to another, with a byte: unix(7), SCM_RIGHTS.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most descriptors that are passed at once.
const MOST: usize = 6;

/// Passes descriptors, at most [`MOST`].
pub fn send(to: &UnixStream, byte: u8, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(fds));
    Ok(sendmsg(to, &[io::IoSlice::new(&[byte])], &mut rights, SendFlags::empty()).map(drop)?)
}

/// Receives the byte and the descriptors, close-on-exec; `None` at the end.
pub fn receive(from: &UnixStream) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let got = recvmsg(from, &mut [io::IoSliceMut::new(&mut byte)], &mut rights, RecvFlags::CMSG_CLOEXEC)?;
    let fds = rights.drain().flat_map(received).collect();
    Ok((got.bytes > 0).then_some((byte[0], fds)))
}

fn received(message: RecvAncillaryMessage<'_>) -> Vec<OwnedFd> {
    match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
        _ => Vec::new(),
    }
}
