//! `session export` and `session import`: a session as a stream, out of a store and into another.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use crate::error::{Error, command};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::out::Out;
use crate::face::{args, figures};
use crate::fs::{AbsPath, Input, Shown};
use crate::moving::{Mapping, With};
use crate::verb::moving;

/// A writer of results. A reader that went away ends the export.
struct Pipe<'a>(&'a Out);

impl Write for Pipe<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.bytes(bytes);
        if self.0.is_closed() { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn export(call: &Call, args: &args::Export) -> Result<Ended, Error> {
    if io::stdout().is_terminal() {
        return Err(Error::refused("an export is not for a terminal")
            .with_remedy(command(format_args!("session export {} > FILE", Shown(args.id.as_bytes())))));
    }
    let with = if args.checkpoint { With::Checkpoint } else { With::Changes };
    match moving::export(call, &args.id, with, &mut Pipe(&call.out)) {
        Err(_) if call.out.is_closed() => Ok(Ended::Done),
        exported => exported.map(|()| Ended::Done),
    }
}

/// Makes a session of a stream in the store, and reports what would stop its commit here.
pub fn import(call: &Call, args: &args::Import) -> Result<Ended, Error> {
    if io::stdin().is_terminal() {
        return Err(Error::refused("standard input is a terminal, not an export").with_remedy(command("session import < FILE")));
    }
    let mapping = mapping(&args.map)?;
    let input = &mut io::BufReader::with_capacity(256 << 10, Input::of_stdin()?);
    let imported = moving::import(call, input, &mapping)?;
    if call.out.is_text() {
        let (id, status) = (&imported.session, imported.status.word());
        call.out.line(id);
        if imported.new {
            let changes = figures::count(imported.changes, "change");
            call.out.note(format_args!("session {id} is imported: {changes}, {status}"));
        } else {
            call.out.note(format_args!("session {id} is here already: nothing changed"));
        }
    } else {
        call.out.document(&imported);
    }
    imported.against.map_or(Ok(Ended::Done), Err)
}

/// Parses `FROM=TO`, both absolute: the first `=` before a `/` parts them.
fn mapping(words: &[OsString]) -> Result<Mapping, Error> {
    let mut mapping = Mapping::default();
    for word in words {
        let bytes = word.as_bytes();
        let wrong = || {
            Error::usage(format!("--map {}: expected two absolute paths", Shown(bytes)))
                .with_remedy("--map /srv/app=/opt/app moves paths below the first to below the second")
        };
        let cut = bytes.windows(2).position(|two| two == b"=/").ok_or_else(wrong)?;
        let (from, to) = (path(&bytes[..cut]), path(&bytes[cut + 1..]));
        mapping.add(from.ok_or_else(wrong)?, to.ok_or_else(wrong)?)?;
    }
    Ok(mapping)
}

/// Parses a path as people write it: slashes at its end do not count.
fn path(bytes: &[u8]) -> Option<AbsPath> {
    let trimmed = bytes.iter().rposition(|b| *b != b'/').map_or(&b"/"[..], |last| &bytes[..=last]);
    AbsPath::parse(trimmed).ok()
}
