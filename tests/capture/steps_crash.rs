//! Sessions of steps whose verbs are killed, or fail, before any step of their own (tests/README.md, F52): a run that goes on, one that
//! merges uppers into a block, `rewind`, `fork`, a discard of paths, and the collecting by the next verb. Afterwards the session stands at one of its steps,
//! whole, and goes on from there.

use std::path::PathBuf;

use crate::common::{self, Said};
use crate::desk::{Desk, Who, each};

/// All there is to see, but for times of directories, and counts of names.
const VIEW: &str = r"
    find t ! -type d -printf '%p|%y|%m|%U:%G|%s|%l|%T@\n' | sort; find t -type d -printf '%p|%m|%U:%G\n' | sort
    find t -type f -print0 | sort -z | xargs -0 -r md5sum";

/// The commands give all that they write this time.
const TIMES: &str = "find t -newermt 2022-01-01 ! -path t -exec touch -h -d 2011-01-01 {} +";

/// What a command sees at a step, and the session's net changes there.
#[derive(Clone, PartialEq, Debug)]
struct Point {
    view: String,
    changes: String,
}

struct Scene {
    desk: Desk,
    /// By step, the tree as it was first; at last what the next command leads to.
    points: Vec<Point>,
}

impl Scene {
    /// A session of these commands, and the points; the last command is done for its point alone.
    fn new(who: Who, commands: &[&str]) -> Self {
        let mut scene = Self { desk: Desk::new(who), points: Vec::new() };
        scene.desk.made(
            "mkdir -p t/d/s t/full; echo one > t/one; echo x > t/d/x; echo y > t/d/s/y; for i in 1 2 3; do echo $i > t/full/$i; done
             find t -depth -exec touch -h -d 2020-01-01 {} +",
        );
        scene
            .points
            .push(Point { view: scene.desk.call(["run", "--", "sh", "-c", VIEW]).run().ok().stdout(), changes: "[]".into() });
        for (i, command) in commands.iter().enumerate() {
            scene.go_on(command).ok();
            // Before anything else runs in it, which may merge.
            if i + 2 == commands.len() {
                scene.keep();
            }
            scene.points.push(scene.point().unwrap_or_else(|why| panic!("{command}: {why}")));
        }
        scene.reset();
        scene
    }

    fn words(command: &str) -> Vec<String> {
        ["run", "--session", "w", "--", "sh", "-c", &format!("{command}; {TIMES}")].map(str::to_owned).to_vec()
    }

    fn go_on(&self, command: &str) -> Said {
        self.call(&Self::words(command), "").run()
    }

    fn call(&self, words: &[String], order: &str) -> common::Call {
        let call = self.desk.call(words.iter().map(String::as_str)).cwd(self.desk.world.tree());
        if order.is_empty() { call } else { call.env("RECANT_STEPS", order) }
    }

    fn kept(&self) -> PathBuf {
        self.desk.world.root().join("kept")
    }

    /// The store is as it is now at each reset.
    fn keep(&self) {
        let (store, kept) = (self.desk.world.store(), self.kept());
        self.desk.world.program("cp", ["-a".as_ref(), store.as_os_str(), kept.as_os_str()]).run().ok();
    }

    fn reset(&self) {
        let store = self.desk.world.store();
        self.desk.world.program("rm", ["-rf".as_ref(), store.as_os_str()]).run().ok();
        self.desk.world.program("cp", ["-a".as_ref(), self.kept().as_os_str(), store.as_os_str()]).run().ok();
    }

    fn view(&self, name: &str) -> Result<String, String> {
        let said = self.desk.call(["run", "--session", name, "--", "sh", "-c", VIEW]).run();
        if said.status == 0 { Ok(said.stdout()) } else { Err(format!("a command in it: {said}")) }
    }

    fn point(&self) -> Result<Point, String> {
        self.point_of("w")
    }

