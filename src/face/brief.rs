//! Lists in JSON for agents, which pay for each byte: `--brief` prints at most [`MOST`] bytes, and `next`, by which a further call goes on.
//! Without it `--json` is whole: a program that reads a part for all of it is wrong and does not notice.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::call::Call;
use super::calling_agent;
use crate::error::Error;
use crate::fs::Time;
use crate::tree::{Hash, json, time};

/// The most bytes that a call prints, with its newlines. An item that is larger alone is printed alone.
const MOST: usize = 2_048;

/// The most columns of a text in a row: a command, a reason.
pub const TEXT: usize = 60;

/// Characters of a cursor: six of the list, a point, and the place.
const CURSOR: usize = 6 + 1 + PLACE;
/// The most characters of a place.
const PLACE: usize = 12;

/// A list that is printed in pages.
pub struct List<'l> {
    pub key: &'static str,
    /// All that tells it from other lists: the verb, ids, paths.
    pub of: Vec<&'l [u8]>,
    pub count: usize,
}

/// The place of an item in its list: after it a further page begins.
pub enum Place<'i> {
    /// Its number. Items come in falling order, so that new ones do not move the others.
    Number(u64),
    /// The bytes that name it.
    Name(&'i [u8]),
}

impl Place<'_> {
    fn text(&self) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Name(name) => short(name, PLACE),
        }
    }
}

#[derive(Serialize)]
struct Document<'a, H, R> {
    #[serde(flatten)]
    head: &'a H,
    #[serde(flatten)]
    items: BTreeMap<&'static str, &'a [R]>,
    #[serde(flatten)]
    rest: Rest,
}

/// How much of the list there is, and the cursor of the next page.
#[derive(Serialize)]
struct Rest {
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Prints the page after the cursor `after`, or the first one. `head` is repeated on each page. `place` and `row` are asked by an item's
/// index; of rows, only those of the page are made.
///
/// # Errors
/// The cursor is of another list, or the item at which it stands is gone.
pub fn print<'i, R: Serialize>(
    call: &Call,
    list: &List<'_>,
    after: Option<&str>,
    head: &impl Serialize,
    place: impl Fn(usize) -> Place<'i>,
    mut row: impl FnMut(usize) -> Result<R, Error>,
) -> Result<(), Error> {
    let tag = short(&list.of.join(&0), 6);
    let first = after.map_or(Ok(0), |after| first(after, &tag, list.count, &place))?;
    let cursor = |rows: usize| {
        let last = (first + rows < list.count).then(|| (first + rows).checked_sub(1)).flatten();
        Rest { total: list.count, next: last.map(|last| format!("{tag}.{}", place(last).text())) }
    };
    let longest = Rest { total: list.count, next: Some("-".repeat(CURSOR)) };
    let mut room = {
        let items: BTreeMap<&'static str, &[R]> = BTreeMap::from([(list.key, &[][..])]);
        let frame = call.out.printed(&Document { head, items, rest: longest }).len();
        MOST.saturating_sub(1).saturating_sub(frame)
    };
    let mut rows = Vec::new();
    for i in first..list.count {
        let row = row(i)?;
        // A comma goes with each.
        let size = 1 + json::printed(&row).len();
        if size > room && !rows.is_empty() {
            break;
        }
        room = room.saturating_sub(size);
        rows.push(row);
    }
    let rest = cursor(rows.len());
    call.out.document(&Document { head, items: BTreeMap::from([(list.key, &*rows)]), rest });
    Ok(())
}

/// The index of the item after the cursor.
fn first<'i>(after: &str, tag: &str, count: usize, place: &impl Fn(usize) -> Place<'i>) -> Result<usize, Error> {
    let Some((_, at)) = after.split_once('.').filter(|(list, _)| *list == tag) else {
        let problem = Error::refused(format!("--after {after:?} is no place in this list"));
        return Err(problem.with_remedy("call as for the page that had it as 'next', with the session's id for 'last'"));
    };
    let number = at.parse().ok();
    let is_behind = |i: &usize| match place(*i) {
        Place::Number(n) => number.is_some_and(|number: u64| n < number),
        Place::Name(_) => i.checked_sub(1).is_some_and(|before| place(before).text() == at),
    };
    match (0..count).find(is_behind) {
        Some(i) => Ok(i),
        // Nothing comes after it any more.
        None if count == 0 || number.is_some() && matches!(place(0), Place::Number(_)) => Ok(count),
        None if place(count - 1).text() == at => Ok(count),
        None => {
            let problem = Error::refused(format!("the list has changed: what stood at --after {after} is gone"));
            Err(problem.with_remedy("begin again, without --after"))
        }
    }
}

fn short(bytes: &[u8], digits: usize) -> String {
    let mut text = Hash::of(bytes).to_string();
    text.truncate(digits);
    text
}

/// Tells an agent of `--brief` after JSON that is larger.
pub fn offer(call: &Call, options: &str) {
    let printed = call.out.printed_bytes();
    if !call.out.is_text() && printed > MOST && !call.can_ask && calling_agent::variable().is_some() {
        call.out.note(format_args!("{printed} bytes of JSON: {options} prints pages of {MOST}"));
    }
}

pub struct Seconds(pub Time);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = time::to_text(Time { s: self.0.s, ns: 0 });
        serializer.serialize_str(&text.replace(".000000000", ""))
    }
}

/// True for what a brief row leaves out: `false`, 0.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
