//! `snapshot create`: takes a snapshot of a directory, and drops old ones that the settings let go of.

use std::path::Path;

use serde::Serialize;

use super::directory::directory;
use super::prunable::dropped;
use super::prunable::retain;
use crate::engine::LeftPath;
use crate::error::Error;
use crate::fs::{AbsPath, home};
use crate::session::{ActingAgent, check_name};
use crate::snapshot::create::create as take;
use crate::snapshot::{
    Counts, How, OF_AGENT, Series, SnapshotRequest, SnapshotResult, Source, Summary, TURN, as_path_of, choose_directory, whole,
};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::signals::finished;

/// The snapshot that has the state. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Created {
    pub(crate) directory: AbsPath,
    pub(crate) n: u64,
    #[serde(rename = "result")]
    pub(crate) how: How,
    pub(crate) counts: Counts,
    pub(crate) unread: Vec<LeftPath>,
    /// The paths that were left out for other reasons than rules.
    pub(crate) left: Vec<LeftPath>,
    pub(crate) pruned: Vec<u64>,
    /// Version control's own that was left out.
    pub(crate) repositories: Vec<AbsPath>,
    /// The damage in earlier snapshots.
    pub(crate) damaged: Vec<String>,
    /// The globs that nothing fitted.
    pub(crate) unfitted: Vec<String>,
    #[serde(skip)]
    pub(crate) unindexed: Option<String>,
    /// The snapshot that had its label before, if that can be told.
    #[serde(skip)]
    pub(crate) former: Result<Option<u64>, Error>,
}

impl Created {
    /// Its number among the snapshots of its directory, from 0 on; never used again.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The paths that are not in it, and why: unreadable ones, mounts.
    pub fn left(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.unread.iter().chain(&self.left).map(LeftPath::parts)
    }
}

/// Takes a snapshot of a directory or file, else of the project, as it is asked for; the globs of its rules are read as they were given.
/// `keep`: the most that stay, else as the settings say (50 by default, so that old ones go).
///
/// # Errors
/// [`Kind::Refused`](crate::Kind::Refused): there is no such directory, or it is too broad (`/`, the home directory, or one that holds
/// it) or holds too much; the label or key is none. `Busy`: another works with snapshots of that directory.
pub fn create(desk: &Desk, dir: Option<&Path>, mut asked: SnapshotRequest, keep: Option<usize>) -> Result<Created, Error> {
    let directory = directory(dir)?;
    if let Some(label) = &asked.label {
        check_name(label).map_err(|why| error::no_label(label, why))?;
    }
    if asked.once.as_deref() == Some("") {
        return Err(error::no_key());
    }
    choose_directory::check(&directory, &desk.store_path()?, home().as_ref())?;
    let store = desk.made_store()?;
    desk.prepare_to_change(&store)?;
    asked.meta = with_by(asked.meta, store.by.as_ref());
    if let Source::Found(rules) = &mut asked.rules {
        rules.exclude.iter_mut().for_each(|glob| *glob = as_path_of(&directory, glob));
    }
    finished(desk, || {
        let series = Series::create(&desk.fs, &store, &directory)?;
        let lock = series.lock(&desk.fs)?;
        let made = take(&desk.fs, &store.path, &series, &lock, &asked)?;
        if made.how != How::New {
            return created(&directory, made, Vec::new(), Ok(None));
        }
        let pruned = dropped(desk, &series, retain(desk, &series, &lock, keep, &[]));
        let former = asked.label.as_ref().map_or(Ok(None), |label| former(&series, label, made.n));
        created(&directory, made, pruned, former)
    })
}

fn created(
    directory: &AbsPath,
    made: SnapshotResult,
    pruned: Vec<u64>,
    former: Result<Option<u64>, Error>,
) -> Result<Created, Error> {
    let left = |(path, why): (AbsPath, String)| Ok::<_, Error>(LeftPath { path: whole(directory, &path)?, why });
    Ok(Created {
        directory: directory.clone(),
        n: made.n,
        how: made.how,
        counts: made.counts,
        unread: made.unread.into_iter().map(left).collect::<Result<_, _>>()?,
        left: made.left.into_iter().map(|(path, why)| left((path, why.text().into()))).collect::<Result<_, _>>()?,
        pruned,
        repositories: made.repositories.iter().map(|path| whole(directory, path)).collect::<Result<_, _>>()?,
        damaged: made.damaged,
        unfitted: made.unfitted,
        unindexed: made.unindexed,
        former,
    })
}

/// The newest snapshot before `n` with a label, which means snapshot `n` from now on.
fn former(series: &Series, label: &str, n: u64) -> Result<Option<u64>, Error> {
    let has_it = |summary: &&Summary| summary.head.n < n && summary.head.label.as_deref() == Some(label);
    Ok(series.summaries()?.0.iter().rev().find(has_it).map(|summary| summary.head.n))
}

/// The meta keys of a snapshot with `agent` and `turn` of the agent that takes it, unless it gives them itself.
pub fn with_by(mut meta: Vec<(String, String)>, by: Option<&ActingAgent>) -> Vec<(String, String)> {
    let gives = |wanted: &str| meta.iter().any(|(key, _)| key == wanted);
    let Some(ActingAgent { agent, turn, .. }) = by.filter(|_| !gives(OF_AGENT)) else { return meta };
    let turn = turn.filter(|_| !gives(TURN)).map(|turn| (TURN.into(), turn.to_string()));
    meta.push((OF_AGENT.into(), agent.clone()));
    meta.extend(turn);
    meta
}
