//! Settings: what `config.toml` says, what is in force without it, and where each value comes from. A leaf: it knows no
//! room, prints nothing, and reads the one file only.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{At, Failure, IoError, Kind};

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The file is no TOML, or a value is of the wrong type.
    #[error("{path}: {why}")]
    Form {
        /// The file.
        path: String,
        /// What is wrong, with the line.
        why: String,
    },
    /// A key that recant does not know.
    #[error("{path}: unknown key {key:?}; the nearest known one is {near:?}")]
    UnknownKey {
        /// The file.
        path: String,
        /// The key, tables included: `store.warn_size`.
        key: String,
        /// The known key that is most like it.
        near: &'static str,
    },
    /// A value that cannot be meant.
    #[error("{path}: {key}: {why}")]
    Value {
        /// The file.
        path: String,
        /// The key.
        key: &'static str,
        /// What is wrong.
        why: String,
    },
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        Kind::Refused
    }

    fn state(&self) -> Option<String> {
        Some("nothing was changed".into())
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Error::UnknownKey { .. } => Some("recant config shows the known keys once the file is mended".into()),
            _ => None,
        }
    }

    fn path(&self) -> Option<String> {
        match self {
            Error::Io(error) => Some(error.path.clone()),
            Error::Form { path, .. } | Error::UnknownKey { path, .. } | Error::Value { path, .. } => Some(path.clone()),
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum From {
    /// recant's own choice.
    #[default]
    Default,
    /// `config.toml`.
    File,
    /// A variable of the environment.
    Environment(&'static str),
    /// An option of this call.
    Option(&'static str),
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            From::Default => f.write_str("default"),
            From::File => f.write_str("file"),
            From::Environment(name) => write!(f, "environment (${name})"),
            From::Option(name) => write!(f, "option ({name})"),
        }
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Set<T> {
    /// The value in force.
    pub value: T,
    /// Who set it.
    pub from: From,
}

impl<T> Set<T> {
    fn of(found: Option<T>, default: T) -> Self {
        match found {
            Some(value) => Self { value, from: From::File },
            None => Self { value: default, from: From::Default },
        }
    }
}

/// What happens to a deleted folder that is above a checkpoint limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLimit {
    /// All of it is kept, and its size said.
    #[default]
    Full,
    /// Its content is not kept, which is said.
    Partial,
    /// Nothing is touched.
    Refuse,
}

impl OnLimit {
    /// The word in the file and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            OnLimit::Full => "full",
            OnLimit::Partial => "partial",
            OnLimit::Refuse => "refuse",
        }
    }
}

/// When text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    /// On a terminal, unless the environment says otherwise (`NO_COLOR`).
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// The word in the file and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Color::Auto => "auto",
            Color::Always => "always",
            Color::Never => "never",
        }
    }
}

/// A machine that has a name in the settings: table `remotes.NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Remote {
    /// What ssh is given; else NAME.
    pub host: Option<String>,
    /// The user to log in as.
    pub user: Option<String>,
    /// The port.
    pub port: Option<u16>,
    /// The store there.
    pub store: Option<String>,
    /// Whether recant is run by `sudo -n` there.
    pub sudo: bool,
}

