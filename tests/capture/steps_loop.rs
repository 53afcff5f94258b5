//! Random commands in a session of steps, and the same ones bare in a copy of the tree (tests/README.md, F51): a command in the session sees
//! what it sees bare, each step can be gone back to, and the net changes are those of one run that did everything.
//!
//! `RECANT_SEED=n` plays one seed alone, `RECANT_ROUNDS=n` so many for each user, `RECANT_STEPS=n` so many commands in a line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::sweep::is_due;
use crate::common::{self, Dice, Said};
use crate::desk::{Desk, Who, each};
use serde_json::Value;

/// The tree that all begins with. Each time in it is an old one.
const SETUP: &str = "
    mkdir -p t/d1/s t/d2 t/full; echo one > t/f1; echo two > t/f2; echo x > t/d1/x; echo y > t/d1/s/y; ln -s f1 t/sl; mkfifo t/p1
    for i in 1 2 3; do echo $i > t/full/$i; done; setfattr -n user.r -v old t/d1/x; chmod 640 t/f2
    find t -depth -exec touch -h -d 2020-01-01 {} +";

/// What is written to: nothing that waits.
const NAMES: [&str; 23] = [
    "f1", "f2", "g1", "g2", "d1", "d2", "d1/x", "d1/s", "d1/s/y", "d1/new", "n1", "n2", "n1/a", "n1/b", "n1/c/d", "l1", "sl",
    "full", "full/1", "full/9", "d2/z", "e1", "e2",
];

/// Names of FIFOs.
const PIPES: [&str; 3] = ["p1", "p2", "d1/p"];

/// Shows all there is to see: a first line for each object, its content, its xattrs.
const VIEW: &str = r"
    find t -printf '%p|%y|%m|%U:%G|%s|%l|%T@|%n\n' | sort
    find t -type f -print0 | sort -z | xargs -0 -r md5sum
    getfattr -R -P -h -d -m '^user\.r' t 2> /dev/null | sort";

/// Makes each of the names of one file a file of its own, with a time of its own: a step ends hard links of an earlier one once it changes
/// one of the names, and what is equal is no change.
fn part(paths: &[String], n: usize) -> String {
    format!(
        r#"for f in {}; do cp -a "$f" "$f.tmp" && touch -d @{} "$f.tmp" && mv "$f.tmp" "$f"; done"#,
        paths.join(" "),
        1_300_000_000 + n
    )
}

/// Opens what a user closed to himself: that could not be rolled back, and is refused.
const OPEN: &str = "chmod -R u+rwX t";

/// A time since which what happens in the test is new: never the same twice.
const NEW: f64 = 1_750_000_000.0;

/// What a command sees.
#[derive(Clone, PartialEq)]
struct View(String);

impl View {
    /// Without what differs between two that did the same: times of their own and those of directories, whose time alone makes no step.
    fn settled(&self) -> String {
        self.each(|parts| {
            if parts[1] == "d" || parts[6].parse::<f64>().is_ok_and(|time| time > NEW) {
                parts[6] = "";
            }
        })
    }

    /// Without the sizes of directories and the counts of names, which a copy or a block may have otherwise.
    fn exact(&self) -> String {
        self.each(|_| {})
    }

    fn each(&self, change: impl Fn(&mut Vec<&str>)) -> String {
        let line = |line: &str| {
            let mut parts: Vec<&str> = line.split('|').collect();
            if parts.len() == 8 {
                change(&mut parts);
                parts[7] = "";
                if parts[1] == "d" {
                    parts[4] = "";
                }
            }
            parts.join("|") + "\n"
        };
        self.0.lines().map(line).collect()
    }

    /// The files that have several names.
    fn linked(&self) -> Vec<String> {
        let parts = self.0.lines().map(|line| line.split('|').collect::<Vec<_>>());
        parts.filter(|parts| parts.len() == 8 && parts[1] == "f" && parts[7] != "1").map(|parts| parts[0].to_owned()).collect()
    }
}

/// Ends the test with the lines that differ.
#[track_caller]
fn assert_same(want: &str, got: &str, what: &str) {
    let only = |a: &str, b: &str, sign: &str| -> String {
        let there: BTreeSet<&str> = b.lines().collect();
        a.lines().filter(|line| !there.contains(line)).map(|line| format!("{sign} {line}\n")).collect()
    };
    assert!(want == got, "{what}\n{}{}", only(want, got, "-"), only(got, want, "+"));
}

