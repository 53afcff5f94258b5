//! Rooms look down only, as docs/ARCHITECTURE.md draws them: who may use whom is checked line by line, with two more rules
//! that the compiler does not know: what changes files stands in `fs`, and what is unsafe in `fs` and `capture`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The rooms, and what each may use beside itself, `error`, `remedy` and `settings`. A folder that has a row of its own is a room.
const MAY_USE: &[(&str, &str)] = &[
    ("fs", ""),
    ("tree", "fs"),
    ("session", "tree fs"),
    ("checkpoint", "session tree fs"),
    ("capture", "session tree fs"),
    ("engine", "checkpoint session tree fs"),
    ("commit", "engine checkpoint session tree fs"),
    ("rollback", "engine checkpoint session tree fs"),
    ("moving", "engine checkpoint session tree fs"),
    ("snapshot", "engine checkpoint session tree fs"),
    ("compare/blocks", ""),
    ("compare", "compare/blocks checkpoint session tree fs"),
    ("agent", "snapshot compare compare/blocks checkpoint session tree fs"),
    ("remote", "session fs"),
    ("proxy", ""),
    (
        "verb",
        "agent remote proxy snapshot compare compare/blocks moving capture rollback commit engine checkpoint session tree fs",
    ),
    (
        "face",
        "face/args verb agent remote proxy snapshot compare compare/blocks moving capture engine checkpoint session tree fs",
    ),
    ("face/args", "verb agent remote snapshot compare compare/blocks engine checkpoint session tree fs"),
    ("face/screen", "compare compare/blocks session tree fs"),
    ("face/mcp", ""),
    ("face/mcp/carry", "face/mcp face/args face verb agent compare capture session fs"),
    ("face/far", "face/args face verb remote compare fs"),
    ("face/review", "face/screen face/args face verb agent snapshot compare compare/blocks engine capture session tree fs"),
    ("face/program", "proxy face/far face/mcp/carry face/review face/args face verb agent snapshot capture session tree fs"),
    ("error", ""),
    ("remedy", ""),
    ("settings", ""),
];

/// Rooms that everything may use.
const LEAVES: &[&str] = &["error", "remedy", "settings"];

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
    ("src/capture/space/attach.rs", "makes mount points in the run's own /dev"),
    ("src/capture/space/hidden.rs", "makes links in a tmpfs, which are put over hidden files"),
    ("src/capture/space/mount_covers.rs", "makes the names of a tmpfs over /run"),
    ("src/capture/space/devices.rs", "makes the inside of the run's own /dev"),
    ("src/capture/run/door.rs", "binds a socket there, or in the run's own store"),
];

struct Source {
    file: String,
    /// Its path as a module: `engine`, `plan`.
    module: Vec<String>,
    room: &'static str,
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
    let text = std::fs::read_to_string(path).expect("a readable source");
    let code = without_tests(&text);
    let lines: Vec<&str> = code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let module = below.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    let module: Vec<String> = module.split('/').filter(|part| !["lib", "main"].contains(part)).map(str::to_owned).collect();
    let room = if module.is_empty() { "" } else { room_of(&module).unwrap_or_else(|| panic!("{below} is in no room")) };
    Source { file: below.to_owned(), module, room, text: lines.join("\n") }
}

/// The innermost room that has this path.
fn room_of(path: &[String]) -> Option<&'static str> {
    (1..=path.len()).rev().find_map(|n| {
        let name = path[..n].join("/");
        MAY_USE.iter().map(|(room, _)| *room).find(|room| *room == name)
    })
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
    MAY_USE.iter().find(|(name, _)| *name == room).into_iter().flat_map(|(_, used)| used.split_whitespace()).collect()
}

/// Every path of this crate that a file names, from the top: `crate::`, `super::` and lists are resolved, each with its line.
fn paths(source: &Source) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in source.text.match_indices(start) {
            let before = source.text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let n = source.text[..at].matches('\n').count() + 1;
            found.extend(tree(&source.text[at..]).into_iter().map(|path| (n, from_the_top(&path, &source.module))));
        }
    }
    found
}

/// The paths that a text begins with: one, or all of a list in braces.
fn tree(text: &str) -> Vec<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(text.len());
    let head = &text[..end];
    let Some(list) = text[end..].strip_prefix('{').filter(|_| head.ends_with("::")) else {
        return vec![head.trim_end_matches(':').to_owned()];
    };
    let (mut depth, mut begin, mut paths) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                paths.extend(
                    tree(list[begin..at].trim_start()).iter().filter(|path| !path.is_empty()).map(|path| format!("{head}{path}")),
                );
                begin = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    paths
}

fn from_the_top(path: &str, module: &[String]) -> Vec<String> {
    let above = path.split("::").take_while(|part| *part == "super").count();
    let base = if above == 0 { &[] } else { &module[..module.len().saturating_sub(above)] };
    let rest = path.split("::").skip(above.max(1)).filter(|part| *part != "self");
    base.iter().map(String::as_str).chain(rest).map(str::to_owned).collect()
}

