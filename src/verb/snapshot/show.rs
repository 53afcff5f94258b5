//! `snapshot show`: what a snapshot holds, and what was left out.

use serde::Serialize;

use super::list::Row;
use super::series::{Named, number, series};
use crate::engine::LeftPath;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::snapshot::{Entry, Merged, Vcs, root, rules, whole};
use crate::verb::desk::Desk;
use crate::verb::error;

/// A snapshot. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Shown {
    pub directory: AbsPath,
    pub snapshot: Row,
    pub rules: Rules,
    /// The paths that could not be read for it.
    pub unread: Vec<LeftPath>,
    /// All paths in it, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<AbsPath>>,
}

/// The rules of what was left out.
#[derive(Debug, Serialize)]
pub struct Rules {
    pub exclude: Vec<String>,
    pub presets: Vec<String>,
    pub gitignore: bool,
    /// The files that told some of them.
    pub files: Vec<AbsPath>,
    pub vcs: Vcs,
    /// Version control's own that was left out.
    pub repositories: Vec<AbsPath>,
    /// True if nothing is left out, version control's own aside.
    #[serde(skip)]
    pub is_empty: bool,
}

impl Rules {
    fn of(rules: rules::Rules, directory: &AbsPath) -> Result<Self, Error> {
        let full = |path: &AbsPath| whole(directory, path);
        let file = |file: &rules::IgnoreFile| full(&file.directory.join(file.name.as_bytes()).unwrap_or_else(|_| root()));
        Ok(Self {
            files: rules.files.iter().map(file).collect::<Result<_, _>>()?,
            repositories: rules.repositories.iter().map(full).collect::<Result<_, _>>()?,
            is_empty: rules.is_empty(),
            exclude: rules.exclude,
            presets: rules.presets,
            gitignore: rules.gitignore,
            vcs: rules.vcs,
        })
    }
}

/// Shows a snapshot; with `lists_paths` every path in it. The paths of `of` do not count.
///
/// # Errors
/// There is no such snapshot; it cannot be read.
pub fn show(desk: &Desk, of: Named<'_>, lists_paths: bool) -> Result<Shown, Error> {
    let (_, series) = series(desk, of.dir)?;
    let n = number(&series, of.key, error::show_of_paths(&series.directory))?;
    let summary = series.summary(n)?;
    let mut merged = Merged::open(&series.dir, n)?;
    let full = |path: &AbsPath| whole(&series.directory, path);
    let (mut unread, mut paths) = (Vec::new(), lists_paths.then(Vec::new));
    while let Some(Entry { path, unread: why, .. }) = merged.next()? {
        match (why, &mut paths) {
            (Some(why), _) => unread.push(LeftPath { path: full(&path)?, why }),
            (None, Some(paths)) => paths.push(full(&path)?),
            (None, None) => {}
        }
    }
    let rules = Rules::of(merged.rules().cloned().unwrap_or_default(), &series.directory)?;
    Ok(Shown { snapshot: Row::of(summary), rules, unread, paths, directory: series.directory })
}
