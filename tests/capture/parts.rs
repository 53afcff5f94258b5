//! Parts of a session (tests/README.md, F55): blocks and metadata of a file, committed as a session of their own, while the rest is held.

use crate::common::sweep::{Came, Sweep, is_due};
use crate::common::{Dice, Manifest, Said, skip};
use crate::desk::{self, Desk, Who, each, has};

const SETUP: &str = "seq 20 > a; printf 'one\\ntwo\\n' > b; echo old > gone; echo keep > keep; chmod 644 a b gone keep";
/// `a` gets three blocks and another mode.
const SCRIPT: &str =
    "sed -i '3s/.*/three/; 10d; 15a fifteen and a half' a; chmod 600 a; echo new > made; rm gone; mkdir d; echo e > d/e";

fn lines(desk: &Desk, path: &str) -> Vec<String> {
    desk.world.read(path).lines().map(str::to_owned).collect()
}

/// The tree, but for the times of directories.
fn tree(desk: &Desk) -> Manifest {
    desk.world.manifest().without_directory_times()
}

/// The words that `diff --blocks` shows.
fn words(said: &Said) -> Vec<String> {
    let head = |line: &str| line.split_once("  ").map(|(word, _)| word.to_owned());
    let shown = String::from_utf8_lossy(&said.out);
    shown.lines().filter(|line| !line.starts_with(['+', '-', ' ', '\\'])).filter_map(head).collect()
}

#[test]
fn a_part_is_a_session_of_its_own_the_rest_is_held_and_both_are_taken_back_the_later_one_first() {
    each(|desk| {
        let before = desk.made(SETUP).without_directory_times();
        desk.held("-n s", SCRIPT).run().ok();
        let shown = desk.recant("diff s --blocks").ok();
        assert_eq!(words(&shown), ["a:1", "a:2", "a:3", "a:m", "d", "d/e", "gone", "made"], "{shown}");
        let held = desk.recant("diff s").ok().stdout();

        let would = desk.recant("commit s a:2 d/e --dry-run --json").ok().json();
        assert_eq!(would["part_of"]["changes"], 3, "as it would be then: {would}");
        let said = desk.recant("commit s a:2 d/e").ok();
        assert!(said.stderr().contains("which holds the rest: 3 changes"), "{said}");
        let wanted: Vec<String> = (1..=20).filter(|n| *n != 10).map(|n| n.to_string()).collect();
        assert_eq!(lines(desk, "a"), wanted);
        assert_eq!((&*desk.world.read("d/e"), desk.world.exists("made"), desk.world.exists("gone")), ("e\n", false, true));
        let part = desk.ids().last().expect("the part").clone();
        assert_eq!((desk.status(&part), desk.status("s")), ("committed".into(), "pending".into()));
        let parted = tree(desk);

        let rest = desk.recant("diff s").ok().stdout();
        assert!(rest.contains("+three") && rest.contains("mode 0644 -> 0600") && !rest.contains("-10\n"), "{rest}");
        assert_eq!(words(&desk.recant("diff s --blocks").ok()), ["a:1", "a:2", "a:m", "gone", "made"]);
        // What a further command of the session sees is all of it.
        let seen = desk.held("--session s", "sed -n '3p; 9p; 15p' a; cat d/e made; stat -c %a a; ls").run().ok();
        assert_eq!(seen.stdout(), "three\n9\nfifteen and a half\ne\nnew\n600\na\nb\nd\nkeep\nmade\n");

        desk.recant("commit s").ok();
        assert_eq!(lines(desk, "a")[2], "three");
        assert_eq!(&*desk.world.read("made"), "new\n");
        let refused = desk.recant(&format!("rollback {part}")).with(3);
        assert!(refused.stderr().contains("has to be rolled back first"), "{refused}");
        // In another order than they came, one goes around the other.
        let both = tree(desk);
        desk.recant(&format!("rollback {part} a --merge")).ok();
        assert_eq!((lines(desk, "a").len(), &*lines(desk, "a")[2], &*lines(desk, "a")[9]), (21, "three", "10"));
        desk.recant("rollback last").ok();
        both.assert_same(&tree(desk), "the part is there again");
        desk.recant("rollback s").ok();
        parted.assert_same(&tree(desk), "the rest is taken back");
        desk.recant(&format!("rollback {part}")).ok();
        before.assert_same(&tree(desk), "both are taken back");
        desk.recant(&format!("redo {part}")).ok();
        desk.recant("redo s").ok();
        assert_eq!((&*desk.world.read("made"), &*lines(desk, "a")[2]), ("new\n", "three"));
        assert!(held.contains("-10\n"));
    });
}

#[test]
fn metadata_is_an_entry_of_its_own_and_all_that_is_chosen_is_the_change_itself() {
    each(|desk| {
        let mode =
            |path: &str| desk.give(desk.world.program("stat", ["-c", "%a", path])).cwd(desk.world.tree()).run().ok().stdout();
        desk.made(SETUP);
        desk.held("-n s", SCRIPT).run().ok();
        desk.recant("commit s a:m").ok();
        assert_eq!((lines(desk, "a").len(), &*mode("a")), (20, "600\n"));
        assert_eq!(words(&desk.recant("diff s --blocks a").ok()), ["a:1", "a:2", "a:3"]);
        desk.recant("commit s a:1-3").ok();
        assert_eq!(desk.paths("s"), ["d", "d/e", "gone", "made"]);
        assert_eq!((lines(desk, "a").len(), &*mode("a")), (20, "600\n"));
        // All that is left: the session itself is committed.
        let said = desk.recant("commit s gone made d").ok();
        assert!(!said.stderr().contains("is a part of"), "{said}");
        assert_eq!((desk.status("s"), desk.ids().len()), ("committed".into(), 3));
    });
}

