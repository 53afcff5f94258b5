//! `cat`: the content of a path as a session has it, streamed.

use std::io::{BufRead, BufReader, Read};

use crate::error::{At, Error};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::{args, find_store};
use crate::fs::AbsPath;
use crate::verb::When;
use crate::verb::cat::{self as verb, Contents};

/// Prints the content before or after the session; of a symlink its target.
pub fn cat(call: &Call, args: &args::Cat) -> Result<Ended, Error> {
    let when = match args {
        args::Cat { displaced: true, .. } => When::Displaced,
        args::Cat { before: true, .. } => When::Before,
        _ => When::After,
    };
    let (path, contents) = verb::cat(call, &args.id, &find_store::below(&args.path)?, when)?;
    match contents {
        Contents::File(file) => stream(call, file, &path)?,
        Contents::Target(target) => call.out.bytes(&[&call.out.foreign(&target), &b"\n"[..]].concat()),
    }
    Ok(Ended::Done)
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
