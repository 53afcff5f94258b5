//! From a verb's arguments to its row.

use super::agent::AgentVerb;
use super::session::{CheckpointVerb, SessionVerb};
use super::snapshot::SnapshotVerb;
use super::verbs::Verb;
use crate::verb::Effect;
use crate::verb::table::{Row, find};

/// The row of a verb.
pub fn row(verb: &Verb) -> &'static Row {
    find(match verb {
        Verb::Run(_) => "run",
        Verb::Shell(_) => "shell",
        Verb::Session { verb } => of_sessions(verb),
        Verb::List(_) => "list",
        Verb::Show(_) => "show",
        Verb::Discard(_) => "discard",
        Verb::Steps(_) => "steps",
        Verb::Diff(_) => "diff",
        Verb::Review(_) => "review",
        Verb::Rewind(_) => "rewind",
        Verb::Fork(_) => "fork",
        Verb::Commit(_) => "commit",
        Verb::Confirm(_) => "confirm",
        Verb::Rollback(_) => "rollback",
        Verb::Undo(_) => "undo",
        Verb::Redo(_) => "redo",
        Verb::Checkpoint { verb } => of_checkpoints(verb),
        Verb::Snapshot { verb } => of_snapshots(verb),
        Verb::Agent { verb } => of_agents(verb),
        Verb::Hook(_) => "hook",
        Verb::Mcp => "mcp",
        Verb::Recover(_) => "recover",
        Verb::Prune(_) => "prune",
        Verb::Cat(_) => "cat",
        Verb::Status => "status",
        Verb::Log(_) => "log",
        Verb::Await(_) => "await",
        Verb::Doctor(_) => "doctor",
        Verb::Config => "config",
        Verb::Completions(_) => "completions",
        Verb::Man(_) => "man",
        Verb::Here | Verb::Far(_) | Verb::Proxy(_) => "",
    })
}

fn of_sessions(verb: &SessionVerb) -> &'static str {
    match verb {
        SessionVerb::New(_) => "session new",
        SessionVerb::Write(_) => "session write",
        SessionVerb::Delete(_) => "session delete",
        SessionVerb::Mkdir(_) => "session mkdir",
        SessionVerb::Symlink(_) => "session symlink",
        SessionVerb::Chmod(_) => "session chmod",
        SessionVerb::Rename(_) => "session rename",
        SessionVerb::Export(_) => "session export",
        SessionVerb::Import(_) => "session import",
    }
}

fn of_checkpoints(verb: &CheckpointVerb) -> &'static str {
    match verb {
        CheckpointVerb::List => "checkpoint list",
        CheckpointVerb::Show(_) => "checkpoint show",
        CheckpointVerb::Verify(_) => "checkpoint verify",
    }
}

fn of_snapshots(verb: &SnapshotVerb) -> &'static str {
    match verb {
        SnapshotVerb::Create(_) => "snapshot create",
        SnapshotVerb::List(_) => "snapshot list",
        SnapshotVerb::Show(_) => "snapshot show",
        SnapshotVerb::Diff(_) => "snapshot diff",
        SnapshotVerb::Restore(_) => "snapshot restore",
        SnapshotVerb::Verify(_) => "snapshot verify",
    }
}

fn of_agents(verb: &AgentVerb) -> &'static str {
    match verb {
        AgentVerb::Install(_) => "agent install",
        AgentVerb::Uninstall(_) => "agent uninstall",
        AgentVerb::Status(_) => "agent status",
        AgentVerb::Guide => "agent guide",
        AgentVerb::Run(_) => "agent run",
        AgentVerb::Turns(_) => "agent turns",
        AgentVerb::Diff(_) => "agent diff",
        AgentVerb::Undo(_) => "agent undo",
    }
}

/// The effect of a call that ended well.
pub fn effect(verb: &Verb) -> Effect {
    if only_tells(verb) { Effect::None } else { row(verb).effect }
}

/// True for a dry run.
pub fn only_tells(verb: &Verb) -> bool {
    match verb {
        Verb::Commit(args) => args.what.dry_run,
        Verb::Rollback(args) => args.what.dry_run,
        Verb::Undo(args) => args.dry_run,
        Verb::Redo(args) => args.dry_run,
        Verb::Rewind(args) => args.dry_run,
        Verb::Fork(args) => args.dry_run,
        Verb::Prune(args) => args.dry_run,
        Verb::Snapshot { verb: SnapshotVerb::Restore(args) } => args.dry_run,
        Verb::Agent { verb: AgentVerb::Undo(args) } => args.dry_run,
        Verb::Agent { verb: AgentVerb::Install(args) | AgentVerb::Uninstall(args) } => args.dry_run,
        _ => false,
    }
}
