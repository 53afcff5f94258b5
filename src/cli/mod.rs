//! The command line: arguments, a file for each verb or small group, text and JSON.
//!
//! Prints ([`out`]); the screen alone draws by itself. What always holds:
//! - **V1** Results go to standard output, everything said about them to standard error.
//! - **V2** A verb that changes something calls [`Call::prepare_to_change`] first: it settles what a crash left.
//! - **V3** An error ends as a [`Error`] with its [`Kind`]; [`exit`] alone knows exit statuses.

mod agent_run;
mod agents;
mod apply;
mod args;
mod asked;
mod bar;
mod bare;
mod begun;
mod brief;
mod by;
mod caches;
mod cat;
mod checkpoint;
mod chosen;
mod collect;
mod complete;
mod config;
mod confirm;
mod coverage;
mod cut_runs;
mod diff;
mod discard;
mod discard_paths;
mod doctor;
mod door;
mod errors;
pub mod exit;
mod far;
mod go_on;
mod graph;
mod guard;
mod guest;
mod help;
mod hints;
mod history;
mod list;
mod log;
mod log_filter;
mod made;
mod manual;
mod mcp;
mod merge;
mod misuse;
mod moving;
mod out;
mod outside;
mod parts;
mod picks;
mod place;
mod prune;
mod prune_all;
mod recover;
mod remote;
mod review;
mod rewind;
mod run;
mod scope;
mod show;
mod since;
mod snapshot;
mod snapshot_collect;
mod snapshot_diff;
mod snapshot_heads;
mod snapshot_prune;
mod snapshot_restore;
mod snapshot_run;
mod snapshot_verify;
mod stage;
mod status;
mod steps;
mod text;
mod touched;
mod undo;
mod which;

use std::cell::{OnceCell, RefCell};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::capture::inside::{Inside, capture};
use crate::config::{Color, Config, From as Origin};
use crate::engine::ready::{self, Settled};
use crate::engine::recover::Recovered;
use crate::error::{Error, Kind, command, recant, shell_word};
use crate::fs::Fs;
use crate::fs::dir::Dir;
use crate::fs::lock::Lock;
use crate::fs::path::AbsPath;
use crate::session::by::By;
use crate::session::header::{Counts, Header, Status};
use crate::session::id::Id;
use crate::session::opened::{Locked, Session};
use crate::session::run::Failed;
use crate::session::store::Store;
use args::{AgentVerb, CheckpointVerb, SessionVerb, SnapshotVerb, Verb};
use far::Near;
use out::{Form, Out};
use place::Place;
use which::Want;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Done, or nothing to do.
    Done,
    /// Ended with this kind, which was reported.
    With(Kind),
    /// Ended with the status of the command that it ran.
    Command(u8),
    /// Ended with the status of a process that died of the signal which asked it to end.
    Asked(u8),
}

impl Ended {
    /// The end after a problem. If a signal came and nothing was changed, the status of a process that died of it.
    fn by(problem: &Error) -> Self {
        match crate::fs::interrupt::status() {
            Some(status) if problem.kind() == Kind::Refused => Ended::Asked(status),
            _ => Ended::With(problem.kind()),
        }
    }
}

/// Carries out one call. All reports are written when it returns. An agent's hook always ends well: to Claude Code and others, 2 means that
/// what the agent is about to do is forbidden.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Ended {
    let args: Vec<OsString> = args.into_iter().collect();
    let is_hook = args.iter().skip(1).find(|word| !word.as_encoded_bytes().starts_with(b"-")).is_some_and(|word| word == "hook");
    let ended = carry_out(args);
    if is_hook { Ended::Done } else { ended }
}

