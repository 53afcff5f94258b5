//! `agent turns`: the turns of agents in this project, the newest first.

use serde::Serialize;

use super::project_turns::Here;
use super::project_turns::is_back;
use crate::agent::{Agent, Turn, fates, own};
use crate::error::Error;
use crate::fs::{AbsPath, Time};
use crate::session::Id;
use crate::tree::time;
use crate::verb::desk::Desk;

/// The turns of a project, as JSON has them: docs/json.md.
#[derive(Serialize)]
pub struct Turns {
    pub directory: AbsPath,
    pub turns: Vec<Row>,
}

/// A turn of a listing.
#[derive(Serialize)]
pub struct Row {
    pub n: u64,
    #[serde(with = "time")]
    pub time: Time,
    pub agent: Agent,
    pub prompt: String,
    /// The number of paths that it wrote.
    pub paths: usize,
    /// The number of things it changed that its snapshots do not have.
    pub not_covered: usize,
    /// False if it began before its snapshot was whole.
    pub covered: bool,
    pub ended: bool,
    /// The last session that took it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone: Option<Id>,
    /// True if that took a part of it back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partly: bool,
}

/// Lists the turns of this project, or those of one agent.
///
/// # Errors
/// No agent's turn was ever noted here; one cannot be read.
pub fn turns(desk: &Desk, agent: Option<Agent>) -> Result<Turns, Error> {
    let here = Here::find(desk)?;
    let mut turns = here.all()?;
    turns.retain(|turn| agent.is_none_or(|agent| turn.head.agent == agent));
    let undone = here.undone(&turns)?;
    let row = |turn: &Turn| Row {
        n: turn.head.n,
        time: turn.head.time,
        agent: turn.head.agent,
        prompt: turn.head.prompt.clone(),
        paths: own(turn).count(),
        not_covered: fates(&[turn], None).len(),
        covered: turn.covered,
        ended: turn.is_settled,
        undone: here.undone_by(turn).pop().filter(|_| own(turn).next().is_some()),
        partly: undone.contains_key(&turn.head.n) && !is_back(turn, &undone),
    };
    let rows = turns.iter().rev().map(row).collect();
    Ok(Turns { directory: here.directory, turns: rows })
}

/// The newest turn here.
pub struct Newest {
    pub n: u64,
    pub agent: Agent,
    /// True if there is a turn to be taken back.
    pub may_undo: bool,
}

/// Finds it; `None` if there is none, or nobody is here.
pub fn newest(desk: &Desk) -> Option<Newest> {
    let here = Here::if_any(desk)?;
    let turns = &here.turns;
    let head = turns.turn(*turns.numbers().ok()?.last()?).ok()??.head;
    Some(Newest { n: head.n, agent: head.agent, may_undo: to_undo(&here).is_some() })
}

/// The turn that `agent undo` without a number means.
pub fn newest_to_undo(desk: &Desk) -> Option<u64> {
    to_undo(&Here::if_any(desk)?)
}

fn to_undo(here: &Here<'_>) -> Option<u64> {
    here.meant(&here.all().ok()?, None).ok()
}
