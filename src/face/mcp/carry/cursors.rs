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
pub struct Cursors(Mutex<VecDeque<(Name, String, Map<String, Value>)>>);

impl Cursors {
    /// The call, with all arguments of the one that gave its cursor, if it has no other ones.
    pub fn completed(&self, asked: &Asked) -> Asked {
        let mut asked = asked.clone();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |arguments: &Map<String, Value>| {
            asked.arguments.iter().all(|(name, value)| name == "cursor" || arguments.get(name) == Some(value))
        };
        let found = known
            .iter()
            .rev()
            .find(|(tool, cursor, arguments)| *tool == asked.tool.is && asked.text("cursor") == Some(cursor) && fits(arguments));
        if let Some((.., arguments)) = found {
            let cursor = asked.arguments["cursor"].clone();
            asked.arguments.clone_from(arguments);
            asked.arguments.insert("cursor".into(), cursor);
        }
        asked
    }

    /// Remembers the call if its answer has a further page.
    pub fn note(&self, asked: &Asked, outcome: &Outcome) {
        let Some(next) = outcome.document["next"].as_str() else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_back((asked.tool.is, next.to_owned(), asked.arguments.clone()));
        if known.len() > MOST {
            known.pop_front();
        }
    }
}