fn carry_out(args: Vec<OsString>) -> Ended {
    let cli = match help::parse(&args) {
        Ok(cli) => cli,
        Err(error) => return misuse::misused(error, &args),
    };
    let global = &cli.global;
    if let Verb::Far(args) = cli.verb() {
        return far::far(args);
    }
    let near = global.far.as_deref().map(Near::read);
    crate::error::set_call(call_options(near.as_ref(), global.store.as_deref()));
    let form = if global.json || cli.verb().is_brief() { Form::Json } else { Form::Text };
    let early = |color| {
        let out = Out::new(form, color, global.quiet, global.verbose);
        if let Some(near) = &near { out.for_near(near) } else { out }
    };
    let (config, place) = match place::settings() {
        Ok(found) => found,
        // These two need no settings, and run even if the settings are wrong.
        Err(_) if matches!(cli.verb(), Verb::Completions(_) | Verb::Man(_)) => place::nowhere(),
        Err(problem) => {
            let out = early(Color::Auto);
            return finish(&out, not_begun(&out, cli.verb(), problem), Effects::None);
        }
    };
    let color = match global.color {
        Some(color) => color.into(),
        // The environment goes before the file: https://no-color.org.
        None if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) => Color::Auto,
        None => config.color.value,
    };
    // An agent's hook and server are about this machine, whatever $RECANT_HOST says.
    let is_here = near.is_some() || matches!(cli.verb(), Verb::Hook(_) | Verb::Mcp);
    let host = if is_here { None } else { remote::asked_for(global) };
    let place = match &global.store {
        // With -H, --store names the far side's.
        Some(dir) if host.is_none() => Place { path: dir.clone(), from: Origin::Option("--store") },
        _ => place,
    };
    let call = Call {
        fs: Fs::new(),
        place,
        out: early(color).most(config.output_paths.value),
        config,
        yes: global.yes,
        can_ask: near.as_ref().map_or_else(|| std::io::stdin().is_terminal() && std::io::stderr().is_terminal(), Near::can_ask),
        is_far: near.is_some(),
        store: OnceCell::new(),
        last: RefCell::default(),
        recovered: RefCell::default(),
        collected: RefCell::default(),
    };
    if matches!(cli.verb(), Verb::Mcp) && cli.global.host.as_deref().is_some_and(|host| host != "local") {
        let problem = Error::usage("recant mcp serves this machine alone");
        return finish(&call.out, Err(problem.with_remedy("a client can start it there: ssh HOST recant mcp")), Effects::None);
    }
    if let Err(problem) = guard::refuse(&call, cli.verb(), &args[1..], host.is_some()) {
        return finish(&call.out, not_begun(&call.out, cli.verb(), problem), Effects::None);
    }
    let effects = effects(cli.verb());
    if let Some(inside) = capture()
        && let Some(store) = &inside.store
        && let Some(words) = outside::words(&cli, &args[1..], inside)
    {
        let ended = outside::ask(&call, &words, store).map_err(|problem| call.with_remedy(problem));
        return finish(&call.out, ended, Effects::None);
    }
    if let Some(host) = host {
        let ended = remote::carry_out(&call, &cli, &args[1..], &host);
        return remote::finish(&call.out, ended, cli.verb());
    }
    let ended = call.carry_out(cli.verb.unwrap_or(Verb::Here)).map_err(|problem| call.with_remedy(problem));
    finish(&call.out, ended, effects)
}

