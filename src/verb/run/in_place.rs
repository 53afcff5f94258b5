//! `run --in`: a command on the real tree, between two snapshots of the directories that it may write to. The differences become a committed
//! session.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::caches::Caches;
use super::collect_in_place;
use super::collect_in_place::collect;
use super::collect_in_place::is_gone;
use super::collect_in_place::take;
use super::collect_in_place::{Collected, Watched};
use super::notice::{InPlace, Notice};
use super::value::{Beyond, Fate, Of, Ran};
use crate::capture::{Command, Confinement, Event, Ground, Linger, Network, run_command};
use crate::engine::LeftPath;
use crate::error::{Error, Reason};
use crate::fs::{AbsPath, OnSignal, absolute, interrupt};
use crate::session::{Arg, Directory, Ending, Held, Id, Store, Wanted as Begin, run_in_place};
use crate::snapshot::{RECANTIGNORE, Rules, Series, Source, Vcs, choose_directory, manifest, whole};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;

/// A command that is to run on the real tree.
pub struct Wanted<'a> {
    pub argv: Vec<OsString>,
    /// A name for its session.
    pub name: Option<&'a str>,
    /// The directories that it may write to, and whose changes are recorded.
    pub directories: Vec<AbsPath>,
    /// Further paths that it may write to.
    pub passes: Vec<PathBuf>,
    pub linger: Linger,
    pub network: Network,
}

/// Runs a command, and makes a committed session of what it changed.
///
/// # Errors
/// [`Reason::NotStarted`]: it was not started, and why. Else it ran, and no session could be made of what it changed.
pub fn run(desk: &Desk, wanted: &Wanted<'_>) -> Result<Ran, Error> {
    let (directories, store) = allowed(desk, wanted).map_err(error::not_started)?;
    // Signals are noted before the first directory is made for the command, so that none is left behind.
    let noting = interrupt::note(OnSignal::Stops);
    let caches = Caches::open(desk, &directories, &store);
    drop(noting);
    let ran = run_beside(desk, wanted, directories, &caches);
    caches.made.close(desk);
    ran
}

/// The directories that are snapshotted, in path order, and the store's path.
fn allowed(desk: &Desk, wanted: &Wanted<'_>) -> Result<(Vec<AbsPath>, AbsPath), Error> {
    let mut directories = wanted.directories.clone();
    directories.sort();
    // A directory below another one is in that one's snapshots.
    directories.dedup_by(|later, kept| later.is_under(kept));
    let home = dirs::home_dir().and_then(|home| absolute(&home).ok());
    directories.iter().try_for_each(|directory| choose_directory::refuse_broad(directory, home.as_ref()))?;
    Ok((directories, desk.store_path()?))
}

/// Runs the command with the caches open.
fn run_beside(desk: &Desk, wanted: &Wanted<'_>, directories: Vec<AbsPath>, caches: &Caches) -> Result<Ran, Error> {
    // A signal stops it before the command, which then gets it itself.
    let noting = interrupt::note(OnSignal::Stops);
    let Ready { store, watched, unread, confinement, held } =
        begin(desk, wanted, directories, caches).map_err(error::not_started)?;
    let command = Command { linger: wanted.linger, network: wanted.network, ..Command::new(wanted.argv.clone()) };
    let mut hear = |event: Event| desk.caller.tell(Fact::Run(Notice::Event { event: &event, is_confined: true }));
    let ending = match run_command(Ground::Confined(&confinement), &command, &mut hear) {
        Ok(ended) => ended.exit,
        Err(why) => {
            collect_in_place::end(desk, &store, held);
            return Err(error::not_started(why));
        }
    };
    drop(noting);
    // The changes are on the tree: the session for their rollback is made even if a signal came.
    let noting = interrupt::note(OnSignal::GoesOn);
    let id = held.id.clone();
    let command = collect_in_place::Command { held, argv: &wanted.argv, name: wanted.name, named: &unread };
    let collected = collect(desk, &store, &watched, command);
    drop(noting);
    let Collected { session, left } = collected.map_err(|why| {
        let befores = watched.iter().map(|one| (one.before, &one.series.directory));
        error::not_collected(why, &id, befores)
    })?;
    Ok(ran(session, ending, left, !confinement.has_no_network()))
}

fn ran(session: Option<(Id, u64)>, ending: Ending, left: Vec<LeftPath>, network: bool) -> Ran {
    let (session, changes) = session.unzip();
    Ran {
        stopped: None,
        fate: if session.is_some() { Fate::Real } else { Fate::Nothing },
        session,
        step: None,
        ending,
        changes: changes.unwrap_or(0),
        dangerous: Vec::new(),
        beyond_files: Beyond { network, ..Beyond::default() },
        warnings: Vec::new(),
        dropped: 0,
        too_much: None,
        news: changes.unwrap_or(0),
        sorts: Default::default(),
        of: Of::New,
        left,
    }
}

