//! The changes that a person should see before all others: what gives rights, and what other programs run or obey without being asked.
//! By path, states and the caller's PATH alone, so that a new name for an old trick is a row here.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display};
use std::sync::LazyLock;

use serde::{Serialize, Serializer};

use super::state::{Likeness, Object, State, What};
use crate::fs::AbsPath;

/// The reason why a change is one of them. What gives rights comes before all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Danger {
    GivesRights(&'static str),
    /// Other programs run or obey it.
    Obeyed(&'static str),
}

impl Danger {
    pub fn why(self) -> &'static str {
        let (Self::GivesRights(why) | Self::Obeyed(why)) = self;
        why
    }

    /// The place in a list of a change with this danger, or with none: the lower comes first.
    pub fn place(danger: Option<Self>) -> u8 {
        match danger {
            Some(Self::GivesRights(_)) => 0,
            Some(Self::Obeyed(_)) => 1,
            None => 2,
        }
    }
}

impl Display for Danger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

impl Serialize for Danger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.why())
    }
}

/// Says why a change is one of them, from one object to another; `None` if it is not. What goes is none.
pub fn danger(path: &AbsPath, from: &Object, to: &Object) -> Option<Danger> {
    let to = to.as_ref()?;
    let same = from.as_ref().is_some_and(|from| from.content_likeness(to) == Likeness::Same);
    let node = Some("a device node").filter(|_| matches!(to.what, What::Char(_) | What::Block(_)));
    let rights = node.or_else(|| rights(from.as_ref(), to, same));
    rights.map(Danger::GivesRights).or_else(|| obeyed(path, to).filter(|_| !same || is_new_program(from, to)).map(Danger::Obeyed))
}

fn rights(from: Option<&State>, to: &State, same: bool) -> Option<&'static str> {
    const SET_USER_ID: u32 = 0o4000;
    const SET_GROUP_ID: u32 = 0o2000;
    let gains = |bit: u32| to.meta.mode & bit != 0 && !(same && from.is_some_and(|from| from.meta.mode & bit != 0));
    let capabilities = |state: &State| state.meta.xattrs.iter().any(|(name, _)| &**name == b"security.capability");
    match () {
        () if !to.is_file() => None,
        () if gains(SET_USER_ID) => Some("set-user-id"),
        () if gains(SET_GROUP_ID) => Some("set-group-id"),
        () if capabilities(to) && !(same && from.is_some_and(capabilities)) => Some("it has capabilities"),
        () => None,
    }
}

fn is_executable(state: &State) -> bool {
    state.is_file() && state.meta.mode & 0o111 != 0
}

fn is_new_program(from: &Object, to: &State) -> bool {
    is_executable(to) && !from.as_ref().is_some_and(is_executable)
}

/// Directories of PATH, as most machines have it, by their end.
const PROGRAMS: [&str; 8] =
    ["/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin", ".local/bin", ".cargo/bin"];

/// Those of the caller's own PATH.
static CALLERS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .filter(|directory| directory.starts_with('/'))
        .map(|directory| directory.trim_end_matches('/').into())
        .collect()
});

