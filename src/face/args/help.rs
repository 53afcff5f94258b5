//! Help for people: the verbs by purpose, and the options of all verbs in one place, `recant --help`.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches};

use super::verbs::Cli;
use super::{one_verb, settings};

struct Group {
    title: &'static str,
    /// The names of the verbs, in the order of the help.
    verbs: &'static [&'static str],
    /// More rows, which are no verbs: a call, and what it does.
    calls: &'static [(&'static str, &'static str)],
}

/// All visible verbs, each in one group.
const GROUPS: [Group; 7] = [
    Group { title: "Hold", verbs: &["run", "shell", "rewind", "fork", "session"], calls: &[] },
    Group { title: "Look", verbs: &["list", "show", "steps", "diff", "review", "cat", "status", "log", "await"], calls: &[] },
    Group { title: "Make real and take back", verbs: &["commit", "confirm", "rollback", "undo", "redo", "discard"], calls: &[] },
    Group { title: "Snapshots", verbs: &["snapshot"], calls: &[] },
    Group { title: "Agents", verbs: &["agent", "hook", "mcp"], calls: &[] },
    Group {
        title: "Other machines",
        verbs: &[],
        calls: &[
            ("-H HOST VERB", "run a verb on another machine, over ssh"),
            ("session export", "print a session as a stream, for another machine"),
            ("session import", "read a session from such a stream"),
        ],
    },
    Group { title: "Upkeep", verbs: &["checkpoint", "recover", "prune", "doctor", "config", "completions", "man"], calls: &[] },
];

/// Reads a call. Errors: clap's; a request for help is one of them.
pub fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    // Most calls are right, and all verbs with their help take longer to put together than a short verb takes in all.
    match one_verb::command(args).try_get_matches_from(args).and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Err(error) if error.kind() != ErrorKind::DisplayVersion => {}
        done => return done,
    }
    let mut matches = command().try_get_matches_from(args)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command()))
}

/// The parser's command line, with recant's own help.
fn command() -> Command {
    let command = definition();
    let verbs = verbs(&command);
    command
        .help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}\n\n{{all-args}}{{after-help}}"))
        // The template lists them.
        .mut_subcommands(|verb| with_template(verb).hide(true))
        .override_usage("recant [OPTIONS] [VERB]")
        .disable_help_subcommand(false)
        // All terminals show what one of 80 columns shows.
        .max_term_width(80)
}

/// The command line for completions and manual pages: each verb without the options of all verbs.
pub fn definition() -> Command {
    let command = Cli::command();
    let globals: Vec<_> = command.get_arguments().filter(|arg| arg.is_global_set()).map(|arg| arg.clone().hide(true)).collect();
    command.mut_subcommand("config", |verb| verb.after_help(settings::config())).mut_subcommands(|verb| without(verb, &globals))
}

/// Hides `globals` in a verb and below: clap passes on those that a verb does not have itself.
fn without(verb: Command, globals: &[clap::Arg]) -> Command {
    verb.args(globals).mut_subcommands(|verb| without(verb, globals))
}

/// A verb whose help tells where the options of all verbs are.
fn with_template(verb: Command) -> Command {
    let args = if verb.get_arguments().any(|arg| !arg.is_hide_set()) || verb.has_subcommands() { "{all-args}\n\n" } else { "" };
    let template = "{about-with-newline}\n{usage-heading} {usage}\n\n";
    let verb = verb.help_template(format!("{template}{args}Options of all verbs: recant --help{{after-help}}"));
    verb.disable_help_subcommand(true).mut_subcommands(with_template)
}

/// The verbs by group, a line each.
fn verbs(command: &Command) -> String {
    let style = command.get_styles().get_header();
    let about = |verb| command.find_subcommand(verb).and_then(Command::get_about).cloned().unwrap_or_default().to_string();
    let group = |Group { title, verbs, calls }: &Group| {
        let rows = verbs.iter().map(|verb| (*verb, about(verb))).chain(calls.iter().map(|(call, what)| (*call, (*what).into())));
        let width = if calls.is_empty() { 11 } else { 14 };
        let rows: String = rows.map(|(call, what)| format!("  {call:width$}  {what}\n")).collect();
        format!("{style}{title}:{style:#}\n{rows}")
    };
    GROUPS.iter().map(group).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::face::args::help::*;

    #[test]
    fn each_verb_that_people_see_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|group| group.verbs).copied().collect();
        let command = Cli::command();
        let seen: BTreeSet<&str> = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name).collect();
        grouped.sort_unstable();
        assert_eq!(grouped, seen.into_iter().collect::<Vec<_>>());
        for (call, _) in GROUPS.iter().flat_map(|group| group.calls).filter(|(call, _)| !call.starts_with('-')) {
            let words: Vec<&str> = call.split(' ').collect();
            let found = words.iter().try_fold(&command, |command, word| command.find_subcommand(word));
            assert!(found.is_some(), "{call}");
        }
    }

    /// The verbs that are called, without those that only group others, each as a call; then their own options.
    fn called(command: &Command, above: &str, verbs: &mut Vec<String>, options: &mut Vec<String>) {
        let call = format!("{above} {}", command.get_name());
        let below: Vec<&Command> = command.get_subcommands().filter(|verb| !verb.is_hide_set()).collect();
        let own = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional() && !arg.is_global_set());
        options.extend(own.filter_map(|arg| Some(format!("{call} --{}", arg.get_long()?))));
        if below.is_empty() || !command.is_subcommand_required_set() && command.get_name() != "recant" {
            verbs.push(call.trim().to_owned());
        }
        below.iter().for_each(|verb| called(verb, &call, verbs, options));
    }

    /// A longer line would be broken at its last word.
    #[test]
    fn what_stands_below_the_options_fits_80_columns() {
        let mut todo = vec![Cli::command()];
        while let Some(command) = todo.pop() {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(wide.is_empty(), "{}: {wide:#?}", command.get_name());
            todo.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn verbs_and_options_become_no_more() {
        let (mut verbs, mut options) = (Vec::new(), Vec::new());
        called(&Cli::command(), "", &mut verbs, &mut options);
        println!("{}\n{}", verbs.join("\n"), options.join("\n"));
        assert_eq!((verbs.len(), options.len()), (53, 164));
        verbs.sort_unstable();
        let mut rows: Vec<String> = crate::verb::table::VERBS.iter().map(|row| format!("recant {}", row.name)).collect();
        rows.sort_unstable();
        assert_eq!(rows, verbs, "each verb has one row");
    }

    #[test]
    fn a_row_of_the_help_fits_a_line() {
        for line in verbs(&Cli::command()).lines() {
            let plain = anstream::adapter::strip_str(line).to_string();
            assert!(plain.len() <= 80, "{plain}");
        }
    }
}
