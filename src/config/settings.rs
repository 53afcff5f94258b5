//! The settings as values, with their defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{At, Error};

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum From {
    #[default]
    Default,
    /// `config.toml`.
    File,
    Environment(&'static str),
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

/// A value and its source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Set<T> {
    pub value: T,
    pub from: From,
}

impl<T> Set<T> {
    pub(super) fn of(found: Option<T>, default: T) -> Self {
        match found {
            Some(value) => Self { value, from: From::File },
            None => Self { value: default, from: From::Default },
        }
    }
}

/// A download cache that `run --in` leaves writable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    pub path: &'static str,
    /// The program that it belongs to; a missing cache is made only if that is in PATH. `None`: many programs use it.
    pub program: Option<&'static str>,
    /// A lock file, which is used only if it exists: another process could hold one that was made and removed again.
    pub is_file: bool,
}

/// `capture.caches` if the file does not set it. Has no paths that programs obey or execute (`~/.cargo/bin`, `~/.npmrc`, `~/.npm/_npx`).
pub const CACHES: [Cache; 10] = {
    const fn of(path: &'static str, program: Option<&'static str>, is_file: bool) -> Cache {
        Cache { path, program, is_file }
    }
    [
        of(".npm/_cacache", Some("npm"), false),
        of(".cargo/registry", Some("cargo"), false),
        of(".cargo/git", Some("cargo"), false),
        of(".cargo/.package-cache", Some("cargo"), true),
        of(".cargo/.package-cache-mutate", Some("cargo"), true),
        of("go/pkg/mod", Some("go"), false),
        of("go/pkg/sumdb", Some("go"), false),
        of(".m2/repository", Some("mvn"), false),
        of(".gradle/caches", Some("gradle"), false),
        of(".cache", None, false),
    ]
};

/// `agent.byproducts` if the file does not set it: what compilers and editors put beside sources.
pub const BYPRODUCTS: [&str; 6] = ["*.o", "*.a", "*.so", "*.class", "*.pyc", "*.swp"];

/// The policy for a deleted directory that is above a checkpoint limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLimit {
    /// All of it is kept; its size is reported.
    #[default]
    Full,
    /// Its content is not kept; that is reported.
    Partial,
}

impl OnLimit {
    /// The word in the file and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            OnLimit::Full => "full",
            OnLimit::Partial => "partial",
        }
    }
}

/// Permission for an agent to commit and to roll back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentCommit {
    /// It is refused, with the command for a person.
    #[default]
    Refuse,
    /// It may do both.
    Allow,
}

impl AgentCommit {
    pub fn word(self) -> &'static str {
        match self {
            AgentCommit::Refuse => "refuse",
            AgentCommit::Allow => "allow",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    /// On a terminal, unless the environment says otherwise (`NO_COLOR`).
    #[default]
    Auto,
    Always,
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

/// A machine named in the settings: table `remotes.NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Remote {
    pub store: Option<String>,
    /// True if recant is run by `sudo -n` there.
    pub sudo: bool,
}

/// An agent's table in the settings: `agent.NAME`. `None`: recant's own list for that agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfAgent {
    /// `agent.NAME.pass`: the paths that stay real when it is held.
    pub pass: Option<Vec<PathBuf>>,
    /// `agent.NAME.records`: globs of the files that are committed by themselves when it has ended.
    pub records: Option<Vec<String>>,
}

