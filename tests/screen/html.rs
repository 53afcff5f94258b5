//! `diff --html`: one page of all changes, of sessions, steps, turns and snapshots.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::agent::{Agent, repository};
use crate::common::sweep::{Came, Sweep};
use crate::common::{World, can_run, name, recant, skip};
use crate::page::{self, Page};

/// The page that a call makes. Its notes go to standard error alone.
fn page(world: &World, words: &str) -> Page {
    Page::read(&world.recant(&format!("{words} --html")).ok().stdout())
}

/// A session that begins with a run of this script.
fn ran(world: &World, id: &str, script: &str) {
    world.call(["run", "-n", id, "--", "sh", "-ec", script]).run().ok();
}

#[test]
fn a_page_has_every_kind_of_change_and_says_what_it_is_of() {
    let Some(world) = can_run().then(World::new) else { return skip("recant run does not work here") };
    world.write("config", "host = a.example\nport = 80\nlast\n").write("old", "one\ntwo\n").write("mode", "x\n");
    world
        .write("picture", b"GIF\0\x01\x02")
        .symlink("config", "link")
        .write("times", "same\n")
        .write("h1", "two\n")
        .link("h1", "h2");
    ran(
        &world,
        "kinds",
        "printf 'host = b.example\nport = 8080\nlast' > config; rm old; chmod 755 mode; printf 'GIF\\0\\1\\3\\4' > picture; \
         ln -sfn old link; touch -d 2001-01-01 times; mkdir new; mkfifo pipe; ln h1 h3; : > empty; ln -s x made",
    );
    let page = page(&world, "diff kinds --all");
    assert!(page.text("h1").starts_with("Changes of session ") && page.text("h1").ends_with(", kinds"), "{}", page.text("h1"));
    assert_eq!(page.text("title"), page.text("h1"));
    assert_eq!(page.fact("status"), "pending: held, and the files are as they were");
    assert!(page.fact("command").starts_with("sh -ec ") && page.fact("begun").ends_with("exit status 0"));
    assert_eq!(page.fact("in"), world.tree().to_str().expect("a plain path"));
    assert!(page.fact("by") == "root" || page.fact("by").starts_with("user "), "{}", page.fact("by"));
    let files: Vec<String> = page.files().iter().map(|file| format!("{} {}", file.word, file.name)).collect();
    let files: Vec<&str> =
        files.iter().map(String::as_str).filter(|file| !file.ends_with("h1") && !file.ends_with("h2")).collect();
    let want = "modified config, created empty, created h3, modified link, created made, metadata mode, created new, \
                deleted old, modified picture, created pipe, times times";
    assert_eq!(files.join(", "), want);
    let lines = |name: &str| page.lines(&page.of(name));
    let removed = "@@ -1,3 +1,3 @@\n1||−|host = a.example\n2||−|port = 80\n3||−|last\n";
    let added = "|1|+|host = b.example\n|2|+|port = 8080\n|3|+|last\n|||\\ No newline at end of file";
    assert_eq!(lines("config").join("\n"), removed.to_owned() + added);
    let config = page.of("config").at;
    let marked: Vec<&str> = page.below(config, "mark").map(|mark| &*mark.text).collect();
    assert_eq!(marked, ["a", "80", "b", "8080"]);
    assert_eq!([page.below(config, "del").count(), page.below(config, "ins").count()], [3, 3]);
    assert_eq!(lines("link"), ["@@ -1 +1 @@", "1||−|config", "|1|+|old"]);
    assert_eq!(lines("old"), ["@@ -1,2 +0,0 @@", "1||−|one", "2||−|two"]);
    assert_eq!(lines("picture"), ["− before|0x0|47 49 46 00 01 02|GIF...", "+ after|0x0|47 49 46 00 01 03 04|GIF...."]);
    let remarks = |name: &str| page.remarks(&page.of(name)).join("; ");
    assert_eq!(remarks("picture"), "6 bytes -> 7 bytes");
    assert_eq!(remarks("mode"), "mode change 100644 -> 100755");
    assert_eq!(remarks("new"), "new directory, mode 0755");
    assert_eq!(remarks("pipe"), "new fifo, mode 0644");
    assert!(remarks("h3").contains("hard link: one of several names of one file"), "{}", remarks("h3"));
    assert!(remarks("times").starts_with("mtime ") && remarks("times").contains("-> 2001-01-01"), "{}", remarks("times"));
    assert!(page.text("main").contains("An empty file."));
    // Without --all the time alone is no change of the page, and the page says so.
    let page = self::page(&world, "diff kinds");
    assert!(page.files().iter().all(|file| file.name != "times"));
    let minded: Vec<String> = page.all("li").map(|(_, li)| li.text.clone()).collect();
    assert!(minded.contains(&"not listed 1 change of the mtime alone (--all lists them)".to_owned()), "{minded:?}");
    assert!(page.all("caption").any(|(_, caption)| caption.text == "What happens to changes there"));
}

