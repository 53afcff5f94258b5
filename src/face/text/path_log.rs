//! `log PATH…`: what changed paths, a line each, with the command that takes it back.

use super::list::say_damaged;
use super::list::shown;
use super::list::who;
use crate::compare::{columns, cut};
use crate::error::{Error, Kind, command, shell_word};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures::{self, Flexible, Side};
use crate::face::find_store::cwd;
use crate::face::{args, find_store};
use crate::session::Changes;
use crate::tree::project_of;
use crate::verb::path_log::{Asked, Row};
use crate::verb::snapshot::directory::dir;
use crate::verb::{Filter, Touched, path_log as verb};

/// Shows what changed the paths. `unknown`: the only one could be a session, but is none.
pub fn touched(call: &Call, args: &args::Log, unknown: Option<Error>) -> Result<Ended, Error> {
    let paths = args.what.iter().map(|path| find_store::named(path, &Changes::default())).collect::<Result<Vec<_>, _>>()?;
    // Without a store nothing is known of any project.
    let here = call.store()?.and_then(|_| find_store::absolute(&cwd().ok()?).ok());
    let project = here.map(|here| project_of(&here, dirs::home_dir().as_deref()));
    let asked = Asked { words: &args.what, paths, filter: filter(args), project, dir: &dir };
    let mut found = verb::touched(call, &asked)?;
    let is_nothing = found.touched.is_empty() && found.damaged.is_empty();
    if let Some(problem) = unknown.filter(|_| is_nothing && args.what[0].symlink_metadata().is_err()) {
        return Err(problem);
    }
    found.touched.truncate(args.lines.unwrap_or(usize::MAX));
    say_damaged(call, &found.damaged);
    if call.out.is_text() {
        print(call, args, &asked, &found);
    } else {
        call.out.document(&found);
    }
    Ok(if found.damaged.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

/// The conditions of a call.
pub fn filter(args: &args::Log) -> Filter<'_> {
    Filter { since: args.since.as_ref().map(|since| since.s), agent: args.agent.as_deref() }
}

/// The options of a call again, with the words in front, for the command that lists all.
pub fn again(args: &args::Log, words: &str) -> String {
    let since = args.since.as_ref().map(|since| format!(" --since {}", since.text)).unwrap_or_default();
    let all = if args.all { " --all" } else { "" };
    let agent = args.agent.as_ref().map(|agent| format!(" --agent {}", shell_word(agent.as_bytes()))).unwrap_or_default();
    command(format_args!("log{words}{since}{all}{agent} -v")).into()
}

fn print(call: &Call, args: &args::Log, asked: &Asked<'_>, Touched { paths, touched: rows, .. }: &Touched) {
    call.out.page(call.config.pager.value.as_deref());
    if rows.is_empty() && args.lines != Some(0) {
        let paths: Vec<String> = paths.iter().map(|path| call.out.place(path)).collect();
        let is_filtered = args.since.is_some() || args.agent.is_some();
        let fits = if is_filtered { "nothing that matches" } else { "nothing that recant knows of" };
        call.out.note(format_args!("{fits} changed {}", figures::list(&paths)));
        return;
    }
    let (first, more) = cut(rows.len(), if args.lines.is_some() { rows.len() } else { call.out.limit() });
    lay_out(call, rows[..first].iter().map(cells).collect());
    if more > 0 {
        call.out.line(figures::more(more, &again(args, &asked.words(&(0..asked.words.len()).collect()))));
    }
}

fn cells(row: &Row) -> [String; 5] {
    let change = match row.change {
        // It never reached the path.
        Some(_) if row.standing == "discarded" => "held".to_owned(),
        Some(sort) if row.paths == 1 => sort.word().to_owned(),
        _ => figures::count(row.paths, "path"),
    };
    let standing = || row.session.as_ref().map(|id| format!("session {}: {}", id.tail(), row.standing));
    let back = row.back.clone().or_else(standing).unwrap_or_default();
    [figures::day(row.time), who(row.by.as_ref()), change, what(row), back]
}

/// Prints a row a line; if that leaves the commands that take back no room, each of them on a line of its own.
fn lay_out(call: &Call, cells: Vec<[String; 5]>) {
    /// The least columns of what changed the paths.
    const LEAST: usize = 16;
    let width = call.out.width();
    let flexible = [Flexible::words(3, LEAST), Flexible::path(1, 8)];
    let mut fitted = cells.clone();
    figures::fit(&mut fitted, width, &flexible);
    if figures::table([Side::Left; 5], &fitted).all(|line| columns(&line) <= width) {
        figures::table([Side::Left; 5], &fitted).for_each(|line| call.out.line(line));
        return;
    }
    let (mut rows, backs): (Vec<[String; 4]>, Vec<String>) =
        cells.into_iter().map(|[when, who, change, what, back]| ([when, who, change, what], back)).unzip();
    figures::fit(&mut rows, width, &flexible);
    for (line, back) in figures::table([Side::Left; 4], &rows).zip(backs) {
        call.out.line(line);
        if !back.is_empty() {
            call.out.line(format_args!("    {back}"));
        }
    }
}

/// The command of a session, the message of a snapshot, the prompt of a turn.
fn what(row: &Row) -> String {
    let said = row.command.as_deref().map(shown);
    match row.snapshot {
        Some(n) => format!("snapshot {n}{}", said.map(|said| format!(": {said}")).unwrap_or_default()),
        None => said.unwrap_or_else(|| if row.what == "session" { "staged".into() } else { String::new() }),
    }
}