    fn point_of(&self, name: &str) -> Result<Point, String> {
        let view = self.view(name)?;
        let said = self.desk.recant(&format!("show {name} --json"));
        if said.status != 0 {
            return Err(format!("show: {said}"));
        }
        let mut rows = said.json()["changes"].take();
        for row in rows.as_array_mut().into_iter().flatten() {
            // One that each run has of its own, and one that a fresh file needs.
            for state in ["before", "after"] {
                if let Some(state) = row[state].as_object_mut() {
                    state.remove("hash");
                    if state["kind"] == "directory" {
                        state.remove("mtime");
                    }
                }
            }
        }
        Ok(Point { view, changes: rows.to_string() })
    }

    /// The step at which the session stands, whole: one of these. It goes on there, and no other step is lost.
    fn stands(&self, among: &[usize]) -> Result<usize, String> {
        let point = self.point()?;
        let Some(step) = among.iter().copied().find(|step| self.points[*step] == point) else {
            let wanted: Vec<_> = among.iter().map(|step| format!("step {step}: {:#?}", self.points[*step])).collect();
            return Err(format!("it stands at none of {among:?}: {point:#?}\n{}", wanted.join("\n")));
        };
        let next = self.desk.call(["run", "--session", "w", "--", "sh", "-c", "echo next > next"]).run();
        if next.status != 0 {
            return Err(format!("the next command: {next}"));
        }
        let seen = self.desk.call(["run", "--session", "w", "--", "cat", "next"]).run();
        if seen.status != 0 || seen.stdout() != "next\n" || self.view("w")? != point.view {
            return Err(format!("after the next command: {seen}"));
        }
        // One of a step that is there counts for nothing (docs/ARCHITECTURE.md: it counts as long as its step is the next one).
        let left = format!("step.{}.json", step + 2);
        if self.files().contains(&left) {
            return Err(format!("left: {left}"));
        }
        // The first step, one in the middle, the last before this one, and this one.
        let mut others = vec![1, step / 2, step.saturating_sub(1), step];
        others.dedup();
        for other in others.into_iter().filter(|other| (1..=step).contains(other)) {
            let said = self.desk.recant(&format!("rewind w {other}"));
            if said.status != 0 || self.point()? != self.points[other] {
                return Err(format!("gone to step {other}: {said}"));
            }
        }
        Ok(step)
    }

    /// The files of the session.
    fn files(&self) -> Vec<String> {
        let sessions = std::fs::read_dir(self.desk.world.store().join("sessions")).expect("the sessions");
        let names = sessions.flat_map(|session| std::fs::read_dir(session.expect("a name").path()).expect("a session"));
        names.map(|name| name.expect("a name").file_name().to_string_lossy().into_owned()).collect()
    }

    /// Does `words` with an order for each of its steps, or each so many, and for one behind its end; judges each time. Returns the number
    /// of steps.
    fn sweep(&self, words: &[String], order: &str, every: usize, judge: impl Fn(&Said) -> Result<(), String>) -> usize {
        let steps = self.steps(words);
        // The last ones all: there the header gets its name.
        let is_due = |n: usize| n.is_multiple_of(every) || n + 4 > steps;
        for n in (1..=steps + 1).filter(|n| is_due(*n)) {
            self.reset();
            let order = order.replace('N', &n.to_string());
            let said = self.call(words, &order).run();
            judge(&said).unwrap_or_else(|why| panic!("{:?} {words:?} with {order}: {said}\n{why}", self.desk.who));
        }
        println!("{:?} {words:?}: {order}, each {every} of {steps} steps", self.desk.who);
        steps
    }

    /// The number of steps of a verb.
    fn steps(&self, words: &[String]) -> usize {
        self.reset();
        let log = self.desk.world.root().join("log");
        drop(std::fs::remove_file(&log));
        self.call(words, &format!("log:{}", log.display())).run();
        // None where nothing was to be done.
        std::fs::read_to_string(&log).map_or(0, |text| text.lines().count())
    }
}

const KILL: &str = "kill:N";
const FAILS: [&str; 2] = ["fail:N:5", "fail:N:28"];