/// Some shell text that changes something, or tries to.
fn deed(dice: &mut Dice, who: Who) -> String {
    let name = |dice: &mut Dice| format!("t/{}", dice.of(&NAMES));
    let pipe = |dice: &mut Dice| format!("t/{}", dice.of(&PIPES));
    let (a, b, digit) = (name(dice), name(dice), dice.below(10));
    match dice.below(if who == Who::Root { 28 } else { 24 }) {
        0 | 1 => format!("echo {} > {a}", dice.below(999)),
        2 => format!("echo {} >> {a}", dice.below(999)),
        3 => format!("rm -rf {a}"),
        4 => format!("mkdir -p {a}"),
        5 => format!("mv {a} {b}"),
        6 => format!("mv -T {a} {b}"),
        // All that -a does but links: with them cp replaces a file of more names than one, as those of merged uppers seem to be.
        7 => format!("cp -PR --preserve=mode,ownership,timestamps,xattr {a} {b}"),
        // In a user's overlay the names of a file of the tree are two inodes, and one may show an old size: a file of its own.
        8 | 9 if who == Who::User => format!("rm -f {a}; echo {digit} > {a}; ln -f {a} {b}; echo {digit} >> {a}"),
        8 => format!("ln -f {a} {b}"),
        9 => format!("ln -f {a} {b}; echo {digit} >> {a}"),
        10 => format!("ln -sfn q{digit} {a}"),
        11 => format!("chmod {} {a}", dice.of(&["600", "644", "755", "700"])),
        12 => format!("touch -d 20{}-02-03 {a}", 10 + dice.below(15)),
        13 => format!("rmdir {a}"),
        14 => format!("mkdir {a}"),
        // A directory that hides all that was below its name.
        15 => format!("rm -rf {a}; mkdir {a}; echo k > {a}/k"),
        16 => format!("rm -f {0}; mkfifo {0}", pipe(dice)),
        17 => format!("mv -T {} {}", pipe(dice), pipe(dice)),
        // Back to what it was, but for its times.
        18 => "rm -rf t/full; mkdir t/full; for i in 1 2 3; do echo $i > t/full/$i; done; touch -d 2020-01-01 t/full/* t/full"
            .into(),
        19 => format!("setfattr -n user.r -v {digit} {a}"),
        20 => format!("setfattr -x user.r {a}"),
        21 => format!("sed -i s/1/7/ {a}"),
        22 => format!("truncate -s {} {a}", dice.below(9000)),
        23 => format!("true <> {a}"),
        24..=26 => format!("perl -e 'rename \"{a}\", \"{b}\"'"),
        _ => format!("chown {} {a}", dice.below(3)),
    }
}

/// What a step showed, and what the session's net changes were then.
struct Seen {
    view: View,
    changes: Value,
    /// The command that made it.
    script: String,
}

/// A session of steps, and a copy of its tree in which the same commands run bare.
struct Pair<'a> {
    desk: &'a Desk,
    bare: PathBuf,
    seed: u64,
    /// What was done, from the tree as it was on.
    done: Vec<String>,
    seen: BTreeMap<u64, Seen>,
}

