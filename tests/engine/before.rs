//! Originals that a run keeps beside its changes (`capture.keep_before`): a file that was only touched since is no conflict.

use std::path::PathBuf;

use crate::common::can_run;
use crate::common::sweep::{Came, Sweep};
use crate::desk::{self, Desk, each, has};
use insta::assert_snapshot;

/// Both users, where a command can be captured here.
fn each_that_can(test: impl Fn(&Desk)) {
    if can_run() {
        each(test);
    }
}

/// The user that runs the tests, where a command can be captured here.
fn this_one() -> Option<Desk> {
    can_run().then(|| Desk::new(if desk::is_root() { desk::Who::Root } else { desk::Who::User }))
}

/// Makes every file so old that its ctime proves something: 20 ms and more before the run.
fn made(desk: &Desk, script: &str) {
    desk.made(script);
    std::thread::sleep(std::time::Duration::from_millis(50));
}

/// The directory of originals of a session.
fn before(desk: &Desk, id: &str) -> PathBuf {
    desk.world.session(id).join("before")
}

/// The number of originals that a session keeps.
fn kept(desk: &Desk, id: &str) -> usize {
    std::fs::read_dir(before(desk, id)).map_or(0, Iterator::count)
}

/// The paths at which a commit of the session would stop.
fn conflicts(desk: &Desk, id: &str) -> Vec<String> {
    let said = desk.recant(&format!("diff {id} --conflicts --json")).ok();
    let rows = said.json()["conflicts"].take();
    let paths = rows.as_array().expect("a list").iter().map(|row| row["path"].as_str().expect("a path").to_owned());
    paths.map(|path| path.rsplit('/').next().unwrap_or_default().to_owned()).collect()
}

const TOUCH: &str = "find . -type f -exec touch -d 2021-01-01 {} +";

#[test]
fn a_file_that_was_only_touched_since_is_no_conflict_and_a_rollback_gives_the_touched_time_back() {
    each_that_can(|desk| {
        made(desk, "for f in deleted empty left moded moved timed written; do echo $f > $f; done; : > empty; mkdir d");
        desk.run("echo n >> written; rm deleted; chmod 600 moded; mv moved d; touch -d 2001-01-01 timed; echo e > empty").ok();
        let touched = desk.made(TOUCH);
        let id = desk.id();
        assert_eq!(conflicts(desk, &id), Vec::<String>::new(), "{:?}", desk.who);
        assert_eq!(kept(desk, &id), 6, "{:?}: one of each content", desk.who);
        desk.recant(&format!("commit {id}")).ok();
        assert_eq!(desk.world.read("written"), "written\nn\n");
        desk.recant(&format!("rollback {id}")).ok();
        desk.world.manifest().assert_same(&touched, "as it was touched");
        // The fingerprint is the rollback's own now: a redo goes by the hash.
        desk.made("touch -d 2022-02-02 written");
        desk.recant(&format!("redo {id}")).ok();
    });
}

#[test]
fn what_differs_by_a_byte_or_in_its_metadata_is_a_conflict_also_with_the_old_time() {
    each_that_can(|desk| {
        made(desk, "for f in byte longer mode same; do echo $f > $f; done");
        desk.run("for f in byte longer mode same; do echo n >> $f; done").ok();
        desk.made("for f in byte longer mode same; do touch -r $f old; echo x > $f; test $f = byte && echo bytf > $f; touch -r old $f; done; echo mode > mode; chmod 600 mode; echo same > same; rm old");
        assert_eq!(conflicts(desk, &desk.id()), ["byte", "longer", "mode"], "{:?}", desk.who);
        desk.recant("commit last").with(3);
    });
}

#[test]
fn of_a_run_that_changed_more_than_500_files_nothing_is_kept() {
    each_that_can(|desk| {
        for (files, are_kept) in [(500, true), (501, false)] {
            made(desk, &format!("mkdir t{files}; cd t{files}; for i in $(seq {files}); do echo $i > $i; done"));
            // What it creates does not count.
            desk.run(&format!("cd t{files}; for i in *; do echo n >> $i; done; echo new > new")).ok();
            let id = desk.ids().pop().expect("a session");
            desk.made(&format!("touch -d 2021-01-01 t{files}/7"));
            assert_eq!(conflicts(desk, &id).len(), usize::from(!are_kept), "{:?}: {files}", desk.who);
            assert_eq!(kept(desk, &id), if are_kept { 500 } else { 0 });
        }
    });
}

#[test]
fn a_file_of_more_than_a_mebibyte_is_not_kept_and_of_sixteen_what_fits_in_the_order_of_paths() {
    each_that_can(|desk| {
        made(
            desk,
            "mkdir a b; cd a; truncate -s 1M fits; truncate -s 1048577 large; cd ../b;
             for i in $(seq -w 16); do yes $i | head -c 1048575 > $i; done; yes 17 | head -c 1048575 > 17; echo small > small",
        );
        desk.run("for f in a/*; do echo n >> $f; done").ok();
        let large = desk.ids().pop().expect("a session");
        desk.run("for f in b/*; do echo n >> $f; done").ok();
        let many = desk.ids().pop().expect("a session");
        desk.made("find a b -type f -exec touch -d 2021-01-01 {} +");
        assert_eq!(conflicts(desk, &large), ["large"], "{:?}", desk.who);
        assert_eq!(conflicts(desk, &many), ["17"], "{:?}", desk.who);
        assert_eq!((kept(desk, &large), kept(desk, &many)), (1, 17));
    });
}

