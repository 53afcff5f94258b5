//! The small init of a run: pid 1 of its PID namespace (or, without one, a subreaper). It builds the namespace, starts the command, reaps
//! orphans, tells recant how the command ended, and ends when nothing is left.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::CapabilitySet;

use super::answered_calls;
use super::answered_calls::Answers;
use super::capabilities::{drop_lead_out, drop_rights};
use super::command::Network;
use super::descriptors;
use super::descriptors::Inherited;
use super::door::Door;
use super::ground::Ground;
use super::join::Gate;
use super::landlock_scope::close_to_others;
use super::messages::{Ask, Failed, Refusal, Word, say};
use super::orphans;
use super::orphans::TakingIn;
use super::raw_calls;
use super::raw_calls::{Signals, Waited};
use super::reopened_streams::{Pipes, Reopened};
use super::seccomp_filter;
use super::terminal;
use super::way_out;
use crate::capture::space::{build_mounts, hidden};
use crate::error::{At, IoError};
use crate::fs;
use crate::fs::Time;

/// All that the init needs to start the command.
#[derive(Clone, Copy)]
pub struct Orders<'a> {
    pub ground: Ground<'a>,
    pub argv: &'a [CString],
    pub env: &'a [CString],
    pub inherited: &'a Inherited,
    /// The signals that recant's caller had blocked.
    pub mask: &'a Signals,
    /// True if SIGCHLD was ignored.
    pub child_ignored: bool,
    /// True if this process is the first of a PID namespace.
    pub own_pids: bool,
    /// True if a confined command gets a /dev/shm of its own.
    pub own_shm: bool,
    /// True if recant's group has the terminal.
    pub in_front: bool,
    /// The part of the network that it can reach.
    pub network: Network,
    /// True if some calls of the command are answered by a thread of the init: [`answered_calls`].
    pub answers_calls: bool,
    /// The socket at which other commands join this one.
    pub entrance: Option<&'a UnixListener>,
    /// The socket at which the command asks what is held.
    pub door: Option<&'a Door>,
    /// Takes the socket of the proxy to recant.
    pub way_out: Option<&'a UnixStream>,
    /// The output of a service.
    pub output: Option<&'a File>,
    /// The command starts only when the clock of files is past this time.
    pub ready_after: Time,
}

/// The signals that recant passes on. A terminal's INT and QUIT reach the command by themselves.
pub const FORWARDED: &[i32] = &[libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Lives as the init and never returns: after a panic, recant's code must not run on in this copy either.
pub fn run_as_init(orders: &Orders<'_>, pipes: Pipes, recant: &UnixStream) -> ! {
    let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| build_and_run(orders, pipes, recant)));
    if let Ok(Err(word)) = lived {
        say(recant, &word);
    }
    raw_calls::exit_now(0)
}

fn build_and_run(orders: &Orders<'_>, pipes: Pipes, recant: &UnixStream) -> Result<(), Word> {
    // Nothing may stop or end this process except SIGKILL and recant's end: no INT, QUIT or TSTP from the terminal.
    let _before = Signals::all().block();
    let signals = Signals::of(&[FORWARDED, &[libc::SIGCHLD, libc::SIGCONT]].concat());
    let signals = signals.descriptor().at("listen to signals", "signalfd").map_err(failed)?;
    crate::fs::set_aside();
    // The caller waits until nobody has its standard error open any more.
    orders.output.iter().for_each(|output| raw_calls::put_in_place(output.as_fd(), 2));
    let name = if orders.own_pids { machines_init() } else { c"recant-init".into() };
    settle_in(orders, recant)?;
    raw_calls::new_session_keyring().at("make a new one", "the session keyring").map_err(failed)?;
    close_off()?;
    let _named = rustix::thread::set_name(&name);
    die_with_recant(orders, recant)?;
    if let Ground::Confined(confinement) = orders.ground {
        confinement.enforce(orders.own_shm).map_err(failed)?;
    }
    wait_for_tick(orders.ready_after);
    let early = not_asked_to_end(signals.as_fd())?;
    let streams = pipes.settle(orders.inherited, recant);
    let (command, answers) = start(orders, recant)?;
    let mut gate = Gate::new(orders.entrance, answers.clone(), orders.network);
    let mut tended = Tended { recant, streams, command: Some(command), stops: 0, stopped: false, has_children: true };
    // The command also missed what a terminal sent in the moment before it existed.
    let late = std::iter::from_fn(|| raw_calls::next_signal(signals.as_fd()));
    for signal in early.into_iter().chain(late).filter(|signal| signal.forwarded.is_some() || signal.number != libc::SIGCONT) {
        tended.pass_on(signal.number, signal.forwarded.unwrap_or(0));
    }
    let is_alone = tend(&mut tended, &mut gate, (signals.as_fd(), recant), orders.own_pids);
    if let Ground::Captured(laid) = orders.ground {
        hidden::asked_for(&laid.plan)
            .for_each(|path| say(recant, &Word::Refused(Refusal::Hidden { path: path.as_bytes().to_vec() })));
    }
    // H16
    answers.iter().for_each(|answers| answers.end());
    if is_alone {
        say(recant, &Word::Alone);
    }
    Ok(())
}

