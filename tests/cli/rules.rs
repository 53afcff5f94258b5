//! Rules that comments cite by a letter and a number (D1, I5, F13) are each defined once, sections of documents that they cite by name exist,
//! and no file of tests is left out of the programs. A definition is a bold rule in docs/ARCHITECTURE.md or in a header of `src`, or a row of a table in tests/README.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Where the documents are that comments cite.
const DOCUMENTS: [&str; 10] = [
    "docs/ARCHITECTURE.md",
    "docs/DECISIONS.md",
    "docs/ansible.md",
    "docs/json.md",
    "docs/mcp.md",
    "docs/remote.md",
    "docs/store-format.md",
    "tests/README.md",
    "CONTRIBUTING.md",
    "README.md",
];

/// Directories with code whose comments are read.
const CODE: [&str; 5] = ["src", "tests", "benches", "examples", "demo"];

/// A letter and a number in a comment, but no rule.
const NO_RULES: [&str; 2] = ["X11", "C1"];

/// A line of a document, or the comment of a line of code.
struct Passage {
    file: String,
    line: usize,
    text: String,
    /// Nothing but a comment stands in the line.
    alone: bool,
}

impl Passage {
    fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The files of code, by their paths below the package, in order.
fn code() -> Vec<String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut todo: Vec<_> = CODE.iter().map(|directory| top.join(directory)).filter(|directory| directory.is_dir()).collect();
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory of sources") {
            let path = entry.expect("a name in it").path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|extension| ["rs", "py", "sh"].iter().any(|known| extension == *known)) {
                found.push(path.strip_prefix(top).expect("a path below the package").to_str().expect("an ASCII name").to_owned());
            }
        }
    }
    assert!(found.len() > 100, "only {} files of code", found.len());
    found.sort();
    found
}

/// The comments of a file, line by line.
fn comments(file: &str) -> Vec<Passage> {
    let mark = if file.ends_with(".rs") { "//" } else { "#" };
    let comment = |(n, line): (usize, &str)| {
        // A mark in a string makes a comment of the rest, in which no rule stands.
        let (before, comment) = line.split_once(mark)?;
        let text = comment.trim_start_matches(['/', '!']).trim().to_owned();
        Some(Passage { file: file.to_owned(), line: n + 1, text, alone: before.trim().is_empty() })
    };
    read(file).lines().enumerate().filter_map(comment).collect()
}

/// The same with lines that follow each other made one, as a name may be parted by the end of a line.
fn joined(file: &str) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    let mut last = 0;
    for passage in comments(file) {
        let line = passage.line;
        match found.last_mut() {
            Some(above) if passage.alone && line == last + 1 => above.text = format!("{} {}", above.text, passage.text),
            _ => found.push(passage),
        }
        last = line;
    }
    found
}

fn lines(file: &str) -> Vec<Passage> {
    let passage = |(n, line): (usize, &str)| Passage { file: file.to_owned(), line: n + 1, text: line.to_owned(), alone: true };
    read(file).lines().enumerate().map(passage).collect()
}

/// A rule's name at the start of a text: a letter, one or two digits, and perhaps a small letter.
fn rule(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let digits = bytes.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    let end = 1 + digits + usize::from(bytes.get(1 + digits).is_some_and(u8::is_ascii_lowercase));
    let stops = bytes.get(end).is_none_or(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'>'));
    (bytes.first()?.is_ascii_uppercase() && (1..=2).contains(&digits) && stops).then(|| &text[..end])
}

/// All rules in a text, in order.
fn rules(text: &str) -> Vec<&str> {
    let begins = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '<'));
    let at: Vec<usize> = text.char_indices().map(|(at, _)| at).filter(|at| begins(*at)).collect();
    at.into_iter().filter_map(|at| rule(&text[at..])).filter(|name| !NO_RULES.contains(name)).collect()
}

