//! `recover` under power cuts where it has to leave something, and `recover ID --undo`: a verb is killed right before its seal, somebody is at
//! work on what it had put there, and the recovery is cut at each of its syncs. Then it is called once more, and all is as it would have been.

use super::common::Manifest;
use super::record::Record;
use super::{Caught, Cutting, Scene, Size, timeless};

/// A recovery that leaves something, or one where the header cannot tell; on a scene that is ready for it.
struct Leaving<'s> {
    scene: &'s Scene,
    verb: &'static str,
    /// None, or `--undo`.
    how: Option<&'static str>,
    /// The step of the verb that it is killed before.
    seal: usize,
    wanted: Manifest,
    whole: Record,
}

impl<'s> Leaving<'s> {
    fn new(scene: &'s Scene, verb: &'static str, how: Option<&'static str>) -> Self {
        if verb == "rollback" {
            scene.world.recant(&format!("commit {}", scene.id)).ok();
        }
        scene.keep();
        scene.reset();
        let is_seal = |step: &&super::record::Step| step.call == "renameat" && step.what.contains("session.json.new");
        let seal = scene.record(&[verb, &scene.id], None).steps.iter().find(is_seal).expect("a seal").n;
        let mut leaving = Self { scene, verb, how, seal, wanted: Manifest::default(), whole: Record::default() };
        leaving.whole = leaving.run(None);
        leaving.wanted = calm(scene.world.manifest());
        leaving
    }

    fn words(&self) -> Vec<&str> {
        ["recover", &self.scene.id].into_iter().chain(self.how).collect()
    }

    /// The verb is killed, and somebody is at work.
    fn stop(&self) {
        let scene = self.scene;
        scene.reset();
        scene.record(&[self.verb, &scene.id], Some(self.seal));
        scene.empty_pools();
        if self.how.is_some() {
            // The header cannot tell, and nobody else was there.
            let header = scene.store.join("sessions").join(&scene.id).join("session.json");
            return std::fs::write(header, "x").expect("a write");
        }
        let more = if self.verb == "commit" {
            "printf theirs >> new/deep; printf theirs > full"
        } else {
            "printf theirs >> gone; rm -rf full"
        };
        let command = format!("printf theirs > edited.t; mv edited.t edited; {more}");
        scene.world.program("sh", ["-c", &command]).run().ok();
    }

    /// What was left goes back, or there again: what that takes is whole.
    fn go_on(&self) -> Result<(), String> {
        let (scene, commits) = (self.scene, self.verb == "commit");
        let verified = scene.recant(&["checkpoint", "verify", &scene.id]);
        let words = [if commits { "rollback" } else { "redo" }, &scene.id, "--force"];
        let on = scene.recant(&words);
        let text =
            [verified.stdout, verified.stderr, on.stdout, on.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        let edited = scene.world.read("edited");
        let is_back = if commits { edited == "old" } else { edited.starts_with("new and longer") };
        let is_whole = verified.status.success() && matches!(on.status.code(), Some(0 | 4)) && is_back;
        if is_whole { Ok(()) } else { Err(format!("{words:?} does not give it: {}", text.concat())) }
    }
}

impl Cutting for Leaving<'_> {
    fn name(&self) -> String {
        format!("{} killed, {}", self.verb, self.words().join(" "))
    }

    fn on(&self) -> (&Scene, &Record) {
        (self.scene, &self.whole)
    }

    /// Before the decision is made nobody answers for what somebody has not synced.
    fn run(&self, until: Option<usize>) -> Record {
        self.stop();
        let dirty = if until.is_none() { self.scene.files() } else { Default::default() };
        Record { dirty, ..self.scene.record(&self.words(), until) }
    }

    fn judge(&self, at_end: bool, _: u64) -> Result<(), String> {
        let scene = self.scene;
        let said = scene.recant(&self.words());
        let text = [&said.stdout[..], &said.stderr].map(String::from_utf8_lossy).concat();
        let mut difference = self.wanted.difference(&calm(scene.world.manifest()));
        // What stays on the tree stays as durable as its writer made it.
        if at_end && self.how.is_none() {
            difference.clear();
        }
        let is_over = text.contains("nothing was interrupted");
        // A journal that comes back after the cut is settled again, which is said again.
        let ended = said.status.code() == Some(if self.how.is_some() { 0 } else { 4 }) || self.how.is_none() && is_over;
        if !ended || !difference.is_empty() {
            return Err(format!("the same again: {}\n{text}{difference}", said.status));
        }
        if at_end && !is_over && self.how.is_some() {
            return Err(format!("what was done was to be done again: {text}"));
        }
        scene.tidy()?;
        if self.how.is_none() { self.go_on() } else { Ok(()) }
    }
}

/// Without the times of what somebody wrote, which each run has anew.
fn calm(manifest: Manifest) -> Manifest {
    let mut manifest = timeless(manifest);
    manifest
        .0
        .values_mut()
        .filter(|row| row.content.contains("theirs") || row.mtime.0 > 1_500_000_000)
        .for_each(|row| row.mtime = (0, 0));
    manifest
}

#[test]
fn after_a_power_cut_a_recovery_that_leaves_something_ends_and_what_it_keeps_is_whole() {
    for (verb, how) in [("commit", None), ("commit", Some("--undo")), ("rollback", None), ("rollback", Some("--undo"))] {
        let scene = Scene::new(Size::Few, false).expect("one file system");
        Leaving::new(&scene, verb, how).sweep(1);
    }
}

#[test]
#[ignore = "long: it proves comments on syncs, not the product"]
fn each_sync_of_a_recovery_that_leaves_something_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught = Caught::default();
    // Between two file systems the most depends on them: what is caught there need not be tried again.
    for (verb, two) in [("rollback", true), ("commit", false), ("rollback", false)] {
        let Some(scene) = Scene::new(Size::Few, two) else { continue };
        let leaving = Leaving::new(&scene, verb, None);
        for file in ["src/engine/recover/finish.rs", "src/engine/journal.rs"] {
            leaving.leave_each_out(&mut caught, file);
        }
    }
    caught.assert_needed();
}
