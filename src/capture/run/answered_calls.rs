//! Calls of a run's command that a thread of the run's init answers, before the kernel carries them out: renames of directories, which an
//! ordinary user's overlay refuses ([`Renames`]), and links of git ([`git_links`]). Others are only looked at ([`ForeseenRefusals`]).
//!
//! - **H14** A call is answered at once unless it renames a directory; one that does is looked at by a thread of its own. While names of a
//!   directory move, all wait ([`Renames::still`]). Whatever is not sure (another root, memory that cannot be read, a path that leads nowhere)
//!   goes on: it does what it would do without this.
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
use super::foreseen_refusals::{ForeseenRefusals, SeenCall};
use super::rename_call::Rename;
use super::renames::Renames;
use super::seccomp_filter::AskedCall;
use super::{git_links, seccomp_filter};
use crate::error::{At, IoError};
use crate::fs::Time;

const LISTENER: &str = "the listener for calls";

/// The parts that answer the calls of a run, and look at them.
pub struct Answers {
    renames: Renames,
    refusals: ForeseenRefusals,
}

impl Answers {
    /// `since` is the run's start. `recant` is told what a person should know.
    pub fn new(since: Time, recant: &UnixStream) -> Result<Self, IoError> {
        Ok(Self { renames: Renames::new(since, recant)?, refusals: ForeseenRefusals::new(since, recant)? })
    }

    /// Ends with the command: see [`Renames::end`].
    pub fn end(&self) {
        self.renames.end();
        self.refusals.end();
    }
}

/// Starts the thread; the command's process then sends its listener over the other end of `from`, by [`listen`].
pub fn serve(from: UnixStream, answers: Arc<Answers>) -> Result<(), IoError> {
    let serve = move || {
        if let Some(listener) = receive(from) {
            listener.wake_in_turn();
            answer_all(&Arc::new(Answering { listener, answers }));
        }
    };
    std::thread::Builder::new().name("calls".into()).spawn(serve).map(drop).at("start a thread for", LISTENER)
}

/// Makes calls of this process, and of all that it starts, wait for [`serve`] at the other end of `to`: [`seccomp_filter::ask_about`]. Without a
/// word from there, which comes once the thread is there, or if another listens already, they stay as they are.
pub fn listen(mut to: UnixStream, is_user_s: bool) -> Result<(), IoError> {
    if to.read_exact(&mut [0]).is_err() {
        return Ok(());
    }
    let listener = match seccomp_filter::ask_about(is_user_s) {
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
    answers: Arc<Answers>,
}

/// Answers calls until nobody is left who could make one.
fn answer_all(answering: &Arc<Answering>) {
    loop {
        match answering.listener.next() {
            Ok(call) => one(answering, call),
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

/// Answers one call.
fn one(answering: &Arc<Answering>, call: WaitingCall) {
    let still = answering.answers.renames.still();
    // H15: a panic would leave the calls to come without an answer.
    match catch_unwind(|| at_once(&call)) {
        Ok(AtOnce::Prepare(rename)) => prepare(answering, call, rename),
        Ok(AtOnce::Answer(answer, seen)) => {
            let _looking = answering.answers.refusals.looking();
            answering.listener.answer(&call, answer);
            drop(still);
            if let Some(seen) = seen.filter(|_| answer == Answer::GoOn) {
                look(answering, &seen);
            }
        }
        Err(_) => answering.listener.answer(&call, Answer::GoOn),
    }
}

enum AtOnce {
    Answer(Answer, Option<SeenCall>),
    /// A directory is renamed.
    Prepare(Rename),
}

fn at_once(call: &WaitingCall) -> AtOnce {
    let Some(asked) = AskedCall::of(call.arch, call.number) else { return AtOnce::Answer(Answer::GoOn, None) };
    let answer = match asked {
        AskedCall::Link | AskedCall::Linkat => git_links::answer(call.thread),
        _ => Answer::GoOn,
    };
    match Rename::of(asked, call) {
        Some(rename) if rename.may_need_help() => AtOnce::Prepare(rename),
        Some(rename) => AtOnce::Answer(answer, Some(SeenCall::Rename(rename))),
        None => AtOnce::Answer(answer, SeenCall::of(asked, call)),
    }
}

/// Looks whether a call that goes on is refused.
fn look(answering: &Answering, seen: &SeenCall) {
    // Nothing is told of one at which this fails.
    drop(catch_unwind(AssertUnwindSafe(|| answering.answers.refusals.look(seen))));
}

/// Has a thread make a rename possible, and answer it.
fn prepare(answering: &Arc<Answering>, call: WaitingCall, rename: Rename) {
    let preparing = answering.clone();
    let work = move || {
        let waits = || preparing.listener.still_waits(&call);
        let done = catch_unwind(AssertUnwindSafe(|| preparing.answers.renames.prepare(&rename, &waits)));
        let _looking = preparing.answers.refusals.looking();
        let still = preparing.answers.renames.still();
        preparing.listener.answer(&call, done.unwrap_or(Answer::GoOn));
        drop(still);
        look(&preparing, &SeenCall::Rename(rename));
    };
    if std::thread::Builder::new().name("rename".into()).spawn(work).is_err() {
        answering.listener.answer(&call, Answer::GoOn);
    }
}
