//! Lines and blocks of any two contents: every part of a change that somebody may choose, against git-apply(1), and merges against
//! git-merge-file(1), with CRLF, bytes that are no UTF-8, repeated lines, and last lines without an end.
//!
//! `PROPTEST_CASES` is the number of cases of each test.

use crate::common;
use std::cell::Cell;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use recant::internals::{Block, Blocks, Choice, Merged, NotByLines, Part, merge, split, words};

/// No comparison here comes near it.
const LONG: Duration = Duration::from_secs(600);

fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 300, ..ProptestConfig::default() }
}

fn between<'c>(old: &'c [u8], new: &'c [u8]) -> Blocks<'c> {
    Blocks::between(old, new, LONG).expect("text, and time enough")
}

/// A line that does not come twice: there is one way alone to compare texts of such lines.
fn distinct() -> BoxedStrategy<Vec<u8>> {
    let ends = select(vec!["\n", "\n", "\r\n"]);
    (any::<u64>(), ends).prop_map(|(n, end)| [b"\xfe", format!("{n:x}{end}").as_bytes()].concat()).boxed()
}

/// A line: one of a few that come again and again, or one that hardly comes twice.
fn line() -> BoxedStrategy<Vec<u8>> {
    let often: [&[u8]; 8] = [b"\n", b"}\n", b"}\r\n", b"same\n", b"same\r\n", b"\xff\xfe\n", b"a\rb\n", "gr\u{fc}n\n".as_bytes()];
    prop_oneof![2 => select(often.map(<[u8]>::to_vec).to_vec()), 3 => (0..1000_u32).prop_map(|n| format!("line {n}\n").into_bytes())].boxed()
}

/// Lines, and whether the last one has its end.
type Text = (Vec<Vec<u8>>, bool);

fn text(line: BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = Text> {
    (vec(line, 0..24), prop::bool::weighted(0.8))
}

#[derive(Debug, Clone)]
enum Edit {
    Remove(Index),
    Insert(Index, Vec<u8>),
    Replace(Index, Vec<u8>),
    CutEnd,
}

fn edits(line: BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        4 => any::<Index>().prop_map(Edit::Remove),
        4 => (any::<Index>(), line.clone()).prop_map(|(at, line)| Edit::Insert(at, line)),
        4 => (any::<Index>(), line).prop_map(|(at, line)| Edit::Replace(at, line)),
        1 => Just(Edit::CutEnd),
    ];
    vec(edit, 0..6)
}

fn content((lines, ended): &Text) -> Vec<u8> {
    let mut content = lines.concat();
    if !ended && content.pop() == Some(b'\n') && content.last() == Some(&b'\r') {
        content.pop();
    }
    content
}

fn edited(text: &Text, edits: &[Edit]) -> Vec<u8> {
    let (mut lines, mut ended) = text.clone();
    for edit in edits {
        match edit {
            Edit::Insert(at, line) => lines.insert(at.index(lines.len() + 1), line.clone()),
            Edit::CutEnd => ended = !ended,
            _ if lines.is_empty() => {}
            Edit::Remove(at) => drop(lines.remove(at.index(lines.len()))),
            Edit::Replace(at, line) => *at.get_mut(&mut lines) = line.clone(),
        }
    }
    content(&(lines, ended))
}