/// The name of the machine's pid 1: programs tell by it what manages services. Read while /proc is still the machine's.
fn machines_init() -> CString {
    let name = std::fs::read("/proc/1/comm").unwrap_or_default();
    let name = CString::new(name.trim_ascii_end()).unwrap_or_default();
    if name.is_empty() { c"init".into() } else { name }
}

/// Makes this process's surroundings those of the command.
fn settle_in(orders: &Orders<'_>, recant: &UnixStream) -> Result<(), Word> {
    match orders.ground {
        Ground::Joined(joined) => joined.enter_directory().map_err(failed),
        Ground::Confined(confinement) => {
            confinement.leave_network().map_err(failed)?;
            if orders.own_shm {
                confinement.part_shm(recant).map_err(|error| Word::NoShm(error.into()))?;
            }
            Ok(())
        }
        Ground::Captured(laid) => {
            if orders.network.is_own() {
                raw_calls::loopback_up().at("switch the loopback on", "lo").map_err(failed)?;
            }
            for (path, why) in build_mounts::build(laid, orders.door, orders.own_pids, recant)? {
                say(recant, &Word::Uncovered(path.as_bytes().to_vec(), why));
            }
            // Once no other attempt can follow, which would have another socket.
            orders.way_out.map_or(Ok(()), way_out::open).map_err(failed)
        }
    }
}

/// Tends the command until nothing is left of it, nor of those that joined it; false if the rest is to be ended.
fn tend(tended: &mut Tended<'_>, gate: &mut Gate<'_>, (signals, recant): (BorrowedFd<'_>, &UnixStream), own_pids: bool) -> bool {
    let mut is_told = false;
    while tended.reap() || !gate.is_empty() {
        if !tended.has_children && !std::mem::replace(&mut is_told, true) {
            say(recant, &Word::OnlyJoined);
        }
        let waited_for = [signals, recant.as_fd()].into_iter().chain(gate.descriptors());
        let mut ready: Vec<PollFd<'_>> = waited_for.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let _interrupted = poll(&mut ready, None);
        if !ready[1].revents().is_empty() {
            match Ask::receive(recant) {
                Some(Ask::WhetherItStands) => tended.say_whether_it_stands(),
                Some(Ask::Terminate) => orphans::terminate_all(),
                asked if ends_rest(asked, gate, own_pids) => return false,
                _ => {}
            }
        }
        gate.tend();
        while let Some(signal) = raw_calls::next_signal(signals) {
            if let Some(number) = signal.forwarded {
                tended.pass_on(signal.number, number);
            }
        }
    }
    true
}

/// Ends what the command left, as recant asked; `None`: all of the run, also what joined it, as recant is gone or wants that (H2). True if
/// this process has to end for it: with pid 1 all in its PID namespace end.
fn ends_rest(asked: Option<Ask>, gate: &Gate<'_>, own_pids: bool) -> bool {
    if own_pids && (asked.is_none() || gate.is_empty()) {
        // Not left to the end of this process: calls that wait for an answer would fail before it (H15).
        raw_calls::kill(-1, libc::SIGKILL);
        return true;
    }
    orphans::end_all(Vec::new());
    asked.is_none()
}

/// The signals that came before the command exists. An error if one asks for an end: the terminal's reach this process too, and while
/// they are pending they can't be told from recant's (signal(7): one of a kind).
fn not_asked_to_end(signals: BorrowedFd<'_>) -> Result<Vec<raw_calls::Signal>, Word> {
    let early: Vec<_> = std::iter::from_fn(|| raw_calls::next_signal(signals)).collect();
    let Some(asked) = early.iter().find_map(|signal| ends(signal.number)) else { return Ok(early) };
    let (path, act, text) = ("the command".into(), "start".into(), format!("stopped by {asked}"));
    Err(Word::Failed(Failed { path, act, errno: 0, text }))
}

/// The name of a signal that asks for an end; `None` for any other.
fn ends(signal: i32) -> Option<&'static str> {
    match signal {
        libc::SIGINT => Some("SIGINT"),
        libc::SIGTERM => Some("SIGTERM"),
        libc::SIGHUP => Some("SIGHUP"),
        libc::SIGQUIT => Some("SIGQUIT"),
        _ => None,
    }
}

