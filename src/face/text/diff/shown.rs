//! Words that all differences have: paths alone, the call once more, and what is not listed.

use std::os::unix::ffi::OsStrExt;

use serde::Serialize;

use super::showing;
use crate::error::command;
use crate::face::args;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::fs::{AbsPath, Shown};

#[derive(Serialize)]
struct Names<'a> {
    paths: Vec<&'a AbsPath>,
}

/// Prints paths alone.
pub fn names(call: &Call, paths: Vec<&AbsPath>) -> Ended {
    if call.out.is_text() {
        showing::page(call);
        paths.iter().for_each(|path| call.out.line(path));
    } else {
        call.out.document(&Names { paths });
    }
    Ended::Done
}

pub fn again(args: &args::Diff, session: &str, options: &str) -> String {
    let sides = match args {
        args::Diff { conflicts: true, .. } => " --conflicts".into(),
        args::Diff { step: Some(n), .. } => format!(" --step {n}"),
        args::Diff { since: Some(n), .. } => format!(" --since {n}"),
        args::Diff { with: Some(other), .. } => format!(" --with {other}"),
        _ => String::new(),
    };
    let paths = args.paths.iter().map(|path| format!(" {}", Shown(path.as_os_str().as_bytes()))).collect::<String>();
    let space = if args.much.form.ignore_space { " -w" } else { "" };
    let full = if args.full { " --full" } else { "" };
    let renames = args.find_renames.map(|least| format!(" --find-renames={least}%")).unwrap_or_default();
    command(format_args!("diff {session}{sides}{full}{space}{renames}{paths}{options}")).into()
}
