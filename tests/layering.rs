//! Rooms look down only: what docs/ARCHITECTURE.md says of who may use whom is checked line by line, with two more rules
//! that the compiler does not know: what changes files stands in `fs`, and what is unsafe in `fs` and `capture`.

use std::path::{Path, PathBuf};

/// Which rooms a room may use beside itself, `config` and `error`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("fs", &[]),
    ("tree", &["fs"]),
    ("session", &["tree", "fs"]),
    ("checkpoint", &["session", "tree", "fs"]),
    ("capture", &["session", "tree", "fs"]),
    ("engine", &["checkpoint", "session", "tree", "fs"]),
    ("commit", &["engine", "checkpoint", "session", "tree", "fs"]),
    ("rollback", &["engine", "checkpoint", "session", "tree", "fs"]),
    ("moving", &["engine", "checkpoint", "session", "tree", "fs"]),
    ("snapshot", &["engine", "checkpoint", "session", "tree", "fs"]),
    ("remote", &["session"]),
    ("cli", &["remote", "snapshot", "moving", "capture", "rollback", "commit", "engine", "checkpoint", "session", "tree", "fs"]),
    ("config", &[]),
    ("error", &[]),
];

/// Rooms that everything may use.
const LEAVES: &[&str] = &["config", "error"];

/// What changes files, as it would stand in a call.
const CHANGES: &[(&str, &[&str])] = &[
    (
        "std::fs::",
        &[
            "write",
            "rename",
            "remove_file",
            "remove_dir",
            "remove_dir_all",
            "create_dir",
            "create_dir_all",
            "copy",
            "hard_link",
            "soft_link",
            "set_permissions",
            "set_times",
            "File::create",
            "File::create_new",
            "File::options",
            "OpenOptions",
            "DirBuilder",
        ],
    ),
    ("std::os::unix::fs::", &["symlink", "chown", "lchown", "fchown", "mkfifo"]),
    (
        "rustix::fs::",
        &[
            "rename",
            "renameat",
            "renameat_with",
            "unlink",
            "unlinkat",
            "rmdir",
            "mkdir",
            "mkdirat",
            "mknodat",
            "mkfifoat",
            "link",
            "linkat",
            "symlink",
            "symlinkat",
            "chmod",
            "chmodat",
            "fchmod",
            "chown",
            "chownat",
            "fchown",
            "utimensat",
            "futimens",
            "setxattr",
            "lsetxattr",
            "fsetxattr",
            "removexattr",
            "lremovexattr",
            "fremovexattr",
            "ftruncate",
            "fallocate",
            "copy_file_range",
            "ioctl_ficlone",
            "sendfile",
            "fsync",
            "fdatasync",
            "syncfs",
            "sync",
        ],
    ),
];

/// Files outside `fs` that change something all the same, and why that is right.
const EXCUSED: &[(&str, &str)] = &[
    // Folders, links and mount points in a tmpfs of the run's own, which nobody else sees and which ends with the run: there is
    // nothing that a crash could leave half done.
    ("src/capture/space.rs", "makes the inside of a mount namespace"),
];

struct Source {
    file: String,
    room: String,
    text: String,
}

/// Every file below `src`, without what is compiled for tests alone, and without comments.
fn sources() -> Vec<Source> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut todo = vec![top.join("src")];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("a name in it").path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(source(top, &path));
            }
        }
    }
    assert!(found.len() > 20, "only {} files below src", found.len());
    found.sort_by(|a, b| a.file.cmp(&b.file));
    found
}

fn source(top: &Path, path: &PathBuf) -> Source {
    let below = path.strip_prefix(top).expect("a path below the package").to_str().expect("an ASCII name");
    let room = below.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default().to_owned();
    let text = std::fs::read_to_string(path).expect("a readable source");
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines: Vec<&str> = code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    Source { file: below.to_owned(), room, text: lines.join("\n") }
}

fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

fn may_use(room: &str) -> &'static [&'static str] {
    let known = MAY_USE.iter().find(|(name, _)| *name == room);
    known.unwrap_or_else(|| panic!("{room} is no room that this test knows")).1
}

#[test]
fn rooms_look_down_only() {
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| !["lib", "main"].contains(&&*source.room)) {
        for (n, line) in source.text.lines().enumerate() {
            for to in line.split("crate::").skip(1).map(first_word) {
                let room = &*source.room;
                if to.is_empty() {
                    broken.push(format!("{}:{}: names more than one room, or all, in one `use`", source.file, n + 1));
                } else if to != room && !LEAVES.contains(&to) && !may_use(room).contains(&to) {
                    broken.push(format!("{}:{}: {room} uses `{to}`", source.file, n + 1));
                }
            }
            // `super::super::…` would leave a room unseen by the line above.
            let depth = source.file.matches('/').count() - 1;
            if line.contains("super::super") && depth < 2 || line.contains("pub use crate::") {
                broken.push(format!("{}:{}: reaches out of its room: {}", source.file, n + 1, line.trim()));
            }
        }
    }
    assert!(broken.is_empty(), "rooms look down only:\n{}", broken.join("\n"));
}

#[test]
fn no_two_rooms_use_each_other() {
    for (room, uses) in MAY_USE {
        for used in *uses {
            assert!(!may_use(used).contains(room), "{room} and {used} may use each other");
        }
    }
}

/// The names that stand right behind a path: one, or those in braces; with and without what a type is followed by.
fn imported(rest: &str) -> impl Iterator<Item = &str> {
    let list = rest.strip_prefix('{').map_or(rest, |list| list.split('}').next().unwrap_or_default());
    let braces = rest.starts_with('{');
    list.split(',').take(if braces { usize::MAX } else { 1 }).flat_map(|item| {
        let item = item.trim();
        let end = item.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(item.len());
        [&item[..end], first_word(item)]
    })
}

#[test]
fn what_changes_files_stands_in_fs_alone() {
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| source.room != "fs") {
        if EXCUSED.iter().any(|(file, _)| *file == source.file) {
            continue;
        }
        for (n, line) in source.text.lines().enumerate() {
            for (prefix, calls) in CHANGES {
                for rest in line.split(prefix).skip(1) {
                    // `use std::fs::*` would hide what is called later.
                    if rest.starts_with('*') || imported(rest).any(|name| calls.contains(&name)) {
                        broken.push(format!("{}:{}: {}", source.file, n + 1, line.trim()));
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "only src/fs changes files:\n{}", broken.join("\n"));
}

#[test]
fn what_is_unsafe_stands_in_fs_and_capture() {
    let elsewhere: Vec<String> = sources()
        .iter()
        .filter(|source| !["fs", "capture"].contains(&&*source.room))
        .filter(|source| source.text.contains("unsafe {") || source.text.contains("unsafe fn"))
        .map(|source| source.file.clone())
        .collect();
    assert!(elsewhere.is_empty(), "unsafe code in {}", elsewhere.join(", "));
}
