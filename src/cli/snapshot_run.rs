//! `run --in`: a command on the real tree, between two snapshots of the directories that it may write to. The differences become a
//! committed session.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::caches::Caches;
use super::run::{RunDocument, not_started, status_of};
use super::snapshot_collect::{Collected, Ran, Watched, collect, end, is_gone, take};
use crate::capture::run::command::{Command, Exit, Linger, Network};
use crate::capture::run::confine::Confinement;
use crate::capture::run::ground::Ground;
use crate::capture::run::start::Event;
use crate::capture::run::start::run_on;
use crate::error::{Error, Kind, Reason, command, recant, shell_word};
use crate::face::args::Run;
use crate::face::call::Call;
use crate::face::directory::directory;
use crate::face::ended::Ended;
use crate::face::figures;
use crate::fs::interrupt::{self, Noting};
use crate::fs::path::AbsPath;
use crate::remedy::{shell, words};
use crate::session::id::Id;
use crate::session::run::{Arg, Ending};
use crate::session::running::{self, Directory, Held, Wanted};
use crate::session::store::Store;
use crate::snapshot::create::Made;
use crate::snapshot::manifest;
use crate::snapshot::place;
use crate::snapshot::rule_source::Source;
use crate::snapshot::rules::{RECANTIGNORE, Rules, Vcs};
use crate::snapshot::series::Series;

/// Runs the command, and exits with its status.
pub fn run_in(call: &Call, args: &Run) -> Result<Ended, Error> {
    refuse_what_holds(args)?;
    let (directories, store) = match directories(args).and_then(|directories| Ok((directories, call.store_path()?))) {
        Ok(found) => found,
        Err(problem) => return Ok(not_started(&call.out, call.with_remedy(problem))),
    };
    // Signals are noted before the first directory is made for the command, so that none is left behind.
    let noting = interrupt::note(interrupt::Asked::Stops);
    let caches = Caches::open(call, &directories, &store);
    drop(noting);
    let ended = run_beside(call, args, directories, &caches);
    caches.close(call);
    ended
}

/// Runs the command with the caches open.
fn run_beside(call: &Call, args: &Run, directories: Vec<AbsPath>, caches: &Caches) -> Result<Ended, Error> {
    let begun = begin(call, args, directories, caches);
    let Begun { store, watched, unread, confinement, held, noting } = match begun {
        Ok(begun) => begun,
        Err(problem) => return Ok(not_started(&call.out, call.with_remedy(problem))),
    };
    let command = Command {
        argv: args.command.clone(),
        env: Vec::new(),
        linger: if args.no_wait { Linger::Kill } else { Linger::Wait },
        network: network(args),
        joins: false,
        keeps_before: false,
        max_size: None,
    };
    let mut hear = |event| match event {
        Event::Lingering(names) => {
            call.out.note(format_args!("waiting for what the command left running: {} (Ctrl-C ends it)", names.join(", ")));
        }
        Event::Uncovered(path, why) => call.out.warn(format_args!("{path}: {why}; it is read-only for the command")),
        Event::Closed(fd, path) => {
            call.out.warn(format_args!("descriptor {fd} ({path}) is closed for the command: it leads past the run"))
        }
        Event::NotFed(why) => call.out.warn(format_args!("the command's input could not be read to its end: {why}")),
        Event::NoGroups(why) => call.out.warn(format_args!("{why}: chgrp to a further group of yours fails in this run")),
        Event::SettingUp | Event::InMemory(_) => {}
    };
    let exit = match run_on(Ground::Confined(&confinement), &command, &mut hear) {
        Ok(ended) => ended.exit,
        Err(error) => {
            end(call, &store, held);
            return match error.kind() {
                Kind::NotFound | Kind::NotExecutable => Err(error),
                _ => Ok(not_started(&call.out, call.with_remedy(error))),
            };
        }
    };
    drop(noting);
    let status = status_of(exit);
    // The changes are on the tree: the session for their rollback is made even if a signal came.
    let noting = interrupt::note(interrupt::Asked::GoesOn);
    let id = held.id.clone();
    let ran = Ran { held, argv: &args.command, name: args.name.as_deref(), named: &unread };
    let collected = collect(call, &store, &watched, ran);
    drop(noting);
    let Collected { session, left } = collected.map_err(|problem| with_way_back(problem, &id, &watched))?;
    call.out.divert();
    let ending = match exit {
        Exit::Code(code) => Ending::Exited(code.into()),
        Exit::Signal(signal) => Ending::Signaled(signal),
    };
    let (id, changes) = session.as_ref().map_or((None, 0), |(id, changes)| (Some(id), *changes));
    if call.out.is_text() {
        match id {
            None => call.out.note("no file change"),
            Some(id) => {
                let tail = id.tail();
                call.out.note(format_args!("{} made, and committed as session {tail}", figures::count(changes, "change")));
                call.out.note(format_args!("{recant} diff {tail}    {recant} rollback {tail}", recant = recant()));
            }
        }
    } else {
        let result = if id.is_some() { "committed" } else { "nothing" };
        call.out.document(&RunDocument::confined(id, result, ending, changes, !confinement.has_no_network()));
    }
    // If something could not be recorded, that is no success.
    Ok(if !left.is_empty() && status == 0 { Ended::With(Kind::LeftOut) } else { Ended::Command(status) })
}

