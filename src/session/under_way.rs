//! A command that runs in a session now, as messages tell it.

use super::run_record::CommandRecord;
use crate::tree::since;

/// A command that runs in a session now.
#[derive(Debug, Clone)]
pub struct UnderWay {
    pub command: CommandRecord,
    /// True for the one that others joined.
    pub is_first: bool,
}

impl UnderWay {
    /// `web: "npm run dev" has run in it since 19:50`.
    pub fn says(&self) -> String {
        let name = self.service().map(|name| format!("{name}: ")).unwrap_or_default();
        format!("{name}{} has run in it since {}", self.quoted(), self.since())
    }

    /// The command line, in quotes, shortened.
    pub fn quoted(&self) -> String {
        format!("\"{}\"", shortened(self.command.called()))
    }

    /// Its name, if it is a service.
    pub fn service(&self) -> Option<&str> {
        self.command.service.as_ref().map(|service| &*service.name)
    }

    /// `19:50`, or `2026-03-01 19:50`.
    pub fn since(&self) -> String {
        since(self.command.started)
    }
}

/// The most characters of a command line in a message.
const WORDS: usize = 20;

fn shortened(line: String) -> String {
    match line.char_indices().nth(WORDS) {
        Some((at, _)) => format!("{}…", line[..at].trim_end()),
        None => line,
    }
}