/// Files by how their paths end, and who runs or obeys them: git-config(5), githooks(5), bash(1), zsh(1), crontab(5), systemd.unit(5), and
/// the documentation of the others.
const FILES: &[(&str, &str)] = &[
    ("recant/config.toml", "recant obeys it"),
    (".recantignore", "recant obeys it"),
    (".codex/config.toml", "an agent obeys it"),
    (".codex/hooks.json", "an agent obeys it"),
    (".gemini/settings.json", "an agent obeys it"),
    (".copilot/config.json", "an agent obeys it"),
    (".copilot/mcp-config.json", "an agent starts its servers"),
    ("CLAUDE.md", "agents obey it"),
    ("CLAUDE.local.md", "agents obey it"),
    ("AGENTS.md", "agents obey it"),
    ("AGENTS.override.md", "agents obey it"),
    ("GEMINI.md", "agents obey it"),
    ("copilot-instructions.md", "agents obey it"),
    (".git/config", "git obeys it"),
    (".git/config.worktree", "git obeys it"),
    (".git/info/attributes", "git obeys it"),
    ("git/config", "git obeys it"),
    (".gitmodules", "git obeys it"),
    (".gitconfig", "git obeys it"),
    (".git", "git obeys it"),
    (".git/hooks", "git runs what is there"),
    (".bashrc", "shells run it"),
    (".bash_profile", "shells run it"),
    (".bash_login", "shells run it"),
    (".bash_logout", "shells run it"),
    (".bash_aliases", "shells run it"),
    (".xprofile", "the desktop runs it"),
    (".xinitrc", "the desktop runs it"),
    (".pam_environment", "a login obeys it"),
    (".profile", "shells run it"),
    (".zshrc", "shells run it"),
    (".zshenv", "shells run it"),
    (".zprofile", "shells run it"),
    (".zlogin", "shells run it"),
    ("fish/config.fish", "shells run it"),
    ("/etc/profile", "shells run it"),
    ("/etc/bash.bashrc", "shells run it"),
    ("usercustomize.py", "python runs it"),
    ("sitecustomize.py", "python runs it"),
    (".cargo/config.toml", "cargo obeys it"),
    (".vimrc", "the editor runs it"),
    (".tmux.conf", "tmux runs it"),
    ("/etc/crontab", "cron runs it"),
    ("/etc/passwd", "it gives rights"),
    ("/etc/shadow", "it gives rights"),
    ("/etc/group", "it gives rights"),
    ("/etc/gshadow", "it gives rights"),
    ("/etc/doas.conf", "it gives rights"),
    ("/etc/environment", "a login obeys it"),
    ("/etc/rc.local", "the system runs it"),
    ("/etc/gitconfig", "git obeys it"),
    ("/etc/nsswitch.conf", "every program obeys it"),
    ("/etc/ld.so.preload", "every program loads it"),
    ("/etc/sudoers", "it gives rights"),
    (".ssh/authorized_keys", "it lets people in"),
    (".ssh/authorized_keys2", "it lets people in"),
    (".ssh/environment", "ssh obeys it"),
    (".ssh/config", "ssh obeys it"),
    (".ssh/rc", "ssh runs it"),
];

/// Files likewise that programs obey in the project that they work in. A package below node_modules is none.
const PROJECT_FILES: &[(&str, &str)] = &[
    (".claude/settings.json", "an agent obeys it"),
    (".claude/settings.local.json", "an agent obeys it"),
    ("opencode.json", "an agent obeys it"),
    (".mcp.json", "an agent starts its servers"),
    (".cursor/mcp.json", "an agent starts its servers"),
    (".envrc", "shells run it"),
    (".gitlab-ci.yml", "CI runs it"),
    (".travis.yml", "CI runs it"),
    (".circleci/config.yml", "CI runs it"),
    ("azure-pipelines.yml", "CI runs it"),
    ("Jenkinsfile", "CI runs it"),
    ("package.json", "npm runs its scripts"),
    (".npmrc", "npm obeys it"),
    (".yarnrc.yml", "yarn obeys it"),
    (".mise.toml", "shells obey it"),
    ("lefthook.yml", "git runs it"),
    (".drone.yml", "CI runs it"),
    (".exrc", "the editor runs it"),
    (".nvim.lua", "the editor runs it"),
    (".dir-locals.el", "the editor obeys it"),
    (".zed/tasks.json", "the editor runs it"),
    (".vscode/launch.json", "the editor runs it"),
    (".pre-commit-config.yaml", "git runs it"),
    (".vscode/tasks.json", "the editor runs it"),
    (".vscode/settings.json", "the editor obeys it"),
];

/// Directories likewise: what lies in them, at any depth.
const BELOW: &[(&str, &str)] = &[
    (".git/hooks/", "git runs it"),
    ("/etc/profile.d/", "shells run it"),
    ("fish/conf.d/", "shells run it"),
    ("/etc/cron.", "cron runs it"),
    ("/var/spool/cron/", "cron runs it"),
    ("/etc/systemd/", "systemd runs it"),
    ("/usr/lib/systemd/", "systemd runs it"),
    ("/etc/init.d/", "the system runs it"),
    ("/etc/pam.d/", "it gives rights"),
    ("/etc/polkit-1/", "it gives rights"),
    ("/etc/ssh/", "ssh obeys it"),
    ("/etc/apt/apt.conf.d/", "apt runs it"),
    ("/etc/logrotate.d/", "cron runs it"),
    ("/etc/NetworkManager/dispatcher.d/", "the system runs it"),
    ("/etc/modprobe.d/", "the kernel obeys it"),
    ("/etc/update-motd.d/", "a login runs it"),
    ("/etc/xdg/autostart/", "the desktop runs it"),
    (".local/share/systemd/", "systemd runs it"),
    (".local/share/bash-completion/", "shells run it"),
    ("/etc/ld.so.conf.d/", "every program obeys it"),
    (".config/environment.d/", "the desktop obeys it"),
    (".config/systemd/", "systemd runs it"),
    ("/etc/sudoers.d/", "it gives rights"),
    ("/etc/udev/rules.d/", "udev runs it"),
    (".config/autostart/", "the desktop runs it"),
];