#[test]
fn a_page_runs_and_loads_nothing() {
    let world = World::new();
    let id = world.begin();
    world.stage_write(&id, "a", "text\n");
    let text = world.recant(&format!("diff {id} --html")).ok().stdout();
    let page = Page::read(&text);
    let policy = page.all("meta").find_map(|(_, meta)| meta.attributes.get("content").filter(|of| of.contains("src")));
    assert_eq!(policy.map(String::as_str), Some("default-src 'none'; style-src 'unsafe-inline'"));
    assert!(page.0.iter().all(|one| !matches!(&*one.name, "script" | "img" | "link" | "iframe" | "form" | "object")));
    let loads =
        |(key, value): (&String, &String)| key.starts_with("on") || key == "src" || key == "href" && !value.starts_with('#');
    assert!(page.0.iter().all(|one| !one.attributes.iter().any(loads)));
    assert!(!text.contains("url(") && !text.contains("@import") && !text.contains("://"));
    let html = page.all("html").next().expect("its root").1;
    assert_eq!(html.attributes.get("lang").map(String::as_str), Some("en"));
    assert_eq!(page.all("h1").count(), 1);
    // Every table has a caption, every cell of a head tells what it is the head of, every link leads somewhere.
    for (at, _) in page.all("table") {
        assert_eq!(page.below(at, "caption").count(), 1);
    }
    assert!(page.all("th").all(|(_, th)| th.attributes.contains_key("scope")));
    let ids: BTreeSet<&str> = page.0.iter().filter_map(|one| one.attributes.get("id")).map(String::as_str).collect();
    assert!(page.all("a").all(|(_, a)| ids.contains(&a.attributes["href"][1..])));
}

#[test]
fn names_and_content_are_text_and_what_does_not_show_is_shown() {
    let world = World::new();
    let id = world.begin();
    let odd = name(b"a<script>\"'&\n\xe2\x80\xae\xff");
    world.stage_write(&id, &odd, "let a = \"\u{202e}\u{2066}x\u{200b}\u{200e}\u{61c}\u{ad}\"; <b>&amp;\u{7}\r\n\tend\n");
    world.stage_write(&id, "bytes", b"\xff\xc3(\n");
    world.call(["session", "symlink", &id, "<i>\u{2067}", "odd\u{200d}link"]).run().ok();
    // The reader refuses markup and unseen characters anywhere.
    let page = page(&world, &format!("diff {id}"));
    let file = page.of("a<script>\"'&^J<U+202E><FF>");
    assert_eq!(
        page.lines(&file),
        ["@@ -0,0 +1,2 @@", "|1|+|let a = \"<U+202E><U+2066>x<U+200B><U+200E><U+061C><U+00AD>\"; <b>&amp;^G^M", "|2|+|\tend",]
    );
    // They are marked, so that no file can write such a sign itself.
    let signs: Vec<&str> = page.below(file.at, "i").map(|sign| &*sign.text).collect();
    assert!(signs.contains(&"^G") && signs.contains(&"<U+2066>") && !signs.contains(&"<b>"), "{signs:?}");
    assert_eq!(page.lines(&page.of("bytes"))[1], "|1|+|<FF><C3>(");
    assert_eq!(page.lines(&page.of("odd<U+200D>link"))[1], "|1|+|<i><U+2067>");
    assert!(page.all("caption").any(|(_, caption)| caption.text.contains("a<script>\"'&^J<U+202E><FF>: − before, + after")));
    // Lines around a change stand in an attribute, too, for the second column.
    world.write("around", "\"<U+202E>\u{202e}'>\nold\n").stage_write(&id, "around", "\"<U+202E>\u{202e}'>\nnew\n");
    let page = self::page(&world, &format!("diff {id} around"));
    let told: Vec<&String> = page.all("tr").filter_map(|(_, row)| row.attributes.get("data-t")).collect();
    assert_eq!(told, ["\"<U+202E><U+202E>'>"]);
    // What a session is called, too: in its head, in what has to be minded, in the command.
    let world = World::new();
    world.call(["session", "new", "-n", "x"]).env("RECANT_AGENT", "<b>\u{202e}").run().ok();
    world.stage_write("x", "a", "1");
    let page = self::page(&world, "diff x");
    assert!(page.fact("agent").contains("<b>"), "{}", page.fact("agent"));
}

