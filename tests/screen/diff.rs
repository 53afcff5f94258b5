//! `diff` and `cat`: what a session changes, as text that `git apply` takes.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::common::{self, World, name};
use crate::on_stderr;
use crate::terminal::Terminal;
use insta::assert_snapshot;

fn numbered(lines: std::ops::Range<usize>) -> String {
    lines.map(|n| format!("line {n}\n")).collect()
}

#[test]
fn a_patch_has_gits_headers() {
    let world = World::new();
    world.write("changed", "one\ntwo\nthree\n").write("gone", "bye\n").write("tool", "#!\n").symlink("here", "link");
    world.write("emptied", "x\n").write("was-empty", "").write("bin", b"a\0b");
    let id = world.begin();
    world.stage_write(&id, "changed", "one\n2\nthree").stage_write(&id, "new dir/a b", "hello\n").stage_write(&id, "empty", "");
    world.stage_write(&id, "emptied", "").stage_write(&id, "was-empty", "now\n").stage_write(&id, "bin", b"a\0c");
    world.stage(&id, ["delete gone", "chmod 0755 tool", "symlink there link"]);
    assert_snapshot!(world.call(["diff", &id]).run().ok().masked_out(), @r#"
    diff --git a/world/tree/bin b/world/tree/bin
    Binary files a/world/tree/bin and b/world/tree/bin differ
    diff --git a/world/tree/changed b/world/tree/changed
    --- a/world/tree/changed
    +++ b/world/tree/changed
    @@ -1,3 +1,3 @@
     one
    -two
    -three
    +2
    +three
    \ No newline at end of file
    diff --git a/world/tree/emptied b/world/tree/emptied
    --- a/world/tree/emptied
    +++ b/world/tree/emptied
    @@ -1 +0,0 @@
    -x
    diff --git a/world/tree/empty b/world/tree/empty
    new file mode 100644
    diff --git a/world/tree/gone b/world/tree/gone
    deleted file mode 100644
    --- a/world/tree/gone
    +++ /dev/null
    @@ -1 +0,0 @@
    -bye
    diff --git a/world/tree/link b/world/tree/link
    --- a/world/tree/link
    +++ b/world/tree/link
    @@ -1 +1 @@
    -here
    \ No newline at end of file
    +there
    \ No newline at end of file
    # /world/tree/new dir: new directory, mode 0755
    diff --git a/world/tree/new dir/a b b/world/tree/new dir/a b
    new file mode 100644
    --- /dev/null
    +++ b/world/tree/new dir/a b	
    @@ -0,0 +1 @@
    +hello
    diff --git a/world/tree/tool b/world/tree/tool
    old mode 100644
    new mode 100755
    diff --git a/world/tree/was-empty b/world/tree/was-empty
    --- a/world/tree/was-empty
    +++ b/world/tree/was-empty
    @@ -0,0 +1 @@
    +now
    "#);
    assert_snapshot!(world.call(["diff", &id, "--stat"]).run().ok().masked_out(), @"
    bin         | Bin 3 -> 3 bytes
    changed     | 4 ++--
    emptied     | 1 -
    empty       | 0
    gone        | 1 -
    link        | 2 +-
    new dir     | new directory, mode 0755
    new dir/a b | 1 +
    tool        | mode change 100644 -> 100755
    was-empty   | 1 +
    10 files changed, 5 insertions(+), 5 deletions(-)
    ");
}

#[test]
fn what_a_patch_cannot_say_stands_in_remarks() {
    let world = World::new();
    world.write("mode", "x").write("directory/in", "x").fifo("pipe").mkdir("kept").write("both", "a\n");
    let id = world.begin();
    world.stage(&id, ["chmod 0600 mode", "chmod 0700 kept", "delete directory", "delete pipe"]);
    world.call(["session", "mkdir", &id, "made", "--mode", "0750"]).run().ok();
    world.call(["session", "write", &id, "private", "--mode", "0600"]).stdin("x\n").run().ok();
    world.call(["session", "write", &id, "both", "--mode", "0640"]).stdin("b\n").run().ok();
    assert_snapshot!(world.call(["diff", &id]).run().ok().masked_out(), @r#"
    # /world/tree/both: mode 0644 -> 0640
    diff --git a/world/tree/both b/world/tree/both
    --- a/world/tree/both
    +++ b/world/tree/both
    @@ -1 +1 @@
    -a
    +b
    # /world/tree/directory: directory removed
    diff --git a/world/tree/directory/in b/world/tree/directory/in
    deleted file mode 100644
    --- a/world/tree/directory/in
    +++ /dev/null
    @@ -1 +0,0 @@
    -x
    \ No newline at end of file
    # /world/tree/kept: mode 0755 -> 0700
    # /world/tree/made: new directory, mode 0750
    # /world/tree/mode: mode 0644 -> 0600
    # /world/tree/pipe: fifo removed
    # /world/tree/private: mode 0600
    diff --git a/world/tree/private b/world/tree/private
    new file mode 100644
    --- /dev/null
    +++ b/world/tree/private
    @@ -0,0 +1 @@
    +x
    "#);
    assert_snapshot!(world.call(["diff", &id, "--stat"]).run().ok().masked_out(), @"
    both         | 2 +-
    directory    | directory removed
    directory/in | 1 -
    kept         | mode 0755 -> 0700
    made         | new directory, mode 0750
    mode         | mode 0644 -> 0600
    pipe         | fifo removed
    private      | 1 +
    8 files changed, 2 insertions(+), 2 deletions(-)
    ");
}

#[test]
fn git_apply_makes_of_the_tree_what_commit_makes_of_it_in_each_form_of_the_patch() {
    let world = World::new();
    if !world.program("git", ["--version"]).run().stdout().starts_with("git") {
        common::skip("git is not installed");
        return;
    }
    world.write("changed", numbered(0..100)).write("no-newline", "a\nb").write("tool", "x\n").write("gone/deep/file", "bye\n");
    world.write("to-link", "content\n").symlink("target", "to-file").symlink("target", "link").write("emptied", "x");
    world.write("quote\"d", "1\n").write("back\\slash", "1\n").write("new\nline", "1\n").write("tab\tbed", "1\n");
    world.write(name(b"latin-\xe4"), "1\n").write("trailing ", "1\n").write("ünïcode", "1\n");
    world.write("moved", numbered(0..50)).write("moved away/a b", numbered(100..150)).write("as it is", "the same\n");
    world.chmod("as it is", 0o755);
    let id = world.begin();
    let lines = numbered(0..100).replace("line 10\n", "").replace("line 50\n", "fifty\nand more\n").replace("line 99\n", "end");
    world.stage_write(&id, "changed", lines).stage_write(&id, "no-newline", "a\nb\n").stage_write(&id, "fresh/a b/c", "new\n");
    world.stage_write(&id, "emptied", "").stage_write(&id, "empty", "").stage_write(&id, "to-file", "file now\n");
    for odd in [&b"quote\"d"[..], b"back\\slash", b"new\nline", b"tab\tbed", b"latin-\xe4", b"trailing ", "ünïcode".as_bytes()]
    {
        world.stage_write(&id, name(odd), "2\n");
    }
    world.stage(&id, ["delete gone", "chmod 0755 tool", "symlink target to-link", "symlink elsewhere link", "delete moved"]);
    for gone in ["moved away", "as it is"] {
        world.call(["session", "delete", "-r", &id, gone]).run().ok();
    }
    world.stage_write(&id, "moved here", numbered(0..50).replace("line 20\n", "twenty\n")).stage_write(&id, "same", "the same\n");
    world.stage_write(&id, "new \"place\"/a", numbered(100..150).replace("line 149\n", "end"));
    let patch = world.call(["diff", &id, "changed"]).run().ok().stdout();
    let hunks: Vec<&str> = patch.lines().filter(|line| line.starts_with("@@")).collect();
    assert_eq!(hunks, ["@@ -8,7 +8,6 @@", "@@ -48,7 +47,8 @@", "@@ -97,4 +97,4 @@"], "they stand apart, and count right");
    let forms: [(&[&str], &[&str]); 5] = [
        (&[], &[]),
        (&["-U0"], &["--unidiff-zero"]),
        (&["-U", "10"], &[]),
        (&["--find-renames"], &[]),
        (&["--find-renames=30%", "--unified=0"], &["--unidiff-zero"]),
    ];
    let patches = forms.map(|(form, how)| (world.call([&["diff", &*id], form].concat()).run().ok().out, how));
    let renames = |patch: &[u8]| String::from_utf8_lossy(patch).lines().filter(|line| line.starts_with("rename from")).count();
    assert_eq!(patches.each_ref().map(|(patch, _)| renames(patch)), [0, 0, 0, 3, 3]);

    // Further trees, whose paths below their roots are the same as the real ones below `/`.
    let below = world.tree().strip_prefix("/").unwrap().to_owned();
    for (n, (patch, how)) in patches.iter().enumerate() {
        let copy = world.root().join(format!("copy-{n}"));
        let inside = copy.join(&below);
        world.mkdir(inside.parent().unwrap());
        world.program("cp", [name(b"-a"), world.tree().into_os_string(), inside.into_os_string()]).run().ok();
        let git = |args: &[&str], input: &[u8]| {
            world.program("git", args).cwd(&copy).stdin(input).env("GIT_CEILING_DIRECTORIES", world.root()).run()
        };
        git(&["init", "-q"], b"").ok();
        let applied = git(&[&["apply", "--whitespace=nowarn"], *how, &["-"]].concat(), patch);
        assert_eq!((applied.status, &*applied.stderr()), (0, ""), "{}", String::from_utf8_lossy(patch));
    }

    world.call(["commit", &id]).run().ok();
    // git keeps no owner, no time and no empty directory.
    let plain = |top: &std::path::Path| {
        let mut manifest = common::manifest(top);
        manifest.0.retain(|_, row| row.content != "directory");
        manifest.0.values_mut().for_each(|row| (row.mtime, row.mode) = ((0, 0), row.mode & 0o100));
        manifest
    };
    for (n, (form, _)) in forms.iter().enumerate() {
        let inside = world.root().join(format!("copy-{n}")).join(&below);
        plain(&world.tree())
            .assert_same(&plain(&inside), &format!("{form:?}: git made something else of the patch than commit did"));
    }
}

#[test]
fn only_named_paths_are_shown_and_a_path_that_is_not_in_the_session_names_the_nearest() {
    let world = World::new();
    let id = world.begin();
    world.stage_write(&id, "src/main.rs", "x\n").stage_write(&id, "src/lib.rs", "x\n").stage_write(&id, "docs/a", "x\n");
    let listed = |args: &[&str]| world.call([&["diff", &*id, "--name-only"], args].concat()).run().ok().masked_out().to_owned();
    assert_snapshot!(listed(&["src"]), @r#"
    /world/tree/src
    /world/tree/src/lib.rs
    /world/tree/src/main.rs
    "#);
    assert_snapshot!(listed(&["docs/", "src/lib.rs", "docs/a"]), @r#"
    /world/tree/docs
    /world/tree/docs/a
    /world/tree/src/lib.rs
    "#);
    assert_snapshot!(on_stderr(&world.call(["diff", &id, "src/mian.rs"]).run(), 1), @r#"
    recant: /world/tree/src/mian.rs: not in the session; the nearest: /world/tree/src/main.rs, /world/tree/src/lib.rs, /world/tree/src
            nothing was changed
            recant show <id1~> lists what is in it
    "#);
    assert_snapshot!(world.mkdir("elsewhere").call(["diff", "elsewhere"]).run().masked_err().lines().last().unwrap(), @r#"        the first word is a session; for the path: recant diff last elsewhere"#);
    assert_eq!(world.call(["diff", &id, "/"]).run().ok().out, world.call(["diff", &id]).run().ok().out);
}

#[test]
fn a_file_that_changed_since_is_a_conflict_and_no_old_side_is_invented() {
    let world = World::new();
    world.write("edited", "old\n").write("gone", "old\n").write("deleted", "old\n");
    let id = world.begin();
    world.stage_write(&id, "edited", "new\n").stage_write(&id, "gone", "new\n").stage_write(&id, "appeared", "new\n");
    world.call(["session", "delete", &id, "deleted"]).run().ok();
    world.write("edited", "somebody else's\n").remove("gone").write("appeared", "somebody else's\n").write("deleted", "other\n");
    assert_snapshot!(world.call(["diff", &id]).run().ok().masked_out(), @"
    # /world/tree/appeared: changed since: conflict
    diff --git a/world/tree/appeared b/world/tree/appeared
    new file mode 100644
    --- /dev/null
    +++ b/world/tree/appeared
    @@ -0,0 +1 @@
    +new
    # /world/tree/deleted: deleted, not shown
    # /world/tree/deleted: changed since: conflict
    # /world/tree/edited: modified, not shown
    # /world/tree/edited: changed since: conflict
    # /world/tree/gone: modified, not shown
    # /world/tree/gone: changed since: conflict
    ");
    let rows = world.call(["diff", &id, "--json"]).run().ok().json();
    assert!(rows["changes"].as_array().unwrap().iter().all(|change| change["conflict"] == true), "{rows}");
    assert_eq!(world.call(["cat", &id, "edited"]).run().ok().stdout(), "new\n");
    assert_snapshot!(on_stderr(&world.call(["cat", &id, "edited", "--before"]).run(), 1), @r#"
    recant: /world/tree/edited: changed since: conflict
            nothing was changed
    "#);
}

#[test]
fn of_a_run_the_old_side_of_a_conflict_is_the_original_that_is_kept() {
    let world = World::new();
    world.write("edited", "old\n").write("gone", "old\n").write("dropped", "old\n");
    let run = |name: &str, line: &str| drop(world.call(["run", "-q", "-n", name, "--", "sh", "-c", line]).run().ok());
    run("s", "echo new > edited; echo new > gone; rm dropped");
    world.write("edited", "somebody else's\n").remove("gone").write("dropped", "other\n");
    assert_snapshot!(world.recant("diff s").ok().masked_out(), @"
    # /world/tree/dropped: changed since: conflict
    diff --git a/world/tree/dropped b/world/tree/dropped
    deleted file mode 100644
    --- a/world/tree/dropped
    +++ /dev/null
    @@ -1 +0,0 @@
    -old
    # /world/tree/edited: changed since: conflict
    diff --git a/world/tree/edited b/world/tree/edited
    --- a/world/tree/edited
    +++ b/world/tree/edited
    @@ -1 +1 @@
    -old
    +new
    # /world/tree/gone: changed since: conflict
    diff --git a/world/tree/gone b/world/tree/gone
    --- a/world/tree/gone
    +++ b/world/tree/gone
    @@ -1 +1 @@
    -old
    +new
    ");
    assert_eq!(world.recant("cat s edited --before").ok().stdout(), "old\n");
    // Nothing is taken for it where none is kept.
    world.config("[capture]\nkeep_before = false\n").write("edited", "old\n");
    run("t", "echo new > edited");
    world.write("edited", "somebody else's\n");
    assert_snapshot!(world.recant("diff t").ok().masked_out(), @"
    # /world/tree/edited: modified, not shown
    # /world/tree/edited: changed since: conflict
    ");
}

#[test]
fn once_committed_the_old_side_comes_from_the_checkpoint() {
    let world = World::new();
    world.write("f", "old\n").write("mode", "x\n").symlink("a", "l").write("gone", "bye\n");
    let id = world.begin();
    world.stage_write(&id, "f", "new\n").stage_write(&id, "made", "new\n");
    world.stage(&id, ["chmod 0755 mode", "symlink b l", "delete gone"]);
    let pending = world.call(["diff", &id]).run().ok().stdout();
    for verb in ["commit", "rollback", "redo"] {
        world.call([verb, &id]).run().ok();
        assert_eq!(world.call(["diff", &id]).run().ok().stdout(), pending, "after {verb}");
    }
    assert_eq!(world.call(["cat", &id, "f", "--before"]).run().ok().stdout(), "old\n");
    assert_eq!(world.call(["cat", &id, "f"]).run().ok().stdout(), "new\n");
    world.write("f", "edited since\n");
    assert_snapshot!(world.call(["diff", &id, "f"]).run(), @"
    status 0
    --- stdout
    # /world/tree/f: modified, not shown
    # /world/tree/f: changed on the tree since it was committed
    --- stderr
    recant: 1 path changed since: recant diff <id1~> --conflicts shows both sides
    ");
    assert_eq!(world.call(["cat", &id, "f", "--before"]).run().ok().stdout(), "old\n");
    let said = world.call(["rollback", &id, "--force"]).run().ok();
    let told = format!("what was overwritten is kept: recant cat {} {} --displaced\n", &id[16..], "f");
    assert!(said.stderr().contains(&told), "{said}");
    assert_eq!(world.call(["cat", &id, "f", "--displaced"]).run().ok().stdout(), "edited since\n");
    assert_snapshot!(on_stderr(&world.call(["cat", &id, "made", "--displaced"]).run(), 1), @r#"
    recant: /world/tree/made: no --force has overwritten a file there
            nothing was changed
    "#);
}

#[test]
fn content_that_is_too_large_is_not_shown_but_said() {
    let world = World::new();
    world.write("large", vec![b'x'; 9 << 20]);
    let id = world.begin();
    world.stage_write(&id, "large", "small now\n");
    assert_snapshot!(world.call(["diff", &id]).run().ok().masked_out(), @r#"
    # /world/tree/large: modified, not shown
    # /world/tree/large: 9.0 MiB -> 10 B: too large to show (limit 8.0 MiB)
    "#);
    assert_snapshot!(world.call(["diff", &id, "--stat"]).run().ok().masked_out(), @"
    large | modified, not shown; 9.0 MiB -> 10 B: too large to show (limit 8.0 MiB)
    1 file changed, 0 insertions(+), 0 deletions(-)
    ");
}

#[test]
fn colour_is_for_terminals_or_where_it_is_asked_for() {
    let world = World::new();
    let id = world.begin();
    world.stage_write(&id, "f", "x\n");
    let colored = |args: &[&str]| world.call([&["diff", &*id], args].concat()).run().ok().stdout().contains('\u{1b}');
    assert!(!colored(&[]) && colored(&["--color", "always"]) && !colored(&["--color=never"]));
    world.config("color = 'always'\n");
    assert!(colored(&[]) && !colored(&["--color", "auto"]));
    assert!(!world.call(["diff", &id]).env("NO_COLOR", "1").run().ok().stdout().contains('\u{1b}'));
}

#[test]
fn cat_prints_links_too_and_says_what_has_no_content() {
    let world = World::new();
    world.write("gone", "bye").mkdir("d");
    let id = world.begin();
    world.call(["session", "symlink", &id, "over there", "l"]).run().ok();
    world.stage(&id, ["delete gone", "delete d"]);
    assert_eq!(world.call(["cat", &id, "l"]).run().ok().stdout(), "over there\n");
    assert_eq!(world.call(["cat", &id, "gone", "--before"]).run().ok().stdout(), "bye");
    assert_snapshot!(on_stderr(&world.call(["cat", &id, "gone"]).run(), 1), @r#"
    recant: /world/tree/gone: nothing is there after session <id1>
            nothing was changed
            recant cat <id1~> /world/tree/gone --before shows what was there
    "#);
    assert_snapshot!(on_stderr(&world.call(["cat", &id, "d", "--before"]).run(), 1), @r#"
    recant: /world/tree/d: it is a directory, which has no content
            nothing was changed
    "#);
    assert_snapshot!(on_stderr(&world.call(["cat", &id, "other"]).run(), 1), @r#"
    recant: /world/tree/other: not in the session; the nearest: /world/tree/gone, /world/tree/d, /world/tree/l
            nothing was changed
            recant show <id1~> lists what is in it
    "#);
}

/// What a person sees at a terminal of a recant that pages by `pager`: the words, split at spaces.
fn seen(world: &World, words: &str, pager: &str) -> Option<Vec<u8>> {
    if world.program("script", ["-V"]).command().output().is_err() {
        common::skip("script makes the terminal");
        return None;
    }
    let command = format!("{} {words}", common::recant());
    let call = world.program("script", ["-qec", &command, "/dev/null"]).env("TERM", "dumb").env("PAGER", pager);
    Some(call.run().ok().out)
}

#[test]
fn content_gives_a_terminal_no_orders_and_a_pipe_has_it_as_it_is() {
    let world = World::new();
    let sly = b"safe\n\x1b[8mrm -rf /\x1b[0m\nover\rwritten\nC1 \x9b8m \xc2\x9b8m\n\x1b]52;c;AA==\x07 \xe2\x80\xae \xc3\xa4\n";
    let id = world.begin();
    world.stage_write(&id, "f", sly);
    world.call(["session", "symlink", &id, "\u{1b}[8mx", "link"]).run().ok();
    let piped = world.call(["diff", &id]).run().ok().out;
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|at| at == part);
    assert!(sly.split_inclusive(|b| *b == b'\n').all(|line| has(&piped, &[b"+", line].concat())), "{}", piped.escape_ascii());
    for pager in ["cat", "cat > paged; cat paged"] {
        let Some(seen) = seen(&world, &format!("--color never diff {id}"), pager) else { return };
        let shown = String::from_utf8(seen).unwrap();
        let lines: Vec<&str> = shown.lines().map(|line| line.trim_end_matches('\r')).collect();
        for line in
            ["+safe", "+^[[8mrm -rf /^[[0m", "+over^Mwritten", "+C1 <9B>8m <9B>8m", "+^[]52;c;AA==^G <U+202E> ä", "+^[[8mx"]
        {
            assert!(lines.contains(&line), "{pager}: {line}: {shown}");
        }
        assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{pager}: {shown}");
    }
    // A snapshot's difference is shown as a session's.
    world.recant("snapshot create").ok();
    world.write("g", "a\x1b[8mb\n");
    let Some(seen) = seen(&world, "--color never snapshot diff last", "cat") else { return };
    assert!(has(&seen, b"+a^[[8mb"), "{}", seen.escape_ascii());
    common::way("control characters that hide lines of a diff", common::this_user(), "diff", "closed");
}

#[test]
fn names_with_characters_that_would_not_show_are_quoted_everywhere_and_escaped_in_json() {
    let world = World::new();
    let names = ["c1\u{9b}8m", "rtl\u{202e}txt.exe", "iso\u{2066}late", "mark\u{200e}", "alm\u{61c}", "del\u{7f}"];
    let id = world.begin();
    for name in names {
        world.stage_write(&id, name, "x\n");
    }
    let odd = |text: &str| {
        text.contains(|c: char| c.is_control() && c != '\n' && c != '\t' || names.concat().contains(c) && !c.is_ascii())
    };
    for words in ["diff", "diff --stat", "diff --name-only", "show", "diff --json", "show --json", "commit --dry-run"] {
        let said = world.call(words.split(' ').chain([&*id])).run().ok();
        assert!(!odd(&said.stdout()) && !odd(&said.stderr()), "{words}: {said}");
    }
    let paths = world.call(["diff", "--name-only", "--json", &id]).run().ok().json();
    let paths: Vec<&str> = paths["paths"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    assert!(names.iter().all(|name| paths.iter().any(|path| path.ends_with(name))), "{paths:?}");
    // git reads such names as they are quoted.
    let patch = world.call(["diff", &id]).run().ok().out;
    world.mkdir("elsewhere");
    let below = world.tree().as_os_str().as_encoded_bytes().iter().filter(|b| **b == b'/').count();
    let applied = world.program("git", ["apply", &format!("-p{}", below + 1)]).cwd(world.path("elsewhere")).stdin(patch).run();
    applied.ok();
    assert!(names.iter().all(|name| world.exists(format!("elsewhere/{name}"))));
    common::way("names that do not read as what they are", common::this_user(), "diff, show", "closed");
}

#[test]
fn a_hard_link_that_a_run_makes_is_shown_as_one() {
    let Some(world) = common::can_run().then(World::new) else { return };
    world.write("old", "unique\n");
    world.call(["run", "-q", "-n", "links", "--", "ln", "old", "new"]).run().ok();
    let said = world.recant("diff links").ok().masked_out().to_string();
    let remarks: Vec<&str> = said.lines().filter(|line| line.starts_with('#')).collect();
    assert_snapshot!(remarks.join("\n"), @"
    # /world/tree/new: hard link: one of several names of one file
    # /world/tree/old: hard link: one of several names of one file
    ");
    let shown = world.recant("show links").ok().stdout();
    assert!(["new  (hard link)", "old  (hard link)"].iter().all(|row| shown.contains(row)), "{shown}");
    let rows = world.recant("show links --json").ok().json();
    assert!(rows["changes"].as_array().unwrap().iter().all(|row| row["linked"] == true), "{rows}");
    common::way("a further name of a file that does not show as one", common::this_user(), "diff, show", "closed");
}

#[test]
fn the_owner_of_what_is_new_and_the_rights_that_it_gives_are_shown_with_the_counts_too() {
    let Some(world) = (common::is_root("owners") && common::can_run()).then(World::new) else { return };
    world.write("old", "x\n");
    let script = "echo a > plain; echo b > tool; chmod 4755 tool; echo c > group; chown 0:7 group; chmod 2755 group; \
                  echo d > theirs; chown 1234:5678 theirs; ln -s there link; chown -h 1234:5678 link; mkdir dir; chown 12:34 dir; \
                  echo y >> old; chown 9:9 old; chmod 4711 old; \
                  echo e > able; printf '\\001\\0\\0\\002\\0\\040\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' | \
                  python3 -c 'import os,sys; os.setxattr(\"able\", \"security.capability\", sys.stdin.buffer.read())'";
    world.call(["run", "-q", "-n", "rights", "--", "sh", "-ec", script]).run().ok();
    let said = world.recant("diff rights").ok().masked_out().to_string();
    let remarks: Vec<&str> = said.lines().filter(|line| line.starts_with('#')).collect();
    assert_snapshot!(remarks.join("\n"), @"
    # /world/tree/able: extended attribute security.capability
    # /world/tree/dir: new directory, mode 0755
    # /world/tree/dir: owner 12:34
    # /world/tree/group: mode 2755
    # /world/tree/group: owner 0:7
    # /world/tree/link: owner 1234:5678
    # /world/tree/old: mode 0644 -> 4711
    # /world/tree/old: owner 0:0 -> 9:9
    # /world/tree/theirs: owner 1234:5678
    # /world/tree/tool: mode 4755
    # /world/tree/tool: owner 0:0
    ");
    assert_snapshot!(world.recant("diff rights --stat").ok().masked_out(), @"
    able   | 1 +
           | extended attribute security.capability
    group  | 1 +
           | mode 2755; owner 0:7
    old    | 1 +
           | mode 0644 -> 4711; owner 0:0 -> 9:9
    tool   | 1 +
           | mode 4755; owner 0:0
    dir    | new directory, mode 0755; owner 12:34
    link   | 1 +
           | owner 1234:5678
    plain  | 1 +
    theirs | 1 +
           | owner 1234:5678
    8 files changed, 7 insertions(+)
    ");
    common::way("an owner, setuid, setgid or capability that nobody sees", "Root", "diff", "closed");
}

#[test]
fn the_first_patch_is_printed_before_the_last_file_is_read_for_its_rename_too() {
    let Some(world) = common::can_run().then(World::new) else { return };
    world.write("gone", "a twin\n").write("last", "old\n");
    // The first is more than a pipe holds, so that recant waits for its reader.
    let script = "seq 100000 > first; rm gone; echo a twin > made; echo begun > last";
    world.call(["run", "-q", "-n", "large", "--", "sh", "-c", script]).run().ok();
    let held = |name: &str| {
        let found = world.program("find", [world.store().to_str().unwrap(), "-type", "f", "-name", name]).run().ok().stdout();
        std::path::PathBuf::from(found.strip_suffix('\n').expect("a held file"))
    };
    assert!(world.recant("diff large").ok().stdout().contains("made: renamed from"));
    let mut child = world.call(["diff", "large"]).command().stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::with_capacity(16, child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("diff --git") && line.ends_with("/first\n"), "{line}");
    // Other content of the same length in the store: none of it was read yet.
    world.write(held("last"), "later\n").write(held("made"), "others\n");
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    let rest: Vec<&str> =
        rest.lines().filter(|line| line.starts_with(['#', '-', '+']) && !line.contains(char::is_numeric)).collect();
    let rest = rest.join("\n");
    assert!(rest.contains("+later") && rest.contains("+others") && !rest.contains("renamed"), "{rest}");
}

#[test]
fn a_person_at_a_terminal_sees_the_sources_and_what_else_there_is_in_a_line_each() {
    let world = World::new();
    let id = world.begin();
    for path in ["node_modules/a/index.js", "node_modules/a/package.json", "node_modules/b/index.js", "src/a.js", "src/b.js"] {
        world.stage_write(&id, path, "one\n");
    }
    world.stage_write(&id, "package.json", "{}\n").stage_write(&id, "README", "read me\n");
    assert_snapshot!(world.call(["diff", &id, "--stat"]).run().ok().masked_out(), @"
    package.json  | 1 +
                  | npm runs its scripts
    README        | 1 +
    src/          | new directory: 2 files, 8 B
    node_modules/ | dependencies: 6 created, 12 B
    2 files changed, 2 insertions(+)
    and 9 changes summed up: recant diff <id1~> --stat --full
    ");
    // Elsewhere all of it is the patch, and all of it with --full.
    let whole = world.call(["diff", &id]).run().ok().stdout();
    assert!(whole.contains("+++ b/") && whole.contains("node_modules/b/index.js") && whole.contains("src/b.js"), "{whole}");
    let full = world.call(["diff", &id, "--stat", "--full"]).run().ok().stdout();
    assert!(full.contains(" node_modules/b/index.js ") && !full.contains("summed up"), "{full}");
    let named = world.call(["diff", &id, "node_modules", "--stat"]).run().ok().stdout();
    assert!(named.contains(" node_modules/b ") && !named.contains("dependencies"), "{named}");
    let Some(terminal) = Terminal::open(&world, 100, 60) else { return };
    terminal.line(&format!("PAGER= recant diff {id}"));
    let seen = terminal.sees("+read me");
    let remarks: Vec<&str> = seen.lines().filter(|line| line.starts_with("# ")).collect();
    assert_eq!(
        remarks[..2],
        ["# package.json: npm runs its scripts", "# node_modules/: dependencies: 6 created, 12 B"],
        "{seen}"
    );
    assert!(remarks[2].starts_with("# not shown: 6 changes summed up: recant diff "), "{seen}");
    assert!(seen.contains("b/src/b.js") || seen.contains("/src/b.js"), "{seen}");
    assert!(!seen.contains("index.js"), "{seen}");
}