/// All settings in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The file that they were read from, or would be; `None` where no home is known.
    pub file: Option<PathBuf>,
    /// Whether that file is there.
    pub found: bool,
    /// `store.path`.
    pub store_path: Set<Option<PathBuf>>,
    /// `store.warn_size`: bytes above which `status` warns.
    pub warn_size: Set<u64>,
    /// `capture.also`: folders that are captured beside the usual ones.
    pub also: Set<Vec<PathBuf>>,
    /// `capture.pass`: paths that stay real in a run.
    pub pass: Set<Vec<PathBuf>>,
    /// `capture.hide`: paths that a run cannot see.
    pub hide: Set<Vec<PathBuf>>,
    /// `capture.scratch`: places whose changes a run drops at its end.
    pub scratch: Set<Vec<PathBuf>>,
    /// `checkpoint.max_files`: above so many files `on_limit` holds for a deleted folder.
    pub max_files: Set<u64>,
    /// `checkpoint.max_size`: likewise bytes.
    pub max_size: Set<u64>,
    /// `checkpoint.on_limit`.
    pub on_limit: Set<OnLimit>,
    /// `commit.deny`: globs of paths that are never committed, with all that lies under them. `*` and `?` stay in one part of a
    /// path, `**` does not; one without a '/' is for names at any depth, another is of a whole path.
    pub deny: Set<Vec<String>>,
    /// `commit.minor`: globs, read like those of `commit.deny`, of paths that a commit of a run leaves out where they conflict.
    pub minor: Set<Vec<String>>,
    /// `retention.keep`: a prune without conditions keeps so many of the newest.
    pub keep: Set<Option<usize>>,
    /// `retention.older_than`: seconds; a prune without conditions takes what is older.
    pub older_than: Set<Option<i64>>,
    /// `snapshot.keep`: so many snapshots of a folder stay.
    pub snapshot_keep: Set<usize>,
    /// `snapshot.max_size`: bytes that they may take; the oldest go first.
    pub snapshot_max_size: Set<u64>,
    /// `snapshot.max_files`: folders of more files and folders are refused unless asked for.
    pub snapshot_max_files: Set<u64>,
    /// `remote.ssh`: the program, and its first arguments.
    pub ssh: Set<Vec<String>>,
    /// `remote.forks`: how many machines are worked on at once.
    pub forks: Set<usize>,
    /// `remote.timeout`: seconds that a machine may be silent; `None`: for ever.
    pub timeout: Set<Option<u32>>,
    /// `remotes`: machines by name.
    pub remotes: BTreeMap<String, Remote>,
    /// `color`.
    pub color: Set<Color>,
    /// `pager`: a shell command; empty for none.
    pub pager: Set<Option<String>>,
}

/// Every key that the file may have. NAME is any word.
const KEYS: [&str; 26] = [
    "store.path",
    "store.warn_size",
    "capture.also",
    "capture.pass",
    "capture.hide",
    "capture.scratch",
    "checkpoint.max_files",
    "checkpoint.max_size",
    "checkpoint.on_limit",
    "commit.deny",
    "commit.minor",
    "retention.keep",
    "retention.older_than",
    "snapshot.keep",
    "snapshot.max_size",
    "snapshot.max_files",
    "remote.ssh",
    "remote.forks",
    "remote.timeout",
    "remotes.NAME.host",
    "remotes.NAME.user",
    "remotes.NAME.port",
    "remotes.NAME.store",
    "remotes.NAME.sudo",
    "color",
    "pager",
];

#[derive(Deserialize, Default)]
#[serde(default)]
struct File {
    store: StoreTable,
    capture: CaptureTable,
    checkpoint: CheckpointTable,
    commit: CommitTable,
    retention: RetentionTable,
    snapshot: SnapshotTable,
    remote: RemoteTable,
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
    scratch: Option<Vec<PathBuf>>,
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
struct RetentionTable {
    keep: Option<usize>,
    older_than: Option<String>,
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
struct RemoteTable {
    ssh: Option<Words>,
    forks: Option<usize>,
    timeout: Option<String>,
}

/// A command: its words, or text that is cut at blanks.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Text(String),
    List(Vec<String>),
}

/// A size: a number of bytes, or text with a unit.
#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    Bytes(u64),
    Text(String),
}

impl Config {
    /// What is in force without a file.
    pub fn defaults(file: Option<PathBuf>) -> Self {
        let name = file.as_deref().unwrap_or(Path::new("config.toml")).to_path_buf();
        // No key is read from an empty text, and only what is read can be wrong: `tests::without_a_file_the_defaults_hold`.
        let none = Self::from_text("", &name, None).expect("an empty file has nothing wrong in it");
        Self { file, found: false, ..none }
    }

