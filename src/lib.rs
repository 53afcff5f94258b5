//! recant holds the changes that a command, a script or an agent wants to make to files, shows them, commits them with a checkpoint of
//! what was there before, and rolls them back exactly.
//!
//! This is the library of the program `recant`, for programs that want sessions, checkpoints and snapshots inside. It needs Linux 5.15
//! or newer. It needs no root, prints nothing, asks nothing and reads no settings.
//!
//! - a session: [`Store::begin`], [`Store::stage`], [`Store::changes`], [`Store::patch`];
//! - commit, rollback and redo: [`Store::plan`], [`Plan::conflicts`], [`Plan::apply`], [`Plan::force`];
//! - snapshots of a directory: [`Store::take_snapshot`], [`Store::snapshots`], [`Store::restore`];
//! - after a crash: [`Store::recover`].
//!
//! # Example
//!
//! A change is held, planned, and committed. Then somebody edits the file. A rollback would lose that edit: it refuses, and names the path.
//!
//! ```
//! use recant::{ChangeKind, Edit, Kind, Store, Verb};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let file = dir.path().canonicalize()?.join("app.conf");
//! std::fs::write(&file, "port = 80\n")?;
//!
//! // Held: the file is as it was.
//! let store = Store::open(dir.path().join("store"))?;
//! let id = store.begin(Some("new-port"))?;
//! let content = Box::new("port = 8080\n".as_bytes());
//! store.stage(&id, [Edit::Write { path: &file, content, mode: None }])?;
//! assert_eq!(std::fs::read_to_string(&file)?, "port = 80\n");
//!
//! // Planned: what a commit would do, and what would stop it.
//! let plan = store.plan(&id, Verb::Commit, &[])?;
//! assert!(plan.conflicts().is_empty());
//! let would = plan.report().expect("a plan without conflicts has a report");
//! assert_eq!((&would.changes[0].path, would.changes[0].kind), (&file, ChangeKind::Modified));
//!
//! // Committed: all of it, or nothing.
//! plan.apply()?;
//! assert_eq!(std::fs::read_to_string(&file)?, "port = 8080\n");
//!
//! // Somebody edits the file. The plan of a rollback says so, and applying it changes nothing.
//! std::fs::write(&file, "port = 8080\nhost = db1\n")?;
//! let plan = store.plan(&id, Verb::Rollback, &[])?;
//! assert_eq!(plan.conflicts()[0].path, file);
//! let error = plan.apply().expect_err("somebody has edited the file");
//! assert_eq!((error.kind(), error.path()), (Kind::Conflict, file.to_str()));
//! assert_eq!(std::fs::read_to_string(&file)?, "port = 8080\nhost = db1\n");
//!
//! // The edit is undone, and the rollback goes. (`Plan::force` would go on over it, and keep it in the store.)
//! std::fs::write(&file, "port = 8080\n")?;
//! store.plan(&id, Verb::Rollback, &[])?.apply()?;
//! assert_eq!(std::fs::read_to_string(&file)?, "port = 80\n");
//! # Ok(())
//! # }
//! ```
//!
//! Three programs are in `examples/`, and run as tests: `stage` (this, in a directory of yours), `snapshot` (a command between two
//! snapshots, taken back), and `held` (a command whose changes are held).
//!
//! # The store
//!
//! A [`Store`] is a directory that you name; the library has no default. The program takes `--store`, else `RECANT_STORE`, else `store.path`
//! of its settings, else `recant` in the user's data directory (`$XDG_DATA_HOME`, `~/.local/share`). `recant status --json` prints the one
//! in use. Program and library may work in one store at the same time: what one begins, the other shows, commits and rolls back. Put it
//! on the file system of the files that change: then nothing is copied.
//!
//! # Errors
//!
//! There is one type, [`Error`]. Decide by [`Error::kind`], never by the text:
//!
//! | [`Kind`] | means | what helps |
//! | --- | --- | --- |
//! | `Refused` | not done, nothing changed | the text and [`Error::remedy`] say what stands against it |
//! | `Conflict` | the tree does not hold what was expected; nothing changed | look at [`Plan::conflicts`]; [`Plan::force`] goes on |
//! | `LeftOut` | done, except for what [`Error::state`] names | go on, or tell the user |
//! | `Damaged` | content in the store is not what was put there; nothing changed | no second try helps |
//! | `Busy` | another thread or recant works in it; nothing changed | try again |
//! | `Stuck` | a cut-off operation can be neither finished nor undone now | later calls on that session say so, too |
//!
//! The other kinds are errors of the program alone.
//!
//! # Threads and locks
//!
//! A [`Store`] is `Send` and `Sync`; threads may share one. Each session has a lock, and a [`Plan`] holds it until it is applied or dropped:
//! another call on that session is refused at once (`Busy`), calls on other sessions go on. Commits, rollbacks and restores in one store
//! come one after the other. The locks are those of the program, so they hold between processes too.
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
//! - Other machines (`recant -H`), moving sessions (`session export`, `import`), steps and forks, pruning, and settings.
//! - Deciding for people: `commit.deny`, limits, and the refusal of commits by agents are the program's, and do not apply here.
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

// The rooms, and the way of the data: capture or stage → changes → plan → journal → apply → settle → report.
// docs/ARCHITECTURE.md says what each room does, and which others it may use.
mod agent;
mod api;
mod capture;
mod checkpoint;

mod commit;
mod compare;
mod engine;
mod error;
mod face;
mod fs;
mod moving;
mod remedy;
mod remote;
mod rollback;
mod session;
mod settings;
mod snapshot;
mod tree;
mod verb;

use std::process::ExitCode;

pub use api::{Change, ChangeKind, Conflict, Edit, Plan, Recovered, Report, Session, SessionId, Snapshot, Status, Store, Verb};
pub use error::{Error, Kind};

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
}