/// A content, the same edited, and bits for what is chosen of the change.
fn change(line: fn() -> BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = (Vec<u8>, Vec<u8>, Vec<bool>)> {
    (text(line()), edits(line()), vec(any::<bool>(), 1..12))
        .prop_map(|(text, edits, bits)| (content(&text), edited(&text, &edits), bits))
}

/// A content, and two others: with edits of both sides, and then with those of one side.
fn two_changes(line: fn() -> BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = [Vec<u8>; 3]> {
    (text(line()), edits(line()), edits(line()), edits(line())).prop_map(|(text, both, ours, theirs)| {
        let side = |own: Vec<Edit>| edited(&text, &[&*both, &own].concat());
        [content(&text), side(ours), side(theirs)]
    })
}

/// The lines of a change that bits choose: one bit a line, and from the start again.
fn by_lines(blocks: &Blocks<'_>, bits: &[bool]) -> Choice {
    let mut bits = bits.iter().cycle();
    let mut lines = |block: &Block| Part::Lines((1..=block.lines()).filter(|_| bits.next() == Some(&true)).collect());
    (1..).zip(blocks.list().iter().map(&mut lines)).collect()
}

/// The blocks that bits choose.
fn by_blocks(blocks: &Blocks<'_>, bits: &[bool]) -> Choice {
    let numbers = (1..=blocks.list().len()).zip(bits.iter().cycle());
    Choice::of_blocks(numbers.filter(|(_, bit)| **bit).map(|(number, _)| number))
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn all_of_a_change_is_the_new_content_none_of_it_the_old_one_and_a_part_with_its_rest_is_all((old, new, bits) in change(line)) {
        let blocks = between(&old, &new);
        let all = Choice::of_blocks(1..=blocks.list().len());
        prop_assert_eq!(blocks.apply(&all), &*new);
        prop_assert_eq!(blocks.apply(&Choice::default()), &*old);
        prop_assert_eq!(blocks.take_out(&all), &*old);
        prop_assert_eq!(blocks.take_out(&Choice::default()), &*new);
        let others: Vec<bool> = bits.iter().map(|bit| !bit).collect();
        for choose in [by_lines, by_blocks] {
            let part = blocks.apply(&choose(&blocks, &bits));
            prop_assert_eq!(&part, &blocks.take_out(&choose(&blocks, &others)));
            let remaining = between(&part, &new);
            prop_assert_eq!(remaining.apply(&Choice::of_blocks(1..=remaining.list().len())), &*new);
        }
    }

    #[test]
    fn all_that_differs_lies_in_blocks_with_common_lines_between_them_and_no_second_look_finds_others((old, new, _) in change(line)) {
        let blocks = between(&old, &new);
        prop_assert_eq!((blocks.old_lines().concat(), blocks.new_lines().concat()), (old.clone(), new.clone()));
        let (mut a, mut b) = (0, 0);
        for (n, block) in blocks.list().iter().enumerate() {
            prop_assert!(block.lines() > 0 && (n == 0 || block.old.start > a), "{:?}", blocks.list());
            prop_assert_eq!(&blocks.old_lines()[a..block.old.start], &blocks.new_lines()[b..block.new.start]);
            (a, b) = (block.old.end, block.new.end);
        }
        prop_assert_eq!(&blocks.old_lines()[a..], &blocks.new_lines()[b..]);
        let again = between(&old, &new);
        prop_assert_eq!(blocks.list(), again.list());
    }

    #[test]
    fn parts_of_a_change_that_are_made_on_two_sides_merge_to_all_of_it((old, new, bits) in change(distinct)) {
        let blocks = between(&old, &new);
        let chosen = by_blocks(&blocks, &bits);
        let merged = merge(&old, &blocks.apply(&chosen), &blocks.take_out(&chosen), LONG);
        prop_assert_eq!(merged, Ok(Merged::Content(new)));
    }

    #[test]
    fn what_is_not_marked_in_changed_lines_is_the_same_on_both_sides_and_no_character_is_cut((old, new, _) in change(line)) {
        let (old, new) = (split(&old), split(&new));
        let marks = words(&old, &new).expect("short lines");
        let unmarked = |lines: &[&[u8]], marks: &[Vec<std::ops::Range<usize>>]| {
            assert_eq!(lines.len(), marks.len());
            let kept = lines.iter().zip(marks).flat_map(|(line, marks)| {
                assert!(marks.is_sorted_by(|a, b| a.end < b.start) && marks.iter().all(|mark| !mark.is_empty()), "{marks:?}");
                let edges = marks.iter().flat_map(|mark| [mark.start, mark.end]);
                assert!(std::str::from_utf8(line).is_ok_and(|line| edges.clone().all(|at| line.is_char_boundary(at))) || line[0] == 0xff);
                line.iter().enumerate().filter(|(at, _)| !marks.iter().any(|mark| mark.contains(at))).map(|(_, byte)| *byte)
            });
            kept.collect::<Vec<u8>>()
        };
        prop_assert_eq!(unmarked(&old, &marks.old), unmarked(&new, &marks.new));
    }
}

#[test]
fn files_of_many_lines_are_compared_to_the_end_whatever_is_in_them() {
    hardest_files_of(10_000);
}

#[test]
#[ignore = "long: ten times as many"]
fn so_it_is_with_100_000_lines() {
    hardest_files_of(100_000);
}

fn hardest_files_of(lines: u64) {
    // Knuth's: numbers in an order without a rule, always the same.
    let random = |n: u64, of: u64| (n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 33) % of;
    let file = |line: &dyn Fn(u64) -> u64| (0..lines).map(|n| format!("{}\n", line(n))).collect::<String>().into_bytes();
    let plain = file(&|n| n);
    for (what, old, new) in [
        ("edits here and there", plain.clone(), file(&|n| if n % 97 == 0 { n + lines } else { n })),
        ("every line another", plain.clone(), file(&|n| n + lines)),
        ("the last line first", plain.clone(), file(&|n| lines - n)),
        ("no order", plain.clone(), file(&|n| random(n, lines))),
        ("two lines at random", file(&|n| random(n, 2)), file(&|n| random(n + lines, 2))),
        ("hundred lines at random", file(&|n| random(n, 100)), file(&|n| random(n + lines, 100))),
        ("every other line the same", file(&|n| n % 2 * n), file(&|n| n % 2 * (n + lines))),
        ("one line, again and again", b"}\n".repeat(lines as usize), b"}\n".repeat(lines as usize / 5 * 3)),
    ] {
        let blocks = Blocks::between(&old, &new, LONG).expect(what);
        let all = Choice::of_blocks(1..=blocks.list().len());
        assert!(blocks.apply(&all) == new && blocks.take_out(&all) == old, "{what}");
        assert_eq!(
            Blocks::between(&old, &new, Duration::ZERO).map(|blocks| blocks.list().len()),
            Err(NotByLines::TimedOut),
            "{what}"
        );
        assert_eq!(merge(&old, &new, &old, Duration::ZERO), Err(NotByLines::TimedOut), "{what}");
        let roughly = Blocks::roughly(&old, &new, Duration::ZERO);
        assert!(roughly.apply(&Choice::of_blocks(1..=roughly.list().len())) == new, "{what}");
    }
}

fn git(directory: &Path, words: &[&str]) -> Output {
    let mut git = Command::new("git");
    git.current_dir(directory).args(words).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    git.output().expect("git runs")
}

/// An empty repository for git to work in; `None`, and said, where there is no git.
fn repository() -> Option<tempfile::TempDir> {
    if Command::new("git").arg("--version").output().is_err() {
        common::skip("git compares");
        return None;
    }
    let directory = tempfile::tempdir().expect("a directory");
    assert!(git(directory.path(), &["init", "-q"]).status.success());
    Some(directory)
}

/// The chosen lines of a change as a patch with one hunk for the whole file, and the lines that it leads to.
fn patch<'c>(blocks: &Blocks<'c>, bits: &[bool], name: &str) -> (Vec<u8>, Vec<&'c [u8]>) {
    let (mut body, mut after, mut at) = (Vec::new(), Vec::new(), 0);
    let mut add = |sign: u8, line: &'c [u8]| {
        body.push(sign);
        body.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            body.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
        if sign != b'-' {
            after.push(line);
        }
    };
    let mut bits = bits.iter().cycle();
    for block in blocks.list() {
        blocks.old_lines()[at..block.old.start].iter().for_each(|line| add(b' ', line));
        blocks.removed(block).iter().for_each(|line| add(if *bits.next().expect("a bit") { b'-' } else { b' ' }, line));
        blocks.added(block).iter().filter(|_| *bits.next().expect("a bit")).for_each(|line| add(b'+', line));
        at = block.old.end;
    }
    blocks.old_lines()[at..].iter().for_each(|line| add(b' ', line));
    let range = |lines: usize| format!("{},{lines}", lines.min(1));
    let place = format!("@@ -{} +{} @@\n", range(blocks.old_lines().len()), range(after.len()));
    (
        format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n{place}")
            .into_bytes()
            .into_iter()
            .chain(body)
            .collect(),
        after,
    )
}

