//! Errors about acts: on the tree, on what is held, and taken back.

use std::path::Path;

use crate::compare::{CHANGED, cut_off};
use crate::engine::Verb;
use crate::engine::plan::conflict;

use crate::error::{Against, Error, Kind, Reason, command, shell_word};
use crate::fs::AbsPath;
use crate::remedy::{Command, Remedy, shell, words};
use crate::session::{Change, FREED, Failed, Header, Id, Status, UndoableAct, not_now};
use crate::settings::grouped;
use crate::tree::{sort_word, time};

/// An act, in the words of its errors.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// The verb that acts on a session.
    Session(Verb, &'a Id),
    /// The act after "cannot", of a session that nobody has asked for.
    Restore(&'a str),
}

impl Subject<'_> {
    fn infinitive(self) -> String {
        match self {
            Subject::Session(verb, id) => format!("{} {id}", verb.infinitive()),
            Subject::Restore(act) => act.to_owned(),
        }
    }

    /// The remedy for what another session has put there, which has to go first: or its changes are taken out around it.
    fn or_merge(self, first: Remedy) -> Remedy {
        match self {
            Subject::Session(Verb::Rollback, id) => {
                let merges = command(format_args!("rollback {} --merge", id.tail()));
                first + "; or " + merges + " takes only this session's lines out of files"
            }
            Subject::Session(Verb::Commit, id) => {
                first + "; or " + command(format_args!("commit {} --merge", id.tail())) + " merges texts with it"
            }
            _ => first,
        }
    }

    /// The remedy for conflicts. `forcible`: --force goes on over some of them; under --force none of these are left. `merges`: some may
    /// merge.
    fn remedy(self, forcible: bool, merges: bool) -> Remedy {
        let force = if forcible { "; --force goes on, and keeps a copy of what it overwrites" } else { "" };
        match self {
            Subject::Session(_, id) => {
                let merge = if merges { "; --merge merges texts where it can" } else { "" };
                command(format_args!("diff {} --conflicts", id.tail())) + " shows both sides" + merge + force
            }
            Subject::Restore(_) => words("try again when no process writes there") + force,
        }
    }
}

/// The error of an act with all the paths in its way. `gone`: the directory whose absence explains conflicts. `merges`: some of them may merge.
pub fn cannot(subject: Subject<'_>, error: Error, gone: Option<&AbsPath>, merges: bool) -> Error {
    let mut missing = String::new();
    let mut remedy = error.advice().cloned();
    if let Some(conflicts) = conflict::of(&error) {
        missing = gone.map(|gone| format!("; {gone} was moved or deleted")).unwrap_or_default();
        let known = remedy.map(|known| if merges { subject.or_merge(known) } else { known });
        let forcible = conflicts.iter().all(|c| c.forcible);
        remedy = gone.map(with_directory).or(known).or_else(|| Some(subject.remedy(forcible, merges)));
    }
    let (rows, cannot) = (error.rows().len() as u64, format!("cannot {}: ", subject.infinitive()));
    let error = match error.reason() {
        Some(Reason::LeftBehind) => {
            let message = cannot + error.message();
            error.with_message(message)
        }
        _ if rows > 0 => {
            let called = error.called();
            error.with_message(format!("{cannot}{} {called}{missing}", grouped(rows)))
        }
        _ => error.between(&cannot, &missing),
    };
    error.with_remedy_if(remedy)
}

/// The remedy for a directory that is gone.
fn with_directory(gone: &AbsPath) -> Remedy {
    let made = shell(format_args!("mkdir -p {}", shell_word(gone.as_bytes()))) + ", then --force does what is possible";
    let is_directory = |path: &AbsPath| path.as_path().symlink_metadata().is_ok_and(|found| found.is_dir());
    match gone.parent().filter(|above| !is_directory(above)) {
        Some(obstacle) => {
            words(format_args!("move {} away, and the directory back; or ", shell_word(obstacle.as_bytes()))) + made
        }
        None => "move it back; or " + made,
    }
}

/// The error for a session among the paths of another one.
pub fn of_its_own(verb: Verb, id: &str, other: &str) -> Error {
    let [first, second] = [id, other].map(|key| command(format_args!("{} {key}", verb.word())));
    Error::refused(format!("{other} is a session, not a path: use one call for each")).with_remedy(first + "; " + second)
}

