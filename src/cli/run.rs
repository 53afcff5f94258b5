//! `run` and `shell`: a command whose file changes are held in a session; and collecting what a killed run left.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args;
use super::problem::Problem;
use super::show::sort_text;
use super::{Call, Ended, apply, text};
use crate::capture::collect::{self, Collected, Facts};
use crate::capture::inside;
use crate::capture::plan::{Pass, Plan, Request, Route, working_folder};
use crate::capture::run::{self as capture, Command, Event, Exit, Linger};
use crate::error::{At, Kind};
use crate::fs::dir::Dir;
use crate::session::change::{Change, Sort};
use crate::session::header::{Origin, Status};
use crate::session::id::Id;
use crate::session::run::{Arg, Ending, Run, boot_id};
use crate::session::store::{Locked, Store};

/// The last line of standard error with `--json`: `{"schema":1,"session":…,"result":…,"ending":{…},"changes":n,…}`.
#[derive(Serialize)]
struct Document<'a> {
    /// `null` where nothing is held: no changes, or discarded.
    session: Option<&'a Id>,
    /// pending, nothing, committed, discarded, or how the commit ended.
    result: &'static str,
    ending: Ending,
    changes: u64,
    warnings: &'a [String],
}

/// What `run` and `shell` have in common.
struct Wanted<'a> {
    argv: Vec<OsString>,
    name: Option<&'a str>,
    session: Option<&'a str>,
    passes: &'a [PathBuf],
    hide: &'a [PathBuf],
    linger: Linger,
}

/// A run that is over and collected.
struct Over {
    exit: Exit,
    changes: Vec<(Sort, u64)>,
    warnings: Vec<String>,
}

impl Over {
    fn count(&self) -> u64 {
        self.changes.iter().map(|(_, n)| n).sum()
    }
}

/// Runs a command with its changes held.
pub fn run(call: &Call, args: &args::Run) -> Result<Ended, Problem> {
    if let Some(id) = inside::inside() {
        return run_bare(call, &id, &args.command);
    }
    let wanted = Wanted {
        argv: args.command.clone(),
        name: args.name.as_deref(),
        session: args.session.as_deref(),
        passes: &args.pass,
        hide: &args.hide,
        linger: if args.no_wait { Linger::Kill } else { Linger::Wait },
    };
    let mut file = args.id_file.as_deref().map(|path| IdFile::open(call, path)).transpose()?;
    let (id, over) = carry_out(call, &wanted, |id| file.as_mut().map_or(Ok(()), |file| file.write(call, "id", id.as_str())))?;
    let ended = after(call, args, id.as_ref(), &over);
    let (result, ended) = match ended {
        Ok((result, ended)) => (result, Ok(ended)),
        Err(problem) => (if problem.kind == Kind::Conflict { "conflict" } else { "failed" }, Err(problem)),
    };
    if let Some(file) = &mut file {
        file.write(call, "result", result)?;
    }
    if !call.out.is_text() {
        let kept = id.as_ref().filter(|_| result != "discarded");
        let (changes, warnings) = (over.count(), &over.warnings[..]);
        call.out.document(&Document { session: kept, result, ending: ending(over.exit), changes, warnings });
    }
    ended
}

/// The user's shell in a session: a new one, or one that goes on.
pub fn shell(call: &Call, args: &args::Shell) -> Result<Ended, Problem> {
    if let Some(id) = inside::inside() {
        return Err(Problem::refused(format!("this is the shell of session {id} already, or of a command in it")));
    }
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    let session = args.id.as_deref();
    let wanted = Wanted { argv: vec![shell], name: None, session, passes: &[], hide: &[], linger: Linger::Wait };
    let (id, over) = carry_out(call, &wanted, |id| {
        call.out.note(format_args!("what changes in this shell is held in session {id}; exit ends it"));
        Ok(())
    })?;
    call.out.divert();
    say_held(call, id.as_ref(), &over);
    Ok(command_status(over.exit))
}

/// Inside a run the command is captured already.
fn run_bare(call: &Call, id: &str, argv: &[OsString]) -> Result<Ended, Problem> {
    call.out.note(format_args!("session {id} captures this already: the command is just run"));
    let (program, args) = argv.split_first().ok_or_else(|| Problem::new(Kind::Usage, "no command"))?;
    let error = std::process::Command::new(program).args(args).exec();
    let kind = if error.kind() == std::io::ErrorKind::NotFound { Kind::NotFound } else { Kind::NotExecutable };
    Err(Problem::new(kind, format!("{}: {}", program.display(), crate::error::reason(&error))))
}

