//! The words of the command line, as clap reads them; completions and man pages come from the same definition. Verbs
//! are grouped by family.

mod agent;
mod apply;
pub mod help;
mod inspect;
mod one_verb;
mod run;
mod session;
mod settings;
mod snapshot;
pub mod table;
mod verbs;
mod words;

pub use agent::{AgentRun, AgentStatus, AgentVerb, Hook, Install, TurnDiff, TurnUndo, Turns, turn_and_paths};
pub use apply::{Back, Commit, Confirm, Recover, Redo, Undo, What};
pub use inspect::{Await, Cat, Diff, Form, Log, Much, Review, Steps};
pub use run::{Doctor, Run, Shell};
pub use session::{
    CheckpointShow, CheckpointVerb, CheckpointVerify, Chmod, Delete, Discard, Export, Fork, Import, List, Mkdir, New, Prune,
    Rename, Rewind, SessionVerb, Show, Symlink, Write,
};
pub use snapshot::{SnapshotCreate, SnapshotDiff, SnapshotList, SnapshotRestore, SnapshotShow, SnapshotVerb, SnapshotVerify};
pub use verbs::{Cli, Completions, Far, Global, Man, Proxy, Verb};
