//! The terminal sessions of README and of the book's pages, run as root and as an ordinary user: what they show is what recant says.
//!
//! Each page is one shell session in a new home directory: the commands in its ```` ```console ```` blocks, in order. A line `...`
//! in an output stands for any lines, ` …` at a line's end for the rest of it. `<!-- needs: PROGRAM… -->` in a page names programs that not every machine has; `network` means
//! a registry of packages, which `RECANT_BOOK_NETWORK=1` says is there (`make test-reach` sets it). A page that needs `machines` has a test
//! of its own.

use crate::ssh;
use std::path::{Path, PathBuf};

use crate::common::{Said, World, recant};
use crate::desk::{Desk, Who, each, has};

/// A text with one time in all listings (`Mar 01 10:15`), and one day and time in all ids.
fn with_one_time(mut text: String) -> String {
    let digits: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    for (at, _) in digits.match_indices(" 00 00:00") {
        text.replace_range(at - 3..at + 9, "Mmm 00 00:00");
    }
    for form in ["00000000-000000-", "0000-00-00 00:00:00", "at 00:00"] {
        for (at, _) in digits.match_indices(form) {
            text.replace_range(at..at + form.len(), form);
        }
    }
    text
}

/// The same with each session's own word, as `k3fa`, replaced by its number in the order in which they are named.
fn with_one_id(text: &str) -> String {
    let mut ids: Vec<(usize, &str)> = Vec::new();
    for before in ["session ", "recant diff ", "recant rollback ", "00000000-000000-"] {
        for (at, _) in text.match_indices(before) {
            let rest = &text[at + before.len()..];
            let word = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())];
            if word.len() == 4 && ids.iter().all(|(_, id)| *id != word) {
                ids.push((at, word));
            }
        }
    }
    ids.sort_unstable();
    ids.iter().enumerate().fold(text.to_owned(), |text, (n, (_, id))| text.replace(id, &format!("<{n}>")))
}

/// A command, the lines that make it up, and what is shown below it.
struct Shown {
    command: String,
    output: String,
}

/// The commands in all ```` ```console ```` blocks, in order: one shell session. A line `> …` goes on with a command.
fn session(text: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside && let Some(command) = line.strip_prefix("$ ") {
            shown.push(Shown { command: command.into(), output: String::new() });
        } else if inside {
            let last = shown.last_mut().expect("a command before its output");
            match line.strip_prefix("> ") {
                Some(more) if last.output.is_empty() => {
                    last.command.push('\n');
                    last.command.push_str(more);
                }
                _ => {
                    last.output.push_str(line);
                    last.output.push('\n');
                }
            }
        }
    }
    shown
}

/// README, and the pages below docs/ that show a terminal session.
fn pages() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![top.join("README.md")];
    for entry in walkdir::WalkDir::new(top.join("docs")).sort_by_file_name() {
        let path = entry.unwrap().into_path();
        if path.extension().is_none_or(|kind| kind != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if !session(&text).is_empty() && needs(&text).all(|need| need != "machines") {
            pages.push(path);
        }
    }
    pages
}

/// The same lines in any order: over ssh standard output and standard error are two streams, which nothing orders.
fn fits_in_any_order(expected: &[&str], found: &[&str]) -> bool {
    let mut left = found.to_vec();
    let all = expected.iter().filter(|line| **line != "...").all(|line| {
        let at = left.iter().position(|found| is_as(line, found));
        at.map(|at| left.remove(at)).is_some()
    });
    all && (left.is_empty() || expected.contains(&"..."))
}

/// What a page says that it needs.
fn needs(page: &str) -> impl Iterator<Item = &str> {
    let words = page.split_once("<!-- needs: ").and_then(|(_, rest)| rest.split_once(" -->"));
    words.map_or("", |(words, _)| words).split_whitespace()
}

/// What a page needs and is not here.
fn lacking(page: &str) -> Option<&str> {
    needs(page).find(|need| match *need {
        "network" => std::env::var_os("RECANT_BOOK_NETWORK").is_none(),
        program => !has(program),
    })
}

/// Whether a line is the expected one, or begins as the expected one does before ` …`.
fn is_as(expected: &str, found: &str) -> bool {
    expected == found || expected.strip_suffix(" …").is_some_and(|start| found.starts_with(start))
}

/// Whether these lines are what was expected, `...` there being any number of lines.
fn fits(expected: &[&str], found: &[&str]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((&"...", rest)) => (0..=found.len()).any(|skipped| fits(rest, &found[skipped..])),
        Some((line, rest)) => found.split_first().is_some_and(|(first, others)| is_as(line, first) && fits(rest, others)),
    }
}

