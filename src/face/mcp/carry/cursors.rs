//! The arguments of calls whose answer has a further page, so that its cursor alone is enough. They lie in memory: after a restart they are
//! repeated.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

use crate::face::mcp::carrier::{Asked, Outcome};
use crate::face::mcp::tools::Name;

/// The most calls that are remembered.
const MOST: usize = 64;

/// Calls by the cursors of their next pages, the newest last.
#[derive(Default)]
pub struct Cursors(Mutex<VecDeque<Page>>);

/// A call whose answer has a further page.
struct Page {
    tool: Name,
    /// The cursor of the next page.
    next: String,
    arguments: Map<String, Value>,
}

impl Cursors {
    /// The call, with all arguments of the one that gave its cursor, if it has no other ones. `None` if calls that are not the same gave that
    /// cursor: pages with an equal end.
    pub fn completed(&self, asked: &Asked) -> Option<Asked> {
        let mut asked = asked.clone();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |arguments: &Map<String, Value>| {
            asked.arguments.iter().all(|(name, value)| name == "cursor" || arguments.get(name) == Some(value))
        };
        let is_of = |page: &&Page| page.tool == asked.tool.is && asked.text("cursor") == Some(&*page.next);
        let of_call = |page: &Page| {
            let of_call = |(name, _): &(&String, &Value)| *name != "cursor";
            page.arguments.iter().filter(of_call).map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>()
        };
        let mut found = known.iter().rev().filter(|page| is_of(page) && fits(&page.arguments));
        if let Some(page @ Page { arguments, .. }) = found.next() {
            if found.any(|other| of_call(other) != of_call(page)) {
                return None;
            }
            let cursor = asked.arguments["cursor"].clone();
            asked.arguments.clone_from(arguments);
            asked.arguments.insert("cursor".into(), cursor);
        }
        Some(asked)
    }

    /// Remembers the call, on this session if it named none, if its answer has a further page.
    pub fn note(&self, asked: &Asked, session: Option<&str>, outcome: &Outcome) {
        let Some(next) = outcome.document["next"].as_str() else { return };
        let mut arguments = asked.arguments.clone();
        if let Some(session) = session {
            arguments.entry("session").or_insert_with(|| session.into());
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_back(Page { tool: asked.tool.is, next: next.to_owned(), arguments });
        if known.len() > MOST {
            known.pop_front();
        }
    }
}