#[test]
fn every_deletion_is_listed_and_open_however_many_there_are() {
    let Some(world) = can_run().then(World::new) else { return skip("recant run does not work here") };
    let make = "mkdir gone kept; for n in $(seq 1000 3999); do echo line $n > gone/$n; done; for n in $(seq 1000 1299); do echo one > kept/$n; done";
    world.program("sh", ["-ec", make]).run().ok();
    world.write("gone/large", "a line\n".repeat(600));
    ran(&world, "many", "rm -r gone; for n in $(seq 1000 1299); do echo two > kept/$n; done; seq 401 > kept/large");
    let page = page(&world, "diff many");
    let files = page.files();
    let (deleted, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.word == "deleted");
    assert_eq!([deleted.len(), others.len()], [3002, 301]);
    assert!(deleted.iter().all(|file| file.is_open), "a deleted file is folded");
    // They fill the 200 that are open: all others are folded, the large one of them says so.
    assert!(others.iter().all(|file| !file.is_open));
    assert!(page.of("kept/large").summary.contains("401 lines, folded"));
    // Their list is in no fold; that of the others is.
    let folded = |at: &usize| page.0[*at].name == "details";
    let listed = |name: &str| {
        let of = |(_, a): (usize, &page::Element)| (a.text == name).then(|| a.above.iter().any(folded));
        page.all("a").find_map(of).unwrap_or_else(|| panic!("{name} is not listed"))
    };
    assert!(deleted.iter().step_by(97).all(|file| !listed(&file.name)) && listed("kept/1000"));
    let links: BTreeSet<&str> = page.all("a").map(|(_, a)| &*a.text).collect();
    assert!(files.iter().all(|file| links.contains(&*file.name)), "a path is not listed");
}

#[test]
fn large_files_are_folded_and_cut_with_the_command_that_shows_all() {
    let world = World::new();
    let text: String = (0..6000).map(|n| format!("{n}\n")).collect();
    world.write("gone it's", &text).write("some", "a\n");
    let id = world.begin();
    world.call(["session", "delete", &id, "gone it's"]).run().ok();
    world
        .stage_write(&id, "long", &text)
        .stage_write(&id, "wide", "é".repeat(6000) + "\nshort\n")
        .stage_write(&id, "some", "b\n");
    let page = page(&world, &format!("diff {id}"));
    let tail = id.rsplit('-').next().expect("an id");
    let (tree, gone, long) = (world.tree(), page.of("gone it's"), page.of("long"));
    let tree = tree.display();
    let told = |path: &str| format!("1,000 more lines are left out here. All of it: recant diff {tail} {path}");
    assert_eq!(page.lines(&gone).last(), Some(&told(&format!("'{tree}/gone it'\\''s'"))));
    assert_eq!(page.lines(&long).last(), Some(&told(&format!("{tree}/long"))));
    assert_eq!([page.lines(&gone).len(), page.lines(&long).len()], [5002, 5002]);
    // The counts are those of all lines, and what is deleted stays open.
    assert!(gone.is_open && gone.summary.contains("−6,000"), "{gone:?}");
    assert!(!long.is_open && long.summary.contains("+6,000") && long.summary.contains("5,000 lines, folded"), "{long:?}");
    assert!(page.of("some").is_open);
    let wide = page.lines(&page.of("wide"));
    assert_eq!(wide[1], format!("|1|+|{} … 2,000 more bytes of this line are left out", "é".repeat(5000)));
    assert_eq!(wide[2], "|2|+|short");
}

#[test]
fn the_counts_are_those_of_stat() {
    let world = World::new();
    world.write("a", "1\n2\n3\n").write("b", "x\n").write("l", "y\n").write("bin", b"\0").symlink("a", "was-link");
    let id = world.begin();
    world.stage_write(&id, "a", "1\nzwei\n3\n4").stage_write(&id, "n", "new\nfile\n").stage_write(&id, "bin", b"\0\0");
    world.call(["session", "delete", &id, "b"]).run().ok();
    world.call(["session", "symlink", &id, "a", "l", "--replace"]).run();
    world.call(["session", "delete", &id, "was-link"]).run().ok();
    let page = page(&world, &format!("diff {id}"));
    let json = world.recant(&format!("diff {id} --stat --full --json")).ok().json();
    let rows = json["changes"].as_array().expect("changes");
    assert_eq!(page.files().len(), rows.len());
    let mut sums = [0, 0];
    for row in rows {
        let path = row["path"].as_str().expect("a path");
        let file = page.of(path.rsplit('/').next().expect("a name"));
        assert_eq!(file.word, row["change"].as_str().expect("a word"));
        for (i, (key, sign)) in [("insertions", '+'), ("deletions", '−')].iter().enumerate() {
            let count = row["lines"][key].as_u64();
            sums[i] += count.unwrap_or(0);
            let said = file.summary.split_whitespace().find_map(|word| word.strip_prefix(*sign));
            assert_eq!(
                said.map(|said| said.parse().expect("a number")),
                count.filter(|n| *n > 0),
                "{path} {key}: {}",
                file.summary
            );
        }
    }
    let said = page.all("p").map(|(_, p)| p.text.clone()).find(|text| text.contains(" created")).expect("sums");
    assert!(said.contains(&format!("+{} −{} lines", sums[0], sums[1])), "{said}");
}

