//! `run --in`: a command on the real tree, between two snapshots of the folders that it may write to. What differs becomes a
//! committed session.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use super::args::Run;
use super::begun::filled;
use super::caches::Caches;
use super::problem::Problem;
use super::run::{RunDocument, not_started, status_of};
use super::snapshot::{folder, retain, said, say_damaged};
use super::{Call, Ended, text};
use crate::capture::command::{Command, Exit, Linger, Network};
use crate::capture::confine::Confinement;
use crate::capture::error::Error as NotRun;
use crate::capture::ground::Ground;
use crate::capture::hold::start_of;
use crate::capture::run::{Event, run_on};
use crate::error::{Kind, recant};
use crate::fs::interrupt::{self, Noting};
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::session::run::Ending;
use crate::session::store::{Locked, Store};
use crate::snapshot::Error;
use crate::snapshot::committed::{self, Step};
use crate::snapshot::compare;
use crate::snapshot::create::{Asked, Made, create};
use crate::snapshot::manifest;
use crate::snapshot::place;
use crate::snapshot::rules::{RECANTIGNORE, Rules, Source, Vcs};
use crate::snapshot::series::Series;

/// A folder, and its snapshot from before.
struct Watched {
    series: Series,
    before: u64,
    /// Its [`Made::elsewhere`].
    elsewhere: HashSet<AbsPath>,
}

/// Runs the command, and exits as it does.
pub fn run_in(call: &Call, args: &Run) -> Result<Ended, Problem> {
    refuse_what_holds(args)?;
    let (folders, store) = match folders(args).and_then(|folders| Ok((folders, call.store_path()?))) {
        Ok(found) => found,
        Err(problem) => return Ok(not_started(&call.out, call.with_remedy(problem))),
    };
    // Noted from the first directory on that is made for the command: whoever asks for an end leaves none of them.
    let noting = interrupt::note(interrupt::Asked::Stops);
    let caches = Caches::open(call, &folders, &store);
    drop(noting);
    let ended = run_beside(call, args, folders, &caches);
    caches.close(call);
    ended
}

/// With the caches open.
fn run_beside(call: &Call, args: &Run, folders: Vec<AbsPath>, caches: &Caches) -> Result<Ended, Problem> {
    let begun = begin(call, args, folders, caches);
    let Begun { store, watched, confinement, noting } = match begun {
        Ok(begun) => begun,
        Err(problem) => return Ok(not_started(&call.out, call.with_remedy(problem))),
    };
    let command = Command {
        argv: args.command.clone(),
        env: Vec::new(),
        linger: if args.no_wait { Linger::Kill } else { Linger::Wait },
        network: network(args),
        max_size: None,
    };
    let mut hear = |event| match event {
        Event::Lingering(names) => {
            call.out.note(format_args!("waiting for what the command left running: {} (Ctrl-C ends it)", names.join(", ")));
        }
        Event::Uncovered(path, why) => call.out.warn(format_args!("{path}: {why}; it is read-only for the command")),
        Event::NotFed(why) => call.out.warn(format_args!("the command's input could not be read to its end: {why}")),
        Event::NoGroups(why) => call.out.warn(format_args!("{why}: chgrp to a further group of yours fails in this run")),
        Event::SettingUp | Event::InMemory(_) => {}
    };
    let exit = match run_on(Ground::Confined(&confinement), &command, &mut hear) {
        Ok(ended) => ended.exit,
        Err(error @ (NotRun::NotFound { .. } | NotRun::NotExecutable { .. })) => return Err(error.into()),
        Err(error) => return Ok(not_started(&call.out, call.with_remedy(error.into()))),
    };
    drop(noting);
    let status = status_of(exit);
    // What it has changed is on the tree: the session that takes it back is made whoever asks for an end.
    let noting = interrupt::note(interrupt::Asked::GoesOn);
    let collected = regain(call, &store, &watched).and_then(|()| collect(call, &store, &watched, args));
    drop(noting);
    let Collected { session, left } = collected.map_err(|problem| with_way_back(problem, &watched))?;
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
                call.out.note(format_args!("{} made, and committed as session {tail}", text::count(changes, "change")));
                call.out.note(format_args!("{recant} diff {tail}    {recant} rollback {tail}", recant = recant()));
            }
        }
    } else {
        let result = if id.is_some() { "committed" } else { "nothing" };
        call.out.document(&RunDocument::confined(id, result, ending, changes, !confinement.has_no_network()));
    }
    // What could not be recorded is never a success.
    Ok(if left && status == 0 { Ended::With(Kind::LeftOut) } else { Ended::Command(status) })
}