/// The command, and what recant was told of it.
///
/// ```text
///        stops: told, and numbered
/// runs --------------------------------> stopped
///      <--------------------------------
///        continued, by anybody; by recant only for this very stop
/// ```
struct Tended<'a> {
    recant: &'a UnixStream,
    /// Its standard streams that were opened anew as files.
    streams: Reopened,
    /// `None` once it has ended.
    command: Option<i32>,
    stops: u16,
    stopped: bool,
    has_children: bool,
}

impl Tended<'_> {
    /// Records what became of the children. Returns false if there are none.
    fn reap(&mut self) -> bool {
        loop {
            match raw_calls::wait_any() {
                Waited::Exited(pid, status) if Some(pid) == self.command => self.over(&Word::Exited(status)),
                Waited::Killed(pid, signal) if Some(pid) == self.command => self.over(&Word::Killed(signal)),
                Waited::Stopped(pid, _) if Some(pid) == self.command => {
                    (self.stops, self.stopped) = (self.stops.wrapping_add(1), true);
                    say(self.recant, &Word::Stopped);
                }
                Waited::Continued(pid) if Some(pid) == self.command => self.stopped = false,
                Waited::Exited(..) | Waited::Killed(..) | Waited::Stopped(..) | Waited::Continued(_) => {}
                Waited::Nothing => return true,
                Waited::NoChild => {
                    self.has_children = false;
                    return false;
                }
            }
        }
    }

    /// Answers recant by what the command is now: a stop that is over counts no more.
    fn say_whether_it_stands(&mut self) {
        self.reap();
        let stands = self.stopped && self.command.is_some();
        say(self.recant, &Word::StandsAt(stands.then_some(self.stops)));
    }

    /// Records that the command has ended, and tells recant how.
    fn over(&mut self, how: &Word) {
        self.command = None;
        self.streams.tell(self.recant);
        say(self.recant, how);
    }

    /// Passes a signal on. A SIGCONT counts only for the stop of that number: a command that left it since, with its group, may have
    /// stopped again on purpose.
    fn pass_on(&mut self, signal: i32, number: u16) {
        if signal == libc::SIGCONT {
            self.reap();
            if !self.stopped || self.stops != number {
                return;
            }
        }
        if let Some(command) = self.command {
            raw_calls::kill(command, signal);
        }
    }
}

/// Closes what the command could see of this process in /proc/1/fd: recant's directories, on the real mounts. Nobody can look into what
/// stays open (locks): PR_SET_DUMPABLE(2const), proc_pid_fd(5). exec(2) makes the command dumpable again.
fn close_off() -> Result<(), Word> {
    descriptors::close_directories().map_err(failed)?;
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .at("close off", "the init")
        .map_err(failed)
}

/// H2. Set last: changes of rights clear it (PR_SET_PDEATHSIG(2const)). recant may have died before that; its closed end of the socket
/// shows it.
fn die_with_recant(orders: &Orders<'_>, recant: &UnixStream) -> Result<(), Word> {
    if orders.own_pids {
        let death = Some(rustix::process::Signal::KILL);
        rustix::process::set_parent_process_death_signal(death).at("die with recant", "prctl").map_err(failed)?;
    } else {
        // Forgotten, so that it lasts as long as this process.
        std::mem::forget(TakingIn::begin().at("take in orphans", "prctl").map_err(failed)?);
    }
    let mut ready = [PollFd::new(recant, PollFlags::IN)];
    let _none = poll(&mut ready, Some(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 }));
    if !ready[0].revents().is_empty() {
        raw_calls::exit_now(0);
    }
    Ok(())
}