/// Runs the commands of a page in a home directory of their own. Gives what differs.
fn differs(page: &Path, desk: &mut Desk) -> Option<String> {
    let program = desk.binary.clone();
    find_recant(&mut desk.world, &program);
    desk.world.unset("XDG_DATA_HOME").unset("XDG_CONFIG_HOME").unset("RECANT_STORE");
    let home = desk.world.root().join("home");
    let ran = |script: &str| desk.give(desk.world.program("sh", ["-c", script])).cwd(&home).run();
    compared(page, &[(home.to_str().unwrap(), "/home/ann")], fits, ran)
}

/// Lets shells find the program.
fn find_recant(world: &mut World, program: &Path) {
    let bin = world.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(program, bin.join("recant")).unwrap();
    world.set("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", bin.display()));
}

/// Tells if the lines of an output are the expected ones.
type Fits = fn(&[&str], &[&str]) -> bool;

/// Has the commands of a page run as one shell script. Gives where what is said differs from the page, in which the real `places` have
/// other names.
fn compared(page: &Path, places: &[(&str, &str)], fits: Fits, run: impl Fn(&str) -> Said) -> Option<String> {
    let shown = session(&std::fs::read_to_string(page).unwrap());
    // A mark before each command tells the outputs apart.
    let marked: String = shown.iter().map(|Shown { command, .. }| format!("printf '\\1'\n{command}\n")).collect();
    let script = places.iter().fold(format!("exec 2>&1\n{marked}"), |script, (real, name)| script.replace(name, real));
    let said = places.iter().fold(run(&script).stdout(), |said, (real, name)| said.replace(real, name));
    let said: Vec<String> = said.split('\u{1}').map(str::to_owned).collect();
    let said = with_one_id(&with_one_time(said.join("\u{1}")));
    let outputs: Vec<&str> = said.split('\u{1}').skip(1).collect();
    if outputs.len() != shown.len() {
        return Some(format!("{} of {} commands were run:\n{said}", outputs.len(), shown.len()));
    }
    let expected: String = shown.iter().map(|shown| format!("\u{1}{}", shown.output)).collect();
    let expected = with_one_id(&with_one_time(expected));
    let (mut told, mut found) = (String::new(), String::new());
    for ((Shown { command, .. }, expected), output) in shown.iter().zip(expected.split('\u{1}').skip(1)).zip(outputs) {
        let right = fits(&expected.lines().collect::<Vec<_>>(), &output.lines().collect::<Vec<_>>());
        told.push_str(&format!("$ {command}\n{expected}"));
        found.push_str(&format!("$ {command}\n{}", if right { expected } else { output }));
    }
    if told == found {
        return None;
    }
    let diff = similar::TextDiff::from_lines(&told, &found);
    Some(diff.unified_diff().header(&page.display().to_string(), "what was said").to_string())
}

#[test]
fn the_pages_show_what_recant_says() {
    let pages = pages();
    each(|desk| {
        let tried = desk.recant("run -- true");
        if tried.status == 125 {
            println!(
                "skipped: the sessions of the pages as {:?}: {}",
                desk.who,
                tried.stderr().lines().next().unwrap_or_default()
            );
            return;
        }
        let wrong: Vec<String> = pages.iter().filter_map(|page| tried_as(page, desk.who)).collect();
        assert!(wrong.is_empty(), "as {:?}:\n{}", desk.who, wrong.join("\n"));
    });
}

/// A page's session as this user, unless something for it is missing.
fn tried_as(page: &Path, who: Who) -> Option<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let name = page.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display();
    if let Some(need) = lacking(&text) {
        println!("skipped: the session of {name}: no {need} here");
        return None;
    }
    // Not below /tmp: a `run --in` writes there, and its store may not lie there.
    differs(page, &mut Desk::on(who, Path::new("/var/tmp")))
}

/// A machine that is a real sshd, with a home, a store and a tree of its own, by a mount in the place of the world's; the page's /srv/app is
/// that tree.
#[test]
fn the_page_of_a_fleet_shows_what_a_machine_does() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: the session of docs/howto/fleet.md: root alone can give a machine a tree of its own");
        return;
    }
    let mut world = World::new();
    let Some(net) = ssh::Net::new(&mut world) else { return };
    let host = net.host("web1");
    world.write("app.conf", "port = 80\nlog = info\n");
    let own = "exec unshare -m --propagation private sh -c 'mount --bind tree TREE && exec sh -c \"$SSH_ORIGINAL_COMMAND\"'";
    host.write(".noise", own.replace("TREE", &world.tree().display().to_string()));
    world.program("cp", ["-a".into(), world.tree(), host.home.join("tree")]).run().ok();
    find_recant(&mut world, Path::new(recant()));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/howto/fleet.md");
    let (tree, web1) = (world.tree(), host.home.clone());
    let places = [(tree.to_str().unwrap(), "/srv/app"), (web1.to_str().unwrap(), "/home/ann")];
    let wrong = compared(&page, &places, fits_in_any_order, |script| world.program("sh", ["-c", script]).run());
    assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
}

