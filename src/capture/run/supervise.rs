//! Runs a command under a plan: forks the init into its namespaces, passes signals on, waits.
//!
//! The command stays in the caller's process group and session, so the terminal's Ctrl-C and Ctrl-Z reach it as without recant. recant
//! ignores INT and QUIT from the terminal, stops and continues with its group or with the command, and passes on what other processes send
//! to it alone. Once the command has ended and recant has said what it waits for, these signals end that.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::command::{Command, Linger, Network};
use super::descriptors;
use super::descriptors::{Inherited, Output};
use super::door::Door;
use super::early_sync;
use super::early_sync::EarlySync;
use super::ground::Ground;
use super::ids;
use super::ids::Ids;
use super::init;
use super::init::Orders;
use super::messages::{Ask, Failed, Word, Words};
use super::one_thread;
use super::orphans;
use super::orphans::TakingIn;
use super::raw_calls;
use super::raw_calls::{New, Signals};
use super::refusal_notes::RefusalNotes;
use super::reopened_streams::{Feeds, Pipes};
use super::service_end;
use super::service_end::EndingService;
use super::signal_phase::{Phase, SignalAction, SignalsHeard};
use super::size_limit;
use super::size_limit::Meter;
use super::stopping::WaitingStop;
use super::terminal::Terminal;
use super::way_out;
use crate::capture::error::{not_alone, not_as_planned, not_executable, not_found, not_started, nul, set_up};
use crate::capture::place::mount_plan::Laid;
use crate::capture::space::refusals::{Cause, acts};
use crate::error::{self, At, Error, reason};
use crate::fs;
use crate::fs::{AbsPath, Shown, Time, searched};
use crate::session::{Ending, Stopped};
use crate::tree::project_of;

/// A run whose command and all that it left running have ended.
#[derive(Debug)]
pub struct EndedRun {
    pub exit: Ending,
    /// The way in which it was stopped, if it is a service.
    pub stopped: Option<Stopped>,
    /// The time from before the set-up on. The command starts only when the clock that stamps files is past this start. So exactly what
    /// changed below with a later ctime changed during the run.
    pub span: fs::Span,
    /// One sentence for each thing that the command set on a real file that its output goes to, for each directory that it could not
    /// rename, and for what the run refused to it.
    pub notes: Vec<String>,
    /// True if the command had PIDs of its own.
    #[cfg_attr(not(feature = "crash-points"), expect(dead_code, reason = "a test asks for it"))]
    pub own_pids: bool,
    /// The bytes it wrote, where they exceed its limit: it was ended for that, unless it had ended by itself.
    pub too_much: Option<u64>,
    /// The meter, to be asked again once directories that it renamed have their content.
    pub meter: Option<Meter>,
    /// The init, and with it the mounts.
    pub leaving: EndingInit,
    /// Writes content out early, during the run.
    #[expect(dead_code, reason = "waited for when it is dropped")]
    ahead: Option<EarlySync>,
}

/// The init of a run, alone in its namespaces. Taking down what thousands of files left in an overlay's caches takes as long as reading the
/// upper, which goes on meanwhile.
#[derive(Debug)]
pub struct EndingInit(Option<i32>);

impl EndingInit {
    /// Waits until the init and the run's mounts are gone.
    pub fn wait(mut self) -> Result<(), Error> {
        self.0.take().map_or(Ok(()), |init| Ok(raw_calls::wait_for(init).at("wait for", "the init")?))
    }
}

impl Drop for EndingInit {
    fn drop(&mut self) {
        if let Some(init) = self.0.take() {
            // Another error is being returned: a failed wait changes nothing about it.
            let _gone = raw_calls::wait_for(init);
        }
    }
}