/// `output.paths` if the file does not set it.
pub const OUTPUT_PATHS: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The file that they were read from, or would be; `None` if no home directory is known.
    pub file: Option<PathBuf>,
    /// True if that file exists.
    pub found: bool,
    pub store_path: Set<Option<PathBuf>>,
    /// `store.warn_size`: bytes above which `status` warns.
    pub warn_size: Set<u64>,
    /// `capture.also`: directories, and mounted files, that are captured beside the usual ones.
    pub also: Set<Vec<PathBuf>>,
    /// `capture.pass`: paths that stay real in a run.
    pub pass: Set<Vec<PathBuf>>,
    /// `capture.hide`: paths that a run cannot see.
    pub hide: Set<Vec<PathBuf>>,
    /// `capture.caches`: download caches that a command of `run --in` may write to.
    pub caches: Set<Vec<PathBuf>>,
    /// `capture.keep_before`: true if a run keeps what the files that it changes held before.
    pub keep_before: Set<bool>,
    /// `checkpoint.max_files`: the number of files above which `on_limit` applies to a deleted directory.
    pub max_files: Set<u64>,
    /// `checkpoint.max_size`: likewise in bytes.
    pub max_size: Set<u64>,
    pub on_limit: Set<OnLimit>,
    /// `commit.deny`: globs of paths that are never committed, with all below them. `*` and `?` match within one component, `**` across
    /// them. A glob without a '/' matches names at any depth, any other matches whole paths.
    pub deny: Set<Vec<String>>,
    /// `commit.minor`: globs, read like those of `commit.deny`, of paths that the commit of a run leaves out if they conflict.
    pub minor: Set<Vec<String>>,
    pub agent_commit: Set<AgentCommit>,
    /// `agent.keep`: the number of turns of agents in a directory that can be undone.
    pub agent_keep: Set<usize>,
    /// `agent.byproducts`: globs, as in `.gitignore`, of what turns do not cover if git ignores it.
    pub agent_byproducts: Set<Vec<String>>,
    /// `agent.NAME`: what `agent run` leaves real, by the agent's word.
    pub agents: BTreeMap<String, OfAgent>,
    /// `retention.keep`: the number of newest sessions that a prune without conditions keeps.
    pub keep: Set<Option<usize>>,
    /// `retention.older_than`: seconds; a prune without conditions drops what is older.
    pub older_than: Set<Option<i64>>,
    /// `retention.discarded`: seconds that a discarded session can be brought back.
    pub discarded: Set<i64>,
    /// `snapshot.keep`: the number of snapshots of a directory that are kept.
    pub snapshot_keep: Set<usize>,
    /// `snapshot.max_size`: bytes that they may take; the oldest go first.
    pub snapshot_max_size: Set<u64>,
    /// `steps.keep`: the number of steps of a session that can be gone back to.
    pub steps_keep: Set<usize>,
    /// `steps.max_size`: bytes that they may hold; the oldest are merged.
    pub steps_max_size: Set<u64>,
    /// `snapshot.max_files`: directories with more files and directories are refused unless asked for.
    pub snapshot_max_files: Set<u64>,
    /// `remote.ssh`: the program, and its first arguments.
    pub ssh: Set<Vec<String>>,
    /// `remote.timeout`: seconds that the other machine may be silent; `None`: no limit.
    pub timeout: Set<Option<u32>>,
    pub remotes: BTreeMap<String, Remote>,
    /// `output.paths`: the number of lines of a listing that are printed.
    pub output_paths: Set<usize>,
    pub color: Set<Color>,
    /// `pager`: a shell command; empty for none.
    pub pager: Set<Option<String>>,
    /// `diff.pager`: one for differences alone.
    pub diff_pager: Set<Option<String>>,
    /// `diff.tool`: the program that `diff --tool` shows differences in, if the call names none.
    pub diff_tool: Set<Option<String>>,
}

impl Config {
    /// The pager of differences, if one is set.
    pub fn pager_of_diff(&self) -> Option<&str> {
        self.diff_pager.value.as_deref().or(self.pager.value.as_deref())
    }

    /// The settings without a file, which are those of an empty file. `home` replaces `~/` in the defaults.
    pub fn defaults(file: Option<PathBuf>, home: Option<&Path>) -> Self {
        let name = file.as_deref().unwrap_or(Path::new("config.toml")).to_path_buf();
        // An empty text has no key that could be wrong: `tests::without_a_file_the_defaults_hold`.
        let none = Self::from_text("", &name, home).expect("an empty file has nothing wrong in it");
        Self { file, found: false, ..none }
    }