#[test]
fn an_output_that_is_another_one_is_noticed() {
    let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
    assert!(fits(&lines("a\n...\nz"), &lines("a\nb\nc\nz")) && fits(&lines("a\n..."), &lines("a")) && fits(&["a …"], &["a b"]));
    assert!(fits_in_any_order(&["b …", "..."], &["a", "b c"]) && !fits_in_any_order(&["a", "b"], &["a", "a", "b"]));
    assert!(!fits(&lines("a\n...\nz"), &lines("a\nb")) && !fits(&lines("a"), &lines("a\nb")) && !fits(&lines("a"), &[]));
}

/// The first words in back quotes of a table's rows.
fn first_cells(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn the_page_of_settings_has_every_key_that_is_in_force() {
    let shown = first_cells(include_str!("../../docs/reference/settings.md"));
    let world = World::new();
    for row in world.recant("config --json").ok().json()["settings"].as_array().unwrap() {
        assert!(shown.contains(&row["key"].as_str().unwrap()), "{row}");
    }
}

#[test]
fn readme_is_a_page_that_a_stranger_reads() {
    let readme = include_str!("../../README.md");
    let wide: Vec<&str> = readme.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(readme.lines().count() <= 130 && wide.is_empty(), "{} lines, wider than 100: {wide:#?}", readme.lines().count());
}

/// Whoever reads them has an hour.
#[test]
fn the_pages_that_are_read_whole_stay_short() {
    let pages = [
        ("limits.md", include_str!("../../docs/limits.md"), 11_000),
        ("ARCHITECTURE.md", include_str!("../../docs/ARCHITECTURE.md"), 20_000),
        ("DECISIONS.md", include_str!("../../docs/DECISIONS.md"), 16_000),
    ];
    for (name, text, most) in pages {
        assert!(text.len() <= most, "{name} has {} bytes, more than {most}", text.len());
    }
}

/// What a page has recant called with: lines of code and spans in back quotes that begin with its name.
fn calls(page: &str) -> Vec<&str> {
    let lines = page.lines().map(|line| line.trim_start().trim_start_matches("$ "));
    let spans = page.split('`').skip(1).step_by(2);
    lines.chain(spans).filter(|text| text.starts_with("recant ") && !text.contains(": ")).collect()
}

/// The options that a call gives recant itself, and the words that name the verb.
fn options_and_verb(call: &str) -> (Vec<&str>, Vec<&str>) {
    let own = call.split(" -- ").next().unwrap().split([';', '|', '&', '#', '>', '(', '\n', ',']).next().unwrap();
    let words: Vec<&str> = own.split_whitespace().skip(1).collect();
    let options = words.iter().filter(|word| word.starts_with("--") && word.len() > 2);
    let options = options.map(|word| word.split(['=', '[', '.', ']']).next().unwrap()).collect();
    let is_verb = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    let host = words.iter().position(|word| *word == "-H").map(|at| at + 1);
    let after = words.iter().enumerate().filter(|(at, _)| Some(*at) != host).map(|(_, word)| word);
    (options, after.skip_while(|word| word.starts_with('-')).take_while(is_verb).copied().collect())
}

#[test]
fn each_option_that_the_pages_name_is_one() {
    let world = World::new();
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = walkdir::WalkDir::new(top.join("docs")).sort_by_file_name().into_iter().map(|entry| entry.unwrap().into_path());
    let pages = docs.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let (mut tried, mut wrong) = (0, Vec::new());
    let general = world.recant("--help").ok().stdout();
    for page in pages.chain([top.join("README.md")]) {
        let text = std::fs::read_to_string(&page).unwrap();
        for call in calls(&text) {
            let (options, verb) = options_and_verb(call);
            if options.is_empty() {
                continue;
            }
            // A verb of one word has arguments after it that look like a verb.
            let helps = (1..=verb.len().min(2)).rev().map(|n| world.recant(&format!("{} --help", verb[..n].join(" "))).stdout());
            let help = helps.collect::<String>() + &general;
            tried += 1;
            wrong.extend(
                options
                    .iter()
                    .filter(|option| !help.contains(**option))
                    .map(|option| format!("{}: {call}: {option}", page.display())),
            );
        }
    }
    assert!(tried > 40 && wrong.is_empty(), "{tried} calls with options; not known to recant:\n{}", wrong.join("\n"));
}