/// The error for a session whose newest command failed, where nobody can be asked.
pub fn is_failed(id: &Id, failed: Failed) -> Error {
    let (tail, failed) = (id.tail(), failed.text());
    let shows = command(format_args!("diff {tail}"));
    let message = format!("session {tail}: {failed}, so its changes may be incomplete");
    Error::refused(message).with_remedy(shows + " shows it; -y commits it")
}

/// The error if a session could not be told yet of what was committed of it.
pub fn untold(error: &Error, of: &Id, part: &Id) -> Error {
    let (of, part) = (of.tail(), part.tail());
    let why = format!("session {part} is committed, but session {of} does not yet record what left it: {error}");
    Error::new(Kind::LeftOut, why)
        .with_remedy(command("recover") + " records it, and so does the next verb that changes something")
}

/// The error for changes that do not merge. `by_force_alone`: an edit of the file helps nothing, as it was changed while the command ran.
pub fn do_not_merge(id: &Id, against: Vec<Against>, by_force_alone: bool) -> Error {
    let tail = id.tail();
    let shows = command(format_args!("diff {tail} --conflicts"));
    let message = match &against[..] {
        [one] => format!("cannot merge {tail}: {}: {}", one.path, one.why),
        many => format!("cannot merge {tail}: {} paths do not merge", many.len()),
    };
    let paths = if against.len() > 1 { against } else { Vec::new() };
    let or = if by_force_alone { "--force goes on, and keeps a copy of what it overwrites" } else { "edit one side" };
    let remedy = shows + words(format_args!(" shows both sides; name the other paths, or {or}"));
    Error::new(Kind::Conflict, message).with_rows(paths).with_remedy(remedy)
}

/// The error of a commit that was refused once its merge was a step of the session.
pub fn after_merge(error: Error, id: &Id, step: u32) -> Error {
    let before = error.state().map_or(String::new(), |state| format!("{state}, but "));
    error.with_state(format!("{before}step {step} of session {} now holds the merge", id.tail()))
}

/// The error for a merge of blocks.
pub fn merges_whole() -> Error {
    Error::usage("--merge takes whole paths").with_remedy("name them without numbers, or commit the blocks without --merge")
}

/// The error for blocks that are to be taken back by force.
pub fn forces_whole() -> Error {
    Error::usage("--force overwrites whole files, so it does not work with blocks")
        .with_remedy("name whole paths, or leave --force out")
}

/// The error for a session of which nothing is on the tree.
pub fn not_on_tree(id: &Id) -> Error {
    not_now(id, "nothing of it is on the tree").with_remedy(command(format_args!("show {}", id.tail())))
}

/// The error for a commit with a time to confirm it, of a session that is committed in part.
pub fn is_in_part(id: &Id) -> Error {
    let message = format!("cannot commit {id} with --confirm-within: a part of it is committed already");
    Error::refused(message).with_remedy(command(format_args!("rollback {id}")) + ", then commit all of it")
}

/// The error for picks, if something else stands there than was shown.
pub fn picked_anew(rows: Vec<Against>) -> Error {
    let message = "what was chosen has changed since it was shown";
    Error::new(Kind::Conflict, message).with_rows(rows).with_reason(Reason::Stale)
}

/// The error for a directory that is picked without something below it.
pub fn would_go_along(path: &AbsPath, below: &AbsPath) -> Error {
    let why = format!("{path}: it would include {below}, which is not chosen");
    Error::refused(why).with_path(path).with_remedy("choose it too, or leave the directory out")
}

/// The error for a file that was changed while a call was at work.
pub fn changed_meanwhile(path: &AbsPath) -> Error {
    Error::refused(format!("{path}: changed meanwhile")).with_path(path).with_remedy("try again")
}

/// The error for an edit of what is no file.
pub fn no_file_held(change: &Change) -> Error {
    let why = match &change.after {
        None => "it is deleted: there is nothing to edit".into(),
        Some(state) => format!("a {} cannot be edited", sort_word(state.sort())),
    };
    Error::refused(format!("{}: {why}", change.path)).with_path(&change.path)
}

