//! `discard ID PATH:2,5-7` and `discard ID --patch`: a part leaves a session, and the rest is held as before.

use std::os::unix::ffi::OsStrExt;

use super::super::args;
use super::super::call::Call;
use super::super::discard_paths::{Out, take_out};
use super::super::ended::Ended;
use super::super::picks;
use super::ask::ask;
use super::select::{self, Selection, Way};
use crate::blocks::choice::Choice as Blocks;
use crate::capture::choice::may_choose;
use crate::capture::chosen::Choice;
use crate::cli::place::all_whole;
use crate::diff::entries::{Entries, Taken};
use crate::diff::sources::Sources;
use crate::error::{Error, command, shell_word};
use crate::session::change::{Change, Changes};
use crate::session::opened::Locked;
use crate::session::sides::Side;
use crate::verb::chosen::chosen;
use crate::verb::want::Want;

/// Takes a part out of a session, if the call asks for one. `None` if it names whole paths, or sessions.
///
/// # Errors
/// The words name what the session does not hold; no choice can be made in it.
pub fn asked(call: &Call, key: &str, args: &args::Discard) -> Result<Option<Ended>, Error> {
    let in_parts = args.patch || args.picked.is_some();
    if !in_parts && !args.paths.iter().any(|word| select::may_name_blocks(word)) {
        return Ok(None);
    }
    let (store, mut session) = call.locked(key, Want::Discard)?;
    let changes = session.changes()?;
    if !in_parts && !select::names_blocks(&args.paths, &changes)? {
        return Ok(None);
    }
    may_choose(&session)?;
    let mut selection = selected(call, args, &session, &changes)?;
    let mut notes = select::with_names(&session, &changes, &mut selection)?;
    notes.extend(select::settle(&changes, Way::Back, |_| true, &mut selection));
    if selection.is_empty() {
        notes.iter().for_each(|note| call.out.note(note));
        call.out.note(format_args!("nothing of session {} was chosen, and nothing was changed", session.id().tail()));
        return Ok(Some(Ended::Done));
    }
    let (mut choices, mut left) = (Vec::new(), Vec::new());
    let mut sources = Sources::of(&session)?;
    for (i, taken) in &selection {
        match taken {
            Taken::Whole => left.push(changes.list[*i].path.clone()),
            Taken::Part { blocks, meta } => choices.push(out(&session, &changes.list[*i], (blocks, *meta), &mut sources)?),
        }
    }
    drop(sources);
    let patch = in_parts.then(|| b"--patch".to_vec());
    let words = patch.into_iter().chain(args.paths.iter().map(|word| word.as_os_str().as_bytes().to_vec())).collect();
    take_out(call, store, &mut session, Out { choices, left, notes, words, args }).map(Some)
}

fn selected(call: &Call, args: &args::Discard, session: &Locked, changes: &Changes) -> Result<Selection, Error> {
    if let Some(picked) = &args.picked {
        return picks::selection(picked, session, changes);
    }
    let (sides, words) = (session.sides(changes.list.len())?, &args.paths);
    let mut sources = Sources::of(session)?;
    if args.patch {
        ask(call, "Discard", (changes, &sides), &chosen(session.id(), changes, &all_whole(words)?)?, &mut sources)
    } else {
        select::named(session.id(), (changes, &sides), words, &mut sources)
    }
}

/// The file that a session holds at a path once blocks of its change have left it.
fn out(session: &Locked, change: &Change, (blocks, meta): (&Blocks, bool), sources: &mut Sources<'_>) -> Result<Choice, Error> {
    let path = &change.path;
    if change.marks.linked || change.marks.link_broken {
        let alone = command(format_args!("discard {} {}", session.id().tail(), shell_word(path.as_bytes())));
        let problem = Error::refused(format!("{path}: it has several names, which leave together")).with_path(path);
        return Err(problem.with_remedy(format!("{alone} takes all of them out")));
    }
    let gone = || Error::refused(format!("{path}: it was changed meanwhile")).with_path(path).with_remedy("try again");
    let Entries::Text(text) = Entries::of(change, Side::Never, sources)? else { return Err(gone()) };
    let (after, content) = text.without(change, blocks, meta).ok_or_else(gone)?;
    Ok(Choice { path: path.clone(), before: change.before.clone(), after, content })
}
