//! Rooms look down only: what docs/ARCHITECTURE.md says of who may use whom is checked line by line, with two more rules
//! that the compiler does not know: what changes files stands in `fs`, and what is unsafe in `fs` and `capture`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which rooms a room may use beside itself, `config`, `error` and `remedy`.
const MAY_USE: &[(&str, &str)] = &[
    ("fs", ""),
    ("blocks", ""),
    ("tree", "fs"),
    ("session", "tree fs"),
    ("checkpoint", "session tree fs"),
    ("capture", "session tree fs"),
    ("engine", "checkpoint session tree fs"),
    ("commit", "engine checkpoint session tree fs"),
    ("rollback", "engine checkpoint session tree fs"),
    ("moving", "engine checkpoint session tree fs"),
    ("snapshot", "engine checkpoint session tree fs"),
    ("agent", "snapshot diff checkpoint session tree blocks fs"),
    ("remote", "session"),
    ("mcp", ""),
    ("diff", "checkpoint session tree blocks fs"),
    ("review", "diff session tree blocks fs"),
    ("verb", "agent snapshot diff capture rollback commit engine checkpoint session tree blocks fs"),
    ("face", "verb agent remote snapshot diff capture engine checkpoint session tree blocks fs"),
    (
        "cli",
        "face verb review agent remote mcp diff snapshot moving capture rollback commit engine checkpoint session tree blocks fs",
    ),
    ("api", "snapshot diff capture rollback commit engine checkpoint session tree blocks fs"),
    ("config", ""),
    ("error", ""),
    ("remedy", ""),
];

/// Rooms that everything may use.
const LEAVES: &[&str] = &["config", "error", "remedy"];

/// What changes files, as it would stand in a call.
const CHANGES: &[(&str, &str)] = &[
    (
        "std::fs::",
        "write rename remove_file remove_dir remove_dir_all create_dir create_dir_all copy hard_link soft_link set_permissions set_times \
         File::create File::create_new File::options OpenOptions DirBuilder",
    ),
    ("std::os::unix::fs::", "symlink chown lchown fchown mkfifo"),
    (
        "rustix::fs::",
        "rename renameat renameat_with unlink unlinkat rmdir mkdir mkdirat mknodat mkfifoat link linkat symlink symlinkat chmod chmodat \
         fchmod chown chownat fchown utimensat futimens setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr ftruncate \
         fallocate copy_file_range ioctl_ficlone sendfile fsync fdatasync syncfs sync",
    ),
];

/// Files outside `fs` that change something all the same, and why that is right.
const EXCUSED: &[(&str, &str)] = &[
    // Directories, links and mount points in a tmpfs of the run's own, which nobody else sees and which ends with the run: there is
    // nothing that a crash could leave half done.
    ("src/capture/space/mounting.rs", "makes mount points in the run's own /dev"),
    ("src/capture/space/cover.rs", "makes the names of a tmpfs over /run"),
    ("src/capture/space/devices.rs", "makes the inside of the run's own /dev"),
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
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory of sources") {
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
    let code = without_tests(&text);
    let lines: Vec<&str> = code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    Source { file: below.to_owned(), room, text: lines.join("\n") }
}

/// Up to the module of tests, whatever is said of it between.
fn without_tests(text: &str) -> &str {
    let is_of_module =
        |after: &str| after.lines().find(|line| !line.starts_with("#[")).is_some_and(|line| line.starts_with("mod "));
    let mut marks = text.match_indices("#[cfg(test)]\n");
    marks.find(|(at, mark)| is_of_module(&text[at + mark.len()..])).map_or(text, |(at, _)| &text[..at])
}

fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

fn may_use(room: &str) -> Vec<&'static str> {
    let known = MAY_USE.iter().find(|(name, _)| *name == room);
    known.unwrap_or_else(|| panic!("{room} is no room that this test knows")).1.split_whitespace().collect()
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
    for (room, _) in MAY_USE {
        for used in may_use(room) {
            assert!(!may_use(used).contains(room), "{room} and {used} may use each other");
        }
    }
}

/// A file of a room as other files of it name it: by directories, without `mod.rs`.
fn module(file: &str) -> String {
    file.trim_end_matches(".rs").trim_end_matches("/mod").to_owned()
}

/// The files of its room that a file uses, by `super::` or by the room's own name.
fn used_by(source: &Source, known: &BTreeMap<String, &str>) -> BTreeSet<String> {
    let own = module(&source.file);
    let named = format!("crate::{}::", source.room);
    // A directory's own file names those in it.
    let below = source.text.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    let mut found: BTreeSet<String> = below.map(|name| format!("{own}/{name}")).collect();
    let mut rest = &*source.text;
    while let Some(at) = ["super::", &*named].iter().filter_map(|start| rest.find(start)).min() {
        rest = &rest[at..];
        let above = match rest.strip_prefix(&*named) {
            Some(more) => {
                rest = more;
                format!("src/{}", source.room)
            }
            None => {
                let mut above = &*own;
                while let Some(more) = rest.strip_prefix("super::") {
                    rest = more;
                    above = above.rsplit_once('/').map_or("src", |(above, _)| above);
                }
                above.to_owned()
            }
        };
        // Each with its path, and then again without.
        for path in imported(rest).step_by(2).filter(|path| !path.is_empty()) {
            let parts: Vec<&str> = path.split("::").collect();
            let longest = (1..=parts.len()).rev().map(|n| format!("{above}/{}", parts[..n].join("/")));
            let named = longest.into_iter().find(|name| known.contains_key(name));
            // What a directory's own file gives by its own name.
            let given = || known.get(&above).filter(|text| gives(text, parts[0])).map(|_| above.clone());
            found.extend(named.or_else(given).filter(|name| *name != own));
        }
    }
    found
}