#[test]
fn a_word_of_two_meanings_is_refused_and_numbers_that_there_are_not_change_nothing() {
    each(|desk| {
        let before = desk.made(&format!("{SETUP}; seq 9 > a:2"));
        desk.held("-n s", &format!("{SCRIPT}; echo x > a:2")).run().ok();
        for (word, why) in [
            ("a:4", "no number 4: they go from 1 to 3"),
            ("a:0", "no number 0: they go from 1 to 3"),
            ("a:3-1", "3-1"),
            ("made:1", "it has no blocks: it is created"),
            ("gone:1", "it has no blocks: it is deleted"),
            ("a:2", "ambiguous: a changed file has this name, and"),
        ] {
            let said = desk.recant(&format!("commit s {word}")).with(2);
            let remedy = if word == "a:2" { "review" } else { "--blocks" };
            assert!(said.stderr().contains(why) && said.stderr().contains(remedy), "{word}: {said}");
        }
        desk.held("-n n", "echo two more >> b").run().ok();
        let said = desk.recant("commit n b:m").with(2);
        assert!(said.stderr().contains("its metadata does not change"), "{said}");
        let said = desk.recant("commit s --patch").with(2);
        assert!(said.stderr().contains("there is no terminal to ask at"), "{said}");
        before.assert_same(&desk.world.manifest(), "nothing was changed");
        assert_eq!(desk.ids().len(), 2);

        desk.recant("commit s a:3 --dry-run").ok();
        assert_eq!((lines(desk, "a").len(), desk.ids().len()), (20, 2), "a dry run");
        // A file that is called like blocks of one that did not change.
        desk.recant("commit s a").ok();
        desk.held("-n t", "echo y > a:2").run().ok();
        desk.recant("commit t a:2").ok();
        assert_eq!(desk.world.read("a:2"), "y\n");
    });
}

#[test]
fn a_conflict_stops_a_part_and_no_session_of_it_is_left() {
    each(|desk| {
        desk.made(SETUP);
        desk.held("-n s", &format!("{SCRIPT}; echo more >> b")).run().ok();
        desk.bare(&desk.world.tree(), "echo mine >> gone");
        let before = desk.world.manifest();
        let said = desk.recant("commit s b:1 gone").with(3);
        assert!(said.stderr().contains("gone: changed since the run, at "), "of the session, not of the part: {said}");
        before.assert_same(&desk.world.manifest(), "nothing was changed");
        assert_eq!(desk.ids().len(), 1);
        // A file that somebody has changed has no blocks: they would be of another content.
        desk.bare(&desk.world.tree(), "echo mine >> a");
        let said = desk.recant("commit s a:1").with(3);
        assert!(said.stderr().contains("it was changed since") && said.stderr().contains("--merge"), "{said}");
        desk.recant("commit s b:1").ok();
        assert_eq!(desk.world.read("b"), "one\ntwo\nmore\n");
    });
}

#[test]
fn texts_without_a_last_newline_with_crlf_and_of_odd_bytes_are_kept_byte_for_byte() {
    each(|desk| {
        desk.made("printf 'a\\r\\nb\\r\\nc' > crlf; printf 'x\\377y\\nb\\nc\\n' > odd; printf 'nul\\0\\n' > binary");
        desk.held("-n s", "printf 'A\\r\\nb\\r\\nC' > crlf; printf 'x\\376y\\nb\\nd' > odd; printf 'nul\\0more\\n' > binary")
            .run()
            .ok();
        let shown = desk.recant("diff s --blocks").ok();
        assert_eq!(words(&shown), ["binary", "crlf:1", "crlf:2", "odd:1", "odd:2"], "{shown}");
        desk.recant("commit s crlf:2 odd:1").ok();
        let bytes = |path: &str| std::fs::read(desk.world.path(path)).expect("a file");
        assert_eq!(bytes("crlf"), b"a\r\nb\r\nC");
        assert_eq!(bytes("odd"), b"x\xfey\nb\nc\n");
        desk.recant("commit s").ok();
        assert_eq!((bytes("crlf"), bytes("odd")), (b"A\r\nb\r\nC".to_vec(), b"x\xfey\nb\nd".to_vec()));
    });
}

#[test]
fn a_part_leaves_a_session_and_a_rewind_brings_it_back() {
    each(|desk| {
        let before = desk.made(SETUP);
        desk.held("-n s", SCRIPT).run().ok();
        let held = desk.recant("diff s").ok().stdout();
        let said = desk.recant("discard -y s a:2,m gone").ok();
        assert!(said.stderr().contains("step 2"), "{said}");
        before.assert_same(&desk.world.manifest(), "nothing of the tree was changed");
        assert_eq!(desk.paths("s"), ["a", "d", "d/e", "made"]);
        assert_eq!(words(&desk.recant("diff s --blocks a").ok()), ["a:1", "a:2"]);
        let seen = desk.held("--session s", "sed -n '3p; 10p; 16p' a; cat gone; stat -c %a a").run().ok();
        assert_eq!(seen.stdout(), "three\n10\nfifteen and a half\nold\n644\n");
        desk.recant("rewind s 1").ok();
        assert_eq!(desk.recant("diff s").ok().stdout(), held);
        desk.recant("rewind s 2").ok();
        desk.recant("commit s").ok();
        let wanted: Vec<String> = (1..=20).map(|n| if n == 3 { "three".into() } else { n.to_string() }).collect();
        assert_eq!(lines(desk, "a").iter().filter(|line| *line != "fifteen and a half").cloned().collect::<Vec<_>>(), wanted);
        desk.recant("rollback s").ok();
        before.without_directory_times().assert_same(&tree(desk), "taken back");
    });
}

#[test]
fn what_is_left_of_a_session_goes_to_another_store_and_is_committed_there() {
    let desk = &Desk::new(Who::Root);
    desk.made(SETUP);
    desk.held("-n s", SCRIPT).run().ok();
    desk.recant("commit s a:2 made").ok();
    desk.recant("discard -y s gone").ok();
    let before = tree(desk);
    let stream = desk.recant("session export s").ok().out;
    desk.recant("commit s").ok();
    let committed = tree(desk);
    desk.recant("rollback s").ok();
    before.assert_same(&tree(desk), "rolled back");
    let there = desk.world.root().join("other store").display().to_string();
    desk.call(["--store", &there, "session", "import"]).stdin(&stream).run().ok();
    desk.call(["--store", &there, "commit", "last"]).run().ok();
    committed.assert_same(&tree(desk), "committed from another store");
}

