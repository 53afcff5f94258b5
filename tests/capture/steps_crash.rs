//! Sessions of steps whose verbs are killed, or fail, before any step of their own (tests/README.md, F52): a run that goes on, one that
//! merges uppers into a block, `rewind`, `fork`, a discard of paths, and the collecting by the next verb. Afterwards the session stands at one of its steps,
//! whole, and goes on from there.

use crate::VIEW;
use crate::common::sweep::{Came, Sweep, is_whole, steps_of};
use crate::common::{self, Said};
use crate::desk::{Desk, Who, each};

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
        let view = scene.desk.call(["run", "--", "sh", "-c", VIEW]).run().ok().stdout();
        scene.points.push(Point { view, changes: "[]".into() });
        for (i, command) in commands.iter().enumerate() {
            scene.go_on(command).ok();
            // Before anything else runs in it, which may merge.
            if i + 2 == commands.len() {
                scene.keep();
            }
            scene.points.push(scene.point(command));
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

    fn world(&self, program: &str, words: &[&str]) {
        self.desk.world.program(program, words).cwd(self.desk.world.root()).run().ok();
    }

    /// The store is as it is now at each reset.
    fn keep(&self) {
        self.world("rm", &["-rf", "kept"]);
        self.world("cp", &["-a", "store", "kept"]);
    }

    fn reset(&self) {
        self.world("rm", &["-rf", "store"]);
        self.world("cp", &["-a", "kept", "store"]);
    }

    #[track_caller]
    fn point(&self, what: &str) -> Point {
        self.point_of("w", what)
    }

    #[track_caller]
    fn point_of(&self, name: &str, what: &str) -> Point {
        let said = self.desk.call(["run", "--session", name, "--", "sh", "-c", VIEW]).run();
        assert_eq!(said.status, 0, "{what}: a command in it: {said}");
        let shown = self.desk.recant(&format!("show {name} --json"));
        assert_eq!(shown.status, 0, "{what}: {shown}");
        let mut rows = shown.json()["changes"].take();
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
        Point { view: said.stdout(), changes: rows.to_string() }
    }

    /// The step at which the session stands, whole: one of these. It goes on there, and no other step is lost.
    #[track_caller]
    fn stands(&self, among: &[usize], what: &str) {
        let point = self.point(what);
        let Some(step) = among.iter().copied().find(|step| self.points[*step] == point) else {
            let wanted: Vec<_> = among.iter().map(|step| format!("step {step}: {:#?}", self.points[*step])).collect();
            panic!("{what}: it stands at none of {among:?}: {point:#?}\n{}", wanted.join("\n"));
        };
        let next = self.desk.call(["run", "--session", "w", "--", "sh", "-c", "echo next > next"]).run();
        assert_eq!(next.status, 0, "{what}: the next command: {next}");
        let seen = self.desk.call(["run", "--session", "w", "--", "sh", "-c", &format!("cat next; {VIEW}")]).run();
        assert_eq!(seen.stdout(), format!("next\n{}", point.view), "{what}: after the next command: {seen}");
        // One of a step that is there counts for nothing (docs/ARCHITECTURE.md: it counts as long as its step is the next one).
        let left = format!("step.{}.json", step + 2);
        assert!(!self.files().contains(&left), "{what}: left: {left}");
        // The last step before this one; in a whole sweep the first, too.
        let others = if is_whole() { vec![step - 1, 1] } else { vec![step - 1] };
        for other in others.into_iter().filter(|other| *other > 0) {
            let said = self.desk.recant(&format!("rewind w {other}"));
            assert!(said.status == 0, "{what}: gone to step {other}: {said}");
            let what = format!("{what}: gone to step {other}");
            assert_eq!(self.point(&what), self.points[other], "{what}");
        }
    }

    /// The files of the session.
    fn files(&self) -> Vec<String> {
        let sessions = std::fs::read_dir(self.desk.world.store().join("sessions")).expect("the sessions");
        let names = sessions.flat_map(|session| std::fs::read_dir(session.expect("a name").path()).expect("a session"));
        names.map(|name| name.expect("a name").file_name().to_string_lossy().into_owned()).collect()
    }

    /// Sweeps `words`. In a whole sweep they are killed, and fail, whoever calls them; else they are killed as root, and fail as a user. Returns
    /// the number of steps.
    fn sweep(&self, words: &[String], judge: impl Fn(&Said, &str)) -> usize {
        let orders: &[&str] = match (self.desk.who, is_whole()) {
            (Who::Root, true) => &["kill:N", "fail:N:28"],
            (Who::Root, false) => &["kill:N"],
            (Who::User, true) => &["kill:N", "fail:N:5"],
            (Who::User, false) => &["fail:N:5"],
        };
        let steps = orders.iter().map(|order| {
            let row = Sweep {
                name: &format!("{:?} {words:?}", self.desk.who),
                scene: &|| {
                    self.reset();
                    Some(())
                },
                verb: &|()| self.call(words, ""),
                order,
            };
            let tally = row.run(|(), said, what| {
                judge(said, what);
                Came::Used(said.status)
            });
            tally.steps
        });
        steps.max().expect("an order")
    }
}

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

