//! The errors of this room, in its words. After each of them nothing was changed.

use std::fmt::Display;

use crate::error::{Error, Kind, command};

/// The input is no stream, or an incomplete one.
pub fn broken(why: impl Display) -> Error {
    let again = command("session export ID > FILE");
    Error::new(Kind::Refused, format!("the stream is damaged: {why}")).with_remedy("export the session again: " + again)
}

pub fn other_version(found: &str) -> Error {
    Error::new(Kind::Refused, format!("the stream is of version {found:?}; this recant knows recant-export 1"))
        .with_remedy("use the recant that wrote it, on both sides")
}

/// A session must not have this path here.
pub fn bad_path(path: impl Display, why: impl Display) -> Error {
    Error::at(Kind::Refused, path, why).with_remedy("--map FROM=TO moves paths")
}

/// The stream's session is already here, in another state.
pub fn already_here(id: impl Display) -> Error {
    let [show, prune] = ["show", "prune --sessions"].map(|verb| command(format_args!("{verb} {id}")));
    Error::new(Kind::Refused, format!("session {id} is here already")).with_remedy(show + " shows it; " + prune + " drops it")
}

pub fn damaged(path: impl Display, why: impl Display) -> Error {
    Error::at(Kind::Damaged, path, why)
}