/// Runs `true` on the real tree as [`run_in`] would, confined to the working directory. Gives what kept it from working.
pub fn attempt_nothing() -> Result<Option<Problem>, Problem> {
    let confinement = match Confinement::make(&[super::cwd()?], &[], Network::Open) {
        Ok(confinement) => confinement,
        Err(error) => return Ok(Some(error.into())),
    };
    let (argv, network) = (vec!["true".into()], Network::Open);
    let command = Command { argv, env: Vec::new(), linger: Linger::Wait, network, max_size: None };
    match run_on(Ground::Confined(&confinement), &command, &mut |_| ()) {
        // It came as far as the command.
        Ok(_) | Err(NotRun::NotFound { .. } | NotRun::NotExecutable { .. }) => Ok(None),
        Err(error) => Ok(Some(error.into())),
    }
}

/// What became of a command's changes.
struct Collected {
    /// Its session and their number, where there are any.
    session: Option<(Id, u64)>,
    /// Some of what it may have changed is not known.
    left: bool,
}

/// What a run that holds its changes can do and one on the real tree cannot: with the reason, and what does it there.
fn refuse_what_holds(args: &Run) -> Result<(), Problem> {
    let refused = [
        (args.session.is_some(), "--session", "nothing is held that it could go on from", "it makes a session of its own"),
        (args.commit, "--commit", "what it changes is on the tree at once", "leave it away: its session is committed already"),
        (args.discard, "--discard", "what it changes is on the tree at once", "recant rollback last takes it back"),
        (args.id_file.is_some(), "--id-file", "there is no session before it has ended", "recant list --json names it"),
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
            let mut problem = Problem::new(Kind::Usage, format!("{option} cannot be had with --in: {why}"));
            problem.state = Some("the command was not started; nothing was changed".into());
            problem.remedy = Some(remedy.into());
            Err(problem)
        }
    }
}

fn network(args: &Run) -> Network {
    if args.no_network { Network::None } else { Network::Open }
}

/// What was there before is in a snapshot, whatever became of the rest.
fn with_way_back(problem: Problem, watched: &[Watched]) -> Problem {
    let ways = watched
        .iter()
        .map(|one| format!("{recant} snapshot restore {} --with-vcs --dir {}", one.before, one.series.folder, recant = recant()));
    let state = "the command has run on the real tree; no session was made of what it changed".to_owned();
    Problem { state: Some(state), remedy: Some(ways.collect::<Vec<_>>().join("; ")), ..problem }
}

/// What a run on the real tree begins with.
struct Begun {
    store: Store,
    watched: Vec<Watched>,
    confinement: Confinement,
    noting: Noting,
}

/// The directories that are snapshotted, in path order.
fn folders(args: &Run) -> Result<Vec<AbsPath>, Problem> {
    let mut folders = args.inside.iter().map(|dir| folder(Some(dir))).collect::<Result<Vec<_>, _>>()?;
    folders.sort();
    // What lies in another one is in its snapshots.
    folders.dedup_by(|later, kept| later.is_under(kept));
    let home = super::snapshot::home();
    folders.iter().try_for_each(|folder| place::refuse_broad(folder, home.as_ref()))?;
    Ok(folders)
}

/// Whether `--pass` means a file or a directory that is missing is not known, so that neither is made.
fn refuse_missing(passes: &[PathBuf]) -> Result<(), Problem> {
    let missing = |path: &&PathBuf| matches!(path.symlink_metadata(), Err(error) if is_gone(&error));
    let Some(path) = passes.iter().find(missing).map(|path| path.display()) else { return Ok(()) };
    let problem = Problem::refused(format!("--pass {path}: nothing is there that could be written to"));
    let remedy = format!("make the directory first: mkdir -p {path}");
    Err(problem.path(path).remedy(remedy))
}

