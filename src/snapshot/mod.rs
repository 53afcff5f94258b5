//! Snapshots: numbered copies of a directory, and the way back to any of them. Used by `agent`, `verb` and the faces.
//!
//! In: a directory and rules. Out: a manifest and the content that no earlier snapshot has; and, on the way back, a session whose `after`s
//! are a snapshot's states. Reads the tree, never changes it: the engine does what a restore changes, by a commit of that session.
//! docs/ARCHITECTURE.md, Snapshots, has the way of the data. What always holds:
//! - **N1** A snapshot is complete or absent. Its manifest gets its name after it and all content that it names were synced. Its directory
//!   is synced before the number is printed.
//! - **N2** A number is never reused: the next one is above every number whose name is there, and prune never takes the newest, unless it
//!   takes the whole series.
//! - **N3** Content that a manifest names is never written to again. A pack is of one number and written before its manifest has a name; a
//!   blob that is already there is read and compared before it stands for the content.
//! - **N4** Prune removes names first, durably, then the content that no manifest file names any more, including a base that lost its own
//!   name. One file that cannot be read keeps all content where it is.
//! - **N5** The index is a hint: it counts only if it is whole, and of the newest manifest. A file is believed unchanged only if its mtime
//!   and ctime were older than the beginning of the snapshot that read it by more than the clock's granularity, and nobody had it open for
//!   writing then: a mapped file can change without a new time (git's racy-git note has the first half).
//! - **N6** This room never changes the tree. A restore is a session: what is there is `before`, the snapshot's state is `after`, and
//!   content is held as by staging. The engine commits it, so its checkpoint, conflicts, journal and recovery are those of any commit, and
//!   `rollback` takes it back.
//! - **N7** A restore does not touch what its snapshot left out: what its own rules exclude, mounts in the directory (which may be one
//!   itself), recant's store, what could not be read, other names of a file that it has. A directory that is to be removed but holds such a
//!   thing stays, and is named. Version control's own (`.git`, `.hg`, `.svn`, `.jj`, a bare repository) is not touched without
//!   `--with-vcs`, whatever the snapshot has of it. A directory below the top that became a repository since stays whole, and is named
//!   (`differences::with_tree`). The snapshots of `run --in` leave nothing of it out.
//! - **N8** Whoever creates, prunes or restores holds the series' lock, taken before the session's and the store's. Readers take none.
//! - **N9** A new snapshot rests on nothing that is damaged. The newest manifest and its base are read to their ends first; otherwise an
//!   older one is compared with the tree, and the new one is whole. Content that it refers to must be there with its length, or with its
//!   hash if there is no index; otherwise it is stored anew. `snapshot verify` reads all content, and removes the index if some is damaged.

pub mod agent_cover;
pub mod choose_directory;
mod content;
mod content_check;
pub mod create;
pub mod differences;
mod error;
mod git_indexes;
mod hard_links;
mod hashing;
mod heads;
mod index;
pub mod manifest;
pub mod path_history;
mod paths;
mod previous_objects;
pub mod prune_snapshots;
pub mod restore;
mod restore_scope;
mod rule_source;
pub mod rules;
pub mod series;
mod snapshot_walk;
pub mod to_session;
pub mod verify;

pub use agent_cover::{MANY, read_below};
pub use content::{Kept, beginning};
pub use create::{How, SnapshotRequest, SnapshotResult, create_seen};
pub use differences::{Compared, Difference, Hashes, OLDER, OLDER_FORCIBLE, Terms, root};
pub use error::{heal, none};
pub use heads::{Moved, moved};
pub use manifest::{At, Counts, Entry, Head, Merged, OF_AGENT, OF_TURN, TURN, Tail};
pub use paths::whole;
pub use prune_snapshots::{Conditions, Maker, Pruned, Which, bytes_used};
pub use restore::{fill, fill_to_ask, refuse_elsewhere};
pub use rule_source::{Earlier, Source};
pub use rules::{Cover, RECANTIGNORE, Rules, Vcs, Why, as_path_of};
pub use series::{Broken, Locked, Series, Summary, key};
pub use snapshot_walk::{Object, Walk, WalkStep};
pub use to_session::Step;
pub use verify::{Fault, Verdict, Verifying, doubt};
