//! Calls of a run's command that a thread of the run's init answers, before the kernel carries them out: renames of directories, which an
//! ordinary user's overlay refuses ([`Renames`]), and links of git ([`git_links`]).
//!
//! - **H14** A call is answered at once unless it renames a directory; one that does is looked at by a thread of its own. Whatever is not sure
//!   (another root, memory that cannot be read, a path that leads nowhere) goes on: it does what it would do without this.
//! - **H15** The listener is never closed while the command lives: a call that nobody answers would hang, and without a listener all fail.
//!   pid 1 of a PID namespace, whose thread this is, can be killed by nobody in it.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::call_listener::{Answer, Listener, WaitingCall};
use super::rename_call::Rename;
use super::renames::Renames;
use super::seccomp_filter::AskedCall;
use super::{git_links, seccomp_filter};
use crate::error::{At, IoError};

const LISTENER: &str = "the listener for calls";

/// Starts the thread; the command's process then sends its listener over the other end of `from`, by [`listen`].
pub fn serve(from: UnixStream, renames: Arc<Renames>) -> Result<(), IoError> {
    let serve = move || {
        if let Some(listener) = receive(from) {
            listener.wake_in_turn();
            answer_all(&Arc::new(Answering { listener, renames }));
        }
    };
    std::thread::Builder::new().name("calls".into()).spawn(serve).map(drop).at("start a thread for", LISTENER)
}

/// Makes links of this process wait for [`serve`] at the other end of `to`, renames too if asked for, and those of all that it starts. Without a
/// word from there, which comes once the thread is there, or if another listens already, they stay as they are.
pub fn listen(mut to: UnixStream, renames: bool) -> Result<(), IoError> {
    if to.read_exact(&mut [0]).is_err() {
        return Ok(());
    }
    let listener = match seccomp_filter::ask_about(renames) {
        // EBUSY: this runs within a run, whose thread serves this one, too. EINVAL: before Linux 5.19.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EINVAL)) => return Ok(()),
        listener => listener.at("listen to calls", "seccomp")?,
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let listener = [listener.as_fd()];
    rights.push(SendAncillaryMessage::ScmRights(&listener));
    sendmsg(&to, &[io::IoSlice::new(&[0])], &mut rights, SendFlags::empty()).at("send", LISTENER)?;
    // H15: nothing is started before somebody has it.
    to.read_exact(&mut [0]).at("hear that it is taken,", LISTENER)
}

/// The listener of the command's process; `None` if there is none.
fn receive(mut from: UnixStream) -> Option<Listener> {
    from.write_all(&[0]).ok()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    recvmsg(&from, &mut [io::IoSliceMut::new(&mut [0])], &mut rights, RecvFlags::CMSG_CLOEXEC).ok()?;
    let received: Option<OwnedFd> = rights.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    from.write_all(&[0]).ok()?;
    received.map(Listener::from)
}

struct Answering {
    listener: Listener,
    renames: Arc<Renames>,
}

/// Answers calls until nobody is left who could make one.
fn answer_all(answering: &Arc<Answering>) {
    loop {
        match answering.listener.next() {
            // H15: a panic would leave the calls to come without an answer.
            Ok(call) => match catch_unwind(AssertUnwindSafe(|| at_once(&call))) {
                Ok(AtOnce::Answer(answer)) => answering.listener.answer(&call, answer),
                Ok(AtOnce::Prepare(rename)) => prepare(answering, call, rename),
                Err(_) => answering.listener.answer(&call, Answer::GoOn),
            },
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            // The caller was killed meanwhile; or nobody is left.
            Err(_) => {
                let mut ready = [PollFd::new(&answering.listener, PollFlags::IN)];
                let _interrupted = poll(&mut ready, None);
                if ready[0].revents().contains(PollFlags::HUP) {
                    return;
                }
            }
        }
    }
}

enum AtOnce {
    Answer(Answer),
    /// A directory is renamed.
    Prepare(Rename),
}

fn at_once(call: &WaitingCall) -> AtOnce {
    match AskedCall::of(call.arch, call.number) {
        Some(AskedCall::Link) => AtOnce::Answer(git_links::answer(call.thread)),
        Some(asked) => match Rename::of(asked, call).filter(Rename::may_need_help) {
            Some(rename) => AtOnce::Prepare(rename),
            None => AtOnce::Answer(Answer::GoOn),
        },
        None => AtOnce::Answer(Answer::GoOn),
    }
}

/// Has a thread make a rename possible, and answer it.
fn prepare(answering: &Arc<Answering>, call: WaitingCall, rename: Rename) {
    let preparing = answering.clone();
    let work = move || {
        let waits = || preparing.listener.still_waits(&call);
        let done = catch_unwind(AssertUnwindSafe(|| preparing.renames.prepare(&rename, &waits)));
        preparing.listener.answer(&call, done.unwrap_or(Answer::GoOn));
    };
    if std::thread::Builder::new().name("rename".into()).spawn(work).is_err() {
        answering.listener.answer(&call, Answer::GoOn);
    }
}