/// Something that happens during a run and that a person may want to hear.
#[derive(Debug)]
pub enum Event {
    /// The set-up runs in another process, so there is time for other work.
    SettingUp,
    /// The command ended two seconds ago, and these children of it still run: their names.
    Lingering(Vec<String>),
    /// These processes, which the command has left running, are asked to end, as recant was.
    EndsRest(Vec<String>),
    /// The store can hold no upper: what the command writes lies in memory until it has ended, at most so many bytes.
    InMemory(u64),
    /// The further groups could not be mapped, for this reason. The command is not started yet.
    NoGroups(String),
    /// This place could not be captured, for this reason: it is read-only. The command is not started yet.
    Uncovered(AbsPath, String),
    /// A descriptor that the caller had open is closed for the command: its number, and its path as the kernel has it.
    Closed(i32, String),
    /// A file of the project or of the home directory is the command's output: it is real. Its path, and the numbers of the descriptors.
    RealOutput(AbsPath, Vec<i32>),
    /// The redirected input of the command could not be read to its end, for this reason.
    NotFed(String),
    /// Something inside asks what is held, over this connection.
    Asked(UnixStream),
    /// The command's way to other machines: who connects to this socket is inside.
    Listens(TcpListener),
    /// The service has run for a moment: it has not failed at once.
    Serves,
    /// Nothing is left of the command, which ended so; others that joined it go on.
    OnlyJoined(Ending, Option<Stopped>),
}

/// Runs the command with its changes held, and returns when its init alone is left (H3): [`run_command`].
pub fn run_captured(laid: &Laid, command: &Command, hear: &mut dyn FnMut(Event)) -> Result<EndedRun, Error> {
    run_command(Ground::Captured(laid), command, hear)
}

/// Runs the command and returns when only its init is left, which is ending (H3). Forks, so the process must have one thread. On an error
/// the command was not started, with one exception: it could not be executed.
pub fn run_command(ground: Ground<'_>, command: &Command, hear: &mut dyn FnMut(Event)) -> Result<EndedRun, Error> {
    run_alone(ground, command, hear).map_err(not_started)
}

fn run_alone(ground: Ground<'_>, command: &Command, hear: &mut dyn FnMut(Event)) -> Result<EndedRun, Error> {
    one_thread::refuse_others()?;
    let argv = command.argv.iter().cloned().map(to_c).collect::<Result<Vec<_>, _>>()?;
    let network = if let Ground::Joined(joined) = ground { joined.network() } else { command.network };
    let env = environment(&[way_out::variables(network), command.env.clone()].concat())?;
    // A service has nothing of the caller's.
    let inherited = if command.service.is_some() { Inherited::default() } else { descriptors::inherited()? };
    // If SIGCHLD were inherited as ignored, children would vanish without being waited for.
    let child_ignored = raw_calls::default_action(libc::SIGCHLD);
    let listened = Signals::of(&[init::FORWARDED, &[libc::SIGCONT]].concat());
    let mask = listened.block();
    let result = listened.descriptor().at("listen to signals", "signalfd").map_err(Error::from).and_then(|signals| {
        // A signal that came before is meant for recant; from here on they are the command's.
        fs::interrupt::check().at("start", "the command")?;
        let begun = fs::Moment::now();
        let started = ground.laid().map_or_else(fs::exact_now, |laid| laid.plan.request.since);
        let mut run = Running {
            ground,
            command,
            signals: signals.as_fd(),
            hear,
            meter: ground.laid().zip(command.max_size).map(|(laid, max)| Meter::new(laid, max)),
            ahead: ground.laid().map(EarlySync::of),
            has_named_rest: false,
            too_much: None,
            terminal: Terminal::ours(),
            heard: SignalsHeard::nothing(),
            refusals: RefusalNotes::default(),
            rest_until: None,
            stop: None,
            door: None,
            way_out: None,
            ending: EndingService::default(),
        };
        let in_front = run.terminal.is_some();
        let orders = Orders {
            ground,
            argv: &argv,
            env: &env,
            inherited: &inherited,
            mask: &mask,
            child_ignored,
            // A confined command gets no PIDs of its own, and one that joins has the other run's.
            own_pids: ground.laid().is_some(),
            entrance: None,
            door: None,
            way_out: None,
            own_shm: !ground.is_held(),
            in_front,
            network: command.network,
            answers_calls: ground.laid().is_some() && command.listens,
            output: command.service.as_ref().map(|service| &*service.file),
            ready_after: match ground {
                Ground::Captured(laid) => laid.ready_after(),
                Ground::Confined(_) => started,
                Ground::Joined(_) => Time::default(),
            },
        };
        run.say_what_is_missing(&inherited);
        run.until_it_ends(orders, begun, started)
    });
    mask.set();
    if child_ignored {
        raw_calls::ignore(libc::SIGCHLD);
    }
    result
}

