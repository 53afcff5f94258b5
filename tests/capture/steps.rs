//! The steps of a session: the tree of them, what each changed, and what differs between two states.

use std::path::{Path, PathBuf};

use crate::common::{Said, manifest, until};
use crate::desk::{self, Desk, Who, each, is_root};
use crate::killed;
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

#[track_caller]
fn diff(desk: &Desk, words: &str) -> String {
    desk.recant(&format!("diff s {words}")).ok().stdout()
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
    assert_eq!(desk.recant("steps --json").ok().rows().len(), 5);
}

#[test]
fn a_label_stands_for_the_command_in_listings() {
    each(|desk| {
        desk.call(["run", "-q", "--session", "s", "--label", "packages: one", "--", "sh", "-c", "echo 1 > 1"]).run().ok();
        desk.call(["run", "-q", "--session", "s", "--label", "packages: two", "--", "sh", "-c", "echo 2 > 2"]).run().ok();
        let said = desk.recant("steps s").ok().stdout();
        assert!(said.contains("packages: one") && said.contains("packages: two") && !said.contains("sh -c"), "{said}");
        assert!(desk.recant("list --all").ok().stdout().contains("packages: two"), "{}", desk.recant("list --all"));
        let steps = desk.recant("steps s --json").ok().json();
        assert_eq!(
            (&steps["steps"][0]["label"], &steps["steps"][0]["argv"][0]),
            (&"packages: two".into(), &"sh".into()),
            "{steps}"
        );
        for label in ["", "a\tb"] {
            desk.call(["run", "--label", label, "--", "true"]).run().with(2);
        }
    });
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
    let whole = desk.recant("diff").ok().stdout();
    assert!(whole.contains("+x\n"), "{whole}");
    assert_eq!(desk.recant("diff last --step 1").ok().stdout(), whole);
}

