//! `diff --brief`: the counts of `--stat` in JSON that an agent can afford. Reads the contents of the paths on a page alone.

use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::face::args;
use crate::face::brief::{self, List, Place, is_default};
use crate::face::call::Call;
use crate::fs::{AbsPath, Sort as Kind, bytes};
use crate::session::{Id, Sort};
use crate::tree::{Object, sort_word};
use crate::verb::diff::compared::is_listed;
use crate::verb::{Compared, Lines, Point};

/// A change. What is usual is left out: a file, modified, without a conflict.
#[derive(Serialize)]
struct Row<'a> {
    path: Below<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Sort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "is_default")]
    insertions: usize,
    #[serde(skip_serializing_if = "is_default")]
    deletions: usize,
    /// A file whose lines cannot be counted, as it is binary or too large, or its content before is gone.
    #[serde(skip_serializing_if = "is_default")]
    uncounted: bool,
    #[serde(skip_serializing_if = "is_default")]
    conflict: bool,
}

/// A path without the directory that all of the list have in common.
struct Below<'a>(&'a [u8]);

impl Serialize for Below<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        bytes::serialize(if self.0.is_empty() { b"." } else { self.0 }, serializer)
    }
}

#[derive(Serialize)]
struct Head<'a> {
    #[serde(flatten)]
    of: Of<'a>,
    /// The directory from which the paths of the changes start.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<AbsPath>,
    /// Changes of the mtime alone, which are not listed.
    #[serde(skip_serializing_if = "is_default")]
    times: usize,
}

/// The sides that are compared.
#[derive(Serialize)]
#[serde(untagged)]
enum Of<'a> {
    Session { session: &'a Id, status: &'static str },
    States { from: Point<'a>, to: Point<'a> },
}

/// Prints a page of the changes that were asked for.
pub fn print(call: &Call, args: &args::Diff, compared: &mut Compared<'_>) -> Result<(), Error> {
    let (of, ids) = of(compared)?;
    let Compared { changes, chosen, contents, .. } = compared;
    let listed: Vec<usize> = chosen.iter().copied().filter(|i| is_listed(&changes[*i], args.much.all)).collect();
    let listed_paths = listed.iter().map(|i| &changes[*i].path);
    let base = listed_paths.fold(None, common);
    let top = base.clone();
    let paths = args.paths.iter().map(|path| path.as_os_str().as_encoded_bytes());
    let of_list = [&b"diff"[..]].into_iter().chain(ids.iter().map(String::as_bytes)).chain(paths).collect();
    let list = List { key: "changes", of: of_list, count: listed.len() };
    let head = Head { of, base, times: chosen.len() - listed.len() };
    let place = |i: usize| Place::Name(changes[listed[i]].path.as_bytes());
    brief::print(call, &list, args.after.as_deref(), &head, place, |i| {
        let change = &changes[listed[i]];
        let view = contents.view(changes, listed[i], true)?;
        let lines = Lines::of(&view);
        let object: &Object = if change.sort() == Sort::Deleted { &change.before.object } else { &change.after };
        let kind = object.as_ref().map(|state| state.sort());
        Ok(Row {
            path: Below(top.as_ref().and_then(|top| change.path.below(top)).unwrap_or(change.path.as_bytes())),
            change: Some(change.sort()).filter(|sort| *sort != Sort::Modified),
            kind: kind.filter(|kind| *kind != Kind::File).map(sort_word),
            insertions: lines.insertions.unwrap_or(0),
            deletions: lines.deletions.unwrap_or(0),
            uncounted: kind == Some(Kind::File) && lines.insertions.is_none(),
            conflict: view.conflict,
        })
    })
}

/// The sides, and the words that tell their list from others.
fn of<'s>(compared: &Compared<'s>) -> Result<(Of<'s>, Vec<String>), Error> {
    if let Some([from, to]) = compared.pair.points() {
        let ids = [&from, &to].map(|point| format!("{}:{}", point.session, point.step));
        return Ok((Of::States { from, to }, ids.into()));
    }
    let session = compared.pair.session().id();
    let status = compared.standing()?.map_or("", |standing| standing.word);
    Ok((Of::Session { session, status }, vec![session.to_string()]))
}

/// The deepest directory that holds `path` and what `so_far` holds.
fn common(so_far: Option<AbsPath>, path: &AbsPath) -> Option<AbsPath> {
    let parent = || path.parent().unwrap_or_else(|| path.clone());
    let mut top = so_far.unwrap_or_else(parent);
    while !path.is_under(&top) || *path == top {
        match top.parent() {
            Some(above) => top = above,
            None => break,
        }
    }
    Some(top)
}
