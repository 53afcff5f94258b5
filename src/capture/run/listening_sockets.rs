//! The Unix sockets with a path that somebody listens at, as the kernel tells by sock_diag(7): it knows the file of each, whatever name it was
//! bound by.

use rustix::fd::OwnedFd;
use rustix::io::Result;
use rustix::net::netlink::{INET_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use crate::fs::Stat;

/// linux/netlink.h, linux/sock_diag.h, linux/unix_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const SHOW_NAME_AND_FILE: u32 = 3;
const NAME: u16 = 0;
const FILE: u16 = 1;
/// TCP_LISTEN of net/tcp_states.h.
const LISTEN: u8 = 10;
const HEADER: usize = 16;
const MESSAGE: usize = 16;

/// True if somebody listens at the socket file with this identity, whose name is `name`. False if the kernel does not tell.
pub fn has(file: &Stat, name: &[u8]) -> bool {
    let mut found = false;
    let asked = ask().and_then(|socket| each(&socket, |message| found |= is_at(message, file, name)));
    asked.is_ok() && found
}

/// Asks for all Unix sockets.
fn ask() -> Result<OwnedFd> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(INET_DIAG))?;
    let family = u8::try_from(libc::AF_UNIX).unwrap_or_default();
    let mut request = Vec::new();
    request.extend(u32::try_from(HEADER + 24).unwrap_or_default().to_ne_bytes());
    request.extend([SOCK_DIAG_BY_FAMILY.to_ne_bytes(), REQUEST_DUMP.to_ne_bytes()].concat());
    request.extend([0; 8]);
    request.extend([family, 0, 0, 0]);
    // All states.
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(0_u32.to_ne_bytes());
    request.extend(SHOW_NAME_AND_FILE.to_ne_bytes());
    request.extend([0; 8]);
    sendto(&socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    Ok(socket)
}

/// Calls `look` with each message, without its header, up to the last.
fn each(socket: &OwnedFd, mut look: impl FnMut(&[u8])) -> Result<()> {
    let mut buffer = vec![0; 32 << 10];
    loop {
        let (len, _) = recv(socket, &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..len];
        while let Some((sort, message, after)) = first(rest) {
            if sort != SOCK_DIAG_BY_FAMILY {
                return Ok(());
            }
            look(message);
            rest = after;
        }
        if len == 0 {
            return Ok(());
        }
    }
}

/// The sort and the content of the first message, and what follows it.
fn first(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let len = usize::try_from(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?)).ok()?;
    let sort = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    Some((sort, bytes.get(HEADER..len)?, bytes.get(len.next_multiple_of(4)..).unwrap_or_default()))
}

/// True if a message is of a socket that takes connections, or datagrams, at this file.
fn is_at(message: &[u8], file: &Stat, name: &[u8]) -> bool {
    let Some(([_, sort, state, _], mut rest)) =
        message.split_first_chunk().and_then(|(head, _)| Some((*head, message.get(MESSAGE..)?)))
    else {
        return false;
    };
    let is_open = state == LISTEN || i32::from(sort) == libc::SOCK_DGRAM;
    let (mut is_same, mut is_named, mut is_on_same_device) = (false, false, false);
    while let Some((kind, value, after)) = attribute(rest) {
        match kind {
            NAME => is_named = value.split(|byte| *byte == 0).next().is_some_and(|bound| bound.ends_with(name)),
            FILE => {
                let number = |at: usize| value.get(at..at + 4).and_then(|bytes| Some(u32::from_ne_bytes(bytes.try_into().ok()?)));
                // The kernel tells the lower half of an inode number, and the device in its own form (linux/kdev_t.h).
                is_same = number(0).map(u64::from) == Some(file.ino & u64::from(u32::MAX));
                is_on_same_device = number(4).map(|dev| (dev >> 20, dev & 0xf_ffff)) == Some((file.dev.0, file.dev.1));
            }
            _ => {}
        }
        rest = after;
    }
    // A subvolume of btrfs shows another device than its file system has.
    is_open && is_same && (is_on_same_device || is_named)
}

fn attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let number = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let len = usize::from(number(0)?);
    Some((number(2)?, bytes.get(4..len)?, bytes.get(len.next_multiple_of(4)..).unwrap_or_default()))
}