/// Waits until files are stamped with times past this one: at most for a tick. Otherwise a change from outside could bear a time before the
/// run began.
fn wait_for_tick(past: Time) {
    // Bounded, in case the clock is set back.
    for _ in 0..200 {
        if fs::stamps_are_past(past) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
}

/// Forks the command: the same session and terminal as recant, and the same process group, but for a [`terminal::needs_a_group`] shell.
/// Starts the thread that answers its calls, if that is to be one of this process.
fn start(orders: &Orders<'_>, recant: &UnixStream) -> Result<(i32, Option<Arc<Answers>>), Word> {
    say(recant, &Word::Ready);
    let pair = orders.answers_calls.then(UnixStream::pair).transpose();
    let (ours, theirs) = pair.at("make a socket for", "the listener for calls").map_err(failed)?.unzip();
    // With one thread: the other one comes after that.
    let Some(command) = raw_calls::fork().at("fork", "the command").map_err(failed)? else {
        drop(ours);
        match cut_down(orders, theirs) {
            Ok(()) => become_command(orders, recant),
            Err(error) => say(recant, &failed(error)),
        }
        raw_calls::exit_now(127)
    };
    drop_rights_of(orders).map_err(failed)?;
    let Some(ours) = ours else { return Ok((command, None)) };
    let answers = Arc::new(Answers::new(orders.ready_after, recant).map_err(failed)?);
    answered_calls::serve(ours, answers.clone()).map_err(failed)?;
    Ok((command, Some(answers)))
}

/// Takes from this process what the command must not have. `calls`: where some of its calls are answered.
fn cut_down(orders: &Orders<'_>, calls: Option<UnixStream>) -> Result<(), IoError> {
    if !orders.ground.is_held() {
        // Done with the rest: `Confinement::enforce`.
        return Ok(());
    }
    // All with rights, as without them a rule needs no_new_privs, which would break sudo.
    close_to_others().at("close abstract sockets", "Landlock")?;
    seccomp_filter::deny_cgroup_namespaces().at("deny cgroup namespaces", "seccomp")?;
    if !orders.ground.is_user_s() {
        seccomp_filter::deny_pidfd_getfd().at("deny pidfd_getfd", "seccomp")?;
        seccomp_filter::deny_open_by_handle().at("deny open_by_handle_at", "seccomp")?;
    }
    seccomp_filter::deny_ioctls(&seccomp_filter::TYPING).at("deny ioctls", "seccomp")?;
    let calls = match orders.ground {
        Ground::Joined(joined) => joined.calls(),
        _ => calls,
    };
    calls.map_or(Ok(()), |calls| answered_calls::listen(calls, orders.ground.is_user_s()))?;
    drop_rights_of(orders)
}

/// Drops the rights that the command must not have.
fn drop_rights_of(orders: &Orders<'_>) -> Result<(), IoError> {
    let dropped = match orders.ground {
        Ground::Confined(_) => Ok(()),
        held if held.is_user_s() => drop_rights(CapabilitySet::all()),
        _ => drop_lead_out(),
    };
    dropped.at("drop the capabilities", "capset")
}

fn failed(error: IoError) -> Word {
    Word::Failed(error.into())
}

/// Gives a service its streams: nothing to read, the file to write to.
fn become_service(output: &File) {
    // Opened in the run: the one outside would let a command of root change what it is.
    match File::open("/dev/null") {
        Ok(null) => raw_calls::put_in_place(null.as_fd(), 0),
        Err(_) => raw_calls::close(0),
    }
    [1, 2].into_iter().for_each(|fd| raw_calls::put_in_place(output.as_fd(), fd));
}

/// Becomes the command: restores signals and descriptors as recant's caller had them, then executes the program.
fn become_command(orders: &Orders<'_>, recant: &UnixStream) {
    orders.inherited.settle();
    orders.output.iter().for_each(|output| become_service(output));
    // The signals that recant ignores are not ignored in the command; those that its caller ignores are.
    let [pipe, size] = raw_calls::ignored_by_us();
    for (signal, ignored) in [(libc::SIGIO, false), (libc::SIGCHLD, orders.child_ignored), pipe, size] {
        if ignored { raw_calls::ignore(signal) } else { _ = raw_calls::default_action(signal) }
    }
    crate::fs::give_back();
    if orders.ground.is_held() && orders.in_front && terminal::needs_a_group(orders.argv) {
        // All signals are blocked still, SIGTTOU too.
        terminal::lead_a_group();
    }
    orders.mask.set();
    crate::fs::put_back();
    crate::fs::open_as_called();
    let error = raw_calls::exec(orders.argv, orders.env);
    say(recant, &Word::NoExec(error.raw_os_error().unwrap_or(libc::EIO)));
}