/// For a sweep of root's and one of a user's.
fn sweep(sweep: impl Fn(Who)) {
    if common::can_run() {
        each(|desk| sweep(desk.who));
    }
}

/// The last of these commands, killed or failing.
fn sweep_run(who: Who, commands: &[&str]) -> usize {
    let (scene, last) = (Scene::new(who, commands), commands.len());
    scene.sweep(&Scene::words(commands[last - 1]), |said, what| {
        assert!(matches!(said.status, 0 | 1 | 125 | 137), "{what}");
        let among = if said.status == 0 { vec![last] } else { vec![last - 1, last] };
        scene.stands(&among, what);
    })
}

#[test]
fn a_run_that_goes_on_killed_or_failing_at_a_step_leaves_the_session_at_one_of_its_own() {
    sweep(|who| {
        let steps = sweep_run(who, &FEW);
        assert!(steps > 20, "{steps}");
    });
}

#[test]
#[ignore = "long: many steps, each on a session of sixteen"]
fn a_run_that_merges_uppers_killed_or_failing_at_a_step_leaves_the_session_at_one_of_its_own() {
    sweep(|who| {
        let steps = sweep_run(who, &many().iter().map(String::as_str).collect::<Vec<_>>());
        assert!(steps > 100, "{steps}: it merged nothing");
    });
}

#[test]
fn a_rewind_killed_or_failing_at_a_step_leaves_the_session_at_one_of_the_two() {
    sweep(|who| {
        let scene = Scene::new(who, &[&FEW[..], &["true"]].concat());
        for (from, to) in [(3, 1), (1, 3), (3, 2)] {
            scene.desk.recant(&format!("rewind w {from}")).ok();
            scene.keep();
            let steps = scene.sweep(&["rewind", "w", &to.to_string()].map(str::to_owned), |said, what| {
                let among = if said.status == 0 { vec![to] } else { vec![from, to] };
                scene.stands(&among, what);
            });
            assert!(steps > 4, "{steps}");
            scene.reset();
        }
    });
}

#[test]
fn a_fork_killed_or_failing_at_a_step_is_whole_or_not_there() {
    sweep(|who| {
        let scene = Scene::new(who, &[&FEW[..], &["true"]].concat());
        let words = ["fork", "w", "3", "-n", "fk"].map(str::to_owned);
        let steps = scene.sweep(&words, |said, what| {
            let there = scene.desk.recant("show fk --json").status == 0;
            assert!(there || said.status != 0, "{what}: it is not there");
            if !there {
                let again = scene.call(&words, "").run();
                assert!(again.status == 0, "{what}: the same again: {again}");
            }
            assert_eq!(scene.point_of("fk", what), scene.points[3], "{what}: the fork");
            assert_eq!(scene.point(what), scene.points[3], "{what}");
        });
        assert!(steps > 20, "{steps}");
    });
}

#[test]
fn a_discard_of_paths_killed_or_failing_at_a_step_is_done_or_not_begun() {
    sweep(|who| {
        let mut scene = Scene::new(who, &[&FEW[..], &["true"]].concat());
        let words = ["discard", "w", "t/one", "t/d", "t/full", "t/new"].map(str::to_owned);
        scene.call(&words, "").run().ok();
        let without = scene.point("without them");
        assert_ne!(without, scene.points[3]);
        // In place of what the last command leads to.
        scene.points[4] = without;
        let steps = scene.sweep(&words, |said, what| {
            assert!(matches!(said.status, 0 | 1 | 137), "{what}");
            let among = if said.status == 0 { vec![4] } else { vec![3, 4] };
            scene.stands(&among, what);
        });
        assert!(steps > 20, "{steps}");
    });
}

/// What a killed run left, at some of its last steps, collected by a verb that is killed, or fails. run.rs has it with one kill of the verb.
#[test]
#[ignore = "long: a sweep at each of four steps"]
fn the_collecting_by_the_next_verb_killed_or_failing_at_a_step_is_done_by_the_one_after_it() {
    sweep(|who| {
        let scene = Scene::new(who, &FEW);
        let words = Scene::words(FEW[2]);
        let last = steps_of(|| scene.call(&words, "")).len();
        scene.reset();
        scene.world("cp", &["-a", "kept", "aside"]);
        // Its last steps leave nothing to collect.
        for kill in [last - 8, last - 16, last - 26, last - 39] {
            scene.world("rm", &["-rf", "kept"]);
            scene.world("cp", &["-a", "aside", "kept"]);
            scene.reset();
            scene.call(&words, &format!("kill:{kill}")).run().with(137);
            scene.keep();
            let steps = scene.sweep(&["show", "w"].map(str::to_owned), |_, what| scene.stands(&[2, 3], what));
            assert!(steps > 4, "killed before step {kill} of {last}: {steps}");
        }
    });
}