    /// Reads `file`; a missing one is as good as an empty one. `home` is what `~/` in a path stands for.
    pub fn read(file: Option<PathBuf>, home: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = file else { return Ok(Self::defaults(None)) };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::defaults(Some(path))),
            Err(error) => return Err(error).at("read the settings", path.display()).map_err(Error::from),
        };
        Self::from_text(&text, &path, home)
    }

    fn from_text(text: &str, path: &Path, home: Option<&Path>) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let form = |error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let why = format!("line {line}: {}", error.message().lines().next().unwrap_or("it is no TOML"));
            Error::Form { path: shown.clone(), why }
        };
        let table: toml::Table = text.parse().map_err(form)?;
        check_keys(&table, "", &shown)?;
        let file: File = toml::from_str(text).map_err(form)?;
        let value = |key: &'static str, why: String| Error::Value { path: shown.clone(), key, why };
        let bytes = |key, amount: Option<Amount>| match amount {
            Some(Amount::Text(text)) => size(&text).map(Some).map_err(|why| value(key, why)),
            Some(Amount::Bytes(bytes)) => Ok(Some(bytes)),
            None => Ok(None),
        };
        let whole = |key, path: PathBuf| match (path.strip_prefix("~"), home) {
            (Ok(below), Some(home)) => Ok(home.join(below)),
            (Ok(_), None) => Err(value(key, format!("{}: no home folder is known", path.display()))),
            (Err(_), _) if path.is_absolute() => Ok(path),
            _ => Err(value(key, format!("{}: a path here starts with '/' or '~/'", path.display()))),
        };
        let paths = |key, list: Option<Vec<PathBuf>>| -> Result<Set<Vec<PathBuf>>, Error> {
            let list = list.map(|list| list.into_iter().map(|path| whole(key, path)).collect()).transpose()?;
            Ok(Set::of(list, Vec::new()))
        };
        let globs = |key: &'static str, globs: Option<Vec<String>>| -> Result<Option<Vec<String>>, Error> {
            let one = |text: String| glob(&text, home).map_err(|why| value(key, format!("{text:?}: {why}")));
            globs.map(|globs| globs.into_iter().map(one).collect()).transpose()
        };
        let deny = globs("commit.deny", file.commit.deny)?;
        let minor = globs("commit.minor", file.commit.minor)?;
        let ssh = file.remote.ssh.map(|words| match words {
            Words::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
            Words::List(list) => list,
        });
        if ssh.as_ref().is_some_and(Vec::is_empty) {
            return Err(value("remote.ssh", "no program is named".into()));
        }
        if file.remote.forks == Some(0) {
            return Err(value("remote.forks", "one machine at a time is the least".into()));
        }
        let older_than = file.retention.older_than.map(|text| age(&text)).transpose();
        let timeout = file.remote.timeout.map(|text| silence(&text)).transpose();
        Ok(Self {
            file: Some(path.to_path_buf()),
            found: true,
            store_path: Set::of(file.store.path.map(|path| whole("store.path", path).map(Some)).transpose()?, None),
            warn_size: Set::of(bytes("store.warn_size", file.store.warn_size)?, 5 << 30),
            also: paths("capture.also", file.capture.also)?,
            pass: paths("capture.pass", file.capture.pass)?,
            hide: paths("capture.hide", file.capture.hide)?,
            scratch: paths("capture.scratch", file.capture.scratch)?,
            max_files: Set::of(file.checkpoint.max_files, 100),
            max_size: Set::of(bytes("checkpoint.max_size", file.checkpoint.max_size)?, 50 << 20),
            on_limit: Set::of(file.checkpoint.on_limit, OnLimit::Full),
            deny: Set::of(deny, Vec::new()),
            minor: Set::of(minor, MINOR.iter().filter_map(|text| glob(text, home).ok()).collect()),
            keep: Set::of(file.retention.keep.map(Some), None),
            older_than: Set::of(older_than.map_err(|why| value("retention.older_than", why))?.map(Some), None),
            snapshot_keep: Set::of(file.snapshot.keep, 50),
            snapshot_max_size: Set::of(bytes("snapshot.max_size", file.snapshot.max_size)?, 5 << 30),
            snapshot_max_files: Set::of(file.snapshot.max_files, 50_000),
            ssh: Set::of(ssh, vec!["ssh".into()]),
            forks: Set::of(file.remote.forks, 10),
            timeout: Set::of(timeout.map_err(|why| value("remote.timeout", why))?, Some(60)),
            remotes: file.remotes,
            color: Set::of(file.color, Color::Auto),
            pager: Set::of(file.pager.map(Some), None),
        })
    }
}

/// Refuses the first key that is not one of [`KEYS`].
fn check_keys(table: &toml::Table, above: &str, path: &str) -> Result<(), Error> {
    for (name, value) in table {
        // Whatever the machines are called.
        let name = if above == "remotes" { "NAME" } else { name };
        let key = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
        if KEYS.contains(&&*key) {
            continue;
        }
        let is_table = KEYS.iter().any(|known| known.strip_prefix(&*key).is_some_and(|rest| rest.starts_with('.')));
        match value {
            // An unknown table is told by a key in it, which has a nearest known one.
            toml::Value::Table(below) if is_table || !below.is_empty() => check_keys(below, &key, path)?,
            // Of the wrong type, which is told with its line.
            _ if is_table => {}
            _ => {
                let near = KEYS.into_iter().min_by_key(|known| unlikeness(known, &key)).unwrap_or_default();
                return Err(Error::UnknownKey { path: path.into(), key, near });
            }
        }
    }
    Ok(())
}