/// Those of a project.
const PROJECT_BELOW: &[(&str, &str)] = &[
    (".husky/", "git runs it"),
    (".github/workflows/", "CI runs it"),
    (".forgejo/workflows/", "CI runs it"),
    (".gitea/workflows/", "CI runs it"),
    (".github/hooks/", "an agent runs it"),
    (".github/instructions/", "an agent obeys it"),
    (".github/prompts/", "an agent obeys it"),
    (".github/agents/", "an agent obeys it"),
    (".github/skills/", "an agent obeys it"),
    (".agents/skills/", "an agent obeys it"),
    (".claude/hooks/", "an agent runs it"),
    (".claude/plugins/", "an agent runs it"),
    (".claude/commands/", "an agent obeys it"),
    (".claude/agents/", "an agent obeys it"),
    (".claude/skills/", "an agent obeys it"),
    (".claude/rules/", "an agent obeys it"),
    (".codex/prompts/", "an agent obeys it"),
    (".codex/skills/", "an agent obeys it"),
    (".codex/rules/", "an agent obeys it"),
    (".gemini/extensions/", "an agent runs it"),
    (".gemini/commands/", "an agent obeys it"),
    (".gemini/agents/", "an agent obeys it"),
    (".gemini/skills/", "an agent obeys it"),
    (".copilot/hooks/", "an agent runs it"),
    (".copilot/agents/", "an agent obeys it"),
    (".copilot/skills/", "an agent obeys it"),
    (".opencode/plugins/", "an agent runs it"),
    (".opencode/plugin/", "an agent runs it"),
    (".opencode/commands/", "an agent obeys it"),
    (".opencode/command/", "an agent obeys it"),
    (".opencode/agents/", "an agent obeys it"),
    (".opencode/agent/", "an agent obeys it"),
    (".config/opencode/", "an agent obeys it"),
    (".pi/extensions/", "an agent runs it"),
    (".pi/agent/extensions/", "an agent runs it"),
    (".cursor/rules/", "an agent obeys it"),
    (".devcontainer/", "the editor runs it"),
    (".github/actions/", "CI runs it"),
];

/// A row of these tables.
struct Row {
    pattern: &'static str,
    /// True if what lies in the directory is meant.
    below: bool,
    of_project: bool,
    why: &'static str,
    /// Its place in the tables: the first row that fits counts.
    place: usize,
}

/// The rows by the first component of their patterns. That of one with a slash in front, as of every whole path, has no name.
static ROWS: LazyLock<HashMap<&str, Vec<Row>>> = LazyLock::new(|| {
    let tables = [(BELOW, true, false), (PROJECT_BELOW, true, true), (FILES, false, false), (PROJECT_FILES, false, true)];
    let all = tables.into_iter().flat_map(|(table, below, of_project)| table.iter().map(move |row| (row, below, of_project)));
    let mut rows: HashMap<&str, Vec<Row>> = HashMap::new();
    for (place, (&(pattern, why), below, of_project)) in all.enumerate() {
        rows.entry(first(pattern)).or_default().push(Row { pattern, below, of_project, why, place });
    }
    rows
});

fn first(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// The first row that fits a path, whole or from one of its components on.
fn row_of(path: &str) -> Option<&'static Row> {
    let is_of_package = path.contains("/node_modules/");
    let ends = std::iter::once(path).chain(path.match_indices('/').map(|(slash, _)| &path[slash + 1..]));
    let rows = ends.flat_map(|end| {
        let fits = move |row: &&Row| if row.below { end.starts_with(row.pattern) } else { end == row.pattern };
        ROWS.get(first(end)).into_iter().flatten().filter(fits)
    });
    rows.filter(|row| !(row.of_project && is_of_package)).min_by_key(|row| row.place)
}

fn obeyed(path: &AbsPath, to: &State) -> Option<&'static str> {
    if to.is_dir() {
        return None;
    }
    let text = String::from_utf8_lossy(path.as_bytes());
    // Of a submodule, or of a working tree beside the repository.
    if let Some((_, part)) = ["/.git/modules/", "/.git/worktrees/"].iter().find_map(|above| text.split_once(above)) {
        let hook = part.contains("/hooks/") && !part.ends_with(".sample");
        let config = part.ends_with("/config") || part.ends_with("/config.worktree");
        return if hook { Some("git runs it") } else { Some("git obeys it").filter(|_| config) };
    }
    if let Some(row) = row_of(&text) {
        return Some(row.why).filter(|_| !(row.below && text.ends_with(".sample")));
    }
    let is_program = is_executable(to) || matches!(to.what, What::Symlink { .. });
    let in_path = || text.rsplit_once('/').is_some_and(|(directory, _)| is_in_path(directory));
    (is_program && in_path()).then_some("a program in PATH")
}

