//! The command line with the one verb that a call has: to put all of them together takes longer than a short verb takes in all.

use std::ffi::OsString;

use clap::{Args, Command, Subcommand};

use super::agent::{AgentVerb, Hook};
use super::apply::{Back, Commit, Confirm, Recover, Redo, Undo};
use super::inspect::{Await, Cat, Diff, Log, Review, Steps};
use super::run::{Doctor, Run, Shell};
use super::session::{CheckpointVerb, Discard, Fork, List, Prune, Rewind, SessionVerb, Show};
use super::snapshot::SnapshotVerb;
use super::verbs::{Completions, Far, Global, Man, Proxy};

/// The command line for these words. What it takes, the whole command line takes alike; what it refuses may be right all the same.
pub fn command(args: &[OsString]) -> Command {
    let recant = Command::new("recant").version(env!("CARGO_PKG_VERSION"));
    let recant = recant.disable_help_flag(true).disable_version_flag(true).disable_help_subcommand(true);
    let recant = Global::augment_args(recant);
    // The value of an option before the verb is taken for a verb: then this refuses the call.
    let name = args.iter().skip(1).find(|word| !word.as_encoded_bytes().starts_with(b"-"));
    match name.and_then(|name| verb(name.to_str()?)) {
        Some(verb) => recant.subcommand(verb),
        None => recant,
    }
}

/// A verb by its name, without what its help alone has.
fn verb(name: &str) -> Option<Command> {
    let of = Command::new(name.to_owned());
    Some(match name {
        "run" => Run::augment_args(of),
        "shell" => Shell::augment_args(of),
        "session" => SessionVerb::augment_subcommands(of),
        "list" => List::augment_args(of),
        "show" => Show::augment_args(of),
        "discard" => Discard::augment_args(of),
        "steps" => Steps::augment_args(of),
        "diff" => Diff::augment_args(of),
        "review" => Review::augment_args(of),
        "rewind" => Rewind::augment_args(of),
        "fork" => Fork::augment_args(of),
        "commit" => Commit::augment_args(of),
        "confirm" => Confirm::augment_args(of),
        "rollback" => Back::augment_args(of),
        "undo" => Undo::augment_args(of),
        "redo" => Redo::augment_args(of),
        "checkpoint" => CheckpointVerb::augment_subcommands(of),
        "snapshot" => SnapshotVerb::augment_subcommands(of),
        "agent" => AgentVerb::augment_subcommands(of),
        "hook" => Hook::augment_args(of),
        "mcp" | "status" | "config" => of,
        "recover" => Recover::augment_args(of),
        "prune" => Prune::augment_args(of),
        "cat" => Cat::augment_args(of),
        "log" => Log::augment_args(of),
        "await" => Await::augment_args(of),
        "doctor" => Doctor::augment_args(of),
        "completions" => Completions::augment_args(of),
        "man" => Man::augment_args(of),
        "far" => Far::augment_args(of),
        "proxy" => Proxy::augment_args(of),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::face::args::Cli;

    /// The arguments of a verb and of those below it, as clap knows them.
    fn arguments(command: &Command, found: &mut Vec<String>) {
        found.extend(command.get_arguments().map(|arg| format!("{} {arg:?}", command.get_name())));
        command.get_subcommands().for_each(|verb| arguments(verb, found));
    }

    #[test]
    fn each_verb_has_alone_the_arguments_that_it_has_among_all() {
        let all = Cli::command();
        for verb in all.get_subcommands() {
            let words = ["recant".into(), verb.get_name().into()];
            let alone = command(&words);
            let alone =
                alone.find_subcommand(verb.get_name()).unwrap_or_else(|| panic!("{} is not found alone", verb.get_name()));
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            arguments(verb, &mut expected);
            arguments(alone, &mut found);
            assert_eq!(found, expected);
            let has_args = |group: &&clap::ArgGroup| group.get_args().next().is_some();
            let groups =
                |command: &Command| command.get_groups().filter(has_args).map(|group| format!("{group:?}")).collect::<Vec<_>>();
            assert_eq!(groups(alone), groups(verb));
        }
        let globals = |command: &Command| command.get_arguments().map(|arg| format!("{arg:?}")).collect::<Vec<_>>();
        assert_eq!(globals(&command(&[])), globals(&all));
    }
}