#[test]
fn a_part_of_a_session_staged_by_hand_is_taken_as_well() {
    let desk = &Desk::new(Who::Root);
    let before = desk.made(SETUP).without_directory_times();
    let id = desk.recant("session new").ok().stdout().trim().to_owned();
    desk.call(["session", "write", &id, "b"]).stdin("zero\none\ntwo\nthree\n").run().ok();
    desk.recant(&format!("session delete {id} gone")).ok();
    desk.recant(&format!("commit {id} b:2")).ok();
    assert_eq!(desk.world.read("b"), "one\ntwo\nthree\n");
    let said = desk.recant(&format!("discard -y {id} gone --json")).ok().json();
    assert_eq!((&said["step"], &said["left"]), (&serde_json::Value::Null, &1.into()), "{said}");
    desk.recant(&format!("discard {id} gone")).with(1);
    desk.recant(&format!("commit {id}")).ok();
    assert_eq!((&*desk.world.read("b"), desk.world.exists("gone")), ("zero\none\ntwo\nthree\n", true));
    desk.recant(&format!("rollback {id}")).ok();
    let said = desk.recant(&format!("discard {id} b")).with(1);
    assert!(said.stderr().contains("is rolled back"), "of what was on the tree nothing is chosen: {said}");
    let part = desk.ids().into_iter().find(|other| *other != id).expect("the part");
    desk.recant(&format!("rollback {part}")).ok();
    before.assert_same(&tree(desk), "both are taken back");
}

#[test]
fn a_person_is_asked_block_by_block() {
    if !has("script") {
        return skip("--patch at a terminal: script(1) is not installed");
    }
    each(|desk| {
        desk.made(SETUP);
        desk.held("-n s", SCRIPT).run().ok();
        // Of a: block 1 no, 2 by its line, 3 yes, metadata no; d and d/e no; gone yes; nothing of the rest.
        let typed = "n\ns\ny\ny\nn\nn\nn\ny\nq\n";
        let said = at_terminal(desk, "commit s --patch", typed);
        assert!(said.contains("Commit block 1 of 3 of a [y,n,a,d,q,s,e,?]?"), "{said}");
        assert_eq!((lines(desk, "a").len(), desk.world.exists("gone")), (20, false), "{said}");
        assert_eq!((&*lines(desk, "a")[2], &*lines(desk, "a")[14]), ("3", "fifteen and a half"), "{said}");
        assert_eq!(desk.paths("s"), ["a", "d", "d/e", "made"]);

        // By an editor that leaves the line out that goes, and takes the one that comes.
        let call = crate::at_terminal(desk, "commit s --patch a", "e\nq\n").env("EDITOR", "sed -i s/^-/\\ /");
        let said = call.run().stdout();
        assert_eq!((lines(desk, "a").len(), &lines(desk, "a")[2..4]), (21, &["3".to_owned(), "three".to_owned()][..]), "{said}");

        let before = desk.world.manifest();
        let said = at_terminal(desk, "commit s --patch", "q\n");
        assert!(said.contains("nothing of session"), "{said}");
        before.assert_same(&desk.world.manifest(), "nothing was chosen");
    });
}

#[test]
fn a_part_of_what_was_committed_is_taken_back_and_given_again() {
    each(|desk| {
        let before = desk.made(SETUP).without_directory_times();
        desk.held("-n s", SCRIPT).run().ok();
        desk.recant("commit s").ok();
        let committed = tree(desk);
        assert_eq!(words(&desk.recant("diff s --blocks").ok()), ["a:1", "a:2", "a:3", "a:m", "d", "d/e", "gone", "made"]);
        let said = desk.recant("rollback s a:1,3 gone made").ok();
        assert!(said.stderr().contains("is taken back, by session"), "{said}");
        let wanted: Vec<String> = (1..=20).filter(|n| *n != 10).map(|n| n.to_string()).collect();
        assert_eq!(lines(desk, "a"), wanted);
        assert_eq!((&*desk.world.read("gone"), desk.world.exists("made"), desk.world.exists("d/e")), ("old\n", false, true));
        let back = desk.ids().last().expect("the one that took it back").clone();
        let typed = desk.recant(&format!("show {back} --json")).ok().json()["session"]["command"].clone();
        assert!(typed.as_str().is_some_and(|typed| typed.ends_with(" a:1,3 gone made") && !typed.contains("--patch")), "{typed}");
        assert_eq!((desk.status("s"), desk.status(&back)), ("committed".into(), "committed".into()));
        let said = desk.recant("rollback s a:1").ok();
        assert!(said.stderr().contains("nothing of that part"), "{said}");
        assert_eq!(desk.ids().len(), 2);
        desk.recant(&format!("rollback {back}")).ok();
        committed.assert_same(&tree(desk), "it is there again");
        desk.recant("rollback s").ok();
        before.assert_same(&tree(desk), "all is taken back");
    });
}