/// How far a known key is from what was written: as a whole, or in its last part alone.
fn unlikeness(known: &str, key: &str) -> usize {
    let last = |text: &str| text.rsplit('.').next().map(str::to_owned).unwrap_or_default();
    edits(known, key).min(edits(&last(known), &last(key)) + 1)
}

/// How many letters have to be put in, taken out or changed to make one word of the other: Levenshtein's distance,
/// a row of the table at a time (Wagner and Fischer, 1974).
pub fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let best = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}

/// Where what a program leaves behind is of no weight: caches, histories, temporary files.
const MINOR: [&str; 5] = ["~/.cache", "~/.local/state", "~/.*_history", "/tmp", "/var/tmp"];

/// A glob of `commit.deny` or `commit.minor` as it holds: `~/` replaced, without a slash at its end.
fn glob(text: &str, home: Option<&Path>) -> Result<String, String> {
    let plain = text.trim_end_matches('/');
    let whole = match (plain.strip_prefix("~/"), home.and_then(Path::to_str)) {
        (Some(below), Some(home)) => format!("{}/{below}", globset::escape(home)),
        (Some(_), None) => return Err("no home folder is known".into()),
        (None, _) => plain.to_owned(),
    };
    if whole.is_empty() {
        return Err("it means every path there is".into());
    }
    if whole.starts_with('!') {
        return Err("'!' takes nothing out here".into());
    }
    if whole.contains('/') && !whole.starts_with('/') && !whole.starts_with("**/") {
        return Err("with a '/' in it, a glob starts with '/', '~/' or '**/'".into());
    }
    path_glob(&whole).map_err(|error| error.kind().to_string())?;
    Ok(whole)
}

/// Matches whole paths by a glob of [`Config::deny`] or [`Config::minor`].
pub fn path_glob(glob: &str) -> Result<globset::Glob, globset::Error> {
    let anywhere = if glob.contains('/') { glob.to_owned() } else { format!("**/{glob}") };
    globset::GlobBuilder::new(&anywhere).literal_separator(true).backslash_escape(true).build()
}

/// Bytes from `500`, `50M`, `1.5G`: binary units K, M, G.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size: a number and K, M or G, as in 50M");
    let (number, shift) = match text.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 6 || (shift == 0 && !part.is_empty()) {
        return Err(wrong());
    }
    let unit = 1_u64 << shift;
    let whole = whole.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).ok_or_else(wrong)?;
    let part = if part.is_empty() { 0 } else { part.parse::<u64>().map_err(|_| wrong())? * unit / 10_u64.pow(part.len() as u32) };
    whole.checked_add(part).ok_or_else(wrong)
}

/// Seconds from `90s`, `15m`, `12h`, `30d`, `8w`.
pub fn age(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is no age: a number and s, m, h, d or w, as in 30d");
    let (at, unit) = text.char_indices().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let number = &text[..at];
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    number.parse::<i64>().ok().and_then(|n| n.checked_mul(seconds)).ok_or_else(wrong)
}

