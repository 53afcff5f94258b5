//! recant holds the changes that a command, a script or an agent wants to make to files, shows them, commits them with a checkpoint of
//! what was there before, and rolls them back exactly.
//!
//! This is the library of the program `recant`, for programs that want sessions, checkpoints and snapshots inside. It needs Linux 5.15
//! or newer. It needs no root, prints nothing, asks nothing and reads no settings.
//!
//! - a store: [`Desk::open`];
//! - a session: [`begin`], [`stage`](stage()), [`list`](list()), [`show`](show()), [`patch`], [`discard`](discard());
//! - acts on the tree: [`commit`](commit()), [`rollback`](rollback()), [`redo`](redo()), of a [`Target`];
//! - snapshots of a directory: [`take_snapshot`], [`snapshots`], [`restore`];
//! - after a crash: [`recover`](recover()).
//!
//! These are the functions that the command line calls. Their values are what `--json` prints: each is `Serialize`, in the shape that
//! `docs/json.md` has, and has methods for what programs need most.
//!
//! # Example
//!
//! A change is held, tried, and committed. Then somebody edits the file. A rollback would lose that edit: it refuses, and names the path.
//!
//! ```
//! use std::path::Path;
//!
//! use recant::{Commit, Desk, Edit, Kind, Rollback, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let file = dir.path().canonicalize()?.join("app.conf");
//! std::fs::write(&file, "port = 80\n")?;
//!
//! // Held: the file is as it was.
//! let desk = Desk::open(dir.path().join("store"))?;
//! let session = recant::begin(&desk, Some("new-port"))?;
//! let mut content = "port = 8080\n".as_bytes();
//! let edit = Edit::Write { content: &mut content, source: "the new port", mode: None, over_directory: false };
//! recant::stage(&desk, session.id(), Path::new("/"), [(&*file, edit)], false)?;
//! assert_eq!(std::fs::read_to_string(&file)?, "port = 80\n");
//!
//! // Tried: what a commit would do. Conflicts would be an error.
//! let all = Target::all(session.id());
//! let would = recant::commit(&desk, &Commit::of(all.clone().dry_run()))?.expect("there is something to do");
//! assert_eq!(would.paths().collect::<Vec<_>>(), [(&*file, "modified")]);
//!
//! // Committed: all of it, or nothing.
//! recant::commit(&desk, &Commit::of(all.clone()))?;
//! assert_eq!(std::fs::read_to_string(&file)?, "port = 8080\n");
//!
//! // Somebody edits the file. A rollback says so, and changes nothing.
//! std::fs::write(&file, "port = 8080\nhost = db1\n")?;
//! let error = recant::rollback(&desk, &Rollback::of(all.clone())).expect_err("somebody has edited the file");
//! assert_eq!(error.kind(), Kind::Conflict);
//! assert_eq!(error.against()[0].path, file.to_str().unwrap());
//! assert_eq!(std::fs::read_to_string(&file)?, "port = 8080\nhost = db1\n");
//!
//! // The edit is undone, and the rollback goes. (`Rollback::force` would go on over it, and keep it in the store.)
//! std::fs::write(&file, "port = 8080\n")?;
//! recant::rollback(&desk, &Rollback::of(all))?;
//! assert_eq!(std::fs::read_to_string(&file)?, "port = 80\n");
//! # Ok(())
//! # }
//! ```
//!
//! A directory goes back to a snapshot:
//!
//! ```
//! use recant::{Desk, Restore, SnapshotRequest};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let project = dir.path().join("project");
//! std::fs::create_dir(&project)?;
//! std::fs::write(project.join("notes"), "first")?;
//!
//! let desk = Desk::open(dir.path().join("store"))?;
//! let taken = recant::take_snapshot(&desk, Some(&project), SnapshotRequest::of(Some("before the change")), None)?;
//! assert!(taken.n() == 0 && taken.left().count() == 0);
//!
//! std::fs::write(project.join("notes"), "second")?;
//! std::fs::write(project.join("more"), "")?;
//! let restored = recant::restore(&desk, &Restore::all(&project, "0"))?;
//! assert_eq!(restored.paths().count(), 2);
//! assert_eq!(std::fs::read_to_string(project.join("notes"))?, "first");
//! assert!(!project.join("more").exists());
//! # Ok(())
//! # }
//! ```
//!
//! Three programs are in `examples/`, and run as tests: `stage` (this, in a directory of yours), `snapshot` (a command between two
//! snapshots, taken back), and `held` (a command whose changes are held).
//!
//! # The store
//!
//! A store is a directory that you name; the library has no default. The program takes `--store`, else `RECANT_STORE`, else `store.path`
//! of its settings, else `recant` in the user's data directory (`$XDG_DATA_HOME`, `~/.local/share`). `recant status --json` prints the one
//! in use. Program and library may work in one store at the same time: what one begins, the other shows, commits and rolls back. Put it
//! on the file system of the files that change: then nothing is copied.
//!
//! # Paths
//!
//! The store's path is absolute. A function that takes paths of a session takes the directory that they are relative to, too; it matters to
//! relative paths alone. Links in their parents are followed, the last name is not.
//!
//! # Errors
//!
//! There is one type, [`Error`]. Decide by [`Error::kind`], never by the text:
//!
//! | [`Kind`] | means | what helps |
//! | --- | --- | --- |
//! | `Refused` | not done, nothing changed | the text and [`Error::remedy`] say what stands against it |
//! | `Conflict` | the tree does not hold what was expected; nothing changed | [`Error::against`] has the paths; [`Commit::force`] goes on |
//! | `LeftOut` | done, except for what [`Error::state`] names | go on, or tell the user |
//! | `Damaged` | content in the store is not what was put there; nothing changed | no second try helps |
//! | `Busy` | another thread or recant works in it; nothing changed | try again |
//! | `Stuck` | a cut-off operation can be neither finished nor undone now | later calls on that session say so, too |
//!
//! The other kinds are errors of the program alone.
//!
//! # Threads and locks
//!
//! A [`Desk`] is not `Sync`: each thread opens its own. Several desks work on one store at the same time. A call that changes something takes
//! the session's lock; if another has it, the call is refused at once (`Busy`). Calls on other sessions go on. Commits, rollbacks and
//! restores in one store come one after the other: they wait for the store's lock, for at most 10 s. The locks are those of the program, so
//! they hold between processes too. No lock is held between two calls: an act looks again at all that its dry run saw, and finds what
//! was changed since.
//!
//! # Durability
//!
//! 1. When a call has returned `Ok`, its effect survives a power cut.
//! 2. An operation that is cut off at any moment is afterwards whole or undone: the next call that changes something sees to it.
//! 3. What a commit replaces or deletes lies whole in the store before it leaves the tree, until the session is pruned.
//!
//! # What is not in it
//!
//! - **Running commands with their changes held.** `recant run` forks, puts the child into new namespaces, and stands between it and the
//!   kernel until it ends. A process with several threads cannot do that safely, and a library does not know which threads there are. Start
//!   the program, and go on with the session that it made: the example `held` does.
//! - Other machines (`recant -H`), moving sessions (`session export`, `import`), steps and forks, merging, undo, and pruning.
//! - Settings: the defaults hold, whatever the user's file says. What they decide for people (`commit.deny`, no commits by agents) does not
//!   apply. Only the program rolls back a commit in time that nobody confirms (`--confirm-within`).
//!
//! For these use the program with `--json`: every verb has it, and `docs/json.md` says what each prints.
//!
//! # Features
//!
//! | feature | default | for |
//! | --- | --- | --- |
//! | `crash-points` | off | recant's own tests alone: lets them stop, fail or act before any step that changes a file. Never in a release |
//!
//! There is no other: program and library are one crate, and what users choose are settings.
#![deny(missing_docs)]