#[test]
fn a_later_step_keeps_what_it_is_the_first_to_change_and_a_fork_has_it_all() {
    each_that_can(|desk| {
        made(desk, "for f in one two three; do echo $f > $f; done");
        let step = |script: &str| desk.held("--session w", script).run().ok();
        step("echo 1 >> one");
        step("echo 2 >> two; echo 2 >> one");
        step("echo 3 >> three; rm one");
        let id = desk.id();
        assert_eq!(kept(desk, &id), 3);
        desk.recant("fork w 2 -n f").ok();
        let fork = desk.ids().pop().expect("the fork");
        assert_eq!(kept(desk, &fork), 2);
        desk.made(TOUCH);
        for at in [3, 1, 2, 3] {
            desk.recant(&format!("rewind w {at}")).ok();
            assert_eq!(conflicts(desk, &id), Vec::<String>::new(), "{:?}: step {at}", desk.who);
        }
        assert_eq!(conflicts(desk, &fork), Vec::<String>::new(), "{:?}", desk.who);
        desk.recant("commit w").ok();
        assert_eq!((desk.world.exists("one"), desk.world.read("two")), (false, "two\n2\n".into()));
    });
}

#[test]
fn what_a_process_has_open_what_somebody_changed_during_the_run_and_by_setting_anything_is_not_kept() {
    each_that_can(|desk| {
        let made_two = || made(desk, "rm -f theirs mine; echo old > theirs; echo old > mine");
        let script = "echo n >> theirs; echo n >> mine";
        let run = || {
            desk.run(script).ok();
            desk.ids().pop().expect("a session")
        };
        made_two();
        let open = std::fs::OpenOptions::new().append(true).open(desk.world.path("theirs")).expect("the file");
        let while_open = run();
        drop(open);
        desk.made(TOUCH);
        assert_eq!(conflicts(desk, &while_open), ["theirs"], "{:?}", desk.who);
        made_two();
        let meanwhile = desk.meanwhile(script, "echo theirs > theirs");
        assert_eq!((conflicts(desk, &meanwhile), kept(desk, &meanwhile)), (vec!["theirs".to_owned()], 1), "{:?}", desk.who);
        made_two();
        desk.world.config("capture.keep_before = false");
        let without = run();
        desk.made(TOUCH);
        assert_eq!(
            (conflicts(desk, &without), kept(desk, &without)),
            (vec!["mine".to_owned(), "theirs".into()], 0),
            "{:?}",
            desk.who
        );
    });
}

#[test]
fn an_original_that_is_missing_or_damaged_is_no_damage_and_the_next_run_makes_it_whole() {
    each_that_can(|desk| {
        made(desk, "echo old > f; echo old > g");
        desk.held("--session w", "echo n >> f").run().ok();
        let id = desk.id();
        let original = std::fs::read_dir(before(desk, &id)).expect("originals").next().expect("one").expect("a name").path();
        std::fs::write(&original, "odd").expect("a write");
        desk.recant(&format!("show {id}")).ok();
        desk.held("--session w", "echo n >> g").run().ok();
        assert_eq!(std::fs::read_to_string(&original).expect("the original"), "old\n", "{:?}: of the same content", desk.who);
        std::fs::remove_dir_all(before(desk, &id)).expect("a removal");
        desk.made(TOUCH);
        desk.recant("commit w").ok();
        desk.recant("rollback w").ok();
    });
}

#[test]
fn originals_go_with_what_is_discarded_and_with_the_checkpoint() {
    each_that_can(|desk| {
        for end in ["discard ID --now", "commit ID; prune --checkpoints ID -y"] {
            made(desk, "echo old > f");
            desk.run("echo n >> f").ok();
            let id = desk.ids().pop().expect("a session");
            assert_eq!(kept(desk, &id), 1);
            end.replace("ID", &id).split("; ").for_each(|verb| drop(desk.recant(verb).ok()));
            assert_eq!(kept(desk, &id), 0, "{:?}: {end}", desk.who);
        }
    });
}

