//! `list`: sessions, a line each.

use super::fact;
use super::heads::calls;
use super::run::service::since;
use crate::error::{Error, Kind, command};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures::{self, Flexible, Side};
use crate::face::{args, find_store};
use crate::session::{ActingAgent, Broken, Changes, Id};
use crate::verb::Which;
use crate::verb::list::{self as verb, Listed, Row};

/// Warns of sessions that cannot be read.
pub fn say_damaged(call: &Call, broken: &[Broken]) {
    for session in broken {
        call.out.warn(format_args!("{}: the session is damaged: {}", shown(&session.name), session.why));
    }
    if broken.iter().any(|session| Id::parse(&session.name).is_some()) {
        let prune = command("prune --sessions ID");
        call.out.note(format_args!("{prune} drops a damaged session; --dry-run shows what is lost with it"));
    }
}

/// A name made safe for a terminal.
pub fn shown(name: &str) -> String {
    crate::fs::Shown(name.as_bytes()).to_string()
}

pub fn list(call: &Call, args: &args::List) -> Result<Ended, Error> {
    let limit = args.limit.unwrap_or(if call.out.is_text() { call.out.limit() } else { 0 });
    let listed = verb::list(
        call,
        &Which {
            all: args.all,
            status: args.status.iter().map(|status| status.word()).collect(),
            since: args.since.as_ref().map(|since| since.s),
            path: args.path.as_deref().map(|path| find_store::named(path, &Changes::default())).transpose()?,
            limit: Some(limit).filter(|limit| *limit > 0),
        },
    )?;
    say_damaged(call, &listed.damaged);
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print(call, &listed.sessions, listed.project.is_none());
        if listed.more > 0 {
            call.out.line(figures::more(listed.more, &again(args)));
        }
        say(call, args, &listed);
    } else {
        call.out.document(&listed);
    }
    Ok(if listed.damaged.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

fn again(args: &args::List) -> String {
    command(format_args!("list{} --limit 0", filters(args))).into()
}

fn filters(args: &args::List) -> String {
    let mut text = String::new();
    if args.all {
        text.push_str(" --all");
    }
    if !args.status.is_empty() {
        let words: Vec<&str> = args.status.iter().map(|status| status.word()).collect();
        text.push_str(&format!(" --status {}", words.join(",")));
    }
    if let Some(since) = &args.since {
        text.push_str(&format!(" --since {}", since.text));
    }
    if let Some(path) = &args.path {
        text.push_str(&format!(" --path {}", shown(&path.to_string_lossy())));
    }
    text
}

/// Says what the lines do not: that there are none, and the number elsewhere.
fn say(call: &Call, args: &args::List, listed: &Listed) {
    let Listed { project, sessions, elsewhere, in_store: all, damaged: broken, .. } = listed;
    let fits = if args.status.is_empty() && args.since.is_none() { "" } else { " that match" };
    match (project, sessions.is_empty()) {
        (_, true) if *all == 0 && broken.is_empty() => call.out.note("no sessions"),
        (_, true) if *all == 0 => {}
        (Some(here), true) => {
            let none = format!("no sessions{fits} in {}", call.out.place(here));
            if *elsewhere == 0 {
                call.out.note(none);
            } else {
                let filters = filters(args);
                call.out.note(format_args!(
                    "{none}; {} elsewhere: {}",
                    figures::grouped(*elsewhere as u64),
                    command(format_args!("list --all{filters}"))
                ));
            }
        }
        (None, true) => call.out.note("no sessions that match"),
        (Some(_), false) if *elsewhere > 0 => {
            let filters = filters(args);
            let elsewhere = figures::grouped(*elsewhere as u64);
            call.out
                .note(format_args!("{elsewhere} more{fits} in other projects: {}", command(format_args!("list --all{filters}"))));
        }
        _ => {}
    }
}

/// Prints the table; with directories if the sessions are of several projects.
fn print(call: &Call, listed: &[Row], directories: bool) {
    if listed.is_empty() {
        return;
    }
    let has_name = listed.iter().any(|l| l.header.name.is_some());
    let has_agent = listed.iter().any(|l| l.header.by.is_some());
    let title = |on: bool, word: &str| if on { word.to_owned() } else { String::new() };
    let title = [
        "ID".into(),
        "STATUS".into(),
        "CHANGES".into(),
        "SIZE".into(),
        "CHANGED".into(),
        title(directories, "PROJECT"),
        title(has_name, "NAME"),
        title(has_agent, "AGENT"),
        "COMMAND".into(),
    ];
    let calls = calls(listed.iter().map(|l| &l.header.id));
    let rows = listed.iter().map(|Row { header, standing, project, services }| {
        let services = services.iter().map(|service| format!("{}: ", since(service))).collect::<String>();
        [
            calls(&header.id),
            fact::standing(*standing),
            figures::grouped(header.counts.changes),
            figures::bytes(header.sizes.all()),
            figures::day(header.changed),
            project.as_ref().map(|project| call.out.place(project)).unwrap_or_default(),
            header.name.clone().unwrap_or_default(),
            who(header.by.as_ref()),
            services + &shown(header.command.as_deref().unwrap_or_default()),
        ]
    });
    let mut rows: Vec<[String; 9]> = std::iter::once(title).chain(rows).collect();
    let (path, words) = (Flexible::path, Flexible::words);
    let (status, size, project, name, agent, command) = (1, 3, 5, 6, 7, 8);
    let usual = [words(command, 20), path(project, 14), path(name, 12), words(command, 8), path(agent, 8), path(project, 8)];
    // Where that is not enough: down to the titles, and a status to its first words; then without sizes.
    let narrow = [path(project, 7), words(command, 7), path(agent, 5), words(status, 11)];
    let width = call.out.width();
    if figures::fit(&mut rows, width, &[&usual[..], &narrow].concat()) > 0 {
        rows.iter_mut().for_each(|row| row[size].clear());
        figures::fit(&mut rows, width, &[words(status, 9), path(name, 4)]);
    }
    let (left, right) = (Side::Left, Side::Right);
    let sides = [left, left, right, right, left, left, left, left, left];
    let mut lines = figures::table(sides, &rows).map(|line| figures::within(&line, width));
    call.out.styled(anstyle::Style::new().bold(), lines.next().unwrap_or_default());
    lines.for_each(|line| call.out.line(line));
}

/// An agent and its turn, as a line shows them; empty for a person.
pub fn who(by: Option<&ActingAgent>) -> String {
    by.map(ToString::to_string).unwrap_or_default()
}
