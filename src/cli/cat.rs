//! `cat`: the content of a path as a session has it, streamed.

use std::io::{BufRead, BufReader, Read};

use super::args;
use super::call::Call;
use super::ended::Ended;
use super::place;
use crate::diff::sources::{Content, Sources};
use crate::error::{At, Error};
use crate::fs::path::AbsPath;
use crate::session::opened::Session;
use crate::tree::state::{State, What, sort_word};
use crate::verb::error::not_in_session;

/// Prints the content before or after the session; of a symlink its target.
pub fn cat(call: &Call, args: &args::Cat) -> Result<Ended, Error> {
    let (store, session) = call.looked_at(Some(&args.id))?;
    call.believed(store, &session, cat_of(call, args, &session))
}

fn cat_of(call: &Call, args: &args::Cat, session: &Session) -> Result<Ended, Error> {
    let changes = session.changes()?;
    let path = place::named(&args.path, &changes)?;
    let change = changes.at(&path).ok_or_else(|| not_in_session(session.id(), &changes, &path))?;
    let sides = session.sides(changes.list.len())?;
    let side = changes.list.iter().position(|other| other.path == path).map_or(sides[0], |i| sides[i]);
    if args.displaced {
        return match Sources::of(session)?.displaced(&path)? {
            Some((Some(State { what: What::Symlink { target }, .. }), _)) => {
                call.out.bytes(&[&call.out.foreign(&target), &b"\n"[..]].concat());
                Ok(Ended::Done)
            }
            Some((_, Content::File(file))) => stream(call, file, &path).map(|()| Ended::Done),
            Some((_, Content::Gone(why))) => Err(Error::refused(format!("{path}: {why}")).with_path(&path)),
            None => Err(Error::refused(format!("{path}: no --force has overwritten a file there")).with_path(&path)),
        };
    }
    let (object, when) = if args.before { (&change.before.object, "before") } else { (&change.after, "after") };
    let Some(state) = object else {
        let other =
            if args.before { "recant cat --after shows what is to be there" } else { "recant cat --before shows what was there" };
        return Err(Error::refused(format!("{path}: there is nothing {when} session {}", session.id()))
            .with_path(&path)
            .with_remedy(other));
    };
    match &state.what {
        What::Symlink { target } => call.out.bytes(&[&call.out.foreign(target), &b"\n"[..]].concat()),
        What::File { .. } => {
            let mut sources = Sources::of(session)?;
            let on_tree = sources.on_tree(change, side);
            let read_before = args.before || change.in_place();
            let content =
                if read_before { sources.before(change, side, &on_tree) } else { sources.after(change, side, &on_tree) };
            // Without its content, what is on the tree can still be read.
            let content = content.map_err(|error| discarded(session).unwrap_or(error))?;
            match content {
                Content::File(file) => stream(call, file, &path)?,
                Content::Gone(why) => return Err(Error::refused(format!("{path}: {why}")).with_path(&path)),
            }
        }
        _ => {
            let kind = sort_word(state.sort());
            return Err(Error::refused(format!("{path}: it is a {kind}, which has no content")).with_path(&path));
        }
    }
    Ok(Ended::Done)
}

/// The error that nothing can be read, if the session is discarded.
fn discarded(session: &Session) -> Option<Error> {
    let gone = || Error::refused(format!("session {} is discarded: what it held is gone", session.id()));
    session.header.freed.then(gone)
}

/// Prints a content as it is; what a terminal would obey is shown to it.
fn stream(call: &Call, file: std::fs::File, path: &AbsPath) -> Result<(), Error> {
    let mut file = BufReader::new(file);
    let mut lines = Vec::new();
    while !call.out.is_closed() {
        lines.clear();
        // Whole lines, so that no character is cut in two; but a line of a binary file may be long.
        let read = file.by_ref().take(128 << 10).read_to_end(&mut lines);
        read.and_then(|_| file.by_ref().take(1 << 20).read_until(b'\n', &mut lines)).at("read", path)?;
        if lines.is_empty() {
            break;
        }
        call.out.bytes(&call.out.foreign(&lines));
    }
    Ok(())
}