/// Runs and collects. Gives the session, where it holds something.
fn carry_out(
    call: &Call,
    wanted: &Wanted,
    begun: impl FnOnce(&Id) -> Result<(), Problem>,
) -> Result<(Option<Id>, Over), Problem> {
    let store = call.made_store()?;
    call.prepare_to_change(&store)?;
    let mut session = match wanted.session {
        Some(key) => to_go_on(call, key)?,
        None => store.begin(&call.fs, Origin::Captured, wanted.name)?,
    };
    let id = session.id().clone();
    let before = session.header.clone();
    let captured = begun(&id).and_then(|()| captured(call, &store, &mut session, wanted));
    let over = match captured {
        Ok(over) => over,
        // Nothing was started, so there is nothing to collect; what was begun for it goes.
        Err(problem) => {
            if wanted.session.is_none() {
                store.remove_session(&call.fs, session)?;
            } else if session.header.uncollected {
                session.save(&call.fs, before)?;
            }
            return Err(problem);
        }
    };
    if over.count() > 0 || wanted.session.is_some() {
        return Ok((Some(id), over));
    }
    store.remove_session(&call.fs, session)?;
    Ok((None, over))
}

/// A session that a further run can go on in.
fn to_go_on(call: &Call, key: &str) -> Result<Locked, Problem> {
    let (_, session) = call.locked(key)?;
    let not_now = |why: &str| {
        let remedy = Some("recant run -- COMMAND begins another".into());
        Err(crate::session::Error::NotNow { id: session.id().to_string(), why: why.into(), remedy }.into())
    };
    if session.header.origin != Origin::Captured {
        return not_now("its changes were staged by hand; only one that came from a run can go on");
    }
    if session.header.status() != Status::Pending {
        return not_now(&format!("it is {}; only a pending one can go on", session.header.status().word().replace('_', " ")));
    }
    Ok(session)
}

fn captured(call: &Call, store: &Store, session: &mut Locked, wanted: &Wanted) -> Result<Over, Problem> {
    let cwd = working_folder()?;
    let config = &call.config;
    let pass = |path: &PathBuf, why: &str| Pass { path: path.clone(), why: why.into() };
    let mut passes: Vec<Pass> = wanted.passes.iter().map(|path| pass(path, "--pass")).collect();
    passes.extend(config.pass.value.iter().map(|path| pass(path, "capture.pass")));
    if let Some(socket) = std::env::var_os("SSH_AUTH_SOCK").filter(|path| Path::new(path).exists()) {
        passes.push(pass(&socket.into(), "$SSH_AUTH_SOCK"));
    }
    let plan = Plan::make(&Request {
        cwd: cwd.clone(),
        store: store.path.clone(),
        home: dirs::home_dir(),
        also: config.also.value.clone(),
        passes,
        hide: wanted.hide.iter().chain(&config.hide.value).cloned().collect(),
        program: wanted.argv.first().cloned().unwrap_or_default(),
        tag: session.id().to_string(),
    })?;
    plan.warnings().iter().for_each(|warning| call.out.note(warning));
    let coverage = plan.coverage().to_vec();
    let known = session.run()?.map_or(Vec::new(), |run| run.places);
    let held = held(session)?;
    let laid = plan.lay_out(&call.fs, &held, &known)?;
    let mut run = Run {
        argv: wanted.argv.iter().map(|word| Arg(word.as_bytes().to_vec())).collect(),
        cwd,
        uid: rustix::process::geteuid().as_raw(),
        started: crate::fs::now(),
        ending: None,
        boot: boot_id(),
        places: laid.places(),
        coverage,
        notes: Vec::new(),
        extra: Default::default(),
    };
    session.save_run(&call.fs, &run)?;
    let mut header = session.header.clone();
    header.uncollected = true;
    header.command = Some(start_of(&wanted.argv));
    session.save(&call.fs, header)?;
    let command = Command { argv: wanted.argv.clone(), env: Vec::new(), linger: wanted.linger };
    let ended = capture::run(&laid, &command, &mut |Event::Lingering(names)| {
        call.out.note(format_args!("the command has ended; still waiting for {}", names.join(", ")));
    })?;
    run.started = ended.started;
    run.ending = Some(ending(ended.exit));
    let collected = collect::finish(&call.fs, &laid, &held, &store.path, ended.started)?;
    let (changes, warnings) = keep(call, session, run, collected, false)?;
    Ok(Over { exit: ended.exit, changes, warnings })
}

/// Collects the run of a session whose lock was found free: it, or its recant, was killed.
pub fn collect_ended(call: &Call, store: &Store, session: &mut Locked) -> Result<(), Problem> {
    let missing =
        || crate::session::Error::Damaged { path: session.dir.at(b"run.json").to_string(), why: "it is missing".into() };
    let run = session.run()?.ok_or_else(missing)?;
    let elsewhere = run.boot != boot_id();
    let held = held(session)?;
    let facts = Facts { held: &held, places: &run.places, store: &store.path, started: run.started, route: Route::of(run.uid) };
    let collected = collect::collect(&facts, &call.fs)?;
    // D7: the uppers are volatile overlays', nothing of them was synced.
    call.fs.sync_fs(&held).at("sync", held.path().display())?;
    collect::clear_work(&call.fs, &held, &run.places)?;
    let (changes, _) = keep(call, session, run, collected, elsewhere)?;
    let count = text::count(changes.iter().map(|(_, n)| n).sum(), "change");
    call.out.note(format_args!("session {}: its run had ended without being collected: {count}", session.id()));
    Ok(())
}

