//! `snapshot diff`: a snapshot against the directory as it is now, or against another one.

use serde::Serialize;

use super::series::{Named, inner, number, refuse_unknown};
use crate::compare::{Form, TEXT_LIMIT, View, counts};
use crate::engine::LeftPath;
use crate::error::Error;
use crate::fs::{AbsPath, Dir};
use crate::session::{Before, Change, Marks};
use crate::snapshot::{At, Difference, Entry, Kept, Series, Terms, beginning, differences, whole};
use crate::tree::{Object, State, What};
use crate::verb::desk::Desk;
use crate::verb::diff::compared::is_listed;
use crate::verb::diff::listed::Between;
use crate::verb::error;

/// The differences between a snapshot and a second side: the reverse of a restore.
pub struct Comparison {
    pub series: Series,
    pub n: u64,
    /// The other snapshot; `None` for the directory as it is now.
    pub m: Option<u64>,
    /// The changes, in path order.
    pub changes: Vec<Change>,
    /// The paths that are not compared.
    pub left: Vec<LeftPath>,
    /// The differences that the changes were made of, one each.
    differences: Vec<Difference>,
}

/// Compares a snapshot with the directory, or with the snapshot that `other` means.
///
/// # Errors
/// There is no such snapshot; a path is nowhere; a snapshot or the tree cannot be read.
pub fn diff(desk: &Desk, of: Named<'_>, other: Option<&str>, with_vcs: bool) -> Result<Comparison, Error> {
    let (store, series) = of.series(desk)?;
    let meant = |key: &str| number(&series, key, error::diff_of_path(&series.directory, key));
    let (n, m) = (meant(of.key)?, other.map(meant).transpose()?);
    let paths = inner(&series.directory, of.paths)?;
    Comparison::of(&store.path, series, (n, m), &paths, with_vcs)
}

impl Comparison {
    /// Compares snapshot `n` with snapshot `m`, else with the tree: what is at and below the paths, or all.
    ///
    /// # Errors
    /// A path is nowhere; a snapshot or the tree cannot be read.
    pub fn of(
        store: &AbsPath,
        series: Series,
        (n, m): (u64, Option<u64>),
        paths: &[AbsPath],
        with_vcs: bool,
    ) -> Result<Self, Error> {
        let mut compared = match m {
            Some(_) => differences::between(&series, n, m, paths, with_vcs)?,
            None => differences::with_tree(store, &series, n, Terms { paths, with_vcs, ..Terms::default() })?,
        };
        refuse_unknown(&series, paths, &compared)?;
        if !paths.is_empty() {
            let asked = |path: &AbsPath| paths.iter().any(|asked| path.is_under(asked));
            compared.differences.retain(|d| asked(&d.path));
            compared.left.retain(|(path, _)| asked(path));
        }
        let changes = compared.differences.iter().map(|difference| change(&series, difference)).collect::<Result<_, _>>()?;
        let left = compared.left.into_iter().map(|(path, why)| Ok(LeftPath { path: whole(&series.directory, &path)?, why }));
        let left = left.collect::<Result<_, Error>>()?;
        Ok(Self { n, m, changes, left, differences: compared.differences, series })
    }

    /// Opens the contents of the changes.
    pub fn contents(&self) -> Contents<'_> {
        Contents { compared: self, kept: Kept::of(&self.series.dir, &self.series.directory) }
    }

    /// Passes the changes to `show`, one by one, as long as that returns true; with `all` those of the mtime alone, too. Returns the number
    /// of changes that are not listed.
    ///
    /// # Errors
    /// A content cannot be read; an error of `show`.
    pub fn for_each(&self, all: bool, show: &mut dyn FnMut(&View<'_>) -> Result<bool, Error>) -> Result<u64, Error> {
        let mut contents = self.contents();
        let (listed, times): (Vec<usize>, Vec<usize>) = (0..self.changes.len()).partition(|i| is_listed(&self.changes[*i], all));
        for i in listed {
            if !show(&contents.view(i)?)? {
                break;
            }
        }
        Ok(times.len() as u64)
    }

    /// Lists the changes, with the counts of their lines if `counted` is set.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn listed(&self, counted: bool) -> Result<Listed<'_>, Error> {
        let mut contents = self.contents();
        let mut row = |i: usize| {
            let lines = if counted { counts(&contents.view(i)?, Form::default()) } else { None };
            let (insertions, deletions) = lines.unzip();
            Ok(Row { change: Between::of(&self.changes[i]), insertions, deletions })
        };
        let changes = (0..self.changes.len()).map(&mut row).collect::<Result<_, Error>>()?;
        Ok(Listed { directory: &self.series.directory, n: self.n, m: self.m, changes, left: &self.left })
    }
}

/// The changes without their contents. JSON: docs/json.md.
#[derive(Serialize)]
pub struct Listed<'a> {
    directory: &'a AbsPath,
    n: u64,
    m: Option<u64>,
    changes: Vec<Row<'a>>,
    left: &'a [LeftPath],
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    change: Between<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insertions: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletions: Option<usize>,
}

/// The contents of the two sides.
pub struct Contents<'a> {
    compared: &'a Comparison,
    kept: Kept<'a>,
}

impl<'a> Contents<'a> {
    /// The view of a change, by its index.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn view(&mut self, i: usize) -> Result<View<'a>, Error> {
        let (change, difference) = (&self.compared.changes[i], &self.compared.differences[i]);
        let fits = [&difference.then, &difference.now].into_iter().all(|object| !is_file(object) || is_small(object));
        let is_read = fits && !difference.is_metadata();
        let old = if is_read && is_small(&difference.then) {
            Some(self.kept(difference, &difference.then, difference.at)?)
        } else {
            None
        };
        let new = match (is_read && is_small(&difference.now), difference.print) {
            (false, _) => None,
            (true, None) => Some(self.kept(difference, &difference.now, difference.now_at)?),
            (true, Some(_)) => Some(on_tree(&change.path)?),
        };
        Ok(View::between(change, old, new, fits))
    }

    /// The content that snapshots have.
    fn kept(&mut self, difference: &Difference, state: &Object, at: Option<At>) -> Result<Vec<u8>, Error> {
        self.kept.beginning(&Entry::of(difference.path.clone(), state.clone(), at), TEXT_LIMIT + 1)
    }
}

fn is_file(object: &Object) -> bool {
    object.as_ref().is_some_and(State::is_file)
}

fn is_small(object: &Object) -> bool {
    matches!(object, Some(State { what: What::File { size, .. }, .. }) if *size <= TEXT_LIMIT)
}

/// The change from the snapshot to the second side.
fn change(series: &Series, difference: &Difference) -> Result<Change, Error> {
    let marks = Marks { same_content: difference.is_metadata(), ..Marks::default() };
    let before = Before { object: difference.then.clone(), print: None };
    let path = whole(&series.directory, &difference.path)?;
    Ok(Change { n: 0, path, before, after: difference.now.clone(), marks, step: None, from: None, original: None })
}

fn on_tree(path: &AbsPath) -> Result<Vec<u8>, Error> {
    let parent = path.parent().unwrap_or_else(differences::root);
    beginning(&Dir::open(parent.as_path())?.at(path.name()).open_file()?, TEXT_LIMIT + 1, path)
}
