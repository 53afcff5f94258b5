//! The conditions of `log`: time, project, agent.

use super::args;
use super::call::Call;
use crate::error::{command, shell_word};
use crate::fs::dir::Time;
use crate::fs::path::AbsPath;
use crate::session::by::By;
use crate::session::header::Header;
use crate::session::log::{About, Entry};
use crate::session::store::Store;
use crate::verb::scope::Scope;

/// The conditions of a call.
pub struct Filter<'a> {
    store: &'a Store,
    since: Option<i64>,
    scope: Scope,
    agent: Option<&'a str>,
}

impl<'a> Filter<'a> {
    /// The conditions of these arguments. Without a working directory they are of all projects.
    pub fn of(call: &Call, store: &'a Store, args: &'a args::Log) -> Self {
        let is_named = args.all || !args.what.is_empty();
        let scope = if is_named { Scope::everywhere() } else { Scope::of(call).unwrap_or_else(|_| Scope::everywhere()) };
        Self { store, since: args.since.as_ref().map(|since| since.s), scope, agent: args.agent.as_deref() }
    }

    /// True if a line of the log is asked for.
    pub fn has_entry(&self, entry: &Entry) -> bool {
        let About { by, made_by, cwd, .. } = &entry.about;
        self.has_time(entry.time)
            && [by, made_by].into_iter().any(|by| self.has_agent(by.as_ref()))
            && match cwd {
                Some(dir) => self.has_place(dir),
                // A session whose directory was gone.
                None => {
                    self.scope.project.is_none()
                        || self.store.session(&entry.session).is_ok_and(|session| self.has_session(&session.header))
                }
            }
    }

    /// True if what was done then is asked for.
    pub fn has_time(&self, time: Time) -> bool {
        self.since.is_none_or(|since| time.s >= since)
    }

    /// True if what this agent did is asked for.
    pub fn has_agent(&self, by: Option<&By>) -> bool {
        self.agent.is_none_or(|agent| by.is_some_and(|by| by.agent == agent))
    }

    /// True if what was done in a directory is asked for.
    pub fn has_place(&self, dir: &AbsPath) -> bool {
        self.scope.has_directory(dir)
    }

    /// True if a session is of a project that is asked for.
    pub fn has_session(&self, header: &Header) -> bool {
        self.scope.has(self.store, header)
    }
}

/// The options of a call again, with the words in front, for the command that lists all.
pub fn again(args: &args::Log, words: &str) -> String {
    let mut text = format!("log{words}");
    if let Some(since) = &args.since {
        text.push_str(&format!(" --since {}", since.text));
    }
    if args.all {
        text.push_str(" --all");
    }
    if let Some(agent) = &args.agent {
        text.push_str(&format!(" --agent {}", shell_word(agent.as_bytes())));
    }
    command(format!("{text} -v"))
}