/// The error for a binary file, in an editor.
pub fn is_binary(path: &AbsPath) -> Error {
    Error::refused(format!("{path}: it is binary and cannot be edited")).with_path(path)
}

pub fn too_large_to_edit(path: &AbsPath) -> Error {
    Error::refused(format!("{path}: it is too large to edit here")).with_path(path)
}

/// The error for an edit of what a session holds no more.
pub fn not_edited(path: &AbsPath) -> Error {
    Error::refused(format!("{path}: the edit is not held: the session changed meanwhile")).with_path(path)
}

/// The note on a directory that stays as it is.
pub fn stays_with(path: &AbsPath, inner: &AbsPath) -> String {
    format!("{path}: stays as it is, because {inner} in it does")
}

/// The note on a directory that comes along.
pub fn comes_with(path: &AbsPath, inner: &AbsPath) -> String {
    format!("{path}: included, because {inner} lies in it")
}

/// The error for words behind a path that take no part of its change.
pub fn takes_no_blocks(id: &Id, path: &AbsPath, why: &str) -> Error {
    let shows = command(format_args!("diff {} --blocks {}", id.tail(), shell_word(path.as_bytes())));
    Error::usage(format!("{path}: {why}")).with_path(path).with_remedy(shows + " shows what can be taken of it")
}

/// The error for blocks of a change that is taken whole.
pub fn is_whole(id: &Id, path: &AbsPath, why: &str) -> Error {
    takes_no_blocks(id, path, &format!("it has no blocks: {why}; name it without numbers"))
}

/// The error for metadata that does not change.
pub fn has_metadata(id: &Id, path: &AbsPath) -> Error {
    takes_no_blocks(id, path, "its metadata does not change")
}

/// The error for a word that is a path and blocks of another one.
pub fn two_meanings(path: &AbsPath, of: &AbsPath) -> Error {
    let error = Error::usage(format!("{path}: ambiguous: a changed file has this name, and blocks of {of} are named like it"))
        .with_path(path);
    error.with_remedy(command("review") + " shows both, and takes either")
}

/// The error for a directory that only has changes below it.
pub fn no_blocks(id: &Id, path: &AbsPath) -> Error {
    let shows = command(format_args!("diff {} --blocks {}", id.tail(), shell_word(path.as_bytes())));
    let error = Error::usage(format!("{path}: it has no blocks: what changed lies below it")).with_path(path);
    error.with_remedy(shows + " shows what can be taken there")
}

/// The error for a file whose blocks nothing tells any more. `is_in`: the change is on the tree.
pub fn blocks_changed(id: &Id, path: &AbsPath, is_in: bool) -> Error {
    let tail = id.tail();
    let error = Error::new(Kind::Conflict, format!("{path}: {CHANGED}")).with_path(path);
    let shows = command(format_args!("diff {tail} --conflicts {}", shell_word(path.as_bytes())));
    if is_in {
        return error.with_remedy(shows + " shows both sides");
    }
    let merges = command(format_args!("commit {tail} --merge"));
    error.with_remedy(shows + " shows both sides; " + merges + " merges them")
}

/// The error for blocks of one of several names, to be committed.
pub fn names_leave_together(path: &AbsPath) -> Error {
    let error = Error::refused(format!("{path}: it has several names (hard links), which leave together")).with_path(path);
    error.with_remedy("name it without blocks: all its names are included")
}

/// The error for blocks of one of several names, to be discarded.
pub fn names_discard_together(id: &Id, path: &AbsPath) -> Error {
    let alone = command(format_args!("discard {} {}", id.tail(), shell_word(path.as_bytes())));
    let error = Error::refused(format!("{path}: it has several names (hard links), which leave together")).with_path(path);
    error.with_remedy(alone + " discards all of them")
}

/// The error for a part of one of several names, to be taken back.
pub fn names_part(id: &Id, path: &AbsPath) -> Error {
    let why = format!("{path}: it has, or had, several names (hard links), which a part of it would separate");
    let whole = command(format_args!("rollback {} --force {}", id.tail(), shell_word(path.as_bytes())));
    // Edited since, it would be a conflict without.
    Error::refused(why).with_path(path).with_remedy(whole + " takes it back, and keeps a copy of what is there now")
}

