//! The facts about each verb.

use super::args::{AgentVerb, SessionVerb, SnapshotVerb, Verb};

/// The effects of a verb that ended well, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    None,
    Some,
}

pub fn effects(verb: &Verb) -> Effects {
    let only_reads = match verb {
        Verb::Commit(args) => args.what.dry_run,
        Verb::Prune(args) => args.dry_run,
        Verb::Rollback(args) => args.what.dry_run,
        Verb::Undo(args) => args.dry_run,
        Verb::Redo(args) => args.dry_run,
        Verb::Session { verb } => matches!(verb, SessionVerb::Export(_)),
        Verb::Snapshot { verb } => match verb {
            SnapshotVerb::Create(_) => false,
            SnapshotVerb::List(_) | SnapshotVerb::Show(_) | SnapshotVerb::Diff(_) | SnapshotVerb::Verify(_) => true,
            SnapshotVerb::Restore(args) => args.dry_run,
        },
        Verb::Agent { verb } => match verb {
            AgentVerb::Turns(_) | AgentVerb::Diff(_) | AgentVerb::Status(_) | AgentVerb::Guide => true,
            AgentVerb::Undo(args) => args.dry_run,
            AgentVerb::Install(args) | AgentVerb::Uninstall(args) => args.dry_run,
            AgentVerb::Run(_) => false,
        },
        // It recovers nothing: an agent waits for it. What a server does, its calls answer for.
        Verb::Hook(_) | Verb::Mcp => true,
        Verb::Rewind(args) => args.dry_run,
        Verb::Fork(args) => args.dry_run,
        Verb::Run(_) | Verb::Shell(_) | Verb::Discard(_) | Verb::Recover(_) | Verb::Confirm(_) => false,
        Verb::List(_) | Verb::Show(_) | Verb::Steps(_) | Verb::Diff(_) | Verb::Checkpoint { .. } | Verb::Cat(_) => true,
        Verb::Status(_) | Verb::Review(_) => true,
        Verb::Here | Verb::Log(_) | Verb::Doctor(_) | Verb::Config | Verb::Completions(_) | Verb::Man(_) => true,
        Verb::Far(_) => true,
    };
    if only_reads { Effects::None } else { Effects::Some }
}

/// True for a verb that only reads and shows what is in the store, but for `status`, which reports all by itself.
pub fn is_of_store(verb: &Verb) -> bool {
    let looks = matches!(
        verb,
        Verb::List(_) | Verb::Show(_) | Verb::Steps(_) | Verb::Diff(_) | Verb::Cat(_) | Verb::Log(_) | Verb::Review(_)
    );
    looks || matches!(verb, Verb::Checkpoint { .. })
}
