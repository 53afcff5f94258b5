//! Words for what a verb says while it works, and what it asks.

use std::path::Path;

use super::prune::plan;
use super::recovered;
use super::run::notice;
use super::run::service;
use super::snapshot::fact as snapshots;
use crate::capture::Rest;
use crate::error::command;
use crate::face::figures;
use crate::face::out::Out;
use crate::fs::{AbsPath, Shown};
use crate::session::{BROUGHT_BACK, FREED, Failed, Id, Stopped, log};
use crate::verb::error::{but, lost};
use crate::verb::{Behind, Collected, Fact, News, Standing};

/// The words for what a turn wrote outside of the project.
pub fn outside(n: u64, path: &Path) -> String {
    let path = Shown(path.as_os_str().as_encoded_bytes());
    format!("{path}: written by turn {n}, but not covered: it lies outside of the project")
}

/// The words for a session that a power cut may have cost content.
pub const UNSYNCED: &str = "the machine went down before the content was on the disk: files may be empty or truncated";

/// Says it: what must not be missed as a warning, the rest as a note.
pub fn tell(out: &Out, fact: &Fact<'_>) {
    match fact {
        Fact::Run(notice) => notice::tell(out, notice),
        Fact::Finished(signal) => out.note(format_args!("{signal} came too late: all was done")),
        Fact::Last { id, elsewhere } => {
            let place = elsewhere.map(|dir| format!(", begun in {dir}: this project has none")).unwrap_or_default();
            out.note(format_args!("last is {id}{place}"));
        }
        Fact::Named { name, id, begun_in } => {
            let place = begun_in.map(|dir| format!(", begun in {}", out.place(dir))).unwrap_or_default();
            out.note(format_args!("{name} is session {}{place}", id.tail()));
        }
        Fact::UnderWay(id) => out.note(format_args!("a run of session {id} is under way: 'last' does not mean it yet")),
        Fact::Collected(run) if run.lost.is_some() => out.warn(collected(run)),
        Fact::Collected(run) => out.note(collected(run)),
        Fact::Recovered(one) => recovered::say(out, one),
        Fact::Running(id) => {
            out.note(format_args!("a command runs in session {}: this is what it has changed so far", id.tail()))
        }
        Fact::NotCounted { id, why } => {
            out.warn(format_args!("session {id}: the changes of the command that runs in it are not counted: {}", why.message()))
        }
        Fact::Mixed(id) => {
            out.warn(format_args!("another recant was at work in session {id} meanwhile: this may mix old and new"))
        }
        Fact::Waiting(store) => out.note(format_args!("another recant is at work in {store}; waiting")),
        Fact::Unswept(error) => {
            out.warn(format_args!("{error}; this does no harm, and the next verb that changes something tries again"))
        }
        Fact::ObjectStays(error) => {
            out.warn(format_args!("{error}; this does no harm, and the next staging in this session tries again"));
        }
        Fact::CameUnnamed(name) => {
            out.warn(format_args!("the name {name} is taken here: the session is imported without it"));
        }
        Fact::MappedInVain(from) => {
            out.warn(format_args!("--map {from}=…: no path of the session lies there"));
        }
        Fact::NotLogged(error) => out.warn(format_args!("the log could not be written: {error}")),
        Fact::NoRenames(error) => out.warn(format_args!("renamed files are shown as deleted and created: {error}")),
        Fact::TooManyToCompare => {
            out.note("too many files were created and deleted to compare them all: only identical ones are shown as renamed")
        }
        Fact::Unsynced => out.warn(UNSYNCED),
        Fact::NotBelow { step } => out.note(format_args!("step {step} is not below the head: the two are compared")),
        // The answer has it, if it holds something.
        Fact::New { former: None, .. } if out.is_for_tools() => {}
        Fact::New { id, name, former } => {
            let former = former.map(|id| format!("; {} of that name is rolled back, and not all of it is there", id.tail()));
            out.note(format_args!("new session {}, named {name}{}", id.tail(), former.unwrap_or_default()));
        }
        Fact::OpenAgain(id) => out.note(format_args!("session {} is open again: its commit was undone", id.tail())),
        Fact::WaitsForCommand(id) => out.note(format_args!("waiting for the command that runs in session {}", id.tail())),
        Fact::StopsService(name) => out.note(format_args!("waiting until {name} ends (SIGTERM; after 10 s SIGKILL)")),
        Fact::ServiceStopped(stopped) if stopped.stopped == Some(Stopped::Killed) => out.warn(service::said(stopped)),
        Fact::ServiceStopped(stopped) => out.note(service::said(stopped)),
        Fact::Unnamed { id, name } => {
            out.warn(format_args!("another session got the name {name} meanwhile: session {} has none", id.tail()))
        }
        Fact::Warning(warning) => out.warn(warning),
        Fact::Note(note) => out.note(note),
        Fact::News(News { session, entry: None, .. }) if out.is_for_tools() => {
            out.note(format_args!("others went on in session {}", session.name.as_deref().unwrap_or(session.id.tail())));
        }
        Fact::News(news) if out.is_for_tools() => out.note(self::news(out, news)),
        Fact::News(news) => out.note(figures::filled(&self::news(out, news))),
        Fact::NotKept(error) => out.warn(format_args!("cannot keep what rollback --merge needs: {error}")),
        Fact::Merged { path, dry_run } => {
            let would = if *dry_run { "would be " } else { "" };
            out.note(format_args!("{}: {would}merged with what was changed there since", out.shown(path)));
        }
        Fact::NothingChosen(id) => {
            out.note(format_args!("nothing of session {} was chosen, and nothing was changed", id.tail()));
        }
        Fact::NothingOnTree(id) => {
            let id = id.tail();
            out.note(format_args!("nothing of that part of session {id} is left on the tree, and nothing was changed"));
        }
        Fact::LeavesBehind { id, behind } => {
            let (count, fork) =
                (figures::count(behind.count, "step"), command(format_args!("fork {} {}", id.tail(), behind.newest)));
            out.note(format_args!("a commit leaves {count} behind: {fork} first keeps one"));
        }
        Fact::OwnStoreStays(error) => {
            out.warn(format_args!("the store that its run had inside could not be removed: {error}"));
        }
        Fact::OfNoUse { id, why } => {
            let discard = command(format_args!("discard {id}"));
            out.warn(format_args!("session {id} holds nothing of use and could not be removed: {why}; {discard}"));
        }
        Fact::Interrupted { id, found } => out.warn(format_args!("session {id}: {}", recovered::interrupted(found))),
        Fact::NothingToConfirm(id) => {
            out.warn(format_args!("session {id} is committed already: there is nothing to confirm"));
        }
        Fact::EarlierTimeCounts(error) => {
            out.warn(format_args!("{error}: the time that was noted before the commit counts"));
        }
        Fact::NotConfirmed { id, due, taken_back } => {
            let by = figures::time(*due, true);
            match taken_back {
                Ok(count) => {
                    out.warn(format_args!("session {id} was not confirmed by {by}: rolled back, {count} taken back"));
                }
                Err(why) => out.warn(format_args!("session {id} was not confirmed by {by}, and stays: {}", why.message())),
            }
        }
        Fact::NotSettled { id, why } => {
            out.warn(format_args!("session {id} was not confirmed in time, and stays: {}", why.message()));
        }
        Fact::Rest { of, part, rest } => self::rest(out, of, part, rest),
        Fact::Freed(ids) => {
            let ids = ids.iter().map(Id::tail).collect::<Vec<_>>().join(", ");
            out.note(figures::filled(&format!("what was discarded before is freed (retention.discarded): {ids}")));
        }
        Fact::NotFreed(error) => out.warn(format_args!("what was discarded before could not be freed: {error}")),
        Fact::Newest(newest) => out.note(newest),
        Fact::PassedOver { count, newest } => {
            let (acts, newest) = (figures::count(*count as u64, "act"), newest.tail());
            out.note(format_args!("skipped: {acts} of others on held sessions, the newest on {newest}"));
        }
        Fact::TakesHooksAway(install) => {
            let undo = command("agent undo");
            out.note(figures::filled(&format!("the newest act is {install}; {undo} takes back what an agent's turn wrote")));
        }
        Fact::NameTaken { id, name } => {
            out.warn(format_args!("the name {name} is taken by now: session {} is brought back without a name", id.tail()));
        }
        Fact::WroteOutside { n, path } => out.note(outside(*n, path)),
        Fact::EditedByLink { link, path } => {
            out.say(format_args!("recant: {} is a link: the edit is made in {}", out.shown(link), out.shown(path)));
        }
        Fact::EditNotRecorded(error) => {
            out.warn(format_args!("cannot record the edit: {error}; uninstall will search for the hooks instead"));
        }
        Fact::Snapshot(fact) => snapshots::tell(out, fact),
        Fact::LossNotListed(error) => out.warn(format_args!("{error}; its paths are counted, not listed")),
        Fact::Prunes(all) => {
            if out.is_text() {
                plan::lines(out, all).into_iter().for_each(|line| out.say(line));
            }
        }
    }
}