#[test]
fn a_change_is_merged_with_what_somebody_edited_since_and_its_rollback_gives_that_back() {
    each(|desk| {
        desk.made(SETUP);
        desk.held("-n s", &format!("{SCRIPT}; echo more >> b")).run().ok();
        // Elsewhere in a, and where b changes.
        desk.bare(&desk.world.tree(), "sed -i 's/^7$/seven/' a; echo mine >> b");
        let edited = tree(desk);
        desk.recant("commit s").with(3);
        let said = desk.recant("commit s --merge").with(3);
        assert!(said.stderr().contains("b: both sides changed line 3 of what is on the tree"), "{said}");
        edited.assert_same(&tree(desk), "nothing was changed");
        assert_eq!(desk.recant("steps s --json").ok().json()["head"], 1);

        let said = desk.recant("commit s --merge --dry-run a made").ok();
        assert!(said.stderr().contains("a: would be merged"), "{said}");
        assert!(said.stderr().contains("2 changes would be committed"), "{said}");
        edited.assert_same(&tree(desk), "a dry run");
        desk.bare(&desk.world.tree(), "printf 'one\\ntwo\\n' > b");
        let edited = tree(desk);
        let said = desk.recant("commit s --merge").ok();
        assert!(said.stderr().contains("a: merged with what was changed there since"), "{said}");
        let got = lines(desk, "a");
        assert_eq!((&*got[2], &*got[6], &*got[14]), ("three", "seven", "fifteen and a half"));
        assert_eq!(desk.world.read("b"), "one\ntwo\nmore\n");
        desk.recant("rollback s").ok();
        edited.assert_same(&tree(desk), "what was there before the commit");
        desk.recant("redo s").ok();
        assert_eq!(lines(desk, "a"), got);
    });
}

