//! The head of a page: the facts of a session, a step or a comparison, and what has to be minded of it.

use super::html::Of;
use crate::compare::{About, Common};
use crate::error::{Error, command};
use crate::face::call::Call;
use crate::face::figures;
use crate::face::text::coverage;
use crate::face::text::fact::UNSYNCED;
use crate::face::text::show::{self, agent_text};
use crate::face::text::steps::words;
use crate::fs::AbsPath;
use crate::session::{Session, Status, Store};
use crate::verb::{Pair, Standing};

fn session(call: &Call, store: &Store, session: &Session) -> Result<Of, Error> {
    let header = &session.header;
    let standing = Standing::now(store, header)?;
    let run = crate::verb::show::at_head(session, session.run()?)?;
    let name = header.name.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
    let mut about = About { title: format!("Changes of session {}{name}", header.id.tail()), ..About::default() };
    for (key, value) in show::facts(call, session, standing, run.as_ref()) {
        let value = match (key, &run) {
            ("in", Some(run)) => run.command.cwd.to_string(),
            ("status", _) => format!("{value}{}", meaning(header.status())),
            _ => value,
        };
        about.facts.push((key.into(), value));
        about.facts.extend(run.as_ref().filter(|_| key == "in").map(|run| ("by".into(), user(run.uid))));
    }
    about.facts.extend(header.cwd.as_ref().filter(|_| run.is_none()).map(|cwd| ("in".into(), cwd.to_string())));
    if let Some(run) = &run {
        about.notes.extend(show::noted(run).into_iter().map(|(word, text)| (word.into(), text)));
        about.places = run.coverage.iter().map(coverage::words).collect();
    }
    if session.is_so_far() {
        about.notes.push(("running".into(), "a command runs in the session: this is what it has changed so far".into()));
    }
    if header.unsynced {
        about.notes.push(("unsynced".into(), UNSYNCED.into()));
    }
    let base = run.map(|run| run.command.cwd).or_else(|| header.cwd.clone());
    Ok(Of { about, common: common(base, ["before".into(), "after".into()], format!("diff {}", header.id.tail())) })
}

/// The head of a page of two sides.
pub fn pair(call: &Call, store: &Store, pair: Pair<'_>) -> Result<Of, Error> {
    let id = pair.session().id().tail();
    let (title, options, step) = match pair {
        Pair::Session(of) => return session(call, store, of),
        Pair::Two(sessions) => return two(call, store, sessions),
        Pair::Step(_, step) => (format!("Step {} of session {id}", step.n), format!("--step {}", step.n), Some(step)),
        Pair::Running(_, [_, n]) => (format!("Step {n} of session {id}, which runs"), format!("--step {n}"), None),
        Pair::Since(_, [from, _]) => (format!("Session {id} after step {from}"), format!("--since {from}"), None),
    };
    let mut of = session(call, store, pair.session())?;
    of.about.title = title;
    of.common.whole = command(format_args!("diff {id} {options}")).into();
    let Some(step) = step else { return Ok(of) };
    // The facts are those of its command; the session's name and status stay.
    of.about.facts.retain(|(key, _)| matches!(&**key, "session" | "status"));
    let mut fact = |key: &str, value: String| of.about.facts.push((key.into(), value));
    let ending = step.command.ending.map(|ending| format!(", ended {}", show::ending_text(ending))).unwrap_or_default();
    fact("begun", format!("{}{ending}", figures::time(step.command.started, true)));
    fact("command", words(&step.command.argv));
    fact("in", step.command.cwd.to_string());
    if let Some(by) = &step.command.by {
        fact("agent", agent_text(by));
    }
    fact("by", user(step.uid));
    of.common.base = Some(step.command.cwd.clone());
    Ok(of)
}

fn two(call: &Call, store: &Store, [old, new]: [&Session; 2]) -> Result<Of, Error> {
    let [one, other] = [session(call, store, old)?, session(call, store, new)?];
    let tails = [old, new].map(|session| session.id().tail().to_owned());
    let mut about = About { title: format!("Session {} against session {}", tails[0], tails[1]), ..About::default() };
    for ((of, sign), tail) in [(&one, '−'), (&other, '+')].into_iter().zip(&tails) {
        about.facts.extend(of.about.facts.iter().map(|(key, value)| (format!("{sign} {key}"), value.clone())));
        about.notes.extend(of.about.notes.iter().map(|(word, text)| (format!("{tail}, {word}"), text.clone())));
    }
    let sides = tails.clone().map(|tail| format!("session {tail}"));
    Ok(Of { about, common: common(one.common.base, sides, format!("diff {} --with {}", tails[0], tails[1])) })
}

/// The head of a page of conflicts, with notes of what is refused.
pub fn conflicts(call: &Call, store: &Store, of: &Session, notes: Vec<(String, String)>) -> Result<Of, Error> {
    let id = of.id().tail();
    let mut page = session(call, store, of)?;
    page.about.title = format!("Conflicts of session {id}");
    page.about.notes.extend(notes);
    page.common.whole = command(format_args!("diff {id} --conflicts")).into();
    Ok(page)
}

/// The things that all files have in common. `words` are those of the call that shows a path.
pub fn common(base: Option<AbsPath>, sides: [String; 2], words: String) -> Common {
    Common { base, sides, whole: command(words).into(), ..Common::default() }
}

/// A status, for those who do not use recant.
fn meaning(status: Status) -> &'static str {
    match status {
        Status::Pending => ": held, and the files are as they were",
        Status::Committed => ": the files have these changes",
        Status::RolledBack => ": the files are as they were before",
        _ => "",
    }
}

fn user(uid: u32) -> String {
    if uid == 0 { "root".into() } else { format!("user {uid}") }
}