// The rooms, and the way of the data: capture or stage → changes → plan → journal → apply → settle → report.
// docs/ARCHITECTURE.md says what each room does, and which others it may use.
mod agent;
mod capture;
mod checkpoint;
mod commit;
mod compare;
mod engine;
mod error;
mod face;
mod fs;
mod moving;
mod proxy;
mod remedy;
mod remote;
mod rollback;
mod session;
mod settings;
mod snapshot;
mod tree;
mod verb;

use std::process::ExitCode;

pub use error::{Against, Error, Kind};
pub use snapshot::create::SnapshotRequest;
pub use verb::act::acted::Acted;
pub use verb::commit::{Commit, commit};
pub use verb::desk::Desk;
pub use verb::discard::{End, Sessions as Discarded, sessions as discard};
pub use verb::list::{Listed, Row as Session, Which, list};
pub use verb::patch::patch;
pub use verb::recover::{Recovery, recover};
pub use verb::redo::redo;
pub use verb::resolve::target::Target;
pub use verb::rollback::{Rollback, rollback};
pub use verb::show::{Shown, show};
pub use verb::snapshot::create::{Created, create as take_snapshot};
pub use verb::snapshot::list::{Listed as Snapshots, list as snapshots};
pub use verb::snapshot::restore::{Restore, Restored, restore};
pub use verb::stage::{Edit, Named, Staged, begin, stage};

/// The program: carries out the call that the process was started with. For `main.rs` alone.
#[doc(hidden)]
pub fn main() -> ExitCode {
    face::program::start::main()
}

/// Inner parts for recant's own tests: readers of the store's files, and the capture room.
#[cfg(feature = "crash-points")]
#[doc(hidden)]
pub mod internals {
    pub use crate::capture::collect::facts::{Facts, Numbers};
    pub use crate::capture::collect::{Collected, collect, finish};
    pub use crate::capture::layers::sealed_uppers::Sealed;
    pub use crate::capture::place::layout::Route;
    pub use crate::capture::run::supervise::run_captured;
    pub use crate::capture::{
        Command, Confinement, Event, Ground, Linger, Network, Pass, Plan, Request, inside, run_command, working_directory,
    };
    pub use crate::checkpoint::{Manifest, Original};
    pub use crate::compare::blocks::choice::Part;
    pub use crate::compare::blocks::find_blocks::NotByLines;
    pub use crate::compare::blocks::lines::split;
    pub use crate::compare::blocks::numbers;
    pub use crate::compare::blocks::three_way::{Conflict, Merged, merge};
    pub use crate::compare::{Block, Blocks, Choice, Marks, words};
    pub use crate::engine::journal::{Draft, Journal};
    pub use crate::engine::step::Spot;
    pub use crate::error::{Error, Kind};
    pub use crate::fs::{AbsPath, Dir, Fs, Time, exact_now, now};
    pub use crate::session::{Arg, Change, Changes, DirectoryTime, Ending, Id, Net, Place, Session, Sort, Store};
    pub use crate::tree::{Hash, What};
    pub use crate::verb::commit::commit_half;
}