/// The rules that a passage defines, of a document or of a header in `src`.
fn defined(passage: &Passage) -> Vec<String> {
    if passage.file == "tests/README.md" {
        let cell = passage.text.strip_prefix("| ").and_then(|row| row.split(" |").next());
        return cell.filter(|cell| rule(cell) == Some(cell)).map(str::to_owned).into_iter().collect();
    }
    if passage.file != "docs/ARCHITECTURE.md" && !passage.file.starts_with("src/") {
        return Vec::new();
    }
    let bold = passage.text.split("**").skip(1).step_by(2);
    bold.filter(|name| rule(name) == Some(name)).map(str::to_owned).collect()
}

/// Every passage that may define or cite a rule.
fn passages() -> Vec<Passage> {
    code().iter().flat_map(|file| comments(file)).chain(DOCUMENTS.iter().flat_map(|file| lines(file))).collect()
}

/// Each rule with the places that define it.
fn definitions(passages: &[Passage]) -> BTreeMap<String, Vec<&Passage>> {
    let mut found: BTreeMap<String, Vec<&Passage>> = BTreeMap::new();
    for passage in passages {
        for name in defined(passage) {
            found.entry(name).or_default().push(passage);
        }
    }
    found
}

#[test]
fn each_rule_is_defined_once() {
    let passages = passages();
    let mut wrong: Vec<String> = Vec::new();
    let defined = definitions(&passages);
    let letters: BTreeSet<&str> = defined.keys().map(|name| &name[..1]).collect();
    assert_eq!(letters, BTreeSet::from(["D", "F", "H", "I", "N"]), "nobody keeps more letters apart");
    for (name, places) in defined.iter().filter(|(_, places)| places.len() > 1) {
        let places: Vec<String> = places.iter().map(|passage| passage.place()).collect();
        wrong.push(format!("{name} is defined more than once: {}", places.join(", ")));
    }
    for passage in &passages {
        let missing = rules(&passage.text).into_iter().filter(|name| !defined.contains_key(*name));
        wrong.extend(missing.map(|name| format!("{}: {name} is defined nowhere", passage.place())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Headings of a document, and the bold words that a paragraph or an item of a list begins with.
fn sections(document: &str) -> Vec<String> {
    let text = read(document);
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let begins = text.lines().map(|line| line.trim_start_matches(|c: char| c.is_numeric() || matches!(c, '.' | '-' | ' ')));
    let bold = begins.filter_map(|line| Some(line.strip_prefix("**")?.split_once("**")?.0));
    headings.chain(bold).map(str::to_owned).collect()
}

/// What a comment names behind a document: `docs/ARCHITECTURE.md, A run)`. A small letter goes on with the sentence, but for a number of a
/// section or phase, which the next edit would make wrong.
fn named(after: &str) -> Option<&str> {
    let name = after.trim_start_matches(',').trim_start();
    let name = &name[..name.find([',', ')', ':', ';', '.']).unwrap_or(name.len())];
    let numbered = ["section ", "phase "].iter().any(|word| name.starts_with(word));
    let separate = after.starts_with(", ") || after.starts_with(' ') && rule(name.split(' ').next()?).is_some();
    (separate && (numbered || name.starts_with(|c: char| c.is_uppercase()))).then_some(name)
}

#[test]
fn sections_that_comments_cite_exist() {
    let all = passages();
    let defined = definitions(&all);
    let mut wrong = Vec::new();
    let mut cited = 0;
    for passage in code().iter().flat_map(|file| joined(file)) {
        for (at, _) in passage.text.match_indices(".md") {
            let before = &passage.text[..at];
            let begins = before.rfind(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '-' | '_')).map_or(0, |at| at + 1);
            let document = &passage.text[begins..at + 3];
            // Test data have names of documents, too.
            if !["docs/", "tests/"].iter().any(|directory| document.starts_with(directory)) && !DOCUMENTS.contains(&document) {
                continue;
            }
            let Some(document) = DOCUMENTS.iter().find(|known| **known == document) else {
                wrong.push(format!("{}: there is no {document}", passage.place()));
                continue;
            };
            let Some(name) = named(&passage.text[at + 3..]) else { continue };
            cited += 1;
            let there = match rule(name.split(' ').next().unwrap_or_default()) {
                Some(rule) => defined.get(rule).is_some_and(|places| places.iter().any(|place| place.file == *document)),
                None => sections(document).iter().any(|section| section == name),
            };
            if !there {
                wrong.push(format!("{}: {document} has no {name:?}", passage.place()));
            }
        }
    }
    assert!(cited > 10, "only {cited} sections are cited");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A doc comment begins with a verb or a noun phrase that could stand in an index, not with a question word.
#[test]
fn doc_comments_begin_with_what_a_thing_is_or_does() {
    let mut found = Vec::new();
    for file in code().iter().filter(|file| file.starts_with("src/")) {
        let text = read(file);
        let mut first = true;
        for (n, line) in text.lines().enumerate() {
            let doc = line.trim_start().strip_prefix("///").or_else(|| line.trim_start().strip_prefix("//!")).map(str::trim);
            if let Some(doc) = doc.filter(|doc| first && !doc.ends_with(':'))
                && ["What ", "Whether ", "Where ", "The same"].iter().any(|word| doc.starts_with(word))
            {
                found.push(format!("{file}:{}: {doc}", n + 1));
            }
            first = doc.is_none_or(str::is_empty);
        }
    }
    assert!(found.is_empty(), "begin with a verb or a noun:\n{}", found.join("\n"));
}

/// The file that a module declared in this one lies in, below the package: one of these.
fn module(file: &str, path: Option<&str>, name: &str) -> Vec<String> {
    let (directory, own) = file.rsplit_once('/').expect("a file below tests");
    if let Some(path) = path {
        let (mut directory, mut path) = (directory, path);
        while let Some(rest) = path.strip_prefix("../") {
            (directory, path) = (directory.rsplit_once('/').map_or("", |(above, _)| above), rest);
        }
        return vec![format!("{directory}/{path}")];
    }
    let below = match own {
        "main.rs" | "mod.rs" => directory.to_owned(),
        own => format!("{directory}/{}", own.trim_end_matches(".rs")),
    };
    vec![format!("{below}/{name}.rs"), format!("{below}/{name}/mod.rs")]
}

#[test]
fn each_file_of_tests_is_a_program_or_a_module_of_one() {
    let files: Vec<String> = code().into_iter().filter(|file| file.starts_with("tests/") && file.ends_with(".rs")).collect();
    let mut declared = BTreeSet::from(["tests/capture/program.rs".to_owned()]);
    for file in &files {
        let text = read(file);
        let mut path = None;
        for line in text.lines() {
            if let Some(name) = line.trim_start_matches("pub ").strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
                declared.extend(module(file, path, name));
            }
            path = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]"));
        }
    }
    // Cargo takes main.rs of a directory of tests/ for a program.
    let is_program = |file: &str| file.ends_with("/main.rs") && file.split('/').count() == 3;
    let forgotten: Vec<&String> = files.iter().filter(|file| !is_program(file) && !declared.contains(*file)).collect();
    assert!(files.len() > 80 && forgotten.is_empty(), "{} files; declared nowhere: {forgotten:?}", files.len());
}

/// Names of tests in tests/README.md: a function whole, or with `…` for what is left out.
#[test]
fn each_test_that_the_table_of_faults_names_is_there() {
    let table = read("tests/README.md");
    let text: String = code().iter().filter(|file| file.ends_with(".rs")).map(|file| read(file)).collect();
    let functions: Vec<&str> = text.split("fn ").skip(1).map(|rest| rest.split(['(', '<']).next().unwrap_or_default()).collect();
    let mut wrong = Vec::new();
    let mut named = 0;
    for token in table.split('`').skip(1).step_by(2).map(|token| token.rsplit("::").next().unwrap_or_default()) {
        let parts: Vec<&str> = token.split('…').collect();
        let is_name = |part: &&str| part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if token.matches('_').count() < 3 || !parts.iter().all(is_name) {
            continue;
        }
        named += 1;
        let [first, .., last] = parts[..] else {
            wrong.extend((!functions.contains(&token)).then_some(token));
            continue;
        };
        let middle = &parts[1..parts.len() - 1];
        let fits = |name: &&str| name.starts_with(first) && name.ends_with(last) && middle.iter().all(|part| name.contains(part));
        wrong.extend((!functions.iter().any(fits)).then_some(token));
    }
    let paths =
        table.split([' ', '`', ',', ';', ':', '(', ')', '|']).filter(|word| word.ends_with(".rs") || word.ends_with(".py"));
    let is_there = |path: &str| ["tests", "src", "."].iter().any(|top| Path::new(top).join(path).is_file());
    let missing: Vec<&str> = paths.filter(|path| !is_there(path)).collect();
    assert!(named > 40, "only {named} tests are named");
    assert!(wrong.is_empty() && missing.is_empty(), "no such test: {wrong:#?}\nno such file: {missing:#?}");
}

/// Texts of several words in `verb` beside its errors that are no English: of the log, and commands that a value has.
const NO_ENGLISH: [(&str, &str); 16] = [
    ("src/verb/agent/undo.rs", "agent undo {"),
    ("src/verb/confirm.rs", "not confirmed"),
    ("src/verb/discard/parts.rs", "discard paths"),
    ("src/verb/discard/whole.rs", "prune --discarded"),
    ("src/verb/log.rs", "agent undo "),
    ("src/verb/moving.rs", "session import"),
    ("src/verb/path_log.rs", "agent undo {n}"),
    ("src/verb/path_log.rs", "snapshot restore {}"),
    ("src/verb/prune/kind.rs", "discarded session"),
    ("src/verb/snapshot/restore.rs", "snapshot restore {n} {directory}"),
    ("src/verb/run/shell.rs", "fish_prompt"),
    // The standing of what changed a path, in JSON.
    ("src/verb/path_log.rs", "set aside"),
    ("src/verb/path_log.rs", "pruned"),
    ("src/verb/path_log.rs", "undone since"),
    ("src/verb/path_log.rs", "rolled back"),
    ("src/verb/undo.rs", "agent install "),
];

/// The texts in a line, between quotes.
fn texts(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

#[test]
fn english_of_the_verbs_stands_in_their_errors_and_in_the_faces() {
    let is_several_words = |text: &str| {
        // What is put in is no word of it.
        let plain: String = text.split('{').map(|part| part.split_once('}').map_or(part, |(_, after)| after)).collect();
        let words = plain.split(' ').filter(|word| word.chars().filter(|c| c.is_ascii_lowercase()).count() > 1);
        words.count() > 1
    };
    let mut broken = Vec::new();
    let is_of_verb =
        |file: &str| file.starts_with("src/verb/") && !file.starts_with("src/verb/error/") && !file.ends_with("/tests.rs");
    // The table has the names of verbs.
    for file in code().into_iter().filter(|file| is_of_verb(file) && file != "src/verb/table.rs") {
        let text = read(&file);
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (n, line) in text.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            let is_known =
                |text: &str| NO_ENGLISH.iter().any(|(of, known)| *of == file && (text.contains(known) || line.contains(known)));
            broken.extend(
                texts(line)
                    .filter(|text| is_several_words(text) && !is_known(text))
                    .map(|text| format!("{file}:{}: {text}", n + 1)),
            );
        }
    }
    assert!(broken.is_empty(), "English stands in src/verb/error and in the faces:\n{}", broken.join("\n"));
}

/// Calls that look into a text.
const LOOKS: [&str; 8] =
    ["contains", "starts_with", "ends_with", "strip_prefix", "strip_suffix", "find", "split_once", "trim_start_matches"];

/// Names of what holds a text for people.
const TEXTS: [&str; 8] = ["message", "why", "state", "remedy", "said", "reason", "remark", "note"];

/// Looks into texts for people, or that seem to be, each with the file, a piece of the line, and why it is right.
const RIGHT_LOOKS: &[(&str, &str, &str)] = &[
    ("src/agent/settings/command.rs", " hook ", "a command, as it stands in an agent's settings"),
    ("src/face/program/complete.rs", "snapshot ", "a verb's name"),
    ("src/snapshot/agent_cover.rs", "gitdir: ", "git's"),
    ("src/tree/git_head.rs", "ref: ", "git's"),
    ("src/compare/summary/reflog.rs", "reset: moving to ", "git's log"),
    ("src/compare/summary/reflog.rs", "onto {}", "git's log"),
    ("src/face/program/misuse.rs", "error: ", "clap's words"),
    ("src/face/program/misuse.rs", "starts_with(\"--\")", "an option, as it was typed"),
    ("src/error.rs", " (os error", "the words of the standard library"),
    ("src/session/run_record.rs", "EARLIER", "a mark in a stored note"),
    ("src/verb/undo.rs", "agent install ", "the words of a command"),
    // Until the screen and differences return values.
    ("src/face/review/session.rs", ", not shown", "remarks of a difference"),
    ("src/face/screen/sheet.rs", "conflict", "remarks of a difference"),
    ("src/compare/html/file_part.rs", "mode ", "remarks of a difference"),
];

/// A look: the value that is looked into, and the argument.
fn looks(line: &str) -> Vec<(&str, &str)> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let of = |call: &&str| {
        let pattern = format!(".{call}(");
        let at: Vec<usize> = line.match_indices(&pattern).map(|(at, _)| at).collect();
        at.into_iter().map(move |at| (at, at + pattern.len()))
    };
    let found = LOOKS.iter().flat_map(of);
    found
        .map(|(at, end)| {
            let before = line[..at].trim_end_matches("()");
            (before.rsplit(|c| !is_name(c)).next().unwrap_or_default(), &line[end..])
        })
        .collect()
}

/// The text in quotes with which an argument begins.
fn quoted(argument: &str) -> Option<&str> {
    argument.strip_prefix('"')?.split('"').next()
}

#[test]
fn no_code_looks_into_a_text_that_recant_made() {
    let mut wrong = Vec::new();
    let mut unused: BTreeSet<usize> = (0..RIGHT_LOOKS.len()).collect();
    for file in code().into_iter().filter(|file| file.starts_with("src/") && !file.ends_with("tests.rs")) {
        let text = read(&file);
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let is_wrong = looks(line).into_iter().any(|(of, argument)| {
                let words = quoted(argument).is_some_and(|text| text.len() > 3 && text.contains(' ') || text.starts_with("--"));
                let is_known = argument.starts_with(|c: char| c.is_ascii_uppercase()) || argument.contains("format!");
                let is_text = TEXTS.contains(&of) && quoted(argument).map_or(is_known, |text| text.len() > 3);
                words || is_text
            });
            if !is_wrong {
                continue;
            }
            match RIGHT_LOOKS.iter().position(|(known, piece, _)| *known == file && line.contains(piece)) {
                Some(right) => drop(unused.remove(&right)),
                None => wrong.push(format!("{file}:{}: {}", n + 1, line.trim())),
            }
        }
    }
    assert!(wrong.is_empty(), "callers branch on kinds and fields, never on a text:\n{}", wrong.join("\n"));
    let unused: Vec<_> = unused.into_iter().map(|n| RIGHT_LOOKS[n]).collect();
    assert!(unused.is_empty(), "no such look is there any more: {unused:?}");
}