#[test]
fn a_dry_run_of_a_merge_tells_of_all_paths_and_so_does_one_where_nothing_else_is() {
    each(|desk| {
        desk.made("seq 9 > a; seq 9 > b");
        desk.held("-n s", "sed -i 's/^2$/two/' a b; echo new > c").run().ok();
        desk.bare(&desk.world.tree(), "sed -i 's/^8$/eight/' a");
        let told = |words: &str| {
            let document = desk.recant(&format!("commit s --merge --dry-run --json {words}")).ok().json();
            let row = |row: &serde_json::Value| {
                let path = row["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
                format!("{path} {}", row["done"].as_str().unwrap())
            };
            assert_eq!((&document["dry_run"], &document["status"]), (&true.into(), &"committed".into()), "{document}");
            document["paths"].as_array().unwrap().iter().map(row).collect::<Vec<_>>()
        };
        assert_eq!(told(""), ["a modified", "b modified", "c created"]);
        assert_eq!(told("a b"), ["a modified", "b modified"]);
        let said = desk.recant("commit s a b c --merge --dry-run").ok();
        assert!(said.stderr().contains("(s): 3 changes would be committed"), "all that there is is no part: {said}");
        assert_eq!(told("a"), ["a modified"], "all that is named would be merged");
        desk.recant("discard s c").ok();
        desk.bare(&desk.world.tree(), "sed -i 's/^8$/eight/' b");
        assert_eq!(told(""), ["a modified", "b modified"], "all of the session");
        assert_eq!(desk.world.read("a"), "1\n2\n3\n4\n5\n6\n7\neight\n9\n");
    });
}

#[test]
fn a_merge_whose_commit_is_refused_is_named_as_a_step() {
    each(|desk| {
        desk.made("seq 9 > a; seq 9 > b");
        desk.held("-n s", "sed -i 's/^2$/two/' a b").run().ok();
        desk.bare(&desk.world.tree(), "sed -i 's/^8$/eight/' a");
        let before = tree(desk);
        let open = std::fs::OpenOptions::new().append(true).open(desk.world.tree().join("b")).unwrap();
        let said = desk.recant("commit s --merge").with(3);
        assert!(said.stderr().contains("nothing was changed, but step 2 of session"), "{said}");
        before.assert_same(&tree(desk), "a refused commit");
        drop(open);
        desk.recant("commit s").ok();
        assert_eq!(desk.world.read("a"), "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n");
    });
}

/// What it held is among the objects that the rollback gave back; it is opened again for the merge. No merge is offered where there is none.
#[test]
fn a_session_whose_commit_was_undone_merges_too() {
    each(|desk| {
        desk.made("seq 9 > a; seq 9 > b; mkdir many; for i in $(seq 101); do echo $i > many/$i; done");
        for (name, script) in [("one", "sed -i 's/^2$/two/' a"), ("two", "sed -i 's/^8$/eight/' a")] {
            desk.held(&format!("-n {name} --commit"), script).run().ok();
        }
        for verb in ["rollback two", "rollback one"] {
            desk.recant(verb).ok();
        }
        let before = tree(desk);
        let refused = desk.recant("commit two").with(3);
        assert!(refused.stderr().contains("--merge merges texts"), "{refused}");
        let said = desk.recant("commit two --merge --dry-run").ok();
        assert!(said.stderr().contains("a: would be merged"), "{said}");
        before.assert_same(&tree(desk), "a dry run");
        // What the commit would refuse is refused before the session changes.
        desk.world.config("[commit]\ndeny = ['a']\n");
        for words in ["commit two --merge --dry-run", "commit two --merge"] {
            let said = desk.recant(words).with(1);
            assert!(said.stderr().contains("commit.deny") && desk.status("two") == "rolled_back", "{words}: {said}");
        }
        desk.world.config("");
        desk.recant("commit two --merge").ok();
        assert_eq!((&*lines(desk, "a")[1], &*lines(desk, "a")[7]), ("2", "eight"));
        desk.recant("rollback two").ok();
        before.assert_same(&tree(desk), "taken back");

        // Of more than a hundred files no copies are kept for a merge.
        desk.held("-n many --commit", "for f in many/*; do echo more >> $f; done").run().ok();
        desk.held("-n later --commit", "echo later >> many/7").run().ok();
        let refused = desk.recant("rollback many").with(3);
        assert!(!refused.stderr().contains("--merge"), "{refused}");
        // A session that was staged by hand is not opened again.
        let staged = desk.recant("session new").ok().stdout().trim().to_owned();
        desk.give(desk.world.call(["session", "write", &staged, "b"]).stdin("staged\n")).run().ok();
        for verb in ["commit", "rollback"] {
            desk.recant(&format!("{verb} {staged}")).ok();
        }
        desk.bare(&desk.world.tree(), "echo mine >> b");
        let refused = desk.recant(&format!("commit {staged}")).with(3);
        assert!(!refused.stderr().contains("--merge"), "{refused}");
    });
}

#[test]
fn a_change_is_taken_out_of_what_was_edited_since_and_of_what_later_sessions_put_there() {
    each(|desk| {
        desk.made(SETUP);
        desk.held("-n older", "sed -i '3s/$/ older/' a; echo older > made; echo older >> b").run().ok();
        desk.recant("commit older").ok();
        desk.held("-n later", "sed -i '12s/$/ later/' a").run().ok();
        desk.recant("commit later").ok();
        desk.bare(&desk.world.tree(), "sed -i '18s/$/ mine/' a");
        let edited = tree(desk);
        let refused = desk.recant("rollback older").with(3);
        assert!(refused.stderr().contains("--merge"), "{refused}");

        let said = desk.recant("rollback older --merge --dry-run").ok();
        assert!(said.stderr().contains("3 paths would be taken back"), "{said}");
        edited.assert_same(&tree(desk), "a dry run");
        let said = desk.recant("rollback older --merge").ok();
        assert!(said.stderr().contains("is taken back, by session"), "{said}");
        let got = lines(desk, "a");
        assert_eq!((&*got[2], &*got[11], &*got[17], desk.world.exists("made")), ("3", "12 later", "18 mine", false));
        assert_eq!(desk.world.read("b"), "one\ntwo\n");
        let back = desk.ids().last().expect("the one that took it back").clone();
        desk.recant(&format!("rollback {back}")).ok();
        edited.assert_same(&tree(desk), "it is there again");

        // A part of it, found again by its content.
        desk.bare(&desk.world.tree(), "sed -i '1i zero' a");
        desk.recant("rollback older a:1 --force").with(2);
        desk.recant("rollback older a:1").ok();
        assert_eq!((&*lines(desk, "a")[0], &*lines(desk, "a")[3], &*lines(desk, "a")[12]), ("zero", "3", "12 later"));
        desk.recant("rollback last").ok();

        desk.bare(&desk.world.tree(), "sed -i 's/^3 older/3 older and mine/' a");
        let edited = tree(desk);
        let said = desk.recant("rollback older --merge").with(3);
        assert!(said.stderr().contains("a: both sides changed"), "{said}");
        edited.assert_same(&tree(desk), "nothing was changed");
        // Where nobody has changed anything it is a rollback.
        desk.recant("rollback older made b --merge").ok();
        assert_eq!((desk.status("older"), desk.ids().len()), ("committed".into(), 4));
    });
}

#[test]
fn without_what_it_was_made_of_nothing_is_merged() {
    each(|desk| {
        desk.made(SETUP);
        desk.world.config("[capture]\nkeep_before = false\n");
        desk.held("-n s", SCRIPT).run().ok();
        desk.bare(&desk.world.tree(), "sed -i 's/^7$/seven/' a");
        let before = desk.world.manifest();
        let said = desk.recant("commit s --merge").with(3);
        assert!(said.stderr().contains("is kept (capture.keep_before)"), "{said}");
        before.assert_same(&desk.world.manifest(), "nothing was changed");
    });
}

#[test]
fn a_file_that_was_changed_while_the_command_ran_does_not_merge_and_force_keeps_what_is_there() {
    each(|desk| {
        desk.made(SETUP);
        let id = desk.meanwhile("echo end >> a; echo three >> b", "sed -i 's/^7$/seven/' a");
        let said = desk.recant(&format!("commit {id} --merge")).with(3);
        let told = said.stderr().replace("\n        ", " ");
        assert!(told.contains("a: it was changed while the command ran, so there is no copy of it from before"), "{said}");
        assert!(told.contains("name the other paths, or --force goes on") && !told.contains("keep_before"), "{said}");
        // What it says helps.
        desk.recant(&format!("commit {id} b")).ok();
        desk.recant(&format!("commit {id} --force")).ok();
        assert!(desk.world.read("a").ends_with("20\nend\n") && !desk.world.read("a").contains("seven"));
        desk.recant(&format!("rollback {id}")).ok();
        assert!(desk.world.read("a").contains("seven"));
    });
}

/// Random texts, random edits of them, committed in random parts, with a choice now and then to discard one: what is on the tree at the end
/// is what was held, and the way back goes through every state there was.
#[test]
fn random_edits_in_random_parts_make_the_whole_and_go_back_step_by_step() {
    // Of 28 those that are due.
    for seed in (1..=28_u64).filter(|seed| is_due(*seed as usize)) {
        let desk = &Desk::new(if seed % 2 == 0 || !desk::is_root() { Who::User } else { Who::Root });
        let mut dice = Dice(seed);
        let text = |dice: &mut Dice| (0..3 + dice.below(30)).map(|_| format!("{}\n", dice.below(6))).collect::<String>();
        let names = ["f0", "f1", "f2"];
        let mut wanted: Vec<String> = Vec::new();
        desk.made("mkdir ../new");
        for name in names {
            let old = text(&mut dice);
            let mut new: Vec<&str> = old.split_inclusive('\n').collect();
            for _ in 0..1 + dice.below(6) {
                let at = dice.below(new.len());
                match dice.below(3) {
                    0 if new.len() > 1 => drop(new.remove(at)),
                    1 => new.insert(at, "new\n"),
                    _ => new[at] = "other\n",
                }
            }
            let new = new.concat();
            let end = if dice.percent(30) { new.len() - 1 } else { new.len() };
            desk.world.write(name, &old).write(format!("../new/{name}"), &new[..end]);
            wanted.push(new[..end].to_owned());
        }
        if desk.other() {
            desk.world.program("chown", ["-R", "54321:54321", "."]).cwd(desk.world.tree()).run().ok();
        }
        let held = desk.held("-n s", "for f in f0 f1 f2; do cat ../new/$f > $f; done").run().ok();
        let mut states = Vec::new();
        for _ in 0..20 {
            let told = desk.recant("diff s --blocks --json").ok().json();
            let mut words: Vec<String> = Vec::new();
            for row in told["changes"].as_array().expect("changes") {
                let path = row["path"].as_str().expect("a path");
                let blocks = row["blocks"].as_array().expect("blocks").iter().map(|block| block["n"].to_string());
                let some: Vec<String> = blocks.filter(|_| dice.percent(40)).collect();
                if !some.is_empty() {
                    words.push(format!("{path}:{}", some.join(",")));
                }
            }
            if words.is_empty() {
                continue;
            }
            let before = tree(desk);
            let said = desk.recant(&format!("commit s {}", words.join(" ")));
            assert!(said.status == 0, "seed {seed}: {held} {words:?}: {said}");
            if desk.status("s") != "pending" {
                states.push((before, "s".to_owned()));
                break;
            }
            states.push((before, desk.ids().last().expect("the part").clone()));
        }
        if desk.status("s") == "pending" {
            states.push((tree(desk), "s".to_owned()));
            desk.recant("commit s").ok();
        }
        for (name, wanted) in names.iter().zip(&wanted) {
            assert_eq!(desk.world.read(name), *wanted, "seed {seed}, {name}");
        }
        for (n, (state, session)) in states.iter().enumerate().rev() {
            let said = desk.recant(&format!("rollback {session}"));
            assert!(said.status == 0, "seed {seed}, back to {n}: {said}");
            state.assert_same(&tree(desk), &format!("seed {seed}, back to {n}"));
        }
    }
}

#[test]
fn what_was_not_chosen_stays_also_below_a_directory_that_was() {
    if !has("script") {
        return skip("--patch at a terminal: script(1) is not installed");
    }
    each(|desk| {
        desk.made("mkdir d gone; seq 9 > d/f; echo u > d/u; echo x > gone/x; echo y > gone/y; seq 9 > q");
        let script = "chmod 700 d; sed -i s/^5$/five/ d/f q; echo U > d/u; echo n > d/new; rm -r gone; mkdir nd; echo 1 > nd/1";
        desk.held("-n s", script).run().ok();
        let before = tree(desk);
        // Of d, d/f, d/new and d/u the first alone; of gone and what lies in it gone alone, which stays then; of nd what lies in it.
        let said = at_terminal(desk, "commit s --patch", "y\nn\nn\nn\ny\nn\nn\nn\ny\nn\n");
        assert!(said.contains("gone: stays as it is") && said.contains("nd: included, because"), "{said}");
        let mode = desk.give(desk.world.program("stat", ["-c", "%a", "d"])).cwd(desk.world.tree()).run().ok().stdout();
        assert_eq!((&*mode, &*desk.world.read("d/u"), &*desk.world.read("nd/1")), ("700\n", "u\n", "1\n"), "{said}");
        assert_eq!(desk.paths("s"), ["d/f", "d/new", "d/u", "gone", "gone/x", "gone/y", "q"], "{said}");
        desk.recant("rollback last").ok();
        before.assert_same(&tree(desk), "taken back");

        // A block of another file beside it: the directory is there again, with what is restored in it alone.
        desk.recant("discard -y s gone/x q:1").ok();
        assert_eq!(desk.paths("s"), ["d", "d/f", "d/new", "d/u", "gone/y", "nd", "nd/1"]);
        desk.recant("discard -y s d:1").with(2);
        desk.held("--session s", "echo z > z").run().ok();
        assert_eq!(desk.paths("s"), ["d", "d/f", "d/new", "d/u", "gone/y", "nd", "nd/1", "z"]);
        desk.recant("commit s").ok();
        assert_eq!((desk.world.exists("gone/x"), desk.world.exists("gone/y"), desk.world.exists("z")), (true, false, true));
    });
}

fn at_terminal(desk: &Desk, words: &str, typed: &str) -> String {
    crate::at_terminal(desk, words, typed).run().stdout()
}

/// Acts on a part, each with what was done before it, and what is done at each of its steps.
const ON_PARTS: [(&[&str], &str, &str); 6] = [
    (&[], "commit s a:2", "kill:N"),
    (&[], "commit s made d gone", "kill:N"),
    (&[], "commit s made d gone", "fail:N:5"),
    (&["commit s made d"], "rollback last", "kill:N"),
    (&["commit s made d", "rollback last"], "redo last", "kill:N"),
    (&["commit s made d", "rollback last"], "redo last", "fail:N:5"),
];

#[test]
fn a_part_killed_at_any_step_has_left_or_not_and_nothing_is_lost() {
    for (who, (first, verb, order)) in [Who::Root, Who::User].into_iter().flat_map(|who| ON_PARTS.map(|row| (who, row))) {
        let stands = |desk: &Desk| (tree(desk), desk.paths("s"));
        let scene = || {
            let desk = Desk::new(who);
            desk.made(SETUP);
            desk.held("-n s", SCRIPT).run().ok();
            desk.held("--session s", "echo more >> made; mv d/e d/f").run().ok();
            first.iter().for_each(|words| drop(desk.recant(words).ok()));
            desk
        };
        let done = scene();
        done.recant(verb).ok();
        let (_, after) = stands(&done);
        let row = Sweep {
            name: &format!("{who:?}: {verb}"),
            scene: &|| Some((stands(&scene()), scene())),
            verb: &|(_, desk)| desk.call(verb.split_whitespace()),
            order,
        };
        row.run(|((before, held), desk), said, what| {
            // What was done is said, also where the session could not be told of it.
            assert!(said.status != 4 || said.stdout().contains("created"), "{what}");
            desk.recant("recover").ok();
            let (now, holds) = stands(desk);
            let same = |tree: &Manifest| timeless(tree) == timeless(&now);
            let is_done = !same(before);
            // Taken back, what left is a session of its own until the other one has it again.
            assert!(
                holds == if is_done { after.clone() } else { held.clone() } || verb == "rollback last" && is_done,
                "{what}: {holds:?}"
            );
            assert!(is_done || said.status != 0, "{what}");
            if verb != "rollback last" {
                let seen = desk.held("--session s", "cat made d/f; ls").run().ok().stdout();
                assert_eq!(seen, "new\nmore\ne\na\nb\nd\nkeep\nmade\n", "{what}");
                desk.recant("commit s").ok();
                assert_eq!(
                    (lines(desk, "a").len(), &*desk.world.read("made"), desk.world.exists("gone")),
                    (20, "new\nmore\n", false)
                );
            }
            Came::Used(is_done)
        })
        .saw(true, 1);
    }
}

fn timeless(tree: &Manifest) -> Manifest {
    tree.clone().without_times()
}

fn users() -> impl Iterator<Item = Who> {
    let root = desk::is_root().then_some(Who::Root);
    root.into_iter().chain([Who::User])
}

/// A session of two steps that was committed and rolled back.
fn undone(who: Who) -> (Desk, Manifest, Manifest) {
    let desk = Desk::new(who);
    desk.made(SETUP);
    let before = tree(&desk);
    desk.held("-n s", SCRIPT).run().ok();
    desk.held("--session s", "echo more >> made; ln made other; mv d/e d/f; ln -s made link").run().ok();
    desk.recant("commit s").ok();
    let after = tree(&desk);
    desk.recant("rollback s").ok();
    before.assert_same(&tree(&desk), "rolled back");
    (desk, before, after)
}

#[test]
fn a_session_whose_commit_was_undone_is_open_again() {
    for who in users() {
        let (desk, before, _) = undone(who);
        let said = desk.recant("rewind s 9").with(1);
        assert!(said.stderr().contains("it has no step 9"), "{said}");
        desk.recant("rewind s 1 --dry-run").ok();
        assert_eq!(desk.status("s"), "rolled_back", "what is refused, or only tried, opens nothing");
        let said = desk.held("--session s", "cat made other d/f link; echo third >> made").run().ok();
        assert!(said.stderr().contains("is open again: its commit was undone"), "{said}");
        assert_eq!(said.stdout(), "new\nmore\nnew\nmore\ne\nnew\nmore\n");
        assert_eq!((desk.status("s"), desk.ids().len()), ("pending".into(), 1));
        desk.recant("fork s 1 --name forked").ok();
        desk.recant("commit s made").ok();
        desk.recant("rewind s 1").ok();
        desk.recant("commit s").ok();
        desk.recant("rollback s").ok();
        desk.recant("rollback s").ok();
        before.assert_same(&tree(&desk), "both acts taken back, the newest first");
    }
}

/// I25: rolled back or open, and no file has a further name in the store that goes on the tree.
#[test]
fn a_session_killed_while_it_opens_again_is_open_or_rolled_back() {
    for (who, order) in users().flat_map(|who| ["kill:N", "fail:N:5"].map(|order| (who, order))) {
        let row = Sweep {
            name: &format!("{who:?}: rewind of what was undone, {order}"),
            scene: &|| Some(undone(who)),
            verb: &|(desk, ..)| desk.call(["rewind", "s", "1"]),
            order,
        };
        row.run(|(desk, before, after), said, what| {
            let status = desk.status("s");
            assert!(status == "pending" || status == "rolled_back" && said.status != 0, "{what}: {status}");
            desk.recant("show s").ok();
            before.assert_same(&tree(desk), what);
            desk.recant("rewind s 2").ok();
            desk.recant("commit s").ok();
            timeless(after).assert_same(&timeless(&tree(desk)), what);
            let of = |name: &str| std::os::unix::fs::MetadataExt::nlink(&desk.world.path(name).symlink_metadata().unwrap());
            assert_eq!((of("made"), of("other"), of("d/f"), of("a"), of("link")), (2, 2, 1, 1, 1), "{what}");
            desk.recant("rollback s").ok();
            before.assert_same(&tree(desk), what);
            Came::Used(status == "pending")
        })
        .saw(true, 1)
        .saw(false, 1);
    }
}

/// An act is taken back by its inverse, on what it moved alone: not on what was so already, nor on what others of the session's acts moved.
#[test]
fn an_undo_takes_back_what_its_act_moved_and_nothing_else() {
    each(|desk| {
        desk.made("echo 1 > x; echo 1 > y; echo old > gone; echo 1 > z");
        let script = "echo 2 > x; echo 2 > y; rm gone; ln -s t link; echo new > made; echo 2 > z";
        desk.held("-n s", script).run().ok();
        desk.recant("commit s").ok();
        desk.recant("rollback s x").ok();
        let one = tree(desk);
        desk.recant("rollback s y").ok();
        let two = tree(desk);
        desk.recant("undo -y").ok();
        one.assert_same(&tree(desk), "y alone is there again");
        desk.recant("redo").ok();
        two.assert_same(&tree(desk), "and taken back");
        desk.recant("undo -y").ok();
        desk.recant("undo -y").ok();
        assert_eq!((&*desk.world.read("x"), &*desk.world.read("y")), ("2\n", "2\n"));
        // Somebody has done already what the rollback would do.
        desk.bare(&desk.world.tree(), "rm link made; echo old > gone; echo mine > z");
        let before = tree(desk);
        desk.recant("rollback s --force").ok();
        desk.recant("undo -y").ok();
        before.assert_same(&tree(desk), "what was so already stays as it was");
    });
}

/// A time is a change as others are: it leaves with its part, alone or with others, and comes back.
#[test]
fn a_time_alone_leaves_as_a_part() {
    each(|desk| {
        desk.made("echo 1 > x; echo 1 > y; mkfifo p; touch -d 2001-01-01 x p");
        let before = tree(desk);
        desk.held("-n s", "touch -d 2002-02-02 x p; echo 2 > y").run().ok();
        for paths in ["p", "x y"] {
            desk.recant(&format!("commit s {paths}")).ok();
        }
        let mtime = |name: &str| std::os::unix::fs::MetadataExt::mtime(&desk.world.path(name).symlink_metadata().unwrap());
        assert_eq!((mtime("x"), mtime("p")), (1_012_608_000, 1_012_608_000));
        assert!(!desk.recant("show s").ok().stdout().contains("pending"), "all of it has left");
        desk.recant("undo -y").ok();
        desk.recant("undo -y").ok();
        before.assert_same(&tree(desk), "both are taken back");
    });
}

/// What was overwritten by force and came back is what the next redo expects.
#[test]
fn a_forced_redo_goes_back_and_forth() {
    each(|desk| {
        desk.made("echo 1 > x");
        desk.held("-n s", "echo 2 > x").run().ok();
        desk.recant("commit s").ok();
        desk.recant("rollback s").ok();
        desk.bare(&desk.world.tree(), "echo mine > x");
        desk.recant("redo s --force").ok();
        for _ in 0..2 {
            desk.recant("rollback s").ok();
            assert_eq!(desk.world.read("x"), "mine\n");
            desk.recant("redo s").ok();
            assert_eq!(desk.world.read("x"), "2\n");
        }
    });
}

/// A look at a session whose commit was undone is no act: undo and redo go by what was done.
#[test]
fn a_session_that_is_open_again_is_redone_until_something_is_done_in_it_and_an_older_act_never_brings_newer_content() {
    each(|desk| {
        desk.made("echo 1 > x");
        desk.held("-n s", "echo 2 > x").run().ok();
        desk.recant("commit s").ok();
        desk.recant("rollback s").ok();
        for _ in 0..2 {
            assert_eq!(desk.held("--session s", "cat x").run().ok().stdout(), "2\n");
            desk.recant("undo -y").ok();
            assert_eq!((&*desk.status("s"), &*desk.world.read("x")), ("committed", "2\n"));
            desk.recant("redo").ok();
            assert_eq!((&*desk.status("s"), &*desk.world.read("x")), ("rolled_back", "1\n"));
        }
        desk.held("--session s", "echo 3 > x; echo new > z").run().ok();
        desk.recant("redo s").with(1);
        desk.recant("commit s").ok();
        desk.recant("undo -y").ok();
        let said = desk.recant("undo -y").with(1);
        assert!(said.stderr().contains("went on since"), "{said}");
        assert_eq!((&*desk.world.read("x"), desk.world.exists("z")), ("1\n", false));
    });
}

/// A part that was edited meanwhile and taken back by force has nothing for the session that it left: that goes on without it, and says so.
#[test]
fn a_part_that_lost_content_is_not_held_again() {
    for edit in ["echo hand >> x", "rm x", "chmod 600 x"] {
        each(|desk| {
            desk.made("echo 1 > x; echo 1 > y");
            desk.held("-n q", "echo 2 > x; echo 2 > y").run().ok();
            desk.recant("commit q x").ok();
            desk.bare(&desk.world.tree(), edit);
            let edited = tree(desk);
            let said = desk.recant("rollback q --force").ok();
            assert!(said.stderr().contains("goes on without it") && said.stderr().contains("redo "), "{edit}: {said}");
            let rest = desk.ids()[0].clone();
            assert_eq!(desk.paths(&rest), ["y"], "{edit}");
            assert_eq!(desk.call(["run", "--session", &rest, "--", "cat", "x", "y"]).run().ok().stdout(), "1\n2\n", "{edit}");
            desk.recant("undo -y").ok();
            edited.assert_same(&tree(desk), edit);
            desk.recant(&format!("commit {rest}")).ok();
        });
    }
}

/// Commit, part and rollback leave the session as it was, whatever the kernel or recant had to open up for it.
#[test]
fn what_came_back_is_seen_and_committed_as_if_it_had_never_been_on_the_tree() {
    const VIEW: &str = "find . -path ./.git -prune -o -printf '%m %y %T@ %p\\n' | sort -k4; cat x d/f ro/f";
    // More originals than are kept with a run, and a large one.
    let setup = "mkdir d old many; echo 1 > x; echo d > d/f; head -c 2000000 /dev/zero > big; for i in $(seq 600); do echo $i > many/$i; done";
    let script = "echo 2 > x; echo more >> big; for i in $(seq 600); do echo x >> many/$i; done; echo 2 > d/f; mkdir ro; echo in > ro/f; echo in > ro/g; touch -d 2001-01-01 ro; \
                  chmod 500 ro; echo n > old/n; touch -d 2002-02-02 old; touch -d 2003-03-03 d";
    each(|desk| {
        desk.made(setup);
        // Past the granularity of times no original is read: its fingerprint tells it.
        std::thread::sleep(std::time::Duration::from_millis(100));
        let before = tree(desk);
        desk.held("-n s", script).run().ok();
        let seen = desk.held("--session s", VIEW).run().ok().stdout();
        let acts: [&[&str]; 5] = [
            &["commit s many/7", "undo -y"],
            &["commit s big", "undo -y"],
            &["commit s", "rollback s"],
            &["commit s ro/f", "undo -y"],
            &["commit s x ro/g", "commit s", "undo -y", "undo -y"],
        ];
        for words in acts {
            words.iter().for_each(|words| drop(desk.recant(words).ok()));
            before.assert_same(&tree(desk), &format!("{words:?}"));
            desk.recant("commit s --dry-run").ok();
            assert_eq!(desk.held("--session s", VIEW).run().ok().stdout(), seen, "{:?}: {words:?}", desk.who);
        }
        desk.held("--session s", "echo last > last").run().ok();
        desk.recant("commit s").ok();
        let mode = |name: &str| std::os::unix::fs::MetadataExt::mode(&desk.world.path(name).symlink_metadata().unwrap()) & 0o777;
        assert_eq!((mode("ro"), &*desk.world.read("ro/f")), (0o500, "in\n"));
        desk.recant("rollback s").ok();
        before.assert_same(&tree(desk), "all of it");
    });
}
