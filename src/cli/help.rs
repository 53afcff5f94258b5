//! Help for people: the verbs by purpose, and the options of all verbs in one place, `recant --help`.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches};

use super::args::Cli;

/// Verbs of one purpose.
pub struct Group {
    /// The purpose.
    pub title: &'static str,
    /// The names of the verbs, in the order of the help.
    pub verbs: &'static [&'static str],
    /// More rows, which are no verbs: a call, and what it does.
    pub calls: &'static [(&'static str, &'static str)],
    /// True if the short help describes each verb; else it only names them.
    told_in_short: bool,
}

/// All visible verbs, each in one group.
pub const GROUPS: [Group; 7] = [
    Group { title: "Hold", verbs: &["run", "shell", "rewind", "fork", "session"], calls: &[], told_in_short: true },
    Group {
        title: "Look",
        verbs: &["list", "show", "steps", "diff", "review", "cat", "status", "log"],
        calls: &[],
        told_in_short: true,
    },
    Group {
        title: "Make real and take back",
        verbs: &["commit", "confirm", "rollback", "undo", "redo", "discard"],
        calls: &[],
        told_in_short: true,
    },
    Group { title: "Snapshots", verbs: &["snapshot"], calls: &[], told_in_short: true },
    Group { title: "Agents on the real tree", verbs: &["agent", "hook", "mcp"], calls: &[], told_in_short: false },
    Group {
        title: "Other machines",
        verbs: &[],
        calls: &[
            ("-H HOST VERB", "carry out a verb there, over ssh"),
            ("session export", "print a session as a stream, for another machine"),
            ("session import", "take a session out of such a stream"),
        ],
        told_in_short: true,
    },
    Group {
        title: "Upkeep",
        verbs: &["checkpoint", "recover", "prune", "doctor", "config", "completions", "man"],
        calls: &[],
        told_in_short: false,
    },
];

/// Names the place of the options that a verb's own help leaves out.
pub const ELSEWHERE: &str = "Options of all verbs: recant --help";

/// Reads a call. Errors: clap's; a request for help is one of them.
pub fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    // Most calls are right, and the help of all verbs takes longer to put together than a short verb takes in all.
    match Cli::command().try_get_matches_from(args).and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Err(error) if error.kind() != ErrorKind::DisplayVersion => {}
        done => return done,
    }
    // The length that is asked for. The two kinds of help of clap differ in form, too.
    let length = if args.iter().any(|word| word == "-h") { Length::Short } else { Length::Long };
    let mut matches = command(length).try_get_matches_from(args)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command(length)))
}

/// The parser's command line, with recant's own help of this length.
fn command(length: Length) -> Command {
    let command = definition();
    let rest = match length {
        Length::Short => "",
        Length::Long => "\n\n{all-args}{after-help}",
    };
    let verbs = verbs(&command, length);
    command
        .help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}{rest}"))
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
    command.mut_subcommands(|verb| without(verb, &globals))
}

/// Hides `globals` in a verb and below: clap passes on those that a verb does not have itself.
fn without(verb: Command, globals: &[clap::Arg]) -> Command {
    verb.args(globals).mut_subcommands(|verb| without(verb, globals))
}

/// A verb whose help tells where the options of all verbs are.
fn with_template(verb: Command) -> Command {
    let has_args = verb.get_arguments().any(|arg| !arg.is_hide_set()) || verb.has_subcommands();
    let args = if has_args { "{all-args}\n\n" } else { "" };
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{args}{ELSEWHERE}{{after-help}}");
    let verb = match verb.get_after_help().map(ToString::to_string) {
        Some(text) => verb.after_help(unfilled(&text)),
        None => verb,
    };
    verb.help_template(template).disable_help_subcommand(true).mut_subcommands(with_template)
}

/// Text with each paragraph on one line, which clap fills to the terminal's width. Indented lines stay.
fn unfilled(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
        match lines.last_mut() {
            Some(before) if is_prose(before) && !line.is_empty() && !line.starts_with(' ') => {
                before.push(' ');
                before.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Short,
    Long,
}

/// The verbs by group, a line each.
fn verbs(command: &Command, length: Length) -> String {
    let style = command.get_styles().get_header();
    let mut text = String::new();
    for Group { title, verbs, calls, told_in_short } in &GROUPS {
        text.push_str(&format!("{style}{title}:{style:#}\n"));
        if length == Length::Short && !told_in_short {
            text.push_str(&format!("  {}\n", verbs.join(", ")));
            continue;
        }
        let about =
            |verb: &&str| command.find_subcommand(verb).and_then(Command::get_about).cloned().unwrap_or_default().to_string();
        let rows =
            verbs.iter().map(|verb| (*verb, about(verb))).chain(calls.iter().map(|(call, what)| (*call, (*what).to_owned())));
        let width = if calls.is_empty() { 11 } else { 14 };
        rows.for_each(|(call, what)| text.push_str(&format!("  {call:width$}  {what}\n")));
        if length == Length::Long {
            text.push('\n');
        }
    }
    if length == Length::Short {
        text.push_str("\nOptions of all verbs, examples, exit statuses: recant --help\nA verb's own: recant help VERB");
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

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

    /// Whoever raises a number says in the commit what a user gets for it.
    #[test]
    fn verbs_and_options_become_no_more() {
        let (mut verbs, mut options) = (Vec::new(), Vec::new());
        called(&Cli::command(), "", &mut verbs, &mut options);
        println!("{}\n{}", verbs.join("\n"), options.join("\n"));
        assert_eq!((verbs.len(), options.len()), (52, 181));
    }

    #[test]
    fn a_row_of_the_help_fits_a_line() {
        for line in [Length::Short, Length::Long]
            .iter()
            .flat_map(|length| verbs(&Cli::command(), *length).lines().map(str::to_owned).collect::<Vec<_>>())
        {
            let plain = anstream::adapter::strip_str(&line).to_string();
            assert!(plain.len() <= 80, "{plain}");
        }
    }
}
