//! `list`: all sessions, the newest first. Reads headers only.

use serde::Serialize;

use super::problem::Problem;
use super::text::{self, Side};
use super::{Call, Ended, Standing, cut_off};
use crate::error::Kind;
use crate::fs::dir::Time;
use crate::session::header::{Checkpoint, Header, Origin};
use crate::session::id::Id;
use crate::session::store::Broken;
use crate::tree::time;

/// A session as a listing shows it.
#[derive(Debug, Serialize)]
pub struct SessionRow<'a> {
    id: &'a Id,
    name: Option<&'a str>,
    status: &'static str,
    /// Its run has ended and waits to be collected.
    ended: bool,
    /// Its content may not have reached the disk.
    unsynced: bool,
    /// A journal of it is there.
    interrupted: bool,
    origin: Origin,
    #[serde(with = "time")]
    created: Time,
    #[serde(with = "time")]
    changed: Time,
    #[serde(with = "time::option")]
    discarded: Option<Time>,
    command: Option<&'a str>,
    changes: u64,
    #[serde(rename = "in")]
    inside: u64,
    ever_in: u64,
    generation: u64,
    held_bytes: u64,
    checkpoint: Checkpoint,
    checkpoint_bytes: u64,
    displaced_bytes: u64,
}

impl<'a> SessionRow<'a> {
    /// From the header and what a look at the store adds.
    pub fn new(header: &'a Header, standing: Standing) -> Self {
        Self {
            id: &header.id,
            name: header.name.as_deref(),
            status: standing.word,
            ended: standing.ended,
            unsynced: standing.unsynced,
            interrupted: standing.interrupted,
            origin: header.origin,
            created: header.created,
            changed: header.changed,
            discarded: header.discarded,
            command: header.command.as_deref(),
            changes: header.counts.changes,
            inside: header.counts.inside,
            ever_in: header.counts.ever_in,
            generation: header.generation,
            held_bytes: header.sizes.held,
            checkpoint: header.checkpoint,
            checkpoint_bytes: header.sizes.checkpoint,
            displaced_bytes: header.sizes.displaced,
        }
    }
}

/// A session that cannot be read.
#[derive(Debug, Serialize)]
pub struct Damaged<'a> {
    id: &'a str,
    why: &'a str,
}

impl<'a> Damaged<'a> {
    /// One that was said.
    pub fn new(id: &'a str, why: &'a str) -> Self {
        Self { id, why }
    }

    /// All of them, each said to standard error too.
    pub fn say_all(call: &Call, broken: &'a [Broken]) -> Vec<Self> {
        for session in broken {
            call.out.warn(format_args!("{}: the session is damaged: {}", shown(&session.name), session.why));
        }
        if broken.iter().any(|session| Id::parse(&session.name).is_some()) {
            call.out.note("recant session prune ID drops a damaged session; with --dry-run it tells what is lost with it");
        }
        broken.iter().map(|session| Self { id: &session.name, why: &session.why }).collect()
    }
}

/// A folder's name fit for a terminal.
pub fn shown(name: &str) -> String {
    crate::fs::path::Shown(name.as_bytes()).to_string()
}

/// `{"schema":2,"sessions":[…],"damaged":[…]}`.
#[derive(Serialize)]
struct Whole<'a> {
    sessions: &'a [SessionRow<'a>],
    damaged: &'a [Damaged<'a>],
}

/// Lists all sessions.
pub fn list(call: &Call) -> Result<Ended, Problem> {
    let (headers, broken, standings) = match call.store()? {
        None => Default::default(),
        Some(store) => {
            let (headers, mut broken) = store.headers()?;
            let journaled = cut_off(store, store.journaled()?);
            let (mut shown, mut standings) = (Vec::with_capacity(headers.len()), Vec::with_capacity(headers.len()));
            for header in headers.into_iter().rev() {
                match Standing::of(store, &header, &journaled) {
                    Ok(standing) => {
                        standings.push(standing);
                        shown.push(header);
                    }
                    Err(problem) => broken.push(Broken { name: header.id.to_string(), why: problem.message }),
                }
            }
            (shown, broken, standings)
        }
    };
    let damaged = Damaged::say_all(call, &broken);
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print(call, &headers, &standings);
        if headers.is_empty() && broken.is_empty() {
            call.out.note("no sessions");
        }
    } else {
        let rows: Vec<SessionRow> = headers.iter().zip(standings).map(|(h, standing)| SessionRow::new(h, standing)).collect();
        call.out.list(&Whole { sessions: &rows, damaged: &damaged }, || &rows);
    }
    Ok(if damaged.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

fn print(call: &Call, headers: &[Header], standings: &[Standing]) {
    if headers.is_empty() {
        return;
    }
    let title = ["ID", "STATUS", "CHANGES", "SIZE", "CHANGED", "NAME", "COMMAND"].map(String::from);
    let rows = headers.iter().zip(standings).map(|(header, standing)| {
        [
            header.id.to_string(),
            standing.text(),
            header.counts.changes.to_string(),
            text::bytes(header.sizes.all()),
            text::time(header.changed, false),
            header.name.clone().unwrap_or_default(),
            shown(header.command.as_deref().unwrap_or_default()),
        ]
    });
    let rows: Vec<[String; 7]> = std::iter::once(title).chain(rows).collect();
    let sides = [Side::Left, Side::Left, Side::Right, Side::Right, Side::Left, Side::Left, Side::Left];
    let mut lines = text::table(sides, &rows);
    call.out.styled(anstyle::Style::new().bold(), lines.next().unwrap_or_default());
    lines.for_each(|line| call.out.line(line));
}