#[test]
fn any_lines_of_a_change_are_what_git_apply_makes_of_a_patch_with_these_lines() {
    let Some(directory) = repository() else { return };
    let compare = |changes: Vec<(Vec<u8>, Vec<u8>, Vec<bool>)>| {
        let (mut patches, mut expected) = (Vec::new(), Vec::new());
        for (n, (old, new, bits)) in changes.iter().enumerate() {
            let (blocks, name) = (between(old, new), format!("f{n}"));
            let (text, after) = patch(&blocks, bits, &name);
            // Git joins a last line without an end with what comes behind it.
            let joins = after.iter().rev().skip(1).any(|line| !line.ends_with(b"\n"));
            if joins || after == split(old) {
                continue;
            }
            std::fs::write(directory.path().join(&name), old).expect("a file");
            patches.extend(text);
            expected.push((name, blocks.apply(&by_lines(&blocks, bits))));
        }
        if expected.is_empty() {
            return Ok(());
        }
        std::fs::write(directory.path().join("patch"), &patches).expect("a file");
        let said = git(directory.path(), &["apply", "--whitespace=nowarn", "patch"]);
        prop_assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        for (name, content) in expected {
            let found = std::fs::read(directory.path().join(&name)).unwrap_or_default();
            prop_assert_eq!(found.escape_ascii().to_string(), content.escape_ascii().to_string());
        }
        Ok(())
    };
    proptest!(config(40), |(changes in vec(change(line), 80))| compare(changes)?);
}

#[test]
fn merges_are_those_of_git_merge_file() {
    let Some(directory) = repository() else { return };
    let as_git_does = |[base, ours, theirs]: &[Vec<u8>; 3]| {
        for (name, content) in [("base", base), ("ours", ours), ("theirs", theirs)] {
            std::fs::write(directory.path().join(name), content).expect("a file");
        }
        let said = git(directory.path(), &["merge-file", "-p", "ours", "base", "theirs"]);
        let conflicts = said.status.code().filter(|code| *code < 128).expect("git merged");
        match merge(base, ours, theirs, LONG).expect("text") {
            Merged::Content(content) => conflicts == 0 && content == said.stdout,
            Merged::Conflicts(_) => conflicts > 0,
        }
    };
    proptest!(config(1000), |(three in two_changes(distinct))| prop_assert!(as_git_does(&three)));
    // Where lines repeat there are several right ways to compare two texts: about one of 3,000 such merges ends otherwise than git's.
    let (all, other) = (Cell::new(0), Cell::new(0));
    proptest!(config(1000), |(three in two_changes(line))| {
        all.set(all.get() + 1);
        other.set(other.get() + usize::from(!as_git_does(&three)));
    });
    assert!(other.get() * 100 <= all.get(), "{} of {} merges", other.get(), all.get());
}