/// Three steps; the last is the one that is swept.
const FEW: [&str; 3] = [
    "echo 1 > t/one; mkdir t/new; echo n > t/new/n; rm t/d/x; ln -s to t/link; mkfifo t/fifo",
    "rm -r t/full; mkdir t/full; echo f > t/full/f; echo again > t/d/x; chmod 600 t/one; echo 2 > t/new/2",
    "echo 3 >> t/one; rm -r t/d/s; mkdir t/d/s; echo z > t/d/s/z; rm t/new/n; echo more > t/more; mv t/new/2 t/full/2",
];

/// One more than are held apart: the last merges.
fn many() -> Vec<String> {
    let steps = (1..=15).map(|n| match n % 4 {
        0 => format!("rm -r t/full; mkdir t/full; echo {n} > t/full/{n}"),
        1 => format!("echo {n} > t/d/{n}; rm -f t/d/{}", n - 4),
        2 => format!("echo {n} > t/one; mkdir -p t/new{n}; echo {n} > t/new{n}/n"),
        _ => format!("rm -rf t/new{}; chmod 600 t/one; echo {n} >> t/one", n - 5),
    });
    steps.chain(["echo more > t/more; rm -f t/d/13".to_owned(), "echo last > t/last; rm -rf t/full".to_owned()]).collect()
}

/// A run that goes on, killed or failing.
fn sweep_run(scene: &Scene, command: &str, order: &str, every: usize) -> usize {
    let last = scene.points.len() - 1;
    scene.sweep(&Scene::words(command), order, every, |said| {
        if !matches!(said.status, 0 | 1 | 125 | 137) {
            return Err("the exit status".into());
        }
        let among = if said.status == 0 { vec![last] } else { vec![last - 1, last] };
        scene.stands(&among).map(drop)
    })
}

fn sweep_few(who: Who, [kills, fails]: [usize; 2]) {
    let scene = Scene::new(who, &FEW);
    let steps = sweep_run(&scene, FEW[2], KILL, kills);
    assert!(steps > 40, "{steps}");
    for order in FAILS {
        sweep_run(&scene, FEW[2], order, fails);
    }
}

fn sweep_many(who: Who, [kills, fails]: [usize; 2]) {
    let many = many();
    let scene = Scene::new(who, &many.iter().map(String::as_str).collect::<Vec<_>>());
    let last = many.last().expect("a command");
    let steps = sweep_run(&scene, last, KILL, kills);
    assert!(steps > 100, "{steps}: it merged nothing");
    sweep_run(&scene, last, FAILS[0], fails);
}

fn sweep_rewind(who: Who, [kills, fails]: [usize; 2]) {
    let scene = Scene::new(who, &[&FEW[..], &["true"]].concat());
    for (from, to) in [(3, 1), (1, 3), (3, 2)] {
        scene.desk.recant(&format!("rewind w {from}")).ok();
        scene.desk.world.program("rm", ["-rf".as_ref(), scene.kept().as_os_str()]).run().ok();
        scene.keep();
        let words = ["rewind", "w", &to.to_string()].map(str::to_owned);
        for (order, every) in [(KILL, kills), (FAILS[0], fails), (FAILS[1], fails)] {
            let steps = scene.sweep(&words, order, every, |said| {
                let among = if said.status == 0 { vec![to] } else { vec![from, to] };
                scene.stands(&among).map(drop)
            });
            assert!(steps > 4, "{steps}");
        }
        scene.reset();
    }
}

fn sweep_fork(who: Who, [kills, fails]: [usize; 2]) {
    let scene = Scene::new(who, &[&FEW[..], &["true"]].concat());
    let words = ["fork", "w", "3", "-n", "fk"].map(str::to_owned);
    for (order, every) in [(KILL, kills), (FAILS[0], fails), (FAILS[1], fails)] {
        let steps = scene.sweep(&words, order, every, |said| {
            let there = scene.desk.recant("show fk --json").status == 0;
            if said.status == 0 && !there {
                return Err("it is not there".into());
            }
            if !there {
                let again = scene.call(&words, "").run();
                if again.status != 0 {
                    return Err(format!("the same again: {again}"));
                }
            }
            let (fork, wanted) = (scene.point_of("fk")?, &scene.points[3]);
            if fork != *wanted {
                return Err(format!("the fork: {fork:#?}\n{wanted:#?}"));
            }
            scene.stands(&[3]).map(drop)
        });
        assert!(steps > 20, "{steps}");
    }
}