fn to_c(word: OsString) -> Result<CString, Error> {
    CString::new(word.into_vec()).map_err(|_| nul())
}

/// Variables that a command gets if recant lacks them. Unless GIT_OPTIONAL_LOCKS is 0 (git(1)), `git status` and `git diff` rewrite the
/// index to remember what they saw: looking at a repository would change it.
const DEFAULTS: [(&str, &str); 1] = [("GIT_OPTIONAL_LOCKS", "0")];

/// recant's own variables and the missing defaults, with those of `set` in place of their namesakes.
fn environment(set: &[(OsString, OsString)]) -> Result<Vec<CString>, Error> {
    let defaults = DEFAULTS.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let unset = defaults.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let kept = std::env::vars_os().chain(unset).filter(|(name, _)| !set.iter().any(|(new, _)| new == name));
    kept.chain(set.iter().cloned())
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            to_c(name)
        })
        .collect()
}

struct Running<'a> {
    ground: Ground<'a>,
    command: &'a Command,
    signals: std::os::fd::BorrowedFd<'a>,
    hear: &'a mut dyn FnMut(Event),
    meter: Option<Meter>,
    ahead: Option<EarlySync>,
    /// True once it is told what ends as recant does.
    has_named_rest: bool,
    too_much: Option<u64>,
    terminal: Option<Terminal>,
    heard: SignalsHeard,
    refusals: RefusalNotes,
    /// The time at which what the command left is ended.
    rest_until: Option<Instant>,
    stop: Option<WaitingStop>,
    door: Option<Door>,
    way_out: Option<UnixStream>,
    ending: EndingService,
}

