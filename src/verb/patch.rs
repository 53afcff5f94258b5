//! A session's changes as a patch.

use std::io::Write;

use super::desk::Desk;
use super::diff::compared::Terms;
use super::diff::{Sides, open};
use super::error;
use crate::compare::{Form, View, patch};
use crate::error::Error;

/// Writes the changes of the session that `key` means to `to`, as a patch that `git apply` takes at `/`. Lines that begin with `#` hold
/// what a patch cannot say: directories, owners, conflicts, content of more than 8 MiB.
///
/// # Errors
/// There is no such session; its content is gone or cannot be read; `to` fails. What was written by then stays.
pub fn patch(desk: &Desk, key: &str, to: &mut dyn Write) -> Result<(), Error> {
    let terms = Terms { all: false, find_renames: None, remarks: true, top: None };
    let mut show = |view: &View<'_>| {
        let mut written = Ok(());
        patch::write(view, Form::default(), &mut |line| {
            if written.is_ok() {
                written = line.iter().try_for_each(|span| to.write_all(&span.text)).and_then(|()| to.write_all(b"\n"));
            }
        });
        written.map(|()| true).map_err(error::patch_unwritten)
    };
    open(desk, Some(key), Sides::Session)?.compare(&[], &mut |compared| compared.for_each(&terms, &mut show).map(drop))
}