/// What is discarded of a session of three steps.
const OUT: [&str; 6] = ["discard", "w", "t/one", "t/d", "t/full", "t/new"];

fn sweep_discard(who: Who, [kills, fails]: [usize; 2]) {
    let scene = Scene::new(who, &[&FEW[..], &["true"]].concat());
    let words = OUT.map(str::to_owned);
    scene.reset();
    scene.call(&words, "").run().ok();
    let without = scene.point().unwrap_or_else(|why| panic!("{why}"));
    assert_ne!(without, scene.points[3]);
    let scene = Scene { points: [&scene.points[..4], &[without]].concat(), ..scene };
    for (order, every) in [(KILL, kills), (FAILS[0], fails), (FAILS[1], fails)] {
        let steps = scene.sweep(&words, order, every, |said| {
            if !matches!(said.status, 0 | 1 | 137) {
                return Err("the exit status".into());
            }
            let among = if said.status == 0 { vec![4] } else { vec![3, 4] };
            scene.stands(&among).map(drop)
        });
        assert!(steps > 40, "{steps}");
    }
}

/// What a killed run left, at some of its steps since the command was done, collected by a verb that is killed, or fails.
fn sweep_collecting(who: Who, [kills, fails]: [usize; 2]) {
    let scene = Scene::new(who, &FEW);
    let words = Scene::words(FEW[2]);
    let (last, mut collected) = (scene.steps(&words), 0);
    let aside = scene.desk.world.root().join("aside");
    for kill in (1..=last).rev().take_while(|kill| *kill + 40 > last).step_by(13) {
        scene.reset();
        scene.call(&words, &format!("kill:{kill}")).run().with(137);
        scene.desk.world.program("mv", [&scene.kept(), &aside]).run().ok();
        scene.keep();
        let collecting = ["show".to_owned(), "w".to_owned()];
        for (order, every) in [(KILL, kills), (FAILS[0], fails)] {
            collected += scene.sweep(&collecting, order, every, |_| scene.stands(&[2, 3]).map(drop));
        }
        scene.desk.world.program("rm", ["-rf".as_ref(), scene.kept().as_os_str()]).run().ok();
        scene.desk.world.program("mv", [&aside, &scene.kept()]).run().ok();
    }
    assert!(collected > 20, "{collected}");
}

/// Some of the steps: as root, and fewer as a user.
fn some(sweep: impl Fn(Who, [usize; 2])) {
    if common::can_run() {
        each(|desk| sweep(desk.who, if desk.who == Who::Root { [5, 19] } else { [17, 37] }));
    }
}

#[test]
fn a_run_that_goes_on_killed_or_failing_at_a_step_leaves_the_session_at_one_of_its_own() {
    some(sweep_few);
}

#[test]
fn a_run_that_merges_uppers_killed_or_failing_at_a_step_leaves_the_session_at_one_of_its_own() {
    some(|who, [kills, fails]| sweep_many(who, [kills * 5, fails * 5]));
}

#[test]
fn a_rewind_killed_or_failing_at_a_step_leaves_the_session_at_one_of_the_two() {
    some(sweep_rewind);
}

#[test]
fn a_fork_killed_or_failing_at_a_step_is_whole_or_not_there() {
    some(|who, [kills, fails]| sweep_fork(who, [kills * 2, fails]));
}

#[test]
fn a_discard_of_paths_killed_or_failing_at_a_step_is_done_or_not_begun() {
    some(sweep_discard);
}

#[test]
fn the_collecting_by_the_next_verb_killed_or_failing_at_a_step_is_done_by_the_one_after_it() {
    some(sweep_collecting);
}

#[test]
#[ignore = "minutes: every step of all of these"]
fn so_it_is_at_every_step() {
    if common::can_run() {
        let sweeps = [sweep_few, sweep_many, sweep_rewind, sweep_fork, sweep_discard, sweep_collecting];
        each(|desk| sweeps.iter().for_each(|sweep| sweep(desk.who, [1, 3])));
    }
}
