//! `review` in a real terminal: a person looks, chooses, confirms, and takes it back. What is done is what the same by flags does.

use crate::ssh;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::agent::{self, Agent};
use crate::common::{self, Manifest, World, can_run};
use crate::terminal::Terminal;
use rustix::process::Signal;
use serde_json::Value;

/// Runs a script in the tree, with its changes held in the session `w`.
fn held(world: &World, script: &str) {
    world.call(["run", "-q", "-n", "w", "--", "sh", "-ec", script]).run().ok();
}

/// Numbers, one a line.
fn numbers(last: usize) -> String {
    (1..=last).map(|n| format!("{n}\n")).collect()
}

/// A world whose session `w` has a change of each kind: two blocks in `a.txt`, and five others.
fn small() -> Option<World> {
    let world = can_run().then(World::new)?;
    world
        .write("a.txt", numbers(40))
        .write("dir/x", "x\n")
        .write("dir/y", "y\n")
        .write("gone", "bye\n")
        .write("tool", "#!/bin/sh\n");
    old(&world);
    held(
        &world,
        "sed -i 's/^3$/three/; s/^30$/thirty/' a.txt; echo more >> dir/x; echo z > dir/z; rm gone; chmod 755 tool; echo n > new",
    );
    Some(world)
}

/// Gives all that is there an old time.
fn old(world: &World) {
    world.program("sh", ["-c", "find . -exec touch -h -d 2020-01-01 {} +"]).run().ok();
}

/// The screen of a session, as it is once it is open.
fn review<'w>(world: &'w World, words: &str) -> Option<Terminal<'w>> {
    let terminal = Terminal::usual(world)?;
    terminal.line(&format!("recant review {words}; echo \"end=$?\""));
    terminal.sees("q quit");
    Some(terminal)
}

/// Answers a question with yes, and waits until it has gone.
#[track_caller]
fn yes(terminal: &Terminal<'_>, question: &str) -> String {
    let asked = terminal.sees(question);
    terminal.keys("y").until("an end of the act", |text| text.contains("j k scroll"));
    asked
}

/// Presses keys that ask something, answers with yes, and leaves the list of what was done. Gives the question.
#[track_caller]
fn act(terminal: &Terminal<'_>, keys: &str, question: &str) -> String {
    terminal.keys(keys);
    let asked = yes(terminal, question);
    leave_text(terminal);
    asked
}

#[track_caller]
fn undo(terminal: &Terminal<'_>) -> String {
    act(terminal, "u", "Undo the last act of this screen?")
}

