//! Errors about what is pruned.

use super::acts::plural;
use crate::error::{Error, Kind as ErrorKind, command};
use crate::fs::AbsPath;
use crate::remedy::Command;
use crate::settings::bytes;
use crate::snapshot::heal;
use crate::verb::prunable::Committed;
use crate::verb::prune::kind::Kind;

/// The reason why snapshots stay that are of an unknown directory.
pub const UNKNOWN_DIRECTORY: &str = "the directory of these snapshots is unknown";

/// The reason why content of dropped snapshots stays: a file that cannot be read.
pub fn content_stays(why: &str) -> String {
    format!("no content was freed: a damaged snapshot may need it ({why}); {}", heal())
}

/// The error for a prune of a kind without names and conditions. What is `committed` no setting lets go of.
pub fn which(kind: Kind, committed: Committed) -> Error {
    let (option, or) = match committed {
        Committed::May => (" --committed", ""),
        Committed::Stays => ("", "; or set retention.* in the settings"),
    };
    let how =
        command(format_args!("prune {}{option} --older-than 30d", kind.option())) + ", --keep 50, --max-size 1G, or ID…" + or;
    let message = format!("which {}s? give an age, a number to keep, a size, or ids", kind.word());
    Error::new(ErrorKind::Usage, message).with_remedy(how)
}

/// So many sessions, or what they lose: `3 discarded sessions`.
pub fn sessions(kind: Kind, count: u64) -> String {
    plural(count, kind.word())
}

/// All kinds that the settings let go of: `3 sessions, 2 checkpoints, 5 snapshots`.
pub fn all_kinds(counts: [u64; 3]) -> String {
    let counts = counts.into_iter().zip(["session", "checkpoint", "snapshot"]).filter(|(n, _)| *n > 0);
    counts.map(|(n, word)| plural(n, word)).collect::<Vec<_>>().join(", ")
}

/// The error for a prune of sessions that the settings choose, where nobody can be asked.
pub fn prunes_unasked(kind: Kind, count: u64, size: u64) -> Error {
    unasked(&sessions(kind, count), size, command(format_args!("prune {} --dry-run", kind.option())))
}

/// The error for a prune of all that the settings choose, where nobody can be asked.
pub fn prunes_all_unasked(counts: [u64; 3], size: u64) -> Error {
    unasked(&all_kinds(counts), size, command("prune --dry-run -v"))
}

fn unasked(what: &str, size: u64, shows: Command) -> Error {
    let message = format!("prune drops {what}, {}, and there is no terminal to ask at", bytes(size));
    Error::new(ErrorKind::Usage, message).with_remedy(shows + " shows it; -y goes on")
}

/// The error if there are other snapshots by now.
pub fn others_than_asked(directory: &AbsPath) -> Error {
    let problem = Error::refused(format!("{directory}: its snapshots have changed since the question"));
    problem.with_path(directory).with_remedy("try again")
}
