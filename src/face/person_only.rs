//! The verbs that a person alone may decide: an agent that calls one is refused, with the command for the person.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use crate::error::{Error, shell_word};
use crate::face::args::table::{only_tells, row};
use crate::face::args::{AgentVerb, Commit, SessionVerb, SnapshotVerb, Verb, turn_and_paths};
use crate::face::call::Call;
use crate::remedy::shell;
use crate::session::{Id, Origin};
use crate::verb::agent::turns::newest_to_undo;
use crate::verb::error::refused;
use crate::verb::policy;
use crate::verb::resolve::find_session;
use crate::verb::resolve::guard::limited;
use crate::verb::{Decider, Want};

/// Refuses what only a person may decide, if an agent calls. `words`: the arguments of the call, without the
/// program's name. `elsewhere`: they are for another machine.
pub fn refuse(call: &Call, verb: &Verb, words: &[OsString], elsewhere: bool) -> Result<(), Error> {
    let (Some(variable), Some(session)) = (limited(call), decided(verb, elsewhere)) else { return Ok(()) };
    if !elsewhere && policy::is_set(call) && may_fit(verb) {
        return Ok(());
    }
    // The sessions of another machine are not known here.
    let session = session
        .filter(|_| !elsewhere)
        .and_then(|(key, want)| Some((key, exactly(call, &find_session::meant(call, key, want)?, want))));
    let words = asking(verb, words, elsewhere, call);
    Err(refused(variable, shell(typed(words, session))))
}

/// True for a commit that a policy may allow: without an option by which a person decides.
fn may_fit(verb: &Verb) -> bool {
    let Verb::Commit(args) = verb else { return false };
    let Commit { force, merge, accept_unsynced, confirm_within, patch, .. } = args;
    !force && !merge && !accept_unsynced && confirm_within.is_none() && !patch
}

/// For a verb that only a person may call: the word that names its session, if one does. `None` for any other verb. A person's verbs change
/// real files, or end the way back.
fn decided(verb: &Verb, elsewhere: bool) -> Option<Option<(&str, Want)>> {
    let asks_a_person = match verb {
        Verb::Confirm(args) => !args.watch,
        // Here it refuses by itself: an agent may take back what it did to its own held sessions.
        Verb::Undo(_) => elsewhere,
        Verb::Snapshot { verb: SnapshotVerb::Create(args) } => args.keep.is_some(),
        // One that it names has to be its own: the verb refuses any other.
        Verb::Discard(args) => args.all || args.now,
        // Alone it ends what was begun; these options decide about what somebody did since.
        Verb::Recover(args) => args.undo || args.finish || args.give_up_unmounted,
        Verb::Run(args) => args.commit,
        // Here the stream tells whether its session is committed already.
        Verb::Session { verb: SessionVerb::Import(_) } => elsewhere,
        verb => row(verb).decider == Decider::Person,
    };
    let named = match verb {
        Verb::Commit(args) => Some((&*args.what.id, Want::Commit)),
        Verb::Rollback(args) => Some((&*args.what.id, Want::RollBack)),
        Verb::Redo(args) => args.id.as_deref().map(|id| (id, Want::Redo)),
        Verb::Confirm(args) => Some((&*args.id, Want::Confirm)),
        _ => None,
    };
    (asks_a_person && !only_tells(verb)).then_some(named)
}

/// The words without the agent's own `-y`: it is the person who is asked. With the number of the turn: by then another may be the newest.
fn asking(verb: &Verb, words: &[OsString], elsewhere: bool, call: &Call) -> Vec<OsString> {
    let mut words = words.to_vec();
    // A run's words may be its command's.
    if !matches!(verb, Verb::Run(_)) {
        words.retain(|word| word != "-y" && word != "--yes");
    }
    if let Verb::Agent { verb: AgentVerb::Undo(args) } = verb
        && !elsewhere
        && turn_and_paths(&args.of).0.is_none()
        && let Some(at) = words.iter().position(|word| word == "undo")
        && let Some(n) = newest_to_undo(call)
    {
        words.insert(at + 1, n.to_string().into());
    }
    words
}

/// The word for a session that a person is to type: to commit it, with the step at which it stands now, as an agent may add another.
fn exactly(call: &Call, id: &Id, want: Want) -> String {
    let session = call.store().ok().flatten().and_then(|store| store.session(id).ok());
    match session.filter(|session| want == Want::Commit && session.header.origin == Origin::Captured) {
        Some(session) => format!("{}@{}", id.tail(), session.header.head()),
        None => id.tail().to_owned(),
    }
}

/// The call as a person would type it, with the session's id: by then the word that names it may mean another session.
fn typed(mut words: Vec<OsString>, session: Option<(&str, String)>) -> String {
    // `--far` and its value come from the near side, not from the person.
    if let Some(at) = words.iter().position(|word| word == "--far") {
        words.drain(at..words.len().min(at + 2));
    }
    if let Some((key, id)) = session {
        match words.iter_mut().find(|word| *word == key) {
            Some(word) => *word = id.into(),
            // `undo` alone.
            None => words.push(id.into()),
        }
    }
    let line: Vec<_> = words.iter().map(|word| shell_word(word.as_bytes())).collect();
    format!("recant {}", line.join(" "))
}