#[test]
fn rooms_look_down_only() {
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| !source.module.is_empty()) {
        for (n, path) in paths(source) {
            let to = room_of(&path).unwrap_or_default();
            if to.is_empty() {
                broken.push(format!("{}:{n}: names no room, or all of them: {}", source.file, path.join("::")));
            } else if to != source.room && !LEAVES.contains(&to) && !may_use(source.room).contains(&to) {
                broken.push(format!("{}:{n}: {} uses `{to}`", source.file, source.room));
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

/// The files that a file uses: by a path, or because it declares them.
fn used_by(source: &Source, known: &BTreeMap<String, &Source>) -> BTreeSet<String> {
    let own = source.module.join("/");
    let below = source.text.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    let mut found: BTreeSet<String> = below.map(|name| format!("{own}/{name}")).collect();
    for (_, path) in paths(source) {
        let Some(n) = (1..=path.len()).rev().find(|n| known.contains_key(&path[..*n].join("/"))) else { continue };
        let name = path[..n].join("/");
        // A module within a file names that file by `super`, too.
        let is_there = path.get(n).is_some_and(|item| gives(&known[&name].text, item)) || !own.starts_with(&format!("{name}/"));
        found.extend(Some(name).filter(|name| is_there && *name != own));
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
fn no_file_is_used_by_one_that_it_uses() {
    let sources = sources();
    let files = || sources.iter().filter(|source| !source.module.is_empty());
    let known: BTreeMap<String, &Source> = files().map(|source| (source.module.join("/"), source)).collect();
    let uses: BTreeMap<String, BTreeSet<String>> =
        known.iter().map(|(name, source)| (name.clone(), used_by(source, &known))).collect();
    assert!(uses["face/out"].contains("face/figures"), "no use is found");
    let circles = circles(&uses);
    assert!(circles.is_empty(), "{}", circles.join("\n"));
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
        .filter(|source| !["fs", "capture"].contains(&source.room))
        .filter(|source| source.text.contains("unsafe {") || source.text.contains("unsafe fn"))
        .map(|source| source.file.clone())
        .collect();
    assert!(elsewhere.is_empty(), "unsafe code in {}", elsewhere.join(", "));
}

#[test]
fn programs_are_started_by_what_gives_them_the_callers_limit_of_open_files() {
    let makes_its_own = |text: &str| {
        let of_std = text.lines().any(|line| line.starts_with("use std::process::") && line.contains("Command"));
        text.contains("process::Command::new(") || (of_std && text.contains("Command::new("))
    };
    let elsewhere: Vec<String> = sources()
        .iter()
        .filter(|source| source.room != "fs" && makes_its_own(&source.text))
        .map(|source| source.file.clone())
        .collect();
    assert!(elsewhere.is_empty(), "not by fs::command: {}", elsewhere.join(", "));
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

/// Files beside an agent's own that name one, and why.
const NAME_AGENTS: &[(&str, &str)] = &[
    ("src/agent/known.rs", "the table"),
    ("src/agent/mod.rs", "its file"),
    ("src/face/args/agent.rs", "examples of commands"),
    ("src/face/args/inspect.rs", "examples of commands"),
    ("src/face/args/settings.rs", "an example of a table"),
    ("src/face/args/verbs.rs", "examples of commands"),
    ("src/tree/danger.rs", "files that programs of many sorts obey; it lies below the agents"),
];

#[test]
fn an_agent_is_named_in_its_own_file_alone() {
    let sources = sources();
    let word = |source: &Source| {
        let (_, facts) = source.text.split_once("pub const FACTS: Facts = Facts {")?;
        Some((source.file.clone(), facts.split('"').nth(1)?.to_owned()))
    };
    let agents: Vec<(String, String)> = sources.iter().filter_map(word).collect();
    assert!(agents.len() > 5, "{agents:?}");
    let mut broken = Vec::new();
    let is_excused =
        |file: &str| NAME_AGENTS.iter().any(|(excused, _)| *excused == file) || agents.iter().any(|(own, _)| own == file);
    let is_test = |file: &str| file.ends_with("/tests.rs");
    for source in sources.iter().filter(|source| !is_excused(&source.file) && !is_test(&source.file)) {
        for (n, line) in source.text.lines().enumerate() {
            let names = |(_, word): &&(String, String)| line.to_ascii_lowercase().contains(&naming(word));
            broken.extend(agents.iter().find(names).map(|(_, word)| format!("{}:{}: names {word}", source.file, n + 1)));
        }
    }
    assert!(broken.is_empty(), "an agent has one file, src/agent/NAME.rs:\n{}", broken.join("\n"));
    let unused = NAME_AGENTS.iter().filter(|(file, _)| {
        let text = sources.iter().find(|source| source.file == *file).map(|source| source.text.to_ascii_lowercase());
        !text.is_some_and(|text| {
            agents.iter().any(|(_, word)| text.contains(&naming(word)) || text.contains(&format!("{word}::")))
        })
    });
    assert_eq!(unused.map(|(file, _)| file).collect::<Vec<_>>(), [] as [&&str; 0]);
}

/// The text by which an agent is named: a short word only between quotes.
fn naming(word: &str) -> String {
    if word.len() > 3 { word.to_owned() } else { format!("\"{word}\"") }
}
