//! The steps of a session, as a tree.
#![allow(clippy::print_stdout, reason = "what is skipped is said")]
#![expect(clippy::disallowed_methods, reason = "tests set up real files")]

mod common;
#[path = "common/desk.rs"]
mod desk;

use common::Said;
use desk::{Desk, Who, each, is_root};
use insta::assert_snapshot;

/// A desk of the user who runs the tests, where what is said is the same for all.
fn own() -> Desk {
    Desk::new(if is_root() { Who::Root } else { Who::User })
}

/// Runs each script as a step of session `s`.
fn stepped(desk: &Desk, scripts: &[&str]) {
    scripts.iter().for_each(|script| drop(desk.held("--session s", script).run()));
}

/// A scene with all that a step can do to what an earlier one did.
const SCRIPTS: [&str; 5] = [
    "echo 2 >> kept; echo new > made; mkdir d; echo in > d/in; echo same > back",
    "echo 3 >> kept; rm made gone; mv d/in d/moved; chmod 700 d/moved; echo again > twice",
    "echo again > made; ln -s kept link; printf 'back\\n' > back; echo other > twice",
    "rm -r d; mkdir other; echo deep > other/deep",
    "echo 5 >> kept; rm link; echo last > link; exit 5",
];

fn scene(desk: &Desk) {
    desk.made_before("printf '1\\n' > kept; printf 'gone\\n' > gone; printf 'back\\n' > back", "back");
    stepped(desk, &SCRIPTS);
}

/// The text of `steps`, with the same time in all lines.
fn tree(said: &Said) -> String {
    let text = said.stdout();
    let shape = |part: &str| part.bytes().map(|b| if b.is_ascii_digit() { b'0' } else { b }).skip(3).collect::<Vec<_>>();
    let is_time = |at: usize| text.get(at..at + 12).is_some_and(|part| shape(part) == *b" 00 00:00");
    let times: Vec<&str> = (0..text.len()).filter(|at| is_time(*at)).map(|at| &text[at..at + 12]).collect();
    times.iter().fold(text.clone(), |text, time| text.replace(time, "Mar 01 10:15"))
}

#[test]
fn steps_are_shown_the_newest_first_with_the_head_marked() {
    let desk = &own();
    scene(desk);
    let said = desk.recant("steps s").ok();
    assert!(said.stdout().lines().all(|line| line.chars().count() <= 80), "{said}");
    assert_snapshot!(tree(&said), @r#"
    * 5 (head)  Mar 01 10:15  exit 5  ~2        sh -c echo 5 >> kept; rm link; echo…
    * 4         Mar 01 10:15          +2 -2     sh -c rm -r d; mkdir other; echo de…
    * 3         Mar 01 10:15          +2 ~2     sh -c "echo again > made; ln -s kep…
    * 2         Mar 01 10:15          +2 ~1 -3  sh -c echo 3 >> kept; rm made gone;…
    * 1         Mar 01 10:15          +3 ~2     sh -c echo 2 >> kept; echo new > ma…
    * 0                                         the tree as it was
    "#);
    let told = desk.recant("steps --json").ok().json();
    assert_eq!((&told["head"], &told["running"]), (&5.into(), &serde_json::Value::Null));
    assert_eq!(told["steps"][0]["ending"]["exited"], 5);
    assert_eq!(
        told["steps"][3]["changes"],
        serde_json::json!({"created": 2, "modified": 1, "deleted": 3, "metadata": 0, "times": 0})
    );
    assert_eq!(desk.recant("steps --jsonl").ok().json_lines().len(), 5);
}

#[test]
fn a_session_of_one_command_has_one_step() {
    let desk = &own();
    desk.run("kill -9 $$; true").with(137);
    desk.run("echo x > f; kill -9 $$").with(137);
    assert_snapshot!(tree(&desk.recant("steps")), @r"
    * 1 (head)  Mar 01 10:15  signal 9  +1  sh -c echo x > f; kill -9 $$
    * 0                                     the tree as it was
    ");
}

#[test]
fn at_most_twenty_steps_are_listed_unless_all_are_asked_for() {
    each(|desk| {
        stepped(desk, &["echo x >> f"; 22]);
        let said = desk.recant("steps s").ok();
        let lines = said.stdout().lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(lines.len() == 21 && lines[0].starts_with("* 22 (head)") && lines[19].starts_with("* 3 "), "{said}");
        let id = desk.id();
        assert_eq!(lines[20], format!("… and 3 more: recant steps {} --all", &id[16..]));
        assert_eq!(desk.recant("steps s --all").ok().stdout().lines().count(), 23);
    });
}

/// Steps 2 and 4 stand on step 1, by records that are written by hand.
#[test]
fn a_branch_is_drawn() {
    let desk = &own();
    stepped(desk, &["echo 1 > a", "echo 2 > b", "echo 3 > c", "echo 4 > d"]);
    let session = desk.world.session(&desk.id());
    let replace = |name: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(session.join(name)).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(session.join(name), text.replace(from, to)).unwrap();
    };
    replace("steps.jsonl", r#""n":4,"on":3"#, r#""n":4,"on":1"#);
    assert_snapshot!(tree(&desk.recant("steps s")), @r"
    * 4 (head)  Mar 01 10:15  +1  sh -c echo 4 > d
    | * 3       Mar 01 10:15  +1  sh -c echo 3 > c
    | * 2       Mar 01 10:15  +1  sh -c echo 2 > b
    |/
    * 1         Mar 01 10:15  +1  sh -c echo 1 > a
    * 0                           the tree as it was
    ");
    replace("session.json", r#""chain":[[1,4]]"#, r#""chain":[[1,3]]"#);
    assert!(tree(&desk.recant("steps s")).contains("| * 3 (head)"), "the head is that of the chain");
}

#[test]
fn a_command_that_runs_is_marked_and_the_steps_before_it_are_shown() {
    let desk = &own();
    stepped(desk, &["echo 1 > a", "echo 2 > a"]);
    let waiting = desk.start("--session s", "echo ready; read go; echo 3 > a");
    assert_snapshot!(tree(&desk.recant("steps s").ok()), @"
    * 3         Mar 01 10:15  running      sh -c echo ready; read go; echo 3 > a
    * 2 (head)  Mar 01 10:15           ~1  sh -c echo 2 > a
    * 1         Mar 01 10:15           +1  sh -c echo 1 > a
    * 0                                    the tree as it was
    ");
    waiting.go();
    assert!(tree(&desk.recant("steps s").ok()).starts_with("* 3 (head)"));
    let id = desk.id();
    let first = desk.start("--session other", "echo ready; read go; echo 1 > b");
    let ids = desk.ids();
    let other = ids.iter().find(|other| **other != id).unwrap();
    assert_snapshot!(tree(&desk.recant(&format!("steps {other}")).ok()), @"
    * 1         Mar 01 10:15  running  sh -c echo ready; read go; echo 1 > b
    * 0 (head)                         the tree as it was
    ");
    first.go();
}

#[test]
fn of_a_session_that_was_imported_the_head_alone_is_shown() {
    let desk = &own();
    stepped(desk, &["echo 1 > a", "echo 2 > a; exit 3"]);
    let stream = desk.recant("session export s").ok().out;
    let there = Desk::new(desk.who);
    let map = format!("{}={}", desk.world.tree().display(), there.world.tree().display());
    there.call(["session", "import", "--map", &map]).stdin(&stream).run().ok();
    assert_snapshot!(tree(&there.recant("steps s")), @"* 1 (head)  Mar 01 10:15  exit 3  +1  sh -c echo 2 > a; exit 3");
}