/// The words of the frame that is laid over the screen, in one line.
fn framed(text: &str) -> String {
    framed_lines(text).iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// The lines of that frame.
fn framed_lines(text: &str) -> Vec<String> {
    let columns = |line: &str| line.chars().collect::<Vec<_>>();
    let Some(top) = text.lines().position(|line| line.contains('┌') && line.contains('┐')) else { return Vec::new() };
    let head = columns(text.lines().nth(top).unwrap_or_default());
    let at = |corner: char| head.iter().position(|c| *c == corner).unwrap_or(0);
    let (left, right) = (at('┌'), at('┐'));
    let inner = |line: &str| columns(line).get(left + 1..right).unwrap_or_default().iter().collect::<String>();
    text.lines().skip(top).map(inner).collect()
}

/// Leaves a list of what was done, if there is one.
fn leave_text(terminal: &Terminal<'_>) -> String {
    let text = terminal.text();
    if text.contains("j k scroll") {
        terminal.keys("q").sees_no("j k scroll");
    }
    text
}

/// Goes to a path in the tree.
#[track_caller]
fn go_to(terminal: &Terminal<'_>, path: &str) {
    terminal.keys("/").sees("Enter look for it");
    terminal.types(path).keys("Enter").until(path, |text| {
        // The head of the difference: right of the tree.
        text.lines().nth(1).is_some_and(|line| line.split('│').nth(1).is_some_and(|head| head.trim_start().starts_with(path)))
    });
}

/// The sessions of a store with their changes, without ids and times of this day.
fn told(world: &World) -> String {
    told_but(world, "")
}

fn told_but(world: &World, but: &str) -> String {
    let list = world.recant("list --all --json").ok().json();
    let mut sessions: Vec<Value> = list["sessions"].as_array().expect("sessions").clone();
    sessions.sort_by_key(|session| session["id"].as_str().map(str::to_owned));
    sessions.sort_by_key(|session| session["created"].as_str().map(str::to_owned));
    let mut text = String::new();
    for session in sessions.iter().filter(|session| session["id"] != but) {
        let shown = world.recant(&format!("show {} --json", session["id"].as_str().expect("an id"))).ok().json();
        let facts: BTreeMap<&str, &Value> =
            ["name", "status", "origin", "changes", "in", "left"].into_iter().map(|key| (key, &session[key])).collect();
        text.push_str(&format!("{}\n", serde_json::to_string(&facts).expect("JSON")));
        for change in shown["changes"].as_array().expect("changes") {
            let mut change = change.clone();
            for side in ["before", "after"] {
                if let Some(state) = change.get_mut(side).and_then(Value::as_object_mut) {
                    // Hashes are known once they were needed.
                    state.remove("hash");
                    if state.get("mtime").is_some_and(|time| !time.to_string().contains("2020-01-01")) {
                        state.remove("mtime");
                    }
                }
            }
            text.push_str(&format!("  {change}\n"));
        }
    }
    text.replace(world.root().to_str().expect("a plain path"), "/world")
}

/// The tree without times of this day.
fn timeless(world: &World) -> Manifest {
    let mut manifest = world.manifest();
    for row in manifest.0.values_mut().filter(|row| row.mtime.0 > 1_600_000_000) {
        row.mtime = (0, 0);
    }
    manifest
}

/// Two worlds stand alike.
#[track_caller]
fn alike(screen: &World, flags: &World, what: &str) {
    alike_but(screen, "", flags, what);
}

/// Two worlds stand alike, but for this session.
#[track_caller]
fn alike_but(screen: &World, but: &str, flags: &World, what: &str) {
    timeless(flags).without_directory_times().assert_same(&timeless(screen).without_directory_times(), what);
    let (a, b) = (told(flags), told_but(screen, but));
    let only = |a: &str, b: &str, sign: &str| {
        let others: BTreeSet<&str> = b.lines().collect();
        a.lines().filter(|line| !others.contains(line)).map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    assert!(a == b, "{what}:\n{}{}", only(&a, &b, "-"), only(&b, &a, "+"));
}

/// 300 changes in a world: a directory of new files, one that is deleted, one of edited files, three blocks of `text`, and `conflict`,
/// which somebody has edited since.
fn three_hundred() -> World {
    let world = World::new();
    for n in 100..200 {
        world.write(format!("edited/f{n}"), format!("old {n}\n")).write(format!("gone/g{n}"), format!("bye {n}\n"));
    }
    world.write("text", numbers(60)).write("conflict", numbers(20));
    old(&world);
    held(
        &world,
        "for f in edited/*; do echo new >> $f; done; rm -r gone; mkdir made; for i in $(seq 100 195); do echo x > made/m$i; done
         sed -i 's/^5$/five/; s/^25$/twenty-five/; s/^45$/forty-five/' text; sed -i 's/^3$/three/' conflict",
    );
    world.write("conflict", numbers(20).replace("15\n", "fifteen\n"));
    old(&world);
    world
}

#[test]
fn a_person_commits_two_blocks_and_a_directory_drops_another_merges_a_conflict_and_takes_it_all_back() {
    if !can_run() {
        return;
    }
    let (screen, flags) = (three_hundred(), three_hundred());
    let before = screen.manifest();
    let Some(terminal) = review(&screen, "w") else { return };
    terminal.sees("300 changes");
    alike(&screen, &flags, "as they begin");
    let head = || flags.recant("steps w --json").ok().json()["head"].to_string();
    let newest = |world: &World| {
        let list = world.recant("list --all --json").ok().json();
        let sessions = list["sessions"].as_array().expect("sessions").clone();
        let newest = sessions.iter().max_by_key(|session| session["created"].as_str().map(str::to_owned));
        newest.expect("a session")["id"].as_str().expect("an id").to_owned()
    };

    go_to(&terminal, "text");
    terminal.keys("Tab").sees("3 blocks");
    terminal.keys("Space ] ] Space").until("two blocks", |text| text.matches("[x]").count() == 2 && text.contains("[ ] 25"));
    terminal.keys("Tab");
    go_to(&terminal, "made");
    terminal.keys("Space").sees("98 chosen");
    let asked = act(&terminal, "c", "Commit 2 blocks of 1 file and 97 changes of 300?");
    assert!(asked.contains("97 created, 1 modified") && asked.contains("text (in part)"), "{asked}");
    terminal.sees("203 changes");
    flags.recant("commit w text:1,3 made").ok();
    let first = newest(&flags);
    alike(&screen, &flags, "two blocks of a file and a directory are committed");

    let head_then = head();
    go_to(&terminal, "gone");
    let asked = act(&terminal, "Space d", "Discard 101 changes of 203?");
    assert!(asked.contains("101 deleted"), "{asked}");
    terminal.sees("102 changes");
    flags.recant("discard w gone").ok();
    alike(&screen, &flags, "a directory is discarded");

    go_to(&terminal, "conflict");
    let asked = act(&terminal, "Space m", "Merge 1 change of 102?");
    assert!(asked.contains("1 of these has changed on the tree since: that is a conflict"), "{asked}");
    go_to(&terminal, "conflict");
    act(&terminal, "Space c", "Commit 1 change of 102?");
    terminal.sees("101 changes");
    // By flags a path that is committed alone is no session of its own: the tree is the same.
    let merging = three_hundred();
    for words in ["commit w text:1,3 made", "discard w gone", "commit w --merge conflict"] {
        merging.recant(words).ok();
    }
    assert!(screen.read("conflict").contains("three\n") && screen.read("conflict").contains("fifteen\n"));
    let tree = |world: &World| timeless(world).without_directory_times();
    tree(&merging).assert_same(&tree(&screen), "a conflict is merged and committed");
    let merged = newest(&screen);

    let undo = |what: &str| {
        let asked = undo(&terminal);
        assert!(asked.contains(what), "{what}: {asked}");
    };
    undo("commit of ");
    undo("merge of ");
    terminal.sees("102 changes");
    alike_but(&screen, &merged, &flags, "the merge is taken back");
    undo("discard of ");
    terminal.sees("203 changes");
    flags.recant(&format!("rewind w {head_then}")).ok();
    alike_but(&screen, &merged, &flags, "the discard is taken back");
    undo("commit of ");
    terminal.sees("300 changes");
    flags.recant(&format!("rollback {first}")).ok();
    flags.recant("rewind w 1").ok();
    alike_but(&screen, &merged, &flags, "all is taken back");
    before.assert_same(&screen.manifest(), "all was taken back on the screen");
    terminal.keys("u").sees("nothing was done in this screen that can be undone");
    let left = terminal.keys("q").sees("end=0");
    assert!(left.contains("which holds the rest: 203 changes"), "{left}");
    screen.assert_tidy("the screen has gone");
}

#[test]
fn what_is_confirmed_is_what_was_seen_also_if_the_tree_changes_before_the_answer() {
    let Some(world) = small() else { return };
    let Some(terminal) = review(&world, "w") else { return };
    go_to(&terminal, "a.txt");
    terminal.keys("Space c").sees("Commit 1 change of 6?");
    world.write("a.txt", "somebody's\n");
    let (tree, sessions) = (world.manifest(), told(&world));
    terminal.keys("y");
    let asked = framed(&terminal.sees("Nothing was done."));
    assert!(asked.contains("a.txt: it, or the file on the tree, changed since it was shown"), "{asked}");
    assert!(asked.contains("Commit 1 change of 6?") && asked.contains("n no, back"), "it asks again: {asked}");
    tree.assert_same(&world.manifest(), "nothing was done");
    assert_eq!(told(&world), sessions);
    // Confirmed again, it is a conflict, as it would be by flags.
    terminal.keys("y").sees("changed");
    terminal.sees_no("n no, back");
    tree.assert_same(&world.manifest(), "a conflict is not committed");
    assert_eq!(told(&world), sessions);
}

#[test]
fn an_agent_commits_nothing_on_the_screen() {
    let Some(mut world) = small() else { return };
    world.set("CLAUDECODE", "1");
    let tree = world.manifest();
    let Some(terminal) = review(&world, "w") else { return };
    go_to(&terminal, "a.txt");
    terminal.keys("Space c").sees("Commit 1 change of 6?");
    let said = framed(&terminal.keys("y").sees("CLAUDECODE is set"));
    assert!(said.contains("a person decides what becomes real"), "{said}");
    tree.assert_same(&world.manifest(), "nothing was done");
}

#[test]
fn what_is_confirmed_is_what_was_seen_also_if_the_session_changes_before_the_answer() {
    let Some(world) = small() else { return };
    let Some(terminal) = review(&world, "w") else { return };
    terminal.keys("A").sees("6 chosen");
    terminal.keys("c").sees("Commit 6 changes of 6?");
    world.recant("discard w dir/x").ok();
    let tree = world.manifest();
    terminal.keys("y");
    let asked = framed(&terminal.sees("Nothing was done."));
    assert!(asked.contains("dir/x: the session holds no change there any more"), "{asked}");
    assert!(asked.contains("Commit 5 changes of 5?"), "it asks again, for what is left: {asked}");
    tree.assert_same(&world.manifest(), "nothing was done");
    terminal.keys("n").sees("nothing was changed");
    tree.assert_same(&world.manifest(), "no is no");
    assert_eq!(world.status("w"), "pending");
    act(&terminal, "c", "Commit 5 changes of 5?");
    terminal.sees("committed");
    assert_eq!((world.status("w"), world.read("new"), world.read("dir/x")), ("committed".into(), "n\n".into(), "x\n".into()));
}

#[test]
fn a_session_that_runs_is_shown_live_and_only_looked_at() {
    let Some(world) = can_run().then(World::new) else { return };
    let Some(terminal) = Terminal::usual(&world) else { return };
    world.mkdir("d");
    let script = "echo one > d/first; read told; echo two > d/second; read told";
    let mut command = world.call(["run", "-q", "-n", "w", "--", "sh", "-c", script]).command();
    let mut run = command.stdin(Stdio::piped()).spawn().expect("a run");
    let mut tell = run.stdin.take().expect("a pipe");
    let end = Instant::now() + Duration::from_secs(20);
    while !world.recant("diff w --name-only").stdout().contains("first") {
        assert!(Instant::now() < end, "the run does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    terminal.line("recant review w").sees("q quit");
    let shown = terminal.sees("first");
    assert!(shown.contains("running") && shown.contains("1 change ") && !shown.contains("second"), "{shown}");
    for key in ["c", "d", "r", "m", "Space", "a", "A"] {
        terminal.keys("Down").sees_no("until it ends");
        terminal.keys(key).sees("a command runs in session");
    }
    terminal.sees("until it ends, it can only be looked at");
    tell.write_all(b"go on\n").expect("somebody reads");
    let shown = terminal.sees("second");
    assert!(shown.contains("running") && shown.contains("2 changes"), "{shown}");
    tell.write_all(b"go on\n").expect("somebody reads");
    assert!(run.wait().expect("its end").success());
    let shown = terminal.sees("pending");
    assert!(shown.contains("c commit") && shown.contains("[ ]"), "{shown}");
    assert!(!world.exists("d/first"));
}

#[test]
fn a_block_a_directory_and_all_that_is_committed_go_back_and_come_again() {
    let Some(world) = small() else { return };
    let before = world.manifest();
    world.recant("commit w").ok();
    let after = world.manifest();
    let Some(terminal) = review(&world, "w") else { return };
    terminal.sees("r roll back");
    terminal.keys("c").sees("nothing of session");
    let again = |what: &str| {
        undo(&terminal);
        after.assert_same(&world.manifest(), what);
    };
    go_to(&terminal, "a.txt");
    terminal.keys("Tab").sees("2 blocks");
    act(&terminal, "] Space r", "Roll back 1 block of 1 file of 6?");
    assert_eq!(world.read("a.txt"), numbers(40).replace("\n3\n", "\nthree\n"));
    again("a block came again");
    terminal.keys("q");
    go_to(&terminal, "dir/x");
    terminal.keys("Left Space").sees("2 chosen");
    act(&terminal, "r", "Roll back 2 changes of 6?");
    assert!(world.read("dir/x") == "x\n" && !world.exists("dir/z") && world.read("new") == "n\n");
    again("a directory came again");
    terminal.keys("A").sees("6 chosen");
    act(&terminal, "r", "Roll back 6 changes of 6?");
    before.assert_same(&world.manifest(), "all went back");
    assert_eq!(world.status("w"), "rolled_back");
    again("all came again");
    assert_eq!(world.status("w"), "committed");
}

#[test]
fn of_a_part_that_is_on_the_tree_the_rest_is_committed_and_what_was_rolled_back_is_committed_again() {
    let Some(world) = small() else { return };
    world.recant("commit w").ok();
    let after = world.manifest();
    world.recant("rollback w dir/x gone").ok();
    let in_part = world.manifest();
    let Some(terminal) = review(&world, "w") else { return };
    let shown = terminal.sees("committed, 2 of 6 taken back");
    assert!(shown.contains("c commit") && shown.contains("r roll back"), "{shown}");
    assert_eq!(shown.matches('✓').count(), 4, "{shown}");
    act(&terminal, "A c", "Commit 2 changes of 6?");
    after.assert_same(&world.manifest(), "the rest is committed");
    undo(&terminal);
    in_part.assert_same(&world.manifest(), "and back");
    terminal.sees("committed, 2 of 6 taken back");
    terminal.keys("q").sees("end=0");
    world.recant("rollback w").ok();
    let rolled = world.manifest();
    terminal.line("clear").line("recant review w").sees("rolled back");
    go_to(&terminal, "new");
    act(&terminal, "Space c", "Commit 1 change of 6?");
    assert_eq!((world.status("w"), world.read("new")), ("committed".into(), "n\n".into()));
    undo(&terminal);
    rolled.assert_same(&world.manifest(), "it was rolled back before");
    assert_eq!(world.status("w"), "rolled_back");
}

#[test]
fn a_discarded_session_is_refused_and_an_imported_one_is_committed_and_taken_back() {
    let Some(world) = small() else { return };
    let stream = world.recant("session export w").ok().out;
    world.recant("discard w --now -y").ok();
    let Some(terminal) = Terminal::usual(&world) else { return };
    terminal.line("recant review w; echo \"end=$?\"").sees("end=1");
    let before = world.manifest();
    world.recant("prune --sessions w -y").ok();
    world.call(["session", "import"]).stdin(stream).run().ok();
    terminal.line("clear").line("recant review").sees("6 changes");
    act(&terminal, "A c", "Commit 6 changes of 6?");
    terminal.sees("committed");
    assert_eq!(world.read("new"), "n\n");
    undo(&terminal);
    before.assert_same(&world.manifest(), "an imported session was taken back");
}

#[test]
fn two_sessions_are_compared_and_only_looked_at() {
    let Some(world) = small() else { return };
    world.call(["run", "-q", "-n", "v", "--", "sh", "-ec", "sed -i 's/^3$/drei/' a.txt; echo z > dir/z"]).run().ok();
    let before = told(&world);
    let Some(terminal) = review(&world, "w --with v") else { return };
    go_to(&terminal, "a.txt");
    let shown = terminal.sees("+drei");
    assert!(shown.contains("-three") && shown.contains("sessions ") && !shown.contains("[ ]"), "{shown}");
    for key in ["c", "d", "r", "m", "Space"] {
        terminal.keys("Down").sees_no("can only");
        terminal.keys(key).sees("it can only be looked at");
    }
    terminal.keys("e").sees("can be edited");
    assert_eq!(told(&world), before);
}

#[test]
fn steps_are_looked_at_and_gone_back_to() {
    let Some(world) = small() else { return };
    world.call(["run", "-q", "--session", "w", "--", "sh", "-ec", "echo second > later"]).run().ok();
    let head = || world.recant("steps w --json").ok().json()["head"].as_u64().expect("a step");
    let tree = world.manifest();
    let Some(terminal) = review(&world, "w") else { return };
    terminal.sees("7 changes");
    let list = terminal.keys("s").sees("Steps, the newest first");
    assert!(list.contains("* 2") && list.contains("the tree as it was"), "{list}");
    let step = terminal.keys("Enter").sees("step 2");
    assert!(step.contains("1 change ") && step.contains("later") && !step.contains("dir/"), "{step}");
    terminal.keys("Space").sees("it can only be looked at");
    terminal.keys("q").sees("7 changes");
    terminal.keys("s").sees("Steps, the newest first");
    act(&terminal, "Down r", "to step 1?");
    terminal.sees("6 changes");
    assert_eq!(head(), 1);
    undo(&terminal);
    terminal.sees("7 changes");
    assert_eq!(head(), 2);
    tree.assert_same(&world.manifest(), "steps touch nothing on the tree");
}

#[test]
fn chosen_files_come_back_from_a_snapshot_and_go_again() {
    let world = World::new();
    world.write("p/a", "a\n").write("p/b", "b\n").write("p/c", "c\n");
    old(&world);
    world.recant("snapshot create p").ok();
    world.write("p/a", "other\n").remove("p/b").write("p/new", "new\n");
    let changed = world.manifest();
    let Some(terminal) = review(&world, "--snapshot 0 --dir p") else { return };
    let shown = terminal.sees("against what is there now");
    assert!(shown.contains("3 changes") && shown.contains("r restore") && !shown.contains("c commit"), "{shown}");
    terminal.keys("c").sees("nothing of snapshot 0 can be committed");
    for name in ["p/a", "p/b"] {
        go_to(&terminal, name);
        terminal.keys("Space");
    }
    terminal.sees("2 chosen");
    act(&terminal, "r", "Restore 2 changes of 3?");
    terminal.sees("1 change ");
    assert_eq!((world.read("p/a"), world.read("p/b"), world.read("p/new")), ("a\n".into(), "b\n".into(), "new\n".into()));
    undo(&terminal);
    terminal.sees("3 changes");
    changed.assert_same(&world.manifest(), "the restore was taken back");
    // What changed since it was shown is not restored.
    go_to(&terminal, "p/a");
    terminal.keys("Space r").sees("Restore 1 change of 3?");
    world.write("p/a", "third\n");
    terminal.keys("y").sees("p/a: it changed since it was shown");
    assert_eq!(world.read("p/a"), "third\n");
}

#[test]
fn turns_of_an_agent_are_looked_at_and_undone() {
    let Some(world) = small() else { return };
    agent::repository(&world);
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("begin");
    agent.edit("one", "1\n");
    agent.stop();
    agent::pause();
    agent.prompt("change the number");
    agent.edit("one", "2\n");
    agent.stop();
    let Some(terminal) = review(&world, "w") else { return };
    let list = terminal.keys("t").sees("Turns of agents, the newest first");
    assert!(list.contains("change the number") && list.contains("claude"), "{list}");
    let turn = terminal.keys("Enter").sees("turn 2 of claude");
    assert!(turn.contains("one") && turn.contains("1 change "), "{turn}");
    terminal.keys("q").sees("6 changes");
    terminal.keys("t").sees("Turns of agents, the newest first");
    act(&terminal, "r", "Undo turn 2 and the later ones?");
    assert_eq!(world.read("one"), "1\n");
    undo(&terminal);
    assert_eq!(world.read("one"), "2\n");
}

#[test]
fn without_a_terminal_that_can_be_drawn_on_it_is_refused_with_2() {
    let world = World::new();
    world.edited("a");
    let said = world.recant("review").with(2);
    assert!(said.stderr().contains("review is a screen, and there is no terminal"), "{said}");
    world.recant("review --json").with(2);
    let Some(terminal) = Terminal::open(&world, 79, 24) else { return };
    let tried = |line: &str, status: i32, why: &str| {
        let end = format!("end={status}");
        let shown = terminal.line(&format!("clear; {line}; echo \"end=$?\"")).until(&end, |text| {
            text.lines().any(|line| line.starts_with(&end)) && text.split_whitespace().collect::<Vec<_>>().join(" ").contains(why)
        });
        let shown = shown.replace('\n', " ");
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(why) && terminal.is_whole(), "{line}: {words}");
    };
    tried("recant review", 2, "the window has 79 columns and 24 rows, and review needs 80 and 24");
    terminal.resize(80, 24);
    tried("TERM=dumb recant review", 2, "review needs a terminal that can draw");
    tried("TERM= recant review", 2, "review needs a terminal that can draw");
    tried("recant review --json", 2, "review is a screen, and prints no JSON");
    tried("recant review nothing", 1, "nothing");
    tried("recant review | cat; false", 1, "there is no terminal");
}

#[test]
fn a_window_that_becomes_too_small_says_so_and_all_is_there_again_when_it_grows() {
    let Some(world) = small() else { return };
    let Some(terminal) = review(&world, "w") else { return };
    go_to(&terminal, "a.txt");
    let before = terminal.keys("Space").sees("1 chosen");
    terminal.resize(60, 20).sees("The window has 60 columns and 20 rows.");
    terminal.sees("recant review needs 80 and 24");
    // Nothing is done that nobody sees.
    terminal.keys("c y Space");
    terminal.resize(80, 24).sees("1 chosen");
    terminal.until("all as before", |text| text == before);
    assert_eq!(world.status("w"), "pending");
    terminal.resize(140, 40).sees("q quit");
    terminal.keys("Tab |").until("the sides beside each other and the tree", |text| {
        text.lines().any(|line| line.contains("-3") && line.contains("+three")) && text.contains("dir/")
    });
    terminal.resize(60, 20).sees("recant review needs");
    terminal.keys("q").sees("end=0");
}

#[test]
fn the_terminal_is_whole_however_the_screen_ends() {
    let Some(world) = small() else { return };
    let Some(terminal) = Terminal::usual(&world) else { return };
    let modes = |name: &str| {
        terminal.line(&format!("clear; stty -g > ../{name}; echo do''ne")).until("done", |text| text.starts_with("done"));
        world.read(world.root().join(name))
    };
    let before = modes("before");
    let opened = |line: &str| {
        terminal.line("clear").line(line).sees("q quit");
        assert_eq!(terminal.asked("#{cursor_flag} #{alternate_on}"), "0 1", "the screen has the terminal");
    };
    let ends = |how: &str, status: i32, leave: &dyn Fn()| {
        opened("recant review w");
        leave();
        terminal.until("the shell again", |text| terminal.is_whole() && text.contains('$'));
        // A shell goes on with no line whose command SIGINT ended.
        terminal.line("echo \"end=$?\"");
        let shown = terminal.sees(&format!("end={status}"));
        assert!(terminal.is_whole(), "{how}: {shown}");
        assert_eq!(modes("after"), before, "{how}: {shown}");
    };
    let signal = |signal: Signal| {
        let terminal = &terminal;
        move || terminal.kill("recant", signal)
    };
    ends("q", 0, &|| {
        terminal.keys("q");
    });
    ends("Ctrl-C", 0, &|| {
        terminal.keys("C-c");
    });
    ends("SIGTERM", 143, &signal(Signal::TERM));
    ends("SIGHUP", 129, &signal(Signal::HUP));
    ends("SIGINT", 130, &signal(Signal::INT));
    ends("SIGTERM at a question", 143, &|| {
        terminal.keys("A c").sees("Commit 6 changes");
        terminal.kill("recant", Signal::TERM);
    });
    if cfg!(feature = "crash-points") {
        opened("RECANT_PANIC=1 recant review w; echo \"end=$?\"");
        let shown = terminal.keys("C-l").sees("end=101");
        assert!(shown.contains("a test asked for a panic") && terminal.is_whole(), "{shown}");
        assert_eq!(modes("after"), before, "a panic");
    }
    opened("recant review w");
    terminal.keys("C-z").sees("Stopped");
    assert!(terminal.is_whole());
    assert_eq!(modes("after"), before, "stopped");
    terminal.line("fg").sees("q quit");
    assert_eq!(terminal.asked("#{cursor_flag} #{alternate_on}"), "0 1", "and back");
    terminal.keys("q").until("the shell again", |text| !text.contains("q quit"));
    terminal.line("echo \"end=$?\"").sees("end=0");
    assert_eq!(modes("after"), before, "after it was stopped");
    assert_eq!(world.status("w"), "pending");
}

#[test]
fn an_editor_and_a_tool_have_the_terminal_and_give_it_back() {
    let Some(mut world) = small() else { return };
    let script = |name: &str, text: &str| {
        let path = world.root().join(name);
        world.write(&path, format!("#!/bin/sh\n{text}\n")).chmod(&path, 0o755);
        path
    };
    // Both show what terminal they have, and wait for the person.
    let waits = "echo \"in $0: $(stty | grep -c -e -icanon)\"; read line";
    let editor = script("editor", &format!("{waits}; echo \"$line\" >> \"$1\""));
    let tool = script("tool", &format!("cat \"$NEW\" | head -n 3; {waits}"));
    world.config(&format!("[diff]\ntool = '{}'\n", tool.display()));
    world.set("EDITOR", editor);
    let tree = world.manifest();
    let Some(terminal) = review(&world, "w") else { return };
    terminal.keys("e").sees("this is a directory");
    go_to(&terminal, "new");
    let shown = terminal.keys("e").sees("editor: 0");
    assert!(terminal.is_whole(), "{shown}");
    terminal.line("typed").sees("holds the edited");
    assert_eq!(terminal.asked("#{cursor_flag} #{alternate_on}"), "0 1");
    leave_text(&terminal);
    terminal.sees("+typed");
    let held = world.recant("cat w new").ok().stdout();
    assert_eq!(held, "n\ntyped\n");
    let shown = terminal.keys("D").sees("tool: 0");
    assert!(terminal.is_whole() && shown.contains("typed"), "{shown}");
    terminal.keys("Enter").sees("q quit");
    undo(&terminal);
    terminal.sees_no("+typed");
    assert_eq!(world.recant("cat w new").ok().stdout(), "n\n");
    // What the editor leaves as it was is no edit.
    world.write(world.root().join("editor"), "#!/bin/sh\ntrue\n");
    terminal.keys("e").sees("nothing was edited");
    leave_text(&terminal);
    terminal.keys("u").sees("nothing was done in this screen that can be undone");
    terminal.keys("q").sees("end=0");
    tree.assert_same(&world.manifest(), "nothing on the tree was touched");
    let ours = format!("recant-{}-", std::process::id());
    let mut left = std::fs::read_dir(std::env::temp_dir()).expect("a directory").flatten();
    assert!(left.all(|entry| !entry.file_name().to_string_lossy().starts_with(&ours)));
}

#[test]
fn without_colour_signs_are_there_and_no_codes_for_colours() {
    let Some(world) = small() else { return };
    let Some(terminal) = Terminal::usual(&world) else { return };
    // Select graphic rendition, ECMA-48 8.3.117: 30 to 49 and 90 to 107 are colours, but for 39 and 49: none.
    let has_colors = |text: &str| {
        let codes = text.split("\u{1b}[").skip(1).filter_map(|rest| rest.split_once('m')).flat_map(|(codes, _)| codes.split(';'));
        codes
            .filter_map(|code| code.parse::<u32>().ok())
            .any(|code| (30..50).contains(&code) && code % 10 != 9 || (90..108).contains(&code))
    };
    for (line, colors) in [
        ("recant review w", true),
        ("NO_COLOR=1 recant review w", false),
        ("recant --color never review w", false),
        ("NO_COLOR=1 recant --color always review w", true),
    ] {
        terminal.line("clear").line(line).sees("q quit");
        go_to(&terminal, "a.txt");
        let shown = terminal.sees("+three");
        assert!(shown.contains("-3") && shown.contains("[ ]") && shown.contains("- gone") && shown.contains("+ new"), "{shown}");
        assert_eq!(has_colors(&terminal.styled()), colors, "{line}");
        terminal.keys("q").sees_no("q quit");
    }
}

#[test]
fn what_no_terminal_should_get_is_shown_in_signs() {
    let Some(world) = can_run().then(World::new) else { return };
    world
        .write("crlf", "one\r\ntwo\r\n")
        .write("mode", "m\n")
        .write("tabs", "a\tb\n")
        .write("no-end", "one\ntwo")
        .write("long", "x\n");
    world.write("binary", b"\0\x01\x02 before").symlink("before", "link").mkdir("owned").write("attr", "a\n");
    old(&world);
    let xattrs = world.set_xattr("attr", "user.seen", "before");
    let awkward: [&[u8]; 5] =
        [b"bell\x07\x1b[2Jname", "bidi\u{202e}txt".as_bytes(), b"bytes\xff\xfe", b"new\nline", "z\u{feff}ero".as_bytes()];
    let mut script = String::from(
        "printf 'one\\ntwo\\r\\n' > crlf; chmod 600 mode; printf 'a\\tc\\n' > tabs; printf 'one\\nthree' > no-end
         head -c 5000 /dev/zero | tr '\\0' y > long; printf '\\0\\1\\3 after' > binary; ln -sfn after link; mkfifo fifo
         printf 'esc \\033]0;title\\007 \\033[31mred \\302\\233 c1 \\342\\200\\256 bidi\\n' > content; long=$(printf %0200d 7); echo l > $long\n",
    );
    if xattrs {
        script.push_str("setfattr -n user.seen -v after attr 2>/dev/null || echo changed >> attr\n");
    }
    let is_root = common::is_root("an owner");
    if is_root {
        script.push_str("chown 4444:5555 owned\n");
    }
    let words = ["run", "-q", "-n", "w", "--", "sh", "-ec"].map(std::ffi::OsString::from);
    let make = std::ffi::OsString::from(script + "for n do echo made > \"$n\"; done");
    let names = awkward.iter().map(|bytes| common::name(bytes));
    let all = words.into_iter().chain([make, "sh".into()]).chain(names);
    world.call(all).run().ok();
    let Some(terminal) = review(&world, "w") else { return };
    terminal.resize(120, 50).until("the new size", |text| text.lines().nth(49).is_some_and(|line| line.contains("q quit")));
    let tree = terminal.until("all names", |text| text.contains("bell") && text.contains("tabs"));
    let names = r"bell\007\033[2Jname bidi\342\200\256txt bytes\377\376 new\nline z\357\273\277ero fifo link 0000";
    for shown in names.split(' ') {
        assert!(tree.contains(shown), "{shown}:\n{tree}");
    }
    let raw = |text: &str| {
        let is_raw =
            |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        text.chars().any(is_raw)
    };
    let at = |path: &str, wanted: &[&str]| {
        terminal.keys("/").sees("Enter look for it");
        terminal.types(path).keys("Enter");
        let shown = terminal.until(path, |text| wanted.iter().all(|wanted| text.contains(wanted)));
        assert!(!raw(&shown), "{path}: {shown:?}");
    };
    at("crlf", &["-one^M", "+one"]);
    at("mode", &["0600"]);
    at("tabs", &["-a   b", "+a   c"]);
    at("no-end", &["-two (no newline at the end)", "+three (no newline at the end)"]);
    at("long", &["yyyyyyyyyyyyyyyyyyyyyyyyy"]);
    at("binary", &["binary: ", "first difference at byte 2 (0x2)", "00000000  00 01 03"]);
    at("link", &["-> before", "-> after"]);
    at("fifo", &["FIFO"]);
    at("content", &["esc ", "title", "red", "c1", "bidi"]);
    at("bell", &["+made"]);
    if is_root {
        at("owned", &["4444"]);
    }
    assert!(!terminal.asked("#{pane_title}").contains("title"), "no sequence of a content reaches the terminal");
    assert_eq!(terminal.asked("#{window_bell_flag}"), "0");
    let end = terminal.keys("g G").text();
    assert!(!raw(&end), "{end:?}");
}

#[test]
fn on_another_machine_the_screen_comes_up_there_and_acts_there() {
    let Some(mut world) = can_run().then(World::new) else { return };
    let Some(net) = ssh::Net::new(&mut world) else { return };
    let host = net.host("web1");
    host.write("app.conf", "port = 80\n");
    let id = world.recant("-H web1 session new -n upgrade").ok().id();
    world.call(["-H", "web1", "session", "write", &id, "app.conf"]).stdin("port = 81\n").run().ok();
    let Some(terminal) = Terminal::usual(&world) else { return };
    terminal.line("stty -g > ../before; recant -H web1 review upgrade; echo \"end=$?\"");
    let shown = terminal.sees("q quit");
    assert!(shown.contains("upgrade") && shown.contains("app.conf"), "{shown}");
    act(&terminal, "A c", "Commit 1 change of 1?");
    terminal.sees("committed");
    assert_eq!(host.read("app.conf"), "port = 81\n");
    undo(&terminal);
    assert_eq!(host.read("app.conf"), "port = 80\n");
    terminal.resize(100, 30).until("the new size", |text| text.lines().nth(29).is_some_and(|line| line.contains("q quit")));
    terminal.keys("q").sees("end=0");
    assert!(terminal.is_whole());
    terminal.line("clear; stty -g > ../after; echo do''ne").until("done", |text| text.starts_with("done"));
    assert_eq!(world.read(world.root().join("after")), world.read(world.root().join("before")));
    assert!(!world.store().exists(), "the near side has made a store");
}

#[test]
fn of_many_deletions_each_can_be_seen_in_the_list_and_in_the_question() {
    all_are_seen_of(400);
}

#[test]
#[ignore = "long: hundreds of pages"]
fn of_three_thousand_deletions_each_can_be_seen_in_the_list_and_in_the_question() {
    all_are_seen_of(3000);
}

fn all_are_seen_of(count: usize) {
    let Some(world) = can_run().then(World::new) else { return };
    world.program("sh", ["-c", &format!("mkdir gone; cd gone; seq -f f%04.0f 1 {count} | xargs touch")]).run().ok();
    held(&world, "rm -r gone");
    let Some(terminal) = review(&world, "w") else { return };
    terminal.sees(&format!("{} changes", count + 1));
    terminal.sees("f0001");
    let last = format!("f{count:04}");
    terminal.keys("G").sees(&last);
    let mut seen = BTreeSet::new();
    let mut note = |text: &str| {
        let names = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() == 5 && word.starts_with('f'));
        seen.extend(names.map(str::to_owned));
    };
    terminal.keys("g").sees("f0001");
    // A page is 20 rows of 80×24.
    for n in 0.. {
        assert!(n < 200, "no end of the list");
        let text = terminal.settled();
        note(&text);
        if text.contains(&last) {
            break;
        }
        terminal.keys("PageDown").until("another page", |now| now != text && now.contains("q quit"));
    }
    assert_eq!(seen.len(), count, "in the list");
    seen.clear();
    terminal.keys("A c").sees(&format!("Commit {0} changes of {0}?", count + 1));
    for n in 0.. {
        assert!(n < 2000, "no end of the question");
        let text = terminal.settled();
        let frame = framed(&text);
        frame.split(' ').filter_map(|path| path.strip_prefix("gone/")).for_each(|name| {
            seen.insert(name.to_owned());
        });
        if !frame.contains("more lines: j") {
            break;
        }
        terminal.keys("PageDown").until("further lines", |now| now != text);
    }
    assert_eq!(seen.len(), count, "in the question");
}

#[test]
fn each_key_does_what_the_help_says() {
    let Some(world) = small() else { return };
    let Some(terminal) = review(&world, "w") else { return };
    let mut pressed = BTreeSet::new();
    let mut press = |name: &'static str, key: &str, wanted: &str| {
        pressed.insert(name);
        terminal.keys(key).sees(wanted);
    };
    // In the tree: the rows are ./, a.txt, dir/, dir/x, dir/z, gone, new, tool.
    terminal.sees("6 in this directory");
    press("j ↓", "j", "2 blocks");
    press("j ↓", "Down", "2 in this directory");
    press("k ↑", "k", "2 blocks");
    press("k ↑", "Up", "6 in this directory");
    press("G", "G", "metadata alone");
    press("g", "g", "6 in this directory");
    press("G", "End", "metadata alone");
    press("g", "Home", "6 in this directory");
    press("PgDn", "PageDown", "metadata alone");
    press("PgUp", "PageUp", "6 in this directory");
    press("j ↓", "j j", "▾ dir/");
    press("←", "Left", "▸ dir/");
    press("→", "Right", "▾ dir/");
    press("Enter", "Enter", "▸ dir/");
    press("Enter", "Enter", "▾ dir/");
    press("j ↓", "j", "dir/x");
    press("←", "h", "2 in this directory");
    press("o", "o", "ordered by size");
    press("o", "o", "ordered by kind");
    press("o", "o", "ordered by path");
    press("s", "s", "Steps, the newest first");
    press("q", "q", "q quit");
    press("t", "t", "there are no turns of agents");
    press("i", "i", "Not among the changes");
    press("q", "Escape", "q quit");
    press("←", "h", "2 in this directory");
    press("D", "D", "this is a directory");
    press("e", "e", "this is a directory");
    press("u", "u", "nothing was done in this screen");
    press("r", "r", "nothing of session");
    press("/", "/", "Enter look for it");
    terminal.types("a.t").keys("Enter").sees("2 blocks");
    press("Tab", "Tab", "] next block");
    press("]", "]", "┃");
    press("Space", "Space", "[x] 30");
    press("[", "[", "[ ]  3");
    press("Space", "Space", "[x]  3");
    press("l", "l", "Space chooses a line");
    press("Space", "Space", "[ ]  3");
    press("l", "l", "Space chooses a block");
    press("/", "/", "Enter look for it");
    terminal.types("THIR").keys("Enter").sees("no line here has \"THIR\"");
    press("/", "/", "Enter look for it");
    terminal.types("thir").keys("Enter");
    press("n", "n", "+thirty");
    press("N", "N", "+thirty");
    press("|", "|", "the sides beside each other");
    terminal.until("beside each other", |text| text.lines().any(|line| line.contains("-30") && line.contains("+thirty")));
    press("|", "|", "the sides below each other");
    press("→", "Right", "] next block");
    terminal.sees_no("three");
    press("←", "Left", "three");
    press("a", "a", "[x]  3");
    press("q", "q", "q quit");
    press("v", "v", "a.txt");
    terminal.sees_no("tool");
    press("v", "v", "tool");
    press("A", "A", "6 chosen");
    press("c", "c", "Commit 6 changes of 6?");
    press("q", "n", "nothing was changed");
    press("d", "d", "Discard 6 changes of 6?");
    press("q", "Escape", "nothing was changed");
    press("m", "m", "Merge 6 changes of 6?");
    press("q", "q", "nothing was changed");
    terminal.resize(100, 70).sees("q quit");
    let help = framed_lines(&terminal.keys("?").sees("everything"));
    let names: BTreeSet<&str> = help
        .iter()
        .take_while(|line| !line.starts_with(" Signs"))
        .filter_map(|line| line.strip_prefix("   "))
        .filter_map(|line| line.get(..8).or(line.split_once("  ").map(|(name, _)| name)))
        .map(str::trim)
        .collect();
    pressed.insert("?");
    assert_eq!(pressed, names, "each key that the help names was pressed");
    terminal.keys("q q").sees("end=0");
    assert_eq!(world.status("w"), "pending");
}

#[test]
fn a_large_session_is_opened_without_reading_its_contents() {
    let Some(world) = can_run().then(World::new) else { return };
    held(&world, "mkdir made; cd made; seq 1 3000 | xargs -n 1 -I N sh -c 'echo N > N'");
    let Some(terminal) = Terminal::usual(&world) else { return };
    if world.program("strace", ["-V"]).run().status != 0 {
        return common::skip("strace is not installed");
    }
    terminal
        .line("strace -f -qq -e trace=open,openat,openat2 -o ../opened recant review w; echo \"end=$?\"")
        .sees("3001 changes");
    terminal.keys("Down Down").sees("made/1");
    terminal.keys("q").sees("end=0");
    let opened = world.read(world.root().join("opened")).lines().count();
    assert!(opened < 600, "{opened} files were opened for 3001 changes");
}

/// The steps of a session, by the commands of all of them.
fn head(world: &World) -> u64 {
    world.recant("steps w --json").ok().json()["head"].as_u64().expect("a head")
}

#[test]
fn an_undo_rewinds_over_no_step_that_came_since() {
    let Some(world) = small() else { return };
    let Some(terminal) = review(&world, "w") else { return };
    go_to(&terminal, "new");
    let asked = act(&terminal, "d", "Discard 1 change of 6?");
    assert!(asked.contains("u takes it back"), "{asked}");
    terminal.sees("5 changes");
    world.call(["run", "-q", "--session", "w", "--", "sh", "-c", "echo outside > later"]).run().ok();
    terminal.sees("later");
    let stands = head(&world);
    terminal.keys("u");
    yes(&terminal, "Undo the last act of this screen?");
    assert!(framed(&terminal.sees("has gone on since")).contains("nothing was changed"));
    assert_eq!(head(&world), stands, "what was done outside is held");
    leave_text(&terminal);
    // Back at the step that the act led to, it is undone.
    world.recant(&format!("rewind w {}", stands - 1)).ok();
    terminal.sees("5 changes");
    undo(&terminal);
    terminal.sees("6 changes");
    terminal.keys("q").sees("end=0");
}

#[test]
fn an_undo_takes_back_what_its_act_did_and_nothing_that_was_committed_before() {
    let Some(world) = can_run().then(World::new) else { return };
    world.write("m/x", "1\n").write("m/y", "1\n");
    old(&world);
    held(&world, "chmod 700 m; echo two >> m/x; echo two >> m/y");
    world.recant("commit w").ok();
    world.recant("rollback w m").ok();
    world.recant("redo w m/x").ok();
    let before = world.manifest().without_directory_times();
    let Some(terminal) = review(&world, "w") else { return };
    act(&terminal, "A c", "Commit 2 changes of 3?");
    terminal.sees("committed");
    assert_eq!(world.read("m/y"), "1\ntwo\n");
    undo(&terminal);
    terminal.keys("q").sees("end=0");
    before.assert_same(&world.manifest().without_directory_times(), "m/x stays committed");
}

#[test]
fn a_directory_alone_takes_nothing_along_that_lies_in_it() {
    let Some(world) = can_run().then(World::new) else { return };
    world.write("m/x", "1\n").write("m/y", "1\n");
    world.recant("snapshot create").ok();
    world.write("m/x", "MINE\n");
    world.chmod("m", 0o700);
    let tree = world.manifest();
    let Some(terminal) = review(&world, "--snapshot last") else { return };
    // Ordered by kind, a row is one change: its metadata comes last.
    terminal.keys("o o G");
    terminal.sees("metadata alone");
    terminal.keys("r");
    assert!(framed(&terminal.sees("Not possible")).contains("m: it would include m/x, which is not chosen"));
    leave_text(&terminal);
    tree.assert_same(&world.manifest(), "nothing was restored");
    terminal.keys("q").sees("end=0");
}

#[test]
fn what_has_to_come_along_is_named_before_it_is_confirmed() {
    let Some(world) = can_run().then(World::new) else { return };
    world.write("f2d", "precious\n");
    held(&world, "rm f2d; mkdir f2d; echo in > f2d/in; echo b > f2d/b");
    let Some(terminal) = review(&world, "w") else { return };
    go_to(&terminal, "f2d/in");
    terminal.keys("c");
    let asked = framed(&terminal.sees("Commit 1 change of 3?"));
    assert!(asked.contains("f2d: included, because"), "{asked}");
    terminal.keys("n q").sees("end=0");
    assert_eq!(world.read("f2d"), "precious\n");
}

#[test]
fn a_question_is_answered_by_y_alone_and_by_nothing_that_was_typed_before_it_was_seen() {
    let Some(world) = small() else { return };
    let tree = world.manifest();
    let Some(terminal) = review(&world, "w") else { return };
    terminal.types("Acy").sees("Commit 6 changes of 6?");
    terminal.keys("C-y").sees("n no, back");
    tree.assert_same(&world.manifest(), "nothing was confirmed");
    terminal.keys("n").sees("nothing was changed");
    terminal.keys("q").sees("end=0");
    tree.assert_same(&world.manifest(), "nothing was confirmed");
}

#[test]
fn a_file_that_somebody_edits_while_it_is_shown_is_shown_as_it_is_then() {
    let Some(world) = small() else { return };
    let Some(terminal) = review(&world, "w") else { return };
    go_to(&terminal, "a.txt");
    terminal.keys("Tab").sees("-3");
    terminal.keys("Space").sees("1 chosen");
    world.write("a.txt", "somebody's\n");
    let shown = terminal.sees("the file on the tree has changed");
    assert!(!shown.contains("1 chosen"), "the blocks are other ones: {shown}");
    terminal.sees("changed since: conflict");
    terminal.keys("q").sees("! a.txt");
    terminal.keys("q").sees("end=0");
}

#[test]
fn what_was_written_in_the_editor_is_kept_where_the_session_does_not_take_it() {
    let Some(mut world) = small() else { return };
    let editor = world.root().join("editor");
    // Meanwhile the file leaves the session; and a directory is left beside the copy.
    world.write(&editor, "#!/bin/sh\necho written >> \"$1\"\nrecant discard w new -q -y\n").chmod(&editor, 0o755);
    world.set("EDITOR", &editor);
    let Some(terminal) = review(&world, "w") else { return };
    go_to(&terminal, "new");
    terminal.keys("e");
    let said = framed(&terminal.sees("what you wrote is kept"));
    let path = said.split("is kept: ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a path").to_owned();
    assert_eq!(std::fs::read_to_string(&path).expect("the copy"), "n\nwritten\n", "{said}");
    leave_text(&terminal);
    terminal.keys("q").sees("end=0");
    world.program("rm", ["-r", std::path::Path::new(&path).parent().expect("a directory").to_str().expect("text")]).run().ok();
}

#[test]
fn a_terminal_that_goes_while_somebody_types_leaves_no_process() {
    let Some(world) = small() else { return };
    let home = format!("HOME={}", world.root().join("home").display());
    let screens = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
        let has = |file: std::path::PathBuf, part: &str| {
            std::fs::read(file).is_ok_and(|text| text.windows(part.len()).any(|found| found == part.as_bytes()))
        };
        all.filter(|process| has(process.join("cmdline"), "review\0w") && has(process.join("environ"), &home)).count()
    };
    for _ in 0..12 {
        let Some(terminal) = Terminal::usual(&world) else { return };
        terminal.line("recant review w").sees("q quit");
        terminal.types(&"jk".repeat(200));
        drop(terminal);
        let begun = std::time::Instant::now();
        while screens() > 0 {
            assert!(begun.elapsed().as_secs() < 10, "a screen without a terminal goes on");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn a_reason_is_typed_in_the_question_and_reaches_an_agent_that_waits() {
    let Some(world) = small() else { return };
    let Some(terminal) = review(&world, "w") else { return };
    go_to(&terminal, "dir/x");
    terminal.keys("h Space c").sees("Commit 2 changes of 6?");
    // A letter that answers a question is one of the reason, too.
    terminal.keys("m").sees("reason: █");
    terminal.types("y, n and qq").keys("BSpace Enter").sees("reason: y, n and q");
    terminal.keys("y").sees("j k scroll");
    leave_text(&terminal);
    terminal.keys("A d").sees("Discard 4 changes of 4?");
    terminal.keys("m").types("a reason that is let go").keys("Escape");
    terminal.until("no reason", |text| text.contains("n no, back") && !text.contains("reason:"));
    terminal.keys("m").types("not the tests").keys("Enter").sees("reason: not the tests");
    terminal.keys("y").sees("j k scroll");
    leave_text(&terminal);
    terminal.keys("q").sees("end=0");
    let said = world.call(["await", "w"]).env("CLAUDECODE", "1").run().ok().stdout();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].ends_with("(2 paths: dir), was committed by a person: y, n and q"), "{said}");
    assert_eq!(lines[1..], ["session w had 4 changes (a.txt, gone, new, …) discarded by a person: not the tests"], "{said}");
}

#[test]
fn a_reason_stays_where_a_question_is_asked_again() {
    let Some(world) = small() else { return };
    let Some(terminal) = review(&world, "w") else { return };
    go_to(&terminal, "a.txt");
    terminal.keys("Space c").sees("Commit 1 change of 6?");
    terminal.keys("m").types("as it was").keys("Enter").sees("reason: as it was");
    world.write("a.txt", "somebody's\n");
    terminal.keys("y").sees("This changed since it was shown");
    terminal.sees("reason: as it was");
    terminal.keys("n").sees("nothing was changed");
    terminal.keys("q").sees("end=0");
}

#[test]
fn what_no_editor_can_open_is_named_and_what_a_tool_writes_is_held() {
    let Some(mut world) = small() else { return };
    let script = "ln -s a.txt also; printf 'a\\0b' > bin";
    world.call(["run", "-q", "--session", "w", "--", "sh", "-c", script]).run().ok();
    let [editor, tool] = ["editor", "tool"].map(|name| world.root().join(name));
    world.write(&editor, "#!/bin/sh\necho written > \"$1\"\n").chmod(&editor, 0o755);
    world.write(&tool, "#!/bin/sh\necho by the tool >> \"$NEW$PWD/new\"\n").chmod(&tool, 0o755);
    world.config(&format!("[diff]\ntool = '{}'\n", tool.display()));
    world.set("EDITOR", editor);
    let (tree, step) = (world.manifest(), head(&world));
    let Some(terminal) = review(&world, "w") else { return };
    for (path, why) in [
        ("gone", "gone: it is deleted: there is nothing to edit"),
        ("also", "also: a symlink cannot be edited"),
        ("bin", "bin: it is binary and cannot be edited"),
    ] {
        go_to(&terminal, path);
        terminal.keys("e").sees(why);
        leave_text(&terminal);
    }
    assert_eq!(head(&world), step, "nothing of it is a step");
    go_to(&terminal, "new");
    terminal.keys("D").sees("holds the edited new");
    leave_text(&terminal);
    assert_eq!((world.recant("cat w new").ok().stdout(), head(&world)), ("n\nby the tool\n".into(), step + 1));
    undo(&terminal);
    assert_eq!((world.recant("cat w new").ok().stdout(), head(&world)), ("n\n".into(), step));
    terminal.keys("q").sees("end=0");
    tree.assert_same(&world.manifest(), "nothing on the tree was touched");
}

#[test]
fn one_session_that_waits_is_decided_after_the_other() {
    let Some(world) = small() else { return };
    for name in ["a", "b"] {
        let script = format!("echo 1 > by-{name}");
        world.call(["run", "-q", "-n", name, "--", "sh", "-c", &script]).env("CLAUDECODE", "1").run().ok();
    }
    let Some(terminal) = Terminal::usual(&world) else { return };
    terminal.line("recant review --next; echo \"end=$?\"");
    // Those of agents come first.
    let shown = terminal.sees("2 more sessions wait: q goes on to the next");
    assert!(shown.contains("(a)") && shown.contains("q next"), "{shown}");
    act(&terminal, "A c", "Commit 1 change of 1?");
    let shown = terminal.sees("1 more session waits: q goes on to it");
    assert!(shown.contains("(b)"), "{shown}");
    // It can be taken back there, too.
    assert!(undo(&terminal).contains("commit of 1 change"));
    assert_eq!(world.status("a"), "rolled_back");
    // One that is left undecided is shown no more.
    terminal.keys("q").sees("(w)");
    terminal.sees("q quit");
    go_to(&terminal, "new");
    act(&terminal, "Space c", "Commit 1 change of 6?");
    terminal.until("the rest of it", |text| text.contains("(w)") && text.contains("5 changes"));
    act(&terminal, "A d", "Discard 5 changes of 5?");
    let said = terminal.sees("end=0");
    assert!(!said.contains("nothing waits"), "b waits: {said}");
    terminal.line("clear; recant review --next; echo \"end=$?\"").sees("q quit");
    assert!(terminal.text().contains("(b)"));
    act(&terminal, "A d", "Discard 1 change of 1?");
    terminal.sees("nothing waits");
    assert_eq!(world.recant("review --next").with(2).stdout(), "");
    terminal.line("clear; recant review --next; echo \"end=$?\"");
    terminal.until("nothing waits", |text| text.contains("nothing waits") && text.contains("end=0"));
}

#[test]
fn ctrl_c_leaves_all_that_wait() {
    let Some(world) = small() else { return };
    world.recant("run -q -n other -- touch b").ok();
    let Some(terminal) = Terminal::usual(&world) else { return };
    terminal.line("recant review --next; echo \"end=$?\"").sees("q next");
    terminal.keys("C-c").sees("end=0");
}

#[test]
fn an_agent_waits_on_while_its_person_looks_at_the_rest() {
    let Some(world) = small() else { return };
    let agent = |words: &[&str]| world.call(words).env("CLAUDECODE", "1");
    let Some(terminal) = review(&world, "w") else { return };
    go_to(&terminal, "dir/x");
    act(&terminal, "h Space c", "Commit 2 changes of 6?");
    let waits = agent(&["await", "w"]).command().stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    go_to(&terminal, "gone");
    act(&terminal, "Space d", "Discard 1 change of 4?");
    terminal.keys("q").sees("end=0");
    let said = String::from_utf8(waits.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("(2 paths: dir), was committed by a person\n"), "{said}");
    assert!(said.ends_with("session w had 1 change (gone) discarded by a person\nstill held: 3 changes\n"), "{said}");
    // At the end of its time it is told what there is, and where nothing is held any more, at once.
    terminal.line("clear; recant review w; echo \"end=$?\"").sees("q quit");
    go_to(&terminal, "new");
    act(&terminal, "Space d", "Discard 1 change of 3?");
    let said = agent(&["await", "w", "--for", "1s"]).run().ok().stdout();
    assert!(said.ends_with("still held: 2 changes\n"), "{said}");
    act(&terminal, "A d", "Discard 2 changes of 2?");
    assert!(agent(&["await", "w"]).run().ok().stdout().contains("had 2 changes"));
    terminal.keys("q").sees("end=0");
}

#[test]
fn what_others_run_stands_above_all_else() {
    let Some(world) = small() else { return };
    let script = "mkdir -p .git/hooks many; echo x > .git/hooks/pre-commit; for i in $(seq 30); do echo 1 > many/$i; done";
    world.call(["run", "-q", "--session", "w", "--", "sh", "-c", script]).run().ok();
    let Some(terminal) = review(&world, "w") else { return };
    let shown = terminal.sees("git runs it");
    let rows: Vec<&str> = shown.lines().skip(1).map(|line| line.split('│').next().unwrap().trim_end()).collect();
    assert!(rows[0].starts_with("[ ]   + ! .git/hooks/pre-commit") && rows[1].starts_with("[ ] ▾ ./"), "{shown}");
    // It is the same change as the one in its own place.
    terminal.keys("Space").sees("1 chosen");
    let shown = terminal.text();
    assert_eq!(shown.lines().filter(|line| line.starts_with("[x]") && line.contains("pre-commit")).count(), 2, "{shown}");
    terminal.keys("j").sees("Enter folds it");
    terminal.keys("o").sees("ordered by size");
    terminal.keys("o o").sees("ordered by path");
    terminal.keys("v").until("what is chosen", |text| text.matches("pre-commit").count() == 2 && !text.contains("many"));
    terminal.keys("q q").sees("end=0");
}