/// The options that commands in messages repeat, quoted for a shell.
fn call_options(near: Option<&Near>, store: Option<&Path>) -> String {
    let reached = near.map(Near::reached).filter(|options| !options.is_empty()).map(str::to_owned);
    let store = store.map(|store| format!("--store {}", shell_word(store.as_os_str().as_bytes())));
    [reached, store].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The effects of a verb that ended well, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effects {
    None,
    Some,
}

fn effects(verb: &Verb) -> Effects {
    let only_reads = match verb {
        Verb::Commit(args) => args.what.dry_run,
        Verb::Prune(args) => args.dry_run,
        Verb::Rollback(args) => args.what.dry_run,
        Verb::Undo(args) => args.dry_run,
        Verb::Redo(args) => args.dry_run,
        Verb::Session { verb } => matches!(verb, SessionVerb::Export(_)),
        Verb::Snapshot { verb } => match verb {
            SnapshotVerb::Create(_) => false,
            SnapshotVerb::List(_) | SnapshotVerb::Show(_) | SnapshotVerb::Diff(_) | SnapshotVerb::Verify(_) => true,
            SnapshotVerb::Restore(args) => args.dry_run,
        },
        Verb::Agent { verb } => match verb {
            AgentVerb::Turns(_) | AgentVerb::Diff(_) | AgentVerb::Status(_) | AgentVerb::Guide => true,
            AgentVerb::Undo(args) => args.dry_run,
            AgentVerb::Install(args) | AgentVerb::Uninstall(args) => args.dry_run,
            AgentVerb::Run(_) => false,
        },
        // It recovers nothing: an agent waits for it. What a server does, its calls answer for.
        Verb::Hook(_) | Verb::Mcp => true,
        Verb::Rewind(args) => args.dry_run,
        Verb::Fork(args) => args.dry_run,
        Verb::Run(_) | Verb::Shell(_) | Verb::Discard(_) | Verb::Recover(_) | Verb::Confirm(_) => false,
        Verb::List(_) | Verb::Show(_) | Verb::Steps(_) | Verb::Diff(_) | Verb::Checkpoint { .. } | Verb::Cat(_) => true,
        Verb::Status(_) | Verb::Review(_) => true,
        Verb::Here | Verb::Log(_) | Verb::Doctor(_) | Verb::Config | Verb::Completions(_) | Verb::Man(_) => true,
        Verb::Far(_) => true,
    };
    if only_reads { Effects::None } else { Effects::Some }
}

/// The end of a verb that could not begin. One that runs a command reports that the command was not started.
fn not_begun(out: &Out, verb: &Verb, problem: Error) -> Result<Ended, Error> {
    if verb.is_run() { Ok(run::not_started(out, problem)) } else { Err(problem) }
}

/// True for a verb that only reads and shows what is in the store, but for `status`, which reports all by itself.
fn is_of_store(verb: &Verb) -> bool {
    let looks = matches!(
        verb,
        Verb::List(_) | Verb::Show(_) | Verb::Steps(_) | Verb::Diff(_) | Verb::Cat(_) | Verb::Log(_) | Verb::Review(_)
    );
    looks || matches!(verb, Verb::Checkpoint { .. })
}

fn finish(out: &Out, ended: Result<Ended, Error>, effects: Effects) -> Ended {
    // Results come before messages about the end.
    let ended = match (out.finish(), ended) {
        (Ok(()), ended) | (Err(_), ended @ Err(_)) => ended,
        // The result of a run is its command's.
        (Err(_), Ok(Ended::Command(status))) => Ok(Ended::Command(status)),
        (Err(unprinted), Ok(_)) if effects == Effects::None => Err(unprinted),
        (Err(unprinted), Ok(ended)) => {
            let (kind, done) = match ended {
                Ended::With(kind) => (kind, "not all that was asked for is done; the report of it is lost"),
                _ => (Kind::LeftOut, "what was asked for is done; only the report is lost"),
            };
            let remedy = Some(format!("{recant} status and {recant} show ID tell how things stand", recant = recant()));
            Err(unprinted.with_kind(kind).with_state(done).with_remedy_if(remedy))
        }
    };
    ended.unwrap_or_else(|problem| {
        out.problem(&problem);
        Ended::by(&problem)
    })
}

/// One call, with what all verbs need.
pub struct Call {
    fs: Fs,
    config: Config,
    place: Place,
    out: Out,
    yes: bool,
    /// True if a person sits at a terminal, here or on the near side.
    can_ask: bool,
    /// True if it is carried out for a person at another machine.
    is_far: bool,
    store: OnceCell<Option<Store>>,
    /// The session that `last` was reported to be.
    last: RefCell<Option<Id>>,
    /// Operations that were recovered before the verb began.
    recovered: RefCell<Vec<Recovered>>,
    /// Runs that this call has collected; `None` as long as nobody asks.
    collected: RefCell<Option<Vec<collect::Collected>>>,
}

impl Call {
    /// Appends a line to the log after an operation. Only warns if the log cannot be written.
    fn note_in_log(&self, store: &Store, entry: &crate::session::log::Entry) {
        if let Err(error) = crate::session::log::append(&self.fs, store, entry) {
            self.out.warn(format_args!("the log could not be written: {error}"));
        }
    }

    fn carry_out(&self, verb: Verb) -> Result<Ended, Error> {
        self.refuse_outside(&verb)?;
        if let Err(problem) = self.before(&verb) {
            return not_begun(&self.out, &verb, self.with_remedy(problem));
        }
        match verb {
            Verb::Run(args) if !args.inside.is_empty() => snapshot_run::run_in(self, &args),
            Verb::Run(args) => run::run(self, &args),
            Verb::Shell(args) => run::shell(self, &args),
            Verb::Doctor(args) => doctor::doctor(self, &args),
            Verb::Session { verb } => match verb {
                SessionVerb::New(args) => stage::new(self, &args),
                SessionVerb::Write(args) => stage::write(self, &args),
                SessionVerb::Delete(args) => stage::delete(self, &args),
                SessionVerb::Mkdir(args) => stage::mkdir(self, &args),
                SessionVerb::Symlink(args) => stage::symlink(self, &args),
                SessionVerb::Chmod(args) => stage::chmod(self, &args),
                SessionVerb::Rename(args) => stage::rename(self, &args),
                SessionVerb::Export(args) => moving::export(self, &args),
                SessionVerb::Import(args) => moving::import(self, &args),
            },
            Verb::List(args) => list::list(self, &args),
            Verb::Show(args) => show::show(self, &args),
            Verb::Discard(args) => discard::discard(self, &args),
            Verb::Steps(args) => steps::steps(self, &args),
            Verb::Diff(args) => diff::diff(self, &args),
            Verb::Review(args) => review::review(self, &args),
            Verb::Rewind(args) => rewind::rewind(self, &args),
            Verb::Fork(args) => rewind::fork(self, &args),
            Verb::Commit(args) => parts::commit::commit(self, &args),
            Verb::Confirm(args) => confirm::confirm(self, &args, apply::take_back),
            Verb::Rollback(args) => parts::rollback::rollback(self, &args),
            Verb::Undo(args) => undo::undo(self, &args),
            Verb::Redo(args) => undo::redo(self, &args),
            Verb::Checkpoint { verb } => match verb {
                CheckpointVerb::List => checkpoint::list(self),
                CheckpointVerb::Show(args) => checkpoint::show(self, &args),
                CheckpointVerb::Verify(args) => checkpoint::check(self, &args),
            },
            Verb::Snapshot { verb } => match verb {
                SnapshotVerb::Create(args) => snapshot::create(self, &args),
                SnapshotVerb::List(args) => snapshot::list(self, &args),
                SnapshotVerb::Show(args) => snapshot::show(self, &args),
                SnapshotVerb::Diff(args) => snapshot_diff::diff(self, &args),
                SnapshotVerb::Verify(args) => snapshot_verify::verify(self, &args),
                SnapshotVerb::Restore(args) => snapshot_restore::restore(self, &args),
            },
            Verb::Agent { verb } => match verb {
                AgentVerb::Turns(args) => agents::turns::turns(self, &args),
                AgentVerb::Diff(args) => agents::turns::diff(self, args),
                AgentVerb::Undo(args) => agents::undo::undo(self, &args),
                AgentVerb::Run(args) => agent_run::run(self, &args),
                AgentVerb::Install(args) => agents::install(self, &args),
                AgentVerb::Uninstall(args) => agents::uninstall(self, &args),
                AgentVerb::Status(args) => agents::status(self, &args),
                AgentVerb::Guide => agents::guide(self),
            },
            Verb::Hook(args) => agents::hook::hook(self, &args),
            Verb::Mcp => mcp::mcp(self),
            Verb::Prune(args) => prune_all::prune(self, &args),
            Verb::Recover(args) => recover::recover(self, &args),
            Verb::Cat(args) => cat::cat(self, &args),
            Verb::Status(args) => status::status(self, &args),
            Verb::Log(args) => log::log(self, &args),
            Verb::Config => config::config(self),
            Verb::Completions(args) => complete::completions(self, &args),
            Verb::Man(args) => manual::man(self, &args),
            Verb::Here => bare::here(self),
            // Carried out before there was a call.
            Verb::Far(args) => Ok(far::far(&args)),
        }
    }

    /// Refuses, inside a run, what a person outside decides. What a held agent undid in its own store it may roll back there: that is held,
    /// too.
    fn refuse_outside(&self, verb: &Verb) -> Result<(), Error> {
        let Some(inside) = capture() else { return Ok(()) };
        let key = match verb {
            Verb::Commit(args::Commit { what, .. }) | Verb::Rollback(args::Back { what, .. }) => &*what.id,
            Verb::Undo(args::Undo { id, .. }) | Verb::Redo(args::Redo { id, .. }) => id.as_deref().unwrap_or("last"),
            _ => return Ok(()),
        };
        let own = if inside.store.is_some() { self.store()? } else { None };
        let is_own = |key: &str| match own {
            Some(store) if key == "last" => store.headers().is_ok_and(|(headers, _)| !headers.is_empty()),
            Some(store) => store.find(key, |_| true).is_ok(),
            None => false,
        };
        if !matches!(verb, Verb::Commit(_)) && is_own(key) {
            return Ok(());
        }
        let id = &inside.session;
        let message = format!("this is inside the run of session {id}, where nothing reaches the real tree");
        let tail = id.rsplit('-').next().unwrap_or(id);
        let remedy = format!("the person outside does that: {}", command(format_args!("review {tail}")));
        Err(Error::refused(message).with_remedy(remedy))
    }

    /// Prepares for a verb. If it changes something, runs of `run --in` that were cut off get their sessions, and commits that nobody
    /// confirmed in time are rolled back. If it only reads, both are only reported.
    fn before(&self, verb: &Verb) -> Result<(), Error> {
        if effects(verb) == Effects::Some
            && !matches!(verb, Verb::Confirm(args) if args.watch)
            && crate::capture::inside::inside().is_none()
        {
            // `recover` makes these sessions itself, as its result.
            if !matches!(verb, Verb::Recover(_)) {
                cut_runs::recover_before(self)?;
            }
            confirm::take_back_overdue(self, apply::take_back)?;
        } else if is_of_store(verb) {
            cut_runs::say_all(self)?;
        }
        Ok(())
    }

    fn with_remedy(&self, problem: Error) -> Error {
        match self.store_path() {
            Ok(store) => errors::barred(problem, &store),
            // The store's path is what the problem is about.
            Err(_) => problem,
        }
    }

    /// The store's path, made absolute.
    fn store_path(&self) -> Result<AbsPath, Error> {
        if let Some(own) = capture().and_then(|inside| inside.store.clone()) {
            return Ok(own);
        }
        self.place.resolve().map_err(|problem| match problem.remedy() {
            None => problem.with_remedy("the store has to be where you can get at it: --store DIR, RECANT_STORE"),
            Some(_) => problem,
        })
    }

    /// The store; `None` if there is none yet.
    fn store(&self) -> Result<Option<&Store>, Error> {
        if let Some(store) = self.store.get() {
            return Ok(store.as_ref());
        }
        refuse_without_store()?;
        let mut store = Store::open(&self.store_path()?)?;
        if let Some(store) = &mut store {
            store.begins_in = crate::capture::plan::working_directory().ok();
            store.by = self.caller(&store.dir);
        }
        Ok(self.store.get_or_init(|| store).as_ref())
    }

    /// The store, made if it is missing.
    fn made_store(&self) -> Result<Store, Error> {
        refuse_without_store()?;
        let mut store = Store::create(&self.fs, &self.store_path()?)?;
        store.begins_in = crate::capture::plan::working_directory().ok();
        store.by = self.caller(&store.dir);
        Ok(store)
    }

    /// The agent that calls; `None` for a person.
    fn caller(&self, store: &Dir) -> Option<By> {
        by::caller(store)
    }

    /// The store, for a verb that needs an existing session.
    fn store_with(&self, key: &str) -> Result<&Store, Error> {
        match self.store()? {
            Some(store) => Ok(store),
            None if key == "last" => {
                Err(Error::refused("there is no session yet").with_remedy("recant run -- COMMAND begins one"))
            }
            None => Err(crate::session::error::unknown(key, &[])),
        }
    }

    /// The id of the session that `key` means to a verb; without a key, of `last`. Says which session `last` is.
    fn find(&self, store: &Store, key: Option<&str>, want: Want) -> Result<Id, Error> {
        which::find(self, store, key.unwrap_or("last"), want)
    }

    fn session(&self, key: Option<&str>) -> Result<(&Store, Session), Error> {
        let store = self.store_with(key.unwrap_or("last"))?;
        let id = self.find(store, key, Want::Look)?;
        let mut session = store.session(&id)?;
        if session.header.uncollected {
            collect::collect_ended(self, store, &id)?;
            session = store.session(&id)?;
        }
        Ok((store, session))
    }

    /// Opens a session to look at. If a command runs in it, with what that has changed so far.
    fn looked_at(&self, key: Option<&str>) -> Result<(&Store, Session), Error> {
        let store = self.store_with(key.unwrap_or("last"))?;
        let id = self.find(store, key, Want::Look)?;
        let Some((session, warnings)) = self.so_far(store, &id)? else { return self.session(Some(id.as_str())) };
        diff::say_running(self, &session);
        warnings.iter().for_each(|warning| self.out.warn(warning));
        Ok((store, session))
    }

    /// A session as the command that runs in it has it so far, with warnings; `None` if none runs in it.
    fn so_far(&self, store: &Store, id: &Id) -> Result<Option<(Session, Vec<String>)>, Error> {
        let session = store.session(id)?;
        if !session.header.uncollected || !session.is_held()? {
            return Ok(None);
        }
        Ok(Some(crate::capture::hold::look(&self.fs, store, session)?))
    }

    /// A session as [`Self::so_far`] has it, for a list of many: it warns of an error, and the session stays as it was before its command.
    fn listed_so_far(&self, store: &Store, header: &Header) -> Option<Session> {
        if !header.uncollected || header.discarded.is_some() {
            return None;
        }
        let so_far = self.so_far(store, &header.id).unwrap_or_else(|problem| {
            let id = &header.id;
            self.out.warn(format_args!(
                "session {id}: the changes of the command that runs in it are not counted: {}",
                problem.message()
            ));
            None
        });
        so_far.map(|(session, _)| session)
    }

    /// Opens a session to change, and locks it; what crashes left is settled first (V2).
    fn locked(&self, key: &str, want: Want) -> Result<(&Store, Locked), Error> {
        let store = self.store_with(key)?;
        let id = self.find(store, Some(key), want)?;
        let collect = |locked: &mut Locked| collect::collect(self, store, locked);
        let recover = || {
            let mut recovered = self.recovered.take();
            recovered.extend(self.prepare_to_change(store)?);
            Ok::<_, Error>(recovered)
        };
        let locked = ready::lock(&self.fs, store, &id, collect, recover)?;
        which::refuse_gone_on(key, &locked.header)?;
        match want {
            Want::Commit | Want::Redo if locked.header.is_in_part() => confirm::refuse(&locked.header, "commit more of")?,
            Want::Discard => {
                confirm::refuse(&locked.header, "discard")?;
                guard::refuse_a_persons(self, &locked)?;
            }
            Want::Stage | Want::Rewind | Want::Tend => guard::refuse_in_a_persons(self, &locked)?,
            _ => {}
        }
        if want == Want::Commit {
            collect::refuse_unseen(self, &locked)?;
        }
        Ok((store, locked))
    }

    /// Judges what a reader of a session found. If another recant was at work meanwhile, an error is no damage: to a reader, an object on
    /// its way lies at neither of its two places.
    fn believed(&self, store: &Store, session: &Session, found: Result<Ended, Error>) -> Result<Ended, Error> {
        if session.is_so_far() {
            return found;
        }
        if !store.is_at_work(session) {
            if found.is_err() {
                // What an interrupted operation left half done is no damage.
                ready::refuse_interrupted(store, session.id())?;
            }
            return found;
        }
        if found.is_err() {
            return Err(at_work(session.id()));
        }
        self.out.warn(format_args!("another recant was at work in session {} meanwhile: this may mix old and new", session.id()));
        found
    }

    /// Undoes or settles what crashes left, before anything is changed. Reports each in a line, and returns them.
    fn prepare_to_change(&self, store: &Store) -> Result<Vec<Recovered>, Error> {
        match ready::recover_any(&self.fs, store, || self.say_waiting(store))? {
            None => Ok(Vec::new()),
            Some(settled) => self.say_settled(settled),
        }
    }

    /// Removes what has lost its name in the store. Nobody waits for that: errors are warnings.
    fn clear_away(&self, store: &Store) {
        self.say_unswept(store.sweep_removed(&self.fs));
    }

    fn say_unswept(&self, errors: impl IntoIterator<Item = crate::error::Error>) {
        for error in errors {
            self.out.warn(format_args!("{error}; nothing needs it, and the next verb that changes something tries again"));
        }
    }

    /// Undoes or settles what crashes left, like [`Self::prepare_to_change`]; the caller holds the store's lock.
    fn recover_under(&self, store: &Store, lock: &Lock) -> Result<Vec<Recovered>, Error> {
        self.say_settled(ready::recover_all(&self.fs, store, lock)?)
    }

    fn say_settled(&self, settled: Settled) -> Result<Vec<Recovered>, Error> {
        self.say_unswept(settled.unswept);
        for recovered in &settled.recovered {
            self.out.warn(recover::line(self, recovered));
            recover::say_strays(self, recovered);
            recovered.notes.iter().for_each(|note| self.out.warn(note));
        }
        self.go_on("what had been interrupted is recovered as said; nothing else was changed")?;
        Ok(settled.recovered)
    }

    /// Ends here if a signal came during the work before the verb, which has been reported. Such a signal is not meant for the verb itself.
    fn go_on(&self, state: &str) -> Result<(), Error> {
        crate::fs::interrupt::give_back();
        let Some(signal) = crate::fs::interrupt::came() else { return Ok(()) };
        Err(Error::refused(format!("stopped by {signal}")).with_state(state))
    }

    /// Takes the store's lock: two operations of one store could undo each other.
    fn store_lock(&self, store: &Store) -> Result<Lock, Error> {
        store.lock(&self.fs, || self.say_waiting(store))
    }

    fn say_waiting(&self, store: &Store) {
        self.out.note(format_args!("another recant is at work in {}; waiting", store.path));
    }

    /// Refuses to drop what recant itself chose, unless a person can be asked or `-y` is given. `what`: which verb drops what. `shows`:
    /// the command that lists it.
    fn need_asking(&self, what: &str, shows: &str) -> Result<(), Error> {
        if self.yes || self.can_ask {
            return Ok(());
        }
        let problem = Error::new(Kind::Usage, format!("{what}, and there is no terminal to ask at"));
        Err(problem.with_remedy(format!("{shows} shows it; -y goes on")))
    }

    /// Asks, if a person sits at a terminal and `-y` was not given. Without a terminal the verb alone is enough.
    fn confirm(&self, question: &str) -> Result<(), Error> {
        if self.yes || !self.can_ask { Ok(()) } else { self.ask(question) }
    }

    /// Asks the person at the terminal.
    fn ask(&self, question: &str) -> Result<(), Error> {
        let mut answer = String::new();
        self.out.ask(question);
        // If the question or the answer is lost, it counts as no.
        drop(std::io::stdin().read_line(&mut answer));
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Error::refused("not confirmed").with_remedy("-y skips the question")),
        }
    }
}

