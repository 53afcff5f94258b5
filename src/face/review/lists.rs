//! The lists that the screen lays over itself: steps and turns.

use super::error_lines::said;
use super::session::opened;
use crate::error::Error;
use crate::face::call::Call;
use crate::face::figures;
use crate::face::screen::world::Row;
use crate::face::text::steps;
use crate::fs::AbsPath;
use crate::session::Id;
use crate::verb::agent::turns;

/// Names of columns, and rows.
type Table = (Vec<String>, Vec<Row>);

/// The steps of a session that can be gone back to, the newest first, with step 0.
pub fn steps(store: &AbsPath, id: &Id) -> Result<Table, String> {
    let read = || -> Result<Table, Error> {
        let session = opened(store)?.session(id)?;
        let (header, list) = (&session.header, crate::verb::steps::of(&session)?);
        let kept = list.kept(header);
        let head = header.head();
        let steps = list.steps.iter().rev().filter(|step| kept.contains(&step.n));
        let mut rows: Vec<Row> = steps
            .map(|step| Row {
                n: step.n.into(),
                is_head: step.n == head,
                columns: steps::of_step(step.n.to_string(), step).to_vec(),
            })
            .collect();
        let zero = ["0", "", "", "", "", "the tree as it was"].map(str::to_owned).to_vec();
        rows.push(Row { n: 0, is_head: head == 0, columns: zero });
        Ok((["STEP", "WHEN", "END", "CHANGES", "WHO", "COMMAND"].map(str::to_owned).to_vec(), rows))
    };
    read().map_err(said)
}

/// The turns of the project, the newest first.
pub fn turns(call: &Call) -> Result<Table, String> {
    let read = || -> Result<Table, Error> {
        let row = |turn: &turns::Row| Row {
            n: turn.n,
            is_head: false,
            columns: vec![
                turn.n.to_string(),
                figures::day(turn.time),
                turn.agent.word().to_owned(),
                turn.paths.to_string(),
                if turn.undone.is_some() && !turn.partly { "undone" } else { "" }.to_owned(),
                crate::face::text::list::shown(&turn.prompt),
            ],
        };
        let rows = turns::turns(call, None)?.turns.iter().map(row).collect();
        Ok((["TURN", "WHEN", "AGENT", "PATHS", "", "PROMPT"].map(str::to_owned).to_vec(), rows))
    };
    read().map_err(said)
}