    /// Reads `file`; a missing one counts as empty. `home` replaces `~/` in a path.
    pub fn read(file: Option<PathBuf>, home: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = file else { return Ok(Self::defaults(None, home)) };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::defaults(Some(path), home)),
            Err(error) => return Err(error).at("read the settings", path.display()).map_err(Error::from),
        };
        Self::from_text(&text, &path, home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::units::{age, age_word, size, size_word};

    fn read(text: &str) -> Result<Config, String> {
        Config::from_text(text, Path::new("/c.toml"), Some(Path::new("/home/u"))).map_err(|error| error.to_string())
    }

    #[test]
    fn sizes_are_binary_and_ages_have_a_unit() {
        for (text, want) in [
            ("0", Some(0)),
            ("500", Some(500)),
            ("1K", Some(1024)),
            ("50M", Some(50 << 20)),
            ("1.5g", Some(3 << 29)),
            ("20MiB", Some(20 << 20)),
            ("20KiB", Some(20 << 10)),
            ("1.5GiB", Some(3 << 29)),
        ] {
            assert_eq!(size(text).ok(), want, "{text}");
        }
        for text in
            ["", "K", "-1", "+1", "1.5", "1T", "5 M", "1e3", "99999999999G", "1.1234567M", "1.M.M", "5iB", "5TiB", "5MB", "MiB"]
        {
            assert!(size(text).is_err(), "{text}");
        }
        for (text, want) in [("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000), ("8w", 4_838_400), ("0d", 0)] {
            assert_eq!(age(text), Ok(want), "{text}");
        }
        for text in ["90s", "15m", "25h", "30d", "56d", "0d"] {
            assert_eq!(age_word(age(text).unwrap()), text);
        }
        for text in ["0", "500", "1K", "1025", "1536K", "50M", "2049M", "3G"] {
            assert_eq!(size_word(size(text).unwrap()), text);
        }
        for text in ["", "d", "30", "-1d", "+1d", "1y", "1 d", "99999999999999999999s", "9999999999999999w", "1ä"] {
            assert!(age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn without_a_file_the_defaults_hold() {
        let config = Config::defaults(None, None);
        assert_eq!((config.max_files.value, config.max_size.value, config.warn_size.value), (100, 50 << 20, 5 << 30));
        assert_eq!((config.on_limit.value, config.color.value), (OnLimit::Full, Color::Auto));
        assert!(!config.found && config.max_files.from == From::Default);
    }

    #[test]
    fn a_missing_file_no_file_and_an_empty_one_leave_the_same_in_force() {
        for home in [None, Some(Path::new("/home/u"))] {
            let empty = Config::from_text("", Path::new("/none/c.toml"), home).unwrap();
            assert_eq!(empty.minor.value.iter().any(|glob| glob == "/home/u/.cache"), home.is_some(), "{:?}", empty.minor);
            let missing = Config::read(Some("/none/c.toml".into()), home).unwrap();
            assert_eq!(missing, Config { found: false, ..empty.clone() });
            assert_eq!(Config::read(None, home).unwrap(), Config { found: false, file: None, ..empty });
        }
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
            read("[remote]\nssh = 'ssh -F /etc/x'\n[remotes.web]\nsudo = true\n[remotes.'a.b']\nstore = '/s'\n").unwrap();
        assert_eq!((config.ssh.value.len(), config.timeout.value), (3, Some(60)));
        assert_eq!(read("[remote]\ntimeout = '0s'\n").unwrap().timeout, Set { value: None, from: From::File });
        assert_eq!(read("[remote]\ntimeout = '2m'\n").unwrap().timeout.value, Some(120));
        let web = Remote { sudo: true, ..Remote::default() };
        assert_eq!(config.remotes["web"], web);
        assert_eq!(config.remotes["a.b"].store.as_deref(), Some("/s"));
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
            ("[remotes.'a.b']\nstroe = 'x'", "remotes.NAME.stroe", "remotes.NAME.store"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(&format!("{key:?}")) && error.contains(&format!("{near:?}")), "{text}: {error}");
        }
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_told_by_line_key_and_what_is_wanted_in_words_for_people() {
        for (text, why) in [
            ("[checkpoint]\nmax_files = 'x'", "line 2: checkpoint.max_files: a whole number is wanted, not 'x'"),
            ("[checkpoint]\nmax_files = -1", "line 2: checkpoint.max_files: a whole number is wanted, not -1"),
            ("[snapshot]\nkeep = 1.5", "line 2: snapshot.keep: a whole number is wanted, not 1.5"),
            ("\nretention.keep = 'x'", "line 2: retention.keep: a whole number is wanted, not 'x'"),
            ("[remotes.web]\nsudo = 'yes'", "line 2: remotes.web.sudo: true or false is wanted, not 'yes'"),
            ("[remotes]\nweb = 3", "line 2: remotes.web: a table is wanted, not 3"),
            ("store = 3", "line 1: store: a table is wanted, not 3"),
            ("pager = 3", "line 1: pager: text in quotes is wanted, not 3"),
            ("[store]\npath = 3", "line 2: store.path: a path in quotes is wanted, not 3"),
            ("[capture]\nalso = '/srv'", "line 2: capture.also: a list, as in ['a', 'b'], is wanted, not '/srv'"),
            ("[capture]\nalso = ['/srv',\n 7]", "line 3: capture.also: a path in quotes is wanted, not 7"),
            ("[checkpoint]\nmax_size = true", "line 2: checkpoint.max_size: a size, as in '50M' or 4096, is wanted, not true"),
            ("[remote]\nssh = 7", "line 2: remote.ssh: a command, as in 'ssh -v' or ['ssh', '-v'], is wanted, not 7"),
            ("[checkpoint]\n\non_limit = 'some'", "line 3: checkpoint.on_limit: 'full' or 'partial' is wanted, not 'some'"),
            ("color = 3", "line 1: color: text in quotes is wanted, not 3"),
            ("[checkpoint]\nmax_files = [\n1]", "line 2: checkpoint.max_files: a whole number is wanted, not ["),
        ] {
            assert_eq!(read(text).unwrap_err(), format!("/c.toml: {why}"), "{text}");
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
            ("[remotes]\nweb = 3", "line 2"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("/c.toml: ") && error.contains(part), "{text}: {error}");
        }
    }
}