impl Pair<'_> {
    fn in_session(&self, name: &str, script: &str) -> Said {
        // A limit of time, as a FIFO may be read by mistake.
        self.desk.call(["run", "--session", name, "--", "timeout", "60", "sh", "-c", script]).run()
    }

    fn bare(&self, script: &str) -> Said {
        let call = self.desk.world.program("timeout", ["60", "sh", "-c", script]);
        self.desk.give(call).cwd(&self.bare).run()
    }

    fn view(&self, name: &str) -> View {
        let said = self.in_session(name, VIEW);
        assert!(said.status == 0, "{}: {said}", self.told());
        View(said.stdout())
    }

    fn bare_view(&self, tree: &Path) -> View {
        View(self.desk.give(self.desk.world.program("sh", ["-c", VIEW])).cwd(tree).run().ok().stdout())
    }

    fn shown(&self, name: &str) -> Value {
        self.desk.recant(&format!("show {name} --json")).ok().json()
    }

    fn header(&self, id: &str) -> Value {
        let path = self.desk.world.session(id).join("session.json");
        serde_json::from_slice(&std::fs::read(path).expect("a header")).expect("JSON")
    }

    /// The step at which the session stands.
    fn head(&self) -> u64 {
        let said = self.desk.recant("list --json --all").ok().json();
        let rows = said["sessions"].as_array().cloned().unwrap_or_default();
        let Some(row) = rows.iter().find(|row| row["name"] == "w") else { return 0 };
        let header = self.header(row["id"].as_str().expect("an id"));
        match header["steps"]["chain"].as_array() {
            Some(chain) => chain.last().map_or(0, |range| range[1].as_u64().expect("a number")),
            None => u64::from(header["lines"] != 0),
        }
    }

    fn told(&self) -> String {
        format!("seed {} as {:?}, after:\n{}\n", self.seed, self.desk.who, self.done.join("\n"))
    }

    /// Does the same on both sides, and compares what is there then.
    fn step(&mut self, script: &str) {
        let bare = self.bare(script);
        let held = self.in_session("w", script);
        self.done.push(script.to_owned());
        assert!(bare.status == held.status, "{}: bare {bare}, held {held}", self.told());
        self.compare();
        let linked = self.bare_view(&self.bare).linked();
        if !linked.is_empty() {
            let part = part(&linked, self.done.len());
            self.bare(&part).ok();
            self.in_session("w", &part).ok();
            self.done.push(part);
            self.compare();
        }
    }

    fn compare(&mut self) {
        let head = self.head();
        let wanted = self.bare_view(&self.bare);
        if self.seen.is_empty() && head == 0 {
            return;
        }
        let view = self.view("w");
        assert_same(&wanted.settled(), &view.settled(), &self.told());
        assert!(head == self.head(), "{}: to look made a step", self.told());
        let script = self.seen.remove(&head).map_or_else(|| self.done.last().cloned().unwrap_or_default(), |seen| seen.script);
        self.seen.insert(head, Seen { view, changes: self.shown("w")["changes"].clone(), script });
    }

    /// `steps` shows each step that was seen, with its command, and no other.
    fn steps_are_shown(&self) {
        let told = self.desk.recant("steps w --json").ok().json();
        let argv = |row: &Value| row["argv"].as_array().and_then(|argv| argv.last()).and_then(Value::as_str).map(str::to_owned);
        let rows = told["steps"].as_array().expect("steps").iter();
        let shown: BTreeMap<u64, String> =
            rows.map(|row| (row["n"].as_u64().expect("a number"), argv(row).unwrap_or_default())).collect();
        let seen = self.seen.iter().filter(|(n, _)| **n > 0).map(|(n, seen)| (*n, seen.script.clone()));
        assert_eq!(shown, seen.collect(), "{}", self.told());
        assert_eq!(told["head"], self.head(), "{}", self.told());
    }

    /// Gone back, or forward, to a step, the session shows what was seen then, and holds the same changes.
    fn go(&self, step: u64) {
        let said = self.desk.recant(&format!("rewind w {step}"));
        let what = format!("{}gone to step {step}", self.told());
        assert!(said.status == 0, "{what}: {said}");
        let seen = &self.seen[&step];
        assert_same(&seen.view.exact(), &self.view("w").exact(), &what);
        assert_same(&pretty(&seen.changes), &pretty(&self.shown("w")["changes"]), &what);
    }
}

fn pretty(value: &Value) -> String {
    value.as_array().map(|rows| rows.iter().map(|row| format!("{row}\n")).collect()).unwrap_or_default()
}

/// Paths, kinds of change and states, without the times and hashes that each run has of its own.
fn settled_changes(changes: &Value) -> String {
    let state = |state: &Value| {
        let mut state = state.clone();
        if let Some(fields) = state.as_object_mut() {
            fields.remove("hash");
            // A directory's time alone makes no step.
            let is_new = fields.get("mtime").and_then(Value::as_str).is_some_and(|time| time > "2025-06");
            if is_new || fields["kind"] == "directory" {
                fields.remove("mtime");
            }
        }
        state
    };
    let rows = changes.as_array().expect("changes").iter();
    rows.map(|row| format!("{} {} {} -> {}\n", row["path"], row["change"], state(&row["before"]), state(&row["after"]))).collect()
}