impl Running<'_> {
    /// Says what of the caller's surroundings the command does not get.
    fn say_what_is_missing(&mut self, inherited: &Inherited) {
        for (path, why) in self.ground.laid().into_iter().flat_map(|laid| &laid.uncovered) {
            (self.hear)(Event::Uncovered(path.clone(), why.clone()));
        }
        for fd in &inherited.close {
            let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
            (self.hear)(Event::Closed(*fd, Shown(path.as_os_str().as_bytes()).to_string()));
        }
        for (path, fds) in self.real_outputs(inherited) {
            (self.hear)(Event::RealOutput(path, fds));
        }
        if let Some(why) = self.ground.ids().and_then(Ids::unread) {
            (self.hear)(Event::NoGroups(why.to_owned()));
        }
    }

    /// The files that the command's output goes to, where a person expects it to be held: a log elsewhere is meant to be real.
    fn real_outputs(&self, inherited: &Inherited) -> BTreeMap<AbsPath, Vec<i32>> {
        let mut outputs: BTreeMap<AbsPath, Vec<i32>> = BTreeMap::new();
        let Some(request) = self.ground.laid().map(|laid| &laid.plan.request) else { return outputs };
        let project = LazyCell::new(|| project_of(&request.cwd, request.home.as_deref()));
        let is_below_home = |path: &AbsPath| request.home.as_ref().is_some_and(|home| path.as_path().starts_with(home));
        let files = inherited.outputs.iter().filter_map(Output::file);
        for (fd, path) in files.filter(|(_, path)| is_below_home(path) || path.is_under(&project)) {
            outputs.entry(path).or_default().push(fd);
        }
        outputs
    }

    fn until_it_ends(mut self, orders: Orders<'_>, begun: fs::Moment, started: Time) -> Result<EndedRun, Error> {
        let ((exit, leaving), own_pids) = match self.attempt(&orders)? {
            Some(ended) => (ended, orders.own_pids),
            // Parts of /proc are covered (a container), so a user gets no new one: run without own PIDs. Or no namespace can be had for a
            // confined command's /dev/shm.
            None => (
                self.attempt(&Orders { own_pids: false, own_shm: false, answers_calls: false, ..orders })?
                    .ok_or_else(not_alone)?,
                false,
            ),
        };
        while raw_calls::next_signal(self.signals).is_some() {}
        // Measured again where it was ended for this: it has written on since.
        let too_much = self.meter.as_ref().and_then(|meter| meter.over().or(self.too_much));
        // Changes on the tree during the run are found by their time, also where the clock was set back.
        let span = begun.until_now(started);
        let outputs = orders.inherited.outputs.iter().filter_map(|output| output.what_was_set().transpose());
        let notes = outputs.chain(self.refusals.lines(exit.status() != 0).into_iter().map(Ok)).collect::<Result<_, _>>()?;
        let stopped = self.ending.stopped();
        Ok(EndedRun { notes, exit, stopped, span, own_pids, too_much, meter: self.meter, leaving, ahead: self.ahead })
    }

    /// Runs the command once. `None` if it has to be tried again, without PIDs or a /dev/shm of its own.
    fn attempt(&mut self, orders: &Orders<'_>) -> Result<Option<(Ending, EndingInit)>, Error> {
        let user = self.ground.is_user_s();
        let (ours, theirs) = UnixStream::pair().at("make a socket for", "the init")?;
        let taking_in = match orders.own_pids {
            true => None,
            false => Some(TakingIn::begin().at("take in orphans", "prctl")?),
        };
        let new = New { user, pid: orders.own_pids, network: self.command.network.is_own() };
        // Closed here after the fork: who connects when the init is gone gets an end, and no answer that never comes.
        let entrance = self.ground.laid().and_then(|laid| laid.entrance.take());
        let entrance = entrance.as_ref().filter(|_| orders.own_pids);
        // Without one, whoever asks is told that nobody answers.
        let door = self.ground.laid().and_then(|_| Door::make().ok());
        let is_proxied = matches!(self.command.network, Network::Proxied(_));
        let way_out = is_proxied.then(UnixStream::pair).transpose().at("make a socket for", "the proxy")?;
        let (way_out, inner) = way_out.unzip();
        let orders = &Orders { entrance, door: door.as_ref(), way_out: inner.as_ref(), ..*orders };
        let pipes = Pipes::of(orders.inherited, self.ground.is_held())?;
        let forked = match self.ground {
            Ground::Captured(_) => raw_calls::fork_into(new),
            Ground::Confined(_) => raw_calls::fork(),
            Ground::Joined(joined) => joined.fork_into(),
        };
        let forked = forked.map_err(|source| {
            let act = if user { acts::USER_NAMESPACE } else { acts::MOUNT_NAMESPACE };
            let cause = Cause::of(act, source.raw_os_error(), user);
            set_up("clone", act, source, cause)
        })?;
        let Some(init) = forked else {
            drop(ours);
            init::run_as_init(orders, pipes, &theirs)
        };
        drop((theirs, inner));
        (self.door, self.way_out) = (door, way_out);
        if let Some(asked) = self.heard.asked() {
            raw_calls::forward(init, asked, 0);
        }
        (self.hear)(Event::SettingUp);
        let mut feeds = pipes.feeds();
        let outcome = self.follow(init, Words::of(ours), &mut feeds);
        if let Some(why) = feeds.failure() {
            (self.hear)(Event::NotFed(reason(&why)));
        }
        let leaving = EndingInit(Some(init));
        if let Outcome::Alone(exit) = outcome {
            return Ok(Some((exit, leaving)));
        }
        leaving.wait()?;
        if let Some(taking_in) = taking_in {
            // H3: the init was killed, or had nothing left to end.
            taking_in.end_all();
        }
        match outcome {
            Outcome::Alone(exit) | Outcome::Exit(exit) => Ok(Some((exit, EndingInit(None)))),
            Outcome::Again => Ok(None),
            Outcome::Failed(failed) => Err(set_up_error(failed, user)),
            Outcome::NoExec(errno) => Err(exec_error(&self.command.argv, errno)),
        }
    }

    /// Listens to the init until it has ended.
    fn follow(&mut self, init: i32, mut words: Words, feeds: &mut Feeds) -> Outcome {
        let mut outcome = None;
        let mut phase = Phase::SetsUp;
        loop {
            self.wait_and_tend(init, &words, &mut phase);
            if !words.has_more() && !is_ready(words.socket()) {
                continue;
            }
            match words.next() {
                None => break,
                Some(Word::Ready) => {
                    phase = Phase::Runs;
                    if let Some(Ok(listener)) = self.way_out.take().as_ref().map(way_out::take) {
                        (self.hear)(Event::Listens(listener));
                    }
                    self.ending.debut = self.command.service.as_ref().map(|_| Instant::now() + service_end::DEBUT);
                }
                Some(Word::Feed(fd)) => feeds.begin(fd),
                Some(Word::Stands(fd, offset)) => raw_calls::set_offset(fd, offset),
                Some(Word::Uncovered(path, why)) => {
                    if let Ok(path) = AbsPath::parse(path) {
                        (self.hear)(Event::Uncovered(path, why));
                    }
                }
                Some(Word::NotRenamed(why)) => self.refusals.hear_not_renamed(why),
                Some(Word::Refused(refusal)) => {
                    if let Some(laid) = self.ground.laid() {
                        self.refusals.hear(refusal, &laid.plan, self.command.by_agent);
                    }
                }
                Some(Word::Failed(failed)) => outcome = Some(Outcome::Failed(failed)),
                Some(Word::NoProc) => outcome = Some(Outcome::Again),
                Some(Word::MapGroups(map)) => {
                    if let Err(why) = ids::map_groups_of(init, &map, words.socket()) {
                        (self.hear)(Event::NoGroups(why));
                    }
                }
                Some(Word::NoShm(failed)) => {
                    if let Ok(path) = AbsPath::parse("/dev/shm") {
                        (self.hear)(Event::Uncovered(path, sentence(failed)));
                    }
                    outcome = Some(Outcome::Again);
                }
                Some(Word::NoExec(errno)) => outcome = Some(Outcome::NoExec(errno)),
                Some(Word::Stopped) => _ = self.stop.get_or_insert_with(|| WaitingStop::ask(words.socket())),
                Some(Word::StandsAt(stop)) => self.stop_too(init, &words, phase, stop),
                Some(Word::OnlyJoined) => {
                    if let Some(Outcome::Exit(exit)) = &outcome {
                        (self.hear)(Event::OnlyJoined(*exit, self.ending.stopped()));
                    }
                }
                Some(Word::Alone) => {
                    outcome = outcome.map(Outcome::alone);
                    break;
                }
                Some(Word::Exited(status)) => {
                    let exit = Ending::Exited(status);
                    phase = self.command_ended(exit, &mut outcome, &words);
                }
                Some(Word::Killed(signal)) => phase = self.command_ended(Ending::Signaled(signal), &mut outcome, &words),
            }
        }
        if let Some(waiting) = self.stop.take() {
            waiting.drop_it();
        }
        // The init was killed before it could say how the command ended; the command ended with it.
        outcome.unwrap_or(Outcome::Exit(Ending::Signaled(libc::SIGKILL)))
    }

    /// Waits for a word, and does what is due meanwhile: measures, writes out, says what it waits for.
    fn wait_and_tend(&mut self, init: i32, words: &Words, phase: &mut Phase) {
        // Not during the set-up: it may have to be tried again, which takes a process with one thread.
        let metered = *phase != Phase::SetsUp && self.too_much.is_none();
        let tick = self.meter.as_ref().filter(|_| metered).map(|_| size_limit::TICK);
        let tock = self.ahead.as_ref().filter(|_| *phase == Phase::Runs).map(|_| early_sync::TICK);
        let rest = self.rest_until.map(|until| until.saturating_duration_since(Instant::now()));
        let wake = phase.patience().into_iter().chain(tick).chain(tock).chain(self.ending.due()).chain(rest).min();
        self.wait(init, words, wake, *phase);
        if metered {
            self.end_if_too_much(words);
        }
        if let Some(ahead) = self.ahead.as_mut().filter(|_| tock.is_some()) {
            ahead.look();
        }
        if self.ending.has_made_its_debut() {
            (self.hear)(Event::Serves);
        }
        if self.ending.is_too_slow() {
            Ask::EndRest.send(words.socket());
        }
        if self.rest_until.is_some_and(|until| until <= Instant::now()) {
            self.rest_until = None;
            self.name_rest(init);
            Ask::EndRest.send(words.socket());
        }
        if phase.patience().is_some_and(|left| left.is_zero()) {
            *phase = Phase::Waits;
            (self.hear)(Event::Lingering(names_of_children(init)));
        }
    }

    /// Stops as the command has, if it stands, and continues with it.
    fn stop_too(&mut self, init: i32, words: &Words, phase: Phase, stop: Option<u16>) {
        let Some(waiting) = self.stop.take() else { return };
        let Some(stop) = stop else { return waiting.drop_it() };
        waiting.act();
        if !self.pass_on(init, words, phase) {
            // The group is orphaned: no shell stops or continues it.
            raw_calls::kill(std::process::id().cast_signed(), libc::SIGSTOP);
            self.pass_on(init, words, phase);
        }
        // Continued here, with the group or by somebody who knows only recant's process. This SIGCONT answers this stop, no later one.
        // It is passed on all the same, since the command may have left the group.
        raw_calls::forward(init, libc::SIGCONT, stop);
    }

    /// Notes that the command has ended, with `exit` unless another outcome is known.
    fn command_ended(&mut self, exit: Ending, outcome: &mut Option<Outcome>, words: &Words) -> Phase {
        if let Some(ahead) = &mut self.ahead {
            ahead.finish();
        }
        if let Some(terminal) = &self.terminal {
            terminal.take_back();
        }
        outcome.get_or_insert(Outcome::Exit(exit));
        let parent = || rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
        let ends_rest = match self.command.linger {
            Linger::Kill => true,
            Linger::Wait => false,
            Linger::AtMost(time) => {
                self.rest_until = Some(Instant::now() + time);
                false
            }
            Linger::WaitWith(with) => parent() != Some(with),
        };
        if ends_rest {
            Ask::EndRest.send(words.socket());
        } else if self.heard.hung_up() {
            // As the kernel does when a session leader ends: _exit(2).
            raw_calls::kill(0, libc::SIGHUP);
        }
        Phase::Ended(Instant::now())
    }

    /// Ends the run if it has written more than its limit.
    fn end_if_too_much(&mut self, words: &Words) {
        self.too_much = self.meter.as_mut().and_then(Meter::exceeded);
        if self.too_much.is_some() {
            end_rest(words);
        }
    }

    /// Waits for a word, a signal, somebody at the door, or the time `left`; passes signals on.
    fn wait(&mut self, init: i32, words: &Words, left: Option<Duration>, phase: Phase) {
        // It is closed until all is set up.
        let door = self.door.as_ref().filter(|_| phase != Phase::SetsUp);
        if !words.has_more() {
            let limit = left.and_then(|left| Timespec::try_from(left).ok());
            let mut ready = vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(words.socket(), PollFlags::IN)];
            ready.extend(door.map(|door| PollFd::new(door, PollFlags::IN)));
            let _interrupted = poll(&mut ready, limit.as_ref());
        }
        if let Some(asked) = door.and_then(Door::take) {
            (self.hear)(Event::Asked(asked));
        }
        self.pass_on(init, words, phase);
    }

    /// Tells once what ends as recant does.
    fn name_rest(&mut self, init: i32) {
        let left = names_of_children(init);
        if !std::mem::replace(&mut self.has_named_rest, true) && !left.is_empty() {
            (self.hear)(Event::EndsRest(left));
        }
    }

    /// Passes on the signals that have come. Returns true if this process was continued.
    fn pass_on(&mut self, init: i32, words: &Words, phase: Phase) -> bool {
        let mut went_on = false;
        while let Some(signal) = raw_calls::next_signal(self.signals) {
            went_on |= signal.number == libc::SIGCONT;
            match self.heard.hear(&signal, phase) {
                SignalAction::HandOn | SignalAction::EndRest if self.is_stop(signal.number, phase) => {
                    self.ending.begin();
                    Ask::Terminate.send(words.socket());
                }
                SignalAction::Nothing => {}
                SignalAction::HandOn => raw_calls::forward(init, signal.number, 0),
                SignalAction::EndRest => {
                    self.name_rest(init);
                    end_rest(words);
                }
            }
        }
        went_on
    }
}