/// True if a file declares a name, or gives it on.
fn gives(text: &str, name: &str) -> bool {
    let is_word = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    let declares = |line: &str| {
        let before = ["fn", "struct", "enum", "trait", "type", "const", "static", "macro_rules!"];
        line.split(['(', '<', ':', '=', '{', ';']).next().is_some_and(|head| {
            let mut words = head.split_whitespace().rev();
            words.next() == Some(name) && words.next().is_some_and(|word| before.contains(&word))
        })
    };
    text.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()).any(is_word) || text.lines().any(declares)
}

#[test]
fn no_file_of_these_rooms_is_used_by_one_that_it_uses() {
    let sources = sources();
    assert!(used_in(&sources, "cli")["src/cli/remote"].contains("src/cli/remote/far"));
    let rooms =
        "agent api blocks cli capture checkpoint config diff engine face fs mcp moving remote review session snapshot tree verb";
    let circles: Vec<String> = rooms.split(' ').flat_map(|room| circles(&used_in(&sources, room))).collect();
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

/// The files of a room, each with those of the room that it uses.
fn used_in(sources: &[Source], room: &str) -> BTreeMap<String, BTreeSet<String>> {
    let files = || sources.iter().filter(|source| source.room == room);
    let known: BTreeMap<String, &str> = files().map(|source| (module(&source.file), &*source.text)).collect();
    files().map(|source| (module(&source.file), used_by(source, &known))).collect()
}

fn circles(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut circles = Vec::new();
    for start in uses.keys() {
        let (mut todo, mut seen) = (vec![start], BTreeSet::new());
        while let Some(file) = todo.pop() {
            for next in &uses[file] {
                if next == start {
                    circles.push(format!("{start} uses itself by {file}"));
                } else if seen.insert(next) {
                    todo.push(next);
                }
            }
        }
    }
    circles
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
                    if rest.starts_with('*') || imported(rest).any(|name| calls.split(' ').any(|call| call == name)) {
                        broken.push(format!("{}:{}: {}", source.file, n + 1, line.trim()));
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "only src/fs changes files:\n{}", broken.join("\n"));
}

/// The verbs that still print, below `cli`. The list only shrinks.
const PRINT: [&str; 0] = [];

/// The verbs through which all passes.
const VERBS: [&str; 14] =
    ["cat", "commit", "diff", "discard", "fork", "list", "log", "redo", "rewind", "rollback", "show", "status", "steps", "undo"];

#[test]
fn the_verbs_that_still_print_are_these() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/verb");
    let prints = |verb: &&str| !top.join(format!("{verb}.rs")).exists() && !top.join(verb).is_dir();
    assert_eq!(VERBS.into_iter().filter(prints).collect::<Vec<_>>(), PRINT);
}

/// What a verb has from its caller, or leaves to its face.
const OF_FACES: [&str; 7] = ["clap", "std::env::var", "std::env::args", "println!", "io::stdout", "io::stderr", "io::stdin"];

#[test]
fn verbs_print_nothing_and_read_no_words_and_no_variables() {
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| source.room == "verb") {
        for (n, line) in source.text.lines().enumerate().filter(|(_, line)| OF_FACES.iter().any(|word| line.contains(word))) {
            broken.push(format!("{}:{}: {}", source.file, n + 1, line.trim()));
        }
    }
    assert!(broken.is_empty(), "these are a face's:\n{}", broken.join("\n"));
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

/// Calls that wait for the disk.
const SYNCS: [&str; 5] = [".sync(", ".sync_all(", ".sync_at(", ".sync_dir(", ".sync_fs("];

#[test]
fn each_sync_names_the_rule_that_it_serves() {
    let mut nameless = Vec::new();
    for source in sources() {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&source.file)).expect("a source");
        let lines: Vec<&str> = without_tests(&text).lines().collect();
        for (n, line) in lines.iter().enumerate().filter(|(_, line)| SYNCS.iter().any(|call| line.contains(call))) {
            if line.trim_start().starts_with("//") {
                continue;
            }
            // From the function's own comment on, to a line behind the call.
            let begins = lines[..n].iter().rposition(|line| line.contains("fn ")).expect("a function");
            let comment =
                lines[..begins].iter().rposition(|line| !line.trim_start().starts_with(['/', '#'])).map_or(0, |n| n + 1);
            if !lines[comment..lines.len().min(n + 2)].iter().any(|line| names_a_rule(line)) {
                nameless.push(format!("{}:{}: {}", source.file, n + 1, line.trim()));
            }
        }
    }
    assert!(nameless.is_empty(), "no rule (D1 to D18) is named with:\n{}", nameless.join("\n"));
}

fn names_a_rule(line: &str) -> bool {
    let comment = line.split_once("//").map_or("", |(_, comment)| comment);
    comment.match_indices('D').any(|(at, _)| comment[at + 1..].starts_with(|c: char| c.is_ascii_digit()))
}