/// Refuses to work inside a run that has no store of its own: the other one is hidden there, and a command must not decide what is on the
/// tree.
fn refuse_without_store() -> Result<(), Error> {
    match capture() {
        Some(inside @ Inside { store: None, .. }) => Err(is_inside(inside)),
        _ => Ok(()),
    }
}

fn is_inside(inside: &Inside) -> Error {
    let session = &inside.session;
    Error::refused(format!("this is inside the run of session {session}, where only 'recant run' can be used"))
        .with_remedy("do it outside, when the run has ended")
}

/// The sessions among those with a journal whose operation was cut off. While an operation runs, its lock is held.
fn cut_off(store: &Store, mut journaled: Vec<Id>) -> Vec<Id> {
    journaled.retain(|id| !store.session(id).is_ok_and(|session| is_held(&session)));
    journaled
}

/// True if another recant has the session's lock.
fn is_held(session: &Session) -> bool {
    session.is_held().is_ok_and(|held| held)
}

fn at_work(id: &Id) -> Error {
    let error = Error::new(Kind::Busy, format!("another recant was at work in session {id} meanwhile"));
    error.with_state("nothing was changed; try again when it has ended")
}

/// The facts about a session that a listing shows beside its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    word: &'static str,
    imported: bool,
    /// Its run has ended and waits to be collected.
    ended: bool,
    failed: Option<Failed>,
    /// Its content may not have reached the disk.
    unsynced: bool,
    interrupted: bool,
    /// The number of paths where an interrupted operation could not be taken back.
    left: usize,
    counts: Counts,
}