impl Running<'_> {
    /// True for the signal that stops a service.
    fn is_stop(&self, signal: i32, phase: Phase) -> bool {
        self.command.service.is_some() && phase != Phase::SetsUp && signal == libc::SIGTERM
    }
}

enum Outcome {
    Exit(Ending),
    /// The command ended so, and only the init is left.
    Alone(Ending),
    /// To be tried again, with less of its own.
    Again,
    Failed(Failed),
    NoExec(i32),
}

impl Outcome {
    fn alone(self) -> Self {
        match self {
            Self::Exit(exit) => Self::Alone(exit),
            other => other,
        }
    }
}

fn is_ready(socket: &UnixStream) -> bool {
    let mut ready = [PollFd::new(socket, PollFlags::IN)];
    let _interrupted = poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    !ready[0].revents().is_empty()
}

/// Closes recant's end of the socket: the init ends, and the whole run with it.
fn end_rest(words: &Words) {
    let _gone = words.socket().shutdown(std::net::Shutdown::Write);
}

/// The names of the processes that the init still waits for.
fn names_of_children(init: i32) -> Vec<String> {
    let children = orphans::children_of(init.cast_unsigned());
    let name = |pid| std::fs::read(format!("/proc/{pid}/comm")).ok().map(|name| Shown(name.trim_ascii_end()).to_string());
    children.into_iter().filter_map(name).collect()
}

