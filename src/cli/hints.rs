//! Reports of `run` beside its results: other pending sessions, changes below a session since it was held, places that stayed real.
//! Also the prompt of `shell`.

use std::ffi::{OsStr, OsString};

use super::history;
use crate::capture::run::command::Network;
use crate::capture::run::hold::Held;
use crate::compare::sources::{OnTree, Sources};
use crate::error::{Error, command, recant};
use crate::face::call::Call;
use crate::face::figures;
use crate::fs::path::AbsPath;
use crate::session::header::{Origin, Status};
use crate::session::id::Id;
use crate::session::net::Net;
use crate::session::opened::Session;
use crate::session::run::{Coverage, How};
use crate::session::sides::Side;
use crate::session::store::Store;
use crate::tree::project::project_of;

/// The number of newest sessions that are searched for a pending one: a run must not cost as much as a listing of thousands.
const NEWEST: usize = 8;

/// Tells once that this run does not see the newest pending session of a run from this project. An unreadable session is skipped: the
/// listings name it. Returns true if there is one of which the user was told, now or before.
pub fn pending(call: &Call, store: &Store, own: &Id, cwd: &AbsPath) -> bool {
    if call.out.is_quiet() {
        return false;
    }
    let names = store.sessions().names().unwrap_or_default();
    let mut ids: Vec<Id> = names.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect();
    // Ids begin with their time.
    ids.sort_by(|a, b| b.as_str().cmp(a.as_str()));
    let home = dirs::home_dir();
    let project = project_of(cwd, home.as_deref());
    let here = |directory: &AbsPath| directory.is_under(&project) || project.is_under(&project_of(directory, home.as_deref()));
    let pending = ids.iter().filter(|id| *id != own).take(NEWEST).find_map(|id| {
        let session = store.session(id).ok()?;
        let header = &session.header;
        let is_pending = header.status() == Status::Pending && header.origin == Origin::Captured && header.counts.changes > 0;
        let is_here = is_pending && session.run().is_ok_and(|run| run.is_some_and(|run| here(&run.cwd)));
        is_here.then_some(session)
    });
    let Some(session) = pending else { return false };
    if !session.was_told().is_ok_and(|told| told) {
        let tail = session.id().tail();
        let goes_on = command(format_args!("run --session {tail}"));
        call.out.note(format_args!("session {tail} is pending, not seen by this run: {goes_on}"));
        remember(call, &session);
    }
    true
}

/// Records that the user was told of pending sessions, so that later runs do not tell of this one.
pub fn remember(call: &Call, session: &Session) {
    if let Err(error) = session.note_told(&call.fs) {
        call.out.detail(format_args!("{error}; the next run will mention the pending session again"));
    }
}

/// Tells something once a project, under the key `about`. With `-q` it is neither told nor recorded. Paths in `text` are printed for
/// people.
pub fn once(call: &Call, store: &Store, cwd: &AbsPath, about: &str, text: &str) -> Result<(), Error> {
    let project = project_of(cwd, dirs::home_dir().as_deref());
    if call.out.is_quiet() || !store.is_news(&call.fs, &project, about)? {
        return Ok(());
    }
    if call.out.is_text() {
        call.out.note(figures::filled(&call.out.sentence(text)));
    } else {
        call.out.note(text);
    }
    Ok(())
}

/// The most paths that are named.
const NAMED: usize = 5;

/// The most paths that are looked at before a command goes on in a session: it must not cost more, the more the session holds.
const LOOKED_AT: usize = 100;

/// Warns, before a command goes on in a session, of paths that have changed on the tree since the session held them, as far as a look at
/// some of them tells. The command sees what the session holds; a commit will find conflicts there.
pub fn changed_below(call: &Call, session: &Session) -> Result<(), Error> {
    let changes = Net::open(session)?.some(LOOKED_AT)?;
    let mut sources = Sources::of(session)?;
    let changed: Vec<&AbsPath> = changes
        .iter()
        .filter(|change| sources.on_tree(change, Side::Never) == OnTree::Changed)
        .map(|change| &change.path)
        .collect();
    for path in changed.iter().take(NAMED) {
        call.out
            .warn(format_args!("{path}: changed on the tree since the session held it: the command sees what the session holds"));
    }
    if let Some(more) = changed.len().checked_sub(NAMED).filter(|more| *more > 0) {
        let tail = session.id().tail();
        call.out.warn(format_args!(
            "so did {}: {recant} diff {tail} names them all",
            figures::count(more as u64, "other path"),
            recant = recant()
        ));
    }
    Ok(())
}

/// Reports what no session can hold: places that stayed real, and an open network. Not known is if the command used it: to watch that
/// would cost on every file. `fresh`: this is the session's first run; later runs report it with `-v` alone.
pub fn beyond_files(call: &Call, held: &Held, network: Network, fresh: bool) {
    // The shell's history was reported at the start.
    let is_named = |row: &&Coverage| row.how == How::Passed && row.why.as_deref() != Some(history::WHY);
    let passed: Vec<String> = held.coverage.iter().filter(is_named).map(|row| row.path.to_string()).collect();
    let open = (network == Network::Open).then_some("the network");
    let real: Vec<&str> = passed.iter().map(String::as_str).chain(open).collect();
    if real.is_empty() {
        return;
    }
    let said = format!("open to it, and not held: {}; whether it was used is not known", real.join(", "));
    if passed.is_empty() || !fresh { call.out.detail(said) } else { call.out.note(said) }
}

/// A shell whose prompt names the session: its words and variables. An unknown shell keeps its prompt. So does zsh, but it is made to
/// write a passed history in place.
pub fn prompt(shell: &OsStr, id: &Id, keeps_history: bool) -> (Vec<OsString>, Vec<(OsString, OsString)>) {
    let says = format!("(recant {}) ", id.tail());
    let name = std::path::Path::new(shell).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let plain = vec![shell.to_owned()];
    match name {
        // Runs before each prompt, after the user's own files have set theirs.
        "bash" => (plain, vec![("PROMPT_COMMAND".into(), format!("PS1=\"{says}${{PS1#\"{says}\"}}\"").into())]),
        "fish" => {
            let setup =
                format!("functions -c fish_prompt recant_prompt; function fish_prompt; echo -n '{says}'; recant_prompt; end");
            ([plain, vec!["-C".into(), setup.into()]].concat(), Vec::new())
        }
        "sh" | "dash" | "ash" | "ksh" | "mksh" => (plain, vec![("PS1".into(), format!("{says}$ ").into())]),
        // rename cannot replace a history that is passed.
        "zsh" if keeps_history => ([plain, ["+o", "histsavebycopy"].map(OsString::from).to_vec()].concat(), Vec::new()),
        _ => (plain, Vec::new()),
    }
}
