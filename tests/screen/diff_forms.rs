//! `diff` for eyes: words, white space, renames, more or less around a change.

use crate::common::{World, can_run, skip};
use insta::assert_snapshot;

fn numbered(lines: std::ops::Range<usize>) -> String {
    lines.map(|n| format!("line {n}\n")).collect()
}

/// A session with a change of each kind that forms are about.
fn world() -> (World, String) {
    let world = World::new();
    world.write("conf", "host = a.example\nport = 80\nlast\n").write("blanks", "if x {\n\ty\n}\n").write("tool", "a b\n");
    world.write("old/name", numbered(0..20)).write("both", "one two\nthree\n");
    let id = world.begin();
    world.stage_write(&id, "conf", "host = b.example\nport = 8080\nlast").stage_write(&id, "blanks", "if x  {\n    y\n}");
    world.call(["session", "write", &id, "tool", "--mode", "0755"]).stdin("a  b\n").run().ok();
    world.stage_write(&id, "both", "one  two\n3\n").stage_write(&id, "new/name", numbered(0..20).replace("line 7\n", "seven\n"));
    world.call(["session", "delete", &id, "-r", "old"]).run().ok();
    (world, id)
}

#[test]
fn words_that_differ_stand_in_brackets_without_colour_too() {
    let (world, id) = world();
    assert_snapshot!(world.call(["diff", &id, "--word-diff", "conf", "both", "tool"]).run().ok().masked_out(), @"
    diff --git a/world/tree/both b/world/tree/both
    --- a/world/tree/both
    +++ b/world/tree/both
    @@ -1,2 +1,2 @@
    one[- -]{+  +}two
    [-three-]{+3+}
    diff --git a/world/tree/conf b/world/tree/conf
    --- a/world/tree/conf
    +++ b/world/tree/conf
    @@ -1,3 +1,3 @@
    host = [-a-]{+b+}.example
    port = [-80-]{+8080+}
    last
    diff --git a/world/tree/tool b/world/tree/tool
    old mode 100644
    new mode 100755
    --- a/world/tree/tool
    +++ b/world/tree/tool
    @@ -1 +1 @@
    a[- -]{+  +}b
    ");
    let colored = world.call(["diff", &id, "conf", "--word-diff", "--color=always"]).run().ok().stdout();
    assert!(colored.contains("port = \u{1b}[31m[-80-]\u{1b}[0m\u{1b}[32m{+8080+}\u{1b}[0m\n"), "{colored:?}");
    // What is too much to compare by words is shown line by line.
    world.write("large", "x ".repeat(5000) + "\n").stage_write(&id, "large", "x ".repeat(4999) + "y\n");
    let large = world.call(["diff", &id, "large", "--word-diff"]).run().ok().stdout();
    assert!(large.ends_with(&format!("\n[-{}-]\n{{+{}y+}}\n", "x ".repeat(5000), "x ".repeat(4999))), "{large}");
}

#[test]
fn with_colour_the_words_are_marked_and_without_it_nothing_is() {
    let (world, id) = world();
    let plain = world.call(["diff", &id]).run().ok().stdout();
    let colored = world.call(["diff", &id, "--color=always"]).run().ok().stdout();
    assert_snapshot!(colored.split("diff --git").nth(3).unwrap().replace('\u{1b}', "^").replace(world.tree().to_str().unwrap(), ""), @r"
     a/conf b/conf^[0m
    ^[1m--- a/conf^[0m
    ^[1m+++ b/conf^[0m
    ^[36m@@ -1,3 +1,3 @@^[0m
    ^[31m-host = ^[0m^[7m^[31ma^[0m^[31m.example^[0m
    ^[31m-port = ^[0m^[7m^[31m80^[0m
    ^[31m-last^[0m
    ^[32m+host = ^[0m^[7m^[32mb^[0m^[32m.example^[0m
    ^[32m+port = ^[0m^[7m^[32m8080^[0m
    ^[32m+last^[0m
    \ No newline at end of file
    ^[33m# /new: new directory, mode 0755^[0m
    ^[1m
    ");
    // Signs and text are the same: colour alone says nothing.
    assert_eq!(anstream::adapter::strip_str(&colored).to_string(), plain);
    // Lines that have little in common are not marked, nor is a large block.
    world.write("other", "alpha beta\n".to_owned() + &"x ".repeat(5000) + "\n");
    world.stage_write(&id, "other", "gamma: delta\n".to_owned() + &"x ".repeat(4999) + "y\n");
    for path in ["other", "new/name"] {
        let lines = world.call(["diff", &id, path, "--color=always"]).run().ok().stdout();
        assert!(lines.contains("\u{1b}[32m+") && !lines.contains("\u{1b}[7m"), "{lines:?}");
    }
}

#[test]
fn changes_of_white_space_alone_are_not_shown_and_counted() {
    let (world, id) = world();
    let said = world.call(["diff", &id, "-w", "blanks", "both", "tool"]).run().ok();
    assert_snapshot!(said, @"
    status 0
    --- stdout
    diff --git a/world/tree/both b/world/tree/both
    --- a/world/tree/both
    +++ b/world/tree/both
    @@ -1,2 +1,2 @@
     one  two
    -three
    +3
    diff --git a/world/tree/tool b/world/tree/tool
    old mode 100644
    new mode 100755
    --- stderr
    recant: 1 file differs in white space alone
    ");
    assert_snapshot!(world.call(["diff", &id, "--ignore-space", "--stat", "blanks", "both", "tool"]).run(), @"
    status 0
    --- stdout
     both | 2 +-
     tool | mode change 100644 -> 100755
     2 files changed, 1 insertion(+), 1 deletion(-)
    --- stderr
    recant: 1 file differs in white space alone
    ");
    let json = |words: &[&str]| world.call([&["diff", &*id, "--json"], words].concat()).run().ok().json();
    assert_eq!(json(&["-w"]), json(&[]));
    assert_eq!(json(&["-w", "--stat"]), json(&["--stat"]));
    assert_eq!(json(&["-U0", "--find-renames", "-w"]), json(&[]));
    let all = world.call(["diff", &id, "-w", "blanks", "conf", "--stat", "-v"]).run().ok();
    assert_eq!(all.stderr(), "recant: 1 file differs in white space alone\n");
}

#[test]
fn a_rename_with_edits_is_shown_as_one_if_enough_of_it_stayed() {
    let (world, id) = world();
    let diff = |words: &[&str]| world.call([&["diff", &*id], words].concat()).run().ok().masked_out().to_owned();
    assert_snapshot!(diff(&["--find-renames", "-U1", "old", "new"]), @"
    # /world/tree/new: new directory, mode 0755
    diff --git a/world/tree/old/name b/world/tree/new/name
    similarity index 95%
    rename from world/tree/old/name
    rename to world/tree/new/name
    --- a/world/tree/old/name
    +++ b/world/tree/new/name
    @@ -7,3 +7,3 @@
     line 6
    -line 7
    +seven
     line 8
    # /world/tree/old: directory removed
    ");
    assert_snapshot!(diff(&["--find-renames", "--stat", "old", "new"]), @"
    new                  | new directory, mode 0755
    old/name => new/name | 2 +-
    old                  | directory removed
    3 files changed, 1 insertion(+), 1 deletion(-)
    ");
    let renames = |words: &[&str]| diff(words).matches("rename from").count();
    assert_eq!([renames(&["--find-renames=96%"]), renames(&["--find-renames=90"]), renames(&[])], [0, 1, 0]);
    // Half of a rename is a deletion, or a creation.
    assert!(diff(&["--find-renames", "old"]).contains("deleted file mode"));
    assert!(diff(&["--find-renames", "new"]).contains("new file mode"));
    // A side that is not there to be shown leaves the other.
    world.write("old/name", "somebody's\n");
    let said = diff(&["--find-renames", "old", "new"]);
    assert!(said.contains("# /world/tree/old/name: changed since: conflict") && said.contains("new file mode"), "{said}");
}

#[test]
fn of_several_that_are_alike_the_most_alike_is_the_rename_and_too_much_is_not_compared() {
    let world = World::new();
    world.write("a", numbered(0..50)).write("b", numbered(0..40)).write("same", "as it is\n");
    let id = world.begin();
    for gone in ["a", "b", "same"] {
        world.call(["session", "delete", &id, gone]).run().ok();
    }
    world.stage_write(&id, "x", numbered(0..42)).stage_write(&id, "y", numbered(0..49)).stage_write(&id, "z", "as it is\n");
    let renames = |id: &str| {
        let said = world.call(["diff", id, "--find-renames"]).run().ok();
        let lines: Vec<String> = said.masked_out().lines().filter(|line| line.contains("rename ")).map(str::to_owned).collect();
        (lines.join("\n").replace("world/tree/", ""), said.stderr())
    };
    let (all, said) = renames(&id);
    assert_snapshot!(all, @"
    rename from b
    rename to x
    rename from a
    rename to y
    rename from same
    rename to z
    ");
    assert_eq!(said, "");
    if !can_run() {
        return skip("renames among large files: recant run does not work here");
    }
    world.program("truncate", ["-s", "40M", "large"]).run().ok();
    let script = "rm large a same; truncate -s 41M huge; echo 'as it is' > z";
    world.call(["run", "-q", "-n", "large", "--", "sh", "-c", script]).run().ok();
    let (same, said) = renames("large");
    assert_eq!((same.lines().count(), said.lines().count()), (2, 1), "{same}{said}");
    assert!(said.starts_with("recant: too many files"), "{said}");
}

#[test]
fn each_view_of_a_difference_has_these_forms() {
    let (world, id) = world();
    let has = |words: &str, part: &str| {
        let said = world.recant(&words.replace("ID", &id)).ok().stdout();
        assert!(said.contains(part), "{words}: {said}");
    };
    world.recant("snapshot create").ok();
    world.write("conf", "host = c.example\nport = 81\n");
    has("diff ID --conflicts --word-diff", "port = [-81-]{+8080+}");
    has("diff ID --conflicts -U0", "@@ -1,2 +1,3 @@");
    has("snapshot diff last --word-diff", "host = [-a-]{+c+}.example");
    has("snapshot diff last -U0", "@@ -1,3 +1,2 @@");
    world.write("conf", "host  =  a.example\nport = 80\n last \n");
    assert_eq!(world.recant("snapshot diff last -w").ok().stderr(), "recant: 1 file differs in white space alone\n");
    if !can_run() {
        return skip("the forms of steps: recant run does not work here");
    }
    world.recant("run -q --session s -- sh -c true").ok();
    for script in ["mv both moved && echo more >> moved", "echo zzz > conf"] {
        world.call(["run", "-q", "--session", "s", "--", "sh", "-c", script]).run().ok();
    }
    has("diff s --step 1 --find-renames=20%", "similarity index 73%\n");
    has("diff s --since 1 --word-diff", "[-port = 80-]");
    has("diff s --with ID -U0", "@@ -1 +1,3 @@");
}

#[test]
fn forms_that_do_not_go_together_are_a_misuse() {
    let world = World::new();
    let forms = "--stat -U1; --stat --word-diff; --name-only -w; --name-only --find-renames; --conflicts --find-renames; \
                 --tool x --stat; --tool x -U1; --tool x --find-renames; --find-renames=0; --find-renames=101%; \
                 --find-renames=x; -U x; -U -1";
    for words in forms.split("; ") {
        let said = world.recant(&format!("diff last {words}")).with(2);
        assert!(said.out.is_empty() && said.stderr().starts_with("error: "), "{words}: {said}");
    }
}