/// Says what became of the session that a part left, once the part is rolled back or redone.
pub fn rest(out: &Out, of: &Id, part: &Id, rest: &Rest) {
    let (of, redo) = (of.tail(), command(format_args!("redo {}", part.tail())));
    match rest {
        // What could not be told is an error.
        Rest::None | Rest::Untold(_) => {}
        Rest::Joined(changes) => out.note(format_args!("session {of} holds it again: {}", figures::count(*changes, "change"))),
        Rest::GoesOn(None) => out.note(format_args!("session {of} goes on without it: {redo} brings it back")),
        Rest::GoesOn(Some(why)) => out.warn(format_args!("session {of} goes on without it: {why}; {redo} brings it back")),
    }
}

/// Says that a commit left steps behind.
pub fn left_behind(out: &Out, id: &Id, Behind { count, newest }: Behind) {
    let (are, n, each) = if count == 1 { ("is", newest.to_string(), "it") } else { ("are", "N".into(), "each") };
    let (count, shows) = (figures::count(count, "step"), command(format_args!("diff {} --step {n}", id.tail())));
    out.note(format_args!("{count} {are} left behind: {shows} still shows {each}"));
}

/// The most places of an act that are named.
const PLACES: usize = 3;

/// The first places of an act on a part.
pub fn places(out: &Out, at: &[AbsPath]) -> String {
    let mut named: Vec<String> = at.iter().take(PLACES).map(|path| out.shown(path).to_string()).collect();
    named.extend((at.len() > PLACES).then(|| "…".to_owned()));
    named.join(", ")
}