/// Plays a line of so many commands; without a number, of 20 to 27.
fn play(desk: &Desk, seed: u64, many: Option<usize>) {
    eprintln!("seed {seed} as {:?}", desk.who);
    let mut dice = Dice(seed);
    let dice = &mut dice;
    desk.bare(&desk.world.tree(), SETUP);
    let copy = |from: &Path, name: &str| {
        let to = desk.world.root().join(name);
        desk.world.program("cp", [Path::new("-a"), from, &to]).run().ok();
        to
    };
    let before = desk.world.manifest();
    let bare = copy(&desk.world.tree(), "bare");
    let mut pair = Pair { desk, bare, seed, done: Vec::new(), seen: BTreeMap::new() };

    // A line of steps, long enough for blocks, and a branch from somewhere in it.
    let (many, mut branch) = (many.unwrap_or_else(|| 20 + dice.below(8)), None);
    let at = dice.below(many);
    for i in 0..many {
        let deeds: Vec<String> = (0..dice.of(&[1, 1, 2, 3])).map(|_| deed(dice, desk.who)).collect();
        pair.step(&deeds.join("; "));
        if (i >= at && branch.is_none()) && !pair.seen.is_empty() {
            branch = Some((pair.head(), copy(&pair.bare, "branch"), pair.done.len()));
        }
    }
    pair.step(OPEN);
    let line = pair.head();
    if line == 0 {
        return;
    }

    // One run of everything.
    let at_once = pair.in_session("once", &pair.done.join("\n"));
    let (once, stepped) = (pair.shown("once"), pair.shown("w"));
    let what = format!("{}all in one run: {at_once}", pair.told());
    assert_same(&settled_changes(&once["changes"]), &settled_changes(&stepped["changes"]), &what);
    desk.recant("discard -y once");

    if let Some((step, copy, done)) = branch {
        pair.go(step);
        let of_line = std::mem::replace(&mut pair.bare, copy);
        let all = pair.done.split_off(done);
        pair.done.push(format!("# rewind w {step}"));
        for _ in 0..2 + dice.below(4) {
            pair.step(&deed(dice, desk.who));
        }
        pair.step(OPEN);
        let end = pair.head();
        pair.go(line);
        if end == step || dice.percent(50) {
            pair.bare = of_line;
            pair.done.push("# and left:".into());
            pair.done.extend(all);
        } else {
            pair.go(end);
        }
    }

    // Every step, forward and backward.
    pair.steps_are_shown();
    let head = pair.head();
    let mut steps: Vec<u64> = pair.seen.keys().copied().collect();
    while !steps.is_empty() {
        pair.go(steps.swap_remove(dice.below(steps.len())));
    }
    let other = dice.of(&pair.seen.keys().copied().filter(|step| *step > 0).collect::<Vec<_>>());
    for (name, step) in [("early", other), ("late", head)] {
        pair.go(head);
        desk.call(["fork", "w", &step.to_string(), "-n", name]).run().ok();
        let what = format!("{}a fork of step {step}", pair.told());
        assert_same(&pair.seen[&step].view.exact(), &pair.view(name).exact(), &what);
        let changes = &pair.shown(name)["changes"];
        assert_same(&settled_changes(&pair.seen[&step].changes), &settled_changes(changes), &what);
    }

    let which = dice.of(&["w", "late"]);
    before.assert_same(&desk.world.manifest(), &pair.told());
    let said = desk.recant(&format!("commit {which} -y"));
    assert!(said.status == 0, "{}{which}: {said}", pair.told());
    let tree = pair.bare_view(&desk.world.tree());
    assert_same(&pair.bare_view(&pair.bare).settled(), &tree.settled(), &format!("{}{which} is committed", pair.told()));
    let said = desk.recant(&format!("rollback {which}"));
    assert!(said.status == 0, "{}{which}: {said}", pair.told());
    before.assert_same(&desk.world.manifest(), &format!("{}{which} is rolled back", pair.told()));
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn every_step_shows_what_was_seen_then_and_the_net_changes_are_those_of_one_run() {
    if !common::can_run() {
        return;
    }
    let many = number("RECANT_STEPS").map(|many| many as usize);
    each(|desk| {
        let seeds: Vec<u64> = match (number("RECANT_SEED"), number("RECANT_ROUNDS")) {
            (Some(seed), _) => vec![seed],
            (None, Some(rounds)) => (1..=rounds).collect(),
            // One of seven.
            (None, None) => (1..=7).filter(|seed| is_due(*seed as usize)).collect(),
        };
        for seed in seeds {
            play(&Desk::new(desk.who), seed, many);
        }
    });
}

#[test]
#[ignore = "long: a line of so many commands takes a minute"]
fn a_line_of_two_hundred_commands_is_as_they_are_bare() {
    if common::can_run() {
        each(|desk| play(desk, number("RECANT_SEED").unwrap_or(7), Some(200)));
    }
}
