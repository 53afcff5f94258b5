//! `config.toml`, table by table, and the settings that it makes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::glob::{MINOR, glob};
use super::keys::check_keys;
use super::settings::{AgentCommit, BYPRODUCTS, CACHES, Color, Config, OUTPUT_PATHS, OfAgent, OnLimit, Remote, Set};
use super::units::{age, silence, size};
use super::wrong::{self, refused};
use crate::error::Error;

#[derive(Deserialize, Default)]
#[serde(default)]
struct File {
    store: StoreTable,
    capture: CaptureTable,
    checkpoint: CheckpointTable,
    commit: CommitTable,
    agent: AgentTable,
    retention: RetentionTable,
    snapshot: SnapshotTable,
    steps: StepsTable,
    remote: RemoteTable,
    output: OutputTable,
    diff: DiffTable,
    remotes: BTreeMap<String, Remote>,
    color: Option<Color>,
    pager: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct StoreTable {
    path: Option<PathBuf>,
    warn_size: Option<Amount>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CaptureTable {
    also: Option<Vec<PathBuf>>,
    pass: Option<Vec<PathBuf>>,
    hide: Option<Vec<PathBuf>>,
    caches: Option<Vec<PathBuf>>,
    keep_before: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CheckpointTable {
    max_files: Option<u64>,
    max_size: Option<Amount>,
    on_limit: Option<OnLimit>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CommitTable {
    deny: Option<Vec<String>>,
    minor: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AgentTable {
    commit: Option<AgentCommit>,
    keep: Option<usize>,
    byproducts: Option<Vec<String>>,
    #[serde(flatten)]
    each: BTreeMap<String, OfAgentTable>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OfAgentTable {
    pass: Option<Vec<PathBuf>>,
    records: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RetentionTable {
    keep: Option<usize>,
    older_than: Option<String>,
    discarded: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SnapshotTable {
    keep: Option<usize>,
    max_size: Option<Amount>,
    max_files: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct StepsTable {
    keep: Option<usize>,
    max_size: Option<Amount>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputTable {
    paths: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct DiffTable {
    pager: Option<String>,
    tool: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RemoteTable {
    ssh: Option<Words>,
    timeout: Option<String>,
}

/// A command: a list of words, or text that is split at blanks.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a command: text, or a list of words")]
enum Words {
    Text(String),
    List(Vec<String>),
}

/// A size: a number of bytes, or text with a unit.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a size: a number of bytes, or '50M'")]
enum Amount {
    Bytes(u64),
    Text(String),
}

impl Config {
    pub(super) fn from_text(text: &str, path: &Path, home: Option<&Path>) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let form = |error: toml::de::Error| refused(&shown, wrong::explain(text, &error));
        let table: toml::Table = text.parse().map_err(form)?;
        check_keys(&table, "", &shown)?;
        let file: File = toml::from_str(text).map_err(form)?;
        let value = |key: &'static str, why: String| refused(&shown, format_args!("{key}: {why}"));
        let bytes = |key, amount: Option<Amount>| match amount {
            Some(Amount::Text(text)) => size(&text).map(Some).map_err(|why| value(key, why)),
            Some(Amount::Bytes(bytes)) => Ok(Some(bytes)),
            None => Ok(None),
        };
        let whole = |key, path: PathBuf| match (path.strip_prefix("~"), home) {
            (Ok(below), Some(home)) => Ok(home.join(below)),
            (Ok(_), None) => Err(value(key, format!("{}: no home directory is known", path.display()))),
            (Err(_), _) if path.is_absolute() => Ok(path),
            _ => Err(value(key, format!("{}: a path here starts with '/' or '~/'", path.display()))),
        };
        let paths = |key, list: Option<Vec<PathBuf>>| -> Result<Set<Vec<PathBuf>>, Error> {
            let list = list.map(|list| list.into_iter().map(|path| whole(key, path)).collect()).transpose()?;
            Ok(Set::of(list, Vec::new()))
        };
        let usual_caches = || home.map(|home| CACHES.iter().map(|cache| home.join(cache.path)).collect()).unwrap_or_default();
        let globs = |key: &'static str, globs: Option<Vec<String>>| -> Result<Option<Vec<String>>, Error> {
            let one = |text: String| glob(&text, home).map_err(|why| value(key, format!("{text:?}: {why}")));
            globs.map(|globs| globs.into_iter().map(one).collect()).transpose()
        };
        let deny = globs("commit.deny", file.commit.deny)?;
        let minor = globs("commit.minor", file.commit.minor)?;
        let mut agents = BTreeMap::new();
        for (name, table) in file.agent.each {
            let pass =
                table.pass.map(|list| list.into_iter().map(|path| whole("agent.NAME.pass", path)).collect()).transpose()?;
            let records = globs("agent.NAME.records", table.records)?;
            agents.insert(name, OfAgent { pass, records });
        }
        let ssh = file.remote.ssh.map(|words| match words {
            Words::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
            Words::List(list) => list,
        });
        if ssh.as_ref().is_some_and(Vec::is_empty) {
            return Err(value("remote.ssh", "no program is named".into()));
        }
        let older_than = file.retention.older_than.map(|text| age(&text)).transpose();
        let discarded = file.retention.discarded.map(|text| age(&text)).transpose();
        let timeout = file.remote.timeout.map(|text| silence(&text)).transpose();
        Ok(Self {
            file: Some(path.to_path_buf()),
            found: true,
            store_path: Set::of(file.store.path.map(|path| whole("store.path", path).map(Some)).transpose()?, None),
            warn_size: Set::of(bytes("store.warn_size", file.store.warn_size)?, 5 << 30),
            also: paths("capture.also", file.capture.also)?,
            pass: paths("capture.pass", file.capture.pass)?,
            hide: paths("capture.hide", file.capture.hide)?,
            caches: match file.capture.caches {
                None => Set::of(None, usual_caches()),
                some => paths("capture.caches", some)?,
            },
            keep_before: Set::of(file.capture.keep_before, true),
            max_files: Set::of(file.checkpoint.max_files, 100),
            max_size: Set::of(bytes("checkpoint.max_size", file.checkpoint.max_size)?, 50 << 20),
            on_limit: Set::of(file.checkpoint.on_limit, OnLimit::Full),
            deny: Set::of(deny, Vec::new()),
            minor: Set::of(minor, MINOR.iter().filter_map(|text| glob(text, home).ok()).collect()),
            agent_commit: Set::of(file.agent.commit, AgentCommit::default()),
            agent_keep: Set::of(file.agent.keep, 200),
            agent_byproducts: Set::of(file.agent.byproducts, BYPRODUCTS.map(str::to_owned).into()),
            agents,
            keep: Set::of(file.retention.keep.map(Some), None),
            older_than: Set::of(older_than.map_err(|why| value("retention.older_than", why))?.map(Some), None),
            discarded: Set::of(discarded.map_err(|why| value("retention.discarded", why))?, 7 * 86_400),
            snapshot_keep: Set::of(file.snapshot.keep, 50),
            snapshot_max_size: Set::of(bytes("snapshot.max_size", file.snapshot.max_size)?, 5 << 30),
            steps_keep: Set::of(file.steps.keep, 200),
            steps_max_size: Set::of(bytes("steps.max_size", file.steps.max_size)?, 2 << 30),
            snapshot_max_files: Set::of(file.snapshot.max_files, 50_000),
            ssh: Set::of(ssh, vec!["ssh".into()]),
            timeout: Set::of(timeout.map_err(|why| value("remote.timeout", why))?, Some(60)),
            remotes: file.remotes,
            diff_pager: Set::of(file.diff.pager.map(Some), None),
            diff_tool: Set::of(file.diff.tool.map(Some), None),
            output_paths: Set::of(file.output.paths, OUTPUT_PATHS),
            color: Set::of(file.color, Color::Auto),
            pager: Set::of(file.pager.map(Some), None),
        })
    }
}