/// Writes what a run left into the session: the changes, then the header that counts them.
fn keep(
    call: &Call,
    session: &mut Locked,
    mut run: Run,
    collected: Collected,
    unsynced: bool,
) -> Result<(Vec<(Sort, u64)>, Vec<String>), Problem> {
    let changes = collected.changes;
    let lines = (changes.list.len() + changes.folder_times.len()) as u64;
    session.rewrite(&call.fs, &changes, lines)?;
    run.notes = collected.warnings.clone();
    session.save_run(&call.fs, &run)?;
    let mut header = session.header.clone();
    header.uncollected = false;
    header.unsynced |= unsynced;
    header.lines = lines;
    header.counts.changes = changes.list.len() as u64;
    header.sizes.held = bytes_below(&session.dir.path().join("held/upper"));
    session.save(&call.fs, header)?;
    Ok((counted(&changes.list), collected.warnings))
}

fn counted(changes: &[Change]) -> Vec<(Sort, u64)> {
    let sorts = [Sort::Created, Sort::Modified, Sort::Deleted, Sort::Metadata, Sort::Times];
    let count = |sort| changes.iter().filter(|change| change.sort() == sort).count() as u64;
    sorts.into_iter().map(|sort| (sort, count(sort))).filter(|(_, n)| *n > 0).collect()
}

fn bytes_below(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let metas = walkdir::WalkDir::new(folder).into_iter().filter_map(|entry| entry.ok()?.metadata().ok());
    metas.filter(std::fs::Metadata::is_file).map(|meta| meta.blocks() * 512).sum()
}

fn held(session: &Locked) -> Result<Dir, Problem> {
    Ok(session.dir.open_below(b"held").at("open the folder", session.dir.at(b"held"))?)
}

/// At most 200 characters of the command line.
fn start_of(argv: &[OsString]) -> String {
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ").chars().take(200).collect()
}

fn ending(exit: Exit) -> Ending {
    match exit {
        Exit::Code(code) => Ending::Exited(code.into()),
        Exit::Signal(signal) => Ending::Signaled(signal),
    }
}

fn command_status(exit: Exit) -> Ended {
    Ended::Command(match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128_u8.saturating_add(u8::try_from(signal).unwrap_or(127)),
    })
}

/// What follows the run: `--commit`, `--discard`, or two lines. Standard output is the command's: all goes to standard error.
fn after(call: &Call, args: &args::Run, id: Option<&Id>, over: &Over) -> Result<(&'static str, Ended), Problem> {
    call.out.divert();
    over.warnings.iter().for_each(|warning| call.out.note(warning));
    let own = command_status(over.exit);
    let Some(id) = id.filter(|_| over.count() > 0) else {
        call.out.note("nothing was changed");
        return Ok(("nothing", own));
    };
    if args.discard {
        let (store, session) = call.locked(id.as_str())?;
        store.remove_session(&call.fs, session)?;
        call.out.note(format_args!("{} discarded", text::count(over.count(), "change")));
        return Ok(("discarded", own));
    }
    say_held(call, Some(id), over);
    if !args.commit {
        return Ok(("pending", own));
    }
    if over.exit != Exit::Code(0) {
        call.out.note("not committed, as the command failed");
        return Ok(("pending", own));
    }
    let commit = args::Commit {
        id: id.to_string(),
        paths: Vec::new(),
        dry_run: false,
        force: false,
        on_limit: args.on_limit,
        accept_unsynced: false,
    };
    let ended = apply::commit(call, &commit)?;
    Ok(("committed", if ended == Ended::Done { own } else { ended }))
}

fn say_held(call: &Call, id: Option<&Id>, over: &Over) {
    let Some(id) = id.filter(|_| over.count() > 0) else {
        call.out.note("nothing was changed");
        return;
    };
    let parts: Vec<String> = over.changes.iter().map(|(sort, n)| format!("{n} {}", sort_text(*sort))).collect();
    let tail = id.tail();
    call.out.note(format_args!("session {id} holds {}", parts.join(", ")));
    call.out.note(format_args!("look: recant diff {tail}; make it real: recant commit {tail}; drop it: recant discard {tail}"));
}

/// `--id-file`: a line when the session begins, and one at the end.
struct IdFile {
    file: File,
    path: PathBuf,
}

impl IdFile {
    fn open(call: &Call, path: &Path) -> Result<Self, Problem> {
        let path = super::cwd()?.join(path);
        let bad = || Problem::refused(format!("{}: not a file's path", path.display()));
        let (parent, name) = (path.parent().ok_or_else(bad)?, path.file_name().ok_or_else(bad)?);
        let folder = Dir::open(parent).at("open the folder", parent.display())?;
        let at = folder.at(name.as_bytes());
        let file = call.fs.append(at).at("open", at)?;
        call.fs.set_size(&file, 0, &path).at("empty", at)?;
        Ok(Self { file, path })
    }

    fn write(&mut self, call: &Call, key: &str, value: &str) -> Result<(), Problem> {
        let line = format!("{key}={value}\n");
        Ok(call.fs.write(&self.file, line.as_bytes(), &self.path).at("write", self.path.display())?)
    }
}