fn begin(call: &Call, args: &Run, folders: Vec<AbsPath>, caches: &Caches) -> Result<Begun, Problem> {
    refuse_missing(&args.pass)?;
    let dirs: Vec<_> = folders.iter().map(|folder| folder.as_path().to_path_buf()).collect();
    let passes = [&args.pass[..], &caches.paths[..]].concat();
    let confinement = Confinement::make(&dirs, &passes, network(args))?;
    refuse_open_store(&call.store_path()?, &confinement)?;
    let store = call.made_store()?;
    call.prepare_to_change(&store)?;
    let noting = interrupt::note(interrupt::Asked::Stops);
    let mut watched = Vec::new();
    for folder in folders {
        let series = Series::create(&call.fs, &store, &folder)?;
        let limit = Some(call.config.snapshot_max_files.value);
        // The command itself may commit: nothing of version control is left out.
        let rules = Source::Found(Rules { vcs: Some(Vcs::Kept), ..Rules::default() });
        let before = take(call, &store, &series, ("before", rules), limit, &args.command);
        let made = before.map_err(|problem| with_limit(problem, limit))?;
        say_unread(call, &series.folder, &made)?;
        watched.push(Watched { series, before: made.n, elsewhere: made.elsewhere });
    }
    say_where(call, args, &watched, caches);
    say_ignored(call, &watched)?;
    if let Some(what) = confinement.network() {
        call.out.note(format_args!("--no-network: {what}"));
    }
    call.out.note(text::filled(&format!("not denied elsewhere: {}", text::list(&confinement.not_denied()))));
    Ok(Begun { store, watched, confinement, noting })
}

/// Says where the command may write, and what of that comes into the session.
fn say_where(call: &Call, args: &Run, watched: &[Watched], caches: &Caches) {
    let folders: Vec<String> = watched.iter().map(|watched| call.out.place(&watched.series.folder)).collect();
    let passed = match &args.pass[..] {
        [] => None,
        [path] => Some(path.display().to_string()),
        paths => Some(format!("the {} paths of --pass", paths.len())),
    };
    let places: Vec<String> = folders.iter().cloned().chain(passed).chain(caches.words()).chain(["/tmp".to_owned()]).collect();
    let line = format!("on the real tree, writing to {} alone", text::list(&places));
    call.out.note(text::filled(&line));
    let only = format!("only what changes in {} is in the session and comes off again", text::list(&folders));
    call.out.note(text::filled(&only));
}

/// Names the files by whose rules something stays out of the session: it is real, and no rollback takes it off.
fn say_ignored(call: &Call, watched: &[Watched]) -> Result<(), Problem> {
    for Watched { series, before, .. } in watched {
        let rules = manifest::rules(&series.dir, *before)?;
        let mut files = rules.files.iter().filter(|file| file.name == RECANTIGNORE);
        let Some(first) = files.next() else { continue };
        let folder = call.out.place(&crate::snapshot::whole(&series.folder, &first.folder)?);
        let more = match files.count() {
            0 => String::new(),
            more => format!(", and what {} more of these files leave out", text::grouped(more as u64)),
        };
        call.out.note(text::filled(&format!("not in the session: what {folder}/{RECANTIGNORE} leaves out{more}")));
    }
    Ok(())
}

/// A run has no options for what it takes of a folder.
fn with_limit(error: Error, limit: Option<u64>) -> Problem {
    let is_limit = matches!(error, Error::TooMany { .. });
    let problem = Problem::from(error);
    match limit.filter(|_| is_limit) {
        None => problem,
        Some(limit) => problem.remedy(format!("a higher limit is max_files under [snapshot] in the settings (now {limit}); {recant} config names the file; or name a folder further down", recant = recant())),
    }
}

