//! The table of settings: a row is all that there is of one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::choice::{AgentCommit, Color, OnLimit};
use super::file::File;
use super::glob;
use super::kind::{
    Age, Allowed, Command, Flag, Globs, Hosts, Kind, Location, Locations, Maybe, Number, Silence, Size, Text, Texts, Word,
};
use super::row::Row;
use super::value::{From, Set, Setting};
use super::{caches, secrets};
use crate::error::{At, Error};

/// `output.paths` if the file does not set it.
pub const OUTPUT_PATHS: usize = 20;

/// Makes the types and [`ROWS`] of rows: `/// meaning`, `"key" field: kind = default like "example" shown "words for the default"`.
macro_rules! settings {
    (
        |$home:ident|
        $(
            #[doc = $doc:literal]
            $key:literal $field:ident: $kind:ty = $default:expr, like $example:literal $(shown $shown:literal)?;
        )*
        $(
            named
            #[doc = $of:literal]
            $table:literal $tables:ident: $named:ident {
                $(
                    #[doc = $below_doc:literal]
                    $below:literal $below_field:ident: $below_kind:ty, like $below_example:literal shown $below_shown:literal;
                )*
            }
        )*
    ) => {
        /// The settings in force.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Settings {
            /// The file that they were read from, or would be; `None` if no home directory is known.
            pub file: Option<PathBuf>,
            /// True if that file exists.
            pub found: bool,
            $(#[doc = concat!("`", $key, "`:", $doc, ".")] pub $field: Set<<$kind as Kind>::Value>,)*
            $(#[doc = $of] pub $tables: BTreeMap<String, $named>,)*
        }

        $(
            #[doc = $of]
            #[derive(Debug, Clone, PartialEq, Eq, Default)]
            pub struct $named {
                $(#[doc = $below_doc] pub $below_field: Option<<$below_kind as Kind>::Value>,)*
            }
        )*

        /// All settings.
        pub const ROWS: &[Row] = &[
            $(Row::new($key, $example, $doc, [$($shown)?].as_slice()),)*
            $($(Row::new(concat!($table, ".NAME.", $below), $below_example, $below_doc, &[$below_shown]),)*)*
        ];

        impl Settings {
            fn of(path: &Path, file: &File<'_>, $home: Option<&Path>) -> Result<Self, Error> {
                Ok(Self {
                    file: Some(path.to_path_buf()),
                    found: true,
                    $($field: Set::of(file.get::<$kind>($key)?, $default),)*
                    $($tables: {
                        let mut tables = BTreeMap::new();
                        for (name, table) in file.tables($table) {
                            let key = |below: &str| format!("{}.{name}.{below}", $table);
                            let one = $named {
                                $($below_field: file.get_in::<$below_kind>(table, $below, &key($below))?,)*
                            };
                            tables.insert(name.to_owned(), one);
                        }
                        tables
                    },)*
                })
            }

            /// All settings with their values; of agents and machines those of the file.
            pub fn list(&self) -> Vec<Setting> {
                let mut all = vec![
                    $(Setting { key: $key.into(), value: <$kind>::list(&self.$field.value), from: self.$field.from },)*
                ];
                $(for (name, table) in &self.$tables {
                    let set = [$(($below, table.$below_field.as_ref().map(<$below_kind>::list)),)*];
                    all.extend(set.into_iter().filter_map(|(below, value)| {
                        Some(Setting { key: format!("{}.{name}.{below}", $table).into(), value: value?, from: From::File })
                    }));
                })*
                all
            }
        }
    };
}

settings! { |home|
    /// the store; `--store` and `$RECANT_STORE` override it
    "store.path" store_path: Maybe<Location> = None, like "'/srv/recant'" shown "`~/.local/share/recant`";
    /// `status` warns when the store is larger
    "store.warn_size" warn_size: Size = 5 << 30, like "'5G'";
    /// more directories and mounted files that `run` holds
    "capture.also" also: Locations = Vec::new(), like "['/srv/www']";
    /// paths that stay real in a run
    "capture.pass" pass: Locations = Vec::new(), like "['~/.cache']";
    /// paths that a run cannot see
    "capture.hide" hide: Locations = Vec::new(), like "['~/.ssh']";
    /// download caches that `run --in` may write to
    "capture.caches" caches: Locations = caches::usual(home), like "['~/.cache']" shown "those of npm, cargo, go, mvn, gradle, `~/.cache`";
    /// `run` saves the originals of up to 500 changed files
    "capture.keep_before" keep_before: Flag = true, like "true";
    /// a run can rename directories and `git clone` (seccomp)
    "capture.listen" listen: Flag = true, like "true";
    /// a deleted directory with more files counts as large
    "checkpoint.max_files" max_files: Number<u64> = 100, like "100";
    /// a deleted directory with more bytes counts as large
    "checkpoint.max_size" max_size: Size = 50 << 20, like "'50M'";
    /// kept of a large directory: all (`full`), names (`partial`)
    "checkpoint.on_limit" on_limit: Word<OnLimit> = OnLimit::default(), like "'full'";
    /// paths never committed; globs as in `.gitignore`
    "commit.deny" deny: Globs = Vec::new(), like "['*.key', '/etc/']";
    /// paths that are left out if they conflict; globs
    "commit.minor" minor: Globs = glob::minor(home), like "['~/.cache']" shown "caches, histories, `/tmp`, `/var/tmp`";
    /// `allow`: agents may commit and roll back
    "agent.commit" agent_commit: Word<AgentCommit> = AgentCommit::default(), like "'allow'";
    /// paths that `agent run` cannot read
    "agent.closed" closed: Locations = secrets::usual(home), like "['~/.ssh']" shown "[secrets](#closed)";
    /// a closed run can use the ssh agent's socket
    "agent.ssh_agent" ssh_agent: Flag = true, like "true";
    /// the command to run when a session waits for you
    "agent.notify" notify: Maybe<Command> = None, like "'notify-send'";
    /// hosts that `agent run` may reach besides its model's
    "agent.network" agent_network: Maybe<Hosts> = None, like "['registries']" shown "all";
    /// how many turns of a directory can be undone
    "agent.keep" agent_keep: Number<usize> = 200, like "200";
    /// ignored files that turns do not cover; globs
    "agent.byproducts" agent_byproducts: Texts = BYPRODUCTS.map(str::to_owned).into(), like "['*.o']";
    /// paths that agents may commit without you; globs
    "agent.policy.commit" policy_commit: Allowed = Vec::new(), like "['docs/**']";
    /// how many such paths, until you act in the project
    "agent.policy.max_files" policy_max_files: Number<u64> = 50, like "50";
    /// newest sessions that a plain `prune` keeps
    "retention.keep" keep: Maybe<Number<usize>> = None, like "50";
    /// age above which a plain `prune` deletes sessions
    "retention.older_than" older_than: Maybe<Age> = None, like "'30d'";
    /// how long a discarded session can be brought back
    "retention.discarded" discarded: Age = 7 * 86_400, like "'3d'";
    /// snapshots kept of a directory, also of `run --in`
    "snapshot.keep" snapshot_keep: Number<usize> = 50, like "50";
    /// bytes that they may take; the oldest are pruned
    "snapshot.max_size" snapshot_max_size: Size = 5 << 30, like "'5G'";
    /// files above which a snapshot needs `--all`
    "snapshot.max_files" snapshot_max_files: Number<u64> = 50_000, like "50000";
    /// steps of a session that you can go back to
    "steps.keep" steps_keep: Number<usize> = 200, like "200";
    /// bytes that they may hold; older ones are merged
    "steps.max_size" steps_max_size: Size = 2 << 30, like "'2G'";
    /// the program for `-H`, and its first arguments
    "remote.ssh" ssh: Command = vec!["ssh".into()], like "'ssh -F ~/.ssh/other'";
    /// how long the other machine may be silent; `0s`: no limit
    "remote.timeout" timeout: Silence = Some(60), like "'1m'";
    /// most lines of a listing; `-v` lists everything
    "output.paths" output_paths: Number<usize> = OUTPUT_PATHS, like "20";
    /// the pager for diffs
    "diff.pager" diff_pager: Maybe<Text> = None, like "'delta'" shown "as `pager`";
    /// the program of `diff --tool`
    "diff.tool" diff_tool: Maybe<Text> = None, like "'meld'";
    /// `auto`, `always`, `never`
    "color" color: Word<Color> = Color::default(), like "'auto'";
    /// a shell command; `''` for none
    "pager" pager: Maybe<Text> = None, like "'less'" shown "`$PAGER`, else `less`";

    named
    /// An agent. What the file leaves out is recant's own list for it.
    "agent" agents: OfAgent {
        /// paths that `agent run` leaves real
        "pass" pass: Locations, like "['~/.cache']" shown "[built in](../agents.md#held)";
        /// globs of files that it commits separately, when the agent has ended
        "records" records: Globs, like "['~/sessions']" shown "[built in](../agents.md#held)";
    }

    named
    /// Another machine: `recant -H NAME ...`.
    "remotes" remotes: Remote {
        /// the store there
        "store" store: Text, like "'/srv/recant'" shown "the far side's";
        /// run recant with `sudo -n` there
        "sudo" sudo: Flag, like "true" shown "`false`";
    }
}

/// Files that compilers and editors put beside sources.
const BYPRODUCTS: [&str; 6] = ["*.o", "*.a", "*.so", "*.class", "*.pyc", "*.swp"];

impl Settings {
    /// The pager of differences, if one is set.
    pub fn pager_of_diff(&self) -> Option<&str> {
        self.diff_pager.value.as_deref().or(self.pager.value.as_deref())
    }

    /// The settings without a file, which are those of an empty file. `home` replaces `~/` in the defaults.
    pub fn defaults(file: Option<PathBuf>, home: Option<&Path>) -> Self {
        let name = file.as_deref().unwrap_or(Path::new("config.toml")).to_path_buf();
        // An empty text has no key that could be wrong: `tests::without_a_file_the_defaults_hold`.
        let none = Self::from_text("", &name, home, &|_| false).expect("an empty file has nothing wrong in it");
        Self { file, found: false, ..none }
    }

    /// Reads `file`; a missing one counts as empty. `home` replaces `~/` in a path. `is_agent`: true for the word of an agent.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, has an unknown key, or a value of another type.
    pub fn read(file: Option<PathBuf>, home: Option<&Path>, is_agent: &dyn Fn(&str) -> bool) -> Result<Self, Error> {
        let Some(path) = file else { return Ok(Self::defaults(None, home)) };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::defaults(Some(path), home)),
            Err(error) => return Err(error).at("read the settings", path.display()).map_err(Error::from),
        };
        Self::from_text(&text, &path, home, is_agent)
    }

    pub(super) fn from_text(
        text: &str,
        path: &Path,
        home: Option<&Path>,
        is_agent: &dyn Fn(&str) -> bool,
    ) -> Result<Self, Error> {
        Self::of(path, &File::parse(path, text, home, ROWS, is_agent)?, home)
    }
}