/// The error for words of a discard of which some are sessions, and some paths.
pub fn sessions_and_paths(key: &str, path: &AbsPath, other: &str) -> Error {
    let message = format!("{other} is a session, and {path} a path of another one: use one call for each");
    let [first, second] = [format!("discard {key} PATH"), format!("discard {other}")].map(command);
    Error::refused(message).with_remedy(first + "; " + second)
}

/// The error for a word that is a session, and a path of another one.
pub fn session_and_path(id: &Id, word: &Path, path: &AbsPath) -> Error {
    let word = word.to_string_lossy();
    Error::refused(format!("{word} is a session, and a path of session {}", id.tail()))
        .with_remedy(format!("{} means the path, a whole id means the session", shell_word(path.as_bytes())))
}

/// The error for a word that is neither a session nor a path of one. `nearest`: the path that is most like it.
pub fn neither(id: &Id, word: &Path, nearest: Option<&AbsPath>) -> Error {
    let word = word.to_string_lossy();
    let nearest = nearest.map_or(String::new(), |nearest| format!("; the nearest is {nearest}"));
    Error::refused(format!("{word} is not a session, and session {} holds no change there{nearest}", id.tail()))
        .with_remedy(command(format_args!("show {}", id.tail())) + " lists what it holds")
}

/// A session that stays as it is, as it is discarded already.
pub const IS_DISCARDED: &str = "it is discarded already";
/// A session that stays as it is, as it is not as it was shown.
pub const IS_CHANGED: &str = "another recant has changed it meanwhile: look again";
/// A session that stays as it is, as it is locked.
pub const IS_HELD: &str = "in use by another recant";
/// A session that stays as it is, as its operation is to be recovered first.
pub const IS_INTERRUPTED: &str = "an operation of it was interrupted";
/// A session that stays as it is, as its commit may still be rolled back.
pub const WAITS_FOR_CONFIRMATION: &str = "it waits to be confirmed";

/// The pending sessions that `discard --all` drops, in words, and the changes that they hold. `everywhere`: those of all projects.
pub fn all_of(sessions: usize, held: u64, everywhere: bool) -> String {
    let place = if everywhere { " of all projects" } else { "" };
    let (pending, changes) = (plural(sessions as u64, "pending session"), plural(held, "held change"));
    format!("{pending}{place} with {changes}")
}