impl Standing {
    fn of(store: &Store, header: &Header, cut_off: &[Id]) -> Result<Self, Error> {
        let interrupted = cut_off.contains(&header.id);
        let (word, imported) = (header.status().word(), header.imported.is_some());
        let (unsynced, left) = (header.unsynced, header.left.len());
        let failed = header.failed.filter(|_| header.status() == Status::Pending);
        let counts = header.counts;
        let mut standing = Self { word, imported, ended: false, failed, unsynced, interrupted, left, counts };
        if header.uncollected && header.discarded.is_none() {
            let session = store.session(&header.id)?;
            if !session.is_held()? {
                (standing.word, standing.ended) = ("pending", true);
                standing.failed = Failed::of(None);
                standing.unsynced |= session.of_another_boot()?;
            }
        }
        Ok(standing)
    }

    /// The status for people, with its conditions.
    fn text(self) -> String {
        let mut text = self.word.replace('_', " ");
        let left = format!("{} left", self.left);
        let failed = self.failed.map(Failed::text).unwrap_or_default();
        let conditions = [
            (self.failed.is_some(), &*failed),
            (self.imported, "imported"),
            (self.unsynced, "unsynced"),
            (self.interrupted, "interrupted"),
            (self.left > 0, &*left),
        ];
        for (on, word) in conditions {
            if on {
                text.push_str(", ");
                text.push_str(word);
            }
        }
        text + &but(self.counts)
    }
}

/// The number of changes of a committed session that are not on the tree, after its status: `, 2 of 30 taken back`; empty where all are.
fn but(counts: Counts) -> String {
    if counts.inside == 0 {
        return String::new();
    }
    let rest = [(counts.taken_back(), "taken back"), (counts.never_in(), "still held")].into_iter().filter(|(n, _)| *n > 0);
    let all = text::grouped(counts.changes);
    rest.map(|(n, what)| format!(", {} of {all} {what}", text::grouped(n))).collect()
}

fn cwd() -> Result<PathBuf, Error> {
    std::env::current_dir().map_err(|error| {
        let problem = Error::refused(format!("cannot find the working directory: {}", crate::error::reason(&error)));
        problem.with_remedy("go to a directory that is there, or give absolute paths")
    })
}