/// True if shells look for programs in a directory.
fn is_in_path(directory: &str) -> bool {
    let is_it = |end: &&str| {
        directory.strip_suffix(*end).is_some_and(|above| above.is_empty() || !end.starts_with('/') && above.ends_with('/'))
    };
    PROGRAMS.iter().any(is_it) || CALLERS.contains(directory)
}

#[cfg(test)]
mod tests {
    use super::super::state::Meta;
    use super::*;

    #[test]
    fn what_gives_rights_or_is_run_by_others_is_told_and_all_else_is_not() {
        let file = |mode: u32, size: u64| {
            let meta = Meta { mode, uid: 0, gid: 0, mtime: crate::fs::Time::default(), xattrs: Box::default() };
            Some(State { what: What::File { size, hash: None, index: None }, meta })
        };
        let of = |path: &str, from: Object, to: Object| danger(&AbsPath::parse(path).unwrap(), &from, &to);
        for (path, from, to, why) in [
            ("/p/tool", file(0o755, 1), file(0o4755, 1), Some("set-user-id")),
            ("/p/tool", None, file(0o2755, 1), Some("set-group-id")),
            ("/p/tool", file(0o4755, 1), file(0o4755, 2), Some("set-user-id")),
            ("/p/tool", file(0o4755, 1), None, None),
            ("/p/.git/hooks/pre-commit", None, file(0o755, 1), Some("git runs it")),
            ("/p/.git/hooks/pre-commit.sample", None, file(0o755, 1), None),
            ("/p/.git/config", file(0o644, 1), file(0o644, 2), Some("git obeys it")),
            ("/p/x.git/config", file(0o644, 1), file(0o644, 2), None),
            ("/h/.config/git/config", file(0o644, 1), file(0o644, 2), Some("git obeys it")),
            ("/p/.git/modules/a/b/config", None, file(0o644, 2), Some("git obeys it")),
            ("/p/.git/modules/a/hooks/post-merge", None, file(0o755, 2), Some("git runs it")),
            ("/p/.git/modules/a/objects/12/34", None, file(0o444, 2), None),
            ("/p/.mcp.json", None, file(0o644, 2), Some("an agent starts its servers")),
            ("/h/.config/recant/config.toml", None, file(0o644, 2), Some("recant obeys it")),
            ("/p/package.json", file(0o644, 1), file(0o644, 2), Some("npm runs its scripts")),
            ("/p/my-package.json", file(0o644, 1), file(0o644, 2), None),
            ("/p/node_modules/a/package.json", None, file(0o644, 2), None),
            ("/p/node_modules/a/.github/workflows/ci.yml", None, file(0o644, 2), None),
            ("/p/node_modules/a/.git/hooks/post-merge", None, file(0o755, 2), Some("git runs it")),
            ("/p/node_modules/a/tool", None, file(0o4755, 2), Some("set-user-id")),
            ("/etc/cron.d/x", None, file(0o644, 2), Some("cron runs it")),
            ("/p/etc/cron.d/x", None, file(0o644, 2), None),
            ("/usr/local/bin/x", None, file(0o755, 2), Some("a program in PATH")),
            ("/home/a/.local/bin/x", None, file(0o755, 2), Some("a program in PATH")),
            ("/usr/local/bin/x", None, file(0o644, 2), None),
            ("/usr/local/bin/x", file(0o755, 1), file(0o755, 2), Some("a program in PATH")),
            ("/p/docs/AGENTS.md", None, file(0o644, 2), Some("agents obey it")),
            ("/p/docs/agents.md", None, file(0o644, 2), None),
            ("/h/.claude/commands/x.md", None, file(0o644, 2), Some("an agent obeys it")),
            ("/h/.claude/projects/x.jsonl", None, file(0o644, 2), None),
            ("/h/.config/opencode/plugins/x.js", None, file(0o644, 2), Some("an agent obeys it")),
            ("/p/dir", None, file(0o644, 2), None),
            ("/p/bin/x", None, file(0o755, 2), None),
            ("/p/a", None, file(0o644, 2), None),
        ] {
            assert_eq!(of(path, from, to).map(Danger::why), why, "{path}");
        }
    }
}
