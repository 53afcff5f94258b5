//! The two sides of what is on the screen, for the tool for differences.

use crate::error::{Error, command};
use crate::face::call::Call;
use crate::face::find_store::all_whole;
use crate::face::text::diff::showing::in_tool;
use crate::face::text::diff::tool::Held;
use crate::fs::AbsPath;
use crate::session::Id;
use crate::verb::snapshot::{diff as snapshots, directory};
use crate::verb::{HeldEdited, Named, Sides, Terms, diff as sessions};

/// Two sides.
pub enum Compare<'a> {
    /// A session, and what was there.
    Session(&'a Id),
    /// The heads of two sessions.
    Pair(&'a Id, &'a Id),
    /// A snapshot of a directory, and what is there now.
    Snapshot(&'a AbsPath, u64),
}

impl Compare<'_> {
    /// Shows both sides of a path in the tool of the settings. Returns what that wrote to the held side.
    ///
    /// # Errors
    /// No tool is named, or it cannot be run; a content cannot be read.
    pub fn in_tool(&self, call: &Call, path: &AbsPath) -> Result<Option<HeldEdited>, Error> {
        let paths = all_whole(&[path.as_path().into()])?;
        let (id, sides, with) = match self {
            Self::Session(id) => (id, Sides::Session, String::new()),
            Self::Pair(old, new) => (old, Sides::With(new.as_str()), format!(" --with {new}")),
            Self::Snapshot(directory, n) => {
                let (dir, key) = (Some(directory.as_path()), &*n.to_string());
                let compared = snapshots::diff(call, Named { dir, key, paths: &paths }, None, false)?;
                let patch = command(format_args!("snapshot diff {n}{} -- {path}", directory::dir(directory)));
                return in_tool(call, None, |show| compared.for_each(false, show), &String::from(patch));
            }
        };
        let terms = Terms { all: false, find_renames: None, remarks: false, top: None };
        let patch = String::from(command(format_args!("diff {}{with} {path}", id.tail())));
        let mut edited = None;
        sessions::open(call, Some(id.as_str()), sides)?.compare(&paths, &mut |compared| {
            let held = Held::of(call, compared);
            edited = in_tool(call, held, |show| compared.for_each(&terms, show), &patch)?;
            Ok(())
        })?;
        Ok(edited)
    }
}
