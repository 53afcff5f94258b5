//! README's own terminal sessions, run: what it shows is what recant says.
#![allow(clippy::print_stdout, reason = "what is skipped is said")]

mod common;

use common::World;

/// An output without what is told of mounts, and the lines that go on with it.
fn without_mounts(output: &str) -> String {
    let mut theirs = false;
    let ours = |line: &&str| {
        theirs = line.starts_with("recant: ") && line.contains(" a mount below it (") || theirs && line.starts_with("        ");
        !theirs
    };
    output.split_inclusive('\n').filter(ours).collect()
}

/// A text with one time in all listings (`Mar 01 10:15`).
fn with_one_time(mut text: String) -> String {
    let digits: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    for (at, _) in digits.match_indices(" 00 00:00") {
        text.replace_range(at - 3..at + 9, "Mmm 00 00:00");
    }
    text
}

/// A command, the lines that make it up, and what is shown below it.
struct Shown {
    command: String,
    output: String,
}

/// The commands in all ```` ```console ```` blocks, in order: one shell session.
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
            last.output.push_str(line);
            last.output.push('\n');
        }
    }
    shown
}

#[test]
fn readme_shows_what_recant_says() {
    let mut world = World::new();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_recant"));
    let directory = program.parent().expect("a directory of programs").to_str().expect("a UTF-8 path");
    world.set("PATH", format!("{directory}:/usr/local/bin:/usr/bin:/bin"));
    world.unset("XDG_DATA_HOME").unset("RECANT_STORE");
    let tried = world.call(["run", "--", "true"]).run();
    if tried.status == 125 {
        println!(
            "skipped: README's session: recant run does not work here: {}",
            tried.stderr().lines().next().unwrap_or_default()
        );
        return;
    }
    let shown = session(include_str!("../README.md"));
    assert!(shown.len() > 15, "{} commands in README", shown.len());
    // A mark before each command tells the outputs apart.
    let mut script = String::from("exec 2>&1\n");
    for Shown { command, .. } in &shown {
        script.push_str(&format!("printf '\\1'\n{command}\n"));
    }
    let said = world.program("sh", ["-c", &script]).cwd(world.root().join("home")).run();
    let outputs: Vec<&str> = said.masked_out().split('\u{1}').skip(1).collect();
    assert_eq!(outputs.len(), shown.len(), "{said}");
    // The ids of README are of a world of their own; its home is the same.
    let expected: String = shown.iter().map(|shown| format!("$ {}\n{}", shown.command, shown.output)).collect();
    let expected = World::new().mask(&expected.replace("/home/ann", "/world/home"));
    // Other people's mounts below the places that are held are told once.
    let outputs: Vec<String> = outputs.iter().map(|output| without_mounts(output)).collect();
    let found: String = shown.iter().zip(outputs).map(|(shown, output)| format!("$ {}\n{output}", shown.command)).collect();
    assert_same(&with_one_time(expected), &with_one_time(found));
}

fn assert_same(expected: &str, found: &str) {
    if expected != found {
        let diff = similar::TextDiff::from_lines(expected, found);
        panic!("README shows something else:\n{}", diff.unified_diff().header("README.md", "what was said"));
    }
}