pub(super) fn plural(n: u64, word: &str) -> String {
    format!("{} {word}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// The error for a discard of all that recant chose, where nobody can be asked.
pub fn drops_unasked(sessions: usize, held: u64, everywhere: bool) -> Error {
    let what = all_of(sessions, held, everywhere);
    let error = Error::usage(format!("discard --all drops {what}, and there is no terminal to ask at"));
    error.with_remedy(command("list --status pending") + " shows it; -y goes on")
}

/// The error for `--patch` where nobody can be asked.
pub fn patch_unasked() -> Error {
    Error::usage("--patch asks, and there is no terminal to ask at")
        .with_remedy("name the blocks: PATH:2,5-7 (diff --blocks shows them)")
}

/// The error if there is no act to undo.
pub fn nothing_to_undo() -> Error {
    Error::refused("nothing to undo in this project").with_remedy(command("log") + " lists what was done")
}

/// The error if the newest act is no undo. `rolled_back`: the session of a rollback that is the newest act.
pub fn nothing_to_redo(rolled_back: Option<&Id>) -> Error {
    let error = Error::refused("nothing to redo: the newest act here is not an undo");
    error.with_remedy(match rolled_back {
        Some(id) => command(format_args!("redo {}", id.tail())).into(),
        None => command("log") + " lists what was done",
    })
}

/// The command that takes the newest act on a session back.
pub fn undo_of(id: &Id) -> Command {
    command(format_args!("undo {}", id.tail()))
}

/// The remedy that names the undo of an act.
pub fn takes_it_back(id: &Id) -> Remedy {
    undo_of(id) + " takes it back"
}

/// An act in words: what it was, on what, when and by whom. `command`: that of its session.
pub fn act_of(deed: &UndoableAct, is_own: bool, command: Option<&str>) -> String {
    let verb = deed.verb.as_deref().unwrap_or("a run");
    let by = match &deed.acted.by {
        Some(by) => format!(", by {by}"),
        None if is_own => String::new(),
        None => format!(", by user {}", deed.acted.uid),
    };
    let of = command.map(|of| format!(" ({of})")).unwrap_or_default();
    cut_off(&format!("{verb} of session {}{by}, {}{of}", deed.session.tail(), time::day(deed.time)), 54)
}

/// The caller's newest act, which `undo` does not take back. `verb`: that of the log; `on`: the step below the head, if there are several.
pub fn newest_is(id: &Id, verb: Option<&str>, on: Option<u32>) -> String {
    let tail = id.tail();
    match verb {
        Some(FREED) => format!("the newest act is {FREED} of session {tail}, which cannot be undone"),
        Some(verb) => format!("the newest act is {verb} of session {tail}: {}", command(format_args!("rewind {tail} STEP"))),
        None => {
            let back = on.map_or(format!("discard {tail}"), |on| format!("rewind {tail} {on}"));
            format!("the newest changes are only held, in session {tail}: {}", command(back))
        }
    }
}

/// The remedy that names an older act.
pub fn before_it(id: &Id) -> Remedy {
    "the one before it: " + undo_of(id)
}

/// The error if the log lacks the newest act, which is on this session.
pub fn not_in_log(id: &Id, remedy: Option<Remedy>) -> Error {
    let error = Error::refused(format!("the log has no entry for the newest act, on session {}", id.tail()));
    error.with_remedy(remedy.unwrap_or_else(|| command(format_args!("show {}", id.tail())).into()))
}

/// Why an act cannot be taken back any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Never {
    Pruned,
    Freed,
    WithoutCheckpoint,
    WentOn,
    NotOnTree,
    Discarded,
}

/// The error if the newest act cannot be taken back. `before`: the session of the act before it.
pub fn never(id: &Id, why: Never, before: Option<&Id>) -> Error {
    let why = match why {
        Never::Pruned => "was pruned",
        Never::Freed => "is freed",
        Never::WithoutCheckpoint => "has no checkpoint any more",
        Never::WentOn => "went on since",
        Never::NotOnTree => "is not on the tree",
        Never::Discarded => "is discarded",
    };
    let error = Error::refused(format!("the newest act is on session {}, which {why}", id.tail()));
    error.with_remedy_if(before.map(before_it))
}

/// The error if the newest act is somebody else's. `what`: the act in words.
pub fn not_yours(id: &Id, what: &str) -> Error {
    Error::refused(format!("the newest act here is not yours: {what}")).with_remedy(undo_of(id))
}

/// The error if the caller's own newest act has no undo. `before`: the session of the act before it.
pub fn has_no_undo(newest: String, before: Option<&Id>) -> Error {
    Error::refused(newest).with_remedy_if(before.map(before_it))
}

/// The error for a session of which no act can be taken back.
pub fn nothing_of(header: &Header) -> Error {
    let state = header.status().word().replace('_', " ");
    let verb = match header.status() {
        Status::RolledBack => "redo",
        Status::Pending if header.steps.is_some() => "steps",
        _ => "show",
    };
    let error = Error::refused(format!("session {} is {state}: nothing to undo", header.id.tail()));
    error.with_remedy(command(format_args!("{verb} {}", header.id.tail())))
}

/// The error for an undo that nobody can be asked about.
pub fn undo_unasked(id: &Id) -> Error {
    let yes = command(format_args!("undo {} -y", id.tail()));
    Error::usage("undo asks first, and there is no terminal").with_remedy(yes + " does not ask")
}

/// The state after a signal, once what was overdue was dealt with.
pub const OVERDUE_SETTLED: &str = "overdue commits were settled as reported; nothing else was changed";

/// The error for a session that waits for no confirmation.
pub fn waits_for_none(id: &Id) -> Error {
    Error::refused(format!("session {id} is not waiting to be confirmed"))
}

/// The error for a session that was rolled back, as nobody confirmed it. `at`: when.
pub fn confirmed_late(id: &Id, at: &str) -> Error {
    let error = Error::refused(format!("session {id} was not confirmed in time, and was rolled back at {at}"));
    error.with_remedy(command(format_args!("redo {id}")) + " commits it again")
}