/// An act in words: `session s had 2 changes (tests) discarded by a person: not the code`.
pub fn news(out: &Out, News { session, entry, at }: &News<'_>) -> String {
    let tail = session.id.tail();
    let name = session.name.as_deref().unwrap_or(tail);
    let Some(entry) = entry else {
        return format!("others went on in session {name}: {}", command(format_args!("steps {tail}")));
    };
    let at = places(out, at);
    let at = |before: &str, behind: &str| if at.is_empty() { String::new() } else { format!("{before}{at}{behind}") };
    let what = match &session.of {
        Some(_) => format!("a part of session {name}, {tail} ({}{}),", figures::count(entry.paths, "path"), at(": ", "")),
        None => format!("session {name}"),
    };
    let done = match entry.verb.split_once(' ') {
        Some(("rewind", step)) => format!("was rewound to step {step}"),
        Some(("discard", "paths")) => {
            format!("had {}{} discarded", figures::count(entry.paths, "change"), at(" (", ")"))
        }
        _ => match &*entry.verb {
            "commit" => "was committed".into(),
            "rollback" => "was rolled back".into(),
            "redo" => "was committed again".into(),
            log::EDIT => format!("had {} edited", figures::count(entry.paths, "file")),
            "discard" | FREED => "was discarded".into(),
            BROUGHT_BACK => "was brought back".into(),
            verb => format!("had a {verb}"),
        },
    };
    let by = entry.about.by.as_ref().map_or_else(|| "a person".into(), ToString::to_string);
    let reason = entry.purpose.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{what} {done} by {by}{reason}")
}

/// A run that was cut off, and what became of that.
pub fn collected(run: &Collected) -> String {
    lost(run).unwrap_or_else(|| {
        let held = figures::count(run.changes, "change");
        format!("the run of session {} was cut off; what it had changed is held: {held}", run.id)
    })
}

/// The status of a session, with its conditions.
pub fn standing(standing: Standing) -> String {
    let mut text = standing.word.replace('_', " ");
    let left = format!("{} left", standing.left);
    let failed = standing.failed.map(Failed::text).unwrap_or_default();
    let conditions = [
        (standing.failed.is_some(), &*failed),
        (standing.imported, "imported"),
        (standing.unsynced, "unsynced"),
        (standing.interrupted, "interrupted"),
        (standing.left > 0, &*left),
    ];
    for (on, word) in conditions {
        if on {
            text.push_str(", ");
            text.push_str(word);
        }
    }
    text + &but(standing.counts)
}