/// What is kept for the way back has to be out of the command's reach: Landlock takes nothing out of a folder that may be written to.
fn refuse_open_store(store: &AbsPath, confinement: &Confinement) -> Result<(), Problem> {
    let Some(place) = confinement.opens(store) else { return Ok(()) };
    let problem = Problem::refused(format!("the store, {store}, lies where the command may write: {place}")).path(store);
    Err(problem.remedy("use another store: --store DIR, RECANT_STORE"))
}

fn take(
    call: &Call,
    store: &Store,
    series: &Series,
    (when, rules): (&str, Source),
    limit: Option<u64>,
    command: &[impl AsRef<OsStr>],
) -> Result<Made, Error> {
    let words: Vec<_> = command.iter().map(|word| word.as_ref().to_owned()).collect();
    let lock = series.lock(&call.fs)?;
    let message = Some(format!("{when}: {}", start_of(&words)));
    let asked = Asked { message, limit, if_changed: true, run: true, rules, ..Asked::default() };
    let made = create(&call.fs, &store.path, series, &lock, &asked)?;
    say_damaged(call, &made);
    Ok(made)
}

fn say_unread(call: &Call, folder: &AbsPath, made: &Made) -> Result<(), Problem> {
    for (path, why) in &made.unread {
        call.out.warn(format_args!(
            "{}: not in the snapshot: {why}; what happens there cannot be taken back",
            crate::snapshot::whole(folder, path)?
        ));
    }
    Ok(())
}

/// Landlock knows no modes: the command may have closed the store to its own user.
fn regain(call: &Call, store: &Store, watched: &[Watched]) -> Result<(), Problem> {
    let mut missing = store.regain(&call.fs)?;
    for Watched { series, .. } in watched {
        missing |= series.regain(&call.fs)?;
    }
    if missing {
        let line = format!("{}: the command took the owner's rights to the store away (chmod); they are set again", store.path);
        call.out.warn(format_args!("{}", text::filled(&line)));
    }
    Ok(())
}

/// Makes the session of what the command did.
fn collect(call: &Call, store: &Store, watched: &[Watched], args: &Run) -> Result<Collected, Problem> {
    let (mut steps, mut spared, mut left) = (Vec::new(), Vec::new(), false);
    for Watched { series, before, elsewhere } in watched {
        // What was left out before cannot be taken back: it is none of this, whatever the command made of the rules.
        let rules = manifest::rules(&series.dir, *before)?;
        // Of a folder that is gone with all that was in it there is none.
        let is_there = !matches!(series.folder.as_path().symlink_metadata(), Err(error) if is_gone(&error));
        // Whatever the command made of it is to be recorded: no limit.
        let after = || take(call, store, series, ("after", Source::Kept(rules)), None, &args.command);
        let after = is_there.then(after).transpose()?.map(|made| made.n);
        let mut compared = compare::between(series, *before, after, &[], true)?;
        compared.without_rewritten_indexes(series)?;
        // A file that was written in place left its folder's time, which a rollback will not.
        compared.only_times_that_change();
        left |= !compared.left.is_empty();
        for (path, why) in &compared.left {
            call.out.warn(format_args!("{}: {why}", crate::snapshot::whole(&series.folder, path)?));
        }
        steps.push(Step { series, compared, elsewhere });
        spared.push([Some(*before), after].into_iter().flatten().collect::<Vec<u64>>());
    }
    let count = steps.iter().map(|step| step.compared.differences.len() as u64).sum();
    let session = if count == 0 {
        None
    } else {
        let fill = |session: &mut Locked| committed::fill(&call.fs, &steps, session);
        let session = filled(call, store, args.name.as_deref(), start_of(&args.command), fill)?;
        Some((session.id().clone(), count))
    };
    for (Watched { series, .. }, spared) in watched.iter().zip(&spared) {
        let pruned = series.lock(&call.fs).map_err(Problem::from).and_then(|lock| retain(call, series, &lock, None, spared));
        let gone = said(call, series, pruned);
        if !gone.is_empty() {
            let count = text::count(gone.len() as u64, "old snapshot");
            call.out.note(format_args!("{count} pruned: snapshot.keep is {}", call.config.snapshot_keep.value));
        }
    }
    Ok(Collected { session, left })
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
