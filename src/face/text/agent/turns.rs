//! `agent turns`, in words.

use serde::Serialize;

use crate::agent::Agent;
use crate::compare::{cut, cut_off};
use crate::error::{Error, command};
use crate::face::args;
use crate::face::brief::{self, List};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures::{self, Flexible, Side};
use crate::face::text::list::shown;
use crate::fs::AbsPath;
use crate::session::Id;
use crate::verb::Turns;
use crate::verb::agent::turns::{self as verb, Row};

pub fn turns(call: &Call, args: &args::Turns) -> Result<Ended, Error> {
    let turns = verb::turns(call, args.agent)?;
    if args.page.brief {
        print_brief(call, args, &turns)?;
    } else if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print(call, &turns.turns);
    } else {
        call.out.document(&turns);
        brief::offer(call, "agent turns --brief");
    }
    Ok(Ended::Done)
}

/// The newest turn here and the verbs for turns, in a line; `None` if there is no turn.
pub fn newest(call: &Call) -> Option<String> {
    let verb::Newest { n, agent, may_undo } = verb::newest(call)?;
    let undo = if may_undo { format!(", {}", command("agent undo")) } else { String::new() };
    Some(format!("turn {n} of {}: {}{undo}", agent.word(), command("agent turns")))
}

/// The head of a page of turns: the agent is that of the newest.
#[derive(Serialize)]
struct Brief<'a> {
    directory: &'a AbsPath,
    agent: Option<Agent>,
}

/// A turn on a page. Left out is what is usual: the agent of the head, a turn that is covered and was not taken back.
#[derive(Serialize)]
struct BriefRow<'a> {
    n: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<Agent>,
    prompt: String,
    paths: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    covered: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undone: Option<&'a str>,
}

fn print_brief(call: &Call, args: &args::Turns, Turns { directory, turns }: &Turns) -> Result<(), Error> {
    let agent = turns.first().map(|row| row.agent);
    let only = args.agent.map_or("", Agent::word);
    let list = List { key: "turns", of: vec![b"turns", directory.as_bytes(), only.as_bytes()], count: turns.len() };
    let row = |i: usize| {
        let row = &turns[i];
        Ok(BriefRow {
            n: row.n,
            agent: Some(row.agent).filter(|_| Some(row.agent) != agent),
            prompt: cut_off(&row.prompt, brief::TEXT),
            paths: row.paths,
            covered: (!row.covered).then_some(false),
            undone: row.undone.as_ref().map(Id::tail),
        })
    };
    brief::print(call, &list, args.page.after.as_deref(), &Brief { directory, agent }, |i| brief::Place::Number(turns[i].n), row)
}

fn print(call: &Call, rows: &[Row]) {
    if rows.is_empty() {
        return call.out.note("there are no turns");
    }
    let (first, more) = cut(rows.len(), call.out.limit());
    let head = ["N", "TIME", "AGENT", "PATHS", "", "PROMPT"].map(str::to_owned);
    let lines = rows[..first].iter().map(|row| {
        [
            row.n.to_string(),
            figures::day(row.time),
            row.agent.word().to_owned(),
            figures::grouped(row.paths as u64),
            state(row),
            shown(&row.prompt),
        ]
    });
    let mut lines: Vec<_> = [head].into_iter().chain(lines).collect();
    figures::fit(&mut lines, call.out.width(), &[Flexible::words(5, 12)]);
    use Side::{Left, Right};
    figures::table([Right, Left, Left, Right, Left, Left], &lines).for_each(|line| call.out.line(line));
    if more > 0 {
        call.out.line(figures::more(more, &command("agent turns -v")));
    }
}

fn state(row: &Row) -> String {
    match &row.undone {
        Some(id) if row.partly => format!("undone in part by {}", id.tail()),
        Some(id) => format!("undone by {}", id.tail()),
        None if !row.covered => "not covered".into(),
        None if !row.ended => "not ended".into(),
        None if row.not_covered > 0 => format!("+ {} not covered", figures::grouped(row.not_covered as u64)),
        None => String::new(),
    }
}
