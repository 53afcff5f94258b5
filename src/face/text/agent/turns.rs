//! `agent turns`, in words.

use crate::compare::cut;
use crate::error::{Error, command};
use crate::face::args;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures::{self, Flexible, Side};
use crate::face::text::list::shown;
use crate::verb::agent::turns::{self as verb, Row};

pub fn turns(call: &Call, args: &args::Turns) -> Result<Ended, Error> {
    let turns = verb::turns(call, args.agent)?;
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print(call, &turns.turns);
    } else {
        call.out.document(&turns);
    }
    Ok(Ended::Done)
}

/// The newest turn here and the verbs for turns, in a line; `None` if there is no turn.
pub fn newest(call: &Call) -> Option<String> {
    let verb::Newest { n, agent, may_undo } = verb::newest(call)?;
    let undo = if may_undo { format!(", {}", command("agent undo")) } else { String::new() };
    Some(format!("turn {n} of {}: {}{undo}", agent.word(), command("agent turns")))
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