#[test]
fn rights_conflicts_and_what_is_not_covered_stand_above_all_files() {
    let world = World::new();
    world.write("mine", "one\n").write("tool", "#!/bin/sh\n").write("fine", "f\n");
    let id = world.begin();
    world.stage_write(&id, "mine", "two\n").stage_write(&id, "fine", "g\n");
    world.call(["session", "write", &id, "tool", "--mode", "4755"]).stdin("#!/bin/sh\n").run().ok();
    world.write("mine", "theirs\n");
    let first = |page: &Page| {
        let is_mind = |section: &page::Element| section.attributes.get("class").is_some_and(|class| class == "mind");
        let (at, _) = page.all("section").find(|(_, section)| is_mind(section)).expect("it");
        assert!(at < page.files()[0].at);
        page.below(at, "li").map(|li| li.text.clone()).collect::<Vec<_>>()
    };
    let page = page(&world, &format!("diff {id}"));
    assert_eq!(first(&page), ["mine: modified, not shown; changed since: conflict", "tool: mode 0644 -> 4755"]);
    assert!(page.of("mine").summary.contains("conflict") && page.of("tool").summary.contains("gives rights"));
    assert!(!page.of("fine").summary.contains("conflict"));
    // Each side of a conflict has a name.
    let page = self::page(&world, &format!("diff {id} --conflicts"));
    let tail = id.rsplit('-').next().expect("an id");
    assert_eq!(page.text("h1"), format!("Conflicts of session {tail}"));
    assert!(
        page.all("caption").any(|(_, caption)| caption.text == format!("Lines of mine: − on the tree now, + held in {tail}")),
        "sides"
    );
    world.write("mine", "one\n");
    assert!(self::page(&world, &format!("diff {id} --conflicts")).text("main").contains("Nothing differs."));
}

#[test]
fn steps_and_sessions_against_each_other_have_pages() {
    let Some(world) = can_run().then(World::new) else { return skip("recant run does not work here") };
    world.write("a", "1\n");
    let step =
        |session: &str, script: &str| drop(world.call(["run", "--session", session, "--", "sh", "-ec", script]).run().ok());
    step("one", "echo 2 > a");
    step("one", "echo 3 > a; echo b > b");
    step("two", "echo 4 > a");
    let tail = |name: &str| {
        world.recant(&format!("show {name} --json")).ok().json()["session"]["id"].as_str().expect("an id")[16..].to_owned()
    };
    let (one, two) = (tail("one"), tail("two"));
    let page = page(&world, "diff one --step 1");
    assert_eq!(page.text("h1"), format!("Step 1 of session {one}"));
    assert_eq!(page.fact("command"), "sh -ec \"echo 2 > a\"".replace('"', ""));
    assert_eq!(page.lines(&page.of("a")), ["@@ -1 +1 @@", "1||−|1", "|1|+|2"]);
    let page = self::page(&world, "diff one --since 1");
    assert_eq!(page.text("h1"), format!("Session {one} after step 1"));
    assert_eq!(page.lines(&page.of("a")), ["@@ -1 +1 @@", "1||−|2", "|1|+|3"]);
    assert_eq!(page.files().len(), 2);
    let page = self::page(&world, "diff one --with two");
    assert_eq!(page.text("h1"), format!("Session {one} against session {two}"));
    assert!(page.all("caption").any(|(_, caption)| caption.text == format!("Lines of a: − session {one}, + session {two}")));
    assert!(self::page(&world, "diff one --since 2").text("main").contains("Nothing differs."));
    world.recant("commit one").ok();
    assert_eq!(self::page(&world, "diff one").fact("status"), "committed: the files have these changes");
}