/// Runs `true` on the real tree as [`run_in`] would, confined to the working directory. Returns the error that kept it from working.
pub fn attempt_nothing() -> Option<Error> {
    let confinement = crate::face::place::cwd().and_then(|cwd| Confinement::make(&[cwd], &[], Network::Open));
    let confinement = match confinement {
        Ok(confinement) => confinement,
        Err(failed) => return Some(failed),
    };
    let (argv, network) = (vec!["true".into()], Network::Open);
    let command =
        Command { argv, env: Vec::new(), linger: Linger::Wait, network, joins: false, keeps_before: false, max_size: None };
    match run_on(Ground::Confined(&confinement), &command, &mut |_| ()) {
        // It got as far as the command.
        Ok(_) => None,
        Err(error) if matches!(error.kind(), Kind::NotFound | Kind::NotExecutable) => None,
        Err(error) => Some(error),
    }
}

/// Refuses options of a run that holds its changes, with the reason and the alternative.
fn refuse_what_holds(args: &Run) -> Result<(), Error> {
    let refused = [
        (args.session.is_some(), "--session", "nothing is held that it could go on from", "it makes a session of its own"),
        (args.commit, "--commit", "what it changes is on the tree at once", "leave it away: its session is committed already"),
        (args.discard, "--discard", "what it changes is on the tree at once", "recant rollback last takes it back"),
        (!args.hide.is_empty(), "--hide", "Landlock denies writing here, and hides nothing", "run without --in hides"),
        (
            !args.scratch.is_empty(),
            "--scratch",
            "what it changes is on the tree at once",
            "--pass PATH leaves a place out of the session",
        ),
        (
            args.max_size.is_some(),
            "--max-size",
            "there is no one place whose growth tells what it wrote",
            "a limit for each single file is ulimit -f",
        ),
    ];
    match refused.into_iter().find(|(is_asked, ..)| *is_asked) {
        None => Ok(()),
        Some((_, option, why, remedy)) => {
            let problem = Error::new(Kind::Usage, format!("{option} does not work with --in: {why}"));
            Err(problem.with_state("the command was not started; nothing was changed").with_remedy(remedy))
        }
    }
}

fn network(args: &Run) -> Network {
    if args.no_network { Network::None } else { Network::Open }
}

/// Adds that the session can still be made, and that the snapshots have what was there before in any case.
fn with_way_back(problem: Error, id: &Id, watched: &[Watched]) -> Error {
    let restore =
        |one: &Watched| command(format_args!("snapshot restore {} --with-vcs --dir {}", one.before, one.series.directory));
    let tries = command(format_args!("recover {id}")) + " tries again; else";
    let remedy = watched.iter().enumerate().fold(tries, |all, (i, one)| all + if i == 0 { " " } else { "; " } + restore(one));
    let state = "the command has run on the real tree; no session was made of what it changed".to_owned();
    problem.with_state(state).with_remedy(remedy)
}

/// A `run --in` that is ready to start.
struct Begun {
    store: Store,
    watched: Vec<Watched>,
    /// The paths that the snapshots could not read, which are named by now.
    unread: HashSet<AbsPath>,
    confinement: Confinement,
    /// The record of the run, until its session is made.
    held: Held,
    noting: Noting,
}

/// The directories that are snapshotted, in path order.
fn directories(args: &Run) -> Result<Vec<AbsPath>, Error> {
    let mut directories = args.inside.iter().map(|dir| directory(Some(dir))).collect::<Result<Vec<_>, _>>()?;
    directories.sort();
    // A directory below another one is in that one's snapshots.
    directories.dedup_by(|later, kept| later.is_under(kept));
    let home = crate::face::place::home();
    directories.iter().try_for_each(|directory| place::refuse_broad(directory, home.as_ref()))?;
    Ok(directories)
}

/// Refuses a `--pass` path that is missing. It is not made, as it may mean a file or a directory.
fn refuse_missing(passes: &[PathBuf]) -> Result<(), Error> {
    let missing = |path: &&PathBuf| matches!(path.symlink_metadata(), Err(error) if is_gone(&error));
    let Some(missing) = passes.iter().find(missing) else { return Ok(()) };
    let (path, word) = (missing.display(), shell_word(missing.as_os_str().as_bytes()));
    let problem = Error::refused(format!("--pass {path}: nothing is there that could be written to"));
    let remedy = "make the directory first: " + shell(format_args!("mkdir -p {word}"));
    Err(problem.with_path(path).with_remedy(remedy))
}

