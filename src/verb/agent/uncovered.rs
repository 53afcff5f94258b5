//! Things that the snapshots of turns do not cover, and what turns did to them; each with the command that helps, if there is one.

use serde::Serialize;

use crate::agent::{Became, Fate};
use crate::compare::Names;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::remedy::Remedy;
use crate::snapshot::{Why, whole};
use crate::verb::error::{head_back, move_back, part_back};

/// A thing that is not covered, as JSON has it: docs/json.md.
#[derive(Serialize)]
pub struct NotCovered {
    pub path: AbsPath,
    what: &'static str,
    /// The path that it was moved to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<AbsPath>,
    directory: bool,
    /// Bytes of content of a file.
    size: u64,
    /// The names that came to a directory.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    made: Vec<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    gone: Vec<String>,
    /// The reason why it is not covered.
    why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    #[serde(skip)]
    pub fate: Fate,
}

impl NotCovered {
    /// True for what compilers and editors make.
    pub fn is_byproduct(&self) -> bool {
        self.fate.out.why == Why::Byproduct
    }
}

/// Names them. `names`: how commands name paths. `goes_back`: the paths that are put back.
///
/// # Errors
/// A path cannot be made.
pub fn not_covered(
    names: &Names,
    directory: &AbsPath,
    fates: Vec<Fate>,
    goes_back: &[AbsPath],
) -> Result<Vec<NotCovered>, Error> {
    fates.into_iter().map(|fate| row(names, directory, fate, goes_back)).collect()
}

fn row(names: &Names, directory: &AbsPath, fate: Fate, goes_back: &[AbsPath]) -> Result<NotCovered, Error> {
    let path = whole(directory, &fate.path)?;
    let to = if let Became::Moved(to) = &fate.became { Some(whole(directory, to)?) } else { None };
    let remedy = match (&fate.became, &to) {
        // Where something is, or goes back to either place, a move would take that along, or stop at it.
        (_, Some(to)) => {
            let is_free = path.as_path().symlink_metadata().is_err();
            let is_own = |back: &AbsPath| !back.is_under(to) && !back.is_under(&path);
            (is_free && goes_back.iter().all(is_own)).then(|| move_back(names, to, &path))
        }
        (Became::Head { from, to: Some(now) }, _) => Some(head_back(names, &path, from, now)),
        (Became::Part { from, to }, None) => part_back(names, &path, from.as_ref(), to.as_ref()),
        _ => None,
    };
    let (made, gone) = match &fate.became {
        Became::Entries { made, gone } => (made.clone(), gone.clone()),
        _ => Default::default(),
    };
    let (what, out) = (word_of(&fate.became), &fate.out);
    let (directory, size, why) = (out.directory, out.size, out.why.text());
    Ok(NotCovered { path, what, to, directory, size, made, gone, why, remedy: remedy.map(Remedy::from), fate })
}

/// The deed in a word, for programs.
fn word_of(became: &Became) -> &'static str {
    match became {
        Became::Deleted | Became::Part { to: None, .. } => "deleted",
        Became::Overwritten => "overwritten",
        Became::Moved(_) => "moved",
        Became::Made | Became::Part { from: None, .. } => "made",
        Became::Entries { .. } => "entries",
        Became::Names => "names",
        Became::Head { .. } => "head",
        Became::Metadata => "metadata",
        Became::Part { .. } => "changed",
    }
}