/// A run that is ready to start.
struct Ready {
    store: Store,
    watched: Vec<Watched>,
    /// The paths that the snapshots could not read, which are named by now.
    unread: HashSet<AbsPath>,
    confinement: Confinement,
    /// The record of the run, until its session is made.
    held: Held,
}

fn begin(desk: &Desk, wanted: &Wanted<'_>, directories: Vec<AbsPath>, caches: &Caches) -> Result<Ready, Error> {
    refuse_missing(&wanted.passes)?;
    let dirs = directories.iter().map(|directory| directory.as_path().to_path_buf());
    let asked: Vec<PathBuf> = dirs.chain(wanted.passes.iter().cloned()).collect();
    let confinement = Confinement::make(&asked, &caches.paths, wanted.network)?;
    let path = desk.store_path()?;
    if let Some(place) = confinement.opens(&path) {
        return Err(error::open_store(&path, place));
    }
    let store = desk.made_store()?;
    desk.prepare_to_change(&store)?;
    let (mut watched, mut unread) = (Vec::new(), HashSet::new());
    for directory in &directories {
        let (one, paths) = watch(desk, &store, directory, &wanted.argv)?;
        watched.push(one);
        unread.extend(paths);
    }
    desk.caller.tell(Fact::Run(Notice::InPlace(InPlace {
        directories: directories.iter().collect(),
        confinement: &confinement,
        ignored: ignored(&watched)?,
    })));
    let held = record(desk, &store, wanted, &watched, caches)?;
    Ok(Ready { store, watched, unread, confinement, held })
}

/// Refuses a path that is missing. It is not made, as it may mean a file or a directory.
fn refuse_missing(passes: &[PathBuf]) -> Result<(), Error> {
    let missing = |path: &&PathBuf| matches!(path.symlink_metadata(), Err(error) if is_gone(&error));
    passes.iter().find(missing).map_or(Ok(()), |missing| Err(error::no_pass(missing)))
}

/// Takes the snapshot of a directory before the command; returns also the paths that it could not read, which are told.
fn watch(desk: &Desk, store: &Store, directory: &AbsPath, argv: &[OsString]) -> Result<(Watched, Vec<AbsPath>), Error> {
    let series = Series::create(&desk.fs, store, directory)?;
    let limit = desk.config.snapshot_max_files.value;
    // The command itself may commit: version control is in the snapshot.
    let rules = Source::Found(Rules { vcs: Vcs::Kept, ..Rules::default() });
    let made = take(desk, store, &series, ("before", rules, Some(limit)), argv).map_err(|why| match why.reason() {
        Some(Reason::TooMany) => error::over_limit(why, limit),
        _ => why,
    })?;
    let left = |(path, why): &(AbsPath, String)| Ok(LeftPath { path: whole(directory, path)?, why: why.clone() });
    let unread = made.unread.iter().map(left).collect::<Result<Vec<_>, Error>>()?;
    if !unread.is_empty() {
        desk.caller.tell(Fact::Run(Notice::Unread(&unread)));
    }
    let paths = unread.into_iter().map(|left| left.path).collect();
    Ok((Watched { series, before: made.n, elsewhere: made.elsewhere }, paths))
}

/// The rule files that keep something out of the session. No rollback takes such changes back.
fn ignored(watched: &[Watched]) -> Result<Vec<AbsPath>, Error> {
    let mut found = Vec::new();
    for Watched { series, before, .. } in watched {
        let rules = manifest::rules(&series.dir, *before)?;
        for file in rules.files.iter().filter(|file| file.name == RECANTIGNORE) {
            let directory = whole(&series.directory, &file.directory)?;
            found.extend(directory.join(RECANTIGNORE.as_bytes()));
        }
    }
    Ok(found)
}

/// Records the run, durably, so that a session is made of it if recant is killed.
fn record(desk: &Desk, store: &Store, wanted: &Wanted<'_>, watched: &[Watched], caches: &Caches) -> Result<Held, Error> {
    let directory = |Watched { series, before, elsewhere }: &Watched| {
        let taken = series.summary(*before)?.head.time;
        Directory::new(&series.directory, *before, taken, elsewhere)
    };
    let directories = watched.iter().map(directory).collect::<Result<_, Error>>()?;
    let argv = wanted.argv.iter().map(|word| Arg(word.as_bytes().to_vec())).collect();
    let made = caches.made.dirs().map(|dir: &Path| Arg(dir.as_os_str().as_bytes().to_vec())).collect();
    run_in_place::begin_run(&desk.fs, store, Begin { name: wanted.name, argv, directories, made })
}