fn begin(call: &Call, args: &Run, directories: Vec<AbsPath>, caches: &Caches) -> Result<Begun, Error> {
    refuse_missing(&args.pass)?;
    let dirs = directories.iter().map(|directory| directory.as_path().to_path_buf());
    let asked: Vec<PathBuf> = dirs.chain(args.pass.iter().cloned()).collect();
    let confinement = Confinement::make(&asked, &caches.paths, network(args))?;
    refuse_open_store(&call.store_path()?, &confinement)?;
    let store = call.made_store()?;
    call.prepare_to_change(&store)?;
    let noting = interrupt::note(interrupt::Asked::Stops);
    let (mut watched, mut unread) = (Vec::new(), HashSet::new());
    for directory in directories {
        let series = Series::create(&call.fs, &store, &directory)?;
        let limit = Some(call.config.snapshot_max_files.value);
        // The command itself may commit: version control is in the snapshot.
        let rules = Source::Found(Rules { vcs: Vcs::Kept, ..Rules::default() });
        let before = take(call, &store, &series, ("before", rules), limit, &args.command);
        let made = before.map_err(|problem| with_limit(problem, limit))?;
        unread.extend(say_unread(call, &series.directory, &made)?);
        watched.push(Watched { series, before: made.n, elsewhere: made.elsewhere });
    }
    say_where(call, args, &watched, caches);
    say_ignored(call, &watched)?;
    if let Some(what) = confinement.network() {
        call.out.note(format_args!("--no-network: {what}"));
    }
    call.out.note(figures::filled(&format!("not denied elsewhere: {}", figures::list(&confinement.not_denied()))));
    let of = |watched: &Watched| -> Result<Directory, Error> {
        let Watched { series, before, elsewhere } = watched;
        let taken = series.summary(*before)?.head.time;
        Directory::new(&series.directory, *before, taken, elsewhere)
    };
    let directories = watched.iter().map(of).collect::<Result<_, _>>()?;
    let argv = args.command.iter().map(|word| Arg(word.as_bytes().to_vec())).collect();
    let made = caches.made.dirs().map(|dir| Arg(dir.as_os_str().as_bytes().to_vec())).collect();
    let held = running::begin(&call.fs, &store, Wanted { name: args.name.as_deref(), argv, directories, made })?;
    Ok(Begun { store, watched, unread, confinement, held, noting })
}

/// Says where the command may write, and which of that is in the session.
fn say_where(call: &Call, args: &Run, watched: &[Watched], caches: &Caches) {
    let directories: Vec<String> = watched.iter().map(|watched| call.out.place(&watched.series.directory)).collect();
    let passed = match &args.pass[..] {
        [] => None,
        [path] => Some(path.display().to_string()),
        paths => Some(format!("the {} paths of --pass", paths.len())),
    };
    let places: Vec<String> =
        directories.iter().cloned().chain(passed).chain(caches.words()).chain(["/tmp".to_owned()]).collect();
    let line = format!("on the real tree, writing to {} alone", figures::list(&places));
    call.out.note(figures::filled(&line));
    let only = format!("only what changes in {} is in the session and comes off again", figures::list(&directories));
    call.out.note(figures::filled(&only));
}

/// Names the rule files that keep something out of the session. No rollback takes such changes back.
fn say_ignored(call: &Call, watched: &[Watched]) -> Result<(), Error> {
    for Watched { series, before, .. } in watched {
        let rules = manifest::rules(&series.dir, *before)?;
        let mut files = rules.files.iter().filter(|file| file.name == RECANTIGNORE);
        let Some(first) = files.next() else { continue };
        let directory = call.out.place(&crate::snapshot::whole(&series.directory, &first.directory)?);
        let more = match files.count() {
            0 => String::new(),
            more => format!(", and what {} more of these files leave out", figures::grouped(more as u64)),
        };
        call.out.note(figures::filled(&format!("not in the session: what {directory}/{RECANTIGNORE} leaves out{more}")));
    }
    Ok(())
}

/// Adds the setting of the limit: a run has no option for it.
fn with_limit(error: Error, limit: Option<u64>) -> Error {
    let is_limit = error.reason() == Some(&Reason::TooMany);
    let problem = error;
    match limit.filter(|_| is_limit) {
        None => problem,
        Some(limit) => {
            let setting = words(format_args!("a higher limit is max_files under [snapshot] in the settings (now {limit}); "));
            problem.with_remedy(setting + command("config") + " names the file; or name a directory further down")
        }
    }
}

/// Refuses a store that the command could write to: Landlock cannot exempt a place below a writable directory.
fn refuse_open_store(store: &AbsPath, confinement: &Confinement) -> Result<(), Error> {
    let Some(place) = confinement.opens(store) else { return Ok(()) };
    let problem = Error::refused(format!("the store, {store}, lies where the command may write: {place}")).with_path(store);
    Err(problem.with_remedy("use another store: --store DIR, RECANT_STORE"))
}

/// Names what the snapshot could not read. Returns the paths.
fn say_unread(call: &Call, directory: &AbsPath, made: &Made) -> Result<Vec<AbsPath>, Error> {
    let paths = made.unread.iter().map(|(path, _)| crate::snapshot::whole(directory, path));
    let paths = paths.collect::<Result<Vec<_>, Error>>()?;
    let line = |(path, (_, why)): (&AbsPath, &(AbsPath, String))| format!("{path}: not in the snapshot: {why}");
    call.out.warn_each(paths.iter().zip(&made.unread).map(line));
    if !paths.is_empty() {
        call.out.warn("what happens there cannot be taken back");
    }
    Ok(paths)
}