#[test]
fn diff_conflicts_shows_what_became_of_the_original_on_the_tree_and_what_is_held() {
    let Some(desk) = this_one() else { return };
    let world = &desk.world;
    made(&desk, "printf '1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n' > f; echo old > gone; truncate -s 2M large; echo old > moded");
    desk.run("sed -i s/8/eight/ f; echo n >> gone; echo n >> large; chmod 600 moded").ok();
    desk.made("sed -i s/2/two/ f; rm gone; touch -d 2021-01-01 large; echo n >> moded");
    let id = desk.id();
    assert_snapshot!(world.call(["diff", &id, "--conflicts"]).run(), @"
    status 0
    --- stdout
    # /world/tree/f: changed since the run, at <time>
    diff --git a/world/tree/f b/world/tree/f
    --- a/world/tree/f	(before <id1~>)
    +++ b/world/tree/f	(on the tree now)
    @@ -1,5 +1,5 @@
     1
    -2
    +two
     3
     4
     5
    # /world/tree/f: what is held, from the same original
    diff --git a/world/tree/f b/world/tree/f
    --- a/world/tree/f	(before <id1~>)
    +++ b/world/tree/f	(held in <id1~>)
    @@ -5,5 +5,5 @@
     5
     6
     7
    -8
    +eight
     9
    # /world/tree/gone: deleted since the run
    diff --git a/world/tree/gone b/world/tree/gone
    deleted file mode 100644
    --- a/world/tree/gone	(before <id1~>)
    +++ /dev/null	(on the tree now)
    @@ -1 +0,0 @@
    -old
    # /world/tree/gone: what is held, from the same original
    diff --git a/world/tree/gone b/world/tree/gone
    --- a/world/tree/gone	(before <id1~>)
    +++ b/world/tree/gone	(held in <id1~>)
    @@ -1 +1,2 @@
     old
    +n
    # /world/tree/large: written to or touched since the run
    diff --git a/world/tree/large b/world/tree/large
    Binary files a/world/tree/large and b/world/tree/large differ
    # /world/tree/moded: changed since the run, at <time>
    # /world/tree/moded: mode 0644 -> 0600
    --- stderr
    recant: 2 conflicts for commit: - is on the tree now, + is held
    recant: 2 conflicts for commit: what changed on the tree, then what is held
    ");
    assert_snapshot!(world.call(["diff", &id, "--conflicts", "--stat"]).run(), @"
    status 0
    --- stdout
     f     | 4 ++--
     gone  | 2 ++
     large | Bin 2,097,152 -> 2,097,154 bytes
     moded | changed since the run, at <time>; mode 0644 -> 0600
     4 files changed, 4 insertions(+), 2 deletions(-)
    --- stderr
    recant: 4 conflicts for commit: - is on the tree now, + is held
    ");
    let told = desk.recant(&format!("diff {id} --conflicts --json")).ok().json();
    let bases: Vec<bool> = told["conflicts"].as_array().expect("a list").iter().map(|row| row["base"] == true).collect();
    assert_eq!(bases, [true, true, false, false]);
}

/// The calls of recant itself are counted: those of one file more are what it takes to keep one.
#[test]
fn to_keep_a_file_takes_a_handful_of_calls() {
    let Some(desk) = this_one().filter(|_| has("strace")) else { return };
    let binary = desk.binary.to_str().expect("a path");
    let log = desk.world.root().join("calls");
    let calls = |keep: bool| {
        desk.world.config(&format!("capture.keep_before = {keep}"));
        made(&desk, "echo old > f");
        let words = ["-o", log.to_str().expect("a path"), binary, "run", "--", "sh", "-c", "echo n >> f"];
        let said = desk.world.program("strace", words).run();
        (said.status == 0).then(|| std::fs::read_to_string(&log).expect("the calls").lines().count())
    };
    // The first run of all makes the store.
    calls(false);
    let (Some(without), Some(with)) = (calls(false), calls(true)) else {
        return println!("skipped: strace cannot follow a run here");
    };
    println!("{without} calls without, {with} with");
    assert!(with.saturating_sub(without) < 50, "{without} -> {with}");
}

#[test]
fn a_killed_run_is_collected_with_its_originals() {
    each_that_can(|desk| {
        // The first run of all makes the store, in steps of its own.
        desk.run("true").ok();
        let row = Sweep {
            name: &format!("run of {:?}", desk.who),
            scene: &|| {
                made(desk, "rm -rf t; mkdir t; cd t; echo old > f; echo other > g");
                Some(desk.ids().len())
            },
            verb: &|_| desk.held("", "cd t; echo n >> f; rm g"),
            order: "kill:N",
        };
        let tally = row.run(|known, said, what| {
            assert!([0, 137].contains(&said.status), "{what}");
            // The first verb with the session's name collects it.
            let Some(id) = desk.ids().get(*known).cloned() else { return Came::Used("no session") };
            let shown = desk.recant(&format!("show {id} --json"));
            assert!([0, 1].contains(&shown.status), "{what}: {shown}");
            if shown.status != 0 || shown.json()["session"]["changes"] == 0 {
                return Came::Used("nothing");
            }
            desk.made(TOUCH);
            assert_eq!(conflicts(desk, &id), Vec::<String>::new(), "{what}");
            assert_eq!(kept(desk, &id), 2, "{what}");
            desk.recant(&format!("commit {id} -y")).ok();
            Came::Used("collected")
        });
        tally.saw("collected", 60).saw("no session", 1);
    });
}