#[test]
fn of_a_step_that_was_cut_off_or_may_lack_content_that_is_said() {
    each(|desk| {
        stepped(desk, &["echo 1 > a"]);
        let header = desk.world.session(&desk.id()).join("session.json");
        let text = std::fs::read_to_string(&header).unwrap();
        std::fs::write(&header, text.replace(r#""lines":"#, r#""unsynced":true,"lines":"#)).unwrap();
        desk.start("--session s", "echo 2 > a; echo ready; read go").kill();
        // Its init ends what it has started before anybody collects it.
        until("the run is collected", || !desk.recant("steps s").stdout().contains("running"));
        let said = desk.recant("steps s").ok();
        let lines: Vec<String> = tree(&said).lines().map(str::to_owned).collect();
        assert!(lines[0].starts_with("* 2 (head)  Mar 01 10:15  cut off "), "{said}");
        assert!(lines[1].starts_with("* 1         Mar 01 10:15  unsynced "), "{said}");
        assert!(desk.recant("diff s --step 1").ok().stderr().contains("the machine went down"));
    });
}

#[test]
fn at_most_twenty_steps_are_listed_unless_all_are_asked_for() {
    each(|desk| {
        stepped(desk, &["echo x >> f"; 22]);
        let said = desk.recant("steps s").ok();
        let lines = said.stdout().lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(lines.len() == 22 && lines[0].starts_with("* 22 (head)") && lines[19].starts_with("* 3 "), "{said}");
        let id = desk.id();
        assert_eq!(lines[20], format!("… and 2 more: recant steps {} -v", &id[16..]));
        assert!(lines[21].starts_with("* 0 ") && lines[21].ends_with("  the tree as it was"), "{said}");
        assert_eq!(desk.recant("steps s -v").ok().stdout().lines().count(), 23);
        // The head is among them, and the line of a gap takes the place of no single step.
        desk.recant("rewind s 1").ok();
        let said = desk.recant("steps s").ok().stdout();
        assert!(said.lines().count() == 23 && said.contains("\n* 1 (head)"), "{said}");
        desk.recant("rewind s 2").ok();
        stepped(desk, &["echo x > g"]);
        desk.recant("rewind s 1").ok();
        let said = desk.recant("steps s").ok().stdout();
        let last = said.lines().skip(20).collect::<Vec<_>>();
        assert!(said.starts_with("* 23 ") && last.len() > 2, "{said}");
        assert!(
            last[0].starts_with("… and 2 more: ") && last[1].starts_with("* 1 (head)") && last[2].starts_with("* 0 "),
            "{said}"
        );
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

/// Each patch is applied on top of the one before: the last state is that of a commit.
#[test]
fn the_patches_of_all_steps_lead_from_the_tree_to_the_head() {
    each(|desk| {
        if !desk::has("git") {
            return;
        }
        scene(desk);
        let states: Vec<PathBuf> = (0..=SCRIPTS.len()).map(|n| desk.world.root().join(format!("state{n}"))).collect();
        let copied = |from: &Path, to: &Path| {
            assert!(std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success())
        };
        copied(&desk.world.tree(), &states[0]);
        for n in 1..states.len() {
            copied(&states[n - 1], &states[n]);
            apply(desk, &states[n], &diff(desk, &format!("--step {n}")));
        }
        let files = |directory: &Path| {
            let rows = manifest(directory).0.into_iter().filter(|(_, row)| row.content != "directory");
            rows.map(|(path, row)| (path.escape_ascii().to_string(), row.content)).collect::<Vec<_>>()
        };
        let head = files(&states[SCRIPTS.len()]);
        for (n, state) in states.iter().enumerate() {
            let patch = diff(desk, &format!("--since {n}"));
            apply(desk, state, &patch);
            assert_eq!(files(state), head, "from step {n} to the head:\n{patch}");
        }
        desk.recant("commit s -y").ok();
        assert_eq!(files(&desk.world.tree()), head);
    });
}

/// Applies a patch of the tree's files to a copy of them.
fn apply(desk: &Desk, copy: &Path, patch: &str) {
    let tree = desk.world.tree();
    let patch = patch.replace(&format!("{}/", tree.display()), "/");
    if !patch.is_empty() {
        desk.world.program("git", ["apply", "-p1", "-"]).cwd(copy).stdin(patch).run().ok();
    }
}

#[test]
fn a_step_shows_what_it_changed_against_the_one_below() {
    let desk = &own();
    scene(desk);
    assert_snapshot!(desk.recant("diff s --since 4").ok().masked_out(), @r"
    diff --git a/world/tree/kept b/world/tree/kept
    --- a/world/tree/kept
    +++ b/world/tree/kept
    @@ -1,3 +1,4 @@
     1
     2
     3
    +5
    diff --git a/world/tree/link b/world/tree/link
    deleted file mode 120000
    --- a/world/tree/link
    +++ /dev/null
    @@ -1 +0,0 @@
    -kept
    \ No newline at end of file
    diff --git a/world/tree/link b/world/tree/link
    new file mode 100644
    --- /dev/null
    +++ b/world/tree/link
    @@ -0,0 +1 @@
    +last
    ");
    assert_snapshot!(desk.recant("diff s --step 2 --stat made kept"), @"
    status 0
    --- stdout
     kept | 1 +
     made | 1 -
     2 files changed, 1 insertion(+), 1 deletion(-)
    ");
    assert_snapshot!(desk.recant("diff s --since 4 --name-only").ok().masked_out(), @"
    /world/tree/kept
    /world/tree/link
    ");
    let told = desk.recant("diff s --step 2 --json made").ok().json();
    assert_eq!(
        (&told["from"]["step"], &told["to"]["step"], &told["changes"][0]["change"]),
        (&1.into(), &2.into(), &"deleted".into())
    );
}

#[test]
fn what_is_no_step_or_no_path_of_one_is_refused() {
    let desk = &own();
    stepped(desk, &["echo 1 > a", "echo 2 > b"]);
    assert_snapshot!(desk.recant("diff s --step 3"), @"
    status 1
    --- stderr
    recant: session <id1>: it has no step 3
            nothing was changed
            recant steps <id1~> lists them
    ");
    desk.recant("diff s --since 3").with(1);
    assert_snapshot!(desk.recant("diff s --step 0"), @"
    status 1
    --- stderr
    recant: session <id1>: step 0 is the tree as it was: it changed nothing
            nothing was changed
            recant diff <id1~> --since 0 shows what came after it
    ");
    assert_snapshot!(desk.recant("diff s --since 2"), @"
    status 0
    --- stderr
    recant: step 2 is the head: nothing came after it
    ");
    assert!(diff(desk, "--step 2 a").is_empty(), "another step changed it");
    desk.recant("diff s --step 2 nothing").with(1);
    for words in ["--step 1 --since 1", "--step 1 --with s", "--since 1 --conflicts", "--step x", "--with"] {
        desk.recant(&format!("diff s {words}")).with(2);
    }
    let staged = desk.recant("session new").id();
    assert_snapshot!(desk.recant(&format!("steps {staged}")), @"
    status 1
    --- stderr
    recant: session <id2> has no steps: its changes were not held in a run
            nothing was changed
            recant show <id2~> shows what it holds
    ");
    desk.recant(&format!("diff {staged} --step 1")).with(1);
    desk.recant("discard s --now -y").ok();
    desk.recant("diff s --step 1").with(1);
    assert_eq!(desk.recant("steps s").ok().stdout().lines().count(), 3, "what was done is still told");
}

#[test]
fn what_steps_wrote_is_shown_after_a_commit_and_a_rollback_where_it_is_still_there_and_never_something_else() {
    each(|desk| {
        scene(desk);
        let ways: Vec<String> = (1..=5).map(|n| format!("--step {n}")).chain((0..=5).map(|n| format!("--since {n}"))).collect();
        let before: Vec<String> = ways.iter().map(|way| diff(desk, way)).collect();
        for verb in ["commit", "rollback", "redo"] {
            desk.recant(&format!("{verb} s -y")).ok();
            for (way, before) in ways.iter().zip(&before) {
                let now = diff(desk, way);
                let is_told = |line: &str| line.starts_with('#') || before.lines().any(|known| known == line);
                assert!(now.lines().all(is_told), "{verb}, {way}: {now}");
            }
            // The head's content is on the tree, or among the held objects, and what was before it there too.
            assert_eq!(diff(desk, "--since 0"), before[5], "{verb}");
            assert!(diff(desk, "--step 4").contains("+deep\n"), "{verb}");
        }
        desk.bare(&desk.world.tree(), "echo theirs > kept");
        let said = diff(desk, "--step 5 kept");
        assert!(said.contains("kept: modified, not shown") && said.contains("changed on the tree"), "{said}");
        assert!(ways.iter().all(|way| !diff(desk, way).contains("theirs")), "it is of no step");
    });
}

#[test]
fn content_that_is_gone_or_is_not_what_was_recorded_is_not_shown() {
    each(|desk| {
        desk.made_before("echo old > f", "f");
        stepped(desk, &["echo one > f; echo 1 > g", "echo two > f"]);
        let id = desk.id();
        let uppers = desk.world.session(&id).join("held/upper");
        let find = |name: &str| {
            let found = desk.world.program("find", [uppers.to_str().unwrap(), "-name", name, "-type", "f"]).run().ok().stdout();
            found.lines().map(PathBuf::from).collect::<Vec<_>>()
        };
        let of_first =
            find("f").into_iter().find(|path| std::fs::read(path).unwrap() == b"one\n").expect("the content of step 1");
        std::fs::write(&of_first, "bad\n").unwrap();
        let said = diff(desk, "--step 2");
        assert!(
            said.contains("f: modified, not shown")
                && said.contains("what step 1 wrote is no longer held")
                && !said.contains("bad"),
            "{said}"
        );
        std::fs::remove_file(&of_first).unwrap();
        desk.recant("diff s --step 2").with(5);
        desk.recant("commit s").ok();
        let said = diff(desk, "--step 2");
        assert!(said.contains("what step 1 wrote is no longer held"), "{said}");
        assert!(diff(desk, "--step 1 g").contains("+1\n"));
        desk.bare(&desk.world.tree(), "echo x > h");
        stepped_in(desk, "t", "echo y > h");
        desk.bare(&desk.world.tree(), "echo z > h");
        let said = desk.recant("diff t --step 1").ok().stdout();
        assert!(said.contains("the tree has something else there now") && !said.contains("\n-z"), "{said}");
    });
}

/// Contents that nobody changed are equal whatever became of them since.
#[test]
fn of_changed_metadata_the_metadata_is_shown_though_the_tree_holds_another_content_by_now() {
    each(|desk| {
        desk.made_before("echo old > f", "f");
        stepped(desk, &["chmod 600 f", "chmod 640 f"]);
        stepped_in(desk, "t", "chmod 700 f");
        desk.bare(&desk.world.tree(), "echo theirs > f");
        for (words, shown) in [
            ("--step 2", "0600 -> 0640"),
            ("--since 1", "0600 -> 0640"),
            ("--since 0", "0644 -> 0640"),
            ("--with t", "0640 -> 0700"),
        ] {
            let said = diff(desk, words);
            assert!(said.contains(shown) && !said.contains("not shown") && !said.contains("theirs"), "{words}: {said}");
        }
    });
}

fn stepped_in(desk: &Desk, session: &str, script: &str) {
    desk.held(&format!("--session {session}"), script).run().ok();
}

#[test]
fn two_sessions_are_compared_head_with_head() {
    let desk = &own();
    desk.made_before("echo old > both; echo keep > same; echo x > mode", "mode");
    stepped_in(desk, "a", "echo first > both; echo alike > same; echo mine > a");
    stepped_in(desk, "a", "echo mine > a; echo one >> both; chmod 600 mode");
    stepped_in(desk, "b", "echo second > both; echo alike > same; touch -d 2020-01-01 same; echo hers > b; echo y >> mode");
    for session in ["a", "b"] {
        desk.recant(&format!("show {session}")).ok();
    }
    assert_snapshot!(desk.recant("diff a --with b"), @"
    status 0
    --- stdout
    diff --git a/world/tree/a b/world/tree/a
    deleted file mode 100644
    --- a/world/tree/a
    +++ /dev/null
    @@ -1 +0,0 @@
    -mine
    diff --git a/world/tree/b b/world/tree/b
    new file mode 100644
    --- /dev/null
    +++ b/world/tree/b
    @@ -0,0 +1 @@
    +hers
    diff --git a/world/tree/both b/world/tree/both
    --- a/world/tree/both
    +++ b/world/tree/both
    @@ -1,2 +1 @@
    -first
    -one
    +second
    # /world/tree/mode: mode 0600 -> 0644
    diff --git a/world/tree/mode b/world/tree/mode
    --- a/world/tree/mode
    +++ b/world/tree/mode
    @@ -1 +1,2 @@
     x
    +y
    --- stderr
    recant: 1 change of the mtime alone (--all lists them)
    recant: 5 paths differ: - is session <id1~>, + is session <id2~>
    ");
    assert_snapshot!(desk.recant("diff b --with a --stat").ok().masked_out(), @"
    a    | 1 +
    b    | 1 -
    both | 3 ++-
    mode | 1 -
    4 files changed, 3 insertions(+), 3 deletions(-)
    ");
    assert_eq!(desk.recant("diff a --with b --name-only --all").ok().stdout().lines().count(), 5, "times too");
    assert_snapshot!(desk.recant("diff a --with a"), @"
    status 0
    --- stderr
    recant: sessions <id1> and <id1> hold the same
    ");
    let one = desk.recant("diff a --with b b").ok();
    assert!(one.stdout().lines().count() == 6 && one.stderr().contains("1 path differs: "), "{one}");
    let said = desk.recant("diff a --with b").ok().stdout();
    desk.recant("commit a").ok();
    assert_eq!(desk.recant("diff a --with b").ok().stdout(), said, "what a commit moved is the same");
    desk.recant("discard b --now -y").ok();
    desk.recant("diff a --with b").with(1);
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
    assert!(diff(desk, "--step 2").contains("+2\n"));
    stepped_in(desk, "t", "echo 4 > a");
    for (words, shown) in [("diff s --with t", "-2\n+4\n"), ("diff t --with s", "-4\n+2\n")] {
        let said = desk.recant(words).ok();
        assert!(said.stdout().contains(shown), "{words}: {said}");
    }
    desk.recant("prune --sessions t").ok();
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
    assert!(there.recant("diff s --step 1").ok().stdout().contains("+2\n"));
    there.recant("diff s --step 2").with(1);
}

#[test]
fn numbers_of_steps_are_offered_with_their_commands() {
    each(|desk| {
        stepped(desk, &["echo 1 > a", "echo 2 > a"]);
        let offers = |words: &[&str]| {
            desk.call(["--"].into_iter().chain(words.iter().copied())).env("RECANT_COMPLETE", "fish").run().ok().stdout()
        };
        let all = "2\tsh -c echo 2 > a\n1\tsh -c echo 1 > a\n";
        assert_eq!(offers(&["recant", "diff", "s", "--step", ""]), all);
        assert_eq!(offers(&["recant", "diff", "--since", ""]), all);
        assert_eq!(offers(&["recant", "rewind", "s", ""]), format!("{all}0\tthe tree as it was\n"));
        assert_eq!(offers(&["recant", "fork", "s", ""]), all);
        assert_eq!(offers(&["recant", "diff", "s", "--step", "1"]), "1\tsh -c echo 1 > a\n");
        assert!(offers(&["recant", "diff", "s", "--with", ""]).contains("s\t"));
        assert!(offers(&["recant", "steps", ""]).contains("s\t"));
    });
}

#[test]
fn the_oldest_steps_are_merged_as_the_settings_say_and_what_only_they_held_goes() {
    each(|desk| {
        desk.made("echo base > base");
        desk.world.config("[steps]\nkeep = 4\n");
        let script = |n: u32| format!("head -c 300000 /dev/urandom > big; echo {n} >> log; rm -rf d; mkdir d; echo {n} > d/{n}");
        let said: Vec<String> = (1..=12).map(|n| desk.held("--session s", &script(n)).run().ok().stderr()).collect();
        let oldest = |text: &String| text.contains("is the oldest by steps.keep 4,");
        assert_eq!(said.iter().filter(|text| oldest(text)).count(), 1, "it is said once: {said:?}");
        let id = desk.id();
        let files = || {
            let upper = desk.world.session(&id).join("held/upper");
            let all = walkdir::WalkDir::new(upper).into_iter().map(|entry| entry.unwrap());
            all.filter(|entry| entry.file_name() == "big").count()
        };
        // Those of the steps that are kept, and of the one that holds the merged ones.
        assert!((4..=5).contains(&files()), "{}", files());
        let listed = desk.recant("steps s").ok().stdout();
        assert!(listed.contains("7 older steps no longer kept"), "{listed}");
        let status = desk.recant("status").ok().stdout();
        assert!(status.contains("steps        5 of 1 session (steps.keep 4, steps.max_size 2.0 GiB of each)"), "{status}");
        assert_eq!(listed.lines().filter(|line| line.starts_with('*')).count(), 6, "five steps and the tree: {listed}");
        let seen = || desk.held("--session s", "tr '\\n' ' ' < log; ls d").run().ok().stdout();
        assert_eq!(seen(), "1 2 3 4 5 6 7 8 9 10 11 12 12\n");
        let said = desk.recant("rewind s 3").with(1);
        assert!(said.stderr().contains("step 3 is no longer kept: 8 is the oldest"), "{said}");
        desk.recant("rewind s 9").ok();
        assert_eq!(seen(), "1 2 3 4 5 6 7 8 9 9\n");
        desk.recant("rewind s 8").ok();
        assert_eq!(seen(), "1 2 3 4 5 6 7 8 8\n");
        desk.recant("commit s").ok();
        assert_eq!(desk.world.read("log"), "1\n2\n3\n4\n5\n6\n7\n8\n");
        desk.recant("rollback s").ok();
    });
}

#[test]
fn steps_that_hold_too_much_are_merged_too() {
    let desk = &own();
    desk.world.config("[steps]\nmax_size = '1M'\n");
    (1..=6).for_each(|_| drop(desk.held("--session s", "head -c 400000 /dev/urandom > big").run().ok()));
    let said = desk.recant("rewind s 1").with(1);
    assert!(said.stderr().contains("step 1 is no longer kept: "), "{said}");
    desk.recant("rewind s 5").ok();
}

#[test]
fn a_command_waits_for_the_one_that_runs_in_its_session_if_asked_to() {
    let desk = &own();
    stepped(desk, &["echo 1 > one"]);
    let waiting = desk.start("--session s", "echo 2 > two; echo ready; read go");
    let refused = desk.held("--session s --wait 1s", "true").run().with(125);
    assert!(refused.stderr().contains("waiting for the command that runs in session"), "{refused}");
    let mut third = desk.held("--session s --wait 60s", "cat one two").command();
    let third = third.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    waiting.go();
    let ended = third.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "1\n2\n", "{ended:?}");
}

#[test]
fn a_running_command_is_looked_at_and_not_disturbed() {
    each(|desk| {
        desk.made("echo base > base; echo gone > gone; mkdir d; echo x > d/x");
        stepped(desk, &["echo 1 > one"]);
        let script = "echo 2 > two; echo more >> base; rm gone one; echo half > part; echo ready; read go; echo end >> part";
        let waiting = desk.start("--session s", script);
        let id = desk.id();
        let store = desk.world.session(&id);
        // Overlay's work directory is closed to all but root.
        let state = || desk::is_root().then(|| manifest(&store));
        let before = state();
        let told = desk.recant(&format!("diff {id} --json")).ok().json();
        assert_eq!(told["session"]["status"], "running");
        let paths: Vec<&str> = told["changes"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
        let names: Vec<&str> = paths.iter().map(|path| path.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["base", "gone", "part", "two"]);
        let changes = |told: &serde_json::Value| (told["changes"].clone(), told["status"].clone());
        let so_far = || (4.into(), "running".into());
        assert_eq!(changes(&desk.recant("list --json").ok().json()["sessions"][0]), so_far());
        assert_eq!(changes(&desk.recant("--json").ok().json()["sessions"][0]), so_far());
        let listed =
            |path: &str| desk.recant(&format!("list --path {path} --json")).ok().json()["sessions"].as_array().unwrap().len();
        assert_eq!((listed("two"), listed("one")), (1, 0));
        let running = &desk.recant("status --json").ok().json()["running"];
        assert_eq!((running[0]["session"].as_str(), &running[0]["changes"]), (Some(&*id), &4.into()));
        let of_step = desk.recant("diff s --step 2 --name-only").ok();
        assert_eq!(of_step.stdout().lines().count(), 5, "it deleted what step 1 had created: {of_step}");
        assert!(of_step.stderr().contains("this is what it has changed so far"), "{of_step}");
        assert_eq!(desk.recant("diff s --since 1").ok().stdout(), desk.recant("diff s --step 2").ok().stdout());
        let sealed = desk.recant("diff s --step 1 --name-only").ok();
        assert!(sealed.stdout().ends_with("one\n") && sealed.stderr().is_empty(), "{sealed}");
        assert!(desk.recant("diff s").ok().stdout().contains("+half"));
        assert_eq!(desk.recant("cat s part").ok().stdout(), "half\n");
        assert!(desk.recant("show s").ok().stdout().contains("status      running"));
        assert!(desk.recant("show s --json").ok().json()["run"].get("ending").is_none());
        for words in ["commit s", "discard s -y", "rewind s 1", "fork s"] {
            let refused = desk.recant(words).with(6);
            assert!(refused.stderr().contains("\" has run in it since "), "{words}: {refused}");
        }
        assert_eq!(state(), before, "only looked at");
        waiting.go();
        assert_eq!(desk.recant("cat s part").ok().stdout(), "half\nend\n");
        assert_eq!(desk.recant("show s --json").ok().json()["run"]["ending"]["exited"], 0);
    });
}

#[test]
fn a_session_that_stands_at_the_tree_as_it_was_is_pending_all_the_same_and_no_prune_takes_it() {
    let desk = &own();
    stepped(desk, &["echo 1 > one", "echo 2 > two"]);
    desk.recant("rewind s 0").ok();
    desk.recant("prune --sessions --keep 0").ok();
    assert_eq!(desk.recant("rewind s 2 --json").ok().json()["changes"], 2);
    assert_eq!(desk.held("--session s", "cat one two").run().ok().stdout(), "1\n2\n");
}

#[test]
fn the_example_of_three_attempts_commits_the_best_and_leaves_nothing_else() {
    each(|desk| {
        let temporary = desk.world.root().join("temporary");
        desk.bare(desk.world.root(), "mkdir temporary");
        let attempts = |words: &[&str]| {
            let script = include_str!("../../examples/attempts.sh");
            let call = desk.give(desk.world.program("bash", ["-c", script, "attempts.sh"].iter().chain(words)));
            call.env("RECANT", &desk.binary).env("TMPDIR", &temporary).run().ok()
        };
        attempts(&["there"]);
        let project = desk.world.path("there/project");
        let found = manifest(&project).0.into_keys().map(|path| String::from_utf8(path).unwrap()).collect::<Vec<_>>();
        assert_eq!(found, [".", "slug", "tests", "tests/cases", "tests/run"]);
        let slug = std::fs::read_to_string(project.join("slug")).unwrap();
        assert!(slug.ends_with("| tr -cs 'a-z0-9\\n' - | sed 's/^-//; s/-$//'\n"), "{slug}");
        desk.bare(&project, "sh tests/run");
        let store = desk.world.path("there/store");
        let rows = desk.recant(&format!("--store {} list --all --json", store.display())).ok().rows();
        let sessions = rows.iter().map(|row| (row["name"].as_str().unwrap(), row["status"].as_str().unwrap()));
        assert_eq!(
            sessions.collect::<Vec<_>>(),
            [("three", "committed"), ("two", "discarded"), ("one", "discarded"), ("task", "discarded")]
        );
        // Without a directory of its own nothing is left.
        let said = attempts(&[]);
        assert!(said.stdout().ends_with("\nwhat-now\n"), "{said}");
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    });
}

/// What a power cut leaves of the note of a command, which nobody waits for: an empty file.
#[test]
fn a_session_whose_command_s_note_is_empty_stands_at_its_last_step_and_that_is_said() {
    let desk = &own();
    stepped(desk, &["echo 1 > one", "echo 2 > two"]);
    let waiting = desk.start("--session s", "echo 3 > three; echo ready; read go");
    let id = desk.id();
    killed(desk, waiting);
    desk.world.write(desk.world.session(&id).join("step.3.json"), "");
    let said = desk.recant("diff s --name-only").ok();
    assert!(said.stderr().contains("is lost; the session is at step 2"), "{said}");
    assert_eq!(said.stdout().lines().count(), 2, "{said}");
    assert_eq!(desk.held("--session s", "ls; echo 4 > four").run().ok().stdout(), "one\ntwo\n");
    desk.recant("commit s").ok();
    assert_eq!(desk.world.read("four"), "4\n");
}

/// A branch from an early step takes none of the newest steps away, whichever branch they are of.
#[test]
fn the_newest_steps_of_all_branches_are_kept() {
    let desk = &own();
    desk.world.config("[steps]\nkeep = 8\n");
    let script = |n: u32| format!("echo {n} > f; echo {n} > n{n}");
    (1..=8).for_each(|n| drop(desk.held("--session s", &script(n)).run().ok()));
    desk.recant("rewind s 2").ok();
    desk.held("--session s", &script(9)).run().ok();
    let seen = |n: u32| {
        desk.recant(&format!("rewind s {n}")).ok();
        desk.held("--session s", "cat f; ls").run().ok().stdout()
    };
    assert_eq!(seen(8), "8\nf\nn1\nn2\nn3\nn4\nn5\nn6\nn7\nn8\n");
    assert_eq!(seen(9), "9\nf\nn1\nn2\nn9\n");
    // One that begins at the tree as it was is kept too, and can be forked, whatever was merged before.
    (10..=20).for_each(|n| drop(desk.held("--session s", &script(n)).run().ok()));
    desk.recant("rewind s 8").with(1);
    desk.recant("rewind s 0").ok();
    desk.held("--session s", "echo new > f").run().ok();
    desk.recant("fork s -n forked").ok();
    desk.recant("rewind s 20").ok();
    desk.recant("rewind s 21").ok();
    let listed = desk.recant("steps s").ok().stdout();
    assert!(listed.contains("* 21 (head)") && listed.contains(" 20 "), "{listed}");
    // With the newest steps all on the new branch, what the old one held goes.
    (22..=40).for_each(|n| drop(desk.held("--session s", &script(n)).run().ok()));
    let gone = desk.recant("rewind s 20").with(1);
    assert!(gone.stderr().contains("step 20 is no longer kept: "), "{gone}");
    let gone = desk.recant("diff s --step 20").with(1);
    assert!(gone.stderr().contains("step 20 is no longer kept: "), "{gone}");
    desk.recant("diff s --step 40").ok();
    let uppers = std::fs::read_dir(desk.world.session(&desk.ids()[0]).join("held/upper")).unwrap();
    let old = uppers.filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().ends_with(".20")).count();
    assert_eq!(old, 0);
    assert!(seen(40).starts_with("40\n"));
}

#[test]
fn a_command_that_is_discarded_takes_no_earlier_step_with_it() {
    let desk = &own();
    stepped(desk, &["echo work > work"]);
    let said = desk.held("--session s --discard", "echo try > try; rm work").run().ok();
    let tail = desk.id()[16..].to_owned();
    let aside = format!("recant: step 2 of session {tail} is set aside; the session is at step 1");
    assert_eq!(said.stderr(), format!("{aside}\n"));
    let said = desk.held("--session s --discard", "echo try > try2; exit 7").run().with(7);
    // A user is given a hint first.
    assert!(said.stderr().replace("step 3", "step 2").ends_with(&format!("{aside} (the command exited with 7)\n")), "{said}");
    desk.held("--session s --discard", "true").run().ok();
    assert_eq!(desk.held("--session s", "ls").run().ok().stdout(), "work\n");
    desk.recant("rewind s 2").ok();
    assert_eq!(desk.held("--session s", "ls").run().ok().stdout(), "try\n");
}

/// What a person at a terminal sees who answers so; and the status.
pub fn at_terminal(desk: &Desk, words: &str, answer: &str) -> Option<(i32, String)> {
    desk::has("script").then(|| {
        let said = crate::at_terminal(desk, words, answer).run();
        (said.status, said.stdout().replace('\r', ""))
    })
}

#[test]
fn a_commit_tells_of_the_steps_that_it_leaves_behind_and_asks_at_a_terminal_while_one_can_still_be_kept() {
    let desk = &own();
    stepped(desk, &["echo 1 > one", "echo 2 > two", "echo 3 > three"]);
    let tail = desk.id()[16..].to_owned();
    let before = format!("a commit leaves 2 steps behind: recant fork {tail} 3 first keeps one\n");
    let after = format!("2 steps are left behind: recant diff {tail} --step N still shows each\n");
    assert!(!desk.recant("commit s --dry-run").ok().stderr().contains("behind"), "all of them are below the head");
    desk.recant("rewind s 1").ok();
    let said = desk.recant("commit s --dry-run").ok().stderr();
    assert!(said.contains(&before) && !said.contains(&after), "{said}");
    let asked = at_terminal(desk, "commit s", "n\n");
    if let Some((status, said)) = &asked {
        assert!(*status == 1 && said.contains(&before), "{said}");
        assert!(said.contains(&format!("Commit session {tail} at step 1? [y/N]")), "{said}");
        assert!(!desk.world.exists("one"));
    }
    // A step beside the head, too, though the head is the newest.
    desk.recant("fork s 3 -n other").ok();
    desk.recant("rewind other 1").ok();
    stepped_in(desk, "other", "echo 2 > beside");
    desk.recant("rewind other 1").ok();
    let said = desk.held("--session other --commit", "echo 3 > head").run().ok().stderr();
    assert!(said.contains("1 step is left behind: recant diff ") && said.contains(" --step 2 still shows it\n"), "{said}");
    desk.recant("rollback other").ok();
    desk.recant("discard other").ok();
    if asked.is_some() {
        let (status, said) = at_terminal(desk, "commit s", "y\n").unwrap();
        assert!(status == 0 && said.contains(&before) && !said.contains(&after), "{said}");
    } else {
        let said = desk.recant("commit s").ok().stderr();
        assert!(said.contains(&after) && !said.contains("fork"), "{said}");
    }
    assert!(desk.world.exists("one") && !desk.world.exists("two"));
    for words in ["rollback s", "commit s"] {
        assert!(!desk.recant(words).ok().stderr().contains("behind"), "{words}");
    }
    // With -y nobody is asked; of what cannot be committed nothing is said.
    for words in ["commit t -y", "commit u"] {
        let name = &words[7..8];
        for script in ["echo 4 > four", "echo 5 > five", "echo 6 > six"] {
            stepped_in(desk, name, script);
        }
        desk.recant(&format!("rewind {name} 1")).ok();
        if name == "u" {
            desk.recant("discard u").ok();
            assert!(!desk.recant(words).with(1).stderr().contains("behind"));
        } else {
            let said = desk.recant(words).ok().stderr();
            assert!(said.contains("2 steps are left behind: ") && said.contains(" --step N still shows each\n"), "{said}");
            assert!(desk.recant("diff t --step 3").ok().stdout().contains("+6\n"));
        }
    }
}

#[test]
fn a_discard_tells_of_the_steps_and_they_come_back_with_it() {
    let desk = &own();
    stepped(desk, &["echo 1 > one", "echo 2 > two", "echo 3 > three"]);
    desk.recant("rewind s 1").ok();
    let steps = desk.recant("steps s").ok().stdout();
    let said = desk.recant("discard s").ok();
    assert!(said.stderr().contains(" is discarded: 1 change, 3 steps, "), "{said}");
    desk.recant("undo -y").ok();
    assert_eq!(desk.recant("steps s").ok().stdout(), steps);
    desk.recant("rewind s 3").ok();
    desk.held("--session s", "echo 4 > four").run().ok();
    desk.recant("commit s -y").ok();
    assert_eq!((&*desk.world.read("one"), &*desk.world.read("three"), &*desk.world.read("four")), ("1\n", "3\n", "4\n"));
    stepped_in(desk, "t", "echo 5 > five");
    if let Some((_, said)) = at_terminal(desk, "discard --all", "n\n") {
        assert!(said.contains("Discard 1 pending session with 1 held change? [y/N]"), "{said}");
    }
    if let Some((_, said)) = at_terminal(desk, "discard t --now", "n\n") {
        assert!(said.contains("Free 1 held change of session "), "{said}");
    }
    assert!(desk.recant("discard t").ok().stderr().contains(" is discarded: 1 change, "));
}

#[test]
fn a_step_beside_the_head_is_compared_with_it_and_that_is_said() {
    let desk = &own();
    stepped(desk, &["echo 1 > one", "echo 2 > two"]);
    desk.recant("rewind s 1").ok();
    stepped(desk, &["echo 3 > three"]);
    let said = desk.recant("diff s --since 2 --name-only").ok();
    assert!(said.stderr().contains("step 2 is not below the head: the two are compared\n"), "{said}");
    assert_eq!(said.stdout().lines().count(), 2, "{said}");
    for below in [0, 1, 3] {
        assert!(!desk.recant(&format!("diff s --since {below}")).ok().stderr().contains("not below"));
    }
}

#[test]
fn show_tells_of_the_steps_and_the_head() {
    let desk = &own();
    stepped(desk, &["echo 1 > one"]);
    assert!(!desk.recant("show s").ok().stdout().contains("\nsteps"), "one command is all that there is");
    stepped(desk, &["echo 2 > two", "echo 3 > three"]);
    desk.recant("rewind s 2").ok();
    let line = format!("\nsteps       3, the head is step 2: recant steps {}\n", &desk.id()[16..]);
    let said = desk.recant("show s").ok();
    assert!(said.stdout().contains(&line), "{said}");
}

#[test]
fn a_listing_has_the_command_that_runs_and_when_it_began() {
    each(|desk| {
        stepped(desk, &["echo 1 > one"]);
        let header = desk.world.session(&desk.id()).join("session.json");
        let mut told: serde_json::Value = serde_json::from_slice(&std::fs::read(&header).unwrap()).unwrap();
        told["changed"] = "2020-01-01T00:00:00.000000000Z".into();
        desk.world.write(&header, format!("{told}\n"));
        assert!(desk.recant("list --since 1h --json").ok().rows().is_empty());
        let waiting = desk.start("--session s", "echo 2 > two; echo ready; read go");
        let row = desk.recant("list --since 1h --json").ok().rows().pop().expect("a session that is as new as its command");
        assert_eq!(row["command"], "sh -c echo 2 > two; echo ready; read go");
        assert!(!row["changed"].as_str().unwrap().starts_with("2020"), "{row}");
        let here = desk.recant("--json").ok().json();
        assert_eq!(here["sessions"][0]["command"], row["command"]);
        waiting.go();
    });
}

/// The columns of a line on a terminal, if all wide characters in it are CJK ones.
fn columns(line: &str) -> usize {
    line.chars().map(|c| if c >= '\u{2e80}' { 2 } else { 1 }).sum()
}

#[test]
fn wide_characters_take_two_columns_wherever_columns_are_counted() {
    let desk = &own();
    let long = "とても長い日本語の名前のファイルでありここで終わるわけではない";
    desk.made(&format!("echo 1 > {long}; echo a > a"));
    for script in [format!("echo 2 > {long}"), "echo 一二三四五六七八九十一二三四五六七八九十 > 短い; echo b > a".into()]
    {
        desk.held("--session s", &script).run().ok();
    }
    desk.held("", &format!("echo 3 > {long}")).run().ok();
    for words in ["steps s", "list", "", "diff s --stat", "show s"] {
        let said = desk.recant(words).ok();
        let text = said.stdout();
        assert!(text.contains('本') || text.contains('一'), "{words}: {said}");
        for line in text.lines() {
            assert!(columns(line) <= 80, "{words}: {} columns: {line}", columns(line));
        }
        // What stands behind a name stands under what is behind the others.
        let mark = match words {
            "" => "recant diff",
            "diff s --stat" => "|",
            _ => continue,
        };
        let places = text.lines().filter_map(|line| line.find(mark).map(|at| columns(&line[..at])));
        let places: Vec<usize> = places.collect();
        assert!(places.len() > 1 && places.iter().all(|place| *place == places[0]), "{words}: {places:?} {said}");
    }
}

#[test]
fn a_session_is_forked_at_a_step_and_what_holds_nothing_is_not() {
    each(|desk| {
        desk.made("echo base > base");
        stepped(desk, &["echo 1 > one; ln one link", "echo 2 >> one; exit 3", "rm one link"]);
        desk.recant("fork s 1 -n first").ok();
        let told = desk.recant("steps first --json").ok().json();
        assert_eq!(told["steps"][0]["ending"]["exited"], 0, "the command of that step: {told}");
        assert_eq!(desk.held("--session first", "cat one; stat -c %h one; echo more > more").run().ok().stdout(), "1\n2\n");
        // Each lives on by itself.
        desk.recant("rewind s 2").ok();
        assert_eq!(desk.held("--session s", "cat one; ls").run().ok().stdout(), "1\n2\nbase\nlink\none\n");
        desk.recant("commit first").ok();
        desk.made("echo theirs >> one");
        assert_eq!(desk.held("--session s", "cat one link").run().ok().stdout(), "1\n2\n1\n");
        for words in ["fork s 0", "fork s 3"] {
            let said = desk.recant(words).with(1);
            assert!(said.stderr().contains("holds nothing to begin a session with"), "{said}");
        }
        desk.recant("fork s 7").with(1);
        let taken = desk.recant("fork s 2 -n s").with(1);
        assert!(taken.stderr().contains("nothing was changed"), "{taken}");
    });
}

/// The report of a command names what others run or obey, and a commit at a terminal asks about it, unless it was looked at: but not about
/// the project's own files, nor where nobody can be asked.
#[test]
fn what_others_run_is_named_by_the_report_and_asked_about_at_the_commit() {
    let desk = &own();
    desk.made("git init -q; echo {} > package.json");
    let own = desk.held("-n own", "echo '{ }' > package.json; echo new > file").run().ok();
    assert!(own.stderr().contains("look before you commit: package.json (npm runs its scripts)\n"), "{own}");
    let planted =
        desk.held("-n planted", "echo 'curl x' > .git/hooks/pre-push; for i in 1 2 3; do echo > .git/hooks/h$i; done").run().ok();
    assert!(planted.stderr().contains(".git/hooks/h3 (git runs it) and 1 more\n"), "{planted}");
    let json = desk.held("--json -n j", "echo > .git/hooks/j").run().ok();
    assert!(json.stderr().contains(r#""dangerous":[{"path":"#) && json.stderr().contains(r#""why":"git runs it"}]"#), "{json}");
    let Some((status, said)) = at_terminal(desk, "commit own", "") else { return };
    assert!(status == 0 && !said.contains("[y/N]"), "{said}");
    let (status, said) = at_terminal(desk, "commit planted", "n\n").expect("as before");
    assert!(status == 1 && said.contains("with 4 dangerous changes that you have not looked at? [y/N]"), "{said}");
    at_terminal(desk, "show planted", "").expect("as before");
    let (status, said) = at_terminal(desk, "commit planted", "").expect("as before");
    assert!(status == 0 && !said.contains("[y/N]"), "{said}");
    // Where nobody can be asked, whoever wrote the script has decided.
    desk.recant("commit j").ok();
    let commit = "git -c user.name=a -c user.email=a@b commit -q --no-verify --allow-empty -m";
    desk.bare(&desk.world.tree(), &format!("rm .git/hooks/*; {commit} 1; {commit} 2"));
    desk.held("-q -n onwards", &format!("{commit} 3")).run().ok();
    desk.held("-q -n back", "git reset -q --hard HEAD~1").run().ok();
    let (status, said) = at_terminal(desk, "commit back", "n\n").expect("as before");
    assert!(status == 1 && said.contains("loses commits") && said.contains("with 1 dangerous change that"), "{said}");
    let (status, said) = at_terminal(desk, "commit onwards", "").expect("as before");
    assert!(status == 0 && !said.contains("[y/N]"), "{said}");
}

/// A person that looked at a session is asked about what an agent added since; who ran it himself is not.
#[test]
fn what_an_agent_adds_after_a_person_looked_is_asked_about_at_the_commit() {
    let desk = &own();
    let agent = |words: &str| desk.call(words.split(' ')).env("CLAUDECODE", "1").run();
    agent("run -q --session s -- touch one").ok();
    let tail = desk.id()[16..].to_owned();
    let Some((status, said)) = at_terminal(desk, "commit s", "n\n") else { return };
    assert!(status == 1 && said.contains("step 1, by claude: touch one"), "{said}");
    assert!(said.contains(&format!("Commit session {tail}, with 1 step that you have not looked at? [y/N]")), "{said}");
    at_terminal(desk, "diff s", "").expect("as before");
    agent("run -q --session s -- touch two").ok();
    agent("run -q --session s -- touch three").ok();
    let (status, said) = at_terminal(desk, "commit s", "n\n").expect("as before");
    assert!(status == 1 && !said.contains("step 1, ") && said.contains("with 2 steps that you have not"), "{said}");
    // What would be committed is summed up before the question.
    assert!(said.contains("  created   one\n  created   three\n  created   two\n"), "{said}");
    // The step in the word is a promise: a later one is not committed.
    let said = desk.recant("commit s@2").with(1);
    assert!(said.stderr().contains(&format!("session {tail} is at step 3, not at step 2")), "{said}");
    assert!(said.stderr().contains(&format!("recant diff {tail} --since 2 shows what came since")), "{said}");
    let said = agent("commit s").with(1);
    assert!(said.stderr().ends_with(&format!("in your own terminal: recant commit {tail}@3\n")), "{said}");
    at_terminal(desk, "show s", "").expect("as before");
    let (status, said) = at_terminal(desk, &format!("commit {tail}@3"), "").expect("as before");
    assert_eq!(status, 0, "{said}");
    assert!(["one", "two", "three"].iter().all(|name| desk.world.exists(name)));
    desk.recant("run -q -n mine -- touch four").ok();
    let (status, said) = at_terminal(desk, "commit mine", "").expect("as before");
    assert_eq!(status, 0, "who ran it is not asked: {said}");
    // Nor is a step committed that comes between the look and the lock.
    agent("run -q --session t -- touch five").ok();
    let late = format!("run:1:env -u RECANT_STEPS CLAUDECODE=1 {} run -q --session t -- touch late", crate::common::recant());
    let said = desk.call(["commit", "t@1"]).env("RECANT_STEPS", late).run().with(1);
    assert!(said.stderr().contains("is at step 2, not at step 1") && !desk.world.exists("late"), "{said}");
}

/// What a person did to its session since, an agent is told once, with the reason.
#[test]
fn an_agent_is_told_once_what_a_person_did_to_its_session() {
    let desk = &own();
    let agent = |words: &str| desk.call(words.split(' ')).env("CLAUDECODE", "1").run().ok().stderr();
    agent("run -q --session s -- touch one two");
    let told = |said: &str| said.lines().any(|line| line.contains(" by a person"));
    assert!(!told(&agent("run --session s -- touch three")));
    desk.call(["commit", "s", "two", "-m", "not the others"]).run().ok();
    let said = agent("run --session s -- true").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("a part of session s, ") && said.contains(" was committed by a person: not the others"), "{said}");
    assert!(!told(&agent("run --session s -- true")), "once");
    desk.call(["rewind", "s", "0", "-m", "begin again"]).run().ok();
    let said = agent("run --session s -- touch four");
    assert!(said.contains("session s was rewound to step 0 by a person: begin again"), "{said}");
    desk.call(["discard", "s", "-m", "not the tests"]).run().ok();
    let said = agent("run --session s -- touch five");
    assert!(said.contains("session s was discarded by a person: not the tests"), "{said}");
    assert!(!told(&agent("run --session s -- touch six")), "once");
    assert!(desk.recant("log").ok().stdout().contains("\n  not the tests\n"));
    for (reason, why) in [("a\tb", "control character"), (&*"x".repeat(501), "more than 500 bytes"), ("", "empty")] {
        assert!(desk.call(["discard", "s", "-m", reason]).run().with(2).stderr().contains(why));
    }
}

/// An agent goes on in sessions that an agent began. A person's it may fork.
#[test]
fn an_agent_goes_on_in_no_session_that_a_person_began() {
    let desk = &own();
    desk.recant("run -q -n mine -- touch one").ok();
    let agent = |words: &str| desk.call(words.split(' ')).env("CLAUDECODE", "1").run();
    for words in ["run --session mine -- touch evil", "shell mine"] {
        let said = agent(words).with(125);
        assert!(said.stderr().contains("a person began session") && said.stderr().contains("recant fork"), "{said}");
    }
    for words in ["rewind mine 0", "session rename mine other", "discard mine"] {
        agent(words).with(1);
    }
    agent("fork mine -n own").ok();
    agent("run --session own -- touch two").ok();
    agent("session rename own hers").ok();
    // A person's command in it closes it to nobody.
    desk.recant("run -q --session hers -- touch three").ok();
    agent("run --session hers -- touch four").ok();
    assert_eq!(desk.recant("diff hers --name-only").ok().stdout().lines().count(), 4);
    assert_eq!(desk.recant("diff mine --name-only").ok().stdout().lines().count(), 1);
}