/// Describes the failure for people, as part of a sentence.
fn sentence(failed: Failed) -> String {
    let act = failed.act.clone();
    format!("cannot {act}: {}", reason(&io::Error::from(failed)))
}

fn set_up_error(failed: Failed, user: bool) -> Error {
    if failed.act.is_empty() {
        return not_as_planned(&failed.path, &failed.text);
    }
    let cause = Cause::of(&failed.act, (failed.errno != 0).then_some(failed.errno), user);
    set_up(&failed.path.clone(), &failed.act.clone(), io::Error::from(failed), cause)
}

fn exec_error(argv: &[OsString], errno: i32) -> Error {
    let name = argv.first().cloned().unwrap_or_default();
    let program = Shown(name.as_encoded_bytes()).to_string();
    // execvp(3) also says EACCES where a directory of PATH can't be searched and no other has the name.
    let hides = errno == libc::EACCES && !name.as_encoded_bytes().contains(&b'/') && !is_in_path(&name);
    match errno {
        _ if hides || matches!(errno, libc::ENOENT | libc::ENOTDIR) => {
            let is_line = argv.len() == 1 && name.as_bytes().contains(&b' ');
            let held = || error::command(format_args!("run -- sh -c {}", error::shell_word(name.as_bytes())));
            not_found(&program).with_remedy_if(is_line.then(|| "for a shell line: " + held()))
        }
        _ => not_executable(&program, &io::Error::from_raw_os_error(errno)),
    }
}

fn is_in_path(name: &OsString) -> bool {
    searched().iter().any(|directory| directory.join(name).exists())
}