#[test]
fn turns_and_snapshots_have_pages() {
    let world = World::new();
    world.write("src/a", "1\n");
    repository(&world);
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("make it <b>two</b>");
    agent.edit("src/a", "2\n");
    agent.stop();
    let page = page(&world, "agent diff 1");
    assert_eq!((page.text("h1"), page.fact("prompt")), ("Turn 1 of claude".into(), "make it <b>two</b>".into()));
    assert_eq!(page.lines(&page.of("src/a")), ["@@ -1 +1 @@", "1||−|1", "|1|+|2"]);
    assert!(page.all("caption").any(|(_, caption)| caption.text == "Lines of src/a: − before the turn, + after it"));
    // A turn that changed nothing has a page that says so.
    agent.prompt("only look");
    agent.stop();
    assert!(self::page(&world, "agent diff 2").text("main").contains("Nothing differs."));
    let n = world.recant("snapshot create -q").ok().stdout();
    let n = n.trim();
    world.write("src/a", "3\n");
    let page = self::page(&world, &format!("snapshot diff {n}"));
    assert_eq!(page.text("h1"), format!("Snapshot {n} against the directory now"));
    assert!(page.fact(&format!("snapshot {n}")).starts_with("20"));
    assert_eq!(page.lines(&page.of("src/a")), ["@@ -1 +1 @@", "1||−|2", "|1|+|3"]);
    let page = self::page(&world, &format!("snapshot diff 0 {n}"));
    assert_eq!(page.text("h1"), format!("Snapshot 0 against snapshot {n}"));
    assert_eq!(page.lines(&page.of("src/a"))[1..], ["1||−|1", "|1|+|2"]);
}

#[test]
fn what_no_page_can_be_made_for_is_refused_as_usage() {
    let world = World::new();
    let id = world.begin();
    world.stage_write(&id, "a", "text\n");
    for words in ["--json", "--stat", "--name-only", "--tool true", "--blocks", "--word-diff"] {
        world.recant(&format!("diff {id} --html {words}")).with(2);
    }
    world.recant("snapshot create -q").ok();
    world.recant("snapshot diff last --html --json").with(2);
    if world.program("script", ["-V"]).command().output().is_err() {
        return skip("script makes the terminal");
    }
    let command = format!("{} diff {id} --html", recant());
    let said = world.program("script", ["-qec", &command, "/dev/null"]).env("TERM", "dumb").run().with(2).stdout();
    assert!(said.contains("a page is not for a terminal") && said.contains("--html > FILE"), "{said}");
}

#[test]
fn white_space_and_context_are_as_asked_for() {
    let world = World::new();
    world.write("a", "1\n2\n3\n4\n5\n").write("b", "x y\n");
    let id = world.begin();
    world.stage_write(&id, "a", "1\n2\ndrei\n4\n5\n").stage_write(&id, "b", "x  y\n");
    let page = page(&world, &format!("diff {id} -U 1 -w"));
    assert_eq!(page.lines(&page.of("a")), ["@@ -2,3 +2,3 @@", "2|2||2", "3||−|3", "|3|+|drei", "4|4||4"]);
    assert_eq!(page.files().len(), 1);
    assert!(page.all("li").any(|(_, li)| li.text == "not shown 1 file differs in white space alone"));
}

#[test]
fn a_page_of_50_mb_is_never_in_memory_as_a_whole() {
    let Some(world) = can_run().then(World::new) else { return skip("memory of a large page: recant run does not work here") };
    let make = "big=$(seq -f 'a line of text, number %g' 1 4000); for n in $(seq 120); do echo \"$big\" > $n; done";
    ran(&world, "large", make);
    let limited = |words: &str| {
        let script = format!("ulimit -d {} && exec \"$0\" {words}", 16 << 10);
        world.program("sh", ["-c", &script, recant()]).run().ok()
    };
    let size: u64 = limited("diff large --html | wc -c").stdout().trim().parse().expect("a number");
    assert!(size > 50_000_000, "{size}");
}

#[test]
fn what_is_kept_of_a_page_leaves_no_name_when_its_process_is_killed_before_any_step() {
    let scene = || {
        let mut world = World::new();
        let kept = world.root().join("temporary");
        std::fs::create_dir(&kept).expect("a directory");
        world.set("TMPDIR", &kept);
        let id = world.begin();
        for n in 0..8 {
            world.stage_write(&id, format!("more{n}"), "a line of text\n".repeat(3_000));
        }
        Some((world, kept))
    };
    let verb = |(world, _): &(World, PathBuf)| world.call(["diff", "last", "--html"]);
    let row = Sweep { name: "diff --html", scene: &scene, verb: &verb, order: "kill:N" };
    let tally = row.run(|(_, kept), said, what| {
        assert_eq!(std::fs::read_dir(kept).expect("a directory").count(), 0, "{what}");
        Came::Unchanged(said.status == 137)
    });
    tally.saw(true, 1);
}