/// Seconds up to an hour from `90s`, `2m`; none from `0s`, which is for ever.
fn silence(text: &str) -> Result<Option<u32>, String> {
    let seconds = age(text)?;
    let known = u32::try_from(seconds).ok().filter(|seconds| *seconds <= 3600);
    Ok(Some(known.ok_or_else(|| format!("{text:?}: an hour is the most; 0s means for ever"))?).filter(|seconds| *seconds > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        Config::from_text(text, Path::new("/c.toml"), Some(Path::new("/home/u"))).map_err(|error| error.to_string())
    }

    #[test]
    fn sizes_are_binary_and_ages_have_a_unit() {
        for (text, want) in
            [("0", Some(0)), ("500", Some(500)), ("1K", Some(1024)), ("50M", Some(50 << 20)), ("1.5g", Some(3 << 29))]
        {
            assert_eq!(size(text).ok(), want, "{text}");
        }
        for text in ["", "K", "-1", "+1", "1.5", "1T", "5 M", "1e3", "99999999999G", "1.1234567M", "1.M.M"] {
            assert!(size(text).is_err(), "{text}");
        }
        for (text, want) in [("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000), ("8w", 4_838_400), ("0d", 0)] {
            assert_eq!(age(text), Ok(want), "{text}");
        }
        for text in ["", "d", "30", "-1d", "+1d", "1y", "1 d", "99999999999999999999s", "9999999999999999w", "1ä"] {
            assert!(age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn without_a_file_the_defaults_hold() {
        let config = Config::defaults(None);
        assert_eq!((config.max_files.value, config.max_size.value, config.warn_size.value), (100, 50 << 20, 5 << 30));
        assert_eq!((config.on_limit.value, config.color.value), (OnLimit::Full, Color::Auto));
        assert!(!config.found && config.max_files.from == From::Default);
    }

    #[test]
    fn what_the_file_says_holds_and_is_known_to_come_from_it() {
        let config = read(
            "color = 'never'\n[store]\npath = '~/s'\nwarn_size = '1G'\n[capture]\nalso = ['/srv']\n[checkpoint]\nmax_size = 7\non_limit = 'partial'\n[retention]\nolder_than = '2w'\n",
        )
        .unwrap();
        assert_eq!(config.store_path, Set { value: Some("/home/u/s".into()), from: From::File });
        assert_eq!((config.warn_size.value, config.max_size.value), (1 << 30, 7));
        assert_eq!(config.also.value, [PathBuf::from("/srv")]);
        assert_eq!((config.on_limit.value, config.max_files.from), (OnLimit::Partial, From::Default));
        assert_eq!(config.older_than.value, Some(1_209_600));
    }

    #[test]
    fn machines_have_names() {
        let config =
            read("[remote]\nssh = 'ssh -F /etc/x'\n[remotes.web]\nhost = '10.0.0.7'\nsudo = true\n[remotes.'a.b']\nport = 7\n")
                .unwrap();
        assert_eq!((config.ssh.value.len(), config.forks.value, config.timeout.value), (3, 10, Some(60)));
        assert_eq!(read("[remote]\ntimeout = '0s'\n").unwrap().timeout, Set { value: None, from: From::File });
        assert_eq!(read("[remote]\ntimeout = '2m'\n").unwrap().timeout.value, Some(120));
        let web = Remote { host: Some("10.0.0.7".into()), sudo: true, ..Remote::default() };
        assert_eq!(config.remotes["web"], web);
        assert_eq!(config.remotes["a.b"].port, Some(7));
        assert_eq!(read("[remote]\nssh = ['/opt/my ssh', '-v']\n").unwrap().ssh.value, ["/opt/my ssh", "-v"]);
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_the_nearest() {
        for (text, key, near) in [
            ("colour = 'auto'", "colour", "color"),
            ("[store]\nwarnsize = 1", "store.warnsize", "store.warn_size"),
            ("max_files = 3", "max_files", "checkpoint.max_files"),
            ("[chekpoint]\nmax_size = 3", "chekpoint.max_size", "checkpoint.max_size"),
            ("[pagers]", "pagers", "pager"),
            ("[remotes.'a.b']\nhots = 'x'", "remotes.NAME.hots", "remotes.NAME.host"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(&format!("{key:?}")) && error.contains(&format!("{near:?}")), "{text}: {error}");
        }
    }

    #[test]
    fn a_value_that_cannot_be_meant_is_an_error_with_its_place() {
        for (text, part) in [
            ("[store]\npath = 's'", "store.path: s: a path here starts with"),
            ("[checkpoint]\nmax_size = '5X'", "checkpoint.max_size: \"5X\" is no size"),
            ("[retention]\nolder_than = 'x'", "retention.older_than"),
            ("[checkpoint]\n\non_limit = 'some'", "line 3"),
            ("a b", "line 1"),
            ("[checkpoint]\nmax_files = -1", "line 2"),
            ("[commit]\ndeny = ['src/*.key']", "commit.deny: \"src/*.key\": with a '/' in it"),
            ("[commit]\ndeny = ['!a']", "commit.deny: \"!a\": '!' takes nothing out"),
            ("[commit]\ndeny = ['/']", "it means every path"),
            ("[commit]\ndeny = ['a[']", "unclosed character class"),
            ("store = 3", "line 1"),
            ("[remote]\nssh = ' '", "remote.ssh: no program is named"),
            ("[remote]\ntimeout = '2h'", "remote.timeout: \"2h\": an hour is the most"),
            ("[remote]\ntimeout = '2x'", "remote.timeout: \"2x\" is no age"),
            ("[remote]\nforks = 0", "remote.forks: one machine"),
            ("[remotes.web]\nport = 70000", "line 2"),
            ("[remotes]\nweb = 3", "line 2"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("/c.toml: ") && error.contains(part), "{text}: {error}");
        }
    }
}
